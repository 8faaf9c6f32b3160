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
#include "query/stream_proof.h"

struct evaluator;

/*
** Compiles a question. `host` is the connection whose tables the question names. The question must
** give `columns` columns (-1: any number). `names` lists these columns for the error message.
** Returns 1, or 0 with the error set. The caller must call evaluator_close(), even after an error.
*/
int evaluator_open(struct evaluator **evaluator, sqlite3 *host, const struct ledger_policy *policy,
                   const char *sql, int columns, const char *names, struct error *error);
void evaluator_close(struct evaluator *evaluator);

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
** The public limits for one unit: the steps of SQLite's virtual machine, and the bytes of the
** results.
*/
struct evaluator_limits {
  double steps, bytes;
};

/*
** Evaluates the question on the rows that its tables hold now, within the limits. Counts the
** results. If `keeps` is 1, also keeps the results until the next evaluation.
*/
enum evaluation evaluator_run(struct evaluator *evaluator, const struct evaluator_limits *limits,
                              int keeps);
size_t evaluator_count(const struct evaluator *evaluator);
sqlite3_value **evaluator_row(const struct evaluator *evaluator, size_t i);
const char *evaluator_error(const struct evaluator *evaluator);

/*
** Returns whether one evaluation over the rows of all units gives the same results as one
** evaluation for each unit (stream_proof.h). Sets *facts. If the function returns 1, the evaluator
** no longer limits the length of values, because such a question makes no value that is longer than
** the values of its rows.
*/
int evaluator_can_stream(struct evaluator *evaluator, struct stream_facts *facts);

/* Returns the name of a column of the question, or null when out of memory. */
const char *evaluator_column_name(const struct evaluator *evaluator, int column);

/* The text of a question without a semicolon at its end, and the number of its columns. */
struct evaluator_text {
  const char *sql;
  int length, columns;
};

/*
** Returns whether the question means the same on the host's connection if common table expressions
** take the place of the question's tables there. This holds if the question names no view, and if
** the database has the encoding UTF-8. Sets *text.
*/
int evaluator_is_portable(const struct evaluator *evaluator, struct evaluator_text *text);

/*
** evaluator_run_stream() evaluates the question once over the rows of all units. The caller
** supplies two functions. next() puts the next row into stream->table and returns 1, or returns
** 0 at the end and -1 after an error. give() receives each result while the table still holds the
** row of that result, and returns 1, or 0 after an error. If evaluator_run_stream() returns
** EVALUATION_DROPPED, this evaluation failed, but separate evaluations for each unit may succeed.
*/
enum evaluation evaluator_run_stream(struct evaluator *evaluator,
                                     const struct evaluator_stream *stream);

/*
** Sets a function that the evaluator calls from time to time during a run. If the function returns
** a nonzero value, the question ends.
*/
void evaluator_watch(struct evaluator *evaluator, int (*is_interrupted)(void *), void *context);

#endif
