/* mixing.c: see math.h.
** Tests: tests/math/test_mixing.c, tests/math/test_mechanisms_accuracy.py */
#include "math/math.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* ln(1 + gamma (e^epsilon - 1)), the epsilon that results from parts 3 and 4 of Theorem 1. */
static double mixed_epsilon(double gamma, double epsilon) {
  if (gamma == 0.0) return 0.0;
  return epsilon < 700.0 ? log1p(gamma * expm1(epsilon)) : softplus(epsilon + log(gamma));
}

/* Returns e^(mixed_epsilon(gamma, epsilon) - epsilon). */
static double mixed_ratio(double gamma, double epsilon) {
  return exp(-epsilon) - gamma * expm1(-epsilon);
}

/* The new delta is gamma (1 - ratio (1 - delta)) with ratio = mixed_ratio(gamma, epsilon), and 1 -
** ratio = (1 - gamma)(1 - e^-epsilon) avoids cancellation. */
struct amplified amplify_doeblin(double gamma, double epsilon, double delta) {
  double kept = (gamma - 1.0) * expm1(-epsilon) + mixed_ratio(gamma, epsilon) * delta;
  return (struct amplified){mixed_epsilon(gamma, epsilon), gamma * kept};
}

struct amplified amplify_ultra(double gamma, double epsilon, double delta) {
  double kept = mixed_ratio(gamma, epsilon) * delta;
  return (struct amplified){mixed_epsilon(gamma, epsilon), gamma * kept};
}

/* ---- coefficients of a kernel ---------------------------------------------------------------- */

/* Each sum consists of so many partial sums, which the compiler can add with vector instructions.
** The order of additions is fixed, so the results do not depend on the compiler. */
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

/* The sum of K(x0,y) - min_x K(x,y) over all y, where x0 is the first row, is 1 - sum_y min_x
** K(x,y), but loses no digits by cancellation. */
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

/* The number e^epsilon - 1 as two factors, by which a small probability is multiplied in turn, so
** that nothing overflows. */
struct excess {
  double first, second;
};

static struct excess excess_of(double epsilon) {
  if (epsilon < 700.0) return (struct excess){expm1(epsilon), 1.0};
  /* e^1410 times the least positive double is already far above 1. */
  double half = exp(0.5 * fmin(epsilon, 1410.0));
  return (struct excess){half, half};
}

/* Returns sum_y [weight a(y) - (weight + excess) b(y)]_+, each term as weight (a(y) - b(y)) -
** excess b(y), which loses no digits if excess is small. */
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

/* ---- a kernel after a mechanism -------------------------------------------------------------- */

/* Two mixtures P and Q of the same two rows of a kernel at one output: density = Q, difference =
** P/Q - 1, loss = ln(P/Q). */
struct mixture {
  double density, difference, loss;
};

/* Returns f(d) = (1+d)^a - 1 - a d >= 0 with a = alpha and d = P/Q - 1; for small d the binomial
** series from its quadratic term on. The sum of Q f(d) is the moment minus 1, because that of Q d
** is 0. */
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

/* Computes the mixtures of rows i and j. The difference of two rows that are almost equal can be as
** small as the rounding errors of their probabilities, so the corrections in `rest` are added to
** it. */
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

/* ---- Renyi divergence ------------------------------------------------------------------------ */

/* Returns f(d)/(a - 1) with d = p/q - 1, a = alpha and f(d) = (1+d)^a - 1 - a d, which is never
** negative. The moment, the sum of q (p/q)^a over all points, is 1 plus the sum of q f(d), because
** that of q d is 0. At a = 1 this is the term of the Kullback-Leibler divergence. */
static double divergence_term(double alpha, double d) {
  if (alpha * fabs(d) > 0.25) {
    double loss = log1p(d), excess = alpha - 1;
    if (d == -1) return 1; /* (a - 1)/(a - 1) */
    return (1 + d) * (excess > 0 ? expm1(excess * loss) / excess : loss) - d;
  }
  double term = alpha / 2 * d * d, sum = 0;
  for (int n = 3; fabs(term) > 1e-18 * fabs(sum); n++) {
    sum += term;
    term *= (alpha - n + 1) * d / n;
  }
  return sum;
}

