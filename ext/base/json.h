/* json.h: writes JSON, and reads it with SQLite's own parser on a private connection in memory,
** because the host's connection may redefine the JSON functions or have an authorizer. */
#ifndef DIFFUSE_BASE_JSON_H
#define DIFFUSE_BASE_JSON_H

#include <sqlite3ext.h>

#include "base/error.h"

struct json {
  sqlite3 *db; /* the private connection; the first call opens it */
  struct error *error;
  /* Returns 0 and sets an error if the reading is to be interrupted; or null. */
  int (*go_on)(void *context);
  void (*end)(void *context); /* if not null, called after the last call of go_on() */
  void *context;
};

void json_close(struct json *json);

/* Checks that this build of SQLite has the JSON functions that the ledger needs. */
int json_present(struct json *json);

/* Call take() for each member of a JSON object, or each element of a JSON array, with the keys '0',
** '1' and so on, until it returns 0, with or without an error. `type` is the name that json_each()
** has for the type of the value. A duplicate member, a number that is not finite and a zero byte
** are errors. Both functions clear the error when they start. */
typedef int json_take(void *context, const char *key, const char *type, sqlite3_value *value);
int json_members(struct json *json, const char *object, json_take *take, void *context);
int json_elements(struct json *json, const char *array, json_take *take, void *context);

/* Returns the elements of a JSON array as texts, with a null pointer after the last one. Converts
** them with key_text() (sql_text.h); with `names`, all must be texts, and `names` is what the error
** says about others. After an error, returns null with the error set, and *count is 0.
** json_list_free() accepts null. */
char **json_list(struct json *json, const char *array, const char *names, int *count);
void json_list_free(char **list);

/* Calls take() for each member of each element of a JSON array, in any order, with keys such as
** '12,0' and '12,x': the number of the element, and the member's place or name. An element that has
** no members, or is neither an array nor an object, has the key '12,' and its own type. Otherwise
** like json_elements(), but ten times as fast as one call of it for each element, and without a
** check for members that are given twice. */
int json_table(struct json *json, const char *table, json_take *take, void *context);

/* Appends the exact text of a number (number.h), so that texts with such numbers can be
** compared. */
void json_append_number(sqlite3_str *json, double x);

/* Returns texts as a JSON array. The caller frees it. Null: out of memory. */
char *json_texts(char *const *texts, int count);

/* Compares two texts by the pointers to them, for qsort() and bsearch(). */
int text_order(const void *a, const void *b);

void json_append_string(sqlite3_str *json, const char *text);

#endif
