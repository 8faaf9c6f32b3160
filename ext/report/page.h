/*
** page.h: writes the facts of an audience as one HTML page. The page needs no network and no
** script. The same facts give the same bytes.
*/
#ifndef DIFFUSE_REPORT_PAGE_H
#define DIFFUSE_REPORT_PAGE_H

#include <sqlite3ext.h>

#include "base/error.h"

/*
** Writes the page for the members of `tier`, or for the owner if `tier` is null. Returns the page,
** or null with an error. The caller calls sqlite3_free().
*/
char *page_write(sqlite3 *facts, const char *tier, struct error *error);

/*
** A page that is being written. Each function of the files page_budgets.c, page_releases.c and
** page_facts.c appends one part, or sets the error.
*/
struct page {
  sqlite3 *facts;
  const char *tier; /* null: the owner */
  sqlite3_str *html;
  struct error *error;
};

void page_budgets(struct page *page);  /* page_budgets.c */
void page_releases(struct page *page); /* page_releases.c */
void page_tables(struct page *page);   /* page_tables.c; after page_lines() */
void page_facts(struct page *page);    /* page_facts.c */

/*
** Prepares the tables from which page_releases() and page_trends() read the figures (page_lines.c).
** Returns 1, or 0 with an error.
*/
int page_lines(struct page *page);

/*
** Writes charts that show how the figures of a series change over time (page_trends.c). A series
** consists of releases that ask the same question about different periods (report/series.h). There
** is one chart for each number of the series (a key and a component), up to a limit. If `counts` is
** 1, the figures are counts. Counts cannot be negative, so the scale of their charts has no part
** below 0. Call page_lines() first.
*/
void page_trends(struct page *page, int series, int counts);

/* ---- page_text.c ----------------------------------------------------------------------------- */

/*
** html_text() appends a text with all special characters of HTML escaped, because a name may
** contain any characters. It appends nothing for null. html_put() also appends the pieces of HTML
** before and after the text.
*/
void html_text(sqlite3_str *html, const char *text);
void html_put(sqlite3_str *html, const char *before, const char *text, const char *after);

/*
** Appends a number in decimal, with `digits` significant digits at most: "0.05", "12". The text
** does not depend on the version of SQLite.
*/
void html_number(sqlite3_str *html, double x, int digits);

/* Appends a text as a JSON string that cannot end the HTML element around it. */
void json_in_html(sqlite3_str *json, const char *text);

/* Returns the first integer that a query on the facts gives, or 0 if there is none. */
int page_ask(struct page *page, const char *sql);

#define PAGE_COLORS 5 /* the number of colors for tiers in page.html */

/* Appends the number of a tier (1: the innermost), as in "<b class="n n2">2</b>". */
void page_tier_number(struct page *page, int number);

/* Appends a number at an end of a scale. A whole number has commas between thousands. */
void page_scale_end(struct page *page, double x);

#endif
