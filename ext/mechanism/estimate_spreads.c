/*
** estimate_spreads.c: variances and standard deviations. See estimate.h.
** Tests: tests/mechanism/test_kinds_exact.py
*/
#include "mechanism/estimate.h"

#include <math.h>

#include "math/cost.h"

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
** Returns the spread of a cell: the variance or the standard deviation of x. `y` holds the sums of
** the cell, `value` is the estimated variance of u, and `slope` is the length of the variance's
** gradient with respect to the sums. Where the noise is small beside the number of rows, the
** variance is nearly linear, and only the noise in the direction of its gradient matters. The
** interval of a standard deviation runs between the roots of the ends of the variance's interval.
*/
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

/* Copies the three sums of a cell. */
static void sums_of(const struct reading *reading, const int64_t *values, int cell, double y[3]) {
  for (int j = 0; j < 3; j++) y[j] = reading_coordinate(reading, values, cell, j);
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
    double y[3], n = fmax(reading_rows(reading, values, cell), 1);
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
    double y[3], n = fmax(reading_rows(reading, values, cell), 1);
    sums_of(reading, values, cell, y);
    double c = clamp(y[2] / n, 0, 1), m = clamp(y[1] / (2 * n) + c, 0, 1);
    double first = 2 * m * m - c, slope = hypot(hypot(first, first - m), first + 1 - 2 * m);
    double variance = clamp(4 * (c - m * m), 0, 1);
    estimates[cell] = spread(reading, cell, variance_of_triple, y, variance, 4 * slope / n);
  }
  return reading->cells;
}

/*
** Upper bounds on the slopes of a variance with respect to the sums from which it is computed: from
** counts and sums, and from three sums. Each bound is the slope at the worst u, which is u = 1.
*/
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
