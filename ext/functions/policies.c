/* policies.c: dp_protect() and dp_public(), which declare the unit of each row and the public
** tables, dp_within(), which declares the wider unit, dp_undeclare(), which takes a declaration
** back, and dp_policy_plan, which lists the declarations that follow from foreign keys.
** Tests: tests/ledger/test_policy.py */
#include <math.h>
#include <string.h>

#include "base/sql_functions.h"
#include "base/sql_text.h"
#include "functions/internal.h"
#include "ledger/ledger.h"
#include "query/query.h"

SQLITE_EXTENSION_INIT3

/* ---- checks ---------------------------------------------------------------------------------- */

/* Checks that the unit columns of all protected tables have the same type and collation. Otherwise
** two spellings of one unit could count as two units. */
static int check_alike(sqlite3 *db, const struct ledger_policy *policy, const struct route *route,
                       struct error *error) {
  const struct table_facts *facts = &route->tables[0];
  const struct table_column *unit = &facts->columns[route->unit];
  int going = 1;
  for (int i = 0; i < policy->count && going; i++) {
    const struct ledger_declaration *other = &policy->list[i];
    struct table_facts theirs;
    if (other->role != POLICY_PROTECTED || other->parent || !other->unit_column ||
        sqlite3_stricmp(other->table, facts->name) == 0)
      continue;
    int found = table_facts_find(&theirs, db, other->table, error); /* 0: it was dropped */
    int place = found > 0 ? table_column_find(&theirs, other->unit_column) : -1;
    going = found >= 0;
    const struct table_column *column = place >= 0 ? &theirs.columns[place] : unit;
    if (column->affinity != unit->affinity || column->collation != unit->collation)
      going = error_set(error,
                        "%s.%s (%s, %s) and %s.%s (%s, %s) compare differently, so that one unit "
                        "could be two (give both columns the same type and collation)",
                        theirs.name, column->name, affinity_type(column->affinity),
                        collation_name(column->collation), facts->name, unit->name,
                        affinity_type(unit->affinity), collation_name(unit->collation));
    table_facts_clear(&theirs);
  }
  return going;
}

/* Checks the number of names that dp_protect() got. */
static int check_protection(const struct ledger *ledger, const struct ledger_declaration *asked,
                            struct error *error) {
  int by_unit = ledger_protects(ledger) == LEDGER_UNITS;
  if (by_unit && !asked->unit_column)
    return error_set(error, "the ledger protects units: name the column of the unit, as in "
                            "dp_protect('visit', 'patient_id')");
  if (!by_unit && asked->unit_column)
    return error_set(error, "the ledger protects rows, and each row is a unit: dp_protect('%s')",
                     asked->table);
  return 1;
}

/* Checks that main has a table. Otherwise asks whether the nearest one was meant. */
static int check_table(sqlite3 *db, const char *table, struct error *error) {
  struct known_names known = {.asked = table};
  sqlite3_stmt *row = 0;
  int found = 0;
  if (sqlite3_prepare_v2(db, "SELECT name FROM main.sqlite_master WHERE type IN ('table', 'view')",
                         -1, &row, 0) == SQLITE_OK)
    while (!found && sqlite3_step(row) == SQLITE_ROW) {
      const char *name = (const char *)sqlite3_column_text(row, 0);
      found = name && sqlite3_stricmp(name, table) == 0;
      if (name) known_names_add(&known, name);
    }
  int rc = sqlite3_finalize(row);
  if (found || rc != SQLITE_OK || !row) { /* table_facts_read() reports what is wrong */
    known_names_nearest(&known);
    return 1;
  }
  return known_names_fail(
      &known, error,
      "main has no such table%s (%sif a declared table was renamed, declare "
      "it under its new name; temporary and attached tables cannot be declared)");
}

/* Says how several columns become one. `first` and `second` are columns of the table. */
static int several_columns(const struct table_facts *facts, const char *what, const char *first,
                           const char *second, struct error *error) {
  return error_set(error,
                   "%s (if several columns name one unit together, make one of them: ALTER TABLE "
                   "\"%w\" ADD COLUMN unit; UPDATE \"%w\" SET unit = json_array(\"%w\", \"%w\"))",
                   what, facts->name, facts->name, first, second);
}

/* Returns the column that a list such as "first, last" begins with, or -1. */
static int first_of_list(const struct table_facts *facts, const char *list) {
  int length = (int)strcspn(list, ",|+ ");
  char *first = list[length] ? sqlite3_mprintf("%.*s", length, list) : 0;
  int column = first ? table_column_find(facts, first) : -1;
  sqlite3_free(first);
  return column;
}

