/* quantiles.c: quantiles and bounds. See mechanism.h. Quantiles come from consistent counts
** of the nodes of a tree (sums/layout.h), whose noise is independent and has one variance.
** Tests: tests/mechanism/test_tree.c, tests/mechanism/test_quantiles.py,
** tests/mechanism/test_grid.py, tests/mechanism/test_bounds.py */
#include "mechanism/mechanism.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "math/math.h"
#include "sums/layout.h"

/* ---- one quantile, drawn --------------------------------------------------------------------- */

/* A unit counts at most 2^32 steps (radius_bits of family_leaves), so a loss is at most 2^63 of
** these steps for 2^31 units. Losses are computed in steps times 2^LEAF_DRAW_SHARE. A score step is
** 2^SCORE_SHIFT of those. */
#define SCORE_SHIFT 46

/* Larger losses count as this one, which makes no change of a loss larger. */
#define MOST_SCORE ((int128)1 << 50)

const struct mechanism leaf_draw_mechanism = {.name = "exponential",
                                              .theorem = EXPONENTIAL_THEOREM,
                                              .statistics = STATISTIC_LEAF,
                                              .most = TILT_MOST_RATE};

int leaf_draw_candidates(const struct leaf_draw *draw) {
  const struct contribution *question = draw->question;
  if (!(question->grid > 0)) return draw->shape->bins;
  double values = layout_grid_values(question->low, question->high, question->grid);
  return (int)ceil(values / layout_grid_share(question));
}

/* Returns q, rounded to a multiple of 2^-LEAF_DRAW_SHARE. */
static int64_t share_of(const struct leaf_draw *draw) {
  return llrint(ldexp(draw->q, LEAF_DRAW_SHARE));
}

uint64_t leaf_draw_range(const struct leaf_draw *draw) {
  uint64_t one = (uint64_t)1 << LEAF_DRAW_SHARE, share = (uint64_t)share_of(draw);
  uint64_t most = draw->replace ? one : share > one - share ? share : one - share;
  uint128 range = 2 * (uint128)most * (uint64_t)draw->shape->blocks[0].lead_reach;
  return (uint64_t)((range - 1) >> SCORE_SHIFT) +
         2; /* rounded up, and one step for rounding down */
}

void leaf_draw_utility(const struct leaf_draw *draw, const int64_t *totals, int64_t *utility) {
  int count = leaf_draw_candidates(draw);
  int128 one = (int128)1 << LEAF_DRAW_SHARE, share = share_of(draw), all = 0, before = 0;
  for (int i = 0; i < count; i++) all += totals[i];
  int128 rank = share * all + (one / 2 - share) * draw->shape->bin_steps;
  for (int i = 0; i < count; i++) {
    int128 after = before + totals[i];
    int128 over = before * one - rank, under = rank - after * one;
    int128 loss = over > under ? over : under;
    loss = loss > 0 ? loss >> SCORE_SHIFT : 0;
    utility[i] = -(int64_t)(loss < MOST_SCORE ? loss : MOST_SCORE);
    before = after;
  }
}

double leaf_draw_row(const struct leaf_draw *draw) {
  return ldexp((double)draw->shape->bin_steps, LEAF_DRAW_SHARE - SCORE_SHIFT);
}

/* If the rows are close to each other, the loss has an exponential distribution. Of any rows, each
** leaf with the loss x is at most exp(-step x) times as likely as the leaf of the quantile. */
double leaf_draw_even_error(const struct leaf_draw *draw, double epsilon, double confidence) {
  double range = (double)leaf_draw_range(draw) / leaf_draw_row(draw);
  return range / epsilon * -log1p(-confidence);
}

double leaf_draw_most_error(const struct leaf_draw *draw, double epsilon, double confidence) {
  double range = (double)leaf_draw_range(draw) / leaf_draw_row(draw);
  double others = fmax(leaf_draw_candidates(draw) - 1, 1);
  return range / epsilon * (log(others) - log1p(-confidence)) + 1 / leaf_draw_row(draw);
}

double leaf_draw_value(const struct contribution *question, int leaf) {
  if (!(question->grid > 0))
    return decimal_edge(question->low, question->high, 2 * leaf + 1, 2 * question->size);
  double share = layout_grid_share(question);
  double last = layout_grid_values(question->low, question->high, question->grid) - 1;
  double first = leaf * share, end = fmin(first + share - 1, last);
  double value = decimal_step(question->low, floor(first / 2 + end / 2), question->grid);
  return fmin(value, question->high);
}

/* ---- all quantiles, from a tree -------------------------------------------------------------- */

/* ---- consistent counts ----------------------------------------------------------------------- */

/* The consistent counts are the least-squares estimate (Hay, Rastogi, Miklau and Suciu 2010,
** section 4), and thus the best linear unbiased one. A pass upward combines the count of each node
** with the counts of its children. A pass downward divides the remaining difference between
** siblings. */

static double sum_of(const double *values, int count) {
  double sum = 0;
  for (int i = 0; i < count; i++) sum += values[i];
  return sum;
}

