/*
** page_releases.c: writes the figures. All releases of one number are in one table, and each other
** release has a table of its own. A row of a table has one figure for each tier and a chart of the
** intervals of these figures.
*/
#include <math.h>
#include <string.h>

#include "report/facts.h"
#include "report/html.h"
#include "report/page.h"

SQLITE_EXTENSION_INIT3

#define MOST_ROWS 100 /* the most rows that a release's table shows; the data block has all */

/*
** Prepares four tables. place: each tier with its number (1: the innermost). figure: each published
** value with the number of its tier. The key of a published category in dp_value is the text of the
** category, which may differ between tiers. In the table figure, the key is therefore ''.
** described: the kind, the options and the day of each release. shape: for each release, whether it
** has several numbers, the range of its intervals, and the number of its tiers.
*/
static const char prepare_sql[] =
    "CREATE TABLE place AS SELECT name, row_number() OVER (ORDER BY rate DESC) AS number"
    " FROM dp_tier;"
    "CREATE TABLE figure AS SELECT release, p.number AS tier, iif(stddev IS NULL AND key <> '' AND"
    " key = display, '', key) AS key, component, value, low, high, display"
    " FROM dp_value JOIN place p ON p.name = tier;"
    "CREATE TABLE described AS SELECT v.release, r.kind, r.options,"
    " (SELECT substr(min(published_at), 1, 10) FROM dp_publication p WHERE p.release = v.release)"
    " AS day FROM (SELECT DISTINCT release, release_id FROM dp_value) v JOIN dp_release r"
    " ON r.name = v.release AND r.id IS v.release_id;"
    "CREATE TABLE shape AS SELECT release, max(key <> '' OR component > 0) AS is_group,"
    " min(low) AS low, max(high) AS high, count(DISTINCT tier) AS tiers FROM figure"
    " GROUP BY release";

/*
** Gives the figures in the order of the page. A line of the page consists of all figures of a
** release with the same key and component. If a release of one number is published at one tier
** only, its lowest value is NULL here, and the line gets no chart: a chart of a single interval on
** a scale of its own would show nothing.
*/
static const char lines_sql[] =
    "SELECT f.release, d.kind, d.day, s.is_group, iif(is_group OR tiers > 1, s.low, NULL), s.high, "
    "f.tier, f.display, f.value, f.low,"
    " f.high, dense_rank() OVER (PARTITION BY f.release ORDER BY f.key + 0, f.key, f.component),"
    " iif(f.key = '', '', f.key || ' ') ||"
    " CASE WHEN d.kind LIKE '%histogram' THEN printf('%.6g to %.6g',"
    "   json_extract(options, '$.lo') + (json_extract(options, '$.hi') -"
    "    json_extract(options, '$.lo')) * f.component / json_extract(options, '$.bins'),"
    "   json_extract(options, '$.lo') + (json_extract(options, '$.hi') -"
    "    json_extract(options, '$.lo')) * (f.component + 1) / json_extract(options, '$.bins'))"
    "  WHEN json_type(options, '$.q') = 'array' THEN printf('%.6g', json_extract(options,"
    "   '$.q[' || f.component || ']'))"
    "  WHEN d.kind = 'bounds' THEN iif(f.component, 'upper end', 'lower end')"
    "  WHEN f.key = '' THEN f.component + 1 ELSE '' END"
    " FROM figure f JOIN described d ON d.release = f.release JOIN shape s ON s.release = f.release"
    " ORDER BY s.is_group, d.day, f.release, 12, f.tier";
enum {
  RELEASE,
  KIND,
  DAY,
  IS_GROUP,
  LOWEST,
  HIGHEST,
  TIER,
  DISPLAY,
  VALUE,
  LOW,
  HIGH,
  LINE,
  LABEL
};

