/* tree.c: see tree.h. */
#include "sums/tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BITS_OF_LEVEL 4 /* for the sum norm */

struct tree tree_make(int bits, int is_l1) {
  return (struct tree){bits, is_l1 ? (bits + BITS_OF_LEVEL - 1) / BITS_OF_LEVEL : bits};
}

int tree_level(struct tree tree, int level) {
  int first = 0;
  for (int i = 1; i < level; i++) first += 1 << tree_bits(tree, i);
  return first;
}

static double sum_of(const double *values, int count) {
  double sum = 0;
  for (int i = 0; i < count; i++) sum += values[i];
  return sum;
}

/* Returns the number of children of a node of a level. */
static int children_of(struct tree tree, int level) {
  return 1 << (tree_bits(tree, level + 1) - tree_bits(tree, level));
}

/*
** The upward pass sets best[] of each node to the best estimate that follows from the counts of
** this node and of all nodes below it. The variance v of this estimate depends only on the level.
** For leaves v is 1. For a node with c children of variance w, 1/v = 1 + 1/(c w).
*/
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

/*
** The downward pass divides the difference between a parent and the sum of its children equally
** between the children.
*/
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

int tree_leaves(const double *nodes, struct tree tree, double *leaves) {
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

/*
** Let A be the matrix that maps the counts of leaves to the counts of nodes. For noisy counts y of
** nodes of variance 1, the consistent leaves are x = (A'A)^-1 A' y, and the variance of c'x is c'
** (A'A)^-1 c. The function computes this without a matrix. If y is c at the leaves and 0 at all
** other nodes, then A' y = c, so the consistent leaves of this y are (A'A)^-1 c.
*/
double tree_rank_stddev(struct tree tree, double q, double place) {
  int count = 1 << tree.bits;
  double *nodes = calloc((size_t)tree_level(tree, tree.levels + 1), sizeof *nodes);
  double *leaves = malloc(sizeof *leaves * (size_t)count);
  double variance = NAN;
  if (nodes && leaves) {
    double *c = nodes + tree_level(tree, tree.levels);
    for (int i = 0; i < count; i++) c[i] = fmin(fmax(place - i, 0), 1) - q;
    if (tree_leaves(nodes, tree, leaves)) {
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
