/*
** audience.c: see audience.h. Only this file decides what the members of a tier may know. Guarded
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
#include "ledger/audience.h"

#include <string.h>

#include "ledger/display.h"
#include "ledger/table_rows.h"

SQLITE_EXTENSION_INIT3

/* clang-format off */
#define DAY(time) "substr(" time ", 1, 10)"
#define ROUGH(x)  "CAST(printf('%.3e', " x " * 1.001) AS REAL)"

/*
** tiers: the tiers that the audience sees. seen: the releases that are published at these tiers.
** shown: the same releases, with names that the audience may know. In the ledger, a release without
** a name of its own is called release-<id>. This id would show how many releases there are, so the
** audience sees another number. inner_models: 1 if one of these releases is a model that was also
** published at an inner tier.
*/
#define AUDIENCE \
  "WITH tiers AS (SELECT t.* FROM dp_tier t JOIN dp_tier own ON own.name = @tier" \
  "   AND own.dropped_at IS NULL AND t.rate <= own.rate WHERE t.dropped_at IS NULL)," \
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

/* A column that an audience may read, as an SQL expression over the table's source. */
struct readable {
  const char *column, *expression;
};

struct audience_table {
  const char *table, *from, *order;
  struct readable columns[16];
};

static const struct audience_table audience_tables[] = {
    {"dp_tier",
     "tiers t",
     "rate DESC",
     {{"name", "t.name"},
      {"rate", "t.rate"},
      {"epsilon", "t.epsilon"},
      {"delta", "t.delta"},
      {"delta_keys", "t.delta_keys"},
      {"accountant", "t.accountant"},
      {"filter_order", "t.filter_order"},
      {"rate_limit", "t.rate_limit"},
      {"pure_limit", "t.pure_limit"},
      {"created_at", DAY("t.created_at")},
      {"period", "t.period"}}},
    {"dp_policy",
     "dp_policy p",
     "table_name",
     {{"table_name", "p.table_name"},
      {"role", "p.role"},
      {"unit_column", "p.unit_column"},
      {"parent", "p.parent"},
      {"created_at", DAY("p.created_at")}}},
    {"dp_release",
     "dp_release r JOIN shown s ON s.id = r.id AND NOT s.discarded",
     "created_at, name",
     {{"name", "s.name"},
      {"kind", "r.kind"},
      {"mechanism", "r.mechanism"},
      {"clip", "r.clip"},
      {"weight", "r.weight"},
      {"dimension", "r.dimension"},
      {"keys", "r.keys"},
      {"ways", "r.ways"},
      {"periods", "r.periods"},
      {"options", "CASE WHEN NOT inner_model THEN r.options"
                  " WHEN json_extract(r.options, '$.model.default_eta')"
                  " THEN json_remove(r.options, '$.model.variance', '$.model.eta')"
                  " ELSE json_remove(r.options, '$.model.variance') END"},
      {"sql", "r.sql"},
      {"tables", "r.tables"},
      {"created_at", "s.day"}}},
    {"dp_publication",
     "dp_publication p JOIN shown s ON s.id = p.release_id AND NOT s.discarded JOIN tiers t ON "
     "t.name = p.tier",
     "published_at, release, tier",
     {{"release", "s.name"},
      {"tier", "p.tier"},
      {"rate", "iif(inner_model, " ROUGH("p.rate") ", p.rate)"},
      {"shrink", "p.shrink"},
      {"centre", "p.centre"},
      {"kernel", "p.kernel"},
      {"clipped", "p.clipped"},
      {"unclipped", "p.unclipped"},
      {"unit_stddev", "p.unit_stddev"},
      {"published_at", DAY("p.published_at")}}},
    {"dp_value",
     "dp_value v JOIN shown s ON s.id = v.release_id AND NOT s.discarded JOIN tiers t ON t.name = "
     "v.tier",
     "release, tier, key, component",
     {{"release", "s.name"},
      {"tier", "v.tier"},
      {"key", "v.key"},
      {"component", "v.component"},
      {"value", "v.value"},
      {"display",
       "(SELECT " DISPLAY_SQL(
           "v", "iif(inner_model, NULL, v.low)",
           "iif(inner_model, NULL, v.high)") " FROM dp_release r WHERE r.id = v.release_id)"},
      {"figure", "(SELECT " FIGURE_SQL("v") " FROM dp_release r WHERE r.id = v.release_id)"},
      {"stddev", "iif(inner_model, NULL, v.stddev)"},
      {"low", "iif(inner_model, NULL, v.low)"},
      {"high", "iif(inner_model, NULL, v.high)"}}},
    {"dp_charge",
     "dp_charge c JOIN shown s ON s.id = c.release_id AND NOT s.discarded JOIN tiers t ON t.name = "
     "c.tier",
     "release, tier, rate",
     {{"release", "s.name"},
      {"tier", "c.tier"},
      {"rate", "iif(inner_model, " ROUGH("c.rate") ", c.rate)"},
      {"delta", "c.delta"},
      {"period", "c.period"}}},
    {"dp_rdp",
     "dp_rdp d JOIN tiers t ON t.name = d.tier, inner_models",
     "tier, alpha",
     {{"tier", "d.tier"},
      {"alpha", "d.alpha"},
      {"spent", "iif(any_, NULL, d.spent)"},
      {"allowed", "d.allowed"}}},
    {"dp_grant",
     "dp_grant g JOIN tiers t ON t.name = g.tier",
     "name",
     {{"name", "g.name"},
      {"tier", "g.tier"},
      {"share", "g.share"},
      {"questions", "g.questions"},
      {"diffuse", "g.diffuse"},
      {"pad_ms", "g.pad_ms"},
      {"seconds", "g.seconds"},
      {"steps", "g.steps"},
      {"bytes", "g.bytes"},
      {"created_at", DAY("g.created_at")}}},
    {"dp_reserve",
     "dp_reserve r JOIN dp_grant g ON g.name = r.grant_name JOIN tiers t ON t.name = r.tier"
     " WHERE g.tier IN (SELECT name FROM tiers)",
     "grant_name, tier",
     {{"grant_name", "r.grant_name"},
      {"tier", "r.tier"},
      {"reserved", "r.reserved"},
      {"spent", "r.spent"},
      {"reserved_delta", "r.reserved_delta"},
      {"spent_delta", "r.spent_delta"},
      {"charges", "r.charges"}}},
    {"dp_budget",
     "dp_budget b JOIN tiers t ON t.name = b.tier, inner_models",
     "tier",
     {{"tier", "b.tier"},
      {"epsilon", "b.epsilon"},
      {"delta", "b.delta"},
      {"spent_epsilon", "iif(any_, " ROUGH("b.spent_epsilon") ", b.spent_epsilon)"},
      {"remaining_epsilon",
       "iif(any_, max(0.0, b.epsilon - " ROUGH("b.spent_epsilon") "), b.remaining_epsilon)"},
      {"spent_rate", "iif(any_, " ROUGH("b.spent_rate") ", b.spent_rate)"},
      {"spent_delta", "b.spent_delta"},
      {"releases", "b.releases"},
      {"period_start", "b.period_start"},
      {"period_end", "b.period_end"}}},
};

