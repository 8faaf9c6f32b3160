/* parameters.c: the checked parameters of a request: tier, bounds, and a name or JSON options; and
** what it gets by the precision that they will have: the mechanism if the options do not name one,
** and the weight if they have half_width.
** Tests: tests/functions/test_options.py, tests/functions/test_kinds_errors.py,
** tests/functions/test_mechanism_choice.py, tests/functions/test_plan_values.py */

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/number.h"
#include "base/sql_text.h"
#include "math/math.h"
#include "mechanism/mechanism.h"
#include "release/internal.h"

SQLITE_EXTENSION_INIT3

int request_takes(const struct request *request, enum parameter parameter) {
  return (request->aggregate->takes & 1u << parameter) != 0;
}

void request_clear(struct request *request) {
  if (request->details && request->aggregate->procedure->clear)
    request->aggregate->procedure->clear(request->details);
  sqlite3_free(request->details);
  for (int i = 0; i < request->key_count; i++) sqlite3_free(request->key_list[i]);
  sqlite3_free(request->key_list);
  char *texts[] = {request->tier,   request->name,       request->mechanism, request->quantiles,
                   request->keys,   request->keys_given, request->ways,      request->attributes,
                   request->model,  request->sql,        request->statement, request->tables,
                   request->notice, request->unit_type,  request->unit_word, request->bounds,
                   request->shard,  request->shards};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) sqlite3_free(texts[i]);
  if (request->cross_keys) cross_keys_release(request->cross_keys);
  if (request->periods) periods_release(request->periods);
  *request = (struct request){0};
}

/* ---- requests as releases -------------------------------------------------------------------- */

static int whole(double x) {
  return isnan(x) ? 0 : (int)x;
}

struct ledger_release request_release(const struct request *request) {
  const struct aggregate *aggregate = request->aggregate;
  const struct cross_keys *cross_keys = request->cross_keys;
  return (struct ledger_release){.kind = (char *)aggregate->kind,
                                 .mechanism =
                                     (char *)mechanism_find(aggregate, request->mechanism)->name,
                                 .quantiles = request->quantiles,
                                 .keys = cross_keys ? cross_keys->keys_text : request->keys,
                                 .ways = cross_keys ? cross_keys->ways_text : 0,
                                 .periods = request->periods ? request->periods->text : 0,
                                 .model = request->model,
                                 .sql = request->sql,
                                 .statement = request->statement,
                                 .clip = request->clip,
                                 .weight = request->weight,
                                 .centre = request->centre,
                                 .radius = request->radius,
                                 .theta = request->theta,
                                 .rho = request->rho,
                                 .lo = request->lo,
                                 .hi = request->hi,
                                 .grid = request->grid,
                                 .diagnose = request->diagnose,
                                 .until = request->until,
                                 .least = request->least,
                                 .key_share = request->key_share,
                                 .size = whole(request->size),
                                 .max_groups = whole(request->max_groups)};
}

static void append_option(sqlite3_str *json, const char *name, double value) {
  if (!isnan(value)) sqlite3_str_appendf(json, ",\"%s\":%s", name, NUMBER_TEXT(value));
}

static void append_whole(sqlite3_str *json, const char *name, double value) {
  if (!isnan(value)) sqlite3_str_appendf(json, ",\"%s\":%d", name, (int)value);
}

