/*
** connection.h: the private connection to the ledger file, the terms of the open ledger, the lock
** of the file, and the marker in the host's database.
*/
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
** The texts of the columns dp_ledger.protects and dp_ledger.adjacency. The constants LEDGER_UNITS,
** LEDGER_ROWS, LEDGER_ADD_REMOVE and LEDGER_REPLACE are the indices. Index 0 stands for the
** default.
*/
extern const char *const protects_name[3], *const adjacency_name[3];

/* Returns the format number of the open file. */
int ledger_format(struct ledger *ledger);

/* Releases the lock that every transaction and every open connection holds. */
void lock_drop(struct ledger *ledger);

/* ---- the marker, and what the host can write (marker.c) -------------------------------------- */

struct marker {
  char *id, *path; /* both are null if there is no marker */
};

void marker_clear(struct marker *marker);

/*
** Reads the marker of one attached database. Returns 1 whether or not there is a marker, and 0
** after a failure.
*/
int marker_read(struct ledger *ledger, const char *schema, struct marker *marker);

/* Writes the marker. Also succeeds if another process has just written the same marker. */
int marker_write(struct ledger *ledger, const char *id, const char *path);

/*
** Stores a new path in the marker, if the database can be written now and no transaction is open.
** The path is only a hint, because the id identifies the ledger. It therefore does no harm if the
** correction fails or is rolled back.
*/
void marker_correct(struct ledger *ledger, const struct marker *marker, const char *path);

/* Returns whether the host's main database lives in memory. */
int host_in_memory(const struct ledger *ledger);

/*
** Sets ledger->read_only if the host's connection cannot write its database. The member stays set
** as long as the handle exists. Returns 0 after a failure, for example if the function cannot find
** out whether the host can write.
*/
int host_check(struct ledger *ledger);

/* Fails if an attached database belongs to a ledger that is not the open ledger (L3). */
int marker_check_attached(struct ledger *ledger);

/* ---- the schema (open.c) --------------------------------------------------------------------- */

/* Compares the schema of the open file with sql/ledger.sql. A difference is a discrepancy. */
int ledger_verify_schema(struct ledger *ledger);

#endif
