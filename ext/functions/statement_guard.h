/*
** statement_guard.h: tells the aggregates how the statement around them ended.
**
** If a statement is aborted, SQLite calls xFinal of its aggregates as if all rows had arrived, and
** does not tell them that the statement was aborted. xFinal therefore draws and answers, but stores
** nothing. When the statement ends, SQLite deletes the auxiliary data of argument 0. The guard
** decides at this time:
**
**   The statement continued after xFinal   The guard stores every release of the statement as
**                                          'released'. If storing fails, it tries again at the
**                                          next release on the connection.
**   It did not continue, or a function     Every release of the statement becomes 'failed', and the
**   of this extension failed               guard stores no value.
**
** There are two kinds of evidence that the statement continued (statement_guard.c, has_advanced()):
** the statement returned a row, or inserted a row. The guard sees this evidence even if the host
** runs other statements on the connection, or resets the counters of the statement. After the first
** row, doing both can hide the evidence (second example below). Without evidence the release fails.
** Examples without evidence are:
**
**   - a statement that writes, but after xFinal does none of the following: insert a row into a
**     table with rowids, create a table from a SELECT, return a row. (UPDATE and DELETE are refused
**     before the charge.)
**   - a statement whose host sets SQLITE_STMTSTATUS_VM_STEP back to 0 after the first row, and
**     calls other functions of the connection before the next step.
**
** If the host interrupts the statement between two rows, or memory runs out there, the releases
** fail, too: the guard runs a statement of its own, which then fails in the same way.
**
** The guard cannot detect one case: the statement returns or inserts a row that depends on a
** release, and an expression then fails before SQLite calls an aggregate of this extension again.
** SQLite has no interface that tells this from a good end. The value was complete when the
** statement delivered it, so the release stays 'released'. This cannot happen in a ledger with a
** policy, which admits only statements whose expressions cannot fail (query/loop_proof.h).
**
** xFinal never asks for auxiliary data: SQLite has no auxiliary data at that time and would crash.
*/
#ifndef DIFFUSE_FUNCTIONS_STATEMENT_GUARD_H
#define DIFFUSE_FUNCTIONS_STATEMENT_GUARD_H

#include "functions/host.h"

/* A call site of an aggregate in a statement that is running. */
struct site;

/* Returns the running call site with a reference for the caller, or null when out of memory. */
struct site *site_of(sqlite3_context *context, struct host *host);

/* Releases a reference. Accepts null. */
void site_release(struct site *site);

/*
** Returns whether this statement has evaluated the call site before. Call site_is_second() once for
** each evaluation.
*/
int site_is_second(struct site *site);

/*
** Returns 1 if the guard cannot see how the running statement ends, because the statement is an
** UPDATE or DELETE.
*/
int site_is_blind(const struct site *site);

/*
** Returns whether the host is resetting the statement between two rows. In this case xFinal lacks
** some rows.
*/
int site_is_reset(const struct site *site);

/* Records that a function of this extension fails the statement. */
void site_fail(struct site *site);

/*
** Keeps a publication, which publish_draw() has drawn, until the statement ends. When out of
** memory, marks the release as failed and returns 0 with the error set.
*/
int site_note(struct site *site, struct publication *publication, struct error *error);

#endif
