/*
** mechanisms.h: the mechanisms that draw one of the public categories, and the mechanism that
** randomises every row by a kernel (markov_kernel.h).
*/
#ifndef DIFFUSE_CATEGORIES_MECHANISMS_H
#define DIFFUSE_CATEGORIES_MECHANISMS_H

#include <stddef.h>

#include "mechanism/exponential.h"
#include "mechanism/mechanism.h"

struct category_mechanism {
  struct mechanism mechanism;
  /*
  ** Returns the tilt of a draw whose cost is at most `rate`. If `replace` is true, neighbours
  ** differ by the replacement of a unit. Otherwise they differ by adding or removing a unit.
  */
  struct tilt (*tilt)(double rate, int replace);
  /* Returns the Renyi divergence of order alpha of a draw with this epsilon. */
  double (*rdp)(double alpha, double epsilon);
  /* Computes the utility of each category from the number of units that have the category. */
  void (*utility)(int64_t *utility, const int64_t *counts, size_t count);
};

/* All mechanisms of the room, in the order in which messages list them, then null. */
extern const struct mechanism *const category_mechanisms[];

/* Returns the mechanism that draws a category, for a mechanism that releases STATISTIC_CATEGORY. */
const struct category_mechanism *category_mechanism_of(const struct mechanism *mechanism);

#endif
