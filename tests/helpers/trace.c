/* trace.c: writes down what this process does to the files of a ledger, for test_disk_states.py,
** which loads it by LD_PRELOAD. The environment names the trace (TRACE). Its lines are
**
**     create PATH            a file of this name was made
**     write PATH OFFSET HEX  bytes were written
**     cut PATH SIZE          the file was truncated
**     remove PATH
**     link PATH NAME         the file got a further name
**     sync PATH              of a file, or of a folder
**     mark NAME              trace_mark() was called */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static FILE *trace(void) {
  static FILE *file;
  if (!file && getenv("TRACE")) file = fopen(getenv("TRACE"), "w");
  return file;
}

/* Writes the path of an open file. Returns whether it is a folder or a file of a ledger. */
static int path_of(int file, char path[4096]) {
  char link[64];
  struct stat status;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, 4095);
  path[length < 0 ? 0 : length] = 0;
  return length > 0 && fstat(file, &status) == 0 &&
         (S_ISDIR(status.st_mode) || (S_ISREG(status.st_mode) && strstr(path, "-ledger")));
}

void trace_mark(const char *name) {
  fprintf(trace(), "mark %s\n", name);
  fflush(trace());
}

static void written(int file, const unsigned char *bytes, ssize_t count, long long at) {
  char path[4096];
  if (count <= 0 || !trace() || !path_of(file, path)) return;
  fprintf(trace(), "write %s %lld ", path, at);
  for (ssize_t i = 0; i < count; i++) fprintf(trace(), "%02x", bytes[i]);
  fprintf(trace(), "\n");
}

#define NEXT(name) dlsym(RTLD_NEXT, name)

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t at) {
  ssize_t (*next)(int, const void *, size_t, off64_t);
  *(void **)&next = NEXT("pwrite64");
  ssize_t done = next(file, bytes, count, at);
  written(file, bytes, done, at);
  return done;
}

int ftruncate64(int file, off64_t size) {
  int (*next)(int, off64_t);
  char path[4096];
  *(void **)&next = NEXT("ftruncate64");
  if (trace() && path_of(file, path)) fprintf(trace(), "cut %s %lld\n", path, (long long)size);
  return next(file, size);
}

int unlink(const char *path) {
  int (*next)(const char *);
  *(void **)&next = NEXT("unlink");
  if (trace() && strstr(path, "-ledger")) fprintf(trace(), "remove %s\n", path);
  return next(path);
}

int link(const char *path, const char *name) {
  int (*next)(const char *, const char *);
  *(void **)&next = NEXT("link");
  if (trace() && strstr(path, "-ledger")) fprintf(trace(), "link %s %s\n", path, name);
  return next(path, name);
}

int open64(const char *path, int flags, ...) {
  int (*next)(const char *, int, ...);
  va_list more;
  va_start(more, flags);
  mode_t mode = flags & O_CREAT ? (mode_t)va_arg(more, int) : 0;
  va_end(more);
  *(void **)&next = NEXT("open64");
  int is_new = flags & O_CREAT && access(path, F_OK) != 0 && strstr(path, "-ledger");
  int file = next(path, flags, mode);
  if (is_new && file >= 0 && trace()) fprintf(trace(), "create %s\n", path);
  return file;
}

static int synced(const char *name, int file) {
  int (*next)(int);
  char path[4096];
  *(void **)&next = NEXT(name);
  if (trace() && path_of(file, path)) fprintf(trace(), "sync %s\n", path);
  return next(file);
}

int fsync(int file) {
  return synced("fsync", file);
}

int fdatasync(int file) {
  return synced("fdatasync", file);
}
