/*
** models.c: see models.h; and what is done with models that exist: dp_predict(), dp_sgd_profile().
**
** The text of a model is a JSON object in one fixed form, and the model is what its text says: it
** is read back before it is used, with the extension's own reader of numbers, so that a model is
** the same whoever opens the ledger.
*/
#include "functions/models.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "functions/functions.h"
#include "functions/statement_guard.h"
#include "base/vector_text.h"
#include "ledger/accountant.h"
#include "math/gaussian.h"
#include "math/iteration.h"
#include "math/laplace.h"
#include "math/renyi.h"
#include "math/rounding.h"
#include "mechanism/families.h"
#include "mechanism/hiding.h"

SQLITE_EXTENSION_INIT3

static const char *const losses[LOSSES] = {
    [LOSS_LOGISTIC] = "logistic", [LOSS_SQUARED] = "squared", [LOSS_HUBER] = "huber"};

/* ---- the text of a model --------------------------------------------------------------------- */

/* What a number of a model may be. */
struct field {
  const char *name;
  size_t offset;
  double low, high;
  int whole, optional;
};

#define IN(member) offsetof(struct descent, member)

/* In the order of the text; the variance is last, for it follows from the others. */
static const struct field fields[] = {
    {"n", IN(rows), 1, SGD_MAX_ROWS, 1, 0},
    {"dim", IN(dim), 1, LAYOUT_MAX_SIZE, 1, 0},
    {"clip", IN(clip), LAYOUT_MIN_CLIP, LAYOUT_MAX_CLIP, 0, 0},
    {"radius", IN(radius), LAYOUT_MIN_CLIP, LAYOUT_MAX_CLIP, 0, 0},
    {"l2", IN(l2), 0, LAYOUT_MAX_CLIP, 0, 0},
    {"bound", IN(bound), 0, LAYOUT_MAX_CLIP, 0, 1},
    {"threshold", IN(threshold), 0, LAYOUT_MAX_CLIP, 0, 1},
    {"public_rows", IN(public_rows), 0, SGD_MAX_PUBLIC, 1, 0},
    {"eta", IN(eta), LAYOUT_MIN_CLIP, LAYOUT_MAX_CLIP, 0, 0},
    {"default_eta", IN(default_eta), 0, 1, 1, 0},
    {"random_stop", IN(random_stop), 0, 1, 1, 0},
    {"decay", IN(decay), 0, SGD_MAX_DECAY, 0, 1},
    {"power", IN(power), 0.5, 1, 0, 1},
    {"laplace", IN(laplace), 1, 1, 1, 1},
    {"lipschitz", IN(lipschitz), LAYOUT_MIN_CLIP, LAYOUT_MAX_CLIP, 0, 0},
    {"beta", IN(beta), 0, LAYOUT_MAX_CLIP, 0, 0},
    {"variance", IN(variance), 0, SGD_VARIANCE_END, 1, 1},
};
#define FIELDS ((int)(sizeof fields / sizeof *fields))

static double *member_of(struct descent *descent, const struct field *field) {
  return (double *)((char *)descent + field->offset);
}

static char *model_text(const struct descent *descent) {
  struct descent copy = *descent;
  sqlite3_str *text = sqlite3_str_new(0);
  sqlite3_str_appendf(text, "{\"loss\":\"%s\"", losses[descent->loss]);
  for (int i = 0; i < FIELDS; i++) {
    double x = *member_of(&copy, &fields[i]);
    if (isnan(x)) continue;
    sqlite3_str_appendf(text, ",\"%s\":", fields[i].name);
    json_append_number(text, x);
  }
  sqlite3_str_appendall(text, "}");
  return sqlite3_str_finish(text);
}

/* What follows "name": in the text; null where there is nothing. */
static const char *value_after(const char *text, const char *name) {
  char wanted[40];
  snprintf(wanted, sizeof wanted, "\"%s\":", name);
  const char *found = strstr(text, wanted);
  return found ? found + strlen(wanted) : 0;
}

