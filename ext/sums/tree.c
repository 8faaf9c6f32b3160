/* tree.c: see tree.h. Tests: tests/sums/test_tree.c */
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
** Sets below[level] to the variance of the best estimate of a node of this level that follows from
** the counts of the node and of all nodes below it (see pass_upward()).
*/
static void variances_below(struct tree tree, double *below) {
  below[tree.levels] = 1;
  for (int level = tree.levels - 1; level >= 1; level--)
    below[level] = 1 / (1 + 1 / (children_of(tree, level) * below[level + 1]));
}

/*
** Let a node with c children contain `place`, let k of its children lie left of `place`, and let f
** be the part of the next child that does. The consistent count of a child is T/c + e - m, where T
** is the count of the node, e has the variance v = below[], and m is the mean of e over the c
** children. The differences e - m are independent of T. The rows of the node left of `place` are
** therefore T (k + f)/c, plus noise of variance v (k + f^2 - (k + f)^2/c), plus the noise inside
** the child that contains `place`. All rows together have the variance c v of the root's children.
*/
double tree_rank_stddev(struct tree tree, double q, double place) {
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

/* The mean of the variance of tree_rank_stddev() over k = 0 to c - 1 and f in [0, 1]. */
double tree_typical_stddev(struct tree tree, double q) {
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
