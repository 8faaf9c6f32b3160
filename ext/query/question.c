/* question.c: the life of a question: it is compiled and checked before the charge, and afterwards
** evaluated row by row (row_loop.c) or, here, for one unit after the other: the protected tables
** are sorted by unit, and the evaluator runs the query on the rows of each unit.
**
** The tables are read on the host's own connection, because another connection cannot read every
** database in the same state (it may be in memory, locked or encrypted).
** Tests: tests/query/test_questions.py, tests/query/test_question_neighbours.py,
** tests/query/test_question_limits.py, tests/ledger/test_within.py */

#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "mechanism/mechanism.h"
#include "os/os.h"
#include "query/internal.h"
#include "release/release.h"

SQLITE_EXTENSION_INIT3

/* Limits of a question that is evaluated for nobody: an aggregate over no rows needs few. */
#define NOBODY_STEPS 2000
#define NOBODY_BYTES 1000000

#define DEFAULT_STEPS 1000000
#define DEFAULT_BYTES (1 << 30)

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

/* The rows of a table. Those of a protected table are ordered by unit. */
struct stream {
  struct evaluator_table *table;
  /* Columns: the unit, the rowid, whether a value is too long (if is_cut is 1), and the columns
  ** that the question reads. */
  sqlite3_stmt *row;
  int is_cut;
  int has_row;
};

/* The wider unit of each unit, such as a household (dp_within). The table that declares it has one
** row for each unit, which names the wider unit in a column. A unit without a row, or with NULL, is
** a wider unit of its own. */
struct wider_units {
  struct route route; /* of the table */
  int column;         /* of its first table */
  sqlite3_stmt *row;  /* collects units and wider units */
  struct households *households;
};

/* A limit on the time that a question takes. A thread with a clock of its own interrupts the
** connections when the time is over. So the limit also holds while SQLite sorts or reads rows that
** no condition admits, and it needs no progress handler, of which a connection has only one, the
** host's. */
struct time_limit {
  sqlite3 *connections[2];
  atomic_llong end; /* a time of clock_milliseconds() */
  atomic_int is_over, is_done;
  struct thread thread;
  int has_thread; /* from question_open() on */
};

struct question {
  struct collector *collector;
  sqlite3 *db; /* the collector's connection */
  struct ledger *ledger;
  struct ledger_policy policy;
  char *unit; /* the ledger's word for a unit */
  struct question_limits limits;
  int host_limits[LIFTED];
  struct time_limit time;
  sqlite3_stmt *begun; /* a statement that keeps the database in one state (U3) */
  sqlite3_stmt *probe; /* a statement that shows whether the host is interrupted */

  struct evaluator *evaluator;
  struct evaluator *publics; /* evaluates the query of the public rows; null: there are none */
  int columns;               /* the number of columns of the question; 0: any number of columns */
  int takes_one;             /* each unit gives exactly one row */
  int rows_are_units;        /* the ledger protects rows */
  int is_by_row; /* each result comes from one row of one table: all units at once will do */
  struct readers *readers;  /* further connections to the file; null if the host reads alone */
  struct wider_units wider; /* used if policy.wider has a name */

  struct stream *streams; /* of the protected tables */
  int count;
  const struct table_column *unit_column; /* of one of them; null: each row is a unit */
  enum affinity affinity;                 /* of the units */
  enum collation collation;
  int longest;            /* no value of a unit that contributes is longer; 0: not known */
  sqlite3_stmt *compare;  /* a statement that compares two units in the order of the streams */
  sqlite3_value *nothing; /* if takes_one: the SQL value NULL */

  /* while the question runs */
  struct rows *rows;  /* takes the results */
  int64_t integer;    /* the current unit, if it is an integer */
  sqlite3_value *now; /* the current unit; null if it is an integer */
  int64_t number;     /* the number of units so far */
};

/* ---- errors and statements ------------------------------------------------------------------- */

static int query_failed(const char *why, struct error *error) {
  return error_set(error, "the query failed: %s", why);
}

static int reading_failed(const struct question *question, struct error *error) {
  return query_failed(sqlite3_errmsg(question->db), error);
}

static int cannot_count(struct error *error) {
  /* Advice: better-sqlite3 is such a build. Ask other questions in another host. */
  return error_set(error,
                   "this SQLite was built without progress callbacks, so only a question row by "
                   "row can be evaluated (such as SELECT x FROM visit WHERE y > 3)");
}

/* Compiles one of the question's own statements, which gives `columns` columns. Frees the text. */
static int prepare(sqlite3 *db, char *sql, int columns,
                   sqlite3_stmt **statement, struct error *error) {
  int rc = sql ? sqlite3_prepare_v2(db, sql, -1, statement, 0) : SQLITE_NOMEM;
  int going = sql ? 1 : error_set_memory(error);
  sqlite3_free(sql);
  if (going && rc != SQLITE_OK)
    return error_set(error, "cannot read for the question: %s", sqlite3_errmsg(db));
  if (going && sqlite3_column_count(*statement) != columns)
    going =
        error_set(error, "an authorizer of the host leaves out SELECT (let the extension read)");
  return going;
}

