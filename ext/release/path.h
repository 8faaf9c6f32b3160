/* path.h: releases whose points lie on a path of tiers, each noisier than the one inside it. */
#ifndef DIFFUSE_RELEASE_PATH_H
#define DIFFUSE_RELEASE_PATH_H

#include "release/procedure.h"

extern const struct procedure path_procedure;

/*
** Publishes an existing release at its position from its path, by whichever way leads there. The
** grid of the publication is the path's.
*/
int path_publish(struct publication *publication, const struct ledger_path *path, int may_refine);

#endif
