/* laplace.c: see laplace.h. */
#include "noise/laplace.h"

#include "noise/entropy.h"
#include "noise/geometric.h"

#define BATCH 32 /* draws for each that is used: their time tells little of its value */

/* A step from one scale to another; none where they are the same. */
struct step {
  uint64_t from, to;
};

static int64_t laplace_of(struct bits *bits, uint64_t scale) {
  struct proposal y = laplace(bits, scale);
  return y.negative ? -(int64_t)y.magnitude : (int64_t)y.magnitude;
}

/* P(k) proportional to exp(-k/t), k >= 0. */
static uint64_t geometric(struct bits *bits, uint64_t t) {
  uint64_t remainder = laplace_remainder(bits, t);
  return remainder + t * laplace_quotient(bits);
}

/*
** P(k) proportional to exp(-k a/b), k >= 0: the quotient by a of a geometric variable of scale b.
** Saturated where it would have more than 64 bits, which has a probability below 2^-100.
*/
static uint64_t geometric_of(struct bits *bits, uint64_t a, uint64_t b) {
  uint128 remainder = laplace_remainder(bits, b);
  uint128 k = (remainder + (uint128)b * laplace_quotient(bits)) / a;
  return k > UINT64_MAX ? UINT64_MAX : (uint64_t)k;
}

/*
** An event of probability (p/r) ((1-r)/(1-p))^2. With q = p/r = exp(-a/b), a = to - from, b = from
** to: one event of probability q and two that a geometric variable of ratio r does not exceed one
** of ratio q, which happens with probability sum of (1-r) r^k q^k = (1-r)/(1-p). None is left out
** when another fails, so that the time does not tell.
*/
static int stays(struct bits *bits, const struct step *step) {
  uint64_t a = step->to - step->from, b = step->from * step->to;
  int all = decays(bits, a, b);
  for (int i = 0; i < 2; i++) {
    uint64_t k = geometric(bits, step->to);
    all &= k <= geometric_of(bits, a, b);
  }
  return all;
}

static int64_t step_of(struct bits *bits, const struct step *step) {
  int64_t noise = laplace_of(bits, step->to);
  return step->from && stays(bits, step) ? 0 : noise;
}

/* One of BATCH draws, picked independently of them: all are finished before it is used. */
static int64_t one_of_batch(struct bits *bits, const struct step *step) {
  int64_t batch[BATCH];
  uint64_t chosen = below(bits, BATCH);
  for (int i = 0; i < BATCH; i++) batch[i] = step_of(bits, step);
  int64_t value = batch[chosen];
  entropy_wipe(batch, sizeof batch);
  return value;
}

/* From scale 0, which is no noise: plain draws of L_Z(to). */
static int fill(struct step step, int64_t *noise, size_t count) {
  struct bits bits;
  int in_range = step.to >= 1 && step.to < SAMPLER_MAX_SCALE && step.from <= step.to;
  if (!in_range || bits_start(&bits)) {
    entropy_wipe(noise, count * sizeof *noise);
    return -1;
  }
  for (size_t i = 0; i < count; i++)
    noise[i] = step.from == step.to ? 0 : one_of_batch(&bits, &step);
  bits_end(&bits);
  return 0;
}

int sampler_laplace(uint64_t scale, int64_t *noise, size_t count) {
  return fill((struct step){0, scale}, noise, count);
}

int sampler_laplace_step(uint64_t from, uint64_t to, int64_t *noise, size_t count) {
  if (from < 1) to = 0; /* no scale */
  return fill((struct step){from, to}, noise, count);
}
