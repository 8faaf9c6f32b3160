/* discrete_laplace.c: see discrete_laplace.h. Tests: tests/noise/test_discrete_laplace.c */
#include "noise/discrete_laplace.h"

#include "noise/entropy.h"
#include "noise/exact_geometric.h"
#include "noise/hidden_draw.h"

/* A step from scale `from` to scale `to`. For equal scales the noise is 0. */
struct step {
  uint64_t from, to;
};

/*
** Returns 1 with probability (p/r) ((1-r)/(1-p))^2, otherwise 0. Here p = exp(-1/from) and r =
** exp(-1/to) (discrete_laplace.h). Let q = p/r = exp(-a/b), where a = to - from and b = from * to.
** The function returns 1 if three independent events happen. The first event has probability q.
** Each of the other two events happens if a geometric variable of ratio r does not exceed a
** geometric variable of ratio q. The probability of such an event is the sum of (1-r) r^k q^k over
** k >= 0, which is (1-r)/(1-p). The function draws all three events even if one has failed, so that
** the time does not show which event failed.
*/
static int stays(struct csprng *random, const struct step *step) {
  uint64_t a = step->to - step->from, b = step->from * step->to;
  int all = decays(random, a, b);
  for (int i = 0; i < 2; i++) {
    uint64_t k = geometric(random, 1, step->to); /* P(k) is proportional to r^k */
    all &= k <= geometric(random, a, b);         /* 2^62 has a probability below 2^-(10^9) for k */
  }
  return all;
}

static int64_t step_of(struct csprng *random, const void *law) {
  const struct step *step = law;
  struct proposal y = laplace(random, step->to);
  int64_t noise = y.negative ? -(int64_t)y.magnitude : (int64_t)y.magnitude;
  return step->from && stays(random, step) ? 0 : noise;
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
