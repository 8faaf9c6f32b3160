/*
** path.h: releases whose points lie on a path of tiers. Each point is noisier than the next one
** inward.
*/
#ifndef DIFFUSE_RELEASE_PATH_H
#define DIFFUSE_RELEASE_PATH_H

#include "release/procedure.h"

extern const struct procedure path_procedure;

/*
** Publishes an existing release at its position from its path: uses the stored point of its tier,
** diffuses or refines. The publication's grid is that of the path.
*/
int path_publish(struct publication *publication, const struct ledger_path *path, int may_refine);

#endif
