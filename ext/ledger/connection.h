/* connection.h: the private connection to the ledger file, and the terms of the open ledger. */
#ifndef DIFFUSE_LEDGER_CONNECTION_H
#define DIFFUSE_LEDGER_CONNECTION_H

#include "ledger/handle.h"

/*
** Opens the file and takes its lock, which every read of a ledger needs. If the file belongs to
** another application, the function succeeds without the lock.
*/
int connection_open(struct ledger *ledger);

/* Does what connection_open() does, and makes the connection ready for transactions. */
int connection_start(struct ledger *ledger);

/*
** Forgets an inherited connection without closing it. Closes any other connection while holding the
** lock. Closing a file drops the locks that other copies of SQLite in this process have on the
** file, so no other transaction may be running.
*/
void connection_close(struct ledger *ledger);

/*
** Checks that the connection was not inherited by fork() (L6), and that the file was not deleted or
** replaced while the connection was open.
*/
int connection_check(struct ledger *ledger);

/* Returns whether the header of the open file marks it as a ledger. */
int connection_is_ledger(struct ledger *ledger);

/*
** Sets the journal mode TRUNCATE, or fails. If somebody has turned the file into a WAL database,
** setting the mode writes to the file, so the function then fails if the host may only read (L7).
** Any other change of the mode does not write to the file.
*/
int connection_set_journal(struct ledger *ledger);

/* Reads the terms of an open connection. */
int connection_read_terms(struct ledger *ledger);

/*
** Checks that nobody has overwritten the open file with another ledger or set another journal mode.
** While a ledger is being created, there is nothing to compare, and the function succeeds.
*/
int connection_check_terms(struct ledger *ledger);

/*
** The texts of the columns dp_ledger.protects and dp_ledger.adjacency. The constants LEDGER_UNITS,
** LEDGER_ROWS, LEDGER_ADD_REMOVE and LEDGER_REPLACE are the indices. Index 0 stands for the
** default.
*/
extern const char *const protects_name[3], *const adjacency_name[3];

/* Returns the format number of the open file. */
int ledger_format(struct ledger *ledger);

/*
** connection_use_copy() makes a copy of the ledger in memory the connection. connection_end_copy()
** drops the copy, if there is one, and goes back to the file.
*/
void connection_use_copy(struct ledger *ledger, sqlite3 *copy);
void connection_end_copy(struct ledger *ledger);

#endif
