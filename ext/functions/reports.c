/* reports.c: dp_export() and dp_report(), which write out what the members of one tier may see,
** and dp_clipping(), which says what share of the units was clipped in a release.
** Tests: tests/report/test_report.py, tests/release/test_clipping.py */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/sql_text.h"
#include "functions/internal.h"
#include "release/release.h"
#include "report/report.h"

SQLITE_EXTENSION_INIT3

/* ---- dp_clipping(), and the shares for dp_report() ------------------------------------------- */

static double number_at(sqlite3_stmt *row, int column) {
  int is_null = sqlite3_column_type(row, column) == SQLITE_NULL;
  return is_null ? (double)NAN : sqlite3_column_double(row, column);
}

/* Computes the share of clipped units, and what the sentence about this share depends on. Returns 0
** if this version does not know the kind or the mechanism, or if the mechanism has no noise law. */
static int share_of(const struct ledger_release *release, const struct ledger_clipping *clipping,
                    const char *unit, int by_unit, struct clipped_share *share,
                    struct clipping_words *words) {
  const struct aggregate *aggregate = aggregate_find(release->kind);
  const struct mechanism *mechanism = mechanism_of(release);
  if (!mechanism || !mechanism->noise) return 0;
  int is_private = (aggregate->takes & 1u << P_SELECT) && !release->keys;
  *words = (struct clipping_words){unit,          by_unit,    aggregate,
                                   release->clip, is_private, release->periods != 0};
  *share = clipped_units(mechanism->noise, clipping);
  return 1;
}

/* dp_clipping(name, tier) -> JSON. A number is null if the noisy counts say nothing about it. */
static int dp_clipping(struct call *call) {
  struct host *host = call->host;
  struct ledger *ledger = call->ledger;
  struct publication publication = {.session = &host->session};
  const struct ledger_release *release = &publication.definition.release;
  struct ledger_clipping clipping = NO_CLIPPING;
  char *unit = 0;
  if (ledger_begin_reading(ledger)) {
    if (published_find(&publication, call->values[0], call->values[1], &clipping))
      unit = ledger_unit(ledger);
    if (isnan(clipping.stddev))
      error_set(&host->session.error,
                "the release was made without \"diagnose\":true (make it under another name)");
    ledger_rollback(ledger);
  }
  struct clipped_share share = {0, 0, 0};
  struct clipping_words words;
  int by_unit = ledger_protects(ledger) == LEDGER_UNITS;
  char *sentence = 0;
  if (!error_is_set(&host->session.error)) {
    if (share_of(release, &clipping, unit, by_unit, &share, &words))
      sentence = clipping_sentence(&share, &clipping, &words);
    else
      error_set(&host->session.error, "the release is of a kind, or has a mechanism, that this "
                                      "version does not know");
  }
  char *text = 0;
  if (sentence) {
    sqlite3_str *json = sqlite3_str_new(0);
    sqlite3_str_appendf(json, "{\"share\":%s,\"low\":%s,\"high\":%s,\"cut\":%s,",
                        NUMBER_TEXT(share.share), NUMBER_TEXT(share.low), NUMBER_TEXT(share.high),
                        NUMBER_TEXT(clipping.cut));
    sqlite3_str_appendf(json, "\"cut_low\":%s,\"cut_high\":%s,\"cut_within\":%s,",
                        NUMBER_TEXT(clipping.cut_low), NUMBER_TEXT(clipping.cut_high),
                        NUMBER_TEXT(clipping.within));
    if (!isnan(clipping.wider_clipped)) {
      share = clipped_wider(mechanism_find(words.aggregate, release->mechanism)->noise, &clipping);
      sqlite3_str_appendf(json, "\"wider_share\":%s,\"wider_low\":%s,\"wider_high\":%s,",
                          NUMBER_TEXT(share.share), NUMBER_TEXT(share.low),
                          NUMBER_TEXT(share.high));
      char *longer = isnan(share.share)
                         ? sqlite3_mprintf("%s; too few wider units to say how many were scaled "
                                           "down, too",
                                           sentence)
                         : sqlite3_mprintf("%s; about %d%% of wider units were scaled down, too",
                                           sentence, clipping_percent(share.share));
      sqlite3_free(sentence);
      sentence = longer;
    }
    sqlite3_str_appendall(json, "\"summary\":");
    json_append_string(json, sentence ? sentence : "");
    sqlite3_str_appendall(json, "}");
    text = sqlite3_str_finish(json);
    if (!sentence) {
      sqlite3_free(text);
      text = 0;
    }
  }
  sqlite3_free(sentence);
  sqlite3_free(unit);
  publish_clear(&publication);
  return call_text(call, text);
}

