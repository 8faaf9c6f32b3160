/* releases.c: dp_release(), which runs the owner's query; dp_answer, which returns the values of
** the release as rows; dp_append(), which publishes the next periods of a series; and dp_diffuse()
** and dp_discard(), which use existing releases.
**
** dp_release() checks all parameters before it reads the first row. If the ledger has stored the
** release already, dp_release() returns the stored values and does not run the query. A query
** without rows is valid. An error or interrupt leaves the release 'failed'.
** Tests: tests/functions/test_aggregate_form.py, tests/release/test_refine.py,
** tests/functions/test_answer.py, tests/release/test_series_figures.py */
#include "functions/internal.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/sql_text.h"
#include "query/query.h"
#include "release/release.h"

SQLITE_EXTENSION_INIT3

#define RELEASE "dp_release"

/* ---- dp_release ------------------------------------------------------------------------------ */

static int open_rows(void *context, struct rows *rows, const struct secret *secret,
                     struct error *error) {
  const struct publication *publication = context;
  return rows_open(rows, publication, columns_in_order(publication), secret, error);
}

/* Collects the rows of the question and finishes the release. */
static int run(struct publication *publication, struct question *question, struct error *error) {
  struct rows_opener opener = {open_rows, publication, 1, " (the charge stays)"};
  struct rows rows = {0};
  int finished = 0;
  if (question_run(question, &opener, &rows, error)) {
    finished = rows_publish(&rows, publication, publish_finish, error);
  } else {
    publish_fail(publication);
  }
  rows_close(&rows);
  return finished;
}

/* Compiles the question of a request, and sets the tables and the type of units of the request. The
** caller must call question_close(), even after an error. */
static int ask(struct question **question, struct request *request, struct host *host,
               struct error *error) {
  struct collector *reader = host->guard ? host->guard->reader : &host->collector;
  if (!question_open(question, reader, host->session.ledger, request, error)) return 0;
  sqlite3_free(request->tables);
  sqlite3_free(request->unit_type);
  sqlite3_free(request->notice);
  request->tables = question_tables(*question);
  request->unit_type = question_unit_type(*question);
  request->notice = question_notice(*question, request->aggregate);
  return (request->tables && request->unit_type && request->notice) || error_set_memory(error);
}

/* Sets a limit that the request does not set. Fails if the request sets a larger one. */
static int limit_to(double *limit, const char *name, double most, struct error *error) {
  if (*limit > most)
    return error_set(error, "%s must be at most %.15g on this connection", name, most);
  if (isnan(*limit)) *limit = most;
  return 1;
}

int release_guarded(const struct host *host, struct request *request, int needs_name,
                    struct error *error) {
  if (!host->guard) return 1;
  const char *tier = host->guard->tier, *grant = host->guard->grant;
  if (strcmp(request->tier, tier) != 0)
    return error_set(error, "tier must be '%s' (this connection asks under grant '%s')", tier,
                     grant);
  if (request->periods)
    return error_set(error, "a series is the owner's (this connection asks under grant '%s')",
                     grant);
  if (request->refine)
    return error_set(error, "refine is the owner's (this connection asks under grant '%s')", grant);
  const struct question_limits *limits = &host->guard->limits;
  if (!limit_to(&request->steps, "steps", limits->steps, error) ||
      !limit_to(&request->bytes, "bytes", limits->bytes, error) ||
      !limit_to(&request->seconds, "seconds", limits->seconds, error))
    return 0;
  request->outward = (const char *const *)host->guard->outward;
  if (!request->name)
    return !needs_name ||
           error_set(error, "the options must name the release (as in '{\"name\":\"stay by "
                            "ward\"}'), because this connection asks under a grant");
  char *name = sqlite3_mprintf("%s/%s", grant, request->name);
  if (!name) return error_set_memory(error);
  sqlite3_free(request->name);
  request->name = name;
  return 1;
}

