/*
** life.c: see life.h.
**
** Where a tier lies on the path of an existing release decides what happens:
**
**     inner                                                              outer
**       |  refine: one fresh draw    | a point:    |  diffuse: noise on     |
**       |  per tier, reads data      | publish it  |  the outermost point   |
**
** A tier that was created between two points of a path has no point there and gets none: a second
** point drawn outward from the same inner one would, together with the first, reveal more than
** either.
**
** Errors stick to the ledger (ledger.h): after one, every step is a no-op, and the caller asks
** once.
*/
#include "release/life.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "release/values.h"
#include "ledger/policy.h"
#include "release/model.h"
#include "release/reports.h"
#include "release/categories.h"
#include "math/diffusion.h"
#include "release/definition.h"
#include "release/numbers.h"
#include "release/session.h"

SQLITE_EXTENSION_INIT3

static int out_of_memory(struct ledger *ledger) {
  return error_set_memory(ledger_error(ledger));
}

/* ---- what a tier may cost -------------------------------------------------------------------- */

static double tier_rate(const struct publication *publication, int tier) {
  return publication->definition.release.weight * publication->position.tiers[tier].rate;
}

/* The release as its mechanism sees it, at the tier where it is published. */
static struct terms terms_of(const struct publication *publication) {
  const struct ledger_release *release = &publication->definition.release;
  double share = release->key_share * (1 - 0x1p-40); /* ten tenths are not more than all */
  return (struct terms){
      .shape = &publication->definition.layout,
      .descent = &publication->definition.descent,
      .shift = release->shift,
      .sensitivity = release->sensitivity,
      .rate = tier_rate(publication, publication->position.at),
      .delta = isnan(share)
                   ? 0
                   : share * publication->position.tiers[publication->position.at].delta_keys};
}

/* The cost refers to the publication. */
static struct cost point_cost(struct publication *publication, uint64_t clock) {
  const struct mechanism *mechanism = publication->definition.mechanism;
  struct terms terms = terms_of(publication);
  struct cost cost;
  if (!mechanism->cost(mechanism, &terms, clock, &publication->cost.room, &cost))
    out_of_memory(publication->session->ledger);
  return cost;
}

/* A second look at what every clock is made for. */
static int is_within_tier(const struct publication *publication, uint64_t clock) {
  const struct mechanism *mechanism = publication->definition.mechanism;
  struct terms terms = terms_of(publication);
  return mechanism->rate(mechanism, &terms, clock) <= terms.rate * (1 + 0x1p-40);
}

static int charge(struct publication *publication, uint64_t variance) {
  struct ledger *ledger = publication->session->ledger;
  const char *tier = publication->position.tiers[publication->position.at].name;
  if (!is_within_tier(publication, variance))
    return error_set(ledger_error(ledger),
                     "the noise would cost more than tier '%s' has for a release", tier);
  struct cost cost = point_cost(publication, variance);
  publication->position.clock = variance;
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
                       publication->position.count, publication->position.at, &cost);
}

/* ---- points ---------------------------------------------------------------------------------- */

static size_t dimension_of(const struct publication *publication) {
  return (size_t)publication->grid.cells * (size_t)publication->grid.components;
}

/* Room for two points, or null with the error in the ledger. */
static int64_t *two_points(const struct publication *publication) {
  size_t count = 2 * dimension_of(publication) + 1;
  int64_t *values = sqlite3_malloc64(sizeof *values * count);
  if (!values) out_of_memory(publication->session->ledger);
  return values;
}

static int store_point(struct publication *publication, int tier, uint64_t variance,
                       int64_t *values) {
  struct ledger_point point = {publication->position.tiers[tier].name, variance, values};
  return ledger_path_insert(publication->session->ledger, &publication->definition.release,
                            &publication->grid, &point);
}

/* Notes a point that has been drawn, for keep(). */
static int note_point(struct publication *publication, int tier, uint64_t variance,
                      const int64_t *values) {
  size_t dimension = dimension_of(publication);
  int count = publication->drawn_count;
  struct drawn *grown =
      sqlite3_realloc64(publication->drawn, sizeof *grown * (sqlite3_uint64)(count + 1));
  if (!grown) return out_of_memory(publication->session->ledger);
  publication->drawn = grown;
  int64_t *copy = sqlite3_malloc64(sizeof *copy * (dimension + 1));
  if (!copy) return out_of_memory(publication->session->ledger);
  if (dimension) memcpy(copy, values, sizeof *copy * dimension);
  grown[publication->drawn_count++] = (struct drawn){tier, variance, copy};
  return 1;
}

