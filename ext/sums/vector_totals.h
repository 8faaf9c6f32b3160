/* vector_totals.h: the inside of vector_sum.h. vector_sum.c adds rows to the records of the units,
** or to the totals; vector_totals.c adds the units to the totals. A record (partitioned_sums.h) is
** the sum of a unit's rows in one cell. All functions return 0 when out of memory. */
#ifndef DIFFUSE_SUMS_VECTOR_TOTALS_H
#define DIFFUSE_SUMS_VECTOR_TOTALS_H

#include "sums/cross_sums.h"
#include "sums/group_keys.h"
#include "sums/households.h"
#include "sums/layout.h"
#include "sums/partitioned_sums.h"
#include "sums/scalar_sum.h"

#define ONES 64 /* number of stored results of clip_counts() */

/* The clipped sums of a unit in a cell of the full table, which wait to be added to the totals. */
#define LATE 32
struct late {
  int128 *total;
  int128 values[2]; /* a mean has two components, other cross tables one */
};

/* Room for the matrix of one unit. */
struct scratch {
  struct item *items;
  const record_word **chosen; /* the records that the unit keeps */
  uint32_t *slots;            /* slots of the records */
  size_t *places;             /* coordinates of the values */
  int128 *values;
  size_t room; /* number of records for which the arrays have room */
};

struct vector_sum {
  struct contribution question;
  const struct layout *shape;
  int by_unit, components;
  double *edges;      /* of the bins, with bins of equal width; otherwise null */
  int64_t each_count; /* if the first component is a count: what a row adds to it; otherwise 0 */
  int failed;         /* memory ran out and rows were lost; stays set */
  struct secret secret;
  struct group_keys *cells;  /* null without keys */
  struct full_cells *full;   /* cross tables: the cells of the full table; otherwise null */
  struct cross_sums *tables; /* cross tables */
  int128 *joined;            /* cross tables: coordinates that other vectors have added */
  struct late *late;  /* cross tables: values whose totals the processor fetches into its cache */
  int late_count;     /* the number of these values */
  int64_t *full_list; /* cross tables: the cells of the unit that is being added */
  struct partitioned_sums *records; /* null if rows are protected instead of units */
  int128 *row;                      /* the components of the row that is being added */
  int128 *totals; /* the totals of the coordinates; cross tables: of the cells of the full table */
  size_t totals_room;
  int64_t *steps;      /* the same as `row`, if 64 bits suffice; a count is then a number of rows */
  int64_t *shorts;     /* the sums of short rows that are not in the totals yet */
  int short_count;     /* the number of these rows */
  uint128 short_limit; /* bound on the squared norm of a short row, in steps */
  struct scratch scratch;
  int64_t ones[ONES]; /* ones[n]: the component to which clip_counts() clips n counts of 1, or 0 */
  struct tally tally;
  const struct households *households; /* the wider units; null: none */
  int64_t household;                   /* of the unit that is being added, or HOUSEHOLD_NONE */
  struct partitioned_sums *shared;     /* the sums of the households; their cells are coordinates */
  struct partitioned_sums
      *tallies;             /* what the units of a household tell (tally.h), with diagnose */
  int128 *cut;              /* cross tables: coordinates of the households that were scaled down */
  int is_added;             /* the totals have all units already (vector_sum.h) */
  struct vector_sum *first; /* the vector whose cells this one uses (vector_sum.h), or null */
  int outside;              /* the row that is being added is outside the range of x */
  struct unit_table outsides; /* the units with such rows; open if diagnose and by_unit */
};

/* Makes room for the matrix of a unit with this number of records. */
int vector_scratch_reserve(struct vector_sum *vectors, size_t records);

/* Makes room for more coordinates. With private keys, new cells appear while rows are read. */
int vector_totals_grow(struct vector_sum *vectors, size_t coordinates);

static inline int vector_totals_reserve(struct vector_sum *vectors, size_t coordinates) {
  return coordinates <= vectors->totals_room || vector_totals_grow(vectors, coordinates);
}

/* Sets the totals and the tally to 0, before the units are added. */
int vector_totals_begin(struct vector_sum *vectors);

/* Clips the matrix of `count` slots in the scratch and adds it to the totals (V1). The unit counts
** as clipped if `clipped` is true or if clipping changes its matrix. */
int vector_totals_add(struct vector_sum *vectors, size_t count, int clipped);

/* Adds the records of a unit to the totals. There may be nothing to choose among them. */
take_unit vector_totals_unit;

/* Adds the households of `others` to those of `vectors`. */
int vector_households_join(struct vector_sum *vectors, struct vector_sum *others);

/* Bounds the sums of all households and adds them to the totals. */
int vector_households_add(struct vector_sum *vectors);

/* Adds the waiting values of cross tables to the totals. */
void vector_late_add(struct vector_sum *vectors);

#endif
