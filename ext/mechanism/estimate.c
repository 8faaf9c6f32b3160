/* estimate.c: see mechanism.h.
** Tests: tests/mechanism/test_estimate.c, tests/release/test_series_figures.py */
#include "mechanism/mechanism.h"

#include <math.h>

#include "math/math.h"

/* ---- how a point is read --------------------------------------------------------------------- */

double estimate_variance(const struct view *view) {
  return ldexp((double)view->clock, 2 * view->granularity);
}

double estimate_shrink(const struct view *view, double tau) {
  if (!view->is_ou) return 1;
  if (view->theta == view->theta) return ou_shrink_process(view->theta, view->rho, tau);
  return ou_shrink_radius(view->radius, view->dimension, tau);
}

double view_noise(const struct view *view) {
  double part = view->part > 0 ? view->part : 1;
  return part * ldexp(sqrt((double)view->clock), view->granularity);
}

double estimate_stddev(const struct view *view) {
  return published_up(estimate_shrink(view, estimate_variance(view)) * view_noise(view));
}

double reading_coordinate(const struct reading *reading, const int64_t *values, int cell,
                          int component) {
  if (reading->numbers)
    return reading->numbers[(size_t)cell * (size_t)reading->shape->width + (size_t)component];
  int64_t steps = values[(int64_t)cell * reading->shape->width + component];
  return ldexp((double)steps, reading->view.granularity);
}

struct estimate estimate_of(const struct reading *reading, int cell, int component, double value,
                            double stddev, int is_mixed) {
  double noise = published_up(stddev), confidence = reading->confidence;
  double half_width = is_mixed ? mixed_half_width(reading->view.noise, noise, confidence)
                               : reading->view.noise->half_width(noise, confidence);
  double low = nextafter(value - half_width, -INFINITY);
  double high = nextafter(value + half_width, INFINITY);
  return (struct estimate){cell, component, value, noise, low, high};
}

double reading_mixed_width(const struct reading *reading) {
  return mixed_half_width(reading->view.noise, 1, reading->confidence);
}

/* The noisy number of rows in a cell. */
static double reading_rows(const struct reading *reading, const int64_t *values, int cell) {
  double count = 0;
  for (int j = 0; j < reading->shape->counted; j++)
    count += reading_coordinate(reading, values, cell, j);
  return count / reading->shape->count_factor;
}

static double reading_half_range(const struct reading *reading) {
  return reading->question->high / 2 - reading->question->low / 2;
}

/* Gives an estimate the value `value`, and widens its interval so that it contains the value. */
static void move(struct estimate *estimate, double value) {
  estimate->low = fmin(estimate->low, value);
  estimate->high = fmax(estimate->high, value);
  estimate->value = value;
}

struct estimate estimate_mixed(const struct reading *reading, const struct estimate *from,
                               int count, const double *weights, int cell) {
  double value = 0, variance = 0, largest = 0, all = 0;
  int terms = 0;
  for (int i = 0; i < count; i++) {
    largest = fmax(largest, weights[i] * from[i].stddev);
    all += weights[i];
    terms += weights[i] > 0;
  }
  for (int i = 0; i < count; i++) {
    double part = largest > 0 ? weights[i] * from[i].stddev / largest : 0;
    value += weights[i] * from[i].value;
    variance += part * part;
  }
  double noise = largest * sqrt(variance), shrink = reading->view.is_ou ? reading->shrink : 1;
  double x = all * reading->view.centre * (1 - 1 / shrink) + value / shrink; /* not shrunk */
  struct estimate mixed = estimate_of(reading, cell, 0, x, noise / shrink, terms > 1);
  if (shrink != 1) move(&mixed, value);
  mixed.stddev = published_up(noise);
  return mixed;
}

/* ---- sums: counts, vectors, bins, keys ------------------------------------------------------- */

/* OU noise shrinks the value towards the centre. The interval is that of the coordinate before it
** shrinks, because it holds the true sum. */
static struct estimate shown_sum(struct reading *reading, const int64_t *values, int cell,
                                 int component, int number) {
  const struct view *view = &reading->view;
  double x = reading_coordinate(reading, values, cell, component);
  int is_mixed = reading->numbers != 0;
  struct estimate found = estimate_of(reading, cell, number, x, view_noise(view), is_mixed);
  if (view->is_ou) {
    move(&found, view->centre + reading->shrink * (x - view->centre));
    found.stddev = published_up(reading->shrink * view_noise(view));
  }
  return found;
}

