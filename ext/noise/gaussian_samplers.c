/* gaussian_samplers.c: the sampler of Canonne, Kamath and Steinke, and the table.
** Tests: tests/noise/test_discrete_gaussian_source.c, tests/noise/test_gaussian_table.py,
** tests/noise/test_gaussian_table.c */
#include "noise/gaussian_samplers.h"

#include <string.h>

#include "noise/exact_events.h"
#include "os/thread.h"

/* ---- Canonne, Kamath and Steinke ------------------------------------------------------------- */

/* Algorithm 3 of the paper proposes y from a discrete Laplace distribution of scale t, where t is
** about sqrt(V). The algorithm accepts y with probability exp(-(|y| - V/t)^2/(2V)). For V near
** 2^41, a draw uses about 4 random words of 64 bits. */
struct cks_sampler cks_sampler_of(uint64_t variance) {
  uint64_t scale = isqrt(variance) + 1;
  return (struct cks_sampler){variance, scale, scale * scale};
}

/* Accepts y with probability exp(-(|y| - V/t)^2/(2V)) = exp(-n^2/(2 V t^2)), where n = | |y| t -
** V|.
**
** bernoulli() takes only exponents of at most 1, and n^2 could need 140 bits. The function
** therefore divides the exponent n^2/(2 V t^2) into m1 m2 equal parts, where m1 = floor(n/V) + 1
** and m2 = floor(n/t^2) + 1. Each part is (n/(V m1)) (n/(t^2 m2))/2, which is below 1. For each
** part, the function draws an event of probability exp(-part). It accepts y if all these events
** happen. n/V is about ||y|/t - 1|, so there is one part for |y| < 2t. About three of four
** proposals are accepted. */
static inline int accept_proposal(struct csprng *random, const struct cks_sampler *law,
                                  uint64_t magnitude) {
  uint128 product = (uint128)magnitude * law->scale;
  uint128 n = product > law->variance ? product - law->variance : law->variance - product;
  struct chance factors[2] = {part_of(n, law->variance), part_of(n, law->square)};
  uint128 events = (uint128)factors[0].parts * factors[1].parts;
  while (events > 0 && bernoulli(random, factors, 2, 2)) events--;
  return events == 0;
}

/* The loop makes 1.3 proposals on average. */
int64_t cks_sampler_draw(const struct cks_sampler *law, struct csprng *random) {
  struct proposal y;
  do {
    y = laplace(random, law->scale);
  } while (!accept_proposal(random, law, y.magnitude));
  return y.negative ? -(int64_t)y.magnitude : (int64_t)y.magnitude;
}

/* ---- strips ---------------------------------------------------------------------------------- */

/* The magnitudes |y| are divided into strips of w integers, where w is about sqrt(V)/32. Strip i
** holds the magnitudes |y| = i w + u, 0 <= u < w. A trial first proposes strip i with probability
** proportional to e_i = exp(-i^2/2048). Then the trial draws u uniformly, and accepts y with
** probability exp(-gamma), where
**
**   gamma = y^2/(2V) - i^2/2048 = (1024 u (2 i w + u) + i^2 D)/(2048 V),    D = 1024 w^2 - V >= 0,
**
** so that P(y) is proportional to exp(-y^2/(2V)) for every V. The e_i do not depend on V.
**
** 1. Each strip has an integer weight, its number of units. All strips together have 2^26 units. A
**    strip i < 255 has floor(SCALE e_i) + 1 units. Strip 255 has all other units and stands for all
**    strips from 255 on. One unit of each strip is its edge. If a trial hits the edge of a strip i
**    < 255, the trial continues with probability frac(SCALE e_i). If a trial hits another unit of
**    this strip, the trial always continues. The chance that a trial proposes strip i and continues
**    is therefore proportional to SCALE e_i. If a trial hits the edge of strip 255, it picks a
**    strip i >= 255 with probability 2^-m, where m depends on i, and continues with probability 2^m
**    SCALE e_i < 1. If a trial hits another unit of strip 255, the trial ends without a draw. Four
**    trials in a million hit an edge. The code computes digits of the fraction only for these
**    trials, and only as many digits as the comparison needs.
** 2. The units are in 256 slots of 2^18 units (the alias method). At most two strips share a slot.
**    The first unit of slot i is the edge of strip i.
** 3. The code decides an event of probability exp(-gamma) as bernoulli() does, by attempts. If the
**    first attempt, of probability gamma, fails, the event happens. From the index i alone, the
**    code computes an integer b with gamma <= b/256. The first attempt succeeds if two things
**    happen. First, a number of eight random bits is below b, which has probability b/256. This
**    happens in 3 of 100 trials. Second, an event of probability 256 gamma/b happens, which the
**    code decides with exact rationals. If b is larger than necessary, the draw takes longer, but
**    its distribution is the same.
** 4. The code uses no floating point.
**
** A trial uses one random word. From the lowest bit, the word holds 8 bits for the slot, 18 bits
** for the unit, 1 bit for the sign, 8 bits for the first attempt and 29 bits for the place in the
** strip. */
#define STRIPS     256u
#define LAST       (STRIPS - 1)
#define UNIT_BITS  18
#define UNITS      (1u << UNIT_BITS) /* units of a slot */
#define TOTAL      (STRIPS * UNITS)
#define PLACE_BITS 29

