/*
** options.h: reads arguments and JSON options into the parameters of a release. All functions
** return 1, or 0 with the error in the JSON parser (base/json.h).
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
  OPTIONS_OF_PARTIAL = 16, /* dp_partial(): the options that shape the sums */
  OPTIONS_OF_STATE = 32,   /* the same options, in the form that dp_partial() writes into a state */
  OPTIONS_OF_MERGE = 64    /* the options of dp_merge(), which complete those of the state */
};

/*
** Fills a request from the tier and from the argument that holds a name or options. `tier` is null
** if there is no tier. `name_or_options` is a null pointer or an SQL NULL if there is neither a
** name nor options. The caller must clear the request, even after a failure. Before
** request_finish(), the caller must set the parameters that are arguments.
*/
int request_start(struct request *request, const struct aggregate *aggregate, struct json *json,
                  sqlite3_value *tier, sqlite3_value *name_or_options, int form);

/* Sets the options from the text of a JSON object. */
int request_read(struct request *request, struct json *json, const char *text, int form);

/* Returns the name of a parameter that may be an argument. */
const char *request_parameter(enum parameter parameter);

/* Sets a parameter from an argument. */
int request_argument(struct request *request, struct json *json, enum parameter parameter,
                     sqlite3_value *value);

/*
** Returns the parameters that shape the sums as JSON. Call request_finish_shape() first. The form
** OPTIONS_OF_STATE keeps every bit of a number, so that a state can be read back. The form
** OPTIONS_OF_PARTIAL is for people. The caller frees the text. Returns null when out of memory.
*/
char *request_parameters(const struct request *request, int form);

#endif
