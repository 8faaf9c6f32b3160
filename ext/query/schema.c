/* schema.c: what the schema of main says about tables: see query.h.
** Tests: tests/ledger/test_policy.py, tests/query/test_questions.py,
** tests/functions/test_public_names.py, tests/ledger/test_within.py */
#include "query/internal.h"

#include <string.h>

#include "base/sql_text.h"
#include "noise/noise.h"

SQLITE_EXTENSION_INIT3

const char *const rowid_names[ROWID_NAMES] = {"rowid", "_rowid_", "oid"};

static const char *const affinity_types[] = {"BLOB", "TEXT", "NUM", "INT", "REAL"};
static const char *const collation_names[] = {"BINARY", "NOCASE", "RTRIM"};

const char *affinity_type(enum affinity affinity) {
  return affinity_types[affinity];
}

const char *collation_name(enum collation collation) {
  return collation_names[collation];
}

void interrupt_pass_on(sqlite3 *db) {
  if ((sqlite3_errcode(db) & 0xff) == SQLITE_INTERRUPT) sqlite3_interrupt(db);
}

/* ---- affinities and collations --------------------------------------------------------------- */

/* Applies SQLite's rules in the order of the documentation ("Determination Of Column Affinity"). */
enum affinity affinity_of(const char *type, int is_strict) {
  static const struct {
    const char *part;
    enum affinity affinity;
  } rules[] = {{"INT", AFFINITY_INTEGER}, {"CHAR", AFFINITY_TEXT}, {"CLOB", AFFINITY_TEXT},
               {"TEXT", AFFINITY_TEXT},   {"BLOB", AFFINITY_BLOB}, {"REAL", AFFINITY_REAL},
               {"FLOA", AFFINITY_REAL},   {"DOUB", AFFINITY_REAL}};
  if (!type || !*type || (is_strict && sqlite3_stricmp(type, "ANY") == 0)) return AFFINITY_BLOB;
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
    if (has_word(rules[i].part, type)) return rules[i].affinity;
  return AFFINITY_NUMERIC;
}

/* Returns the number of a collation, or -1 if the collation is not one of SQLite's own. */
static int collation_of(const char *name) {
  for (int i = 0; i < 3; i++)
    if (!name || sqlite3_stricmp(name, collation_names[i]) == 0) return i;
  return -1;
}

/* ---- reading the schema ---------------------------------------------------------------------- */

static const char *text_of(sqlite3_stmt *row, int column) {
  const char *text = (const char *)sqlite3_column_text(row, column);
  return text ? text : "";
}

/* Reports that the schema cannot be read. Always returns 0. Callers that pass over a table tell
** lack of memory from a table that is not there. */
static int unreadable(sqlite3 *db, int rc, struct error *error) {
  if (rc == SQLITE_NOMEM || rc == SQLITE_IOERR_NOMEM) return error_set_memory(error);
  return error_set(error, "cannot read the schema: %s", sqlite3_errmsg(db));
}

int schema_prepare(sqlite3 *db, sqlite3_stmt **row, int columns, const char *format,
                   const char *name, struct error *error) {
  char *sql = sqlite3_mprintf(format, name);
  int going = 1;
  *row = 0;
  if (!sql) return error_set_memory(error);
  int rc = sqlite3_prepare_v2(db, sql, -1, row, 0);
  if (rc != SQLITE_OK) {
    going = unreadable(db, rc, error);
  } else if (sqlite3_column_count(*row) < columns) {
    going =
        error_set(error, "an authorizer of the host hides the schema (let the extension read it)");
  }
  sqlite3_free(sql);
  return going;
}

int schema_finish(sqlite3 *db, sqlite3_stmt *row, int going, struct error *error) {
  int rc = sqlite3_finalize(row);
  return rc == SQLITE_OK || !going ? going : unreadable(db, rc, error);
}

int schema_text(sqlite3 *db, const char *type, const char *name, char **sql, struct error *error) {
  sqlite3_stmt *row;
  int going =
      schema_prepare(db, &row, 3, "SELECT type, name, sql FROM main.sqlite_master", "", error);
  *sql = 0;
  while (going && !*sql && sqlite3_step(row) == SQLITE_ROW) {
    if (strcmp(text_of(row, 0), type) != 0 || sqlite3_stricmp(text_of(row, 1), name) != 0) continue;
    *sql = sqlite3_mprintf("%s", text_of(row, 2));
    if (!*sql) going = error_set_memory(error);
  }
  return schema_finish(db, row, going, error);
}

