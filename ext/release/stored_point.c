/* stored_point.c: numbers computed again from a stored point: for dp_interval() at another
** confidence, for dp_parts, and for dp_verify(), which compares every stored value with them.
** Tests: tests/ledger/test_edits.py, tests/mechanism/test_intervals.py */
#include <math.h>
#include <string.h>

#include "mechanism/mechanism.h"
#include "release/procedure.h"

SQLITE_EXTENSION_INIT3

/* ---- numbers of a stored point --------------------------------------------------------------- */

/* Computes numbers of the release from its point at the publication's tier. The caller calls
** numbers_clear() and ledger_path_free(), to which the keys belong. */
static int read_point(struct publication *publication, double confidence, enum inside inside,
                      struct numbers *numbers, struct ledger_path *path) {
  struct ledger *ledger = publication->session->ledger;
  struct ledger_release *release = &publication->definition.release;
  const char *tier = publication_tier(publication)->name;
  const struct ledger_point *point = 0;
  int done = 0;
  *numbers = (struct numbers){0};
  *path = (struct ledger_path){0};
  if (!definition_describe(publication, definition_keys(release))) return 0;
  if (ledger_path_read(ledger, release, definition_grid(publication), path)) {
    point = path_point(path, tier);
    publication->grid = path->grid;
  }
  if (point) {
    double delta = numbers_selection_delta(publication);
    publication->position.clock = point->clock;
    done = inside ? numbers_inside(publication, delta, confidence, inside, point->values, numbers)
                  : numbers_read(publication, delta, confidence, point->values, numbers) &&
                        rooms_resend(publication, tier, numbers);
  }
  publication->grid = (struct ledger_grid){0, 0, 0, 0}; /* the path owns the grid */
  return done;
}

int interval_read(struct publication *publication, const char *key, int component,
                  double confidence, double *low, double *high) {
  struct numbers numbers;
  struct ledger_path path;
  int found = 0;
  read_point(publication, confidence, INSIDE_NOTHING, &numbers, &path);
  for (int i = 0; i < numbers.count && !found; i++) {
    struct ledger_value value = numbers_value(&numbers, &numbers.estimates[i]);
    found = strcmp(value.key, key) == 0 && value.component == component;
    *low = value.low;
    *high = value.high;
  }
  numbers_clear(&numbers);
  ledger_path_free(&path);
  return found ||
         error_set(ledger_error(publication->session->ledger), "release '%s' has lost its values",
                   publication->definition.release.name);
}

int inside_read(struct publication *publication, enum inside inside,
                int (*take)(void *context, const struct ledger_value *value), void *context) {
  struct numbers numbers;
  struct ledger_path path;
  int taken = read_point(publication, NUMBERS_CONFIDENCE, inside, &numbers, &path) ||
              error_set(ledger_error(publication->session->ledger),
                        "release '%s' has lost its values", publication->definition.release.name);
  for (int i = 0; i < numbers.count && taken; i++) {
    struct ledger_value value = numbers_value(&numbers, &numbers.estimates[i]);
    taken = take(context, &value);
  }
  numbers_clear(&numbers);
  ledger_path_free(&path);
  return taken;
}

int interval_read_span(struct publication *publication, const char *key, double confidence,
                       double *low, double *high) {
  struct ledger *ledger = publication->session->ledger;
  struct definition *definition = &publication->definition;
  const char *tier = publication_tier(publication)->name;
  struct numbers numbers = {0};
  struct span span;
  int64_t *values = 0;
  char *group = 0;
  int found = 0;
  if (ledger_publication_find(ledger, definition->release.id, tier, &publication->position.clock) &&
      series_points(publication, &values) &&
      periods_read_key(definition->periods, ledger_json(ledger), key, definition->groups != 0,
                       &span, &group) &&
      span.last < publication->grid.cells) {
    ledger_rollback(ledger);
    if (ledger_begin_computing(ledger))
      numbers_spans(publication, span, 1, 0, confidence, values, &numbers);
  }
  for (int i = 0; i < numbers.count && !found; i++) {
    found = !definition->groups || strcmp(definition->groups[i], group) == 0;
    *low = numbers.estimates[i].low;
    *high = numbers.estimates[i].high;
  }
  numbers_clear(&numbers);
  sqlite3_free(values);
  sqlite3_free(group);
  return found ||
         error_set(ledger_error(ledger),
                   "release '%s' has no value for this key at tier '%s' (dp_value lists its keys)",
                   definition->release.name, tier);
}

