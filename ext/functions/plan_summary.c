/* plan_summary.c: see plan_summary.h. Tests: tests/functions/test_plan.py */
#include "functions/plan_summary.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "functions/plan_weight.h"
#include "mechanism/exponential.h"
#include "release/kinds.h"

SQLITE_EXTENSION_INIT3

/* The noun for a value, chosen by the end of the kind's name: "average" for 'group_avg'. */
static const struct {
  const char *end, *noun;
} nouns[] = {
    {"count", "count"},     {"count_distinct", "count"}, {"histogram", "count"},
    {"sum", "sum"},         {"avg", "average"},          {"var", "variance"},
    {"median", "median"},   {"quantile", "quantile"},    {"stddev", "standard deviation"},
    {"sgd", "coefficient"},
};

static const char *noun_of(const char *kind) {
  size_t length = strlen(kind);
  for (size_t i = 0; i < sizeof nouns / sizeof *nouns; i++) {
    size_t size = strlen(nouns[i].end);
    if (length >= size && strcmp(kind + length - size, nouns[i].end) == 0) return nouns[i].noun;
  }
  return "value";
}

void plan_append_width(sqlite3_str *text, double x) {
  if (x >= 10 && x < 1e15) {
    sqlite3_str_appendf(text, "%,lld", (long long)ceil(x * (1 - 1e-9)));
  } else if (x >= 1e-6 && x < 10) {
    int digits = 1 - (int)floor(log10(x));
    double unit = pow(10, digits);
    sqlite3_str_appendf(text, "%.*f", digits, ceil(x * unit * (1 - 1e-9)) / unit);
  } else {
    sqlite3_str_appendf(text, "%.2g", x * 1.05);
  }
}

/* Appends what the half-width before it is about. */
static void append_noun(sqlite3_str *text, const struct request *request) {
  if (request->unit_word) sqlite3_str_appendf(text, " %s", request->unit_word);
  int is_drawn = request->mechanism && strcmp(request->mechanism, leaf_draw_mechanism.name) == 0;
  /* The noise of these depends on how the values lie (estimate_half_width()). */
  int is_even = request->aggregate->root || request->aggregate->family->is_tree;
  sqlite3_str_appendf(text, " around %s %s (95%% of the %s%s%s)",
                      request->aggregate->form == FORM_NUMBER ? "the" : "each",
                      noun_of(request->aggregate->kind), is_drawn ? "draws" : "noise",
                      is_even ? ", if the rows are spread evenly" : "",
                      is_drawn ? "; the figure will have no interval" : "");
}

static void append_half_width(sqlite3_str *text, const struct request *request, double half_width) {
  sqlite3_str_appendall(text, "\xC2\xB1");
  plan_append_width(text, half_width);
  if (request->unit_word) sqlite3_str_appendf(text, " %s", request->unit_word);
}

/* A value that moves by less than this part of its distance from the centre need not be told. */
#define MOVES 1e-3

static void append_precision(sqlite3_str *text, const struct request *request, double half_width,
                             double shrink) {
  if (request->aggregate->family->by_exponent) {
    sqlite3_str_appendall(text, "an end needs a count of about ");
    plan_append_width(text, half_width);
    sqlite3_str_appendall(text, " in its bin; ");
    return;
  }
  if (!isnan(request->until))
    sqlite3_str_appendf(text, "stops at \xC2\xB1%.15g%%, or at ", 100 * request->until);
  sqlite3_str_appendall(text, "\xC2\xB1");
  plan_append_width(text, half_width);
  append_noun(text, request);
  if (shrink < 1 - MOVES)
    sqlite3_str_appendf(text, ", which is moved %.3g%% of the way to %.15g", 100 * (1 - shrink),
                        request->centre);
  sqlite3_str_appendall(text, "; ");
}

