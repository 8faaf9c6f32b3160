/* request.c: see request.h. */
#include "functions/request.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "functions/functions.h"
#include "ledger/ledger.h"
#include "release/release.h"

SQLITE_EXTENSION_INIT3

/* ---- options: one row each ----------------------------------------------------------------------- */

enum option_type { TEXT, NUMBER, FLAG, READ_ALREADY };

struct option {
  struct domain domain; /* its name, and for numbers what they may be */
  enum option_type type;
  size_t offset; /* in struct request */
  int forms;     /* which callers have it */
  int ou_only;
};

#define ALL         (OPTIONS_OF_AGGREGATE | OPTIONS_OF_RELEASE | OPTIONS_OF_PLAN)
#define NO_ARGUMENT (OPTIONS_OF_RELEASE | OPTIONS_OF_PLAN)
#define IN(member)  offsetof(struct request, member)

static const struct option options[] = {
    {{"name", 0, 0, 0, 0}, TEXT, IN(name), ALL, 0},
    {{"weight", 0, 1, 1, 0}, NUMBER, IN(weight), ALL, 0},
    {{"refine", 0, 0, 0, 0}, FLAG, IN(refine), ALL, 0},
    {{"clip", DESIGN_MIN_CLIP, DESIGN_MAX_CLIP, 0, 0}, NUMBER, IN(clip), NO_ARGUMENT, 0},
    {{"radius", 0, INFINITY, 1, 1}, NUMBER, IN(radius), NO_ARGUMENT, 1},
    {{"centre", -INFINITY, INFINITY, 1, 1}, NUMBER, IN(centre), ALL, 1},
    {{"theta", 0, INFINITY, 1, 1}, NUMBER, IN(theta), ALL, 1},
    {{"half_width", 0, INFINITY, 1, 1}, NUMBER, IN(half_width), OPTIONS_OF_PLAN, 0},
    {{"tier", 0, 0, 0, 0}, READ_ALREADY, 0, OPTIONS_OF_ELEMENT, 0},
    {{"kind", 0, 0, 0, 0}, READ_ALREADY, 0, OPTIONS_OF_ELEMENT, 0},
    {{"rho", 0, INFINITY, 1, 1}, NUMBER, IN(rho), ALL, 1},
};
#define OPTION_COUNT ((int)(sizeof options / sizeof *options))

/* What take_option() works on. */
struct parse {
  struct request *request;
  int form;
  char *error;
};

static int applies(const struct parse *parse, const struct option *option) {
  return (option->forms & parse->form) && (!option->ou_only || parse->request->aggregate->is_ou);
}

static char *unknown_option(const struct parse *parse, const char *key) {
  sqlite3_str *known = sqlite3_str_new(0);
  for (int i = 0; i < OPTION_COUNT; i++) {
    if (applies(parse, &options[i]))
      sqlite3_str_appendf(known, "%s%s", sqlite3_str_length(known) ? ", " : "",
                          options[i].domain.parameter);
  }
  char *list = sqlite3_str_finish(known);
  char *message = sentence("unknown option '%s' (known options: %s)", key, list ? list : "");
  sqlite3_free(list);
  return message;
}

/* Names that unnamed releases get are not for others to take. */
static char *set_name(char **name, sqlite3_value *value) {
  const char *text = plain_text(value);
  if (!text || !*text)
    return sentence("name must be a text that is not empty, not %z", shown(value));
  if (strncmp(text, "release-", 8) == 0 && text[8] &&
      strspn(text + 8, "0123456789") == strlen(text + 8))
    return sentence("name '%s' is kept for unnamed releases (choose another)", text);
  sqlite3_free(*name);
  *name = sqlite3_mprintf("%s", text);
  return *name ? 0 : sentence("out of memory");
}

static int take_option(void *context, const char *key, const char *type, sqlite3_value *value) {
  struct parse *parse = context;
  for (int i = 0; i < OPTION_COUNT; i++) {
    const struct option *option = &options[i];
    if (!applies(parse, option) || strcmp(option->domain.parameter, key) != 0) continue;
    void *member = (char *)parse->request + option->offset;
    int boolean = strcmp(type, "true") == 0 || strcmp(type, "false") == 0;
    switch (option->type) {
    case TEXT: parse->error = set_name(member, value); break;
    case FLAG:
      if (boolean)
        *(int *)member = sqlite3_value_int(value);
      else
        parse->error = sentence("%s must be true or false, not %z", key, shown(value));
      break;
    case READ_ALREADY: break;
    case NUMBER:
      parse->error = boolean ? sentence("%s must be a number, not %s", key, type)
                             : domain_check(value, &option->domain, member);
      break;
    }
    return parse->error == 0;
  }
  parse->error = unknown_option(parse, key);
  return 0;
}

