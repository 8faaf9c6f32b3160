/* mechanism.h: what adds noise, how much, and what it costs: noise laws, the lattice of a release,
** its points, and the mechanisms. Only public parameters determine a lattice. This code does not
** depend on SQL, tables or budgets.
**
** A point is the exact totals of a release plus noise, on the lattice. A release can have several
** points, one for each tier: its path, ordered by their clocks. The clock of a point is the
** variance of its noise in squared lattice steps. For Laplace noise, the clock is the integer
** nearest to this variance. The innermost point has the least noise. A step outward adds noise to
** the outermost point and does not read the data. A step inward averages the innermost point with
** one fresh draw. The rate of a tier is the largest zCDP rate that a release may cost there. */
#ifndef DIFFUSE_MECHANISM_MECHANISM_H
#define DIFFUSE_MECHANISM_MECHANISM_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "math/math.h"
#include "noise/noise.h"
#include "sums/layout.h"
#include "sums/sums.h"

/* ---- noise laws ------------------------------------------------------------------------------ */

/* A noise law has functions for the width and the cost of the noise, for draws, and for steps to a
** larger clock. Several mechanisms can share one. */

/* The clocks of a new point and of its neighbours on the path. */
struct gap {
  uint64_t inner, clock, outer;
};

/* draw(), step() and between() return 1, or 0 when the system gave no random bytes. */
struct noise_law {
  const char *name; /* the name in messages */
  double most;      /* the largest rate for which doubles can represent the lattice */
  /* Sensitivities are in the sum norm instead of the Euclidean norm; a point can be refined inward;
  ** the ledger charges a rate instead of a curve. */
  int in_sum_norm, refines, has_rate;
  /* The width (scale or standard deviation) of continuous noise that costs `rate` at sensitivity
  ** 1. */
  double (*width)(double rate);
  /* The least clock at which a release costs at most `rate`, or 0 if no clock is admissible. */
  uint64_t (*clock)(uint64_t sensitivity, double rate);
  /* The cost of a release at a clock as a zCDP rate, rounded up, and as a Renyi divergence of order
  ** alpha. Order infinity gives the epsilon of pure DP. */
  double (*rate)(uint64_t sensitivity, uint64_t clock);
  double (*rdp)(uint64_t sensitivity, uint64_t clock, double alpha);
  /* The clock of the next point outward from one of clock `inner`, for a tier of rate `rate`, or 0
  ** if it would be too large. */
  uint64_t (*outward)(uint64_t sensitivity, double rate, uint64_t inner);
  /* draw() draws independent noise, and step() the noise that raises the clock of a point. */
  int (*draw)(uint64_t clock, int64_t *noise, size_t count);
  int (*step)(uint64_t inner, uint64_t outer, int64_t *noise, size_t count);
  /* between() draws a point between its neighbours, which were drawn outward, with the conditional
  ** distribution that it would have if the whole path had been drawn outward (noise/noise.h).
  ** `values` must not overlap the other arrays. The new clock is at least least_between below the
  ** outer one; the clocks that outward() returns keep this distance from the inner clock. */
  int (*between)(const struct gap *gap, const int64_t *inner, const int64_t *outer, int64_t *values,
                 size_t count);
  uint64_t least_between;
  /* The lattice slack (math/math.h) of these three, rounded up. */
  double (*draw_slack)(uint64_t clock, int dimension);
  double (*step_slack)(uint64_t inner, uint64_t outer, int dimension);
  double (*between_slack)(const struct gap *gap, int dimension);
  /* The half-width of the central interval that holds the noise with this probability in (0, 1). */
  double (*half_width)(double stddev, double confidence);
  /* A number q of lattice steps: the sum of `terms` independent draws exceeds q + 2 * terms with at
  ** most this probability. 1 <= terms <= 3, 0 < probability <= 1/2. */
  double (*tail)(uint64_t clock, int terms, double probability);
  /* The logarithm of the probability that a continuous draw exceeds x standard deviations. */
  double (*log_tail)(double x);
};

