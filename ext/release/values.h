/* values.h: the stored values of a publication, and the answer that is made from them. */
#ifndef DIFFUSE_RELEASE_VALUES_H
#define DIFFUSE_RELEASE_VALUES_H

#include "release/publication.h"

/*
** Stores the values of a point at its position, after applying the position's kernel if it has one.
*/
int values_store(struct publication *publication, const struct cost *cost, const int64_t *values);

/* Sets the answer from the values that are stored at a tier. */
int values_read(struct publication *publication, const char *tier);

#endif
