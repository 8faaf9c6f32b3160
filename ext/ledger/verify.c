/* verify.c: recomputes all totals from dp_charge and compares the results with the stored totals.
** Checks that every publication was paid for.
** Tests: tests/ledger/test_ledger.py, tests/ledger/test_edits.py, tests/release/test_until.py */
#include <math.h>
#include <string.h>

#include "base/own_connection.h"
#include "ledger/internal.h"
#include "os/os.h"

SQLITE_EXTENSION_INIT3

/* The budget of one tier in one period, recomputed from its charges. */
struct recount {
  const struct ledger_tier *tier;
  struct budget budget;
  struct curve curve;
  char *period; /* latest period with a charge; null: no periods, or no charge so far */
};

/* If a charge begins a new period, starts a new count. A tier never goes back to an earlier period,
** and each period has a budget of its own. */
static int recount_enter(struct ledger *ledger, struct recount *recount,
                         const struct charge *charge) {
  const char *start = *charge->period ? charge->period : 0, *last = recount->period;
  if (last && start && strcmp(last, start) == 0) return 1;
  if (!start && !recount->tier->period) return 1;
  if (!start || !period_begins_on(ledger, recount->tier, start) ||
      (last && strcmp(start, last) < 0))
    return ledger_discrepancy(ledger, "dp_charge: row %lld counts in the wrong period",
                              (long long)charge->id);
  if (!budget_within(recount->tier, &recount->budget))
    return ledger_discrepancy(ledger,
                              "dp_charge: tier '%s' has spent more than its budget in the period "
                              "from %s",
                              recount->tier->name, last);
  sqlite3_free(recount->period);
  recount->period = sqlite3_mprintf("%s", start);
  recount->budget = (struct budget){0};
  recount->curve = (struct curve){0};
  return recount->period || ledger_fail(ledger, "out of memory");
}

/* Checks one charge of the chain and adds it to its tier. */
static int check_charge(struct ledger *ledger, sqlite3_stmt *row, int64_t expected,
                        char hash[HASH_SIZE], struct recount *recounts, int count) {
  struct charge charge = {.id = sqlite3_column_int64(row, 0),
                          .release_id = sqlite3_column_int64(row, 1),
                          .release = column_text(ledger, row, 2),
                          .tier = column_text(ledger, row, 3),
                          .subject = column_text(ledger, row, 13),
                          .rate = column_number(row, 4),
                          .slack = column_number(row, 5),
                          .delta = column_number(row, 6),
                          .curve = column_bytes(row, 7),
                          .at = column_text(ledger, row, 8),
                          .period = column_text(ledger, row, 9),
                          .grant_name = column_text(ledger, row, 10),
                          .kind = column_text(ledger, row, 12)};
  struct recount *recount = 0;
  for (int i = 0; i < count; i++)
    if (strcmp(recounts[i].tier->name, charge.tier) == 0) recount = &recounts[i];
  if (charge.id != expected)
    return ledger_discrepancy(ledger, "dp_charge: row %lld is missing", (long long)expected);
  if (!recount)
    return ledger_discrepancy(ledger, "dp_charge: row %lld charges the unknown tier '%s'",
                              (long long)charge.id, charge.tier);
  charge.tier_rate = recount->tier->rate;
  charge_hash(hash, &charge, hash);
  if (strcmp(column_text(ledger, row, 11), hash) != 0)
    return ledger_discrepancy(
        ledger,
        "dp_charge: row %lld does not match its hash, or its release, tier or terms "
        "were changed",
        (long long)charge.id);
  int is_return = strcmp(charge.kind, "return") == 0;
  if (is_return ? !(charge.rate < 0 && charge.slack <= 0 && charge.delta == 0 && !charge.curve.at)
                : !(charge.rate >= 0 && charge.slack >= 0 && charge.delta >= 0))
    return ledger_discrepancy(ledger, "dp_charge: row %lld %s", (long long)charge.id,
                              is_return ? "is no return" : "is negative");
  if (!recount_enter(ledger, recount, &charge)) return 0;
  struct payment payment = {
      {charge.rate, 0}, charge.slack, charge.delta, curve_of_bytes(ledger, charge.curve)};
  recount->budget = budget_after(&recount->budget, &payment, 0);
  curve_add(&recount->curve, &payment.curve);
  return 1;
}

