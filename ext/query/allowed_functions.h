/*
** allowed_functions.h: the functions of SQLite that a question may use.
*/
#ifndef DIFFUSE_QUERY_ALLOWED_FUNCTIONS_H
#define DIFFUSE_QUERY_ALLOWED_FUNCTIONS_H

#include <sqlite3ext.h>

#define MOST_FUNCTIONS 256

/* For each function of the list in allowed_functions.c, whether a connection may use it. */
struct allowed_functions {
  unsigned char own[MOST_FUNCTIONS]; /* 1: the connection has SQLite's own function */
};

/* Finds out which functions of the list a connection may use. Returns an SQLite result code. */
int allowed_functions_read(struct allowed_functions *functions, sqlite3 *db);

/* Returns whether the list contains the name and the connection may use the function. */
int function_is_allowed(const struct allowed_functions *functions, const char *name);

/*
** Notes in `used` that a question calls a function, which must be allowed. functions_replaced()
** returns the name of a noted function that another connection does not have as SQLite's own, or
** null.
*/
void function_note(struct allowed_functions *used, const char *name);
const char *functions_replaced(const struct allowed_functions *used,
                               const struct allowed_functions *other);

/*
** Returns whether function_is_allowed() holds and the function raises no error for any arguments.
*/
int function_is_safe(const struct allowed_functions *functions, const char *name);

#endif
