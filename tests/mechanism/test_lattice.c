/* test_lattice.c: checks that each result of noise.h satisfies the inequalities that define it.
** The tests compute these inequalities in 128-bit integers, which do not overflow. There is no
** second implementation to compare with. The arguments are all numbers of some small ranges, random
** numbers and extreme numbers. */
#include <inttypes.h>
#include <limits.h>

#include "check.h"
#include "noise/noise.h"
#include "splitmix.h"

#define ROUNDS 200000 /* number of random arguments of a test */

/* SplitMix64 with a fixed seed, so the arguments are the same in every run. */
static uint64_t random_state;

static uint64_t random_word(void) {
  return splitmix(&random_state);
}

/* Returns a random number from 1 to `most` < 2^63. All binary lengths are about equally likely. */
static uint64_t random_to(uint64_t most) {
  uint64_t x = (random_word() >> 1) >> (random_word() % 63);
  return 1 + x % most;
}

static int128 absolute(int128 x) {
  return x < 0 ? -x : x;
}

/* Returns whether `rounded` is the integer nearest to numerator/denominator, halves away from
** zero. */
static int is_nearest(int128 rounded, int128 numerator, int128 denominator) {
  int128 twice = 2 * absolute(rounded * denominator - numerator);
  if (twice == denominator) return absolute(rounded) * denominator > absolute(numerator);
  return twice < denominator;
}

/* ---- roots ----------------------------------------------------------------------------------- */

static void check_root(uint128 x) {
  uint128 root = lattice_root(x);
  CHECK(root * root <= x, "too large: %" PRIu64, (uint64_t)root);
  CHECK(root == UINT64_MAX || (root + 1) * (root + 1) > x, "too small: %" PRIu64, (uint64_t)root);
}

static void roots_are_rounded_down(void) {
  for (unsigned x = 0; x < 70000; x++) check_root(x);
  for (int i = 0; i < ROUNDS; i++) {
    uint128 root = random_to(INT64_MAX);
    check_root(root * root);
    check_root(root * root - 1);
    check_root(root * root + root);
  }
  check_root(~(uint128)0);
}

/* ---- rounding -------------------------------------------------------------------------------- */

static void clamp_keeps_the_interval(void) {
  int128 huge = (int128)1 << 120;
  CHECK(lattice_clamp(5, -3, 7) == 5, "inside");
  CHECK(lattice_clamp(8, -3, 7) == 7, "above");
  CHECK(lattice_clamp(-4, -3, 7) == -3, "below");
  CHECK(lattice_clamp(-3, -3, 7) == -3 && lattice_clamp(7, -3, 7) == 7, "ends");
  CHECK(lattice_clamp(-huge - 1, -huge, huge) == -huge, "wide below");
  CHECK(lattice_clamp(huge + 1, -huge, huge) == huge, "wide above");
  CHECK(lattice_clamp(9, 4, 4) == 4, "a point");
}

static void rounding_is_to_nearest_halves_away(void) {
  for (int shift = 0; shift <= 9; shift++) {
    int128 step = (int128)1 << shift;
    for (int total = -2100; total <= 2100; total++) {
      int64_t rounded = lattice_round(total, shift);
      CHECK(is_nearest(rounded, total, step), "%d >> %d gave %" PRId64, total, shift, rounded);
    }
  }
}

/* For every shift, the totals are close to +-2^62 steps, and next to the middle between two
** steps. */
static void rounding_of_wide_totals(void) {
  for (int shift = 1; shift <= 63; shift++) {
    int128 half = (int128)1 << (shift - 1);
    for (int128 steps = ((int128)1 << 62) - 3; steps <= ((int128)1 << 62); steps++) {
      for (int near = -1; near <= 1; near++) {
        int128 total = (2 * steps - 1) * half + near; /* close to half a step below `steps` */
        int64_t want = (int64_t)steps - (near < 0);
        CHECK(lattice_round(total, shift) == want, "shift %d near %d", shift, near);
        CHECK(lattice_round(-total, shift) == -want, "shift %d near %d", shift, near);
      }
    }
  }
}