static void check_chain(struct ledger *ledger, struct recount *recounts, int count) {
  char hash[HASH_SIZE] = "";
  sqlite3_stmt *row = statement_bind(
      ledger,
      "SELECT id, release_id, release, tier, rate, slack, delta, curve, at, period, grant_name,"
      " hash, kind, " SUBJECT("c.release_id") " FROM dp_charge c ORDER BY id",
      "");
  for (int64_t expected = 1; statement_row(ledger, row); expected++)
    check_charge(ledger, row, expected, hash, recounts, count);
}

/* A tier may have entered a later period in which it has no charge yet: an inner tier may have paid
** already for the publication that began the period. */
static void recount_end(struct ledger *ledger, struct recount *recount) {
  char *start = period_entered(ledger, recount->tier->name);
  const struct charge none = {.period = start};
  if (start && recount->period && strcmp(start, recount->period) < 0)
    ledger_discrepancy(ledger, "dp_budget: tier '%s' is in an earlier period than its charges",
                       recount->tier->name);
  if (start) recount_enter(ledger, recount, &none);
  sqlite3_free(start);
}

static int close_to(double a, double b) {
  return a == b || (isfinite(b) && fabs(a - b) <= 1e-9 * fabs(b));
}

/* Checks that the stored totals are the sums of the charges and within the tier's limits. */
static int check_budget(struct ledger *ledger, const struct recount *recount, int64_t left) {
  const struct ledger_tier *tier = recount->tier;
  const struct budget *budget = &recount->budget;
  sqlite3_stmt *row = statement_bind(ledger,
                                     "SELECT spent_high, spent_low, spent_slack, spent_delta,"
                                     " spent_rate, spent_curve, spent_pure, spent_epsilon,"
                                     " remaining_epsilon, epsilon, delta, releases_left, releases,"
                                     " (SELECT count(DISTINCT release_id) FROM dp_charge c"
                                     " WHERE c.tier = b.tier AND period IS period_start)"
                                     " FROM dp_budget b WHERE tier = ?",
                                     "s", tier->name);
  if (!statement_row(ledger, row)) return 0;
  double epsilon = budget_epsilon(tier, budget, &recount->curve);
  const double totals[] = {budget->rate.high,      budget->rate.low, budget->slack, budget->delta,
                           total_up(budget->rate), budget->curve,    budget->pure};
  int same = 1, at = 0;
  for (; at < (int)(sizeof totals / sizeof *totals); at++)
    same = same && sqlite3_column_double(row, at) == totals[at];
  double remaining = fmax(0, tier->epsilon - epsilon);
  same = same && close_to(sqlite3_column_double(row, at), epsilon) &&
         fabs(sqlite3_column_double(row, at + 1) - remaining) <= 1e-9 * tier->epsilon &&
         sqlite3_column_double(row, at + 2) == tier->epsilon &&
         sqlite3_column_double(row, at + 3) == tier->delta &&
         fabs((double)sqlite3_column_int64(row, at + 4) - (double)left) <= 1 &&
         sqlite3_column_int64(row, at + 5) == sqlite3_column_int64(row, at + 6);
  if (!same)
    return ledger_discrepancy(ledger, "dp_budget: tier '%s' does not match its charges",
                              tier->name);
  return budget_within(tier, budget) ||
         ledger_discrepancy(ledger, "dp_charge: tier '%s' has spent more than its budget",
                            tier->name);
}

