/*
** page_releases.c: writes the figures. A release of several numbers has a table of its own. A
** series (report/series.h) of releases of one number also has a table of its own. All other
** releases of one number share a table. A line of a table has one figure for each tier, and a chart
** of the intervals of these figures.
** Tests: tests/report/test_report.py
*/
#include <math.h>
#include <string.h>

#include "report/facts.h"
#include "report/page.h"
#include "report/scale.h"

SQLITE_EXTENSION_INIT3

#define MOST_ROWS 100 /* the most lines in the table of a release; the page's data block has all */

/*
** Gives the figures (page_lines.c) in the order of the page: single numbers, series of numbers, and
** groups. If a single number is published at one tier only, its column LOWEST is NULL, and its line
** has no chart: a chart of a single interval on a scale of its own would show nothing.
*/
static const char lines_sql[] =
    "SELECT release, kind, day, is_group, iif(is_group OR series OR tiers > 1, lowest, NULL),"
    " highest, tier, display, value, low, high, line, label, series, about, title, releases,"
    " first_value(period) OVER w, last_value(period) OVER w,"
    " series = 0 OR (series > 0 AND at = max(at) OVER w)"
    " FROM line WHERE release NOT IN (SELECT name FROM dp_release WHERE ways IS NOT NULL)"
    " WINDOW w AS (PARTITION BY series ORDER BY at ROWS BETWEEN UNBOUNDED PRECEDING AND"
    " UNBOUNDED FOLLOWING) ORDER BY is_group, iif(is_group, 0, series > 0), min(day) OVER "
    "(PARTITION BY series,"
    " iif(series, '', release)), iif(series > 0, title, release), series, iif(series > 0, at, 0),"
    " release, line, tier";
/* clang-format off */
enum {
  RELEASE, KIND, DAY, IS_GROUP, LOWEST, HIGHEST, TIER, DISPLAY, VALUE, LOW, HIGH, LINE, LABEL,
  SERIES, ABOUT_TEXT, TITLE, RELEASES, FIRST, LAST, HAS_CHARTS
};
/* clang-format on */

static int is_count(const char *kind) {
  return strstr(kind, "count") || strstr(kind, "histogram");
}

/* ---- charts ---------------------------------------------------------------------------------- */

#define WIDTH 199 /* the width of a chart, in units of its viewBox */

static void write_x(struct page *page, struct scale scale, double x) {
  sqlite3_str_appendf(page->html, "%d", 1 + (int)lrint((WIDTH - 2) * scale_place(scale, x)));
}

/* ---- tables ---------------------------------------------------------------------------------- */

struct release_table {
  struct page *page;
  sqlite3_stmt *row; /* the current figure */
  int tiers;         /* how many tiers there are */
  int has_charts;
  struct scale scale;
};

static const char *text_of(struct release_table *table, int column) {
  return facts_text(table->row, column);
}

/* Writes the numbers and names of the tiers. Returns the number of tiers. */
static int write_tiers(struct page *page, const char *before, const char *after) {
  int count = 0;
  sqlite3_stmt *tier =
      facts_prepare(page->facts, "SELECT number, name FROM place ORDER BY number", page->error);
  for (; facts_row(tier, page->error); count++) {
    sqlite3_str_appendall(page->html, before);
    page_tier_number(page, sqlite3_column_int(tier, 0));
    html_put(page->html, "", facts_text(tier, 1), after);
  }
  sqlite3_finalize(tier);
  return count;
}

static void table_open(struct release_table *table, const char *first, int has_axis) {
  struct page *page = table->page;
  sqlite3_str_appendf(page->html, "<table class=v>\n<thead><tr><th>%s", first);
  write_tiers(page, "<th>", "");
  if (table->has_charts) sqlite3_str_appendall(page->html, "<th class=g>");
  if (table->has_charts && has_axis) {
    sqlite3_str_appendall(page->html, "<span class=ends><span>");
    page_scale_end(page, table->scale.low);
    sqlite3_str_appendall(page->html, "</span><span>");
    page_scale_end(page, table->scale.high);
    sqlite3_str_appendall(page->html, "</span></span>");
  }
  sqlite3_str_appendall(page->html, "\n<tbody>\n");
}

static struct scale scale_of_row(struct release_table *table) {
  if (sqlite3_column_type(table->row, LOWEST) != SQLITE_FLOAT ||
      sqlite3_column_type(table->row, HIGHEST) != SQLITE_FLOAT)
    return (struct scale){0, 0};
  double low = sqlite3_column_double(table->row, LOWEST);
  /* The scale of a count does not go below 0. */
  return (struct scale){is_count(text_of(table, KIND)) ? fmax(low, 0) : low,
                        sqlite3_column_double(table->row, HIGHEST)};
}

