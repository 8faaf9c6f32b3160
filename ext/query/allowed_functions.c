/*
** allowed_functions.c: see allowed_functions.h.
**
** The list is fixed. According to SQLite's documentation, the result of each listed function
** depends only on its arguments and, for functions such as date(), on the current time. In an
** evaluator, the time is fixed (private_memory.h). The list leaves out functions that use random
** numbers, report about other statements or have side effects. It also leaves out json_insert() and
** json_set(), which recurse once for each step of a path in SQLite up to 3.46 at least: a long path
** that is made from a row would overflow the stack and end the process. Functions of an application
** are not allowed, even under a listed name: an extension that is loaded for every connection may
** have replaced a function of SQLite.
** Tests: tests/query/test_question_rules.py, tests/query/test_question_dialect.py
*/
#include "query/allowed_functions.h"

#include <stdlib.h>
#include <string.h>

#include "query/limits.h"

SQLITE_EXTENSION_INIT3

/* ---- the lists, each sorted by name ---------------------------------------------------------- */

/* These functions raise no error for any arguments. */
static const char *const safe[] = {
    "acos",    "acosh",    "asin",    "asinh",        "atan",    "atan2", "atanh", "ceil",
    "ceiling", "coalesce", "cos",     "cosh",         "degrees", "exp",   "floor", "if",
    "ifnull",  "iif",      "length",  "likelihood",   "likely",  "ln",    "log",   "log10",
    "log2",    "mod",      "nullif",  "octet_length", "pi",      "pow",   "power", "radians",
    "round",   "sign",     "sin",     "sinh",         "sqrt",    "tan",   "tanh",  "trunc",
    "typeof",  "unicode",  "unlikely"};

/* The others may raise an error. */
static const char *const plain[] = {
    "abs",    "char",      "concat", "concat_ws", "format", "glob",    "hex",     "instr",
    "like",   "lower",     "ltrim",  "printf",    "quote",  "replace", "rtrim",   "sqlite_version",
    "substr", "substring", "trim",   "unhex",     "unistr", "upper",   "zeroblob"};
static const char *const dates[] = {"current_date", "current_time", "current_timestamp", "date",
                                    "datetime",     "julianday",    "strftime",          "time",
                                    "timediff",     "unixepoch"};
static const char *const aggregates[] = {
    "avg",        "count",           "group_concat",    "max",        "median", "min",
    "percentile", "percentile_cont", "percentile_disc", "string_agg", "sum",    "total"};
static const char *const windows[] = {"cume_dist",    "dense_rank", "first_value", "lag",
                                      "last_value",   "lead",       "nth_value",   "ntile",
                                      "percent_rank", "rank",       "row_number"};
static const char *const json[] = {"json_array",   "json_array_length", "json_error_position",
                                   "json_extract", "json_group_array",  "json_group_object",
                                   "json_object",  "json_patch",        "json_pretty",
                                   "json_quote",   "json_remove",       "json_replace",
                                   "json_type",    "json_valid"};
static const char *const json_operators[] = {"->", "->>", "json"};

#define LIST(list) list, sizeof(list) / sizeof *(list)

static const struct list {
  const char *const *names;
  size_t count;
  int is_safe, is_json;
} lists[] = {{LIST(safe), 1, 0},          {LIST(plain), 0, 0},   {LIST(dates), 0, 0},
             {LIST(aggregates), 0, 0},    {LIST(windows), 0, 0}, {LIST(json), 0, 1},
             {LIST(json_operators), 0, 1}};
#define LISTS (sizeof lists / sizeof *lists)

static int by_name(const void *name, const void *listed) {
  return sqlite3_stricmp(name, *(const char *const *)listed);
}

/* Returns the number of a function and sets *list to its list, or returns -1. */
static int number_of(const char *name, const struct list **list) {
  size_t before = 0;
  for (*list = lists; *list < lists + LISTS; before += (*list)++->count) {
    const char *const *found =
        bsearch(name, (*list)->names, (*list)->count, sizeof *(*list)->names, by_name);
    if (found) return (int)before + (int)(found - (*list)->names);
  }
  return -1;
}

int allowed_functions_read(struct allowed_functions *functions, sqlite3 *db) {
  const struct list *list;
  unsigned char replaced[MOST_FUNCTIONS] = {0};
  sqlite3_stmt *row = 0;
  int old = sqlite3_libversion_number() < 3038000;
  memset(functions, 0, sizeof *functions);
  sqlite3_prepare_v2(db, "PRAGMA function_list", -1, &row, 0);
  while (sqlite3_step(row) == SQLITE_ROW) {
    const char *name = (const char *)sqlite3_column_text(row, 0);
    int number = name ? number_of(name, &list) : -1;
    if (number < 0) continue;
    /* SQLite before 3.38 reports its JSON functions as functions of an extension. */
    if (sqlite3_column_int(row, 1) || (old && list->is_json)) {
      functions->own[number] = 1;
    } else {
      replaced[number] = 1;
    }
  }
  for (int i = 0; i < MOST_FUNCTIONS; i++)
    if (replaced[i]) functions->own[i] = 0;
  int rc = row ? sqlite3_finalize(row) : sqlite3_errcode(db);
  if (rc != SQLITE_OK) interrupt_pass_on(db);
  return rc;
}

int function_is_allowed(const struct allowed_functions *functions, const char *name) {
  const struct list *list;
  int number = number_of(name, &list);
  return number >= 0 && functions->own[number];
}

int function_is_safe(const struct allowed_functions *functions, const char *name) {
  const struct list *list;
  int number = number_of(name, &list);
  return number >= 0 && functions->own[number] && list->is_safe;
}

void function_note(struct allowed_functions *used, const char *name) {
  const struct list *list;
  int number = number_of(name, &list);
  if (number >= 0) used->own[number] = 1;
}

const char *functions_replaced(const struct allowed_functions *used,
                               const struct allowed_functions *other) {
  int number = 0;
  for (const struct list *list = lists; list < lists + LISTS; list++)
    for (size_t i = 0; i < list->count; i++, number++)
      if (used->own[number] && !other->own[number]) return list->names[i];
  return 0;
}
