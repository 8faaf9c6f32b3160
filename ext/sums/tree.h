/*
** tree.h: computes consistent counts and quantiles from noisy counts of the nodes of a tree over
** bins. The noise of each node is independent, and all nodes have the same variance. This
** computation is post-processing of the noisy counts, so it costs no privacy.
**
** `nodes` holds the counts level by level, from level 1 to the leaves. The array does not contain
** the root. All nodes of a level have the same number of children, which is a power of two. The
** consistent counts are the least-squares estimate (Hay, Rastogi, Miklau and Suciu 2010, section
** 4). A pass upward combines the count of each node with the counts of its children. A pass
** downward divides the remaining difference between siblings. The consistent counts are the best
** linear unbiased estimate.
*/
#ifndef DIFFUSE_SUMS_TREE_H
#define DIFFUSE_SUMS_TREE_H

#define TREE_MOST_LEVELS 16

/*
** The shape of a tree with 2^bits leaves, 1 <= levels <= bits <= TREE_MOST_LEVELS. If levels is 0,
** there is no tree.
*/
struct tree {
  int bits, levels;
};

/*
** Returns a tree with 2^bits leaves, of as many levels as make the error in rank small.
**
** A row counts in one node of each level. In the Euclidean norm these counts have the norm
** sqrt(levels), and a binary tree is best. In the sum norm they have the norm `levels`, so fewer
** levels are better, although the counts of more nodes then add up to a rank. The tree for the sum
** norm has one level for each four bits, rounded up, so a node has at most 16 children. No other
** number of levels makes the error in rank (root mean square over all places) smaller by more than
** 6% (tests/sums/test_tree.c).
*/
struct tree tree_make(int bits, int is_l1);

/* Returns the logarithm of the number of nodes of a level, which is 0 for the root. */
static inline int tree_bits(struct tree tree, int level) {
  return level * tree.bits / tree.levels;
}

/* Returns the index of the first node of a level. tree_level(levels + 1) is the number of nodes. */
int tree_level(struct tree tree, int level);

/*
** Sets leaves[0 .. 2^bits - 1] to the consistent counts of the leaves. Returns 1, or 0 if memory
** runs out.
*/
int tree_leaves(const double *nodes, struct tree tree, double *leaves);

/*
** Returns the standard deviation of the rank of the q-quantile if this quantile lies at `place` and
** the nodes have variance 1. This is the standard deviation of
**     (1 - q) * (count left of `place`) - q * (count right of `place`),
** where both counts come from the consistent counts. If `place` is inside a leaf, a proportional
** part of the leaf counts as left of `place`.
*/
double tree_rank_stddev(struct tree tree, double q, double place);

/* Returns the root mean square of tree_rank_stddev() over all places from 0 to 2^bits. */
double tree_typical_stddev(struct tree tree, double q);

/*
** Sets `totals` to running totals of the leaves that never decrease and are never negative: the
** least-squares fit to the plain running totals, computed by the algorithm "pool adjacent
** violators". totals[i] estimates the number of rows in leaves 0 to i - 1, and totals[0] = 0.
** `totals` has count + 1 entries. Returns 1, or 0 if memory runs out.
*/
int tree_running(const double *leaves, int count, double *totals);

/*
** Returns the place at which the running totals reach `rank`, measured in leaves from the left.
** Inside a leaf the function interpolates linearly. The result is in [0, count].
*/
double tree_place(const double *totals, int count, double rank);

#endif