/* The publication of a stored point at its position, and its values. */
static int store_values(struct publication *publication, uint64_t variance, const int64_t *values) {
  struct cost cost = point_cost(publication, variance);
  publication->position.clock = variance;
  return values_store(publication, &cost, values);
}

/* ---- walking outward ------------------------------------------------------------------------- */

static int too_far(struct publication *publication, int tier) {
  return error_set(ledger_error(publication->session->ledger),
                   "tier '%s' has a rate %g too far from that of release '%s' for its lattice "
                   "(make a release of its own)",
                   publication->position.tiers[tier].name, publication->position.tiers[tier].rate,
                   publication->definition.release.name);
}

/*
** From the outermost point (tier `from`) to its position, a point for every configured tier. The
** clocks come first, so that the charge comes before the draws.
*/
static int walk_outward(struct publication *publication, const struct ledger_point *outermost,
                        int from) {
  struct ledger *ledger = publication->session->ledger;
  struct ledger_release *release = &publication->definition.release;
  const struct noise_law *noise = publication->definition.mechanism->noise;
  int steps = publication->position.at - from;
  size_t dimension = dimension_of(publication);
  uint64_t *clocks = sqlite3_malloc64(sizeof *clocks * (sqlite3_uint64)(steps + 1));
  int64_t *values = two_points(publication);
  int going = (clocks && values) || out_of_memory(ledger);
  if (going) {
    clocks[0] = outermost->clock;
    if (dimension) memcpy(values, outermost->values, sizeof *values * dimension);
  }
  for (int i = 1; i <= steps && going; i++) {
    clocks[i] =
        noise->outward(release->sensitivity, tier_rate(publication, from + i), clocks[i - 1]);
    going = clocks[i] ? models_diffusible(publication, from, clocks[i])
                      : too_far(publication, from + i);
    if (going)
      release->slack +=
          noise->step_slack(clocks[i - 1], clocks[i], publication->definition.layout.touched);
  }
  going = going && ledger_release_slack(ledger, release->id, release->slack) &&
          charge(publication, clocks[steps]);
  for (int i = 1; i <= steps && going; i++) {
    int64_t *next = values + dimension;
    if (release_diffuse(noise, values, dimension, clocks[i - 1], clocks[i], next))
      going = error_set(ledger_error(ledger), "the system gave no random bytes");
    memcpy(values, next, sizeof *values * dimension);
    going = going && store_point(publication, from + i, clocks[i], values);
  }
  going = going && store_values(publication, clocks[steps], values);
  sqlite3_free(clocks);
  sqlite3_free(values);
  return going;
}

/* ---- walking inward -------------------------------------------------------------------------- */

/* One step of a refinement: the tier, its variance, and that of the draw that leads there. */
struct inward_step {
  uint64_t variance, fresh;
};

/*
** The steps from the innermost point (tier `from`, variance `outer`) to its position: step i
** ends at tier from - 1 - i. Public parameters alone decide them, so charge and draw plan the same.
*/
static int plan_inward(struct publication *publication, uint64_t outer, int from,
                       struct inward_step **steps) {
  int count = from - publication->position.at;
  *steps = sqlite3_malloc64(sizeof **steps * (sqlite3_uint64)count);
  if (!*steps) return out_of_memory(publication->session->ledger);
  for (int i = 0; i < count; i++) {
    int tier = from - 1 - i;
    struct inward_step *step = &(*steps)[i];
    step->variance = path_inward(publication->definition.release.sensitivity,
                                 tier_rate(publication, tier), outer, &step->fresh);
    if (!step->variance) return too_far(publication, tier);
    outer = step->variance;
  }
  return 1;
}

