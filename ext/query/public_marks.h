/*
** public_marks.h: the mark of a public table. A declaration of dp_public() holds for a table, not
** for its name: after ALTER TABLE or DROP TABLE the name can come to a table with other rows. So
** dp_public() marks the table with a trigger that does nothing, and the ledger keeps the trigger's
** name, which is random. SQLite keeps a trigger with its table through ALTER TABLE, VACUUM, a dump
** and a restore, and drops it with the table.
**
**   M1  A public table is read only if it has the mark and the columns that its declaration has.
*/
#ifndef DIFFUSE_QUERY_PUBLIC_MARKS_H
#define DIFFUSE_QUERY_PUBLIC_MARKS_H

#include "query/policy_tables.h"

/*
** Reads the facts of a table that is declared as public (M1). Returns 1, or 0 with the error set.
** The caller must call table_facts_clear() in both cases.
*/
int public_table_read(struct table_facts *facts, sqlite3 *db,
                      const struct ledger_declaration *declaration, struct error *error);

/*
** Sets the definition and the mark of a declaration to those of a table. If `stored` is null or the
** table has another mark or other columns than `stored`, writes a new mark into the database. The
** caller frees both texts, also after a failure.
*/
int public_mark_write(struct ledger_declaration *declaration, sqlite3 *db,
                      const struct table_facts *facts, const struct ledger_declaration *stored,
                      struct error *error);

/*
** Removes a mark that no declaration has. A mark that stays, because the database cannot be
** written, has no meaning.
*/
void public_mark_drop(sqlite3 *db, const char *mark);

#endif
