/* test_series.c: tests mechanism/mechanism.h. With arguments, the program prints what it
** computes, and tests/test_series_law.py compares it with integers of any length and with dense
** linear algebra. */
#include "check.h"
#include "random.h"
#include "splitmix.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "mechanism/mechanism.h"

static struct series series_of(int periods, const struct noise_law *noise) {
  struct series series;
  if (!series_make(&series, periods, noise)) abort();
  return series;
}

/* ---- the matrix ------------------------------------------------------------------------------ */

/* Every column has norm 1 or a little less, and the multipliers of a point add up to less than 2^67
** (series_coordinate()). */
static void check_matrix(int periods, double near) {
  struct series series = series_of(periods, &gaussian_noise);
  uint128 *sums = calloc((size_t)periods, sizeof *sums);
  if (!sums) abort();
  for (int s = 0; s < periods; s++) {
    uint128 square = 0;
    for (int t = s; t < periods; t++) {
      uint128 m = (uint128)series_multiplier(&series, t, s);
      square += m * m;
      sums[t] += m;
    }
    CHECK(square <= (uint128)1 << 120, "%d periods: column %d is too long", periods, s);
    CHECK((double)square >= ldexp(1 - near, 120), "%d periods: column %d is short", periods, s);
  }
  for (int t = 0; t < periods; t++)
    CHECK(sums[t] < (uint128)1 << 67, "%d periods: point %d", periods, t);
  free(sums);
  series_free(&series);
}

static void columns_are_at_most_1_long(void) {
  for (int periods = 1; periods <= 130; periods++) check_matrix(periods, 1e-7);
  check_matrix(SERIES_MAX_PERIODS, 1e-6);
}

static void nothing_comes_before_its_period(void) {
  struct series series = series_of(9, &gaussian_noise), plain = series_of(9, &laplace_noise);
  for (int t = 0; t < 9; t++) {
    for (int s = 0; s < 9; s++) {
      CHECK((series_multiplier(&series, t, s) > 0) == (s <= t), "point %d, period %d", t, s);
      CHECK(series_multiplier(&plain, t, s) == (int64_t)(s == t) << 60, "plain, %d %d", t, s);
    }
  }
  series_free(&series);
  series_free(&plain);
}

/* ---- readings -------------------------------------------------------------------------------- */

static struct window window_of(const struct series *series, int periods) {
  struct window window;
  if (!window_open(&window, series, periods)) abort();
  return window;
}

static double deviation(struct window *window, int first, int last) {
  window_move(window, first, last);
  return sqrt(window->variance);
}

/* Compares the final total, the largest total and the worst period with known deviations. */
static void check_deviations(int periods, double final, double total, double period) {
  struct series series = series_of(periods, &gaussian_noise);
  struct window window = window_of(&series, periods);
  double most_total = 0, most_period = 0;
  for (int t = 0; t < periods; t++) {
    most_total = fmax(most_total, deviation(&window, 0, t));
    most_period = fmax(most_period, deviation(&window, t, t));
  }
  double last = deviation(&window, 0, periods - 1);
  CHECK(fabs(last - final) <= 0.005, "%d periods: final total %.4f", periods, last);
  CHECK(fabs(most_total - total) <= 0.005, "%d periods: largest total %.4f", periods, most_total);
  CHECK(fabs(most_period - period) <= 0.005, "%d periods: worst period %.4f", periods, most_period);
  window_close(&window);
  series_free(&series);
}

static void deviations_of_totals_and_periods(void) {
  check_deviations(1, 1, 1, 1);
  check_deviations(12, 1.61, 1.70, 1.51);
  check_deviations(52, 1.946, 2.15, 1.71);
}

