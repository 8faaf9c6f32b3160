/* plan_summary.h: says what a plan means, in one sentence that a person can act on. */
#ifndef DIFFUSE_FUNCTIONS_PLAN_SUMMARY_H
#define DIFFUSE_FUNCTIONS_PLAN_SUMMARY_H

#include "ledger/ledger.h"
#include "release/parameters.h"

/*
** Appends a positive number, rounded up for readers: to a whole number if it is at least 10,
** otherwise to two significant digits.
*/
void plan_append_width(sqlite3_str *text, double x);

/*
** Appends the member "summary" to a JSON object, as in "±0.21 days around each average (95% of the
** noise); then 59 more such releases fit into 2026". `half_width` is that of one value, in the
** unit of the values, or NaN if it is not known. `shrink` is the factor by which the value then
** moves towards the centre of the request. `charge` is the id of the last charge before the plan.
** `request` is null for a plan of several releases. `of_parts` is null, or the text of
** plan_tables_summary() or plan_series_summary(), which takes the place of the half-width.
** `missing` and `cuts` are null, or say which groups will not appear, and what clips cut off.
** Returns 0 when out of memory.
*/
int plan_append_summary(sqlite3_str *json, struct ledger *ledger, const struct request *request,
                        const char *of_parts, const char *missing, const char *cuts,
                        double half_width, double shrink, int64_t charge, double part);

/*
** Returns the summary of a series, from the half-widths of its noisiest period and of the total of
** all `periods`. The caller frees the text. Returns null if memory runs out.
*/
char *plan_series_summary(const struct request *request, int periods, double period, double total);

/*
** Returns the summary of `count` cross tables whose half-widths are in a range, and which would
** cost `cost` times as much one by one. The caller frees the text. Returns null if memory runs out.
*/
struct plan_range {
  double least, most;
};
char *plan_tables_summary(const struct request *request, int count, const struct plan_range *range,
                          double cost);

/*
** Return the summary of a category that is drawn: how many units fewer than the most common one it
** has at most, and how probable the most common one is. The caller frees the text. Return null if
** memory runs out.
*/
char *plan_choice_summary(double behind);
char *plan_response_summary(double probability);

#endif
