/* cross_keys.c: the public keys of cross tables: their attributes, the keys of each, and the tables
** (sums/layout.h), read from the options `keys` and `ways` of a request or from the same texts in
** the ledger.
**
** `keys` is a JSON object: each member names an attribute, and its array lists the public keys,
** which are compared as texts. `ways` is a number k (all tables of up to k attributes) or an array
** of tables; a table is an array of names of attributes, and a number at its end is its weight. The
** ledger stores both in one form: keys as texts, and all tables with their weights in the order of
** layout.h. The struct does not change after it is made. Several releases may share it.
** Tests: tests/mechanism/test_cross_tables.py */
#include "release/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/sql_text.h"
#include "mechanism/mechanism.h"

SQLITE_EXTENSION_INIT3

#define MOST_WEIGHT 1e6

struct cross_keys *cross_keys_retain(struct cross_keys *cross_keys) {
  cross_keys->references++;
  return cross_keys;
}

void cross_keys_release(struct cross_keys *cross_keys) {
  if (--cross_keys->references) return;
  for (int i = 0; i < cross_keys->count; i++) {
    struct attribute *attribute = &cross_keys->attributes[i];
    for (int k = 0; k < attribute->count; k++) sqlite3_free(attribute->keys[k]);
    sqlite3_free(attribute->keys);
    sqlite3_free(attribute->quoted);
    sqlite3_free(attribute->name);
  }
  for (int i = 0; i < 2; i++) ways_close(&cross_keys->ways[i]);
  sqlite3_free(cross_keys->keys_text);
  sqlite3_free(cross_keys->ways_text);
  sqlite3_free(cross_keys);
}

/* ---- attributes and their keys --------------------------------------------------------------- */

/* The progress of reading the options. */
struct reading_options {
  struct cross_keys *cross_keys;
  struct json *json;
  int takes_sizes;
  /* The tables of the option ways. */
  unsigned *masks;
  double *weights;
  int tables;
  /* The table that is being read. */
  unsigned mask;
  double weight;
};

static int add_key(struct attribute *attribute, char *key, struct error *error) {
  int used = attribute->count;
  if (!key) return error_set_memory(error);
  if ((used & (used - 1)) == 0) { /* a power of two: the list is full */
    char **grown =
        sqlite3_realloc64(attribute->keys, sizeof *grown * (sqlite3_uint64)(used ? 2 * used : 1));
    if (!grown) {
      sqlite3_free(key);
      return error_set_memory(error);
    }
    attribute->keys = grown;
  }
  attribute->keys[attribute->count++] = key;
  return 1;
}

static int take_key(void *context, const char *index, const char *type, sqlite3_value *value) {
  struct reading_options *reading = context;
  struct cross_keys *cross_keys = reading->cross_keys;
  struct attribute *attribute = &cross_keys->attributes[cross_keys->count - 1];
  (void)index;
  if (strcmp(type, "array") == 0 || strcmp(type, "object") == 0)
    return error_set(reading->json->error, "keys: a key of '%s' is an %s (give texts or numbers)",
                     attribute->name, type);
  if (attribute->count == WAYS_MAX_CELLS)
    return error_set(reading->json->error, "keys: '%s' has more than %d keys", attribute->name,
                     WAYS_MAX_CELLS);
  return add_key(attribute, key_text(value), reading->json->error);
}

/* Checks that an attribute has keys, each once. */
static int check_keys(const struct attribute *attribute, struct error *error) {
  if (!attribute->count) return error_set(error, "keys: '%s' has no key", attribute->name);
  char **sorted = sqlite3_malloc64(sizeof *sorted * (sqlite3_uint64)attribute->count);
  if (!sorted) return error_set_memory(error);
  memcpy(sorted, attribute->keys, sizeof *sorted * (size_t)attribute->count);
  qsort(sorted, (size_t)attribute->count, sizeof *sorted, text_order);
  int going = 1;
  for (int i = 1; i < attribute->count && going; i++)
    if (strcmp(sorted[i - 1], sorted[i]) == 0)
      going = error_set(error, "keys: '%s' has the key '%s' twice (keys are compared as texts)",
                        attribute->name, sorted[i]);
  sqlite3_free(sorted);
  return going;
}