/* The kinds in words. A kind with the prefix "ou_" has the words of the kind without it. */
static const struct kind {
  const char *kind, *words;
  int counts;
} kinds[] = {
    {"count", "count", 1},
    {"count_distinct", "count of units", 1},
    {"sum", "sum", 0},
    {"avg", "average", 0},
    {"var", "variance", 0},
    {"stddev", "standard deviation", 0},
    {"quantile", "quantiles", 0},
    {"median", "median", 0},
    {"histogram", "histogram", 1},
    {"bounds", "bounds of nearly all values", 0},
    {"vec_sum", "sum of vectors", 0},
    {"vec_avg", "average of vectors", 0},
    {"group_count", "counts by group", 1},
    {"group_sum", "sums by group", 0},
    {"group_avg", "averages by group", 0},
    {"group_var", "variances by group", 0},
    {"group_stddev", "standard deviations by group", 0},
    {"group_count_distinct", "counts of units by group", 1},
    {"group_histogram", "histograms by group", 1},
    {"group_quantile", "quantiles by group", 0},
    {"group_median", "medians by group", 0},
    {"choice", "most common category", 0},
    {"response_count", "counts of randomised answers", 1},
    {"sgd", "coefficients of a model", 0},
};

/* Returns null for an unknown kind. */
static const struct kind *kind_of(const char *name) {
  if (strncmp(name, "ou_", 3) == 0) name += 3;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(kinds[i].kind, name) == 0) return &kinds[i];
  return 0;
}

static void write_kind(struct page *page, const char *name) {
  const struct kind *kind = kind_of(name);
  html_text(page->html, kind ? kind->words : name);
  if (kind && strncmp(name, "ou_", 3) == 0) sqlite3_str_appendall(page->html, ", shrunk");
}

/* ---- charts ---------------------------------------------------------------------------------- */

#define WIDTH 99 /* the width of a chart, in units of its viewBox */

struct scale {
  double low, high; /* unless low < high, there is no chart */
};

static int scale_is_good(struct scale scale) {
  return isfinite(scale.low) && isfinite(scale.high) && scale.low < scale.high;
}

/* Returns a scale that contains this scale and ends at round numbers. */
static struct scale scale_round(struct scale scale) {
  double step = pow(10, floor(log10(scale.high - scale.low)));
  if ((scale.high - scale.low) / step < 4) step /= 2;
  return (struct scale){floor(scale.low / step) * step, ceil(scale.high / step) * step};
}

static void write_end(struct page *page, double x) {
  if (fabs(x) < 1e15 && x == floor(x)) {
    sqlite3_str_appendf(page->html, "%,lld", (sqlite3_int64)x);
  } else {
    html_number(page->html, x, 6);
  }
}

static void write_x(struct page *page, struct scale scale, double x) {
  sqlite3_str_appendf(page->html, "%.1f",
                      1 + (WIDTH - 2) *
                              fmin(1, fmax(0, (x - scale.low) / (scale.high - scale.low))));
}

/* ---- tables ---------------------------------------------------------------------------------- */

struct table {
  struct page *page;
  sqlite3_stmt *row; /* the current figure */
  int tiers;         /* how many tiers there are */
  struct scale scale;
};

static const char *text_of(struct table *table, int column) {
  const char *text = (const char *)sqlite3_column_text(table->row, column);
  return text ? text : "";
}

static void table_open(struct table *table, const char *first, int has_axis) {
  struct page *page = table->page;
  sqlite3_stmt *tier =
      facts_prepare(page->facts, "SELECT number, name FROM place ORDER BY number", page->error);
  sqlite3_str_appendf(page->html, "<table class=v>\n<thead><tr><th>%s", first);
  while (facts_row(tier, page->error)) {
    sqlite3_str_appendall(page->html, "<th>");
    page_tier_number(page, sqlite3_column_int(tier, 0));
    html_text(page->html, (const char *)sqlite3_column_text(tier, 1));
  }
  sqlite3_finalize(tier);
  sqlite3_str_appendall(page->html, "<th class=g>");
  if (has_axis) {
    sqlite3_str_appendall(page->html, "<span class=ends><span>");
    write_end(page, table->scale.low);
    sqlite3_str_appendall(page->html, "</span><span>");
    write_end(page, table->scale.high);
    sqlite3_str_appendall(page->html, "</span></span>");
  }
  sqlite3_str_appendall(page->html, "\n<tbody>\n");
}