/* Returns whether SQLite or this extension uses the table for its own records. */
static int is_reserved(const char *name) {
  return sqlite3_strnicmp(name, "sqlite_", 7) == 0 || sqlite3_stricmp(name, "dp_ledger_id") == 0;
}

/* Reads the entry of the table in the schema. */
static int read_entry(struct table_facts *facts, sqlite3 *db, const char *table,
                      struct error *error) {
  sqlite3_stmt *row;
  const char *type = 0;
  int going =
      schema_prepare(db, &row, 3, "SELECT type, name, rootpage FROM main.sqlite_master", "", error);
  while (going && !facts->name && sqlite3_step(row) == SQLITE_ROW) {
    const char *is = text_of(row, 0), *name = text_of(row, 1);
    if (sqlite3_stricmp(name, table) != 0 || (strcmp(is, "table") != 0 && strcmp(is, "view") != 0))
      continue;
    facts->name = sqlite3_mprintf("%s", name);
    facts->root = sqlite3_column_int(row, 2);
    type = strcmp(is, "view") == 0 ? "a view" : facts->root ? 0 : "a virtual table";
    if (!facts->name) going = error_set_memory(error);
  }
  going = schema_finish(db, row, going, error);
  if (!going) return 0;
  facts->is_unfit = !facts->name || is_reserved(facts->name) || type;
  if (!facts->name)
    return error_set(error,
                     "main has no such table: '%s' (if it was renamed, declare it under its new "
                     "name)",
                     table);
  if (is_reserved(facts->name))
    return error_set(error, "'%s' is no table for questions", facts->name);
  if (type)
    return error_set(error,
                     "'%s' is %s (declare the tables that it reads; where it has the name of a "
                     "declared table that was renamed, give it another one)",
                     facts->name, type);
  return 1;
}

static int add_column(struct table_facts *facts, sqlite3 *db, sqlite3_stmt *row,
                      struct error *error) {
  struct table_column *grown =
      sqlite3_realloc64(facts->columns, sizeof *grown * (sqlite3_uint64)(facts->count + 1));
  if (!grown) return error_set_memory(error);
  facts->columns = grown;
  struct table_column *column = &grown[facts->count++];
  *column = (struct table_column){.name = sqlite3_mprintf("%s", text_of(row, 1)),
                                  .type = sqlite3_mprintf("%s", text_of(row, 2))};
  if (!column->name || !column->type) return error_set_memory(error);
  column->affinity = affinity_of(column->type, facts->is_strict);
  column->is_virtual = sqlite3_column_int(row, 6) == 2;
  const char *collation = 0;
  if (sqlite3_table_column_metadata(db, "main", facts->name, column->name, 0, &collation, 0, 0,
                                    0) != SQLITE_OK)
    return error_set(error, "cannot read the schema: %s", sqlite3_errmsg(db));
  int known = collation_of(collation);
  facts->is_unfit = known < 0;
  if (known < 0)
    return error_set(
        error,
        "column '%s' of table '%s' has the collation '%s', which a question cannot use "
        "(BINARY, NOCASE and RTRIM it can)",
        column->name, facts->name, collation);
  column->collation = (enum collation)known;
  int place = sqlite3_column_int(row, 5);
  if (!place) return 1;
  int *key = sqlite3_realloc64(facts->key, sizeof *key * (sqlite3_uint64)(facts->count + place));
  if (!key) return error_set_memory(error);
  facts->key = key;
  key[place - 1] = facts->count - 1;
  if (place > facts->key_count) facts->key_count = place;
  return 1;
}

/* Returns whether a table is STRICT. SQLite has STRICT tables since version 3.37. */
static int is_strict_table(sqlite3 *db, const char *name) {
  sqlite3_stmt *row = 0;
  int strict = 0;
  char *sql = sqlite3_mprintf("PRAGMA main.table_list(\"%w\")", name);
  if (sql && sqlite3_prepare_v2(db, sql, -1, &row, 0) == SQLITE_OK &&
      sqlite3_column_count(row) >= 6 && sqlite3_step(row) == SQLITE_ROW)
    strict = sqlite3_column_int(row, 5);
  if (sqlite3_finalize(row) != SQLITE_OK || !row) interrupt_pass_on(db);
  sqlite3_free(sql);
  return strict;
}