/* Returns the Renyi divergence of order 1 <= alpha <= infinity of two distributions on `count`
** points: infinity if p is positive at a point where q is 0. The relative error is at most 1e-12,
** unless p and q differ by no more than the rounding errors of their probabilities. */
static double finite_rdp(const double *p, const double *q, size_t count, double alpha) {
  double most = 0, sum = 0;
  for (size_t i = 0; i < count; i++) {
    if (p[i] > 0 && !(q[i] > 0)) return INFINITY;
    if (p[i] > 0) most = fmax(most, log1p((p[i] - q[i]) / q[i]));
  }
  if (isinf(alpha)) return most;
  double excess = alpha - 1;
  if (alpha * most > 600) { /* dividing by the largest exponential avoids an overflow */
    for (size_t i = 0; i < count; i++) {
      if (p[i] > 0) sum += p[i] * exp(excess * (log(p[i] / q[i]) - most));
    }
    return most + log(sum) / excess;
  }
  for (size_t i = 0; i < count; i++) {
    if (q[i] > 0) sum += q[i] * divergence_term(alpha, (p[i] - q[i]) / q[i]);
  }
  return excess * sum > 0 ? sum * (log1p(excess * sum) / (excess * sum)) : sum;
}

/* ---- two kernels ----------------------------------------------------------------------------- */

double kernels_hockey_stick(const struct kernel *first, const struct kernel *second,
                            double epsilon) {
  double largest = 0, excess = expm1(fmin(epsilon, 709));
  for (size_t x = 0; x < first->rows; x++) {
    const double *p = first->probability + x * first->columns;
    const double *q = second->probability + x * first->columns;
    double sum = 0;
    for (size_t y = 0; y < first->columns; y++) sum += fmax(p[y] - q[y] - q[y] * excess, 0);
    largest = fmax(largest, sum);
  }
  return largest;
}

/* The largest sum_y [base(y) + delta (A(y) - order D(y))]_+ over all states A of the first kernel
** and D of the second. */
static double worst_ends(const struct kernel *first, const struct kernel *second,
                         const double *base, double delta, double order) {
  size_t columns = first->columns;
  double largest = 0;
  for (size_t i = 0; i < first->rows; i++) {
    for (size_t j = 0; j < first->rows; j++) {
      const double *a = first->probability + i * columns, *d = second->probability + j * columns;
      double sum = 0;
      for (size_t y = 0; y < columns; y++) sum += fmax(base[y] + delta * (a[y] - order * d[y]), 0);
      largest = fmax(largest, sum);
    }
    if (delta == 0) break; /* at delta = 0, A and D do not matter */
  }
  return largest;
}

double kernels_worst_delta(const struct kernel *first, const struct kernel *second, double epsilon,
                           double delta, double epsilon_out) {
  size_t columns = first->columns, rows = first->rows;
  double *base = malloc(sizeof *base * (columns + 1));
  if (!base) return NAN;
  double order = exp(fmin(epsilon_out, 709)), largest = 0; /* e^709 times a normal double is >= 1 */
  double b = exp(-epsilon) / (1 + exp(-epsilon)), a = 1 / (1 + exp(-epsilon));
  for (size_t pair = 0; pair < rows * rows; pair++) {
    size_t i = pair / rows * columns, j = pair % rows * columns;
    const double *p = first->probability, *q = second->probability;
    for (size_t y = 0; y < columns; y++)
      base[y] =
          (1 - delta) * ((a * p[i + y] + b * p[j + y]) - order * (b * q[i + y] + a * q[j + y]));
    largest = fmax(largest, worst_ends(first, second, base, delta, order));
  }
  free(base);
  return largest;
}

/* ---- the least epsilon ----------------------------------------------------------------------- */

/* An (epsilon, delta)-DP mechanism that is followed by a kernel with two states. */
struct two_states {
  struct kernel kernel;
  double epsilon, delta, delta_out;
};

static int is_within(const struct two_states *pair, double epsilon_out) {
  return kernel_worst_delta(&pair->kernel, pair->epsilon, pair->delta, epsilon_out) <=
         pair->delta_out;
}

/* The least epsilon_out for which is_within() is true. `low` is too small. */
static double least_epsilon(const struct two_states *pair, double low) {
  if (!is_within(pair, INFINITY)) return INFINITY;
  double high = low > 0 ? 2 * low : 0x1p-1000;
  while (!is_within(pair, high)) low = high, high *= high < 0x1p-40 ? 1024 : 2;
  for (;;) {
    double middle = low + (high - low) / 2;
    if (!(middle > low && middle < high)) return high;
    if (is_within(pair, middle))
      high = middle;
    else
      low = middle;
  }
}

