/* test_mixing.c: compares math.h with closed forms for small kernels, with 60-digit arithmetic,
** and with the definitions, in plain loops, for random kernels. */
#include "check.h"
#include "random.h"

#include <string.h>

#include "math/math.h"

/* The kernel is gamma identity + (1 - gamma) uniform on four states. All its coefficients are
** known. */
#define GAMMA  0.25
#define STATES 4

static struct kernel lazy(double cell[STATES * STATES]) {
  for (size_t i = 0; i < STATES * STATES; i++) {
    cell[i] = (1.0 - GAMMA) / STATES + (i % (STATES + 1) == 0 ? GAMMA : 0.0);
  }
  return (struct kernel){cell, STATES, STATES};
}

static void coefficients_of_a_lazy_kernel(void) {
  double cell[STATES * STATES];
  struct kernel kernel = lazy(cell);
  double low = (1.0 - GAMMA) / STATES, high = low + GAMMA;
  CHECK_CLOSE(kernel_dobrushin(&kernel), GAMMA, 1e-15);
  CHECK_CLOSE(kernel_doeblin(&kernel), GAMMA, 1e-15);
  CHECK_CLOSE(kernel_ultra(&kernel), 1.0 - low / high, 1e-15);
  CHECK_CLOSE(kernel_hockey_stick(&kernel, 1.0, 0.0), GAMMA, 1e-15);
  CHECK_CLOSE(kernel_hockey_stick(&kernel, 1.0, 0.5), high - exp(0.5) * low, 1e-15);
  CHECK_CLOSE(kernel_hockey_stick(&kernel, 1.0, 2.0), 0.0, 0.0);
}

/* 27 columns are three whole groups of lanes and a remainder. */
static void lanes_and_remainder(void) {
  double cell[2 * 27] = {0.0};
  for (size_t y = 0; y < 27; y++) {
    cell[y] = 1.0 / 27.0;
    cell[27 + y] = y < 9 ? 1.0 / 9.0 : 0.0;
  }
  struct kernel kernel = {cell, 2, 27};
  CHECK_CLOSE(kernel_dobrushin(&kernel), 2.0 / 3.0, 1e-14);
  CHECK_CLOSE(kernel_doeblin(&kernel), 2.0 / 3.0, 1e-14);
  CHECK(isnan(kernel_ultra(&kernel)), "supports differ");
  CHECK_CLOSE(kernel_hockey_stick(&kernel, 1.0, INFINITY), 2.0 / 3.0, 1e-14);
  CHECK_CLOSE(kernel_hockey_stick(&kernel, 1.0, 1400.0), 2.0 / 3.0, 1e-14);
}

static void one_state(void) {
  double cell[2] = {0.25, 0.75};
  struct kernel kernel = {cell, 1, 2};
  CHECK(kernel_dobrushin(&kernel) == 0.0 && kernel_doeblin(&kernel) == 0.0, "one row");
  CHECK(kernel_ultra(&kernel) == 0.0 && kernel_hockey_stick(&kernel, 1.0, 0.0) == 0.0, "one row");
}

static void worst_delta_at_the_same_epsilon(void) {
  double cell[STATES * STATES];
  struct kernel kernel = lazy(cell);
  for (double delta = 0.0; delta <= 1.0; delta += 0.125) {
    CHECK_CLOSE(kernel_worst_delta(&kernel, 0.7, delta, 0.7),
                kernel_hockey_stick(&kernel, delta, 0.7), 1e-15);
  }
  CHECK_CLOSE(kernel_worst_delta(&kernel, 0.7, 0.0, 0.7), 0.0, 0.0);
}

static void amplification_without_overflow(void) {
  CHECK_CLOSE(mixing_epsilon(800.0, 1e-300), 800.0 + 300.0 * log(10.0), 1e-15);
  CHECK_CLOSE(mixing_epsilon(1e-10, 1e-300), log(1e-10) + 300.0 * log(10.0), 1e-12);
  CHECK_CLOSE(mixing_epsilon(0.5, 1.0), 0.5, 1e-15);
  struct amplified out = amplify_doeblin(0.25, 1000.0, 0.0);
  CHECK_CLOSE(out.epsilon, 1000.0 + log(0.25), 1e-15);
  CHECK_CLOSE(out.delta, 0.25 * 0.75, 1e-15);
  out = amplify_doeblin(0.0, 1000.0, 0.5);
  CHECK(out.epsilon == 0.0 && out.delta == 0.0, "gamma = 0");
  out = amplify_ultra(1.0, 3.0, 0.5);
  CHECK_CLOSE(out.epsilon, 3.0, 1e-15);
  CHECK_CLOSE(out.delta, 0.5, 1e-15);
}

