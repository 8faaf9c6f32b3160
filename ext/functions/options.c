/* options.c: see functions.h.
** Tests: tests/functions/test_options.py, tests/functions/test_kinds_errors.py */
#include "functions/functions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/sql_text.h"
#include "release/release.h"

SQLITE_EXTENSION_INIT3

/* ---- the table of options -------------------------------------------------------------------- */

#define SHARD       (OPTIONS_OF_PARTIAL | OPTIONS_OF_STATE)
#define NO_ARGUMENT (OPTIONS_OF_RELEASE | OPTIONS_OF_PLAN | OPTIONS_OF_MERGE | SHARD)
#define WISHES      (OPTIONS_OF_PLAN | OPTIONS_OF_BATCH)
#define PLANNED     (OPTIONS_OF_RELEASE | OPTIONS_OF_PLAN)
#define QUESTIONS   (OPTIONS_OF_AGGREGATE | OPTIONS_OF_RELEASE | OPTIONS_OF_PARTIAL)
#define PUBLISHING  OPTIONS_OF_PUBLISHING
#define ALL         (OPTIONS_OF_AGGREGATE | PLANNED | SHARD)
#define IN(member)  offsetof(struct request, member)

static const struct option options[] = {
    {{"name", 0, 0, 0, 0}, TEXT, IN(name), PUBLISHING, PARAMETERS, 0, 0},
    {{"weight", 0, 1, 1, 0}, NUMBER, IN(weight), PUBLISHING, PARAMETERS, 0, 0},
    {{"refine", 0, 0, 0, 0}, FLAG, IN(refine), PUBLISHING, PARAMETERS, 0, 0},
    {{"mechanism", 0, 0, 0, 0}, MECHANISM, IN(mechanism), PUBLISHING | SHARD, PARAMETERS, 0, 0},
    {{"clip", LAYOUT_MIN_CLIP, LAYOUT_MAX_CLIP, 0, 0}, NUMBER, IN(clip), ALL, P_CLIP, 1, 0},
    {{"lo", -LAYOUT_MAX_RANGE, LAYOUT_MAX_RANGE, 0, 0}, NUMBER, IN(lo), ALL, P_LO, 1, 0},
    {{"hi", -LAYOUT_MAX_RANGE, LAYOUT_MAX_RANGE, 0, 0}, NUMBER, IN(hi), ALL, P_HI, 1, 0},
    {{"q", 0, 1, 0, 0}, QUANTILES, IN(quantiles), PUBLISHING, P_Q, 1, 0},
    {{"dim", 1, LAYOUT_MAX_SIZE, 0, 0}, WHOLE_NUMBER, IN(size), ALL, P_DIM, 1, 0},
    {{"bins", 1, LAYOUT_MAX_BINS, 0, 0}, WHOLE_NUMBER, IN(size), ALL, P_BINS, 1, 0},
    {{"grid", 0, INFINITY, 1, 1}, NUMBER, IN(grid), ALL, P_GRID, 0, 0},
    {{"diagnose", 0, 0, 0, 0}, FLAG, IN(diagnose), ALL & ~SHARD, P_DIAGNOSE, 0, 0},
    {{"keys", 0, 0, 0, 0}, KEYS, IN(keys), ALL, P_KEYS, 0, 0},
    {{"ways", 0, 0, 0, 0}, WAYS, IN(ways), ALL & ~OPTIONS_OF_AGGREGATE, P_WAYS, 0, 0},
    {{"periods", 0, 0, 0, 0}, PERIODS, IN(periods), PLANNED, P_PERIODS, 0, 0},
    {{"clip", LAYOUT_MIN_CLIP, LAYOUT_MAX_CLIP, 0, 0}, NUMBER, IN(clip), PLANNED, P_SERIES, 0, 0},
    {{"diagnose", 0, 0, 0, 0}, FLAG, IN(diagnose), PLANNED, P_SERIES, 0, 0},
    {{"candidates", 0, 0, 0, 0}, KEYS, IN(keys), ALL, P_CANDIDATES, 1, 0},
    {{"max_groups", 1, LAYOUT_MAX_GROUPS, 0, 0}, WHOLE_NUMBER, IN(max_groups), ALL, P_SELECT, 0, 0},
    {{"key_share", 0, 1, 1, 0}, NUMBER, IN(key_share), PUBLISHING, P_SHARE, 0, 0},
    {{"radius", 0, INFINITY, 1, 1}, NUMBER, IN(radius), PUBLISHING, P_RADIUS, 1, 0},
    {{"centre", -INFINITY, INFINITY, 1, 1}, NUMBER, IN(centre), PUBLISHING, P_RADIUS, 0, 0},
    {{"theta", 0, INFINITY, 0, 1}, NUMBER, IN(theta), PUBLISHING, P_RADIUS, 0, 0},
    {{"steps", 1000, 1e12, 0, 0}, WHOLE_NUMBER, IN(steps), QUESTIONS, PARAMETERS, 0, 0},
    {{"bytes", 1e6, 1e12, 0, 0}, WHOLE_NUMBER, IN(bytes), QUESTIONS, PARAMETERS, 0, 0},
    {{"seconds", 0, 1e6, 1, 0}, NUMBER, IN(seconds), QUESTIONS, PARAMETERS, 0, 0},
    {{"until", 0.001, 0.25, 0, 0}, NUMBER, IN(until), PLANNED, PARAMETERS, 0, 0},
    {{"least", 0, INFINITY, 0, 1}, NUMBER, IN(least), PLANNED, PARAMETERS, 0, 0},
    {{"half_width", 0, INFINITY, 1, 1}, NUMBER, IN(half_width), WISHES, PARAMETERS, 0, 0},
    {{"rows", 1, 1e15, 0, 0}, WHOLE_NUMBER, IN(rows_guess), WISHES, PARAMETERS, 0, 0},
    {{"unit", 0, 0, 0, 0}, WORD, IN(unit_word), WISHES, PARAMETERS, 0, 0},
    {{"bounds", 0, 0, 0, 0}, TEXT, IN(bounds), OPTIONS_OF_PLAN, P_CLIP, 0, 0},
    {{"tier", 0, 0, 0, 0}, READ_ALREADY, 0, OPTIONS_OF_ELEMENT, PARAMETERS, 0, 0},
    {{"kind", 0, 0, 0, 0},
     READ_ALREADY,
     0,
     OPTIONS_OF_ELEMENT | OPTIONS_OF_STATE,
     PARAMETERS,
     0,
     0},
    {{"protects", 0, 0, 0, 0}, PROTECTS, IN(rows), OPTIONS_OF_STATE, PARAMETERS, 0, 0},
    {{"whole_units", 0, 0, 0, 0}, FLAG, IN(whole_units), SHARD, PARAMETERS, 0, 0},
    {{"shard", 0, 0, 0, 0}, SHARD_NAME, IN(shard), OPTIONS_OF_PARTIAL, PARAMETERS, 0, 0},
    {{"shards", 0, 0, 0, 0}, SHARD_NAMES, IN(shards), OPTIONS_OF_MERGE, PARAMETERS, 0, 0},
    {{"sql", 0, 0, 0, 0}, QUERY, IN(sql), OPTIONS_OF_STATE | OPTIONS_OF_PLAN, PARAMETERS, 0, 0},
    {{"tables", 0, 0, 0, 0}, TABLES, IN(tables), OPTIONS_OF_STATE, PARAMETERS, 0, 0},
    {{"rho", 0, INFINITY, 1, 1}, NUMBER, IN(rho), PUBLISHING, P_RADIUS, 0, 0},
    {{"t", 0, INFINITY, 1, 1}, NUMBER, IN(t), PUBLISHING, P_RADIUS, 0, 0},
};
#define OPTION_COUNT ((int)(sizeof options / sizeof *options))

