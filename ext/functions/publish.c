/*
** publish.c: see publish.h.
**
** Where a tier lies on the path of an existing release decides what happens:
**
**     inner                                                              outer
**       |  refine: one fresh draw    | a point:    |  diffuse: noise on     |
**       |  per tier, reads data      | publish it  |  the outermost point   |
**
** A tier that was created between two points of a path has no point there and gets none: a second
** point drawn outward from the same inner one would, together with the first, reveal more than either.
**
** Errors stick to the ledger (ledger.h): after one, every step is a no-op, and the caller asks once.
*/
#include "functions/publish.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "functions/functions.h"
#include "math/rounding.h"
#include "release/estimate.h"

SQLITE_EXTENSION_INIT3

/* The points of a release while a transaction works on them, the innermost first. */
struct path {
  struct ledger_point *points;
  int count;
};

static int out_of_memory(struct ledger *ledger) {
  return ledger_fail(ledger, "out of memory");
}

/* ---- what a tier may cost ------------------------------------------------------------------------ */

static double tier_rate(const struct publication *publication, int tier) {
  return publication->release.weight * publication->tiers[tier].rate;
}

/* The rate of a point's noise; by construction of its variance it is within the tier's. */
static double point_rate(const struct publication *publication, int tier, uint64_t variance) {
  return fmin(lattice_rate(publication->release.sensitivity, variance),
              tier_rate(publication, tier));
}

struct view publish_view(const struct publication *publication) {
  const struct ledger_release *release = &publication->release;
  struct view view = {release->granularity, release->centre, 1};
  if (strcmp(release->mechanism, "ou") == 0)
    view.shrink = estimate_shrink(publication->variance, release->granularity, release->dimension,
                                  release->radius, release->theta, release->rho);
  return view;
}

/* What the point costs: a rate alone, because Gaussian noise is all there is. */
static struct ledger_cost point_cost(const struct publication *publication, uint64_t variance) {
  return (struct ledger_cost){point_rate(publication, publication->at, variance), 0, 0, 0};
}

static int charge(struct publication *publication, uint64_t variance) {
  struct ledger_cost cost = point_cost(publication, variance);
  publication->variance = variance;
  if (!(publish_view(publication).shrink >= DBL_MIN))
    return ledger_fail(
        publication->host->ledger,
        "the noise at tier '%s' would shrink the value to nothing but its centre (give "
        "a larger radius, or rho)",
        publication->tiers[publication->at].name);
  return ledger_charge(publication->host->ledger, &publication->release, publication->tiers,
                       publication->tier_count, publication->at, &cost);
}

/* ---- storing ------------------------------------------------------------------------------------- */

static int store_point(struct publication *publication, int tier, uint64_t variance,
                       int64_t *values) {
  struct ledger_point point = {publication->tiers[tier].name, variance, values};
  return ledger_path_insert(publication->host->ledger, &publication->release, &point);
}

/* The publication of a stored point at publication->at, and its values. */
static int store_values(struct publication *publication, uint64_t variance, const int64_t *values) {
  const struct ledger_release *release = &publication->release;
  struct ledger *ledger = publication->host->ledger;
  const char *tier = publication->tiers[publication->at].name;
  publication->variance = variance;
  struct view view = publish_view(publication);
  double stddev = estimate_stddev(&view, variance);
  double half_width = estimate_half_width(stddev, 0.95);
  struct ledger_cost cost = point_cost(publication, variance);
  int stored = ledger_publication_insert(ledger, release, tier, variance, &cost, view.shrink);
  for (int i = 0; i < release->dimension && stored; i++) {
    double value = estimate_value(&view, values[i]);
    if (i == 0) publication->value = value;
    stored = ledger_value_insert(ledger, release, tier, "", i, value, stddev,
                                 nextafter(value - half_width, -INFINITY),
                                 nextafter(value + half_width, INFINITY));
  }
  publication->answered = stored;
  return stored;
}

