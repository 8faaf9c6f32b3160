/* model_profile.h: the privacy of every row of a model that exists. */
#ifndef DIFFUSE_RELEASE_MODEL_PROFILE_H
#define DIFFUSE_RELEASE_MODEL_PROFILE_H

#include "ledger/ledger.h"
#include "mechanism/sgd.h"
#include "release/session.h"

/* A finished model of that name. The caller clears the release, after an error too. */
int model_find(struct ledger *ledger, const char *name, struct ledger_release *release,
               struct descent *descent);

/*
** The privacy of every private row, as dp_sgd_profile() has it (functions/models.c): JSON, to be
** freed. Null after an error.
*/
char *model_profile(struct session *session, const char *name);

#endif
