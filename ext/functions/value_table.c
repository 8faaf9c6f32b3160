/*
** value_table.c: dp_answer, dp_parts and dp_table, whose rows are published values.
** Tests: tests/functions/test_answer.py, tests/mechanism/test_cross_tables.py,
** tests/mechanism/test_parts.py
*/
#include "functions/value_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/sql_text.h"
#include "functions/functions.h"
#include "functions/releases.h"
#include "functions/tier_guard.h"
#include "ledger/ledger.h"
#include "release/kinds.h"
#include "release/numbers.h"
#include "release/programme.h"

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

/* ---- dp_parts(release, tier) ----------------------------------------------------------------- */

/*
** Reads the statistics inside a release: an average is computed from a noisy count, and a spread
** from a count and an average. Post-processing of a point that is published already, so it costs
** nothing.
*/

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

static int parts_inside(struct row_list *rows, struct host *host, sqlite3_value *const *arguments) {
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

static int parts_fill(struct row_list *rows, void *context, sqlite3_value *const *arguments,
                      struct error *error) {
  struct host *host = context;
  struct ledger *ledger = host->session.ledger;
  if (!value_table_enter(host, PARTS, error)) return 0;
  int filled = ledger_ready(ledger) && ledger_begin_reading(host->session.ledger) &&
               parts_inside(rows, host, arguments);
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
                                     .fill = parts_fill};

/* ---- dp_table(release, tier [, attribute, ...]) ---------------------------------------------- */

/* Reads one of the cross tables of a release in the order of its keys. */

#define TABLE     "dp_table"
#define LEAST     2 /* the release and the tier; all other arguments are attributes */
#define ARGUMENTS (LEAST + WAYS_MAX_ATTRIBUTES)

/* ---- dp_table: the values of the release ----------------------------------------------------- */

/* The columns of dp_value that the table needs, by name. */
enum { RELEASE, TIER, KEY, VALUE, STDDEV, LOW, HIGH, DISPLAY, COLUMNS };
static const char *const names[COLUMNS] = {"release", "tier", "key",  "value",
                                           "stddev",  "low",  "high", "display"};

struct value {
  char *key;
  double numbers[4]; /* value, stddev, low and high */
  char *display;     /* or null */
};

/* The rows of dp_value of one release and tier, sorted by key. */
struct values {
  int places[COLUMNS]; /* the columns' places in a row of dp_value */
  struct value *list;
  int count, room;
};

static int take_value(void *context, sqlite3_stmt *row, int columns) {
  struct values *values = context;
  const int *places = values->places;
  (void)columns;
  if (values->count == values->room) {
    int room = values->room * 2 + 16;
    struct value *grown = sqlite3_realloc64(values->list, sizeof *grown * (sqlite3_uint64)room);
    if (!grown) return 0;
    values->list = grown;
    values->room = room;
  }
  const unsigned char *key = sqlite3_column_text(row, places[KEY]);
  const unsigned char *display = sqlite3_column_text(row, places[DISPLAY]);
  struct value *value = &values->list[values->count++];
  *value = (struct value){
      key ? sqlite3_mprintf("%s", key) : 0,
      {sqlite3_column_double(row, places[VALUE]), sqlite3_column_double(row, places[STDDEV]),
       sqlite3_column_double(row, places[LOW]), sqlite3_column_double(row, places[HIGH])},
      display ? sqlite3_mprintf("%s", display) : 0};
  return value->key && (value->display || !display);
}

static int by_key(const void *a, const void *b) {
  return strcmp(((const struct value *)a)->key, ((const struct value *)b)->key);
}

/* ---- dp_table: the table --------------------------------------------------------------------- */

/* Reads the attributes that are asked for, and returns their table, or null with the error set. */
static const struct cross_table *find_table(const struct programme *programme,
                                            sqlite3_value *const *arguments, struct error *error) {
  unsigned mask = 0;
  sqlite3_str *asked = sqlite3_str_new(0);
  int going = 1;
  for (int i = LEAST; i < ARGUMENTS && going; i++) {
    if (!arguments[i]) continue;
    const char *name = plain_text(arguments[i]);
    int attribute = name ? programme_find(programme, name) : -1;
    if (!name) {
      going = error_set(error, "an attribute must be a name%s", not_a(arguments[i], SQLITE_TEXT));
    } else if (attribute < 0) {
      going = programme_unknown(programme, 0, name, error);
    } else if (mask >> attribute & 1) {
      going = error_set(error, "the attribute '%s' is there twice", name);
    } else {
      mask |= 1u << attribute;
      sqlite3_str_appendf(asked, "%s%s", sqlite3_str_length(asked) ? " and " : "", name);
    }
  }
  const struct cross_table *table = going ? ways_find(&programme->ways[0], mask) : 0;
  char *text = sqlite3_str_finish(asked);
  if (going && !table) error_set(error, "no table of the release contains %s", text ? text : "");
  sqlite3_free(text);
  return table;
}

/* Adds the rows of the table, in the order of its cells. */
static int add_cells(struct row_list *rows, const struct values *values,
                     const struct programme *programme, const struct cross_table *table,
                     struct error *error) {
  for (int c = 0; c < table->cells; c++) {
    struct value wanted = {.key = programme_key(programme, table, c)};
    if (!wanted.key) return error_set_memory(error);
    const struct value *found =
        bsearch(&wanted, values->list, (size_t)values->count, sizeof wanted, by_key);
    sqlite3_free(wanted.key);
    if (!found) return error_set(error, "the release has lost its values");
    if (!value_row(rows, found->key, -1, found->numbers, found->display)) return 0;
  }
  return 1;
}

/* The member of a guarded connection may only name a release of which dp_value shows values. */
static int cross_table_inside(struct row_list *rows, struct host *host, struct values *values,
                              sqlite3_value *const *arguments) {
  struct ledger *ledger = host->session.ledger;
  struct error *error = &host->session.error;
  const char *name = plain_text(arguments[0]), *tier = plain_text(arguments[1]);
  struct ledger_release release;
  const struct ledger_table *source = ledger_table_named("dp_value");
  for (int i = 0; i < COLUMNS; i++) values->places[i] = ledger_table_index(source, names[i]);
  int wanted[] = {values->places[RELEASE], values->places[TIER]};
  sqlite3_value *given[] = {arguments[0], arguments[1]};
  if (!name || !tier) return error_set(error, "the release and the tier must be names");
  if (!ledger_table_read(ledger, source, wanted, given, 2, take_value, values)) return 0;
  if (!values->count || !ledger_release_find(ledger, name, &release))
    return error_set(error, "release '%s' has no values at tier '%s' (dp_value lists both)", name,
                     tier);
  int done = 0;
  if (!release.ways) {
    error_set(error, "release '%s' is not of cross tables (read dp_value)", name);
  } else {
    qsort(values->list, (size_t)values->count, sizeof *values->list, by_key);
    struct programme *programme =
        programme_open(ledger_json(ledger), release.keys, release.ways, 0);
    const struct cross_table *table = programme ? find_table(programme, arguments, error) : 0;
    done = table && add_cells(rows, values, programme, table, error);
    programme_release(programme);
  }
  ledger_release_clear(&release);
  return done;
}

/* Without attributes: the total. */
static int cross_table_fill(struct row_list *rows, void *context, sqlite3_value *const *arguments,
                            struct error *error) {
  struct host *host = context;
  struct ledger *ledger = host->session.ledger;
  struct values values = {.count = 0};
  if (!value_table_enter(host, TABLE, error)) return 0;
  int filled = ledger_ready(ledger) && ledger_begin_reading(host->session.ledger) &&
               cross_table_inside(rows, host, &values, arguments);
  ledger_rollback(ledger);
  for (int i = 0; i < values.count; i++) {
    sqlite3_free(values.list[i].key);
    sqlite3_free(values.list[i].display);
  }
  sqlite3_free(values.list);
  return value_table_leave(host, filled, error);
}

const struct row_table cross_table_table = {
    .name = TABLE,
    .columns = SHOWN_COLUMNS
    ", release_asked HIDDEN, tier_asked HIDDEN, a1 HIDDEN, a2 HIDDEN, a3 HIDDEN, a4 HIDDEN,"
    " a5 HIDDEN, a6 HIDDEN, a7 HIDDEN, a8 HIDDEN, a9 HIDDEN, a10 HIDDEN, a11 HIDDEN,"
    " a12 HIDDEN, a13 HIDDEN, a14 HIDDEN, a15 HIDDEN, a16 HIDDEN",
    .count = SHOWN_COUNT,
    .first = SHOWN_COUNT,
    .least = LEAST,
    .most = ARGUMENTS,
    .estimate = 25,
    .cost = 1e9,
    .fill = cross_table_fill};

/* ---- dp_answer(tier, kind, sql, options) ----------------------------------------------------- */

/*
** Makes a release and returns its values as rows.
**
**   W1  The release is complete when the reading begins (V1 in sql_functions.h). A later LIMIT,
**       ROLLBACK or error of the outer statement changes neither the answer nor the charge.
**   W2  The options must name the release. If a query plan reads the rows twice, the second read
**       then gets the stored values of the first.
**   W3  The table is DIRECTONLY, so no view or trigger can spend a budget.
*/

#define ANSWER "dp_answer"

struct answer_rows {
  struct row_list *rows;
  const char *release, *tier;
  int has_keys, is_array;
};

static int take_answer(void *context, const struct ledger_value *value, const char *display,
                       const char *figure, const char *label) {
  const struct answer_rows *answer = context;
  const double numbers[] = {value->value, value->stddev, value->low, value->high};
  return value_row(answer->rows, answer->has_keys ? value->key : 0,
                   answer->is_array ? value->component : -1, numbers, display) &&
         row_text(answer->rows, figure) && row_text(answer->rows, answer->release) &&
         row_text(answer->rows, answer->tier) && row_text(answer->rows, label);
}

/* Reads the rows of a published release. */
static int read_rows(struct row_list *rows, struct session *session,
                     const struct publication *publication) {
  const struct position *position = &publication->position;
  const struct definition *definition = &publication->definition;
  const char *quantiles = definition->release.quantiles;
  enum answer_form form = definition->aggregate->form;
  struct answer_rows answer = {.rows = rows,
                               .release = definition->release.name,
                               .tier = position->tiers[position->at].name,
                               .has_keys = form == FORM_OBJECT || form == FORM_ARRAYS ||
                                           form == FORM_SYMBOL || definition->release.periods,
                               .is_array = form == FORM_ARRAY || (quantiles && *quantiles == '[')};
  int read = ledger_resume(session->ledger) && ledger_begin_reading(session->ledger) &&
             ledger_values_in_words(session->ledger, definition->release.id, answer.tier,
                                    take_answer, &answer);
  ledger_rollback(session->ledger);
  return read;
}

static int answer_fill(struct row_list *rows, void *context, sqlite3_value *const *arguments,
                       struct error *error) {
  struct host *host = context;
  struct publication publication = {0};
  struct request request = {0};
  struct release_arguments asked = {arguments[0], arguments[1], arguments[2],
                                    arguments[3], NAME_NEEDED,  0};
  if (!value_table_enter(host, ANSWER, error)) return 0;
  int done = release_ask(&publication, &request, host, &asked) &&
             read_rows(rows, &host->session, &publication);
  publish_clear(&publication);
  request_clear(&request);
  return value_table_leave(host, done, error);
}

/* Says what to write to a caller who takes the table for a function. */
static void called(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc, (void)argv;
  function_error(context, "it is a table, whose rows are the answers (write 'SELECT key, display "
                          "FROM dp_answer(tier, kind, sql, options)')");
}

const struct scalar answer_functions[] = {
    {ANSWER, 1, 4, PRIVATE_FUNCTION, called},
    {0},
};

const struct row_table answer_table = {
    .name = ANSWER,
    .columns = SHOWN_COLUMNS ", figure TEXT, release TEXT, tier TEXT, label TEXT,"
                             " tier_asked HIDDEN, kind HIDDEN, sql HIDDEN, options HIDDEN",
    .count = SHOWN_COUNT + 4,
    .first = SHOWN_COUNT + 4,
    .least = 4,
    .most = 4,
    .option = SQLITE_VTAB_DIRECTONLY, /* W3 */
    .estimate = 25,
    .cost = 1e9,
    .fill = answer_fill};
