/* hiding.c: what the later steps of a descent hide (models.h), and the mechanisms of models, whose
** cost follows from it. Tests: tests/models/test_sgd_hiding.py, tests/models/test_sgd.py */
#include "models/models.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "math/math.h"
#include "mechanism/mechanism.h"

/* A walk takes the first SINGLE steps after a row one by one, and then blocks of 1/SHARE of the
** steps so far. */
#define SINGLE 256
#define SHARE  32

/* It covers the rounding errors of math/ and of sums of logarithms in bounds. */
#define MARGIN 0x1p-30

/* ---- one step -------------------------------------------------------------------------------- */

/* The noise of one step, or the combined noise of several steps. */
struct noise {
  int laplace;
  double clock; /* variance, or 2 t^2 */
  double least; /* the least variance of the draws that make this noise */
  double slack; /* the lattice slack of all these draws */
};

static struct noise noise_of(const struct course *course, const struct hop *hop) {
  const struct descent *descent = course->descent;
  double clock = (double)hop->clock;
  return (struct noise){descent->laplace > 0, clock, clock,
                        descent_noise_law(descent)->draw_slack(hop->clock, (int)descent->dim)};
}

/* Returns ln E (models.h) of the noise and the noise moved by `distance`. */
static double log_stick(const struct noise *noise, double epsilon, double distance) {
  if (distance == 0 || epsilon == INFINITY) return -INFINITY;
  if (noise->laplace) {
    double scale = sqrt(noise->clock / 2), y = 0.5 / scale;
    double half = (distance / scale * (1 + 0x1p-50) - epsilon) / 2;
    if (!(half > 0)) return -INFINITY;
    double less = 2 * pow(sinh(y / 2), 2) / cosh(y); /* 1 - 1/cosh(y) */
    double value = -expm1(-half) + exp(-half) * less;
    return half > 0.5 ? log1p(-exp(-half) / cosh(y)) : log(value);
  }
  double shrunk =
      noise->clock * (1 - 1 / (12 * noise->least)); /* V - 1/12 replaces each variance V */
  double log_stick = gaussian_log_hockey_stick(epsilon, distance / sqrt(shrunk));
  double slack = noise->slack * (1 + exp(fmin(epsilon, 700)));
  double raised =
      log_stick > -600 ? log_stick + log1p(slack * exp(-log_stick)) : log(exp(log_stick) + slack);
  /* exp(-(epsilon - r)^2/(4r)) bounds the delta of any mechanism of zCDP rate r */
  double rate = distance * distance / (2 * noise->clock), gap = epsilon - rate;
  double chernoff = gap > 0 ? -gap * (gap / (4 * rate)) : 0;
  return fmin(fmin(raised, 0), chernoff);
}

/* Returns the largest distance of two points of the ball after a step, in the norm of its noise. */
static double moved_by(const struct course *course, const struct hop *hop) {
  const struct descent *descent = course->descent;
  double width = 2 * ldexp(descent->radius, -course->granularity), root = sqrt(descent->dim);
  double moved = hop->contraction * width + 1.25 * root;
  return moved * (descent->laplace > 0 ? root : 1) * (1 + 0x1p-40);
}

/* ---- the steps after a row ------------------------------------------------------------------- */

/* A walk over the steps after a row computes d (models.h), the divergence that remains for it. */
struct walk {
  const struct course *course;
  double index, epsilon;
  double after, left; /* number of steps taken, and number of steps left */
  double log_delta;
  /* The steps of the last block, and the log of a bound on the factor of each of them. */
  double block, log_factor;
  double distance, variance; /* T_0 and the clock of the path so far */
  struct hop hop;            /* the current step; constant if all steps are equal */
};

static double log_path(const struct walk *walk) {
  struct noise noise = noise_of(walk->course, &walk->hop);
  noise.clock = walk->variance;
  noise.slack *= walk->after + 1;
  return log_stick(&noise, walk->epsilon, walk->distance);
}

static void extend_path(struct walk *walk) {
  double contraction = walk->hop.contraction;
  walk->distance =
      (contraction * walk->distance + 2.5 * sqrt(walk->course->descent->dim)) * (1 + 0x1p-50);
  walk->variance =
      (contraction * contraction * walk->variance + (double)walk->hop.clock) * (1 - 0x1p-50);
}

