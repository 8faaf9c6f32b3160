/*
** verify.c: recomputes the books from dp_charge, and what a set of tiers has been exposed to.
*/
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ledger/internal.h"
#include "math/renyi.h"
#include "math/rounding.h"

SQLITE_EXTENSION_INIT3

/* The budget of one tier as its charges give it. */
struct recount {
  const struct ledger_tier *tier;
  struct budget budget;
};

/* ---- dp_verify ----------------------------------------------------------------------------------- */

static struct recount *recount_of(struct recount *recounts, int count, const char *tier) {
  for (int i = 0; tier && i < count; i++) {
    if (strcmp(recounts[i].tier->name, tier) == 0) return &recounts[i];
  }
  return 0;
}

/* Checks one row of the chain and adds it up; returns a discrepancy or null. */
static char *check_charge(sqlite3_stmt *row, int64_t expected, char hash[CHARGE_HASH_SIZE],
                          struct recount *recounts, int count) {
  struct charge charge = {sqlite3_column_int64(row, 0),
                          sqlite3_column_int64(row, 1),
                          (const char *)sqlite3_column_text(row, 2),
                          (const char *)sqlite3_column_text(row, 3),
                          (const char *)sqlite3_column_text(row, 8),
                          sqlite3_column_double(row, 4),
                          sqlite3_column_double(row, 5),
                          sqlite3_column_double(row, 6),
                          sqlite3_column_blob(row, 7),
                          sqlite3_column_bytes(row, 7)};
  const char *stored = (const char *)sqlite3_column_text(row, 9);
  if (charge.id != expected)
    return sqlite3_mprintf("dp_charge: row %lld is missing", (long long)expected);
  if (!charge_hash(hash, &charge, hash)) return sqlite3_mprintf("out of memory");
  if (!stored || strcmp(stored, hash) != 0)
    return sqlite3_mprintf("dp_charge: row %lld does not match its hash", (long long)charge.id);
  struct recount *recount = recount_of(recounts, count, charge.tier);
  if (!recount)
    return sqlite3_mprintf("dp_charge: row %lld charges the unknown tier '%s'", (long long)charge.id,
                           charge.tier);
  if (!(charge.rate >= 0 && charge.slack >= 0 && charge.delta >= 0))
    return sqlite3_mprintf("dp_charge: row %lld is negative", (long long)charge.id);
  recount->budget.rate = total_add(recount->budget.rate, charge.rate);
  recount->budget.slack = nextafter(recount->budget.slack + charge.slack, INFINITY);
  recount->budget.delta += charge.delta;
  return 0;
}

static char *check_chain(struct ledger *ledger, struct recount *recounts, int count) {
  char hash[CHARGE_HASH_SIZE] = "";
  char *found = 0;
  sqlite3_stmt *row = statement_bind(ledger, CHARGE_LIST, "");
  for (int64_t expected = 1; !found && statement_row(ledger, row); expected++)
    found = check_charge(row, expected, hash, recounts, count);
  sqlite3_reset(row);
  return found;
}

static int close_to(double a, double b) {
  return a == b || fabs(a - b) <= 1e-9 * fabs(b);
}

static char *check_present(struct ledger *ledger, const struct ledger_tier *tiers, int count) {
  char *found = 0;
  for (int i = 0; i < count && !found; i++) {
    sqlite3_stmt *row = statement_bind(ledger, BUDGET_READ, "s", tiers[i].name);
    if (!statement_row(ledger, row))
      found = sqlite3_mprintf("dp_budget: tier '%s' is missing", tiers[i].name);
    sqlite3_reset(row);
  }
  return found;
}

/* The stored totals must be those of the charges, and lie within the filter. */
static char *check_budget(struct ledger *ledger, const struct recount *recount, int64_t left) {
  const struct ledger_tier *tier = recount->tier;
  const struct budget *budget = &recount->budget;
  sqlite3_stmt *row = statement_bind(ledger, BUDGET_CHECK, "s", tier->name);
  if (!statement_row(ledger, row)) return 0;
  double epsilon = budget_epsilon(tier, budget);
  int same = sqlite3_column_double(row, 0) == budget->rate.high &&
             sqlite3_column_double(row, 1) == budget->rate.low &&
             sqlite3_column_double(row, 2) == budget->slack &&
             sqlite3_column_double(row, 3) == budget->delta &&
             sqlite3_column_double(row, 4) == total_up(budget->rate) &&
             close_to(sqlite3_column_double(row, 5), epsilon) &&
             fabs(sqlite3_column_double(row, 6) - fmax(0, tier->epsilon - epsilon)) <=
                 1e-9 * tier->epsilon &&
             sqlite3_column_double(row, 7) == tier->epsilon &&
             sqlite3_column_double(row, 8) == tier->delta &&
             llabs(sqlite3_column_int64(row, 9) - left) <= 1 &&
             sqlite3_column_int64(row, 10) == sqlite3_column_int64(row, 11);
  sqlite3_reset(row);
  if (!same) return sqlite3_mprintf("dp_budget: tier '%s' does not match its charges", tier->name);
  if (!total_within(budget->rate, tier->rate_limit) || !(budget->delta <= tier->delta_keys) ||
      (tier->accountant == LEDGER_GDP && !(budget->slack <= tier->slack_limit)))
    return sqlite3_mprintf("dp_charge: tier '%s' has spent more than its budget", tier->name);
  return 0;
}

