/*
** page_lines.c: prepares the tables from which page_releases.c and page_trends.c write the figures.
** Within a release, the figures that have the same id are in one line of a table, with a cell for
** each tier.
** Tests: tests/report/test_release_series.py
*/
#include <stddef.h>

#include "report/facts.h"
#include "report/page.h"
#include "report/series.h"

SQLITE_EXTENSION_INIT3

/* clang-format off */
#define OPTION(name) "json_extract(options, '$." name "')"

/*
** SQL for a number that a statistic of the kind, without noise, is never below. NULL: no such
** number. `sort` is the kind without the prefix "ou_".
*/
#define FLOOR \
  "CASE WHEN sort LIKE '%avg' OR sort LIKE '%quantile' OR sort LIKE '%median' THEN " OPTION("lo") \
  " WHEN sort LIKE '%var' OR sort LIKE '%stddev' THEN 0 END"

/* SQL for the key as people write it: a JSON array becomes a list with commas. */
#define KEY \
  "CASE WHEN f.key LIKE '[%' AND json_valid(f.key) AND json_array_length(f.key) > 0" \
  "  THEN (SELECT group_concat(ifnull(value, 'none'), ', ') FROM json_each(f.key))" \
  " ELSE f.key END"

/* SQL for an edge between the bins of a histogram. */
#define EDGE(index) \
  OPTION("lo") " + (" OPTION("hi") " - " OPTION("lo") ") * (" index ") / " OPTION("bins")
/* SQL for its text: six digits where they tell the bins apart and need no exponent. */
#define EDGE_TEXT(index) \
  "printf('%.*g', iif(max(abs(" OPTION("lo") "), abs(" OPTION("hi") ")) < min(1e6, 1e3 * (" \
  OPTION("hi") " - " OPTION("lo") ") / " OPTION("bins") "), 6, 12), " EDGE(index) ")"
/*
** SQL for what a component means: a bin of a histogram, a quantile, or an end of bounds. The outer
** bins also have the values outside the range.
*/
#define COMPONENT \
  "CASE WHEN d.kind LIKE '%histogram'" \
  "  THEN CASE WHEN " OPTION("bins") " = 1 THEN 'all values'" \
  "   WHEN f.component = 0 THEN 'below ' || " EDGE_TEXT("1") \
  "   WHEN f.component + 1 = " OPTION("bins") \
  "    THEN " EDGE_TEXT("f.component") " || ' and more'" \
  "   ELSE " EDGE_TEXT("f.component") " || ' to ' || " EDGE_TEXT("f.component + 1") " END" \
  " WHEN json_type(options, '$.q') = 'array'" \
  "  THEN printf('%.15g', json_extract(options, '$.q[' || f.component || ']'))" \
  " WHEN d.kind = 'bounds' THEN iif(f.component, 'upper end', 'lower end')" \
  " WHEN f.key = '' AND s.is_group THEN f.component + 1 ELSE '' END"

/* The columns in which all releases of a series agree. */
#define QUESTION "series_stem(name), kind, options, keys, series_question(sql)"
/* clang-format on */

