/* shards.c: dp_partial(), dp_states() and dp_merge(), which make one release from the rows of many
** databases. A shard is one of these databases. dp_partial() asks a question in one shard and
** writes the exact sums of its answers as a state. It charges nothing. The aggregate dp_states()
** adds up the states, and dp_merge() makes one release of its result. SQLite calls a scalar
** function with the result of an aggregate only if the aggregate has seen all rows.
**
** Requirements:
**   P1  dp_merge() publishes what dp_release() would publish if all rows were in one database: the
**       same exact totals, lattice, sensitivity, charge and ledger rows.
**   P2  A state contains every parameter that shapes its sums. dp_merge() refuses states that
**       differ in such a parameter. The call of dp_merge() gives the other parameters of the
**       release (tier, name, quantiles, shrink).
**   P3  dp_merge() checks all its states before it charges, so an invalid state costs nothing. The
**       checks look at the parameters and the format of a state, never at its data.
**   P4  A state is raw data. Anyone who can call dp_partial() can also read the rows, so the state
**       reveals nothing new to the caller. dp_partial() is DIRECTONLY, so that no view or trigger
**       can copy raw sums to a place that the owner did not choose.
**   P5  A unit may have rows in several shards, so dp_merge() adds up the totals of the unit before
**       it bounds them. With "whole_units", the caller asserts that each unit has rows in one shard
**       only, and dp_partial() bounds the totals. dp_merge() cannot check this assertion. If the
**       ledger of a shard protects rows, each row is a unit and therefore in one shard. Such a
**       state must name its shard, and dp_merge() refuses two states of one shard, which would
**       count each unit twice (merged_check()).
**   P6  A state contains the text of the question and the names and roles of the tables that the
**       question read. The tables must have the same roles in the ledger of dp_merge().
** Tests: tests/functions/test_partial.py, tests/functions/test_shards.py */
#include <stdlib.h>
#include <string.h>

#include "base/own_connection.h"
#include "base/sql_text.h"
#include "functions/internal.h"
#include "ledger/ledger.h"
#include "query/query.h"
#include "release/release.h"
#include "sums/sums.h"

SQLITE_EXTENSION_INIT3

#define STATES "dp_states"
#define MERGE  "dp_merge"

/* ---- the rows of a shard --------------------------------------------------------------------- */

struct shard {
  struct request request;
  struct publication description;
  struct rows rows;
  char *parameters;
};

/* Reads the kind and the options of a shard. */
static int shard_request(struct shard *shard, struct host *host, sqlite3_value *kind,
                         sqlite3_value *options, struct error *error) {
  const struct aggregate *aggregate = aggregate_find(plain_text(kind));
  if (!aggregate) return unknown_kind(plain_text(kind), error);
  if (!aggregate->family->has_states)
    return error_set(error, "kind '%s' has no states (its rows are read one after the other)",
                     aggregate->kind);
  struct request *request = &shard->request;
  if (!request_start(request, aggregate, ledger_json(host->session.ledger), 0, options,
                     OPTIONS_OF_PARTIAL))
    return 0;
  request->rows = ledger_protects(host->session.ledger) == LEDGER_ROWS;
  request->whole_units |= request->rows; /* P5 */
  if (request->whole_units && !request->shard)
    /* Advice: Sums that are bounded already are wrong, and less private than charged, if a merge
       has the rows of one shard twice. The name of the shard lets `dp_merge` notice this. */
    return error_set(error,
                     "shard is missing (a state %s names its shard, such as \"shard\":\"north\", "
                     "so that a merge cannot count it twice)",
                     request->rows ? "of rows" : "of whole units");
  return request_finish_shape(request, !request->rows, error);
}

static int open_rows(void *context, struct rows *rows, const struct secret *secret,
                     struct error *error) {
  struct shard *shard = context;
  (void)rows; /* the same as &shard->rows */
  (void)secret;
  sqlite3_free(shard->parameters);
  shard->parameters = request_parameters(&shard->request, OPTIONS_OF_STATE);
  if (!shard->parameters) return error_set_memory(error);
  return shard_rows_start(&shard->rows, &shard->description, &shard->request, 1, error);
}

