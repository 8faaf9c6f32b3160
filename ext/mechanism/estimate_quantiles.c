/*
** estimate_quantiles.c: quantiles and bounds. See estimate.h.
** Tests: tests/mechanism/test_quantiles.py, tests/mechanism/test_grid.py,
** tests/mechanism/test_bounds.py
*/
#include "mechanism/estimate.h"

#include <math.h>
#include <stdlib.h>

#include "math/cost.h"
#include "mechanism/exponential.h"
#include "sums/layout.h"
#include "sums/tree.h"

/* Running totals of the leaves, which convert ranks to values. */
struct ranks {
  const struct reading *reading;
  double *totals;
  double rows; /* the noisy number of rows; the totals end with a larger number in most cases */
  int count;
  double share; /* the number of grid values in a leaf; 0 without a grid */
  double end;   /* the place after the last grid value; inside the tree if some leaves are spare */
};

/*
** Returns the rank of a quantile among n rows. Ranks run from the middle of the first row to the
** middle of the last row, so that q = 0 and q = 1 stand for the least and the largest x.
*/
static double rank_of(double q, double n) {
  return n > 1 ? 0.5 + q * (n - 1) : n / 2;
}

/* Converts a place on the axis, in leaves from the lower end of the range, to a value. */
static double value_at(const struct ranks *ranks, double place) {
  const struct contribution *question = ranks->reading->question;
  if (place == rint(place))
    return decimal_edge(question->low, question->high, (int)place, ranks->count);
  double part = place / ranks->count;
  return clamp(question->low * (1 - part) + question->high * part, question->low, question->high);
}

/*
** Returns grid value k. If there is no such value, because noise has put a rank into a leaf without
** grid values, returns the nearest grid value.
*/
static double grid_value(const struct ranks *ranks, double k) {
  const struct contribution *question = ranks->reading->question;
  double last = rint(ranks->end * ranks->share) - 1;
  return fmin(decimal_step(question->low, clamp(k, 0, last), question->grid), question->high);
}

/*
** Converts a rank to a place. For a rank before the first row or after the last row, returns the
** nearer end of the tree, because the number of rows is not certain.
*/
static double bound_at(const struct ranks *ranks, double rank) {
  if (rank <= 0) return 0;
  if (rank >= ranks->totals[ranks->count]) return ranks->count;
  return tree_place(ranks->totals, ranks->count, rank);
}

/*
** Sets [*from, *to] to the leaves that may hold the quantile. At the left end of the leaf that
** holds it, the true running total is below the true rank, and at the right end it is not. So the
** noisy difference of the two is at most z standard deviations above 0 at the left end, and at
** least -z at the right end, each with probability (1 + confidence)/2, whatever the rows are. The
** standard deviation is that at the end itself: near an end of the range it is much smaller than
** elsewhere.
*/
static void possible_leaves(const struct ranks *ranks, double q, double z, int *from, int *to) {
  const struct reading *reading = ranks->reading;
  double rank = rank_of(q, ranks->rows), width = z * view_noise(&reading->view);
  int first = 0, last = ranks->count - 1;
  while (first < ranks->count - 1 &&
         ranks->totals[first + 1] - rank <
             -width * tree_rank_stddev(reading->shape->tree, q, first + 1))
    first++;
  while (last > 0 &&
         ranks->totals[last] - rank > width * tree_rank_stddev(reading->shape->tree, q, last))
    last--;
  *from = first < last ? first : last;
  *to = first < last ? last : first;
}

/*
** Returns the estimate of a quantile at a place whose noise has the standard deviation `noise`, in
** leaves. The interval consists of the leaves [from, to], because counts do not say where in a leaf
** its rows are. On a grid, each leaf holds `share` values, and value k covers the places from
** k/share to (k + 1)/share. stddev is that before the answer is moved to a grid value.
*/
static struct estimate quantile_at(const struct ranks *ranks, int component, double place,
                                   double noise, int from, int to) {
  const struct contribution *question = ranks->reading->question;
  double share = ranks->share, value, low, high, stddev;
  if (share > 0) {
    stddev = noise * share * question->grid;
    value = grid_value(ranks, ceil(place * share) - 1);
    low = grid_value(ranks, from * share);
    high = grid_value(ranks, (to + 1) * share - 1);
  } else {
    stddev = noise * (question->high / 2 - question->low / 2) / ranks->count * 2;
    value = value_at(ranks, place);
    low = value_at(ranks, from);
    high = value_at(ranks, to + 1);
  }
  return (struct estimate){
      0, component, value, published_up(stddev), fmin(low, value), fmax(high, value)};
}

