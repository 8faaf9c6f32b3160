/* limits.c: see limits.h. Tests: tests/query/test_question_limits.py */
#include "query/limits.h"

#include <math.h>

static double value_or(double value, double otherwise) {
  return isnan(value) ? otherwise : value;
}

struct question_limits question_limits_of(const struct request *request) {
  return (struct question_limits){value_or(request->steps, DEFAULT_STEPS),
                                  value_or(request->bytes, DEFAULT_BYTES),
                                  value_or(request->seconds, INFINITY)};
}
