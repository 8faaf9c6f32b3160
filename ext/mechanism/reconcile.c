/* reconcile.c: see reconcile.h. Tests: tests/mechanism/test_cross_tables.py */
#include "mechanism/reconcile.h"

#include <stddef.h>

/*
** One attribute of a table: cell = (outer * size + key) * inner + rest, with the key of the
** attribute in the middle.
*/
struct axis {
  int outer, size, inner;
};

static struct axis axis_of(const struct ways *ways, const struct cross_table *table,
                           int attribute) {
  struct axis axis = {1, ways->sizes[attribute], 1};
  for (int i = 0; i < ways->attributes; i++) {
    if (!(table->mask >> i & 1)) continue;
    if (i < attribute) axis.outer *= ways->sizes[i];
    if (i > attribute) axis.inner *= ways->sizes[i];
  }
  return axis;
}

/* Adds to `means` the mean of `cells` along the axis. */
static void add_means(const struct axis *axis, double *cells, double *means) {
  for (int i = 0; i < axis->outer; i++) {
    double *to = means + (size_t)i * (size_t)axis->inner;
    const double *from = cells + (size_t)i * (size_t)axis->size * (size_t)axis->inner;
    for (int k = 0; k < axis->size; k++, from += axis->inner)
      for (int j = 0; j < axis->inner; j++) to[j] += from[j] / axis->size;
  }
}

/* Adds to `cells` the numbers in `parts`, spread evenly along the axis. */
static void add_spread(const struct axis *axis, double *cells, double *parts) {
  for (int i = 0; i < axis->outer; i++) {
    const double *from = parts + (size_t)i * (size_t)axis->inner;
    double *to = cells + (size_t)i * (size_t)axis->size * (size_t)axis->inner;
    for (int k = 0; k < axis->size; k++, to += axis->inner)
      for (int j = 0; j < axis->inner; j++) to[j] += from[j] / axis->size;
  }
}

/* Subtracts the mean along the axis. */
static void centre(const struct axis *axis, double *cells) {
  for (int i = 0; i < axis->outer; i++) {
    double *block = cells + (size_t)i * (size_t)axis->size * (size_t)axis->inner;
    for (int j = 0; j < axis->inner; j++) {
      double sum = 0;
      for (int k = 0; k < axis->size; k++)
        sum += block[(size_t)k * (size_t)axis->inner + (size_t)j];
      double mean = sum / axis->size;
      for (int k = 0; k < axis->size; k++)
        block[(size_t)k * (size_t)axis->inner + (size_t)j] -= mean;
    }
  }
}

/* Calls `add` for each attribute of each table, with the cells of the table and of its margin. */
static void along_all(const struct ways *ways, double *tables,
                      void (*add)(const struct axis *axis, double *table, double *margin)) {
  for (int i = 0; i < ways->attributes; i++) {
    for (int a = 0; a < ways->count; a++) {
      const struct cross_table *table = &ways->tables[a];
      if (!(table->mask >> i & 1)) continue;
      struct axis axis = axis_of(ways, table, i);
      const struct cross_table *margin = ways_find(ways, table->mask & ~(1u << i));
      add(&axis, &tables[table->first], &tables[margin->first]);
    }
  }
}

void reconcile_tables(const struct ways *ways, const double *precisions, double *tables) {
  along_all(ways, tables, add_means);
  for (int b = 0; b < ways->count; b++) {
    const struct cross_table *table = &ways->tables[b];
    double *cells = &tables[table->first];
    for (int c = 0; c < table->cells; c++) cells[c] /= precisions[b];
    for (int i = 0; i < ways->attributes; i++) {
      if (!(table->mask >> i & 1)) continue;
      struct axis axis = axis_of(ways, table, i);
      centre(&axis, cells);
    }
  }
  along_all(ways, tables, add_spread);
}
