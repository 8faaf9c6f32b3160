/* error.h: the one error type of the extension.
**
** An error is one sentence without the name of the SQL function: "what is wrong (what to do)". The
** first error stays until a caller clears the error, so a caller can call several functions and
** check for an error once at the end.
**
** In every room (folder of ext/), functions that can fail return 1 for success and 0 for failure.
** If a function takes a struct error, the function sets the error before it returns 0. Some
** functions follow other rules, and their declarations say so. Functions that SQLite calls return
** SQLite's result codes. Functions that return an index, a count or another number return -1 (or a
** constant such as CELL_FAILED) if there is no such number. Comparisons return a negative number, 0
** or a positive number, as strcmp() does. A step with three outcomes (a row, the end, a failure)
** returns 1, 0 or -1. */
#ifndef DIFFUSE_BASE_ERROR_H
#define DIFFUSE_BASE_ERROR_H

#include <stdarg.h>

struct sqlite3;

struct error {
  char *text; /* null: no error */
  /* The connection of the caller. An error repeats a word of the caller's if the text of a running
  ** statement of this connection has the word in quotes (sql_text.h). Null: it repeats none. */
  struct sqlite3 *caller;
};

/* Sets the error, in a format of sqlite3_mprintf(), unless one is set already. Both return 0. */
int error_set(struct error *error, const char *format, ...);
int error_set_list(struct error *error, const char *format, va_list arguments);

/* Sets the error "out of memory", unless an error is set already. Returns 0. */
int error_set_memory(struct error *error);

int error_is_set(const struct error *error);
int error_is_memory(const struct error *error);

/* Appends words to an error that is set, unless its text has them already. */
void error_add(struct error *error, const char *words);

/* Returns the text of an error that is set. */
const char *error_text(const struct error *error);

void error_clear(struct error *error);

/* error_take() returns the error and clears `error`, before work that must run even after an error
** and whose own errors do not matter; error_restore() then sets it again. */
struct error error_take(struct error *error);
void error_restore(struct error *error, struct error taken);

#endif