/* The weights give back every period inside the span once, and no other. */
static void check_window(const struct window *window) {
  const struct series *series = window->series;
  long double squares = 0;
  for (int t = 0; t <= window->last; t++)
    squares += (long double)window->weights[t] * window->weights[t];
  CHECK_CLOSE(window->variance, (double)squares, 1e-14);
  for (int s = 0; s <= window->last; s++) {
    long double part = 0;
    for (int t = s; t <= window->last; t++)
      part += (long double)window->weights[t] * (long double)series_multiplier(series, t, s);
    part = ldexpl(part, -60) - (s >= window->first);
    CHECK(fabsl(part) < 1e-13L, "%d..%d: period %d off by %Lg", window->first, window->last, s,
          part);
  }
}

/* Windows that grow, shrink, slide, go back and jump, with and without a matrix. */
static void readings_are_unbiased(void) {
  enum { PERIODS = 40 };
  const struct noise_law *const laws[] = {&gaussian_noise, &laplace_noise};
  for (int i = 0; i < 2; i++) {
    struct series series = series_of(PERIODS, laws[i]);
    struct window window = window_of(&series, PERIODS);
    for (int first = 0; first < PERIODS; first++) {
      for (int last = first; last < PERIODS; last++) {
        window_move(&window, first, last);
        check_window(&window);
      }
    }
    for (int length = 1; length <= PERIODS; length++) {
      for (int last = length - 1; last < PERIODS; last++) {
        window_move(&window, last - length + 1, last);
        check_window(&window);
      }
    }
    for (int round = 0; round < 2000; round++) {
      int first = (int)(random_bits() % PERIODS);
      window_move(&window, first, first + (int)(random_bits() % (uint64_t)(PERIODS - first)));
      check_window(&window);
    }
    window_close(&window);
    series_free(&series);
  }
}

/* A window that has slid along a long series is the one that begins there. */
static void long_windows_do_not_drift(void) {
  struct series series = series_of(SERIES_MAX_PERIODS, &gaussian_noise);
  struct window window = window_of(&series, SERIES_MAX_PERIODS), anew;
  anew = window_of(&series, SERIES_MAX_PERIODS);
  for (int last = 29; last < SERIES_MAX_PERIODS; last++) {
    window_move(&window, last - 29, last);
    if (last % 271 && last < SERIES_MAX_PERIODS - 1) continue;
    window_move(&anew, 0, 0);
    window_move(&anew, last - 29, last);
    CHECK_CLOSE(window.variance, anew.variance, 1e-12);
    for (int t = 0; t <= last; t++)
      CHECK(fabs(window.weights[t] - anew.weights[t]) < 1e-13, "%d of %d", t, last);
  }
  window_close(&window);
  window_close(&anew);
  series_free(&series);
}

/* ---- coordinates ----------------------------------------------------------------------------- */

/* Sums of any size stay within +-2^62, and a plain series rounds each sum by itself. */
static void the_largest_sums(void) {
  int128 widest = (int128)(LATTICE_SUM), *sums = malloc(sizeof *sums * SERIES_MAX_PERIODS);
  struct series series = series_of(SERIES_MAX_PERIODS, &gaussian_noise);
  struct series plain = series_of(SERIES_MAX_PERIODS, &laplace_noise);
  if (!sums) abort();
  for (int sign = -1; sign <= 1; sign += 2) {
    for (int s = 0; s < SERIES_MAX_PERIODS; s++) sums[s] = sign * widest;
    for (int t = 0; t < SERIES_MAX_PERIODS; t += 273) {
      CHECK(series_coordinate(&series, t, sums, 1, 0) == sign * LATTICE_TOTAL, "point %d", t);
      int64_t got = series_coordinate(&plain, t, sums, 1, 60);
      CHECK(got == sign * ((int64_t)1 << 28), "plain %d: %" PRId64, t, got);
    }
  }
  free(sums);
  series_free(&series);
  series_free(&plain);
}

static void a_plain_series_rounds_like_one_release(void) {
  struct series plain = series_of(6, &laplace_noise);
  int128 sums[12];
  for (int round = 0; round < 2000; round++) {
    for (int i = 0; i < 12; i++) sums[i] = ((int128)random_bits() - INT64_MAX) * (round % 97);
    for (int t = 0; t < 6; t++) {
      int64_t got = series_coordinate(&plain, t, sums + 1, 2, round % 70);
      CHECK(got == lattice_round(sums[2 * t + 1], round % 70), "shift %d", round % 70);
    }
  }
  series_free(&plain);
}

