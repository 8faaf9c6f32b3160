/* foreign_keys.c: compares the declarations of a policy with the foreign keys that the schema
** declares, and lists the declarations that follow from these.
**
** A table is of units if the policy protects it, if its name is the word that dp_init() got for a
** unit (or this word with an s), or if a foreign key leads from it to such a table.
** Tests: tests/query/test_foreign_keys.py */
#include <string.h>

#include "base/sql_functions.h"
#include "query/internal.h"

SQLITE_EXTENSION_INIT3

#define MOST_STEPS ROUTE_MOST /* tables on the way from a table to its units */

/* A foreign key that refers to another table. */
struct foreign_key {
  char *of;     /* the table that has it */
  char *column; /* null if the key has several columns */
  char *table;  /* the table that it refers to */
  char *key;    /* the column of that table, or null for its primary key */
  int number;   /* SQLite's number of the key */
};

/* The foreign keys of all tables of main. */
struct foreign_keys {
  struct foreign_key *list;
  int count;
};

static void keys_clear(struct foreign_keys *keys) {
  for (int i = 0; i < keys->count; i++) {
    sqlite3_free(keys->list[i].of);
    sqlite3_free(keys->list[i].column);
    sqlite3_free(keys->list[i].table);
    sqlite3_free(keys->list[i].key);
  }
  sqlite3_free(keys->list);
}

static int is_same(const char *one, const char *other) {
  return sqlite3_stricmp(one, other) == 0;
}

static char *copy_of(sqlite3_stmt *row, int column) {
  const char *text = (const char *)sqlite3_column_text(row, column);
  return text ? sqlite3_mprintf("%s", text) : 0;
}

/* Adds a row of PRAGMA foreign_key_list: a key of a table, or a further column of the last key. */
static int add_key(struct foreign_keys *keys, const char *of, sqlite3_stmt *row,
                   struct error *error) {
  struct foreign_key *last = keys->count ? &keys->list[keys->count - 1] : 0;
  const char *table = (const char *)sqlite3_column_text(row, 2);
  int number = sqlite3_column_int(row, 0);
  if (table && is_same(table, of)) return 1;
  if (last && last->number == number && is_same(last->of, of)) {
    sqlite3_free(last->column);
    last->column = 0;
    return 1;
  }
  struct foreign_key *grown =
      sqlite3_realloc64(keys->list, sizeof *grown * ((sqlite3_uint64)keys->count + 1));
  if (!grown) return error_set_memory(error);
  keys->list = grown;
  struct foreign_key *key = &grown[keys->count++];
  *key = (struct foreign_key){sqlite3_mprintf("%s", of), copy_of(row, 3), copy_of(row, 2),
                              copy_of(row, 4), number};
  int names_key = sqlite3_column_type(row, 4) != SQLITE_NULL;
  return (key->of && key->column && key->table && (key->key || !names_key)) ||
         error_set_memory(error);
}

static int keys_read(struct foreign_keys *keys, sqlite3 *db, struct error *error) {
  sqlite3_stmt *table, *row;
  *keys = (struct foreign_keys){0};
  int going = schema_prepare(db, &table, 1,
                             "SELECT name FROM main.sqlite_master WHERE type = 'table'", "", error);
  while (going && sqlite3_step(table) == SQLITE_ROW) {
    const char *name = (const char *)sqlite3_column_text(table, 0);
    if (!name) going = error_set_memory(error);
    if (!name) break;
    going = schema_prepare(db, &row, 5, "PRAGMA main.foreign_key_list(\"%w\")", name, error);
    while (going && sqlite3_step(row) == SQLITE_ROW) going = add_key(keys, name, row, error);
    going = schema_finish(db, row, going, error);
  }
  return schema_finish(db, table, going, error);
}

/* Returns the foreign key of a column, which may be null, or null. */
static const struct foreign_key *key_of(const struct foreign_keys *keys, const char *table,
                                        const char *column) {
  for (int i = 0; column && i < keys->count; i++) {
    const struct foreign_key *key = &keys->list[i];
    if (key->column && is_same(key->column, column) && is_same(key->of, table)) return key;
  }
  return 0;
}

/* ---- tables of units ------------------------------------------------------------------------- */

