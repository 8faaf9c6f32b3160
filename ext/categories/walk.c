/*
** walk.c: see walk.h.
** Tests: tests/categories/test_symbols.py, tests/categories/test_responses.py
*/
#include "categories/walk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "categories/categories.h"
#include "categories/response_estimates.h"
#include "categories/responses.h"
#include "release/session.h"

SQLITE_EXTENSION_INIT3

/*
** The state of a walk along the publications of a release, from the inner tiers to the outer tiers.
*/
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
  double *weights;              /* of reports (response_estimates.h) */
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

int walk_mix(struct publication *publication, const struct markov_kernel *channel) {
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

int walk_verify(struct publication *publication, const struct ledger_publication *published) {
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