/* ---- layouts --------------------------------------------------------------------------------- */

struct options {
  const struct family *family;
  double clip, rate;
  int keys, nonnegative, diagnose, periods, replace;
  const struct mechanism *mechanism;
};

static void design_series(const struct options *of, struct layout *shape, struct design *design,
                          uint64_t *clock) {
  struct contribution question = {.family = mechanism_family(of->mechanism, of->family),
                                  .clip = of->clip,
                                  .low = -1,
                                  .high = 1,
                                  .keys = of->keys,
                                  .nonnegative = of->nonnegative,
                                  .diagnose = of->diagnose,
                                  .in_sum_norm = of->mechanism->noise->in_sum_norm};
  layout_make(shape, &question, 1, of->replace);
  if (of->periods) {
    struct series series = series_of(of->periods, of->mechanism->noise);
    series_layout(shape, &series, of->replace, of->mechanism->noise);
    series_free(&series);
  }
  struct terms terms = {.shape = shape, .rate = of->rate};
  *clock = of->mechanism->design(of->mechanism, &terms, design);
  terms.shift = design->shift;
  CHECK(of->mechanism->sensitivity(of->mechanism, &terms) == design->sensitivity, "sensitivity");
}

/* The lattice of a series is that of one release with the same clip and options. */
static void the_lattice_of_one_release(void) {
  for (int i = 0; i < 4000; i++) {
    struct options options = {.family = i % 3 == 0   ? &family_sum
                                        : i % 3 == 1 ? &family_mean
                                                     : &family_key_count,
                              .clip = exp(20 * uniform() - 4),
                              .rate = exp(20 * uniform() - 15),
                              .keys = 1 + i % 7,
                              .nonnegative = i % 2,
                              .diagnose = i % 5 == 0,
                              .replace = i % 11 < 5,
                              .mechanism = &gaussian_mechanism};
    struct layout shape;
    struct design once, design;
    uint64_t clock;
    design_series(&options, &shape, &once, &clock);
    options.periods = 1 + i % 400;
    design_series(&options, &shape, &design, &clock);
    CHECK(design.shift == once.shift && design.granularity == once.granularity, "clip %g rate %g",
          options.clip, options.rate);
    CHECK(design.shift >= 0 && design.shift <= 70, "shift %d", design.shift);
    CHECK(design.sensitivity < (uint64_t)1 << 32 && clock > 0, "clip %g rate %g", options.clip,
          options.rate);
  }
}

/* ---- neighbours ------------------------------------------------------------------------------ */

enum { PERIODS = 5, WIDTH = 2 }; /* periods, and most coordinates of a period */

/* One family, as the pairs of coordinates that a unit can have in a period. */
struct shape_of_units {
  const char *name;
  const struct family *family;
  int nonnegative;
  double half_angle; /* of the cone around coordinate 0 in which the pairs lie */
  double least;      /* the part of the sensitivity that occurs if a unit is replaced */
};

/* A count has one coordinate: two units are furthest apart if one counts in the first and the other
** in the last period. */
static const struct shape_of_units units[] = {{"count", &family_sum, 1, 0, 0.98},
                                              {"sum", &family_sum, 0, 0, 0.98},
                                              {"mean", &family_mean, 0, 1.1071487177940904, 0.98},
                                              {"keys", &family_key_count, 1, M_PI / 2, 0.98}};
enum { KINDS_OF_UNITS = 4 };

/* Returns the square of the distance (or the sum of magnitudes) between the points of two data
** sets. `unit` is the difference of their exact sums. */
static double distance_of(const struct series *series, const struct design *design, int is_l1,
                          int width, const int128 *others, const int64_t *unit) {
  int128 with[PERIODS * WIDTH];
  double sum = 0;
  for (int i = 0; i < PERIODS * WIDTH; i++) with[i] = others[i] + unit[i];
  for (int t = 0; t < PERIODS; t++) {
    for (int c = 0; c < width; c++) {
      int64_t a = series_coordinate(series, t, others + c, WIDTH, design->shift);
      double apart = (double)(series_coordinate(series, t, with + c, WIDTH, design->shift) - a);
      sum += is_l1 ? fabs(apart) : apart * apart;
    }
  }
  return sum;
}

