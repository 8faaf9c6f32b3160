/* households.h: the wider units of a ledger, such as households, and how much one of them may
** count.
**
** Every unit, such as a person, belongs to one household, or is a household of its own. What the
** persons of a household count, each clipped, is added up. If this sum is larger than a household
** may count, it is moved to a point near it that is not:
**
**   H1  each number of the sum u is clamped to +-box. The box is `reach` where each number is
**       published by itself: if most people of a household are in one group, the other groups keep
**       theirs. Where numbers belong together (the count and the sum of an average, the nodes of a
**       tree, tables and their margins), the box is 2^HOUSEHOLD_FAR times as large, and one factor
**       scales all numbers of a household with fewer than 100,000 people;
**   H2  if |u| is then larger than `reach`, each number becomes trunc(u_i reach / n) with
**       n = floor(|u|) + 1. Afterwards |u| <= reach, exactly.
**
** Clamping, and scaling to a ball, move no two points apart. The computed point is at most
** 1 + sqrt(d) from the exact one, where d is the number of coordinates: the scale is off by less
** than 1, because n is at most |u| + 1, and truncation moves each number by less than 1. So one
** person, whose vector is at most B long, changes the household's point by at most
** B + 2 (1 + sqrt(d)) fine steps, and a household's point is at most `reach` long.
**
** The table of persons is filled before the sums of a release are added up. Then several threads
** may read it. */
#ifndef DIFFUSE_SUMS_HOUSEHOLDS_H
#define DIFFUSE_SUMS_HOUSEHOLDS_H

#include <stddef.h>

#include "noise/lattice.h"
#include "sums/partitioned_sums.h"

/* The number of parts of 1 in which a ledger declares how many persons a household may count. */
#define HOUSEHOLDS_PARTS 64
#define HOUSEHOLDS_MOST  1000 /* persons */

#define HOUSEHOLD_NONE (-1) /* the person is a household of their own */

struct households;

/* Makes an empty table for identities of units and households that were made with this secret.
** Returns null if memory runs out. */
struct households *households_open(const struct secret *secret);
void households_close(struct households *households); /* `households` may be null */

/* Notes the household of a person. If a person is noted twice, the first household counts. Returns
** 1, or 0 if memory runs out. */
int households_put(struct households *households, struct identity person,
                   struct identity household);

/* Returns the number of the household of a person, or HOUSEHOLD_NONE. */
int64_t households_find(const struct households *households, struct identity person);

/* Prefetches the memory that households_find() reads for a person. */
expect_unit households_expect; /* the context is a struct households */

/* The numbers of households are 0 ... households_count() - 1. */
size_t households_count(const struct households *households);

/* Moves a household's sum as H1 and H2 say. `is_far` says that the box is the large one. The
** caller's values are within +-2^125, and reach < 2^54. Returns whether a value changed. */
#define HOUSEHOLD_FAR 18
int household_project(int128 *values, size_t count, int64_t reach, int is_far);

#endif
