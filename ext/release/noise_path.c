/* noise_path.c: releases that can have a point (totals plus noise) at each tier. These points form
** a path: each point is noisier than the next point inward.
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
** Tests: tests/release/test_refine.py, tests/release/test_between.py, tests/release/test_until.py,
** tests/release/test_until_walks.py, tests/math/test_stopping.py */
#include "release/internal.h"

#include <float.h>
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ledger/ledger.h"
#include "mechanism/mechanism.h"
#include "noise/noise.h"

SQLITE_EXTENSION_INIT3

/* ---- the cost at a tier ---------------------------------------------------------------------- */

static double tier_rate(const struct publication *publication, int tier) {
  return publication->definition.release.weight * publication->position.tiers[tier].rate;
}

/* Returns the terms of the release at the publication's tier, in the form that a mechanism
** reads. */
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

/* Checks that a series ends while the budgets that pay for it last. Otherwise the people of the
** next budget's period would be in the series, which that budget does not pay for. */
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

static int store_point(struct publication *publication, int tier, uint64_t clock, int64_t *values) {
  struct ledger_point point = {publication->position.tiers[tier].name, clock, values};
  return ledger_path_insert(publication->session->ledger, &publication->definition.release,
                            &publication->grid, &point);
}

/* Adds a point to the publication, which path_keep() stores later unless it is stored. Returns the
** place of its coordinates, which the caller sets, or null with the session's error set. */
static int64_t *add_point(struct publication *publication, int tier, int is_stored,
                          uint64_t clock) {
  size_t room = grid_size(&publication->grid) + 1;
  int count = publication->drawn_count;
  struct drawn *grown =
      sqlite3_realloc64(publication->drawn, sizeof *grown * (sqlite3_uint64)(count + 1));
  if (grown) publication->drawn = grown;
  int64_t *values = grown ? sqlite3_malloc64(sizeof *values * room) : 0;
  if (values) {
    grown[publication->drawn_count++] = (struct drawn){tier, is_stored, clock, values};
  } else {
    error_set_memory(&publication->session->error);
  }
  return values;
}

/* Adds a point with these coordinates. */
static int note_point(struct publication *publication, int tier, int is_stored, uint64_t clock,
                      const int64_t *values) {
  size_t dimension = grid_size(&publication->grid);
  int64_t *copy = add_point(publication, tier, is_stored, clock);
  if (copy && dimension) memcpy(copy, values, sizeof *copy * dimension);
  return copy != 0;
}

/* Stores the publication of a point at the publication's tier, and the values of the point. If the
** release stopped early, gives back what the tiers paid for more. */
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

/* Returns the clock of a tier's point outside a point of clock `inner`, or 0 if it would be too
** large. A release that stopped early may have a point that is noisier than the tier needs. The
** tier then gets the same point. */
static uint64_t outward_clock(const struct publication *publication, int tier, uint64_t inner) {
  const struct ledger_release *release = &publication->definition.release;
  const struct noise_law *noise = publication->definition.mechanism->noise;
  double rate = tier_rate(publication, tier);
  uint64_t clock = noise->clock(release->sensitivity, rate);
  if (until_is_given(release) && clock && clock <= inner) return inner;
  return noise->outward(release->sensitivity, rate, inner);
}

/* Computes the clocks of all tiers from tier `from`, whose clock is clocks[0], outward to the
** publication's tier. Adds the lattice slack (math/math.h) of these steps to the slack of the
** release. */
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

/* Tier `from` has the outermost point. Draws a point for every tier outside tier `from`, up to the
** publication's tier. Computes all clocks first, so that the charge comes before the draws. */
static int walk_outward(struct publication *publication, const struct ledger_point *outermost,
                        int from) {
  struct ledger *ledger = publication->session->ledger;
  struct ledger_release *release = &publication->definition.release;
  const struct noise_law *noise = publication->definition.mechanism->noise;
  int steps = publication->position.at - from;
  size_t dimension = grid_size(&publication->grid);
  const int64_t *values = outermost->values;
  uint64_t *clocks = sqlite3_malloc64(sizeof *clocks * (sqlite3_uint64)(steps + 1));
  if (!clocks) return error_set_memory(ledger_error(ledger));
  clocks[0] = outermost->clock;
  int going = plan_outward(publication, from, clocks) &&
              ledger_release_slack(ledger, release->id, release->slack) &&
              charge(publication, clocks[steps]);
  for (int i = 1; i <= steps && going; i++) {
    if (clocks[i] == clocks[i - 1]) {
      going = note_point(publication, from + i, 0, clocks[i], values);
    } else {
      int64_t *next = add_point(publication, from + i, 0, clocks[i]);
      going = next && (release_diffuse(noise, values, dimension, clocks[i - 1], clocks[i], next) ||
                       no_random_bytes(publication));
    }
    if (going) values = publication->drawn[publication->drawn_count - 1].values;
  }
  sqlite3_free(clocks);
  return going;
}

