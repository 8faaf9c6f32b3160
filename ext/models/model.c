/* model.c: see models.h. The text of a model is a JSON object in one fixed form, which defines the
** model: it is read back with the extension's own number parser before the model is used, so
** everyone who opens the ledger gets the same model.
** Tests: tests/models/test_sgd.py */
#include "models/models.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/sql_text.h"
#include "ledger/ledger.h"
#include "math/math.h"
#include "release/release.h"

SQLITE_EXTENSION_INIT3

static const char *const losses[LOSSES] = {
    [LOSS_LOGISTIC] = "logistic", [LOSS_SQUARED] = "squared", [LOSS_HUBER] = "huber"};

/* ---- the text of a model --------------------------------------------------------------------- */

/* A number of a model: its name in the text, its member of struct descent, and its range. */
struct field {
  const char *name;
  size_t offset;
  double low, high;
  int whole, optional;
};

#define IN(member) offsetof(struct descent, member)

/* In the order of the text. The variance is computed from the other fields, and comes last. */
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
    if (fields[i].whole) {
      sqlite3_str_appendf(text, "%lld", (long long)x);
    } else {
      json_append_number(text, x);
    }
  }
  sqlite3_str_appendall(text, "}");
  return sqlite3_str_finish(text);
}

/* Returns the text after "name":, or null if the name is missing. */
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

static struct model_options *options_of(const struct request *request) {
  return request->details;
}

static struct descent *descent_of(const struct request *request) {
  return &options_of(request)->descent;
}

static void options_clear(void *details) {
  struct model_options *options = details;
  sqlite3_free(options->loss);
  sqlite3_free(options->stop);
  sqlite3_free(options->schedule);
}

static char *known_losses(void) {
  return sqlite3_mprintf("'%s', '%s', '%s'", losses[0], losses[1], losses[2]);
}

static int finish_loss(struct request *request, struct error *error) {
  struct descent *descent = descent_of(request);
  const char *loss = options_of(request)->loss;
  if (!loss) return error_set(error, "loss is missing (one of %z)", known_losses());
  int which = loss_find(loss, strlen(loss));
  if (which == LOSSES) return error_set(error, "unknown loss (known losses: %z)", known_losses());
  descent->loss = (enum loss)which;
  int needs_bound = which == LOSS_SQUARED, has_threshold = which == LOSS_HUBER;
  if (needs_bound && isnan(descent->bound))
    return error_set(error, "bound is missing (y is clipped to [-bound, bound])");
  if (which == LOSS_LOGISTIC && !isnan(descent->bound))
    return error_set(error, "the loss 'logistic' has no bound: y counts as 1 above 1/2, else as 0");
  if (has_threshold == isnan(descent->threshold))
    return has_threshold
               ? error_set(error, "threshold is missing (where the Huber loss becomes linear)")
               : error_set(error, "the loss '%s' has no threshold", losses[which]);
  return 1;
}

/* The schedules of learning rates. The learning rate of step i is eta/(1 + decay (i - 1))^power. */
static const struct schedule {
  const char *name;
  double power;
} schedules[] = {{"constant", 0}, {"sqrt", 0.5}, {"inverse", 1}};

static int finish_schedule(struct request *request, struct error *error) {
  struct descent *descent = descent_of(request);
  const char *asked = options_of(request)->schedule, *name = asked ? asked : schedules[0].name;
  const struct schedule *schedule = 0;
  for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
    if (strcmp(name, schedules[i].name) == 0) schedule = &schedules[i];
  }
  if (!schedule) return error_set(error, "schedule must be 'constant', 'sqrt' or 'inverse'");
  descent->power = NAN;
  if (!(schedule->power > 0))
    return isnan(descent->decay)
               ? 1
               : error_set(error, "decay is for the schedules 'sqrt' and 'inverse'");
  descent->power = schedule->power;
  if (isnan(descent->decay)) descent->decay = 1;
  if (descent->rows + descent->public_rows > SGD_MAX_STEPS)
    return error_set(error, "a schedule is for at most %.0f rows", SGD_MAX_STEPS);
  return descent->random_stop > 0
             ? error_set(error,
                         "a schedule and a random stop do not go together (leave one of them out)")
             : 1;
}

/* Sets the request's mechanism, of which the caller has chosen 'gaussian' or 'laplace', to that for
** public rows or a random stop. */
static int finish_mechanism(struct request *request, struct error *error) {
  struct descent *descent = descent_of(request);
  const struct mechanism *asked = mechanism_find(request->aggregate, request->mechanism);
  int is_random = descent->random_stop > 0;
  descent->laplace = asked == &sgd_laplace ? 1 : NAN;
  if (asked != &sgd_laplace && asked != &sgd_gaussian)
    return error_set(error, "mechanism must be '%s' or '%s' for a model", sgd_gaussian.name,
                     sgd_laplace.name);
  if (asked == &sgd_laplace && is_random)
    return error_set(error,
                     "a random stop has Gaussian noise (leave out the mechanism, or the stop)");
  const struct mechanism *mechanism = descent_mechanism(descent);
  if (mechanism == asked) return 1;
  sqlite3_free(request->mechanism);
  request->mechanism = sqlite3_mprintf("%s", mechanism->name);
  return request->mechanism || error_set_memory(error);
}