static int read_columns(struct table_facts *facts, sqlite3 *db, struct error *error) {
  sqlite3_stmt *row;
  facts->is_strict = is_strict_table(db, facts->name);
  int going = schema_prepare(db, &row, 7, "PRAGMA main.table_xinfo(\"%w\")", facts->name, error);
  while (going && sqlite3_step(row) == SQLITE_ROW) going = add_column(facts, db, row, error);
  going = schema_finish(db, row, going, error);
  if (going && !facts->count)
    going = error_set(error, "cannot read the schema of '%s'", facts->name);
  return going;
}

/* Returns the only column of an index and sets its collation. Returns -1 if the index has several
** columns or an expression. */
static int single_column(const struct table_facts *facts, sqlite3 *db, const char *index,
                         int *collation, struct error *error) {
  sqlite3_stmt *row;
  int column = -1, count = 0;
  int going = schema_prepare(db, &row, 6, "PRAGMA main.index_xinfo(\"%w\")", index, error);
  while (going && sqlite3_step(row) == SQLITE_ROW) {
    if (!sqlite3_column_int(row, 5)) continue; /* skip a column that is not part of the key */
    count++;
    column = sqlite3_column_int(row, 1);
    *collation = collation_of(text_of(row, 4));
  }
  schema_finish(db, row, going, error);
  return count == 1 && column >= 0 && column < facts->count && *collation >= 0 ? column : -1;
}

/* Returns whether the schema has an entry for an index. The primary key of a WITHOUT ROWID table
** has no entry. */
static int has_entry(sqlite3 *db, const char *index, struct error *error) {
  sqlite3_stmt *row;
  int found = 0;
  int going = schema_prepare(db, &row, 2, "SELECT type, name FROM main.sqlite_master", "", error);
  while (going && !found && sqlite3_step(row) == SQLITE_ROW)
    found = strcmp(text_of(row, 0), "index") == 0 && strcmp(text_of(row, 1), index) == 0;
  schema_finish(db, row, going, error);
  return found;
}

/* Finds the column to which a link may refer. This is the primary key if it has one column, or else
** the only UNIQUE column. */
static int read_indices(struct table_facts *facts, sqlite3 *db, struct error *error) {
  sqlite3_stmt *row;
  int candidates = 0, has_key_index = 0;
  int going = schema_prepare(db, &row, 5, "PRAGMA main.index_list(\"%w\")", facts->name, error);
  facts->unique = facts->rowid_alias = -1;
  while (going && sqlite3_step(row) == SQLITE_ROW) {
    int collation = -1, is_key = strcmp(text_of(row, 3), "pk") == 0;
    /* Skip an index that is partial or not unique. */
    if (!sqlite3_column_int(row, 2) || sqlite3_column_int(row, 4)) continue;
    int column = single_column(facts, db, text_of(row, 1), &collation, error);
    going = !error_is_set(error);
    if (going && is_key) facts->without_rowid = !has_entry(db, text_of(row, 1), error);
    going = !error_is_set(error);
    if (is_key) has_key_index = 1;
    if (!going || column < 0 || (is_key && facts->key_count != 1)) continue;
    /* Under another collation, the column could have two values for one unit, or one for two. */
    if (collation != (int)facts->columns[column].collation) continue;
    facts->columns[column].is_unique = 1;
    if (is_key || (candidates == 0 && facts->key_count != 1)) {
      facts->unique = column;
      facts->unique_collation = (enum collation)collation;
    }
    if (is_key) {
      candidates = -1000000;
    } else {
      candidates++;
    }
  }
  going = schema_finish(db, row, going, error);
  if (candidates > 1) facts->unique = -1; /* the choice would be ambiguous */
  if (facts->key_count == 1 && !has_key_index) {
    facts->rowid_alias = facts->unique = facts->key[0];
    facts->columns[facts->unique].is_unique = 1;
    facts->unique_collation = COLLATION_BINARY;
  }
  return going;
}

int table_column_find(const struct table_facts *facts, const char *column) {
  for (int i = 0; i < facts->count; i++)
    if (sqlite3_stricmp(facts->columns[i].name, column) == 0) return i;
  return -1;
}

