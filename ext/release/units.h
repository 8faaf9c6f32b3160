/*
** units.h: from rows to one exact total: contributions of privacy units, bounded and summed.
**
** This is where floating point ends. A row's value becomes an integer number of fine lattice steps
** (times a power of two, rounded to nearest); everything after is exact integer addition, so the
** total does not depend on the order of rows. Requirements:
**   U1  The total of one unit is clamped to [low, high] however many rows it has.
**   U2  Without units every row is clamped by itself.
**   U3  Numbers that are equal are one unit (1 and 1.0, 0.0 and -0.0), texts and blobs byte for byte
**       (whatever the collation of a column says), NULLs together.
**   U4  No value of a row is an error: infinities and huge values saturate.
*/
#ifndef DIFFUSE_RELEASE_UNITS_H
#define DIFFUSE_RELEASE_UNITS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "noise/lattice.h"

/* What bounds a contribution, in fine steps. */
struct bounds {
  double scale;                  /* fine steps per unit of the value: a power of two */
  double low, high;              /* range of one unit's total: integers, |.| <= 2^53 */
  int64_t low_steps, high_steps; /* the same as integers */
};

struct units; /* a hash table of totals by unit */

/* An accumulator: with a table where units are protected, without where rows are. */
struct accumulator {
  struct bounds bounds;
  int128 total; /* of the rows, without a table */
  struct units *units;
};

/* Starts an accumulator. Returns 0, or -1 when memory or entropy ran out. */
int accumulator_open(struct accumulator *accumulator, const struct bounds *bounds, int by_unit);
void accumulator_close(struct accumulator *accumulator);

/* Adds a row without a unit (U2). Here, so that the loop over rows is as short as SQLite's own sum(). */
static inline void accumulate_row(struct accumulator *accumulator, double value) {
  double steps = value * accumulator->bounds.scale;
  if (steps >= accumulator->bounds.high) {
    accumulator->total += accumulator->bounds.high_steps;
  } else if (steps > accumulator->bounds.low) {
    accumulator->total += llrint(steps);
  } else {
    accumulator->total += accumulator->bounds.low_steps;
  }
}

/* Add a row of a unit (U1, U3). Return 0, or -1 when memory ran out. */
int accumulate_null(struct accumulator *accumulator, double value);
int accumulate_integer(struct accumulator *accumulator, int64_t unit, double value);
int accumulate_real(struct accumulator *accumulator, double unit, double value);
int accumulate_bytes(struct accumulator *accumulator, const void *unit, size_t size, int is_text,
                     double value);

/* Sets *total to the exact total of all contributions. Returns 0, or -1 when memory ran out. */
int accumulator_total(struct accumulator *accumulator, int128 *total);

#endif