static int read_field(const char *text, const struct field *field, double *x) {
  char number[40];
  const char *value = value_after(text, field->name);
  *x = NAN;
  if (!value) return field->optional;
  size_t length = strcspn(value, ",}");
  if (length >= sizeof number) return 0;
  memcpy(number, value, length);
  number[length] = 0;
  return vector_text_list(number, x, 1) == 1 && *x >= field->low && *x <= field->high &&
         (!field->whole || *x == floor(*x));
}

static int loss_find(const char *name, size_t length) {
  int i = 0;
  while (i < LOSSES && (strlen(losses[i]) != length || strncmp(losses[i], name, length) != 0)) i++;
  return i;
}

int models_read(const char *text, struct descent *descent) {
  *descent = (struct descent){0};
  const char *loss = text ? value_after(text, "loss") : 0;
  if (!loss || *loss++ != '"') return 0;
  int which = loss_find(loss, strcspn(loss, "\"")), sound = which < LOSSES;
  descent->loss = (enum loss)which;
  for (int i = 0; i < FIELDS && sound; i++)
    sound = read_field(text, &fields[i], member_of(descent, &fields[i]));
  return sound;
}

/* ---- requests -------------------------------------------------------------------------------- */

static char *known_losses(void) {
  return sqlite3_mprintf("'%s', '%s', '%s'", losses[0], losses[1], losses[2]);
}

static char *finish_loss(struct request *request) {
  struct descent *descent = &request->descent;
  if (!request->loss) return error_message("loss is missing (one of %z)", known_losses());
  int which = loss_find(request->loss, strlen(request->loss));
  if (which == LOSSES) return error_message("unknown loss (known losses: %z)", known_losses());
  descent->loss = (enum loss)which;
  int needs_bound = which == LOSS_SQUARED, has_threshold = which == LOSS_HUBER;
  if (needs_bound && isnan(descent->bound))
    return error_message("bound is missing (y is clipped to [-bound, bound])");
  if (which == LOSS_LOGISTIC && !isnan(descent->bound))
    return error_message("the loss 'logistic' has no bound: y counts as 1 above 1/2, else as 0");
  if (has_threshold == isnan(descent->threshold))
    return has_threshold
               ? error_message("threshold is missing (where the Huber loss becomes linear)")
               : error_message("the loss '%s' has no threshold", losses[which]);
  return 0;
}

/* How learning rates fall: eta/(1 + decay (i - 1))^power. */
static const struct schedule {
  const char *name;
  double power;
} schedules[] = {{"constant", 0}, {"sqrt", 0.5}, {"inverse", 1}};

static char *finish_schedule(struct request *request) {
  struct descent *descent = &request->descent;
  const char *name = request->schedule ? request->schedule : schedules[0].name;
  const struct schedule *schedule = 0;
  for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
    if (strcmp(name, schedules[i].name) == 0) schedule = &schedules[i];
  }
  if (!schedule) return error_message("schedule must be 'constant', 'sqrt' or 'inverse'");
  descent->power = NAN;
  if (!(schedule->power > 0))
    return isnan(descent->decay) ? 0
                                 : error_message("decay is for the schedules 'sqrt' and 'inverse'");
  descent->power = schedule->power;
  if (isnan(descent->decay)) descent->decay = 1;
  if (descent->rows + descent->public_rows > SGD_MAX_STEPS)
    return error_message("a schedule is for at most %.0f rows", SGD_MAX_STEPS);
  return descent->random_stop > 0
             ? error_message(
                   "a schedule and a random stop do not go together (leave one of them out)")
             : 0;
}

/* The mechanism is 'gaussian' or 'laplace'; with public rows or a random stop it gets a name. */
static char *finish_mechanism(struct request *request) {
  struct descent *descent = &request->descent;
  const struct mechanism *asked = mechanism_find(request->aggregate, request->mechanism);
  int is_random = descent->random_stop > 0;
  descent->laplace = asked == &sgd_laplace ? 1 : NAN;
  if (asked != &sgd_laplace && asked != &sgd_gaussian)
    return error_message("mechanism must be '%s' or '%s' for a model", sgd_gaussian.name,
                         sgd_laplace.name);
  if (asked == &sgd_laplace && is_random)
    return error_message("a random stop has Gaussian noise (leave out the mechanism, or the stop)");
  const struct mechanism *mechanism = descent_mechanism(descent);
  if (mechanism == asked) return 0;
  sqlite3_free(request->mechanism);
  request->mechanism = sqlite3_mprintf("%s", mechanism->name);
  return request->mechanism ? 0 : error_message("out of memory");
}

