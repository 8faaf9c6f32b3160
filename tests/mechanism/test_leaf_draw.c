/* test_leaf_draw.c: tests mechanism.h. The tests go through all small data sets and all their
** neighbours. For each pair they compare the changes of the losses with the range that the draw is
** charged for, and the exact probabilities with the cost. */

#include "check.h"
#include "chi_square.h"
#include "math/math.h"
#include "mechanism/mechanism.h"
#include "noise/noise.h"
#include "random.h"
#include "source.h"

#define LEAVES 4
#define PARTS  2 /* a unit counts in at most this many leaves, or twice in one */
#define MOST   40

static const double quantiles[] = {0, 0.1, 0.25, 0.5, 2.0 / 3, 0.9, 1};
enum { QUANTILES = sizeof quantiles / sizeof *quantiles };

/* A draw whose members point to each other. */
struct setting {
  struct contribution question;
  struct layout shape;
  struct leaf_draw draw;
};

static void set(struct setting *setting, double clip, double q, int replace) {
  setting->question =
      (struct contribution){.family = mechanism_family(&leaf_draw_mechanism, &family_tree),
                            .clip = clip,
                            .low = 0,
                            .high = LEAVES - 1,
                            .size = LEAVES,
                            .grid = 1};
  layout_make(&setting->shape, &setting->question, 1, replace);
  setting->draw = (struct leaf_draw){&setting->question, &setting->shape, q, replace};
}

/* Sets units[k] to all vectors of a unit whose parts are multiples of 1/PARTS of the largest norm,
** and returns their number. The first is 0. */
static int all_units(const struct setting *setting, int64_t units[][LEAVES]) {
  int64_t reach = setting->shape.blocks[0].lead_reach;
  int count = 0;
  for (int code = 0; code < 81; code++) { /* 3^LEAVES */
    int parts[LEAVES], sum = 0;
    for (int i = 0, rest = code; i < LEAVES; i++, rest /= 3) sum += parts[i] = rest % 3;
    if (sum > PARTS) continue;
    for (int i = 0; i < LEAVES; i++)
      units[count][i] = parts[i] == PARTS ? reach : parts[i] * (reach / PARTS);
    count++;
  }
  return count;
}

/* The largest change over all pairs that was seen. */
static int64_t largest;

/* Compares the losses of two neighbours, and their probabilities with the cost of the draw. */
static void compare(const struct setting *setting, const int64_t *one, const int64_t *other,
                    const struct tilt *tilt) {
  int64_t u[LEAVES], v[LEAVES];
  long double p[LEAVES], q[LEAVES], all_p = 0, all_q = 0, moment = 0;
  leaf_draw_utility(&setting->draw, one, u);
  leaf_draw_utility(&setting->draw, other, v);
  int64_t least = v[0] - u[0], most = least;
  long double step = ldexpl((long double)tilt->exponent, -CATEGORICAL_SHIFT);
  for (int i = 0; i < LEAVES; i++) {
    int64_t change = v[i] - u[i];
    least = change < least ? change : least;
    most = change > most ? change : most;
    all_p += p[i] = expl(step * (long double)u[i]);
    all_q += q[i] = expl(step * (long double)v[i]);
  }
  largest = most - least > largest ? most - least : largest;
  CHECK(most - least <= (int64_t)leaf_draw_range(&setting->draw), "q %g: %lld", setting->draw.q,
        (long long)(most - least));
  long double ratio = 0, alpha = 3;
  for (int i = 0; i < LEAVES; i++) {
    long double loss = logl(p[i] / all_p) - logl(q[i] / all_q);
    ratio = fabsl(loss) > ratio ? fabsl(loss) : ratio;
    moment += q[i] / all_q * expl(alpha * loss);
  }
  long double margin = 1 + 1e-12L;
  CHECK(ratio <= tilt->epsilon * margin, "q %g: %Lg", setting->draw.q, ratio);
  CHECK(logl(moment) / (alpha - 1) <= bounded_range_rdp(3, tilt->epsilon) * margin, "q %g: %Lg",
        setting->draw.q, logl(moment) / (alpha - 1));
}

