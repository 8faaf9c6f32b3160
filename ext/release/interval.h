/* interval.h: computes the interval of a published number with another confidence. */
#ifndef DIFFUSE_RELEASE_INTERVAL_H
#define DIFFUSE_RELEASE_INTERVAL_H

#include "mechanism/estimate.h"
#include "release/publication.h"

/*
** Sets [*low, *high] to the interval that a number published at the publication's tier would have
** with this confidence, computed from the stored point. The caller has set the session, the release
** and the position. Returns 1, or 0 after setting the ledger's error.
*/
int interval_read(struct publication *publication, const char *key, int component,
                  double confidence, double *low, double *high);

/*
** Hands over the numbers of a statistic that is inside the release (mechanism/estimate.h), with
** their 95% intervals, computed from the stored point. The caller has set the same members. Returns
** 1, or 0 after setting the ledger's error, or if take() returns 0.
*/
int inside_read(struct publication *publication, enum inside inside,
                int (*take)(void *context, const struct ledger_value *value), void *context);

/*
** Does the same as interval_read() for a series, whose key may name any span of its published
** periods (periods.h). Ends the transaction of the caller before it computes, so that the ledger is
** not locked.
*/
int interval_read_span(struct publication *publication, const char *key, double confidence,
                       double *low, double *high);

#endif
