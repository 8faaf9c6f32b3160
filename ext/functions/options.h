/*
** options.h: from arguments and JSON options to the parameters of a release. Errors are the JSON
** parser's (base/json.h).
*/
#ifndef DIFFUSE_FUNCTIONS_OPTIONS_H
#define DIFFUSE_FUNCTIONS_OPTIONS_H

#include <sqlite3ext.h>

#include "base/json.h"
#include "release/parameters.h"

/* Which of the options a caller may use. */
enum {
  OPTIONS_OF_AGGREGATE = 1,
  OPTIONS_OF_RELEASE = 2,
  OPTIONS_OF_PLAN = 4,
  OPTIONS_OF_ELEMENT = 8,
  OPTIONS_OF_PARTIAL = 16, /* dp_partial(): what shapes the sums, ... */
  OPTIONS_OF_STATE = 32,   /* ... the same, as a state carries them ... */
  OPTIONS_OF_MERGE = 64    /* ... and what dp_merge() adds to them */
};

/*
** Fills a request from the tier (null: none) and from the argument that holds a name or options
** (null or NULL: neither). The caller clears the request
** either way. For request_finish() the parameters must have been set, from arguments or options.
*/
int request_start(struct request *request, const struct aggregate *aggregate, struct json *json,
                  sqlite3_value *tier, sqlite3_value *name_or_options, int form);

/* Sets what a text of JSON options holds. */
int request_read(struct request *request, struct json *json, const char *text, int form);

/* The name of a parameter that has a place among the arguments. */
const char *request_parameter(enum parameter parameter);

/* Sets a parameter from an argument. */
int request_argument(struct request *request, struct json *json, enum parameter parameter,
                     sqlite3_value *value);

/*
** What shapes the sums of a request whose shape is finished, as JSON, to be freed: for a state,
** which it is read from again to the last bit (form OPTIONS_OF_STATE), or for people
** (OPTIONS_OF_PARTIAL).
*/
char *request_parameters(const struct request *request, int form);

#endif
