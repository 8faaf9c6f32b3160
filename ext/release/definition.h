/*
** definition.h: the definition of a release: its kind and mechanism, the contribution of a unit,
** and the lattice. A definition is made either from the parameters of a new release or from the row
** of a stored release in the ledger.
*/
#ifndef DIFFUSE_RELEASE_DEFINITION_H
#define DIFFUSE_RELEASE_DEFINITION_H

#include "mechanism/estimate.h"
#include "mechanism/exponential.h"
#include "release/publication.h"

/*
** Sets the kind, contribution and layout of a publication whose release already has its parameters.
** `keys` is the number of public keys.
*/
int definition_describe(struct publication *publication, int keys);

/*
** Sets the contribution and the layout from the kind and the parameters, without a ledger. Returns
** 1, or 0 if memory ran out.
*/
int definition_layout(struct publication *publication, int keys, int replace);

/*
** Checks that the release protects the wider unit of the ledger, if it has one (dp_within). Returns
** 1, or 0 with the error set.
*/
int definition_check_wider(const struct publication *publication);

/* Returns what the draw of a quantile by the mechanism 'exponential' depends on. */
struct leaf_draw definition_leaf_draw(const struct publication *publication);

/* Returns the number of public keys of a stored release. */
int definition_keys(const struct ledger_release *release);

/* Returns the grid of the release's stored points, without the texts of the keys. */
struct ledger_grid definition_grid(const struct publication *publication);

/*
** Checks that the keys in publication->grid, which were read from the path, are the public keys of
** the release.
*/
int definition_same_keys(const struct publication *publication);

/* Writes the key that the coordinates of a period of a series have in the ledger. */
#define PERIOD_KEY 12
const char *definition_period_key(int period, char key[PERIOD_KEY]);

/*
** Returns the shrink factor of the coordinates. For averages and other statistics that are not
** linear, the factor depends on the data. The function then returns 1, or 0 if the factor could be
** too small for a double.
*/
double definition_shrink(const struct publication *publication);

/*
** Checks that the lattice in the ledger fits the layout of the release: the spacing of the lattice
** is that of the layout, and the stored sensitivity is at least that of the mechanism.
*/
int definition_same_lattice(const struct publication *publication);

/* Returns the view of the release with the clock of the publication's tier. */
struct view definition_view(const struct publication *publication);

/*
** Stores a new release. Does nothing for a release that is stored already (dp_batch() finishes such
** a release). Returns 1, or 0 after setting the ledger's error.
*/
int definition_store(struct publication *publication);

#endif