/* The half-width for a number that depends on several draws: the larger one of this noise law and
** of Gaussian noise, between which the distribution of a weighted sum of draws lies. */
double mixed_half_width(const struct noise_law *noise, double stddev, double confidence);

/* Discrete Gaussian noise N_Z(0, clock), also of the Ornstein-Uhlenbeck mechanism, and discrete
** Laplace noise of scale t, whose clock 2 t^2 is the integer nearest to its variance 1/(cosh(1/t) -
** 1). */
extern const struct noise_law gaussian_noise, laplace_noise;

/* Returns the scale of Laplace noise at a clock. */
uint64_t laplace_scale(uint64_t clock);

/* ---- the lattice of a release, and its points ------------------------------------------------ */

/* The lattice of one release. */
struct design {
  int granularity; /* the release lattice is 2^granularity Z */
  int shift;       /* contributions are summed on a lattice 2^shift times finer */
  /* Sensitivity of the rounded totals, in release steps; the ledger charges for it. */
  uint64_t sensitivity;
};

/* Bounds on rates. Beyond them, or above `most` of the law, doubles cannot hold the lattice. */
#define DESIGN_MIN_RATE 1e-12
#define DESIGN_MAX_RATE 1e6

/* Fills a design for vectors of this layout that are released at a rate inside these bounds.
**
** The totals of neighbouring data sets differ by at most `distance` on the fine lattice, in at most
** `touched` coordinates (struct layout). Rounding to the release lattice adds at most one step to
** each coordinate (noise/noise.h), so at most sqrt(touched) steps to the distance, and in the sum
** norm up to `touched` steps. For this norm the lattice is therefore finer, by a factor of up to
** 2^6, until these steps are below 1/64 of the sensitivity. For cross tables whose neighbours can
** differ in more than 4096 coordinates, and where households are protected, too, it is finer by a
** factor of up to 2^4: otherwise, at a rate of 1e-5, rounding 124,601 coordinates would add 4% to
** the noise, and the slack of the accountant 'gdp' would take a large part of a budget. */
void design_make(struct design *design, const struct layout *shape, double rate,
                 const struct noise_law *noise);

/* Returns the integer sensitivity on a lattice that is 2^shift times coarser than the fine lattice,
** in the norm of the noise. If the family has no vectors for the sum norm, it follows from the
** Euclidean norm: the sum norm is at most sqrt(touched) times as large. Rounding adds at most one
** step for each touched coordinate.
**
** If a household may count f units (layout.h), its sensitivity is then at most f times this number:
** floor(wide / 2^shift) + ceil(sqrt(touched)) <= f (floor(distance / 2^shift) + 1 +
** ceil(sqrt(touched))), because f >= 1 and wide <= f distance. For this, rounding counts in a
** single number, too. */
uint64_t design_sensitivity(const struct layout *shape, int shift, const struct noise_law *noise);

/* Returns the bounds on the contributions to a single number. */
struct bounds design_bounds(const struct layout *shape);

/* For Gaussian noise: returns the variance of the next point inward from one of variance `outer`,
** for a tier of rate `rate`, or 0 if it would be too small for the lattice. Sets *fresh to the
** variance of the draw that makes this point. If the two variances would be almost equal, the draw
** would need too large a variance: returns `outer` and sets *fresh to 0, and the tier gets the
** outer point itself, which has a little more noise than its rate requires. */
uint64_t path_inward(uint64_t sensitivity, double rate, uint64_t outer, uint64_t *fresh);

/* Sets values to totals plus noise of clock `clock`. This and the next two functions return 1, or 0
** if the system provides no random bytes. The arrays must not overlap. */
int release_draw(const struct noise_law *noise, const int64_t *restrict totals, size_t dimension,
                 uint64_t clock, int64_t *restrict values);

/* Sets `to` to the point `from` plus noise that raises its clock: the semigroup P_s of Balle et al.
** 2019. Apart from the point, this reads no data. */
int release_diffuse(const struct noise_law *noise, const int64_t *restrict from, size_t dimension,
                    uint64_t inner, uint64_t outer, int64_t *restrict to);