static struct scale scale_of_row(struct table *table) {
  const struct kind *kind = kind_of(text_of(table, KIND));
  if (sqlite3_column_type(table->row, LOWEST) != SQLITE_FLOAT ||
      sqlite3_column_type(table->row, HIGHEST) != SQLITE_FLOAT)
    return (struct scale){0, 0};
  double low = sqlite3_column_double(table->row, LOWEST);
  /* The scale of a count does not go below 0. */
  return (struct scale){kind && kind->counts ? fmax(low, 0) : low,
                        sqlite3_column_double(table->row, HIGHEST)};
}

/* Appends the interval of the current figure to the chart of its line, with a mark at the value. */
static void draw(struct table *table, sqlite3_str *chart) {
  sqlite3_stmt *row = table->row;
  int tier = sqlite3_column_int(row, TIER), y = 8 * tier - 4;
  if (!scale_is_good(table->scale) || sqlite3_column_type(row, LOW) != SQLITE_FLOAT) return;
  struct page page = *table->page;
  page.html = chart;
  sqlite3_str_appendf(chart, "<path class=p%d d=\"M", (tier - 1) % 5 + 1);
  write_x(&page, table->scale, sqlite3_column_double(row, LOW));
  sqlite3_str_appendf(chart, " %dH", y);
  write_x(&page, table->scale, sqlite3_column_double(row, HIGH));
  sqlite3_str_appendall(chart, "M");
  write_x(&page, table->scale, sqlite3_column_double(row, VALUE));
  sqlite3_str_appendf(chart, " %dv6\"/>", y - 3);
}

/*
** Writes one line, with a cell for each tier, if `is_shown` is 1, or skips it. Before the call, the
** current row of table->row is the first figure of this line. After the call, it is the first
** figure of the next line. Returns 0 if there is no next line.
*/
static int write_line(struct table *table, int is_shown) {
  struct page *page = table->page;
  sqlite3_str *html = page->html, *chart = sqlite3_str_new(0);
  char *release = sqlite3_mprintf("%s", text_of(table, RELEASE));
  int line = sqlite3_column_int(table->row, LINE), next = 1, more;
  do {
    int tier = sqlite3_column_int(table->row, TIER);
    for (; is_shown && next < tier; next++) sqlite3_str_appendall(html, "<td>");
    if (is_shown) {
      sqlite3_str_appendall(html, "<td>");
      html_text(html, text_of(table, DISPLAY));
      draw(table, chart);
    }
    next = tier + 1;
    more = facts_row(table->row, page->error);
  } while (more && release && sqlite3_column_int(table->row, LINE) == line &&
           strcmp(release, text_of(table, RELEASE)) == 0);
  for (; is_shown && next <= table->tiers; next++) sqlite3_str_appendall(html, "<td>");
  char *paths = sqlite3_str_finish(chart);
  if (is_shown) sqlite3_str_appendall(html, "<td class=g>");
  if (is_shown && paths)
    sqlite3_str_appendf(html, "<svg viewBox=\"0 0 %d %d\">%s</svg>", WIDTH, 8 * table->tiers,
                        paths);
  if (is_shown) sqlite3_str_appendall(html, "\n");
  if (!release) error_set_memory(page->error);
  sqlite3_free(paths);
  sqlite3_free(release);
  return more;
}

/* Writes the table of all releases of one number. Each line has a scale of its own. */
static int write_numbers(struct table *table) {
  struct page *page = table->page;
  int more = 1;
  table_open(table, "Release", 0);
  while (more && !sqlite3_column_int(table->row, IS_GROUP)) {
    sqlite3_str_appendall(page->html, "<tr><th>");
    html_text(page->html, text_of(table, RELEASE));
    sqlite3_str_appendall(page->html, "<small>");
    write_kind(page, text_of(table, KIND));
    sqlite3_str_appendf(page->html, " · %s</small>", text_of(table, DAY));
    table->scale = scale_of_row(table);
    more = write_line(table, 1);
  }
  sqlite3_str_appendall(page->html, "</table>\n");
  return more;
}

