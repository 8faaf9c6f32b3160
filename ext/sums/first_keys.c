/* first_keys.c: see first_keys.h. Tests: tests/mechanism/test_groups.py */
#include "sums/first_keys.h"

#include <stdlib.h>

#define FEW 24 /* number of items from which on qsort() is faster than insertion */

static int by_order(const void *a, const void *b) {
  const struct item *x = a, *y = b;
  if (x->order != y->order) return x->order < y->order ? -1 : 1;
  return (x->slot > y->slot) - (x->slot < y->slot);
}

/* Sorts items. Most units have few, for which insertion is faster than qsort(). */
static void sort(struct item *items, size_t count) {
  if (count > FEW) {
    qsort(items, count, sizeof *items, by_order);
    return;
  }
  for (size_t i = 1; i < count; i++) {
    struct item item = items[i];
    size_t at = i;
    for (; at > 0 && by_order(&items[at - 1], &item) > 0; at--) items[at] = items[at - 1];
    items[at] = item;
  }
}

static size_t cell_of(const struct item *item, const struct layout *shape) {
  return item->slot / (size_t)shape->bins;
}

/* Sets the order of every item: the keyed hash of the unit and the key. */
static void set_orders(struct item *items, size_t count, const struct layout *shape,
                       const struct group_keys *cells, const struct secret *secret,
                       struct identity unit) {
  for (size_t i = 0; i < count; i++) {
    uint64_t key = group_keys_hash(cells, (int)cell_of(&items[i], shape));
    items[i].order = identity_mix(secret, unit, key);
  }
}

/*
** Moves the first `most` items, in any order, to the front. Among the items that are kept so far,
** items[last] is the last. Most other items are not moved, because `order` is random.
*/
static void keep_items(struct item *items, size_t count, size_t most) {
  size_t last = 0;
  for (size_t i = most; i-- > 0;) last = items[i].order > items[last].order ? i : last;
  for (size_t i = most; i < count; i++) {
    if (items[i].order >= items[last].order) continue;
    items[last] = items[i];
    for (size_t j = 0; j < most; j++) last = items[j].order > items[last].order ? j : last;
  }
}

/* Returns the number of keys of items that are sorted by key. */
static size_t count_keys(const struct item *items, size_t count, const struct layout *shape) {
  size_t keys = 1;
  for (size_t i = 1; i < count; i++)
    keys += cell_of(&items[i], shape) != cell_of(&items[i - 1], shape);
  return keys;
}

/*
** Sorts the items by order, and those of one key by slot. Returns the number of items of the first
** `most` keys.
*/
static size_t keep_bins(struct item *items, size_t count, const struct layout *shape, size_t most) {
  size_t kept = 0;
  sort(items, count);
  for (size_t keys = 0; kept < count; kept++) {
    keys += kept == 0 || cell_of(&items[kept], shape) != cell_of(&items[kept - 1], shape);
    if (keys > most) break;
  }
  return kept;
}

size_t first_keys(struct item *items, size_t count, const struct layout *shape,
                  const struct group_keys *cells, const struct secret *secret,
                  struct identity unit) {
  size_t most = (size_t)shape->max_groups;
  int is_limited = most > 0 && count > most;
  if (shape->bins == 1) {
    if (!is_limited) return count;
    set_orders(items, count, shape, cells, secret, unit);
    keep_items(items, count, most);
    return most;
  }
  sort(items, count);
  if (!is_limited || count_keys(items, count, shape) <= most) return count;
  set_orders(items, count, shape, cells, secret, unit);
  count = keep_bins(items, count, shape, most);
  for (size_t i = 0; i < count; i++) items[i].order = 0;
  sort(items, count);
  return count;
}