/* ---- the time limit -------------------------------------------------------------------------- */

#define LOOK 1000 /* microseconds between two looks at the clock */

/* The function of the thread. SQLite ignores an interrupt that arrives between two statements, so
** the thread repeats it. */
static void watch(void *pointer) {
  struct time_limit *limit = pointer;
  while (!atomic_load(&limit->is_done)) {
    if (clock_milliseconds() >= atomic_load(&limit->end)) {
      atomic_store(&limit->is_over, 1);
      for (int i = 0; i < 2; i++) sqlite3_interrupt(limit->connections[i]);
    }
    clock_sleep(LOOK);
  }
}

/* Starts the thread: where no thread can start, nothing has been charged yet. */
static int time_limit_open(struct question *question, struct error *error) {
  struct time_limit *limit = &question->time;
  if (isinf(question->limits.seconds)) return 1;
  limit->connections[0] = question->db;
  limit->connections[1] = question->evaluator->db;
  atomic_init(&limit->end, LLONG_MAX);
  atomic_init(&limit->is_over, 0);
  atomic_init(&limit->is_done, 0);
  limit->has_thread = thread_start(&limit->thread, watch, limit);
  return limit->has_thread ||
         error_set(error, "no thread starts, and without one no limit of seconds can be kept");
}

/* Ends the thread, which exists, and returns whether the time was over. From then on, nobody
** interrupts a connection. */
static int time_limit_end(struct time_limit *limit) {
  int is_late = clock_milliseconds() >= atomic_load(&limit->end); /* the thread may be late */
  atomic_store(&limit->is_done, 1);
  thread_join(&limit->thread);
  limit->has_thread = 0;
  return is_late || atomic_load(&limit->is_over);
}

/* ---- wider units ----------------------------------------------------------------------------- */

static int has_changed(const struct ledger_wider *wider, const char *what, struct error *error) {
  return error_set(
      error,
      "table '%s', which says to which '%s' a unit belongs, %s (undo this, or declare "
      "what took its place with dp_within('%w', 'table', 'column', %.15g); nothing was "
      "charged or read)",
      wider->table, wider->name, what, wider->name, wider->factor);
}

/* Checks that the units of two tables have the same affinity and collation. dp_protect() has
** checked the same, but the schema may have changed since. */
static int compare_alike(const struct table_column *one, const struct table_column *other,
                         struct error *error) {
  return (one->affinity == other->affinity && one->collation == other->collation) ||
         error_set(error,
                   "columns '%s' and '%s' name units and compare differently (give both the "
                   "same type and collation)",
                   one->name, other->name);
}

/* Checks that the schema still says what was declared, and finds the column. */
static int find_wider(struct question *question, struct error *error) {
  const struct ledger_wider *declared = &question->policy.wider;
  const struct ledger_declaration *table = ledger_policy_find(&question->policy, declared->table);
  struct wider_units *wider = &question->wider;
  struct error gone = {0};
  if (!table || !route_find(&wider->route, question->db, &question->policy, table, &gone)) {
    int is_memory = error_is_memory(&gone);
    error_clear(&gone);
    return is_memory ? error_set_memory(error) : has_changed(declared, "is gone", error);
  }
  const struct table_facts *facts = &wider->route.tables[0];
  wider->column = table_column_find(facts, declared->column);
  if (wider->column < 0) return has_changed(declared, "has lost this column", error);
  if (facts->columns[wider->column].is_virtual)
    return has_changed(declared, "computes this column when it is read", error);
  if (!route_is_single(&wider->route))
    return has_changed(declared, "may have several rows of a unit", error);
  const struct table_facts *last = &wider->route.tables[wider->route.count - 1];
  return compare_alike(&last->columns[wider->route.unit], question->unit_column, error);
}

static int collect_left_out(struct error *error) {
  return error_set(error,
                   "an authorizer of the host leaves out dp_collect() (let the extension read)");
}

/* Compiles the statement that reads the table, and locks it as the tables of the question. */
static int open_wider(struct question *question, struct error *error) {
  struct wider_units *wider = &question->wider;
  if (!find_wider(question, error)) return 0;
  const struct table_facts *facts = &wider->route.tables[0];
  unsigned char *used = calloc((size_t)facts->count, 1);
  if (!used) return error_set_memory(error);
  used[wider->column] = 1;
  int safe = safe_columns_check(question->db, &wider->route, used, error);
  free(used);
  if (!safe) return 0;
  if (!column_is_shown(question->db, "SELECT dp_collect(1, 1)", "SELECT NULL"))
    return collect_left_out(error);
  sqlite3_str *sql = sqlite3_str_new(0);
  sqlite3_str_appendall(sql, "SELECT dp_collect(");
  route_append_unit(sql, &wider->route);
  sqlite3_str_appendf(sql, ", t0.\"%w\")", facts->columns[wider->column].name);
  route_append_from(sql, &wider->route);
  return prepare(question->db, sqlite3_str_finish(sql), 1, &wider->row, error);
}