int table_facts_read(struct table_facts *facts, sqlite3 *db, const char *table,
                     struct error *error) {
  *facts = (struct table_facts){.unique = -1, .rowid_alias = -1};
  int going = read_entry(facts, db, table, error);
  if (going) going = read_columns(facts, db, error);
  if (going) going = read_indices(facts, db, error);
  for (int i = 0; going && i < ROWID_NAMES && !facts->rowid && !facts->without_rowid; i++)
    if (table_column_find(facts, rowid_names[i]) < 0) facts->rowid = rowid_names[i];
  facts->is_unfit |= going && !facts->without_rowid && !facts->rowid;
  if (going && facts->is_unfit)
    going = error_set(error, "table '%s' has columns named rowid, _rowid_ and oid (rename one)",
                      facts->name);
  return going;
}

int table_facts_find(struct table_facts *facts, sqlite3 *db, const char *table,
                     struct error *error) {
  struct error reason = {0};
  int found = table_facts_read(facts, db, table, &reason);
  if (!found && !facts->is_unfit) {
    found = -1;
    error_restore(error, error_take(&reason));
  }
  error_clear(&reason);
  return found;
}

void table_facts_clear(struct table_facts *facts) {
  for (int i = 0; i < facts->count; i++) {
    sqlite3_free(facts->columns[i].name);
    sqlite3_free(facts->columns[i].type);
  }
  sqlite3_free(facts->columns);
  sqlite3_free(facts->key);
  sqlite3_free(facts->name);
  *facts = (struct table_facts){.unique = -1, .rowid_alias = -1};
}

/* ---- definitions ----------------------------------------------------------------------------- */

/* Appends the type of a column. A type with the word HIDDEN would hide the column of a virtual
** table, so a type of the same affinity takes its place. */
static void append_type(sqlite3_str *sql, const struct table_column *column) {
  if (sqlite3_strlike("%hidden%", column->type, 0) == 0) {
    sqlite3_str_appendf(sql, " %s", affinity_type(column->affinity));
  } else if (*column->type) {
    sqlite3_str_appendf(sql, " \"%w\"", column->type);
  }
}

/* A key is unique under the collations of its index, which may differ from those of its columns.
** SQLite relies on a key that is declared here, for example to leave out DISTINCT. Under BINARY,
** every key is unique. */
char *table_definition(const struct table_facts *facts) {
  sqlite3_str *sql = sqlite3_str_new(0);
  sqlite3_str_appendall(sql, "CREATE TABLE x(");
  for (int i = 0; i < facts->count; i++) {
    sqlite3_str_appendf(sql, "%s\"%w\"", i ? ", " : "", facts->columns[i].name);
    append_type(sql, &facts->columns[i]);
    sqlite3_str_appendf(sql, " COLLATE %s", collation_name(facts->columns[i].collation));
  }
  for (int i = 0; i < facts->key_count; i++)
    sqlite3_str_appendf(sql, "%s\"%w\" COLLATE BINARY", i ? ", " : ", PRIMARY KEY (",
                        facts->columns[facts->key[i]].name);
  sqlite3_str_appendall(sql, facts->key_count ? "))" : ")");
  if (facts->without_rowid) sqlite3_str_appendall(sql, " WITHOUT ROWID");
  if (facts->is_strict) sqlite3_str_appendall(sql, facts->without_rowid ? ", STRICT" : " STRICT");
  return sqlite3_str_finish(sql);
}

/* ---- marks of public tables (M1) ------------------------------------------------------------- */

/* Sets *found to whether a table has a mark. The schema of the file decides, because the caller's
** read transaction keeps it. */
static int find_mark(sqlite3 *db, const char *table, const char *mark, int *found,
                     struct error *error) {
  sqlite3_stmt *row;
  int going = schema_prepare(db, &row, 2,
                             "SELECT name, tbl_name FROM main.sqlite_master WHERE type = 'trigger'",
                             "", error);
  *found = 0;
  while (going && !*found && sqlite3_step(row) == SQLITE_ROW)
    *found = strcmp(text_of(row, 0), mark) == 0 && sqlite3_stricmp(text_of(row, 1), table) == 0;
  return schema_finish(db, row, going, error);
}

