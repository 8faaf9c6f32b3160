/* test_sgd.c: tests models.h. The tests compare every iterate with a descent in long double
** arithmetic, which computes each gradient as a difference of the loss. They find the sensitivity
** of a step by brute force, and check the constants of the losses. They compare the bound for
** public rows with the recursion that defines it.
**
** This file has its own sampler, which replaces discrete_gaussian.c and discrete_laplace.c. The
** noise of every step is therefore known, and a test can choose the coefficients before a step. */
#include "check.h"
#include "families.h"
#include "random.h"

#include <stdlib.h>
#include <string.h>

#include "math/math.h"
#include "models/models.h"
#include "noise/noise.h"

#define MOST_DIM  8
#define MOST_ROWS 60

/* ---- the sampler ----------------------------------------------------------------------------- */

static int64_t script[MOST_DIM * (MOST_ROWS + 2)]; /* the noise of all steps, in order */
static size_t script_length, script_at;
static int out_of_bytes;

/* The calls of the sampler since asked_count was set to 0. */
static struct asked {
  int is_laplace;
  uint64_t variance;
  size_t count;
} asked[400];
static int asked_count;

static int read_script(int is_laplace, uint64_t variance, int64_t *noise, size_t count) {
  if (asked_count < (int)(sizeof asked / sizeof *asked))
    asked[asked_count++] = (struct asked){is_laplace, variance, count};
  if (out_of_bytes) return 0;
  for (size_t i = 0; i < count; i++) noise[i] = script_at < script_length ? script[script_at++] : 0;
  return 1;
}

/* Both kinds of noise come from the script. */
int discrete_gaussian_draw(uint64_t variance, int64_t *noise, size_t count) {
  return read_script(0, variance, noise, count);
}

int discrete_laplace_draw(uint64_t scale, int64_t *noise, size_t count) {
  return read_script(1, 2 * scale * scale, noise, count);
}

int discrete_laplace_step(uint64_t from, uint64_t to, int64_t *noise, size_t count) {
  (void)from, (void)to, (void)noise, (void)count;
  return 0; /* no test makes a step outward, or draws a point between two others */
}

int gaussian_bridge_draw(const struct gaussian_bridge *bridge, const int64_t *inner,
                         const int64_t *outer, int64_t *between, size_t count) {
  (void)bridge, (void)inner, (void)outer, (void)between, (void)count;
  return 0;
}

int laplace_bridge_draw(const struct laplace_bridge *bridge, const int64_t *inner,
                        const int64_t *outer, int64_t *between, size_t count) {
  (void)bridge, (void)inner, (void)outer, (void)between, (void)count;
  return 0;
}

static void write_script(size_t length, double sigma) {
  script_length = length;
  script_at = 0;
  asked_count = 0;
  for (size_t i = 0; i < length; i++) script[i] = (int64_t)llrint(normal() * sigma);
}

/* ---- models and rows ------------------------------------------------------------------------- */

static double log_uniform(double low, double high) {
  return exp(log(low) + uniform() * (log(high) - log(low)));
}

static struct descent random_descent(int rows, int public_rows) {
  struct descent descent = {.loss = (enum loss)(random_bits() % LOSSES),
                            .rows = rows,
                            .public_rows = public_rows,
                            .dim = (double)(1 + random_bits() % MOST_DIM),
                            .clip = log_uniform(1e-3, 1e3),
                            .bound = NAN,
                            .threshold = NAN};
  descent.radius = log_uniform(0.1, 10) / descent.clip;
  descent.l2 = random_bits() % 2 ? 0 : log_uniform(1e-4, 1) * descent.clip * descent.clip;
  if (descent.loss == LOSS_SQUARED || (descent.loss == LOSS_HUBER && random_bits() % 2))
    descent.bound = log_uniform(0.1, 10);
  if (descent.loss == LOSS_HUBER) descent.threshold = log_uniform(0.1, 10);
  descent_derive(&descent);
  descent.eta = descent_largest_eta(&descent) * (random_bits() % 4 ? uniform() * 0.99 + 0.01 : 1);
  return descent;
}

static void lattice_of(struct descent *descent, double rate, struct layout *shape,
                       struct design *design) {
  struct contribution question = {
      .family = &family_sgd, .clip = descent->eta * descent->lipschitz, .size = (int)descent->dim};
  uint64_t variance;
  layout_make(shape, &question, 0, 1);
  descent_design(descent, shape, rate, design, &variance);
  descent->variance = (double)variance;
}

static double norm(const double *v, int count) {
  long double sum = 0;
  for (int j = 0; j < count; j++) sum += (long double)v[j] * v[j];
  return (double)sqrtl(sum);
}

struct row {
  double y, x[MOST_DIM];
  int has_gradient;
};

