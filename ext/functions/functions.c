/* functions.c: see functions.h. Tests: tests/functions/test_errors.py */
#include "functions/functions.h"

#include "functions/host.h"
#include "functions/tier_guard.h"

SQLITE_EXTENSION_INIT3

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
