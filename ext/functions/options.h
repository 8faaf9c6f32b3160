/*
** options.h: reads arguments and JSON options into the parameters of a release. Functions report
** errors through the JSON parser (base/json.h).
*/
#ifndef DIFFUSE_FUNCTIONS_OPTIONS_H
#define DIFFUSE_FUNCTIONS_OPTIONS_H

#include <sqlite3ext.h>

#include "base/json.h"
#include "release/parameters.h"

/* The sets of options that a caller may use. */
enum {
  OPTIONS_OF_AGGREGATE = 1,
  OPTIONS_OF_RELEASE = 2,
  OPTIONS_OF_PLAN = 4,
  OPTIONS_OF_ELEMENT = 8,
  OPTIONS_OF_PARTIAL = 16, /* dp_partial(): options that shape the sums */
  OPTIONS_OF_STATE = 32,   /* the same options, as a state carries them */
  OPTIONS_OF_MERGE = 64    /* options that dp_merge() adds to those of the state */
};

/*
** Fills a request from the tier (null: none) and from the argument that holds a name or options
** (null or NULL: neither). The caller clears the request in either case. It must set the
** parameters, from arguments or options, before it calls request_finish().
*/
int request_start(struct request *request, const struct aggregate *aggregate, struct json *json,
                  sqlite3_value *tier, sqlite3_value *name_or_options, int form);

/* Sets the options in a text of JSON. */
int request_read(struct request *request, struct json *json, const char *text, int form);

/* The name of a parameter that may be an argument. */
const char *request_parameter(enum parameter parameter);

/* Sets a parameter from an argument. */
int request_argument(struct request *request, struct json *json, enum parameter parameter,
                     sqlite3_value *value);

/*
** Writes the parameters that shape the sums as JSON, after request_finish_shape(). The form is
** OPTIONS_OF_STATE for a state, from which the parameters are read again to the last bit, or
** OPTIONS_OF_PARTIAL for people. The caller frees the text.
*/
char *request_parameters(const struct request *request, int form);

#endif
