/*
** values.h: from a stored point to what people get: the values of a publication, the answer that
** they make, and whether they still are what the point makes them.
*/
#ifndef DIFFUSE_RELEASE_VALUES_H
#define DIFFUSE_RELEASE_VALUES_H

#include "release/life.h"

/*
** Sets kind, question and shape of a publication whose release has its parameters; keys: public
** ones.
*/
int answers_describe(struct publication *publication, int keys);

/* Sets question and shape from kind and parameters, without a ledger. */
void answers_shape(struct publication *publication, int keys, int by_unit, int replace);

/* How many public keys a stored release has. */
int answers_keys(const struct ledger_release *release);

/* What its points are stored as, but for the texts of keys. */
struct ledger_grid answers_grid(const struct publication *publication);

/*
** Whether the keys of its path, publication->grid, are the public ones that its fingerprint covers.
*/
int answers_same_keys(const struct publication *publication);

/* The shrink of its coordinates; that of an average depends on the data, and is 1 here. */
double answers_shrink(const struct publication *publication);

/* Whether the lattice of a stored release is one on which its shape is charged for. */
int answers_same_lattice(const struct publication *publication);

/*
** Whether publication->channel can send its groups on: there are public ones, that add up, and the
** channel has a row for each. 0 with the reason in the ledger.
*/
int answers_mixable(const struct publication *publication);

/* Stores the values of a point at publication->at, as publication->channel sends them on. */
int answers_store(struct publication *publication, const struct cost *cost, const int64_t *values);

/* Sets the answer from the values that are stored at a tier. */
int answers_read(struct publication *publication, const char *tier);

/* Least noisy number of units or rows with which a private key is shown at
** publication->at. */
double answers_threshold(const struct publication *publication);

/* estimate_total_stddev() at publication->variance. */
double answers_stddev(const struct publication *publication);

/*
** Whether every publication shows the point of its path: null, or the first discrepancy
** (sqlite3_free). Inside a transaction. An error is in the ledger.
*/
char *answers_verify(struct host *host);

#endif
