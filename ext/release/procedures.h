/* procedures.h: the procedure of each kind and mechanism. */
#ifndef DIFFUSE_RELEASE_PROCEDURES_H
#define DIFFUSE_RELEASE_PROCEDURES_H

#include "release/procedure.h"

const struct procedure *procedure_of(const struct definition *definition);

/*
** Returns the procedure of the kind, before the mechanism is known. It has all steps before the
** release is described.
*/
const struct procedure *procedure_of_kind(const struct aggregate *aggregate);

#endif
