/* numbers.c: see numbers.h. */
#include "release/numbers.h"

#include <math.h>
#include <string.h>

#include "base/vector_text.h"
#include "math/rounding.h"
#include "mechanism/markov_kernel.h"
#include "release/definition.h"
#include "release/session.h"

SQLITE_EXTENSION_INIT3

static struct reading reading_of(const struct publication *publication, double delta) {
  int keyed = publication->definition.contribution.keys != 0;
  return (struct reading){.question = &publication->definition.contribution,
                          .shape = &publication->definition.layout,
                          .view = definition_view(publication),
                          .cells = keyed ? publication->grid.cells
                                         : publication->definition.layout.cells,
                          .root = publication->definition.aggregate->root,
                          .selection_delta = delta,
                          .descent = &publication->definition.descent};
}

int numbers_read(const struct publication *publication, double delta, const int64_t *values,
                 struct numbers *numbers) {
  struct reading reading = reading_of(publication, delta);
  const char *text = publication->definition.release.quantiles;
  double *quantiles = text ? sqlite3_malloc64(sizeof *quantiles * strlen(text)) : 0;
  if (quantiles) reading.quantile_count = vector_text_list(text, quantiles, (int)strlen(text));
  reading.quantiles = quantiles;
  size_t room = (size_t)estimate_room(&reading) + 1;
  numbers->estimates = sqlite3_malloc64(sizeof *numbers->estimates * room);
  numbers->count = -1;
  if (numbers->estimates && (quantiles || !text))
    numbers->count = estimate_point(&reading, values, numbers->estimates);
  numbers->shrink = reading.shrink;
  numbers->keys = publication->grid.keys;
  sqlite3_free(quantiles);
  return numbers->count >= 0 ||
         error_set(ledger_error(publication->session->ledger), "out of memory");
}

struct ledger_clipping numbers_clipping(const struct publication *publication,
                                        const int64_t *values) {
  const struct layout *shape = &publication->definition.layout;
  struct view view = definition_view(publication);
  if (!shape->diagnoses) return NO_CLIPPING;
  const int64_t *counts = &values[grid_size(&publication->grid) - DIAGNOSES];
  double unit = ldexp((double)shape->diagnose_steps, shape->fine_exponent);
  return (struct ledger_clipping){ldexp((double)counts[0], view.granularity) / unit,
                                  ldexp((double)counts[1], view.granularity) / unit,
                                  published_up(sqrt(estimate_variance(&view)) / unit)};
}

struct ledger_value numbers_value(const struct numbers *numbers, const struct estimate *estimate) {
  return (struct ledger_value){numbers->keys ? numbers->keys[estimate->cell] : "",
                               estimate->component,
                               estimate->value,
                               estimate->stddev,
                               estimate->low,
                               estimate->high};
}

int numbers_have_public_sums(const struct publication *publication) {
  const struct family *family = publication->definition.contribution.family;
  return family->has_keys && family->is_linear && publication->definition.release.keys &&
         publication->definition.layout.width == 1;
}

int numbers_mixable(const struct publication *publication) {
  return numbers_have_public_sums(publication) ||
         error_set(ledger_error(publication->session->ledger),
                   "release '%s' has neither a symbol nor counts or sums of public groups, "
                   "which a kernel could send on (use dp_diffuse)",
                   publication->definition.release.name);
}

const char *numbers_missing_group(const struct publication *publication,
                                  const struct markov_kernel *channel) {
  for (int i = 0; i < publication->grid.cells; i++) {
    if (!markov_kernel_row(channel, publication->grid.keys[i])) return publication->grid.keys[i];
  }
  return 0;
}

int numbers_send(const struct publication *publication, const struct markov_kernel *channel,
                 struct numbers *numbers) {
  struct ledger *ledger = publication->session->ledger;
  char *const *keys = publication->grid.keys;
  int count = publication->grid.cells, symbols = channel->symbol_count;
  const char *missing = numbers_missing_group(publication, channel);
  if (missing) return error_set(ledger_error(ledger), "the kernel has no row for x '%s'", missing);
  struct chain chain = {0};
  struct view view = definition_view(publication);
  double *weights = sqlite3_malloc64(sizeof *weights * (sqlite3_uint64)count);
  struct estimate *sent = sqlite3_malloc64(sizeof *sent * (sqlite3_uint64)symbols);
  int going = weights && sent && chain_pass(&chain, channel, keys, count);
  for (int y = 0; y < symbols && going; y++) {
    for (int x = 0; x < count; x++) weights[x] = chain.high[(size_t)x * chain.columns + (size_t)y];
    sent[y] = estimate_mixed(&view, numbers->estimates, count, weights, y);
  }
  chain_clear(&chain);
  sqlite3_free(weights);
  sqlite3_free(going ? numbers->estimates : sent);
  if (!going) return error_set_memory(ledger_error(ledger));
  numbers->estimates = sent;
  numbers->count = symbols;
  numbers->keys = channel->symbols;
  return 1;
}

/*
** Returns the part of the tier's delta_keys that the selection of private keys may use. Each
** publication of the release uses this part anew.
*/
static double selection_delta(const struct publication *publication) {
  const struct ledger_release *release = &publication->definition.release;
  double share = release->key_share * (1 - 0x1p-40); /* ten shares of 0.1 add up to at most 1 */
  return release->max_groups
             ? share * publication->position.tiers[publication->position.at].delta_keys
             : 0;
}

double numbers_threshold(const struct publication *publication) {
  struct reading reading = reading_of(publication, selection_delta(publication));
  double steps = publication->definition.layout.family->by_exponent
                     ? estimate_bounds_threshold(&reading)
                     : estimate_threshold(&reading);
  return ldexp(steps, publication->definition.release.granularity) /
         publication->definition.layout.count_factor;
}

double numbers_stddev(const struct publication *publication) {
  struct reading reading = reading_of(publication, 0);
  return estimate_total_stddev(&reading);
}

double numbers_half_width(const struct publication *publication, double rows, double confidence) {
  struct reading reading = reading_of(publication, 0);
  return estimate_half_width(&reading, rows, confidence);
}
