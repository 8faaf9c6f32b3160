/*
** page.h: writes the facts of an audience as one HTML page. The page needs no network and no
** script. The same facts give the same bytes.
*/
#ifndef DIFFUSE_REPORT_PAGE_H
#define DIFFUSE_REPORT_PAGE_H

#include <sqlite3ext.h>

#include "base/error.h"

/*
** Writes the page for the members of `tier`, or for the owner if `tier` is null. Returns the page
** (sqlite3_free), or null with an error.
*/
char *page_write(sqlite3 *facts, const char *tier, struct error *error);

/* A page that is being written. The functions below append one part each, or set the error. */
struct page {
  sqlite3 *facts;
  const char *tier; /* null: the owner */
  sqlite3_str *html;
  struct error *error;
};

void page_budgets(struct page *page);  /* page_budgets.c */
void page_releases(struct page *page); /* page_releases.c */
void page_facts(struct page *page);    /* page_facts.c */

/* Prepares the tables of the figures: page_lines.c. Returns 1, or 0 with an error. */
int page_lines(struct page *page);

/*
** Writes line charts over time for a series (report/series.h), one for each line of its releases:
** page_trends.c. A count cannot be negative, so the scale of a chart of counts has no part below 0.
** Call page_lines() first.
*/
void page_trends(struct page *page, int series, int counts);

/* Appends the number of a tier (1: the innermost), as in "<b class="n n2">2</b>". */
void page_tier_number(struct page *page, int number);

/* Appends the end of a scale, with commas between thousands. */
void page_scale_end(struct page *page, double x);

/*
** Returns the noun for one unit (sqlite3_free): "row" if the ledger protects rows, otherwise the
** ledger's label, such as "patient", or "unit" without a label. Returns null with an error if
** memory runs out.
*/
char *page_unit(struct page *page);

#endif
