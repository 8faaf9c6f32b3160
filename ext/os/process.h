/* process.h: this process: whether it opened a connection or is a child of the one that did, its
** memory for large tables, and a decimal point in its numbers. */
#ifndef DIFFUSE_OS_PROCESS_H
#define DIFFUSE_OS_PROCESS_H

#include <stddef.h>
#include <stdint.h>

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