/* The destination of the rows of the table. */
struct noting {
  struct collection collection;
  struct households *households;
  enum collation collations[2]; /* of the unit, and of the wider unit */
};

/* Notes the wider unit of one unit. Returns 0 when out of memory. */
static int note(struct collection *collection, sqlite3_value **row) {
  const struct noting *noting = (const struct noting *)collection;
  struct rows *rows = collection->rows;
  struct identity found[2];
  for (int i = 0; i < 2; i++) {
    if (sqlite3_value_type(row[i]) == SQLITE_NULL) return 1;
    if (!rows_give_unit(rows, row[i], noting->collations[i])) return 0;
    found[i] = rows->given;
  }
  return households_put(noting->households, found[0], found[1]);
}

/* Reads the table, and lets `rows`, which are open and empty, bound the wider units. */
static int read_wider(struct question *question, struct rows *rows, struct error *error) {
  struct wider_units *wider = &question->wider;
  const struct table_facts *last = &wider->route.tables[wider->route.count - 1];
  const struct table_facts *first = &wider->route.tables[0];
  households_close(wider->households);
  wider->households = households_open(rows->secret);
  if (!wider->households) return error_set_memory(error);
  struct noting noting = {
      {.rows = rows, .take = note, .columns = 2},
      wider->households,
      {last->columns[wider->route.unit].collation, first->columns[wider->column].collation}};
  int rc = collector_run(question->collector, wider->row, &noting.collection);
  if (rc == SQLITE_OK) collect_left_out(error);
  if (rc != SQLITE_OK && rc != SQLITE_DONE) reading_failed(question, error);
  sqlite3_reset(wider->row); /* the error has been reported */
  rows_use_households(rows, wider->households);
  return rc == SQLITE_DONE;
}

/* ---- the statement on a table ---------------------------------------------------------------- */

static int is_protected(const struct evaluator_table *table) {
  return table->declaration->role == POLICY_PROTECTED;
}

/* A unit with a value that is longer than `longest` contributes nothing (evaluator_limit_memory()).
** The statement gives NULL instead of such values, because SQLite would hold sixteen of them in
** memory while it sorts. length() does not read a blob. */
static void append_cut_columns(sqlite3_str *sql, const struct table_facts *facts,
                               const unsigned char *used, int longest) {
  sqlite3_str_appendall(sql, ", CASE");
  for (int i = 0; i < facts->count; i++)
    if (used[i])
      sqlite3_str_appendf(sql, " WHEN length(t0.\"%w\") > %d THEN 1", facts->columns[i].name,
                          longest);
  sqlite3_str_appendall(sql, " WHEN 0 THEN 0 END IS TRUE");
  for (int i = 0; i < facts->count; i++)
    if (used[i])
      sqlite3_str_appendf(sql, ", CASE WHEN length(t0.\"%w\") > %d THEN NULL ELSE t0.\"%w\" END",
                          facts->columns[i].name, longest, facts->columns[i].name);
}

/* Returns the statement that reads the table of a stream. The rows of each unit come together. The
** rows of a public table, and all rows if each row is a unit, come in the order of the rowid or of
** the primary key. */
static char *text_of(const struct question *question, const struct stream *stream) {
  const struct route *route = &stream->table->route;
  const struct table_facts *facts = &route->tables[0];
  int has_unit = is_protected(stream->table) && !question->rows_are_units;
  sqlite3_str *sql = sqlite3_str_new(0);
  sqlite3_str_appendall(sql, "SELECT ");
  if (has_unit) {
    route_append_unit(sql, route);
  } else {
    sqlite3_str_appendall(sql, "NULL");
  }
  sqlite3_str_appendf(sql, ", %s%s", facts->rowid ? "t0." : "",
                      facts->rowid ? facts->rowid : "NULL");
  if (stream->is_cut) append_cut_columns(sql, facts, stream->table->used, question->longest);
  for (int i = 0; i < facts->count && !stream->is_cut; i++)
    if (stream->table->used[i]) sqlite3_str_appendf(sql, ", t0.\"%w\"", facts->columns[i].name);
  route_append_from(sql, route);
  sqlite3_str_appendall(sql, " ORDER BY ");
  if (has_unit) {
    route_append_unit(sql, route);
    sqlite3_str_appendf(sql, " COLLATE %s", collation_name(question->collation));
  } else {
    sqlite3_str_appendall(sql, "1");
  }
  /* The last terms are the rowid or the primary key. A key may be unique under a finer collation
  ** than that of its column. Other units could then decide how rows with equal terms are
  ** ordered. */
  if (facts->rowid) sqlite3_str_appendf(sql, ", t0.%s", facts->rowid);
  for (int i = 0; !facts->rowid && i < facts->key_count; i++)
    sqlite3_str_appendf(sql, ", t0.\"%w\" COLLATE BINARY", facts->columns[facts->key[i]].name);
  return sqlite3_str_finish(sql);
}