/* Appends the interval of the current figure to the chart of its line, with a mark at the value. */
static void draw(struct release_table *table, sqlite3_str *chart) {
  sqlite3_stmt *row = table->row;
  int tier = sqlite3_column_int(row, TIER), y = 16 * tier - 8;
  if (!scale_is_good(table->scale) || sqlite3_column_type(row, LOW) != SQLITE_FLOAT) return;
  struct page page = *table->page;
  page.html = chart;
  sqlite3_str_appendf(chart, "<path class=p%d d=\"M", (tier - 1) % 5 + 1);
  write_x(&page, table->scale, sqlite3_column_double(row, LOW));
  sqlite3_str_appendf(chart, " %dH", y);
  write_x(&page, table->scale, sqlite3_column_double(row, HIGH));
  sqlite3_str_appendall(chart, "M");
  write_x(&page, table->scale, sqlite3_column_double(row, VALUE));
  sqlite3_str_appendf(chart, " %dv12\"/>", y - 6);
}

/*
** Writes one line, with a cell for each tier. If `is_shown` is 0, skips the line. Before the call,
** the current row of table->row is the first figure of this line. After the call, the current row
** is the first figure of the next line. Returns 0 if there is no next line.
*/
static int write_line(struct release_table *table, int is_shown) {
  struct page *page = table->page;
  sqlite3_str *html = page->html, *chart = sqlite3_str_new(0);
  char *release = sqlite3_mprintf("%s", text_of(table, RELEASE));
  int line = sqlite3_column_int(table->row, LINE), next = 1, more;
  do {
    int tier = sqlite3_column_int(table->row, TIER);
    for (; is_shown && next < tier; next++) sqlite3_str_appendall(html, "<td>");
    if (is_shown) {
      html_put(html, "<td>", text_of(table, DISPLAY), "");
      draw(table, chart);
    }
    next = tier + 1;
    more = facts_row(table->row, page->error);
  } while (more && release && sqlite3_column_int(table->row, LINE) == line &&
           strcmp(release, text_of(table, RELEASE)) == 0);
  for (; is_shown && next <= table->tiers; next++) sqlite3_str_appendall(html, "<td>");
  if (sqlite3_str_errcode(chart) != SQLITE_OK) error_set_memory(page->error);
  char *paths = sqlite3_str_finish(chart); /* null if there are none */
  if (is_shown && table->has_charts) sqlite3_str_appendall(html, "<td class=g>");
  if (is_shown && table->has_charts && paths)
    sqlite3_str_appendf(html, "<svg viewBox=\"0 0 %d %d\">%s</svg>", WIDTH, 16 * table->tiers,
                        paths);
  if (is_shown) sqlite3_str_appendall(html, "\n");
  if (!release) error_set_memory(page->error);
  sqlite3_free(paths);
  sqlite3_free(release);
  return more;
}

/* Returns whether the current figure is one of running totals. They are one release. */
static int is_running(struct release_table *table) {
  return sqlite3_column_int(table->row, SERIES) < 0;
}

/* Writes the title of a series, what its figures are, and their trends. */
static void write_series_heading(struct release_table *table) {
  struct page *page = table->page;
  html_put(page->html, "<h3>", text_of(table, is_running(table) ? RELEASE : TITLE), "<small>");
  html_put(page->html, "", text_of(table, ABOUT_TEXT), " · ");
  if (!is_running(table))
    sqlite3_str_appendf(page->html, "%s releases, ", text_of(table, RELEASES));
  html_put(page->html, "<span class=k>", text_of(table, FIRST), " to ");
  html_put(page->html, "", text_of(table, LAST), "</span></small></h3>\n");
  page_trends(page, sqlite3_column_int(table->row, SERIES), is_count(text_of(table, KIND)));
}

