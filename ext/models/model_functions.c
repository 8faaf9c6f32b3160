/* model_functions.c: the SQL face of models: the kind 'sgd', its options and the rows of a descent,
** and dp_predict() and dp_sgd_profile(), which use stored models. Tests: tests/models/test_sgd.py,
** tests/models/test_sgd_hiding.py */
#include "models/models.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sql_text.h"
#include "functions/functions.h"
#include "ledger/ledger.h"
#include "math/math.h"
#include "mechanism/mechanism.h"
#include "query/query.h"
#include "release/release.h"

SQLITE_EXTENSION_INIT3

/* ---- the rows -------------------------------------------------------------------------------- */

struct course_of_rows {
  struct design design;
  struct training *training;
  double left; /* the number of steps that belong to private rows and are not taken yet */
};

static int open_descent(struct rows *rows, const struct publication *publication) {
  const struct ledger_release *release = &publication->definition.release;
  struct course_of_rows *course = malloc(sizeof *course);
  if (!course) return 0;
  course->design = (struct design){release->granularity, release->shift, release->sensitivity};
  course->training = training_open(publication->definition.details, &publication->definition.layout,
                                   &course->design);
  course->left = ((const struct descent *)publication->definition.details)->rows;
  rows->state = course;
  return course->training != 0;
}

static void close_descent(struct rows *rows) {
  struct course_of_rows *course = rows->state;
  training_close(course->training);
  free(course);
}

/* Makes the step of a row, without a gradient if y is no number or the features are no vector. */
static int make_step(struct rows *rows, sqlite3_value **row) {
  const struct course_of_rows *course = rows->state;
  sqlite3_value *y = row[rows->columns.key], *features = row[rows->columns.value];
  double number = 0;
  int is_number = value_number(y, &number);
  if (is_number < 0) return 0;
  int whole = vector_text_read(features, rows->buffer, rows->question->size) && is_number;
  training_add(course->training, number, whole ? rows->buffer : 0);
  return 1;
}

/* Private rows after the n-th are ignored, so that none of them takes the step of a public row. */
static int add_private(struct rows *rows, sqlite3_value **row) {
  struct course_of_rows *course = rows->state;
  if (course->left <= 0) return 1;
  course->left--;
  return make_step(rows, row);
}

#define AHEAD 4096 /* the number of steps between two checks for an interrupt */

/* Takes the steps of private rows that have not arrived. Public rows come after them. */
static int turn_to_public(struct rows *rows, struct ledger *ledger, struct error *error) {
  struct course_of_rows *course = rows->state;
  int going = ledger_begin_computing(ledger);
  for (; going && course->left > 0; course->left--) {
    training_add(course->training, 0, 0);
    if (fmod(course->left, AHEAD) == 0) going = ledger_goes_on(ledger);
  }
  ledger_rollback(ledger);
  rows->add = make_step;
  return going || error_set(error, "%s", error_text(ledger_error(ledger)));
}

/* Takes the steps for which no rows have arrived, unless the host is interrupted. */
static int128 *finish_descent(struct rows *rows, struct ledger *ledger, struct error *error) {
  const struct course_of_rows *course = rows->state;
  int going = ledger_begin_computing(ledger);
  while (going && training_rest(course->training)) going = ledger_goes_on(ledger);
  ledger_rollback(ledger);
  int128 *totals = going ? training_totals(course->training) : 0;
  if (!going) error_set(error, "%s", error_text(ledger_error(ledger)));
  if (!totals) error_set(error, "the system gave no random bytes");
  return totals;
}

static const struct own_rows sgd_rows = {open_descent, add_private, turn_to_public, finish_descent,
                                         close_descent};

/* ---- the kind -------------------------------------------------------------------------------- */

#define OPTION(type, member, ...) OWN_OPTION(type, struct model_options, member, __VA_ARGS__)