/* Returns the options that a kind may have: those of this file, then its own, then null. */
static const struct option *option_at(const struct aggregate *aggregate, int i) {
  if (i < OPTION_COUNT) return &options[i];
  i -= OPTION_COUNT;
  return i < aggregate->own_option_count ? &aggregate->own_options[i] : 0;
}

/* Returns the member that the option sets. */
static void *member_of(const struct request *request, const struct option *option) {
  char *whole = option->parameter == P_OWN ? request->details : (char *)(uintptr_t)request;
  return whole + option->offset;
}

/* The context of take_option(). */
struct parse {
  struct request *request;
  struct json *json;
  int form;
  struct error *error; /* the error of the JSON parser */
};

/* Returns whether an aggregate accepts an option in this form. If the aggregate takes the parameter
** as an argument, the parameter is an option only in forms without this argument (NO_ARGUMENT). */
static int applies(const struct aggregate *aggregate, int form, const struct option *option) {
  if (!(option->forms & form)) return 0;
  if (option->parameter == PARAMETERS) return 1;
  int placed = option->is_argument && aggregate->places.parameters[option->parameter];
  return (aggregate->takes & 1u << option->parameter) && (!placed || form & NO_ARGUMENT);
}

/* Says why there are no cross tables here: because of the kind, or because of the form. */
static int no_tables(const struct request *request, struct error *error) {
  if (request_takes(request, P_WAYS))
    return error_set(error, "cross tables are for dp_release() and dp_answer() (here, give keys as "
                            "an array, and leave ways out)");
  return error_set(error,
                   "kind '%s' has no cross tables (ways is for group_count, group_sum and "
                   "group_avg)",
                   request->aggregate->kind);
}