/* ---- walking outward ----------------------------------------------------------------------------- */

static int too_far(struct publication *publication, int tier) {
  return ledger_fail(publication->host->ledger,
                     "tier '%s' has a rate %g too far from that of release '%s' for its lattice "
                     "(make a release of its own)",
                     publication->tiers[tier].name, publication->tiers[tier].rate,
                     publication->release.name);
}

/*
** From the outermost point (tier `from`) to publication->at, a point for every configured tier. The
** clocks come first, so that the charge comes before the draws.
*/
static int walk_outward(struct publication *publication, const struct ledger_point *outermost,
                        int from) {
  struct ledger *ledger = publication->host->ledger;
  struct ledger_release *release = &publication->release;
  int steps = publication->at - from, dimension = release->dimension;
  uint64_t *clocks = sqlite3_malloc64(sizeof *clocks * (sqlite3_uint64)(steps + 1));
  int64_t *values = sqlite3_malloc64(2 * sizeof *values * (sqlite3_uint64)dimension);
  int going = (clocks && values) || out_of_memory(ledger);
  if (going) {
    clocks[0] = outermost->clock;
    memcpy(values, outermost->values, sizeof *values * (size_t)dimension);
  }
  for (int i = 1; i <= steps && going; i++) {
    clocks[i] = path_outward(release->sensitivity, tier_rate(publication, from + i), clocks[i - 1]);
    going = clocks[i] || too_far(publication, from + i);
    if (going) release->slack += step_slack(clocks[i - 1], clocks[i], dimension);
  }
  going = going && ledger_release_slack(ledger, release->id, release->slack) &&
          charge(publication, clocks[steps]);
  for (int i = 1; i <= steps && going; i++) {
    int64_t *next = values + dimension;
    if (release_diffuse(values, dimension, clocks[i] - clocks[i - 1], next))
      going = ledger_fail(ledger, "the system gave no random bytes");
    memcpy(values, next, sizeof *values * (size_t)dimension);
    going = going && store_point(publication, from + i, clocks[i], values);
  }
  going = going && store_values(publication, clocks[steps], values);
  sqlite3_free(clocks);
  sqlite3_free(values);
  return going;
}

/* ---- walking inward ------------------------------------------------------------------------------ */

/* One step of a refinement: the tier, its variance, and that of the draw that leads there. */
struct inward_step {
  uint64_t variance, fresh;
};

/*
** The steps from the innermost point (tier `from`, variance `outer`) to publication->at: step i ends
** at tier from - 1 - i. Public parameters alone decide them, so charge and draw plan the same.
*/
static int plan_inward(struct publication *publication, uint64_t outer, int from,
                       struct inward_step **steps) {
  int count = from - publication->at;
  *steps = sqlite3_malloc64(sizeof **steps * (sqlite3_uint64)count);
  if (!*steps) return out_of_memory(publication->host->ledger);
  for (int i = 0; i < count; i++) {
    int tier = from - 1 - i;
    struct inward_step *step = &(*steps)[i];
    step->variance = path_inward(publication->release.sensitivity, tier_rate(publication, tier),
                                 outer, &step->fresh);
    if (!step->variance) return too_far(publication, tier);
    outer = step->variance;
  }
  return 1;
}

/* Charges a refinement and marks the release as in progress. */
static int begin_refining(struct publication *publication, const struct ledger_point *innermost,
                          int from) {
  struct ledger *ledger = publication->host->ledger;
  struct ledger_release *release = &publication->release;
  struct inward_step *steps;
  int count = from - publication->at;
  int going = plan_inward(publication, innermost->clock, from, &steps);
  for (int i = 0; i < count && going; i++) {
    if (steps[i].fresh) release->slack += draw_slack(steps[i].fresh, release->dimension);
  }
  going = going && ledger_release_slack(ledger, release->id, release->slack) &&
          charge(publication, steps[count - 1].variance) &&
          ledger_release_state(ledger, release->id, "released", "charged");
  sqlite3_free(steps);
  publication->refining = 1;
  return going;
}