/* dp_plan() knows only how many keys there will be. Their texts do not matter. */
static int assume_keys(struct attribute *attribute, sqlite3_value *value, struct error *error) {
  sqlite3_int64 count = sqlite3_value_int64(value);
  if (count < 1 || count > WAYS_MAX_CELLS)
    return error_set(error, "keys: '%s' must have 1 to %d keys", attribute->name, WAYS_MAX_CELLS);
  int going = 1;
  for (int i = 0; i < count && going; i++)
    going = add_key(attribute, sqlite3_mprintf("%d", i), error);
  return going;
}

static int take_attribute(void *context, const char *name, const char *type, sqlite3_value *value) {
  struct reading_options *reading = context;
  struct cross_keys *cross_keys = reading->cross_keys;
  struct error *error = reading->json->error;
  int same = cross_keys_find(cross_keys, name);
  if (same >= 0)
    return error_set(error, "keys: '%s' and '%s' are the same name (names ignore case)",
                     cross_keys->attributes[same].name, name);
  if (!*name) return error_set(error, "keys: an attribute has no name");
  if (cross_keys->count == WAYS_MAX_ATTRIBUTES)
    return error_set(error, "keys has more than %d attributes", WAYS_MAX_ATTRIBUTES);
  struct attribute *attribute = &cross_keys->attributes[cross_keys->count++];
  attribute->name = sqlite3_mprintf("%s", name);
  sqlite3_str *quoted = sqlite3_str_new(0);
  json_append_string(quoted, name);
  sqlite3_str_appendall(quoted, ":");
  attribute->quoted = sqlite3_str_finish(quoted);
  if (!attribute->name || !attribute->quoted) return error_set_memory(error);
  if (reading->takes_sizes && strcmp(type, "integer") == 0)
    return assume_keys(attribute, value, error);
  if (strcmp(type, "array") != 0)
    return error_set(error, "keys: '%s' must be an array of keys%s", name,
                     reading->takes_sizes ? ", or their number" : "");
  /* The text of the value is valid only until the next step of the parser. */
  char *array = sqlite3_mprintf("%s", sqlite3_value_text(value));
  int going =
      array ? json_elements(reading->json, array, take_key, reading) : error_set_memory(error);
  sqlite3_free(array);
  return going && check_keys(attribute, error);
}

int cross_keys_find(const struct cross_keys *cross_keys, const char *name) {
  for (int i = 0; i < cross_keys->count; i++)
    if (sqlite3_stricmp(cross_keys->attributes[i].name, name) == 0) return i;
  return -1;
}

/* ---- tables ---------------------------------------------------------------------------------- */

int cross_keys_unknown(const struct cross_keys *cross_keys, int is_option, const char *name,
                       struct error *error) {
  struct known_names known = {.asked = name, .shows = is_option};
  for (int i = 0; i < cross_keys->count; i++)
    known_names_add(&known, cross_keys->attributes[i].name);
  *known.nearest = 0; /* no "did you mean": the list has it */
  return known_names_fail(&known, error,
                          is_option ? "ways: unknown attribute%s (%sknown attributes: %s)"
                                    : "unknown attribute%s (%sknown attributes: %s)");
}

/* Takes the name of an attribute, or the weight at the end of a table. */
static int take_name(void *context, const char *index, const char *type, sqlite3_value *value) {
  struct reading_options *reading = context;
  struct error *error = reading->json->error;
  (void)index;
  if (reading->weight > 0) return error_set(error, "ways: a weight is not at the end of its table");
  if (strcmp(type, "integer") == 0 || strcmp(type, "real") == 0) {
    reading->weight = sqlite3_value_double(value);
    return (reading->weight >= 1 / MOST_WEIGHT && reading->weight <= MOST_WEIGHT) ||
           error_set(error, "ways: a weight must be a number above 0 (from %g to %g)",
                     1 / MOST_WEIGHT, MOST_WEIGHT);
  }
  const char *name = strcmp(type, "text") == 0 ? plain_text(value) : 0;
  if (!name)
    return error_set(error, "ways: a table is an array of names, with a weight at its end");
  int attribute = cross_keys_find(reading->cross_keys, name);
  if (attribute < 0) return cross_keys_unknown(reading->cross_keys, 1, name, error);
  if (reading->mask >> attribute & 1)
    return error_set(error, "ways: a table has the attribute '%s' twice", name);
  reading->mask |= 1u << attribute;
  return 1;
}