static char *finish_stop(struct request *request) {
  struct descent *descent = &request->descent;
  const char *stop = request->stop ? request->stop : "last";
  int is_random = strcmp(stop, "random") == 0, has_share = !isnan(request->key_share);
  descent->random_stop = is_random;
  if (!is_random && strcmp(stop, "last") != 0)
    return error_message("stop must be 'last' or 'random'");
  if (is_random && descent->public_rows > 0)
    return error_message(
        "public_rows and a random stop do not go together (leave one of them out)");
  if (!is_random && has_share)
    return error_message(
        "key_share is for a random stop: it takes that part of the tier's delta_keys");
  if (is_random && !has_share) request->key_share = DEFAULT_KEY_SHARE;
  return 0;
}

static int is_sound(struct descent *descent) {
  int sound = 1;
  for (int i = 0; i < FIELDS; i++) {
    double x = *member_of(descent, &fields[i]);
    sound = sound && (isnan(x) || (x >= fields[i].low && x <= fields[i].high));
  }
  double step = descent_step(descent);
  return sound && step >= LAYOUT_MIN_CLIP && step <= LAYOUT_MAX_CLIP;
}

char *models_finish(struct request *request) {
  struct descent *descent = &request->descent;
  descent->dim = request->size;
  descent->clip = request->clip;
  if (request->refine)
    return error_message("a model cannot be refined (make a release of its own at an inner tier)");
  if (isnan(descent->rows)) return error_message("n is missing (the public number of rows)");
  if (isnan(descent->radius))
    return error_message("radius is missing (of the ball that the coefficients stay in)");
  if (isnan(descent->l2)) descent->l2 = 0;
  if (isnan(descent->public_rows)) descent->public_rows = 0;
  char *error = finish_loss(request);
  if (!error) error = finish_stop(request);
  if (!error) error = finish_schedule(request);
  if (!error) error = finish_mechanism(request);
  if (error) return error;
  descent_derive(descent);
  double largest = descent_largest_eta(descent);
  if (descent->eta > largest * (1 + 0x1p-50))
    return error_message("eta must be at most 2/(beta + l2), where beta is the smoothness of the "
                         "regularised loss (leave eta out for the default)");
  descent->default_eta = isnan(descent->eta);
  return 0;
}

/* ---- what depends on the tier ---------------------------------------------------------------- */

/*
** Whether a number is read back as it was written: the reader may be off in the last place
** (vector_text.c).
*/
static int is_stable(double x) {
  double read = NAN;
  sqlite3_str *text = sqlite3_str_new(0);
  json_append_number(text, x);
  char *written = sqlite3_str_finish(text);
  int stable = written && vector_text_list(written, &read, 1) && read == x;
  sqlite3_free(written);
  return stable;
}

/*
** x with three digits, rounded down to one that is stable: a replay finds it in the text of its
** model.
*/
static double three_digits(double x) {
  double exponent = floor(log10(x)) - 2, rounded;
  char text[40];
  for (int digits = (int)(x / pow(10, exponent)); digits > 0; digits--) {
    snprintf(text, sizeof text, "%de%d", digits, (int)exponent);
    if (vector_text_list(text, &rounded, 1) && rounded > 0 && is_stable(rounded)) return rounded;
  }
  return x;
}

/*
** What one row may cost at a tier: a rate; and for a random stop the same as an epsilon, with a
** delta.
*/
struct price {
  double rate, epsilon, delta;
};

static struct price price_of(const struct ledger_tier *tier, double weight, double share) {
  double rate = weight * tier->rate;
  return (struct price){rate, pure_epsilon_of_rate(rate),
                        isnan(share) ? 0 : share * (1 - 0x1p-40) * tier->delta_keys};
}

/* ---- what public rows hide ------------------------------------------------------------------- */

