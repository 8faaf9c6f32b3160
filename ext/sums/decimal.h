/* decimal.h: arithmetic with the decimals that people type. */
#ifndef DIFFUSE_SUMS_DECIMAL_H
#define DIFFUSE_SUMS_DECIMAL_H

/*
** Returns the double nearest to origin + k * step, where origin and step stand for the shortest
** decimals that read back as these doubles, and k is a whole number of magnitude at most 2^53. The
** result for (0, 7, 0.1) is therefore the double 0.7, which differs from 7 * 0.1.
**
** If the sum needs more than 38 digits, its last digits are far below the distance of two doubles,
** and the function computes with doubles.
*/
double decimal_step(double origin, double k, double step);

/*
** Sets edges[k], k = 0 .. count, to the double nearest to low + k (high - low)/count, where low and
** high stand for their shortest decimals. The edges never decrease. If an edge needs too many
** digits, the function computes it with doubles.
*/
void decimal_edges(double low, double high, int count, double *edges);

/* Returns edge k of decimal_edges(). */
double decimal_edge(double low, double high, int k, int count);

#endif
