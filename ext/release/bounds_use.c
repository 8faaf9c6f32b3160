/* bounds_use.c: see bounds_use.h. Tests: tests/mechanism/test_bounds.py */
#include "release/bounds_use.h"

#include <math.h>

#include "release/session.h"

SQLITE_EXTENSION_INIT3

/*
** A parameter that is compared with the ends of published bounds. `found` is 1 if an end has the
** same absolute value.
*/
struct search {
  double parameter;
  int found;
};

static int compare_end(void *context, const struct ledger_value *end) {
  struct search *search = context;
  search->found |= fabs(end->value) == fabs(search->parameter);
  return 1;
}

/* Returns whether an end that was published at this tier has the parameter's absolute value. */
static int is_end(const struct publication *bounds, int tier, double parameter) {
  struct ledger *ledger = bounds->session->ledger;
  struct search search = {parameter, 0};
  ledger_values(ledger, bounds->definition.release.id, bounds->position.tiers[tier].name,
                compare_end, &search);
  return search.found;
}

/* Returns the outermost tier at which the request is published, or -1 after an error. */
static int outermost_of(const struct publication *bounds, const struct request *request) {
  struct ledger *ledger = bounds->session->ledger;
  const struct position *position = &bounds->position;
  int most = ledger_tier_find(ledger, position->tiers, position->count, request->tier);
  for (int i = 0; most >= 0 && request->outward && request->outward[i]; i++) {
    int tier = ledger_tier_find(ledger, position->tiers, position->count, request->outward[i]);
    if (tier < 0) return -1;
    if (tier > most) most = tier;
  }
  return most;
}

static int check_parameter(const struct publication *bounds, const struct request *request,
                           int outermost, const char *name, double value) {
  const struct position *position = &bounds->position;
  int inner = -1, outer = 0;
  if (isnan(value) || value == 0) return 1;
  for (int i = 0; i < position->count; i++) {
    if (!is_end(bounds, i, value)) continue;
    if (i >= outermost) outer = 1;
    if (i < outermost && inner < 0) inner = i;
  }
  if (inner < 0 || outer) return 1;
  return error_set(ledger_error(bounds->session->ledger),
                   "%s is from the bounds '%s' at tier '%s', but '%s' is published at tier '%s' "
                   "(dp_diffuse the bounds to '%s' and use what they are there)",
                   name, bounds->definition.release.name, position->tiers[inner].name,
                   request->name ? request->name : "the release", position->tiers[outermost].name,
                   position->tiers[outermost].name);
}

int bounds_use_check(const struct publication *bounds, const struct request *request) {
  const struct aggregate *aggregate = bounds->definition.aggregate;
  if (!aggregate || !aggregate->family->by_exponent || !bounds->answered) return 1;
  int outermost = outermost_of(bounds, request);
  double clip = request->clip == request->aggregate->default_clip ? NAN : request->clip;
  return outermost >= 0 && check_parameter(bounds, request, outermost, "clip", clip) &&
         check_parameter(bounds, request, outermost, "lo", request->lo) &&
         check_parameter(bounds, request, outermost, "hi", request->hi);
}