/* For Gaussian noise: refines the point `from` of variance `outer` to variance `inner` with one
** draw of variance `fresh`. */
int release_refine(const int64_t *restrict from, const int64_t *restrict totals, size_t dimension,
                   uint64_t inner, uint64_t outer, uint64_t fresh, int64_t *restrict to);

/* ---- mechanisms ------------------------------------------------------------------------------ */

/* Each mechanism is one constant struct of facts and functions, and releases statistics
** (sums/layout.h). With a noise law, it adds noise to sums on a lattice. Rooms beside the core have
** mechanisms without one (categories/), or with a lattice of their own design (models/). */

/* The facts that a mechanism with a noise law needs about a release. */
struct terms {
  const struct layout *shape;
  const void *details;  /* what only this kind has (release/kinds.h) */
  int shift;            /* of the lattice (struct design) */
  uint64_t sensitivity; /* in its steps */
  double rate;          /* the largest rate that the release may cost the tier */
  double delta;         /* the part of the tier's delta_keys that this release uses */
};

/* The parameters of the curve of a cost, which points to them: they stay where they are as long as
** the cost is in use. */
struct cost_room {
  const struct noise_law *noise;
  uint64_t sensitivity, clock;
  double most;    /* the cost at order alpha is at most alpha times this number */
  double epsilon; /* for a mechanism with a curve of its own */
  void *profile;  /* the same; cost_room_clear() frees it */
};
void cost_room_clear(struct cost_room *room);

struct mechanism {
  const char *name;    /* the name that the ledger stores */
  const char *theorem; /* the theorem that proves its cost */
  unsigned statistics; /* the statistics that this mechanism can release: bits of enum statistic */
  int shrinks;         /* published values shrink towards a centre (Ornstein-Uhlenbeck) */
  /* Public rows or a random stop may lower the cost below that of the noise. */
  int hides;
  double most; /* the largest zCDP rate of a release without a noise law */
  /* 1: the default where all tiers that pay add up epsilons alone: its epsilon is known better than
  ** its curve. */
  int for_epsilons;

  /* For mechanisms with a noise law: */
  const struct noise_law *noise;
  /* Designs the lattice of a new release. Returns the clock of its first point; 0: none is
  ** admissible. */
  uint64_t (*design)(const struct mechanism *mechanism, const struct terms *terms,
                     struct design *design);
  /* The least sensitivity that the mechanism may charge for on its lattice. */
  uint64_t (*sensitivity)(const struct mechanism *mechanism, const struct terms *terms);
  /* The zCDP rate of a point at a clock. The caller checks that the tier admits it. */
  double (*rate)(const struct mechanism *mechanism, const struct terms *terms, uint64_t clock);
  /* The clock of the draw that makes the first point. */
  uint64_t (*draw_clock)(const struct terms *terms, uint64_t clock);
  /* Sets the cost of a point at a clock. Returns 1, or 0 when out of memory. */
  int (*cost)(const struct mechanism *mechanism, const struct terms *terms, uint64_t clock,
              struct cost_room *room, struct cost *cost);
};

/* The rate and the cost of a mechanism that adds noise to sums. */
double sums_rate(const struct mechanism *mechanism, const struct terms *terms, uint64_t clock);
int sums_cost(const struct mechanism *mechanism, const struct terms *terms, uint64_t clock,
              struct cost_room *room, struct cost *cost);

double noise_curve(const void *room, double alpha); /* the Renyi divergence of its noise */
double mechanism_most_rate(const struct mechanism *mechanism); /* the largest of a release */

/* The ledger has one theorem for all mechanisms with the same name. */
#define GAUSSIAN_THEOREM                                                                           \
  "discrete Gaussian: sensitivity^2 / (2 variance) (Canonne, Kamath and Steinke 2020, Theorem 4);" \
  " charged as sensitivity^2 / (2 (variance - 1/12))"
#define LAPLACE_THEOREM                                                                            \
  "discrete Laplace: the Renyi divergence of its exact law; pure epsilon sensitivity / scale"

