/* interval.c: see interval.h. Tests: tests/mechanism/test_intervals.py */
#include "release/interval.h"

#include <string.h>

#include "release/definition.h"
#include "release/numbers.h"
#include "release/room.h"
#include "release/series.h"
#include "release/session.h"

SQLITE_EXTENSION_INIT3

int interval_read(struct publication *publication, const char *key, int component,
                  double confidence, double *low, double *high) {
  struct ledger *ledger = publication->session->ledger;
  struct ledger_release *release = &publication->definition.release;
  const char *tier = publication_tier(publication)->name;
  struct numbers numbers = {0};
  struct ledger_path path;
  const struct ledger_point *point = 0;
  int found = 0;
  if (!definition_describe(publication, definition_keys(release))) return 0;
  int components = definition_grid(publication).components;
  if (ledger_path_read(ledger, release, components, &path)) {
    for (int i = 0; i < path.count; i++)
      if (strcmp(path.points[i].tier, tier) == 0) point = &path.points[i];
    publication->grid = path.grid;
  }
  if (point) {
    publication->position.clock = point->clock;
    if (numbers_read(publication, numbers_selection_delta(publication), confidence, point->values,
                     &numbers))
      rooms_resend(publication, tier, &numbers);
  }
  for (int i = 0; i < numbers.count && !found; i++) {
    struct ledger_value value = numbers_value(&numbers, &numbers.estimates[i]);
    found = strcmp(value.key, key) == 0 && value.component == component;
    *low = value.low;
    *high = value.high;
  }
  publication->grid = (struct ledger_grid){0, 0, 0, 0}; /* the path owns the grid */
  numbers_clear(&numbers);
  ledger_path_free(&path);
  return found ||
         error_set(ledger_error(ledger), "release '%s' has lost its values", release->name);
}

int interval_read_span(struct publication *publication, const char *key, double confidence,
                       double *low, double *high) {
  struct ledger *ledger = publication->session->ledger;
  struct definition *definition = &publication->definition;
  const char *tier = publication_tier(publication)->name;
  struct numbers numbers = {0};
  struct span span;
  int64_t *values = 0;
  char *group = 0;
  int found = 0;
  if (ledger_publication_find(ledger, definition->release.id, tier, &publication->position.clock) &&
      series_points(publication, &values) &&
      periods_read_key(definition->periods, ledger_json(ledger), key, definition->groups != 0,
                       &span, &group) &&
      span.last < publication->grid.cells) {
    ledger_rollback(ledger);
    if (ledger_begin_computing(ledger))
      numbers_spans(publication, span, 1, 0, confidence, values, &numbers);
  }
  for (int i = 0; i < numbers.count && !found; i++) {
    found = !definition->groups || strcmp(definition->groups[i], group) == 0;
    *low = numbers.estimates[i].low;
    *high = numbers.estimates[i].high;
  }
  numbers_clear(&numbers);
  sqlite3_free(values);
  sqlite3_free(group);
  return found ||
         error_set(ledger_error(ledger),
                   "release '%s' has no value for this key at tier '%s' (dp_value lists its keys)",
                   definition->release.name, tier);
}
