/* test_discrete_laplace.c: tests the distributions of discrete_laplace_draw() and
** discrete_laplace_step(). The test controls the random bits. The seeds are fixed, so there are no
** false alarms. The sampler makes a batch of draws and picks one of them. Some tests examine the
** distribution of the draws in a batch, and other tests examine which draw is picked.
**
** Power, at 50000 draws. Tests fail below a p-value of 1e-6 or beyond 5 standard deviations. The
** tests detect a scale that is off by 6% (see the control), a stay_chance() that is off by 2%, a
** moment at a large scale that is off by 5%, and a frequency of a residue mod 64 that is off by
** 20%. */
#include "check.h"
#include "chi_square.h"
#include "noise/discrete_laplace.c" /* gives the tests access to the draws of a batch */
#include "source.h"

#define DRAWS 50000
#define ALARM 1e-6 /* a test fails below this p-value */
#define LIMIT 5.0  /* a test fails beyond this number of standard deviations */
#define REACH 2000
#define CELLS (2 * REACH + 1)

static int64_t draws[DRAWS], steps[DRAWS];

/* Draws from L_Z(to) if `from` is 0. Otherwise draws the noise that turns a variable with
** distribution L_Z(from) into one with distribution L_Z(to). */
static void draw_steps(uint64_t from, uint64_t to, int64_t *noise) {
  struct csprng bits;
  struct step step = {from, to};
  if (!csprng_start(&bits)) return; /* never fails in this test */
  for (int i = 0; i < DRAWS; i++) noise[i] = step_of(&bits, &step);
  csprng_end(&bits);
}

/* ---- small scales: every probability --------------------------------------------------------- */

/* Sets exact[y + REACH] to P(y) of L_Z(scale). The outermost cells include the tails. */
static void exact_law(long double scale, long double *exact) {
  long double p = expl(-1 / scale);
  for (int y = -REACH; y <= REACH; y++)
    exact[y + REACH] = (1 - p) / (1 + p) * powl(p, y < 0 ? -y : y);
  exact[0] = exact[CELLS - 1] = powl(p, REACH) / (1 + p);
}

static double p_value_of(const int64_t *values, const long double *exact) {
  static long counts[CELLS];
  memset(counts, 0, sizeof counts);
  for (int i = 0; i < DRAWS; i++) {
    int64_t y = values[i] < -REACH ? -REACH : values[i] > REACH ? REACH : values[i];
    counts[y + REACH]++;
  }
  return p_value(counts, exact, CELLS, DRAWS);
}

static void law_is_exact_for_small_scales(void) {
  static const int scales[] = {1, 2, 3, 7, 16, 100};
  static long double exact[CELLS];
  for (int i = 0; i < 6; i++) {
    source_start((uint64_t)i, 0);
    draw_steps(0, (uint64_t)scales[i], draws);
    exact_law(scales[i], exact);
    double p = p_value_of(draws, exact);
    CHECK(p > ALARM, "scale %d: p %g", scales[i], p);
  }
}

/* Control: the same test rejects a scale that is 6% larger or smaller. */
static void a_wrong_scale_is_seen(void) {
  static const int scales[] = {1, 7, 100};
  static long double exact[CELLS];
  for (int i = 0; i < 3; i++) {
    source_start(20 + (uint64_t)i, 0);
    draw_steps(0, (uint64_t)scales[i], draws);
    for (int sign = -1; sign <= 1; sign += 2) {
      exact_law(scales[i] * (1 + 0.06L * sign), exact);
      CHECK(p_value_of(draws, exact) < ALARM, "scale %d", scales[i]);
    }
  }
}

/* ---- steps ----------------------------------------------------------------------------------- */

static const struct {
  uint64_t from, to;
} pairs[] = {{1, 2}, {1, 50}, {2, 3}, {5, 6}, {7, 20}, {40, 41}, {30, 100}};
enum { PAIRS = sizeof pairs / sizeof pairs[0] };

static long double stay_chance(uint64_t from, uint64_t to) {
  long double p = expl(-1 / (long double)from), r = expl(-1 / (long double)to);
  return p / r * (1 - r) / (1 - p) * (1 - r) / (1 - p);
}

/* The noise of a step is 0 with probability stay_chance(), and otherwise a draw from L_Z(to). */
static void law_of_a_step(void) {
  static long double exact[CELLS];
  for (int i = 0; i < PAIRS; i++) {
    source_start(40 + (uint64_t)i, 0);
    draw_steps(pairs[i].from, pairs[i].to, steps);
    long double stay = stay_chance(pairs[i].from, pairs[i].to);
    exact_law((long double)pairs[i].to, exact);
    for (int y = 0; y < CELLS; y++) exact[y] *= 1 - stay;
    exact[REACH] += stay;
    double p = p_value_of(steps, exact);
    CHECK(p > ALARM, "from %d to %d: p %g", (int)pairs[i].from, (int)pairs[i].to, p);
  }
}

