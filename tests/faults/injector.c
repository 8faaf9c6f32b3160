/* injector.c: makes calls fail. For every statement of a story and for n = 1, 2, ..., the program
** runs the statement and lets its n-th allocation or its n-th call of the file system fail. When a
** statement makes fewer than n calls, the program goes on to the next statement.
**
**   injector DIRECTORY MODE STEP [STATEMENT]
**
** MODE says what the n-th call does. "once" lets only the n-th call fail. "on" lets the n-th call
** and all later calls fail.
**   memory-once memory-on   malloc(), calloc() and realloc() of SQLite, GSL and the extension
**                           return null
**   own-once    own-on      the same, but only for memory that the extension asks for, itself or
**                           through GSL; there are few such calls, so a test can let each fail
**   random-once random-on   getrandom() returns no bytes
**   io-once     io-on       xRead, xWrite, xSync, xLock and so on return SQLITE_IOERR; a write
**                           writes only a part of its data
**   full-once   full-on     a write writes only a part of its data and returns SQLITE_FULL
**   kill                    the process is killed at the n-th call of the file system
**   power                   the process is killed, and a random part of the data that was written
**                           but not synced is lost
**   clock                   no call fails, but the clock goes back whenever it is read
**   calls STEP FILE         allocations fail, as with memory-once, in each line of the file, a
**                           statement (see try_call()): it gives the same rows or an error, or, if
**                           it draws noise, as many rows
**   changed SQL             the statement SQL changes the ledger, and dp_verify() must never return
**                           'ok'
** STEP: n grows by 1 + n/STEP. If STEP is 0, n grows by 1, so no call is left out.
** STATEMENT: the number of the only statement to run.
**
** The program checks these invariants after every run, on the connection of the run or on a new
** connection:
**   I1  A statement that succeeds gives the true answer (the noise is tiny) and has all its
**       charges. A statement that fails has all its charges or none, and its error is a sentence.
**   I2  Every value has a charge, and dp_verify() returns 'ok'.
**   I3  The ledger is usable: the statement can run again, if necessary after dp_discard().
**   I4  If the statement gave an answer, it gives the same answer again.
**   I5  No memory and no open file is left, and the connection closes.
** For every statement, the program prints the number of failures that it survived. At the end it
** prints the sum of these numbers. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int sqlite3_diffuse_init(sqlite3 *, char **, const void *);

enum mode { MEMORY, OWN, RANDOM, IO, FULL, KILL, POWER, CLOCK };

static enum mode mode;
static int from_then_on;
static long countdown; /* number of calls until a call fails; 0: no call fails */
static int met;        /* 1: a call has failed */

/* Returns whether the current call must fail. The function locks a mutex, because several threads
** of the extension may call it. */
static int strikes(void) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  int strike = countdown > 0 && --countdown == 0;
  if (strike) met = 1;
  if (strike && from_then_on) countdown = 1;
  pthread_mutex_unlock(&mutex);
  return strike;
}

/* ---- memory (the linker's --wrap redirects all calls here)
** -------------------------------------- */

static atomic_long outstanding;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void __wrap_free(void *memory);

static _Thread_local int in_sqlite; /* 1: SQLite is allocating memory */
/* 1: the extension has called one of SQLite's functions below, so the memory is for the
** extension */
static _Thread_local int for_us;

static int memory_strikes(void) {
  return (mode == MEMORY || (mode == OWN && (!in_sqlite || for_us))) && strikes();
}

void *__wrap_malloc(size_t size) {
  void *memory = memory_strikes() ? 0 : __real_malloc(size);
  outstanding += memory != 0;
  return memory;
}

void *__wrap_calloc(size_t count, size_t size) {
  void *memory = memory_strikes() ? 0 : __real_calloc(count, size);
  outstanding += memory != 0;
  return memory;
}

void *__wrap_realloc(void *before, size_t size) {
  void *memory = memory_strikes() ? 0 : __real_realloc(before, size);
  outstanding += memory != 0 && !before;
  return memory;
}

void __wrap_free(void *memory) {
  outstanding -= memory != 0;
  __real_free(memory);
}

/* SQLite's own allocator. The functions below set in_sqlite while they call it. */
static sqlite3_mem_methods allocator;

static void *noting_malloc(int size) {
  in_sqlite++;
  void *memory = allocator.xMalloc(size);
  in_sqlite--;
  return memory;
}

static void *noting_realloc(void *before, int size) {
  in_sqlite++;
  void *memory = allocator.xRealloc(before, size);
  in_sqlite--;
  return memory;
}

static void note_sqlite(void) {
  sqlite3_config(SQLITE_CONFIG_GETMALLOC, &allocator);
  sqlite3_mem_methods noting = allocator;
  noting.xMalloc = noting_malloc;
  noting.xRealloc = noting_realloc;
  sqlite3_config(SQLITE_CONFIG_MALLOC, &noting);
}

/* Defines a wrapper of a function of SQLite that allocates memory. Only calls from the extension
** reach this wrapper, not calls inside SQLite. */
#define FOR_US(result, name, parameters, arguments)                                                \
  result __real_##name parameters;                                                                 \
  result __wrap_##name parameters;                                                                 \
  result __wrap_##name parameters {                                                                \
    for_us++;                                                                                      \
    result given = __real_##name arguments;                                                        \
    for_us--;                                                                                      \
    return given;                                                                                  \
  }

FOR_US(void *, sqlite3_malloc, (int size), (size))
FOR_US(void *, sqlite3_malloc64, (sqlite3_uint64 size), (size))
FOR_US(void *, sqlite3_realloc64, (void *before, sqlite3_uint64 size), (before, size))
FOR_US(char *, sqlite3_vmprintf, (const char *format, va_list list), (format, list))
FOR_US(sqlite3_value *, sqlite3_value_dup, (const sqlite3_value *value), (value))
FOR_US(sqlite3_str *, sqlite3_str_new, (sqlite3 * db), (db))
FOR_US(void *, sqlite3_aggregate_context, (sqlite3_context * context, int size), (context, size))

#define FOR_US_TOO(name, parameters, arguments)                                                    \
  void __real_##name parameters;                                                                   \
  void __wrap_##name parameters;                                                                   \
  void __wrap_##name parameters {                                                                  \
    for_us++;                                                                                      \
    __real_##name arguments;                                                                       \
    for_us--;                                                                                      \
  }

FOR_US_TOO(sqlite3_str_append, (sqlite3_str * text, const char *more, int size), (text, more, size))
FOR_US_TOO(sqlite3_str_appendall, (sqlite3_str * text, const char *more), (text, more))
FOR_US_TOO(sqlite3_str_appendchar, (sqlite3_str * text, int times, char c), (text, times, c))
FOR_US_TOO(sqlite3_set_auxdata,
           (sqlite3_context * context, int argument, void *data, void (*destroy)(void *)),
           (context, argument, data, destroy))