/* Publishes an answer at the outer tiers of the request, which have been charged already. Does
** nothing if these publications were stored together with the answer. */
static int publish_outward(const struct publication *publication, const struct request *request,
                           struct session *session) {
  for (int i = 0; !publication->spread && request->outward && request->outward[i]; i++) {
    struct publication outer;
    int done = publish_diffuse(&outer, session, request->name, request->outward[i], 0);
    publish_clear(&outer);
    if (!done) return 0;
  }
  return 1;
}

/* Checks that the request has a name if it needs one. */
static int check_name(const struct request *request, struct host *host,
                      const struct release_arguments *arguments, struct error *error) {
  if (request->name || arguments->needs_name == NAME_NOT_NEEDED) return 1;
  if (arguments->needs_name == NAME_NEEDED)
    return error_set(error, "the options must name the release (as in '{\"name\":\"stay by "
                            "ward\"}'), because SQLite may ask for the rows more than once");
  /* Without a name the release would be made again for each row, or for a condition and again for
     the result. */
  return asked_once(host->collector.db, RELEASE) ||
         error_set(error, "the options must name the release (as in '{\"name\":\"stay by "
                          "ward\"}'), because the statement may make it more than once (without "
                          "a name, call dp_release() once, without FROM, WHERE and WITH)");
}

/* Reads the request of dp_release(). */
static int request_read_all(struct request *request, struct host *host,
                            const struct release_arguments *arguments) {
  struct ledger *ledger = host->session.ledger;
  struct error *error = &host->session.error;
  const struct aggregate *aggregate = aggregate_find(plain_text(arguments->kind));
  if (!aggregate) return unknown_kind(plain_text(arguments->kind), error);
  const char *sql = plain_text(arguments->sql);
  if (!sql)
    return error_set(error, "sql must be the text of one SELECT%s",
                     not_a(arguments->sql, SQLITE_TEXT));
  return request_start(request, aggregate, ledger_json(ledger), arguments->tier, arguments->options,
                       OPTIONS_OF_RELEASE | arguments->form) &&
         check_name(request, host, arguments, error) &&
         ((request->sql = query_trimmed(sql)) || error_set_memory(error));
}

/* Checks a request, and compiles its question, which the caller closes. */
static int request_ask(struct request *request, struct question **question, struct host *host) {
  struct error *error = &host->session.error;
  return request_finish(request, ledger_protects(host->session.ledger) == LEDGER_UNITS, error) &&
         release_guarded(host, request, 1, error) && ask(question, request, host, error);
}

int release_question(struct publication *publication, struct request *request, struct host *host) {
  struct question *question = 0;
  int done =
      request_ask(request, &question, host) && publish_begin(publication, &host->session, request);
  if (done && !publication->answered) done = run(publication, question, &host->session.error);
  question_close(question);
  return done && publish_outward(publication, request, &host->session);
}

int release_compile(struct request *request, struct host *host) {
  struct question *question = 0;
  int sound = ask(&question, request, host, &host->session.error);
  question_close(question);
  return sound;
}

static int release_ask(struct publication *publication, struct request *request, struct host *host,
                       const struct release_arguments *arguments) {
  return request_read_all(request, host, arguments) && release_question(publication, request, host);
}

int release_check(struct request *request, struct host *host,
                  const struct release_arguments *arguments) {
  struct question *question = 0;
  int sound = request_read_all(request, host, arguments) && request_ask(request, &question, host);
  question_close(question);
  return sound;
}

int release_run(struct publication *publication, struct request *request, struct host *host) {
  struct question *question = 0;
  int done = ask(&question, request, host, &host->session.error) &&
             run(publication, question, &host->session.error);
  question_close(question);
  return done && publish_outward(publication, request, &host->session);
}

/* dp_release(tier, kind, sql [, options]) -> REAL or TEXT, as the aggregate of that kind returns */
static int dp_release(struct call *call) {
  sqlite3_value **values = call->values;
  struct publication publication = {0};
  struct request request = {0};
  struct release_arguments arguments = {
      values[0], values[1], values[2], call->count > 3 ? values[3] : 0, NAME_IF_REPEATED, 0};
  int done = release_ask(&publication, &request, call->host, &arguments);
  if (done) result_answer(call->context, &publication.answer);
  publish_clear(&publication);
  request_clear(&request);
  return done;
}

