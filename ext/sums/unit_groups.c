/*
** unit_groups.c: see unit_groups.h.
** Tests: tests/sums/test_vector_sum.c, tests/mechanism/test_groups.py
*/
#include "sums/unit_groups.h"

#include <stdlib.h>

#include "sums/chunks.h"

#define LEAST_SLOTS ((size_t)64)
#define SPARSE      4 /* the index has at least this number of slots for each unit */

void unit_groups_close(struct unit_groups *groups) {
  free(groups->buckets);
  free(groups->groups);
  free(groups->list);
  free(groups->numbers);
  free(groups->index);
}

int unit_groups_bucket(struct unit_groups *groups, struct bucket *bucket) {
  struct bucket **buckets = chunks_grown(groups->buckets, sizeof(struct bucket *),
                                         groups->bucket_count, &groups->bucket_room);
  if (!buckets) return 0;
  groups->buckets = buckets;
  buckets[groups->bucket_count++] = bucket;
  return 1;
}

/* Makes room for this number of rows. Returns 1, or 0 if memory runs out. */
static int reserve_rows(struct unit_groups *groups, size_t rows) {
  if (rows <= groups->row_room) return 1;
  size_t room = rows + rows / 4;
  record_word **list = realloc(groups->list, sizeof *list * room);
  if (list) groups->list = list;
  uint32_t *numbers = realloc(groups->numbers, sizeof *numbers * room);
  if (numbers) groups->numbers = numbers;
  if (!list || !numbers) return 0;
  groups->row_room = room;
  return 1;
}

/* Returns the slot of a unit, or the empty slot for it. */
static inline uint32_t *slot_of(const struct unit_groups *groups, const struct secret *secret,
                                struct identity unit) {
  uint64_t mask = groups->slots - 1, at = identity_mix(secret, unit, 0) & mask;
  uint32_t number;
  while ((number = groups->index[at]) && !identity_same(groups->groups[number - 1].unit, unit))
    at = (at + 1) & mask;
  return &groups->index[at];
}

/* Gives the index `slots` slots and enters all units. Returns 1, or 0 if memory runs out. */
static int resize_index(struct unit_groups *groups, const struct secret *secret, size_t slots) {
  if (slots > groups->slot_room) {
    uint32_t *index = realloc(groups->index, sizeof *index * slots);
    if (index) groups->index = index;
    struct unit_group *grown = realloc(groups->groups, sizeof *grown * (slots / SPARSE));
    if (grown) groups->groups = grown;
    if (!index || !grown) return 0;
    groups->slot_room = slots;
  }
  groups->slots = slots;
  memset(groups->index, 0, sizeof *groups->index * slots);
  for (size_t i = 0; i < groups->count; i++)
    *slot_of(groups, secret, groups->groups[i].unit) = (uint32_t)i + 1;
  return 1;
}

/*
** Gives a number to each unit of a bucket, and counts its rows in `end`. Sets numbers[i] to the
** number of the unit of row i. Returns 1, or 0 if memory runs out.
*/
static int number_units(struct unit_groups *groups, const struct row_store *store,
                        const struct bucket *bucket, uint32_t *numbers) {
  size_t rows = rows_of(store, bucket);
  for (size_t i = 0; i < rows; i++) {
    if (!(i & (chunk_rows(store) - 1))) row_store_prefetch(bucket, (i >> store->chunk_shift) + 1);
    struct identity unit = unit_of_row(store, row_at(store, bucket, i));
    uint32_t *slot = slot_of(groups, store->secret, unit);
    if (!*slot) {
      if (groups->count == groups->slots / SPARSE) {
        if (!resize_index(groups, store->secret, 2 * groups->slots)) return 0;
        slot = slot_of(groups, store->secret, unit);
      }
      groups->groups[groups->count] = (struct unit_group){unit, 0, 0};
      *slot = (uint32_t)++groups->count;
    }
    numbers[i] = *slot - 1;
    groups->groups[*slot - 1].end++;
  }
  return 1;
}

/* Gives each unit as many places of the list as it has rows. The places begin at `end`. */
static void place_units(struct unit_groups *groups) {
  uint32_t end = 0;
  for (size_t i = 0; i < groups->count; i++) {
    struct unit_group *group = &groups->groups[i];
    uint32_t count = group->end;
    group->first = group->end = end;
    end += count;
  }
}

/*
** Writes the addresses of the rows of a bucket to the places of their units in the list. numbers[i]
** is the number of the unit of row i.
*/
static void list_rows(struct unit_groups *groups, const struct row_store *store,
                      const struct bucket *bucket, const uint32_t *numbers) {
  size_t rows = rows_of(store, bucket);
  for (size_t i = 0; i < rows; i++)
    groups->list[groups->groups[numbers[i]].end++] = row_at(store, bucket, i);
}

/*
** Merges the `count` rows of a unit into one record for each cell. The list then begins with these
** records. A slot of the store's index holds the number of a record plus 1, or 0. Returns the
** number of records.
**
** A cell is multiplied by a secret odd number. The upper bits of the product choose the slot, so
** nobody can choose keys that collide.
*/
static size_t merge_unit(struct row_store *store, record_word **list, size_t count) {
  if (count < 2) return count;
  size_t kept = 0;
  int bits = 2;
  while ((size_t)1 << bits < 2 * count) bits++;
  uint32_t *index = memset(store->index, 0, sizeof *index << bits);
  uint64_t mask = ((uint64_t)1 << bits) - 1, factor = secret_word(store->secret, 2) | 1;
  for (size_t i = 0; i < count; i++) {
    record_word *row = list[i];
    uint64_t at = row[0] * factor >> (64 - bits);
    while (index[at] && list[index[at] - 1][0] != row[0]) at = (at + 1) & mask;
    if (index[at]) {
      row_store_merge(store, list[index[at] - 1], row);
    } else {
      list[kept] = row;
      index[at] = (uint32_t)++kept;
    }
  }
  return kept;
}

int unit_groups_make(struct unit_groups *groups, struct row_store *store) {
  size_t count = groups->bucket_count, rows = 0, settled = 0;
  for (size_t i = 0; i < count; i++) rows += rows_of(store, groups->buckets[i]);
  if (count == 1) settled = groups->buckets[0]->settled; /* all records of different pairs */
  groups->count = groups->bucket_count = 0;
  store->last = 0; /* merging changes rows */
  if (!row_store_reserve(store, rows) || !reserve_rows(groups, rows) ||
      !resize_index(groups, store->secret, LEAST_SLOTS))
    return 0;
  uint32_t *numbers = groups->numbers;
  for (size_t i = 0; i < count; numbers += rows_of(store, groups->buckets[i++]))
    if (!number_units(groups, store, groups->buckets[i], numbers)) return 0;
  place_units(groups);
  numbers = groups->numbers;
  for (size_t i = 0; i < count; numbers += rows_of(store, groups->buckets[i++]))
    list_rows(groups, store, groups->buckets[i], numbers);
  for (size_t i = 0; i < groups->count && rows > settled; i++) {
    struct unit_group *group = &groups->groups[i];
    size_t size = group->end - group->first;
    group->end = group->first + (uint32_t)merge_unit(store, &groups->list[group->first], size);
  }
  return !*store->failed;
}
