/* json.c: see json.h. Tests: tests/functions/test_errors.py, tests/functions/test_options.py */
#include "base/json.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/own_connection.h"
#include "base/sql_text.h"
#include "os/os.h"

SQLITE_EXTENSION_INIT3

static int parser_open(struct json *json) {
  if (json->db) return 1;
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_FULLMUTEX;
  if (own_connection_open(&json->db, ":memory:", flags, 0) == SQLITE_OK) return 1;
  json_close(json);
  return error_set_memory(json->error);
}

void json_close(struct json *json) {
  sqlite3_close(json->db);
  json->db = 0;
}

static int cannot_read(struct json *json) {
  if (sqlite3_errcode(json->db) == SQLITE_NOMEM) return error_set_memory(json->error);
  return error_set(json->error, "cannot read JSON: %s", sqlite3_errmsg(json->db));
}

int json_present(struct json *json) {
  sqlite3_stmt *statement = 0;
  if (!parser_open(json)) return 0;
  int rc = sqlite3_prepare_v2(json->db, "SELECT json_extract(value, '$') FROM json_each('[]')", -1,
                              &statement, 0);
  sqlite3_finalize(statement); /* the statement was never run, so this cannot fail */
  if (rc == SQLITE_NOMEM) return error_set_memory(json->error);
  /* Advice: go-sqlite3 before SQLite 3.38 needs `-tags sqlite_json`. */
  return rc == SQLITE_OK || error_set(json->error,
                                      "this SQLite was built without the JSON functions that "
                                      "the ledger needs (%s)",
                                      sqlite3_errmsg(json->db));
}

/* Returns whether valid JSON contains an escaped zero byte. In \\u0000 the first backslash escapes
** the second, so this text contains no zero byte. */
static int has_zero_byte(const char *text) {
  for (; *text; text++) {
    if (*text != '\\') continue;
    if (strncmp(text, "\\u0000", 6) == 0) return 1;
    text++;
  }
  return 0;
}

/* Returns whether a name or text after the first bracket is in single quotes, as Python writes. */
static int has_single_quotes(const char *text) {
  text += strspn(text, " \t\r\n");
  return *text && text[1 + strspn(text + 1, " \t\r\n")] == '\'';
}

/* Checks that the text is JSON of the wanted type: json_each() has errors that help less. */
static int is_json(struct json *json, const char *text, const char *wanted) {
  static const char sql[] = "SELECT json_type(?1) = ?2, json_valid(?1)"; /* JSON5 is not valid */
  sqlite3_stmt *row = 0;
  int rc = sqlite3_prepare_v2(json->db, sql, -1, &row, 0);
  if (rc == SQLITE_OK) rc = sqlite3_bind_text(row, 1, text, -1, SQLITE_TRANSIENT);
  if (rc == SQLITE_OK) rc = sqlite3_bind_text(row, 2, wanted, -1, SQLITE_TRANSIENT);
  if (rc == SQLITE_OK) rc = sqlite3_step(row);
  int is = rc == SQLITE_ROW && sqlite3_column_int(row, 0);
  int is_malformed = rc == SQLITE_ERROR || (rc == SQLITE_ROW && !sqlite3_column_int(row, 1));
  if (rc != SQLITE_ROW && rc != SQLITE_ERROR) cannot_read(json);
  sqlite3_finalize(row); /* its error is that the text is malformed, or is recorded */
  /* Advice: Newer SQLite shells show the place: `SELECT json_error_position('…')`. */
  if (is_malformed && has_single_quotes(text))
    return error_set(json->error,
                     "malformed JSON %s (names and texts are in double quotes: '{\"clip\":5}'; in "
                     "Python, json.dumps() writes it)",
                     wanted);
  if (is_malformed)
    return error_set(json->error, "malformed JSON %s (check its quotes, commas and brackets)",
                     wanted);
  if (!is) return error_set(json->error, "malformed JSON %s", wanted);
  /* SQLite's parser would cut a name at the zero byte. */
  return !has_zero_byte(text) || error_set(json->error, "a zero byte in a JSON %s", wanted);
}

/* Calls take() for one member, with a copy of the value: SQLite's own value of a column is
** unprotected, and may only be bound or copied. */
static int hand_over(struct json *json, sqlite3_stmt *row, const char *key, json_take *take,
                     void *context) {
  sqlite3_value *value = sqlite3_value_dup(sqlite3_column_value(row, 2));
  if (!value) return error_set_memory(json->error);
  const char *type = (const char *)sqlite3_column_text(row, 1);
  int taken = type ? take(context, key, type, value) : error_set_memory(json->error);
  sqlite3_value_free(value);
  return taken;
}

/* One row for each member, with the number of times that its key occurs. */
static const char members_sql[] = "SELECT key, type, value, count(*) OVER (PARTITION BY key)"
                                  " FROM json_each(?1) ORDER BY id";
static const char table_sql[] =
    "SELECT r.key || ',' || ifnull(c.key, ''), ifnull(c.type, r.type), c.value, 1"
    " FROM json_each(?1) AS r"
    " LEFT JOIN json_each(iif(r.type IN ('array', 'object'), r.value, '[]')) AS c";

