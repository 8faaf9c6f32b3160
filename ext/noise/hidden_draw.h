/*
** hidden_draw.h: hides the time of one draw among the times of other draws. The time of a draw
** depends on its value. hidden_draw() makes HIDDEN_DRAWS draws and uses one of them. Most of the
** measured time is then that of the unused draws.
*/
#ifndef DIFFUSE_NOISE_HIDDEN_DRAW_H
#define DIFFUSE_NOISE_HIDDEN_DRAW_H

#include "noise/entropy.h"
#include "noise/exact_bernoulli.h"

#define HIDDEN_DRAWS 32

/*
** Returns one of HIDDEN_DRAWS draws. The function chooses the index before it makes the draws. The
** index therefore does not depend on the draws, and the result has the distribution of a single
** draw. All draws are complete before one of them is used.
*/
static inline int64_t hidden_draw(struct csprng *random,
                                  int64_t (*draw)(struct csprng *random, const void *law),
                                  const void *law) {
  int64_t draws[HIDDEN_DRAWS];
  uint64_t chosen = below(random, HIDDEN_DRAWS);
  for (int i = 0; i < HIDDEN_DRAWS; i++) draws[i] = draw(random, law);
  int64_t value = draws[chosen];
  entropy_wipe(draws, sizeof draws);
  return value;
}

#endif
