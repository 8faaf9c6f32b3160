/* os.h: what the code asks of the operating system: threads, files and locks between processes, and
** what belongs to the process. */
#ifndef DIFFUSE_OS_OS_H
#define DIFFUSE_OS_OS_H

#include <stddef.h>
#include <stdint.h>

/* ---- threads (process.c) --------------------------------------------------------------------- */

/* Threads, locks between threads, and a clock that does not jump when somebody changes the system
** time. */

#if defined(_WIN32)

struct mutex {
  void *lock; /* an SRWLOCK */
};
struct once {
  void *once; /* an INIT_ONCE */
};
struct thread {
  void *handle;
  void (*run)(void *argument);
  void *argument;
};
#define MUTEX_INITIALIZER                                                                          \
  { 0 }
#define ONCE_INITIALIZER                                                                           \
  { 0 }

#else

#include <pthread.h>

struct mutex {
  pthread_mutex_t mutex;
};
struct once {
  pthread_once_t once;
};
struct thread {
  pthread_t thread;
  void (*run)(void *argument);
  void *argument;
};
#define MUTEX_INITIALIZER                                                                          \
  { PTHREAD_MUTEX_INITIALIZER }
#define ONCE_INITIALIZER                                                                           \
  { PTHREAD_ONCE_INIT }

#endif

void mutex_lock(struct mutex *mutex);
void mutex_unlock(struct mutex *mutex);

/* Calls the function in the first call with this `once`; a concurrent call waits until it has
** returned. */
void once_run(struct once *once, void (*function)(void));

/* Starts a thread, which receives no signals: the host handles them in its own threads. Returns 0
** if it cannot be started. `thread` must not move until thread_join() has returned. */
int thread_start(struct thread *thread, void (*run)(void *argument), void *argument);
void thread_join(struct thread *thread);

/* Milliseconds since an arbitrary moment. The number never decreases. */
int64_t clock_milliseconds(void);

/* Waits for about this number of microseconds. A signal may end the wait earlier. */
void clock_sleep(unsigned microseconds);

/* ---- files (file.c) -------------------------------------------------------------------------- */

/* Files and locks between processes. All names of files are in UTF-8. The functions named
** file_ never open an existing file to read or write it: on POSIX systems, a process that closes a
** file loses all its locks on that file, even those that SQLite has taken. */

/* The name of the VFS that SQLite itself provides for the operating system. */
#if defined(_WIN32)
#define FILE_VFS "win32"
#else
#define FILE_VFS "unix"
#endif

/* 1 if the operating system lets a file be moved or deleted while SQLite has the file open. */
#if defined(_WIN32)
#define FILE_CAN_MOVE 0
#else
#define FILE_CAN_MOVE 1
#endif

/* Returns the last part of a path, after the folder and its separator. */
const char *path_name(const char *path);

int path_is_absolute(const char *path);

/* Returns whether two names in one folder may be names of the same file. */
int path_names_match(const char *a, const char *b);

/* Returns whether a file or folder of this name exists, after following links. */
int file_exists(const char *path);

/* Returns whether a regular file of this name exists and is not empty. */
int file_has_content(const char *path);

/* Returns whether both names mean the same existing file or folder. */
int file_same(const char *a, const char *b);

enum creation { FILE_REFUSED, FILE_DANGLES, FILE_EXISTS, FILE_CREATED };

/* Creates an empty file with the permissions and the owner of the file `model`, and never more
** permissions; without a model, only the owner can use it. If `path` is an empty file already,
** takes away those of its permissions that the model does not have. If it is a dangling symbolic
** link, creates nothing and returns FILE_DANGLES. On Windows an existing file never changes, and a
** new file gets the access list of `model` and belongs to the user who creates it. */
enum creation file_create(const char *path, const char *model);

/* Gives the finished file `part` the name `path` in the same folder instead, and syncs the folder.
** Returns FILE_EXISTS and changes nothing if anything has this name already, also a dangling
** link. */
enum creation file_publish(const char *part, const char *path);

void file_delete(const char *path);

/* ---- locks between processes ----------------------------------------------------------------- */

