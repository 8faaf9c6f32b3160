/* cross_tables.c: see mechanism.h. Tests: tests/mechanism/test_cross_tables.py */

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "mechanism/mechanism.h"

#define ROUNDS     4000
#define GAP        0x1p-10 /* the objective is at most this part above the best one */
#define MULTIPLIER 0x1p15
#define LEAST      0x1p-12 /* a smaller share is not measured */

/* A table and one inside it, or itself: their numbers, and n(inner)/n(outer). */
struct pair {
  int outer, inner;
  double ratio;
};

/* All pairs, by outer table in the order of layout.h and by inner mask downward. */
struct pairs {
  struct pair *list;
  size_t count;
};

static int pairs_open(struct pairs *pairs, const struct ways *ways) {
  size_t count = 0, used = 0;
  for (int a = 0; a < ways->count; a++) {
    size_t inside = 1;
    for (unsigned mask = ways->tables[a].mask; mask; mask &= mask - 1) inside *= 2;
    count += inside;
  }
  assert(count > 0); /* every release has the total */
  *pairs = (struct pairs){malloc(sizeof *pairs->list * count), count};
  for (int a = 0; a < ways->count && pairs->list; a++) {
    const struct cross_table *outer = &ways->tables[a];
    unsigned mask = outer->mask;
    for (int more = 1; more; more = mask != 0, mask = (mask - 1) & outer->mask) {
      const struct cross_table *inner = ways_find(ways, mask);
      double ratio = (double)inner->cells / outer->cells;
      pairs->list[used++] = (struct pair){a, (int)(inner - ways->tables), ratio};
    }
  }
  return pairs->list != 0;
}

/* Returns k_B. */
static double free_part(const struct ways *ways, int b) {
  double part = 1;
  for (int i = 0; i < ways->attributes; i++)
    if (ways->tables[b].mask >> i & 1) part *= (ways->sizes[i] - 1.0) / ways->sizes[i];
  return part;
}

static void set_zero(double *numbers, int count) {
  for (int i = 0; i < count; i++) numbers[i] = 0;
}

/* Sets p_B for the shares w. */
static void set_precisions(const struct pairs *pairs, const struct ways *ways, const double *w,
                           double *p) {
  set_zero(p, ways->count);
  for (size_t i = 0; i < pairs->count; i++) {
    const struct pair *pair = &pairs->list[i];
    p[pair->inner] += w[pair->outer] * pair->ratio;
  }
}

/* ---- the best shares for Gaussian noise ------------------------------------------------------ */

/* The objective f = sum of c_B/p_B with c_B = sum of lambda_A k_B (n(B)/n(A))^2. */
struct objective {
  const struct ways *ways;
  struct pairs pairs;
  double *c, *p, *g; /* one number for each table */
};

static void set_constants(struct objective *objective) {
  const struct ways *ways = objective->ways;
  double sum = 0;
  for (int a = 0; a < ways->count; a++) sum += ways->tables[a].weight;
  set_zero(objective->c, ways->count);
  for (size_t i = 0; i < objective->pairs.count; i++) {
    const struct pair *pair = &objective->pairs.list[i];
    double lambda = ways->tables[pair->outer].weight / sum;
    objective->c[pair->inner] +=
        lambda * free_part(ways, pair->inner) * (pair->ratio * pair->ratio);
  }
}

/* Sets p and returns f. Where c_B is 0, some attribute has one key and table B adds nothing. */
static double evaluate(struct objective *objective, const double *w) {
  double f = 0;
  set_precisions(&objective->pairs, objective->ways, w, objective->p);
  for (int b = 0; b < objective->ways->count; b++)
    if (objective->c[b] > 0) f += objective->c[b] / objective->p[b];
  return f;
}

/* Sets g after evaluate(), and returns the largest g. */
static double set_slopes(struct objective *objective) {
  double most = 0;
  set_zero(objective->g, objective->ways->count);
  for (size_t i = 0; i < objective->pairs.count; i++) {
    const struct pair *pair = &objective->pairs.list[i];
    double c = objective->c[pair->inner], p = objective->p[pair->inner];
    if (c > 0) objective->g[pair->outer] += c / (p * p) * pair->ratio;
  }
  for (int a = 0; a < objective->ways->count; a++) most = fmax(most, objective->g[a]);
  return most;
}

/* For Gaussian noise the w_A add up to 1, and f is convex. The iteration q_A <- q_A sqrt(g_A/f),
** with g_A the slope of -f in q_A, is monotone: by Cauchy-Schwarz
**
**     1/p_B(q') <= sum over A of q_A^2 (n(B)/n(A)) / (p_B(q)^2 q'_A)
**
** with equality at q' = q, so f(q') <= sum over A of q_A^2 g_A/q'_A, which is least at the update.
** Read backwards, the same inequality bounds the best f from below: f^2 / max g_A. */
static void minimise(struct objective *objective, double *q) {
  int count = objective->ways->count;
  for (int a = 0; a < count; a++) q[a] = 1.0 / count;
  for (int round = 0; round < ROUNDS; round++) {
    double f = evaluate(objective, q), most = set_slopes(objective), sum = 0;
    if (most / f - 1 <= GAP) return;
    for (int a = 0; a < count; a++) {
      q[a] *= sqrt(objective->g[a] / f);
      sum += q[a];
    }
    for (int a = 0; a < count; a++) q[a] /= sum;
  }
}

/* ---- multipliers ----------------------------------------------------------------------------- */

