/* test_gaussian_table.c: tests the table of discrete_gaussian.c, with random words that the test
** chooses. The functions of csprng.c defined here replace it at link time. The test includes
** discrete_gaussian.c to call its parts.
**
** The first words of a test come from a script, and all later words from a generator with a fixed
** seed. The tests therefore raise no false alarm. Tests of distributions fail below a p-value of
** 1e-9. test_discrete_gaussian.c makes such tests with the system's random bits.
**
** The argument `numbers` prints the numbers that tests/test_gaussian_table.py compares with
** high-precision arithmetic. */
#include <stdlib.h>

#include "check.h"
#include "chi_square.h"
#include "noise/discrete_gaussian.c"
#include "noise/noise.h"
#include "random.h"

#define ALARM 1e-9

/* ---- words of the test's choice -------------------------------------------------------------- */

static uint64_t script[16];
static int scripted, played;
static long blocks;

int csprng_start(struct csprng *bits) {
  memset(bits, 0, sizeof *bits);
  bits->next = CSPRNG_WORDS;
  blocks = 0;
  return 1;
}

void csprng_refill(struct csprng *bits) {
  for (int i = 0; i < CSPRNG_WORDS; i++) {
    bits->block.words[i] = played < scripted ? script[played++] : random_bits();
  }
  bits->next = 0;
  blocks++;
}

void csprng_end(struct csprng *bits) {
  memset(bits, 0, sizeof *bits);
}

static long words_taken(const struct csprng *bits) {
  return blocks * CSPRNG_WORDS - (CSPRNG_WORDS - (long)bits->next);
}

static uint64_t word_of(uint64_t slot, uint64_t unit, int negative, uint64_t attempt,
                        uint64_t place) {
  return slot | unit << 8 | (uint64_t)negative << 26 | attempt << 27 | place << 35;
}

