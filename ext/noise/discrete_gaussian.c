/* discrete_gaussian.c: draws vectors of discrete Gaussian noise, and points between two points of a
** path.
**
** 1. The samplers of gaussian_samplers.h have exactly the discrete Gaussian distribution.
** 2. All bits of a call come from one key. If the system provides no key, the call draws nothing.
** 3. When a call returns, the noise is the only random value that is left in memory.
** 4. The time of a draw depends on its value. For each coordinate of a short vector, the code makes
**    several draws and uses one of them (hidden_draw()).
** Tests: tests/noise/test_discrete_gaussian.c, tests/noise/test_bridges.c */
#include "noise/noise.h"

#include "noise/csprng.h"
#include "noise/entropy.h"
#include "noise/exact_events.h"
#include "noise/gaussian_samplers.h"

struct sampler {
  int has_table; /* 1: `table` is set; 0: `cks` is set */
  struct cks_sampler cks;
  struct gaussian_table table;
};

static inline int64_t draw_noise(struct csprng *random, const void *law) {
  const struct sampler *sampler = law;
  return sampler->has_table ? gaussian_table_draw(&sampler->table, random)
                            : cks_sampler_draw(&sampler->cks, random);
}

int discrete_gaussian_draw(uint64_t variance, int64_t *noise, size_t count) {
  struct csprng random;
  if (count == 0) return 1;
  if (variance < 1 || variance >= DISCRETE_GAUSSIAN_MAX_VARIANCE || !csprng_start(&random)) {
    entropy_wipe(noise, count * sizeof *noise);
    return 0;
  }
  struct sampler sampler = {.has_table = variance >= GAUSSIAN_TABLE_LEAST_VARIANCE};
  if (sampler.has_table)
    sampler.table = gaussian_table_of(variance);
  else
    sampler.cks = cks_sampler_of(variance);
  for (size_t i = 0; i < count; i++)
    noise[i] = count < HIDDEN_DRAWS ? hidden_draw(&random, draw_noise, &sampler)
                                    : draw_noise(&random, &sampler);
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
struct law {
  uint64_t inward, sum, scale;
  uint128 area, square, excess;
};

static struct law law_of(const struct gaussian_bridge *bridge) {
  struct law law = {.inward = bridge->inward, .sum = bridge->inward + bridge->outward};
  law.area = (uint128)bridge->inward * bridge->outward;
  law.scale = isqrt((uint64_t)(law.area / law.sum)) + 1;
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
static int64_t draw_around(struct csprng *random, const struct law *law, uint64_t r) {
  const struct chance fraction = {2 * r, 0, 1, law->sum}; /* 2f */
  for (;;) {
    uint64_t u = laplace_remainder(random, law->scale), v = laplace_quotient(random);
    int away = (int)csprng_take(random, 1);
    if (away && u == 0 && v == 0) continue;
    if (away && !bernoulli(random, &fraction, 1, law->scale)) continue; /* exp(-2f/t) */
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
  const struct law *law;
  int128 nearest;
  int64_t rest;
};

static struct centre centre_of(const struct law *law, int64_t inner, int64_t outer) {
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
  struct law law = law_of(bridge);
  for (size_t i = 0; i < count; i++) {
    struct centre centre = centre_of(&law, inner[i], outer[i]);
    int64_t y = count < HIDDEN_DRAWS ? hidden_draw(&random, draw_between, &centre)
                                     : draw_between(&random, &centre);
    between[i] = (int64_t)(inner[i] + centre.nearest + y);
  }
  csprng_end(&random);
  return 1;
}
