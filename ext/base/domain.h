/* domain.h: the set of numbers that a parameter may be. */
#ifndef DIFFUSE_BASE_DOMAIN_H
#define DIFFUSE_BASE_DOMAIN_H

#include <sqlite3ext.h>

#include "base/error.h"

struct domain {
  const char *parameter; /* as in the reference: "epsilon" */
  double low, high;
  int low_open, high_open; /* infinity as an end point is admitted iff closed */
};

/*
** Sets *number to a value that is a number of the domain. The error names the parameter, its type
** and the domain. Text is not a number here: a parameter that
** arrives as text is a mistake.
*/
int domain_check(sqlite3_value *value, const struct domain *domain, double *number,
                 struct error *error);

int domain_holds(const struct domain *domain, double number);

#endif
