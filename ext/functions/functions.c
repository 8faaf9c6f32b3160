/*
** functions.c: registration of scalars, error messages and number arguments (see functions.h).
*/
#include "functions/functions.h"

#include <stdarg.h>

#include "base/sql_text.h"
#include "functions/host.h"
#include "functions/tier_guard.h"

SQLITE_EXTENSION_INIT3

/*
** The user data of a registered scalar: the descriptor of the scalar, and a counted reference to
** the host.
*/
struct binding {
  const struct scalar *scalar;
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
  if (!tier_guard_enter(guard, binding->scalar->name, &error)) {
    fail_call(context, binding->scalar->name, &error);
    return;
  }
  binding->scalar->call(context, argc, argv);
  tier_guard_leave(guard);
}

int scalars_register(sqlite3 *db, struct host *host, const struct scalar *table, int count) {
  for (int i = 0; i < count; i++) {
    for (int arity = table[i].min_arguments; arity <= table[i].max_arguments; arity++) {
      struct binding *binding = sqlite3_malloc(sizeof *binding);
      if (!binding) return SQLITE_NOMEM;
      *binding = (struct binding){&table[i], host_retain(host)};
      /* If the registration fails, SQLite calls binding_free(). */
      int rc = sqlite3_create_function_v2(db, table[i].name, arity, table[i].flags, binding,
                                          host ? call_guarded : table[i].call, 0, 0, binding_free);
      if (rc != SQLITE_OK) return rc;
    }
  }
  return SQLITE_OK;
}

const struct scalar *function_of(sqlite3_context *context) {
  const struct binding *binding = sqlite3_user_data(context);
  return binding->scalar;
}

struct host *host_of(sqlite3_context *context) {
  const struct binding *binding = sqlite3_user_data(context);
  return binding->host;
}

void fail_call(sqlite3_context *context, const char *name, struct error *error) {
  char *full = error_is_memory(error) ? 0 : sqlite3_mprintf("%s: %s", name, error_text(error));
  if (full) {
    sqlite3_result_error(context, full, -1);
  } else {
    sqlite3_result_error_nomem(context);
  }
  sqlite3_free(full);
  error_clear(error);
}

void function_error(sqlite3_context *context, const char *format, ...) {
  struct error error = {0};
  va_list arguments;
  va_start(arguments, format);
  error_set_list(&error, format, arguments);
  va_end(arguments);
  fail_call(context, function_of(context)->name, &error);
}

int argument_number(sqlite3_context *context, sqlite3_value *value, const struct domain *domain,
                    double *number) {
  struct error error = {0};
  if (domain_check(value, domain, number, &error)) return 1;
  fail_call(context, function_of(context)->name, &error);
  return 0;
}

void result_answer(sqlite3_context *context, const struct answer *answer) {
  if (answer->json) {
    sqlite3_result_text(context, answer->json, -1, SQLITE_TRANSIENT);
  } else if (!answer->is_null) { /* otherwise the result stays NULL */
    sqlite3_result_double(context, answer->number);
  }
}

const char *argument_text(sqlite3_context *context, sqlite3_value *value, const char *parameter) {
  const char *text = plain_text(value);
  if (text && *text) return text;
  function_error(context, "%s must be a text that is not empty%s", parameter,
                 not_a(value, SQLITE_TEXT));
  return 0;
}
