/* test_layout.c: tests layout.h. The tests compute sizes and reaches from the definition of each
** family. The possible vectors of a unit form a cone. The tests search the cones for the two units
** with the largest distance. They use values at the ends of every range. */
#include "families.h"
#include "check.h"
#include "random.h"

#include <float.h>
#include <string.h>

#include "base/number.h"
#include "sums/layout.h"

/* ---- sizes ----------------------------------------------------------------------------------- */

/* Checks the number of coordinates in which neighbours can differ. These are the coordinates that
** one unit can change, or two units if a unit is replaced, and at most all coordinates. */
static void sizes(void) {
  /* Of each family: the numbers beside those of a vector, and whether the first one counts. */
  static const int numbers[] = {1, 2, 3, 0, 1, 1, 1, 1, 1, 2, 3, 1, 1, 1};
  static const int counted[] = {0, 1, 1, 0, 1, 0, 0, 1, 0, 1, 1, 1, 0, 0};
  for (int run = 0; run < 8000; run++) {
    enum number family = (enum number)(run % (KEY_TREE + 1));
    int by_unit = run >> 4 & 1, replace = run >> 5 & 1, has_keys = family >= KEY_COUNT;
    int is_private = has_keys && run >> 6 & 1, vector = family == VECTOR || family == VECTOR_MEAN;
    int bins = families[family]->has_bins, tree = families[family]->is_tree;
    int selects = is_private && (family == KEY_SUM || family == KEY_BINS || family == KEY_TREE);
    int levels = 1 + (int)(random_bits() % (has_keys ? 10 : 16));
    struct contribution question = {.family = families[family], .low = -1, .high = 1, .clip = 1};
    question.size = tree ? 1 << levels : vector || bins ? 1 + (int)(random_bits() % 1000) : 0;
    if (run % 11 == 0 && vector) question.size = LAYOUT_MAX_SIZE;
    if (has_keys) question.keys = is_private ? KEYS_PRIVATE : 1 + (int)(random_bits() % 1000);
    if (run % 11 == 0 && question.keys > 0 && !bins) question.keys = LAYOUT_MAX_KEYS;
    if (is_private) question.max_groups = by_unit ? 1 + (int)(random_bits() % 1024) : 1;
    int components =
        numbers[family] + (vector ? question.size : 0) + (family == KEY_SUM && selects);
    int width = (tree   ? 2 * question.size - 2
                 : bins ? question.size
                        : components) +
                (bins && selects);
    int of_row = (tree ? levels : components) + (bins && selects);
    int cells = has_keys ? is_private ? 0 : question.keys : 1;
    int touched = by_unit ? is_private ? question.max_groups * width : cells * width : of_row;
    if (replace) touched *= 2;
    if (!is_private && touched > cells * width) touched = cells * width;
    struct layout shape;
    layout_make(&shape, &question, by_unit, replace);
    CHECK(shape.family == families[family], "run %d", run);
    CHECK(shape.cells == cells, "run %d: %d cells, not %d", run, shape.cells, cells);
    CHECK(shape.components == components, "run %d: %d", run, shape.components);
    CHECK(shape.coordinates == cells * width, "run %d: %d", run, shape.coordinates);
    CHECK(shape.touched == touched, "run %d: %d, not %d", run, shape.touched, touched);
    CHECK(shape.tree.levels == (tree ? levels : 0), "run %d: %d", run, shape.tree.levels);
    CHECK(shape.block_count == 1 + selects, "run %d: %d", run, shape.block_count);
    CHECK(shape.counts == (counted[family] || (family == KEY_SUM && selects)), "run %d", run);
    CHECK(shape.max_groups == question.max_groups, "run %d", run);
  }
}

/* ---- reaches and distances ------------------------------------------------------------------- */

/* The specification of the families, in long double: the norm of a unit, and the distance of two
** units. */
struct ideal {
  long double count;          /* what a row adds to component 0; 0 if this is no count */
  long double norm[2];        /* norms of the blocks */
  long double spread[2];      /* largest distance of two units, divided by the norm */
  int irrational;             /* 1: the norm is irrational, and reaches are two steps larger */
  int clip_is_rows, is_whole; /* 1: the clip counts rows; 1: the reach equals the clip */
};

