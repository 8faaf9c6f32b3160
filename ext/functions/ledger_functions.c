/* ledger_functions.c: what SQL does with the books: sets them up (dp_init(), dp_tier(),
** dp_drop_tier()), checks them (dp_verify(), dp_certificate()), and reads them (dp_exposure(), and
** the tables of the ledger as read-only eponymous virtual tables); also dp_version().
**
**   T1 All rows are copied when the reading begins (V1 in sql_functions.h). Otherwise
**       SELECT dp_diffuse(name, 'public') FROM dp_release would read the rows that it writes.
**   T2 The tables are not DIRECTONLY, so that stored views may read the ledger.
** Tests: tests/ledger/test_tiers.py, tests/ledger/test_files.py,
** tests/functions/test_statement_mistakes.py */
#include <math.h>
#include <string.h>

#include "base/sql_functions.h"
#include "base/sql_text.h"
#include "functions/internal.h"
#include "ledger/ledger.h"
#include "mechanism/mechanism.h"
#include "query/query.h"
#include "release/release.h"
#include "version.h"

SQLITE_EXTENSION_INIT3

/* ---- dp_init --------------------------------------------------------------------------------- */

/* dp_init([options]) -> the path of the ledger, which is made if there is none */
static int dp_init(struct call *call) {
  static const char not_empty[] = "must be a text that is not empty";
  static const char *const protected[] = {"unit", "row", 0};
  static const char *const adjacencies[] = {"add-remove", "replace", 0};
  char *path = 0, *unit = 0;
  int protects = 0, adjacency = 0;
  const struct setting settings[] = {
      {"path", SETTING_TEXT, &path, not_empty, 0, 0},
      {"unit", SETTING_TEXT, &unit, not_empty, 0, 0},
      {"protects", SETTING_CHOICE, &protects, "must be 'unit' or 'row'", protected, 0},
      {"adjacency", SETTING_CHOICE, &adjacency, "must be 'add-remove' or 'replace'", adjacencies,
       0},
      {0}};
  int read = call_settings(call, 0, settings);
  struct ledger_terms terms = {path, unit, protects, adjacency};
  int made = read && ledger_create(call->ledger, &terms);
  if (made) sqlite3_result_text(call->context, ledger_path(call->ledger), -1, SQLITE_TRANSIENT);
  sqlite3_free(path);
  sqlite3_free(unit);
  return made;
}

/* ---- dp_tier --------------------------------------------------------------------------------- */

static const struct domain rate_domain = {"rate", DESIGN_MIN_RATE, DESIGN_MAX_RATE, 0, 0};
static const struct domain epsilon_domain = {"epsilon", 0, INFINITY, 1, 1};
static const struct domain delta_domain = {"delta", 0, 1, 1, 1};
static const struct domain delta_keys_domain = {"delta_keys", 0, 1, 0, 1};

/* The terms of a tier that arguments and options set. */
struct tier_terms {
  struct ledger_tier tier; /* owns its period */
  int has_keys;            /* delta_keys is given */
  struct error *error;
};

static int tier_accountant(struct tier_terms *terms, sqlite3_value *value) {
  if (sqlite3_value_type(value) == SQLITE_NULL) return 1; /* NULL keeps the default */
  const char *text = plain_text(value);
  const struct accountant *found = text ? accountant_find(text) : 0;
  if (found) {
    terms->tier.accountant = found;
    return 1;
  }
  char *names = accountant_names();
  error_set(terms->error, "accountant must be %s%s", names ? names : "another",
            not_a(value, SQLITE_TEXT));
  sqlite3_free(names);
  return 0;
}

static int tier_keys(struct tier_terms *terms, sqlite3_value *value) {
  if (terms->has_keys) return error_set(terms->error, "delta_keys is given twice");
  terms->has_keys = 1;
  return domain_check(value, &delta_keys_domain, &terms->tier.delta_keys, terms->error);
}

static int tier_period(struct tier_terms *terms, sqlite3_value *value) {
  const char *text = plain_text(value);
  if (sqlite3_value_type(value) == SQLITE_NULL) return 1;
  if (!text || !ledger_period_is_known(text))
    return error_set(terms->error, "period must be 'day', 'week', 'month', 'quarter' or 'year'%s",
                     not_a(value, SQLITE_TEXT));
  terms->tier.period = sqlite3_mprintf("%s", text);
  return terms->tier.period || error_set_memory(terms->error);
}

static int tier_option(void *context, const char *key, const char *type, sqlite3_value *value) {
  static const char *const known[] = {"accountant", "delta_keys", "period", 0};
  struct tier_terms *terms = context;
  if (strcmp(type, "true") == 0 || strcmp(type, "false") == 0)
    return error_set(terms->error, "%s must not be a Boolean", key);
  if (strcmp(key, "accountant") == 0) return tier_accountant(terms, value);
  if (strcmp(key, "delta_keys") == 0) return tier_keys(terms, value);
  if (strcmp(key, "period") == 0) return tier_period(terms, value);
  return unknown_option(key, known, terms->error);
}

