/* discrete_laplace.c: draws discrete Laplace noise, noise that widens it, and points between two
** points of a path.
** Tests: tests/noise/test_discrete_laplace.c, tests/noise/test_bridges.c */
#include "noise/exact_events.h"
#include "noise/noise.h"

/* A step from scale `from` to scale `to`. For equal scales the noise is 0. */
struct step {
  uint64_t from, to;
};

/* Returns 1 with probability (p/r) ((1-r)/(1-p))^2, otherwise 0, where p = exp(-1/from) and r =
** exp(-1/to) (noise.h). With q = p/r = exp(-a/b), a = to - from and b = from * to, this is the
** probability that three independent events happen: one of probability q, and twice that a
** geometric variable of ratio r does not exceed one of ratio q, which has probability (1-r)/(1-p),
** the sum of (1-r) r^k q^k over k >= 0. All three are drawn even if one has failed, so that the
** time does not show which one. */
static int stays(struct csprng *random, const struct step *step) {
  uint64_t a = step->to - step->from, b = step->from * step->to;
  int all = decays(random, a, b);
  for (int i = 0; i < 2; i++) {
    uint64_t k = geometric(random, 1, step->to); /* P(k) is proportional to r^k */
    all &= k <= geometric(random, a, b);         /* 2^62 has a probability below 2^-(10^9) for k */
  }
  return all;
}

/* L_Z(to) is u + to v with a random sign, where u is laplace_remainder() and v is
** laplace_quotient(). A zero with negative sign is rejected, because zero would otherwise be twice
** as likely as it should be. The magnitude is below 2^62 unless v reaches 2^31, which has a
** probability below 2^-(10^9). */
static int64_t step_of(struct csprng *random, const void *law) {
  const struct step *step = law;
  uint64_t magnitude;
  int negative;
  do {
    magnitude = laplace_remainder(random, step->to);
    magnitude += step->to * laplace_quotient(random);
    negative = (int)csprng_take(random, 1);
  } while (negative && magnitude == 0);
  if (step->from && stays(random, step)) return 0;
  return negative ? -(int64_t)magnitude : (int64_t)magnitude;
}

/* Fills the noise with steps. If step.from is 0, each step is a draw of L_Z(to). */
static int fill(struct step step, int64_t *noise, size_t count) {
  struct csprng random;
  int in_range = step.to >= 1 && step.to < DISCRETE_LAPLACE_MAX_SCALE && step.from <= step.to;
  if (!in_range || !csprng_start(&random)) {
    entropy_wipe(noise, count * sizeof *noise);
    return 0;
  }
  for (size_t i = 0; i < count; i++)
    noise[i] = step.from == step.to ? 0 : hidden_draw(&random, step_of, &step);
  csprng_end(&random);
  return 1;
}

int discrete_laplace_draw(uint64_t scale, int64_t *noise, size_t count) {
  return fill((struct step){0, scale}, noise, count);
}

int discrete_laplace_step(uint64_t from, uint64_t to, int64_t *noise, size_t count) {
  if (from < 1) to = 0; /* fill() rejects this value, because it is out of range */
  return fill((struct step){from, to}, noise, count);
}

/* ---- between two points ---------------------------------------------------------------------- */

/* Let p1 < p2 < p3 be the ratios exp(-1/t) for the three scales t, and let m = z - x and d = n - x.
** A step from ratio p to ratio r is 0 with probability A. Otherwise the step is a discrete Laplace
** variable of ratio r. Let B r^|k| be the probability that this second case occurs and the step is
** k. Then
**
**     A/B = (p/r) (1 - r^2) / ((1 - p/r) (1 - p r)).
**
** Let A1, B1 belong to the first step and A2, B2 to the second. Up to the factor B1 B2 p3^|m|, the
** probability of d is the sum of four parts. With rho = p2/p3:
**
**     NEITHER  A1/B1 A2/B2  at d = 0, if m = 0           no step changes the value
**     LATER    A1/B1        at d = 0                     the second step alone changes it
**     EARLIER  A2/B2 rho^|m|  at d = m                   the first step alone changes it
**     BOTH     p2^|d| p3^(|m - d| - |m|)  at every d
**
** The part BOTH is rho^|d| times p3^e, where e = |m - d| - |m| + |d| >= 0. The code proposes a
** geometric variable of ratio rho with a random sign, and rejects a zero with negative sign. It
** keeps any other proposal with probability p3^e. The total of rho^|d| over all d is (1 + rho)/(1 -
** rho). A zero with negative sign has the probability (1 - rho)/2. The remaining probability (1 +
** rho)/2 is therefore one factor of the part's total.
**
** All four totals, times (1 - p1/p2) (1 - p1 p2) (1 - p2/p3) (1 - p2 p3), are products of two sorts
** of factors: 1 - exp(-x) with a rational x <= 2, and powers of exp(-x). A factor 1 - exp(-x) is x
** times (1 - exp(-x))/x, and (1 - exp(-x))/x is a probability. The code first chooses a part. The
** weight of a part is the product of its numbers x, scaled to an integer. The code then keeps the
** part with a probability that is the product of all other factors. */

