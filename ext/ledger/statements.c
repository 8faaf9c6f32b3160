/*
** statements.c: contains the text of every statement on the ledger, and binds and steps the
** statements.
*/
#include <stdarg.h>

#include "ledger/internal.h"

SQLITE_EXTENSION_INIT3

/*
** SQL for the subject of a charge, which the hash of the charge covers. The subject consists of the
** ledger's terms and the columns of the release that determine the sensitivity.
*/
#define SUBJECT(release_id)                                                                        \
  "(SELECT l.id || '/' || protects || '/' || adjacency || '/' || fingerprint || '/' ||"            \
  " granularity || '/' || shift || '/' || sensitivity FROM dp_ledger l, dp_release r"              \
  " WHERE r.id = " release_id ")"

/*
** An SQL condition for one parameter of a release. It holds if the value in the column `options`
** and the value in the parameter's own column agree to 12 digits.
*/
#define SAYS(name, otherwise)                                                                      \
  "abs(ifnull(json_extract(options, '$." #name "'), " otherwise ") - ifnull(" #name ", " otherwise \
  ")) <= 1e-12 * abs(ifnull(" #name ", 0))"
#define AND_SAYS(name, kind, shown, role, says) " AND (" says ")"

#define NOW STATEMENT_NOW

/*
** PERIOD_START is SQL for the first day of the period that contains a time. PERIOD_END is SQL for
** the first day of the next period. `kind` is the kind of period, such as 'month'. All days are in
** UTC, and weeks begin on Monday (ISO 8601). Both results are NULL if the kind is NULL.
*/
#define PERIOD_START(kind, time)                                                                   \
  "(CASE " kind " WHEN 'day' THEN date(" time ") WHEN 'week' THEN"                                 \
  " date(" time ", '-6 days', 'weekday 1') WHEN 'month' THEN date(" time ", 'start of month')"     \
  " WHEN 'quarter' THEN date(" time ", 'start of month', '-' ||"                                   \
  " ((strftime('%m', " time ") - 1) % 3) || ' months')"                                            \
  " WHEN 'year' THEN date(" time ", 'start of year') END)"
#define PERIOD_END(kind, start)                                                                    \
  "date(" start ", CASE " kind " WHEN 'day' THEN '+1 day' WHEN 'week' THEN '+7 days'"              \
  " WHEN 'month' THEN '+1 month' WHEN 'quarter' THEN '+3 months' WHEN 'year' THEN '+1 year' END)"

/*
** SQL for the number of periods of a kind from the period that begins on day `first` to the period
** that begins on day `last`, both included.
*/
#define MONTHS(day) "(12 * strftime('%Y', " day ") + strftime('%m', " day "))"
#define PERIODS(kind, first, last)                                                                 \
  "CAST(1 + CASE " kind " WHEN 'day' THEN julianday(" last ") - julianday(" first ")"              \
  " WHEN 'week' THEN (julianday(" last ") - julianday(" first ")) / 7"                             \
  " ELSE (" MONTHS(last) " - " MONTHS(                                                             \
      first) ")"                                                                                   \
             " / CASE " kind                                                                       \
             " WHEN 'month' THEN 1 WHEN 'quarter' THEN 3 ELSE 12 END END AS INTEGER)"

/*
** SQL for the time at which an inherited charge counts (c: the row of dp_charge, o: the row of
** dp_tier for the charged tier). Normally this is the time of the charge. After the clock went
** back, the time of a charge can be outside the period in which the charge counts. The result is
** then the nearest day of this period.
*/
#define COUNTED_AT                                                                                 \
  "min(max(c.at, ifnull(c.period, '')),"                                                           \
  " ifnull(date(" PERIOD_END("o.period", "c.period") ", '-1 day'), '9999'))"
#define TIER_PERIOD "(SELECT period FROM dp_tier WHERE name = ?1)"

