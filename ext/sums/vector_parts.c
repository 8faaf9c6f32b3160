/* vector_parts.c: see vector_parts.h. Tests: tests/sums/test_vector_parts.c */
#include "sums/vector_parts.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "sums/partitioned_sums.h"
#include "sums/vector_totals.h"

struct vector_parts {
  int count;
  struct vector_sum **list;
  struct partitioned_sums **records; /* of each vector */
  int **maps;                        /* vector_sum_map() of each vector but the first */
  struct record_parts parts;
  atomic_int is_wide; /* a sum needs 128 bits */
};

struct vector_parts *vector_parts_open(struct vector_sum *const *list, int count) {
  struct vector_parts *parts = calloc(1, sizeof *parts);
  if (!parts) return 0;
  size_t size = (size_t)count;
  parts->count = count;
  parts->list = calloc(size, sizeof(struct vector_sum *));
  parts->records = calloc(size, sizeof(struct partitioned_sums *));
  parts->maps = calloc(size, sizeof(int *));
  int going = parts->list && parts->records && parts->maps;
  for (int i = 0; i < count && going; i++) {
    parts->list[i] = list[i];
    parts->records[i] = list[i]->records;
    going = !list[i]->failed && (i == 0 || vector_sum_map(list[0], list[i], &parts->maps[i]));
  }
  if (going) return parts;
  vector_parts_close(parts);
  return 0;
}

void vector_parts_close(struct vector_parts *parts) {
  if (!parts) return;
  for (int i = 0; parts->maps && i < parts->count; i++) free(parts->maps[i]);
  free(parts->list);
  free(parts->records);
  free(parts->maps);
  free(parts->parts.list);
  free(parts);
}

int vector_parts_prepare(struct vector_parts *parts, int number) {
  const struct vector_sum *vectors = parts->list[number];
  if (!partitioned_sums_end(vectors->records)) return 0;
  if (parts->maps[number])
    partitioned_sums_translate(vectors->records, parts->maps[number],
                               (uint32_t)vectors->shape->bins);
  return 1;
}

/* Lets a vector use the cells of the first vector. */
static int borrow(struct vector_sum *vectors, struct vector_sum *first) {
  group_keys_close(vectors->cells);
  full_cells_close(vectors->full);
  vectors->first = first;
  vectors->cells = first->cells;
  vectors->full = first->full;
  return vector_sum_join_tally(first, vectors);
}

int vector_parts_find(struct vector_parts *parts, unsigned *count) {
  struct vector_sum *first = parts->list[0];
  *count = 0;
  for (int i = 1; i < parts->count; i++)
    if (!borrow(parts->list[i], first)) return 0;
  size_t room = 0;
  for (int i = 0; i < parts->count; i++)
    if (parts->list[i]->totals_room > room) room = parts->list[i]->totals_room;
  for (int i = 0; i < parts->count; i++)
    if (!vector_totals_reserve(parts->list[i], room) || !vector_totals_begin(parts->list[i]))
      return 0;
  if (!partitioned_sums_parts(parts->records, parts->count, &parts->parts)) return 0;
  *count = (unsigned)parts->parts.count;
  return 1;
}

int vector_parts_add(struct vector_parts *parts, int number, unsigned part) {
  struct vector_sum *vectors = parts->list[number];
  if (atomic_load(&parts->is_wide)) return 1;
  enum sums_added added =
      partitioned_sums_take_part(vectors->records, parts->records, parts->count,
                                 &parts->parts.list[part], vector_totals_unit, vectors);
  if (added == SUMS_WIDE) atomic_store(&parts->is_wide, 1);
  return added != SUMS_FAILED;
}

int vector_parts_end(struct vector_parts *parts) {
  struct vector_sum *first = parts->list[0];
  if (atomic_load(&parts->is_wide)) return 0;
  for (int i = 1; i < parts->count; i++) {
    struct vector_sum *vectors = parts->list[i];
    if (vectors->late) vector_late_add(vectors);
    for (size_t j = 0; j < first->totals_room && j < vectors->totals_room; j++)
      first->totals[j] += vectors->totals[j];
    first->tally.clipped += vectors->tally.clipped;
    first->tally.whole += vectors->tally.whole;
  }
  return first->is_added = 1;
}
