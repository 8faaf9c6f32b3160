/*
** setup.c: functions that set up and check a ledger (dp_init(), dp_tier(), dp_drop_tier(),
** dp_verify(), dp_certificate()), and dp_version().
** Tests: tests/ledger/test_tiers.py
*/
#include <math.h>
#include <string.h>

#include "base/sql_text.h"
#include "functions/functions.h"
#include "ledger/accountant.h"
#include "ledger/ledger.h"
#include "mechanism/mechanism.h"
#include "release/publish.h"
#include "version.h"

SQLITE_EXTENSION_INIT3

/* ---- dp_init --------------------------------------------------------------------------------- */

struct init {
  char *path, *unit;
  int protects, adjacency;
  struct error *error;
};

static int init_text(char **member, const char *key, sqlite3_value *value, struct error *error) {
  const char *text = plain_text(value);
  if (!text || !*text)
    return error_set(error, "%s must be a text that is not empty%s", key,
                     not_a(value, SQLITE_TEXT));
  *member = sqlite3_mprintf("%s", text);
  return *member ? 1 : error_set_memory(error);
}

static int init_choice(int *member, const char *key, sqlite3_value *value, const char *first,
                       const char *second, struct error *error) {
  const char *text = plain_text(value);
  *member = !text ? 0 : strcmp(text, first) == 0 ? 1 : strcmp(text, second) == 0 ? 2 : 0;
  return *member ? 1
                 : error_set(error, "%s must be '%s' or '%s'%s", key, first, second,
                             not_a(value, SQLITE_TEXT));
}

static int init_option(void *context, const char *key, const char *type, sqlite3_value *value) {
  static const char *const known[] = {"path", "unit", "protects", "adjacency", 0};
  struct init *init = context;
  struct error *error = init->error;
  (void)type;
  if (strcmp(key, "path") == 0) return init_text(&init->path, key, value, error);
  if (strcmp(key, "unit") == 0) return init_text(&init->unit, key, value, error);
  if (strcmp(key, "protects") == 0)
    return init_choice(&init->protects, key, value, "unit", "row", error);
  if (strcmp(key, "adjacency") == 0)
    return init_choice(&init->adjacency, key, value, "add-remove", "replace", error);
  return unknown_option(key, known, error);
}

/* dp_init([options]) -> the path of the ledger, which is made if there is none */
static void dp_init(sqlite3_context *context, int argc, sqlite3_value **argv) {
  struct ledger *ledger = host_of(context)->session.ledger;
  struct init init = {.error = ledger_error(ledger)};
  const char *json = 0;
  if (argc && sqlite3_value_type(argv[0]) != SQLITE_NULL &&
      !(json = argument_text(context, argv[0], "options")))
    return;
  int read = !json || json_members(ledger_json(ledger), json, init_option, &init);
  struct ledger_terms terms = {init.path, init.unit, init.protects, init.adjacency};
  if (read && ledger_create(ledger, &terms)) {
    sqlite3_result_text(context, ledger_path(ledger), -1, SQLITE_TRANSIENT);
  } else {
    fail_call(context, function_of(context)->name, init.error);
  }
  sqlite3_free(init.path);
  sqlite3_free(init.unit);
}

/* ---- dp_tier --------------------------------------------------------------------------------- */

static const struct domain rate_domain = {"rate", DESIGN_MIN_RATE, DESIGN_MAX_RATE, 0, 0};
static const struct domain epsilon_domain = {"epsilon", 0, INFINITY, 1, 1};
static const struct domain delta_domain = {"delta", 0, 1, 1, 1};
static const struct domain delta_keys_domain = {"delta_keys", 0, 1, 0, 1};

/* The terms of a tier that arguments and options set. */
struct tier_terms {
  struct ledger_tier tier; /* owns its period */
  int has_keys;            /* delta_keys is given */
  struct error *error;
};

static int tier_accountant(struct tier_terms *terms, sqlite3_value *value) {
  if (sqlite3_value_type(value) == SQLITE_NULL) return 1; /* NULL keeps the default */
  const char *text = plain_text(value);
  const struct accountant *found = text ? accountant_find(text) : 0;
  if (found) {
    terms->tier.accountant = found;
    return 1;
  }
  char *names = accountant_names();
  error_set(terms->error, "accountant must be %s%s", names ? names : "another",
            not_a(value, SQLITE_TEXT));
  sqlite3_free(names);
  return 0;
}

static int tier_keys(struct tier_terms *terms, sqlite3_value *value) {
  if (terms->has_keys) return error_set(terms->error, "delta_keys is given twice");
  terms->has_keys = 1;
  return domain_check(value, &delta_keys_domain, &terms->tier.delta_keys, terms->error);
}

static int tier_period(struct tier_terms *terms, sqlite3_value *value) {
  const char *text = plain_text(value);
  if (sqlite3_value_type(value) == SQLITE_NULL) return 1;
  if (!text || !ledger_period_is_known(text))
    return error_set(terms->error, "period must be 'day', 'week', 'month', 'quarter' or 'year'%s",
                     not_a(value, SQLITE_TEXT));
  terms->tier.period = sqlite3_mprintf("%s", text);
  return terms->tier.period || error_set_memory(terms->error);
}

