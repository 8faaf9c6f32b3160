/* views.c: the tables of the ledger as the host reads them: which columns there are, the words in
** dp_value, and which rows and columns the members of one tier may know.
**
** dp_path is not among the tables, because its unpublished points are for the owner only. If an
** application showed them to others, for example through a view, the outer tiers would lose their
** privacy.
** Tests: tests/ledger/test_display.py, tests/ledger/test_columns.py, tests/ledger/test_ledger.py,
** tests/functions/test_guard.py, tests/report/test_export.py */
#include <string.h>

#include "ledger/internal.h"

SQLITE_EXTENSION_INIT3

/* ---- SQL for the words of a value ------------------------------------------------------------ */

/* clang-format off */
/* SQL for whether a public kernel has changed the value `v` (dp_mix). */
#define MIXED_SQL(v) \
  "EXISTS (SELECT 1 FROM dp_publication m WHERE m.release_id = " v ".release_id" \
  " AND m.tier = " v ".tier AND m.kernel IS NOT NULL)"

/* SQL for the text of the value `v` of the release `r` (a row of dp_release), with its interval,
** and for what the value is, in words. */
#define DISPLAY_SQL(v, low, high) \
  "display(" WORDS_RELEASE ", " MIXED_SQL(v) ", " v ".key, " v ".stddev, " v ".value," \
  " " low ", " high ")"
#define FIGURE_SQL(v) \
  "(SELECT figure(" WORDS_RELEASE "," \
  " (SELECT iif(protects = 'row', NULL, ifnull(unit, 'unit')) FROM dp_ledger)," \
  " p.kernel IS NOT NULL, p.threshold, p.clipped, p.unclipped, p.unit_stddev, p.cut, p.cut_low," \
  " p.cut_high, p.cut_within, p.wider_clipped, p.wider_unclipped," \
  " (SELECT wider FROM dp_policy WHERE wider IS NOT NULL)," \
  " (SELECT factor FROM dp_policy WHERE wider IS NOT NULL))" \
  " FROM dp_publication p WHERE p.release_id = " v ".release_id AND p.tier = " v ".tier)" \
  " || iif(r.kind = 'response_count', ', of exactly ' || json_extract(r.model, '$.n')" \
  " || ' rows, missing ones count as ' || json_extract(r.model, '$.otherwise'), '')" \
  " || ifnull('; ' || json_extract(r.options, '$.notice'), '')" \
  " || iif(r.until IS NULL, '', (" STOPPED_SQL(v) "))" \
  " || ifnull('; the same is also answered with clip ' || (SELECT group_concat(c, ' and ')" \
  " FROM (SELECT printf('%.15g', clip) AS c FROM (" \
  OTHER_CLIPS_SQL(v, "<") " UNION " OTHER_CLIPS_SQL(v, ">") ") ORDER BY clip)), '')"

/* SQL for the clips, all below or above that of the release `r`, of other releases of the same
** question at the tier of the value `v`. It skips releases with the same clip by an index. */
#define OTHER_CLIPS_SQL(v, compare) \
  "SELECT o.clip FROM dp_release o JOIN dp_publication q ON q.release_id = o.id AND q.tier = " v \
  ".tier WHERE o.sql = r.sql AND o.kind = r.kind AND o.clip " compare " r.clip" \
  " AND o.state <> 'discarded'"

/* SQL for the key and component of the value `v` of the release `r`, as people write them. */
#define LABEL_SQL(v) \
  "(SELECT written || iif(written = '' OR meant = '', '', ': ') || meant FROM (SELECT" \
  " CASE WHEN " v ".key GLOB '[[{]*' AND json_valid(" v ".key) THEN" \
  "   (SELECT ifnull(group_concat(iif(typeof(e.key) = 'text', e.key || ' ', '') ||" \
  "     iif(e.key = 0 AND r.periods IS NOT NULL, replace(e.value, '/', ' to ')," \
  "     ifnull(e.value, 'none')), ', '), iif(" v ".key = '{}', 'all', " v ".key))" \
  "     FROM json_each(" v ".key) e)" \
  "  WHEN r.periods IS NOT NULL THEN replace(" v ".key, '/', ' to ') ELSE " v ".key END" \
  " AS written," \
  " component(" WORDS_RELEASE ", " v ".component) AS meant))"