/* SCALE is chosen so that the weights fit into TOTAL units. The sum of e_i over i >= 0 is between
** 32 sqrt(pi/2) + 1/2 and this number plus 1e-300, so it is below 40.7. */
#define SCALE ((TOTAL - STRIPS) / 407 * 10)

/* ---- exp(-i^2/2048) to any number of digits -------------------------------------------------- */

/* A fraction is an array of `n` digits of 32 bits, the most significant digit first. Its value is
** an integer below 2^(32n), divided by 2^(32n). An ulp is one unit of the last digit. */

/* Sets x to the fractional part of x * factor and returns the whole part. */
static uint32_t multiply(uint32_t *x, size_t n, uint32_t factor) {
  uint64_t carry = 0;
  for (size_t i = n; i-- > 0; carry >>= 32) {
    carry += (uint64_t)x[i] * factor;
    x[i] = (uint32_t)carry;
  }
  return (uint32_t)carry;
}

/* Sets x to x * y, rounded down. y may be the same array as x. */
static void multiply_fraction(uint32_t *x, size_t n, const uint32_t *y) {
  uint32_t product[2 * n];
  memset(product, 0, sizeof product);
  for (size_t i = n; i-- > 0;) {
    uint64_t carry = 0;
    for (size_t j = n; j-- > 0; carry >>= 32) {
      carry += (uint64_t)x[i] * y[j] + product[i + j + 1];
      product[i + j + 1] = (uint32_t)carry;
    }
    product[i] = (uint32_t)carry;
  }
  memcpy(x, product, n * sizeof *x);
}

/* Sets x to x / divisor, rounded down. Returns whether the new x is positive. */
static int divide(uint32_t *x, size_t n, uint32_t divisor) {
  uint64_t rest = 0;
  uint32_t any = 0;
  for (size_t i = 0; i < n; i++) {
    rest = rest << 32 | x[i];
    x[i] = (uint32_t)(rest / divisor);
    rest %= divisor;
    any |= x[i];
  }
  return any != 0;
}

/* Add `ulps` or y to x, and subtract y from x. Every result must be in [0, 1). */
static void add_ulps(uint32_t *x, size_t n, uint64_t ulps) {
  for (size_t i = n; i-- > 0;) {
    uint64_t low = (ulps & UINT32_MAX) + x[i];
    x[i] = (uint32_t)low;
    ulps = (ulps >> 32) + (low >> 32);
  }
}

static void add(uint32_t *x, size_t n, const uint32_t *y) {
  uint64_t carry = 0;
  for (size_t i = n; i-- > 0; carry >>= 32) {
    carry += (uint64_t)x[i] + y[i];
    x[i] = (uint32_t)carry;
  }
}

static void subtract(uint32_t *x, size_t n, const uint32_t *y) {
  uint64_t borrow = 0;
  for (size_t i = n; i-- > 0; borrow = borrow >> 32 & 1) {
    borrow = (uint64_t)x[i] - y[i] - borrow;
    x[i] = (uint32_t)borrow;
  }
}

/* Sets x to a lower bound on exp(-1/2048), for n >= 4. The error is less than 12n + 12 ulps. The
** function adds the series 1 - 1/2048 + (1/2048)^2/2 - ... The code computes each term by dividing
** the previous term and rounding down, so the error of a term is less than 2 ulps. The term
** (1/2048)^2/2 is below 2^-22, and each later term is at most 2^-12 times the previous term.
** Therefore at most 3n terms are not zero, and the omitted terms add up to less than 2 ulps. The
** error of the sum is less than 6n + 2 ulps in either direction. Subtracting 6n + 6 ulps turns the
** sum into a lower bound. */
static void exp_minus_1_2048(uint32_t *x, size_t n) {
  uint32_t term[n], margin[n];
  memset(term, 0, sizeof term);
  memset(margin, 0, sizeof margin);
  memset(x, 0, n * sizeof *x);
  term[0] = UINT32_C(1) << 21;
  margin[n - 1] = (uint32_t)(6 * n + 6);
  subtract(x, n, term); /* 0 - 1/2048 has wrapped around, so x is now 1 - 1/2048 */
  for (uint32_t k = 2; divide(term, n, 2048 * k); k++) (k % 2 ? subtract : add)(x, n, term);
  subtract(x, n, margin);
}

