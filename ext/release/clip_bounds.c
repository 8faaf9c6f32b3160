/* clip_bounds.c: what a clip would cut off, by the noisy counts of a release of bounds, and where
** published bounds may be used. The counts are published already, so this is post-processing, and
** costs nothing.
** Tests: tests/functions/test_plan_bounds.py, tests/mechanism/test_bounds.py */
#include "release/internal.h"

#include <math.h>
#include <string.h>

#include "mechanism/mechanism.h"

SQLITE_EXTENSION_INIT3

double bounds_size(int place) {
  return layout_exponent_high(LAYOUT_EXPONENTS + place);
}

/* Adds up the counts of both signs, where they show units, and finds the largest size. */
static void read_point(struct bounds_counts *counts, struct publication *publication,
                       const int64_t *values) {
  struct view view = definition_view(publication);
  double unit = publication->definition.layout.count_factor;
  double threshold = numbers_threshold(publication, 0);
  for (int i = 0; i <= LAYOUT_EXPONENTS; i++) {
    double above = ldexp((double)values[LAYOUT_EXPONENTS + i], view.granularity) / unit;
    double below = ldexp((double)values[LAYOUT_EXPONENTS - i], view.granularity) / unit;
    if (below > threshold && i) counts->signs = 2;
    if (above > threshold || (below > threshold && i)) counts->last = i;
  }
  for (int i = 0; i <= counts->last; i++) {
    counts->list[i] = ldexp((double)values[LAYOUT_EXPONENTS + i], view.granularity) / unit;
    if (counts->signs == 2 && i)
      counts->list[i] += ldexp((double)values[LAYOUT_EXPONENTS - i], view.granularity) / unit;
  }
  counts->half_width = sqrt(counts->signs) *
                       mixed_half_width(view.noise, view_noise(&view) / unit, NUMBERS_CONFIDENCE);
}

int bounds_counts_read(struct bounds_counts *counts, struct session *session, const char *name,
                       const char *tier) {
  struct publication publication = {.session = session};
  struct position *position = &publication.position;
  struct ledger *ledger = session->ledger;
  struct ledger_release *release = &publication.definition.release;
  struct ledger_path path = {0};
  int is_read = 0;
  *counts = (struct bounds_counts){.signs = 1};
  if (!publication_open(&publication, tier, name)) {
    ledger_release_unknown(ledger, name);
  } else if (strcmp(release->kind, "bounds") != 0) {
    error_set(&session->error, "release '%s' is no 'bounds' (bounds is for one)", name);
  } else if (definition_describe(&publication, 0) &&
             ledger_publication_find(ledger, release->id, tier, &position->clock) &&
             definition_path(&publication, &path)) {
    const struct ledger_point *point = path_point(&path, tier);
    if (point) read_point(counts, &publication, point->values);
    is_read = point != 0;
  }
  ledger_path_free(&path);
  publish_clear(&publication);
  return is_read || error_set(&session->error,
                              "the bounds '%s' are not published at tier '%s' (dp_diffuse them "
                              "first)",
                              name, tier);
}

/* A unit whose value v is above the clip c loses v - c. If f is the true share, the sum over all
** units of (v - c)+ - f v is 0. Takes each v between its powers of two as it makes this sum least
** (`is_most` 0) or largest, and returns the sum by the noisy counts, moved by the noise of its
** terms: not above 0, or not below 0, if f is possible. */
static double sum_at(const struct bounds_counts *counts, double clip, double f, int is_most) {
  double sum = 0, squares = 0;
  for (int i = 1; i <= counts->last; i++) {
    double from = bounds_size(i - 1), to = bounds_size(i);
    /* The term falls up to the clip and then grows. */
    double at_from = fmax(from - clip, 0) - f * from, at_to = fmax(to - clip, 0) - f * to;
    double term = is_most ? fmax(at_from, at_to) : -f * fmax(fmin(clip, to), from);
    if (!is_most && from > clip) term = at_from;
    sum += counts->list[i] * term;
    squares += term * term;
  }
  double noise = counts->half_width * sqrt(squares);
  return is_most ? sum + noise : sum - noise;
}

/* Returns the end of the possible shares. The sum falls as the share grows. */
static double end_of(const struct bounds_counts *counts, double clip, int is_most) {
  double low = 0, high = 1;
  for (int i = 0; i < 50; i++) {
    double middle = (low + high) / 2, sum = sum_at(counts, clip, middle, is_most);
    if (is_most ? sum >= 0 : sum > 0) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return is_most ? high : low;
}

struct bounds_cut bounds_cut(const struct bounds_counts *counts, double clip) {
  if (!counts->last) return (struct bounds_cut){0, 1};
  if (clip >= bounds_size(counts->last)) return (struct bounds_cut){0, 0};
  return (struct bounds_cut){end_of(counts, clip, 0), end_of(counts, clip, 1)};
}

/* ---- where published bounds may be used ------------------------------------------------------ */

/* A parameter that is compared with the ends of published bounds. `found` is 1 if an end has the
** same absolute value. */
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
