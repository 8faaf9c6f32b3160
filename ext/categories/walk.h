/*
** walk.h: publications of a category or of reports further out, by public Markov kernels.
**
** A kernel draws a new category from the last category, or a new report from each of the last
** reports. It never draws from earlier ones, because two draws from the same category together
** reveal more than either draw alone. A category is treated as the report of one row.
*/
#ifndef DIFFUSE_CATEGORIES_WALK_H
#define DIFFUSE_CATEGORIES_WALK_H

#include "categories/markov_kernel.h"
#include "release/publication.h"

/* Publishes the release at the publication's tier by a kernel (dp_mix). */
int walk_mix(struct publication *publication, const struct markov_kernel *channel);

/* Checks the publications up to a tier (verify() in release/procedure.h). */
int walk_verify(struct publication *publication, const struct ledger_publication *published);

#endif
