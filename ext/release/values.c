/* values.c: see values.h. Tests: tests/mechanism/test_kinds_noise.py */
#include "release/values.h"

#include <math.h>

#include "release/numbers.h"
#include "release/session.h"

SQLITE_EXTENSION_INIT3

/* Returns the noisy count that a private key needs, or NaN if the keys are public. */
static double threshold_of(const struct publication *publication, double delta) {
  int is_private = publication->definition.release.max_groups > 0;
  return is_private ? numbers_threshold(publication, delta) : (double)NAN;
}

int values_store(struct publication *publication, const struct cost *cost, const int64_t *values) {
  struct ledger *ledger = publication->session->ledger;
  const char *tier = publication_tier(publication)->name;
  const struct mixing *mixing = publication->position.mixing;
  struct numbers numbers = {0};
  int stored = 1;
  if (publication->figures) { /* computed before the transaction */
    numbers = *publication->figures;
    *publication->figures = (struct numbers){0};
  } else {
    stored = numbers_read(publication, cost->delta, NUMBERS_CONFIDENCE, values, &numbers);
  }
  stored =
      stored && (!mixing || mixing->send(publication, mixing, &numbers)) &&
      ledger_publication_insert(ledger, &publication->definition.release, tier,
                                publication->position.clock, cost, numbers.shrink, numbers.clipping,
                                threshold_of(publication, cost->delta), mixing ? mixing->json : 0);
  for (int i = 0; i < numbers.count && stored; i++) {
    struct ledger_value value = numbers_value(&numbers, &numbers.estimates[i]);
    stored = ledger_value_insert(ledger, &publication->definition.release, tier, &value);
  }
  numbers_clear(&numbers);
  return stored && values_read(publication, tier);
}

/* ---- answers --------------------------------------------------------------------------------- */

struct rendering {
  enum answer_form form;
  sqlite3_str *json;
  double number;
  int count;
};

static int render(void *context, const struct ledger_value *value) {
  struct rendering *rendering = context;
  int ends_array = rendering->form == FORM_ARRAYS && value->component == 0;
  if (rendering->count++) sqlite3_str_appendall(rendering->json, ends_array ? "]," : ",");
  if (rendering->form == FORM_SYMBOL) {
    sqlite3_str_appendall(rendering->json, value->key);
    return 1;
  }
  rendering->number = value->value;
  if (rendering->form == FORM_OBJECT || ends_array) {
    json_append_string(rendering->json, value->key);
    sqlite3_str_appendall(rendering->json, ends_array ? ":[" : ":");
  }
  json_append_number(rendering->json, value->value);
  return 1;
}

int values_read(struct publication *publication, const char *tier) {
  if (publication->definition.release.periods) { /* a figure for each period, none for the whole */
    publication->answer.is_null = publication->answered = 1;
    return 1;
  }
  struct ledger *ledger = publication->session->ledger;
  const char *quantiles = publication->definition.release.quantiles;
  enum answer_form form = publication->definition.aggregate->form;
  if (quantiles && *quantiles != '[') /* one quantile, not an array */
    form = form == FORM_ARRAYS || form == FORM_OBJECT ? FORM_OBJECT : FORM_NUMBER;
  struct rendering rendering = {form, sqlite3_str_new(0), 0, 0};
  int is_object = rendering.form == FORM_OBJECT || rendering.form == FORM_ARRAYS;
  static const char *const brackets[][2] = {[FORM_NUMBER] = {"[", "]"},
                                            [FORM_ARRAY] = {"[", "]"},
                                            [FORM_OBJECT] = {"{", "}"},
                                            [FORM_ARRAYS] = {"{", "}"},
                                            [FORM_SYMBOL] = {"", ""}};
  sqlite3_str_appendall(rendering.json, brackets[rendering.form][0]);
  int going = ledger_values(ledger, publication->definition.release.id, tier, render, &rendering);
  if (rendering.form == FORM_ARRAYS && rendering.count) sqlite3_str_appendall(rendering.json, "]");
  sqlite3_str_appendall(rendering.json, brackets[rendering.form][1]);
  char *json = sqlite3_str_finish(rendering.json);
  if (going && !json) going = error_set_memory(ledger_error(ledger));
  int is_null = !rendering.count && publication->definition.aggregate->family->by_exponent;
  if (going && !is_object && !is_null && !rendering.count)
    going = error_set(ledger_error(ledger), "release '%s' has lost its values",
                      publication->definition.release.name);
  if (!going || rendering.form == FORM_NUMBER || is_null) {
    sqlite3_free(json);
    json = 0;
  }
  if (going) { /* after a failure, the publication keeps the answer that somebody may have seen */
    sqlite3_free(publication->answer.json);
    publication->answer = (struct answer){rendering.number, json, is_null};
  }
  publication->answered = going;
  return going;
}
