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
  /* for each column: whether the question reads it; all columns of a key WITHOUT ROWID count */
  unsigned char *used;
  int *places;           /* for each column: its place among the used columns, or -1 */
  struct unit_rows rows; /* the rows of the table */
};

struct evaluator_tables {
  struct evaluator_table *list;
  int count;
  int is_broken; /* the statement read a column or a row that does not exist: a bug */
  /*
  ** No table looks up rows, because the question or a view may have an operator IN that xBestIndex
  ** cannot tell from an equality, or because the texts of numbers have few digits.
  */
  int searches_nothing;
};

/* Notes the text of the question or of a view, before SQLite compiles it. */
void evaluator_tables_note_text(struct evaluator_tables *all, const char *sql);

#define EVALUATOR_MODULE "dp_unit_rows"

/*
** Registers the module. CREATE VIRTUAL TABLE with this module takes an index in all->list as its
** argument. *all must keep its address until the connection is closed. Returns an SQLite result
** code.
*/
int evaluator_tables_register(sqlite3 *db, struct evaluator_tables *all);

#endif
