/* mixing.c: see mixing.h. Tests: tests/math/test_mixing.c */
#include "math/mixing.h"

#include <math.h>
#include <stdlib.h>

#include "math/root.h"

/* ---- Theorem 1 ------------------------------------------------------------------------------- */

/* Returns ln(1 + e^t). */
static double softplus(double t) {
  return t > 0.0 ? t + log1p(exp(-t)) : log1p(exp(t));
}

double mixing_epsilon(double epsilon, double delta) {
  if (epsilon == 0.0) return 0.0;
  if (delta == 0.0) return INFINITY;
  double odds = expm1(epsilon) / delta;
  if (epsilon < 30.0 && odds < INFINITY) return log1p(odds);
  double gap = epsilon > 1.0 ? log1p(-exp(-epsilon)) + epsilon : log(expm1(epsilon));
  return softplus(gap - log(delta));
}

struct amplified amplify_dobrushin(double gamma, double epsilon, double delta) {
  return (struct amplified){epsilon, gamma * delta};
}

/*
** Returns ln(1 + gamma (e^epsilon - 1)), the epsilon that results from parts 3 and 4 of Theorem 1.
*/
static double mixed_epsilon(double gamma, double epsilon) {
  if (gamma == 0.0) return 0.0;
  return epsilon < 700.0 ? log1p(gamma * expm1(epsilon)) : softplus(epsilon + log(gamma));
}

/* Returns e^(mixed_epsilon(gamma, epsilon) - epsilon). */
static double mixed_ratio(double gamma, double epsilon) {
  return exp(-epsilon) - gamma * expm1(-epsilon);
}

/*
** The new delta is gamma (1 - ratio (1 - delta)) with ratio = mixed_ratio(gamma, epsilon). The
** function uses 1 - ratio = (1 - gamma)(1 - e^-epsilon) to avoid cancellation.
*/
struct amplified amplify_doeblin(double gamma, double epsilon, double delta) {
  double kept = (gamma - 1.0) * expm1(-epsilon) + mixed_ratio(gamma, epsilon) * delta;
  return (struct amplified){mixed_epsilon(gamma, epsilon), gamma * kept};
}

struct amplified amplify_ultra(double gamma, double epsilon, double delta) {
  double kept = mixed_ratio(gamma, epsilon) * delta;
  return (struct amplified){mixed_epsilon(gamma, epsilon), gamma * kept};
}

/* ---- coefficients of a kernel ---------------------------------------------------------------- */

/*
** The number of partial sums (lanes) of which each sum consists. The compiler can add several lanes
** with one vector instruction. The order of additions is fixed, so the results do not depend on the
** compiler.
*/
#define LANES 8