/* Returns the number of children of a node of a level. */
static int children_of(struct tree tree, int level) {
  return 1 << (tree_bits(tree, level + 1) - tree_bits(tree, level));
}

/* The upward pass sets best[] of each node to the best estimate that follows from the counts of
** this node and of all nodes below it. The variance v of this estimate depends only on the level.
** For leaves v is 1. For a node with c children of variance w, 1/v = 1 + 1/(c w). */
static void pass_upward(double *best, struct tree tree) {
  double variance = 1;
  for (int level = tree.levels - 1; level >= 1; level--) {
    int many = children_of(tree, level), count = 1 << tree_bits(tree, level);
    double own = 1, below = 1 / (many * variance);
    const double *children = best + tree_level(tree, level + 1);
    double *nodes = best + tree_level(tree, level);
    for (int i = 0; i < count; i++)
      nodes[i] = (own * nodes[i] + below * sum_of(&children[many * i], many)) / (own + below);
    variance = 1 / (own + below);
  }
}

/* The downward pass divides the difference between a parent and the sum of its children equally
** between the children. */
static void pass_downward(double *best, struct tree tree) {
  for (int level = 1; level < tree.levels; level++) {
    int many = children_of(tree, level), count = 1 << tree_bits(tree, level);
    const double *parents = best + tree_level(tree, level);
    double *nodes = best + tree_level(tree, level + 1);
    for (int i = 0; i < count; i++, nodes += many) {
      double rest = (parents[i] - sum_of(nodes, many)) / many;
      for (int j = 0; j < many; j++) nodes[j] += rest;
    }
  }
}

/* Sets leaves[0 .. 2^bits - 1] to the consistent counts of the leaves. Returns 1, or 0 if memory
** runs out. */
static int tree_leaves(const double *nodes, struct tree tree, double *leaves) {
  size_t count = (size_t)tree_level(tree, tree.levels + 1);
  double *best = malloc(sizeof *best * count);
  if (!best) return 0;
  memcpy(best, nodes, sizeof *best * count);
  pass_upward(best, tree);
  pass_downward(best, tree);
  memcpy(leaves, best + tree_level(tree, tree.levels), sizeof *leaves << tree.bits);
  free(best);
  return 1;
}

/* Sets below[level] to the variance of the best estimate of a node of this level that follows from
** the counts of the node and of all nodes below it (see pass_upward()). */
static void variances_below(struct tree tree, double *below) {
  below[tree.levels] = 1;
  for (int level = tree.levels - 1; level >= 1; level--)
    below[level] = 1 / (1 + 1 / (children_of(tree, level) * below[level + 1]));
}

/* Returns the standard deviation of the rank of the q-quantile if this quantile lies at `place` and
** the nodes have variance 1. This is the standard deviation of
**     (1 - q) * (count left of `place`) - q * (count right of `place`),
** where both counts come from the consistent counts. If `place` is inside a leaf, a proportional
** part of the leaf counts as left of `place`.
**
** Let a node with c children contain `place`, let k of its children lie left of `place`, and let f
** be the part of the next child that does. The consistent count of a child is T/c + e - m, where T
** is the count of the node, e has the variance v = below[], and m is the mean of e over the c
** children. The differences e - m are independent of T. The rows of the node left of `place` are
** therefore T (k + f)/c, plus noise of variance v (k + f^2 - (k + f)^2/c), plus the noise inside
** the child that contains `place`. All rows together have the variance c v of the root's
** children. */
static double tree_rank_stddev(struct tree tree, double q, double place) {
  double below[TREE_MOST_LEVELS + 1], part = place / (1 << tree.bits);
  variances_below(tree, below);
  double variance = (part - q) * (part - q) * children_of(tree, 0) * below[1];
  for (int level = 0; level < tree.levels; level++) {
    int many = children_of(tree, level);
    double at = part * many, left = fmin(floor(at), many - 1), inside = at - left;
    variance += below[level + 1] * (left + inside * inside - at * at / many);
    part = inside;
  }
  return sqrt(fmax(variance, 0));
}

/* Returns the root mean square of tree_rank_stddev() over all places from 0 to 2^bits: the mean of
** its variance over k = 0 to c - 1 and f in [0, 1]. */
static double tree_typical_stddev(struct tree tree, double q) {
  double below[TREE_MOST_LEVELS + 1];
  variances_below(tree, below);
  double variance = (1.0 / 3 - q + q * q) * children_of(tree, 0) * below[1];
  for (int level = 0; level < tree.levels; level++)
    variance += below[level + 1] * (children_of(tree, level) - 1) / 6;
  return sqrt(variance);
}

/* A run of neighbouring totals that get one common value. */
struct pool {
  double mean;
  int length;
};

