/* series_matrix.c: see mechanism.h.
** Tests: tests/mechanism/test_series.c, tests/mechanism/test_series_law.py */
#include "mechanism/mechanism.h"

#include <math.h>
#include <stdlib.h>

#define COUNT_SPREAD 1.4142135623730952 /* sqrt(2), rounded up */

/* The two counts of units make the noise of the figures up to 5% larger. */
#define DIAGNOSE_PART    0.22 /* sqrt(1 + 2 * 0.22^2) = 1.0473 */
#define DIAGNOSE_PART_L1 (1.0 / 40)

/* ---- the matrix ------------------------------------------------------------------------------ */

/* The sum of the squares is below 2^62, because the squares of f_0 ... f_4095 add up to 3.7. */
int series_make(struct series *series, int periods, const struct noise_law *noise) {
  *series = (struct series){.periods = periods};
  if (noise->in_sum_norm) return 1;
  series->factor = malloc(sizeof *series->factor * (size_t)periods);
  series->scale = malloc(sizeof *series->scale * (size_t)periods);
  if (!series->factor || !series->scale) return 0;
  uint128 exact = (uint128)1 << (2 * SERIES_UNIT_BITS), squares = 0;
  for (int k = 0; k < periods; k++) {
    if (k > 0) exact = exact * (unsigned)(2 * k - 1) / (unsigned)(2 * k);
    int64_t factor = (int64_t)(exact >> SERIES_UNIT_BITS);
    squares += (uint128)factor * (uint128)factor;
    series->factor[k] = factor;
    series->scale[periods - 1 - k] =
        ((int64_t)1 << (2 * SERIES_UNIT_BITS)) / (int64_t)(lattice_root(squares) + 1);
  }
  return 1;
}

void series_free(struct series *series) {
  free(series->factor);
  free(series->scale);
  *series = (struct series){0};
}

int64_t series_multiplier(const struct series *series, int t, int s) {
  if (s > t) return 0;
  if (!series->factor) return (int64_t)(s == t) << (2 * SERIES_UNIT_BITS);
  return series->factor[t - s] * series->scale[s];
}

/* The total, in units of 2^-60, does not fit into 128 bits, so that its upper part (in units of
** 2^-30) and the rest are added up apart. L_0, L_1, ... add up to less than 2^37, so the upper part
** stays below 2^125 and the rest below 2^67. To lattice_round(), a total that is cut towards 0
** counts as the total itself: the halves from which it rounds away are whole numbers here. */
int64_t series_coordinate(const struct series *series, int t, const int128 *sums, size_t stride,
                          int shift) {
  const uint128 below = ((uint128)1 << SERIES_UNIT_BITS) - 1;
  int128 upper = 0;
  uint128 rest = 0;
  if (!series->factor)
    return lattice_round(lattice_clamp(sums[(size_t)t * stride], -SERIES_SUM, SERIES_SUM), shift);
  for (int s = 0; s <= t; s++) {
    int128 sum = lattice_clamp(sums[(size_t)s * stride], -SERIES_SUM, SERIES_SUM);
    int128 scaled = series->scale[s] * sum;
    upper += series->factor[t - s] * (scaled >> SERIES_UNIT_BITS);
    rest += (uint128)series->factor[t - s] * ((uint128)scaled & below);
  }
  upper += (int128)(rest >> SERIES_UNIT_BITS);
  if (upper < 0 && rest & below) upper++;
  return lattice_round(upper, shift + SERIES_UNIT_BITS);
}

/* ---- readings -------------------------------------------------------------------------------- */

/* With C = L D, the row of one period t is row t of the inverse of L, divided by d_t: its numbers
** are g_t, ..., g_1, g_0, where g is the first column of this inverse. The row of a span is the sum
** of the rows of its periods. */
int window_open(struct window *window, const struct series *series, int periods) {
  *window = (struct window){.series = series, .first = 0, .last = -1};
  window->weights = calloc((size_t)periods + 1, sizeof *window->weights);
  if (!series->factor) return window->weights != 0;
  double *inverse = window->inverse = malloc(sizeof *inverse * ((size_t)periods + 1));
  if (!window->weights || !inverse) return 0;
  for (int k = 0; k < periods; k++) {
    double rest = 0;
    for (int j = 1; j <= k; j++) rest -= (double)series->factor[j] * inverse[k - j];
    inverse[k] = k ? ldexp(rest, -SERIES_UNIT_BITS) : 1;
  }
  return 1;
}

