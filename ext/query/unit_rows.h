/*
** unit_rows.h: rows of one table in memory, for the virtual tables of an evaluator. These are the
** rows of one unit, or all rows of a public table.
*/
#ifndef DIFFUSE_QUERY_UNIT_ROWS_H
#define DIFFUSE_QUERY_UNIT_ROWS_H

#include <sqlite3ext.h>
#include <stddef.h>
#include <stdint.h>

/*
** A value. If it is a text (in UTF-8) or a blob, its bytes are in the buffer of struct unit_rows.
*/
struct cell {
  int type; /* SQLITE_INTEGER, ... */
  int size; /* the size of a text or blob in bytes */
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
  size_t count, room; /* numbers of rows */
  struct cell *cells;
  int64_t *rowids;
  unsigned char *bytes;
  size_t used, bytes_room;
  struct row_index *indices; /* one index for each column; the last index is for rowids */
};

/*
** unit_rows_open() returns 1, or 0 when out of memory. The caller must call unit_rows_close() in
** both cases.
*/
int unit_rows_open(struct unit_rows *rows, int columns);
void unit_rows_close(struct unit_rows *rows);

/* Returns the number of bytes that the rows need. It depends on the rows alone. */
double unit_rows_bytes(const struct unit_rows *rows);

/* Removes the rows and keeps the memory. */
void unit_rows_clear(struct unit_rows *rows);

/*
** Adds the row of a statement. Value i is column first + places[i] of the statement, or NULL if
** places[i] is negative. Returns 0 when out of memory.
*/
int unit_rows_add(struct unit_rows *rows, int64_t rowid, sqlite3_stmt *row, int first,
                  const int *places);

/* Sets a value as the result of xColumn. The result is valid until rows are added or cleared. */
void unit_rows_result(const struct unit_rows *rows, sqlite3_context *context, size_t row,
                      int column);

#define NO_ROW UINT32_MAX

/*
** Find the rows whose value in a column may be equal to `value`, in the order of the rows. These
** are all rows whose value is equal to `value` under some affinity and collation, and possibly
** other rows. Column number rows->columns is the rowid. unit_rows_find() returns the first row and
** sets *hash. unit_rows_next() takes this hash and returns the next row. Both return NO_ROW if
** there is no further row. unit_rows_find() sets *failed when out of memory.
*/
uint32_t unit_rows_find(struct unit_rows *rows, int column, sqlite3_value *value, uint32_t *hash,
                        int *failed);
uint32_t unit_rows_next(const struct unit_rows *rows, int column, uint32_t row, uint32_t hash);

#endif
