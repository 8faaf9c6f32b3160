/*
** wider_units.c: see wider_units.h.
** Tests: tests/ledger/test_within.py
*/
#include "query/wider_units.h"

#include <stdlib.h>

#include "query/loops.h"

SQLITE_EXTENSION_INIT3

static int has_changed(const struct ledger_wider *wider, const char *what, struct error *error) {
  return error_set(
      error,
      "table '%s', which says to which '%s' a unit belongs, %s (undo this, or declare "
      "what took its place with dp_within('%w', 'table', 'column', %.15g); nothing was "
      "charged or read)",
      wider->table, wider->name, what, wider->name, wider->factor);
}

/* Checks the schema, and finds the column. */
static int check_schema(struct wider_units *wider, const struct ledger_policy *policy,
                        const struct table_column *unit, struct error *error) {
  const struct ledger_declaration *declared = ledger_policy_find(policy, policy->wider.table);
  struct error gone = {0};
  if (!declared || !route_find(&wider->route, wider->db, policy, declared, &gone)) {
    int is_memory = error_is_memory(&gone);
    error_clear(&gone);
    return is_memory ? error_set_memory(error) : has_changed(&policy->wider, "is gone", error);
  }
  const struct table_facts *facts = &wider->route.tables[0];
  wider->column = table_column_find(facts, policy->wider.column);
  if (wider->column < 0) return has_changed(&policy->wider, "has lost this column", error);
  if (facts->columns[wider->column].is_virtual)
    return has_changed(&policy->wider, "computes this column when it is read", error);
  if (!route_is_single(&wider->route))
    return has_changed(&policy->wider, "may have several rows of a unit", error);
  const struct table_facts *last = &wider->route.tables[wider->route.count - 1];
  const struct table_column *own = &last->columns[wider->route.unit];
  return (own->affinity == unit->affinity && own->collation == unit->collation) ||
         error_set(error,
                   "columns '%s' and '%s' name units and compare differently (give both the same "
                   "type and collation)",
                   own->name, unit->name);
}

static int check_columns(const struct wider_units *wider, struct error *error) {
  const struct table_facts *facts = &wider->route.tables[0];
  unsigned char *used = calloc((size_t)facts->count, 1);
  if (!used) return error_set_memory(error);
  used[wider->column] = 1;
  int safe = safe_columns_check(wider->db, &wider->route, used, error);
  free(used);
  return safe;
}

static int prepare(struct wider_units *wider, struct error *error) {
  const struct table_facts *facts = &wider->route.tables[0];
  sqlite3_str *sql = sqlite3_str_new(0);
  sqlite3_str_appendall(sql, "SELECT ");
  route_append_unit(sql, &wider->route);
  sqlite3_str_appendf(sql, ", t0.\"%w\"", facts->columns[wider->column].name);
  route_append_from(sql, &wider->route);
  char *text = sqlite3_str_finish(sql);
  int prepared = unit_loop_prepare(wider->db, text, 2, "", &wider->row, error);
  sqlite3_free(text);
  return prepared;
}

int wider_units_open(struct wider_units *wider, sqlite3 *db, const struct ledger_policy *policy,
                     const struct table_column *unit, struct error *error) {
  *wider = (struct wider_units){.db = db};
  return !policy->wider.name || (check_schema(wider, policy, unit, error) &&
                                 check_columns(wider, error) && prepare(wider, error));
}

void wider_units_close(struct wider_units *wider) {
  sqlite3_finalize(wider->row); /* its errors have been reported */
  route_clear(&wider->route);
  households_close(wider->households);
  *wider = (struct wider_units){0};
}

/* Notes the wider unit of one unit. Returns 0 when out of memory. */
static int note(const struct wider_units *wider, struct rows *rows) {
  const struct table_facts *first = &wider->route.tables[0];
  const struct table_facts *last = &wider->route.tables[wider->route.count - 1];
  enum collation collations[] = {last->columns[wider->route.unit].collation,
                                 first->columns[wider->column].collation};
  struct identity found[2];
  for (int i = 0; i < 2; i++) {
    if (sqlite3_column_type(wider->row, i) == SQLITE_NULL) return 1;
    /* The value is protected, as in unit_loop.c: the function that asks holds the mutex. */
    if (!rows_give_unit(rows, sqlite3_column_value(wider->row, i), collations[i])) return 0;
    found[i] = rows->given;
  }
  return households_put(wider->households, found[0], found[1]);
}

int wider_units_read(struct wider_units *wider, struct rows *rows, const char *after,
                     struct error *error) {
  if (!wider->row) return 1;
  households_close(wider->households);
  wider->households = households_open(rows->secret);
  int rc = SQLITE_ROW, noted = wider->households != 0;
  while (noted && (rc = sqlite3_step(wider->row)) == SQLITE_ROW) noted = note(wider, rows);
  if (noted && rc != SQLITE_DONE)
    error_set(error, "the query failed: %s%s", sqlite3_errmsg(wider->db), after);
  sqlite3_reset(wider->row); /* the error has been reported */
  if (!noted) return error_set(error, "out of memory%s", after);
  rows_use_households(rows, wider->households);
  return rc == SQLITE_DONE;
}
