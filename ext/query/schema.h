/* schema.h: what the schema of main says about the tables of a policy: their columns, the marks of
** public tables, the route from the rows of each table to their units, and the foreign keys. Every
** question reads the schema again, because schemas change. */
#ifndef DIFFUSE_QUERY_SCHEMA_H
#define DIFFUSE_QUERY_SCHEMA_H

#include <sqlite3ext.h>

#include "ledger/ledger.h"

struct row_list;

/* The affinities of columns. Each is named after a column type that has this affinity. */
enum affinity { AFFINITY_BLOB, AFFINITY_TEXT, AFFINITY_NUMERIC, AFFINITY_INTEGER, AFFINITY_REAL };

/* The collations that a declared table may use. */
enum collation { COLLATION_BINARY, COLLATION_NOCASE, COLLATION_RTRIM };

struct table_column {
  char *name, *type; /* the type as the schema declares it; '' if it declares none */
  enum affinity affinity;
  enum collation collation;
  int is_unique;  /* no two rows have the same value, under the collation of the column */
  int is_virtual; /* a generated column whose values SQLite computes whenever the column is read */
};

/* An ordinary table of main. */
struct table_facts {
  char *name; /* the name as the schema spells it */
  int root;   /* the root page */
  int without_rowid, is_strict;
  const char *rowid; /* a name of the rowid that no column has, or null */
  struct table_column *columns;
  int count;
  int *key; /* the columns of the primary key, in the order of the key */
  int key_count;
  int rowid_alias;                 /* the column that is an alias of the rowid, or -1 */
  int unique;                      /* the column to which a link may refer, or -1 */
  enum collation unique_collation; /* the collation of the unique index on that column */
  int is_unfit; /* 1: the schema was read, and main has no such table that can be declared */
};

/* schema_prepare() compiles a statement about the schema, which must give `columns` columns. A name
** replaces %w in its text. schema_finish() finalizes it, and reports its error unless `going` is
** already 0. Both return 1, or 0 with the error set, and the latter also if `going` is 0. */
int schema_prepare(sqlite3 *db, sqlite3_stmt **row, int columns, const char *format,
                   const char *name, struct error *error);
int schema_finish(sqlite3 *db, sqlite3_stmt *row, int going, struct error *error);

/* Sets *sql to the text that created a table or view, or to null if main has none of this name.
** Returns 1, or 0 with the error set. The caller calls sqlite3_free(*sql) in both cases. */
int schema_text(sqlite3 *db, const char *type, const char *name, char **sql, struct error *error);

/* Reads the facts of a table. Returns 1, or 0 with the error set. The caller must call
** table_facts_clear() in both cases. */
int table_facts_read(struct table_facts *facts, sqlite3 *db, const char *table,
                     struct error *error);

/* Does the same for a table that may be gone. Returns 1, 0 if main has no such table that can be
** declared, or -1 with the error set if the schema cannot be read. */
int table_facts_find(struct table_facts *facts, sqlite3 *db, const char *table,
                     struct error *error);
void table_facts_clear(struct table_facts *facts);

/* Returns the place of a column, or -1 if the table has no such column. */
int table_column_find(const struct table_facts *facts, const char *column);

/* Returns the text CREATE TABLE x(...) with the columns of a table and its key, or null if memory
** runs out. The virtual tables of guests and of the evaluator are declared by this text, and
** dp_public() keeps it. */
char *table_definition(const struct table_facts *facts);

enum affinity affinity_of(const char *type, int is_strict);
const char *affinity_type(enum affinity affinity);
const char *collation_name(enum collation collation);

/* ---- marks of public tables ------------------------------------------------------------------ */