static struct ideal ideal_of(const struct contribution *question) {
  long double clip = question->clip, right = sqrtl(2), mean = sqrtl(2 + 2 * 0.6L);
  long double slant = sqrtl(1.25L), spread = 1.309531L;
  int levels = 0;
  while (question->size >> (levels + 1)) levels++;
  switch (number_of(question->family)) {
  case SUM: return (struct ideal){0, {clip}, {question->nonnegative ? 1 : 2}, 0, 0, 1};
  case MEAN:
  case KEY_MEAN: return (struct ideal){0.5L, {clip * slant}, {mean}, 1, 1, 0};
  case SPREAD: return (struct ideal){1, {clip * sqrtl(3)}, {spread}, 1, 1, 0};
  case VECTOR: return (struct ideal){0, {clip}, {2}, 0, 0, 1};
  case VECTOR_MEAN: return (struct ideal){clip / 2, {clip * slant}, {mean}, 1, 1, 0};
  case BINS: return (struct ideal){0, {clip}, {right}, 0, 0, 1};
  case TREE: return (struct ideal){0, {clip * sqrtl(levels)}, {right}, 1, 0, 0};
  case KEY_COUNT: return (struct ideal){1, {clip}, {right}, 0, 0, 1};
  default:
    if (question->keys != KEYS_PRIVATE) return (struct ideal){0, {clip}, {2}, 0, 0, 1};
    return (struct ideal){clip / 2, {clip / 2, clip}, {right, 2}, 0, 0, 1};
  }
}

static void check_shape(const struct contribution *question, int by_unit, int replace) {
  struct layout shape;
  layout_make(&shape, question, by_unit, replace);
  struct ideal ideal = ideal_of(question);
  int family = (int)number_of(question->family), exponent, at = 0;
  double clip = question->clip;
  CHECK(frexp(shape.scale, &exponent) == 0.5, "family %d clip %a: %a is no power of two", family,
        clip, shape.scale);
  CHECK(shape.scale == ldexp(1, -shape.fine_exponent), "family %d clip %a", family, clip);
  long double squares = 0, apart = 0;
  for (int i = 0; i < shape.block_count; i++) {
    const struct block *block = &shape.blocks[i];
    long double want = ideal.norm[i] * (long double)shape.scale, got = (long double)block->reach;
    /* The reach is the norm, rounded up by at most one step, plus two steps if the norm is
    ** irrational. */
    CHECK(got >= want * (1 - 0x1p-63L), "family %d clip %a: %Lf of %Lf", family, clip, got, want);
    CHECK(got <= want + 1 + 2 * ideal.irrational + want * 0x1p-52L, "family %d clip %a: %Lf of %Lf",
          family, clip, got, want);
    /* For sums with private keys, the code scales the joint radius of sum and count to 53 bits, so
    ** the reach of the sum alone is not the clip. */
    if (ideal.is_whole && shape.block_count == 1)
      CHECK(got == want, "family %d clip %a: %Lf is not the clip", family, clip, got);
    squares += want * want;
    apart += ideal.spread[i] * ideal.spread[i] * want * want;
    CHECK(block->first == at && block->end > block->first, "family %d: blocks", family);
    at = block->end;
    if (ideal.clip_is_rows) {
      long double rows = question->family == &family_vector_mean ? 1 : clip;
      long double lead = rows * (long double)shape.count_steps;
      CHECK(block->lead_end == 1 && (long double)block->lead_reach <= lead * (1 + 0x1p-53L) &&
                (long double)block->lead_reach > lead - 1 - lead * 0x1p-52L,
            "family %d clip %a: lead %lld", family, clip, (long long)block->lead_reach);
    } else {
      CHECK(block->lead_end == block->end && block->lead_reach <= block->reach &&
                block->lead_reach >= block->reach - 2,
            "family %d: the whole block leads", family);
    }
  }
  CHECK(at == shape.components, "family %d: blocks cover %d components", family, at);
  long double radius = sqrtl(squares);
  CHECK(radius >= 0x1p52L * (1 - 0x1p-52L) && radius < 0x1p53L * (1 + 0x1p-52L),
        "family %d clip %a: radius %La", family, clip, radius);
  if (ideal.count > 0) {
    long double steps = ideal.count * (long double)shape.scale;
    CHECK((long double)shape.count_steps <= steps && (long double)shape.count_steps > steps - 1,
          "family %d clip %a: a row counts %lld, not %Lf", family, clip,
          (long long)shape.count_steps, steps);
    if (question->keys == KEYS_PRIVATE)
      CHECK(shape.count_steps <= shape.blocks[0].lead_reach || clip < 1, "family %d", family);
  }
  long double distance = replace ? sqrtl(apart) : radius, charged = (long double)shape.distance;
  CHECK(charged >= distance, "family %d clip %a replace %d: distance %Lf of %Lf", family, clip,
        replace, charged, distance);
  long double rounded = family == SPREAD ? 8 * clip : 0; /* each row is rounded */
  CHECK(charged <= distance * (1 + 0x1p-49L) + 8 + 12 * sqrtl(shape.touched) + rounded,
        "family %d clip %a replace %d: distance %Lf of %Lf", family, clip, replace, charged,
        distance);
}