/* The rational number x = n/d <= 2, with d < 2^62. */
struct ratio {
  uint64_t n, d;
};

/* The constants of a bridge. less[0] = 1/t1 - 1/t2 and more[0] = 1/t1 + 1/t2 belong to the first
** step, less[1] = 1/t2 - 1/t3 and more[1] = 1/t2 + 1/t3 to the second step. twice[0] = 2/t2 and
** twice[1] = 2/t3. The weights of LATER, EARLIER and BOTH are integers, and their sum is below
** 2^126. The weight of NEITHER is 2 t3 (t1 t2)^2. */
struct law {
  struct ratio less[2], more[2], twice[2];
  uint128 later, earlier, all;
  uint64_t double_outer; /* 2 t3 */
  uint128 square;        /* (t1 t2)^2 */
};

static struct law law_of(const struct laplace_bridge *bridge) {
  uint64_t t1 = bridge->inner, t2 = bridge->middle, t3 = bridge->outer;
  uint128 first = (uint128)(t2 * t2 - t1 * t1), second = (uint128)(t3 * t3 - t2 * t2);
  struct law law = {.less = {{t2 - t1, t1 * t2}, {t3 - t2, t2 * t3}},
                    .more = {{t2 + t1, t1 * t2}, {t3 + t2, t2 * t3}},
                    .twice = {{2, t2}, {2, t3}},
                    .later = (uint128)t1 * t1 * second,
                    .earlier = first * (t2 * t3),
                    .double_outer = 2 * t3,
                    .square = (uint128)(t1 * t1) * (t2 * t2)};
  law.all = law.later + law.earlier + first * ((t2 + t3) * t3);
  return law;
}

/* ---- the factors ----------------------------------------------------------------------------- */

/* Returns 1 with probability (1 - exp(-x))/x for x = n/d, otherwise 0. Attempt k succeeds with
** probability x/(k + 1), so the first k attempts all succeed with probability x^k/(k + 1)!. The
** number of the failed attempt is odd with probability 1 - x/2! + x^2/3! - ..., which is (1 -
** exp(-x))/x. */
static int survives(struct csprng *random, struct ratio x) {
  uint64_t k = 1;
  while (below(random, k + 1) < 2 && below(random, 2 * x.d) < x.n) k++;
  return k & 1;
}

/* Returns 1 with probability exp(-count x), otherwise 0. */
static int fades(struct csprng *random, struct ratio x, uint64_t count) {
  return decays(random, (uint128)count * x.n, x.d);
}

/* ---- the parts ------------------------------------------------------------------------------- */

enum part { NEITHER, LATER, EARLIER, BOTH };

static enum part one_of_three(struct csprng *random, const struct law *law) {
  uint128 place = below_wide(random, law->all);
  if (place < law->later) return LATER;
  return place < law->later + law->earlier ? EARLIER : BOTH;
}

