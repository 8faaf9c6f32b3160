/*
** vector_sum.h: from rows to one exact vector: what units contribute to many coordinates, clipped
** and summed.
**
** The counterpart of scalar_sum.h for releases of more than one number. Everything after the first
** rounding is exact integer arithmetic on the matrix of each unit, so the totals do not depend on
** the order of rows. Requirements:
**   V1  The matrix of one unit fits its shape (clip.h), however many rows it has.
**   V2  Without units every row is clipped by itself.
**   V3  Where keys are private a unit keeps at most max_groups of them: those that come first under
**       a keyed hash of unit and key, whatever the order of rows.
*/
#ifndef DIFFUSE_SUMS_VECTOR_SUM_H
#define DIFFUSE_SUMS_VECTOR_SUM_H

#include "noise/lattice.h"
#include "sums/group_keys.h"
#include "sums/identity.h"
#include "sums/layout.h"
#include "sums/partitioned_sums.h"

struct vector_sum;

/*
** Starts. `keys` are the public keys, sorted, with cell i for keys[i], or null without public keys.
** Returns null when out of memory or random bytes.
*/
struct vector_sum *vector_sum_open(const struct contribution *question, const struct layout *shape,
                                   int by_unit, char *const *keys);
void vector_sum_close(struct vector_sum *vectors);

const struct secret *vector_sum_secret(const struct vector_sum *vectors);
struct group_keys *vector_sum_cells(struct vector_sum *vectors);
const struct layout *vector_sum_shape(const struct vector_sum *vectors);

/*
** Add a row of a unit to a cell. If rows are protected, they ignore the unit. Return 1, or 0 when
** out of memory. They add 1 to the count, if there is one, and
*/
add_to_cell vector_sum_add_one;     /* nothing else */
add_to_cell vector_sum_add_number;  /* x */
add_to_cell vector_sum_add_centred; /* u, x as a number in [-1, 1] */
add_to_cell vector_sum_add_curve;   /* u and 2 u^2 - 1 */
add_to_cell vector_sum_add_bin;     /* nothing else; the cell is the bin of x */
/* Adds a vector of finite numbers. */
int vector_sum_add_vector(struct vector_sum *vectors, struct identity unit, const double *v);
/*
** The short way for a row of little-endian binary32 numbers, which may be arbitrary. Returns 1 if
** it has added exactly what vector_sum_add_vector() would add. Returns 0 and adds nothing if units
** are protected, or if the row is not short or not finite.
*/
int vector_sum_add_floats(struct vector_sum *vectors, const unsigned char *floats);

/*
** Add sums from elsewhere (scalar_sum.h). vector_sum_add_record() adds the rows of one unit in one
** cell. vector_sum_add_totals() is for sums that are not by unit: it adds the totals of all
** coordinates or, with private keys, of the components of one cell that some unit has kept. Both
** saturate at +-2^125. Return 1, or 0 when out of memory.
*/
int vector_sum_add_record(struct vector_sum *vectors, struct identity unit, int cell,
                          const int128 *values);
int vector_sum_add_totals(struct vector_sum *vectors, int cell, const int128 *values);

/*
** Hands over every unit's record in every cell. Returns 1, or 0 if memory ran out or `take`
** returned 0.
*/
int vector_sum_records(struct vector_sum *vectors, take_record *take, void *context);

/*
** The exact totals, `coordinates` of them, in the order of cells and components. Cells of private
** keys are in the order of their texts, and *keys lists the texts. The caller frees the totals and
** the list with free(); the texts belong to `vectors`. *cells is the number of cells. Returns null
** when out of memory.
*/
int128 *vector_sum_totals(struct vector_sum *vectors, int *cells, const char ***keys);

#endif