/* Checks that the ledger has no wider unit: a state has no sums of households. */
static int check_wider(struct ledger *ledger) {
  int read = ledger_begin_reading(ledger);
  double factor = read ? ledger_wider_factor(ledger) : 0;
  ledger_rollback(ledger);
  if (factor > 0)
    error_set(ledger_error(ledger), "the ledger protects a wider unit (dp_within), which cannot be "
                                    "protected with shards (keep all tables in one database)");
  return !error_is_set(ledger_error(ledger));
}

/* Runs the question of a shard: evaluates it for each unit and adds its rows to the state (P6). */
static int shard_ask(struct shard *shard, struct host *host, sqlite3_value *kind,
                     sqlite3_value *sql, sqlite3_value *options, struct error *error) {
  struct request *request = &shard->request;
  struct ledger *ledger = host->session.ledger;
  struct question *question = 0;
  const char *text = plain_text(sql);
  if (host->collector.collecting)
    return error_set(error, "a state cannot read from a release that is running");
  if (!ledger_ready(ledger) || !check_wider(ledger) ||
      !shard_request(shard, host, kind, options, error))
    return 0;
  if (!text)
    return error_set(error, "sql must be the text of one SELECT%s", not_a(sql, SQLITE_TEXT));
  request->sql = query_trimmed(text);
  int asked = (request->sql || error_set_memory(error)) &&
              question_open(&question, &host->collector, ledger, request, error) &&
              ((request->tables = question_tables(question)) || error_set_memory(error));
  if (asked) {
    struct rows_opener opener = {open_rows, shard, 0, ""};
    asked = question_run(question, &opener, &shard->rows, error);
  }
  question_close(question);
  return asked;
}

/* Sets the state as the result. Returns 1, or 0 with the error set. */
static int shard_result(sqlite3_context *context, struct shard *shard, struct error *error) {
  struct shard_state_writer writer;
  struct shard_label label = {shard->parameters, shard->request.shard};
  int written = shard_rows_write(&shard->rows, &label, &writer, error);
  int limit = sqlite3_limit(sqlite3_context_db_handle(context), SQLITE_LIMIT_LENGTH, -1);
  if (written && writer.size > (size_t)limit)
    written = error_set(
        error, "the state has %lld bytes and this SQLite's values at most %d (make more shards%s)",
        (long long)writer.size, limit,
        shard->rows.for_state ? ", or, where all rows of a unit are in one, say "
                                "\"whole_units\":true and name the shard"
                              : "");
  if (written) {
    sqlite3_result_blob64(context, writer.bytes, writer.size, free);
  } else {
    free(writer.bytes);
  }
  return written;
}

/* dp_partial(kind, sql [, options]) -> BLOB. The data never cause an error. */
static int dp_partial(struct call *call) {
  struct shard shard = {.parameters = 0};
  sqlite3_value *options = call->count > 2 ? call->values[2] : 0;
  int done =
      shard_ask(&shard, call->host, call->values[0], call->values[1], options, call->error) &&
      shard_result(call->context, &shard, call->error);
  rows_close(&shard.rows);
  sqlite3_free(shard.parameters);
  request_clear(&shard.request);
  return done;
}

/* ---- which states and which shards a merge has ----------------------------------------------- */

/* A state may reach a merge twice, because a file is copied or a message is sent again. The same
** bytes are taken once. Two different states of one shard, of which a task makes the second when it
** is tried again, are an error: each has the rows of the shard, so the sums would count them twice,
** and with whole_units the bound on a unit would not hold. */

