/*
** tally.c: see tally.h.
** Tests: tests/release/test_clipping.py, tests/release/test_cut.py
*/
#include "sums/tally.h"

#include <math.h>

/* Adds `part` steps at the place r >= 1 of the ladder. */
static void climb(struct tally *tally, double part, double r) {
  int rung = 0;
  while (rung < TALLY_RUNGS - 1 && r >= ldexp(2, rung)) rung++;
  if (rung == TALLY_RUNGS - 1) {
    tally->rungs[rung] += (int128)part;
    return;
  }
  double upper = floor(part * (ldexp(r, -rung) - 1)); /* at most `part`, because r < 2^(rung + 1) */
  tally->rungs[rung] += (int128)part - (int128)upper;
  tally->rungs[rung + 1] += (int128)upper;
}

void tally_add(struct tally *tally, const struct ladder *ladder, int clipped, double before,
               double after) {
  *(clipped ? &tally->clipped : &tally->whole) += 1;
  if (!(ladder->most > 0) || !(after > 0)) return;
  double part = floor((double)ladder->steps * fmin(after / ladder->most, 1));
  climb(tally, part, fmax(before / after, 1));
}

void tally_join(struct tally *tally, const struct tally *others) {
  tally->clipped += others->clipped;
  tally->whole += others->whole;
  for (int i = 0; i < TALLY_RUNGS; i++) tally->rungs[i] += others->rungs[i];
}