/* Reads argument 5: the name of an accountant, or options. */
static int tier_accountant_or_options(struct tier_terms *terms, struct json *json,
                                      sqlite3_value *value) {
  const char *text = plain_text(value);
  return text && text[strspn(text, " \t\r\n")] == '{' ? json_members(json, text, tier_option, terms)
                                                      : tier_accountant(terms, value);
}

/* Reads the delta of a budget, which must be 0 if the accountant has no delta. */
static int tier_delta(struct tier_terms *terms, sqlite3_value *value) {
  char label[64];
  sqlite3_snprintf(sizeof label, label, "delta of accountant '%s'", terms->tier.accountant->name);
  struct domain no_delta = {label, 0, 0, 0, 0};
  return domain_check(value, terms->tier.accountant->has_delta ? &delta_domain : &no_delta,
                      &terms->tier.delta, terms->error);
}

static int tier_read(struct tier_terms *terms, struct json *json, int argc, sqlite3_value **argv) {
  struct ledger_tier *tier = &terms->tier;
  if (!domain_check(argv[1], &rate_domain, &tier->rate, terms->error) ||
      !domain_check(argv[2], &epsilon_domain, &tier->epsilon, terms->error) ||
      (argc > 4 && !tier_accountant_or_options(terms, json, argv[4])) ||
      !tier_delta(terms, argv[3]) || (argc > 5 && !tier_keys(terms, argv[5])))
    return 0;
  if (strchr(tier->name, ','))
    return error_set(terms->error, "name must not contain a comma (dp_exposure lists tiers)");
  return tier->delta_keys == 0 || tier->delta_keys < tier->delta ||
         error_set(terms->error, "delta_keys must be less than delta");
}

/* dp_tier(name, rate, epsilon, delta [, accountant or options [, delta_keys]]) -> the name. The new
** tier is charged at once for the earlier releases that it sees. */
static int dp_tier(struct call *call) {
  struct tier_terms terms = {
      .tier = {.name = (char *)call->texts[0], .accountant = accountant_find(0)},
      .error = call->error};
  int made = tier_read(&terms, ledger_json(call->ledger), call->count, call->values) &&
             ledger_ready(call->ledger) && ledger_tier_create(call->ledger, &terms.tier);
  sqlite3_free(terms.tier.period);
  return made;
}

/* dp_drop_tier(name) -> the name */
static int dp_drop_tier(struct call *call) {
  return ledger_tier_drop(call->ledger, call->texts[0]);
}

/* ---- dp_verify, dp_certificate, dp_version --------------------------------------------------- */

/* dp_verify() -> 'ok' or the first discrepancy */
static int dp_verify(struct call *call) {
  char *found = 0;
  if (ledger_begin_copy(call->ledger)) found = session_verify(&call->host->session);
  ledger_rollback(call->ledger);
  return call_text(call, found);
}

/* dp_certificate() -> JSON, a report for an auditor */
static int dp_certificate(struct call *call) {
  struct ledger *ledger = call->ledger;
  char *verified = 0, *certificate = 0;
  if (ledger_begin_copy(ledger)) verified = session_verify(&call->host->session);
  if (verified && (strcmp(verified, "ok") != 0 || ledger_enter_periods(ledger)))
    certificate = ledger_certificate(ledger, verified, mechanism_describe);
  sqlite3_free(verified);
  ledger_rollback(ledger);
  return call_text(call, certificate);
}

/* dp_version() -> TEXT */
static void dp_version(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  (void)argv;
  sqlite3_result_text(context, DIFFUSE_VERSION, -1, SQLITE_STATIC);
}

/* ---- dp_exposure ----------------------------------------------------------------------------- */

/* Finds the tiers of a list such as "clinic, public". A name with blanks around it counts if a tier
** has exactly this name, and otherwise without the blanks. Returns the number of different tiers,
** or 0 with the error set. */
static int find_tiers(struct ledger *ledger, const struct ledger_tier *tiers, int count,
                      const char *list, int *chosen) {
  static const char blanks[] = " \t\r\n";
  int found = 0;
  for (const char *end; *list; list = end + (*end == ',')) {
    const char *from = list, *to = end = list + strcspn(list, ",");
    int index = -1, again = 0;
    for (int exact = 1; exact >= 0 && index < 0; exact--) {
      while (!exact && from < to && strchr(blanks, *from)) from++;
      while (!exact && from < to && strchr(blanks, to[-1])) to--;
      for (int i = 0; i < count && index < 0; i++)
        if (strlen(tiers[i].name) == (size_t)(to - from) &&
            memcmp(tiers[i].name, from, (size_t)(to - from)) == 0)
          index = i;
    }
    /* ledger_tier_find() fails for an empty name, and its error lists the tiers. */
    if (index < 0) return ledger_tier_find(ledger, tiers, count, "") >= 0;
    for (int i = 0; i < found; i++) again |= chosen[i] == index;
    if (!again) chosen[found++] = index;
  }
  return found;
}

