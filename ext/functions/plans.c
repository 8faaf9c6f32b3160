/* plans.c: dp_plan(), which computes the cost and precision of a release before it is made.
**
** To plan a release, dp_plan() begins a transaction on the ledger, runs the code that charges a
** release, reads the effects, and rolls the transaction back. A plan and the release itself
** therefore get the same charge and the same noise. The members of the JSON object and the sentence
** of its last member, "summary", grow side by side (struct plan).
** Tests: tests/functions/test_plan.py, tests/functions/test_mechanism_choice.py */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/number.h"
#include "base/sql_text.h"
#include "functions/internal.h"
#include "ledger/ledger.h"
#include "math/math.h"
#include "mechanism/mechanism.h"
#include "release/release.h"

SQLITE_EXTENSION_INIT3

/* A plan of one release, or of an array: then `request` is null. Memory that runs out leaves one of
** the texts null at the end. */
struct plan {
  struct ledger *ledger;
  struct error *error; /* of the session; a function that fails sets it, and the plan goes on */
  const struct request *request;
  struct publication publication;
  double rows;   /* a public guess at the number of rows, or NaN */
  double each;   /* of counts with the option until: of the rows of one figure */
  int64_t since; /* the id of the last charge before the plan */
  sqlite3_str *json, *text;
};

/* Appends a member to a JSON object: a number, or null if it is not finite. */
static void append_number(sqlite3_str *json, const char *key, double x) {
  sqlite3_str_appendf(json, ",\"%s\":%s", key, isfinite(x) ? NUMBER_TEXT(x) : "null");
}

/* ---- what a plan means, in one sentence that a person can act on ----------------------------- */

/* Appends a positive number, rounded up for readers: to a whole number if it is at least 10,
** otherwise to two significant digits. */
static void append_width(sqlite3_str *text, double x) {
  if (x >= 10 && x < 1e15) {
    sqlite3_str_appendf(text, "%,lld", (long long)ceil(x * (1 - 1e-9)));
  } else if (x >= 1e-6 && x < 10) {
    int digits = 1 - (int)floor(log10(x));
    double unit = pow(10, digits);
    sqlite3_str_appendf(text, "%.*f", digits, ceil(x * unit * (1 - 1e-9)) / unit);
  } else {
    sqlite3_str_appendf(text, "%.2g", x * 1.05);
  }
}

static const char *each_or_the(const struct request *request) {
  return request->aggregate->form == FORM_NUMBER ? "the" : "each";
}

/* Appends what the half-width before it is about. */
static void append_noun(sqlite3_str *text, const struct request *request) {
  if (request->unit_word) sqlite3_str_appendf(text, " %s", request->unit_word);
  int is_drawn = request->mechanism && strcmp(request->mechanism, leaf_draw_mechanism.name) == 0;
  /* The noise of these depends on how the values lie (estimate_half_width()). */
  int is_even = request->aggregate->root || request->aggregate->family->is_tree;
  sqlite3_str_appendf(text, " around %s %s (95%% of the %s%s%s)", each_or_the(request),
                      request->aggregate->wording.noun, is_drawn ? "draws" : "noise",
                      is_even ? ", if the rows are spread evenly" : "",
                      is_drawn ? "; the figure will have no interval" : "");
}

/* Returns the factor by which a value with this half-width moves towards its centre, or 1. That of
** an average or another statistic that is not linear follows from its noise. */
static double planned_shrink(const struct publication *publication, double half_width) {
  struct view view = definition_view(publication);
  if (!view.is_ou || publication->definition.aggregate->family->is_linear || isnan(view.theta))
    return publication->definition.mechanism->noise ? definition_shrink(publication) : 1;
  double noise = half_width / statistic_half_width(publication, 1);
  return estimate_shrink(&view, noise * noise);
}

/* A value that moves by less than this part of its distance from the centre need not be told. */
#define MOVES 1e-3

/* Of a release with the option until, appends where it stops, as in "stops at ±5%, or at ". */
static void append_goal(sqlite3_str *text, const struct request *request, const char *stops) {
  if (isnan(request->until)) return;
  sqlite3_str_appendf(text, "%s at \xC2\xB1%.15g%%", stops, 100 * request->until);
  if (request->least > 0)
    sqlite3_str_appendf(text, " (\xC2\xB1%.15g below %.15g)", request->until * request->least,
                        request->least);
  sqlite3_str_appendall(text, ", or at ");
}

