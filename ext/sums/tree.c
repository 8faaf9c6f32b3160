/* tree.c: see tree.h. */
#include "sums/tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
** The upward pass sets best[] of each node to the best estimate that follows from the counts of
** this node and of all nodes below it. The variance v of this estimate depends only on the level.
** For leaves v is 1. For a node with children of variance w, 1/v = 1 + 1/(2 w).
*/
static void pass_upward(double *best, int levels) {
  double variance = 1;
  for (int level = levels - 1; level >= 1; level--) {
    double own = 1, below = 1 / (2 * variance);
    const double *children = best + tree_level(level + 1);
    double *nodes = best + tree_level(level);
    for (int i = 0; i < 1 << level; i++)
      nodes[i] = (own * nodes[i] + below * (children[2 * i] + children[2 * i + 1])) / (own + below);
    variance = 1 / (own + below);
  }
}

/*
** The downward pass divides the difference between a parent and the sum of its two children equally
** between the children.
*/
static void pass_downward(double *best, int levels) {
  for (int level = 2; level <= levels; level++) {
    const double *parents = best + tree_level(level - 1);
    double *nodes = best + tree_level(level);
    for (int i = 0; i < 1 << level; i += 2) {
      double rest = (parents[i / 2] - nodes[i] - nodes[i + 1]) / 2;
      nodes[i] += rest;
      nodes[i + 1] += rest;
    }
  }
}

int tree_leaves(const double *nodes, int levels, double *leaves) {
  size_t count = (size_t)tree_level(levels + 1);
  double *best = malloc(sizeof *best * count);
  if (!best) return 0;
  memcpy(best, nodes, sizeof *best * count);
  pass_upward(best, levels);
  pass_downward(best, levels);
  memcpy(leaves, best + tree_level(levels), sizeof *leaves << levels);
  free(best);
  return 1;
}

/*
** Let A be the matrix that maps the counts of leaves to the counts of nodes. For noisy counts y of
** nodes of variance 1, the consistent leaves are x = (A'A)^-1 A' y, and the variance of c'x is c'
** (A'A)^-1 c. The function computes this without a matrix. If y is c at the leaves and 0 at all
** other nodes, then A' y = c, so the consistent leaves of this y are (A'A)^-1 c.
*/
double tree_rank_stddev(int levels, double q, double place) {
  int count = 1 << levels;
  double *nodes = calloc((size_t)tree_level(levels + 1), sizeof *nodes);
  double *leaves = malloc(sizeof *leaves * (size_t)count);
  double variance = NAN;
  if (nodes && leaves) {
    double *c = nodes + tree_level(levels);
    for (int i = 0; i < count; i++) c[i] = fmin(fmax(place - i, 0), 1) - q;
    if (tree_leaves(nodes, levels, leaves)) {
      variance = 0;
      for (int i = 0; i < count; i++) variance += c[i] * leaves[i];
    }
  }
  free(nodes);
  free(leaves);
  return sqrt(variance);
}

/* A run of neighbouring totals that get one common value. */
struct pool {
  double mean;
  int length;
};

int tree_running(const double *leaves, int count, double *totals) {
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

double tree_place(const double *totals, int count, double rank) {
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