/* If only dp_plan() and dp_batch() have an option with this name, the error says so. */
static int unknown_here(const struct parse *parse, const char *key, struct error *error) {
  if (strcmp(key, "ways") == 0) return no_tables(parse->request, error);
  if (strcmp(key, "until") == 0 || strcmp(key, "least") == 0)
    return error_set(error,
                     "until and least are for dp_release() and dp_answer() (here, leave them "
                     "out, or ask dp_plan() for the weight of a half_width)");
  struct known_names known = {.asked = key, .shows = 1};
  const struct option *option;
  int is_planned = 0;
  for (int i = 0; (option = option_at(parse->request->aggregate, i)) != 0; i++) {
    const char *name = option->domain.parameter;
    if (applies(parse->request->aggregate, parse->form, option)) known_names_add(&known, name);
    is_planned |= option->forms == WISHES && strcmp(name, key) == 0;
  }
  return known_names_fail(&known, error,
                          is_planned ? "unknown option%s: it is for dp_plan() and dp_batch() only ("
                                       "%sknown options: %s)"
                                     : "unknown option%s (%sknown options: %s)");
}

/* Puts a text, which it takes over, in the place of another one. Null: out of memory. */
static int replace_text(char **kept, char *text, struct error *error) {
  sqlite3_free(*kept);
  *kept = text;
  return text ? 1 : error_set_memory(error);
}

/* Sets a name. Names such as 'release-1' are reserved for unnamed releases. */
static int set_name(char **name, sqlite3_value *value, struct error *error) {
  const char *text = text_check(value, "name", error);
  if (!text) return 0;
  if (strncmp(text, "release-", 8) == 0 && text[8] &&
      strspn(text + 8, "0123456789") == strlen(text + 8))
    return error_set(error,
                     "name must not be like 'release-1', which is kept for unnamed releases");
  return replace_text(name, sqlite3_mprintf("%s", text), error);
}

/* Sets an option that is a word. models/model.c checks the words of a model when all options are
** known. The option `unit` may be any word. */
static int set_word(const char *key, char **word, sqlite3_value *value, struct error *error) {
  const char *text = plain_text(value);
  if (!text || !*text)
    return error_set(error, "%s must be a text%s", key, not_a(value, SQLITE_TEXT));
  return replace_text(word, sqlite3_mprintf("%s", text), error);
}

/* Sets the name of a shard, which errors of a merge show. */
static int set_shard(char **shard, sqlite3_value *value, struct error *error) {
  const char *text = plain_text(value);
  int plain = text && *text ? key_is_plain(text) : 0;
  if (plain < 0) return error_set_memory(error);
  if (!plain)
    return error_set(error, "shard must be a text of 1 to 1000 characters%s",
                     text ? "" : not_a(value, SQLITE_TEXT));
  return replace_text(shard, sqlite3_mprintf("%s", text), error);
}

/* Keeps the number or the names of shards as JSON. merged_check() in shards.c reads the names. */
static int set_shards(char **shards, const char *type, sqlite3_value *value, struct error *error) {
  int is_number = strcmp(type, "integer") == 0 && sqlite3_value_int64(value) > 0;
  if (!is_number && strcmp(type, "array") != 0)
    return error_set(error, "shards must be their number, or a JSON array of their names, such as "
                            "[\"north\",\"south\"]");
  return replace_text(shards, sqlite3_mprintf("%s", sqlite3_value_text(value)), error);
}

