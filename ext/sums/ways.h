/* ways.h: the tables of a table programme (a release of all cross tables of several attributes).
**
** A table is a set of attributes, written as a bit mask: bit i stands for attribute i. Attribute i
** has sizes[i] public keys. A table has one cell for each combination of keys of its attributes, in
** the order of an array whose last attribute varies fastest. The empty table has one cell, the
** total. A programme that has a table also has every table inside it (with fewer attributes), so
** that every table has its margins. The tables are sorted by their number of attributes, then by
** mask.
**
** The release measures some of the tables, all by one vector: coordinate c of table A is the
** multiplier of A times the sum of the rows in this cell, plus noise. All coordinates have the same
** noise, so the multipliers divide one charge between the tables (mechanism/estimate.h). The
** coordinates of the measured tables follow each other in the order of the tables.
**
** Every row lies in one cell of the full table of all attributes. The full table need not be in the
** programme, and it may have up to 2^62 cells; nothing here has its size. */
#ifndef DIFFUSE_SUMS_WAYS_H
#define DIFFUSE_SUMS_WAYS_H

#include <stdint.h>

#define WAYS_MAX_ATTRIBUTES 16
#define WAYS_MAX_TABLES     1024
#define WAYS_MAX_CELLS      (1 << 20) /* of all tables together */
#define WAYS_MAX_MEASURED   (1 << 22) /* coordinates */
#define WAYS_MAX_FULL       ((int64_t)1 << 62)
#define WAYS_NONE           (-1)

struct cross_table {
  unsigned mask;
  double weight;        /* the importance of its error (mechanism/estimate.h) */
  int multiplier;       /* 0: the table is not measured */
  int cells;            /* number of its cells */
  int first;            /* its first cell among the cells of all tables */
  int first_coordinate; /* its first coordinate; WAYS_NONE if it is not measured */
};

struct ways {
  int attributes;
  int sizes[WAYS_MAX_ATTRIBUTES];
  uint64_t inverses[WAYS_MAX_ATTRIBUTES]; /* 2^64 / size, rounded up, for fast division */
  int count;                              /* number of tables */
  int cells;                              /* number of cells of all tables */
  int coordinates;
  struct cross_table *tables;
  int16_t *index; /* the number of the table of a mask, or WAYS_NONE */
};

/* What ways_open() may refuse. */
enum ways_limit { WAYS_FIT, WAYS_MANY_TABLES, WAYS_MANY_CELLS, WAYS_MANY_KEYS, WAYS_NO_MEMORY };

/* Makes the programme of the `count` different tables `masks` with these weights, and of all tables
** inside them, whose weight is 1. No table is measured yet. Sets *cells to the number of cells of
** all tables, as far as it was counted. Returns WAYS_FIT, or the limit that the programme exceeds;
** `ways` is then empty. ways_close() is allowed in both cases. */
enum ways_limit ways_open(struct ways *ways, int attributes, const int *sizes,
                          const unsigned *masks, const double *weights, int count, double *cells);
void ways_close(struct ways *ways);

int ways_copy(struct ways *to, const struct ways *from); /* 0: out of memory */

/* Sets the multipliers, one for each table, and numbers the coordinates. Returns whether the
** multipliers are possible: not negative, with a sum of squares of at most 2^30, above 0 for each
** table that is inside no other table, and with at most WAYS_MAX_MEASURED coordinates. */
int ways_measure(struct ways *ways, const int *multipliers);

/* The sum of the squares of the multipliers (S^2), or their sum. */
int64_t ways_square(const struct ways *ways);
int64_t ways_sum(const struct ways *ways);

/* Returns the table of a mask, or null. */
const struct cross_table *ways_find(const struct ways *ways, unsigned mask);

/* Returns whether the table is inside no other table of the programme. */
int ways_is_largest(const struct ways *ways, const struct cross_table *table);

int64_t ways_full(const struct ways *ways); /* the number of cells of the full table */

/* Sets the keys of a cell of the full table: keys[i] is the number of a key of attribute i. The
** cell is (keys[0] * sizes[1] + keys[1]) * sizes[2] + keys[2] ... */
void ways_full_keys(const struct ways *ways, int64_t cell, int *keys);

/* Moves `keys` to the next cell of the full table, as an odometer does. */
void ways_next(const struct ways *ways, int *keys);

/* Returns the cell of a table with these keys. Attributes outside the table do not matter. */
int ways_cell(const struct ways *ways, const struct cross_table *table, const int *keys);

/* Sets the keys of the attributes of a table from one of its cells. */
void ways_keys(const struct ways *ways, const struct cross_table *table, int cell, int *keys);

#endif
