/* parameters.c: see parameters.h. */
#include "release/parameters.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "functions/functions.h"
#include "functions/models.h"
#include "base/vector_text.h"
#include "release/reports.h"
#include "query/row_reader.h"
#include "base/sql_text.h"

SQLITE_EXTENSION_INIT3

/* ---- options: one row each ------------------------------------------------------------------- */

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
  KERNEL,
  STATE,
  READ_ALREADY
};

struct option {
  struct domain domain; /* its name, and for numbers what they may be */
  enum option_type type;
  size_t offset;            /* in struct request */
  int forms;                /* which callers have it */
  enum parameter parameter; /* which it sets, for kinds that take it; PARAMETERS: all kinds */
  int is_argument;          /* the parameter may have a place in the call */
};

#define SHARD       (OPTIONS_OF_PARTIAL | OPTIONS_OF_STATE)
#define NO_ARGUMENT (OPTIONS_OF_RELEASE | OPTIONS_OF_PLAN | OPTIONS_OF_MERGE | SHARD)
#define PUBLISHING  (OPTIONS_OF_AGGREGATE | OPTIONS_OF_RELEASE | OPTIONS_OF_PLAN | OPTIONS_OF_MERGE)
#define ALL         (OPTIONS_OF_AGGREGATE | OPTIONS_OF_RELEASE | OPTIONS_OF_PLAN | SHARD)
#define IN(member)  offsetof(struct request, member)