/* ---- requests ------------------------------------------------------------------------------------ */

static char *parse_name_or_options(struct parse *parse, struct ledger *ledger,
                                   sqlite3_value *argument) {
  if (!argument || sqlite3_value_type(argument) == SQLITE_NULL) return 0;
  const char *text = plain_text(argument);
  if (!text || !*text)
    return sentence("name or options must be a name or a JSON object, not %z", shown(argument));
  if (text[strspn(text, " \t\r\n")] != '{') return set_name(&parse->request->name, argument);
  if (!ledger_options(ledger, text, take_option, parse) && !parse->error)
    parse->error = sentence("%s", ledger_error(ledger));
  return parse->error;
}

char *request_start(struct request *request, const struct aggregate *aggregate,
                    struct ledger *ledger, sqlite3_value *tier, sqlite3_value *name_or_options,
                    int form) {
  *request = (struct request){aggregate, 0, 0, 0, NAN, 0, NAN, NAN, NAN, NAN, 0};
  const char *text = plain_text(tier);
  if (!text) return sentence("tier must be the name of a tier, not %z", shown(tier));
  request->tier = sqlite3_mprintf("%s", text);
  if (!request->tier) return sentence("out of memory");
  struct parse parse = {request, form, 0};
  return parse_name_or_options(&parse, ledger, name_or_options);
}

static const struct domain clip_domain = {"clip", DESIGN_MIN_CLIP, DESIGN_MAX_CLIP, 0, 0};
static const struct domain radius_domain = {"radius", 0, INFINITY, 1, 1};

char *request_clip(struct request *request, sqlite3_value *value) {
  return domain_check(value, &clip_domain, &request->clip);
}

/* NULL is admitted: with theta the radius sets nothing. */
char *request_radius(struct request *request, sqlite3_value *value) {
  if (sqlite3_value_type(value) == SQLITE_NULL) return 0;
  return domain_check(value, &radius_domain, &request->radius);
}

char *request_finish(struct request *request, int by_unit) {
  const struct aggregate *aggregate = request->aggregate;
  if (request->clip == 0) request->clip = aggregate->default_clip;
  if (request->clip == 0)
    return sentence("clip is missing (the bound on what one %s contributes)",
                    by_unit ? "unit" : "row");
  if (!by_unit && aggregate->counts) request->clip = fmin(request->clip, 1);
  int has_theta = !isnan(request->theta), has_rho = !isnan(request->rho);
  if (has_theta != has_rho)
    return sentence("theta and rho belong together (%s is missing)", has_theta ? "rho" : "theta");
  if (!isnan(request->half_width) && !isnan(request->weight))
    return sentence("half_width asks for a weight: give one of them, not both");
  if (isnan(request->weight)) request->weight = 1;
  if (aggregate->is_ou && !isnan(request->half_width))
    return sentence("half_width is for kinds without shrink, not '%s'", aggregate->kind);
  if (aggregate->is_ou && !has_theta && isnan(request->radius))
    return sentence("radius must be a finite number above 0 (the public bound on the distance "
                    "of the true answer from the centre), unless theta and rho are given");
  return 0;
}

void request_clear(struct request *request) {
  sqlite3_free(request->tier);
  sqlite3_free(request->name);
  request->tier = request->name = 0;
}

char *request_fingerprint(const struct request *request) {
  struct ledger_release release = {.kind = (char *)request->aggregate->kind,
                                   .clip = request->clip,
                                   .weight = request->weight,
                                   .centre = request->centre,
                                   .radius = request->radius,
                                   .theta = request->theta,
                                   .rho = request->rho};
  return ledger_fingerprint(&release);
}

char *request_options(const struct request *request) {
  sqlite3_str *json = sqlite3_str_new(0);
  sqlite3_str_appendf(json, "{\"clip\":%!.17g", request->clip);
  if (request->weight != 1) sqlite3_str_appendf(json, ",\"weight\":%!.17g", request->weight);
  if (request->aggregate->is_ou) sqlite3_str_appendf(json, ",\"centre\":%!.17g", request->centre);
  if (!isnan(request->radius)) sqlite3_str_appendf(json, ",\"radius\":%!.17g", request->radius);
  if (!isnan(request->theta))
    sqlite3_str_appendf(json, ",\"theta\":%!.17g,\"rho\":%!.17g", request->theta, request->rho);
  sqlite3_str_appendall(json, "}");
  return sqlite3_str_finish(json);
}
