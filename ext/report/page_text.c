/*
** page_text.c: escapes texts, and writes what several parts of the page contain (page.h).
** Tests: tests/report/test_report.py
*/
#include <math.h>
#include <stdio.h>

#include "os/locale.h"
#include "report/facts.h"
#include "report/page.h"

SQLITE_EXTENSION_INIT3

void html_text(sqlite3_str *html, const char *text) {
  for (const char *at = text ? text : ""; *at; at++) {
    switch (*at) {
    case '&': sqlite3_str_appendall(html, "&amp;"); break;
    case '<': sqlite3_str_appendall(html, "&lt;"); break;
    case '>': sqlite3_str_appendall(html, "&gt;"); break;
    case '"': sqlite3_str_appendall(html, "&quot;"); break;
    case '\'': sqlite3_str_appendall(html, "&#39;"); break;
    default: sqlite3_str_appendchar(html, 1, *at);
    }
  }
}

void html_put(sqlite3_str *html, const char *before, const char *text, const char *after) {
  sqlite3_str_appendall(html, before);
  html_text(html, text);
  sqlite3_str_appendall(html, after);
}

void html_number(sqlite3_str *html, double x, int digits) {
  char text[40];
  struct number_locale before = locale_plain();
  snprintf(text, sizeof text, "%.*g", digits, x);
  locale_restore(before);
  sqlite3_str_appendall(html, text);
}

void json_in_html(sqlite3_str *json, const char *text) {
  sqlite3_str_appendchar(json, 1, '"');
  for (; *text; text++) {
    if (*text == '"' || *text == '\\') {
      sqlite3_str_appendf(json, "\\%c", *text);
    } else if ((unsigned char)*text < 0x20 || *text == '<' || *text == '>' || *text == '&') {
      sqlite3_str_appendf(json, "\\u%04x", (unsigned char)*text);
    } else {
      sqlite3_str_appendchar(json, 1, *text);
    }
  }
  sqlite3_str_appendchar(json, 1, '"');
}

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

int page_ask(struct page *page, const char *sql) {
  sqlite3_stmt *row = facts_prepare(page->facts, sql, page->error);
  int number = facts_row(row, page->error) ? sqlite3_column_int(row, 0) : 0;
  sqlite3_finalize(row);
  return number;
}
