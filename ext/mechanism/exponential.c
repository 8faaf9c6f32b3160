/* exponential.c: see exponential.h.
** Tests: tests/mechanism/test_leaf_draw.c */
#include "mechanism/exponential.h"

#include <math.h>

#include "base/number.h"

/* A unit counts at most 2^32 steps (radius_bits of family_leaves), so a loss is at most 2^63 of
** these steps for 2^31 units. Losses are computed in steps times 2^LEAF_DRAW_SHARE. A score step is
** 2^SCORE_SHIFT of those. */
#define SCORE_SHIFT 46

/* Larger losses count as this one, which makes no change of a loss larger. */
#define MOST_SCORE ((int128)1 << 50)

const struct mechanism leaf_draw_mechanism = {.name = "exponential",
                                              .theorem = EXPONENTIAL_THEOREM,
                                              .statistics = STATISTIC_LEAF,
                                              .most = TILT_MOST_RATE};

int leaf_draw_candidates(const struct leaf_draw *draw) {
  const struct contribution *question = draw->question;
  if (!(question->grid > 0)) return draw->shape->bins;
  double values = layout_grid_values(question->low, question->high, question->grid);
  return (int)ceil(values / layout_grid_share(question));
}

/* Returns q, rounded to a multiple of 2^-LEAF_DRAW_SHARE. */
static int64_t share_of(const struct leaf_draw *draw) {
  return llrint(ldexp(draw->q, LEAF_DRAW_SHARE));
}

uint64_t leaf_draw_range(const struct leaf_draw *draw) {
  uint64_t one = (uint64_t)1 << LEAF_DRAW_SHARE, share = (uint64_t)share_of(draw);
  uint64_t most = draw->replace ? one : share > one - share ? share : one - share;
  uint128 range = 2 * (uint128)most * (uint64_t)draw->shape->blocks[0].lead_reach;
  return (uint64_t)((range - 1) >> SCORE_SHIFT) +
         2; /* rounded up, and one step for rounding down */
}

void leaf_draw_utility(const struct leaf_draw *draw, const int64_t *totals, int64_t *utility) {
  int count = leaf_draw_candidates(draw);
  int128 one = (int128)1 << LEAF_DRAW_SHARE, share = share_of(draw), all = 0, before = 0;
  for (int i = 0; i < count; i++) all += totals[i];
  int128 rank = share * all + (one / 2 - share) * draw->shape->bin_steps;
  for (int i = 0; i < count; i++) {
    int128 after = before + totals[i];
    int128 over = before * one - rank, under = rank - after * one;
    int128 loss = over > under ? over : under;
    loss = loss > 0 ? loss >> SCORE_SHIFT : 0;
    utility[i] = -(int64_t)(loss < MOST_SCORE ? loss : MOST_SCORE);
    before = after;
  }
}

double leaf_draw_row(const struct leaf_draw *draw) {
  return ldexp((double)draw->shape->bin_steps, LEAF_DRAW_SHARE - SCORE_SHIFT);
}

/* If the rows are close to each other, the loss has an exponential distribution. Of any rows, each
** leaf with the loss x is at most exp(-step x) times as likely as the leaf of the quantile. */
double leaf_draw_even_error(const struct leaf_draw *draw, double epsilon, double confidence) {
  double range = (double)leaf_draw_range(draw) / leaf_draw_row(draw);
  return range / epsilon * -log1p(-confidence);
}

double leaf_draw_most_error(const struct leaf_draw *draw, double epsilon, double confidence) {
  double range = (double)leaf_draw_range(draw) / leaf_draw_row(draw);
  double others = fmax(leaf_draw_candidates(draw) - 1, 1);
  return range / epsilon * (log(others) - log1p(-confidence)) + 1 / leaf_draw_row(draw);
}

double leaf_draw_value(const struct contribution *question, int leaf) {
  if (!(question->grid > 0))
    return decimal_edge(question->low, question->high, 2 * leaf + 1, 2 * question->size);
  double share = layout_grid_share(question);
  double last = layout_grid_values(question->low, question->high, question->grid) - 1;
  double first = leaf * share, end = fmin(first + share - 1, last);
  double value = decimal_step(question->low, floor(first / 2 + end / 2), question->grid);
  return fmin(value, question->high);
}