/* SQL for where the walk of a release `r` with the option until ended at the tier of the value `v`:
** the cost of its publication there, in percent of the most that it could cost. */
#define STOPPED_SQL(v) \
  "SELECT '; ' || iif(p.clock IS r.stop, 'stopped at ' || goal || ', ' ||" \
  " CASE WHEN part < 0.01 THEN 'less than 0.01' WHEN part >= 99.5 THEN '100'" \
  " ELSE printf('%.2g', part) END || '% of the price of a whole release'," \
  " goal || ' was not reached') FROM (SELECT clock, 100 * p.rate / (r.weight * t.rate) AS part," \
  " printf('\xC2\xB1%g%%', 100 * r.until) ||" \
  " iif(r.least > 0, printf(' (\xC2\xB1%.15g below %.15g)', r.until * r.least, r.least), '')" \
  " AS goal FROM dp_publication p JOIN dp_tier t ON t.name = p.tier" \
  " WHERE p.release_id = r.id AND p.tier = " v ".tier) p"

/* SQL for the options of the release `r`, where `seen` is a condition on the tier `t`. If a release
** with the option until has stopped at such a tier, its options say what part of the price it
** cost. */
#define OPTIONS_SQL(r, seen) \
  "iif(" r ".stop IS NULL, " r ".options, ifnull((SELECT json_set(" r ".options, '$.stopped'," \
  " p.rate / (" r ".weight * t.rate)) FROM dp_publication p JOIN dp_tier t ON t.name = p.tier" \
  " WHERE p.release_id = " r ".id AND p.clock = " r ".stop AND " seen " ORDER BY t.rate DESC" \
  " LIMIT 1), " r ".options))"
/* clang-format on */

int ledger_values_in_words(struct ledger *ledger, int64_t release_id, const char *tier,
                           ledger_take_words *take, void *context) {
  sqlite3_stmt *row = statement_bind(ledger,
                                     "SELECT key, component, value, stddev, low, high,"
                                     " " DISPLAY_SQL("v", "low", "high") ", " FIGURE_SQL("v")
                                     ", " LABEL_SQL("v") " FROM dp_value v JOIN dp_release r"
                                     " ON r.id = release_id WHERE release_id = ? AND v.tier = ?"
                                     " ORDER BY key, component",
                                     "is", release_id, tier);
  while (statement_row(ledger, row)) {
    struct ledger_value value = column_value(row);
    const char *figure = (const char *)sqlite3_column_text(row, 7);
    const char *label = (const char *)sqlite3_column_text(row, 8);
    if (!value.key || !figure || !label ||
        !take(context, &value, (const char *)sqlite3_column_text(row, 6), figure, label))
      return ledger_fail(ledger, "out of memory");
  }
  return !error_is_set(ledger->error);
}

/* ---- what the audience of a tier may know ---------------------------------------------------- */

/* Only this part decides what the members of one tier, the audience, may know. Guarded connections,
** dp_export() and dp_report() all read through it. Members may know the publications at their own
** tier and at all tiers outside it, and everything that can be computed from them. Knowing an inner
** publication, or a decision that depends on one, costs the rate of the inner tier: an audience
** must not learn how many inner releases there are, or when they were made. A column that is not
** listed below is NULL for every audience.
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
** release are on one lattice. */
/* clang-format off */
#define ROUGH(x) "CAST(printf('%.3e', " x " * 1.001) AS REAL)"

