/* readers.c: see readers.h. Tests: tests/query/test_question_threads.py */
#include "query/readers.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "os/file.h"
#include "os/thread.h"
#include "query/interrupts.h"
#include "query/private_connection.h"

SQLITE_EXTENSION_INIT3

/* The number of bytes between the data of two threads, so that no cache line has data of both. */
#define CACHE_LINES 128
#define WAIT        200 /* microseconds between two checks of the other threads */

/* A connection and its thread. */
struct member {
  struct reader reader;
  int64_t version; /* the data_version before the host began to read */
  struct thread thread;
  int has_thread;
  struct rows rows; /* the rows of a further connection */
  char apart[CACHE_LINES];
};

struct readers {
  struct collector *collector;
  struct tasks tasks;      /* of readers_settle() */
  const struct tasks *now; /* the tasks that the threads do now */
  int count;               /* the number of members */
  struct member *list;     /* the first member is the host's connection */
  int rc;                  /* the result code of the first error that occurred */
  struct error error;      /* the first error that occurred */
  atomic_uint next;        /* the next task that a thread takes */
  atomic_int stopped;      /* set after an error */
  atomic_int running;      /* the number of running threads besides the host's thread */
};

/* ---- connections (S2) ------------------------------------------------------------------------ */

static int has_moved(sqlite3 *db) {
  int moved = 0;
  if (!FILE_CAN_MOVE) return 0;
  return sqlite3_file_control(db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK || moved;
}

/* Returns whether the host reads what others have not committed, which no other connection sees. */
static int reads_uncommitted(sqlite3 *db) {
  sqlite3_stmt *row = 0;
  int reads = 1;
  if (sqlite3_prepare_v2(db, "PRAGMA read_uncommitted", -1, &row, 0) == SQLITE_OK &&
      sqlite3_step(row) == SQLITE_ROW)
    reads = sqlite3_column_int(row, 0);
  sqlite3_finalize(row);
  if (reads) interrupt_pass_on(db);
  return reads;
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

/*
** Opens the host's file for reading on a further connection. Fails if the connection has no mutex,
** because SQLite is then configured for one thread only.
*/
static int connect(struct reader *reader, sqlite3 *host) {
  struct error error = {0};
  sqlite3 *db = 0;
  int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_FULLMUTEX;
  int opened = private_connection_open(&db, host, flags, &error);
  error_clear(&error);
  if (!opened) return 0;
  reader->collector = private_collector_new(db);
  if (!reader->collector || !sqlite3_db_mutex(db)) return 0;
  set_as(db, host);
  return 1;
}

/*
** Returns the version of the database, or -1. The version changes when another connection commits.
*/
static int64_t version(sqlite3 *db) {
  sqlite3_stmt *row = 0;
  int64_t version = -1;
  if (sqlite3_prepare_v2(db, "PRAGMA data_version", -1, &row, 0) == SQLITE_OK &&
      sqlite3_step(row) == SQLITE_ROW)
    version = sqlite3_column_int64(row, 0);
  sqlite3_finalize(row);
  if (version < 0) interrupt_pass_on(db);
  return version;
}

/*
** Opens a further connection before the host begins to read. The connection does not hold a lock
** while the host waits for a writer, so it cannot block this writer.
*/
static int open_member(struct member *member, struct readers *readers, int number) {
  member->reader = (struct reader){readers, number, 0, &member->rows, 0};
  if (!connect(&member->reader, readers->collector->db)) return 0;
  member->version = version(member->reader.collector->db);
  return member->version >= 0;
}

void readers_close(struct readers *readers) {
  if (!readers) return;
  for (int i = 1; i < readers->count; i++) {
    rows_close(&readers->list[i].rows);
    private_collector_close(readers->list[i].reader.collector);
  }
  free(readers->list);
  free(readers);
}

struct readers *readers_open(struct collector *collector) {
  int others = sqlite3_limit(collector->db, SQLITE_LIMIT_WORKER_THREADS, -1);
  if (others < 1 || !sqlite3_threadsafe() || !is_shared(collector->db) ||
      reads_uncommitted(collector->db))
    return 0;
  struct readers *readers = calloc(1, sizeof *readers);
  if (readers) readers->list = calloc((size_t)others + 1, sizeof *readers->list);
  if (!readers || !readers->list) {
    free(readers);
    return 0;
  }
  readers->collector = collector;
  readers->list[0].reader = (struct reader){readers, 0, collector, 0, 0};
  int going = 1;
  for (readers->count = 1; readers->count <= others && going; readers->count++)
    going = open_member(&readers->list[readers->count], readers, readers->count);
  if (going) return readers;
  readers_close(readers);
  return 0;
}

int readers_count(const struct readers *readers) {
  return readers->count;
}

struct collector *readers_host(const struct readers *readers) {
  return readers->collector;
}

/*
** Completes a further connection after the host has begun to read. Returns 1 if the connection may
** read.
*/
static int settle(const struct member *member, const struct tasks *tasks) {
  sqlite3 *db = member->reader.collector->db;
  return sqlite3_exec(db, "BEGIN", 0, 0, 0) == SQLITE_OK && version(db) == member->version &&
         !has_moved(db) && tasks->prepare(tasks->context, &member->reader);
}

int readers_settle(struct readers *readers, const struct tasks *tasks, struct rows *rows) {
  sqlite3 *db = readers->collector->db;
  readers->tasks = *tasks;
  readers->list[0].reader.rows = rows;
  int settled = tasks->prepare(tasks->context, &readers->list[0].reader);
  for (int i = 1; i < readers->count && settled; i++) settled = settle(&readers->list[i], tasks);
  return settled && sqlite3_txn_state(db, "main") == SQLITE_TXN_READ && !has_moved(db);
}

/* ---- tasks ----------------------------------------------------------------------------------- */

/* Keeps the error if it is the first one, and stops all threads. */
static void fail(struct readers *readers, int rc, struct error *error) {
  if (atomic_exchange(&readers->stopped, 1)) {
    error_clear(error);
  } else {
    readers->rc = rc;
    readers->error = error_take(error);
  }
}

static void fail_memory(struct readers *readers) {
  struct error error = {0};
  error_set(&error, "out of memory (the charge stays)");
  fail(readers, SQLITE_NOMEM, &error);
}

/* Takes and does tasks until no task is left. */
static void do_tasks(const struct reader *reader) {
  struct readers *readers = reader->readers;
  const struct tasks *tasks = readers->now;
  unsigned task;
  while (!atomic_load(&readers->stopped) &&
         (task = atomic_fetch_add(&readers->next, 1)) < tasks->count) {
    struct error error = {0};
    int rc = tasks->run(tasks->context, reader, task, &error);
    if (rc != SQLITE_DONE) fail(readers, rc, &error);
  }
}

/* The function of a thread. */
static void run_beside(void *pointer) {
  const struct reader *reader = &((struct member *)pointer)->reader;
  struct readers *readers = reader->readers;
  struct error error = {0};
  if (readers->now->open && !readers->now->open(readers->now->context, reader, &error))
    fail(readers, SQLITE_NOMEM, &error);
  do_tasks(reader);
  atomic_fetch_sub(&readers->running, 1);
}

/* Starts the threads. If a thread does not start, the other threads do its tasks. */
static void start_threads(struct readers *readers) {
  for (int i = 1; i < readers->count; i++) {
    struct member *member = &readers->list[i];
    atomic_fetch_add(&readers->running, 1);
    member->has_thread = thread_start(&member->thread, run_beside, member);
    if (!member->has_thread) atomic_fetch_sub(&readers->running, 1);
  }
}

/* Waits for the other threads, and meanwhile checks whether the host is interrupted (S5). */
static void await_threads(struct readers *readers) {
  const struct tasks *tasks = &readers->tasks;
  while (atomic_load(&readers->running)) {
    struct error error = {0};
    int rc = SQLITE_DONE;
    clock_sleep(WAIT);
    if (!atomic_load(&readers->stopped))
      rc = tasks->wait(tasks->context, &readers->list[0].reader, &error);
    if (rc != SQLITE_DONE) fail(readers, rc, &error);
    /* SQLite ignores an interrupt that arrives between two statements, so repeat the interrupt. */
    for (int i = 1; i < readers->count && atomic_load(&readers->stopped); i++)
      sqlite3_interrupt(readers->list[i].reader.collector->db);
  }
}

/*
** Does tasks on all threads, and waits for their end. Returns 0 after an error. Between two calls
** of this function, only the host's thread runs.
*/
static int do_all(struct readers *readers, const struct tasks *tasks) {
  readers->now = tasks;
  atomic_store(&readers->next, 0);
  if (tasks->count > 1) start_threads(readers);
  do_tasks(&readers->list[0].reader);
  await_threads(readers);
  for (int i = 1; i < readers->count; i++) {
    if (readers->list[i].has_thread) thread_join(&readers->list[i].thread);
    readers->list[i].has_thread = 0;
  }
  return !atomic_load(&readers->stopped);
}

/* ---- sums ------------------------------------------------------------------------------------ */

static int ended(int done, struct error *error) {
  if (done) return SQLITE_DONE;
  error_set(error, "out of memory (the charge stays)");
  return SQLITE_NOMEM;
}

/* The tasks below have the parts of the sums as their context. */
static int prepare_sums(void *context, const struct reader *reader, unsigned number,
                        struct error *error) {
  (void)reader;
  return ended(vector_parts_prepare(context, (int)number), error);
}

static int add_part(void *context, const struct reader *reader, unsigned part,
                    struct error *error) {
  return ended(vector_parts_add(context, reader->number, part), error);
}

/*
** Adds up the sums of all connections on all threads. Returns 1, or 0 if this has to be done on one
** thread, or after an error.
*/
static int add_in_parts(struct readers *readers, struct rows *const *list) {
  struct vector_parts *parts = rows_parts(list, readers->count);
  if (!parts) return 0;
  struct tasks prepare = {.context = parts, .count = (unsigned)readers->count, .run = prepare_sums};
  struct tasks add = {.context = parts, .run = add_part};
  int added = 0;
  if (do_all(readers, &prepare)) {
    if (!vector_parts_find(parts, &add.count)) {
      fail_memory(readers);
    } else if (add.count && do_all(readers, &add)) {
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
    list[i] = readers->list[i].reader.rows;
    open = rows_are_open(list[i]); /* a thread may not have started */
  }
  int added = open && add_in_parts(readers, list);
  free(list);
  for (int i = 1; i < readers->count && !added && !atomic_load(&readers->stopped); i++) {
    struct rows *own = &readers->list[i].rows;
    if (rows_are_open(own) && !rows_join(readers->list[0].reader.rows, own)) fail_memory(readers);
  }
}

int readers_run(struct readers *readers, struct error *error) {
  for (int i = 1; i < readers->count; i++)
    readers->list[i].reader.secret = readers->list[0].reader.rows->secret;
  if (do_all(readers, &readers->tasks)) add_sums(readers);
  if (!atomic_load(&readers->stopped)) return SQLITE_DONE;
  error_restore(error, readers->error);
  return readers->rc;
}
