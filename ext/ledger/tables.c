/*
** tables.c: the tables of the ledger that the host may read.
**
** dp_path is not among them, because its unpublished points are for the owner only. If an
** application showed these points to others, for example through a view, the outer tiers would lose
** their privacy.
** Tests: tests/ledger/test_ledger.py, tests/ledger/test_columns.py, tests/functions/test_guard.py
*/
#include <string.h>

#include "ledger/display.h"

SQLITE_EXTENSION_INIT3

/*
** Hides the publications and values of failed and discarded releases, so that the rows with one
** name all belong to one release. The file still contains the hidden rows. The condition looks up
** one release for each row, so that a row of one release is found without reading the others.
*/
#define LIVE                                                                                       \
  "NOT EXISTS (SELECT 1 FROM dp_release r WHERE r.id = release_id"                                 \
  " AND r.state IN ('failed', 'discarded'))"

static const struct shown_column tier_columns[] = {
    {"name", "TEXT", 0},         {"rate", "REAL", 0},       {"epsilon", "REAL", 0},
    {"delta", "REAL", 0},        {"delta_keys", "REAL", 0}, {"accountant", "TEXT", 0},
    {"filter_order", "REAL", 0}, {"rate_limit", "REAL", 0}, {"created_at", "TEXT", 0},
    {"period", "TEXT", 0},       {"pure_limit", "REAL", 0}, {0, 0, 0}};

static const struct shown_column release_columns[] = {
    {"id", "INTEGER", 0},
    {"name", "TEXT", 0},
    {"kind", "TEXT", 0},
    {"mechanism", "TEXT", 0},
    {"clip", "REAL", 0},
    {"dimension", "INTEGER", 0},
    {"granularity", "INTEGER", 0},
    {"sensitivity", "INTEGER", 0},
    {"weight", "REAL", 0},
    {"slack", "REAL", 0},
    {"options", "TEXT", OPTIONS_SQL("dp_release", "1")},
    {"keys", "TEXT", 0},
    {"model", "TEXT", 0},
    {"sql", "TEXT", 0},
    {"tables", "TEXT", 0},
    {"state", "TEXT", 0},
    {"created_at", "TEXT", 0},
    {"ways", "TEXT", 0},
    {"multipliers", "TEXT", 0},
    {"periods", "TEXT", 0},
    {"statement", "TEXT", 0},
    {"until", "REAL", 0},
    {"least", "REAL", 0},
    {0, 0, 0}};

static const struct shown_column publication_columns[] = {
    {"release_id", "INTEGER", 0}, {"release", "TEXT", 0},   {"tier", "TEXT", 0},
    {"clock", "INTEGER", 0},      {"rate", "REAL", 0},      {"shrink", "REAL", 0},
    {"centre", "REAL", 0},        {"kernel", "TEXT", 0},    {"published_at", "TEXT", 0},
    {"clipped", "REAL", 0},       {"unclipped", "REAL", 0}, {"unit_stddev", "REAL", 0},
    {"cut", "REAL", 0},           {"cut_low", "REAL", 0},   {"cut_high", "REAL", 0},
    {"cut_within", "REAL", 0},    {"threshold", "REAL", 0}, {0, 0, 0}};

static const struct shown_column value_columns[] = {
    {"release_id", "INTEGER", 0},
    {"release", "TEXT", 0},
    {"tier", "TEXT", 0},
    {"key", "TEXT", 0},
    {"component", "INTEGER", 0},
    {"value", "REAL", 0},
    {"stddev", "REAL", 0},
    {"low", "REAL", 0},
    {"high", "REAL", 0},
    {"display", "TEXT",
     "(SELECT " DISPLAY_SQL("dp_value", "low",
                            "high") " FROM dp_release r WHERE r.id = release_id)"},
    {"figure", "TEXT",
     "(SELECT " FIGURE_SQL("dp_value") " FROM dp_release r WHERE r.id = release_id)"},
    {"label", "TEXT",
     "(SELECT " LABEL_SQL("dp_value") " FROM dp_release r WHERE r.id = release_id)"},
    {0, 0, 0}};

static const struct shown_column charge_columns[] = {
    {"id", "INTEGER", 0},   {"release_id", "INTEGER", 0},
    {"release", "TEXT", 0}, {"tier", "TEXT", 0},
    {"rate", "REAL", 0},    {"curve", "BLOB", 0},
    {"delta", "REAL", 0},   {"slack", "REAL", 0},
    {"at", "TEXT", 0},      {"hash", "TEXT", 0},
    {"period", "TEXT", 0},  {"grant_name", "TEXT", 0},
    {"kind", "TEXT", 0},    {0, 0, 0}};

