/* range_readers.c: see range_readers.h. */
#include "query/range_readers.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "os/clock.h"
#include "os/file.h"
#include "os/thread.h"

SQLITE_EXTENSION_INIT3

#define RANGES      256 /* the most ranges; with so many, no thread waits long for the last range */
#define LEAST_RANGE 16384 /* the least number of rowids in a range; fewer are not worth a thread */
/* the number of bytes between the data of two threads, so that no cache line has data of both */
#define CACHE_LINES 128
#define WAIT        200 /* microseconds between two checks of the other threads */
#define ASKED       32  /* runs of the host's statement (about 10 instructions) in each check */

/* A connection that reads ranges: the host's connection, or a further connection. */
struct reader {
  struct readers *readers;
  struct collector *host;
  sqlite3_stmt *statement;
  int64_t version; /* the data_version before the host began to read */
  struct thread thread;
  int has_thread;
  struct collection collection;
  struct rows rows;    /* the rows of a further connection */
  struct unit_map map; /* the map of these rows */
  char apart[CACHE_LINES];
};

struct readers {
  struct collector *host;
  struct range_query query;
  sqlite3_stmt *begun; /* the statement that keeps the host's transaction open */
  unsigned ranges;
  int64_t starts[RANGES]; /* the first rowid of each range, in order; starts[0] is not used */
  int count;              /* the number of readers */
  struct reader *list;    /* the first reader is the host's connection */
  int rc;                 /* the result code of the first error that occurred */
  struct error error;     /* the first error that occurred */
  atomic_uint next;       /* the next range that a thread takes */
  atomic_int stopped;     /* set after an error */
  atomic_int running;     /* the number of running threads besides the host's thread */
};

/* ---- connections (S2, S3) -------------------------------------------------------------------- */

/* Compiles a statement and steps to its first row. Returns null if there is no row. */
static sqlite3_stmt *first_row(sqlite3 *db, const char *sql) {
  sqlite3_stmt *statement = 0;
  if (sql && sqlite3_prepare_v2(db, sql, -1, &statement, 0) == SQLITE_OK &&
      sqlite3_step(statement) == SQLITE_ROW)
    return statement;
  sqlite3_finalize(statement);
  return 0;
}

