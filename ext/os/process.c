/* process.c: what belongs to the process (os.h): who it is, its memory, its locale, its threads and
** their clock.
** Tests: tests/ledger/test_crash.py, tests/faults/test_injection.py, tests/faults/test_calls.py,
** tests/sums/test_unit_table.c, tests/mechanism/test_noise.py,
** tests/query/test_question_threads.py, tests/attacks/test_clock.py */
#include "os/os.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)

#include <windows.h>

/* Windows has no fork(). */

void process_remember(struct process *process) {
  *process = (struct process){.pid = (long)GetCurrentProcessId()};
}

void process_forget(struct process *process) {
  (void)process;
}

int process_is_same(const struct process *process) {
  return process->pid == (long)GetCurrentProcessId();
}

#else

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- a page that is empty after a fork ------------------------------------------------------- */

#ifdef MADV_WIPEONFORK

static size_t page_size(void) {
  return (size_t)sysconf(_SC_PAGESIZE);
}

static unsigned char *page_open(void) {
  void *page = mmap(0, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return 0;
  if (madvise(page, page_size(), MADV_WIPEONFORK) == 0) return page;
  munmap(page, page_size());
  return 0;
}

static void page_close(volatile unsigned char *page) {
  if (page) munmap((void *)page, page_size());
}

#else

static unsigned char *page_open(void) {
  return 0;
}

static void page_close(volatile unsigned char *page) {
  (void)page;
}

#endif

/* ---- the count of forks ---------------------------------------------------------------------- */

static _Atomic(uint64_t) forks;

/* When this library is unloaded, the C library removes the fork handler. macOS would keep it, and a
** later fork() would call code that no longer exists, so there is none on macOS. */
#ifndef __APPLE__

static void count_fork(void) {
  atomic_fetch_add(&forks, 1);
}

static void register_handler(void) {
  pthread_atfork(0, 0, count_fork);
}

static void watch_forks(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, register_handler);
}

#else

static void watch_forks(void) {
}

#endif

/* ---- identity -------------------------------------------------------------------------------- */

void process_remember(struct process *process) {
  watch_forks();
  process_forget(process);
  *process = (struct process){(long)getpid(), atomic_load(&forks), page_open()};
  if (process->memory) *process->memory = 1;
}

void process_forget(struct process *process) {
  page_close(process->memory);
  process->memory = 0;
}

int process_is_same(const struct process *process) {
  return process->pid == (long)getpid() && process->forks == atomic_load(&forks) &&
         (!process->memory || *process->memory == 1);
}

#endif

/* ---- memory ---------------------------------------------------------------------------------- */

static _Atomic(int (*)(size_t)) limit;
static atomic_size_t taken;

void memory_limit(int (*within)(size_t)) {
  atomic_store(&limit, within);
}

/* Counts `size` bytes as free again. */
static void give(size_t size) {
  atomic_fetch_sub(&taken, size);
}

/* Counts `size` bytes as taken. Counts nothing and returns 0 if that would exceed the limit. */
static int take(size_t size) {
  int (*within)(size_t) = atomic_load(&limit);
  size_t all = atomic_fetch_add(&taken, size) + size;
  if (!within || within(all)) return 1;
  give(size);
  return 0;
}

/* Allocates `size` bytes of zeros, a power of two, in huge pages if the system has them. */
#if defined(__linux__)
static void *allocate_huge_page(size_t size) {
  void *pages = 0;
  if (posix_memalign(&pages, size, size)) return 0;
  madvise(pages, size, MADV_HUGEPAGE); /* the kernel may ignore this advice */
  memset(pages, 0, size);
  return pages;
}
#else
static void *allocate_huge_page(size_t size) {
  return calloc(1, size);
}
#endif

void *memory_table(size_t size) {
  if (!take(size)) return 0;
  void *table = size == MEMORY_HUGE_PAGE ? allocate_huge_page(size) : calloc(1, size);
  if (!table) give(size);
  return table;
}

void memory_table_free(void *table, size_t size) {
  if (table) give(size);
  free(table);
}

/* memcpy() because pointers of different types may not share a place in memory. */
int memory_resize(void *array, size_t size) {
  void *before;
  memcpy(&before, array, sizeof before);
  void *after = realloc(before, size);
  if (after) memcpy(array, &after, sizeof after);
  return after != 0;
}

/* ---- locale ---------------------------------------------------------------------------------- */

#if defined(_WIN32)

#include <locale.h>