static const struct shown_column policy_columns[] = {
    {"table_name", "TEXT", 0},   {"role", "TEXT", 0},
    {"unit_column", "TEXT", 0},  {"parent", "TEXT", 0},
    {"created_at", "TEXT", 0},   {"wider", "TEXT", 0},
    {"wider_column", "TEXT", 0}, {"factor", "REAL", 0},
    {"wider_at", "TEXT", 0},     {0, 0, 0}};

static const struct shown_column rdp_columns[] = {{"tier", "TEXT", 0},
                                                  {"alpha", "REAL", 0},
                                                  {"spent", "REAL", 0},
                                                  {"allowed", "REAL", 0},
                                                  {0, 0, 0}};

static const struct shown_column budget_columns[] = {{"tier", "TEXT", 0},
                                                     {"epsilon", "REAL", 0},
                                                     {"delta", "REAL", 0},
                                                     {"spent_epsilon", "REAL", 0},
                                                     {"remaining_epsilon", "REAL", 0},
                                                     {"spent_rate", "REAL", 0},
                                                     {"spent_delta", "REAL", 0},
                                                     {"releases", "INTEGER", 0},
                                                     {"releases_left", "INTEGER", 0},
                                                     {"period_start", "TEXT", 0},
                                                     {"period_end", "TEXT", 0},
                                                     {"wider_epsilon", "REAL", 0},
                                                     {0, 0, 0}};

static const struct shown_column grant_columns[] = {{"name", "TEXT", 0},
                                                    {"tier", "TEXT", 0},
                                                    {"share", "REAL", 0},
                                                    {"questions", "INTEGER", 0},
                                                    {"diffuse", "TEXT", 0},
                                                    {"pad_ms", "INTEGER", 0},
                                                    {"seconds", "REAL", 0},
                                                    {"steps", "REAL", 0},
                                                    {"bytes", "REAL", 0},
                                                    {"created_at", "TEXT", 0},
                                                    {0, 0, 0}};

static const struct shown_column reserve_columns[] = {
    {"grant_name", "TEXT", 0},     {"tier", "TEXT", 0},
    {"reserved", "REAL", 0},       {"spent", "REAL", 0},
    {"reserved_delta", "REAL", 0}, {"spent_delta", "REAL", 0},
    {"charges", "INTEGER", 0},     {0, 0, 0}};

static const struct shown_column page_columns[] = {
    {"tier", "TEXT", 0}, {"options", "TEXT", 0}, {0, 0, 0}};

const struct ledger_table ledger_tables[] = {
    {"dp_tier", tier_columns, 0, "rate DESC", 0}, /* the innermost tier first */
    {"dp_release", release_columns, 0, "rowid", 0},
    {"dp_publication", publication_columns, LIVE, "rowid", 0},
    {"dp_value", value_columns, LIVE, "rowid", 0},
    {"dp_charge", charge_columns, 0, "rowid", 0},
    {"dp_policy", policy_columns, 0, "rowid", 0},
    {"dp_rdp", rdp_columns, 0, 0, 1},
    {"dp_budget", budget_columns, 0, "rowid", 1},
    {"dp_grant", grant_columns, 0, "rowid", 0},
    {"dp_reserve", reserve_columns, 0, "rowid", 0},
    {"dp_page", page_columns, 0, "rowid", 0},
};
const int ledger_table_count = sizeof ledger_tables / sizeof *ledger_tables;

char *ledger_table_declaration(const struct ledger_table *table) {
  sqlite3_str *text = sqlite3_str_new(0);
  for (const struct shown_column *column = table->columns; column->name; column++)
    sqlite3_str_appendf(text, "%s%s %s", column > table->columns ? ", " : "", column->name,
                        column->type);
  return sqlite3_str_finish(text);
}

int ledger_table_finds(const struct ledger_table *table, int column, sqlite3_value *value) {
  const char *declared = table->columns[column].type;
  int type = sqlite3_value_type(value);
  int is_number = type == SQLITE_INTEGER || type == SQLITE_FLOAT;
  return strcmp(declared, "TEXT") == 0 ? type == SQLITE_TEXT
                                       : is_number && strcmp(declared, "BLOB") != 0;
}

