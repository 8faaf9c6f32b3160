/*
** scan.c: see scan.h.
**
** The scan divides the rows of a table by rowid into ranges. The ranges together hold all integers,
** and each integer is in one of them. The host's connection and further connections run on a thread
** each, and each connection takes one range after the other. To run the
** query on a range, the scan puts a common table expression before the owner's text. The expression
** has the name of the table and gives the rows of the range.
**
** Requirements:
**   S1  Every row of the query comes from exactly one range. The scan proves this from the program
**       of the query and parses no SQL. The program must be one loop over one table, and each
**       instruction must compute from the row alone. A control query proves that the name means the
**       table everywhere in the owner's text: the control has a common table expression that gives
**       all rows, and must compile to the same program as the query itself.
**   S2  All connections see one state of one file. The host has no transaction when the scan
**       starts. Each further connection reads PRAGMA data_version before the host begins to read,
**       and again afterwards in its own transaction. Equal versions show that nobody has committed
**       in between. The scan also checks that the file has not been moved. The further connections
**       cannot write.
**   S3  A row gives the same result on every connection, because the programs are equal and call no
**       function, and the scan copies the host's settings that affect values. The programs use no
**       collation except BINARY; that the host has not replaced BINARY is not proved.
**   S4  If S1, S2 or S3 cannot be proved, the query runs on the host's connection alone. The
**       published values are the same in both cases, because sums are exact integers in any order.
**   S5  An interrupt or the progress handler of the host ends the query on every connection.
*/
#include "query/scan.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

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
  struct scan *scan;
  struct collector *host;
  sqlite3_stmt *statement;
  struct collection *collection; /* `own`, or the collection of scan_rows() for the host */
  int64_t version;               /* the data_version before the host began to read */
  struct thread thread;
  int has_thread;
  struct collection own;
  struct rows rows; /* the rows of `own` */
  char apart[CACHE_LINES];
};

struct scan {
  struct collector *host;
  const struct publication *publication;
  const struct query *query;
  char *table;         /* the quoted name of the table */
  char *text;          /* the query on a range */
  char *program;       /* the program of that query */
  sqlite3_stmt *begun; /* the statement that keeps the host's transaction open */
  unsigned ranges;
  int64_t starts[RANGES]; /* the first rowid of each range, in order; starts[0] is not used */
  int count;              /* the number of readers */
  struct reader *readers; /* the first reader is the host's connection */
  struct error error;     /* the first error that occurred */
  atomic_uint next;       /* the next range that a thread takes */
  atomic_int stopped;     /* set after an error */
  atomic_int running;     /* the number of running threads besides the host's thread */
};

/* ---- statements ------------------------------------------------------------------------------ */

/* Compiles a statement and steps to its first row. Returns null if there is no row. */
static sqlite3_stmt *first_row(sqlite3 *db, const char *sql) {
  sqlite3_stmt *statement = 0;
  if (sql && sqlite3_prepare_v2(db, sql, -1, &statement, 0) == SQLITE_OK &&
      sqlite3_step(statement) == SQLITE_ROW)
    return statement;
  sqlite3_finalize(statement);
  return 0;
}

/* ---- programs (S1, S3) ----------------------------------------------------------------------- */

/*
** The role of an instruction in a loop over one table. Instructions of the first six roles must
** occur a fixed number of times: in_whole gives these numbers for the query itself, and in_range
** for the query on a range.
*/
enum role {
  OPENS,
  REWINDS,
  SEEKS,
  NEXTS,
  BOUNDS,
  COLLECTS,
  COUNTED,
  READS = COUNTED,
  PLAIN,
  COMPARES,
  OTHER
};
static const int in_whole[COUNTED] = {1, 1, 0, 1, 0, 1}, in_range[COUNTED] = {1, 0, 1, 1, 2, 1};

