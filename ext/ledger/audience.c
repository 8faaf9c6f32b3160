/*
** audience.c: see display.h. Only this file decides what the members of a tier may know. Guarded
** connections, dp_export() and dp_report() all read through this file.
**
** The tables leave out:
**   - the ids of releases and charges, and all hashes, because they depend on inner tiers, too
**   - the columns of the lattice (granularity, sensitivity, clock) and its slack
**   - the state and the time of a release, because they describe its first draw, which may have
**     been made at an inner tier
**   - releases_left, which depends on the budgets of inner tiers
** Times are rounded down to days. In place of the time of a release, created_at shows the day of
** the first publication that the audience sees. Rows are sorted by name, because their order in the
** file would show the order of the first draws. A failed release stays visible to an audience that
** has seen a publication of it, because only a refinement at an inner tier can fail after a
** publication. The certificate also contains discarded releases, because their charges stay.
**
** If a model was drawn at an inner tier, the noise of its steps, its default learning rate and its
** stddev would show the rate of the inner tier. The column `options` therefore leaves out the noise
** and the default learning rate; stddev, low and high are NULL; and rates are rounded up to four
** digits.
**
** One fact about inner tiers stays visible. The first draw of a release fixes the step of its
** lattice. The step is a power of two, and follows from public parameters and from the rate of the
** first draw. The sums published at an outer tier are whole multiples of the step. They therefore
** show the rate of the first draw up to a factor of 4, and so they show that the release was also
** drawn at an inner tier. The low digits of rate, stddev, low, high and of the totals in dp_budget
** and dp_rdp show the same fact. Rounding these columns would not hide the fact, because the values
** show it. If each tier had a lattice of its own, the fact would be hidden. But all points of a
** release are on one lattice.
** Tests: tests/functions/test_guard.py, tests/report/test_export.py
*/
#include "ledger/display.h"

#include <string.h>

#include "ledger/display.h"
#include "ledger/statements.h"

SQLITE_EXTENSION_INIT3

/* clang-format off */
#define ROUGH(x) "CAST(printf('%.3e', " x " * 1.001) AS REAL)"

/*
** tiers: the tiers that the audience sees. seen: the releases that are published at these tiers.
** shown: the same releases, with names that the audience may know. In the ledger, a release without
** a name of its own is called release-<id>. This id would show how many releases there are, so the
** audience sees another number. inner_models: 1 if one of these releases is a model that was also
** published at an inner tier.
*/
#define AUDIENCE \
  "WITH tiers AS (SELECT t.* FROM dp_tier t JOIN dp_tier own ON own.name = @tier" \
  "   AND t.rate <= own.rate)," \
  " seen AS (SELECT r.id, r.name, r.state = 'discarded' AS discarded," \
  "   min(p.published_at) AS seen_at," \
  "   r.model IS NOT NULL AND EXISTS (SELECT 1 FROM dp_publication q WHERE q.release_id = r.id" \
  "     AND q.tier NOT IN (SELECT name FROM tiers)) AS inner_model" \
  "   FROM dp_release r JOIN dp_publication p ON p.release_id = r.id" \
  "   WHERE p.tier IN (SELECT name FROM tiers) GROUP BY r.id)," \
  " shown AS (SELECT id, " DAY("seen_at") " AS day, seen_at, discarded, inner_model," \
  "   CASE WHEN name = 'release-' || id THEN '(unnamed ' || row_number() OVER" \
  "     (PARTITION BY name = 'release-' || id ORDER BY seen_at, id) || ')' ELSE name END AS name" \
  "   FROM seen)," \
  " inner_models(any_) AS (SELECT ifnull(max(inner_model), 0) FROM shown)"
/* clang-format on */

/*
** The columns that an audience may read: those of the source `alias` that `plain` names, and those
** that are expressions.
*/
struct audience_table {
  const char *table, *alias, *from, *order, *plain;
  struct {
    const char *name, *sql;
  } expressions[8];
};

