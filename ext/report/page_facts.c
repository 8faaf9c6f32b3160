/*
** page_facts.c: writes the list "Facts for an auditor", which is read from the certificate.
** Tests: tests/report/test_report.py
*/
#include <stddef.h>

#include "report/facts.h"
#include "report/page.h"

SQLITE_EXTENSION_INIT3

/*
** The terms of the list, and the queries for their texts. Each row of a query is one text. Rows
** that are NULL are left out, and so are terms without a text.
*/
static const struct {
  const char *term, *sql;
} facts[] = {
    {"Ledger", "SELECT json_extract(document, '$.ledger.id') || ', of ' ||"
               " json_extract(document, '$.ledger.created_at') || ', format ' ||"
               " json_extract(document, '$.ledger.format') FROM certificate"},
    {"What is protected",
     "SELECT iif(json_extract(document, '$.ledger.protects') = 'row', 'each row',"
     " 'all rows of each ' || ifnull(json_extract(document, '$.ledger.unit'), 'unit')) || ', ' ||"
     " iif(json_extract(document, '$.ledger.adjacency') = 'replace', 'replaced by others',"
     " 'added or removed') FROM certificate"},
    {"Policy", "SELECT iif(json_type(document, '$.policy') = 'array', NULL,"
               " json_extract(document, '$.policy')) FROM certificate"},
    {"Tables of the policy",
     "SELECT json_extract(p.value, '$.table_name') ||"
     " CASE WHEN json_extract(p.value, '$.role') = 'public' THEN ': public, anybody may know it'"
     "  WHEN json_extract(p.value, '$.unit_column') IS NULL THEN ': each row is protected'"
     "  WHEN json_extract(p.value, '$.parent') IS NULL"
     "  THEN ': a row belongs to the one in ' || json_extract(p.value, '$.unit_column')"
     "  ELSE ': a row belongs to the one of its row in ' || json_extract(p.value, '$.parent') ||"
     "   ', by ' || json_extract(p.value, '$.unit_column') END"
     " FROM certificate, json_each(document, '$.policy') p"
     " WHERE json_type(document, '$.policy') = 'array'"},
    {"Public when read, protected now",
     "SELECT DISTINCT json_extract(r.value, '$.name') || ' read ' || t.key ||"
     " ' while that table was public: its rows are not protected in these figures'"
     " FROM certificate, json_each(document, '$.releases') r,"
     " json_each(r.value, '$.tables') t WHERE json_type(r.value, '$.tables') = 'object'"
     " AND t.value = 'public when read' ORDER BY 1"},
    {"The books", "SELECT 'dp_verify(): ' || json_extract(document, '$.verify') FROM certificate"},
    {"Accountants",
     "SELECT DISTINCT json_extract(t.value, '$.accountant') || ': ' ||"
     " json_extract(t.value, '$.theorem') FROM certificate, json_each(document, '$.tiers') t"
     " WHERE json_extract(t.value, '$.theorem') IS NOT NULL ORDER BY 1"},
    {"Mechanisms", "SELECT DISTINCT json_extract(r.value, '$.mechanism') || ': ' ||"
                   " json_extract(r.value, '$.theorem.rate') FROM certificate,"
                   " json_each(document, '$.releases') r"
                   " WHERE json_extract(r.value, '$.theorem.rate') IS NOT NULL ORDER BY 1"},
    {"Several tiers", "SELECT DISTINCT json_extract(r.value, '$.theorem.tiers') FROM certificate,"
                      " json_each(document, '$.releases') r"
                      " WHERE json_extract(r.value, '$.theorem.tiers') IS NOT NULL ORDER BY 1"},
    {"Shrunk values", "SELECT DISTINCT json_extract(r.value, '$.theorem.shrink') FROM certificate,"
                      " json_each(document, '$.releases') r"
                      " WHERE json_extract(r.value, '$.theorem.shrink') IS NOT NULL ORDER BY 1"},
    {"Private keys", "SELECT DISTINCT json_extract(r.value, '$.theorem.keys') FROM certificate,"
                     " json_each(document, '$.releases') r"
                     " WHERE json_extract(r.value, '$.theorem.keys') IS NOT NULL ORDER BY 1"},
    {"Last charge",
     "SELECT json_extract(document, '$.charges') || ' charges, the last with hash ' ||"
     " json_extract(document, '$.last_hash') FROM certificate"},
    {"Last seal", "SELECT json_extract(document, '$.last_seal') FROM certificate"},
};

void page_facts(struct page *page) {
  sqlite3_str_appendall(page->html, "<dl>\n");
  for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
    int count = 0;
    sqlite3_stmt *row = facts_prepare(page->facts, facts[i].sql, page->error);
    while (facts_row(row, page->error)) {
      if (sqlite3_column_type(row, 0) == SQLITE_NULL) continue;
      if (!count++) sqlite3_str_appendf(page->html, "<dt>%s\n", facts[i].term);
      html_put(page->html, "<dd>", facts_text(row, 0), "\n");
    }
    sqlite3_finalize(row);
  }
  sqlite3_str_appendall(page->html, "</dl>\n");
}
