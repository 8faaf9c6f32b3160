/*
** guards.c: dp_guard(), which hands a connection to the members of one tier, and dp_grant(), which
** sets aside a part of a budget for their questions.
** Tests: tests/functions/test_guard.py
*/
#include <math.h>
#include <string.h>

#include "base/sql_text.h"
#include "functions/functions.h"
#include "functions/tier_guard.h"
#include "ledger/policy.h"

SQLITE_EXTENSION_INIT3

/* ---- dp_guard -------------------------------------------------------------------------------- */

struct guard_options {
  char *ask;
  struct error *error;
};

static int guard_option(void *context, const char *key, const char *type, sqlite3_value *value) {
  (void)type;
  static const char *const known[] = {"ask", 0};
  struct guard_options *options = context;
  if (strcmp(key, "ask") != 0) return unknown_option(key, known, options->error);
  const char *text = plain_text(value);
  if (!text || !*text)
    return error_set(options->error, "ask must be the name of a grant%s",
                     not_a(value, SQLITE_TEXT));
  options->ask = sqlite3_mprintf("%s", text);
  return options->ask ? 1 : error_set_memory(options->error);
}

/* What dp_guard() reads from the ledger. */
struct facts {
  struct ledger_policy policy;
  struct ledger_tier *tiers;
  int tier_count;
  struct ledger_grant grant;
};

static int read_facts(struct facts *facts, struct ledger *ledger, const char *tier,
                      const char *ask) {
  if (!ledger_ready(ledger) || !ledger_begin_reading(ledger)) return 0;
  int going = ledger_tiers(ledger, &facts->tiers, &facts->tier_count) &&
              ledger_tier_find(ledger, facts->tiers, facts->tier_count, tier) >= 0 &&
              ledger_policy_read(ledger, &facts->policy) &&
              (!ask || ledger_grant_find(ledger, ask, &facts->grant));
  if (going && ask && strcmp(facts->grant.tier, tier) != 0)
    going = error_set(ledger_error(ledger), "grant '%s' is of tier '%s', not '%s'", ask,
                      facts->grant.tier, tier);
  if (going && ask && !facts->policy.count)
    going = error_set(ledger_error(ledger),
                      "questions of others need a ledger with a policy (dp_protect)");
  ledger_rollback(ledger);
  return going;
}

static int set_guard(struct host *host, const char *tier, const struct guard_options *options) {
  struct ledger *ledger = host->session.ledger;
  struct error *error = options->error;
  const char *ask = options->ask;
  struct facts facts = {.tier_count = 0};
  char **outward = 0;
  int count, going = read_facts(&facts, ledger, tier, ask);
  if (going && facts.grant.diffuse) {
    outward = json_list(ledger_json(ledger), facts.grant.diffuse, 0, &count);
    going = outward != 0;
  }
  struct tier_guard_terms terms = {
      .tier = tier,
      .grant = ask,
      .outward = outward,
      .pad = facts.grant.pad_ms,
      .limits = {facts.grant.steps, facts.grant.bytes, facts.grant.seconds},
      .policy = &facts.policy};
  sqlite3 *db = host->collector.db;
  if (going && ledger_guest(ledger, tier) && ledger_use_grant(ledger, ask))
    host->guard = tier_guard_set(db, ledger, &terms, error);
  if (!host->guard) {
    json_list_free(outward);
    ledger_guest(ledger, 0);
    ledger_use_grant(ledger, 0);
    going = 0;
  } else if (guest_tables_register(db, host, &facts.policy) != SQLITE_OK) {
    going = error_set_memory(error); /* the connection is guarded, but lacks some tables */
  }
  ledger_policy_free(&facts.policy);
  ledger_tiers_free(facts.tiers, facts.tier_count);
  ledger_grant_clear(&facts.grant);
  return going;
}

/*
** Pools of connections call dp_guard() again whenever they hand out a connection. A call that asks
** for the guard that is set changes nothing.
*/
static int check_same(const struct tier_guard *guard, const char *tier,
                      const struct guard_options *options) {
  const char *old = guard->grant ? guard->grant : "", *ask = options->ask ? options->ask : "";
  return (strcmp(guard->tier, tier) == 0 && strcmp(old, ask) == 0) ||
         error_set(options->error,
                   "this connection is guarded for tier '%s'%s%s%s until it is closed (open "
                   "another one)",
                   guard->tier, *old ? " and grant '" : "", old, *old ? "'" : "");
}

