/* row_loop.c: evaluates a question for all units at once, in one statement on the host's connection
** and, if PRAGMA threads allows, on further connections to the same file.
**
** For each table of the question, the statement puts a common table expression with the name of the
** table before the text of the question. The expression for the protected table has one column more
** than the table: the unit, or the link that leads to it. The statement adds this column to the
** columns of the question and passes the rows to dp_collect().
**
**   D1  By its text, every result of the question depends on one row of one protected table and on
**       public rows, and no row can make it fail (question_text.c). The added column has a name
**       that nothing else has, so it is the unit of that row.
**   D2  The question has the same meaning on the host's connection. Its text can only name the
**       common table expressions: the evaluator has compiled the text on a connection whose only
**       tables are those of the question. The functions and collations of the host are SQLite's own
**       (question.c checks this), and no authorizer has replaced a column with NULL.
**   D3  If D1 or D2 cannot be shown, or if the statement fails for a reason that a row can cause,
**       the question is evaluated by the evaluator. The result is the same.
**   D4  Several connections may read ranges of rowids of the protected table. The expression for it
**       then gives the rows of the range. By D1, each row of dp_collect() comes from one row of
**       this table, so the ranges together give the same rows as the whole table.
**
** The connections take one range after the other. The host's has the caller's thread:
**
**   S1  Every row of the query comes from exactly one range (D4).
**   S2  All connections see one state of one file. The host has no transaction when the further
**       connections are opened. Each of them reads PRAGMA data_version before the host begins to
**       read, and again afterwards in its own transaction. Equal versions show that nobody has
**       committed in between. The host itself must have changed nothing since. The readers also
**       check that the file has not been moved. The further connections cannot write.
**   S3  A row gives the same result on every connection: the text is the same, the functions and
**       collations are SQLite's own, and the settings that affect values are the host's.
**   S4  If S1, S2 or S3 cannot be shown, the statement runs on the host's connection alone. The
**       published values are the same in both cases, because sums are exact integers in any order.
**   S5  An interrupt or the progress handler of the host ends the tasks on every connection. (While
**       sums are added up, the host's thread looks only after its own share.)
**   S6  No thread uses the connection of another thread, except that the host's thread may
**       interrupt it.
**
** Tests: tests/query/test_direct_questions.py, tests/query/test_three_ways.py,
** tests/query/test_question_threads.py */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/own_connection.h"
#include "base/sql_text.h"
#include "os/os.h"
#include "query/internal.h"

SQLITE_EXTENSION_INIT3

struct row_loop {
  struct collector *collector; /* of the host's connection */
  struct evaluator *evaluator;
  const struct evaluator_table *table; /* the question's protected table */
  const struct rows_opener *opener;
  const struct households *households;
  int columns; /* the number of columns of the question that the rows need */
  char *unit;  /* the name of the added column */
  sqlite3_stmt *statement;
  char *range; /* the text of the statement on a range of rowids; null: only for one thread */
  struct unit_map map;
};

/* ---- the text -------------------------------------------------------------------------------- */

/* Returns the column with the unit or the link to the unit, or -1 if each row is a unit. */
static int column_of_unit(const struct route *route) {
  return route->count > 1 ? route->links[0] : route->unit;
}

/* Returns whether a name occurs in the text of the question or among the columns of its tables. */
static int is_taken(const char *name, const struct evaluator *evaluator) {
  int taken = has_word(name, evaluator->sql);
  for (int i = 0; i < evaluator->tables.count && !taken; i++)
    taken = table_column_find(&evaluator->tables.list[i].route.tables[0], name) >= 0;
  return taken;
}