char *__wrap_sqlite3_mprintf(const char *format, ...);
char *__wrap_sqlite3_mprintf(const char *format, ...) {
  va_list list;
  va_start(list, format);
  char *text = __wrap_sqlite3_vmprintf(format, list);
  va_end(list);
  return text;
}

void __wrap_sqlite3_str_appendf(sqlite3_str *text, const char *format, ...);
void __wrap_sqlite3_str_appendf(sqlite3_str *text, const char *format, ...) {
  va_list list;
  va_start(list, format);
  for_us++;
  sqlite3_str_vappendf(text, format, list);
  for_us--;
  va_end(list);
}

/* ---- random bytes ---------------------------------------------------------------------------- */

ssize_t __real_getrandom(void *bytes, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags);

ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags) {
  if (mode != RANDOM || !strikes()) return __real_getrandom(bytes, size, flags);
  errno = ENOSYS;
  return -1;
}

/* ---- what a loss of power undoes ------------------------------------------------------ */

/* One write or truncation since the last sync of its file, and the old data that this change
** replaced. */
struct change {
  char name[200];
  sqlite3_int64 offset, size_before; /* size_before: size of the file before the change */
  int size;
  char *before;
};

static struct change changes[10000];
static int change_count;

static void note_change(const char *name, sqlite3_int64 offset, sqlite3_int64 size) {
  if (mode != POWER || !countdown || !name || change_count == 10000) return;
  struct change *change = &changes[change_count];
  struct stat status;
  int file = open(name, O_RDONLY);
  if (file < 0 || fstat(file, &status)) return;
  change_count++;
  snprintf(change->name, sizeof change->name, "%s", name);
  change->offset = offset;
  change->size_before = status.st_size;
  /* A negative size means a truncation. */
  if (size < 0) size = status.st_size > offset ? status.st_size - offset : 0;
  change->before = __real_malloc((size_t)size + 1);
  ssize_t got = pread(file, change->before, (size_t)size, offset);
  change->size = got > 0 ? (int)got : 0;
  close(file);
}

static void forget_changes(const char *name) {
  int kept = 0;
  for (int i = 0; i < change_count; i++) {
    if (name && strcmp(changes[i].name, name) == 0) {
      __real_free(changes[i].before);
    } else {
      changes[kept++] = changes[i];
    }
  }
  change_count = kept;
}

static void lose_power(void) {
  for (int i = change_count - 1; i >= 0; i--) {
    struct change *change = &changes[i];
    int file = rand() & 64 ? open(change->name, O_RDWR) : -1;
    if (file < 0) continue;
    if (pwrite(file, change->before, (size_t)change->size, change->offset) >= 0 &&
        change->offset + change->size == change->size_before &&
        ftruncate(file, change->size_before))
      abort();
    close(file);
  }
}

/* ---- the file system ------------------------------------------------------------------------- */

struct file {
  sqlite3_file base;
  char *name;
  sqlite3_file *real; /* the real file is stored directly after this struct */
};

static sqlite3_vfs *system_vfs, shim;
static atomic_long open_files;
static double backwards; /* by how many days the clock has gone back */

/* Returns whether a call of the file system must fail now. If the mode kills the process, the
** function does not return. */
static int io_strikes(int is_write) {
  if (mode < IO || mode == CLOCK || (mode == FULL && !is_write) || !strikes()) return 0;
  if (mode == POWER) lose_power();
  if (mode == KILL || mode == POWER) kill(getpid(), SIGKILL);
  return 1;
}

static int shim_close(sqlite3_file *base) {
  struct file *file = (struct file *)base;
  int rc = file->real->pMethods ? file->real->pMethods->xClose(file->real) : SQLITE_OK;
  open_files--;
  return rc;
}

static int shim_read(sqlite3_file *base, void *bytes, int size, sqlite3_int64 offset) {
  sqlite3_file *real = ((struct file *)base)->real;
  if (io_strikes(0)) return SQLITE_IOERR_READ;
  return real->pMethods->xRead(real, bytes, size, offset);
}

static int shim_write(sqlite3_file *base, const void *bytes, int size, sqlite3_int64 offset) {
  struct file *file = (struct file *)base;
  sqlite3_file *real = file->real;
  note_change(file->name, offset, size);
  if (io_strikes(1)) {
    if (size > 1) real->pMethods->xWrite(real, bytes, size / 2, offset);
    return mode == FULL ? SQLITE_FULL : SQLITE_IOERR_WRITE;
  }
  return real->pMethods->xWrite(real, bytes, size, offset);
}

static int shim_truncate(sqlite3_file *base, sqlite3_int64 size) {
  struct file *file = (struct file *)base;
  note_change(file->name, size, -1);
  if (io_strikes(0)) return SQLITE_IOERR_TRUNCATE;
  return file->real->pMethods->xTruncate(file->real, size);
}

/* The function does not really sync the file, because the machine does not lose power. */
static int shim_sync(sqlite3_file *base, int flags) {
  (void)flags;
  if (io_strikes(0)) return SQLITE_IOERR_FSYNC;
  forget_changes(((struct file *)base)->name);
  return SQLITE_OK;
}

static int shim_size(sqlite3_file *base, sqlite3_int64 *size) {
  sqlite3_file *real = ((struct file *)base)->real;
  if (io_strikes(0)) return SQLITE_IOERR_FSTAT;
  return real->pMethods->xFileSize(real, size);
}

static int shim_lock(sqlite3_file *base, int level) {
  sqlite3_file *real = ((struct file *)base)->real;
  if (io_strikes(0)) return SQLITE_IOERR_LOCK;
  return real->pMethods->xLock(real, level);
}

static int shim_unlock(sqlite3_file *base, int level) {
  sqlite3_file *real = ((struct file *)base)->real;
  int struck = io_strikes(0), rc = real->pMethods->xUnlock(real, level);
  return struck ? SQLITE_IOERR_UNLOCK : rc;
}

static int shim_reserved(sqlite3_file *base, int *result) {
  sqlite3_file *real = ((struct file *)base)->real;
  if (io_strikes(0)) return SQLITE_IOERR_CHECKRESERVEDLOCK;
  return real->pMethods->xCheckReservedLock(real, result);
}

static int shim_control(sqlite3_file *base, int what, void *argument) {
  sqlite3_file *real = ((struct file *)base)->real;
  if (what == SQLITE_FCNTL_HAS_MOVED && io_strikes(0)) return SQLITE_IOERR;
  return real->pMethods->xFileControl(real, what, argument);
}

