/* values.c: see values.h. */
#include "release/values.h"

#include "mechanism/markov_kernel.h"
#include "release/numbers.h"
#include "release/session.h"

SQLITE_EXTENSION_INIT3

struct rendering {
  enum answer_form form;
  sqlite3_str *json;
  double number;
  int count;
};

static enum answer_form form_of(const struct publication *publication) {
  const char *quantiles = publication->definition.release.quantiles;
  enum answer_form form = publication->definition.aggregate->form;
  if (!quantiles || *quantiles == '[') return form;
  return form == FORM_ARRAYS || form == FORM_OBJECT ? FORM_OBJECT : FORM_NUMBER;
}

static int render(void *context, const struct ledger_value *value) {
  struct rendering *rendering = context;
  int ends_array = rendering->form == FORM_ARRAYS && value->component == 0;
  if (rendering->count++) sqlite3_str_appendall(rendering->json, ends_array ? "]," : ",");
  if (rendering->form == FORM_SYMBOL) {
    sqlite3_str_appendall(rendering->json, value->key);
    return 1;
  }
  rendering->number = value->value + 0.0; /* 0 for -0, as SQLite stores it */
  if (rendering->form == FORM_OBJECT || ends_array) {
    json_append_string(rendering->json, value->key);
    sqlite3_str_appendall(rendering->json, ends_array ? ":[" : ":");
  }
  sqlite3_str_appendf(rendering->json, "%!.17g", rendering->number);
  return 1;
}

static struct rendering rendering_begin(const struct publication *publication) {
  static const char *const bracket[] = {[FORM_NUMBER] = "[",
                                        [FORM_ARRAY] = "[",
                                        [FORM_OBJECT] = "{",
                                        [FORM_ARRAYS] = "{",
                                        [FORM_SYMBOL] = ""};
  struct rendering rendering = {form_of(publication), sqlite3_str_new(0), 0, 0};
  sqlite3_str_appendall(rendering.json, bracket[rendering.form]);
  return rendering;
}

/* Sets the answer. `going` is 0 if an earlier step failed. Returns 1, or 0 with the error set. */
static int rendering_end(struct rendering *rendering, struct publication *publication, int going) {
  static const char *const bracket[] = {[FORM_NUMBER] = "]",
                                        [FORM_ARRAY] = "]",
                                        [FORM_OBJECT] = "}",
                                        [FORM_ARRAYS] = "}",
                                        [FORM_SYMBOL] = ""};
  struct ledger *ledger = publication->session->ledger;
  int is_object = rendering->form == FORM_OBJECT || rendering->form == FORM_ARRAYS;
  if (rendering->form == FORM_ARRAYS && rendering->count)
    sqlite3_str_appendall(rendering->json, "]");
  sqlite3_str_appendall(rendering->json, bracket[rendering->form]);
  char *json = sqlite3_str_finish(rendering->json);
  if (going && !json) going = error_set_memory(ledger_error(ledger));
  int is_null = !rendering->count && publication->definition.aggregate->family->by_exponent;
  if (going && !is_object && !is_null && !rendering->count)
    going = error_set(ledger_error(ledger), "release '%s' has lost its values",
                      publication->definition.release.name);
  sqlite3_free(publication->answer.json);
  publication->answer = (struct answer){rendering->number, 0, is_null};
  if (going && rendering->form != FORM_NUMBER && !is_null) {
    publication->answer.json = json;
  } else {
    sqlite3_free(json);
  }
  publication->answered = going;
  return going;
}

int values_read(struct publication *publication, const char *tier) {
  struct rendering rendering = rendering_begin(publication);
  int going = ledger_values(publication->session->ledger, publication->definition.release.id, tier,
                            render, &rendering);
  return rendering_end(&rendering, publication, going);
}

int values_publish(struct publication *publication, value_at *at, const void *context, int count,
                   int stores) {
  struct ledger *ledger = publication->session->ledger;
  const char *tier = publication->position.tiers[publication->position.at].name;
  struct rendering rendering = rendering_begin(publication);
  int going = 1;
  for (int i = 0; i < count && going; i++) {
    struct ledger_value value = at(context, i);
    going = (!stores ||
             ledger_value_insert(ledger, &publication->definition.release, tier, &value)) &&
            render(&rendering, &value);
  }
  return rendering_end(&rendering, publication, going);
}

static struct ledger_value number_at(const void *context, int index) {
  const struct numbers *numbers = context;
  return numbers_value(numbers, &numbers->estimates[index]);
}

int values_of_point(struct publication *publication, const struct cost *cost, const int64_t *values,
                    int stores) {
  struct ledger *ledger = publication->session->ledger;
  const char *tier = publication->position.tiers[publication->position.at].name;
  const struct markov_kernel *channel = publication->position.kernel;
  struct numbers numbers;
  int going = numbers_read(publication, cost->delta, values, &numbers) &&
              (!channel || numbers_send(publication, channel, &numbers)) &&
              (!stores || ledger_publication_insert(
                              ledger, &publication->definition.release, tier,
                              publication->position.clock, cost, numbers.shrink,
                              numbers_clipping(publication, values), channel ? channel->json : 0));
  going = going && values_publish(publication, number_at, &numbers, numbers.count, stores);
  sqlite3_free(numbers.estimates);
  return going;
}
