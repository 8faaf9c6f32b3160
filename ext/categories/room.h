/*
** room.h: releases of one of the public categories (dp_choice), local randomisation of rows
** (dp_response_count), and the public kernels that send releases on (dp_mix).
*/
#ifndef DIFFUSE_CATEGORIES_ROOM_H
#define DIFFUSE_CATEGORIES_ROOM_H

#include "release/room.h"

extern const struct room categories_room;

#endif
