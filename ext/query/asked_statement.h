/*
** asked_statement.h: the text of a statement as the ledger stores it with the releases that the
** statement's aggregates make.
**
** A release of an aggregate stands for its statement: the table, the WHERE, the expressions. The
** same name therefore needs the same text. What a call gives as constants is compared by its value
** elsewhere, and is not part of the text: there is a question mark in place of the tier, at which
** the release is published, and of each parameter. If options are written as one text, only the
** name from them is in the text, so that a refinement has the text of the first call. Values that
** are bound to the statement stand in place of its parameters. Comments and layout do not matter.
**
** The text is that of the whole statement, because a call of an aggregate does not know which of
** several calls in the text it is. Different texts never stand for one release; two texts that mean
** the same may be taken for different ones.
*/
#ifndef DIFFUSE_QUERY_ASKED_STATEMENT_H
#define DIFFUSE_QUERY_ASKED_STATEMENT_H

#include <sqlite3ext.h>

#include "base/json.h"

/*
** Returns the text of a statement with the values that are bound to it. The caller calls
** sqlite3_free(). Returns null if memory runs out, or if this build of SQLite cannot show the
** values.
*/
char *statement_with_values(sqlite3_stmt *statement);

/*
** Returns the text that the ledger stores for such a text. The caller calls sqlite3_free(). Returns
** null when out of memory.
*/
char *asked_statement(const char *sql, struct json *json);

#endif
