/* batch_items.c: see batch_items.h. Tests: tests/functions/test_batch.py */
#include "functions/batch_items.h"

#include <string.h>

#include "base/sql_text.h"
#include "functions/functions.h"
#include "functions/options.h"
#include "functions/plan_weight.h"
#include "functions/releases.h"
#include "release/parameter_checks.h"

SQLITE_EXTENSION_INIT3

int batch_items_fail(const struct batch_items *items, int number) {
  struct error *session = &items->host->session.error, error = error_take(session);
  if (items->plans) {
    error_set(session, "plan %d of the array: %s", number, error_text(&error));
  } else {
    /* Advice: The number, from 0, and its error. An error of a parameter or of the budget has
       charged nothing. If a query failed, run the batch again: the other releases are or will be
       stored. */
    error_set(session, "release %d of the batch: %s", number, error_text(&error));
  }
  error_clear(&error);
  return 0;
}

/* Reads an element of dp_plan() that has no question. `object` is the text of the element. */
static int read_plan(struct batch_item *item, struct host *host, sqlite3_value *object) {
  struct error *error = &host->session.error;
  struct ledger *ledger = host->session.ledger;
  const struct batch_element *element = &item->element;
  const struct aggregate *aggregate = aggregate_find(plain_text(element->kind));
  if (!aggregate) return unknown_kind(plain_text(element->kind), error);
  int form = element->is_nested ? OPTIONS_OF_PLAN : OPTIONS_OF_PLAN | OPTIONS_OF_ELEMENT;
  return request_start(&item->request, aggregate, ledger_json(ledger), element->tier,
                       element->is_nested ? element->options : object, form) &&
         request_finish(&item->request, ledger_protects(ledger) == LEDGER_UNITS, error) &&
         release_guarded(host, &item->request, 0, error);
}

/* Reads an element with a question. */
static int read_release(struct batch_item *item, struct host *host, int plans) {
  struct ledger *ledger = host->session.ledger;
  struct error *error = &host->session.error;
  const struct batch_element *element = &item->element;
  struct release_arguments arguments = {element->tier,    element->kind,   element->sql,
                                        element->options, NAME_NOT_NEEDED, OPTIONS_OF_BATCH};
  if (!release_check(&item->request, host, &arguments)) return 0;
  if (item->request.refine) return error_set(error, "refine is not for dp_batch (use dp_release)");
  if (plans) return 1; /* dp_plan() sets the weight in its own transaction */
  int weighed = ledger_begin_reading(ledger) && plan_weight(&item->request, host);
  ledger_rollback(ledger);
  return weighed;
}

static int read_item(const struct batch_items *items, struct batch_item *item,
                     sqlite3_value *object) {
  struct host *host = items->host;
  struct error *error = &host->session.error;
  struct batch_element *element = &item->element;
  if (!batch_element_read(element, ledger_json(host->session.ledger),
                          (const char *)sqlite3_value_text(object)))
    return 0;
  if (!element->sql && !items->plans) return error_set(error, "sql is missing");
  if (!(element->sql ? read_release(item, host, items->plans) : read_plan(item, host, object)))
    return 0;
  if (element->is_nested && !item->request.name)
    return error_set(error, "the options must name the release (a batch that runs again finds its "
                            "releases by their names)");
  if (element->outer && host->guard) return error_set(error, "diffuse is the owner's");
  item->request.resumes = element->is_nested;
  if (element->outer) item->request.outward = (const char *const *)element->outer;
  return 1;
}

static int take_item(void *context, const char *key, const char *type, sqlite3_value *value) {
  struct batch_items *items = context;
  struct error *error = &items->host->session.error;
  (void)key;
  struct batch_item *grown =
      sqlite3_realloc64(items->list, sizeof *grown * (sqlite3_uint64)(items->count + 1));
  if (!grown) return error_set_memory(error);
  items->list = grown;
  struct batch_item *item = &grown[items->count++];
  *item = (struct batch_item){0};
  int read = (strcmp(type, "object") == 0 || error_set(error, "not an object")) &&
             read_item(items, item, value);
  for (int i = 0; read && item->element.is_nested && i < items->count - 1; i++) {
    const char *name = grown[i].element.is_nested ? grown[i].request.name : 0;
    if (name && strcmp(name, item->request.name) == 0)
      read = error_set(error, "the name '%s' is given twice", name);
  }
  return read || batch_items_fail(items, items->count - 1);
}

int batch_items_read(struct batch_items *items, const char *array) {
  return json_elements(ledger_json(items->host->session.ledger), array, take_item, items);
}

void batch_items_clear(struct batch_items *items) {
  for (int i = 0; i < items->count; i++) {
    request_clear(&items->list[i].request);
    batch_element_clear(&items->list[i].element);
  }
  sqlite3_free(items->list);
  *items = (struct batch_items){items->host, items->plans, 0, 0};
}
