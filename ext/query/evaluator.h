/*
** evaluator.h: a private SQLite connection in memory, on which a question is evaluated for one unit
** after the other. It has no access to the database: its only tables are virtual ones, which give
** rows that it is handed.
**
** Requirements, which the tests cite:
**   Q1  An evaluation depends on the unit's rows and the public tables alone: one moment for all
**   units,
**       no counters of earlier work, no statistics, no random numbers, nothing of other units.
**   Q2  An error of a unit, or work beyond the public limits, is that unit's alone. Running out of
**       memory, an error of the file system and an interrupt end the question.
**   Q3  A list says what a question may use; all else is refused when it is compiled.
*/
#ifndef DIFFUSE_QUERY_EVALUATOR_H
#define DIFFUSE_QUERY_EVALUATOR_H

#include "query/policy_tables.h"
#include "query/unit_rows.h"

struct evaluator;

/* A declared table that the question names. */
struct evaluator_table {
  const struct ledger_declaration *declaration;
  struct route route;    /* its facts are those of route.tables[0] */
  unsigned char *used;   /* by column: the question reads it */
  int *places;           /* by column: its place among those that are read, or -1 */
  struct unit_rows rows; /* what it gives */
};

/*
** Compiles a question. host: the connection whose tables it names; columns: how many it must give
** (-1: any number), and what they are. evaluator_close()
** is due after an error, too.
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
  EVALUATION_FAILED,  /* of the whole question: evaluator_error() */
  EVALUATION_DROPPED, /* of this unit: it contributes nothing */
  EVALUATION_DONE
};

/* Public limits on what one unit may take: steps of SQLite's virtual machine, bytes of results. */
struct evaluator_limits {
  double steps, bytes;
};

/*
** Evaluates the question on the rows that its tables hold, within the limits. The results are kept
** where `keeps` is set, until the next evaluation; counted always.
*/
enum evaluation evaluator_run(struct evaluator *evaluator, const struct evaluator_limits *limits,
                              int keeps);
size_t evaluator_count(const struct evaluator *evaluator);
sqlite3_value **evaluator_row(const struct evaluator *evaluator, size_t i);
const char *evaluator_error(const struct evaluator *evaluator);

/*
** Whether evaluating the question once, over the rows of all units one after the other, is the same
** (stream_proof.h), and how many instructions it has.
*/
int evaluator_can_stream(struct evaluator *evaluator, int *length);

/*
** Evaluates it so; one result may have so many bytes, as limits count them. next() puts the next
** row into the table and returns 1, or 0 at the end, or -1 to fail; give() gets each result while
** the table still holds the row that it comes from, and returns 1, or 0 to fail.
** EVALUATION_DROPPED: it went wrong in a way that evaluating unit by unit may not.
*/
struct evaluator_stream {
  const struct evaluator_table *table;
  int (*next)(void *context);
  int (*give)(void *context, sqlite3_value **row);
  void *context;
};
enum evaluation evaluator_run_stream(struct evaluator *evaluator,
                                     const struct evaluator_stream *stream, double bytes);

/* What looks now and then whether the host wants to end the question: nonzero ends it. */
void evaluator_watch(struct evaluator *evaluator, int (*is_interrupted)(void *), void *context);

#endif
