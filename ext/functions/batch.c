/* batch.c: dp_batch(), which makes many releases at once.
**
**   B1  One transaction makes all charges, including the charges of the diffusions. If one charge
**       is refused, none is made. The arguments and queries of all releases are checked before the
**       first charge.
**   B2  Then the queries run, one after the other. Each release is stored before the next query
**       runs.
**   B3  If a batch is called again, it charges nothing twice. It finishes the releases that were
**       charged but have no point yet, and answers with the stored values of the other releases. It
**       never runs a failed release again, and the answer of a failed release is null.
**   B4  Several processes may run the same batch. The first process that finishes a release stores
**       its values, and the other processes answer with the stored values.
** Tests: tests/functions/test_batch.py */
#include "functions/internal.h"

#include <string.h>

#include "base/sql_text.h"
#include "release/release.h"

SQLITE_EXTENSION_INIT3

/* ---- the members of an element --------------------------------------------------------------- */

struct reader {
  struct batch_element *element;
  struct json *json;
  char *unknown;          /* the first unknown member, or null */
  sqlite3_value *diffuse; /* a copy, or null */
};

#define MEMBERS 5
#define NESTED  2 /* from this member on, options stand in an object of their own */

static const char *const members[MEMBERS] = {"tier", "kind", "sql", "options", "diffuse"};

static int take_member(void *context, const char *key, const char *type, sqlite3_value *value) {
  struct reader *reader = context;
  struct batch_element *element = reader->element;
  sqlite3_value **const places[MEMBERS] = {&element->tier, &element->kind, &element->sql,
                                           &element->options, &reader->diffuse};
  for (int i = 0; i < MEMBERS; i++) {
    if (strcmp(members[i], key) != 0) continue;
    element->is_nested |= i >= NESTED;
    if (places[i] == &reader->diffuse && strcmp(type, "array") != 0)
      return error_set(reader->json->error, "diffuse must be a JSON array of tiers, not %s", type);
    *places[i] = sqlite3_value_dup(value);
    return *places[i] || error_set_memory(reader->json->error);
  }
  if (!reader->unknown) reader->unknown = sqlite3_mprintf("%s", key);
  return reader->unknown || error_set_memory(reader->json->error);
}

/* Reads the members of an element. In a nested element, other members are an error. In an element
** that is not nested, other members are options of the release, and this function skips these
** options. Returns 1, or 0 with the error in the JSON reader. The caller clears the element in
** either case. */
static int element_read(struct batch_element *element, struct json *json, const char *object) {
  struct reader reader = {element, json, 0, 0};
  *element = (struct batch_element){0};
  int read = json_members(json, object, take_member, &reader), count = 0;
  if (read && reader.diffuse) {
    element->outer = json_list(json, (const char *)sqlite3_value_text(reader.diffuse),
                               "diffuse must list the names of tiers", &count);
    read = element->outer != 0;
  }
  if (read && element->is_nested && reader.unknown) {
    struct known_names known = {.asked = reader.unknown, .shows = 1};
    for (int i = 0; i < MEMBERS; i++) known_names_add(&known, members[i]);
    read = known_names_fail(&known, json->error, "unknown member%s (%sknown members: %s)");
  }
  if (read && !element->kind) read = error_set(json->error, "kind is missing");
  if (read && !element->tier) read = error_set(json->error, "tier is missing");
  sqlite3_value_free(reader.diffuse);
  sqlite3_free(reader.unknown);
  return read;
}

/* ---- elements -------------------------------------------------------------------------------- */

int batch_items_fail(const struct batch_items *items, int number) {
  struct error *session = &items->host->session.error, error = error_take(session);
  if (items->plans) {
    error_set(session, "plan %d of the array: %s", number, error_text(&error));
  } else {
    /* Advice: The releases are numbered from 0. An error of a parameter or of the budget has
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
  int weighed = ledger_begin_reading(ledger) && plan_weight(&item->request, &host->session);
  ledger_rollback(ledger);
  return weighed;
}

static int read_item(const struct batch_items *items, struct batch_item *item,
                     sqlite3_value *object) {
  struct host *host = items->host;
  struct error *error = &host->session.error;
  struct batch_element *element = &item->element;
  if (!element_read(element, ledger_json(host->session.ledger),
                    (const char *)sqlite3_value_text(object)))
    return 0;
  if (!element->sql && !items->plans) return error_set(error, "sql is missing");
  if (!(element->sql ? read_release(item, host, items->plans) : read_plan(item, host, object)))
    return 0;
  if (element->is_nested && !item->request.name)
    return error_set(error, "the options must name the release (a batch that runs again finds its "
                            "releases by their names)");
  if (element->outer && *element->outer && host->guard)
    return error_set(error, "diffuse is the owner's");
  item->request.resumes = element->is_nested;
  if (element->outer && !host->guard) /* a guard has set its own tiers */
    item->request.outward = (const char *const *)element->outer;
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
    struct batch_element *element = &items->list[i].element;
    sqlite3_value_free(element->tier);
    sqlite3_value_free(element->kind);
    sqlite3_value_free(element->sql);
    sqlite3_value_free(element->options);
    json_list_free(element->outer);
  }
  sqlite3_free(items->list);
  *items = (struct batch_items){items->host, items->plans, 0, 0};
}