static int walk_inward(struct publication *publication, const struct ledger_point *innermost,
                       int from, const int64_t *totals) {
  struct ledger *ledger = publication->host->ledger;
  int count = from - publication->at, dimension = publication->release.dimension;
  struct inward_step *steps;
  int64_t *values = sqlite3_malloc64(2 * sizeof *values * (sqlite3_uint64)dimension);
  int going =
      plan_inward(publication, innermost->clock, from, &steps) && (values || out_of_memory(ledger));
  if (going) memcpy(values, innermost->values, sizeof *values * (size_t)dimension);
  uint64_t outer = innermost->clock;
  for (int i = 0; i < count && going; i++) {
    int64_t *next = values + dimension;
    if (release_refine(values, totals, dimension, steps[i].variance, outer, steps[i].fresh, next))
      going = ledger_fail(ledger, "the system gave no random bytes");
    memcpy(values, next, sizeof *values * (size_t)dimension);
    outer = steps[i].variance;
    going = going && store_point(publication, from - 1 - i, outer, values);
  }
  going = going && store_values(publication, outer, values);
  sqlite3_free(steps);
  sqlite3_free(values);
  return going;
}

/* ---- an existing release ------------------------------------------------------------------------- */

static int tier_index(const struct publication *publication, const char *name) {
  int i = 0;
  while (i < publication->tier_count && strcmp(publication->tiers[i].name, name) != 0) i++;
  return i;
}

static int is_usable(struct publication *publication) {
  const struct ledger_release *release = &publication->release;
  struct ledger *ledger = publication->host->ledger;
  if (strcmp(release->state, "charged") == 0)
    return ledger_fail(ledger,
                       "release '%s' is not finished (wait, or free the name with "
                       "dp_discard('%s'))",
                       release->name, release->name);
  if (strcmp(release->state, "failed") == 0)
    return ledger_fail(ledger,
                       "release '%s' failed and its charge stays (free the name with "
                       "dp_discard('%s'))",
                       release->name, release->name);
  return 1;
}

/* Publishes the existing release at publication->at, by whichever way leads there. */
static int publish_existing(struct publication *publication, int may_refine) {
  struct ledger *ledger = publication->host->ledger;
  const char *tier = publication->tiers[publication->at].name;
  const char *name = publication->release.name;
  if (ledger_value_read(ledger, publication->release.id, tier, &publication->value,
                        &publication->variance)) {
    publication->answered = 1;
    return 1;
  }
  struct path path;
  int done = 0;
  if (ledger_path_read(ledger, &publication->release, &path.points, &path.count)) {
    const struct ledger_point *innermost = &path.points[0],
                              *outermost = &path.points[path.count - 1];
    const struct ledger_point *here = 0;
    for (int i = 0; i < path.count; i++) {
      if (strcmp(path.points[i].tier, tier) == 0) here = &path.points[i];
    }
    int first = tier_index(publication, innermost->tier);
    int last = tier_index(publication, outermost->tier);
    if (here) {
      done =
          charge(publication, here->clock) && store_values(publication, here->clock, here->values);
    } else if (publication->at > last) {
      done = walk_outward(publication, outermost, last);
    } else if (publication->at > first) {
      ledger_fail(ledger,
                  "tier '%s' was created after release '%s', between two points of its path "
                  "(make a release of its own)",
                  tier, name);
    } else if (may_refine) {
      done = begin_refining(publication, innermost, first);
    } else {
      ledger_fail(ledger,
                  "release '%s' is not at tier '%s' or inside it (ask for it again, with its "
                  "data and the option \"refine\":true, to pay the difference)",
                  name, tier);
    }
  }
  ledger_path_free(path.points, path.count);
  return done;
}

