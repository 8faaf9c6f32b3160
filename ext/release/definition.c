/* definition.c: what a release is: its kind and mechanism, the contribution of a unit, and the
** lattice. A definition is made either from the parameters of a new release or from the row of a
** stored release in the ledger.
** Tests: tests/ledger/test_edits.py, tests/functions/test_kinds_plan.py,
** tests/attacks/test_repeated_rounding.py */
#include "release/internal.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sql_text.h"
#include "ledger/ledger.h"
#include "sums/layout.h"

SQLITE_EXTENSION_INIT3

_Static_assert(LEDGER_EXTRA >= TALLY_OWN + TALLY_COUNTS,
               "the ledger stores what a layout diagnoses");

/* Reads the cross keys of a stored release of cross tables, or takes those that the request has
** made. Returns 1, or 0 with the ledger's error set. */
static int describe_cross_keys(struct publication *publication) {
  struct definition *definition = &publication->definition;
  const struct ledger_release *release = &definition->release;
  if (!release->ways) return 1;
  if (!definition->cross_keys && release->keys)
    definition->cross_keys =
        cross_keys_open(ledger_json(publication->session->ledger), release->keys, release->ways, 0);
  if (!definition->cross_keys) return 0;
  return !release->multipliers ||
         cross_keys_restore(definition->cross_keys, definition->mechanism->noise->in_sum_norm,
                            release->multipliers, &publication->session->error);
}

static const char *name_of(const struct publication *publication) {
  const char *name = publication->definition.release.name;
  return name ? name : "";
}

static int fail_impossible(const struct publication *publication) {
  return error_set(&publication->session->error,
                   "release '%s' has impossible parameters (restore the ledger from a backup)",
                   name_of(publication));
}

/* Reads the keys of the groups of a series. A null pointer follows the last one. */
static int describe_groups(struct publication *publication, int keys) {
  struct definition *definition = &publication->definition;
  int count;
  if (!definition->release.keys || definition->groups) return 1;
  definition->groups =
      json_list(ledger_json(publication->session->ledger), definition->release.keys, 0, &count);
  return definition->groups && (count == keys || fail_impossible(publication));
}

/* Reads the periods of a stored series, or takes those that the request has made, and makes the
** matrix of the series. Returns 1, or 0 with the ledger's error set. */
static int describe_periods(struct publication *publication, int keys) {
  struct definition *definition = &publication->definition;
  struct ledger *ledger = publication->session->ledger;
  if (!definition->release.periods) return 1;
  if (!definition->periods)
    definition->periods = periods_open(ledger_json(ledger), definition->release.periods);
  if (!definition->periods) return 0;
  int count = definition->periods->count;
  if (definition->release.appended < 0 || definition->release.appended > count)
    return fail_impossible(publication);
  if (!describe_groups(publication, keys)) return 0;
  if (definition->series.periods) return 1;
  return series_make(&definition->series, count, definition->mechanism->noise) ||
         error_set_memory(ledger_error(ledger));
}

int definition_describe(struct publication *publication, int keys) {
  const struct ledger_release *release = &publication->definition.release;
  struct ledger *ledger = publication->session->ledger;
  const struct aggregate *aggregate = aggregate_find(release->kind);
  if (!aggregate)
    return error_set(ledger_error(ledger),
                     "release '%s' is of a kind '%s' that this version does not know",
                     name_of(publication), release->kind);
  const struct mechanism *mechanism = mechanism_find(aggregate, release->mechanism);
  if (!mechanism)
    return error_set(ledger_error(ledger),
                     "release '%s' has a mechanism '%s' that this version does not know",
                     name_of(publication), release->mechanism);
  unsigned diagnosed = 1u << P_DIAGNOSE | (release->periods ? 1u << P_SERIES : 0);
  if ((release->diagnose && !(aggregate->takes & diagnosed)) ||
      (release->periods && !(aggregate->takes & 1u << P_PERIODS)) || release->max_groups < 0 ||
      release->max_groups > LAYOUT_MAX_GROUPS || release->size < 0 ||
      release->size > LAYOUT_MAX_BINS || release->grid < 0 ||
      (release->grid > 0 &&
       !(release->size > 0 &&
         layout_grid_values(release->lo, release->hi, release->grid) <= LAYOUT_MAX_GRID)))
    return fail_impossible(publication);
  publication->definition.aggregate = aggregate;
  publication->definition.mechanism = mechanism;
  const struct procedure *procedure = aggregate->procedure;
  int has_details = procedure && procedure->describe;
  if (has_details) {
    sqlite3_free(publication->definition.details);
    publication->definition.details = procedure->describe(publication);
  }
  if (has_details && !publication->definition.details)
    return error_set(ledger_error(ledger),
                     "release '%s' has an impossible model (restore the ledger from a backup)",
                     name_of(publication));
  publication->definition.household = (int)(ledger_wider_factor(ledger) * HOUSEHOLDS_PARTS);
  return describe_cross_keys(publication) && describe_periods(publication, keys) &&
         (definition_layout(publication, keys, ledger_adjacency(ledger) == LEDGER_REPLACE) ||
          error_set_memory(ledger_error(ledger)));
}

