/*
** question.c: see question.h.
**
** The tables are read on the host's own connection, because another connection cannot read every
** database in the same state (it may be in memory, locked or encrypted). The statements that read
** the tables are written in this file and call no functions. They sort each protected table by
** unit. The sorted streams are then merged unit by unit, and the evaluator runs the caller's query.
*/
#include "query/question.h"

#include <stdlib.h>

#include "base/json.h"
#include "ledger/policy.h"
#include "query/direct_loop.h"
#include "query/evaluator.h"
#include "query/safe_columns.h"
#include "release/kinds.h"

SQLITE_EXTENSION_INIT3

/* The rows of a protected table, ordered by unit. */
struct stream {
  struct evaluator_table *table;
  sqlite3_stmt *row; /* columns: the unit, the rowid, then the columns that the question reads */
  int has_row;
};

struct question {
  struct collector *host;
  struct ledger *ledger;
  struct ledger_policy policy;
  const char *after; /* the text at the end of error messages: see struct rows_opener */
  struct evaluator *evaluator;
  struct readers *readers; /* further connections to the file; null if the host reads alone */
  sqlite3_stmt *begun;     /* a statement that keeps the database in one state (U3) */
  sqlite3_stmt *probe;     /* a statement that shows whether the host is interrupted */
  sqlite3_stmt *compare;   /* a statement that compares two units in the order of the streams */
  int columns;             /* the number of columns of the question; 0: any number of columns */
  int takes_one;           /* each unit gives exactly one row (deliver_one) */
  sqlite3_value *nothing;  /* the SQL value NULL */
  int by_row;              /* the ledger protects rows */
  struct stream_facts facts;
  struct stream *streams;
  int count;
  enum collation collation; /* the collation of the units */
  sqlite3_value *unit;      /* the current unit */
  int64_t number;           /* the number of units so far */
};

static int out_of_memory(struct error *error) {
  return error_set_memory(error);
}

static int reading_failed(const struct question *question, struct error *error) {
  return error_set(error, "the query failed: %s%s", sqlite3_errmsg(question->host->db),
                   question->after);
}

/* ---- opening --------------------------------------------------------------------------------- */

static int read_policy(struct question *question) {
  struct ledger *ledger = question->ledger;
  int read = ledger_begin_reading(ledger) && ledger_policy_read(ledger, &question->policy) &&
             ledger_policy_need(ledger, &question->policy);
  ledger_rollback(ledger);
  return read;
}

/* Compiles one of the question's own statements, which must give `columns` columns. */
static int prepare(sqlite3 *db, const char *sql, int columns, sqlite3_stmt **statement,
                   struct error *error) {
  if (!sql) return out_of_memory(error);
  if (sqlite3_prepare_v2(db, sql, -1, statement, 0) != SQLITE_OK)
    return error_set(error, "cannot read for the question: %s", sqlite3_errmsg(db));
  if (sqlite3_column_count(*statement) == columns) return 1;
  return error_set(error, "an authorizer of the host leaves out SELECT (let the extension read)");
}

/*
** Begins a read on the host's connection, so that the schema and the rows come from the same state.
*/
static int begin(struct question *question, struct error *error) {
  sqlite3 *db = question->host->db;
  int going = prepare(db, "SELECT rootpage FROM main.sqlite_master", 1, &question->begun, error);
  if (!going) return 0;
  int rc = sqlite3_step(question->begun);
  if (rc == SQLITE_ROW) return 1;
  return rc == SQLITE_DONE
             ? error_set(error, "main has no tables")
             : error_set(error, "cannot read for the question: %s", sqlite3_errmsg(db));
}

/* Gives each column that the question reads its place in the statement that reads the table. */
static int place_columns(struct evaluator_table *table) {
  int place = 0;
  for (int i = 0; i < table->route.tables[0].count; i++)
    table->places[i] = table->used[i] ? place++ : -1;
  return place;
}