void window_close(struct window *window) {
  free(window->weights);
  free(window->inverse);
  *window = (struct window){0};
}

static void add_period(struct window *window, int t, int sign) {
  if (!window->inverse) {
    window->weights[t] = sign > 0;
    return;
  }
  double scale = ldexp(sign, SERIES_UNIT_BITS) / (double)window->series->scale[t];
  for (int s = 0; s <= t; s++) window->weights[s] += scale * window->inverse[t - s];
}

void window_move(struct window *window, int first, int last) {
  if (first < window->first || last < window->last || first > window->last) {
    for (int s = 0; s <= window->last; s++) window->weights[s] = 0;
    window->first = first;
    window->last = first - 1;
  }
  while (window->last < last) add_period(window, ++window->last, 1);
  while (window->first < first) add_period(window, window->first++, -1);
  window->variance = 0;
  for (int s = 0; s <= last; s++) window->variance += window->weights[s] * window->weights[s];
}

/* ---- the layout ------------------------------------------------------------------------------ */

int64_t series_reach(const struct layout *shape) {
  return shape->blocks[shape->block_count - 1].reach;
}

/* Two units a, b >= 0 of one coordinate, each of which counts at most B over all periods: the
** distance |C (a - b)| is convex in the pair, so the largest one is that of corners, which are 0 or
** lie in one period. Corners in the periods i < j are B |C e_i - C e_j| apart, at most
** B sqrt(2 - 2 g_ij) with g_ij = <C e_i, C e_j>, as no column is longer than 1; and B apart, or
** less, if one is 0 or if they lie in the same period.
**
** No g_ij is below g = C_(T-1)0 C_(T-1)(T-1), in these integers. Let N = T - i and n = T - j. L
** falls, so g_ij = d_i d_j (sum of L_m L_(m + N - n) for m < n) is at least d_i L_(N-1) times
** d_j (L_0 + ... + L_(n-1)). d_i rises with i and L falls, so d_i L_(N-1) >= d_0 L_(T-1). For n = 1
** the second factor is d_(T-1) L_0. For n > 1 it is larger: L_0 + ... + L_(n-1) is at least 1.3
** times the root of the sum of the squares, and d_j times this root is 2^60 but for roundings. */
static double count_spread(const struct series *series) {
  int last = series->periods - 1;
  double first_column = ldexp((double)series_multiplier(series, last, 0), -2 * SERIES_UNIT_BITS);
  double last_column = ldexp((double)series_multiplier(series, last, last), -2 * SERIES_UNIT_BITS);
  double product = first_column * last_column * (1 - 0x1p-50);
  return fmax(1, sqrt(2 - 2 * product) * (1 + 0x1p-50));
}

/* Clipping scales a unit's vector in one period only, the last one in which the unit counts. There
** truncation may move it out of its cone (layout.h), by less than one step for each coordinate. One
** coordinate stays between 0 and what is left. */
static double replaced_distance(const struct layout *shape, const struct series *series) {
  const struct block *block = &shape->blocks[0];
  double out = 2 * sqrt(shape->coordinates), reach = (double)series_reach(shape);
  if (shape->coordinates == 1 && block->spread == 1) return count_spread(series) * reach;
  return fmax(COUNT_SPREAD, block->spread) * (reach + out) + 2 * out;
}

void series_layout(struct layout *shape, const struct series *series, int replace,
                   const struct noise_law *noise) {
  uint64_t reach = (uint64_t)series_reach(shape), steps = 0;
  if (shape->diagnoses) {
    steps = (uint64_t)((double)reach * (noise->in_sum_norm ? DIAGNOSE_PART_L1 : DIAGNOSE_PART));
    shape->diagnoses = DIAGNOSES;
    shape->ladder = (struct ladder){(int64_t)steps, 0, 0}; /* no total: a series grows */
  }
  shape->periods = series->periods;
  shape->once = shape->distance;
  shape->touched = series->periods * (shape->coordinates + shape->diagnoses);
  shape->is_l1 = noise->in_sum_norm;
  if (noise->in_sum_norm) {
    shape->distance = (replace ? 2 : 1) * (reach + 2 * steps);
  } else if (!replace && !steps) {
    shape->distance = reach;
  } else {
    double counted = replace ? replaced_distance(shape, series) : (double)reach;
    double fact = (replace ? count_spread(series) : 1) * (double)steps;
    double distance = sqrt(counted * counted + 2 * fact * fact);
    shape->distance = (uint64_t)ceil(distance * (1 + 0x1p-49)) + 1;
  }
}
