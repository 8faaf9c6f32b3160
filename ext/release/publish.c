/* publish.c: the steps that all releases share: charge, collect, draw, store.
**
**   publish_begin()   checks the request and commits its charge; or answers from the ledger alone
**   (the caller collects rows)
**   publish_finish()  draws, stores the point and the values, and commits before it returns
**   publish_fail()    replaces publish_finish() when some rows did not arrive
**
** The ledger keeps the first error (ledger.h). After an error, every later step does nothing. The
** caller therefore checks for an error once, after the last step.
** Tests: tests/ledger/test_crash.py, tests/release/test_refine.py, tests/functions/test_batch.py */

#include <math.h>
#include <string.h>

#include "ledger/ledger.h"
#include "math/math.h"
#include "mechanism/mechanism.h"
#include "noise/noise.h"
#include "release/internal.h"

SQLITE_EXTENSION_INIT3

/* ---- long computations that run while the ledger is not locked ------------------------------- */

/* Returns whether the list has computations that are not done yet. */
static int deferred_missing(const struct session *session) {
  const struct computation *at = session->deferred.list;
  while (at && at->done) at = at->next;
  return at != 0;
}

/* Clears the error of the session, and does what is on the list. Call this function when no
** transaction is open. An interrupt of the host ends the computation. Returns 1, or 0 after setting
** the session's error. */
static int deferred_compute(struct session *session) {
  error_clear(&session->error);
  int going = ledger_begin_computing(session->ledger);
  for (struct computation *at = session->deferred.list; at && going; at = at->next)
    if (!at->done) going = at->done = at->compute(session, at);
  ledger_rollback(session->ledger);
  return going;
}

void deferred_forget(struct session *session) {
  struct computation *at = session->deferred.list;
  while (at) {
    struct computation *next = at->next;
    at->free(at);
    at = next;
  }
  session->deferred = (struct deferred){0, 0};
}

/* ---- a release and its tiers ----------------------------------------------------------------- */

/* The procedure of the kind has all steps before the release is described. */
static const struct procedure *procedure_of_kind(const struct aggregate *aggregate) {
  return aggregate->procedure ? aggregate->procedure : &path_procedure;
}

const struct procedure *procedure_of(const struct definition *definition) {
  return definition->mechanism == &leaf_draw_mechanism ? &leaf_procedure
                                                       : procedure_of_kind(definition->aggregate);
}

/* Makes an empty publication. */
static void start(struct publication *publication, struct session *session) {
  *publication = (struct publication){.session = session, .position = {.at = -1}};
}

/* Opens a publication, and compares the release with its seal. Returns 1 if the release exists. */
static int load(struct publication *publication, const char *tier, const char *name) {
  const struct ledger_release *release = &publication->definition.release;
  return publication_open(publication, tier, name) &&
         (!release->periods || ledger_trust_release(publication->session->ledger, release->id));
}