/* ---- verification ---------------------------------------------------------------------------- */

static int close_to(double a, double b, double scale) {
  return a == b || fabs(a - b) <= 1e-9 * scale || (isnan(a) && isnan(b));
}

/* The state of compare_value(), which compares the stored values with the numbers of the point. */
struct comparison {
  struct numbers numbers;
  int at, same;
};

static int compare_value(void *context, const struct ledger_value *stored) {
  struct comparison *comparison = context;
  if (comparison->at == comparison->numbers.count) {
    comparison->same = 0; /* the ledger has one value too many */
  } else {
    struct ledger_value value =
        numbers_value(&comparison->numbers, &comparison->numbers.estimates[comparison->at++]);
    double noise = value.stddev;
    comparison->same =
        strcmp(stored->key, value.key) == 0 && stored->component == value.component &&
        close_to(stored->value, value.value, noise) &&
        close_to(stored->stddev, value.stddev, noise) && close_to(stored->low, value.low, noise) &&
        close_to(stored->high, value.high, noise);
  }
  return comparison->same;
}

/* Compares the stored results of the option diagnose with those that the point gives. */
static int same_clipping(const struct ledger_clipping *stored,
                         const struct ledger_clipping *clipping) {
  return close_to(stored->clipped, clipping->clipped, clipping->stddev) &&
         close_to(stored->unclipped, clipping->unclipped, clipping->stddev) &&
         close_to(stored->stddev, clipping->stddev, clipping->stddev) &&
         close_to(stored->cut, clipping->cut, 1) &&
         close_to(stored->cut_low, clipping->cut_low, 1) &&
         close_to(stored->cut_high, clipping->cut_high, 1) &&
         close_to(stored->within, clipping->within, 1) &&
         close_to(stored->wider_clipped, clipping->wider_clipped, clipping->stddev) &&
         close_to(stored->wider_unclipped, clipping->wider_unclipped, clipping->stddev);
}

static void compare_values(struct publication *publication,
                           const struct ledger_publication *published,
                           const struct ledger_point *point) {
  const char *name = publication->definition.release.name, *tier = published->tier;
  struct ledger *ledger = publication->session->ledger;
  struct comparison comparison = {{0}, 0, 1};
  publication->position.clock = point->clock;
  if (numbers_read(publication, published->delta, NUMBERS_CONFIDENCE, point->values,
                   &comparison.numbers) &&
      rooms_resend(publication, tier, &comparison.numbers)) {
    ledger_values(ledger, publication->definition.release.id, tier, compare_value, &comparison);
    if (!close_to(published->shrink, comparison.numbers.shrink, comparison.numbers.shrink) ||
        published->centre != publication->definition.release.centre)
      ledger_discrepancy(ledger,
                         "dp_publication: '%s' at tier '%s' has another shrink or centre than its "
                         "release",
                         name, tier);
    if (!comparison.same || comparison.at != comparison.numbers.count)
      ledger_discrepancy(ledger, "dp_value: '%s' at tier '%s' is not what its point makes it", name,
                         tier);
    int is_private = publication->definition.release.max_groups > 0;
    double threshold =
        is_private ? numbers_threshold(publication, published->delta) : published->threshold;
    if (is_private ? !close_to(published->threshold, threshold, threshold) : !isnan(threshold))
      ledger_discrepancy(ledger,
                         "dp_publication: '%s' at tier '%s' has another threshold than its delta "
                         "gives",
                         name, tier);
    if (!same_clipping(&published->clipping, &comparison.numbers.clipping))
      ledger_discrepancy(ledger,
                         "dp_publication: '%s' at tier '%s' has other clipped units than its point",
                         name, tier);
  }
  numbers_clear(&comparison.numbers);
}