/* Charges a refinement and marks the release as in progress. */
static int begin_refining(struct publication *publication, const struct ledger_point *innermost,
                          int from) {
  struct ledger *ledger = publication->session->ledger;
  struct ledger_release *release = &publication->definition.release;
  struct inward_step *steps;
  int count = from - publication->position.at;
  int going = plan_inward(publication, innermost->clock, from, &steps);
  for (int i = 0; i < count && going; i++) {
    if (steps[i].fresh)
      release->slack += publication->definition.mechanism->noise->draw_slack(
          steps[i].fresh, publication->definition.layout.touched);
  }
  going = going && ledger_release_slack(ledger, release->id, release->slack) &&
          charge(publication, steps[count - 1].variance) &&
          ledger_release_state(ledger, release->id, "released", "charged");
  sqlite3_free(steps);
  publication->position.refining = 1;
  return going;
}

/* Draws a point for every tier from the innermost point to its position. */
static int walk_inward(struct publication *publication, const struct ledger_point *innermost,
                       int from, const int64_t *totals) {
  struct ledger *ledger = publication->session->ledger;
  int count = from - publication->position.at;
  size_t dimension = dimension_of(publication);
  struct inward_step *steps;
  int64_t *values = two_points(publication);
  int going = plan_inward(publication, innermost->clock, from, &steps) && values;
  if (going) memcpy(values, innermost->values, sizeof *values * dimension);
  uint64_t outer = innermost->clock;
  for (int i = 0; i < count && going; i++) {
    int64_t *next = values + dimension;
    if (release_refine(values, totals, dimension, steps[i].variance, outer, steps[i].fresh, next))
      going = error_set(ledger_error(ledger), "the system gave no random bytes");
    memcpy(values, next, sizeof *values * dimension);
    outer = steps[i].variance;
    going = going && note_point(publication, from - 1 - i, outer, values);
  }
  sqlite3_free(steps);
  sqlite3_free(values);
  return going;
}

/* ---- an existing release --------------------------------------------------------------------- */

static int tier_index(const struct publication *publication, const char *name) {
  int i = 0;
  while (i < publication->position.count && strcmp(publication->position.tiers[i].name, name) != 0)
    i++;
  return i;
}

static int is_usable(struct publication *publication) {
  const struct ledger_release *release = &publication->definition.release;
  struct ledger *ledger = publication->session->ledger;
  if (strcmp(release->state, "charged") == 0)
    return error_set(ledger_error(ledger),
                     "release '%s' is not finished (wait until its statement has ended, or free "
                     "the name with dp_discard('%s'))",
                     release->name, release->name);
  if (strcmp(release->state, "failed") == 0)
    return error_set(ledger_error(ledger),
                     "release '%s' failed and its charge stays (free the name with "
                     "dp_discard('%s'))",
                     release->name, release->name);
  return 1;
}

/* Publishes the existing release at its position from its path, by whichever way leads there. */
static int publish_from(struct publication *publication, const struct ledger_path *path,
                        int may_refine) {
  struct ledger *ledger = publication->session->ledger;
  const char *tier = publication->position.tiers[publication->position.at].name;
  const char *name = publication->definition.release.name;
  const struct ledger_point *innermost = &path->points[0];
  const struct ledger_point *outermost = &path->points[path->count - 1];
  int first = tier_index(publication, innermost->tier);
  int last = tier_index(publication, outermost->tier);
  for (int i = 0; i < path->count; i++) {
    const struct ledger_point *here = &path->points[i];
    if (strcmp(here->tier, tier) == 0)
      return charge(publication, here->clock) &&
             store_values(publication, here->clock, here->values);
  }
  if (publication->position.at > last) return walk_outward(publication, outermost, last);
  if (publication->position.at > first)
    return error_set(ledger_error(ledger),
                     "tier '%s' was created after release '%s', between two points of its path "
                     "(make a release of its own)",
                     tier, name);
  if (publication->definition.layout.family->statistic == STATISTIC_MODEL)
    return error_set(ledger_error(ledger),
                     "release '%s' is a model and cannot be refined (make a release of its own at "
                     "tier '%s')",
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
                   "release '%s' is not at tier '%s' or inside it (ask for it again, with its "
                   "data and the option \"refine\":true, to pay the difference)",
                   name, tier);
}