/* dp_exposure(tiers [, release]) -> JSON. Reads the ledger's file and no copy of it: it reads a
** small part of the file, which takes less time than to copy the file. */
static int dp_exposure(struct call *call) {
  struct ledger *ledger = call->ledger;
  const char *list = call->texts[0], *release = call->texts[1];
  struct ledger_tier *tiers = 0;
  int count = 0, *chosen = 0;
  char *json = 0;
  if (ledger_begin_reading(ledger) && (release || ledger_read_periods(ledger)) &&
      ledger_tiers(ledger, &tiers, &count)) {
    chosen = sqlite3_malloc64(sizeof *chosen * (sqlite3_uint64)(count + 1));
    int found = chosen ? find_tiers(ledger, tiers, count, list, chosen) : 0;
    /* ledger_tier_find() fails here, and its error says that there are no tiers. */
    if (count == 0) ledger_tier_find(ledger, tiers, count, list);
    if (found) json = ledger_exposure(ledger, tiers, chosen, found, release);
  }
  ledger_rollback(ledger);
  ledger_tiers_free(tiers, count);
  sqlite3_free(chosen);
  return call_text(call, json);
}

/* ---- the tables of the ledger ---------------------------------------------------------------- */

/* The context of a table: the table of the ledger, and a counted reference to the host. */
struct shown_table {
  struct host *host;
  const struct ledger_table *source;
};

static int take_row(void *context, sqlite3_stmt *row, int columns) {
  int going = 1;
  for (int i = 0; i < columns && going; i++)
    going = row_value(context, sqlite3_value_dup(sqlite3_column_value(row, i)));
  return going;
}

static int fill(struct row_list *rows, void *context, sqlite3_value *const *arguments,
                struct error *error) {
  const struct shown_table *table = context;
  struct ledger *ledger = table->host->session.ledger;
  struct guard *guard = table->host->guard;
  sqlite3_value *values[ROW_MOST_ARGUMENTS];
  int wanted[ROW_MOST_ARGUMENTS], count = 0, is_mixed = 0;
  for (int i = 0; i < ROW_MOST_ARGUMENTS; i++) {
    if (!arguments[i]) continue;
    if (!ledger_table_finds(table->source, i, arguments[i])) { /* SQLite compares all rows */
      is_mixed = 1;
      continue;
    }
    values[count] = arguments[i];
    wanted[count++] = i;
  }
  /* SQLite would lose rows (is_in() in sql_functions.c). */
  if (is_mixed && runs_hidden_in(table->host->collector.db))
    return error_set(error, "row values with IN must have the types of the columns here (use "
                            "EXISTS)");
  if (!guard_enter(guard, TO_ALL, error)) return 0;
  int read = ledger_ready(ledger) && ledger_begin_reading(table->host->session.ledger) &&
             (!table->source->by_period || ledger_read_periods(ledger)) &&
             ledger_table_read(ledger, table->source, wanted, values, count, take_row, rows);
  ledger_rollback(ledger);
  guard_leave(guard);
  return read || error_set(error, "%s", error_text(ledger_error(ledger)));
}

static void forget(void *context) {
  host_release(((struct shown_table *)context)->host);
  sqlite3_free(context);
}

int ledger_tables_register(sqlite3 *db, struct host *host) {
  int rc = SQLITE_OK;
  for (int i = 0; i < ledger_table_count && rc == SQLITE_OK; i++) {
    const struct ledger_table *source = &ledger_tables[i];
    char *columns = ledger_table_declaration(source);
    struct shown_table *shown = columns ? sqlite3_malloc(sizeof *shown) : 0;
    struct row_table table = {.name = source->name,
                              .columns = columns,
                              .is_searched = 1,
                              .estimate = 1000,
                              .cost = 1000,
                              .fill = fill};
    while (source->columns[table.count].name) table.count++;
    table.most = table.count < ROW_MOST_ARGUMENTS ? table.count : ROW_MOST_ARGUMENTS;
    if (shown) *shown = (struct shown_table){host_retain(host), source};
    rc = shown ? row_table_register(db, &table, shown, forget) : SQLITE_NOMEM;
    sqlite3_free(columns);
  }
  return rc;
}

/* ---- registration ---------------------------------------------------------------------------- */

const struct function ledger_functions[] = {
    {"dp_init", 0, 1, TO_OWNER, 0, {0}, dp_init},
    {"dp_tier", 4, 6, TO_OWNER, 0, {"name"}, dp_tier},
    {"dp_drop_tier", 1, 1, TO_OWNER, LEDGER_OPEN, {"name"}, dp_drop_tier},
    {"dp_verify", 0, 0, TO_OWNER, LEDGER_OPEN, {0}, dp_verify},
    {"dp_certificate", 0, 0, TO_ALL, LEDGER_OPEN, {0}, dp_certificate},
    {"dp_exposure", 1, 2, TO_OWNER, LEDGER_OPEN, {"tiers", "release"}, dp_exposure},
    {0},
};

const struct scalar version_function = {"dp_version", 0, 0, dp_version};
