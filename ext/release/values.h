/* values.h: stores the values of a publication, and makes the answer from the stored values. */
#ifndef DIFFUSE_RELEASE_VALUES_H
#define DIFFUSE_RELEASE_VALUES_H

#include "release/publication.h"

/*
** Stores the publication and the values of a point, and sets the answer. If dp_mix() gave a kernel
** for this tier, applies the kernel to the values first. Returns 1, or 0 after setting the ledger's
** error.
*/
int values_store(struct publication *publication, const struct cost *cost, const int64_t *values);

/*
** Sets the answer from the values that are stored at a tier. Returns 1, or 0 after setting the
** ledger's error.
*/
int values_read(struct publication *publication, const char *tier);

#endif