static const struct option options[] = {
    {{"name", 0, 0, 0, 0}, TEXT, IN(name), PUBLISHING, PARAMETERS, 0},
    {{"weight", 0, 1, 1, 0}, NUMBER, IN(weight), PUBLISHING, PARAMETERS, 0},
    {{"refine", 0, 0, 0, 0}, FLAG, IN(refine), PUBLISHING, PARAMETERS, 0},
    {{"mechanism", 0, 0, 0, 0}, MECHANISM, IN(mechanism), PUBLISHING, PARAMETERS, 0},
    {{"clip", LAYOUT_MIN_CLIP, LAYOUT_MAX_CLIP, 0, 0}, NUMBER, IN(clip), ALL, P_CLIP, 1},
    {{"lo", -LAYOUT_MAX_RANGE, LAYOUT_MAX_RANGE, 0, 0}, NUMBER, IN(lo), ALL, P_LO, 1},
    {{"hi", -LAYOUT_MAX_RANGE, LAYOUT_MAX_RANGE, 0, 0}, NUMBER, IN(hi), ALL, P_HI, 1},
    {{"q", 0, 1, 0, 0}, QUANTILES, IN(quantiles), PUBLISHING, P_Q, 1},
    {{"dim", 1, LAYOUT_MAX_SIZE, 0, 0}, WHOLE_NUMBER, IN(size), ALL, P_DIM, 1},
    {{"bins", 1, LAYOUT_MAX_BINS, 0, 0}, WHOLE_NUMBER, IN(size), ALL, P_BINS, 1},
    {{"keys", 0, 0, 0, 0}, KEYS, IN(keys), ALL, P_KEYS, 0},
    {{"candidates", 0, 0, 0, 0}, KEYS, IN(keys), ALL, P_CANDIDATES, 1},
    {{"max_groups", 1, LAYOUT_MAX_GROUPS, 0, 0}, WHOLE_NUMBER, IN(max_groups), ALL, P_SELECT, 0},
    {{"key_share", 0, 1, 1, 0}, NUMBER, IN(key_share), PUBLISHING, P_SELECT, 0},
    {{"radius", 0, INFINITY, 1, 1}, NUMBER, IN(radius), PUBLISHING, P_RADIUS, 1},
    {{"centre", -INFINITY, INFINITY, 1, 1}, NUMBER, IN(centre), PUBLISHING, P_RADIUS, 0},
    {{"theta", 0, INFINITY, 0, 1}, NUMBER, IN(theta), PUBLISHING, P_RADIUS, 0},
    {{"steps", 1000, 1e12, 0, 0}, WHOLE_NUMBER, IN(steps), OPTIONS_OF_RELEASE, PARAMETERS, 0},
    {{"half_width", 0, INFINITY, 1, 1}, NUMBER, IN(half_width), OPTIONS_OF_PLAN, PARAMETERS, 0},
    {{"tier", 0, 0, 0, 0}, READ_ALREADY, 0, OPTIONS_OF_ELEMENT, PARAMETERS, 0},
    {{"kind", 0, 0, 0, 0}, READ_ALREADY, 0, OPTIONS_OF_ELEMENT | OPTIONS_OF_STATE, PARAMETERS, 0},
    {{"protects", 0, 0, 0, 0}, PROTECTS, IN(rows), SHARD, PARAMETERS, 0},
    {{"whole_units", 0, 0, 0, 0}, FLAG, IN(whole_units), SHARD, PARAMETERS, 0},
    {{"rho", 0, INFINITY, 1, 1}, NUMBER, IN(rho), PUBLISHING, P_RADIUS, 0},
    {{"t", 0, INFINITY, 1, 1}, NUMBER, IN(t), PUBLISHING, P_RADIUS, 0},
    {{"kernel", 0, 0, 0, 0}, KERNEL, IN(kernel), PUBLISHING, P_KERNEL, 1},
    {{"n", 1, RESPONSE_MAX_ROWS, 0, 0}, WHOLE_NUMBER, IN(reports), PUBLISHING, P_SURVEY, 0},
    {{"otherwise", 0, 0, 0, 0}, STATE, IN(otherwise), PUBLISHING, P_SURVEY, 0},
    {{"loss", 0, 0, 0, 0}, WORD, IN(loss), PUBLISHING, P_LOSS, 1},
    {{"stop", 0, 0, 0, 0}, WORD, IN(stop), PUBLISHING, P_SGD, 0},
    {{"schedule", 0, 0, 0, 0}, WORD, IN(schedule), PUBLISHING, P_SGD, 0},
    {{"decay", 0, SGD_MAX_DECAY, 1, 0}, NUMBER, IN(descent.decay), PUBLISHING, P_SGD, 0},
    {{"key_share", 0, 1, 1, 0}, NUMBER, IN(key_share), PUBLISHING, P_SGD, 0},
    {{"n", 1, SGD_MAX_ROWS, 0, 0}, WHOLE_NUMBER, IN(descent.rows), PUBLISHING, P_SGD, 0},
    {{"radius", 0, INFINITY, 1, 1}, NUMBER, IN(descent.radius), PUBLISHING, P_SGD, 0},
    {{"l2", 0, INFINITY, 0, 1}, NUMBER, IN(descent.l2), PUBLISHING, P_SGD, 0},
    {{"eta", 0, INFINITY, 1, 1}, NUMBER, IN(descent.eta), PUBLISHING, P_SGD, 0},
    {{"bound", 0, INFINITY, 1, 1}, NUMBER, IN(descent.bound), PUBLISHING, P_SGD, 0},
    {{"threshold", 0, INFINITY, 1, 1}, NUMBER, IN(descent.threshold), PUBLISHING, P_SGD, 0},
    {{"public_rows", 0, SGD_MAX_PUBLIC, 0, 0},
     WHOLE_NUMBER,
     IN(descent.public_rows),
     PUBLISHING,
     P_SGD,
     0},
};
#define OPTION_COUNT ((int)(sizeof options / sizeof *options))

/* What take_option() works on. */
struct parse {
  struct request *request;
  struct ledger *ledger;
  int form;
  char *error;
};

/* A parameter that has its place among the arguments is an option only where there are none. */
static int applies(const struct aggregate *aggregate, int form, const struct option *option) {
  if (!(option->forms & form)) return 0;
  if (option->parameter == PARAMETERS) return 1;
  int placed = option->is_argument && aggregate->places.parameters[option->parameter];
  return (aggregate->takes & 1u << option->parameter) && (!placed || form & NO_ARGUMENT);
}

