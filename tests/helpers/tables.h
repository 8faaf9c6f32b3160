/* tables.h: tables of rows for sums.h, and their exact totals.
**
** This file defines the two functions of entropy.c, and so replaces entropy.c at link time. A test
** can therefore give two runs the same secret. Both runs then keep the same private keys, and their
** results differ only because of the rows. */
#ifndef TEST_TABLES_H
#define TEST_TABLES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "families.h"
#include "mechanism/mechanism.h"
#include "noise/noise.h"
#include "random.h"
#include "splitmix.h"
#include "sums/sums.h"

/* ---- random bits ----------------------------------------------------------------------------- */

static inline int below(int bound) {
  return (int)(random_bits() % (unsigned)bound);
}

/* Seed of the next secret; drawing a secret does not change the seed. */
static uint64_t entropy_seed;
static int entropy_fails; /* 1: the system has no random bytes */

int entropy_fill(void *bytes, size_t count) {
  unsigned char *next = bytes;
  uint64_t at = entropy_seed;
  for (size_t i = 0; i < count; i++) {
    next[i] = (unsigned char)splitmix(&at);
  }
  return !entropy_fails;
}

void entropy_wipe(void *bytes, size_t count) {
  memset(bytes, 0, count);
}

/* ---- rows ------------------------------------------------------------------------------------ */

enum who { WHO_NULL, WHO_INTEGER, WHO_REAL, WHO_TEXT, WHO_BLOB };

struct row {
  enum who who;
  double unit; /* the bytes of a text or blob are "unit-%g" with this number */
  int key;
  double x;
  const double *v;
};

static inline struct identity unit_of(const struct secret *secret, const struct row *row) {
  char name[40];
  switch (row->who) {
  case WHO_NULL: return identity_null();
  case WHO_INTEGER: return identity_integer((int64_t)row->unit);
  case WHO_REAL: return identity_real(row->unit);
  default: break;
  }
  snprintf(name, sizeof name, "unit-%g", row->unit);
  return identity_bytes(secret, name, strlen(name), row->who == WHO_TEXT);
}

static inline int same_unit(const struct row *a, const struct row *b) {
  int a_number = a->who == WHO_INTEGER || a->who == WHO_REAL;
  int b_number = b->who == WHO_INTEGER || b->who == WHO_REAL;
  if (a_number != b_number || (!a_number && a->who != b->who)) return 0;
  return a->who == WHO_NULL || a->unit == b->unit;
}

static inline void shuffle(struct row *rows, int count) {
  for (int i = count - 1; i > 0; i--) {
    int j = below(i + 1);
    struct row kept = rows[i];
    rows[i] = rows[j];
    rows[j] = kept;
  }
}

/* Keys are numbers whose texts have four digits, so that texts and numbers have the same order. */
#define KEY_END  10000
#define KEY_SIZE 8

static inline void key_name(char *name, int key) {
  snprintf(name, KEY_SIZE, "%04u", (unsigned)key % KEY_END);
}

/* Returns a value in steps, rounded to nearest with halves to even, and saturated at +-2^90. */
static inline int128 steps_of(double value, double scale) {
  long double x = nearbyintl((long double)value * (long double)scale);
  if (isnan(value)) return 0;
  if (x >= 0x1p90L) return (int128)1 << 90;
  if (x <= -0x1p90L) return -((int128)1 << 90);
  return (int128)x;
}

/* ---- totals ---------------------------------------------------------------------------------- */

/* One release. The public keys are 0 to question.keys - 1. */
struct release {
  struct contribution question;
  struct layout shape;
  int by_unit;
};

static inline struct release release_of(const struct contribution *question, int by_unit,
                                        int replace) {
  struct release release = {.question = *question, .by_unit = by_unit};
  layout_make(&release.shape, question, by_unit, replace);
  return release;
}

