/*
** path.c: see procedure.h.
**
** The place of a tier on the path of an existing release decides how the tier gets a point:
**
**     inner                                                              outer
**       |  refine: one fresh draw    | a point:    |  diffuse: noise on     |
**       |  per tier, reads data      | publish it  |  the outermost point   |
**
** A tier that was created later, between two points of the path, gets a point from the conditional
** distribution given its two neighbours. The draw does not read the data. Independent noise on the
** inner neighbour would be a second draw from the same point, and the two draws together would
** reveal more than either draw alone.
**
** Both neighbours must have been drawn outward. If the inner neighbour comes from a refinement, it
** is an average that was rounded to the lattice. The joint distribution of the neighbours then
** differs from that of discrete Gaussian steps: the ratio of the two probabilities of an outcome
** can be as large as 5/3, whatever the variances are. No bound on the cost of a point between such
** neighbours is proved, so the tier is refused.
** Tests: tests/release/test_refine.py, tests/release/test_between.py
*/
#include "release/procedure.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "mechanism/mechanism.h"
#include "noise/lattice.h"
#include "release/definition.h"
#include "release/numbers.h"
#include "release/publication.h"
#include "release/until.h"

SQLITE_EXTENSION_INIT3

/* ---- the cost at a tier ---------------------------------------------------------------------- */

static double tier_rate(const struct publication *publication, int tier) {
  return publication->definition.release.weight * publication->position.tiers[tier].rate;
}

/*
** Returns the terms of the release at the publication's tier, in the form that a mechanism reads.
*/
static struct terms terms_of(const struct publication *publication) {
  const struct ledger_release *release = &publication->definition.release;
  /* With the factor, ten shares of 0.1 add up to at most 1 despite rounding. */
  double share = release->key_share * (1 - 0x1p-40);
  return (struct terms){.shape = &publication->definition.layout,
                        .details = publication->definition.details,
                        .shift = release->shift,
                        .sensitivity = release->sensitivity,
                        .rate = tier_rate(publication, publication->position.at),
                        .delta =
                            isnan(share) ? 0 : share * publication_tier(publication)->delta_keys};
}

/* Returns the cost of a point with this clock. The publication owns the parameters of the cost. */
static struct cost point_cost(struct publication *publication, uint64_t clock) {
  const struct mechanism *mechanism = publication->definition.mechanism;
  struct terms terms = terms_of(publication);
  struct cost cost;
  if (!mechanism->cost(mechanism, &terms, clock, &publication->cost.room, &cost))
    error_set_memory(&publication->session->error);
  return cost;
}

/*
** Checks that a series ends while the budgets that pay for it last. Otherwise the people of the
** next budget's period would be in the series, which that budget does not pay for.
*/
static int ends_in_time(const struct publication *publication) {
  struct ledger *ledger = publication->session->ledger;
  const struct periods *periods = publication->definition.periods;
  char day[PERIOD_DAY] = "", each[PERIOD_DAY], *tier = 0, *end = 0;
  double rate = publication_tier(publication)->rate;
  int dated = 1;
  for (int i = 0; i < periods->count && dated; i++) {
    dated = periods_last_day(periods, i, each); /* a list may have any order */
    if (dated && strcmp(each, day) > 0) memcpy(day, each, sizeof day);
  }
  if (ledger_budget_ends(ledger, rate, dated ? day : 0, &tier, &end)) {
    if (dated) {
      /* Advice: A person who comes in the next period must not be in a series that this period's
         budget does not pay for. */
      error_set(ledger_error(ledger),
                "'%s' ends on %s, but the budget of tier '%s' ends on %s (let the series end with "
                "the budget, and declare another one for the next)",
                publication->definition.release.name, day, tier, end);
    } else {
      error_set(ledger_error(ledger),
                "the budget of tier '%s' ends on %s, so the periods of a series must be dates "
                "(such as 2026-01)",
                tier, end);
    }
  }
  sqlite3_free(tier);
  sqlite3_free(end);
  return !error_is_set(ledger_error(ledger));
}