static int no_column(const struct table_facts *facts, const char *column, struct error *error) {
  int first = first_of_list(facts, column);
  const char *last = column + strlen(column);
  while (last > column && !strchr(",|+ ", last[-1])) last--;
  int second = first >= 0 ? table_column_find(facts, last) : -1;
  if (second >= 0)
    return several_columns(facts, "column must be one column", facts->columns[first].name,
                           facts->columns[second].name, error);
  struct known_names known = {.asked = column};
  for (int i = 0; i < facts->count; i++) known_names_add(&known, facts->columns[i].name);
  const char *nearest = known_names_nearest(&known), *asked = known_names_asked(&known, error);
  return error_set(error, "table '%s' has no %scolumn%s%s%s%s%s%s", facts->name,
                   asked ? "" : "such ", asked ? " '" : "", asked ? asked : "", asked ? "'" : "",
                   nearest ? " (did you mean '" : "", nearest ? nearest : "", nearest ? "'?)" : "");
}

/* Replaces the names of the column and the parent by those of the schema and the policy. A name
** that neither of them knows may be the value of a row, so no error shows it. */
static int find_names(struct ledger_declaration *asked, sqlite3 *db,
                      const struct table_facts *facts, const struct ledger_policy *policy,
                      struct error *error) {
  int column = asked->unit_column ? table_column_find(facts, asked->unit_column) : -1;
  if (asked->unit_column && column < 0) return no_column(facts, asked->unit_column, error);
  if (column >= 0) asked->unit_column = facts->columns[column].name;
  if (!asked->parent) return 1;
  if (sqlite3_stricmp(asked->parent, facts->name) == 0)
    return error_set(error, "table '%s' cannot be its own parent: links must not be a cycle",
                     facts->name);
  const struct ledger_declaration *parent = ledger_policy_find(policy, asked->parent);
  int second = parent ? -1 : table_column_find(facts, asked->parent);
  if (second >= 0 && second != column &&
      sqlite3_table_column_metadata(db, "main", asked->parent, 0, 0, 0, 0, 0, 0) != SQLITE_OK)
    return several_columns(facts, "the parent is the name of a column, not of a table",
                           asked->unit_column, facts->columns[second].name, error);
  if (!parent || parent->role != POLICY_PROTECTED)
    return error_set(error, "the parent is not protected yet (protect it first)");
  asked->parent = parent->table;
  return 1;
}

/* Checks the links and the unit of a table that is to be protected. */
static int check_route(sqlite3 *db, const struct ledger_policy *policy,
                       const struct ledger_declaration *asked, struct error *error) {
  struct route route = {.count = 0};
  int going = route_find(&route, db, policy, asked, error);
  for (int i = 1; i < route.count && going; i++)
    if (strcmp(route.tables[i].name, route.tables[0].name) == 0)
      going = error_set(error, "the links of table '%s' are a cycle", route.tables[0].name);
  if (going && route.count == 1 && route.unit >= 0) going = check_alike(db, policy, &route, error);
  route_clear(&route);
  return going;
}

/* Checks and records one declaration inside a transaction. The ledger gets the names as the schema
** spells them. */
static int declare_one(struct host *host, struct ledger_declaration asked, struct error *error) {
  struct ledger *ledger = host->session.ledger;
  sqlite3 *db = host->collector.db;
  struct ledger_policy policy = {0};
  struct table_facts facts = {.unique = -1};
  char *unit = ledger_unit(ledger);
  int going = ledger_policy_read(ledger, &policy) && check_table(db, asked.table, error) &&
              table_facts_read(&facts, db, asked.table, error);
  if (going) asked.table = facts.name;
  if (going && asked.role == POLICY_PROTECTED)
    going = check_protection(ledger, &asked, error) &&
            find_names(&asked, db, &facts, &policy, error) &&
            check_route(db, &policy, &asked, error);
  if (going) going = foreign_keys_check(db, &policy, &asked, unit, error);
  if (going) going = ledger_policy_declare(ledger, &asked);
  sqlite3_free(unit);
  ledger_policy_free(&policy);
  table_facts_clear(&facts);
  return going;
}