/* tiers: those that the audience sees. seen: the releases that are published there. shown: the
** same, with names that the audience may know: in the ledger, a release without a name of its own
** is called release-<id>, and this id would show how many releases there are. inner_models: 1 if
** one of them is a model that was also published at an inner tier. */
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

/* ---- the tables ------------------------------------------------------------------------------ */

/* Hides the publications and values of failed and discarded releases, so that the rows with one
** name all belong to one release. It looks up one release for each row, so that a row of one
** release is found without reading the others. */
#define LIVE                                                                                       \
  "NOT EXISTS (SELECT 1 FROM dp_release r WHERE r.id = release_id"                                 \
  " AND r.state IN ('failed', 'discarded'))"

/* clang-format off */
static const struct shown_column tier_columns[] = {
    {"name", "TEXT", 0, "t.name"},
    {"rate", "REAL", 0, "t.rate"},
    {"epsilon", "REAL", 0, "t.epsilon"},
    {"delta", "REAL", 0, "t.delta"},
    {"delta_keys", "REAL", 0, "t.delta_keys"},
    {"accountant", "TEXT", 0, "t.accountant"},
    {"filter_order", "REAL", 0, "t.filter_order"},
    {"rate_limit", "REAL", 0, "t.rate_limit"},
    {"created_at", "TEXT", 0, DAY("t.created_at")},
    {"period", "TEXT", 0, "t.period"},
    {"pure_limit", "REAL", 0, "t.pure_limit"},
    {0, 0, 0, 0}};

static const struct shown_column release_columns[] = {
    {"id", "INTEGER", 0, 0},
    {"name", "TEXT", 0, "s.name"},
    {"kind", "TEXT", 0, "r.kind"},
    {"mechanism", "TEXT", 0, "r.mechanism"},
    {"clip", "REAL", 0, "r.clip"},
    {"dimension", "INTEGER", 0, "r.dimension"},
    {"granularity", "INTEGER", 0, 0},
    {"sensitivity", "INTEGER", 0, 0},
    {"weight", "REAL", 0, "r.weight"},
    {"slack", "REAL", 0, 0},
    {"options", "TEXT", OPTIONS_SQL("dp_release", "1"),
     "CASE WHEN NOT inner_model THEN " OPTIONS_SQL("r", "t.name IN (SELECT name FROM tiers)")
     " WHEN json_extract(r.options, '$.model.default_eta')"
     " THEN json_remove(r.options, '$.model.variance', '$.model.eta')"
     " ELSE json_remove(r.options, '$.model.variance') END"},
    {"keys", "TEXT", 0, "r.keys"},
    {"model", "TEXT", 0, 0},
    {"sql", "TEXT", 0, "r.sql"},
    {"tables", "TEXT", 0, "r.tables"},
    {"state", "TEXT", 0, 0},
    {"created_at", "TEXT", 0, "s.day"},
    {"ways", "TEXT", 0, "r.ways"},
    {"multipliers", "TEXT", 0, 0},
    {"periods", "TEXT", 0, "r.periods"},
    {"statement", "TEXT", 0, 0},
    {"until", "REAL", 0, "r.until"},
    {"least", "REAL", 0, "r.least"},
    {0, 0, 0, 0}};

static const struct shown_column publication_columns[] = {
    {"release_id", "INTEGER", 0, 0},
    {"release", "TEXT", 0, "s.name"},
    {"tier", "TEXT", 0, "p.tier"},
    {"clock", "INTEGER", 0, 0},
    {"rate", "REAL", 0, "iif(inner_model, " ROUGH("p.rate") ", p.rate)"},
    {"shrink", "REAL", 0, "p.shrink"},
    {"centre", "REAL", 0, "p.centre"},
    {"kernel", "TEXT", 0, "p.kernel"},
    {"published_at", "TEXT", 0, DAY("p.published_at")},
    {"clipped", "REAL", 0, "p.clipped"},
    {"unclipped", "REAL", 0, "p.unclipped"},
    {"unit_stddev", "REAL", 0, "p.unit_stddev"},
    {"cut", "REAL", 0, "p.cut"},
    {"cut_low", "REAL", 0, "p.cut_low"},
    {"cut_high", "REAL", 0, "p.cut_high"},
    {"cut_within", "REAL", 0, "p.cut_within"},
    {"wider_clipped", "REAL", 0, "p.wider_clipped"},
    {"wider_unclipped", "REAL", 0, "p.wider_unclipped"},
    {"threshold", "REAL", 0, "p.threshold"},
    {0, 0, 0, 0}};

