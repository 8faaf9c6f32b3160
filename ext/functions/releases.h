/*
** releases.h: makes a release for dp_release(), and for dp_answer(), which returns the values as
** rows.
*/
#ifndef DIFFUSE_FUNCTIONS_RELEASES_H
#define DIFFUSE_FUNCTIONS_RELEASES_H

#include "functions/functions.h"
#include "release/parameters.h"
#include "release/publication.h"

struct rows;
struct secret;

struct release_arguments {
  sqlite3_value *tier, *kind, *sql, *options; /* options may be null */
  /* Whether the options must name the release; NAME_IF_REPEATED: see asked_once(). */
  enum { NAME_NOT_NEEDED, NAME_NEEDED, NAME_IF_REPEATED } needs_name;
  int form; /* options that dp_release() does not have (options.h); 0: none */
};

/*
** Makes the release or reads a stored release back. Returns 1, or 0 with an error.
** The caller must clear the publication and the request in both cases.
*/
int release_ask(struct publication *publication, struct request *request, struct host *host,
                const struct release_arguments *arguments);

/*
** Makes the release of a request that has been started (functions/options.h) and has the text of
** its question, or reads a stored release back. Returns the same.
*/
int release_question(struct publication *publication, struct request *request, struct host *host);

/*
** Checks a request on a guarded connection, and puts the name of the release into the namespace of
** the connection's grant. Does nothing on other connections.
*/
int release_guarded(const struct host *host, struct request *request, int needs_name,
                    struct error *error);

/* Opens the rows of a release; the context is its publication (struct rows_opener). */
int release_open_rows(void *context, struct rows *rows, const struct secret *secret,
                      struct error *error);

/*
** Compiles the question of a request, request->sql, for dp_plan(), so that the request has its
** notice. Returns 1, or 0 with an error.
*/
int release_compile(struct request *request, struct host *host);

/*
** Both functions serve dp_batch(). release_check() reads the request, checks the request and
** compiles its query. release_run() runs the query of a charged release and finishes the release.
*/
int release_check(struct request *request, struct host *host,
                  const struct release_arguments *arguments);
int release_run(struct publication *publication, struct request *request, struct host *host);

#endif
