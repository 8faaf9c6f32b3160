/*
** default_mechanism.h: how precise a release will be, computed from public parameters only, and
** what a release gets by it: the mechanism if its options do not name one, and the weight if they
** have half_width.
*/
#ifndef DIFFUSE_RELEASE_DEFAULT_MECHANISM_H
#define DIFFUSE_RELEASE_DEFAULT_MECHANISM_H

#include "release/parameters.h"
#include "release/publication.h"

/*
** Returns the half-width of the planned statistic at a rate, with the mechanism of the publication.
** The half-width is in the unit of the value if `rows` is a guess of the number of rows, and in the
** unit of the sums if `rows` is NaN. Sets the lattice and the clock of the publication.
*/
double planned_half_width(struct publication *publication, double rows, double rate);

/* Returns the half-width of a statistic whose noise has this standard deviation. */
double statistic_half_width(const struct publication *publication, double stddev);

/*
** Sets the mechanism of a request that does not name one. The publication has the tiers and the
** place of the request's tier among them, and, if `found`, the release that has the request's name.
** At a tier whose accountant does not cover Gaussian noise, this is the first mechanism of the kind
** whose noise the tier covers. A category gets the mechanism for epsilons (mechanism/mechanism.h)
** if all tiers that pay add up epsilons alone. For one quantile without keys at the outermost tier,
** it is the draw of a leaf (leaf_release.c) if this is more precise. At other tiers, for models,
** for dp_merge(), and for kinds without such a mechanism, the default of the kind stays. The choice
** depends on public parameters only. Returns 1, or 0 after setting the ledger's error.
*/
int request_default_mechanism(struct request *request, const struct publication *publication,
                              int found);

/* Returns whether releases with Gaussian and with Laplace noise may share the budget of a tier. */
int tier_covers_all_noise(const struct ledger_tier *tier);

/*
** Returns the number of rows from which one value of a release is computed: all rows, or the rows
** of one group. Both numbers are guesses in the request. Without a guess, returns NaN.
*/
double plan_rows(const struct request *request);

/*
** If the request of dp_plan() or dp_batch() has a half_width, sets its weight to the least whose
** 95% half-width is at most this number. Call plan_weight() inside a transaction. Returns 1, or 0
** with the error of the session set.
*/
int plan_weight(struct request *request, struct session *session);

#endif
