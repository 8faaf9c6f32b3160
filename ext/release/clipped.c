/* clipped.c: see clipped.h.
** Tests: tests/release/test_clipping.py, tests/release/test_cut.py */
#include "release/clipped.h"

#include <math.h>

#include "sums/layout.h"

#define CONFIDENCE       0.95
#define CONFIDENCE_OF_J  0.975                              /* clipped.h */
#define CONFIDENCE_OF_NO (1 - 2 * 1e-3 / (TALLY_RUNGS - 1)) /* of noise on both sides */

static double in_unit(double x) {
  return fmin(fmax(x, 0), 1);
}

/* The share of two weighted sums of noisy counts, and the products of their weights. */
struct ratio {
  double part, whole; /* the sums */
  double pp, pw, ww;  /* of the weights of `part` and of `whole` */
};

/* With the half-width c of the noise of one count, the interval is where (part - s whole)^2 <= c^2
** (pp - 2 s pw + s^2 ww). This is a quadratic inequality in s. If its leading coefficient whole^2 -
** c^2 ww is not above 0, the counts say nothing about the share. */
static struct clipped_share share_of(const struct ratio *ratio, double c) {
  double lead = ratio->whole * ratio->whole - c * c * ratio->ww;
  double middle = ratio->part * ratio->whole - c * c * ratio->pw;
  struct clipped_share share = {(double)NAN, 0, 1};
  if (!(ratio->whole > 0) || !(lead > 0)) return share;
  share.share = in_unit(ratio->part / ratio->whole);
  double last = ratio->part * ratio->part - c * c * ratio->pp;
  double root = sqrt(fmax(middle * middle - lead * last, 0));
  share.low = fmin(in_unit((middle - root) / lead), share.share);
  share.high = fmax(in_unit((middle + root) / lead), share.share);
  return share;
}

struct clipped_share clipped_units(const struct noise_law *noise,
                                   const struct ledger_clipping *clipping) {
  struct ratio ratio = {clipping->clipped, clipping->clipped + clipping->unclipped, 1, 1, 2};
  return share_of(&ratio, mixed_half_width(noise, clipping->stddev, CONFIDENCE));
}

struct clipped_share clipped_wider(const struct noise_law *noise,
                                   const struct ledger_clipping *clipping) {
  struct ledger_clipping wider = {.clipped = clipping->wider_clipped,
                                  .unclipped = clipping->wider_unclipped,
                                  .stddev = clipping->stddev};
  return clipped_units(noise, &wider);
}

/* Returns the share by the rungs 0 ... last. */
static struct clipped_share share_up_to(const double *rungs, int last, double c) {
  struct ratio ratio = {0, 0, 0, 0, 0};
  for (int i = 0; i <= last; i++) {
    double size = ldexp(1, i), cut = size - 1;
    ratio.part += rungs[i] * cut;
    ratio.whole += rungs[i] * size;
    ratio.pp += cut * cut;
    ratio.pw += cut * size;
    ratio.ww += size * size;
  }
  return share_of(&ratio, c);
}

void clipped_amount(const struct noise_law *noise, const double *rungs,
                    struct ledger_clipping *clipping) {
  double least = mixed_half_width(noise, clipping->stddev, CONFIDENCE_OF_NO);
  double c = mixed_half_width(noise, clipping->stddev, CONFIDENCE_OF_J);
  int last = TALLY_RUNGS - 1;
  while (last > 0 && rungs[last] <= least) last--;
  struct clipped_share seen = share_up_to(rungs, last, c), all = seen;
  if (last < TALLY_RUNGS - 1) {
    clipping->within = ldexp(2, last);
    all = share_up_to(rungs, last + 1, c);
  }
  clipping->cut = isnan(seen.share) ? seen.share : fmax(all.share, seen.low);
  clipping->cut_low = seen.low;
  clipping->cut_high = isnan(clipping->within) || isnan(seen.share) ? 1 : fmax(all.high, seen.low);
}