static int charge(struct publication *publication, uint64_t clock) {
  struct ledger *ledger = publication->session->ledger;
  const char *tier = publication_tier(publication)->name;
  const struct mechanism *mechanism = publication->definition.mechanism;
  struct terms terms = terms_of(publication);
  /* Every clock is chosen so that its point costs at most the rate of the tier. */
  if (!(mechanism->rate(mechanism, &terms, clock) <= terms.rate * (1 + 0x1p-40)))
    return error_set(ledger_error(ledger),
                     "the noise would cost more than tier '%s' has for a release", tier);
  struct cost cost = point_cost(publication, clock);
  publication->position.clock = clock;
  if (!(definition_shrink(publication) >= DBL_MIN))
    return error_set(ledger_error(ledger),
                     "the noise at tier '%s' would shrink the value to nothing but its centre "
                     "(give a larger radius, or rho)",
                     tier);
  if (publication->definition.release.max_groups && !(cost.delta > 0))
    return error_set(ledger_error(ledger),
                     "tier '%s' has no delta_keys for selecting keys privately (list public "
                     "\"keys\", or create a tier with delta_keys)",
                     tier);
  return ledger_charge(ledger, &publication->definition.release, publication->position.tiers,
                       publication->position.count, publication->position.at, &cost) &&
         (!publication->definition.periods || ends_in_time(publication));
}

/* ---- points ---------------------------------------------------------------------------------- */

static int tier_index(const struct publication *publication, const char *name) {
  int i = 0;
  while (i < publication->position.count && strcmp(publication->position.tiers[i].name, name) != 0)
    i++;
  return i;
}

/* Allocates room for two points. When out of memory, sets the ledger's error and returns null. */
static int64_t *two_points(const struct publication *publication) {
  size_t count = 2 * grid_size(&publication->grid) + 1;
  int64_t *values = sqlite3_malloc64(sizeof *values * count);
  if (!values) error_set_memory(&publication->session->error);
  return values;
}

static int store_point(struct publication *publication, int tier, uint64_t clock, int64_t *values) {
  struct ledger_point point = {publication->position.tiers[tier].name, clock, values};
  return ledger_path_insert(publication->session->ledger, &publication->definition.release,
                            &publication->grid, &point);
}

/* Adds a point to the publication. path_keep() stores the point later, unless it is stored. */
static int note_point(struct publication *publication, int tier, int is_stored, uint64_t clock,
                      const int64_t *values) {
  size_t dimension = grid_size(&publication->grid);
  int count = publication->drawn_count;
  struct drawn *grown =
      sqlite3_realloc64(publication->drawn, sizeof *grown * (sqlite3_uint64)(count + 1));
  if (!grown) return error_set_memory(&publication->session->error);
  publication->drawn = grown;
  int64_t *copy = sqlite3_malloc64(sizeof *copy * (dimension + 1));
  if (!copy) return error_set_memory(&publication->session->error);
  if (dimension) memcpy(copy, values, sizeof *copy * dimension);
  grown[publication->drawn_count++] = (struct drawn){tier, is_stored, clock, copy};
  return 1;
}

/*
** Stores the publication of a point at the publication's tier, and the values of the point. If the
** release stopped early, gives back what the tiers paid for more.
*/
static int store_values(struct publication *publication, uint64_t clock, const int64_t *values) {
  const struct ledger_release *release = &publication->definition.release;
  const struct position *position = &publication->position;
  struct cost cost = point_cost(publication, clock);
  publication->position.clock = clock;
  return values_store(publication, &cost, values) &&
         (!until_is_given(release) ||
          ledger_return(publication->session->ledger, release, position->tiers, position->count,
                        position->at, release->slack));
}

/* Calls diffusible() of the kind, if it has this function. */
static int is_diffusible(const struct publication *publication, int from, uint64_t clock) {
  const struct procedure *procedure = publication->definition.aggregate->procedure;
  return !procedure || !procedure->diffusible || procedure->diffusible(publication, from, clock);
}