extern const struct mechanism gaussian_mechanism, ou_mechanism, laplace_mechanism;

/* Returns the family whose vectors suit the mechanism: `family`, its member l1 for noise in the sum
** norm, or its member `drawn` for a mechanism that draws a bin. */
const struct family *mechanism_family(const struct mechanism *mechanism,
                                      const struct family *family);

/* ---- families (families.c) ------------------------------------------------------------------- */

/* The families of sums (sums/layout.h). A kind of release belongs to one family. The comments say
** what a row adds to its cell: x is its value, and u is (x - middle)/half, where middle is the
** middle of [lo, hi] and half is half the length of [lo, hi]. */

extern const struct family family_sum;         /* x, or 1; one number without cells */
extern const struct family family_mean;        /* 1 and u */
extern const struct family family_spread;      /* 1, u and 2 u^2 - 1 */
extern const struct family family_vector;      /* the components of a vector */
extern const struct family family_vector_mean; /* 1 and the components of a vector */
extern const struct family family_bins;        /* 1, in a bin of [lo, hi] */
extern const struct family family_bounds;      /* 1, in the bin of its sign and exponent */
extern const struct family family_tree;        /* 1, in a leaf and the nodes above it */
extern const struct family family_key_bins;    /* as family_bins, in a cell for each key */
extern const struct family family_key_tree;    /* as family_tree, in a cell for each key */
extern const struct family family_key_units;   /* 1 for each unit, in a cell for each key */
extern const struct family family_key_count;   /* 1, in a cell for each key */
extern const struct family family_key_sum;     /* x, in a cell for each key */
extern const struct family family_key_mean;    /* 1 and u, in a cell for each key */
extern const struct family family_key_spread;  /* 1, u and 2 u^2 - 1, in a cell for each key */

/* ---- the exponential mechanism (quantiles.c) ------------------------------------------------- */

/* The exponential mechanism: how strongly a draw prefers the better of its
** candidates, and the draw of one quantile. */

/* The probability of candidate i is proportional to exp(step utility[i]), where step = exponent /
** 2^CATEGORICAL_SHIFT (noise/noise.h). */
struct tilt {
  uint64_t exponent;
  /* The length of the interval of the privacy loss, from which the cost follows; for randomized
  ** response (categories/categories.c) the largest absolute value of this loss. */
  double epsilon;
};

/* The largest zCDP rate of a draw. Its epsilon is then below 600. */
#define TILT_MOST_RATE 500

/* The ledger has one theorem for all mechanisms with the name 'exponential'. */
#define EXPONENTIAL_THEOREM                                                                        \
  "exponential mechanism (McSherry and Talwar 2007), of bounded range (Dong, Durfee and Rogers "   \
  "2020; Cesar and Rogers 2021); for exact Gaussian accounting mu = 2 PhiInv(1/(1 + "              \
  "e^(-epsilon/2))); behind a kernel the worst pair of states"

/* Returns the tilt of a draw whose epsilon is at most `epsilon`. The changes that one unit makes to
** the utilities lie in an interval of length `range`, which is below 2^20. */
static inline struct tilt tilt_make(double epsilon, uint64_t range) {
  uint64_t exponent = (uint64_t)ldexp(epsilon / (double)range, CATEGORICAL_SHIFT);
  return (struct tilt){exponent, ldexp((double)exponent * (double)range, -CATEGORICAL_SHIFT)};
}

/* ---- a draw of one quantile from the leaves of its range ------------------------------------- */

/* Each row counts in one leaf. A unit's rows count at most `clip` together (family_leaves, in the
** sum norm). Let W be the sum of all leaves, W(< i) that of the leaves before leaf i, and W(<= i)
** that of the leaves up to leaf i. The quantile q has the rank t = q W + (1/2 - q), in rows. The
** loss of leaf i is the distance of t from the ranks in leaf i:
**
**     loss(i) = max(0, W(< i) - t, t - W(<= i))
**
** The exponential mechanism draws leaf i with a probability proportional to exp(-step loss(i)). Its
** cost depends on how differently one unit can change the losses of two leaves. All its changes lie
** in an interval of length 2 max(q, 1 - q) clip, or of length 2 clip if a unit is replaced
** (math/README.md).
**
** All of this is computed with integers. q is a multiple of 2^-LEAF_DRAW_SHARE, and a loss is
** rounded down to score steps; rounding lengthens the interval by at most one step. */