static void round_off(const struct ways *ways, const double *parts, int *multipliers) {
  for (int a = 0; a < ways->count; a++) {
    int least = ways_is_largest(ways, &ways->tables[a]);
    multipliers[a] = (int)floor(MULTIPLIER * parts[a]);
    if (multipliers[a] < least) multipliers[a] = least;
  }
}

/* Sets parts proportional to a candidate for the sum norm. Their sum is 1. */
static void propose(const struct ways *ways, int candidate, const double *q, double *parts) {
  double sum = 0;
  for (int a = 0; a < ways->count; a++) {
    if (candidate == 0) parts[a] = q[a];
    if (candidate == 1) parts[a] = q[a] * q[a];
    if (candidate == 2) parts[a] = ways_is_largest(ways, &ways->tables[a]);
    sum += parts[a];
  }
  for (int a = 0; a < ways->count; a++) {
    parts[a] /= sum;
    if (parts[a] < LEAST) parts[a] = 0;
  }
}

/* Chooses the best candidate for the sum norm. `parts` is room for one number for each table. */
static void choose(struct objective *objective, const double *q, double *parts, int *multipliers) {
  const struct ways *ways = objective->ways;
  double least = INFINITY;
  int best = 0;
  for (int candidate = 0; candidate < 3; candidate++) {
    propose(ways, candidate, q, parts);
    round_off(ways, parts, multipliers);
    double sum = 0;
    for (int a = 0; a < ways->count; a++) sum += multipliers[a];
    for (int a = 0; a < ways->count; a++) parts[a] = multipliers[a] / sum * (multipliers[a] / sum);
    double f = evaluate(objective, parts);
    if (f < least) {
      least = f;
      best = candidate;
    }
  }
  propose(ways, best, q, parts);
  round_off(ways, parts, multipliers);
}

int shares_multipliers(const struct ways *ways, int in_sum_norm, int *multipliers) {
  size_t count = (size_t)ways->count;
  double *room = malloc(sizeof *room * 5 * count);
  struct objective objective = {.ways = ways};
  int going = pairs_open(&objective.pairs, ways) && room;
  if (going) {
    double *q = room, *parts = room + count;
    objective.c = room + 2 * count;
    objective.p = room + 3 * count;
    objective.g = room + 4 * count;
    set_constants(&objective);
    minimise(&objective, q);
    if (in_sum_norm) {
      choose(&objective, q, parts, multipliers);
    } else {
      for (size_t a = 0; a < count; a++) parts[a] = q[a] < LEAST ? 0 : sqrt(q[a]);
      round_off(ways, parts, multipliers);
    }
  }
  free(objective.pairs.list);
  free(room);
  return going;
}

/* ---- variances ------------------------------------------------------------------------------- */

/* For measured ways: sets precisions[i] to p_B of table i, and variances[i] to the variance
** of each cell of the published table i, in units of v. Returns 1, or 0 if memory runs out. */
static int shares_variances(const struct ways *ways, int in_sum_norm, double *precisions,
                            double *variances) {
  struct pairs pairs;
  double sum = (double)ways_sum(ways), all = in_sum_norm ? sum * sum : (double)ways_square(ways);
  if (!pairs_open(&pairs, ways)) return 0;
  for (int a = 0; a < ways->count; a++) {
    double multiplier = ways->tables[a].multiplier;
    variances[a] = multiplier * multiplier / all; /* first w_A */
  }
  set_precisions(&pairs, ways, variances, precisions);
  set_zero(variances, ways->count);
  for (size_t i = 0; i < pairs.count; i++) { /* now the variances */
    const struct pair *pair = &pairs.list[i];
    variances[pair->outer] +=
        free_part(ways, pair->inner) / precisions[pair->inner] * (pair->ratio * pair->ratio);
  }
  free(pairs.list);
  return 1;
}

/* ---- published tables that agree ------------------------------------------------------------- */

/* Makes the tables of a release agree. This is post-processing of the noisy coordinates, so it
** costs no privacy.
**
** The result is the generalised least-squares estimate of all tables from the measured ones. Let
** Y_A be the measured table A, with noise of variance v/w_A in each cell. For every table B, the
** weighted means of all measured tables that contain B give one table U_B, whose expectation is p_B
** times B (mechanism.h). Its part that no smaller table determines, centred along every axis, is
** the residual r_B of B. A table is the sum of the residuals inside it, each spread evenly over the
** attributes that it lacks. Because the residuals of different tables are orthogonal, and the noise
** of each r_B is a multiple of an orthogonal projection, this is the least-squares estimate
** (compare ResidualPlanner: Xiao, He, Zhang and Kifer 2023).
**
** All steps are means along one axis, so nothing cancels, and the cost is (number of attributes of
** a table) x (number of cells).
**
** tables[] has one number for each cell of all tables (struct cross_table, first). On entry, the
** cells of a measured table hold w_A Y_A, and all other cells hold 0. On return, they hold the
** published tables. `precisions` holds p_B for each table. */

/* One attribute of a table: cell = (outer * size + key) * inner + rest, with the key of the
** attribute in the middle. */
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

static void reconcile_tables(const struct ways *ways, const double *precisions, double *tables) {
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

/* ---- estimates ------------------------------------------------------------------------------- */

/* Returns S^2 (layout.h), or the square of the sum of the multipliers in the sum norm: the noise of
** one count that is released alone has 1/S^2 of the variance of a coordinate. */
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

/* Sets numbers[cell * components + component] to the published tables (mechanism.h). A measured
** table A enters as w_A Y_A, where w_A = m^2/S^2 and Y_A is its coordinates divided by the
** multiplier m. */
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
