/*
** allowed_functions.h: the functions of SQLite that a question may use.
*/
#ifndef DIFFUSE_QUERY_ALLOWED_FUNCTIONS_H
#define DIFFUSE_QUERY_ALLOWED_FUNCTIONS_H

#include <sqlite3ext.h>

#define MOST_FUNCTIONS 256

/* The functions of the list that a connection has, by their place in the list. */
struct allowed_functions {
  unsigned char
      own[MOST_FUNCTIONS]; /* it is SQLite's own, and nothing has replaced it in this connection */
};

/* Finds out which of the functions a connection has. Returns an SQLite code. */
int allowed_functions_read(struct allowed_functions *functions, sqlite3 *db);

/* Whether the list contains a name and the connection has the function. */
int function_is_allowed(const struct allowed_functions *functions, const char *name);

/* The same, restricted to functions that raise no error for any arguments. */
int function_is_safe(const struct allowed_functions *functions, const char *name);

#endif
