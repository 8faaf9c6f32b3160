/*
** amplify.c: Theorem 1 of Balle et al. 2019 as a table-valued function that returns one row:
**
**     SELECT epsilon, delta FROM dp_amplify(condition, gamma, epsilon, delta);
**
** condition is 'dobrushin', 'dobrushin-epsilon', 'doeblin' or 'ultra'. For 'dobrushin-epsilon',
** gamma is the coefficient of the kernel at another epsilon, which the hidden column kernel_epsilon
** gives (mixing_epsilon() in math/mixing.h). The function reads only its arguments and is therefore
** marked innocuous.
*/
#include "papers/papers.h"

#include <math.h>
#include <string.h>

#include "base/scalar.h"
#include "math/mixing.h"
#include "base/sql_text.h"

SQLITE_EXTENSION_INIT3

enum column { EPSILON, DELTA, CONDITION, GAMMA, EPSILON_IN, DELTA_IN, KERNEL_EPSILON };

#define ARGUMENTS 4 /* the required arguments: the hidden columns CONDITION to DELTA_IN */

static const struct condition {
  const char *name;
  struct amplified (*amplify)(double gamma, double epsilon, double delta);
} conditions[] = {
    {"dobrushin", amplify_dobrushin},
    {"dobrushin-epsilon", amplify_dobrushin_epsilon},
    {"doeblin", amplify_doeblin},
    {"ultra", amplify_ultra},
};

static const struct domain domains[] = {
    {"gamma", 0.0, 1.0, 0, 0},
    {"epsilon", 0.0, (double)INFINITY, 0, 0},
    {"delta", 0.0, 1.0, 0, 0},
};

struct cursor {
  sqlite3_vtab_cursor base;
  const struct condition *condition;
  double number[3]; /* gamma, epsilon, delta */
  struct amplified amplified;
  int done;
};

/* Sets the error message of the table. Returns the SQLite code that the caller returns. */
static int fail(sqlite3_vtab *table, char *message) {
  sqlite3_free(table->zErrMsg);
  table->zErrMsg = message;
  return message ? SQLITE_ERROR : SQLITE_NOMEM;
}

static int amplify_connect(sqlite3 *db, void *unused, int count, const char *const *arguments,
                           sqlite3_vtab **table, char **error) {
  (void)unused, (void)count, (void)arguments, (void)error;
  int rc = sqlite3_declare_vtab(
      db, "CREATE TABLE dp_amplify(epsilon REAL, delta REAL, condition TEXT HIDDEN,"
          " gamma REAL HIDDEN, epsilon_in REAL HIDDEN, delta_in REAL HIDDEN,"
          " kernel_epsilon REAL HIDDEN)");
  if (rc == SQLITE_OK) rc = sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
  if (rc != SQLITE_OK) return rc;
  *table = sqlite3_malloc(sizeof **table);
  if (!*table) return SQLITE_NOMEM;
  memset(*table, 0, sizeof **table);
  return SQLITE_OK;
}

static int amplify_disconnect(sqlite3_vtab *table) {
  sqlite3_free(table);
  return SQLITE_OK;
}

/* Refuses a query plan that does not set all four arguments. */
static int amplify_best_index(sqlite3_vtab *table, sqlite3_index_info *info) {
  int place[ARGUMENTS] = {-1, -1, -1, -1};
  int unusable = 0;
  for (int k = 0; k < info->nConstraint; k++) {
    int argument = info->aConstraint[k].iColumn - CONDITION;
    if (argument < 0 || argument >= ARGUMENTS) continue;
    if (info->aConstraint[k].op != SQLITE_INDEX_CONSTRAINT_EQ) continue;
    if (info->aConstraint[k].usable) {
      place[argument] = k;
    } else {
      unusable = 1;
    }
  }
  for (int argument = 0; argument < ARGUMENTS; argument++) {
    if (place[argument] < 0) {
      if (unusable) return SQLITE_CONSTRAINT;
      return fail(table, sqlite3_mprintf("dp_amplify: needs condition, gamma, epsilon, delta"));
    }
    info->aConstraintUsage[place[argument]].argvIndex = argument + 1;
    info->aConstraintUsage[place[argument]].omit = 1;
  }
  info->estimatedCost = 1.0;
  info->estimatedRows = 1;
  info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
  return SQLITE_OK;
}