static const struct audience_table audience_tables[] = {
    {"dp_tier",
     "t",
     "tiers t",
     "rate DESC",
     "name rate epsilon delta delta_keys accountant filter_order rate_limit pure_limit period",
     {{"created_at", DAY("t.created_at")}}},
    {"dp_policy",
     "p",
     "dp_policy p",
     "table_name",
     "table_name role unit_column parent wider factor",
     {{"created_at", DAY("p.created_at")}}},
    {"dp_release",
     "r",
     "dp_release r JOIN shown s ON s.id = r.id AND NOT s.discarded",
     "created_at, name",
     "kind mechanism clip weight dimension keys ways periods sql tables until least",
     {{"name", "s.name"},
      {"options",
       "CASE WHEN NOT inner_model THEN " OPTIONS_SQL(
           "r", "t.name IN (SELECT name FROM tiers)") " WHEN json_extract(r.options, "
                                                      "'$.model.default_eta')"
                                                      " THEN json_remove(r.options, "
                                                      "'$.model.variance', '$.model.eta')"
                                                      " ELSE json_remove(r.options, "
                                                      "'$.model.variance') END"},
      {"created_at", "s.day"}}},
    {"dp_publication",
     "p",
     "dp_publication p JOIN shown s ON s.id = p.release_id AND NOT s.discarded JOIN tiers t ON "
     "t.name = p.tier",
     "published_at, release, tier",
     "tier shrink centre kernel clipped unclipped unit_stddev cut cut_low cut_high"
     " cut_within threshold",
     {{"release", "s.name"},
      {"rate", "iif(inner_model, " ROUGH("p.rate") ", p.rate)"},
      {"published_at", DAY("p.published_at")}}},
    {"dp_value",
     "v",
     "dp_value v JOIN shown s ON s.id = v.release_id AND NOT s.discarded JOIN tiers t ON t.name = "
     "v.tier",
     "release, tier, key, component",
     "tier key component value",
     {{"release", "s.name"},
      {"display",
       "(SELECT " DISPLAY_SQL(
           "v", "iif(inner_model, NULL, v.low)",
           "iif(inner_model, NULL, v.high)") " FROM dp_release r WHERE r.id = v.release_id)"},
      {"figure", "(SELECT " FIGURE_SQL("v") " FROM dp_release r WHERE r.id = v.release_id)"},
      {"label", "(SELECT " LABEL_SQL("v") " FROM dp_release r WHERE r.id = v.release_id)"},
      {"stddev", "iif(inner_model, NULL, v.stddev)"},
      {"low", "iif(inner_model, NULL, v.low)"},
      {"high", "iif(inner_model, NULL, v.high)"}}},
    {"dp_charge",
     "c",
     "dp_charge c JOIN shown s ON s.id = c.release_id AND NOT s.discarded JOIN tiers t ON t.name = "
     "c.tier",
     "release, tier, rate",
     "tier delta period kind",
     {{"release", "s.name"}, {"rate", "iif(inner_model, " ROUGH("c.rate") ", c.rate)"}}},
    {"dp_rdp",
     "d",
     "dp_rdp d JOIN tiers t ON t.name = d.tier, inner_models",
     "tier, alpha",
     "tier alpha allowed",
     {{"spent", "iif(any_, NULL, d.spent)"}}},
    {"dp_grant",
     "g",
     "dp_grant g JOIN tiers t ON t.name = g.tier",
     "name",
     "name tier share questions diffuse pad_ms seconds steps bytes",
     {{"created_at", DAY("g.created_at")}}},
    {"dp_reserve",
     "r",
     "dp_reserve r JOIN dp_grant g ON g.name = r.grant_name JOIN tiers t ON t.name = r.tier"
     " WHERE g.tier IN (SELECT name FROM tiers)",
     "grant_name, tier",
     "grant_name tier reserved spent reserved_delta spent_delta charges",
     {{0, 0}}},
    {"dp_page", "p", "dp_page p JOIN tiers t ON t.name = p.tier", "tier", "tier options", {{0, 0}}},
    {"dp_budget",
     "b",
     "dp_budget b JOIN tiers t ON t.name = b.tier, inner_models",
     "tier",
     "tier epsilon delta spent_delta releases period_start period_end wider_epsilon",
     {{"spent_epsilon", "iif(any_, " ROUGH("b.spent_epsilon") ", b.spent_epsilon)"},
      {"remaining_epsilon",
       "iif(any_, max(0.0, b.epsilon - " ROUGH("b.spent_epsilon") "), b.remaining_epsilon)"},
      {"spent_rate", "iif(any_, " ROUGH("b.spent_rate") ", b.spent_rate)"}}},
};

/* Appends the expression of a column, which is NULL if the audience may not read the column. */
static void append_expression(sqlite3_str *sql, const struct audience_table *table,
                              const char *column) {
  size_t length = strlen(column);
  const char *at = table->plain;
  int i = 0;
  while (table->expressions[i].name && strcmp(table->expressions[i].name, column) != 0) i++;
  while (*at && !(strncmp(at, column, length) == 0 && strchr(" ", at[length]))) {
    at += strcspn(at, " ");
    at += *at == ' ';
  }
  if (table->expressions[i].name) {
    sqlite3_str_appendall(sql, table->expressions[i].sql);
  } else if (*at) {
    sqlite3_str_appendf(sql, "%s.%s", table->alias, column);
  } else {
    sqlite3_str_appendall(sql, "NULL");
  }
}

