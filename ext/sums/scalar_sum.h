/* scalar_sum.h: turns rows into one exact total. The code bounds the contribution of each privacy
** unit and adds up the bounded contributions.
**
** The code multiplies a row's value by a power of two and rounds the product to the nearest
** integer, a number of fine lattice steps. All later operations are exact integer additions without
** floating point, so the total does not depend on the order of rows. Requirements:
**   U1  The total of one unit is clamped to [low, high] however many rows it has.
**   U2  Without units each row is clamped on its own.
**   U3  No value of a row is an error: infinities and huge values saturate.
**   U4  With households, what the units of one of them count together is clamped, too.
** identity.h decides which rows belong to one unit. */
#ifndef DIFFUSE_SUMS_SCALAR_SUM_H
#define DIFFUSE_SUMS_SCALAR_SUM_H

#include <math.h>
#include <stdint.h>

#include "noise/lattice.h"
#include "sums/households.h"
#include "sums/partitioned_sums.h"
#include "sums/tally.h"
#include "sums/unit_table.h"

/* The bounds of a contribution, in fine steps. */
struct bounds {
  double scale; /* number of fine steps in a value of 1; a power of two */
  /* The range of one unit's total. Both numbers are integers of at most 2^53 in absolute value. */
  double low, high;
  int64_t low_steps, high_steps; /* low and high as integers */
  int64_t wide;                  /* the most that a household may count; 0: there are none */
  struct ladder ladder;          /* of the option diagnose (tally.h) */
};

/* Totals by unit. The tables `integers` and `others` hold totals that fit 64 bits. `carried` holds
** larger totals. */
struct units {
  struct secret secret;
  struct unit_table integers, others;
  struct partitioned_sums *carried;
};

/* An accumulator. It holds one total for each unit if units are protected, and one total of all
** rows if rows are protected. */
struct scalar_sum {
  struct bounds bounds;
  int128 total; /* total of the rows without a unit, and of scalar_sum_add_total() */
  struct units *units;
  struct tally tally;                  /* with units: complete after scalar_sum_total() */
  const struct households *households; /* the wider units (households.h); null: none */
};

/* Returns a value as a number of fine steps, rounded to nearest and saturated at
** +-2^LATTICE_ROW_BITS (U3). NaN becomes 0. */
static inline int128 fine_steps(double value, double scale) {
  double x = value * scale;
  if (fabs(x) < 0x1p62) return llrint(x);
  int128 limit = (int128)1 << LATTICE_ROW_BITS;
  if (x >= 0x1p90) return limit;
  if (x <= -0x1p90) return -limit;
  return x == x ? (int128)x : 0; /* a double of this size is an integer */
}

/* Opens an empty accumulator. `secret` is that of another accumulator of the release, or null for a
** new one. Returns 1, or 0 if memory runs out or the system provides no random bytes. */
int scalar_sum_open(struct scalar_sum *accumulator, const struct bounds *bounds, int by_unit,
                    const struct secret *secret);
void scalar_sum_close(struct scalar_sum *accumulator);

/* Treats each row that is added from now on as a unit of its own (U2). No row may be there yet. */
void scalar_sum_forget_units(struct scalar_sum *accumulator);

/* Adds a row without a unit (U2). The function is inline, so that adding a row takes no more time
** than in SQLite's own sum(). */
static inline void scalar_sum_add_row(struct scalar_sum *accumulator, double value) {
  const struct bounds *bounds = &accumulator->bounds;
  double steps = value * bounds->scale;
  /* Each line compiles to one instruction without a branch. */
  steps = steps > bounds->low ? steps : bounds->low;
  steps = steps < bounds->high ? steps : bounds->high;
  accumulator->total += llrint(steps);
}

/* Adds a row to the tally of clipped rows, in addition to scalar_sum_add_row(). The tally of units
** needs no such call. */
static inline void scalar_sum_tally_row(struct scalar_sum *accumulator, double value) {
  const struct bounds *bounds = &accumulator->bounds;
  double steps = value * bounds->scale;
  double bounded = fmin(fmax(steps, bounds->low), bounds->high);
  tally_add(&accumulator->tally, &bounds->ladder, bounded != steps, fabs(steps), fabs(bounded));
}

/* Adds the rows that wait in the batch of a table. Returns 1, or 0 if memory ran out. */
int units_flush(struct units *units, struct unit_table *table);

/* Both functions add a row of a unit (U1). Both return 1, or 0 if memory ran out for this row or
** for an earlier row that was waiting in a batch. scalar_sum_add_unit() is the fast function and
** calls scalar_sum_add_large() for large values. */
int scalar_sum_add_large(struct scalar_sum *accumulator, struct identity unit, double value);
static inline int scalar_sum_add_unit(struct scalar_sum *accumulator, struct identity unit,
                                      double value) {
  struct units *units = accumulator->units;
  double steps = value * accumulator->bounds.scale;
  if (!(fabs(steps) < (double)TABLE_MOST)) return scalar_sum_add_large(accumulator, unit, value);
  struct unit_table *table = unit.kind == IDENTITY_INTEGER ? &units->integers : &units->others;
  return unit_table_add(table, unit, llrint(steps)) ? units_flush(units, table) : 1;
}

/* These functions add sums that another accumulator has computed. scalar_sum_add_steps() adds a sum
** of rows of one unit (U1) and returns 1, or 0 if memory runs out. scalar_sum_add_total() adds the
** sum of contributions that are already bounded; their units must have no rows in this accumulator.
** Both functions saturate at +-2^125. */
int scalar_sum_add_steps(struct scalar_sum *accumulator, struct identity unit, int128 steps);
void scalar_sum_add_total(struct scalar_sum *accumulator, int128 total);

/* Calls `take` with the total of every unit. These totals are not bounded yet. The cell is 0. The
** return value is that of partitioned_sums_each(). */
int scalar_sum_records(struct scalar_sum *accumulator, take_record *take, void *context);

/* Returns the secret for the identities of units. The accumulator must have been opened with
** by_unit. */
const struct secret *scalar_sum_secret(const struct scalar_sum *accumulator);

/* Sets *total to the exact total of all bounded contributions, and counts the units in the tally.
** Returns 1, or 0 if memory ran out. */
int scalar_sum_total(struct scalar_sum *accumulator, int128 *total);

#endif