/* Appends how precise a value is, unless the sentence says it already (of tables, of a series, of a
** drawn category), as in "±0.21 days around each average (95% of the noise); ". `half_width` is in
** the unit of the values, or NaN if it is not known. */
static void append_how_precise(struct plan *plan, double half_width) {
  const struct request *request = plan->request;
  const struct family *family = request->aggregate->family;
  sqlite3_str *text = plan->text;
  if (sqlite3_str_length(text)) return;
  if (!(half_width > 0 && isfinite(half_width))) {
    if (isnan(request->rows_guess) && (family->is_ratio || family->is_tree))
      sqlite3_str_appendall(
          text, "\"rows\", a public guess of how many count, would show how accurate; ");
    return;
  }
  if (family->by_exponent) {
    sqlite3_str_appendall(text, "an end needs a count of about ");
    append_width(text, half_width);
    sqlite3_str_appendall(text, " in its bin; ");
    return;
  }
  double shrink = planned_shrink(&plan->publication, half_width);
  append_goal(text, request, "stops");
  sqlite3_str_appendall(text, "\xC2\xB1");
  append_width(text, half_width);
  append_noun(text, request);
  if (shrink < 1 - MOVES)
    sqlite3_str_appendf(text, ", which is moved %.3g%% of the way to %.15g", 100 * (1 - shrink),
                        request->centre);
  sqlite3_str_appendall(text, "; ");
}

/* Appends how many more times the budgets can pay for the plan, of which a release that stops early
** is expected to cost `part` (or NaN). For the owner, also names the tier that would refuse first,
** unless the plan is one release at that tier. */
static void append_room(struct plan *plan, double part) {
  const struct request *request = plan->request;
  struct ledger *ledger = plan->ledger;
  sqlite3_str *text = plan->text;
  struct ledger_tier *tiers;
  struct ledger_repeats repeats;
  int count;
  if (ledger_overdrawn(ledger)) {
    sqlite3_str_appendf(text, "0 such %s fit into the grant: too little of it is left",
                        request ? "releases" : "batches");
    return;
  }
  if (ledger_tiers(ledger, &tiers, &count) &&
      ledger_repeats(ledger, tiers, count, plan->since, &repeats) && repeats.count >= 0) {
    const char *tier = tiers[repeats.tier].name;
    const char *noun = request ? "release" : "batch";
    const char *most = request && !isnan(request->until) ? "at most " : "";
    if (repeats.count == 0) {
      sqlite3_str_appendf(text, "then no more such %s fits into ", noun);
    } else {
      sqlite3_str_appendf(text, "then %s%,lld more such %s%s into ", most, (long long)repeats.count,
                          noun,
                          repeats.count == 1 ? " fits"
                          : request          ? "s fit"
                                             : "es fit");
    }
    if (ledger_audience(ledger)) {
      /* The members of a tier may not learn which tier limits their grant. */
      sqlite3_str_appendall(text, "the grant");
    } else {
      sqlite3_str_appendall(text, *repeats.period ? repeats.period : "the budget");
      if (!request || strcmp(request->tier, tier) != 0)
        sqlite3_str_appendf(text, " (tier '%s')", tier);
    }
    if (repeats.count > 0 && !isnan(part))
      sqlite3_str_appendf(text, ", about %,lld if each counts %,lld",
                          (long long)((double)repeats.count / part), (long long)plan->each);
  } else {
    sqlite3_str_appendall(text, "no tier pays for it");
  }
  ledger_tiers_free(tiers, count);
}

/* Ends the sentence, and appends it to the JSON object. */
static void append_summary(struct plan *plan, double part) {
  append_room(plan, part);
  if (plan->request && plan->request->notice && *plan->request->notice)
    sqlite3_str_appendf(plan->text, "; %s", plan->request->notice);
  char *summary = sqlite3_str_finish(plan->text);
  if (!summary) error_set_memory(plan->error);
  sqlite3_str_appendall(plan->json, ",\"summary\":");
  json_append_string(plan->json, summary ? summary : "");
  sqlite3_free(summary);
}

