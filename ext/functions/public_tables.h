/*
** public_tables.h: the public tables on a guarded connection. dp_guard() replaces the database
** `main` of the connection by a read-only database in memory. This database contains one virtual
** table for each public table, and nothing else. The virtual table reads the file on a private
** connection, whose authorizer admits only the table that is being read.
**
**   P1  A virtual table hands a comparison on to the file only if no row that fulfils the
**       comparison can get lost. SQLite checks every comparison again, with its own rules of
**       affinity.
**   P2  All public tables that a statement reads come from the same state of the file.
**   P3  A table that is no longer public, or no longer has the same columns, cannot be read.
**   P4  The file and the new `main` have texts in UTF-8. Comparisons and casts depend on the
**       encoding, and SQLite cannot replace `main` by a database in UTF-16.
**
** So a guest reads what the file would give (tests/functions/test_public_reads.py). There is one
** difference: SQLite gives a key that is the rowid no collation, and a virtual table has no such
** column. In a compound SELECT such a column compares by BINARY, not by the other side's collation.
*/
#ifndef DIFFUSE_FUNCTIONS_PUBLIC_TABLES_H
#define DIFFUSE_FUNCTIONS_PUBLIC_TABLES_H

#include "ledger/policy.h"

/*
** 0 in a build for tests, which shows that no secret depends on the authorizers of a guarded
** connection and of its private connection.
*/
#ifndef GUARD_AUTHORIZERS
#define GUARD_AUTHORIZERS 1
#endif

/* The name of the module in the text of the virtual tables. */
#define PUBLIC_TABLE_MODULE "dp_public_table"

/*
** Replaces the database `main` of a guarded connection by one that contains the public tables of
** the policy, as far as they exist in the file. `file` is a private connection to the file, which
** the function closes at the latest when the guarded connection is closed. Returns 1, or 0 with the
** error set and the connection as it was.
*/
int public_tables_install(sqlite3 *db, sqlite3 *file, struct ledger *ledger,
                          const struct ledger_policy *policy, struct error *error);

#endif