/* power() sets x to a lower bound on exp(-strip^2/2048), a power of exp(-1/2048), for strip >= 1
** and n >= 4. power_error() returns the largest error of this bound in ulps, 16 n strip^2. The
** proof: let the errors of two lower bounds on numbers below 1 be at most s and t ulps. Then the
** error of their product, rounded down, is at most s + t + 1 ulps. The error of the k-th power of a
** lower bound with error s is therefore at most k (s + 1) ulps, in any order of multiplication.
** Here s is 12n + 12, and 12n + 12 + 1 <= 16n. */
static uint64_t power_error(size_t n, uint64_t strip) {
  return 16 * n * strip * strip;
}

static void power(uint32_t *x, size_t n, uint64_t strip) {
  uint32_t base[n];
  uint64_t exponent = strip * strip;
  exp_minus_1_2048(base, n);
  memcpy(x, base, sizeof base);
  for (unsigned i = bit_length(exponent); i-- > 1;) {
    multiply_fraction(x, n, x);
    if (exponent >> (i - 1) & 1) multiply_fraction(x, n, base);
  }
}

struct digit {
  uint32_t whole; /* floor(SCALE 2^doublings e_i) mod 2^32 */
  /* Digit number `place` of the fractional part, a digit of 32 bits, from 0 on. */
  uint32_t value;
};

/* Computes the digit from a lower and an upper bound on e_i with n digits. Returns 1 if n digits
** are enough: both bounds give the same digit. */
static int digit_from(size_t n, uint64_t strip, unsigned doublings, size_t place,
                      struct digit *digit) {
  uint32_t low[n], high[n];
  power(low, n, strip);
  memcpy(high, low, sizeof low);
  add_ulps(high, n, power_error(n, strip));
  uint32_t whole[2] = {multiply(low, n, SCALE), multiply(high, n, SCALE)};
  for (unsigned i = 0; i < doublings; i++) {
    whole[0] = 2 * whole[0] + multiply(low, n, 2);
    whole[1] = 2 * whole[1] + multiply(high, n, 2);
  }
  *digit = (struct digit){whole[0], low[place]};
  return whole[0] == whole[1] && memcmp(low, high, (place + 1) * sizeof *low) == 0;
}

/* e_i is irrational for i >= 1, so the loop ends. place + 4 digits are nearly always enough. */
static struct digit digit_of(uint64_t strip, unsigned doublings, size_t place) {
  struct digit digit;
  size_t n = place + 4;
  while (!digit_from(n, strip, doublings, place, &digit)) n *= 2;
  return digit;
}

/* Returns 1 with probability frac(SCALE 2^doublings e_i), otherwise 0: whether a uniform real
** number, drawn digit by digit, is below it. */
static int fraction_happens(struct csprng *random, uint64_t strip, unsigned doublings) {
  if (strip == 0) return 0;
  for (size_t place = 0;; place++) {
    uint32_t mine = digit_of(strip, doublings, place).value;
    uint32_t drawn = (uint32_t)csprng_take(random, 32);
    if (drawn != mine) return drawn < mine;
  }
}

/* ---- the table ------------------------------------------------------------------------------- */

/* In slot i, units 0 .. own-1 belong to strip i, own >= 1, and all others to strip `other`. */
static struct slot { uint32_t own, other; } slots[STRIPS];

static uint32_t weight(unsigned strip) {
  return (strip ? digit_of(strip, 0, 0).whole : SCALE) + 1;
}

/* The weights of strips 0 to 254 never increase with i, and strip 255 has fewer units than a slot.
** So the strips with more units than a slot (the givers) come first; the others are the takers.
** Each giver in turn fills up the slots of takers, until it has fewer units left than a slot holds,
** becomes a taker, and the next giver fills up its slot. The weights add up to the size of all
** slots, so the last slot is full when all units are placed. */
static void make_slots(void) {
  uint32_t left[STRIPS];
  left[LAST] = TOTAL;
  for (unsigned i = 0; i < LAST; i++) {
    left[i] = weight(i);
    left[LAST] -= left[i];
  }
  for (unsigned i = 0; i < STRIPS; i++) slots[i] = (struct slot){UNITS, i};
  unsigned giver = 0;
  for (unsigned i = LAST; left[i] < UNITS && i > giver; i--) {
    for (unsigned taker = i; left[taker] < UNITS;) {
      slots[taker] = (struct slot){left[taker], giver};
      left[giver] -= UNITS - left[taker];
      taker = giver;
      if (left[giver] < UNITS) giver++;
    }
  }
}