#define LEAF_DRAW_SHARE 30

/* What the draw depends on, apart from the rows. */
struct leaf_draw {
  const struct contribution *question;
  const struct layout *shape;
  double q;
  int replace; /* neighbours differ by the replacement of a unit */
};

/* The mechanism 'exponential' of quantiles. */
extern const struct mechanism leaf_draw_mechanism;

/* Returns the number of leaves that hold a value. With a grid, the last leaves may hold none. */
int leaf_draw_candidates(const struct leaf_draw *draw);

/* Returns the length of the interval of the changes, in score steps. It is below 2^20. */
uint64_t leaf_draw_range(const struct leaf_draw *draw);

/* Sets utility[i] to minus the loss of leaf i, in score steps. totals[i] are the rows of leaf i. */
void leaf_draw_utility(const struct leaf_draw *draw, const int64_t *totals, int64_t *utility);

/* Returns the number of score steps of one row. */
double leaf_draw_row(const struct leaf_draw *draw);

/* Return numbers of rows that the error in rank, the loss of the leaf, exceeds with probability 1 -
** confidence at most: for rows that lie evenly and close to each other, and for any rows. */
double leaf_draw_even_error(const struct leaf_draw *draw, double epsilon, double confidence);
double leaf_draw_most_error(const struct leaf_draw *draw, double epsilon, double confidence);

/* Returns the value in the middle of a leaf: of its grid values, or of its part of the range. */
double leaf_draw_value(const struct contribution *question, int leaf);

/* ---- series (series_matrix.c) ---------------------------------------------------------------- */

/* The mathematics of a series, one release whose numbers arrive period by period.
**
** Let x_t be the exact sum of period t, and let T be the number of periods. The points of a series
** are y = C x + z. z is independent noise of one variance, and C is a fixed lower triangular matrix
** whose columns have norm 1, the normalised square root of the matrix of running sums (Henzinger,
** Kalinin and Upadhyay 2025). The figure of the periods first..last is r y, where r C is 1 for
** these periods and 0 for all others. So figures are unbiased, they add up, and later points do not
** change them. A running total has 1.5 to 3.5 times the noise of one release of all periods.
**
** All that touches data is computed in integers. With f_k = binom(2k, k)/4^k and s, t from 0:
**   C_ts = L_(t-s) d_s / 2^60
**   F_0 = 2^60,  F_k = floor(F_(k-1) (2k-1)/(2k)),  L_k = floor(F_k / 2^30)
**   d_s = floor(2^60 / (isqrt(sum of L_k^2 for k < T - s) + 1))
** The root is rounded up and the rest is rounded down, so no column is longer than 1. L is a
** Toeplitz matrix, and so is its inverse. One row r therefore leads to the next one in time in
** proportion to T, and all figures of a series take time in proportion to T^2 (struct window).
** Noise in the sum norm (Laplace) has C = 1: there every other matrix would cost more than it
** gains.
**
** math/README.md ("Running totals") has the proofs. */

#define SERIES_MAX_PERIODS 4096
#define SERIES_UNIT_BITS   30                /* L_k = 2^30 and d_s = 2^30 stand for 1 */
#define SERIES_SUM         ((int128)1 << 88) /* the sum of a period saturates at +-2^88 */

struct series {
  int periods;
  int64_t *factor; /* L_0, L_1, ...; null: C = 1 */
  int64_t *scale;  /* d_0, d_1, ... */
};

/* Fills a series of 1 to SERIES_MAX_PERIODS periods. Returns 0 if memory runs out. Call
** series_free() in both cases. */
int series_make(struct series *series, int periods, const struct noise_law *noise);
void series_free(struct series *series);

