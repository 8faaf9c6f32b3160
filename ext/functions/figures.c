/* figures.c: what can be read of published figures besides dp_value: dp_parts (the statistics
** inside a figure), dp_table (one cross table), dp_span (any span of a series) and dp_interval()
** (the interval at any confidence). All of it is computed from points that are published already,
** so it costs nothing.
** Tests: tests/mechanism/test_cross_tables.py, tests/mechanism/test_parts.py,
** tests/mechanism/test_intervals.py, tests/release/test_series_figures.py */
#include "functions/internal.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/sql_text.h"
#include "ledger/ledger.h"
#include "mechanism/mechanism.h"
#include "release/release.h"

SQLITE_EXTENSION_INIT3

/* ---- what the tables of values have in common ------------------------------------------------ */

int value_row(struct row_list *rows, const char *key, int component,
              const struct ledger_value *value, const char *display) {
  int going = key              ? row_text(rows, key)
              : component >= 0 ? row_integer(rows, component)
                               : row_null(rows);
  return going && row_real(rows, value->value) && row_real(rows, value->stddev) &&
         row_real(rows, value->low) && row_real(rows, value->high) && row_text(rows, display);
}

int value_table_enter(struct host *host, enum use use, struct error *error) {
  if (host->collector.collecting)
    return error_set(error, "a release cannot read from another release");
  error_clear(&host->session.error);
  return guard_enter(host->guard, use, error);
}

int value_table_leave(struct host *host, int is_filled, struct error *error) {
  guard_leave(host->guard);
  if (!is_filled) error_set(error, "%s", error_text(&host->session.error));
  error_clear(&host->session.error);
  return is_filled;
}

/* Fills a table with the rows that inside() adds. inside() runs in a transaction that reads, and
** may end it. The publication has its session. */
static int fill_values(struct row_list *rows, struct host *host, sqlite3_value *const *arguments,
                       struct error *error,
                       int (*inside)(struct row_list *rows, struct publication *publication,
                                     sqlite3_value *const *arguments)) {
  struct ledger *ledger = host->session.ledger;
  struct publication publication = {.session = &host->session};
  if (!value_table_enter(host, TO_ALL, error)) return 0;
  int filled = ledger_ready(ledger) && ledger_begin_reading(ledger) &&
               inside(rows, &publication, arguments) && !error_is_set(&host->session.error);
  ledger_rollback(ledger);
  publish_clear(&publication);
  return value_table_leave(host, filled, error);
}

/* ---- published releases ---------------------------------------------------------------------- */

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
  *published->clipping =
      (struct ledger_clipping){number_at(row, "clipped"),        number_at(row, "unclipped"),
                               number_at(row, "unit_stddev"),    number_at(row, "cut"),
                               number_at(row, "cut_low"),        number_at(row, "cut_high"),
                               number_at(row, "cut_within"),     number_at(row, "wider_clipped"),
                               number_at(row, "wider_unclipped")};
  return 1;
}

/* Does the work of published_find(), but sets no error if the release is not published there. */
static int is_published(struct publication *publication, sqlite3_value *name, sqlite3_value *tier,
                        struct ledger_clipping *clipping) {
  const struct ledger_table *table = ledger_table_named("dp_publication");
  int wanted[] = {ledger_table_index(table, "release"), ledger_table_index(table, "tier")};
  sqlite3_value *values[] = {name, tier};
  struct published published = {clipping, 0};
  struct ledger *ledger = publication->session->ledger;
  if (!plain_text(name) || !plain_text(tier))
    return error_set(ledger_error(ledger), "the release and the tier must be names");
  return ledger_table_read(ledger, table, wanted, values, 2, take_publication, &published) &&
         published.is_found && publication_open(publication, plain_text(tier), plain_text(name));
}

int published_find(struct publication *publication, sqlite3_value *name, sqlite3_value *tier,
                   struct ledger_clipping *clipping) {
  return is_published(publication, name, tier, clipping) ||
         error_set(&publication->session->error,
                   "the release is not published at this tier (dp_publication lists where it is)");
}

/* ---- dp_parts(release, tier) ----------------------------------------------------------------- */

/* Reads the statistics inside a release: an average is computed from a noisy count, and a spread
** from a count and an average. */