/* ---- a new release ------------------------------------------------------------------------------- */

static int check_rate(struct publication *publication) {
  double rate = tier_rate(publication, publication->at);
  return (rate >= DESIGN_MIN_RATE && rate <= DESIGN_MAX_RATE) ||
         ledger_fail(publication->host->ledger, "weight %g makes a rate of %g, outside [%g, %g]",
                     publication->release.weight, rate, DESIGN_MIN_RATE, DESIGN_MAX_RATE);
}

static int insert_release(struct publication *publication, const struct request *request) {
  struct ledger *ledger = publication->host->ledger;
  struct ledger_release *release = &publication->release;
  struct ledger_release row = *release; /* its texts are borrowed */
  char *options = request_options(request), *fingerprint = request_fingerprint(request);
  row.name = request->name;
  row.kind = (char *)request->aggregate->kind;
  row.mechanism = request->aggregate->is_ou ? "ou" : "gaussian";
  row.options = options;
  row.fingerprint = fingerprint;
  int stored =
      (options && fingerprint && ledger_release_insert(ledger, &row)) || out_of_memory(ledger);
  release->id = row.id;
  release->name = stored ? sqlite3_mprintf("%s", row.name) : 0;
  release->mechanism = stored ? sqlite3_mprintf("%s", row.mechanism) : 0;
  if (stored && (!release->name || !release->mechanism)) stored = out_of_memory(ledger);
  if (row.name != request->name) sqlite3_free(row.name);
  sqlite3_free(options);
  sqlite3_free(fingerprint);
  return stored;
}

static int publish_new(struct publication *publication, const struct request *request) {
  struct ledger *ledger = publication->host->ledger;
  struct ledger_release *release = &publication->release;
  release->weight = request->weight;
  if (!check_rate(publication)) return 0;
  double rate = tier_rate(publication, publication->at);
  struct design design;
  design_make(&design, request->clip, request->aggregate->nonnegative,
              ledger_adjacency(ledger) == LEDGER_REPLACE, rate);
  uint64_t variance = design_variance(design.sensitivity, rate);
  if (variance < LATTICE_MIN_VARIANCE || variance >= LATTICE_VARIANCE_END)
    return too_far(publication, publication->at);
  release->clip = request->clip;
  release->dimension = 1;
  release->granularity = design.granularity;
  release->shift = design.shift;
  release->sensitivity = design.sensitivity;
  release->slack = draw_slack(variance, 1);
  release->centre = request->centre;
  release->radius = request->radius;
  release->theta = request->theta;
  release->rho = request->rho;
  return insert_release(publication, request) && charge(publication, variance);
}

/* ---- the interface ------------------------------------------------------------------------------- */

/* Loads the tiers, finds the wanted one and, where a name is given, the release: 1 found. */
static int load(struct publication *publication, const char *tier, const char *name) {
  struct ledger *ledger = publication->host->ledger;
  if (!ledger_tiers(ledger, &publication->tiers, &publication->tier_count)) return 0;
  publication->at = ledger_tier_find(ledger, publication->tiers, publication->tier_count, tier);
  return publication->at >= 0 && name && ledger_release_find(ledger, name, &publication->release);
}

static int same_question(struct publication *publication, const struct request *request) {
  char *fingerprint = request_fingerprint(request);
  int same = fingerprint && strcmp(fingerprint, publication->release.fingerprint) == 0;
  sqlite3_free(fingerprint);
  return same ||
         ledger_fail(publication->host->ledger,
                     "release '%s' exists with other parameters: %s %s (choose another name)",
                     request->name, publication->release.kind, publication->release.options);
}

/* Inside a transaction. */
static void begin(struct publication *publication, const struct request *request) {
  int found = load(publication, request->tier, request->name);
  if (found) {
    if (same_question(publication, request) && is_usable(publication))
      publish_existing(publication, request->refine);
  } else if (publication->at >= 0) {
    publish_new(publication, request); /* a no-op after an error */
  }
}

