/* domain.h: checks that a numeric parameter is in its domain, the set of allowed numbers. */
#ifndef DIFFUSE_BASE_DOMAIN_H
#define DIFFUSE_BASE_DOMAIN_H

#include <sqlite3ext.h>

#include "base/error.h"

struct domain {
  const char *parameter; /* the parameter's name in the documentation, such as "epsilon" */
  double low, high;
  /*
  ** low_open is 1 if the domain excludes `low`, and 0 if the domain includes `low`, even an
  ** infinite `low`. high_open says the same about `high`.
  */
  int low_open, high_open;
};

/*
** Sets *number to the value if the value is a number in the domain. Otherwise the error names the
** parameter, its domain and, if the type is wrong, the type of the value. Text is never accepted,
** because a caller who passes a number as text has made a mistake.
*/
int domain_check(sqlite3_value *value, const struct domain *domain, double *number,
                 struct error *error);

int domain_holds(const struct domain *domain, double number);

#endif
