/* session.h: the data that all releases of one connection share. */
#ifndef DIFFUSE_RELEASE_SESSION_H
#define DIFFUSE_RELEASE_SESSION_H

#include <stdint.h>

#include "base/error.h"
#include "release/publication.h"

/* The releases of one statement. */
struct pending {
  struct pending *next;                     /* the next one of the session */
  void (*release)(struct pending *pending); /* called when the session ends */
  int ended; /* the statement has ended; storing the remaining releases failed then */
  struct publication *publications;
  int count, room;
};

struct session {
  struct error error; /* of the running function; the ledger reports its errors here, too */
  struct ledger *ledger;
  struct pending *pending; /* the releases that are drawn but not stored */
};

/* Returns the publication of a release that has been drawn at that tier but not stored, or null. */
const struct publication *session_pending(const struct session *session, int64_t release_id,
                                          const char *tier);

#endif