/* ---- walking outward ------------------------------------------------------------------------- */

static int too_far(struct publication *publication, int tier) {
  return error_set(&publication->session->error,
                   "tier '%s' has a rate %g too far from that of release '%s' for its lattice "
                   "(make a release of its own)",
                   publication->position.tiers[tier].name, publication->position.tiers[tier].rate,
                   publication->definition.release.name);
}

/*
** Returns the clock of a tier's point outside a point of clock `inner`, or 0 if it would be too
** large. A release that stopped early may have a point that is noisier than the tier needs. The
** tier then gets the same point.
*/
static uint64_t outward_clock(const struct publication *publication, int tier, uint64_t inner) {
  const struct ledger_release *release = &publication->definition.release;
  const struct noise_law *noise = publication->definition.mechanism->noise;
  double rate = tier_rate(publication, tier);
  if (until_is_given(release) && noise->clock(release->sensitivity, rate) <= inner) return inner;
  return noise->outward(release->sensitivity, rate, inner);
}

/*
** Computes the clocks of all tiers from tier `from`, whose clock is clocks[0], outward to the
** publication's tier. Adds the lattice slack (math/gaussian.h) of these steps to the slack of the
** release.
*/
static int plan_outward(struct publication *publication, int from, uint64_t *clocks) {
  struct ledger_release *release = &publication->definition.release;
  const struct noise_law *noise = publication->definition.mechanism->noise;
  int steps = publication->position.at - from;
  for (int i = 1; i <= steps; i++) {
    clocks[i] = outward_clock(publication, from + i, clocks[i - 1]);
    if (!clocks[i]) return too_far(publication, from + i);
    if (!is_diffusible(publication, from, clocks[i])) return 0;
    if (clocks[i] > clocks[i - 1])
      release->slack +=
          noise->step_slack(clocks[i - 1], clocks[i], publication->definition.layout.touched);
  }
  return 1;
}

/*
** Tier `from` has the outermost point. Draws a point for every tier outside tier `from`, up to the
** publication's tier. Computes all clocks first, so that the charge comes before the draws.
*/
static int walk_outward(struct publication *publication, const struct ledger_point *outermost,
                        int from) {
  struct ledger *ledger = publication->session->ledger;
  struct ledger_release *release = &publication->definition.release;
  const struct noise_law *noise = publication->definition.mechanism->noise;
  int steps = publication->position.at - from;
  size_t dimension = grid_size(&publication->grid);
  uint64_t *clocks = sqlite3_malloc64(sizeof *clocks * (sqlite3_uint64)(steps + 1));
  int64_t *values = two_points(publication);
  int going = (clocks && values) || error_set_memory(ledger_error(ledger));
  if (going) {
    clocks[0] = outermost->clock;
    if (dimension) memcpy(values, outermost->values, sizeof *values * dimension);
  }
  going = going && plan_outward(publication, from, clocks) &&
          ledger_release_slack(ledger, release->id, release->slack) &&
          charge(publication, clocks[steps]);
  for (int i = 1; i <= steps && going; i++) {
    int64_t *next = values + dimension;
    if (clocks[i] > clocks[i - 1]) {
      /* Advice: Early after boot, or in a sandbox that forbids randomness. */
      if (!release_diffuse(noise, values, dimension, clocks[i - 1], clocks[i], next))
        going = error_set(ledger_error(ledger), "the system gave no random bytes");
      memcpy(values, next, sizeof *values * dimension);
    }
    going = going && note_point(publication, from + i, 0, clocks[i], values);
  }
  sqlite3_free(clocks);
  sqlite3_free(values);
  return going;
}

/* ---- a point between two others -------------------------------------------------------------- */

/* Returns whether no kind of noise can refine releases of this kind. */
static int never_refines(const struct publication *publication) {
  const struct procedure *procedure = publication->definition.aggregate->procedure;
  return procedure && procedure->never_refines;
}