static char *error_of(struct host *host) {
  return sentence("%s", ledger_error(host->ledger));
}

static void publication_open(struct publication *publication, struct host *host) {
  *publication = (struct publication){0};
  publication->host = host;
  publication->at = -1;
}

char *publish_begin(struct publication *publication, struct host *host,
                    const struct request *request) {
  publication_open(publication, host);
  if (ledger_begin(host->ledger)) {
    begin(publication, request);
    ledger_commit(host->ledger);
  }
  if (ledger_failed(host->ledger)) return error_of(host);
  publication->bounds = design_bounds(request->clip, request->aggregate->nonnegative);
  return 0;
}

/* Draws from exact totals, stores points and values, and ends the release; inside a transaction. */
static void finish(struct publication *publication, const int64_t *totals) {
  struct ledger *ledger = publication->host->ledger;
  struct ledger_release *release = &publication->release;
  int64_t values[1];
  if (!ledger_release_state(ledger, release->id, "charged", "released")) return;
  if (publication->refining) {
    struct path path;
    if (ledger_path_read(ledger, release, &path.points, &path.count))
      walk_inward(publication, &path.points[0], tier_index(publication, path.points[0].tier),
                  totals);
    ledger_path_free(path.points, path.count);
  } else if (release_draw(totals, release->dimension, publication->variance, values)) {
    ledger_fail(ledger, "the system gave no random bytes");
  } else {
    store_point(publication, publication->at, publication->variance, values);
    store_values(publication, publication->variance, values);
  }
}

char *publish_finish(struct publication *publication, int128 total) {
  struct ledger *ledger = publication->host->ledger;
  int64_t totals[1] = {lattice_round(total, publication->release.shift)};
  if (ledger_resume(ledger) && ledger_begin(ledger)) {
    finish(publication, totals);
    if (ledger_commit(ledger)) return 0;
  }
  char *error = error_of(publication->host);
  publish_fail(publication);
  return error;
}

int publish_plan(struct publication *publication, struct host *host,
                 const struct request *request) {
  static const int64_t nothing[1] = {0};
  publication_open(publication, host);
  begin(publication, request);
  if (!ledger_failed(host->ledger) && !publication->answered) finish(publication, nothing);
  return !ledger_failed(host->ledger);
}

/* Nobody is left to tell when this fails; the release then stays as it is, never with a new value. */
static void change_state(struct host *host, int64_t release_id, const char *from, const char *to) {
  struct ledger *ledger = host->ledger;
  if (ledger_resume(ledger) && ledger_begin(ledger)) {
    ledger_release_state(ledger, release_id, from, to);
    ledger_commit(ledger);
  }
}

void publish_fail(struct publication *publication) {
  change_state(publication->host, publication->release.id, "charged",
               publication->refining ? "released" : "failed");
}

void publish_revoke(struct host *host, int64_t release_id) {
  change_state(host, release_id, "released", "failed");
}

char *publish_diffuse(struct host *host, const char *name, const char *tier, double *value) {
  struct publication publication;
  struct ledger *ledger = host->ledger;
  publication_open(&publication, host);
  if (ledger_ready(ledger) && ledger_begin(ledger)) {
    if (load(&publication, tier, name)) {
      if (is_usable(&publication)) publish_existing(&publication, 0);
    } else {
      ledger_fail(ledger, "unknown release '%s'", name);
    }
    ledger_commit(ledger);
  }
  *value = publication.value;
  int answered = publication.answered && !ledger_failed(ledger);
  publish_clear(&publication);
  return answered ? 0 : error_of(host);
}

void publish_clear(struct publication *publication) {
  ledger_tiers_free(publication->tiers, publication->tier_count);
  ledger_release_clear(&publication->release);
  *publication = (struct publication){0};
}