static int publish_existing(struct publication *publication, int keys, int may_refine) {
  struct ledger *ledger = publication->session->ledger;
  const struct ledger_release *release = &publication->definition.release;
  const char *tier = publication->position.tiers[publication->position.at].name;
  if (!definition_describe(publication, keys)) return 0;
  if (!definition_same_lattice(publication))
    return error_set(ledger_error(ledger),
                     "release '%s' is on a lattice that does not cover its parameters (restore the "
                     "ledger from a backup)",
                     release->name);
  if (ledger_publication_find(ledger, release->id, tier, &publication->position.clock))
    return values_read(publication, tier);
  if (publication->definition.mechanism->statistics == STATISTIC_REPORTS)
    return error_set(ledger_error(ledger),
                     "release '%s' is made of reports, which reach a tier outside their own only "
                     "through a public kernel (dp_mix)",
                     release->name);
  if (!publication->definition.mechanism->noise)
    return error_set(ledger_error(ledger),
                     "release '%s' is a symbol, and reaches a tier outside its own only through a "
                     "public kernel (dp_mix)",
                     release->name);
  struct ledger_path path;
  int done = 0;
  if (ledger_path_read(ledger, release, definition_grid(publication).components, &path)) {
    publication->grid = path.grid; /* taken over */
    done = definition_same_keys(publication)
               ? publish_from(publication, &path, may_refine)
               : error_set(ledger_error(ledger),
                           "release '%s' has other keys than when it was charged (restore the "
                           "ledger from a backup)",
                           release->name);
    path.grid.keys = 0;
  }
  ledger_path_free(&path);
  return done;
}

/* ---- a new release --------------------------------------------------------------------------- */

static int check_rate(struct publication *publication) {
  double rate = tier_rate(publication, publication->position.at);
  double most = mechanism_most_rate(publication->definition.mechanism);
  return (rate >= DESIGN_MIN_RATE && rate <= most) ||
         error_set(ledger_error(publication->session->ledger),
                   "weight makes a rate outside the [%g, %g] of mechanism '%s'", DESIGN_MIN_RATE,
                   most, publication->definition.release.mechanism);
}

/* Copies a text that the request owns; null stays null. */
static int own(struct ledger *ledger, char **text) {
  if (!*text) return 1;
  *text = sqlite3_mprintf("%s", *text);
  return *text || out_of_memory(ledger);
}

/* The row of the new release: the request's parameters, and texts of its own. */
static int make_release(struct publication *publication, const struct request *request) {
  struct ledger *ledger = publication->session->ledger;
  struct ledger_release row = request_release(request);
  row.name = request->name;
  row.state = "charged";
  row.options = 0;
  struct ledger_release *release = &publication->definition.release;
  *release = row;
  char **texts[] = {&release->name, &release->kind,  &release->mechanism, &release->quantiles,
                    &release->keys, &release->model, &release->state,     &release->sql};
  int made = 1;
  for (int i = 0; i < 8; i++) { /* all of them, so that each is either owned or null */
    if (made) {
      made = own(ledger, texts[i]);
    } else {
      *texts[i] = 0;
    }
  }
  release->options = request_options(request);
  release->fingerprint = ledger_fingerprint(&row);
  return made && ((release->options && release->fingerprint) || out_of_memory(ledger));
}

/* Takes over the request's list of keys. */
static void take_keys(struct publication *publication, struct request *request) {
  publication->grid = definition_grid(publication);
  publication->grid.keys = request->key_list;
  request->key_list = 0;
  request->key_count = 0;
}

static int publish_new(struct publication *publication, struct request *request) {
  struct ledger *ledger = publication->session->ledger;
  struct ledger_release *release = &publication->definition.release;
  int keys = request->key_count;
  if (!make_release(publication, request) || !definition_describe(publication, keys) ||
      !check_rate(publication))
    return 0;
  if (!publication->definition.mechanism->noise) {
    take_keys(publication, request);
    return publication->definition.mechanism->statistics == STATISTIC_REPORTS
               ? responses_charge(publication)
               : categories_charge(publication);
  }
  const struct layout *shape = &publication->definition.layout;
  struct design design;
  const struct noise_law *noise = publication->definition.mechanism->noise;
  struct terms terms = terms_of(publication);
  uint64_t variance =
      publication->definition.mechanism->design(publication->definition.mechanism, &terms, &design);
  if (variance < LATTICE_MIN_VARIANCE || variance >= LATTICE_VARIANCE_END)
    return too_far(publication, publication->position.at);
  take_keys(publication, request);
  release->dimension = shape->coordinates;
  release->granularity = design.granularity;
  release->shift = design.shift;
  release->sensitivity = design.sensitivity;
  release->slack = noise->draw_slack(variance, shape->touched);
  return ledger_release_insert(ledger, release) && charge(publication, variance);
}

