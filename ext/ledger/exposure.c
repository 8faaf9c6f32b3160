/*
** exposure.c: computes the exposure of a set of tiers from the publications that their members see.
** Tests: tests/ledger/test_exposure.py
*/
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "ledger/accountant.h"
#include "ledger/budget.h"
#include "ledger/charge.h"
#include "ledger/statements.h"
#include "ledger/wider.h"
#include "math/cost.h"

SQLITE_EXTENSION_INIT3

static const struct statement select_publications = {
    .sql = "SELECT release_id, release, tier, rate, curve, delta FROM dp_publication"
           " ORDER BY release_id"};
static const struct statement select_publications_of = {
    .sql = "SELECT release_id, release, tier, rate, curve, delta FROM dp_publication"
           " WHERE release_id = ?"};

/* The innermost publication of one release at the chosen tiers. */
struct sight {
  int64_t release_id;
  int tier; /* index of the tier; 0 is the innermost tier */
  char *release;
  /*
  ** `delta` is the sum over all publications of the release at the chosen tiers, because each
  ** publication selects keys anew.
  */
  double rate, delta;
  struct curve curve;
};

/* The sum of all sights. */
struct exposure {
  struct total rate;
  double slack; /* sum, over all releases, of the slack that the innermost chosen tier has paid */
  double delta;
  struct curve curve;
  sqlite3_str *json; /* the list of sights */
  double factor;     /* how many units a wider unit may count; 0: there is none */
};

static void exposure_add(struct ledger *ledger, struct exposure *exposure,
                         const struct ledger_tier *tiers, struct sight *sight) {
  if (sight->release) {
    sqlite3_str_appendf(exposure->json,
                        "%s{\"release\":", sqlite3_str_length(exposure->json) ? "," : "");
    json_append_string(exposure->json, sight->release);
    sqlite3_str_appendall(exposure->json, ",\"tier\":");
    json_append_string(exposure->json, tiers[sight->tier].name);
    sqlite3_str_appendf(exposure->json, ",\"rate\":%s}", NUMBER_TEXT(sight->rate));
    exposure->rate = total_add(exposure->rate, sight->rate);
    double slack = paid_for(ledger, sight->release_id, tiers[sight->tier].name).slack;
    if (slack > 0) exposure->slack = nextafter(exposure->slack + slack, INFINITY);
    if (sight->delta > 0) exposure->delta = nextafter(exposure->delta + sight->delta, INFINITY);
    curve_add(&exposure->curve, &sight->curve);
  }
  sqlite3_free(sight->release);
  sight->release = 0;
  sight->release_id = 0;
}

/* Returns the index of the chosen tier with this name, or -1. */
static int chosen_index(const struct ledger_tier *tiers, const int *chosen, int count,
                        const char *name) {
  for (int i = 0; name && i < count; i++) {
    if (strcmp(tiers[chosen[i]].name, name) == 0) return chosen[i];
  }
  return -1;
}

/* Lists the publications of one release, or of all releases, ordered by release. */
static sqlite3_stmt *list_publications(struct ledger *ledger, const char *name) {
  struct ledger_release release;
  if (!name) return statement_bind(ledger, &select_publications, "");
  if (!ledger_release_find(ledger, name, &release)) {
    ledger_release_unknown(ledger, name);
    return 0;
  }
  int64_t id = release.id;
  ledger_release_clear(&release);
  return statement_bind(ledger, &select_publications_of, "i", id);
}

static void collect_sights(struct ledger *ledger, const struct ledger_tier *tiers,
                           const int *chosen, int count, const char *release,
                           struct exposure *exposure) {
  struct sight sight = {0};
  sqlite3_stmt *row = list_publications(ledger, release);
  while (statement_row(ledger, row)) {
    int tier = chosen_index(tiers, chosen, count, (const char *)sqlite3_column_text(row, 2));
    int64_t release_id = sqlite3_column_int64(row, 0);
    if (tier < 0) continue;
    if (release_id != sight.release_id) {
      exposure_add(ledger, exposure, tiers, &sight);
      sight = (struct sight){release_id, tier, column_copy(ledger, row, 1), 0, 0, {0, {0}}};
    }
    if (tier <= sight.tier) {
      sight.tier = tier;
      sight.rate = sqlite3_column_double(row, 3);
      sight.curve = curve_column(ledger, row, 4);
    }
    sight.delta += sqlite3_column_double(row, 5);
  }
  exposure_add(ledger, exposure, tiers, &sight);
}

/* Returns the tier with the parts of its delta that are not available for noise. */
static struct ledger_tier seen_at(const struct ledger_tier *tier, const struct exposure *exposure) {
  struct ledger_tier seen = *tier;
  seen.delta_keys = fmax(tier->delta_keys, exposure->delta); /* spent on the selection of keys */
  if (tier->accountant->reserve_slack) seen.slack_limit = fmax(tier->slack_limit, exposure->slack);
  return seen;
}