/* ---- comparing mechanisms -------------------------------------------------------------------- */

#define MOST_RELEASES 0x1p20

/* The two publications that a plan compares, and the tier that pays for them. */
struct comparison {
  struct publication gaussian, laplace;
  const struct ledger_tier *tier;
  double rows;
};

/* Returns the half-width of one release with Gaussian noise if n equal releases use up the budget
** of the tier. */
static double gaussian_share(struct comparison *comparison, double n) {
  double rate = fmin(comparison->tier->rate_limit / n, gaussian_noise.most);
  return planned_half_width(&comparison->gaussian, comparison->rows, rate);
}

/* Does what gaussian_share() does, for Laplace noise. A Laplace release is charged its RDP at the
** tier's filter order, but its lattice is designed for a rate. The function therefore searches for
** the noise whose RDP is 1/n of the budget, and uses the rate of this noise. `low` and `high` bound
** the sensitivity divided by the scale of the noise. This is also its pure epsilon, and the tier
** admits the noise, too, if this epsilon is 1/n of pure_limit. */
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

/* Makes a copy of the planned publication with another mechanism. It owns the matrix of a series
** and nothing else, even after a failure. Returns 0 with the error set. */
static int with_mechanism(struct publication *other, const struct plan *plan,
                          const struct mechanism *mechanism) {
  const struct publication *planned = &plan->publication;
  int periods = planned->definition.series.periods;
  *other = *planned;
  other->definition.mechanism = mechanism;
  if (plan->request->has_default_leaves)
    other->definition.release.size = (int)request_leaves(plan->request, mechanism);
  other->definition.series = (struct series){0};
  return ((!periods || series_make(&other->definition.series, periods, mechanism->noise)) &&
          definition_layout(other, planned->definition.contribution.keys,
                            ledger_adjacency(plan->ledger) == LEDGER_REPLACE)) ||
         error_set_memory(plan->error);
}

/* Appends where the better noise changes. */
static void append_crossing(struct plan *plan) {
  struct comparison comparison = {.tier = publication_tier(&plan->publication), .rows = plan->rows};
  int made = with_mechanism(&comparison.gaussian, plan, &gaussian_mechanism) &&
             with_mechanism(&comparison.laplace, plan, &laplace_mechanism);
  double from = made ? crossing(&comparison) : (double)NAN;
  if (isnan(from)) {
    sqlite3_str_appendall(plan->json, ",\"gaussian_from\":null");
  } else {
    sqlite3_str_appendf(plan->json, ",\"gaussian_from\":%d", (int)from);
  }
  series_free(&comparison.gaussian.definition.series);
  series_free(&comparison.laplace.definition.series);
}

/* Appends the member "mechanisms" if the planned kind may have several mechanisms at its tier: an
** object with the half-width of each at the rate of this release. If the tier covers Gaussian and
** Laplace noise, also appends "gaussian_from", the least number n for which Gaussian noise has the
** smaller half-width when n equal releases use up the whole budget of the tier (null: there is none
** up to 2^20). */
static void append_mechanisms(struct plan *plan) {
  const struct definition *definition = &plan->publication.definition;
  const struct ledger_tier *tier = publication_tier(&plan->publication);
  double rate = definition->release.weight * tier->rate;
  int has_laplace = mechanism_find(definition->aggregate, "laplace") == &laplace_mechanism;
  int noises = tier->accountant->covers_rates && tier->accountant->covers_curves && has_laplace &&
               rate <= laplace_noise.most;
  int draws = leaf_release_suits(definition->aggregate, &definition->release);
  if (!noises && !draws) return;
  const struct mechanism *const mechanisms[] = {
      noises || tier->accountant->covers_rates ? &gaussian_mechanism : 0,
      noises || (!tier->accountant->covers_rates && rate <= laplace_noise.most) ? &laplace_mechanism
                                                                                : 0,
      draws ? &leaf_draw_mechanism : 0};
  const char *before = ",\"mechanisms\":{";
  for (int i = 0; i < 3; i++) {
    struct publication other;
    if (!mechanisms[i]) continue;
    if (with_mechanism(&other, plan, mechanisms[i]))
      sqlite3_str_appendf(plan->json, "%s\"%s\":{\"half_width\":%s}", before, mechanisms[i]->name,
                          NUMBER_TEXT(planned_half_width(&other, plan->rows, rate)));
    series_free(&other.definition.series);
    before = ",";
  }
  sqlite3_str_appendall(plan->json, "}");
  if (noises) append_crossing(plan);
}

