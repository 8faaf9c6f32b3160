/*
** unit_rows.h: rows of one table in memory, as the virtual tables of an evaluator give them: those
** of one unit, or all of a public table.
*/
#ifndef DIFFUSE_QUERY_UNIT_ROWS_H
#define DIFFUSE_QUERY_UNIT_ROWS_H

#include <sqlite3ext.h>
#include <stddef.h>
#include <stdint.h>

/* A value. Texts are UTF-8 and lie with blobs in the bytes of all rows. */
struct cell {
  int type; /* SQLITE_INTEGER, ... */
  int size; /* of texts and blobs, in bytes */
  union {
    int64_t integer;
    double real;
    size_t offset;
  } as;
};

/* The rows that have the same hash in one column, one after the other. */
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
  struct row_index *indices; /* by column; the last is that of rowids */
};

/* Both return 0 when out of memory. */
int unit_rows_open(struct unit_rows *rows, int columns);
void unit_rows_close(struct unit_rows *rows);

/* Forgets the rows, not the memory. */
void unit_rows_clear(struct unit_rows *rows);

/*
** Adds the row of a statement: value i is its column first + places[i], or NULL where places[i] is
** negative. Returns 0 when out of memory.
*/
int unit_rows_add(struct unit_rows *rows, int64_t rowid, sqlite3_stmt *row, int first,
                  const int *places);

/* Gives a value as the result of xColumn; it is valid until rows are added or cleared. */
void unit_rows_result(const struct unit_rows *rows, sqlite3_context *context, size_t row,
                      int column);

#define NO_ROW UINT32_MAX

/*
** Rows whose value in a column (rows->columns: the rowid) may be equal to `value`, in their order:
** a superset, whatever affinity and collation the comparison has. Find the first, then each next
** one. *hash belongs to the search. Returns NO_ROW at the end; *failed is set when out of memory.
*/
uint32_t unit_rows_find(struct unit_rows *rows, int column, sqlite3_value *value, uint32_t *hash,
                        int *failed);
uint32_t unit_rows_next(const struct unit_rows *rows, int column, uint32_t row, uint32_t hash);

#endif
