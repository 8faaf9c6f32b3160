/* responses.c: see responses.h. Tests: tests/categories/test_responses.py */
#include "categories/responses.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sql_text.h"
#include "categories/categories.h"
#include "categories/divergences.h"
#include "categories/response_estimates.h"
#include "math/rounding.h"
#include "noise/categorical.h"
#include "release/session.h"
#include "release/values.h"

SQLITE_EXTENSION_INIT3

/* ---- requests -------------------------------------------------------------------------------- */

static void options_clear(void *details) {
  struct survey_options *options = details;
  sqlite3_free(options->otherwise);
  sqlite3_free(options->kernel);
}

int responses_kernel(struct request *request, struct json *json, sqlite3_value *value,
                     struct error *error) {
  struct survey_options *options = request->details;
  struct markov_kernel channel;
  if (sqlite3_value_type(value) != SQLITE_TEXT)
    return error_set(error, "kernel must be a JSON array of cells [x, y, p]%s",
                     not_a(value, SQLITE_TEXT));
  const char *text = (const char *)sqlite3_value_text(value);
  int going =
      markov_kernel_read(&channel, json, text, error) && channel_check_small(&channel, error);
  if (going && options->kernel) going = error_set(error, "kernel is given twice");
  if (going) {
    options->kernel = sqlite3_mprintf("%s", channel.json);
    request->keys = json_texts(channel.states, channel.state_count);
    request->key_list = sqlite3_malloc64(sizeof(char *) * (sqlite3_uint64)channel.state_count);
    if (!options->kernel || !request->keys || !request->key_list) going = error_set_memory(error);
  }
  for (int i = 0; i < channel.state_count && going; i++) {
    char *state = sqlite3_mprintf("%s", channel.states[i]);
    if (state) request->key_list[request->key_count++] = state;
    if (!state) going = error_set_memory(error);
  }
  markov_kernel_clear(&channel);
  return going;
}

static int responses_finish(struct request *request, int by_unit, struct error *error) {
  const struct survey_options *options = request->details;
  if (by_unit)
    return error_set(
        error, "a kernel is applied to rows, so the ledger has to protect rows, with replaced "
               "rows as neighbours: start one with "
               "dp_init('{\"protects\":\"row\",\"adjacency\":\"replace\"}')");
  if (request->refine)
    return error_set(error,
                     "reports cannot be refined (make a release of its own at an inner tier)");
  if (!options->kernel)
    return error_set(error, "kernel is missing (a JSON array of cells [x, y, p])");
  if (isnan(options->reports)) return error_set(error, "n is missing (the public number of rows)");
  if (!options->otherwise)
    return error_set(error,
                     "otherwise is missing (the x of the kernel that reports for a row that is "
                     "missing or whose key is no x)");
  int known = 0;
  for (int i = 0; i < request->key_count; i++)
    known |= strcmp(request->key_list[i], options->otherwise) == 0;
  if (!known) return error_set(error, "otherwise must be an x of the kernel");
  sqlite3_str *model = sqlite3_str_new(0);
  sqlite3_str_appendf(model, "{\"n\":%lld,\"otherwise\":", (long long)options->reports);
  json_append_string(model, options->otherwise);
  sqlite3_str_appendf(model, ",\"kernel\":%s}", options->kernel);
  request->model = sqlite3_str_finish(model);
  return request->model ? 1 : error_set_memory(error);
}

/* ---- the definition of a release ------------------------------------------------------------- */

/*
** The public parameters of a local randomisation. The ledger stores them as the model of the
** release.
*/
struct survey {
  int64_t reports;
  char *otherwise, *kernel;
  struct markov_kernel channel;
};

static int take_member(void *context, const char *key, const char *text) {
  struct survey *survey = context;
  char **member = strcmp(key, "otherwise") == 0 ? &survey->otherwise : &survey->kernel;
  if (strcmp(key, "n") == 0) {
    survey->reports = strtoll(text, 0, 10);
    return 1;
  }
  *member = sqlite3_mprintf("%s", text);
  return *member != 0;
}