/* ---- releases that exist --------------------------------------------------------------------- */

/* dp_diffuse(name, tier) -> REAL or TEXT, like the release. Reads no data (release/noise_path.c).
** */
static int dp_diffuse(struct call *call) {
  struct publication publication;
  int done = publish_diffuse(&publication, &call->host->session, call->texts[0], call->texts[1], 0);
  if (done) result_answer(call->context, &publication.answer);
  publish_clear(&publication);
  return done;
}

/* dp_discard(name) -> the name. The ledger keeps the rows and charges of the release. */
static int dp_discard(struct call *call) {
  struct ledger *ledger = call->ledger;
  struct ledger_release release;
  if (!ledger_begin(ledger)) return 0;
  if (ledger_release_find(ledger, call->texts[0], &release)) {
    ledger_release_state(ledger, release.id, release.state, "discarded");
    if (release.periods) ledger_series_forget(ledger, release.id);
    ledger_release_clear(&release);
  } else {
    ledger_release_unknown(ledger, call->texts[0]);
  }
  return ledger_commit(ledger);
}

/* ---- dp_append ------------------------------------------------------------------------------- */

/* Checks that units have the type that they had when the series was declared. After a change from
** numbers to texts, for example, the book would not know the units again, and all would count
** anew. */
static int has_same_units(const struct question *question, const struct ledger_release *release,
                          struct error *error) {
  char *type = question_unit_type(question);
  if (!type) return error_set_memory(error);
  int same = release->unit_type && strcmp(type, release->unit_type) == 0;
  sqlite3_free(type);
  /* Advice: The series knows persons by this column: `1` and `'1'` are two persons. Nothing was
     read or published. */
  return same || error_set(error,
                           "the column of the unit has another type or collation than when '%s' "
                           "was declared, so everybody would count anew (give it the old ones "
                           "back, or discard the series)",
                           release->name);
}

/* Counts the rows of the missing periods, with the stored question. */
static int count_rows(struct host *host, struct publication *publication) {
  struct error *error = &host->session.error;
  const struct definition *definition = &publication->definition;
  struct request request = {.aggregate = definition->aggregate,
                            .periods = definition->periods,
                            .sql = definition->release.sql,
                            .steps = NAN,
                            .bytes = NAN,
                            .seconds = NAN};
  struct rows_opener opener = {open_rows, publication, 1, " (nothing was appended)"};
  struct question *question = 0;
  struct rows rows = {0};
  int counted = question_open(&question, &host->collector, host->session.ledger, &request, error) &&
                has_same_units(question, &definition->release, error) &&
                question_run(question, &opener, &rows, error);
  if (counted)
    counted = vector_sum_units(rows.vectors, series_count, publication) || error_set_memory(error);
  rows_close(&rows);
  question_close(question);
  return counted;
}

/* dp_append(name, period). Evaluates the stored question once, and charges nothing. */
static int dp_append(struct call *call) {
  struct host *host = call->host;
  struct publication publication = {0};
  int done;
  do {
    publish_clear(&publication);
    done = series_begin(&publication, &host->session, call->texts[0], call->texts[1]);
    if (done && !publication.answered)
      done = count_rows(host, &publication) && series_finish(&publication);
  } while (publication.is_stale);
  if (done) result_answer(call->context, &publication.answer);
  publish_clear(&publication);
  return done;
}

/* ---- dp_answer(tier, kind, sql, options) ----------------------------------------------------- */

/* Makes a release and returns its values as rows.
**
**   W1  The release is complete when the reading begins (V1 in sql_functions.h). A later LIMIT,
**       ROLLBACK or error of the outer statement changes neither the answer nor the charge.
**   W2  The options must name the release. If a query plan reads the rows twice, the second read
**       then gets the stored values of the first.
**   W3  The table is DIRECTONLY, so no view or trigger can spend a budget. */

