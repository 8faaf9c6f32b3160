/* question.c: see question.h.
**
** The tables are read on the host's own connection, because another connection cannot read every
** database in the same state (it may be in memory, locked or encrypted). If PRAGMA threads allows,
** further connections read a part where they provably see the same state (row_loop.c).
** Tests: tests/query/test_questions.py, tests/query/test_question_neighbours.py,
** tests/ledger/test_within.py */
#include "query/question.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "ledger/ledger.h"
#include "mechanism/mechanism.h"
#include "query/limits.h"
#include "query/loops.h"
#include "query/question_text.h"
#include "release/procedure.h"

SQLITE_EXTENSION_INIT3

/* Limits of a question that is evaluated for nobody: an aggregate over no rows needs few. */
#define NOBODY_STEPS 2000
#define NOBODY_BYTES 1000000

struct question {
  struct collector *collector;
  struct ledger *ledger;
  struct ledger_policy policy;
  char *unit; /* the ledger's word for a unit */
  struct evaluator *evaluator;
  struct evaluator *publics; /* evaluates the query of the public rows; null: there are none */
  struct unit_loop loop;     /* the loop on the host's connection */
  const struct table_column *unit_column; /* of one of its tables; null: each row is a unit */
  struct wider_units wider;               /* the wider units, if the ledger has some */
  struct readers *readers; /* further connections to the file; null if the host reads alone */
  sqlite3_stmt *begun;     /* a statement that keeps the database in one state (U3) */
  sqlite3_stmt *probe;     /* a statement that shows whether the host is interrupted */
  int is_by_row; /* each result comes from one row of one table: all units at once will do */
  struct time_limit time; /* its thread runs from question_open() on */
  int limits[8];          /* the limits of the host's connection: see `lifted` */
};

/* ---- opening --------------------------------------------------------------------------------- */

/* The limits that an application sets for its own statements must not decide about a question: a
** long value of one person would fail it. Private connections have limits of their own. The
** connection that reads may be the host's, so its limits are lifted while the question exists. No
** statement of the host runs in this time, because the host waits for the function of the
** question. */
static const int lifted[] = {SQLITE_LIMIT_LENGTH,          SQLITE_LIMIT_SQL_LENGTH,
                             SQLITE_LIMIT_COLUMN,          SQLITE_LIMIT_EXPR_DEPTH,
                             SQLITE_LIMIT_COMPOUND_SELECT, SQLITE_LIMIT_VDBE_OP,
                             SQLITE_LIMIT_FUNCTION_ARG,    SQLITE_LIMIT_VARIABLE_NUMBER};
#define LIFTED ((int)(sizeof lifted / sizeof *lifted))

static int read_policy(struct question *question) {
  struct ledger *ledger = question->ledger;
  int read = ledger_begin_reading(ledger) && ledger_policy_read(ledger, &question->policy) &&
             ledger_policy_need(ledger, &question->policy) &&
             ((question->unit = ledger_unit(ledger)) || !error_is_set(ledger_error(ledger)));
  ledger_rollback(ledger);
  return read;
}

/* Begins a read on the host's connection, so that the schema and the rows come from the same
** state. */
static int begin(struct question *question, struct error *error) {
  sqlite3 *db = question->collector->db;
  int going = unit_loop_prepare(db, "SELECT rootpage FROM main.sqlite_master", 1, "",
                                &question->begun, error);
  if (!going) return 0;
  int rc = sqlite3_step(question->begun);
  if (rc == SQLITE_ROW) return 1;
  return rc == SQLITE_DONE
             ? error_set(error, "main has no tables")
             : error_set(error, "cannot read for the question: %s", sqlite3_errmsg(db));
}