/* Checks that the limits and the rows of dp_order.allowed follow from the tier's epsilon and
** delta. */
static int check_filter(struct ledger *ledger, const struct recount *recount) {
  const struct ledger_tier *tier = recount->tier;
  struct ledger_tier fresh = *tier;
  const struct accountant *accountant = tier->accountant;
  int orders = 0, same = 1;
  if (!accountant->set_limit(&fresh) || !close_to(tier->rate_limit, fresh.rate_limit) ||
      !(accountant->reserve_slack ? tier->slack_limit >= 0 : tier->slack_limit == 0) ||
      (!accountant->has_delta && (tier->delta != 0 || tier->delta_keys != 0)) ||
      (!isnan(fresh.filter_order) && !close_to(tier->filter_order, fresh.filter_order)) ||
      !(isnan(fresh.pure_limit) ? isnan(tier->pure_limit) : tier->pure_limit == fresh.pure_limit))
    return ledger_discrepancy(ledger, "dp_tier: the filter of tier '%s' is not that of its budget",
                              tier->name);
  sqlite3_stmt *row = statement_bind(
      ledger, "SELECT alpha, allowed, curve FROM dp_order WHERE tier = ? ORDER BY alpha", "s",
      tier->name);
  for (; statement_row(ledger, row); orders++) {
    double alpha = sqlite3_column_double(row, 0);
    double allowed = accountant->allowed(tier, alpha), stored = sqlite3_column_double(row, 1);
    double most = 1e-9 * (tier->epsilon + fabs(allowed));
    same =
        same && orders < RENYI_ORDERS && alpha == renyi_order(orders) &&
        (stored == allowed || (isfinite(allowed) && fabs(stored - allowed) <= most)) &&
        sqlite3_column_double(row, 2) == (recount->curve.any ? recount->curve.values[orders] : 0);
  }
  return (same && orders == RENYI_ORDERS) ||
         ledger_discrepancy(ledger, "dp_rdp: the orders of tier '%s' are damaged", tier->name);
}

/* A point of a mechanism. The curve of its noise follows from the sensitivity and the clock. */
struct noise_point {
  const struct ledger_mechanism *mechanism;
  uint64_t sensitivity, clock;
};

static double curve_at(const void *parameters, double alpha) {
  const struct noise_point *point = parameters;
  return point->mechanism->rdp(point->sensitivity, point->clock, alpha);
}

/* Returns whether the noise of a publication can have this curve, or this rate and no curve. */
static int is_possible(const struct curve *curve, double rate,
                       const struct ledger_mechanism *mechanism, double delta, uint64_t sensitivity,
                       uint64_t clock) {
  if (!curve->any) return mechanism->may_have_rate && rate > 0;
  /* A model with a random stop has a delta. Its curve does not follow from the noise. */
  if (!mechanism->rdp || (mechanism->hides && delta > 0)) return 1;
  struct noise_point point = {mechanism, sensitivity, clock};
  struct curve expected = curve_of(&(struct cost){0, 0, curve_at, &point}, NAN);
  for (int i = 0; i < RENYI_ORDERS; i++) {
    double is = curve->values[i], want = expected.values[i];
    /* Later steps of a mechanism that hides can bring the curve below that of the noise. */
    if (!close_to(is, want) && !(mechanism->hides && is < want)) return 0;
  }
  return 1;
}

/* Checks that the cost of a publication, a rate or a curve, follows from its clock and its release,
** and that a tier that sees it has paid this cost. */
static int check_publication(struct ledger *ledger, sqlite3_stmt *row,
                             describe_mechanism *describe) {
  const char *release = column_text(ledger, row, 0), *tier = column_text(ledger, row, 1);
  uint64_t clock = (uint64_t)sqlite3_column_int64(row, 5);
  uint64_t sensitivity = (uint64_t)sqlite3_column_int64(row, 6);
  double rate = sqlite3_column_double(row, 7), delta = sqlite3_column_double(row, 8);
  struct curve curve = {0, {0}};
  struct ledger_mechanism mechanism = {0};
  int known = 0; /* mechanisms with the same name have the same facts here */
  for (int i = 0; !known && describe(i, &mechanism); i++)
    known = strcmp(mechanism.name, column_text(ledger, row, 4)) == 0;
  if (!(known && mechanism.has_rate)) curve = curve_column(ledger, row, 9);
  if (known && mechanism.has_rate) {
    double expected = fmin(lattice_rate(sensitivity, clock), sqlite3_column_double(row, 10));
    double share = sqlite3_column_double(row, 11);
    if (!(fabs(rate - expected) <= 1e-13 * expected))
      return ledger_discrepancy(
          ledger, "dp_publication: '%s' at tier '%s' has a rate that is not that of its clock",
          release, tier);
    if (!(fabs(delta - share) <= 1e-9 * share) || sqlite3_column_type(row, 9) != SQLITE_NULL)
      return ledger_discrepancy(
          ledger, "dp_publication: '%s' at tier '%s' has another delta or curve than its release",
          release, tier);
  } else if (known && !is_possible(&curve, rate, &mechanism, delta, sensitivity, clock)) {
    return ledger_discrepancy(
        ledger, "dp_publication: '%s' at tier '%s' has a curve that is not that of its noise",
        release, tier);
  }
  struct payment paid = paid_for(ledger, sqlite3_column_int64(row, 3), column_text(ledger, row, 2));
  int covered = paid.delta >= delta && total_up(paid.rate) >= rate * (1 - 0x1p-48);
  for (int i = 0; curve.any && i < RENYI_ORDERS; i++) /* a curve of zeros needs no charge */
    covered &= paid.curve.values[i] >= curve.values[i] * (1 - 0x1p-48);
  return covered ||
         ledger_discrepancy(ledger, "dp_charge: tier '%s' has not paid for '%s' at tier '%s'",
                            column_text(ledger, row, 2), release, tier);
}

