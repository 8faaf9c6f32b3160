/*
** row_reader.h: SQL values to what release/ adds up: one row after the other, whatever the
** aggregate.
*/
#ifndef DIFFUSE_QUERY_ROW_READER_H
#define DIFFUSE_QUERY_ROW_READER_H

#include "release/life.h"
#include "mechanism/sgd.h"
#include "sums/vector_sum.h"

/* Where a row has its values, among arguments or columns; -1: nowhere. */
struct columns {
  int key, value, unit;
};

struct rows;
typedef int add_sql_row(struct rows *rows, sqlite3_value **row);

struct rows {
  add_sql_row *add;
  add_sql_row *add_owned; /* of rows_skip_unowned() */
  struct columns columns;
  const struct aggregate *aggregate;
  const struct contribution *question;
  struct scalar_sum numbers;  /* releases of one sum */
  struct vector_sum *vectors; /* all others; null for those */
  add_to_cell *add_to_cell;   /* of the family: what a row adds to its cell */
  struct training *training;  /* models; null but for them */
  struct design design;       /* models: their lattice */
  const struct secret
      *secret;    /* under which texts and blobs are known; null where there are none */
  double *buffer; /* one row's vector */
  int for_state;  /* units are known by the identities that all databases give them */
};

/* Those of a caller that gives key, value and unit one after the other, as far as there are any. */
struct columns columns_in_order(const struct publication *publication);

/*
** Starts for a release that has begun. A column is nowhere where the aggregate has none, and that
** of the unit where rows are protected. 
*/
int rows_open(struct rows *rows, const struct publication *publication, struct columns columns,
              struct error *error);
void rows_close(struct rows *rows);

/* From now on rows whose unit is NULL belong to nobody and are left out. */
void rows_skip_unowned(struct rows *rows);

/* Adds one row. Returns 1, or 0 when out of memory. */
static inline int rows_add(struct rows *rows, sqlite3_value **row) {
  return rows->add(rows, row);
}

/*
** What has been added up elsewhere (sums/scalar_sum.h, sums/vector_sum.h): what a unit has in one
** cell, and totals. Return 1, or 0 when out of memory. A name is a key's text; its cell is
** CELL_FAILED without memory.
*/
int rows_add_record(struct rows *rows, struct identity unit, int cell, const int128 *values);
int rows_add_totals(struct rows *rows, int cell, const int128 *values);
int rows_name_cell(struct rows *rows, const char *name);

/*
** Hands over every record of units (sums/partitioned_sums.h). Returns 1, or 0 when `take` said so
** or out of memory.
*/
int rows_records(struct rows *rows, take_record *take, void *context);

/*
** Adds what other rows of the same release have come to, which know texts by the same secret.
** Returns 1, or 0 when out of memory.
*/
int rows_join(struct rows *rows, struct rows *others);

/*
** Publishes the totals with publish_finish() or publish_draw(). 
*/
typedef int publish_totals(struct publication *publication, const struct totals *totals);
int rows_publish(struct rows *rows, struct publication *publication, publish_totals *publish,
                 struct error *error);

#endif