/* Reads each table once. In the shared-cache mode, another connection may have locked a table. The
** question then fails here, before the charge. Otherwise this connection keeps its own locks on the
** tables until the question ends, because question->begun keeps the transaction open. */
static int lock_tables(const struct question *question, const struct evaluator *evaluator,
                       struct error *error) {
  sqlite3 *db = question->collector->db;
  for (int i = 0; i < evaluator->tables.count; i++) {
    const struct route *route = &evaluator->tables.list[i].route;
    for (int j = 0; j < route->count; j++) {
      char *sql = sqlite3_mprintf("SELECT 1 FROM main.\"%w\" LIMIT 1", route->tables[j].name);
      sqlite3_stmt *row = 0;
      int going = sql ? unit_loop_prepare(db, sql, 1, "", &row, error) : error_set_memory(error);
      sqlite3_free(sql);
      if (going) sqlite3_step(row);
      if (sqlite3_finalize(row) != SQLITE_OK)
        going =
            error_set(error, "cannot read for the question: %s (nothing was charged; try again)",
                      sqlite3_errmsg(db));
      if (!going) return 0;
    }
  }
  return 1;
}

/* Checks that the unit columns of all tables have the same affinity and collation. dp_protect() has
** checked the same, but the schema may have changed since. */
static int check_units(struct question *question, struct error *error) {
  struct unit_loop *loop = &question->loop;
  const struct table_column *first = 0;
  for (int i = 0; i < loop->count; i++) {
    const struct route *route = &loop->streams[i].table->route;
    const struct table_facts *last = &route->tables[route->count - 1];
    if (route->unit < 0) continue;
    const struct table_column *unit = &last->columns[route->unit];
    if (!first) first = unit;
    question->unit_column = first;
    if (unit->affinity != first->affinity || unit->collation != first->collation)
      return error_set(error,
                       "columns '%s' and '%s' name units and compare differently (give both the "
                       "same type and collation)",
                       first->name, unit->name);
    loop->affinity = unit->affinity;
    loop->collation = unit->collation;
  }
  return 1;
}

/* Finds the protected tables among the tables of the question, and makes their streams. */
static int find_streams(struct question *question, struct error *error) {
  struct unit_loop *loop = &question->loop;
  loop->evaluator = question->evaluator;
  if (!unit_loop_open(loop)) return error_set_memory(error);
  if (!loop->count)
    return error_set(error,
                     "the query names no protected table, so it is about nobody (compute it in a "
                     "plain SELECT)");
  if (loop->by_row && loop->count > 1)
    return error_set(error,
                     "the ledger protects rows, so a question names exactly one protected table, "
                     "not %d",
                     loop->count);
  question->is_by_row = loop->count == 1 && !loop->takes_one && loop->evaluator->is_by_row;
  return check_units(question, error);
}

static int cannot_count(const char *after, struct error *error) {
  /* Advice: better-sqlite3 is such a build. Ask other questions in another host. */
  return error_set(error,
                   "this SQLite was built without progress callbacks, so only a question row by "
                   "row can be evaluated (such as SELECT x FROM visit WHERE y > 3)%s",
                   after);
}

/* The statements on the protected tables leave out values that are too long for one unit's memory.
** Only the limits of a grant need this. They read such values if a function of the application
** replaces length(). */
static void leave_out_long_values(struct question *question, double bytes) {
  struct unit_loop *loop = &question->loop;
  struct allowed_functions functions;
  if (bytes >= DEFAULT_BYTES || allowed_functions_read(&functions, loop->db) != SQLITE_OK ||
      !function_is_allowed(&functions, "length"))
    return;
  evaluator_limit_memory(question->evaluator, bytes);
  loop->longest = sqlite3_limit(question->evaluator->db, SQLITE_LIMIT_LENGTH, -1);
}

static int prepare_streams(struct question *question, struct error *error) {
  int going = 1;
  int tables = question->evaluator->tables.count;
  if (!question->is_by_row) evaluator_leave_out_unread(question->evaluator);
  for (int i = 0; i < tables && going; i++) {
    struct evaluator_table *table = &question->evaluator->tables.list[i];
    going = safe_columns_check(question->collector->db, &table->route, table->used, error);
  }
  for (int i = 0; i < question->loop.count && going; i++)
    going = unit_loop_prepare_stream(&question->loop, &question->loop.streams[i], error);
  return going;
}

