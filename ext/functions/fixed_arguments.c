/*
** fixed_arguments.c: see fixed_arguments.h.
** Tests: tests/query/test_loop_proof.py, tests/functions/test_aggregate_form.py
*/
#include "functions/fixed_arguments.h"

#include <string.h>

SQLITE_EXTENSION_INIT3

int fixed_arguments_keep(struct fixed_arguments *constants, int argc, sqlite3_value **argv,
                         unsigned of_row) {
  for (int i = 0; i < argc; i++) {
    if (of_row & 1u << i) continue;
    constants->values[i] = sqlite3_value_dup(argv[i]);
    if (!constants->values[i]) return 0;
  }
  return 1;
}

static int same_value(sqlite3_value *a, sqlite3_value *b) {
  int type = sqlite3_value_type(a);
  if (type != sqlite3_value_type(b)) return 0;
  if (type == SQLITE_INTEGER) return sqlite3_value_int64(a) == sqlite3_value_int64(b);
  if (type == SQLITE_FLOAT) return sqlite3_value_double(a) == sqlite3_value_double(b);
  if (type == SQLITE_NULL) return 1;
  /* Compare texts as UTF-8, because SQLite may have converted one text to another encoding. */
  int text = type == SQLITE_TEXT;
  const void *p = text ? sqlite3_value_text(a) : sqlite3_value_blob(a);
  const void *q = text ? sqlite3_value_text(b) : sqlite3_value_blob(b);
  int size = sqlite3_value_bytes(a);
  return size == sqlite3_value_bytes(b) &&
         (size == 0 || (p && q && memcmp(p, q, (size_t)size) == 0));
}

int fixed_arguments_same(const struct fixed_arguments *constants, int argc, sqlite3_value **argv) {
  for (int i = 0; i < argc; i++) {
    if (constants->values[i] && !same_value(constants->values[i], argv[i])) return 0;
  }
  return 1;
}

void fixed_arguments_free(struct fixed_arguments *constants) {
  for (int i = 0; i < MAX_ARGUMENTS; i++) sqlite3_value_free(constants->values[i]);
}
