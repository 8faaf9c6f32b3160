/*
** page_tables.c: writes the releases of cross tables as people print them: the keys of the last
** attribute of a table side by side, the keys of its other attributes below each other, and the
** margins at the right and at the bottom.
**
** The page shows the tables that are inside no other table of the release, because these have all
** other tables as margins, or as margins of margins. Each tier has tables of its own.
** Tests: tests/report/test_cross_tables_page.py
*/
#include <string.h>

#include "report/facts.h"
#include "report/page.h"

SQLITE_EXTENSION_INIT3

#define MOST_CELLS "400" /* a larger table is not printed; the page's data block has its cells */

/*
** The tables to print: the release, the tier, and the attributes as a JSON array. `one` lists all
** tables without their weights.
*/
static const char tables_sql[] =
    "WITH one AS (SELECT r.name, r.keys, t.key AS number, (SELECT json_group_array(a.value)"
    "  FROM json_each(t.value) a WHERE a.type = 'text') AS attributes"
    "  FROM dp_release r, json_each(r.ways) t),"
    " sized AS (SELECT *, json_array_length(attributes) AS size FROM one),"
    " largest AS (SELECT * FROM sized a WHERE NOT EXISTS (SELECT 1 FROM sized b"
    "  WHERE b.name = a.name AND b.size > a.size AND NOT EXISTS (SELECT 1 FROM"
    "   json_each(a.attributes) x WHERE x.value NOT IN (SELECT value FROM "
    "json_each(b.attributes)))))"
    " SELECT DISTINCT l.name, v.tier, l.attributes, d.about, d.day, p.number, l.keys,"
    "  (SELECT group_concat(value, ' × ') FROM json_each(l.attributes)), l.number"
    " FROM largest l JOIN described d ON d.release = l.name"
    " JOIN (SELECT DISTINCT release, tier FROM dp_value) v ON v.release = l.name"
    " JOIN place p ON p.name = v.tier ORDER BY d.day, l.name, p.number, l.number";
enum { RELEASE, TIER, ATTRIBUTES, ABOUT_TEXT, DAY, TIER_NUMBER, KEYS, CAPTION };

/*
** The cells of the table ?1 (attributes) of the release ?2 at the tier ?3, whose keys are ?4, with
** all its margins: the label of the row and of the column (NULL: all), and the figure. A row has a
** key or "all" for every attribute but the last; the bottom margin has "all" for each of them.
*/
static const char cells_sql[] =
    "WITH attribute AS (SELECT key AS at, value AS name, key = json_array_length(?1) - 1 AS is_last"
    "  FROM json_each(?1)),"
    " place AS (SELECT a.at, a.is_last, k.key AS place, k.value AS label, a.name"
    "  FROM attribute a, json_each(?4) o, json_each(o.value) k WHERE o.key = a.name),"
    " cell AS (SELECT v.key, v.display,"
    "  (SELECT group_concat(label, ', ') FROM (SELECT ifnull(p.label, 'all') AS label"
    "   FROM attribute a LEFT JOIN json_each(v.key) e ON e.key = a.name LEFT JOIN place p"
    "   ON p.name = e.key AND p.label = e.value WHERE NOT a.is_last ORDER BY a.at)) AS row,"
    "  (SELECT group_concat(place, '') FROM (SELECT printf('%08d', ifnull(p.place, 99999999)) AS"
    "   place FROM attribute a LEFT JOIN json_each(v.key) e ON e.key = a.name LEFT JOIN place p"
    "   ON p.name = e.key AND p.label = e.value WHERE NOT a.is_last ORDER BY a.at)) AS row_at,"
    "  (SELECT count(*) FROM json_each(v.key) e JOIN attribute a ON a.name = e.key"
    "   WHERE NOT a.is_last) AS row_size,"
    "  (SELECT p.label FROM json_each(v.key) e JOIN place p ON p.name = e.key AND p.label = e.value"
    "   AND p.is_last) AS column,"
    "  (SELECT p.place FROM json_each(v.key) e JOIN place p ON p.name = e.key AND p.label = e.value"
    "   AND p.is_last) AS column_at"
    "  FROM dp_value v WHERE v.release = ?2 AND v.tier = ?3 AND NOT EXISTS (SELECT 1 FROM"
    "   json_each(v.key) e WHERE e.key NOT IN (SELECT name FROM attribute)))"
    " SELECT iif(row_size = 0, NULL, row), column, display FROM cell"
    " ORDER BY row_at, column_at IS NULL, column_at";

