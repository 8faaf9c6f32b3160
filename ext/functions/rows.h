/*
** rows.h: SQL values to what release/ adds up: one row after the other, whatever the aggregate.
*/
#ifndef DIFFUSE_FUNCTIONS_ROWS_H
#define DIFFUSE_FUNCTIONS_ROWS_H

#include "functions/publish.h"
#include "release/sgd.h"
#include "release/vectors.h"

struct rows {
  const struct aggregate *aggregate;
  const struct question *question;
  struct accumulator numbers; /* releases of one sum */
  struct vectors *vectors;    /* all others; null for those */
  struct training *training;  /* models; null but for them */
  struct design design;       /* models: their lattice */
  double *buffer;             /* one row's vector */
};

/* Starts for a release that has begun. Returns null, or one sentence to be freed. */
char *rows_open(struct rows *rows, const struct publication *publication);
void rows_close(struct rows *rows);

/*
** Adds one row; key and value are null where the aggregate has none, unit where rows are protected.
** Returns 0, or -1 when out of memory.
*/
int rows_add(struct rows *rows, sqlite3_value *key, sqlite3_value *value, sqlite3_value *unit);

/* Publishes the totals. Returns null, or one sentence to be freed. */
char *rows_publish(struct rows *rows, struct publication *publication);

/* The text that a key is shown as, cut at 1000 characters (sqlite3_free); null: out of memory. */
char *key_text(sqlite3_value *key);

#endif