/* Records all declarations, or none after an error. */
static int declare_all(struct host *host, const struct ledger_declaration *asked, int count,
                       struct error *error) {
  struct ledger *ledger = host->session.ledger;
  int going = 1;
  if (!ledger_begin(ledger)) return 0;
  for (int i = 0; i < count && going; i++) going = declare_one(host, asked[i], error);
  if (going) return ledger_commit(ledger);
  ledger_rollback(ledger);
  return 0;
}

/* Reads the policy. The caller calls ledger_policy_free() also after a failure. */
static int read_policy(struct ledger *ledger, struct ledger_policy *policy) {
  if (!ledger_ready(ledger)) return 0;
  int going = ledger_begin_reading(ledger) && ledger_policy_read(ledger, policy);
  ledger_rollback(ledger);
  return going;
}

/* Marks a table that is to be public, unless its declaration in the policy holds. */
static int mark_one(sqlite3 *db, const struct ledger_policy *policy,
                    struct ledger_declaration *asked, struct error *error) {
  const struct ledger_declaration *stored = ledger_policy_find(policy, asked->table);
  struct table_facts facts = {.unique = -1};
  if (asked->role != POLICY_PUBLIC || (stored && stored->role != POLICY_PUBLIC))
    return 1; /* ledger_policy_declare() refuses to make a protected table public */
  int going =
      check_table(db, asked->table, error) && table_facts_read(&facts, db, asked->table, error);
  if (going) going = public_mark_write(asked, db, &facts, stored, error);
  table_facts_clear(&facts);
  return going;
}

/* Drops the mark that a declaration does not need any more: its old one, or its new one. */
static void drop_mark(sqlite3 *db, const struct ledger_policy *before,
                      const struct ledger_declaration *asked, int is_declared) {
  const struct ledger_declaration *stored = ledger_policy_find(before, asked->table);
  const char *old = stored ? stored->mark : 0, *new = asked->mark;
  if (old && new &&strcmp(old, new) == 0) return;
  if (is_declared && old) public_mark_drop(db, old);
  if (!is_declared && new) public_mark_drop(db, new);
}

/* Declares tables. The marks of public tables are written before the ledger is locked, so that
** nobody waits for the ledger while this connection waits for the database. A mark without a
** declaration has no meaning, and a declaration without its mark, such as after a ROLLBACK of the
** host, makes nothing public. */
static int declare(struct host *host, struct ledger_declaration *asked, int count,
                   struct error *error) {
  struct ledger_policy before = {0};
  sqlite3 *db = host->collector.db;
  int going = read_policy(host->session.ledger, &before);
  for (int i = 0; i < count && going; i++) going = mark_one(db, &before, &asked[i], error);
  if (going) going = declare_all(host, asked, count, error);
  for (int i = 0; i < count; i++) {
    drop_mark(db, &before, &asked[i], going);
    sqlite3_free(asked[i].definition);
    sqlite3_free(asked[i].mark);
  }
  ledger_policy_free(&before);
  return going;
}

/* ---- functions ------------------------------------------------------------------------------- */

/* dp_protect(table [, column [, parent]]) -> the table */
static int dp_protect(struct call *call) {
  static const char *const parameters[] = {"table", "column", "parent"};
  const char *texts[3] = {0};
  if (call->count > 1 && sqlite3_value_type(call->values[1]) == SQLITE_TEXT &&
      !sqlite3_value_bytes(call->values[1]))
    return error_set(call->error,
                     "column is empty (if R has written names of rows into a column without "
                     "a name, rename it: ALTER TABLE … RENAME COLUMN \"\" TO id)");
  for (int i = 0; i < call->count; i++)
    if (!(texts[i] = text_check(call->values[i], parameters[i], call->error))) return 0;
  struct ledger_declaration asked = {.table = (char *)texts[0],
                                     .role = POLICY_PROTECTED,
                                     .unit_column = (char *)texts[1],
                                     .parent = (char *)texts[2]};
  return declare(call->host, &asked, 1, call->error);
}

#define MOST_TABLES 100

/* dp_public(table [, table ...]) -> the first table */
static int dp_public(struct call *call) {
  struct ledger_declaration asked[MOST_TABLES];
  if (call->count < 1 || call->count > MOST_TABLES)
    return error_set(call->error, "give the names of 1 to %d tables", MOST_TABLES);
  for (int i = 0; i < call->count; i++) {
    const char *table = text_check(call->values[i], "table", call->error);
    if (!table) return 0;
    asked[i] = (struct ledger_declaration){.table = (char *)table, .role = POLICY_PUBLIC};
  }
  return declare(call->host, asked, call->count, call->error);
}