static struct walk walk_from(const struct course *course, double index, double epsilon) {
  struct walk walk = {
      .course = course, .index = index, .epsilon = epsilon, .left = course->steps - index};
  /* The last step has the largest ratio of sensitivity to noise (models.h): the row gets its
  ** parameters. */
  course_hop(course, course->steps, &walk.hop);
  walk.distance = (double)walk.hop.sensitivity;
  walk.variance = (double)walk.hop.clock;
  struct noise noise = noise_of(course, &walk.hop);
  walk.log_delta = log_stick(&noise, epsilon, walk.distance);
  return walk;
}

/* The path bound is for equal steps with Gaussian noise. */
static int has_path(const struct walk *walk) {
  const struct descent *descent = walk->course->descent;
  return !(descent->laplace > 0) && !(descent->decay > 0) && walk->after < SINGLE;
}

/* Takes the next block of at most `most` steps. The factor by which it multiplies d for each step
** is an upper bound: it is that of the last step of the block, whose noise is the smallest relative
** to the moved distance (models.h), at the d before the block, and a smaller d has a smaller
** factor. */
static void walk_on(struct walk *walk, double most) {
  const struct course *course = walk->course;
  double block = walk->after < SINGLE ? 1 : floor(walk->after / SHARE);
  int uses_path = has_path(walk);
  walk->block = fmin(fmin(block, walk->left), most);
  if (course->descent->decay > 0)
    course_hop(course, walk->index + walk->after + walk->block, &walk->hop);
  struct noise noise = noise_of(course, &walk->hop);
  double delta = walk->log_delta > -INFINITY ? fmax(exp(walk->log_delta), DBL_MIN) : 0;
  /* If d is below DBL_MIN, using DBL_MIN is safe, because a larger d has a larger factor. */
  double epsilon = mixing_epsilon(walk->epsilon, delta);
  walk->log_factor = log_stick(&noise, epsilon, moved_by(course, &walk->hop));
  walk->log_delta += walk->block * walk->log_factor;
  walk->after += walk->block;
  walk->left -= walk->block;
  if (!uses_path) return;
  extend_path(walk);
  walk->log_delta = fmin(walk->log_delta, log_path(walk));
}

/* Returns 1 if the walk certainly cannot bring ln d down to log_wanted, by a lower limit of d after
** the walk: the smaller of the current d and the path bound at the end of the path, times, for each
** step left, the least factor that a step can have while d is above the wanted value. */
static int is_hopeless(const struct walk *walk, double log_wanted) {
  struct walk ahead = *walk;
  double best = walk->log_delta;
  for (int i = 0; i < SINGLE && i < (int)fmin(walk->left, SINGLE) && has_path(walk); i++) {
    extend_path(&ahead);
    ahead.after++;
  }
  if (has_path(walk)) best = fmin(best, log_path(&ahead));
  if (walk->left > 0) course_hop(walk->course, walk->index + 1, &ahead.hop);
  struct noise noise = noise_of(walk->course, &ahead.hop);
  double factor = log_stick(&noise, mixing_epsilon(walk->epsilon, exp(log_wanted)),
                            moved_by(walk->course, &ahead.hop));
  return walk->left == 0 ? best > log_wanted : best + walk->left * factor > log_wanted;
}

/* Returns an upper bound on ln d after all steps. The walk may stop when ln d is at most log_wanted
** or certainly cannot reach it. */
static double log_delta_after(const struct course *course, double index, double epsilon,
                              double log_wanted) {
  struct walk walk = walk_from(course, index, epsilon);
  if (log_wanted > -INFINITY && is_hopeless(&walk, log_wanted - MARGIN)) return walk.log_delta;
  while (walk.left > 0 && walk.log_delta > log_wanted - MARGIN) {
    walk_on(&walk, INFINITY);
    if (walk.log_factor == 0 && !has_path(&walk)) break; /* later steps do not lower d either */
  }
  return fmin(walk.log_delta + MARGIN, 0);
}