/* What a check compares. */
struct check {
  sqlite3 *db;
  const struct foreign_keys *keys;
  const struct ledger_policy *policy;
  const struct ledger_declaration *asked; /* counts as if the policy had it already */
  const char *unit;
  const char *seen[MOST_STEPS]; /* the tables on the way */
  int steps;
  struct error *error;
};

static const struct ledger_declaration *declared(const struct check *check, const char *table) {
  return is_same(check->asked->table, table) ? check->asked
                                             : ledger_policy_find(check->policy, table);
}

/* Returns whether a table has the name of a unit: 'member' or 'members'. */
static int is_named(const struct check *check, const char *table) {
  size_t length = check->unit ? strlen(check->unit) : 0;
  return length && sqlite3_strnicmp(table, check->unit, (int)length) == 0 &&
         (!table[length] || is_same(table + length, "s"));
}

static int is_of_units(struct check *check, const char *table) {
  const struct foreign_keys *keys = check->keys;
  for (int i = 0; i < check->steps; i++)
    if (is_same(check->seen[i], table)) return 0;
  const struct ledger_declaration *declaration = declared(check, table);
  if (declaration && declaration->role == POLICY_PUBLIC) return 0;
  if (declaration || is_named(check, table)) return 1;
  if (check->steps == MOST_STEPS) return 0;
  int found = 0;
  check->seen[check->steps++] = table;
  for (int i = 0; i < keys->count && !found; i++)
    found = is_same(keys->list[i].of, table) && is_of_units(check, keys->list[i].table);
  check->steps--;
  return found;
}

/* Returns whether the links of a protected table lead to the table that is checked. Such a table
** does not say whose row this is: it is the other way round. */
static int leads_back(const struct check *check, const char *from, const char *to) {
  const struct foreign_key *key = 0;
  int found = 0;
  for (int i = 0; i < MOST_STEPS && !found && (i == 0 || key); i++) {
    const char *at = key ? key->table : from;
    const struct ledger_declaration *declaration = declared(check, at);
    key = declaration ? key_of(check->keys, at, declaration->unit_column) : 0;
    found = key && is_same(key->table, to);
  }
  return found;
}

/* ---- one declaration ------------------------------------------------------------------------- */

/* Checks a column that refers to a table, as the unit or as the link to the unit. */
static int check_column(struct check *check, const struct ledger_declaration *of,
                        const struct foreign_key *key) {
  const struct ledger_declaration *other = declared(check, key->table);
  struct error *error = check->error;
  if (of->parent && !is_same(of->parent, key->table))
    return error_set(error,
                     "column '%s' of table '%s' refers to '%s', not to '%s' (dp_protect(%Q, %Q, "
                     "%Q))",
                     key->column, of->table, key->table, of->parent, of->table, key->column,
                     key->table);
  struct table_facts facts;
  int found = table_facts_find(&facts, check->db, key->table, error); /* 0: it says nothing */
  int is_there = found > 0 && facts.unique >= 0, going = found >= 0;
  const char *target = key->key ? key->key : is_there ? facts.columns[facts.unique].name : "";
  if (of->parent && is_there && !is_same(target, facts.columns[facts.unique].name)) {
    going = error_set(
        error, "column '%s' of table '%s' refers to %s.%s, but a link needs the key %s.%s",
        key->column, of->table, facts.name, target, facts.name, facts.columns[facts.unique].name);
  } else if (!of->parent && other && other->role == POLICY_PROTECTED &&
             (other->parent || !other->unit_column || !is_same(other->unit_column, target))) {
    going = error_set(error,
                      "column '%s' of table '%s' is no unit, because it refers to table '%s', "
                      "whose rows belong to units (dp_protect(%Q, %Q, %Q))",
                      key->column, of->table, key->table, of->table, key->column, key->table);
  } else if (going && !of->parent && !other && !is_named(check, key->table)) {
    going = !is_of_units(check, key->table) ||
            error_set(error,
                      "column '%s' of table '%s' is no unit, because it refers to table '%s', from "
                      "which a foreign key leads to units (protect that table first, then "
                      "dp_protect(%Q, %Q, %Q))",
                      key->column, of->table, key->table, of->table, key->column, key->table);
  }
  table_facts_clear(&facts);
  return going;
}