const struct ledger_table *ledger_table_named(const char *name) {
  const struct ledger_table *table = ledger_tables;
  while (strcmp(table->name, name) != 0) table++;
  return table;
}

int ledger_table_index(const struct ledger_table *table, const char *name) {
  int at = 0;
  while (strcmp(table->columns[at].name, name) != 0) at++;
  return at;
}

/* Returns the SQL for a column: its name, or the expression that computes it. */
static const char *sql_of(const struct shown_column *column) {
  return column->sql ? column->sql : column->name;
}

/* ---- reading --------------------------------------------------------------------------------- */

/*
** SQL for the ids of the releases with one name. Two partial indices find them: one for the
** discarded releases, and one for the others. The tables of publications, values and charges have
** an index on release_id, but none on the name of the release.
*/
#define IDS_OF_NAME                                                                                \
  "(SELECT id FROM dp_release WHERE name = ?%d AND state <> 'discarded'"                           \
  " UNION ALL SELECT id FROM dp_release WHERE name = ?%d AND state = 'discarded')"

/*
** Returns " AND <column> IS ?n" for each wanted column. `first` is the number of the first
** parameter. For the owner, some columns are expressions. For an audience, the
** inner SELECT already has these columns.
**
** For the owner, a condition on the name of a release comes with a condition on its id, which an
** index answers. An audience always reads all its rows: if it found one name faster, the time would
** show whether an inner tier has a release of this name.
*/
static char *conditions(const struct ledger *ledger, const struct ledger_table *table,
                        const int *wanted, int count, int first) {
  int is_release = strcmp(table->name, "dp_release") == 0;
  sqlite3_str *sql = sqlite3_str_new(0);
  sqlite3_str_appendall(sql, " ");
  for (int i = 0; i < count; i++) {
    const struct shown_column *column = &table->columns[wanted[i]];
    int is_name = !ledger->audience && strcmp(column->name, is_release ? "name" : "release") == 0;
    sqlite3_str_appendf(sql, " AND %s IS ?%d", ledger->audience ? column->name : sql_of(column),
                        first + i);
    if (is_name)
      sqlite3_str_appendf(sql, " AND %s IN " IDS_OF_NAME, is_release ? "id" : "release_id",
                          first + i, first + i);
  }
  return sqlite3_str_finish(sql);
}

static char *select_all(const struct ledger_table *table, const char *where) {
  sqlite3_str *sql = sqlite3_str_new(0);
  sqlite3_str_appendall(sql, "SELECT ");
  for (const struct shown_column *column = table->columns; column->name; column++)
    sqlite3_str_appendf(sql, "%s%s", column > table->columns ? ", " : "", sql_of(column));
  sqlite3_str_appendf(sql, " FROM %s WHERE %s%s", table->name, table->shown ? table->shown : "1",
                      where);
  if (table->order) sqlite3_str_appendf(sql, " ORDER BY %s", table->order);
  return sqlite3_str_finish(sql);
}

int ledger_table_read(struct ledger *ledger, const struct ledger_table *table, const int *wanted,
                      sqlite3_value **values, int count, ledger_take_row *take, void *context) {
  int first = ledger->audience ? 2 : 1; /* for an audience, the first parameter is the tier */
  char *where = conditions(ledger, table, wanted, count, first);
  char *sql = !where             ? 0
              : ledger->audience ? audience_select(table, where)
                                 : select_all(table, where);
  sqlite3_free(where);
  if (!sql) return ledger_fail(ledger, "out of memory");
  sqlite3_stmt *row = 0;
  int rc = sqlite3_prepare_v2(ledger->db, sql, -1, &row, 0);
  sqlite3_free(sql);
  if (ledger->audience && rc == SQLITE_OK)
    rc = sqlite3_bind_text(row, 1, ledger->audience, -1, SQLITE_TRANSIENT);
  for (int i = 0; i < count && rc == SQLITE_OK; i++)
    rc = sqlite3_bind_value(row, first + i, values[i]);
  if (rc == SQLITE_OK) {
    while (ledger_goes_on(ledger) && (rc = sqlite3_step(row)) == SQLITE_ROW) {
      if (!take(context, row, sqlite3_column_count(row))) {
        ledger_fail(ledger, "out of memory");
        break;
      }
    }
  }
  if (rc != SQLITE_DONE && rc != SQLITE_ROW) ledger_fail_sqlite(ledger);
  sqlite3_finalize(row); /* an error is already recorded */
  return !error_is_set(ledger->error);
}