/* ---- the interface --------------------------------------------------------------------------- */

/* Loads the tiers, finds the wanted one and, where a name is given, the release: 1 found. */
static int load(struct publication *publication, const char *tier, const char *name) {
  struct ledger *ledger = publication->session->ledger;
  if (!ledger_tiers(ledger, &publication->position.tiers, &publication->position.count)) return 0;
  publication->position.at =
      ledger_tier_find(ledger, publication->position.tiers, publication->position.count, tier);
  return publication->position.at >= 0 && name &&
         ledger_release_find(ledger, name, &publication->definition.release) &&
         ledger_trust_release(ledger, publication->definition.release.id);
}

/*
** The query is a part of what a name stands for. An aggregate has no text, and neither has a
** release that an old ledger recorded: there is nothing to compare.
*/
static int same_query(struct publication *publication, const struct request *request) {
  const char *stored = publication->definition.release.sql;
  return !stored || !request->sql || strcmp(stored, request->sql) == 0 ||
         error_set(ledger_error(publication->session->ledger),
                   "release '%s' exists with another query: %s (choose another name)",
                   request->name, stored);
}

static int same_question(struct publication *publication, const struct request *request) {
  struct ledger_release asked = request_release(request);
  char *fingerprint = ledger_fingerprint(&asked);
  int same = fingerprint && strcmp(fingerprint, publication->definition.release.fingerprint) == 0;
  sqlite3_free(fingerprint);
  return same ||
         error_set(ledger_error(publication->session->ledger),
                   "release '%s' exists with other parameters: %s %s%s%s (choose another name)",
                   request->name, publication->definition.release.kind,
                   publication->definition.release.options,
                   publication->definition.release.keys ? ", keys " : "",
                   publication->definition.release.keys ? publication->definition.release.keys
                                                        : "");
}

/*
** The option t: the weight at which the process theta, rho costs at the tier what it costs at this
** time (Balle et al. 2019, Corollary 7). The tier's rate is the most that a release may cost there.
*/
static int settle_time(const struct publication *publication, struct request *request) {
  if (isnan(request->t)) return 1;
  const struct ledger_tier *tier = &publication->position.tiers[publication->position.at];
  struct publication asked = {.session = publication->session,
                              .definition = {.release = request_release(request)}};
  if (!definition_describe(&asked, request->key_count)) return 0;
  double distance =
      ldexp((double)asked.definition.layout.distance, asked.definition.layout.fine_exponent);
  double rate = ou_rate(distance, request->theta, request->rho, request->t);
  if (!(rate <= tier->rate * (1 + 0x1p-40)))
    return error_set(ledger_error(publication->session->ledger),
                     "time %g costs a rate of %g, more than the %g of tier '%s' (give a t of at "
                     "least %g, or ask at an inner tier)",
                     request->t, rate, tier->rate, tier->name,
                     ou_time(request->theta, request->rho, distance / tier->rate * (distance / 2)));
  request->weight = fmin(1, rate / tier->rate);
  return 1;
}

/* The answer of a release whose statement is still running on this connection: a replay. */
static int answer_pending(struct publication *publication) {
  const struct publication *pending =
      session_pending(publication->session, publication->definition.release.id,
                      publication->position.tiers[publication->position.at].name);
  if (!pending) return 0;
  publication->answer.number = pending->answer.number;
  if (pending->answer.json) publication->answer.json = sqlite3_mprintf("%s", pending->answer.json);
  publication->answered = !pending->answer.json || publication->answer.json;
  return publication->answered || out_of_memory(publication->session->ledger);
}

/* Inside a transaction. */
static void begin(struct publication *publication, struct request *request) {
  int found = load(publication, request->tier, request->name);
  if (publication->position.at >= 0 &&
      (!settle_time(publication, request) || !models_settle(publication, request, found)))
    return;
  if (found) {
    if (same_question(publication, request) && !answer_pending(publication) &&
        is_usable(publication) && same_query(publication, request))
      publish_existing(publication, request->key_count, request->refine);
  } else if (request->is_blind) {
    error_set(ledger_error(publication->session->ledger),
              "a statement that updates or deletes cannot release (nothing was charged; SELECT "
              "or INSERT the value first, or use dp_release)");
  } else if (publication->position.at >= 0 &&
             !error_is_set(ledger_error(publication->session->ledger))) {
    publish_new(publication, request);
  }
}

