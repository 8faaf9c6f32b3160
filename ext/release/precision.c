/* precision.c: how precise a release will be, computed from public parameters only, and what a
** release gets by it: the mechanism if its options do not name one, and the weight if they have
** half_width.
** Tests: tests/functions/test_mechanism_choice.py, tests/functions/test_plan_values.py */

#include <math.h>
#include <string.h>

#include "ledger/ledger.h"
#include "math/math.h"
#include "mechanism/mechanism.h"
#include "release/internal.h"

SQLITE_EXTENSION_INIT3

/* ---- how precise a release will be ----------------------------------------------------------- */

int numbers_tables(const struct publication *publication, double rows, struct part_width *widths) {
  struct reading reading = definition_reading(publication, 0, NUMBERS_CONFIDENCE);
  const struct ways *ways = publication->definition.contribution.ways;
  const struct layout *shape = &publication->definition.layout;
  double *parts = sqlite3_malloc64(sizeof *parts * (sqlite3_uint64)ways->count);
  int done = parts && estimate_parts(shape, parts);
  double alone = shape->is_l1 ? 1 / (double)ways_sum(ways) : sqrt(1 / (double)ways_square(ways));
  for (int i = 0; i < ways->count && done; i++) {
    double noise = parts[i] / alone; /* in units of one count that is released alone */
    reading.view.part = parts[i];
    widths[i] = (struct part_width){estimate_half_width(&reading, rows / ways->tables[i].cells),
                                    estimate_total_stddev(&reading),
                                    shape->is_l1 ? 1 / noise : 1 / (noise * noise)};
  }
  sqlite3_free(parts);
  return done || error_set_memory(&publication->session->error);
}

/* Returns the table with the widest interval, or NaNs after setting the ledger's error. */
static struct part_width widest_table(const struct publication *publication, double rows) {
  int count = publication->definition.contribution.ways->count;
  struct part_width *widths = sqlite3_malloc64(sizeof *widths * (sqlite3_uint64)count);
  struct part_width widest = {NAN, NAN, NAN};
  int done = widths ? numbers_tables(publication, rows, widths)
                    : error_set_memory(&publication->session->error);
  for (int i = 0; i < count && done; i++)
    if (i == 0 || widths[i].half_width > widest.half_width ||
        (isnan(widest.half_width) && widths[i].stddev > widest.stddev))
      widest = widths[i];
  sqlite3_free(widths);
  return widest;
}

/* Returns what a span of a series gets whose reading has this variance
** (mechanism/mechanism.h). */
static struct part_width span_width(const struct publication *publication, double variance,
                                    double rows) {
  struct reading reading = definition_reading(publication, 0, NUMBERS_CONFIDENCE);
  reading.view.part = sqrt(variance);
  return (struct part_width){estimate_half_width(&reading, rows), estimate_total_stddev(&reading),
                             publication->definition.layout.is_l1 ? 1 / reading.view.part
                                                                  : 1 / variance};
}

/* The variance of a single period rises with the first periods and then falls, so the search for
** the largest one ends at the first that is not larger. */
int numbers_series(const struct publication *publication, double rows, struct part_width *period,
                   struct part_width *total) {
  const struct series *series = &publication->definition.series;
  struct ledger *ledger = publication->session->ledger;
  double largest = 0;
  struct window window = {0};
  int going = ledger_goes_on(ledger) && window_open(&window, series, series->periods);
  for (int t = 0; t < series->periods && going; t++) {
    window_move(&window, t, t);
    if (window.variance <= largest) break;
    largest = window.variance;
  }
  *period = span_width(publication, largest, rows / series->periods);
  if (going && total) {
    window_move(&window, 0, series->periods - 1);
    *total = span_width(publication, window.variance, rows);
  }
  window_close(&window);
  return going || error_set_memory(ledger_error(ledger));
}

/* Returns what each number of the release gets: for cross tables those of the widest table, for a
** series those of the noisiest period. Returns NaNs after setting the ledger's error. */
static struct part_width widest_of(const struct publication *publication, double rows) {
  struct part_width period, none = {NAN, NAN, NAN};
  if (publication->definition.contribution.ways) return widest_table(publication, rows);
  if (publication->definition.periods)
    return numbers_series(publication, rows, &period, 0) ? period : none;
  struct reading reading = definition_reading(publication, 0, NUMBERS_CONFIDENCE);
  return (struct part_width){estimate_half_width(&reading, rows), estimate_total_stddev(&reading),
                             1};
}

