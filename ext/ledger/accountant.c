/*
** accountant.c: the table of accountants.
** Tests: tests/ledger/test_filters.py
*/
#include "ledger/accountant.h"

#include <sqlite3ext.h>
#include <string.h>

SQLITE_EXTENSION_INIT3

const struct accountant *const accountants[] = {&accountant_rdp, &accountant_gdp, &accountant_pure,
                                                0};

const struct accountant *accountant_find(const char *name) {
  const struct accountant *const *at = accountants;
  while (name && *at && strcmp((*at)->name, name) != 0) at++;
  return *at;
}

char *accountant_names(void) {
  sqlite3_str *names = sqlite3_str_new(0);
  for (int i = 0; accountants[i]; i++)
    sqlite3_str_appendf(names, "%s'%s'",
                        !i                   ? ""
                        : accountants[i + 1] ? ", "
                                             : " or ",
                        accountants[i]->name);
  return sqlite3_str_finish(names);
}
