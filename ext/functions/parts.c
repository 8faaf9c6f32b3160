/*
** parts.c: dp_parts(release, tier), which reads the statistics inside a release: an average is
** computed from a noisy count, and a spread from a count and an average. Post-processing of a point
** that is published already, so it costs nothing.
** Tests: tests/mechanism/test_parts.py
*/
#include <math.h>

#include "base/number.h"
#include "base/sql_text.h"
#include "functions/functions.h"
#include "functions/host.h"
#include "functions/value_table.h"
#include "release/interval.h"
#include "release/kinds.h"

SQLITE_EXTENSION_INIT3

#define PARTS "dp_parts"

struct part_rows {
  struct row_list *rows;
  const char *statistic;
  struct figure_terms terms; /* how the numbers are shown */
  int has_keys;
};

static int take_part(void *context, const struct ledger_value *value) {
  const struct part_rows *part = context;
  const double numbers[] = {value->value, value->stddev, value->low, value->high};
  char *display = figure_with_interval(value->value, value->low, value->high, &part->terms);
  int taken = display &&
              value_row(part->rows, part->has_keys ? value->key : 0, -1, numbers, display) &&
              row_text(part->rows, part->statistic);
  sqlite3_free(display);
  return taken;
}

/* Adds the rows of one statistic of a release. */
static int add_part(struct row_list *rows, struct publication *publication, enum inside inside,
                    const char *statistic) {
  const struct ledger_release *release = &publication->definition.release;
  const struct aggregate *aggregate = aggregate_find(release->kind);
  double half = release->hi / 2 - release->lo / 2;
  struct part_rows part = {
      rows, statistic, {.least = 0, .most = INFINITY}, aggregate->places.key > 0};
  if (inside == INSIDE_AVERAGE || (!inside && aggregate->family->shrinks_average))
    part.terms = (struct figure_terms){.least = release->lo, .most = release->hi};
  else if (!inside)
    part.terms.most = aggregate->root ? half : half * half;
  return inside_read(publication, inside, take_part, &part);
}

/* The kinds whose releases have a count inside, and spreads also an average. */
static int has_parts(const struct ledger_release *release) {
  const struct aggregate *aggregate = aggregate_find(release->kind);
  return aggregate && aggregate->family->inside && !aggregate->is_ou && !release->ways &&
         !release->periods;
}

static int read_parts(struct row_list *rows, struct publication *publication) {
  const struct aggregate *aggregate = aggregate_find(publication->definition.release.kind);
  int is_spread = !aggregate->family->shrinks_average;
  return add_part(rows, publication, INSIDE_COUNT, "count") &&
         (!is_spread || add_part(rows, publication, INSIDE_AVERAGE, "average")) &&
         add_part(rows, publication, INSIDE_NOTHING,
                  !is_spread        ? "average"
                  : aggregate->root ? "standard deviation"
                                    : "variance");
}

static int fill_inside(struct row_list *rows, struct host *host, sqlite3_value *const *arguments) {
  struct ledger *ledger = host->session.ledger;
  struct publication publication = {.session = &host->session};
  struct position *position = &publication.position;
  struct ledger_release *release = &publication.definition.release;
  struct ledger_clipping clipping;
  int done = 0;
  if (published_find(ledger, arguments[0], arguments[1], release, &clipping)) {
    if (!has_parts(release))
      error_set(&host->session.error,
                "release '%s' has no parts (averages, variances and standard deviations have, "
                "without a public bound, cross tables and periods)",
                release->name);
    else if (ledger_tiers(ledger, &position->tiers, &position->count))
      position->at =
          ledger_tier_find(ledger, position->tiers, position->count, plain_text(arguments[1]));
    done = !error_is_set(&host->session.error) && read_parts(rows, &publication);
  }
  publish_clear(&publication);
  return done;
}

static int fill(struct row_list *rows, void *context, sqlite3_value *const *arguments,
                struct error *error) {
  struct host *host = context;
  struct ledger *ledger = host->session.ledger;
  if (!value_table_enter(host, PARTS, error)) return 0;
  int filled = ledger_ready(ledger) && ledger_begin_reading(host->session.ledger) &&
               fill_inside(rows, host, arguments);
  ledger_rollback(ledger);
  return value_table_leave(host, filled, error);
}

const struct row_table part_table = {.name = PARTS,
                                     .columns = SHOWN_COLUMNS
                                     ", statistic TEXT, release_asked HIDDEN, tier_asked HIDDEN",
                                     .count = SHOWN_COUNT + 1,
                                     .first = SHOWN_COUNT + 1,
                                     .least = 2,
                                     .most = 2,
                                     .estimate = 25,
                                     .cost = 1e9,
                                     .fill = fill};