/* A declaration of dp_public() holds for a table, not for its name: after ALTER TABLE or DROP TABLE
** the name can come to a table with other rows. So dp_public() marks the table with a trigger that
** does nothing, and the ledger keeps the trigger's name, which is random. SQLite keeps a trigger
** with its table through ALTER TABLE, VACUUM, a dump and a restore, and drops it with the table.
**
**   M1  A public table is read only if it has the mark and the columns that its declaration has.
**
** Reads the facts of a table that is declared as public (M1). Returns 1, or 0 with the error set.
** The caller must call table_facts_clear() in both cases. */
int public_table_read(struct table_facts *facts, sqlite3 *db,
                      const struct ledger_declaration *declaration, struct error *error);

/* Sets the definition and the mark of a declaration to those of a table. If `stored` is null or the
** table has another mark or other columns than `stored`, writes a new mark into the database. The
** caller frees both texts, also after a failure. */
int public_mark_write(struct ledger_declaration *declaration, sqlite3 *db,
                      const struct table_facts *facts, const struct ledger_declaration *stored,
                      struct error *error);

/* Removes a mark that no declaration has. A mark that stays, because the database cannot be
** written, has no meaning. */
void public_mark_drop(sqlite3 *db, const char *mark);

/* ---- routes ---------------------------------------------------------------------------------- */

/* The route from the rows of a table to their units: the table itself, then its parent, and so on.
** The unit is the column `unit` of the last table. If `unit` is -1, each row of the last table is a
** unit. */
#define ROUTE_MOST 16
struct route {
  struct table_facts tables[ROUTE_MOST];
  int links
      [ROUTE_MOST]; /* links[i]: the column of tables[i] that refers to the key of tables[i + 1] */
  int count;
  int unit;
};

/* Finds the route of a protected table, and checks that the schema still agrees with the
** declarations of its tables. Returns 1, or 0 with the error set. The caller must call
** route_clear() in both cases. */
int route_find(struct route *route, sqlite3 *db, const struct ledger_policy *policy,
               const struct ledger_declaration *declaration, struct error *error);
void route_clear(struct route *route);

/* Returns whether the schema says that no unit has two rows in the first table of a route. */
int route_is_single(const struct route *route);

/* Appends the FROM clause that joins the tables of a route under the names t0, t1, and so on. The
** join gives a row of t0 once if its links lead to a row of the last table, and not at all
** otherwise. The unit column of that row may still be NULL. */
void route_append_from(sqlite3_str *sql, const struct route *route);

/* Appends the FROM clause that joins the tables of a route, but not the first table. The route must
** have a parent. */
void route_append_parents(sqlite3_str *sql, const struct route *route);

/* Appends the FROM and WHERE clauses of a query that starts from a row's link, the parameter ?1,
** and finds the row of the parent to which this link refers. The clauses compare columns as
** route_append_from() does. The route must have a parent. */
void route_append_lookup(sqlite3_str *sql, const struct route *route);

/* Appends the expression for the unit of a row that route_append_from() joins. */
void route_append_unit(sqlite3_str *sql, const struct route *route);

/* ---- foreign keys (foreign_keys.c) ----------------------------------------------------------- */

/* Checks that a declaration, and those of the policy whose tables refer to its table, agree with
** the foreign keys:
**
**   - A column that refers to a table of units is a link to this table. Only a column that refers
**     to the unit column of its table may be the unit itself.
**   - A link has the parent, and the key of the parent, that its foreign key names.
**   - The key of a table is not the unit if another column refers to a table of units.
**   - A public table has no foreign key to a table of units, does not have the name of a unit, and
**     no column that names units refers to it.
**
** `unit` is the word for a unit, or null. Returns 1, or 0 with an error that says which declaration
** fits. */
int foreign_keys_check(sqlite3 *db, const struct ledger_policy *policy,
                       const struct ledger_declaration *asked, const char *unit,
                       struct error *error);

/* Adds a row (table, declaration, note) for each declaration that follows from the foreign keys if
** each row of `table` is a unit, and for each table that no foreign key leads to it. Returns 1, or
** 0 with the error set. */
int foreign_keys_plan(struct row_list *rows, sqlite3 *db, const char *table, struct error *error);

#endif