static double exposure_epsilon(const struct ledger_tier *tier, const struct exposure *exposure) {
  struct budget budget = {
      .rate = exposure->rate, .curve = exposure->curve.any ? INFINITY : 0, .pure = INFINITY};
  struct ledger_tier seen = seen_at(tier, exposure);
  return budget_epsilon(&seen, &budget, &exposure->curve);
}

/*
** Appends an epsilon, or null if it is infinite, and that of the wider unit if there is one. It is
** infinite if the accountant cannot account for a charge: exact Gaussian accounting does not cover
** RDP curves, and pure accounting does not cover rates. It is also infinite if key selection has
** used the whole delta.
*/
static void append_epsilons(sqlite3_str *json, const struct ledger_tier *tier,
                            const struct exposure *exposure) {
  double epsilon = exposure_epsilon(tier, exposure), rate = total_up(exposure->rate);
  sqlite3_str_appendf(json, ",\"epsilon\":%s", NUMBER_TEXT(isfinite(epsilon) ? epsilon : NAN));
  if (!(exposure->factor > 0)) return;
  struct ledger_tier seen = seen_at(tier, exposure);
  double pure = exposure->curve.any ? exposure->curve.values[AT_INFINITY] : 0;
  double wider = isfinite(epsilon) ? wider_epsilon(&seen, rate, pure, exposure->factor) : INFINITY;
  sqlite3_str_appendf(json, ",\"wider_epsilon\":%s", NUMBER_TEXT(isfinite(wider) ? wider : NAN));
}

/*
** Appends the members of the result, except the list of releases. The periods of a tier concern all
** its releases together, so they are left out for one release (`is_one`).
*/
static void append_exposure(struct ledger *ledger, sqlite3_str *json,
                            const struct ledger_tier *tiers, const int *chosen, int count,
                            int is_one, const struct exposure *exposure) {
  int worst = chosen[0];
  for (int i = 1; i < count; i++) {
    if (tiers[chosen[i]].delta < tiers[worst].delta) worst = chosen[i];
  }
  sqlite3_str_appendf(json, "{\"rate\":%s,\"slack\":%s,\"delta\":%s,\"delta_keys\":%s",
                      NUMBER_TEXT(total_up(exposure->rate)), NUMBER_TEXT(exposure->slack),
                      NUMBER_TEXT(tiers[worst].delta), NUMBER_TEXT(exposure->delta));
  append_epsilons(json, &tiers[worst], exposure);
  sqlite3_str_appendall(json, ",\"tiers\":[");
  for (int i = 0; i < count; i++) {
    sqlite3_str_appendall(json, i ? ",{\"tier\":" : "{\"tier\":");
    json_append_string(json, tiers[chosen[i]].name);
    sqlite3_str_appendf(json, ",\"delta\":%s", NUMBER_TEXT(tiers[chosen[i]].delta));
    append_epsilons(json, &tiers[chosen[i]], exposure);
    if (!is_one) period_append(ledger, &tiers[chosen[i]], json);
    sqlite3_str_appendall(json, "}");
  }
  sqlite3_str_appendall(json, "]");
  for (int i = 0; exposure->curve.any && i < RENYI_ORDERS; i++)
    sqlite3_str_appendf(
        json, "%s%s", i ? "," : ",\"curve\":[",
        NUMBER_TEXT(isfinite(exposure->curve.values[i]) ? exposure->curve.values[i] : NAN));
  if (exposure->curve.any) sqlite3_str_appendall(json, "]");
}

char *ledger_exposure(struct ledger *ledger, const struct ledger_tier *tiers, const int *chosen,
                      int count, const char *release) {
  struct exposure exposure = {{0, 0}, 0, 0, {0, {0}}, sqlite3_str_new(0), 0};
  exposure.factor = ledger_wider_factor(ledger);
  sqlite3_str *json = sqlite3_str_new(0);
  collect_sights(ledger, tiers, chosen, count, release, &exposure);
  if (sqlite3_str_errcode(exposure.json)) ledger_fail(ledger, "out of memory");
  char *sights = sqlite3_str_finish(exposure.json); /* null if there are none */
  append_exposure(ledger, json, tiers, chosen, count, release != 0, &exposure);
  sqlite3_str_appendf(json, ",\"releases\":[%s]}", sights ? sights : "");
  sqlite3_free(sights);
  char *result = sqlite3_str_finish(json);
  if (!result) ledger_fail(ledger, "out of memory");
  if (!error_is_set(ledger->error)) return result;
  sqlite3_free(result);
  return 0;
}
