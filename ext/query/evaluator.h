/*
** evaluator.h: a private SQLite connection in memory that evaluates a question for one unit after
** the other. It has no access to the database. Its only tables are virtual ones, whose rows the
** caller supplies.
**
** Requirements, which the tests cite:
**   Q1  An evaluation depends only on the unit's rows and the public tables. All units see the same
**       time. There are no counters of earlier work, no statistics, no random numbers, and nothing
**       of other units.
**   Q2  An error of a unit, or work beyond the public limits, affects that unit only. Lack of
**       memory, an error of the file system and an interrupt end the question.
**   Q3  A list defines what a question may use. Compiling a question that uses anything else fails.
*/
#ifndef DIFFUSE_QUERY_EVALUATOR_H
#define DIFFUSE_QUERY_EVALUATOR_H

#include "query/policy_tables.h"
#include "query/unit_rows.h"

struct evaluator;

/* A declared table that the question names. */
struct evaluator_table {
  const struct ledger_declaration *declaration;
  struct route route;    /* route.tables[0] holds the facts of this table */
  unsigned char *used;   /* for each column: the question reads it */
  int *places;           /* for each column: its place among the columns that are read, or -1 */
  struct unit_rows rows; /* the rows of the table */
};

/*
** Compiles a question. host: the connection whose tables it names. columns: how many columns it
** must give (-1: any number). names: their names. The caller must call evaluator_close(), even
** after an error.
*/
int evaluator_open(struct evaluator **evaluator, sqlite3 *host, const struct ledger_policy *policy,
                   const char *sql, int columns, const char *names, struct error *error);
void evaluator_close(struct evaluator *evaluator);

/* The connection, for statements that read nothing. */
sqlite3 *evaluator_connection(const struct evaluator *evaluator);

/* The tables that the question names. */
int evaluator_table_count(const struct evaluator *evaluator);
struct evaluator_table *evaluator_table(struct evaluator *evaluator, int i);

enum evaluation {
  EVALUATION_FAILED,  /* the whole question failed: see evaluator_error() */
  EVALUATION_DROPPED, /* this unit failed and contributes nothing */
  EVALUATION_DONE
};

/* Public limits for one unit: steps of SQLite's virtual machine, and bytes of results. */
struct evaluator_limits {
  double steps, bytes;
};

/*
** Evaluates the question on the rows in its tables, within the limits. Always counts the results,
** and if `keeps` is set, keeps them until the next evaluation.
*/
enum evaluation evaluator_run(struct evaluator *evaluator, const struct evaluator_limits *limits,
                              int keeps);
size_t evaluator_count(const struct evaluator *evaluator);
sqlite3_value **evaluator_row(const struct evaluator *evaluator, size_t i);
const char *evaluator_error(const struct evaluator *evaluator);

/*
** Whether one evaluation over the rows of all units, one after the other, gives the same results
** (stream_proof.h). Sets *length to the number of instructions of the question.
*/
int evaluator_can_stream(struct evaluator *evaluator, int *length);

/*
** Evaluates the question once over the rows of all units. `bytes` is the limit for one result,
** counted as in evaluator_limits. next() puts the next row into the table and returns 1, or 0 at
** the end, or -1 to fail. give() receives each result while the table still holds the row of that
** result, and returns 1, or 0 to fail. EVALUATION_DROPPED means that the evaluation failed, but an
** evaluation unit by unit may succeed.
*/
struct evaluator_stream {
  const struct evaluator_table *table;
  int (*next)(void *context);
  int (*give)(void *context, sqlite3_value **row);
  void *context;
};
enum evaluation evaluator_run_stream(struct evaluator *evaluator,
                                     const struct evaluator_stream *stream, double bytes);

/* Sets a function that the evaluator calls now and then. A nonzero result ends the question. */
void evaluator_watch(struct evaluator *evaluator, int (*is_interrupted)(void *), void *context);

#endif