int estimate_sums(struct reading *reading, const int64_t *values, struct estimate *estimates) {
  int first = reading->shape->selects; /* the count that selects private keys is not an estimate */
  int used = 0, per_cell = reading->shape->width - first;
  reading->shrink = estimate_shrink(&reading->view, estimate_variance(&reading->view));
  for (int cell = 0; cell < reading->cells; cell++) {
    for (int j = 0; j < per_cell; j++)
      estimates[used++] = shown_sum(reading, values, cell, first + j, j);
  }
  return used;
}

double estimate_sum_stddev(const struct reading *reading) {
  return estimate_stddev(&reading->view);
}

/* ---- noise before there is data -------------------------------------------------------------- */

double estimate_total_stddev(const struct reading *reading) {
  return reading->shape->family->stddev(reading);
}

double estimate_half_width(const struct reading *reading, double rows) {
  const struct family *family = reading->shape->family;
  if (reading->view.part > 0 && family->is_linear) /* computed from several draws */
    return mixed_half_width(reading->view.noise, view_noise(&reading->view), reading->confidence);
  if (family->is_linear) /* the interval of an OU release does not shrink */
    return reading->view.noise->half_width(view_noise(&reading->view), reading->confidence);
  double stddev = estimate_total_stddev(reading), half = reading_half_range(reading);
  if (family->is_ratio || family->shares || family->is_tree) stddev /= rows;
  double width = mixed_half_width(reading->view.noise, stddev, reading->confidence);
  if (family->is_tree) return 2 * half * (width + 0.5 / reading->shape->bins);
  if (!reading->root) return width;
  /* The ends of the interval of a standard deviation are the roots of the ends of the variance's
  ** interval. If the rows are spread evenly, the variance is half^2/3. */
  double variance = half * half / 3;
  return published_up((sqrt(variance + width) - sqrt(fmax(variance - width, 0))) / 2);
}

int estimate_room(const struct reading *reading) {
  int is_tree = reading->shape->family->is_tree;
  if (reading->shape->ways) return reading->shape->ways->cells;
  return reading->cells * (is_tree ? reading->quantile_count : reading->shape->width);
}

double estimate_threshold(const struct reading *reading) {
  const struct layout *shape = reading->shape;
  int64_t most = shape->blocks[0].lead_reach;
  if (shape->each && shape->each < most) most = shape->each;
  double reach = ldexp((double)most, -reading->view.shift);
  double tail = -expm1(log1p(-reading->selection_delta) / shape->max_groups);
  double noise = reading->view.noise->tail(reading->view.clock, shape->counted, tail);
  return ceil((reach + noise) * (1 + 0x1p-40)) + 2 * shape->counted;
}

/* ---- private keys ---------------------------------------------------------------------------- */