static struct row random_row(const struct descent *descent) {
  struct row row = {normal() * 2, {0}, random_bits() % 8 > 0};
  int dim = (int)descent->dim;
  for (int j = 0; j < dim; j++) row.x[j] = normal();
  double reach = descent->clip * (random_bits() % 4 ? uniform() : 5); /* some exceed the clip */
  double length = norm(row.x, dim);
  for (int j = 0; j < dim; j++) row.x[j] *= reach / length;
  return row;
}

static void add(struct training *training, const struct row *row) {
  double x[MOST_DIM];
  memcpy(x, row->x, sizeof x);
  training_add(training, row->y, row->has_gradient ? x : 0);
}

/* ---- the reference --------------------------------------------------------------------------- */

static long double loss(const struct descent *descent, long double margin, double y) {
  long double bounded = y;
  if (descent->bound == descent->bound) bounded = fmin(fmax(y, -descent->bound), descent->bound);
  long double residual = fabsl(margin - bounded), threshold = descent->threshold;
  switch (descent->loss) {
  case LOSS_LOGISTIC: return log1pl(expl(y > 0.5 ? -margin : margin));
  case LOSS_SQUARED: return residual * residual / 2;
  default:
    return residual <= threshold ? residual * residual / 2 : threshold * (residual - threshold / 2);
  }
}

/* The slope of the loss, computed from a difference. Its error is about 1e-9, also at the Huber
** kink. */
static long double slope(const struct descent *descent, long double margin, double y) {
  long double h = 1e-9L;
  return (loss(descent, margin + h, y) - loss(descent, margin - h, y)) / (2 * h);
}

struct reference {
  /* `w`: the coefficients before a step. `next`: those after the step, without noise. */
  long double w[MOST_DIM], next[MOST_DIM];
};

static void reference_step(struct reference *reference, const struct descent *descent,
                           const struct row *row) {
  int dim = (int)descent->dim;
  long double scale = 1, margin = 0, length = norm(row->x, dim);
  if (length > descent->clip) scale = descent->clip / length;
  for (int j = 0; j < dim; j++) margin += reference->w[j] * row->x[j] * scale;
  long double force = row->has_gradient ? slope(descent, margin, row->y) : 0;
  for (int j = 0; j < dim; j++)
    reference->next[j] = reference->w[j] -
                         descent->eta * (descent->l2 * reference->w[j] + force * row->x[j] * scale);
}

static void reference_leave(struct reference *reference, const struct descent *descent,
                            const int64_t *noise, int granularity) {
  int dim = (int)descent->dim;
  long double sum = 0;
  for (int j = 0; j < dim; j++) {
    reference->w[j] = reference->next[j] + ldexpl((long double)noise[j], granularity);
    sum += reference->w[j] * reference->w[j];
  }
  long double shrink = sqrtl(sum) > descent->radius ? descent->radius / sqrtl(sum) : 1;
  for (int j = 0; j < dim; j++) reference->w[j] *= shrink;
}

/* Requirement G1 of models.h: checks the iterate after each number of rows. Missing rows must
** give the same iterate as rows without a gradient. */
static void iterates(void) {
  for (int model = 0; model < 120; model++) {
    int rows = 1 + (int)(random_bits() % MOST_ROWS);
    struct descent descent = random_descent(rows, 0);
    struct layout shape;
    struct design design;
    lattice_of(&descent, log_uniform(1e-3, 10), &shape, &design);
    int dim = (int)descent.dim, given = 1 + (int)(random_bits() % (unsigned)rows);
    size_t left = (size_t)(dim * (rows - 1));
    write_script(left, sqrt(descent.variance));
    struct training *training = training_open(&descent, &shape, &design);
    struct reference reference = {{0}, {0}};
    for (int i = 0; i < rows; i++) {
      struct row row = random_row(&descent), nothing = {0};
      if (i < given) add(training, &row);
      reference_step(&reference, &descent, i < given ? &row : &nothing);
      if (i + 1 < rows) reference_leave(&reference, &descent, &script[i * dim], design.granularity);
    }
    struct row more = random_row(&descent);
    if (given == rows) add(training, &more); /* rows beyond the last are ignored */
    const int128 *totals = training_totals(training);
    double tolerance = 1e-6 * (descent.radius + descent.eta * descent.lipschitz) +
                       ldexp(rows, design.granularity - 1); /* each M is rounded to the lattice */
    for (int j = 0; j < dim; j++) {
      double got = ldexp((double)totals[j], shape.fine_exponent);
      CHECK(fabs(got - (double)reference.next[j]) <= tolerance, "loss %d: %g, want %g",
            (int)descent.loss, got, (double)reference.next[j]);
    }
    CHECK(rows == 1 || asked[0].variance == (uint64_t)descent.variance, "another variance");
    training_close(training);
  }
}

/* ---- the sensitivity of a step --------------------------------------------------------------- */