static const char *const statement_text[STATEMENTS] = {
    [BEGIN_WRITE] = "BEGIN IMMEDIATE",
    [BEGIN_READ] = "BEGIN",
    [COMMIT] = "COMMIT",
    [ROLLBACK] = "ROLLBACK",
    [TERMS_READ] = "SELECT id, protects, adjacency, unit, unchecked FROM dp_ledger",
    [TERMS_INSERT] = "INSERT INTO dp_ledger(id, unit, protects, adjacency, unchecked, created_at)"
                     " VALUES (lower(hex(randomblob(16))), ?, ?, ?, ?, " NOW ")",
    [POLICY_LIST] = "SELECT table_name, role, unit_column, parent FROM dp_policy ORDER BY rowid",
    [POLICY_INSERT] = "INSERT INTO dp_policy VALUES (?, ?, ?, ?, " NOW ")",
    [POLICY_NOTE] = "UPDATE dp_release SET tables = ifnull(tables, ?2) WHERE id = ?1",
    [POLICY_TIGHTEN] = "UPDATE dp_policy SET role = ?2, unit_column = ?3, parent = ?4"
                       " WHERE table_name = ?1",
    [TIER_DROPPED] = "SELECT 1 FROM dp_tier WHERE name = ? AND dropped_at IS NOT NULL",
    [TIER_USED] = "SELECT release FROM dp_charge WHERE tier = ?1 UNION ALL"
                  " SELECT release FROM dp_publication WHERE tier = ?1 UNION ALL"
                  " SELECT release FROM dp_point WHERE tier = ?1 LIMIT 1",
    [TIER_RESERVED] = "SELECT grant_name FROM dp_reserve WHERE tier = ? LIMIT 1",
    [GRANT_TAKEN] = "SELECT 1 FROM dp_release WHERE substr(name, 1, length(?1) + 1) = ?1 || '/'"
                    " LIMIT 1",
    [RESERVE_WRITE] = "UPDATE dp_reserve SET spent = ?3, spent_high = ?4, spent_low = ?5,"
                      " spent_slack = ?6, spent_delta = ?7, spent_curve = ?8, charges = ?9"
                      " WHERE grant_name = ?1 AND tier = ?2",
    [RESERVE_CHARGES] = "SELECT rate, slack, delta, curve FROM dp_charge"
                        " WHERE grant_name = ? AND tier = ? ORDER BY id",
    /* Finds grants, reserved amounts and charges that contradict each other. */
    [GRANT_CHECK] =
        "SELECT 'dp_charge', release FROM dp_charge c WHERE grant_name IS NOT NULL AND"
        " (substr(release, 1, length(grant_name) + 1) <> grant_name || '/' OR NOT EXISTS"
        " (SELECT 1 FROM dp_reserve r WHERE r.grant_name = c.grant_name AND r.tier = c.tier))"
        " UNION ALL SELECT 'dp_reserve', grant_name FROM dp_reserve WHERE grant_name NOT IN"
        " (SELECT name FROM dp_grant) OR tier NOT IN"
        " (SELECT name FROM dp_tier WHERE dropped_at IS NULL)"
        " UNION ALL SELECT 'dp_grant', name FROM dp_grant g WHERE NOT EXISTS"
        " (SELECT 1 FROM dp_reserve r WHERE r.grant_name = g.name AND r.tier = g.tier) LIMIT 1",
    [SEAL_OF_GRANTS] = "SELECT * FROM dp_grant ORDER BY name",
    [SEAL_OF_RESERVES] = "SELECT * FROM dp_reserve ORDER BY grant_name, tier",
    [TIER_DROP] = "UPDATE dp_tier SET dropped_at = " NOW " WHERE name = ?",
    [BUDGET_DROP] = "DELETE FROM dp_budget WHERE tier = ?",
    [ORDERS_DROP] = "DELETE FROM dp_order WHERE tier = ?",
    [ORDERS_READ] = "SELECT curve FROM dp_order WHERE tier = ? ORDER BY alpha",
    [ORDER_WRITE] = "UPDATE dp_order SET curve = ? WHERE tier = ? AND alpha = ?",
    [BUDGET_WRITE] = "UPDATE dp_budget SET spent_high = ?2, spent_low = ?3, spent_slack = ?4,"
                     " spent_delta = ?5, releases = ?6, spent_rate = ?7, spent_epsilon = ?8,"
                     " remaining_epsilon = max(0.0, epsilon - ?8), spent_curve = ?9"
                     " WHERE tier = ?1",
    [BUDGET_LEFT] = "UPDATE dp_budget SET releases_left = ?2 WHERE tier = ?1",
    [CHARGE_LAST] = "SELECT id, hash, " NOW " FROM (SELECT 0) LEFT JOIN dp_charge"
                    " ON id = (SELECT max(id) FROM dp_charge)",
    /*
    ** Returns the subject of release ?1, and the start of the period that dp_budget holds for tier
    ** ?2. A new charge to this tier counts in this period.
    */
    [CHARGE_SUBJECT] =
        "SELECT " SUBJECT("?1") ", (SELECT period_start FROM dp_budget WHERE tier = ?2)",
    /*
    ** Returns a row if the tier was charged for the release in the period that dp_budget holds for
    ** the tier (period_start).
    */
    [CHARGE_COUNTED] = "SELECT 1 FROM dp_charge c JOIN dp_budget b ON b.tier = c.tier"
                       " WHERE release_id = ? AND c.tier = ? AND period IS period_start LIMIT 1",
    /*
    ** Finds a tier whose rate is at least this rate and whose period is over. Returns the name of
    ** the tier and the start of the period that has begun since.
    */
    [PERIOD_OVER] =
        "SELECT name, started FROM (SELECT name, rate, period_start,"
        " " PERIOD_START("period",
                         "'now'") " AS started FROM dp_tier JOIN dp_budget"
                                  " ON tier = name WHERE dropped_at IS NULL)"
                                  " WHERE rate >= ? AND started > ifnull(period_start, '') LIMIT 1",
    [PERIOD_ENTER] =
        "UPDATE dp_budget SET period_start = ?2,"
        " period_end = " PERIOD_END(
            TIER_PERIOD,
            "?2") ","
                  " spent_epsilon = 0.0, remaining_epsilon = epsilon, spent_rate = 0.0,"
                  " spent_delta = 0.0, releases = 0, spent_high = 0.0, spent_low = 0.0,"
                  " spent_slack = 0.0, spent_curve = 0.0 WHERE tier = ?1",
    [PERIOD_ORDERS] = "UPDATE dp_order SET curve = 0.0 WHERE tier = ?",
    /*
    ** Counts the periods of a tier, from its creation or its first charge, whichever is earlier, to
    ** the period that dp_budget holds.
    */
    [PERIOD_COUNT] = "SELECT max(1, " PERIODS(
        "kind", "min(born, first)",
        "period_start") ") FROM (SELECT"
                        " t.period AS kind, " PERIOD_START(
                            "t.period", "created_at") " AS born, period_start,"
                                                      " ifnull((SELECT period FROM dp_charge WHERE "
                                                      "tier = t.name ORDER BY id LIMIT 1), '9999')"
                                                      " AS first FROM dp_tier t JOIN dp_budget ON "
                                                      "tier = name WHERE name = ?)",
    [PERIOD_ENTERED] = "SELECT period_start FROM dp_budget WHERE tier = ?",
    /*
    ** Returns whether ?2 is the first day of a period of tier ?1. ?2 must be NULL if the tier has
    ** no periods.
    */
    [PERIOD_CHECK] = "SELECT ?2 IS " PERIOD_START(TIER_PERIOD, "?2"),
    [CHARGE_SINCE] = "SELECT c.rate, curve, filter_order, slack, c.delta FROM dp_charge c"
                     " JOIN dp_tier ON name = tier"
                     " WHERE id > ? AND tier = ?",
    [CHARGE_DAYS] = "SELECT c.period, substr(at, 1, 10), c.rate, curve, filter_order, rate_limit"
                    " FROM dp_charge c JOIN dp_tier ON name = tier WHERE tier = ?"
                    " ORDER BY 1, 2, c.id",
    [CHARGE_PAID] = "SELECT rate, slack, delta, curve FROM dp_charge"
                    " WHERE release_id = ? AND tier = ?",
    [CHARGE_FIRST] = "SELECT rate FROM dp_charge WHERE release_id = ? ORDER BY id LIMIT 1",
    [CHARGE_PAID_UNTIL] = "SELECT rate, slack, delta, curve FROM dp_charge"
                          " WHERE release_id = ? AND tier = ? AND id <= ?",
    /*
    ** Lists the releases for which tier ?2 was charged, once for each period of the new tier ?1 in
    ** which such charges count. The time and the id are those of the last charge of the release in
    ** this period.
    */
    [CHARGE_PAID_EACH] =
        "SELECT release_id, release, max(id), at, start FROM (SELECT release_id, release, id, at,"
        " " PERIOD_START(
            TIER_PERIOD,
            COUNTED_AT) " AS start"
                        " FROM dp_charge c JOIN dp_tier o ON o.name = c.tier WHERE c.tier = ?2)"
                        " GROUP BY start, release_id ORDER BY start, release_id",
    /* Finds a model that a tier has paid for and that has several publications. */
    [MODEL_PAID] = "SELECT release FROM dp_charge c JOIN dp_release r ON r.id = release_id"
                   " WHERE tier = ? AND kind = 'sgd' AND (SELECT count(*) FROM dp_publication p"
                   " WHERE p.release_id = c.release_id) > 1 LIMIT 1",
    [RELEASE_NAME] = "UPDATE dp_release SET name = ?2 WHERE id = ?1",
    [RELEASE_STATE] = "UPDATE dp_release SET state = ?3 WHERE id = ?1 AND state = ?2",
    [RELEASE_SLACK] = "UPDATE dp_release SET slack = ?2 WHERE id = ?1",
    /*
    ** The order is by rate, not by clock, because two tiers with almost equal rates can have points
    ** with the same clock.
    */
    [PATH_READ] =
        "SELECT tier, clock, key, component, value FROM dp_path JOIN dp_tier ON name = tier"
        " WHERE release_id = ? ORDER BY dp_tier.rate DESC, component >= 0, key, component",
    [PATH_ANY] = "SELECT 1 FROM dp_point WHERE release_id = ? LIMIT 1",
    [PUBLICATION_FIND] =
        "SELECT clock, kernel FROM dp_publication WHERE release_id = ? AND tier = ?",
    [PUBLICATION_EACH] = "SELECT release_id, tier, clock, shrink, centre, delta, curve,"
                         " clipped, unclipped, unit_stddev FROM dp_publication ORDER BY release_id",
    [SYMBOL_LIST] = "SELECT p.tier, q.key, v.key, p.kernel, p.curve FROM dp_publication p"
                    " JOIN dp_tier t ON t.name = p.tier"
                    " LEFT JOIN dp_path q ON q.release_id = p.release_id AND q.tier = p.tier"
                    " LEFT JOIN dp_value v ON v.release_id = p.release_id AND v.tier = p.tier"
                    " WHERE p.release_id = ? ORDER BY t.rate DESC",
    [STAGE_LIST] = "SELECT tier, kernel, curve FROM dp_publication JOIN dp_tier t ON t.name = tier"
                   " WHERE release_id = ? ORDER BY t.rate DESC",
    [REPORT_LIST] = "SELECT key, value FROM dp_path WHERE release_id = ? AND tier = ?"
                    " ORDER BY key, component",
    [VALUE_FIND] = "SELECT value, stddev FROM dp_value WHERE release_id = ? AND tier = ?"
                   " AND key = ? AND component = ?",
    [VALUE_LIST] = "SELECT key, component, value, stddev, low, high FROM dp_value"
                   " WHERE release_id = ? AND tier = ? ORDER BY key, component",
    [STANDING] = "SELECT spent_epsilon, remaining_epsilon, releases_left FROM dp_budget"
                 " WHERE tier = ?",
    [PUBLICATION_LIST] = "SELECT release_id, release, tier, rate, curve, delta FROM dp_publication"
                         " ORDER BY release_id",
    [PUBLICATION_OF] = "SELECT release_id, release, tier, rate, curve, delta FROM dp_publication"
                       " WHERE release_id = ?",
    [ORDER_CHECK] = "SELECT alpha, allowed, curve FROM dp_order WHERE tier = ? ORDER BY alpha",
    [ORPHAN_CHECK] =
        "SELECT 'dp_value', release FROM dp_value v WHERE NOT EXISTS (SELECT 1 FROM"
        " dp_publication p WHERE p.release_id = v.release_id AND p.tier = v.tier)"
        " UNION ALL SELECT 'dp_path', release FROM dp_point q WHERE release_id NOT IN"
        " (SELECT id FROM dp_release) OR NOT EXISTS"
        " (SELECT 1 FROM dp_coordinate WHERE point = q.id)"
        " UNION ALL SELECT 'dp_coordinate', point FROM dp_coordinate WHERE point NOT IN"
        " (SELECT id FROM dp_point)"
        " UNION ALL SELECT 'dp_release', name FROM dp_release WHERE state = 'released' AND"
        " id NOT IN (SELECT release_id FROM dp_publication) LIMIT 1",
    /*
    ** Lists each publication together with each tier that must have paid for it, and with the
    ** payments of this tier for the release. ?1 holds names of mechanisms, each between spaces.
    */
    [PUBLICATION_CHECK] =
        "SELECT p.release, p.tier, t.name, p.rate, p.clock, r.sensitivity, r.weight * own.rate,"
        " (SELECT total(rate) FROM dp_charge WHERE release_id = p.release_id AND tier = t.name),"
        " p.delta, ifnull(r.key_share, 0) * own.delta_keys,"
        " (SELECT total(delta) FROM dp_charge WHERE release_id = p.release_id AND tier = t.name),"
        " p.curve IS NOT NULL"
        " FROM dp_publication p JOIN dp_release r ON r.id = p.release_id"
        " JOIN dp_tier own ON own.name = p.tier JOIN dp_tier t ON t.rate >= own.rate"
        " AND t.dropped_at IS NULL"
        " WHERE instr(?1, ' ' || r.mechanism || ' ') > 0",
    [CURVE_CHECK] =
        "SELECT p.release, p.tier, t.name, p.release_id, p.curve, r.mechanism, p.clock,"
        " r.sensitivity, p.delta FROM dp_publication p JOIN dp_release r ON r.id = p.release_id"
        " JOIN dp_tier own ON own.name = p.tier JOIN dp_tier t ON t.rate >= own.rate"
        " AND t.dropped_at IS NULL"
        " WHERE p.curve IS NOT NULL OR instr(?1, ' ' || r.mechanism || ' ') > 0",
    [STATE_CHECK] =
        "SELECT 'dp_release', name, 'is ' || state || ', which does not fit its points' FROM"
        " (SELECT name, state, EXISTS (SELECT 1 FROM dp_publication WHERE release_id = id) AS"
        " published, EXISTS (SELECT 1 FROM dp_point p WHERE p.release_id = r.id) AS drawn"
        " FROM dp_release r)"
        " WHERE (state = 'released' AND NOT (published AND drawn)) OR"
        " (state = 'charged' AND published <> drawn) UNION ALL"
        " SELECT 'sqlite_sequence', 'dp_release', 'is not the last id' WHERE"
        " (SELECT ifnull(group_concat(typeof(name) || typeof(seq) || name || seq),"
        " 'textintegerdp_release0') FROM sqlite_sequence) <>"
        " 'textintegerdp_release' || (SELECT ifnull(max(id), 0) FROM dp_release)"
        " LIMIT 1",
    [NAME_CHECK] =
        "SELECT t, p.release, 'is not the name of its release' FROM"
        " (SELECT 'dp_charge' AS t, release_id, release FROM dp_charge UNION ALL"
        " SELECT 'dp_publication', release_id, release FROM dp_publication UNION ALL"
        " SELECT 'dp_value', release_id, release FROM dp_value UNION ALL"
        " SELECT 'dp_path', release_id, release FROM dp_point) p"
        " LEFT JOIN dp_release r ON r.id = release_id WHERE p.release IS NOT r.name LIMIT 1",
    /*
    ** Checks the types of the columns that no seal covers: those of the two hash chains (dp_charge
    ** and dp_seal), and dp_order.curve.
    */
    [TYPE_CHECK] =
        "SELECT 'dp_charge', id, 'has a column of another type' FROM dp_charge WHERE"
        " typeof(release) || typeof(tier) || typeof(at) || typeof(hash) || typeof(rate) ||"
        " typeof(delta) || typeof(slack) || typeof(release_id) <> 'texttexttexttextrealrealreal"
        "integer' OR typeof(curve) NOT IN ('null', 'blob') OR typeof(grant_name) NOT IN ('null',"
        " 'text') OR typeof(period) NOT IN ('null', 'text') UNION ALL"
        " SELECT 'dp_seal', id, 'has a column of another type' FROM dp_seal WHERE"
        " typeof(digest) || typeof(books) || typeof(at) || typeof(hash) || typeof(release_id) ||"
        " typeof(charge_id) <> 'texttexttexttextintegerinteger' UNION ALL"
        " SELECT 'dp_order', tier, 'has a column of another type' FROM dp_order WHERE"
        " typeof(curve) <> 'real' LIMIT 1",
    [SEAL_OF_LEDGER] = "SELECT * FROM dp_ledger ORDER BY id",
    [SEAL_OF_TIERS] = "SELECT * FROM dp_tier ORDER BY name",
    [SEAL_OF_POLICY] = "SELECT * FROM dp_policy ORDER BY table_name",
    [SEAL_OF_ORDERS] = "SELECT tier, alpha, allowed FROM dp_order ORDER BY tier, alpha",
    [SEAL_OF_BUDGETS] = "SELECT * FROM dp_budget ORDER BY tier",
    [SEAL_OF_RELEASE] = "SELECT * FROM dp_release WHERE id = ?",
    [SEAL_OF_PUBLICATIONS] = "SELECT * FROM dp_publication WHERE release_id = ? ORDER BY tier",
    [SEAL_OF_VALUES] = "SELECT * FROM dp_value WHERE release_id = ? ORDER BY tier, key, component",
    [SEAL_OF_PATH] = "SELECT * FROM dp_path WHERE release_id = ? ORDER BY tier, key, component",
    [SEAL_FIND] = "SELECT digest FROM dp_seal WHERE release_id = ? ORDER BY id DESC LIMIT 1",
    [SEAL_LAST] =
        "SELECT s.id, s.hash, ifnull(c.id, 0), c.hash, s.books, " NOW " FROM (SELECT 0)"
        " LEFT JOIN dp_seal s ON s.id = (SELECT max(id) FROM dp_seal)"
        " LEFT JOIN dp_charge c ON c.id = (SELECT max(id) FROM dp_charge)",
    /* Lists the last seal of each release, and NULL for a release without a seal. */
    [SEAL_LATEST] = "SELECT r.id, (SELECT digest FROM dp_seal WHERE release_id = r.id ORDER BY id "
                    "DESC LIMIT 1),"
                    " name FROM dp_release r ORDER BY r.id",
};

