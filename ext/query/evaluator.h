/* evaluator.h: a private SQLite connection in memory that evaluates the query of a question for one
** unit after the other. This connection has no access to the database. Its only tables are virtual
** tables with the names of declared tables, and the caller supplies their rows.
**
** Requirements, which the tests cite:
**   Q1  The result of an evaluation depends only on the unit's rows, the public tables, and the
**       time, which is the same for all units. Earlier statements, statistics of tables, random
**       numbers and other units do not change the result.
**   Q2  If a unit's evaluation fails or exceeds the public limits, only that unit is affected. Lack
**       of memory, an error of the file system and an interrupt end the whole question.
**   Q3  A question may use only the functions of a fixed list, declared tables and views over them.
**       A question that uses anything else does not compile. */
#ifndef DIFFUSE_QUERY_EVALUATOR_H
#define DIFFUSE_QUERY_EVALUATOR_H

#include <stddef.h>
#include <stdint.h>

#include "query/private_connection.h"
#include "query/question_text.h"
#include "query/schema.h"

/* ---- tables (evaluator_tables.c) ------------------------------------------------------------- */

/* Rows of one table in memory: of one unit, or all rows of a public table. */
struct unit_rows {
  int columns;
  size_t count, room; /* numbers of rows */
  struct cell *cells;
  int64_t *rowids;
  unsigned char *bytes; /* of texts and blobs */
  size_t used, bytes_room;
  struct row_index *indices;
  int index_count;
};

void unit_rows_open(struct unit_rows *rows, int columns);
void unit_rows_close(struct unit_rows *rows);

/* Returns the number of bytes that the rows need. It depends on the rows alone. */
double unit_rows_bytes(const struct unit_rows *rows);

/* Removes the rows and keeps the memory. */
void unit_rows_clear(struct unit_rows *rows);

/* Adds the row of a statement. Value i is column first + places[i] of the statement, or NULL if
** places[i] is negative. Returns 0 when out of memory. */
int unit_rows_add(struct unit_rows *rows, int64_t rowid, sqlite3_stmt *row, int first,
                  const int *places);

/* What is known of a column of a declared table. */
enum { COLUMN_NAMED = 1, COLUMN_SEARCHED = 2, COLUMN_READ = 4 };

/* A declared table that the question names. */
struct evaluator_table {
  const struct ledger_declaration *declaration;
  struct route route; /* route.tables[0] holds the facts of this table */
  /* For each column: 0 if the question does not read it, or else the bits above. All columns of a
  ** key WITHOUT ROWID count as read. */
  unsigned char *used;
  int *places;           /* for each column: its place among the used columns, or -1 */
  struct unit_rows rows; /* the rows of the table */
};

struct evaluator_tables {
  struct evaluator_table *list;
  int count;
  int is_broken; /* the statement read a column or a row that does not exist: a bug */
  /* No table looks up rows, because the question or a view may have an operator IN that xBestIndex
  ** cannot tell from an equality, or because the texts of numbers have few digits. */
  int searches_nothing;
};

/* xBestIndex gives each search of a table a text, which is this letter and the index in all->list.
** The text is in the fourth operand of the instruction VFilter. */
#define EVALUATOR_SEARCH 't'

#define EVALUATOR_MODULE "dp_unit_rows"

/* Registers the module. CREATE VIRTUAL TABLE with this module takes an index in all->list as its
** argument. *all must keep its address until the connection is closed. Returns an SQLite result
** code. */
int evaluator_tables_register(sqlite3 *db, struct evaluator_tables *all);

/* ---- evaluators ------------------------------------------------------------------------------ */

#define EVALUATOR_MOST_VIEWS 256 /* that a question may use, directly or through views */

