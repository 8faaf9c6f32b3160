/*
** appends.c: dp_append(), which publishes the next periods of a series, and dp_span(), which reads
** the figures of any span of a series.
** Tests: tests/release/test_series_figures.py
*/
#include <string.h>

#include "base/sql_text.h"
#include "functions/functions.h"
#include "functions/releases.h"
#include "functions/value_table.h"
#include "query/question.h"
#include "release/numbers.h"
#include "release/series.h"

SQLITE_EXTENSION_INIT3

/* ---- dp_append ------------------------------------------------------------------------------- */

/*
** Checks that units have the type that they had when the series was declared. After a change from
** numbers to texts, for example, the book would not know the units again, and all would count anew.
*/
static int has_same_units(const struct question *question, const struct ledger_release *release,
                          struct error *error) {
  char *type = question_unit_type(question);
  if (!type) return error_set_memory(error);
  int same = release->unit_type && strcmp(type, release->unit_type) == 0;
  sqlite3_free(type);
  /* Advice: The series knows persons by this column: `1` and `'1'` are two persons. Nothing was
     read or published. */
  return same || error_set(error,
                           "the column of the unit has another type or collation than when '%s' "
                           "was declared, so everybody would count anew (give it the old ones "
                           "back, or discard the series)",
                           release->name);
}

/* Counts the rows of the missing periods, with the stored question. */
static int count_rows(struct host *host, struct publication *publication, struct append *append) {
  struct error *error = &host->session.error;
  const struct definition *definition = &publication->definition;
  struct request request = {.aggregate = definition->aggregate,
                            .periods = definition->periods,
                            .sql = definition->release.sql,
                            .steps = NAN,
                            .bytes = NAN,
                            .seconds = NAN};
  struct rows_opener opener = {release_open_rows, publication, 1, " (nothing was appended)"};
  struct counting counting = {publication, append};
  struct question *question = 0;
  struct rows rows = {0};
  int counted = question_open(&question, &host->collector, host->session.ledger, &request, error) &&
                has_same_units(question, &definition->release, error) &&
                question_run(question, &opener, &rows, error);
  if (counted)
    counted = vector_sum_units(rows.vectors, series_count, &counting) || error_set_memory(error);
  rows_close(&rows);
  question_close(question);
  return counted;
}

/* dp_append(name, period). Evaluates the stored question once, and charges nothing. */
static void dp_append(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  struct host *host = host_of(context);
  struct publication publication = {0};
  const char *name = argument_text(context, argv[0], "name");
  const char *period = name ? argument_text(context, argv[1], "period") : 0;
  if (!period) return;
  if (host->collector.collecting) {
    function_error(context, "a release cannot read from another release");
    return;
  }
  int done = ledger_ready(host->session.ledger), again = done;
  while (again) {
    struct append append;
    publish_clear(&publication);
    done = series_begin(&publication, &host->session, name, period, &append);
    if (done && !publication.answered)
      done = count_rows(host, &publication, &append) && series_finish(&publication, &append);
    again = append.is_stale;
    append_clear(&append);
  }
  if (done) {
    result_answer(context, &publication.answer);
  } else {
    fail_call(context, function_of(context)->name, &host->session.error);
  }
  publish_clear(&publication);
}

/* ---- dp_span --------------------------------------------------------------------------------- */

#define SPAN "dp_span"

enum { RELEASE, TIER, FIRST, LAST, ARGUMENTS };

/* Reads a period. Returns its number, or -1 after setting the error. */
static int period_of(const struct publication *publication, sqlite3_value *value) {
  struct error *error = &publication->session->error;
  const struct periods *periods = publication->definition.periods;
  const char *label = plain_text(value);
  int period = label ? periods_find(periods, label) : -1;
  if (!label) {
    error_set(error, "a period must be a text%s", not_a(value, SQLITE_TEXT));
  } else if (period < 0) {
    error_set(error, "'%s' has no such period (its periods are %s to %s)",
              publication->definition.release.name, periods->labels[0],
              periods->labels[periods->count - 1]);
  } else if (period >= publication->grid.cells) {
    error_set(error, "%s has not been appended", periods->labels[period]);
    period = -1;
  }
  return period;
}

