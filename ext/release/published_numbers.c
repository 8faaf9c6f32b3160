/* published_numbers.c: computes the published numbers from a point, stores them, and answers from
** them. Later it computes them from the stored point again, for dp_interval() at another confidence
** and for dp_parts. Before, it tells from public parameters how precise they will be. Tests:
** tests/mechanism/test_kinds_exact.py, tests/mechanism/test_kinds_noise.py,
** tests/mechanism/test_intervals.py */
#include "release/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "math/math.h"
#include "mechanism/mechanism.h"

SQLITE_EXTENSION_INIT3

/* The key of an estimate, for sorting. */
struct named {
  char *key;
  struct estimate estimate;
};

static int by_key(const void *a, const void *b) {
  return strcmp(((const struct named *)a)->key, ((const struct named *)b)->key);
}

/* Moves `count` named estimates to `numbers`. Returns 0 when out of memory. */
static int give_named(const struct named *named, int count, struct numbers *numbers) {
  sqlite3_uint64 room = (sqlite3_uint64)count + 1;
  sqlite3_free(numbers->estimates);
  numbers->estimates = sqlite3_malloc64(sizeof *numbers->estimates * room);
  numbers->made = sqlite3_malloc64(sizeof *numbers->made * room);
  if (!numbers->estimates || !numbers->made) return 0;
  for (int i = 0; i < count; i++) {
    numbers->estimates[i] = named[i].estimate;
    numbers->estimates[i].cell = i;
    numbers->made[i] = named[i].key;
  }
  numbers->count = numbers->made_count = count;
  numbers->keys = numbers->made;
  return 1;
}

/* Makes the keys of all cells of cross tables, and sorts the estimates by key, because the ledger
** reads values in this order. Afterwards estimate i has the cell i. Returns 0 when out of
** memory. */
static int name_cells(struct numbers *numbers, const struct cross_keys *cross_keys,
                      const struct ways *ways) {
  struct named *named = sqlite3_malloc64(sizeof *named * (sqlite3_uint64)ways->cells);
  int count = 0, going = named != 0;
  for (int i = 0; i < ways->count && going; i++) {
    const struct cross_table *table = &ways->tables[i];
    for (int c = 0; c < table->cells && going; c++) {
      char *key = cross_keys_of_cell(cross_keys, table, c);
      going = key != 0;
      if (going) named[count++] = (struct named){key, numbers->estimates[table->first + c]};
    }
  }
  if (going) qsort(named, (size_t)count, sizeof *named, by_key);
  going = going && give_named(named, count, numbers);
  for (int i = 0; i < count && !going; i++) sqlite3_free(named[i].key);
  sqlite3_free(named);
  return going;
}

/* ---- series ---------------------------------------------------------------------------------- */

/* The figures of a series while they are computed. */
struct figures {
  const struct publication *publication;
  struct reading reading;
  const int64_t *values;
  struct window window; /* weights the points */
  double *sums;         /* of the coordinates of one period */
  struct named *named;
  struct estimate *estimates; /* of one span */
  int count;
};

static void figures_close(struct figures *figures) {
  for (int i = 0; i < figures->count; i++) sqlite3_free(figures->named[i].key);
  window_close(&figures->window);
  sqlite3_free(figures->sums);
  sqlite3_free(figures->named);
  sqlite3_free(figures->estimates);
}

/* Opens the computation of figures of `spans` spans. Returns 0 when out of memory. */
static int figures_open(struct figures *figures, const struct publication *publication,
                        double confidence, const int64_t *values, int spans) {
  const struct definition *definition = &publication->definition;
  *figures = (struct figures){.publication = publication,
                              .reading = definition_reading(publication, 0, confidence),
                              .values = values};
  struct reading *reading = &figures->reading;
  reading->cells = definition->layout.cells;
  size_t room = (size_t)reading->cells * (size_t)(spans + 1);
  size_t coordinates = period_size(definition);
  figures->sums = sqlite3_malloc64(sizeof(double) * coordinates);
  figures->named = sqlite3_malloc64(sizeof *figures->named * room);
  figures->estimates = sqlite3_malloc64(sizeof *figures->estimates * (coordinates + 1));
  return figures->sums && figures->named && figures->estimates &&
         window_open(&figures->window, &definition->series, publication->grid.cells);
}

/* Sets figures->sums to the figures of all coordinates of a span, and returns the standard
** deviation of their noise in units of that of a point. */
static double weigh(struct figures *figures, struct span span) {
  const struct definition *definition = &figures->publication->definition;
  size_t coordinates = period_size(definition);
  window_move(&figures->window, span.first, span.last);
  for (size_t i = 0; i < coordinates; i++) figures->sums[i] = 0;
  for (int t = 0; t <= span.last; t++) {
    const int64_t *point = &figures->values[(size_t)t * coordinates];
    double weight = figures->window.weights[t];
    for (size_t i = 0; i < coordinates && weight != 0; i++)
      figures->sums[i] += weight * (double)point[i];
  }
  for (size_t i = 0; i < coordinates; i++)
    figures->sums[i] = ldexp(figures->sums[i], figures->reading.view.granularity);
  return sqrt(figures->window.variance);
}

