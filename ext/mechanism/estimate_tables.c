/* estimate_tables.c: cross tables. See estimate.h. Tests: tests/mechanism/test_cross_tables.py */
#include "mechanism/estimate.h"

#include <math.h>
#include <stdlib.h>

#include "mechanism/reconcile.h"
#include "mechanism/shares.h"

/*
** Returns S^2 (ways.h), or the square of the sum of the multipliers in the sum norm: the noise of
** one count that is released alone has 1/S^2 of the variance of a coordinate.
*/
static double square_of(const struct layout *shape) {
  double sum = (double)ways_sum(shape->ways);
  return shape->is_l1 ? sum * sum : (double)ways_square(shape->ways);
}

int estimate_parts(const struct layout *shape, double *parts) {
  const struct ways *ways = shape->ways;
  double *precisions = malloc(sizeof *precisions * (size_t)ways->count);
  int done = precisions && shares_variances(ways, shape->is_l1, precisions, parts);
  for (int i = 0; i < ways->count && done; i++) parts[i] = sqrt(parts[i] / square_of(shape));
  free(precisions);
  return done;
}

/*
** Sets numbers[cell * components + component] to the published tables (reconcile.h). A measured
** table A enters as w_A Y_A, where w_A = m^2/S^2 and Y_A is its coordinates divided by the
** multiplier m.
*/
static int reconcile(const struct reading *reading, const int64_t *values, double *numbers) {
  const struct ways *ways = reading->shape->ways;
  size_t count = (size_t)ways->count, components = (size_t)reading->shape->components;
  double *precisions = malloc(sizeof *precisions * 2 * count);
  double *cells = malloc(sizeof *cells * (size_t)ways->cells);
  int going = precisions && cells &&
              shares_variances(ways, reading->shape->is_l1, precisions, precisions + count);
  for (size_t j = 0; j < components && going; j++) {
    for (int a = 0; a < ways->count; a++) {
      const struct cross_table *table = &ways->tables[a];
      double weight =
          ldexp(table->multiplier / square_of(reading->shape), reading->view.granularity);
      const int64_t *from = &values[(size_t)table->first_coordinate * components + j];
      for (int c = 0; c < table->cells; c++)
        cells[table->first + c] =
            table->multiplier ? weight * (double)from[(size_t)c * components] : 0;
    }
    reconcile_tables(ways, precisions, cells);
    for (int c = 0; c < ways->cells; c++) numbers[(size_t)c * components + j] = cells[c];
  }
  free(precisions);
  free(cells);
  return going;
}

int estimate_tables(struct reading *reading, const int64_t *values, struct estimate *estimates) {
  const struct ways *ways = reading->shape->ways;
  struct layout shape = *reading->shape;
  size_t components = (size_t)shape.components;
  double *numbers = malloc(sizeof *numbers * (size_t)ways->cells * components);
  double *parts = malloc(sizeof *parts * (size_t)ways->count);
  int going =
      numbers && parts && estimate_parts(&shape, parts) && reconcile(reading, values, numbers);
  shape.width = shape.components;
  for (int a = 0; a < ways->count && going; a++) {
    const struct cross_table *table = &ways->tables[a];
    struct reading part = *reading;
    part.shape = &shape;
    part.cells = table->cells;
    part.numbers = &numbers[(size_t)table->first * components];
    part.view.part = parts[a];
    going = shape.family->estimate(&part, values, &estimates[table->first]) == table->cells;
    for (int c = 0; c < table->cells && going; c++)
      estimates[table->first + c].cell = table->first + c;
  }
  free(numbers);
  free(parts);
  return going ? ways->cells : -1;
}