static int shim_sector(sqlite3_file *base) {
  sqlite3_file *real = ((struct file *)base)->real;
  return real->pMethods->xSectorSize(real);
}

static int shim_traits(sqlite3_file *base) {
  (void)base;
  return 0; /* 0 makes SQLite assume the fewest guarantees of the file system */
}

static const sqlite3_io_methods methods = {
    .iVersion = 1,
    .xClose = shim_close,
    .xRead = shim_read,
    .xWrite = shim_write,
    .xTruncate = shim_truncate,
    .xSync = shim_sync,
    .xFileSize = shim_size,
    .xLock = shim_lock,
    .xUnlock = shim_unlock,
    .xCheckReservedLock = shim_reserved,
    .xFileControl = shim_control,
    .xSectorSize = shim_sector,
    .xDeviceCharacteristics = shim_traits,
};

static int shim_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags, int *out) {
  struct file *file = (struct file *)base;
  (void)vfs;
  *file = (struct file){{0}, (char *)name, (sqlite3_file *)(file + 1)};
  if (io_strikes(0)) return SQLITE_CANTOPEN;
  int rc = system_vfs->xOpen(system_vfs, name, file->real, flags, out);
  if (rc != SQLITE_OK) return rc;
  file->base.pMethods = &methods;
  open_files++;
  return SQLITE_OK;
}

static int shim_delete(sqlite3_vfs *vfs, const char *name, int sync) {
  (void)vfs;
  if (io_strikes(0)) return SQLITE_IOERR_DELETE;
  forget_changes(name);
  return system_vfs->xDelete(system_vfs, name, sync);
}

static int shim_access(sqlite3_vfs *vfs, const char *name, int flags, int *result) {
  (void)vfs;
  if (io_strikes(0)) return SQLITE_IOERR_ACCESS;
  return system_vfs->xAccess(system_vfs, name, flags, result);
}

static int shim_time(sqlite3_vfs *vfs, sqlite3_int64 *now) {
  (void)vfs;
  int rc = system_vfs->xCurrentTimeInt64(system_vfs, now);
  if (mode == CLOCK && countdown) *now -= (sqlite3_int64)(86400000.0 * ++backwards);
  return rc;
}

/* Makes the shim the default VFS. The program must call this function after each
** sqlite3_initialize(). */
/* The shim has the name of the system's own VFS, because the ledger opens files with this VFS by
** name. */
static void register_shim(void) {
  sqlite3_vfs_unregister(&shim);
  system_vfs = sqlite3_vfs_find("unix");
  shim = *system_vfs;
  shim.szOsFile += (int)sizeof(struct file);
  shim.xOpen = shim_open;
  shim.xDelete = shim_delete;
  shim.xAccess = shim_access;
  shim.xCurrentTimeInt64 = shim_time;
  sqlite3_vfs_register(&shim, 1);
}

/* ---- the story ------------------------------------------------------------------------------- */

#define BASE 21 /* number of charges before the statement */

static const char set_up[] =
    "CREATE TABLE t(u, k, x, v); INSERT INTO t(rowid, u, k, x, v) VALUES (1, 1, 'p', 1, '[1,2]'),"
    " (20000, 1, 'p', 2, '[0,1]'), (40000, 2, 'p', 3, '[3,0]'), (60000, 3, 'q', 4, '[0,0]');"
    "CREATE TABLE w(y, v); INSERT INTO w VALUES (1, '[1,1]')";

static const char set_up_ledger[] =
    "SELECT dp_init(); SELECT dp_protect('t', 'u');"
    "SELECT dp_tier('a', 1e6, 1e9, 1e-6, 'rdp', 1e-7);"
    "SELECT dp_tier('b', 5e5, 1e9, 1e-6, 'rdp', 1e-7); SELECT dp_tier('c', 2e5, 1e9, 1e-6, 'rdp', "
    "1e-7);"
    "SELECT dp_sum('b', x, 100, 'old') FROM t;"
    "SELECT dp_group_count('b', k, 2, '{\"name\":\"keys\",\"keys\":[\"p\",\"q\"]}') FROM t;"
    "SELECT dp_group_count('a', k, 1, 'private') FROM t;"
    "SELECT dp_release('b', 'vec_sum', 'SELECT v FROM t', "
    "'{\"name\":\"vector\",\"dim\":2,\"clip\":100}');"
    "SELECT dp_merge('b', dp_states(dp_partial('vec_sum', 'SELECT v FROM t', "
    "'{\"dim\":2,\"clip\":100}')), "
    "'merged');"
    "SELECT dp_choice('a', k, '[\"p\",\"q\"]', '{\"name\":\"symbol\",\"weight\":1e-4}') FROM t;"
    "SELECT dp_sum('a', x, 1, "
    "'{\"name\":\"laplace\",\"mechanism\":\"laplace\",\"weight\":1e-3}')"
    " FROM t;"
    "SELECT dp_sum('a', x, 100, 'gap') FROM t; SELECT dp_diffuse('gap', 'b');"
    "SELECT dp_tier('late', 7e5, 1e9, 1e-6, 'rdp', 1e-7);"
    "SELECT dp_release('b', 'group_count', 'SELECT k, x FROM t', '{\"name\":\"tables\",\"clip\":3,"
    "\"ways\":2,\"keys\":{\"k\":[\"p\",\"q\"],\"x\":[1,2,4]}}')";

struct chapter {
  const char *sql;
  double answer; /* expected answer; NAN: any answer */
  int charges;   /* expected number of charges after a success */
  int never;     /* 1: the statement must fail */
  int fresh;     /* 1: there is no ledger before the statement */
};

