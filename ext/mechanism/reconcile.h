/*
** reconcile.h: makes the tables of a table programme agree (sums/ways.h). This is post-processing
** of the noisy coordinates, so it costs no privacy.
**
** The result is the generalised least-squares estimate of all tables from the measured ones. Let
** Y_A be the measured table A, with noise of variance v/w_A in each cell. For every table B, the
** weighted means of all measured tables that contain B give one table U_B, whose expectation is p_B
** times B (shares.h). Its part that no smaller table determines, centred along every axis, is the
** residual r_B of B. A table is the sum of the residuals inside it, each spread evenly over the
** attributes that it lacks. Because the residuals of different tables are orthogonal, and the noise
** of each r_B is a multiple of an orthogonal projection, this is the least-squares estimate
** (compare ResidualPlanner: Xiao, He, Zhang and Kifer 2023).
**
** All steps are means along one axis, so nothing cancels, and the cost is (number of attributes of
** a table) x (number of cells).
*/
#ifndef DIFFUSE_MECHANISM_RECONCILE_H
#define DIFFUSE_MECHANISM_RECONCILE_H

#include "sums/ways.h"

/*
** tables[] has one number for each cell of all tables (struct cross_table, first). On entry, the
** cells of a measured table hold w_A Y_A, and all other cells hold 0. On return, they hold the
** published tables. `precisions` holds p_B for each table.
*/
void reconcile_tables(const struct ways *ways, const double *precisions, double *tables);

#endif
