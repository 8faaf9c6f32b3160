/* cross_sums.h: the sums of cross tables (ways.h): clips one unit's rows, adds up the measured
** tables, and numbers the cells of the full table that rows lie in. All arithmetic that matters for
** privacy is exact.
**
** The unit's rows are sums for each cell of the full table in which it has rows. If the vector v of
** all measured tables that follows from these sums is longer than the layout allows, all sums are
** scaled by one factor and truncated towards zero, and the norm of the new v is checked exactly. So
** the clipped unit is again a set of rows whose tables have their margins, and the clipped units
** can be added up in the full table before the measured tables are computed from it. The result
** depends on the sums of this unit only, not on their order. */
#ifndef DIFFUSE_SUMS_CROSS_SUMS_H
#define DIFFUSE_SUMS_CROSS_SUMS_H

#include <stdint.h>

#include "noise/lattice.h"
#include "sums/layout.h"

struct cross_sums;

/* Returns null if memory runs out. */
struct cross_sums *cross_sums_open(const struct layout *shape);
void cross_sums_close(struct cross_sums *tables);

/* Clips a unit with `count` >= 1 different cells of the full table. `values` holds the layout's
** components of each cell. Their absolute values are at most 2^125. Sets *clipped if the sums were
** scaled, otherwise leaves it. Returns 1, or 0 if memory runs out. */
int cross_sums_clip(struct cross_sums *tables, const int64_t *cells, int128 *values, size_t count,
                    int *clipped);

/* Bounds what the units of a household count together (households.h). `values` holds the sums of
** the household in `count` >= 1 different cells of the full table. If the measured tables of these
** sums are at most `reach` < 2^54 long, sets *is_short to 1. Otherwise sets it to 0, scales these
** tables down, and adds them to `coordinates`. Returns 1, or 0 if memory runs out. */
int cross_sums_project(struct cross_sums *tables, const int64_t *cells, int128 *values,
                       size_t count, int64_t reach, int128 *coordinates, int *is_short);

/* Add up the coordinates of all measured tables. cross_sums_add() takes the values, within +-2^110,
** of the cell with these keys. Cells whose keys follow each other are fastest, because tables
** without the last attributes wait for the sum of many cells. cross_sums_end() completes the
** coordinates. The sums saturate at +-2^125. */
void cross_sums_add(struct cross_sums *tables, const int *keys, const int128 *values,
                    int128 *coordinates);
void cross_sums_end(struct cross_sums *tables, int128 *coordinates);

/* The full table of a programme may have up to 2^62 cells. Records of units (partitioned_sums.h)
** have a cell of 32 bits. In a full table of at most FULL_CELLS_DIRECT cells, a cell is its own
** number. Otherwise the cells that occur get the numbers 0, 1, ... in the order in which they
** occur. Nothing that is published depends on this order. */
struct full_cells;
#define FULL_CELLS_DIRECT (1 << 20)

/* Returns a table for a full table of `size` cells, or null if memory runs out. */
struct full_cells *full_cells_open(int64_t size);
void full_cells_close(struct full_cells *cells);

/* Returns the number of a cell, or -1 if memory runs out or 2^31 - 1 cells have numbers. */
int full_cells_number(struct full_cells *cells, int64_t cell);

int full_cells_count(const struct full_cells *cells);
int64_t full_cells_cell(const struct full_cells *cells, int number);

#endif