double numbers_stddev(const struct publication *publication) {
  return widest_of(publication, NAN).stddev;
}

double numbers_half_width(const struct publication *publication, double rows) {
  return widest_of(publication, rows).half_width;
}

double planned_half_width(struct publication *publication, double rows, double rate) {
  struct ledger_release *release = &publication->definition.release;
  const struct noise_law *noise = publication->definition.mechanism->noise;
  struct design design;
  if (is_leaf_release(publication)) return leaf_half_width(publication, rows, rate);
  design_make(&design, &publication->definition.layout, rate, noise);
  release->granularity = design.granularity;
  release->shift = design.shift;
  publication->position.clock = noise->clock(design.sensitivity, rate);
  double half_width = numbers_half_width(publication, rows);
  return isnan(half_width) ? statistic_half_width(publication, numbers_stddev(publication))
                           : half_width;
}

double statistic_half_width(const struct publication *publication, double stddev) {
  const struct noise_law *noise = publication->definition.mechanism->noise;
  return publication->definition.aggregate->family->is_linear
             ? noise->half_width(stddev, NUMBERS_CONFIDENCE)
             : mixed_half_width(noise, stddev, NUMBERS_CONFIDENCE);
}

/* ---- the default mechanism ------------------------------------------------------------------- */

/* Returns the aggregate's first mechanism whose noise costs a curve (math/math.h), or null. */
static const struct mechanism *curve_mechanism(const struct aggregate *aggregate) {
  const struct mechanism *mechanism;
  for (int i = 0; (mechanism = mechanism_at(i)) != 0; i++) {
    const struct noise_law *noise = mechanism->noise;
    if (noise && !noise->has_rate &&
        mechanism_admits(mechanism, aggregate->family, aggregate->is_ou))
      return mechanism;
  }
  return 0;
}

/* Returns the half-width that the request would have with a mechanism, in rows, or NaN after
** setting the ledger's error. */
static double width_with(const struct request *request, const struct publication *publication,
                         const struct mechanism *mechanism) {
  struct publication asked = {.session = publication->session,
                              .definition = {.release = request_release(request)},
                              .position = publication->position};
  char name[16] = "";
  double rate = request->weight * asked.position.tiers[asked.position.at].rate;
  sqlite3_snprintf(sizeof name, name, "%s", mechanism->name);
  asked.definition.release.size = (int)request_leaves(request, mechanism);
  asked.definition.release.mechanism = name;
  if (!definition_describe(&asked, 0)) return NAN;
  return planned_half_width(&asked, NAN, rate);
}

/* Returns whether the request gets the draw of a leaf instead of the default with noise: it does if
** no tier lies outside its own, to which the number could not be diffused, if the draw is more
** precise, and if the request asks for nothing that only noise has. A release that exists keeps its
** mechanism. */
static int gets_draw(const struct request *request, const struct publication *publication,
                     int found, const struct mechanism *noisy) {
  const struct position *position = &publication->position;
  struct ledger_release asked = request_release(request);
  double rate = request->weight * position->tiers[position->at].rate;
  if (!leaf_release_suits(request->aggregate, &asked) ||
      ledger_wider_factor(publication->session->ledger) > 0)
    return 0;
  if (found)
    return strcmp(publication->definition.release.mechanism, leaf_draw_mechanism.name) == 0;
  if (position->at + 1 < position->count || request->refine ||
      !(rate >= DESIGN_MIN_RATE && rate <= fmin(noisy->noise->most, leaf_draw_mechanism.most)))
    return 0;
  return width_with(request, publication, &leaf_draw_mechanism) <=
         width_with(request, publication, noisy);
}

/* Returns the aggregate's mechanism for tiers that add up epsilons alone, or null. */
static const struct mechanism *epsilon_mechanism(const struct aggregate *aggregate) {
  const struct mechanism *mechanism;
  for (int i = 0; (mechanism = mechanism_at(i)) != 0; i++)
    if (mechanism->for_epsilons && mechanism_admits(mechanism, aggregate->family, aggregate->is_ou))
      return mechanism;
  return 0;
}