/* Compares the layout for the sum norm with its specification: the count of a row, the bound on a
** unit, and the distance of two units. */
static void check_l1(const struct contribution *question, int by_unit, int replace) {
  struct layout shape, euclidean;
  struct contribution same = *question;
  enum number family = number_of(question->family);
  same.family = families[family];
  layout_make(&shape, question, by_unit, replace);
  layout_make(&euclidean, &same, by_unit, replace);
  CHECK(shape.is_l1 && !euclidean.is_l1 && shape.cells == euclidean.cells, "family %d",
        (int)family);
  CHECK(family == TREE ||
            (shape.touched == euclidean.touched && shape.coordinates == euclidean.coordinates),
        "family %d: other sizes", (int)family);
  long double clip = question->clip, count = 0, dimension = question->size, bound = clip;
  if (family == TREE) {
    CHECK(shape.tree.levels == (euclidean.tree.levels + 3) / 4, "%d levels", shape.tree.levels);
    CHECK(shape.touched == (by_unit ? shape.coordinates : (replace ? 2 : 1) * shape.tree.levels) ||
              shape.touched == shape.coordinates,
          "touches %d of %d", shape.touched, shape.coordinates);
    bound *= shape.tree.levels;
  }
  if (family == VECTOR_MEAN) { /* the power of two nearest to d^(-1/3) */
    count = clip * exp2l(roundl(-log2l(dimension) / 3));
    CHECK(fabsl((long double)shape.count_factor - count) <= count * 0x1p-50L, "a count of %g",
          shape.count_factor);
  }
  if (family == KEY_SUM && question->keys == KEYS_PRIVATE) count = clip / 4;
  long double scale = (long double)shape.scale, radius = (bound + count) * scale;
  CHECK(radius >= 0x1p52L * (1 - 0x1p-52L) && radius < 0x1p53L * (1 + 0x1p-52L),
        "family %d clip %g: radius %La", (int)family, question->clip, radius);
  int counts_alike = family == VECTOR_MEAN; /* two units with rows have the same count */
  long double want = radius + (replace ? bound + (counts_alike ? -count : count) : 0) * scale;
  long double got = (long double)shape.distance;
  long double more =
      4 + (counts_alike ? 2 * shape.components + 8 + want * 0x1p-25L : 0) + want * 0x1p-51L;
  CHECK(got >= want - count * scale * 0x1p-50L - 1 && got <= want + more,
        "family %d clip %g replace %d: distance %Lf of %Lf", (int)family, question->clip, replace,
        got, want);
  int shares = family == MEAN || family == KEY_MEAN ? 2 : family == SPREAD ? 3 : 0;
  CHECK(shape.counted == (shares ? shares : shape.counts), "family %d", (int)family);
}

static int is_of_rows(enum number family) { /* Returns whether the clip is a number of rows. */
  return family != SUM && family != VECTOR && family != VECTOR_MEAN && family != KEY_SUM;
}

