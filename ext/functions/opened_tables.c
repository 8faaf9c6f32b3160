/* opened_tables.c: see opened_tables.h. */
#include "functions/opened_tables.h"

#include <string.h>

#include "query/program.h"

SQLITE_EXTENSION_INIT3

#define MOST_ARGUMENTS 8

/* Returns the address of a virtual table, such as "vtab:55D0C2A81B48", or null if it is unknown. */
static char *address_of(sqlite3 *db, const char *name) {
  static const char zeros[] = "0,0,0,0,0,0,0,0";
  char *found = 0;
  for (int n = 0; n <= MOST_ARGUMENTS && !found; n++) {
    struct program program;
    char *sql = n ? sqlite3_mprintf("SELECT 1 FROM \"%w\"(%.*s)", name, 2 * n - 1, zeros)
                  : sqlite3_mprintf("SELECT 1 FROM \"%w\"", name);
    program_read(&program, db, sql);
    for (int i = 0; i < program.count && !found; i++)
      if (strcmp(program.list[i].name, "VOpen") == 0 && program.list[i].p4)
        found = sqlite3_mprintf("%s", program.list[i].p4);
    program_clear(&program);
    sqlite3_free(sql);
  }
  return found;
}

/*
** Appends a word and a blank to *list. When out of memory, or if `word` is null, sets *list to
** null.
*/
static void add_word(char **list, const char *word) {
  char *longer = *list && word ? sqlite3_mprintf("%s%s ", *list, word) : 0;
  sqlite3_free(*list);
  *list = longer;
}

/*
** Compiles a statement on each virtual table. In SQLite 3.34 to 3.40, the first such statement asks
** the authorizer about an UPDATE of sqlite_master, so this function must run before the guard is
** set.
*/
char *virtual_addresses(sqlite3 *db, const char *const *names, int count) {
  char *list = sqlite3_mprintf(" ");
  for (int i = 0; i < count; i++) {
    char *address = address_of(db, names[i]);
    if (address) add_word(&list, address);
    sqlite3_free(address);
  }
  return list;
}

char *root_pages(sqlite3 *db, const char *const *tables, int count, int schema) {
  sqlite3_stmt *row = 0;
  char *list = sqlite3_mprintf(schema ? " 1 " : " "); /* page 1 is sqlite_master */
  int rc = sqlite3_prepare_v2(db,
                              "SELECT tbl_name, rootpage FROM main.sqlite_master "
                              "WHERE type IN ('table', 'index') AND rootpage > 0",
                              -1, &row, 0);
  while (rc == SQLITE_OK && list && (rc = sqlite3_step(row)) == SQLITE_ROW) {
    const char *name = (const char *)sqlite3_column_text(row, 0);
    for (int i = 0; name && i < count; i++)
      if (sqlite3_stricmp(name, tables[i]) == 0)
        add_word(&list, (const char *)sqlite3_column_text(row, 1));
    rc = SQLITE_OK;
  }
  sqlite3_finalize(row);
  if (rc == SQLITE_DONE) return list;
  sqlite3_free(list);
  return 0;
}

static int has_word(const char *list, const char *word) {
  char *wanted = word ? sqlite3_mprintf(" %s ", word) : 0;
  int found = wanted && list && strstr(list, wanted) != 0;
  sqlite3_free(wanted);
  return found;
}

/*
** Returns whether an instruction opens something that SQLite makes for the statement itself: a
** temporary table, an index, a sorter or a single row.
*/
static int opens_own(const char *name) {
  static const char *const names[] = {"OpenAutoindex", "OpenDup", "OpenEphemeral", "OpenPseudo",
                                      "SorterOpen"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(name, names[i]) == 0) return 1;
  return 0;
}

#define IN_REGISTER 0x10 /* a flag in p5: the root page is in register p2 */

static int is_admitted(const struct program_instruction *here, const char *pages,
                       const char *addresses) {
  char page[16];
  if (strcmp(here->name, "OpenRead") == 0 || strcmp(here->name, "ReopenIdx") == 0) {
    sqlite3_snprintf(sizeof page, page, "%d", here->p2);
    return here->p3 == 0 && !(here->p5 & IN_REGISTER) && has_word(pages, page);
  }
  if (strcmp(here->name, "VOpen") == 0) return has_word(addresses, here->p4);
  return !strstr(here->name, "Open") && !strstr(here->name, "open") ? 1 : opens_own(here->name);
}

int opens_only(sqlite3 *db, const char *sql, const char *pages, const char *addresses) {
  struct program program;
  program_read(&program, db, sql);
  int only = program.count > 0;
  for (int i = 0; i < program.count && only; i++)
    only = is_admitted(&program.list[i], pages, addresses);
  program_clear(&program);
  return only;
}
