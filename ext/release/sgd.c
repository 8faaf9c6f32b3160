/* sgd.c: see sgd.h. */
#include "release/sgd.h"

#include <math.h>
#include <stdlib.h>

#include "math/iteration.h"
#include "math/rounding.h"
#include "noise/entropy.h"
#include "noise/discrete_gaussian.h"
#include "release/clip.h"

/* Numbers that the sampler is asked for at a time: so many that no single one shows in its time. */
#define NOISE_BLOCK 512

/* ---- losses ---------------------------------------------------------------------------------- */

/* The largest |w.x - y|; infinite where y has no bound. */
static double largest_residual(const struct descent *descent) {
  if (isnan(descent->bound)) return INFINITY;
  return descent->radius * descent->clip + descent->bound;
}

void descent_derive(struct descent *descent) {
  double clip = descent->clip, curvature = clip * clip, steepest = 1;
  if (descent->loss == LOSS_LOGISTIC) curvature /= 4;
  if (descent->loss != LOSS_LOGISTIC) steepest = largest_residual(descent);
  if (descent->loss == LOSS_HUBER) steepest = fmin(steepest, descent->threshold);
  descent->lipschitz = clip * steepest;
  descent->beta = curvature + descent->l2;
}

double descent_largest_eta(const struct descent *descent) {
  return 2 / (descent->beta + descent->l2);
}

/* A little above what it is: any larger one is valid, and powers of it are taken. */
double descent_contraction(const struct descent *descent) {
  double best = sgd_contraction(descent->eta, descent->beta, descent->l2);
  return fmin(best * (1 + 0x1p-50), 1);
}

/* sum of contraction^(2j) over j = 0 .. count - 1 */
static double squared_contractions(const struct descent *descent, double count) {
  double log_square = 2 * log(descent_contraction(descent));
  if (log_square == -INFINITY) return 1;
  return log_square < 0 ? expm1(count * log_square) / expm1(log_square) : count;
}

/* 1 + L + ... + L^(count - 1) */
static double contractions(const struct descent *descent, double count) {
  double logarithm = log(descent_contraction(descent));
  if (logarithm == -INFINITY) return fmin(count, 1);
  return logarithm < 0 ? expm1(count * logarithm) / expm1(logarithm) : count;
}

/* Rounding of sums and powers: all of it is in the direction of privacy. */
#define UP   (1 + 0x1p-40)
#define DOWN (1 - 0x1p-40)

uint64_t descent_sensitivity(const struct descent *descent, const struct shape *shape, int shift) {
  uint64_t step = design_sensitivity(shape, shift);
  double after = descent->public_rows, error = 2.5 * sqrt(descent->dim);
  if (after == 0) return step;
  double left = pow(descent_contraction(descent), after) * (double)step;
  return (uint64_t)ceil((left + error * contractions(descent, after)) * UP);
}

uint64_t descent_clock(const struct descent *descent) {
  double sum = squared_contractions(descent, descent->public_rows + 1);
  if (descent->public_rows == 0) return (uint64_t)descent->variance;
  return (uint64_t)fmin(descent->variance * (sum * DOWN), 0x1p62);
}

/* T_0^2/(2 clock) after `after` steps, as a release of that sensitivity and clock is charged. */
static double rate_after(const struct descent *descent, const struct shape *shape, int shift,
                         double after) {
  struct descent shorter = *descent;
  shorter.public_rows = after;
  return lattice_rate(descent_sensitivity(&shorter, shape, shift), descent_clock(&shorter));
}

