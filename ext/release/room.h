/*
** room.h: the rooms beside the core. Such a room has kinds, mechanisms and SQL functions of its
** own. The core does not include it: diffuse.c lists the rooms, and the core finds their kinds and
** mechanisms in the tables of kinds.h.
*/
#ifndef DIFFUSE_RELEASE_ROOM_H
#define DIFFUSE_RELEASE_ROOM_H

#include "release/kinds.h"

struct host;
struct numbers;
struct publication;
struct sqlite3;

struct room {
  const struct mechanism *const *mechanisms; /* the list ends with null; null: none */
  const struct statistic_row *statistics;
  int statistic_count;
  /*
  ** Applies the kernel that is stored for the publication at a tier, if there is one, to the
  ** numbers of its point. If the kernel does not fit the release, sets the count of the numbers to
  ** 0, so that the stored values differ from them. Returns 1, or 0 after setting the ledger's
  ** error. At most one room has this function.
  */
  int (*resend)(const struct publication *publication, const char *tier, struct numbers *numbers);
  /* Registers the SQL functions. Returns an SQLite result code. */
  int (*functions)(struct sqlite3 *db, struct host *host);
};

/* Adds the rooms to the tables. Null ends the list. Further calls do nothing. */
void rooms_open(const struct room *const *rooms);

/* Calls resend() of the room that has it. */
int rooms_resend(const struct publication *publication, const char *tier, struct numbers *numbers);

#endif