char *request_options(const struct request *request) {
  sqlite3_str *json = sqlite3_str_new(0);
  sqlite3_str_appendf(json, "{\"clip\":%s", NUMBER_TEXT(request->clip));
  if (request->mechanism) sqlite3_str_appendf(json, ",\"mechanism\":\"%s\"", request->mechanism);
  if (request->weight != 1) append_option(json, "weight", request->weight);
  if (request->aggregate->is_ou) append_option(json, "centre", request->centre);
  append_option(json, "radius", request->radius);
  append_option(json, "theta", request->theta);
  append_option(json, "rho", request->rho);
  append_option(json, "lo", request->lo);
  append_option(json, "hi", request->hi);
  append_option(json, "grid", request->grid);
  if (request->diagnose) sqlite3_str_appendall(json, ",\"diagnose\":true");
  append_whole(json, request_takes(request, P_DIM) ? "dim" : "bins", request->size);
  if (request->quantiles) sqlite3_str_appendf(json, ",\"q\":%s", request->quantiles);
  append_option(json, "until", request->until);
  append_option(json, "least", request->least);
  append_whole(json, "max_groups", request->max_groups);
  append_option(json, "key_share", request->key_share);
  if (request->keys_given) sqlite3_str_appendf(json, ",\"keys\":%s", request->keys_given);
  if (request->model) sqlite3_str_appendf(json, ",\"model\":%s", request->model);
  if (request->notice && *request->notice) {
    sqlite3_str_appendall(json, ",\"notice\":");
    json_append_string(json, request->notice);
  }
  sqlite3_str_appendall(json, "}");
  return sqlite3_str_finish(json);
}

/* ---- defaults and checks across parameters --------------------------------------------------- */

#define DEFAULT_LEAVES       1024
#define DEFAULT_DRAWN_LEAVES 16384 /* more leaves cost a draw time, and hardly any accuracy */
#define DEFAULT_GROUPS       4

static int is_given(double x) {
  return !isnan(x);
}

static double or_else(double x, double otherwise) {
  return isnan(x) ? otherwise : x;
}

/* Returns the statement that finds a clip for a question: the bounds of what each unit counts. The
** caller calls sqlite3_free(). Returns an empty text if there is no question that may be shown, or
** if its clip is not found in this way, and null if memory runs out. A tier that was not typed,
** such as a bound one, is not shown. */
static char *recipe_of(const struct request *request, const struct error *error) {
  const struct known_names typed = {.asked = request->tier};
  const char *tier = known_names_asked(&typed, error);
  const struct aggregate *aggregate = request->aggregate;
  int is_sum = aggregate->family->statistic == STATISTIC_NUMBER && !aggregate->counts;
  int is_sum_by_key = aggregate->family == &family_key_sum;
  char word[8];
  if (request->sql) first_word(request->sql, word);
  int is_query = request->sql && (strcmp(word, "SELECT") == 0 || strcmp(word, "WITH") == 0);
  if (!is_query || request->has_values || !request->tier ||
      !(aggregate->counts || is_sum || is_sum_by_key))
    return sqlite3_mprintf("%s", "");
  int keys = aggregate->places.key > 0, columns = keys + (aggregate->places.value > 0);
  if (request->cross_keys) columns += request->cross_keys->count - 1;
  columns += request->periods != 0;
  sqlite3_str *sql = sqlite3_str_new(0);
  sqlite3_str_appendall(sql, "WITH q");
  for (int i = 1; i < columns; i++) sqlite3_str_appendf(sql, "%sk%d", i > 1 ? ", " : "(", i);
  if (aggregate->places.value)
    sqlite3_str_appendall(sql, columns > 1 ? ", x)" : "(x)");
  else if (columns > 1)
    sqlite3_str_appendf(sql, ", k%d)", columns);
  sqlite3_str_appendf(sql, " AS (%s) SELECT %s FROM q", request->sql,
                      is_sum                    ? "sum(x)"
                      : is_sum_by_key           ? "sum(abs(x))"
                      : aggregate->places.value ? "count(x)"
                                                : "count(*)");
  char *text = sqlite3_str_finish(sql);
  char *recipe = text
                     ? sqlite3_mprintf("; to find one: SELECT dp_release(%s%s%s, 'bounds', %Q, "
                                       "'{\"name\":\"bounds\"}')",
                                       tier ? "'" : "", tier ? tier : "tier", tier ? "'" : "", text)
                     : 0;
  sqlite3_free(text);
  return recipe;
}

