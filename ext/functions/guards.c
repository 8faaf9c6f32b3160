/*
** guards.c: dp_guard(), which hands a connection to the members of one tier.
*/
#include "functions/functions.h"
#include "functions/host.h"
#include "functions/tier_guard.h"
#include "ledger/policy.h"

SQLITE_EXTENSION_INIT3

/* ---- dp_guard -------------------------------------------------------------------------------- */

/* Reads what the guard needs from the ledger, and sets it. */
static int set_guard(struct host *host, const char *tier, struct error *error) {
  struct ledger *ledger = host->session.ledger;
  struct ledger_policy policy = {0, 0};
  struct ledger_tier *tiers = 0;
  const char **names = 0;
  int count = 0, named = 0;
  if (!ledger_ready(ledger) || !ledger_begin_reading(ledger)) return 0;
  int going = ledger_tiers(ledger, &tiers, &count) &&
              ledger_tier_find(ledger, tiers, count, tier) >= 0 &&
              ledger_policy_read(ledger, &policy);
  if (going) {
    names = sqlite3_malloc64(sizeof *names * (sqlite3_uint64)(policy.count + 1));
    if (!names) going = error_set_memory(error);
  }
  for (int i = 0; going && i < policy.count; i++)
    if (policy.list[i].role == POLICY_PUBLIC) names[named++] = policy.list[i].table;
  ledger_rollback(ledger);
  struct tier_guard_terms terms = {.tier = tier, .tables = names, .table_count = named};
  if (going && ledger_guest(ledger, tier))
    host->guard = tier_guard_set(host->collector.db, &terms, error);
  if (!host->guard) ledger_guest(ledger, 0);
  ledger_policy_free(&policy);
  ledger_tiers_free(tiers, count);
  sqlite3_free(names);
  return host->guard != 0;
}

/*
** dp_guard(tier) -> TEXT, the tier
** Hands this connection to the members of a tier until it is closed. They may read public tables,
** and of the tables of this extension what members of the tier may know. Fails, and then guards
** nothing, inside a transaction and while another statement is running.
*/
static void dp_guard(sqlite3_context *context, int argc, sqlite3_value **argv) {
  struct host *host = host_of(context);
  const char *tier = argument_text(context, argv[0], "tier");
  (void)argc;
  if (!tier) return;
  if (set_guard(host, tier, &host->session.error)) {
    sqlite3_result_value(context, argv[0]);
  } else {
    fail_call(context, function_of(context)->name, &host->session.error);
  }
}

static const struct scalar functions[] = {
    {"dp_guard", 1, 1, PRIVATE_FUNCTION, dp_guard},
};

int guards_register(sqlite3 *db, struct host *host) {
  return scalars_register(db, host, functions, sizeof functions / sizeof *functions);
}