struct part_rows {
  struct row_list *rows;
  const char *statistic;
  struct figure_terms terms; /* how the numbers are shown */
  int has_keys;
};

static int take_part(void *context, const struct ledger_value *value) {
  const struct part_rows *part = context;
  char *display = figure_with_interval(value->value, value->low, value->high, &part->terms);
  int taken = display &&
              value_row(part->rows, part->has_keys ? value->key : 0, -1, value, display) &&
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

static int parts_inside(struct row_list *rows, struct publication *publication,
                        sqlite3_value *const *arguments) {
  struct ledger_clipping clipping;
  if (!published_find(publication, arguments[0], arguments[1], &clipping)) return 0;
  return has_parts(&publication->definition.release)
             ? read_parts(rows, publication)
             : error_set(&publication->session->error,
                         "release '%s' has no parts (averages, variances and standard deviations "
                         "have, without a public bound, cross tables and periods)",
                         publication->definition.release.name);
}

static int parts_fill(struct row_list *rows, void *context, sqlite3_value *const *arguments,
                      struct error *error) {
  return fill_values(rows, context, arguments, error, parts_inside);
}

const struct row_table part_table = {.name = "dp_parts",
                                     .columns = SHOWN_COLUMNS
                                     ", statistic TEXT, release_asked HIDDEN, tier_asked HIDDEN",
                                     .count = SHOWN_COUNT + 1,
                                     .first = SHOWN_COUNT + 1,
                                     .least = 2,
                                     .most = 2,
                                     .estimate = 25,
                                     .cost = 1e9,
                                     .fill = parts_fill};

/* ---- dp_table(release, tier [, attribute, ...]) ---------------------------------------------- */

/* Reads one of the cross tables of a release in the order of its keys. */

#define LEAST           2 /* the release and the tier; all other arguments are attributes */
#define TABLE_ARGUMENTS (LEAST + WAYS_MAX_ATTRIBUTES)

/* A value of the release, and how it is shown. */
struct shown {
  struct ledger_value value;
  char *key, *display;
};

/* The values of a release at a tier, sorted by key. */
struct shown_list {
  struct shown *list;
  int count, room;
};

static int take_shown(void *context, const struct ledger_value *value, const char *display,
                      const char *figure, const char *label) {
  struct shown_list *all = context;
  (void)figure, (void)label;
  if (all->count == all->room) {
    int room = all->room * 2 + 16;
    struct shown *grown = sqlite3_realloc64(all->list, sizeof *grown * (sqlite3_uint64)room);
    if (!grown) return 0;
    all->list = grown;
    all->room = room;
  }
  struct shown *shown = &all->list[all->count++];
  *shown = (struct shown){*value, sqlite3_mprintf("%s", value->key),
                          display ? sqlite3_mprintf("%s", display) : 0};
  return shown->key && (shown->display || !display);
}

static int by_key(const void *a, const void *b) {
  return strcmp(((const struct shown *)a)->key, ((const struct shown *)b)->key);
}

/* Reads the attributes that are asked for, and returns their table, or null with the error set. */
static const struct cross_table *find_table(const struct cross_keys *cross_keys,
                                            sqlite3_value *const *arguments, struct error *error) {
  unsigned mask = 0;
  sqlite3_str *asked = sqlite3_str_new(0);
  int going = 1;
  for (int i = LEAST; i < TABLE_ARGUMENTS && going; i++) {
    if (!arguments[i]) continue;
    const char *name = plain_text(arguments[i]);
    int attribute = name ? cross_keys_find(cross_keys, name) : -1;
    if (!name) {
      going = error_set(error, "an attribute must be a name%s", not_a(arguments[i], SQLITE_TEXT));
    } else if (attribute < 0) {
      going = cross_keys_unknown(cross_keys, 0, name, error);
    } else if (mask >> attribute & 1) {
      going = error_set(error, "the attribute '%s' is there twice", name);
    } else {
      mask |= 1u << attribute;
      sqlite3_str_appendf(asked, "%s%s", sqlite3_str_length(asked) ? " and " : "", name);
    }
  }
  const struct cross_table *table = going ? ways_find(&cross_keys->ways[0], mask) : 0;
  char *text = sqlite3_str_finish(asked);
  if (going && !table) error_set(error, "no table of the release contains %s", text ? text : "");
  sqlite3_free(text);
  return table;
}

/* Adds the rows of the table, in the order of its cells. */
static int add_cells(struct row_list *rows, const struct shown_list *values,
                     const struct cross_keys *cross_keys, const struct cross_table *table,
                     struct error *error) {
  for (int c = 0; c < table->cells; c++) {
    struct shown wanted = {.key = cross_keys_of_cell(cross_keys, table, c)};
    if (!wanted.key) return error_set_memory(error);
    const struct shown *found =
        bsearch(&wanted, values->list, (size_t)values->count, sizeof wanted, by_key);
    sqlite3_free(wanted.key);
    if (!found) return error_set(error, "the release has lost its values");
    if (!value_row(rows, found->key, -1, &found->value, found->display)) return 0;
  }
  return 1;
}

static int read_cross_table(struct row_list *rows, struct publication *publication,
                            const struct shown_list *values, sqlite3_value *const *arguments) {
  struct error *error = &publication->session->error;
  struct json *json = ledger_json(publication->session->ledger);
  const struct ledger_release *release = &publication->definition.release;
  if (!release->ways)
    return error_set(error, "release '%s' is not of cross tables (read dp_value)", release->name);
  struct cross_keys *cross_keys = cross_keys_open(json, release->keys, release->ways, 0);
  const struct cross_table *table = cross_keys ? find_table(cross_keys, arguments, error) : 0;
  int done = table && add_cells(rows, values, cross_keys, table, error);
  if (cross_keys) cross_keys_release(cross_keys);
  return done;
}

/* Without attributes: the total. */
static int cross_table_inside(struct row_list *rows, struct publication *publication,
                              sqlite3_value *const *arguments) {
  struct shown_list values = {.count = 0};
  struct ledger_clipping clipping;
  struct session *session = publication->session;
  int done = is_published(publication, arguments[0], arguments[1], &clipping)
                 ? ledger_values_in_words(session->ledger, publication->definition.release.id,
                                          plain_text(arguments[1]), take_shown, &values)
                 : error_set(&session->error,
                             "release '%s' has no values at tier '%s' (dp_value lists both)",
                             plain_text(arguments[0]), plain_text(arguments[1]));
  done = done && read_cross_table(rows, publication, &values, arguments);
  for (int i = 0; i < values.count; i++) {
    sqlite3_free(values.list[i].key);
    sqlite3_free(values.list[i].display);
  }
  sqlite3_free(values.list);
  return done;
}

static int cross_table_fill(struct row_list *rows, void *context, sqlite3_value *const *arguments,
                            struct error *error) {
  return fill_values(rows, context, arguments, error, cross_table_inside);
}

const struct row_table cross_table_table = {
    .name = "dp_table",
    .columns = SHOWN_COLUMNS
    ", release_asked HIDDEN, tier_asked HIDDEN, a1 HIDDEN, a2 HIDDEN, a3 HIDDEN, a4 HIDDEN,"
    " a5 HIDDEN, a6 HIDDEN, a7 HIDDEN, a8 HIDDEN, a9 HIDDEN, a10 HIDDEN, a11 HIDDEN,"
    " a12 HIDDEN, a13 HIDDEN, a14 HIDDEN, a15 HIDDEN, a16 HIDDEN",
    .count = SHOWN_COUNT,
    .first = SHOWN_COUNT,
    .least = LEAST,
    .most = TABLE_ARGUMENTS,
    .estimate = 25,
    .cost = 1e9,
    .fill = cross_table_fill};

/* ---- dp_span(release, tier, first, last) and dp_span(release, tier, n) ----------------------- */

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
  struct publication *publication;
  int64_t *values; /* the points of the tier; owned */
  struct span first;
  int count; /* of spans, each a period after the one before */
};