/* The caller must say how many rows of a unit count, and hears how to count units instead. */
static int ask_for_clip(const struct request *request, int by_unit, struct error *error) {
  const struct aggregate *aggregate = request->aggregate;
  char *recipe = by_unit ? recipe_of(request, error) : sqlite3_mprintf("%s", "");
  if (!recipe) return error_set_memory(error);
  if (!kind_counts_rows(aggregate)) {
    error_set(error, "clip is missing (the bound on what one %s contributes%s)",
              by_unit ? "unit" : "row", recipe);
  } else if (aggregate->family->has_bins) {
    error_set(error,
              "clip is missing (the most rows of one unit that count; '%s' counts units if clip is "
              "1 and the query has one row for each%s)",
              aggregate->kind, recipe);
  } else {
    error_set(error,
              "clip is missing (the most rows of one unit that count; '%s_distinct' counts "
              "units%s)",
              aggregate->kind, recipe);
  }
  sqlite3_free(recipe);
  return 0;
}

static int finish_clip(struct request *request, int by_unit, struct error *error) {
  double clip = request->aggregate->default_clip;
  if (request_takes(request, P_SERIES) && !request->periods &&
      (is_given(request->clip) || request->diagnose))
    return error_set(error, "clip and diagnose of '%s' are for a series (give periods)",
                     request->aggregate->kind);
  if (by_unit && !is_given(request->clip) && kind_counts_rows(request->aggregate))
    return ask_for_clip(request, by_unit, error);
  request->clip = or_else(request->clip, clip > 0 ? clip : NAN);
  if (!is_given(request->clip)) return ask_for_clip(request, by_unit, error);
  if (!(clip > 0)) return 1;
  /* The clip is a number of rows of a unit. If the ledger protects rows, a unit is one row, so the
  ** clip is at most 1. */
  if (!by_unit) request->clip = fmin(request->clip, 1);
  if (request->aggregate->family->statistic != STATISTIC_NUMBER &&
      !(request->clip >= LAYOUT_MIN_ROWS && request->clip <= LAYOUT_MAX_ROWS))
    return error_set(error, "clip must be a number of rows in [%g, %g]", LAYOUT_MIN_ROWS,
                     LAYOUT_MAX_ROWS);
  return 1;
}

static int finish_range(struct request *request, struct error *error) {
  if (!request_takes(request, P_LO)) return 1;
  int has_lo = is_given(request->lo), has_hi = is_given(request->hi);
  if (!has_lo && !has_hi) return error_set(error, "lo and hi are missing (the public range of x)");
  if (!has_lo || !has_hi)
    return error_set(error, "%s is missing (lo and hi are the public range of x)",
                     has_lo ? "hi" : "lo");
  if (!(request->hi / 2 - request->lo / 2 >= LAYOUT_MIN_CLIP / 2))
    return error_set(error, "lo must be below hi, by at least %g", LAYOUT_MIN_CLIP);
  return 1;
}

/* Returns the largest number of leaves that the grid allows: one for each of its values. */
static int most_leaves(const struct request *request) {
  int most = 2;
  if (!is_given(request->grid)) return LAYOUT_MAX_BINS;
  double values = layout_grid_values(request->lo, request->hi, request->grid);
  while (most < values && most < LAYOUT_MAX_BINS) most *= 2;
  return most;
}

double request_leaves(const struct request *request, const struct mechanism *mechanism) {
  int drawn = mechanism == &leaf_draw_mechanism;
  if (!request->has_default_leaves) return request->size;
  return fmin(most_leaves(request), drawn ? DEFAULT_DRAWN_LEAVES : DEFAULT_LEAVES);
}

/* Sets the default number of leaves (`bins`). Checks that the range holds an allowed number of grid
** values and that the leaves are not too many for them. */
static int finish_leaves(struct request *request, struct error *error) {
  if (is_given(request->grid)) {
    double values = layout_grid_values(request->lo, request->hi, request->grid);
    if (!(values >= 2 && values <= LAYOUT_MAX_GRID))
      return error_set(error, "grid must be a step from (hi - lo) / 2^40 to hi - lo");
    if (request->size > most_leaves(request))
      return error_set(error, "bins must be at most %d with this grid (one for each value)",
                       most_leaves(request));
  }
  request->has_default_leaves = !is_given(request->size);
  request->size = request_leaves(request, mechanism_find(request->aggregate, request->mechanism));
  return 1;
}