/* SQL of the release `r` of a value. */
#define OF_RELEASE(v, sql) "(SELECT " sql " FROM dp_release r WHERE r.id = " v ".release_id)"

static const struct shown_column value_columns[] = {
    {"release_id", "INTEGER", 0, 0},
    {"release", "TEXT", 0, "s.name"},
    {"tier", "TEXT", 0, "v.tier"},
    {"key", "TEXT", 0, "v.key"},
    {"component", "INTEGER", 0, "v.component"},
    {"value", "REAL", 0, "v.value"},
    {"stddev", "REAL", 0, "iif(inner_model, NULL, v.stddev)"},
    {"low", "REAL", 0, "iif(inner_model, NULL, v.low)"},
    {"high", "REAL", 0, "iif(inner_model, NULL, v.high)"},
    {"display", "TEXT", OF_RELEASE("dp_value", DISPLAY_SQL("dp_value", "low", "high")),
     OF_RELEASE("v", DISPLAY_SQL("v", "iif(inner_model, NULL, v.low)",
                                 "iif(inner_model, NULL, v.high)"))},
    {"figure", "TEXT", OF_RELEASE("dp_value", FIGURE_SQL("dp_value")),
     OF_RELEASE("v", FIGURE_SQL("v"))},
    {"label", "TEXT", OF_RELEASE("dp_value", LABEL_SQL("dp_value")),
     OF_RELEASE("v", LABEL_SQL("v"))},
    {0, 0, 0, 0}};

static const struct shown_column charge_columns[] = {
    {"id", "INTEGER", 0, 0},
    {"release_id", "INTEGER", 0, 0},
    {"release", "TEXT", 0, "s.name"},
    {"tier", "TEXT", 0, "c.tier"},
    {"rate", "REAL", 0, "iif(inner_model, " ROUGH("c.rate") ", c.rate)"},
    {"curve", "BLOB", 0, 0},
    {"delta", "REAL", 0, "c.delta"},
    {"slack", "REAL", 0, 0},
    {"at", "TEXT", 0, 0},
    {"hash", "TEXT", 0, 0},
    {"period", "TEXT", 0, "c.period"},
    {"grant_name", "TEXT", 0, 0},
    {"kind", "TEXT", 0, "c.kind"},
    {0, 0, 0, 0}};

static const struct shown_column policy_columns[] = {
    {"table_name", "TEXT", 0, "p.table_name"},
    {"role", "TEXT", 0, "p.role"},
    {"unit_column", "TEXT", 0, "p.unit_column"},
    {"parent", "TEXT", 0, "p.parent"},
    {"created_at", "TEXT", 0, DAY("p.created_at")},
    {"wider", "TEXT", 0, "p.wider"},
    {"wider_column", "TEXT", 0, 0},
    {"factor", "REAL", 0, "p.factor"},
    {"wider_at", "TEXT", 0, 0},
    {0, 0, 0, 0}};

static const struct shown_column rdp_columns[] = {
    {"tier", "TEXT", 0, "d.tier"},
    {"alpha", "REAL", 0, "d.alpha"},
    {"spent", "REAL", 0, "iif(any_, NULL, d.spent)"},
    {"allowed", "REAL", 0, "d.allowed"},
    {0, 0, 0, 0}};

