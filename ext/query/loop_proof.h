/*
** loop_proof.h: whether the statement around an aggregate keeps the rows of different units apart.
**
** Its program shows it, no SQL is parsed: one loop over one protected table, in which every
** instruction computes from the row alone, cannot fail, and remembers nothing; and the unit that
** each aggregate is handed is the unit column of that table and row. What is not known is not
** proved.
*/
#ifndef DIFFUSE_QUERY_LOOP_PROOF_H
#define DIFFUSE_QUERY_LOOP_PROOF_H

#include <sqlite3ext.h>

#include "ledger/policy.h"

enum proof {
  PROOF_FAILED,     /* the rows of a unit may change what another contributes */
  PROOF_OTHER_UNIT, /* they cannot, but the unit is not the table's */
  PROOF_HOLDS
};

struct loop_proof {
  enum proof result;
  char *table, *column; /* where the loop is over one table: it, and its unit (sqlite3_free) */
};

/*
** Proves it for the statement of the connection that runs.
*/
struct loop_proof loop_prove(sqlite3 *db, const struct ledger_policy *policy);
void loop_proof_clear(struct loop_proof *proof);

#endif