int models_paid(struct publication *publication, uint64_t clock, const double *curve) {
  const struct ledger_release *release = &publication->release;
  const struct mechanism *mechanism = publication->mechanism;
  struct terms terms = {.shape = &publication->shape,
                        .descent = &publication->descent,
                        .shift = release->shift,
                        .sensitivity = release->sensitivity,
                        .rate = INFINITY};
  struct cost cost;
  if (!(publication->descent.public_rows > 0) || !curve) return 1;
  int paid = mechanism->cost(mechanism, &terms, clock, &publication->room, &cost);
  if (!paid) return error_set_memory(ledger_error(publication->host->ledger));
  for (int i = 0; i < RENYI_ORDERS; i++)
    paid = paid && curve[i] >= cost.curve(cost.parameters, renyi_order(i)) * (1 - 1e-9);
  cost_room_clear(&publication->room);
  return paid;
}

/* ---- the learning rate and the noise --------------------------------------------------------- */

/* A rate with about the noise of a step, for the learning rate. */
static double rate_of_step(const struct descent *descent, const struct price *price) {
  if (!(descent->random_stop > 0)) return price->rate * (1 + descent->public_rows);
  return gaussian_rate(price->epsilon, fmin(price->delta * descent->rows, 0.5));
}

/*
** The learning rate. On a quadratic loss of any curvature the last point is off by no more than
** |w*|^2/(4 e eta steps) + eta G^2/4, where w* is the solution and G^2 bounds the mean square of a
** gradient with its noise: least at eta = |w*|/(G sqrt(e steps)), for a solution half-way out; at
** most what the theorems admit.
*/
static double default_eta(const struct descent *descent, const struct price *price) {
  double steps = descent->rows + descent->public_rows;
  double noise = 2 * descent->lipschitz / sqrt(2 * rate_of_step(descent, price));
  if (descent->laplace > 0)
    noise = 2 * descent->lipschitz * sqrt(2 * descent->dim) / laplace_distance(price->rate);
  double gradient = hypot(descent->lipschitz, noise * sqrt(descent->dim));
  double eta = descent->radius / 2 / gradient / sqrt(M_E * steps);
  eta = fmin(eta, descent_largest_eta(descent));
  return eta >= LAYOUT_MIN_CLIP ? three_digits(eta) : eta; /* refused by is_sound() */
}

static struct contribution question_of(const struct descent *descent) {
  return (struct contribution){
      .family = &family_sgd, .clip = descent_step(descent), .size = (int)descent->dim};
}

/* Sets the noise, from the model as its text says it. */
static int settle_noise(struct ledger *ledger, struct descent *descent, const struct price *price) {
  char *text = model_text(descent);
  struct descent said;
  int known = text && models_read(text, &said);
  sqlite3_free(text);
  if (!known) return error_set_memory(ledger_error(ledger));
  struct contribution question = question_of(&said);
  struct layout shape;
  struct design design;
  uint64_t variance;
  layout_make(&shape, &question, 0, 1);
  descent_design(&said, &shape, price->rate, &design, &variance);
  said.variance = (double)variance;
  if (said.random_stop > 0)
    hiding_stop_variance(&said, &shape, &design, price->epsilon, price->delta);
  descent->variance = said.variance;
  if (!(said.variance >= LATTICE_MIN_VARIANCE && said.variance < SGD_VARIANCE_END))
    return said.random_stop > 0
               ? error_set(ledger_error(ledger),
                           "there is no noise on the lattice with which a random stop has the "
                           "epsilon and the delta of its tier")
               : error_set(ledger_error(ledger),
                           "there is no noise on the lattice with which the last private row "
                           "has the rate of its tier (give fewer public_rows)");
  if (ldexp(said.radius, -design.granularity) <= SGD_MAX_RADIUS) return 1;
  return error_set(
      ledger_error(ledger),
      "eta is too small for the lattice: the noise of a step must be at least 2^-20 of "
      "the radius");
}

static int check_terms(struct ledger *ledger) {
  return (ledger_protects(ledger) == LEDGER_ROWS && ledger_adjacency(ledger) == LEDGER_REPLACE) ||
         error_set(ledger_error(ledger),
                   "a model needs a ledger that protects rows, with replaced rows as neighbours, "
                   "and this one does not");
}