/* Calls take() for each row of a query about an "object" or an "array". */
static int take_members(struct json *json, const char *text, const char *wanted, const char *sql,
                        json_take *take, void *context) {
  sqlite3_stmt *row = 0;
  error_clear(json->error);
  if (!json_present(json) || !is_json(json, text, wanted)) return 0;
  int rc = sqlite3_prepare_v2(json->db, sql, -1, &row, 0);
  if (rc == SQLITE_OK) rc = sqlite3_bind_text(row, 1, text, -1, SQLITE_TRANSIENT);
  int going = rc == SQLITE_OK || cannot_read(json);
  while (going && (!json->go_on || json->go_on(json->context)) &&
         (rc = sqlite3_step(row)) == SQLITE_ROW) {
    const char *key = (const char *)sqlite3_column_text(row, 0);
    if (!key) {
      going = error_set_memory(json->error);
    } else if (sqlite3_column_int(row, 3) > 1) {
      going = error_set(json->error, "an option is given twice");
    } else if (sqlite3_column_type(row, 2) == SQLITE_FLOAT &&
               !isfinite(sqlite3_column_double(row, 2))) {
      going = error_set(json->error, "an option is not a finite number");
    } else {
      going = hand_over(json, row, key, take, context);
    }
  }
  if (json->end) json->end(json->context);
  if (going && rc != SQLITE_DONE) cannot_read(json);
  sqlite3_finalize(row); /* an error of the statement is already recorded */
  return going && !error_is_set(json->error);
}

static int each_member(struct json *json, const char *text, const char *wanted, const char *sql,
                       json_take *take, void *context) {
  struct number_locale before = locale_plain();
  int taken = take_members(json, text, wanted, sql, take, context);
  locale_restore(before);
  return taken;
}

int json_members(struct json *json, const char *object, json_take *take, void *context) {
  return each_member(json, object, "object", members_sql, take, context);
}

int json_elements(struct json *json, const char *array, json_take *take, void *context) {
  return each_member(json, array, "array", members_sql, take, context);
}

int json_table(struct json *json, const char *table, json_take *take, void *context) {
  return each_member(json, table, "array", table_sql, take, context);
}

/* ---- lists ----------------------------------------------------------------------------------- */

struct list {
  char **texts; /* with a null pointer after the last one */
  int count;
  const char *names;
  struct error *error;
};

static int take_element(void *context, const char *key, const char *type, sqlite3_value *value) {
  struct list *list = context;
  int used = list->count;
  (void)key;
  if (list->names && strcmp(type, "text") != 0)
    return error_set(list->error, "%s, not %s", list->names, type);
  if ((used & (used + 1)) == 0) { /* with the null pointer a power of two: the list is full */
    char **grown = sqlite3_realloc64(list->texts, sizeof *grown * 2 * ((sqlite3_uint64)used + 1));
    if (!grown) return error_set_memory(list->error);
    list->texts = grown;
  }
  list->texts[used] =
      list->names ? sqlite3_mprintf("%s", sqlite3_value_text(value)) : key_text(value);
  if (!list->texts[used]) return error_set_memory(list->error);
  list->texts[++list->count] = 0;
  return 1;
}

char **json_list(struct json *json, const char *array, const char *names, int *count) {
  struct list list = {sqlite3_malloc64(sizeof *list.texts), 0, names, json->error};
  if (list.texts) list.texts[0] = 0;
  int read =
      list.texts ? json_elements(json, array, take_element, &list) : error_set_memory(json->error);
  *count = read ? list.count : 0;
  if (read) return list.texts;
  json_list_free(list.texts);
  return 0;
}

void json_list_free(char **list) {
  for (int i = 0; list && list[i]; i++) sqlite3_free(list[i]);
  sqlite3_free(list);
}

/* ---- writing --------------------------------------------------------------------------------- */

void json_append_number(sqlite3_str *json, double x) {
  sqlite3_str_appendall(json, NUMBER_TEXT(x));
}

void json_append_string(sqlite3_str *json, const char *text) {
  sqlite3_str_appendchar(json, 1, '"');
  for (; *text; text++) {
    if (*text == '"' || *text == '\\') sqlite3_str_appendchar(json, 1, '\\');
    if ((unsigned char)*text < 0x20) {
      sqlite3_str_appendf(json, "\\u%04x", *text);
    } else {
      sqlite3_str_appendchar(json, 1, *text);
    }
  }
  sqlite3_str_appendchar(json, 1, '"');
}

int text_order(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

char *json_texts(char *const *texts, int count) {
  sqlite3_str *json = sqlite3_str_new(0);
  sqlite3_str_appendall(json, "[");
  for (int i = 0; i < count; i++) {
    sqlite3_str_appendall(json, i ? "," : "");
    json_append_string(json, texts[i]);
  }
  sqlite3_str_appendall(json, "]");
  return sqlite3_str_finish(json);
}
