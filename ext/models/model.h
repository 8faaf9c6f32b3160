/* model.h: releases of models. Converts the parameters of a model between three forms: the options,
** the text dp_release.model in the ledger, and struct descent (sgd.h). */
#ifndef DIFFUSE_MODELS_MODEL_H
#define DIFFUSE_MODELS_MODEL_H

#include "models/sgd.h"
#include "release/procedure.h"

/* The room: dp_sgd, its rows and mechanisms, and the functions that use stored models. */
extern const struct room models_room;

/* The details of a request for a model: the options that only models have. */
struct model_options {
  struct descent descent;
  char *loss, *stop, *schedule;
};

/* A release with a path, with the noise and the learning rate of the tier, and with what the rows
** after a row hide. */
extern const struct procedure model_procedure;

int models_read(const char *text, struct descent *descent); /* 0: the text is not a model */

/* The largest cost that one row of a model may have at a tier: the rate for a model that publishes
** the last point; epsilon and delta for a random stop, where every epsilon-DP mechanism has at most
** this rate (response_epsilon()). */
struct price {
  double rate, epsilon, delta;
};

struct price model_price(const struct ledger_tier *tier, double weight, double share);

struct contribution model_contribution(const struct descent *descent);

#endif
