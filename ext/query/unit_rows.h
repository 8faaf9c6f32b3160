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

/*
** An index on some columns, which links the rows that have the same hash. Column number
** rows->columns is the rowid.
*/
#define INDEX_MOST 8
struct row_index {
  int columns[INDEX_MOST], count;
  int is_built;
  int has_odd; /* a row has an odd value: see unit_rows.c */
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
  struct row_index *indices;
  int index_count;
};

void unit_rows_open(struct unit_rows *rows, int columns);
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
** Returns the number of the index on these columns, at most INDEX_MOST, or -1 when out of memory.
** The index has no rows before unit_rows_find() needs it.
*/
int unit_rows_index(struct unit_rows *rows, const int *columns, int count);

/* A search in an index, or over all rows if an index cannot tell which rows it would miss. */
struct row_search {
  const struct row_index *index; /* null: all rows */
  uint32_t hash;
};

/*
** Find the rows whose values in the columns of an index may be equal to `values`, in the order of
** the rows. These are all rows whose values are equal under some affinity and collation, and
** possibly other rows. unit_rows_find() starts a search and returns the first row.
** unit_rows_next() returns the row after `row`. Both return NO_ROW if there is no further row.
** unit_rows_find() sets *failed when out of memory.
*/
uint32_t unit_rows_find(struct unit_rows *rows, int index, sqlite3_value **values,
                        struct row_search *search, int *failed);
uint32_t unit_rows_next(const struct unit_rows *rows, const struct row_search *search,
                        uint32_t row);

#endif