/* ---- the wider unit -------------------------------------------------------------------------- */

/* Returns whether a declared table has one row for each unit, and the column if one is named. */
static int has_one_row(sqlite3 *db, const struct ledger_policy *policy,
                       const struct ledger_declaration *declared, const char *column) {
  struct route route = {.count = 0};
  struct error ignored = {0};
  int found = declared->role == POLICY_PROTECTED &&
              route_find(&route, db, policy, declared, &ignored) && route_is_single(&route) &&
              (!column || table_column_find(&route.tables[0], column) >= 0);
  route_clear(&route);
  error_clear(&ignored);
  return found;
}

static int several_rows(sqlite3 *db, const struct ledger_policy *policy,
                        const struct ledger_wider *asked, const char *unit, struct error *error) {
  const char *better = 0;
  for (int any = 0; any < 2 && !better; any++)
    for (int i = 0; i < policy->count && !better; i++)
      if (has_one_row(db, policy, &policy->list[i], any ? 0 : asked->column))
        better = policy->list[i].table;
  return error_set(error,
                   "'%s' may have several rows of one %s (name the table with one row "
                   "for each%s%s%s)",
                   asked->table, unit, better ? ", such as '" : ", with a UNIQUE column for it",
                   better ? better : "", better ? "'" : "");
}

/* Checks that the column of the wider unit can be read, and replaces its name by the schema's. */
static int check_wider_column(const struct route *route, struct ledger_wider *asked,
                              struct error *error) {
  const struct table_facts *facts = &route->tables[0];
  int column = table_column_find(facts, asked->column);
  if (column < 0) return no_column(facts, asked->column, error);
  int unit = route->count > 1 ? route->links[0] : route->unit;
  if (column == unit)
    return error_set(error, "'%s' is the column of the unit itself", facts->columns[column].name);
  if (facts->columns[column].is_virtual)
    return error_set(error,
                     "column '%s' of table '%s' is generated when it is read (make it STORED)",
                     facts->columns[column].name, facts->name);
  sqlite3_free(asked->column);
  asked->column = sqlite3_mprintf("%s", facts->columns[column].name);
  return asked->column || error_set_memory(error);
}

/* Checks and records the wider unit inside a transaction. `asked` owns the column's name. */
static int widen(struct host *host, struct ledger_wider *asked, struct error *error) {
  struct ledger *ledger = host->session.ledger;
  sqlite3 *db = host->collector.db;
  struct ledger_policy policy = {0};
  struct route route = {.count = 0};
  char *unit = ledger_unit(ledger);
  const char *word = unit ? unit : "unit";
  int going = ledger_policy_read(ledger, &policy);
  if (going &&
      (ledger_protects(ledger) != LEDGER_UNITS || ledger_adjacency(ledger) == LEDGER_REPLACE))
    going = error_set(error, "needs a ledger that adds and removes units (dp_init() with a "
                             "\"unit\", without \"adjacency\")");
  if (going && sqlite3_stricmp(asked->name, word) == 0)
    going = error_set(error, "'%s' is the unit of this ledger (name the wider one)", asked->name);
  if (going) going = check_table(db, asked->table, error);
  const struct ledger_declaration *declared = going ? ledger_policy_find(&policy, asked->table) : 0;
  if (going && (!declared || declared->role != POLICY_PROTECTED))
    going = error_set(error, "table '%s' is not protected (protect it first)", asked->table);
  if (going) going = route_find(&route, db, &policy, declared, error);
  if (going && !route_is_single(&route)) going = several_rows(db, &policy, asked, word, error);
  if (going) going = check_wider_column(&route, asked, error) && ledger_policy_widen(ledger, asked);
  sqlite3_free(unit);
  route_clear(&route);
  ledger_policy_free(&policy);
  return going;
}

static const struct domain factor_domain = {"factor", 1, HOUSEHOLDS_MOST, 0, 0};

/* dp_within(name, table, column, factor) -> the name */
static int dp_within(struct call *call) {
  struct ledger *ledger = call->ledger;
  struct ledger_wider asked = {0};
  if (!domain_check(call->values[3], &factor_domain, &asked.factor, call->error)) return 0;
  double parts = asked.factor * HOUSEHOLDS_PARTS;
  if (parts != floor(parts))
    return error_set(call->error, "factor must be a multiple of 1/%d (such as 1.5 or 5.625)",
                     HOUSEHOLDS_PARTS);
  asked.name = (char *)call->texts[0];
  asked.table = (char *)call->texts[1];
  asked.column = sqlite3_mprintf("%s", call->texts[2]);
  int going = (asked.column || error_set_memory(call->error)) && ledger_ready(ledger) &&
              ledger_begin(ledger);
  if (going) {
    going = widen(call->host, &asked, call->error);
    if (going) {
      going = ledger_commit(ledger);
    } else {
      ledger_rollback(ledger);
    }
  }
  sqlite3_free(asked.column);
  return going;
}

