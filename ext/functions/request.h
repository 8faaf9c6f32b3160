/*
** request.h: what a caller asks for: tier, bounds, and a name or JSON options, checked.
*/
#ifndef DIFFUSE_FUNCTIONS_REQUEST_H
#define DIFFUSE_FUNCTIONS_REQUEST_H

#include "functions/aggregate.h"

struct ledger;

struct request {
  const struct aggregate *aggregate;
  char *tier;
  char *name;                  /* null: a release of its own */
  double clip, weight, centre; /* weight 1 and centre 0 unless given */
  double radius, theta, rho;   /* NaN where not given */
  double half_width;           /* dp_plan(): the wanted 95% half-width; NaN where not given */
  int refine;
};

/* Which of the options a caller may use. */
enum {
  OPTIONS_OF_AGGREGATE = 1,
  OPTIONS_OF_RELEASE = 2,
  OPTIONS_OF_PLAN = 4,
  OPTIONS_OF_ELEMENT = 8
};

/*
** Fills a request from the tier and from the argument that holds a name or options (null or NULL:
** neither). Returns null, or one sentence to be freed. The caller clears the request either way.
** For request_finish() the bounds must have been set, from arguments or options.
*/
char *request_start(struct request *request, const struct aggregate *aggregate,
                    struct ledger *ledger, sqlite3_value *tier, sqlite3_value *name_or_options,
                    int form);

/* Sets a bound from an argument: clip or radius. */
char *request_clip(struct request *request, sqlite3_value *value);
char *request_radius(struct request *request, sqlite3_value *value);

/* Defaults and checks across parameters. */
char *request_finish(struct request *request, int by_unit);

void request_clear(struct request *request);

/* The parameters, exactly, for comparison; and as JSON for people. To be freed. */
char *request_fingerprint(const struct request *request);
char *request_options(const struct request *request);

#endif