static void rounding_saturates(void) {
  int128 widest = ((int128)1 << 126) - 1;
  for (int shift = 0; shift <= 100; shift++) {
    int128 expected = shift < 64 ? LATTICE_TOTAL : (int128)1 << (126 - shift);
    CHECK(lattice_round(widest, shift) == expected, "shift %d", shift);
    CHECK(lattice_round(-widest, shift) == -expected, "shift %d", shift);
  }
  int128 last = (int128)LATTICE_TOTAL - 1;
  CHECK(lattice_round(last, 0) == last, "last below saturation");
  CHECK(lattice_round(last + 1, 0) == LATTICE_TOTAL, "at saturation");
  CHECK(lattice_round(last + 2, 0) == LATTICE_TOTAL, "first beyond");
  CHECK(lattice_round(-last - 2, 0) == -LATTICE_TOTAL, "first beyond, negative");
}

/* ---- sensitivity ----------------------------------------------------------------------------- */

/* Returns the largest distance of rounded totals, over all pairs of totals in a window that are
** `distance` fine steps apart. */
static int64_t widest_pair(int distance, int shift) {
  int window = 3 << shift;
  int64_t widest = 0;
  for (int total = -window - distance; total <= window; total++) {
    int64_t apart = lattice_round(total + distance, shift) - lattice_round(total, shift);
    CHECK(apart >= 0, "not monotone at %d, distance %d, shift %d", total, distance, shift);
    if (apart > widest) widest = apart;
  }
  return widest;
}

static void sensitivity_bounds_all_neighbours_and_is_attained(void) {
  for (int shift = 0; shift <= 8; shift++) {
    for (int distance = 0; distance <= (3 << shift) + 1; distance++) {
      uint64_t claimed = lattice_sensitivity((uint64_t)distance, shift);
      uint64_t found = (uint64_t)widest_pair(distance, shift);
      CHECK(found <= claimed, "distance %d, shift %d: %" PRIu64, distance, shift, found);
      uint64_t attained = shift > 0 && distance > 0 ? claimed : (uint64_t)distance;
      CHECK(found == attained, "distance %d, shift %d: %" PRIu64, distance, shift, found);
    }
  }
}

static void sensitivity_at_the_extremes(void) {
  CHECK(lattice_sensitivity(UINT64_MAX, 0) == UINT64_MAX, "saturates, never wraps to 0");
  CHECK(lattice_sensitivity(UINT64_MAX - 1, 0) == UINT64_MAX, "largest that fits");
  CHECK(lattice_sensitivity(UINT64_MAX, 63) == 2, "shift 63");
  CHECK(lattice_sensitivity(UINT64_MAX, 64) == 1, "shift 64");
  CHECK(lattice_sensitivity(UINT64_MAX, 100) == 1, "shift 100");
}

/* Saturation does not increase the distance of two totals. */
static void saturation_does_not_widen(void) {
  for (int shift = 1; shift <= 40; shift++) {
    int128 edge = (int128)LATTICE_TOTAL << shift;
    for (int near = -40; near <= 40; near++) {
      int64_t apart = lattice_round(edge + near + 21, shift) - lattice_round(edge + near, shift);
      CHECK(apart >= 0 && (uint64_t)apart <= lattice_sensitivity(21, shift), "shift %d", shift);
    }
  }
}

/* ---- variance -------------------------------------------------------------------------------- */

static int bits_of(uint128 x) {
  int bits = 0;
  for (; x > 0; x >>= 1) bits++;
  return bits;
}

/* Returns whether left * 2^exponent >= right. left > 0, and the exponent is arbitrary. */
static int scaled_at_least(uint128 left, int64_t exponent, uint128 right) {
  if (right == 0) return 1;
  if (exponent >= 0) return bits_of(left) + exponent > 128 || left << exponent >= right;
  return bits_of(right) - exponent <= 128 && left >= right << -exponent;
}

/* Returns whether 2 rate V >= s^2. */
static int rate_kept(uint64_t s, uint64_t mantissa, int exponent, uint64_t variance) {
  if (variance == 0) return s == 0;
  return scaled_at_least((uint128)mantissa * variance, (int64_t)exponent + 1, (uint128)s * s);
}

/* Returns whether 2 rate (V - 1/12) >= s^2, for a mantissa below 2^62. */
static int exact_gaussian_rate_kept(uint64_t s, uint64_t mantissa, int exponent,
                                    uint64_t variance) {
  uint128 left = (uint128)mantissa * ((uint128)12 * variance - 1);
  return scaled_at_least(left, (int64_t)exponent + 1, (uint128)12 * s * s);
}