char *audience_select(const struct ledger_table *table, const char *where) {
  /* If the list has no entry for a table, an audience sees no rows of the table. */
  static const struct audience_table none = {.from = "tiers t LIMIT 0", .order = "1", .plain = ""};
  const struct audience_table *source = &none;
  for (size_t i = 0; i < sizeof audience_tables / sizeof *audience_tables; i++)
    if (strcmp(audience_tables[i].table, table->name) == 0) source = &audience_tables[i];
  sqlite3_str *sql = sqlite3_str_new(0);
  sqlite3_str_appendall(sql, AUDIENCE " SELECT * FROM (SELECT ");
  for (const struct shown_column *column = table->columns; column->name; column++) {
    sqlite3_str_appendall(sql, column > table->columns ? ", " : "");
    append_expression(sql, source, column->name);
    sqlite3_str_appendf(sql, " AS \"%w\"", column->name);
  }
  sqlite3_str_appendf(sql, " FROM %s) WHERE @tier IS NOT NULL%s ORDER BY %s", source->from, where,
                      source->order);
  return sqlite3_str_finish(sql);
}

/* ---- the certificate ------------------------------------------------------------------------- */

/* clang-format off */
/*
** The members of an object that an audience may know, by their names. A number under the condition
** `rough` is rounded up. json_each() returns a number as a double, and exact() writes all digits.
*/
#define CUT(object, rough, names) \
  "json((SELECT json_group_object(key, json(CASE WHEN " rough \
  " THEN printf('%.3e', value * 1.001) WHEN type = 'real' THEN exact(value)" \
  " WHEN type IN ('array', 'object') THEN value ELSE json_quote(value) END))" \
  " FROM json_each(" object ") WHERE key IN (" names ")))"

static const struct statement cut_certificate = {.sql =
  AUDIENCE ","
  " audience AS (SELECT json_group_array(" CUT("t.value",
    "any_ AND key IN ('spent_rate', 'spent_epsilon')",
    "'name', 'rate', 'epsilon', 'delta', 'delta_keys', 'accountant', 'filter_order', 'rate_limit',"
    "'pure_limit', 'spent_rate', 'spent_delta', 'spent_epsilon', 'releases', 'period',"
    "'period_start', 'period_end', 'per_period', 'all_periods', 'wider_epsilon',"
    "'theorem'") ") AS list"
  "   FROM inner_models, json_each(?2, '$.tiers') t"
  "   WHERE json_extract(t.value, '$.name') IN (SELECT name FROM tiers)),"
  " parts AS (SELECT r.value AS release, s.name, s.day, s.seen_at, s.discarded,"
  "   s.inner_model, (SELECT json_group_array(" CUT("p.value", "s.inner_model AND key = 'rate'",
    "'tier', 'rate', 'delta', 'shrink', 'centre', 'curve', 'kernel', 'clipped', 'unclipped',"
    "'unit_stddev', 'cut', 'cut_low', 'cut_high', 'cut_within', 'threshold', 'published_at'") ")"
  "     FROM json_each(r.value, '$.publications') p"
  "     WHERE json_extract(p.value, '$.tier') IN (SELECT name FROM tiers)) AS publications"
  "   FROM json_each(?2, '$.releases') r JOIN shown s ON s.id = json_extract(r.value, '$.id')),"
  " list AS (SELECT json_group_array(json(part)) AS releases FROM (SELECT json_object('name', name,"
  "   'kind', json_extract(release, '$.kind'), 'mechanism', json_extract(release, '$.mechanism'),"
  "   'discarded', json(iif(discarded, 'true', 'false')),"
  "   'options', json(CASE WHEN NOT inner_model THEN json_extract(release, '$.options')"
  "     WHEN json_extract(release, '$.options.model.default_eta')"
  "     THEN json_remove(json_extract(release, '$.options'), '$.model.variance', '$.model.eta')"
  "     ELSE json_remove(json_extract(release, '$.options'), '$.model.variance') END),"
  "   'dimension', json_extract(release, '$.dimension'), "
  "   'weight', " EXACTLY("json_extract(release, '$.weight')") ","
  "   'tables', json_extract(release, '$.tables'),"
  "   'publications', json(publications), 'theorem', json_extract(release, '$.theorem'))"
  "   AS part"
  "   FROM parts ORDER BY day, name, discarded DESC, seen_at))"
  " SELECT json_object('certificate', json_extract(?2, '$.certificate'), 'audience', @tier,"
  "   'ledger', json_extract(?2, '$.ledger'), 'policy', json_extract(?2, '$.policy'),"
  "   'wider', json_remove(json_extract(?2, '$.wider'), '$.table', '$.column'),"
  "   'tiers', json(audience.list), 'releases', json(list.releases),"
  "   'verify', json_extract(?2, '$.verify')) FROM audience, list"};
/* clang-format on */

char *audience_certificate(struct ledger *ledger, const char *certificate, const char *tier) {
  return statement_text(ledger, statement_bind(ledger, &cut_certificate, "ss", tier, certificate));
}