static const struct option options[] = {
    OPTION(WORD, loss, 1, "loss", 0, 0, 0, 0),
    OPTION(WORD, stop, 0, "stop", 0, 0, 0, 0),
    OPTION(WORD, schedule, 0, "schedule", 0, 0, 0, 0),
    OPTION(NUMBER, descent.decay, 0, "decay", 0, SGD_MAX_DECAY, 1, 0),
    OPTION(WHOLE_NUMBER, descent.rows, 0, "n", 1, SGD_MAX_ROWS, 0, 0),
    OPTION(NUMBER, descent.radius, 0, "radius", 0, INFINITY, 1, 1),
    OPTION(NUMBER, descent.l2, 0, "l2", 0, INFINITY, 0, 1),
    OPTION(NUMBER, descent.eta, 0, "eta", 0, INFINITY, 1, 1),
    OPTION(NUMBER, descent.bound, 0, "bound", 0, INFINITY, 1, 1),
    OPTION(NUMBER, descent.threshold, 0, "threshold", 0, INFINITY, 1, 1),
    OPTION(WHOLE_NUMBER, descent.public_rows, 0, "public_rows", 0, SGD_MAX_PUBLIC, 0, 0),
};

/* dp_sgd(tier, y, features, loss, options): the coefficients of a linear model; clip bounds the
** norm of the features of a row */
static const struct statistic_row statistic = {
    .name = "sgd",
    .wording = {"coefficients of a model, as at most one pass over the rows leaves them",
                "coefficient", SHARE_NONE, 0, 0},
    .family = &family_sgd,
    .form = FORM_ARRAY,
    .x = X_ALWAYS,
    .has_key = 1,
    .arguments = {P_OWN},
    .options = 1u << P_CLIP | 1u << P_DIM | 1u << P_SHARE,
    .needs_name = 1,
    .no_bound = "the coefficients of a model stay in a ball already",
    .no_keys = "a model is trained on all rows together",
    .procedure = &model_procedure,
    .own_options = options,
    .own_option_count = sizeof options / sizeof *options,
    .rows = &sgd_rows};

/* ---- the privacy of every row of a stored model ---------------------------------------------- */

/* Finds a finished model. Returns 0 with the ledger's error. The caller clears the release in both
** cases. */
static int model_find(struct ledger *ledger, const char *name, struct ledger_release *release,
                      struct descent *descent) {
  *release = (struct ledger_release){0};
  if (!ledger_release_find(ledger, name, release)) return ledger_release_unknown(ledger, name);
  const struct aggregate *aggregate = aggregate_find(release->kind);
  if (!aggregate || aggregate->family->statistic != STATISTIC_MODEL)
    return error_set(ledger_error(ledger), "release '%s' is no model but a '%s'", name,
                     release->kind);
  if (!models_read(release->model, descent))
    return error_set(ledger_error(ledger), "release '%s' has an impossible model", name);
  return strcmp(release->state, "released") == 0 ||
         error_set(ledger_error(ledger), "release '%s' is %s", name, release->state);
}

#define MOST_INDEXES 5000000 /* the most private rows that one text can list */

