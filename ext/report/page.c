/*
** page.c: see page.h. page.html is the page with places such as {{title}}, which this file fills.
** Tests: tests/report/test_report.py
*/
#include "report/page.h"

#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "report/facts.h"
#include "report_html.h"

SQLITE_EXTENSION_INIT3

#define MOST_COLUMNS 4 /* the number of tiers for which a table has room on a wide screen */

/* ---- the parts ------------------------------------------------------------------------------- */

static void title(struct page *page) {
  html_put(page->html, "Privacy report: ", page->tier ? page->tier : "all tiers, for the owner",
           "");
}

static void heading(struct page *page) {
  html_put(page->html, "<h1>", page->tier ? page->tier : "All tiers", "</h1>\n");
  if (page->tier) {
    html_put(page->html, "<p>This page shows what the members of tier <bdi>", page->tier,
             "</bdi> may see: what was published for them and for the "
             "tiers outside it. It shows nothing of inner tiers.</p>\n");
  } else {
    sqlite3_str_appendall(
        page->html,
        "<p class=warn><b>For the owner only.</b> This page shows all tiers, the "
        "inner ones too. Members of a tier get another page, made for their tier.</p>\n");
  }
}

static void protection(struct page *page) {
  sqlite3_stmt *row =
      facts_prepare(page->facts,
                    "SELECT json_extract(document, '$.ledger.protects') = 'row',"
                    " json_extract(document, '$.ledger.adjacency') = 'replace',"
                    " iif(json_extract(document, '$.ledger.protects') = 'row', 'row',"
                    " ifnull(json_extract(document, '$.ledger.unit'), 'unit')) FROM certificate",
                    page->error);
  if (facts_row(row, page->error) && !sqlite3_column_text(row, 2)) error_set_memory(page->error);
  int rows = sqlite3_column_int(row, 0), replaced = sqlite3_column_int(row, 1);
  const char *unit = facts_text(row, 2);
  sqlite3_str *html = page->html;
  html_put(html, "<p>Each <bdi>", unit,
           "</bdi> is protected. Every figure on this page has random noise, "
           "which limits how well anybody can tell ");
  sqlite3_str_appendall(html, replaced ? "what " : "whether ");
  sqlite3_str_appendall(html, rows ? "any one <bdi>" : "the rows of any one <bdi>");
  html_text(html, unit);
  sqlite3_str_appendall(html, replaced ? rows ? "</bdi> says." : "</bdi> say."
                              : rows   ? "</bdi> is in the data."
                                       : "</bdi> are in the data.");
  html_put(html,
           "</p>\n<p>Epsilon (ε) and delta (δ) bound what all figures that the "
           "members of a tier see, now and later, reveal together about one <bdi>",
           unit,
           "</bdi>: the smaller, the less. For each tier, the page says what this means for the "
           "best guess of somebody who knows everything else in the data. A guess without any "
           "figures is right in 50 of 100 cases.</p>\n");
  sqlite3_finalize(row);
}

static int count_tiers(struct page *page) {
  return page_ask(page, "SELECT count(*) FROM dp_tier");
}

/*
** Appends the condition under which CSS shows tables as lists: on a narrow screen, or always if
** there are more than MOST_COLUMNS tiers.
*/
static void narrow(struct page *page) {
  sqlite3_str_appendall(page->html,
                        count_tiers(page) > MOST_COLUMNS ? "all" : "screen and (max-width:46rem)");
}

/*
** Appends the CSS rules for tables that are shown as lists. The rules write the number of the tier
** before each figure.
*/
static void labels(struct page *page) {
  int tiers = count_tiers(page);
  for (int i = 1; i <= tiers; i++)
    sqlite3_str_appendf(page->html,
                        ".v td:nth-of-type(%d):before{content:\"%d\";background:var(--t%d)}\n", i,
                        i, (i - 1) % PAGE_COLORS + 1);
}

static void readers(struct page *page) {
  if (!page->tier) {
    sqlite3_str_appendall(page->html, "the owner");
    return;
  }
  html_put(page->html, "the members of tier <bdi>", page->tier, "</bdi>");
}

/*
** Returns the rows of dp_value as a JSON array of objects. The members of an object are the columns
** of a row. The caller calls sqlite3_free().
*/
static char *data(struct page *page) {
  sqlite3_stmt *row =
      facts_prepare(page->facts,
                    "SELECT release, tier, key, component, value, stddev, low, high, display, label"
                    " FROM dp_value ORDER BY release, tier, key, component",
                    page->error);
  sqlite3_str *json = sqlite3_str_new(0);
  sqlite3_str_appendall(json, "[");
  for (int count = 0; facts_row(row, page->error); count++) {
    sqlite3_str_appendall(json, count ? ",\n{" : "\n{");
    for (int i = 0; i < sqlite3_column_count(row); i++) {
      int type = sqlite3_column_type(row, i);
      sqlite3_str_appendf(json, "%s\"%s\":", i ? "," : "", sqlite3_column_name(row, i));
      if (type == SQLITE_TEXT) {
        json_in_html(json, (const char *)sqlite3_column_text(row, i));
      } else if (type == SQLITE_INTEGER) {
        sqlite3_str_appendf(json, "%lld", sqlite3_column_int64(row, i));
      } else if (type == SQLITE_FLOAT) {
        json_append_number(json, sqlite3_column_double(row, i));
      } else {
        sqlite3_str_appendall(json, "null");
      }
    }
    sqlite3_str_appendall(json, "}");
  }
  sqlite3_finalize(row);
  sqlite3_str_appendall(json, "\n]");
  char *text = sqlite3_str_finish(json);
  if (!text) error_set_memory(page->error);
  return text;
}

static void write_data(struct page *page) {
  char *json = data(page);
  sqlite3_str_appendall(page->html, json ? json : "");
  sqlite3_free(json);
}

static void hash(struct page *page) {
  char *json = data(page), hash_text[HASH_SIZE] = "";
  if (json) text_hash(json, strlen(json), hash_text);
  sqlite3_str_appendall(page->html, hash_text);
  sqlite3_free(json);
}

/* ---- the page -------------------------------------------------------------------------------- */

static const struct {
  const char *name;
  void (*write)(struct page *page);
} parts[] = {
    {"title", title},
    {"heading", heading},
    {"protection", protection},
    {"budgets", page_budgets},
    {"releases", page_releases},
    {"facts", page_facts},
    {"narrow", narrow},
    {"labels", labels},
    {"readers", readers},
    {"hash", hash},
    {"data", write_data},
};

char *page_write(sqlite3 *facts, const char *tier, struct error *error) {
  struct page page = {facts, tier, sqlite3_str_new(0), error};
  const char *at = report_html, *open;
  while ((open = strstr(at, "{{")) != 0) {
    const char *close = strstr(open, "}}");
    sqlite3_str_append(page.html, at, (int)(open - at));
    size_t length = (size_t)(close - open - 2);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
      if (strlen(parts[i].name) == length && memcmp(parts[i].name, open + 2, length) == 0)
        parts[i].write(&page);
    at = close + 2;
  }
  sqlite3_str_appendall(page.html, at);
  char *html = sqlite3_str_finish(page.html);
  if (!html) error_set_memory(error);
  if (!error_is_set(error)) return html;
  sqlite3_free(html);
  return 0;
}
