/* plan_mechanisms.c: see plan_mechanisms.h. Tests: tests/functions/test_mechanism_choice.py */
#include "functions/plan_mechanisms.h"

#include <math.h>

#include "base/number.h"
#include "ledger/accountant.h"
#include "math/laplace.h"
#include "mechanism/mechanism.h"
#include "release/default_mechanism.h"
#include "release/definition.h"
#include "release/leaf_release.h"
#include "release/parameter_checks.h"
#include "release/planned_width.h"
#include "release/session.h"

SQLITE_EXTENSION_INIT3

#define MOST_RELEASES 0x1p20

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
  return planned_half_width(&comparison->gaussian, comparison->rows, rate);
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
  return planned_half_width(&comparison->laplace, comparison->rows, fmax(rate, DESIGN_MIN_RATE));
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
** and nothing else, even after a failure. Returns 0 when out of memory.
*/
static int with_mechanism(struct publication *other, const struct publication *planned,
                          const struct request *request, const struct mechanism *mechanism) {
  int periods = planned->definition.series.periods;
  *other = *planned;
  other->definition.mechanism = mechanism;
  if (request->has_default_leaves)
    other->definition.release.size = (int)request_leaves(request, mechanism);
  other->definition.series = (struct series){0};
  if (periods && !series_make(&other->definition.series, periods, mechanism->noise)) return 0;
  return definition_layout(other, planned->definition.contribution.keys,
                           ledger_adjacency(planned->session->ledger) == LEDGER_REPLACE);
}

/* Appends the half-width that a mechanism has at a rate. Returns 0 when out of memory. */
static int append_mechanism(sqlite3_str *json, const char *comma, const struct publication *planned,
                            const struct request *request, const struct mechanism *mechanism,
                            double rows, double rate) {
  struct publication other;
  int made = with_mechanism(&other, planned, request, mechanism);
  if (made)
    sqlite3_str_appendf(json, "%s\"%s\":{\"half_width\":%s}", comma, mechanism->name,
                        NUMBER_TEXT(planned_half_width(&other, rows, rate)));
  series_free(&other.definition.series);
  return made;
}

/* Appends where the better noise changes. Returns 0 when out of memory. */
static int append_crossing(sqlite3_str *json, const struct publication *planned,
                            const struct request *request, double rows) {
  struct comparison comparison = {.tier = publication_tier(planned), .rows = rows};
  int made = with_mechanism(&comparison.gaussian, planned, request, &gaussian_mechanism) &&
             with_mechanism(&comparison.laplace, planned, request, &laplace_mechanism);
  double from = made ? crossing(&comparison) : NAN;
  series_free(&comparison.gaussian.definition.series);
  series_free(&comparison.laplace.definition.series);
  if (isnan(from)) {
    sqlite3_str_appendall(json, ",\"gaussian_from\":null");
  } else {
    sqlite3_str_appendf(json, ",\"gaussian_from\":%d", (int)from);
  }
  return made;
}

int plan_append_mechanisms(sqlite3_str *json, const struct publication *planned,
                           const struct request *request, double rows) {
  const struct definition *definition = &planned->definition;
  const struct ledger_tier *tier = publication_tier(planned);
  double rate = definition->release.weight * tier->rate;
  int has_laplace = mechanism_find(definition->aggregate, "laplace") == &laplace_mechanism;
  int noises = tier_covers_all_noise(tier) && has_laplace && rate <= laplace_noise.most;
  int draws = leaf_release_suits(definition->aggregate, &definition->release);
  if (!noises && !draws) return 1;
  const struct mechanism *const mechanisms[] = {
      noises || tier->accountant->covers_rates ? &gaussian_mechanism : 0,
      noises || (!tier->accountant->covers_rates && rate <= laplace_noise.most) ? &laplace_mechanism
                                                                                : 0,
      draws ? &leaf_draw_mechanism : 0};
  const char *comma = "";
  int made = 1;
  sqlite3_str_appendall(json, ",\"mechanisms\":{");
  for (int i = 0; i < 3 && made; i++) {
    if (!mechanisms[i]) continue;
    made = append_mechanism(json, comma, planned, request, mechanisms[i], rows, rate);
    comma = ",";
  }
  sqlite3_str_appendall(json, "}");
  return made && (!noises || append_crossing(json, planned, request, rows));
}