#define ANSWER "dp_answer"

struct answer_rows {
  struct row_list *rows;
  const char *release, *tier;
  int has_keys, is_array;
};

static int take_answer(void *context, const struct ledger_value *value, const char *display,
                       const char *figure, const char *label) {
  const struct answer_rows *answer = context;
  return value_row(answer->rows, answer->has_keys ? value->key : 0,
                   answer->is_array ? value->component : -1, value, display) &&
         row_text(answer->rows, figure) && row_text(answer->rows, answer->release) &&
         row_text(answer->rows, answer->tier) && row_text(answer->rows, label);
}

/* Reads the rows of a published release. */
static int read_rows(struct row_list *rows, struct session *session,
                     const struct publication *publication) {
  const struct position *position = &publication->position;
  const struct definition *definition = &publication->definition;
  const char *quantiles = definition->release.quantiles;
  enum answer_form form = definition->aggregate->form;
  struct answer_rows answer = {.rows = rows,
                               .release = definition->release.name,
                               .tier = position->tiers[position->at].name,
                               .has_keys = form == FORM_OBJECT || form == FORM_ARRAYS ||
                                           form == FORM_SYMBOL || definition->release.periods,
                               .is_array = form == FORM_ARRAY || (quantiles && *quantiles == '[')};
  int read = ledger_resume(session->ledger) && ledger_begin_reading(session->ledger) &&
             ledger_values_in_words(session->ledger, definition->release.id, answer.tier,
                                    take_answer, &answer);
  ledger_rollback(session->ledger);
  return read;
}

static int answer_fill(struct row_list *rows, void *context, sqlite3_value *const *arguments,
                       struct error *error) {
  struct host *host = context;
  struct publication publication = {0};
  struct request request = {0};
  struct release_arguments asked = {arguments[0], arguments[1], arguments[2],
                                    arguments[3], NAME_NEEDED,  0};
  if (!value_table_enter(host, TO_ASK, error)) return 0;
  int done = ledger_ready(host->session.ledger) &&
             release_ask(&publication, &request, host, &asked) &&
             read_rows(rows, &host->session, &publication);
  publish_clear(&publication);
  request_clear(&request);
  return value_table_leave(host, done, error);
}

/* Says what to write to a caller who takes the table for a function. */
static int called(struct call *call) {
  return error_set(call->error, "it is a table, whose rows are the answers (write 'SELECT key, "
                                "display FROM dp_answer(tier, kind, sql, options)')");
}

const struct row_table answer_table = {
    .name = ANSWER,
    .columns = SHOWN_COLUMNS ", figure TEXT, release TEXT, tier TEXT, label TEXT,"
                             " tier_asked HIDDEN, kind HIDDEN, sql HIDDEN, options HIDDEN",
    .count = SHOWN_COUNT + 4,
    .first = SHOWN_COUNT + 4,
    .least = 4,
    .most = 4,
    .option = SQLITE_VTAB_DIRECTONLY, /* W3 */
    .estimate = 25,
    .cost = 1e9,
    .fill = answer_fill};

/* ---- registration ---------------------------------------------------------------------------- */

const struct function release_functions[] = {
    {RELEASE, 3, 4, TO_ASK, NOT_NESTED | LEDGER_OPEN, {0}, dp_release},
    {"dp_diffuse", 2, 2, TO_OWNER, 0, {"name", "tier"}, dp_diffuse},
    {"dp_discard", 1, 1, TO_OWNER, LEDGER_OPEN, {"name"}, dp_discard},
    {"dp_append", 2, 2, TO_OWNER, NOT_NESTED | LEDGER_OPEN, {"name", "period"}, dp_append},
    {ANSWER, 1, 4, TO_ASK, 0, {0}, called},
    {0},
};

static void release_collector(void *collector) {
  host_release((struct host *)((char *)collector - offsetof(struct host, collector)));
}

int releases_register(sqlite3 *db, struct host *host) {
  (void)db; /* the collector has it */
  host_retain(host);
  return collector_register(&host->collector, release_collector);
}
