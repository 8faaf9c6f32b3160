/* interval.c: see numbers.h. Tests: tests/mechanism/test_intervals.py */
#include "release/numbers.h"

#include <string.h>

#include "release/definition.h"
#include "release/kinds.h"
#include "release/publication.h"
#include "release/series.h"

SQLITE_EXTENSION_INIT3

/*
** Computes numbers of the release from its point at the publication's tier. The caller calls
** numbers_clear() and ledger_path_free(), to which the keys belong.
*/
static int read_point(struct publication *publication, double confidence, enum inside inside,
                      struct numbers *numbers, struct ledger_path *path) {
  struct ledger *ledger = publication->session->ledger;
  struct ledger_release *release = &publication->definition.release;
  const char *tier = publication_tier(publication)->name;
  const struct ledger_point *point = 0;
  int done = 0;
  *numbers = (struct numbers){0};
  *path = (struct ledger_path){0};
  if (!definition_describe(publication, definition_keys(release))) return 0;
  if (ledger_path_read(ledger, release, definition_grid(publication), path)) {
    for (int i = 0; i < path->count; i++)
      if (strcmp(path->points[i].tier, tier) == 0) point = &path->points[i];
    publication->grid = path->grid;
  }
  if (point) {
    double delta = numbers_selection_delta(publication);
    publication->position.clock = point->clock;
    done = inside ? numbers_inside(publication, delta, confidence, inside, point->values, numbers)
                  : numbers_read(publication, delta, confidence, point->values, numbers) &&
                        rooms_resend(publication, tier, numbers);
  }
  publication->grid = (struct ledger_grid){0, 0, 0, 0}; /* the path owns the grid */
  return done;
}

int interval_read(struct publication *publication, const char *key, int component,
                  double confidence, double *low, double *high) {
  struct numbers numbers;
  struct ledger_path path;
  int found = 0;
  read_point(publication, confidence, INSIDE_NOTHING, &numbers, &path);
  for (int i = 0; i < numbers.count && !found; i++) {
    struct ledger_value value = numbers_value(&numbers, &numbers.estimates[i]);
    found = strcmp(value.key, key) == 0 && value.component == component;
    *low = value.low;
    *high = value.high;
  }
  numbers_clear(&numbers);
  ledger_path_free(&path);
  return found ||
         error_set(ledger_error(publication->session->ledger), "release '%s' has lost its values",
                   publication->definition.release.name);
}

int inside_read(struct publication *publication, enum inside inside,
                int (*take)(void *context, const struct ledger_value *value), void *context) {
  struct numbers numbers;
  struct ledger_path path;
  int taken = read_point(publication, NUMBERS_CONFIDENCE, inside, &numbers, &path) ||
              error_set(ledger_error(publication->session->ledger),
                        "release '%s' has lost its values", publication->definition.release.name);
  for (int i = 0; i < numbers.count && taken; i++) {
    struct ledger_value value = numbers_value(&numbers, &numbers.estimates[i]);
    taken = take(context, &value);
  }
  numbers_clear(&numbers);
  ledger_path_free(&path);
  return taken;
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
