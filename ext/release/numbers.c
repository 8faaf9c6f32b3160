/* numbers.c: see numbers.h. */
#include "release/numbers.h"

#include <math.h>

#include "base/vector_text.h"
#include "math/rounding.h"
#include "release/definition.h"
#include "release/session.h"

SQLITE_EXTENSION_INIT3

/* Room for the quantiles of a release. */
struct quantiles {
  double list[LAYOUT_MAX_QUANTILES];
};

static struct reading reading_of(const struct publication *publication, double delta,
                                 double confidence, struct quantiles *quantiles) {
  const char *text = publication->definition.release.quantiles;
  int keyed = publication->definition.contribution.keys != 0;
  return (struct reading){
      .question = &publication->definition.contribution,
      .shape = &publication->definition.layout,
      .view = definition_view(publication),
      .cells = keyed ? publication->grid.cells : publication->definition.layout.cells,
      .root = publication->definition.aggregate->root,
      .confidence = confidence,
      .quantiles = quantiles->list,
      .quantile_count = text ? vector_text_list(text, quantiles->list, LAYOUT_MAX_QUANTILES) : 0,
      .selection_delta = delta,
      .details = publication->definition.details};
}

void numbers_clear(struct numbers *numbers) {
  sqlite3_free(numbers->estimates);
  sqlite3_free(numbers->sent);
}

int numbers_read(const struct publication *publication, double delta, double confidence,
                 const int64_t *values, struct numbers *numbers) {
  struct quantiles quantiles;
  struct reading reading = reading_of(publication, delta, confidence, &quantiles);
  size_t room = (size_t)estimate_room(&reading) + 1;
  numbers->sent = 0;
  numbers->estimates = sqlite3_malloc64(sizeof *numbers->estimates * room);
  numbers->count = numbers->estimates ? estimate_point(&reading, values, numbers->estimates) : -1;
  numbers->shrink = reading.shrink;
  numbers->keys = publication->grid.keys;
  numbers->confidence = confidence;
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

double numbers_selection_delta(const struct publication *publication) {
  const struct ledger_release *release = &publication->definition.release;
  double share = release->key_share * (1 - 0x1p-40); /* ten shares of 0.1 add up to at most 1 */
  return release->max_groups
             ? share * publication->position.tiers[publication->position.at].delta_keys
             : 0;
}

double numbers_threshold(const struct publication *publication) {
  struct quantiles quantiles;
  struct reading reading =
      reading_of(publication, numbers_selection_delta(publication), NUMBERS_CONFIDENCE, &quantiles);
  double steps = publication->definition.layout.family->by_exponent
                     ? estimate_bounds_threshold(&reading)
                     : estimate_threshold(&reading);
  return ldexp(steps, publication->definition.release.granularity) /
         publication->definition.layout.count_factor;
}

double numbers_stddev(const struct publication *publication) {
  struct quantiles quantiles;
  struct reading reading = reading_of(publication, 0, NUMBERS_CONFIDENCE, &quantiles);
  return estimate_total_stddev(&reading);
}

double numbers_half_width(const struct publication *publication, double rows) {
  struct quantiles quantiles;
  struct reading reading = reading_of(publication, 0, NUMBERS_CONFIDENCE, &quantiles);
  return estimate_half_width(&reading, rows);
}
