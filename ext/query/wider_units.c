/* wider_units.c: reads which wider unit, such as a household, each unit belongs to (dp_within). The
** table that declares it has one row for each unit, which names the wider unit in a column. A unit
** without a row, or with NULL, is a wider unit of its own.
** Tests: tests/ledger/test_within.py */
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
  if (!declared || !route_find(&wider->route, wider->collector->db, policy, declared, &gone)) {
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
  int safe = safe_columns_check(wider->collector->db, &wider->route, used, error);
  free(used);
  return safe;
}

static int is_left_out(const char *after, struct error *error) {
  return error_set(
      error, "an authorizer of the host leaves out dp_collect() (let the extension read)%s", after);
}

static int prepare(struct wider_units *wider, struct error *error) {
  const struct table_facts *facts = &wider->route.tables[0];
  if (!column_is_shown(wider->collector->db, "SELECT dp_collect(1, 1)", "SELECT NULL"))
    return is_left_out("", error);
  sqlite3_str *sql = sqlite3_str_new(0);
  sqlite3_str_appendall(sql, "SELECT dp_collect(");
  route_append_unit(sql, &wider->route);
  sqlite3_str_appendf(sql, ", t0.\"%w\")", facts->columns[wider->column].name);
  route_append_from(sql, &wider->route);
  char *text = sqlite3_str_finish(sql);
  int prepared = unit_loop_prepare(wider->collector->db, text, 1, "", &wider->row, error);
  sqlite3_free(text);
  return prepared;
}

int wider_units_open(struct wider_units *wider, struct collector *collector,
                     const struct ledger_policy *policy, const struct table_column *unit,
                     struct error *error) {
  *wider = (struct wider_units){.collector = collector};
  return !policy->wider.name || (check_schema(wider, policy, unit, error) &&
                                 check_columns(wider, error) && prepare(wider, error));
}

void wider_units_close(struct wider_units *wider) {
  sqlite3_finalize(wider->row); /* its errors have been reported */
  route_clear(&wider->route);
  households_close(wider->households);
  *wider = (struct wider_units){0};
}

/* The destination of the rows of the table. */
struct noting {
  struct collection collection;
  struct households *households;
  enum collation collations[2]; /* of the unit, and of the wider unit */
};

/* Notes the wider unit of one unit. Returns 0 when out of memory. */
static int note(struct collection *collection, sqlite3_value **row) {
  const struct noting *noting = (const struct noting *)collection;
  struct rows *rows = collection->rows;
  struct identity found[2];
  for (int i = 0; i < 2; i++) {
    if (sqlite3_value_type(row[i]) == SQLITE_NULL) return 1;
    if (!rows_give_unit(rows, row[i], noting->collations[i])) return 0;
    found[i] = rows->given;
  }
  return households_put(noting->households, found[0], found[1]);
}

int wider_units_read(struct wider_units *wider, struct rows *rows, const char *after,
                     struct error *error) {
  if (!wider->row) return 1;
  const struct table_facts *last = &wider->route.tables[wider->route.count - 1];
  const struct table_facts *first = &wider->route.tables[0];
  households_close(wider->households);
  wider->households = households_open(rows->secret);
  if (!wider->households) return error_set(error, "out of memory%s", after);
  struct noting noting = {
      {.rows = rows, .take = note, .columns = 2},
      wider->households,
      {last->columns[wider->route.unit].collation, first->columns[wider->column].collation}};
  int rc = collector_run(wider->collector, wider->row, &noting.collection);
  if (rc == SQLITE_OK) is_left_out(after, error);
  if (rc != SQLITE_OK && rc != SQLITE_DONE)
    error_set(error, "the query failed: %s%s", sqlite3_errmsg(wider->collector->db), after);
  sqlite3_reset(wider->row); /* the error has been reported */
  rows_use_households(rows, wider->households);
  return rc == SQLITE_DONE;
}
