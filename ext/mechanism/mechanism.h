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

#include <stddef.h>
#include <stdint.h>

#include "math/cost.h"
#include "sums/layout.h"
#include "sums/scalar_sum.h"

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
  /* The lattice slack (math/gaussian.h) of these three, rounded up. */
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
** each coordinate (noise/lattice.h), so at most sqrt(touched) steps to the distance, and in the sum
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
  const void *details;  /* what only this kind has (release/procedure.h) */
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

int mechanism_admits(const struct mechanism *mechanism, const struct family *family, int shrinks);

/* ---- families -------------------------------------------------------------------------------- */

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

#endif