static int finish_stop(struct request *request, struct error *error) {
  struct descent *descent = descent_of(request);
  const char *stop = options_of(request)->stop ? options_of(request)->stop : "last";
  int is_random = strcmp(stop, "random") == 0, has_share = !isnan(request->key_share);
  descent->random_stop = is_random;
  if (!is_random && strcmp(stop, "last") != 0)
    return error_set(error, "stop must be 'last' or 'random'");
  if (is_random && descent->public_rows > 0)
    return error_set(error,
                     "public_rows and a random stop do not go together (leave one of them out)");
  if (!is_random && has_share)
    return error_set(error,
                     "key_share is for a random stop: it takes that part of the tier's delta_keys");
  if (is_random && !has_share) request->key_share = DEFAULT_KEY_SHARE;
  return 1;
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

static int model_finish(struct request *request, int by_unit, struct error *error) {
  (void)by_unit; /* settle() checks what the ledger protects */
  struct descent *descent = descent_of(request);
  descent->dim = request->size;
  descent->clip = request->clip;
  if (request->refine)
    return error_set(error,
                     "a model cannot be refined (make a release of its own at an inner tier)");
  if (isnan(descent->rows)) return error_set(error, "n is missing (the public number of rows)");
  if (isnan(descent->radius))
    return error_set(error, "radius is missing (of the ball that the coefficients stay in)");
  if (isnan(descent->l2)) descent->l2 = 0;
  if (isnan(descent->public_rows)) descent->public_rows = 0;
  int going = finish_loss(request, error);
  if (going) going = finish_stop(request, error);
  if (going) going = finish_schedule(request, error);
  if (going) going = finish_mechanism(request, error);
  if (!going) return 0;
  descent_derive(descent);
  double largest = descent_largest_eta(descent);
  /* Advice: Scale the features so that `clip` is near 1. */
  if (descent->eta > largest * (1 + 0x1p-50))
    return error_set(error,
                     "eta must be at most 2/(beta + l2), where beta is the smoothness of the "
                     "regularised loss (leave eta out for the default)");
  descent->default_eta = isnan(descent->eta);
  return 1;
}

/* ---- values that depend on the tier ---------------------------------------------------------- */

/* Rounds x down to three digits, and further until the parser reads its text back as the same
** number (it may differ in the last binary place), so that a replay reads this number. */
static double three_digits(double x) {
  double exponent = floor(log10(x)) - 2, rounded, read;
  char text[40];
  for (int digits = (int)(x / pow(10, exponent)); digits > 0; digits--) {
    snprintf(text, sizeof text, "%de%d", digits, (int)exponent);
    if (!vector_text_list(text, &rounded, 1) || !(rounded > 0)) continue;
    if (vector_text_list(NUMBER_TEXT(rounded), &read, 1) && read == rounded) return rounded;
  }
  return x;
}

struct price model_price(const struct ledger_tier *tier, double weight, double share) {
  double rate = weight * tier->rate;
  return (struct price){rate, published_down(response_epsilon(rate)),
                        isnan(share) ? 0 : share * (1 - 0x1p-40) * tier->delta_keys};
}

/* ---- the effect of public rows --------------------------------------------------------------- */

static int model_paid(struct publication *publication, uint64_t clock, const double *curve) {
  const struct descent *described = publication->definition.details;
  const struct ledger_release *release = &publication->definition.release;
  const struct mechanism *mechanism = publication->definition.mechanism;
  struct terms terms = {.shape = &publication->definition.layout,
                        .details = described,
                        .shift = release->shift,
                        .sensitivity = release->sensitivity,
                        .rate = INFINITY};
  struct cost cost;
  if (!(described->public_rows > 0) || !curve) return 1;
  int paid = mechanism->cost(mechanism, &terms, clock, &publication->cost.room, &cost);
  if (!paid) return error_set_memory(ledger_error(publication->session->ledger));
  for (int i = 0; i < RENYI_ORDERS; i++)
    paid = paid && curve[i] >= cost.curve(cost.parameters, renyi_order(i)) * (1 - 1e-9);
  cost_room_clear(&publication->cost.room);
  return paid;
}

/* ---- the learning rate and the noise --------------------------------------------------------- */

/* Returns the default learning rate. Let w* be the solution, and let G^2 bound the mean square of a
** gradient with its noise. On a quadratic loss of any curvature, the error of the last point is at
** most |w*|^2/(4 e eta steps) + eta G^2/4, which is least at eta = |w*|/(G sqrt(e steps)). |w*| is
** taken as half the radius. The result never exceeds the largest learning rate that the theorems
** allow. */
static double default_eta(const struct descent *descent, const struct price *price) {
  double steps = descent->rows + descent->public_rows;
  /* the rate at which Gaussian noise is about as large as the noise of one step */
  double rate = descent->random_stop > 0
                    ? gaussian_rate(price->epsilon, fmin(price->delta * descent->rows, 0.5))
                    : price->rate * (1 + descent->public_rows);
  double noise = 2 * descent->lipschitz / sqrt(2 * rate);
  if (descent->laplace > 0)
    noise = 2 * descent->lipschitz * sqrt(2 * descent->dim) / laplace_distance(price->rate);
  double gradient = hypot(descent->lipschitz, noise * sqrt(descent->dim));
  double eta = descent->radius / 2 / gradient / sqrt(M_E * steps);
  eta = fmin(eta, descent_largest_eta(descent));
  /* is_sound() refuses an eta below LAYOUT_MIN_CLIP. */
  return eta >= LAYOUT_MIN_CLIP ? three_digits(eta) : eta;
}

struct contribution model_contribution(const struct descent *descent) {
  return (struct contribution){
      .family = &family_sgd, .clip = descent_step(descent), .size = (int)descent->dim};
}

/* Sets the variance of the noise, from the numbers that the parser reads from the text of the
** model, because verification reads the same text. */
static int settle_noise(struct ledger *ledger, struct descent *descent, const struct price *price) {
  char *text = model_text(descent);
  struct descent said;
  int known = text && models_read(text, &said);
  sqlite3_free(text);
  if (!known) return error_set_memory(ledger_error(ledger));
  struct contribution question = model_contribution(&said);
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
                           "has the rate of its tier (give fewer public_rows, or a smaller decay)");
  if (ldexp(said.radius, -design.granularity) <= SGD_MAX_RADIUS) return 1;
  return error_set(
      ledger_error(ledger),
      "eta is too small for the lattice: the noise of a step must be at least 2^-20 of "
      "the radius");
}