/*
** Returns whether a point is the first point or was drawn outward, or as if it were (until.c).
** Other points come from a refinement. They cost more than the first charge, and their clocks are
** below that of the first point by more than one part in 2^31 (lattice_refinement()).
*/
static int is_drawn_outward(struct publication *publication, const struct ledger_point *point) {
  const struct ledger_release *release = &publication->definition.release;
  const struct noise_law *noise = publication->definition.mechanism->noise;
  double first, rate = noise->rate(release->sensitivity, point->clock);
  if (never_refines(publication) || publication->definition.periods || release->max_groups ||
      !noise->refines)
    return 1;
  return ledger_first_rate(publication->session->ledger, release->id, &first) &&
         rate <= first * (1 + 0x1p-40);
}

/*
** Computes the clock of the publication's tier, which lies between two points. Checks that a new
** point may be drawn between the two points.
*/
static int plan_between(struct publication *publication, const struct ledger_point *inner,
                        const struct ledger_point *outer, struct gap *gap) {
  struct ledger *ledger = publication->session->ledger;
  const struct ledger_release *release = &publication->definition.release;
  const struct noise_law *noise = publication->definition.mechanism->noise;
  const char *tier = publication_tier(publication)->name;
  double rate = tier_rate(publication, publication->position.at);
  *gap = (struct gap){inner->clock, noise->outward(release->sensitivity, rate, inner->clock),
                      outer->clock};
  if (!is_drawn_outward(publication, inner)) {
    if (error_is_set(ledger_error(ledger))) return 0;
    return error_set(
        ledger_error(ledger),
        "tier '%s' was created after release '%s' was refined, outside a refined point "
        "of its path (make a release of its own)",
        tier, release->name);
  }
  if (!gap->clock || gap->clock > gap->outer || gap->outer - gap->clock < noise->least_between)
    return error_set(ledger_error(ledger),
                     "tier '%s' has a rate %g too near that of a tier beside it for a point of "
                     "release '%s' (make a release of its own)",
                     tier, publication_tier(publication)->rate, release->name);
  return 1;
}

/*
** Draws the point of the publication's tier between two neighbours. The slack of this draw is added
** to the slack of the release. The tiers that see the new point but not the inner neighbour pay for
** this slack, because ledger_charge() charges the release's slack to each tier whose paid rate
** grows.
*/
static int fill_between(struct publication *publication, const struct ledger_point *inner,
                        const struct ledger_point *outer) {
  struct ledger *ledger = publication->session->ledger;
  struct ledger_release *release = &publication->definition.release;
  const struct noise_law *noise = publication->definition.mechanism->noise;
  int at = publication->position.at;
  struct gap gap;
  if (outward_clock(publication, at, inner->clock) == inner->clock)
    return charge(publication, inner->clock) &&
           note_point(publication, at, 0, inner->clock, inner->values);
  if (!plan_between(publication, inner, outer, &gap) ||
      !is_diffusible(publication, tier_index(publication, inner->tier), gap.clock))
    return 0;
  double slack = noise->between_slack(&gap, publication->definition.layout.touched);
  if (slack > 0) release->slack = nextafter(release->slack + slack, INFINITY);
  int64_t *values = two_points(publication);
  int going = values && ledger_release_slack(ledger, release->id, release->slack) &&
              charge(publication, gap.clock);
  if (going &&
      !noise->between(&gap, inner->values, outer->values, values, grid_size(&publication->grid)))
    going = error_set(ledger_error(ledger), "the system gave no random bytes");
  going = going && note_point(publication, at, 0, gap.clock, values);
  sqlite3_free(values);
  return going;
}

/* ---- walking inward -------------------------------------------------------------------------- */

/*
** One step of a refinement. `clock` is the clock of the new point. release_refine() makes a new
** draw from the data and combines it with the next outer point. `fresh` is the clock of this draw,
** or 0 if none is made.
*/
struct inward_step {
  uint64_t clock, fresh;
};