/* Each lock is an empty file of its own that exists only while the lock is held. It belongs to the
** open file, not to the process, and only one process can hold the lock of a given name. If a
** killed process leaves its lock file behind, the next one that takes the lock uses and later
** deletes it. */
#define LOCK_FILE_NONE ((intptr_t)-1)

enum lock_failure {
  LOCK_FORBIDDEN, /* the file cannot be created or opened */
  LOCK_NO_SPACE,
  LOCK_IS_FILE, /* a file that is not a lock file has that name */
  LOCK_IMPOSSIBLE
};

struct lock_error {
  enum lock_failure failure;
  /* 1: the lock file exists, but this process may not open it: its creator may be about to set its
  ** permissions. */
  int is_there;
  char text[96]; /* the message of the operating system */
};

/* Tries once to take the lock, whose file gets the permissions of the file `model`. Returns 1 and
** sets *lock, or 0 if another process holds the lock, or -1 on error. */
int lock_file_take(const char *name, const char *model, intptr_t *lock, struct lock_error *error);

/* Release the lock; after a fork(), a child forgets it instead, so that the parent keeps it. */
void lock_file_drop(intptr_t lock, const char *name);
void lock_file_forget(intptr_t lock);

/* ---- the process (process.c) ----------------------------------------------------------------- */

/* This process: whether it opened a connection or is a child of the one that did, its
** memory for large tables, and a decimal point in its numbers. */

/* ---- identity -------------------------------------------------------------------------------- */

/* Identifies a process. After a fork(), the parent and the child must not both use one connection
** to the ledger (requirement L6 in ledger/ledger.h). The process id alone is not enough, because a
** child in another PID namespace can have the same id as its parent. */
struct process {
  long pid;
  uint64_t forks; /* generations of children since the first process_remember(); 0 on macOS */
  volatile unsigned char *memory; /* a page that the kernel clears in a child; null: it cannot */
};

/* Store the identity of the calling process, and free the page. After a fork() both processes may
** call process_forget(). */
void process_remember(struct process *process);
void process_forget(struct process *process);

/* Returns whether the calling process is the one that called process_remember(). */
int process_is_same(const struct process *process);

/* ---- memory ---------------------------------------------------------------------------------- */

/* Zeroed memory for tables that the code reads in random order. A table of a million units has more
** pages of 4 KiB than the processor's address cache (TLB) can hold: half of the time of each
** look-up would be spent on finding the page. Large tables are therefore allocated in blocks of
** MEMORY_HUGE_PAGE bytes, each of which is one huge page if the operating system has such pages. */
#define MEMORY_HUGE_PAGE ((size_t)1 << 21)

/* Sets the function that returns whether `taken` bytes, which all such tables of this process use,
** are within the memory limit that the host has set for SQLite. Without this call, which must come
** before the first memory_table(), there is no limit. */
void memory_limit(int (*within)(size_t taken));

/* memory_table() allocates `size` > 0 bytes, all zero, and counts them towards the memory limit.
** Null: memory ran out, or the limit. memory_table_free() accepts null. */
void *memory_table(size_t size);
void memory_table_free(void *table, size_t size);

/* Resizes an array of the C library; `array` points to its address. Returns 1, or 0 if memory runs
** out, and then the array is as before. */
int memory_resize(void *array, size_t size);

/* Prefetches the cache line at an address for writing: PREFETCHW on x86-64, where gcc would choose
** an instruction that some processors ignore after a TLB miss. */
static inline void memory_prefetch(const void *address) {
#if defined(__x86_64__) && defined(__GNUC__)
  __asm__ volatile("prefetchw %0" : : "m"(*(const char *)address));
#else
  __builtin_prefetch(address, 1);
#endif
}

/* ---- locale ---------------------------------------------------------------------------------- */

#if defined(_WIN32)

/* The previous locale of a thread. */
struct number_locale {
  char *name; /* null if locale_plain() changed nothing */
  int per_thread;
};

#else

#include <locale.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif

struct number_locale {
  locale_t locale;
};

#endif

/* Set the locale "C" for numbers in this thread, and set the previous one again. Pairs may be
** nested. */
struct number_locale locale_plain(void);
void locale_restore(struct number_locale before);

#endif