/* Returns C_ts 2^60, the multiplier of the sum of period s in point t. 0 <= s, t < periods. */
int64_t series_multiplier(const struct series *series, int t, int s);

/* Returns one coordinate of point t without noise: (sum of C_ts x_s for s <= t) / 2^shift, rounded
** and saturated like lattice_round(). x_s = sums[s * stride], the exact sum of period s in fine
** steps; it saturates at +-2^88. 0 <= shift <= 70. */
int64_t series_coordinate(const struct series *series, int t, const int128 *sums, size_t stride,
                          int shift);

/* The row r with which the points 0..last are weighted to get the figure of the periods first..last
** (`weights`, last + 1 numbers), and the sum of the squares of r (`variance`): the variance of the
** figure, relative to that of a point. */
struct window {
  const struct series *series;
  int first, last;
  double *weights, variance;
  double *inverse; /* the first column of the inverse of L; null: C = 1 */
};

/* Opens a window on the first `periods` periods of a series, in time in proportion to their square.
** Returns 0 if memory runs out. Call window_close() in both cases. */
int window_open(struct window *window, const struct series *series, int periods);
void window_close(struct window *window);

/* Moves the window to the periods first..last, in time in proportion to `last` for each period that
** enters or leaves it. A window that goes back, or to periods of which it has none, begins anew. */
void window_move(struct window *window, int first, int last);

/* Turns the layout of one release (layout_make() by unit, with public keys) into that of a series
** with the same clip. Then design_make(), the functions of struct mechanism and the slack apply to
** the series: shape->distance and shape->touched are those of all periods together. The number of
** periods times that of the coordinates of a period, shape->coordinates + shape->diagnoses, must be
** at most LAYOUT_MAX_COORDINATES.
**
** Let B be the reach of a unit: over all periods, the norms of what the unit counts add up to at
** most B. Adding or removing the unit moves C x by at most B. Replacing a unit moves C x by at most
** k B, because two units may count in different periods:
**   one coordinate that is not negative (a count):  k = max(1, sqrt(2 - 2 g)),
**   where g = C_(T-1)0 C_(T-1)(T-1) is the least product of two columns of C
**   otherwise:  k = max(sqrt(2), spread);  in the sum norm:  k = 2
** With the option diagnose, a unit adds w = ladder.steps = floor(0.22 B), or floor(B/40) in the
** sum norm, once to each of two further counts. The distance is then the root of the sum of the
** squares of the bounds of the three, or the sum of these bounds in the sum norm.
**
** The lattice is that of one release with this clip. In the sum norm it may be finer, like that of
** every vector (design_make()). */
void series_layout(struct layout *shape, const struct series *series, int replace,
                   const struct noise_law *noise);

/* Returns B, the norm that a unit may count from the first to the last period, in fine steps. */
int64_t series_reach(const struct layout *shape);

/* ---- estimates (estimate.c, quantiles.c) ----------------------------------------------------- */

/* How a lattice point is read, and how the published numbers are computed from it. This
** is post-processing, so floating point is safe here.
**
** Each family has its own estimator (sums/layout.h): estimate.c, quantiles.c and
** cross_tables.c; estimate.c has the sums, and what comes after all of them. The estimators return
** each value with the standard deviation of its noise and an interval; only estimate_bounds()
** returns neither. Averages, spreads and quantiles are not linear in the point. Their standard
** deviations are first-order approximations at the estimate. */

/* The parameters that convert a coordinate of a point to a value: value = centre + shrink (x -
** centre), where x = lattice value * 2^granularity. */
struct view {
  const struct noise_law *noise;
  int granularity, shift;
  uint64_t clock;            /* variance of each coordinate, in squared lattice steps */
  int is_ou;                 /* 0: shrink is 1 */
  double centre;             /* a public parameter, never computed from the data */
  double radius, theta, rho; /* NaN if not given */
  int dimension;             /* dimension of the vector that shrinks */
  /* For numbers that come from several coordinates (a cell of a cross table, a span of a series):
  ** the standard deviation of their noise, divided by that of a coordinate. Otherwise 0. */
  double part;
};