/*
** Statements that insert or read whole rows. `columns` are the columns of the table. `rest` is the
** part of a SELECT after the columns; null means an INSERT.
*/
static const struct {
  const struct table_columns *columns;
  const char *rest;
} of_rows[STATEMENTS] = {
    [TIER_INSERT] = {&columns_tier, 0},
    [TIER_LIST] = {&columns_tier, " FROM dp_tier WHERE dropped_at IS NULL ORDER BY rate DESC"},
    [BUDGET_INSERT] = {&columns_budget, 0},
    [BUDGET_READ] = {&columns_budget, " FROM dp_budget WHERE tier = ?"},
    [BUDGET_CHECK] =
        {&columns_budget,
         ", (SELECT count(DISTINCT release_id) FROM dp_charge c WHERE"
         " c.tier = b.tier AND period IS period_start) FROM dp_budget b WHERE tier = ?"},
    [ORDER_INSERT] = {&columns_order, 0},
    [GRANT_INSERT] = {&columns_grant, 0},
    [GRANT_READ] = {&columns_grant, " FROM dp_grant WHERE name = ?"},
    [RESERVE_INSERT] = {&columns_reserve, 0},
    [RESERVE_LIST] = {&columns_reserve, " FROM dp_reserve WHERE tier = ? ORDER BY grant_name"},
    [RESERVE_KNOWN] = {&columns_reserve,
                       " FROM dp_reserve WHERE tier = ?1 AND (SELECT t.rate FROM dp_grant g JOIN"
                       " dp_tier t ON t.name = g.tier WHERE g.name = grant_name) <= ?2"
                       " ORDER BY grant_name"},
    [RESERVE_READ] = {&columns_reserve, " FROM dp_reserve WHERE grant_name = ? AND tier = ?"},
    [RESERVE_MISSING] = {&columns_reserve,
                         " FROM dp_reserve r WHERE NOT EXISTS (SELECT 1 FROM dp_reserve n WHERE"
                         " n.grant_name = r.grant_name AND n.tier = ?1) AND tier = ?2 LIMIT 1"},
    [CHARGE_INSERT] = {&columns_charge, 0},
    [CHARGE_LIST] = {&columns_charge, ", " SUBJECT("c.release_id") " FROM dp_charge c ORDER BY id"},
    [RELEASE_INSERT] = {&columns_release, 0},
    [RELEASE_FIND] = {&columns_release, " FROM dp_release WHERE name = ? AND state <> 'discarded'"},
    [RELEASE_GET] = {&columns_release, " FROM dp_release WHERE id = ?"},
    /*
    ** After the columns come the results of two checks. The first is 1 if the column `options`
    ** agrees with the other columns. The second is 1 if all charges for the release have its name.
    */
    [RELEASE_CHECK] =
        {&columns_release,
         ", 1" RELEASE_COLUMNS(
             AND_SAYS) ","
                       " NOT EXISTS (SELECT 1 FROM dp_charge c WHERE c.release_id = r.id AND"
                       " c.release <> r.name) FROM dp_release r"},
    [POINT_INSERT] = {&columns_point, 0},
    [COORDINATE_INSERT] = {&columns_coordinate, 0},
    [PUBLICATION_INSERT] = {&columns_publication, 0},
    [VALUE_INSERT] = {&columns_value, 0},
    [SEAL_INSERT] = {&columns_seal, 0},
    [SEAL_LIST] = {&columns_seal,
                   ", (SELECT hash FROM dp_charge c WHERE c.id = charge_id), charge_id = 0 OR"
                   " EXISTS (SELECT 1 FROM dp_charge c WHERE c.id = charge_id)"
                   " FROM dp_seal ORDER BY id"},
};

