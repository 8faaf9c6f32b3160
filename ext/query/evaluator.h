/*
** evaluator.h: a private SQLite connection in memory that evaluates the query of a question for one
** unit after the other. This connection has no access to the database. Its only tables are virtual
** tables, and the caller supplies their rows.
**
** Requirements, which the tests cite:
**   Q1  The result of an evaluation depends only on the unit's rows, the public tables, and the
**       time, which is the same for all units. Earlier statements, statistics of tables, random
**       numbers and other units do not change the result.
**   Q2  If a unit's evaluation fails or exceeds the public limits, only that unit is affected. Lack
**       of memory, an error of the file system and an interrupt end the whole question.
**   Q3  A question may use only the functions of a fixed list, declared tables and views over them.
**       A question that uses anything else does not compile.
*/
#ifndef DIFFUSE_QUERY_EVALUATOR_H
#define DIFFUSE_QUERY_EVALUATOR_H

#include "query/evaluator_tables.h"
#include "query/row_text.h"

struct evaluator;

/*
** Compiles a question. `host` is the connection whose tables the question names. The question must
** give `columns` columns, or more if `admits_more` is 1. `names` lists these columns for the error
** message. If `rest` is not null, a second statement may follow, and *rest is its text. Returns 1,
** or 0 with the error set. The caller must call evaluator_close(), even after an error.
*/
int evaluator_open(struct evaluator **evaluator, sqlite3 *host, const struct ledger_policy *policy,
                   const char *sql, int columns, int admits_more, const char *names,
                   const char **rest, struct error *error);
void evaluator_close(struct evaluator *evaluator);

/*
** Leaves out the columns that the question names and does not read, such as those of SELECT * in a
** subquery. Not for a question row by row: the host's program may read other columns.
*/
void evaluator_leave_out_unread(struct evaluator *evaluator);

/* Returns the private connection. The caller may run statements on it that read no table. */
sqlite3 *evaluator_connection(const struct evaluator *evaluator);

/*
** evaluator_table_count() returns the number of tables that the question names. evaluator_table()
** returns table i.
*/
int evaluator_table_count(const struct evaluator *evaluator);
struct evaluator_table *evaluator_table(struct evaluator *evaluator, int i);

enum evaluation {
  EVALUATION_FAILED,  /* the whole question failed; evaluator_error() returns the message */
  EVALUATION_DROPPED, /* this unit failed and contributes nothing */
  EVALUATION_DONE
};

/*
** Returns whether evaluator_run() can count steps. A SQLite that was built without progress
** callbacks cannot, and then evaluates only questions that evaluator_reads_rows() admits.
*/
int evaluator_counts_steps(const struct evaluator *evaluator);

/*
** Limits the memory of one unit's evaluation to about `bytes` (Q2). Half of them are the budget of
** the unit's rows, of its results, and of what SQLite's sorters and temporary tables put into their
** files. The other half is for values: each takes at least 40 bytes of the compiled question, so no
** value may be longer than this half divided by a fortieth of its size, or than a million bytes.
** What is not counted depends on the question alone: two megabytes for each sorter and temporary
** table, before it uses its file. (If the application has set sqlite3_soft_heap_limit64(), SQLite
** may use the files earlier. A SQLite that was built with SQLITE_TEMP_STORE=3 never uses them.) One
** row at a time is read before it is counted.
*/
void evaluator_limit_memory(struct evaluator *evaluator, double bytes);

/* Returns whether the rows of the tables exceed the memory of one unit's evaluation. */
int evaluator_is_full(const struct evaluator *evaluator);

/*
** Evaluates the question on the rows that its tables hold now, within `steps` steps of SQLite's
** virtual machine. Counts the results. If `keeps` is 1, also keeps the results until the next
** evaluation.
*/
enum evaluation evaluator_run(struct evaluator *evaluator, double steps, int keeps);

/* Evaluates nothing, as if the evaluation of a unit had failed: there are no results. */
void evaluator_skip(struct evaluator *evaluator);
size_t evaluator_count(const struct evaluator *evaluator);
sqlite3_value **evaluator_row(const struct evaluator *evaluator, size_t i);
const char *evaluator_error(const struct evaluator *evaluator);

/* Returns the texts of the question and of its views, with semicolons between them. */
const char *evaluator_texts(const struct evaluator *evaluator);

/*
** Returns "TEXT" or "DATE" if a column of the question is a column that was declared as texts or as
** dates and times, another type, or null.
*/
const char *evaluator_column_type(const struct evaluator *evaluator, int column);

/* Returns the number of columns of the question, which is that of a row of results. */
int evaluator_columns(const struct evaluator *evaluator);

/* Returns the name of a column of the question, or null when out of memory. */
const char *evaluator_column_name(const struct evaluator *evaluator, int column);

/*
** The text of a question whose results each come from one row (row_text.h), without a semicolon at
** its end.
*/
struct evaluator_text {
  const char *sql;
  int length;
  int is_utf8; /* the encoding of the database is UTF-8 */
  struct row_text rows;
};

/*
** Returns whether the question is such a text. The evaluator then limits the length of values no
** more, because such a question makes no value that is longer than the values of its rows. Sets
** *text.
*/
int evaluator_reads_rows(struct evaluator *evaluator, struct evaluator_text *text);

/*
** Returns the functions that the question calls. All of them are SQLite's own on the evaluator's
** connection.
*/
const struct allowed_functions *evaluator_functions(const struct evaluator *evaluator);

/*
** Returns an upper bound on the number of instructions of the question's program. It depends on the
** question and on the version of SQLite.
*/
double evaluator_instructions(const struct evaluator *evaluator);

/*
** Sets a function that the evaluator calls from time to time during a run. If the function returns
** a nonzero value, the question ends.
*/
void evaluator_watch(struct evaluator *evaluator, int (*is_interrupted)(void *), void *context);

#endif
