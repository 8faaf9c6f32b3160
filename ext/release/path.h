/*
** path.h: releases that can have a point (totals plus noise) at each tier. These points form a
** path: each point is noisier than the next point inward.
*/
#ifndef DIFFUSE_RELEASE_PATH_H
#define DIFFUSE_RELEASE_PATH_H

#include "release/procedure.h"

extern const struct procedure path_procedure;

/* The steps of path_procedure, for procedures that change others. */
int path_charge(struct publication *publication);
int path_draw(struct publication *publication, const int64_t *totals);
int path_keep(struct publication *publication);

/*
** Publishes an existing release at the publication's tier. Uses the stored point of the tier if
** there is one. Otherwise diffuses the outermost point, draws a point between two others, or begins
** to refine the innermost point if `may_refine` is 1. The publication must already have the grid of
** the path. Returns 1, or 0 after setting the ledger's error.
**
** With publication->draws_only, path_publish() charges and draws, and the caller rolls the
** transaction back. If the ledger has not changed in the meantime, path_publish_drawn() later does
** the whole work, with the points that were drawn. Nobody has seen them before its commit.
*/
int path_publish(struct publication *publication, const struct ledger_path *path, int may_refine);
int path_publish_drawn(struct publication *publication);

/*
** Stores a new series at its tier: its point, which has no coordinate yet, and its publication. The
** series is already charged.
*/
int path_declare(struct publication *publication);

/*
** Charges a new release in advance for a later publication at this outer tier. The release must
** already be charged at its own tier. Returns 1, or 0 after setting the ledger's error.
*/
int path_prepay(struct publication *publication, int tier);

#endif
