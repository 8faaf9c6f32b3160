/*
** interrupt.c: stops long work on the ledger when the host is interrupted, and limits the time of
** waiting.
**
** To find out whether the host is interrupted, the ledger runs a short statement on the host's
** connection: the probe. An interrupt or the host's progress handler ends the probe with an error.
** sqlite3_is_interrupted() is not enough, because it exists only since SQLite 3.41 and does not
** cover progress handlers.
** Tests: tests/ledger/test_concurrency.py
*/
#include "ledger/interrupt.h"

#include "os/thread.h"

SQLITE_EXTENSION_INIT3

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
