/* host.c: the host (functions.h), the functions that need it, what the members of a guarded
** connection may call, and the SQL functions that say in words what the ledger's tables hold.
** Tests: tests/ledger/test_display.py, tests/functions/test_errors.py,
** tests/functions/test_aggregate_form.py */
#include "functions/internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/sql_text.h"
#include "ledger/ledger.h"
#include "os/os.h"
#include "query/query.h"
#include "release/release.h"

SQLITE_EXTENSION_INIT3

/* ---- the words of the ledger's tables -------------------------------------------------------- */

#define RELEASE_ARGUMENTS 14 /* the arguments WORDS_RELEASE (ledger/ledger.h) */

static double number_or_nan(sqlite3_value *value) {
  return sqlite3_value_type(value) == SQLITE_NULL ? (double)NAN : sqlite3_value_double(value);
}

/* Sets *text to the text of an argument, or null. Returns 0 when out of memory. */
static int text_of(sqlite3_value *value, const char **text) {
  *text = (const char *)sqlite3_value_text(value);
  return *text || sqlite3_value_type(value) == SQLITE_NULL;
}

/* Reads the arguments WORDS_RELEASE. Returns 0 when out of memory. */
static int release_of(sqlite3_value **argv, struct ledger_release *release) {
  char **texts[] = {&release->kind, &release->mechanism, &release->quantiles, &release->ways,
                    &release->periods};
  double *numbers[] = {&release->clip,   &release->lo,    &release->hi,    &release->grid,
                       &release->centre, &release->theta, &release->radius};
  *release = (struct ledger_release){.size = sqlite3_value_int(argv[12]),
                                     .max_groups = sqlite3_value_int(argv[13])};
  for (int i = 0; i < 5; i++) {
    const char *text;
    if (!text_of(argv[i], &text)) return 0;
    *texts[i] = (char *)text;
  }
  for (int i = 0; i < 7; i++) *numbers[i] = number_or_nan(argv[5 + i]);
  return 1;
}

/* A null pointer means: out of memory. */
static void result_made(sqlite3_context *context, char *text) {
  if (text) {
    sqlite3_result_text(context, text, -1, sqlite3_free);
  } else {
    sqlite3_result_error_nomem(context);
  }
}

static void display(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  struct ledger_release release;
  struct ledger_value value = {.value = number_or_nan(argv[RELEASE_ARGUMENTS + 3]),
                               .low = number_or_nan(argv[RELEASE_ARGUMENTS + 4]),
                               .high = number_or_nan(argv[RELEASE_ARGUMENTS + 5])};
  int is_mixed = sqlite3_value_int(argv[RELEASE_ARGUMENTS]);
  int read = release_of(argv, &release) && text_of(argv[RELEASE_ARGUMENTS + 1], &value.key);
  if (!read) {
    result_made(context, 0);
  } else if (sqlite3_value_type(argv[RELEASE_ARGUMENTS + 2]) == SQLITE_NULL) {
    result_made(context, figure_drawn(&release, &value));
  } else if (isfinite(value.value)) { /* otherwise the result is NULL */
    result_made(context, figure_display(&release, &value, is_mixed));
  }
}

static void figure(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  struct ledger_release release;
  int read = release_of(argv, &release);
  argv += RELEASE_ARGUMENTS;
  struct figure_facts facts = {
      0,
      sqlite3_value_int(argv[1]),
      number_or_nan(argv[2]),
      {number_or_nan(argv[3]), number_or_nan(argv[4]), number_or_nan(argv[5]),
       number_or_nan(argv[6]), number_or_nan(argv[7]), number_or_nan(argv[8]),
       number_or_nan(argv[9]), number_or_nan(argv[10]), number_or_nan(argv[11])},
      0,
      number_or_nan(argv[13])};
  read = read && text_of(argv[0], &facts.unit) && text_of(argv[12], &facts.wider);
  result_made(context, read ? figure_words(&release, &facts) : 0);
}

static void component(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  struct ledger_release release;
  int at = sqlite3_value_int(argv[RELEASE_ARGUMENTS]);
  result_made(context, release_of(argv, &release) ? figure_component(&release, at) : 0);
}

static void exact(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  if (sqlite3_value_type(*argv) == SQLITE_FLOAT) {
    sqlite3_result_text(context, NUMBER_TEXT(sqlite3_value_double(*argv)), -1, SQLITE_TRANSIENT);
  } else if (sqlite3_value_type(*argv) == SQLITE_NULL) {
    sqlite3_result_text(context, "null", -1, SQLITE_STATIC);
  } else {
    sqlite3_result_value(context, *argv);
  }
}