/*
** Writes a table: of all single numbers that belong to no series, each line with its own scale; of
** a series of numbers; or of a release of several numbers. The last two have one scale for all
** lines. In a series of groups, only the last release has charts, because the charts of
** page_trends() show the same intervals. Running totals have their heading already, and the newest
** of their figures come first.
*/
static int write_table(struct release_table *table) {
  struct page *page = table->page;
  char *release = sqlite3_mprintf("%s", text_of(table, RELEASE));
  int series = sqlite3_column_int(table->row, SERIES), lines = 0, more = 1;
  int is_group = sqlite3_column_int(table->row, IS_GROUP), is_single = !is_group && !series;
  if (!release) return error_set_memory(page->error);
  if (is_group && !is_running(table)) {
    html_put(page->html, series ? "<h4>" : "<h3>", release, "<small>");
    if (!series) html_put(page->html, "", text_of(table, ABOUT_TEXT), " · ");
    sqlite3_str_appendf(page->html, "%s</small></%s>\n", text_of(table, DAY), series ? "h4" : "h3");
  }
  struct scale scale = scale_of_row(table);
  table->scale = scale_is_good(scale) ? scale_round(scale) : scale;
  table->has_charts = !is_group || sqlite3_column_int(table->row, HAS_CHARTS);
  table_open(table, is_single ? "Release" : "", !is_single && scale_is_good(scale));
  while (more && sqlite3_column_int(table->row, SERIES) == series &&
         sqlite3_column_int(table->row, IS_GROUP) == is_group &&
         (!is_group || strcmp(release, text_of(table, RELEASE)) == 0)) {
    int is_shown = !is_group || lines < MOST_ROWS;
    if (is_single) table->scale = scale_of_row(table);
    if (is_group && is_shown) {
      html_put(page->html, "<tr><th>", text_of(table, LABEL), "");
    } else if (is_shown) {
      html_put(page->html, "<tr><th>", text_of(table, RELEASE), "<small>");
      if (is_single) html_put(page->html, "", text_of(table, ABOUT_TEXT), " · ");
      sqlite3_str_appendf(page->html, "%s</small>", text_of(table, DAY));
    }
    more = write_line(table, is_shown);
    lines++;
  }
  sqlite3_str_appendall(page->html, "</table>\n");
  if (is_group && lines > MOST_ROWS)
    sqlite3_str_appendf(page->html, "<p>%d more rows are in the data of this page.</p>\n",
                        lines - MOST_ROWS);
  sqlite3_free(release);
  return more;
}

/*
** Writes what clipping did in the releases that counted the clipped units. The releases of a series
** share a line, which has the advice (what follows a colon) if the advice is the same for all of
** them. A line gives the numbers of the innermost tier on the page, because outer tiers have the
** same numbers with more noise.
*/
static void write_clipping(struct page *page) {
  static const char sql[] =
      "WITH said AS (SELECT c.*, d.series, d.title, min(p.number) FROM clipping c"
      "  JOIN place p ON p.name = c.tier JOIN described d ON d.release = c.release"
      "  GROUP BY c.release)"
      " SELECT iif(series > 0, title, release), count(*), series > 0, min(low), max(high),"
      "  iif(min(words) = max(words), words, fact) FROM"
      "  (SELECT *, substr(words, 1, instr(words || ':', ':') - 1) AS fact FROM said)"
      " GROUP BY series, iif(series, '', release), fact ORDER BY 1, series, min(release)";
  sqlite3_stmt *row = facts_prepare(page->facts, sql, page->error);
  int count = 0;
  while (facts_row(row, page->error)) {
    int releases = sqlite3_column_int(row, 1);
    if (!count++) sqlite3_str_appendall(page->html, "<h3>What clipping did</h3>\n<ul>\n");
    html_put(page->html, "<li>", facts_text(row, 0), "");
    if (sqlite3_column_int(row, 2))
      sqlite3_str_appendf(page->html, " (%d release%s)", releases, releases == 1 ? "" : "s");
    sqlite3_str_appendall(page->html, ": ");
    if (sqlite3_column_type(row, 3) != SQLITE_NULL) {
      int least = sqlite3_column_int(row, 3), most = sqlite3_column_int(row, 4);
      sqlite3_str_appendf(page->html, "about %d%% ", least);
      if (most > least) sqlite3_str_appendf(page->html, "to %d%% ", most);
    }
    html_put(page->html, "", facts_text(row, 5), "\n");
  }
  sqlite3_finalize(row);
  if (count)
    sqlite3_str_appendall(page->html,
                          "</ul>\n<p>These lines say how many were cut down, not how much "
                          "was cut off: a few with very large contributions can matter, too. "
                          "Advice is for the owner of the data.</p>\n");
}

void page_releases(struct page *page) {
  if (!page_lines(page)) return;
  struct release_table table = {.page = page, .has_charts = 1};
  /* a key for narrow screens, where tables show only the numbers of tiers */
  sqlite3_str_appendall(page->html, "<p class=key>");
  table.tiers = write_tiers(page, "<span>", "</span> ");
  sqlite3_str_appendall(page->html, "</p>\n");
  table.row = facts_prepare(page->facts, lines_sql, page->error);
  int more = facts_row(table.row, page->error), last = 0;
  if (!more && !page_ask(page, "SELECT 1 FROM dp_release WHERE ways IS NOT NULL"))
    sqlite3_str_appendall(page->html, "<p>Nothing has been published yet.</p>\n");
  while (more) {
    int series = sqlite3_column_int(table.row, SERIES);
    if (series && series != last) write_series_heading(&table);
    last = series;
    more = write_table(&table);
  }
  page_tables(page);
  write_clipping(page);
  sqlite3_finalize(table.row);
}
