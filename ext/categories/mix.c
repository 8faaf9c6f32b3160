/* mix.c: public Markov kernels send a stored release on to an outer tier: a category, reports, or
** the counts and sums of public groups (dp_mix). And the kinds of this room, with their options.
**
** A kernel draws a new category from the last category, or a new report from each of the last
** reports. It never draws from earlier ones, because two draws from the same category together
** reveal more than either draw alone. A category is treated as the report of one row.
** Tests: tests/categories/test_symbols.py, tests/categories/test_responses.py,
** tests/categories/test_coarsening.py, tests/functions/test_options.py */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "categories/categories.h"
#include "functions/functions.h"
#include "mechanism/mechanism.h"
#include "release/release.h"
#include "sums/sums.h"

SQLITE_EXTENSION_INIT3

/* A walk along the publications of a release, from the inner tiers to the outer ones. */
struct walk {
  struct publication *publication;
  const char *until;    /* the tier at which the walk stops; null: the walk visits all tiers */
  struct survey survey; /* of a category: 1 report, and no kernel */
  char **candidates;    /* the first states of a category; null: those of the survey's kernel */
  int count;
  int stages, tier;   /* the number of publications so far; the tier of the last publication */
  double epsilon;     /* before any kernel */
  struct chain chain; /* the product of all kernels so far, from the first states on */
  struct markov_kernel channel; /* the last kernel; its outputs are the next states */
  double *costs;                /* the costs that the last publication should have */
  int64_t *reports;             /* of the last publication, for each state */
  int64_t total;                /* their sum */
  int used, last;               /* the number of stored ones; the last state with one */
  double *weights;              /* of reports (categories.h) */
  size_t compared;              /* the number of stored values that were compared */
  int same;                     /* 1: the stored data is correct so far */
  struct error error; /* an error in the stored data; verification reports a discrepancy */
};

static void walk_end(struct walk *walk) {
  survey_clear(&walk->survey);
  json_list_free(walk->candidates);
  chain_clear(&walk->chain);
  markov_kernel_clear(&walk->channel);
  sqlite3_free(walk->costs);
  sqlite3_free(walk->weights);
  free(walk->reports);
  error_clear(&walk->error);
}

/* Returns the states that the next kernel draws from. */
static char *const *states_of(const struct walk *walk, int *count) {
  const struct markov_kernel *first = &walk->survey.channel, *last = &walk->channel;
  *count = last->symbols ? last->symbol_count : walk->candidates ? walk->count : first->state_count;
  return last->symbols ? last->symbols : walk->candidates ? walk->candidates : first->states;
}

static int read_survey(struct walk *walk) {
  const struct publication *publication = walk->publication;
  struct ledger *ledger = publication->session->ledger;
  if (publication->definition.release.model)
    return survey_read(&walk->survey, publication, &walk->error);
  walk->survey.reports = 1;
  walk->candidates =
      json_list(ledger_json(ledger), publication->definition.release.keys, 0, &walk->count);
  return walk->candidates || error_set(&walk->error, "%s", error_text(ledger_error(ledger)));
}

/* Appends the next kernel to the chain, and updates the costs and the weights. */
static int pass_kernel(struct walk *walk, const struct markov_kernel *channel) {
  struct error *error = &walk->error;
  int count;
  char *const *states = states_of(walk, &count);
  sqlite3_free(walk->weights);
  walk->weights = 0;
  return channel_check_next(channel, states, count, error) &&
         (chain_pass(&walk->chain, channel, states, count) || error_set_memory(error)) &&
         symbols_lower(walk->publication, &walk->chain, walk->epsilon, walk->costs, error) &&
         (!walk->survey.kernel || response_weights(&walk->chain, &walk->weights, error));
}

/* ---- the stored data ------------------------------------------------------------------------- */

static int close_to(double a, double b, double scale) {
  return fabs(a - b) <= 1e-9 * scale;
}

static int take_report(void *context, const char *key, int64_t value) {
  struct walk *walk = context;
  int count, y = 0;
  char *const *states = states_of(walk, &count);
  while (y < count && strcmp(states[y], key) != 0) y++;
  if (y == count || value < 0 || value > walk->survey.reports) return walk->same = 0;
  walk->used++;
  walk->reports[y] = value;
  walk->total += value;
  if (value > 0) walk->last = y;
  return 1;
}

