/*
** page_budgets.c: writes a card for each tier, with its guarantee and the use of its budget.
** Tests: tests/report/test_report.py
*/
#include <math.h>

#include "report/facts.h"
#include "report/page.h"

SQLITE_EXTENSION_INIT3

static const char tiers_sql[] =
    "SELECT t.name, t.epsilon, t.delta, t.period, b.spent_epsilon, b.releases_left,"
    " b.period_start, b.period_end, json_extract(c.value, '$.all_periods.periods'),"
    " json_extract(c.value, '$.all_periods.epsilon'),"
    " json_extract(c.value, '$.all_periods.delta'),"
    " (SELECT share FROM spending s WHERE s.tier = t.name AND s.period IS b.period_start"
    "  ORDER BY day DESC LIMIT 1)"
    " FROM dp_tier t JOIN dp_budget b ON b.tier = t.name JOIN certificate"
    " JOIN json_each(document, '$.tiers') c ON json_extract(c.value, '$.name') = t.name"
    " ORDER BY t.rate DESC";
/* clang-format off */
enum {
  NAME, EPSILON, DELTA, PERIOD, SPENT, RELEASES_LEFT, START, END, PERIODS, ALL_EPSILON,
  ALL_DELTA, SHARE
};
/* clang-format on */

/* ---- the guarantee --------------------------------------------------------------------------- */

/* Appends a text such as "ε = 8, δ = 1 in 1,000,000". */
static void write_terms(struct page *page, double epsilon, double delta) {
  sqlite3_str_appendall(page->html, "ε = ");
  html_number(page->html, epsilon, 4);
  sqlite3_str_appendall(page->html, ", δ = ");
  double one_in = delta > 0 ? floor(1 / delta * (1 + 1e-9)) : 0; /* rounds delta up */
  if (delta > 0 && one_in >= 2 && one_in < 1e15) {
    sqlite3_str_appendf(page->html, "1 in %,lld", (sqlite3_int64)one_in);
  } else {
    html_number(page->html, delta, 4);
  }
}

/*
** Suppose that two neighbouring data sets are equally likely, and that somebody guesses from the
** releases which of the two was used. Writes a bound on how many of 100 such guesses are right:
** 100 (e^epsilon + delta) / (1 + e^epsilon), rounded up to two decimals, or to more (at most eight)
** if the number would otherwise be 100. (Kairouz, Oh and Viswanath 2015, Theorem 2.1: two linear
** inequalities bound the probabilities of a wrong guess under each of the two data sets. The sum of
** the two probabilities is least where both inequalities are equalities.)
*/
static void write_guess(struct page *page, double epsilon, double delta) {
  double right = (1 + delta * exp(-epsilon)) / (1 + exp(-epsilon));
  double guess = 100;
  for (int decimals = 2; decimals <= 8 && guess >= 100; decimals++) {
    double unit = pow(10, decimals);
    guess = ceil(right * 100 * unit * (1 - 1e-12)) / unit;
  }
  sqlite3_str_appendall(page->html, "A best guess is right in at most ");
  html_number(page->html, fmin(guess, 100), 10);
  sqlite3_str_appendall(page->html, " of 100 cases.");
}

static void write_guarantee(struct page *page, sqlite3_stmt *row) {
  double epsilon = sqlite3_column_double(row, EPSILON), delta = sqlite3_column_double(row, DELTA);
  const char *period = (const char *)sqlite3_column_text(row, PERIOD);
  sqlite3_str_appendall(page->html, "<p><strong>");
  write_terms(page, epsilon, delta);
  if (period) sqlite3_str_appendf(page->html, " in each %s", period);
  sqlite3_str_appendall(page->html, ".</strong> ");
  write_guess(page, epsilon, delta);
  sqlite3_str_appendall(page->html, "</p>\n");
  sqlite3_int64 periods = sqlite3_column_int64(row, PERIODS);
  if (!period || periods < 2) return;
  double all = sqlite3_column_double(row, ALL_EPSILON),
         all_delta = sqlite3_column_double(row, ALL_DELTA);
  sqlite3_str_appendf(page->html, "<p>All %lld %ss so far: ", periods, period);
  write_terms(page, all, all_delta);
  sqlite3_str_appendall(page->html, ". ");
  write_guess(page, all, all_delta);
  sqlite3_str_appendall(page->html, "</p>\n");
}

/* ---- the spending ---------------------------------------------------------------------------- */

#define WIDTH  300
#define HEIGHT 64

static void write_percent(struct page *page, double share) {
  html_number(page->html, share * 100, 3);
  sqlite3_str_appendall(page->html, "%");
}