#define ANY NAN
static const struct chapter story[] = {
    {0, ANY, BASE, 0, 0}, /* this chapter loads the extension */
    {"SELECT dp_init()", ANY, 0, 0, 1},
    {"SELECT dp_init('{\"path\":\"other.ledger\","
     "\"unit\":\"u\",\"adjacency\":\"replace\"}')",
     ANY, 0, 0, 1},
    {"SELECT dp_sum('a', x, 100) FROM t", ANY, 0, 1, 1},
    {"SELECT CASE WHEN dp_init('{\"protects\":\"row\",\"adjacency\":\"replace\"}') IS NOT NULL"
     " AND dp_protect('t') IS NOT NULL AND dp_public('w') IS NOT NULL"
     " AND dp_tier('a', 1e6, 1e9, 1e-6) = 'a' THEN"
     " json_array_length(dp_release('a', 'sgd', 'SELECT x, v FROM t; SELECT y, v FROM w',"
     " '{\"name\":\"new\",\"loss\":\"huber\",\"n\":4,\"public_rows\":1,\"dim\":2,\"clip\":3,"
     "\"radius\":1,\"threshold\":1}')) + json_array_length(dp_sgd_profile('new'))"
     " + (dp_predict('new', 'a', '[1,2]') > -9) END",
     8, 1, 0, 1},
    /* A question that several threads read, and one whose units are evaluated one by one. */
    {"PRAGMA threads = 2; SELECT CASE WHEN dp_init() IS NOT NULL AND dp_protect('t', 'u') IS NOT "
     "NULL AND dp_tier('a', 1e6, 1e9, 1e-6) = 'a' THEN"
     " dp_release('a', 'sum', 'SELECT x FROM t WHERE x < 9', '{\"clip\":100,\"name\":\"new\"}') "
     "END",
     10, 1, 0, 1},
    {"PRAGMA threads = 2; SELECT CASE WHEN dp_init() IS NOT NULL AND dp_protect('t', 'u') IS NOT "
     "NULL AND dp_tier('a', 1e6, 1e9, 1e-6) = 'a' THEN"
     " dp_release('a', 'sum', 'SELECT sum(x) FROM t', '{\"clip\":100,\"name\":\"new\"}') END",
     10, 1, 0, 1},
    {"SELECT dp_init()", ANY, BASE, 0, 0},
    {"SELECT dp_init('{\"path\":\"a.db-ledger\"}')", ANY, BASE, 0, 0},
    {"SELECT dp_tier('d', 1e3, 2000, 1e-6)", ANY, BASE, 0, 0},
    {"SELECT dp_tier('z', 8e5, 1e9, 1e-6, 'rdp', 1e-7)", ANY, BASE + 6, 0, 0},
    {"SELECT dp_tier('g', 1e-3, 1, 1e-6, 'gdp')", ANY, BASE, 0, 0},
    {"SELECT dp_tier('y', 1e-3, 1, 0, 'pure')", ANY, BASE, 0, 0},
    {"SELECT dp_count('a', x, 2, 'new') FROM t", 4, BASE + 1, 0, 0},
    {"SELECT dp_count_distinct('a', 'new') FROM t", 3, BASE + 1, 0, 0},
    {"SELECT dp_sum('a', x, 100, 'new') FROM t", 10, BASE + 1, 0, 0},
    {"SELECT dp_sum('c', x, 100) FROM t", 10, BASE + 4, 0, 0},
    {"SELECT dp_avg('a', x, 0, 10, 'new') FROM t", 2.83, BASE + 1, 0, 0},
    {"SELECT dp_stddev('a', x, 0, 10, 'new') FROM t", 1.06, BASE + 1, 0, 0},
    {"SELECT dp_release('a', 'quantile', 'SELECT x FROM t', '{\"name\":\"new\",\"bins\":16,"
     "\"q\":[0.1,0.5],\"lo\":0,\"hi\":10}') ->> 1",
     3.1, BASE + 1, 0, 0},
    {"SELECT dp_median('a', x, 0, 8, '{\"name\":\"new\",\"bins\":16}') FROM t", 2.75, BASE + 1, 0,
     0},
    {"SELECT dp_median('a', x, 0, 8, '{\"name\":\"new\",\"bins\":16,"
     "\"mechanism\":\"exponential\",\"weight\":4e-4}') FROM t",
     3.25, BASE + 1, 0, 0},
    {"SELECT dp_release('a', 'histogram', 'SELECT x FROM t', '{\"name\":\"new\",\"clip\":2,"
     "\"lo\":0,\"hi\":8,\"bins\":4}') ->> 0",
     1, BASE + 1, 0, 0},
    {"SELECT dp_release('a', 'vec_sum', 'SELECT v FROM t', '{\"name\":\"new\",\"dim\":2,"
     "\"clip\":100}') ->> 1",
     3, BASE + 1, 0, 0},
    {"SELECT dp_release('a', 'vec_avg', 'SELECT v FROM t', '{\"name\":\"new\",\"dim\":2,"
     "\"clip\":100}') ->> 0",
     1.17, BASE + 1, 0, 0},
    {"SELECT dp_release('a', 'group_count', 'SELECT k FROM t', '{\"name\":\"new\","
     "\"keys\":[\"p\",\"q\",\"r\"],\"clip\":2}') ->> 'p'",
     3, BASE + 1, 0, 0},
    {"SELECT dp_release('a', 'group_count', 'SELECT k FROM t', '{\"name\":\"new\","
     "\"clip\":1}') ->> 'p'",
     2, BASE + 1, 0, 0},
    {"SELECT dp_release('a', 'group_sum', 'SELECT k, x FROM t', '{\"name\":\"new\","
     "\"clip\":100}') ->> 'p'",
     6, BASE + 1, 0, 0},
    {"SELECT dp_release('a', 'group_avg', 'SELECT k, x FROM t', '{\"name\":\"new\","
     "\"keys\":[\"p\",\"q\"],\"lo\":0,\"hi\":10}') ->> 'q'",
     4, BASE + 1, 0, 0},
    {"SELECT dp_release('a', 'group_count', 'SELECT k, x FROM t', '{\"name\":\"new\",\"clip\":3,"
     "\"ways\":2,\"keys\":{\"k\":[\"p\",\"q\"],\"x\":[1,2,4]}}') ->> '$.\"{}\"'",
     3, BASE + 1, 0, 0},
    {"SELECT dp_ou_sum('a', x, 100, 1e6, '{\"name\":\"new\",\"centre\":3}') FROM t", 10, BASE + 1,
     0, 0},
    {"SELECT dp_release('a', 'ou_vec_sum', 'SELECT v FROM t', '{\"name\":\"new\",\"dim\":2,"
     "\"clip\":100,\"radius\":1000000.0}') ->> 0",
     4, BASE + 1, 0, 0},
    {"SELECT dp_sum('a', x, 1, '{\"name\":\"new\",\"mechanism\":\"laplace\",\"weight\":1e-3}')"
     " FROM t",
     3, BASE + 1, 0, 0},
    {"SELECT dp_choice('a', k, '[\"p\",\"q\"]', '{\"name\":\"new\",\"weight\":1e-4}') = 'p' "
     "FROM t",
     1, BASE + 1, 0, 0},
    {"SELECT dp_release('a', 'sum', 'SELECT x FROM t', '{\"clip\":100,\"name\":\"new\"}')", 10,
     BASE + 1, 0, 0},
    {"SELECT dp_release('a', 'group_sum', 'SELECT k, x FROM t', "
     "'{\"clip\":100,\"name\":\"new\"}') ->> 'p'",
     6, BASE + 1, 0, 0},
    {"PRAGMA threads = 2; SELECT dp_release('a', 'sum', 'SELECT x FROM t WHERE x < 9',"
     " '{\"clip\":100,\"name\":\"new\"}')",
     10, BASE + 1, 0, 0},
    {"PRAGMA threads = 1; SELECT dp_release('a', 'group_sum', 'SELECT k, x FROM t',"
     " '{\"clip\":100,\"name\":\"new\"}') ->> 'p'",
     6, BASE + 1, 0, 0},
    {"SELECT dp_merge('a', dp_states(s), '{\"name\":\"new\",\"shards\":[\"p\",\"q\"]}') FROM"
     " (SELECT dp_partial('sum', 'SELECT x FROM t', '{\"clip\":100,\"shard\":\"p\"}') AS s"
     " UNION ALL SELECT dp_partial('sum', 'SELECT x FROM t', '{\"clip\":100,\"shard\":\"q\"}'))",
     20, BASE + 1, 0, 0},
    {"SELECT dp_merge('a', dp_states(dp_partial('group_sum', 'SELECT k, x FROM t', "
     "'{\"clip\":100}')), 'new')"
     " ->> 'p'",
     6, BASE + 1, 0, 0},
    {"SELECT dp_merge('a', dp_states(dp_partial('group_sum', 'SELECT k, sum(x) FROM t GROUP BY k',"
     " '{\"clip\":100,\"whole_units\":true,\"shard\":\"p\"}')),"
     " '{\"name\":\"new\",\"shards\":1}') ->> 'p'",
     6, BASE + 1, 0, 0},
    {"SELECT dp_merge('a', dp_states(dp_partial('vec_sum', 'SELECT v FROM t', "
     "'{\"dim\":2,\"clip\":100}')),"
     " '{\"name\":\"merged\",\"refine\":true}') ->> 0",
     4, BASE + 1, 0, 0},
    {"SELECT dp_merge('a', dp_states(dp_partial('sum', 'SELECT x FROM t', '{\"clip\":100}')), "
     "'{\"clip\":99}')",
     ANY, BASE, 1, 0},
    {"SELECT dp_merge('a', dp_states(dp_partial('sum', 'SELECT x FROM t', "
     "'{\"clip\":100,\"shard\":\"p\"}')), '{\"shards\":2}')",
     ANY, BASE, 1, 0},
    {"SELECT dp_release('a', 'sum', 'SELECT x, u FROM t', '{\"clip\":100}')", ANY, BASE, 1, 0},
    {"SELECT dp_sum('a', x, 3, u) FROM t", ANY, BASE, 1, 0}, /* u is no name */
    /* Replays an existing release. */
    {"SELECT dp_sum('b', x, 100, 'old') FROM t", 10, BASE, 0, 0},
    {"SELECT dp_sum('b', x, 99, 'old') FROM t", ANY, BASE, 1, 0},
    {"SELECT dp_sum('a', x, 100, '{\"name\":\"old\",\"refine\":true}') FROM t", 10, BASE + 1, 0, 0},
    {"SELECT dp_release('a', 'vec_sum', 'SELECT v FROM t', '{\"name\":\"vector\","
     "\"refine\":true,\"dim\":2,\"clip\":100}') ->> 0",
     4, BASE + 1, 0, 0},
    /* A batch of one release with its diffusion. After most failures, the same batch can run again
    ** without dp_discard(). */
    {"SELECT ifnull(dp_batch('[{\"tier\":\"a\",\"kind\":\"sum\",\"sql\":\"SELECT x FROM t\","
     "\"options\":{\"name\":\"new\",\"clip\":100},\"diffuse\":[\"b\"]}]') ->> '$[0].answer',"
     " abs(-9223372036854775807 - 1))",
     10, BASE + 3, 0, 0},
    {"SELECT dp_diffuse('old', 'c')", 10, BASE + 1, 0, 0},
    {"SELECT dp_diffuse('keys', 'c') ->> 'p'", 3, BASE + 1, 0, 0},
    {"SELECT dp_diffuse('tables', 'c') ->> '$.\"{}\"'", 3, BASE + 1, 0, 0},
    {"SELECT dp_diffuse('private', 'c') ->> 'p'", 2, BASE + 4, 0, 0},
    {"SELECT dp_diffuse('laplace', 'b')", 3, BASE + 2, 0, 0},
    {"SELECT dp_diffuse('gap', 'late')", 10, BASE + 1, 0, 0},
    {"SELECT dp_mix('symbol', 'b', '[[\"p\",\"p\",0.75],[\"p\",\"q\",0.25],[\"q\",\"p\",1]]') IN "
     "('p', 'q')",
     1, BASE + 2, 0, 0},
    {"SELECT dp_mix('symbol', 'b', '[[\"p\",\"p\",0.75],[\"p\",\"q\",0.25],[\"r\",\"p\",1]]')", ANY,
     BASE, 1, 0}, /* the kernel has no row for q */
    {"SELECT dp_mix('symbol', 'a', '[[\"p\",\"p\",1],[\"q\",\"q\",1]]')", ANY, BASE, 1, 0},
    {"SELECT dp_discard('old')", ANY, BASE, 0, 0},
    {"SELECT dp_interval('keys', 'b', 'p', 0.9) ->> 0", 3, BASE, 0, 0},
    {"SELECT sum(value) FROM dp_table('tables', 'b', 'x', 'K')", 3, BASE, 0, 0},
    {"SELECT value FROM dp_table('tables', 'b', 'nobody')", ANY, BASE, 1, 0},
    {"SELECT dp_plan('c', 'avg', 1, '{\"lo\":0,\"hi\":1}') ->> '$.weight'", 1, BASE, 0, 0},
    {"SELECT "
     "dp_plan('[{\"tier\":\"a\",\"kind\":\"count\",\"clip\":2},"
     "{\"tier\":\"b\",\"kind\":\"sum\",\"clip\":2}]') ->> '$.plans[0].weight'",
     1, BASE, 0, 0},
    {"SELECT dp_plan('a', 'count', 2, '{\"clip\":2,\"half_width\":0.01}') ->> '$.half_width'"
     " < 0.010001",
     1, BASE, 0, 0},
    {"SELECT dp_plan('a', 'group_count', 1, '{\"clip\":1}') ->> '$.weight'", 1, BASE, 0, 0},
    {"SELECT dp_plan('a', 'unheard of', 1)", ANY, BASE, 1, 0},
    {"SELECT dp_tier('b', 5e5, 1e9, 1e-6, 'rdp', 1e-7) = 'b'", 1, BASE, 0, 0},
    {"SELECT dp_sum('nowhere', x, 100) FROM t", ANY, BASE, 1, 0},
    {"SELECT dp_sum('a', x, 100, '{\"nothing\":1}') FROM t", ANY, BASE, 1, 0},
    {"SELECT dp_interval('old', 'b', 'nobody', 0.9)", ANY, BASE, 1, 0},
    {"SELECT dp_exposure('a, b,c') ->> '$.delta'", 1e-6, BASE, 0, 0},
    {"SELECT length(dp_certificate()) > 1000", 1, BASE, 0, 0},
    {"SELECT dp_verify() = 'ok'", 1, BASE, 0, 0},
    {"SELECT (SELECT count(*) FROM dp_tier) + (SELECT count(*) FROM dp_release WHERE name = 'old')"
     " + (SELECT count(*) FROM dp_publication) + (SELECT count(*) FROM dp_value WHERE key = 'p')"
     " + (SELECT count(*) FROM dp_budget)",
     21, BASE, 0, 0},
    {"SELECT dp_kernel_delta(a, b, 0.5, 1, 0.1) FROM (SELECT column1 AS a, column2 AS b FROM"
     " (VALUES (1, 'x'), (1, 'y'), (2.5, 'y'), (2.5, x'00'), ('', ''), ('', 'x')))",
     0.1, BASE, 0, 0},
    {"SELECT dp_kernel_dobrushin(1, k, 0.3) FROM t", ANY, BASE, 1, 0},
    {"SELECT delta FROM dp_amplify('dobrushin', 0.5, 1, 1e-6)", 5e-7, BASE, 0, 0},
    {"SELECT delta FROM dp_amplify('unheard of', 0.5, 1, 1e-6)", ANY, BASE, 1, 0},
    {"SELECT (SELECT count(*) FROM dp_rdp) / 4 - (SELECT count(hash) FROM dp_charge)", 114 - BASE,
     BASE, 0, 0},
};
#define CHAPTERS ((int)(sizeof story / sizeof *story))

