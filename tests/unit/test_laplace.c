/*
** test_laplace.c: compares laplace.h with 60-digit arithmetic, and checks symmetries of its
** functions.
*/
#include "check.h"

#include "math/laplace.h"

static void divergences_from_60_digits(void) {
  CHECK_CLOSE(laplace_rdp(1.0, 3.0, 3.0), 0.367879441171442322, 1e-15);
  CHECK_CLOSE(laplace_rdp(2.0, 3.0, 3.0), 0.619123629998592883, 1e-15);
  CHECK_CLOSE(laplace_rdp(1.0 + 0x1p-40, 1e-6, 1.0), 4.99999833333829702e-13, 1e-15);
  CHECK_CLOSE(laplace_rdp(1e4, 1e-5, 1.0), 4.99167305032178877e-7, 1e-15);
  CHECK_CLOSE(laplace_rdp(1e4, 30.0, 1.0), 29.9999306833504041, 1e-15);
}

static void limits_of_the_order(void) {
  CHECK_CLOSE(laplace_rdp(INFINITY, 3.0, 2.0), 1.5, 0.0);
  CHECK_CLOSE(laplace_rdp(1e300, 3.0, 2.0), 1.5, 1e-15);
  CHECK_CLOSE(laplace_rdp(5.0, 0.0, 2.0), 0.0, 0.0);
  CHECK_CLOSE(iterated_laplace_rdp(INFINITY, 3.0, 2.0, 4.0), 0.75, 0.0);
}

static void iterated_is_the_minimum(void) {
  CHECK_CLOSE(iterated_laplace_rdp(3.0, 2.0, 1.0, 4.0), 0.263205803601153651, 1e-14);
  CHECK_CLOSE(iterated_laplace_rdp(3.0, 2.0, 4.0, 1.0), 0.263205803601153651, 1e-14);
  CHECK_CLOSE(iterated_laplace_rdp(3.0, 2.0, 4.0, 4.0), 2.0 * laplace_rdp(3.0, 1.0, 4.0), 1e-15);
  for (double near = 1e-30; near < 1.0; near *= 1e3) {
    double both = iterated_laplace_rdp(2.0, 1.0, near, 1.0);
    CHECK(both > 0.0 && both <= laplace_rdp(2.0, 1.0, 1.0), "near %g: %g", near, both);
  }
}

static void density_is_continuous_in_the_scales(void) {
  double equal = laplace2_density(0.7, 1.0, 1.0);
  CHECK_CLOSE(equal, exp(-0.7) * 1.7 / 4.0, 1e-15);
  for (double gap = 1e-3; gap > 1e-16; gap /= 10.0) {
    CHECK_CLOSE(laplace2_density(0.7, 1.0, 1.0 + gap), equal, gap);
  }
  CHECK_CLOSE(laplace2_density(-0.7, 2.0, 0.5), laplace2_density(0.7, 0.5, 2.0), 0.0);
  CHECK_CLOSE(laplace2_density(1e300, 1e-300, 1.0), 0.0, 0.0);
}

static void hockey_stick_and_its_logarithm(void) {
  for (double distance = 1e-10; distance < 20.0; distance *= 7.0) {
    double value = laplace_hockey_stick(0.3, 0.3 + distance);
    CHECK_CLOSE(laplace_log_hockey_stick(0.3, 0.3 + distance), log(value), 1e-6);
  }
  CHECK_CLOSE(laplace_log_hockey_stick(0.0, 120.0), -exp(-60.0), 1e-14);
  CHECK_CLOSE(laplace_hockey_stick(2.0, 2.0), 0.0, 0.0);
  CHECK(laplace_log_hockey_stick(2.0, 1.0) == -INFINITY, "not -infinity");
}

int main(void) {
  RUN(divergences_from_60_digits);
  RUN(limits_of_the_order);
  RUN(iterated_is_the_minimum);
  RUN(density_is_continuous_in_the_scales);
  RUN(hockey_stick_and_its_logarithm);
  FINISH();
}
