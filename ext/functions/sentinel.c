/* sentinel.c: see sentinel.h. */
#include "functions/sentinel.h"

#include "functions/functions.h"

SQLITE_EXTENSION_INIT3

/* A release that xFinal has finished, and where the statements stood then. */
struct finished {
  int64_t release_id;
  uint64_t mark;
};

struct sentinel {
  int references; /* the auxiliary data, and every run of this call site */
  struct host *host;
  int evaluations;
  struct finished *finished;
  int count;
};

/*
** A number that changes whenever a running statement has advanced by a step. Returns 0 where a
** running statement writes: then nothing can be told.
*/
static uint64_t statements_mark(sqlite3 *db) {
  uint64_t mark = 1;
  for (sqlite3_stmt *s = sqlite3_next_stmt(db, 0); s; s = sqlite3_next_stmt(db, s)) {
    if (!sqlite3_stmt_busy(s)) continue;
    if (!sqlite3_stmt_readonly(s)) return 0;
    uint64_t steps = (uint32_t)sqlite3_stmt_status(s, SQLITE_STMTSTATUS_VM_STEP, 0);
    mark = (mark ^ (uint64_t)(uintptr_t)s) * 0x100000001b3u; /* FNV-1a, over pointers and counts */
    mark = (mark ^ steps) * 0x100000001b3u;
  }
  return mark | 1;
}

void sentinel_release(struct sentinel *sentinel) {
  if (!sentinel || --sentinel->references > 0) return;
  host_release(sentinel->host);
  sqlite3_free(sentinel->finished);
  sqlite3_free(sentinel);
}

/* The statement ends. What was finished since it last advanced was finished by its teardown. */
static void sentinel_dies(void *pointer) {
  struct sentinel *sentinel = pointer;
  uint64_t mark = sentinel->count ? statements_mark(sentinel->host->db) : 0;
  for (int i = 0; i < sentinel->count && mark; i++) {
    if (sentinel->finished[i].mark == mark)
      publish_revoke(sentinel->host, sentinel->finished[i].release_id);
  }
  sentinel_release(sentinel);
}

struct sentinel *sentinel_of(sqlite3_context *context, struct host *host) {
  struct sentinel *sentinel = sqlite3_get_auxdata(context, 0);
  if (!sentinel) {
    sentinel = sqlite3_malloc(sizeof *sentinel);
    if (!sentinel) return 0;
    *sentinel = (struct sentinel){2, host_retain(host), 0, 0, 0};
    sqlite3_set_auxdata(context, 0, sentinel, sentinel_dies);
    if (sqlite3_get_auxdata(context, 0) == sentinel) return sentinel;
    sentinel_release(sentinel); /* it was not kept, and sentinel_dies() took its reference */
    return 0;
  }
  sentinel->references++;
  return sentinel;
}

int sentinel_is_second(struct sentinel *sentinel) {
  return sentinel->evaluations++ > 0;
}

/* Earlier releases whose statement has advanced since are safe. */
char *sentinel_note(struct sentinel *sentinel, int64_t release_id) {
  uint64_t mark = statements_mark(sentinel->host->db);
  if (!mark) return 0;
  int kept = 0;
  for (int i = 0; i < sentinel->count; i++) {
    if (sentinel->finished[i].mark == mark) sentinel->finished[kept++] = sentinel->finished[i];
  }
  sentinel->count = kept;
  struct finished *grown =
      sqlite3_realloc64(sentinel->finished, sizeof *grown * (sqlite3_uint64)(sentinel->count + 1));
  if (grown) {
    sentinel->finished = grown;
    grown[sentinel->count++] = (struct finished){release_id, mark};
    return 0;
  }
  publish_revoke(sentinel->host, release_id);
  return sentence("out of memory (the charge stays)");
}