/*
** The known instructions. They compute from the row, or belong to the frame of the loop. Any other
** instruction may do anything.
*/
static const struct instruction {
  const char *name;
  enum role role;
} instructions[] = {
    {"OpenRead", OPENS},     {"Rewind", REWINDS},  {"SeekGE", SEEKS},    {"Variable", BOUNDS},
    {"AggStep", COLLECTS},   {"Next", NEXTS},      {"Eq", COMPARES},     {"Ne", COMPARES},
    {"Lt", COMPARES},        {"Le", COMPARES},     {"Gt", COMPARES},     {"Ge", COMPARES},
    {"Column", READS},       {"Rowid", READS},     {"Integer", PLAIN},   {"Int64", PLAIN},
    {"Real", PLAIN},         {"String8", PLAIN},   {"Null", PLAIN},      {"Copy", PLAIN},
    {"SCopy", PLAIN},        {"Affinity", PLAIN},  {"Cast", PLAIN},      {"ClrSubtype", PLAIN},
    {"RealAffinity", PLAIN}, {"Add", PLAIN},       {"Subtract", PLAIN},  {"Multiply", PLAIN},
    {"Divide", PLAIN},       {"Remainder", PLAIN}, {"Concat", PLAIN},    {"BitAnd", PLAIN},
    {"BitOr", PLAIN},        {"BitNot", PLAIN},    {"ShiftLeft", PLAIN}, {"ShiftRight", PLAIN},
    {"And", PLAIN},          {"Or", PLAIN},        {"Not", PLAIN},       {"IsTrue", PLAIN},
    {"If", PLAIN},           {"IfNot", PLAIN},     {"IsNull", PLAIN},    {"NotNull", PLAIN},
    {"ZeroOrNull", PLAIN},   {"Goto", PLAIN},      {"Init", PLAIN},      {"Transaction", PLAIN},
    {"AggFinal", PLAIN},     {"ResultRow", PLAIN}, {"Halt", PLAIN},      {"Noop", PLAIN},
    {"Explain", PLAIN},
};

static enum role role_of(const char *name) {
  for (size_t i = 0; name && i < sizeof instructions / sizeof *instructions; i++)
    if (strcmp(name, instructions[i].name) == 0) return instructions[i].role;
  return OTHER;
}

struct program {
  char *listing; /* null if the text does not compile */
  int times[COUNTED];
  int others;
  int root; /* root page of the opened table; 0 if the table is not in the main database */
};

/*
** Adds a row of EXPLAIN: address, name, p1, p2, p3, p4, p5. The listing leaves out numbers that may
** differ between equal programs: the number of the only cursor, and how often a connection has read
** the schema. (In a shared cache, a connection may read changes that are not committed. The program
** then contains TableLock, which has no role, so the host reads alone.)
*/
static void add_instruction(struct program *program, sqlite3_str *listing, sqlite3_stmt *row) {
  const char *name = (const char *)sqlite3_column_text(row, 1);
  const char *detail = (const char *)sqlite3_column_text(row, 5);
  enum role role = role_of(name);
  if (role == OPENS) program->root = sqlite3_column_int(row, 4) ? 0 : sqlite3_column_int(row, 3);
  if (role < COUNTED) program->times[role]++;
  /* The scan accepts only the collation BINARY. The host may have replaced any other collation. */
  program->others += role == OTHER ||
                     (role == COMPARES && detail && *detail && strncmp(detail, "BINARY-", 7) != 0);
  int cursor = role <= NEXTS || role == READS ? 2 : -1;
  int schema = name && strcmp(name, "Transaction") == 0 ? 5 : -1;
  for (int i = 0; i < 7; i++)
    if (i != cursor && i != schema)
      sqlite3_str_appendf(listing, "%s ", sqlite3_column_text(row, i));
}

