/*
** json.h: reads JSON with SQLite's own parser, and writes JSON.
**
** The parser uses a private in-memory connection, because the host's connection may redefine the
** JSON functions or have an authorizer.
*/
#ifndef DIFFUSE_BASE_JSON_H
#define DIFFUSE_BASE_JSON_H

#include <sqlite3ext.h>

#include "base/error.h"

struct json {
  sqlite3 *db; /* the private connection, opened by the first use */
  struct error *error;
  int (*go_on)(void *context); /* 0, with an error: interrupted. Null: not checked */
  void (*end)(void *context);  /* called after the last go_on() */
  void *context;
};

void json_close(struct json *json);

/* Checks that this SQLite has the JSON functions that are needed. */
int json_present(struct json *json);

/*
** Call take() for each member of a JSON object, or for each element of a JSON array with the keys
** '0', '1' and so on. They stop when take() returns 0, with an error of its own or without. type is
** the one that json_each() gives. A duplicate member, a number that is not finite and a zero byte
** are errors. Both functions clear the error first.
*/
typedef int json_take(void *context, const char *key, const char *type, sqlite3_value *value);
int json_members(struct json *json, const char *object, json_take *take, void *context);
int json_elements(struct json *json, const char *array, json_take *take, void *context);

/*
** The same with values as texts. Members are converted as SQLite does it, elements as texts of keys
** (sql_text.h).
*/
typedef int json_take_text(void *context, const char *key, const char *text);
int json_text_members(struct json *json, const char *object, json_take_text *take, void *context);
int json_keys(struct json *json, const char *array, json_take_text *take, void *context);

/*
** Appends a finite number with all its digits. Every version of SQLite reads and writes this form
** in the same way, so texts that contain it can be compared.
*/
void json_append_number(sqlite3_str *json, double x);

/* Appends text as a JSON string. */
void json_append_string(sqlite3_str *json, const char *text);

#endif
