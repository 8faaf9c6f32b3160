/* fixed.c: runs SQL with the extension. The noise is the same in every run, so that tests can
** compare two ways to make a release to the last integer.
**
**   fixed DATABASE < SQL
**
** The program has its own source of random bytes, which only tests can replace (entropy.c). The SQL
** function fixed_seed(n) starts the noise anew. After fixed_trace(name), each draw of Gaussian
** noise is a line of the output, until the next call:
**
**   name draw VARIANCE NOISE
**   name between INWARD OUTWARD INNER OUTER POINT */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>

#include "noise.h"
#include "noise/noise.h"

static char trace[64]; /* the name; empty: no lines */

/* The linker puts these two functions in place of those of the extension. */
int __real_discrete_gaussian_draw(uint64_t variance, int64_t *noise, size_t count);
int __real_gaussian_bridge_draw(const struct gaussian_bridge *bridge, const int64_t *inner,
                                const int64_t *outer, int64_t *between, size_t count);
int __wrap_discrete_gaussian_draw(uint64_t variance, int64_t *noise, size_t count);
int __wrap_gaussian_bridge_draw(const struct gaussian_bridge *bridge, const int64_t *inner,
                                const int64_t *outer, int64_t *between, size_t count);

int __wrap_discrete_gaussian_draw(uint64_t variance, int64_t *noise, size_t count) {
  int drawn = __real_discrete_gaussian_draw(variance, noise, count);
  for (size_t i = 0; i < count && *trace; i++)
    printf("%s draw %" PRIu64 " %" PRId64 "\n", trace, variance, noise[i]);
  return drawn;
}

int __wrap_gaussian_bridge_draw(const struct gaussian_bridge *bridge, const int64_t *inner,
                                const int64_t *outer, int64_t *between, size_t count) {
  int drawn = __real_gaussian_bridge_draw(bridge, inner, outer, between, count);
  for (size_t i = 0; i < count && *trace; i++)
    printf("%s between %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 " %" PRId64 "\n", trace,
           bridge->inward, bridge->outward, inner[i], outer[i], between[i]);
  return drawn;
}

int sqlite3_diffuse_init(sqlite3 *, char **, const void *);

static void fixed_seed(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)context, (void)argc;
  fixed_noise = (uint64_t)sqlite3_value_int64(argv[0]);
}

static void fixed_trace(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)context, (void)argc;
  sqlite3_snprintf(sizeof trace, trace, "%s", sqlite3_value_text(argv[0]));
}

static char *read_all(FILE *file) {
  sqlite3_str *text = sqlite3_str_new(0);
  char buffer[4096];
  size_t size;
  while ((size = fread(buffer, 1, sizeof buffer, file)) > 0)
    sqlite3_str_append(text, buffer, (int)size);
  return sqlite3_str_finish(text);
}

int main(int argc, char **argv) {
  sqlite3 *db;
  char *message = 0, *sql = read_all(stdin);
  if (argc != 2 || !sql || sqlite3_open(argv[1], &db) != SQLITE_OK) return 2;
  sqlite3_diffuse_init(db, 0, 0);
  sqlite3_create_function(db, "fixed_seed", 1, SQLITE_UTF8, 0, fixed_seed, 0, 0);
  sqlite3_create_function(db, "fixed_trace", 1, SQLITE_UTF8, 0, fixed_trace, 0, 0);
  int rc = sqlite3_exec(db, sql, 0, 0, &message);
  if (rc != SQLITE_OK) fprintf(stderr, "%s\n", message);
  sqlite3_free(message);
  sqlite3_free(sql);
  sqlite3_close(db);
  return rc != SQLITE_OK;
}
