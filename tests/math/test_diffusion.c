/*
** test_diffusion.c: checks that diffusion.h satisfies identities of the two processes. diffusion.c
** does not use these identities.
*/
#include "check.h"

#include <float.h>

#include "math/diffusion.h"

static void shrinks_at_ordinary_arguments(void) {
  CHECK_CLOSE(ou_shrink_radius(2.0, 3.0, 4.0), 0.25, 1e-15);
  CHECK_CLOSE(ou_shrink_process(3.0, 2.0, 4.0), 0.5, 1e-15);
  CHECK_CLOSE(ou_shrink_radius(2.0, 3.0, 0.0), 1.0, 0.0);
  CHECK_CLOSE(ou_shrink_process(0.0, 2.0, 4.0), 1.0, 0.0);
}

static void shrinks_do_not_overflow(void) {
  CHECK_CLOSE(ou_shrink_radius(1e200, 1.0, 1e300), 1.0, 1e-15);
  CHECK_CLOSE(ou_shrink_radius(1e-200, 1.0, 1e-100), 1e-300, 1e-14);
  CHECK_CLOSE(ou_shrink_radius(1e-140, 1e10, 1e-310), 1.0, 1e-15);
  CHECK_CLOSE(ou_shrink_radius(1e150, 1e300, 1e300), 1e-300, 1e-14);
  CHECK_CLOSE(ou_shrink_process(1e300, 1e-200, 1e-300), 1e-200, 1e-14);
  CHECK_CLOSE(ou_shrink_process(1e300, 1e-100, 1e300), 0.0, 0.0);
  CHECK_CLOSE(ou_shrink_process(1e-300, 1e-300, 1e300), 1e-300, 1e-14);
  CHECK_CLOSE(ou_shrink_process(1e300, 1e-3, 1e300), 1e-303, 1e-14);
  CHECK(ou_shrink_radius(DBL_MAX, DBL_MAX, DBL_MAX) > 0.0, "lost to overflow");
  CHECK(ou_shrink_process(DBL_MAX, DBL_MAX, DBL_MAX) > 0.0, "lost to overflow");
}

/*
** One step from 0 to t + s has the same distribution as a step to t and another to t + s (the
** semigroup property).
*/
static void semigroup_by_moments(void) {
  const double theta[] = {0.0, 1e-12, 0.3, 1.0, 40.0}, rho = 1.7, t = 0.8, s = 2.1;
  for (int i = 0; i < 5; i++) {
    double b_s = ou_shrink(theta[i], s);
    CHECK_CLOSE(ou_shrink(theta[i], t + s), ou_shrink(theta[i], t) * b_s, 1e-13);
    CHECK_CLOSE(ou_variance(theta[i], rho, t + s),
                b_s * b_s * ou_variance(theta[i], rho, t) + ou_variance(theta[i], rho, s), 1e-14);
  }
}

static void clock_and_time_are_inverse(void) {
  const double theta[] = {0.0, 1e-250, 1e-12, 0.3, 1.0, 3.0};
  for (int i = 0; i < 6; i++) {
    for (double t = 1e-200; t < 100.0; t *= 1e20) {
      CHECK_CLOSE(ou_time(theta[i], 1.7, ou_clock(theta[i], 1.7, t)), t, 1e-13);
    }
  }
  CHECK_CLOSE(ou_time(1e200, 1e-50, 1e250), log(10.0) * 550.0 / 2.0 / 1e200, 1e-14);
}

int main(void) {
  RUN(shrinks_at_ordinary_arguments);
  RUN(shrinks_do_not_overflow);
  RUN(semigroup_by_moments);
  RUN(clock_and_time_are_inverse);
  FINISH();
}
