/*
** constants.h: values of expressions that depend on no row. A private connection without tables
** evaluates the texts of the expressions, so they are constant by their text.
*/
#ifndef DIFFUSE_QUERY_CONSTANTS_H
#define DIFFUSE_QUERY_CONSTANTS_H

#include <sqlite3ext.h>

#include "base/error.h"

struct constants;

/* Opens the connection. The caller closes *constants, even after an error. */
int constants_open(struct constants **constants, struct error *error);
void constants_close(struct constants *constants);

/*
** Evaluates an expression. Returns its value, which the caller frees with sqlite3_value_free(), or
** null if it is no constant: it names a column or a table, uses a function that a question may not
** use, or fails. constants_error() then returns SQLite's message.
*/
sqlite3_value *constants_value(struct constants *constants, const char *expression);
const char *constants_error(const struct constants *constants);

#endif
