/*
** discrete_gaussian.c: draws vectors of exact discrete Gaussian noise (see discrete_gaussian.h).
**
** 1. Both samplers, gaussian_table.h and cks_sampler.h, have exactly the discrete Gaussian
**    distribution.
** 2. All bits of a call come from one key (csprng.h). If the system provides no key, the call draws
**    nothing: it fills the array with zeros and returns 0.
** 3. When a call returns, the noise is the only random value that is left in memory.
** 4. The time of a draw depends on its value. For each coordinate of a short vector, the code makes
**    BATCH draws and uses one of them, chosen at random. Most of the measured time is then that of
**    the unused draws.
*/
#include "noise/discrete_gaussian.h"

#include "noise/csprng.h"
#include "noise/entropy.h"
#include "noise/exact_bernoulli.h"
#include "noise/cks_sampler.h"
#include "noise/gaussian_table.h"

#define BATCH 32 /* a vector shorter than this number gets this many draws for each coordinate */

struct sampler {
  int has_table; /* 1: `table` is set; 0: `cks` is set */
  struct cks_sampler cks;
  struct gaussian_table table;
};

static struct sampler sampler_of(uint64_t variance) {
  struct sampler sampler = {.has_table = variance >= GAUSSIAN_TABLE_LEAST_VARIANCE};
  if (sampler.has_table)
    sampler.table = gaussian_table_of(variance);
  else
    sampler.cks = cks_sampler_of(variance);
  return sampler;
}

static inline int64_t draw(const struct sampler *sampler, struct csprng *random) {
  return sampler->has_table ? gaussian_table_draw(&sampler->table, random)
                            : cks_sampler_draw(&sampler->cks, random);
}

/*
** Returns one of BATCH draws. The function chooses the index before it makes the draws. The index
** therefore does not depend on the draws, and the result has the distribution of a single draw. All
** draws are complete before one of them is used.
*/
static int64_t one_of_batch(const struct sampler *sampler, struct csprng *random) {
  int64_t batch[BATCH];
  uint64_t chosen = below(random, BATCH);
  for (int i = 0; i < BATCH; i++) batch[i] = draw(sampler, random);
  int64_t value = batch[chosen];
  entropy_wipe(batch, sizeof batch);
  return value;
}

int discrete_gaussian_draw(uint64_t variance, int64_t *noise, size_t count) {
  struct csprng random;
  if (count == 0) return 1;
  if (variance < 1 || variance >= DISCRETE_GAUSSIAN_MAX_VARIANCE || !csprng_start(&random)) {
    entropy_wipe(noise, count * sizeof *noise);
    return 0;
  }
  struct sampler sampler = sampler_of(variance);
  for (size_t i = 0; i < count; i++)
    noise[i] = count < BATCH ? one_of_batch(&sampler, &random) : draw(&sampler, &random);
  csprng_end(&random);
  return 1;
}
