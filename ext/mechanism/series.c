/*
** series.c: see series.h.
** Tests: tests/mechanism/test_series.c, tests/mechanism/test_series_law.py
*/
#include "mechanism/series.h"

#include <math.h>
#include <stdlib.h>

#define FACTOR_BITS    60
#define COUNT_SPREAD   1.4142135623730952 /* sqrt(2), rounded up */
#define DIAGNOSE_SHARE 40

/* ---- the matrix ------------------------------------------------------------------------------ */

/* The sum of the squares is below 2^122, because the squares of f_0 ... f_4095 add up to 3.7. */
int series_make(struct series *series, int periods, const struct noise_law *noise) {
  *series = (struct series){.periods = periods};
  if (noise->in_sum_norm) return 1;
  series->factor = malloc(sizeof *series->factor * (size_t)periods);
  series->root = malloc(sizeof *series->root * (size_t)periods);
  if (!series->factor || !series->root) return 0;
  uint128 factor = (uint128)1 << FACTOR_BITS, squares = 0;
  for (int k = 0; k < periods; k++) {
    if (k > 0) factor = factor * (unsigned)(2 * k - 1) / (unsigned)(2 * k);
    squares += factor * factor;
    series->factor[k] = (int64_t)factor;
    series->root[k] = lattice_root(squares) + 1;
  }
  return 1;
}

void series_free(struct series *series) {
  free(series->factor);
  free(series->root);
  *series = (struct series){0};
}

int64_t series_multiplier(const struct series *series, int t, int s) {
  if (s > t) return 0;
  if (!series->factor) return (int64_t)(s == t) << SERIES_UNIT_BITS;
  uint128 factor = (uint128)series->factor[t - s] << SERIES_UNIT_BITS;
  return (int64_t)(factor / series->root[series->periods - s - 1]);
}

/* The multipliers of a point add up to less than 2^37, so the total is below 2^125. */
int64_t series_coordinate(const struct series *series, int t, const int128 *sums, size_t stride,
                          int shift) {
  int128 total = 0;
  for (int s = 0; s <= t; s++) {
    int128 sum = lattice_clamp(sums[(size_t)s * stride], -SERIES_SUM, SERIES_SUM);
    total += series_multiplier(series, t, s) * sum;
  }
  return lattice_round(total, shift + SERIES_UNIT_BITS);
}

/*
** r C is the indicator of first..last. C is lower triangular, so column t of this equation gives
** r_t from the later numbers, beginning at the end: r_t = 0 for t > last.
*/
int series_reading(const struct series *series, int first, int last, double *weights,
                   double *variance) {
  double *row = weights ? weights : malloc(sizeof *row * ((size_t)last + 1));
  if (!row) return 0;
  *variance = 0;
  for (int s = last; s >= 0; s--) {
    double rest = s >= first ? ldexp(1, SERIES_UNIT_BITS) : 0;
    for (int t = last; t > s; t--) rest -= (double)series_multiplier(series, t, s) * row[t];
    row[s] = rest / (double)series_multiplier(series, s, s);
    *variance += row[s] * row[s];
  }
  if (!weights) free(row);
  return 1;
}

/* ---- the layout ------------------------------------------------------------------------------ */

int64_t series_reach(const struct layout *shape) {
  return shape->blocks[shape->block_count - 1].reach;
}

/*
** Clipping scales a unit's vector in one period only, the last one in which the unit counts. There
** truncation may move it out of its cone (layout.h), by less than one step for each coordinate.
*/
static uint64_t replaced_distance(const struct layout *shape, uint64_t reach, int coordinates) {
  double out = 2 * sqrt(coordinates), spread = fmax(COUNT_SPREAD, shape->blocks[0].spread);
  double distance = spread * ((double)reach + out) + 2 * out;
  return (uint64_t)ceil(distance * (1 + 0x1p-50)) + 1;
}

void series_layout(struct layout *shape, int periods, int replace, const struct noise_law *noise) {
  int coordinates = shape->coordinates + shape->diagnoses;
  uint64_t reach = (uint64_t)series_reach(shape);
  if (shape->diagnoses) {
    shape->diagnose_steps = (int64_t)(reach / DIAGNOSE_SHARE);
    reach += 2 * (uint64_t)shape->diagnose_steps;
  }
  shape->periods = periods;
  shape->once = shape->distance;
  shape->touched = periods * coordinates;
  shape->is_l1 = noise->in_sum_norm;
  shape->distance = !replace             ? reach
                    : noise->in_sum_norm ? 2 * reach
                                         : replaced_distance(shape, reach, coordinates);
}
