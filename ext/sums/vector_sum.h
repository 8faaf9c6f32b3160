/* vector_sum.h: turns rows into one exact vector of totals. The code clips the matrix of each unit
** (layout.h) and adds up the clipped matrices.
**
** scalar_sum.h does the same for releases of one number. After the first rounding all arithmetic is
** exact integer arithmetic on the matrix of each unit, so the totals do not depend on the order of
** rows. Requirements:
**   V1  The matrix of one unit fits the layout (clip_vector()), however many rows the unit has.
**   V2  Without units every row is clipped by itself.
**   V3  With private keys, a unit keeps at most max_groups of its keys. These are the first keys in
**       the order of a keyed hash of unit and key, whatever the order of rows.
**   V4  Cross tables (ways.h): a row's cell is one of the full table. The clipped units are added
**       up in the full table, and the totals are those of the measured tables.
**   V5  With households, the clipped vectors of the units of one of them are added up first, and
**       this sum is bounded as households.h says. In cross tables, the sum is that of the measured
**       tables, and one factor scales all its coordinates. */
#ifndef DIFFUSE_SUMS_VECTOR_SUM_H
#define DIFFUSE_SUMS_VECTOR_SUM_H

#include "noise/lattice.h"
#include "sums/cross_sums.h"
#include "sums/group_keys.h"
#include "sums/households.h"
#include "sums/identity.h"
#include "sums/layout.h"
#include "sums/partitioned_sums.h"
#include "sums/tally.h"

struct vector_sum;

/* Opens an empty vector. keys[i], of the sorted public keys, gets cell i; `keys` is null if there
** are none. `secret` is that of another vector of the release, or null for a new one. Returns null
** if memory runs out or the system provides no random bytes. */
struct vector_sum *vector_sum_open(const struct contribution *question, const struct layout *shape,
                                   int by_unit, char *const *keys, const struct secret *secret);
void vector_sum_close(struct vector_sum *vectors);

/* Treats each row that is added from now on as a unit of its own (V2). No row may be there yet. */
void vector_sum_forget_units(struct vector_sum *vectors);

/* Bounds what the units of a household count together (V5). The table has the secret of
** `vectors`. */
void vector_sum_use_households(struct vector_sum *vectors, const struct households *households);

const struct secret *vector_sum_secret(const struct vector_sum *vectors);
struct group_keys *vector_sum_cells(struct vector_sum *vectors);
struct full_cells *vector_sum_full(struct vector_sum *vectors); /* null without cross tables */
const struct layout *vector_sum_shape(const struct vector_sum *vectors);

/* These functions add a row of a unit to a cell; if rows are protected, they ignore the unit. They
** return 0 if memory runs out. Each adds 1 to the count, if the layout has one, and to the sums: */
add_to_cell vector_sum_add_one;     /* nothing else */
add_to_cell vector_sum_add_number;  /* x */
add_to_cell vector_sum_add_centred; /* u = layout_centred(x) */
add_to_cell vector_sum_add_curve;   /* u and 2 u^2 - 1 */
add_to_cell vector_sum_add_bin;     /* nothing else; the row goes to the bin of x */
add_to_cell vector_sum_add_exponent; /* nothing else; the row goes to layout_exponent_bin(x) */
/* The next two divide 1 into parts that add up to exactly 1, one for each component. With w = (1 +
** u)/2 in [0, 1], these are */
add_to_cell vector_sum_add_pair;   /* w and 1 - w */
add_to_cell vector_sum_add_triple; /* (1 - w)^2, 2 w (1 - w) and w^2 */
/* Adds a row whose value is a vector of finite numbers. */
int vector_sum_add_vector(struct vector_sum *vectors, struct identity unit, const double *v);
/* Adds a row of little-endian binary32 numbers, which may be infinite or NaN, faster than
** vector_sum_add_vector(). Returns 1 if it has added exactly what vector_sum_add_vector() would
** add. Returns 0 and adds nothing if the row would need clipping, if a number is very large or not
** finite, if norms are sums of magnitudes, if units are protected and the layout has a count, or if
** memory runs out. */
int vector_sum_add_floats(struct vector_sum *vectors, struct identity unit,
                          const unsigned char *floats);

