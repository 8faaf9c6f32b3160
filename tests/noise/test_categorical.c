/* test_categorical.c: compares the draws of noise.h with exact probabilities. The test
** controls the random bits. The seeds are fixed, so there are no false alarms. A test of a
** distribution fails below a p-value of 1e-6. A control shows that such a test fails if the step in
** the exponent is wrong by 12%. */
#include "check.h"
#include "chi_square.h"
#include "noise/noise.h"
#include "source.h"

#define DRAWS 15000
#define MANY  20
#define ALARM 1e-6
#define ONE   ((double)((uint64_t)1 << CATEGORICAL_SHIFT))

/* ---- the exponential mechanism, and permute-and-flip ----------------------------------------- */

static uint64_t exponent_of(double step) {
  return (uint64_t)(step * ONE);
}

/* A draw of an index, of categorical_exponential() or of categorical_flip(). */
typedef int draw(const int64_t *utility, size_t count, uint64_t exponent, size_t *chosen);

static int flip(const int64_t *utility, size_t count, uint64_t exponent, size_t *chosen) {
  static uint32_t order[4096];
  return categorical_flip(utility, order, count, exponent, chosen);
}

static draw *const draws[] = {categorical_exponential, flip};
static draw *drawn; /* the draw that is tested */

static void count_draws(const int64_t *utility, size_t count, uint64_t exponent, long *counts) {
  memset(counts, 0, sizeof *counts * MANY);
  for (int i = 0; i < DRAWS; i++) {
    size_t chosen = count;
    CHECK(drawn(utility, count, exponent, &chosen) == 1 && chosen < count, "draw %d", i);
    if (chosen < count) counts[chosen]++;
  }
}

/* Sets exact[i] to the probability of index i under permute-and-flip, over all sets of indices that
** come before i: if i is at one of n places with equal probability, a given set of k others comes
** before it, and no other, with probability k! (n-1-k)!/n!. */
static void flip_law(const long double *q, size_t count, long double *exact) {
  for (size_t i = 0; i < count; i++) exact[i] = 0;
  for (unsigned long set = 0; set < 1UL << count; set++) {
    long double fails = 1, orders = 1;
    size_t size = 0;
    for (size_t j = 0; j < count; j++) {
      if (!(set >> j & 1)) continue;
      fails *= 1 - q[j];
      size++;
    }
    for (size_t k = 1; k <= size; k++) orders *= (long double)k / (long double)(count - k);
    for (size_t i = 0; i < count; i++)
      if (!(set >> i & 1)) exact[i] += q[i] * fails * orders / (long double)count;
  }
}

/* Sets exact[i] to P(i), which is proportional to exp(step (utility[i] - highest utility)). */
static void exact_law(const int64_t *utility, size_t count, long double step, long double *exact) {
  int64_t highest = utility[0];
  long double sum = 0;
  for (size_t i = 0; i < count; i++) highest = utility[i] > highest ? utility[i] : highest;
  for (size_t i = 0; i < count; i++)
    sum += exact[i] = expl(-step * ((long double)highest - (long double)utility[i]));
  if (drawn == flip) {
    long double accepted[MANY];
    memcpy(accepted, exact, sizeof *exact * count);
    flip_law(accepted, count, exact);
  } else {
    for (size_t i = 0; i < count; i++) exact[i] /= sum;
  }
}