/* Checks what the mechanism that draws a quantile cannot do (mechanism/mechanism.h). */
static int finish_draw(struct request *request, struct error *error) {
  if (mechanism_find(request->aggregate, request->mechanism) != &leaf_draw_mechanism) return 1;
  double quantile;
  if (request->diagnose)
    return error_set(error,
                     "diagnose counts clipped units with noise, which mechanism '%s' does "
                     "not add (leave one of them out)",
                     request->mechanism);
  return !request->quantiles || vector_text_list(request->quantiles, &quantile, 1) == 1 ||
         error_set(error,
                   "mechanism '%s' draws one quantile (make a release for each, or leave "
                   "the mechanism out)",
                   request->mechanism);
}

static int finish_size(struct request *request, struct error *error) {
  int is_tree = request->aggregate->family->is_tree;
  if (is_tree && !finish_leaves(request, error)) return 0;
  if (request->aggregate->family->by_exponent) request->size = LAYOUT_EXPONENT_BINS;
  if ((request_takes(request, P_DIM) || request_takes(request, P_BINS)) && !is_given(request->size))
    return error_set(error, "%s is missing", request_takes(request, P_DIM) ? "dim" : "bins");
  int size = is_given(request->size) ? (int)request->size : 0;
  if (is_tree && (size < 2 || (size & (size - 1))))
    return error_set(error, "bins must be a power of two from 2 to %d", LAYOUT_MAX_BINS);
  return 1;
}

static int finish_quantiles(struct request *request, struct error *error) {
  if (!request->aggregate->family->is_tree || request->quantiles) return 1;
  if (request_takes(request, P_Q))
    return error_set(error, "q is missing (a number in [0, 1] or a JSON array)");
  request->quantiles = sqlite3_mprintf("0.5");
  return request->quantiles ? 1 : error_set_memory(error);
}

/* Fills the list of public keys for dp_plan(), which knows only how many keys there will be. The
** texts of the keys do not matter. */
static int assume_keys(struct request *request, struct error *error) {
  int count = (int)request->key_guess;
  request->key_list = sqlite3_malloc64(sizeof *request->key_list * (sqlite3_uint64)count);
  while (request->key_list && request->key_count < count) {
    char *key = sqlite3_mprintf("%07d", request->key_count);
    if (!key) break;
    request->key_list[request->key_count++] = key;
  }
  if (request->key_count == count) request->keys = json_texts(request->key_list, count);
  return request->keys || error_set_memory(error);
}

static int finish_keys(struct request *request, int by_unit, struct error *error) {
  if (request_takes(request, P_CANDIDATES) && !request->keys)
    return error_set(error, "candidates is missing (a JSON array)");
  if (!request_takes(request, P_KEYS) || request->cross_keys) return 1;
  int selecting = is_given(request->max_groups) || is_given(request->key_share);
  if (request->keys && selecting)
    return error_set(error, "%s is for keys that are selected privately: leave it out, or keys",
                     is_given(request->max_groups) ? "max_groups" : "key_share");
  if (is_given(request->key_guess) && !selecting && !assume_keys(request, error)) return 0;
  if (request->keys) return 1;
  if (request->aggregate->is_ou)
    return error_set(error,
                     "keys is missing: OU needs to know in public how many groups there are");
  /* If the ledger protects rows, each row has one key. */
  request->max_groups = by_unit ? or_else(request->max_groups, DEFAULT_GROUPS) : 1;
  request->key_share = or_else(request->key_share, DEFAULT_KEY_SHARE);
  return 1;
}

/* Checks that a unit, and a release with public keys, have few enough coordinates. */
static int finish_coordinates(struct request *request, struct error *error) {
  const struct family *family = request->aggregate->family;
  if (!family->has_keys || !family->has_bins) return 1;
  int is_private = request->max_groups > 0;
  double keys = is_private ? request->max_groups : request->key_count;
  double width = layout_width(family, (int)request->size, is_private);
  return keys * width < LAYOUT_MAX_COORDINATES ||
         error_set(error, "%s times bins must be below %d%s", is_private ? "max_groups" : "keys",
                   LAYOUT_MAX_COORDINATES / (family->is_tree ? 2 : 1),
                   family->is_tree ? " (a tree has two nodes for each bin)" : "");
}