/* Appends the common table expressions. A rowid that the question names is a column there. If
** `range` is 1, the expression for the protected table gives only the rows whose rowids are from ?1
** to ?2. */
static void append_tables(sqlite3_str *sql, const struct row_loop *loop, int range) {
  const struct evaluator *evaluator = loop->evaluator;
  for (int i = 0; i < evaluator->tables.count; i++) {
    const struct evaluator_table *each = &evaluator->tables.list[i];
    const struct table_facts *facts = &each->route.tables[0];
    int own = each == loop->table, column = column_of_unit(&each->route);
    sqlite3_str_appendf(sql, "%s\"%w\" AS (SELECT *", i ? ", " : "WITH ", facts->name);
    for (int j = 0; j < ROWID_NAMES && facts->rowid; j++)
      if (evaluator->rows.rowids[j] && table_column_find(facts, rowid_names[j]) < 0)
        sqlite3_str_appendf(sql, ", %s AS %s", facts->rowid, rowid_names[j]);
    if (own && column < 0) sqlite3_str_appendf(sql, ", 0 AS %s", loop->unit);
    if (own && column >= 0)
      sqlite3_str_appendf(sql, ", \"%w\" AS %s", facts->columns[column].name, loop->unit);
    sqlite3_str_appendf(sql, " FROM main.\"%w\"%s", facts->name, own ? " NOT INDEXED" : "");
    if (own && range) sqlite3_str_appendf(sql, " WHERE %s BETWEEN ?1 AND ?2", facts->rowid);
    sqlite3_str_appendall(sql, ")");
  }
}

/* Appends names for the columns of the question and of the unit, such as "c0, c1, c2". */
static void append_names(sqlite3_str *sql, int count) {
  for (int i = 0; i < count; i++) sqlite3_str_appendf(sql, "%sc%d", i ? ", " : "", i);
}

/* Returns the statement, on a range if `range` is 1, or null when out of memory. */
static char *statement_of(const struct row_loop *loop, int range) {
  const struct evaluator *evaluator = loop->evaluator;
  sqlite3_str *sql = sqlite3_str_new(0);
  int from = evaluator->rows.from;
  append_tables(sql, loop, range);
  sqlite3_str_appendf(sql, ", %s_rows(", loop->unit);
  append_names(sql, loop->columns + 1);
  sqlite3_str_appendall(sql, ") AS (");
  if (loop->columns) {
    sqlite3_str_append(sql, evaluator->sql, from);
  } else {
    sqlite3_str_appendall(sql, "SELECT ");
  }
  sqlite3_str_appendf(sql, "%s%s ", loop->columns ? ", " : "", loop->unit);
  sqlite3_str_append(sql, evaluator->sql + from, evaluator->length - from);
  sqlite3_str_appendall(sql, "\n) SELECT dp_collect("); /* a line break ends a comment */
  append_names(sql, loop->columns + 1);
  sqlite3_str_appendf(sql, ") FROM %s_rows", loop->unit);
  return sqlite3_str_finish(sql);
}

/* ---- checks (D2) ----------------------------------------------------------------------------- */

/* Returns whether no authorizer hides a column of a common table expression that the question
** reads. */
static int columns_are_shown(const struct row_loop *loop, sqlite3 *db) {
  int shown = 1;
  for (int i = 0; i < loop->evaluator->tables.count && shown; i++) {
    const struct evaluator_table *table = &loop->evaluator->tables.list[i];
    const struct table_facts *facts = &table->route.tables[0];
    int unit = table == loop->table ? column_of_unit(&table->route) : -1;
    char *with = sqlite3_mprintf("WITH \"%w\" AS (SELECT *, NULL AS %s FROM main.\"%w\")",
                                 facts->name, loop->unit, facts->name);
    char *nothing = sqlite3_mprintf("%s SELECT %s FROM \"%w\"", with, loop->unit, facts->name);
    for (int j = 0; j < facts->count && shown; j++) {
      if (!table->used[j] && j != unit) continue;
      char *select = sqlite3_mprintf("%s SELECT \"%w\" FROM \"%w\"", with, facts->columns[j].name,
                                     facts->name);
      shown = with && nothing && select && column_is_shown(db, select, nothing);
      sqlite3_free(select);
    }
    sqlite3_free(nothing);
    sqlite3_free(with);
  }
  return shown;
}