static int compare_value(void *context, const struct ledger_value *stored) {
  struct walk *walk = context;
  const struct survey *survey = &walk->survey;
  size_t x = walk->compared++;
  int count;
  if (!survey->kernel)
    return walk->same = x == 0 && strcmp(stored->key, states_of(walk, &count)[walk->last]) == 0;
  if (x >= walk->chain.rows) return walk->same = 0;
  struct ledger_value value = response_estimate(
      &walk->chain, walk->weights, survey->channel.states[x], x, walk->reports, survey->reports);
  double scale = fabs(value.value) + value.high - value.low;
  return walk->same = strcmp(stored->key, value.key) == 0 && stored->component == 0 &&
                      close_to(stored->value, value.value, scale) &&
                      close_to(stored->stddev, value.stddev, scale) &&
                      close_to(stored->low, value.low, scale) &&
                      close_to(stored->high, value.high, scale);
}

/* Checks that the reports, values and curve of a publication are correct. */
static void check_stage(struct walk *walk, const struct ledger_stage *stage) {
  struct ledger *ledger = walk->publication->session->ledger;
  int64_t id = walk->publication->definition.release.id;
  int is_survey = walk->survey.kernel != 0, count;
  states_of(walk, &count);
  free(walk->reports);
  walk->reports = calloc((size_t)count + 1, sizeof *walk->reports);
  if (!walk->reports) {
    error_set_memory(&walk->error);
    return;
  }
  walk->used = walk->last = 0;
  walk->total = 0;
  walk->compared = 0;
  ledger_reports(ledger, id, stage->tier, take_report, walk);
  walk->same =
      walk->same && walk->total == walk->survey.reports && walk->used == (is_survey ? count : 1);
  for (int i = 0; i < RENYI_ORDERS; i++)
    walk->same = walk->same && close_to(stage->curve[i], walk->costs[i], walk->costs[i]);
  if (!walk->same) return;
  ledger_values(ledger, id, stage->tier, compare_value, walk);
  walk->same = walk->same && walk->compared == (is_survey ? walk->chain.rows : 1);
}

static int take_stage(void *context, const struct ledger_stage *stage) {
  struct walk *walk = context;
  struct publication *publication = walk->publication;
  const struct position *position = &publication->position;
  const char *kernel = stage->kernel;
  int passed = 1;
  walk->tier = 0;
  while (walk->tier < position->count && strcmp(position->tiers[walk->tier].name, stage->tier) != 0)
    walk->tier++;
  walk->same = walk->tier < position->count && (walk->stages > 0) == (kernel != 0);
  if (!walk->same) return 0;
  if (walk->stages++ == 0) {
    walk->costs = symbols_costs(publication, walk->tier);
    if (!walk->costs) return error_set_memory(&walk->error);
    walk->epsilon = walk->costs[RENYI_ORDERS - 1];
    kernel = walk->survey.kernel;
  }
  if (kernel) {
    struct markov_kernel next;
    passed = markov_kernel_read(&next, ledger_json(publication->session->ledger), kernel,
                                &walk->error) &&
             pass_kernel(walk, &next);
    markov_kernel_clear(&walk->channel);
    walk->channel = next;
  }
  if (passed) check_stage(walk, stage);
  return walk->same && !error_is_set(&walk->error) &&
         !(walk->until && strcmp(walk->until, stage->tier) == 0);
}

/* Walks outward. Afterwards the caller checks walk.error, the ledger's error and walk.same. */
static void walk_outward(struct walk *walk) {
  walk->same = 1;
  if (read_survey(walk))
    ledger_stages(walk->publication->session->ledger, walk->publication->definition.release.id,
                  take_stage, walk);
  if (!walk->stages) walk->same = 0;
}

/* ---- outward --------------------------------------------------------------------------------- */

static int mix_from(struct walk *walk, const struct markov_kernel *channel) {
  struct publication *publication = walk->publication;
  struct ledger *ledger = publication->session->ledger;
  int is_survey = walk->survey.kernel != 0, count, chosen = 0;
  char *const *states = states_of(walk, &count);
  if (publication->position.at <= walk->tier)
    return error_set(ledger_error(ledger),
                     "tier '%s' is not outside tier '%s', where the last %s of release '%s' %s "
                     "(make a release of its own)",
                     publication_tier(publication)->name,
                     publication->position.tiers[walk->tier].name, is_survey ? "reports" : "symbol",
                     publication->definition.release.name, is_survey ? "are" : "is");
  if (!pass_kernel(walk, channel) || !symbols_pay(publication, walk->costs)) return 0;
  int64_t *reports = calloc((size_t)channel->symbol_count, sizeof *reports);
  int mixed = reports || error_set_memory(ledger_error(ledger));
  for (int y = 0; y < count && mixed; y++)
    mixed = responses_pass(ledger, channel, states[y], walk->reports[y], reports) ||
            error_set(ledger_error(ledger), "the system gave no random bytes");
  while (mixed && !is_survey && !reports[chosen]) chosen++;
  if (mixed && is_survey)
    mixed = responses_publish(publication, &walk->survey, &walk->chain, channel->symbols, reports,
                              channel->json);
  if (mixed && !is_survey)
    mixed = symbols_publish(publication, channel->symbols[chosen], channel->json);
  free(reports);
  return mixed;
}