static void survey_clear(struct survey *survey) {
  sqlite3_free(survey->otherwise);
  sqlite3_free(survey->kernel);
  markov_kernel_clear(&survey->channel);
  *survey = (struct survey){0};
}

/*
** Reads the model. Returns 1, or 0 with the error set. The caller must call survey_clear() in both
** cases.
*/
static int survey_read(struct survey *survey, const struct publication *publication,
                       struct error *error) {
  struct ledger *ledger = publication->session->ledger;
  const char *model = publication->definition.release.model;
  *survey = (struct survey){0};
  if (!model || !json_text_members(ledger_json(ledger), model, take_member, survey) ||
      !survey->kernel || !survey->otherwise || survey->reports < 1 ||
      survey->reports > RESPONSE_MAX_ROWS)
    return error_set(
        error, "release '%s' has an impossible kernel (restore the ledger from a backup)",
        publication->definition.release.name ? publication->definition.release.name : "");
  return markov_kernel_read(&survey->channel, ledger_json(ledger), survey->kernel, error);
}

/* ---- costs ----------------------------------------------------------------------------------- */

/* Computes the cost of one report of the chain at each order of symbols_order_at(). */
static int local_costs(const struct publication *publication, const struct chain *chain,
                       double **costs, struct error *error) {
  int count = symbols_order_count(publication);
  *costs = sqlite3_malloc64(2 * sizeof **costs * (sqlite3_uint64)count);
  if (!*costs) return error_set_memory(error);
  /*
  ** Each output must have probability 0 for every state or for no state. Otherwise an output could
  ** rule out a state, and no finite epsilon would cover the release.
  */
  for (size_t i = 0; i < chain->rows * chain->columns; i++) {
    if ((chain->high[i] > 0) != (chain->high[i % chain->columns] > 0))
      return error_set(error,
                       "the kernel gives some x a y that another x never gives, which tells them "
                       "apart for sure (give each y of one x to every x)");
  }
  double *orders = *costs + count;
  symbols_orders(publication, orders);
  if (!divergences_find(publication->session, chain, INFINITY, orders, count, *costs, error))
    return 0;
  for (int i = 0; i < count; i++) (*costs)[i] = published_up((*costs)[i]);
  return 1;
}

/* Returns the least rate for which rate * order bounds the cost at every finite order. */
static double rate_of(const struct publication *publication, const double *costs) {
  double rate = 0;
  for (int i = 0; i < symbols_order_count(publication); i++) {
    double order = symbols_order_at(publication, i);
    if (order > 1 && isfinite(order)) rate = fmax(rate, costs[i] / order);
  }
  return rate;
}

/* ---- reports --------------------------------------------------------------------------------- */

/* Looks after every 1024 draws whether the host is interrupted. Returns 0 if it is. */
static int goes_on(struct ledger *ledger, int64_t draws) {
  return draws % 1024 != 0 || ledger_goes_on(ledger);
}

/*
** Draws `count` independent reports of a state and adds them to `reports`. Returns 0 if the host is
** interrupted or the system gives no random bytes.
*/
static int draw_reports(struct ledger *ledger, const struct markov_kernel *channel,
                        const char *state, int64_t count, int64_t *reports) {
  for (int64_t i = 0; i < count; i++) {
    const char *at = state;
    size_t chosen = 0;
    if (!goes_on(ledger, i)) return 0;
    for (int64_t step = 0; step < channel->steps; step++, at = channel->symbols[chosen]) {
      if (!goes_on(ledger, step + 1)) return 0;
      if (!categorical_weighted(markov_kernel_row(channel, at), (size_t)channel->symbol_count,
                                &chosen))
        return 0;
    }
    reports[chosen]++;
  }
  return 1;
}