/* Returns a row with unreasonable values. C callers may pass any double as y. */
static struct row wild_row(const struct descent *descent) {
  static const double values[] = {0,      -0.0,     5e-324, -5e-324, 1e308,    -1e308,
                                  1e-300, INFINITY, 1,      -1,      0x1p1000, -INFINITY};
  struct row row = random_row(descent);
  row.y = values[random_bits() % 12];
  if (random_bits() % 8 == 0) row.y = NAN;
  for (int j = 0; j < (int)descent->dim && random_bits() % 2; j++) {
    double x = values[random_bits() % 12];
    row.x[j] = isfinite(x) ? x : 1.7e308;
  }
  return row;
}

/* Computes M of the last step for a descent that is at the given point of the ball before this
** step. */
static void last_step(const struct descent *descent, const struct layout *shape,
                      const struct design *design, const int64_t *point, const struct row *row,
                      int128 *totals) {
  struct descent two = *descent;
  two.rows = 2;
  two.public_rows = 0;
  script_length = (size_t)descent->dim;
  script_at = 0;
  asked_count = 0;
  memcpy(script, point, sizeof *script * script_length);
  struct training *training = training_open(&two, shape, design);
  training_add(training, 0, 0); /* this step moves from 0 to 0, so the point is the noise */
  add(training, row);
  memcpy(totals, training_totals(training), sizeof *totals * script_length);
  training_close(training);
}

static void random_point(const struct descent *descent, int granularity, int64_t *point) {
  int dim = (int)descent->dim;
  double v[MOST_DIM];
  for (int j = 0; j < dim; j++) v[j] = normal();
  double reach = ldexp(descent->radius, -granularity) * uniform() * 1.5 / norm(v, dim);
  for (int j = 0; j < dim; j++) point[j] = (int64_t)llrint(v[j] * reach);
}

/* Returns |a - b|^2 in lattice steps, exactly. */
static uint128 squared_distance(const int128 *a, const int128 *b, int dim, int shift) {
  uint128 sum = 0;
  for (int j = 0; j < dim; j++) {
    int128 moved = (int128)lattice_round(a[j], shift) - lattice_round(b[j], shift);
    sum += lattice_magnitude(moved) * lattice_magnitude(moved);
  }
  return sum;
}

static void sensitivity(void) {
  double largest = 0;
  for (int pair = 0; pair < 20000; pair++) {
    struct descent descent = random_descent(2, 0);
    struct layout shape;
    struct design design;
    lattice_of(&descent, log_uniform(1e-3, 1e3), &shape, &design);
    int64_t point[MOST_DIM];
    random_point(&descent, design.granularity, point);
    struct row a = wild_row(&descent), b = wild_row(&descent);
    if (pair % 4 == 0) { /* the worst case: opposite rows */
      b = a;
      for (int j = 0; j < MOST_DIM; j++) b.x[j] = -a.x[j];
    }
    int128 first[MOST_DIM], second[MOST_DIM];
    last_step(&descent, &shape, &design, point, &a, first);
    last_step(&descent, &shape, &design, point, &b, second);
    uint128 moved = squared_distance(first, second, (int)descent.dim, design.shift);
    uint128 limit = (uint128)design.sensitivity * design.sensitivity;
    CHECK(moved <= limit, "loss %d: moved by %g of %llu", (int)descent.loss, sqrt((double)moved),
          (unsigned long long)design.sensitivity);
    largest = fmax(largest, (double)moved / (double)limit);
  }
  CHECK(largest > 0.95, "the pairs are too tame to show anything: %g", largest);
}

/* A step stays exactly within the ball whose radius is the sensitivity. The gradients and features
** of the rows are as large as possible. For about half of the rows, the rounded step would be
** outside the ball if the code did not correct it. The descent starts at w = 0, so the point is the
** step. */
static void steps_are_within_the_ball(void) {
  int at_the_rim = 0;
  for (int trial = 0; trial < 2000; trial++) {
    struct descent descent = random_descent(1, 0);
    struct layout shape;
    struct design design;
    lattice_of(&descent, log_uniform(1e-4, 10), &shape, &design);
    struct row row = random_row(&descent);
    double length = norm(row.x, (int)descent.dim);
    for (int j = 0; j < (int)descent.dim; j++) row.x[j] *= descent.clip / length;
    row.y = 1e300;
    row.has_gradient = 1;
    struct training *training = training_open(&descent, &shape, &design);
    add(training, &row);
    const int128 *step = training_totals(training);
    uint128 reach = (uint128)shape.blocks[0].reach, size = 0;
    for (int j = 0; j < (int)descent.dim; j++) size += (uint128)(step[j] * step[j]);
    CHECK(size <= reach * reach, "trial %d", trial);
    at_the_rim += sqrt((double)size) > (double)reach * (1 - 1e-9);
    training_close(training);
  }
  CHECK(at_the_rim > 300, "%d steps are as long as they may be", at_the_rim);
}

/* ---- the constants of a loss ----------------------------------------------------------------- */