/* While an inner tier refines a release, its state is 'charged', but its publications stay usable:
** nobody outside learns of a refinement. */
static int is_usable(struct publication *publication) {
  const struct ledger_release *release = &publication->definition.release;
  struct ledger *ledger = publication->session->ledger;
  uint64_t clock;
  if (ledger_publication_find(ledger, release->id, publication_tier(publication)->name, &clock))
    return 1;
  /* Advice: Another connection is working on it, or a process died. A batch finishes it when it
     runs again. */
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

/* ---- replaying a stored release, at any tier ------------------------------------------------- */

int publish_replay(struct publication *publication, int may_refine) {
  struct ledger *ledger = publication->session->ledger;
  const struct ledger_release *release = &publication->definition.release;
  const char *tier = publication_tier(publication)->name;
  publication->replayed = !may_refine;
  if (!definition_describe_stored(publication)) return 0;
  if (!definition_same_lattice(publication))
    return error_set(ledger_error(ledger),
                     "release '%s' is on a lattice that does not cover its parameters (restore the "
                     "ledger from a backup)",
                     release->name);
  if (ledger_publication_find(ledger, release->id, tier, &publication->position.clock))
    return values_read(publication, tier);
  const char *stays = procedure_of(&publication->definition)->stays;
  if (stays) return error_set(ledger_error(ledger), "release '%s' %s", release->name, stays);
  struct ledger_path path;
  int done = definition_path(publication, &path) &&
             (definition_same_keys(publication) ||
              error_set(ledger_error(ledger),
                        "release '%s' has other keys than when it was charged (restore the ledger "
                        "from a backup)",
                        release->name)) &&
             path_publish(publication, &path, may_refine);
  ledger_path_free(&path);
  return done;
}

/* Publishes a release at an outer tier. */
static int replay_outward(struct publication *publication, struct session *session,
                          const char *name, const char *tier, int draws_only) {
  start(publication, session);
  if (!load(publication, tier, name)) return ledger_release_unknown(session->ledger, name);
  publication->draws_only = draws_only && publication->definition.release.periods;
  return is_usable(publication) && publish_replay(publication, 0);
}

/* The open transaction has stored the release. Publishes it at the outer tiers of the request,
** too. */
static int spread(struct publication *publication) {
  int done = 1;
  for (int i = 0; done && publication->outward && publication->outward[i]; i++) {
    struct publication outer;
    done = replay_outward(&outer, publication->session, publication->definition.release.name,
                          publication->outward[i], 0);
    publish_clear(&outer);
  }
  return done;
}

/* ---- what a new release is ------------------------------------------------------------------- */

/* Makes the row of the new release from the request's parameters, and copies their texts. */
static int make_release(struct publication *publication, const struct request *request) {
  struct ledger_release row = request_release(request);
  row.name = request->name;
  row.state = "charged";
  row.options = 0;
  struct ledger_release *release = &publication->definition.release;
  *release = row;
  /* Every text is copied, or becomes null if memory runs out. */
  char **texts[] = {&release->name,      &release->kind,  &release->mechanism, &release->quantiles,
                    &release->keys,      &release->model, &release->state,     &release->sql,
                    &release->statement, &release->ways,  &release->periods};
  int made = 1;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    if (!*texts[i]) continue;
    *texts[i] = sqlite3_mprintf("%s", *texts[i]);
    made &= *texts[i] != 0;
  }
  if (request->cross_keys)
    publication->definition.cross_keys = cross_keys_retain(request->cross_keys);
  if (request->periods) publication->definition.periods = periods_retain(request->periods);
  release->options = request_options(request);
  release->fingerprint = ledger_fingerprint(&row);
  return (made && release->options && release->fingerprint) ||
         error_set_memory(&publication->session->error);
}

/* Takes over the request's list of keys. */
static void take_keys(struct publication *publication, struct request *request) {
  publication->grid = definition_grid(publication);
  publication->grid.keys = request->key_list;
  request->key_list = 0;
  request->key_count = 0;
}

/* Applies the option t. Sets the weight so that the release costs as much at its tier as the
** Ornstein-Uhlenbeck process with theta and rho costs at time t (Balle et al. 2019, Corollary 7).
** Reports an error if this cost exceeds the rate of the tier. */
static int settle_time(const struct publication *publication, struct request *request) {
  if (isnan(request->t)) return 1;
  const struct ledger_tier *tier = publication_tier(publication);
  struct publication asked = {.session = publication->session,
                              .definition = {.release = request_release(request)}};
  if (!definition_describe(&asked, request->key_count)) return 0;
  double distance =
      ldexp((double)asked.definition.layout.distance, asked.definition.layout.fine_exponent);
  double rate = ou_rate(distance, request->theta, request->rho, request->t);
  if (!(rate <= tier->rate * (1 + 0x1p-40)))
    return error_set(&publication->session->error,
                     "time %g costs a rate of %g, more than the %g of tier '%s' (give a t of at "
                     "least %g, or ask at an inner tier)",
                     request->t, rate, tier->rate, tier->name,
                     ou_time(request->theta, request->rho, distance / tier->rate * (distance / 2)));
  request->weight = fmin(1, rate / tier->rate);
  return 1;
}

/* Charges a series and publishes it at its tier, before the first period. Reads no row of data, so
** the series is complete with this transaction. */
static int declare_series(struct publication *publication, const struct request *request) {
  struct ledger *ledger = publication->session->ledger;
  struct ledger_release *release = &publication->definition.release;
  publication->declared = 1;
  publication->grid = definition_grid(publication);
  release->secret = series_secret();
  if (!release->secret) return no_random_bytes(publication);
  release->unit_type = sqlite3_mprintf("%s", request->unit_type ? request->unit_type : "");
  if (!release->unit_type) return error_set_memory(&publication->session->error);
  return procedure_of(&publication->definition)->charge(publication) &&
         ledger_release_state(ledger, release->id, "charged", "released") &&
         path_declare(publication) &&
         (!request->tables || ledger_policy_admit(ledger, release->id, request->tables));
}