/* Checks that a return is one of a release with the option until, and left the tier with exactly
** the price of a publication. A second or larger return would leave less. Later charges, such as
** that of a refinement, may follow, and need not be returned. */
static int check_return(struct ledger *ledger, sqlite3_stmt *row) {
  int64_t release_id = sqlite3_column_int64(row, 2);
  struct payment left =
      paid_until(ledger, release_id, column_text(ledger, row, 1), sqlite3_column_int64(row, 3));
  /* a publication of the release that costs what is left, at the tier or outside it */
  int fits = statement_integer(ledger,
                               "SELECT 1 FROM dp_publication p JOIN dp_tier t ON t.name = p.tier"
                               " WHERE release_id = ?1 AND t.rate <= ?2"
                               " AND abs(?3 - p.rate) <= ?4 * p.rate LIMIT 1",
                               "iddd", release_id, sqlite3_column_double(row, 4),
                               total_up(left.rate), RETURN_ROUNDING) != 0;
  return (fits && !sqlite3_column_int(row, 5) && left.slack >= 0) ||
         ledger_discrepancy(ledger, "dp_charge: what '%s' gave back to tier '%s' does not fit it",
                            column_text(ledger, row, 0), column_text(ledger, row, 1));
}

static const char find_orphan[] = "SELECT *, 'has no publication or release'"
                                  " FROM (SELECT 'dp_value', release FROM dp_value v WHERE"
                                  " NOT EXISTS (SELECT 1 FROM dp_publication p"
                                  " WHERE p.release_id = v.release_id AND p.tier = v.tier)"
                                  " UNION ALL SELECT 'dp_path', release FROM dp_point q"
                                  " WHERE release_id NOT IN (SELECT id FROM dp_release) OR"
                                  " NOT EXISTS (SELECT 1 FROM dp_coordinate WHERE point = q.id)"
                                  " UNION ALL SELECT 'dp_coordinate', point FROM dp_coordinate"
                                  " WHERE point NOT IN (SELECT id FROM dp_point)"
                                  " UNION ALL SELECT 'dp_release', name FROM dp_release"
                                  " WHERE state = 'released' AND id NOT IN (SELECT release_id"
                                  " FROM dp_publication)) LIMIT 1";

int ledger_verify(struct ledger *ledger, describe_mechanism *describe) {
  struct number_locale before = locale_plain(); /* SQLite's JSON functions read the options */
  struct ledger_tier *tiers;
  int count;
  ledger_tiers(ledger, &tiers, &count);
  struct recount *recounts = sqlite3_malloc64(sizeof *recounts * (sqlite3_uint64)(count + 1));
  if (!recounts) ledger_fail(ledger, "out of memory");
  for (int i = 0; recounts && i < count; i++) recounts[i] = (struct recount){.tier = &tiers[i]};
  statement_discrepancy(ledger, "SELECT 'dp_budget', name, 'is missing' FROM dp_tier"
                                " WHERE name NOT IN (SELECT tier FROM dp_budget) LIMIT 1");
  if (recounts) check_chain(ledger, recounts, count);
  sqlite3_stmt *row = statement_bind(ledger,
                                     "SELECT c.release, c.tier, c.release_id, c.id, t.rate,"
                                     " r.until IS NULL FROM dp_charge c JOIN dp_tier t"
                                     " ON t.name = c.tier LEFT JOIN dp_release r"
                                     " ON r.id = c.release_id WHERE c.kind = 'return'",
                                     "");
  while (statement_row(ledger, row)) check_return(ledger, row);
  for (int i = 0; i < count && !error_is_set(ledger->error); i++) {
    recount_end(ledger, &recounts[i]);
    check_filter(ledger, &recounts[i]);
    check_budget(ledger, &recounts[i], releases_left(ledger, tiers, i));
  }
  grants_verify(ledger, tiers, count);
  statement_discrepancy(ledger, find_orphan);
  releases_verify(ledger);
  /* Lists each publication together with each tier that must have paid for it. */
  row = statement_bind(ledger,
                       "SELECT p.release, p.tier, t.name, p.release_id, r.mechanism,"
                       " p.clock, r.sensitivity, p.rate, p.delta, p.curve, r.weight *"
                       " own.rate, ifnull(r.key_share, 0) * own.delta_keys"
                       " FROM dp_publication p JOIN dp_release r"
                       " ON r.id = p.release_id JOIN dp_tier own ON own.name = p.tier"
                       " JOIN dp_tier t ON t.rate >= own.rate",
                       "");
  while (statement_row(ledger, row)) check_publication(ledger, row, describe);
  for (int i = 0; recounts && i < count; i++) sqlite3_free(recounts[i].period);
  sqlite3_free(recounts);
  ledger_tiers_free(tiers, count);
  locale_restore(before);
  return !error_is_set(ledger->error);
}

