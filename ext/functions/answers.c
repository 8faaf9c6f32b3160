/*
** answers.c: dp_answer(tier, kind, sql, options), which makes a release and returns its values as
** rows.
**
**   W1  The release is complete when xFilter returns. A later LIMIT, ROLLBACK or error of the outer
**       statement changes neither the answer nor the charge.
**   W2  The options must name the release. If a query plan reads the rows twice, the second read
**       then gets the stored values of the first.
**   W3  The table is DIRECTONLY, so no view or trigger can spend a budget.
*/
#include <string.h>

#include "functions/functions.h"
#include "functions/releases.h"
#include "functions/tier_guard.h"
#include "release/pending.h"

SQLITE_EXTENSION_INIT3

#define ANSWER "dp_answer"

/* The columns. The arguments are hidden columns. */
enum { KEY, VALUE, STDDEV, LOW, HIGH, DISPLAY, FIGURE, RELEASE, TIER, ARGUMENTS };
#define ARGUMENT_COUNT 4
#define COLUMNS                                                                                    \
  "CREATE TABLE x(key, value REAL, stddev REAL, low REAL, high REAL, display TEXT, figure TEXT,"   \
  " release TEXT, tier TEXT, tier_asked HIDDEN, kind HIDDEN, sql HIDDEN, options HIDDEN)"

struct answer_table {
  sqlite3_vtab base;
  struct host *host;
};

struct answer_row {
  char *key; /* null if the release is one number or an array */
  int component;
  double numbers[4];
  char *display; /* null if there is no value */
};

struct answer_cursor {
  sqlite3_vtab_cursor base;
  struct answer_row *rows;
  int count, room, row;
  char *release, *tier, *figure;
  int has_keys, is_array;
  int is_short; /* the memory did not suffice for all rows */
  sqlite3_value *arguments[ARGUMENT_COUNT];
};

static int xConnect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **vtab,
                    char **error) {
  (void)argc, (void)argv, (void)error;
  int rc = sqlite3_declare_vtab(db, COLUMNS);
  if (rc == SQLITE_OK) rc = sqlite3_vtab_config(db, SQLITE_VTAB_DIRECTONLY); /* W3 */
  struct answer_table *table = rc == SQLITE_OK ? sqlite3_malloc(sizeof *table) : 0;
  if (!table) return rc == SQLITE_OK ? SQLITE_NOMEM : rc;
  *table = (struct answer_table){{0}, aux};
  *vtab = &table->base;
  return SQLITE_OK;
}

static int xDisconnect(sqlite3_vtab *vtab) {
  sqlite3_free(vtab);
  return SQLITE_OK;
}

/* Refuses a query plan that does not set all four arguments. */
static int xBestIndex(sqlite3_vtab *vtab, sqlite3_index_info *info) {
  (void)vtab;
  int found = 0;
  for (int i = 0; i < info->nConstraint; i++) {
    int argument = info->aConstraint[i].iColumn - ARGUMENTS;
    if (argument < 0 || info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ) continue;
    if (!info->aConstraint[i].usable) return SQLITE_CONSTRAINT;
    if (found & 1 << argument) continue; /* SQLite checks a second constraint on the argument */
    found |= 1 << argument;
    info->aConstraintUsage[i].argvIndex = argument + 1;
    info->aConstraintUsage[i].omit = 1;
  }
  info->estimatedCost = 1e9;
  return found == (1 << ARGUMENT_COUNT) - 1 ? SQLITE_OK : SQLITE_CONSTRAINT;
}

static int xOpen(sqlite3_vtab *vtab, sqlite3_vtab_cursor **base) {
  (void)vtab;
  struct answer_cursor *cursor = sqlite3_malloc(sizeof *cursor);
  if (!cursor) return SQLITE_NOMEM;
  memset(cursor, 0, sizeof *cursor);
  *base = &cursor->base;
  return SQLITE_OK;
}

static void forget(struct answer_cursor *cursor) {
  for (int i = 0; i < cursor->count; i++) {
    sqlite3_free(cursor->rows[i].key);
    sqlite3_free(cursor->rows[i].display);
  }
  for (int i = 0; i < ARGUMENT_COUNT; i++) sqlite3_value_free(cursor->arguments[i]);
  sqlite3_free(cursor->rows);
  sqlite3_free(cursor->release);
  sqlite3_free(cursor->tier);
  sqlite3_free(cursor->figure);
  sqlite3_vtab_cursor base = cursor->base;
  *cursor = (struct answer_cursor){.base = base};
}