/* ---- one run --------------------------------------------------------------------------------- */

/* Names of files: [0] is in use, and [1] is a copy from before the statement. */
static char database[2][200], ledger[2][200], other[200], journal[200];
static const struct chapter *chapter;
static long moment;

static void check(int holds, const char *what, const char *text) {
  if (holds) return;
  printf("at failure %ld of \"%s\": %s: %s\n", moment, chapter->sql ? chapter->sql : "load", what,
         text ? text : "(null)");
  fflush(stdout);
  _exit(1);
}

static void copy_file(const char *from, const char *to) {
  static char bytes[1 << 22];
  int in = open(from, O_RDONLY), out = open(to, O_CREAT | O_TRUNC | O_WRONLY, 0600);
  ssize_t size = in < 0 ? -1 : read(in, bytes, sizeof bytes);
  check(size > 0 && out >= 0 && write(out, bytes, (size_t)size) == size, "copy", from);
  close(in);
  close(out);
}

static int text_of(void *text, int columns, char **values, char **names) {
  (void)columns;
  (void)names;
  sqlite3_snprintf(400, text, "%s", values[0] ? values[0] : "NULL");
  return 0;
}

static int get(sqlite3 *db, const char *sql, char text[400]) {
  text[0] = 0;
  return sqlite3_exec(db, sql, text_of, text, 0);
}

