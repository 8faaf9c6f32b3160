/* categories.c: see categories.h.
** Tests: tests/categories/test_symbols.py, tests/categories/test_long_kernels.py */
#include "categories/categories.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "ledger/ledger.h"
#include "math/math.h"
#include "noise/noise.h"
#include "release/release.h"

SQLITE_EXTENSION_INIT3

/* ---- mechanisms ------------------------------------------------------------------------------ */

/* A mechanism that draws one of the public categories. */
struct category_mechanism {
  struct mechanism mechanism;
  /* The largest epsilon whose cost at each order alpha is at most alpha * rate. */
  double (*epsilon)(double rate);
  /* The Renyi divergence of order alpha of a draw with this epsilon. */
  double (*rdp)(double alpha, double epsilon);
  /* The interval of the changes that one unit makes to the utilities (struct tilt), if neighbours
  ** differ by adding or removing a unit, and by replacing one. */
  uint64_t range, range_replaced;
  /* From the number of units that have each category. */
  void (*utility)(int64_t *utility, const int64_t *counts, size_t count);
  /* Draws a category (noise/noise.h). `order` has room for `count` numbers. */
  int (*draw)(const int64_t *utility, uint32_t *order, size_t count, uint64_t exponent,
              size_t *chosen);
};

/* ---- the exponential mechanism (McSherry and Talwar 2007) ------------------------------------ */

/* The utility of a category is the number of units that have the category. Adding a unit raises
** each utility by 0 or 1, and removing a unit lowers each utility by 0 or 1. The privacy loss is
** therefore in an interval of length `step` (struct tilt). Replacing a unit can raise some
** utilities and lower others by 1, so the length of the interval is 2 step. */
static double exponential_epsilon(double rate) {
  return sqrt(8 * rate);
}

static void count_utility(int64_t *utility, const int64_t *counts, size_t count) {
  memcpy(utility, counts, sizeof *utility * count);
}

static int exponential_draw(const int64_t *utility, uint32_t *order, size_t count,
                            uint64_t exponent, size_t *chosen) {
  (void)order;
  return categorical_exponential(utility, count, exponent, chosen);
}

static const struct category_mechanism exponential = {
    .mechanism = {.name = "exponential",
                  .theorem = EXPONENTIAL_THEOREM,
                  .statistics = STATISTIC_CATEGORY,
                  .most = TILT_MOST_RATE},
    .epsilon = exponential_epsilon,
    .rdp = bounded_range_rdp,
    .range = 1,
    .range_replaced = 2,
    .utility = count_utility,
    .draw = exponential_draw};

/* ---- permute-and-flip (McKenna and Sheldon 2020) --------------------------------------------- */

/* The categories are tried in a random order, and category i is accepted with probability
** q_i = exp(-step (m - u_i)), where u_i is its utility, that of the exponential mechanism, and m is
** the highest utility. The first category that is accepted is drawn.
**
** Law: give each category an independent uniform time in [0, 1]. The order of the times is a random
** order. At the time t, another category j has come and was accepted with probability t q_j. So
**
**     P(i) = q_i integral_0^1 prod_(j != i) (1 - t q_j) dt.
**
** The same holds for the index with the largest u_i + E_i, with independent E_i of the density
** step e^(-step x), x >= 0 (Ding et al. 2021): its largest value x is at least m, has the density
** step e^(-step (x - u_i)), and exceeds u_j + E_j with probability 1 - e^(-step (x - u_j)), so
** t = e^(-step (x - m)) gives the integral.
**
** Epsilon: fix all E_j but E_i. Category i is drawn if E_i exceeds a threshold, the largest
** u_j + E_j minus u_i, with probability min(1, e^(-step threshold)). If a unit is added, all
** utilities rise by 0 or 1; if it is removed, they fall by 0 or 1: the threshold moves by at most
** 1. If a unit is replaced, one utility can rise and another fall, and it moves by at most 2. The
** probability changes by a factor of at most e^step or e^(2 step), before and after averaging over
** the E_j. So the step is that of the exponential mechanism with this epsilon, and the expected
** distance from the best category is never larger than there (McKenna and Sheldon 2020). A category
** that is t units behind is drawn with probability at most e^(-step t)/2: the best one has q = 1.
**
** The loss is not of bounded range epsilon: it takes both signs. So the curve is that of any
** epsilon-DP mechanism, and where tiers pay for finite orders, the exponential mechanism has twice
** the step at the same cost and stays the default. */
static const struct category_mechanism permute_and_flip = {
    .mechanism = {.name = "permute-and-flip",
                  .theorem = "permute-and-flip (McKenna and Sheldon 2020), of pure epsilon; at "
                             "finite orders randomized response, the worst case",
                  .statistics = STATISTIC_CATEGORY,
                  .most = TILT_MOST_RATE,
                  .for_epsilons = 1},
    .epsilon = response_epsilon,
    .rdp = response_rdp,
    .range = 1,
    .range_replaced = 2,
    .utility = count_utility,
    .draw = categorical_flip};

