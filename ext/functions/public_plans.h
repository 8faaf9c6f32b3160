/*
** public_plans.h: the plans of public tables (public_tables.h): what a table hands on to the file.
**
** A plan is the text idxStr. It lists the comparisons, such as "0=" for an equality of column 0
** (column -1 is the rowid), then the columns of the order after a colon, such as "2+" or "2-", and
** then the mask of the columns that the statement reads after another colon.
*/
#ifndef DIFFUSE_FUNCTIONS_PUBLIC_PLANS_H
#define DIFFUSE_FUNCTIONS_PUBLIC_PLANS_H

#include <stdint.h>

#include "query/policy_tables.h"

/*
** Returns the text of a plan. Sets *used to one bit for each comparison.
*/
char *public_plan_make(const struct table_facts *facts, sqlite3_index_info *info, int with_order,
                       uint32_t *used);

/*
** Returns the SELECT of a plan that makes the comparisons in `used`. It gives the columns, and then
** the rowid, unless a column is the rowid.
*/
char *public_plan_select(const struct table_facts *facts, const char *plan, uint32_t used);

/*
** Reads an entry of the comparisons or of the order, and sets *at behind it. Returns 0 at the end.
*/
int public_plan_next(const char **at, int *column, char *sign);

/* Returns whether a comparison that the plan contains can use this value (P1). */
int public_plan_takes(const struct table_facts *facts, int column, sqlite3_value *value);

/* Returns the columns that the statement reads, as in colUsed. */
sqlite3_uint64 public_plan_columns(const char *plan);

static inline int plan_reads(sqlite3_uint64 columns, int column) {
  return (int)(columns >> (column < 63 ? column : 63) & 1);
}

/* Returns whether one of the columns that a statement reads is an alias of the rowid. */
static inline int plan_reads_rowid(const struct table_facts *facts, sqlite3_uint64 columns) {
  return facts->rowid_alias >= 0 && plan_reads(columns, facts->rowid_alias);
}

#endif