/* Opens the table of the states of a merge, in memory: their digests and the names of their shards.
** Returns null when out of memory. */
static sqlite3 *merged_open(void) {
  sqlite3 *merged = 0;
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  if (own_connection_open(&merged, ":memory:", flags, 0) == SQLITE_OK &&
      sqlite3_exec(merged, "CREATE TABLE state(digest BLOB PRIMARY KEY, shard TEXT) WITHOUT ROWID",
                   0, 0, 0) == SQLITE_OK)
    return merged;
  sqlite3_close(merged);
  return 0;
}

/* Notes a state. Sets *is_new to 0 if the same bytes were noted before. Returns 1, or 0 with the
** error set. */
static int merged_add(sqlite3 *merged, const struct shard_state *state, int *is_new,
                      struct error *error) {
  static const char sql[] = "INSERT OR IGNORE INTO state VALUES (?, ?)";
  char *shard = sqlite3_mprintf("%.*s", (int)state->shard_size, state->shard);
  int is_plain = !shard ? -1 : strlen(shard) == state->shard_size ? key_is_plain(shard) : 0;
  sqlite3_stmt *insert = 0;
  int rc = is_plain < 0 ? SQLITE_NOMEM : sqlite3_prepare_v2(merged, sql, -1, &insert, 0);
  if (rc == SQLITE_OK)
    rc = sqlite3_bind_blob(insert, 1, state->digest, STATE_DIGEST, SQLITE_STATIC);
  if (rc == SQLITE_OK) rc = sqlite3_bind_text(insert, 2, shard, -1, SQLITE_STATIC);
  if (rc == SQLITE_OK) rc = sqlite3_step(insert);
  *is_new = sqlite3_changes(merged) > 0;
  sqlite3_finalize(insert); /* its error is in rc */
  sqlite3_free(shard);
  if (rc != SQLITE_DONE) return error_set_memory(error);
  return is_plain || error_set(error, "the state is malformed");
}

/* Asks a question about the states and the option `shards`, which is ?1. Sets *row to the first row
** of the answer, which the caller finalizes, or to null if there is none. Returns 1, or 0 with the
** error set. */
static int merged_ask(sqlite3 *merged, const char *sql, const char *wanted, sqlite3_stmt **row,
                      struct error *error) {
  int rc = sqlite3_prepare_v2(merged, sql, -1, row, 0);
  if (rc == SQLITE_OK) rc = sqlite3_bind_text(*row, 1, wanted, -1, SQLITE_STATIC);
  if (rc == SQLITE_OK || rc == SQLITE_RANGE) rc = sqlite3_step(*row);
  if (rc == SQLITE_ROW) return 1;
  sqlite3_finalize(*row); /* its error is in rc */
  *row = 0;
  return rc == SQLITE_DONE || error_set_memory(error);
}

static const char twice_sql[] =
    "SELECT shard FROM state WHERE shard <> '' GROUP BY shard HAVING count(*) > 1 ORDER BY shard";

static const char nameless_sql[] = "SELECT 1 FROM state WHERE shard = ''";

/* The number of shards, if it is another one than wanted, and the names of the first 20. */
static const char number_sql[] =
    "SELECT count, (SELECT group_concat('''' || shard || '''', ', ') FROM"
    " (SELECT shard FROM state ORDER BY shard LIMIT 20)) || iif(count > 20, ', ...', '')"
    " FROM (SELECT count(*) AS count FROM state) WHERE count <> CAST(?1 AS INTEGER)";

/* The first name that is in one of two lists only, or twice among the wanted ones. */
static const char list_sql[] =
    "WITH wanted(name) AS (SELECT value FROM json_each(?1))"
    " SELECT name, 1 AS what FROM wanted WHERE name NOT IN (SELECT shard FROM state)"
    " UNION SELECT name, 2 FROM wanted GROUP BY name HAVING count(*) > 1"
    " UNION SELECT shard, 3 FROM state WHERE shard NOT IN (SELECT name FROM wanted)"
    " ORDER BY name, what";