/* Checks that the columns have the names of the attributes. Swapped columns would count nothing. */
static int check_attributes(const struct question *question, const struct cross_keys *cross_keys,
                            struct error *error) {
  for (int i = 0; i < cross_keys->count; i++) {
    const char *column = sqlite3_column_name(question->evaluator->statement, i);
    const char *attribute = cross_keys->attributes[i].name;
    if (!column) return error_set_memory(error);
    if (sqlite3_stricmp(column, attribute) != 0)
      return error_set(error,
                       "column %d of the question is '%s', attribute %d of keys is '%s' (give both "
                       "in the same order, with AS where the names differ)",
                       i + 1, column, i + 1, attribute);
  }
  return 1;
}

/* Returns whether a value is 0, or also if it is NULL. */
static int is_nothing(sqlite3_value *value, int also_null) {
  int type = sqlite3_value_type(value);
  if (type == SQLITE_NULL) return also_null;
  return (type == SQLITE_INTEGER || type == SQLITE_FLOAT) && sqlite3_value_double(value) == 0;
}

/* Returns whether the question gives a single row of zeros if no table has rows. It then counts or
** adds up something itself. With `has_value`, a NULL in the last column says the contrary. The run
** has so few steps and bytes that it needs no limit of time. */
static int counts_nobody(const struct question *question, int has_value) {
  struct evaluator *evaluator = question->evaluator;
  int last = evaluator->columns - 1;
  evaluator_limit_memory(evaluator, NOBODY_BYTES);
  int counts =
      evaluator_run(evaluator, NOBODY_STEPS, 1) == EVALUATION_DONE && evaluator->count == 1;
  for (int i = 0; counts && i <= last; i++)
    counts = is_nothing(evaluator_row(evaluator, 0)[i], !has_value || i < last);
  evaluator_skip(evaluator);
  for (int i = 0; i < evaluator->tables.count; i++)
    unit_rows_clear(&evaluator->tables.list[i].rows); /* the run may have built an index */
  return counts;
}

/* Checks that a count does not count every unit. SELECT count(*) FROM visit WHERE ... gives one row
** for each unit, also if no visit fulfils the condition. (In a series of counts of units, a row
** without a period does not count.) */
static int check_count(const struct question *question, const struct request *request,
                       struct error *error) {
  const struct aggregate *aggregate = request->aggregate;
  int has_value = aggregate->places.value > 0;
  if (!aggregate->counts || aggregate->family != &family_sum || (request->periods && !has_value) ||
      !question->evaluator->counts_steps || !counts_nobody(question, has_value))
    return 1;
  if (!has_value)
    return error_set(error, "sql gives one row for each unit, also if its condition holds for no "
                            "row of the unit, so all units would count (write 'SELECT 1 FROM "
                            "...')");
  return error_set(error, "sql gives one row with a number for each unit, and this kind counts "
                          "such rows (write 'SELECT 1 FROM ...', or take the kind 'sum', which "
                          "adds up the numbers)");
}

/* Compiles the query of the public rows, the second statement of the text. Its tables must all be
** public. (This query cannot reveal anything, so no unit is evaluated apart.) */
static int open_publics(struct question *question, const char *sql, const char *names,
                        struct error *error) {
  if (!sql[strspn(sql, " \t\r\n")])
    return error_set(error, "with public_rows, sql has a second SELECT, which gives the public "
                            "rows ('SELECT ...; SELECT ...')");
  int going = evaluator_open(&question->publics, question->collector->db, &question->policy, sql,
                             question->loop.columns, 0, names, 0, error);
  if (going) evaluator_leave_out_unread(question->publics);
  for (int i = 0; going && i < question->publics->tables.count; i++) {
    const struct evaluator_table *table = &question->publics->tables.list[i];
    if (table->declaration->role != POLICY_PUBLIC)
      going = error_set(error,
                        "table '%s' is protected, so it has no public rows (the second SELECT "
                        "names tables that dp_public() declares)",
                        table->route.tables[0].name);
    if (going)
      going = safe_columns_check(question->collector->db, &table->route, table->used, error);
  }
  return going;
}

