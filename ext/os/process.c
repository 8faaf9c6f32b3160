/* process.c: see process.h. Tests: tests/ledger/test_crash.py */
#include "os/process.h"

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
#include <stdatomic.h>
#include <stddef.h>
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

/*
** When this shared library is unloaded, the C library removes the fork handler. macOS would keep
** the handler, and a later fork() would call code that no longer exists. On macOS, diffuse
** therefore registers no fork handler.
*/
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

/* ---- the interface --------------------------------------------------------------------------- */

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