/* ---- seals, states and the schema ------------------------------------------------------------ */

#define OBJECTS " FROM sqlite_master WHERE sql IS NOT NULL AND substr(name, 1, 7) <> 'sqlite_'"

/* Returns the next character of an SQL text that is neither white space nor part of a comment, or 0
** at the end. */
static char next_character(const char **sql, char *quote) {
  const char *at = *sql;
  while (!*quote && *at) {
    if (strchr(" \t\r\n", *at)) {
      at++;
    } else if (at[0] == '-' && at[1] == '-') {
      at += strcspn(at, "\n");
    } else {
      break;
    }
  }
  if (*quote) {
    if (*at == *quote) *quote = 0;
  } else if (*at == '\'' || *at == '"') {
    *quote = *at;
  }
  *sql = at + (*at != 0);
  return *at;
}

/* Returns whether two SQL texts are equal apart from comments and white space. */
static int same_sql(const char *a, const char *b) {
  char quote_a = 0, quote_b = 0, c;
  do {
    c = next_character(&a, &quote_a);
    if (c != next_character(&b, &quote_b)) return 0;
  } while (c);
  return 1;
}

/* Compares the objects of the ledger with those of `fresh`, which has the schema of sql/ledger.sql.
** Returns a result of SQLite on `fresh`. */
static int compare_objects(struct ledger *ledger, sqlite3 *fresh) {
  sqlite3_stmt *wanted = 0;
  int rc = sqlite3_prepare_v2(fresh, "SELECT type, name, sql" OBJECTS, -1, &wanted, 0);
  while (rc == SQLITE_OK && sqlite3_step(wanted) == SQLITE_ROW) {
    const char *type = column_text(ledger, wanted, 0), *name = column_text(ledger, wanted, 1);
    char *sql =
        statement_text(ledger, "SELECT sql" OBJECTS " AND type = ? AND name = ?", "ss", type, name);
    if (!sql || !same_sql(sql, column_text(ledger, wanted, 2)))
      ledger_discrepancy(ledger, "schema: %s '%s' is %s", type, name,
                         sql ? "not that of the format" : "missing");
    sqlite3_free(sql);
  }
  if (rc == SQLITE_OK) rc = sqlite3_finalize(wanted);
  if (rc == SQLITE_OK)
    rc = sqlite3_prepare_v2(fresh, "SELECT json_group_array(type || ' ' || name)" OBJECTS, -1,
                            &wanted, 0);
  if (rc == SQLITE_OK && sqlite3_step(wanted) == SQLITE_ROW) {
    sqlite3_stmt *row =
        statement_bind(ledger,
                       "SELECT type, name" OBJECTS
                       " AND type || ' ' || name NOT IN (SELECT value FROM json_each(?))"
                       " ORDER BY type, name LIMIT 1",
                       "s", column_text(ledger, wanted, 0));
    if (statement_row(ledger, row))
      ledger_discrepancy(ledger,
                         "schema: another program has put the %s '%s' into the ledger file "
                         "(drop it there, which loses no charge)",
                         column_text(ledger, row, 0), column_text(ledger, row, 1));
  }
  return rc == SQLITE_OK ? sqlite3_finalize(wanted) : rc;
}