int models_settle(struct publication *publication, struct request *request, int found) {
  struct ledger *ledger = publication->host->ledger;
  struct descent descent = request->descent, stored;
  if (request->aggregate->family->statistic != STATISTIC_MODEL) return 1;
  if (!check_terms(ledger)) return 0;
  int known = found && models_read(publication->release.model, &stored);
  const struct ledger_tier *tier = &publication->tiers[publication->at];
  struct price price = price_of(tier, request->weight, request->key_share);
  if (!known && !(price.rate >= DESIGN_MIN_RATE && price.rate <= DESIGN_MAX_RATE))
    return error_set(ledger_error(ledger), "weight makes a rate outside the [%g, %g] of a model",
                     DESIGN_MIN_RATE, DESIGN_MAX_RATE);
  if (descent.random_stop > 0 && !(price.delta > 0))
    return error_set(
        ledger_error(ledger),
        "tier '%s' has no delta_keys, of which a random stop takes a share (use the stop 'last')",
        tier->name);
  if (isnan(descent.eta))
    descent.eta = known && stored.default_eta > 0 ? stored.eta : default_eta(&descent, &price);
  if (!is_sound(&descent))
    return error_set(ledger_error(ledger),
                     "clip, radius, bound and eta are too large or too small together");
  descent.variance = known ? stored.variance : NAN;
  if (!known && !settle_noise(ledger, &descent, &price)) return 0;
  sqlite3_free(request->model);
  request->model = model_text(&descent);
  return request->model || error_set_memory(ledger_error(ledger));
}

int models_diffusible(const struct publication *publication, int from, uint64_t clock) {
  struct ledger *ledger = publication->host->ledger;
  const struct ledger_release *release = &publication->release;
  const struct ledger_tier *tiers = publication->tiers;
  const char *tier = tiers[publication->at].name;
  if (publication->shape.family->statistic != STATISTIC_MODEL) return 1;
  if (publication->descent.random_stop > 0)
    return error_set(ledger_error(ledger),
                     "release '%s' stopped at random: what noise on top of it would cost a tier is "
                     "not known (make a release of its own at tier '%s')",
                     release->name, tier);
  for (int i = from + 1; i <= publication->at; i++) {
    if (!tiers[i].accountant->covers_diffused_models)
      return error_set(ledger_error(ledger),
                       "tier '%s' has %s, and what noise on top of a model costs is proved for RDP "
                       "alone (make a release of its own at tier '%s')",
                       tiers[i].name, tiers[i].accountant->title, tier);
  }
  if (descent_diffusible(&publication->descent, &publication->shape, release->shift, clock))
    return 1;
  if (publication->descent.laplace > 0)
    return error_set(ledger_error(ledger),
                     "release '%s' has Laplace noise, and its steps do not bring points closer "
                     "by more than they "
                     "round: noise on top would not hide earlier rows as well as the last (give "
                     "l2 above 0 and a "
                     "constant schedule, or make a release of its own at tier '%s')",
                     release->name, tier);
  return error_set(
      ledger_error(ledger),
      "tier '%s' is too far from that of release '%s' for its rows (make a release of its own)",
      tier, release->name);
}

/* ---- models that exist ----------------------------------------------------------------------- */

/* A finished model of that name. 0 with the reason in the ledger; the caller clears the release. */
static int find_model(struct ledger *ledger, const char *name, struct ledger_release *release,
                      struct descent *descent) {
  *release = (struct ledger_release){0};
  if (!ledger_release_find(ledger, name, release))
    return error_set(ledger_error(ledger), "unknown release (dp_release lists them)");
  const struct aggregate *aggregate = aggregate_find(release->kind);
  if (!aggregate || aggregate->family->statistic != STATISTIC_MODEL)
    return error_set(ledger_error(ledger), "release '%s' is no model but a '%s'", name,
                     release->kind);
  if (!models_read(release->model, descent))
    return error_set(ledger_error(ledger), "release '%s' has an impossible model", name);
  return strcmp(release->state, "released") == 0 ||
         error_set(ledger_error(ledger), "release '%s' is %s", name, release->state);
}

/* The published coefficients. */
struct coefficients {
  double w[LAYOUT_MAX_SIZE];
  int count;
};

