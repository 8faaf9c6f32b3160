/*
** display.c: defines an SQL function on the private connection for the column dp_value.display. The
** function writes a published value in the form in which people read it.
*/
#include "ledger/display.h"

#include <math.h>
#include <string.h>

#include "base/figure.h"

SQLITE_EXTENSION_INIT3

enum { KIND, LO, GRID, KEY, STDDEV, VALUE, LOW, HIGH, ARGUMENTS };

static int is_finite(sqlite3_value *value) {
  return sqlite3_value_type(value) == SQLITE_FLOAT && isfinite(sqlite3_value_double(value));
}

static void display(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  const struct ledger *ledger = sqlite3_user_data(context);
  const char *kind = (const char *)sqlite3_value_text(argv[KIND]);
  double lo = sqlite3_value_type(argv[LO]) == SQLITE_NULL ? NAN : sqlite3_value_double(argv[LO]);
  double value = sqlite3_value_double(argv[VALUE]);
  struct figure_grid grid = {lo, sqlite3_value_double(argv[GRID])};
  if (sqlite3_value_type(argv[STDDEV]) == SQLITE_NULL) {
    /* a symbol, or an end of bounds */
    char *end = kind && strcmp(kind, "bounds") == 0 ? sqlite3_mprintf("%.15g", value) : 0;
    if (end) {
      sqlite3_result_text(context, end, -1, sqlite3_free);
    } else {
      sqlite3_result_value(context, argv[KEY]);
    }
    return;
  }
  if (!kind || !is_finite(argv[VALUE])) return; /* the result is NULL */
  char *text = is_finite(argv[LOW]) && is_finite(argv[HIGH])
                   ? figure_with_interval(
                         value, sqlite3_value_double(argv[LOW]), sqlite3_value_double(argv[HIGH]),
                         ledger->is_positive(kind, lo), is_finite(argv[GRID]) ? &grid : 0)
                   : figure_alone(value);
  if (text) {
    sqlite3_result_text(context, text, -1, sqlite3_free);
  } else {
    sqlite3_result_error_nomem(context);
  }
}

int display_register(struct ledger *ledger, sqlite3 *db) {
  return sqlite3_create_function_v2(db, "display", ARGUMENTS, SQLITE_UTF8, ledger, display, 0, 0,
                                    0) == SQLITE_OK ||
         ledger_fail(ledger, "out of memory");
}