static int add_words(sqlite3 *db) {
  static const struct {
    const char *name;
    int arguments;
    void (*run)(sqlite3_context *context, int argc, sqlite3_value **argv);
  } functions[] = {{"display", RELEASE_ARGUMENTS + 6, display},
                   {"figure", RELEASE_ARGUMENTS + 14, figure},
                   {"component", RELEASE_ARGUMENTS + 1, component},
                   {"exact", 1, exact}};
  int rc = SQLITE_OK;
  for (int i = 0; i < 4 && rc == SQLITE_OK; i++)
    rc = sqlite3_create_function_v2(db, functions[i].name, functions[i].arguments, SQLITE_UTF8, 0,
                                    functions[i].run, 0, 0, 0);
  return rc;
}

/* ---- the host -------------------------------------------------------------------------------- */

/* The hosts of all connections of this process. host_is_complete() searches this list, because a
** connection has no pointer to its host. */
static struct mutex mutex = MUTEX_INITIALIZER;
static struct host *hosts;

int host_is_complete(sqlite3 *db) {
  int complete = 0;
  mutex_lock(&mutex);
  for (const struct host *host = hosts; host; host = host->next)
    complete |= host->collector.db == db && host->complete;
  mutex_unlock(&mutex);
  return complete;
}

struct host *host_new(sqlite3 *db, int (*register_tables)(sqlite3 *db, struct host *host)) {
  struct host *host = sqlite3_malloc(sizeof *host);
  if (!host) return 0;
  *host = (struct host){.references = 1,
                        .collector = {db, 0},
                        .pure = {.db = db},
                        .register_tables = register_tables};
  host->session.error.caller = db;
  host->session.ledger = ledger_new(db, add_words, &host->session.error);
  if (!host->session.ledger) {
    sqlite3_free(host);
    return 0;
  }
  mutex_lock(&mutex);
  host->next = hosts;
  hosts = host;
  mutex_unlock(&mutex);
  return host;
}

struct host *host_retain(struct host *host) {
  if (host) host->references++;
  return host;
}

void host_release(struct host *host) {
  if (!host || --host->references > 0) return;
  mutex_lock(&mutex);
  struct host **place = &hosts;
  while (*place != host) place = &(*place)->next;
  *place = host->next;
  mutex_unlock(&mutex);
  guard_free(host->guard);
  ledger_free(host->session.ledger);
  error_clear(&host->session.error);
  sqlite3_free(host);
}

void host_release_pointer(void *host) {
  host_release(host);
}

/* ---- the guard of the connection ------------------------------------------------------------- */

void guard_free(struct guard *guard) {
  if (!guard) return;
  json_list_free(guard->outward);
  private_collector_close(guard->reader);
  sqlite3_free(guard->tier);
  sqlite3_free(guard->grant);
  sqlite3_free(guard);
}

int guard_enter(struct guard *guard, enum use use, struct error *error) {
  if (!guard) return 1;
  if (use == TO_OWNER || (use == TO_ASK && !guard->grant))
    return error_set(error,
                     "this connection is guarded for tier '%s' and may not use it (allowed: SELECT "
                     "from public tables and from the tables of this extension, planning%s)",
                     guard->tier,
                     guard->grant ? ", and dp_release, dp_answer and dp_plan at this tier" : "");
  if (use == TO_ASK) guard->entered = clock_milliseconds();
  return 1;
}

/* Waits until the time since the question began is 1, 2, 4, 8, ... times the pad. */
static void wait(const struct guard *guard) {
  int64_t length = guard->pad, left;
  while (guard->entered + length < clock_milliseconds()) length *= 2;
  while ((left = guard->entered + length - clock_milliseconds()) > 0)
    clock_sleep((unsigned)(left < 100 ? left : 100) * 1000);
}

void guard_leave(struct guard *guard) {
  if (!guard) return;
  if (guard->entered && guard->pad) wait(guard);
  guard->entered = 0;
}

/* ---- functions ------------------------------------------------------------------------------- */

/* The user data of a registered function: its descriptor, and a counted reference to the host. */
struct binding {
  const struct function *function;
  struct host *host;
};

static void binding_free(void *pointer) {
  struct binding *binding = pointer;
  host_release(binding->host);
  sqlite3_free(binding);
}

/* Does what the descriptor asks for before the function runs, and runs it. */
static int run(struct call *call, const struct function *function) {
  error_clear(call->error);
  for (int i = 0; i < CALL_TEXTS && function->texts[i] && i < call->count; i++)
    if (!(call->texts[i] = text_check(call->values[i], function->texts[i], call->error))) return 0;
  if (function->needs & NOT_NESTED && call->host->collector.collecting)
    return error_set(call->error, "a release cannot read from another release");
  if (function->needs & LEDGER_OPEN && !ledger_ready(call->ledger)) return 0;
  if (call->count) sqlite3_result_value(call->context, call->values[0]);
  return function->run(call) && !error_is_set(call->error);
}