/* ---- randomized response (Warner 1965) ------------------------------------------------------- */

/* The mechanism draws the most common category with the largest probability. All other categories
** have one common, smaller probability.
**
** On all data, one utility is 1 and the others are 0. The weights exp(step utility) therefore have
** the same sum on all data, and the absolute value of the privacy loss is at most `step`
** (mechanism.h). A range of 1 makes `epsilon` this bound, not the length of an interval. */

/* The first of the most common categories gets the utility 1, and all others 0. */
static void response_utility(int64_t *utility, const int64_t *counts, size_t count) {
  size_t mode = 0;
  for (size_t i = 1; i < count; i++) mode = counts[i] > counts[mode] ? i : mode;
  for (size_t i = 0; i < count; i++) utility[i] = i == mode;
}

static const struct category_mechanism randomized_response = {
    .mechanism = {.name = "response",
                  .theorem = "randomized response (Warner 1965; Kairouz, Oh and Viswanath 2015); "
                             "behind a kernel the worst pair of states",
                  .statistics = STATISTIC_CATEGORY,
                  .most = TILT_MOST_RATE},
    .epsilon = response_epsilon,
    .rdp = response_rdp,
    .range = 1,
    .range_replaced = 1,
    .utility = response_utility,
    .draw = exponential_draw};

/* ---- local randomisation --------------------------------------------------------------------- */

/* A public kernel randomises every row before the row is counted. The kernel is a parameter of the
** release. The cost is the cost of the kernel's worst pair of rows (categories.h). */
static const struct mechanism local_randomisation = {
    .name = "local",
    .theorem = "local randomisation of each row (Warner 1965; Balle et al. 2019, Table 1): the "
               "worst pair of rows of the product of its kernels",
    .statistics = STATISTIC_REPORTS,
    .most = TILT_MOST_RATE};

const struct mechanism *const category_mechanisms[] = {
    &exponential.mechanism, &permute_and_flip.mechanism, &randomized_response.mechanism,
    &local_randomisation, 0};

/* Returns the mechanism that draws a category, for a mechanism of STATISTIC_CATEGORY. */
static const struct category_mechanism *category_mechanism_of(const struct mechanism *mechanism) {
  assert(mechanism->statistics == STATISTIC_CATEGORY);
  return (const struct category_mechanism *)mechanism;
}

/* ---- the costs of kernels -------------------------------------------------------------------- */

/* The cost of a kernel is a list of Renyi divergences of the worst pair of its rows (kernel_rdp).
** For a kernel with 64 states and 1024 outputs, this takes 20 seconds. In a transaction that
** defers, the divergences of a large kernel are therefore computed while the ledger is not locked
** (release/release.h). They are found again by the exact probabilities of the kernels, by epsilon
** and by the orders, so a transaction never takes a wrong divergence. */

/* The divergences of one kernel. */
struct divergence {
  struct computation computation;
  struct chain chain; /* a copy */
  double epsilon;
  int count;
  double *orders, *rdp; /* rdp is set when the computation is done */
};

/* A computation with at most this many terms takes a few milliseconds, and is never deferred. */
#define FEW_TERMS 100000

/* Computes the divergences of a chain. Each row is followed by a look for an interrupt. */
static int compute(struct ledger *ledger, const struct chain *chain, double epsilon,
                   const double *orders, int count, double *rdp, struct error *error) {
  struct kernel kernel = {chain->high, chain->rows, chain->columns};
  for (int i = 0; i < count; i++) rdp[i] = 0;
  for (size_t row = 0; row < chain->rows; row++) {
    if (!kernel_rdp(&kernel, chain->low, epsilon, row, orders, count, rdp))
      return error_set_memory(error);
    if (!ledger_goes_on(ledger)) return error_set(error, "%s", error_text(ledger_error(ledger)));
  }
  return 1;
}

static int divergence_compute(struct session *session, struct computation *computation) {
  struct divergence *divergence = (struct divergence *)computation;
  return compute(session->ledger, &divergence->chain, divergence->epsilon, divergence->orders,
                 divergence->count, divergence->rdp, &session->error);
}

static void divergence_free(struct computation *computation) {
  struct divergence *divergence = (struct divergence *)computation;
  chain_clear(&divergence->chain);
  sqlite3_free(divergence->orders);
  sqlite3_free(divergence);
}

/* Adds a kernel and the orders to compute. Returns 0 if memory runs out. */
static int add(struct deferred *deferred, const struct chain *chain, double epsilon,
               const double *orders, int count) {
  struct divergence *added = sqlite3_malloc64(sizeof *added);
  if (!added) return 0;
  *added = (struct divergence){
      {deferred->list, 0, divergence_compute, divergence_free}, .epsilon = epsilon, .count = count};
  added->orders = sqlite3_malloc64(2 * sizeof *orders * (sqlite3_uint64)count);
  if (!added->orders || !chain_copy(&added->chain, chain)) {
    divergence_free(&added->computation);
    return 0;
  }
  memcpy(added->orders, orders, sizeof *orders * (size_t)count);
  added->rdp = added->orders + count;
  deferred->list = &added->computation;
  return 1;
}

