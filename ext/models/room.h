/*
** room.h: models (dp_sgd): the noisy descent, its privacy, its releases, and the functions that use
** stored models.
*/
#ifndef DIFFUSE_MODELS_ROOM_H
#define DIFFUSE_MODELS_ROOM_H

#include "release/room.h"

extern const struct room models_room;

#endif
