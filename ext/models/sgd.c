/* sgd.c: see models.h. Tests: tests/models/test_sgd.c */
#include "models/models.h"

#include <math.h>
#include <stdlib.h>

#include "math/math.h"
#include "mechanism/mechanism.h"
#include "noise/noise.h"
#include "sums/layout.h"

/* With so many draws in one call of the sampler, its time does not tell that of a single draw. */
#define NOISE_BLOCK 512

/* ---- losses ---------------------------------------------------------------------------------- */

void descent_derive(struct descent *descent) {
  double clip = descent->clip, curvature = clip * clip, steepest = 1;
  if (descent->loss == LOSS_LOGISTIC) curvature /= 4;
  if (descent->loss != LOSS_LOGISTIC) /* the largest |w.x - y| */
    steepest = isnan(descent->bound) ? INFINITY : descent->radius * descent->clip + descent->bound;
  if (descent->loss == LOSS_HUBER) steepest = fmin(steepest, descent->threshold);
  descent->lipschitz = clip * steepest;
  descent->beta = curvature + descent->l2;
}

double descent_largest_eta(const struct descent *descent) {
  return 2 / (descent->beta + descent->l2);
}

/* The contraction of a step, rounded up slightly, but at most 1: a larger value is a valid bound,
** too. */
static double contraction_at(const struct descent *descent, double eta) {
  double best = sgd_contraction(eta, descent->beta, descent->l2);
  return fmin(best * (1 + 0x1p-50), 1);
}

