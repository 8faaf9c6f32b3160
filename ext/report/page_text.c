/*
** page_text.c: short texts that several parts of the page contain (page.h).
** Tests: tests/report/test_report.py
*/
#include <math.h>

#include "report/facts.h"
#include "report/html.h"
#include "report/page.h"

SQLITE_EXTENSION_INIT3

void page_tier_number(struct page *page, int number) {
  sqlite3_str_appendf(page->html, "<b class=\"n n%d\">%d</b>", (number - 1) % PAGE_COLORS + 1,
                      number);
}

void page_scale_end(struct page *page, double x) {
  if (fabs(x) < 1e15 && x == floor(x)) {
    sqlite3_str_appendf(page->html, "%,lld", (sqlite3_int64)x);
  } else {
    html_number(page->html, x, 6);
  }
}

char *page_ask(struct page *page, const char *sql) {
  sqlite3_stmt *row = facts_prepare(page->facts, sql, page->error);
  char *text = 0;
  if (facts_row(row, page->error) && sqlite3_column_type(row, 0) != SQLITE_NULL)
    text = sqlite3_mprintf("%s", sqlite3_column_text(row, 0));
  sqlite3_finalize(row);
  return text;
}

char *page_unit(struct page *page) {
  char *unit =
      page_ask(page, "SELECT iif(json_extract(document, '$.ledger.protects') = 'row', 'row',"
                     " ifnull(json_extract(document, '$.ledger.unit'), 'unit'))"
                     " FROM certificate");
  if (!unit) error_set_memory(page->error);
  return unit;
}
