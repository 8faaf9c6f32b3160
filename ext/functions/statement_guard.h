/*
** statement_guard.h: tells the aggregates how the statement around them ended.
**
** SQLite finishes the aggregates of an aborted statement as if they were complete, and no interface
** says which of the two is happening. So xFinal draws and answers, but stores nothing. Auxiliary
** data of argument 0 dies with the statement, and only then the guard decides:
**
**   The statement went on after xFinal     every release of the statement is stored and 'released';
**                                          if that fails, at the next release on the connection
**   It did not, or one of our functions    every release of the statement becomes 'failed', and its
**   failed it                              value is stored nowhere
**
** What shows that the statement went on (statement_guard.c, has_advanced()): it returned a row, or
** it inserted one. Neither another statement on the connection nor a host that resets the counters
** of a statement hides that. Where nothing shows it, the release fails:
**
**   - a statement that writes, but inserts no row after xFinal into a table with rowids, creates no
**     table from a SELECT and returns no row. UPDATE and DELETE are refused before the charge.
**   - a host that sets SQLITE_STMTSTATUS_VM_STEP back to 0 after the first row of a statement and
**     then calls other functions of the connection before it steps on.
**
** What cannot be told: a statement that fails after it has returned or inserted the last row that
** depends on a release, without another evaluation of ours. The value was complete and has been
** delivered; its release stays 'released'.
**
** xFinal never asks for auxiliary data: SQLite has none to give there and crashes.
*/
#ifndef DIFFUSE_FUNCTIONS_STATEMENT_GUARD_H
#define DIFFUSE_FUNCTIONS_STATEMENT_GUARD_H

#include "functions/host.h"

/* A call site of an aggregate in a statement that is running. */
struct site;

/* The call site that is running, with a reference for the caller; null: no memory. */
struct site *site_of(sqlite3_context *context, struct host *host);

/* Gives a reference back; null is fine. */
void site_release(struct site *site);

/*
** Whether the call site has been evaluated in this statement before. Ask once for each evaluation.
*/
int site_is_second(struct site *site);

/* Whether the statement runs but cannot show how it ends: UPDATE and DELETE. */
int site_is_blind(const struct site *site);

/*
** Whether the host is resetting the statement between two rows: then xFinal has not all its rows.
*/
int site_is_reset(const struct site *site);

/* One of our functions fails the statement. */
void site_fail(struct site *site);

/*
** Takes over a publication that publish_draw() has answered, until the statement ends; or fails the
** release.
*/
int site_note(struct site *site, struct publication *publication, struct error *error);

#endif