/*
** For each statement that writes: the subject that the statement changes, and that the commit must
** therefore seal. OF_RELEASE means the release whose id is the first parameter. OF_TERMS means the
** terms and tiers. OF_BUDGET means the budgets. OF_NEW_RELEASE means a release whose id is not
** known yet. OF_POINT means the release of a point that the same transaction has inserted, so the
** release is on the list already. OF_CHAIN means rows that need no seal, because they are in a hash
** chain or because dp_verify() recomputes them to the last bit.
*/
enum { UNKNOWN = 0, OF_RELEASE, OF_TERMS, OF_BUDGET, OF_NEW_RELEASE, OF_POINT, OF_CHAIN };
static const char written[STATEMENTS] = {
    [PERIOD_ENTER] = OF_BUDGET,     [PERIOD_ORDERS] = OF_CHAIN,   [TIER_DROP] = OF_TERMS,
    [BUDGET_DROP] = OF_TERMS,       [ORDERS_DROP] = OF_TERMS,     [TERMS_INSERT] = OF_TERMS,
    [POLICY_INSERT] = OF_TERMS,     [POLICY_TIGHTEN] = OF_TERMS,  [POLICY_NOTE] = OF_RELEASE,
    [TIER_INSERT] = OF_TERMS,       [ORDER_INSERT] = OF_TERMS,    [BUDGET_INSERT] = OF_TERMS,
    [BUDGET_WRITE] = OF_BUDGET,     [BUDGET_LEFT] = OF_BUDGET,    [ORDER_WRITE] = OF_CHAIN,
    [GRANT_INSERT] = OF_TERMS,      [RESERVE_INSERT] = OF_BUDGET, [RESERVE_WRITE] = OF_BUDGET,
    [CHARGE_INSERT] = OF_CHAIN,     [SEAL_INSERT] = OF_CHAIN,     [RELEASE_INSERT] = OF_NEW_RELEASE,
    [RELEASE_NAME] = OF_RELEASE,    [RELEASE_STATE] = OF_RELEASE, [RELEASE_SLACK] = OF_RELEASE,
    [POINT_INSERT] = OF_RELEASE,    [VALUE_INSERT] = OF_RELEASE,  [PUBLICATION_INSERT] = OF_RELEASE,
    [COORDINATE_INSERT] = OF_POINT,
};

