/*
** parameters.h: what a caller asks for: tier, bounds, and a name or JSON options, checked.
*/
#ifndef DIFFUSE_RELEASE_PARAMETERS_H
#define DIFFUSE_RELEASE_PARAMETERS_H

#include "release/kinds.h"
#include "ledger/ledger.h"
#include "mechanism/sgd.h"

struct request {
  const struct aggregate *aggregate;
  char *tier;
  char *name;                  /* null: a release of its own */
  char *mechanism;             /* null: that of the kind */
  double clip, weight, centre; /* weight 1 unless given; centre 0, or the middle of [lo, hi] */
  double radius, theta, rho;   /* NaN where not given, like all numbers below */
  double t;                    /* time of the process: sets the weight (life.c) */
  double lo, hi;
  double size;                  /* dim or bins */
  double max_groups, key_share; /* private keys */
  double half_width;            /* dp_plan(): the wanted 95% half-width */
  char *quantiles;              /* a number or a JSON array; null where the kind has none */
  char *keys;                   /* public keys as a JSON array, sorted; null: none, or private */
  struct descent descent;       /* models: what options say of one ... */
  char *loss, *stop, *schedule; /* ... but for these words */
  double reports;               /* local randomisation: n, ... */
  char *otherwise, *kernel;     /* ... the state of missing rows, and the kernel's cells */
  char *model;                  /* ... and its text, once it is settled (models.h) */
  char **key_list;              /* the same as texts */
  int key_count;
  char *sql;    /* dp_release(): the text of its query; null otherwise */
  char *tables; /* what a question reads (ledger/policy.h); null: units are not shown to be apart */
  double steps; /* dp_release(): of a question for one unit and each of its rows */
  int refine;
  int is_blind;    /* the statement around it could not show how it ends (statement_guard.h) */
  int rows;        /* dp_partial(): rows are protected, not units ... */
  int whole_units; /* ... and all rows of a unit are in one shard */
};

#define DEFAULT_KEY_SHARE 0.1

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
** (null or NULL: neither). Returns null, or one sentence to be freed. The caller clears the request
** either way. For request_finish() the parameters must have been set, from arguments or options.
*/
char *request_start(struct request *request, const struct aggregate *aggregate,
                    struct ledger *ledger, sqlite3_value *tier, sqlite3_value *name_or_options,
                    int form);

/* Sets what a text of JSON options holds. */
char *request_read(struct request *request, struct ledger *ledger, const char *json, int form);

/* The name of a parameter that has a place among the arguments. */
const char *request_parameter(enum parameter parameter);

/* Sets a parameter from an argument. */
char *request_argument(struct request *request, struct ledger *ledger, enum parameter parameter,
                       sqlite3_value *value);

/* Defaults and checks across parameters: of all, or of those that shape the sums. */
char *request_finish(struct request *request, int by_unit);
char *request_finish_shape(struct request *request, int by_unit);

void request_clear(struct request *request);

/*
** The parameters as a release has them; its texts are the request's own, id and lattice are not
** set.
*/
struct ledger_release request_release(const struct request *request);

/* Keys as a JSON array. To be freed. */
char *keys_json(char *const *keys, int count);

/*
** What shapes the sums of a request whose shape is finished, as JSON, to be freed: for a state,
** which it is read from again to the last bit (form OPTIONS_OF_STATE), or for people
** (OPTIONS_OF_PARTIAL).
*/
char *request_parameters(const struct request *request, int form);

/* The parameters as JSON for people. To be freed. */
char *request_options(const struct request *request);

#endif
