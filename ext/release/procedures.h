/* procedures.h: the procedure of each kind. */
#ifndef DIFFUSE_RELEASE_PROCEDURES_H
#define DIFFUSE_RELEASE_PROCEDURES_H

#include "release/procedure.h"

const struct procedure *procedure_of(const struct aggregate *aggregate);

#endif
