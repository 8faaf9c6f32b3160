/* loops.h: for this room: what brings the rows of a question to the sums, row by row (row_loop.c)
** or by unit (unit_loop.c), checks of the connection that reads them (host_checks.c), and the wider
** units of a ledger. */
#ifndef DIFFUSE_QUERY_LOOPS_H
#define DIFFUSE_QUERY_LOOPS_H

#include "query/row_reader.h"
#include "query/evaluator.h"
#include "query/limits.h"

/* ---- row by row (row_loop.c) ----------------------------------------------------------------- */

/* Further connections to the host's file, and their threads. */
struct readers;

/* Opens as many further connections to the host's file as PRAGMA threads allows. The caller must
** call this function before the host begins to read. Returns null if the host must read alone. */
struct readers *readers_open(struct collector *collector);
void readers_close(struct readers *readers); /* `readers` may be null */

/* Evaluates a question that is_by_row for all units at once, and adds its results to `rows`, which
** are open. `table` is the question's protected table, and `columns` the number of columns that the
** rows need: 0 if they ignore what the question gives. Uses the further connections of `readers`,
** unless it is null, and may do so once. Returns EVALUATION_DROPPED if this evaluation failed, but
** the evaluator may succeed. Sets the error if it returns EVALUATION_FAILED. */
enum evaluation row_loop_run(struct collector *collector, struct evaluator *evaluator,
                             const struct evaluator_table *table, int columns,
                             struct readers *readers, const struct rows_opener *opener,
                             struct rows *rows, struct error *error);

/* ---- by unit (unit_loop.c) ------------------------------------------------------------------- */

/* The rows of a protected table, ordered by unit. */
struct unit_stream {
  struct evaluator_table *table;
  /* Columns: the unit, the rowid, whether a value is too long (if is_cut is 1), and the columns
  ** that the question reads. */
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

/* unit_loop_prepare() compiles one of the question's own statements, which must give `columns`
** columns. An error message ends with `after`. unit_loop_prepare_stream() compiles the statement
** that reads the table of a stream: the rows of each unit come together. The rows of a public
** table, and all rows if each row is a unit, come in the order of the rowid or of the primary key.
** Both return 1, or 0 with the error set. */
int unit_loop_prepare(sqlite3 *db, const char *sql, int columns, const char *after,
                      sqlite3_stmt **statement, struct error *error);
int unit_loop_prepare_stream(const struct unit_loop *loop, struct unit_stream *stream,
                             struct error *error);

/* Compiles the statements that the loop needs in addition to its streams. */
int unit_loop_prepare_helpers(struct unit_loop *loop, struct error *error);

/* unit_loop_advance() steps to the next row of a stream. unit_loop_take() adds this row to the
** stream's table. Both return 1, or 0 with the error set. */
int unit_loop_advance(const struct unit_loop *loop, struct unit_stream *stream,
                      struct error *error);
int unit_loop_take(const struct unit_loop *loop, const struct unit_stream *stream,
                   struct error *error);

/* Evaluates the question for all units of the streams and adds the results to loop->rows. Returns
** 1, or 0 with the error set. */
int unit_loop_run(struct unit_loop *loop, struct error *error);

/* ---- the host's connection (host_checks.c) --------------------------------------------------- */

/* Checks that the connection has SQLite's own functions where the question calls them. The question
** would otherwise give something else than the same SELECT. Returns 1, or 0 with the error set. */
int own_functions_check(sqlite3 *db, const struct allowed_functions *called, struct error *error);

/* Checks that the application has not replaced BINARY, NOCASE or RTRIM. If it has, the connection
** and a question's evaluator would not agree which names of units are equal, and one person could
** count twice; and a comparison in a question would mean something else than in a SELECT. Returns
** 1, or 0 with the error set. */
int own_collations_check(sqlite3 *db, struct error *error);

/* Checks all columns of the route's tables that the question reads. `used` marks these columns for
** the first table. The unit and the links are always checked. Refuses a column whose values an
** authorizer of the host replaces with NULL. Also refuses a generated column whose computation may
** raise an error or calls a function of an application. Returns 1, or 0 with the error set. */
int safe_columns_check(sqlite3 *db, const struct route *route, const unsigned char *used,
                       struct error *error);

/* Returns whether a SELECT of one column gives the column. An authorizer may have replaced the
** column with NULL: SQLite then compiles the SELECT as it compiles `nothing`, the same SELECT of a
** NULL. Returns 0 also if one of the statements does not compile. */
int column_is_shown(sqlite3 *db, const char *select, const char *nothing);

/* ---- wider units (wider_units.c) ------------------------------------------------------------- */

struct wider_units {
  struct collector *collector;
  struct route route; /* of the table that declares the wider unit */
  int column;         /* of its first table */
  sqlite3_stmt *row;  /* collects units and wider units; null: the ledger has no wider unit */
  struct households *households;
};

/* Checks that the schema still says what was declared, and that the units compare like those of a
** question, `unit`. Compiles the statement that reads the table, and locks it as the tables of the
** question. Does nothing if the policy has no wider unit. Returns 1, or 0 with the error set. The
** caller must call wider_units_close(), even after an error. */
int wider_units_open(struct wider_units *wider, struct collector *collector,
                     const struct ledger_policy *policy, const struct table_column *unit,
                     struct error *error);
void wider_units_close(struct wider_units *wider);

/* Reads the table and lets `rows`, which are open and empty, bound the wider units. `wider` must
** live as long as `rows`. Returns 1, or 0 with the error set; `after` is the end of the message. */
int wider_units_read(struct wider_units *wider, struct rows *rows, const char *after,
                     struct error *error);

#endif
