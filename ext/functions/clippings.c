/*
** clippings.c: dp_clipping(), which says what share of the units was clipped in a release, and a
** table with these shares for dp_report().
** Tests: tests/release/test_clipping.py
*/
#include "functions/clippings.h"

#include <math.h>

#include "base/number.h"
#include "functions/functions.h"
#include "functions/host.h"
#include "functions/value_table.h"
#include "release/clipping.h"
#include "release/kinds.h"
#include "report/facts.h"

SQLITE_EXTENSION_INIT3

static double number_at(sqlite3_stmt *row, int column) {
  int is_null = sqlite3_column_type(row, column) == SQLITE_NULL;
  return is_null ? (double)NAN : sqlite3_column_double(row, column);
}

/* ---- sentences ------------------------------------------------------------------------------- */

/*
** Computes the share of clipped units, and what the sentence about this share depends on. Returns 0
** if this version does not know the kind or the mechanism, or if the mechanism has no noise law.
*/
static int share_of(const struct ledger_release *release, const struct ledger_clipping *clipping,
                    const char *unit, int by_unit, struct clipped_share *share,
                    struct clipping_words *words) {
  const struct aggregate *aggregate = aggregate_find(release->kind);
  const struct mechanism *mechanism = aggregate ? mechanism_find(aggregate, release->mechanism) : 0;
  if (!mechanism || !mechanism->noise) return 0;
  int is_private = (aggregate->takes & 1u << P_SELECT) && !release->keys;
  *words = (struct clipping_words){unit,          by_unit,    aggregate,
                                   release->clip, is_private, release->periods != 0};
  *share = clipping_share(mechanism->noise, clipping);
  return 1;
}

/* dp_clipping(name, tier) -> JSON. share is null if the noisy number of units is not above 0. */
static void dp_clipping(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  struct host *host = host_of(context);
  struct ledger *ledger = host->session.ledger;
  struct ledger_release release = {0};
  struct ledger_clipping clipping = NO_CLIPPING;
  char *unit = 0;
  if (!argument_text(context, argv[0], "name") || !argument_text(context, argv[1], "tier")) return;
  if (ledger_ready(ledger) && ledger_begin_reading(host->session.ledger)) {
    if (published_find(ledger, argv[0], argv[1], &release, &clipping)) unit = ledger_unit(ledger);
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
    if (share_of(&release, &clipping, unit, by_unit, &share, &words))
      sentence = clipping_sentence(&share, &words);
    else
      error_set(&host->session.error, "the release is of a kind, or has a mechanism, that this "
                                      "version does not know");
  }
  char *text = 0;
  if (sentence) {
    sqlite3_str *json = sqlite3_str_new(0);
    sqlite3_str_appendf(json, "{\"share\":%s,\"low\":%s,\"high\":%s,\"summary\":",
                        NUMBER_TEXT(share.share), NUMBER_TEXT(share.low), NUMBER_TEXT(share.high));
    json_append_string(json, sentence);
    sqlite3_str_appendall(json, "}");
    text = sqlite3_str_finish(json);
  }
  end_with_text(context, text, &host->session.error);
  sqlite3_free(sentence);
  sqlite3_free(unit);
  ledger_release_clear(&release);
}

int clippings_add(sqlite3 *facts, struct ledger *ledger, struct error *error) {
  static const char select[] =
      "SELECT p.release, p.tier, p.clipped, p.unclipped, p.unit_stddev, r.kind, r.mechanism,"
      " r.keys, r.clip, r.periods"
      " FROM dp_publication p JOIN dp_release r ON r.name = p.release AND r.id IS p.release_id"
      " WHERE p.unit_stddev IS NOT NULL";
  char *unit = ledger_unit(ledger);
  int by_unit = ledger_protects(ledger) == LEDGER_UNITS;
  if (sqlite3_exec(facts,
                   "CREATE TABLE clipping(release TEXT, tier TEXT, low INT, high INT, words TEXT)",
                   0, 0, 0))
    error_set_memory(error);
  sqlite3_stmt *row = error_is_set(error) ? 0 : facts_prepare(facts, select, error);
  sqlite3_stmt *insert =
      row ? facts_prepare(facts, "INSERT INTO clipping VALUES (?, ?, ?, ?, ?)", error) : 0;
  while (insert && facts_row(row, error)) {
    struct ledger_clipping clipping = {number_at(row, 2), number_at(row, 3), number_at(row, 4)};
    struct ledger_release release = {.kind = (char *)(uintptr_t)sqlite3_column_text(row, 5),
                                     .mechanism = (char *)(uintptr_t)sqlite3_column_text(row, 6),
                                     .keys = (char *)(uintptr_t)sqlite3_column_text(row, 7),
                                     .clip = number_at(row, 8),
                                     .periods = (char *)(uintptr_t)sqlite3_column_text(row, 9)};
    struct clipped_share share = {0, 0, 0};
    struct clipping_words words;
    if (!share_of(&release, &clipping, unit, by_unit, &share, &words)) continue;
    char *text = clipping_words(&share, &words);
    if (!text) error_set_memory(error);
    for (int i = 0; i < 2; i++)
      sqlite3_bind_text(insert, i + 1, (const char *)sqlite3_column_text(row, i), -1,
                        SQLITE_TRANSIENT);
    for (int i = 0; i < 2 && !isnan(share.share); i++)
      sqlite3_bind_int(insert, 3 + i, clipping_percent(i ? share.high : share.low));
    sqlite3_bind_text(insert, 5, text, -1, sqlite3_free);
    facts_row(insert, error);
    sqlite3_reset(insert);
    sqlite3_clear_bindings(insert);
  }
  sqlite3_finalize(row);
  sqlite3_finalize(insert);
  sqlite3_free(unit);
  return !error_is_set(error);
}

const struct scalar clipping_functions[] = {
    {"dp_clipping", 2, 2, PRIVATE_FUNCTION, dp_clipping},
    {0},
};