static int number(sqlite3 *db, const char *sql) {
  char text[400] = "";
  check(get(db, sql, text) == SQLITE_OK, sql, sqlite3_errmsg(db));
  return atoi(text);
}

static sqlite3 *open_host(int load) {
  sqlite3 *db;
  check(sqlite3_open(database[0], &db) == SQLITE_OK, "open", "");
  if (load) check(sqlite3_diffuse_init(db, 0, 0) == SQLITE_OK, "load", "");
  return db;
}

static void start_over(void) {
  sqlite3_initialize();
  register_shim();
  unlink(journal);
  unlink(other);
  if (chapter->fresh) {
    unlink(ledger[0]);
    unlink(database[0]);
    sqlite3 *db = open_host(0);
    check(sqlite3_exec(db, set_up, 0, 0, 0) == SQLITE_OK, "set up", sqlite3_errmsg(db));
    sqlite3_close(db);
  } else {
    copy_file(database[1], database[0]);
    copy_file(ledger[1], ledger[0]);
  }
}

/* Checks I2 and returns the number of charges. If there was no ledger before the statement, there
** may still be no ledger. */
static int charges_of_sound(sqlite3 *db) {
  char text[400];
  int rc = get(db, "SELECT dp_verify()", text);
  if (chapter->fresh && rc != SQLITE_OK) {
    /* A statement that does more than create a ledger can fail at its end, after it has created the
    ** ledger. */
    int several = strstr(chapter->sql, "dp_tier") != 0;
    int may = mode == KILL || mode == POWER || mode == IO || from_then_on || several;
    if (may &&
        /* Opening the file has just rolled back the creation of the ledger. */
        strstr(sqlite3_errmsg(db), "is not a privacy ledger"))
      get(db, "SELECT dp_verify()", text);
    const char *message = sqlite3_errmsg(db);
    /* Three events can leave a marker without a ledger: the process ends between the two commits,
    ** the disk stays full, or unlocking fails after the commit of the marker. */
    int missing = strstr(message, "is missing (bring the right one along") != 0;
    check(strstr(message, "no privacy ledger") || (missing && may), "dp_verify()", message);
    if (missing) number(db, "DROP TABLE dp_ledger_id");
    return 0;
  }
  check(strcmp(text, "ok") == 0, "dp_verify()", text[0] ? text : sqlite3_errmsg(db));
  check(number(db, "SELECT count(*) FROM dp_value v WHERE NOT EXISTS"
                   " (SELECT 1 FROM dp_charge c WHERE c.release = v.release)") == 0,
        "a value without a charge", "");
  return number(db, "SELECT count(*) FROM dp_charge");
}

static void check_answer(const char *answer) {
  check(!chapter->never, "must fail, not give", answer);
  if (!isnan(chapter->answer)) {
    check(fabs(atof(answer) - chapter->answer) < (chapter->answer < 1 ? 1e-7 : 1.5), "wrong answer",
          answer);
  } else if (strcmp(answer, "NULL") == 0 || !answer[0]) {
    check(0, "no answer", answer);
  }
}

/* Checks I1 after a failure. The message must be a sentence, and the statement must have all of its
** charges or none. */
static void check_refusal(int charges, int before, const char *message) {
  int speechless = mode <= OWN && from_then_on; /* SQLite has no memory for the text of the error */
  check(message[0] && strcmp(message, "not an error") != 0 &&
            strcmp(message, "unknown error") != 0 &&
            (speechless || strcmp(message, "SQL logic error") != 0),
        "a sentence", message);
  check(charges == before || charges == chapter->charges, "all charges or none", message);
}

