/*
** statement_text.h: finds the call of an aggregate in the text of the statement that executes it,
** evaluates its parameters, and makes the question for which the call stands: the innermost SELECT
** around it, with what it gives from each row as the result list, and with the common table
** expressions that this SELECT may use.
**
** No program of SQLite is read: only the text, by SQLite's lexical rules. If a rule does not
** suffice to be sure, there is an error, which says what to write.
*/
#ifndef DIFFUSE_QUERY_STATEMENT_TEXT_H
#define DIFFUSE_QUERY_STATEMENT_TEXT_H

#include <sqlite3ext.h>

#include "base/error.h"

struct asked_statement;

/*
** How much of a bound value SQLite shows: all, the first 15 digits of a real number, or the first
** bytes of a text or blob (where it was built to shorten them, as the driver of Go does).
*/
enum shown { SHOWN_WHOLE, SHOWN_15_DIGITS, SHOWN_FIRST_BYTES };

/* A call: the index of the token that is the name of the function, and the number of arguments. */
struct asked_call {
  int name, arguments;
};

/*
** Finds the executing statement of a connection whose text calls a function, and reads its text
** with the values that are bound to it. (Of a bound text, SQLite shows what stands before the first
** zero byte.) Sets *found, which the caller closes, even after an error. Returns 1, or 0 with the
** error set.
*/
int asked_statement_find(struct asked_statement **found, sqlite3 *db, const char *function,
                         struct error *error);
void asked_statement_close(struct asked_statement *statement);

/* Returns whether values were bound to the statement. */
int asked_statement_has_values(const struct asked_statement *statement);

/*
** Finds the next call of a function. *call is {-1, 0} at first. Returns 0 if there is no further
** call.
*/
int asked_call_next(const struct asked_statement *statement, const char *function,
                    struct asked_call *call);

/*
** Evaluates an argument of a call by its text, on a private connection without tables. Returns its
** value, which the caller frees with sqlite3_value_free(), or null if it is no constant: it names a
** column or a table, uses a function that a question may not use, or fails. Sets *message then to
** SQLite's, which is valid until the next call, or to null when out of memory.
**
** Sets *shown to how much the text shows of the values that are bound in the argument, and
** *is_alone to whether the argument has no other token.
*/
sqlite3_value *asked_value(const struct asked_statement *statement, const struct asked_call *call,
                           int argument, enum shown *shown, int *is_alone, const char **message);

/*
** Returns the question of a call, whose result list has the arguments key and value, each of which
** may be 0 if the call has none. `keyed` is the name of the function with keys, for messages.
** The caller frees the text. Returns null with the error set.
*/
char *asked_question(const struct asked_statement *statement, const struct asked_call *call,
                     int key, int value, const char *keyed, struct error *error);

/* Says that a value is not shown as a whole. Always returns 0. */
int asked_not_shown(enum shown shown, struct error *error);

/* Returns whether the call stands in the outermost SELECT, so that SQLite executes it once. */
int asked_call_is_outermost(const struct asked_statement *statement, const struct asked_call *call);

/*
** Returns whether the running statement certainly executes its call of a scalar function once:
** there is one call, and beside it there are only words of a list, which no WHERE or WITH is on,
** and no FROM but in SELECT * FROM (...) and SELECT names FROM json_each(...).
*/
int asked_once(sqlite3 *db, const char *function);

#endif
