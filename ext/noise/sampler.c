/*
** sampler.c: vectors of exact discrete Gaussian noise.
**
** 1. Exact: both forms, strips.h and plain.h, have the law to the last bit.
** 2. All bits of a call come from one key of the system (bits.h). If there is none, the caller gets
**    zeros and -1 before anything is drawn.
** 3. Nothing random outlives the call but the noise.
** 4. The time of a draw depends on its value. A coordinate of a short vector is one of BATCH draws,
**    chosen at random, so that the time is mostly that of the others.
*/
#include "noise/sampler.h"

#include "noise/bits.h"
#include "noise/entropy.h"
#include "noise/events.h"
#include "noise/plain.h"
#include "noise/strips.h"

#define BATCH 32 /* draws per coordinate of a vector shorter than this */

struct law {
  int by_strips; /* which of the two holds */
  struct plain plain;
  struct strips strips;
};

static struct law law_of(uint64_t variance) {
  struct law law = {.by_strips = variance >= STRIPS_LEAST_VARIANCE};
  if (law.by_strips)
    law.strips = strips_of(variance);
  else
    law.plain = plain_of(variance);
  return law;
}

static inline int64_t draw(const struct law *law, struct bits *bits) {
  return law->by_strips ? strips_draw(&law->strips, bits) : plain_draw(&law->plain, bits);
}

/*
** One of BATCH draws. The index is drawn first and independently of them, so the choice has the law
** of a single draw; all of them are finished before it is used.
*/
static int64_t one_of_batch(const struct law *law, struct bits *bits) {
  int64_t batch[BATCH];
  uint64_t chosen = below(bits, BATCH);
  for (int i = 0; i < BATCH; i++) batch[i] = draw(law, bits);
  int64_t value = batch[chosen];
  entropy_wipe(batch, sizeof batch);
  return value;
}

int sampler_gaussian(uint64_t variance, int64_t *noise, size_t count) {
  struct bits bits;
  if (count == 0) return 0;
  if (variance < 1 || variance >= SAMPLER_MAX_VARIANCE || bits_start(&bits)) {
    entropy_wipe(noise, count * sizeof *noise);
    return -1;
  }
  struct law law = law_of(variance);
  for (size_t i = 0; i < count; i++)
    noise[i] = count < BATCH ? one_of_batch(&law, &bits) : draw(&law, &bits);
  bits_end(&bits);
  return 0;
}