/* Adds a vector of norm `left` in one period. The vector lies at the edge of the unit's cone or
** anywhere in it. Where the family is not non-negative and has one coordinate, it has any sign. */
static void add_part(int64_t *unit, const struct shape_of_units *of, int t, double left, int is_l1,
                     int sign) {
  int edge = (int)(random_bits() % 3);
  double angle = of->half_angle * (edge == 2 ? uniform() : edge), x = cos(angle), y = sin(angle);
  if (of->half_angle > 0 && !of->nonnegative && random_bits() % 2) y = -y;
  if (of->half_angle == 0 && !of->nonnegative && random_bits() % 2) x = -x;
  double norm = is_l1 ? fabs(x) + fabs(y) : 1;
  unit[WIDTH * t] += sign * (int64_t)(left * x / norm * (1 - 1e-15));
  unit[WIDTH * t + 1] += sign * (int64_t)(left * y / norm * (1 - 1e-15));
}

/* Adds a unit that counts all it may, in one period or in several. */
static void add_unit(int64_t *unit, const struct shape_of_units *of, double reach, int is_l1,
                     int sign) {
  double left = reach;
  for (int t = 0; t < PERIODS; t++) {
    if (random_bits() % 2) continue;
    double part = random_bits() % 2 ? left : left * uniform();
    add_part(unit, of, t, part, is_l1, sign);
    left -= part;
  }
}

/* Compares the points of many pairs of neighbours with the sensitivity. Returns the largest
** ratio. */
static double check_neighbours(const struct shape_of_units *of, int replace,
                               const struct mechanism *mechanism, double rate) {
  struct options options = {.family = of->family,
                            .clip = 12,
                            .rate = rate,
                            .keys = WIDTH,
                            .nonnegative = of->nonnegative,
                            .periods = PERIODS,
                            .replace = replace,
                            .mechanism = mechanism};
  struct layout shape;
  struct design design;
  uint64_t clock;
  design_series(&options, &shape, &design, &clock);
  int is_l1 = mechanism->noise->in_sum_norm;
  struct series series = series_of(PERIODS, mechanism->noise);
  double reach = (double)series_reach(&shape), s = (double)design.sensitivity, most = 0;
  double bound = is_l1 ? s : s * s;
  for (int round = 0; round < 10000; round++) {
    int128 others[PERIODS * WIDTH];
    int64_t unit[PERIODS * WIDTH] = {0};
    for (int i = 0; i < PERIODS * WIDTH; i++) others[i] = (int128)(random_bits() >> 4);
    if (round % 4 == 0) { /* all in the first period, against all in the last one */
      add_part(unit, of, 0, reach, is_l1, 1);
      if (replace) add_part(unit, of, PERIODS - 1, reach, is_l1, -1);
    } else {
      add_unit(unit, of, reach, is_l1, 1);
      if (replace) add_unit(unit, of, reach, is_l1, -1);
    }
    double distance = distance_of(&series, &design, is_l1, shape.coordinates, others, unit);
    CHECK(distance <= bound, "%s: %g of the sensitivity", of->name, distance / bound);
    most = fmax(most, distance / bound);
  }
  series_free(&series);
  return is_l1 ? most : sqrt(most);
}

/* No pair of neighbours is further apart than charged, and some pair uses almost all of it. */
static void neighbours_stay_within_the_sensitivity(void) {
  const double rates[] = {1e3, 1, 1e-3};
  for (int k = 0; k < KINDS_OF_UNITS; k++) {
    const struct shape_of_units *of = &units[k];
    for (int i = 0; i < 3; i++) {
      double added = check_neighbours(of, 0, &gaussian_mechanism, rates[i]);
      CHECK(added > 0.99, "%s, rate %g: only %g occurs", of->name, rates[i], added);
      double replaced = check_neighbours(of, 1, &gaussian_mechanism, rates[i]);
      CHECK(replaced > of->least, "%s, rate %g: only %g occurs", of->name, rates[i], replaced);
    }
  }
}

