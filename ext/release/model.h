/*
** model.h: releases of models. Converts the parameters of a model between three forms: the options,
** the text dp_release.model in the ledger, and struct descent (mechanism/sgd.h).
*/
#ifndef DIFFUSE_RELEASE_MODEL_H
#define DIFFUSE_RELEASE_MODEL_H

#include "release/parameters.h"
#include "release/session.h"

/* Sets defaults and checks a request for a model, as request_finish() does for other requests. */
int models_finish(struct request *request, struct error *error);

/*
** Sets the noise of a model, its learning rate if the caller gave none, and the text of the
** request's model. These values depend on the tier and the ledger. If a release with the request's
** name exists (`found`), its model supplies the noise and the default learning rate. Returns 1, or
** 0 after setting the ledger's error. For a request of another kind, does nothing and returns 1.
*/
int models_settle(struct publication *publication, struct request *request, int found);

/* Reads the text of a model. Returns 0 if the text is not a model. */
int models_read(const char *text, struct descent *descent);

/*
** Checks that the curve of a publication is at least the cost that its mechanism computes at this
** clock. Returns 1 if `curve` is null or the model has no public rows. When out of memory, sets the
** ledger's error and returns 0.
*/
int models_paid(struct publication *publication, uint64_t clock, const double *curve);

/*
** Checks that a stored model may be diffused from tier `from` to the publication's tier. `clock` is
** the clock of the new point at one tier on this way. Returns 1, or 0 after setting the ledger's
** error. Returns 1 for a release that is no model.
*/
int models_diffusible(const struct publication *publication, int from, uint64_t clock);

/*
** The largest cost that one row of a model may have at a tier. `rate` is the limit for a model that
** publishes the last point, and `epsilon` and `delta` are the limits for a random stop.
*/
struct price {
  double rate, epsilon, delta;
};

struct price model_price(const struct ledger_tier *tier, double weight, double share);

/* Returns the contribution of one row of a model: one step of the descent. */
struct contribution model_contribution(const struct descent *descent);

#endif