/* Returns the number of public keys of a stored release. */
static int keys_of(const struct ledger_release *release) {
  const struct aggregate *aggregate = aggregate_find(release->kind);
  const struct mechanism *mechanism = mechanism_of(release);
  int width = mechanism && aggregate->family->has_keys
                  ? layout_width(mechanism_family(mechanism, aggregate->family), release->size, 0)
                  : 1;
  return release->keys && !release->ways && width ? release->dimension / width : 0;
}

int definition_describe_stored(struct publication *publication) {
  return definition_describe(publication, keys_of(&publication->definition.release));
}

/* Returns whether the release adds up the states of shards. */
static int is_merged(const struct ledger_release *release) {
  return release->statement && strcmp(release->statement, "dp_merge") == 0;
}

/* Releases that cannot protect a wider unit (sums/layout.h), and what to use instead. The first
** reason that holds is given. */
static const char *wider_refusal(const struct definition *definition) {
  const struct ledger_release *release = &definition->release;
  const struct noise_law *noise = definition->mechanism->noise;
  if (is_merged(release)) return "shards (keep all tables in one database)";
  if (release->periods) return "a series (make a release for each period)";
  if (release->max_groups) return "private keys (list public \"keys\")";
  if (definition->mechanism == &leaf_draw_mechanism)
    return "a drawn quantile (ask for \"mechanism\":\"gaussian\")";
  if (release->diagnose && noise && noise->in_sum_norm)
    return "diagnose under Laplace noise (leave it out, or ask for \"mechanism\":\"gaussian\")";
  if (noise && noise->in_sum_norm)
    return "Laplace noise on several numbers (ask for \"mechanism\":\"gaussian\", or make a "
           "release "
           "for each number)";
  return "this kind (count the rows of each category with 'group_count' and public \"keys\")";
}

int definition_check_wider(const struct publication *publication) {
  const struct definition *definition = &publication->definition;
  int protects =
      definition->layout.wide && !definition->periods && !is_merged(&definition->release);
  if (!definition->household || protects) return 1;
  /* Advice: What such a release moves when a whole household is absent has no useful bound. Ask
     for what the brackets name, or keep a ledger without a wider unit for it. */
  return error_set(
      &publication->session->error,
      "the ledger protects a wider unit (dp_within), which cannot be protected with %s",
      wider_refusal(definition));
}

/* Makes the layouts of a series. Its rows are added up in one cell for each period and group, and
** the book of allowances bounds the vectors of all periods together. */
static void make_series(struct definition *definition, int replace) {
  int count = definition->periods->count;
  series_layout(&definition->layout, &definition->series, replace, definition->mechanism->noise);
  definition->row_question = definition->contribution;
  definition->row_question.keys = definition->row_question.diagnose = 0;
  definition->row_layout = definition->layout;
  definition->row_layout.diagnoses = 0;
  definition->row_layout.cells *= count;
  definition->row_layout.coordinates = 1; /* no total is made */
}

int definition_layout(struct publication *publication, int keys, int replace) {
  const struct ledger_release *release = &publication->definition.release;
  const struct aggregate *aggregate = publication->definition.aggregate;
  const struct noise_law *noise = publication->definition.mechanism->noise;
  publication->definition.by_unit = 1;
  publication->definition.contribution =
      (struct contribution){mechanism_family(publication->definition.mechanism, aggregate->family),
                            aggregate->counts,
                            release->clip,
                            release->lo,
                            release->hi,
                            release->size,
                            release->max_groups > 0 ? KEYS_PRIVATE : keys,
                            release->max_groups,
                            release->grid > 0 ? release->grid : 0,
                            release->diagnose,
                            noise && noise->in_sum_norm,
                            0,
                            publication->definition.household};
  publication->definition.quantile_count =
      release->quantiles ? vector_text_list(release->quantiles, publication->definition.quantiles,
                                            LAYOUT_MAX_QUANTILES)
                         : 0;
  struct cross_keys *cross_keys = publication->definition.cross_keys;
  if (cross_keys) {
    assert(noise); /* the kinds of cross tables are sums */
    if (!cross_keys_measure(cross_keys, noise->in_sum_norm)) return 0;
    publication->definition.contribution.keys = 0;
    publication->definition.contribution.ways = &cross_keys->ways[noise->in_sum_norm];
  }
  if (aggregate->procedure && aggregate->procedure->contribute)
    aggregate->procedure->contribute(&publication->definition,
                                     &publication->definition.contribution);
  layout_make(&publication->definition.layout, &publication->definition.contribution, 1, replace);
  if (publication->definition.periods) make_series(&publication->definition, replace);
  return 1;
}

