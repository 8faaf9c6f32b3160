/*
** unit_tables.h: one unit's part of the cross tables (ways.h). Clips the unit's rows. All
** arithmetic that matters for privacy is exact.
**
** The unit's rows are sums for each cell of the full table in which it has rows. If the vector v of
** all measured tables that follows from these sums is longer than the layout allows, all sums are
** scaled by one factor and truncated towards zero, and the norm of the new v is checked exactly. So
** the clipped unit is again a set of rows whose tables have their margins, and the clipped units
** can be added up in the full table before the measured tables are computed from it. The result
** depends on the sums of this unit only, not on their order.
**
** Two rows in cells that agree in the attributes D meet in the measured tables inside D. With W(D)
** the sum of the squared multipliers of these tables,
**
**     |v|^2 = sum over all pairs i, j of the unit's cells of W(D_ij) <values_i, values_j>
**
** which is the fast way for units with few cells. Otherwise the tables are added up one by one.
*/
#ifndef DIFFUSE_SUMS_UNIT_TABLES_H
#define DIFFUSE_SUMS_UNIT_TABLES_H

#include "noise/lattice.h"
#include "sums/layout.h"

struct unit_tables;

/* Returns null if memory runs out. */
struct unit_tables *unit_tables_open(const struct layout *shape);
void unit_tables_close(struct unit_tables *tables);

/*
** Clips a unit with `count` >= 1 different cells of the full table. `values` holds the layout's
** components of each cell. Their absolute values are at most 2^125. Sets *clipped if the sums were
** scaled, otherwise leaves it. Returns 1, or 0 if memory runs out.
*/
int unit_tables_clip(struct unit_tables *tables, const int64_t *cells, int128 *values, size_t count,
                     int *clipped);

/*
** Add up the coordinates of all measured tables. unit_tables_add() takes the values of the cell of
** the full table with these keys, each within +-2^110. Cells whose keys follow each other are
** fastest, because tables without the last attributes wait for the sum of many cells.
** unit_tables_end() completes the coordinates. The sums saturate at +-2^125.
*/
void unit_tables_add(struct unit_tables *tables, const int *keys, const int128 *values,
                     int128 *coordinates);
void unit_tables_end(struct unit_tables *tables, int128 *coordinates);

#endif