static void write_spent(struct page *page, sqlite3_stmt *row, int number) {
  double share = sqlite3_column_double(row, SHARE), spent = sqlite3_column_double(row, SPENT);
  sqlite3_str_appendf(page->html,
                      "<svg viewBox=\"0 0 %d 8\"><path class=axis d=\"M0 4H%d\" "
                      "style=\"stroke-width:8\"/><path class=p%d d=\"M0 4H%.1f\" "
                      "style=\"stroke-width:8\"/></svg>\n<p>Spent: ",
                      WIDTH, WIDTH, (number - 1) % 5 + 1, WIDTH * share);
  write_percent(page, share);
  if (share > 0 && isfinite(spent)) {
    sqlite3_str_appendall(page->html, " (ε so far about ");
    html_number(page->html, spent, 3);
    sqlite3_str_appendall(page->html, ")");
  }
  sqlite3_str_appendall(page->html, ". Left: ");
  write_percent(page, 1 - share);
  if (sqlite3_column_type(row, RELEASES_LEFT) == SQLITE_INTEGER) {
    sqlite3_int64 left = sqlite3_column_int64(row, RELEASES_LEFT);
    sqlite3_str_appendf(page->html,
                        ", and room for %,lld more release%s at the rate of the tier (beside "
                        "grants, and at inner tiers too)",
                        left, left == 1 ? "" : "s");
  }
  sqlite3_str_appendall(page->html, ".");
  if (sqlite3_column_type(row, START) == SQLITE_TEXT) {
    html_put(page->html, " These figures are for the period from ", facts_text(row, START),
             " until before ");
    html_put(page->html, "", facts_text(row, END), ".");
  }
  sqlite3_str_appendall(page->html, "</p>\n");
}

/*
** Appends a chart of the share of the budget that was spent by each day, if there are several days.
** At the start of a period, the share falls to 0. Returns whether there is a chart.
*/
static int write_history(struct page *page, const char *tier, int number) {
  static const char sql[] =
      "SELECT share, period IS NOT lag(period, 1, period) OVER w, day, first, last,"
      " (julianday(day) - julianday(first)) / max(1, julianday(last) - julianday(first))"
      " FROM spending, (SELECT min(day) AS first, max(day) AS last FROM spending WHERE tier = ?1)"
      " WHERE tier = ?1 AND first < last WINDOW w AS (ORDER BY period, day) ORDER BY period, day";
  sqlite3_stmt *row = facts_prepare(page->facts, sql, page->error);
  if (!row) return 0;
  sqlite3_bind_text(row, 1, tier, -1, SQLITE_TRANSIENT);
  char *first = 0, *last = 0;
  while (facts_row(row, page->error)) {
    if (!first) {
      first = sqlite3_mprintf("%s", facts_text(row, 3));
      last = sqlite3_mprintf("%s", facts_text(row, 4));
      if (!first || !last) error_set_memory(page->error);
      sqlite3_str_appendf(page->html,
                          "<svg viewBox=\"0 0 %d %d\" role=img aria-label=\"Budget spent over "
                          "time\"><path class=axis d=\"M0 1H%dM0 %dH%d\"/><path class=p%d "
                          "d=\"M0 %d",
                          WIDTH, HEIGHT, WIDTH, HEIGHT - 1, WIDTH, (number - 1) % 5 + 1,
                          HEIGHT - 1);
    }
    sqlite3_str_appendf(page->html, "H%.1f", WIDTH * sqlite3_column_double(row, 5));
    if (sqlite3_column_int(row, 1)) sqlite3_str_appendf(page->html, "V%d", HEIGHT - 1);
    sqlite3_str_appendf(page->html, "V%.1f",
                        HEIGHT - 1 - (HEIGHT - 2) * sqlite3_column_double(row, 0));
  }
  sqlite3_finalize(row);
  int is_drawn = first && last;
  if (is_drawn) {
    sqlite3_str_appendf(page->html, "H%d\"/></svg>\n<div class=ends><span>", WIDTH);
    html_text(page->html, first);
    html_put(page->html, "</span><span>", last, "</span></div>\n");
  }
  sqlite3_free(first);
  sqlite3_free(last);
  return is_drawn;
}

void page_budgets(struct page *page) {
  sqlite3_stmt *row = facts_prepare(page->facts, tiers_sql, page->error);
  int number = 0, charts = 0;
  while (facts_row(row, page->error)) {
    if (!number++) sqlite3_str_appendall(page->html, "<div class=cards>\n");
    sqlite3_str_appendall(page->html, "<section class=card><h3>");
    page_tier_number(page, number);
    html_put(page->html, "", facts_text(row, NAME), "</h3>\n");
    write_guarantee(page, row);
    write_spent(page, row, number);
    charts += write_history(page, (const char *)sqlite3_column_text(row, NAME), number);
    sqlite3_str_appendall(page->html, "</section>\n");
  }
  sqlite3_finalize(row);
  if (number) sqlite3_str_appendall(page->html, "</div>\n<p></p><p>");
  if (charts)
    sqlite3_str_appendall(page->html, "A line shows what was spent over time; the grey line above "
                                      "it is the whole budget. ");
  sqlite3_str_appendall(
      page->html,
      number ? "The guarantee of a tier is its whole budget, whatever is spent of it so far. "
               "ε so far need not be in proportion to what is spent. "
               "Members of a tier also see everything that is published for the tiers outside it, "
               "and the budget of their tier pays for that too.</p>\n"
             : "<p>There is no tier yet.</p>\n");
}
