/*
** row_loop.h: evaluates a question for all units at once, in one statement on the host's
** connection.
**
** For each table of the question, the statement puts a common table expression with the name of the
** table before the text of the question. The expression for the protected table has one column more
** than the table: the unit, or the link that leads to the unit (unit_map.h). The statement adds
** this column to the columns of the question and passes the rows to dp_collect().
**
** Requirements:
**   D1  By its text, every result of the question depends on one row of one protected table and on
**       public rows, and no row can make it fail (row_text.h). The added column has a name that
**       nothing else has, so it is the unit of that row.
**   D2  The question has the same meaning on the host's connection. Its text can only name the
**       common table expressions: the evaluator has compiled the text on a connection whose only
**       tables are those of the question. The functions and collations of the host are SQLite's own
**       (question.c checks this), and no authorizer has replaced a column with NULL.
**   D3  If D1 or D2 cannot be shown, or if the statement fails for a reason that a row can cause,
**       the question is evaluated by the evaluator. The result is the same.
**   D4  If PRAGMA threads allows, several connections read ranges of the protected table
**       (reader_threads.h, S1 to S5). The expression for the protected table then gives the rows of
**       the range. By D1, each row of dp_collect() comes from one row of this table, so the ranges
**       together give the same rows as the whole table (S1). The text is the same on each
**       connection, whose functions and collations are SQLite's own (S3).
*/
#ifndef DIFFUSE_QUERY_ROW_LOOP_H
#define DIFFUSE_QUERY_ROW_LOOP_H

#include "query/collector.h"
#include "query/evaluator.h"
#include "query/reader_threads.h"
#include "query/unit_map.h"

struct row_loop {
  struct collector *collector;
  struct evaluator *evaluator;
  const struct evaluator_table *table; /* the question's protected table */
  const struct allowed_functions *functions; /* that the question calls */
  char *unit;   /* the name of the added column */
  sqlite3_stmt *statement;
  char *range; /* the statement on a range of rowids; null: only for one thread */
  int columns; /* the number of columns of the question that the rows need */
  struct unit_map map;
};

/*
** Compiles the statement for a question whose text evaluator_reads_rows() has admitted. `table` is
** the question's protected table, and `columns` the number of columns that the rows need: 0 if they
** ignore what the question gives. If `has_readers` is 1, also makes the statement on a range.
** Returns 1, or 0 if the statement cannot be used (D3). The caller must call row_loop_close() in
** both cases.
*/
int row_loop_open(struct row_loop *loop, struct collector *collector,
                     struct evaluator *evaluator, const struct evaluator_table *table,
                     const struct evaluator_text *text, int columns, int has_readers);
void row_loop_close(struct row_loop *loop);

/*
** Adds the results of the question to `rows`. Uses the further connections of `readers`, unless it
** is null. Returns EVALUATION_DROPPED if this evaluation failed, but the evaluator may succeed.
** Sets the error if it returns EVALUATION_FAILED.
*/
enum evaluation row_loop_run(struct row_loop *loop, struct readers *readers,
                                const struct rows_opener *opener, struct rows *rows,
                                struct error *error);

#endif