/* dp_undeclare(table) -> the table, as long as the ledger has no charge */
static int dp_undeclare(struct call *call) {
  struct ledger_declaration gone = {.table = (char *)call->texts[0]};
  struct ledger_policy before = {0};
  if (read_policy(call->ledger, &before) && ledger_begin(call->ledger)) {
    ledger_policy_undeclare(call->ledger, gone.table);
    ledger_commit(call->ledger);
  }
  drop_mark(call->host->collector.db, &before, &gone, !error_is_set(call->error));
  ledger_policy_free(&before);
  return 1;
}

/* ---- dp_column, the columns of all declared tables ------------------------------------------- */

/* The members of a tier need it to write questions, because a guarded connection does not have
** protected tables. */

/* Adds the columns of a declared table. A table that no longer exists has none, and neither has a
** public table that is not the one that was declared. */
static int add_columns(struct row_list *rows, sqlite3 *db,
                       const struct ledger_declaration *declared, struct error *error) {
  struct table_facts facts = {0};
  struct error missing = {0};
  int found = declared->role == POLICY_PUBLIC
                  ? public_table_read(&facts, db, declared, &missing)
                  : table_facts_read(&facts, db, declared->table, &missing);
  int going = !error_is_memory(&missing) || error_set_memory(error);
  for (int i = 0; found && i < facts.count && going; i++)
    going = row_text(rows, facts.name) && row_text(rows, facts.columns[i].name) &&
            row_text(rows, facts.columns[i].type) &&
            row_text(rows, declared->role == POLICY_PUBLIC ? "public" : "protected");
  table_facts_clear(&facts);
  error_clear(&missing);
  return going;
}

static int columns_fill(struct row_list *rows, void *context, sqlite3_value *const *arguments,
                        struct error *error) {
  (void)arguments;
  struct host *host = context;
  struct ledger *ledger = host->session.ledger;
  struct ledger_policy policy = {0};
  sqlite3 *db = host->guard ? host->guard->reader->db : host->collector.db;
  int going =
      ledger_ready(ledger) && ledger_begin_reading(ledger) && ledger_policy_read(ledger, &policy);
  ledger_rollback(ledger);
  if (!going) error_set(error, "%s", error_text(ledger_error(ledger)));
  for (int i = 0; i < policy.count && going; i++)
    going = add_columns(rows, db, &policy.list[i], error);
  ledger_policy_free(&policy);
  return going;
}

const struct row_table column_table = {
    .name = "dp_column",
    .columns = "table_name TEXT, column_name TEXT, declared_type TEXT, role TEXT",
    .count = 4,
    .estimate = 1000,
    .cost = 1000,
    .fill = columns_fill};

/* ---- registration ---------------------------------------------------------------------------- */

/* dp_policy_plan(table). Reads the schema, and neither rows nor the ledger. */
static int plan(struct row_list *rows, void *context, sqlite3_value *const *arguments,
                struct error *error) {
  const struct host *host = context;
  const char *table = text_check(arguments[0], "table", error);
  return table && check_table(host->collector.db, table, error) &&
         foreign_keys_plan(rows, host->collector.db, table, error);
}

const struct row_table policy_plan_table = {
    .name = "dp_policy_plan",
    .columns = "table_name TEXT, declaration TEXT, note TEXT, unit_table HIDDEN",
    .count = 3,
    .first = 3,
    .least = 1,
    .most = 1,
    .option = SQLITE_VTAB_DIRECTONLY,
    .estimate = 10,
    .cost = 100,
    .fill = plan};

const struct function policy_functions[] = {
    {"dp_protect", 1, 3, TO_OWNER, 0, {0}, dp_protect},
    {"dp_public", -1, -1, TO_OWNER, 0, {0}, dp_public},
    {"dp_undeclare", 1, 1, TO_OWNER, 0, {"table"}, dp_undeclare},
    {"dp_within", 4, 4, TO_OWNER, 0, {"name", "table", "column"}, dp_within},
    {0},
};
