/*
** page_trends.c: draws how the figures of a series change over time. A chart has one line for each
** tier, with the 95% interval of each figure.
** Tests: tests/report/test_release_series.py
*/
#include <string.h>

#include "report/facts.h"
#include "report/page.h"
#include "report/scale.h"

SQLITE_EXTENSION_INIT3

#define WIDTH       300
#define HEIGHT      72
#define MARGIN      8  /* between the first figure and the edge */
#define TIER_STEP   3  /* between the figures of two tiers in one period */
#define MOST_CHARTS 24 /* the data block has the figures of the other lines */

/* The figures of a series, by line, tier and time. */
static const char trends_sql[] =
    "SELECT trend, id, tier, at, value, low, high, first, last, max(lowest, min(low) OVER w),"
    " max(high) OVER w, max(tier) OVER (),"
    " (SELECT period FROM line WHERE series = ?1 ORDER BY at LIMIT 1),"
    " (SELECT period FROM line WHERE series = ?1 ORDER BY at DESC LIMIT 1)"
    " FROM line, (SELECT min(at) AS first, max(at) AS last"
    "  FROM line WHERE series = ?1) WHERE series = ?1 AND low IS NOT NULL AND first < last"
    " WINDOW w AS (PARTITION BY id) ORDER BY min(line) OVER w, id, tier, at";
enum { LABEL, ID, TIER, AT, VALUE, LOW, HIGH, FIRST, LAST, LOWEST, HIGHEST, TIERS, START, END };

struct trend {
  sqlite3_stmt *row;
  struct scale scale;
  char *start, *end; /* the first and the last period of the series */
};

static int x_of(struct trend *trend) {
  double first = sqlite3_column_double(trend->row, FIRST),
         last = sqlite3_column_double(trend->row, LAST);
  double place = (sqlite3_column_double(trend->row, AT) - first) / (last - first);
  double side =
      sqlite3_column_int(trend->row, TIER) - (sqlite3_column_int(trend->row, TIERS) + 1) / 2.0;
  return (int)lrint(MARGIN + place * (WIDTH - 2 * MARGIN) + TIER_STEP * side);
}

static int y_of(struct trend *trend, int column) {
  double place = scale_place(trend->scale, sqlite3_column_double(trend->row, column));
  return (int)lrint(HEIGHT - 1 - place * (HEIGHT - 2));
}

/*
** Writes the line and the intervals of one tier. Before the call, the current row is the first
** figure of the tier. Returns 0 if there is no next row.
*/
static int write_tier(struct page *page, struct trend *trend, const char *id) {
  sqlite3_str *bars = sqlite3_str_new(0);
  int tier = sqlite3_column_int(trend->row, TIER), count = 0, more;
  sqlite3_str_appendf(page->html, "<path class=p%d d=\"", (tier - 1) % 5 + 1);
  do {
    int x = x_of(trend);
    sqlite3_str_appendf(page->html, "%s%d %d", count++ ? "L" : "M", x, y_of(trend, VALUE));
    sqlite3_str_appendf(bars, "M%d %dV%d", x, y_of(trend, LOW), y_of(trend, HIGH));
    more = facts_row(trend->row, page->error);
  } while (more && sqlite3_column_int(trend->row, TIER) == tier &&
           strcmp(facts_text(trend->row, ID), id) == 0);
  char *intervals = sqlite3_str_finish(bars);
  sqlite3_str_appendf(page->html, "\"/><path class=\"i p%d\" d=\"%s\"/>", (tier - 1) % 5 + 1,
                      intervals ? intervals : "");
  if (!intervals) error_set_memory(page->error);
  sqlite3_free(intervals);
  return more;
}

/*
** Writes the chart of one number of the series. If `is_shown` is 0, skips the rows of this number.
** Returns 0 if there is no next row.
*/
static int write_trend(struct page *page, struct trend *trend, int is_shown, int counts) {
  double low = sqlite3_column_double(trend->row, LOWEST);
  char *id = sqlite3_mprintf("%s", sqlite3_column_text(trend->row, ID));
  int more = 1;
  if (!id) return error_set_memory(page->error);
  trend->scale =
      (struct scale){counts ? fmax(low, 0) : low, sqlite3_column_double(trend->row, HIGHEST)};
  is_shown = is_shown && scale_is_good(trend->scale);
  if (is_shown) {
    trend->scale = scale_round(trend->scale);
    html_put(page->html, "<section class=trend><div class=ends><span>",
             facts_text(trend->row, LABEL), "</span><span>");
    page_scale_end(page, trend->scale.low);
    sqlite3_str_appendall(page->html, " to ");
    page_scale_end(page, trend->scale.high);
    sqlite3_str_appendf(page->html, "</span></div><svg viewBox=\"0 0 %d %d\">", WIDTH, HEIGHT);
  }
  while (more && strcmp(facts_text(trend->row, ID), id) == 0)
    more = is_shown ? write_tier(page, trend, id) : facts_row(trend->row, page->error);
  if (is_shown) { /* the first and the last period of the series below the chart */
    html_put(page->html, "</svg><div class=ends><span>", trend->start, "</span><span>");
    html_put(page->html, "", trend->end, "</span></div></section>\n");
  }
  sqlite3_free(id);
  return more;
}

void page_trends(struct page *page, int series, int counts) {
  struct trend trend = {.row = facts_prepare(page->facts, trends_sql, page->error)};
  if (trend.row) sqlite3_bind_int(trend.row, 1, series);
  int more = facts_row(trend.row, page->error), charts = 0;
  int is_any = more;
  if (is_any) {
    sqlite3_str_appendall(page->html, "<div class=trends>\n");
    trend.start = sqlite3_mprintf("%s", sqlite3_column_text(trend.row, START));
    trend.end = sqlite3_mprintf("%s", sqlite3_column_text(trend.row, END));
    if (!trend.start || !trend.end) more = error_set_memory(page->error);
  }
  while (more) more = write_trend(page, &trend, charts++ < MOST_CHARTS, counts);
  if (is_any) sqlite3_str_appendall(page->html, "</div>\n");
  sqlite3_finalize(trend.row);
  sqlite3_free(trend.start);
  sqlite3_free(trend.end);
}
