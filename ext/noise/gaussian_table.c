/*
** gaussian_table.c: the exact discrete Gaussian by rejection from strips, in integers.
**
** Cut the magnitudes |y| into strips of w integers, w about sqrt(V)/32: |y| = i w + u, 0 <= u < w.
** A trial proposes strip i with probability proportional to e_i = exp(-i^2/2048), then u uniformly,
** and accepts with probability exp(-gamma), where
**
**   gamma = y^2/(2V) - i^2/2048 = (1024 u (2 i w + u) + i^2 D)/(2048 V),    D = 1024 w^2 - V >= 0,
**
** so that P(y) is proportional to exp(-y^2/(2V)) for every V. The e_i do not depend on V.
**
** 1. Strips have integer weights, 2^26 units in all. Strip i < 255 has floor(SCALE e_i) + 1 units;
**    strip 255 has the rest and stands for all strips from 255 on. One unit of each strip is its
**    edge. A trial that hits the edge of i < 255 continues with probability frac(SCALE e_i); a
**    trial that hits another unit always continues. Together these give the weight SCALE e_i. The
**    edge of 255 picks a strip i >= 255 with probability 2^-m and continues with probability
**    2^m SCALE e_i < 1; the other units of 255 end the trial. Edges are hit 4 times in a million.
**    The digits of the fraction are then computed to as many places as the comparison needs.
** 2. Units lie in alias slots: 256 slots of 2^18 units, each shared by at most two strips. The
**    first unit of slot i is the edge of strip i.
** 3. exp(-gamma) is decided as in bernoulli(), which accepts unless a first attempt of probability
**    gamma succeeds. The index i alone gives an integer b with gamma <= b/256. The attempt has two
**    parts: eight random bits are below b, which has probability b/256; then, 3 times in 100, an
**    event of probability 256 gamma/b follows, decided in exact rationals. A larger b than
**    necessary costs time only.
** 4. There is no floating point.
**
** The bits of a word, from the lowest: 8 slot, 18 unit, 1 sign, 8 first attempt, 29 place in strip.
*/
#include "noise/gaussian_table.h"

#include <string.h>

#include "noise/exact_bernoulli.h"
#include "os/thread.h"

#define STRIPS     256u
#define LAST       (STRIPS - 1)
#define UNIT_BITS  18
#define UNITS      (1u << UNIT_BITS) /* of a slot */
#define TOTAL      (STRIPS * UNITS)
#define PLACE_BITS 29

/* The sum of the e_i over i >= 0 is 32 sqrt(pi/2) + 1/2 + (less than 1e-300), below 40.7. */
#define SCALE ((TOTAL - STRIPS) / 407 * 10)

/* ---- exp(-i^2/2048) to any number of digits -------------------------------------------------- */

/*
** A fraction has `n` digits of 32 bits, the most significant first: it is an integer below 2^(32n)
** divided by 2^(32n). An ulp is one unit of the last digit.
*/

/* x = the fraction of x * factor. Returns the whole part. */
static uint32_t multiply(uint32_t *x, size_t n, uint32_t factor) {
  uint64_t carry = 0;
  for (size_t i = n; i-- > 0; carry >>= 32) {
    carry += (uint64_t)x[i] * factor;
    x[i] = (uint32_t)carry;
  }
  return (uint32_t)carry;
}

/* x = x * y, rounded down. y may be x. */
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

/* x = x / divisor, rounded down. Returns whether x is still positive. */
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

/* x = x + ulps, x = x + y, x = x - y. All results must be inside [0, 1). */
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

/*
** A lower bound on exp(-1/2048), by the series 1 - 1/2048 + (1/2048)^2/2 - ...; n >= 4. Its error
** is less than 12n + 12 ulps. Each term is the previous one divided and rounded down, which is off
** by less than 2 ulps. Each term is at most 2^-12 of the previous one, and the first is below
** 2^-22, so at most 3n terms are not zero, and the omitted terms add up to less than 2 ulps. The
** sum is therefore off by less than 6n + 2 ulps in either direction. Subtracting 6n + 6 makes it a
** lower bound.
*/
static void root(uint32_t *x, size_t n) {
  uint32_t term[n], margin[n];
  memset(term, 0, sizeof term);
  memset(margin, 0, sizeof margin);
  memset(x, 0, n * sizeof *x);
  term[0] = UINT32_C(1) << 21;
  margin[n - 1] = (uint32_t)(6 * n + 6);
  subtract(x, n, term); /* 1 - 1/2048: the whole 1 is what the subtraction borrows */
  for (uint32_t k = 2; divide(term, n, 2048 * k); k++) (k % 2 ? subtract : add)(x, n, term);
  subtract(x, n, margin);
}