/* Returns the factor by which the OU mechanism shrinks a vector whose coordinates have noise of
** variance `tau`: by default that of Theorem 8 of Balle et al. 2019, in which the public `radius`
** bounds the norm of the true answer minus the centre; if theta is given, that of the process dX =
** -theta (X - centre) dt + sqrt(2) rho dW; without OU, 1. */
double estimate_shrink(const struct view *view, double tau);

/* Returns the noise variance of a coordinate x, where x = lattice value * 2^granularity. */
double estimate_variance(const struct view *view);

/* Returns the standard deviation of the noise in a published sum, rounded up. */
double estimate_stddev(const struct view *view);

/* One published number, the standard deviation of its noise, and the interval [low, high], which
** contains the true number with at least the confidence of the reading, or nearly: averages and
** spreads of many rows and quantiles have first-order intervals. The true number is the one that
** the clipped rows have. low <= value <= high, and no number leaves the range of its family. The
** interval of an OU release is that before the value moves towards the centre. The interval of a
** private key has its confidence among the releases that publish the key. */
struct estimate {
  int cell, component;
  double value, stddev, low, high;
};

/* A statistic inside another one: the count of an average or a spread, the average of a spread. */
enum inside { INSIDE_NOTHING, INSIDE_COUNT, INSIDE_AVERAGE };

struct reading {
  const struct contribution *question;
  const struct layout *shape;
  struct view view;
  int cells;               /* the number of cells of the point */
  double confidence;       /* of the intervals, in (0, 1) */
  int root;                /* for a spread: show the standard deviation, not the variance */
  const double *quantiles; /* for trees: the requested quantiles, in [0, 1] */
  int quantile_count;
  const double *numbers; /* for a cross table, the numbers of its cells instead of a point */
  /* Private keys: the largest probability that a unit reveals a key that no other unit has. */
  double selection_delta;
  const void *details; /* what only this kind has (release/kinds.h) */
  enum inside inside;  /* the statistic to estimate; INSIDE_NOTHING: the statistic itself */
  /* Shrink factor of the coordinates; 1 for averages; set by estimate_point(). */
  double shrink;
};

/* If the noise of the number of rows is at most this part of it, ratios are nearly linear. */
#define LINEAR_PART 0.1

static inline double clamp(double x, double low, double high) {
  return x > low ? fmin(x, high) : low;
}

/* The standard deviation of the noise of a coordinate; and a coordinate as a number instead of
** lattice steps. */
double view_noise(const struct view *view);
double reading_coordinate(const struct reading *reading, const int64_t *values, int cell,
                          int component);

/* The half-width for an estimate from several coordinates with a standard deviation of 1. */
double reading_mixed_width(const struct reading *reading);

/* Returns an estimate with its interval. With `is_mixed`, it comes from several coordinates of the
** point, otherwise from one, whose noise is one draw. */
struct estimate estimate_of(const struct reading *reading, int cell, int component, double value,
                            double stddev, int is_mixed);

/* ---- estimates ------------------------------------------------------------------------------- */

/* Returns a standard deviation of the noise, from public parameters only and rounded up: for a sum,
** count or bin that of the published number; for an average and a variance an upper bound on it,
** times the number of rows; for a median that of the rank. */
double estimate_total_stddev(const struct reading *reading);

/* Returns the half-width of the interval of a published number, in its unit and rounded up. `rows`
** is a public guess of the number of rows. For an average and a variance it is an upper bound. For
** a standard deviation and a quantile it assumes that the rows are spread evenly over [low, high].
** That of a quantile includes half a leaf. */
double estimate_half_width(const struct reading *reading, double rows);

/* For cross tables: sets parts[i] to the standard deviation of the noise in a cell of the published
** table i, in units of that of a coordinate of the point. Returns 0 if memory runs out. */
int estimate_parts(const struct layout *shape, double *parts);

/* The most estimates that estimate_point() returns. */
int estimate_room(const struct reading *reading);