static void randomized_response(void) {
  CHECK_CLOSE(response_rdp(2.0, 1.0), 0.735325664055519225, 1e-15);
  CHECK_CLOSE(response_rdp(1.0 + 0x1p-40, 1e-6), 5.00000000000413035e-13, 1e-15);
  CHECK_CLOSE(response_rdp(50.0, 3.0), 2.99900842139645424, 1e-15);
  CHECK_CLOSE(response_rdp(1.0, 2.0), 2.0 * tanh(1.0), 1e-15);
  CHECK_CLOSE(response_rdp(INFINITY, 2.0), 2.0, 0.0);
  CHECK_CLOSE(response_rdp(INFINITY, 0.0), 0.0, 0.0);
  CHECK_CLOSE(response_rdp(1.0 + 1e-9, 1e5), 1e5, 1e-12);
}

/* ---- random kernels ---- */

#define ROWS    4
#define COLUMNS 20

static double positive(double x) {
  return x > 0 ? x : 0;
}

/* In half of the laws a quarter of the probabilities is 0. */
static void random_law(double *p, size_t count) {
  double sum = 0, zeros = random_bits() % 2 ? 0.25 : 0;
  for (size_t i = 0; i < count; i++) sum += p[i] = uniform() < zeros ? 0 : uniform();
  if (sum == 0) sum = p[0] = 1;
  for (size_t i = 0; i < count; i++) p[i] /= sum;
}

/* Half of the kernels never reach their last state. */
static struct kernel random_kernel(double *cells, size_t rows, size_t columns) {
  size_t reached = columns - (columns > 1 && random_bits() % 2);
  for (size_t x = 0; x < rows; x++) {
    random_law(cells + x * columns, reached);
    if (reached < columns) cells[x * columns + reached] = 0;
  }
  return (struct kernel){cells, rows, columns};
}

static double renyi(const double *p, const double *q, size_t count, double alpha) {
  long double sum = 0, most = 0;
  for (size_t i = 0; i < count; i++) {
    if (p[i] == 0) continue;
    if (q[i] == 0) return INFINITY;
    long double ratio = (long double)p[i] / q[i];
    most = fmaxl(most, logl(ratio));
    sum += p[i] * (alpha == 1 ? logl(ratio) : powl(ratio, alpha - 1));
  }
  return (double)(isinf(alpha) ? most : alpha == 1 ? sum : logl(sum) / (alpha - 1));
}

/* Returns the largest hockey-stick divergence of the outputs, over all states A, B, C and D of the
** inputs that math.h gives for kernels_worst_delta(). */
static double worst_inputs(const struct kernel *first, const struct kernel *second, double epsilon,
                           double delta, double epsilon_out) {
  double b = (1 - delta) / (1 + exp(epsilon)), a = b * exp(epsilon), largest = 0;
  size_t rows = first->rows, columns = first->columns;
  for (size_t at = 0; at < rows * rows * rows * rows; at++) {
    size_t state[4] = {at % rows, at / rows % rows, at / rows / rows % rows,
                       at / rows / rows / rows};
    double sum = 0;
    for (size_t y = 0; y < columns; y++) {
      const double *p = first->probability + y, *q = second->probability + y;
      sum += positive(delta * p[state[0] * columns] + a * p[state[1] * columns] +
                      b * p[state[2] * columns] -
                      exp(epsilon_out) * (delta * q[state[3] * columns] +
                                          b * q[state[1] * columns] + a * q[state[2] * columns]));
    }
    largest = fmax(largest, sum);
  }
  return largest;
}

#define CHECK_NEAR(got, want)                                                                      \
  CHECK((got) == (want) || fabs((got) - (want)) <= 1e-11 + 1e-9 * fabs(want),                      \
        "%zu x %zu: got %.17g, want %.17g", rows, columns, (got), (want))

static void random_kernels_by_definition(void) {
  for (int run = 0; run < 200; run++) {
    size_t rows = 1 + random_bits() % ROWS, columns = 1 + random_bits() % COLUMNS;
    double cells[2][ROWS * COLUMNS], delta = run % 3 ? uniform() : 0, epsilon = 3 * uniform();
    struct kernel k = random_kernel(cells[0], rows, columns),
                  l = random_kernel(cells[1], rows, columns);
    double out = run % 2 ? epsilon * uniform() : 3 * uniform(), excess = expm1(out);
    double far = 0, sums = 0, ratio = 0, stick = 0, between = 0;
    for (size_t y = 0; y < columns; y++) {
      double low = 1, high = 0;
      for (size_t i = 0; i < rows; i++) {
        low = fmin(low, cells[0][i * columns + y]);
        high = fmax(high, cells[0][i * columns + y]);
      }
      sums += low;
      if (high > 0) ratio = low > 0 ? fmax(ratio, 1 - low / high) : INFINITY;
    }
    for (size_t i = 0; i < rows * rows; i++) {
      const double *p = cells[0] + i / rows * columns, *q = cells[0] + i % rows * columns;
      double apart = 0, gain = 0, other = 0;
      for (size_t y = 0; y < columns; y++) {
        apart += fabs(p[y] - q[y]) / 2;
        gain += positive(delta * p[y] - (delta + excess) * q[y]);
        other += positive(p[y] - exp(out) * cells[1][i / rows * columns + y]);
      }
      far = fmax(far, apart), stick = fmax(stick, gain), between = fmax(between, other);
    }
    CHECK_NEAR(kernel_dobrushin(&k), far);
    CHECK_NEAR(kernel_doeblin(&k), 1 - sums);
    if (isinf(ratio))
      CHECK(isnan(kernel_ultra(&k)), "supports differ");
    else
      CHECK_NEAR(kernel_ultra(&k), ratio);
    CHECK_NEAR(kernel_hockey_stick(&k, delta, out), stick);
    CHECK_NEAR(kernels_hockey_stick(&k, &l, out), between);
    CHECK_NEAR(kernel_worst_delta(&k, epsilon, delta, out),
               worst_inputs(&k, &k, epsilon, delta, out));
    CHECK_NEAR(kernels_worst_delta(&k, &l, epsilon, delta, out),
               worst_inputs(&k, &l, epsilon, delta, out));
    double allowed = uniform() / 4, least = kernel_worst_epsilon(&k, epsilon, delta, allowed);
    double after = isinf(least) ? 100 : least * (1 + 1e-9);
    CHECK((worst_inputs(&k, &k, epsilon, delta, after) <= allowed + 1e-12) == !isinf(least),
          "epsilon %g", least);
    if (least > 0)
      CHECK(worst_inputs(&k, &k, epsilon, delta, isinf(least) ? 100 : least * (1 - 1e-6)) > allowed,
            "epsilon %g is not the least", least);
  }
}

