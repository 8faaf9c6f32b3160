/*
** json.h: reading JSON with SQLite's own parser, and writing it.
**
** The parser is a private in-memory connection: the host's connection may have functions of the
** same names, or an authorizer.
*/
#ifndef DIFFUSE_BASE_JSON_H
#define DIFFUSE_BASE_JSON_H

#include <sqlite3ext.h>

#include "base/error.h"

struct json {
  sqlite3 *db; /* opened by the first use; null before */
  struct error *error;
  int (*go_on)(void *context); /* 0 with an error: the host was interrupted. Null: never */
  void (*end)(void *context);  /* after the last question of go_on() */
  void *context;
};

void json_close(struct json *json);

/* Whether this SQLite has the JSON functions that are needed. */
int json_present(struct json *json);

/*
** Hands over the members of a JSON object, or the elements of a JSON array with the keys '0', '1',
** ...; until take() returns 0, with an error of its own or without. type: that of json_each(). A
** member that is given twice, a number that is not finite and a zero byte are errors. Both begin
** without an error.
*/
typedef int json_take(void *context, const char *key, const char *type, sqlite3_value *value);
int json_members(struct json *json, const char *object, json_take *take, void *context);
int json_elements(struct json *json, const char *array, json_take *take, void *context);

/*
** The same with values as texts: of members as SQLite converts them, of elements as keys
** (sql_text.h).
*/
typedef int json_take_text(void *context, const char *key, const char *text);
int json_text_members(struct json *json, const char *object, json_take_text *take, void *context);
int json_keys(struct json *json, const char *array, json_take_text *take, void *context);

/*
** Appends a finite number with all its digits, as every version of SQLite would read and write it
** alike: for texts that are compared.
*/
void json_append_number(sqlite3_str *json, double x);

/* Appends text as a JSON string. */
void json_append_string(sqlite3_str *json, const char *text);

#endif