static int add_table(struct reading_options *reading, unsigned mask, double weight) {
  reading->masks[reading->tables] = mask;
  reading->weights[reading->tables++] = weight;
  return 1;
}

static int take_table(void *context, const char *index, const char *type, sqlite3_value *value) {
  struct reading_options *reading = context;
  struct error *error = reading->json->error;
  (void)index;
  if (strcmp(type, "array") != 0)
    return error_set(error, "ways: a table must be an array of names of attributes");
  reading->mask = 0;
  reading->weight = 0;
  char *table = sqlite3_mprintf("%s", sqlite3_value_text(value));
  int going =
      table ? json_elements(reading->json, table, take_name, reading) : error_set_memory(error);
  for (int i = 0; i < reading->tables && going; i++)
    if (reading->masks[i] == reading->mask)
      going = error_set(error, "ways: the table %s is there twice", table);
  sqlite3_free(table);
  if (going && reading->tables == WAYS_MAX_TABLES)
    going = error_set(error, "ways has more than %d tables", WAYS_MAX_TABLES);
  return going && add_table(reading, reading->mask, reading->weight > 0 ? reading->weight : 1);
}

static int refuse(enum ways_limit limit, double cells, struct error *error) {
  switch (limit) {
  case WAYS_MANY_CELLS:
    return error_set(error,
                     "the tables have %.0f cells (at most %d; ask for fewer ways or a list "
                     "of tables)",
                     cells, WAYS_MAX_CELLS);
  case WAYS_MANY_TABLES:
    return error_set(error,
                     "ways makes more than %d tables (ask for fewer ways or a list of "
                     "tables)",
                     WAYS_MAX_TABLES);
  case WAYS_MANY_KEYS:
    return error_set(error, "keys: the product of the numbers of keys must be below 2^62");
  default: return error_set_memory(error);
  }
}

/* Reads the option ways: a whole number, or an array of tables. */
static int read_ways(struct reading_options *reading, const char *text) {
  struct cross_keys *cross_keys = reading->cross_keys;
  struct error *error = reading->json->error;
  int sizes[WAYS_MAX_ATTRIBUTES];
  for (int i = 0; i < cross_keys->count; i++) sizes[i] = cross_keys->attributes[i].count;
  if (*text == '[') {
    if (!json_elements(reading->json, text, take_table, reading)) return 0;
    if (!reading->tables) return error_set(error, "ways has no table");
  } else {
    char *end;
    long most = strtol(text, &end, 10);
    if (*end || most < 1 || most > cross_keys->count)
      return error_set(error,
                       "ways must be a whole number from 1 to %d, the number of attributes, "
                       "or a list of tables",
                       cross_keys->count);
    for (unsigned mask = 0; mask < 1u << cross_keys->count; mask++)
      if (__builtin_popcount(mask) == most) add_table(reading, mask, 1);
  }
  double cells;
  enum ways_limit limit = ways_open(&cross_keys->ways[0], cross_keys->count, sizes, reading->masks,
                                    reading->weights, reading->tables, &cells);
  return limit == WAYS_FIT || refuse(limit, cells, error);
}

/* ---- stored texts ---------------------------------------------------------------------------- */

static void append_table(sqlite3_str *json, const struct cross_keys *cross_keys, unsigned mask) {
  int count = 0;
  for (int i = 0; i < cross_keys->count; i++) {
    if (!(mask >> i & 1)) continue;
    if (count++) sqlite3_str_appendall(json, ",");
    json_append_string(json, cross_keys->attributes[i].name);
  }
}

