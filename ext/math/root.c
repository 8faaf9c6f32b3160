/*
** root.c: Brent's method (GSL), run until the bracket cannot shrink any more.
*/
#include "math/root.h"

#include <float.h>
#include <math.h>
#include <stddef.h>

#include <gsl/gsl_errno.h>
#include <gsl/gsl_roots.h>

/* Bisection alone would need about 64 halvings of the doubles between two bounds of equal order;
** Brent's worst case is a small multiple of it and ten or twenty steps are usual. */
#define STEPS 400

/* The solver's state is on the stack, so that finding a root cannot fail for lack of memory. */
#define STATE 16

double root_between(double (*function)(double, void *), void *parameters, double low, double high) {
  gsl_function equation = {function, parameters};
  max_align_t state[STATE];
  gsl_root_fsolver solver = {.type = gsl_root_fsolver_brent, .state = state};
  if (solver.type->size > sizeof state) return NAN; /* cannot happen: it is eight doubles */
  double root = NAN;
  int status = gsl_root_fsolver_set(&solver, &equation, low, high); /* no bracket: error */
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
