/*
** exponential.c: the exponential mechanism (McSherry and Talwar 2007). The probability of each
** public category depends on the number of units that have it.
*/
#include <math.h>
#include <string.h>

#include "math/mixing.h"
#include "mechanism/mechanism.h"
#include "noise/categorical.h"

/*
** The utility of a category is the number of units that have the category. Adding a unit raises
** each utility by 0 or 1, and removing a unit lowers each utility by 0 or 1. The privacy loss is
** therefore in an interval of length `step` (struct tilt). Replacing a unit can raise some
** utilities and lower others by 1, so the length of the interval is 2 step.
*/
static struct tilt exponential_tilt(double rate, int replace) {
  int range = replace ? 2 : 1;
  uint64_t exponent = (uint64_t)ldexp(sqrt(8 * rate) / range, CATEGORICAL_SHIFT);
  return (struct tilt){exponent, ldexp((double)exponent, -CATEGORICAL_SHIFT) * range};
}

static void exponential_utility(int64_t *utility, const int64_t *counts, size_t count) {
  memcpy(utility, counts, sizeof *utility * count);
}

static const struct category_law law = {exponential_tilt, bounded_range_rdp, exponential_utility};

const struct mechanism exponential_mechanism = {
    .name = "exponential",
    .theorem = "exponential mechanism (McSherry and Talwar 2007), of bounded range (Cesar and "
               "Rogers 2021); behind a kernel the worst pair of states",
    .statistics = STATISTIC_CATEGORY,
    .category = &law};
