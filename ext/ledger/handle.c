/*
** handle.c: see handle.h.
** Tests: tests/ledger/test_ledger.py, tests/ledger/test_concurrency.py
*/
#include "ledger/handle.h"

#include <stdarg.h>
#include <string.h>

#include "os/thread.h"

SQLITE_EXTENSION_INIT3

/* ---- errors ---------------------------------------------------------------------------------- */

int ledger_fail(struct ledger *ledger, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  error_set_list(ledger->error, format, arguments);
  va_end(arguments);
  return 0;
}

int ledger_fail_damaged(struct ledger *ledger, const char *table) {
  /* Advice: The file was edited, or the disk failed. [dp_verify](#what-dp_verify-says) tells
     where. */
  return ledger_fail(ledger, "the privacy ledger '%s' is damaged: %s (restore it from a backup)",
                     ledger->path, table);
}

int ledger_fail_sqlite(struct ledger *ledger) {
  int code = sqlite3_errcode(ledger->db) & 0xff;
  const char *advice = code == SQLITE_BUSY       ? " (another connection holds it)"
                       : code == SQLITE_READONLY ? " (make it writable)"
                       : code == SQLITE_CORRUPT || code == SQLITE_NOTADB
                           ? " (restore it from a backup)"
                       : code == SQLITE_FULL ? " (free some space)"
                                             : "";
  return ledger_fail(ledger, "privacy ledger '%s': %s%s", ledger->path, sqlite3_errmsg(ledger->db),
                     advice);
}

static const char *after_this(const struct ledger_tier *tier) {
  return tier->period ? "wait for the next period" : "without a period, nothing comes back";
}

int ledger_fail_budget(struct ledger *ledger, const struct ledger_tier *tier, double needed,
                       double left) {
  /* Advice: Or take a smaller `weight`; `dp_plan` shows what fits. A tier inside yours sees your
     release, and pays too. What grants have set aside is not left. */
  return ledger_fail(ledger,
                     "tier '%s' would exceed its budget of epsilon %g at delta %g: this needs "
                     "rate %g, and %g of %g is left (nothing was charged or read; %s)",
                     tier->name, tier->epsilon, tier->delta, needed, fmax(0, left),
                     tier->rate_limit, after_this(tier));
}

int ledger_fail_epsilon(struct ledger *ledger, const struct ledger_tier *tier, double needed,
                        double left) {
  return ledger_fail(ledger,
                     "tier '%s' would exceed its budget of epsilon %g: this needs %g, and %g is "
                     "left (nothing was charged or read; %s)",
                     tier->name, tier->epsilon, needed, fmax(0, left), after_this(tier));
}

int ledger_discrepancy(struct ledger *ledger, const char *format, ...) {
  va_list arguments;
  if (error_is_set(ledger->error)) return 0;
  /* A column whose text could not be read is no discrepancy. */
  if (sqlite3_errcode(ledger->db) == SQLITE_NOMEM) return error_set_memory(ledger->error);
  va_start(arguments, format);
  error_set_list(ledger->error, format, arguments);
  va_end(arguments);
  ledger->is_discrepant = !error_is_memory(ledger->error);
  return 0;
}

char *ledger_verdict(struct ledger *ledger) {
  int is_discrepant = ledger->is_discrepant, is_set = error_is_set(ledger->error);
  char *verdict = is_set == is_discrepant
                      ? sqlite3_mprintf("%s", is_set ? error_text(ledger->error) : "ok")
                      : 0;
  ledger->is_discrepant = 0;
  if (is_discrepant) error_clear(ledger->error);
  if (!verdict) error_set_memory(ledger->error);
  return verdict;
}

int ledger_check_name(struct ledger *ledger, const char *what, const char *name) {
  return !name || strlen(name) <= LEDGER_MOST_NAME ||
         ledger_fail(ledger, "%s has more than %d bytes (choose a shorter one)", what,
                     LEDGER_MOST_NAME);
}

int ledger_make_room(struct ledger *ledger, void *array, int used, size_t size) {
  void *elements;
  if (used & (used - 1)) return 1; /* `used` is no power of two, so there is room */
  memcpy(&elements, array, sizeof elements);
  elements = sqlite3_realloc64(elements, size * (sqlite3_uint64)(used ? 2 * used : 1));
  if (!elements) return ledger_fail(ledger, "out of memory");
  memcpy(array, &elements, sizeof elements);
  return 1;
}

int same_texts(const char *a, const char *b) {
  return a && b ? strcmp(a, b) == 0 : a == b;
}

