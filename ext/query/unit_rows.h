/*
** unit_rows.h: rows of one table in memory, for the virtual tables of an evaluator. The rows are
** those of one unit, or all rows of a public table.
*/
#ifndef DIFFUSE_QUERY_UNIT_ROWS_H
#define DIFFUSE_QUERY_UNIT_ROWS_H

#include <sqlite3ext.h>
#include <stddef.h>
#include <stdint.h>

/* A value. The bytes of all rows hold its text (in UTF-8) or blob. */
struct cell {
  int type; /* SQLITE_INTEGER, ... */
  int size; /* of texts and blobs, in bytes */
  union {
    int64_t integer;
    double real;
    size_t offset;
  } as;
};

/* An index on one column, which links the rows that have the same hash. */
struct row_index {
  int is_built;
  uint32_t *heads, *next, *hashes;
  size_t buckets, heads_room, rows_room;
};

struct unit_rows {
  int columns;
  size_t count, room; /* rows */
  struct cell *cells;
  int64_t *rowids;
  unsigned char *bytes;
  size_t used, bytes_room;
  struct row_index *indices; /* one for each column; the last one is for rowids */
};

/* Both return 0 when out of memory. */
int unit_rows_open(struct unit_rows *rows, int columns);
void unit_rows_close(struct unit_rows *rows);

/* Removes the rows and keeps the memory. */
void unit_rows_clear(struct unit_rows *rows);

/*
** Adds the row of a statement. Value i is column first + places[i] of the statement, or NULL if
** places[i] is negative. Returns 0 when out of memory.
*/
int unit_rows_add(struct unit_rows *rows, int64_t rowid, sqlite3_stmt *row, int first,
                  const int *places);

/* Sets a value as the result of xColumn. It is valid until rows are added or cleared. */
void unit_rows_result(const struct unit_rows *rows, sqlite3_context *context, size_t row,
                      int column);

#define NO_ROW UINT32_MAX

/*
** Finds rows whose value in a column may be equal to `value`, in their order. The column
** rows->columns is the rowid. The result is a superset for any affinity and collation of the
** comparison. unit_rows_find() finds the first row, and the next function each further one. *hash
** belongs to the search. They return NO_ROW at the end, and set *failed when out of memory.
*/
uint32_t unit_rows_find(struct unit_rows *rows, int column, sqlite3_value *value, uint32_t *hash,
                        int *failed);
uint32_t unit_rows_next(const struct unit_rows *rows, int column, uint32_t row, uint32_t hash);

#endif