/* Adds the figures of a span. Returns 0 when out of memory or interrupted. */
static int add_span(struct figures *figures, struct span span, int total) {
  const struct definition *definition = &figures->publication->definition;
  struct reading reading = figures->reading;
  reading.view.part = weigh(figures, span);
  reading.numbers = figures->sums;
  if (!ledger_goes_on(figures->publication->session->ledger)) return 0;
  int used = estimate_point(&reading, figures->values, figures->estimates);
  for (int i = 0; i < used; i++) {
    const char *group = definition->groups ? definition->groups[figures->estimates[i].cell] : 0;
    char *key = periods_key(definition->periods, span, total, group);
    if (!key) return 0;
    figures->named[figures->count++] = (struct named){key, figures->estimates[i]};
  }
  return used >= 0;
}

/* A series counts each unit once that was counted, and once that was clipped, so that the number of
** all units has the noise of one coordinate, and the number of the others has that of two. With the
** standard deviation multiplied by the golden ratio, the interval of clipped_share() is at least as
** wide as it must be: (1 + s^2) is at most that ratio squared times (1 - 2 s + 2 s^2). */
#define GOLDEN_RATIO 1.6180339887498950

static struct ledger_clipping series_clipping(struct figures *figures) {
  const struct layout *shape = &figures->publication->definition.layout;
  int appended = figures->publication->grid.cells;
  double unit = ldexp((double)shape->ladder.steps, shape->fine_exponent), part = 1;
  struct ledger_clipping clipping = NO_CLIPPING;
  if (!shape->diagnoses) return clipping;
  clipping.clipped = clipping.unclipped = 0;
  if (appended) {
    part = weigh(figures, (struct span){0, appended - 1});
    clipping.clipped = figures->sums[shape->coordinates] / unit;
    clipping.unclipped = figures->sums[shape->coordinates + 1] / unit - clipping.clipped;
  }
  double stddev = sqrt(estimate_variance(&figures->reading.view)) * part * GOLDEN_RATIO;
  clipping.stddev = published_up(stddev / unit);
  return clipping;
}

/* Computes the figures of `count` spans, each a period after the one before. With `totals`, adds
** the running totals that end with them and the clipped units, and sorts all figures by key,
** because the ledger reads values in this order. */
static int read_spans(const struct publication *publication, struct span span, int count,
                      int totals, double confidence, const int64_t *values,
                      struct numbers *numbers) {
  struct figures figures;
  *numbers = (struct numbers){.shrink = 1, .confidence = confidence};
  int done = figures_open(&figures, publication, confidence, values, totals ? 2 * count : count);
  for (int i = 0; i < count && done; i++)
    done = add_span(&figures, (struct span){span.first + i, span.last + i}, 0);
  for (int i = 0; i < count && done && totals; i++)
    done = add_span(&figures, (struct span){0, span.last + i}, 1);
  if (done && totals) {
    numbers->clipping = series_clipping(&figures);
    qsort(figures.named, (size_t)figures.count, sizeof *figures.named, by_key);
  }
  done = done && give_named(figures.named, figures.count, numbers);
  if (done) figures.count = 0; /* the keys belong to `numbers` */
  figures_close(&figures);
  return done || error_set_memory(&publication->session->error);
}

int numbers_spans(const struct publication *publication, struct span span, int count,
                  double confidence, const int64_t *values, struct numbers *numbers) {
  return read_spans(publication, span, count, 0, confidence, values, numbers);
}

/* ---- points ---------------------------------------------------------------------------------- */

static struct ledger_clipping clipping_of(const struct publication *publication,
                                          const struct view *view, const int64_t *values) {
  const struct layout *shape = &publication->definition.layout;
  struct ledger_clipping clipping = NO_CLIPPING;
  double counts[TALLY_OWN + TALLY_COUNTS];
  double unit = ldexp((double)shape->ladder.steps, shape->fine_exponent - view->granularity);
  int count = shape->diagnoses;
  if (!count) return clipping;
  const int64_t *extra = &values[grid_size(&publication->grid) - (size_t)count];
  for (int i = 0; i < count; i++) counts[i] = (double)extra[i] / unit;
  clipping.clipped = counts[count - 2];
  clipping.unclipped = counts[count - 1];
  clipping.stddev = published_up(ldexp(sqrt(estimate_variance(view)), -view->granularity) / unit);
  int rungs = shape->ladder.shared ? TALLY_COUNTS : 0; /* the place of the ladder */
  if (rungs) {
    clipping.wider_clipped = counts[0];
    clipping.wider_unclipped = counts[1];
  }
  if (count - rungs > DIAGNOSES) clipped_amount(view->noise, counts + rungs, &clipping);
  return clipping;
}