/*
** Draws how many of the next `count` rows make a report, and sets *chosen to this number. Of the
** *left rows that remain, *wanted rows are to be chosen at random. The function updates *wanted and
** *left. Returns 0 if the host is interrupted or the system gives no random bytes.
*/
static int choose_rows(struct ledger *ledger, int64_t count, int64_t *wanted, int64_t *left,
                       int64_t *chosen) {
  *chosen = 0;
  for (int64_t i = 0; i < count; i++, --*left) {
    size_t is_out = *wanted == 0;
    uint64_t weights[2] = {(uint64_t)*wanted, (uint64_t)(*left - *wanted)};
    if (!goes_on(ledger, i)) return 0;
    if (*wanted > 0 && *wanted < *left && !categorical_weighted(weights, 2, &is_out)) return 0;
    *chosen += !is_out;
    *wanted -= !is_out;
  }
  return 1;
}

/*
** Draws the n reports of a survey. `counts` has the number of rows in each state. Returns 0 if the
** host is interrupted or the system gives no random bytes.
*/
static int draw_survey(struct ledger *ledger, const struct survey *survey, const int64_t *counts,
                       int64_t *reports) {
  const struct markov_kernel *channel = &survey->channel;
  int64_t rows = 0, wanted = survey->reports;
  for (int x = 0; x < channel->state_count; x++) rows += counts[x];
  int64_t left = rows;
  for (int x = 0; x < channel->state_count; x++) {
    int64_t chosen = counts[x];
    if (rows > survey->reports && !choose_rows(ledger, counts[x], &wanted, &left, &chosen))
      return 0;
    if (!draw_reports(ledger, channel, channel->states[x], chosen, reports)) return 0;
  }
  return rows >= survey->reports ||
         draw_reports(ledger, channel, survey->otherwise, survey->reports - rows, reports);
}

/*
** Stores and publishes the reports and the estimates. At an outer tier, `kernel` is the kernel that
** made the reports from those of the next inner tier; otherwise it is null.
*/
static int publish_reports(struct publication *publication, const struct survey *survey,
                           const struct chain *chain, char *const *symbols, int64_t *reports,
                           const char *kernel) {
  struct ledger *ledger = publication->session->ledger;
  const struct ledger_release *release = &publication->definition.release;
  const char *tier = publication->position.tiers[publication->position.at].name;
  struct cost cost = symbols_cost(publication);
  struct ledger_grid grid = {(char **)(uintptr_t)symbols, (int)chain->columns, 1, 0};
  struct ledger_point point = {(char *)(uintptr_t)tier, 0, reports};
  double *weights;
  int going = response_weights(chain, &weights, ledger_error(ledger)) &&
              ledger_path_insert(ledger, release, &grid, &point) &&
              ledger_publication_insert(ledger, release, tier, 0, &cost, 1, NO_CLIPPING, kernel);
  for (size_t x = 0; x < chain->rows && going; x++) {
    struct ledger_value value =
        response_estimate(chain, weights, survey->channel.states[x], x, reports, survey->reports);
    going = ledger_value_insert(ledger, release, tier, &value);
  }
  sqlite3_free(weights);
  return going && values_read(publication, tier);
}

/* ---- a new release --------------------------------------------------------------------------- */

/*
** Starts the chain with the survey's kernel, and computes the costs of one report. Checks that the
** states can be estimated from the reports.
*/
static int weigh(const struct publication *publication, const struct survey *survey,
                 struct chain *chain, double **costs, struct error *error) {
  const struct markov_kernel *channel = &survey->channel;
  double *weights = 0;
  if (!chain_pass(chain, channel, channel->states, channel->state_count))
    return error_set_memory(error);
  int weighed =
      local_costs(publication, chain, costs, error) && response_weights(chain, &weights, error);
  sqlite3_free(weights);
  return weighed;
}

static void responses_prepare(const struct publication *publication,
                              const struct request *request) {
  struct publication asked = {.session = publication->session,
                              .definition = {.release = {.model = request->model}},
                              .position = publication->position};
  struct error error = {0};
  struct survey survey;
  struct chain chain = {0};
  double *costs = 0;
  if (survey_read(&survey, &asked, &error)) weigh(&asked, &survey, &chain, &costs, &error);
  sqlite3_free(costs);
  chain_clear(&chain);
  survey_clear(&survey);
  error_clear(&error);
}

