/* categories.c: see categories.h. Tests: tests/categories/test_symbols.py */
#include "categories/categories.h"

#include <math.h>
#include <string.h>

#include "categories/divergences.h"
#include "categories/mechanisms.h"
#include "math/cost.h"
#include "noise/noise.h"
#include "release/definition.h"
#include "release/session.h"
#include "release/values.h"

SQLITE_EXTENSION_INIT3

/* ---- costs ----------------------------------------------------------------------------------- */

/* Returns the tilt (mechanism.h) of a draw at a tier. */
static struct tilt tilt_of(const struct publication *publication, int tier) {
  int replace = ledger_adjacency(publication->session->ledger) == LEDGER_REPLACE;
  double rate = publication->definition.release.weight * publication->position.tiers[tier].rate;
  return category_mechanism_of(publication->definition.mechanism)->tilt(rate, replace);
}

int symbols_order_count(const struct publication *publication) {
  return RENYI_ORDERS + publication->position.count;
}

double symbols_order_at(const struct publication *publication, int index) {
  return index < RENYI_ORDERS ? renyi_order(index)
                              : publication->position.tiers[index - RENYI_ORDERS].filter_order;
}

double *symbols_costs(const struct publication *publication, int tier) {
  int count = symbols_order_count(publication);
  int is_survey = publication->definition.release.model != 0;
  double epsilon = is_survey ? INFINITY : tilt_of(publication, tier).epsilon;
  double *costs = sqlite3_malloc64(sizeof *costs * (sqlite3_uint64)count);
  for (int i = 0; costs && i < count; i++) {
    double order = symbols_order_at(publication, i);
    costs[i] = is_survey ? INFINITY : 0;
    if (!is_survey && order > 1)
      costs[i] = published_up(
          category_mechanism_of(publication->definition.mechanism)->rdp(order, epsilon));
  }
  return costs;
}

int symbols_lower(const struct publication *publication, const struct chain *chain, double epsilon,
                  double *costs, struct error *error) {
  int count = symbols_order_count(publication);
  /*
  ** Each output must have probability 0 for every state or for no state. Otherwise an output could
  ** rule out a state, and no finite epsilon would cover the release.
  */
  for (size_t i = 0; isinf(epsilon) && i < chain->rows * chain->columns; i++) {
    if ((chain->high[i] > 0) != (chain->high[i % chain->columns] > 0))
      return error_set(error,
                       "the kernel gives some x a y that another x never gives, which tells them "
                       "apart for sure (give each y of one x to every x)");
  }
  double *orders = sqlite3_malloc64(2 * sizeof *orders * (sqlite3_uint64)count);
  if (!orders) return error_set_memory(error);
  for (int i = 0; i < count; i++) {
    double order = symbols_order_at(publication, i);
    orders[i] = order > 1 ? order : 2; /* a tier with exact Gaussian accounting has none */
  }
  double *after = orders + count;
  int found = divergences_find(publication->session, chain, epsilon, orders, count, after, error);
  for (int i = 0; found && i < count; i++) costs[i] = fmin(costs[i], published_up(after[i]));
  sqlite3_free(orders);
  return found;
}

/*
** The context of the callback from which the ledger reads the curve. The curve has one cost for
** each order of symbols_order_at().
*/
struct symbol_curve {
  const struct publication *publication;
  const double *costs;
};

static double curve_at(const void *parameters, double alpha) {
  const struct symbol_curve *curve = parameters;
  for (int i = 0; i < symbols_order_count(curve->publication); i++) {
    if (symbols_order_at(curve->publication, i) == alpha) return curve->costs[i];
  }
  return INFINITY;
}

int symbols_pay(struct publication *publication, const double *costs) {
  struct symbol_curve curve = {publication, costs};
  struct cost cost = {0, 0, curve_at, &curve};
  if (!costs) return error_set(ledger_error(publication->session->ledger), "out of memory");
  memcpy(publication->cost.curve, costs, sizeof publication->cost.curve);
  return ledger_charge(publication->session->ledger, &publication->definition.release,
                       publication->position.tiers, publication->position.count,
                       publication->position.at, &cost);
}

static double stored_curve_at(const void *parameters, double alpha) {
  return renyi_curve_at(parameters, alpha);
}

struct cost symbols_cost(const struct publication *publication) {
  return (struct cost){0, 0, stored_curve_at, publication->cost.curve};
}

int symbols_charge(struct publication *publication, const double *costs) {
  struct ledger_release *release = &publication->definition.release;
  release->dimension = publication->definition.layout.coordinates;
  release->shift = -publication->definition.layout.fine_exponent; /* totals are numbers of units */
  release->granularity = 0;
  release->sensitivity = 1;
  return definition_store(publication) && symbols_pay(publication, costs);
}

int symbols_publish(struct publication *publication, const char *symbol, const char *kernel) {
  struct ledger *ledger = publication->session->ledger;
  const char *tier = publication->position.tiers[publication->position.at].name;
  struct cost cost = symbols_cost(publication);
  struct ledger_value value = {symbol, 0, 1, NAN, NAN, NAN};
  return ledger_symbol_insert(ledger, &publication->definition.release, tier, symbol) &&
         ledger_publication_insert(ledger, &publication->definition.release, tier, 0, &cost, 1,
                                   NO_CLIPPING, (double)NAN, kernel) &&
         ledger_value_insert(ledger, &publication->definition.release, tier, &value) &&
         values_read(publication, tier);
}

/* ---- a new release --------------------------------------------------------------------------- */

int categories_charge(struct publication *publication) {
  double *costs = symbols_costs(publication, publication->position.at);
  int charged = symbols_charge(publication, costs);
  sqlite3_free(costs);
  return charged;
}

int categories_draw(struct publication *publication, const int64_t *counts) {
  struct ledger *ledger = publication->session->ledger;
  struct tilt tilt = tilt_of(publication, publication->position.at);
  size_t count = (size_t)publication->grid.cells, chosen = 0;
  int64_t *utility = sqlite3_malloc64(sizeof *utility * count);
  if (!utility) return error_set_memory(ledger_error(ledger));
  category_mechanism_of(publication->definition.mechanism)->utility(utility, counts, count);
  int drawn = categorical_exponential(utility, count, tilt.exponent, &chosen);
  sqlite3_free(utility);
  if (!drawn) return error_set(ledger_error(ledger), "the system gave no random bytes");
  publication->chosen = chosen;
  return 1;
}

int categories_keep(struct publication *publication) {
  return symbols_publish(publication, publication->grid.keys[publication->chosen], 0);
}