/* ---- a point between two others -------------------------------------------------------------- */

/* Returns whether no kind of noise can refine releases of this kind. */
static int never_refines(const struct publication *publication) {
  const struct procedure *procedure = publication->definition.aggregate->procedure;
  return procedure && procedure->never_refines;
}

/* Returns whether a point is the first point or was drawn outward, or as if it were (below). Other
** points come from a refinement. They cost more than the first charge, and their clocks are below
** that of the first point by more than one part in 2^31 (lattice_refinement()). */
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

/* Computes the clock of the publication's tier, which lies between two points. Checks that a new
** point may be drawn between the two points. */
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

/* Draws the point of the publication's tier between two neighbours. The slack of this draw is added
** to the slack of the release. The tiers that see the new point but not the inner neighbour pay for
** this slack, because ledger_charge() charges the release's slack to each tier whose paid rate
** grows. */
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
  if (!ledger_release_slack(ledger, release->id, release->slack) || !charge(publication, gap.clock))
    return 0;
  int64_t *values = add_point(publication, at, 0, gap.clock);
  return values && (noise->between(&gap, inner->values, outer->values, values,
                                   grid_size(&publication->grid)) ||
                    no_random_bytes(publication));
}

/* ---- the ladder of a walk inward ------------------------------------------------------------- */

/* Releases that stop as soon as they are accurate enough (the option until) begin far out and walk
** inward, rung by rung. They stop when the 95% interval of every figure has a half-width of at most
** until * max(|figure|, least), or at the clock that the tier's rate allows, the ceiling. The
** ceiling is charged before a row is read. What the steps did not use is returned when the values
** are stored (ledger_return()).
**
** The ladder. V_K is the clock of the ceiling. Its rungs are V_K, then V <- V + floor(V/4) outward
** while that is at most 4096 V_K and below 2^55, and the clocks of the tiers outside the asked one,
** where these see the path. A rung within 1/64 of a tier's, or of the point where a refinement
** begins, is left out, and a tier there has that point.
**
** One step. At the rung V_(j-1) the point is y_(j-1). The next point y_j is drawn from its
** distribution given the exact totals X and y_(j-1) on a path that was drawn outward from X, which
** is gaussian_bridge_draw() with the totals as the inner point: with a = V_j, b = V_(j-1) - V_j and
** v = ab/(a + b), a discrete Gaussian of variance v around (b X + a y_(j-1))/(a + b). So the points
** of a walk have the joint distribution of a path that was drawn outward, and a later tier between
** two of them gets a point in the same way as on every other path.
**
** Cost. Neighbours move the centre by b/(a + b) times their distance, at most s. Up to a factor of
** exp(+-O(exp(-2 pi^2 v))) from the normalizing sums, the divergence of order alpha is at most
**     alpha (s b/(a + b))^2 / (2v) = alpha s^2/2 (1/V_j - 1/V_(j-1)).
** The steps 0 to j add up to alpha s^2/(2 V_j), the cost of one release at V_j: the search is free.
** v is at least 2^33, so the factor is far inside the margin of 1/12 in the charge (charge.c). The
** lattice slack of a step is that of a draw of variance v: the bound of gaussian_lattice_slack()
** holds for a discrete Gaussian around any real number.
**
** A refinement walks inward from a point that is stored already. Its steps average a fresh draw of
** variance W = V_j V_(j-1)/(V_(j-1) - V_j) with that point, as every refinement does, because the
** lattice may be coarse there, and these draws have less slack. They cost the same.
**
** Stopping. Whether a step is made is a function of the earlier points, which every tier that pays
** sees. Each step has a fixed cost, and all steps together cost no more than the ceiling, which was
** charged before. This is adaptive composition inside a filter: Renyi (Feldman and Zrnic 2021, at a
** fixed order), zCDP (Whitehouse and others 2023) and Gaussian (Smith and Thakurta 2022). A return
** is made after the last step, and its size is a function of the points, so what the filter admits
** later is chosen from what has been seen. An outer tier sees the path at its own rung or at the
** stop, whichever is noisier. Whether the walk passed its rung is decided by earlier points.
**
** Bias. Noise that enlarges a figure stops its walk earlier. Of simulated counts, 94.7% of the
** intervals hold the truth at until = 0.25, and the mean error is 0.12 standard deviations; at 0.5
** they are 93.1% and 0.27. Hence the limit of 0.25. */

