/* test_discrete_gaussian.c: tests the distribution of discrete_gaussian_draw(), with the system's
** random bytes.
**
** False alarms. A chi-square test fails below a p-value of 1e-10. The expected count of each cell
** is at least 100, which keeps the true rate below 2e-10. A test of a variance fails beyond 6.5
** standard deviations, which has probability 8e-11. All 48 tests together raise a false alarm with
** probability below 9e-9.
**
** Power, at a million draws. Each test misses the following errors with probability below 1e-6:
**   all probabilities, V up to 1000  a variance that is off by 5% (see the control)
**   variance, V from 2^20 to 2^62  off by 2%, 7 standard deviations beyond the limit
**   shape against the normal       a central cell off by 8%, P(|y| > 4 sigma) three times as large
**   low-order bits                 a residue mod 64 that is off by 15%
**   dependence of two draws        a correlation of 3% */
#include <gsl/gsl_cdf.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "chi_square.h"
#include "noise/noise.h"

#define DRAWS  1000000
#define ALARM  1e-10 /* a chi-square test fails below this p-value */
#define LIMIT  6.5   /* a test fails beyond this number of standard deviations */
#define OCTILE 8

static int64_t draws[DRAWS];

static void draw(uint64_t variance) {
  CHECK(discrete_gaussian_draw(variance, draws, DRAWS) == 1, "no random bytes");
}

static long double real_sqrt(uint64_t variance) {
  return sqrtl((long double)variance);
}

/* Returns the p-value of counts[0 .. cells-1] if all cells have the same probability. */
static double p_value_uniform(const long *counts, int cells, double total) {
  long double equal[OCTILE * OCTILE];
  for (int i = 0; i < cells; i++) equal[i] = 1.0L / cells;
  return p_value(counts, equal, cells, total);
}

/* ---- the exact law, small variances ---------------------------------------------------------- */

#define REACH 700 /* 22 standard deviations at V = 1000 */

/* Sets exact[y + REACH] to P(y) of N_Z(0, variance), by a theta series of positive terms. */
static void exact_law(double variance, long double *exact) {
  long double sum = 0;
  for (int y = -REACH; y <= REACH; y++) {
    exact[y + REACH] = expl(-(long double)y * y / (2 * (long double)variance));
    sum += exact[y + REACH];
  }
  for (int i = 0; i <= 2 * REACH; i++) exact[i] /= sum;
}

/* Returns the p-value of the first `count` draws if their distribution is N_Z(0, variance). */
static double p_value_exact(double variance, int count) {
  static long double exact[2 * REACH + 1];
  long counts[2 * REACH + 1] = {0};
  exact_law(variance, exact);
  for (int i = 0; i < count; i++) {
    CHECK(draws[i] >= -REACH && draws[i] <= REACH, "22 sigma: %lld", (long long)draws[i]);
    if (draws[i] >= -REACH && draws[i] <= REACH) counts[draws[i] + REACH]++;
  }
  return p_value(counts, exact, 2 * REACH + 1, count);
}

static void law_is_exact_for_small_variances(void) {
  const int variances[] = {1, 2, 3, 5, 10, 16, 100, 255, 256, 257, 1000};
  for (int i = 0; i < 11; i++) {
    draw((uint64_t)variances[i]);
    double p = p_value_exact(variances[i], DRAWS);
    CHECK(p > ALARM, "variance %d: p %g", variances[i], p);
  }
}

/* Control: the same test must reject a distribution whose variance is 5% larger or smaller. */
static void a_wrong_variance_is_seen(void) {
  const int variances[] = {1, 10, 1000};
  for (int i = 0; i < 3; i++) {
    draw((uint64_t)variances[i]);
    CHECK(p_value_exact(1.05 * variances[i], DRAWS) < ALARM, "variance %d", variances[i]);
    CHECK(p_value_exact(variances[i] / 1.05, DRAWS) < ALARM, "variance %d", variances[i]);
  }
}

