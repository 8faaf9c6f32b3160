/* plan_mechanisms.h: the part of a plan that compares mechanisms. */
#ifndef DIFFUSE_FUNCTIONS_PLAN_MECHANISMS_H
#define DIFFUSE_FUNCTIONS_PLAN_MECHANISMS_H

#include "release/parameters.h"
#include "release/publication.h"

#include <sqlite3ext.h>

/*
** Appends the member "mechanisms" if the planned kind may have several mechanisms at its tier: an
** object with the half-width of each at the rate of this release. If the tier covers Gaussian and
** Laplace noise, also appends "gaussian_from", the least number n for which Gaussian noise has the
** smaller half-width when n equal releases use up the whole budget of the tier (null: there is none
** up to 2^20). Returns 0 when out of memory.
*/
int plan_append_mechanisms(sqlite3_str *json, const struct publication *planned,
                           const struct request *request, double rows);

#endif
