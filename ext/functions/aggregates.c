/*
** aggregates.c: the aggregates as SQL functions. Each aggregate makes a release inside the owner's
** SELECT.
**
** Requirements, most of which follow from the way SQLite works:
**   A1  The first row starts the release: the aggregate checks the parameters and charges the
**       ledger before it looks at the value of any row. Without a row there are no parameters, so
**       an empty input is an error.
**   A2  The aggregate takes its parameters from the first row. The program of the statement proves
**       that they are the same for all rows (query/loop_proof.h). If it does not, the aggregate
**       refuses them before it charges anything. The refusal does not depend on any row.
**   A3  SQLite finishes the aggregates of an aborted statement as if they were complete. xFinal
**       therefore draws, but stores nothing until the statement has ended without an error
**       (statement_guard.h).
** Tests: tests/functions/test_aggregate_form.py
*/
#include "release/kinds.h"

#include <stdlib.h>

#include "functions/functions.h"
#include "functions/options.h"
#include "release/parameter_checks.h"
#include "functions/statement_guard.h"
#include "functions/tier_guard.h"
#include "ledger/policy.h"
#include "query/asked_statement.h"
#include "query/loop_proof.h"
#include "query/own_collations.h"
#include "query/quoted_names.h"
#include "query/row_reader.h"
#include "query/unit_map.h"

SQLITE_EXTENSION_INIT3

#ifdef __GNUC__
#define NOT_INLINE __attribute__((noinline))
#else
#define NOT_INLINE
#endif

/* ---- one evaluation of an aggregate ---------------------------------------------------------- */

enum phase { NEW, COLLECTING, ANSWERED, DEAD };

struct run {
  const struct aggregate *aggregate;
  int unit; /* the place of the unit among the arguments; 0: the ledger protects rows */
  struct host *host;
  struct site *site;
  struct publication publication;
  struct rows rows;
  struct unit_map map; /* the units of the rows */
};

/*
** The memory that SQLite gives to an aggregate. SQLite does not align this memory for 128-bit
** integers, so the sums are in struct run, which the extension allocates.
*/
struct evaluation {
  enum phase phase;
  struct run *run; /* null before the first row and after the end */
};

struct binding {
  const struct aggregate *aggregate;
  struct host *host;
};

static void evaluation_end(struct evaluation *evaluation) {
  struct run *run = evaluation->run;
  *evaluation = (struct evaluation){DEAD, 0};
  if (!run) return;
  rows_close(&run->rows);
  unit_map_close(&run->map);
  publish_clear(&run->publication);
  site_release(run->site);
  host_release(run->host);
  free(run);
}

/* Fails the statement. The charge stays. */
static void evaluation_fail(sqlite3_context *context, struct evaluation *evaluation) {
  const struct binding *binding = sqlite3_user_data(context);
  struct error error = error_take(&binding->host->session.error);
  if (evaluation->phase == COLLECTING) publish_fail(&evaluation->run->publication);
  if (evaluation->run) site_fail(evaluation->run->site);
  evaluation_end(evaluation);
  fail_call(context, binding->aggregate->name, &error);
}

/* ---- the first row (A1) ---------------------------------------------------------------------- */

/* Returns the name of the parameter or column that an argument sets. */
static const char *argument_name(const struct aggregate *aggregate, int place) {
  int parameter = 0;
  while (parameter < PARAMETERS && aggregate->places.parameters[parameter] != place) parameter++;
  return place == 0                        ? "tier"
         : place == aggregate->places.name ? "name"
         : parameter < PARAMETERS          ? request_parameter(aggregate, (enum parameter)parameter)
                                           : "a parameter";
}

/* Checks that the parameters are the same for all rows (A2). */
static int check_parameters(const struct run *run, const struct loop_proof *proof,
                            struct error *error) {
  const struct aggregate *aggregate = run->aggregate;
  const struct places *places = &aggregate->places;
  /* Place 0 means that there is no such argument. */
  unsigned of_row = (1u << places->key | 1u << places->value | 1u << places->unit) & ~1u;
  unsigned wrong = proof->of_row & ~of_row;
  for (int place = 0; wrong >> place; place++)
    if (wrong & 1u << place)
      return error_set(error,
                       "argument %d, %s, depends on a row, but a parameter is the same for all "
                       "rows (give a constant)",
                       place + 1, argument_name(aggregate, place));
  return 1;
}