/*
** Appends how many more times the budgets can pay for the plan. For the owner, also names the tier
** that would refuse first, unless the plan is one release at that tier.
*/
static void append_room(sqlite3_str *text, struct ledger *ledger, const struct request *request,
                        int64_t charge, double part) {
  struct ledger_tier *tiers;
  struct ledger_repeats repeats;
  int count;
  if (ledger_tiers(ledger, &tiers, &count) &&
      ledger_repeats(ledger, tiers, count, charge, &repeats) && repeats.count >= 0) {
    const char *tier = tiers[repeats.tier].name;
    const char *noun = request ? "release" : "batch";
    const char *most = request && !isnan(request->until) ? "at most " : "";
    if (repeats.count == 0) {
      sqlite3_str_appendf(text, "then no more such %s fits into ", noun);
    } else {
      sqlite3_str_appendf(text, "then %s%,lld more such %s%s into ", most, (long long)repeats.count,
                          noun,
                          repeats.count == 1 ? " fits"
                          : request          ? "s fit"
                                             : "es fit");
    }
    if (ledger_audience(ledger)) {
      /* The members of a tier may not learn which tier limits their grant. */
      sqlite3_str_appendall(text, "the grant");
    } else {
      sqlite3_str_appendall(text, *repeats.period ? repeats.period : "the budget");
      if (!request || strcmp(request->tier, tier) != 0)
        sqlite3_str_appendf(text, " (tier '%s')", tier);
    }
    if (repeats.count > 0 && !isnan(part))
      sqlite3_str_appendf(text, ", about %,lld if each counts %,lld",
                          (long long)((double)repeats.count / part), (long long)plan_rows(request));
  } else {
    sqlite3_str_appendall(text, "no tier pays for it");
  }
  ledger_tiers_free(tiers, count);
}

char *plan_tables_summary(const struct request *request, int count, const struct plan_range *range,
                          double cost) {
  sqlite3_str *text = sqlite3_str_new(0);
  sqlite3_str_appendf(text, "%d table%s that agree%s, \xC2\xB1", count, count == 1 ? "" : "s",
                      count == 1 ? "s" : "");
  plan_append_width(text, range->least);
  if (range->most > range->least) {
    sqlite3_str_appendall(text, " to \xC2\xB1");
    plan_append_width(text, range->most);
  }
  append_noun(text, request);
  sqlite3_str_appendall(text, "; ");
  if (cost > 1)
    sqlite3_str_appendf(text,
                        "one by one, with the same accuracy, they would cost %.1f times as "
                        "much; ",
                        cost);
  return sqlite3_str_finish(text);
}

char *plan_series_summary(const struct request *request, int periods, double period, double total) {
  const char *noun = noun_of(request->aggregate->kind);
  const char *each = request->aggregate->form == FORM_NUMBER ? "the" : "each";
  sqlite3_str *text = sqlite3_str_new(0);
  append_half_width(text, request, period);
  sqlite3_str_appendf(text, " around %s %s of a period, ", each, noun);
  append_half_width(text, request, total);
  sqlite3_str_appendf(text, " around %s %s of all %d periods (95%% of the noise); ", each, noun,
                      periods);
  return sqlite3_str_finish(text);
}

char *plan_choice_summary(double behind) {
  return sqlite3_mprintf(
      "a category with at most %,lld fewer than the most common one (95%% of the "
      "draws); ",
      (long long)fmin(behind, 1e18)); /* numbers of units are whole */
}

char *plan_response_summary(double probability) {
  return sqlite3_mprintf("the most common category in %.3g%% of the draws; ", 100 * probability);
}

int plan_append_summary(sqlite3_str *json, struct ledger *ledger, const struct request *request,
                        const char *of_parts, const char *missing, const char *cuts,
                        double half_width, double shrink, int64_t charge, double part) {
  sqlite3_str *text = sqlite3_str_new(0);
  if (of_parts) {
    sqlite3_str_appendall(text, of_parts);
  } else if (request && half_width > 0 && isfinite(half_width)) {
    append_precision(text, request, half_width, shrink);
  } else if (request && isnan(request->rows_guess) &&
             (request->aggregate->family->is_ratio || request->aggregate->family->is_tree)) {
    sqlite3_str_appendall(text,
                          "\"rows\", a public guess of how many count, would show how accurate; ");
  }
  if (missing) sqlite3_str_appendall(text, missing);
  if (cuts) sqlite3_str_appendall(text, cuts);
  append_room(text, ledger, request, charge, part);
  if (request && request->notice && *request->notice)
    sqlite3_str_appendf(text, "; %s", request->notice);
  char *summary = sqlite3_str_finish(text);
  if (!summary) return 0;
  sqlite3_str_appendall(json, ",\"summary\":");
  json_append_string(json, summary);
  sqlite3_free(summary);
  return 1;
}