/* ---- one plan -------------------------------------------------------------------------------- */

/* Appends for every tier the sum of the plan's charges, and the remaining budget. If the ledger has
** an audience, starts at the tier of the audience. */
static void append_tiers(struct plan *plan) {
  struct ledger *ledger = plan->ledger;
  sqlite3_str *json = plan->json;
  struct ledger_tier *tiers;
  int count;
  int loaded = ledger_tiers(ledger, &tiers, &count);
  const char *audience = ledger_audience(ledger);
  int first = 0;
  while (audience && first < count && strcmp(tiers[first].name, audience) != 0) first++;
  sqlite3_str_appendall(json, ",\"tiers\":[");
  for (int i = first; i < count && loaded; i++) {
    struct ledger_standing standing = {NAN, NAN, 0};
    ledger_standing(ledger, tiers[i].name, &standing);
    sqlite3_str_appendall(json, i > first ? ",{\"tier\":" : "{\"tier\":");
    json_append_string(json, tiers[i].name);
    append_number(json, "pays", ledger_charged_since(ledger, plan->since, &tiers[i]));
    append_number(json, "epsilon_after", standing.spent_epsilon);
    double wider;
    if (wider_spent(ledger, &tiers[i], &wider) && !isnan(wider))
      append_number(json, "wider_epsilon_after", wider);
    append_number(json, "remaining_epsilon", standing.remaining_epsilon);
    if (!audience) /* releases_left depends on inner budgets, which an audience may not know */
      sqlite3_str_appendf(json, ",\"releases_left\":%lld", (long long)standing.releases_left);
    sqlite3_str_appendall(json, "}");
  }
  sqlite3_str_appendall(json, "]");
  ledger_tiers_free(tiers, count);
}

static double epsilon_of_draw(const struct publication *publication) {
  return publication->cost.curve[RENYI_ORDERS - 1];
}

/* Returns the noisy count that a private key needs, or a bin of bounds; NaN for other releases. */
static double threshold_of(const struct publication *publication) {
  const struct definition *definition = &publication->definition;
  int has_threshold = definition->release.max_groups || definition->aggregate->family->by_exponent;
  return has_threshold ? numbers_threshold(publication, numbers_selection_delta(publication))
                       : (double)NAN;
}

/* Appends the members that describe the draw of a quantile. Returns as append_precision(). */
static double append_leaf(const struct plan *plan) {
  const struct publication *publication = &plan->publication;
  struct leaf_draw draw = definition_leaf_draw(publication);
  struct tilt tilt = leaf_tilt(publication);
  double rate = publication->definition.release.weight * publication_tier(publication)->rate;
  double half_width = leaf_half_width(publication, plan->rows, rate);
  append_number(plan->json, "epsilon", tilt.epsilon);
  append_number(plan->json, "half_width", half_width);
  append_number(plan->json, "rank_error",
                leaf_draw_most_error(&draw, tilt.epsilon, NUMBERS_CONFIDENCE));
  return isnan(plan->rows) ? (double)NAN : half_width;
}