static const struct shown_column budget_columns[] = {
    {"tier", "TEXT", 0, "b.tier"},
    {"epsilon", "REAL", 0, "b.epsilon"},
    {"delta", "REAL", 0, "b.delta"},
    {"spent_epsilon", "REAL", 0, "iif(any_, " ROUGH("b.spent_epsilon") ", b.spent_epsilon)"},
    {"remaining_epsilon", "REAL", 0,
     "iif(any_, max(0.0, b.epsilon - " ROUGH("b.spent_epsilon") "), b.remaining_epsilon)"},
    {"spent_rate", "REAL", 0, "iif(any_, " ROUGH("b.spent_rate") ", b.spent_rate)"},
    {"spent_delta", "REAL", 0, "b.spent_delta"},
    {"releases", "INTEGER", 0, "b.releases"},
    {"releases_left", "INTEGER", 0, 0},
    {"period_start", "TEXT", 0, "b.period_start"},
    {"period_end", "TEXT", 0, "b.period_end"},
    {"wider_epsilon", "REAL", 0, "b.wider_epsilon"},
    {0, 0, 0, 0}};

static const struct shown_column grant_columns[] = {
    {"name", "TEXT", 0, "g.name"},
    {"tier", "TEXT", 0, "g.tier"},
    {"share", "REAL", 0, "g.share"},
    {"questions", "INTEGER", 0, "g.questions"},
    {"diffuse", "TEXT", 0, "g.diffuse"},
    {"pad_ms", "INTEGER", 0, "g.pad_ms"},
    {"seconds", "REAL", 0, "g.seconds"},
    {"steps", "REAL", 0, "g.steps"},
    {"bytes", "REAL", 0, "g.bytes"},
    {"created_at", "TEXT", 0, DAY("g.created_at")},
    {0, 0, 0, 0}};

static const struct shown_column reserve_columns[] = {
    {"grant_name", "TEXT", 0, "r.grant_name"},
    {"tier", "TEXT", 0, "r.tier"},
    {"reserved", "REAL", 0, "r.reserved"},
    {"spent", "REAL", 0, "r.spent"},
    {"reserved_delta", "REAL", 0, "r.reserved_delta"},
    {"spent_delta", "REAL", 0, "r.spent_delta"},
    {"charges", "INTEGER", 0, "r.charges"},
    {0, 0, 0, 0}};

static const struct shown_column page_columns[] = {
    {"tier", "TEXT", 0, "p.tier"},
    {"options", "TEXT", 0, "p.options"},
    {0, 0, 0, 0}};

/* clang-format on */

const struct ledger_table ledger_tables[] = {
    {"dp_tier", tier_columns, 0, "rate DESC", 0, "tiers t",
     "rate DESC"}, /* the innermost tier first */
    {"dp_release", release_columns, 0, "rowid", 0,
     "dp_release r JOIN shown s ON s.id = r.id AND NOT s.discarded", "created_at, name"},
    {"dp_publication", publication_columns, LIVE, "rowid", 0,
     "dp_publication p JOIN shown s ON s.id = p.release_id AND NOT s.discarded JOIN tiers t ON "
     "t.name = p.tier",
     "published_at, release, tier"},
    {"dp_value", value_columns, LIVE, "rowid", 0,
     "dp_value v JOIN shown s ON s.id = v.release_id AND NOT s.discarded JOIN tiers t ON t.name = "
     "v.tier",
     "release, tier, key, component"},
    {"dp_charge", charge_columns, 0, "rowid", 0,
     "dp_charge c JOIN shown s ON s.id = c.release_id AND NOT s.discarded JOIN tiers t ON t.name = "
     "c.tier",
     "release, tier, rate"},
    {"dp_policy", policy_columns, 0, "rowid", 0, "dp_policy p", "table_name"},
    {"dp_rdp", rdp_columns, 0, 0, 1, "dp_rdp d JOIN tiers t ON t.name = d.tier, inner_models",
     "tier, alpha"},
    {"dp_budget", budget_columns, 0, "rowid", 1,
     "dp_budget b JOIN tiers t ON t.name = b.tier, inner_models", "tier"},
    {"dp_grant", grant_columns, 0, "rowid", 0, "dp_grant g JOIN tiers t ON t.name = g.tier",
     "name"},
    {"dp_reserve", reserve_columns, 0, "rowid", 0,
     "dp_reserve r JOIN dp_grant g ON g.name = r.grant_name JOIN tiers t ON t.name = r.tier"
     " WHERE g.tier IN (SELECT name FROM tiers)",
     "grant_name, tier"},
    {"dp_page", page_columns, 0, "rowid", 0, "dp_page p JOIN tiers t ON t.name = p.tier", "tier"},
};
const int ledger_table_count = sizeof ledger_tables / sizeof *ledger_tables;