/* Adds a table clipping(release, tier, low, high, words, amount) to the facts of an audience
** (report/report.h). Each publication that counted clipped units has a row. low and high are the
** ends of the interval of the share of clipped units, in percent, and words is what follows this
** share in the sentence of dp_clipping(). low and high are NULL if words is the whole sentence.
** amount says how much of the total was cut off, and is NULL if the release has no total, or scaled
** wider units down, too. Call clippings_add() inside a transaction of the ledger. Returns 1, or 0
** with the error set. */
static int clippings_add(sqlite3 *facts, struct ledger *ledger, struct error *error) {
  static const char select[] =
      "SELECT p.release, p.tier, p.clipped, p.unclipped, p.unit_stddev, r.kind, r.mechanism,"
      " r.keys, r.clip, r.periods, p.cut, p.cut_low, p.cut_high, p.cut_within, p.wider_clipped"
      " FROM dp_publication p JOIN dp_release r ON r.name = p.release AND r.id IS p.release_id"
      " WHERE p.unit_stddev IS NOT NULL";
  char *unit = ledger_unit(ledger);
  int by_unit = ledger_protects(ledger) == LEDGER_UNITS;
  if (sqlite3_exec(facts,
                   "CREATE TABLE clipping(release TEXT, tier TEXT, low INT, high INT, words TEXT,"
                   " amount TEXT)",
                   0, 0, 0))
    error_set_memory(error);
  sqlite3_stmt *row = error_is_set(error) ? 0 : facts_prepare(facts, select, error);
  sqlite3_stmt *insert =
      row ? facts_prepare(facts, "INSERT INTO clipping VALUES (?, ?, ?, ?, ?, ?)", error) : 0;
  while (insert && facts_row(row, error)) {
    struct ledger_clipping clipping = {number_at(row, 2),  number_at(row, 3),  number_at(row, 4),
                                       number_at(row, 10), number_at(row, 11), number_at(row, 12),
                                       number_at(row, 13), number_at(row, 14), (double)NAN};
    struct ledger_release release = {.kind = (char *)(uintptr_t)sqlite3_column_text(row, 5),
                                     .mechanism = (char *)(uintptr_t)sqlite3_column_text(row, 6),
                                     .keys = (char *)(uintptr_t)sqlite3_column_text(row, 7),
                                     .clip = number_at(row, 8),
                                     .periods = (char *)(uintptr_t)sqlite3_column_text(row, 9)};
    struct clipped_share share = {0, 0, 0};
    struct clipping_words words;
    if (!share_of(&release, &clipping, unit, by_unit, &share, &words)) continue;
    char *text = clipping_words(&share, &words);
    int has_amount = !isnan(clipping.cut_low) && isnan(clipping.wider_clipped);
    char *amount = has_amount ? clipping_amount(&clipping, &words) : 0;
    if (!text || (!amount && has_amount)) error_set_memory(error);
    for (int i = 0; i < 2; i++)
      sqlite3_bind_text(insert, i + 1, (const char *)sqlite3_column_text(row, i), -1,
                        SQLITE_TRANSIENT);
    for (int i = 0; i < 2 && !isnan(share.share); i++)
      sqlite3_bind_int(insert, 3 + i, clipping_percent(i ? share.high : share.low));
    sqlite3_bind_text(insert, 5, text, -1, sqlite3_free);
    sqlite3_bind_text(insert, 6, amount, -1, sqlite3_free);
    facts_row(insert, error);
    sqlite3_reset(insert);
    sqlite3_clear_bindings(insert);
  }
  sqlite3_finalize(row);
  sqlite3_finalize(insert);
  sqlite3_free(unit);
  return !error_is_set(error);
}

/* ---- dp_export() and dp_report() ------------------------------------------------------------- */

