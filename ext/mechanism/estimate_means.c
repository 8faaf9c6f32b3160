/*
** estimate_means.c: averages of numbers and of vectors. See estimate.h.
** Tests: tests/mechanism/test_means.py
*/
#include "mechanism/estimate.h"

#include <math.h>

#include "math/cost.h"

/*
** A mean is sum / rows, and is known to lie in [-limit, limit]. The sum has noise of standard
** deviation `noise`, and the number of rows has noise of standard deviation noise / factor. The two
** noises are independent, or sum - u rows has the same variance as if they were, for every u.
*/
struct ratio {
  double sum, rows, noise, factor, limit;
};

/*
** Computes the interval of a mean. For the true mean u, sum - u rows is noise alone, with the
** standard deviation noise sqrt(1 + (u/factor)^2). The interval holds every u for which this noise
** is in its central range (Fieller 1954), so it has its confidence for any number of rows. Where
** the first-order interval value +- z stddev is nearly the same, `low` and `high` stay. (Where the
** rows weigh less than one together, the two differ, because the mean is computed with one row.)
**
** The condition is a quadratic inequality in u. If its leading coefficient is not above 0, or if no
** u in [-limit, limit] fulfils it, the number of rows says too little, and the ends are those of
** the range or of the first-order interval.
*/
static void fieller(const struct ratio *ratio, double z, double mean, double *low, double *high) {
  double width = z * ratio->noise, of_rows = width / ratio->factor;
  if (of_rows <= LINEAR_PART * ratio->rows && ratio->rows >= 1) return;
  double lead = ratio->rows * ratio->rows - of_rows * of_rows;
  double from = -ratio->limit, to = ratio->limit;
  if (ratio->rows > 0 && lead > 0) {
    double middle = ratio->sum * ratio->rows / lead;
    double rest = (ratio->sum * ratio->sum - width * width) / lead;
    double root = sqrt(fmax(middle * middle - rest, 0));
    from = clamp(middle - root, -ratio->limit, ratio->limit);
    to = clamp(middle + root, -ratio->limit, ratio->limit);
  }
  *low = from < mean ? from : clamp(*low, -ratio->limit, mean);
  *high = to > mean ? to : clamp(*high, mean, ratio->limit);
}

/* Maps the mean u to middle + half u, which lies in [least, most]. */
struct axis {
  double middle, half, least, most;
};

static struct axis axis_of(const struct contribution *question) {
  return (struct axis){question->low / 2 + question->high / 2,
                       question->high / 2 - question->low / 2, question->low, question->high};
}

/*
** Returns the estimate of a mean, mapped to an axis. Its stddev is that of the
** noise to first order, noise sqrt(1 + (mean/factor)^2) / rows.
*/
static struct estimate mean_of(const struct reading *reading, int cell, int component,
                               const struct ratio *ratio, const struct axis *axis) {
  double rows = fmax(ratio->rows, 1), limit = ratio->limit;
  double mean = clamp(ratio->sum / rows, -limit, limit);
  double stddev = ratio->noise / rows * hypot(1, mean / ratio->factor);
  double value = clamp(axis->middle + axis->half * mean, axis->least, axis->most);
  struct estimate found = estimate_of(reading, cell, component, value, axis->half * stddev, 1);
  double z = reading_mixed_width(reading), low = mean - z * stddev, high = mean + z * stddev;
  double first_low = low, first_high = high;
  fieller(ratio, z, mean, &low, &high);
  if (low != first_low || high != first_high) {
    found.low = fmin(value, nextafter(axis->middle + axis->half * low, -INFINITY));
    found.high = fmax(value, nextafter(axis->middle + axis->half * high, INFINITY));
  }
  return found;
}

/* Returns a mean of coordinate `component`, computed with the number of rows of the cell. */
static struct ratio ratio_of(const struct reading *reading, const int64_t *values, int cell,
                             int component, double limit) {
  return (struct ratio){reading_coordinate(reading, values, cell, component),
                        reading_rows(reading, values, cell), view_noise(&reading->view),
                        reading->shape->count_factor, limit};
}

/* Computes the average of x in [low, high] for each cell. */
int estimate_means(struct reading *reading, const int64_t *values, struct estimate *estimates) {
  struct axis axis = axis_of(reading->question);
  for (int cell = 0; cell < reading->cells; cell++) {
    struct ratio ratio = ratio_of(reading, values, cell, 1, 1);
    estimates[cell] = mean_of(reading, cell, 0, &ratio, &axis);
  }
  return reading->cells;
}