static int prepare_stream(const struct question *question, struct stream *stream,
                          struct error *error) {
  struct evaluator_table *table = stream->table;
  int columns = 0; /* that the question reads: each has a place in the statement */
  for (int i = 0; i < table->route.tables[0].count; i++)
    table->places[i] = table->used[i] ? columns++ : -1;
  stream->is_cut = question->longest && is_protected(table);
  return prepare(question->db, text_of(question, stream), columns + 2 + stream->is_cut,
                 &stream->row, error);
}

/* ---- opening --------------------------------------------------------------------------------- */

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
  char *sql = sqlite3_mprintf("SELECT rootpage FROM main.sqlite_master");
  if (!prepare(question->db, sql, 1, &question->begun, error)) return 0;
  int rc = sqlite3_step(question->begun);
  if (rc == SQLITE_ROW) return 1;
  return rc == SQLITE_DONE
             ? error_set(error, "main has no tables")
             : error_set(error, "cannot read for the question: %s", sqlite3_errmsg(question->db));
}

/* Reads each table once. In the shared-cache mode, another connection may have locked a table. The
** question then fails here, before the charge. Otherwise this connection keeps its own locks on the
** tables until the question ends, because question->begun keeps the transaction open. */
static int lock_tables(const struct question *question, const struct evaluator *evaluator,
                       struct error *error) {
  for (int i = 0; i < evaluator->tables.count; i++) {
    const struct route *route = &evaluator->tables.list[i].route;
    for (int j = 0; j < route->count; j++) {
      char *sql = sqlite3_mprintf("SELECT 1 FROM main.\"%w\" LIMIT 1", route->tables[j].name);
      sqlite3_stmt *row = 0;
      int going = prepare(question->db, sql, 1, &row, error);
      if (going) sqlite3_step(row);
      if (sqlite3_finalize(row) != SQLITE_OK)
        going =
            error_set(error, "cannot read for the question: %s (nothing was charged; try again)",
                      sqlite3_errmsg(question->db));
      if (!going) return 0;
    }
  }
  return 1;
}

/* Checks that the host's connection can read what an evaluator's query names, as it is meant. */
static int check_reading(const struct question *question, const struct evaluator *evaluator,
                         struct error *error) {
  return own_functions_check(question->db, &evaluator->used, error) &&
         lock_tables(question, evaluator, error);
}

/* Makes the streams of the protected tables, whose units must compare alike. */
static int find_streams(struct question *question, struct error *error) {
  const struct evaluator_tables *tables = &question->evaluator->tables;
  question->streams = calloc((size_t)tables->count + 1, sizeof *question->streams);
  if (!question->streams) return error_set_memory(error);
  for (int i = 0; i < tables->count; i++)
    if (is_protected(&tables->list[i]))
      question->streams[question->count++].table = &tables->list[i];
  if (!question->count)
    return error_set(error,
                     "the query names no protected table, so it is about nobody (compute it in a "
                     "plain SELECT)");
  if (question->rows_are_units && question->count > 1)
    return error_set(error,
                     "the ledger protects rows, so a question names exactly one protected table, "
                     "not %d",
                     question->count);
  question->is_by_row =
      question->count == 1 && !question->takes_one && question->evaluator->is_by_row;
  for (int i = 0; i < question->count; i++) {
    const struct route *route = &question->streams[i].table->route;
    if (route->unit < 0) continue;
    const struct table_column *unit = &route->tables[route->count - 1].columns[route->unit];
    if (!question->unit_column) question->unit_column = unit;
    if (!compare_alike(question->unit_column, unit, error)) return 0;
    question->affinity = unit->affinity;
    question->collation = unit->collation;
  }
  return 1;
}

/* The statements on the protected tables leave out values that are too long for one unit's memory.
** Only the limits of a grant need this. They read such values if a function of the application
** replaces length(). */
static void leave_out_long_values(struct question *question) {
  double bytes = question->limits.bytes;
  struct allowed_functions functions;
  if (bytes >= DEFAULT_BYTES || allowed_functions_read(&functions, question->db) != SQLITE_OK ||
      !function_is_allowed(&functions, "length"))
    return;
  evaluator_limit_memory(question->evaluator, bytes);
  question->longest = sqlite3_limit(question->evaluator->db, SQLITE_LIMIT_LENGTH, -1);
}

