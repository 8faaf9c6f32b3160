/*
** unit_groups.h: the rows of some buckets (row_store.h), grouped by unit. All rows of these units
** are in these buckets, which may belong to several stores with rows of the same form.
**
** A first pass over the rows gives a number to each unit and counts its rows. A second pass writes
** the addresses of the rows into a list, ordered by these numbers. Then the rows of each unit are
** merged into one record for each cell. The hash tables of these steps hold the units of these
** buckets or the cells of one unit, and are so small that they stay in the fastest caches.
*/
#ifndef DIFFUSE_SUMS_UNIT_GROUPS_H
#define DIFFUSE_SUMS_UNIT_GROUPS_H

#include "sums/row_store.h"

/* A unit, whose records are list[first], ..., list[end - 1]. */
struct unit_group {
  struct identity unit;
  uint32_t first, end;
};

struct unit_groups {
  struct bucket **buckets;
  size_t bucket_count, bucket_room;
  struct unit_group *groups;
  size_t count;
  record_word **list;
  uint32_t *numbers; /* the number of the unit of each row */
  size_t row_room;   /* number of rows for which the two arrays above have room */
  uint32_t *index;   /* a hash table of the units; a slot holds a number plus 1, or 0 */
  size_t slots, slot_room;
};

/*
** unit_groups_bucket() adds a bucket to those that unit_groups_make() groups next. Returns 1, or 0
** if memory runs out. `groups` must be all 0 before the first call.
**
** unit_groups_make() groups and merges the rows of the buckets, and then forgets the buckets. Rows
** that were merged into another row stay in their bucket with values of 0, so that the sums do not
** change. `store` is a store with rows of the same form, which may get rows in its wide store.
** Returns 1, or 0 if memory runs out.
*/
int unit_groups_bucket(struct unit_groups *groups, struct bucket *bucket);
int unit_groups_make(struct unit_groups *groups, struct row_store *store);
void unit_groups_close(struct unit_groups *groups);

#endif