/* Whether a table has too many cells: the product of the numbers of keys of its attributes. */
static const char size_sql[] =
    "WITH RECURSIVE product(at, cells) AS (SELECT 0, 1.0 UNION ALL SELECT at + 1, cells *"
    "  (SELECT json_array_length(value) FROM json_each(?4)"
    "   WHERE key = json_extract(?1, '$[' || at || ']'))"
    "  FROM product WHERE at < json_array_length(?1))"
    " SELECT max(cells) > " MOST_CELLS " FROM product";

static sqlite3_stmt *prepare(struct page *page, const char *sql, sqlite3_stmt *table) {
  sqlite3_stmt *statement = facts_prepare(page->facts, sql, page->error);
  static const int columns[] = {ATTRIBUTES, RELEASE, TIER, KEYS};
  for (int i = 0; i < 4 && statement; i++)
    if (i < sqlite3_bind_parameter_count(statement))
      sqlite3_bind_text(statement, i + 1, facts_text(table, columns[i]), -1, SQLITE_TRANSIENT);
  return statement;
}

/* The keys of the last attribute. */
static const char columns_sql[] = "SELECT k.value FROM json_each(?4) o, json_each(o.value) k"
                                  " WHERE o.key = json_extract(?1, '$[#-1]')";

static void write_table(struct page *page, sqlite3_stmt *table) {
  sqlite3_stmt *cell = prepare(page, cells_sql, table);
  char *last = 0;
  sqlite3_str_appendall(page->html, "<p>");
  page_tier_number(page, sqlite3_column_int(table, TIER_NUMBER));
  html_text(page->html, facts_text(table, TIER));
  html_put(page->html, ": ", facts_text(table, CAPTION), "</p>\n<table class=v>\n<thead><tr><th>");
  sqlite3_stmt *key = prepare(page, columns_sql, table);
  while (facts_row(key, page->error)) html_put(page->html, "<th>", facts_text(key, 0), "");
  sqlite3_finalize(key);
  sqlite3_str_appendall(page->html, "<th><i>all</i>\n<tbody>\n");
  while (facts_row(cell, page->error)) {
    const char *row = facts_text(cell, 0);
    if (!last || strcmp(last, row) != 0) {
      sqlite3_free(last);
      last = sqlite3_mprintf("%s", row);
      if (!last) {
        error_set_memory(page->error);
        break;
      }
      int is_margin = sqlite3_column_type(cell, 0) == SQLITE_NULL;
      html_put(page->html, is_margin ? "<tr><th><i>all</i>" : "<tr><th>", is_margin ? 0 : row, "");
    }
    html_put(page->html, "<td>", facts_text(cell, 2), "");
  }
  sqlite3_free(last);
  sqlite3_finalize(cell);
  sqlite3_str_appendall(page->html, "\n</table>\n");
}

void page_tables(struct page *page) {
  sqlite3_stmt *table = facts_prepare(page->facts, tables_sql, page->error);
  char *last = 0;
  while (facts_row(table, page->error)) {
    if (!last || strcmp(last, facts_text(table, RELEASE)) != 0) {
      sqlite3_free(last);
      last = sqlite3_mprintf("%s", facts_text(table, RELEASE));
      if (!last) error_set_memory(page->error);
      html_put(page->html, "<h3>", facts_text(table, RELEASE), "<small>");
      html_text(page->html, facts_text(table, ABOUT_TEXT));
      sqlite3_str_appendf(page->html, " · %s</small></h3>\n", facts_text(table, DAY));
    }
    sqlite3_stmt *size = prepare(page, size_sql, table);
    int is_large = facts_row(size, page->error) && sqlite3_column_int(size, 0);
    sqlite3_finalize(size);
    if (is_large) {
      html_put(page->html, "<p>The table ", facts_text(table, CAPTION),
               " is too large to print. The data of this page has it.</p>\n");
    } else {
      write_table(page, table);
    }
  }
  sqlite3_free(last);
  sqlite3_finalize(table);
}