/* In the worst case the inputs are two states. Most pairs do not raise the result: one evaluation
** each. */
double kernel_worst_epsilon(const struct kernel *kernel, double epsilon, double delta,
                            double delta_out) {
  size_t columns = kernel->columns;
  double least = 0, *rows = malloc(sizeof *rows * 2 * (columns + 1));
  if (!rows) return NAN;
  struct two_states pair = {{rows, 2, columns}, epsilon, delta, delta_out};
  for (size_t i = 0; i < kernel->rows; i++) {
    memcpy(rows, kernel->probability + i * columns, sizeof *rows * columns);
    for (size_t j = 0; j < i; j++) {
      memcpy(rows + columns, kernel->probability + j * columns, sizeof *rows * columns);
      if (!is_within(&pair, least)) least = least_epsilon(&pair, least);
    }
  }
  free(rows);
  return least;
}

/* ---- a kernel after a coupling --------------------------------------------------------------- */

/* Sets `out` to the row vector `weights` times the kernel, divided by `total`. */
static void send(const struct kernel *kernel, const double *weights, double total, double *out) {
  for (size_t y = 0; y < kernel->columns; y++) out[y] = 0;
  for (size_t x = 0; x < kernel->rows; x++) {
    double weight = weights[x] / total;
    for (size_t y = 0; y < kernel->columns && weight > 0; y++)
      out[y] += weight * kernel->probability[x * kernel->columns + y];
  }
}

double coupling_bound(const struct kernel *kernel, const double *coupling, const double *nu,
                      double alpha) {
  size_t rows = kernel->rows, columns = kernel->columns;
  double *omega = malloc(sizeof *omega * (rows + columns + 1)), *sent = omega + rows, most = 0;
  if (!omega) return NAN;
  for (size_t x = 0; x < rows; x++) {
    omega[x] = 0;
    for (size_t z = 0; z < rows; z++) omega[x] += coupling[x * rows + z];
    if (!(omega[x] > 0)) continue;
    send(kernel, coupling + x * rows, omega[x], sent);
    most = fmax(most, finite_rdp(sent, kernel->probability + x * columns, columns, alpha));
  }
  double bound = finite_rdp(omega, nu, rows, alpha) + most;
  free(omega);
  return bound;
}

double coupled_rdp(const struct kernel *kernel, const double *coupling, const double *nu,
                   double alpha) {
  size_t rows = kernel->rows, columns = kernel->columns;
  double *mu = calloc(rows + 2 * columns + 1, sizeof *mu), *first = mu + rows;
  if (!mu) return NAN;
  for (size_t x = 0; x < rows; x++) {
    for (size_t z = 0; z < rows; z++) mu[z] += coupling[x * rows + z];
  }
  send(kernel, mu, 1, first);
  send(kernel, nu, 1, first + columns);
  double divergence = finite_rdp(first, first + columns, columns, alpha);
  free(mu);
  return divergence;
}

/* ---- powers ---------------------------------------------------------------------------------- */

/* Sets `product` to the matrix product a b and scales its rows to sum to 1. */
static void multiply_kernels(const double *a, const double *b, size_t rows, double *product) {
  for (size_t x = 0; x < rows; x++) {
    double *row = product + x * rows, sum = 0;
    for (size_t y = 0; y < rows; y++) row[y] = 0;
    for (size_t z = 0; z < rows; z++) {
      double weight = a[x * rows + z];
      for (size_t y = 0; y < rows && weight > 0; y++) row[y] += weight * b[z * rows + y];
    }
    for (size_t y = 0; y < rows; y++) sum += row[y];
    for (size_t y = 0; y < rows; y++) row[y] /= sum;
  }
}

int kernel_power(const struct kernel *kernel, double steps, double *power) {
  size_t rows = kernel->rows, bytes = sizeof(double) * rows * rows;
  double *square = malloc(2 * bytes + 1), *product = square + rows * rows;
  if (!square) return 0;
  memcpy(square, kernel->probability, bytes);
  for (int first = 1;; steps = floor(steps / 2)) {
    if (fmod(steps, 2) > 0) {
      if (first) memcpy(power, square, bytes);
      if (!first) multiply_kernels(power, square, rows, product);
      if (!first) memcpy(power, product, bytes);
      first = 0;
    }
    if (steps < 2) break;
    multiply_kernels(square, square, rows, product);
    memcpy(square, product, bytes);
  }
  free(square);
  return 1;
}