static int responses_charge(struct publication *publication) {
  struct ledger *ledger = publication->session->ledger;
  struct error *error = ledger_error(ledger);
  const struct ledger_tier *tier = &publication->position.tiers[publication->position.at];
  struct survey survey = {0};
  struct chain chain = {0};
  double *costs = 0, most = publication->definition.release.weight * tier->rate;
  if (ledger_adjacency(ledger) != LEDGER_REPLACE)
    return error_set(ledger_error(ledger),
                     "a kernel on rows needs a ledger with replaced rows as neighbours: start "
                     "one with dp_init('{\"protects\":\"row\",\"adjacency\":\"replace\"}')");
  int weighed = survey_read(&survey, publication, error) &&
                weigh(publication, &survey, &chain, &costs, error);
  if (weighed && !(rate_of(publication, costs) <= most * (1 + 0x1p-30)))
    weighed = error_set(error,
                        "the kernel costs a rate of %g, more than the %g of tier '%s' (take one "
                        "that keeps less, or ask at an inner tier)",
                        rate_of(publication, costs), most, tier->name);
  int charged = weighed && symbols_charge(publication, costs);
  sqlite3_free(costs);
  chain_clear(&chain);
  survey_clear(&survey);
  return charged;
}

static int responses_draw(struct publication *publication, const int64_t *counts) {
  struct error *error = ledger_error(publication->session->ledger);
  if (publication->drawn_count) return 1; /* drawn before the transaction */
  struct survey survey;
  int read = survey_read(&survey, publication, error), done = 0;
  size_t symbols = (size_t)survey.channel.symbol_count;
  int64_t *reports = read ? sqlite3_malloc64(sizeof *reports * symbols) : 0;
  struct drawn *drawn = read ? sqlite3_malloc64(sizeof *drawn) : 0;
  if (reports && drawn) {
    memset(reports, 0, sizeof *reports * symbols);
    done = draw_survey(publication->session->ledger, &survey, counts, reports) ||
           error_set(error, "the system gave no random bytes");
  } else if (read) {
    error_set_memory(error);
  }
  if (done) {
    *drawn = (struct drawn){publication->position.at, 0, reports};
    publication->drawn = drawn;
    publication->drawn_count = 1;
  } else {
    sqlite3_free(reports);
    sqlite3_free(drawn);
  }
  survey_clear(&survey);
  return done;
}

static int responses_keep(struct publication *publication) {
  struct error *error = ledger_error(publication->session->ledger);
  struct survey survey;
  struct chain chain = {0};
  const struct markov_kernel *channel = &survey.channel;
  int kept = survey_read(&survey, publication, error) &&
             (chain_pass(&chain, channel, channel->states, channel->state_count) ||
              error_set_memory(error)) &&
             publish_reports(publication, &survey, &chain, channel->symbols,
                             publication->drawn[0].values, 0);
  chain_clear(&chain);
  survey_clear(&survey);
  return kept;
}

/* ---- the path -------------------------------------------------------------------------------- */

/*
** The state of a walk along the publications of a release, from the inner tiers to the outer tiers.
*/
struct walk {
  struct publication *publication;
  struct survey survey;
  const char *until; /* the tier at which the walk stops; null: the walk visits all tiers */
  int stages, tier;  /* the number of publications so far; the tier of the last publication */
  struct chain chain;
  struct markov_kernel channel; /* the last kernel; its outputs are the categories of the reports */
  double *costs;
  int64_t *reports;   /* the reports of the last publication */
  int same;           /* 1: the stored data is correct so far */
  struct error error; /* an error in the stored data; verification reports a discrepancy */
};

static void walk_end(struct walk *walk) {
  survey_clear(&walk->survey);
  chain_clear(&walk->chain);
  markov_kernel_clear(&walk->channel);
  sqlite3_free(walk->costs);
  sqlite3_free(walk->reports);
  error_clear(&walk->error);
}