static struct program compile(sqlite3 *db, const char *sql) {
  struct program program = {0};
  sqlite3_stmt *statement = 0;
  sqlite3_str *listing = sqlite3_str_new(db);
  char *text = sqlite3_mprintf("EXPLAIN %s", sql);
  int rc = text ? sqlite3_prepare_v2(db, text, -1, &statement, 0) : SQLITE_NOMEM;
  while (rc == SQLITE_OK && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
    add_instruction(&program, listing, statement);
    rc = sqlite3_str_errcode(listing);
  }
  sqlite3_finalize(statement);
  sqlite3_free(text);
  program.listing = sqlite3_str_finish(listing);
  if (rc == SQLITE_DONE) return program;
  sqlite3_free(program.listing);
  return (struct program){0};
}

static int is_loop(const struct program *program, const int times[COUNTED]) {
  return program->listing && !program->others &&
         memcmp(program->times, times, sizeof program->times) == 0;
}

/* Returns the quoted name of the table that a program opens, or null. */
static char *table_of(sqlite3 *db, const struct program *program) {
  if (!program->root) return 0;
  char *sql = sqlite3_mprintf(
      "SELECT name FROM main.sqlite_master WHERE rootpage = %d AND type = 'table'", program->root);
  sqlite3_stmt *row = first_row(db, sql);
  const char *name = row ? (const char *)sqlite3_column_text(row, 0) : 0;
  char *quoted = name ? sqlite3_mprintf("\"%w\"", name) : 0;
  sqlite3_finalize(row);
  sqlite3_free(sql);
  return quoted;
}

/*
** Returns the text of the query with a common table expression before it that limits the table to
** `rows` (a WHERE clause, or "" for all rows). Returns null when out of memory.
*/
static char *text_of(const struct scan *scan, const char *rows) {
  char *expression =
      sqlite3_mprintf("%s AS (SELECT * FROM main.%s%s),", scan->table, scan->table, rows);
  char *text = expression ? query_text(scan->query, expression) : 0;
  sqlite3_free(expression);
  return text;
}

static int compiles_to(sqlite3 *db, const char *text, const char *listing) {
  struct program program = text ? compile(db, text) : (struct program){0};
  int same = program.listing && strcmp(program.listing, listing) == 0;
  sqlite3_free(program.listing);
  return same;
}

/* Finds the table and writes the query on a range (S1). Returns 1, or 0 if the proof fails. */
static int divide(struct scan *scan, sqlite3 *db) {
  char *text = query_text(scan->query, ""), *control = 0;
  struct program whole = text ? compile(db, text) : (struct program){0};
  if (is_loop(&whole, in_whole)) scan->table = table_of(db, &whole);
  if (scan->table) control = text_of(scan, "");
  if (scan->table && compiles_to(db, control, whole.listing))
    scan->text = text_of(scan, " WHERE rowid BETWEEN ?1 AND ?2");
  sqlite3_free(text);
  sqlite3_free(control);
  sqlite3_free(whole.listing);
  if (!scan->text) return 0;
  struct program range = compile(db, scan->text);
  scan->program = range.listing;
  return is_loop(&range, in_range);
}

/* ---- connections (S2, S3) -------------------------------------------------------------------- */

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
static int open_reader(struct reader *reader, struct scan *scan, sqlite3 *host) {
  reader->scan = scan;
  reader->collection = &reader->own;
  reader->own = (struct collection){.rows = &reader->rows, .columns = scan->query->columns};
  if (!connect(reader, host)) return 0;
  reader->version = version(reader->host->db);
  return reader->version >= 0;
}

/*
** Completes a further connection after the host has begun to read. Returns 1 if the scan may use
** the connection (S2, S3).
*/
static int settle_reader(struct reader *reader) {
  const struct scan *scan = reader->scan;
  sqlite3 *db = reader->host->db;
  return sqlite3_exec(db, "BEGIN", 0, 0, 0) == SQLITE_OK && version(db) == reader->version &&
         !has_moved(db) && compiles_to(db, scan->text, scan->program) &&
         sqlite3_prepare_v2(db, scan->text, -1, &reader->statement, 0) == SQLITE_OK;
}