/* ---- the least epsilon ----------------------------------------------------------------------- */

static int suffices(const struct course *course, double index, double epsilon, double log_wanted) {
  return log_delta_after(course, index, epsilon, log_wanted) <= log_wanted;
}

/* Returns the least epsilon in [0, high] for which the delta after all steps is at most
** exp(log_wanted), or `high` if high * (1 - 2^-16) does not suffice. */
static double least_epsilon(const struct course *course, double index, double high,
                            double log_wanted) {
  double low = 0, least = high * 0x1p-40;
  if (!suffices(course, index, high * (1 - 0x1p-16), log_wanted)) return high;
  if (suffices(course, index, 0, log_wanted)) return 0;
  while (high - low > fmax(high * 0x1p-32, least)) {
    double middle = low / 2 + high / 2;
    if (suffices(course, index, middle, log_wanted)) {
      high = middle;
    } else {
      low = middle;
    }
  }
  return high;
}

void hiding_lower(const struct course *course, double delta, double *epsilons) {
  double least = INFINITY, next = 0, log_wanted = log(delta);
  for (int row = (int)course->descent->rows; row >= 1; row--) {
    double after = course->steps - row, *epsilon = &epsilons[row - 1];
    *epsilon = fmin(*epsilon, least);
    if (after < next || *epsilon == 0) continue;
    next = after < SINGLE ? after + 1 : after + floor(after / SHARE);
    double found = least_epsilon(course, row, *epsilon, log_wanted);
    if (found < *epsilon) *epsilon = least = found;
  }
}

void hiding_path_epsilons(const struct course *course, double delta, const double *rates,
                          double *epsilons) {
  struct hop hop;
  course_hop(course, course->steps, &hop);
  struct noise noise = noise_of(course, &hop);
  for (int i = 0; i < (int)course->descent->rows; i++) {
    double rate = rates[i] * (1 + 1 / (6 * noise.least)); /* V - 1/12 replaces each variance V */
    double most = rate + 2 * sqrt(rate * -log(delta));
    double slack = noise.slack * (course->steps - i) * (1 + exp(fmin(most, 700)));
    double exact = slack < delta ? gaussian_epsilon(rate, delta - slack) : INFINITY;
    epsilons[i] = exact <= most ? exact : zcdp_epsilon(rates[i], delta);
    if (slack > delta * 0x1p-40) epsilons[i] = fmin(epsilons[i], zcdp_epsilon(rates[i], delta));
  }
}

/* ---- random stop ----------------------------------------------------------------------------- */

double hiding_stop_delta(const struct course *course, double epsilon) {
  struct walk walk = walk_from(course, 1, epsilon);
  double sum = exp(walk.log_delta);
  /* Within a block, the values d_k form a geometric sequence. */
  while (walk.left > 0 && walk.log_delta > -INFINITY) {
    double before = walk.log_delta;
    walk_on(&walk, INFINITY);
    double first = walk.block == 1 ? walk.log_delta : before + walk.log_factor;
    sum += exp(first) * geometric_sum(walk.log_factor, walk.block);
  }
  return fmin(sum / course->descent->rows, 1) * (1 + MARGIN);
}

void hiding_stop_deltas(const struct course *course, double epsilon, double *deltas) {
  int rows = (int)course->descent->rows;
  struct walk walk = walk_from(course, 1, epsilon);
  double sum = exp(walk.log_delta);
  /* The delta of row i is the sum of d_0 .. d_(rows - i), divided by rows (models.h). */
  for (int row = rows; row >= 1; row--) {
    deltas[row - 1] = fmin(sum / rows, 1) * (1 + MARGIN);
    if (row > 1) walk_on(&walk, 1);
    sum += exp(walk.log_delta);
  }
}

void hiding_stop_variance(struct descent *descent, const struct layout *shape,
                          const struct design *design, double epsilon, double delta) {
  double low = (double)LATTICE_MIN_VARIANCE - 1, high = 0x1p52;
  struct course course;
  descent->variance = high;
  course_make(&course, descent, shape, design->shift);
  int found = hiding_stop_delta(&course, epsilon) <= delta;
  /* delta falls as the variance grows. The variance `low` is too small; `high` is large enough. */
  while (found && high - low > 1) {
    descent->variance = floor((low + high) / 2);
    course_make(&course, descent, shape, design->shift);
    if (hiding_stop_delta(&course, epsilon) <= delta) {
      high = descent->variance;
    } else {
      low = descent->variance;
    }
  }
  descent->variance = found ? high : 0;
}