/* Makes 100000 draws one by one, so that each draw comes from a batch. The test detects a variance
** that is off by 15%. */
static void single_numbers_follow_the_law(void) {
  enum { SINGLES = 100000 };
  for (int i = 0; i < SINGLES; i++) {
    CHECK(discrete_gaussian_draw(10, &draws[i], 1) == 1, "no random bytes");
  }
  double p = p_value_exact(10, SINGLES);
  CHECK(p > ALARM, "p %g", p);
}

/* ---- large variances ------------------------------------------------------------------------- */

static const uint64_t large[] = {(uint64_t)1 << 41, 847288609443 /* 3^25 */, (uint64_t)1 << 61,
                                 DISCRETE_GAUSSIAN_MAX_VARIANCE - 1};
enum { LARGE = sizeof large / sizeof large[0] };

/* The sum of squares divided by V has standard deviation sqrt(2/DRAWS) = 0.14%. The test fails
** beyond 0.92%. */
static void check_variance(uint64_t variance) {
  long double sum = 0;
  for (int i = 0; i < DRAWS; i++) sum += (long double)draws[i] * (long double)draws[i];
  double ratio = (double)(sum / DRAWS / (long double)variance);
  CHECK(fabs(ratio - 1) < LIMIT * sqrt(2.0 / DRAWS), "variance %llu: times %.5f",
        (unsigned long long)variance, ratio);
}

/* Compares the draws with the normal distribution, in cells that are sigma/4 wide and reach up to 4
** sigma, and in one cell for each tail. At V >= 2^40 the relative difference between the
** probability of a cell and its normal probability is less than 1e-6. */
static void check_shape(uint64_t variance) {
  enum { CELLS = 34 };
  long counts[CELLS] = {0};
  long double exact[CELLS];
  for (int j = 0; j < DRAWS; j++) {
    int cell = (int)floorl(4 * (long double)draws[j] / real_sqrt(variance)) + CELLS / 2;
    counts[cell < 0 ? 0 : cell >= CELLS ? CELLS - 1 : cell]++;
  }
  for (int cell = 0; cell < CELLS; cell++) {
    double low = cell > 0 ? gsl_cdf_ugaussian_P((cell - CELLS / 2) / 4.0) : 0;
    double high = cell < CELLS - 1 ? gsl_cdf_ugaussian_P((cell + 1 - CELLS / 2) / 4.0) : 1;
    exact[cell] = high - low;
  }
  double p = p_value(counts, exact, CELLS, DRAWS);
  CHECK(p > ALARM, "variance %llu: p %g", (unsigned long long)variance, p);
}

/* The distribution of y mod 64 differs from the uniform distribution by at most exp(-2 pi^2
** V/64^2). An attacker therefore learns nothing from the low-order bits. */
static void check_low_order_bits(uint64_t variance) {
  long low[64] = {0}, middle[64] = {0};
  for (int j = 0; j < DRAWS; j++) {
    low[(uint64_t)draws[j] % 64]++;
    middle[((uint64_t)draws[j] >> 6) % 64]++;
  }
  double p = p_value_uniform(low, 64, DRAWS), q = p_value_uniform(middle, 64, DRAWS);
  CHECK(p > ALARM && q > ALARM, "variance %llu: p %g and %g", (unsigned long long)variance, p, q);
}

/* Returns the octile, 0 to 7, of the normal distribution that contains a draw. All octiles are
** equally likely. */
static int octile(int64_t value, uint64_t variance) {
  static double edges[OCTILE - 1];
  if (edges[0] == 0) {
    for (int i = 0; i < OCTILE - 1; i++) edges[i] = gsl_cdf_ugaussian_Pinv((i + 1.0) / OCTILE);
  }
  double x = (double)((long double)value / real_sqrt(variance));
  int eighth = 0;
  while (eighth < OCTILE - 1 && x >= edges[eighth]) eighth++;
  return eighth;
}

/* Forms pairs of the draws i and i + lag, such that no draw is in two pairs. Returns the p-value of
** the hypothesis that all pairs of octiles are equally likely. */
static double p_value_pairs(uint64_t variance, int lag, int count) {
  long pairs[OCTILE * OCTILE] = {0};
  int total = 0;
  for (int i = 0; i + lag < count; i++) {
    if (i / lag % 2) continue;
    pairs[OCTILE * octile(draws[i], variance) + octile(draws[i + lag], variance)]++;
    total++;
  }
  return p_value_uniform(pairs, OCTILE * OCTILE, total);
}