/* A walk inward is planned as a ladder: its rungs in the order of the walk. The last one has the
** publication's tier. Rungs follow from public numbers, so the charge and the draw use the same
** plan. */
struct rung {
  uint64_t clock; /* of the point */
  uint64_t drawn; /* the variance of the draw that makes it; 0: it is the point before */
  int tier;       /* the point is stored for this tier; -1: for none */
};

#define FARTHEST    4096                /* the first rung is at most so many times the ceiling */
#define END         ((uint64_t)1 << 55) /* rungs are below this clock */
#define APART       64                  /* rungs are apart by at least 1/64 of the outer one */
#define LADDER_MOST 64                  /* more rungs than log(4096)/log(5/4) */

int until_is_given(const struct ledger_release *release) {
  return release->until > 0;
}

/* Returns whether a clock is too near to a rung outside or inside it. */
static int is_near(uint64_t clock, uint64_t rung) {
  uint64_t distance = clock < rung ? rung - clock : clock - rung;
  return distance < rung / APART + (rung % APART != 0);
}

/* The outermost rung comes first. */
static int outward_first(const void *a, const void *b) {
  const struct rung *one = a, *other = b;
  return (one->clock < other->clock) - (one->clock > other->clock);
}

static uint64_t clock_of(const struct publication *publication, int tier) {
  const struct ledger_release *release = &publication->definition.release;
  return publication->definition.mechanism->noise->clock(release->sensitivity,
                                                         tier_rate(publication, tier));
}

/* Makes the ladder of a release with the option until. The last rung is the ceiling, or a rung
** within 1/64 outside it. */
static int until_ladder(struct publication *publication, uint64_t from, struct rung **rungs,
                        int *count) {
  int at = publication->position.at, tiers = publication->position.count - at - 1, kept = 0;
  uint64_t ceiling = clock_of(publication, at), last = from ? from : END;
  struct rung *list = sqlite3_malloc64(sizeof *list * (size_t)(tiers + LADDER_MOST));
  *rungs = list;
  *count = 0;
  if (!list) return error_set_memory(&publication->session->error);
  for (int i = publication->position.count - 1; i > at; i--) {
    uint64_t clock = clock_of(publication, i);
    if (!clock || clock >= last || is_near(clock, last)) continue;
    list[kept++] = (struct rung){.clock = last = clock, .tier = i};
  }
  int end = kept; /* the rungs of tiers come first */
  int near_last = (kept || from) && (ceiling >= last || is_near(ceiling, last));
  if (near_last && kept) {
    list[kept - 1].tier = at;
  } else { /* a refinement may end where it begins */
    list[end++] = (struct rung){.clock = near_last ? last : ceiling, .tier = at};
  }
  for (uint64_t clock = ceiling + ceiling / 4;
       clock <= FARTHEST * ceiling && clock < END && (!from || clock < from); clock += clock / 4) {
    int near = from && is_near(clock, from);
    for (int i = 0; i < kept; i++) near |= is_near(clock, list[i].clock);
    if (!near) list[end++] = (struct rung){.clock = clock, .tier = -1};
  }
  qsort(list, (size_t)end, sizeof *list, outward_first);
  uint64_t outer = from;
  for (int j = 0; j < end; j++) {
    struct rung *rung = &list[j];
    if (!outer) {
      rung->drawn = rung->clock;
    } else if (!from) {
      double step = (double)(outer - rung->clock) / (double)outer;
      rung->drawn = (uint64_t)((double)rung->clock * step);
    } else if (rung->clock < outer) {
      rung->drawn = lattice_refinement(rung->clock, outer);
    }
    outer = rung->clock;
  }
  *count = end;
  return 1;
}

/* Makes the ladder of a refinement: a rung for each tier from that of the innermost point to the
** publication's. */
static int refinement_ladder(struct publication *publication, const struct ledger_point *innermost,
                             struct rung **rungs, int *count) {
  int tier = tier_index(publication, innermost->tier), at = publication->position.at;
  uint64_t outer = innermost->clock;
  struct rung *rung = sqlite3_malloc64(sizeof *rung * (sqlite3_uint64)(tier - at));
  *rungs = rung;
  *count = tier - at;
  if (!rung) return error_set_memory(&publication->session->error);
  while (tier-- > at) {
    rung->tier = tier;
    rung->clock = path_inward(publication->definition.release.sensitivity,
                              tier_rate(publication, tier), outer, &rung->drawn);
    if (!rung->clock) return too_far(publication, tier);
    outer = rung++->clock;
  }
  return 1;
}

