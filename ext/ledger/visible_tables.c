/*
** visible_tables.c: the list of ledger tables that the host may read.
**
** dp_path is not in the list, because its unpublished points are for the owner only. If an
** application showed these points to others, for example through a view, the outer tiers would lose
** their privacy.
*/
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

#define DISPLAY                                                                                    \
  "(SELECT display(r.kind, r.lo, r.hi, r.clip, r.size, r.grid, r.centre, key, stddev, value, low," \
  " high) FROM dp_release r WHERE r.id = release_id)"

const struct ledger_table ledger_tables[] = {
    {&columns_tier, "dropped_at IS NULL", "rate DESC", 0, 0}, /* the innermost tier first */
    {&columns_release, 0, "rowid", 0, 0},
    {&columns_publication, LIVE, "rowid", 0, 0},
    {&columns_value, LIVE, "rowid", 0, DISPLAY},
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
  char *text =
      columns ? sqlite3_mprintf("%s%s", columns, table->display ? ", display TEXT" : "") : 0;
  sqlite3_free(columns);
  return text;
}

const char *ledger_table_column(const struct ledger_table *table, int place) {
  const struct column *column = columns_shown(table->columns, place);
  if (column) return column->name;
  int is_next = place == 1 || columns_shown(table->columns, place - 1);
  return is_next && table->display ? "display" : 0;
}