/* Sets the number of columns that the question must give. Returns their names, for messages. A
** count of units ignores what the rows give. */
static const char *name_columns(struct question *question, const struct request *request,
                                int *ignores) {
  static const char *const of_series[] = {"period", "period, x", "period, key", "period, key, x"};
  const struct places *places = &request->aggregate->places;
  struct unit_loop *loop = &question->loop;
  const char *names;
  loop->columns = aggregate_columns(request->aggregate, 0, &names);
  *ignores = !loop->columns;
  if (request->cross_keys) {
    loop->columns += request->cross_keys->count - 1;
    names = places->value ? "the attributes of keys, x" : "the attributes of keys";
  }
  if (request->periods) {
    loop->columns++;
    names = of_series[2 * (places->key > 0) + (places->value > 0)];
  }
  return names;
}

/* Checks that the host's connection can read what an evaluator's query names, as it is meant. */
static int check_reading(const struct question *question, const struct evaluator *evaluator,
                         struct error *error) {
  return own_functions_check(question->collector->db, &evaluator->used, error) &&
         lock_tables(question, evaluator, error);
}

int question_open(struct question **out, struct collector *collector, struct ledger *ledger,
                  const struct request *request, struct error *error) {
  static const char probe[] =
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300)"
      " SELECT count(*) FROM n";
  const struct procedure *procedure = request->aggregate->procedure;
  int has_publics = procedure && procedure->publics && procedure->publics(request) > 0, ignores;
  struct question *question = *out = calloc(1, sizeof *question);
  if (!question) return error_set_memory(error);
  struct unit_loop *loop = &question->loop;
  question->collector = collector;
  question->ledger = ledger;
  loop->db = collector->db;
  loop->after = "";
  loop->by_row = ledger_protects(ledger) == LEDGER_ROWS;
  loop->takes_one = !request->aggregate->family->has_states;
  loop->limits = question_limits_of(request);
  for (int i = 0; i < LIFTED; i++)
    question->limits[i] = sqlite3_limit(collector->db, lifted[i], INT_MAX);
  const char *names = name_columns(question, request, &ignores), *rest = 0;
  if (!read_policy(question)) return 0;
  if (!loop->takes_one) question->readers = readers_open(collector);
  if (!begin(question, error) || !own_collations_check(collector->db, error) ||
      !evaluator_open(&question->evaluator, collector->db, &question->policy, request->sql,
                      loop->columns, ignores, names, has_publics ? &rest : 0, error) ||
      (rest && !open_publics(question, rest, names, error)) ||
      !check_reading(question, question->evaluator, error) ||
      (question->publics && !check_reading(question, question->publics, error)) ||
      (request->cross_keys && !check_attributes(question, request->cross_keys, error)) ||
      !find_streams(question, error) ||
      !wider_units_open(&question->wider, collector, &question->policy, question->unit_column,
                        error))
    return 0;
  if (!question->evaluator->counts_steps && !question->is_by_row) return cannot_count("", error);
  leave_out_long_values(question, loop->limits.bytes);
  return prepare_streams(question, error) && check_count(question, request, error) &&
         unit_loop_prepare_helpers(loop, error) &&
         unit_loop_prepare(ledger_caller(ledger), probe, 1, "", &question->probe, error) &&
         time_limit_open(&question->time, loop->limits.seconds, collector->db,
                         question->evaluator->db, error);
}

void question_close(struct question *question) {
  if (!question) return;
  time_limit_end(&question->time);
  readers_close(question->readers);
  unit_loop_close(&question->loop);
  wider_units_close(&question->wider);
  sqlite3_finalize(question->probe); /* the errors of these statements have been reported */
  sqlite3_finalize(question->begun);
  evaluator_close(question->evaluator);
  evaluator_close(question->publics);
  for (int i = 0; i < LIFTED; i++)
    sqlite3_limit(question->collector->db, lifted[i], question->limits[i]);
  ledger_policy_free(&question->policy);
  sqlite3_free(question->unit);
  free(question);
}

