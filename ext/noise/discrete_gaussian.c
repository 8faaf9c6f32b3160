/*
** discrete_gaussian.c: draws vectors of exact discrete Gaussian noise (see discrete_gaussian.h).
**
** 1. Both samplers, gaussian_table.h and cks_sampler.h, have exactly the discrete Gaussian
**    distribution.
** 2. All bits of a call come from one key (csprng.h). If the system provides no key, the call draws
**    nothing: it fills the array with zeros and returns 0.
** 3. When a call returns, the noise is the only random value that is left in memory.
** 4. The time of a draw depends on its value. For each coordinate of a short vector, the code makes
**    several draws and uses one of them (hidden_draw.h).
** Tests: tests/noise/test_discrete_gaussian.c
*/
#include "noise/discrete_gaussian.h"

#include "noise/csprng.h"
#include "noise/entropy.h"
#include "noise/cks_sampler.h"
#include "noise/gaussian_table.h"
#include "noise/hidden_draw.h"

struct sampler {
  int has_table; /* 1: `table` is set; 0: `cks` is set */
  struct cks_sampler cks;
  struct gaussian_table table;
};

static inline int64_t draw(struct csprng *random, const void *law) {
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
    noise[i] =
        count < HIDDEN_DRAWS ? hidden_draw(&random, draw, &sampler) : draw(&random, &sampler);
  csprng_end(&random);
  return 1;
}