static int tier_option(void *context, const char *key, const char *type, sqlite3_value *value) {
  static const char *const known[] = {"accountant", "delta_keys", "period", 0};
  struct tier_terms *terms = context;
  if (strcmp(type, "true") == 0 || strcmp(type, "false") == 0)
    return error_set(terms->error, "%s must not be a Boolean", key);
  if (strcmp(key, "accountant") == 0) return tier_accountant(terms, value);
  if (strcmp(key, "delta_keys") == 0) return tier_keys(terms, value);
  if (strcmp(key, "period") == 0) return tier_period(terms, value);
  return unknown_option(key, known, terms->error);
}

/* Reads argument 5: the name of an accountant, or options. */
static int tier_accountant_or_options(struct tier_terms *terms, struct json *json,
                                      sqlite3_value *value) {
  const char *text = plain_text(value);
  return text && text[strspn(text, " \t\r\n")] == '{' ? json_members(json, text, tier_option, terms)
                                                      : tier_accountant(terms, value);
}

/* Reads the delta of a budget, which must be 0 if the accountant has no delta. */
static int tier_delta(struct tier_terms *terms, sqlite3_value *value) {
  char label[64];
  sqlite3_snprintf(sizeof label, label, "delta of accountant '%s'", terms->tier.accountant->name);
  struct domain no_delta = {label, 0, 0, 0, 0};
  return domain_check(value, terms->tier.accountant->has_delta ? &delta_domain : &no_delta,
                      &terms->tier.delta, terms->error);
}

static int tier_read(struct tier_terms *terms, struct json *json, int argc, sqlite3_value **argv) {
  struct ledger_tier *tier = &terms->tier;
  if (!domain_check(argv[1], &rate_domain, &tier->rate, terms->error) ||
      !domain_check(argv[2], &epsilon_domain, &tier->epsilon, terms->error) ||
      (argc > 4 && !tier_accountant_or_options(terms, json, argv[4])) ||
      !tier_delta(terms, argv[3]) || (argc > 5 && !tier_keys(terms, argv[5])))
    return 0;
  if (strchr(tier->name, ','))
    return error_set(terms->error, "name must not contain a comma (dp_exposure lists tiers)");
  return tier->delta_keys == 0 || tier->delta_keys < tier->delta ||
         error_set(terms->error, "delta_keys must be less than delta");
}

/*
** dp_tier(name, rate, epsilon, delta [, accountant or options [, delta_keys]]) -> the name. The new
** tier is charged at once for the earlier releases that it sees.
*/
static void dp_tier(sqlite3_context *context, int argc, sqlite3_value **argv) {
  struct ledger *ledger = host_of(context)->session.ledger;
  const char *name = argument_text(context, argv[0], "name");
  struct tier_terms terms = {.tier = {.name = (char *)name, .accountant = accountant_find(0)},
                             .error = ledger_error(ledger)};
  if (!name) return;
  error_clear(terms.error);
  int made = tier_read(&terms, ledger_json(ledger), argc, argv) && ledger_ready(ledger) &&
             ledger_tier_create(ledger, &terms.tier);
  end_with_value(context, made, argv[0], terms.error);
  sqlite3_free(terms.tier.period);
}

/* dp_drop_tier(name) -> the name */
static void dp_drop_tier(sqlite3_context *context, int argc, sqlite3_value **argv) {
  struct ledger *ledger = host_of(context)->session.ledger;
  const char *name = argument_text(context, argv[0], "name");
  (void)argc;
  if (!name) return;
  end_with_value(context, ledger_ready(ledger) && ledger_tier_drop(ledger, name), argv[0],
                 ledger_error(ledger));
}

/* ---- dp_verify, dp_certificate, dp_version --------------------------------------------------- */

/* dp_verify() -> 'ok' or the first discrepancy */
static void dp_verify(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  (void)argv;
  struct ledger *ledger = host_of(context)->session.ledger;
  char *found = 0;
  if (ledger_ready(ledger) && ledger_begin_copy(ledger))
    found = session_verify(&host_of(context)->session);
  ledger_rollback(ledger);
  end_with_text(context, found, ledger_error(ledger));
}

/* dp_certificate() -> JSON, a report for an auditor */
static void dp_certificate(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  (void)argv;
  struct ledger *ledger = host_of(context)->session.ledger;
  char *verified = 0, *certificate = 0;
  if (ledger_ready(ledger) && ledger_begin_copy(ledger))
    verified = session_verify(&host_of(context)->session);
  if (verified && (strcmp(verified, "ok") != 0 || ledger_enter_periods(ledger)))
    certificate = ledger_certificate(ledger, verified, mechanism_describe);
  sqlite3_free(verified);
  ledger_rollback(ledger);
  end_with_text(context, certificate, ledger_error(ledger));
}

/* dp_version() -> TEXT */
static void dp_version(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  (void)argv;
  sqlite3_result_text(context, DIFFUSE_VERSION, -1, SQLITE_STATIC);
}

const struct scalar tier_functions[] = {
    {"dp_init", 0, 1, PRIVATE_FUNCTION, dp_init},
    {"dp_tier", 4, 6, PRIVATE_FUNCTION, dp_tier},
    {"dp_drop_tier", 1, 1, PRIVATE_FUNCTION, dp_drop_tier},
    {"dp_verify", 0, 0, PRIVATE_FUNCTION, dp_verify},
    {"dp_certificate", 0, 0, PRIVATE_FUNCTION, dp_certificate},
    {0},
};

const struct scalar version_function = {"dp_version", 0, 0, PURE, dp_version};
