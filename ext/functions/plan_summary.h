/* plan_summary.h: says what a plan means, in one sentence that a person can act on. */
#ifndef DIFFUSE_FUNCTIONS_PLAN_SUMMARY_H
#define DIFFUSE_FUNCTIONS_PLAN_SUMMARY_H

#include "ledger/ledger.h"
#include "release/parameters.h"

/*
** Appends the member "summary" to a JSON object, as in "±0.21 days around each average (95% of the
** noise); 59 more such releases fit into 2026". `half_width` is the half-width of one value, in the
** unit of the values, or NaN if it is not known. `charge` is the id of the last charge before the
** plan. `request` is null for a plan of several releases.
*/
void plan_append_summary(sqlite3_str *json, struct ledger *ledger, const struct request *request,
                         double half_width, int64_t charge);

#endif
