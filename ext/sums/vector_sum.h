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
** Starts. `keys` are the public ones, sorted, cell i for keys[i]; null where there are none. Null:
** memory or random bytes ran out.
*/
struct vector_sum *vector_sum_open(const struct contribution *question, const struct layout *shape,
                                   int by_unit, char *const *keys);
void vector_sum_close(struct vector_sum *vectors);

const struct secret *vector_sum_secret(const struct vector_sum *vectors);
struct group_keys *vector_sum_cells(struct vector_sum *vectors);
const struct layout *vector_sum_shape(const struct vector_sum *vectors);

/*
** Add a row of a unit (which rows that are protected themselves ignore) to a cell. Return 1, or 0
** without memory. They add 1 to the count, where there is one, and
*/
add_to_cell vector_sum_add_one;     /* nothing else */
add_to_cell vector_sum_add_number;  /* x */
add_to_cell vector_sum_add_centred; /* u, x as a number in [-1, 1] */
add_to_cell vector_sum_add_curve;   /* u and 2 u^2 - 1 */
add_to_cell vector_sum_add_bin;     /* nothing else, in the cell that is the bin of x */
/* Of finite numbers. */
int vector_sum_add_vector(struct vector_sum *vectors, struct identity unit, const double *v);
/*
** The short way for a row of little-endian binary32, whatever they are. Returns 1 where it has
** added exactly what vector_sum_add_vector() would; or 0, and has added nothing: units are
** protected, or the row is not short, or not finite.
*/
int vector_sum_add_floats(struct vector_sum *vectors, const unsigned char *floats);

/*
** What has been added up elsewhere (scalar_sum.h): the rows of one unit in one cell; and totals, of
** the coordinates or, where keys are private, of the components of one cell that some unit has
** kept: these where `vectors` is not by unit. Both saturate at +-2^125. Return 1, or 0 without
** memory.
*/
int vector_sum_add_record(struct vector_sum *vectors, struct identity unit, int cell,
                          const int128 *values);
int vector_sum_add_totals(struct vector_sum *vectors, int cell, const int128 *values);

/*
** Hands over every unit's record in every cell. Returns 1, or 0 without memory or when take said
** so.
*/
int vector_sum_records(struct vector_sum *vectors, take_record *take, void *context);

/*
** The exact totals, `coordinates` of them (free()), in the order of cells and components; cells of
** private keys in the order of their texts, which *keys lists (free() the list; the texts are the
** vectors' own). Null without memory. *cells is the number of cells.
*/
int128 *vector_sum_totals(struct vector_sum *vectors, int *cells, const char ***keys);

#endif