/* Copies the divergences of the chain that the list has to rdp. Moves the orders that it lacks to
** the front of `missing`, with their places in rdp, and returns their number. */
static int take_listed(const struct deferred *deferred, const struct chain *chain, double epsilon,
                       double *missing, int *places, int count, double *rdp) {
  for (const struct computation *next = deferred->list; next && count; next = next->next) {
    const struct divergence *at = (const struct divergence *)next;
    size_t size = 2 * sizeof *chain->high * chain->rows * chain->columns;
    if (!next->done || at->epsilon != epsilon || at->chain.rows != chain->rows ||
        at->chain.columns != chain->columns || memcmp(at->chain.high, chain->high, size) != 0)
      continue;
    int left = 0;
    for (int i = 0; i < count; i++) {
      int k = 0;
      while (k < at->count && at->orders[k] != missing[i]) k++;
      if (k < at->count) {
        rdp[places[i]] = at->rdp[k];
      } else {
        missing[left] = missing[i];
        places[left++] = places[i];
      }
    }
    count = left;
  }
  return count;
}

/* Sets rdp[i] to the largest Renyi divergence of order orders[i] between two output distributions
** of the chain, if an epsilon-DP mechanism draws the chain's first state. Returns 1, or 0 with the
** error set. */
static int divergences_find(struct session *session, const struct chain *chain, double epsilon,
                            const double *orders, int count, double *rdp, struct error *error) {
  struct deferred *deferred = &session->deferred;
  double *missing = sqlite3_malloc64(2 * sizeof *missing * (sqlite3_uint64)count);
  int *places = sqlite3_malloc64(sizeof *places * (sqlite3_uint64)count), found = 0;
  for (int i = 0; missing && places && i < count; i++) {
    missing[i] = orders[i];
    places[i] = i;
  }
  double terms = (double)chain->rows * (double)chain->rows * (double)chain->columns;
  int left =
      missing && places ? take_listed(deferred, chain, epsilon, missing, places, count, rdp) : 0;
  if (!missing || !places) {
    error_set_memory(error);
  } else if (deferred->defers && left && terms * left > FEW_TERMS) {
    if (add(deferred, chain, epsilon, missing, left)) { /* nobody sees this error */
      error_set(error, "the cost of a kernel is not computed yet (a bug)");
    } else {
      error_set_memory(error);
    }
  } else {
    double *computed = missing + count;
    found = !left || compute(session->ledger, chain, epsilon, missing, left, computed, error);
    for (int i = 0; found && i < left; i++) rdp[places[i]] = computed[i];
  }
  sqlite3_free(missing);
  sqlite3_free(places);
  return found;
}

/* ---- costs ----------------------------------------------------------------------------------- */

/* Returns the tilt of a draw at a tier. A tier of pure differential privacy allows a draw the
** epsilon of Laplace noise. */
static struct tilt tilt_of(const struct publication *publication, int at) {
  const struct category_mechanism *draw = category_mechanism_of(publication->definition.mechanism);
  const struct ledger_tier *tier = &publication->position.tiers[at];
  int replace = ledger_adjacency(publication->session->ledger) == LEDGER_REPLACE;
  double rate = publication->definition.release.weight * tier->rate;
  double epsilon =
      tier->accountant->covers_rates ? draw->epsilon(rate) : tier->accountant->cost_of_rate(rate);
  return tilt_make(published_down(epsilon), replace ? draw->range_replaced : draw->range);
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
  /* Each output must be possible for every state or for none. Otherwise it could rule out a state,
  ** and no finite epsilon would cover the release. */
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

/* For the callback by which the ledger reads the curve: one cost for each symbols_order_at(). */
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
  const struct category_mechanism *draw = category_mechanism_of(publication->definition.mechanism);
  struct tilt tilt = tilt_of(publication, publication->position.at);
  size_t count = (size_t)publication->grid.cells, chosen = 0;
  int64_t *utility = sqlite3_malloc64((sizeof *utility + sizeof(uint32_t)) * count);
  if (!utility) return error_set_memory(ledger_error(ledger));
  draw->utility(utility, counts, count);
  int drawn = draw->draw(utility, (uint32_t *)(utility + count), count, tilt.exponent, &chosen);
  sqlite3_free(utility);
  if (!drawn) return error_set(ledger_error(ledger), "the system gave no random bytes");
  publication->chosen = chosen;
  return 1;
}

int categories_keep(struct publication *publication) {
  return symbols_publish(publication, publication->grid.keys[publication->chosen], 0);
}