/* Charges for the outer tiers at which the answer will also be published. If a budget does not
** suffice, the release therefore fails before any row is read. */
static int prepay(struct publication *publication, const struct request *request) {
  struct ledger *ledger = publication->session->ledger;
  const struct position *position = &publication->position;
  const char *stays = procedure_of(&publication->definition)->stays;
  for (int i = 0; request->outward && request->outward[i]; i++) {
    int tier = ledger_tier_find(ledger, position->tiers, position->count, request->outward[i]);
    if (tier < 0) return 0;
    if (tier <= position->at)
      return error_set(ledger_error(ledger), "tier '%s' is not outside tier '%s'",
                       request->outward[i], position->tiers[position->at].name);
    if (stays)
      return error_set(ledger_error(ledger),
                       "every answer is also published at tier '%s', but this one %s",
                       request->outward[i], stays);
    if (!path_prepay(publication, tier)) return 0;
  }
  return 1;
}

/* ---- beginning a release --------------------------------------------------------------------- */

/* Returns whether two texts are the same. A null pointer is the same as a null pointer only. */
static int same_text(const char *one, const char *other) {
  return one && other ? strcmp(one, other) == 0 : one == other;
}

/* Checks that the release was made by the same text: that of the question, or of the question whose
** states were merged. dp_plan() may have no text, and then plans for whatever the release stands
** for. */
static int same_query(struct publication *publication, const struct request *request) {
  const struct ledger_release *release = &publication->definition.release;
  if (!request->sql && !request->statement) return 1;
  return (same_text(release->sql, request->sql) &&
          same_text(release->statement, request->statement)) ||
         error_set(&publication->session->error,
                   "release '%s' exists with another query: %s%s%s (choose another name)",
                   request->name, release->statement ? release->statement : "",
                   release->statement && release->sql ? " of " : "",
                   release->sql ? release->sql : "");
}

static int same_question(struct publication *publication, const struct request *request) {
  const struct ledger_release *stored = &publication->definition.release;
  struct ledger_release asked = request_release(request);
  char *fingerprint = ledger_fingerprint(&asked);
  int same = fingerprint && strcmp(fingerprint, stored->fingerprint) == 0;
  sqlite3_free(fingerprint);
  /* Advice: Whether a median is
     drawn (`"exponential"`) must be [decided before](choosing.md#a-median-or-a-few-quantiles). */
  return same ||
         error_set(&publication->session->error,
                   "release '%s' exists with other parameters: %s %s%s%s%s%s (choose another name)",
                   request->name, stored->kind, stored->options, stored->keys ? ", keys " : "",
                   stored->keys ? stored->keys : "", stored->periods ? ", periods " : "",
                   stored->periods ? stored->periods : "");
}

/* Returns whether a batch can continue a release: it was charged, has no point, and is not a merge,
** which has no question. All functions store the point before they answer, so nobody has seen a
** value. */
static int can_resume(const struct publication *publication) {
  const struct ledger_release *release = &publication->definition.release;
  return strcmp(release->state, "charged") == 0 && !release->statement &&
         !ledger_path_exists(publication->session->ledger, release->id);
}

static int resume(struct publication *publication, struct request *request) {
  if (!definition_describe(publication, request->key_count)) return 0;
  take_keys(publication, request);
  return procedure_of(&publication->definition)->charge(publication) &&
         prepay(publication, request);
}

/* Replays a release that exists. A batch also continues a release that was charged, and passes over
** one that failed. */
static void begin_existing(struct publication *publication, struct request *request) {
  const char *state = publication->definition.release.state;
  if (!same_question(publication, request) || !same_query(publication, request)) return;
  if (request->resumes && strcmp(state, "failed") == 0) {
    publication->failed = 1;
  } else if (request->resumes && can_resume(publication)) {
    resume(publication, request);
  } else if (is_usable(publication) &&
             publish_replay(publication, request->refine && !request->resumes) &&
             request->resumes) {
    spread(publication);
  }
}

/* Charges a new release. */
static void begin_new(struct publication *publication, struct request *request) {
  if (!make_release(publication, request) ||
      !definition_describe(publication, request->key_count) || !definition_check_wider(publication))
    return;
  const struct ledger_release *release = &publication->definition.release;
  double rate = release->weight * publication_tier(publication)->rate;
  double most = mechanism_most_rate(publication->definition.mechanism);
  if (!(rate >= DESIGN_MIN_RATE && rate <= most)) {
    error_set(&publication->session->error, "%s a rate outside the [%g, %g] of mechanism '%s'",
              release->weight == 1 ? "the tier has" : "weight makes", DESIGN_MIN_RATE, most,
              release->mechanism);
  } else if (publication->definition.periods) {
    if (declare_series(publication, request)) spread(publication);
  } else {
    take_keys(publication, request);
    if (procedure_of(&publication->definition)->charge(publication)) prepay(publication, request);
  }
}