static int xClose(sqlite3_vtab_cursor *base) {
  forget((struct answer_cursor *)base);
  sqlite3_free(base);
  return SQLITE_OK;
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* Keeps one value. Returns 0 when out of memory. */
static int keep_value(struct answer_cursor *cursor, const struct ledger_value *value,
                      const char *display, const char *figure) {
  if (cursor->count == cursor->room) {
    int room = cursor->room * 2 + 16;
    struct answer_row *grown =
        sqlite3_realloc64(cursor->rows, sizeof *grown * (sqlite3_uint64)room);
    if (!grown) return 0;
    cursor->rows = grown;
    cursor->room = room;
  }
  struct answer_row *row = &cursor->rows[cursor->count];
  *row = (struct answer_row){
      0, value->component, {value->value, value->stddev, value->low, value->high}, 0};
  cursor->count++;
  if (cursor->has_keys && !(row->key = sqlite3_mprintf("%s", value->key))) return 0;
  if (display && !(row->display = sqlite3_mprintf("%s", display))) return 0;
  if (!cursor->figure) cursor->figure = sqlite3_mprintf("%s", figure);
  return cursor->figure != 0;
}

static int take_value(void *context, const struct ledger_value *value, const char *display,
                      const char *figure) {
  struct answer_cursor *cursor = context;
  cursor->is_short = !keep_value(cursor, value, display, figure);
  return !cursor->is_short;
}

/* Reads the rows of a published release. */
static int read_rows(struct answer_cursor *cursor, struct session *session,
                     const struct publication *publication) {
  const struct position *position = &publication->position;
  const struct definition *definition = &publication->definition;
  const char *tier = position->tiers[position->at].name, *quantiles = definition->release.quantiles;
  enum answer_form form = definition->aggregate->form;
  cursor->release = sqlite3_mprintf("%s", definition->release.name);
  cursor->tier = sqlite3_mprintf("%s", tier);
  cursor->is_array = form == FORM_ARRAY || (quantiles && *quantiles == '[');
  cursor->has_keys = form == FORM_OBJECT || form == FORM_ARRAYS || form == FORM_SYMBOL;
  if (!cursor->release || !cursor->tier) return error_set_memory(&session->error);
  int read =
      ledger_resume(session->ledger) && pending_begin_reading(session) &&
      ledger_values_in_words(session->ledger, definition->release.id, tier, take_value, cursor);
  ledger_rollback(session->ledger);
  return cursor->is_short ? error_set_memory(&session->error) : read;
}

static int answer(struct answer_cursor *cursor, struct host *host, sqlite3_value **argv) {
  struct publication publication = {0};
  struct request request = {0};
  struct release_arguments arguments = {argv[0], argv[1], argv[2], argv[3], 1};
  int done = release_ask(&publication, &request, host, &arguments) &&
             read_rows(cursor, &host->session, &publication);
  publish_clear(&publication);
  request_clear(&request);
  return done;
}

static int fail(struct answer_table *table, const char *message) {
  sqlite3_free(table->base.zErrMsg);
  table->base.zErrMsg = sqlite3_mprintf(ANSWER ": %s", message);
  return SQLITE_ERROR;
}

static int xFilter(sqlite3_vtab_cursor *base, int number, const char *text, int argc,
                   sqlite3_value **argv) {
  (void)number, (void)text;
  struct answer_cursor *cursor = (struct answer_cursor *)base;
  struct answer_table *table = (struct answer_table *)base->pVtab;
  struct host *host = table->host;
  forget(cursor);
  for (int i = 0; i < argc && i < ARGUMENT_COUNT; i++) {
    cursor->arguments[i] = sqlite3_value_dup(argv[i]);
    if (!cursor->arguments[i]) return SQLITE_NOMEM;
  }
  if (host->collector.collecting) return fail(table, "a release cannot read from another release");
  error_clear(&host->session.error);
  int answered = tier_guard_enter(host->guard, ANSWER, &host->session.error);
  if (answered) {
    answered = answer(cursor, host, argv);
    tier_guard_leave(host->guard);
  }
  return answered ? SQLITE_OK : fail(table, error_text(&host->session.error));
}

static int xNext(sqlite3_vtab_cursor *base) {
  ((struct answer_cursor *)base)->row++;
  return SQLITE_OK;
}

static int xEof(sqlite3_vtab_cursor *base) {
  const struct answer_cursor *cursor = (struct answer_cursor *)base;
  return cursor->row >= cursor->count;
}

static int xColumn(sqlite3_vtab_cursor *base, sqlite3_context *context, int column) {
  const struct answer_cursor *cursor = (struct answer_cursor *)base;
  const struct answer_row *row = &cursor->rows[cursor->row];
  if (column >= ARGUMENTS) {
    sqlite3_result_value(context, cursor->arguments[column - ARGUMENTS]);
  } else if (column >= DISPLAY) {
    const char *texts[] = {row->display, cursor->figure, cursor->release, cursor->tier};
    sqlite3_result_text(context, texts[column - DISPLAY], -1, SQLITE_TRANSIENT);
  } else if (column != KEY) {
    sqlite3_result_double(context, row->numbers[column - VALUE]); /* SQLite turns NaN into NULL */
  } else if (row->key) {
    sqlite3_result_text(context, row->key, -1, SQLITE_TRANSIENT);
  } else if (cursor->is_array) {
    sqlite3_result_int(context, row->component);
  }
  return SQLITE_OK;
}

static int xRowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid) {
  *rowid = ((struct answer_cursor *)base)->row;
  return SQLITE_OK;
}

static const sqlite3_module module = {.xConnect = xConnect,
                                      .xBestIndex = xBestIndex,
                                      .xDisconnect = xDisconnect,
                                      .xDestroy = xDisconnect,
                                      .xOpen = xOpen,
                                      .xClose = xClose,
                                      .xFilter = xFilter,
                                      .xNext = xNext,
                                      .xEof = xEof,
                                      .xColumn = xColumn,
                                      .xRowid = xRowid};

int answers_register(sqlite3 *db, struct host *host) {
  /* If the registration fails, SQLite releases the host. */
  return sqlite3_create_module_v2(db, ANSWER, &module, host_retain(host), host_release_pointer);
}
