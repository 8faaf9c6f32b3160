/*
** guest_tables.c: the tables of a guarded connection besides the public tables: those of this
** extension, and SQLite's json_each and json_tree. dp_guard() removes all virtual tables from the
** connection (tier_guard.c), and SQLite has no function to register its own tables again. These two
** tables therefore read those of a private connection in memory.
** Tests: tests/functions/test_guard.py, tests/functions/test_guard_secrecy.py
*/
#include "base/row_table.h"
#include "functions/functions.h"
#include "functions/host.h"

SQLITE_EXTENSION_INIT3

#define COLUMNS "key, value, type, atom, id, parent, fullkey, path"
#define COUNT   8

/* The context of a JSON table. */
struct json_table {
  const char *name;
  sqlite3 *db; /* the private connection */
};

/* Without the first argument, the table has no rows. */
static int fill(struct row_list *rows, void *context, sqlite3_value *const *arguments,
                struct error *error) {
  const struct json_table *table = context;
  sqlite3_stmt *row = 0;
  if (!arguments[0]) return 1;
  char *sql =
      sqlite3_mprintf("SELECT " COLUMNS " FROM %s(?1%s)", table->name, arguments[1] ? ", ?2" : "");
  int rc = sql ? sqlite3_prepare_v2(table->db, sql, -1, &row, 0) : SQLITE_NOMEM, going = 1;
  sqlite3_free(sql);
  for (int i = 0; i < 2 && rc == SQLITE_OK; i++)
    if (arguments[i]) rc = sqlite3_bind_value(row, i + 1, arguments[i]);
  if (rc == SQLITE_OK) rc = SQLITE_ROW;
  while (going && rc == SQLITE_ROW && (rc = sqlite3_step(row)) == SQLITE_ROW)
    for (int i = 0; i < COUNT && going; i++)
      going = row_value(rows, sqlite3_value_dup(sqlite3_column_value(row, i)));
  if (rc == SQLITE_NOMEM) error_set_memory(error);
  if (rc != SQLITE_ROW && rc != SQLITE_DONE) error_set(error, "%s", sqlite3_errmsg(table->db));
  sqlite3_finalize(row); /* the error of a step has been reported */
  return !error_is_set(error);
}

static void forget(void *context) {
  sqlite3_close_v2(((struct json_table *)context)->db);
  sqlite3_free(context);
}

static int json_table_register(sqlite3 *db, const char *name) {
  struct row_table described = {.name = name,
                                .columns = COLUMNS ", json HIDDEN, root HIDDEN",
                                .count = COUNT,
                                .first = COUNT,
                                .most = 2,
                                .is_sqlites = 1,
                                .option = SQLITE_VTAB_INNOCUOUS,
                                .estimate = 100,
                                .cost = 100,
                                .fill = fill};
  struct json_table *table = sqlite3_malloc(sizeof *table);
  if (!table) return SQLITE_NOMEM;
  *table = (struct json_table){.name = name};
  int rc = sqlite3_open_v2(":memory:", &table->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, 0);
  if (rc == SQLITE_OK) return row_table_register(db, &described, table, forget);
  forget(table);
  return rc;
}

int guest_tables_register(sqlite3 *db, struct host *host) {
  static const struct row_table *const tables[] = {&answer_table, &column_table, &cross_table_table,
                                                   &span_table};
  int rc = tables_register(db, host);
  for (size_t i = 0; i < sizeof tables / sizeof *tables && rc == SQLITE_OK; i++)
    rc = row_table_register(db, tables[i], host_retain(host), host_release_pointer);
  if (rc == SQLITE_OK) rc = host->register_others(db);
  if (rc == SQLITE_OK) rc = json_table_register(db, "json_each");
  return rc == SQLITE_OK ? json_table_register(db, "json_tree") : rc;
}
