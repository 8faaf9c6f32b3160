/* session.h: the data that all releases of one connection share. */
#ifndef DIFFUSE_RELEASE_SESSION_H
#define DIFFUSE_RELEASE_SESSION_H

#include "base/error.h"
#include "release/publication.h"

/* What the running SQL function computes while the ledger is not locked (deferred.h). */
struct computation;
struct deferred {
  struct computation *list;
  int defers; /* 1: what takes long is not computed during the transaction */
};

struct session {
  struct error error; /* the error of the running SQL function; the ledger sets this error, too */
  struct ledger *ledger;
  struct deferred deferred;
};

#endif
