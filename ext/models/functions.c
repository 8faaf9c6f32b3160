/*
** functions.c: dp_predict() and dp_sgd_profile(), which use stored models.
** Tests: tests/models/test_sgd.py
*/
#include "base/vector_text.h"
#include "functions/functions.h"
#include "functions/host.h"
#include "ledger/ledger.h"
#include "models/model.h"
#include "models/profile.h"
#include "release/pending.h"

SQLITE_EXTENSION_INIT3

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

/*
** dp_predict(name, tier, features) -> REAL
** Returns the prediction of a model for one row: w.x, or the probability of y = 1 for the loss
** 'logistic'. The model must be published at the tier. The features have the form that dp_sgd()
** reads, and are clipped in the same way. If the features are NULL, the result is NULL. Malformed
** features are an error. The function reads only published coefficients, so it costs nothing.
*/
static void dp_predict(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  struct ledger *ledger = host_of(context)->session.ledger;
  const char *name = argument_text(context, argv[0], "name");
  const char *tier = name ? argument_text(context, argv[1], "tier") : 0;
  if (!tier) return;
  struct descent descent = {0};
  struct coefficients coefficients;
  if (ledger_ready(ledger) && pending_begin_reading(&host_of(context)->session)) {
    read_coefficients(ledger, name, tier, &descent, &coefficients);
    ledger_rollback(ledger);
  }
  double features[LAYOUT_MAX_SIZE], score = 0;
  int dim = (int)descent.dim;
  if (error_is_set(ledger_error(ledger))) {
    function_error(context, "%s", error_text(ledger_error(ledger)));
  } else if (sqlite3_value_type(argv[2]) == SQLITE_NULL) {
    return;
  } else if (!vector_text_read(argv[2], features, dim)) {
    function_error(context,
                   "features must be a JSON array of %d numbers, or a blob of as many floats", dim);
  } else {
    descent_clip(&descent, features);
    for (int j = 0; j < dim; j++) score += coefficients.w[j] * features[j];
    /* The derivative of the logistic loss for y = 0 is the probability of 1. */
    if (descent.loss == LOSS_LOGISTIC) score = descent_slope(&descent, score, 0);
    sqlite3_result_double(context, score);
  }
}

/*
** dp_sgd_profile(name) -> TEXT, a JSON array of objects
** Returns the privacy of every private row of a model, in the order in which the rows were read.
** All bounds except "paper" hold for the training as the code runs it, with all rounding
** (hiding.h). The members of an object depend on the noise:
** - Gaussian noise: "rate" is the rate of the row's path (sgd.h); the ledger charges the largest
**   rate of all rows. "epsilon" is the least epsilon that the path bound or the contraction bound
**   gives at the delta of the model's innermost tier. "paper" is the rate of Theorem 5 of Balle et
**   al. 2019 as printed.
** - Laplace noise: "pure" is the least epsilon of pure differential privacy. "epsilon" is defined
**   as for Gaussian noise. "paper" is the epsilon of Theorem 3 of Asoodeh et al. 2020 as printed.
** - A random stop: "epsilon" is the charged epsilon, and "delta" is the least delta of that row at
**   this epsilon. "paper" is Theorem 5 of Asoodeh et al. (the finite sum).
** "paper" is null where the theorem does not apply: for unequal steps, and for Laplace noise in
** more than one dimension. A model with more than 5,000,000 rows is an error.
*/
static void dp_sgd_profile(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  struct session *session = &host_of(context)->session;
  const char *name = argument_text(context, argv[0], "name");
  if (!name) return;
  char *json = model_profile(session, name);
  if (json) {
    sqlite3_result_text(context, json, -1, sqlite3_free);
  } else {
    fail_call(context, function_of(context)->name, &session->error);
  }
}

/* ---- registration ---------------------------------------------------------------------------- */

static const struct scalar functions[] = {
    {"dp_predict", 3, 3, PRIVATE_FUNCTION, dp_predict},
    {"dp_sgd_profile", 1, 1, PRIVATE_FUNCTION, dp_sgd_profile},
};

int model_functions_register(sqlite3 *db, struct host *host) {
  return scalars_register(db, host, functions, sizeof functions / sizeof *functions);
}