/* Writes the table of a release of several numbers, with one scale for all lines. */
static int write_group(struct table *table) {
  struct page *page = table->page;
  char *release = sqlite3_mprintf("%s", text_of(table, RELEASE));
  int more = 1, lines = 0;
  if (!release) return error_set_memory(page->error);
  sqlite3_str_appendall(page->html, "<h3>");
  html_text(page->html, release);
  sqlite3_str_appendall(page->html, "<small>");
  write_kind(page, text_of(table, KIND));
  sqlite3_str_appendf(page->html, " · %s</small></h3>\n", text_of(table, DAY));
  struct scale scale = scale_of_row(table);
  table->scale = scale_is_good(scale) ? scale_round(scale) : scale;
  table_open(table, "", scale_is_good(table->scale));
  for (; more && strcmp(release, text_of(table, RELEASE)) == 0; lines++) {
    if (lines < MOST_ROWS) {
      sqlite3_str_appendall(page->html, "<tr><th>");
      html_text(page->html, text_of(table, LABEL));
    }
    more = write_line(table, lines < MOST_ROWS);
  }
  sqlite3_str_appendall(page->html, "</table>\n");
  if (lines > MOST_ROWS)
    sqlite3_str_appendf(page->html, "<p>%d more rows are in the data of this page.</p>\n",
                        lines - MOST_ROWS);
  sqlite3_free(release);
  return more;
}

/*
** Writes the numbers and names of the tiers, for narrow screens, where tables show only the numbers
** of tiers. Returns the number of tiers.
*/
static int write_key(struct page *page) {
  int count = 0;
  sqlite3_stmt *tier =
      facts_prepare(page->facts, "SELECT number, name FROM place ORDER BY number", page->error);
  sqlite3_str_appendall(page->html, "<p class=key>");
  while (facts_row(tier, page->error)) {
    count++;
    sqlite3_str_appendall(page->html, "<span>");
    page_tier_number(page, sqlite3_column_int(tier, 0));
    html_text(page->html, (const char *)sqlite3_column_text(tier, 1));
    sqlite3_str_appendall(page->html, "</span> ");
  }
  sqlite3_finalize(tier);
  sqlite3_str_appendall(page->html, "</p>\n");
  return count;
}

/* Writes what clipping did in the releases that counted the clipped units. */
static void write_clipping(struct page *page) {
  sqlite3_stmt *row = facts_prepare(
      page->facts,
      "SELECT c.release, p.number, c.summary FROM clipping c JOIN place p ON p.name = c.tier"
      " ORDER BY c.release, p.number",
      page->error);
  int count = 0;
  while (facts_row(row, page->error)) {
    if (!count++) sqlite3_str_appendall(page->html, "<h3>What clipping did</h3>\n<ul>\n");
    sqlite3_str_appendall(page->html, "<li>");
    page_tier_number(page, sqlite3_column_int(row, 1));
    html_text(page->html, (const char *)sqlite3_column_text(row, 0));
    sqlite3_str_appendall(page->html, ": ");
    html_text(page->html, (const char *)sqlite3_column_text(row, 2));
    sqlite3_str_appendall(page->html, "\n");
  }
  if (count) sqlite3_str_appendall(page->html, "</ul>\n");
  sqlite3_finalize(row);
}

void page_releases(struct page *page) {
  if (sqlite3_exec(page->facts, prepare_sql, 0, 0, 0) != SQLITE_OK) {
    error_set(page->error, "%s", sqlite3_errmsg(page->facts));
    return;
  }
  struct table table = {.page = page, .tiers = write_key(page)};
  table.row = facts_prepare(page->facts, lines_sql, page->error);
  int more = facts_row(table.row, page->error);
  if (!more) sqlite3_str_appendall(page->html, "<p>Nothing has been published yet.</p>\n");
  if (more && !sqlite3_column_int(table.row, IS_GROUP)) more = write_numbers(&table);
  while (more) more = write_group(&table);
  write_clipping(page);
  sqlite3_finalize(table.row);
}
