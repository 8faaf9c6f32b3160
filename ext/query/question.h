/*
** question.h: a question in a ledger with a policy: its query is evaluated for each unit by itself,
** and what it gives is that unit's contribution.
**
** Requirements, which the tests cite:
**   U1  The rows of one unit cannot change the contribution of another, whatever the query does.
**   U2  Only declared tables are read. Rows without an owner contribute nothing.
**   U3  All reading sees one state of the database: that of the host's connection.
**   U4  What cannot be evaluated is refused before anything is charged.
*/
#ifndef DIFFUSE_QUERY_QUESTION_H
#define DIFFUSE_QUERY_QUESTION_H

#include "ledger/ledger.h"
#include "query/owner_query.h"
#include "query/row_reader.h"

struct question;

/*
** Compiles the query of a question and begins to read. *question is null, without an error, where
** the ledger has no policy: then the owner vouches for the query. question_close() is due after an
** error, too.
*/
int question_open(struct question **question, struct collector *host, struct ledger *ledger,
                  const struct aggregate *aggregate, const char *sql, struct error *error);
void question_close(struct question *question);

/* What the question reads, as JSON: {"visit":"protected","ward":"public"} (sqlite3_free). */
char *question_tables(const struct question *question);

#define DEFAULT_STEPS 1000000

/*
** Evaluates the query for each unit and adds its rows to `rows`, which are known by units. A unit
** may take steps * (1 + its rows) steps of SQLite's virtual machine. 
*/
int question_run(struct question *question, double steps, const struct publication *publication,
                 struct rows *rows, struct error *error);

#endif