/* Returns 1 if a column alone is the key of its table, so that each row would be a unit, 0 if not,
** and -1 after an error. */
static int is_key(const struct check *check, const struct ledger_declaration *of) {
  struct table_facts facts;
  int found = table_facts_find(&facts, check->db, of->table, check->error);
  int column = found > 0 ? table_column_find(&facts, of->unit_column) : -1;
  if (found > 0)
    found = column >= 0 && (column == facts.unique || column == facts.rowid_alias ||
                            (facts.key_count == 1 && facts.key[0] == column));
  table_facts_clear(&facts);
  return found;
}

/* Refuses a declaration because a foreign key leads to a table of units. */
static int refuse(const struct check *check, const struct ledger_declaration *of,
                  const struct foreign_key *key) {
  const struct ledger_declaration *other = declared(check, key->table);
  int is_link = key->column && other, is_unit = key->column && is_named(check, key->table);
  char *fits = is_link
                   ? sqlite3_mprintf("dp_protect(%Q, %Q, %Q)", of->table, key->column, key->table)
               : is_unit ? sqlite3_mprintf("dp_protect(%Q, %Q)", of->table, key->column)
                         : sqlite3_mprintf("protect '%s' first, then '%s'", key->table, of->table);
  int is_public = of->role == POLICY_PUBLIC;
  if (is_public) {
    error_set(check->error,
              "table '%s' cannot be public, because it refers to table '%s', whose rows belong to "
              "units (%s)",
              of->table, key->table, fits ? fits : "");
  } else {
    error_set(check->error,
              "column '%s' is the key of table '%s', so that each row would be a unit, but the "
              "table refers to '%s', whose rows belong to units (%s)",
              of->unit_column, of->table, key->table, fits ? fits : "");
  }
  sqlite3_free(fits);
  return 0;
}

/* Checks that no unit column refers to a public table: its rows would be the units. */
static int check_not_public(const struct check *check, const struct ledger_declaration *of,
                            const struct foreign_key *own) {
  const struct ledger_declaration *other = declared(check, own->table);
  return of->parent || !other || other->role != POLICY_PUBLIC ||
         error_set(check->error,
                   "table '%s' cannot be public, because column '%s' of table '%s' names units and "
                   "refers to it (protect it instead%s)",
                   own->table, own->column, of->table,
                   check->asked == of ? "; first dp_undeclare it" : "");
}

static int check_one(struct check *check, const struct ledger_declaration *of) {
  const struct foreign_keys *keys = check->keys;
  const struct foreign_key *own = key_of(keys, of->table, of->unit_column);
  if (of->role == POLICY_PUBLIC && is_named(check, of->table))
    return error_set(
        check->error,
        "table '%s' cannot be public, because each of its rows is a unit (protect it instead)",
        of->table);
  if (of->role == POLICY_PROTECTED && own)
    return check_not_public(check, of, own) && check_column(check, of, own);
  if (of->role == POLICY_PROTECTED) {
    int is_unit = of->unit_column && !of->parent ? is_key(check, of) : 0;
    if (is_unit <= 0) return is_unit == 0;
  }
  check->seen[0] = of->table;
  check->steps = 1;
  for (int i = 0; i < keys->count; i++) {
    const struct foreign_key *key = &keys->list[i];
    if (!is_same(key->of, of->table) || !is_of_units(check, key->table)) continue;
    if (of->role != POLICY_PROTECTED || !leads_back(check, key->table, of->table))
      return refuse(check, of, key);
  }
  return 1;
}

static int refers(const struct foreign_keys *keys, const char *from, const char *to) {
  int found = 0;
  for (int i = 0; i < keys->count; i++)
    found |= is_same(keys->list[i].of, from) && is_same(keys->list[i].table, to);
  return found;
}

int foreign_keys_check(sqlite3 *db, const struct ledger_policy *policy,
                       const struct ledger_declaration *asked, const char *unit,
                       struct error *error) {
  struct foreign_keys keys;
  struct check check = {
      .db = db, .keys = &keys, .policy = policy, .asked = asked, .unit = unit, .error = error};
  int going = keys_read(&keys, db, error) && check_one(&check, asked);
  for (int i = 0; i < policy->count && going; i++) {
    const struct ledger_declaration *other = &policy->list[i];
    if (is_same(other->table, asked->table) || !refers(&keys, other->table, asked->table)) continue;
    struct error reason = {0};
    check.error = &reason;
    check.steps = 0;
    if (!check_one(&check, other))
      going = asked->role == POLICY_PUBLIC ? error_set(error, "%s", error_text(&reason))
                                           : error_set(error, "%s; first dp_undeclare(%Q)",
                                                       error_text(&reason), other->table);
    error_clear(&reason);
  }
  keys_clear(&keys);
  return going;
}

