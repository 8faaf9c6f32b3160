/* waits.c: a clock for a process that loads this library first (LD_PRELOAD). The main thread's
** sleeps take no time; they set the clock forward. So do calls of clock_forward(). Other threads
** sleep as long as usual, and the clock stands still meanwhile. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static atomic_int_least64_t nanoseconds = 1000000000000;

void clock_forward(int64_t milliseconds) {
  atomic_fetch_add(&nanoseconds, milliseconds * 1000000);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  if (clock != CLOCK_MONOTONIC) return (int)syscall(SYS_clock_gettime, clock, time);
  int64_t now = atomic_load(&nanoseconds);
  *time = (struct timespec){now / 1000000000, now % 1000000000};
  return 0;
}

int nanosleep(const struct timespec *time, struct timespec *left) {
  if (getpid() != (pid_t)syscall(SYS_gettid)) return (int)syscall(SYS_nanosleep, time, left);
  atomic_fetch_add(&nanoseconds, time->tv_sec * 1000000000 + time->tv_nsec);
  return 0;
}
