/*
** statement_guard.h: tells the aggregates how the statement around them ended.
**
** SQLite finishes the aggregates of an aborted statement as if they were complete, and no interface
** tells an aggregate that this happens. So xFinal draws and answers, but stores nothing. SQLite
** deletes the auxiliary data of argument 0 when the statement ends, and the guard decides then:
**
**   The statement continued after xFinal   The guard stores every release of the statement as
**                                          'released'. If storing fails, it tries again at the
**                                          next release on the connection.
**   It did not, or one of our functions    Every release of the statement becomes 'failed', and the
**   failed it                              guard stores no value.
**
** Evidence that the statement continued (statement_guard.c, has_advanced()): it returned a row, or
** it inserted one. The guard sees this despite other statements on the connection and despite a
** host that resets the counters of a statement. Without evidence the release fails, as for:
**
**   - a statement that writes, but after xFinal inserts no row into a table with rowids, creates no
**     table from a SELECT and returns no row. UPDATE and DELETE are refused before the charge.
**   - a host that sets SQLITE_STMTSTATUS_VM_STEP back to 0 after the first row of a statement, and
**     calls other functions of the connection before its next step.
**
** The guard cannot detect one case: the statement returns or inserts the last row that depends on a
** release, does not evaluate our aggregates again, and then fails. The value was complete and has
** been delivered, so its release stays 'released'.
**
** xFinal never asks for auxiliary data: SQLite has none at that time and crashes.
*/
#ifndef DIFFUSE_FUNCTIONS_STATEMENT_GUARD_H
#define DIFFUSE_FUNCTIONS_STATEMENT_GUARD_H

#include "functions/host.h"

/* A call site of an aggregate in a statement that is running. */
struct site;

/* The running call site, with a reference for the caller; null when out of memory. */
struct site *site_of(sqlite3_context *context, struct host *host);

/* Releases a reference. Accepts null. */
void site_release(struct site *site);

/*
** Whether this statement has evaluated the call site before. Call it once for each evaluation.
*/
int site_is_second(struct site *site);

/* Whether the guard cannot see how the running statement ends: UPDATE and DELETE. */
int site_is_blind(const struct site *site);

/*
** Whether the host is resetting the statement between two rows. xFinal then lacks some rows.
*/
int site_is_reset(const struct site *site);

/* Records that one of our functions fails the statement. */
void site_fail(struct site *site);

/*
** Keeps a publication that publish_draw() has answered until the statement ends. On failure, fails
** the release and returns 0.
*/
int site_note(struct site *site, struct publication *publication, struct error *error);

#endif
