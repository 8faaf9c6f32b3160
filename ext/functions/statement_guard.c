/* statement_guard.c: see statement_guard.h. Tests: tests/functions/test_statement_end.py */
#include "functions/statement_guard.h"

#include <string.h>

#include "base/sql_text.h"
#include "release/publish.h"
#include "release/pending.h"

SQLITE_EXTENSION_INIT3

/* The progress of all statements that are executing. */
struct moment {
  uint64_t statements; /* a hash of the statements */
  uint64_t position;   /* a hash that changes when a statement returns to its caller */
  int is_first;        /* a statement has not returned yet, or the host has reset its counter */
  int writes;          /* a statement writes */
};

/*
** The guard of one run of a statement. After the end of the run, the guard keeps the releases that
** could not be stored yet.
*/
struct guard {
  struct pending pending; /* the releases whose xFinal has run; in the list of the session */
  int references;         /* one reference for each call site, and one for the session */
  struct host *host;
  uint64_t statements;    /* moment.statements when the guard was made */
  int failed;             /* a function of this extension has failed */
  struct moment finished; /* the moment when the last release was drawn */
  /* If `planted` is 1, last_insert_rowid() is PLANTED, and `rowid` keeps the earlier value. */
  int planted;
  sqlite3_int64 rowid;
};

struct site {
  int references; /* one reference for the auxiliary data, and one for every evaluation */
  struct guard *guard;
  int evaluations;
  int kept; /* SQLite has accepted the site as auxiliary data */
};

/* ---- evidence that a statement continued ----------------------------------------------------- */

/* From this version on, a statement keeps its row while its next step executes. */
#define ROW_STAYS 3041000

/* One step of the hash function FNV-1a, with a pointer or a count as the input. */
static uint64_t mix(uint64_t hash, uint64_t word) {
  return (hash ^ word) * 0x100000001b3u;
}

/*
** Returns the progress of all statements. The guarded statement is the innermost of those that
** execute. The other statements wait for it or for the host, so their counters do not change until
** the guarded statement returns. `position` also counts the statements that seem to wait for the
** host, because since SQLite 3.41 an executing statement does so from its second row on.
*/
static struct moment moment_now(sqlite3 *db) {
  struct moment now = {1, 1, 0, 0};
  for (sqlite3_stmt *s = sqlite3_next_stmt(db, 0); s; s = sqlite3_next_stmt(db, s)) {
    if (!sqlite3_stmt_busy(s) || !sqlite3_sql(s)) continue;
    uint64_t steps = (uint32_t)sqlite3_stmt_status(s, SQLITE_STMTSTATUS_VM_STEP, 0);
    uint64_t runs = (uint32_t)sqlite3_stmt_status(s, SQLITE_STMTSTATUS_RUN, 0);
    now.position = mix(mix(mix(now.position, (uint64_t)(uintptr_t)s), steps), runs);
    if (!statement_is_executing(s)) continue;
    now.statements = mix(now.statements, (uint64_t)(uintptr_t)s);
    now.is_first |= steps == 0;
    now.writes |= !sqlite3_stmt_readonly(s);
  }
  return now;
}

/* While last_insert_rowid() has this value, no row has been inserted since plant() was called. */
#define PLANTED (-0x6469666675736500)

/*
** Returns whether the guarded statement has continued since its last release. When sqlite3_step()
** returns, SQLite increases the step count of the statement and sets the error code of the
** connection. The error code therefore shows a returned row even if the host has reset the step
** count. (The guard cannot see a reset before SQLite has counted the first step.)
**
** A statement that writes may run to its end without returning a row. In this case, an INSERT sets
** last_insert_rowid(), and CREATE TABLE ... AS reads the schema again, which sets the error code.
*/
static int has_advanced(const struct guard *guard) {
  const struct moment *finished = &guard->finished;
  struct moment now = moment_now(guard->host->collector.db);
  sqlite3 *db = guard->host->collector.db;
  int code = sqlite3_errcode(db) & 0xff;
  if (now.statements != finished->statements || now.position != finished->position) return 1;
  if (finished->is_first && code == SQLITE_ROW) return 1;
  if (!finished->writes) return 0;
  return (guard->planted && sqlite3_last_insert_rowid(db) != PLANTED) ||
         (code != SQLITE_ERROR && code != SQLITE_NOMEM);
}

/* Restores the rowid that plant() replaced, unless an INSERT has changed it since. */
static void uproot(struct guard *guard) {
  if (guard->planted && sqlite3_last_insert_rowid(guard->host->collector.db) == PLANTED)
    sqlite3_set_last_insert_rowid(guard->host->collector.db, guard->rowid);
  guard->planted = 0;
}

/*
** Returns whether an executing statement may call last_insert_rowid(). In this case plant() does
** not change the rowid.
*/
static int asks_for_rowid(sqlite3 *db) {
  for (sqlite3_stmt *s = sqlite3_next_stmt(db, 0); s; s = sqlite3_next_stmt(db, s))
    if (statement_is_executing(s) && has_word("last_insert_rowid", sqlite3_sql(s))) return 1;
  return 0;
}

/*
** Prepares has_advanced(): sets last_insert_rowid() to PLANTED if the statement writes, and sets
** the error code by asking for a column that does not exist.
*/
static void plant(struct guard *guard) {
  sqlite3 *db = guard->host->collector.db;
  uproot(guard);
  if (guard->finished.writes && !asks_for_rowid(db)) {
    guard->planted = 1;
    guard->rowid = sqlite3_last_insert_rowid(db);
    sqlite3_set_last_insert_rowid(db, PLANTED);
  }
  sqlite3_table_column_metadata(db, "main", "", "", 0, 0, 0, 0, 0);
}

/* ---- the end of a statement ------------------------------------------------------------------ */

