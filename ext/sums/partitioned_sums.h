/* partitioned_sums.h: exact sums for each pair of unit and cell, for millions of pairs.
**
** The code appends each row to a bucket. Each unit has a place, the result of identity_mix(). The
** upper bits of the place choose the bucket. A bucket is a list of chunks of a few kilobytes. When
** a bucket has reached its limit, its rows are merged into one record for each pair of unit and
** cell. If the bucket is still more than half full, the next three bits of the places split the
** bucket in eight. If most of its records belong to a few units, its limit is doubled instead. As a
** result
**   - memory is read and written in order, except inside one bucket, which fits a cache;
**   - the memory is proportional to the number of pairs, not of rows, and grows chunk by chunk;
**   - all records of a unit are in one bucket.
** A hash table of millions of pairs would read and write memory in random order, and would need
** room for its largest possible size.
**
** A row consists of its cell, its unit and its values of 64 bits. There is a store of buckets for
** units that are integers in [0, 2^32), another one for all other integers, and a third one for all
** other units. Their rows are
**
**     | cell: 32 bits | low: 32 bits | value | value | ...
**     | cell: 32 bits | low: 64 bits | value | value | ...
**     | cell: 32 bits | low: 64 bits | kind: 64 bits | value | value | ...
**
** If the first value of a row is a count, it is the same number of steps for most rows. Then the
** first value takes only 32 bits: the count without the steps.
**
** A sum beyond +-2^61, and a count that is negative, beyond 2^31 or no multiple of the steps, goes
** to a fourth store, whose rows are those of the third with values of 128 bits. (Such counts can
** come from the state of a shard.) In the end all records of such a unit are there. Sums are exact
** and saturate at +-2^125 (lattice_add). Sums of rows do not reach this limit, because a value of a
** row is at most 2^LATTICE_ROW_BITS. */
#ifndef DIFFUSE_SUMS_PARTITIONED_SUMS_H
#define DIFFUSE_SUMS_PARTITIONED_SUMS_H

#include <stddef.h>
#include <stdint.h>

#include "noise/lattice.h"
#include "sums/identity.h"

struct partitioned_sums;

/* Makes an empty set of sums, whose records have `components` values, or returns null if memory
** runs out. If `count_steps` is above 0, the first value is a count, and this is the value of a
** count of 1. */
struct partitioned_sums *partitioned_sums_open(const struct secret *secret, int components,
                                               int64_t count_steps);
void partitioned_sums_close(struct partitioned_sums *records);

/* Adds a row. A caller without cells passes cell 0. Returns 0 if memory has run out. */
int partitioned_sums_add(struct partitioned_sums *records, struct identity unit, uint32_t cell,
                         const int128 *values);
/* The same for values within +-2^61. If the first value is a count, values[0] is the count without
** the steps, in [0, 2^31). */
int partitioned_sums_add_narrow(struct partitioned_sums *records, struct identity unit,
                                uint32_t cell, const int64_t *values);

/* Returns whether no row has been added. */
int partitioned_sums_are_none(const struct partitioned_sums *records);

/* A record is an array of words. record_unit() and record_values() may only be called inside the
** function that partitioned_sums_each_unit() calls, for records that it receives. record_values()
** writes the values of `count` records one after the other. */
typedef uint32_t record_word; /* as in row_store.h */
static inline uint32_t record_cell(const record_word *record) {
  return record[0];
}
struct identity record_unit(const struct partitioned_sums *records, const record_word *record);
void record_values(const struct partitioned_sums *records, const record_word *const *list,
                   size_t count, int128 *values);

/* Call `take` for every record, or for every unit with its `count` records, in any order, and stop
** when `take` returns 0. Both return 1, or 0 if `take` returned 0 or memory has run out. */
typedef int take_record(void *context, struct identity unit, uint32_t cell, const int128 *values);
typedef int take_unit(void *context, const record_word *const *list, size_t count);
int partitioned_sums_each(struct partitioned_sums *records, take_record *take, void *context);
int partitioned_sums_each_unit(struct partitioned_sums *records, take_unit *take, void *context);

/* Lets partitioned_sums_each_unit() and partitioned_sums_take_part() call `expect` with each unit
** some units before they take it, so that its function can prefetch memory. */
typedef void expect_unit(const void *context, struct identity unit);
void partitioned_sums_expect(struct partitioned_sums *records, expect_unit *expect,
                             const void *context);

/* Several sums of one release, whose secrets are equal, can be read on several threads. A part of
** them is all units of a store whose places begin with the first `depth` bits of `place`. Every
** unit is in one part. The threads read different parts, and between these calls nobody adds a row.
**
** partitioned_sums_end() must be called first, for each of the sums, on any thread. If the cells of
** some sums have other numbers than those of the first ones, partitioned_sums_translate() then
** gives them these numbers: a slot has a cell and one of `bins` numbers, cell * bins + number, and
** cells[i] is the new number of cell i.
**
** partitioned_sums_parts() lists the parts. The list stays empty if some unit has sums of 128 bits,
** and the caller then reads the sums on one thread. `parts` is all 0 before the call, and the
** caller calls free() for parts->list. Returns 1, or 0 if memory runs out.
**
** partitioned_sums_take_part() calls `take` for each unit of a part. `records` are the sums of this
** list that belong to the thread, for record_unit() and record_values(). It may return SUMS_WIDE: a
** sum of this part needs 128 bits, and the caller must read all sums on one thread after all. They
** are complete, whatever parts have been read. */
struct record_part {
  int store, depth;
  uint64_t place;
};
struct record_parts {
  struct record_part *list;
  size_t count, room;
};
enum sums_added { SUMS_FAILED, SUMS_ADDED, SUMS_WIDE };
int partitioned_sums_end(struct partitioned_sums *records);
void partitioned_sums_translate(struct partitioned_sums *records, const int *cells, uint32_t bins);
int partitioned_sums_parts(struct partitioned_sums *const *list, int count,
                           struct record_parts *parts);
enum sums_added partitioned_sums_take_part(struct partitioned_sums *records,
                                           struct partitioned_sums *const *list, int count,
                                           const struct record_part *part, take_unit *take,
                                           void *context);

#endif