static int take_coefficient(void *context, const struct ledger_value *value) {
  struct coefficients *coefficients = context;
  if (coefficients->count == LAYOUT_MAX_SIZE) return 0;
  coefficients->w[coefficients->count++] = value->value;
  return 1;
}

static int read_coefficients(struct ledger *ledger, const char *name, const char *tier,
                             struct descent *descent, struct coefficients *coefficients) {
  struct ledger_release release;
  struct ledger_tier *tiers;
  int count;
  coefficients->count = 0;
  if (ledger_tiers(ledger, &tiers, &count)) ledger_tier_find(ledger, tiers, count, tier);
  ledger_tiers_free(tiers, count);
  if (find_model(ledger, name, &release, descent)) {
    ledger_values(ledger, release.id, tier, take_coefficient, coefficients);
    if (coefficients->count != (int)descent->dim)
      error_set(ledger_error(ledger),
                "release '%s' is not published at tier '%s' (dp_diffuse() may do it)", name, tier);
  }
  ledger_release_clear(&release);
  return !error_is_set(ledger_error(ledger));
}

/* The score of one row; features must be what the model was trained on. */
static void predict(sqlite3_context *context, const struct descent *descent,
                    const struct coefficients *coefficients, sqlite3_value *value) {
  double features[LAYOUT_MAX_SIZE], score = 0;
  int dim = (int)descent->dim;
  if (!vector_text_read(value, features, dim)) {
    function_error(context,
                   "features must be a JSON array of %d numbers, or a blob of as many floats", dim);
    return;
  }
  descent_clip(descent, features);
  for (int j = 0; j < dim; j++) score += coefficients->w[j] * features[j];
  /* The derivative of the logistic loss for y = 0 is the probability of 1. */
  sqlite3_result_double(context,
                        descent->loss == LOSS_LOGISTIC ? descent_slope(descent, score, 0) : score);
}

/*
** dp_predict(name, tier, features) -> REAL
** What a model that is published at the tier says of a row: w.x, or the probability of y = 1 for
** the loss 'logistic'. features as for dp_sgd(), clipped alike; NULL gives NULL, anything malformed
** is an error. Reads published coefficients alone: it costs nothing.
*/
static void dp_predict(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  struct ledger *ledger = host_of(context)->ledger;
  const char *name = argument_text(context, argv[0], "name");
  const char *tier = name ? argument_text(context, argv[1], "tier") : 0;
  if (!tier) return;
  struct descent descent = {0};
  struct coefficients coefficients;
  if (ledger_ready(ledger) && guard_begin_reading(host_of(context))) {
    read_coefficients(ledger, name, tier, &descent, &coefficients);
    ledger_rollback(ledger);
  }
  if (error_is_set(ledger_error(ledger))) {
    function_error(context, "%s", error_text(ledger_error(ledger)));
  } else if (sqlite3_value_type(argv[2]) != SQLITE_NULL) {
    predict(context, &descent, &coefficients, argv[2]);
  }
}

/* ---- the privacy of every index -------------------------------------------------------------- */

#define MOST_INDEXES 5000000 /* one text holds no more */

/*
** The tier at which a model was drawn, in the caller's hands: its name is gone. 0 after a failure.
*/
static int tier_of_model(struct ledger *ledger, const struct ledger_release *release,
                         struct ledger_tier *tier) {
  struct ledger_path path;
  struct ledger_tier *tiers = 0;
  int count = 0, at = -1;
  if (ledger_path_read(ledger, release, release->dimension, &path) &&
      ledger_tiers(ledger, &tiers, &count))
    at = ledger_tier_find(ledger, tiers, count, path.points[0].tier);
  if (at >= 0) *tier = tiers[at];
  ledger_tiers_free(tiers, count);
  ledger_path_free(&path);
  tier->name = 0;
  return at >= 0;
}

static void append_number(sqlite3_str *json, const char *key, double x) {
  sqlite3_str_appendf(json, ",\"%s\":", key);
  json_append_number(json, x);
}