static void reaches(void) {
  static const double clips[] = {1, 2, 3, 0.5, 10, 1000, 1e6, 0.1, 0x1.fffffffffffffp10};
  static const double extremes[] = {LAYOUT_MIN_CLIP, LAYOUT_MAX_CLIP, 1e-30, 1e30};
  static const int bounds[] = {2, 16, 1024, 65536, 4096};
  for (int family = SUM; family <= KEY_MEAN; family++) {
    for (int i = 0; i < 400; i++) {
      struct contribution question = {.family = families[family], .low = -1, .high = 1};
      question.size = bounds[random_bits() % 5];
      if (family >= KEY_COUNT) {
        question.keys = i % 2 ? KEYS_PRIVATE : 1 + (int)(random_bits() % 1000);
        question.max_groups = i % 2 ? 1 + (int)(random_bits() % LAYOUT_MAX_GROUPS) : 0;
      }
      question.nonnegative = family == SUM && i % 3 == 0;
      question.clip = i < 18 ? clips[i / 2] : exp((uniform() - 0.4) * 25);
      if (i >= 18 && i < 26 && !is_of_rows((enum number)family))
        question.clip = extremes[(i - 18) / 2];
      if (is_of_rows((enum number)family)) question.clip = fmax(question.clip, 0x1p-8);
      for (int flags = 0; flags < 4; flags++) check_shape(&question, flags & 1, flags >> 1);
      question.family = families[family]->l1;
      for (int flags = 0; flags < 4 && question.family; flags++)
        check_l1(&question, flags & 1, flags >> 1);
    }
  }
}

/* ---- cones ----------------------------------------------------------------------------------- */

/* Returns the distance of n (1, a, b) and m (1, c, d). */
static double apart(const double x[6]) {
  double n = x[4], m = x[5];
  return hypot(hypot(n - m, n * x[0] - m * x[2]), n * x[1] - m * x[3]);
}

/* x holds two means for each of two units, and then the numbers n and m of apart(). Moves x into
** the region of possible units. The vector of a unit with many rows is n times (1, mean of u, mean
** of 2u^2 - 1) with n <= 1. The two means can be any point above the parabola. */
static void into_region(double x[6]) {
  for (int i = 0; i < 4; i += 2) {
    x[i] = fmin(fmax(x[i], -1), 1);
    x[i + 1] = fmin(fmax(x[i + 1], 2 * x[i] * x[i] - 1), 1);
  }
  for (int i = 4; i < 6; i++) x[i] = fmin(fmax(x[i], 0), 1);
}

/* Searches for the largest distance of two units of spreads. The search refines many random
** starts. */
static void diameter_of_spreads(void) {
  double worst = 0;
  for (int start = 0; start < 40; start++) {
    double best = 0, at[6];
    for (int m = 0; m < 6; m++) at[m] = 2 * uniform() - 1;
    into_region(at);
    for (int run = 0; run < 20000; run++) {
      double width = pow(0.5, 1 + run / 1000), x[6];
      for (int m = 0; m < 6; m++) x[m] = at[m] + width * (2 * uniform() - 1);
      into_region(x);
      if (apart(x) <= best) continue;
      best = apart(x);
      memcpy(at, x, sizeof at);
    }
    worst = fmax(worst, best);
  }
  struct contribution question = {.family = &family_spread, .clip = 1, .low = 0, .high = 1};
  struct layout shape;
  layout_make(&shape, &question, 1, 1);
  double charged = shape.blocks[0].spread * sqrt(3);
  printf("# spreads: %.9f apart; charged %.9f\n", worst, charged);
  CHECK(worst <= charged && worst > charged * (1 - 1e-5), "%.9f apart", worst);
}

/* The angle between two vectors (1/2, u) and (1/2, v) is largest if u is 1 and v is -1. */
static void cone_of_means(void) {
  double worst = -1;
  for (int i = 0; i <= 1000; i++) {
    for (int j = 0; j <= 1000; j++) {
      double u = i / 500.0 - 1, v = j / 500.0 - 1;
      worst = fmax(worst, -(0.25 + u * v) / sqrt((0.25 + u * u) * (0.25 + v * v)));
    }
  }
  CHECK_CLOSE(worst, 0.6, 1e-15);
  struct contribution question = {.family = &family_mean, .clip = 1, .low = 0, .high = 1};
  struct layout shape;
  layout_make(&shape, &question, 1, 1);
  CHECK(shape.blocks[0].spread >= sqrt(2 + 2 * 0.6), "spread %.17g", shape.blocks[0].spread);
}