/* Computes the estimates of a point and returns their number, or -1 if memory runs out. Drops a
** private key whose noisy count is below estimate_threshold(). */
int estimate_point(struct reading *reading, const int64_t *values, struct estimate *estimates);

/* The families' estimators, for sums and for statistics computed from sums. */
estimate_values estimate_sums, estimate_means, estimate_paired_means, estimate_vector_means,
    estimate_spreads, estimate_tripled_spreads, estimate_quantiles, estimate_bounds;

/* The number that a draw of a leaf publishes; the point is the index of the leaf.
** What is public bounds the error in rank and not that of the number, so there is neither a
** standard deviation nor an interval. */
estimate_values estimate_leaf;

/* Estimates the statistic inside an average or a spread that reading->inside names. */
estimate_values estimate_inside;

/* Computes the estimates of all tables. The family's estimator reads the numbers of one table. */
int estimate_tables(struct reading *reading, const int64_t *values, struct estimate *estimates);

/* The ranges of averages and quantiles, of spreads, and of averages of vectors (sums/layout.h). */
value_range range_of_x, range_of_spreads, range_of_components;

/* The functions that estimate_total_stddev() calls, one for each sort of family. */
total_stddev estimate_sum_stddev, estimate_mean_stddev, estimate_paired_mean_stddev,
    estimate_vector_mean_stddev, estimate_spread_stddev, estimate_tripled_spread_stddev,
    estimate_rank_stddev;

/* Returns the weighted sum of `count` independent estimates of one component, for a cell. */
struct estimate estimate_mixed(const struct reading *reading, const struct estimate *from,
                               int count, const double *weights, int cell);

/* Returns the smallest noisy count, in lattice steps, for which a private key is shown. One unit
** contributes to the counts of at most m keys, and the norm of its contributions is at most C, so
** it adds at most C to each count. Let Q be the number that the noise of one count exceeds with
** probability 1 - (1 - delta)^(1/m). With probability at least 1 - delta, noise then raises none of
** these m counts above C + Q. The noise of a count is one draw, or the sum of several draws if the
** count is the sum of several components. The threshold is C + Q plus two steps for each draw,
** which cover rounding and the tails of the discrete distributions. */
double estimate_threshold(const struct reading *reading);

/* For a release of kind 'bounds': the count, in lattice steps, above which a bin is taken to have
** rows. If no bin has rows, noise exceeds it in some bin with probability BOUNDS_ALARM at most. */
#define BOUNDS_ALARM 1e-3
double estimate_bounds_threshold(const struct reading *reading);

/* ---- cross tables (cross_tables.c) ----------------------------------------------------------- */

/* cross_tables.c divides the charge of cross tables (sums/layout.h) between them. A
** table A that is measured with the share w_A of the squared sensitivity has noise of variance
** v/w_A in each cell, where v is the variance of one count that is released alone. The published
** tables are the least-squares estimates (reconcile_tables()). With n(A) the number of cells of A,
** and n_i the number of keys of attribute i,
**
**     k_B = product over i in B of (n_i - 1)/n_i
**     p_B = sum over measured A that contain B of w_A n(B)/n(A)
**     variance of each cell of A = v * sum over B inside A of k_B/p_B (n(B)/n(A))^2
**
** The shares minimise f, the mean of these variances over all tables, weighted.
** All sums run in one fixed order in IEEE doubles, so every machine finds the same multipliers. */

/* Computes the multiplier of each table. Multipliers depend on sizes and weights only. For Gaussian
** noise, multiplier = floor(2^15 sqrt(q)), and 0 below q = 2^-12. If noise is charged in the sum
** norm (`in_sum_norm`), w_A = (m_A / sum of m)^2 and f is not convex; the best of three candidates
** is taken: m proportional to q, to q^2, or equal for the tables that are inside no other table. A
** table that is inside no other table gets at least 1. Returns 1, or 0 if memory runs out. */
int shares_multipliers(const struct ways *ways, int in_sum_norm, int *multipliers);

#endif
