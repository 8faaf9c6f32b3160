/*
** question.h: a question in a ledger with a policy. Its query is evaluated for each unit
** separately, and the result is the contribution of that unit.
**
** Requirements, which the tests cite:
**   U1  The rows of one unit cannot change the contribution of another, for any query.
**   U2  A question reads only declared tables. Rows without an owner contribute nothing.
**   U3  All reading sees one state of the database: that of the host's connection.
**   U4  A question that cannot be evaluated is refused before anything is charged.
*/
#ifndef DIFFUSE_QUERY_QUESTION_H
#define DIFFUSE_QUERY_QUESTION_H

#include "ledger/ledger.h"
#include "query/owner_query.h"
#include "query/row_reader.h"

struct question;

/*
** Compiles the query of a question and begins to read. If the ledger has no policy, the owner
** vouches for the query: *question is null, without an error. The caller must call
** question_close(), even after an error.
*/
int question_open(struct question **question, struct collector *host, struct ledger *ledger,
                  const struct aggregate *aggregate, const char *sql, struct error *error);
void question_close(struct question *question);

/* The tables of the question, as JSON: {"visit":"protected","ward":"public"} (sqlite3_free). */
char *question_tables(const struct question *question);

#define DEFAULT_STEPS 1000000

/*
** Evaluates the query for each unit and adds the results to `rows`, which identify them by unit. A
** unit may take steps * (1 + its rows) steps of SQLite's virtual machine.
*/
int question_run(struct question *question, double steps, const struct publication *publication,
                 struct rows *rows, struct error *error);

#endif
