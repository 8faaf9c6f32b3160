/*
** error.h: the one error type of the extension.
**
** An error is one sentence without the function's name: "what is wrong (what to do)". Every
** function that can fail returns 1 for success, or 0 with the error set; there is no other
** polarity. The first error stays until it is cleared, so that a caller may go on and ask once.
*/
#ifndef DIFFUSE_BASE_ERROR_H
#define DIFFUSE_BASE_ERROR_H

#include <stdarg.h>

struct error {
  char *text; /* null: no error */
};

/* Sets the error unless one is set; the format is sqlite3_mprintf's. Always returns 0. */
int error_set(struct error *error, const char *format, ...);
int error_set_list(struct error *error, const char *format, va_list arguments);

/* "out of memory". Always returns 0. */
int error_set_memory(struct error *error);

int error_is_set(const struct error *error);
int error_is_memory(const struct error *error);

/* The sentence of an error that is set. */
const char *error_text(const struct error *error);

void error_clear(struct error *error);

/*
** Takes the error out and leaves none; error_restore() puts it back in place of a later one. For
** work that has to be done after an error, and whose own errors nobody asks for.
*/
struct error error_take(struct error *error);
void error_restore(struct error *error, struct error taken);

#endif