static void publication_open(struct publication *publication, struct session *session) {
  *publication = (struct publication){0};
  publication->session = session;
  publication->position.at = -1;
}

int publish_begin(struct publication *publication, struct session *session,
                  struct request *request) {
  publication_open(publication, session);
  if (ledger_begin(session->ledger)) {
    begin(publication, request);
    if (!publication->answered)
      ledger_policy_admit(session->ledger, publication->definition.release.id, request->tables);
    ledger_commit(session->ledger);
  }
  return !error_is_set(&session->error);
}

/* ---- the end of a release -------------------------------------------------------------------- */

/* The keys that the rows brought up, where they are private, as the publication's own. */
static int take_private_keys(struct publication *publication, const struct ledger_grid *grid) {
  if (!publication->definition.release.max_groups) return 1;
  char **keys = sqlite3_malloc64(sizeof *keys * (sqlite3_uint64)(grid->cells + 1));
  if (!keys) return out_of_memory(publication->session->ledger);
  publication->grid = (struct ledger_grid){keys, 0, grid->components};
  for (int i = 0; i < grid->cells; i++) {
    keys[i] = sqlite3_mprintf("%s", grid->keys[i]);
    if (!keys[i]) return out_of_memory(publication->session->ledger);
    publication->grid.cells++;
  }
  return 1;
}

/* Draws a new point. */
static int draw_new(struct publication *publication, const int64_t *rounded, int64_t *values) {
  if (publication->definition.mechanism->statistics == STATISTIC_REPORTS)
    return responses_draw(publication, rounded);
  if (!publication->definition.mechanism->noise) return categories_draw(publication, rounded);
  struct terms terms = terms_of(publication);
  uint64_t variance =
      publication->definition.mechanism->draw_clock(&terms, publication->position.clock);
  if (release_draw(publication->definition.mechanism->noise, rounded, dimension_of(publication),
                   variance, values))
    return error_set(ledger_error(publication->session->ledger), "the system gave no random bytes");
  return note_point(publication, publication->position.at, publication->position.clock, values);
}

static int refine(struct publication *publication, const int64_t *rounded) {
  struct ledger *ledger = publication->session->ledger;
  struct ledger_path path;
  int done = 0;
  if (ledger_path_read(ledger, &publication->definition.release, publication->grid.components,
                       &path))
    done = walk_inward(publication, &path.points[0], tier_index(publication, path.points[0].tier),
                       rounded);
  ledger_path_free(&path);
  return done;
}

/* Draws from exact totals; inside a transaction, which stores nothing yet. */
static int draw(struct publication *publication, const struct totals *totals) {
  const struct ledger_release *release = &publication->definition.release;
  if (!take_private_keys(publication, &totals->grid)) return 0;
  size_t dimension = dimension_of(publication);
  int64_t *values = two_points(publication), *rounded = values ? values + dimension : 0;
  for (size_t i = 0; i < dimension && values; i++)
    rounded[i] = totals->values ? lattice_round(totals->values[i], release->shift) : 0;
  int drawn = values != 0;
  if (drawn)
    drawn = publication->position.refining ? refine(publication, rounded)
                                           : draw_new(publication, rounded, values);
  sqlite3_free(values);
  return drawn;
}

/* Stores what draw() has drawn, ends the release and answers; inside a transaction. */
static int keep(struct publication *publication) {
  if (!ledger_release_state(publication->session->ledger, publication->definition.release.id,
                            "charged", "released"))
    return 0;
  if (publication->definition.mechanism->statistics == STATISTIC_REPORTS)
    return responses_keep(publication);
  if (!publication->definition.mechanism->noise) return symbols_keep(publication);
  int kept = 1;
  for (int i = 0; i < publication->drawn_count && kept; i++) {
    const struct drawn *point = &publication->drawn[i];
    kept = store_point(publication, point->tier, point->clock, point->values) &&
           (i + 1 < publication->drawn_count ||
            store_values(publication, point->clock, point->values));
  }
  return kept;
}

int publish_finish(struct publication *publication, const struct totals *totals) {
  struct ledger *ledger = publication->session->ledger;
  if (ledger_resume_patiently(ledger) && ledger_begin_ending(ledger)) {
    if (draw(publication, totals)) keep(publication);
    if (ledger_commit(ledger)) return 1;
  }
  publish_fail(publication);
  return 0;
}

