/*
** functions.c: see functions.h.
** Tests: tests/functions/test_errors.py, tests/functions/test_aggregate_form.py
*/
#include "functions/functions.h"

#include "functions/tier_guard.h"
#include "ledger/ledger.h"
#include "os/thread.h"
#include "release/figure_words.h"
#include "release/kinds.h"

SQLITE_EXTENSION_INIT3

/* ---- the host -------------------------------------------------------------------------------- */

/*
** The hosts of all connections of this process. host_is_complete() searches this list, because a
** connection has no pointer to its host.
*/
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

struct host *host_new(sqlite3 *db, int (*register_others)(sqlite3 *db)) {
  static const struct ledger_kinds kinds = {kind_display, figure_words, figure_component,
                                            figure_append_move};
  struct host *host = sqlite3_malloc(sizeof *host);
  if (!host) return 0;
  *host = (struct host){.references = 1, .collector = {db, 0}, .register_others = register_others};
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
  tier_guard_free(host->guard);
  ledger_free(host->session.ledger);
  error_clear(&host->session.error);
  sqlite3_free(host);
}

void host_release_pointer(void *host) {
  host_release(host);
}

/* ---- functions ------------------------------------------------------------------------------- */

/*
** The user data of a registered scalar: the descriptor of the scalar, and a counted reference to
** the host.
*/
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
  struct tier_guard *guard = binding->host->guard; /* a copy: dp_guard() changes host->guard */
  struct error error = {0};
  if (!tier_guard_enter(guard, binding->scalar.name, &error)) {
    fail_call(context, binding->scalar.name, &error);
    return;
  }
  binding->scalar.call(context, argc, argv);
  tier_guard_leave(guard);
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
  const struct binding *binding = sqlite3_user_data(context);
  return binding->host;
}

void result_answer(sqlite3_context *context, const struct answer *answer) {
  if (answer->json) {
    sqlite3_result_text(context, answer->json, -1, SQLITE_TRANSIENT);
  } else if (!answer->is_null) { /* otherwise the result stays NULL */
    sqlite3_result_double(context, answer->number);
  }
}