/* Records the subject that a statement is about to change. */
static int note_write(struct ledger *ledger, enum statement which, int64_t first) {
  if (written[which] == UNKNOWN)
    return ledger_fail(ledger, "statement %d writes what no seal covers (a bug)", (int)which);
  if (written[which] == OF_RELEASE) seal_touch(ledger, first);
  if (written[which] == OF_TERMS) seal_touch(ledger, SEAL_TERMS), seal_touch(ledger, SEAL_ORDERS);
  if (written[which] == OF_BUDGET) ledger->touched.books = 1;
  return !error_is_set(ledger->error);
}

int ledger_fail(struct ledger *ledger, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  error_set_list(ledger->error, format, arguments);
  va_end(arguments);
  return 0;
}

struct error *ledger_error(const struct ledger *ledger) {
  return ledger->error;
}

struct json *ledger_json(struct ledger *ledger) {
  return &ledger->json;
}

int ledger_fail_damaged(struct ledger *ledger, const char *table) {
  return ledger_fail(ledger, "the privacy ledger '%s' is damaged: %s (restore it from a backup)",
                     ledger->path, table);
}

/* Reports that this connection can only read (L7). */
static int fail_read_only(struct ledger *ledger) {
  return ledger_fail(ledger,
                     "this connection cannot write its database (%s), so it reads what has been "
                     "published and charges, creates or discards nothing (use a connection that "
                     "can write)",
                     ledger->read_only);
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

static int prepare(struct ledger *ledger, enum statement which) {
  const struct table_columns *columns = of_rows[which].columns;
  char *made = !columns              ? 0
               : of_rows[which].rest ? columns_select(columns, of_rows[which].rest)
                                     : columns_insert(columns);
  if (columns && !made) return ledger_fail(ledger, "out of memory");
  int rc = sqlite3_prepare_v3(ledger->db, made ? made : statement_text[which], -1,
                              SQLITE_PREPARE_PERSISTENT, &ledger->statements[which], 0);
  sqlite3_free(made);
  return rc == SQLITE_OK || ledger_fail_sqlite(ledger);
}

static int changes_rows(const struct ledger *ledger, enum statement which) {
  return which > ROLLBACK && !sqlite3_stmt_readonly(ledger->statements[which]);
}

/*
** Prepares or resets a statement and clears its bindings. Sets an error and returns null if the
** statement must not run now.
*/
static sqlite3_stmt *ready(struct ledger *ledger, enum statement which) {
  if (error_is_set(ledger->error)) return 0;
  if (!ledger->statements[which] && !prepare(ledger, which)) return 0;
  if (changes_rows(ledger, which)) {
    if (ledger->writes_refused) {
      fail_read_only(ledger);
      return 0;
    }
    /*
    ** After an error SQLite may have ended the transaction. A write would then be permanent at
    ** once.
    */
    if (sqlite3_get_autocommit(ledger->db)) {
      ledger_fail(ledger, "the transaction on the privacy ledger was lost (try again)");
      return 0;
    }
  }
  sqlite3_stmt *statement = ledger->statements[which];
  /* sqlite3_reset() returns the error of the last step, which the code has handled already. */
  sqlite3_reset(statement);
  if (sqlite3_clear_bindings(statement) == SQLITE_OK) return statement;
  ledger_fail_sqlite(ledger);
  return 0;
}

/*
** Returns the statement if the bindings succeeded, and if the subject that the statement changes
** has been recorded (note_write()). Otherwise returns null.
*/
static sqlite3_stmt *bound(struct ledger *ledger, enum statement which, int rc, int64_t first) {
  if (rc != SQLITE_OK) {
    ledger_fail_sqlite(ledger);
  } else if (!changes_rows(ledger, which) || note_write(ledger, which, first)) {
    return ledger->statements[which];
  }
  return 0;
}

static sqlite3_stmt *bind(struct ledger *ledger, enum statement which, const char *types,
                          va_list arguments) {
  sqlite3_stmt *statement = ready(ledger, which);
  int64_t first = 0;
  int rc = SQLITE_OK;
  for (int i = 1; statement && types[i - 1] && rc == SQLITE_OK; i++) {
    switch (types[i - 1]) {
    case 's':
      rc = sqlite3_bind_text(statement, i, va_arg(arguments, const char *), -1, SQLITE_TRANSIENT);
      break;
    case 'd': rc = sqlite3_bind_double(statement, i, va_arg(arguments, double)); break;
    default: {
      int64_t number = va_arg(arguments, int64_t);
      if (i == 1) first = number;
      rc = sqlite3_bind_int64(statement, i, number);
      break;
    }
    }
  }
  return statement ? bound(ledger, which, rc, first) : 0;
}

sqlite3_stmt *statement_bind(struct ledger *ledger, enum statement which, const char *types, ...) {
  va_list arguments;
  va_start(arguments, types);
  sqlite3_stmt *statement = bind(ledger, which, types, arguments);
  va_end(arguments);
  return statement;
}

int statement_row(struct ledger *ledger, sqlite3_stmt *statement) {
  if (!statement || !interrupt_check(ledger)) return 0;
  int rc = sqlite3_step(statement);
  if (rc == SQLITE_ROW) return 1;
  if (rc != SQLITE_DONE) ledger_fail_sqlite(ledger);
  sqlite3_reset(statement); /* an error is already recorded */
  return 0;
}

int statement_run(struct ledger *ledger, enum statement which, const char *types, ...) {
  va_list arguments;
  va_start(arguments, types);
  sqlite3_stmt *statement = bind(ledger, which, types, arguments);
  va_end(arguments);
  while (statement_row(ledger, statement)) {
  }
  return !error_is_set(ledger->error);
}

int statement_insert(struct ledger *ledger, enum statement which, const void *row) {
  sqlite3_stmt *statement = ready(ledger, which);
  if (!statement) return 0;
  const struct table_columns *columns = of_rows[which].columns;
  int rc = columns_bind(statement, columns, row);
  int64_t release_id = columns->list->kind == COLUMN_WIDE ? *(const int64_t *)row : 0;
  statement = bound(ledger, which, rc, release_id);
  while (statement_row(ledger, statement)) {
  }
  return !error_is_set(ledger->error);
}

void statements_finalize(struct ledger *ledger) {
  for (int i = 0; i < STATEMENTS; i++) {
    sqlite3_finalize(ledger->statements[i]);
    ledger->statements[i] = 0;
  }
}

char *column_copy(struct ledger *ledger, sqlite3_stmt *statement, int column) {
  if (sqlite3_column_type(statement, column) == SQLITE_NULL) return 0;
  const char *text = (const char *)sqlite3_column_text(statement, column);
  char *copy = text ? sqlite3_mprintf("%s", text) : 0;
  if (!copy) ledger_fail(ledger, "out of memory");
  return copy;
}

const char *column_text(sqlite3_stmt *statement, int column) {
  const char *text = (const char *)sqlite3_column_text(statement, column);
  return text ? text : "";
}

struct bytes column_bytes(sqlite3_stmt *statement, int column) {
  const void *bytes = sqlite3_column_blob(statement, column);
  if (!bytes && sqlite3_column_type(statement, column) != SQLITE_NULL) bytes = ""; /* 0 bytes */
  return (struct bytes){bytes, sqlite3_column_bytes(statement, column)};
}
