/* asked_statement.c: see asked_statement.h. Tests: tests/query/test_asked.py */
#include "query/asked_statement.h"

#include <string.h>

#include "base/sql_text.h"
#include "release/kinds.h"

SQLITE_EXTENSION_INIT3

char *statement_with_values(sqlite3_stmt *statement) {
  if (sqlite3_bind_parameter_count(statement)) return sqlite3_expanded_sql(statement);
  return sqlite3_mprintf("%s", sqlite3_sql(statement));
}

/* ---- the name in options --------------------------------------------------------------------- */

static int take_name(void *context, const char *key, const char *type, sqlite3_value *value) {
  char **name = context;
  if (strcmp(key, "name") != 0 || strcmp(type, "text") != 0) return 1;
  sqlite3_free(*name);
  *name = sqlite3_mprintf("%s", (const char *)sqlite3_value_text(value));
  return *name != 0;
}

/*
** Returns the name in the text from `sql` to `end`, which is in single quotes and holds JSON
** options. Returns null if there is none, or with an error of the JSON reader.
*/
static char *name_in_options(const char *sql, const char *end, struct json *json) {
  sqlite3_str *text = sqlite3_str_new(0);
  for (sql++; sql < end - 1; sql += 1 + (*sql == '\'')) sqlite3_str_append(text, sql, 1);
  if (sqlite3_str_errcode(text) != SQLITE_OK) error_set_memory(json->error);
  char *options = sqlite3_str_finish(text), *name = 0;
  int is_object = options && options[strspn(options, " \t\r\n")] == '{';
  if (is_object && !json_members(json, options, take_name, &name)) {
    error_set_memory(json->error); /* unless another error is set */
    sqlite3_free(name);
    name = 0;
  }
  sqlite3_free(options);
  return name;
}

/* ---- the text -------------------------------------------------------------------------------- */

/* The call that is being read. */
struct call {
  const struct aggregate *aggregate; /* null outside of calls */
  int depth;                         /* the parentheses that are open */
  int argument;                      /* the place of the argument */
  int is_fresh;                      /* the argument has no token yet */
};

/* Returns whether a call is inside its tier or a parameter. */
static int is_in_parameter(const struct call *call) {
  if (!call->aggregate || !call->depth) return 0;
  int is_parameter = call->argument == 0;
  for (int i = 0; i < PARAMETERS; i++)
    is_parameter |= call->aggregate->places.parameters[i] == call->argument;
  return is_parameter;
}

struct writer {
  sqlite3_str *text;
  char last; /* the last character of the text; 0: none */
};

/* Returns whether a character belongs to an operator, such as < or |. */
static int is_of_operator(char character) {
  return character && strchr("+-*/%&|<>=!~", character) != 0;
}

/*
** Appends a token. Blanks do not depend on those in the statement, except between two characters of
** operators: a blank divides "< -" into two operators.
*/
static void write_token(struct writer *writer, const char *token, int size, int has_blank) {
  char last = writer->last, first = *token;
  int is_call = first == '(' && !is_of_operator(last) && last != ',';
  int is_joined = !last || strchr("(.", last) || strchr(",).;", first) || is_call;
  int is_same_operator = is_of_operator(last) && is_of_operator(first) && !has_blank;
  if (!is_joined && !is_same_operator) sqlite3_str_appendall(writer->text, " ");
  sqlite3_str_append(writer->text, token, size);
  writer->last = token[size - 1];
}

/*
** Writes a token of a call. In place of the tier and of parameters it writes a question mark, and
** in place of options their name.
*/
static void write_of_call(struct writer *writer, struct call *call, const char *sql,
                          const char *end, int has_blank, struct json *json) {
  const struct call before = *call;
  int opens = *sql == '(' && call->depth == 0, divides = *sql == ',' && call->depth == 1;
  call->depth += (*sql == '(') - (*sql == ')');
  call->argument += divides;
  call->is_fresh = opens || divides;
  if (call->depth == 0) call->aggregate = 0;
  if (is_in_parameter(&before) && call->aggregate && call->argument == before.argument) return;
  int is_name = *sql == '\'' && before.is_fresh && before.depth == 1 &&
                before.argument == before.aggregate->places.name && *sql_skip_space(end) == ')';
  char *name = is_name ? name_in_options(sql, end, json) : 0;
  char *quoted = name ? sqlite3_mprintf("%Q", name) : 0;
  if (name && !quoted) error_set_memory(json->error);
  if (quoted) {
    write_token(writer, quoted, (int)strlen(quoted), has_blank);
  } else {
    write_token(writer, sql, (int)(end - sql), has_blank);
  }
  if (call->is_fresh && is_in_parameter(call)) write_token(writer, "?", 1, 1);
  sqlite3_free(quoted);
  sqlite3_free(name);
}

char *asked_statement(const char *sql, struct json *json) {
  struct writer writer = {sqlite3_str_new(0), 0};
  struct call call = {0, 0, 0, 0};
  int has_blank = 0;
  for (sql = sql_skip_space(sql); *sql && !error_is_set(json->error);) {
    const char *end = sql_token_end(sql), *next = sql_skip_space(end);
    int is_called = !call.aggregate && *next == '(';
    if (!call.aggregate) call = (struct call){0, 0, 0, 0};
    if (is_called) call.aggregate = aggregate_called(sql, (size_t)(end - sql));
    if (call.aggregate && (call.depth || *sql == '(')) { /* after its name */
      write_of_call(&writer, &call, sql, end, has_blank, json);
    } else {
      write_token(&writer, sql, (int)(end - sql), has_blank);
    }
    has_blank = next > end;
    sql = next;
  }
  char *whole = sqlite3_str_finish(writer.text);
  char *trimmed = whole && !error_is_set(json->error) ? query_trimmed(whole) : 0;
  sqlite3_free(whole);
  if (!trimmed) error_set_memory(json->error);
  return trimmed;
}
