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

/* Appends the number of a tier (1: the innermost), as in "<b class="n n2">2</b>". */
void page_tier_number(struct page *page, int number);

#endif