/* The slope of a loss and the differences of slopes never exceed the constants of this loss, and
** come close to them. */
static void constants(void) {
  for (int model = 0; model < 200; model++) {
    struct descent descent = random_descent(1, 0);
    double reach = descent.radius * descent.clip, steepest = 0, most_curved = 0;
    double curvature = (descent.beta - descent.l2) / (descent.clip * descent.clip);
    for (int i = 0; i < 4000; i++) {
      double margin = reach * (2 * uniform() - 1), y = i % 2 ? 1e3 : -1e3;
      if (i % 4 > 1) y = margin; /* in the quadratic part */
      double h = 1e-4 * reach;
      double here = descent_slope(&descent, margin, y);
      double there = descent_slope(&descent, margin + h, y);
      steepest = fmax(steepest, fabs(here));
      if (i % 4 > 1 || descent.loss == LOSS_LOGISTIC)
        most_curved = fmax(most_curved, fabs(there - here) / h);
      CHECK(fabs(there - here) <= curvature * h * (1 + 1e-9), "loss %d", (int)descent.loss);
    }
    CHECK(steepest * descent.clip <= descent.lipschitz * (1 + 1e-12), "loss %d", (int)descent.loss);
    if (descent.loss != LOSS_LOGISTIC)
      CHECK(steepest * descent.clip >= descent.lipschitz * 0.9, "loss %d: %g of %g",
            (int)descent.loss, steepest * descent.clip, descent.lipschitz);
    if (reach > 1 || descent.loss != LOSS_LOGISTIC)
      CHECK(most_curved >= curvature * 0.9, "loss %d: %g of %g", (int)descent.loss, most_curved,
            curvature);
  }
}

/* ---- public rows ----------------------------------------------------------------------------- */

/* A step takes two points at distance d to points at distance at most L d + 5/4 sqrt(dim). The
** rounding error e of models.h is twice 5/4 sqrt(dim). The other half of e covers the rounding
** of the shifts a_j. */
static void lattice_contraction(void) {
  for (int pair = 0; pair < 20000; pair++) {
    struct descent descent = random_descent(2, 1);
    struct layout shape;
    struct design design;
    lattice_of(&descent, log_uniform(1e-3, 1e3), &shape, &design);
    int dim = (int)descent.dim;
    int64_t a[MOST_DIM], b[MOST_DIM];
    random_point(&descent, design.granularity, a);
    random_point(&descent, design.granularity, b);
    if (pair % 2) /* close to each other, where rounding matters */
      for (int j = 0; j < dim; j++) b[j] = a[j] + (int64_t)(random_bits() % 9) - 4;
    struct row row = random_row(&descent);
    int128 first[MOST_DIM], second[MOST_DIM];
    last_step(&descent, &shape, &design, a, &row, first);
    last_step(&descent, &shape, &design, b, &row, second);
    double before = 0;
    for (int j = 0; j < dim; j++) before += pow((double)(a[j] - b[j]), 2);
    double after = sqrt((double)squared_distance(first, second, dim, design.shift));
    double limit = descent_contraction(&descent) * sqrt(before) + 1.25 * sqrt(dim);
    CHECK(after <= limit, "loss %d: from %g to %g, limit %g", (int)descent.loss, sqrt(before),
          after, limit);
  }
}

/* T is the distance that is left between two descents (models.h). The test computes the
** recursion for T. The shifts a_j = c L^(m-j) make T zero after the last step, and the charge is
** the cost of these shifts. No other shifts that make T zero cost less. */
static void public_rows(void) {
  for (int model = 0; model < 2000; model++) {
    int after = (int)(random_bits() % 50);
    struct descent descent = random_descent(3, after);
    struct layout shape;
    struct design design;
    double rate = log_uniform(1e-3, 1e3);
    lattice_of(&descent, rate, &shape, &design);
    double step = (double)design_sensitivity(&shape, design.shift, &gaussian_noise);
    double contraction = descent_contraction(&descent), error = 2.5 * sqrt(descent.dim);
    double rest = (double)descent_sensitivity(&descent, &shape, design.shift), sum = 0;
    for (int j = 0; j <= after; j++) sum += pow(contraction, 2 * j);
    CHECK(descent_clock(&descent, &shape, design.shift) <= descent.variance * sum,
          "a clock above the noise");
    CHECK((double)descent_clock(&descent, &shape, design.shift) >=
              descent.variance * sum * (1 - 1e-9) - 1,
          "a clock below it");
    double charged = lattice_rate((uint64_t)rest, descent_clock(&descent, &shape, design.shift));
    CHECK(charged <= rate * (1 + 1e-15), "charged %g of %g", charged, rate);
    CHECK(descent.variance == LATTICE_MIN_VARIANCE || charged >= rate * (1 - 1e-5),
          "charged %g of %g", charged, rate);
    for (int trial = 0; trial < 10; trial++) {
      double shift[64], weight = 0, left = step, cost = 0, all = 0;
      for (int j = 0; j <= after; j++) {
        shift[j] = pow(contraction, after - j) * (trial ? uniform() : 1);
        weight += pow(contraction, after - j) * shift[j];
        all = all * contraction + (j ? error : step);
      }
      for (int j = 0; j <= after; j++) {
        double taken = fmin(shift[j] * all / weight, left);
        if (j == after) taken = left;
        cost += taken * taken / (2 * descent.variance);
        left = (left - taken) * contraction + error;
      }
      /* If the rounding errors dominate, T may be zero before the last step. Then the cost is lower
      ** than the charge. */
      if (trial == 0) CHECK(cost <= charged * (1 + 1e-9), "costs %g, charged %g", cost, charged);
      if (trial == 0 && error * after < 1e-4 * step * pow(contraction, after))
        CHECK(cost >= charged * (1 - 1e-3), "costs %g, charged %g", cost, charged);
      if (trial && error * after < 1e-4 * step * pow(contraction, after))
        CHECK(cost >= charged * (1 - 1e-3), "other shifts cost %g, less than %g", cost, charged);
    }
    double rates[3];
    descent_rates(&descent, &shape, design.shift, rates);
    CHECK(rates[0] <= rates[1] && rates[1] <= rates[2] && rates[2] <= charged * (1 + 1e-15),
          "rates %g %g %g of %g", rates[0], rates[1], rates[2], charged);
  }
}