int numbers_read(const struct publication *publication, double delta, double confidence,
                 enum inside inside, const int64_t *values, struct numbers *numbers) {
  int since = publication->missing.first;
  if (publication->definition.periods)
    return read_spans(publication, (struct span){since, since}, publication->grid.cells - since, 1,
                      confidence, values, numbers);
  struct reading reading = definition_reading(publication, delta, confidence);
  reading.inside = inside;
  size_t room = (size_t)estimate_room(&reading) + 1;
  *numbers = (struct numbers){.confidence = confidence,
                              .clipping = clipping_of(publication, &reading.view, values)};
  numbers->estimates = sqlite3_malloc64(sizeof *numbers->estimates * room);
  numbers->count = numbers->estimates ? estimate_point(&reading, values, numbers->estimates) : -1;
  numbers->shrink = reading.shrink;
  numbers->keys = publication->grid.keys;
  if (numbers->count >= 0 && publication->definition.cross_keys &&
      !name_cells(numbers, publication->definition.cross_keys, reading.shape->ways))
    numbers->count = -1;
  return numbers->count >= 0 || error_set_memory(&publication->session->error);
}

struct ledger_value numbers_value(const struct numbers *numbers, const struct estimate *estimate) {
  return (struct ledger_value){numbers->keys ? numbers->keys[estimate->cell] : "",
                               estimate->component,
                               estimate->value,
                               estimate->stddev,
                               estimate->low,
                               estimate->high};
}

double numbers_selection_delta(const struct publication *publication) {
  const struct ledger_release *release = &publication->definition.release;
  double share = release->key_share * (1 - 0x1p-40); /* ten shares of 0.1 add up to at most 1 */
  return release->max_groups ? share * publication_tier(publication)->delta_keys : 0;
}

double numbers_threshold(const struct publication *publication, double delta) {
  struct reading reading = definition_reading(publication, delta, NUMBERS_CONFIDENCE);
  double steps = publication->definition.layout.family->by_exponent
                     ? estimate_bounds_threshold(&reading)
                     : estimate_threshold(&reading);
  return ldexp(steps, publication->definition.release.granularity) /
         publication->definition.layout.count_factor;
}

/* ---- how precise the numbers will be --------------------------------------------------------- */

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

double statistic_half_width(const struct publication *publication, double stddev) {
  const struct noise_law *noise = publication->definition.mechanism->noise;
  return publication->definition.aggregate->family->is_linear
             ? noise->half_width(stddev, NUMBERS_CONFIDENCE)
             : mixed_half_width(noise, stddev, NUMBERS_CONFIDENCE);
}

/* ---- storing the values of a publication, and answering from them ---------------------------- */

/* Returns the noisy count that a private key needs, or NaN if the keys are public. */
static double threshold_of(const struct publication *publication, double delta) {
  int is_private = publication->definition.release.max_groups > 0;
  return is_private ? numbers_threshold(publication, delta) : (double)NAN;
}

int values_store(struct publication *publication, const struct cost *cost, const int64_t *values) {
  struct ledger *ledger = publication->session->ledger;
  const char *tier = publication_tier(publication)->name;
  const struct mixing *mixing = publication->position.mixing;
  struct numbers numbers = {0};
  int stored = 1;
  if (publication->figures) { /* computed before the transaction */
    numbers = *publication->figures;
    *publication->figures = (struct numbers){0};
  } else {
    stored = numbers_read(publication, cost->delta, NUMBERS_CONFIDENCE, INSIDE_NOTHING, values,
                          &numbers);
  }
  stored =
      stored && (!mixing || mixing->send(publication, mixing, &numbers)) &&
      ledger_publication_insert(ledger, &publication->definition.release, tier,
                                publication->position.clock, cost, numbers.shrink, numbers.clipping,
                                threshold_of(publication, cost->delta), mixing ? mixing->json : 0);
  for (int i = 0; i < numbers.count && stored; i++) {
    struct ledger_value value = numbers_value(&numbers, &numbers.estimates[i]);
    stored = ledger_value_insert(ledger, &publication->definition.release, tier, &value);
  }
  numbers_clear(&numbers);
  return stored && values_read(publication, tier);
}

/* ---- answers --------------------------------------------------------------------------------- */

struct rendering {
  enum answer_form form;
  sqlite3_str *json;
  double number;
  int count;
};