static char *unknown_option(const struct parse *parse) {
  sqlite3_str *known = sqlite3_str_new(0);
  for (int i = 0; i < OPTION_COUNT; i++) {
    if (applies(parse->request->aggregate, parse->form, &options[i]))
      sqlite3_str_appendf(known, "%s%s", sqlite3_str_length(known) ? ", " : "",
                          options[i].domain.parameter);
  }
  char *list = sqlite3_str_finish(known);
  char *message = error_message("unknown option (known options: %s)", list ? list : "");
  sqlite3_free(list);
  return message;
}

/* Names that unnamed releases get are not for others to take. */
static char *set_name(char **name, sqlite3_value *value) {
  const char *text = plain_text(value);
  if (!text || !*text)
    return error_message("name must be a text that is not empty%s", not_a(value, SQLITE_TEXT));
  if (strncmp(text, "release-", 8) == 0 && text[8] &&
      strspn(text + 8, "0123456789") == strlen(text + 8))
    return error_message("name must not be like 'release-1', which is kept for unnamed releases");
  sqlite3_free(*name);
  *name = sqlite3_mprintf("%s", text);
  return *name ? 0 : error_message("out of memory");
}

/* A word of a list, which is checked once all options are known. */
static char *set_word(const char *key, char **word, sqlite3_value *value) {
  const char *text = plain_text(value);
  if (!text || !*text) return error_message("%s must be a text%s", key, not_a(value, SQLITE_TEXT));
  sqlite3_free(*word);
  *word = sqlite3_mprintf("%s", text);
  return *word ? 0 : error_message("out of memory");
}

/* ---- lists ----------------------------------------------------------------------------------- */

#define MOST_QUANTILES 1000

/* One number in [0, 1], or the text of a JSON array of such; kept as JSON. */
static char *set_quantiles(char **quantiles, sqlite3_value *value) {
  double numbers[MOST_QUANTILES] = {0};
  int type = sqlite3_value_type(value), count = 0;
  const char *text = type == SQLITE_TEXT ? plain_text(value) : 0;
  int is_array = text && text[strspn(text, " \t\r\n")] == '[';
  if (is_array) count = vector_text_list(text, numbers, MOST_QUANTILES);
  if (type == SQLITE_INTEGER || type == SQLITE_FLOAT)
    numbers[count++] = sqlite3_value_double(value);
  int sound = count > 0;
  for (int i = 0; i < count; i++) sound = sound && numbers[i] >= 0 && numbers[i] <= 1;
  if (!sound)
    return error_message(
        "q must be a number in [0, 1] or a JSON array of at most %d such numbers%s", MOST_QUANTILES,
        text ? "" : not_a(value, SQLITE_FLOAT));
  sqlite3_str *json = sqlite3_str_new(0);
  for (int i = 0; i < count; i++) {
    sqlite3_str_appendall(json, i ? "," : is_array ? "[" : "");
    json_append_number(json, numbers[i]);
  }
  if (is_array) sqlite3_str_appendall(json, "]");
  sqlite3_free(*quantiles);
  *quantiles = sqlite3_str_finish(json);
  return *quantiles ? 0 : error_message("out of memory");
}

static int takes(const struct request *request, enum parameter parameter) {
  return (request->aggregate->takes & 1u << parameter) != 0;
}

/* What people call the keys of a kind. */
static const char *keys_called(const struct request *request) {
  return takes(request, P_CANDIDATES) ? "candidates" : "keys";
}

static int take_key(void *context, const char *key, const char *type, sqlite3_value *value) {
  struct parse *parse = context;
  struct request *request = parse->request;
  (void)key;
  (void)type;
  if (request->key_count == LAYOUT_MAX_KEYS) {
    parse->error =
        error_message("%s has more than %d elements", keys_called(request), LAYOUT_MAX_KEYS);
    return 0;
  }
  int used = request->key_count;
  if ((used & (used - 1)) == 0) { /* a power of two: the list is full */
    char **grown =
        sqlite3_realloc64(request->key_list, sizeof *grown * (sqlite3_uint64)(used ? 2 * used : 1));
    if (grown) request->key_list = grown;
    if (!grown) parse->error = error_message("out of memory");
  }
  char *text = parse->error ? 0 : key_text(value);
  if (!text && !parse->error) parse->error = error_message("out of memory");
  if (text) request->key_list[request->key_count++] = text;
  return !parse->error;
}