/* Each of the two units has one vector for each cell: (|v|/2, v) or (|w|/2, w), for means of
** vectors of any dimension. The count |v|/2 may also be larger. */
static void cones_of_vectors_and_products(void) {
  double worst = -1;
  for (int run = 0; run < 200000; run++) {
    int cells = 1 + run % 3, dimension = 1 + (int)(random_bits() % 3);
    double product = 0, first = 0, second = 0;
    for (int i = 0; i < cells; i++) {
      double v = 0, w = 0, inner = 0, more = run % 2 ? 0 : uniform();
      for (int j = 0; j < dimension; j++) {
        double x = 2 * uniform() - 1, y = run % 5 ? -x * (1 + 0.2 * uniform()) : 2 * uniform() - 1;
        v += x * x;
        w += y * y;
        inner += x * y;
      }
      double a = sqrt(v) / 2 + more, b = sqrt(w) / 2 + more * uniform();
      product += a * b + inner;
      first += a * a + v;
      second += b * b + w;
    }
    worst = fmax(worst, -product / sqrt(first * second));
  }
  CHECK(worst <= 0.6 * (1 + 1e-12) && worst > 0.59, "c = %.17g", worst);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* For any x and range, finite or not, u is the place of x in the range, is in [-1, 1] and does not
** decrease in x. */
static void centred_values(void) {
  static const double ranges[][2] = {
      {-1, 1}, {0, 100}, {0, 2e-310}, {0, 4 * DBL_TRUE_MIN}, {-1e150, 1e150}, {-DBL_MAX, DBL_MAX}};
  for (int run = 0; run < 100000; run++) {
    double exponent = (double)(random_bits() % 2000) - 1070, previous = -1;
    double low = ldexp(2 * uniform() - 1, (int)fmin(exponent, 1000));
    double high = low + ldexp(uniform(), (int)exponent % 1000);
    if (run < 6) low = ranges[run][0], high = ranges[run][1];
    if (!(low < high)) continue;
    double xs[] = {-INFINITY,
                   -DBL_MAX,
                   low - (high - low),
                   low,
                   low / 2 + high / 2,
                   low / 4 + high * 0.75,
                   high,
                   high + (high - low),
                   DBL_MAX,
                   INFINITY};
    long double half = ((long double)high - (long double)low) / 2;
    long double slack = 8 * DBL_EPSILON * (1 + fabsl((long double)low) / half) +
                        4 * (long double)DBL_TRUE_MIN / half;
    for (int i = 0; i < 10; i++) {
      double u = layout_centred(xs[i], low, high);
      long double place = ((long double)xs[i] - (long double)low) / half - 1;
      CHECK(u >= -1 && u <= 1, "%a of [%a, %a]: %a", xs[i], low, high, u);
      CHECK(fabsl((long double)u - fmaxl(fminl(place, 1), -1)) <= slack || high / 2 == low / 2,
            "%a of [%a, %a]: %a", xs[i], low, high, u);
      if (high / 2 - low / 2 > 0) {
        CHECK(u >= previous, "%a of [%a, %a]: %a after %a", xs[i], low, high, u, previous);
        previous = u;
      }
    }
    CHECK(layout_centred(NAN, low, high) == 0, "NaN");
  }
}

static void bins_of_values(void) {
  static double edges[LAYOUT_MAX_BINS + 1];
  static const struct {
    double x, low, high;
    int bins, bin;
  } cases[] = {
      {0.29, 0, 1, 100, 29},
      {0.57, 0, 1, 100, 57},
      {-0.7, -1, 1, 20, 3},
      {0x1.28f5c28f5c28ep-2, 0, 1, 100, 28}, /* the double before 0.29 */
      {0, 0, 10, 10, 0},
      {1, 0, 10, 10, 1},
      {0x1.fffffffffffffp-1, 0, 10, 10, 0},
      {9.5, 0, 10, 10, 9},
      {10, 0, 10, 10, 9},
      {11, 0, 10, 10, 9},
      {-1, 0, 10, 10, 0},
      {INFINITY, 0, 10, 10, 9},
      {-INFINITY, 0, 10, 10, 0},
      {NAN, 0, 10, 10, 0},
      {DBL_MAX, 0, 10, 65536, 65535},
      {-DBL_MAX, 0, 10, 65536, 0},
      {5, 0, 10, 1, 0},
      {0, -DBL_MAX, DBL_MAX, 2, 1},
      {-1e300, -DBL_MAX, DBL_MAX, 2, 0},
      {DBL_MAX, -DBL_MAX, DBL_MAX, 1024, 1023},
      {-DBL_MAX, -DBL_MAX, DBL_MAX, 1024, 0},
      {1e-310, 0, 2e-310, 2, 1},
      {1, 0, 2e-310, 2, 1},
      {-1, 0, 2e-310, 2, 0},
      {-0.0, 0, 1, 4, 0},
      {0.25, 0, 1, 4, 1},
      {0.5, 0, 1, 4, 2},
      {1, 1, 3, 65536, 0},
  };
  for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
    decimal_edges(cases[i].low, cases[i].high, cases[i].bins, edges);
    int bin = layout_bin(cases[i].x, edges, cases[i].bins);
    CHECK(bin == cases[i].bin, "case %d: %d", i, bin);
  }
  /* X is in the bin that long double arithmetic gives, or at an edge of this bin. */
  for (int run = 0; run < 200; run++) {
    double low = ldexp(2 * uniform() - 1, (int)(random_bits() % 60) - 30);
    double high = low + ldexp(uniform(), (int)(random_bits() % 60) - 30);
    if (!(low < high)) continue;
    int bins = 1 + (int)(random_bits() % (run % 10 ? 1000 : LAYOUT_MAX_BINS));
    double x = run % 3 ? low + (high - low) * uniform() : ldexp(2 * uniform() - 1, 40);
    long double place = ((long double)x - low) / ((long double)high - low) * bins;
    decimal_edges(low, high, bins, edges);
    int bin = layout_bin(x, edges, bins);
    CHECK(bin >= 0 && bin < bins, "bin %d of %d", bin, bins);
    long double slack = 4 * bins * DBL_EPSILON * (1 + fabsl(low / ((long double)high - low)));
    CHECK((place >= bin - slack || bin == 0) && (place <= bin + 1 + slack || bin == bins - 1),
          "%a of [%a, %a]: %d of %d, %Lf", x, low, high, bin, bins, place);
    for (int k = 1; k < bins; k++) {
      CHECK(edges[k] >= edges[k - 1] && edges[k] <= high, "edge %d of %d in [%a, %a]", k, bins, low,
            high);
      CHECK(edges[k] == edges[k + 1] || layout_bin(edges[k], edges, bins) == k, "edge %d", k);
    }
  }
}

