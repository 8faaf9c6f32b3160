/* default_mechanism.c: see default_mechanism.h. Tests: tests/functions/test_mechanism_choice.py */
#include "release/default_mechanism.h"

#include <math.h>
#include <string.h>

#include "ledger/accountant.h"
#include "mechanism/mechanism.h"
#include "release/definition.h"
#include "release/leaf_release.h"
#include "release/parameter_checks.h"
#include "release/planned_width.h"
#include "release/session.h"

SQLITE_EXTENSION_INIT3

/* Returns the aggregate's first mechanism whose noise costs a curve (math/cost.h), or null. */
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

/*
** Returns the half-width that the request would have with a mechanism, in rows, or NaN after
** setting the ledger's error.
*/
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

/*
** Returns whether the request gets the draw of a leaf instead of the default with noise: it does if
** no tier lies outside its own, to which the number could not be diffused, if the draw is more
** precise, and if the request asks for nothing that only noise has. A release that exists keeps its
** mechanism.
*/
static int gets_draw(const struct request *request, const struct publication *publication,
                     int found, const struct mechanism *noisy) {
  const struct position *position = &publication->position;
  struct ledger_release asked = request_release(request);
  double rate = request->weight * position->tiers[position->at].rate;
  if (!leaf_release_suits(request->aggregate, &asked)) return 0;
  if (found)
    return strcmp(publication->definition.release.mechanism, leaf_draw_mechanism.name) == 0;
  if (position->at + 1 < position->count || request->refine ||
      !(rate >= DESIGN_MIN_RATE && rate <= fmin(noisy->noise->most, leaf_draw_mechanism.most)))
    return 0;
  return width_with(request, publication, &leaf_draw_mechanism) <=
         width_with(request, publication, noisy);
}

int request_default_mechanism(struct request *request, const struct publication *publication,
                              int found) {
  struct error *error = &publication->session->error;
  const struct ledger_tier *tier = publication_tier(publication);
  /* The default among the mechanisms with noise; null if the tier covers none of them. */
  const struct mechanism *mechanism = tier->accountant->covers_rates
                                          ? mechanism_find(request->aggregate, 0)
                                          : curve_mechanism(request->aggregate);
  if (request->mechanism || request->has_states || !mechanism || !mechanism->noise ||
      request->aggregate->family->statistic == STATISTIC_MODEL)
    return 1;
  if (gets_draw(request, publication, found, mechanism)) mechanism = &leaf_draw_mechanism;
  if (error_is_set(error)) return 0;
  if (request->has_default_leaves) request->size = request_leaves(request, mechanism);
  if (mechanism == mechanism_find(request->aggregate, 0)) return 1;
  request->mechanism = sqlite3_mprintf("%s", mechanism->name);
  return request->mechanism || error_set_memory(error);
}

int tier_covers_all_noise(const struct ledger_tier *tier) {
  return tier->accountant->covers_rates && tier->accountant->covers_curves;
}