/* Appends the tables of an evaluator, except those of the evaluator `listed`, which may be null. */
static void append_tables(sqlite3_str *json, struct evaluator *evaluator,
                          struct evaluator *listed) {
  for (int i = 0; i < evaluator->tables.count; i++) {
    const struct evaluator_table *table = &evaluator->tables.list[i];
    int is_listed = 0;
    for (int j = 0; listed && j < listed->tables.count; j++)
      is_listed |= listed->tables.list[j].declaration == table->declaration;
    if (is_listed) continue;
    sqlite3_str_appendall(json, sqlite3_str_length(json) > 1 ? "," : "");
    json_append_string(json, table->route.tables[0].name);
    sqlite3_str_appendf(json, ":\"%s\"",
                        table->declaration->role == POLICY_PUBLIC ? "public" : "protected");
  }
}

char *question_tables(const struct question *question) {
  sqlite3_str *json = sqlite3_str_new(0);
  sqlite3_str_appendall(json, "{");
  append_tables(json, question->evaluator, 0);
  if (question->publics) append_tables(json, question->publics, question->evaluator);
  sqlite3_str_appendall(json, "}");
  return sqlite3_str_finish(json);
}

char *question_unit_type(const struct question *question) {
  const struct unit_loop *loop = &question->loop;
  return sqlite3_mprintf("%s %s", affinity_type(loop->affinity), collation_name(loop->collation));
}

static int is_public(const void *context, const char *name) {
  const struct question *question = context;
  const struct ledger_declaration *declared = ledger_policy_find(&question->policy, name);
  return (declared && declared->role == POLICY_PUBLIC) || sqlite3_stricmp(name, "json_each") == 0 ||
         sqlite3_stricmp(name, "json_tree") == 0;
}