void descent_rates(const struct descent *descent, const struct shape *shape, int shift,
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

#define MOST_STEPS 1000000 /* that are looked at; more are refused */

int descent_diffusible(const struct descent *descent, const struct shape *shape, int shift,
                       uint64_t clock) {
  struct descent shorter = *descent;
  double before = descent->public_rows, least = INFINITY;
  uint64_t added = clock - descent_clock(descent);
  double limit = lattice_rate(descent_sensitivity(descent, shape, shift), clock);
  for (int row = 0; row < (int)before; row++)
    least = fmin(least, rate_after(descent, shape, shift, row));
  for (int row = 0; row < (int)descent->rows && least > limit; row++) {
    shorter.public_rows = before + row; /* steps after it */
    uint64_t sensitivity = descent_sensitivity(&shorter, shape, shift);
    if (row >= MOST_STEPS || lattice_rate(sensitivity, descent_clock(&shorter) + added) > limit)
      return 0;
    least = fmin(least, rate_after(descent, shape, shift, before + row));
  }
  return 1;
}

/* Rates per step up to which the lattice of design_make() keeps a sensitivity below 2^32. */
static double rate_of_step(const struct descent *descent, double rate) {
  double after = descent->public_rows;
  double sum = squared_contractions(descent, after + 1);
  double gain = sum / pow(descent_contraction(descent), 2 * after);
  return fmin(rate * gain, DESIGN_MAX_RATE);
}

void descent_design(const struct descent *descent, const struct shape *shape, double rate,
                    struct design *design, uint64_t *variance) {
  design_make(design, shape, rate_of_step(descent, rate), LAW_GAUSSIAN);
  design->sensitivity = descent_sensitivity(descent, shape, design->shift);
  *variance = design_variance(design->sensitivity, rate);
  if (descent->public_rows == 0 || *variance == 0) return;
  double share = squared_contractions(descent, descent->public_rows + 1) * DOWN;
  double each = ceil((double)*variance / share * UP) + 1;
  *variance = (uint64_t)fmax(each, (double)LATTICE_MIN_VARIANCE);
}

double descent_noise(const struct descent *descent) {
  double steps = descent->rows + descent->public_rows;
  return descent->variance * squared_contractions(descent, steps) * UP;
}

/* 1/(1 + e^-x) */
static double logistic(double x) {
  double e = exp(-fabs(x));
  return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

double descent_slope(const struct descent *descent, double margin, double y) {
  if (descent->loss == LOSS_LOGISTIC) return logistic(margin) - (y > 0.5);
  double bound = isnan(descent->bound) ? INFINITY : descent->bound;
  double residual = margin - fmin(fmax(y, -bound), bound);
  if (descent->loss == LOSS_SQUARED) return residual;
  return fmin(fmax(residual, -descent->threshold), descent->threshold);
}

/* ---- random stop ----------------------------------------------------------------------------- */

double descent_stop_delta(const struct descent *descent, const struct shape *shape,
                          const struct design *design, double epsilon, double index) {
  double sigma = sqrt(descent->variance - 1.0 / 12), count = descent->rows - index + 1;
  double width = 2 * ldexp(descent->radius, -design->granularity);
  double moved = descent_contraction(descent) * width + 1.25 * sqrt(descent->dim);
  double slack =
      lattice_laws[LAW_GAUSSIAN].draw_slack((uint64_t)descent->variance, (int)descent->dim) *
      (1 + exp(epsilon));
  double step = (double)design_sensitivity(shape, design->shift);
  double first = gaussian_hockey_stick(epsilon, step / sigma) + slack;
  double later = fmin(gaussian_hockey_stick(epsilon, moved / sigma) + slack, 1);
  double sum = later < 1 ? -expm1(count * log(later)) / (1 - later) : count;
  return first / descent->rows * fmin(sum, count) * (1 + 0x1p-30);
}

void descent_stop_variance(struct descent *descent, const struct shape *shape,
                           const struct design *design, double epsilon, double delta) {
  double low = (double)LATTICE_MIN_VARIANCE - 1, high = 0x1p52;
  descent->variance = high;
  int found = descent_stop_delta(descent, shape, design, epsilon, 1) <= delta;
  while (found &&
         high - low > 1) { /* it falls with the variance: low is too little, high is enough */
    descent->variance = floor((low + high) / 2);
    if (descent_stop_delta(descent, shape, design, epsilon, 1) <= delta) {
      high = descent->variance;
    } else {
      low = descent->variance;
    }
  }
  descent->variance = found ? high : 0;
}

/* Uniform on 1 .. rows, exactly; 0 without random bytes. */
static double random_stop(double rows) {
  uint32_t count = (uint32_t)rows, bits, limit = UINT32_MAX - UINT32_MAX % count;
  do { /* what is left of whole rounds is refused: at most two tries on average */
    if (entropy_fill(&bits, sizeof bits)) return 0;
  } while (bits >= limit);
  uint32_t stop = bits % count + 1;
  entropy_wipe(&bits, sizeof bits);
  return stop;
}

/* ---- vectors --------------------------------------------------------------------------------- */

/* The largest |v_j|. */
static double largest(const double *v, int count) {
  double most = 0;
  for (int j = 0; j < count; j++) most = fmax(most, fabs(v[j]));
  return most;
}

/* The largest component is divided out, so that no square overflows or vanishes. */
void descent_clip(const struct descent *descent, double *features) {
  int dim = (int)descent->dim;
  double most = largest(features, dim), sum = 0;
  if (most == 0) return;
  for (int j = 0; j < dim; j++) sum += (features[j] / most) * (features[j] / most);
  double longest = descent->clip / sqrt(sum); /* what the largest component may be */
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
  const struct shape *shape;
  const struct design *design;
  int dim;
  double taken, wanted; /* steps */
  int failed;           /* no random bytes: sticks */
  double *w;            /* coefficients before the last step */
  int128 *totals;       /* M of the last step, in fine steps */
  int128 *gradient;
  int64_t *point; /* U of the last step */
  int64_t *noise; /* from `next` on, `left` draws are unused */
  size_t block, next, left;
};

struct training *training_open(const struct descent *descent, const struct shape *shape,
                               const struct design *design) {
  struct training *training = calloc(1, sizeof *training);
  if (!training) return 0;
  size_t dim = (size_t)descent->dim;
  training->descent = descent;
  training->shape = shape;
  training->design = design;
  training->dim = (int)dim;
  training->wanted = descent->rows + descent->public_rows;
  training->block = dim * (dim < NOISE_BLOCK ? NOISE_BLOCK / dim : 1);
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

/* Wipes and frees (G3). */
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

/* Noise for one step, or null. */
static const int64_t *next_noise(struct training *training) {
  size_t dim = (size_t)training->dim;
  uint64_t variance = (uint64_t)training->descent->variance;
  if (training->left == 0 && !training->failed) {
    training->failed = discrete_gaussian_draw(variance, training->noise, training->block) != 0;
    training->left = training->block;
    training->next = 0;
  }
  if (training->failed) return 0;
  const int64_t *noise = &training->noise[training->next];
  training->next += dim;
  training->left -= dim;
  return noise;
}

/* From M of the last step to the coefficients of the next. */
static void leave_step(struct training *training) {
  const struct design *design = training->design;
  const int64_t *noise = next_noise(training);
  if (!noise) return;
  for (int j = 0; j < training->dim; j++)
    training->point[j] = lattice_round(training->totals[j], design->shift) + noise[j];
  ball_project(training->descent->radius, training->point, training->dim, design->granularity,
               training->w);
}

/* Sets the gradient, eta times, in fine steps: within eta * lipschitz, exactly. */
static void take_gradient(struct training *training, double y, double *features) {
  const struct descent *descent = training->descent;
  const struct shape *shape = training->shape;
  int dim = training->dim;
  double margin = 0;
  descent_clip(descent, features);
  for (int j = 0; j < dim; j++) margin += training->w[j] * features[j];
  double step = descent->eta * descent_slope(descent, margin, y);
  for (int j = 0; j < dim; j++)
    training->gradient[j] = fine_steps(step * features[j], shape->scale);
  clip_vector(shape, training->gradient, 1, dim);
}

void training_add(struct training *training, double y, double *features) {
  if (training->failed || training->taken >= training->wanted) return;
  if (training->taken > 0) leave_step(training);
  training->taken++;
  double keep = 1 - training->descent->eta * training->descent->l2;
  if (features) take_gradient(training, y, features);
  for (int j = 0; j < training->dim; j++) {
    int128 move = features ? training->gradient[j] : 0;
    training->totals[j] = fine_steps(training->w[j] * keep, training->shape->scale) - move;
  }
}

int128 *training_totals(struct training *training) {
  while (training->taken < training->wanted && !training->failed) training_add(training, 0, 0);
  return training->failed ? 0 : training->totals;
}