/* ---- lists ----------------------------------------------------------------------------------- */

#define MOST_QUANTILES LAYOUT_MAX_QUANTILES

/* Returns whether a value is the text of a JSON array. An SQL argument has no JSON type that would
** say so. */
static int is_array_text(sqlite3_value *value) {
  const char *text = plain_text(value);
  return text && text[strspn(text, " \t\r\n")] == '[';
}

/* Reads a number in [0, 1], or the text of a JSON array of such numbers, and keeps it as JSON. */
static int set_quantiles(char **quantiles, sqlite3_value *value, struct error *error) {
  double numbers[MOST_QUANTILES] = {0};
  int count = 0, is_array = is_array_text(value);
  if (is_array) {
    count = vector_text_list(plain_text(value), numbers, MOST_QUANTILES);
  } else {
    count = value_number(value, numbers);
    if (count < 0) return error_set_memory(error);
  }
  int sound = count > 0;
  for (int i = 0; i < count; i++) sound = sound && numbers[i] >= 0 && numbers[i] <= 1;
  if (!sound)
    return error_set(error,
                     "q must be a number in [0, 1] or a JSON array of at most %d such numbers%s",
                     MOST_QUANTILES, plain_text(value) ? "" : not_a(value, SQLITE_FLOAT));
  sqlite3_str *json = sqlite3_str_new(0);
  for (int i = 0; i < count; i++) {
    sqlite3_str_appendall(json, i ? "," : is_array ? "[" : "");
    json_append_number(json, numbers[i]);
  }
  if (is_array) sqlite3_str_appendall(json, "]");
  return replace_text(quantiles, sqlite3_str_finish(json), error);
}

/* Returns the word that error messages use for the keys of this kind. */
static const char *keys_called(const struct request *request) {
  return request_takes(request, P_CANDIDATES) ? "candidates" : "keys";
}

/* Reads public keys, sorts them, removes duplicates, and keeps them as JSON, and their order. */
static int set_keys(struct parse *parse, const char *text, struct error *error) {
  struct request *request = parse->request;
  request->key_list = json_list(parse->json, text, 0, &request->key_count);
  if (!request->key_list) return 0;
  if (request->key_count > LAYOUT_MAX_KEYS)
    return error_set(error, "%s has more than %d elements", keys_called(request), LAYOUT_MAX_KEYS);
  if (!request->key_count)
    return request_takes(request, P_KEYS)
               ? error_set(error, "keys is empty (leave it out to select keys privately)")
               : error_set(error, "candidates is empty");
  int sorted = 1;
  while (sorted < request->key_count &&
         text_order(&request->key_list[sorted - 1], &request->key_list[sorted]) <= 0)
    sorted++;
  if (sorted < request->key_count) {
    request->keys_given = json_texts(request->key_list, request->key_count);
    if (!request->keys_given) return error_set_memory(error);
  }
  qsort(request->key_list, (size_t)request->key_count, sizeof *request->key_list, text_order);
  int kept = 0;
  for (int i = 0; i < request->key_count; i++) {
    char *key = request->key_list[i];
    if (kept && strcmp(request->key_list[kept - 1], key) == 0) {
      sqlite3_free(key);
    } else {
      request->key_list[kept++] = key;
    }
  }
  request->key_count = kept;
  request->keys = json_texts(request->key_list, kept);
  return request->keys ? 1 : error_set_memory(error);
}

/* ---- cross tables ---------------------------------------------------------------------------- */

/* Reads the labels of a series. */
static int set_periods(struct parse *parse, const char *type, sqlite3_value *value) {
  if (strcmp(type, "text") != 0 && strcmp(type, "array") != 0)
    return error_set(parse->error, "periods must be \"first/last\", or a JSON array of labels%s",
                     not_a(value, SQLITE_TEXT));
  char *text = sqlite3_mprintf("%s", sqlite3_value_text(value));
  if (parse->request->periods) periods_release(parse->request->periods);
  parse->request->periods = text ? periods_open(parse->json, text) : 0;
  if (!text) error_set_memory(parse->error);
  sqlite3_free(text);
  return parse->request->periods != 0;
}