static const struct {
  double step;
  size_t count;
  int64_t utility[MANY];
} cases[] = {
    {0.7, 4, {0, 1, 2, 3}},
    {0.7, 4, {3, 2, 1, 0}},
    {1.0, 5, {7, 7, 7, 7, 7}},
    {2.5, 3, {100, 99, 100}},
    {0.01, 6, {0, 100, 50, -100, 80, 99}},
    {1e-6, 3, {0, 1000000, -1000000}},
    {3.9, 2, {-5, -6}},
    {1e-3, 8, {0, 300, 600, 900, 1200, 1500, 1800, 2100}},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static double p_of_case(int i, double factor) {
  long counts[MANY];
  long double exact[MANY];
  source_start((uint64_t)i, 0);
  count_draws(cases[i].utility, cases[i].count, exponent_of(cases[i].step), counts);
  exact_law(cases[i].utility, cases[i].count, (long double)cases[i].step * factor, exact);
  return p_value(counts, exact, (int)cases[i].count, DRAWS);
}

static void probabilities_are_exact(void) {
  for (int i = 0; i < CASES; i++) {
    double p = p_of_case(i, 1);
    CHECK(p > ALARM, "case %d: p %g", i, p);
  }
}

static void a_wrong_step_is_seen(void) {
  CHECK(p_of_case(0, 1.12) < ALARM, "12%% more");
  CHECK(p_of_case(4, 0.88) < ALARM, "12%% less");
  CHECK(p_of_case(7, 1.12) < ALARM, "12%% more");
}

/* With the smallest step, 2^-40, and utilities that are 2^40 apart, each choice has 1/e of the
** probability of the next better choice. */
static void the_smallest_step_over_a_large_gap(void) {
  static const int64_t gap = (int64_t)1 << CATEGORICAL_SHIFT;
  const int64_t utility[3] = {5 - gap, 5, 5 - 2 * gap};
  long counts[MANY];
  long double exact[3];
  source_start(30, 0);
  count_draws(utility, 3, 1, counts);
  exact_law(utility, 3, 1 / (long double)ONE, exact);
  CHECK(p_value(counts, exact, 3, DRAWS) > ALARM, "p %g", p_value(counts, exact, 3, DRAWS));
}

/* With step 0, all choices are equally likely, however far apart the utilities are. With the
** smallest step and the largest gap, and with the largest step and any gap, the draw always chooses
** the highest utility. */
static void extremes(void) {
  const int64_t apart[3] = {INT64_MIN, INT64_MAX, 0};
  const int64_t near[4] = {-1, 0, -1, -2};
  long counts[MANY];
  const long double equal[3] = {1 / 3.0L, 1 / 3.0L, 1 / 3.0L};
  source_start(31, 0);
  count_draws(apart, 3, 0, counts);
  CHECK(p_value(counts, equal, 3, DRAWS) > ALARM, "no step: %ld, %ld, %ld", counts[0], counts[1],
        counts[2]);
  count_draws(apart, 3, 1, counts); /* exp(-2^50/2^40) = exp(-1024) */
  CHECK(counts[1] == DRAWS, "the smallest step: %ld", counts[1]);
  count_draws(apart, 3, ((uint64_t)1 << 53) - 1, counts);
  CHECK(counts[1] == DRAWS, "the largest step: %ld", counts[1]);
  count_draws(near, 4, ((uint64_t)1 << 53) - 1, counts); /* exp(-8192) */
  CHECK(counts[1] == DRAWS, "the largest step over the smallest gap: %ld", counts[1]);
}

/* One utility of many is far above all others. The draw returns this utility, although each trial
** proposes it with small probability. */
static void a_lonely_winner_is_found(void) {
  static int64_t utility[4096];
  size_t chosen;
  source_start(32, 0);
  for (size_t winner = 0; winner < 4096; winner += 1365) {
    memset(utility, 0, sizeof utility);
    utility[winner] = 60;
    CHECK(drawn(utility, 4096, exponent_of(1), &chosen) == 1, "no random bits");
    CHECK(chosen == winner, "%zu, not %zu", chosen, winner);
  }
}

static void one_candidate_and_none(void) {
  const int64_t utility[1] = {-7};
  size_t chosen = 9;
  source_start(33, 0);
  CHECK(drawn(utility, 1, exponent_of(1), &chosen) == 1 && chosen == 0, "one");
  chosen = 9;
  CHECK(drawn(utility, 0, exponent_of(1), &chosen) == 0 && chosen == 0, "none");
  chosen = 9;
  CHECK(drawn(utility, 1, (uint64_t)1 << 53, &chosen) == 0 && chosen == 0, "a step too large");
}

/* How many random blocks the draws use depends little on the utilities: over the five sets of
** utilities, the largest number of blocks is less than three times the smallest. Draws that end at
** the first acceptance use one block for equal utilities, and many if one utility stands out. */
static void a_draw_takes_about_the_same_whatever_the_data(void) {
  int64_t utility[500];
  long least = 0, most = 0;
  for (int spread = 0; spread < 5; spread++) {
    for (int i = 0; i < 500; i++) utility[i] = i * (spread == 0 ? 0 : 1L << (5 * spread - 5));
    source_start(34, 0);
    size_t chosen;
    for (int i = 0; i < 10; i++)
      CHECK(drawn(utility, 500, exponent_of(0.05), &chosen) == 1, "bits");
    if (spread == 0 || source.blocks < least) least = source.blocks;
    if (source.blocks > most) most = source.blocks;
  }
  CHECK(most < 3 * least, "%ld to %ld blocks", least, most);
}

/* ---- weights --------------------------------------------------------------------------------- */

static void check_weights(const uint64_t *weight, size_t count) {
  long counts[MANY] = {0};
  long double exact[MANY], sum = 0;
  for (size_t i = 0; i < count; i++) sum += exact[i] = (long double)weight[i];
  for (size_t i = 0; i < count; i++) exact[i] /= sum;
  for (int i = 0; i < DRAWS; i++) {
    size_t chosen = count;
    CHECK(categorical_weighted(weight, count, &chosen) == 1 && chosen < count, "draw %d", i);
    if (chosen < count) counts[chosen]++;
  }
  for (size_t i = 0; i < count; i++)
    CHECK(weight[i] || !counts[i], "weight 0 was picked %ld times", counts[i]);
  double p = p_value(counts, exact, (int)count, DRAWS);
  CHECK(p > ALARM, "p %g", p);
}

static void weights_are_exact(void) {
  const uint64_t few[] = {1, 2, 3, 0, 10}, half = (uint64_t)1 << 52, large = (uint64_t)1 << 61;
  const uint64_t shares[] = {half / 10, half - half / 10}, ends[] = {0, 5, 0},
                 most[] = {large, large, large, large - 1};
  source_start(40, 0);
  check_weights(few, 5);
  check_weights(shares, 2);
  check_weights(ends, 3);
  check_weights(most, 4);
}

static void weights_out_of_range_are_refused(void) {
  const uint64_t half = (uint64_t)1 << 62, all = (uint64_t)1 << 63;
  const uint64_t refused[][2] = {
      {0, 0}, {half, half}, {all, 1}, {all, all}, {UINT64_MAX, UINT64_MAX}, {UINT64_MAX, 1}};
  source_start(41, 0);
  for (int i = 0; i < 6; i++) {
    size_t chosen = 9;
    CHECK(categorical_weighted(refused[i], 2, &chosen) == 0 && chosen == 0, "case %d", i);
  }
  size_t chosen = 9;
  CHECK(categorical_weighted(refused[0], 0, &chosen) == 0 && chosen == 0, "none");
  const uint64_t rare[] = {1, all - 2}; /* the largest sum */
  CHECK(categorical_weighted(rare, 2, &chosen) == 1 && chosen == 1, "the largest sum");
}

/* ---- failures -------------------------------------------------------------------------------- */

static int pick(int way, size_t *chosen) {
  static const int64_t utility[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5};
  static const uint64_t weight[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5};
  return way == 2 ? categorical_weighted(weight, 11, chosen)
                  : draws[way](utility, 11, exponent_of(1), chosen);
}

static void failure_picks_nothing_and_success_ends_its_bits(void) {
  for (int way = 0; way < 3; way++) {
    size_t chosen;
    source_start(50, 0);
    CHECK(pick(way, &chosen) == 1 && source.open == 0 && source.blocks > 0, "succeeds");
    chosen = 9;
    source_start(50, 1);
    CHECK(pick(way, &chosen) == 0 && chosen == 0 && source.open == 0 && source.blocks == 0,
          "fails: %zu", chosen);
  }
}

int main(void) {
  for (int i = 0; i < 2; i++) {
    drawn = draws[i];
    RUN(probabilities_are_exact);
    RUN(a_wrong_step_is_seen);
    RUN(the_smallest_step_over_a_large_gap);
    RUN(extremes);
    RUN(a_lonely_winner_is_found);
    RUN(one_candidate_and_none);
    RUN(a_draw_takes_about_the_same_whatever_the_data);
  }
  RUN(weights_are_exact);
  RUN(weights_out_of_range_are_refused);
  RUN(failure_picks_nothing_and_success_ends_its_bits);
  FINISH();
}
