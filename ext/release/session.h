/* session.h: what the releases of one connection share. */
#ifndef DIFFUSE_RELEASE_SESSION_H
#define DIFFUSE_RELEASE_SESSION_H

#include <stdint.h>

#include "base/error.h"
#include "release/publication.h"

/* The releases of one statement. */
struct pending {
  struct pending *next;                     /* of the session */
  void (*release)(struct pending *pending); /* when the session ends */
  int ended; /* the statement has; what is left could not be stored then */
  struct publication *publications;
  int count, room;
};

struct session {
  struct error error; /* of the function that runs; the ledger reports its errors here, too */
  struct ledger *ledger;
  struct pending *pending; /* what is drawn and not stored yet */
};

/*
** The publication of a release that has been drawn at that tier and is not stored; null: there is
** none.
*/
const struct publication *session_pending(const struct session *session, int64_t release_id,
                                          const char *tier);

#endif