/* If no variance is sufficient, the code sets none (0). It never sets a variance that costs more
** than the rate. */
static void extreme_rates(void) {
  int none = 0;
  for (int model = 0; model < 20000; model++) {
    struct descent descent = random_descent(3, (int)log_uniform(1, SGD_MAX_PUBLIC));
    struct layout shape;
    struct design design;
    double rate = log_uniform(DESIGN_MIN_RATE, DESIGN_MAX_RATE);
    descent.dim = rint(log_uniform(1, LAYOUT_MAX_SIZE));
    lattice_of(&descent, rate, &shape, &design);
    none += descent.variance == 0;
    if (descent.variance == 0) continue;
    double charged =
        lattice_rate(design.sensitivity, descent_clock(&descent, &shape, design.shift));
    CHECK(charged <= rate * (1 + 1e-15), "charged %g of %g", charged, rate);
  }
  CHECK(none > 100 && none < 10000, "%d of 20000 have no noise", none);
}

/* Noise that is added after the last step hides every earlier row at least as much as the last row.
** An exception is noise so large that the rounding in earlier steps matters. The code refuses such
** noise. The test checks each row for the noise that the code admits. Each shift is proportional to
** L^(steps left) and to the noise of its step. The shifts cover all steps or the first few
** steps. */
static void noise_on_top(void) {
  int admitted = 0, refused = 0;
  for (int model = 0; model < 1000; model++) {
    int after = (int)(random_bits() % 4), rows = 1 + (int)(random_bits() % 40);
    struct descent descent = random_descent(rows, after);
    struct layout shape;
    struct design design;
    lattice_of(&descent, log_uniform(1e-6, 10), &shape, &design);
    double ratio = log_uniform(1, 1e8);
    uint64_t clock =
        (uint64_t)fmin((double)descent_clock(&descent, &shape, design.shift) * ratio, 0x1p61);
    double limit = lattice_rate(descent_sensitivity(&descent, &shape, design.shift), clock);
    double contraction = descent_contraction(&descent), error = 2.5 * sqrt(descent.dim);
    double step = (double)design_sensitivity(&shape, design.shift, &gaussian_noise), worst = 0;
    for (int row = 0; row < rows; row++) {
      double best = INFINITY;
      for (int used = 0; used <= after + row; used++) { /* steps after the row's own step */
        double top = used == after + row
                         ? (double)(clock - descent_clock(&descent, &shape, design.shift))
                         : 0;
        double left = step, weight = 0, cost = 0, all = step;
        for (int j = 1; j <= used; j++) all = all * contraction + error;
        for (int j = 0; j <= used; j++)
          weight += pow(contraction, 2 * (used - j)) * (descent.variance + (j == used ? top : 0));
        for (int j = 0; j <= used; j++) {
          double variance = descent.variance + (j == used ? top : 0);
          double taken =
              j == used ? left : fmin(left, pow(contraction, used - j) * variance * all / weight);
          cost += taken * taken / (2 * variance);
          left = (left - taken) * contraction + error;
        }
        best = fmin(best, cost);
      }
      worst = fmax(worst, best);
    }
    if (descent_diffusible(&descent, &shape, design.shift, clock)) {
      admitted++;
      CHECK(worst <= limit * (1 + 1e-9), "a row costs %g of %g", worst, limit);
    } else {
      refused++;
      CHECK(worst >= limit * (1 - 1e-2), "refused, but no row costs more than %g of %g", worst,
            limit);
    }
  }
  CHECK(admitted > 300 && refused > 30, "%d admitted, %d refused", admitted, refused);
}

/* ---- random stop ----------------------------------------------------------------------------- */

