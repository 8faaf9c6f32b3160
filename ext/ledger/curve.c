/*
** curve.c: reads, writes and adds RDP curves. The ledger stores a curve as a blob of 115
** little-endian doubles: the values at the 114 stored orders, followed by the value at the filter
** order.
** Tests: tests/ledger/test_curves.py
*/
#include "ledger/curve.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "ledger/statements.h"
#include "math/cost.h"

SQLITE_EXTENSION_INIT3

struct curve curve_of(const struct cost *cost, double filter_order) {
  struct curve curve;
  curve.any = cost->curve != 0;
  for (int i = 0; curve.any && i < CURVE_SIZE; i++) {
    double alpha = i < RENYI_ORDERS ? renyi_order(i) : filter_order;
    curve.values[i] = isnan(alpha) ? 0 : published_up(cost->curve(cost->parameters, alpha));
  }
  return curve;
}

struct curve curve_missing(const struct curve *cost, const struct curve *paid) {
  struct curve missing = {0, {0}};
  for (int i = 0; cost->any && i < CURVE_SIZE; i++) {
    double before = paid->any ? paid->values[i] : 0;
    /* If the paid curve is infinite at an order, nothing is left to pay at this order. */
    missing.values[i] =
        cost->values[i] > before ? total_missing((struct total){before, 0}, cost->values[i]) : 0;
    missing.any |= missing.values[i] > 0;
  }
  return missing;
}

void curve_add(struct curve *sum, const struct curve *term) {
  if (!term->any) return;
  for (int i = 0; i < CURVE_SIZE; i++) {
    double before = sum->any ? sum->values[i] : 0;
    sum->values[i] = before + term->values[i];
    /*
    ** The sum is exact if one term is 0. Otherwise the function raises the sum by one unit in the
    ** last place.
    */
    if (before > 0 && term->values[i] > 0) sum->values[i] = nextafter(sum->values[i], INFINITY);
  }
  sum->any = 1;
}

struct bytes curve_bytes(const struct curve *curve, unsigned char bytes[CURVE_BYTES]) {
  if (!curve->any) return (struct bytes){0, 0};
  for (int i = 0; i < CURVE_SIZE; i++) {
    uint64_t bits;
    memcpy(&bits, &curve->values[i], sizeof bits);
    for (int j = 0; j < 8; j++) bytes[8 * i + j] = (unsigned char)(bits >> (8 * j));
  }
  return (struct bytes){bytes, CURVE_BYTES};
}

struct curve curve_of_bytes(struct ledger *ledger, struct bytes stored) {
  struct curve curve;
  const unsigned char *bytes = stored.at;
  curve.any = bytes != 0;
  if (!curve.any) return curve;
  if (stored.size != CURVE_BYTES) {
    ledger_fail_damaged(ledger, "a curve in dp_charge or dp_publication");
    curve.any = 0;
    return curve;
  }
  for (int i = 0; i < CURVE_SIZE; i++) {
    curve.values[i] = binary64(bytes + 8 * (size_t)i);
    if (!(curve.values[i] >= 0))
      ledger_fail_damaged(ledger, "a curve in dp_charge or dp_publication");
  }
  return curve;
}

struct curve curve_column(struct ledger *ledger, sqlite3_stmt *row, int column) {
  return curve_of_bytes(ledger, column_bytes(row, column));
}