/* Let W = 2 t3 (t1 t2)^2 be the weight of NEITHER, which may have 156 bits. Let G be the sum of the
** weights of the other three parts. In each round, the loop proposes NEITHER with probability 1/2,
** and otherwise one of the other parts. If G < W, the loop keeps a proposal of the other parts with
** probability G/W. Otherwise it keeps a proposal of NEITHER with probability W/G. */
static enum part one_of_four(struct csprng *random, const struct law *law) {
  uint128 whole = law->all / law->square, rest = law->all % law->square;
  if (whole >= law->double_outer) { /* W <= G < 2^126 */
    uint128 neither = law->square * law->double_outer;
    for (;;) {
      if (csprng_take(random, 1)) return one_of_three(random, law);
      if (below_wide(random, law->all) < neither) return NEITHER;
    }
  }
  for (;;) {
    if (csprng_take(random, 1)) return NEITHER;
    uint64_t place = below(random, law->double_outer);
    if (place < whole || (place == whole && below_wide(random, law->square) < rest))
      return one_of_three(random, law);
  }
}

/* Decides at random whether the part is kept. `distance` is |m|. For the part BOTH, step_both()
** must keep the proposal, too. */
static int is_kept(struct csprng *random, const struct law *law, enum part part,
                   uint64_t distance) {
  switch (part) {
  case NEITHER:
    return fades(random, law->less[0], 1) && survives(random, law->twice[0]) &&
           fades(random, law->less[1], 1) && survives(random, law->twice[1]);
  case LATER:
    return fades(random, law->less[0], 1) && survives(random, law->twice[0]) &&
           survives(random, law->less[1]) && survives(random, law->more[1]);
  case EARLIER:
    return fades(random, law->less[1], distance + 1) && survives(random, law->twice[1]) &&
           survives(random, law->less[0]) && survives(random, law->more[0]);
  default:
    return survives(random, law->less[0]) && survives(random, law->more[0]) &&
           survives(random, law->more[1]);
  }
}

/* Proposes a d for the part BOTH, where a positive d goes from x in the direction of z. Returns
** whether the code keeps this d. The exponent e is twice the detour: |d| if d goes away from m, |d|
** - |m| if d goes beyond m, and otherwise 0. If the ratio is tiny, geometric() often returns 2^62,
** but if |m| < 2^61, such a d is kept with probability below 2^-(10^9). */
static int step_both(struct csprng *random, const struct law *law, uint64_t distance, int64_t *d) {
  uint64_t magnitude = geometric(random, law->less[1].n, law->less[1].d);
  int back = (int)csprng_take(random, 1);
  if (back && magnitude == 0) return 0;
  uint64_t detour = back ? magnitude : magnitude > distance ? magnitude - distance : 0;
  *d = back ? -(int64_t)magnitude : (int64_t)magnitude;
  return fades(random, law->twice[1], detour); /* p3^(2 detour) */
}

/* The values that determine the distribution of one coordinate's draw. m = distance >= 0. */
struct gap {
  const struct law *law;
  uint64_t distance;
};

static int64_t draw_between(struct csprng *random, const void *of_gap) {
  const struct gap *gap = of_gap;
  const struct law *law = gap->law;
  uint64_t distance = gap->distance;
  for (;;) {
    enum part part = distance ? one_of_three(random, law) : one_of_four(random, law);
    int64_t d = part == EARLIER ? (int64_t)distance : 0;
    if (is_kept(random, law, part, distance) &&
        (part != BOTH || step_both(random, law, distance, &d)))
      return d;
  }
}

int laplace_bridge_draw(const struct laplace_bridge *bridge, const int64_t *inner,
                        const int64_t *outer, int64_t *between, size_t count) {
  struct csprng random;
  int in_range = 1 <= bridge->inner && bridge->inner < bridge->middle &&
                 bridge->middle < bridge->outer && bridge->outer < DISCRETE_LAPLACE_MAX_SCALE;
  if (count == 0) return 1;
  if (!in_range || !csprng_start(&random)) {
    entropy_wipe(between, count * sizeof *between);
    return 0;
  }
  struct law law = law_of(bridge);
  for (size_t i = 0; i < count; i++) {
    int128 m = (int128)outer[i] - inner[i];
    struct gap gap = {&law, (uint64_t)lattice_magnitude(m)};
    int64_t d = count < HIDDEN_DRAWS ? hidden_draw(&random, draw_between, &gap)
                                     : draw_between(&random, &gap);
    between[i] = m < 0 ? inner[i] - d : inner[i] + d;
  }
  csprng_end(&random);
  return 1;
}