/* ---- a plan ---------------------------------------------------------------------------------- */

/* The tables of main, and how many foreign keys lead from each to the units. */
struct planned {
  struct foreign_keys keys;
  struct table_facts *tables;
  int *distances; /* -1: none */
  int count;
};

/* Reads all tables that can be declared. */
static int planned_read(struct planned *planned, sqlite3 *db, struct error *error) {
  sqlite3_stmt *row = 0;
  int going = keys_read(&planned->keys, db, error) &&
              schema_prepare(db, &row, 1,
                             "SELECT name FROM main.sqlite_master WHERE type = 'table'"
                             " ORDER BY name",
                             "", error);
  while (going && sqlite3_step(row) == SQLITE_ROW) {
    sqlite3_uint64 room = (sqlite3_uint64)planned->count + 1;
    struct table_facts *tables = sqlite3_realloc64(planned->tables, room * sizeof *tables);
    if (tables) planned->tables = tables;
    int *distances = sqlite3_realloc64(planned->distances, room * sizeof *distances);
    if (distances) planned->distances = distances;
    const char *name = (const char *)sqlite3_column_text(row, 0);
    going = tables && distances && name ? 1 : error_set_memory(error);
    if (!going) break;
    struct error no_table = {0}; /* a virtual table, or one of SQLite's own */
    struct table_facts *facts = &tables[planned->count];
    distances[planned->count] = -1;
    if (table_facts_read(facts, db, name, &no_table)) {
      planned->count++;
    } else {
      table_facts_clear(facts);
      going = !error_is_memory(&no_table) || error_set_memory(error);
    }
    error_clear(&no_table);
  }
  return schema_finish(db, row, going, error);
}

static int planned_find(const struct planned *planned, const char *table) {
  int i = 0;
  while (i < planned->count && !is_same(planned->tables[i].name, table)) i++;
  return i < planned->count ? i : -1;
}

/* Adds a row of the plan, and frees both texts. Without a declaration, the owner decides. */
static int add_row(struct row_list *rows, const char *table, char *declaration, char *note,
                   struct error *error) {
  int added = note ? row_text(rows, table) && row_text(rows, declaration) && row_text(rows, note)
                   : error_set_memory(error);
  sqlite3_free(declaration);
  sqlite3_free(note);
  return added;
}

/* Adds the declaration of a table whose foreign key refers to a planned table. */
static int add_link(struct row_list *rows, const struct planned *planned, int table, int parent,
                    const struct foreign_key *key, int choices, struct error *error) {
  const struct table_facts *child = &planned->tables[table], *other = &planned->tables[parent];
  const struct table_column *target = &other->columns[other->unique];
  int place = table_column_find(child, key->column);
  if (key->key && !is_same(key->key, target->name))
    return add_row(rows, child->name, 0,
                   sqlite3_mprintf("%s refers to %s.%s, but a link needs the key %s.%s",
                                   key->column, other->name, key->key, other->name, target->name),
                   error);
  int is_unit = planned->distances[parent] == 0 && place >= 0 &&
                child->columns[place].affinity == target->affinity &&
                child->columns[place].collation == target->collation;
  char *declaration =
      is_unit
          ? sqlite3_mprintf("SELECT dp_protect(%Q, %Q)", child->name, key->column)
          : sqlite3_mprintf("SELECT dp_protect(%Q, %Q, %Q)", child->name, key->column, other->name);
  if (!declaration) return error_set_memory(error);
  return add_row(
      rows, child->name, declaration,
      sqlite3_mprintf("%s refers to %s%s", key->column, other->name,
                      choices > 1 ? "; choose one of these: a row protects one unit" : ""),
      error);
}

/* Returns the planned table with a key of one column to which a foreign key of table `child`
** refers, if it is at most `distance` from the units, or -1. */
static int parent_of(const struct planned *planned, int child, const struct foreign_key *key,
                     int distance) {
  int parent = key->column && is_same(key->of, planned->tables[child].name)
                   ? planned_find(planned, key->table)
                   : -1;
  return parent >= 0 && planned->distances[parent] >= 0 && planned->distances[parent] <= distance &&
                 planned->tables[parent].unique >= 0
             ? parent
             : -1;
}