/*
** Plans the steps from the innermost point (tier `from`, clock `outer`) to the publication's tier.
** Step i ends at tier from - 1 - i. The plan depends on public parameters alone, so the charge and
** the draw use the same plan.
*/
static int plan_inward(struct publication *publication, uint64_t outer, int from,
                       struct inward_step **steps) {
  int count = from - publication->position.at;
  *steps = sqlite3_malloc64(sizeof **steps * (sqlite3_uint64)count);
  if (!*steps) return error_set_memory(&publication->session->error);
  for (int i = 0; i < count; i++) {
    int tier = from - 1 - i;
    struct inward_step *step = &(*steps)[i];
    step->clock = path_inward(publication->definition.release.sensitivity,
                              tier_rate(publication, tier), outer, &step->fresh);
    if (!step->clock) return too_far(publication, tier);
    outer = step->clock;
  }
  return 1;
}

/* Charges the whole walk of a refinement with the option until, to its ceiling. */
static int begin_walk(struct publication *publication, uint64_t from) {
  struct ledger *ledger = publication->session->ledger;
  struct ledger_release *release = &publication->definition.release;
  struct rung *rungs;
  int count, going = until_ladder(publication, from, &rungs, &count);
  if (going) release->slack += until_slack(publication, from, rungs, count);
  going = going && ledger_release_slack(ledger, release->id, release->slack) &&
          charge(publication, rungs[count - 1].clock) &&
          ledger_release_state(ledger, release->id, "released", "charged");
  sqlite3_free(rungs);
  publication->position.refining = 1;
  return going;
}

static int note_drawn(struct publication *publication, int tier, uint64_t clock,
                      const int64_t *values) {
  return note_point(publication, tier, 0, clock, values);
}

/*
** Walks the ladder of a release with the option until, from the point `outer` (null: a new release)
** until its figures are accurate enough.
*/
static int walk_until(struct publication *publication, const struct ledger_point *outer,
                      const int64_t *totals) {
  struct ledger_release *release = &publication->definition.release;
  size_t dimension = grid_size(&publication->grid);
  uint64_t from = outer ? outer->clock : 0;
  struct rung *rungs = 0;
  int64_t *values = two_points(publication);
  int count = 0, made = 0, met = 0;
  int going = values && until_ladder(publication, from, &rungs, &count);
  if (going && outer) memcpy(values, outer->values, sizeof *values * dimension);
  going =
      going && until_walk(publication, totals, from, rungs, count, values, note_drawn, &made, &met);
  if (going) {
    release->slack -= until_slack(publication, from, rungs, count);
    release->slack = fmax(0, release->slack) + until_slack(publication, from, rungs, made);
    release->stop = met ? publication->position.clock : 0;
  }
  sqlite3_free(rungs);
  sqlite3_free(values);
  return going;
}

/* Charges a refinement and marks the release as 'charged' until the refinement is stored. */
static int begin_refining(struct publication *publication, const struct ledger_point *innermost,
                          int from) {
  struct ledger *ledger = publication->session->ledger;
  struct ledger_release *release = &publication->definition.release;
  struct inward_step *steps;
  int count = from - publication->position.at;
  if (until_is_given(release)) return begin_walk(publication, innermost->clock);
  int going = plan_inward(publication, innermost->clock, from, &steps);
  for (int i = 0; i < count && going; i++) {
    if (steps[i].fresh)
      release->slack += publication->definition.mechanism->noise->draw_slack(
          steps[i].fresh, publication->definition.layout.touched);
  }
  going = going && ledger_release_slack(ledger, release->id, release->slack) &&
          charge(publication, steps[count - 1].clock) &&
          ledger_release_state(ledger, release->id, "released", "charged");
  sqlite3_free(steps);
  publication->position.refining = 1;
  return going;
}