/* A unit's vector of norm B moves the point of its household by at most B + 2 (1 + sqrt(d)). */
static void a_unit_moves_its_household(void) {
  int bounded = 0;
  for (int run = 0; run < 2000; run++) {
    struct contribution question = {.family = families[run % (KEY_TREE + 1)],
                                    .low = -1,
                                    .high = 1,
                                    .clip = 1 + 9 * uniform(),
                                    .size = 2 << random_bits() % 8,
                                    .keys = 1 + (int)(random_bits() % 100),
                                    .household = HOUSEHOLDS_PARTS + (int)(random_bits() % 5000)};
    struct layout shape;
    layout_make(&shape, &question, 1, 0);
    if (!shape.wide) continue;
    long double reach = (long double)shape.blocks[0].reach;
    long double most = reach + 2 * (1 + sqrtl(shape.touched)),
                distance = (long double)shape.distance;
    CHECK(distance >= most && distance < most + 3, "run %d: %Lg, not %Lg", run, distance, most);
    CHECK((long double)shape.wide == floorl(reach * question.household / HOUSEHOLDS_PARTS),
          "run %d", run);
    bounded++;
  }
  CHECK(bounded > 500, "%d layouts for households", bounded);
}

int main(void) {
  RUN(sizes);
  RUN(reaches);
  RUN(diameter_of_spreads);
  RUN(cone_of_means);
  RUN(cones_of_vectors_and_products);
  RUN(centred_values);
  RUN(bins_of_values);
  RUN(a_unit_moves_its_household);
  FINISH();
}
