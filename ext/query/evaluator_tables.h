/*
** evaluator_tables.h: the virtual tables of the evaluator's connection. They have the names of the
** declared tables, and their rows come from the caller.
*/
#ifndef DIFFUSE_QUERY_EVALUATOR_TABLES_H
#define DIFFUSE_QUERY_EVALUATOR_TABLES_H

#include "query/policy_tables.h"
#include "query/program.h"
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
  size_t pass;                           /* how often this run has taken a row of the stream */
  int is_broken; /* the statement read a column or a row that does not exist: a bug */
  /* the question or a view may have an operator IN that xBestIndex cannot tell from an equality */
  int hides_in;
};

/* Notes the text of the question or of a view, before SQLite compiles it. */
void evaluator_tables_note_text(struct evaluator_tables *all, const char *sql);

/*
** Notes the compiled program of the question. A column of the key of a table WITHOUT ROWID counts
** as used if the program reads a column with its number from any table.
*/
void evaluator_tables_note_program(struct evaluator_tables *all, const struct program *program);

#define EVALUATOR_MODULE "dp_unit_rows"

/*
** Registers the module. CREATE VIRTUAL TABLE with this module takes an index in all->list as its
** argument. *all must keep its address until the connection is closed. Returns an SQLite result
** code.
*/
int evaluator_tables_register(sqlite3 *db, struct evaluator_tables *all);

#endif