/* Checks that no shard has two states, and that the shards are those that the option `shards` of
** dp_merge() names: a number of shards, or a JSON array of their names; null: any shards. Returns
** 1, or 0 with the error set. */
static int merged_check(sqlite3 *merged, const char *wanted, struct json *json) {
  struct error *error = json->error;
  sqlite3_stmt *row;
  if (!merged_ask(merged, twice_sql, 0, &row, error)) return 0;
  if (row)
    /* Advice: A task that is tried again makes a new state of its shard. Give the file of a state
       the name of its shard, so that the second one replaces the first. */
    error_set(error, "there are two different states of shard '%s' (merge one of them)",
              sqlite3_column_text(row, 0));
  sqlite3_finalize(row);
  if (row || !wanted) return !row;
  if (!merged_ask(merged, nameless_sql, 0, &row, error)) return 0;
  if (row)
    error_set(error, "a state names no shard, so shards cannot be checked (make it with "
                     "\"shard\":\"north\", the name of its shard)");
  sqlite3_finalize(row);
  if (row) return 0;
  int is_list = *wanted == '[', count;
  char **names = is_list ? json_list(json, wanted, "shards must be texts", &count) : 0;
  json_list_free(names);
  if (is_list && !names) return 0;
  if (!merged_ask(merged, is_list ? list_sql : number_sql, wanted, &row, error)) return 0;
  const char *name = row ? (const char *)sqlite3_column_text(row, !is_list) : 0;
  int what = row ? sqlite3_column_int(row, is_list) : 0;
  if (row && !name) error_set_memory(error);
  if (row && !is_list)
    error_set(error, "the states are of %d shards, not of %s: %s (%s)", what, wanted, name,
              what < strtoll(wanted, 0, 10)
                  ? "merge the states of all shards, also of those without rows"
                  : "leave out the states of other data, or correct shards");
  else if (what == 1)
    error_set(error,
              "shard '%s' is missing (merge its state too, which exists without "
              "rows also, or leave it out of shards)",
              name);
  else if (what == 2)
    error_set(error, "shards names '%s' twice (each shard once)", name);
  else if (what == 3)
    error_set(error, "shard '%s' is not one of shards (leave its state out, or add it to shards)",
              name);
  sqlite3_finalize(row);
  return !row;
}

/* ---- the states of a merge ------------------------------------------------------------------- */

/* The sum of states: the result of dp_states(), a pointer that only dp_merge() can read. */
struct merge {
  struct host *host;
  struct request request;         /* the parameters of the states */
  struct publication description; /* the definition of the states that are added up */
  struct rows rows;
  char *parameters; /* the parameters of the first state; all other states must have the same */
  sqlite3 *merged;  /* the states added so far */
  int is_spent;     /* dp_merge() has used the rows */
};

/* The memory that SQLite gives to dp_states(). */
struct merging {
  struct merge *merge; /* null before the first state and after the end */
  int failed;
};

static void merge_close(void *pointer) {
  struct merge *merge = pointer;
  if (!merge) return;
  rows_close(&merge->rows);
  request_clear(&merge->request);
  host_release(merge->host);
  sqlite3_free(merge->parameters);
  sqlite3_close(merge->merged);
  free(merge);
}

static void merge_fail(sqlite3_context *context, struct merging *merging, struct error *error) {
  /* merge_close() may release the last reference to the host, which owns the error. */
  struct error taken = error_take(error);
  merge_close(merging->merge);
  *merging = (struct merging){0, 1};
  fail_call(context, STATES, &taken);
}

static int take_kind(void *context, const char *key, const char *type, sqlite3_value *value) {
  const struct aggregate **aggregate = context;
  (void)type;
  if (strcmp(key, "kind") == 0) *aggregate = aggregate_find(plain_text(value));
  return 1;
}