/* Makes the keys of cross tables from the options keys and ways, if they are given. */
static int settle_ways(struct parse *parse) {
  struct request *request = parse->request;
  struct error *error = parse->error;
  if (!request->attributes && !request->ways) return 1;
  if (!request_takes(request, P_WAYS) || parse->form & OPTIONS_OF_AGGREGATE)
    return no_tables(request, error);
  if (!request->ways)
    return error_set(error,
                     "ways is missing (keys is an object; give a whole number of attributes, "
                     "or a list of tables)");
  if (!request->attributes)
    return error_set(error, "ways needs keys as an object of attributes, such as "
                            "{\"ward\":[\"A\",\"B\"],\"sex\":[\"F\",\"M\"]}");
  if (!isnan(request->max_groups) || !isnan(request->key_share))
    return error_set(error,
                     "cross tables have public keys only (leave max_groups and key_share out)");
  if (request->cross_keys) cross_keys_release(request->cross_keys);
  request->cross_keys = cross_keys_open(parse->json, request->attributes, request->ways,
                                        (parse->form & OPTIONS_OF_PLAN) != 0);
  return request->cross_keys != 0;
}

/* ---- one option or argument ------------------------------------------------------------------ */

/* Returns whether a number is not 0 and too small to be a normal number. A host can have told the
** processor to compute with 0 instead, so the bits decide. */
static int is_subnormal(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return !(bits >> 52 & 0x7ff) && bits << 12;
}

static int set_number(const struct option *option, sqlite3_value *value, double *member,
                      struct error *error) {
  int going = domain_check(value, &option->domain, member, error);
  if (going && is_subnormal(*member))
    going = error_set(error,
                      "%s is nearer to 0 than 2.3e-308, which some processors take for 0 (take "
                      "another number)",
                      option->domain.parameter);
  if (going) *member += 0.0; /* turns -0.0 into 0.0 */
  if (going && option->type == WHOLE_NUMBER && *member != floor(*member))
    going = error_set(error, "%s must be a whole number", option->domain.parameter);
  return going;
}

static int set_mechanism(struct request *request, sqlite3_value *value, struct error *error) {
  const char *name = plain_text(value);
  if (!name) return error_set(error, "mechanism must be a text%s", not_a(value, SQLITE_TEXT));
  if (!mechanism_find(request->aggregate, name))
    return unknown_mechanism(request->aggregate, name, error);
  return replace_text(&request->mechanism, sqlite3_mprintf("%s", name), error);
}

/* Reads a number from the state of a shard. The state holds the bits of the number as 16
** hexadecimal digits. A decimal fraction would not be exact, because versions of SQLite write and
** read decimal fractions differently. */
static int set_bits(const struct option *option, sqlite3_value *value, double *member,
                    struct error *error) {
  const char *digits = plain_text(value);
  uint64_t bits = 0;
  int count = digits ? (int)strspn(digits, "0123456789abcdef") : 0;
  for (int i = 0; i < count; i++)
    bits = bits << 4 | (uint64_t)(digits[i] <= '9' ? digits[i] - '0' : digits[i] - 'a' + 10);
  memcpy(member, &bits, sizeof bits);
  *member += 0.0; /* a forged -0.0 becomes 0.0, so the parameters no longer match the state */
  if (count == 16 && !digits[16] && domain_holds(&option->domain, *member)) return 1;
  return error_set(error, "the state's %s is no number that it can be", option->domain.parameter);
}

/* dp_plan() accepts the number of keys instead of the keys. */
static const struct domain key_guess_domain = {"keys", 1, LAYOUT_MAX_KEYS, 0, 0};

