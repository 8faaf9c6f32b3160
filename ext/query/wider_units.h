/*
** wider_units.h: reads which wider unit, such as a household, each unit belongs to (dp_within). The
** table that declares it has one row for each unit, which names the wider unit in a column. A unit
** without a row, or with NULL, is a wider unit of its own.
*/
#ifndef DIFFUSE_QUERY_WIDER_UNITS_H
#define DIFFUSE_QUERY_WIDER_UNITS_H

#include "query/collector.h"
#include "query/schema.h"

struct wider_units {
  struct collector *collector;
  struct route route; /* of the table that declares the wider unit */
  int column;         /* of its first table */
  sqlite3_stmt *row;  /* collects units and wider units; null: the ledger has no wider unit */
  struct households *households;
};

/*
** Checks that the schema still says what was declared, and that the units compare like those of a
** question, `unit`. Compiles the statement that reads the table, and locks it as the tables of the
** question. Does nothing if the policy has no wider unit. Returns 1, or 0 with the error set. The
** caller must call wider_units_close(), even after an error.
*/
int wider_units_open(struct wider_units *wider, struct collector *collector,
                     const struct ledger_policy *policy, const struct table_column *unit,
                     struct error *error);
void wider_units_close(struct wider_units *wider);

/*
** Reads the table and lets `rows`, which are open and empty, bound the wider units. `wider` must
** live as long as `rows`. Returns 1, or 0 with the error set; `after` is the end of the message.
*/
int wider_units_read(struct wider_units *wider, struct rows *rows, const char *after,
                     struct error *error);

#endif
