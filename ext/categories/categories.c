/* categories.c: see categories.h. Tests: tests/categories/test_symbols.py */
#include "categories/categories.h"

#include <math.h>
#include <string.h>

#include "categories/divergences.h"
#include "categories/mechanisms.h"
#include "math/rounding.h"
#include "noise/categorical.h"
#include "release/definition.h"
#include "release/session.h"
#include "release/values.h"

SQLITE_EXTENSION_INIT3

/* ---- the mechanism --------------------------------------------------------------------------- */

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

void symbols_orders(const struct publication *publication, double *orders) {
  for (int i = 0; i < symbols_order_count(publication); i++) {
    double order = symbols_order_at(publication, i);
    orders[i] = order > 1 ? order : 2;
  }
}

int symbols_tier(const struct publication *publication, const char *name) {
  int tier = 0;
  while (tier < publication->position.count &&
         strcmp(publication->position.tiers[tier].name, name) != 0)
    tier++;
  return tier;
}

/*
** Returns the costs of a draw at a tier, at the orders of symbols_order_at(), or null when out of
** memory. The caller frees the costs with sqlite3_free(). A tier with exact Gaussian accounting has
** no order; the cost for such a tier is 0 here.
*/
static double *costs_of(const struct publication *publication, int tier) {
  double epsilon = tilt_of(publication, tier).epsilon;
  int count = symbols_order_count(publication);
  double *costs = sqlite3_malloc64(sizeof *costs * (sqlite3_uint64)count);
  const struct category_mechanism *mechanism =
      category_mechanism_of(publication->definition.mechanism);
  for (int i = 0; costs && i < count; i++) {
    double order = symbols_order_at(publication, i);
    costs[i] = order > 1 ? published_up(mechanism->rdp(order, epsilon)) : 0;
  }
  return costs;
}

/* ---- costs and rows -------------------------------------------------------------------------- */

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

/* Stores a category and publishes it. */
static int publish_symbol(struct publication *publication, const char *symbol, const char *kernel) {
  struct ledger *ledger = publication->session->ledger;
  const char *tier = publication->position.tiers[publication->position.at].name;
  struct cost cost = symbols_cost(publication);
  struct ledger_value value = {symbol, 0, 1, NAN, NAN, NAN};
  return ledger_symbol_insert(ledger, &publication->definition.release, tier, symbol) &&
         ledger_publication_insert(ledger, &publication->definition.release, tier, 0, &cost, 1,
                                   NO_CLIPPING, kernel) &&
         ledger_value_insert(ledger, &publication->definition.release, tier, &value) &&
         values_read(publication, tier);
}

/* ---- a new release --------------------------------------------------------------------------- */

static int categories_charge(struct publication *publication) {
  double *costs = costs_of(publication, publication->position.at);
  int charged = symbols_charge(publication, costs);
  sqlite3_free(costs);
  return charged;
}

