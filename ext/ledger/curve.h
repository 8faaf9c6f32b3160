/* curve.h: RDP curves, as the ledger stores and adds them. */
#ifndef DIFFUSE_LEDGER_CURVE_H
#define DIFFUSE_LEDGER_CURVE_H

#include "ledger/handle.h"
#include "ledger/hash.h"
#include "math/renyi.h"

/*
** The RDP that a cost has in addition to the RDP of its rate (math/cost.h), at the stored orders
** (math/renyi.h) and at the filter order of one tier.
*/
#define CURVE_SIZE  (RENYI_ORDERS + 1)
#define AT_INFINITY (RENYI_ORDERS - 1)
#define AT_FILTER   RENYI_ORDERS
struct curve {
  int any; /* 0: the curve is zero at every order, and `values` is not set */
  double values[CURVE_SIZE];
};

/*
** Returns the curve of a cost, rounded up. If the filter order is NaN, the entry at the filter
** order is 0.
*/
struct curve curve_of(const struct cost *cost, double filter_order);

/* Returns, for each order, how far the curve `cost` exceeds the curve `paid`, or 0. */
struct curve curve_missing(const struct curve *cost, const struct curve *paid);

/* Adds one curve to another, rounded up. */
void curve_add(struct curve *sum, const struct curve *term);

/* Reads a curve from a column. NULL stands for no curve. Sets the error if the blob is damaged. */
struct curve curve_column(struct ledger *ledger, sqlite3_stmt *row, int column);

/* Reads a curve from the bytes of a blob. */
struct curve curve_of_bytes(struct ledger *ledger, struct bytes stored);

/* Returns the bytes that the ledger stores for a curve, or a null pointer if there is no curve. */
#define CURVE_BYTES (CURVE_SIZE * 8)
struct bytes curve_bytes(const struct curve *curve, unsigned char bytes[CURVE_BYTES]);

#endif