static int render(void *context, const struct ledger_value *value) {
  struct rendering *rendering = context;
  int ends_array = rendering->form == FORM_ARRAYS && value->component == 0;
  if (rendering->count++) sqlite3_str_appendall(rendering->json, ends_array ? "]," : ",");
  if (rendering->form == FORM_SYMBOL) {
    sqlite3_str_appendall(rendering->json, value->key);
    return 1;
  }
  rendering->number = value->value;
  if (rendering->form == FORM_OBJECT || ends_array) {
    json_append_string(rendering->json, value->key);
    sqlite3_str_appendall(rendering->json, ends_array ? ":[" : ":");
  }
  json_append_number(rendering->json, value->value);
  return 1;
}

int values_read(struct publication *publication, const char *tier) {
  if (publication->definition.release.periods) { /* a figure for each period, none for the whole */
    publication->answer.is_null = publication->answered = 1;
    return 1;
  }
  struct ledger *ledger = publication->session->ledger;
  const char *quantiles = publication->definition.release.quantiles;
  enum answer_form form = publication->definition.aggregate->form;
  if (quantiles && *quantiles != '[') /* one quantile, not an array */
    form = form == FORM_ARRAYS || form == FORM_OBJECT ? FORM_OBJECT : FORM_NUMBER;
  struct rendering rendering = {form, sqlite3_str_new(0), 0, 0};
  int is_object = rendering.form == FORM_OBJECT || rendering.form == FORM_ARRAYS;
  static const char *const brackets[][2] = {[FORM_NUMBER] = {"[", "]"},
                                            [FORM_ARRAY] = {"[", "]"},
                                            [FORM_OBJECT] = {"{", "}"},
                                            [FORM_ARRAYS] = {"{", "}"},
                                            [FORM_SYMBOL] = {"", ""}};
  sqlite3_str_appendall(rendering.json, brackets[rendering.form][0]);
  int going = ledger_values(ledger, publication->definition.release.id, tier, render, &rendering);
  if (rendering.form == FORM_ARRAYS && rendering.count) sqlite3_str_appendall(rendering.json, "]");
  sqlite3_str_appendall(rendering.json, brackets[rendering.form][1]);
  char *json = sqlite3_str_finish(rendering.json);
  if (going && !json) going = error_set_memory(ledger_error(ledger));
  int is_null = !rendering.count && publication->definition.aggregate->family->by_exponent;
  if (going && !is_object && !is_null && !rendering.count) going = lost_values(publication);
  if (!going || rendering.form == FORM_NUMBER || is_null) {
    sqlite3_free(json);
    json = 0;
  }
  if (going) { /* after a failure, the publication keeps the answer that somebody may have seen */
    sqlite3_free(publication->answer.json);
    publication->answer = (struct answer){rendering.number, json, is_null};
  }
  publication->answered = going;
  return going;
}

/* ---- the numbers of a stored point ----------------------------------------------------------- */

/* Computes numbers of the release from its point at the publication's tier. The caller calls
** numbers_clear(). Returns 1, or 0 after setting the ledger's error. */
static int read_point(struct publication *publication, double confidence, enum inside inside,
                      struct numbers *numbers) {
  const char *tier = publication_tier(publication)->name;
  struct ledger_path path = {0};
  int done = 0;
  *numbers = (struct numbers){0};
  const struct ledger_point *point =
      definition_describe_stored(publication) && definition_path(publication, &path)
          ? path_point(&path, tier)
          : 0;
  if (point) {
    publication->position.clock = point->clock;
    done = numbers_read(publication, numbers_selection_delta(publication), confidence, inside,
                        point->values, numbers) &&
           (inside || rooms_resend(publication, tier, numbers));
  }
  ledger_path_free(&path);
  return done || lost_values(publication);
}

int interval_read(struct publication *publication, const char *key, int component,
                  double confidence, double *low, double *high) {
  struct numbers numbers;
  int found = 0;
  read_point(publication, confidence, INSIDE_NOTHING, &numbers);
  for (int i = 0; i < numbers.count && !found; i++) {
    struct ledger_value value = numbers_value(&numbers, &numbers.estimates[i]);
    found = strcmp(value.key, key) == 0 && value.component == component;
    *low = value.low;
    *high = value.high;
  }
  numbers_clear(&numbers);
  return found || lost_values(publication);
}

int inside_read(struct publication *publication, enum inside inside,
                int (*take)(void *context, const struct ledger_value *value), void *context) {
  struct numbers numbers;
  int taken = read_point(publication, NUMBERS_CONFIDENCE, inside, &numbers);
  for (int i = 0; i < numbers.count && taken; i++) {
    struct ledger_value value = numbers_value(&numbers, &numbers.estimates[i]);
    taken = take(context, &value);
  }
  numbers_clear(&numbers);
  return taken;
}