static int categories_draw(struct publication *publication, const int64_t *counts) {
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

static int symbols_keep(struct publication *publication) {
  return publish_symbol(publication, publication->grid.keys[publication->chosen], 0);
}

/* ---- the path -------------------------------------------------------------------------------- */

/*
** The state of a walk along the categories of a release, from the inner tiers to the outer tiers.
*/
struct walk {
  struct publication *publication;
  const char *until; /* the tier at which the walk stops; null: the walk visits all tiers */
  int steps, tier;   /* the number of categories so far; the tier of the last category */
  char *symbol;
  char **states;
  int state_count;
  double epsilon;     /* the epsilon of the first category */
  struct chain chain; /* the product of all kernels so far, from the candidates on */
  double *costs;      /* the costs that the last category should have */
  int same;           /* 1: the stored categories, values and curves are correct so far */
  struct error error; /* an error in the stored data; verification reports a discrepancy */
};

static void free_states(struct walk *walk) {
  for (int i = 0; i < walk->state_count; i++) sqlite3_free(walk->states[i]);
  sqlite3_free(walk->states);
  walk->states = 0;
  walk->state_count = 0;
}

static void walk_end(struct walk *walk) {
  free_states(walk);
  chain_clear(&walk->chain);
  sqlite3_free(walk->symbol);
  sqlite3_free(walk->costs);
  error_clear(&walk->error);
}

static int add_state(struct walk *walk, const char *text) {
  char **grown =
      sqlite3_realloc64(walk->states, sizeof *grown * (sqlite3_uint64)(walk->state_count + 1));
  if (grown) walk->states = grown;
  char *copy = grown ? sqlite3_mprintf("%s", text) : 0;
  if (copy) walk->states[walk->state_count++] = copy;
  return copy != 0;
}

/*
** Sets the costs of the category that the kernel draws. The cost at each order is the smaller of
** two bounds. One bound is the cost before this kernel, because a kernel never raises the cost. The
** other bound is the cost of the worst mechanism with the epsilon of the first category, followed
** by all kernels so far (divergences.h). An audience that has also seen an earlier category has
** already paid for that category. Returns 1, or 0 with the error set.
*/
static int pass_channel(struct walk *walk, const struct markov_kernel *channel,
                        struct error *error) {
  if (!channel_check_next(channel, walk->states, walk->state_count, error)) return 0;
  int count = symbols_order_count(walk->publication);
  double *orders = sqlite3_malloc64(2 * sizeof *orders * (sqlite3_uint64)count);
  if (!orders) return error_set_memory(error);
  symbols_orders(walk->publication, orders);
  double *after = orders + count;
  int computed = (chain_pass(&walk->chain, channel, walk->states, walk->state_count) ||
                  error_set_memory(error)) &&
                 divergences_find(walk->publication->session, &walk->chain, walk->epsilon, orders,
                                  count, after, error);
  for (int i = 0; computed && i < count; i++)
    walk->costs[i] = fmin(walk->costs[i], published_up(after[i]));
  sqlite3_free(orders);
  return computed;
}

static int start_walk(struct walk *walk, int tier, struct error *error) {
  struct publication *publication = walk->publication;
  struct ledger *ledger = publication->session->ledger;
  walk->costs = costs_of(publication, tier);
  if (!walk->costs) return error_set_memory(error);
  walk->epsilon = walk->costs[RENYI_ORDERS - 1];
  int count, started = 1;
  char **keys = json_list(ledger_json(ledger), publication->definition.release.keys, 0, &count);
  for (int i = 0; keys && keys[i] && started; i++) started = add_state(walk, keys[i]);
  json_list_free(keys);
  return (keys && started) || error_set(error, "%s", error_text(ledger_error(ledger)));
}

static int pass_kernel(struct walk *walk, const char *kernel, struct error *error) {
  struct markov_kernel channel;
  struct json *json = ledger_json(walk->publication->session->ledger);
  int read = markov_kernel_read(&channel, json, kernel, error);
  int passed = read && pass_channel(walk, &channel, error);
  if (passed) free_states(walk); /* the output categories are the next states */
  for (int i = 0; passed && i < channel.symbol_count; i++)
    passed = add_state(walk, channel.symbols[i]) || error_set_memory(error);
  markov_kernel_clear(&channel);
  return passed;
}

static int take_symbol(void *context, const struct ledger_stage *stored) {
  struct walk *walk = context;
  const struct publication *publication = walk->publication;
  walk->tier = symbols_tier(publication, stored->tier);
  if (walk->tier == publication->position.count || !stored->symbol ||
      (walk->steps > 0) != (stored->kernel != 0)) {
    walk->same = 0;
    return 0;
  }
  struct error *error = &walk->error;
  int passed = walk->steps++ ? pass_kernel(walk, stored->kernel, error)
                             : start_walk(walk, walk->tier, error);
  sqlite3_free(walk->symbol);
  walk->symbol = sqlite3_mprintf("%s", stored->symbol);
  if (!walk->symbol) error_set_memory(error);
  if (!passed || !walk->symbol) return 0;
  int is_state = 0;
  for (int i = 0; i < walk->state_count; i++)
    is_state |= strcmp(walk->states[i], stored->symbol) == 0;
  walk->same = is_state && stored->shown && strcmp(stored->symbol, stored->shown) == 0;
  for (int i = 0; i < RENYI_ORDERS; i++)
    walk->same &= fabs(stored->curve[i] - walk->costs[i]) <= 1e-9 * walk->costs[i];
  return walk->same && !(walk->until && strcmp(walk->until, stored->tier) == 0);
}

/*
** Walks outward along the categories. Afterwards the caller checks walk.error, the ledger's error
** and walk.same.
*/
static void walk_symbols(struct walk *walk) {
  walk->same = 1;
  ledger_stages(walk->publication->session->ledger, walk->publication->definition.release.id,
                take_symbol, walk);
  if (!walk->steps) walk->same = 0;
}

/* ---- dp_mix ---------------------------------------------------------------------------------- */

static int mix_from(struct publication *publication, struct walk *walk,
                    const struct markov_kernel *channel) {
  struct ledger *ledger = publication->session->ledger;
  const char *name = publication->definition.release.name,
             *tier = publication->position.tiers[publication->position.at].name;
  if (publication->position.at <= walk->tier)
    return error_set(ledger_error(ledger),
                     "tier '%s' is not outside tier '%s', where the last symbol of release '%s' "
                     "is (make a release of its own)",
                     tier, publication->position.tiers[walk->tier].name, name);
  if (!pass_channel(walk, channel, &walk->error) || !symbols_pay(publication, walk->costs))
    return 0;
  size_t chosen = 0;
  const char *symbol = walk->symbol;
  for (int64_t i = 0; i < channel->steps; i++, symbol = channel->symbols[chosen]) {
    if (!categorical_weighted(markov_kernel_row(channel, symbol), (size_t)channel->symbol_count,
                              &chosen))
      return error_set(ledger_error(ledger), "the system gave no random bytes");
  }
  return publish_symbol(publication, symbol, channel->json);
}

int categories_mix(struct publication *publication, const struct markov_kernel *channel) {
  struct error *error = ledger_error(publication->session->ledger);
  struct walk walk = {.publication = publication};
  walk_symbols(&walk);
  if (!error_is_set(&walk.error) && !error_is_set(error) && !walk.same)
    error_set(error, "release '%s' is not what its charges say (see dp_verify)",
              publication->definition.release.name);
  int mixed =
      !error_is_set(&walk.error) && !error_is_set(error) && mix_from(publication, &walk, channel);
  if (error_is_set(&walk.error)) error_set(error, "%s", error_text(&walk.error));
  walk_end(&walk);
  return mixed;
}

/* ---- verification ---------------------------------------------------------------------------- */

static int categories_verify(struct publication *publication,
                             const struct ledger_publication *published) {
  struct ledger *ledger = publication->session->ledger;
  const char *tier = published->tier;
  struct walk walk = {.publication = publication, .until = tier};
  walk_symbols(&walk);
  int sound = walk.same && !error_is_set(&walk.error);
  if (error_is_memory(&walk.error)) error_set_memory(ledger_error(ledger));
  walk_end(&walk);
  return sound ||
         ledger_discrepancy(
             ledger,
             "dp_publication: '%s' at tier '%s' is not what its mechanism and kernels make it",
             publication->definition.release.name, tier);
}

const struct procedure category_procedure = {
    .charge = categories_charge,
    .draw = categories_draw,
    .keep = symbols_keep,
    .stays = "is a symbol, and reaches a tier outside its own only through a public kernel "
             "(dp_mix)",
    .verify = categories_verify};
