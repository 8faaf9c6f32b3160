/*
** randomized_response.c: randomized response (Warner 1965). The mechanism draws the most common
** category with the largest probability. All other categories have one common, smaller probability.
*/
#include <math.h>

#include "math/mixing.h"
#include "math/rounding.h"
#include "mechanism/mechanism.h"
#include "noise/categorical.h"

/*
** Utilities are 0 or 1, so the absolute value of the privacy loss is at most `step` for any data.
*/
static struct tilt response_tilt(double rate, int replace) {
  (void)replace;
  uint64_t exponent = (uint64_t)ldexp(published_down(response_epsilon(rate)), CATEGORICAL_SHIFT);
  return (struct tilt){exponent, ldexp((double)exponent, -CATEGORICAL_SHIFT)};
}

/*
** Sets the utility of the most common category to 1 and all other utilities to 0. If several
** categories are equally common, the first of them gets 1.
*/
static void response_utility(int64_t *utility, const int64_t *counts, size_t count) {
  size_t mode = 0;
  for (size_t i = 1; i < count; i++) mode = counts[i] > counts[mode] ? i : mode;
  for (size_t i = 0; i < count; i++) utility[i] = i == mode;
}

static const struct category_law law = {response_tilt, response_rdp, response_utility};

const struct mechanism randomized_response = {
    .name = "response",
    .theorem = "randomized response (Warner 1965; Kairouz, Oh and Viswanath 2015); behind a kernel "
               "the worst pair of states",
    .statistics = STATISTIC_CATEGORY,
    .category = &law};