/* Publishes the release at the publication's tier by a kernel. */
static int walk_mix(struct publication *publication, const struct markov_kernel *channel) {
  struct error *error = ledger_error(publication->session->ledger);
  struct walk walk = {.publication = publication};
  walk_outward(&walk);
  if (!error_is_set(&walk.error) && !error_is_set(error) && !walk.same)
    error_set(error, "release '%s' is not what its charges say (see dp_verify)",
              publication->definition.release.name);
  int mixed = !error_is_set(&walk.error) && !error_is_set(error) && mix_from(&walk, channel);
  if (error_is_set(&walk.error)) error_set(error, "%s", error_text(&walk.error));
  walk_end(&walk);
  return mixed;
}

/* Checks the publications up to a tier (verify() in release/kinds.h). */
static int walk_verify(struct publication *publication,
                       const struct ledger_publication *published) {
  struct ledger *ledger = publication->session->ledger;
  const char *tier = published->tier;
  struct walk walk = {.publication = publication, .until = tier};
  walk_outward(&walk);
  int sound = walk.same && !error_is_set(&walk.error);
  if (error_is_memory(&walk.error)) error_set_memory(ledger_error(ledger));
  walk_end(&walk);
  return sound ||
         ledger_discrepancy(
             ledger,
             "dp_publication: '%s' at tier '%s' is not what its mechanism and kernels make it",
             publication->definition.release.name, tier);
}

/* ---- counts and sums of public groups -------------------------------------------------------- */

/* Returns whether the groups are public, and each has one number that adds up. */
static int have_public_sums(const struct publication *publication) {
  const struct family *family = publication->definition.contribution.family;
  return family->has_keys && family->is_linear && publication->definition.release.keys &&
         publication->definition.layout.width == 1;
}

/* Returns the first group that has no row in the kernel, or null. */
static const char *missing_group(const struct publication *publication,
                                 const struct markov_kernel *channel) {
  for (int i = 0; i < publication->grid.cells; i++) {
    if (!markov_kernel_row(channel, publication->grid.keys[i])) return publication->grid.keys[i];
  }
  return 0;
}

/* Copies the symbols of the kernel into one allocation. Returns null when out of memory. */
static char **copy_symbols(const struct markov_kernel *channel) {
  size_t count = (size_t)channel->symbol_count, bytes = 0;
  for (size_t y = 0; y < count; y++) bytes += strlen(channel->symbols[y]) + 1;
  char **copies = sqlite3_malloc64(sizeof *copies * count + bytes);
  char *at = (char *)(copies + count);
  for (size_t y = 0; copies && y < count; y++) {
    size_t size = strlen(channel->symbols[y]) + 1;
    copies[y] = memcpy(at, channel->symbols[y], size);
    at += size;
  }
  return copies;
}

/* Each new number is the sum of the old ones, weighted with the probabilities of the kernel.
** Returns 0 with the ledger's error. */
static int send(const struct publication *publication, const struct markov_kernel *channel,
                struct numbers *numbers) {
  struct ledger *ledger = publication->session->ledger;
  char *const *keys = publication->grid.keys;
  int count = publication->grid.cells, symbols = channel->symbol_count;
  const char *missing = missing_group(publication, channel);
  if (missing) return error_set(ledger_error(ledger), "the kernel has no row for x '%s'", missing);
  struct chain chain = {0};
  struct reading reading = {.view = definition_view(publication),
                            .confidence = numbers->confidence,
                            .shrink = numbers->shrink};
  double *weights = sqlite3_malloc64(sizeof *weights * (sqlite3_uint64)count);
  struct estimate *sent = sqlite3_malloc64(sizeof *sent * (sqlite3_uint64)symbols);
  numbers->sent = copy_symbols(channel);
  int going = weights && sent && numbers->sent && chain_pass(&chain, channel, keys, count);
  for (int y = 0; y < symbols && going; y++) {
    for (int x = 0; x < count; x++) weights[x] = chain.high[(size_t)x * chain.columns + (size_t)y];
    sent[y] = estimate_mixed(&reading, numbers->estimates, count, weights, y);
  }
  chain_clear(&chain);
  sqlite3_free(weights);
  sqlite3_free(going ? numbers->estimates : sent);
  if (!going) return error_set_memory(ledger_error(ledger));
  numbers->estimates = sent;
  numbers->count = symbols;
  numbers->keys = numbers->sent;
  return 1;
}