static inline struct vector_sum *vectors_start(const struct release *release) {
  int count = release->question.keys > 0 ? release->question.keys : 0;
  char(*names)[KEY_SIZE] = malloc(sizeof *names * (size_t)(count + 1));
  char **keys = malloc(sizeof *keys * (size_t)(count + 1));
  for (int i = 0; i < count; i++) {
    key_name(names[i], i);
    keys[i] = names[i];
  }
  struct vector_sum *vectors =
      vector_sum_open(&release->question, &release->shape, release->by_unit, count ? keys : 0, 0);
  free(keys);
  free(names);
  return vectors;
}

/* Adds a row as the SQL functions do. Returns 1, or 0 if memory runs out. */
static inline int vectors_add(const struct release *release, struct vector_sum *vectors,
                              const struct row *row) {
  const struct secret *secret = vector_sum_secret(vectors);
  struct identity unit = unit_of(secret, row);
  if (release->question.keys) {
    char name[KEY_SIZE];
    key_name(name, row->key);
    struct identity key = identity_bytes(secret, name, strlen(name), 1);
    int cell = group_keys_find(vector_sum_cells(vectors), key);
    if (cell == CELL_NEW) cell = group_keys_name(vector_sum_cells(vectors), key, name);
    if (cell < 0) return cell == CELL_NONE;
    return release->question.family->add(vectors, unit, cell, row->x);
  }
  if (release->question.family->has_vector) return vector_sum_add_vector(vectors, unit, row->v);
  return release->question.family->add(vectors, unit, 0, row->x);
}

/* Returns how many numbers totals_of() returns. With private keys these are the totals of the keys
** 0 to `keys` - 1. */
static inline size_t totals_count(const struct release *release, int keys) {
  const struct layout *shape = &release->shape;
  return shape->cells ? (size_t)shape->coordinates : (size_t)keys * (size_t)shape->width;
}

/* Returns the totals of an open release, or null after a failure. With private keys, the total of
** key i is at place i, and the total of an absent key is 0. */
static inline int128 *totals_now(const struct release *release, struct vector_sum *vectors,
                                 int keys) {
  int cells = 0;
  const char **names = 0;
  int128 *values = vector_sum_totals(vectors, &cells, &names);
  if (!values || release->shape.cells) return values;
  size_t width = (size_t)release->shape.width;
  int128 *placed = calloc(totals_count(release, keys) + 1, sizeof *placed);
  for (int i = 0; i < cells; i++)
    memcpy(&placed[(size_t)atoi(names[i]) * width], &values[(size_t)i * width],
           sizeof *placed * width);
  free(names);
  free(values);
  return placed;
}

/* Returns the total of a release of one number, computed by sums.h. */
static inline int128 *total_of(const struct release *release, const struct row *rows, int count) {
  struct bounds bounds = design_bounds(&release->shape);
  struct scalar_sum accumulator;
  int128 *total = malloc(sizeof *total);
  int going = scalar_sum_open(&accumulator, &bounds, release->by_unit, 0);
  for (int i = 0; i < count && going; i++) {
    if (!release->by_unit) {
      scalar_sum_add_row(&accumulator, rows[i].x);
    } else {
      struct identity unit = unit_of(scalar_sum_secret(&accumulator), &rows[i]);
      going = scalar_sum_add_unit(&accumulator, unit, rows[i].x);
    }
  }
  if (going) going = scalar_sum_total(&accumulator, total);
  scalar_sum_close(&accumulator);
  if (going) return total;
  free(total);
  return 0;
}

/* Returns the totals of a table. The caller calls free(). */
static inline int128 *totals_of(const struct release *release, const struct row *rows, int count,
                                int keys) {
  if (release->question.family == &family_sum) return total_of(release, rows, count);
  struct vector_sum *vectors = vectors_start(release);
  int going = vectors != 0;
  for (int i = 0; i < count && going; i++) going = vectors_add(release, vectors, &rows[i]);
  int128 *totals = going ? totals_now(release, vectors, keys) : 0;
  vector_sum_close(vectors);
  return totals;
}

#endif
