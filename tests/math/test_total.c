/* test_total.c: compares math.h with exact sums in fixed-point arithmetic. Every term is a multiple
** of 2^-109 (the last bit of the double 1e-17), so 128-bit integers represent the exact sums. */
#include "check.h"

#include <float.h>
#include <stdint.h>

#include "math/math.h"

__extension__ typedef __int128 fixed; /* a number in units of 2^-109 */

#define FIXED_BITS 109

static fixed fixed_of(double x) {
  return (fixed)ldexpl((long double)x, FIXED_BITS);
}

/* Returns a total minus the exact sum, in units of 2^-109. total.high is a multiple of the unit,
** and the remaining difference fits a long double. */
static long double excess(struct total total, fixed exact) {
  fixed rest = exact - fixed_of(total.high);
  return ldexpl((long double)total.low, FIXED_BITS) - (long double)rest;
}

static uint64_t state = 88172645463325252u;

static uint64_t random_bits(void) { /* xorshift64: the tests need only a fixed sequence */
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

static void a_million_tiny_terms(void) {
  struct total total = total_add((struct total){0, 0}, 0.5);
  fixed exact = fixed_of(0.5);
  int below = 0;
  for (int i = 0; i < 1000000; i++) {
    total = total_add(total, 1e-17);
    exact += fixed_of(1e-17);
    below += excess(total, exact) < 0;
  }
  CHECK(below == 0, "%d sums below the truth", below);
  CHECK(total_up(total) >= 0.5 + 1e-11, "got %.17g", total_up(total));
  CHECK_CLOSE(total_up(total), 0.5 + 1e-11, 1e-15);
  /* `low` is below 2^-53, and each addition loses at most one unit in the last place of `low`. */
  CHECK(excess(total, exact) <= ldexpl(1e6L, FIXED_BITS - 105), "%Lg too much",
        excess(total, exact));
}

/* The terms have all sizes between 2^-109 and 2^6, in random order. */
static void random_terms_never_fall_short(void) {
  int below = 0, short_of = 0, loose = 0;
  for (int run = 0; run < 2000; run++) {
    struct total total = {0, 0};
    fixed exact = 0;
    for (int i = 0; i < 200; i++) {
      int bits = 1 + (int)(random_bits() % 53), exponent = (int)(random_bits() % 62);
      double term = ldexp((double)(random_bits() >> (64 - bits)), exponent - FIXED_BITS);
      total = total_add(total, term);
      exact += fixed_of(term);
      below += excess(total, exact) < 0;
      short_of += fixed_of(total_up(total)) < exact;
      /* total_up() returns the least double that is not below the total, so the previous double is
      ** below the total. */
      double before = nextafter(total_up(total), 0);
      loose += exact > 0 && (long double)before - (long double)total.high >= (long double)total.low;
    }
    CHECK(excess(total, exact) <= ldexpl(200, -104) * (long double)exact, "run %d: %Lg too much",
          run, excess(total, exact));
  }
  CHECK(below == 0, "%d totals below the truth", below);
  CHECK(short_of == 0, "%d doubles below the truth", short_of);
  CHECK(loose == 0, "%d doubles not the least", loose);
}

static void the_edge_is_within(void) {
  const double limit[] = {1.0, 0.5, 0.3, 8.123456789e-5, 3e300, 1e-12};
  for (int i = 0; i < 6; i++) {
    struct total at = {limit[i], 0};
    CHECK(total_within(at, limit[i]), "%g at its limit", limit[i]);
    CHECK(total_within(total_add((struct total){0, 0}, limit[i]), limit[i]), "%g", limit[i]);
    double tiny = limit[i] * 0x1p-100;
    CHECK(!total_within(total_add(at, tiny), limit[i]), "%g and 2^-100 of it", limit[i]);
    CHECK(!total_within((struct total){limit[i], DBL_TRUE_MIN}, limit[i]), "the least excess");
    CHECK(!total_within((struct total){nextafter(limit[i], INFINITY), 0}, limit[i]), "a step up");
    struct total under = {limit[i], -tiny};
    CHECK(total_within(under, limit[i]), "%g less 2^-100 of it", limit[i]);
    CHECK(total_within((struct total){nextafter(limit[i], 0), 0}, limit[i]), "a step down");
  }
  /* The sum of ten doubles 0.1 is slightly more than 1, because the double 0.1 is slightly more
  ** than 1/10. The total must be above 1 too. */
  struct total tenths = {0, 0};
  for (int i = 0; i < 10; i++) tenths = total_add(tenths, 0.1);
  CHECK(!total_within(tenths, 1.0), "ten times 0.1 (0.1 is above a tenth)");
}

static void nan_refuses(void) {
  const struct total bad[] = {{NAN, 0}, {0, NAN}, {NAN, NAN}};
  for (int i = 0; i < 3; i++) {
    CHECK(!total_within(bad[i], 1.0), "a NaN total %d", i);
    CHECK(!total_within(bad[i], INFINITY), "a NaN total %d, no limit", i);
    CHECK(!(total_left(bad[i], 1.0) > 0), "something left of a NaN total %d", i);
  }
  CHECK(!total_within((struct total){0, 0}, NAN), "a NaN limit");
  CHECK(!total_within((struct total){1, 0}, NAN), "a NaN limit");
  CHECK(!(total_left((struct total){0, 0}, NAN) > 0), "something left of a NaN limit");
  CHECK(!total_within(total_add((struct total){0.25, 0}, NAN), 1.0), "a NaN term");
  CHECK(!total_within(total_add((struct total){0.25, 0}, INFINITY), 1.0), "an infinite term");
}

static void what_is_left_is_a_lower_bound(void) {
  for (int run = 0; run < 100000; run++) {
    double limit = ldexp((double)(random_bits() >> 11), -53);
    struct total total = {0, 0};
    fixed exact = 0;
    for (int i = 0; i < 3; i++) {
      double term = ldexp((double)(random_bits() >> 20), -46 - (int)(random_bits() % 20));
      total = total_add(total, term);
      exact += fixed_of(term);
    }
    double left = total_left(total, limit);
    fixed truth = fixed_of(limit) - exact;
    CHECK(left >= 0, "left %g", left);
    CHECK((long double)left <= fmaxl(0, ldexpl((long double)truth, -FIXED_BITS)) * (1 + 0x1p-60L),
          "left %.17g of %.17g with %.17g spent", left, limit, total_up(total));
    if (left > 0)
      CHECK(total_within(total_add(total, left), limit), "%.17g is left but refused", left);
  }
}

static double missing_of(double paid, double cost) {
  return total_missing((struct total){paid, 0}, cost);
}

/* The spare amount x satisfies x <= paid - cost exactly, and the double after x does not. */
static void what_is_spare_is_the_most_that_is_paid_too_much(void) {
  const struct total infinite = {INFINITY, 0};
  CHECK(total_spare(infinite, 1) == 0 && total_spare((struct total){1, 0}, INFINITY) == 0,
        "infinite");
  int beyond = 0, less = 0;
  for (int run = 0; run < 200000; run++) {
    double high = ldexp((double)(random_bits() >> 11 | 1), (int)(random_bits() % 20) - 60);
    double cost =
        run % 4 ? high * ldexp((double)(random_bits() >> 43), -20) : nextafter(high, run % 8);
    double tiny = ldexp((double)(random_bits() >> 14), -FIXED_BITS);
    struct total paid = total_add((struct total){high, 0}, run % 3 ? tiny : 0);
    fixed truth = fixed_of(paid.high) + fixed_of(paid.low) - fixed_of(cost);
    double spare = total_spare(paid, cost);
    beyond += fixed_of(spare) > (truth > 0 ? truth : 0);
    fixed after = spare >= 0x1p-56 ? fixed_of(nextafter(spare, INFINITY)) : fixed_of(spare) + 1;
    less += truth > 0 && after <= truth;
  }
  CHECK(beyond == 0, "%d spare amounts beyond what is paid", beyond);
  CHECK(less == 0, "%d spare amounts are not the most", less);
}

/* The missing amount x satisfies x >= cost - paid exactly, and the double before x does not. */
static void what_is_missing_is_the_least_that_reaches_the_cost(void) {
  CHECK(missing_of(1, 1) == 0 && missing_of(2, 1) == 0 && missing_of(0, 0) == 0, "paid");
  CHECK(missing_of(0, 0.3) == 0.3, "nothing paid");
  /* ledger_charge() refuses such costs. */
  CHECK(missing_of(NAN, 1) == 0 && missing_of(1, NAN) == 0, "NaN");
  int short_of = 0, more = 0, needless = 0;
  for (int run = 0; run < 200000; run++) {
    double cost = ldexp((double)(random_bits() >> 11 | 1), (int)(random_bits() % 20) - 60);
    double part = cost * ldexp((double)(random_bits() >> 44), -20);
    double tiny = ldexp((double)(random_bits() >> 14), -FIXED_BITS);
    struct total paid = total_add(total_add((struct total){0, 0}, part), run % 3 ? tiny : 0);
    fixed truth = fixed_of(cost) - fixed_of(paid.high) - fixed_of(paid.low);
    double missing = total_missing(paid, cost);
    short_of += fixed_of(missing) < truth;
    needless += truth <= 0 && missing != 0;
    /* For missing >= 2^-56, the previous double is a multiple of the unit. For smaller numbers,
    ** every multiple of the unit is a double. */
    fixed before = missing >= 0x1p-56 ? fixed_of(nextafter(missing, 0)) : fixed_of(missing) - 1;
    more += truth > 0 && before >= truth;
  }
  CHECK(short_of == 0, "%d charges short of the cost", short_of);
  CHECK(needless == 0, "%d charges of what is paid", needless);
  CHECK(more == 0, "%d charges are not the least", more);
}

int main(void) {
  RUN(a_million_tiny_terms);
  RUN(random_terms_never_fall_short);
  RUN(the_edge_is_within);
  RUN(nan_refuses);
  RUN(what_is_left_is_a_lower_bound);
  RUN(what_is_spare_is_the_most_that_is_paid_too_much);
  RUN(what_is_missing_is_the_least_that_reaches_the_cost);
  FINISH();
}
