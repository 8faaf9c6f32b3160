/* options.h: reads arguments and JSON options into the parameters of a release. All functions
** return 1, or 0 with the error in the JSON parser (base/json.h). */
#ifndef DIFFUSE_FUNCTIONS_OPTIONS_H
#define DIFFUSE_FUNCTIONS_OPTIONS_H

#include <sqlite3ext.h>
#include <stddef.h>

#include "base/json.h"
#include "base/sql_functions.h"
#include "release/release.h"

/* The sets of options that a caller may use. */
enum {
  OPTIONS_OF_AGGREGATE = 1,
  OPTIONS_OF_RELEASE = 2,
  OPTIONS_OF_PLAN = 4,
  OPTIONS_OF_ELEMENT = 8,
  OPTIONS_OF_PARTIAL = 16, /* dp_partial(): the options that shape the sums */
  OPTIONS_OF_STATE = 32,   /* the same options, in the form that dp_partial() writes into a state */
  OPTIONS_OF_MERGE = 64,   /* the options of dp_merge(), which complete those of the state */
  OPTIONS_OF_BATCH = 128,  /* wishes and guesses of dp_plan() that dp_batch() also accepts */
  OPTIONS_OF_PUBLISHING =
      OPTIONS_OF_AGGREGATE | OPTIONS_OF_RELEASE | OPTIONS_OF_PLAN | OPTIONS_OF_MERGE
};

enum option_type {
  TEXT,
  MECHANISM,
  WORD,
  NUMBER,
  WHOLE_NUMBER,
  FLAG,
  PROTECTS,
  QUANTILES,
  KEYS,
  WAYS,    /* the tables of cross tables */
  PERIODS, /* the labels of a series */
  KEY,     /* one key, as a text */
  READ,    /* the function `read` of the option reads it */
  SHARD_NAME,
  SHARD_NAMES, /* the shards of a merge: their number or their names */
  QUERY,       /* the text of a question */
  TABLES,      /* the tables that a question reads, as a JSON object */
  READ_ALREADY
};

/* An option of a room beside the core. It sets a member of the struct `details`. The last arguments
** are the option's domain. */
#define OWN_OPTION(type, details, member, is_argument, ...)                                        \
  { {__VA_ARGS__}, type, OWN(details, member), OPTIONS_OF_PUBLISHING, P_OWN, is_argument, 0 }

struct option {
  struct domain domain; /* the name of the option and, for a number, the allowed range */
  enum option_type type;
  size_t offset; /* the member that the option sets: of struct request, or OWN() */
  int forms;     /* the forms above that accept the option */
  /* The parameter, or the group of parameters, to which the option belongs: centre, theta, rho and
  ** t, for example, belong to P_RADIUS. Kinds without it refuse the option. PARAMETERS: the option
  ** is for all kinds. */
  enum parameter parameter;
  int is_argument; /* the parameter may be an argument of the call */
  int (*read)(struct request *request, struct json *json, sqlite3_value *value,
              struct error *error);
};

/* The member of request.details that an option of a kind of its own sets (P_OWN). */
#define OWN(type, member) offsetof(type, member)

/* Fills a request from the tier and from the argument that holds a name or options. `tier` is null
** if there is no tier. `name_or_options` is a null pointer or an SQL NULL if there is neither a
** name nor options. The caller must clear the request, even after a failure. Before
** request_finish(), the caller must set the parameters that are arguments. */
int request_start(struct request *request, const struct aggregate *aggregate, struct json *json,
                  sqlite3_value *tier, sqlite3_value *name_or_options, int form);

/* Sets the options from the text of a JSON object. */
int request_read(struct request *request, struct json *json, const char *text, int form);

/* Returns the name of a parameter that may be an argument. */
const char *request_parameter(const struct aggregate *aggregate, enum parameter parameter);

/* Sets a parameter from an argument. */
int request_argument(struct request *request, struct json *json, enum parameter parameter,
                     sqlite3_value *value);

/* Returns the parameters that shape the sums as JSON. Call request_finish_shape() first. The form
** OPTIONS_OF_STATE keeps every bit of a number, so that a state can be read back. The form
** OPTIONS_OF_PARTIAL is for people. The caller frees the text. Returns null when out of memory. */
char *request_parameters(const struct request *request, int form);

#endif
