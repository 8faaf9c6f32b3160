/* plan_mechanisms.h: the part of a plan that compares Gaussian and Laplace noise. */
#ifndef DIFFUSE_FUNCTIONS_PLAN_MECHANISMS_H
#define DIFFUSE_FUNCTIONS_PLAN_MECHANISMS_H

#include "release/publication.h"

#include <sqlite3ext.h>

/*
** Returns the half-width of the planned statistic at a rate, with the noise of the publication. The
** half-width is in the unit of the value if `rows` is a guess of the number of rows, and in the
** unit of the sums if `rows` is NaN. Sets the lattice and the clock of the publication.
*/
double plan_half_width(struct publication *publication, double rows, double rate);

/* Returns the half-width of a statistic whose noise has this standard deviation. */
double plan_statistic_half_width(const struct publication *publication, double stddev);

/*
** Appends two members if the planned kind may have Gaussian or Laplace noise and its tier covers
** both. "mechanisms" is an object with the half-width of each noise at the rate of this release.
** "gaussian_from" is the least number n for which Gaussian noise has the smaller half-width when n
** equal releases use up the whole budget of the tier (null: there is none up to 2^20).
*/
void plan_append_mechanisms(sqlite3_str *json, const struct publication *planned, double rows);

#endif