/* Replays an existing release or charges a new release. Call begin() inside a transaction. */
static void begin(struct publication *publication, struct session *session,
                  struct request *request) {
  const struct procedure *procedure = procedure_of_kind(request->aggregate);
  start(publication, session);
  int found = load(publication, request->tier, request->name);
  publication->outward = request->outward;
  if (publication->position.at < 0 || !request_default_mechanism(request, publication, found) ||
      !settle_time(publication, request) ||
      (procedure->settle && !procedure->settle(publication, request, found)))
    return;
  if (found) {
    begin_existing(publication, request);
  } else if (!error_is_set(&session->error)) {
    begin_new(publication, request);
  }
}

int publish_enter(struct publication *publication, struct session *session,
                  struct request *request) {
  begin(publication, session, request);
  if (!publication->answered && !publication->failed)
    ledger_policy_admit(session->ledger, publication->definition.release.id, request->tables);
  return !error_is_set(&session->error);
}

int publish_prepare(struct session *session, const struct request *request) {
  struct publication publication;
  struct ledger *ledger = session->ledger;
  const struct procedure *procedure = procedure_of_kind(request->aggregate);
  if (request->periods && !request->name)
    return error_set(ledger_error(ledger),
                     "periods need a name among the options (dp_append asks for the series "
                     "by it)");
  if (!procedure->prepare) return 1;
  if (!ledger_begin_reading(ledger)) return 0;
  start(&publication, session);
  int found = load(&publication, request->tier, request->name);
  int is_charged = found && strcmp(publication.definition.release.state, "charged") == 0;
  session->deferred.defers = 1;
  if (publication.position.at >= 0 && (!found || (request->resumes && is_charged)))
    procedure->prepare(&publication, request);
  session->deferred.defers = 0;
  ledger_rollback(ledger);
  publish_clear(&publication);
  return deferred_compute(session);
}

int publish_begin(struct publication *publication, struct session *session,
                  struct request *request) {
  if (publish_prepare(session, request) && ledger_begin(session->ledger)) {
    publish_enter(publication, session, request);
    ledger_commit(session->ledger);
  } else {
    start(publication, session);
  }
  deferred_forget(session);
  return !error_is_set(&session->error);
}

/* ---- the end of a release -------------------------------------------------------------------- */

/* For a release with private keys, copies the keys of the rows into the publication. */
static int take_private_keys(struct publication *publication, const struct ledger_grid *grid) {
  if (!publication->definition.release.max_groups) return 1;
  char **keys = sqlite3_malloc64(sizeof *keys * (sqlite3_uint64)(grid->cells + 1));
  if (!keys) return error_set_memory(&publication->session->error);
  publication->grid = (struct ledger_grid){keys, 0, grid->components, grid->extra};
  for (int i = 0; i < grid->cells; i++) {
    keys[i] = sqlite3_mprintf("%s", grid->keys[i]);
    if (!keys[i]) return error_set_memory(&publication->session->error);
    publication->grid.cells++;
  }
  return 1;
}

/* Draws the result from the exact totals, but does not store it. Call draw() inside a transaction,
** or from draw_early(). */
static int draw(struct publication *publication, const struct totals *totals) {
  const struct definition *definition = &publication->definition;
  if (!take_private_keys(publication, &totals->grid)) return 0;
  size_t dimension = grid_size(&publication->grid);
  int64_t *rounded = sqlite3_malloc64(sizeof *rounded * (dimension + 1));
  if (!rounded) return error_set_memory(&publication->session->error);
  for (size_t i = 0; i < dimension; i++)
    rounded[i] = totals->values ? lattice_round(totals->values[i], definition->release.shift) : 0;
  int drawn = procedure_of(definition)->draw(publication, rounded);
  sqlite3_free(rounded);
  return drawn;
}

/* Draws what takes long before the transaction begins (kinds.h). */
static int draw_early(struct publication *publication, const struct totals *totals) {
  struct ledger *ledger = publication->session->ledger;
  if (!procedure_of(&publication->definition)->draws_early) return 1;
  int drawn = ledger_begin_computing(ledger) && draw(publication, totals);
  ledger_rollback(ledger);
  return drawn;
}

/* Stores the drawn result inside the transaction, and marks the release as released. */
static int store(struct publication *publication) {
  return ledger_release_state(publication->session->ledger, publication->definition.release.id,
                              "charged", "released") &&
         procedure_of(&publication->definition)->keep(publication);
}