/* Calls a function if the guard of the connection admits it. */
static void call_guarded(sqlite3_context *context, int count, sqlite3_value **values) {
  const struct binding *binding = sqlite3_user_data(context);
  const struct function *function = binding->function;
  struct host *host = binding->host;
  struct guard *guard = host->guard; /* a copy: dp_guard() changes host->guard */
  struct call call = {context, host, host->session.ledger, &host->session.error, count,
                      values,  {0}};
  struct error refusal = {0};
  if (!guard_enter(guard, function->use, &refusal)) {
    fail_call(context, function->name, &refusal);
    return;
  }
  if (!run(&call, function)) fail_call(context, function->name, call.error);
  guard_leave(guard);
}

int functions_register(sqlite3 *db, struct host *host, const struct function *functions) {
  assert(host->list_count < MOST_LISTS);
  host->lists[host->list_count++] = functions;
  for (const struct function *function = functions; function->name; function++) {
    for (int arity = function->least; arity <= function->most; arity++) {
      struct binding *binding = sqlite3_malloc(sizeof *binding);
      if (!binding) return SQLITE_NOMEM;
      *binding = (struct binding){function, host_retain(host)};
      /* If the registration fails, SQLite calls binding_free(). */
      int rc = sqlite3_create_function_v2(db, function->name, arity, PRIVATE_FUNCTION, binding,
                                          call_guarded, 0, 0, binding_free);
      if (rc != SQLITE_OK) return rc;
    }
  }
  return SQLITE_OK;
}

int host_has(const struct host *host, const char *name) {
  for (int i = 0; i < host->pure.count; i++)
    if (sqlite3_stricmp(host->pure.names[i], name) == 0) return 1;
  for (int i = 0; i < host->list_count; i++)
    for (const struct function *function = host->lists[i]; function->name; function++)
      if (sqlite3_stricmp(function->name, name) == 0) return 1;
  return 0;
}

int call_text(struct call *call, char *text) {
  if (!text) return error_set_memory(call->error);
  sqlite3_result_text(call->context, text, -1, sqlite3_free);
  return 1;
}

void result_answer(sqlite3_context *context, const struct answer *answer) {
  if (answer->json) {
    sqlite3_result_text(context, answer->json, -1, SQLITE_TRANSIENT);
  } else if (answer->is_null) {
    sqlite3_result_null(context);
  } else {
    sqlite3_result_double(context, answer->number);
  }
}

int tier_is_known(struct ledger *ledger, const char *tier) {
  struct ledger_tier *tiers;
  int count;
  int known =
      ledger_tiers(ledger, &tiers, &count) && ledger_tier_find(ledger, tiers, count, tier) >= 0;
  ledger_tiers_free(tiers, count);
  return known;
}

/* ---- JSON options of functions --------------------------------------------------------------- */

/* The context of take_setting(). */
struct settings {
  const struct setting *list;
  struct error *error;
};

/* Reads a value whose setting is a text, a choice or an array. Returns 0 if it is none. */
static int set_text(const struct setting *setting, const char *type, sqlite3_value *value) {
  const char *text = plain_text(value);
  if (setting->type == SETTING_CHOICE) {
    int choice = 0;
    while (text && setting->choices[choice] && strcmp(setting->choices[choice], text) != 0)
      choice++;
    if (!text || !setting->choices[choice]) return 0;
    *(int *)setting->place = choice + 1;
    return 1;
  }
  int is_array = strcmp(type, "array") == 0;
  if (setting->type == SETTING_ARRAY ? !is_array : !text || !*text) return 0;
  *(char **)setting->place = sqlite3_mprintf("%s", text);
  return 1;
}

static int take_setting(void *context, const char *key, const char *type, sqlite3_value *value) {
  const struct settings *settings = context;
  const struct setting *at = settings->list;
  struct error *error = settings->error;
  const char *known[10];
  int count = 0;
  for (; at->name && strcmp(at->name, key) != 0; at++) known[count++] = at->name;
  known[count] = 0;
  if (!at->name) return unknown_option(key, known, error);
  if (at->type == SETTING_NUMBER || at->type == SETTING_WHOLE) {
    double *number = at->place;
    if (!domain_check(value, at->domain, number, error)) return 0;
    return at->type == SETTING_NUMBER || *number == floor(*number) ||
           error_set(error, "%s must be a whole number", key);
  }
  if (!set_text(at, type, value))
    return error_set(error, "%s %s%s", key, at->wanted, not_a(value, SQLITE_TEXT));
  return at->type == SETTING_CHOICE || *(char **)at->place || error_set_memory(error);
}

int settings_read(const struct setting *settings, struct json *json, const char *object) {
  struct settings context = {settings, json->error};
  return json_members(json, object, take_setting, &context);
}

int call_settings(struct call *call, int index, const struct setting *settings) {
  if (index >= call->count || sqlite3_value_type(call->values[index]) == SQLITE_NULL) return 1;
  const char *options = text_check(call->values[index], "options", call->error);
  return options && settings_read(settings, ledger_json(call->ledger), options);
}