static int by_text(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* An argument is a text, and says by itself that it is an array. */
static int is_array_text(sqlite3_value *value) {
  const char *text = plain_text(value);
  return text && text[strspn(text, " \t\r\n")] == '[';
}

/* Public keys: sorted, each once, and as JSON. */
static char *set_keys(struct parse *parse, const char *json) {
  struct request *request = parse->request;
  if (!json_elements(ledger_json(parse->ledger), json, take_key, parse))
    return parse->error ? parse->error
                        : error_message("%s", error_text(ledger_error(parse->ledger)));
  if (!request->key_count)
    return takes(request, P_KEYS)
               ? error_message("keys is empty (leave it out to select keys privately)")
               : error_message("candidates is empty");
  qsort(request->key_list, (size_t)request->key_count, sizeof *request->key_list, by_text);
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
  request->keys = keys_json(request->key_list, kept);
  return request->keys ? 0 : error_message("out of memory");
}

char *keys_json(char *const *keys, int count) {
  sqlite3_str *text = sqlite3_str_new(0);
  for (int i = 0; i < count; i++) {
    sqlite3_str_appendall(text, i ? "," : "[");
    json_append_string(text, keys[i]);
  }
  sqlite3_str_appendall(text, "]");
  return sqlite3_str_finish(text);
}

/* ---- one option or argument ------------------------------------------------------------------ */

static char *set_number(const struct option *option, sqlite3_value *value, double *member) {
  char *error = domain_check(value, &option->domain, member);
  if (!error) *member += 0.0; /* -0.0 is 0.0 */
  if (!error && option->type == WHOLE_NUMBER && *member != floor(*member))
    error = error_message("%s must be a whole number", option->domain.parameter);
  return error;
}

static char *set_mechanism(struct request *request, sqlite3_value *value) {
  const char *name = plain_text(value);
  if (!name) return error_message("mechanism must be a text%s", not_a(value, SQLITE_TEXT));
  if (!mechanism_find(request->aggregate, name)) return unknown_mechanism(request->aggregate);
  request->mechanism = sqlite3_mprintf("%s", name);
  return request->mechanism ? 0 : error_message("out of memory");
}

/*
** A number as a state has it: the digits of its bits. Decimals would not do: versions of SQLite
** differ in how they write them, and old ones in how they read them.
*/
static char *set_bits(const struct option *option, sqlite3_value *value, double *member) {
  const char *digits = plain_text(value);
  uint64_t bits = 0;
  int count = digits ? (int)strspn(digits, "0123456789abcdef") : 0;
  for (int i = 0; i < count; i++)
    bits = bits << 4 | (uint64_t)(digits[i] <= '9' ? digits[i] - '0' : digits[i] - 'a' + 10);
  memcpy(member, &bits, sizeof bits);
  *member += 0.0; /* a state that says -0.0 is none that dp_partial() wrote */
  if (count == 16 && !digits[16] && domain_holds(&option->domain, *member)) return 0;
  return error_message("the state's %s is no number that it can be", option->domain.parameter);
}

/* As dp_init() has it. */
static char *set_protects(int *rows, sqlite3_value *value) {
  const char *text = plain_text(value);
  *rows = text && strcmp(text, "row") == 0;
  return *rows || (text && strcmp(text, "unit") == 0)
             ? 0
             : error_message("protects must be 'unit' or 'row'%s", not_a(value, SQLITE_TEXT));
}

/* Sets what the option sets; type is that of its JSON value. */
static char *set_option(struct parse *parse, const struct option *option, const char *type,
                        sqlite3_value *value) {
  const char *key = option->domain.parameter;
  void *member = (char *)parse->request + option->offset;
  int boolean = strcmp(type, "true") == 0 || strcmp(type, "false") == 0;
  switch (option->type) {
  case TEXT:
    return strcmp(type, "array") == 0 || strcmp(type, "object") == 0
               ? error_message("%s must be a text, not an %s", key, type)
               : set_name(member, value);
  case MECHANISM: return set_mechanism(parse->request, value);
  case WORD: return set_word(key, member, value);
  case FLAG:
    if (!boolean) return error_message("%s must be true or false", key);
    *(int *)member = sqlite3_value_int(value);
    return 0;
  case NUMBER:
    if (parse->form == OPTIONS_OF_STATE) return set_bits(option, value, member);
    /* fall through */
  case WHOLE_NUMBER:
    return boolean ? error_message("%s must be a number, not a Boolean", key)
                   : set_number(option, value, member);
  case PROTECTS: return set_protects(member, value);
  case QUANTILES:
    return boolean ? error_message("%s must be a number, not a Boolean", key)
                   : set_quantiles(member, value);
  case KERNEL:
    return sqlite3_value_type(value) == SQLITE_TEXT
               ? responses_kernel(parse->request, parse->ledger,
                                  (const char *)sqlite3_value_text(value))
               : error_message("kernel must be a JSON array of cells [x, y, p]%s",
                               not_a(value, SQLITE_TEXT));
  case STATE:
    sqlite3_free(*(char **)member);
    *(char **)member = key_text(value);
    return *(char **)member ? 0 : error_message("out of memory");
  case KEYS:
    return strcmp(type, "array") == 0 || is_array_text(value)
               ? set_keys(parse, (const char *)sqlite3_value_text(value))
               : error_message("%s must be a JSON array%s", keys_called(parse->request),
                               not_a(value, SQLITE_TEXT));
  default: return 0; /* read already */
  }
}

static int take_option(void *context, const char *key, const char *type, sqlite3_value *value) {
  struct parse *parse = context;
  for (int i = 0; i < OPTION_COUNT; i++) {
    const struct option *option = &options[i];
    if (!applies(parse->request->aggregate, parse->form, option) ||
        strcmp(option->domain.parameter, key) != 0)
      continue;
    parse->error = set_option(parse, option, type, value);
    return parse->error == 0;
  }
  parse->error = unknown_option(parse);
  return 0;
}

static const struct option *option_of(enum parameter parameter) {
  int i = 0;
  while (i < OPTION_COUNT && (options[i].parameter != parameter || !options[i].is_argument)) i++;
  return i < OPTION_COUNT ? &options[i] : 0;
}

const char *request_parameter(enum parameter parameter) {
  const struct option *option = option_of(parameter);
  return option ? option->domain.parameter : "a parameter";
}

/* A radius is NULL where theta and rho are given. */
char *request_argument(struct request *request, struct ledger *ledger, enum parameter parameter,
                       sqlite3_value *value) {
  struct parse parse = {request, ledger, 0, 0};
  if (parameter == P_RADIUS && sqlite3_value_type(value) == SQLITE_NULL) return 0;
  const struct option *option = option_of(parameter);
  return option ? set_option(&parse, option, "", value) : 0;
}

/* ---- requests -------------------------------------------------------------------------------- */

char *request_read(struct request *request, struct ledger *ledger, const char *json, int form) {
  struct parse parse = {request, ledger, form, 0};
  if (!json_members(ledger_json(ledger), json, take_option, &parse) && !parse.error)
    parse.error = error_message("%s", error_text(ledger_error(ledger)));
  return parse.error;
}

static char *read_name_or_options(struct request *request, struct ledger *ledger,
                                  sqlite3_value *argument, int form) {
  if (!argument || sqlite3_value_type(argument) == SQLITE_NULL) return 0;
  const char *text = plain_text(argument);
  if (!text || !*text)
    return error_message("name or options must be a name or a JSON object%s",
                         text ? ", not an empty text" : not_a(argument, SQLITE_TEXT));
  int is_name = text[strspn(text, " \t\r\n")] != '{';
  if (is_name && form == OPTIONS_OF_PARTIAL)
    return error_message("options must be a JSON object or NULL, not another text");
  return is_name ? set_name(&request->name, argument) : request_read(request, ledger, text, form);
}

char *request_start(struct request *request, const struct aggregate *aggregate,
                    struct ledger *ledger, sqlite3_value *tier, sqlite3_value *name_or_options,
                    int form) {
  *request = (struct request){.aggregate = aggregate};
  for (int i = 0; i < OPTION_COUNT; i++) {
    if (options[i].type == NUMBER || options[i].type == WHOLE_NUMBER)
      *(double *)((char *)request + options[i].offset) = NAN;
  }
  const char *text = tier ? plain_text(tier) : 0;
  if (tier && !text)
    return error_message("tier must be the name of a tier%s", not_a(tier, SQLITE_TEXT));
  if (text) request->tier = sqlite3_mprintf("%s", text);
  if (text && !request->tier) return error_message("out of memory");
  return read_name_or_options(request, ledger, name_or_options, form);
}

/* ---- defaults and checks across parameters --------------------------------------------------- */

#define DEFAULT_LEAVES 1024
#define DEFAULT_GROUPS 4

static int is_given(double x) {
  return !isnan(x);
}

static double or_else(double x, double otherwise) {
  return isnan(x) ? otherwise : x;
}

static char *finish_clip(struct request *request, int by_unit) {
  double clip = request->aggregate->default_clip;
  request->clip = or_else(request->clip, clip > 0 ? clip : NAN);
  if (!is_given(request->clip))
    return error_message("clip is missing (the bound on what one %s contributes)",
                         by_unit ? "unit" : "row");
  if (!(clip > 0)) return 0;
  /* Where clip is a number of rows, a row that is protected itself is one. */
  if (!by_unit) request->clip = fmin(request->clip, 1);
  if (request->aggregate->family->statistic != STATISTIC_NUMBER &&
      !(request->clip >= LAYOUT_MIN_ROWS && request->clip <= LAYOUT_MAX_ROWS))
    return error_message("clip must be a number of rows in [%g, %g]", LAYOUT_MIN_ROWS,
                         LAYOUT_MAX_ROWS);
  return 0;
}

static char *finish_range(struct request *request) {
  if (!takes(request, P_LO)) return 0;
  if (!is_given(request->lo) || !is_given(request->hi))
    return error_message("lo and hi are missing (the public range of x)");
  if (!(request->lo < request->hi) || !(request->hi / 2 - request->lo / 2 > 0))
    return error_message("lo must be below hi");
  return 0;
}

static char *finish_size(struct request *request) {
  int is_tree = request->aggregate->family->is_tree;
  if (is_tree) request->size = or_else(request->size, DEFAULT_LEAVES);
  if ((takes(request, P_DIM) || takes(request, P_BINS)) && !is_given(request->size))
    return error_message("%s is missing", takes(request, P_DIM) ? "dim" : "bins");
  int size = is_given(request->size) ? (int)request->size : 0;
  if (is_tree && (size < 2 || (size & (size - 1))))
    return error_message("bins must be a power of two from 2 to %d", LAYOUT_MAX_BINS);
  return 0;
}

static char *finish_quantiles(struct request *request) {
  if (!request->aggregate->family->is_tree || request->quantiles) return 0;
  if (takes(request, P_Q))
    return error_message("q is missing (a number in [0, 1] or a JSON array)");
  request->quantiles = sqlite3_mprintf("0.5");
  return request->quantiles ? 0 : error_message("out of memory");
}

static char *finish_keys(struct request *request, int by_unit) {
  if (takes(request, P_CANDIDATES) && !request->keys)
    return error_message("candidates is missing (a JSON array)");
  if (!takes(request, P_KEYS)) return 0;
  int selecting = is_given(request->max_groups) || is_given(request->key_share);
  if (request->keys && selecting)
    return error_message("%s is for keys that are selected privately: leave it out, or keys",
                         is_given(request->max_groups) ? "max_groups" : "key_share");
  if (request->keys) return 0;
  if (request->aggregate->is_ou)
    return error_message("keys is missing: OU needs to know in public how many groups there are");
  /* A row that is protected itself has one key. */
  request->max_groups = by_unit ? or_else(request->max_groups, DEFAULT_GROUPS) : 1;
  request->key_share = or_else(request->key_share, DEFAULT_KEY_SHARE);
  return 0;
}

static char *finish_ou(struct request *request) {
  const struct aggregate *aggregate = request->aggregate;
  int has_theta = is_given(request->theta), has_rho = is_given(request->rho);
  if (has_theta != has_rho)
    return error_message("theta and rho belong together (%s is missing)",
                         has_theta ? "rho" : "theta");
  if (is_given(request->t) && !has_theta)
    return error_message(
        "t is a time of the process that theta and rho describe (they are missing)");
  if (is_given(request->t) && aggregate->family->shrinks_average)
    return error_message(
        "t is for sums: the noise of an average, and with it the time of its process, "
        "depends on the number of rows");
  if (has_theta && is_given(request->radius))
    return error_message(
        "radius follows from theta and rho (give NULL as the radius, or leave theta and "
        "rho out)");
  if (has_theta && request->theta == 0 && is_given(request->centre))
    return error_message("centre is for theta above 0 (theta 0 shrinks nothing)");
  double middle = aggregate->family->shrinks_average ? request->lo / 2 + request->hi / 2 : 0;
  request->centre = aggregate->is_ou ? or_else(request->centre, middle) : 0;
  if (aggregate->is_ou && !has_theta && !is_given(request->radius))
    return error_message("radius must be a finite number above 0 (the public bound on the distance "
                         "of the true answer from the centre), unless theta and rho are given");
  return 0;
}

static char *finish_precision(struct request *request) {
  const struct aggregate *aggregate = request->aggregate;
  if (request->refine && !request->name)
    return error_message("refine needs the name of the release that is to be refined");
  if (is_given(request->half_width)) {
    if (is_given(request->weight))
      return error_message("half_width asks for a weight: give one of them, not both");
    const struct noise_law *noise = mechanism_find(aggregate, request->mechanism)->noise;
    if (!noise || !noise->solves_width || aggregate->is_ou || !aggregate->family->is_linear)
      return error_message("half_width is for Gaussian counts and sums without shrink, not '%s'",
                           aggregate->kind);
  }
  if (is_given(request->t) && is_given(request->weight))
    return error_message("t asks for a weight: give one of them, not both");
  request->weight = or_else(request->weight, 1);
  return 0;
}

char *request_finish_shape(struct request *request, int by_unit) {
  if (!by_unit && request->aggregate->places.unit == 1)
    return error_message("the ledger protects rows, and every row is a unit (use dp_count)");
  char *error = finish_clip(request, by_unit);
  if (!error) error = finish_range(request);
  if (!error) error = finish_size(request);
  if (!error) error = finish_keys(request, by_unit);
  return error;
}

char *request_finish(struct request *request, int by_unit) {
  char *error = request_finish_shape(request, by_unit);
  if (!error) error = finish_quantiles(request);
  if (!error) error = finish_precision(request);
  if (!error) error = finish_ou(request);
  if (!error && request->aggregate->family->statistic == STATISTIC_MODEL)
    error = models_finish(request);
  if (!error && takes(request, P_KERNEL)) error = responses_finish(request, by_unit);
  return error;
}

void request_clear(struct request *request) {
  for (int i = 0; i < request->key_count; i++) sqlite3_free(request->key_list[i]);
  sqlite3_free(request->key_list);
  sqlite3_free(request->tier);
  sqlite3_free(request->name);
  sqlite3_free(request->mechanism);
  sqlite3_free(request->quantiles);
  sqlite3_free(request->keys);
  sqlite3_free(request->loss);
  sqlite3_free(request->stop);
  sqlite3_free(request->schedule);
  sqlite3_free(request->model);
  sqlite3_free(request->otherwise);
  sqlite3_free(request->kernel);
  sqlite3_free(request->sql);
  sqlite3_free(request->tables);
  *request = (struct request){0};
}

/* ---- requests as releases -------------------------------------------------------------------- */

static int whole(double x) {
  return isnan(x) ? 0 : (int)x;
}

struct ledger_release request_release(const struct request *request) {
  const struct aggregate *aggregate = request->aggregate;
  return (struct ledger_release){.kind = (char *)aggregate->kind,
                                 .mechanism =
                                     (char *)mechanism_find(aggregate, request->mechanism)->name,
                                 .quantiles = request->quantiles,
                                 .keys = request->keys,
                                 .model = request->model,
                                 .sql = request->sql,
                                 .clip = request->clip,
                                 .weight = request->weight,
                                 .centre = request->centre,
                                 .radius = request->radius,
                                 .theta = request->theta,
                                 .rho = request->rho,
                                 .lo = request->lo,
                                 .hi = request->hi,
                                 .key_share = request->key_share,
                                 .size = whole(request->size),
                                 .max_groups = whole(request->max_groups)};
}

static void append_option(sqlite3_str *json, const char *name, double value) {
  if (!isnan(value)) sqlite3_str_appendf(json, ",\"%s\":%!.17g", name, value);
}

static void append_whole(sqlite3_str *json, const char *name, double value) {
  if (!isnan(value)) sqlite3_str_appendf(json, ",\"%s\":%d", name, (int)value);
}

/* A number: its bits for a state, decimals for people. */
static void append_number(sqlite3_str *json, const char *name, double value, int form) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (form != OPTIONS_OF_STATE) {
    append_option(json, name, value);
  } else if (!isnan(value)) {
    sqlite3_str_appendf(json, ",\"%s\":\"%016llx\"", name, (unsigned long long)bits);
  }
}