/*
** power() computes a lower bound on exp(-strip^2/2048), strip >= 1, n >= 4, as a power of the root.
** power_error() is its largest error in ulps, 16 n strip^2: if lower bounds on a, b < 1 are off by
** at most s and t ulps, a*b rounded down is off by at most s + t + 1 ulps. So the k-th power of a
** number that is off by s is off by at most k (s + 1), in any order of multiplication, and
** 12n + 12 + 1 <= 16n.
*/
static uint64_t power_error(size_t n, uint64_t strip) {
  return 16 * n * strip * strip;
}

static void power(uint32_t *x, size_t n, uint64_t strip) {
  uint32_t base[n];
  uint64_t exponent = strip * strip;
  root(base, n);
  memcpy(x, base, sizeof base);
  for (unsigned i = bit_length(exponent); i-- > 1;) {
    multiply_fraction(x, n, x);
    if (exponent >> (i - 1) & 1) multiply_fraction(x, n, base);
  }
}

struct digit {
  uint32_t whole; /* floor(SCALE 2^doublings e_i) mod 2^32 */
  uint32_t value; /* digit `place` of its fraction, of 32 bits; 0 is the first */
};

/* Computes the digit from n digits of e_i. Returns whether n is enough: both bounds agree. */
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

/*
** e_i is irrational for i >= 1, so some number of digits is sufficient. Four more digits nearly
** always are.
*/
static struct digit digit_of(uint64_t strip, unsigned doublings, size_t place) {
  struct digit digit;
  size_t n = place + 4;
  while (!digit_from(n, strip, doublings, place, &digit)) n *= 2;
  return digit;
}

/*
** An event of probability frac(SCALE 2^doublings e_i): a uniform real number, drawn digit by digit,
** is below it.
*/
static int fraction_happens(struct csprng *random, uint64_t strip, unsigned doublings) {
  if (strip == 0) return 0;
  for (size_t place = 0;; place++) {
    uint32_t mine = digit_of(strip, doublings, place).value;
    uint32_t drawn = (uint32_t)csprng_take(random, 32);
    if (drawn != mine) return drawn < mine;
  }
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Units 0 .. own-1 belong to the slot's own strip, all others to strip `other`. own >= 1. */
static struct slot { uint32_t own, other; } slots[STRIPS];

static uint32_t weight(unsigned strip) {
  return (strip ? digit_of(strip, 0, 0).whole : SCALE) + 1;
}

/*
** Weights decrease with i, so the strips that fill more than one slot come first. Each of them in
** turn fills the slots of smaller strips, until it has less than one slot left and its own slot is
** filled by the next. The weights add up to all slots, so the last slot is full when all units are
** placed.
*/
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

/*
** Whether the trial continues, if the unit is the edge of *strip or any unit of the last strip. The
** edge of the last strip picks the strip 255 + 256 G + 8 bits with P(G) = 2^-(G+1), so each strip
** has probability 2^-(9+G). No number overflows unless G reaches 2^16, which has a probability
** below 2^-65000.
*/
static int goes_on(struct csprng *random, uint32_t unit, uint64_t *strip) {
  if (*strip < LAST) return fraction_happens(random, *strip, 0);
  if (unit > 0) return 0;
  unsigned doublings = 9;
  for (; csprng_take(random, 1); doublings++) *strip += STRIPS;
  *strip += csprng_take(random, 8);
  return fraction_happens(random, *strip, doublings);
}

/*
** An integer b with gamma <= b/256 in the whole strip (gamma increases with u, and u < w), or any
** number from 256 on.
*/
static inline uint64_t bound(const struct gaussian_table *law, uint64_t strip) {
  if (strip >= LAST) return 256;
  return (((2 * strip + 1) * law->slope + strip * strip * law->bend) >> 32) + 1;
}

/*
** An event of probability exp(-gamma), given that the eight bits of the first attempt are below b.
** If b >= 256, they carry no information and gamma may exceed 1: gamma is then divided into equal
** parts below 1, and an event for each part must happen.
*/
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

/* For large V a trial yields a draw 98 times in 100. */
int64_t gaussian_table_draw(const struct gaussian_table *law, struct csprng *random) {
  for (;;) {
    uint64_t word = csprng_word(random);
    uint32_t unit = word >> 8 & (UNITS - 1);
    int negative = word >> 26 & 1;
    uint64_t attempt = word >> 27 & 255;
    uint64_t scaled = (word >> 35) * law->width; /* scaled / 2^29, rounded down, is below w, ... */
    uint64_t place = scaled >> PLACE_BITS;       /* ... and uniform once the excess is rejected */
    struct slot slot = slots[word % STRIPS];
    uint64_t strip = unit < slot.own ? word % STRIPS : slot.other;
    if ((scaled & ((1u << PLACE_BITS) - 1)) < law->excess) continue;
    if ((unit == 0 || strip == LAST) && !goes_on(random, unit, &strip)) continue;
    uint64_t b = bound(law, strip);
    if (attempt < b && !accept(random, law, strip, place, b)) continue;
    int64_t magnitude = (int64_t)(strip * law->width + place);
    if (negative && magnitude == 0) continue; /* count zero once */
    return negative ? -magnitude : magnitude;
  }
}
