/*
** model.h: models as releases. Converts the parameters of a model between the options, the text in
** the ledger and the struct of mechanism/sgd.h.
*/
#ifndef DIFFUSE_RELEASE_MODEL_H
#define DIFFUSE_RELEASE_MODEL_H

#include "release/parameters.h"
#include "release/session.h"

/* Defaults and checks of a request for a model, as request_finish(). */
int models_finish(struct request *request, struct error *error);

/*
** Settles what depends on the tier, on the ledger, or on the release of that name (found): the
** learning rate where it was not given, and the noise. Sets the request's model. 1, or 0 with the
** reason in the ledger. Requests for other kinds pass.
*/
int models_settle(struct publication *publication, struct request *request, int found);

/* Reads the text of a model; 0 for one that is none. */
int models_read(const char *text, struct descent *descent);

/*
** Whether the curve of a publication at this clock, if it has one, is no less than what
** its mechanism says. Where that cannot be said the reason is in the ledger.
*/
int models_paid(struct publication *publication, uint64_t clock, const double *curve);

/*
** Whether a stored model may be diffused to its position, from tier `from` to this clock; the
** reason is in the ledger.
*/
int models_diffusible(const struct publication *publication, int from, uint64_t clock);

/*
** What one row may cost at a tier: a rate; and for a random stop the same as an epsilon, with a
** delta.
*/
struct price {
  double rate, epsilon, delta;
};

struct price model_price(const struct ledger_tier *tier, double weight, double share);

/* What a row of a model contributes: a step of the descent. */
struct contribution model_contribution(const struct descent *descent);

#endif
