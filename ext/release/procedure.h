/*
** procedure.h: the steps of a release that differ between points, categories and reports (life.c
** calls these steps). Each step returns 1, or 0 after setting the session's error.
*/
#ifndef DIFFUSE_RELEASE_PROCEDURE_H
#define DIFFUSE_RELEASE_PROCEDURE_H

#include "release/publication.h"

struct procedure {
  /* Inserts a new release into the ledger and charges it. */
  int (*charge)(struct publication *publication);
  /* Draws from the exact totals on the lattice. Stores nothing. */
  int (*draw)(struct publication *publication, const int64_t *totals);
  /*
  ** 1: a draw may take minutes and reads nothing from the ledger, so draw() is called before the
  ** transaction that stores its result. A second call inside the transaction draws nothing.
  */
  int draws_early;
  /* Stores and publishes the result of draw(). */
  int (*keep)(struct publication *publication);
  /*
  ** The part of an error that follows the name of a release. It says why only a kernel can publish
  ** the release at an outer tier. Null if the release has a path.
  */
  const char *only_mixes;
  /*
  ** Applies the kernel of dp_mix() and publishes the result at the publication's tier. Null: the
  ** release has a path, and life.c applies the kernel.
  */
  int (*mix)(struct publication *publication, const struct markov_kernel *kernel);
  /*
  ** Checks that the publication at a tier follows from the mechanism and the kernels. Returns null,
  ** or the first discrepancy, which the caller frees with sqlite3_free(). The member is null if the
  ** release has a path; verify.c checks the path.
  */
  char *(*verify)(struct publication *publication, const char *tier);
};

#endif
