/*
** sentinel.h: what tells an aggregate how the statement around it ended.
**
** SQLite finishes the aggregates of an aborted statement as if they were complete. A sentinel in
** the auxiliary data of argument 0 dies with the statement; if no statement has advanced since
** xFinal, the statement was torn down, and what xFinal released becomes 'failed'. A statement that
** writes (INSERT ... SELECT) cannot be told apart and is believed.
**
** xFinal never asks for auxiliary data: SQLite has none to give there and crashes.
*/
#ifndef DIFFUSE_FUNCTIONS_SENTINEL_H
#define DIFFUSE_FUNCTIONS_SENTINEL_H

#include "functions/publish.h"

struct sentinel;

/*
** The sentinel of the call site that is running, with a reference for the caller; null: no memory.
*/
struct sentinel *sentinel_of(sqlite3_context *context, struct host *host);

/* Gives a reference back; null is fine. */
void sentinel_release(struct sentinel *sentinel);

/*
** Whether the call site has been evaluated in this statement before; to be asked once an
** evaluation.
*/
int sentinel_is_second(struct sentinel *sentinel);

/*
** Notes a release that xFinal has finished. Returns null; or revokes the release and returns one
** sentence to be freed.
*/
char *sentinel_note(struct sentinel *sentinel, int64_t release_id);

#endif
