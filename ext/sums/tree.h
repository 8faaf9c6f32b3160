/*
** tree.h: counts of the nodes of a binary tree over bins, each with independent noise of one
** variance, to consistent counts, and to quantiles. Post-processing.
**
** `nodes` are the counts of level 1 (two halves) to level `levels` (the leaves, 2^levels of them),
** level by level, the root left out. The consistent counts are the least-squares ones (Hay,
** Rastogi, Miklau and Suciu 2010, section 4): a pass upward combines what a node says of itself
** with what its children say, a pass downward shares what is left between siblings. They are the
** best linear unbiased estimate.
*/
#ifndef DIFFUSE_SUMS_TREE_H
#define DIFFUSE_SUMS_TREE_H

/* Index of the first node of a level. */
static inline int tree_level(int level) {
  return (1 << level) - 2;
}

/*
** Sets leaves[0 .. 2^levels - 1] from nodes. Returns 1, or 0 when out of memory. 1 <= levels <=
** 16.
*/
int tree_leaves(const double *nodes, int levels, double *leaves);

/*
** The error in rank of the q-quantile: the standard deviation, for nodes of variance 1, of
**     (1 - q) * (count left of `place`) - q * (count right of `place`),
** by consistent counts. A leaf that `place` divides is counted in part. NaN when out of memory.
*/
double tree_rank_stddev(int levels, double q, double place);

/*
** Sets totals to the non-decreasing function that is closest to the running totals of the leaves in
** least squares and not below 0 (pool adjacent violators). totals[i] is the number of rows in
** leaves 0 to i - 1; totals[0] = 0. totals has one entry more than leaves. Returns 1, or 0 when out
** of memory.
*/
int tree_running(const double *leaves, int count, double *totals);

/*
** The place at which the running totals reach `rank`, in leaves from the left, linear inside a
** leaf. The result is in [0, count].
*/
double tree_place(const double *totals, int count, double rank);

#endif
