/*
** answers.c: dp_answer(tier, kind, sql, options), which makes a release and returns its values as
** rows.
**
**   W1  The release is complete when the reading begins (V1 in row_table.h). A later LIMIT,
**       ROLLBACK or error of the outer statement changes neither the answer nor the charge.
**   W2  The options must name the release. If a query plan reads the rows twice, the second read
**       then gets the stored values of the first.
**   W3  The table is DIRECTONLY, so no view or trigger can spend a budget.
** Tests: tests/functions/test_answer.py
*/
#include "functions/functions.h"
#include "functions/releases.h"
#include "functions/value_table.h"

#define ANSWER "dp_answer"

struct answer_rows {
  struct row_list *rows;
  const char *release, *tier;
  int has_keys, is_array;
};

static int take_value(void *context, const struct ledger_value *value, const char *display,
                      const char *figure, const char *label) {
  const struct answer_rows *answer = context;
  const double numbers[] = {value->value, value->stddev, value->low, value->high};
  return value_row(answer->rows, answer->has_keys ? value->key : 0,
                   answer->is_array ? value->component : -1, numbers, display) &&
         row_text(answer->rows, figure) && row_text(answer->rows, answer->release) &&
         row_text(answer->rows, answer->tier) && row_text(answer->rows, label);
}

/* Reads the rows of a published release. */
static int read_rows(struct row_list *rows, struct session *session,
                     const struct publication *publication) {
  const struct position *position = &publication->position;
  const struct definition *definition = &publication->definition;
  const char *quantiles = definition->release.quantiles;
  enum answer_form form = definition->aggregate->form;
  struct answer_rows answer = {.rows = rows,
                               .release = definition->release.name,
                               .tier = position->tiers[position->at].name,
                               .has_keys = form == FORM_OBJECT || form == FORM_ARRAYS ||
                                           form == FORM_SYMBOL || definition->release.periods,
                               .is_array = form == FORM_ARRAY || (quantiles && *quantiles == '[')};
  int read = ledger_resume(session->ledger) && ledger_begin_reading(session->ledger) &&
             ledger_values_in_words(session->ledger, definition->release.id, answer.tier,
                                    take_value, &answer);
  ledger_rollback(session->ledger);
  return read;
}

static int fill(struct row_list *rows, void *context, sqlite3_value *const *arguments,
                struct error *error) {
  struct host *host = context;
  struct publication publication = {0};
  struct request request = {0};
  struct release_arguments asked = {arguments[0], arguments[1], arguments[2],
                                    arguments[3], NAME_NEEDED,  0};
  if (!value_table_enter(host, ANSWER, error)) return 0;
  int done = release_ask(&publication, &request, host, &asked) &&
             read_rows(rows, &host->session, &publication);
  publish_clear(&publication);
  request_clear(&request);
  return value_table_leave(host, done, error);
}

/* Says what to write to a caller who takes the table for a function. */
static void called(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc, (void)argv;
  function_error(context, "it is a table, whose rows are the answers (write 'SELECT key, display "
                          "FROM dp_answer(tier, kind, sql, options)')");
}

const struct scalar answer_functions[] = {
    {ANSWER, 1, 4, PRIVATE_FUNCTION, called},
    {0},
};

const struct row_table answer_table = {
    .name = ANSWER,
    .columns = SHOWN_COLUMNS ", figure TEXT, release TEXT, tier TEXT, label TEXT,"
                             " tier_asked HIDDEN, kind HIDDEN, sql HIDDEN, options HIDDEN",
    .count = SHOWN_COUNT + 4,
    .first = SHOWN_COUNT + 4,
    .least = 4,
    .most = 4,
    .option = SQLITE_VTAB_DIRECTONLY, /* W3 */
    .estimate = 25,
    .cost = 1e9,
    .fill = fill};
