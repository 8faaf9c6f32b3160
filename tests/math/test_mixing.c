/*
** test_mixing.c: compares mixing.h with closed forms for small kernels and with 60-digit
** arithmetic.
*/
#include "check.h"

#include "math/mixing.h"
#include "math/pure_mechanisms.h"

/*
** The kernel is gamma identity + (1 - gamma) uniform on four states. All its coefficients are
** known.
*/
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
  CHECK_CLOSE(response_rdp(1.0 + 1e-9, 1e5), 1e5, 1e-12);
}

int main(void) {
  RUN(coefficients_of_a_lazy_kernel);
  RUN(lanes_and_remainder);
  RUN(one_state);
  RUN(worst_delta_at_the_same_epsilon);
  RUN(amplification_without_overflow);
  RUN(randomized_response);
  FINISH();
}
