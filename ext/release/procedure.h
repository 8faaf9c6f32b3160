/*
** procedure.h: what differs between releases of points, of a category and of reports, in the steps
** that all releases take (life.c). Each step returns 1, or 0 with the error in the session.
*/
#ifndef DIFFUSE_RELEASE_PROCEDURE_H
#define DIFFUSE_RELEASE_PROCEDURE_H

#include "release/publication.h"

struct procedure {
  /* Inserts and charges a new release. */
  int (*charge)(struct publication *publication);
  /* Draws from exact totals on the lattice; stores nothing. */
  int (*draw)(struct publication *publication, const int64_t *totals);
  /* Stores and publishes what was drawn. */
  int (*keep)(struct publication *publication);
  /* Why a kernel is the only way outward, after the name of a release; null: a path is one. */
  const char *only_mixes;
  /* dp_mix(): publishes it at its position, as the kernel sends it on. */
  int (*mix)(struct publication *publication, const struct markov_kernel *kernel);
  /*
  ** Checks that the publication at a tier follows from the mechanism and the kernels. Returns null,
  ** or the first discrepancy (sqlite3_free).
  */
  char *(*verify)(struct publication *publication, const char *tier);
};

#endif