/* Checks M1 for a table whose facts and definition were read. */
static int check_mark(sqlite3 *db, const struct table_facts *facts, const char *definition,
                      const struct ledger_declaration *declaration, struct error *error) {
  int found;
  if (!find_mark(db, facts->name, declaration->mark, &found, error)) return 0;
  if (!found)
    /* Advice: A mark goes with its table when it is renamed, dumped or restored. A table that was
       made anew has none. */
    return error_set(error,
                     "'%s' is the name of a public table that has come to another table, which is "
                     "not public (if its rows tell nothing about anybody, dp_public('%s') again)",
                     facts->name, facts->name);
  return strcmp(definition, declaration->definition) == 0 ||
         error_set(error,
                   "public table '%s' has other columns than those that were declared, so it is "
                   "not public any more (if they tell nothing about anybody, dp_public('%s') "
                   "again)",
                   facts->name, facts->name);
}

int public_table_read(struct table_facts *facts, sqlite3 *db,
                      const struct ledger_declaration *declaration, struct error *error) {
  if (!table_facts_read(facts, db, declaration->table, error)) return 0;
  char *definition = table_definition(facts);
  int going =
      definition ? check_mark(db, facts, definition, declaration, error) : error_set_memory(error);
  sqlite3_free(definition);
  return going;
}

/* Writes a new mark. An authorizer of the host may ignore the statement without an error. */
static int write_new(struct ledger_declaration *declaration, sqlite3 *db, const char *table,
                     struct error *error) {
  sqlite3_uint64 number;
  int found = 0;
  if (!entropy_fill(&number, sizeof number))
    return error_set(error, "the system gave no random bytes");
  declaration->mark = sqlite3_mprintf("dp_public_%016llx", number);
  char *sql = sqlite3_mprintf("CREATE TRIGGER main.\"%w\" AFTER DELETE ON \"%w\" WHEN 0"
                              " BEGIN SELECT 0; END",
                              declaration->mark, table);
  int rc = declaration->mark && sql ? sqlite3_exec(db, sql, 0, 0, 0) : SQLITE_NOMEM;
  sqlite3_free(sql);
  if (rc == SQLITE_NOMEM) return error_set_memory(error);
  if (rc != SQLITE_OK)
    return error_set(error, "cannot mark table '%s' with a trigger: %s", table, sqlite3_errmsg(db));
  return find_mark(db, table, declaration->mark, &found, error) &&
         (found || error_set(error,
                             "cannot mark table '%s' with a trigger: an authorizer of the host "
                             "ignores it",
                             table));
}

int public_mark_write(struct ledger_declaration *declaration, sqlite3 *db,
                      const struct table_facts *facts, const struct ledger_declaration *stored,
                      struct error *error) {
  struct error reason = {0};
  declaration->definition = table_definition(facts);
  if (!declaration->definition) return error_set_memory(error);
  int holds = stored && check_mark(db, facts, declaration->definition, stored, &reason);
  error_clear(&reason); /* what prevents reading the schema will also prevent writing a mark */
  if (!holds) return write_new(declaration, db, facts->name, error);
  declaration->mark = sqlite3_mprintf("%s", stored->mark);
  return declaration->mark ? 1 : error_set_memory(error);
}

void public_mark_drop(sqlite3 *db, const char *mark) {
  char *sql = sqlite3_mprintf("DROP TRIGGER IF EXISTS main.\"%w\"", mark);
  if (sql) sqlite3_exec(db, sql, 0, 0, 0);
  sqlite3_free(sql);
}

/* ---- routes ---------------------------------------------------------------------------------- */

