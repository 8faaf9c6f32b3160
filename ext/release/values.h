/* values.h: stores the values of a publication, and makes the answer from them. */
#ifndef DIFFUSE_RELEASE_VALUES_H
#define DIFFUSE_RELEASE_VALUES_H

#include "release/publication.h"

/* Returns the value of an index. The order of the values is that of dp_value: key, component. */
typedef struct ledger_value value_at(const void *context, int index);

/*
** Sets the answer from `count` values. If `stores` is 1, also stores the values, at the tier of the
** publication. Returns 1, or 0 after setting the ledger's error.
*/
int values_publish(struct publication *publication, value_at *at, const void *context, int count,
                   int stores);

/*
** Sets the answer from a point. If dp_mix() gave a kernel for this tier, applies the kernel to the
** values first. If `stores` is 1, also stores the publication and the values. Returns 1, or 0 after
** setting the ledger's error.
*/
int values_of_point(struct publication *publication, const struct cost *cost, const int64_t *values,
                    int stores);

/*
** Sets the answer from the values that are stored at a tier. Returns 1, or 0 after setting the
** ledger's error.
*/
int values_read(struct publication *publication, const char *tier);

#endif