/* Makes one draw from these words. Sets *taken to the number of words that the draw took. */
static int64_t draw_from(uint64_t variance, const uint64_t *words, int count, long *taken) {
  struct csprng bits;
  struct gaussian_law law = gaussian_law_of(variance);
  memcpy(script, words, (size_t)count * sizeof *words);
  scripted = count;
  played = 0;
  csprng_start(&bits);
  int64_t y = draw_gaussian(&bits, &law);
  *taken = words_taken(&bits);
  return y;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Returns the number of differences between the slots and the weights floor(SCALE e_i) + 1, which
** the function computes in long double. */
static int wrong_weights(const struct slot *table) {
  uint32_t units[STRIPS] = {0};
  uint32_t sum = 0;
  int wrong = 0;
  for (unsigned i = 0; i < STRIPS; i++) {
    wrong += table[i].own < 1 || table[i].own > UNITS || table[i].other >= LAST + (i == LAST);
    units[i] += table[i].own;
    units[table[i].other % STRIPS] += UNITS - table[i].own;
  }
  for (unsigned i = 0; i < LAST; i++) {
    long double exact = (long double)SCALE * expl(-(long double)(i * i) / 2048);
    if (i > 0) CHECK(exact - floorl(exact) > 1e-9L && ceill(exact) - exact > 1e-9L, "tie %u", i);
    wrong += units[i] != (uint32_t)floorl(exact) + 1;
    sum += units[i];
  }
  return wrong + (units[LAST] != TOTAL - sum) + (units[LAST] < 1);
}

static void slots_hold_the_weights(void) {
  gaussian_law_of(1);
  CHECK(wrong_weights(slots) == 0, "%d", wrong_weights(slots));
}

/* Control: the test must detect that one of 2^26 units belongs to a wrong strip. Even for the
** largest weight, this is a relative error of only 2^-20. */
static void a_wrong_table_is_seen(void) {
  struct slot wrong[STRIPS];
  for (unsigned i = 0; i < STRIPS; i++) {
    if (slots[i].own == UNITS) continue;
    memcpy(wrong, slots, sizeof wrong);
    wrong[i].own++;
    CHECK(wrong_weights(wrong) > 0, "slot %u", i);
  }
  CHECK(weight(0) >> 20 == 1, "a unit of the first weight is 2^-20 of it");
}

/* If a digit is computed with too little precision, its lower and its upper bound must differ, so
** that the code notices the lack of precision. */
static void want_of_digits_is_noticed(void) {
  struct digit digit;
  CHECK(!digit_from(4, 7, 0, 3, &digit), "four digits of four");
  CHECK(digit_from(4, 7, 0, 1, &digit), "two digits of four");
  CHECK(!digit_from(4, 10495, 49, 0, &digit), "far beyond, one digit of four");
}

/* ---- the first attempt ----------------------------------------------------------------------- */

static const uint64_t variances[] = {
    256,
    257,
    300,
    1000,
    1023,
    1024,
    1025,
    4095,
    4096,
    4097,
    65537,
    (uint64_t)1 << 20,
    ((uint64_t)1 << 20) + 1,
    (uint64_t)1 << 41,
    ((uint64_t)1 << 41) - 1,
    ((uint64_t)1 << 41) + 1,
    847288609443 /* 3^25 */,
    (uint64_t)1 << 53,
    (uint64_t)1 << 61,
    ((uint64_t)1 << 62) - ((uint64_t)1 << 32),
    DISCRETE_GAUSSIAN_MAX_VARIANCE - 1,
    1,
    2,
    5,
    16,
    100,
};
enum { VARIANCES = sizeof variances / sizeof variances[0] };

/* Returns 2048 V gamma at the end of a strip, where gamma is largest. The result is an exact
** integer. */
static uint128 largest(uint64_t variance, uint64_t strip) {
  struct gaussian_law law = gaussian_law_of(variance);
  uint128 y = (uint128)(strip + 1) * law.width - 1;
  return 1024 * y * y - (uint128)(strip * strip) * variance;
}

/* Returns the number of strips in which b - too_small is not an upper bound of gamma. */
static int wrong_bounds(uint64_t too_small) {
  int wrong = 0;
  for (int i = 0; i < VARIANCES; i++) {
    struct gaussian_law law = gaussian_law_of(variances[i]);
    for (uint64_t strip = 0; strip < LAST; strip++) {
      uint128 b = bound(&law, strip) - too_small;
      wrong += b * 8 * variances[i] < largest(variances[i], strip);
    }
  }
  return wrong;
}

static void attempts_are_bounded(void) {
  CHECK(wrong_bounds(0) == 0, "%d", wrong_bounds(0));
  CHECK(wrong_bounds(1) > 0, "bounds are not tight");
  for (int i = 0; i < VARIANCES; i++) {
    struct gaussian_law law = gaussian_law_of(variances[i]);
    CHECK((uint128)1024 * law.width * law.width >= variances[i], "width %d", i);
    CHECK((uint128)1024 * (law.width - 1) * (law.width - 1) < variances[i], "width %d", i);
  }
}

/* Returns whether this frequency agrees with an event of probability p, within 6.1 standard
** deviations (1e-9). */
static int in_keeping(double seen, double total, double p) {
  return fabs(seen - total * p) <= 6.1 * sqrt(total * p * (1 - p));
}

/* The test uses places in the first strips, in a middle strip, in the last strips, and far beyond
** the last strip. gamma is between 0 and 6. */
static void acceptance_is_exp_of_minus_gamma(void) {
  enum { TRIES = 100000 };
  struct csprng bits;
  csprng_start(&bits);
  for (int i = 0; i < VARIANCES; i++) {
    struct gaussian_law law = gaussian_law_of(variances[i]);
    for (uint64_t strip = 1; strip < 600; strip = 3 * strip + 1) {
      uint64_t b = bound(&law, strip);
      for (uint64_t place = 0; place < law.width; place += law.width / 2 + 1) {
        long double y = (long double)(strip * law.width + place);
        long double gamma =
            y * y / (2 * (long double)law.variance) - (long double)(strip * strip) / 2048;
        if (gamma > 6) continue;
        int seen = 0;
        for (int j = 0; j < TRIES; j++) {
          seen += csprng_take(&bits, 8) >= b || accept(&bits, &law, strip, place, b);
        }
        CHECK(in_keeping(seen, TRIES, (double)expl(-gamma)), "case %d, strip %d: %d, not %g", i,
              (int)strip, seen, TRIES * (double)expl(-gamma));
      }
    }
  }
}

/* ---- every branch ---------------------------------------------------------------------------- */

#define SQUARE   ((uint64_t)1 << 20) /* w = 32, D = 0, no excess */
#define PLACE(u) ((uint64_t)(u) << (PLACE_BITS - 5))

/* The word that follows the words under test. With this word the result of a new draw is 96, and
** the draw takes no further words. */
#define NEXT (word_of(3, 9, 0, 255, 0))

static void expect(const char *what, const uint64_t *words, int count, int64_t value, long taken) {
  long took;
  int64_t y = draw_from(SQUARE, words, count, &took);
  CHECK(y == value && took == taken, "%s: %lld from %ld words", what, (long long)y, took);
}

static void most_trials_take_one_word(void) {
  uint64_t own = word_of(3, 5, 0, 255, PLACE(7)), minus = word_of(3, 5, 1, 255, PLACE(7));
  uint64_t zero = word_of(0, 1, 0, 255, 0), minus_zero = word_of(0, 1, 1, 255, 0);
  expect("own strip", (uint64_t[]){own, NEXT}, 2, 103, 1);
  expect("negative", (uint64_t[]){minus, NEXT}, 2, -103, 1);
  expect("zero", (uint64_t[]){zero, NEXT}, 2, 0, 1);
  expect("minus zero", (uint64_t[]){minus_zero, NEXT}, 2, 96, 2);
  CHECK(slots[200].own < UNITS - 1, "slot 200 is all its own");
  uint64_t other = word_of(200, UNITS - 1, 0, 255, PLACE(31));
  expect("other strip", (uint64_t[]){other, NEXT}, 2, slots[200].other * 32 + 31, 1);
}

/* w = 3 does not divide 2^29. The sampler rejects the products 0 and 1 and accepts the next
** product, the first place of strip 3. */
static void excess_is_refused(void) {
  long taken;
  uint64_t words[] = {word_of(3, 5, 0, 255, 0), word_of(3, 5, 0, 255, 1)};
  CHECK(gaussian_law_of(9216).width == 3 && gaussian_law_of(9216).excess == 2, "w %d", 3);
  int64_t y = draw_from(9216, words, 2, &taken);
  CHECK(y == 9 && taken == 2, "%lld from %ld words", (long long)y, taken);
}

/* The trial at an edge continues if 32 bits are below the first digit of the fraction. If these
** bits equal the digit, the next digits decide. */
static void edges_are_compared_digit_by_digit(void) {
  uint64_t edge = word_of(100, 0, 0, 255, PLACE(1));
  uint64_t first = digit_of(100, 0, 0).value, second = digit_of(100, 0, 1).value;
  expect("below", (uint64_t[]){edge, first - 1, NEXT}, 3, 3201, 2);
  expect("above", (uint64_t[]){edge, first + 1, NEXT}, 3, 96, 3);
  expect("tie, below", (uint64_t[]){edge, first | (second - 1) << 32, NEXT}, 3, 3201, 2);
  expect("tie, above", (uint64_t[]){edge, first | (second + 1) << 32, NEXT}, 3, 96, 3);
  expect("edge of zero", (uint64_t[]){word_of(0, 0, 0, 255, PLACE(1)), NEXT}, 2, 96, 2);
}

static void the_last_strip_stands_for_all_beyond(void) {
  uint64_t edge = word_of(LAST, 0, 0, 0, 0), rest = word_of(LAST, 1, 0, 255, 0);
  uint64_t all = ~(uint64_t)0;
  CHECK(slots[LAST].own > 1, "no units to refuse");
  expect("another unit", (uint64_t[]){rest, NEXT}, 2, 96, 2);
  /* 9 bits choose the group and the strip in this group. The digits of the fraction follow. gamma
  ** is 0, so the first attempt of bernoulli() fails for any random bits. The attempt takes 30 bits
  ** or more. */
  long taken;
  int64_t y = draw_from(SQUARE, (uint64_t[]){edge, 0, 0}, 3, &taken);
  CHECK(y == 255 * 32, "first group: %lld", (long long)y);
  y = draw_from(SQUARE, (uint64_t[]){edge, 5 << 1, 0}, 3, &taken);
  CHECK(y == 260 * 32, "fifth beyond: %lld", (long long)y);
  y = draw_from(SQUARE, (uint64_t[]){edge, 1 | 7 << 2, 0, 0, 0, 0, 0, 0, 0}, 9, &taken);
  CHECK(y == (255 + 256 + 7) * 32, "second group: %lld", (long long)y);
  expect("refused", (uint64_t[]){edge, all ^ 1, NEXT}, 3, 96, 3);
  /* The probability is 2^9 SCALE e_i; one bit chooses the group and eight bits choose the strip. */
  uint64_t first = digit_of(LAST, 9, 0).value;
  y = draw_from(SQUARE, (uint64_t[]){edge, (first - 1) << 9, 0}, 3, &taken);
  CHECK(first > 1000 && y == 255 * 32, "below: %lld", (long long)y);
  expect("above", (uint64_t[]){edge, (first + 1) << 9, NEXT}, 3, 96, 3);
}

/* The draw is at the last place of strip 40, where 2048 V gamma = n = 1024 * 31 * 2591. V is 2^20,
** so happens() draws 20 bits and compares them with the quotient n/(8b) or n/2048. If they are
** equal, happens() draws 7 or 11 more bits and compares them with the remainder. */
static void first_attempts_are_decided_in_rationals(void) {
  struct gaussian_law law = gaussian_law_of(SQUARE);
  uint64_t b = bound(&law, 40), last = PLACE(31), none = 0xfffff;
  expect("at the bound", (uint64_t[]){word_of(40, 9, 0, b, last), NEXT}, 2, 1311, 1);
  uint64_t word = word_of(40, 9, 0, b - 1, last);
  expect("fails", (uint64_t[]){word, none, NEXT}, 3, 1311, 2);
  /* The second attempt takes one random bit. If the bit is 1, the attempt fails. If the bit is 0,
  ** an event of probability gamma decides. */
  expect("one success", (uint64_t[]){word, (uint64_t)1 << 20, NEXT}, 3, 96, 3);
  expect("one, then none", (uint64_t[]){word, none << 21, NEXT}, 3, 96, 3);
  expect("two successes", (uint64_t[]){word, (uint64_t)1 << 41, NEXT}, 3, 1311, 2);
  const uint64_t n = 1024 * 31 * 2591;
  uint64_t tie = n / (8 * b) | n % (8 * b) << 20;
  CHECK(b == 11 && n % (8 * b) > 0, "b %d", (int)b);
  expect("tie, fails", (uint64_t[]){word, tie, NEXT}, 3, 1311, 2);
  /* The remainder is now one smaller, so the first attempt succeeds. The next bit, 1, fails the
  ** second attempt. */
  tie -= (uint64_t)1 << 20;
  expect("tie, happens", (uint64_t[]){word, tie | (uint64_t)1 << 27, NEXT}, 3, 96, 3);
  const uint64_t second = n / 2048 << 21 | n % 2048 << 41;
  CHECK(n % 2048 > 0, "no remainder");
  expect("second, fails", (uint64_t[]){word, second, NEXT}, 3, 96, 3);
  /* The next bits choose one of the numbers 0, 1 and 2. They choose 1, so the third attempt
  ** fails. */
  uint64_t third = (second - ((uint64_t)1 << 41)) | (uint64_t)1 << 52;
  expect("second, happens", (uint64_t[]){word, third, NEXT}, 3, 1311, 2);
}

/* ---- laws ------------------------------------------------------------------------------------ */

enum { DRAWS = 1000000 };

static int64_t noise[DRAWS];

static void fill(int64_t *draws, uint64_t variance) {
  struct csprng bits;
  struct gaussian_law law = gaussian_law_of(variance);
  csprng_start(&bits);
  for (int i = 0; i < DRAWS; i++) draws[i] = draw_gaussian(&bits, &law);
}

/* Returns the lower end of a cell. All cells have the same width in sigmas, and cell 1025 is the
** last cell. */
static int64_t cell_start(uint64_t variance, int cell) {
  return (int64_t)ceill((long double)(cell - 512) / 128 * sqrtl((long double)variance));
}

/* Returns the normal probability below a cell. The edge is moved by half a lattice point, and the
** error is then about 1/(24 V). */
static double below_cell(uint64_t variance, int cell) {
  if (cell <= 0 || cell > 1024) return cell > 0;
  long double x = (long double)cell_start(variance, cell) - 0.5L;
  return gsl_cdf_ugaussian_P((double)(x / sqrtl((long double)variance)));
}

/* Returns the p-value of the draws if their distribution is normal. A cell has a width of 1/128
** sigma, which is a quarter of a strip. The test detects a central cell that is off by 9%. */
static double p_value_normal(uint64_t variance, const int64_t *draws) {
  static long counts[1025];
  static int64_t starts[1025];
  static long double exact[1025];
  double scale = 128 / sqrt((double)variance);
  memset(counts, 0, sizeof counts);
  for (int cell = 0; cell < 1025; cell++) {
    starts[cell] = cell_start(variance, cell);
    exact[cell] = below_cell(variance, cell + 1) - below_cell(variance, cell);
  }
  for (int i = 0; i < DRAWS; i++) {
    int cell = (int)fmin(fmax(floor((double)draws[i] * scale) + 512, 0), 1024);
    while (cell > 0 && draws[i] < starts[cell]) cell--;
    while (cell < 1024 && draws[i] >= starts[cell + 1]) cell++;
    counts[cell]++;
  }
  return p_value(counts, exact, 1025, DRAWS);
}

static void large_variances_have_the_shape(void) {
  for (int i = 0; i < VARIANCES; i++) {
    if (variances[i] < 1 << 20) continue;
    fill(noise, variances[i]);
    double p = p_value_normal(variances[i], noise);
    CHECK(p > ALARM, "case %d: p %g", i, p);
  }
}

/* Returns the p-value of the draws against exact probabilities. For a control, the caller passes a
** factor `off` for the variance. */
static double p_value_exact(uint64_t variance, const int64_t *draws, double off) {
  enum { REACH = 1000 };
  static long double exact[2 * REACH + 1];
  static long counts[2 * REACH + 1];
  long double sum = 0;
  memset(counts, 0, sizeof counts);
  for (int y = -REACH; y <= REACH; y++)
    sum += exact[y + REACH] = expl(-(long double)y * y / (2 * off * (long double)variance));
  for (int i = 0; i <= 2 * REACH; i++) exact[i] /= sum;
  for (int i = 0; i < DRAWS; i++) {
    CHECK(llabs(draws[i]) <= REACH, "15 sigma: %lld", (long long)draws[i]);
    if (llabs(draws[i]) <= REACH) counts[draws[i] + REACH]++;
  }
  return p_value(counts, exact, 2 * REACH + 1, DRAWS);
}

static void small_variances_have_the_law(void) {
  for (int i = 0; i < VARIANCES; i++) {
    if (variances[i] >= 5000) continue;
    fill(noise, variances[i]);
    double p = p_value_exact(variances[i], noise, 1);
    CHECK(p > ALARM, "case %d: p %g", i, p);
    CHECK(p_value_exact(variances[i], noise, 1.03) < ALARM, "case %d: 3%% more is not seen", i);
    CHECK(p_value_exact(variances[i], noise, 0.97) < ALARM, "case %d: 3%% less is not seen", i);
  }
}

/* ---- vectors --------------------------------------------------------------------------------- */

/* Returns the number of blocks of words that a call of the sampler takes. */
static double blocks_of(uint64_t variance, size_t count) {
  CHECK(discrete_gaussian_draw(variance, noise, count) == 1, "count %zu", count);
  return (double)blocks;
}

/* A short vector takes a batch of 32 draws for each coordinate, a long vector a single draw. */
static void short_vectors_are_picked_from_batches(void) {
  const uint64_t both[] = {100, (uint64_t)1 << 41};
  for (int i = 0; i < 2; i++) {
    double batch = blocks_of(both[i], 31) / 31, plain = blocks_of(both[i], 100000) / 100000;
    CHECK(batch > 30 * plain && batch < 40 * plain, "case %d: %g and %g", i, batch, plain);
  }
}

/* ---- numbers for another program ------------------------------------------------------------- */

static void print_digit(unsigned strip, unsigned doublings, unsigned place) {
  struct digit digit = digit_of(strip, doublings, place);
  printf("digit %u %u %u %u %u\n", strip, doublings, place, digit.whole, digit.value);
}

static int print_numbers(void) {
  for (size_t n = 4; n <= 32; n *= 2) {
    for (uint64_t strip = 1; strip < 1100; strip += strip < 300 ? 1 : 97) {
      uint32_t x[32];
      power(x, n, strip);
      printf("power %zu %d %llu ", n, (int)strip, (unsigned long long)power_error(n, strip));
      for (size_t i = 0; i < n; i++) printf("%08x", x[i]);
      printf("\n");
    }
  }
  for (unsigned strip = 0; strip < LAST; strip++) printf("weight %u %u\n", strip, weight(strip));
  for (unsigned strip = 1; strip < 1100; strip += 13) {
    for (unsigned doublings = 0; doublings < (strip < LAST ? 1 : 15); doublings += 7) {
      for (unsigned place = 0; place < 12; place++) print_digit(strip, doublings, place);
    }
  }
  print_digit(10495, 49, 0); /* here four more digits are not enough */
  return 0;
}

int main(int count, char **arguments) {
  if (count > 1 && strcmp(arguments[1], "numbers") == 0) return print_numbers();
  RUN(slots_hold_the_weights);
  RUN(a_wrong_table_is_seen);
  RUN(want_of_digits_is_noticed);
  RUN(attempts_are_bounded);
  RUN(acceptance_is_exp_of_minus_gamma);
  RUN(most_trials_take_one_word);
  RUN(excess_is_refused);
  RUN(edges_are_compared_digit_by_digit);
  RUN(the_last_strip_stands_for_all_beyond);
  RUN(first_attempts_are_decided_in_rationals);
  RUN(large_variances_have_the_shape);
  RUN(small_variances_have_the_law);
  RUN(short_vectors_are_picked_from_batches);
  FINISH();
}