/* If the proof holds, starts the map from rows to units. Otherwise reports an error. */
static int check_proof(struct run *run, const struct loop_proof *proof, struct error *error) {
  int by_unit = ledger_protects(run->host->session.ledger) == LEDGER_UNITS;
  const char *table = proof->route.tables[0].name, *instead = proof->instead;
  /* Advice: The proofs read SQLite's bytecode, which a new version may change. Questions need no
     such proof. */
  if (proof->result == PROOF_UNKNOWN)
    return error_set(
        error,
        "aggregates in a SELECT are not proved for SQLite %s, which is newer than this "
        "version of diffuse (ask dp_release(tier, '%s', 'SELECT ...', options))",
        sqlite3_libversion(), run->aggregate->kind);
  /* The error names the column that the policy declares, and the argument if it is a constant. */
  if (proof->result == PROOF_OTHER_UNIT)
    return error_set(error, "argument %d must be %s.%s, %s of table %s%s%s%s",
                     run->aggregate->places.unit + 1, table, loop_proof_column(proof),
                     proof->route.count > 1 ? "which leads to the unit" : "the unit", table,
                     instead ? ", not '" : "", instead ? instead : "", instead ? "'" : "");
  if (proof->result != PROOF_HOLDS)
    return error_set(error,
                     "cannot show that the rows of one %s stay apart from those of another in this "
                     "SELECT%s%s (%sask dp_release(tier, '%s', 'SELECT ...', options))",
                     by_unit ? "unit" : "row", proof->obstacle ? ", because of " : "",
                     proof->obstacle ? proof->obstacle : "", instead ? instead : "",
                     run->aggregate->kind);
  if (!check_parameters(run, proof, error)) return 0;
  return unit_map_open(&run->map, run->host->collector.db, &proof->route, error);
}

/* What a release keeps about the statement. */
struct asked {
  char *tables;    /* the tables that it reads (ledger/policy.h) */
  char *statement; /* its text (query/asked_statement.h) */
};

/*
** Checks that the statement keeps units apart, and that it passes the unit column of its table and
** constant parameters to the aggregate. Sets *asked, which the caller frees even after an error.
*/
static int check_apart(struct run *run, struct asked *asked, struct error *error) {
  struct ledger *ledger = run->host->session.ledger;
  struct ledger_policy policy = {0};
  int going = ledger_begin_reading(ledger) && ledger_policy_read(ledger, &policy) &&
              ledger_policy_need(ledger, &policy);
  ledger_rollback(ledger);
  if (going)
    going = own_collations_check(run->host->collector.db, error) &&
            quoted_names_check(run->host->collector.db, error);
  if (going) {
    struct loop_proof proof;
    loop_prove(&proof, run->host->collector.db, &policy, run->aggregate);
    going = check_proof(run, &proof, error);
    if (going && !proof.tables) going = error_set_memory(error);
    if (going && !proof.sql)
      going = error_set(error, "the values that are bound to the statement cannot be read (write "
                               "them into its text)");
    if (going) {
      asked->tables = proof.tables;
      proof.tables = 0;
      asked->statement = asked_statement(proof.sql, ledger_json(ledger));
      going = asked->statement != 0;
    }
    loop_proof_clear(&proof);
  }
  ledger_policy_free(&policy);
  return going;
}

/*
** Checks that the call gives a unit if the ledger protects units, and no unit if the ledger
** protects rows.
*/
static int check_unit(struct run *run, int argc, sqlite3_value **argv, struct error *error) {
  int place = run->aggregate->places.unit;
  int by_unit = ledger_protects(run->host->session.ledger) == LEDGER_UNITS;
  if (by_unit && argc <= place)
    return error_set(error, "the ledger protects units: name the unit of each row in argument %d",
                     place + 1);
  if (!by_unit && place > 1 && argc > place && sqlite3_value_type(argv[place]) != SQLITE_NULL)
    return error_set(error, "the ledger protects rows: give NULL as the unit (argument %d)",
                     place + 1);
  run->unit = by_unit ? place : 0;
  return 1;
}

static int parse_request(struct run *run, struct request *request, int argc, sqlite3_value **argv,
                         struct error *error) {
  const struct places *places = &run->aggregate->places;
  struct ledger *ledger = run->host->session.ledger;
  struct json *json = ledger_json(ledger);
  int going = request_start(request, run->aggregate, json, argv[0],
                            argc > places->name ? argv[places->name] : 0, OPTIONS_OF_AGGREGATE);
  for (int i = 0; i < PARAMETERS && going; i++) {
    int place = places->parameters[i];
    if (place && place < argc)
      going = request_argument(request, json, (enum parameter)i, argv[place]);
  }
  return going && request_finish(request, ledger_protects(ledger) == LEDGER_UNITS, error);
}

/* Converts a place, where 0 means none, to an index, where -1 means none. */
static int place_or_none(int place) {
  return place ? place : -1;
}

static int begin_request(struct evaluation *evaluation, struct request *request,
                         struct error *error) {
  struct run *run = evaluation->run;
  if (!publish_begin(&run->publication, &run->host->session, request)) return 0;
  evaluation->phase = run->publication.answered ? ANSWERED : COLLECTING;
  if (evaluation->phase != COLLECTING) return 1;
  const struct places *places = &run->aggregate->places;
  struct columns columns = {place_or_none(places->key), place_or_none(places->value),
                            place_or_none(run->unit)};
  if (!rows_open(&run->rows, &run->publication, columns, 0, error)) return 0;
  unit_map_use(&run->map, &run->rows);
  return 1;
}

