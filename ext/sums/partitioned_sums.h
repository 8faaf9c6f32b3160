/*
** partitioned_sums.h: exact sums for each pair of unit and cell, for millions of pairs.
**
** Rows are appended to buckets; the upper bits of a unit's place (its mix with the secret) choose
** the bucket. When a bucket is full, its rows are merged into one record for each pair of unit and
** cell. If it is still more than three quarters full, it is split in two by the next bit of the
** places. A bucket that is small, or mostly filled by a few units, is doubled instead. As a result
**   -  memory is read and written in order but for a bucket at a time, which fits a cache;
**   -  it is in proportion to the number of pairs, not of rows, and grows bucket by bucket;
**   -  all that a unit has is in one bucket.
** (A hash table of millions of pairs would be read and written at random, with room for its largest
** possible size.)
**
** A row is its unit, its cell where there are cells, and its values, in 64 bits each:
**
**     | kind | low | cell | value | value | ...
**
** What does not fit them goes where values have 128 bits, and takes the rest of its unit with it in
** the end. Sums are exact, and saturate at +-2^125 (lattice_add), which rows do not reach: their
** values are at most 2^LATTICE_ROW_BITS.
*/
#ifndef DIFFUSE_SUMS_PARTITIONED_SUMS_H
#define DIFFUSE_SUMS_PARTITIONED_SUMS_H

#include <stddef.h>
#include <stdint.h>

#include "noise/lattice.h"
#include "sums/identity.h"

struct partitioned_sums;

/*
** Starts without records. Each record will have `components` values. Returns null when out of
** memory.
*/
struct partitioned_sums *partitioned_sums_open(const struct secret *secret, int components,
                                               int with_cells);
void partitioned_sums_close(struct partitioned_sums *records);

/*
** Adds a row; cell is 0 if there are no cells. Returns 1, or 0 when out of memory in this or an
** earlier call.
*/
int partitioned_sums_add(struct partitioned_sums *records, struct identity unit, uint32_t cell,
                         const int128 *values);

/* Whether nothing has been added. */
int partitioned_sums_are_none(const struct partitioned_sums *records);

/* A record. It stays valid until another call. */
typedef uint64_t record_word;
struct identity record_unit(const record_word *record);
uint32_t record_cell(const struct partitioned_sums *records, const record_word *record);
void record_values(const struct partitioned_sums *records, const record_word *record,
                   int128 *values);

/*
** Hand over every record, or every unit with its `count` records, in an arbitrary order, and stop
** when `take` returns 0. Return 1, or 0 if `take` returned 0 or memory ran out in this or an
** earlier call.
*/
typedef int take_record(void *context, struct identity unit, uint32_t cell, const int128 *values);
typedef int take_unit(void *context, const record_word *const *list, size_t count);
int partitioned_sums_each(struct partitioned_sums *records, take_record *take, void *context);
int partitioned_sums_each_unit(struct partitioned_sums *records, take_unit *take, void *context);

#endif
