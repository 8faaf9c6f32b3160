/*
** model.h: releases of models. Converts the parameters of a model between the options, the text in
** the ledger and the struct of mechanism/sgd.h.
*/
#ifndef DIFFUSE_RELEASE_MODEL_H
#define DIFFUSE_RELEASE_MODEL_H

#include "release/parameters.h"
#include "release/session.h"

/* Sets defaults and checks a request for a model, as request_finish() does for other requests. */
int models_finish(struct request *request, struct error *error);

/*
** Sets the noise of a model, its learning rate if the caller gave none, and the text of the
** request's model. These values depend on the tier and the ledger. If a release of that name exists
** (`found`), its model supplies the noise and the default learning rate. Returns 1, or 0 with the
** reason in the ledger. Does nothing for a request of another kind.
*/
int models_settle(struct publication *publication, struct request *request, int found);

/* Reads the text of a model. Returns 0 if the text is not a model. */
int models_read(const char *text, struct descent *descent);

/*
** Checks that the curve of a publication is at least the cost that its mechanism computes at this
** clock. Returns 1 if `curve` is null or the model has no public rows. When out of memory, returns
** 0 with the error in the ledger.
*/
int models_paid(struct publication *publication, uint64_t clock, const double *curve);

/*
** Checks that a stored model may be diffused from tier `from` to the publication's tier, where the
** clock is `clock`. Returns 1, or 0 with the reason in the ledger.
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