static void check_variance(uint64_t s, uint64_t mantissa, int exponent) {
  uint64_t variance = lattice_variance(s, mantissa, exponent);
  if (variance == 0) {
    CHECK(!rate_kept(s, mantissa, exponent, LATTICE_VARIANCE_END - 2),
          "refused s %" PRIu64 ", rate %" PRIu64 " * 2^%d", s, mantissa, exponent);
    return;
  }
  CHECK(variance < LATTICE_VARIANCE_END && rate_kept(s, mantissa, exponent, variance - 1) &&
            (mantissa >> 62 || exact_gaussian_rate_kept(s, mantissa, exponent, variance)),
        "too small: s %" PRIu64 ", rate %" PRIu64 " * 2^%d: %" PRIu64, s, mantissa, exponent,
        variance);
  CHECK(variance == 1 || !rate_kept(s, mantissa, exponent, variance - 2),
        "not the least: s %" PRIu64 ", rate %" PRIu64 " * 2^%d: %" PRIu64, s, mantissa, exponent,
        variance);
}

static void variance_is_the_least_that_keeps_the_rate(void) {
  random_state = 1;
  int refused = 0;
  for (int i = 0; i < ROUNDS; i++) {
    uint64_t s = random_to(UINT32_MAX), mantissa = random_to((uint64_t)1 << 62);
    /* The exponents are close to the exponent at which V is about 1. */
    int balance = 2 * bits_of(s) - bits_of(mantissa);
    int exponent = balance - (int)(random_word() % 80) + 8;
    check_variance(s, mantissa, exponent);
    refused += lattice_variance(s, mantissa, exponent) == 0;
  }
  CHECK(refused > ROUNDS / 20 && refused < ROUNDS / 2, "%d refused of %d", refused, ROUNDS);
  for (uint64_t s = 0; s <= 60; s++) {
    for (uint64_t mantissa = 1; mantissa <= 60; mantissa++) {
      for (int exponent = -8; exponent <= 8; exponent++) check_variance(s, mantissa, exponent);
    }
  }
}

static void variance_at_the_extremes(void) {
  const uint64_t sensitivities[] = {0, 1, 2, 3, UINT32_MAX - 1u, UINT32_MAX};
  const uint64_t mantissas[] = {1, 2, 3, ((uint64_t)1 << 53) - 1, (uint64_t)1 << 63, UINT64_MAX};
  const int exponents[] = {INT_MIN, INT_MIN + 1, -1100, -1, 0, 1, 971, INT_MAX - 1, INT_MAX};
  for (int i = 0; i < 6; i++) {
    for (int j = 0; j < 6; j++) {
      for (int k = 0; k < 9; k++) check_variance(sensitivities[i], mantissas[j], exponents[k]);
      for (int exponent = -140; exponent <= 140; exponent++) {
        check_variance(sensitivities[i], mantissas[j], exponent);
      }
    }
  }
  CHECK(lattice_variance(1, 1, -62) == ((uint64_t)1 << 61) + 1, "rate 2^-62");
  CHECK(lattice_variance(1, 1, -63) == 0, "rate 2^-63");
  CHECK(lattice_variance(1, 1, INT_MIN) == 0, "least rate");
  CHECK(lattice_variance(1, 1, INT_MAX) == 2, "greatest rate");
  CHECK(lattice_variance(7, 0, 3) == 0, "a rate of zero");
}

/* ---- refinement ------------------------------------------------------------------------------ */

static void check_refinement(uint64_t inner, uint64_t outer) {
  uint128 product = (uint128)inner * outer;
  uint64_t gap = outer - inner, fresh = lattice_refinement(inner, outer);
  if (fresh == 0) {
    CHECK((uint128)gap * (LATTICE_VARIANCE_END - 1) < product, "refused %" PRIu64 " %" PRIu64,
          inner, outer);
    return;
  }
  CHECK(fresh < LATTICE_VARIANCE_END && (uint128)gap * fresh >= product,
        "too small: %" PRIu64 " %" PRIu64 ": %" PRIu64, inner, outer, fresh);
  CHECK((uint128)gap * (fresh - 1) < product, "not the least: %" PRIu64 " %" PRIu64 ": %" PRIu64,
        inner, outer, fresh);
  /* The cost of the fresh draw and of the outer point is at most that of the inner point: 1/fresh +
  ** 1/outer <= 1/inner. */
  CHECK(((uint128)outer + fresh) * inner <= (uint128)fresh * outer,
        "%" PRIu64 " %" PRIu64 ": %" PRIu64, inner, outer, fresh);
}