/* Goes through all data sets of up to two units, beside `base` rows in one leaf. */
static void neighbours(double clip, int replace) {
  static int64_t units[MOST][LEAVES];
  struct setting setting;
  for (int k = 0; k < QUANTILES; k++) {
    set(&setting, clip, quantiles[k], replace);
    struct tilt tilt = tilt_make(0.7, leaf_draw_range(&setting.draw));
    int count = all_units(&setting, units);
    CHECK(count == 15, "%d units", count);
    largest = 0;
    for (int base = 0; base <= LEAVES; base++) {
      for (int other = 0; other < count; other++) {
        int64_t rest[LEAVES] = {0}, one[LEAVES], two[LEAVES];
        for (int i = 0; i < LEAVES; i++) rest[i] = units[other][i];
        if (base < LEAVES) rest[base] += 50 * setting.shape.blocks[0].lead_reach;
        for (int a = 0; a < count; a++) {
          for (int b = 0; b < count; b++) {
            if (!replace && a > 0 && b > 0) continue; /* the unit 0 is no unit */
            for (int i = 0; i < LEAVES; i++) one[i] = rest[i] + units[a][i];
            for (int i = 0; i < LEAVES; i++) two[i] = rest[i] + units[b][i];
            compare(&setting, one, two, &tilt);
          }
        }
      }
    }
    /* The range is not larger than necessary, but for rounding and at the ends. */
    CHECK(quantiles[k] == 0 || quantiles[k] == 1 ||
              largest >= (int64_t)leaf_draw_range(&setting.draw) - 3,
          "q %g, clip %g: %lld of %llu", quantiles[k], clip, (long long)largest,
          (unsigned long long)leaf_draw_range(&setting.draw));
  }
}

static void adding_a_unit_changes_losses_within_the_range(void) {
  neighbours(1, 0);
  neighbours(3, 0);
  neighbours(0.3, 0);
}

static void replacing_a_unit_changes_losses_within_the_range(void) {
  neighbours(1, 1);
  neighbours(3, 1);
}

/* Sets losses[i] to the loss of leaf i: the number of rows between the leaf and the rank of the
** quantile, which is in the middle of a row. */
static void losses_of(double q, const int *rows, long double *losses) {
  long double before = 0, n = 0;
  for (int i = 0; i < LEAVES; i++) n += rows[i];
  long double rank = (long double)q * n + 0.5L - (long double)q;
  for (int i = 0; i < LEAVES; i++) {
    losses[i] = fmaxl(0, fmaxl(before - rank, rank - before - rows[i]));
    before += rows[i];
  }
}

static void the_loss_is_the_distance_in_rank(void) {
  struct setting setting;
  int64_t totals[LEAVES], utility[LEAVES];
  long double losses[LEAVES];
  for (int run = 0; run < 1000; run++) {
    int rows[LEAVES], most = run % 3 ? 8 : 300;
    set(&setting, 1, quantiles[run % QUANTILES], 0);
    for (int i = 0; i < LEAVES; i++)
      rows[i] = random_bits() & 1 ? (int)(random_bits() % (unsigned)most) : 0;
    for (int i = 0; i < LEAVES; i++) totals[i] = rows[i] * setting.shape.bin_steps;
    leaf_draw_utility(&setting.draw, totals, utility);
    losses_of(setting.draw.q, rows, losses);
    for (int i = 0; i < LEAVES; i++)
      CHECK(fabsl((long double)utility[i] + losses[i] * leaf_draw_row(&setting.draw)) < 30,
            "run %d, leaf %d: %g", run, i, -(double)utility[i] / leaf_draw_row(&setting.draw));
  }
}

/* ---- draws ----------------------------------------------------------------------------------- */

#define DRAWS 20000