static int has_moved(sqlite3 *db) {
  int moved = 0;
  if (!FILE_CAN_MOVE) return 0;
  return sqlite3_file_control(db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK || moved;
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

/* Copies the settings of the host that affect the values of rows. */
static void set_as(sqlite3 *db, sqlite3 *host) {
  int digits = 0;
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, sqlite3_limit(host, SQLITE_LIMIT_LENGTH, -1));
  if (sqlite3_db_config(host, FP_DIGITS, 0, &digits) == SQLITE_OK)
    sqlite3_db_config(db, FP_DIGITS, digits, (int *)0);
}

/* The collector of a further connection. The collector may outlive the scan. */
struct own_collector {
  struct collector collector;
  int references;
};

static void retain_own(struct collector *collector) {
  ((struct own_collector *)collector)->references++;
}

static void release_own(void *collector) {
  struct own_collector *own = collector;
  if (--own->references == 0) sqlite3_free(own);
}

static struct collector *new_collector(sqlite3 *db) {
  struct own_collector *own = sqlite3_malloc(sizeof *own);
  if (!own) return 0;
  *own = (struct own_collector){{db, 0}, 1};
  return &own->collector;
}

/*
** Opens the host's file for reading on a further connection. Fails if the connection has no mutex,
** because SQLite is then configured for one thread only.
*/
static int connect(struct reader *reader, sqlite3 *host) {
  sqlite3 *db = 0;
  sqlite3_vfs *vfs = 0;
  int flags = SQLITE_OPEN_FULLMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_READONLY;
  if (sqlite3_file_control(host, "main", SQLITE_FCNTL_VFS_POINTER, &vfs) != SQLITE_OK || !vfs)
    return 0;
  int opened = sqlite3_open_v2(sqlite3_db_filename(host, "main"), &db, flags, vfs->zName);
  reader->host = db ? new_collector(db) : 0;
  if (!reader->host) sqlite3_close_v2(db);
  if (!reader->host || opened != SQLITE_OK || !sqlite3_db_mutex(db)) return 0;
  set_as(db, host);
  return query_register(reader->host, retain_own, release_own) == SQLITE_OK;
}

/*
** Closes a further connection. Uses sqlite3_close_v2(), because an extension that is loaded for
** every connection may have left statements open.
*/
static void disconnect(struct reader *reader) {
  if (!reader->host) return;
  sqlite3_exec(reader->host->db, "ROLLBACK", 0, 0, 0);
  sqlite3_close_v2(reader->host->db);
  release_own(reader->host);
}

/*
** Returns the version of the database, or -1. The version changes when another connection commits.
*/
static int64_t version(sqlite3 *db) {
  sqlite3_stmt *row = first_row(db, "PRAGMA data_version");
  int64_t version = row ? sqlite3_column_int64(row, 0) : -1;
  sqlite3_finalize(row);
  return version;
}

/*
** Opens a further connection before the host begins to read. The connection does not hold a lock
** while the host waits for a writer, so it cannot block this writer.
*/
static int open_reader(struct reader *reader, struct readers *readers) {
  reader->readers = readers;
  if (!connect(reader, readers->host->db)) return 0;
  reader->version = version(reader->host->db);
  return reader->version >= 0;
}

void readers_close(struct readers *readers) {
  if (!readers) return;
  for (int i = 0; i < readers->count; i++) {
    struct reader *reader = &readers->list[i];
    sqlite3_finalize(reader->statement);
    rows_close(&reader->rows);
    unit_map_close(&reader->map);
    if (i > 0) disconnect(reader);
  }
  sqlite3_finalize(readers->begun);
  free(readers->list);
  free(readers);
}

struct readers *readers_open(struct collector *host) {
  int others = sqlite3_limit(host->db, SQLITE_LIMIT_WORKER_THREADS, -1);
  if (others < 1 || !sqlite3_threadsafe() || !is_shared(host->db)) return 0;
  struct readers *readers = calloc(1, sizeof *readers);
  if (readers) readers->list = calloc((size_t)others + 1, sizeof *readers->list);
  if (!readers || !readers->list) {
    free(readers);
    return 0;
  }
  readers->host = host;
  readers->list[0] = (struct reader){.readers = readers, .host = host};
  int going = 1;
  for (readers->count = 1; readers->count <= others && going; readers->count++)
    going = open_reader(&readers->list[readers->count], readers);
  if (going) return readers;
  readers_close(readers);
  return 0;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

/*
** Finds the first or last rowid of the table. The statement *row keeps the transaction open.
** Returns 0 if the table is empty.
*/
static int end_of(const struct range_query *query, sqlite3 *db, const char *order,
                  sqlite3_stmt **row, int64_t *rowid) {
  char *sql = sqlite3_mprintf("SELECT %s FROM main.\"%w\" ORDER BY %s%s LIMIT 1", query->rowid,
                              query->table, query->rowid, order);
  *row = first_row(db, sql);
  sqlite3_free(sql);
  if (!*row || sqlite3_column_type(*row, 0) != SQLITE_INTEGER) return 0;
  *rowid = sqlite3_column_int64(*row, 0);
  return 1;
}

/* A part of the table, from its first to its last row. */
struct part {
  int64_t first, last;
};

/* Returns the difference between the last and the first rowid of a part. */
static uint64_t span_of(const struct part *part) {
  return (uint64_t)part->last - (uint64_t)part->first;
}

static struct part *widest_of(struct part *parts, unsigned count) {
  struct part *widest = parts;
  for (struct part *part = parts; part < parts + count; part++)
    if (span_of(part) > span_of(widest)) widest = part;
  return widest;
}

/* Finds the row next to a rowid. Returns 0 if there is none. */
static int seek(sqlite3_stmt *statement, int64_t from, int64_t *rowid) {
  sqlite3_bind_int64(statement, 1, from);
  int found =
      sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_type(statement, 0) == SQLITE_INTEGER;
  if (found) *rowid = sqlite3_column_int64(statement, 0);
  sqlite3_reset(statement); /* after an error, the part stays whole */
  return found;
}

/*
** Prepares a statement that finds the row next to ?1. `compare` is an operator, and `order` ends
** ORDER BY. Returns null if the statement does not compile.
*/
static sqlite3_stmt *prepare_seek(const struct range_query *query, sqlite3 *db, const char *compare,
                                  const char *order) {
  sqlite3_stmt *statement = 0;
  char *sql =
      sqlite3_mprintf("SELECT %s FROM main.\"%w\" WHERE %s %s ?1 ORDER BY %s%s LIMIT 1",
                      query->rowid, query->table, query->rowid, compare, query->rowid, order);
  if (sql) sqlite3_prepare_v2(db, sql, -1, &statement, 0);
  sqlite3_free(sql);
  return statement;
}

/*
** Divides a part of the table into at most RANGES parts. Halves the widest part again and again.
** Each half begins and ends at a row, so a wide gap between rows costs one of the parts, and rows
** that are close together are divided even if others are far away. Returns the number of parts.
*/
static unsigned halve(const struct range_query *query, sqlite3 *db, struct part *parts) {
  sqlite3_stmt *before = prepare_seek(query, db, "<", " DESC");
  sqlite3_stmt *after = prepare_seek(query, db, ">=", "");
  unsigned count = 1;
  while (before && after && count < RANGES) {
    struct part *widest = widest_of(parts, count), lower = *widest, upper = *widest;
    if (span_of(widest) < 2 * (uint64_t)LEAST_RANGE) break;
    int64_t middle = (int64_t)((uint64_t)widest->first + span_of(widest) / 2 + 1);
    if (!seek(before, middle, &lower.last) || !seek(after, middle, &upper.first) ||
        lower.last >= middle || upper.first < middle)
      break;
    *widest = lower;
    parts[count++] = upper;
  }
  sqlite3_finalize(before);
  sqlite3_finalize(after);
  return count;
}

static int by_first(const void *a, const void *b) {
  const struct part *p = a, *q = b;
  return (p->first > q->first) - (p->first < q->first);
}

/*
** Begins to read on the host's connection, and divides the table into ranges. A range extends to
** the first row of the next range, the first range to all smaller rowids, and the last range to all
** larger rowids. Returns 0 if the table is too small for two ranges.
*/
static int settle_host(struct readers *readers) {
  const struct range_query *query = &readers->query;
  struct reader *reader = &readers->list[0];
  sqlite3 *db = reader->host->db;
  sqlite3_stmt *end = 0;
  struct part parts[RANGES];
  int found = end_of(query, db, "", &readers->begun, &parts[0].first) &&
              end_of(query, db, " DESC", &end, &parts[0].last);
  sqlite3_finalize(end);
  if (!found || parts[0].last < parts[0].first) return 0;
  readers->ranges = halve(query, db, parts);
  if (readers->ranges < 2) return 0;
  qsort(parts, readers->ranges, sizeof *parts, by_first);
  for (unsigned i = 0; i < readers->ranges; i++) readers->starts[i] = parts[i].first;
  return sqlite3_prepare_v2(db, query->text, -1, &reader->statement, 0) == SQLITE_OK;
}

/*
** Completes a further connection after the host has begun to read. Returns 1 if the connection may
** read (S2, S3).
*/
static int settle_reader(struct reader *reader) {
  const struct range_query *query = &reader->readers->query;
  sqlite3 *db = reader->host->db;
  reader->collection = (struct collection){.rows = &reader->rows, .columns = query->columns};
  return sqlite3_exec(db, "BEGIN", 0, 0, 0) == SQLITE_OK && version(db) == reader->version &&
         !has_moved(db) && query->is_proved(query->context, db) &&
         sqlite3_prepare_v2(db, query->text, -1, &reader->statement, 0) == SQLITE_OK;
}

int readers_settle(struct readers *readers, const struct range_query *query, struct rows *rows) {
  sqlite3 *db = readers->host->db;
  readers->query = *query;
  readers->list[0].collection = (struct collection){.rows = rows, .columns = query->columns};
  int settled = settle_host(readers);
  for (int i = 1; i < readers->count && settled; i++) settled = settle_reader(&readers->list[i]);
  return settled && sqlite3_txn_state(db, "main") == SQLITE_TXN_READ && !has_moved(db);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Keeps the error if it is the first one, and stops all threads. */
static void fail(struct readers *readers, int rc, struct error *error) {
  if (atomic_exchange(&readers->stopped, 1)) {
    error_clear(error);
  } else {
    readers->rc = rc;
    readers->error = error_take(error);
  }
}

/* Reads the rows of a range of rowids. */
static void read_range(struct reader *reader, int64_t from, int64_t to) {
  struct readers *readers = reader->readers;
  const struct range_query *query = &readers->query;
  sqlite3_bind_int64(reader->statement, 1, from);
  sqlite3_bind_int64(reader->statement, 2, to);
  int rc = query_run(reader->host, reader->statement, &reader->collection);
  struct error error = {0};
  if (rc != SQLITE_DONE) {
    query->explain(query->context, reader->host, rc, &error);
    fail(readers, rc, &error);
  }
  sqlite3_reset(reader->statement); /* the error has been reported */
}

/* Takes and reads ranges until no range is left. */
static void read_ranges(struct reader *reader) {
  struct readers *readers = reader->readers;
  unsigned range;
  while (!atomic_load(&readers->stopped) &&
         (range = atomic_fetch_add(&readers->next, 1)) < readers->ranges) {
    read_range(reader, range > 0 ? readers->starts[range] : INT64_MIN,
               range + 1 < readers->ranges ? readers->starts[range + 1] - 1 : INT64_MAX);
  }
}

/*
** The function of a thread. The thread allocates its own sums, so that threads do not share this
** memory.
*/
static void read_beside(void *pointer) {
  struct reader *reader = pointer;
  struct readers *readers = reader->readers;
  const struct range_query *query = &readers->query;
  struct error error = {0};
  if (!query->open(query->context, &reader->rows, &reader->map, &error))
    fail(readers, SQLITE_NOMEM, &error);
  reader->rows.secret = readers->list[0].collection.rows->secret;
  read_ranges(reader);
  atomic_fetch_sub(&readers->running, 1);
}

/* Starts the threads. If a thread does not start, the other threads take its ranges. */
static void start_threads(struct readers *readers) {
  for (int i = 1; i < readers->count; i++) {
    struct reader *reader = &readers->list[i];
    atomic_fetch_add(&readers->running, 1);
    reader->has_thread = thread_start(&reader->thread, read_beside, reader);
    if (!reader->has_thread) atomic_fetch_sub(&readers->running, 1);
  }
}

/*
** Waits for the other threads. Meanwhile the host runs its statement on an empty range, so that
** SQLite checks the host's interrupt and progress handler (S5).
*/
static void await_threads(struct readers *readers) {
  while (atomic_load(&readers->running)) {
    clock_sleep(WAIT);
    for (int i = 0; i < ASKED && !atomic_load(&readers->stopped); i++)
      read_range(&readers->list[0], INT64_MAX, INT64_MIN);
    /* SQLite ignores an interrupt that arrives between two statements, so repeat the interrupt. */
    for (int i = 1; i < readers->count && atomic_load(&readers->stopped); i++)
      sqlite3_interrupt(readers->list[i].host->db);
  }
}

/* Waits for the end of the threads and adds up their sums. */
static void join_threads(struct readers *readers) {
  struct rows *rows = readers->list[0].collection.rows;
  struct error error = {0};
  for (int i = 1; i < readers->count; i++)
    if (readers->list[i].has_thread) thread_join(&readers->list[i].thread);
  for (int i = 1; i < readers->count && !atomic_load(&readers->stopped); i++) {
    struct reader *reader = &readers->list[i];
    if (!reader->has_thread || rows_join(rows, &reader->rows)) continue;
    error_set(&error, "out of memory (the charge stays)");
    fail(readers, SQLITE_NOMEM, &error);
  }
}

int readers_run(struct readers *readers, struct error *error) {
  start_threads(readers);
  read_ranges(&readers->list[0]);
  await_threads(readers);
  join_threads(readers);
  if (!atomic_load(&readers->stopped)) return SQLITE_DONE;
  error_restore(error, readers->error);
  return readers->rc;
}
