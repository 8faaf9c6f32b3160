/*
** batch.c: dp_batch(), which makes many releases at once.
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
*/
#include <string.h>

#include "functions/batch_element.h"
#include "functions/functions.h"
#include "functions/host.h"
#include "functions/releases.h"
#include "release/bounds_use.h"
#include "release/deferred.h"
#include "release/publish.h"
#include "release/pending.h"

SQLITE_EXTENSION_INIT3

/* One release of the batch. */
struct item {
  struct batch_element element;
  struct request request;
  struct publication publication;
};

struct batch {
  struct host *host;
  struct item *items;
  int count;
};

/* Puts the number of the release, from 0, before the error message. Always returns 0. */
static int fail_item(struct host *host, int number) {
  struct error error = error_take(&host->session.error);
  error_set(&host->session.error, "release %d of the batch: %s", number, error_text(&error));
  error_clear(&error);
  return 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int read_item(struct item *item, struct host *host, const char *object) {
  struct error *error = &host->session.error;
  struct batch_element *element = &item->element;
  if (!batch_element_read(element, ledger_json(host->session.ledger), object)) return 0;
  if (!element->sql) return error_set(error, "sql is missing");
  struct release_arguments arguments = {element->tier, element->kind, element->sql,
                                        element->options, 0};
  if (!release_check(&item->request, host, &arguments)) return 0;
  if (!item->request.name)
    return error_set(error, "the options must name the release (a batch that runs again finds its "
                            "releases by their names)");
  if (item->request.refine) return error_set(error, "refine is not for dp_batch (use dp_release)");
  item->request.resumes = 1;
  item->request.outward = (const char *const *)element->outer;
  return 1;
}

static int take_item(void *context, const char *key, const char *type, sqlite3_value *value) {
  struct batch *batch = context;
  struct host *host = batch->host;
  (void)key;
  struct item *grown =
      sqlite3_realloc64(batch->items, sizeof *grown * (sqlite3_uint64)(batch->count + 1));
  if (!grown) return error_set_memory(&host->session.error);
  batch->items = grown;
  struct item *item = &grown[batch->count++];
  *item = (struct item){0};
  int read = (strcmp(type, "object") == 0 || error_set(&host->session.error, "not an object")) &&
             read_item(item, host, (const char *)sqlite3_value_text(value));
  for (int i = 0; read && i < batch->count - 1; i++) {
    if (strcmp(grown[i].request.name, item->request.name) == 0)
      read = error_set(&host->session.error, "the name '%s' is given twice", item->request.name);
  }
  return read || fail_item(host, batch->count - 1);
}

static void batch_clear(struct batch *batch) {
  for (int i = 0; i < batch->count; i++) {
    publish_clear(&batch->items[i].publication);
    request_clear(&batch->items[i].request);
    batch_element_clear(&batch->items[i].element);
  }
  sqlite3_free(batch->items);
}

/* ---- charging -------------------------------------------------------------------------------- */

/*
** Checks the releases that are new in this call: none of them may take a parameter from published
** bounds that the release's outermost tier does not see (release/bounds_use.h). The text of the
** batch can contain bounds of the batch itself only if an earlier call has published them.
*/
static int check_bounds(struct batch *batch) {
  for (int i = 0; i < batch->count; i++) {
    const struct item *user = &batch->items[i];
    int is_old = user->publication.answered && !user->publication.declared;
    if (is_old || user->publication.failed) continue;
    for (int j = 0; j < batch->count; j++) {
      if (!bounds_use_check(&batch->items[j].publication, &user->request))
        return fail_item(batch->host, i);
    }
  }
  return 1;
}

/* Charges all releases of the batch (B1). */
static int charge_all(struct batch *batch) {
  struct host *host = batch->host;
  struct session *session = &host->session;
  int charged = 1;
  for (int i = 0; i < batch->count && charged; i++)
    charged = publish_prepare(session, &batch->items[i].request) || fail_item(host, i);
  if (!charged || !ledger_begin(session->ledger)) return 0;
  for (int i = 0; i < batch->count && charged; i++) {
    struct item *item = &batch->items[i];
    charged = publish_enter(&item->publication, session, &item->request) || fail_item(host, i);
  }
  if (charged) check_bounds(batch);
  return ledger_commit(session->ledger);
}

/* ---- running --------------------------------------------------------------------------------- */

/* Runs the queries of the releases that are not answered yet (B2). */
static int run_all(struct batch *batch) {
  for (int i = 0; i < batch->count; i++) {
    struct item *item = &batch->items[i];
    if (item->publication.answered || item->publication.failed) continue;
    if (!release_run(&item->publication, &item->request, batch->host))
      return fail_item(batch->host, i);
  }
  return 1;
}

static char *answers(const struct batch *batch) {
  sqlite3_str *json = sqlite3_str_new(0);
  for (int i = 0; i < batch->count; i++) {
    const struct publication *publication = &batch->items[i].publication;
    sqlite3_str_appendall(json, i ? "," : "[");
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
  sqlite3_str_appendall(json, batch->count ? "]" : "[]");
  return sqlite3_str_finish(json);
}

/*
** dp_batch(array) -> TEXT, a JSON array of the answers, in the same order
** Makes the releases that a JSON array of objects describes. An object has the members `tier`,
** `kind`, `sql` and `options`, as for dp_release(), and may have `diffuse`, an array of outer
** tiers. Each release must have a name that no other release of the batch has. If a release would
** be refused, nothing is charged. If a query fails, its release becomes 'failed', and the error
** gives the number of this release. A further call of dp_batch() then makes the remaining releases.
** The answer of a failed release is null.
*/
static void dp_batch(sqlite3_context *context, int argc, sqlite3_value **argv) {
  struct host *host = host_of(context);
  struct session *session = &host->session;
  struct batch batch = {host, 0, 0};
  const char *array = argument_text(context, argv[0], "array");
  (void)argc;
  if (!array) return;
  if (host->collector.collecting) { /* the caller is itself inside the query of a dp_release() */
    function_error(context, "a release cannot read from another release");
    return;
  }
  pending_settle(session);
  int done = ledger_ready(session->ledger) &&
             json_elements(ledger_json(session->ledger), array, take_item, &batch) &&
             charge_all(&batch);
  deferred_forget(session);
  done = done && run_all(&batch);
  char *json = done ? answers(&batch) : 0;
  if (done && !json) done = error_set_memory(&session->error);
  if (done) {
    sqlite3_result_text(context, json, -1, sqlite3_free);
  } else {
    fail_call(context, function_of(context)->name, &session->error);
  }
  batch_clear(&batch);
}

static const struct scalar functions[] = {
    {"dp_batch", 1, 1, PRIVATE_FUNCTION, dp_batch},
};

int batches_register(sqlite3 *db, struct host *host) {
  return scalars_register(db, host, functions, sizeof functions / sizeof *functions);
}
