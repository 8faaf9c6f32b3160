/* families.c: the table of families (mechanism.h). sums/layout.h explains the members.
** math/README.md explains the families for the sum norm. In the sum norm a mean has the coordinates
** (1 + u)/2 and (1 - u)/2 instead of 1 and u (Kulesza, Suresh and Wang 2023). A spread has the
** coordinates (1 - w)^2, 2 w (1 - w) and w^2, where w = (1 + u)/2.
** Tests: tests/mechanism/test_kinds_exact.py */
#include "mechanism/mechanism.h"

#include "sums/sums.h"

/* The factor of a count in a vector that also holds sums: of the rows of a mean, or the units of a
** private key. */
#define HALF    0.5
#define QUARTER 0.25 /* for a private key in the sum norm; the count is then a fifth of the norm */

/* Norms of a row's components, and spreads of a unit's vector (layout.h), all rounded up. */
#define SLANT         1.1180339887498949 /* sqrt(1/4 + 1) */
#define ROOT_3        1.7320508075688773
#define COUNT_SPREAD  1.4142135623730952
#define MEAN_SPREAD   1.7888543819998320
#define CURVE_SPREAD  1.3095310000000000
#define CURVES_SPREAD 1.4173446000000000 /* of several cells */

/* Facts that several families share. */
#define RATIO    .counts = 1, .is_ratio = 1
#define LINEAR   .is_linear = 1, .estimate = estimate_sums, .stddev = estimate_sum_stddev
#define L1       .is_l1 = 1, .row_norm = 1, .spread = 2

const struct family family_sum = {.statistic = STATISTIC_NUMBER,
                                  .components = 1,
                                  .row_norm = 1,
                                  .spread = 2,
                                  .has_states = 1,
                                  LINEAR};

/* ---- means and spreads ----------------------------------------------------------------------- */

#define MEAN                                                                                       \
  .statistic = STATISTIC_VECTOR, .components = 2, .shrinks_average = 1, .range = range_of_x,       \
  .inside = estimate_inside
#define MEAN_L2                                                                                    \
  MEAN, RATIO, .count_factor = HALF, .row_norm = SLANT, .spread = MEAN_SPREAD,                     \
               .add = vector_sum_add_centred, .estimate = estimate_means,                          \
               .stddev = estimate_mean_stddev
#define MEAN_L1                                                                                    \
  MEAN, L1, .shares = 2, .count_factor = 1, .add = vector_sum_add_pair,                            \
            .estimate = estimate_paired_means, .stddev = estimate_paired_mean_stddev
#define SPREAD                                                                                     \
  .statistic = STATISTIC_VECTOR, .components = 3, .count_factor = 1, .has_states = 1,              \
  .range = range_of_spreads, .inside = estimate_inside

static const struct family family_mean_l1 = {MEAN_L1, .has_states = 1};
const struct family family_mean = {MEAN_L2, .has_states = 1, .l1 = &family_mean_l1};

#define SPREAD_L2                                                                                  \
  SPREAD, RATIO, .row_norm = ROOT_3, .rounds_off_curve = 1, .add = vector_sum_add_curve,           \
                 .estimate = estimate_spreads, .stddev = estimate_spread_stddev
#define SPREAD_L1                                                                                  \
  SPREAD, L1, .shares = 3, .add = vector_sum_add_triple, .estimate = estimate_tripled_spreads,     \
              .stddev = estimate_tripled_spread_stddev

static const struct family family_spread_l1 = {SPREAD_L1};
const struct family family_spread = {SPREAD_L2, .spread = CURVE_SPREAD, .l1 = &family_spread_l1};

/* ---- vectors --------------------------------------------------------------------------------- */

#define VECTOR .statistic = STATISTIC_VECTOR, .has_vector = 1, .has_states = 1
#define VECTOR_MEAN                                                                                \
  VECTOR, .components = 1, RATIO, .count_in_clips = 1, .estimate = estimate_vector_means,          \
          .stddev = estimate_vector_mean_stddev, .range = range_of_components

static const struct family family_vector_l1 = {VECTOR, L1, LINEAR};
const struct family family_vector = {VECTOR, .row_norm = 1, .spread = 2, LINEAR,
                                     .l1 = &family_vector_l1};

static const struct family family_vector_mean_l1 = {VECTOR_MEAN, L1, .count_factor = 1,
                                                    .count_falls = 1};
const struct family family_vector_mean = {VECTOR_MEAN, .count_factor = HALF, .row_norm = SLANT,
                                          .spread = MEAN_SPREAD, .l1 = &family_vector_mean_l1};

/* ---- bins and trees -------------------------------------------------------------------------- */