/* The filter must be what epsilon and delta make it, also as the allowance of every order. */
static char *check_filter(struct ledger *ledger, const struct ledger_tier *tier) {
  struct ledger_tier fresh = *tier;
  int orders = 0;
  if (!fix_filter(ledger, &fresh) || !close_to(tier->rate_limit, fresh.rate_limit) ||
      !close_to(tier->slack_limit, fresh.slack_limit) ||
      (tier->accountant == LEDGER_RDP && !close_to(tier->filter_order, fresh.filter_order)))
    return sqlite3_mprintf("dp_tier: the filter of tier '%s' is not that of its budget", tier->name);
  sqlite3_stmt *row = statement_bind(ledger, ORDER_CHECK, "s", tier->name);
  for (; statement_row(ledger, row); orders++) {
    double alpha = sqlite3_column_double(row, 0);
    double allowed = renyi_allowed(alpha, tier->epsilon, tier->delta - tier->delta_keys);
    if (alpha != renyi_order(orders) ||
        fabs(sqlite3_column_double(row, 1) - allowed) > 1e-9 * (tier->epsilon + fabs(allowed))) {
      orders = -1;
      break;
    }
  }
  sqlite3_reset(row);
  return orders == RENYI_ORDERS
             ? 0
             : sqlite3_mprintf("dp_rdp: the orders of tier '%s' are damaged", tier->name);
}

/* What a publication says of itself and what it has cost: a discrepancy, or null. */
static char *check_publication(sqlite3_stmt *row) {
  double rate = sqlite3_column_double(row, 3), paid = sqlite3_column_double(row, 7);
  double of_clock = lattice_rate((uint64_t)sqlite3_column_int64(row, 5),
                                 (uint64_t)sqlite3_column_int64(row, 4));
  double expected = fmin(of_clock, sqlite3_column_double(row, 6));
  if (!(fabs(rate - expected) <= 1e-13 * expected))
    return sqlite3_mprintf("dp_publication: '%s' at tier '%s' has a rate that is not that of its clock",
                           sqlite3_column_text(row, 0), sqlite3_column_text(row, 1));
  if (!(paid >= rate * (1 - 0x1p-48)))
    return sqlite3_mprintf("dp_charge: tier '%s' has not paid for '%s' at tier '%s'",
                           sqlite3_column_text(row, 2), sqlite3_column_text(row, 0),
                           sqlite3_column_text(row, 1));
  return 0;
}

/* Every publication shows a point of its path, and every tier that sees it has paid for it. */
static char *check_publications(struct ledger *ledger) {
  char *found = 0;
  sqlite3_stmt *row = statement_bind(ledger, PATH_CHECK, "");
  if (statement_row(ledger, row))
    found = sqlite3_mprintf("dp_publication: '%s' at tier '%s' does not show the point of its path",
                            sqlite3_column_text(row, 0), sqlite3_column_text(row, 1));
  sqlite3_reset(row);
  row = statement_bind(ledger, PUBLICATION_CHECK, "");
  while (!found && statement_row(ledger, row)) found = check_publication(row);
  sqlite3_reset(row);
  return found;
}

static char *verify(struct ledger *ledger, const struct ledger_tier *tiers,
                    struct recount *recounts, int count) {
  char *found = check_present(ledger, tiers, count);
  if (!found) found = check_chain(ledger, recounts, count);
  for (int i = 0; i < count && !found; i++) {
    found = check_filter(ledger, &tiers[i]);
    if (!found) found = check_budget(ledger, &recounts[i], releases_left(ledger, tiers, i));
  }
  if (!found) found = check_publications(ledger);
  return found;
}

