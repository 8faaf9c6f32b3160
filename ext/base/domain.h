/* domain.h: the domain of a numeric parameter: which numbers are allowed. */
#ifndef DIFFUSE_BASE_DOMAIN_H
#define DIFFUSE_BASE_DOMAIN_H

#include <sqlite3ext.h>

#include "base/error.h"

struct domain {
  const char *parameter; /* its name in the reference, such as "epsilon" */
  double low, high;
  int low_open, high_open; /* an infinite end point is allowed if it is closed */
};

/*
** Sets *number to the value if it is a number in the domain. Otherwise the error names the
** parameter, its type and the domain. Text is not accepted, because a numeric parameter that
** arrives as text is a mistake of the caller.
*/
int domain_check(sqlite3_value *value, const struct domain *domain, double *number,
                 struct error *error);

int domain_holds(const struct domain *domain, double number);

#endif
