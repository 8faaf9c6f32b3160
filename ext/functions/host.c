/* host.c: the host (functions.h), the functions that need it, and what the members of a guarded
** connection may call.
** Tests: tests/functions/test_errors.py, tests/functions/test_aggregate_form.py */
#include "functions/internal.h"

#include <math.h>
#include <string.h>

#include "base/sql_text.h"
#include "ledger/ledger.h"
#include "os/os.h"
#include "query/row_reader.h"
#include "release/figure_words.h"
#include "release/kinds.h"

SQLITE_EXTENSION_INIT3

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
  static const struct ledger_kinds kinds = {kind_display, figure_words, figure_component,
                                            figure_append_move};
  struct host *host = sqlite3_malloc(sizeof *host);
  if (!host) return 0;
  *host = (struct host){.references = 1, .collector = {db, 0}, .register_tables = register_tables};
  host->session.error.caller = db;
  host->session.ledger = ledger_new(db, &kinds, &host->session.error);
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

/* What the members of a tier may do with the functions and tables that need the ledger. */
enum use { TO_ALL, TO_ASK, TO_OWNER };
static const struct {
  const char *name;
  enum use use;
} of_ledger[] = {{"dp_answer", TO_ASK},
                 {"dp_batch", TO_OWNER},
                 {"dp_certificate", TO_ALL},
                 {"dp_clipping", TO_ALL},
                 {"dp_diffuse", TO_OWNER},
                 {"dp_discard", TO_OWNER},
                 {"dp_export", TO_OWNER},
                 {"dp_report", TO_ALL},
                 {"dp_drop_tier", TO_OWNER},
                 {"dp_exposure", TO_OWNER},
                 {"dp_grant", TO_OWNER},
                 {"dp_guard", TO_ALL},
                 {"dp_init", TO_OWNER},
                 {"dp_interval", TO_OWNER},
                 {"dp_mix", TO_OWNER},
                 {"dp_plan", TO_ASK},
                 {"dp_predict", TO_OWNER},
                 {"dp_protect", TO_OWNER},
                 {"dp_public", TO_OWNER},
                 {"dp_release", TO_ASK},
                 {"dp_sgd_profile", TO_OWNER},
                 {"dp_append", TO_OWNER},
                 {"dp_span", TO_ALL},
                 {"dp_table", TO_ALL},
                 {"dp_parts", TO_ALL},
                 {"dp_tier", TO_OWNER},
                 {"dp_verify", TO_OWNER},
                 {"dp_within", TO_OWNER},
                 {0, TO_OWNER}};

/* Returns the place of a function or table in the list, or that of its end. */
static int place_of(const char *name) {
  int place = 0;
  while (of_ledger[place].name && sqlite3_stricmp(of_ledger[place].name, name) != 0) place++;
  return place;
}

int guard_knows(const char *name) {
  return of_ledger[place_of(name)].name != 0;
}

int guard_enter(struct guard *guard, const char *name, struct error *error) {
  if (!guard) return 1;
  int place = name ? place_of(name) : 0;
  enum use use = !name ? TO_ALL : of_ledger[place].name ? of_ledger[place].use : TO_OWNER;
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

/* The user data of a registered scalar: the descriptor of the scalar, and a counted reference to
** the host. */
struct binding {
  struct scalar scalar;
  struct host *host;
};

static void binding_free(void *pointer) {
  struct binding *binding = pointer;
  host_release(binding->host);
  sqlite3_free(binding);
}

/* Calls a function that needs the ledger, if the guard of the connection admits it. */
static void call_guarded(sqlite3_context *context, int argc, sqlite3_value **argv) {
  const struct binding *binding = sqlite3_user_data(context);
  struct guard *guard = binding->host->guard; /* a copy: dp_guard() changes host->guard */
  struct error error = {0};
  if (!guard_enter(guard, binding->scalar.name, &error)) {
    fail_call(context, binding->scalar.name, &error);
    return;
  }
  binding->scalar.call(context, argc, argv);
  guard_leave(guard);
}

int scalars_register(sqlite3 *db, struct host *host, const struct scalar *table, int count) {
  for (int i = 0; i < count; i++) {
    for (int arity = table[i].min_arguments; arity <= table[i].max_arguments; arity++) {
      struct binding *binding = sqlite3_malloc(sizeof *binding);
      if (!binding) return SQLITE_NOMEM;
      *binding = (struct binding){table[i], host_retain(host)};
      /* If the registration fails, SQLite calls binding_free(). */
      int rc = sqlite3_create_function_v2(db, table[i].name, arity, table[i].flags, binding,
                                          call_guarded, 0, 0, binding_free);
      if (rc != SQLITE_OK) return rc;
    }
  }
  return SQLITE_OK;
}

struct host *host_of(sqlite3_context *context) {
  return ((const struct binding *)sqlite3_user_data(context))->host;
}

void result_answer(sqlite3_context *context, const struct answer *answer) {
  if (answer->json) {
    sqlite3_result_text(context, answer->json, -1, SQLITE_TRANSIENT);
  } else if (!answer->is_null) { /* otherwise the result stays NULL */
    sqlite3_result_double(context, answer->number);
  }
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
  return !object || json_members(json, object, take_setting, &context);
}

int argument_optional(sqlite3_context *context, int argc, sqlite3_value **argv, int index,
                      const char *name, const char **text) {
  *text = 0;
  if (index >= argc || sqlite3_value_type(argv[index]) == SQLITE_NULL) return 1;
  *text = argument_text(context, argv[index], name);
  return *text != 0;
}
