/*
** certificate.c: the ledger as one JSON document for an auditor, with the theorem behind each
** figure. The certificate contains published facts, and the totals of the budgets, which are
** confidential.
** Tests: tests/ledger/test_certificate.py
*/
#include "ledger/accountant.h"
#include "ledger/budget.h"
#include "ledger/display.h"
#include "ledger/statements.h"

SQLITE_EXTENSION_INIT3

/* clang-format off */
/*
** SQL that looks up a fact about the mechanism of a release. ?3 is a JSON object with one member
** for each mechanism; its key is the mechanism's name. The result is NULL for an unknown mechanism.
*/
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

static const struct statement certificate = {.sql =
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
  "     'cut_within', " EXACTLY("cut_within") ", 'threshold', " EXACTLY("threshold") ","
  "     'published_at', " DAY("published_at") "))"
  "     FROM (SELECT * FROM dp_publication p WHERE p.release_id = r.id ORDER BY p.rate DESC) p)),"
  "   'theorem', json_object('rate', " OF_MECHANISM("theorem") ", 'tiers', " TIERS_THEOREM ","
  "     'shrink', " SHRINK_THEOREM ", 'keys', " KEYS_THEOREM ")))"
  "   FROM (SELECT * FROM dp_release ORDER BY id) r)),"
  " 'charges', (SELECT count(*) FROM dp_charge),"
  " 'last_hash', (SELECT hash FROM dp_charge ORDER BY id DESC LIMIT 1),"
  " 'last_seal', (SELECT hash FROM dp_seal ORDER BY id DESC LIMIT 1), 'verify', ?1)"};
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

/*
** Returns the name, the theorem and `shrinks` of each mechanism that `describe` lists, as JSON.
** Mechanisms of the same name have the same facts here.
*/
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
  char *result = statement_text(
      ledger, statement_bind(ledger, &certificate, "ssss", verified, theorems, facts, periods));
  sqlite3_free(theorems);
  sqlite3_free(facts);
  sqlite3_free(periods);
  if (!result || !ledger->audience) return result;
  char *cut = audience_certificate(ledger, result, ledger->audience);
  sqlite3_free(result);
  return cut;
}
