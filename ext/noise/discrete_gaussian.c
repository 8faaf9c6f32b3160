/* discrete_gaussian.c: draws vectors of discrete Gaussian noise from a table, and points between
** two points of a path.
**
** 1. Both samplers are exact: integers and random bits only, no floating point.
** 2. All bits of a call come from one key. If the system provides no key, the call draws nothing.
** 3. When a call returns, the noise is the only random value that is left in memory.
** 4. The time of a draw depends on its value. For each coordinate of a short vector, the code makes
**    several draws and uses one of them (hidden_draw()).
** Tests: tests/noise/test_discrete_gaussian.c, test_discrete_gaussian_source.c,
** test_gaussian_table.py, test_gaussian_table.c, test_bridges.c */
#include <string.h>

#include "noise/exact_events.h"
#include "noise/noise.h"
#include "os/os.h"

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

/* The numbers of one variance. */
struct gaussian_law {
  uint64_t variance; /* V, 1 <= V < 2^62 */
  uint64_t width;    /* w: the least integer with 1024 w^2 >= V, at most 2^26 */
  uint64_t excess;   /* 2^29 mod w */
  uint64_t deficit;  /* D = 1024 w^2 - V */
  uint64_t slope;    /* an upper bound on 2^39 w^2/V */
  uint64_t bend;     /* an upper bound on 2^29 D/V */
};

