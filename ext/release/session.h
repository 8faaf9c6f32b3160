/* session.h: the data that all releases of one connection share. */
#ifndef DIFFUSE_RELEASE_SESSION_H
#define DIFFUSE_RELEASE_SESSION_H

#include "base/error.h"
#include "release/publication.h"

/* The releases of one statement. */
struct pending {
  struct pending *next;                     /* the next statement of the session */
  void (*release)(struct pending *pending); /* called when the session ends */
  int ended; /* the statement has ended, and the remaining releases could not be stored */
  struct publication *publications;
  int count, room;
};

/* What the running SQL function computes while the ledger is not locked (deferred.h). */
struct computation;
struct deferred {
  struct computation *list;
  int defers; /* 1: what takes long is not computed during the transaction */
};

struct session {
  struct error error; /* the error of the running SQL function; the ledger sets this error, too */
  struct ledger *ledger;
  struct pending *pending; /* the statements whose releases are drawn but not stored */
  struct deferred deferred;
};

#endif
