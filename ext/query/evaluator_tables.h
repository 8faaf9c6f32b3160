/*
** evaluator_tables.h: the virtual tables of the evaluator's connection. They have the names of the
** declared tables, and their rows come from the caller.
*/
#ifndef DIFFUSE_QUERY_EVALUATOR_TABLES_H
#define DIFFUSE_QUERY_EVALUATOR_TABLES_H

#include "query/policy_tables.h"
#include "query/unit_rows.h"

/* A declared table that the question names. */
struct evaluator_table {
  const struct ledger_declaration *declaration;
  struct route route;    /* route.tables[0] holds the facts of this table */
  unsigned char *used;   /* for each column: whether the question reads it */
  int *places;           /* for each column: its place among the used columns, or -1 */
  struct unit_rows rows; /* the rows of the table */
};

/* The functions that the caller of evaluator_run_stream() supplies (evaluator.h). */
struct evaluator_stream {
  const struct evaluator_table *table;
  int (*next)(void *context);
  int (*give)(void *context, sqlite3_value **row);
  void *context;
};

struct evaluator_tables {
  struct evaluator_table *list;
  int count;
  const struct evaluator_stream *stream; /* not null while all units are evaluated at once */
  int stream_state;                      /* 1: has a row; 0: has ended; -1: has failed */
  int filters;                           /* how often this run has begun to read a table */
  int is_broken; /* the statement read a column that does not exist: a bug */
};

#define EVALUATOR_MODULE "dp_unit_rows"

/*
** Registers the module. CREATE VIRTUAL TABLE with this module takes an index in all->list as its
** argument. *all must keep its address until the connection is closed. Returns an SQLite result
** code.
*/
int evaluator_tables_register(sqlite3 *db, struct evaluator_tables *all);

#endif