static void append_columns(sqlite3_str *sql, const struct evaluator_table *table) {
  const struct table_facts *facts = &table->route.tables[0];
  sqlite3_str_appendf(sql, ", %s%s", facts->rowid ? "t0." : "",
                      facts->rowid ? facts->rowid : "NULL");
  for (int i = 0; i < facts->count; i++)
    if (table->used[i]) sqlite3_str_appendf(sql, ", t0.\"%w\"", facts->columns[i].name);
}

/* Appends the rowid or the primary key as the last terms of ORDER BY. */
static void append_order(sqlite3_str *sql, const struct table_facts *facts) {
  if (facts->rowid) sqlite3_str_appendf(sql, ", t0.%s", facts->rowid);
  for (int i = 0; !facts->rowid && i < facts->key_count; i++)
    sqlite3_str_appendf(sql, ", t0.\"%w\"", facts->columns[facts->key[i]].name);
}

/*
** Compiles the statement that reads a table. If `is_sorted` is 1, the rows of each unit come
** together. The rows of a public table, and all rows if the ledger protects rows, then come in the
** order of the rowid or of the primary key.
*/
static int prepare_stream(struct question *question, struct evaluator_table *table, int is_sorted,
                          sqlite3_stmt **statement, struct error *error) {
  const struct route *route = &table->route;
  int columns = place_columns(table);
  int is_public = table->declaration->role == POLICY_PUBLIC;
  sqlite3_str *sql = sqlite3_str_new(0);
  sqlite3_str_appendall(sql, "SELECT ");
  if (is_public || question->by_row) {
    sqlite3_str_appendall(sql, "NULL");
  } else {
    route_append_unit(sql, route);
  }
  append_columns(sql, table);
  route_append_from(sql, route);
  if (!is_public && !question->by_row) {
    sqlite3_str_appendall(sql, " WHERE ");
    route_append_unit(sql, route);
    sqlite3_str_appendall(sql, " IS NOT NULL");
  }
  if (is_sorted) {
    sqlite3_str_appendall(sql, " ORDER BY ");
    if (!is_public && !question->by_row) {
      route_append_unit(sql, route);
      sqlite3_str_appendf(sql, " COLLATE %s", collation_name(question->collation));
    } else {
      sqlite3_str_appendall(sql, "1");
    }
    append_order(sql, &route->tables[0]);
  }
  char *text = sqlite3_str_finish(sql);
  int going = prepare(question->host->db, text, columns + 2, statement, error);
  sqlite3_free(text);
  return going;
}

/*
** Checks that the unit columns of all tables have the same affinity and collation. dp_protect() has
** checked the same, but the schema may have changed since.
*/
static int check_units(struct question *question, struct error *error) {
  const struct table_column *first = 0;
  for (int i = 0; i < question->count; i++) {
    const struct route *route = &question->streams[i].table->route;
    const struct table_facts *last = &route->tables[route->count - 1];
    if (route->unit < 0) continue;
    const struct table_column *unit = &last->columns[route->unit];
    if (!first) first = unit;
    if (unit->affinity != first->affinity || unit->collation != first->collation)
      return error_set(error,
                       "columns '%s' and '%s' name units and compare differently (give both the "
                       "same type and collation)",
                       first->name, unit->name);
    question->collation = unit->collation;
  }
  return 1;
}

/* Finds the protected tables among the tables of the question, and makes their streams. */
static int find_streams(struct question *question, struct error *error) {
  int tables = evaluator_table_count(question->evaluator);
  question->streams = calloc((size_t)tables + 1, sizeof *question->streams);
  if (!question->streams) return out_of_memory(error);
  for (int i = 0; i < tables; i++) {
    struct evaluator_table *table = evaluator_table(question->evaluator, i);
    if (table->declaration->role == POLICY_PROTECTED)
      question->streams[question->count++].table = table;
  }
  if (!question->count)
    return error_set(error,
                     "the query names no protected table, so it is about nobody (compute it in a "
                     "plain SELECT)");
  if (question->by_row && question->count > 1)
    return error_set(error,
                     "the ledger protects rows, so a question names exactly one protected table, "
                     "not %d",
                     question->count);
  return check_units(question, error);
}

