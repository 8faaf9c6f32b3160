/*
** foreign_keys.h: compares the declarations of a policy with the foreign keys that the schema
** declares, and lists the declarations that follow from these.
**
** A table is of units if the policy protects it, if its name is the word that dp_init() got for a
** unit (or this word with an s), or if a foreign key leads from it to such a table.
*/
#ifndef DIFFUSE_QUERY_FOREIGN_KEYS_H
#define DIFFUSE_QUERY_FOREIGN_KEYS_H

#include <sqlite3ext.h>

#include "base/sql_functions.h"
#include "query/policy_tables.h"

/*
** Checks that a declaration, and those of the policy whose tables refer to its table, agree with
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
** fits.
*/
int foreign_keys_check(sqlite3 *db, const struct ledger_policy *policy,
                       const struct ledger_declaration *asked, const char *unit,
                       struct error *error);

/*
** Adds a row (table, declaration, note) for each declaration that follows from the foreign keys if
** each row of `table` is a unit, and for each table that no foreign key leads to it. Returns 1, or
** 0 with the error set.
*/
int foreign_keys_plan(struct row_list *rows, sqlite3 *db, const char *table, struct error *error);

#endif