static int write_texts(struct cross_keys *cross_keys, struct error *error) {
  sqlite3_str *json = sqlite3_str_new(0);
  int failed = 0;
  for (int i = 0; i < cross_keys->count; i++) {
    sqlite3_str_appendall(json, i ? "," : "{");
    json_append_string(json, cross_keys->attributes[i].name);
    char *keys = json_texts(cross_keys->attributes[i].keys, cross_keys->attributes[i].count);
    if (!keys) failed = 1;
    sqlite3_str_appendf(json, ":%z", keys);
  }
  sqlite3_str_appendall(json, "}");
  cross_keys->keys_text = sqlite3_str_finish(json);
  json = sqlite3_str_new(0);
  const struct ways *ways = &cross_keys->ways[0];
  for (int i = 0; i < ways->count; i++) {
    const struct cross_table *table = &ways->tables[i];
    sqlite3_str_appendall(json, i ? ",[" : "[[");
    append_table(json, cross_keys, table->mask);
    if (table->weight != 1) {
      if (table->mask) sqlite3_str_appendall(json, ",");
      json_append_number(json, table->weight);
    }
    sqlite3_str_appendall(json, "]");
  }
  sqlite3_str_appendall(json, "]");
  cross_keys->ways_text = sqlite3_str_finish(json);
  return (cross_keys->keys_text && cross_keys->ways_text && !failed) || error_set_memory(error);
}

/* ---- cross keys ------------------------------------------------------------------------------ */

struct cross_keys *cross_keys_open(struct json *json, const char *keys, const char *ways,
                                   int takes_sizes) {
  struct cross_keys *cross_keys = sqlite3_malloc64(sizeof *cross_keys);
  struct reading_options reading = {
      .cross_keys = cross_keys, .json = json, .takes_sizes = takes_sizes};
  /* Room for all tables of one size, of at most 16 attributes. */
  reading.masks = malloc(sizeof *reading.masks << WAYS_MAX_ATTRIBUTES);
  reading.weights = malloc(sizeof *reading.weights << WAYS_MAX_ATTRIBUTES);
  if (cross_keys) *cross_keys = (struct cross_keys){.references = 1};
  int going = cross_keys && reading.masks && reading.weights;
  if (!going) error_set_memory(json->error);
  if (going) going = json_members(json, keys, take_attribute, &reading);
  if (going && !cross_keys->count) going = error_set(json->error, "keys has no attribute");
  if (going) going = read_ways(&reading, ways) && write_texts(cross_keys, json->error);
  free(reading.masks);
  free(reading.weights);
  if (going) return cross_keys;
  if (cross_keys) cross_keys_release(cross_keys);
  return 0;
}

/* ---- multipliers ----------------------------------------------------------------------------- */

/* Makes room for the multipliers of one norm. Returns null if memory runs out. */
static struct ways *open_ways(struct cross_keys *cross_keys, int in_sum_norm, int **multipliers) {
  struct ways *ways = &cross_keys->ways[in_sum_norm];
  *multipliers = 0;
  if (in_sum_norm && !ways->tables && !ways_copy(ways, &cross_keys->ways[0])) return 0;
  *multipliers = malloc(sizeof **multipliers * (size_t)ways->count);
  return *multipliers ? ways : 0;
}

int cross_keys_measure(struct cross_keys *cross_keys, int in_sum_norm) {
  int *multipliers;
  if (cross_keys->is_measured[in_sum_norm]) return 1;
  struct ways *ways = open_ways(cross_keys, in_sum_norm, &multipliers);
  if (ways && shares_multipliers(ways, in_sum_norm, multipliers))
    cross_keys->is_measured[in_sum_norm] = ways_measure(ways, multipliers);
  free(multipliers);
  return cross_keys->is_measured[in_sum_norm];
}

