/*
** cross_tables.h: divides the charge of a table programme (sums/ways.h) between its tables, and
** adds up the variances that follow.
**
** A table A that is measured with the share w_A of the squared sensitivity has noise of variance
** v/w_A in each cell, where v is the variance of one count that is released alone. The published
** tables are the least-squares estimates (reconcile_tables()). With n(A) the number of cells of A,
** and n_i the number of keys of attribute i,
**
**     k_B = product over i in B of (n_i - 1)/n_i
**     p_B = sum over measured A that contain B of w_A n(B)/n(A)
**     variance of each cell of A = v * sum over B inside A of k_B/p_B (n(B)/n(A))^2
**
** The shares minimise f, the mean of these variances over all tables, weighted.
** All sums run in one fixed order in IEEE doubles, so every machine finds the same multipliers.
*/
#ifndef DIFFUSE_MECHANISM_CROSS_TABLES_H
#define DIFFUSE_MECHANISM_CROSS_TABLES_H

#include "sums/ways.h"

/*
** Computes the multiplier of each table. Multipliers depend on sizes and weights only. For Gaussian
** noise, multiplier = floor(2^15 sqrt(q)), and 0 below q = 2^-12. If noise is charged in the sum
** norm (`in_sum_norm`), w_A = (m_A / sum of m)^2 and f is not convex; the best of three candidates
** is taken: m proportional to q, to q^2, or equal for the tables that are inside no other table. A
** table that is inside no other table gets at least 1. Returns 1, or 0 if memory runs out.
*/
int shares_multipliers(const struct ways *ways, int in_sum_norm, int *multipliers);

#endif