/* ---- Renyi divergences ----------------------------------------------------------------------- */

/* The privacy profile of the last private row by the contraction bound: delta at PROFILE_NODES
** values of epsilon, which are enough to bound Renyi divergences. */
#define PROFILE_NODES 1553
struct profile {
  int count;
  double rate; /* rate of the row's own step */
  /* Upper bound on the log of the factor by which the later steps multiply delta beyond the last
  ** node. */
  double log_factor;
  double pure;                   /* the epsilon at delta = 0; infinite for Gaussian noise */
  double epsilon[PROFILE_NODES]; /* increasing from 0 */
  double log_delta[PROFILE_NODES];
};

/* The values of epsilon at which a profile has delta, as shares of the last one: 0, then 16 for
** each octave up to 1/64, then equally spaced. Their number is the same on every machine. */
#define OCTAVES       40
#define TO_THE_OCTAVE 16
#define EQUAL_STEPS   1008 /* number of equal steps; each step is 1/1024 */

static double node_share(int node) {
  int geometric = (OCTAVES - 6) * TO_THE_OCTAVE;
  if (node == 0) return 0;
  if (node <= geometric) return exp2((double)(node - geometric) / TO_THE_OCTAVE - 6);
  return (double)(16 + node - geometric) / 1024;
}

static void hiding_profile(const struct course *course, struct profile *profile) {
  double index = course->descent->rows, least = 0;
  struct walk walk = walk_from(course, index, 0);
  profile->rate = walk.distance * walk.distance / (2 * walk.variance);
  double high = walk.distance / sqrt(walk.variance / 2) * (1 + 0x1p-40);
  profile->pure =
      course->descent->laplace > 0 ? least_epsilon(course, index, high, -INFINITY) : INFINITY;
  profile->count = 1 + (OCTAVES - 6) * TO_THE_OCTAVE + EQUAL_STEPS;
  /* Above the last node, the noise of the row's own step alone makes delta 0 (Laplace noise) or
  ** less than 1e-299. */
  double end =
      profile->pure < INFINITY ? profile->pure : profile->rate + 2 * sqrt(profile->rate * 690);
  for (int node = 0; node < profile->count; node++) {
    double epsilon = end * node_share(node);
    least = fmin(least, log_delta_after(course, index, epsilon, -INFINITY));
    profile->epsilon[node] = epsilon;
    profile->log_delta[node] = least;
  }
  profile->log_factor = 0;
  for (walk = walk_from(course, index, end); walk.left > 0 && walk.log_delta > -INFINITY;) {
    walk_on(&walk, INFINITY);
    profile->log_factor += walk.block * walk.log_factor;
  }
}

/* An upper bound on the integral between two nodes of the two terms, g^(alpha-2) delta and
** g^(-alpha-1) delta (models.h). For the first term and alpha >= 2, g^(alpha-2) rises while the
** chord of delta falls, so the mean of their product is at most the product of their means
** (Chebyshev). Otherwise the bound uses delta at the left node. */
static double integral_between(const struct profile *profile, int i, double alpha) {
  double from = profile->epsilon[i], to = profile->epsilon[i + 1];
  double left = profile->log_delta[i], right = profile->log_delta[i + 1];
  if (left == -INFINITY) return 0;
  double log_mean = alpha >= 2 ? left + log1p(exp(right - left)) - M_LN2 : left;
  /* the integrals of e^((alpha - 1) x) and of e^(-alpha x) between the nodes */
  return exp(log_mean + (alpha - 1) * to) * -expm1(-(alpha - 1) * (to - from)) / (alpha - 1) +
         exp(left - alpha * from) * -expm1(-alpha * (to - from)) / alpha;
}

