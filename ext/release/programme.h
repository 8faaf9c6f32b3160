/*
** programme.h: the attributes, keys and tables of a table programme (sums/ways.h), read from the
** options `keys` and `ways` of a request or from the same texts in the ledger.
**
** `keys` is a JSON object: each member names an attribute, and its array lists the public keys,
** which are compared as texts. `ways` is a number k (all tables of up to k attributes) or an array
** of tables; a table is an array of names of attributes, and a number at its end is its weight. The
** ledger stores both in one form: keys as texts, and all tables with their weights in the order of
** ways.h. A programme does not change after it is made. Several releases may share it.
*/
#ifndef DIFFUSE_RELEASE_PROGRAMME_H
#define DIFFUSE_RELEASE_PROGRAMME_H

#include "base/json.h"
#include "sums/ways.h"

struct attribute {
  char *name;
  char *quoted; /* the name as published keys have it, with a colon */
  char **keys;  /* in the order of the option */
  int count;
};

struct programme {
  int references;
  int count; /* of attributes */
  struct attribute attributes[WAYS_MAX_ATTRIBUTES];
  struct ways ways[2]; /* by norm of the noise; without multipliers until it is measured */
  int is_measured[2];
  char *keys_text, *ways_text; /* the stored forms of the options */
};

/*
** Makes a programme from the texts of the two options, and checks them. With `takes_sizes`, a
** number may stand for the keys of an attribute (dp_plan()). Returns null with the error set.
*/
struct programme *programme_open(struct json *json, const char *keys, const char *ways,
                                 int takes_sizes);
struct programme *programme_retain(struct programme *programme);
void programme_release(struct programme *programme);

/*
** Set the multipliers for noise in the Euclidean norm or in the sum norm, unless they are set.
** programme_measure() computes them (mechanism/estimate.h) and returns 1, or 0 if memory ran
** out. programme_restore() takes them from the JSON array that the ledger stores, and returns 1, or
** 0 with the error set. programme_multipliers() then returns the array for the ledger, which the
** caller frees.
*/
int programme_measure(struct programme *programme, int in_sum_norm);
int programme_restore(struct programme *programme, struct json *json, int in_sum_norm,
                      const char *stored);
char *programme_multipliers(const struct programme *programme, int in_sum_norm);

/*
** Returns the key of a cell as it is published: a JSON object with the key of each attribute of the
** table, in the order of the attributes. The caller frees the text. Null if memory runs out.
*/
char *programme_key(const struct programme *programme, const struct cross_table *table, int cell);

/*
** Returns the published form of a key that somebody has written: a JSON object with attributes in
** any order and keys as texts, numbers or null. The caller frees the text. Returns null without an
** error if the text is not such an object, or with the error set if memory ran out.
*/
char *programme_asked_key(const struct programme *programme, struct json *json, const char *text);

/* Returns a table's name in plans, such as ["ward","age"]. The caller frees the text. */
char *programme_table_name(const struct programme *programme, const struct cross_table *table);

/* Returns the attribute with this name, or -1. Names of attributes differ in more than case. */
int programme_find(const struct programme *programme, const char *name);

/*
** Reports that there is no attribute of this name, and lists the known ones. `is_option`: the name
** stands in the option ways. Always returns 0.
*/
int programme_unknown(const struct programme *programme, int is_option, const char *name,
                      struct error *error);

#endif