/* Every row moves the point by one step of eta C, and there is no noise, so the final point M shows
** how many rows were used. The 8 possible numbers of rows are equally likely. The test trains
** 12,000 models, so each count has a standard deviation of 36. The test allows seven standard
** deviations, which each count exceeds with probability 1e-11. */
static void random_stop(void) {
  struct descent descent = {.loss = LOSS_HUBER,
                            .rows = 8,
                            .dim = 1,
                            .clip = 1,
                            .radius = 1e3,
                            .eta = 0.5,
                            .bound = NAN,
                            .threshold = 1,
                            .random_stop = 1};
  struct layout shape;
  struct design design;
  int counts[9] = {0};
  descent_derive(&descent);
  lattice_of(&descent, 1, &shape, &design);
  script_length = 0;
  for (int i = 0; i < 12000; i++) {
    struct training *training = training_open(&descent, &shape, &design);
    for (int row = 0; row < 12; row++) {
      double x = 1;
      training_add(training, 1e6, &x);
    }
    double taken = ldexp((double)training_totals(training)[0], shape.fine_exponent) / 0.5;
    CHECK(taken == rint(taken) && taken >= 1 && taken <= 8, "%g steps", taken);
    counts[(int)taken]++;
    training_close(training);
  }
  for (int taken = 1; taken <= 8; taken++)
    CHECK(abs(counts[taken] - 1500) < 7 * 36, "%d of 12000 stopped after %d", counts[taken],
          taken);
}

/* Returns theta of Asoodeh et al., Lemma 2, plus the slack of the lattice. */
static long double stick(long double epsilon, long double apart, long double slack) {
  return (erfcl((epsilon / apart - apart / 2) / sqrtl(2)) -
          expl(epsilon) * erfcl((epsilon / apart + apart / 2) / sqrtl(2))) /
             2 +
         slack * (1 + expl(epsilon));
}

/* The reference computes Theorem 5 of Asoodeh et al. in long double arithmetic. It computes a new
** contraction coefficient in each step and uses the path bound at each step. The computed delta is
** never above the delta of the theorem as printed. The code finds the least variance for a given
** delta. */
static void stop_delta(void) {
  for (int model = 0; model < 25; model++) {
    struct descent descent = random_descent(1 + (int)(random_bits() % 1000), 0);
    struct layout shape;
    struct design design;
    struct course course;
    double epsilon = log_uniform(0.1, 5), delta = log_uniform(1e-12, 1e-3), rows = descent.rows;
    descent.random_stop = 1;
    lattice_of(&descent, epsilon * tanh(epsilon / 2), &shape, &design);
    hiding_stop_variance(&descent, &shape, &design, epsilon, delta);
    CHECK(descent.variance >= LATTICE_MIN_VARIANCE, "no variance");
    course_make(&course, &descent, &shape, design.shift);
    long double sigma = sqrtl(descent.variance - 1.0L / 12), root = sqrtl(descent.dim);
    long double slack = gaussian_lattice_slack((uint64_t)descent.variance) * descent.dim;
    long double reach = ldexp(descent.radius, 1 - design.granularity), contraction = 1;
    contraction = descent_contraction(&descent);
    long double moved = (contraction * reach + 1.25L * root) / sigma;
    long double distance = design_sensitivity(&shape, design.shift, &gaussian_noise), variances = 1;
    long double d = stick(epsilon, distance / sigma, slack), printed = d, power = d, sum = d;
    for (int k = 1; k < (int)rows; k++) {
      power *= stick(epsilon, moved, slack);
      printed += power;
      long double now = log1pl(expm1l(epsilon) / d);
      /* From now = 500 on, d is below 1e-214 and adds nothing to the sum. */
      d *= now < 500 ? fminl(stick(now, moved, slack), 1) : 0;
      distance = contraction * distance + 2.5L * root;
      variances = contraction * contraction * variances + 1;
      d = fminl(d, stick(epsilon, distance / (sigma * sqrtl(variances)), slack * (k + 1)));
      sum += d;
    }
    double got = hiding_stop_delta(&course, epsilon);
    CHECK(got <= (double)(printed / rows) * (1 + 1e-6), "above Theorem 5");
    CHECK(got >= (double)(sum / rows) * (1 - 1e-6), "below the sum");
    /* For so few rows, the code computes every step separately. */
    if (rows <= 256) CHECK_CLOSE(got, (double)(sum / rows), 1e-6);
    CHECK(got <= delta, "delta %g above %g", got, delta);
    double *deltas = malloc(sizeof *deltas * (size_t)rows);
    hiding_stop_deltas(&course, epsilon, deltas);
    CHECK(deltas[0] <= got * (1 + 1e-8), "the first row has %g, not %g", deltas[0], got);
    CHECK_CLOSE(deltas[(int)rows - 1],
                (double)(stick(epsilon, design.sensitivity / sigma, slack) / rows), 1e-6);
    free(deltas);
    descent.variance -= 1;
    course_make(&course, &descent, &shape, design.shift);
    CHECK(descent.variance < LATTICE_MIN_VARIANCE || hiding_stop_delta(&course, epsilon) > delta,
          "more noise than needed");
  }
}

