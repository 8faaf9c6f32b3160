/* domain.c: see domain.h. Tests: tests/functions/test_errors.py */
#include "base/domain.h"

#include <math.h>

#include "base/sql_text.h"

SQLITE_EXTENSION_INIT3

int domain_holds(const struct domain *domain, double x) {
  return (domain->low_open ? x > domain->low : x >= domain->low) &&
         (domain->high_open ? x < domain->high : x <= domain->high);
}

int domain_check(sqlite3_value *value, const struct domain *domain, double *number,
                 struct error *error) {
  const char *type = not_a(value, SQLITE_FLOAT);
  double x = *type ? 0 : sqlite3_value_double(value);
  if (!*type && domain_holds(domain, x)) {
    *number = x;
    return 1;
  }
  /* Advice: In JSON, numbers have no quotes: `{"clip":2}`, not `{"clip":"2"}`. */
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