/* The distribution of a step, convolved with L_Z(from), must be L_Z(to), except for rounding in the
** last digits. This test makes no random draws. */
static void the_kernel_closes_the_family(void) {
  static long double inner[CELLS], outer[CELLS];
  for (int i = 0; i < PAIRS; i++) {
    long double stay = stay_chance(pairs[i].from, pairs[i].to);
    exact_law((long double)pairs[i].from, inner);
    exact_law((long double)pairs[i].to, outer);
    CHECK(stay > 0 && stay < 1, "a probability of %Lg", stay);
    for (int y = -3; y <= 3; y++) {
      long double sum = 0;
      for (int x = -REACH + 10; x < REACH - 10; x++) sum += inner[x + REACH] * outer[y - x + REACH];
      sum = stay * inner[y + REACH] + (1 - stay) * sum;
      CHECK(fabsl(sum / outer[y + REACH] - 1) < 1e-8L, "pair %d, y %d: %Lg", i, y, sum);
    }
  }
}

/* Draws noise of the inner scale and adds a step to the outer scale. */
static void walk(uint64_t seed, uint64_t from, uint64_t to) {
  source_start(seed, 0);
  draw_steps(0, from, draws);
  draw_steps(from, to, steps);
  for (int i = 0; i < DRAWS; i++) draws[i] += steps[i];
}

/* ---- large scales ---------------------------------------------------------------------------- */

/* The mean absolute value must be 1 and the mean square 2, in units of the scale. Also checks the
** sign, the low-order bits, and sixteen cells of equal probability. */
static void check_large(double scale, const char *what) {
  long sizes[32] = {0}, residues[64] = {0};
  long double equal[64];
  double size = 0, square = 0, sum = 0;
  for (int i = 0; i < DRAWS; i++) {
    double y = (double)draws[i] / scale;
    size += fabs(y) / DRAWS;
    square += y * y / DRAWS;
    sum += y / DRAWS;
    int cell = (int)(16 * exp(-fabs(y)));
    sizes[(cell > 15 ? 15 : cell) + (draws[i] < 0 ? 16 : 0)]++;
    residues[(uint64_t)draws[i] % 64]++;
  }
  CHECK(fabs(size - 1) < LIMIT * sqrt(1.0 / DRAWS), "%s: mean size %g", what, size);
  CHECK(fabs(square - 2) < LIMIT * sqrt(20.0 / DRAWS), "%s: mean square %g", what, square);
  CHECK(fabs(sum) < LIMIT * sqrt(2.0 / DRAWS), "%s: mean %g", what, sum);
  for (int i = 0; i < 64; i++) equal[i] = 1 / 32.0L;
  CHECK(p_value(sizes, equal, 32, DRAWS) > ALARM, "%s: sizes %g", what,
        p_value(sizes, equal, 32, DRAWS));
  for (int i = 0; i < 64; i++) equal[i] = 1 / 64.0L;
  CHECK(p_value(residues, equal, 64, DRAWS) > ALARM, "%s: residues", what);
}

static void large_scales_are_right(void) {
  static const uint64_t scales[] = {1 << 20, 1500001, 1 << 25, 1 << 30,
                                    DISCRETE_LAPLACE_MAX_SCALE - 1};
  for (int i = 0; i < 5; i++) {
    source_start(80 + (uint64_t)i, 0);
    draw_steps(0, scales[i], draws);
    check_large((double)scales[i], "plain");
  }
}

static void large_steps_are_right(void) {
  static const uint64_t from[] = {1 << 20, 1 << 20, 1 << 25, 1 << 20},
                        to[] = {3 << 20, 1100000, 1 << 30, 1 << 30};
  for (int i = 0; i < 4; i++) {
    walk(90 + (uint64_t)i, from[i], to[i]);
    check_large((double)to[i], "walk");
  }
}

/* The two scales are so close that nearly every step is 0. The probability that a step is not 0 is
** about 2 (to - from)/to. */
static void the_closest_scales(void) {
  uint64_t last = DISCRETE_LAPLACE_MAX_SCALE - 1;
  source_start(100, 0);
  draw_steps(last - 1, last, steps);
  for (int i = 0; i < DRAWS; i++) CHECK(steps[i] == 0, "moved by %lld", (long long)steps[i]);
  CHECK(discrete_laplace_step(1, last, steps, 10) == 1, "the farthest scales");
  draw_steps(1 << 20, (1 << 20) + 5000, steps);
  int moved = 0;
  for (int i = 0; i < DRAWS; i++) moved += steps[i] != 0;
  double expected = DRAWS * (double)(1 - stay_chance(1 << 20, (1 << 20) + 5000));
  CHECK(fabs(moved - expected) < LIMIT * sqrt(expected), "%d moved, not %g", moved, expected);
}