static int prepare_streams(struct question *question, struct error *error) {
  const struct evaluator_tables *tables = &question->evaluator->tables;
  int going = 1;
  if (!question->is_by_row) evaluator_leave_out_unread(question->evaluator);
  for (int i = 0; i < tables->count && going; i++)
    going = safe_columns_check(question->db, &tables->list[i].route, tables->list[i].used, error);
  for (int i = 0; i < question->count && going; i++)
    going = prepare_stream(question, &question->streams[i], error);
  return going;
}

/* Compiles the statements that the loop over units and must_stop() need beside the streams. The
** comparison of values that are not bound gives NULL. */
static int prepare_helpers(struct question *question, struct error *error) {
  const char *collation = collation_name(question->collation);
  char *compare =
      sqlite3_mprintf("SELECT (?1 < ?2 COLLATE %s) - (?1 > ?2 COLLATE %s)", collation, collation);
  if (!prepare(question->db, compare, 1, &question->compare, error)) return 0;
  if (question->takes_one && sqlite3_step(question->compare) != SQLITE_ROW)
    return reading_failed(question, error);
  if (question->takes_one)
    question->nothing = sqlite3_value_dup(sqlite3_column_value(question->compare, 0));
  if (question->takes_one && !question->nothing) return error_set_memory(error);
  sqlite3_reset(question->compare);
  char *probe = sqlite3_mprintf("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
                                " LIMIT 300) SELECT count(*) FROM n");
  return prepare(ledger_caller(question->ledger), probe, 1, &question->probe, error);
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
  int going = evaluator_open(&question->publics, question->db, &question->policy, sql,
                             question->columns, 0, names, 0, error);
  if (going) evaluator_leave_out_unread(question->publics);
  for (int i = 0; going && i < question->publics->tables.count; i++) {
    const struct evaluator_table *table = &question->publics->tables.list[i];
    if (is_protected(table))
      going = error_set(error,
                        "table '%s' is protected, so it has no public rows (the second SELECT "
                        "names tables that dp_public() declares)",
                        table->route.tables[0].name);
    if (going) going = safe_columns_check(question->db, &table->route, table->used, error);
  }
  return going;
}

/* Sets the number of columns that the question must give. Returns their names, for messages. A
** count of units ignores what the rows give. */
static const char *name_columns(struct question *question, const struct request *request,
                                int *ignores) {
  static const char *const of_series[] = {"period", "period, x", "period, key", "period, key, x"};
  const struct places *places = &request->aggregate->places;
  const char *names;
  question->columns = aggregate_columns(request->aggregate, 0, &names);
  *ignores = !question->columns;
  if (request->cross_keys) {
    question->columns += request->cross_keys->count - 1;
    names = places->value ? "the attributes of keys, x" : "the attributes of keys";
  }
  if (request->periods) {
    question->columns++;
    names = of_series[2 * (places->key > 0) + (places->value > 0)];
  }
  return names;
}

int question_open(struct question **out, struct collector *collector, struct ledger *ledger,
                  const struct request *request, struct error *error) {
  const struct aggregate *aggregate = request->aggregate;
  const struct procedure *procedure = aggregate->procedure;
  int has_publics = procedure && procedure->publics && procedure->publics(request) > 0;
  struct question *question = *out = calloc(1, sizeof *question);
  if (!question) return error_set_memory(error);
  sqlite3 *db = collector->db;
  int ignores;
  const char *names = name_columns(question, request, &ignores), *rest = 0;
  question->collector = collector;
  question->db = db;
  question->ledger = ledger;
  question->rows_are_units = ledger_protects(ledger) == LEDGER_ROWS;
  question->takes_one = !aggregate->family->has_states;
  question->limits =
      (struct question_limits){isnan(request->steps) ? DEFAULT_STEPS : request->steps,
                               isnan(request->bytes) ? DEFAULT_BYTES : request->bytes,
                               isnan(request->seconds) ? (double)INFINITY : request->seconds};
  for (int i = 0; i < LIFTED; i++) question->host_limits[i] = sqlite3_limit(db, lifted[i], INT_MAX);
  if (!read_policy(question)) return 0;
  if (!question->takes_one) question->readers = readers_open(collector);
  if (!begin(question, error) || !own_collations_check(db, error) ||
      !evaluator_open(&question->evaluator, db, &question->policy, request->sql, question->columns,
                      ignores, names, has_publics ? &rest : 0, error) ||
      (rest && !open_publics(question, rest, names, error)) ||
      !check_reading(question, question->evaluator, error) ||
      (question->publics && !check_reading(question, question->publics, error)) ||
      (request->cross_keys && !check_attributes(question, request->cross_keys, error)) ||
      !find_streams(question, error) ||
      (question->policy.wider.name && !open_wider(question, error)))
    return 0;
  if (!question->evaluator->counts_steps && !question->is_by_row)
    return cannot_count(error);
  leave_out_long_values(question);
  return prepare_streams(question, error) && check_count(question, request, error) &&
         prepare_helpers(question, error) && time_limit_open(question, error);
}