#define CELLS                                                                                      \
  .statistic = STATISTIC_VECTOR, .has_bins = 1, .components = 1, .add = vector_sum_add_bin,        \
  .has_states = 1
#define BINS CELLS, LINEAR
#define TREE                                                                                       \
  CELLS, .is_tree = 1, .estimate = estimate_quantiles, .stddev = estimate_rank_stddev,             \
         .range = range_of_x
#define L2_COUNT .row_norm = 1, .spread = COUNT_SPREAD

/* With private keys, a further coordinate of each key counts units (layout.h). */
#define CELLS_OF_KEYS    .has_keys = 1, .counts_if_private = 1, .count_in_clips = 1
#define L1_CELLS_OF_KEYS L1, CELLS_OF_KEYS, .count_factor = QUARTER
#define L2_CELLS_OF_KEYS L2_COUNT, CELLS_OF_KEYS, .count_factor = HALF

static const struct family family_bins_l1 = {BINS, L1, .count_factor = 1};
const struct family family_bins = {BINS, L2_COUNT, .count_factor = 1, .l1 = &family_bins_l1};
static const struct family family_key_bins_l1 = {BINS, L1_CELLS_OF_KEYS};
const struct family family_key_bins = {BINS, L2_CELLS_OF_KEYS, .l1 = &family_key_bins_l1};

#define EXPONENTS                                                                                  \
  .statistic = STATISTIC_VECTOR, .has_bins = 1, .by_exponent = 1, .components = 1,                 \
  .count_factor = 1, .add = vector_sum_add_exponent, .has_states = 1, .estimate = estimate_bounds, \
  .stddev = estimate_sum_stddev

static const struct family family_bounds_l1 = {EXPONENTS, L1};
const struct family family_bounds = {EXPONENTS, L2_COUNT, .l1 = &family_bounds_l1};

/* With 32 binary digits of a unit, 64 hold 2^31 units without rounding (mechanism.h). */
static const struct family family_leaves = {.statistic = STATISTIC_LEAF,
                                            .has_bins = 1,
                                            .components = 1,
                                            .add = vector_sum_add_bin,
                                            .has_states = 1,
                                            L1,
                                            .count_factor = 1,
                                            .radius_bits = 32,
                                            .estimate = estimate_leaf};

static const struct family family_tree_l1 = {TREE, L1, .count_factor = 1};
const struct family family_tree = {TREE, L2_COUNT, .count_factor = 1, .l1 = &family_tree_l1,
                                   .drawn = &family_leaves};
static const struct family family_key_tree_l1 = {TREE, L1_CELLS_OF_KEYS};
const struct family family_key_tree = {TREE, L2_CELLS_OF_KEYS, .l1 = &family_key_tree_l1};

/* ---- keys ------------------------------------------------------------------------------------ */

#define KEYED .statistic = STATISTIC_VECTOR, .has_keys = 1, .has_states = 1
#define COUNT_OF_KEY                                                                               \
  .components = 1, .counts = 1, .count_factor = 1, .add = vector_sum_add_one, LINEAR
#define KEY_COUNT KEYED, .has_tables = 1, COUNT_OF_KEY
#define KEY_UNITS KEYED, .each = 1, COUNT_OF_KEY
#define KEY_SUM                                                                                    \
  KEYED, .has_tables = 1, .components = 1, .counts_if_private = 1, .count_in_clips = 1,            \
         .add = vector_sum_add_number, LINEAR

static const struct family family_key_count_l1 = {KEY_COUNT, L1};
const struct family family_key_count = {KEY_COUNT, L2_COUNT, .l1 = &family_key_count_l1};

/* Each unit counts at most 1 in each key. */
static const struct family family_key_units_l1 = {KEY_UNITS, L1};
const struct family family_key_units = {KEY_UNITS, L2_COUNT, .l1 = &family_key_units_l1};

static const struct family family_key_sum_l1 = {KEY_SUM, L1, .count_factor = QUARTER};
const struct family family_key_sum = {KEY_SUM, .count_factor = HALF, .row_norm = 1, .spread = 2,
                                      .l1 = &family_key_sum_l1};

static const struct family family_key_mean_l1 = {MEAN_L1, .has_keys = 1, .has_tables = 1,
                                                 .has_states = 1};
const struct family family_key_mean = {MEAN_L2, .has_keys = 1, .has_tables = 1, .has_states = 1,
                                       .l1 = &family_key_mean_l1};

static const struct family family_key_spread_l1 = {SPREAD_L1, .has_keys = 1};
const struct family family_key_spread = {SPREAD_L2, .has_keys = 1, .spread = CURVES_SPREAD,
                                         .l1 = &family_key_spread_l1};
