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
** Sets the values that depend on the tier, on the ledger, or on an existing release of that name
** (`found`): the noise, and the learning rate if the caller gave none. Sets the request's model.
** Returns 1, or 0 with the reason in the ledger. Does nothing for requests of other kinds.
*/
int models_settle(struct publication *publication, struct request *request, int found);

/* Reads the text of a model. Returns 0 if the text is not a model. */
int models_read(const char *text, struct descent *descent);

/*
** Checks that a publication's curve at this clock, if it has one, is at least the cost that its
** mechanism computes. On an error, the reason is in the ledger.
*/
int models_paid(struct publication *publication, uint64_t clock, const double *curve);

/*
** Checks that a stored model may be diffused from tier `from` to its position, where its clock is
** `clock`. Otherwise the reason is in the ledger.
*/
int models_diffusible(const struct publication *publication, int from, uint64_t clock);

/*
** The largest cost of one row at a tier, as a rate. For a random stop, also as an epsilon and a
** delta.
*/
struct price {
  double rate, epsilon, delta;
};

struct price model_price(const struct ledger_tier *tier, double weight, double share);

/* Returns what one row of a model contributes: one step of the descent. */
struct contribution model_contribution(const struct descent *descent);

#endif