/* Sets the member of the request that an option sets. `type` is the JSON type of the value. */
static int set_option(struct parse *parse, const struct option *option, const char *type,
                      sqlite3_value *value, struct error *error) {
  const char *key = option->domain.parameter;
  void *member = member_of(parse->request, option);
  int boolean = strcmp(type, "true") == 0 || strcmp(type, "false") == 0;
  switch (option->type) {
  case TEXT:
    return strcmp(type, "array") == 0 || strcmp(type, "object") == 0
               ? error_set(error, "%s must be a text, not an %s", key, type)
               : set_name(member, value, error);
  case MECHANISM: return set_mechanism(parse->request, value, error);
  case WORD: return set_word(key, member, value, error);
  case FLAG:
    if (!boolean) return error_set(error, "%s must be true or false", key);
    *(int *)member = sqlite3_value_int(value);
    return 1;
  case NUMBER:
    if (parse->form == OPTIONS_OF_STATE) return set_bits(option, value, member, error);
    /* fall through */
  case WHOLE_NUMBER:
    return boolean ? error_set(error, "%s must be a number, not a Boolean", key)
                   : set_number(option, value, member, error);
  case PROTECTS: /* any other text differs from what request_parameters() writes */
    *(int *)member = plain_text(value) && strcmp(plain_text(value), "row") == 0;
    return 1;
  case QUANTILES:
    return boolean ? error_set(error, "%s must be a number, not a Boolean", key)
                   : set_quantiles(member, value, error);
  case READ: return option->read(parse->request, parse->json, value, error);
  case KEY: return replace_text(member, key_text(value), error);
  case KEYS:
    if (parse->form & OPTIONS_OF_PLAN && strcmp(type, "integer") == 0)
      return domain_check(value, &key_guess_domain, &parse->request->key_guess, error);
    if (strcmp(type, "object") == 0 && option->parameter == P_KEYS)
      return replace_text(&parse->request->attributes,
                          sqlite3_mprintf("%s", sqlite3_value_text(value)), error);
    return strcmp(type, "array") == 0 || is_array_text(value)
               ? set_keys(parse, (const char *)sqlite3_value_text(value), error)
               : error_set(error, "%s must be a JSON array%s", keys_called(parse->request),
                           not_a(value, SQLITE_TEXT));
  case WAYS:
    return strcmp(type, "integer") == 0 || strcmp(type, "array") == 0
               ? replace_text(member, sqlite3_mprintf("%s", sqlite3_value_text(value)), error)
               : error_set(error,
                           "ways must be a whole number of attributes, or an array of tables");
  case PERIODS: return set_periods(parse, type, value);
  case SHARD_NAME: return set_shard(member, value, error);
  case SHARD_NAMES: return set_shards(member, type, value, error);
  case QUERY:
  case TABLES:
    if (strcmp(type, option->type == QUERY ? "text" : "object") != 0)
      return parse->form & OPTIONS_OF_PLAN
                 ? error_set(error, "%s must be the text of one SELECT, not an %s", key, type)
                 : error_set(error, "the state's %s is malformed", key);
    return replace_text(member, query_trimmed((const char *)sqlite3_value_text(value)), error);
  default: return 1; /* an earlier step has read the option */
  }
}

static int take_option(void *context, const char *key, const char *type, sqlite3_value *value) {
  struct parse *parse = context;
  const struct option *option;
  for (int i = 0; (option = option_at(parse->request->aggregate, i)) != 0; i++) {
    if (!applies(parse->request->aggregate, parse->form, option) ||
        strcmp(option->domain.parameter, key) != 0)
      continue;
    return set_option(parse, option, type, value, parse->error);
  }
  return unknown_here(parse, key, parse->error);
}

static const struct option *option_of(const struct aggregate *aggregate, enum parameter parameter) {
  const struct option *option;
  int i = 0;
  do option = option_at(aggregate, i++);
  while (option && (option->parameter != parameter || !option->is_argument));
  return option;
}

const char *request_parameter(const struct aggregate *aggregate, enum parameter parameter) {
  const struct option *option = option_of(aggregate, parameter);
  return option ? option->domain.parameter : "a parameter";
}

/* A NULL radius leaves the parameter unset. finish_ou() (release/parameters.c) then requires theta
** and rho. */
int request_argument(struct request *request, struct json *json, enum parameter parameter,
                     sqlite3_value *value) {
  struct parse parse = {request, json, 0, json->error};
  if (parameter == P_RADIUS && sqlite3_value_type(value) == SQLITE_NULL) return 1;
  const struct option *option = option_of(request->aggregate, parameter);
  return !option || set_option(&parse, option, "", value, parse.error);
}

/* ---- requests -------------------------------------------------------------------------------- */

int request_read(struct request *request, struct json *json, const char *text, int form) {
  struct parse parse = {request, json, form, json->error};
  return json_members(json, text, take_option, &parse) && settle_ways(&parse);
}