/* Appends the members that describe the noise. Returns the half-width of a value in the unit of the
** values, or NaN if the half-width depends on the number of rows and the request has no guess of
** this number. For bounds, returns the noisy count above which a bin shows rows
** (numbers_threshold()). */
static double append_precision(const struct plan *plan) {
  const struct publication *publication = &plan->publication;
  const struct definition *definition = &publication->definition;
  const struct noise_law *noise = definition->mechanism->noise;
  sqlite3_str *json = plan->json;
  if (publication->definition.mechanism == &leaf_draw_mechanism) return append_leaf(plan);
  if (!noise) {
    append_number(json, "epsilon", epsilon_of_draw(publication));
    return (double)NAN;
  }
  uint64_t sensitivity = definition->release.sensitivity, clock = publication->position.clock;
  double epsilon = noise->rdp(sensitivity, clock, INFINITY);
  double stddev = numbers_stddev(publication);
  double half_width = numbers_half_width(publication, plan->rows);
  double of_total = statistic_half_width(publication, stddev);
  double threshold = threshold_of(publication);
  append_number(json, "rate", noise->rate(sensitivity, clock));
  if (isfinite(epsilon)) append_number(json, "epsilon", published_up(epsilon));
  if (isfinite(half_width) && !definition->aggregate->family->is_linear && half_width != of_total)
    stddev = half_width / statistic_half_width(publication, 1);
  append_number(json, "sigma", stddev);
  append_number(json, "half_width", isfinite(half_width) ? half_width : of_total);
  append_number(json, "shrink", definition_shrink(publication));
  if (!isnan(threshold)) append_number(json, "threshold", threshold);
  return definition->aggregate->family->by_exponent ? threshold : half_width;
}

/* Appends what each of several cross tables gets. */
static void append_tables(struct plan *plan) {
  const struct publication *publication = &plan->publication;
  const struct cross_keys *cross_keys = publication->definition.cross_keys;
  const struct ways *ways = publication->definition.contribution.ways;
  sqlite3_str *json = plan->json, *text = plan->text;
  if (!cross_keys) return;
  struct part_width *widths = sqlite3_malloc64(sizeof *widths * (sqlite3_uint64)ways->count);
  if (!widths || !numbers_tables(publication, plan->rows, widths)) {
    sqlite3_free(widths);
    error_set_memory(plan->error);
    return;
  }
  double cost = 0, least = INFINITY, most = 0;
  int is_known = 1; /* averages need a guess at the rows */
  sqlite3_str_appendall(json, ",\"tables\":[");
  for (int i = 0; i < ways->count; i++) {
    double half_width = widths[i].half_width;
    is_known &= !isnan(half_width);
    if (isnan(half_width)) half_width = statistic_half_width(publication, widths[i].stddev);
    char *name = cross_keys_table_name(cross_keys, &ways->tables[i]);
    if (!name) error_set_memory(plan->error);
    sqlite3_str_appendf(json, "%s{\"table\":%z,\"cells\":%d", i ? "," : "", name,
                        ways->tables[i].cells);
    append_number(json, "half_width", half_width);
    sqlite3_str_appendall(json, "}");
    cost += widths[i].cost;
    least = fmin(least, half_width);
    most = fmax(most, half_width);
  }
  sqlite3_str_appendall(json, "]");
  sqlite3_free(widths);
  if (!is_known) return;
  int is_one = ways->count == 1;
  sqlite3_str_appendf(text, "%d table%s that agree%s, ", ways->count, is_one ? "" : "s",
                      is_one ? "s" : "");
  append_goal(text, plan->request, is_one ? "stops" : "stop");
  sqlite3_str_appendall(text, "\xC2\xB1");
  append_width(text, least);
  if (most > least) {
    sqlite3_str_appendall(text, " to \xC2\xB1");
    append_width(text, most);
  }
  append_noun(text, plan->request);
  sqlite3_str_appendall(text, "; ");
  if (cost > 1)
    sqlite3_str_appendf(text,
                        "one by one, with the same accuracy, they would cost %.1f times as "
                        "much; ",
                        cost);
}

/* Appends a half-width, and in words of which number of a series it is. */
static void append_part(struct plan *plan, double half_width, const char *words) {
  const struct request *request = plan->request;
  sqlite3_str_appendall(plan->text, "\xC2\xB1");
  append_width(plan->text, half_width);
  if (request->unit_word) sqlite3_str_appendf(plan->text, " %s", request->unit_word);
  sqlite3_str_appendf(plan->text, " around %s %s of %s", each_or_the(request),
                      request->aggregate->wording.noun, words);
}

