/* planned_width.h: how precise a release will be, computed from public parameters only. */
#ifndef DIFFUSE_RELEASE_PLANNED_WIDTH_H
#define DIFFUSE_RELEASE_PLANNED_WIDTH_H

#include "release/publication.h"

/*
** Returns the half-width of the planned statistic at a rate, with the mechanism of the publication.
** The half-width is in the unit of the value if `rows` is a guess of the number of rows, and in the
** unit of the sums if `rows` is NaN. Sets the lattice and the clock of the publication.
*/
double planned_half_width(struct publication *publication, double rows, double rate);

/* Returns the half-width of a statistic whose noise has this standard deviation. */
double statistic_half_width(const struct publication *publication, double stddev);

#endif
