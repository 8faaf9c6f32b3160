/*
** amplify.c: Theorem 1 of Balle et al. 2019 as a table-valued function that returns one row:
**
**     SELECT epsilon, delta FROM dp_amplify(condition, gamma, epsilon, delta);
**
** condition is 'dobrushin', 'dobrushin-epsilon', 'doeblin' or 'ultra'. For 'dobrushin-epsilon',
** gamma is the coefficient of the kernel at another epsilon, which the hidden column kernel_epsilon
** gives (mixing_epsilon() in math/mixing.h). The function reads only its arguments and is therefore
** marked innocuous.
** Tests: tests/papers/test_papers_kernels.py
*/
#include "papers/papers.h"

#include <math.h>
#include <string.h>

#include "base/row_table.h"
#include "base/scalar.h"
#include "base/sql_text.h"
#include "math/mixing.h"

SQLITE_EXTENSION_INIT3

static const struct condition {
  const char *name;
  struct amplified (*amplify)(double gamma, double epsilon, double delta);
} conditions[] = {
    {"dobrushin", amplify_dobrushin},
    {"dobrushin-epsilon", amplify_dobrushin},
    {"doeblin", amplify_doeblin},
    {"ultra", amplify_ultra},
};

static const struct domain domains[] = {
    {"gamma", 0.0, 1.0, 0, 0},
    {"epsilon", 0.0, (double)INFINITY, 0, 0},
    {"delta", 0.0, 1.0, 0, 0},
};

static int fill(struct row_list *rows, void *context, sqlite3_value *const *arguments,
                struct error *error) {
  (void)context;
  const char *asked = plain_text(arguments[0]);
  const struct condition *condition = 0;
  double number[3]; /* gamma, epsilon, delta */
  for (size_t k = 0; asked && k < sizeof conditions / sizeof *conditions; k++)
    if (strcmp(conditions[k].name, asked) == 0) condition = &conditions[k];
  if (!condition)
    return error_set(error,
                     "condition must be 'dobrushin', 'dobrushin-epsilon', 'doeblin' or 'ultra'%s",
                     not_a(arguments[0], SQLITE_TEXT));
  for (int k = 0; k < 3; k++)
    if (!domain_check(arguments[k + 1], &domains[k], &number[k], error)) return 0;
  struct amplified amplified = condition->amplify(number[0], number[1], number[2]);
  return row_real(rows, amplified.epsilon) && row_real(rows, amplified.delta) &&
         row_real(rows, mixing_epsilon(number[1], number[2]));
}

static const struct row_table table = {
    .name = "dp_amplify",
    .columns = "epsilon REAL, delta REAL, condition TEXT HIDDEN, gamma REAL HIDDEN,"
               " epsilon_in REAL HIDDEN, delta_in REAL HIDDEN, kernel_epsilon REAL HIDDEN",
    .count = 3,
    .first = 2,
    .least = 4,
    .most = 4,
    .option = SQLITE_VTAB_INNOCUOUS,
    .estimate = 1,
    .cost = 1,
    .fill = fill};

int amplify_register(sqlite3 *db) {
  return row_table_register(db, &table, 0, 0);
}
