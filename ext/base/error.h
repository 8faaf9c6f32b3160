/*
** error.h: the one error type of the extension.
**
** An error is one sentence without the name of the SQL function: "what is wrong (what to do)". The
** first error stays until it is cleared, so a caller can go on and check once at the end.
**
** Functions that can fail return 1 for success, or 0 after a failure, in every room. A function
** that is given a struct error has set it by then. The exceptions say so where they are declared:
** functions that SQLite calls return its codes; functions that return an index, a count or another
** number return -1 (or a constant such as CELL_FAILED) for none; comparisons return the order of
** two values; a step with three outcomes (a row, the end, a failure) returns 1, 0 or -1.
*/
#ifndef DIFFUSE_BASE_ERROR_H
#define DIFFUSE_BASE_ERROR_H

#include <stdarg.h>

struct error {
  char *text; /* null: no error */
};

/* Sets the error unless one is set already. The format is that of sqlite3_mprintf. Returns 0. */
int error_set(struct error *error, const char *format, ...);
int error_set_list(struct error *error, const char *format, va_list arguments);

/* Sets the error "out of memory". Returns 0. */
int error_set_memory(struct error *error);

int error_is_set(const struct error *error);
int error_is_memory(const struct error *error);

/* The text of an error that is set. */
const char *error_text(const struct error *error);

void error_clear(struct error *error);

/*
** error_take() returns the error and clears it; error_restore() puts it back, in place of any later
** one. Use them around work that must run after an error and whose own errors do not matter.
*/
struct error error_take(struct error *error);
void error_restore(struct error *error, struct error taken);

#endif