static int evaluation_begin(sqlite3_context *context, struct evaluation *evaluation, int argc,
                            sqlite3_value **argv, struct error *error) {
  const struct binding *binding = sqlite3_user_data(context);
  struct run *run = evaluation->run = calloc(1, sizeof *run);
  error_clear(error);
  if (!run) return error_set_memory(error);
  run->aggregate = binding->aggregate;
  run->host = host_retain(binding->host);
  run->site = site_of(context, run->host);
  if (!run->site) return error_set_memory(error);
  if (!tier_guard_enter(run->host->guard, run->aggregate->name, error)) return 0;
  if (run->host->collector.collecting)
    return error_set(error, "a release cannot read from another release");
  if (!ledger_ready(run->host->session.ledger)) return 0;
  struct request request;
  struct asked asked = {0, 0};
  if (!check_apart(run, &asked, error) || !check_unit(run, argc, argv, error)) {
    sqlite3_free(asked.tables);
    sqlite3_free(asked.statement);
    return 0;
  }
  int parsed = parse_request(run, &request, argc, argv, error);
  request.tables = asked.tables;
  request.statement = asked.statement;
  int begun = parsed && begin_request(evaluation, &request, error);
  request_clear(&request);
  return begun;
}

/* ---- every row ------------------------------------------------------------------------------- */

/*
** Handles the first row (A1). If `evaluation` is null, SQLite is out of memory. first_row() and
** fail_at_row() are not inlined into step(), so that step() has few registers to save.
*/
NOT_INLINE static void first_row(sqlite3_context *context, struct evaluation *evaluation, int argc,
                                 sqlite3_value **argv) {
  const struct binding *binding = sqlite3_user_data(context);
  struct error *error = &binding->host->session.error;
  if (!evaluation) {
    sqlite3_result_error_nomem(context);
  } else if (!evaluation_begin(context, evaluation, argc, argv, error)) {
    evaluation_fail(context, evaluation);
  }
}

NOT_INLINE static void fail_at_row(sqlite3_context *context, struct evaluation *evaluation) {
  struct error *error = &evaluation->run->host->session.error;
  error_clear(error);
  unit_map_error(&evaluation->run->map, error);
  evaluation_fail(context, evaluation);
}

static void step(sqlite3_context *context, int argc, sqlite3_value **argv) {
  struct evaluation *evaluation = sqlite3_aggregate_context(context, sizeof *evaluation);
  if (!evaluation || evaluation->phase == NEW) first_row(context, evaluation, argc, argv);
  if (evaluation && evaluation->phase == COLLECTING && !rows_add(&evaluation->run->rows, argv))
    fail_at_row(context, evaluation);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void final(sqlite3_context *context) {
  const struct binding *binding = sqlite3_user_data(context);
  struct evaluation *evaluation = sqlite3_aggregate_context(context, 0);
  struct error *error = &binding->host->session.error;
  if (!evaluation || evaluation->phase == NEW) {
    error_clear(error);
    error_set(error,
              "no row reached %s (put the condition in the value: iif(cond, x, NULL), or use "
              "dp_release)",
              binding->aggregate->name);
    fail_call(context, binding->aggregate->name, error);
    return;
  }
  if (evaluation->phase == DEAD) return; /* an earlier call has reported the error */
  struct run *run = evaluation->run;
  struct publication *publication = &run->publication;
  if (evaluation->phase == COLLECTING && site_is_reset(run->site)) {
    publish_fail(publication); /* no value has been drawn, and no caller receives a result */
    evaluation_end(evaluation);
    return;
  }
  int is_new = evaluation->phase == COLLECTING;
  if (is_new) error_clear(error);
  int answered = !is_new || rows_publish(&run->rows, publication, publish_draw, error);
  if (answered) result_answer(context, &publication->answer);
  if (answered && (!is_new || site_note(run->site, publication, error))) {
    evaluation_end(evaluation);
  } else {
    evaluation_fail(context, evaluation);
  }
}

/* ---- registration ---------------------------------------------------------------------------- */

static void binding_free(void *pointer) {
  struct binding *binding = pointer;
  host_release(binding->host);
  sqlite3_free(binding);
}

int aggregates_register(sqlite3 *db, struct host *host) {
  const struct aggregate *aggregate;
  for (int i = 0; (aggregate = kind_at(i)) != 0; i++) {
    if (!aggregate->family->has_states) continue; /* the order of its rows matters: dp_release() */
    for (int arity = aggregate->min_arguments; arity <= aggregate->max_arguments; arity++) {
      struct binding *binding = sqlite3_malloc(sizeof *binding);
      if (!binding) return SQLITE_NOMEM;
      *binding = (struct binding){aggregate, host_retain(host)};
      /* If the registration fails, SQLite calls binding_free(). */
      int rc = sqlite3_create_function_v2(db, aggregate->name, arity, PRIVATE_FUNCTION, binding, 0,
                                          step, final, binding_free);
      if (rc != SQLITE_OK) return rc;
    }
  }
  return SQLITE_OK;
}
