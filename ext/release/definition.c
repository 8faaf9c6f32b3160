/* definition.c: see definition.h. */
#include "release/definition.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "release/parameters.h"
#include "release/procedure.h"
#include "release/session.h"

SQLITE_EXTENSION_INIT3

_Static_assert(LEDGER_DIAGNOSES == DIAGNOSES, "the ledger stores the counts of the layout");

/* Makes the details of a kind that has its own. Returns 0 if the release is impossible. */
static int describe_details(struct publication *publication, const struct aggregate *aggregate) {
  if (!aggregate->procedure || !aggregate->procedure->describe) return 1;
  sqlite3_free(publication->definition.details);
  publication->definition.details = aggregate->procedure->describe(publication);
  return publication->definition.details != 0;
}

/*
** Reads the programme of a stored release of cross tables, or takes the one that the request has
** made. Returns 1, or 0 with the ledger's error set.
*/
static int describe_programme(struct publication *publication) {
  const struct ledger_release *release = &publication->definition.release;
  struct json *json = ledger_json(publication->session->ledger);
  const struct noise_law *noise = publication->definition.mechanism->noise;
  if (!release->ways) return 1;
  if (!publication->definition.programme && release->keys)
    publication->definition.programme = programme_open(json, release->keys, release->ways, 0);
  if (!publication->definition.programme) return 0;
  return !release->multipliers || programme_restore(publication->definition.programme, json,
                                                    noise->in_sum_norm, release->multipliers);
}

int definition_describe(struct publication *publication, int keys) {
  const struct ledger_release *release = &publication->definition.release;
  struct ledger *ledger = publication->session->ledger;
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
  if ((release->diagnose && !(aggregate->takes & 1u << P_DIAGNOSE)) || release->max_groups < 0 ||
      release->max_groups > LAYOUT_MAX_GROUPS || release->size < 0 ||
      release->size > LAYOUT_MAX_BINS || release->grid < 0 ||
      (release->grid > 0 &&
       !(release->size > 0 &&
         layout_grid_values(release->lo, release->hi, release->grid) <= LAYOUT_MAX_GRID)))
    return error_set(ledger_error(ledger),
                     "release '%s' has impossible parameters (restore the ledger from a backup)",
                     release->name ? release->name : "");
  publication->definition.aggregate = aggregate;
  publication->definition.mechanism = mechanism;
  if (!describe_details(publication, aggregate))
    return error_set(ledger_error(ledger),
                     "release '%s' has an impossible model (restore the ledger from a backup)",
                     release->name ? release->name : "");
  return describe_programme(publication) &&
         (definition_layout(publication, keys, ledger_adjacency(ledger) == LEDGER_REPLACE) ||
          error_set_memory(ledger_error(ledger)));
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
                            0};
  struct programme *programme = publication->definition.programme;
  if (programme) {
    assert(noise); /* the kinds of cross tables are sums */
    if (!programme_measure(programme, noise->in_sum_norm)) return 0;
    publication->definition.contribution.keys = 0;
    publication->definition.contribution.ways = programme_ways(programme, noise->in_sum_norm);
  }
  if (aggregate->procedure && aggregate->procedure->contribute)
    aggregate->procedure->contribute(&publication->definition,
                                     &publication->definition.contribution);
  layout_make(&publication->definition.layout, &publication->definition.contribution, 1, replace);
  return 1;
}

int definition_keys(const struct ledger_release *release) {
  const struct aggregate *aggregate = aggregate_find(release->kind);
  const struct mechanism *mechanism = aggregate ? mechanism_find(aggregate, release->mechanism) : 0;
  int width = mechanism && aggregate->family->has_keys
                  ? layout_width(mechanism_family(mechanism, aggregate->family), release->size, 0)
                  : 1;
  return release->keys && !release->ways && width ? release->dimension / width : 0;
}

struct ledger_grid definition_grid(const struct publication *publication) {
  const struct layout *shape = &publication->definition.layout;
  return (struct ledger_grid){0, shape->cells, shape->width, shape->diagnoses};
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

int definition_same_lattice(const struct publication *publication) {
  const struct ledger_release *release = &publication->definition.release;
  const struct layout *shape = &publication->definition.layout;
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

int definition_same_keys(const struct publication *publication) {
  const struct ledger_grid *grid = &publication->grid;
  const char *keys = publication->definition.release.keys;
  if (!keys || publication->definition.release.ways) return 1;
  char *stored = keys_json(grid->keys, grid->cells);
  int same = stored && strcmp(stored, keys) == 0;
  sqlite3_free(stored);
  return same;
}

int definition_store(struct publication *publication) {
  struct ledger_release *release = &publication->definition.release;
  struct ledger *ledger = publication->session->ledger;
  if (!release->id && publication->definition.programme) {
    int in_sum_norm = publication->definition.mechanism->noise->in_sum_norm;
    release->multipliers = programme_multipliers(publication->definition.programme, in_sum_norm);
    if (!release->multipliers) return error_set_memory(ledger_error(ledger));
  }
  return release->id || ledger_release_insert(ledger, release);
}
