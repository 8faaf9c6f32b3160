/* aggregates.c: the aggregates as SQL functions. SELECT dp_sum(tier, x, clip, name) FROM ... is the
** release dp_release(tier, 'sum', 'SELECT x FROM ...', options).
**
** Requirements:
**   A1  The first row makes the release: the aggregate reads its call in the text of the running
**       statement (query/find_call.c), makes the question of it, and charges, evaluates and
**       stores it. The other rows are passed over, and xFinal hands out the answer. What happens to
**       the statement afterwards changes neither the answer nor the charge.
**   A2  Parameters are constant by their text. Which of several calls is running is known from the
**       values of its parameters.
**   A3  If there is no row, xFinal makes the release. The values of the parameters then come from
**       the text, so the statement may call the function only once.
**   A4  SQLite may execute a subquery more than once. A call there needs a name.
** Tests: tests/functions/test_aggregate_form.py, tests/query/test_aggregate_ends.py,
** tests/query/test_random_aggregates.py */
#include "release/kinds.h"

#include <stdlib.h>
#include <string.h>

#include "functions/internal.h"
#include "query/query.h"

SQLITE_EXTENSION_INIT3

struct binding {
  const struct aggregate *aggregate;
  int arguments;
  struct host *host;
};

/* The memory that SQLite gives to an aggregate. */
struct evaluation {
  enum { NEW, ANSWERED, FAILED } phase;
  struct publication *publication; /* the answer, from the first row until xFinal */
};

/* ---- the call in the text -------------------------------------------------------------------- */

/* What is read of the running call. */
struct running_call {
  const struct binding *binding;
  sqlite3_value **row; /* the arguments of the first row; null: there is no row */
  struct asked_statement *statement;
  sqlite3_value *values[MAX_ARGUMENTS]; /* of the parameters in the text */
  struct asked_call call;               /* the running one */
  char *question;
};

/* Returns the name of the parameter that an argument sets, or null if the argument is of a row. */
static const char *parameter_name(const struct aggregate *aggregate, int place) {
  const struct places *places = &aggregate->places;
  int parameter = 0;
  while (parameter < PARAMETERS && places->parameters[parameter] != place) parameter++;
  return place == 0               ? "tier"
         : place == places->name  ? "name"
         : parameter < PARAMETERS ? request_parameter(aggregate, (enum parameter)parameter)
                                  : 0;
}

/* Reports that an argument is none that the function takes, and shows those that it takes. */
static int refuse_argument(const struct aggregate *aggregate, int place, struct error *error) {
  sqlite3_str *list = sqlite3_str_new(0);
  for (int i = 0; i < aggregate->max_arguments; i++) {
    const char *name = parameter_name(aggregate, i);
    if (!name) name = i == aggregate->places.key ? "key" : "x";
    sqlite3_str_appendf(list, "%s%s", i ? ", " : "", name);
  }
  char *text = sqlite3_str_finish(list);
  /* Advice: An aggregate takes no unit: `dp_protect()` has said which column names it. */
  error_set(error,
            "argument %d is neither a name nor options (write %s(%s): the policy names the "
            "unit)",
            place + 1, aggregate->name, text ? text : "");
  sqlite3_free(text);
  return 0;
}

/* Reports that an argument of the text is no constant. */
static int refuse_parameter(const struct aggregate *aggregate, int place, const char *message,
                            struct error *error) {
  const char *name = parameter_name(aggregate, place);
  if (place == aggregate->places.name) return refuse_argument(aggregate, place, error);
  if (strncmp(message, "no such column", 14) == 0)
    return error_set(error,
                     "argument %d, %s, depends on a row, but a parameter is the same for all rows "
                     "(give a constant)",
                     place + 1, name);
  return error_set(error, "argument %d, %s, must be a constant that reads no table: %s", place + 1,
                   name, message);
}

/* Returns whether a value of the text is one of the row, of which it may show only the first digits
** or bytes. */
static int is_same(sqlite3_value *one, sqlite3_value *other, enum visible shown) {
  int type = sqlite3_value_type(one);
  if (type != sqlite3_value_type(other)) return 0;
  if (type == SQLITE_INTEGER) return sqlite3_value_int64(one) == sqlite3_value_int64(other);
  if (type == SQLITE_NULL) return 1;
  if (type == SQLITE_FLOAT) {
    char texts[2][40];
    double a = sqlite3_value_double(one), b = sqlite3_value_double(other);
    sqlite3_snprintf(sizeof texts[0], texts[0], "%!.15g", a);
    sqlite3_snprintf(sizeof texts[1], texts[1], "%!.15g", b);
    return memcmp(&a, &b, sizeof a) == 0 ||
           (shown != SHOWN_WHOLE && strcmp(texts[0], texts[1]) == 0);
  }
  int is_text = type == SQLITE_TEXT;
  const void *a = is_text ? (const void *)sqlite3_value_text(one) : sqlite3_value_blob(one);
  const void *b = is_text ? (const void *)sqlite3_value_text(other) : sqlite3_value_blob(other);
  int size = sqlite3_value_bytes(one);
  int is_long = shown == SHOWN_FIRST_BYTES && size < sqlite3_value_bytes(other);
  return (is_long || size == sqlite3_value_bytes(other)) &&
         (size == 0 || (a && b && memcmp(a, b, (size_t)size) == 0));
}