struct ledger_grid definition_grid(const struct publication *publication) {
  const struct layout *shape = &publication->definition.layout;
  if (publication->definition.periods)
    return (struct ledger_grid){0, 0, shape->coordinates + shape->diagnoses, 0};
  return (struct ledger_grid){0, shape->cells, shape->width, shape->diagnoses};
}

size_t period_size(const struct definition *definition) {
  return (size_t)definition->layout.coordinates + (size_t)definition->layout.diagnoses;
}

size_t grid_size(const struct ledger_grid *grid) {
  return (size_t)grid->cells * (size_t)grid->components + (size_t)grid->extra;
}

void grid_clear(struct ledger_grid *grid) {
  for (int i = 0; grid->keys && i < grid->cells; i++) sqlite3_free(grid->keys[i]);
  sqlite3_free(grid->keys);
  *grid = (struct ledger_grid){0, 0, 0, 0};
}

int definition_path(struct publication *publication, struct ledger_path *path) {
  int read = ledger_path_read(publication->session->ledger, &publication->definition.release,
                              definition_grid(publication), path);
  grid_clear(&publication->grid);
  publication->grid = path->grid;
  path->grid.keys = 0;
  return read;
}

const struct ledger_point *path_point(const struct ledger_path *path, const char *tier) {
  for (int i = 0; i < path->count; i++)
    if (strcmp(path->points[i].tier, tier) == 0) return &path->points[i];
  return 0;
}

struct view definition_view(const struct publication *publication) {
  const struct ledger_release *release = &publication->definition.release;
  int is_one = !publication->definition.contribution.family->is_linear; /* see estimate.c */
  return (struct view){publication->definition.mechanism->noise,
                       release->granularity,
                       release->shift,
                       publication->position.clock,
                       publication->definition.aggregate->is_ou,
                       release->centre,
                       release->radius,
                       release->theta,
                       release->rho,
                       is_one ? 1 : publication->definition.layout.coordinates,
                       0};
}

struct reading definition_reading(const struct publication *publication, double delta,
                                  double confidence) {
  int keyed = publication->definition.contribution.keys != 0;
  return (struct reading){.question = &publication->definition.contribution,
                          .shape = &publication->definition.layout,
                          .view = definition_view(publication),
                          .cells = keyed ? publication->grid.cells
                                         : publication->definition.layout.cells,
                          .root = publication->definition.aggregate->root,
                          .confidence = confidence,
                          .quantiles = publication->definition.quantiles,
                          .quantile_count = publication->definition.quantile_count,
                          .selection_delta = delta,
                          .details = publication->definition.details};
}

struct leaf_draw definition_leaf_draw(const struct publication *publication) {
  const struct definition *definition = &publication->definition;
  double q = definition->quantiles[0];
  if (definition->quantile_count != 1 || !(q >= 0 && q <= 1)) q = 0.5;
  return (struct leaf_draw){&definition->contribution, &definition->layout, q,
                            ledger_adjacency(publication->session->ledger) == LEDGER_REPLACE};
}

int definition_same_lattice(const struct publication *publication) {
  const struct ledger_release *release = &publication->definition.release;
  const struct layout *shape = &publication->definition.layout;
  if (publication->definition.mechanism == &leaf_draw_mechanism) {
    struct leaf_draw draw = definition_leaf_draw(publication);
    return release->granularity == shape->fine_exponent && release->shift == 0 &&
           release->sensitivity == leaf_draw_range(&draw);
  }
  if (!publication->definition.mechanism->noise)
    return release->granularity == 0 && release->sensitivity == 1 &&
           release->shift == -shape->fine_exponent;
  struct terms terms = {
      .shape = shape, .details = publication->definition.details, .shift = release->shift};
  uint64_t sensitivity =
      publication->definition.mechanism->sensitivity(publication->definition.mechanism, &terms);
  return release->granularity - release->shift == shape->fine_exponent &&
         release->sensitivity >= sensitivity;
}