/* ---- charging -------------------------------------------------------------------------------- */

struct batch {
  struct batch_items items;
  struct publication *publications; /* one for each item */
};

/* Checks the releases that are new in this call: none of them may take a parameter from published
** bounds that the release's outermost tier does not see (release/clip_bounds.c). The text of the
** batch can contain bounds of the batch itself only if an earlier call has published them. */
static int check_bounds(struct batch *batch) {
  for (int i = 0; i < batch->items.count; i++) {
    const struct publication *user = &batch->publications[i];
    int is_old = user->answered && !user->declared;
    if (is_old || user->failed) continue;
    for (int j = 0; j < batch->items.count; j++) {
      if (!bounds_use_check(&batch->publications[j], &batch->items.list[i].request))
        return batch_items_fail(&batch->items, i);
    }
  }
  return 1;
}

/* Charges all releases of the batch (B1). */
static int charge_all(struct batch *batch) {
  struct session *session = &batch->items.host->session;
  const struct batch_items *items = &batch->items;
  int charged = 1;
  for (int i = 0; i < items->count && charged; i++)
    charged = publish_prepare(session, &items->list[i].request) || batch_items_fail(items, i);
  if (!charged || !ledger_begin(session->ledger)) return 0;
  for (int i = 0; i < items->count && charged; i++)
    charged = publish_enter(&batch->publications[i], session, &items->list[i].request) ||
              batch_items_fail(items, i);
  if (charged) check_bounds(batch);
  return ledger_commit(session->ledger);
}

/* ---- running --------------------------------------------------------------------------------- */

/* Runs the queries of the releases that are not answered yet (B2). */
static int run_all(struct batch *batch) {
  for (int i = 0; i < batch->items.count; i++) {
    struct publication *publication = &batch->publications[i];
    if (publication->answered || publication->failed) continue;
    if (!release_run(publication, &batch->items.list[i].request, batch->items.host))
      return batch_items_fail(&batch->items, i);
  }
  return 1;
}

static void append_answer(sqlite3_str *json, const struct publication *publication) {
  if (publication->failed || publication->answer.is_null) {
    sqlite3_str_appendall(json, "null");
  } else if (!publication->answer.json) {
    json_append_number(json, publication->answer.number);
  } else if (publication->definition.aggregate->form == FORM_SYMBOL) {
    json_append_string(json, publication->answer.json);
  } else {
    sqlite3_str_appendall(json, publication->answer.json);
  }
}

static char *answers(const struct batch *batch) {
  sqlite3_str *json = sqlite3_str_new(0);
  sqlite3_str_appendall(json, "[");
  for (int i = 0; i < batch->items.count; i++) {
    const struct publication *publication = &batch->publications[i];
    sqlite3_str_appendall(json, i ? ",{\"name\":" : "{\"name\":");
    json_append_string(json, batch->items.list[i].request.name);
    sqlite3_str_appendf(json, ",\"outcome\":\"%s\",\"answer\":",
                        publication->failed     ? "failed"
                        : publication->replayed ? "replayed"
                                                : "made");
    append_answer(json, publication);
    sqlite3_str_appendall(json, "}");
  }
  sqlite3_str_appendall(json, "]");
  return sqlite3_str_finish(json);
}

/* dp_batch(array) -> JSON [{"name", "outcome", "answer"}, ...], in the same order */
static int dp_batch(struct call *call) {
  struct session *session = &call->host->session;
  struct batch batch = {{call->host, 0, 0, 0}, 0};
  int done = batch_items_read(&batch.items, call->texts[0]);
  if (done) {
    size_t size = sizeof *batch.publications * ((size_t)batch.items.count + 1);
    batch.publications = sqlite3_malloc64(size);
    if (batch.publications) memset(batch.publications, 0, size);
    done = (batch.publications || error_set_memory(&session->error)) && charge_all(&batch);
  }
  deferred_forget(session);
  done = done && run_all(&batch) && call_text(call, answers(&batch));
  for (int i = 0; batch.publications && i < batch.items.count; i++)
    publish_clear(&batch.publications[i]);
  sqlite3_free(batch.publications);
  batch_items_clear(&batch.items);
  return done;
}

const struct function batch_functions[] = {
    {"dp_batch", 1, 1, TO_OWNER, NOT_NESTED | LEDGER_OPEN, {"array"}, dp_batch},
    {0},
};