/* Callers read the members of the first part, and may set is_interrupted and context. */
struct evaluator {
  sqlite3 *db;                    /* callers may run statements on it that read no table */
  struct evaluator_tables tables; /* that the question names */
  const char *sql;                /* belongs to the caller */
  int length;                     /* of the text without a semicolon at its end */
  int is_utf8;                    /* the encoding of the database is UTF-8 */
  char *texts;             /* of the question and of its views, with semicolons between them */
  sqlite3_stmt *statement; /* the question */
  int columns;             /* of the statement, which is the number of values of a result */
  struct allowed_functions used; /* that the question calls: here, all of them are SQLite's own */
  int is_by_row;                 /* each result comes from one row (`rows`) */
  struct row_text rows;
  /* This SQLite can count steps. One that was built without progress callbacks cannot, and then
  ** evaluates only questions row by row. */
  int counts_steps;
  size_t count;                  /* the number of results, including those that were not kept */
  struct error error;            /* of EVALUATION_FAILED */
  int (*is_interrupted)(void *); /* is called from time to time: the question ends if it is not 0 */
  void *context;

  sqlite3 *host;
  struct private_memory memory;
  const struct ledger_policy *policy;
  struct allowed_functions functions; /* that a question may call */
  char *views[EVALUATOR_MOST_VIEWS];  /* the views that the evaluator has created */
  int view_count;
  int is_building;           /* the evaluator's own statements are running */
  char *denied;              /* the first function or table that the authorizer refused */
  int selects, is_recursive; /* what the authorizer saw when the statement was compiled */
  double ticks, most_ticks;
  double most_bytes; /* the budget of one unit */
  int exceeded, interrupted;
  sqlite3_value **results;
  size_t kept, room; /* `results` holds `kept` rows, and has room for `room` rows */
};

/* Compiles a question. `host` is the connection whose tables the question names. The question must
** give `columns` columns, or more if `admits_more` is 1. `names` lists these columns for the error
** message. If `rest` is not null, a second statement may follow, and *rest is its text. Returns 1,
** or 0 with the error set. The caller must call evaluator_close(), even after an error. */
int evaluator_open(struct evaluator **evaluator, sqlite3 *host, const struct ledger_policy *policy,
                   const char *sql, int columns, int admits_more, const char *names,
                   const char **rest, struct error *error);
void evaluator_close(struct evaluator *evaluator);

/* Leaves out the columns that the question names and does not read, such as those of SELECT * in a
** subquery. Not for a question row by row: the host's program may read other columns. */
void evaluator_leave_out_unread(struct evaluator *evaluator);

enum evaluation {
  EVALUATION_FAILED,  /* the whole question failed, with evaluator->error set */
  EVALUATION_DROPPED, /* this unit failed and contributes nothing */
  EVALUATION_DONE
};

/* Limits the memory of one unit's evaluation to about `bytes` (Q2). Half of them are the budget of
** the unit's rows, of its results, and of what SQLite's sorters and temporary tables put into their
** files. The other half is for values: each takes at least 40 bytes of the compiled question, so no
** value may be longer than this half divided by a fortieth of its size, or than a million bytes.
** What is not counted depends on the question alone: two megabytes for each sorter and temporary
** table, before it uses its file. (If the application has set sqlite3_soft_heap_limit64(), SQLite
** may use the files earlier. A SQLite that was built with SQLITE_TEMP_STORE=3 never uses them.) One
** row at a time is read before it is counted. */
void evaluator_limit_memory(struct evaluator *evaluator, double bytes);

/* Returns whether the rows of the tables exceed the memory of one unit's evaluation. */
int evaluator_is_full(const struct evaluator *evaluator);

/* Evaluates the question on the rows that its tables hold now, within `steps` steps of SQLite's
** virtual machine. Counts the results. If `keeps` is 1, also keeps the results until the next
** evaluation. */
enum evaluation evaluator_run(struct evaluator *evaluator, double steps, int keeps);

/* Evaluates nothing, as if the evaluation of a unit had failed: there are no results. */
void evaluator_skip(struct evaluator *evaluator);

/* Returns the values of result i that was kept. */
static inline sqlite3_value **evaluator_row(const struct evaluator *evaluator, size_t i) {
  return &evaluator->results[i * (size_t)evaluator->columns];
}

/* Returns an upper bound on the number of instructions of the question's program. It depends on the
** question and on the version of SQLite. */
double evaluator_instructions(const struct evaluator *evaluator);

#endif