static int prepare_streams(struct question *question, struct error *error) {
  int going = 1;
  int tables = evaluator_table_count(question->evaluator);
  for (int i = 0; i < tables && going; i++) {
    struct evaluator_table *table = evaluator_table(question->evaluator, i);
    going = safe_columns_check(question->host->db, &table->route, table->used, error);
  }
  for (int i = 0; i < question->count && going; i++)
    going =
        prepare_stream(question, question->streams[i].table, 1, &question->streams[i].row, error);
  return going;
}

static int make_nothing(struct question *question, struct error *error) {
  sqlite3_stmt *row = 0;
  if (!prepare(evaluator_connection(question->evaluator), "SELECT NULL", 1, &row, error)) return 0;
  if (sqlite3_step(row) == SQLITE_ROW)
    question->nothing = sqlite3_value_dup(sqlite3_column_value(row, 0));
  sqlite3_finalize(row); /* if the step failed, `nothing` stays null */
  return question->nothing || out_of_memory(error);
}

static int prepare_helpers(struct question *question, struct error *error) {
  static const char probe[] =
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300)"
      " SELECT count(*) FROM n";
  const char *collation = collation_name(question->collation);
  char *sql =
      sqlite3_mprintf("SELECT (?1 < ?2 COLLATE %s) - (?1 > ?2 COLLATE %s)", collation, collation);
  int going = prepare(question->host->db, sql, 1, &question->compare, error);
  sqlite3_free(sql);
  if (going) going = prepare(question->host->db, probe, 1, &question->probe, error);
  if (going) going = make_nothing(question, error);
  return going;
}

int question_open(struct question **out, struct collector *host, struct ledger *ledger,
                  const struct aggregate *aggregate, const char *sql, struct error *error) {
  *out = 0;
  if (ledger_is_unchecked(ledger)) return 1;
  struct question *question = calloc(1, sizeof *question);
  if (!question) return out_of_memory(error);
  question->host = host;
  question->ledger = ledger;
  question->by_row = ledger_protects(ledger) == LEDGER_ROWS;
  *out = question;
  int going = read_policy(question);
  const char *names;
  question->columns = aggregate_columns(aggregate, 0, &names);
  question->takes_one = !aggregate->family->has_states;
  if (going && !question->takes_one) question->readers = readers_open(host);
  if (going) going = begin(question, error);
  if (going)
    going = evaluator_open(&question->evaluator, host->db, &question->policy, sql,
                           question->columns ? question->columns : -1, names, error);
  if (going) going = find_streams(question, error);
  if (going) going = prepare_streams(question, error);
  if (going) going = prepare_helpers(question, error);
  return going;
}

void question_close(struct question *question) {
  if (!question) return;
  readers_close(question->readers);
  for (int i = 0; i < question->count; i++) sqlite3_finalize(question->streams[i].row);
  free(question->streams);
  sqlite3_finalize(question->probe); /* the errors of these statements have been reported */
  sqlite3_finalize(question->compare);
  sqlite3_value_free(question->nothing);
  sqlite3_finalize(question->begun);
  sqlite3_value_free(question->unit);
  evaluator_close(question->evaluator);
  ledger_policy_free(&question->policy);
  free(question);
}