/* ---- facts ----------------------------------------------------------------------------------- */

struct error *ledger_error(const struct ledger *ledger) {
  return ledger->error;
}

struct json *ledger_json(struct ledger *ledger) {
  return &ledger->json;
}

int ledger_is_memory(const struct ledger *ledger) {
  return strcmp(ledger->path, MEMORY_PATH) == 0;
}

const char *ledger_path(const struct ledger *ledger) {
  return ledger->path;
}

const char *ledger_read_only(const struct ledger *ledger) {
  return ledger->read_only;
}

int ledger_protects(const struct ledger *ledger) {
  return ledger->protects;
}

int ledger_adjacency(const struct ledger *ledger) {
  return ledger->adjacency;
}

int ledger_is_inherited(const struct ledger *ledger) {
  return ledger->db && !process_is_same(&ledger->process);
}

void ledger_use_database(struct ledger *ledger, sqlite3 *db) {
  ledger->host = db;
}

sqlite3 *ledger_caller(const struct ledger *ledger) {
  return ledger->caller;
}

const char *ledger_audience(const struct ledger *ledger) {
  return ledger->audience;
}

int ledger_guest(struct ledger *ledger, const char *tier) {
  sqlite3_free(ledger->audience);
  ledger->audience = tier ? sqlite3_mprintf("%s", tier) : 0;
  return ledger->audience || !tier || ledger_fail(ledger, "out of memory");
}

int ledger_use_grant(struct ledger *ledger, const char *grant) {
  sqlite3_free(ledger->grant);
  ledger->grant = grant ? sqlite3_mprintf("%s", grant) : 0;
  return ledger->grant || !grant || ledger_fail(ledger, "out of memory");
}

/* ---- waiting, and interrupts of the host ----------------------------------------------------- */

/*
** To find out whether the host is interrupted, the ledger runs a short statement on the host's
** connection: the probe. An interrupt or the host's progress handler ends the probe with an error.
** sqlite3_is_interrupted() is not enough, because it exists only since SQLite 3.41 and does not
** cover progress handlers.
*/

#define PATIENCE      10000  /* longest wait for another transaction, in milliseconds */
#define LONG_PATIENCE 120000 /* longest wait of a charged release, in milliseconds */
#define LOOK          20     /* milliseconds between two probes */

/*
** One run takes some thousands of instructions, so that SQLite calls the host's progress handler.
** If the handler is called less often than that, the instructions of several runs add up.
*/
static const char probe_sql[] =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300)"
    " SELECT count(*) FROM n";

int ledger_caller_interrupted(struct ledger *ledger) {
  int64_t now = clock_milliseconds();
  if (!ledger->looked) ledger->looked = now;
  if (now - ledger->looked < LOOK) return 0;
  int rc = SQLITE_OK;
  if (!ledger->probe) rc = sqlite3_prepare_v2(ledger->caller, probe_sql, -1, &ledger->probe, 0);
  while (ledger->probe && (rc = sqlite3_step(ledger->probe)) == SQLITE_ROW) {
  }
  /*
  ** `rc` already holds the error of the probe. Only SQLITE_INTERRUPT is an interrupt: the host can
  ** also refuse the probe.
  */
  sqlite3_reset(ledger->probe);
  ledger->looked = clock_milliseconds();
  return (rc & 0xff) == SQLITE_INTERRUPT;
}

int ledger_goes_on(struct ledger *ledger) {
  if (error_is_set(ledger->error) || !ledger->heeds_host) return !error_is_set(ledger->error);
  return !ledger_caller_interrupted(ledger) || ledger_fail(ledger, "interrupted");
}

void interrupt_heed(struct ledger *ledger, int heeds_host, int is_patient) {
  ledger->heeds_host = heeds_host;
  ledger->is_patient = is_patient;
}

void ledger_caller_end(struct ledger *ledger) {
  sqlite3_finalize(ledger->probe);
  ledger->probe = 0;
  ledger->looked = 0;
}

void wait_start(struct ledger *ledger) {
  ledger->deadline = clock_milliseconds() + (ledger->is_patient ? LONG_PATIENCE : PATIENCE);
}

int wait_moment(struct ledger *ledger, int calls) {
  static const unsigned steps[] = {1, 1, 2, 3};
  if (clock_milliseconds() >= ledger->deadline || !ledger_goes_on(ledger)) return 0;
  clock_sleep(1000 * (calls < 4 ? steps[calls] : 5));
  return 1;
}