/* Makes the ladder of a walk from a stored point (null: a new release). The caller frees *rungs
** with sqlite3_free(). Returns 1, or 0 after setting the session's error. */
static int ladder_make(struct publication *publication, const struct ledger_point *outer,
                       struct rung **rungs, int *count) {
  *rungs = 0;
  return until_is_given(&publication->definition.release)
             ? until_ladder(publication, outer ? outer->clock : 0, rungs, count)
             : refinement_ladder(publication, outer, rungs, count);
}

/* Returns the lattice slack of the first `made` draws of a walk. */
static double ladder_slack(const struct publication *publication, const struct rung *rungs,
                           int made) {
  const struct noise_law *noise = publication->definition.mechanism->noise;
  double slack = 0;
  for (int j = 0; j < made; j++)
    if (rungs[j].drawn)
      slack = nextafter(
          slack + noise->draw_slack(rungs[j].drawn, publication->definition.layout.touched),
          INFINITY);
  return slack;
}

/* Charges a refinement and marks the release as 'charged' until the refinement is stored. */
static int begin_refining(struct publication *publication, const struct ledger_point *innermost) {
  struct ledger *ledger = publication->session->ledger;
  struct ledger_release *release = &publication->definition.release;
  struct rung *rungs;
  int count, going = ladder_make(publication, innermost, &rungs, &count);
  if (going) release->slack += ladder_slack(publication, rungs, count);
  going = going && ledger_release_slack(ledger, release->id, release->slack) &&
          charge(publication, rungs[count - 1].clock) &&
          ledger_release_state(ledger, release->id, "released", "charged");
  sqlite3_free(rungs);
  publication->position.refining = 1;
  return going;
}

/* ---- walking inward -------------------------------------------------------------------------- */

/* Sets *met to whether all figures of a point are accurate enough. */
static int check_figures(struct publication *publication, uint64_t clock, const int64_t *values,
                         int *met) {
  const struct ledger_release *release = &publication->definition.release;
  double least = release->least > 0 ? release->least : 0;
  struct numbers numbers;
  publication->position.clock = clock;
  int read = numbers_read(publication, 0, NUMBERS_CONFIDENCE, INSIDE_NOTHING, values, &numbers);
  *met = read;
  for (int i = 0; i < numbers.count && *met; i++) {
    struct ledger_value value = numbers_value(&numbers, &numbers.estimates[i]);
    double half = value.high / 2 - value.low / 2;
    *met = isfinite(half) && half <= release->until * fmax(fabs(value.value), least);
  }
  numbers_clear(&numbers);
  return read;
}

/* Draws the point of a rung from the point `values` at the clock `outer`, which is 0 before the
** first draw of a new release. A refinement averages a fresh draw with the point. */
static int step_inward(const struct publication *publication, const int64_t *totals, int refines,
                       uint64_t outer, const struct rung *rung, int64_t *values) {
  size_t dimension = grid_size(&publication->grid);
  int64_t *next = values + dimension;
  struct gaussian_bridge bridge = {rung->clock, outer - rung->clock};
  int drawn = !outer ? release_draw(&gaussian_noise, totals, dimension, rung->clock, next)
              : refines
                  ? release_refine(values, totals, dimension, rung->clock, outer, rung->drawn, next)
                  : gaussian_bridge_draw(&bridge, totals, values, next, dimension);
  if (dimension) memcpy(values, next, sizeof *next * dimension);
  return drawn || no_random_bytes(publication);
}