/* The size of a draw reveals nothing about its low-order bits. The test counts pairs of 8 octiles
** and 8 residues. */
static void check_bits_beside_size(uint64_t variance) {
  long cells[8 * OCTILE] = {0};
  for (int j = 0; j < DRAWS; j++)
    cells[8 * octile(draws[j], variance) + (int)((uint64_t)draws[j] % 8)]++;
  double p = p_value_uniform(cells, 8 * OCTILE, DRAWS);
  CHECK(p > ALARM, "variance %llu: p %g", (unsigned long long)variance, p);
}

static void draws_of_large_variances(void) {
  draw((uint64_t)1 << 20);
  check_variance((uint64_t)1 << 20);
  for (int i = 0; i < LARGE; i++) {
    draw(large[i]);
    check_variance(large[i]);
    check_shape(large[i]);
    check_low_order_bits(large[i]);
    check_bits_beside_size(large[i]);
    for (int lag = 1; lag <= 3; lag++) { /* consecutive draws are independent */
      double p = p_value_pairs(large[i], lag, DRAWS);
      CHECK(p > ALARM, "case %d, lag %d: p %g", i, lag, p);
    }
  }
}

/* The test uses the two coordinates of 40000 short vectors. The test detects a correlation of
** 10%. */
static void coordinates_of_short_vectors_are_independent(void) {
  enum { NUMBERS = 80000 };
  const uint64_t variance = (uint64_t)1 << 41;
  for (int i = 0; i < NUMBERS; i += 2) {
    CHECK(discrete_gaussian_draw(variance, &draws[i], 2) == 1, "no random bytes");
  }
  double p = p_value_pairs(variance, 1, NUMBERS);
  CHECK(p > ALARM, "p %g", p);
}

/* ---- threads and processes ------------------------------------------------------------------- */

enum { THREADS = 8, EACH = DRAWS / THREADS };

static void *draw_share(void *share) {
  return discrete_gaussian_draw(large[0], share, EACH) ? share : NULL;
}

/* Threads race to make the first draw, which builds the shared table. */
static void threads_draw_at_once(void) {
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) {
    CHECK(pthread_create(&threads[i], NULL, draw_share, draws + i * EACH) == 0, "thread %d", i);
  }
  for (int i = 0; i < THREADS; i++) {
    void *done = NULL;
    CHECK(pthread_join(threads[i], &done) == 0 && done, "thread %d", i);
  }
  check_variance(large[0]);
  double p = p_value_pairs(large[0], EACH, DRAWS);
  CHECK(p > ALARM, "two threads: p %g", p);
}

/* Parent and child draw after the fork. The draws are equal by chance with probability below
** 2^-200. */
static void processes_share_nothing(void) {
  int64_t parent[10], child[10];
  int ends[2], status = -1;
  if (pipe(ends) != 0) {
    CHECK(0, "no pipe");
    return;
  }
  fflush(stdout);
  pid_t pid = fork();
  int drawn = discrete_gaussian_draw(large[0], pid ? parent : child, 10);
  if (pid == 0) _exit(!drawn || write(ends[1], child, sizeof child) != (ssize_t)sizeof child);
  CHECK(drawn && pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "no draws");
  if (status == 0) {
    CHECK(read(ends[0], child, sizeof child) == (ssize_t)sizeof child, "short pipe");
    CHECK(memcmp(parent, child, sizeof parent) != 0, "the same draws in parent and child");
  }
  close(ends[0]);
  close(ends[1]);
}

int main(void) {
  RUN(threads_draw_at_once);
  RUN(processes_share_nothing);
  RUN(law_is_exact_for_small_variances);
  RUN(a_wrong_variance_is_seen);
  RUN(single_numbers_follow_the_law);
  RUN(draws_of_large_variances);
  RUN(coordinates_of_short_vectors_are_independent);
  FINISH();
}
