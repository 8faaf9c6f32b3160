/* sync.c: counts the calls of fsync() and fdatasync() and measures their time. bench/children.py
** loads this library by LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

static double seconds;
static int calls;

double bench_sync_seconds(void) {
  return seconds;
}

int bench_sync_calls(void) {
  return calls;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int timed(const char *name, int file) {
  int (*next)(int);
  *(void **)&next = dlsym(RTLD_NEXT, name);
  double start = now();
  int result = next(file);
  seconds += now() - start;
  calls++;
  return result;
}

int fsync(int file) {
  return timed("fsync", file);
}

int fdatasync(int file) {
  return timed("fdatasync", file);
}
