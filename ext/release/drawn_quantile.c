/* drawn_quantile.c: releases of one quantile by the exponential mechanism (mechanism/mechanism.h).
**
** The rows are added up in the leaves of the range, and one leaf is drawn. The ledger stores it as
** a point of clock 0 with one coordinate, the index of the leaf. No noise can make a point for an
** outer tier from it, and no draw one for an inner tier, so the release stays at its tier.
** Tests: tests/mechanism/test_exponential_quantiles.py */
#include "base/sql_text.h"
#include "release/internal.h"

#include <math.h>

#include "ledger/ledger.h"
#include "math/math.h"

SQLITE_EXTENSION_INIT3

int leaf_release_suits(const struct aggregate *aggregate, const struct ledger_release *release) {
  double quantile;
  return mechanism_find(aggregate, leaf_draw_mechanism.name) == &leaf_draw_mechanism &&
         !release->diagnose && release->quantiles &&
         vector_text_list(release->quantiles, &quantile, 1) == 1;
}

/* ---- the cost -------------------------------------------------------------------------------- */

/* The tiers that pay are the publication's tier and those inside it. */
int leaf_costs_rate(const struct publication *publication) {
  const struct position *position = &publication->position;
  for (int i = 0; i <= position->at; i++)
    if (!position->tiers[i].accountant->covers_curves) return 1;
  return 0;
}

/* Returns the tilt whose cost is a rate (`as_rate`) or a curve, and at most what a release of this
** rate may cost at the publication's tier. A tier of pure differential privacy allows a draw the
** epsilon of Laplace noise. */
static struct tilt tilt_of(const struct publication *publication, int as_rate, double rate) {
  const struct ledger_tier *tier = publication_tier(publication);
  struct leaf_draw draw = definition_leaf_draw(publication);
  double epsilon = as_rate                          ? bounded_range_gaussian_epsilon(rate)
                   : tier->accountant->covers_rates ? sqrt(8 * rate)
                                                    : tier->accountant->cost_of_rate(rate);
  return tilt_make(published_down(epsilon), leaf_draw_range(&draw));
}

static double rate_of(const struct publication *publication) {
  return publication->definition.release.weight * publication_tier(publication)->rate;
}

struct tilt leaf_tilt(const struct publication *publication) {
  return tilt_of(publication, leaf_costs_rate(publication), rate_of(publication));
}

static double curve_at(const void *room, double alpha) {
  return published_up(bounded_range_rdp(alpha, ((const struct cost_room *)room)->epsilon));
}

/* Returns the cost of a draw. The publication owns the parameters of the curve. */
static struct cost cost_of(struct publication *publication, const struct tilt *tilt, int as_rate) {
  publication->cost.room.epsilon = tilt->epsilon;
  return as_rate ? (struct cost){published_up(bounded_range_gaussian_rate(tilt->epsilon)), 0, 0, 0}
                 : (struct cost){0, 0, curve_at, &publication->cost.room};
}

static struct cost draw_cost(struct publication *publication) {
  int as_rate = leaf_costs_rate(publication);
  struct tilt tilt = tilt_of(publication, as_rate, rate_of(publication));
  return cost_of(publication, &tilt, as_rate);
}

/* ---- precision ------------------------------------------------------------------------------- */

double leaf_half_width(const struct publication *publication, double rows, double rate) {
  const struct contribution *question = &publication->definition.contribution;
  struct leaf_draw draw = definition_leaf_draw(publication);
  struct tilt tilt =
      tilt_of(publication, leaf_costs_rate(publication), fmin(rate, leaf_draw_mechanism.most));
  double error = leaf_draw_even_error(&draw, tilt.epsilon, NUMBERS_CONFIDENCE);
  if (isnan(rows)) return published_up(error);
  double range = 2 * (question->high / 2 - question->low / 2);
  return published_up(range * (error / rows + 0.5 / question->size));
}

/* ---- a new release --------------------------------------------------------------------------- */

static int leaf_charge(struct publication *publication) {
  struct ledger_release *release = &publication->definition.release;
  struct leaf_draw draw = definition_leaf_draw(publication);
  struct cost cost = draw_cost(publication);
  release->dimension = 1;
  release->granularity = publication->definition.layout.fine_exponent;
  release->shift = 0;
  release->sensitivity = leaf_draw_range(&draw);
  return definition_store(publication) &&
         ledger_charge(publication->session->ledger, release, publication->position.tiers,
                       publication->position.count, publication->position.at, &cost);
}