/* Reads a state's parameters into the request. `tier` and `name_or_options` may be null. Sets
** *asked to the mechanism in `name_or_options`, or to null. The caller frees *asked. */
static int read_parameters(struct request *request, struct json *json, const char *parameters,
                           sqlite3_value *tier, sqlite3_value *name_or_options, char **asked) {
  const struct aggregate *aggregate = 0;
  if (!json_members(json, parameters, take_kind, &aggregate)) {
    struct error error = error_take(json->error);
    error_set(json->error, "the state has no parameters: %s", error_text(&error));
    error_clear(&error);
    return 0;
  }
  if (!aggregate || !aggregate->family->has_states)
    return error_set(json->error, "the state is of no kind that this version knows");
  int started = request_start(request, aggregate, json, tier, name_or_options, OPTIONS_OF_MERGE);
  *asked = request->mechanism;
  request->mechanism = 0;
  return started && request_read(request, json, parameters, OPTIONS_OF_STATE);
}

/* Sets the mechanism of the release to `asked`, the mechanism that the call of dp_merge() names,
** unless `asked` is null. Fails if the states name another mechanism. If the states name no
** mechanism, their vectors are made for the norm of the default mechanism; the function then fails
** if `asked` needs another norm. Takes over `asked`. */
static int settle_mechanism(struct request *request, char *asked, struct error *error) {
  const struct aggregate *aggregate = request->aggregate;
  const struct mechanism *wanted = mechanism_find(aggregate, asked);
  const struct mechanism *made = mechanism_find(aggregate, request->mechanism);
  int suits = request->mechanism ? wanted == made
                                 : mechanism_family(wanted, aggregate->family) ==
                                       mechanism_family(made, aggregate->family);
  if (!asked) return 1;
  if (!suits)
    error_set(error, "the states are for mechanism '%s' (make them with \"mechanism\":\"%s\")",
              made->name, wanted->name);
  sqlite3_free(request->mechanism);
  request->mechanism = asked;
  return suits;
}

/* Fills the request from the parameters of the first state (P2). */
static int read_first(struct merge *merge, struct error *error) {
  struct request *request = &merge->request;
  char *asked = 0;
  int read = read_parameters(request, ledger_json(merge->host->session.ledger), merge->parameters,
                             0, 0, &asked) &&
             request_finish_shape(request, !request->rows, error);
  char *again = read ? request_parameters(request, OPTIONS_OF_STATE) : 0;
  int same = again && strcmp(again, merge->parameters) == 0;
  if (read && !again) error_set_memory(error);
  if (again && !same)
    error_set(error, "the state's parameters are not as dp_partial() writes them (make it anew, "
                     "with this version)");
  sqlite3_free(again);
  return same;
}

/* Reports that a state does not belong to this merge, and shows both sets of parameters, if these
** and not the questions differ. */
static int other_parameters(struct merge *merge, const struct shard_state *state,
                            struct error *error) {
  struct request request = {0};
  char *text = sqlite3_mprintf("%.*s", (int)state->parameters_size, state->parameters);
  char *asked = 0;
  int read =
      text ? read_parameters(&request, ledger_json(merge->host->session.ledger), text, 0, 0, &asked)
           : error_set_memory(error);
  char *ours = read ? request_parameters(&merge->request, OPTIONS_OF_PARTIAL) : 0;
  char *theirs = read ? request_parameters(&request, OPTIONS_OF_PARTIAL) : 0;
  if (ours && theirs && strcmp(ours, theirs) == 0)
    error_set(error, "the states are of different questions (ask the same SELECT in each shard)");
  else
    error_set(error, "the states have different parameters: %s and %s", ours ? ours : "",
              theirs ? theirs : "");
  sqlite3_free(text);
  sqlite3_free(ours);
  sqlite3_free(theirs);
  request_clear(&request);
  return 0;
}

static int check_protection(const struct merge *merge, struct error *error) {
  int by_unit = ledger_protects(merge->host->session.ledger) == LEDGER_UNITS;
  if (by_unit == !merge->request.rows) return 1;
  const char *ours = by_unit ? "units" : "rows", *theirs = by_unit ? "rows" : "units";
  return error_set(error, "the ledger protects %s and that of the state %s (both must be the same)",
                   ours, theirs);
}