/* Checks I3 and I4: runs the statement again, without failures. `given` is the answer of the first
** run, or null if this run failed. */
static void check_usable(sqlite3 *db, const char *given) {
  char again[400], after[400];
  if (!chapter->sql) return;
  int rc = get(db, chapter->sql, again);
  if (chapter->never) {
    check(rc != SQLITE_OK, "must fail", again);
    return;
  }
  if (rc != SQLITE_OK && !given) {
    const char *message = sqlite3_errmsg(db);
    if (strstr(message, "not finished") || strstr(message, "failed and its charge stays") ||
        strstr(message, "integer overflow")) { /* a batch in which the release failed */
      int is_new = strstr(chapter->sql, "new") != 0;
      check(get(db,
                is_new                               ? "SELECT dp_discard('new')"
                : strstr(chapter->sql, "\"vector\"") ? "SELECT dp_discard('vector')"
                : strstr(chapter->sql, "\"merged\"") ? "SELECT dp_discard('merged')"
                                                     : "SELECT dp_discard('old')",
                again) == SQLITE_OK,
            "dp_discard", sqlite3_errmsg(db));
      rc = get(db, chapter->sql, again);
    } else if (chapter->fresh && strstr(message, "is not a privacy ledger")) {
      /* Opening the file has just rolled back the creation of the ledger. */
      rc = get(db, chapter->sql, again);
    } else if (strstr(chapter->sql, "dp_discard")) {
      /* The first run has discarded the release already. */
      check(strstr(message, "unknown release") != 0, "again", message);
      return;
    }
  }
  check(rc == SQLITE_OK || (given && strstr(chapter->sql, "dp_discard")), "again",
        sqlite3_errmsg(db));
  if (rc == SQLITE_OK) check_answer(again);
  if (given && rc == SQLITE_OK && strstr(chapter->sql, "new"))
    check(strcmp(given, again) == 0, "another answer than before", again);
  if (!chapter->fresh)
    check(get(db, "SELECT dp_count('a', x, 2, 'after') FROM t", after) == SQLITE_OK &&
              fabs(atof(after) - 4) < 0.5,
          "a release afterwards", after[0] ? after : sqlite3_errmsg(db));
  charges_of_sound(db);
}

static void check_nothing_left(long before) {
  sqlite3_shutdown();
  check(open_files == 0, "files left open", "");
  check(outstanding == before, "memory left over", "");
}

/* Runs one statement with a failure in this process. Returns 1 if a call failed. */
static int run_here(void) {
  char answer[400] = "", message[400] = "";
  start_over();
  long before = outstanding;
  sqlite3_shutdown();
  before = outstanding;
  sqlite3_initialize();
  register_shim();
  int base = chapter->fresh ? 0 : BASE;
  sqlite3 *db = open_host(chapter->sql != 0);
  met = 0;
  countdown = moment;
  int rc = chapter->sql ? get(db, chapter->sql, answer) : sqlite3_diffuse_init(db, 0, 0);
  countdown = 0;
  if (rc != SQLITE_OK) sqlite3_snprintf(sizeof message, message, "%s", sqlite3_errmsg(db));
  if (chapter->sql) {
    if (rc == SQLITE_OK) check_answer(answer);
    int charges = charges_of_sound(db);
    if (rc == SQLITE_OK) check(charges == chapter->charges, "charges", answer);
    if (rc != SQLITE_OK) check_refusal(charges, base, message);
    /* Odd runs check the connection of the run. */
    if (moment & 1) check_usable(db, rc == SQLITE_OK ? answer : 0);
  }
  check(sqlite3_close(db) == SQLITE_OK, "close", sqlite3_errmsg(db));
  db = open_host(1);
  charges_of_sound(db);
  if (!(moment & 1) || !chapter->sql)
    check_usable(db, rc == SQLITE_OK ? answer : 0); /* Even runs check a new connection. */
  check(sqlite3_close(db) == SQLITE_OK, "close", "");
  check_nothing_left(before);
  return met;
}

/* Runs one statement in a child process that is killed at its n-th call of the file system. A pipe
** carries the answer of the child. Returns 1 if the child was killed. */
static int run_there(void) {
  char answer[400] = "";
  int ends[2], status;
  start_over();
  sqlite3_shutdown();
  check(pipe(ends) == 0, "pipe", "");
  pid_t child = fork();
  if (child == 0) {
    srand((unsigned)moment);
    sqlite3_initialize();
    register_shim();
    sqlite3 *db = open_host(1);
    countdown = moment;
    if (get(db, chapter->sql, answer) == SQLITE_OK && write(ends[1], answer, strlen(answer)) < 0)
      _exit(3);
    sqlite3_close(db);
    _exit(0);
  }
  close(ends[1]);
  ssize_t size = read(ends[0], answer, sizeof answer - 1);
  close(ends[0]);
  check(child > 0 && waitpid(child, &status, 0) == child, "wait", "");
  check(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0, "the process",
        "");
  sqlite3_initialize();
  register_shim();
  sqlite3 *db = open_host(1);
  int charges = charges_of_sound(db), base = chapter->fresh ? 0 : BASE;
  if (size > 0) check_answer(answer);
  if (size > 0) check(charges == chapter->charges, "the charge of an answer is lost", answer);
  check(charges == base || charges == chapter->charges, "all charges or none", "");
  check_usable(db, size > 0 ? answer : 0);
  check(sqlite3_close(db) == SQLITE_OK, "close", "");
  sqlite3_shutdown();
  return WIFSIGNALED(status);
}

/* ---- all runs -------------------------------------------------------------------------------- */

static void make_template(void) {
  sqlite3_initialize();
  register_shim();
  chapter = &story[0];
  unlink(database[0]);
  unlink(ledger[0]);
  sqlite3 *db = open_host(1);
  check(sqlite3_exec(db, set_up, 0, 0, 0) == SQLITE_OK, "set up", sqlite3_errmsg(db));
  check(sqlite3_exec(db, set_up_ledger, 0, 0, 0) == SQLITE_OK, "set up", sqlite3_errmsg(db));
  check(number(db, "SELECT count(*) FROM dp_charge") == BASE, "charges", "");
  sqlite3_close(db);
  copy_file(database[0], database[1]);
  copy_file(ledger[0], ledger[1]);
  sqlite3_shutdown();
}

static int mode_of(const char *name) {
  static const char *const names[] = {"memory", "own",  "random", "io",
                                      "full",   "kill", "power",  "clock"};
  for (int i = 0; i < 8; i++) {
    size_t length = strlen(names[i]);
    if (strncmp(name, names[i], length) != 0) continue;
    mode = (enum mode)i;
    from_then_on = strcmp(name + length, "-on") == 0;
    return 1;
  }
  return 0;
}

