/* statement_guard.c: see statement_guard.h. */
#include "functions/statement_guard.h"

#include <string.h>

#include "functions/functions.h"

SQLITE_EXTENSION_INIT3

/* Where the statements that are being executed stand. */
struct moment {
  uint64_t statements; /* which they are ... */
  uint64_t position;   /* ... and how often each has returned to its caller */
  int is_first;        /* one of them has not returned yet, or the host reset its counter */
  int writes;          /* one of them */
};

/* One run of a statement; after its end, what could not be stored yet. */
struct guard {
  struct guard *next; /* of the host, whose list has a reference */
  int references;     /* call sites, and the list */
  struct host *host;
  uint64_t statements; /* at the first row */
  int failed;          /* by one of our functions */
  int ended;
  struct publication *pending; /* releases whose xFinal has run ... */
  int count, room;
  struct moment finished; /* ... the last of them then */
  int planted;            /* last_insert_rowid() is PLANTED, and was this before */
  sqlite3_int64 rowid;
};

struct site {
  int references; /* the auxiliary data, and every run of this call site */
  struct guard *guard;
  int evaluations;
  int kept; /* SQLite has taken the auxiliary data */
};

/* ---- what shows that a statement went on ----------------------------------------------------- */

/*
** Whether a statement is inside sqlite3_step(). One that waits between two rows has data. Blob
** handles are statements without a text, and always wait.
*/
static int is_executing(sqlite3_stmt *statement) {
  return sqlite3_stmt_busy(statement) && sqlite3_data_count(statement) == 0 &&
         sqlite3_sql(statement);
}

/* FNV-1a, over pointers and counts. */
static uint64_t mix(uint64_t hash, uint64_t word) {
  return (hash ^ word) * 0x100000001b3u;
}

/*
** The innermost of the executing statements is ours. The others wait for it, so that none of them
** moves before ours has returned.
*/
static struct moment moment_now(sqlite3 *db) {
  struct moment now = {1, 1, 0, 0};
  for (sqlite3_stmt *s = sqlite3_next_stmt(db, 0); s; s = sqlite3_next_stmt(db, s)) {
    if (!is_executing(s)) continue;
    uint64_t steps = (uint32_t)sqlite3_stmt_status(s, SQLITE_STMTSTATUS_VM_STEP, 0);
    uint64_t runs = (uint32_t)sqlite3_stmt_status(s, SQLITE_STMTSTATUS_RUN, 0);
    now.statements = mix(now.statements, (uint64_t)(uintptr_t)s);
    now.position = mix(mix(mix(now.position, (uint64_t)(uintptr_t)s), steps), runs);
    now.is_first |= steps == 0;
    now.writes |= !sqlite3_stmt_readonly(s);
  }
  return now;
}

/* The rowid that stands for "nothing has been inserted since". */
#define PLANTED (-0x6469666675736500)

/*
** SQLite counts the steps of a statement when sqlite3_step() returns. It also sets the error code
** of the connection then, which shows a row where the host resets the counter (before it has
** counted anything, a reset does not show).
**
** A statement that writes need not return before it ends. An INSERT sets last_insert_rowid();
** CREATE TABLE ... AS reads the schema again, which sets the error code.
*/
static int has_advanced(const struct guard *guard) {
  const struct moment *finished = &guard->finished;
  struct moment now = moment_now(guard->host->db);
  sqlite3 *db = guard->host->db;
  int code = sqlite3_errcode(db) & 0xff;
  if (now.statements != finished->statements || now.position != finished->position) return 1;
  if (finished->is_first && code == SQLITE_ROW) return 1;
  if (!finished->writes) return 0;
  return (guard->planted && sqlite3_last_insert_rowid(db) != PLANTED) ||
         (code != SQLITE_ERROR && code != SQLITE_NOMEM);
}

/* Takes back what plant() has planted, if it is still there. */
static void uproot(struct guard *guard) {
  if (guard->planted && sqlite3_last_insert_rowid(guard->host->db) == PLANTED)
    sqlite3_set_last_insert_rowid(guard->host->db, guard->rowid);
  guard->planted = 0;
}

/* Whether an executing statement may ask for the last rowid itself: then it is left alone. */
static int asks_for_rowid(sqlite3 *db) {
  for (sqlite3_stmt *s = sqlite3_next_stmt(db, 0); s; s = sqlite3_next_stmt(db, s)) {
    if (is_executing(s) && has_word("last_insert_rowid", sqlite3_sql(s))) return 1;
  }
  return 0;
}

/* A column that does not exist sets the error code. */
static void plant(struct guard *guard) {
  sqlite3 *db = guard->host->db;
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
  for (int i = 0; i < guard->count; i++) publish_clear(&guard->pending[i]);
  sqlite3_free(guard->pending);
  sqlite3_free(guard);
}

/* Stores the releases of a statement that has ended well; those that fail remain for later. */
static void keep_pending(struct guard *guard) {
  int count = 0;
  for (int i = 0; i < guard->count; i++) {
    if (publish_keep(&guard->pending[i])) {
      publish_clear(&guard->pending[i]);
    } else {
      guard->pending[count++] = guard->pending[i];
    }
  }
  guard->count = count;
}

