/* parameters.c: see parameters.h. Tests: tests/functions/test_options.py */
#include "release/parameters.h"

#include <math.h>

#include "base/json.h"
#include "base/number.h"
#include "release/procedure.h"

SQLITE_EXTENSION_INIT3

int request_takes(const struct request *request, enum parameter parameter) {
  return (request->aggregate->takes & 1u << parameter) != 0;
}

void request_clear(struct request *request) {
  if (request->details && request->aggregate->procedure->clear)
    request->aggregate->procedure->clear(request->details);
  sqlite3_free(request->details);
  for (int i = 0; i < request->key_count; i++) sqlite3_free(request->key_list[i]);
  sqlite3_free(request->key_list);
  sqlite3_free(request->tier);
  sqlite3_free(request->name);
  sqlite3_free(request->mechanism);
  sqlite3_free(request->quantiles);
  sqlite3_free(request->keys);
  sqlite3_free(request->keys_given);
  sqlite3_free(request->attributes);
  sqlite3_free(request->ways);
  programme_release(request->programme);
  periods_release(request->periods);
  sqlite3_free(request->model);
  sqlite3_free(request->sql);
  sqlite3_free(request->statement);
  sqlite3_free(request->tables);
  sqlite3_free(request->notice);
  sqlite3_free(request->unit_type);
  sqlite3_free(request->unit_word);
  sqlite3_free(request->bounds);
  sqlite3_free(request->shard);
  sqlite3_free(request->shards);
  *request = (struct request){0};
}

/* ---- requests as releases -------------------------------------------------------------------- */

static int whole(double x) {
  return isnan(x) ? 0 : (int)x;
}

struct ledger_release request_release(const struct request *request) {
  const struct aggregate *aggregate = request->aggregate;
  const struct programme *programme = request->programme;
  return (struct ledger_release){.kind = (char *)aggregate->kind,
                                 .mechanism =
                                     (char *)mechanism_find(aggregate, request->mechanism)->name,
                                 .quantiles = request->quantiles,
                                 .keys = programme ? programme->keys_text : request->keys,
                                 .ways = programme ? programme->ways_text : 0,
                                 .periods = request->periods ? request->periods->text : 0,
                                 .model = request->model,
                                 .sql = request->sql,
                                 .statement = request->statement,
                                 .clip = request->clip,
                                 .weight = request->weight,
                                 .centre = request->centre,
                                 .radius = request->radius,
                                 .theta = request->theta,
                                 .rho = request->rho,
                                 .lo = request->lo,
                                 .hi = request->hi,
                                 .grid = request->grid,
                                 .diagnose = request->diagnose,
                                 .until = request->until,
                                 .least = request->least,
                                 .key_share = request->key_share,
                                 .size = whole(request->size),
                                 .max_groups = whole(request->max_groups)};
}

static void append_option(sqlite3_str *json, const char *name, double value) {
  if (!isnan(value)) sqlite3_str_appendf(json, ",\"%s\":%s", name, NUMBER_TEXT(value));
}

static void append_whole(sqlite3_str *json, const char *name, double value) {
  if (!isnan(value)) sqlite3_str_appendf(json, ",\"%s\":%d", name, (int)value);
}

char *request_options(const struct request *request) {
  sqlite3_str *json = sqlite3_str_new(0);
  sqlite3_str_appendf(json, "{\"clip\":%s", NUMBER_TEXT(request->clip));
  if (request->mechanism) sqlite3_str_appendf(json, ",\"mechanism\":\"%s\"", request->mechanism);
  if (request->weight != 1) append_option(json, "weight", request->weight);
  if (request->aggregate->is_ou) append_option(json, "centre", request->centre);
  append_option(json, "radius", request->radius);
  append_option(json, "theta", request->theta);
  append_option(json, "rho", request->rho);
  append_option(json, "lo", request->lo);
  append_option(json, "hi", request->hi);
  append_option(json, "grid", request->grid);
  if (request->diagnose) sqlite3_str_appendall(json, ",\"diagnose\":true");
  append_whole(json, request_takes(request, P_DIM) ? "dim" : "bins", request->size);
  if (request->quantiles) sqlite3_str_appendf(json, ",\"q\":%s", request->quantiles);
  append_option(json, "until", request->until);
  append_option(json, "least", request->least);
  append_whole(json, "max_groups", request->max_groups);
  append_option(json, "key_share", request->key_share);
  if (request->keys_given) sqlite3_str_appendf(json, ",\"keys\":%s", request->keys_given);
  if (request->model) sqlite3_str_appendf(json, ",\"model\":%s", request->model);
  if (request->notice && *request->notice) {
    sqlite3_str_appendall(json, ",\"notice\":");
    json_append_string(json, request->notice);
  }
  sqlite3_str_appendall(json, "}");
  return sqlite3_str_finish(json);
}
