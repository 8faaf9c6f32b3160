/*
** value_table.c: see value_table.h.
** Tests: tests/functions/test_answer.py, tests/mechanism/test_cross_tables.py
*/
#include "functions/value_table.h"

#include "functions/host.h"
#include "functions/tier_guard.h"

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
  return is_filled || error_set(error, "%s", error_text(&host->session.error));
}