/* Appends what the total of a series gets, and in words also what its noisiest period gets. */
static void append_total(struct plan *plan) {
  const struct publication *publication = &plan->publication;
  struct part_width period, total;
  int periods = publication->definition.series.periods;
  if (!publication->definition.periods) return;
  if (!numbers_series(publication, plan->rows, &period, &total)) {
    error_set_memory(plan->error);
    return;
  }
  int is_known = !isnan(total.half_width);
  sqlite3_str_appendf(plan->json, ",\"periods\":%d", periods);
  append_number(plan->json, "total_half_width",
                is_known ? total.half_width : statistic_half_width(publication, total.stddev));
  if (!is_known) return;
  append_part(plan, period.half_width, "a period, ");
  append_part(plan, total.half_width, "all ");
  sqlite3_str_appendf(plan->text, "%d periods (95%% of the noise); ", periods);
}

/* Appends how near to the most common category a drawn one is: how many units fewer it has at most,
** or how probable the most common one is. The exponential mechanism prefers a category by e^step
** for each unit, so that one of `count` categories with t units fewer than the most common is drawn
** with a probability of at most e^(-step t), and any such one with count e^(-step t). With
** permute-and-flip, these bounds are half as large (categories/categories.c). Randomized response
** draws the most common one with the largest probability. */
static void append_choice(struct plan *plan) {
  const struct publication *publication = &plan->publication;
  const struct mechanism *mechanism = publication->definition.mechanism;
  if (mechanism->statistics != STATISTIC_CATEGORY) return;
  int replace = ledger_adjacency(plan->ledger) == LEDGER_REPLACE;
  double epsilon = epsilon_of_draw(publication), count = publication->grid.cells;
  if (!(epsilon > 0 && count > 0)) return; /* the release exists, and nothing is drawn */
  if (strcmp(mechanism->name, "response") == 0) {
    double probability = 1 / (1 + (count - 1) * exp(-epsilon));
    append_number(plan->json, "probability", probability);
    sqlite3_str_appendf(plan->text, "the most common category in %.3g%% of the draws; ",
                        100 * probability);
  } else {
    double part = (1 - NUMBERS_CONFIDENCE) * (mechanism->for_epsilons ? 2 : 1);
    double behind = log(count / part) / (replace ? epsilon / 2 : epsilon);
    append_number(plan->json, "count_error", behind);
    sqlite3_str_appendf(plan->text,
                        "a category with at most %,lld fewer than the most common one (95%% of the "
                        "draws); ",
                        (long long)fmin(behind, 1e18)); /* numbers of units are whole */
  }
}

/* Appends in words which groups will not appear. */
static void append_missing(struct plan *plan) {
  const struct ledger_release *release = &plan->publication.definition.release;
  if (!release->max_groups) return;
  int by_row = ledger_protects(plan->ledger) == LEDGER_ROWS;
  char *unit = by_row ? 0 : ledger_unit(plan->ledger);
  figure_append_threshold(plan->text, release->kind, release->clip,
                          by_row ? 0
                          : unit ? unit
                                 : "unit",
                          threshold_of(&plan->publication));
  sqlite3_str_appendall(plan->text, "; ");
  sqlite3_free(unit);
}

/* The clips that a plan with bounds compares: the upper end, and halves of it. */
#define MOST_CLIPS 4

static void append_share(sqlite3_str *text, struct bounds_cut cut) {
  int low = (int)floor(100 * cut.low), high = (int)ceil(100 * cut.high);
  if (low == high || high == 0) {
    sqlite3_str_appendf(text, "%d%%", high);
  } else if (low == 0) {
    sqlite3_str_appendf(text, "at most %d%%", high);
  } else {
    sqlite3_str_appendf(text, "%d%% to %d%%", low, high);
  }
}

static void append_cut(sqlite3_str *json, const char *before, double clip, double half_width,
                       struct bounds_cut cut) {
  sqlite3_str_appendf(json, "%s{\"clip\":%s", before, NUMBER_TEXT(clip));
  append_number(json, "half_width", half_width);
  append_number(json, "low", cut.low);
  append_number(json, "high", cut.high);
  sqlite3_str_appendall(json, "}");
}