/* Returns whether all tiers that pay add up epsilons alone. */
static int epsilons_pay(const struct position *position) {
  for (int i = 0; i <= position->at; i++)
    if (position->tiers[i].accountant->covers_rates) return 0;
  return 1;
}

int request_default_mechanism(struct request *request, const struct publication *publication,
                              int found) {
  struct error *error = &publication->session->error;
  const struct mechanism *drawn = request->mechanism ? 0 : epsilon_mechanism(request->aggregate);
  if (drawn && (found ? strcmp(publication->definition.release.mechanism, drawn->name) == 0
                      : epsilons_pay(&publication->position))) {
    request->mechanism = sqlite3_mprintf("%s", drawn->name);
    return request->mechanism || error_set_memory(error);
  }
  const struct ledger_tier *tier = publication_tier(publication);
  /* The default among the mechanisms with noise; null if the tier covers none of them. */
  const struct mechanism *mechanism = tier->accountant->covers_rates
                                          ? mechanism_find(request->aggregate, 0)
                                          : curve_mechanism(request->aggregate);
  if (request->mechanism || request->has_states || !mechanism || !mechanism->noise ||
      request->aggregate->family->statistic == STATISTIC_MODEL)
    return 1;
  if (request->quantiles && gets_draw(request, publication, found, mechanism))
    mechanism = &leaf_draw_mechanism;
  if (error_is_set(error)) return 0;
  if (request->has_default_leaves) request->size = request_leaves(request, mechanism);
  if (mechanism == mechanism_find(request->aggregate, 0)) return 1;
  request->mechanism = sqlite3_mprintf("%s", mechanism->name);
  return request->mechanism || error_set_memory(error);
}

int tier_covers_all_noise(const struct ledger_tier *tier) {
  return tier->accountant->covers_rates && tier->accountant->covers_curves;
}

/* ---- the least weight for a half-width ------------------------------------------------------- */

double plan_rows(const struct request *request) {
  double groups = request->key_count > 0 ? request->key_count : request->key_guess;
  int has_groups = request->aggregate->family->has_keys && groups > 0;
  return has_groups ? request->rows_guess / groups : request->rows_guess;
}

/* Returns the least rate between `low` and `high` that gives the wanted half-width, by bisection.
** The rate `high` gives at most this half-width, and the rate `low` gives more. The half-width
** falls as the rate grows, except for small jumps where the lattice changes. */
static double least_rate(struct publication *publication, const struct request *request, double low,
                         double high) {
  /* high / low is at most e^42, and each step halves the logarithm of this quotient. */
  for (int i = 0; i < 80; i++) {
    double middle = sqrt(low) * sqrt(high);
    if (planned_half_width(publication, plan_rows(request), middle) <= request->half_width) {
      high = middle;
    } else {
      low = middle;
    }
  }
  return high;
}

/* Appends the terms of a tier with the accountant 'gdp' that admits this number of releases, each
** of at least `rate`. The epsilon of this tier is rounded up, and has four digits. Returns 0 and
** appends nothing if delta is too small for this epsilon, or if there are more than 1e6
** releases. */
static int append_terms(sqlite3_str *text, double delta, double rate, double releases) {
  double slack = releases * GAUSSIAN_DRAW_SLACK;
  double epsilon = gaussian_epsilon(rate * releases, delta);
  double unit = pow(10, floor(log10(epsilon)) - 3);
  epsilon = ceil(epsilon / unit) * unit;
  double all = gaussian_rate_beside(epsilon, delta, slack);
  if (all < rate * releases * (1 + 1e-9)) all = gaussian_rate_beside(epsilon += unit, delta, slack);
  if (!(all >= rate * releases) || releases > 1e6) return 0;
  sqlite3_str_appendf(text,
                      ": %,lld such release%s into a tier with dp_rate(%.4g, %g, %lld), "
                      "epsilon %.4g, delta %g and the accountant 'gdp'",
                      (long long)releases, releases > 1 ? "s fit" : " fits", epsilon, delta,
                      (long long)releases, epsilon, delta);
  return 1;
}