/* The context of check_table(). */
struct checking {
  struct ledger_policy policy;
  struct error *error;
};

static int check_table(void *context, const char *key, const char *type, sqlite3_value *value) {
  const struct checking *checking = context;
  const struct ledger_declaration *declared = ledger_policy_find(&checking->policy, key);
  const char *role = plain_text(value);
  (void)type;
  if (declared && role &&
      strcmp(role, declared->role == POLICY_PUBLIC ? "public" : "protected") == 0)
    return 1;
  return error_set(checking->error,
                   "a question in a shard read a table that this ledger does not declare in the "
                   "same way (declare it, on an empty table if need be)");
}

/* Checks that the tables that the question read have the same roles in this ledger (P6). */
static int check_tables(const struct merge *merge, struct error *error) {
  struct ledger *ledger = merge->host->session.ledger;
  struct checking checking = {.error = error};
  int going = ledger_begin_reading(ledger) && ledger_policy_read(ledger, &checking.policy) &&
              ledger_policy_need(ledger, &checking.policy);
  ledger_rollback(ledger);
  if (going && !merge->request.tables) going = error_set(error, "the state is malformed");
  if (going)
    going = json_members(ledger_json(ledger), merge->request.tables, check_table, &checking);
  ledger_policy_free(&checking.policy);
  return going;
}

static int merge_open(sqlite3_context *context, struct merge *merge,
                      const struct shard_state *state, struct error *error) {
  struct host *host = merge->host = host_retain(sqlite3_user_data(context));
  merge->parameters = sqlite3_mprintf("%.*s", (int)state->parameters_size, state->parameters);
  merge->merged = merged_open();
  if (!merge->parameters || !merge->merged) return error_set_memory(error);
  if (strlen(merge->parameters) != state->parameters_size)
    return error_set(error, "the state is malformed");
  return ledger_ready(host->session.ledger) && read_first(merge, error) &&
         check_protection(merge, error) && check_tables(merge, error) &&
         shard_rows_start(&merge->rows, &merge->description, &merge->request,
                          !merge->request.whole_units, error);
}

static int add_state(sqlite3_context *context, struct merging *merging, sqlite3_value *value,
                     struct error *error) {
  struct shard_state state;
  if (sqlite3_value_type(value) != SQLITE_BLOB)
    return error_set(error, "state must be what dp_partial() made%s", not_a(value, SQLITE_BLOB));
  const void *bytes = sqlite3_value_blob(value);
  const char *wrong = shard_state_open(&state, bytes, (size_t)sqlite3_value_bytes(value));
  if (wrong) return error_set(error, "the state %s", wrong);
  struct merge *merge = merging->merge;
  if (!merge) {
    merge = merging->merge = calloc(1, sizeof *merge);
    if (!merge) return error_set_memory(error);
    if (!merge_open(context, merge, &state, error)) return 0;
  }
  if (strlen(merge->parameters) != state.parameters_size ||
      memcmp(merge->parameters, state.parameters, state.parameters_size) != 0)
    return other_parameters(merge, &state, error);
  if (merge->request.whole_units && !state.shard_size)
    return error_set(error, "the state is malformed"); /* P5 */
  int is_new;
  return merged_add(merge->merged, &state, &is_new, error) &&
         (!is_new || shard_rows_add(&merge->rows, &state, error));
}

/* dp_states(state), an aggregate. A NULL state adds nothing. */
static void states_step(sqlite3_context *context, int argc, sqlite3_value **argv) {
  struct merging *merging = sqlite3_aggregate_context(context, sizeof *merging);
  (void)argc;
  if (!merging) {
    sqlite3_result_error_nomem(context);
    return;
  }
  struct host *host = sqlite3_user_data(context);
  struct error *error = &host->session.error;
  if (merging->failed) return;
  error_clear(error);
  if (!guard_enter(host->guard, TO_OWNER, error) ||
      (sqlite3_value_type(argv[0]) != SQLITE_NULL && !add_state(context, merging, argv[0], error)))
    merge_fail(context, merging, error);
}