/* Returns whether a column has the collation RTRIM, under which SQLite 3.40 loses rows of a
** join. */
static int has_rtrim(const struct evaluator *evaluator) {
  int found = 0;
  for (int i = 0; i < evaluator->tables.count; i++) {
    const struct evaluator_table *table = &evaluator->tables.list[i];
    const struct table_facts *facts = &table->route.tables[0];
    for (int j = 0; j < facts->count; j++)
      found |= table->used[j] && facts->columns[j].collation == COLLATION_RTRIM;
  }
  return found;
}

/* Returns whether a further connection gives the same results as the host's connection. An
** extension that is loaded for every connection may have replaced something there. */
static int is_same_beside(const struct row_loop *loop, sqlite3 *db) {
  struct error error = {0};
  int same = own_functions_check(db, &loop->evaluator->used, &error) &&
             own_collations_check(db, &error) && columns_are_shown(loop, db);
  error_clear(&error); /* the host reads alone */
  return same;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Makes rows->add() find the units of the rows with a map. */
static void use_map(const struct row_loop *loop, struct unit_map *map, struct rows *rows) {
  rows->columns.unit = loop->columns;
  unit_map_use(map, rows);
}

/* Opens the rows of a further connection, on its thread, so that threads do not share the memory of
** their sums. */
static int open_beside(const struct row_loop *loop, struct rows *rows, const struct secret *secret,
                       struct unit_map *map, struct error *error) {
  if (!loop->opener->open(loop->opener->context, rows, secret, error) ||
      !unit_map_open(map, 0, &loop->table->route, error))
    return 0;
  rows_use_households(rows, loop->households);
  use_map(loop, map, rows);
  return 1;
}

/* Runs a statement that passes its rows to `rows`. Returns SQLITE_DONE, or a code with an error. */
static int run(const struct row_loop *loop, struct collector *collector, sqlite3_stmt *statement,
               struct rows *rows, struct error *error) {
  struct collection collection = {.rows = rows, .columns = loop->columns + 1};
  int rc = collector_run(collector, statement, &collection);
  if (rc != SQLITE_DONE)
    error_set(error, "the query failed: %s",
              loop->map.rc != SQLITE_OK ? sqlite3_errstr(loop->map.rc)
                                        : sqlite3_errmsg(collector->db));
  return rc;
}

/* ---- connections and threads ----------------------------------------------------------------- */

#define MOST_RANGES 256   /* with so many, no thread waits long for the last one */
#define LEAST_RANGE 16384 /* the least number of rowids in a range that is worth a thread's time */
#define WAIT        200   /* microseconds between two checks of the other threads */
#define ASKED       32    /* runs of the host's statement (about 10 instructions) in each check */

/* The number of bytes between the data of two threads, so that no cache line has data of both. */
#define CACHE_LINES 128

/* The ranges together hold all integers, and each integer is in one of them. */
struct ranges {
  unsigned count;
  int64_t starts[MOST_RANGES]; /* the first rowid of each range, in order */
};

/* A connection, its thread, and its rows. */
struct reader {
  struct readers *readers;
  int number;                  /* 0: the host's connection */
  struct collector *collector; /* the connection */
  sqlite3_stmt *statement;     /* reads a range */
  struct rows *rows;           /* takes the sums */
  struct rows own_rows;        /* of a further connection */
  struct unit_map map;         /* of own_rows */
  int64_t version;             /* the data_version before the host began to read */
  struct thread thread;
  int has_thread;
  char apart[CACHE_LINES];
};

/* Does one task on the thread of a reader. Returns SQLITE_DONE, or a code with the error set. */
typedef int do_task(void *context, struct reader *reader, unsigned task, struct error *error);

struct readers {
  struct collector *collector; /* of the host's connection */
  const struct row_loop *loop;
  const struct secret *secret; /* of the rows of all connections */
  struct ranges ranges;
  int count; /* the number of readers */
  struct reader *list;
  do_task *task; /* what the threads do now */
  void *context;
  unsigned tasks;     /* how many */
  atomic_uint next;   /* the next task that a thread takes */
  atomic_int stopped; /* set after an error */
  atomic_int running; /* the number of running threads besides the host's thread */
  int rc;             /* the result code of the first error that occurred */
  struct error error; /* the first error that occurred */
};

/* ---- ranges of rowids (S1) ------------------------------------------------------------------- */

/* A part of the table, from its first to its last row. */
struct part {
  int64_t first, last;
};

/* Returns the difference between the last and the first rowid of a part. */
static uint64_t span_of(const struct part *part) {
  return (uint64_t)part->last - (uint64_t)part->first;
}

/* Prepares a statement that finds the row nearest to ?1, which may be that row itself. `compare` is
** an operator, and `order` ends ORDER BY. Returns null if the statement does not compile. */
static sqlite3_stmt *prepare_seek(const struct row_loop *loop, const char *compare,
                                  const char *order) {
  const struct table_facts *facts = &loop->table->route.tables[0];
  sqlite3_stmt *statement = 0;
  sqlite3 *db = loop->collector->db;
  char *sql =
      sqlite3_mprintf("SELECT %s FROM main.\"%w\" WHERE %s %s ?1 ORDER BY %s%s LIMIT 1",
                      facts->rowid, facts->name, facts->rowid, compare, facts->rowid, order);
  if (sql && sqlite3_prepare_v2(db, sql, -1, &statement, 0) != SQLITE_OK) interrupt_pass_on(db);
  sqlite3_free(sql);
  return statement;
}

/* Finds the row nearest to a rowid. Returns 0 if there is none, or after an error. */
static int seek(sqlite3_stmt *statement, int64_t from, int64_t *rowid) {
  sqlite3_bind_int64(statement, 1, from);
  int found =
      sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_type(statement, 0) == SQLITE_INTEGER;
  if (found) *rowid = sqlite3_column_int64(statement, 0);
  if (sqlite3_reset(statement) != SQLITE_OK) interrupt_pass_on(sqlite3_db_handle(statement));
  return found;
}

/* Divides a part of the table into at most MOST_RANGES parts. Halves the widest part again and
** again, if it has at least 2 * LEAST_RANGE rowids. Each half begins and ends at a row, so a wide
** gap between rows costs one of the parts, and rows that are close together are divided even if
** others are far away. Returns the number of parts. */
static unsigned halve(struct part *parts, sqlite3_stmt *before, sqlite3_stmt *after) {
  unsigned count = 1;
  while (count < MOST_RANGES) {
    struct part *widest = parts;
    for (struct part *part = parts; part < parts + count; part++)
      if (span_of(part) > span_of(widest)) widest = part;
    struct part lower = *widest, upper = *widest;
    if (span_of(widest) < 2 * (uint64_t)LEAST_RANGE) break;
    int64_t middle = (int64_t)((uint64_t)widest->first + span_of(widest) / 2 + 1);
    if (!seek(before, middle - 1, &lower.last) || !seek(after, middle, &upper.first) ||
        lower.last >= middle || upper.first < middle)
      break;
    *widest = lower;
    parts[count++] = upper;
  }
  return count;
}

static int by_first(const void *a, const void *b) {
  const struct part *p = a, *q = b;
  return (p->first > q->first) - (p->first < q->first);
}

/* Divides a table of main. The first row of each range is in the table. Returns 0 if the table is
** too small for two ranges of LEAST_RANGE rowids, or after an error. */
static int ranges_find(struct ranges *ranges, const struct row_loop *loop) {
  sqlite3_stmt *before = prepare_seek(loop, "<=", " DESC"), *after = prepare_seek(loop, ">=", "");
  struct part parts[MOST_RANGES];
  ranges->count = 0;
  if (before && after && seek(after, INT64_MIN, &parts->first) &&
      seek(before, INT64_MAX, &parts->last) && parts->first <= parts->last)
    ranges->count = halve(parts, before, after);
  sqlite3_finalize(before);
  sqlite3_finalize(after);
  qsort(parts, ranges->count, sizeof *parts, by_first);
  for (unsigned i = 0; i < ranges->count; i++) ranges->starts[i] = parts[i].first;
  return ranges->count >= 2;
}

/* ---- connections (S2) ------------------------------------------------------------------------ */

static int has_moved(sqlite3 *db) {
  int moved = 0;
  if (!FILE_CAN_MOVE) return 0;
  return sqlite3_file_control(db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK || moved;
}

/* Returns the integer that a PRAGMA shows, or -1. */
static int64_t pragma(sqlite3 *db, const char *sql) {
  sqlite3_stmt *row = 0;
  int64_t shown = -1;
  if (sqlite3_prepare_v2(db, sql, -1, &row, 0) == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW)
    shown = sqlite3_column_int64(row, 0);
  sqlite3_finalize(row);
  if (shown < 0) interrupt_pass_on(db);
  return shown;
}

/* Returns the version of the database, or -1. It changes when another connection commits. */
static int64_t version(sqlite3 *db) {
  return pragma(db, "PRAGMA data_version");
}

/* Returns whether the host reads a file that another connection can read in the same way. */
static int is_shared(sqlite3 *db) {
  const char *path = sqlite3_db_filename(db, "main"), *key;
  for (int i = 0; path && (key = sqlite3_uri_key(path, i)) != 0; i++) {
    /* URI parameters such as nolock or immutable change how a connection reads the file. */
    if (strcmp(key, "mode") != 0 && strcmp(key, "cache") != 0) return 0;
  }
  return path && *path && sqlite3_txn_state(db, "main") == SQLITE_TXN_NONE;
}

/* SQLITE_DBCONFIG_FP_DIGITS of new SQLite versions: how many digits the text of a real has */
#define FP_DIGITS 1023

/* Opens the host's file for reading on a further connection, with the settings of the host that
** affect the values of rows, before the host begins to read. The connection does not hold a lock
** while the host waits for a writer, so it cannot block this writer. Fails if the connection has no
** mutex, because SQLite is then configured for one thread only. */
static int open_reader(struct readers *readers, int number) {
  struct reader *reader = &readers->list[number];
  struct error error = {0};
  sqlite3 *host = readers->collector->db, *db = 0;
  int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_FULLMUTEX, digits = 0;
  *reader = (struct reader){.readers = readers, .number = number, .rows = &reader->own_rows};
  if (own_connection_again(&db, host, flags, &error)) reader->collector = private_collector_new(db);
  error_clear(&error); /* the host reads alone */
  if (!reader->collector || !sqlite3_db_mutex(db)) return 0;
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, sqlite3_limit(host, SQLITE_LIMIT_LENGTH, -1));
  if (sqlite3_db_config(host, FP_DIGITS, 0, &digits) == SQLITE_OK)
    sqlite3_db_config(db, FP_DIGITS, digits, (int *)0);
  reader->version = version(db);
  return reader->version >= 0;
}

void readers_close(struct readers *readers) {
  if (!readers) return;
  for (int i = 0; i < readers->count; i++) {
    struct reader *reader = &readers->list[i];
    sqlite3_finalize(reader->statement); /* its errors have been reported */
    unit_map_close(&reader->map);
    if (i > 0) rows_close(&reader->own_rows);
    if (i > 0) private_collector_close(reader->collector);
  }
  free(readers->list);
  free(readers);
}

struct readers *readers_open(struct collector *collector) {
  int others = sqlite3_limit(collector->db, SQLITE_LIMIT_WORKER_THREADS, -1);
  if (others < 1 || !sqlite3_threadsafe() || !is_shared(collector->db) ||
      pragma(collector->db, "PRAGMA read_uncommitted") != 0) /* no other connection sees those */
    return 0;
  struct readers *readers = calloc(1, sizeof *readers);
  if (readers) readers->list = calloc((size_t)others + 1, sizeof *readers->list);
  if (!readers || !readers->list) {
    free(readers);
    return 0;
  }
  readers->collector = collector;
  readers->list[0] = (struct reader){.readers = readers, .collector = collector};
  int going = 1;
  for (readers->count = 1; readers->count <= others && going; readers->count++)
    going = open_reader(readers, readers->count);
  if (going) return readers;
  readers_close(readers);
  return 0;
}

/* Compiles the statement of a connection, on the host's thread. */
static int prepare(struct reader *reader) {
  const struct row_loop *loop = reader->readers->loop;
  sqlite3 *db = reader->collector->db;
  int prepared = (reader->number == 0 || is_same_beside(loop, db)) &&
                 sqlite3_prepare_v2(db, loop->range, -1, &reader->statement, 0) == SQLITE_OK;
  if (!prepared) interrupt_pass_on(db);
  return prepared;
}

/* Completes a further connection after the host has begun to read. Returns 1 if the connection may
** read. */
static int settle(struct reader *reader) {
  sqlite3 *db = reader->collector->db;
  return sqlite3_exec(db, "BEGIN", 0, 0, 0) == SQLITE_OK && version(db) == reader->version &&
         !has_moved(db) && prepare(reader);
}

/* Prepares all connections. Returns 1, or 0 if the host must read alone. */
static int settle_all(struct readers *readers) {
  sqlite3 *db = readers->collector->db;
  int settled = prepare(&readers->list[0]);
  for (int i = 1; i < readers->count && settled; i++) settled = settle(&readers->list[i]);
  return settled && sqlite3_txn_state(db, "main") == SQLITE_TXN_READ && !has_moved(db);
}

/* ---- tasks ----------------------------------------------------------------------------------- */

/* Keeps the error if it is the first one, and stops all threads. */
static void stop(struct readers *readers, int rc, struct error *error) {
  if (atomic_exchange(&readers->stopped, 1)) {
    error_clear(error);
  } else {
    readers->rc = rc;
    readers->error = error_take(error);
  }
}

/* Returns SQLITE_DONE, or an error if something was not done for want of memory. */
static int ended(int done, struct error *error) {
  if (!done) error_set_memory(error);
  return done ? SQLITE_DONE : SQLITE_NOMEM;
}

static void stop_for_memory(struct readers *readers) {
  struct error error = {0};
  int rc = ended(0, &error);
  stop(readers, rc, &error);
}

/* Takes and does tasks until no task is left. */
static void do_tasks(struct reader *reader) {
  struct readers *readers = reader->readers;
  unsigned number;
  while (!atomic_load(&readers->stopped) &&
         (number = atomic_fetch_add(&readers->next, 1)) < readers->tasks) {
    struct error error = {0};
    int rc = readers->task(readers->context, reader, number, &error);
    if (rc != SQLITE_DONE) stop(readers, rc, &error);
  }
}

/* The function of a thread. */
static void run_beside(void *pointer) {
  struct reader *reader = pointer;
  struct readers *readers = reader->readers;
  struct error error = {0};
  if (!reader->rows->add &&
      !open_beside(readers->loop, reader->rows, readers->secret, &reader->map, &error))
    stop(readers, SQLITE_NOMEM, &error);
  do_tasks(reader);
  atomic_fetch_sub(&readers->running, 1);
}

/* Starts the threads. If a thread does not start, the other threads do its tasks. */
static void start_threads(struct readers *readers) {
  for (int i = 1; i < readers->count; i++) {
    struct reader *reader = &readers->list[i];
    atomic_fetch_add(&readers->running, 1);
    reader->has_thread = thread_start(&reader->thread, run_beside, reader);
    if (!reader->has_thread) atomic_fetch_sub(&readers->running, 1);
  }
}

/* Reads the rows of a range of rowids. */
static int read_rows(const struct reader *reader, int64_t from, int64_t to, struct error *error) {
  sqlite3_bind_int64(reader->statement, 1, from);
  sqlite3_bind_int64(reader->statement, 2, to);
  int rc = run(reader->readers->loop, reader->collector, reader->statement, reader->rows, error);
  sqlite3_reset(reader->statement); /* the error has been reported */
  return rc;
}

/* The outermost ranges have no end. */
static int read_range(void *context, struct reader *reader, unsigned range, struct error *error) {
  const struct ranges *ranges = context;
  int is_last = range + 1 == ranges->count;
  return read_rows(reader, range ? ranges->starts[range] : INT64_MIN,
                   is_last ? INT64_MAX : ranges->starts[range + 1] - 1, error);
}

/* Waits for the other threads. Meanwhile runs the host's statement on an empty range from time to
** time, so that SQLite checks the host's interrupt and progress handler (S5). */
static void await_threads(struct readers *readers) {
  while (atomic_load(&readers->running)) {
    struct error error = {0};
    int rc = SQLITE_DONE;
    clock_sleep(WAIT);
    for (int i = 0; i < ASKED && rc == SQLITE_DONE && !atomic_load(&readers->stopped); i++)
      rc = read_rows(&readers->list[0], INT64_MAX, INT64_MIN, &error);
    if (rc != SQLITE_DONE) stop(readers, rc, &error);
    /* SQLite ignores an interrupt that arrives between two statements, so repeat the interrupt. */
    for (int i = 1; i < readers->count && atomic_load(&readers->stopped); i++)
      sqlite3_interrupt(readers->list[i].collector->db);
  }
}

/* Does tasks on all threads, and waits for their end. Returns 0 after an error. Between two calls
** of this function, only the host's thread runs. */
static int do_all(struct readers *readers, do_task *task, void *context, unsigned tasks) {
  readers->task = task;
  readers->context = context;
  readers->tasks = tasks;
  atomic_store(&readers->next, 0);
  if (tasks > 1) start_threads(readers);
  do_tasks(&readers->list[0]);
  await_threads(readers);
  for (int i = 1; i < readers->count; i++) {
    if (readers->list[i].has_thread) thread_join(&readers->list[i].thread);
    readers->list[i].has_thread = 0;
  }
  return !atomic_load(&readers->stopped);
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* The tasks below have the parts of the sums as their context. */
static int prepare_sums(void *context, struct reader *reader, unsigned number,
                        struct error *error) {
  (void)reader;
  return ended(vector_parts_prepare(context, (int)number), error);
}

static int add_part(void *context, struct reader *reader, unsigned part, struct error *error) {
  return ended(vector_parts_add(context, reader->number, part), error);
}

/* Adds up the sums of all connections on all threads. Returns 1, or 0 if this has to be done on one
** thread, or after an error. */
static int add_in_parts(struct readers *readers, struct rows *const *list) {
  struct vector_parts *parts = rows_parts(list, readers->count);
  unsigned count = 0;
  int added = 0;
  if (!parts) return 0;
  if (do_all(readers, prepare_sums, parts, (unsigned)readers->count)) {
    if (!vector_parts_find(parts, &count)) {
      stop_for_memory(readers);
    } else if (count && do_all(readers, add_part, parts, count)) {
      added = vector_parts_end(parts);
    }
  }
  vector_parts_close(parts);
  return added;
}

/* Adds the sums of all connections to those of the host's. */
static void add_sums(struct readers *readers) {
  struct rows **list = malloc(sizeof(struct rows *) * (size_t)readers->count);
  int open = list != 0;
  for (int i = 0; i < readers->count && open; i++) {
    list[i] = readers->list[i].rows;
    open = list[i]->add != 0; /* a thread may not have started */
  }
  int added = open && add_in_parts(readers, list);
  free(list);
  for (int i = 1; i < readers->count && !added && !atomic_load(&readers->stopped); i++) {
    struct rows *own = &readers->list[i].own_rows;
    if (own->add && !rows_join(readers->list[0].rows, own)) stop_for_memory(readers);
  }
}

/* Reads all rows, and adds their sums to `rows`; on all threads, if the sums are vectors by unit
** (sums/sums.h). Sets *rc to SQLITE_DONE, or to the result code of the first error, with the
** error set. Returns 1, or 0 if the host must read alone (S4). */
static int read_beside(struct readers *readers, const struct row_loop *loop, struct rows *rows,
                       int *rc, struct error *error) {
  readers->loop = loop;
  readers->secret = rows->secret;
  readers->list[0].rows = rows;
  if (!ranges_find(&readers->ranges, loop) || !settle_all(readers)) return 0;
  if (do_all(readers, read_range, &readers->ranges, readers->ranges.count)) add_sums(readers);
  *rc = SQLITE_DONE;
  if (!atomic_load(&readers->stopped)) return 1;
  error_restore(error, readers->error);
  *rc = readers->rc;
  return 1;
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Compiles the statement. Returns 1, or 0 if it cannot be used (D3). */
static int prepare_loop(struct row_loop *loop, int has_readers) {
  const struct evaluator *evaluator = loop->evaluator;
  struct error error = {0};
  sqlite3 *db = loop->collector->db;
  int joins = evaluator->rows.sources > 1;
  if (!evaluator->is_utf8 || (loop->columns && evaluator->rows.has_star) ||
      (joins && has_rtrim(evaluator)))
    return 0;
  /* If each row is a unit, the map numbers the results, but a join can give a row several. */
  if (joins && column_of_unit(&loop->table->route) < 0) return 0;
  loop->unit = sqlite3_mprintf("dp_unit");
  while (loop->unit && is_taken(loop->unit, evaluator))
    loop->unit = sqlite3_mprintf("%z_", loop->unit);
  char *sql = loop->unit && columns_are_shown(loop, db) ? statement_of(loop, 0) : 0;
  int open = sql && sqlite3_prepare_v2(db, sql, -1, &loop->statement, 0) == SQLITE_OK &&
             unit_map_open(&loop->map, db, &loop->table->route, &error);
  if (!open) interrupt_pass_on(db);
  error_clear(&error); /* the evaluator reports this error, too, or needs no map */
  sqlite3_free(sql);
  if (open && has_readers && loop->table->route.tables[0].rowid)
    loop->range = statement_of(loop, 1);
  return open;
}

static enum evaluation end_of(int rc, struct error *error) {
  switch (rc & 0xff) {
  case SQLITE_DONE: return EVALUATION_DONE;
  case SQLITE_OK: /* an authorizer left out dp_collect() */
  case SQLITE_ERROR:
  case SQLITE_TOOBIG:
  case SQLITE_MISMATCH:
  case SQLITE_CONSTRAINT: error_clear(error); return EVALUATION_DROPPED;
  default: return EVALUATION_FAILED;
  }
}

/* Several threads may read the rows, but not those of a table with links: each thread would read
** all parents, which takes as long as the threads save. If the map numbers the rows as units, only
** one thread may read them. */
enum evaluation row_loop_run(struct collector *collector, struct evaluator *evaluator,
                             const struct evaluator_table *table, int columns,
                             struct readers *readers, const struct rows_opener *opener,
                             struct rows *rows, struct error *error) {
  struct row_loop loop = {.collector = collector,
                          .evaluator = evaluator,
                          .table = table,
                          .opener = opener,
                          .households = rows->households,
                          .columns = columns};
  enum evaluation end = EVALUATION_DROPPED;
  if (prepare_loop(&loop, readers != 0)) {
    int rc;
    use_map(&loop, &loop.map, rows);
    int divides = readers && loop.range && !loop.map.lookup && !(loop.map.by_row && rows->by_unit);
    if (!divides || !read_beside(readers, &loop, rows, &rc, error))
      rc = run(&loop, collector, loop.statement, rows, error);
    rows->map = 0;
    end = end_of(rc, error);
  }
  sqlite3_finalize(loop.statement); /* its error is in `end` */
  sqlite3_free(loop.range);
  sqlite3_free(loop.unit);
  unit_map_close(&loop.map);
  return end;
}