double definition_shrink(const struct publication *publication) {
  struct view view = definition_view(publication);
  if (!publication->definition.contribution.family->is_linear) {
    /* The shrink factor depends on the number of rows, and must be positive even for 2^62 rows. */
    const struct contribution *question = &publication->definition.contribution;
    double half = question->high / 2 - question->low / 2;
    double least =
        ldexp(question->family->has_vector ? question->clip : half, view.granularity - 31);
    int has_shrink = view.is_ou && !isnan(view.theta);
    return !has_shrink || estimate_shrink(&view, least * least) >= DBL_MIN ? 1 : 0;
  }
  return estimate_shrink(&view, estimate_variance(&view));
}

const char *definition_period_key(int period, char key[PERIOD_KEY]) {
  sqlite3_snprintf(PERIOD_KEY, key, "%04d", period + 1);
  return key;
}

int definition_same_keys(const struct publication *publication) {
  const struct ledger_grid *grid = &publication->grid;
  const char *keys = publication->definition.release.keys;
  if (publication->definition.periods) { /* its points have the periods that were appended */
    char key[PERIOD_KEY];
    int same = grid->cells == publication->definition.release.appended;
    for (int i = 0; i < grid->cells && same; i++)
      same = strcmp(grid->keys[i], definition_period_key(i, key)) == 0;
    return same;
  }
  if (!keys || publication->definition.release.ways) return 1;
  char *stored = json_texts(grid->keys, grid->cells);
  int same = stored && strcmp(stored, keys) == 0;
  sqlite3_free(stored);
  return same;
}

int definition_store(struct publication *publication) {
  struct ledger_release *release = &publication->definition.release;
  struct ledger *ledger = publication->session->ledger;
  if (!release->id && publication->definition.cross_keys) {
    int in_sum_norm = publication->definition.mechanism->noise->in_sum_norm;
    release->multipliers = cross_keys_multipliers(publication->definition.cross_keys, in_sum_norm);
    if (!release->multipliers) return error_set_memory(ledger_error(ledger));
  }
  return release->id || ledger_release_insert(ledger, release);
}

/* ---- opening and clearing -------------------------------------------------------------------- */

int publication_open(struct publication *publication, const char *tier, const char *name) {
  struct ledger *ledger = publication->session->ledger;
  struct position *position = &publication->position;
  position->at = -1;
  if (!ledger_tiers(ledger, &position->tiers, &position->count)) return 0;
  position->at = ledger_tier_find(ledger, position->tiers, position->count, tier);
  const struct ledger_release *release = &publication->definition.release;
  return position->at >= 0 && name &&
         ledger_release_find(ledger, name, &publication->definition.release) &&
         (release->periods || ledger_trust_release(ledger, release->id));
}

const struct ledger_tier *publication_tier(const struct publication *publication) {
  return &publication->position.tiers[publication->position.at];
}

void numbers_clear(struct numbers *numbers) {
  for (int i = 0; i < numbers->made_count; i++) sqlite3_free(numbers->made[i]);
  sqlite3_free(numbers->made);
  sqlite3_free(numbers->estimates);
  sqlite3_free(numbers->sent);
}

static void append_free(struct append *append) {
  for (int i = 0; append->tiers && i < append->path.count; i++) {
    sqlite3_free(append->tiers[i].values);
    numbers_clear(&append->tiers[i].numbers);
  }
  sqlite3_free(append->tiers);
  ledger_path_free(&append->path);
  allowances_close(append->book);
  free(append->sums);
  sqlite3_free(append);
}

void publish_clear(struct publication *publication) {
  struct definition *definition = &publication->definition;
  cost_room_clear(&publication->cost.room);
  grid_clear(&publication->grid);
  sqlite3_free(publication->answer.json);
  for (int i = 0; i < publication->drawn_count; i++) sqlite3_free(publication->drawn[i].values);
  sqlite3_free(publication->drawn);
  ledger_tiers_free(publication->position.tiers, publication->position.count);
  ledger_release_clear(&definition->release);
  if (definition->cross_keys) cross_keys_release(definition->cross_keys);
  if (definition->periods) periods_release(definition->periods);
  if (definition->series.periods) series_free(&definition->series);
  if (definition->groups) json_list_free(definition->groups);
  if (publication->append) append_free(publication->append);
  sqlite3_free(definition->details);
  *publication = (struct publication){0};
}

/* ---- errors ---------------------------------------------------------------------------------- */

int no_random_bytes(const struct publication *publication) {
  /* Advice: Early after boot, or in a sandbox that forbids randomness. */
  return error_set(&publication->session->error, "the system gave no random bytes");
}

int lost_values(const struct publication *publication) {
  return error_set(&publication->session->error, "release '%s' has lost its values",
                   publication->definition.release.name);
}
