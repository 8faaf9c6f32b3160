/* verify_points.c: what dp_verify() checks of releases: every stored value follows from the point
** of its publication, and every publication from its mechanism.
** Tests: tests/ledger/test_edits.py */
#include "release/internal.h"

#include <math.h>
#include <string.h>

#include "mechanism/mechanism.h"

SQLITE_EXTENSION_INIT3

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
  if (numbers_read(publication, published->delta, NUMBERS_CONFIDENCE, INSIDE_NOTHING, point->values,
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
  const char *name = publication->definition.release.name, *tier = published->tier;
  struct ledger *ledger = publication->session->ledger;
  const struct procedure *procedure = procedure_of(&publication->definition);
  if (definition_path(publication, &path)) {
    const struct ledger_point *point = path_point(&path, tier);
    if (!definition_same_keys(publication)) {
      ledger_discrepancy(ledger, "dp_path: '%s' has other keys than its release", name);
    } else if (!point || point->clock != published->clock) {
      ledger_discrepancy(ledger,
                         "dp_publication: '%s' at tier '%s' does not show the point of its path",
                         name, tier);
    } else if (procedure->paid && !procedure->paid(publication, point->clock, published->curve)) {
      ledger_discrepancy(
          ledger, "dp_publication: '%s' at tier '%s' has a curve below what its public rows hide",
          name, tier);
    } else {
      compare_values(publication, published, point);
    }
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
             definition_describe_stored(&publication)) {
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
