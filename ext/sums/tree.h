/*
** tree.h: computes consistent counts and quantiles from noisy counts of the nodes of a binary tree
** over bins. The noise of each node is independent, and all nodes have the same variance. This
** computation is post-processing of the noisy counts, so it costs no privacy.
**
** `nodes` holds the counts level by level, from level 1 (two nodes) to level `levels` (the 2^levels
** leaves). The array does not contain the root. The consistent counts are the least-squares
** estimate (Hay, Rastogi, Miklau and Suciu 2010, section 4). A pass upward combines the count of
** each node with the counts of its children. A pass downward divides the remaining difference
** between siblings. The consistent counts are the best linear unbiased estimate.
*/
#ifndef DIFFUSE_SUMS_TREE_H
#define DIFFUSE_SUMS_TREE_H

/* Returns the index of the first node of a level. */
static inline int tree_level(int level) {
  return (1 << level) - 2;
}

/*
** Sets leaves[0 .. 2^levels - 1] to the consistent counts of the leaves. 1 <= levels <= 16. Returns
** 1, or 0 if memory runs out.
*/
int tree_leaves(const double *nodes, int levels, double *leaves);

/*
** Returns the standard deviation of the rank of the q-quantile. For nodes of variance 1, this is
** the standard deviation of
**     (1 - q) * (count left of `place`) - q * (count right of `place`),
** where both counts come from the consistent counts. If `place` is inside a leaf, a proportional
** part of the leaf counts as left of `place`. Returns NaN if memory runs out.
*/
double tree_rank_stddev(int levels, double q, double place);

/*
** Sets `totals` to running totals of the leaves. These totals never decrease and are never
** negative. The result is the least-squares fit to the running totals, computed by pool adjacent
** violators. totals[i] estimates the number of rows in leaves 0 to i - 1, and totals[0] = 0.
** `totals` has count + 1 entries. Returns 1, or 0 if memory runs out.
*/
int tree_running(const double *leaves, int count, double *totals);

/*
** Returns the place at which the running totals reach `rank`, measured in leaves from the left.
** Inside a leaf the function interpolates linearly. The result is in [0, count].
*/
double tree_place(const double *totals, int count, double rank);

#endif
