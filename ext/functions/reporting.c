/*
** reporting.c: dp_export() and dp_report(), which write out what the members of one tier may see.
** Tests: tests/report/test_report.py
*/
#include <string.h>

#include "functions/clippings.h"
#include "functions/functions.h"
#include "functions/host.h"
#include "release/verify.h"
#include "report/export.h"
#include "report/facts.h"
#include "report/page.h"

SQLITE_EXTENSION_INIT3

/*
** Returns whether the tier exists and the audience of the ledger may see it. If not, sets the
** ledger's error. Call this function inside a transaction.
*/
static int tier_is_known(struct ledger *ledger, const char *tier) {
  struct ledger_tier *tiers;
  int count;
  int known =
      ledger_tiers(ledger, &tiers, &count) && ledger_tier_find(ledger, tiers, count, tier) >= 0;
  ledger_tiers_free(tiers, count);
  return known;
}

/*
** Returns the facts that the ledger's audience may know. If the ledger has a discrepancy, or on
** another failure, returns null with an error. Call this function inside a transaction.
*/
static sqlite3 *collect(struct session *session) {
  struct ledger *ledger = session->ledger;
  char *verified = session_verify(session), *certificate = 0;
  sqlite3 *facts = 0;
  if (verified && strcmp(verified, "ok") != 0) {
    int is_advised = verified[strlen(verified) - 1] == ')';
    error_set(&session->error, ledger_audience(ledger) ? "%s" : "the ledger does not verify: %s%s",
              verified, is_advised ? "" : " (restore it from a backup)");
  }
  if (verified) certificate = ledger_certificate(ledger, verified, mechanism_describe);
  if (certificate) facts = facts_open(ledger, certificate, &session->error);
  if (facts) clippings_add(facts, ledger, &session->error);
  sqlite3_free(verified);
  sqlite3_free(certificate);
  return facts;
}

/*
** Returns the facts for the members of a tier, or for the owner if `tier` is null. Returns null
** with an error on failure.
*/
static sqlite3 *facts_for(struct host *host, const char *tier) {
  struct session *session = &host->session;
  struct ledger *ledger = session->ledger;
  sqlite3 *facts = 0;
  if (!ledger_ready(ledger)) return 0;
  int is_guest = ledger_audience(ledger) != 0;
  if (is_guest && tier && strcmp(tier, ledger_audience(ledger)) != 0) {
    error_set(&session->error, "this connection is guarded for tier '%s' (report that tier)",
              ledger_audience(ledger));
    return 0;
  }
  if (ledger_begin_copy(ledger) && (!tier || tier_is_known(ledger, tier)) &&
      (is_guest || !tier || ledger_guest(ledger, tier)))
    facts = collect(session);
  if (!is_guest) ledger_guest(ledger, 0);
  ledger_rollback(ledger);
  return facts;
}

/* ---- dp_export ------------------------------------------------------------------------------- */

/* Sets a result such as "6 values of 6 releases for 'region' in region.db". */
static void result_exported(sqlite3_context *context, sqlite3 *facts, const char *tier,
                            const char *file, struct error *error) {
  sqlite3_stmt *row =
      facts_prepare(facts, "SELECT count(*), count(DISTINCT release) FROM dp_value", error);
  char *text = 0;
  if (facts_row(row, error)) {
    sqlite3_int64 values = sqlite3_column_int64(row, 0), releases = sqlite3_column_int64(row, 1);
    text = sqlite3_mprintf("%lld value%s of %lld release%s for '%s' in %s", values,
                           values == 1 ? "" : "s", releases, releases == 1 ? "" : "s", tier, file);
  }
  sqlite3_finalize(row);
  if (text) {
    sqlite3_result_text(context, text, -1, sqlite3_free);
  } else {
    sqlite3_result_error_nomem(context); /* the file is complete nevertheless */
  }
}

/* Returns whether a file's name says that it holds texts, for example "public.csv". */
static int is_text_file(const char *file) {
  static const char *const endings[] = {".csv", ".tsv", ".txt", ".json", ".html"};
  size_t length = strlen(file);
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    size_t size = strlen(endings[i]);
    if (length >= size && sqlite3_stricmp(file + length - size, endings[i]) == 0) return 1;
  }
  return 0;
}

/* dp_export(tier, file) -> a sentence that says how much was written */
static void dp_export(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  struct host *host = host_of(context);
  struct error *error = &host->session.error;
  const char *tier = argument_text(context, argv[0], "tier");
  const char *file = tier ? argument_text(context, argv[1], "file") : 0;
  if (!file) return;
  if (is_text_file(file)) {
    function_error(context,
                   "file would be an SQLite database (give it a name that ends in .db; in "
                   "the sqlite3 shell, .mode csv, .once and a SELECT on dp_value write CSV)");
    return;
  }
  sqlite3 *facts = facts_for(host, tier);
  if (facts && ledger_read_only(host->session.ledger))
    error_set(error, "this connection cannot write its database (%s), so it writes no other file",
              ledger_read_only(host->session.ledger));
  if (facts && !error_is_set(error) && ledger_begin_computing(host->session.ledger) &&
      export_write(facts, file, host->session.ledger, error)) {
    result_exported(context, facts, tier, file, error);
  } else {
    fail_call(context, function_of(context)->name, error);
  }
  sqlite3_close(facts);
  ledger_rollback(host->session.ledger);
}

/* ---- dp_report ------------------------------------------------------------------------------- */

/* dp_report([tier]) -> HTML. The same ledger gives the same bytes. */
static void dp_report(sqlite3_context *context, int argc, sqlite3_value **argv) {
  struct host *host = host_of(context);
  struct ledger *ledger = host->session.ledger;
  struct error *error = &host->session.error;
  const char *tier = argc ? argument_text(context, argv[0], "tier") : 0;
  if (argc && !tier) return;
  sqlite3 *facts = facts_for(host, tier);
  if (facts && !tier) tier = ledger_audience(ledger);
  char *page = facts && ledger_begin_computing(ledger) ? page_write(facts, tier, error) : 0;
  sqlite3_close(facts);
  ledger_rollback(ledger);
  end_with_text(context, page, error);
}

const struct scalar reporting_functions[] = {
    {"dp_export", 2, 2, PRIVATE_FUNCTION, dp_export},
    {"dp_report", 0, 1, PRIVATE_FUNCTION, dp_report},
    {0},
};