struct number_locale locale_plain(void) {
  struct number_locale before = {0, 0};
  if (strcmp(localeconv()->decimal_point, ".") == 0) return before;
  before.per_thread = _configthreadlocale(_ENABLE_PER_THREAD_LOCALE);
  before.name = _strdup(setlocale(LC_NUMERIC, 0));
  if (before.name) setlocale(LC_NUMERIC, "C");
  return before;
}

void locale_restore(struct number_locale before) {
  if (!before.name) return;
  setlocale(LC_NUMERIC, before.name);
  _configthreadlocale(before.per_thread);
  free(before.name);
}

#else

struct number_locale locale_plain(void) {
  locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
  return (struct number_locale){plain ? uselocale(plain) : (locale_t)0};
}

void locale_restore(struct number_locale before) {
  locale_t plain = before.locale ? uselocale(before.locale) : (locale_t)0;
  if (plain && plain != LC_GLOBAL_LOCALE) freelocale(plain);
}

#endif

/* ---- threads --------------------------------------------------------------------------------- */

/* The size of a thread's stack. SQLite's JSON functions need some hundred kilobytes for deeply
** nested values, and some C libraries give a thread no more than 128. */
#define STACK (8 << 20)

#if defined(_WIN32)

#include <process.h>
#include <windows.h>

_Static_assert(sizeof(struct mutex) == sizeof(SRWLOCK), "a lock is one pointer");
_Static_assert(sizeof(struct once) == sizeof(INIT_ONCE), "and so is this");

void mutex_lock(struct mutex *mutex) {
  AcquireSRWLockExclusive((SRWLOCK *)mutex);
}

void mutex_unlock(struct mutex *mutex) {
  ReleaseSRWLockExclusive((SRWLOCK *)mutex);
}

struct first_run {
  void (*function)(void);
};

static BOOL CALLBACK run_first(INIT_ONCE *once, void *pointer, void **context) {
  const struct first_run *first = pointer;
  (void)once;
  (void)context;
  first->function();
  return TRUE;
}

void once_run(struct once *once, void (*function)(void)) {
  struct first_run first = {function};
  InitOnceExecuteOnce((INIT_ONCE *)once, run_first, &first, 0);
}

static unsigned __stdcall run_thread(void *pointer) {
  struct thread *thread = pointer;
  thread->run(thread->argument);
  return 0;
}

int thread_start(struct thread *thread, void (*run)(void *argument), void *argument) {
  *thread = (struct thread){.run = run, .argument = argument};
  thread->handle = (void *)_beginthreadex(0, STACK, run_thread, thread,
                                          STACK_SIZE_PARAM_IS_A_RESERVATION, 0);
  return thread->handle != 0;
}

void thread_join(struct thread *thread) {
  WaitForSingleObject(thread->handle, INFINITE);
  CloseHandle(thread->handle);
}

int64_t clock_milliseconds(void) {
  return (int64_t)GetTickCount64();
}

/* Sleep() of Windows takes whole milliseconds, so this function rounds up. */
void clock_sleep(unsigned microseconds) {
  Sleep((microseconds + 999) / 1000);
}

#else

#include <signal.h>
#include <time.h>

void mutex_lock(struct mutex *mutex) {
  pthread_mutex_lock(&mutex->mutex);
}

void mutex_unlock(struct mutex *mutex) {
  pthread_mutex_unlock(&mutex->mutex);
}

void once_run(struct once *once, void (*function)(void)) {
  pthread_once(&once->once, function);
}

static void *run_thread(void *pointer) {
  struct thread *thread = pointer;
  thread->run(thread->argument);
  return 0;
}

int thread_start(struct thread *thread, void (*run)(void *argument), void *argument) {
  pthread_attr_t attributes;
  sigset_t all, before;
  thread->run = run;
  thread->argument = argument;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* the new thread inherits this mask */
  int error = pthread_attr_init(&attributes);
  if (!error) {
    error = pthread_attr_setstacksize(&attributes, STACK);
    if (!error) error = pthread_create(&thread->thread, &attributes, run_thread, thread);
    pthread_attr_destroy(&attributes);
  }
  pthread_sigmask(SIG_SETMASK, &before, 0);
  return error == 0;
}

void thread_join(struct thread *thread) {
  pthread_join(thread->thread, 0);
}

int64_t clock_milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void clock_sleep(unsigned microseconds) {
  struct timespec time = {(time_t)(microseconds / 1000000), (long)(microseconds % 1000000) * 1000};
  nanosleep(&time, 0);
}

#endif
