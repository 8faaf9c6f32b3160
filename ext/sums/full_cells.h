/*
** full_cells.h: numbers the cells of the full table that rows lie in (ways.h).
**
** The full table of a programme may have up to 2^62 cells. Records of units (partitioned_sums.h)
** have a cell of 32 bits. In a full table of at most FULL_CELLS_DIRECT cells, a cell is its own
** number. Otherwise the cells that occur get the numbers 0, 1, ... in the order in which they
** occur. Nothing that is published depends on this order.
*/
#ifndef DIFFUSE_SUMS_FULL_CELLS_H
#define DIFFUSE_SUMS_FULL_CELLS_H

#include <stdint.h>

struct full_cells;

#define FULL_CELLS_DIRECT (1 << 20)

/* Returns a table for a full table of `size` cells, or null if memory runs out. */
struct full_cells *full_cells_open(int64_t size);
void full_cells_close(struct full_cells *cells);

/* Returns the number of a cell, or -1 if memory runs out or 2^31 - 1 cells have numbers. */
int full_cells_number(struct full_cells *cells, int64_t cell);

int full_cells_count(const struct full_cells *cells);
/* Returns the cell that has this number. */
int64_t full_cells_cell(const struct full_cells *cells, int number);

#endif