/* In the sum norm, a mean has two coordinates that are not negative (families.c). */
static void neighbours_in_the_sum_norm(void) {
  for (int k = 0; k < KINDS_OF_UNITS; k++) {
    struct shape_of_units of = units[k];
    if (of.family == &family_mean) of.nonnegative = 1, of.half_angle = M_PI / 2;
    for (int replace = 0; replace <= 1; replace++) {
      double found = check_neighbours(&of, replace, &laplace_mechanism, 1);
      CHECK(found > 0.98, "%s: only %g occurs", of.name, found);
    }
  }
}

/* Roundings count most where neighbours are a few steps apart. The test takes all sums of the other
** rows, up to whole steps, and all units of one cell that count at most `reach` in three
** periods. */
static double check_roundings(int reach, int shift) {
  struct layout shape = {.distance = (uint64_t)reach, .periods = 3, .touched = 3};
  struct design design = {.shift = shift};
  struct series series = series_of(3, &gaussian_noise);
  int side = 1 << shift, most = 0;
  double s = (double)design_sensitivity(&shape, shift, &gaussian_noise);
  for (int unit = 0; unit < (2 * reach + 1) * (2 * reach + 1) * (2 * reach + 1); unit++) {
    int u[3] = {unit % (2 * reach + 1) - reach, unit / (2 * reach + 1) % (2 * reach + 1) - reach,
                unit / (2 * reach + 1) / (2 * reach + 1) - reach};
    if (abs(u[0]) + abs(u[1]) + abs(u[2]) > reach) continue;
    for (int others = 0; others < side * side * side; others++) {
      int128 sums[3] = {others % side, others / side % side, others / side / side};
      int128 with[3] = {sums[0] + u[0], sums[1] + u[1], sums[2] + u[2]};
      int square = 0;
      for (int t = 0; t < 3; t++) {
        int apart = (int)(series_coordinate(&series, t, with, 1, design.shift) -
                          series_coordinate(&series, t, sums, 1, design.shift));
        square += apart * apart;
      }
      if (square > most) most = square;
    }
  }
  series_free(&series);
  CHECK(most <= s * s, "reach %d, shift %d: %d of %g", reach, shift, most, s * s);
  return sqrt(most) - floor(ldexp(reach, -shift));
}

/* The steps for roundings are needed: without them, the sensitivity would be too small. */
static void roundings_stay_within_the_sensitivity(void) {
  double most = 0;
  for (int shift = 1; shift <= 3; shift++)
    for (int reach = 1; reach <= 6; reach++) most = fmax(most, check_roundings(reach, shift));
  CHECK(most > 1.7, "roundings add %g", most);
}

/* ---- adaptive data --------------------------------------------------------------------------- */

/* An adversary chooses the data of each period after seeing all points before. It is a fixed random
** function of these points. In one world a unit takes part, which counts at most REACH from the
** first to the last period. The test adds up the Renyi divergence of the two worlds over all points
** whose noise is at most REST. */
enum { SEEN = 3, REACH = 12, SHIFT = 2, REST = 45 };

struct worlds {
  const struct series *series;
  uint64_t adversary;
  double variance, alpha;
  /* The masses of discrete Gaussian noise from -2 REST to 2 REST, and two powers of them. */
  double mass[4 * REST + 1], power[4 * REST + 1], inverse[4 * REST + 1];
  double longest, mean; /* the largest and the mean square of the shifts of all points */
};

struct history {
  int128 sums[SEEN], with[SEEN]; /* exact sums of the periods without and with the unit */
  uint64_t seen;                 /* a hash of the points */
  int left, square;              /* what the unit may still count; squares of the shifts so far */
};

