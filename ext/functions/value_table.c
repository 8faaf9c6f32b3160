/*
** value_table.c: see value_table.h.
** Tests: tests/functions/test_answer.py, tests/mechanism/test_cross_tables.py
*/
#include "functions/value_table.h"

#include <math.h>

#include "base/sql_text.h"
#include "functions/host.h"
#include "functions/tier_guard.h"

SQLITE_EXTENSION_INIT3

int value_row(struct row_list *rows, const char *key, int component, const double *numbers,
              const char *display) {
  int going = key              ? row_text(rows, key)
              : component >= 0 ? row_integer(rows, component)
                               : row_null(rows);
  for (int i = 0; i < 4 && going; i++) going = row_real(rows, numbers[i]);
  return going && row_text(rows, display);
}

int value_table_enter(struct host *host, const char *name, struct error *error) {
  if (host->collector.collecting)
    return error_set(error, "a release cannot read from another release");
  error_clear(&host->session.error);
  return tier_guard_enter(host->guard, name, error);
}

int value_table_leave(struct host *host, int is_filled, struct error *error) {
  tier_guard_leave(host->guard);
  if (!is_filled) error_set(error, "%s", error_text(&host->session.error));
  error_clear(&host->session.error);
  return is_filled;
}

/* The context of take_publication(). */
struct published {
  struct ledger_clipping *clipping;
  int is_found;
};

static double number_at(sqlite3_stmt *row, const char *column) {
  int at = ledger_table_index(ledger_table_named("dp_publication"), column);
  int is_null = sqlite3_column_type(row, at) == SQLITE_NULL;
  return is_null ? (double)NAN : sqlite3_column_double(row, at);
}

static int take_publication(void *context, sqlite3_stmt *row, int columns) {
  struct published *published = context;
  (void)columns;
  published->is_found = 1;
  *published->clipping = (struct ledger_clipping){
      number_at(row, "clipped"), number_at(row, "unclipped"), number_at(row, "unit_stddev")};
  return 1;
}

int published_find(struct ledger *ledger, sqlite3_value *name, sqlite3_value *tier,
                   struct ledger_release *release, struct ledger_clipping *clipping) {
  const struct ledger_table *table = ledger_table_named("dp_publication");
  int wanted[] = {ledger_table_index(table, "release"), ledger_table_index(table, "tier")};
  sqlite3_value *values[] = {name, tier};
  struct published published = {clipping, 0};
  const char *text = plain_text(name);
  if (!text || !plain_text(tier))
    return error_set(ledger_error(ledger), "the release and the tier must be names");
  return (ledger_table_read(ledger, table, wanted, values, 2, take_publication, &published) &&
          published.is_found && ledger_release_find(ledger, text, release)) ||
         error_set(ledger_error(ledger),
                   "the release is not published at this tier (dp_publication lists where it is)");
}