/* Returns a text that says which rate and which budget give the wanted half-width. The caller calls
** sqlite3_free(). Laplace noise of the rate r has the pure epsilon laplace_distance(r). Returns
** null if memory runs out. */
static char *advice(struct publication *publication, const struct request *request,
                    const struct ledger_tier *tier) {
  double wanted = request->half_width;
  if (!(planned_half_width(publication, plan_rows(request), DESIGN_MAX_RATE) <= wanted))
    return sqlite3_mprintf(" (no rate up to %g gives %g)", DESIGN_MAX_RATE, wanted);
  double rate = least_rate(publication, request, tier->rate, DESIGN_MAX_RATE);
  double releases = fmax(1, floor(tier->rate_limit / tier->rate * (1 + 1e-9)));
  sqlite3_str *text = sqlite3_str_new(0);
  sqlite3_str_appendf(text, " (%g needs the rate %g", wanted, rate);
  int is_drawn = is_leaf_release(publication);
  if (strcmp(publication->definition.release.mechanism, "laplace") == 0 ||
      !tier->accountant->covers_rates) {
    sqlite3_str_appendf(text, ", which is an epsilon of %g for each release",
                        laplace_distance(rate));
  } else if (is_drawn && !leaf_costs_rate(publication)) {
    /* at a tier with exact Gaussian accounting, the draw would have another half-width */
  } else if (!append_terms(text, tier->delta, rate, releases)) {
    append_terms(text, tier->delta, rate, 1);
  }
  sqlite3_str_appendall(text, ")");
  return sqlite3_str_finish(text);
}

/* Reports that the tier is not accurate enough. Always returns 0. */
static int refuse_half_width(struct publication *publication, const struct request *request,
                             const struct ledger_tier *tier, double least) {
  char *text = advice(publication, request, tier);
  struct error *error = &publication->session->error;
  if (text) {
    error_set(error, "half_width must be at least %g, which is that of the rate %g of tier '%s'%s",
              least, tier->rate, tier->name, text);
  } else {
    error_set_memory(error);
  }
  sqlite3_free(text);
  return 0;
}

/* Finds the least weight that gives the wanted half-width. */
static int solve_weight(struct request *request, const struct publication *asked) {
  struct ledger *ledger = asked->session->ledger;
  const struct ledger_tier *tier = &asked->position.tiers[asked->position.at];
  struct publication publication = {
      .session = asked->session,
      .position = asked->position,
      .definition = {.release = request_release(request), .cross_keys = request->cross_keys}};
  double wanted = request->half_width;
  if (!definition_describe(&publication, request->key_count)) return 0;
  double least = planned_half_width(&publication, plan_rows(request), tier->rate);
  if (planned_half_width(&publication, plan_rows(request), DESIGN_MIN_RATE) <= wanted)
    return error_set(ledger_error(ledger), "half_width is that of a rate outside [%g, %g]",
                     DESIGN_MIN_RATE, DESIGN_MAX_RATE);
  if (!(least <= wanted)) return refuse_half_width(&publication, request, tier, least);
  double rate = least_rate(&publication, request, DESIGN_MIN_RATE, tier->rate);
  request->weight = fmin(1, rate / tier->rate);
  /* The division may have rounded the weight down, so that the half-width is too large. */
  while (planned_half_width(&publication, plan_rows(request), request->weight * tier->rate) >
         wanted)
    request->weight = fmin(1, request->weight * (1 + 0x1p-52));
  return 1;
}

int plan_weight(struct request *request, struct session *session) {
  if (isnan(request->half_width)) return 1;
  struct ledger_tier *tiers;
  int count, at = -1, solved = 0;
  if (ledger_tiers(session->ledger, &tiers, &count))
    at = ledger_tier_find(session->ledger, tiers, count, request->tier);
  struct publication asked = {.session = session, .position = {tiers, count, at, 0, 0, 0}};
  if (at >= 0)
    solved = request_default_mechanism(request, &asked, 0) && solve_weight(request, &asked);
  ledger_tiers_free(tiers, count);
  return solved;
}