/* Takes guards off the list that have ended and have nothing left to store. */
static void forget_ended(struct host *host) {
  struct guard **link = &host->guards;
  while (*link) {
    struct guard *guard = *link;
    if (guard->ended && !guard->count) {
      *link = guard->next;
      guard_release(guard);
    } else {
      link = &guard->next;
    }
  }
}

void guard_settle(struct host *host) {
  for (struct guard *guard = host->guards; guard; guard = guard->next) {
    if (guard->ended) keep_pending(guard);
  }
  forget_ended(host);
}

void guards_free(struct guard *guards) {
  while (guards) {
    struct guard *next = guards->next;
    guard_release(guards);
    guards = next;
  }
}

static void guard_end(struct guard *guard) {
  if (guard->ended) return;
  guard->ended = 1;
  /* What goes on after the last release has gone on after all of them. */
  int failed = guard->failed || !has_advanced(guard);
  uproot(guard);
  for (int i = 0; i < guard->count && failed; i++) {
    publish_revoke(&guard->pending[i]);
    publish_clear(&guard->pending[i]);
  }
  if (failed) guard->count = 0;
  keep_pending(guard);
  forget_ended(guard->host);
}

/* The guard of the statement that is executing. */
static struct guard *guard_of(struct host *host) {
  struct moment now = moment_now(host->db);
  struct guard *guard = host->guards;
  while (guard && (guard->ended || guard->statements != now.statements)) guard = guard->next;
  if (!guard) {
    guard = sqlite3_malloc(sizeof *guard);
    if (!guard) return 0;
    *guard = (struct guard){
        .next = host->guards, .references = 1, .host = host, .statements = now.statements};
    host->guards = guard;
  }
  guard->references++;
  return guard;
}

const struct publication *guard_pending(const struct host *host, int64_t release_id,
                                        const char *tier) {
  for (const struct guard *guard = host->guards; guard; guard = guard->next) {
    for (int i = 0; i < guard->count; i++) {
      const struct publication *publication = &guard->pending[i];
      if (publication->release.id == release_id &&
          strcmp(publication->tiers[publication->at].name, tier) == 0)
        return publication;
    }
  }
  return 0;
}

static int begin_shown(struct host *host) {
  int shown = ledger_begin(host->ledger);
  for (const struct guard *guard = host->guards; guard; guard = guard->next) {
    for (int i = 0; i < guard->count && shown; i++) shown = publish_show(&guard->pending[i]);
  }
  return shown;
}

int guard_begin_reading(struct host *host) {
  int pending = 0;
  for (const struct guard *guard = host->guards; guard; guard = guard->next)
    pending |= guard->count > 0;
  if (pending && begin_shown(host)) return 1;
  /* Another connection may have discarded one of them. */
  if (pending && !ledger_resume(host->ledger)) return 0;
  return ledger_begin_reading(host->ledger);
}

/* ---- call sites ------------------------------------------------------------------------------ */

void site_release(struct site *site) {
  if (!site || --site->references > 0) return;
  struct guard *guard = site->guard;
  struct host *host = guard->host;
  if (guard->references == 2) guard_end(guard); /* SQLite has kept none of its sites */
  guard_release(guard);
  host_release(host);
  sqlite3_free(site);
}

/* The statement ends, or SQLite had no memory to keep the site. */
static void site_dies(void *pointer) {
  struct site *site = pointer;
  if (site->kept) guard_end(site->guard);
  site_release(site);
}

struct site *site_of(sqlite3_context *context, struct host *host) {
  struct site *site = sqlite3_get_auxdata(context, 0);
  if (!site) {
    guard_settle(host);
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
    site_release(site); /* it was not kept, and site_dies() took its reference */
    return 0;
  }
  site->references++;
  return site;
}

int site_is_second(struct site *site) {
  return site->evaluations++ > 0;
}

int site_is_blind(const struct site *site) {
  sqlite3 *db = site->guard->host->db;
  for (sqlite3_stmt *s = sqlite3_next_stmt(db, 0); s; s = sqlite3_next_stmt(db, s)) {
    char word[8];
    if (!is_executing(s) || sqlite3_stmt_readonly(s)) continue;
    first_word(sqlite3_sql(s), word);
    if (strcmp(word, "UPDATE") == 0 || strcmp(word, "DELETE") == 0) return 1;
  }
  return 0;
}

int site_is_reset(const struct site *site) {
  return moment_now(site->guard->host->db).statements != site->guard->statements;
}

void site_fail(struct site *site) {
  if (site) site->guard->failed = 1;
}

char *site_note(struct site *site, struct publication *publication) {
  struct guard *guard = site->guard;
  if (guard->count == guard->room) {
    int room = 2 * guard->room + 1;
    struct publication *grown =
        sqlite3_realloc64(guard->pending, sizeof *grown * (sqlite3_uint64)room);
    if (!grown) {
      publish_revoke(publication);
      return error_message("out of memory (the charge stays)");
    }
    guard->pending = grown;
    guard->room = room;
  }
  guard->pending[guard->count++] = *publication;
  *publication = (struct publication){0};
  guard->finished = moment_now(guard->host->db);
  plant(guard);
  return 0;
}