static void check_path(struct publication *publication,
                       const struct ledger_publication *published) {
  struct ledger_path path;
  struct ledger_release *release = &publication->definition.release;
  struct ledger *ledger = publication->session->ledger;
  int (*paid)(struct publication *, uint64_t, const double *) =
      procedure_of(&publication->definition)->paid;
  if (ledger_path_read(ledger, release, definition_grid(publication), &path)) {
    const struct ledger_point *point = path_point(&path, published->tier);
    publication->grid = path.grid;
    if (!definition_same_keys(publication)) {
      ledger_discrepancy(ledger, "dp_path: '%s' has other keys than its release", release->name);
    } else if (!point || point->clock != published->clock) {
      ledger_discrepancy(ledger,
                         "dp_publication: '%s' at tier '%s' does not show the point of its path",
                         release->name, published->tier);
    } else if (paid && !paid(publication, point->clock, published->curve)) {
      ledger_discrepancy(
          ledger, "dp_publication: '%s' at tier '%s' has a curve below what its public rows hide",
          release->name, published->tier);
    } else {
      compare_values(publication, published, point);
    }
    publication->grid = (struct ledger_grid){0, 0, 0, 0}; /* the path owns the grid */
  }
  ledger_path_free(&path);
}

static int verify_publication(void *context, const struct ledger_publication *published) {
  struct session *session = context;
  struct publication publication = {.session = session};
  struct ledger_release *release = &publication.definition.release;
  struct ledger *ledger = session->ledger;
  if (!ledger_release_get(ledger, published->release_id, release)) {
    ledger_discrepancy(ledger, "dp_publication: release %lld at tier '%s' is missing",
                       (long long)published->release_id, published->tier);
  } else if (aggregate_find(release->kind) && /* unknown kinds are skipped */
             definition_describe(&publication, definition_keys(release))) {
    const struct procedure *procedure = procedure_of(&publication.definition);
    struct position *position = &publication.position;
    if (!procedure->verify) {
      check_path(&publication, published);
    } else if (ledger_tiers(ledger, &position->tiers, &position->count)) {
      procedure->verify(&publication, published);
    }
  }
  publish_clear(&publication);
  return !error_is_set(ledger_error(ledger));
}

char *session_verify(struct session *session) {
  struct ledger *ledger = session->ledger;
  struct error *error = ledger_error(ledger);
  if (ledger_verify(ledger, mechanism_describe) &&
      ledger_publications(ledger, verify_publication, session))
    ledger_verify_seals(ledger);
  char *found = ledger_verdict(ledger);
  if (!ledger_audience(ledger) || error_is_memory(error) ||
      strcmp(error_text(error), "interrupted") == 0 || (found && strcmp(found, "ok") == 0))
    return found;
  sqlite3_free(found);
  if (error_is_set(error)) {
    error_clear(error);
    error_set(error, "the ledger cannot be verified (dp_verify() shows the owner why)");
    return 0;
  }
  found = sqlite3_mprintf("the ledger does not verify (dp_verify() shows the owner where)");
  if (!found) error_set_memory(error);
  return found;
}

/* ---- descriptions for the ledger ------------------------------------------------------------- */

int mechanism_describe(int number, struct ledger_mechanism *described) {
  const struct mechanism *mechanism = mechanism_at(number);
  if (!mechanism) return 0;
  *described = (struct ledger_mechanism){
      .name = mechanism->name,
      .theorem = mechanism->theorem,
      .shrinks = mechanism->shrinks,
      .has_rate = mechanism->noise && mechanism->noise->has_rate && !mechanism->hides,
      .may_have_rate = mechanism == &leaf_draw_mechanism,
      .rdp = mechanism->noise ? mechanism->noise->rdp : 0,
      .hides = mechanism->hides};
  return 1;
}