/* These functions add sums that another vector has computed, saturate at +-2^125, and return 0 if
** memory runs out. vector_sum_add_record() adds the sums of one unit in one slot.
** vector_sum_add_totals() adds totals that are not by unit: those of all coordinates or, with
** private keys, those of one cell whose key some unit has kept. */
int vector_sum_add_record(struct vector_sum *vectors, struct identity unit, uint32_t slot,
                          const int128 *values);
int vector_sum_add_totals(struct vector_sum *vectors, int cell, const int128 *values);

/* Finds the cells of another vector of the same release in `vectors`, which gets those that it does
** not have yet, and room for their totals. (*cells)[i] becomes the cell, or in cross tables the
** number of the cell of the full table, with the key of the other vector's cell i. The caller frees
** this array, which is null if the cells are the same. Returns 0 if memory runs out. */
int vector_sum_map(struct vector_sum *vectors, const struct vector_sum *other, int **cells);

/* Calls `take` for every record: the sums of one unit in one slot (layout.h). Returns 0 if memory
** ran out or `take` returned 0, as does the next function. */
int vector_sum_records(struct vector_sum *vectors, take_record *take, void *context);

/* Calls `take` for every unit with the sums of its `count` slots, in the order of the slots, which
** are not clipped. `values` has the components of each slot, and `take` may change them. */
typedef int take_matrix(void *context, struct identity unit, size_t count, const uint32_t *slots,
                        int128 *values);
int vector_sum_units(struct vector_sum *vectors, take_matrix *take, void *context);

/* Returns the exact totals of all coordinates, cell by cell (layout.h), or null if memory ran out.
** Sets *cells to the number of cells. With private keys, the cells are in the order of their texts,
** and *keys lists these texts; otherwise *keys is null. The caller calls free() for the totals and
** for the list. The texts belong to `vectors`. */
int128 *vector_sum_totals(struct vector_sum *vectors, int *cells, const char ***keys);

/* With the option diagnose: vector_sum_tally() returns the numbers of units that were clipped and
** that were not. A unit is clipped if its vector was scaled down, if one of its rows was outside
** the range of x or beyond the bound on a row, or if it had too many private keys. The scaling of
** the counts that only select private keys does not matter. The tally is complete after
** vector_sum_totals(). vector_sum_join_tally() adds what another vector of the same release has
** noted about its rows; it returns 0 if memory ran out. */
struct tally vector_sum_tally(const struct vector_sum *vectors);
int vector_sum_join_tally(struct vector_sum *vectors, struct vector_sum *others);

/* ---- on several threads ---------------------------------------------------------------------- */

/* Each thread has added its rows to a vector of its own. All these vectors have the same secret, so
** the units can be divided into parts by their places (partitioned_sums.h). A thread that takes a
** part merges the records of each of its units from all vectors, clips the unit, and adds it to the
** totals of the thread's own vector. In the end the totals are added up. All of them are integers,
** so the result is the same as on one thread, whoever takes which part.
**
** The caller calls these functions in this order. "On any thread" means that several threads may
** call the function at the same time, with different numbers. Each function returns 0 if memory
** runs out. */

struct vector_parts;

/* Prepares to add up `count` vectors, the first of which will have the totals. Null: no memory. */
struct vector_parts *vector_parts_open(struct vector_sum *const *list, int count);
void vector_parts_close(struct vector_parts *parts); /* `parts` may be null */

/* On any thread: gives the cells of a vector the numbers that they have in the first vector. */
int vector_parts_prepare(struct vector_parts *parts, int number);

/* Sets *count to the number of parts: 0 if the vectors must be added up on one thread. */
int vector_parts_find(struct vector_parts *parts, unsigned *count);

/* On any thread: adds a part to the vector with this number, which no other thread uses. */
int vector_parts_add(struct vector_parts *parts, int number, unsigned part);

/* Adds up the totals of all vectors, so that vector_sum_totals() of the first one returns them.
** Returns 0 if the vectors must be added up on one thread after all. Their records are complete. */
int vector_parts_end(struct vector_parts *parts);

#endif