/* ---- picking --------------------------------------------------------------------------------- */

static void what_is_picked_has_the_law(void) {
  static long double exact[CELLS];
  enum { PICKED = 6000 };
  static int64_t picked[PICKED];
  for (int is_step = 0; is_step < 2; is_step++) {
    static long counts[CELLS];
    memset(counts, 0, sizeof counts);
    source_start(105, 0);
    CHECK(discrete_laplace_draw(is_step ? 5 : 9, draws, PICKED) == 1, "no random bits");
    memset(picked, 0, sizeof picked);
    if (is_step) CHECK(discrete_laplace_step(5, 9, picked, PICKED) == 1, "no random bits");
    for (int i = 0; i < PICKED; i++) counts[draws[i] + picked[i] + REACH]++;
    exact_law(9, exact);
    CHECK(p_value(counts, exact, CELLS, PICKED) > ALARM, "step %d: p %g", is_step,
          p_value(counts, exact, CELLS, PICKED));
  }
}

/* ---- ranges and failures --------------------------------------------------------------------- */

static void scales_out_of_range_are_refused(void) {
  static const uint64_t refused[] = {0, DISCRETE_LAPLACE_MAX_SCALE, DISCRETE_LAPLACE_MAX_SCALE + 1,
                                     UINT64_MAX};
  static const uint64_t steps_refused[][2] = {
      {0, 5},
      {0, 0},
      {6, 5},
      {5, DISCRETE_LAPLACE_MAX_SCALE},
      {5, 0},
      {UINT64_MAX, UINT64_MAX},
      {DISCRETE_LAPLACE_MAX_SCALE, DISCRETE_LAPLACE_MAX_SCALE}};
  source_start(110, 0);
  for (int i = 0; i < 4; i++) {
    int64_t noise[2] = {1, 1};
    CHECK(discrete_laplace_draw(refused[i], noise, 2) == 0, "case %d", i);
    CHECK(noise[0] == 0 && noise[1] == 0, "case %d", i);
  }
  for (int i = 0; i < 7; i++) {
    int64_t noise[2] = {1, 1};
    CHECK(discrete_laplace_step(steps_refused[i][0], steps_refused[i][1], noise, 2) == 0, "step %d",
          i);
    CHECK(noise[0] == 0 && noise[1] == 0, "step %d", i);
  }
}

static void no_step_is_no_noise(void) {
  int64_t noise[3] = {1, 2, 3};
  source_start(111, 0);
  CHECK(discrete_laplace_step(5, 5, noise, 3) == 1, "the same scale");
  CHECK(!noise[0] && !noise[1] && !noise[2], "noise");
  CHECK(discrete_laplace_draw(5, NULL, 0) == 1 && discrete_laplace_step(5, 6, NULL, 0) == 1,
        "no coordinates");
}

static int draw(int is_step, int64_t *noise, size_t count) {
  return is_step ? discrete_laplace_step(1 << 20, 3 << 20, noise, count)
                 : discrete_laplace_draw(1 << 20, noise, count);
}

static void failure_gives_zeros_and_success_ends_its_bits(void) {
  for (int is_step = 0; is_step < 2; is_step++) {
    for (size_t count = 1; count < 40; count += 19) {
      int64_t noise[40];
      source_start(120, 0);
      CHECK(draw(is_step, noise, count) == 1 && source.open == 0 && source.blocks > 0, "count %zu",
            count);
      memset(noise, 0x5a, sizeof noise);
      int64_t canary = noise[count];
      source_start(120, 1);
      CHECK(draw(is_step, noise, count) == 0 && source.open == 0 && source.blocks == 0, "count %zu",
            count);
      for (size_t j = 0; j < count; j++) CHECK(noise[j] == 0, "noise[%zu] kept", j);
      CHECK(noise[count] == canary, "wrote past %zu", count);
    }
  }
}

/* The result depends only on the bits of this call. */
static void no_state_survives_a_call(void) {
  int64_t first[50], second[50], other[7];
  source_start(130, 0);
  CHECK(draw(1, first, 50) == 1 && discrete_laplace_draw(5, other, 7) == 1, "first");
  source_start(130, 0);
  CHECK(draw(1, second, 50) == 1 && memcmp(first, second, sizeof first) == 0,
        "the same bits gave other noise");
}

int main(void) {
  RUN(law_is_exact_for_small_scales);
  RUN(a_wrong_scale_is_seen);
  RUN(law_of_a_step);
  RUN(the_kernel_closes_the_family);
  RUN(large_scales_are_right);
  RUN(large_steps_are_right);
  RUN(the_closest_scales);
  RUN(what_is_picked_has_the_law);
  RUN(scales_out_of_range_are_refused);
  RUN(no_step_is_no_noise);
  RUN(failure_gives_zeros_and_success_ends_its_bits);
  RUN(no_state_survives_a_call);
  FINISH();
}
