/* question.h: the query of a dp_release(), which is evaluated for each unit separately. The result
** for a unit is the contribution of that unit.
**
** Requirements, which the tests cite:
**   U1  For any query, the rows of one unit cannot change the contribution of another unit.
**   U2  A question reads only declared tables. A row that belongs to no unit contributes nothing.
**   U3  All statements read the same state of the database, the state that the host's connection
**       sees.
**   U4  A question that cannot be evaluated is refused before anything is charged. */
#ifndef DIFFUSE_QUERY_QUESTION_H
#define DIFFUSE_QUERY_QUESTION_H

#include "ledger/ledger.h"
#include "query/row_reader.h"
#include "release/release.h"

struct question;

/* Compiles the question of a request, request->sql, and begins to read the database. If public rows
** follow the rows of the question (procedure->publics), the text has a second SELECT, which gives
** them. A release is charged afterwards, so this does what may fail before rows are read. Returns
** 1, or 0 with the error set. The caller must call question_close(), even after an error. */
int question_open(struct question **question, struct collector *collector, struct ledger *ledger,
                  const struct request *request, struct error *error);
void question_close(struct question *question);

/* Returns the tables of the question as JSON, for example {"visit":"protected","ward":"public"}.
** The caller frees the text with sqlite3_free(). */
char *question_tables(const struct question *question);

/* Returns the affinity and collation of the columns that name units, for example "TEXT NOCASE".
** Under another type, the same unit may have another value, and another identity. The caller frees
** the text with sqlite3_free(). */
char *question_unit_type(const struct question *question);

/* Returns the notice about the question (question_text.h), which may be empty. The caller frees the
** text with sqlite3_free(). */
char *question_notice(const struct question *question, const struct aggregate *aggregate);

/* Opens `rows`, evaluates the query for each unit within the limits of the request, and adds the
** results to `rows`. Returns 1, or 0 with the error set. The caller closes `rows` in both cases. */
int question_run(struct question *question, const struct rows_opener *opener, struct rows *rows,
                 struct error *error);

/* ---- the text of the executing statement (statement_text.c) ---------------------------------- */

/* An aggregate stands for a question: the innermost SELECT around its call in the text of the
** statement that executes it, with what the call gives from each row as the result list. */
struct asked_statement;

/* How much of a bound value SQLite shows: all, the first 15 digits of a real number, or the first
** bytes of a text or blob (where it was built to shorten them, as the driver of Go does); or all,
** but where its text would be the place of a column. */
enum shown { SHOWN_WHOLE, SHOWN_15_DIGITS, SHOWN_FIRST_BYTES, SHOWN_AS_PLACE };

/* A call: the index of the token that is the name of the function, and the number of arguments. */
struct asked_call {
  int name, arguments;
};

/* Finds the executing statement of a connection whose text calls a function, and reads its text
** with the values that are bound to it. (Of a bound text, SQLite shows what stands before the first
** zero byte.) Sets *found, which the caller closes, even after an error. Returns 1, or 0 with the
** error set. */
int asked_statement_find(struct asked_statement **found, sqlite3 *db, const char *function,
                         struct error *error);
void asked_statement_close(struct asked_statement *statement);

/* Returns whether values were bound to the statement. */
int asked_statement_has_values(const struct asked_statement *statement);

/* Finds the next call of a function. *call is {-1, 0} at first. Returns 0 if there is no further
** call. */
int asked_call_next(const struct asked_statement *statement, const char *function,
                    struct asked_call *call);

/* Evaluates an argument of a call by its text, on a private connection without tables. Returns its
** value, which the caller frees with sqlite3_value_free(), or null if it is no constant: it names a
** column or a table, uses a function that a question may not use, or fails. Sets *message then to
** SQLite's, which is valid until the next call, or to null when out of memory.
**
** Sets *shown to how much the text shows of the values that are bound in the argument, and
** *is_alone to whether the argument has no other token. */
sqlite3_value *asked_value(const struct asked_statement *statement, const struct asked_call *call,
                           int argument, enum shown *shown, int *is_alone, const char **message);

/* Returns the question of a call, whose result list has the arguments key and value, each of which
** may be 0 if the call has none. `keyed` is the name of the function with keys, for messages.
** The caller frees the text. Returns null with the error set. */
char *asked_question(const struct asked_statement *statement, const struct asked_call *call,
                     int key, int value, const char *keyed, struct error *error);

/* Says that a value is not shown as a whole. Always returns 0. */
int asked_not_shown(enum shown shown, struct error *error);

/* Returns whether the call stands in the outermost SELECT, so that SQLite executes it once. */
int asked_call_is_outermost(const struct asked_statement *statement, const struct asked_call *call);

/* Returns whether the running statement certainly executes its call of a scalar function once:
** there is one call, and beside it there are only words of a list, which no WHERE or WITH is on,
** and no FROM but in SELECT * FROM (...) and SELECT names FROM json_each(...). */
int asked_once(sqlite3 *db, const char *function);

#endif
