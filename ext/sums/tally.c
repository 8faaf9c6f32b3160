/* tally.c: see tally.h.
** Tests: tests/release/test_clipping.py, tests/release/test_cut.py */
#include "sums/tally.h"

#include <math.h>

#include "sums/households.h"

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
  tally->households_clipped += others->households_clipped;
  tally->households_whole += others->households_whole;
  for (int i = 0; i < TALLY_RUNGS; i++) tally->rungs[i] += others->rungs[i];
  for (int i = 0; i < TALLY_OWN; i++) tally->shared[i] += others->shared[i];
}

/* Writes what the units tell, without those of households. */
static void write_own(const struct tally *tally, const struct ladder *ladder, int128 *own) {
  for (int i = 0; i < TALLY_RUNGS; i++) own[i] = tally->rungs[i];
  own[TALLY_RUNGS] = (int128)tally->clipped * ladder->steps;
  own[TALLY_RUNGS + 1] = (int128)tally->whole * ladder->steps;
}

int tally_share(struct partitioned_sums *shared, int64_t household, const struct ladder *ladder,
                int clipped, double before, double after) {
  struct tally one = {.whole = 0};
  int128 own[TALLY_OWN];
  int added = 1;
  tally_add(&one, ladder, clipped, before, after);
  write_own(&one, ladder, own);
  for (int i = 0; i < TALLY_OWN && added; i++)
    if (own[i])
      added = partitioned_sums_add(shared, identity_integer(household), (uint32_t)i, &own[i]);
  return added;
}

/* The context of take_household(). */
struct bounding {
  struct tally *tally;
  const struct partitioned_sums *shared;
  int64_t most;
};

static int take_household(void *context, const record_word *const *list, size_t count) {
  const struct bounding *bounding = context;
  int128 values[TALLY_OWN];
  record_values(bounding->shared, list, count, values);
  household_project(values, count, bounding->most, 0);
  for (size_t i = 0; i < count; i++) bounding->tally->shared[record_cell(list[i])] += values[i];
  bounding->tally->households_whole++;
  return 1;
}

int tally_bound(struct tally *tally, struct partitioned_sums *shared, const struct ladder *ladder) {
  struct bounding bounding = {tally, shared, ladder->shared};
  return partitioned_sums_each_unit(shared, take_household, &bounding);
}

void tally_write(const struct tally *tally, const struct ladder *ladder, int coordinates,
                 int128 *totals) {
  int128 own[TALLY_OWN];
  write_own(tally, ladder, own);
  for (int i = 0; i < TALLY_OWN; i++) own[i] += tally->shared[i];
  if (ladder->shared) {
    *totals++ = (int128)tally->households_clipped * ladder->steps;
    *totals++ = (int128)tally->households_whole * ladder->steps;
    coordinates -= TALLY_COUNTS;
  }
  for (int i = 0; i < coordinates; i++) totals[i] = own[TALLY_OWN - coordinates + i];
}
