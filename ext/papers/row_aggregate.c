/* row_aggregate.c: see row_aggregate.h. Tests: tests/papers/test_papers_tables.py */
#include "papers/row_aggregate.h"

#include <stdint.h>

#include "base/scalar.h"

SQLITE_EXTENSION_INIT3

int function_memory(sqlite3_context *context) {
  sqlite3_result_error_nomem(context);
  return 0;
}

static void add_row(sqlite3_context *context, int count, sqlite3_value **arguments) {
  const struct row_aggregate *aggregate = sqlite3_user_data(context);
  int *failed = sqlite3_aggregate_context(context, (int)aggregate->size);
  if (!failed) {
    function_memory(context);
  } else if (!*failed) {
    *failed = !aggregate->add(context, failed, count, arguments);
  }
}

int aggregate_register(sqlite3 *db, const struct row_aggregate *aggregate) {
  int rc = SQLITE_OK;
  /* The data is constant, and SQLite never writes through this pointer. */
  void *data = (void *)(uintptr_t)aggregate;
  for (int arity = aggregate->least; arity <= aggregate->most && rc == SQLITE_OK; arity++)
    rc = sqlite3_create_function_v2(db, aggregate->name, arity, PURE, data, 0, add_row,
                                    aggregate->final, 0);
  return rc;
}
