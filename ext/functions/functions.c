/*
** functions.c: registration of scalars, error messages and number arguments (see functions.h).
*/
#include "functions/functions.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "functions/host.h"
#include "base/sql_text.h"

SQLITE_EXTENSION_INIT3

/* User data of a registered scalar: its row of the table, and a counted reference to the host. */
struct binding {
  const struct scalar *scalar;
  struct host *host;
};

static void binding_free(void *pointer) {
  struct binding *binding = pointer;
  host_release(binding->host);
  sqlite3_free(binding);
}

int scalars_register(sqlite3 *db, struct host *host, const struct scalar *table, int count) {
  for (int i = 0; i < count; i++) {
    for (int arity = table[i].min_arguments; arity <= table[i].max_arguments; arity++) {
      struct binding *binding = sqlite3_malloc(sizeof *binding);
      if (!binding) return SQLITE_NOMEM;
      *binding = (struct binding){&table[i], host_retain(host)};
      /* A failed registration calls binding_free itself. */
      int rc = sqlite3_create_function_v2(db, table[i].name, arity, table[i].flags, binding,
                                          table[i].call, 0, 0, binding_free);
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

/* Stands for every sentence that there was no memory for. */
static char no_memory[] = "out of memory";

char *error_message(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char *text = sqlite3_vmprintf(format, arguments);
  va_end(arguments);
  return text ? text : no_memory;
}

void error_message_free(char *text) {
  if (text != no_memory) sqlite3_free(text);
}

void fail_call(sqlite3_context *context, const char *name, char *message) {
  char *full = message && message != no_memory ? sqlite3_mprintf("%s: %s", name, message) : 0;
  if (full) {
    sqlite3_result_error(context, full, -1);
  } else {
    sqlite3_result_error_nomem(context);
  }
  sqlite3_free(full);
  error_message_free(message);
}

void function_error(sqlite3_context *context, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char *text = sqlite3_vmprintf(format, arguments);
  va_end(arguments);
  fail_call(context, function_of(context)->name, text ? text : no_memory);
}

int domain_holds(const struct domain *domain, double x) {
  return (domain->low_open ? x > domain->low : x >= domain->low) &&
         (domain->high_open ? x < domain->high : x <= domain->high);
}

char *domain_check(sqlite3_value *value, const struct domain *domain, double *number) {
  const char *type = not_a(value, SQLITE_FLOAT);
  double x = sqlite3_value_double(value);
  if (!*type && domain_holds(domain, x)) {
    *number = x;
    return 0;
  }
  if (domain->high < INFINITY)
    return error_message("%s must be a number in %c%g, %g%c%s", domain->parameter,
                         domain->low_open ? '(' : '[', domain->low, domain->high,
                         domain->high_open ? ')' : ']', type);
  const char *finite = domain->high_open ? " finite" : "";
  if (domain->low == -INFINITY)
    return error_message("%s must be a%s number%s", domain->parameter, finite, type);
  return error_message("%s must be a%s number %s %g%s", domain->parameter, finite,
                       domain->low_open ? "above" : "of at least", domain->low, type);
}

int argument_number(sqlite3_context *context, sqlite3_value *value, const struct domain *domain,
                    double *number) {
  char *message = domain_check(value, domain, number);
  if (message) fail_call(context, function_of(context)->name, message);
  return !message;
}

const char *argument_text(sqlite3_context *context, sqlite3_value *value, const char *parameter) {
  const char *text = plain_text(value);
  if (text && *text) return text;
  function_error(context, "%s must be a text that is not empty%s", parameter,
                 not_a(value, SQLITE_TEXT));
  return 0;
}

void first_word(const char *sql, char word[8]) {
  for (;;) {
    sql += strspn(sql, " \t\r\n\f");
    if (strncmp(sql, "--", 2) == 0) {
      sql += strcspn(sql, "\n");
    } else if (strncmp(sql, "/*", 2) == 0) {
      const char *end = strstr(sql + 2, "*/");
      sql = end ? end + 2 : sql + strlen(sql);
    } else {
      break;
    }
  }
  int i = 0;
  while (i < 7 && isalpha((unsigned char)sql[i])) {
    word[i] = (char)toupper((unsigned char)sql[i]);
    i++;
  }
  word[i] = 0;
}

int has_word(const char *name, const char *sql) {
  size_t length = strlen(name);
  while (*sql && sqlite3_strnicmp(sql, name, (int)length) != 0) sql++;
  return *sql != 0;
}
