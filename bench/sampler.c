/*
** sampler.c: nanoseconds a draw of noise, one round of each side: bench/sampler.py takes medians.
**
** Ours are exact discrete Gaussians from the system's generator. GSL's is a rounded normal law from
** a generator that anybody can predict: what noise costs where nothing is promised of it.
*/
#include <gsl/gsl_randist.h>
#include <stdio.h>
#include <time.h>

#include "noise/csprng.h"
#include "noise/cks_sampler.h"
#include "noise/discrete_gaussian.h"

#define VARIANCE ((uint64_t)1 << 41) /* where releases start */
#define DRAWS    1000000

static int64_t draws[DRAWS];

static int draw_sampler(void) {
  return discrete_gaussian_draw(VARIANCE, draws, DRAWS);
}

static int draw_plain(void) {
  struct cks_sampler law = cks_sampler_of(VARIANCE);
  struct csprng bits;
  if (!csprng_start(&bits)) return 0;
  for (int i = 0; i < DRAWS; i++) draws[i] = cks_sampler_draw(&law, &bits);
  csprng_end(&bits);
  return 1;
}

/* One number from each call: a key of the system and 32 draws. */
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

/* Processor time: other programs may be running. */
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
               {"plain form", draw_plain},
               {"single, each of its 32", draw_single},
               {"GSL ziggurat, inexact", draw_ziggurat}};
  if (!draw_sampler()) return 1; /* the table is made, the memory is there */
  for (int i = 0; i < 4; i++) {
    double start = seconds();
    if (!sides[i].draw()) return 1;
    printf("%s\t%.3f\n", sides[i].name, (seconds() - start) / DRAWS * 1e9);
  }
  return 0;
}