static void choose_data(const struct worlds *worlds, struct history *past, int t) {
  uint64_t state = worlds->adversary ^ past->seen;
  past->sums[t] = (int128)(splitmix(&state) % 1000);
  int part = (int)(splitmix(&state) % (uint64_t)(past->left + 1));
  if (splitmix(&state) % 2) part = past->left;
  past->left -= part;
  past->with[t] = past->sums[t] + (splitmix(&state) % 2 ? part : -part);
}

/* Returns the mean of (the ratio of the probabilities of the points t, t + 1, ...)^alpha, given the
** points before. `weight` is the probability of the points before. */
static double moment(struct worlds *worlds, struct history past, int t, double weight) {
  if (t == SEEN) {
    worlds->longest = fmax(worlds->longest, past.square);
    worlds->mean += weight * past.square;
    return 1;
  }
  choose_data(worlds, &past, t);
  int64_t point = series_coordinate(worlds->series, t, past.sums, 1, SHIFT);
  int shift = (int)(series_coordinate(worlds->series, t, past.with, 1, SHIFT) - point);
  past.square += shift * shift;
  double sum = 0;
  for (int z = -REST; z <= REST; z++) {
    struct history next = past;
    uint64_t state = past.seen ^ (uint64_t)(point + z);
    next.seen = splitmix(&state);
    int at = z + 2 * REST;
    double part = worlds->power[at - shift] * worlds->inverse[at];
    sum += part * moment(worlds, next, t + 1, weight * worlds->mass[at]);
  }
  return sum;
}

/* On every history the squares of the shifts add up to at most s^2, and the divergence is at most
** alpha s^2/(2V), as if the shifts were fixed. Many adversaries reach the bound that belongs to
** their longest shift, and the mean of the squares is no bound. */
static void adaptive_data_cost_no_more(void) {
  struct series series = series_of(SEEN, &gaussian_noise);
  struct layout shape = {.distance = REACH, .periods = SEEN, .touched = SEEN};
  double s = (double)design_sensitivity(&shape, SHIFT, &gaussian_noise), most = 0;
  int above_mean = 0;
  for (uint64_t adversary = 1; adversary <= 60; adversary++) {
    struct worlds worlds = {&series, .adversary = adversary << 40};
    worlds.variance = adversary % 2 ? 9 : 14;
    worlds.alpha = adversary % 3 == 0 ? 1.25 : adversary % 3 == 1 ? 2 : 4;
    double total = 0;
    for (int z = -2 * REST; z <= 2 * REST; z++) total += exp(-z * z / (2 * worlds.variance));
    for (int z = -2 * REST; z <= 2 * REST; z++) {
      double mass = worlds.mass[z + 2 * REST] = exp(-z * z / (2 * worlds.variance)) / total;
      worlds.power[z + 2 * REST] = pow(mass, worlds.alpha);
      worlds.inverse[z + 2 * REST] = pow(mass, 1 - worlds.alpha);
    }
    double sum = moment(&worlds, (struct history){.left = REACH}, 0, 1);
    double divergence = log(sum) / (worlds.alpha - 1);
    double part = divergence / (worlds.alpha / (2 * worlds.variance));
    CHECK(worlds.longest <= s * s, "%g of %g", worlds.longest, s * s);
    CHECK(part <= worlds.longest * (1 + 1e-9), "adversary %d: %.12g of %.12g", (int)adversary, part,
          worlds.longest);
    most = fmax(most, part / worlds.longest);
    above_mean += part > worlds.mean * 1.05;
  }
  CHECK(most > 0.9, "only %g of the bound occurs", most);
  CHECK(above_mean > 10, "%d adversaries gain by choosing", above_mean);
  series_free(&series);
}

/* ---- numbers for tests/test_series_law.py ---------------------------------------------------- */

static int128 wide(const char *text) {
  int128 x = 0;
  for (const char *digit = text + (*text == '-'); *digit; digit++) x = 10 * x + (*digit - '0');
  return *text == '-' ? -x : x;
}

