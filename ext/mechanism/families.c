/* families.c: the table of families. sums/family.h explains the columns. */
#include "mechanism/families.h"

#include "mechanism/estimate.h"
#include "sums/vector_sum.h"

/*
** The factor of a count that stands beside sums. The count is the number of rows of a mean, or the
** number of units of a private key.
*/
#define HALF 0.5

/* Norms of a row's components, and spreads of a unit's vector (layout.h), all rounded up. */
#define SLANT        1.1180339887498949 /* sqrt(1/4 + 1) */
#define ROOT_3       1.7320508075688773
#define COUNT_SPREAD 1.4142135623730952
#define MEAN_SPREAD  1.7888543819998320
#define CURVE_SPREAD 1.3095310000000000

/* Facts that all counts share, facts that all sums share, and so on. */
#define COUNTING                                                                                   \
  .components = 1, .counts = 1, .count_factor = 1, .row_norm = 1, .spread = COUNT_SPREAD
#define SUMMING .row_norm = 1, .spread = 2
#define RATIO   .counts = 1, .is_ratio = 1
#define LINEAR  .is_linear = 1, .estimate = estimate_sums, .stddev = estimate_sum_stddev

const struct family family_sum = {
    .statistic = STATISTIC_NUMBER, .components = 1, SUMMING, .has_states = 1, LINEAR};

const struct family family_mean = {.statistic = STATISTIC_VECTOR,
                                   .components = 2,
                                   RATIO,
                                   .count_factor = HALF,
                                   .row_norm = SLANT,
                                   .spread = MEAN_SPREAD,
                                   .add = vector_sum_add_centred,
                                   .shrinks_average = 1,
                                   .has_states = 1,
                                   .estimate = estimate_means,
                                   .stddev = estimate_mean_stddev};

const struct family family_spread = {.statistic = STATISTIC_VECTOR,
                                     .components = 3,
                                     RATIO,
                                     .count_factor = 1,
                                     .row_norm = ROOT_3,
                                     .spread = CURVE_SPREAD,
                                     .rounds_off_curve = 1,
                                     .add = vector_sum_add_curve,
                                     .has_states = 1,
                                     .estimate = estimate_spreads,
                                     .stddev = estimate_spread_stddev};

const struct family family_vector = {
    .statistic = STATISTIC_VECTOR, .has_vector = 1, SUMMING, .has_states = 1, LINEAR};

const struct family family_vector_mean = {.statistic = STATISTIC_VECTOR,
                                          .components = 1,
                                          .has_vector = 1,
                                          RATIO,
                                          .count_factor = HALF,
                                          .count_in_clips = 1,
                                          .row_norm = SLANT,
                                          .spread = MEAN_SPREAD,
                                          .has_states = 1,
                                          .estimate = estimate_vector_means,
                                          .stddev = estimate_vector_mean_stddev};

const struct family family_bins = {.statistic = STATISTIC_VECTOR,
                                   .has_bins = 1,
                                   COUNTING,
                                   .add = vector_sum_add_bin,
                                   .is_linear = 1,
                                   .has_states = 1,
                                   .estimate = estimate_bins,
                                   .stddev = estimate_sum_stddev};

const struct family family_tree = {.statistic = STATISTIC_VECTOR,
                                   .has_bins = 1,
                                   .is_tree = 1,
                                   COUNTING,
                                   .add = vector_sum_add_bin,
                                   .has_states = 1,
                                   .estimate = estimate_quantiles,
                                   .stddev = estimate_rank_stddev};

const struct family family_key_count = {.statistic = STATISTIC_VECTOR,
                                        .has_keys = 1,
                                        COUNTING,
                                        .add = vector_sum_add_one,
                                        .has_states = 1,
                                        LINEAR};

const struct family family_key_sum = {.statistic = STATISTIC_VECTOR,
                                      .has_keys = 1,
                                      .components = 1,
                                      .counts_if_private = 1,
                                      .count_factor = HALF,
                                      .count_in_clips = 1,
                                      SUMMING,
                                      .add = vector_sum_add_number,
                                      .has_states = 1,
                                      LINEAR};

const struct family family_key_mean = {.statistic = STATISTIC_VECTOR,
                                       .has_keys = 1,
                                       .components = 2,
                                       RATIO,
                                       .count_factor = HALF,
                                       .row_norm = SLANT,
                                       .spread = MEAN_SPREAD,
                                       .add = vector_sum_add_centred,
                                       .shrinks_average = 1,
                                       .has_states = 1,
                                       .estimate = estimate_means,
                                       .stddev = estimate_mean_stddev};

const struct family family_choice = {.statistic = STATISTIC_CATEGORY,
                                     .has_keys = 1,
                                     COUNTING,
                                     .each = 1,
                                     .add = vector_sum_add_one,
                                     .is_linear = 1,
                                     .has_states = 1};

const struct family family_response = {.statistic = STATISTIC_REPORTS,
                                       .has_keys = 1,
                                       COUNTING,
                                       .each = 1,
                                       .add = vector_sum_add_one,
                                       .is_linear = 1};

const struct family family_sgd = {.statistic = STATISTIC_MODEL,
                                  .has_vector = 1,
                                  SUMMING,
                                  .columns = "y, features",
                                  .estimate = estimate_coefficients,
                                  .stddev = estimate_coefficient_stddev};
