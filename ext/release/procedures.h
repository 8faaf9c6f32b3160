/* procedures.h: the procedure of each mechanism. */
#ifndef DIFFUSE_RELEASE_PROCEDURES_H
#define DIFFUSE_RELEASE_PROCEDURES_H

#include "release/procedure.h"

const struct procedure *procedure_of(const struct mechanism *mechanism);

#endif