/* Sets `out` to the row vector p times the kernel. */
static void through(const double *p, const struct kernel *kernel, double *out) {
  for (size_t y = 0; y < kernel->columns; y++) {
    out[y] = 0;
    for (size_t x = 0; x < kernel->rows; x++)
      out[y] += p[x] * kernel->probability[x * kernel->columns + y];
  }
}

static void random_couplings_and_powers_by_definition(void) {
  const double orders[] = {1, 1.01, 1.5, 2, 40, 1000, INFINITY};
  for (int run = 0; run < 400; run++) {
    size_t rows = 1 + random_bits() % ROWS, columns = 1 + random_bits() % COLUMNS;
    double cells[ROWS * COLUMNS], coupling[ROWS * ROWS], nu[ROWS], alpha = orders[run % 7];
    double mu[ROWS] = {0}, omega[ROWS] = {0}, law[ROWS], sent[COLUMNS], other[COLUMNS], most = 0;
    struct kernel kernel = random_kernel(cells, rows, columns);
    random_law(coupling, rows * rows);
    random_law(nu, rows);
    for (size_t x = 0; x < rows; x++) {
      for (size_t z = 0; z < rows; z++)
        omega[x] += coupling[x * rows + z], mu[z] += coupling[x * rows + z];
      for (size_t z = 0; z < rows; z++) law[z] = coupling[x * rows + z] / omega[x];
      through(law, &kernel, sent);
      if (omega[x] > 0) most = fmax(most, renyi(sent, cells + x * columns, columns, alpha));
    }
    CHECK_NEAR(coupling_bound(&kernel, coupling, nu, alpha), renyi(omega, nu, rows, alpha) + most);
    through(mu, &kernel, sent);
    through(nu, &kernel, other);
    CHECK_NEAR(coupled_rdp(&kernel, coupling, nu, alpha), renyi(sent, other, columns, alpha));

    struct kernel square = random_kernel(cells, rows, rows);
    double power[ROWS * ROWS], want[ROWS] = {1};
    int steps = 1 + run % 11;
    for (int i = 0; i < steps; i++) through(memcpy(law, want, sizeof law), &square, want);
    CHECK(kernel_power(&square, steps, power), "memory");
    for (size_t y = 0; y < rows; y++) CHECK_NEAR(power[y], want[y]);
  }
}

/* Two rows are the same doubles, and differ by corrections only. */
static void corrections_are_the_difference(void) {
  double cells[] = {0.5, 0.25, 0.25, 0.5, 0.25, 0.25},
         rest[] = {3e-18, -1e-18, -2e-18, 0, -4e-18, 4e-18};
  struct kernel kernel = {cells, 2, 3};
  double alpha = 3, epsilon = 0.5, want = 0;
  for (size_t y = 0; y < 3; y++)
    want += alpha / 2 * pow(tanh(epsilon / 2) * (rest[y] - rest[3 + y]), 2) / cells[y];
  for (size_t row = 0; row < 2; row++) {
    double rdp = 0;
    CHECK(kernel_rdp(&kernel, rest, epsilon, row, &alpha, 1, &rdp), "memory");
    CHECK_CLOSE(rdp, want, 1e-12);
  }
}

int main(void) {
  RUN(coefficients_of_a_lazy_kernel);
  RUN(lanes_and_remainder);
  RUN(one_state);
  RUN(worst_delta_at_the_same_epsilon);
  RUN(amplification_without_overflow);
  RUN(randomized_response);
  RUN(random_kernels_by_definition);
  RUN(random_couplings_and_powers_by_definition);
  RUN(corrections_are_the_difference);
  FINISH();
}