/* Draws a point for every tier inside the innermost point, down to the publication's tier. */
static int walk_inward(struct publication *publication, const int64_t *totals) {
  struct ledger *ledger = publication->session->ledger;
  struct ledger_path path;
  struct inward_step *steps = 0;
  int64_t *values = 0;
  uint64_t outer = 0;
  int from = 0;
  size_t dimension = grid_size(&publication->grid);
  int going = ledger_path_read(ledger, &publication->definition.release,
                               publication->grid, &path);
  if (going) {
    const struct ledger_point *innermost = &path.points[0];
    if (until_is_given(&publication->definition.release)) {
      going = walk_until(publication, innermost, totals);
      ledger_path_free(&path);
      return going;
    }
    from = tier_index(publication, innermost->tier);
    outer = innermost->clock;
    values = two_points(publication);
    going = values && plan_inward(publication, outer, from, &steps);
    if (going) memcpy(values, innermost->values, sizeof *values * dimension);
  }
  int count = from - publication->position.at;
  for (int i = 0; i < count && going; i++) {
    int64_t *next = values + dimension;
    if (!release_refine(values, totals, dimension, steps[i].clock, outer, steps[i].fresh, next))
      going = error_set(ledger_error(ledger), "the system gave no random bytes");
    memcpy(values, next, sizeof *values * dimension);
    outer = steps[i].clock;
    going = going && note_point(publication, from - 1 - i, 0, outer, values);
  }
  ledger_path_free(&path);
  sqlite3_free(steps);
  sqlite3_free(values);
  return going;
}

/* ---- an existing release --------------------------------------------------------------------- */

/* Charges for the publication, and draws its point unless the path has it. */
static int draw_existing(struct publication *publication, const struct ledger_path *path,
                         int may_refine) {
  struct ledger *ledger = publication->session->ledger;
  const char *tier = publication_tier(publication)->name;
  const char *name = publication->definition.release.name;
  const struct ledger_point *innermost = &path->points[0];
  const struct ledger_point *outermost = &path->points[path->count - 1];
  int first = tier_index(publication, innermost->tier);
  int last = tier_index(publication, outermost->tier);
  int inside = 0; /* the number of points inside the tier */
  for (int i = 0; i < path->count; i++) {
    const struct ledger_point *here = &path->points[i];
    if (strcmp(here->tier, tier) == 0)
      return charge(publication, here->clock) &&
             note_point(publication, publication->position.at, 1, here->clock, here->values);
    inside += tier_index(publication, here->tier) < publication->position.at;
  }
  if (publication->position.at > last) return walk_outward(publication, outermost, last);
  if (publication->position.at > first)
    return fill_between(publication, &path->points[inside - 1], &path->points[inside]);
  if (never_refines(publication))
    return error_set(ledger_error(ledger),
                     "release '%s' is a model and cannot be refined (make a release of its own at "
                     "tier '%s')",
                     name, tier);
  if (publication->definition.periods)
    return error_set(ledger_error(ledger),
                     "release '%s' is a series and cannot be refined (declare a series of its own "
                     "at tier '%s')",
                     name, tier);
  if (publication->definition.release.max_groups)
    return error_set(ledger_error(ledger),
                     "release '%s' has private keys and cannot be refined (make a release of its "
                     "own at tier '%s')",
                     name, tier);
  if (!publication->definition.mechanism->noise->refines)
    return error_set(ledger_error(ledger),
                     "release '%s' has %s noise and cannot be refined (make a release of its own "
                     "at tier '%s')",
                     name, publication->definition.mechanism->noise->name, tier);
  if (may_refine) return begin_refining(publication, innermost, first);
  return error_set(ledger_error(ledger),
                   "release '%s' is not at tier '%s' or inside it (ask for it again, with the "
                   "same rows and the option \"refine\":true, to pay the difference)",
                   name, tier);
}

int path_publish(struct publication *publication, const struct ledger_path *path, int may_refine) {
  return draw_existing(publication, path, may_refine) &&
         (publication->position.refining || publication->draws_only || path_keep(publication));
}

int path_publish_drawn(struct publication *publication) {
  const struct ledger_release *release = &publication->definition.release;
  return ledger_release_slack(publication->session->ledger, release->id, release->slack) &&
         charge(publication, publication->position.clock) && path_keep(publication);
}

