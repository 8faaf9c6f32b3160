/* responses.c: see categories.h. Tests: tests/categories/test_responses.py */
#include "categories/categories.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sql_text.h"
#include "math/math.h"
#include "noise/noise.h"
#include "release/release.h"

SQLITE_EXTENSION_INIT3

/* ---- requests -------------------------------------------------------------------------------- */

void responses_clear(void *details) {
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

int responses_finish(struct request *request, int by_unit, struct error *error) {
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

static int take_member(void *context, const char *key, const char *type, sqlite3_value *value) {
  struct survey *survey = context;
  const char *text = (const char *)sqlite3_value_text(value);
  (void)type;
  if (!text) return 0;
  char **member = strcmp(key, "otherwise") == 0 ? &survey->otherwise : &survey->kernel;
  if (strcmp(key, "n") == 0) {
    survey->reports = strtoll(text, 0, 10);
    return 1;
  }
  *member = sqlite3_mprintf("%s", text);
  return *member != 0;
}

void survey_clear(struct survey *survey) {
  sqlite3_free(survey->otherwise);
  sqlite3_free(survey->kernel);
  markov_kernel_clear(&survey->channel);
  *survey = (struct survey){0};
}

int survey_read(struct survey *survey, const struct publication *publication, struct error *error) {
  struct ledger *ledger = publication->session->ledger;
  const char *model = publication->definition.release.model;
  *survey = (struct survey){0};
  if (!model || !json_members(ledger_json(ledger), model, take_member, survey) || !survey->kernel ||
      !survey->otherwise || survey->reports < 1 || survey->reports > RESPONSE_MAX_ROWS)
    return error_set(
        error, "release '%s' has an impossible kernel (restore the ledger from a backup)",
        publication->definition.release.name ? publication->definition.release.name : "");
  return markov_kernel_read(&survey->channel, ledger_json(ledger), survey->kernel, error);
}

/* ---- costs ----------------------------------------------------------------------------------- */

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

int responses_pass(struct ledger *ledger, const struct markov_kernel *channel, const char *state,
                   int64_t count, int64_t *reports) {
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

/* Draws how many of the next `count` rows make a report: *wanted of the *left rows that remain are
** chosen at random. Updates both. Returns 0 as responses_pass() does. */
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

/* Draws the n reports of a survey from the numbers of rows in each state. Returns 0 as above. */
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
    if (!responses_pass(ledger, channel, channel->states[x], chosen, reports)) return 0;
  }
  return rows >= survey->reports ||
         responses_pass(ledger, channel, survey->otherwise, survey->reports - rows, reports);
}

int responses_publish(struct publication *publication, const struct survey *survey,
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
              ledger_publication_insert(ledger, release, tier, 0, &cost, 1, NO_CLIPPING,
                                        (double)NAN, kernel);
  for (size_t x = 0; x < chain->rows && going; x++) {
    struct ledger_value value =
        response_estimate(chain, weights, survey->channel.states[x], x, reports, survey->reports);
    going = ledger_value_insert(ledger, release, tier, &value);
  }
  sqlite3_free(weights);
  return going && values_read(publication, tier);
}

/* ---- a new release --------------------------------------------------------------------------- */

/* Returns the costs of one report, or null with the error set, if the reports do not tell the
** states. */
static double *weigh(const struct publication *publication, const struct survey *survey,
                     struct error *error) {
  const struct markov_kernel *channel = &survey->channel;
  double *weights = 0, *costs = symbols_costs(publication, publication->position.at);
  struct chain chain = {0};
  int weighed = ((costs && chain_pass(&chain, channel, channel->states, channel->state_count)) ||
                 error_set_memory(error)) &&
                symbols_lower(publication, &chain, INFINITY, costs, error) &&
                response_weights(&chain, &weights, error);
  sqlite3_free(weights);
  chain_clear(&chain);
  if (weighed) return costs;
  sqlite3_free(costs);
  return 0;
}

void responses_prepare(const struct publication *publication, const struct request *request) {
  struct publication asked = {.session = publication->session,
                              .definition = {.release = {.model = request->model}},
                              .position = publication->position};
  struct error error = {0};
  struct survey survey;
  if (survey_read(&survey, &asked, &error)) sqlite3_free(weigh(&asked, &survey, &error));
  survey_clear(&survey);
  error_clear(&error);
}

int responses_charge(struct publication *publication) {
  struct ledger *ledger = publication->session->ledger;
  struct error *error = ledger_error(ledger);
  const struct ledger_tier *tier = &publication->position.tiers[publication->position.at];
  struct survey survey;
  double most = publication->definition.release.weight * tier->rate;
  if (ledger_adjacency(ledger) != LEDGER_REPLACE)
    return error_set(ledger_error(ledger),
                     "a kernel on rows needs a ledger with replaced rows as neighbours: start "
                     "one with dp_init('{\"protects\":\"row\",\"adjacency\":\"replace\"}')");
  double *costs = survey_read(&survey, publication, error) ? weigh(publication, &survey, error) : 0;
  int weighed = costs != 0;
  if (weighed && !(rate_of(publication, costs) <= most * (1 + 0x1p-30)))
    weighed = error_set(error,
                        "the kernel costs a rate of %g, more than the %g of tier '%s' (take one "
                        "that keeps less, or ask at an inner tier)",
                        rate_of(publication, costs), most, tier->name);
  int charged = weighed && symbols_charge(publication, costs);
  sqlite3_free(costs);
  survey_clear(&survey);
  return charged;
}

int responses_draw(struct publication *publication, const int64_t *counts) {
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
    *drawn = (struct drawn){publication->position.at, 0, 0, reports};
    publication->drawn = drawn;
    publication->drawn_count = 1;
  } else {
    sqlite3_free(reports);
    sqlite3_free(drawn);
  }
  survey_clear(&survey);
  return done;
}