/* ---- trials ---------------------------------------------------------------------------------- */

struct gaussian_table gaussian_table_of(uint64_t variance) {
  static struct once once = ONCE_INITIALIZER;
  once_run(&once, make_slots);
  uint64_t width = isqrt((variance - 1) / 1024) + 1;
  uint64_t square = width * width; /* at most 2^52 */
  uint64_t deficit = 1024 * square - variance;
  return (struct gaussian_table){
      .variance = variance,
      .width = width,
      .excess = ((uint64_t)1 << PLACE_BITS) % width,
      .deficit = deficit,
      .slope = (uint64_t)(((uint128)square << 39) / variance) + 1,
      .bend = (uint64_t)(((uint128)deficit << 29) / variance) + 1,
  };
}

/* Decides whether the trial continues, if the unit is the edge of *strip or any unit of the last
** strip. The edge of the last strip sets *strip to 255 + 256 G + B, where B is a uniform integer of
** 8 bits and P(G) = 2^-(G+1), so each strip from 255 on has probability 2^-(9+G). No number
** overflows unless G reaches 2^16, which has a probability below 2^-65000. */
static int goes_on(struct csprng *random, uint32_t unit, uint64_t *strip) {
  if (*strip < LAST) return fraction_happens(random, *strip, 0);
  if (unit > 0) return 0;
  unsigned doublings = 9;
  for (; csprng_take(random, 1); doublings++) *strip += STRIPS;
  *strip += csprng_take(random, 8);
  return fraction_happens(random, *strip, doublings);
}

/* The integer b of the strip. If b < 256, then gamma <= b/256 for all u in the strip: gamma
** increases with u, u < w, and b is computed for u = w. If b >= 256, it says nothing about gamma,
** and accept() treats the strip in another way. */
static inline uint64_t bound(const struct gaussian_table *law, uint64_t strip) {
  if (strip >= LAST) return 256;
  return (((2 * strip + 1) * law->slope + strip * strip * law->bend) >> 32) + 1;
}

/* Completes the event of probability exp(-gamma) after the eight bits of the first attempt were
** below b. If b >= 256, they always are, and gamma may exceed 1: it is divided into equal parts
** below 1, and an event of probability exp(-part) must happen for each part. */
static int accept(struct csprng *random, const struct gaussian_table *law, uint64_t strip,
                  uint64_t place, uint64_t b) {
  uint128 n = (uint128)(2 * strip * law->width + place) * place * 1024 +
              (uint128)(strip * strip) * law->deficit; /* gamma = n/(2048 V) */
  uint64_t parts = b < 256 ? 1 : (uint64_t)(n / law->variance / 2048) + 1;
  struct chance gamma = chance_of(n, law->variance, 2048 * parts);
  if (b < 256) {
    struct chance rest = chance_of(n, law->variance, 8 * b); /* 256 gamma/b */
    return !happens(random, &rest) || bernoulli_from(random, 2, &gamma, 1, 1);
  }
  while (parts > 0 && bernoulli(random, &gamma, 1, 1)) parts--;
  return parts == 0;
}

/* For large V, 98 of 100 trials yield a draw. */
int64_t gaussian_table_draw(const struct gaussian_table *law, struct csprng *random) {
  for (;;) {
    uint64_t word = csprng_word(random);
    uint32_t unit = word >> 8 & (UNITS - 1);
    int negative = word >> 26 & 1;
    uint64_t attempt = word >> 27 & 255;
    /* scaled / 2^29 is less than w. The first `continue` below makes it uniform. */
    uint64_t scaled = (word >> 35) * law->width;
    uint64_t place = scaled >> PLACE_BITS;
    struct slot slot = slots[word % STRIPS];
    uint64_t strip = unit < slot.own ? word % STRIPS : slot.other;
    if ((scaled & ((1u << PLACE_BITS) - 1)) < law->excess) continue;
    if ((unit == 0 || strip == LAST) && !goes_on(random, unit, &strip)) continue;
    uint64_t b = bound(law, strip);
    if (attempt < b && !accept(random, law, strip, place, b)) continue;
    int64_t magnitude = (int64_t)(strip * law->width + place);
    if (negative && magnitude == 0) continue; /* +0 and -0 are one outcome */
    return negative ? -magnitude : magnitude;
  }
}