/* Returns the facts that the ledger's audience may know. If the ledger has a discrepancy, or on
** another failure, returns null with an error. Call this function inside a transaction. */
static sqlite3 *collect(struct session *session) {
  struct ledger *ledger = session->ledger;
  char *verified = session_verify(session), *certificate = 0;
  sqlite3 *facts = 0;
  if (verified && strcmp(verified, "ok") != 0) {
    int is_advised = verified[strlen(verified) - 1] == ')';
    error_set(&session->error, ledger_audience(ledger) ? "%s" : "the ledger does not verify: %s%s",
              verified, is_advised ? "" : " (restore it from a backup)");
  }
  if (verified) certificate = ledger_certificate(ledger, verified, mechanism_describe);
  if (certificate) facts = facts_open(ledger, certificate, &session->error);
  if (facts) clippings_add(facts, ledger, &session->error);
  sqlite3_free(verified);
  sqlite3_free(certificate);
  return facts;
}

/* Returns the facts for the members of a tier, or for the owner if `tier` is null. Returns null
** with an error on failure. */
static sqlite3 *facts_for(struct host *host, const char *tier) {
  struct session *session = &host->session;
  struct ledger *ledger = session->ledger;
  sqlite3 *facts = 0;
  if (!ledger_ready(ledger)) return 0;
  int is_guest = ledger_audience(ledger) != 0;
  if (is_guest && tier && strcmp(tier, ledger_audience(ledger)) != 0) {
    error_set(&session->error, "this connection is guarded for tier '%s' (report that tier)",
              ledger_audience(ledger));
    return 0;
  }
  if (ledger_begin_copy(ledger) && (!tier || tier_is_known(ledger, tier)) &&
      (is_guest || !tier || ledger_guest(ledger, tier)))
    facts = collect(session);
  if (!is_guest) ledger_guest(ledger, 0);
  ledger_rollback(ledger);
  return facts;
}

/* ---- dp_export ------------------------------------------------------------------------------- */

/* Returns a text such as "6 values of 6 releases for 'region' in region.db", or null: out of memory
** (the file is complete nevertheless). */
static char *exported(sqlite3 *facts, const char *tier, const char *file, struct error *error) {
  sqlite3_stmt *row =
      facts_prepare(facts, "SELECT count(*), count(DISTINCT release) FROM dp_value", error);
  char *text = 0;
  if (facts_row(row, error)) {
    sqlite3_int64 values = sqlite3_column_int64(row, 0), releases = sqlite3_column_int64(row, 1);
    text = sqlite3_mprintf("%lld value%s of %lld release%s for '%s' in %s", values,
                           values == 1 ? "" : "s", releases, releases == 1 ? "" : "s", tier, file);
  }
  sqlite3_finalize(row);
  return text;
}

/* Returns whether a file's name says that it holds texts, for example "public.csv". */
static int is_text_file(const char *file) {
  static const char *const endings[] = {".csv", ".tsv", ".txt", ".json", ".html"};
  size_t length = strlen(file);
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    size_t size = strlen(endings[i]);
    if (length >= size && sqlite3_stricmp(file + length - size, endings[i]) == 0) return 1;
  }
  return 0;
}

/* dp_export(tier, file) -> a sentence that says how much was written */
static int dp_export(struct call *call) {
  struct ledger *ledger = call->ledger;
  const char *tier = call->texts[0], *file = call->texts[1];
  if (is_text_file(file))
    return error_set(call->error,
                     "file would be an SQLite database (give it a name that ends in .db; in "
                     "the sqlite3 shell, .mode csv, .once and a SELECT on dp_value write CSV)");
  sqlite3 *facts = facts_for(call->host, tier);
  if (facts && ledger_read_only(ledger))
    error_set(call->error,
              "this connection cannot write its database (%s), so it writes no other file",
              ledger_read_only(ledger));
  int written = facts && !error_is_set(call->error) && ledger_begin_computing(ledger) &&
                export_write(facts, file, ledger, call->error) &&
                call_text(call, exported(facts, tier, file, call->error));
  sqlite3_close(facts);
  ledger_rollback(ledger);
  return written;
}

/* ---- dp_report ------------------------------------------------------------------------------- */

