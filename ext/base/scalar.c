/*
** scalar.c: see scalar.h.
** Tests: tests/sums/test_vectors_input.py, tests/functions/test_errors.py
*/
#include "base/scalar.h"

#include <math.h>
#include <stdarg.h>

#include "base/sql_text.h"

SQLITE_EXTENSION_INIT3

int domain_holds(const struct domain *domain, double x) {
  return (domain->low_open ? x > domain->low : x >= domain->low) &&
         (domain->high_open ? x < domain->high : x <= domain->high);
}

int domain_check(sqlite3_value *value, const struct domain *domain, double *number,
                 struct error *error) {
  double x;
  int is_number = value_number(value, &x);
  if (is_number < 0) return error_set_memory(error);
  const char *type = is_number ? "" : not_a(value, SQLITE_FLOAT);
  if (is_number && domain_holds(domain, x)) {
    *number = x;
    return 1;
  }
  if (domain->high < INFINITY)
    return error_set(error, "%s must be a number in %c%g, %g%c%s", domain->parameter,
                     domain->low_open ? '(' : '[', domain->low, domain->high,
                     domain->high_open ? ')' : ']', type);
  const char *finite = domain->high_open ? " finite" : "";
  if (domain->low == -INFINITY)
    return error_set(error, "%s must be a%s number%s", domain->parameter, finite, type);
  return error_set(error, "%s must be a%s number %s %g%s", domain->parameter, finite,
                   domain->low_open ? "above" : "of at least", domain->low, type);
}

/* ---- functions ------------------------------------------------------------------------------- */

int pure_register(sqlite3 *db, const struct scalar *table, int count) {
  for (int i = 0; i < count; i++) {
    for (int arity = table[i].min_arguments; arity <= table[i].max_arguments; arity++) {
      int rc = sqlite3_create_function_v2(db, table[i].name, arity, table[i].flags,
                                          (void *)&table[i], table[i].call, 0, 0, 0);
      if (rc != SQLITE_OK) return rc;
    }
  }
  return SQLITE_OK;
}

const struct scalar *function_of(sqlite3_context *context) {
  return sqlite3_user_data(context);
}

static const char *name_of(sqlite3_context *context) {
  return *(const char *const *)sqlite3_user_data(context);
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

int function_error(sqlite3_context *context, const char *format, ...) {
  struct error error = {0};
  va_list arguments;
  va_start(arguments, format);
  error_set_list(&error, format, arguments);
  va_end(arguments);
  fail_call(context, name_of(context), &error);
  return 0;
}

void end_with_text(sqlite3_context *context, char *text, struct error *error) {
  if (!text) error_set_memory(error);
  if (!error_is_set(error)) {
    sqlite3_result_text(context, text, -1, sqlite3_free);
  } else {
    sqlite3_free(text);
    fail_call(context, name_of(context), error);
  }
}

void end_with_value(sqlite3_context *context, int is_given, sqlite3_value *value,
                    struct error *error) {
  if (is_given) {
    sqlite3_result_value(context, value);
  } else {
    fail_call(context, name_of(context), error);
  }
}

int argument_number(sqlite3_context *context, sqlite3_value *value, const struct domain *domain,
                    double *number) {
  struct error error = {0};
  if (domain_check(value, domain, number, &error)) return 1;
  fail_call(context, name_of(context), &error);
  return 0;
}

const char *argument_text(sqlite3_context *context, sqlite3_value *value, const char *parameter) {
  const char *text = plain_text(value);
  if (text && *text) return text;
  function_error(context, "%s must be a text that is not empty%s", parameter,
                 not_a(value, SQLITE_TEXT));
  return 0;
}
