/* numeric.c: finds roots by Brent's method (GSL). The iteration ends when the bracket is as short
** as the spacing of doubles allows.
** Tests: tests/math/test_gaussian.c, tests/papers/test_papers_accuracy.py */
#include "math/numeric.h"

#include <float.h>
#include <math.h>
#include <stddef.h>

#include <gsl/gsl_errno.h>
#include <gsl/gsl_roots.h>

/* The largest number of steps. Brent's method usually takes ten to twenty steps. If both ends have
** the same order of magnitude, bisection takes about 64 steps. In the worst case, Brent's method
** takes a small multiple of this number. */
#define STEPS 400

/* The solver's state is on the stack, so finding a root needs no memory from the heap. STATE is its
** size in units of max_align_t. */
#define STATE 16

double root_between(double (*function)(double, void *), void *parameters, double low, double high) {
  gsl_function equation = {function, parameters};
  max_align_t state[STATE];
  gsl_root_fsolver solver = {.type = gsl_root_fsolver_brent, .state = state};
  /* This is never true, because the state of GSL's Brent solver has the size of eight doubles. */
  if (solver.type->size > sizeof state) return NAN;
  double root = NAN;
  /* This call fails if the function has the same sign at both ends. */
  int status = gsl_root_fsolver_set(&solver, &equation, low, high);
  for (int step = 0; status == GSL_SUCCESS && step < STEPS; step++) {
    status = gsl_root_fsolver_iterate(&solver);
    if (status != GSL_SUCCESS) break;
    double a = gsl_root_fsolver_x_lower(&solver), b = gsl_root_fsolver_x_upper(&solver);
    if (gsl_root_test_interval(a, b, 0.0, 2.0 * DBL_EPSILON) == GSL_SUCCESS) {
      root = gsl_root_fsolver_root(&solver);
      break;
    }
  }
  return root;
}
