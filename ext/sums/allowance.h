/* allowance.h: the book of a series: what each unit has counted so far, from period to period.
**
** A unit may count a norm of at most B (the reach) in all periods together. Its entry has the norm
** that it has counted, rounded up, so that nothing that happens to its rows between two periods can
** raise the sum above B. An entry never shrinks. The book knows a unit by the first 16 bytes of the
** SHA-256 of a secret and of the unit's identity, so that it has no names of units. The entry of a
** unit depends on this unit alone.
**
**   A1  All that a unit counts, from the first to the last period, has norms that add up to at most
**       B, whatever rows the unit has at each time. For averages the same holds for its rows and
**       `clip` rows, so that no value makes a unit count more often.
**   A2  In a period, the whole vector of a unit counts as long as it fits. Otherwise clip_block()
**       scales it down to what is left. */
#ifndef DIFFUSE_SUMS_ALLOWANCE_H
#define DIFFUSE_SUMS_ALLOWANCE_H

#include <stddef.h>

#include "sums/identity.h"
#include "sums/layout.h"

#define ALLOWANCE_SECRET 32 /* bytes of the secret */
#define ALLOWANCE_BYTES  24 /* bytes of an entry */

/* Facts about a unit, in the upper bits of its entry. */
enum { ALLOWANCE_COUNTED = 1, ALLOWANCE_CLIPPED = 2 };

struct allowances;

/* Makes an empty book. Returns null if memory runs out. */
struct allowances *allowances_open(const unsigned char secret[ALLOWANCE_SECRET], int64_t reach);
void allowances_close(struct allowances *book);

/* Adds entries that allowances_bytes() has returned. Returns 1, 0 if they cannot come from it, or
** -1 if memory runs out. */
int allowances_load(struct allowances *book, const unsigned char *bytes, size_t size);

size_t allowances_count(const struct allowances *book);

/* Returns the bytes of the entries from number `first` on. They follow each other in memory. */
const unsigned char *allowances_bytes(const struct allowances *book, size_t first);

/* Clips the vector of a unit in one period to what is left of its allowance, and spends it. The
** vector has `cells` times shape->components values. Sets *first to the facts that are new in this
** period. Returns 1, or 0 if memory runs out. */
int allowances_spend(struct allowances *book, const struct layout *shape, struct identity unit,
                     int128 *values, size_t cells, int *first);

#endif