/* ---- Laplace noise and falling learning rates ------------------------------------------------ */

/* Returns |a - b| in lattice steps, in the L1 norm. */
static uint64_t sum_distance(const int128 *a, const int128 *b, int dim, int shift) {
  uint64_t sum = 0;
  for (int j = 0; j < dim; j++)
    sum += (uint64_t)llabs(lattice_round(a[j], shift) - lattice_round(b[j], shift));
  return sum;
}

/* No two neighbours are further apart in the L1 norm than the sensitivity, and rows with equal
** features come near this distance. For falling learning rates, each step stays within the ball of
** this step. */
static void sum_sensitivity(void) {
  double largest = 0;
  for (int pair = 0; pair < 20000; pair++) {
    struct descent descent = random_descent(2, 0);
    struct layout shape;
    struct design design;
    int dim = (int)descent.dim;
    descent.laplace = 1;
    lattice_of(&descent, log_uniform(1e-3, 1e2), &shape, &design);
    int64_t point[MOST_DIM];
    random_point(&descent, design.granularity, point);
    struct row a = wild_row(&descent), b = wild_row(&descent);
    if (pair % 2) {
      b = a;
      for (int j = 0; j < dim; j++) a.x[j] = descent.clip, b.x[j] = -descent.clip;
    }
    int128 first[MOST_DIM], second[MOST_DIM];
    last_step(&descent, &shape, &design, point, &a, first);
    last_step(&descent, &shape, &design, point, &b, second);
    uint64_t moved = sum_distance(first, second, dim, design.shift);
    CHECK(moved <= design.sensitivity, "loss %d: moved by %llu of %llu", (int)descent.loss,
          (unsigned long long)moved, (unsigned long long)design.sensitivity);
    largest = fmax(largest, (double)moved / (double)design.sensitivity);
  }
  CHECK(largest > 0.95, "the pairs are too tame to show anything: %g", largest);
}

/* Relative to the noise of its step, no row moves the point further than the last row does. In
** later steps the sensitivity and the noise do not grow, and the contraction factor does not
** fall. */
static void falling_steps(void) {
  for (int model = 0; model < 120; model++) {
    struct descent descent = random_descent(2 + (int)(random_bits() % 300), 0);
    struct layout shape;
    struct design design;
    descent.laplace = model % 2;
    descent.decay = log_uniform(1e-3, 3);
    descent.power = model % 3 ? 0.5 : 1;
    lattice_of(&descent, log_uniform(1e-4, 1e2), &shape, &design);
    if (!(descent.variance >= LATTICE_MIN_VARIANCE)) continue;
    struct course course;
    struct hop before = {0, 0, UINT64_MAX, UINT64_MAX}, hop;
    course_make(&course, &descent, &shape, design.shift);
    CHECK(course.last.sensitivity == design.sensitivity, "the last step");
    for (double i = 1; i <= descent.rows; i++) {
      course_hop(&course, i, &hop);
      double eta = descent.eta / pow(1 + descent.decay * (i - 1), descent.power);
      CHECK_CLOSE(hop.eta, eta, 1e-14);
      CHECK_CLOSE(hop.contraction,
                  fmin(fmax(fabs(1 - eta * descent.l2), fabs(1 - eta * descent.beta)), 1), 1e-12);
      double steps = 2 * ldexp(eta * descent.lipschitz, -course.granularity);
      double root = descent.laplace > 0 ? sqrt(descent.dim) : 1;
      CHECK(hop.sensitivity >= steps * root, "step %g is too small", i);
      CHECK(hop.sensitivity <= steps * root * (1 + 1e-9) + 2 * descent.dim + 2, "step %g", i);
      long double s = hop.sensitivity, last = course.last.sensitivity;
      if (descent.laplace > 0) {
        CHECK(s * laplace_scale(course.last.clock) <= last * laplace_scale(hop.clock), "step %g",
              i);
        CHECK(hop.clock == 2 * laplace_scale(hop.clock) * laplace_scale(hop.clock), "clock");
      } else {
        CHECK(s * s / (hop.clock - 1.0L / 12) <= last * last / (course.last.clock - 1.0L / 12),
              "step %g", i);
      }
      CHECK(hop.sensitivity <= before.sensitivity && hop.clock <= before.clock &&
                hop.contraction >= before.contraction,
            "step %g", i);
      before = hop;
    }
  }
}

