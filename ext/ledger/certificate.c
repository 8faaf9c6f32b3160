/* certificate.c: what an auditor asks: the exposure of a set of tiers, computed from the
** publications that their members see, and the ledger as one JSON document with the theorem behind
** each figure. The certificate contains published facts, and the totals of the budgets, which are
** confidential.
** Tests: tests/ledger/test_exposure.py, tests/ledger/test_certificate.py */
#include <math.h>

#include "base/number.h"
#include "ledger/internal.h"

SQLITE_EXTENSION_INIT3

/* ---- exposure -------------------------------------------------------------------------------- */

/* What a person has seen: of each release the innermost publication at the chosen tiers. */
struct exposure {
  struct total rate;
  double slack; /* sum of the slacks that the tiers of these publications have paid */
  double delta;
  struct curve curve;
  sqlite3_str *json; /* the list of these publications */
  double factor;     /* how many units a wider unit may count; 0: there is none */
};

/* The innermost publication of each release at the tiers in the JSON array ?1, and the sum of the
** deltas of all its publications there, because each of them selects keys anew. */
#define SEEN_SQL(condition)                                                                        \
  "SELECT release_id, p.release, p.tier, p.rate, p.curve, sum(p.delta), max(t.rate)"               \
  " FROM dp_publication p JOIN dp_tier t ON t.name = p.tier WHERE p.tier IN"                       \
  " (SELECT value FROM json_each(?1))" condition " GROUP BY release_id ORDER BY release_id"

static void exposure_add(struct ledger *ledger, struct exposure *exposure, sqlite3_stmt *row) {
  const char *tier = column_text(ledger, row, 2);
  double rate = sqlite3_column_double(row, 3), delta = sqlite3_column_double(row, 5);
  struct curve curve = curve_column(ledger, row, 4);
  sqlite3_str *json = exposure->json;
  sqlite3_str_appendall(json, sqlite3_str_length(json) ? ",{\"release\":" : "{\"release\":");
  json_append_string(json, column_text(ledger, row, 1));
  sqlite3_str_appendall(json, ",\"tier\":");
  json_append_string(json, tier);
  sqlite3_str_appendf(json, ",\"rate\":%s}", NUMBER_TEXT(rate));
  double slack = paid_for(ledger, sqlite3_column_int64(row, 0), tier).slack;
  exposure->rate = total_add(exposure->rate, rate);
  if (slack > 0) exposure->slack = nextafter(exposure->slack + slack, INFINITY);
  if (delta > 0) exposure->delta = nextafter(exposure->delta + delta, INFINITY);
  curve_add(&exposure->curve, &curve);
}

static void collect(struct ledger *ledger, const struct ledger_tier *tiers, const int *chosen,
                    int count, const char *name, struct exposure *exposure) {
  struct ledger_release release = {0};
  if (name && !ledger_release_find(ledger, name, &release)) {
    ledger_release_unknown(ledger, name);
    return;
  }
  sqlite3_str *names = sqlite3_str_new(0);
  for (int i = 0; i < count; i++) {
    sqlite3_str_appendall(names, i ? "," : "[");
    json_append_string(names, tiers[chosen[i]].name);
  }
  sqlite3_str_appendall(names, "]");
  char *list = sqlite3_str_finish(names);
  if (!list) ledger_fail(ledger, "out of memory");
  sqlite3_stmt *row =
      name ? statement_bind(ledger, SEEN_SQL(" AND release_id = ?2"), "si", list, release.id)
           : statement_bind(ledger, SEEN_SQL(""), "s", list);
  while (statement_row(ledger, row)) exposure_add(ledger, exposure, row);
  sqlite3_free(list);
  ledger_release_clear(&release);
}

/* The tier with the parts of its delta that are not available for noise. */
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

/* Appends an epsilon, and that of the wider unit if there is one; null if it is infinite: the
** accountant does not cover a charge, or key selection has used the whole delta. */
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

/* Appends the members of the result, except the list of releases. The periods of a tier concern all
** its releases together, so they are left out for one release (`is_one`). */
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
  collect(ledger, tiers, chosen, count, release, &exposure);
  if (sqlite3_str_errcode(exposure.json)) ledger_fail(ledger, "out of memory");
  char *seen = sqlite3_str_finish(exposure.json); /* null if there are none */
  append_exposure(ledger, json, tiers, chosen, count, release != 0, &exposure);
  sqlite3_str_appendf(json, ",\"releases\":[%s]}", seen ? seen : "");
  sqlite3_free(seen);
  char *result = sqlite3_str_finish(json);
  if (!result) ledger_fail(ledger, "out of memory");
  if (!error_is_set(ledger->error)) return result;
  sqlite3_free(result);
  return 0;
}

/* ---- the certificate ------------------------------------------------------------------------- */