void question_close(struct question *question) {
  if (!question) return;
  if (question->time.has_thread) time_limit_end(&question->time);
  readers_close(question->readers);
  for (int i = 0; i < question->count; i++) sqlite3_finalize(question->streams[i].row);
  free(question->streams);
  if (question->policy.wider.name) {
    sqlite3_finalize(question->wider.row);
    route_clear(&question->wider.route);
    households_close(question->wider.households);
  }
  sqlite3_finalize(question->compare); /* the errors of these statements have been reported */
  sqlite3_finalize(question->probe);
  sqlite3_finalize(question->begun);
  sqlite3_value_free(question->nothing);
  sqlite3_value_free(question->now);
  evaluator_close(question->evaluator);
  evaluator_close(question->publics);
  for (int i = 0; i < LIFTED; i++) sqlite3_limit(question->db, lifted[i], question->host_limits[i]);
  ledger_policy_free(&question->policy);
  sqlite3_free(question->unit);
  free(question);
}

/* ---- what is told of it ---------------------------------------------------------------------- */

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
    sqlite3_str_appendf(json, ":\"%s\"", is_protected(table) ? "protected" : "public");
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
  return sqlite3_mprintf("%s %s", affinity_type(question->affinity),
                         collation_name(question->collation));
}

static int is_public(const void *context, const char *name) {
  const struct question *question = context;
  const struct ledger_declaration *declared = ledger_policy_find(&question->policy, name);
  return (declared && declared->role == POLICY_PUBLIC) || sqlite3_stricmp(name, "json_each") == 0 ||
         sqlite3_stricmp(name, "json_tree") == 0;
}