/*
** Computes the quantiles and returns their number. If the noisy number of rows is 0, the function
** answers as if the rows were spread evenly over the range.
*/
static int quantiles_of(const struct ranks *ranks, struct estimate *estimates) {
  const struct reading *reading = ranks->reading;
  double z = reading_mixed_width(reading), all = ranks->totals[ranks->count];
  for (int i = 0; i < reading->quantile_count; i++) {
    double q = reading->quantiles[i], rank = rank_of(q, all);
    double place = all > 0 ? tree_place(ranks->totals, ranks->count, rank) : q * ranks->end;
    /*
    ** If the place were an end of the range, no leaf would lie on one side of the place, and the
    ** computed noise would be 0.
    */
    double inside = clamp(place, 0.5, ranks->count - 0.5);
    double share = clamp(q, 0.5 / ranks->count, 1 - 0.5 / ranks->count);
    double error =
        tree_rank_stddev(reading->shape->tree, share, inside) * view_noise(&reading->view);
    double low = bound_at(ranks, rank - z * error), high = bound_at(ranks, rank + z * error);
    int from, to;
    possible_leaves(ranks, q, z, &from, &to);
    estimates[i] = quantile_at(ranks, i, place, (high - low) / (2 * z), from, to);
  }
  return reading->quantile_count;
}

/* Buffers for the tree of one cell. */
struct tree_buffers {
  double *nodes, *leaves, *totals;
};

/* Computes the quantiles of one cell. Returns their number, or -1 after a failure. */
static int cell_quantiles(struct reading *reading, const int64_t *values, int cell,
                          const struct tree_buffers *tree, struct estimate *estimates) {
  const struct layout *shape = reading->shape;
  for (int i = shape->selects; i < shape->width; i++)
    tree->nodes[i - shape->selects] = reading_coordinate(reading, values, cell, i);
  if (!tree_leaves(tree->nodes, shape->tree, tree->leaves) ||
      !tree_running(tree->leaves, shape->bins, tree->totals))
    return -1;
  double rows = 0;
  for (int i = 0; i < shape->bins; i++) rows += tree->leaves[i];
  struct ranks ranks = {reading, tree->totals, fmax(rows, 0), shape->bins, 0, shape->bins};
  const struct contribution *question = reading->question;
  if (question->grid > 0) {
    ranks.share = layout_grid_share(question);
    ranks.end = layout_grid_values(question->low, question->high, question->grid) / ranks.share;
  }
  int used = quantiles_of(&ranks, estimates);
  for (int i = 0; i < used; i++) estimates[i].cell = cell;
  return used;
}

int estimate_quantiles(struct reading *reading, const int64_t *values, struct estimate *estimates) {
  size_t width = (size_t)reading->shape->width, count = (size_t)reading->shape->bins;
  struct tree_buffers tree = {malloc(sizeof *tree.nodes * width),
                              malloc(sizeof *tree.leaves * count),
                              malloc(sizeof *tree.totals * (count + 1))};
  int used = tree.nodes && tree.leaves && tree.totals ? 0 : -1;
  for (int cell = 0; cell < reading->cells && used >= 0; cell++) {
    int more = cell_quantiles(reading, values, cell, &tree, &estimates[used]);
    used = more < 0 ? -1 : used + more;
  }
  free(tree.nodes);
  free(tree.leaves);
  free(tree.totals);
  return used;
}

int estimate_leaf(struct reading *reading, const int64_t *values, struct estimate *estimates) {
  double value = leaf_draw_value(reading->question, (int)values[0]);
  *estimates = (struct estimate){0, 0, value, NAN, NAN, NAN};
  return 1;
}

/*
** Nobody knows beforehand where in the tree a quantile lies. The result is the root mean square
** over all places, or the standard deviation at the place of evenly spread rows if that is larger,
** for the quantile with the largest result.
*/
double estimate_rank_stddev(const struct reading *reading) {
  struct tree tree = reading->shape->tree;
  double most = 0;
  for (int i = 0; i < reading->quantile_count; i++) {
    double q = reading->quantiles[i], even = tree_rank_stddev(tree, q, ldexp(q, tree.bits));
    most = fmax(most, fmax(even, tree_typical_stddev(tree, q)));
  }
  return published_up(view_noise(&reading->view) * most);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

/*
** The estimator of bounds reads noisy counts of rows by sign and binary exponent, and returns the
** range of the bins whose counts noise alone would hardly reach.
*/

/*
** Let Q be the number that one draw of noise exceeds with probability 1 - (1 - BOUNDS_ALARM)^(1/n),
** for n bins. The draws are independent, so all of them stay below Q with probability 1 -
** BOUNDS_ALARM. Two steps cover the tails of the discrete distribution (mechanism.h).
*/
double estimate_bounds_threshold(const struct reading *reading) {
  double tail = -expm1(log1p(-BOUNDS_ALARM) / reading->shape->bins);
  double noise = reading->view.noise->tail(reading->view.clock, 1, tail);
  return ceil(noise * (1 + 0x1p-40)) + 2;
}

/* An end has no interval of noise: it is one of the powers of two, and not a sum plus noise. */
static struct estimate end_of_bins(int component, double value) {
  return (struct estimate){0, component, value, NAN, NAN, NAN};
}

int estimate_bounds(struct reading *reading, const int64_t *values, struct estimate *estimates) {
  double threshold = estimate_bounds_threshold(reading);
  int first = 0, last = reading->shape->bins - 1;
  while (first <= last && !((double)values[first] > threshold)) first++;
  while (first <= last && !((double)values[last] > threshold)) last--;
  if (first > last) return 0;
  estimates[0] = end_of_bins(0, layout_exponent_low(first));
  estimates[1] = end_of_bins(1, layout_exponent_high(last));
  return 2;
}
