/*
** limits.h: the public limits of a question. The options of dp_release() and of a grant set them.
**
**   steps    A unit with r rows whose evaluation takes more than steps * (1 + r) steps of SQLite's
**            virtual machine contributes nothing.
**   bytes    A unit whose evaluation needs more memory contributes nothing.
**   seconds  A question that takes longer fails, and its charge stays.
**
** Steps and bytes are counted for each unit alone, from its rows, the public tables and the text of
** the question, so other units never decide whether a unit contributes (Q1, Q2 in evaluator.h).
** Seconds are not: whether a question fails for want of time is a fact about all units together.
*/
#ifndef DIFFUSE_QUERY_LIMITS_H
#define DIFFUSE_QUERY_LIMITS_H

#include <math.h>

#include "release/parameters.h"

struct question_limits {
  double steps, bytes;
  double seconds; /* INFINITY: no limit */
};

#define DEFAULT_STEPS 1000000
#define DEFAULT_BYTES (1 << 30)

/* The limits that a request sets, and the defaults of an owner. */
static inline struct question_limits question_limits_of(const struct request *request) {
  return (struct question_limits){isnan(request->steps) ? DEFAULT_STEPS : request->steps,
                                  isnan(request->bytes) ? DEFAULT_BYTES : request->bytes,
                                  isnan(request->seconds) ? (double)INFINITY : request->seconds};
}

#endif
