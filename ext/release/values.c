/* values.c: see values.h. */
#include "release/values.h"

#include "ledger/policy.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "mechanism/markov_kernel.h"
#include "functions/functions.h"
#include "functions/models.h"
#include "base/vector_text.h"
#include "release/reports.h"
#include "release/categories.h"
#include "mechanism/estimate.h"

SQLITE_EXTENSION_INIT3

/* ---- what a release is ----------------------------------------------------------------------- */

/* Whether the text of the model is one that fits its release. */
static int describe_model(struct publication *publication) {
  struct descent *descent = &publication->descent;
  if (!models_read(publication->release.model, descent) ||
      descent->dim != publication->release.size || !(descent->variance >= LATTICE_MIN_VARIANCE))
    return 0;
  double step = descent_step(descent);
  return step >= LAYOUT_MIN_CLIP && step <= LAYOUT_MAX_CLIP;
}

int answers_describe(struct publication *publication, int keys) {
  const struct ledger_release *release = &publication->release;
  struct ledger *ledger = publication->host->ledger;
  const struct aggregate *aggregate = aggregate_find(release->kind);
  if (!aggregate)
    return error_set(ledger_error(ledger),
                     "release '%s' is of a kind '%s' that this version does not know",
                     release->name ? release->name : "", release->kind);
  const struct mechanism *mechanism = mechanism_find(aggregate, release->mechanism);
  if (!mechanism)
    return error_set(ledger_error(ledger),
                     "release '%s' has a mechanism '%s' that this version does not know",
                     release->name ? release->name : "", release->mechanism);
  if (release->max_groups < 0 || release->max_groups > LAYOUT_MAX_GROUPS || release->size < 0 ||
      release->size > LAYOUT_MAX_BINS)
    return error_set(ledger_error(ledger),
                     "release '%s' has impossible parameters (restore the ledger from a backup)",
                     release->name ? release->name : "");
  publication->aggregate = aggregate;
  publication->mechanism = mechanism;
  if (aggregate->family->statistic == STATISTIC_MODEL && !describe_model(publication))
    return error_set(ledger_error(ledger),
                     "release '%s' has an impossible model (restore the ledger from a backup)",
                     release->name ? release->name : "");
  answers_shape(publication, keys, ledger_by_unit(ledger),
                ledger_adjacency(ledger) == LEDGER_REPLACE);
  return 1;
}

void answers_shape(struct publication *publication, int keys, int by_unit, int replace) {
  const struct ledger_release *release = &publication->release;
  const struct aggregate *aggregate = publication->aggregate;
  publication->by_unit = by_unit;
  publication->question = (struct contribution){aggregate->family,
                                                aggregate->counts,
                                                release->clip,
                                                release->lo,
                                                release->hi,
                                                release->size,
                                                release->max_groups > 0 ? KEYS_PRIVATE : keys,
                                                release->max_groups};
  if (aggregate->family->statistic == STATISTIC_MODEL)
    publication->question.clip = descent_step(&publication->descent);
  layout_make(&publication->shape, &publication->question, by_unit, replace);
}

int answers_keys(const struct ledger_release *release) {
  const struct aggregate *aggregate = aggregate_find(release->kind);
  int components = aggregate && aggregate->family->has_keys ? aggregate->family->components : 1;
  return release->keys ? release->dimension / components : 0;
}

struct ledger_grid answers_grid(const struct publication *publication) {
  const struct layout *shape = &publication->shape;
  if (publication->question.keys) return (struct ledger_grid){0, shape->cells, shape->components};
  return (struct ledger_grid){0, 1, shape->coordinates};
}

/* How publication->variance shows the release; delta: what selects private keys there. */
static struct view answers_view(const struct publication *publication) {
  const struct ledger_release *release = &publication->release;
  int is_one = publication->question.family->shrinks_average; /* which is one number */
  return (struct view){publication->mechanism->noise,
                       release->granularity,
                       release->shift,
                       publication->variance,
                       publication->aggregate->is_ou,
                       release->centre,
                       release->radius,
                       release->theta,
                       release->rho,
                       is_one ? 1 : publication->shape.coordinates};
}

