/* estimate.c: see estimate.h. */
#include "mechanism/estimate.h"

#include <math.h>
#include <stdlib.h>

#include "math/diffusion.h"
#include "math/rounding.h"
#include "mechanism/reconcile.h"
#include "mechanism/shares.h"
#include "sums/decimal.h"
#include "sums/tree.h"

/* ---- views ----------------------------------------------------------------------------------- */

double estimate_variance(const struct view *view) {
  return ldexp((double)view->clock, 2 * view->granularity);
}

double estimate_shrink(const struct view *view, double tau) {
  if (!view->is_ou) return 1;
  if (view->theta == view->theta) return ou_shrink_process(view->theta, view->rho, tau);
  return ou_shrink_radius(view->radius, view->dimension, tau);
}

static double noise_of(const struct view *view) {
  double part = view->part > 0 ? view->part : 1;
  return part * ldexp(sqrt((double)view->clock), view->granularity);
}

double estimate_stddev(const struct view *view) {
  return published_up(estimate_shrink(view, estimate_variance(view)) * noise_of(view));
}

/* ---- shared by all estimators ---------------------------------------------------------------- */

/* Returns a coordinate of the point, as a number instead of lattice steps. */
static double coordinate(const struct reading *reading, const int64_t *values, int cell,
                         int component) {
  if (reading->numbers)
    return reading->numbers[(size_t)cell * (size_t)reading->shape->width + (size_t)component];
  int64_t steps = values[(int64_t)cell * reading->shape->width + component];
  return ldexp((double)steps, reading->view.granularity);
}

static double clamp(double x, double low, double high) {
  return x > low ? fmin(x, high) : low;
}

static struct estimate with_interval(int cell, int component, double value, double noise,
                                     double half_width) {
  return (struct estimate){cell,
                           component,
                           value,
                           noise,
                           nextafter(value - half_width, -INFINITY),
                           nextafter(value + half_width, INFINITY)};
}

/*
** Returns an estimate that is one coordinate of the point. Its noise comes from one draw.
*/
static struct estimate drawn(const struct reading *reading, int cell, int component, double value,
                             double stddev) {
  double noise = published_up(stddev);
  return with_interval(cell, component, value, noise,
                       reading->view.noise->half_width(noise, reading->confidence));
}

/* Returns an estimate that is computed from several coordinates. */
static struct estimate estimate(const struct reading *reading, int cell, int component,
                                double value, double stddev) {
  double noise = published_up(stddev);
  return with_interval(cell, component, value, noise,
                       mixed_half_width(reading->view.noise, noise, reading->confidence));
}

struct estimate estimate_of_draws(const struct reading *reading, int component, double value,
                                  double stddev) {
  return estimate(reading, 0, component, value, stddev);
}

/*
** Returns the half-width of the interval of an estimate that is computed from several coordinates
** and has a standard deviation of 1.
*/
static double mixed_width(const struct reading *reading) {
  return mixed_half_width(reading->view.noise, 1, reading->confidence);
}

/* Widens the interval of an estimate so that it contains the value `value`, which it gets. */
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
  struct estimate mixed = terms > 1 ? estimate(reading, cell, 0, x, noise / shrink)
                                    : drawn(reading, cell, 0, x, noise / shrink);
  if (shrink != 1) move(&mixed, value);
  mixed.stddev = published_up(noise);
  return mixed;
}

/* Returns the noisy number of rows in a cell. */
static double raw_rows_of(const struct reading *reading, const int64_t *values, int cell) {
  double count = 0;
  for (int j = 0; j < reading->shape->counted; j++) count += coordinate(reading, values, cell, j);
  return count / reading->shape->count_factor;
}

/* Returns the noisy number of rows in a cell, or 1 if that number is below 1. */
static double rows_of(const struct reading *reading, const int64_t *values, int cell) {
  return fmax(raw_rows_of(reading, values, cell), 1);
}

/* ---- sums: counts, vectors, bins, keys ------------------------------------------------------- */

