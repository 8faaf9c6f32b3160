/*
** definition.h: the definition of a release: its kind and mechanism, the contribution of a unit,
** and the lattice. It is made from the release's parameters or from its row in the ledger.
*/
#ifndef DIFFUSE_RELEASE_DEFINITION_H
#define DIFFUSE_RELEASE_DEFINITION_H

#include "mechanism/estimate.h"
#include "release/publication.h"

/*
** Sets the kind, contribution and layout of a publication whose release already has its parameters.
** `keys` is the number of public keys.
*/
int definition_describe(struct publication *publication, int keys);

/* Sets the contribution and the layout from the kind and the parameters, without a ledger. */
void definition_layout(struct publication *publication, int keys, int by_unit, int replace);

/* Returns the number of public keys of a stored release. */
int definition_keys(const struct ledger_release *release);

/* Returns the grid in which its points are stored, without the texts of the keys. */
struct ledger_grid definition_grid(const struct publication *publication);

/*
** Checks that the keys of the publication's path (publication->grid) are the public keys that the
** fingerprint covers.
*/
int definition_same_keys(const struct publication *publication);

/*
** Returns the shrink factor of the coordinates. An average's factor depends on the data. For an
** average, this returns 1, or 0 if the factor could be too small for a double.
*/
double definition_shrink(const struct publication *publication);

/* Checks that the lattice of a stored release is the one for which its layout is charged. */
int definition_same_lattice(const struct publication *publication);

/* Returns the view of the release at the position's clock. */
struct view definition_view(const struct publication *publication);

#endif