char *ledger_table_declaration(const struct ledger_table *table) {
  sqlite3_str *text = sqlite3_str_new(0);
  for (const struct shown_column *column = table->columns; column->name; column++)
    sqlite3_str_appendf(text, "%s%s %s", column > table->columns ? ", " : "", column->name,
                        column->type);
  return sqlite3_str_finish(text);
}

int ledger_table_finds(const struct ledger_table *table, int column, sqlite3_value *value) {
  const char *declared = table->columns[column].type;
  int type = sqlite3_value_type(value);
  int is_number = type == SQLITE_INTEGER || type == SQLITE_FLOAT;
  return strcmp(declared, "TEXT") == 0 ? type == SQLITE_TEXT
                                       : is_number && strcmp(declared, "BLOB") != 0;
}

const struct ledger_table *ledger_table_named(const char *name) {
  const struct ledger_table *table = ledger_tables;
  while (strcmp(table->name, name) != 0) table++;
  return table;
}

int ledger_table_index(const struct ledger_table *table, const char *name) {
  int at = 0;
  while (strcmp(table->columns[at].name, name) != 0) at++;
  return at;
}

static const char *sql_of(const struct shown_column *column) {
  return column->sql ? column->sql : column->name;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* SQL for the ids of the releases with one name, which two partial indices find. The tables of
** publications, values and charges have an index on release_id, but none on the name. */
#define IDS_OF_NAME                                                                                \
  "(SELECT id FROM dp_release WHERE name = ?%d AND state <> 'discarded'"                           \
  " UNION ALL SELECT id FROM dp_release WHERE name = ?%d AND state = 'discarded')"

/* Returns " AND <column> IS ?n" for each wanted column, where `first` is the number of the first
** parameter. For the owner, some columns are expressions; for an audience, the inner SELECT has
** them.
**
** For the owner, a condition on the name of a release comes with one on its id, which an index
** answers. An audience always reads all its rows: if it found one name faster, the time would show
** whether an inner tier has a release of this name. */
static char *conditions(const struct ledger *ledger, const struct ledger_table *table,
                        const int *wanted, int count, int first) {
  int is_release = strcmp(table->name, "dp_release") == 0;
  sqlite3_str *sql = sqlite3_str_new(0);
  sqlite3_str_appendall(sql, " ");
  for (int i = 0; i < count; i++) {
    const struct shown_column *column = &table->columns[wanted[i]];
    int is_name = !ledger->audience && strcmp(column->name, is_release ? "name" : "release") == 0;
    sqlite3_str_appendf(sql, " AND %s IS ?%d", ledger->audience ? column->name : sql_of(column),
                        first + i);
    if (is_name)
      sqlite3_str_appendf(sql, " AND %s IN " IDS_OF_NAME, is_release ? "id" : "release_id",
                          first + i, first + i);
  }
  return sqlite3_str_finish(sql);
}

static char *select_all(const struct ledger_table *table, const char *where) {
  sqlite3_str *sql = sqlite3_str_new(0);
  sqlite3_str_appendall(sql, "SELECT ");
  for (const struct shown_column *column = table->columns; column->name; column++)
    sqlite3_str_appendf(sql, "%s%s", column > table->columns ? ", " : "", sql_of(column));
  sqlite3_str_appendf(sql, " FROM %s WHERE %s%s", table->name, table->shown ? table->shown : "1",
                      where);
  if (table->order) sqlite3_str_appendf(sql, " ORDER BY %s", table->order);
  return sqlite3_str_finish(sql);
}

/* Returns the SELECT of a table's columns for the members of the tier @tier. */
static char *select_seen(const struct ledger_table *table, const char *where) {
  sqlite3_str *sql = sqlite3_str_new(0);
  sqlite3_str_appendall(sql, AUDIENCE " SELECT * FROM (SELECT ");
  for (const struct shown_column *column = table->columns; column->name; column++)
    sqlite3_str_appendf(sql, "%s%s AS \"%w\"", column > table->columns ? ", " : "",
                        column->seen ? column->seen : "NULL", column->name);
  sqlite3_str_appendf(sql, " FROM %s) WHERE @tier IS NOT NULL%s ORDER BY %s", table->seen, where,
                      table->seen_order);
  return sqlite3_str_finish(sql);
}

int ledger_table_read(struct ledger *ledger, const struct ledger_table *table, const int *wanted,
                      sqlite3_value **values, int count, ledger_take_row *take, void *context) {
  int first = ledger->audience ? 2 : 1; /* for an audience, the first parameter is the tier */
  char *where = conditions(ledger, table, wanted, count, first);
  char *sql = !where ? 0 : ledger->audience ? select_seen(table, where) : select_all(table, where);
  sqlite3_free(where);
  if (!sql) return ledger_fail(ledger, "out of memory");
  sqlite3_stmt *row = 0;
  int rc = sqlite3_prepare_v2(ledger->db, sql, -1, &row, 0);
  sqlite3_free(sql);
  if (ledger->audience && rc == SQLITE_OK)
    rc = sqlite3_bind_text(row, 1, ledger->audience, -1, SQLITE_TRANSIENT);
  for (int i = 0; i < count && rc == SQLITE_OK; i++)
    rc = sqlite3_bind_value(row, first + i, values[i]);
  if (rc == SQLITE_OK) {
    while (ledger_goes_on(ledger) && (rc = sqlite3_step(row)) == SQLITE_ROW) {
      if (!take(context, row, sqlite3_column_count(row))) {
        ledger_fail(ledger, "out of memory");
        break;
      }
    }
  }
  if (rc != SQLITE_DONE && rc != SQLITE_ROW) ledger_fail_sqlite(ledger);
  sqlite3_finalize(row); /* an error is already recorded */
  return !error_is_set(ledger->error);
}

/* ---- the certificate ------------------------------------------------------------------------- */

/* clang-format off */
/* The members of an object that an audience may know. A number under the condition `rough` is
** rounded up. json_each() returns a number as a double, and exact() writes all digits. */
#define CUT(object, rough, names) \
  "json((SELECT json_group_object(key, json(CASE WHEN " rough \
  " THEN printf('%.3e', value * 1.001) WHEN type = 'real' THEN exact(value)" \
  " WHEN type IN ('array', 'object') THEN value ELSE json_quote(value) END))" \
  " FROM json_each(" object ") WHERE key IN (" names ")))"

static const char cut_certificate[] =
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
    "'unit_stddev', 'cut', 'cut_low', 'cut_high', 'cut_within', 'wider_clipped',"
    "'wider_unclipped', 'threshold', 'published_at'") ")"
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
  "   'verify', json_extract(?2, '$.verify')) FROM audience, list";
/* clang-format on */

char *views_certificate(struct ledger *ledger, const char *certificate, const char *tier) {
  return statement_text(ledger, cut_certificate, "ss", tier, certificate);
}