static void forget_values(struct running_call *reading) {
  for (int i = 0; i < MAX_ARGUMENTS; i++) {
    sqlite3_value_free(reading->values[i]);
    reading->values[i] = 0;
  }
}

/* Evaluates a parameter of a call. Returns 1 if its value is that of the running call, or if there
** is no row; -1 if the value is another one; and 0 with the error set. */
static int take_parameter(struct running_call *reading, const struct asked_call *call, int place,
                          struct error *error) {
  enum visible shown;
  int is_alone;
  const char *message;
  sqlite3_value *value = asked_value(reading->statement, call, place, &shown, &is_alone, &message);
  reading->values[place] = value;
  if (!value && !message) return error_set_memory(error);
  if (!value) return refuse_parameter(reading->binding->aggregate, place, message, error);
  /* The value of a parameter that is the whole argument is known from the row. */
  if (shown != SHOWN_WHOLE && !(reading->row && is_alone)) return asked_not_shown(shown, error);
  return !reading->row || is_same(value, reading->row[place], shown) ? 1 : -1;
}

/* Evaluates the parameters of a call. Returns the same. */
static int take_parameters(struct running_call *reading, const struct asked_call *call,
                           struct error *error) {
  int taken = 1;
  forget_values(reading);
  for (int i = 0; i < reading->binding->arguments && taken == 1; i++)
    if (parameter_name(reading->binding->aggregate, i))
      taken = take_parameter(reading, call, i, error);
  return taken;
}

/* Returns the function that makes one release by key. */
static const char *keyed_name(const struct aggregate *aggregate) {
  return aggregate->grouped      ? aggregate->grouped
         : aggregate->places.key ? aggregate->name
                                 : "dp_group_count";
}

static char *question_of(const struct running_call *reading, const struct asked_call *call,
                         struct error *error) {
  const struct aggregate *aggregate = reading->binding->aggregate;
  return asked_question(reading->statement, call, aggregate->places.key, aggregate->places.value,
                        keyed_name(aggregate), error);
}

/* Keeps the running call. Calls of the same question and name are one release. */
static int keep_call(struct running_call *reading, const struct asked_call *call,
                     struct error *error) {
  char *question = question_of(reading, call, error);
  int is_named = reading->binding->arguments > reading->binding->aggregate->places.name;
  if (!question) return 0;
  if (!reading->question) {
    reading->question = question;
    reading->call = *call;
    return 1;
  }
  int same = is_named && strcmp(question, reading->question) == 0;
  sqlite3_free(question);
  return same || error_set(error, "two calls in the statement have the same parameters (give each "
                                  "a name of its own)");
}

/* Finds the running call in the text (A2, A3). */
static int find_call(struct running_call *reading, struct error *error) {
  const struct binding *binding = reading->binding;
  const char *name = binding->aggregate->name;
  struct asked_call call = {-1, 0};
  struct error first = {0}; /* why a call cannot be the running one */
  int going = 1, count = 0;
  while (going && asked_call_next(reading->statement, name, &call)) {
    if (++count > 1 && !reading->row) {
      going = error_set(error, "no row reached it, and the statement calls it more than once (ask "
                               "dp_release)");
    } else if (call.arguments == binding->arguments &&
               take_parameters(reading, &call, &first) == 1) {
      going = keep_call(reading, &call, error);
    }
  }
  if (going && !reading->question) {
    going = 0;
    if (error_is_set(&first)) {
      error_set(error, "%s", error_text(&first));
    } else {
      error_set(error, "cannot find its call in the text of the statement (ask dp_release)");
    }
  }
  error_clear(&first);
  return going;
}

/* ---- the release ----------------------------------------------------------------------------- */

/* Fills the request from the parameters of the call. */
static int read_request(struct running_call *reading, struct request *request,
                        struct error *error) {
  const struct aggregate *aggregate = reading->binding->aggregate;
  const struct places *places = &aggregate->places;
  struct json *json = ledger_json(reading->binding->host->session.ledger);
  sqlite3_value **values = reading->row ? reading->row : reading->values;
  int count = reading->binding->arguments;
  int going = request_start(request, aggregate, json, values[0],
                            count > places->name ? values[places->name] : 0, OPTIONS_OF_AGGREGATE);
  for (int i = 0; i < PARAMETERS && going; i++) {
    int place = places->parameters[i];
    if (place && place < count)
      going = request_argument(request, json, (enum parameter)i, values[place]);
  }
  if (going && !request->name && !asked_call_is_outermost(reading->statement, &reading->call))
    going = error_set(error, "it stands in a subquery, which SQLite may execute more than once "
                             "(give it a name, as the last argument)");
  request->sql = reading->question;
  request->has_values = asked_statement_has_values(reading->statement);
  reading->question = 0;
  return going;
}

