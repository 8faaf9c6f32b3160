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
#include "release/clipping.h"
#include "release/kinds.h"
#include "release/pending.h"
#include "report/facts.h"

SQLITE_EXTENSION_INIT3

/*
** The facts about a publication that the sentence of dp_clipping() needs. diagnosis_read() sets
** `kind` and `mechanism` to copies. Unknown numbers are NaN.
*/
struct diagnosis {
  struct ledger_clipping clipping;
  char *kind, *mechanism;
  double clip;
  int has_keys; /* the release has a list of public keys */
  int is_series;
  int is_published; /* the publication exists, and the audience of the ledger may see it */
};

static void diagnosis_clear(struct diagnosis *diagnosis) {
  sqlite3_free(diagnosis->kind);
  sqlite3_free(diagnosis->mechanism);
}

/* ---- reading --------------------------------------------------------------------------------- */

static double number_at(sqlite3_stmt *row, int column) {
  int is_null = sqlite3_column_type(row, column) == SQLITE_NULL;
  return is_null ? (double)NAN : sqlite3_column_double(row, column);
}

static int take_publication(void *context, sqlite3_stmt *row, int columns) {
  struct diagnosis *diagnosis = context;
  const struct ledger_table *table = ledger_table_named("dp_publication");
  (void)columns;
  diagnosis->is_published = 1;
  diagnosis->clipping =
      (struct ledger_clipping){number_at(row, ledger_table_index(table, "clipped")),
                               number_at(row, ledger_table_index(table, "unclipped")),
                               number_at(row, ledger_table_index(table, "unit_stddev"))};
  return 1;
}

static int take_release(void *context, sqlite3_stmt *row, int columns) {
  struct diagnosis *diagnosis = context;
  const struct ledger_table *table = ledger_table_named("dp_release");
  (void)columns;
  diagnosis_clear(diagnosis); /* discarded releases may have had the same name */
  diagnosis->kind =
      sqlite3_mprintf("%s", sqlite3_column_text(row, ledger_table_index(table, "kind")));
  diagnosis->mechanism =
      sqlite3_mprintf("%s", sqlite3_column_text(row, ledger_table_index(table, "mechanism")));
  diagnosis->clip = number_at(row, ledger_table_index(table, "clip"));
  diagnosis->has_keys = sqlite3_column_type(row, ledger_table_index(table, "keys")) != SQLITE_NULL;
  diagnosis->is_series =
      sqlite3_column_type(row, ledger_table_index(table, "periods")) != SQLITE_NULL;
  return diagnosis->kind && diagnosis->mechanism;
}

/*
** Reads the facts about a release at a tier, as the ledger's audience may see them. Call
** diagnosis_read() inside a transaction. Returns 1, or 0 with an error.
*/
static int diagnosis_read(struct ledger *ledger, sqlite3_value *name, sqlite3_value *tier,
                          struct diagnosis *diagnosis) {
  const struct ledger_table *publications = ledger_table_named("dp_publication");
  const struct ledger_table *releases = ledger_table_named("dp_release");
  int wanted[] = {ledger_table_index(publications, "release"),
                  ledger_table_index(publications, "tier")};
  int named = ledger_table_index(releases, "name");
  sqlite3_value *values[] = {name, tier};
  *diagnosis = (struct diagnosis){.clipping = NO_CLIPPING};
  return ledger_table_read(ledger, publications, wanted, values, 2, take_publication, diagnosis) &&
         ledger_table_read(ledger, releases, &named, &name, 1, take_release, diagnosis);
}

/* ---- sentences ------------------------------------------------------------------------------- */

/*
** Computes the share of clipped units, and what the sentence about this share depends on. Returns 0
** if this version does not know the kind or the mechanism, or if the mechanism has no noise law.
*/
static int diagnosis_share(const struct diagnosis *diagnosis, const char *unit, int by_unit,
                           struct clipped_share *share, struct clipping_words *words) {
  const struct aggregate *aggregate = aggregate_find(diagnosis->kind);
  const struct mechanism *mechanism =
      aggregate ? mechanism_find(aggregate, diagnosis->mechanism) : 0;
  if (!mechanism || !mechanism->noise) return 0;
  int is_private = (aggregate->takes & 1u << P_SELECT) && !diagnosis->has_keys;
  *words = (struct clipping_words){
      unit, by_unit, aggregate, diagnosis->clip, is_private, diagnosis->is_series};
  *share = clipping_share(mechanism->noise, &diagnosis->clipping);
  return 1;
}

/* dp_clipping(name, tier) -> JSON. share is null if the noisy number of units is not above 0. */
static void dp_clipping(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  struct host *host = host_of(context);
  struct ledger *ledger = host->session.ledger;
  struct diagnosis diagnosis = {.clipping = NO_CLIPPING};
  char *unit = 0;
  if (!argument_text(context, argv[0], "name") || !argument_text(context, argv[1], "tier")) return;
  if (ledger_ready(ledger) && pending_begin_reading(&host->session)) {
    if (diagnosis_read(ledger, argv[0], argv[1], &diagnosis)) unit = ledger_unit(ledger);
    if (!diagnosis.is_published)
      error_set(&host->session.error, "the release is not published at this tier (dp_publication "
                                      "lists where it is)");
    else if (isnan(diagnosis.clipping.stddev))
      error_set(&host->session.error,
                "the release was made without \"diagnose\":true (make it under another name)");
    ledger_rollback(ledger);
  }
  struct clipped_share share = {0, 0, 0};
  struct clipping_words words;
  int by_unit = ledger_protects(ledger) == LEDGER_UNITS;
  char *sentence = 0;
  if (!error_is_set(&host->session.error)) {
    if (diagnosis_share(&diagnosis, unit, by_unit, &share, &words))
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
  diagnosis_clear(&diagnosis);
}

/* Inserts the row of a publication into the table clipping. The caller has set release and tier. */
static void clipping_insert(sqlite3_stmt *insert, const struct diagnosis *diagnosis,
                            const char *unit, int by_unit, struct error *error) {
  struct clipped_share share = {0, 0, 0};
  struct clipping_words words;
  if (!diagnosis_share(diagnosis, unit, by_unit, &share, &words)) return;
  char *text = clipping_words(&share, &words);
  for (int i = 0; i < 2 && !isnan(share.share); i++)
    sqlite3_bind_int(insert, 3 + i, clipping_percent(i ? share.high : share.low));
  sqlite3_bind_text(insert, 5, text, -1, sqlite3_free);
  if (!text) error_set_memory(error);
  facts_row(insert, error);
  sqlite3_reset(insert);
  sqlite3_clear_bindings(insert);
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
    struct diagnosis diagnosis = {
        .clipping = {number_at(row, 2), number_at(row, 3), number_at(row, 4)},
        .kind = (char *)(uintptr_t)sqlite3_column_text(row, 5),
        .mechanism = (char *)(uintptr_t)sqlite3_column_text(row, 6),
        .has_keys = sqlite3_column_type(row, 7) != SQLITE_NULL,
        .clip = number_at(row, 8),
        .is_series = sqlite3_column_type(row, 9) != SQLITE_NULL};
    for (int i = 0; i < 2; i++)
      sqlite3_bind_text(insert, i + 1, (const char *)sqlite3_column_text(row, i), -1,
                        SQLITE_TRANSIENT);
    clipping_insert(insert, &diagnosis, unit, by_unit, error);
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
