/* kinds.c: the kinds of this room, and their options. Tests: tests/functions/test_options.py */
#include "categories/categories.h"
#include "categories/mix.h"
#include "categories/responses.h"
#include "functions/options.h"
#include "release/procedure.h"
#include "sums/vector_sum.h"

#define ROOT_2 1.4142135623730952 /* rounded up */

/* A row adds 1 to the cell of its key. */
#define COUNTS_KEYS                                                                                \
  .has_keys = 1, .components = 1, .counts = 1, .count_factor = 1, .row_norm = 1, .spread = ROOT_2, \
  .each = 1, .add = vector_sum_add_one, .is_linear = 1

static const struct family family_choice = {
    .statistic = STATISTIC_CATEGORY, COUNTS_KEYS, .has_states = 1};
static const struct family family_response = {.statistic = STATISTIC_REPORTS, COUNTS_KEYS};

static const struct procedure category_procedure = {
    .charge = categories_charge,
    .draw = categories_draw,
    .keep = categories_keep,
    .stays = "is a symbol, and reaches a tier outside its own only through a public kernel "
             "(dp_mix)",
    .verify = walk_verify};

static const struct procedure response_procedure = {
    .details = sizeof(struct survey_options),
    .finish = responses_finish,
    .clear = responses_clear,
    .prepare = responses_prepare,
    .charge = responses_charge,
    .draw = responses_draw,
    .draws_early = 1,
    .keep = responses_keep,
    .stays = "is made of reports, which reach a tier outside their own only through a public "
             "kernel (dp_mix)",
    .verify = walk_verify};

static const struct option survey_options[] = {
    {{"kernel", 0, 0, 0, 0}, READ, 0, OPTIONS_OF_PUBLISHING, P_OWN, 1, responses_kernel},
    OWN_OPTION(WHOLE_NUMBER, struct survey_options, reports, 0, "n", 1, RESPONSE_MAX_ROWS, 0, 0),
    OWN_OPTION(KEY, struct survey_options, otherwise, 0, "otherwise", 0, 0, 0, 0),
};

static const struct statistic_row statistics[] = {
    /* the most common candidate */
    {.name = "choice",
     .family = &family_choice,
     .form = FORM_SYMBOL,
     .has_key = 1,
     .arguments = {P_CANDIDATES},
     .default_clip = 1,
     .counts = 1,
     .no_bound = "a category is no number",
     .no_keys = "one category is chosen from all rows",
     .procedure = &category_procedure},
    /* the number of rows in each state, after a kernel has changed each row */
    {.name = "response_count",
     .family = &family_response,
     .form = FORM_OBJECT,
     .has_key = 1,
     .arguments = {P_OWN},
     .needs_name = 1,
     .default_clip = 1,
     .counts = 1,
     .no_bound = "its numbers are estimates from reports, without noise that shrinks",
     .no_keys = "it counts the rows of each key already",
     .procedure = &response_procedure,
     .own_options = survey_options,
     .own_option_count = sizeof survey_options / sizeof *survey_options},
};

const struct room categories_room = {.mechanisms = category_mechanisms,
                                     .statistics = statistics,
                                     .statistic_count = sizeof statistics / sizeof *statistics,
                                     .resend = groups_resend,
                                     .functions = mix_register};
