/*
** definition.h: what a release is, from its parameters or from its row in the ledger: its kind and
** mechanism, what a unit contributes, and the lattice.
*/
#ifndef DIFFUSE_RELEASE_DEFINITION_H
#define DIFFUSE_RELEASE_DEFINITION_H

#include "mechanism/estimate.h"
#include "release/publication.h"

/*
** Sets kind, question and shape of a publication whose release has its parameters; keys: public
** ones.
*/
int definition_describe(struct publication *publication, int keys);

/* Sets question and shape from kind and parameters, without a ledger. */
void definition_layout(struct publication *publication, int keys, int by_unit, int replace);

/* How many public keys a stored release has. */
int definition_keys(const struct ledger_release *release);

/* What its points are stored as, but for the texts of keys. */
struct ledger_grid definition_grid(const struct publication *publication);

/*
** Whether the keys of its path, publication->grid, are the public ones that its fingerprint covers.
*/
int definition_same_keys(const struct publication *publication);

/* The shrink of its coordinates; that of an average depends on the data, and is 1 here. */
double definition_shrink(const struct publication *publication);

/* Whether the lattice of a stored release is one on which its shape is charged for. */
int definition_same_lattice(const struct publication *publication);

/* How clock shows the release. */
struct view definition_view(const struct publication *publication);

#endif