static int read_name_or_options(struct request *request, struct json *json, sqlite3_value *argument,
                                int form) {
  if (!argument || sqlite3_value_type(argument) == SQLITE_NULL) return 1;
  const char *text = plain_text(argument);
  if (!text || !*text)
    return error_set(json->error, "name or options must be a name or a JSON object%s",
                     text ? ", not an empty text" : not_a(argument, SQLITE_TEXT));
  if (text[strspn(text, " \t\r\n")] == '{') return request_read(request, json, text, form);
  return form == OPTIONS_OF_PARTIAL
             ? error_set(json->error, "options must be a JSON object or NULL, not another text")
             : set_name(&request->name, argument, json->error);
}

int request_start(struct request *request, const struct aggregate *aggregate, struct json *json,
                  sqlite3_value *tier, sqlite3_value *name_or_options, int form) {
  *request = (struct request){.aggregate = aggregate};
  const struct option *option;
  size_t details = aggregate->procedure ? aggregate->procedure->details : 0;
  if (details) {
    request->details = sqlite3_malloc64(details);
    if (!request->details) return error_set_memory(json->error);
    memset(request->details, 0, details);
  }
  for (int i = 0; (option = option_at(aggregate, i)) != 0; i++) {
    if (option->type == NUMBER || option->type == WHOLE_NUMBER)
      *(double *)member_of(request, option) = NAN;
  }
  request->key_guess = NAN;
  const char *text = tier ? plain_text(tier) : 0;
  if (tier && !text)
    return error_set(json->error, "tier must be the name of a tier%s", not_a(tier, SQLITE_TEXT));
  if (text) request->tier = sqlite3_mprintf("%s", text);
  if (text && !request->tier) return error_set_memory(json->error);
  return read_name_or_options(request, json, name_or_options, form);
}

/* ---- parameters of a shard ------------------------------------------------------------------- */

/* Appends a number: in the form OPTIONS_OF_STATE as its bits (see set_bits()), and in the other
** forms, which people read, as a decimal. */
static void append_number(sqlite3_str *json, const char *name, double value, int form) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (isnan(value)) return;
  if (form == OPTIONS_OF_STATE) {
    sqlite3_str_appendf(json, ",\"%s\":\"%016llx\"", name, (unsigned long long)bits);
  } else {
    sqlite3_str_appendf(json, ",\"%s\":%s", name, NUMBER_TEXT(value));
  }
}

static void append_parameter(sqlite3_str *json, const struct request *request,
                             const struct option *option, int form) {
  const char *name = option->domain.parameter;
  const void *member = member_of(request, option);
  const char *text = 0; /* JSON */
  switch (option->type) {
  case NUMBER: append_number(json, name, *(const double *)member, form); break;
  case WHOLE_NUMBER:
    if (!isnan(*(const double *)member))
      sqlite3_str_appendf(json, ",\"%s\":%d", name, (int)*(const double *)member);
    break;
  case FLAG: text = *(const int *)member ? "true" : "false"; break;
  case PROTECTS: text = request->rows ? "\"row\"" : "\"unit\""; break;
  case KEYS:
    text = request->cross_keys   ? request->cross_keys->keys_text
           : request->keys_given ? request->keys_given
                                 : request->keys;
    break;
  case WAYS: text = request->cross_keys ? request->cross_keys->ways_text : 0; break;
  case MECHANISM:
    if (request->mechanism) sqlite3_str_appendf(json, ",\"%s\":\"%s\"", name, request->mechanism);
    break;
  case QUERY:
    if (!request->sql) break;
    sqlite3_str_appendf(json, ",\"%s\":", name);
    json_append_string(json, request->sql);
    break;
  case TABLES: text = request->tables; break;
  default: break; /* this option is not part of a state, or has been written earlier */
  }
  if (text) sqlite3_str_appendf(json, ",\"%s\":%s", name, text);
}

char *request_parameters(const struct request *request, int form) {
  sqlite3_str *json = sqlite3_str_new(0);
  sqlite3_str_appendf(json, "{\"kind\":\"%s\"", request->aggregate->kind);
  const struct option *option;
  for (int i = 0; (option = option_at(request->aggregate, i)) != 0; i++)
    if (applies(request->aggregate, form, option)) append_parameter(json, request, option, form);
  sqlite3_str_appendall(json, "}");
  return sqlite3_str_finish(json);
}
