/*
** models.h: models as releases: their parameters, between options, the ledger's text and
** mechanism/sgd.h.
*/
#ifndef DIFFUSE_FUNCTIONS_MODELS_H
#define DIFFUSE_FUNCTIONS_MODELS_H

#include "release/life.h"

/* Defaults and checks of a request for a model, as request_finish(). */
char *models_finish(struct request *request);

/*
** Settles what depends on the tier, on the ledger, or on the release of that name (found): the
** learning rate where it was not given, and the noise. Sets the request's model. 1, or 0 with the
** reason in the ledger. Requests for other kinds pass.
*/
int models_settle(struct publication *publication, struct request *request, int found);

/* Reads the text of a model; 0 for one that is none. */
int models_read(const char *text, struct descent *descent);

/* What a model with a random stop costs at publication->at. */
struct ledger_cost models_cost(struct publication *publication);

/*
** What a model with public rows costs: at each order the plain cost of its noise, or what
** contraction gives where that is less (mechanism/hiding.h). Only cost.curve may be set. It refers
** to the publication, and a failure is in the ledger.
*/
struct ledger_cost models_hidden(struct publication *publication, struct ledger_cost plain);
void models_clear(struct publication *publication);

/*
** Whether the curve of a publication at this clock, if it has one, is no less than what
** models_hidden() says. Where that cannot be said the reason is in the ledger.
*/
int models_paid(struct publication *publication, uint64_t clock, const double *curve);

/*
** Whether a stored model may be diffused to publication->at, from tier `from` to this clock; the
** reason is in the ledger.
*/
int models_diffusible(const struct publication *publication, int from, uint64_t clock);

/* The lattice of a new release: as design_make() and design_variance(), for models too. */
uint64_t models_design(const struct publication *publication, double rate, struct design *design);

#endif
