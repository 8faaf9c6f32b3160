/*
** row_reader.h: passes SQL values to sums/, one row after the other, for every aggregate.
*/
#ifndef DIFFUSE_QUERY_ROW_READER_H
#define DIFFUSE_QUERY_ROW_READER_H

#include "release/life.h"
#include "mechanism/sgd.h"
#include "sums/vector_sum.h"

/* The place of each value of a row, among arguments or columns; -1 if the row does not have it. */
struct columns {
  int key, value, unit;
};

struct rows;
typedef int add_sql_row(struct rows *rows, sqlite3_value **row);

struct rows {
  add_sql_row *add;
  add_sql_row *add_owned; /* the function that rows_skip_unowned() wraps */
  struct columns columns;
  const struct aggregate *aggregate;
  const struct contribution *question;
  struct scalar_sum numbers;  /* for releases of one sum */
  struct vector_sum *vectors; /* for all other releases; null for releases of one sum */
  add_to_cell *add_to_cell;   /* adds the value of a row to its cell; depends on the family */
  struct training *training;  /* for models; null for other releases */
  struct design design;       /* for models: their lattice */
  const struct secret
      *secret;    /* the key with which texts and blobs are hashed; null if there are none */
  double *buffer; /* the vector of one row */
  int for_state;  /* units have identities that are the same in all databases */
};

/* The columns of a caller that gives key, value and unit in this order, as far as there are any. */
struct columns columns_in_order(const struct publication *publication);

/*
** Starts the rows of a release that has begun. A column is -1 if the aggregate does not have it.
** The unit is -1 if the ledger protects rows.
*/
int rows_open(struct rows *rows, const struct publication *publication, struct columns columns,
              struct error *error);
void rows_close(struct rows *rows);

/* Makes rows_add() skip rows whose unit is NULL, because they belong to no unit. */
void rows_skip_unowned(struct rows *rows);

/* Adds one row. Returns 1, or 0 when out of memory. */
static inline int rows_add(struct rows *rows, sqlite3_value **row) {
  return rows->add(rows, row);
}

/*
** Add sums from elsewhere (sums/scalar_sum.h, sums/vector_sum.h): the sum of a unit in one cell, or
** totals. They return 1, or 0 when out of memory. rows_name_cell() takes the text of a key and
** returns its cell, or CELL_FAILED when out of memory.
*/
int rows_add_record(struct rows *rows, struct identity unit, int cell, const int128 *values);
int rows_add_totals(struct rows *rows, int cell, const int128 *values);
int rows_name_cell(struct rows *rows, const char *name);

/*
** Passes every record of units to `take` (sums/partitioned_sums.h). Returns 1, or 0 if `take`
** returned 0 or when out of memory.
*/
int rows_records(struct rows *rows, take_record *take, void *context);

/*
** Adds the sums of other rows of the same release, which hash texts with the same secret. Returns
** 1, or 0 when out of memory.
*/
int rows_join(struct rows *rows, struct rows *others);

/*
** Publishes the totals with publish_finish() or publish_draw().
*/
typedef int publish_totals(struct publication *publication, const struct totals *totals);
int rows_publish(struct rows *rows, struct publication *publication, publish_totals *publish,
                 struct error *error);

#endif