/*
** place: each tier with its number (1: the innermost).
**
** moment: for each figure of a running total (release/periods.h), its group, whether it is a total,
** the label of its last period, and the number of that period.
**
** described: each release with the number of its series. A series consists of the releases that ask
** the same question about different periods (report/series.h). The number is 0 if no other release
** asks the same question. A release of running totals is a series by itself, with a negative
** number. The column `day` also says which figure a release corrects.
**
** figure: each published value with the number of its tier. The key of a published category in
** dp_value is the text of the category, which may differ between tiers. Here, the key is ''.
**
** shape: for each release, whether its numbers have keys or several components, the number of its
** tiers, and a range that contains the intervals of all its numbers and does not go below FLOOR.
** In a series, the first fact and the range are those of all its releases together.
**
** line: each figure with everything that the page says about it. `id` consists of the key and the
** component; for running totals, of the group and whether the figure is a total. A chart of
** page_trends.c has the figures with one id. `line` is the number of the line in the table of the
** release. Running totals begin with the newest ones.
*/
static const char *const prepare_sql[] = {
    "CREATE TABLE place AS SELECT name, row_number() OVER (ORDER BY rate DESC) AS number"
    " FROM dp_tier",
    "CREATE TABLE moment AS WITH named AS (SELECT name, keys, iif(json_valid(periods), periods,"
    "  '[]') AS list FROM dp_release WHERE periods IS NOT NULL),"
    " listed AS (SELECT name, value AS period, key AS at FROM named, json_each(list)),"
    " spans AS (SELECT DISTINCT v.release, v.key, iif(keys IS NULL, v.key,"
    "  json_extract(v.key, '$[0]')) AS span, iif(keys IS NULL, '', json_extract(v.key, '$[1]'))"
    "  AS part FROM dp_value v JOIN named ON name = v.release),"
    " dated AS (SELECT *, instr(span, '/') > 0 AS is_total,"
    "  substr(span, instr(span, '/') + 1) AS period FROM spans)"
    " SELECT d.*, ifnull(l.at, dense_rank() OVER (PARTITION BY release ORDER BY d.period)) AS at"
    " FROM dated d LEFT JOIN listed l ON l.name = d.release AND l.period = d.period",
    "CREATE TABLE described AS WITH told AS (SELECT DISTINCT release, release_id, figure FROM"
    "  dp_value), release AS (SELECT release AS name, release_id, min(figure) || replace(substr("
    "max(figure), length(min(figure)) + 1), '; then ', '; at some tiers then ') AS about FROM told"
    "  GROUP BY release, release_id), sorted AS (SELECT r.name, r.kind, r.options, r.keys, r.sql, "
    "about,"
    "  iif(r.kind LIKE 'ou!_%' ESCAPE '!', substr(r.kind, 4), r.kind) AS sort,"
    "  (SELECT substr(min(published_at), 1, 10) FROM dp_publication p WHERE p.release = r.name) AS"
    "  day FROM release v JOIN dp_release r ON r.name = v.name AND r.id IS v.release_id),"
    " said AS (SELECT *, series_at(name) AS at, " FLOOR " AS floor FROM sorted),"
    " grouped AS (SELECT *, count(*) OVER (PARTITION BY " QUESTION ") AS releases,"
    "  dense_rank() OVER (ORDER BY " QUESTION ") AS rank FROM said)"
    " SELECT name AS release, kind, options, day || ifnull(' · corrects a figure of ' ||"
    "  (SELECT c.day FROM corrected c WHERE c.release = name), '') AS day, about, at, floor, "
    "series_title(name) "
    "AS title, releases,"
    "  CASE WHEN name IN (SELECT release FROM moment) THEN -rank WHEN releases > 1 THEN rank"
    "  ELSE 0 END AS series FROM grouped",
    "CREATE TABLE figure AS SELECT v.release, p.number AS tier, iif(stddev IS NULL AND key <> ''"
    " AND key = display, '', key) AS key, component, value, low, high, display"
    " FROM dp_value v JOIN place p ON p.name = v.tier",
    "CREATE TABLE shape AS WITH one AS (SELECT f.release, d.series, max(key <> '' OR component > 0)"
    "  AS is_group, max(ifnull(floor, min(low)), min(low)) AS low, max(high) AS high, "
    "count(DISTINCT tier) AS tiers"
    "  FROM figure f JOIN described d ON d.release = f.release GROUP BY f.release)"
    " SELECT release, max(is_group) OVER w AS is_group, min(low) OVER w AS low,"
    "  max(high) OVER w AS high, tiers FROM one WINDOW w AS (PARTITION BY series, iif(series, '',"
    "  release))",
    "CREATE TABLE line AS SELECT f.release, d.kind, d.day, d.about, d.series, ifnull(m.at, d.at)"
    " AS at, d.title, d.releases, s.is_group, s.low AS lowest, s.high AS highest, s.tiers, f.tier,"
    " f.display, f.value, f.low, f.high, dense_rank() OVER (PARTITION BY f.release ORDER BY"
    "  -m.at, -m.is_total, f.key + 0, f.key, f.component) AS line,"
    " iif(m.key IS NULL, rtrim(" KEY " || ' ' || " COMPONENT "), replace(" KEY ", '/', ' to '))"
    " AS label, ifnull(m.part || iif(m.part = '', '', ', ') || iif(m.is_total, 'total so far',"
    "  'each period'), rtrim(" KEY " || ' ' || " COMPONENT ")) AS trend,"
    " ifnull(m.is_total || ' ' || m.part, f.component || ' ' || f.key) AS id,"
    " ifnull(m.period, series_period(f.release)) AS period"
    " FROM figure f JOIN described d ON d.release = f.release JOIN shape s ON s.release ="
    " f.release LEFT JOIN moment m ON m.release = f.release AND m.key = f.key"};

int page_lines(struct page *page) {
  if (!series_register(page->facts)) error_set_memory(page->error);
  for (size_t i = 0; i < sizeof prepare_sql / sizeof *prepare_sql; i++) {
    sqlite3_stmt *statement = facts_prepare(page->facts, prepare_sql[i], page->error);
    facts_row(statement, page->error);
    sqlite3_finalize(statement);
  }
  return !error_is_set(page->error);
}