/* Adds the rows of the tables at a distance from the units. */
static int add_layer(struct row_list *rows, const struct planned *planned, int distance,
                     struct error *error) {
  const struct foreign_keys *keys = &planned->keys;
  int going = 1;
  for (int i = 0; i < planned->count; i++) {
    int choices = 0;
    if (planned->distances[i] != distance) continue;
    for (int j = 0; j < keys->count; j++)
      choices += parent_of(planned, i, &keys->list[j], distance - 1) >= 0;
    for (int j = 0; j < keys->count && going; j++) {
      int parent = parent_of(planned, i, &keys->list[j], distance - 1);
      if (parent >= 0) going = add_link(rows, planned, i, parent, &keys->list[j], choices, error);
    }
  }
  return going;
}

/* Sets the distances of the tables that refer to one at `distance`. Returns whether one does. */
static int find_layer(struct planned *planned, int distance) {
  int found = 0;
  for (int i = 0; i < planned->count; i++) {
    if (planned->distances[i] >= 0) continue;
    for (int j = 0; j < planned->keys.count; j++)
      if (parent_of(planned, i, &planned->keys.list[j], distance) >= 0) {
        planned->distances[i] = distance + 1;
        found = 1;
        break;
      }
  }
  return found;
}

/* Adds a table that no foreign key leads to the people. If a column has the name of their key, or
** of their table and key, such as patient_id for patient(id), its rows may well be about them. */
static int add_unlinked(struct row_list *rows, const struct table_facts *facts,
                        const struct table_facts *people, struct error *error) {
  const char *key = people->columns[people->unique].name;
  char *long_key = sqlite3_mprintf("%s_%s", people->name, key), *note = 0;
  int place = long_key ? table_column_find(facts, long_key) : -1;
  if (place < 0 && !is_same(key, "id")) place = table_column_find(facts, key);
  if (long_key && place >= 0)
    note = sqlite3_mprintf("no foreign key leads to %s, but %s has the name of its key: "
                           "SELECT dp_protect(%Q, %Q)",
                           people->name, facts->columns[place].name, facts->name,
                           facts->columns[place].name);
  else if (long_key)
    note = sqlite3_mprintf("no foreign key leads to %s: name the column that does in dp_protect(), "
                           "or call dp_public() if anybody may know the rows",
                           people->name);
  sqlite3_free(long_key);
  return add_row(rows, facts->name, 0, note, error);
}

static int plan_from(struct row_list *rows, struct planned *planned, int unit,
                     struct error *error) {
  const struct table_facts *facts = &planned->tables[unit];
  if (facts->unique < 0)
    return error_set(error,
                     "table '%s' has no key of one column (a primary key, or else just one UNIQUE "
                     "column)",
                     facts->name);
  planned->distances[unit] = 0;
  char *declaration =
      sqlite3_mprintf("SELECT dp_protect(%Q, %Q)", facts->name, facts->columns[facts->unique].name);
  if (!declaration) return error_set_memory(error);
  int going = add_row(rows, facts->name, declaration, sqlite3_mprintf("each row is a unit"), error);
  for (int distance = 0; going && find_layer(planned, distance); distance++)
    going = add_layer(rows, planned, distance + 1, error);
  for (int i = 0; i < planned->count && going; i++)
    if (planned->distances[i] < 0) going = add_unlinked(rows, &planned->tables[i], facts, error);
  return going;
}

int foreign_keys_plan(struct row_list *rows, sqlite3 *db, const char *table, struct error *error) {
  struct planned planned = {0};
  struct table_facts facts;
  int going = table_facts_read(&facts, db, table, error) && planned_read(&planned, db, error);
  int unit = going ? planned_find(&planned, facts.name) : -1;
  if (unit >= 0) going = plan_from(rows, &planned, unit, error);
  for (int i = 0; i < planned.count; i++) table_facts_clear(&planned.tables[i]);
  keys_clear(&planned.keys);
  sqlite3_free(planned.tables);
  sqlite3_free(planned.distances);
  table_facts_clear(&facts);
  return going;
}