/* dp_guard(tier [, options]) -> the tier. The connection stays guarded until it is closed. */
static void dp_guard(sqlite3_context *context, int argc, sqlite3_value **argv) {
  struct host *host = host_of(context);
  struct error *error = &host->session.error;
  struct guard_options options = {0, error};
  const char *tier = argument_text(context, argv[0], "tier"), *json = 0;
  error_clear(error);
  if (!tier || (argc > 1 && sqlite3_value_type(argv[1]) != SQLITE_NULL &&
                !(json = argument_text(context, argv[1], "options"))))
    return;
  int going =
      !json || json_members(ledger_json(host->session.ledger), json, guard_option, &options);
  if (going)
    going = host->guard ? check_same(host->guard, tier, &options) : set_guard(host, tier, &options);
  end_with_value(context, going, argv[0], error);
  sqlite3_free(options.ask);
}

/* ---- dp_grant -------------------------------------------------------------------------------- */

/* A number among the options of dp_grant(), and its default. */
static const struct grant_number {
  struct domain domain;
  int is_whole;
  double otherwise;
} grant_numbers[] = {{{"pad_ms", 1, GRANT_MOST_PAD, 0, 0}, 1, 500},
                     {{"seconds", 0, 86400, 1, 0}, 0, 10},
                     {{"steps", 1000, 1e12, 0, 0}, 1, 10000},
                     {{"bytes", 1e6, 1e12, 0, 0}, 1, 16 << 20}};
#define NUMBERS ((int)(sizeof grant_numbers / sizeof *grant_numbers))

struct grant_options {
  struct json *json;
  char **outward;
  int count;
  double numbers[NUMBERS];
  struct error *error;
};

static int grant_option(void *context, const char *key, const char *type, sqlite3_value *value) {
  static const char *const known[] = {"bytes", "diffuse", "pad_ms", "seconds", "steps", 0};
  struct grant_options *options = context;
  struct error *error = options->error;
  for (int i = 0; i < NUMBERS; i++) {
    double *number = &options->numbers[i];
    if (strcmp(key, grant_numbers[i].domain.parameter) != 0) continue;
    if (!domain_check(value, &grant_numbers[i].domain, number, error)) return 0;
    return !grant_numbers[i].is_whole || *number == floor(*number) ||
           error_set(error, "%s must be a whole number", key);
  }
  if (strcmp(key, "diffuse") != 0) return unknown_option(key, known, error);
  static const char wanted[] = "diffuse must be a JSON array of tiers, such as [\"public\"]";
  if (strcmp(type, "array") == 0)
    options->outward =
        json_list(options->json, (const char *)sqlite3_value_text(value), wanted, &options->count);
  return options->count > 0 || error_set(error, "%s", wanted);
}

/* Reads the third argument of dp_grant(): a number of questions, or a share. */
static int take_size(sqlite3_value *value, struct ledger_grant *grant, struct error *error) {
  static const struct domain domain = {"share", 0, 1e9, 1, 0};
  double size;
  if (!domain_check(value, &domain, &size, error)) return 0;
  if (size >= 1 && size != floor(size))
    return error_set(error, "share must be a whole number of questions, or a share below 1 of what "
                            "is left");
  grant->questions = size < 1 ? 0 : (int)size;
  grant->share = size < 1 ? size : 0;
  return 1;
}

/*
** dp_grant(name, tier, share [, options]) -> the name. The grant reserves its part at the tier, at
** every tier inside it, and at the tiers of `diffuse`. A repeated call changes nothing.
*/
static void dp_grant(sqlite3_context *context, int argc, sqlite3_value **argv) {
  struct ledger *ledger = host_of(context)->session.ledger;
  struct error *error = ledger_error(ledger);
  struct grant_options options = {.json = ledger_json(ledger), .error = error};
  struct ledger_grant grant = {.share = 0};
  const char *name = argument_text(context, argv[0], "name");
  const char *tier = name ? argument_text(context, argv[1], "tier") : 0, *json = 0;
  if (!tier || (argc > 3 && sqlite3_value_type(argv[3]) != SQLITE_NULL &&
                !(json = argument_text(context, argv[3], "options"))))
    return;
  for (int i = 0; i < NUMBERS; i++) options.numbers[i] = grant_numbers[i].otherwise;
  int going = take_size(argv[2], &grant, error) &&
              (!json || json_members(options.json, json, grant_option, &options));
  if (going && options.count) grant.diffuse = json_texts(options.outward, options.count);
  if (going && options.count && !grant.diffuse) going = error_set_memory(error);
  grant.name = (char *)name;
  grant.tier = (char *)tier;
  grant.pad_ms = (int)options.numbers[0];
  grant.seconds = options.numbers[1];
  grant.steps = options.numbers[2];
  grant.bytes = options.numbers[3];
  going = going && ledger_ready(ledger) &&
          ledger_grant_create(ledger, &grant, (const char *const *)options.outward, options.count);
  end_with_value(context, going, argv[0], error);
  sqlite3_free(grant.diffuse);
  json_list_free(options.outward);
}

const struct scalar guard_functions[] = {
    {"dp_guard", 1, 2, PRIVATE_FUNCTION, dp_guard},
    {"dp_grant", 3, 4, PRIVATE_FUNCTION, dp_grant},
    {0},
};