/* Returns the least true count for which a noisy count of at least `count` is not too rare among
** the noisy counts that reach the threshold. Let Q be the probability that the noise of a count
** exceeds a number. The probability is R = Q(count - true) / Q(threshold - true), which grows with
** the true count, and the result is where R is (1 - confidence)/2. It is not below 0. */
static double least_count(const struct reading *reading, double count, double threshold) {
  double sigma = sqrt((double)reading->view.clock), rare = log((1 - reading->confidence) / 2);
  double low = 0, high = count;
  for (int i = 0; i < 100 && high - low > 1e-9 * sigma; i++) {
    double middle = low / 2 + high / 2;
    double ratio = reading->view.noise->log_tail((count - middle) / sigma) -
                   reading->view.noise->log_tail((threshold - middle) / sigma);
    if (ratio < rare) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

/* A private key is published because its noisy count reached the threshold. Given this, the noise
** of the count is no longer centred at 0: it has raised small counts. This function makes the
** interval of a number that depends on this count hold its confidence among published keys.
**
** If the number is the count, the low end comes from the truncated distribution (least_count()).
** The high end stays, because selection makes it err less often.
**
** For an average or a spread, let z be the half-width of the noise of the count. If the noisy count
** is less than z above the threshold, noise may have lifted a much smaller count, and the interval
** becomes the whole range. If the true count is at or below the threshold, a published count is z
** above the threshold with at most the probability 1 - confidence. If it is above the threshold,
** the key is mostly published anyway.
**
** Numbers whose count is another coordinate, with noise of its own (layout.h, `selects`), stay. */
static void condition_on_selection(const struct reading *reading, struct estimate *estimate,
                                   double count, double threshold) {
  const struct layout *shape = reading->shape;
  if (shape->family->is_linear) {
    double low = ldexp(least_count(reading, count, threshold), reading->view.granularity);
    estimate->low = fmin(estimate->low, nextafter(low, -INFINITY));
  } else {
    double noise = sqrt(shape->counted * (double)reading->view.clock);
    if (count - threshold >= reading_mixed_width(reading) * noise) return;
    estimate->low = -INFINITY;
    /* Noise has raised a count that was selected, so it errs upward. */
    if (reading->inside == INSIDE_COUNT) estimate->low = fmin(0, estimate->value);
    if (reading->inside != INSIDE_COUNT) estimate->high = INFINITY;
  }
}

/* Drops private keys below the threshold, and returns the number of the other estimates. */
static int select_keys(const struct reading *reading, const int64_t *values,
                       struct estimate *estimates, int used) {
  const struct layout *shape = reading->shape;
  double threshold = estimate_threshold(reading);
  int kept = 0;
  for (int i = 0; i < used; i++) {
    const int64_t *counts = &values[(int64_t)estimates[i].cell * shape->width];
    double count = 0; /* the noisy count that selects the key, in lattice steps */
    for (int j = 0; j < shape->counted; j++) count += (double)counts[j];
    if (count < threshold) continue;
    estimates[kept] = estimates[i];
    if (!shape->selects) condition_on_selection(reading, &estimates[kept], count, threshold);
    kept++;
  }
  return kept;
}

/* ---- points ---------------------------------------------------------------------------------- */

/* Moves the estimates of an OU release towards its centre, for kinds that are not linear in the
** point: averages, spreads and quantiles.
**
** If a radius is given, each value (a vector as a whole) moves to the nearest value within the
** radius of the centre. If the true value is within the radius, the moved value is at least as
** close to it, whatever the noise is. The values are not scaled as in Theorem 8: that is optimal
** for noise of known variance without clamping, but makes the worst case of a clamped average
** worse.
**
** If theta is given, each value shrinks towards the centre, by the factor that the process has when
** its noise has the variance of the noise of the value (to first order).
**
** The intervals keep their ends, because they hold the true values. They grow where a value leaves
** them. */
static void move_towards_centre(const struct reading *reading, struct estimate *estimates,
                                int count) {
  const struct view *view = &reading->view;
  double centre = view->centre, norm = 0;
  int is_vector = reading->shape->family->has_vector;
  for (int i = 0; i < count && is_vector; i++) norm = hypot(norm, estimates[i].value - centre);
  for (int i = 0; i < count; i++) {
    double x = estimates[i].value, noise = estimates[i].stddev;
    if (view->theta == view->theta) {
      double shrink = estimate_shrink(view, noise * noise);
      move(&estimates[i], centre + shrink * (x - centre));
      estimates[i].stddev = published_up(shrink * noise);
    } else if (is_vector) {
      if (norm > view->radius) move(&estimates[i], centre + view->radius / norm * (x - centre));
    } else {
      move(&estimates[i], clamp(x, centre - view->radius, centre + view->radius));
    }
  }
}

int estimate_point(struct reading *reading, const int64_t *values, struct estimate *estimates) {
  const struct layout *shape = reading->shape;
  reading->shrink = 1;
  int used = reading->inside ? shape->family->inside(reading, values, estimates)
             : shape->ways   ? estimate_tables(reading, values, estimates)
                             : shape->family->estimate(reading, values, estimates);
  if (reading->view.is_ou && !shape->family->is_linear)
    move_towards_centre(reading, estimates, used);
  if (shape->max_groups) used = select_keys(reading, values, estimates, used);
  if (!shape->family->range) return used;
  struct range range = shape->family->range(reading->question, reading->root);
  if (reading->inside == INSIDE_COUNT) range = (struct range){-INFINITY, INFINITY};
  if (reading->inside == INSIDE_AVERAGE)
    range = (struct range){reading->question->low, reading->question->high};
  for (int i = 0; i < used; i++) {
    estimates[i].value = clamp(estimates[i].value, range.least, range.most);
    estimates[i].low = clamp(estimates[i].low, range.least, range.most);
    estimates[i].high = clamp(estimates[i].high, range.least, range.most);
  }
  return used;
}

/* ---- averages -------------------------------------------------------------------------------- */

/* A mean is sum / rows, and is known to lie in [-limit, limit]. The sum has noise of standard
** deviation `noise`, and the number of rows has noise of standard deviation noise / factor. The two
** noises are independent, or sum - u rows has the same variance as if they were, for every u. */
struct ratio {
  double sum, rows, noise, factor, limit;
};

/* Computes the interval of a mean. For the true mean u, sum - u rows is noise alone, with the
** standard deviation noise sqrt(1 + (u/factor)^2). The interval holds every u for which this noise
** is in its central range (Fieller 1954), so it has its confidence for any number of rows. Where
** the first-order interval value +- z stddev is nearly the same, `low` and `high` stay. (Where the
** rows weigh less than one together, the two differ, because the mean is computed with one row.)
**
** The condition is a quadratic inequality in u. If its leading coefficient is not above 0, or if no
** u in [-limit, limit] fulfils it, the number of rows says too little, and the ends are those of
** the range or of the first-order interval. */
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

/* Returns the estimate of a mean, mapped to an axis. Its stddev is that of the noise to first
** order, noise sqrt(1 + (mean/factor)^2) / rows. */
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

static struct ratio ratio_of(const struct reading *reading, const int64_t *values, int cell,
                             int component, double limit) {
  return (struct ratio){reading_coordinate(reading, values, cell, component),
                        reading_rows(reading, values, cell), view_noise(&reading->view),
                        reading->shape->count_factor, limit};
}

int estimate_means(struct reading *reading, const int64_t *values, struct estimate *estimates) {
  struct axis axis = axis_of(reading->question);
  for (int cell = 0; cell < reading->cells; cell++) {
    struct ratio ratio = ratio_of(reading, values, cell, 1, 1);
    estimates[cell] = mean_of(reading, cell, 0, &ratio, &axis);
  }
  return reading->cells;
}

/* Computes the same averages from a = sum of (1 + u)/2 and b = sum of (1 - u)/2, where u is x
** mapped linearly from [low, high] to [-1, 1]. The mean of u is (a - b)/(a + b). The noise of (a -
** b) - u (a + b) = (1 - u) a - (1 + u) b has the standard deviation sigma sqrt(2) sqrt(1 + u^2). */
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

/* The average inside a spread. With Laplace noise, let a, b and c be the sums of (1 - w)^2,
** 2 w (1 - w) and w^2 with u = 2 w - 1, so that the sum of u is c - a, and the number of rows is
** a + b + c. The noise of (c - a) - u (a + b + c) has the variance sigma^2 (2 + 3 u^2). */
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

/* Upper bounds on the slopes of a mean with respect to its sums, for a count with the factor 1/2
** and for paired sums: those at the worst u, which is 1. */
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

/* ---- variances ------------------------------------------------------------------------------- */

/* A variance as a function of the sums of a cell. y holds the three sums, whose noises are
** independent and have the same variance. Sets *rows to the number of rows of y, and returns the
** variance of u, which is x mapped to [-1, 1]. The variance depends on the ratios of the sums
** only. */
typedef double variance_of_sums(const double y[3], double *rows);

/* From the number of rows, the sum of u and the sum of 2 u^2 - 1. */
static double variance_of_curve(const double y[3], double *rows) {
  double a = y[1] / y[0];
  *rows = y[0];
  return (y[2] / y[0] + 1) / 2 - a * a;
}

/* From the sums of (1 - w)^2, 2 w (1 - w) and w^2, where u = 2 w - 1. The mean of w is m. */
static double variance_of_triple(const double y[3], double *rows) {
  double n = y[0] + y[1] + y[2], c = y[2] / n, m = y[1] / (2 * n) + c;
  *rows = n;
  return 4 * (c - m * m);
}

static double length_of(const double y[3]) {
  return hypot(hypot(y[0], y[1]), y[2]);
}

/* Sets e and f to two vectors of length 1 that are at right angles to y and to each other. */
static void right_angles(const double y[3], double e[3], double f[3]) {
  int least = 0;
  for (int i = 1; i < 3; i++) least = fabs(y[i]) < fabs(y[least]) ? i : least;
  int i = (least + 1) % 3, j = (least + 2) % 3;
  double flat = hypot(y[i], y[j]), length = length_of(y);
  e[least] = 0;
  e[i] = -y[j] / flat;
  e[j] = y[i] / flat;
  for (int k = 0; k < 3; k++) {
    int l = (k + 1) % 3, m = (k + 2) % 3;
    f[k] = (y[l] * e[m] - y[m] * e[l]) / length;
  }
}

/* A circle of points: middle + e cos a + f sin a, for all angles a. */
struct circle {
  variance_of_sums *variance;
  double middle[3], e[3], f[3];
};

static double variance_at(const struct circle *circle, double angle, double *rows) {
  double y[3], c = cos(angle), s = sin(angle);
  for (int i = 0; i < 3; i++) y[i] = circle->middle[i] + circle->e[i] * c + circle->f[i] * s;
  return circle->variance(y, rows);
}

#define ANGLES 32

/* Returns the least (sign 1) or the largest (sign -1) variance on the circle, by golden-section
** search around the best of ANGLES points, whose variances are in `found`. */
static double extreme_of(const struct circle *circle, const double *found, double sign) {
  const double step = 2 * M_PI / ANGLES, part = (sqrt(5) - 1) / 2;
  int best = 0;
  for (int i = 1; i < ANGLES; i++) best = sign * found[i] < sign * found[best] ? i : best;
  double from = (best - 1) * step, to = (best + 1) * step, rows;
  double left = to - part * (to - from), right = from + part * (to - from);
  double at_left = sign * variance_at(circle, left, &rows);
  double at_right = sign * variance_at(circle, right, &rows);
  while (to - from > 1e-5) {
    if (at_left < at_right) {
      to = right;
      right = left;
      at_right = at_left;
      at_left = sign * variance_at(circle, left = to - part * (to - from), &rows);
    } else {
      from = left;
      left = right;
      at_left = at_right;
      at_right = sign * variance_at(circle, right = from + part * (to - from), &rows);
    }
  }
  return sign * fmin(at_left, at_right);
}

/* Sets [*low, *high] to the variances of all y' near y, as Fieller's interval does for a mean. The
** true sums and all their multiples have the same variance, and form a line. The noise moves y away
** from this line at right angles, in two dimensions. So the variance of some y' within the distance
** `radius` of y is the true one unless this noise, of two dimensions, is longer than the radius.
** The y' within the radius have the directions inside a cone around y. The gradient of the variance
** is nowhere 0, so the extremes are on the surface of the cone. If the cone holds points without
** rows, every variance is possible. If no variance in [0, 1] is possible, the first-order interval
** stays. */
static void variances_near(variance_of_sums *variance, const double y[3], double radius,
                           double *low, double *high) {
  double length = length_of(y);
  struct circle circle = {.variance = variance};
  double first_low = *low, first_high = *high;
  *low = 0;
  *high = 1;
  if (!(length > radius)) return;
  double along = sqrt((1 - radius / length) * (1 + radius / length));
  right_angles(y, circle.e, circle.f);
  for (int i = 0; i < 3; i++) {
    circle.middle[i] = y[i] * along * along;
    circle.e[i] *= radius * along;
    circle.f[i] *= radius * along;
  }
  double found[ANGLES], rows;
  for (int i = 0; i < ANGLES; i++) {
    found[i] = variance_at(&circle, i * 2 * M_PI / ANGLES, &rows);
    /* Between two of the angles the number of rows changes by less than the margin. */
    if (!(rows > 0.1 * radius)) return;
  }
  double least = extreme_of(&circle, found, 1), most = extreme_of(&circle, found, -1);
  int is_possible = least < 1 && most > 0;
  *low = is_possible ? clamp(least, 0, 1) : first_low;
  *high = is_possible ? clamp(most, 0, 1) : first_high;
}

/* Returns the spread of a cell: the variance or the standard deviation of x. `y` holds the sums of
** the cell, `value` is the estimated variance of u, and `slope` is the length of the variance's
** gradient with respect to the sums. Where the noise is small beside the number of rows, the
** variance is nearly linear, and only the noise in the direction of its gradient matters. The
** interval of a standard deviation runs between the roots of the ends of the variance's
** interval. */
static struct estimate spread(const struct reading *reading, int cell, variance_of_sums *variance,
                              const double y[3], double value, double slope) {
  double half = reading->question->high / 2 - reading->question->low / 2, rows;
  double noise = view_noise(&reading->view), z = reading_mixed_width(reading),
         stddev = slope * noise;
  double low = clamp(value - z * stddev, 0, 1), high = clamp(value + z * stddev, 0, 1);
  double first = sqrt(high) - sqrt(low);
  variance(y, &rows);
  double radius = z;
  if (!(z * noise <= LINEAR_PART * rows)) { /* noise of two dimensions, as rare as z in one */
    double normal = sqrt(-2 * log1p(-reading->confidence));
    radius = mixed_half_width(reading->view.noise, 1, erf(normal * M_SQRT1_2));
  }
  variances_near(variance, y, radius * noise, &low, &high);
  low = fmin(low, value);
  high = fmax(high, value);
  double scale = reading->root ? half : half * half;
  stddev = published_up(reading->root ? half * first / (2 * z) : scale * stddev);
  if (reading->root) {
    value = sqrt(value);
    low = sqrt(low);
    high = sqrt(high);
  }
  low = nextafter(scale * low, -INFINITY);
  high = nextafter(scale * high, INFINITY);
  return (struct estimate){cell, 0, scale * value, stddev, low, high};
}

static void sums_of(const struct reading *reading, const int64_t *values, int cell, double y[3]) {
  for (int j = 0; j < 3; j++) y[j] = reading_coordinate(reading, values, cell, j);
}

/* Computes the variance of u in [-1, 1] from n = number of rows, a = sum of u and b = sum of (2 u^2
** - 1):
**     w(n, a, b) = (b/n + 1)/2 - (a/n)^2.
** To first order, var(w) = var(n) (dw/dn)^2 + var(a) (dw/da)^2 + var(b) (dw/db)^2. The noise in n,
** a and b has the same variance, because their factors are 1. */
int estimate_spreads(struct reading *reading, const int64_t *values, struct estimate *estimates) {
  for (int cell = 0; cell < reading->cells; cell++) {
    double y[3], n = fmax(reading_rows(reading, values, cell), 1);
    sums_of(reading, values, cell, y);
    double a = clamp(y[1] / n, -1, 1), b = clamp(y[2] / n, -1, 1);
    double variance = clamp((b + 1) / 2 - a * a, 0, 1);
    double slope = hypot(hypot(2 * a * a - b / 2, 2 * a), 0.5) / n;
    estimates[cell] = spread(reading, cell, variance_of_curve, y, variance, slope);
  }
  return reading->cells;
}

/* Computes the same variance from the means a, b and c of (1 - w)^2, 2 w (1 - w) and w^2, where u =
** 2 w - 1. The mean of w is m = b/2 + c, and the variance of u is 4 (c - m^2). Let n be the number
** of rows and f = 2 m^2 - c. The slopes of the variance with respect to the three sums (n a, n b
** and n c) are 4/n times f, f - m and f + 1 - 2 m. */
int estimate_tripled_spreads(struct reading *reading, const int64_t *values,
                             struct estimate *estimates) {
  for (int cell = 0; cell < reading->cells; cell++) {
    double y[3], n = fmax(reading_rows(reading, values, cell), 1);
    sums_of(reading, values, cell, y);
    double c = clamp(y[2] / n, 0, 1), m = clamp(y[1] / (2 * n) + c, 0, 1);
    double first = 2 * m * m - c, slope = hypot(hypot(first, first - m), first + 1 - 2 * m);
    double variance = clamp(4 * (c - m * m), 0, 1);
    estimates[cell] = spread(reading, cell, variance_of_triple, y, variance, 4 * slope / n);
  }
  return reading->cells;
}

/* Upper bounds on the slopes of a variance with respect to its sums, for counts and sums and for
** three sums: those at the worst u, which is 1. */
#define SPREAD_SLOPE 2.54950975679639 /* sqrt((2 - 1/2)^2 + 2^2 + (1/2)^2) */
#define TRIPLE_SLOPE 4.0              /* 4 sqrt(1 + 0 + 0) */

double estimate_spread_stddev(const struct reading *reading) {
  double half = reading_half_range(reading);
  return published_up(half * half * SPREAD_SLOPE * view_noise(&reading->view));
}

double estimate_tripled_spread_stddev(const struct reading *reading) {
  double half = reading_half_range(reading);
  return published_up(half * half * TRIPLE_SLOPE * view_noise(&reading->view));
}

struct range range_of_spreads(const struct contribution *question, int root) {
  double half = question->high / 2 - question->low / 2;
  return (struct range){0, root ? half : half * half};
}
