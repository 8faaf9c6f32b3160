/*
** rowid_ranges.h: divides a table by rowid into ranges. The ranges together hold all integers, and
** each integer is in one of them.
*/
#ifndef DIFFUSE_QUERY_ROWID_RANGES_H
#define DIFFUSE_QUERY_ROWID_RANGES_H

#include <sqlite3ext.h>
#include <stdint.h>

#define RANGES      512   /* the most ranges */
#define LEAST_RANGE 16384 /* the least number of rowids in a range that is worth a thread's time */

struct rowid_ranges {
  unsigned count;
  int64_t starts[RANGES]; /* the first rowid of each range, in order */
  sqlite3_stmt *begun;    /* a statement that keeps the transaction of the connection open */
};

/*
** Divides a table of main into at most `most` ranges. The first row of each range is in the table.
** Divides no range of fewer than 2 * `least` rowids. `rowid` is a name of the rowid. Returns 0 if
** the table is too small for two ranges of LEAST_RANGE rowids, or after an error. The caller must
** call rowid_ranges_close() in both cases.
*/
int rowid_ranges_find(struct rowid_ranges *ranges, sqlite3 *db, const char *table,
                      const char *rowid, unsigned most, unsigned least);
void rowid_ranges_close(struct rowid_ranges *ranges);

/* Sets the first and the last rowid of a range. The outermost ranges have no end. */
void rowid_ranges_ends(const struct rowid_ranges *ranges, unsigned range, int64_t *first,
                       int64_t *last);

#endif