/* ---- a new release --------------------------------------------------------------------------- */

int path_charge(struct publication *publication) {
  const struct definition *definition = &publication->definition;
  struct ledger_release *release = &publication->definition.release;
  struct design design;
  struct terms terms = terms_of(publication);
  uint64_t clock = definition->mechanism->design(definition->mechanism, &terms, &design);
  if (clock < LATTICE_MIN_VARIANCE || clock >= LATTICE_VARIANCE_END)
    return too_far(publication, publication->position.at);
  if (release->id &&
      (release->granularity != design.granularity || release->sensitivity != design.sensitivity))
    return error_set(&publication->session->error,
                     "release '%s' was charged at another tier, or is not finished there",
                     release->name);
  release->dimension = definition->layout.coordinates;
  release->granularity = design.granularity;
  release->shift = design.shift;
  release->sensitivity = design.sensitivity;
  release->slack = definition->mechanism->noise->draw_slack(clock, definition->layout.touched);
  if (until_is_given(release)) {
    struct rung *rungs;
    int count;
    if (!until_ladder(publication, 0, &rungs, &count)) return 0;
    release->slack = until_slack(publication, 0, rungs, count);
    sqlite3_free(rungs);
  }
  return definition_store(publication) && charge(publication, clock);
}

int path_prepay(struct publication *publication, int tier) {
  struct ledger_release *release = &publication->definition.release;
  struct position before = publication->position;
  double slack = release->slack;
  uint64_t *clocks = sqlite3_malloc64(sizeof *clocks * (sqlite3_uint64)(before.count + 1));
  if (!clocks) return error_set_memory(&publication->session->error);
  clocks[0] = before.clock;
  publication->position.at = tier;
  int charged =
      plan_outward(publication, before.at, clocks) && charge(publication, clocks[tier - before.at]);
  sqlite3_free(clocks);
  publication->position = before;
  release->slack = slack;
  return charged;
}

/* ---- the draw -------------------------------------------------------------------------------- */

int path_draw(struct publication *publication, const int64_t *totals) {
  if (publication->position.refining) return walk_inward(publication, totals);
  if (until_is_given(&publication->definition.release) && !publication->planned)
    return walk_until(publication, 0, totals);
  const struct mechanism *mechanism = publication->definition.mechanism;
  struct terms terms = terms_of(publication);
  uint64_t clock = mechanism->draw_clock(&terms, publication->position.clock);
  int64_t *values = two_points(publication);
  if (!values) return 0;
  int drawn =
      release_draw(mechanism->noise, totals, grid_size(&publication->grid), clock, values) ||
      error_set(&publication->session->error, "the system gave no random bytes");
  drawn = drawn &&
          note_point(publication, publication->position.at, 0, publication->position.clock, values);
  sqlite3_free(values);
  return drawn;
}

/* Stores where the walk of a release with the option until has stopped. */
static int keep_stop(struct publication *publication) {
  struct ledger *ledger = publication->session->ledger;
  const struct ledger_release *release = &publication->definition.release;
  if (!until_is_given(release)) return 1;
  return ledger_release_slack(ledger, release->id, release->slack) &&
         (!release->stop || ledger_release_stop(ledger, release->id, release->stop));
}

int path_keep(struct publication *publication) {
  int kept = 1;
  for (int i = 0; i < publication->drawn_count && kept; i++) {
    const struct drawn *point = &publication->drawn[i];
    int is_last = i + 1 == publication->drawn_count;
    kept =
        (point->is_stored || store_point(publication, point->tier, point->clock, point->values)) &&
        (!is_last ||
         (keep_stop(publication) && store_values(publication, point->clock, point->values)));
  }
  return kept;
}

int path_declare(struct publication *publication) {
  uint64_t clock = publication->position.clock;
  int64_t nothing = 0;
  return store_point(publication, publication->position.at, clock, &nothing) &&
         store_values(publication, clock, &nothing);
}

const struct procedure path_procedure = {
    .charge = path_charge, .draw = path_draw, .keep = path_keep};