/* All variances share one table, which the first call builds for all threads. */
static struct gaussian_law gaussian_law_of(uint64_t variance) {
  static struct once once = ONCE_INITIALIZER;
  once_run(&once, make_slots);
  uint64_t width = lattice_root((variance - 1) / 1024) + 1;
  uint64_t square = width * width; /* at most 2^52 */
  uint64_t deficit = 1024 * square - variance;
  return (struct gaussian_law){
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
static inline uint64_t bound(const struct gaussian_law *law, uint64_t strip) {
  if (strip >= LAST) return 256;
  return (((2 * strip + 1) * law->slope + strip * strip * law->bend) >> 32) + 1;
}

/* Completes the event of probability exp(-gamma) after the eight bits of the first attempt were
** below b. If b >= 256, they always are, and gamma may exceed 1: it is divided into equal parts
** below 1, and an event of probability exp(-part) must happen for each part. */
static int accept(struct csprng *random, const struct gaussian_law *law, uint64_t strip,
                  uint64_t place, uint64_t b) {
  uint128 n = (uint128)(2 * strip * law->width + place) * place * 1024 +
              (uint128)(strip * strip) * law->deficit; /* gamma = n/(2048 V) */
  uint64_t parts = b < 256 ? 1 : (uint64_t)(n / law->variance / 2048) + 1;
  struct chance gamma = chance_of(n, law->variance, 2048 * parts);
  if (b < 256) {
    struct chance rest = chance_of(n, law->variance, 8 * b); /* 256 gamma/b */
    return !happens(random, &rest) || bernoulli_from(random, 2, &gamma);
  }
  while (parts > 0 && bernoulli(random, &gamma)) parts--;
  return parts == 0;
}

/* For large V, 98 of 100 trials yield a draw; below 1024, where w is 1, sqrt(V)/32 of them. */
static int64_t draw_gaussian(struct csprng *random, const void *of_law) {
  const struct gaussian_law *law = of_law;
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

int discrete_gaussian_draw(uint64_t variance, int64_t *noise, size_t count) {
  struct csprng random;
  if (count == 0) return 1;
  if (variance < 1 || variance >= DISCRETE_GAUSSIAN_MAX_VARIANCE || !csprng_start(&random)) {
    entropy_wipe(noise, count * sizeof *noise);
    return 0;
  }
  struct gaussian_law law = gaussian_law_of(variance);
  for (size_t i = 0; i < count; i++)
    noise[i] = count < HIDDEN_DRAWS ? hidden_draw(&random, draw_gaussian, &law)
                                    : draw_gaussian(&random, &law);
  csprng_end(&random);
  return 1;
}

/* ---- between two points ---------------------------------------------------------------------- */

/* Given x and z, the difference d = n - x has P(d) proportional to exp(-d^2/(2a) - (z - x -
** d)^2/(2b)). This is a discrete Gaussian of variance ab/(a + b) around the rational centre (z - x)
** a/(a + b). Let s = a + b and m = z - x, and let k be an integer nearest to the centre m a/s. Then
** the centre is k + f, where the fraction f = r/s has |f| <= 1/2. The code draws the difference y
** between the new point and x + k. If f is negative, the code works with |f| and changes the sign
** of y at the end. Below, f >= 0. The algorithm is Algorithm 3 of Canonne, Kamath and Steinke
** (2020), changed for a centre that is not an integer. The algorithm proposes y from a discrete
** Laplace distribution of scale t. Here V = ab/s, and t is slightly larger than V^(1/2). Then it
** accepts y with a probability that is proportional to exp(|y|/t - (y - f)^2/(2V)):
**
**     y >= 0:  exp(-(|y| - f - V/t)^2/(2V))
**     y < 0:   exp(-(|y| + f - V/t)^2/(2V)) exp(-2f/t)
**
** At y = 0 the two formulas agree. The proposal rejects a zero with negative sign. */

/* The constants of a bridge: inward = a, sum = s, scale = t, area = ab < 2^122, square = t^2 s, and
** excess = square - area. `excess` is below 2^94, because t is at most V^(1/2) + 1. */
struct bridge_law {
  uint64_t inward, sum, scale;
  uint128 area, square, excess;
};

static struct bridge_law bridge_law_of(const struct gaussian_bridge *bridge) {
  struct bridge_law law = {.inward = bridge->inward, .sum = bridge->inward + bridge->outward};
  law.area = (uint128)bridge->inward * bridge->outward;
  law.scale = lattice_root(law.area / law.sum) + 1;
  law.square = (uint128)law.scale * law.scale * law.sum;
  law.excess = law.square - law.area;
  return law;
}

/* The number whole + rest/base, rest < base. magnitude_of() makes it of |whole + rest/base|. */
struct number {
  uint64_t whole;
  uint128 rest, base;
};

static struct number magnitude_of(int64_t whole, int128 rest, uint128 base) {
  int128 quotient = rest / (int128)base, remainder = rest % (int128)base;
  if (remainder < 0) {
    quotient--;
    remainder += (int128)base;
  }
  int64_t sum = whole + (int64_t)quotient;
  if (sum >= 0) return (struct number){(uint64_t)sum, (uint128)remainder, base};
  if (remainder == 0) return (struct number){(uint64_t)-sum, 0, base};
  return (struct number){(uint64_t)(-sum - 1), base - (uint128)remainder, base};
}

/* Returns 1 with probability number / (whole + 1), otherwise 0. */
static int happens_of(struct csprng *random, const struct number *number) {
  uint64_t part = below(random, number->whole + 1);
  if (part != number->whole) return 1;
  return below_wide(random, number->base) < number->rest;
}

/* Returns 1 with probability exp(-first second/2), otherwise 0. The exponent is divided into
** (first.whole + 1) (second.whole + 1) equal parts below 1/2: an event of probability exp(-part)
** must happen for each part. The inner loop is that of bernoulli_from() in exact_events.h, for
** numbers of other types. */
static int accepts(struct csprng *random, const struct number *first, const struct number *second) {
  uint128 events = (uint128)(first->whole + 1) * (second->whole + 1);
  for (; events > 0; events--) {
    uint64_t k = 1;
    while (below(random, 2 * k) == 0 && happens_of(random, first) && happens_of(random, second))
      k++;
    if (!(k & 1)) return 0;
  }
  return 1;
}

/* Returns one draw of y for the centre f = r/s, 0 <= r <= s/2. The proposal is y = u + t v with a
** random sign. Let N = | |y| t s -+ r t - ab |, with - for y >= 0 and + for y < 0. The exponent is
** N^2/(2 ab t^2 s), which is half the product of N/ab and N/(t^2 s). Let T = u t s -+ r t with the
** same sign, so |T| < 2^124. Then N = |(v - 1) ab + v excess + T| = |(v - 1) t^2 s + excess + T|.
** No value exceeds 2^126 unless v reaches 2^31, which has a probability below 2^-(10^9). */
static int64_t draw_around(struct csprng *random, const struct bridge_law *law, uint64_t r) {
  const struct chance fraction = chance_of(2 * r, law->sum, law->scale); /* 2f/t */
  for (;;) {
    uint64_t u = laplace_remainder(random, law->scale), v = laplace_quotient(random);
    int away = (int)csprng_take(random, 1);
    if (away && u == 0 && v == 0) continue;
    if (away && !bernoulli(random, &fraction)) continue;
    int128 shift = (int128)r * law->scale;
    int128 rest = (int128)u * (int128)((uint128)law->scale * law->sum) + (away ? shift : -shift);
    int128 excess = (int128)law->excess;
    struct number first = magnitude_of((int64_t)v - 1, (int128)v * excess + rest, law->area);
    struct number second = magnitude_of((int64_t)v - 1, excess + rest, law->square);
    if (!accepts(random, &first, &second)) continue;
    int64_t y = (int64_t)(u + law->scale * v);
    return away ? -y : y;
  }
}

/* A centre m a/s: the integer k nearest to the centre, and the rest m a - k s in (-s/2, s/2]. |m a|
** is below 2^126. */
struct centre {
  const struct bridge_law *law;
  int128 nearest;
  int64_t rest;
};

static struct centre centre_of(const struct bridge_law *law, int64_t inner, int64_t outer) {
  int128 product = ((int128)outer - inner) * law->inward, sum = law->sum;
  int128 nearest = product / sum, rest = product % sum;
  if (rest < 0) {
    nearest--;
    rest += sum;
  }
  if (2 * rest > sum) {
    nearest++;
    rest -= sum;
  }
  return (struct centre){law, nearest, (int64_t)rest};
}

static int64_t draw_between(struct csprng *random, const void *around) {
  const struct centre *centre = around;
  int64_t rest = centre->rest;
  return rest < 0 ? -draw_around(random, centre->law, (uint64_t)-rest)
                  : draw_around(random, centre->law, (uint64_t)rest);
}

int gaussian_bridge_draw(const struct gaussian_bridge *bridge, const int64_t *inner,
                         const int64_t *outer, int64_t *between, size_t count) {
  struct csprng random;
  const uint64_t end = (uint64_t)1 << 62, a = bridge->inward, b = bridge->outward;
  if (count == 0) return 1;
  if (a < 1 || b < 1 || a >= end || b >= end - a || !csprng_start(&random)) {
    entropy_wipe(between, count * sizeof *between);
    return 0;
  }
  struct bridge_law law = bridge_law_of(bridge);
  for (size_t i = 0; i < count; i++) {
    struct centre centre = centre_of(&law, inner[i], outer[i]);
    int64_t y = count < HIDDEN_DRAWS ? hidden_draw(&random, draw_between, &centre)
                                     : draw_between(&random, &centre);
    between[i] = (int64_t)(inner[i] + centre.nearest + y);
  }
  csprng_end(&random);
  return 1;
}
