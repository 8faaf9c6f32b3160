/*
** categories.h: releases of one category. Only the first draw reads the data; public kernels then
** change the category.
**
** The first category is one of the candidates. The exponential mechanism or randomized response
** draws it. For a tier further out, a public Markov kernel draws a new category from the last
** category. It never draws from an earlier category, because two draws from the same category
** together reveal more than either draw alone. A cost is a curve over the orders of the Renyi
** divergence. The mechanism determines the cost of the first category. After a kernel, the worst
** pair of states determines the cost (markov_kernel.h).
*/
#ifndef DIFFUSE_CATEGORIES_CATEGORIES_H
#define DIFFUSE_CATEGORIES_CATEGORIES_H

#include "categories/markov_kernel.h"
#include "release/procedure.h"

extern const struct procedure category_procedure;

/*
** A release of categories or reports has a cost at each of symbols_order_count() orders: first the
** stored orders (math/renyi.h), then, for each tier, the order at which the tier enforces its
** budget. symbols_order_at() returns one of these orders. If the result is at most 1, the tier has
** no such order. symbols_pay() charges the costs and keeps the costs at the stored orders as the
** publication's curve. If `costs` is null, symbols_pay() reports an out-of-memory error.
** symbols_cost() returns this curve as a cost. symbols_orders() stores all orders; a tier with
** exact Gaussian accounting has none, and gets the placeholder 2.
*/
int symbols_order_count(const struct publication *publication);
double symbols_order_at(const struct publication *publication, int index);
void symbols_orders(const struct publication *publication, double *orders);
int symbols_pay(struct publication *publication, const double *costs);
struct cost symbols_cost(const struct publication *publication);

/* Sets the lattice of a release that counts units or rows, stores the release, and pays. */
int symbols_charge(struct publication *publication, const double *costs);

/* Returns the index of the tier with this name, or the number of tiers. */
int symbols_tier(const struct publication *publication, const char *name);

/* Draws a category at the publication's tier from the last category, by a kernel (dp_mix). */
int categories_mix(struct publication *publication, const struct markov_kernel *channel);

#endif