char *question_notice(const struct question *question, const struct aggregate *aggregate) {
  int value = question->loop.columns - 1; /* the last of the columns that the kind reads */
  int takes_numbers = aggregate->places.value && !aggregate->family->has_vector &&
                      !aggregate->rows && (!aggregate->counts || aggregate->family->has_bins);
  int by_row = question->loop.by_row;
  sqlite3_stmt *statement = question->evaluator->statement;
  struct notice_terms terms = {question->evaluator->texts,
                               by_row           ? 0
                               : question->unit ? question->unit
                                                : "unit",
                               aggregate,
                               takes_numbers ? sqlite3_column_decltype(statement, value) : 0,
                               is_public,
                               question};
  return notice_words(&terms);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Reads all public tables of an evaluator. */
static int load_publics(struct question *question, struct evaluator *evaluator,
                        struct error *error) {
  const struct unit_loop *loop = &question->loop;
  int going = 1;
  for (int i = 0; i < evaluator->tables.count && going; i++) {
    struct evaluator_table *table = &evaluator->tables.list[i];
    struct unit_stream stream = {.table = table};
    if (table->declaration->role != POLICY_PUBLIC) continue;
    going =
        unit_loop_prepare_stream(loop, &stream, error) && unit_loop_advance(loop, &stream, error);
    while (going && stream.has_row)
      going = unit_loop_take(loop, &stream, error) && unit_loop_advance(loop, &stream, error);
    sqlite3_finalize(stream.row); /* the result is ignored: any error has been reported already */
  }
  return going;
}

/* Returns whether the host is interrupted. */
static int must_stop(void *context) {
  struct question *question = context;
  int rc;
  while ((rc = sqlite3_step(question->probe)) == SQLITE_ROW) {
  }
  /* The error is in rc. An error other than an interrupt, such as a refusal, does not matter. */
  sqlite3_reset(question->probe);
  return (rc & 0xff) == SQLITE_INTERRUPT;
}

/* ---- all units at once ----------------------------------------------------------------------- */

/* Returns an upper bound on the rows in a join of one protected row with all public tables. */
static double rows_joined(const struct question *question) {
  double product = 1;
  for (int i = 0; i < question->evaluator->tables.count; i++) {
    const struct evaluator_table *table = &question->evaluator->tables.list[i];
    if (table->declaration->role == POLICY_PUBLIC) product *= 1 + (double)table->rows.count;
  }
  return product;
}

/* Evaluates the question for all units at once, on the host's connection and the connections of
** further threads. Sets *done to 0 if the units must be evaluated one by one after all. */
static int run_at_once(struct question *question, const struct rows_opener *opener,
                       struct rows *rows, int *done, struct error *error) {
  struct readers *readers = opener->may_repeat ? question->readers : 0;
  enum evaluation end =
      row_loop_run(question->collector, question->evaluator, question->loop.streams[0].table,
                   question->loop.columns, readers, opener, rows, error);
  readers_close(question->readers); /* the readers are used only once */
  question->readers = 0;
  *done = end == EVALUATION_DONE;
  return end != EVALUATION_FAILED;
}

/* Adds the public rows. They come after those of the question, in the order of their query. */
static int add_publics(struct question *question, struct rows *rows, struct error *error) {
  struct evaluator *publics = question->publics;
  if (!rows->aggregate->rows->turn(rows, question->ledger, error) ||
      !load_publics(question, publics, error))
    return 0;
  publics->is_interrupted = must_stop;
  publics->context = question;
  evaluator_limit_memory(publics, HUGE_VAL);
  enum evaluation end = evaluator_run(publics, HUGE_VAL, 1);
  if (end != EVALUATION_DONE)
    return error_set(error, "the query of the public rows failed: %s%s",
                     end == EVALUATION_FAILED ? error_text(&publics->error)
                                              : sqlite3_errmsg(publics->db),
                     question->loop.after);
  int going = 1;
  for (size_t i = 0; i < publics->count && going; i++)
    going = rows->add(rows, evaluator_row(publics, i)) || error_set_memory(error);
  return going;
}

/* Opens empty rows, and reads the wider units for them: identities depend on the rows' secret. */
static int open_rows(struct question *question, const struct rows_opener *opener, struct rows *rows,
                     struct error *error) {
  return opener->open(opener->context, rows, 0, error) &&
         wider_units_read(&question->wider, rows, opener->after, error);
}

static int run_all(struct question *question, const struct rows_opener *opener, struct rows *rows,
                   struct error *error) {
  int done = 0;
  if (!open_rows(question, opener, rows, error) ||
      !load_publics(question, question->evaluator, error))
    return 0;
  question->evaluator->is_interrupted = must_stop;
  question->evaluator->context = question;
  /* All units are evaluated at once if this gives the same results as each unit by itself, and if
  ** no unit can reach the limit of steps. A SQLite that cannot count steps has no such limit. */
  int counts = question->evaluator->counts_steps;
  if (question->is_by_row &&
      (!counts || evaluator_instructions(question->evaluator) * rows_joined(question) <=
                      question->loop.limits.steps)) {
    if (!run_at_once(question, opener, rows, &done, error)) return 0;
    if (done) return 1;
    rows_close(rows);
    if (!open_rows(question, opener, rows, error)) return 0;
  }
  if (!counts) return cannot_count(opener->after, error);
  return unit_loop_run(&question->loop, error) &&
         (!question->publics || add_publics(question, rows, error));
}

/* The time limit interrupts the host's connection and the evaluator's. Further connections end with
** the host's (S5 in row_loop.c). */
int question_run(struct question *question, const struct rows_opener *opener, struct rows *rows,
                 struct error *error) {
  const struct question_limits *limits = &question->loop.limits;
  question->loop.after = opener->after;
  question->loop.rows = rows;
  evaluator_limit_memory(question->evaluator, limits->bytes);
  /* Such a question makes no value that is longer than those of its rows. */
  if (question->is_by_row) sqlite3_limit(question->evaluator->db, SQLITE_LIMIT_LENGTH, INT_MAX);
  time_limit_start(&question->time, limits->seconds);
  int done = run_all(question, opener, rows, error);
  if (!time_limit_end(&question->time)) return done;
  error_clear(error);
  return error_set(error, "the question took longer than its limit of %g seconds%s",
                   limits->seconds, opener->after);
}