static int amplify_open(sqlite3_vtab *table, sqlite3_vtab_cursor **opened) {
  (void)table;
  struct cursor *cursor = sqlite3_malloc(sizeof *cursor);
  if (!cursor) return SQLITE_NOMEM;
  memset(cursor, 0, sizeof *cursor);
  *opened = &cursor->base;
  return SQLITE_OK;
}

static int amplify_close(sqlite3_vtab_cursor *base) {
  sqlite3_free(base);
  return SQLITE_OK;
}

static int amplify_filter(sqlite3_vtab_cursor *base, int number, const char *text, int count,
                          sqlite3_value **arguments) {
  (void)number, (void)text, (void)count;
  struct cursor *cursor = (struct cursor *)base;
  const char *asked = plain_text(arguments[0]);
  cursor->condition = 0;
  cursor->done = 0;
  for (size_t k = 0; asked && k < sizeof conditions / sizeof *conditions; k++) {
    if (strcmp(conditions[k].name, asked) == 0) cursor->condition = &conditions[k];
  }
  if (!cursor->condition) {
    return fail(base->pVtab,
                sqlite3_mprintf("dp_amplify: condition must be 'dobrushin', 'dobrushin-epsilon', "
                                "'doeblin' or 'ultra'%s",
                                not_a(arguments[0], SQLITE_TEXT)));
  }
  for (int k = 0; k < 3; k++) {
    struct error error = {0};
    if (!domain_check(arguments[k + 1], &domains[k], &cursor->number[k], &error)) {
      char *message = sqlite3_mprintf("dp_amplify: %s", error_text(&error));
      error_clear(&error);
      return fail(base->pVtab, message);
    }
  }
  cursor->amplified =
      cursor->condition->amplify(cursor->number[0], cursor->number[1], cursor->number[2]);
  return SQLITE_OK;
}

static int amplify_next(sqlite3_vtab_cursor *base) {
  ((struct cursor *)base)->done = 1;
  return SQLITE_OK;
}

static int amplify_eof(sqlite3_vtab_cursor *base) {
  return ((struct cursor *)base)->done;
}

static int amplify_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column) {
  const struct cursor *cursor = (const struct cursor *)base;
  const double value[] = {
      [EPSILON] = cursor->amplified.epsilon,
      [DELTA] = cursor->amplified.delta,
      [GAMMA] = cursor->number[0],
      [EPSILON_IN] = cursor->number[1],
      [DELTA_IN] = cursor->number[2],
      [KERNEL_EPSILON] = mixing_epsilon(cursor->number[1], cursor->number[2]),
  };
  if (column == CONDITION) {
    sqlite3_result_text(context, cursor->condition->name, -1, SQLITE_STATIC);
  } else {
    sqlite3_result_double(context, value[column]);
  }
  return SQLITE_OK;
}

static int amplify_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid) {
  (void)base;
  *rowid = 1;
  return SQLITE_OK;
}

static const sqlite3_module amplify_module = {
    /* A module without xCreate serves only as a table-valued function. */
    .xConnect = amplify_connect,
    .xBestIndex = amplify_best_index,
    .xDisconnect = amplify_disconnect,
    .xOpen = amplify_open,
    .xClose = amplify_close,
    .xFilter = amplify_filter,
    .xNext = amplify_next,
    .xEof = amplify_eof,
    .xColumn = amplify_column,
    .xRowid = amplify_rowid,
};

int amplify_register(sqlite3 *db) {
  return sqlite3_create_module_v2(db, "dp_amplify", &amplify_module, 0, 0);
}