/* Adds one table to the route. Sets *next to the declaration of its parent, or null. */
static int add_table(struct route *route, sqlite3 *db, const struct ledger_policy *policy,
                     const struct ledger_declaration *declaration,
                     const struct ledger_declaration **next, struct error *error) {
  *next = 0;
  if (route->count == ROUTE_MOST)
    return error_set(error, "the links of table '%s' are a cycle or longer than %d",
                     route->tables[0].name, ROUTE_MOST);
  struct table_facts *facts = &route->tables[route->count++];
  int going = table_facts_read(facts, db, declaration->table, error);
  if (!going) return 0;
  if (route->count > 1 && facts->unique < 0)
    return error_set(error,
                     "table '%s' has no key that one column of '%s' can refer to (a primary key "
                     "of one column, or else just one UNIQUE column)",
                     facts->name, route->tables[route->count - 2].name);
  int column = declaration->unit_column ? table_column_find(facts, declaration->unit_column) : -1;
  if (declaration->unit_column && column < 0)
    return error_set(error,
                     "table '%s' has no column '%s' (if the declared column was renamed, declare "
                     "the table again: dp_protect('%s', 'its new name'%s))",
                     facts->name, declaration->unit_column, facts->name,
                     declaration->parent ? ", 'its parent'" : "");
  if (column >= 0 && facts->columns[column].is_virtual)
    return error_set(error,
                     "column '%s' of table '%s' is generated when it is read (make it STORED)",
                     facts->columns[column].name, facts->name);
  if (!declaration->parent) {
    route->unit = column;
    return 1;
  }
  route->links[route->count - 1] = column;
  *next = ledger_policy_find(policy, declaration->parent);
  if (!*next || (*next)->role != POLICY_PROTECTED)
    return error_set(error, "parent '%s' is not protected yet (protect it first)",
                     declaration->parent);
  return 1;
}

int route_find(struct route *route, sqlite3 *db, const struct ledger_policy *policy,
               const struct ledger_declaration *declaration, struct error *error) {
  const struct ledger_declaration *next = declaration;
  int going = 1;
  *route = (struct route){.unit = -1};
  while (next && going) going = add_table(route, db, policy, next, &next, error);
  return going;
}

void route_clear(struct route *route) {
  for (int i = 0; i < route->count; i++) table_facts_clear(&route->tables[i]);
  route->count = 0;
}

/* Two rows have different links if the column is unique. Their links then lead to different rows if
** links and keys compare alike. */
int route_is_single(const struct route *route) {
  const struct table_facts *last = &route->tables[route->count - 1];
  int single = route->unit >= 0 && last->columns[route->unit].is_unique;
  for (int i = 0; i + 1 < route->count && single; i++) {
    const struct table_facts *parent = &route->tables[i + 1];
    const struct table_column *link = &route->tables[i].columns[route->links[i]];
    single = link->is_unique && link->affinity == parent->columns[parent->unique].affinity &&
             link->collation == parent->unique_collation;
  }
  return single;
}

/* CROSS JOIN keeps the order of the tables. The unary plus removes the affinity of the linking
** column. The comparison then uses the affinity of the parent's key, which is also the affinity
** under which SQLite keeps the key unique. */
static void append_join(sqlite3_str *sql, const struct route *route, int i) {
  const struct table_facts *parent = &route->tables[i], *child = &route->tables[i - 1];
  sqlite3_str_appendf(sql, " CROSS JOIN main.\"%w\" AS t%d ON t%d.\"%w\" COLLATE %s = +t%d.\"%w\"",
                      parent->name, i, i, parent->columns[parent->unique].name,
                      collation_names[parent->unique_collation], i - 1,
                      child->columns[route->links[i - 1]].name);
}

void route_append_from(sqlite3_str *sql, const struct route *route) {
  sqlite3_str_appendf(sql, " FROM main.\"%w\" AS t0 NOT INDEXED", route->tables[0].name);
  for (int i = 1; i < route->count; i++) append_join(sql, route, i);
}

void route_append_parents(sqlite3_str *sql, const struct route *route) {
  sqlite3_str_appendf(sql, " FROM main.\"%w\" AS t1", route->tables[1].name);
  for (int i = 2; i < route->count; i++) append_join(sql, route, i);
}

void route_append_lookup(sqlite3_str *sql, const struct route *route) {
  const struct table_facts *parent = &route->tables[1];
  route_append_parents(sql, route);
  sqlite3_str_appendf(sql, " WHERE t1.\"%w\" COLLATE %s = ?1", parent->columns[parent->unique].name,
                      collation_names[parent->unique_collation]);
}

void route_append_unit(sqlite3_str *sql, const struct route *route) {
  const struct table_facts *last = &route->tables[route->count - 1];
  int at = route->count - 1;
  if (route->unit >= 0) {
    sqlite3_str_appendf(sql, "t%d.\"%w\"", at, last->columns[route->unit].name);
  } else if (last->rowid) {
    sqlite3_str_appendf(sql, "t%d.%s", at, last->rowid);
  } else {
    sqlite3_str_appendall(sql, "NULL"); /* in a WITHOUT ROWID table, question.c numbers the rows */
  }
}