int responses_keep(struct publication *publication) {
  struct error *error = ledger_error(publication->session->ledger);
  struct survey survey;
  struct chain chain = {0};
  const struct markov_kernel *channel = &survey.channel;
  int kept = survey_read(&survey, publication, error) &&
             (chain_pass(&chain, channel, channel->states, channel->state_count) ||
              error_set_memory(error)) &&
             responses_publish(publication, &survey, &chain, channel->symbols,
                               publication->drawn[0].values, 0);
  chain_clear(&chain);
  survey_clear(&survey);
  return kept;
}

/* ---- estimates ------------------------------------------------------------------------------- */

int response_weights(const struct chain *chain, double **weights, struct error *error) {
  size_t rows = chain->rows, columns = chain->columns;
  double *gram = sqlite3_malloc64(sizeof *gram * rows * rows);
  *weights = sqlite3_malloc64(sizeof **weights * rows * columns);
  int is_regular = 1;
  if (!gram || !*weights) {
    sqlite3_free(gram);
    return error_set_memory(error);
  }
  memcpy(*weights, chain->high, sizeof **weights * rows * columns);
  for (size_t i = 0; i < rows && is_regular; i++) {
    double whole = 0;
    for (size_t j = 0; j <= i; j++) {
      double sum = 0;
      for (size_t y = 0; y < columns; y++)
        sum += chain->high[i * columns + y] * chain->high[j * columns + y];
      if (i == j) whole = sum;
      for (size_t k = 0; k < j; k++) sum -= gram[i * rows + k] * gram[j * rows + k];
      gram[i * rows + j] = j < i ? sum / gram[j * rows + j] : sqrt(sum);
      if (i == j) is_regular = sum > 1e-10 * whole;
    }
  }
  for (size_t i = 0; i < rows && is_regular; i++) { /* forward substitution */
    for (size_t y = 0; y < columns; y++) {
      double sum = (*weights)[i * columns + y];
      for (size_t k = 0; k < i; k++) sum -= gram[i * rows + k] * (*weights)[k * columns + y];
      (*weights)[i * columns + y] = sum / gram[i * rows + i];
    }
  }
  for (size_t i = rows; i-- > 0 && is_regular;) { /* backward substitution */
    for (size_t y = 0; y < columns; y++) {
      double sum = (*weights)[i * columns + y];
      for (size_t k = i + 1; k < rows; k++) sum -= gram[k * rows + i] * (*weights)[k * columns + y];
      (*weights)[i * columns + y] = sum / gram[i * rows + i];
    }
  }
  sqlite3_free(gram);
  return is_regular
             ? 1
             : error_set(error, "the rows of the kernel are too close to linear combinations of "
                                "each other: reports do not tell how many rows have which x");
}

/* Bounds on what one report adds to the estimate of a state, for any data. */
struct spread {
  double variance, range, deviation; /* variance and deviation are the largest of all kernel rows */
};

static struct spread spread_of(const struct chain *chain, const double *weight, size_t state) {
  struct spread spread = {0, 0, 0};
  double low = INFINITY, high = -INFINITY;
  for (size_t x = 0; x < chain->rows; x++) {
    double mean = x == state, variance = 0;
    for (size_t y = 0; y < chain->columns; y++) {
      double p = chain->high[x * chain->columns + y], off = weight[y] - mean;
      if (!(p > 0)) continue;
      variance += p * off * off;
      spread.deviation = fmax(spread.deviation, fabs(off));
      low = fmin(low, weight[y]);
      high = fmax(high, weight[y]);
    }
    spread.variance = fmax(spread.variance, variance);
  }
  spread.range = high - low;
  return spread;
}

struct ledger_value response_estimate(const struct chain *chain, const double *weights,
                                      const char *key, size_t state, const int64_t *reports,
                                      int64_t count) {
  const double *weight = &weights[state * chain->columns];
  struct spread spread = spread_of(chain, weight, state);
  double value = 0, n = (double)count, certainty = log(2 / 0.05);
  for (size_t y = 0; y < chain->columns; y++) value += weight[y] * (double)reports[y];
  double hoeffding = spread.range * sqrt(n * certainty / 2),
         part = spread.deviation * certainty / 3;
  double bernstein = part + sqrt(part * part + 2 * n * spread.variance * certainty);
  double half = published_up(fmin(hoeffding, bernstein)) + 1e-9 * n;
  double stddev = published_up(sqrt(n * spread.variance));
  double low = nextafter(value - half, -INFINITY), high = nextafter(value + half, INFINITY);
  return (struct ledger_value){key, 0, value, stddev, low, high};
}
