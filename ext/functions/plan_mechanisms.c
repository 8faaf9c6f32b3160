/* plan_mechanisms.c: see plan_mechanisms.h. Tests: tests/functions/test_mechanism_choice.py */
#include "functions/plan_mechanisms.h"

#include <math.h>

#include "base/number.h"
#include "math/laplace.h"
#include "mechanism/lattice_design.h"
#include "release/default_mechanism.h"
#include "release/definition.h"
#include "release/numbers.h"
#include "release/session.h"

SQLITE_EXTENSION_INIT3

#define MOST_RELEASES 0x1p20

double plan_half_width(struct publication *publication, double rows, double rate) {
  struct ledger_release *release = &publication->definition.release;
  const struct noise_law *noise = publication->definition.mechanism->noise;
  struct design design;
  design_make(&design, &publication->definition.layout, rate, noise);
  release->granularity = design.granularity;
  release->shift = design.shift;
  publication->position.clock = noise->clock(design.sensitivity, rate);
  double half_width = numbers_half_width(publication, rows);
  return isnan(half_width) ? plan_statistic_half_width(publication, numbers_stddev(publication))
                           : half_width;
}

double plan_statistic_half_width(const struct publication *publication, double stddev) {
  const struct noise_law *noise = publication->definition.mechanism->noise;
  return publication->definition.aggregate->family->is_linear
             ? noise->half_width(stddev, NUMBERS_CONFIDENCE)
             : mixed_half_width(noise, stddev, NUMBERS_CONFIDENCE);
}

/* The two publications that a plan compares, and the tier that pays for them. */
struct comparison {
  struct publication gaussian, laplace;
  const struct ledger_tier *tier;
  double rows;
};

/*
** Returns the half-width of one release with Gaussian noise if n equal releases use up the budget
** of the tier.
*/
static double gaussian_share(struct comparison *comparison, double n) {
  double rate = fmin(comparison->tier->rate_limit / n, gaussian_noise.most);
  return plan_half_width(&comparison->gaussian, comparison->rows, rate);
}

/*
** Does what gaussian_share() does, for Laplace noise. A Laplace release is charged its RDP at the
** tier's filter order, but its lattice is designed for a rate. The function therefore searches for
** the noise whose RDP is 1/n of the budget, and uses the rate of this noise. `low` and `high` bound
** the sensitivity divided by the scale of the noise. This is also its pure epsilon, and the tier
** admits the noise, too, if this epsilon is 1/n of pure_limit.
*/
static double laplace_share(struct comparison *comparison, double n) {
  double order = comparison->tier->filter_order;
  double cost = order * comparison->tier->rate_limit / n;
  double low = 0, high = 2 * (cost + sqrt(cost)) + 4; /* `high` costs more than `cost` */
  for (int i = 0; i < 200 && high - low > high * 0x1p-40; i++) {
    double middle = low / 2 + high / 2;
    if (laplace_rdp(order, middle, 1) > cost) {
      high = middle;
    } else {
      low = middle;
    }
  }
  low = fmax(low, comparison->tier->pure_limit / n); /* the limit may be NaN: there is none */
  double rate = fmin(laplace_rdp(1, low, 1), laplace_noise.most);
  return plan_half_width(&comparison->laplace, comparison->rows, fmax(rate, DESIGN_MIN_RATE));
}

static int gaussian_is_better(struct comparison *comparison, double n) {
  return gaussian_share(comparison, n) <= laplace_share(comparison, n);
}

/* Returns the least n at which Gaussian noise is better, or NaN if there is none up to 2^20. */
static double crossing(struct comparison *comparison) {
  double high = 1;
  while (high <= MOST_RELEASES && !gaussian_is_better(comparison, high)) high *= 2;
  if (high > MOST_RELEASES) return NAN;
  double low = high / 2; /* Gaussian noise is not better at `low`, or low is 1/2 */
  while (high - low > 1) {
    double middle = floor((low + high) / 2);
    if (gaussian_is_better(comparison, middle)) {
      high = middle;
    } else {
      low = middle;
    }
  }
  return high;
}

/*
** Makes a copy of the planned publication with another mechanism. It owns the matrix of a series
** and nothing else. Returns 0 when out of memory.
*/
static int with_noise(struct publication *other, const struct publication *planned,
                      const struct mechanism *mechanism) {
  int periods = planned->definition.series.periods;
  *other = *planned;
  other->definition.mechanism = mechanism;
  other->definition.series = (struct series){0};
  if (periods && !series_make(&other->definition.series, periods, mechanism->noise)) return 0;
  return definition_layout(other, planned->definition.contribution.keys,
                           ledger_adjacency(planned->session->ledger) == LEDGER_REPLACE);
}

/* Appends both half-widths at a rate, and where the better noise changes. */
static void append_comparison(sqlite3_str *json, struct comparison *comparison, double rate) {
  sqlite3_str_appendf(json,
                      ",\"mechanisms\":{\"gaussian\":{\"half_width\":%s},"
                      "\"laplace\":{\"half_width\":%s}}",
                      NUMBER_TEXT(plan_half_width(&comparison->gaussian, comparison->rows, rate)),
                      NUMBER_TEXT(plan_half_width(&comparison->laplace, comparison->rows, rate)));
  double from = crossing(comparison);
  if (isnan(from)) {
    sqlite3_str_appendall(json, ",\"gaussian_from\":null");
  } else {
    sqlite3_str_appendf(json, ",\"gaussian_from\":%d", (int)from);
  }
}

void plan_append_mechanisms(sqlite3_str *json, const struct publication *planned, double rows) {
  const struct aggregate *aggregate = planned->definition.aggregate;
  const struct mechanism *laplace = mechanism_find(aggregate, laplace_mechanism.name);
  const struct ledger_tier *tier = &planned->position.tiers[planned->position.at];
  double rate = planned->definition.release.weight * tier->rate;
  if (laplace != &laplace_mechanism || !tier_covers_all_noise(tier) || rate > laplace_noise.most)
    return;
  struct comparison comparison = {.tier = tier, .rows = rows};
  if (with_noise(&comparison.gaussian, planned, &gaussian_mechanism) &&
      with_noise(&comparison.laplace, planned, laplace))
    append_comparison(json, &comparison, rate);
  series_free(&comparison.gaussian.definition.series);
  series_free(&comparison.laplace.definition.series);
}
