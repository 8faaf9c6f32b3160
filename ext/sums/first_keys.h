/*
** first_keys.h: chooses the private keys that a unit keeps (V3 in vector_sum.h).
*/
#ifndef DIFFUSE_SUMS_FIRST_KEYS_H
#define DIFFUSE_SUMS_FIRST_KEYS_H

#include "sums/group_keys.h"
#include "sums/layout.h"
#include "sums/partitioned_sums.h"

/* A record of the unit whose matrix is being made. Records are sorted by order, then by slot. */
struct item {
  uint64_t order;
  uint32_t slot;
  const record_word *record;
};

/*
** Moves the records of the first max_groups keys of a unit to the front and returns their number.
** The order of keys is that of a keyed hash of unit and key. If there is no limit, the unit keeps
** all records. If cells have bins, the function also sorts the kept records by slot.
*/
size_t first_keys(struct item *items, size_t count, const struct layout *shape,
                  const struct group_keys *cells, const struct secret *secret,
                  struct identity unit);

#endif