/* An upper bound on the integral beyond the last node: for Gaussian noise with the delta of the
** row's own step, times the factors that the later steps have at the last node, which only fall as
** epsilon grows. For Laplace noise the integral is 0. */
static double integral_beyond(const struct profile *profile, double alpha) {
  double rate = profile->rate, from = profile->epsilon[profile->count - 1];
  if (profile->pure < INFINITY) return 0;
  double x = (from - rate * (2 * alpha - 1)) / (2 * sqrt(rate));
  double log_tail = x > 0 ? -x * x : 0; /* erfc(x) <= e^-x^2 */
  /* The factor 4 covers both terms of the integrand. */
  return 4 * sqrt(M_PI * rate) * exp(alpha * (alpha - 1) * rate + log_tail + profile->log_factor);
}

/* Returns an upper bound r on the Renyi divergence of order alpha > 1 of two distributions with
** this profile, in both directions. With g = e^epsilon,
**     e^((alpha-1) r) = 1 + alpha (alpha-1) int_1^inf (g^(alpha-2) + g^(-alpha-1)) delta(ln g) dg.
** Returns infinity if a double cannot hold the bound. delta is a decreasing and convex function of
** g, so between two nodes delta lies below its chord. */
static double profile_rdp(const struct profile *profile, double alpha) {
  if (isinf(alpha)) return profile->pure;
  double sum = integral_beyond(profile, alpha);
  for (int i = 0; i + 1 < profile->count; i++) sum += integral_between(profile, i, alpha);
  double moment = alpha * (alpha - 1) * sum * (1 + MARGIN);
  return fmin(log1p(moment) / (alpha - 1), profile->pure);
}

/* ---- mechanisms and estimates ---------------------------------------------------------------- */

static const struct descent *descent_of(const struct terms *terms) {
  return terms->details;
}

/* ---- the lattice ----------------------------------------------------------------------------- */

static uint64_t model_design(const struct mechanism *mechanism, const struct terms *terms,
                             struct design *design) {
  (void)mechanism;
  uint64_t variance;
  descent_design(descent_of(terms), terms->shape, terms->rate, design, &variance);
  return descent_clock(descent_of(terms), terms->shape, design->shift);
}

static uint64_t model_sensitivity(const struct mechanism *mechanism, const struct terms *terms) {
  (void)mechanism;
  return descent_sensitivity(descent_of(terms), terms->shape, terms->shift);
}

/* The cost of a random stop is a curve only. */
static double model_rate(const struct mechanism *mechanism, const struct terms *terms,
                         uint64_t clock) {
  return descent_of(terms)->random_stop > 0 ? 0 : sums_rate(mechanism, terms, clock);
}

/* The clock of a point includes the noise of earlier steps, and the draw only that of the last
** step. */
static uint64_t model_draw_clock(const struct terms *terms, uint64_t clock) {
  (void)clock;
  return (uint64_t)descent_of(terms)->variance;
}

/* ---- the cost -------------------------------------------------------------------------------- */

static double stop_curve(const void *room, double alpha) {
  return response_rdp(alpha, ((const struct cost_room *)room)->epsilon);
}

/* Public rows after the private rows lower the cost. At each order, the cost is the smaller of the
** cost of the noise and the contraction bound (models.h). The proof covers RDP only. */
static double hidden_curve(const void *room, double alpha) {
  return fmin(noise_curve(room, alpha),
              profile_rdp(((const struct cost_room *)room)->profile, alpha));
}

static int model_cost(const struct mechanism *mechanism, const struct terms *terms, uint64_t clock,
                      struct cost_room *room, struct cost *cost) {
  sums_cost(mechanism, terms, clock, room, cost);
  if (descent_of(terms)->random_stop > 0) {
    room->epsilon = published_down(response_epsilon(terms->rate));
    *cost = (struct cost){0, terms->delta, stop_curve, room};
  } else if (descent_of(terms)->public_rows > 0) {
    *cost = (struct cost){0, 0, hidden_curve, room};
    if (room->profile) return 1; /* it does not depend on the tier, so it is computed once */
    struct course course;
    room->profile = malloc(sizeof(struct profile));
    if (!room->profile) return 0;
    course_make(&course, descent_of(terms), terms->shape, terms->shift);
    hiding_profile(&course, room->profile);
  }
  return 1;
}