static void refinement_adds_up(void) {
  random_state = 2;
  int refused = 0;
  for (int i = 0; i < ROUNDS; i++) {
    uint64_t outer = 1 + random_to(LATTICE_VARIANCE_END - 2);
    uint64_t inner = i & 1 ? random_to(outer - 1) : outer - random_to(outer - 1);
    check_refinement(inner, outer);
    refused += lattice_refinement(inner, outer) == 0;
  }
  CHECK(refused > 100, "only %d refused", refused);
  for (uint64_t outer = 2; outer <= 200; outer++) {
    for (uint64_t inner = 1; inner < outer; inner++) check_refinement(inner, outer);
  }
  const uint64_t last = LATTICE_VARIANCE_END - 1;
  for (uint64_t near = 1; near <= 100; near++) {
    check_refinement(last - near, last);
    check_refinement(near, last);
    check_refinement(last / 2 + 50 - near, last);
  }
}

static void check_refine(int64_t y, int64_t z, uint64_t inner, uint64_t outer) {
  int128 sum = (int128)inner * y + (int128)(outer - inner) * z;
  int64_t refined = lattice_refine(y, z, inner, outer);
  CHECK(is_nearest(refined, sum, outer),
        "(%" PRIu64 "/%" PRIu64 ") of %" PRId64 " and %" PRId64 " gave %" PRId64, inner, outer, y,
        z, refined);
  CHECK(lattice_refine(-y, -z, inner, outer) == -refined, "not odd at %" PRId64, y);
}

static void refined_point_is_nearest(void) {
  random_state = 3;
  for (uint64_t outer = 2; outer <= 8; outer++) {
    for (uint64_t inner = 1; inner < outer; inner++) {
      for (int64_t y = -20; y <= 20; y++) {
        for (int64_t z = -20; z <= 20; z++) check_refine(y, z, inner, outer);
      }
    }
  }
  for (int i = 0; i < ROUNDS; i++) {
    uint64_t outer = 1 + random_to(LATTICE_VARIANCE_END - 2);
    uint64_t inner = i & 1 ? random_to(outer - 1) : outer - random_to(outer - 1);
    int64_t y = (int64_t)random_to(INT64_MAX - 1), z = (int64_t)random_to(INT64_MAX - 1);
    check_refine(i & 2 ? y : -y, i & 4 ? z : -z, inner, outer);
  }
}

static void refined_point_at_the_extremes(void) {
  const uint64_t last = LATTICE_VARIANCE_END - 1;
  const int64_t ends[] = {-INT64_MAX, -LATTICE_TOTAL - 1, -LATTICE_TOTAL, -1, 0,
                          1,          LATTICE_TOTAL,      INT64_MAX};
  const uint64_t weights[] = {1, 2, last / 2, last / 2 + 1, last - 1};
  for (int i = 0; i < 8; i++) {
    for (int j = 0; j < 8; j++) {
      for (int k = 0; k < 5; k++) check_refine(ends[i], ends[j], weights[k], last);
    }
  }
  CHECK(lattice_refine(INT64_MIN, INT64_MIN, 1, last) == INT64_MIN, "the least integer");
  CHECK(lattice_refine(1, 0, 1, 2) == 1 && lattice_refine(-1, 0, 1, 2) == -1, "halves");
}

int main(void) {
  RUN(roots_are_rounded_down);
  RUN(clamp_keeps_the_interval);
  RUN(rounding_is_to_nearest_halves_away);
  RUN(rounding_of_wide_totals);
  RUN(rounding_saturates);
  RUN(sensitivity_bounds_all_neighbours_and_is_attained);
  RUN(sensitivity_at_the_extremes);
  RUN(saturation_does_not_widen);
  RUN(variance_is_the_least_that_keeps_the_rate);
  RUN(variance_at_the_extremes);
  RUN(refinement_adds_up);
  RUN(refined_point_is_nearest);
  RUN(refined_point_at_the_extremes);
  FINISH();
}
