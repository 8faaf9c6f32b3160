/* marker.h: the marker in the host's database, and what the host can write. */
#ifndef DIFFUSE_LEDGER_MARKER_H
#define DIFFUSE_LEDGER_MARKER_H

#include "ledger/handle.h"

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

#endif