/* Appends the next kernel to the chain and updates the costs. */
static int walk_pass(struct walk *walk, const struct markov_kernel *channel, struct error *error) {
  struct markov_kernel *last = &walk->channel;
  char *const *states = walk->stages ? last->symbols : walk->survey.channel.states;
  int count = walk->stages ? last->symbol_count : walk->survey.channel.state_count;
  int going = channel_check_next(channel, states, count, error);
  if (going && !chain_pass(&walk->chain, channel, states, count)) going = error_set_memory(error);
  double *before = walk->costs;
  walk->costs = 0;
  if (going) going = local_costs(walk->publication, &walk->chain, &walk->costs, error);
  for (int i = 0; i < symbols_order_count(walk->publication) && going && before; i++)
    walk->costs[i] = fmin(walk->costs[i], before[i]);
  sqlite3_free(before);
  return going;
}

/*
** The state of take_report(), which compares the stored reports with the outputs of the last
** kernel.
*/
struct recount {
  struct walk *walk;
  int used;
  int64_t total;
};

static int take_report(void *context, const char *key, int64_t value) {
  struct recount *recount = context;
  struct walk *walk = recount->walk;
  int y = recount->used++;
  if (y >= walk->channel.symbol_count || strcmp(walk->channel.symbols[y], key) != 0 || value < 0 ||
      value > walk->survey.reports)
    return walk->same = 0;
  walk->reports[y] = value;
  recount->total += value;
  return 1;
}

static int close_to(double a, double b, double scale) {
  return fabs(a - b) <= 1e-9 * scale;
}

/*
** The state of compare_value(), which compares the stored values with the estimates from the
** reports.
*/
struct comparison {
  struct walk *walk;
  const double *weights;
  size_t used;
};

static int compare_value(void *context, const struct ledger_value *stored) {
  struct comparison *comparison = context;
  struct walk *walk = comparison->walk;
  size_t x = comparison->used++;
  if (x >= walk->chain.rows) return walk->same = 0;
  struct ledger_value value =
      response_estimate(&walk->chain, comparison->weights, walk->survey.channel.states[x], x,
                        walk->reports, walk->survey.reports);
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
  struct recount recount = {walk, 0, 0};
  struct comparison comparison = {walk, 0, 0};
  double *weights = 0;
  sqlite3_free(walk->reports);
  walk->reports =
      sqlite3_malloc64(sizeof *walk->reports * (sqlite3_uint64)walk->channel.symbol_count);
  if (!walk->reports) {
    error_set_memory(&walk->error);
    return;
  }
  ledger_reports(ledger, id, stage->tier, take_report, &recount);
  walk->same = walk->same && recount.used == walk->channel.symbol_count &&
               recount.total == walk->survey.reports;
  for (int i = 0; i < RENYI_ORDERS; i++)
    walk->same = walk->same && close_to(stage->curve[i], walk->costs[i], walk->costs[i]);
  if (walk->same) response_weights(&walk->chain, &weights, &walk->error);
  comparison.weights = weights;
  if (walk->same && !error_is_set(&walk->error)) {
    ledger_values(ledger, id, stage->tier, compare_value, &comparison);
    walk->same = walk->same && comparison.used == walk->chain.rows;
  }
  sqlite3_free(weights);
}

static int take_stage(void *context, const struct ledger_stage *stage) {
  struct walk *walk = context;
  struct publication *publication = walk->publication;
  struct ledger *ledger = publication->session->ledger;
  walk->tier = symbols_tier(publication, stage->tier);
  walk->same =
      walk->tier < publication->position.count && (walk->stages > 0) == (stage->kernel != 0);
  if (!walk->same) return 0;
  struct markov_kernel next;
  const char *kernel = stage->kernel ? stage->kernel : walk->survey.kernel;
  int passed = markov_kernel_read(&next, ledger_json(ledger), kernel, &walk->error) &&
               walk_pass(walk, &next, &walk->error);
  markov_kernel_clear(&walk->channel);
  walk->channel = next;
  walk->stages++;
  if (passed) check_stage(walk, stage);
  return walk->same && !error_is_set(&walk->error) &&
         !(walk->until && strcmp(walk->until, stage->tier) == 0);
}

