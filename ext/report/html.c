/* html.c: see html.h. Tests: tests/report/test_report.py */
#include "report/html.h"

#include <stdio.h>

#include "os/locale.h"

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