static void states_final(sqlite3_context *context) {
  struct merging *merging = sqlite3_aggregate_context(context, 0);
  if (merging && merging->failed) return; /* an earlier call has reported the error */
  if (!merging || !merging->merge) {
    struct error error = {0};
    error_set(&error, "no state reached it (a shard without rows has a state, too)");
    fail_call(context, STATES, &error);
    return;
  }
  sqlite3_result_pointer(context, merging->merge, STATES, merge_close);
  merging->merge = 0;
}

/* ---- dp_merge -------------------------------------------------------------------------------- */

/* Fills the request from the parameters of the states and from the call (P2). */
static int read_request(struct request *request, struct merge *merge, sqlite3_value *tier,
                        sqlite3_value *name_or_options, struct error *error) {
  char *asked = 0;
  int read = read_parameters(request, ledger_json(merge->host->session.ledger), merge->parameters,
                             tier, name_or_options, &asked) &&
             request_finish(request, !request->rows, error) &&
             ((request->statement = sqlite3_mprintf(MERGE)) || error_set_memory(error));
  request->has_states = request->aggregate && request->aggregate->family->l1;
  if (read) return settle_mechanism(request, asked, error);
  sqlite3_free(asked);
  return 0;
}

/* Checks that the name of a release is used once in the statement. SQLite keeps the auxiliary data
** of a constant as long as the statement runs. */
static int check_once(sqlite3_context *context, const struct request *request,
                      struct error *error) {
  static char used;
  if (!request->name) return 1;
  /* Advice: GROUP BY evaluates the function once for each group. One release for all groups:
     `dp_group_…`. */
  if (sqlite3_get_auxdata(context, 0))
    return error_set(error, "the name stands for one release, but the statement evaluates it more "
                            "than once (leave the name out)");
  sqlite3_set_auxdata(context, 0, &used, 0);
  return 1;
}

/* Charges and publishes, as dp_release() does (P3). */
static int merge_publish(struct merge *merge, struct publication *publication,
                         struct request *request, struct error *error) {
  struct session *session = &merge->host->session;
  if (!merged_check(merge->merged, request->shards, ledger_json(session->ledger))) return 0;
  if (!publish_begin(publication, session, request)) return 0;
  merge->is_spent = !publication->answered;
  return publication->answered || rows_publish(&merge->rows, publication, publish_finish, error);
}

/* dp_merge(tier, dp_states(state) [, name or options]) -> REAL or TEXT, like the release. */
static int dp_merge(struct call *call) {
  struct error *error = call->error;
  struct merge *merge = sqlite3_value_pointer(call->values[1], STATES);
  struct publication publication = {0};
  struct request request = {0};
  if (!merge || merge->is_spent)
    return error_set(error, "argument 2 must be the sum of all states (SELECT dp_merge(tier, "
                            "dp_states(state), name) FROM ...)");
  int done = ledger_ready(call->ledger) &&
             read_request(&request, merge, call->values[0], call->count > 2 ? call->values[2] : 0,
                          error) &&
             check_once(call->context, &request, error) &&
             merge_publish(merge, &publication, &request, error);
  if (done) result_answer(call->context, &publication.answer);
  publish_clear(&publication);
  request_clear(&request);
  return done;
}

/* ---- registration ---------------------------------------------------------------------------- */

const struct function partial_functions[] = {
    {"dp_partial", 2, 3, TO_OWNER, 0, {0}, dp_partial},
    {MERGE, 2, 3, TO_OWNER, NOT_NESTED, {0}, dp_merge},
    {0},
};

/* If the registration fails, SQLite releases the reference to the host. */
int partials_register(sqlite3 *db, struct host *host) {
  return sqlite3_create_function_v2(db, STATES, 1, PRIVATE_FUNCTION, host_retain(host), 0,
                                    states_step, states_final, host_release_pointer);
}