static int finish_ou(struct request *request, struct error *error) {
  const struct aggregate *aggregate = request->aggregate;
  int has_theta = is_given(request->theta), has_rho = is_given(request->rho);
  if (has_theta != has_rho)
    return error_set(error, "theta and rho belong together (%s is missing)",
                     has_theta ? "rho" : "theta");
  if (is_given(request->t) && !has_theta)
    return error_set(error,
                     "t is a time of the process that theta and rho describe (they are missing)");
  if (is_given(request->t) && !aggregate->family->is_linear)
    return error_set(
        error, "t is for counts and sums: the noise of other statistics, and with it the time "
               "of their process, depends on the number of rows");
  if (has_theta && is_given(request->radius))
    return error_set(
        error, "radius follows from theta and rho (give NULL as the radius, or leave theta and "
               "rho out)");
  if (has_theta && request->theta == 0 && is_given(request->centre))
    return error_set(error, "centre is for theta above 0 (theta 0 shrinks nothing)");
  int in_range = aggregate->family->shrinks_average || aggregate->family->is_tree;
  double middle = in_range ? request->lo / 2 + request->hi / 2 : 0;
  request->centre = aggregate->is_ou ? or_else(request->centre, middle) : 0;
  if (aggregate->is_ou && !has_theta && !is_given(request->radius))
    return error_set(error,
                     "radius must be a finite number above 0 (the public bound on the distance "
                     "of the true answer from the centre), unless theta and rho are given");
  return 1;
}

static int finish_precision(struct request *request, struct error *error) {
  const struct aggregate *aggregate = request->aggregate;
  if (request->refine && !request->name)
    return error_set(error, "refine needs the name of the release that is to be refined");
  if (is_given(request->half_width)) {
    if (is_given(request->weight))
      return error_set(error, "half_width asks for a weight: give one of them, not both");
    const struct family *family = aggregate->family;
    const struct mechanism *mechanism = mechanism_find(aggregate, request->mechanism);
    int has_width = mechanism->noise || mechanism == &leaf_draw_mechanism;
    if (!has_width || aggregate->is_ou || family->statistic == STATISTIC_MODEL)
      return error_set(error, "half_width is for numbers without shrink, not '%s'",
                       aggregate->kind);
    if ((family->is_ratio || family->is_tree) && !is_given(request->rows_guess))
      return error_set(error, "half_width of '%s' needs rows (a public guess of their number)",
                       aggregate->kind);
  }
  int divides = aggregate->family->is_ratio || aggregate->family->is_tree;
  if (is_given(request->rows_guess) && divides && request->max_groups > 0 &&
      !is_given(request->key_guess))
    return error_set(error, "rows needs keys (a public guess of the number of groups)");
  if (is_given(request->t) && is_given(request->weight))
    return error_set(error, "t asks for a weight: give one of them, not both");
  request->weight = or_else(request->weight, 1);
  return 1;
}

/* The interval of a standard deviation is as wide, in parts of it, as half of that of its variance.
** Beyond a quarter of a variance, stopping where noise is on its side would bias it (noise_path.c).
** */
#define UNTIL_OF_ROOT 0.125