/*
** Returns the estimate of a sum. OU noise shrinks the value towards the centre. The interval is
** that of the coordinate before it shrinks, because the interval holds the true sum.
*/
static struct estimate shown_sum(struct reading *reading, const int64_t *values, int cell,
                                 int component, int number) {
  const struct view *view = &reading->view;
  double x = coordinate(reading, values, cell, component);
  struct estimate found = reading->numbers ? estimate(reading, cell, number, x, noise_of(view))
                                           : drawn(reading, cell, number, x, noise_of(view));
  if (view->is_ou) {
    move(&found, view->centre + reading->shrink * (x - view->centre));
    found.stddev = published_up(reading->shrink * noise_of(view));
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

/* ---- means ----------------------------------------------------------------------------------- */

/*
** A mean is sum / rows, and is known to lie in [-limit, limit]. The sum has noise of standard
** deviation `noise`, and the number of rows has noise of standard deviation noise / factor. The two
** noises are independent, or sum - u rows has the same variance as if they were, for every u.
*/
struct ratio {
  double sum, rows, noise, factor, limit;
};

/* If the noise of the number of rows is at most this part of it, the mean is nearly linear. */
#define LINEAR_PART 0.1

/*
** Computes the interval of a mean. For the true mean u, sum - u rows is noise alone, with the
** standard deviation noise sqrt(1 + (u/factor)^2). The interval holds every u for which this noise
** is in its central range (Fieller 1954), so it has its confidence for any number of rows. Where
** the first-order interval value +- z stddev is nearly the same, `low` and `high` stay.
**
** The condition is a quadratic inequality in u. If its leading coefficient is not above 0, or if no
** u in [-limit, limit] fulfils it, the number of rows says too little, and the ends are those of
** the range or of the first-order interval.
*/
static void fieller(const struct ratio *ratio, double z, double mean, double *low, double *high) {
  double width = z * ratio->noise, of_rows = width / ratio->factor;
  if (of_rows <= LINEAR_PART * ratio->rows) return;
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
  struct estimate found = estimate(reading, cell, component, value, axis->half * stddev);
  double z = mixed_width(reading), low = mean - z * stddev, high = mean + z * stddev;
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
  return (struct ratio){coordinate(reading, values, cell, component),
                        raw_rows_of(reading, values, cell), noise_of(&reading->view),
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
    double a = coordinate(reading, values, cell, 0), b = coordinate(reading, values, cell, 1);
    struct ratio ratio = {a - b, raw_rows_of(reading, values, cell),
                          M_SQRT2 * noise_of(&reading->view), 1, 1};
    estimates[cell] = mean_of(reading, cell, 0, &ratio, &axis);
  }
  return reading->cells;
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

/* ---- spreads --------------------------------------------------------------------------------- */

/*
** A variance as a function of the sums of a cell. y holds the three sums, whose noises are
** independent and have the same variance. Sets *rows to the number of rows of y, and returns the
** variance of u, which is x mapped to [-1, 1]. The variance depends on the ratios of the sums only.
*/
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

/*
** Returns the least (sign 1) or the largest (sign -1) variance on the circle, by golden-section
** search around the best of ANGLES points, whose variances are in `found`.
*/
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

/*
** Sets [*low, *high] to the variances of all y' near y, as Fieller's interval does for a mean. The
** true sums and all their multiples have the same variance, and form a line. The noise moves y away
** from this line at right angles, in two dimensions. So the variance of some y' within the distance
** `radius` of y is the true one unless this noise, of two dimensions, is longer than the radius.
** The y' within the radius have the directions inside a cone around y. The gradient of the variance
** is nowhere 0, so the extremes are on the surface of the cone. If the cone holds points without
** rows, every variance is possible. If no variance in [0, 1] is possible, the first-order interval
** stays.
*/
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

/*
** Returns the radius that noise of two dimensions exceeds as rarely as the confidence allows, for
** coordinates with noise of standard deviation 1.
*/
static double radius_of(const struct reading *reading) {
  double normal = sqrt(-2 * log1p(-reading->confidence));
  return mixed_half_width(reading->view.noise, 1, erf(normal * M_SQRT1_2));
}

/*
** Returns the spread of a cell: the variance or the standard deviation of x. `y` holds the sums of
** the cell, `value` is the estimated variance of u, and `slope` is the length of the variance's
** gradient with respect to the sums. Where the noise is small beside the number of rows, the
** variance is nearly linear, and only the noise in the direction of its gradient matters. The
** interval of a standard deviation runs between the roots of the ends of the variance's interval.
*/
static struct estimate spread(const struct reading *reading, int cell, variance_of_sums *variance,
                              const double y[3], double value, double slope) {
  double half = reading->question->high / 2 - reading->question->low / 2, rows;
  double noise = noise_of(&reading->view), z = mixed_width(reading), stddev = slope * noise;
  double low = clamp(value - z * stddev, 0, 1), high = clamp(value + z * stddev, 0, 1);
  double first = sqrt(high) - sqrt(low);
  variance(y, &rows);
  double radius = z * noise <= LINEAR_PART * rows ? z : radius_of(reading);
  variances_near(variance, y, radius * noise, &low, &high);
  low = fmin(low, value);
  high = fmax(high, value);
  if (!reading->root)
    return (struct estimate){cell,
                             0,
                             half * half * value,
                             published_up(half * half * stddev),
                             nextafter(half * half * low, -INFINITY),
                             nextafter(half * half * high, INFINITY)};
  return (struct estimate){cell,
                           0,
                           half * sqrt(value),
                           published_up(half * first / (2 * z)),
                           nextafter(half * sqrt(low), -INFINITY),
                           nextafter(half * sqrt(high), INFINITY)};
}

/* Copies the three sums of a cell. */
static void sums_of(const struct reading *reading, const int64_t *values, int cell, double y[3]) {
  for (int j = 0; j < 3; j++) y[j] = coordinate(reading, values, cell, j);
}

/*
** Computes the variance of u in [-1, 1] from n = number of rows, a = sum of u and b = sum of (2 u^2
** - 1):
**     w(n, a, b) = (b/n + 1)/2 - (a/n)^2.
** To first order, var(w) = var(n) (dw/dn)^2 + var(a) (dw/da)^2 + var(b) (dw/db)^2. The noise in n,
** a and b has the same variance, because their factors are 1.
*/
int estimate_spreads(struct reading *reading, const int64_t *values, struct estimate *estimates) {
  for (int cell = 0; cell < reading->cells; cell++) {
    double y[3], n = rows_of(reading, values, cell);
    sums_of(reading, values, cell, y);
    double a = clamp(y[1] / n, -1, 1), b = clamp(y[2] / n, -1, 1);
    double variance = clamp((b + 1) / 2 - a * a, 0, 1);
    double slope = hypot(hypot(2 * a * a - b / 2, 2 * a), 0.5) / n;
    estimates[cell] = spread(reading, cell, variance_of_curve, y, variance, slope);
  }
  return reading->cells;
}

/*
** Computes the same variance from the means a, b and c of (1 - w)^2, 2 w (1 - w) and w^2, where u =
** 2 w - 1. The mean of w is m = b/2 + c, and the variance of u is 4 (c - m^2). Let n be the number
** of rows and f = 2 m^2 - c. The slopes of the variance with respect to the three sums (n a, n b
** and n c) are 4/n times f, f - m and f + 1 - 2 m.
*/
int estimate_tripled_spreads(struct reading *reading, const int64_t *values,
                             struct estimate *estimates) {
  for (int cell = 0; cell < reading->cells; cell++) {
    double y[3], n = rows_of(reading, values, cell);
    sums_of(reading, values, cell, y);
    double c = clamp(y[2] / n, 0, 1), m = clamp(y[1] / (2 * n) + c, 0, 1);
    double first = 2 * m * m - c, slope = hypot(hypot(first, first - m), first + 1 - 2 * m);
    double variance = clamp(4 * (c - m * m), 0, 1);
    estimates[cell] = spread(reading, cell, variance_of_triple, y, variance, 4 * slope / n);
  }
  return reading->cells;
}

/* ---- quantiles ------------------------------------------------------------------------------- */

/* Running totals of the leaves, which convert ranks to values. */
struct ranks {
  const struct reading *reading;
  double *totals;
  double rows; /* the noisy number of rows; the totals end with a larger number in most cases */
  int count;
  double share; /* the number of grid values in a leaf; 0 without a grid */
  double end;   /* the place after the last grid value; inside the tree if some leaves are spare */
};

static struct ranks ranks_of(const struct reading *reading, double *totals, double rows,
                             int count) {
  const struct contribution *question = reading->question;
  struct ranks ranks = {reading, totals, rows, count, 0, count};
  if (question->grid > 0) {
    ranks.share = layout_grid_share(question);
    ranks.end = layout_grid_values(question->low, question->high, question->grid) / ranks.share;
  }
  return ranks;
}

/*
** Returns the rank of a quantile among n rows. Ranks run from the middle of the first row to the
** middle of the last row, so that q = 0 and q = 1 stand for the least and the largest x.
*/
static double rank_of(double q, double n) {
  return n > 1 ? 0.5 + q * (n - 1) : n / 2;
}

/* Converts a place on the axis, in leaves from the lower end of the range, to a value. */
static double value_at(const struct ranks *ranks, double place) {
  const struct contribution *question = ranks->reading->question;
  if (place == rint(place))
    return decimal_edge(question->low, question->high, (int)place, ranks->count);
  double part = place / ranks->count;
  return clamp(question->low * (1 - part) + question->high * part, question->low, question->high);
}

/*
** Returns grid value k. If there is no such value, because noise has put a rank into a leaf without
** grid values, returns the nearest grid value.
*/
static double grid_value(const struct ranks *ranks, double k) {
  const struct contribution *question = ranks->reading->question;
  double last = rint(ranks->end * ranks->share) - 1;
  return fmin(decimal_step(question->low, clamp(k, 0, last), question->grid), question->high);
}

/*
** Converts a rank to a place. For a rank before the first row or after the last row, returns the
** nearer end of the tree, because the number of rows is not certain.
*/
static double bound_at(const struct ranks *ranks, double rank) {
  if (rank <= 0) return 0;
  if (rank >= ranks->totals[ranks->count]) return ranks->count;
  return tree_place(ranks->totals, ranks->count, rank);
}

/*
** Sets [*from, *to] to the leaves that may hold the quantile. At the left end of the leaf that
** holds it, the true running total is below the true rank, and at the right end it is not. So the
** noisy difference of the two is at most z standard deviations above 0 at the left end, and at
** least -z at the right end, each with probability (1 + confidence)/2, whatever the rows are. The
** standard deviation is that at the end itself: near an end of the range it is much smaller than
** elsewhere.
*/
static void possible_leaves(const struct ranks *ranks, double q, double z, int *from, int *to) {
  const struct reading *reading = ranks->reading;
  double rank = rank_of(q, ranks->rows), width = z * noise_of(&reading->view);
  int first = 0, last = ranks->count - 1;
  while (first < ranks->count - 1 &&
         ranks->totals[first + 1] - rank <
             -width * tree_rank_stddev(reading->shape->tree, q, first + 1))
    first++;
  while (last > 0 &&
         ranks->totals[last] - rank > width * tree_rank_stddev(reading->shape->tree, q, last))
    last--;
  *from = first < last ? first : last;
  *to = first < last ? last : first;
}

/*
** Returns the estimate of a quantile at a place whose noise has the standard deviation `noise`, in
** leaves. The interval consists of the leaves [from, to], because counts do not say where in a leaf
** its rows are. On a grid, each leaf holds `share` values, and value k covers the places from
** k/share to (k + 1)/share. stddev is that before the answer is moved to a grid value.
*/
static struct estimate quantile_at(const struct ranks *ranks, int component, double place,
                                   double noise, int from, int to) {
  const struct contribution *question = ranks->reading->question;
  double share = ranks->share, value, low, high, stddev;
  if (share > 0) {
    stddev = noise * share * question->grid;
    value = grid_value(ranks, ceil(place * share) - 1);
    low = grid_value(ranks, from * share);
    high = grid_value(ranks, (to + 1) * share - 1);
  } else {
    stddev = noise * (question->high / 2 - question->low / 2) / ranks->count * 2;
    value = value_at(ranks, place);
    low = value_at(ranks, from);
    high = value_at(ranks, to + 1);
  }
  return (struct estimate){
      0, component, value, published_up(stddev), fmin(low, value), fmax(high, value)};
}

/*
** Computes the quantiles and returns their number. If the noisy number of rows is 0, the function
** answers as if the rows were spread evenly over the range.
*/
static int quantiles_of(const struct ranks *ranks, struct estimate *estimates) {
  const struct reading *reading = ranks->reading;
  double z = mixed_width(reading), all = ranks->totals[ranks->count];
  for (int i = 0; i < reading->quantile_count; i++) {
    double q = reading->quantiles[i], rank = rank_of(q, all);
    double place = all > 0 ? tree_place(ranks->totals, ranks->count, rank) : q * ranks->end;
    /*
    ** If the place were an end of the range, no leaf would lie on one side of the place, and the
    ** computed noise would be 0.
    */
    double inside = clamp(place, 0.5, ranks->count - 0.5);
    double share = clamp(q, 0.5 / ranks->count, 1 - 0.5 / ranks->count);
    double error = tree_rank_stddev(reading->shape->tree, share, inside) * noise_of(&reading->view);
    double low = bound_at(ranks, rank - z * error), high = bound_at(ranks, rank + z * error);
    int from, to;
    possible_leaves(ranks, q, z, &from, &to);
    estimates[i] = quantile_at(ranks, i, place, (high - low) / (2 * z), from, to);
  }
  return reading->quantile_count;
}

/* Buffers for the tree of one cell. */
struct tree_buffers {
  double *nodes, *leaves, *totals;
};

/* Computes the quantiles of one cell. Returns their number, or -1 after a failure. */
static int cell_quantiles(struct reading *reading, const int64_t *values, int cell,
                          const struct tree_buffers *tree, struct estimate *estimates) {
  const struct layout *shape = reading->shape;
  for (int i = shape->selects; i < shape->width; i++)
    tree->nodes[i - shape->selects] = coordinate(reading, values, cell, i);
  if (!tree_leaves(tree->nodes, shape->tree, tree->leaves) ||
      !tree_running(tree->leaves, shape->bins, tree->totals))
    return -1;
  double rows = 0;
  for (int i = 0; i < shape->bins; i++) rows += tree->leaves[i];
  struct ranks ranks = ranks_of(reading, tree->totals, fmax(rows, 0), shape->bins);
  int used = quantiles_of(&ranks, estimates);
  for (int i = 0; i < used; i++) estimates[i].cell = cell;
  return used;
}

int estimate_quantiles(struct reading *reading, const int64_t *values, struct estimate *estimates) {
  size_t width = (size_t)reading->shape->width, count = (size_t)reading->shape->bins;
  struct tree_buffers tree = {malloc(sizeof *tree.nodes * width),
                              malloc(sizeof *tree.leaves * count),
                              malloc(sizeof *tree.totals * (count + 1))};
  int used = tree.nodes && tree.leaves && tree.totals ? 0 : -1;
  for (int cell = 0; cell < reading->cells && used >= 0; cell++) {
    int more = cell_quantiles(reading, values, cell, &tree, &estimates[used]);
    used = more < 0 ? -1 : used + more;
  }
  free(tree.nodes);
  free(tree.leaves);
  free(tree.totals);
  return used;
}

/* ---- noise before there is data -------------------------------------------------------------- */

/*
** Upper bounds on the slopes of statistics with respect to the sums from which they are computed.
** For a mean, the first bound is for a count with the factor 1/2, and the second bound is for
** paired sums. The other two bounds are for a variance, from counts and sums or from three sums.
** Each bound is the slope at the worst u, which is u = 1.
*/
#define MEAN_SLOPE   2.23606797749979 /* sqrt(1 + 2^2) */
#define PAIR_SLOPE   2.0              /* sqrt(0 + 2^2) */
#define SPREAD_SLOPE 2.54950975679639 /* sqrt((2 - 1/2)^2 + 2^2 + (1/2)^2) */
#define TRIPLE_SLOPE 4.0              /* 4 sqrt(1 + 0 + 0) */

static double half_range(const struct reading *reading) {
  return reading->question->high / 2 - reading->question->low / 2;
}

double estimate_sum_stddev(const struct reading *reading) {
  return estimate_stddev(&reading->view);
}

double estimate_mean_stddev(const struct reading *reading) {
  return published_up(half_range(reading) * MEAN_SLOPE * noise_of(&reading->view));
}

double estimate_paired_mean_stddev(const struct reading *reading) {
  return published_up(half_range(reading) * PAIR_SLOPE * noise_of(&reading->view));
}

double estimate_vector_mean_stddev(const struct reading *reading) {
  double slope = hypot(1, reading->question->clip / reading->shape->count_factor);
  return published_up(slope * noise_of(&reading->view));
}

double estimate_spread_stddev(const struct reading *reading) {
  double half = half_range(reading);
  return published_up(half * half * SPREAD_SLOPE * noise_of(&reading->view));
}

double estimate_tripled_spread_stddev(const struct reading *reading) {
  double half = half_range(reading);
  return published_up(half * half * TRIPLE_SLOPE * noise_of(&reading->view));
}

/*
** Nobody knows beforehand where in the tree a quantile lies. The result is the root mean square
** over all places, or the standard deviation at the place of evenly spread rows if that is larger,
** for the quantile with the largest result.
*/
double estimate_rank_stddev(const struct reading *reading) {
  struct tree tree = reading->shape->tree;
  double most = 0;
  for (int i = 0; i < reading->quantile_count; i++) {
    double q = reading->quantiles[i], even = tree_rank_stddev(tree, q, ldexp(q, tree.bits));
    most = fmax(most, fmax(even, tree_typical_stddev(tree, q)));
  }
  return published_up(noise_of(&reading->view) * most);
}

/* ---- cross tables ---------------------------------------------------------------------------- */

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

/* Computes the estimates of all tables. The family's estimator reads the numbers of one table. */
static int estimate_tables(struct reading *reading, const int64_t *values,
                           struct estimate *estimates) {
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

/* ---- points ---------------------------------------------------------------------------------- */

double estimate_total_stddev(const struct reading *reading) {
  return reading->shape->family->stddev(reading);
}

/*
** Returns the half-width for a standard deviation if `width` is the half-width for the variance.
** The ends of the interval of a standard deviation are the roots of the ends of the variance's
** interval. The function assumes that the rows are spread evenly, so that the variance is half^2/3,
** where `half` is half the range.
*/
static double root_half_width(double half, double width) {
  double variance = half * half / 3;
  return (sqrt(variance + width) - sqrt(fmax(variance - width, 0))) / 2;
}

double estimate_half_width(const struct reading *reading, double rows) {
  const struct family *family = reading->shape->family;
  if (reading->view.part > 0 &&
      family->is_linear) /* a cross table is computed from several draws */
    return mixed_half_width(reading->view.noise, noise_of(&reading->view), reading->confidence);
  if (family->is_linear) /* the interval of an OU release does not shrink */
    return reading->view.noise->half_width(noise_of(&reading->view), reading->confidence);
  double stddev = estimate_total_stddev(reading), half = half_range(reading);
  if (family->is_ratio || family->shares || family->is_tree) stddev /= rows;
  double width = mixed_half_width(reading->view.noise, stddev, reading->confidence);
  if (family->is_tree) return 2 * half * (width + 0.5 / reading->shape->bins);
  return reading->root ? published_up(root_half_width(half, width)) : width;
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

/* Returns the noisy count that selects a private key, in lattice steps. */
static double selecting_count(const struct layout *shape, const int64_t *values, int cell) {
  double count = 0;
  for (int j = 0; j < shape->counted; j++)
    count += (double)values[(int64_t)cell * shape->width + j];
  return count;
}

/*
** Returns the least true count for which a noisy count of at least `count` is not too rare among
** the noisy counts that reach the threshold. Let Q be the probability that the noise of a count
** exceeds a number. The probability is R = Q(count - true) / Q(threshold - true), which grows with
** the true count, and the result is where R is (1 - confidence)/2. It is not below 0.
*/
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

/*
** A private key is published because its noisy count reached the threshold. Given this, the noise
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
** Numbers whose count is another coordinate, with noise of its own (layout.h, `selects`), stay.
*/
static void condition_on_selection(const struct reading *reading, struct estimate *estimate,
                                   double count, double threshold) {
  const struct layout *shape = reading->shape;
  if (shape->family->is_linear) {
    double low = ldexp(least_count(reading, count, threshold), reading->view.granularity);
    estimate->low = fmin(estimate->low, nextafter(low, -INFINITY));
  } else {
    double noise = sqrt(shape->counted * (double)reading->view.clock);
    if (count - threshold >= mixed_width(reading) * noise) return;
    estimate->low = -INFINITY;
    estimate->high = INFINITY;
  }
}

/* Drops private keys below the threshold, and returns the number of the other estimates. */
static int select_keys(const struct reading *reading, const int64_t *values,
                       struct estimate *estimates, int used) {
  const struct layout *shape = reading->shape;
  double threshold = estimate_threshold(reading);
  int kept = 0;
  for (int i = 0; i < used; i++) {
    double count = selecting_count(shape, values, estimates[i].cell);
    if (count < threshold) continue;
    estimates[kept] = estimates[i];
    if (!shape->selects) condition_on_selection(reading, &estimates[kept], count, threshold);
    kept++;
  }
  return kept;
}

/* ---- points ---------------------------------------------------------------------------------- */

/*
** Moves the estimates of an OU release towards its centre. This function is for kinds that are not
** linear in the point: averages, spreads and quantiles.
**
** If a radius is given, the function moves each value to the nearest value within the radius of the
** centre. It moves a vector as a whole, and other values one by one. If the true value is within
** the radius, the moved value is at least as close to it as the original value, whatever the noise
** is. The function does not scale the values as Theorem 8 does. That scaling is optimal for noise
** of known variance without clamping, but it makes the worst case of a clamped average worse.
**
** If theta is given, the function shrinks each value towards the centre. It uses the shrink factor
** that the process has when its noise has the same variance as the noise of the value (to first
** order).
**
** The intervals keep their ends, because they hold the true values. They grow where a value leaves
** them.
*/
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

/* Moves the values and the ends of their intervals into the range of the numbers. */
static void keep_in_range(const struct reading *reading, struct estimate *estimates, int count) {
  if (!reading->shape->family->range) return;
  struct range range = reading->shape->family->range(reading->question, reading->root);
  for (int i = 0; i < count; i++) {
    estimates[i].value = clamp(estimates[i].value, range.least, range.most);
    estimates[i].low = clamp(estimates[i].low, range.least, range.most);
    estimates[i].high = clamp(estimates[i].high, range.least, range.most);
  }
}

int estimate_point(struct reading *reading, const int64_t *values, struct estimate *estimates) {
  const struct layout *shape = reading->shape;
  reading->shrink = 1;
  int used = shape->ways ? estimate_tables(reading, values, estimates)
                         : shape->family->estimate(reading, values, estimates);
  if (reading->view.is_ou && !shape->family->is_linear)
    move_towards_centre(reading, estimates, used);
  if (shape->max_groups) used = select_keys(reading, values, estimates, used);
  keep_in_range(reading, estimates, used);
  return used;
}

struct range range_of_x(const struct contribution *question, int root) {
  (void)root;
  return (struct range){question->low, question->high};
}

struct range range_of_spreads(const struct contribution *question, int root) {
  double half = question->high / 2 - question->low / 2;
  return (struct range){0, root ? half : half * half};
}

struct range range_of_components(const struct contribution *question, int root) {
  (void)root;
  return (struct range){-question->clip, question->clip};
}