static const char *expression_of(const struct audience_table *table, const char *column) {
  for (int i = 0; table && table->columns[i].column; i++)
    if (strcmp(table->columns[i].column, column) == 0) return table->columns[i].expression;
  return "NULL";
}

char *audience_select(const struct ledger_table *table, const char *where) {
  const struct audience_table *source = 0;
  const char *column;
  for (size_t i = 0; i < sizeof audience_tables / sizeof *audience_tables; i++)
    if (strcmp(audience_tables[i].table, table->columns->table) == 0) source = &audience_tables[i];
  sqlite3_str *sql = sqlite3_str_new(0);
  sqlite3_str_appendall(sql, AUDIENCE " SELECT * FROM (SELECT ");
  for (int place = 1; (column = ledger_table_column(table, place)); place++)
    sqlite3_str_appendf(sql, "%s%s AS \"%w\"", place > 1 ? ", " : "", expression_of(source, column),
                        column);
  /* If the list has no entry for a table, an audience sees no rows of the table. */
  sqlite3_str_appendf(sql, " FROM %s) WHERE %s%s", source ? source->from : "tiers t LIMIT 0",
                      "@tier IS NOT NULL", where);
  if (source) sqlite3_str_appendf(sql, " ORDER BY %s", source->order);
  return sqlite3_str_finish(sql);
}