double descent_contraction(const struct descent *descent) {
  return contraction_at(descent, descent->eta);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void course_shape(const struct course *course, double eta, struct layout *shape) {
  *shape = course->shape;
  if (course->descent->decay > 0) layout_narrow(shape, eta * course->descent->lipschitz);
}

static uint64_t divide_up(uint128 a, uint128 b, uint64_t most) {
  uint128 quotient = a / b + (a % b > 0);
  return quotient < most ? (uint64_t)quotient : most;
}

/* Returns the clock of a step of this sensitivity, which is at least that of the last step; both
** are below 2^32. From LATTICE_VARIANCE_END on there is no noise of this clock. */
static uint64_t clock_of(const struct course *course, uint64_t sensitivity) {
  const struct hop *last = &course->last;
  uint64_t s = last->sensitivity;
  if (!(course->descent->laplace > 0))
    return divide_up((uint128)last->clock * sensitivity * sensitivity, (uint128)s * s,
                     LATTICE_VARIANCE_END) +
           1;
  uint64_t scale =
      divide_up((uint128)laplace_scale(last->clock) * sensitivity, s, DISCRETE_LAPLACE_MAX_SCALE);
  return 2 * scale * scale;
}

static void hop_of(const struct course *course, double i, struct hop *hop) {
  const struct descent *descent = course->descent;
  struct layout shape;
  hop->eta = descent->eta;
  if (descent->decay > 0) { /* divisions and square roots are the same on every machine */
    double age = 1 + descent->decay * (i - 1);
    hop->eta /= descent->power < 1 ? sqrt(age) : age;
  }
  hop->contraction = contraction_at(descent, hop->eta);
  course_shape(course, hop->eta, &shape);
  hop->sensitivity = design_sensitivity(&shape, course->shift, descent_noise_law(descent));
}

void course_make(struct course *course, const struct descent *descent, const struct layout *shape,
                 int shift) {
  double steps = descent->rows + descent->public_rows;
  *course =
      (struct course){descent, *shape, shift, shape->fine_exponent + shift, steps, {0, 0, 0, 0}};
  hop_of(course, steps, &course->last);
  course->last.clock = (uint64_t)descent->variance;
}

void course_hop(const struct course *course, double i, struct hop *hop) {
  *hop = course->last;
  if (!(course->descent->decay > 0) || i >= course->steps) return;
  hop_of(course, i, hop);
  hop->clock = clock_of(course, hop->sensitivity);
}

static double squared_contractions(const struct descent *descent, double count) {
  return geometric_sum(2 * log(descent_contraction(descent)), count);
}

/* They cover the rounding errors of sums and powers, in the direction of privacy. */
#define UP   (1 + 0x1p-40)
#define DOWN (1 - 0x1p-40)

/* ---- the path, for equal steps --------------------------------------------------------------- */

/* Returns T_0 (models.h) of a row that is followed by `after` steps. */
static uint64_t distance_after(const struct descent *descent, const struct layout *shape, int shift,
                               double after) {
  uint64_t step = design_sensitivity(shape, shift, &gaussian_noise);
  double error = 2.5 * sqrt(descent->dim), contraction = descent_contraction(descent);
  if (after == 0) return step;
  double left = pow(contraction, after) * (double)step;
  return (uint64_t)ceil((left + error * geometric_sum(log(contraction), after)) * UP);
}

static uint64_t clock_after(const struct descent *descent, double after) {
  double sum = squared_contractions(descent, after + 1);
  if (after == 0) return (uint64_t)descent->variance;
  return (uint64_t)fmin(descent->variance * (sum * DOWN), 0x1p62);
}

/* T_0^2/(2 clock) of a row with `after` steps after it, as the charge of a release. */
static double rate_after(const struct descent *descent, const struct layout *shape, int shift,
                         double after) {
  return lattice_rate(distance_after(descent, shape, shift, after), clock_after(descent, after));
}

static void equal_rates(const struct descent *descent, const struct layout *shape, int shift,
                        double *rates) {
  double least = INFINITY;
  for (int after = 0; after < (int)descent->public_rows; after++)
    least = fmin(least, rate_after(descent, shape, shift, after));
  for (int i = (int)descent->rows; i >= 1; i--) {
    double after = descent->public_rows + (descent->rows - i);
    least = fmin(least, rate_after(descent, shape, shift, after));
    rates[i - 1] = least;
  }
}

#define MOST_STEPS 1000000 /* descent_diffusible() refuses a descent that needs more steps */

static int equal_diffusible(const struct descent *descent, const struct layout *shape, int shift,
                            uint64_t clock) {
  double before = descent->public_rows, least = INFINITY;
  uint64_t added = clock - clock_after(descent, before);
  double limit = lattice_rate(distance_after(descent, shape, shift, before), clock);
  for (int row = 0; row < (int)before; row++)
    least = fmin(least, rate_after(descent, shape, shift, row));
  for (int row = 0; row < (int)descent->rows && least > limit; row++) {
    /* The distance T_0 of a row that is followed by before + row steps. */
    uint64_t distance = distance_after(descent, shape, shift, before + row);
    if (row >= MOST_STEPS ||
        lattice_rate(distance, clock_after(descent, before + row) + added) > limit)
      return 0;
    least = fmin(least, rate_after(descent, shape, shift, before + row));
  }
  return 1;
}

static void equal_design(const struct descent *descent, const struct layout *shape, double rate,
                         struct design *design, uint64_t *variance) {
  double after = descent->public_rows, sum = squared_contractions(descent, after + 1);
  double gain = sum / pow(descent_contraction(descent), 2 * after);
  /* The rate of the noise of one step. The bound keeps the sensitivity below 2^32. */
  design_make(design, shape, fmin(rate * gain, DESIGN_MAX_RATE), &gaussian_noise);
  design->sensitivity = descent_sensitivity(descent, shape, design->shift);
  *variance = gaussian_noise.clock(design->sensitivity, rate);
  if (after == 0 || *variance == 0) return;
  double each = ceil((double)*variance / (sum * DOWN) * UP) + 1;
  *variance = (uint64_t)fmax(each, (double)LATTICE_MIN_VARIANCE);
}

/* ---- the path, for falling learning rates ---------------------------------------------------- */

/* A walk backward from the end of a descent to a step. The struct describes the path from this step
** to the end, and which part of a distance at this step is left at the end. */
struct way {
  double carried; /* the product of the contractions of later steps */
  /* The distance that the rounding of later steps adds: the sum, over these steps, of the part of e
  ** (models.h) that is left at the end. */
  double rounding;
  double clock;    /* the sum of carried^2 variance over this step and all later steps */
  double distance; /* T_0 of a row that this step reads */
  double own;      /* s^2/variance of this step */
  double margin;   /* bound on the relative error of the sums; 0 after one step */
};

#define NO_WAY ((struct way){1, 0, 0, 0, 0, 0})

/* An upper bound on the relative error of a sum of up to 10^7 positive numbers. */
#define MARGIN 0x1p-28

/* Extends the walk backward from step i + 1 to step i. */
static void way_back(const struct course *course, double i, struct way *way) {
  struct hop hop;
  course_hop(course, i, &hop);
  double s = (double)hop.sensitivity, variance = (double)hop.clock;
  way->clock += way->carried * way->carried * variance;
  way->distance = way->carried * s + way->rounding;
  way->own = s * (s / variance);
  way->margin = way->rounding > 0 ? MARGIN : 0;
  way->rounding += 2.5 * sqrt(course->descent->dim) * way->carried;
  way->carried *= hop.contraction;
}

/* Returns T_0^2/(clock + added), raised by the margin for rounding, with the clock `added` of
** further noise on the last point. */
static double way_on_top(const struct way *way, double added) {
  double distance = way->distance * (1 + way->margin);
  return distance * (distance / (way->clock * (1 - way->margin) + added));
}

/* The smaller of two upper bounds on twice the cost of a row: T_0^2/clock without additional noise,
** and s^2/variance of its own step. */
static double way_ratio(const struct way *way) {
  return fmin(way_on_top(way, 0), way->own);
}

/* Returns twice the cost of the worst private row, and sets *clock to that of the last private
** row. */
static double worst_ratio(const struct course *course, double *clock) {
  struct way way = NO_WAY;
  double worst = 0;
  for (double i = course->steps; i >= 1; i--) {
    way_back(course, i, &way);
    if (i == course->descent->rows) *clock = floor(fmin(way.clock * (1 - MARGIN), 0x1p62));
    if (i <= course->descent->rows) worst = fmax(worst, way_ratio(&way));
  }
  return worst;
}

/* falling_rates() tries paths that end at one of ENDS steps, spaced evenly over the descent. */
#define ENDS 16

static void falling_rates(const struct course *course, double *rates) {
  int rows = (int)course->descent->rows;
  for (int i = 0; i < rows; i++) rates[i] = INFINITY;
  for (int end = 0; end < ENDS; end++) {
    struct way way = NO_WAY;
    double last = course->steps - floor(end * course->steps / ENDS);
    for (double i = last; i >= 1; i--) {
      way_back(course, i, &way);
      if (i > rows) continue;
      double rate = way_ratio(&way) / 2 * (1 + 1 / (6 * course->descent->variance));
      rates[(int)i - 1] = fmin(rates[(int)i - 1], rate);
    }
  }
}

/* Designs the lattice for the last step, at most 2^9 times finer than that for the first step. */
static void falling_lattice(const struct descent *descent, const struct layout *shape, double rate,
                            struct design *design) {
  const struct noise_law *noise = descent_noise_law(descent);
  struct course course;
  struct layout last;
  struct design first;
  course_make(&course, descent, shape, 0);
  course_shape(&course, course.last.eta, &last);
  design_make(&first, shape, rate, noise);
  design_make(design, &last, rate, noise);
  if (design->granularity < first.granularity - 9) design->granularity = first.granularity - 9;
  design->shift = design->granularity - shape->fine_exponent;
  design->sensitivity = design_sensitivity(&last, design->shift, noise);
}

static void falling_design(struct descent *descent, const struct layout *shape, double rate,
                           struct design *design, uint64_t *variance) {
  const struct noise_law *noise = descent_noise_law(descent);
  falling_lattice(descent, shape, rate, design);
  *variance = noise->clock(design->sensitivity, rate);
  if (descent->laplace > 0 || descent->public_rows == 0 || *variance == 0) return;
  for (int i = 0; i < 8; i++) { /* the cost is proportional to 1/variance, except for rounding */
    struct course course;
    double clock;
    descent->variance = (double)*variance;
    course_make(&course, descent, shape, design->shift);
    double ratio = worst_ratio(&course, &clock), s = ceil(sqrt(ratio * clock) * UP);
    double now = lattice_rate((uint64_t)s, (uint64_t)clock);
    design->sensitivity = (uint64_t)s;
    if (i > 0 && now <= rate) return;
    double wanted = ceil((double)*variance * (now / rate) * (1 + 0x1p-40)) + 1;
    if (!(wanted >= (double)LATTICE_MIN_VARIANCE)) wanted = (double)LATTICE_MIN_VARIANCE;
    *variance = wanted < SGD_VARIANCE_END ? (uint64_t)wanted : 0;
    if (*variance == 0) return;
  }
  *variance = 0;
}

/* ---- the path -------------------------------------------------------------------------------- */

uint64_t descent_sensitivity(const struct descent *descent, const struct layout *shape, int shift) {
  struct course course;
  double clock;
  course_make(&course, descent, shape, shift);
  if (descent->decay > 0 && descent->public_rows > 0 && !(descent->laplace > 0))
    return (uint64_t)ceil(sqrt(worst_ratio(&course, &clock) * clock) * UP);
  if (descent->decay > 0 || descent->laplace > 0) return course.last.sensitivity;
  return distance_after(descent, shape, shift, descent->public_rows);
}

uint64_t descent_clock(const struct descent *descent, const struct layout *shape, int shift) {
  struct course course;
  double clock = 0;
  if (descent->public_rows == 0 || descent->laplace > 0) return (uint64_t)descent->variance;
  if (!(descent->decay > 0)) return clock_after(descent, descent->public_rows);
  course_make(&course, descent, shape, shift);
  worst_ratio(&course, &clock);
  return (uint64_t)clock;
}

void descent_rates(const struct descent *descent, const struct layout *shape, int shift,
                   double *rates) {
  struct course course;
  course_make(&course, descent, shape, shift);
  if (descent->decay > 0) {
    falling_rates(&course, rates);
  } else {
    equal_rates(descent, shape, shift, rates);
  }
}

int descent_diffusible(const struct descent *descent, const struct layout *shape, int shift,
                       uint64_t clock) {
  struct course course;
  course_make(&course, descent, shape, shift);
  if (descent->laplace > 0) { /* without decay, all steps have the contraction of the last */
    double root = sqrt(descent->dim), reach = (double)course.last.sensitivity / root;
    return !(descent->decay > 0) &&
           (course.steps == 1 || (course.last.contraction * reach + 1.25 * root) * UP <= reach);
  }
  if (!(descent->decay > 0)) return equal_diffusible(descent, shape, shift, clock);
  double added = (double)(clock - descent_clock(descent, shape, shift));
  double limit = lattice_rate(descent_sensitivity(descent, shape, shift), clock);
  struct way way = NO_WAY;
  for (double i = course.steps; i >= 1; i--) {
    way_back(&course, i, &way);
    double ratio = fmin(way_on_top(&way, added), way_ratio(&way));
    if (i <= descent->rows && ratio / 2 > limit) return 0;
  }
  return 1;
}

void descent_design(const struct descent *descent, const struct layout *shape, double rate,
                    struct design *design, uint64_t *variance) {
  struct descent copy = *descent;
  if (isnan(copy.variance)) copy.variance = 0;
  if (descent->decay > 0) {
    struct course course;
    struct hop first; /* the step with the largest clock */
    falling_design(&copy, shape, rate, design, variance);
    copy.variance = (double)*variance;
    course_make(&course, &copy, shape, design->shift);
    course_hop(&course, 1, &first);
    if (first.clock >= LATTICE_VARIANCE_END) *variance = 0;
  } else if (descent->laplace > 0) {
    design_make(design, shape, rate, &laplace_noise);
    *variance = laplace_noise.clock(design->sensitivity, rate);
  } else {
    equal_design(&copy, shape, rate, design, variance);
  }
}

double descent_noise(const struct descent *descent, const struct layout *shape, int shift) {
  struct course course;
  struct way way = NO_WAY;
  double steps = descent->rows + descent->public_rows;
  if (!(descent->decay > 0)) return descent->variance * squared_contractions(descent, steps) * UP;
  course_make(&course, descent, shape, shift);
  for (double i = steps; i >= 1; i--) way_back(&course, i, &way);
  return way.clock * (1 + MARGIN);
}

/* ---- gradients ------------------------------------------------------------------------------- */

double descent_slope(const struct descent *descent, double margin, double y) {
  if (descent->loss == LOSS_LOGISTIC) { /* 1/(1 + e^-margin), minus the truth */
    double e = exp(-fabs(margin));
    return (margin >= 0 ? 1 : e) / (1 + e) - (y > 0.5);
  }
  double bound = isnan(descent->bound) ? INFINITY : descent->bound;
  double residual = margin - fmin(fmax(y, -bound), bound);
  if (descent->loss == LOSS_SQUARED) return residual;
  return fmin(fmax(residual, -descent->threshold), descent->threshold);
}

/* ---- random stop ----------------------------------------------------------------------------- */

/* Returns an exactly uniform number in 1 .. rows, or 0 if the system provides no random bytes. */
static double random_stop(double rows) {
  uint32_t count = (uint32_t)rows, bits, limit = UINT32_MAX - UINT32_MAX % count;
  do { /* the loop rejects `bits` in the incomplete last range. On average it runs at most twice. */
    if (!entropy_fill(&bits, sizeof bits)) return 0;
  } while (bits >= limit);
  uint32_t stop = bits % count + 1;
  entropy_wipe(&bits, sizeof bits);
  return stop;
}

/* ---- vectors --------------------------------------------------------------------------------- */

/* The function first divides by the largest component, so that no square overflows. */
void descent_clip(const struct descent *descent, double *features) {
  int dim = (int)descent->dim;
  double most = 0, sum = 0;
  for (int j = 0; j < dim; j++) most = fmax(most, fabs(features[j]));
  if (most == 0) return;
  for (int j = 0; j < dim; j++) sum += (features[j] / most) * (features[j] / most);
  double longest = descent->clip / sqrt(sum); /* the largest component after scaling */
  if (most <= longest) return;
  for (int j = 0; j < dim; j++) features[j] = features[j] / most * longest;
}

void ball_project(double radius, const int64_t *point, int dim, int granularity, double *w) {
  double sum = 0, reach = ldexp(radius, -granularity);
  for (int j = 0; j < dim; j++) sum += (double)point[j] * (double)point[j];
  double norm = sqrt(sum);
  for (int j = 0; j < dim; j++)
    w[j] = norm > reach ? radius * ((double)point[j] / norm) : ldexp((double)point[j], granularity);
}

/* ---- training -------------------------------------------------------------------------------- */

struct training {
  const struct descent *descent;
  const struct design *design;
  struct course course;
  struct hop hop;      /* parameters of the last step that was taken */
  struct layout shape; /* layout of the last step that was taken */
  int dim;
  double taken, wanted; /* numbers of steps */
  int failed;           /* 1 if the system provided no random bytes; stays set */
  double *w;            /* coefficients before the last step */
  int128 *totals;       /* M of the last step, in fine steps */
  int128 *gradient;
  int64_t *point; /* U of the last step */
  int64_t *noise; /* draws of noise; the `left` draws from index `next` on are unused */
  size_t block, next, left;
};

struct training *training_open(const struct descent *descent, const struct layout *shape,
                               const struct design *design) {
  struct training *training = calloc(1, sizeof *training);
  if (!training) return 0;
  size_t dim = (size_t)descent->dim;
  training->descent = descent;
  training->design = design;
  course_make(&training->course, descent, shape, design->shift);
  training->dim = (int)dim;
  training->wanted = descent->rows + descent->public_rows;
  /* For equal steps, one call can draw the noise of several steps. */
  int is_equal = !(descent->decay > 0);
  training->block = dim * (is_equal && dim < NOISE_BLOCK ? NOISE_BLOCK / dim : 1);
  training->w = calloc(dim, sizeof *training->w);
  training->totals = calloc(dim, sizeof *training->totals);
  training->gradient = calloc(dim, sizeof *training->gradient);
  training->point = calloc(dim, sizeof *training->point);
  training->noise = calloc(training->block, sizeof *training->noise);
  if (descent->random_stop > 0) training->wanted = random_stop(descent->rows);
  if (training->w && training->totals && training->gradient && training->point && training->noise &&
      training->wanted > 0)
    return training;
  training_close(training);
  return 0;
}

static void discard(void *numbers, size_t bytes) {
  if (numbers) entropy_wipe(numbers, bytes);
  free(numbers);
}

void training_close(struct training *training) {
  if (!training) return;
  size_t dim = (size_t)training->dim;
  discard(training->w, dim * sizeof *training->w);
  discard(training->totals, dim * sizeof *training->totals);
  discard(training->gradient, dim * sizeof *training->gradient);
  discard(training->point, dim * sizeof *training->point);
  discard(training->noise, training->block * sizeof *training->noise);
  free(training);
}

/* Returns the noise of the last step that was taken, or null without random bytes. If steps differ,
** a block is the noise of one step (training_open()). */
static const int64_t *next_noise(struct training *training) {
  const struct noise_law *law = descent_noise_law(training->descent);
  size_t dim = (size_t)training->dim;
  if (training->left == 0 && !training->failed) {
    training->failed = !law->draw(training->hop.clock, training->noise, training->block);
    training->left = training->block;
    training->next = 0;
  }
  if (training->failed) return 0;
  const int64_t *noise = &training->noise[training->next];
  training->next += dim;
  training->left -= dim;
  return noise;
}

/* Sets training->gradient to eta times the gradient, in fine steps, of norm eta * lipschitz at
** most. */
static void take_gradient(struct training *training, double y, double *features) {
  const struct descent *descent = training->descent;
  const struct layout *shape = &training->shape;
  int dim = training->dim;
  double margin = 0;
  descent_clip(descent, features);
  for (int j = 0; j < dim; j++) margin += training->w[j] * features[j];
  double step = training->hop.eta * descent_slope(descent, margin, y);
  for (int j = 0; j < dim; j++)
    training->gradient[j] = fine_steps(step * features[j], shape->scale);
  clip_vector(shape, training->gradient, 1, dim);
}

void training_add(struct training *training, double y, double *features) {
  if (training->failed || training->taken >= training->wanted) return;
  const struct design *design = training->design;
  const int64_t *noise = training->taken > 0 ? next_noise(training) : 0;
  if (noise) { /* add it to M of the last step, and project: the coefficients for this step */
    for (int j = 0; j < training->dim; j++)
      training->point[j] = lattice_round(training->totals[j], design->shift) + noise[j];
    ball_project(training->descent->radius, training->point, training->dim, design->granularity,
                 training->w);
  }
  training->taken++;
  course_hop(&training->course, training->taken, &training->hop);
  course_shape(&training->course, training->hop.eta, &training->shape);
  double keep = 1 - training->hop.eta * training->descent->l2;
  if (features) take_gradient(training, y, features);
  for (int j = 0; j < training->dim; j++) {
    int128 move = features ? training->gradient[j] : 0;
    training->totals[j] = fine_steps(training->w[j] * keep, training->shape.scale) - move;
  }
}

#define REST 16384

int training_rest(struct training *training) {
  for (int i = 0; i <= REST / training->dim; i++) training_add(training, 0, 0);
  return training->taken < training->wanted && !training->failed;
}

int128 *training_totals(struct training *training) {
  while (training_rest(training)) {
  }
  return training->failed ? 0 : training->totals;
}
