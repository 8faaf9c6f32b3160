/*
** question.h: the query of a dp_release(), which is evaluated for each unit separately. The result
** for a unit is the contribution of that unit.
**
** Requirements, which the tests cite:
**   U1  For any query, the rows of one unit cannot change the contribution of another unit.
**   U2  A question reads only declared tables. A row that belongs to no unit contributes nothing.
**   U3  All statements read the same state of the database, the state that the host's connection
**       sees.
**   U4  A question that cannot be evaluated is refused before anything is charged.
*/
#ifndef DIFFUSE_QUERY_QUESTION_H
#define DIFFUSE_QUERY_QUESTION_H

#include "ledger/ledger.h"
#include "query/collector.h"
#include "query/row_reader.h"
#include "release/parameters.h"

struct question;

/*
** Compiles the question of a request, request->sql, and begins to read the database. If public rows
** follow the rows of the question (procedure->publics), the text has a second SELECT, which gives
** them. A release is charged afterwards, so this does what may fail before rows are read. Returns
** 1, or 0 with the error set. The caller must call question_close(), even after an error.
*/
int question_open(struct question **question, struct collector *collector, struct ledger *ledger,
                  const struct request *request, struct error *error);
void question_close(struct question *question);

/*
** Returns the tables of the question as JSON, for example {"visit":"protected","ward":"public"}.
** The caller frees the text with sqlite3_free().
*/
char *question_tables(const struct question *question);

/*
** Returns the affinity and collation of the columns that name units, for example "TEXT NOCASE".
** Under another type, the same unit may have another value, and another identity. The caller frees
** the text with sqlite3_free().
*/
char *question_unit_type(const struct question *question);

/*
** Returns the notice about the question (question_text.h), which may be empty. The caller frees the text
** with sqlite3_free().
*/
char *question_notice(const struct question *question, const struct aggregate *aggregate);

/*
** Opens `rows`, evaluates the query for each unit within the limits of the request, and adds the
** results to `rows`. Returns 1, or 0 with the error set. The caller closes `rows` in both cases.
*/
int question_run(struct question *question, const struct rows_opener *opener, struct rows *rows,
                 struct error *error);

#endif