/* Walks outward. Afterwards the caller checks walk.error, the ledger's error and walk.same. */
static void walk_stages(struct walk *walk) {
  walk->same = 1;
  if (survey_read(&walk->survey, walk->publication, &walk->error))
    ledger_stages(walk->publication->session->ledger, walk->publication->definition.release.id,
                  take_stage, walk);
  if (!walk->stages) walk->same = 0;
}

/* ---- outward --------------------------------------------------------------------------------- */

static int mix_from(struct walk *walk, const struct markov_kernel *channel) {
  struct publication *publication = walk->publication;
  struct ledger *ledger = publication->session->ledger;
  const char *name = publication->definition.release.name,
             *tier = publication->position.tiers[publication->position.at].name;
  const struct markov_kernel *last = &walk->channel;
  double *weights = 0;
  if (publication->position.at <= walk->tier)
    return error_set(ledger_error(ledger),
                     "tier '%s' is not outside tier '%s', where the last reports of release '%s' "
                     "are (make a release of its own)",
                     tier, publication->position.tiers[walk->tier].name, name);
  int passed = walk_pass(walk, channel, &walk->error) &&
               response_weights(&walk->chain, &weights, &walk->error);
  sqlite3_free(weights);
  if (!passed || !symbols_pay(publication, walk->costs)) return 0;
  size_t symbols = (size_t)channel->symbol_count;
  int64_t *reports = sqlite3_malloc64(sizeof *reports * symbols);
  int drawn = reports != 0;
  if (reports) memset(reports, 0, sizeof *reports * symbols);
  for (int y = 0; y < last->symbol_count && drawn; y++)
    drawn = draw_reports(ledger, channel, last->symbols[y], walk->reports[y], reports);
  int mixed = drawn ? publish_reports(publication, &walk->survey, &walk->chain, channel->symbols,
                                      reports, channel->json)
                    : error_set(ledger_error(ledger), "out of memory or random bytes");
  sqlite3_free(reports);
  return mixed;
}

int responses_mix(struct publication *publication, const struct markov_kernel *channel) {
  struct error *error = ledger_error(publication->session->ledger);
  struct walk walk = {.publication = publication};
  walk_stages(&walk);
  if (!error_is_set(&walk.error) && !error_is_set(error) && !walk.same)
    error_set(error, "release '%s' is not what its charges say (see dp_verify)",
              publication->definition.release.name);
  int mixed = !error_is_set(&walk.error) && !error_is_set(error) && mix_from(&walk, channel);
  if (error_is_set(&walk.error)) error_set(error, "%s", error_text(&walk.error));
  walk_end(&walk);
  return mixed;
}

static int responses_verify(struct publication *publication,
                            const struct ledger_publication *published) {
  struct ledger *ledger = publication->session->ledger;
  const char *tier = published->tier;
  struct walk walk = {.publication = publication, .until = tier};
  walk_stages(&walk);
  int sound = walk.same && !error_is_set(&walk.error);
  if (error_is_memory(&walk.error)) error_set_memory(ledger_error(ledger));
  walk_end(&walk);
  return sound ||
         ledger_discrepancy(
             ledger,
             "dp_publication: '%s' at tier '%s' is not what its reports and kernels make it",
             publication->definition.release.name, tier);
}

const struct procedure response_procedure = {
    .details = sizeof(struct survey_options),
    .finish = responses_finish,
    .clear = options_clear,
    .prepare = responses_prepare,
    .charge = responses_charge,
    .draw = responses_draw,
    .draws_early = 1,
    .keep = responses_keep,
    .stays = "is made of reports, which reach a tier outside their own only through a public "
             "kernel (dp_mix)",
    .verify = responses_verify};
