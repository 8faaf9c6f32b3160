/* sampler.c: measures the nanoseconds that a draw of noise takes. The program runs one round of
** each sampler. bench/sampler.py takes medians of several rounds.
**
** The samplers of diffuse draw exact discrete Gaussians with random bits from the system. GSL's
** sampler draws rounded normal numbers from a generator that anybody can predict. GSL's time shows
** the cost of noise without any privacy guarantee. */
#include <gsl/gsl_randist.h>
#include <stdio.h>
#include <time.h>

#include "noise/noise.h"

#define VARIANCE ((uint64_t)1 << 41) /* the order of magnitude of a release's first variance */
#define DRAWS    1000000

static int64_t draws[DRAWS];

static int draw_sampler(void) {
  return discrete_gaussian_draw(VARIANCE, draws, DRAWS);
}

/* The least variance between two points of a path, which the table is not made for. */
static int draw_small(void) {
  return discrete_gaussian_draw(16, draws, DRAWS);
}

/* Draws one number in each call. Each call takes a key from the system and makes 32 draws. */
static int draw_single(void) {
  for (int i = 0; i < DRAWS / 32; i++) {
    if (!discrete_gaussian_draw(VARIANCE, &draws[i], 1)) return 0;
  }
  return 1;
}

static int draw_ziggurat(void) {
  gsl_rng *generator = gsl_rng_alloc(gsl_rng_mt19937);
  for (int i = 0; i < DRAWS; i++) {
    draws[i] = (int64_t)gsl_ran_gaussian_ziggurat(generator, 0x1.6a09e667f3bcdp20);
  }
  gsl_rng_free(generator);
  return 1;
}

/* Returns the processor time, because other programs may be running. */
static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(void) {
  const struct {
    const char *name;
    int (*draw)(void);
  } sides[] = {{"vector", draw_sampler},
               {"vector of variance 16", draw_small},
               {"single, each of its 32", draw_single},
               {"GSL ziggurat, inexact", draw_ziggurat}};
  if (!draw_sampler()) return 1; /* the first call makes the table and allocates the memory */
  for (int i = 0; i < 4; i++) {
    double start = seconds();
    if (!sides[i].draw()) return 1;
    printf("%s\t%.3f\n", sides[i].name, (seconds() - start) / DRAWS * 1e9);
  }
  return 0;
}