#define MODEL                                                                                      \
  .statistics = STATISTIC_MODEL, .design = model_design, .sensitivity = model_sensitivity,         \
  .rate = model_rate, .draw_clock = model_draw_clock, .cost = model_cost

/* ---- the mechanisms -------------------------------------------------------------------------- */

/* Every row is private and pays for one draw of noise, whose theorem this is. */
const struct mechanism sgd_gaussian = {
    .name = "gaussian", .theorem = GAUSSIAN_THEOREM, .noise = &gaussian_noise, MODEL};

const struct mechanism sgd_laplace = {
    .name = "laplace", .theorem = LAPLACE_THEOREM, .noise = &laplace_noise, MODEL};

/* Mechanisms with public rows or a random stop. */
static const struct mechanism sgd_iteration = {
    .name = "iteration",
    .theorem = "the worst private row of a descent with public rows after it (Balle et al. 2019, "
               "Theorem 5, along the best path, and Asoodeh et al. 2020, Theorem 4, by Theorem 1 "
               "of the former anew in each step), or the first of one that stops at random "
               "(Asoodeh et al. 2020, Theorem 5); dp_sgd_profile() lists every row",
    .hides = 1,
    .noise = &gaussian_noise,
    MODEL};

static const struct mechanism sgd_laplace_iteration = {
    .name = "laplace_iteration",
    .theorem = "the last private row of a descent with public rows after it (Asoodeh et al. 2020, "
               "Theorem 3, by Theorem 1 of Balle et al. 2019 anew in each step)",
    .hides = 1,
    .noise = &laplace_noise,
    MODEL};

const struct mechanism *descent_mechanism(const struct descent *descent) {
  int is_iteration = descent->public_rows > 0 || descent->random_stop > 0;
  if (descent->laplace > 0) return is_iteration ? &sgd_laplace_iteration : &sgd_laplace;
  return is_iteration ? &sgd_iteration : &sgd_gaussian;
}

const struct mechanism *const model_mechanisms[] = {&sgd_gaussian, &sgd_iteration,
                                                    &sgd_laplace_iteration, &sgd_laplace, 0};

/* ---- the family of models, whose estimates are the coefficients ------------------------------ */

/* An upper bound on the standard deviation of the noise in a coefficient (root mean square over
** all), of all steps of the descent and outward, and never above that of the diameter of the
** ball. */
static double model_noise(const struct reading *reading) {
  const struct descent *descent = reading->details;
  int shift = reading->view.shift;
  double first = (double)descent_clock(descent, reading->shape, shift);
  double later = (double)reading->view.clock - first; /* added by steps outward (dp_diffuse) */
  double variance = descent_noise(descent, reading->shape, shift) + later;
  double widest = 2 * descent->radius / sqrt(descent->dim);
  return fmin(ldexp(sqrt(variance), reading->view.granularity), widest);
}

/* The projection of the point onto the ball. With less noise, it would also lie there, so intervals
** end there. */
static int estimate_coefficients(struct reading *reading, const int64_t *values,
                                 struct estimate *estimates) {
  const struct descent *descent = reading->details;
  int dim = reading->question->size;
  double noise = model_noise(reading);
  double *w = malloc(sizeof *w * (size_t)dim);
  if (!w) return -1;
  ball_project(descent->radius, values, dim, reading->view.granularity, w);
  for (int j = 0; j < dim; j++) {
    estimates[j] = estimate_of(reading, 0, j, w[j], noise, 1);
    estimates[j].low = fmax(estimates[j].low, -descent->radius);
    estimates[j].high = fmin(estimates[j].high, descent->radius);
  }
  free(w);
  return dim;
}

static double coefficient_stddev(const struct reading *reading) {
  return published_up(model_noise(reading));
}

const struct family family_sgd = {.statistic = STATISTIC_MODEL,
                                  .has_vector = 1,
                                  .row_norm = 1,
                                  .spread = 2,
                                  .columns = "y, features",
                                  .estimate = estimate_coefficients,
                                  .stddev = coefficient_stddev};