/* Adds the rows of all spans. */
static int add_spans(struct row_list *rows, const struct spans *spans) {
  const struct publication *publication = spans->publication;
  struct ledger *ledger = publication->session->ledger;
  struct numbers numbers = {0};
  int going = !spans->count || numbers_spans(publication, spans->first, spans->count,
                                             NUMBERS_CONFIDENCE, spans->values, &numbers);
  for (int i = 0; i < numbers.count && going && ledger_goes_on(ledger); i++) {
    struct ledger_value value = numbers_value(&numbers, &numbers.estimates[i]);
    char *display = 0; /* null: the value is not a number */
    if (isfinite(value.value))
      display = figure_display(&publication->definition.release, &value, 0);
    going = (display || !isfinite(value.value) || error_set_memory(ledger_error(ledger))) &&
            value_row(rows, value.key, -1, &value, display);
    sqlite3_free(display);
  }
  numbers_clear(&numbers);
  return going && !error_is_set(ledger_error(ledger));
}

/* Reads which spans the arguments name. */
static int read_spans(struct spans *spans, sqlite3_value *const *arguments) {
  const struct publication *publication = spans->publication;
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

/* The ledger is not locked while the figures are computed. */
static int span_inside(struct row_list *rows, struct publication *publication,
                       sqlite3_value *const *arguments) {
  struct ledger *ledger = publication->session->ledger;
  const struct ledger_release *release = &publication->definition.release;
  struct ledger_clipping clipping;
  struct spans spans = {.publication = publication};
  int done = published_find(publication, arguments[RELEASE], arguments[TIER], &clipping) &&
             (release->periods ||
              error_set(ledger_error(ledger), "release '%s' is not a series (read dp_value)",
                        release->name)) &&
             series_points(publication, &spans.values) && read_spans(&spans, arguments);
  ledger_rollback(ledger);
  done = done && ledger_begin_computing(ledger) && add_spans(rows, &spans);
  sqlite3_free(spans.values);
  return done;
}

static int span_fill(struct row_list *rows, void *context, sqlite3_value *const *arguments,
                     struct error *error) {
  return fill_values(rows, context, arguments, error, span_inside);
}

const struct row_table span_table = {
    .name = "dp_span",
    .columns = SHOWN_COLUMNS ", release_asked HIDDEN, tier_asked HIDDEN, first HIDDEN, last HIDDEN",
    .count = SHOWN_COUNT,
    .first = SHOWN_COUNT,
    .least = LAST,
    .most = ARGUMENTS,
    .estimate = 25,
    .cost = 1e9,
    .fill = span_fill};

/* ---- dp_interval ----------------------------------------------------------------------------- */

static const struct domain confidence_domain = {"confidence", 0, 1, 1, 1};

/* A published value, identified by the release, the tier, and the key and component of the
** value. */
static int aggregate_has_keys(const struct aggregate *aggregate) {
  return aggregate->form != FORM_NUMBER && aggregate->form != FORM_ARRAY;
}

struct wanted {
  const char *name, *tier, *key;
  int component;
  int is_text; /* the key is a text, and may be the number of the component instead */
  double confidence;
};

/* Reports that a release has no intervals of noise, or returns 1. */
static int has_interval(struct ledger *ledger, const struct ledger_release *release) {
  const struct aggregate *aggregate = aggregate_find(release->kind);
  const struct mechanism *mechanism = mechanism_of(release);
  struct error *error = ledger_error(ledger);
  if (strcmp(release->state, "released") != 0)
    return error_set(error, "release '%s' is %s", release->name, release->state);
  if (!mechanism) return 1; /* interval_read() says what is unknown */
  if (mechanism->statistics == STATISTIC_REPORTS)
    return error_set(error, "release '%s' is made of reports, whose 95%% interval is in dp_value",
                     release->name);
  if (mechanism == &leaf_draw_mechanism)
    return error_set(
        error,
        "release '%s' was drawn, not made with noise, and has no interval (its error is "
        "bounded in rank: see \"rank_error\" of dp_plan)",
        release->name);
  if (!mechanism->noise)
    return error_set(error, "release '%s' is a symbol, not a number with noise around it",
                     release->name);
  return !aggregate->family->by_exponent ||
         error_set(error, "release '%s' is a pair of bounds, not a number with noise around it",
                   release->name);
}

/* Returns the published form of a key. For cross tables, the attributes of the key may have any
** order. The caller frees the text. Returns null when out of memory. */
static char *published_key(struct publication *publication, const char *key) {
  const struct ledger_release *release = &publication->definition.release;
  struct json *json = ledger_json(publication->session->ledger);
  char *published = 0;
  if (release->ways && release->keys) {
    publication->definition.cross_keys = cross_keys_open(json, release->keys, release->ways, 0);
    if (publication->definition.cross_keys)
      published = cross_keys_asked(publication->definition.cross_keys, json, key);
  }
  return published ? published : sqlite3_mprintf("%s", key);
}

/* Reports that the release has no such value. */
static int fail_value(struct ledger *ledger, const struct wanted *wanted,
                      const struct ledger_release *release) {
  const struct aggregate *aggregate = aggregate_find(release->kind);
  int has_keys = !aggregate || aggregate_has_keys(aggregate);
  return error_set(ledger_error(ledger), "release '%s' has no value %sat tier '%s'%s", wanted->name,
                   *wanted->key ? "for this key " : "", wanted->tier,
                   *wanted->key && !has_keys ? " (the key of one number is NULL; in an array, it is"
                                               " the index from 0)"
                   : !*wanted->key && has_keys ? " (dp_value lists its keys)"
                                               : "");
}

/* Computes the interval of a value. The publication is open. */
static int interval_of(struct publication *publication, struct wanted *wanted, double *low,
                       double *high) {
  struct ledger *ledger = publication->session->ledger;
  const struct ledger_release *release = &publication->definition.release;
  double value, stddev;
  if (!has_interval(ledger, release)) return 0;
  if (wanted->is_text && !release->periods && !aggregate_has_keys(aggregate_find(release->kind))) {
    wanted->key = "";
  } else if (wanted->is_text) {
    wanted->component = 0;
  }
  if (release->periods && wanted->component == 0)
    return interval_read_span(publication, wanted->key, wanted->confidence, low, high);
  char *key = published_key(publication, wanted->key);
  int found =
      key ? (ledger_value_find(ledger, release->id, wanted->tier, key, wanted->component, &value,
                               &stddev) ||
             fail_value(ledger, wanted, release)) &&
                interval_read(publication, key, wanted->component, wanted->confidence, low, high)
          : error_set_memory(ledger_error(ledger));
  sqlite3_free(key);
  return found;
}

/* dp_interval(name, tier, key, confidence [, component]) -> JSON [low, high] */
static int dp_interval(struct call *call) {
  struct ledger *ledger = call->ledger;
  const char *name = call->texts[0], *tier = call->texts[1];
  sqlite3_value **argv = call->values;
  int argc = call->count;
  int64_t index, number = 0;
  int is_index = whole_number(argv[2], &index);
  int is_text = argc == 4 && is_index && sqlite3_value_type(argv[2]) == SQLITE_TEXT;
  int is_component = argc > 4 && whole_number(argv[4], &number);
  if (argc == 4 && is_index) number = index;
  /* No release has the component -1. */
  int component = number >= 0 && number <= INT_MAX ? (int)number : -1;
  int type = sqlite3_value_type(argv[2]);
  int is_number = is_index && type != SQLITE_TEXT;
  const char *key = is_number || type == SQLITE_NULL ? "" : plain_text(argv[2]);
  double confidence, low = 0, high = 0;
  if (!domain_check(argv[3], &confidence_domain, &confidence, call->error)) return 0;
  if (!key)
    return error_set(call->error, "key must be a text, the number of a component, or NULL%s",
                     not_a(argv[2], SQLITE_TEXT));
  if (argc > 4 && (!*key || !is_component))
    return error_set(call->error,
                     "component must be the number of a component, after the text of a key");
  if (ledger_ready(ledger) && ledger_begin_reading(ledger)) {
    struct publication publication = {.session = &call->host->session};
    struct wanted wanted = {name, tier, key, component, is_text, confidence};
    if (publication_open(&publication, tier, name)) {
      interval_of(&publication, &wanted, &low, &high);
    } else {
      ledger_release_unknown(ledger, name);
    }
    ledger_rollback(ledger);
    publish_clear(&publication);
  }
  return call_text(call, sqlite3_mprintf("[%s,%s]", NUMBER_TEXT(low), NUMBER_TEXT(high)));
}

const struct function figure_functions[] = {
    {"dp_interval", 4, 5, TO_OWNER, 0, {"name", "tier"}, dp_interval},
    {0},
};
