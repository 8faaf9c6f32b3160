/*
** value_table.h: what the tables have in common whose rows are published values: dp_answer,
** dp_parts and dp_table.
*/
#ifndef DIFFUSE_FUNCTIONS_VALUE_TABLE_H
#define DIFFUSE_FUNCTIONS_VALUE_TABLE_H

#include "base/sql_functions.h"
#include "ledger/ledger.h"

struct host;

/* The first columns. */
#define SHOWN_COLUMNS "key, value REAL, stddev REAL, low REAL, high REAL, display TEXT"
#define SHOWN_COUNT   6

/*
** Appends the first columns of a row. Without a key (null), the column `key` is the component, or
** NULL if this is below 0. `numbers` are value, stddev, low and high. Returns as row_text().
*/
int value_row(struct row_list *rows, const char *key, int component, const double *numbers,
              const char *display);

/*
** Begins and ends the reading of a table. value_table_enter() refuses the reading while a release
** reads rows, and to guests who may not use the table. value_table_leave() hands on the error of
** the host's session if the reading has failed, and returns whether it succeeded.
*/
int value_table_enter(struct host *host, const char *name, struct error *error);
int value_table_leave(struct host *host, int is_filled, struct error *error);

/*
** Finds a release that is published at a tier, as far as the audience of the ledger may see it, and
** what clipping did to it there (NaN without the option diagnose). Call published_find() inside a
** transaction. The caller clears the release, which is zero before. Returns 1, or 0 with an error.
*/
int published_find(struct ledger *ledger, sqlite3_value *name, sqlite3_value *tier,
                   struct ledger_release *release, struct ledger_clipping *clipping);

#endif
