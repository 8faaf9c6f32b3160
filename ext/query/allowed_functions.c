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
** Tests: tests/query/test_question_rules.py
*/
#include "query/allowed_functions.h"

#include <string.h>

#include "query/interrupts.h"

SQLITE_EXTENSION_INIT3

/*
** SAFE: the function raises no error for any arguments. MAY_FAIL: the function may raise an error.
** JSON: a JSON function, which may raise an error, too.
*/
enum { MAY_FAIL, SAFE, JSON };

/*
** The list is sorted by name. SQLite before 3.38 reports its JSON functions as functions of an
** extension.
*/
static const struct {
  const char *name;
  int trait;
} list[] = {
    {"->", JSON},
    {"->>", JSON},
    {"abs", MAY_FAIL},
    {"acos", SAFE},
    {"acosh", SAFE},
    {"asin", SAFE},
    {"asinh", SAFE},
    {"atan", SAFE},
    {"atan2", SAFE},
    {"atanh", SAFE},
    {"avg", MAY_FAIL},
    {"ceil", SAFE},
    {"ceiling", SAFE},
    {"char", MAY_FAIL},
    {"coalesce", SAFE},
    {"concat", MAY_FAIL},
    {"concat_ws", MAY_FAIL},
    {"cos", SAFE},
    {"cosh", SAFE},
    {"count", MAY_FAIL},
    {"cume_dist", MAY_FAIL},
    {"current_date", MAY_FAIL},
    {"current_time", MAY_FAIL},
    {"current_timestamp", MAY_FAIL},
    {"date", MAY_FAIL},
    {"datetime", MAY_FAIL},
    {"degrees", SAFE},
    {"dense_rank", MAY_FAIL},
    {"exp", SAFE},
    {"first_value", MAY_FAIL},
    {"floor", SAFE},
    {"format", MAY_FAIL},
    {"glob", MAY_FAIL},
    {"group_concat", MAY_FAIL},
    {"hex", MAY_FAIL},
    {"if", SAFE},
    {"ifnull", SAFE},
    {"iif", SAFE},
    {"instr", MAY_FAIL},
    {"json", JSON},
    {"json_array", JSON},
    {"json_array_length", JSON},
    {"json_error_position", JSON},
    {"json_extract", JSON},
    {"json_group_array", JSON},
    {"json_group_object", JSON},
    {"json_object", JSON},
    {"json_patch", JSON},
    {"json_pretty", JSON},
    {"json_quote", JSON},
    {"json_remove", JSON},
    {"json_replace", JSON},
    {"json_type", JSON},
    {"json_valid", JSON},
    {"julianday", MAY_FAIL},
    {"lag", MAY_FAIL},
    {"last_value", MAY_FAIL},
    {"lead", MAY_FAIL},
    {"length", SAFE},
    {"like", MAY_FAIL},
    {"likelihood", SAFE},
    {"likely", SAFE},
    {"ln", SAFE},
    {"log", SAFE},
    {"log10", SAFE},
    {"log2", SAFE},
    {"lower", MAY_FAIL},
    {"ltrim", MAY_FAIL},
    {"max", MAY_FAIL},
    {"median", MAY_FAIL},
    {"min", MAY_FAIL},
    {"mod", SAFE},
    {"nth_value", MAY_FAIL},
    {"ntile", MAY_FAIL},
    {"nullif", SAFE},
    {"octet_length", SAFE},
    {"percent_rank", MAY_FAIL},
    {"percentile", MAY_FAIL},
    {"percentile_cont", MAY_FAIL},
    {"percentile_disc", MAY_FAIL},
    {"pi", SAFE},
    {"pow", SAFE},
    {"power", SAFE},
    {"printf", MAY_FAIL},
    {"quote", MAY_FAIL},
    {"radians", SAFE},
    {"rank", MAY_FAIL},
    {"replace", MAY_FAIL},
    {"round", SAFE},
    {"row_number", MAY_FAIL},
    {"rtrim", MAY_FAIL},
    {"sign", SAFE},
    {"sin", SAFE},
    {"sinh", SAFE},
    {"sqlite_version", MAY_FAIL},
    {"sqrt", SAFE},
    {"strftime", MAY_FAIL},
    {"string_agg", MAY_FAIL},
    {"substr", MAY_FAIL},
    {"substring", MAY_FAIL},
    {"sum", MAY_FAIL},
    {"tan", SAFE},
    {"tanh", SAFE},
    {"time", MAY_FAIL},
    {"timediff", MAY_FAIL},
    {"total", MAY_FAIL},
    {"trim", MAY_FAIL},
    {"trunc", SAFE},
    {"typeof", SAFE},
    {"unhex", MAY_FAIL},
    {"unicode", SAFE},
    {"unistr", MAY_FAIL},
    {"unixepoch", MAY_FAIL},
    {"unlikely", SAFE},
    {"upper", MAY_FAIL},
    {"zeroblob", MAY_FAIL},
};
#define LIST_COUNT ((int)(sizeof list / sizeof *list))

static int place_of(const char *name) {
  for (int low = 0, high = LIST_COUNT; low < high;) {
    int middle = (low + high) / 2, order = sqlite3_stricmp(list[middle].name, name);
    if (order == 0) return middle;
    if (order < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return -1;
}

int allowed_functions_read(struct allowed_functions *functions, sqlite3 *db) {
  unsigned char replaced[MOST_FUNCTIONS] = {0};
  sqlite3_stmt *row = 0;
  int old = sqlite3_libversion_number() < 3038000;
  memset(functions, 0, sizeof *functions);
  sqlite3_prepare_v2(db, "PRAGMA function_list", -1, &row, 0);
  while (sqlite3_step(row) == SQLITE_ROW) {
    const char *name = (const char *)sqlite3_column_text(row, 0);
    int place = name ? place_of(name) : -1;
    if (place < 0) continue;
    if (sqlite3_column_int(row, 1) || (old && list[place].trait == JSON)) {
      functions->own[place] = 1;
    } else {
      replaced[place] = 1;
    }
  }
  for (int i = 0; i < LIST_COUNT; i++)
    if (replaced[i]) functions->own[i] = 0;
  int rc = row ? sqlite3_finalize(row) : sqlite3_errcode(db);
  if (rc != SQLITE_OK) interrupt_pass_on(db);
  return rc;
}

int function_is_allowed(const struct allowed_functions *functions, const char *name) {
  int place = place_of(name);
  return place >= 0 && functions->own[place];
}

int function_is_safe(const struct allowed_functions *functions, const char *name) {
  int place = place_of(name);
  return place >= 0 && functions->own[place] && list[place].trait == SAFE;
}
