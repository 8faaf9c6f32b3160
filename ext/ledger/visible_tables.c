/*
** visible_tables.c: the list of ledger tables that the host may read.
**
** dp_path is not in the list, because its unpublished points are for the owner only. If an
** application showed these points to others, for example through a view, the outer tiers would lose
** their privacy.
** Tests: tests/functions/test_guard.py
*/
#include <string.h>

#include "ledger/display.h"
#include "ledger/table_rows.h"

SQLITE_EXTENSION_INIT3

/*
** Hides the publications and values of failed and discarded releases, so that the rows with one
** name all belong to one release. The file still contains the hidden rows. The condition looks up
** one release for each row, so that a row of one release is found without reading the others.
*/
#define LIVE                                                                                       \
  "NOT EXISTS (SELECT 1 FROM dp_release r WHERE r.id = release_id"                                 \
  " AND r.state IN ('failed', 'discarded'))"

/* The columns of dp_value that are not stored. */
static const struct added_column words_of_value[] = {
    {"display", "(SELECT " DISPLAY_SQL("dp_value", "low", "high") " FROM dp_release r"
                                                                  " WHERE r.id = release_id)"},
    {"figure", "(SELECT " FIGURE_SQL("dp_value") " FROM dp_release r WHERE r.id = release_id)"},
    {0, 0}};

const struct ledger_table ledger_tables[] = {
    {&columns_tier, "dropped_at IS NULL", "rate DESC", 0, 0}, /* the innermost tier first */
    {&columns_release, 0, "rowid", 0, 0},
    {&columns_publication, LIVE, "rowid", 0, 0},
    {&columns_value, LIVE, "rowid", 0, words_of_value},
    {&columns_charge, 0, "rowid", 0, 0},
    {&columns_policy, 0, "rowid", 0, 0},
    {&columns_rdp, 0, 0, 1, 0},
    {&columns_budget, 0, "rowid", 1, 0},
    {&columns_grant, 0, "rowid", 0, 0},
    {&columns_reserve, 0, "rowid", 0, 0},
};
const int ledger_table_count = sizeof ledger_tables / sizeof *ledger_tables;

char *ledger_table_declaration(const struct ledger_table *table) {
  char *columns = columns_declaration(table->columns);
  sqlite3_str *text = sqlite3_str_new(0);
  sqlite3_str_appendf(text, "%s", columns);
  for (const struct added_column *added = table->added; added && added->name; added++)
    sqlite3_str_appendf(text, ", %s TEXT", added->name);
  char *declaration = sqlite3_str_finish(text);
  if (!columns) {
    sqlite3_free(declaration);
    declaration = 0;
  }
  sqlite3_free(columns);
  return declaration;
}

/* Returns the computed column at a place, or null. */
static const struct added_column *added_at(const struct ledger_table *table, int place) {
  const struct added_column *added = table->added;
  int stored = 0;
  while (columns_shown(table->columns, stored + 1)) stored++;
  if (place <= stored || !added) return 0;
  for (int i = stored + 1; i < place && added->name; i++) added++;
  return added->name ? added : 0;
}

const char *ledger_table_column(const struct ledger_table *table, int place) {
  const struct column *column = columns_shown(table->columns, place);
  const struct added_column *added = column ? 0 : added_at(table, place);
  return column ? column->name : added ? added->name : 0;
}

const struct ledger_table *ledger_table_named(const char *name) {
  const struct ledger_table *table = ledger_tables;
  while (strcmp(table->columns->table, name) != 0) table++;
  return table;
}

int ledger_table_index(const struct ledger_table *table, const char *column) {
  int place = 1;
  while (strcmp(ledger_table_column(table, place), column) != 0) place++;
  return place - 1;
}

const char *ledger_table_sql(const struct ledger_table *table, int place) {
  const struct added_column *added = added_at(table, place);
  return added ? added->sql : ledger_table_column(table, place);
}