/* Appends what the clip of the request cuts off, and what others would, by published bounds of what
** each unit counts. The half-width is in proportion to the clip. */
static void append_cuts(struct plan *plan, double half_width) {
  const struct request *request = plan->request;
  sqlite3_str *json = plan->json, *text = plan->text;
  struct bounds_counts counts;
  if (!request->bounds) return;
  if (!request->aggregate->family->is_linear || isnan(half_width) ||
      request->aggregate->places.key || request->ways || request->periods)
    error_set(plan->error, "bounds is for one count or sum, whose clip cuts amounts off (of "
                           "groups, \"diagnose\" tells it)");
  if (error_is_set(plan->error) ||
      !bounds_counts_read(&counts, plan->publication.session, request->bounds, request->tier))
    return;
  double clip = request->clip, per_clip = half_width / clip;
  struct bounds_cut cut = bounds_cut(&counts, clip);
  append_cut(json, ",\"cut\":", clip, half_width, cut);
  sqlite3_str_appendall(json, ",\"clips\":[");
  append_share(text, cut);
  sqlite3_str_appendf(text, " of the total cut off with clip %.15g", clip);
  int listed = 0;
  for (double other = bounds_size(counts.last); counts.last && listed < MOST_CLIPS; other /= 2) {
    struct bounds_cut of_other = bounds_cut(&counts, other);
    append_cut(json, listed++ ? "," : "", other, other * per_clip, of_other);
    if (other == clip) continue;
    sqlite3_str_appendall(text, ", ");
    append_share(text, of_other);
    sqlite3_str_appendf(text, " with %.15g (\xC2\xB1", other);
    append_width(text, other * per_clip);
    sqlite3_str_appendall(text, ")");
  }
  sqlite3_str_appendall(json, "]");
  sqlite3_str_appendall(text, "; ");
}

/* For a release of counts with the option until, appends the part of its price that it is expected
** to cost if its figures count equally many rows, as those of cross tables cannot. Returns this
** part, or NaN. */
static double append_expected(struct plan *plan) {
  const struct definition *definition = &plan->publication.definition;
  if (!until_is_given(&definition->release) || isnan(plan->rows) ||
      !definition->aggregate->counts || !definition->aggregate->family->is_linear ||
      definition->cross_keys)
    return (double)NAN;
  plan->each = plan->rows / fmax(1, definition->release.size); /* of a histogram: of one bin */
  double part = until_expected_part(&plan->publication, plan->each, plan->rows);
  if (!isnan(part)) append_number(plan->json, "expected_part", part);
  return part;
}

/* Appends the plan of one request, inside the open transaction. Returns 1, or 0 with the session's
** error set. */
static int plan_one(struct host *host, struct request *request, sqlite3_str *json) {
  struct session *session = &host->session;
  struct plan plan = {.ledger = session->ledger,
                      .error = &session->error,
                      .request = request,
                      .rows = plan_rows(request), /* before publish_plan() takes the keys over */
                      .since = ledger_last_charge(session->ledger),
                      .json = json};
  int planned = plan_weight(request, session) && publish_plan(&plan.publication, session, request);
  if (planned && plan.publication.failed)
    planned = error_set(plan.error, "release '%s' failed and is not run again", request->name);
  if (planned) {
    plan.text = sqlite3_str_new(0);
    sqlite3_str_appendall(json, "{\"tier\":");
    json_append_string(json, request->tier);
    sqlite3_str_appendf(json, ",\"kind\":\"%s\",\"mechanism\":\"%s\"", request->aggregate->kind,
                        plan.publication.definition.mechanism->name);
    append_number(json, "clip", request->clip);
    append_number(json, "weight", request->weight);
    double half_width = append_precision(&plan);
    append_tables(&plan);
    append_total(&plan);
    append_choice(&plan);
    append_how_precise(&plan, half_width);
    append_missing(&plan);
    append_cuts(&plan, half_width);
    if (request->notice && *request->notice) {
      sqlite3_str_appendall(json, ",\"notice\":");
      json_append_string(json, request->notice);
    }
    double part = append_expected(&plan);
    append_tiers(&plan);
    append_mechanisms(&plan);
    append_summary(&plan, part);
    sqlite3_str_appendall(json, "}");
  }
  publish_clear(&plan.publication);
  return planned && !error_is_set(plan.error);
}

/* ---- dp_plan --------------------------------------------------------------------------------- */