/* Checks the names of the order, and returns them as JSON. The caller frees it. */
static char *page_names(sqlite3 *facts, struct json *json, const char *order, struct error *error) {
  int count;
  char **names = json_list(json, order, "order must be a JSON array of names of releases", &count),
       *text = 0;
  for (int i = 0; i < count; i++) {
    struct known_names known = {.asked = names[i]};
    int found = 0;
    sqlite3_stmt *row = facts_prepare(facts, page_names_sql, error);
    while (facts_row(row, error)) {
      const char *name = (const char *)sqlite3_column_text(row, 0);
      if (!name) continue;
      found = found || strcmp(name, names[i]) == 0;
      known_names_add(&known, name);
    }
    sqlite3_finalize(row);
    if (found) {
      known_names_nearest(&known);
    } else {
      known_names_fail(&known, error,
                       "order has a name%s of which this tier sees no release (%sreleases, and the "
                       "names of series without their period: %s)");
      break;
    }
  }
  if (names && !error_is_set(error)) text = json_texts(names, count);
  if (names && !text && !error_is_set(error)) error_set_memory(error);
  json_list_free(names);
  return text;
}

/* Returns what the owner chooses for the page as a JSON object. The caller frees it. */
static char *page_json(sqlite3 *facts, struct json *json, const char *text, struct error *error) {
  static const char wanted[] = "must be a text that is not empty (leave it out for none)";
  char *texts[3] = {0}, *order = 0, *names = 0;
  const struct setting settings[] = {
      {"title", SETTING_TEXT, &texts[0], wanted, 0, 0},
      {"publisher", SETTING_TEXT, &texts[1], wanted, 0, 0},
      {"note", SETTING_TEXT, &texts[2], wanted, 0, 0},
      {"order", SETTING_ARRAY, &order, "must be a JSON array of names of releases", 0, 0},
      {0}};
  sqlite3_str *made = sqlite3_str_new(0);
  const char *between = "{";
  int read = settings_read(settings, json, text);
  for (int i = 0; i < 3 && read; i++) {
    if (!texts[i]) continue;
    sqlite3_str_appendf(made, "%s\"%s\":", between, settings[i].name);
    json_append_string(made, texts[i]);
    between = ",";
  }
  if (read && order) names = page_names(facts, json, order, error);
  if (names) sqlite3_str_appendf(made, "%s\"order\":%s", between, names);
  sqlite3_str_appendall(made, *between == '{' && !names ? "{}" : "}");
  for (int i = 0; i < 3; i++) sqlite3_free(texts[i]);
  sqlite3_free(order);
  sqlite3_free(names);
  char *result = sqlite3_str_finish(made);
  if (!result) error_set_memory(error);
  if (!error_is_set(error)) return result;
  sqlite3_free(result);
  return 0;
}

/* Keeps the owner's options for a tier's page (null: all tiers). Returns 0 after an error. */
static int page_keep(struct host *host, sqlite3 *facts, const char *tier, const char *text) {
  struct ledger *ledger = host->session.ledger;
  struct error *error = &host->session.error;
  if (ledger_audience(ledger))
    return error_set(error, "only the owner may choose the title, publisher, note and order (this "
                            "connection is guarded: ask for the page without options)");
  if (!text)
    return error_set(error, "options must be a JSON object of title, publisher, note and order");
  char *options = page_json(facts, ledger_json(ledger), text, error);
  int kept = options && ledger_page_set(ledger, tier, options);
  sqlite3_free(options);
  return kept;
}

/* dp_report([tier [, options]]) -> HTML. Without a tier, or with NULL, the page has all tiers. The
** same ledger gives the same bytes. Options stay in the ledger until others are given. */
static int dp_report(struct call *call) {
  struct ledger *ledger = call->ledger;
  struct error *error = call->error;
  int has_tier = call->count && sqlite3_value_type(call->values[0]) != SQLITE_NULL;
  const char *tier = has_tier ? text_check(call->values[0], "tier", error) : 0;
  if (has_tier && !tier) return 0;
  sqlite3 *facts = facts_for(call->host, tier);
  if (facts && call->count > 1 && page_keep(call->host, facts, tier, plain_text(call->values[1]))) {
    sqlite3_close(facts);
    facts = facts_for(call->host, tier);
  }
  if (facts && !tier) tier = ledger_audience(ledger);
  int going = facts && !error_is_set(error) && ledger_begin_computing(ledger);
  char *page = going ? page_write(facts, tier, error) : 0;
  sqlite3_close(facts);
  ledger_rollback(ledger);
  return call_text(call, page);
}

const struct function reporting_functions[] = {
    {"dp_clipping", 2, 2, TO_ALL, LEDGER_OPEN, {"name", "tier"}, dp_clipping},
    {"dp_export", 2, 2, TO_OWNER, 0, {"tier", "file"}, dp_export},
    {"dp_report", 0, 2, TO_ALL, 0, {0}, dp_report},
    {0},
};