/*
** Finds the first or last rowid of the table. The statement *row keeps the transaction open.
** Returns 0 if the table is empty.
*/
static int end_of(const struct scan *scan, sqlite3 *db, const char *order, sqlite3_stmt **row,
                  int64_t *rowid) {
  char *sql =
      sqlite3_mprintf("SELECT rowid FROM main.%s ORDER BY rowid%s LIMIT 1", scan->table, order);
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

/* Prepares a statement that finds the row next to ?1. Returns null if it does not compile. */
static sqlite3_stmt *prepare_seek(const struct scan *scan, sqlite3 *db, const char *where) {
  sqlite3_stmt *statement = 0;
  char *sql =
      sqlite3_mprintf("SELECT rowid FROM main.%s WHERE rowid %s LIMIT 1", scan->table, where);
  if (sql) sqlite3_prepare_v2(db, sql, -1, &statement, 0);
  sqlite3_free(sql);
  return statement;
}

/*
** Divides a part of the table into at most RANGES parts. Halves the widest part again and again.
** Each half begins and ends at a row, so a wide gap between rows costs one of the parts, and rows
** that are close together are divided even if others are far away. Returns the number of parts.
*/
static unsigned halve(const struct scan *scan, sqlite3 *db, struct part *parts) {
  sqlite3_stmt *before = prepare_seek(scan, db, "< ?1 ORDER BY rowid DESC");
  sqlite3_stmt *after = prepare_seek(scan, db, ">= ?1 ORDER BY rowid");
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
static int settle_host(struct scan *scan, struct reader *reader) {
  sqlite3 *db = reader->host->db;
  sqlite3_stmt *end = 0;
  struct part parts[RANGES];
  int found = end_of(scan, db, "", &scan->begun, &parts[0].first) &&
              end_of(scan, db, " DESC", &end, &parts[0].last);
  sqlite3_finalize(end);
  if (!found || parts[0].last < parts[0].first) return 0;
  scan->ranges = halve(scan, db, parts);
  if (scan->ranges < 2) return 0;
  qsort(parts, scan->ranges, sizeof *parts, by_first);
  for (unsigned i = 0; i < scan->ranges; i++) scan->starts[i] = parts[i].first;
  return sqlite3_prepare_v2(db, scan->text, -1, &reader->statement, 0) == SQLITE_OK;
}

static void scan_close(struct scan *scan) {
  for (int i = 0; i < scan->count; i++) {
    struct reader *reader = &scan->readers[i];
    sqlite3_finalize(reader->statement);
    rows_close(&reader->rows);
    if (i > 0) disconnect(reader);
  }
  sqlite3_finalize(scan->begun);
  sqlite3_free(scan->table);
  sqlite3_free(scan->text);
  sqlite3_free(scan->program);
  free(scan->readers);
}

/* Prepares all readers. Returns 1, or 0 if the host must read alone (S4). */
static int scan_open(struct scan *scan, int others, struct collection *collection) {
  struct collector *host = scan->host;
  if (others < 1 || !sqlite3_threadsafe() || !is_shared(host->db) || !divide(scan, host->db))
    return 0;
  scan->readers = calloc((size_t)others + 1, sizeof *scan->readers);
  if (!scan->readers) return 0;
  scan->readers[0] = (struct reader){.scan = scan, .host = host, .collection = collection};
  for (scan->count = 1; scan->count <= others; scan->count++) {
    if (!open_reader(&scan->readers[scan->count], scan, host->db)) {
      scan->count++; /* scan_close() must also close the reader that failed */
      return 0;
    }
  }
  int settled = settle_host(scan, &scan->readers[0]);
  for (int i = 1; i < scan->count && settled; i++) settled = settle_reader(&scan->readers[i]);
  return settled && !has_moved(host->db);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Keeps the error if it is the first one, and stops all threads. */
static void fail(struct scan *scan, struct error *error) {
  if (atomic_exchange(&scan->stopped, 1)) {
    error_clear(error);
  } else {
    scan->error = error_take(error);
  }
}

/* Reads the rows of a range of rowids. */
static void read_range(struct reader *reader, int64_t from, int64_t to) {
  sqlite3_bind_int64(reader->statement, 1, from);
  sqlite3_bind_int64(reader->statement, 2, to);
  int rc = query_run(reader->host, reader->statement, reader->collection);
  struct error error = {0};
  if (rc != SQLITE_DONE) {
    query_error(reader->host, rc, &error);
    fail(reader->scan, &error);
  }
  sqlite3_reset(reader->statement); /* the error has been reported */
}

/* Takes and reads ranges until no range is left. */
static void read_ranges(struct reader *reader) {
  struct scan *scan = reader->scan;
  unsigned range;
  while (!atomic_load(&scan->stopped) &&
         (range = atomic_fetch_add(&scan->next, 1)) < scan->ranges) {
    read_range(reader, range > 0 ? scan->starts[range] : INT64_MIN,
               range + 1 < scan->ranges ? scan->starts[range + 1] - 1 : INT64_MAX);
  }
}

/*
** The function of a thread. The thread allocates its own sums, so that threads do not share this
** memory.
*/
static void read_beside(void *pointer) {
  struct reader *reader = pointer;
  struct scan *scan = reader->scan;
  struct rows *rows = &reader->rows;
  struct error error = {0};
  if (!rows_open(rows, scan->publication, columns_in_order(scan->publication), &error))
    fail(scan, &error);
  rows->secret = scan->readers[0].collection->rows->secret;
  read_ranges(reader);
  atomic_fetch_sub(&scan->running, 1);
}

/* Starts the threads. If a thread does not start, the other threads take its ranges. */
static void start_threads(struct scan *scan) {
  for (int i = 1; i < scan->count; i++) {
    struct reader *reader = &scan->readers[i];
    atomic_fetch_add(&scan->running, 1);
    reader->has_thread = thread_start(&reader->thread, read_beside, reader);
    if (!reader->has_thread) atomic_fetch_sub(&scan->running, 1);
  }
}

/*
** Waits for the other threads. Meanwhile the host runs its statement on an empty range, so that
** SQLite checks the host's interrupt and progress handler (S5).
*/
static void await_threads(struct scan *scan) {
  while (atomic_load(&scan->running)) {
    clock_sleep(WAIT);
    for (int i = 0; i < ASKED && !atomic_load(&scan->stopped); i++)
      read_range(&scan->readers[0], INT64_MAX, INT64_MIN);
    /* SQLite ignores an interrupt that arrives between two statements, so repeat the interrupt. */
    for (int i = 1; i < scan->count && atomic_load(&scan->stopped); i++)
      sqlite3_interrupt(scan->readers[i].host->db);
  }
}

/* Waits for the end of the threads and adds up their sums. */
static void join_threads(struct scan *scan) {
  struct rows *rows = scan->readers[0].collection->rows;
  for (int i = 1; i < scan->count; i++)
    if (scan->readers[i].has_thread) thread_join(&scan->readers[i].thread);
  for (int i = 1; i < scan->count && !error_is_set(&scan->error); i++)
    if (scan->readers[i].has_thread && !rows_join(rows, &scan->readers[i].rows))
      error_set(&scan->error, "out of memory (the charge stays)");
}

int scan_rows(struct collector *host, const struct publication *publication,
              const struct query *query, sqlite3_stmt *statement, struct collection *collection,
              struct error *error) {
  struct scan scan = {.host = host, .publication = publication, .query = query};
  int others = publication->definition.aggregate->family->has_states
                   ? sqlite3_limit(host->db, SQLITE_LIMIT_WORKER_THREADS, -1)
                   : 0;
  int is_divided = scan_open(&scan, others, collection);
  if (is_divided) {
    start_threads(&scan);
    read_ranges(&scan.readers[0]);
    await_threads(&scan);
    join_threads(&scan);
  }
  scan_close(&scan);
  if (is_divided) {
    error_restore(error, scan.error);
    return !error_is_set(error);
  }
  int rc = query_run(host, statement, collection);
  return rc == SQLITE_DONE ? 1 : query_error(host, rc, error);
}