/* ---- the certificate ------------------------------------------------------------------------- */

/* clang-format off */
#define ROUGH_JSON(x) "json(printf('%.3e', (" x ") * 1.001))"
#define MEMBER(name)  "'" name "', json_extract(t.value, '$." name "')"

/* json_each() returns a number as a double, and exact() writes this double with all its digits. */
#define EXACT(x) "json(exact(" x "))"
#define NUMBER(value, name) "'" name "', " EXACT("json_extract(" value ", '$." name "')")
#define SPENT(name) \
  "'" name "', CASE WHEN any_ THEN " ROUGH_JSON("json_extract(t.value, '$." name "')") \
  " ELSE " EXACT("json_extract(t.value, '$." name "')") " END"

static const char cut_sql[] =
  AUDIENCE ","
  " audience AS (SELECT json_group_array(json_object(" MEMBER("name") "," NUMBER("t.value", "rate")
  "," NUMBER("t.value", "epsilon") "," NUMBER("t.value", "delta")
  "," NUMBER("t.value", "delta_keys")
  "," MEMBER("accountant") "," NUMBER("t.value", "filter_order") "," NUMBER("t.value", "rate_limit")
  "," NUMBER("t.value", "pure_limit")
  "," SPENT("spent_rate") "," NUMBER("t.value", "spent_delta") "," SPENT("spent_epsilon")
  "," MEMBER("releases") "," MEMBER("period") "," MEMBER("period_start") "," MEMBER("period_end")
  "," MEMBER("per_period") "," MEMBER("all_periods") "," MEMBER("theorem") ")) AS list"
  "   FROM inner_models, json_each(?2, '$.tiers') t"
  "   WHERE json_extract(t.value, '$.name') IN (SELECT name FROM tiers)),"
  " parts AS (SELECT r.value AS release, s.name, s.day, s.seen_at, s.discarded,"
  "   s.inner_model,"
  "   (SELECT json_group_array(json_object('tier', json_extract(p.value, '$.tier'), 'rate',"
  "     CASE WHEN s.inner_model THEN " ROUGH_JSON("json_extract(p.value, '$.rate')")
  "     ELSE " EXACT("json_extract(p.value, '$.rate')") " END, " NUMBER("p.value", "delta")
  "     ," NUMBER("p.value", "shrink") "," NUMBER("p.value", "centre") ","
  "     'curve', json_extract(p.value, '$.curve'), 'kernel', json_extract(p.value, '$.kernel'),"
  "     " NUMBER("p.value", "clipped") ","
  "     " NUMBER("p.value", "unclipped") ","
  "     " NUMBER("p.value", "unit_stddev") ","
  "     'published_at', json_extract(p.value, '$.published_at')))"
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
  "   'dimension', json_extract(release, '$.dimension'), " NUMBER("release", "weight") ","
  "   'tables', json_extract(release, '$.tables'),"
  "   'publications', json(publications), 'theorem', json_extract(release, '$.theorem'))"
  "   AS part"
  "   FROM parts ORDER BY day, name, discarded DESC, seen_at))"
  " SELECT json_object('certificate', json_extract(?2, '$.certificate'), 'audience', @tier,"
  "   'ledger', json_extract(?2, '$.ledger'), 'policy', json_extract(?2, '$.policy'),"
  "   'tiers', json(audience.list), 'releases', json(list.releases),"
  "   'verify', json_extract(?2, '$.verify')) FROM audience, list";
/* clang-format on */

char *audience_certificate(struct ledger *ledger, const char *certificate, const char *tier) {
  sqlite3_stmt *row = 0;
  char *result = 0;
  int rc = sqlite3_prepare_v2(ledger->db, cut_sql, -1, &row, 0);
  if (rc == SQLITE_OK)
    rc = sqlite3_bind_text(row, sqlite3_bind_parameter_index(row, "@tier"), tier, -1,
                           SQLITE_TRANSIENT);
  if (rc == SQLITE_OK)
    rc = sqlite3_bind_text(row, sqlite3_bind_parameter_index(row, "?2"), certificate, -1,
                           SQLITE_TRANSIENT);
  if (rc == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW) result = column_copy(ledger, row, 0);
  rc = sqlite3_finalize(row);
  if (rc != SQLITE_OK) ledger_fail_sqlite(ledger);
  return result;
}