/* Returns whether another process has finished the release in the meantime (dp_batch()). If so,
** sets the answer from the stored values, and the caller draws nothing. */
static int is_finished(struct publication *publication) {
  struct ledger_release now;
  const struct position *position = &publication->position;
  if (position->refining ||
      !ledger_release_get(publication->session->ledger, publication->definition.release.id, &now))
    return 0;
  int finished = strcmp(now.state, "released") == 0;
  ledger_release_clear(&now);
  publication->replayed = finished;
  return finished && values_read(publication, position->tiers[position->at].name);
}

/* One commit stores the release and its publications at outer tiers. If the release itself could be
** stored but not the outer publications, the function stores the release alone. The caller then
** publishes it at the outer tiers and gets the error. */
int publish_finish(struct publication *publication, const struct totals *totals) {
  struct ledger *ledger = publication->session->ledger;
  int alone = 0;
  if (draw_early(publication, totals) && ledger_resume_patiently(ledger) &&
      ledger_begin_ending(ledger)) {
    if (!is_finished(publication) && draw(publication, totals) && store(publication)) {
      publication->spread = spread(publication);
      alone = !publication->spread;
    }
    if (ledger_commit(ledger)) return 1;
  }
  struct error error = error_take(ledger_error(ledger));
  int kept = alone && ledger_resume(ledger) && ledger_begin_ending(ledger) && store(publication) &&
             ledger_commit(ledger);
  if (kept) error_clear(&error);
  error_restore(ledger_error(ledger), error);
  if (!kept) publish_fail(publication);
  return kept;
}

int publish_plan(struct publication *publication, struct session *session,
                 struct request *request) {
  begin(publication, session, request);
  if (!error_is_set(ledger_error(session->ledger)) && !publication->answered &&
      !publication->failed) {
    struct totals nothing = {definition_grid(publication), 0};
    publication->planned = 1;
    if (draw(publication, &nothing)) store(publication);
  }
  return !error_is_set(ledger_error(session->ledger));
}

/* If the transaction of its own fails, the release keeps its old state and gets no value. The
** session keeps the error that was set before the call. */
void publish_fail(struct publication *publication) {
  struct ledger *ledger = publication->session->ledger;
  struct error error = error_take(&publication->session->error);
  if (ledger_resume(ledger) && ledger_begin_ending(ledger)) {
    ledger_release_state(ledger, publication->definition.release.id, "charged",
                         publication->position.refining ? "released" : "failed");
    ledger_commit(ledger);
  }
  error_restore(&publication->session->error, error);
  error_add(&publication->session->error, " (the charge stays)");
}

/* ---- dp_diffuse() and dp_mix() --------------------------------------------------------------- */

/* Does the work of publish_diffuse() in one transaction. With draws_only, this transaction is the
** first of two for a series (series_publish()). */
static void diffuse_once(struct publication *publication, struct session *session, const char *name,
                         const char *tier, const struct mixing *mixing, int draws_only) {
  struct ledger *ledger = session->ledger;
  start(publication, session);
  if (!ledger_begin(ledger)) return;
  if (!mixing) {
    replay_outward(publication, session, name, tier, draws_only);
  } else if (!load(publication, tier, name)) {
    ledger_release_unknown(ledger, name);
  } else if (publication->definition.release.periods) {
    error_set(ledger_error(ledger), "release '%s' is a series, which no kernel can change", name);
  } else if (is_usable(publication) && definition_describe_stored(publication)) {
    mixing->mix(publication, mixing);
  }
  if (publication->draws_only && !publication->answered && !error_is_set(&session->error)) {
    int64_t seal = ledger_last_seal(ledger);
    ledger_rollback(ledger);
    if (!error_is_set(&session->error)) series_publish(publication, seal);
  } else {
    ledger_commit(ledger);
  }
}

/* A series whose ledger changes while its figures are computed is published in one transaction. If
** another transaction needs what takes long to compute, it fails. The function computes it without
** a transaction, and starts again. The list of computations only grows, so the loop ends when it
** has everything that lies between the release and the tier. */
int publish_diffuse(struct publication *publication, struct session *session, const char *name,
                    const char *tier, const struct mixing *mixing) {
  int again = ledger_ready(session->ledger), draws_only = 1;
  start(publication, session);
  while (again) {
    session->deferred.defers = mixing != 0;
    diffuse_once(publication, session, name, tier, mixing, draws_only);
    int is_stale = publication->draws_only && !publication->answered;
    draws_only = 0;
    again = (is_stale && !error_is_set(&session->error)) ||
            (deferred_missing(session) && deferred_compute(session));
    if (again) publish_clear(publication);
  }
  deferred_forget(session);
  return publication->answered && !error_is_set(&session->error);
}