/* Copies the tier at which a model was drawn, without its name. Returns 0 on failure. */
static int tier_of_model(struct ledger *ledger, const struct ledger_release *release,
                         struct ledger_tier *tier) {
  struct ledger_path path;
  struct ledger_tier *tiers = 0;
  int count = 0, at = -1;
  if (ledger_path_read(ledger, release, (struct ledger_grid){0, 1, release->dimension, 0}, &path) &&
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

/* A model and the values to list for its rows. */
struct listing {
  const struct descent *descent;
  const struct ledger_release *release;
  struct price price;
  double delta; /* the tier's delta without delta_keys */
  struct sgd theorem;
  struct layout shape;
  struct course course;
  double *first, *second; /* one number for each row */
  sqlite3_str *json;
};

/* The least epsilon at which Theorem 3 of Asoodeh et al., as printed, gives the delta of the
** listing. */
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

/* Appends the result of the printed theorem, or null: it assumes steps of the same length and, for
** Laplace noise, one dimension. */
static void append_printed(struct listing *listing, double x) {
  if (listing->descent->decay > 0 || (listing->descent->laplace > 0 && listing->descent->dim > 1)) {
    sqlite3_str_appendall(listing->json, ",\"paper\":null");
  } else {
    append_number(listing->json, "paper", x);
  }
}

/* Computes `first` and `second` for all rows. */
static void set_numbers(struct listing *listing) {
  const struct descent *descent = listing->descent;
  const struct course *course = &listing->course;
  double *first = listing->first, *second = listing->second;
  int rows = (int)descent->rows;
  if (descent->random_stop > 0) { /* Theorem 5 of Asoodeh et al. */
    hiding_stop_deltas(course, listing->price.epsilon, first);
  } else if (descent->laplace > 0) { /* Theorem 3 of Asoodeh et al. */
    double scale = (double)laplace_scale((uint64_t)descent->variance);
    double own = (double)course->last.sensitivity / scale * (1 + 0x1p-40);
    for (int i = 0; i < rows; i++) first[i] = second[i] = own;
    hiding_lower(course, 0, first);
    if (listing->delta > 0) hiding_lower(course, listing->delta, second);
    if (!(listing->delta > 0)) memcpy(second, first, sizeof *first * (size_t)rows);
  } else { /* Theorem 5 of Balle et al. and Theorem 4 of Asoodeh et al. */
    descent_rates(descent, &listing->shape, listing->release->shift, first);
    hiding_path_epsilons(course, listing->delta, first, second);
    hiding_lower(course, listing->delta, second);
  }
}

static void list_rows(struct listing *listing) {
  const struct descent *descent = listing->descent;
  const struct sgd *theorem = &listing->theorem;
  int stops = descent->random_stop > 0, is_laplace = descent->laplace > 0;
  double epsilon = listing->price.epsilon;
  set_numbers(listing);
  for (int i = 0; i < (int)descent->rows; i++) {
    double first = listing->first[i], second = stops ? 0 : listing->second[i];
    listing->theorem.index = i + 1;
    sqlite3_str_appendf(listing->json, "%s{\"index\":%d", i ? "," : "[", i + 1);
    if (!stops)
      append_number(listing->json, is_laplace ? "pure" : "rate",
                    is_laplace ? published_up(first) : first);
    append_number(listing->json, "epsilon", stops ? epsilon : published_up(second));
    if (stops) append_number(listing->json, "delta", first);
    append_printed(listing, stops        ? sgd_delta_random_stop(theorem, epsilon)
                            : is_laplace ? printed_epsilon(listing)
                                         : sgd_rate_printed(theorem));
    sqlite3_str_appendall(listing->json, "}");
  }
  sqlite3_str_appendall(listing->json, "]");
}

static char *profile_text(const struct descent *descent, const struct ledger_release *release,
                          const struct ledger_tier *tier) {
  sqlite3_uint64 bytes = sizeof(double) * (sqlite3_uint64)descent->rows;
  struct contribution question = model_contribution(descent);
  /* The printed theorems add the noise to a gradient, of a standard deviation or a Laplace
  ** scale. */
  double variance = descent->laplace > 0 ? descent->variance / 2 : descent->variance;
  struct sgd theorem = {.length = descent->rows + descent->public_rows,
                        .lipschitz_loss = descent->lipschitz,
                        .noise = ldexp(sqrt(variance), release->granularity) / descent->eta,
                        .eta = descent->eta,
                        .beta = descent->beta,
                        .rho = descent->l2,
                        .diameter = 2 * descent->radius};
  struct listing listing = {.descent = descent,
                            .release = release,
                            .price = model_price(tier, release->weight, release->key_share),
                            .delta = tier->delta - tier->delta_keys,
                            .theorem = theorem,
                            .first = sqlite3_malloc64(bytes),
                            .second = sqlite3_malloc64(bytes)};
  char *text = 0;
  layout_make(&listing.shape, &question, 0, 1);
  course_make(&listing.course, descent, &listing.shape, release->shift);
  if (listing.first && listing.second) {
    listing.json = sqlite3_str_new(0);
    list_rows(&listing);
    text = sqlite3_str_finish(listing.json);
  }
  sqlite3_free(listing.first);
  sqlite3_free(listing.second);
  return text;
}

/* Returns the privacy of every private row as JSON, for sqlite3_free(), or null with the session's
** error. */
static char *model_profile(struct session *session, const char *name) {
  struct ledger *ledger = session->ledger;
  struct ledger_release release = {0};
  struct descent descent = {0};
  struct ledger_tier tier;
  char *json = 0;
  if (!ledger_begin_reading(ledger)) return 0;
  int found =
      model_find(ledger, name, &release, &descent) && tier_of_model(ledger, &release, &tier);
  if (found && descent.rows > MOST_INDEXES)
    found = error_set(&session->error,
                      "release '%s' has more than %d rows (ask dp_sgd_rate() for one of them)",
                      name, MOST_INDEXES);
  ledger_rollback(ledger); /* other connections need not wait for the calculation */
  if (found) json = profile_text(&descent, &release, &tier);
  if (found && !json) error_set_memory(&session->error);
  ledger_release_clear(&release);
  return json;
}

/* ---- dp_predict() and dp_sgd_profile() ------------------------------------------------------- */

/* The published coefficients of a model. */
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

static void read_coefficients(struct ledger *ledger, const char *name, const char *tier,
                              struct descent *descent, struct coefficients *coefficients) {
  struct ledger_release release;
  struct ledger_tier *tiers;
  int count;
  coefficients->count = 0;
  if (ledger_tiers(ledger, &tiers, &count)) ledger_tier_find(ledger, tiers, count, tier);
  ledger_tiers_free(tiers, count);
  if (model_find(ledger, name, &release, descent)) {
    ledger_values(ledger, release.id, tier, take_coefficient, coefficients);
    if (coefficients->count != (int)descent->dim)
      error_set(ledger_error(ledger),
                "release '%s' is not published at tier '%s' (dp_diffuse() may do it)", name, tier);
  }
  ledger_release_clear(&release);
}

/* dp_predict(name, tier, features) -> REAL
** Returns the prediction of a model for one row: w.x, or the probability of y = 1 for the loss
** 'logistic'. The model must be published at the tier. The features have the form that dp_sgd()
** reads, and are clipped in the same way. If the features are NULL, the result is NULL. Malformed
** features are an error. The function reads only published coefficients, so it costs nothing. */
static int dp_predict(struct call *call) {
  struct descent descent = {0};
  struct coefficients coefficients;
  if (!ledger_begin_reading(call->ledger)) return 0;
  read_coefficients(call->ledger, call->texts[0], call->texts[1], &descent, &coefficients);
  ledger_rollback(call->ledger);
  double features[LAYOUT_MAX_SIZE], score = 0;
  int dim = (int)descent.dim;
  if (error_is_set(call->error)) return 0;
  if (sqlite3_value_type(call->values[2]) == SQLITE_NULL) {
    sqlite3_result_null(call->context);
    return 1;
  }
  if (!vector_text_read(call->values[2], features, dim))
    return error_set(call->error,
                     "features must be a JSON array of %d numbers, or a blob of as many floats",
                     dim);
  descent_clip(&descent, features);
  for (int j = 0; j < dim; j++) score += coefficients.w[j] * features[j];
  /* The derivative of the logistic loss for y = 0 is the probability of 1. */
  if (descent.loss == LOSS_LOGISTIC) score = descent_slope(&descent, score, 0);
  sqlite3_result_double(call->context, score);
  return 1;
}

/* dp_sgd_profile(name) -> TEXT, a JSON array of objects
** Returns the privacy of every private row of a model, in the order in which the rows were read.
** All bounds except "paper" hold for the training as the code runs it, with all rounding
** (models.h). The members of an object depend on the noise:
** - Gaussian noise: "rate" is the rate of the row's path (models.h); the ledger charges the largest
**   rate of all rows. "epsilon" is the least epsilon that the path bound or the contraction bound
**   gives at the delta of the model's innermost tier. "paper" is the rate of Theorem 5 of Balle et
**   al. 2019 as printed.
** - Laplace noise: "pure" is the least epsilon of pure differential privacy. "epsilon" is defined
**   as for Gaussian noise. "paper" is the epsilon of Theorem 3 of Asoodeh et al. 2020 as printed.
** - A random stop: "epsilon" is the charged epsilon, and "delta" is the least delta of that row at
**   this epsilon. "paper" is Theorem 5 of Asoodeh et al. (the finite sum).
** "paper" is null where the theorem does not apply: for unequal steps, and for Laplace noise in
** more than one dimension. A model with more than 5,000,000 rows is an error. */
static int dp_sgd_profile(struct call *call) {
  return call_text(call, model_profile(&call->host->session, call->texts[0]));
}

/* ---- the room -------------------------------------------------------------------------------- */

static const struct function functions[] = {
    {"dp_predict", 3, 3, TO_OWNER, LEDGER_OPEN, {"name", "tier"}, dp_predict},
    {"dp_sgd_profile", 1, 1, TO_OWNER, LEDGER_OPEN, {"name"}, dp_sgd_profile},
    {0},
};

const struct room models_room = {.mechanisms = model_mechanisms,
                                 .statistics = &statistic,
                                 .statistic_count = 1,
                                 .functions = functions};