/* The theorems as printed want the noise of a gradient: sigma, or the scale of Laplace noise. */
static struct sgd theorem_of(const struct descent *descent, int granularity) {
  double variance = descent->laplace > 0 ? descent->variance / 2 : descent->variance;
  double noise = ldexp(sqrt(variance), granularity) / descent->eta;
  return (struct sgd){.length = descent->rows + descent->public_rows,
                      .lipschitz_loss = descent->lipschitz,
                      .noise = noise,
                      .eta = descent->eta,
                      .beta = descent->beta,
                      .rho = descent->l2,
                      .diameter = 2 * descent->radius};
}

/* A model whose rows are listed. */
struct listing {
  const struct descent *descent;
  const struct ledger_release *release;
  struct price price;
  double delta; /* of the noise */
  struct sgd theorem;
  struct layout shape;
  struct hiding hiding;
  double *first, *second; /* a number for each row */
  sqlite3_str *json;
};

/* The least epsilon at which Theorem 3 of Asoodeh et al., as printed, gives the delta. */
static double printed_epsilon(const struct listing *listing) {
  const struct sgd *theorem = &listing->theorem;
  double low = 0, high = 2 * theorem->lipschitz_loss / theorem->noise;
  if (sgd_delta_laplace_printed(theorem, 0) <= listing->delta) return 0;
  for (int i = 0; i < 50; i++) {
    double middle = low / 2 + high / 2;
    if (sgd_delta_laplace_printed(theorem, middle) <= listing->delta) {
      high = middle;
    } else {
      low = middle;
    }
  }
  return high;
}

/* The printed theorems are about equal steps, that of Laplace noise about one dimension. */
static void append_printed(struct listing *listing, double x) {
  if (listing->descent->decay > 0 || (listing->descent->laplace > 0 && listing->descent->dim > 1)) {
    sqlite3_str_appendall(listing->json, ",\"paper\":null");
  } else {
    append_number(listing->json, "paper", x);
  }
}

/* Theorem 5 of Asoodeh et al. */
static void prepare_stop(struct listing *listing) {
  hiding_stop_deltas(&listing->hiding, listing->price.epsilon, listing->first);
}

static void append_stop(struct listing *listing, int i) {
  append_number(listing->json, "epsilon", listing->price.epsilon);
  append_number(listing->json, "delta", listing->first[i]);
  append_printed(listing, sgd_delta_random_stop(&listing->theorem, listing->price.epsilon));
}

/* Theorem 3 of Asoodeh et al. */
static void prepare_laplace(struct listing *listing) {
  int rows = (int)listing->descent->rows;
  double scale = (double)laplace_scale((uint64_t)listing->descent->variance);
  double own = (double)listing->hiding.course.last.sensitivity / scale * (1 + 0x1p-40);
  for (int i = 0; i < rows; i++) listing->first[i] = listing->second[i] = own;
  hiding_lower(&listing->hiding, 0, listing->first);
  if (listing->delta > 0) {
    hiding_lower(&listing->hiding, listing->delta, listing->second);
  } else {
    memcpy(listing->second, listing->first, sizeof *listing->first * (size_t)rows);
  }
}

static void append_laplace(struct listing *listing, int i) {
  append_number(listing->json, "pure", published_up(listing->first[i]));
  append_number(listing->json, "epsilon", published_up(listing->second[i]));
  append_printed(listing, printed_epsilon(listing));
}

/* Theorem 5 of Balle et al., and Theorem 4 of Asoodeh et al. */
static void prepare_gaussian(struct listing *listing) {
  descent_rates(listing->descent, &listing->shape, listing->release->shift, listing->first);
  hiding_path_epsilons(&listing->hiding, listing->delta, listing->first, listing->second);
  hiding_lower(&listing->hiding, listing->delta, listing->second);
}

static void append_gaussian(struct listing *listing, int i) {
  append_number(listing->json, "rate", listing->first[i]);
  append_number(listing->json, "epsilon", published_up(listing->second[i]));
  append_printed(listing, sgd_rate_printed(&listing->theorem));
}