/*
** Computes the same averages from a = sum of (1 + u)/2 and b = sum of (1 - u)/2, where u is x
** mapped linearly from [low, high] to [-1, 1]. The mean of u is (a - b)/(a + b). The noise of (a -
** b) - u (a + b) = (1 - u) a - (1 + u) b has the standard deviation sigma sqrt(2) sqrt(1 + u^2).
*/
int estimate_paired_means(struct reading *reading, const int64_t *values,
                          struct estimate *estimates) {
  struct axis axis = axis_of(reading->question);
  for (int cell = 0; cell < reading->cells; cell++) {
    double a = reading_coordinate(reading, values, cell, 0),
           b = reading_coordinate(reading, values, cell, 1);
    struct ratio ratio = {a - b, reading_rows(reading, values, cell),
                          M_SQRT2 * view_noise(&reading->view), 1, 1};
    estimates[cell] = mean_of(reading, cell, 0, &ratio, &axis);
  }
  return reading->cells;
}

/* ---- what is inside -------------------------------------------------------------------------- */

/* The count is one coordinate, or with Laplace noise the sum of all coordinates of a cell. */
static int inside_counts(const struct reading *reading, const int64_t *values,
                         struct estimate *estimates) {
  int terms = reading->shape->counted;
  double noise = sqrt(terms) * view_noise(&reading->view) / reading->shape->count_factor;
  for (int cell = 0; cell < reading->cells; cell++)
    estimates[cell] =
        estimate_of(reading, cell, 0, reading_rows(reading, values, cell), noise, terms > 1);
  return reading->cells;
}

/*
** The average inside a spread. With Laplace noise, let a, b and c be the sums of (1 - w)^2,
** 2 w (1 - w) and w^2 with u = 2 w - 1, so that the sum of u is c - a, and the number of rows is
** a + b + c. The noise of (c - a) - u (a + b + c) has the variance sigma^2 (2 + 3 u^2).
*/
static int inside_averages(const struct reading *reading, const int64_t *values,
                           struct estimate *estimates) {
  struct axis axis = axis_of(reading->question);
  for (int cell = 0; cell < reading->cells; cell++) {
    struct ratio ratio = ratio_of(reading, values, cell, 1, 1);
    if (reading->shape->family->is_l1) {
      ratio.sum = reading_coordinate(reading, values, cell, 2) -
                  reading_coordinate(reading, values, cell, 0);
      ratio.noise = M_SQRT2 * view_noise(&reading->view);
      ratio.factor = sqrt(2.0 / 3);
    }
    estimates[cell] = mean_of(reading, cell, 0, &ratio, &axis);
  }
  return reading->cells;
}

int estimate_inside(struct reading *reading, const int64_t *values, struct estimate *estimates) {
  return reading->inside == INSIDE_COUNT ? inside_counts(reading, values, estimates)
                                         : inside_averages(reading, values, estimates);
}

int estimate_vector_means(struct reading *reading, const int64_t *values,
                          struct estimate *estimates) {
  double limit = reading->question->clip;
  struct axis axis = {0, 1, -limit, limit};
  for (int j = 0; j < reading->question->size; j++) {
    struct ratio ratio = ratio_of(reading, values, 0, 1 + j, limit);
    estimates[j] = mean_of(reading, 0, j, &ratio, &axis);
  }
  return reading->question->size;
}

/*
** Upper bounds on the slopes of a mean with respect to the sums from which it is computed: for a
** count with the factor 1/2, and for paired sums. Each bound is the slope at the worst u, which is
** u = 1.
*/
#define MEAN_SLOPE 2.23606797749979 /* sqrt(1 + 2^2) */
#define PAIR_SLOPE 2.0              /* sqrt(0 + 2^2) */

double estimate_mean_stddev(const struct reading *reading) {
  return published_up(reading_half_range(reading) * MEAN_SLOPE * view_noise(&reading->view));
}

double estimate_paired_mean_stddev(const struct reading *reading) {
  return published_up(reading_half_range(reading) * PAIR_SLOPE * view_noise(&reading->view));
}

double estimate_vector_mean_stddev(const struct reading *reading) {
  double slope = hypot(1, reading->question->clip / reading->shape->count_factor);
  return published_up(slope * view_noise(&reading->view));
}

struct range range_of_x(const struct contribution *question, int root) {
  (void)root;
  return (struct range){question->low, question->high};
}

struct range range_of_components(const struct contribution *question, int root) {
  (void)root;
  return (struct range){-question->clip, question->clip};
}