/* Compares draws with the probabilities that follow from losses in rows. Returns the p-value. */
static double p_of_draws(double q, double clip, const int *rows, double factor) {
  struct setting setting;
  int64_t totals[LEAVES], utility[LEAVES];
  long counts[LEAVES] = {0};
  long double exact[LEAVES], losses[LEAVES], all = 0;
  long double range = 2 * (long double)fmax(q, 1 - q) * (long double)clip;
  set(&setting, clip, q, 0);
  losses_of(q, rows, losses);
  for (int i = 0; i < LEAVES; i++) {
    totals[i] = rows[i] * setting.shape.bin_steps;
    all += exact[i] = expl(-(long double)factor * losses[i] / range);
  }
  for (int i = 0; i < LEAVES; i++) exact[i] /= all;
  struct tilt tilt = tilt_make(1, leaf_draw_range(&setting.draw));
  leaf_draw_utility(&setting.draw, totals, utility);
  for (int i = 0; i < DRAWS; i++) {
    size_t chosen = LEAVES;
    CHECK(categorical_exponential(utility, LEAVES, tilt.exponent, &chosen), "draw %d", i);
    if (chosen < LEAVES) counts[chosen]++;
  }
  return p_value(counts, exact, LEAVES, DRAWS);
}

static void draws_have_their_distribution(void) {
  static const int rows[][LEAVES] = {{1, 1, 1, 1}, {0, 2, 3, 1}, {4, 0, 0, 2}, {0, 0, 0, 0}};
  source_start(7, 0);
  for (int k = 0; k < QUANTILES; k++) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
      double p = p_of_draws(quantiles[k], i % 2 ? 2 : 1, rows[i], 1);
      CHECK(p > 1e-6, "q %g, case %d: p %g", quantiles[k], (int)i, p);
    }
  }
  CHECK(p_of_draws(0.5, 1, rows[0], 1.12) < 1e-6, "12%% more");
}

/* With the largest numbers of units, nothing overflows. */
static void large_totals_do_not_overflow(void) {
  struct setting setting;
  int64_t utility[LEAVES], totals[LEAVES] = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
  for (int k = 0; k < QUANTILES; k++) {
    set(&setting, 1e9, quantiles[k], 0);
    leaf_draw_utility(&setting.draw, totals, utility);
    int64_t best = INT64_MIN;
    for (int i = 0; i < LEAVES; i++) best = utility[i] > best ? utility[i] : best;
    CHECK(best == 0, "q %g: %lld", quantiles[k], (long long)best);
    CHECK(leaf_draw_range(&setting.draw) < (uint64_t)1 << 20, "q %g", quantiles[k]);
  }
}

/* A leaf shows its middle value, and leaves without a grid value are no candidates. */
static void leaves_show_their_middle(void) {
  static const struct {
    double low, high, grid;
    int size, candidates, leaf;
    double value;
  } cases[] = {
      {0, 500, 1, 512, 501, 0, 0},      {0, 500, 1, 512, 501, 500, 500},
      {0, 500, 1, 256, 251, 250, 500},  {0, 500, 1, 256, 251, 3, 6},
      {5, 20, 0.1, 256, 151, 77, 12.7}, {0, 100, 0, 4, 4, 0, 12.5},
      {0, 100, 0, 4, 4, 3, 87.5},       {-1, 1, 0, 2, 2, 1, 0.5},
      {0, 1e6, 1, 65536, 62501, 1, 23},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    struct setting setting = {
        .question = {.family = mechanism_family(&leaf_draw_mechanism, &family_tree),
                     .clip = 1,
                     .low = cases[k].low,
                     .high = cases[k].high,
                     .size = cases[k].size,
                     .grid = cases[k].grid}};
    layout_make(&setting.shape, &setting.question, 1, 0);
    setting.draw = (struct leaf_draw){&setting.question, &setting.shape, 0.5, 0};
    CHECK(leaf_draw_candidates(&setting.draw) == cases[k].candidates, "case %d: %d", (int)k,
          leaf_draw_candidates(&setting.draw));
    double value = leaf_draw_value(&setting.question, cases[k].leaf);
    CHECK(value == cases[k].value, "case %d: %.17g", (int)k, value);
    if (cases[k].grid > 0) /* the value itself belongs to the leaf */
      CHECK(layout_leaf(&setting.question, 0, value) == cases[k].leaf, "case %d", (int)k);
  }
}

int main(void) {
  RUN(adding_a_unit_changes_losses_within_the_range);
  RUN(replacing_a_unit_changes_losses_within_the_range);
  RUN(the_loss_is_the_distance_in_rank);
  RUN(draws_have_their_distribution);
  RUN(large_totals_do_not_overflow);
  RUN(leaves_show_their_middle);
  FINISH();
}
