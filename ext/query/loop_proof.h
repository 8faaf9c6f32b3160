/*
** loop_proof.h: proves that the statement around an aggregate keeps the rows of different units
** apart.
**
** The proof reads the program of the statement and parses no SQL. It succeeds if all of the
** following hold. The program is one loop over one protected table, with at most public tables
** inside. Every instruction of the loop computes from the current rows alone, and no instruction
** can raise an error or keep a value for later rows. Each aggregate gets as its unit the table's
** unit column or the table's link to a parent. If each row is a unit, aggregates get no unit, and
** the loop reads no public table. An unknown instruction makes the proof fail.
*/
#ifndef DIFFUSE_QUERY_LOOP_PROOF_H
#define DIFFUSE_QUERY_LOOP_PROOF_H

#include <sqlite3ext.h>

#include "query/policy_tables.h"
#include "release/kinds.h"

enum proof {
  PROOF_UNKNOWN,    /* the version of SQLite is too new for the proof (program.h) */
  PROOF_FAILED,     /* the rows of one unit may change the contribution of another unit */
  PROOF_OTHER_UNIT, /* the rows are kept apart, but an aggregate's unit is not the unit column */
  PROOF_HOLDS
};

struct loop_proof {
  enum proof result;
  /*
  ** The route from the rows of the loop to their units. It has no tables if the program is not a
  ** loop over one protected table.
  */
  struct route route;
  char *tables;    /* PROOF_HOLDS: the tables that the loop reads, as JSON (ledger/policy.h) */
  unsigned of_row; /* the arguments that may differ from row to row, as bits 1 << place */
  char *sql; /* PROOF_HOLDS: the text of the statement with its bound values; null: not readable */
  char *obstacle; /* PROOF_FAILED: the part of the statement that is the cause, or null */
  /*
  ** PROOF_FAILED: what to write instead (table_loop_obstacle()), or null. PROOF_OTHER_UNIT: a
  ** constant text that an aggregate gets as its unit, or null.
  */
  char *instead;
};

/*
** Attempts the proof for the running statement of the connection, which calls `aggregate`. The
** caller must call loop_proof_clear(). loop_proof_column() returns the column of the loop's table
** that names the unit, or null if each row is a unit.
*/
void loop_prove(struct loop_proof *proof, sqlite3 *db, const struct ledger_policy *policy,
                const struct aggregate *aggregate);
void loop_proof_clear(struct loop_proof *proof);
const char *loop_proof_column(const struct loop_proof *proof);

#endif