/* What dp_span() computes with, after it has read the ledger. */
struct spans {
  struct publication publication;
  int64_t *values; /* the points of the tier; owned */
  struct span first;
  int count; /* of spans, each a period after the one before */
};

/* Adds the rows of all spans. */
static int add_spans(struct row_list *rows, const struct spans *spans) {
  const struct publication *publication = &spans->publication;
  struct ledger *ledger = publication->session->ledger;
  struct numbers numbers = {0};
  int going = !spans->count || numbers_spans(publication, spans->first, spans->count, 0,
                                             NUMBERS_CONFIDENCE, spans->values, &numbers);
  for (int i = 0; i < numbers.count && going && ledger_goes_on(ledger); i++) {
    struct ledger_value value = numbers_value(&numbers, &numbers.estimates[i]);
    double numbers_of[] = {value.value, value.stddev, value.low, value.high};
    char *display;
    going = ledger_display(ledger, &publication->definition.release, &value, &display) &&
            value_row(rows, value.key, -1, numbers_of, display);
    sqlite3_free(display);
  }
  numbers_clear(&numbers);
  return going && !error_is_set(ledger_error(ledger));
}

/* Reads which spans the arguments name. */
static int read_spans(struct spans *spans, sqlite3_value *const *arguments) {
  const struct publication *publication = &spans->publication;
  struct error *error = &publication->session->error;
  if (arguments[LAST]) {
    struct span span = {period_of(publication, arguments[FIRST]), 0};
    if (span.first < 0 || (span.last = period_of(publication, arguments[LAST])) < 0) return 0;
    spans->first = span;
    spans->count = 1;
    return span.first <= span.last || error_set(error, "the last period is before the first");
  }
  int64_t length, appended = publication->grid.cells;
  if (!whole_number(arguments[FIRST], &length) || length < 1)
    return error_set(error, "give the first and the last period, or a whole number of periods");
  if (length <= appended) {
    spans->first = (struct span){0, (int)length - 1};
    spans->count = (int)(appended - length) + 1;
  }
  return 1;
}

static int read_ledger(struct spans *spans, struct host *host, sqlite3_value *const *arguments) {
  struct ledger *ledger = host->session.ledger;
  struct publication *publication = &spans->publication;
  struct position *position = &publication->position;
  struct ledger_release *release = &publication->definition.release;
  struct ledger_clipping clipping = NO_CLIPPING;
  if (!published_find(ledger, arguments[RELEASE], arguments[TIER], release, &clipping)) return 0;
  if (!release->periods)
    return error_set(&host->session.error, "release '%s' is not a series (read dp_value)",
                     release->name);
  if (!ledger_tiers(ledger, &position->tiers, &position->count)) return 0;
  position->at =
      ledger_tier_find(ledger, position->tiers, position->count, plain_text(arguments[TIER]));
  return position->at >= 0 && series_points(publication, &spans->values) &&
         read_spans(spans, arguments);
}

/*
** dp_span(release, tier, first, last) and dp_span(release, tier, n). Read what is published. The
** ledger is not locked while the figures are computed.
*/
static int fill(struct row_list *rows, void *context, sqlite3_value *const *arguments,
                struct error *error) {
  struct host *host = context;
  struct ledger *ledger = host->session.ledger;
  struct spans spans = {.publication = {.session = &host->session}};
  if (!value_table_enter(host, SPAN, error)) return 0;
  int filled =
      ledger_ready(ledger) && ledger_begin_reading(ledger) && read_ledger(&spans, host, arguments);
  ledger_rollback(ledger);
  filled = filled && ledger_begin_computing(ledger) && add_spans(rows, &spans);
  ledger_rollback(ledger);
  sqlite3_free(spans.values);
  publish_clear(&spans.publication);
  return value_table_leave(host, filled, error);
}

const struct row_table span_table = {
    .name = SPAN,
    .columns = SHOWN_COLUMNS ", release_asked HIDDEN, tier_asked HIDDEN, first HIDDEN, last HIDDEN",
    .count = SHOWN_COUNT,
    .first = SHOWN_COUNT,
    .least = LAST,
    .most = ARGUMENTS,
    .estimate = 25,
    .cost = 1e9,
    .fill = fill};

const struct scalar append_functions[] = {
    {"dp_append", 2, 2, PRIVATE_FUNCTION, dp_append},
    {0},
};
