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
** Tests: tests/functions/test_batch.py
*/
#include <string.h>

#include "functions/batch_items.h"
#include "functions/functions.h"
#include "functions/host.h"
#include "functions/releases.h"
#include "release/bounds_use.h"
#include "release/deferred.h"
#include "release/publish.h"

SQLITE_EXTENSION_INIT3

struct batch {
  struct host *host;
  struct batch_items items;
  struct publication *publications; /* one for each item */
};

/* ---- charging -------------------------------------------------------------------------------- */

/*
** Checks the releases that are new in this call: none of them may take a parameter from published
** bounds that the release's outermost tier does not see (release/bounds_use.h). The text of the
** batch can contain bounds of the batch itself only if an earlier call has published them.
*/
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
  struct session *session = &batch->host->session;
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
    if (!release_run(publication, &batch->items.list[i].request, batch->host))
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
static void dp_batch(sqlite3_context *context, int argc, sqlite3_value **argv) {
  struct host *host = host_of(context);
  struct session *session = &host->session;
  struct batch batch = {host, {host, 0, 0, 0}, 0};
  const char *array = argument_text(context, argv[0], "array");
  (void)argc;
  if (!array) return;
  if (host->collector.collecting) { /* the caller is itself inside the query of a dp_release() */
    function_error(context, "a release cannot read from another release");
    return;
  }
  int done = ledger_ready(session->ledger) && batch_items_read(&batch.items, array);
  if (done) {
    size_t size = sizeof *batch.publications * ((size_t)batch.items.count + 1);
    batch.publications = sqlite3_malloc64(size);
    if (batch.publications) memset(batch.publications, 0, size);
    done = (batch.publications || error_set_memory(&session->error)) && charge_all(&batch);
  }
  deferred_forget(session);
  done = done && run_all(&batch);
  end_with_text(context, done ? answers(&batch) : 0, &session->error);
  for (int i = 0; batch.publications && i < batch.items.count; i++)
    publish_clear(&batch.publications[i]);
  sqlite3_free(batch.publications);
  batch_items_clear(&batch.items);
}

const struct scalar batch_functions[] = {
    {"dp_batch", 1, 1, PRIVATE_FUNCTION, dp_batch},
    {0},
};