char *question_tables(const struct question *question) {
  sqlite3_str *json = sqlite3_str_new(0);
  sqlite3_str_appendall(json, "{");
  for (int i = 0; i < evaluator_table_count(question->evaluator); i++) {
    const struct evaluator_table *table = evaluator_table(question->evaluator, i);
    if (i) sqlite3_str_appendall(json, ",");
    json_append_string(json, table->route.tables[0].name);
    sqlite3_str_appendf(json, ":\"%s\"",
                        table->declaration->role == POLICY_PUBLIC ? "public" : "protected");
  }
  sqlite3_str_appendall(json, "}");
  return sqlite3_str_finish(json);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int advance(struct question *question, struct stream *stream, struct error *error) {
  int rc = sqlite3_step(stream->row);
  stream->has_row = rc == SQLITE_ROW;
  return rc == SQLITE_ROW || rc == SQLITE_DONE || reading_failed(question, error);
}

static int add_row(const struct question *question, struct evaluator_table *table,
                   sqlite3_stmt *row, struct error *error) {
  int64_t rowid = sqlite3_column_int64(row, 1);
  return unit_rows_add(&table->rows, rowid, row, 2, table->places)
             ? 1
             : error_set(error, "out of memory%s", question->after);
}

/* Reads all rows of a public table. */
static int load_public(struct question *question, struct evaluator_table *table,
                       struct error *error) {
  struct stream stream = {.table = table};
  int going = prepare_stream(question, table, 1, &stream.row, error);
  if (going) going = advance(question, &stream, error);
  while (going && stream.has_row) {
    going = add_row(question, table, stream.row, error);
    if (going) going = advance(question, &stream, error);
  }
  sqlite3_finalize(stream.row); /* the result is ignored: any error has been reported already */
  return going;
}

static int load_publics(struct question *question, struct error *error) {
  int going = 1;
  for (int i = 0; i < evaluator_table_count(question->evaluator) && going; i++) {
    struct evaluator_table *table = evaluator_table(question->evaluator, i);
    if (table->declaration->role == POLICY_PUBLIC) going = load_public(question, table, error);
  }
  return going;
}

/*
** Compares a unit with the unit of a stream's row, in the order of the streams. Sets *order to 1 if
** `unit` comes first, 0 if both are equal, and -1 if `unit` comes later. Two integers are compared
** without SQL.
*/
static int compare(struct question *question, sqlite3_value *unit, const struct stream *stream,
                   int *order, struct error *error) {
  if (sqlite3_value_type(unit) == SQLITE_INTEGER &&
      sqlite3_column_type(stream->row, 0) == SQLITE_INTEGER) {
    int64_t a = sqlite3_value_int64(unit), b = sqlite3_column_int64(stream->row, 0);
    *order = (a < b) - (a > b);
    return 1;
  }
  sqlite3_value *other = sqlite3_value_dup(sqlite3_column_value(stream->row, 0));
  int going = 1;
  if (!other || sqlite3_bind_value(question->compare, 1, unit) != SQLITE_OK ||
      sqlite3_bind_value(question->compare, 2, other) != SQLITE_OK ||
      sqlite3_step(question->compare) != SQLITE_ROW) {
    going = reading_failed(question, error);
  } else {
    *order = sqlite3_column_int(question->compare, 0);
  }
  sqlite3_reset(question->compare); /* the result is ignored: any error has been reported already */
  sqlite3_value_free(other);
  return going;
}

/* Makes the unit of a stream's row the current unit. */
static int choose_unit(struct question *question, const struct stream *stream,
                       struct error *error) {
  sqlite3_value_free(question->unit);
  question->unit = sqlite3_value_dup(sqlite3_column_value(stream->row, 0));
  return question->unit ? 1 : error_set(error, "out of memory%s", question->after);
}

/*
** Makes the first unit of all streams the current unit. Sets *found to 0 if no stream has a row
** left.
*/
static int find_unit(struct question *question, int *found, struct error *error) {
  int going = 1;
  *found = 0;
  for (int i = 0; i < question->count && going; i++) {
    const struct stream *stream = &question->streams[i];
    int order = -1;
    if (!stream->has_row) continue;
    if (*found) going = compare(question, question->unit, stream, &order, error);
    if (going && order < 0) going = choose_unit(question, stream, error);
    *found = 1;
  }
  return going;
}

/*
** Moves the rows of the current unit from the streams to the evaluator's tables. Sets *count to
** their number.
*/
static int gather(struct question *question, double *count, struct error *error) {
  int going = 1;
  *count = 0;
  for (int i = 0; i < question->count && going; i++) {
    struct stream *stream = &question->streams[i];
    int order = 0;
    unit_rows_clear(&stream->table->rows);
    while (going && stream->has_row && order == 0) {
      if (!question->by_row) going = compare(question, question->unit, stream, &order, error);
      if (!going || order != 0) break;
      going = add_row(question, stream->table, stream->row, error);
      *count += 1;
      if (going) going = advance(question, stream, error);
      if (question->by_row) break;
    }
  }
  return going;
}

/* ---- contributions --------------------------------------------------------------------------- */

/* Sets the current unit as the unit of the next rows. Returns 0 when out of memory. */
static int give_unit(struct question *question, struct rows *rows) {
  if (!question->by_row) return rows_give_unit(rows, question->unit, question->collation);
  rows_give_number(rows, question->number);
  return 1;
}

/*
** Adds exactly one row to `rows` for the current unit: the question's first result, or NULLs if
** there is no result. Models and local randomisations need this.
*/
static int deliver_one(struct question *question, struct rows *rows) {
  sqlite3_value *nothing[3] = {question->nothing, question->nothing, question->nothing};
  int count = evaluator_count(question->evaluator) > 0;
  return give_unit(question, rows) &&
         rows_add(rows, count ? evaluator_row(question->evaluator, 0) : nothing);
}

/* Adds the results of the current unit. Returns 0 when out of memory. */
static int deliver(struct question *question, struct rows *rows) {
  size_t count = evaluator_count(question->evaluator);
  if (question->takes_one) return deliver_one(question, rows);
  if (!count) return 1;
  if (!question->columns) count = 1; /* a question without columns counts a unit once */
  int added = give_unit(question, rows);
  for (size_t i = 0; i < count && added; i++)
    added = rows_add(rows, question->columns ? evaluator_row(question->evaluator, i) : 0);
  return added;
}

/* ---- unit by unit ---------------------------------------------------------------------------- */

#define MOST_BYTES (64 << 20) /* results of a unit with r rows: at most (1 + r) * MOST_BYTES */

static int evaluation_failed(const struct question *question, struct error *error) {
  return error_set(error, "the query failed: %s%s", evaluator_error(question->evaluator),
                   question->after);
}

/*
** Evaluates the question for the current unit and adds its results. If the evaluation fails for
** this unit only (EVALUATION_DROPPED), the unit has no results.
*/
static int evaluate(struct question *question, double steps, double count, struct rows *rows,
                    struct error *error) {
  struct evaluator_limits limits = {steps * (1 + count), MOST_BYTES * (1 + count)};
  if (evaluator_run(question->evaluator, &limits, question->columns > 0) == EVALUATION_FAILED)
    return evaluation_failed(question, error);
  return deliver(question, rows) || error_set(error, "out of memory%s", question->after);
}

static int host_is_interrupted(void *context) {
  struct question *question = context;
  int rc;
  while ((rc = sqlite3_step(question->probe)) == SQLITE_ROW) {
  }
  /* The error is in rc. An error other than an interrupt, such as a refusal, does not matter. */
  sqlite3_reset(question->probe);
  return (rc & 0xff) == SQLITE_INTERRUPT;
}

static int run_by_unit(struct question *question, double steps, struct rows *rows,
                       struct error *error) {
  int found = 1, going = 1;
  double count;
  for (int i = 0; i < question->count && going; i++)
    going = advance(question, &question->streams[i], error);
  while (going) {
    if (question->by_row) {
      found = question->streams[0].has_row;
    } else {
      going = find_unit(question, &found, error);
    }
    if (!going || !found) break;
    question->number++;
    going = gather(question, &count, error);
    if (going) going = evaluate(question, steps, count, rows, error);
  }
  return going;
}

/* ---- all units at once ----------------------------------------------------------------------- */

/* The context of next_row() and give_row(). */
struct streaming {
  struct question *question;
  struct stream *stream;
  struct rows *rows;
  struct error *error;
};

static int next_row(void *context) {
  struct streaming *streaming = context;
  struct question *question = streaming->question;
  struct stream *stream = streaming->stream;
  if (!advance(question, stream, streaming->error)) return -1;
  if (!stream->has_row) return 0;
  unit_rows_clear(&stream->table->rows);
  question->number++;
  if (!add_row(question, stream->table, stream->row, streaming->error)) return -1;
  return question->by_row || choose_unit(question, stream, streaming->error) ? 1 : -1;
}

static int give_row(void *context, sqlite3_value **row) {
  struct streaming *streaming = context;
  return give_unit(streaming->question, streaming->rows) && rows_add(streaming->rows, row);
}

/* Returns an upper bound on the rows in a join of one protected row with all public tables. */
static double rows_joined(const struct question *question) {
  double product = 1;
  for (int i = 0; i < evaluator_table_count(question->evaluator); i++) {
    const struct evaluator_table *table = evaluator_table(question->evaluator, i);
    if (table->declaration->role == POLICY_PUBLIC) product *= 1 + (double)table->rows.count;
  }
  return product;
}

/*
** Returns whether the question can be evaluated for all units at once. The results must be the same
** as for each unit separately, and no unit may be able to reach the limit of steps.
*/
static int can_stream(struct question *question, double steps) {
  return question->count == 1 && !question->takes_one &&
         evaluator_can_stream(question->evaluator, &question->facts) &&
         question->facts.length * rows_joined(question) * 2 <= steps;
}

/*
** Opens the rows. They have no column for the unit, because give_unit() sets the unit.
** direct_loop_run() changes this.
*/
static int open_rows(const struct rows_opener *opener, struct rows *rows, struct error *error) {
  int opened = opener->open(opener->context, rows, error);
  rows->columns.unit = -1;
  return opened;
}

static int run_stream(struct question *question, struct rows *rows, int *done,
                      struct error *error) {
  struct stream stream = {.table = question->streams[0].table};
  struct streaming streaming = {question, &stream, rows, error};
  struct evaluator_stream evaluated = {stream.table, next_row, give_row, &streaming};
  if (!prepare_stream(question, stream.table, 0, &stream.row, error)) return 0;
  enum evaluation end = evaluator_run_stream(question->evaluator, &evaluated);
  sqlite3_finalize(stream.row); /* the result is ignored: any error has been reported already */
  unit_rows_clear(&stream.table->rows);
  question->number = 0;
  *done = end != EVALUATION_DROPPED;
  return end != EVALUATION_FAILED || evaluation_failed(question, error);
}

/*
** Evaluates the question for all units at once, on the host's connection and the connections of
** further threads, or on the evaluator's connection. Sets *done to 0 if the units must be evaluated
** one by one after all. On the host's connection, common table expressions stand for the tables
** (direct_loop.h), and these have no rowid. A question that reads a rowid therefore runs on the
** evaluator's connection.
*/
static int run_at_once(struct question *question, const struct rows_opener *opener,
                       struct rows *rows, int *done, struct error *error) {
  struct direct_loop loop = {0};
  struct readers *readers = opener->may_repeat ? question->readers : 0;
  int is_direct = !question->facts.reads_rowids &&
                  direct_loop_open(&loop, question->host, question->evaluator,
                                   question->streams[0].table, &question->policy, readers != 0);
  enum evaluation end = EVALUATION_DROPPED;
  if (is_direct) end = direct_loop_run(&loop, readers, opener, rows, error);
  *done = end == EVALUATION_DONE;
  direct_loop_close(&loop);
  readers_close(question->readers);
  question->readers = 0;
  if (is_direct) return end != EVALUATION_FAILED;
  return run_stream(question, rows, done, error);
}

int question_run(struct question *question, double steps, const struct rows_opener *opener,
                 struct rows *rows, struct error *error) {
  int done = 0;
  question->after = opener->after;
  if (!open_rows(opener, rows, error) || !load_publics(question, error)) return 0;
  evaluator_watch(question->evaluator, host_is_interrupted, question);
  if (can_stream(question, steps)) {
    if (!run_at_once(question, opener, rows, &done, error)) return 0;
    if (done) return 1;
    rows_close(rows);
    if (!open_rows(opener, rows, error)) return 0;
  }
  return run_by_unit(question, steps, rows, error);
}