char *ledger_verify(struct ledger *ledger) {
  struct ledger_tier *tiers;
  int count;
  char *result = 0;
  if (ledger_tiers(ledger, &tiers, &count)) {
    struct recount *recounts =
        sqlite3_malloc64(sizeof *recounts * (sqlite3_uint64)(count ? count : 1));
    if (recounts) {
      for (int i = 0; i < count; i++) recounts[i] = (struct recount){&tiers[i], {{0, 0}, 0, 0, 0}};
      result = verify(ledger, tiers, recounts, count);
      if (!result && !ledger->error) result = sqlite3_mprintf("ok");
      sqlite3_free(recounts);
    }
  }
  ledger_tiers_free(tiers, count);
  return result;
}

/* ---- dp_exposure --------------------------------------------------------------------------------- */

/* One release as the chosen tiers have seen it: its least noisy publication among theirs. */
struct sight {
  int64_t release_id;
  char *release, *tier;
  double rate;
};

static void sight_finish(struct sight *sight, sqlite3_str *json, struct total *rate) {
  if (sight->release && sight->tier) {
    sqlite3_str_appendall(json, rate->high > 0 ? ",{\"release\":" : "{\"release\":");
    ledger_append_string(json, sight->release);
    sqlite3_str_appendall(json, ",\"tier\":");
    ledger_append_string(json, sight->tier);
    sqlite3_str_appendf(json, ",\"rate\":%!.17g}", sight->rate);
    *rate = total_add(*rate, sight->rate);
  }
  sqlite3_free(sight->release);
  sqlite3_free(sight->tier);
  *sight = (struct sight){0, 0, 0, 0};
}

static int is_chosen(const struct ledger_tier *tiers, const int *chosen, int count,
                     const char *name) {
  for (int i = 0; name && i < count; i++) {
    if (strcmp(tiers[chosen[i]].name, name) == 0) return 1;
  }
  return 0;
}

/* The list of sights as JSON, and their total rate: the maximum inside the sum. */
static char *collect_sights(struct ledger *ledger, const struct ledger_tier *tiers,
                            const int *chosen, int count, struct total *rate) {
  sqlite3_str *json = sqlite3_str_new(0);
  struct sight sight = {0, 0, 0, 0};
  sqlite3_stmt *row = statement_bind(ledger, PUBLICATION_LIST, ""); /* by release */
  while (statement_row(ledger, row)) {
    if (!is_chosen(tiers, chosen, count, (const char *)sqlite3_column_text(row, 2))) continue;
    int64_t release_id = sqlite3_column_int64(row, 0);
    if (release_id != sight.release_id) sight_finish(&sight, json, rate);
    if (sqlite3_column_double(row, 3) <= sight.rate) continue;
    sqlite3_free(sight.release);
    sqlite3_free(sight.tier);
    sight = (struct sight){release_id, column_copy(ledger, row, 1), column_copy(ledger, row, 2),
                           sqlite3_column_double(row, 3)};
  }
  sight_finish(&sight, json, rate);
  int empty = sqlite3_str_length(json) == 0;
  char *text = sqlite3_str_finish(json);
  if (!text && empty) text = sqlite3_mprintf("");
  if (!text) ledger_fail(ledger, "out of memory");
  return text;
}

static double exposure_epsilon(const struct ledger_tier *tier, struct total rate) {
  struct budget budget = {rate, 0, 0, 0};
  return budget_epsilon(tier, &budget);
}

char *ledger_exposure(struct ledger *ledger, const struct ledger_tier *tiers, const int *chosen,
                      int count) {
  struct total rate = {0, 0};
  char *sights = collect_sights(ledger, tiers, chosen, count, &rate);
  if (!sights) return 0;
  int worst = chosen[0];
  for (int i = 1; i < count; i++) {
    if (tiers[chosen[i]].delta < tiers[worst].delta) worst = chosen[i];
  }
  sqlite3_str *json = sqlite3_str_new(0);
  sqlite3_str_appendf(json, "{\"rate\":%!.17g,\"delta\":%!.17g,\"epsilon\":%!.17g,\"tiers\":[",
                      total_up(rate), tiers[worst].delta, exposure_epsilon(&tiers[worst], rate));
  for (int i = 0; i < count; i++) {
    sqlite3_str_appendall(json, i ? ",{\"tier\":" : "{\"tier\":");
    ledger_append_string(json, tiers[chosen[i]].name);
    sqlite3_str_appendf(json, ",\"delta\":%!.17g,\"epsilon\":%!.17g}", tiers[chosen[i]].delta,
                        exposure_epsilon(&tiers[chosen[i]], rate));
  }
  sqlite3_str_appendf(json, "],\"releases\":[%s]}", sights);
  sqlite3_free(sights);
  char *result = sqlite3_str_finish(json);
  if (!result) ledger_fail(ledger, "out of memory");
  return result;
}