static void guard_release(struct guard *guard) {
  if (--guard->references > 0) return;
  pending_clear(&guard->pending);
  sqlite3_free(guard);
}

/* Returns the guard whose first member is `pending`. */
static struct guard *guard_of_pending(struct pending *pending) {
  return (struct guard *)pending;
}

static void pending_release(struct pending *pending) {
  guard_release(guard_of_pending(pending));
}

/* Removes from the list each guard that has ended and has no release left to store. */
static void forget_ended(struct host *host) {
  struct pending **link = &host->session.pending;
  while (*link) {
    struct pending *pending = *link;
    if (pending->ended && !pending->count) {
      *link = pending->next;
      guard_release(guard_of_pending(pending));
    } else {
      link = &pending->next;
    }
  }
}

/*
** Returns whether the statement ends because the host interrupted it or memory ran out. To find
** out, the function runs another statement on the same connection, which then fails for the same
** reason. A statement that the host resets between two rows has ended well, even after an
** interrupt; but since SQLite 3.41 it looks like one that executes, and counts as interrupted.
*/
static int is_stopped(const struct guard *guard) {
  sqlite3 *db = guard->host->collector.db;
  sqlite3_stmt *probe = 0;
  if (sqlite3_libversion_number() < ROW_STAYS && moment_now(db).statements != guard->statements)
    return 0;
  int rc = sqlite3_prepare_v2(db, "SELECT 1", -1, &probe, 0);
  if (rc == SQLITE_OK) rc = sqlite3_step(probe);
  sqlite3_finalize(probe); /* any error of `probe` is already in rc */
  return (rc & 0xff) == SQLITE_INTERRUPT || (rc & 0xff) == SQLITE_NOMEM;
}

/*
** Stores or revokes the releases of a statement that ends. Does not change the error that a
** function of the statement has reported.
*/
static void guard_end(struct guard *guard) {
  struct pending *pending = &guard->pending;
  struct host *host = guard->host;
  if (pending->ended) return;
  pending->ended = 1;
  struct error error = error_take(&host->session.error);
  /* If the statement continued after its last release, it continued after all releases. */
  int failed = guard->failed || !has_advanced(guard) || is_stopped(guard);
  uproot(guard);
  if (failed) pending_revoke(pending);
  pending_keep(pending);
  forget_ended(host);
  error_restore(&host->session.error, error);
}

/*
** Returns the guard of the statement that is executing, with a new reference. Returns null when out
** of memory.
*/
static struct guard *guard_of(struct host *host) {
  struct moment now = moment_now(host->collector.db);
  struct pending *at = host->session.pending;
  while (at && (at->ended || guard_of_pending(at)->statements != now.statements)) at = at->next;
  struct guard *guard = guard_of_pending(at);
  if (!guard) {
    guard = sqlite3_malloc(sizeof *guard);
    if (!guard) return 0;
    *guard = (struct guard){.pending = {.next = host->session.pending, .release = pending_release},
                            .references = 1,
                            .host = host,
                            .statements = now.statements};
    host->session.pending = &guard->pending;
  }
  guard->references++;
  return guard;
}

/* ---- call sites ------------------------------------------------------------------------------ */

void site_release(struct site *site) {
  if (!site || --site->references > 0) return;
  struct guard *guard = site->guard;
  struct host *host = guard->host;
  /* If SQLite has kept no call site of the statement, site_dies() does not end the guard. */
  if (guard->references == 2) guard_end(guard);
  guard_release(guard);
  host_release(host);
  sqlite3_free(site);
}

/*
** SQLite calls this function when the statement ends, or at once if it has no memory to keep the
** site.
*/
static void site_dies(void *pointer) {
  struct site *site = pointer;
  if (site->kept) guard_end(site->guard);
  site_release(site);
}

struct site *site_of(sqlite3_context *context, struct host *host) {
  struct site *site = sqlite3_get_auxdata(context, 0);
  if (!site) {
    pending_settle(&host->session);
    forget_ended(host);
    struct guard *guard = guard_of(host);
    site = guard ? sqlite3_malloc(sizeof *site) : 0;
    if (!site) {
      if (guard) guard_release(guard);
      return 0;
    }
    *site = (struct site){2, guard, 0, 0};
    host_retain(host);
    sqlite3_set_auxdata(context, 0, site, site_dies);
    site->kept = sqlite3_get_auxdata(context, 0) == site;
    if (site->kept) return site;
    /* SQLite did not keep the site, and site_dies() has released one reference. */
    site_release(site);
    return 0;
  }
  site->references++;
  return site;
}

int site_is_second(struct site *site) {
  return site->evaluations++ > 0;
}

int site_is_blind(const struct site *site) {
  sqlite3 *db = site->guard->host->collector.db;
  for (sqlite3_stmt *s = sqlite3_next_stmt(db, 0); s; s = sqlite3_next_stmt(db, s)) {
    char word[8];
    if (!statement_is_executing(s) || sqlite3_stmt_readonly(s)) continue;
    first_word(sqlite3_sql(s), word);
    if (strcmp(word, "UPDATE") == 0 || strcmp(word, "DELETE") == 0) return 1;
  }
  return 0;
}

int site_is_reset(const struct site *site) {
  return moment_now(site->guard->host->collector.db).statements != site->guard->statements;
}

void site_fail(struct site *site) {
  if (site) site->guard->failed = 1;
}

int site_note(struct site *site, struct publication *publication, struct error *error) {
  struct guard *guard = site->guard;
  if (!pending_add(&guard->pending, publication)) {
    publish_revoke(publication);
    return error_set(error, "out of memory (the charge stays)");
  }
  guard->finished = moment_now(guard->host->collector.db);
  plant(guard);
  return 1;
}