static int model_settle(struct publication *publication, struct request *request, int found) {
  struct ledger *ledger = publication->session->ledger;
  struct descent descent = *descent_of(request), stored;
  if (ledger_protects(ledger) != LEDGER_ROWS || ledger_adjacency(ledger) != LEDGER_REPLACE)
    return error_set(ledger_error(ledger),
                     "a model needs a ledger that protects rows, with replaced rows as neighbours, "
                     "and this one does not");
  int known = found && models_read(publication->definition.release.model, &stored);
  const struct ledger_tier *tier = &publication->position.tiers[publication->position.at];
  struct price price = model_price(tier, request->weight, request->key_share);
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

static int model_diffusible(const struct publication *publication, int from, uint64_t clock) {
  struct ledger *ledger = publication->session->ledger;
  const struct ledger_release *release = &publication->definition.release;
  const struct ledger_tier *tiers = publication->position.tiers;
  const char *tier = tiers[publication->position.at].name;
  const struct descent *described = publication->definition.details;
  if (described->random_stop > 0)
    return error_set(ledger_error(ledger),
                     "release '%s' stopped at random: what noise on top of it would cost a tier is "
                     "not known (make a release of its own at tier '%s')",
                     release->name, tier);
  for (int i = from + 1; i <= publication->position.at; i++) {
    if (!tiers[i].accountant->covers_diffused_models)
      return error_set(ledger_error(ledger),
                       "tier '%s' has %s, and what noise on top of a model costs is proved for RDP "
                       "alone (make a release of its own at tier '%s')",
                       tiers[i].name, tiers[i].accountant->title, tier);
  }
  if (descent_diffusible(described, &publication->definition.layout, release->shift, clock))
    return 1;
  if (described->laplace > 0)
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

/* ---- the procedure --------------------------------------------------------------------------- */

static double model_publics(const struct request *request) {
  return descent_of(request)->public_rows;
}

/* Reads the model's text, and checks that it fits the release. */
static void *model_describe(const struct publication *publication) {
  struct descent read;
  if (!models_read(publication->definition.release.model, &read) || !is_sound(&read) ||
      read.dim != publication->definition.release.size || !(read.variance >= LATTICE_MIN_VARIANCE))
    return 0;
  struct descent *descent = sqlite3_malloc64(sizeof *descent);
  if (!descent) error_set_memory(ledger_error(publication->session->ledger));
  if (descent) *descent = read;
  return descent;
}

/* A unit contributes one step of the descent. */
static void model_contribute(const struct definition *definition,
                             struct contribution *contribution) {
  contribution->clip = descent_step(definition->details);
}

const struct procedure model_procedure = {.details = sizeof(struct model_options),
                                          .finish = model_finish,
                                          .publics = model_publics,
                                          .settle = model_settle,
                                          .clear = options_clear,
                                          .describe = model_describe,
                                          .contribute = model_contribute,
                                          .charge = path_charge,
                                          .draw = path_draw,
                                          .keep = path_keep,
                                          .never_refines = 1,
                                          .diffusible = model_diffusible,
                                          .paid = model_paid};
