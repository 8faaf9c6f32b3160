/*
** cross_tables.c: dp_table(release, tier [, attribute, ...]), which reads one of the cross tables
** of a release in the order of its keys.
** Tests: tests/mechanism/test_cross_tables.py
*/
#include <stdlib.h>
#include <string.h>

#include "base/sql_text.h"
#include "functions/functions.h"
#include "functions/host.h"
#include "functions/value_table.h"
#include "ledger/ledger.h"
#include "release/programme.h"

SQLITE_EXTENSION_INIT3

#define TABLE     "dp_table"
#define LEAST     2 /* the release and the tier; all other arguments are attributes */
#define ARGUMENTS (LEAST + WAYS_MAX_ATTRIBUTES)

/* ---- the values of the release --------------------------------------------------------------- */

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

/* ---- the table ------------------------------------------------------------------------------- */

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
static int fill_inside(struct row_list *rows, struct host *host, struct values *values,
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

/* dp_table(release, tier [, attribute, ...]). Without attributes: the total. */
static int fill(struct row_list *rows, void *context, sqlite3_value *const *arguments,
                struct error *error) {
  struct host *host = context;
  struct ledger *ledger = host->session.ledger;
  struct values values = {.count = 0};
  if (!value_table_enter(host, TABLE, error)) return 0;
  int filled = ledger_ready(ledger) && ledger_begin_reading(host->session.ledger) &&
               fill_inside(rows, host, &values, arguments);
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
    .fill = fill};