static double lanes_total(const double lane[LANES]) {
  return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

/* Returns sum_y |a(y) - b(y)|. */
static double distance(const double *a, const double *b, size_t columns) {
  double lane[LANES] = {0.0};
  size_t y = 0;
  for (; y + LANES <= columns; y += LANES) {
    for (size_t k = 0; k < LANES; k++) {
      lane[k] += fabs(a[y + k] - b[y + k]);
    }
  }
  for (; y < columns; y++) {
    lane[y % LANES] += fabs(a[y] - b[y]);
  }
  return lanes_total(lane);
}

double kernel_dobrushin(const struct kernel *kernel) {
  double largest = 0.0;
  for (size_t i = 0; i < kernel->rows; i++) {
    const double *row = kernel->probability + i * kernel->columns;
    for (size_t j = 0; j < i; j++) {
      const double *other = kernel->probability + j * kernel->columns;
      largest = fmax(largest, distance(row, other, kernel->columns));
    }
  }
  return 0.5 * largest;
}

static void column_range(const struct kernel *kernel, size_t column, double *low, double *high) {
  *low = INFINITY;
  *high = 0.0;
  for (size_t i = 0; i < kernel->rows; i++) {
    double p = kernel->probability[i * kernel->columns + column];
    *low = fmin(*low, p);
    *high = fmax(*high, p);
  }
}

/*
** The function computes the sum of K(x0,y) - min_x K(x,y) over all y, where x0 is the first row.
** The formula 1 - sum_y min_x K(x,y) has the same value, but would lose digits by cancellation.
*/
double kernel_doeblin(const struct kernel *kernel) {
  double sum = 0.0;
  for (size_t y = 0; y < kernel->columns; y++) {
    double low, high;
    column_range(kernel, y, &low, &high);
    sum += kernel->probability[y] - low;
  }
  return sum;
}

double kernel_ultra(const struct kernel *kernel) {
  double largest = 0.0;
  for (size_t y = 0; y < kernel->columns; y++) {
    double low, high;
    column_range(kernel, y, &low, &high);
    if (high > 0.0 && low == 0.0) return NAN;
    if (high > 0.0) largest = fmax(largest, (high - low) / high);
  }
  return largest;
}

/*
** The number e^epsilon - 1, stored as a product of two factors. The code multiplies a small
** probability first by one factor and then by the other, so that nothing overflows.
*/
struct excess {
  double first, second;
};

static struct excess excess_of(double epsilon) {
  if (epsilon < 700.0) return (struct excess){expm1(epsilon), 1.0};
  /*
  ** Limiting epsilon to 1410 changes no result, because e^1410 times the least positive double is
  ** already far above 1.
  */
  double half = exp(0.5 * fmin(epsilon, 1410.0));
  return (struct excess){half, half};
}

/*
** Returns sum_y [weight a(y) - (weight + excess) b(y)]_+. The code computes each term as weight
** (a(y) - b(y)) - excess b(y), which loses no digits if excess is small.
*/
static double positive_part(const double *a, const double *b, size_t columns, double weight,
                            struct excess excess) {
  double lane[LANES] = {0.0};
  size_t y = 0;
  for (; y + LANES <= columns; y += LANES) {
    for (size_t k = 0; k < LANES; k++) {
      double gain = weight * (a[y + k] - b[y + k]) - b[y + k] * excess.first * excess.second;
      lane[k] += gain > 0.0 ? gain : 0.0;
    }
  }
  for (; y < columns; y++) {
    double gain = weight * (a[y] - b[y]) - b[y] * excess.first * excess.second;
    lane[y % LANES] += gain > 0.0 ? gain : 0.0;
  }
  return lanes_total(lane);
}

double kernel_hockey_stick(const struct kernel *kernel, double weight, double epsilon) {
  struct excess excess = excess_of(epsilon);
  double largest = 0.0;
  for (size_t i = 0; i < kernel->rows; i++) {
    const double *row = kernel->probability + i * kernel->columns;
    for (size_t j = 0; j < kernel->rows; j++) {
      const double *other = kernel->probability + j * kernel->columns;
      largest = fmax(largest, positive_part(row, other, kernel->columns, weight, excess));
    }
  }
  return largest;
}

double kernel_worst_delta(const struct kernel *kernel, double epsilon, double delta,
                          double epsilon_out) {
  double lost = 0.0; /* [e^epsilon - e^epsilon_out]_+/(1 + e^epsilon) */
  if (epsilon_out < epsilon) {
    lost = -expm1(epsilon_out - epsilon) / (1.0 + exp(-epsilon));
  }
  return kernel_hockey_stick(kernel, delta + (1.0 - delta) * lost, epsilon_out);
}

/* ---- randomized response --------------------------------------------------------------------- */

/*
** With a = alpha, e = epsilon and the divergence r, the moment e^((a-1) r) is (exp(a e) + exp((1-a)
** e))/(1 + exp(e)) = 1 + 2 sinh(a e/2) sinh((a-1) e/2)/cosh(e/2). For (a-1) e >= 1 the function
** divides the moment by its largest exponential.
*/
double response_rdp(double alpha, double epsilon) {
  double excess = alpha - 1.0;
  if (isinf(alpha) || isinf(epsilon)) return epsilon;
  if (excess * epsilon >= 1.0) {
    double rest = log1p(exp(-epsilon * alpha - epsilon * excess)) - log1p(exp(-epsilon));
    return epsilon + rest / excess;
  }
  double half = 0.5 * excess * epsilon;
  double ratio = half > 1e-4 ? sinh(half) / half : 1.0 + half * half / 6.0;
  double w = epsilon * ratio * exp(half) * -expm1(-alpha * epsilon) / (1.0 + exp(-epsilon));
  return excess * w > 0.0 ? w * (log1p(excess * w) / (excess * w)) : w;
}

static double rate_missing(double epsilon, void *rate) {
  return epsilon * tanh(epsilon / 2.0) - *(double *)rate;
}

/*
** The upper end of the search for the root follows from two bounds. With e = epsilon, e tanh(e/2)
** is at least e^2/3 for e <= 2, and at least 2e/3 for e >= 2.
*/
double response_epsilon(double rate) {
  return root_between(rate_missing, &rate, 0.0, fmax(sqrt(3.0 * rate), 2.0 * rate));
}

/* ---- a kernel after a mechanism -------------------------------------------------------------- */

/*
** P and Q are two mixtures of the same two rows of a kernel. The struct describes P and Q at one
** output of the kernel: density = Q, difference = P/Q - 1, loss = ln(P/Q).
*/
struct mixture {
  double density, difference, loss;
};

/*
** Returns f(d) = (1+d)^a - 1 - a d with a = alpha and d = P/Q - 1, which is >= 0. The sum of Q f(d)
** is the moment minus 1, because the sum of Q d is 0. For small d the function adds the binomial
** series from its quadratic term on.
*/
static double moment_term(double alpha, const struct mixture *mixture) {
  double d = mixture->difference;
  if (alpha * fabs(d) > 0.5) return expm1(alpha * mixture->loss) - alpha * d;
  double term = alpha * (alpha - 1.0) / 2.0 * d * d, sum = 0.0;
  for (int n = 3; fabs(term) > 1e-18 * fabs(sum); n++) {
    sum += term;
    term *= (alpha - n + 1.0) * d / n;
  }
  return sum;
}

/*
** Computes the mixtures of rows i and j. The difference of two rows that are almost equal can be as
** small as the rounding errors of their probabilities. The function therefore adds the corrections
** in `rest` to this difference.
*/
static void mix_rows(const struct kernel *kernel, const double *rest, size_t i, size_t j,
                     double epsilon, struct mixture *mixtures) {
  size_t columns = kernel->columns;
  const double *a = kernel->probability + i * columns, *b = kernel->probability + j * columns;
  double weight = exp(-epsilon), kept = -expm1(-epsilon);
  for (size_t y = 0; y < columns; y++) {
    /* `below` is 1 + e^-epsilon times the density. */
    double gap = a[y] - b[y], below = weight * a[y] + b[y];
    if (rest) gap += rest[i * columns + y] - rest[j * columns + y];
    double difference = below > 0.0 ? kept * gap / below : 0.0;
    mixtures[y] = (struct mixture){below / (1.0 + weight), difference, log1p(difference)};
  }
}

static double pair_rdp(const struct mixture *mixtures, size_t columns, double alpha) {
  double most = 0.0, sum = 0.0;
  for (size_t y = 0; y < columns; y++) most = fmax(most, mixtures[y].loss);
  if (isinf(alpha)) return most;
  if (alpha * most > 600.0) { /* dividing by the largest exponential avoids an overflow */
    for (size_t y = 0; y < columns; y++)
      sum += mixtures[y].density * exp(alpha * (mixtures[y].loss - most));
    return (alpha * most + log(sum)) / (alpha - 1.0);
  }
  for (size_t y = 0; y < columns; y++) {
    if (mixtures[y].density > 0.0) sum += mixtures[y].density * moment_term(alpha, &mixtures[y]);
  }
  return log1p(sum) / (alpha - 1.0);
}

int kernel_rdp(const struct kernel *kernel, const double *rest, double epsilon, size_t row,
               const double *orders, int count, double *rdp) {
  struct mixture *mixtures = malloc(sizeof *mixtures * kernel->columns);
  if (!mixtures) return 0;
  for (size_t other = 0; other < kernel->rows; other++) {
    if (other == row) continue;
    mix_rows(kernel, rest, row, other, epsilon, mixtures);
    for (int k = 0; k < count; k++)
      rdp[k] = fmax(rdp[k], pair_rdp(mixtures, kernel->columns, orders[k]));
  }
  free(mixtures);
  return 1;
}