/* Each step before the last one asks the sampler for the noise that is charged: of the model's law,
** and with a standard deviation proportional to the learning rate of the step. (The release draws
** the noise of the last step.) */
static void noise_of_every_step(void) {
  for (int model = 0; model < 400; model++) {
    int rows = 2 + (int)(random_bits() % 40), at = -1;
    size_t left = 0; /* draws of asked[at] that no step has used */
    struct descent descent = random_descent(rows, model % 4 > 1 ? 3 : 0);
    struct layout shape;
    struct design design;
    double steps = descent.rows + descent.public_rows;
    descent.laplace = model % 2;
    descent.decay = model % 3 ? log_uniform(1e-3, 1e6) : 0;
    descent.power = model % 5 ? 0.5 : 1;
    lattice_of(&descent, log_uniform(1e-4, 1e2), &shape, &design);
    if (!(descent.variance >= LATTICE_MIN_VARIANCE)) continue;
    write_script(0, 0);
    struct training *training = training_open(&descent, &shape, &design);
    CHECK(training_totals(training) != 0, "no totals");
    training_close(training);
    struct course course;
    struct hop hop;
    course_make(&course, &descent, &shape, design.shift);
    double last = pow(1 + descent.decay * (steps - 1), descent.power);
    for (int i = 1; i < steps; i++) {
      if (left == 0 && ++at < asked_count) left = asked[at].count;
      CHECK(left >= (size_t)descent.dim, "no noise for step %d of model %d", i, model);
      if (left < (size_t)descent.dim) break;
      left -= (size_t)descent.dim;
      const struct asked *draw = &asked[at];
      double eta =
          last / pow(1 + descent.decay * (i - 1), descent.power); /* relative to the last */
      CHECK(draw->is_laplace == (descent.laplace > 0), "step %d of model %d", i, model);
      if (descent.decay <= 3) /* otherwise rounding to the lattice of the last step is visible */
        CHECK_CLOSE((double)draw->variance, descent.variance * eta * eta, 0.02);
      course_hop(&course, i, &hop);
      CHECK(draw->variance == hop.clock, "step %d of model %d", i, model);
      CHECK(draw->variance < LATTICE_VARIANCE_END, "step %d of model %d", i, model);
    }
    CHECK(at == asked_count - 1, "model %d: a call that no step needs", model);
  }
}

/* ---- the ball, and what fails ---------------------------------------------------------------- */

static void projection(void) {
  int64_t point[3] = {300, -400, 0};
  double w[3];
  ball_project(2, point, 3, -8, w); /* 500/256 is inside */
  CHECK(w[0] == 300.0 / 256 && w[1] == -400.0 / 256 && w[2] == 0, "%g %g %g", w[0], w[1], w[2]);
  ball_project(1, point, 3, -8, w);
  CHECK_CLOSE(w[0], 0.6, 1e-15);
  CHECK_CLOSE(w[1], -0.8, 1e-15);
  double most = 0;
  for (int i = 0; i < 1000; i++) {
    for (int j = 0; j < 3; j++) point[j] = (int64_t)(random_bits() >> 2) - ((int64_t)1 << 61);
    ball_project(3, point, 3, -20, w);
    most = fmax(most, fabs(norm(w, 3) - 3));
  }
  CHECK(most < 1e-14, "off the sphere by %g", most);
}

static void no_random_bytes(void) {
  struct descent descent = random_descent(3, 0);
  struct layout shape;
  struct design design;
  lattice_of(&descent, 1, &shape, &design);
  out_of_bytes = 1;
  struct training *training = training_open(&descent, &shape, &design);
  CHECK(training_totals(training) == 0, "totals without noise");
  training_close(training);
  out_of_bytes = 0;
}

/* The distance of a released point from the point without noise agrees with descent_noise(). */
static void noise(void) {
  struct descent descent = {.loss = LOSS_HUBER,
                            .rows = 20,
                            .dim = 2,
                            .clip = 1,
                            .radius = 1e4,
                            .l2 = 0.3,
                            .bound = NAN,
                            .threshold = 1};
  struct layout shape;
  struct design design;
  descent_derive(&descent);
  descent.eta = 0.5;
  lattice_of(&descent, 1, &shape, &design);
  double sum = 0;
  int trials = 20000;
  /* The rows have no gradients, so only l2 moves the coefficients. */
  for (int trial = 0; trial < trials; trial++) {
    write_script(2 * 19, sqrt(descent.variance));
    struct training *training = training_open(&descent, &shape, &design);
    const int128 *totals = training_totals(training);
    for (int j = 0; j < 2; j++)
      sum += pow((double)lattice_round(totals[j], design.shift) + normal() * sqrt(descent.variance),
                 2);
    training_close(training);
  }
  /* The mean of 40000 squares has a standard error of 0.7%. The test allows six standard errors. */
  CHECK_CLOSE(sum / (2 * trials), descent_noise(&descent, &shape, design.shift), 0.043);
}

int main(void) {
  RUN(iterates);
  RUN(sensitivity);
  RUN(steps_are_within_the_ball);
  RUN(constants);
  RUN(lattice_contraction);
  RUN(public_rows);
  RUN(extreme_rates);
  RUN(noise_on_top);
  RUN(random_stop);
  RUN(stop_delta);
  RUN(sum_sensitivity);
  RUN(falling_steps);
  RUN(noise_of_every_step);
  RUN(projection);
  RUN(no_random_bytes);
  RUN(noise);
  FINISH();
}