static void list_rows(struct listing *listing) {
  static const struct form {
    void (*prepare)(struct listing *listing);
    void (*append)(struct listing *listing, int i);
  } forms[] = {{prepare_gaussian, append_gaussian},
               {prepare_laplace, append_laplace},
               {prepare_stop, append_stop}};
  const struct descent *descent = listing->descent;
  const struct form *form = &forms[descent->random_stop > 0 ? 2 : descent->laplace > 0];
  form->prepare(listing);
  for (int i = 0; i < (int)descent->rows; i++) {
    listing->theorem.index = i + 1;
    sqlite3_str_appendf(listing->json, "%s{\"index\":%d", i ? "," : "[", i + 1);
    form->append(listing, i);
    sqlite3_str_appendall(listing->json, "}");
  }
  sqlite3_str_appendall(listing->json, "]");
}

static char *profile_text(const struct descent *descent, const struct ledger_release *release,
                          const struct ledger_tier *tier) {
  sqlite3_uint64 bytes = sizeof(double) * (sqlite3_uint64)descent->rows;
  struct contribution question = question_of(descent);
  struct listing listing = {.descent = descent,
                            .release = release,
                            .price = price_of(tier, release->weight, release->key_share),
                            .delta = tier->delta - tier->delta_keys,
                            .theorem = theorem_of(descent, release->granularity),
                            .first = sqlite3_malloc64(bytes),
                            .second = sqlite3_malloc64(bytes)};
  char *text = 0;
  layout_make(&listing.shape, &question, 0, 1);
  hiding_make(&listing.hiding, descent, &listing.shape, release->shift);
  if (listing.first && listing.second) {
    listing.json = sqlite3_str_new(0);
    list_rows(&listing);
    text = sqlite3_str_finish(listing.json);
  }
  sqlite3_free(listing.first);
  sqlite3_free(listing.second);
  return text;
}

/*
** dp_sgd_profile(name) -> TEXT, a JSON array of objects
** The privacy of every private row of a model, in the order in which they were read, as it is
** proved on the lattice (mechanism/hiding.h). Gaussian noise: the "rate" of its path (sgd.h), of
** which the ledger charges the worst; the least "epsilon" that path or contraction gives at the
** delta of the model's innermost tier; and "paper", Theorem 5 of Balle et al. 2019 as printed.
** Laplace noise: "pure", the least epsilon of pure differential privacy; "epsilon" as above; and
** "paper", that of Theorem 3 of Asoodeh et al. 2020 as printed. Of a random stop: the "epsilon"
** that is charged, the "delta" that goes with it for that row, and "paper", Theorem 5 of Asoodeh
** et al. (the finite sum). "paper" is null where the theorem says nothing: of unequal steps, of
** Laplace noise in more than one dimension. At most 5,000,000 rows.
*/
static void dp_sgd_profile(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  struct ledger *ledger = host_of(context)->ledger;
  const char *name = argument_text(context, argv[0], "name");
  struct ledger_release release = {0};
  struct descent descent = {0};
  struct ledger_tier tier;
  char *json = 0;
  if (!name) return;
  if (ledger_ready(ledger) && guard_begin_reading(host_of(context))) {
    if (!find_model(ledger, name, &release, &descent) || !tier_of_model(ledger, &release, &tier)) {
      /* the ledger says why */
    } else if (descent.rows > MOST_INDEXES) {
      error_set(ledger_error(ledger),
                "release '%s' has more than %d rows (ask dp_sgd_rate() for one of them)", name,
                MOST_INDEXES);
    } else {
      ledger_rollback(ledger); /* others need not wait for what follows */
      json = profile_text(&descent, &release, &tier);
      if (!json) error_set_memory(ledger_error(ledger));
    }
    ledger_rollback(ledger);
  }
  ledger_release_clear(&release);
  if (json) {
    sqlite3_result_text(context, json, -1, sqlite3_free);
  } else {
    function_error(context, "%s", error_text(ledger_error(ledger)));
  }
}

/* ---- registration ---------------------------------------------------------------------------- */

static const struct scalar functions[] = {
    {"dp_predict", 3, 3, PRIVATE_FUNCTION, dp_predict},
    {"dp_sgd_profile", 1, 1, PRIVATE_FUNCTION, dp_sgd_profile},
};

int models_register(sqlite3 *db, struct host *host) {
  return scalars_register(db, host, functions, sizeof functions / sizeof *functions);
}