/* Checks that a release can stop when it is accurate enough (noise_path.c). */
static int finish_until(struct request *request, struct error *error) {
  const struct aggregate *aggregate = request->aggregate;
  const struct family *family = aggregate->family;
  if (!is_given(request->until)) {
    if (is_given(request->least))
      return error_set(error, "least belongs to until (give until, a part of the figure)");
    return 1;
  }
  if (request->least == 0) request->least = NAN; /* the default: the same release */
  if (is_given(request->half_width))
    return error_set(error, "give until (part of the figure) or half_width (a number), not both");
  if (request->periods)
    return error_set(error, "a series cannot stop early (leave until out, and see its plan)");
  if (aggregate->is_ou)
    return error_set(error, "until is for figures without shrink (ask for '%s')",
                     aggregate->kind + (strncmp(aggregate->kind, "ou_", 3) == 0 ? 3 : 0));
  if (family->statistic == STATISTIC_MODEL || family->by_exponent || aggregate->procedure ||
      family->statistic == STATISTIC_CATEGORY)
    return error_set(error, "until is for numbers with an interval, not '%s' (leave until out)",
                     aggregate->kind);
  if (request->max_groups > 0)
    return error_set(error, "until needs public keys (list them in \"keys\")");
  if (aggregate->root && request->until > UNTIL_OF_ROOT)
    return error_set(error,
                     "until must be at most %g for standard deviations (their variance then has "
                     "twice as much)",
                     UNTIL_OF_ROOT);
  /* A tier's default may be another mechanism, whose noise has no path of this kind. */
  if (!request->mechanism) request->mechanism = sqlite3_mprintf("%s", gaussian_mechanism.name);
  if (!request->mechanism) return error_set_memory(error);
  return mechanism_find(aggregate, request->mechanism) == &gaussian_mechanism ||
         error_set(error,
                   "until needs Gaussian noise, not mechanism '%s' (give "
                   "\"mechanism\":\"gaussian\", or a half_width to dp_plan())",
                   request->mechanism);
}

/* Checks a series (series.c). */
static int finish_series(struct request *request, int by_unit, struct error *error) {
  if (!request->periods) return 1;
  if (!by_unit)
    return error_set(error, "the ledger protects rows, and a series remembers units (release each "
                            "period by itself)");
  if (request->cross_keys)
    return error_set(error, "a series has no cross tables (leave ways or periods out)");
  if (request->max_groups > 0)
    return error_set(error, "a series has public keys only (list them in \"keys\")");
  if (request->refine)
    return error_set(error, "a series cannot be refined (declare it at its innermost tier)");
  if (is_given(request->steps) || is_given(request->bytes) || is_given(request->seconds))
    return error_set(error, "a series keeps no limits for its question (leave steps, bytes and "
                            "seconds out)");
  double keys = request->key_count ? request->key_count : 1;
  double width = layout_width(request->aggregate->family, 0, 0) * keys + 2 * request->diagnose;
  return width * request->periods->count <= LAYOUT_MAX_COORDINATES ||
         error_set(error, "keys times periods are too many (at most %d coordinates)",
                   LAYOUT_MAX_COORDINATES);
}

int request_finish_shape(struct request *request, int by_unit, struct error *error) {
  const struct aggregate *aggregate = request->aggregate;
  if (!by_unit && aggregate->counts_units)
    return error_set(error, "the ledger protects rows, and every row is a unit (use %s)",
                     aggregate->places.key ? "dp_group_count" : "dp_count");
  return finish_clip(request, by_unit, error) && finish_range(request, error) &&
         finish_size(request, error) && finish_draw(request, error) &&
         finish_keys(request, by_unit, error) && finish_coordinates(request, error);
}

int request_finish(struct request *request, int by_unit, struct error *error) {
  const struct procedure *procedure = request->aggregate->procedure;
  return request_finish_shape(request, by_unit, error) && finish_quantiles(request, error) &&
         finish_precision(request, error) && finish_ou(request, error) &&
         finish_until(request, error) && finish_series(request, by_unit, error) &&
         (!procedure || !procedure->finish || procedure->finish(request, by_unit, error));
}

/* ---- the default mechanism ------------------------------------------------------------------- */

/* Returns the aggregate's first mechanism whose noise costs a curve (math/math.h), or null. */
static const struct mechanism *curve_mechanism(const struct aggregate *aggregate) {
  const struct mechanism *mechanism;
  for (int i = 0; (mechanism = mechanism_at(i)) != 0; i++) {
    const struct noise_law *noise = mechanism->noise;
    if (noise && !noise->has_rate &&
        kind_admits(aggregate, mechanism))
      return mechanism;
  }
  return 0;
}

