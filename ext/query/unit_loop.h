/*
** unit_loop.h: evaluates a question for one unit after the other on one thread. The statements that
** read the protected tables are written here and call no functions. They sort each table by unit.
** The sorted streams are then merged unit by unit, and the evaluator runs the caller's query.
*/
#ifndef DIFFUSE_QUERY_UNIT_LOOP_H
#define DIFFUSE_QUERY_UNIT_LOOP_H

#include "query/evaluator.h"
#include "query/limits.h"
#include "query/row_reader.h"

/* The rows of a protected table, ordered by unit. */
struct unit_stream {
  struct evaluator_table *table;
  /*
  ** Columns: the unit, the rowid, whether a value is too long (if is_cut is 1), and the columns
  ** that the question reads.
  */
  sqlite3_stmt *row;
  int is_cut;
  int has_row;
};

struct unit_loop {
  sqlite3 *db; /* the connection that reads the tables */
  struct evaluator *evaluator;
  struct unit_stream *streams;
  int count;                /* the number of streams */
  int columns;              /* the number of columns of the question; 0: any number of columns */
  int takes_one;            /* each unit gives exactly one row */
  int by_row;               /* each row is a unit */
  enum affinity affinity;   /* the affinity of the units */
  enum collation collation; /* the collation of the units */
  const char *after;        /* the text at the end of error messages: see struct rows_opener */
  struct question_limits limits;
  int longest;            /* no value of a unit that contributes is longer; 0: not known */
  struct rows *rows;      /* takes the results */
  sqlite3_stmt *compare;  /* a statement that compares two units in the order of the streams */
  sqlite3_value *nothing; /* the SQL value NULL */
  int64_t integer;        /* the current unit, if it is an integer */
  sqlite3_value *unit;    /* the current unit; null if it is an integer */
  int64_t number;         /* the number of units so far */
};

/* The streams of a loop come from the tables of its evaluator. Returns 0 when out of memory. */
int unit_loop_open(struct unit_loop *loop);

/* Finalizes the statements of the loop. */
void unit_loop_close(struct unit_loop *loop);

/*
** unit_loop_prepare() compiles one of the question's own statements, which must give `columns`
** columns. An error message ends with `after`. unit_loop_prepare_stream() compiles the statement
** that reads the table of a stream: the rows of each unit come together. The rows of a public
** table, and all rows if each row is a unit, come in the order of the rowid or of the primary key.
** Both return 1, or 0 with the error set.
*/
int unit_loop_prepare(sqlite3 *db, const char *sql, int columns, const char *after,
                      sqlite3_stmt **statement, struct error *error);
int unit_loop_prepare_stream(const struct unit_loop *loop, struct unit_stream *stream,
                             struct error *error);

/* Compiles the statements that the loop needs in addition to its streams. */
int unit_loop_prepare_helpers(struct unit_loop *loop, struct error *error);

/*
** unit_loop_advance() steps to the next row of a stream. unit_loop_take() adds this row to the
** stream's table. Both return 1, or 0 with the error set.
*/
int unit_loop_advance(const struct unit_loop *loop, struct unit_stream *stream,
                      struct error *error);
int unit_loop_take(const struct unit_loop *loop, const struct unit_stream *stream,
                   struct error *error);

/*
** Evaluates the question for all units of the streams and adds the results to loop->rows. Returns
** 1, or 0 with the error set.
*/
int unit_loop_run(struct unit_loop *loop, struct error *error);

#endif