int cross_keys_restore(struct cross_keys *cross_keys, int in_sum_norm, const char *stored,
                       struct error *error) {
  int *multipliers;
  if (cross_keys->is_measured[in_sum_norm]) return 1;
  struct ways *ways = open_ways(cross_keys, in_sum_norm, &multipliers);
  if (!ways) return error_set_memory(error);
  double *numbers = malloc(sizeof *numbers * (size_t)ways->count);
  int read = numbers && vector_text_list(stored, numbers, ways->count) == ways->count;
  for (int i = 0; i < ways->count && read; i++) {
    multipliers[i] = numbers[i] >= 0 && numbers[i] < 1 << 30 ? (int)numbers[i] : -1;
    read = multipliers[i] == numbers[i];
  }
  cross_keys->is_measured[in_sum_norm] = read && ways_measure(ways, multipliers);
  free(numbers);
  free(multipliers);
  return cross_keys->is_measured[in_sum_norm] ||
         error_set(error,
                   "impossible multipliers of cross tables (restore the ledger from a backup)");
}

char *cross_keys_multipliers(const struct cross_keys *cross_keys, int in_sum_norm) {
  const struct ways *ways = &cross_keys->ways[in_sum_norm];
  sqlite3_str *json = sqlite3_str_new(0);
  for (int i = 0; i < ways->count; i++)
    sqlite3_str_appendf(json, "%s%d", i ? "," : "[", ways->tables[i].multiplier);
  sqlite3_str_appendall(json, "]");
  return sqlite3_str_finish(json);
}

/* ---- keys of cells --------------------------------------------------------------------------- */

/* Writes a key. keys[i] is the key of attribute i, or null if the table does not have it. */
static char *write_key(const struct cross_keys *cross_keys, const char *const *keys) {
  int count = 0;
  sqlite3_str *json = sqlite3_str_new(0);
  sqlite3_str_appendall(json, "{");
  for (int i = 0; i < cross_keys->count; i++) {
    if (!keys[i]) continue;
    if (count++) sqlite3_str_appendall(json, ",");
    sqlite3_str_appendall(json, cross_keys->attributes[i].quoted);
    json_append_string(json, keys[i]);
  }
  sqlite3_str_appendall(json, "}");
  return sqlite3_str_finish(json);
}

char *cross_keys_of_cell(const struct cross_keys *cross_keys, const struct cross_table *table,
                         int cell) {
  int numbers[WAYS_MAX_ATTRIBUTES];
  const char *keys[WAYS_MAX_ATTRIBUTES] = {0};
  ways_keys(&cross_keys->ways[0], table, cell, numbers);
  for (int i = 0; i < cross_keys->count; i++)
    if (table->mask >> i & 1) keys[i] = cross_keys->attributes[i].keys[numbers[i]];
  return write_key(cross_keys, keys);
}

/* The keys of a written key, by attribute. */
struct asked {
  const struct cross_keys *cross_keys;
  char *keys[WAYS_MAX_ATTRIBUTES];
  int failed; /* memory ran out */
};

static int take_asked(void *context, const char *name, const char *type, sqlite3_value *value) {
  struct asked *asked = context;
  int attribute = cross_keys_find(asked->cross_keys, name);
  if (attribute < 0 || asked->keys[attribute] || strcmp(type, "array") == 0 ||
      strcmp(type, "object") == 0)
    return 0;
  asked->keys[attribute] = key_text(value);
  asked->failed = !asked->keys[attribute];
  return !asked->failed;
}

char *cross_keys_asked(const struct cross_keys *cross_keys, struct json *json, const char *text) {
  struct asked asked = {.cross_keys = cross_keys};
  int read = json_members(json, text, take_asked, &asked);
  error_clear(json->error);
  char *key = read ? write_key(cross_keys, (const char *const *)asked.keys) : 0;
  if (asked.failed || (read && !key)) error_set_memory(json->error);
  for (int i = 0; i < WAYS_MAX_ATTRIBUTES; i++) sqlite3_free(asked.keys[i]);
  return key;
}

char *cross_keys_table_name(const struct cross_keys *cross_keys, const struct cross_table *table) {
  sqlite3_str *json = sqlite3_str_new(0);
  sqlite3_str_appendall(json, "[");
  append_table(json, cross_keys, table->mask);
  sqlite3_str_appendall(json, "]");
  return sqlite3_str_finish(json);
}