int answers_same_lattice(const struct publication *publication) {
  const struct ledger_release *release = &publication->release;
  const struct layout *shape = &publication->shape;
  if (!publication->mechanism->noise)
    return release->granularity == 0 && release->sensitivity == 1 &&
           release->shift == -shape->fine_exponent;
  struct terms terms = {.shape = shape, .descent = &publication->descent, .shift = release->shift};
  uint64_t sensitivity = publication->mechanism->sensitivity(publication->mechanism, &terms);
  return release->granularity - release->shift == shape->fine_exponent &&
         release->sensitivity >= sensitivity;
}

double answers_shrink(const struct publication *publication) {
  struct view view = answers_view(publication);
  if (publication->question.family->shrinks_average) {
    /* It depends on the number of rows; even for 2^62 of them it must be something. */
    const struct contribution *question = &publication->question;
    double least = ldexp(question->high / 2 - question->low / 2, view.granularity - 31);
    return estimate_shrink(&view, least * least) >= DBL_MIN ? 1 : 0;
  }
  return estimate_shrink(&view, estimate_variance(&view));
}

/* Whether the keys of a stored path are the public ones that the fingerprint covers. */
int answers_same_keys(const struct publication *publication) {
  const struct ledger_grid *grid = &publication->grid;
  const char *keys = publication->release.keys;
  if (!keys) return 1;
  char *stored = keys_json(grid->keys, grid->cells);
  int same = stored && strcmp(stored, keys) == 0;
  sqlite3_free(stored);
  return same;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Numbers that estimate_point() has made of a point. */
struct numbers {
  struct estimate *estimates;
  int count;
  double shrink;
  char *const *keys; /* of its cells; null where there are none */
};

static struct reading reading_of(const struct publication *publication, double delta) {
  int keyed = publication->question.keys != 0;
  return (struct reading){.question = &publication->question,
                          .shape = &publication->shape,
                          .view = answers_view(publication),
                          .cells = keyed ? publication->grid.cells : publication->shape.cells,
                          .root = publication->aggregate->root,
                          .selection_delta = delta,
                          .descent = &publication->descent};
}

/* Reads a point; 0 with the reason in the ledger. */
static int read_point(const struct publication *publication, double delta, const int64_t *values,
                      struct numbers *numbers) {
  struct reading reading = reading_of(publication, delta);
  const char *text = publication->release.quantiles;
  double *quantiles = text ? sqlite3_malloc64(sizeof *quantiles * strlen(text)) : 0;
  if (quantiles) reading.quantile_count = vector_text_list(text, quantiles, (int)strlen(text));
  reading.quantiles = quantiles;
  size_t room = (size_t)estimate_room(&reading) + 1;
  numbers->estimates = sqlite3_malloc64(sizeof *numbers->estimates * room);
  numbers->count = -1;
  if (numbers->estimates && (quantiles || !text))
    numbers->count = estimate_point(&reading, values, numbers->estimates);
  numbers->shrink = reading.shrink;
  numbers->keys = publication->grid.keys;
  sqlite3_free(quantiles);
  return numbers->count >= 0 || error_set(ledger_error(publication->host->ledger), "out of memory");
}

static struct ledger_value value_of(const struct numbers *numbers,
                                    const struct estimate *estimate) {
  return (struct ledger_value){numbers->keys ? numbers->keys[estimate->cell] : "",
                               estimate->component,
                               estimate->value,
                               estimate->stddev,
                               estimate->low,
                               estimate->high};
}

/* Whether there is one number for each of some public groups, and numbers add up. */
static int has_public_sums(const struct publication *publication) {
  const struct family *family = publication->question.family;
  return family->has_keys && family->is_linear && publication->release.keys;
}

int answers_mixable(const struct publication *publication) {
  return has_public_sums(publication) ||
         error_set(ledger_error(publication->host->ledger),
                   "release '%s' has neither a symbol nor counts or sums of public groups, "
                   "which a kernel could send on (use dp_diffuse)",
                   publication->release.name);
}

/* The first group that has no row, or null. */
static const char *missing_group(const struct publication *publication,
                                 const struct markov_kernel *channel) {
  for (int i = 0; i < publication->grid.cells; i++) {
    if (!markov_kernel_row(channel, publication->grid.keys[i])) return publication->grid.keys[i];
  }
  return 0;
}

/* The groups as the channel sends them on: sums with its probabilities as weights. */
static int send_numbers(const struct publication *publication, const struct markov_kernel *channel,
                        struct numbers *numbers) {
  struct ledger *ledger = publication->host->ledger;
  char *const *keys = publication->grid.keys;
  int count = publication->grid.cells, symbols = channel->symbol_count;
  const char *missing = missing_group(publication, channel);
  if (missing) return error_set(ledger_error(ledger), "the kernel has no row for x '%s'", missing);
  struct chain chain = {0};
  struct view view = answers_view(publication);
  double *weights = sqlite3_malloc64(sizeof *weights * (sqlite3_uint64)count);
  struct estimate *sent = sqlite3_malloc64(sizeof *sent * (sqlite3_uint64)symbols);
  int going = weights && sent && chain_pass(&chain, channel, keys, count) == 0;
  for (int y = 0; y < symbols && going; y++) {
    for (int x = 0; x < count; x++) weights[x] = chain.high[(size_t)x * chain.columns + (size_t)y];
    sent[y] = estimate_mixed(&view, numbers->estimates, count, weights, y);
  }
  chain_clear(&chain);
  sqlite3_free(weights);
  sqlite3_free(going ? numbers->estimates : sent);
  if (!going) return error_set_memory(ledger_error(ledger));
  numbers->estimates = sent;
  numbers->count = symbols;
  numbers->keys = channel->symbols;
  return 1;
}

int answers_store(struct publication *publication, const struct cost *cost, const int64_t *values) {
  struct ledger *ledger = publication->host->ledger;
  const char *tier = publication->tiers[publication->at].name;
  const struct markov_kernel *channel = publication->channel;
  struct numbers numbers;
  int stored = read_point(publication, cost->delta, values, &numbers) &&
               (!channel || send_numbers(publication, channel, &numbers)) &&
               ledger_publication_insert(ledger, &publication->release, tier, publication->variance,
                                         cost, numbers.shrink, channel ? channel->json : 0);
  for (int i = 0; i < numbers.count && stored; i++) {
    struct ledger_value value = value_of(&numbers, &numbers.estimates[i]);
    stored = ledger_value_insert(ledger, &publication->release, tier, &value);
  }
  sqlite3_free(numbers.estimates);
  return stored && answers_read(publication, tier);
}

/* What private keys take of the delta_keys of publication->at, each time anew. */
static double selection_delta(const struct publication *publication) {
  const struct ledger_release *release = &publication->release;
  double share = release->key_share * (1 - 0x1p-40); /* ten tenths are not more than all */
  return release->max_groups ? share * publication->tiers[publication->at].delta_keys : 0;
}

double answers_threshold(const struct publication *publication) {
  struct reading reading = reading_of(publication, selection_delta(publication));
  return ldexp(estimate_threshold(&reading), publication->release.granularity) /
         publication->shape.count_factor;
}

double answers_stddev(const struct publication *publication) {
  struct reading reading = reading_of(publication, 0);
  return estimate_total_stddev(&reading);
}

/* ---- answers --------------------------------------------------------------------------------- */

struct rendering {
  enum answer_form form;
  sqlite3_str *json;
  double number;
  int count;
};

static enum answer_form form_of(const struct publication *publication) {
  const char *quantiles = publication->release.quantiles;
  return quantiles && *quantiles != '[' ? FORM_NUMBER : publication->aggregate->form;
}

static int render(void *context, const struct ledger_value *value) {
  struct rendering *rendering = context;
  if (rendering->count++) sqlite3_str_appendall(rendering->json, ",");
  if (rendering->form == FORM_SYMBOL) {
    sqlite3_str_appendall(rendering->json, value->key);
    return 1;
  }
  rendering->number = value->value;
  if (rendering->form == FORM_OBJECT) {
    json_append_string(rendering->json, value->key);
    sqlite3_str_appendall(rendering->json, ":");
  }
  sqlite3_str_appendf(rendering->json, "%!.17g", value->value);
  return 1;
}

int answers_read(struct publication *publication, const char *tier) {
  struct ledger *ledger = publication->host->ledger;
  struct rendering rendering = {form_of(publication), sqlite3_str_new(0), 0, 0};
  int is_object = rendering.form == FORM_OBJECT;
  static const char *const brackets[][2] = {[FORM_NUMBER] = {"[", "]"},
                                            [FORM_ARRAY] = {"[", "]"},
                                            [FORM_OBJECT] = {"{", "}"},
                                            [FORM_SYMBOL] = {"", ""}};
  sqlite3_str_appendall(rendering.json, brackets[rendering.form][0]);
  int going = ledger_values(ledger, publication->release.id, tier, render, &rendering);
  sqlite3_str_appendall(rendering.json, brackets[rendering.form][1]);
  char *json = sqlite3_str_finish(rendering.json);
  if (going && !json) going = error_set_memory(ledger_error(ledger));
  if (going && !is_object && !rendering.count)
    going = error_set(ledger_error(ledger), "release '%s' has lost its values",
                      publication->release.name);
  sqlite3_free(publication->answer.json);
  publication->answer = (struct answer){rendering.number, 0};
  if (going && rendering.form != FORM_NUMBER) {
    publication->answer.json = json;
  } else {
    sqlite3_free(json);
  }
  publication->answered = going;
  return going;
}

/* ---- verification ---------------------------------------------------------------------------- */

static int close_to(double a, double b, double scale) {
  return a == b || fabs(a - b) <= 1e-9 * scale;
}

/* The stored values beside those that the point gives now. */
struct comparison {
  struct numbers numbers;
  int at, same;
};

static int compare_value(void *context, const struct ledger_value *stored) {
  struct comparison *comparison = context;
  if (comparison->at == comparison->numbers.count) {
    comparison->same = 0; /* one too many */
  } else {
    struct ledger_value value =
        value_of(&comparison->numbers, &comparison->numbers.estimates[comparison->at++]);
    double noise = value.stddev;
    comparison->same =
        strcmp(stored->key, value.key) == 0 && stored->component == value.component &&
        close_to(stored->value, value.value, noise) &&
        close_to(stored->stddev, value.stddev, noise) && close_to(stored->low, value.low, noise) &&
        close_to(stored->high, value.high, noise);
  }
  return comparison->same;
}

/* Through the kernel that is stored, if there is one; one that is none leaves no numbers. */
static int send_as_published(const struct publication *publication, const char *tier,
                             struct markov_kernel *channel, struct numbers *numbers) {
  struct ledger *ledger = publication->host->ledger;
  char *kernel = 0;
  ledger_kernel_find(ledger, publication->release.id, tier, &kernel);
  char *error = kernel ? markov_kernel_read(channel, ledger, kernel) : 0;
  int is_lost = error && strcmp(error, "out of memory") == 0;
  if (is_lost) error_set_memory(ledger_error(ledger));
  int is_none =
      error || (kernel && (!has_public_sums(publication) || missing_group(publication, channel)));
  if (is_none) numbers->count = 0;
  error_message_free(error);
  int sent = kernel && !is_none;
  sqlite3_free(kernel);
  return !error_is_set(ledger_error(ledger)) &&
         (!sent || send_numbers(publication, channel, numbers));
}

static char *compare_values(struct publication *publication,
                            const struct ledger_publication *published,
                            const struct ledger_point *point) {
  const char *name = publication->release.name, *tier = published->tier;
  struct ledger *ledger = publication->host->ledger;
  struct comparison comparison = {{0}, 0, 1};
  char *found = 0;
  struct markov_kernel channel = {0};
  publication->variance = point->clock;
  if (read_point(publication, published->delta, point->values, &comparison.numbers) &&
      send_as_published(publication, tier, &channel, &comparison.numbers)) {
    ledger_values(ledger, publication->release.id, tier, compare_value, &comparison);
    if (!close_to(published->shrink, comparison.numbers.shrink, comparison.numbers.shrink) ||
        published->centre != publication->release.centre) {
      found = ledger_discrepancy(
          ledger,
          "dp_publication: '%s' at tier '%s' has another shrink or centre than its "
          "release",
          name, tier);
    } else if (!comparison.same || comparison.at != comparison.numbers.count) {
      found = ledger_discrepancy(
          ledger, "dp_value: '%s' at tier '%s' is not what its point makes it", name, tier);
    }
  }
  markov_kernel_clear(&channel);
  sqlite3_free(comparison.numbers.estimates);
  return found;
}

static char *check_path(struct publication *publication,
                        const struct ledger_publication *published) {
  struct ledger_path path;
  struct ledger_release *release = &publication->release;
  struct ledger *ledger = publication->host->ledger;
  char *found = 0;
  int components = answers_grid(publication).components;
  if (ledger_path_read(ledger, release, components, &path)) {
    const struct ledger_point *point = 0;
    for (int i = 0; i < path.count; i++) {
      if (strcmp(path.points[i].tier, published->tier) == 0) point = &path.points[i];
    }
    publication->grid = path.grid;
    if (!answers_same_keys(publication)) {
      found = ledger_discrepancy(ledger, "dp_path: '%s' has other keys than its release",
                                 release->name);
    } else if (!point || point->clock != published->clock) {
      found = ledger_discrepancy(
          ledger, "dp_publication: '%s' at tier '%s' does not show the point of its path",
          release->name, published->tier);
    } else if (!models_paid(publication, point->clock, published->curve)) {
      found = ledger_discrepancy(
          ledger, "dp_publication: '%s' at tier '%s' has a curve below what its public rows hide",
          release->name, published->tier);
    } else {
      found = compare_values(publication, published, point);
    }
    publication->grid = (struct ledger_grid){0, 0, 0}; /* the path's own */
  }
  ledger_path_free(&path);
  return found;
}

struct verification {
  struct host *host;
  char *found;
};

/* As check_path() or categories_verify() says. */
static char *check_described(struct publication *publication,
                             const struct ledger_publication *published) {
  struct ledger *ledger = publication->host->ledger;
  char *found = 0;
  if (!answers_describe(publication, answers_keys(&publication->release))) return 0;
  if (publication->mechanism->noise) return check_path(publication, published);
  if (ledger_tiers(ledger, &publication->tiers, &publication->tier_count))
    found = (publication->mechanism->statistics == STATISTIC_REPORTS
                 ? responses_verify
                 : categories_verify)(publication, published->tier);
  ledger_tiers_free(publication->tiers, publication->tier_count);
  return found;
}

static int verify_publication(void *context, const struct ledger_publication *published) {
  struct verification *verification = context;
  struct publication publication = {0};
  struct ledger_release *release = &publication.release;
  publication.host = verification->host;
  struct ledger *ledger = verification->host->ledger;
  if (!ledger_release_get(ledger, published->release_id, release)) {
    if (!error_is_set(ledger_error(ledger)))
      verification->found =
          ledger_discrepancy(ledger, "dp_publication: release %lld at tier '%s' is missing",
                             (long long)published->release_id, published->tier);
  } else if (aggregate_find(release->kind)) { /* others are not ours to read */
    verification->found = check_described(&publication, published);
  }
  ledger_release_clear(release);
  return !verification->found && !error_is_set(ledger_error(ledger));
}

char *answers_verify(struct host *host) {
  struct verification verification = {host, 0};
  ledger_publications(host->ledger, verify_publication, &verification);
  return verification.found;
}