static void append_parameter(sqlite3_str *json, const struct request *request,
                             const struct option *option, int form) {
  const char *name = option->domain.parameter;
  const void *member = (const char *)request + option->offset;
  switch (option->type) {
  case NUMBER: append_number(json, name, *(const double *)member, form); break;
  case WHOLE_NUMBER: append_whole(json, name, *(const double *)member); break;
  case FLAG:
    sqlite3_str_appendf(json, ",\"%s\":%s", name, *(const int *)member ? "true" : "false");
    break;
  case PROTECTS:
    sqlite3_str_appendf(json, ",\"%s\":\"%s\"", name, request->rows ? "row" : "unit");
    break;
  case KEYS:
    if (request->keys) sqlite3_str_appendf(json, ",\"%s\":%s", name, request->keys);
    break;
  default: break; /* of no state, or written already */
  }
}

char *request_parameters(const struct request *request, int form) {
  sqlite3_str *json = sqlite3_str_new(0);
  sqlite3_str_appendf(json, "{\"kind\":\"%s\"", request->aggregate->kind);
  for (int i = 0; i < OPTION_COUNT; i++) {
    if (applies(request->aggregate, form, &options[i]))
      append_parameter(json, request, &options[i], form);
  }
  sqlite3_str_appendall(json, "}");
  return sqlite3_str_finish(json);
}

char *request_options(const struct request *request) {
  sqlite3_str *json = sqlite3_str_new(0);
  sqlite3_str_appendf(json, "{\"clip\":%!.17g", request->clip);
  if (request->mechanism) sqlite3_str_appendf(json, ",\"mechanism\":\"%s\"", request->mechanism);
  if (request->weight != 1) append_option(json, "weight", request->weight);
  if (request->aggregate->is_ou) append_option(json, "centre", request->centre);
  append_option(json, "radius", request->radius);
  append_option(json, "theta", request->theta);
  append_option(json, "rho", request->rho);
  append_option(json, "lo", request->lo);
  append_option(json, "hi", request->hi);
  append_whole(json, takes(request, P_DIM) ? "dim" : "bins", request->size);
  if (request->quantiles) sqlite3_str_appendf(json, ",\"q\":%s", request->quantiles);
  append_whole(json, "max_groups", request->max_groups);
  append_option(json, "key_share", request->key_share);
  if (request->model) sqlite3_str_appendf(json, ",\"model\":%s", request->model);
  sqlite3_str_appendall(json, "}");
  return sqlite3_str_finish(json);
}
