/*
** procedure.h: the steps of a release that differ between points, categories and reports (life.c
** calls them). Each step returns 1, or 0 with the error in the session.
*/
#ifndef DIFFUSE_RELEASE_PROCEDURE_H
#define DIFFUSE_RELEASE_PROCEDURE_H

#include "release/publication.h"

struct procedure {
  /* Inserts and charges a new release. */
  int (*charge)(struct publication *publication);
  /* Draws from the exact totals on the lattice. Stores nothing. */
  int (*draw)(struct publication *publication, const int64_t *totals);
  /* Stores and publishes the result of draw(). */
  int (*keep)(struct publication *publication);
  /*
  ** Says, after the name of a release in an error, why only a kernel can publish it at an outer
  ** tier. Null if the release has a path.
  */
  const char *only_mixes;
  /* dp_mix(): applies the kernel and publishes the result at the position. */
  int (*mix)(struct publication *publication, const struct markov_kernel *kernel);
  /*
  ** Checks that the publication at a tier follows from the mechanism and the kernels. Returns null,
  ** or the first discrepancy (sqlite3_free).
  */
  char *(*verify)(struct publication *publication, const char *tier);
};

#endif