static int check_schema(struct ledger *ledger) {
  sqlite3 *fresh = 0;
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_FULLMUTEX;
  if (error_is_set(ledger->error)) return 0;
  if (own_connection_open(&fresh, MEMORY_PATH, flags, 0) != SQLITE_OK ||
      sqlite3_exec(fresh, ledger_schema, 0, 0, 0) != SQLITE_OK ||
      compare_objects(ledger, fresh) != SQLITE_OK)
    ledger_fail(ledger, "out of memory");
  sqlite3_close(fresh);
  return !error_is_set(ledger->error);
}

/* SQLite's own check finds, for example, an index that disagrees with its table, which a statement
** that reads the index cannot notice. */
static void check_file(struct ledger *ledger) {
  sqlite3_stmt *row = statement_bind(ledger, "PRAGMA integrity_check(1)", "");
  if (statement_row(ledger, row) && strcmp(column_text(ledger, row, 0), "ok") != 0)
    ledger_discrepancy(ledger, "file: %s", column_text(ledger, row, 0));
}

static const char find_wrong_state[] =
    "SELECT 'dp_release', name, 'is ' || state || ', which does"
    " not fit its points' FROM (SELECT name, state, EXISTS (SELECT"
    " 1 FROM dp_publication WHERE release_id = id) AS published,"
    " EXISTS (SELECT 1 FROM dp_point p"
    " WHERE p.release_id = r.id) AS drawn FROM dp_release r)"
    " WHERE (state = 'released' AND NOT (published AND drawn))"
    " OR (state = 'charged' AND published <> drawn)"
    " UNION ALL SELECT 'sqlite_sequence', 'dp_release', 'is not"
    " the last id' WHERE (SELECT ifnull(group_concat(typeof(name)"
    " || typeof(seq) || name || seq), 'textintegerdp_release0')"
    " FROM sqlite_sequence) <> 'textintegerdp_release' || (SELECT"
    " ifnull(max(id), 0) FROM dp_release) LIMIT 1";

static const char find_wrong_name[] =
    "SELECT t, p.release, 'is not the name of its release'"
    " FROM (SELECT 'dp_charge' AS t, release_id, release"
    " FROM dp_charge UNION ALL SELECT 'dp_publication',"
    " release_id, release FROM dp_publication"
    " UNION ALL SELECT 'dp_value', release_id, release"
    " FROM dp_value UNION ALL SELECT 'dp_path', release_id, release"
    " FROM dp_point) p LEFT JOIN dp_release r ON r.id = release_id"
    " WHERE p.release IS NOT r.name LIMIT 1";

/* Checks the types of the columns that no seal covers: those of the two hash chains (dp_charge
** and dp_seal), and dp_order.curve. */
static const char find_wrong_type[] = "SELECT 'dp_charge', id, 'has a column of another type'"
                                      " FROM dp_charge WHERE typeof(release) || typeof(tier) ||"
                                      " typeof(at) || typeof(hash) || typeof(rate) || typeof(delta)"
                                      " || typeof(slack) || typeof(release_id) || typeof(kind) <>"
                                      " 'texttexttexttextrealrealrealintegertext'"
                                      " OR typeof(curve) NOT IN ('null', 'blob')"
                                      " OR typeof(grant_name) NOT IN ('null', 'text')"
                                      " OR typeof(period) NOT IN ('null', 'text')"
                                      " UNION ALL SELECT 'dp_seal', id, 'has a column of another"
                                      " type' FROM dp_seal WHERE typeof(digest) || typeof(books) ||"
                                      " typeof(at) || typeof(hash) || typeof(release_id) ||"
                                      " typeof(charge_id) <> 'texttexttexttextintegerinteger'"
                                      " UNION ALL SELECT 'dp_order', tier, 'has a column of another"
                                      " type' FROM dp_order WHERE typeof(curve) <> 'real' LIMIT 1";

int ledger_verify_seals(struct ledger *ledger) {
  statement_discrepancy(ledger, find_wrong_state);
  statement_discrepancy(ledger, find_wrong_name);
  statement_discrepancy(ledger, find_wrong_type);
  seals_verify(ledger, ledger_last_charge(ledger));
  check_schema(ledger);
  check_file(ledger);
  return !error_is_set(ledger->error);
}
