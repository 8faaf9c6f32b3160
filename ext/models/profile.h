/* profile.h: the privacy of every row of a stored model. */
#ifndef DIFFUSE_MODELS_PROFILE_H
#define DIFFUSE_MODELS_PROFILE_H

#include "ledger/ledger.h"
#include "models/sgd.h"
#include "release/session.h"

/*
** Finds a finished model with this name. Returns 1, or 0 after setting the ledger's error. The
** caller clears the release in both cases.
*/
int model_find(struct ledger *ledger, const char *name, struct ledger_release *release,
               struct descent *descent);

/*
** Returns the privacy of every private row as JSON, in the form that dp_sgd_profile() publishes
** (functions.c). The caller frees the text with sqlite3_free(). Returns null after setting
** the session's error.
*/
char *model_profile(struct session *session, const char *name);

#endif
