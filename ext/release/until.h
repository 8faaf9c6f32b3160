/*
** until.h: releases that stop as soon as they are accurate enough (the option until).
**
** The noise of a release is a path: each point is noisier than the next one inward. A release with
** the option until begins far out and walks inward, rung by rung. It stops when the 95% interval of
** every figure has a half-width of at most until * max(|figure|, least), or at the clock that its
** tier's rate allows, the ceiling. The ceiling is charged before a row is read. What the steps did
** not use is returned when the values are stored (ledger_return()).
*/
#ifndef DIFFUSE_RELEASE_UNTIL_H
#define DIFFUSE_RELEASE_UNTIL_H

#include "release/publication.h"

/* Returns whether a release has the option until. */
int until_is_given(const struct ledger_release *release);

/* A rung of the ladder. The point at this rung is stored for the tier, unless the tier is -1. */
struct rung {
  uint64_t clock;
  int tier;
};

/*
** Makes the ladder of a walk from the point of clock `from` (0: a new release) to the ceiling of
** the publication's tier: the rungs in the order of the walk. The last rung is the ceiling, or a
** rung within 1/64 outside it, and has the publication's tier. Rungs follow from public numbers.
** The caller frees *rungs with sqlite3_free(). Returns 1, or 0 after setting the session's error.
*/
int until_ladder(struct publication *publication, uint64_t from, struct rung **rungs, int *count);

/* Returns the lattice slack of the first `made` draws of a walk from the clock `from`. */
double until_slack(const struct publication *publication, uint64_t from, const struct rung *rungs,
                   int made);

/*
** Walks the ladder. `values` holds the point at the clock `from` (from > 0), and afterwards the
** point where the walk ends. Calls keep() for each point that has to be stored, in the order of the
** walk. Sets *made to the number of rungs that were reached, and *met to whether the rule holds at
** the end. Returns 1, or 0 after setting the session's error.
*/
typedef int until_keep(struct publication *publication, int tier, uint64_t clock,
                       const int64_t *values);
int until_walk(struct publication *publication, const int64_t *totals, uint64_t from,
               const struct rung *rungs, int count, int64_t *values, until_keep *keep, int *made,
               int *met);

/*
** dp_plan(): returns the expected cost of a new release, divided by that of the ceiling, if each
** figure is `figure` and comes from `rows` rows; NaN if no rung has a half-width for them.
*/
double until_expected_part(struct publication *publication, double figure, double rows);

#endif