double planned_half_width(struct publication *publication, double rows, double rate) {
  struct ledger_release *release = &publication->definition.release;
  const struct noise_law *noise = publication->definition.mechanism->noise;
  struct design design;
  if (publication->definition.mechanism == &leaf_draw_mechanism)
    return leaf_half_width(publication, rows, rate);
  design_make(&design, &publication->definition.layout, rate, noise);
  release->granularity = design.granularity;
  release->shift = design.shift;
  publication->position.clock = noise->clock(design.sensitivity, rate);
  double half_width = numbers_half_width(publication, rows);
  return isnan(half_width) ? statistic_half_width(publication, numbers_stddev(publication))
                           : half_width;
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
    if (mechanism->for_epsilons && kind_admits(aggregate, mechanism))
      return mechanism;
  return 0;
}

/* Returns whether all tiers that pay add up epsilons alone. */
static int epsilons_pay(const struct position *position) {
  for (int i = 0; i <= position->at; i++)
    if (position->tiers[i].accountant->covers_rates) return 0;
  return 1;
}

static int set_mechanism(struct request *request, const struct mechanism *mechanism,
                         struct error *error) {
  request->mechanism = sqlite3_mprintf("%s", mechanism->name);
  return request->mechanism || error_set_memory(error);
}

int request_default_mechanism(struct request *request, const struct publication *publication,
                              int found) {
  struct error *error = &publication->session->error;
  const struct aggregate *aggregate = request->aggregate;
  if (request->mechanism) return 1;
  const struct mechanism *drawn = epsilon_mechanism(aggregate);
  if (drawn && (found ? strcmp(publication->definition.release.mechanism, drawn->name) == 0
                      : epsilons_pay(&publication->position)))
    return set_mechanism(request, drawn, error);
  /* The default among the mechanisms with noise; null if the tier covers none of them. */
  const struct mechanism *first = mechanism_find(aggregate, 0);
  const struct mechanism *mechanism =
      publication_tier(publication)->accountant->covers_rates ? first : curve_mechanism(aggregate);
  if (request->has_states || !mechanism || !mechanism->noise ||
      aggregate->family->statistic == STATISTIC_MODEL)
    return 1;
  if (request->quantiles && gets_draw(request, publication, found, mechanism))
    mechanism = &leaf_draw_mechanism;
  if (error_is_set(error)) return 0;
  if (request->has_default_leaves) request->size = request_leaves(request, mechanism);
  return mechanism == first || set_mechanism(request, mechanism, error);
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
  int is_drawn = publication->definition.mechanism == &leaf_draw_mechanism;
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

/* Finds the least weight that gives the described publication the wanted half-width. */
static int solve_weight(struct request *request, struct publication *publication) {
  const struct position *position = &publication->position;
  const struct ledger_tier *tier = &position->tiers[position->at];
  double wanted = request->half_width, rows = plan_rows(request);
  double least = planned_half_width(publication, rows, tier->rate);
  if (planned_half_width(publication, rows, DESIGN_MIN_RATE) <= wanted)
    return error_set(&publication->session->error, "half_width is that of a rate outside [%g, %g]",
                     DESIGN_MIN_RATE, DESIGN_MAX_RATE);
  if (!(least <= wanted)) return refuse_half_width(publication, request, tier, least);
  double rate = least_rate(publication, request, DESIGN_MIN_RATE, tier->rate);
  request->weight = fmin(1, rate / tier->rate);
  /* The division may have rounded the weight down, so that the half-width is too large. */
  while (planned_half_width(publication, rows, request->weight * tier->rate) > wanted)
    request->weight = fmin(1, request->weight * (1 + 0x1p-52));
  return 1;
}

int plan_weight(struct request *request, struct session *session) {
  if (isnan(request->half_width)) return 1;
  struct publication publication = {.session = session};
  struct definition *definition = &publication.definition;
  int solved = publication_open(&publication, request->tier, 0) == 0 &&
               publication.position.at >= 0 &&
               request_default_mechanism(request, &publication, 0);
  if (solved) {
    definition->release = request_release(request);
    if (request->cross_keys) definition->cross_keys = cross_keys_retain(request->cross_keys);
    if (request->periods) definition->periods = periods_retain(request->periods);
    solved = definition_describe(&publication, request->key_count) &&
             solve_weight(request, &publication);
  }
  definition->release = (struct ledger_release){0}; /* its texts are the request's */
  publish_clear(&publication);
  return solved;
}
