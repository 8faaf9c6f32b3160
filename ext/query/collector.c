/* collector.c: see collector.h. Tests: tests/query/test_direct_questions.py */
#include "query/collector.h"

#include "query/unit_map.h"

SQLITE_EXTENSION_INIT3

/*
** dp_collect([key,] [x,] [unit]) passes the rows of a statement to the extension. The function does
** nothing unless the extension itself runs the statement, and SQLite lets no view call it.
*/
#define COLLECT      "dp_collect"
#define MOST_COLUMNS 18 /* 16 attributes of cross tables, x and the unit */

static void collect_step(sqlite3_context *context, int argc, sqlite3_value **argv) {
  struct collection *collection = ((struct collector *)sqlite3_user_data(context))->collecting;
  if (!collection || argc != collection->columns) {
    sqlite3_result_error(context, COLLECT ": for dp_release() only", -1);
    return;
  }
  if (rows_add(collection->rows, argv)) return;
  const struct unit_map *map = collection->rows->map;
  if (map && map->rc != SQLITE_OK) {
    sqlite3_result_error_code(context, map->rc);
  } else {
    sqlite3_result_error_nomem(context);
  }
}

static void collect_final(sqlite3_context *context) {
  struct collection *collection = ((struct collector *)sqlite3_user_data(context))->collecting;
  if (collection) collection->ended = 1;
  sqlite3_result_null(context);
}

int collector_run(struct collector *collector, sqlite3_stmt *statement,
                  struct collection *collection) {
  int rc;
  collection->ended = 0;
  collector->collecting = collection;
  while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
  }
  collector->collecting = 0;
  return rc == SQLITE_DONE && !collection->ended ? SQLITE_OK : rc;
}

int collector_register(struct collector *collector, void (*retain)(struct collector *collector),
                       void (*release)(void *collector)) {
  int rc = SQLITE_OK;
  for (int arity = 1; arity <= MOST_COLUMNS && rc == SQLITE_OK; arity++) {
    if (retain) retain(collector);
    /* If the registration fails, SQLite calls `release`. */
    rc = sqlite3_create_function_v2(collector->db, COLLECT, arity, SQLITE_UTF8 | SQLITE_DIRECTONLY,
                                    collector, 0, collect_step, collect_final, release);
  }
  return rc;
}