/* multipliers T: writes the rows 2^60 C_t0 ... 2^60 C_tt as 64-bit integers of this machine. */
static void print_multipliers(int periods) {
  struct series series = series_of(periods, &gaussian_noise);
  uint64_t row[SERIES_MAX_PERIODS];
  for (int t = 0; t < periods; t++) {
    for (int s = 0; s <= t; s++) row[s] = (uint64_t)series_multiplier(&series, t, s);
    fwrite(row, sizeof *row, (size_t)t + 1, stdout);
  }
  series_free(&series);
}

/* reading T first last: prints the variance and the weights. */
static void print_reading(int periods, int first, int last) {
  struct series series = series_of(periods, &gaussian_noise);
  struct window window = window_of(&series, last + 1);
  window_move(&window, first, last);
  printf("%.17g\n", window.variance);
  for (int t = 0; t <= last; t++) printf("%.17g\n", window.weights[t]);
  window_close(&window);
  series_free(&series);
}

/* coordinates T shift x_0 x_1 ...: prints a coordinate of every point. */
static void print_coordinates(int periods, int shift, char **texts) {
  struct series series = series_of(periods, &gaussian_noise);
  int128 sums[64];
  for (int s = 0; s < periods && s < 64; s++) sums[s] = wide(texts[s]);
  for (int t = 0; t < periods && t < 64; t++)
    printf("%" PRId64 "\n", series_coordinate(&series, t, sums, 1, shift));
  series_free(&series);
}

/* design family mechanism clip rate keys nonnegative diagnose periods replace: prints B, the steps
** of a diagnose count, the exponents of both lattices, s, the clock and the rate that is
** charged. */
static void print_design(char **words) {
  struct options options = {.family = !strcmp(words[0], "sum")     ? &family_sum
                                      : !strcmp(words[0], "mean")  ? &family_mean
                                      : !strcmp(words[0], "count") ? &family_key_count
                                                                   : &family_key_mean,
                            .mechanism = !strcmp(words[1], "laplace") ? &laplace_mechanism
                                                                      : &gaussian_mechanism,
                            .clip = strtod(words[2], 0),
                            .rate = strtod(words[3], 0),
                            .keys = atoi(words[4]),
                            .nonnegative = atoi(words[5]),
                            .diagnose = atoi(words[6]),
                            .periods = atoi(words[7]),
                            .replace = atoi(words[8])};
  struct layout shape;
  struct design design;
  uint64_t clock;
  design_series(&options, &shape, &design, &clock);
  printf("%" PRId64 " %" PRId64 " %d %d %d %" PRIu64 " %" PRIu64 " %.17g\n", series_reach(&shape),
         shape.ladder.steps, shape.fine_exponent, design.granularity, shape.touched,
         design.sensitivity, clock, options.mechanism->noise->rate(design.sensitivity, clock));
}

int main(int count, char **words) {
  if (count > 1) {
    int periods = count > 2 ? atoi(words[2]) : 0;
    if (!strcmp(words[1], "multipliers")) print_multipliers(periods);
    if (!strcmp(words[1], "reading")) print_reading(periods, atoi(words[3]), atoi(words[4]));
    if (!strcmp(words[1], "coordinates")) print_coordinates(periods, atoi(words[3]), words + 4);
    if (!strcmp(words[1], "design")) print_design(words + 2);
    return check_failures > 0;
  }
  RUN(columns_are_at_most_1_long);
  RUN(nothing_comes_before_its_period);
  RUN(deviations_of_totals_and_periods);
  RUN(readings_are_unbiased);
  RUN(long_windows_do_not_drift);
  RUN(the_largest_sums);
  RUN(a_plain_series_rounds_like_one_release);
  RUN(the_lattice_of_one_release);
  RUN(neighbours_stay_within_the_sensitivity);
  RUN(neighbours_in_the_sum_norm);
  RUN(roundings_stay_within_the_sensitivity);
  RUN(adaptive_data_cost_no_more);
  FINISH();
}