char *question_notice(const struct question *question, const struct aggregate *aggregate) {
  int value = question->columns - 1; /* the last of the columns that the kind reads */
  int takes_numbers = aggregate->places.value && !aggregate->family->has_vector &&
                      !aggregate->rows && (!aggregate->counts || aggregate->family->has_bins);
  sqlite3_stmt *statement = question->evaluator->statement;
  struct notice_terms terms = {question->evaluator->texts,
                               question->rows_are_units ? 0
                               : question->unit         ? question->unit
                                                        : "unit",
                               aggregate,
                               takes_numbers ? sqlite3_column_decltype(statement, value) : 0,
                               is_public,
                               question};
  return notice_words(&terms);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The functions of this part read the values of a row by sqlite3_column_value(), which takes the
** connection's mutex once for each value. The values are protected: the function that asks the
** question runs in a statement of the host, which holds this mutex, or on a private connection,
** which has none. */

/* Steps to the next row of a stream. Passes over rows that belong to nobody: SQLite takes the
** condition IS NOT NULL for true if the column is declared NOT NULL, and an edited schema can
** declare this of a column with NULLs. */
static int advance(const struct question *question, struct stream *stream, struct error *error) {
  int rc, has_unit = is_protected(stream->table) && !question->rows_are_units;
  do rc = sqlite3_step(stream->row);
  while (rc == SQLITE_ROW && has_unit && sqlite3_column_type(stream->row, 0) == SQLITE_NULL);
  stream->has_row = rc == SQLITE_ROW;
  return rc == SQLITE_ROW || rc == SQLITE_DONE || reading_failed(question, error);
}

/* Adds the row of a stream to the rows of its table. */
static int take(const struct stream *stream, struct error *error) {
  struct evaluator_table *table = stream->table;
  int64_t rowid = sqlite3_column_int64(stream->row, 1);
  return unit_rows_add(&table->rows, rowid, stream->row, 2 + stream->is_cut, table->places) ||
         error_set_memory(error);
}

/* Reads all public tables of an evaluator. */
static int load_publics(const struct question *question, struct evaluator *evaluator,
                        struct error *error) {
  int going = 1;
  for (int i = 0; i < evaluator->tables.count && going; i++) {
    struct stream stream = {.table = &evaluator->tables.list[i]};
    if (is_protected(stream.table)) continue;
    going = prepare_stream(question, &stream, error) && advance(question, &stream, error);
    while (going && stream.has_row)
      going = take(&stream, error) && advance(question, &stream, error);
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

/* ---- unit by unit ---------------------------------------------------------------------------- */

/* Makes the unit of a stream's row the current one. An integer is not copied, which saves an
** allocation for each unit. */
static int choose(struct question *question, const struct stream *stream, struct error *error) {
  sqlite3_value_free(question->now);
  question->now = 0;
  if (sqlite3_column_type(stream->row, 0) == SQLITE_INTEGER) {
    question->integer = sqlite3_column_int64(stream->row, 0);
    return 1;
  }
  question->now = sqlite3_value_dup(sqlite3_column_value(stream->row, 0));
  return question->now || error_set_memory(error);
}

/* Compares the current unit with the unit of a stream's row, in the order of the streams. Sets
** *order to 1 if the current unit comes first, 0 if both are equal, and -1 if it comes later. Two
** integers are compared without SQL. */
static int compare(struct question *question, const struct stream *stream, int *order,
                   struct error *error) {
  sqlite3_value *unit = sqlite3_column_value(stream->row, 0);
  sqlite3_stmt *compare = question->compare;
  if (!question->now && sqlite3_value_type(unit) == SQLITE_INTEGER) {
    int64_t a = question->integer, b = sqlite3_value_int64(unit);
    *order = (a < b) - (a > b);
    return 1;
  }
  sqlite3_value *other = sqlite3_value_dup(unit);
  int rc = question->now ? sqlite3_bind_value(compare, 1, question->now)
                         : sqlite3_bind_int64(compare, 1, question->integer);
  int going = other && rc == SQLITE_OK && sqlite3_bind_value(compare, 2, other) == SQLITE_OK &&
              sqlite3_step(compare) == SQLITE_ROW;
  if (going) *order = sqlite3_column_int(compare, 0);
  if (!going) reading_failed(question, error);
  sqlite3_reset(compare); /* the result is ignored: any error has been reported already */
  sqlite3_value_free(other);
  return going;
}

/* Makes the first unit of all streams the current unit. Sets *found to 0 if no stream has a row
** left. */
static int find_unit(struct question *question, int *found, struct error *error) {
  int going = 1;
  *found = 0;
  for (int i = 0; i < question->count && going; i++) {
    const struct stream *stream = &question->streams[i];
    int order = -1;
    if (!stream->has_row) continue;
    if (*found) going = compare(question, stream, &order, error);
    if (going && order < 0) going = choose(question, stream, error);
    *found = 1;
  }
  return going;
}

static void clear_rows(const struct question *question) {
  for (int i = 0; i < question->count; i++) unit_rows_clear(&question->streams[i].table->rows);
}

/* Moves the rows of the current unit from the streams to the evaluator's tables. Sets *count to
** their number. If the rows exceed the memory of one unit's evaluation, sets *is_full to 1 and
** keeps none of them. */
static int gather(struct question *question, double *count, int *is_full, struct error *error) {
  int going = 1;
  *count = 0;
  *is_full = 0;
  clear_rows(question);
  for (int i = 0; i < question->count && going; i++) {
    struct stream *stream = &question->streams[i];
    int order = 0;
    while (going && stream->has_row && order == 0) {
      if (!question->rows_are_units) going = compare(question, stream, &order, error);
      if (!going || order != 0) break;
      if (!*is_full) going = take(stream, error);
      int is_long = stream->is_cut && sqlite3_column_int(stream->row, 2);
      if (!*is_full && (is_long || evaluator_is_full(question->evaluator))) {
        *is_full = 1;
        clear_rows(question);
      }
      *count += 1;
      if (going) going = advance(question, stream, error);
      if (question->rows_are_units) break;
    }
  }
  return going;
}

/* Adds the results of the current unit. Models and local randomisations take exactly one row: the
** first result, or NULLs if there is none. A question without columns counts a unit once. */
static int deliver(const struct question *question, struct error *error) {
  struct rows *rows = question->rows;
  sqlite3_value *nothing[3] = {question->nothing, question->nothing, question->nothing};
  size_t results = question->evaluator->count;
  size_t count = question->takes_one || (results && !question->columns) ? 1 : results;
  int added = 1;
  if (!question->now) {
    rows->given = identity_integer(question->rows_are_units ? question->number : question->integer);
  } else if (count) {
    added = rows_give_unit(rows, question->now, question->collation);
  }
  for (size_t i = 0; i < count && added; i++)
    added = rows->add(rows, !results            ? nothing
                            : question->columns ? evaluator_row(question->evaluator, i)
                                                : 0);
  return added || error_set_memory(error);
}

/* Evaluates the question for all units of the streams. A unit whose evaluation fails alone
** (EVALUATION_DROPPED), or that has too many rows, has no results. */
static int run_by_unit(struct question *question, struct error *error) {
  struct evaluator *evaluator = question->evaluator;
  int going = 1;
  for (int i = 0; i < question->count && going; i++)
    going = advance(question, &question->streams[i], error);
  while (going) {
    int found = question->streams[0].has_row, is_full;
    double count;
    if (!question->rows_are_units) going = find_unit(question, &found, error);
    if (!going || !found) break;
    question->number++;
    if (!gather(question, &count, &is_full, error)) return 0;
    if (is_full) {
      evaluator_skip(evaluator);
    } else if (evaluator_run(evaluator, question->limits.steps * (1 + count),
                             question->columns > 0) == EVALUATION_FAILED) {
      return query_failed(error_text(&evaluator->error), error);
    }
    going = deliver(question, error);
  }
  return going;
}

/* ---- all units at once ----------------------------------------------------------------------- */

/* Returns an upper bound on the rows in a join of one protected row with all public tables. */
static double rows_joined(const struct question *question) {
  double product = 1;
  for (int i = 0; i < question->evaluator->tables.count; i++) {
    const struct evaluator_table *table = &question->evaluator->tables.list[i];
    if (!is_protected(table)) product *= 1 + (double)table->rows.count;
  }
  return product;
}

/* Evaluates the question for all units at once, on the host's connection and the connections of
** further threads. Sets *done to 0 if the units must be evaluated one by one after all. */
static int run_at_once(struct question *question, const struct rows_opener *opener, int *done,
                       struct error *error) {
  struct readers *readers = opener->may_repeat ? question->readers : 0;
  enum evaluation end =
      row_loop_run(question->collector, question->evaluator, question->streams[0].table,
                   question->columns, readers, opener, question->rows, error);
  readers_close(question->readers); /* the readers are used only once */
  question->readers = 0;
  *done = end == EVALUATION_DONE;
  return end != EVALUATION_FAILED;
}

/* Adds the public rows. They come after those of the question, in the order of their query. */
static int add_publics(struct question *question, struct error *error) {
  struct evaluator *publics = question->publics;
  struct rows *rows = question->rows;
  if (!rows->aggregate->rows->turn(rows, question->ledger, error) ||
      !load_publics(question, publics, error))
    return 0;
  publics->is_interrupted = must_stop;
  publics->context = question;
  evaluator_limit_memory(publics, HUGE_VAL);
  enum evaluation end = evaluator_run(publics, HUGE_VAL, 1);
  if (end != EVALUATION_DONE)
    return error_set(error, "the query of the public rows failed: %s",
                     end == EVALUATION_FAILED ? error_text(&publics->error)
                                              : sqlite3_errmsg(publics->db));
  int going = 1;
  for (size_t i = 0; i < publics->count && going; i++)
    going = rows->add(rows, evaluator_row(publics, i)) || error_set_memory(error);
  return going;
}

/* Opens empty rows, and reads the wider units for them: identities depend on the rows' secret. */
static int open_rows(struct question *question, const struct rows_opener *opener,
                     struct error *error) {
  return opener->open(opener->context, question->rows, 0, error) &&
         (!question->policy.wider.name || read_wider(question, question->rows, error));
}

static int run_all(struct question *question, const struct rows_opener *opener,
                   struct error *error) {
  struct evaluator *evaluator = question->evaluator;
  int done = 0;
  if (!open_rows(question, opener, error) || !load_publics(question, evaluator, error)) return 0;
  evaluator->is_interrupted = must_stop;
  evaluator->context = question;
  /* All units are evaluated at once if this gives the same results as each unit by itself, and if
  ** no unit can reach the limit of steps. A SQLite that cannot count steps has no such limit. */
  if (question->is_by_row &&
      (!evaluator->counts_steps ||
       evaluator_instructions(evaluator) * rows_joined(question) <= question->limits.steps)) {
    if (!run_at_once(question, opener, &done, error)) return 0;
    if (done) return 1;
    rows_close(question->rows);
    if (!open_rows(question, opener, error)) return 0;
  }
  if (!evaluator->counts_steps) return cannot_count(error);
  return run_by_unit(question, error) && (!question->publics || add_publics(question, error));
}

/* The time limit interrupts the host's connection and the evaluator's. Further connections end with
** the host's (S5 in row_loop.c). */
int question_run(struct question *question, const struct rows_opener *opener, struct rows *rows,
                 struct error *error) {
  const struct question_limits *limits = &question->limits;
  question->rows = rows;
  evaluator_limit_memory(question->evaluator, limits->bytes);
  /* Such a question makes no value that is longer than those of its rows. */
  if (question->is_by_row) sqlite3_limit(question->evaluator->db, SQLITE_LIMIT_LENGTH, INT_MAX);
  if (question->time.has_thread)
    atomic_store(&question->time.end, clock_milliseconds() + (int64_t)(limits->seconds * 1000));
  int done = run_all(question, opener, error);
  if (question->time.has_thread && time_limit_end(&question->time)) {
    error_clear(error);
    done = error_set(error, "the question took longer than its limit of %g seconds",
                     limits->seconds);
  }
  if (!done) error_add(error, opener->after);
  return done;
}