/* Everything is tried in a transaction that is taken back, so that its errors come in time. */
int publish_draw(struct publication *publication, const struct totals *totals) {
  struct ledger *ledger = publication->session->ledger;
  if (ledger_resume(ledger) && ledger_begin_ending(ledger)) {
    if (draw(publication, totals)) keep(publication);
    ledger_rollback(ledger);
    if (!error_is_set(ledger_error(ledger))) return 1;
  }
  publish_fail(publication);
  return 0;
}

int publish_plan(struct publication *publication, struct session *session,
                 struct request *request) {
  publication_open(publication, session);
  begin(publication, request);
  if (!error_is_set(ledger_error(session->ledger)) && !publication->answered) {
    struct totals nothing = {definition_grid(publication), 0};
    if (draw(publication, &nothing)) keep(publication);
  }
  return !error_is_set(ledger_error(session->ledger));
}

/*
** Nobody is left to tell when this fails; the release then stays as it is, never with a new value.
** The error that led here stays.
*/
static void change_state(struct session *session, int64_t release_id, const char *from,
                         const char *to) {
  struct ledger *ledger = session->ledger;
  struct error error = error_take(&session->error);
  if (ledger_resume(ledger) && ledger_begin_ending(ledger)) {
    ledger_release_state(ledger, release_id, from, to);
    ledger_commit(ledger);
  }
  error_restore(&session->error, error);
}

void publish_fail(struct publication *publication) {
  change_state(publication->session, publication->definition.release.id, "charged",
               publication->position.refining ? "released" : "failed");
}

void publish_revoke(struct publication *publication) {
  change_state(publication->session, publication->definition.release.id, "charged", "failed");
}

int publish_show(struct publication *publication) {
  return keep(publication);
}

int publish_keep(struct publication *publication) {
  struct ledger *ledger = publication->session->ledger;
  struct ledger_release now;
  if (ledger_resume(ledger) && ledger_begin_ending(ledger)) {
    keep(publication);
    if (ledger_commit(ledger)) return 1;
  }
  int settled = 0;
  if (ledger_resume(ledger) && ledger_begin_reading(ledger) &&
      ledger_release_get(ledger, publication->definition.release.id, &now)) {
    settled = strcmp(now.state, "charged") != 0;
    ledger_release_clear(&now);
  }
  ledger_rollback(ledger);
  return settled;
}

/* dp_mix() of a release that is no symbol: what it has for groups is sent on by the kernel. */
static int publish_mixed(struct publication *publication, const struct markov_kernel *channel) {
  struct ledger *ledger = publication->session->ledger;
  const struct ledger_release *release = &publication->definition.release;
  const char *tier = publication->position.tiers[publication->position.at].name;
  int keys = definition_keys(release);
  char *kernel = 0;
  if (!definition_describe(publication, keys)) return 0;
  if (!publication->definition.mechanism->noise &&
      publication->definition.mechanism->statistics != STATISTIC_REPORTS)
    return categories_mix(publication, channel);
  if (ledger_kernel_find(ledger, release->id, tier, &kernel)) {
    int read = mixes_again(publication, kernel, channel);
    sqlite3_free(kernel);
    return read;
  }
  if (publication->definition.mechanism->statistics == STATISTIC_REPORTS)
    return responses_mix(publication, channel);
  publication->position.kernel = channel;
  return !error_is_set(ledger_error(ledger)) && numbers_mixable(publication) &&
         publish_existing(publication, keys, 0);
}

int publish_diffuse(struct publication *publication, struct session *session, const char *name,
                    const char *tier, const struct markov_kernel *channel) {
  struct ledger *ledger = session->ledger;
  publication_open(publication, session);
  if (ledger_ready(ledger) && ledger_begin(ledger)) {
    if (!load(publication, tier, name)) {
      error_set(ledger_error(ledger), "unknown release (dp_release lists them)");
    } else if (is_usable(publication)) {
      if (channel) publish_mixed(publication, channel);
      if (!channel)
        publish_existing(publication, definition_keys(&publication->definition.release), 0);
    }
    ledger_commit(ledger);
  }
  return publication->answered && !error_is_set(ledger_error(ledger));
}
