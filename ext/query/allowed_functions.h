/*
** allowed_functions.h: the functions of SQLite that a question may use.
*/
#ifndef DIFFUSE_QUERY_ALLOWED_FUNCTIONS_H
#define DIFFUSE_QUERY_ALLOWED_FUNCTIONS_H

#include <sqlite3ext.h>

#define MOST_FUNCTIONS 256

/* What a connection has of them, by their place in the list. */
struct allowed_functions {
  unsigned char
      own[MOST_FUNCTIONS]; /* it is SQLite's own, and nobody has put another in its place */
};

/* Asks a connection for its functions. Returns an SQLite code. */
int allowed_functions_read(struct allowed_functions *functions, sqlite3 *db);

/* Whether the list has a name, and the connection the function. */
int function_is_allowed(const struct allowed_functions *functions, const char *name);

/* The same for functions that cannot raise an error, whatever their arguments are. */
int function_is_safe(const struct allowed_functions *functions, const char *name);

#endif