/* Applies the kernel that is stored for a release of groups at a tier, if there is one (resend() in
** release/kinds.h). */
static int groups_resend(const struct publication *publication, const char *tier,
                         struct numbers *numbers) {
  struct ledger *ledger = publication->session->ledger;
  struct markov_kernel channel = {0};
  struct error error = {0};
  char *kernel = 0;
  ledger_kernel_find(ledger, publication->definition.release.id, tier, &kernel);
  if (!kernel) return !error_is_set(ledger_error(ledger));
  int fits = markov_kernel_read(&channel, ledger_json(ledger), kernel, &error) &&
             have_public_sums(publication) && !missing_group(publication, &channel);
  if (error_is_memory(&error)) error_set_memory(ledger_error(ledger));
  error_clear(&error);
  sqlite3_free(kernel);
  if (!fits) numbers->count = 0;
  int sent = !error_is_set(ledger_error(ledger)) && (!fits || send(publication, &channel, numbers));
  markov_kernel_clear(&channel);
  return sent;
}

/* ---- dp_mix ---------------------------------------------------------------------------------- */

/* A mixing by a kernel (release/release.h). */
struct kernel_mixing {
  struct mixing mixing;
  struct markov_kernel kernel;
};

static const struct markov_kernel *kernel_of(const struct mixing *mixing) {
  return &((const struct kernel_mixing *)mixing)->kernel;
}

static int send_groups(const struct publication *publication, const struct mixing *mixing,
                       struct numbers *numbers) {
  return send(publication, kernel_of(mixing), numbers);
}

/* A publication by this kernel that the tier has already is read back. */
static int mix(struct publication *publication, const struct mixing *mixing) {
  struct ledger *ledger = publication->session->ledger;
  const char *tier = publication->position.tiers[publication->position.at].name;
  const char *name = publication->definition.release.name;
  char *stored = 0;
  if (ledger_kernel_find(ledger, publication->definition.release.id, tier, &stored)) {
    int is_same = stored && strcmp(stored, kernel_of(mixing)->json) == 0;
    if (!is_same)
      error_set(ledger_error(ledger),
                stored ? "release '%s' is at tier '%s' by another kernel (it is mixed once)"
                       : "release '%s' is at tier '%s' from the start (ask dp_value)",
                name, tier);
    sqlite3_free(stored);
    return is_same && values_read(publication, tier);
  }
  if (error_is_set(ledger_error(ledger))) return 0;
  unsigned statistic = publication->definition.aggregate->family->statistic;
  if (statistic & (STATISTIC_CATEGORY | STATISTIC_REPORTS))
    return walk_mix(publication, kernel_of(mixing));
  if (!have_public_sums(publication))
    return error_set(ledger_error(ledger),
                     "release '%s' has neither a symbol nor counts or sums of public groups, "
                     "which a kernel could send on (dp_diffuse sends on what has noise)",
                     name);
  publication->position.mixing = mixing;
  return publish_replay(publication, 0);
}

/* dp_mix(name, tier, kernel [, steps]) -> TEXT, a symbol
** Publishes a release of a symbol at an outer tier. Draws the new symbol with a public Markov
** kernel, in `steps` steps: each step draws from the kernel's row for the last symbol. `kernel` is
** a JSON array of cells [x, y, p] (categories.h). Reads no data. The charge is for the first
** symbol and all kernels since then together. It is the exact cost in the worst case over all
** mechanisms that have the epsilon of the first draw. A repeated call returns the stored symbol. A
** tier gets only one symbol. For a release of reports or of groups, publishes the numbers that the
** kernel gives, as JSON. */
static int dp_mix(struct call *call) {
  static const struct domain domain = {"steps", 1, CHANNEL_MAX_STEPS, 0, 0};
  double steps = 1;
  if (call->count > 3 && !domain_check(call->values[3], &domain, &steps, call->error)) return 0;
  struct publication publication = {0};
  struct kernel_mixing mixing = {{mix, send_groups, 0}, {0}};
  int done =
      markov_kernel_read(&mixing.kernel, ledger_json(call->ledger), call->texts[2], call->error) &&
      channel_repeat(&mixing.kernel, steps, call->error);
  mixing.mixing.json = mixing.kernel.json;
  done = done && publish_diffuse(&publication, &call->host->session, call->texts[0], call->texts[1],
                                 &mixing.mixing);
  if (done) result_answer(call->context, &publication.answer);
  markov_kernel_clear(&mixing.kernel);
  publish_clear(&publication);
  return done;
}

static const struct function functions[] = {
    {"dp_mix", 3, 4, TO_OWNER, 0, {"name", "tier", "kernel"}, dp_mix},
    {0},
};

/* ---- the kinds ------------------------------------------------------------------------------- */

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
     .wording = {"category that most % have; drawn at random, it may be a rarer one", "value",
                 SHARE_NONE, 0, 0},
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
     .wording = {"answers in each category, without the effect of randomisation", "count",
                 SHARE_NONE, 0, 0},
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
                                     .functions = functions};