/* Walks the ladder from the point `outer` (null: a new release): to its end, or with the option
** until to the first rung where all figures are accurate enough, which the first point may be. */
static int walk_inward(struct publication *publication, const struct ledger_point *outer,
                       const int64_t *totals) {
  struct ledger_release *release = &publication->definition.release;
  size_t dimension = grid_size(&publication->grid);
  int stops = until_is_given(release), count = 0, met = 0, made = 0;
  uint64_t clock = outer ? outer->clock : 0;
  struct rung *rungs = 0;
  int64_t *values = sqlite3_malloc64(sizeof *values * (2 * dimension + 1)); /* two points */
  int going = (values || error_set_memory(&publication->session->error)) &&
              ladder_make(publication, outer, &rungs, &count);
  if (going && outer) memcpy(values, outer->values, sizeof *values * dimension);
  if (going && outer && stops) going = check_figures(publication, clock, values, &met);
  for (; made < count && going && !met; made++) {
    const struct rung *rung = &rungs[made];
    going = ledger_goes_on(publication->session->ledger) &&
            step_inward(publication, totals, outer != 0, clock, rung, values);
    clock = rung->clock;
    if (going && stops) going = check_figures(publication, clock, values, &met);
    if (going && made + 1 < count && !met && rung->tier >= 0)
      going = note_point(publication, rung->tier, 0, clock, values);
  }
  going = going && note_point(publication, publication->position.at, 0, clock, values);
  publication->position.clock = clock;
  if (going && stops) {
    release->slack -= ladder_slack(publication, rungs, count);
    release->slack = fmax(0, release->slack) + ladder_slack(publication, rungs, made);
    release->stop = met ? clock : 0;
  }
  if (values) entropy_wipe(values, sizeof *values * 2 * dimension);
  sqlite3_free(rungs);
  sqlite3_free(values);
  return going;
}

/* Draws a point for every tier inside the innermost point, down to the publication's tier. */
static int refine(struct publication *publication, const int64_t *totals) {
  struct ledger_path path;
  int going = ledger_path_read(publication->session->ledger, &publication->definition.release,
                               publication->grid, &path) &&
              walk_inward(publication, &path.points[0], totals);
  ledger_path_free(&path);
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
  if (may_refine) return begin_refining(publication, innermost);
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

/* Makes the ladder of a new release with the option until, for the slack of its draws. */
static int charge_ladder(struct publication *publication) {
  struct ledger_release *release = &publication->definition.release;
  const struct ledger_tier *tier = publication_tier(publication);
  struct rung *rungs;
  int count;
  if (!tier->accountant->covers_rates)
    return error_set(&publication->session->error,
                     "tier '%s' has a budget of %s, and until needs Gaussian noise (leave until "
                     "out, and ask dp_plan() for the weight of a half_width)",
                     tier->name, tier->accountant->title);
  if (!ladder_make(publication, 0, &rungs, &count)) return 0;
  release->slack = ladder_slack(publication, rungs, count);
  sqlite3_free(rungs);
  return 1;
}

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
  if (until_is_given(release) && !charge_ladder(publication)) return 0;
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
  if (publication->position.refining) return refine(publication, totals);
  if (until_is_given(&publication->definition.release) && !publication->planned)
    return walk_inward(publication, 0, totals);
  const struct mechanism *mechanism = publication->definition.mechanism;
  struct terms terms = terms_of(publication);
  uint64_t clock = mechanism->draw_clock(&terms, publication->position.clock);
  int64_t *values =
      add_point(publication, publication->position.at, 0, publication->position.clock);
  return values &&
         (release_draw(mechanism->noise, totals, grid_size(&publication->grid), clock, values) ||
          no_random_bytes(publication));
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

/* ---- plans of releases that stop early ------------------------------------------------------- */

double until_expected_part(struct publication *publication, double figure, double rows) {
  const struct ledger_release *release = &publication->definition.release;
  struct rung *rungs;
  int count;
  double part = 0, goes_on = 1, z = gsl_cdf_ugaussian_Pinv((1 + NUMBERS_CONFIDENCE) / 2);
  uint64_t clock = publication->position.clock;
  if (!ladder_make(publication, 0, &rungs, &count)) return (double)NAN;
  for (int j = 0; j < count; j++) {
    publication->position.clock = rungs[j].clock;
    double half = numbers_half_width(publication, rows), stop = j == count - 1;
    if (isnan(half)) goes_on = NAN;
    /* Each figure is about normal around the guess, with a standard deviation of half / z. */
    double wanted = half / release->until;
    if (release->least >= wanted) stop = 1;
    if (stop < 1)
      stop = gsl_cdf_ugaussian_P((figure - wanted) * z / half) +
             gsl_cdf_ugaussian_Q((figure + wanted) * z / half);
    stop = pow(stop, publication->definition.layout.coordinates);
    part += goes_on * stop * (double)clock / (double)rungs[j].clock;
    goes_on *= 1 - stop;
  }
  publication->position.clock = clock;
  sqlite3_free(rungs);
  return part;
}

const struct procedure path_procedure = {
    .charge = path_charge, .draw = path_draw, .keep = path_keep};
