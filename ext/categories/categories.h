/* categories.h: releases of one category, and the costs of categories and reports (responses.h).
**
** The first category is one of the candidates. The exponential mechanism or randomized response
** draws it. It alone reads the data: for a tier further out, a public kernel draws a new category
** (mix.c). A cost is a curve over the orders of the Renyi divergence. */
#ifndef DIFFUSE_CATEGORIES_CATEGORIES_H
#define DIFFUSE_CATEGORIES_CATEGORIES_H

#include "categories/markov_kernel.h"
#include "release/release.h"

/* The room: releases of one of the public categories (dp_choice), local randomisation of rows
** (dp_response_count), and the public kernels that send releases on (dp_mix). */
extern const struct room categories_room;

/* All mechanisms of the room, in the order in which messages list them, then null. */
extern const struct mechanism *const category_mechanisms[];

/* A release of categories or reports has a cost at each of symbols_order_count() orders: first the
** stored orders (math/cost.h), then, for each tier, the order at which the tier enforces its
** budget. symbols_order_at() returns one of these orders. If the result is at most 1, the tier has
** no such order. */
int symbols_order_count(const struct publication *publication);
double symbols_order_at(const struct publication *publication, int index);

/* Returns the costs before any kernel, for sqlite3_free(): those of a category that is drawn at a
** tier (0 for a tier without an order), or infinity for reports, which the data make. Null: out of
** memory. */
double *symbols_costs(const struct publication *publication, int tier);

/* Lowers the costs to those behind a chain of kernels, where these are smaller: a kernel never
** raises the cost, and the cost of the worst epsilon-DP mechanism behind all kernels is another
** bound. `epsilon` is the cost before any kernel at order infinity. An audience that has also seen
** an earlier stage has already paid for it. Returns 1, or 0 with the error set. */
int symbols_lower(const struct publication *publication, const struct chain *chain, double epsilon,
                  double *costs, struct error *error);

/* symbols_pay() charges the costs, or without any reports that memory ran out, and keeps those at
** the stored orders as the publication's curve, which symbols_cost() returns as a cost.
** symbols_charge() sets the lattice of a release that counts units or rows, stores the release, and
** pays. */
int symbols_pay(struct publication *publication, const double *costs);
struct cost symbols_cost(const struct publication *publication);
int symbols_charge(struct publication *publication, const double *costs);

/* Stores a category and publishes it. `kernel` made it; null: it was drawn from the data. */
int symbols_publish(struct publication *publication, const char *symbol, const char *kernel);

/* Steps of the procedure (release/procedure.h). */
int categories_charge(struct publication *publication);
int categories_draw(struct publication *publication, const int64_t *counts);
int categories_keep(struct publication *publication);

#endif
