/*
** evaluator_tables.h: the virtual tables of the evaluator's connection. They have the names of the
** declared tables, and their rows come from the caller.
*/
#ifndef DIFFUSE_QUERY_EVALUATOR_TABLES_H
#define DIFFUSE_QUERY_EVALUATOR_TABLES_H

#include "query/policy_tables.h"
#include "query/unit_rows.h"

/* What is known of a column of a declared table. */
enum { COLUMN_NAMED = 1, COLUMN_SEARCHED = 2, COLUMN_READ = 4 };

/* A declared table that the question names. */
struct evaluator_table {
  const struct ledger_declaration *declaration;
  struct route route;    /* route.tables[0] holds the facts of this table */
  /*
  ** For each column: 0 if the question does not read it, or else the bits above. All columns of a
  ** key WITHOUT ROWID count as read.
  */
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

/*
** xBestIndex gives each search of a table a text, which is this letter and the index in all->list.
** The text is in the fourth operand of the instruction VFilter.
*/
#define EVALUATOR_SEARCH 't'

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