static int leaf_draw(struct publication *publication, const int64_t *totals) {
  struct leaf_draw draw = definition_leaf_draw(publication);
  struct tilt tilt = leaf_tilt(publication);
  size_t count = (size_t)leaf_draw_candidates(&draw);
  int64_t *utility = sqlite3_malloc64(sizeof *utility * count);
  if (!utility) return error_set_memory(&publication->session->error);
  leaf_draw_utility(&draw, totals, utility);
  int drawn = categorical_exponential(utility, count, tilt.exponent, &publication->chosen);
  sqlite3_free(utility);
  return drawn || no_random_bytes(publication);
}

static int leaf_keep(struct publication *publication) {
  char *tier = publication_tier(publication)->name;
  int64_t leaf = (int64_t)publication->chosen;
  struct ledger_grid grid = {0, 1, 1, 0};
  struct ledger_point point = {tier, 0, &leaf};
  struct cost cost = draw_cost(publication);
  return ledger_path_insert(publication->session->ledger, &publication->definition.release, &grid,
                            &point) &&
         values_store(publication, &cost, &leaf);
}

/* ---- verification ---------------------------------------------------------------------------- */

/* The state of take_leaf() and compare_number(), which compare what is stored with its point. */
struct comparison {
  int64_t leaf;
  int leaves, numbers, same;
  double value;
};

static int take_leaf(void *context, const char *key, int64_t leaf) {
  struct comparison *comparison = context;
  comparison->leaf = leaf;
  comparison->leaves++;
  return *key == 0;
}

static int compare_number(void *context, const struct ledger_value *stored) {
  struct comparison *comparison = context;
  comparison->numbers++;
  comparison->same = stored->value == comparison->value && isnan(stored->stddev) &&
                     isnan(stored->low) && isnan(stored->high);
  return 1;
}

static int same_number(double stored, double expected) {
  return fabs(stored - expected) <= 1e-9 * expected;
}

/* Returns whether a publication has the cost of its draw: a rate, or a curve if it stores one. */
static int same_cost(struct publication *publication, const struct ledger_publication *published) {
  struct tilt tilt = tilt_of(publication, !published->curve, rate_of(publication));
  struct cost cost = cost_of(publication, &tilt, !published->curve);
  if (!same_number(published->rate, cost.rate)) return 0;
  for (int i = 0; published->curve && i < RENYI_ORDERS; i++)
    if (!same_number(published->curve[i], cost.curve(cost.parameters, renyi_order(i)))) return 0;
  return 1;
}

static int leaf_verify(struct publication *publication,
                       const struct ledger_publication *published) {
  struct ledger *ledger = publication->session->ledger;
  const struct ledger_release *release = &publication->definition.release;
  struct leaf_draw draw = definition_leaf_draw(publication);
  struct comparison comparison = {0};
  publication->position.at = ledger_tier_find(ledger, publication->position.tiers,
                                              publication->position.count, published->tier);
  if (publication->position.at < 0) return 0;
  if (!definition_same_lattice(publication) || !same_cost(publication, published))
    return ledger_discrepancy(
        ledger, "dp_publication: '%s' at tier '%s' is not what its mechanism makes it",
        release->name, published->tier);
  ledger_reports(ledger, release->id, published->tier, take_leaf, &comparison);
  if (comparison.leaves == 1 && comparison.leaf >= 0 &&
      comparison.leaf < leaf_draw_candidates(&draw)) {
    comparison.value = leaf_draw_value(draw.question, (int)comparison.leaf);
    ledger_values(ledger, release->id, published->tier, compare_number, &comparison);
  }
  return (comparison.numbers == 1 && comparison.same) ||
         ledger_discrepancy(ledger, "dp_value: '%s' at tier '%s' is not what its point makes it",
                            release->name, published->tier);
}

const struct procedure leaf_procedure = {
    .charge = leaf_charge,
    .draw = leaf_draw,
    .keep = leaf_keep,
    /* Advice: Take a new name, or `dp_discard` the old one (the draw stays paid). Release at the
       innermost tier with `"mechanism":"gaussian"`, then `dp_diffuse`. */
    .stays =
        "was drawn by the exponential mechanism and stays at its tier (for several tiers, make "
        "a release with \"mechanism\":\"gaussian\" or \"laplace\", whose tree of counts can be "
        "diffused)",
    .verify = leaf_verify};
