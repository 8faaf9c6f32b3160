/*
** vectors.h: from rows to one exact vector: what units contribute to many coordinates, clipped and
** summed.
**
** The counterpart of units.h for releases of more than one number. Everything after the first
** rounding is exact integer arithmetic on the matrix of each unit, so the totals do not depend on
** the order of rows. Requirements:
**   V1  The matrix of one unit fits its shape (clip.h), however many rows it has.
**   V2  Without units every row is clipped by itself.
**   V3  Where keys are private a unit keeps at most max_groups of them: those that come first under
**       a keyed hash of unit and key, whatever the order of rows.
*/
#ifndef DIFFUSE_RELEASE_VECTORS_H
#define DIFFUSE_RELEASE_VECTORS_H

#include "noise/lattice.h"
#include "release/cells.h"
#include "release/identity.h"
#include "release/shape.h"
#include "release/records.h"

struct vectors;

/*
** Starts. `keys` are the public ones, sorted, cell i for keys[i]; null where there are none. Null:
** memory or random bytes ran out.
*/
struct vectors *vectors_open(const struct question *question, const struct shape *shape,
                             int by_unit, char *const *keys);
void vectors_close(struct vectors *vectors);

const struct secret *vectors_secret(const struct vectors *vectors);
struct cells *vectors_cells(struct vectors *vectors);
const struct shape *vectors_shape(const struct vectors *vectors);

/*
** Add a row of a unit (which rows that are protected themselves ignore). Return 0, or -1 without
** memory.
*/
int vectors_add_number(struct vectors *vectors, struct identity unit, double x); /* no keys */
int vectors_add_key(struct vectors *vectors, struct identity unit, int cell, double x);
/* Of finite numbers. */
int vectors_add_vector(struct vectors *vectors, struct identity unit, const double *v);
/*
** The short way for a row of little-endian binary32, whatever they are. Returns 1 where it has
** added exactly what vectors_add_vector() would; or 0, and has added nothing: units are protected,
** or the row is not short, or not finite.
*/
int vectors_add_floats(struct vectors *vectors, const unsigned char *floats);

/*
** What has been added up elsewhere (units.h): the rows of one unit in one cell; and totals, of the
** coordinates or, where keys are private, of the components of one cell that some unit has kept:
** these where `vectors` is not by unit. Both saturate at +-2^125. Return 0, or -1 without memory.
*/
int vectors_add_record(struct vectors *vectors, struct identity unit, int cell,
                       const int128 *values);
int vectors_add_totals(struct vectors *vectors, int cell, const int128 *values);

/*
** Hands over every unit's record in every cell. Returns 0, or -1 without memory or when take said
** so.
*/
int vectors_records(struct vectors *vectors, take_record *take, void *context);

/*
** The exact totals, `coordinates` of them (free()), in the order of cells and components; cells of
** private keys in the order of their texts, which *keys lists (free() the list; the texts are the
** vectors' own). Null without memory. *cells is the number of cells.
*/
int128 *vectors_totals(struct vectors *vectors, int *cells, const char ***keys);

#endif