/* Takes the clip of a plan without one from the upper end of its bounds. */
static int take_bound(struct host *host, struct request *request) {
  struct bounds_counts counts;
  struct ledger *ledger = host->session.ledger;
  int read = ledger_begin_copy(ledger) &&
             bounds_counts_read(&counts, &host->session, request->bounds, request->tier);
  ledger_rollback(ledger);
  if (!read) return 0;
  if (!counts.last)
    return error_set(&host->session.error, "the bounds '%s' show no unit, and clip is missing",
                     request->bounds);
  request->clip = bounds_size(counts.last);
  return 1;
}

/* Plans one release from the arguments of dp_plan(). */
static int plan_call(struct host *host, int argc, sqlite3_value **argv, sqlite3_str *json,
                     struct error *error) {
  struct ledger *ledger = host->session.ledger;
  const struct aggregate *aggregate = aggregate_find(plain_text(argv[1]));
  if (!aggregate) return unknown_kind(plain_text(argv[1]), error);
  struct json *json_reader = ledger_json(ledger);
  struct request request;
  int read = request_start(&request, aggregate, json_reader, argv[0], argc > 3 ? argv[3] : 0,
                           OPTIONS_OF_PLAN);
  double clip = request.clip;
  if (read && sqlite3_value_type(argv[2]) != SQLITE_NULL)
    read = aggregate->takes & (1u << P_CLIP | 1u << P_SERIES)
               ? request_argument(&request, json_reader, P_CLIP, argv[2])
               : error_set(error, "kind '%s' has no clip (give NULL)", aggregate->kind);
  if (read && request.bounds && isnan(request.clip)) read = take_bound(host, &request);
  if (read && !isnan(clip) && clip != request.clip)
    read = error_set(error, "clip is given twice (argument 3 and the option differ)");
  int planned = read && request_finish(&request, ledger_protects(ledger) == LEDGER_UNITS, error) &&
                release_guarded(host, &request, 0, error) &&
                (!request.sql || release_compile(&request, host)) && ledger_begin_copy(ledger) &&
                ledger_enter_periods(ledger) && plan_one(host, &request, json);
  ledger_rollback(ledger);
  request_clear(&request);
  return planned;
}

/* Plans the releases of an array one after the other, in one transaction. */
static int plan_array(struct host *host, const char *array, sqlite3_str *json) {
  struct ledger *ledger = host->session.ledger;
  struct batch_items items = {host, 1, 0, 0};
  int planned =
      batch_items_read(&items, array) && ledger_begin_copy(ledger) && ledger_enter_periods(ledger);
  struct plan plan = {.ledger = ledger,
                      .error = &host->session.error,
                      .since = planned ? ledger_last_charge(ledger) : 0,
                      .json = json};
  sqlite3_str_appendall(json, "{\"plans\":[");
  for (int i = 0; i < items.count && planned; i++) {
    if (i) sqlite3_str_appendall(json, ",");
    planned = plan_one(host, &items.list[i].request, json) || batch_items_fail(&items, i);
  }
  sqlite3_str_appendall(json, "]");
  if (planned) {
    plan.text = sqlite3_str_new(0);
    append_tiers(&plan);
    append_summary(&plan, (double)NAN);
  }
  sqlite3_str_appendall(json, "}");
  ledger_rollback(ledger);
  batch_items_clear(&items);
  return planned && !error_is_set(&host->session.error);
}

/* dp_plan(tier, kind, clip [, options]) and dp_plan(array) -> JSON. Members of a tier see neither
** inner tiers nor releases_left. The plans of an array follow each other in one transaction. */
static int dp_plan(struct call *call) {
  sqlite3_str *json = sqlite3_str_new(0);
  int planned = call->texts[0]
                    ? plan_array(call->host, call->texts[0], json)
                    : plan_call(call->host, call->count, call->values, json, call->error);
  assert(planned || error_is_set(call->error));
  return call_text(call, sqlite3_str_finish(json));
}

const struct function plan_functions[] = {
    {"dp_plan", 1, 1, TO_ASK, LEDGER_OPEN, {"array"}, dp_plan},
    {"dp_plan", 3, 4, TO_ASK, LEDGER_OPEN, {0}, dp_plan},
    {0},
};