/* clang-format off */
/* SQL that looks up a fact about the mechanism of a release. ?3 is a JSON object with one member
** for each mechanism; its key is the mechanism's name. The result is NULL for an unknown
** mechanism. */
#define OF_MECHANISM(what) \
  "(SELECT json_extract(m.value, '$." what "') FROM json_each(?3) m WHERE m.key = mechanism)"
#define TIERS_THEOREM \
  "'semigroup P_s M_t = M_(t+s) and post-processing (Balle et al. 2019, section 5):" \
  " a coalition has" \
  " seen its innermost publication'"
#define SHRINK_THEOREM \
  "CASE WHEN theta IS NOT NULL THEN 'Ornstein-Uhlenbeck process (Balle et al. 2019, Corollary 7)'" \
  " WHEN " OF_MECHANISM("shrinks") " THEN 'Balle et al. 2019, Theorem 8' END"
#define KEYS_THEOREM \
  "CASE WHEN max_groups IS NOT NULL THEN 'private keys: noisy counts above a" \
  " threshold that one unit" \
  " alone exceeds with probability at most delta (Korolova et al. 2009; Gopi et al. 2020)' END"

#define STOPPING_THEOREM \
  "CASE WHEN until IS NOT NULL THEN 'the steps to the stop cost one release there; whether each" \
  " is made depends on points that all who pay see, so this is adaptive composition within the" \
  " filter (Feldman and Zrnic 2021; Whitehouse et al. 2023; Smith and Thakurta 2022). The epsilon" \
  " of this release alone is that of its ceiling, weight times the rate of the tier' END"

#define WIDER_THEOREM \
  "what its units count together is moved into a ball of factor times the radius of one unit, so" \
  " its rate is at most factor^2 times the charged one, and its pure epsilon at most factor times"

#define TABLES_READ \
  "(SELECT json_group_object(key," \
  " CASE WHEN value = 'public' AND key IN (SELECT table_name FROM dp_policy" \
  " WHERE role = 'protected')" \
  " THEN 'public when read' ELSE value END) FROM json_each(tables))"

/* A number as a text of the preprocessor. */
#define DIGITS(number)  DIGITS_(number)
#define DIGITS_(number) #number

static const char certificate[] =
  "SELECT json_object('certificate', 1,"
  " 'ledger', json((SELECT json_object('id', id, 'format', " DIGITS(LEDGER_FORMAT) ","
  "   'unit', unit, 'protects', protects,"
  "   'adjacency', adjacency, 'created_at', " DAY("created_at") ")"
  "   FROM dp_ledger)),"
  " 'policy', json((SELECT"
  "   json_group_array(json_object('table_name', table_name, 'role', role, 'unit_column',"
  "   unit_column, 'parent', parent)) FROM (SELECT * FROM dp_policy ORDER BY table_name))),"
  " 'wider', json((SELECT json_object('unit', wider, 'factor', " EXACTLY("factor") ", 'table',"
  "   table_name, 'column', wider_column, 'theorem', '" WIDER_THEOREM "')"
  "   FROM dp_policy WHERE wider IS NOT NULL)),"
  " 'tiers', json((SELECT json_group_array(json_object('name', name, 'rate', " EXACTLY("t.rate") ","
  "   'epsilon', " EXACTLY("t.epsilon") ", 'delta', " EXACTLY("t.delta") ","
  "   'delta_keys', " EXACTLY("delta_keys") ", 'accountant', accountant,"
  "   'filter_order', " EXACTLY("filter_order") ", 'rate_limit', " EXACTLY("rate_limit") ","
  "   'pure_limit', " EXACTLY("pure_limit") ","
  "   'slack_limit', " EXACTLY("slack_limit") ", 'spent_rate', " EXACTLY("spent_rate") ","
  "   'spent_slack', " EXACTLY("spent_slack") ", 'spent_delta', " EXACTLY("spent_delta") ","
  "   'spent_epsilon', " EXACTLY("spent_epsilon") ", 'releases', releases,"
  "   'wider_epsilon', " EXACTLY("wider_epsilon") ","
  "   'period', t.period, 'period_start', period_start, 'period_end', period_end,"
  "   'per_period', json_extract(p.value, '$.per_period'),"
  "   'all_periods', json_extract(p.value, '$.all_periods'),"
  "   'theorem', json_extract(?2, '$.' || accountant)))"
  "   FROM (SELECT * FROM dp_tier ORDER BY rate DESC) t JOIN dp_budget b ON b.tier = t.name"
  "   LEFT JOIN json_each(?4) p ON json_extract(p.value, '$.tier') = t.name)),"
  " 'releases', json((SELECT json_group_array(json_object("
  "   'id', id, 'name', name, 'kind', kind, 'mechanism', mechanism, 'state', state,"
  "   'options', json(options), 'dimension', dimension, 'granularity', granularity,"
  "   'sensitivity', sensitivity, 'weight', " EXACTLY("weight") ", 'slack', " EXACTLY("slack") ","
  "   'tables', json(" TABLES_READ "), 'created_at', " DAY("created_at") ","
  "   'publications', json((SELECT json_group_array(json_object('tier', tier, 'variance', clock,"
  "     'rate', " EXACTLY("p.rate") ", 'delta', " EXACTLY("p.delta") ","
  "     'shrink', " EXACTLY("shrink") ","
  "     'centre', " EXACTLY("p.centre") ", 'curve', nullif(lower(hex(curve)), ''),"
  "     'kernel', json(kernel), 'clipped', " EXACTLY("clipped") ","
  "     'unclipped', " EXACTLY("unclipped") ","
  "     'unit_stddev', " EXACTLY("unit_stddev") ", 'cut', " EXACTLY("cut") ","
  "     'cut_low', " EXACTLY("cut_low") ", 'cut_high', " EXACTLY("cut_high") ","
  "     'cut_within', " EXACTLY("cut_within") ", 'wider_clipped', " EXACTLY("wider_clipped") ","
  "     'wider_unclipped', " EXACTLY("wider_unclipped") ", 'threshold', " EXACTLY("threshold") ","
  "     'published_at', " DAY("published_at") "))"
  "     FROM (SELECT * FROM dp_publication p WHERE p.release_id = r.id ORDER BY p.rate DESC) p)),"
  "   'theorem', json_object('rate', " OF_MECHANISM("theorem") ", 'tiers', " TIERS_THEOREM ","
  "     'shrink', " SHRINK_THEOREM ", 'keys', " KEYS_THEOREM ","
  "     'stopping', " STOPPING_THEOREM ")))"
  "   FROM (SELECT * FROM dp_release ORDER BY id) r)),"
  " 'charges', (SELECT count(*) FROM dp_charge),"
  " 'last_hash', (SELECT hash FROM dp_charge ORDER BY id DESC LIMIT 1),"
  " 'last_seal', (SELECT hash FROM dp_seal ORDER BY id DESC LIMIT 1), 'verify', ?1)";