/* Sets `totals` to running totals of the leaves that never decrease and are never negative: the
** least-squares fit to the plain running totals, computed by the algorithm "pool adjacent
** violators". totals[i] estimates the number of rows in leaves 0 to i - 1, and totals[0] = 0.
** `totals` has count + 1 entries. Returns 1, or 0 if memory runs out. */
static int tree_running(const double *leaves, int count, double *totals) {
  struct pool *pools = malloc(sizeof *pools * (size_t)count);
  if (!pools) return 0;
  double sum = 0;
  int used = 0, at = 0;
  for (int i = 0; i < count; i++) {
    sum += leaves[i];
    struct pool last = {sum, 1};
    while (used && pools[used - 1].mean > last.mean) { /* merge with the previous pool */
      const struct pool *before = &pools[--used];
      int length = before->length + last.length;
      last.mean = (before->mean * before->length + last.mean * last.length) / length;
      last.length = length;
    }
    pools[used++] = last;
  }
  totals[at++] = 0;
  for (int i = 0; i < used; i++) {
    for (int j = 0; j < pools[i].length; j++) totals[at++] = fmax(pools[i].mean, 0);
  }
  free(pools);
  return 1;
}

/* Returns the place at which the running totals reach `rank`, measured in leaves from the left, in
** [0, count]. Inside a leaf the function interpolates linearly. */
static double tree_place(const double *totals, int count, double rank) {
  /* The loop keeps totals[low] < rank <= totals[high], unless low is 0 or high is count. */
  int low = 0, high = count;
  while (high - low > 1) {
    int middle = low + (high - low) / 2;
    if (totals[middle] < rank) {
      low = middle;
    } else {
      high = middle;
    }
  }
  double inside = totals[high] - totals[low];
  double part = inside > 0 ? (rank - totals[low]) / inside : 0;
  return low + fmin(fmax(part, 0), 1);
}

/* ---- quantiles ------------------------------------------------------------------------------- */

/* Running totals of the leaves, which convert ranks to values. */
struct ranks {
  const struct reading *reading;
  double *totals;
  double rows; /* the noisy number of rows; the totals end with a larger number in most cases */
  int count;
  double share; /* the number of grid values in a leaf; 0 without a grid */
  double end;   /* the place after the last grid value; inside the tree if some leaves are spare */
};

/* Returns the rank of a quantile among n rows. Ranks run from the middle of the first row to the
** middle of the last row, so that q = 0 and q = 1 stand for the least and the largest x. */
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

/* Returns grid value k. If there is no such value, because noise has put a rank into a leaf without
** grid values, returns the nearest grid value. */
static double grid_value(const struct ranks *ranks, double k) {
  const struct contribution *question = ranks->reading->question;
  double last = rint(ranks->end * ranks->share) - 1;
  return fmin(decimal_step(question->low, clamp(k, 0, last), question->grid), question->high);
}

/* Converts a rank to a place. For a rank before the first row or after the last row, returns the
** nearer end of the tree, because the number of rows is not certain. */
static double bound_at(const struct ranks *ranks, double rank) {
  if (rank <= 0) return 0;
  if (rank >= ranks->totals[ranks->count]) return ranks->count;
  return tree_place(ranks->totals, ranks->count, rank);
}

/* Sets [*from, *to] to the leaves that may hold the quantile. At the left end of the leaf that
** holds it, the true running total is below the true rank, and at the right end it is not. So the
** noisy difference of the two is at most z standard deviations above 0 at the left end, and at
** least -z at the right end, each with probability (1 + confidence)/2, whatever the rows are. The
** standard deviation is that at the end itself: near an end of the range it is much smaller than
** elsewhere. */
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

/* Returns the estimate of a quantile at a place whose noise has the standard deviation `noise`, in
** leaves. The interval consists of the leaves [from, to], because counts do not say where in a leaf
** its rows are. On a grid, each leaf holds `share` values, and value k covers the places from
** k/share to (k + 1)/share. stddev is that before the answer is moved to a grid value. */
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

/* Computes the quantiles and returns their number. If the noisy number of rows is 0, the function
** answers as if the rows were spread evenly over the range. */
static int quantiles_of(const struct ranks *ranks, struct estimate *estimates) {
  const struct reading *reading = ranks->reading;
  double z = reading_mixed_width(reading), all = ranks->totals[ranks->count];
  for (int i = 0; i < reading->quantile_count; i++) {
    double q = reading->quantiles[i], rank = rank_of(q, all);
    double place = all > 0 ? tree_place(ranks->totals, ranks->count, rank) : q * ranks->end;
    /* If the place were an end of the range, no leaf would lie on one side of the place, and the
    ** computed noise would be 0. */
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

/* Nobody knows beforehand where in the tree a quantile lies. The result is the root mean square
** over all places, or the standard deviation at the place of evenly spread rows if that is larger,
** for the quantile with the largest result. */
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

/* The estimator of bounds reads noisy counts of rows by sign and binary exponent, and returns the
** range of the bins whose counts noise alone would hardly reach. */

/* Let Q be the number that one draw of noise exceeds with probability 1 - (1 - BOUNDS_ALARM)^(1/n),
** for n bins. The draws are independent, so all of them stay below Q with probability 1 -
** BOUNDS_ALARM. Two steps cover the tails of the discrete distribution (mechanism.h). */
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
