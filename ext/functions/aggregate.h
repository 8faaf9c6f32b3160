/*
** aggregate.h: what the aggregates are. One row of the table is one kind of release, whether its rows
** come from the owner's SELECT (aggregates.c) or from dp_release() (releases.c).
*/
#ifndef DIFFUSE_FUNCTIONS_AGGREGATE_H
#define DIFFUSE_FUNCTIONS_AGGREGATE_H

#include <sqlite3ext.h>

#include "release/units.h"

/* Where an argument stands in the call; 0 where the function has none (0 is the tier's place). */
struct places {
  int clip, radius, unit, name;
};

struct aggregate {
  const char *name; /* of the SQL function */
  const char *kind; /* of dp_release() and in the ledger */
  int min_arguments, max_arguments;
  struct places places;
  double default_clip; /* 0: it must be given */
  int is_ou;
  int nonnegative; /* contributions lie in [0, clip], not in [-clip, clip] */
  int counts;      /* a row contributes 1, not its value */
};

extern const struct aggregate aggregates[];
extern const int aggregate_count;

/* The aggregate of a kind, or null. */
const struct aggregate *aggregate_of_kind(sqlite3_value *kind);

/* The message for a kind that is none; to be freed. */
char *unknown_kind(sqlite3_value *kind);

/* Adds one row; unit is null where rows are protected. Returns 0, or -1 when out of memory. */
int aggregate_row(const struct aggregate *aggregate, struct accumulator *accumulator,
                  sqlite3_value *value, sqlite3_value *unit);

#endif