/* clang-format on */

static char *accountant_theorems(void) {
  sqlite3_str *json = sqlite3_str_new(0);
  for (int i = 0; accountants[i]; i++) {
    sqlite3_str_appendf(json, "%s\"%s\":", i ? "," : "{", accountants[i]->name);
    json_append_string(json, accountants[i]->theorem);
  }
  sqlite3_str_appendall(json, "}");
  return sqlite3_str_finish(json);
}

static char *tier_periods(struct ledger *ledger) {
  struct ledger_tier *tiers;
  int count;
  sqlite3_str *json = sqlite3_str_new(0);
  sqlite3_str_appendall(json, "[");
  ledger_tiers(ledger, &tiers, &count);
  for (int i = 0; i < count; i++) {
    sqlite3_str_appendall(json, i ? ",{\"tier\":" : "{\"tier\":");
    json_append_string(json, tiers[i].name);
    period_append(ledger, &tiers[i], json);
    sqlite3_str_appendall(json, "}");
  }
  sqlite3_str_appendall(json, "]");
  ledger_tiers_free(tiers, count);
  return sqlite3_str_finish(json);
}

/* Mechanisms of the same name have the same facts here. */
static char *mechanism_facts(describe_mechanism *describe) {
  struct ledger_mechanism mechanism;
  sqlite3_str *json = sqlite3_str_new(0);
  for (int i = 0; describe(i, &mechanism); i++) {
    sqlite3_str_appendf(json, "%s\"%s\":{\"shrinks\":%d,\"theorem\":", i ? "," : "{",
                        mechanism.name, mechanism.shrinks);
    json_append_string(json, mechanism.theorem);
    sqlite3_str_appendall(json, "}");
  }
  sqlite3_str_appendall(json, "}");
  return sqlite3_str_finish(json);
}

char *ledger_certificate(struct ledger *ledger, const char *verified,
                         describe_mechanism *describe) {
  if (error_is_set(ledger->error)) return 0;
  char *theorems = accountant_theorems(), *facts = mechanism_facts(describe),
       *periods = tier_periods(ledger);
  if (!theorems || !facts || !periods) ledger_fail(ledger, "out of memory");
  char *result = statement_text(ledger, certificate, "ssss", verified, theorems, facts, periods);
  sqlite3_free(theorems);
  sqlite3_free(facts);
  sqlite3_free(periods);
  if (!result || !ledger->audience) return result;
  char *cut = views_certificate(ledger, result, ledger->audience);
  sqlite3_free(result);
  return cut;
}
