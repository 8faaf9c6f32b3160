/*
** loop_proof.h: whether the statement around an aggregate keeps the rows of different units apart.
**
** The proof reads the program of the statement and parses no SQL. The program must be one loop over
** one protected table. Every instruction in it computes from the row alone, cannot fail, and keeps
** nothing for later rows. The unit that each aggregate gets is the unit column of that table and
** row. An unknown instruction makes the proof fail.
*/
#ifndef DIFFUSE_QUERY_LOOP_PROOF_H
#define DIFFUSE_QUERY_LOOP_PROOF_H

#include <sqlite3ext.h>

#include "ledger/policy.h"

enum proof {
  PROOF_FAILED,     /* the rows of a unit may change the contribution of another */
  PROOF_OTHER_UNIT, /* they cannot, but the aggregate gets another unit than the table's */
  PROOF_HOLDS
};

struct loop_proof {
  enum proof result;
  /* The table of the loop and its unit column, if the loop is over one table (sqlite3_free). */
  char *table, *column;
};

/*
** Attempts the proof for the running statement of the connection.
*/
struct loop_proof loop_prove(sqlite3 *db, const struct ledger_policy *policy);
void loop_proof_clear(struct loop_proof *proof);

#endif