/* If a subquery names a column that its own tables do not have, says what to write. */
static void explain_correlated(const struct running_call *reading, struct error *error) {
  const char *missing = strstr(error_text(error), "no such column: ");
  if (!missing || !reading->call.arguments ||
      asked_call_is_outermost(reading->statement, &reading->call))
    return;
  struct error old = error_take(error);
  missing = strstr(error_text(&old), "no such column: ") + strlen("no such column: ");
  error_set(error,
            "its SELECT names '%.*s', which is a column of another SELECT (ask dp_release, "
            "or write %s(tier, key, ...))",
            (int)strcspn(missing, " "), missing, keyed_name(reading->binding->aggregate));
  error_clear(&old);
}

static int make_release(struct running_call *reading, struct publication *publication,
                        struct error *error) {
  const struct binding *binding = reading->binding;
  const struct aggregate *aggregate = binding->aggregate;
  struct host *host = binding->host;
  struct request request = {0};
  if (!guard_enter(host->guard, TO_OWNER, error)) return 0;
  if (host->collector.collecting)
    return error_set(error, "a release cannot read from another release");
  if (binding->arguments > aggregate->max_arguments)
    return refuse_argument(aggregate, aggregate->places.name, error);
  int made =
      ledger_ready(host->session.ledger) &&
      asked_statement_find(&reading->statement, host->collector.db, aggregate->name, error) &&
      find_call(reading, error) && read_request(reading, &request, error) &&
      release_question(publication, &request, host);
  if (!made) explain_correlated(reading, error);
  request_clear(&request);
  return made;
}

/* Makes the release (A1, A3) and keeps its answer. `row` is null if there is no row. */
static void answer(sqlite3_context *context, struct evaluation *evaluation, sqlite3_value **row) {
  const struct binding *binding = sqlite3_user_data(context);
  struct error *error = &binding->host->session.error;
  struct running_call reading = {.binding = binding, .row = row};
  error_clear(error);
  evaluation->publication = calloc(1, sizeof *evaluation->publication);
  int made = evaluation->publication ? make_release(&reading, evaluation->publication, error)
                                     : error_set_memory(error);
  evaluation->phase = made ? ANSWERED : FAILED;
  if (!made) fail_call(context, binding->aggregate->name, error);
  forget_values(&reading);
  asked_statement_close(reading.statement);
  sqlite3_free(reading.question);
}

static void step(sqlite3_context *context, int argc, sqlite3_value **argv) {
  struct evaluation *evaluation = sqlite3_aggregate_context(context, sizeof *evaluation);
  (void)argc;
  if (!evaluation) {
    sqlite3_result_error_nomem(context);
  } else if (evaluation->phase == NEW) {
    answer(context, evaluation, argv);
  }
}

/* SQLite also calls it when it aborts the statement, and ignores the result then. */
static void final(sqlite3_context *context) {
  struct evaluation *evaluation = sqlite3_aggregate_context(context, 0), none = {NEW, 0};
  if (!evaluation) evaluation = &none;
  if (evaluation->phase == NEW) answer(context, evaluation, 0);
  if (evaluation->phase == ANSWERED) result_answer(context, &evaluation->publication->answer);
  if (evaluation->publication) publish_clear(evaluation->publication);
  free(evaluation->publication);
  evaluation->publication = 0;
}

/* ---- registration ---------------------------------------------------------------------------- */

static void binding_free(void *pointer) {
  struct binding *binding = pointer;
  host_release(binding->host);
  sqlite3_free(binding);
}

/* A call with one argument too many gets an error that says which arguments there are. */
int aggregates_register(sqlite3 *db, struct host *host) {
  const struct aggregate *aggregate;
  for (int i = 0; (aggregate = kind_at(i)) != 0; i++) {
    if (!aggregate->family->has_states) continue; /* the order of its rows matters: dp_release() */
    for (int arity = aggregate->min_arguments; arity <= aggregate->max_arguments + 1; arity++) {
      struct binding *binding = sqlite3_malloc(sizeof *binding);
      if (!binding) return SQLITE_NOMEM;
      *binding = (struct binding){aggregate, arity, host_retain(host)};
      /* If the registration fails, SQLite calls binding_free(). */
      int rc = sqlite3_create_function_v2(db, aggregate->name, arity, PRIVATE_FUNCTION, binding, 0,
                                          step, final, binding_free);
      if (rc != SQLITE_OK) return rc;
    }
  }
  return SQLITE_OK;
}
