/*
** mechanisms.c: see mechanisms.h.
** Tests: tests/categories/test_symbols.py, tests/categories/test_responses.py
*/
#include "categories/mechanisms.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "math/bounded_loss.h"
#include "math/cost.h"

/* ---- the exponential mechanism (McSherry and Talwar 2007) ------------------------------------ */

/*
** The utility of a category is the number of units that have the category. Adding a unit raises
** each utility by 0 or 1, and removing a unit lowers each utility by 0 or 1. The privacy loss is
** therefore in an interval of length `step` (struct tilt). Replacing a unit can raise some
** utilities and lower others by 1, so the length of the interval is 2 step.
*/
static struct tilt exponential_tilt(double rate, int replace) {
  return tilt_make(sqrt(8 * rate), replace ? 2 : 1);
}

static void exponential_utility(int64_t *utility, const int64_t *counts, size_t count) {
  memcpy(utility, counts, sizeof *utility * count);
}

static const struct category_mechanism exponential = {
    .mechanism = {.name = "exponential",
                  .theorem = EXPONENTIAL_THEOREM,
                  .statistics = STATISTIC_CATEGORY,
                  .most = TILT_MOST_RATE},
    .tilt = exponential_tilt,
    .rdp = bounded_range_rdp,
    .utility = exponential_utility};

/* ---- randomized response (Warner 1965) ------------------------------------------------------- */

/*
** The mechanism draws the most common category with the largest probability. All other categories
** have one common, smaller probability.
*/

/*
** On all data, one utility is 1 and the others are 0. The weights exp(step utility) therefore have
** the same sum on all data, and the absolute value of the privacy loss is at most `step`
** (exponential.h). A range of 1 makes `epsilon` this bound, not the length of an interval.
*/
static struct tilt response_tilt(double rate, int replace) {
  (void)replace;
  return tilt_make(published_down(response_epsilon(rate)), 1);
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

static const struct category_mechanism randomized_response = {
    .mechanism = {.name = "response",
                  .theorem = "randomized response (Warner 1965; Kairouz, Oh and Viswanath 2015); "
                             "behind a kernel the worst pair of states",
                  .statistics = STATISTIC_CATEGORY,
                  .most = TILT_MOST_RATE},
    .tilt = response_tilt,
    .rdp = response_rdp,
    .utility = response_utility};

/* ---- local randomisation --------------------------------------------------------------------- */

/*
** A public kernel randomises every row before the row is counted. The kernel is a parameter of the
** release. The cost is the cost of the kernel's worst pair of rows (responses.h).
*/
static const struct mechanism local_randomisation = {
    .name = "local",
    .theorem = "local randomisation of each row (Warner 1965; Balle et al. 2019, Table 1): the "
               "worst pair of rows of the product of its kernels",
    .statistics = STATISTIC_REPORTS,
    .most = TILT_MOST_RATE};

const struct mechanism *const category_mechanisms[] = {
    &exponential.mechanism, &randomized_response.mechanism, &local_randomisation, 0};

const struct category_mechanism *category_mechanism_of(const struct mechanism *mechanism) {
  assert(mechanism->statistics == STATISTIC_CATEGORY);
  return (const struct category_mechanism *)mechanism;
}