/* Changes the ledger by a statement. Then runs dp_verify() many times, each time with another
** failing allocation. dp_verify() must never return 'ok'. */
static int verify_changed(const char *sql) {
  sqlite3 *db = NULL;
  check(sqlite3_initialize() == SQLITE_OK && sqlite3_open(ledger[1], &db) == SQLITE_OK, "opens",
        sql);
  check(sqlite3_exec(db, sql, 0, 0, 0) == SQLITE_OK && sqlite3_changes(db) > 0, "changes the books",
        sql);
  sqlite3_close(db);
  sqlite3_shutdown();
  chapter = &story[CHAPTERS - 1];
  mode = OWN;
  moment = 0;
  do {
    char answer[400] = "";
    moment++;
    start_over();
    db = open_host(1);
    met = 0;
    countdown = moment;
    int rc = get(db, "SELECT dp_verify()", answer);
    countdown = 0;
    check(rc != SQLITE_OK || strcmp(answer, "ok") != 0, "changed books do not verify", sql);
    sqlite3_close(db);
    sqlite3_shutdown();
  } while (met);
  printf("%ld\n", moment - 1);
  return 0;
}

/* ---- calls of all functions ------------------------------------------------------------------ */

/* What a statement gave: the number of its values, and a hash of their texts. */
struct given {
  long count;
  unsigned long hash;
};

static int take_row(void *context, int columns, char **values, char **names) {
  struct given *given = context;
  (void)names;
  for (int i = 0; i < columns; i++) {
    given->count++;
    for (const char *c = values[i] ? values[i] : "\001"; *c; c++)
      given->hash = (given->hash ^ (unsigned char)*c) * 1099511628211UL;
    given->hash = given->hash * 1099511628211UL + 1;
  }
  return 0;
}

/* Returns whether two files have the same content. */
static int same_files(const char *one, const char *two) {
  static char bytes[2][65536];
  FILE *files[2] = {fopen(one, "rb"), fopen(two, "rb")};
  int same = files[0] && files[1];
  for (size_t size = 1; same && size > 0;) {
    size = fread(bytes[0], 1, sizeof *bytes, files[0]);
    same = size == fread(bytes[1], 1, sizeof *bytes, files[1]) &&
           memcmp(bytes[0], bytes[1], size) == 0;
  }
  for (int i = 0; i < 2; i++) {
    if (files[i]) fclose(files[i]);
  }
  return same;
}

/* Runs a statement in a new copy of the template. `failing` is the call that fails, or 0. A ledger
** that has not changed at all is as sound as the template's, and is not read again. */
static int run_call(const char *sql, long failing, struct given *given) {
  *given = (struct given){0, 0};
  start_over();
  sqlite3 *db = open_host(1);
  met = 0;
  countdown = failing;
  int rc = sqlite3_exec(db, sql, take_row, given, 0);
  countdown = 0;
  if (!failing) check(rc == SQLITE_OK, sql, sqlite3_errmsg(db));
  const char *message = sqlite3_errmsg(db);
  check(rc == SQLITE_OK || (message[0] && strcmp(message, "not an error") != 0 &&
                            strcmp(message, "unknown error") != 0),
        "a sentence", message);
  check(sqlite3_close(db) == SQLITE_OK, "close", sql);
  struct stat left;
  int pending = stat(journal, &left) == 0 && left.st_size > 0;
  if (chapter->fresh || !failing || pending || !same_files(ledger[0], ledger[1]) ||
      !same_files(database[0], database[1])) {
    db = open_host(1);
    charges_of_sound(db);
    check(sqlite3_close(db) == SQLITE_OK, "close", sql);
  }
  sqlite3_shutdown();
  check(open_files == 0, "files left open", sql);
  return rc;
}

/* Lets allocations of one statement fail. Returns how many failed. The line may begin with + if the
** statement starts without a ledger, and then with ~ if it draws noise. */
static long try_call(const char *line, long step) {
  struct given right, now;
  const char *sql = line + strspn(line, "+~");
  int fresh = *line == '+', draws = sql > line && sql[-1] == '~';
  struct chapter call = {sql, ANY, BASE, 0, fresh};
  long failed = 0;
  chapter = &call;
  moment = 0;
  run_call(sql, 0, &right);
  check(right.count > 0, "no rows", sql);
  for (moment = 1;; moment += 1 + (step ? moment / step : 0)) {
    int rc = run_call(sql, moment, &now);
    if (!met) return failed;
    failed++;
    if (rc != SQLITE_OK) continue;
    check(now.count == right.count, "rows are missing", sql);
    check(draws || now.hash == right.hash, "other rows", sql);
  }
}

static int try_calls(const char *path, long step) {
  static char line[10000];
  FILE *file = fopen(path, "r");
  mode = MEMORY;
  while (file && fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = 0;
    printf("%ld %s\n", try_call(line, step), line);
  }
  return !file || fclose(file) != 0;
}

int main(int argc, char **argv) {
  int changed = argc == 4 && strcmp(argv[2], "changed") == 0;
  int calls = argc == 5 && strcmp(argv[2], "calls") == 0;
  if (argc < 4 || (!changed && !calls && !mode_of(argv[2]))) return 2;
  long step = atol(argv[3]), survived = 0;
  snprintf(database[0], 200, "%s/a.db", argv[1]);
  snprintf(ledger[0], 200, "%s/a.db-ledger", argv[1]);
  snprintf(database[1], 200, "%s/template.db", argv[1]);
  snprintf(ledger[1], 200, "%s/template.db-ledger", argv[1]);
  snprintf(other, 200, "%s/other.ledger", argv[1]);
  snprintf(journal, 200, "%s/a.db-ledger-journal", argv[1]);
  sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0);
  note_sqlite();
  make_template();
  if (changed) return verify_changed(argv[3]);
  if (calls) return try_calls(argv[4], step);
  for (int i = 0; i < CHAPTERS; i++) {
    int there = mode == KILL || mode == POWER;
    if ((argc > 4 && atoi(argv[4]) != i) || (there && !story[i].sql)) continue;
    chapter = &story[i];
    long here = 0;
    moment = 1 + (step ? i % 3 : 0);
    while (there ? run_there() : run_here()) {
      here++;
      moment += 1 + (step ? moment / step : 0);
    }
    printf("%6ld  %s\n", here, chapter->sql ? chapter->sql : "load");
    fflush(stdout);
    survived += here;
  }
  printf("%ld\n", survived);
  return 0;
}
