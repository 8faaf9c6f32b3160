/* facts.c: the facts of an audience (report.h), and the SQL functions that find the period in the
** name of a release.
** Tests: tests/report/test_report.py, tests/report/test_release_series.py */
#include <string.h>

#include "base/own_connection.h"
#include "os/os.h"
#include "report/report.h"

SQLITE_EXTENSION_INIT3

static int fail(sqlite3 *facts, struct error *error) {
  int code = facts ? sqlite3_errcode(facts) & 0xff : SQLITE_NOMEM;
  return code == SQLITE_NOMEM ? error_set_memory(error)
                              : error_set(error, "%s", sqlite3_errmsg(facts));
}

sqlite3_stmt *facts_prepare(sqlite3 *facts, const char *sql, struct error *error) {
  sqlite3_stmt *statement = 0;
  if (error_is_set(error)) return 0;
  if (sqlite3_prepare_v2(facts, sql, -1, &statement, 0) != SQLITE_OK) fail(facts, error);
  return statement;
}

int facts_row(sqlite3_stmt *statement, struct error *error) {
  int rc = statement && !error_is_set(error) ? sqlite3_step(statement) : SQLITE_DONE;
  if (rc != SQLITE_ROW && rc != SQLITE_DONE) fail(sqlite3_db_handle(statement), error);
  return rc == SQLITE_ROW;
}

int facts_run(sqlite3 *facts, const char *sql, struct error *error) {
  return sqlite3_exec(facts, sql, 0, 0, 0) == SQLITE_OK || fail(facts, error);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static int take_row(void *context, sqlite3_stmt *row, int columns) {
  sqlite3_stmt *insert = context;
  int rc = SQLITE_OK;
  for (int i = 0; i < columns && rc == SQLITE_OK; i++) {
    sqlite3_value *value = sqlite3_value_dup(sqlite3_column_value(row, i));
    rc = value ? sqlite3_bind_value(insert, i + 1, value) : SQLITE_NOMEM;
    sqlite3_value_free(value);
  }
  if (rc == SQLITE_OK) rc = sqlite3_step(insert);
  return sqlite3_reset(insert) == SQLITE_OK && rc == SQLITE_DONE;
}

static int copy_table(sqlite3 *facts, struct ledger *ledger, const struct ledger_table *table,
                      struct error *error) {
  char *columns = ledger_table_declaration(table);
  char *create = columns ? sqlite3_mprintf("CREATE TABLE %s(%s)", table->name, columns) : 0;
  sqlite3_free(columns);
  int made = create ? facts_run(facts, create, error) : error_set_memory(error);
  sqlite3_free(create);
  if (!made) return 0;
  sqlite3_str *sql = sqlite3_str_new(0);
  sqlite3_str_appendf(sql, "INSERT INTO %s VALUES (?", table->name);
  for (int i = 1; table->columns[i].name; i++) sqlite3_str_appendall(sql, ", ?");
  sqlite3_str_appendall(sql, ")");
  char *text = sqlite3_str_finish(sql);
  sqlite3_stmt *insert = text ? facts_prepare(facts, text, error) : 0;
  if (!text) error_set_memory(error);
  sqlite3_free(text);
  int copied = insert && ledger_table_read(ledger, table, 0, 0, 0, take_row, insert);
  sqlite3_finalize(insert);
  return copied;
}

/* ---- spending -------------------------------------------------------------------------------- */

static int take_spending(void *context, const struct ledger_spending *spending) {
  sqlite3_stmt *insert = context;
  sqlite3_bind_text(insert, 1, spending->tier, -1, SQLITE_TRANSIENT);
  sqlite3_bind_text(insert, 2, spending->period, -1, SQLITE_TRANSIENT);
  sqlite3_bind_text(insert, 3, spending->day, -1, SQLITE_TRANSIENT);
  sqlite3_bind_double(insert, 4, spending->share);
  int rc = sqlite3_step(insert);
  return sqlite3_reset(insert) == SQLITE_OK && rc == SQLITE_DONE;
}

/* Rounds a share of a budget up, and keeps four digits. The exact share that a model has spent
** would reveal the rate (the privacy cost, ledger/ledger.h) of the tier where the model was
** drawn (ledger/views.c). */
#define ROUGH(x) "CAST(printf('%.3e', " x " * 1.001) AS REAL)"

/* Copies the spending of all tiers in the facts. copy_table() must have copied dp_tier before. */
static int copy_spending(sqlite3 *facts, struct ledger *ledger, struct error *error) {
  sqlite3_stmt *tiers = facts_prepare(facts, "SELECT name FROM dp_tier ORDER BY rate DESC", error);
  sqlite3_stmt *insert = facts_prepare(
      facts, "INSERT INTO spending VALUES (?, ?, ?, min(1.0, " ROUGH("?") "))", error);
  while (facts_row(tiers, error) &&
         ledger_spending_read(ledger, (const char *)sqlite3_column_text(tiers, 0), take_spending,
                              insert))
    continue;
  sqlite3_finalize(tiers);
  sqlite3_finalize(insert);
  return !error_is_set(error);
}

static int copy_certificate(sqlite3 *facts, const char *certificate, struct error *error) {
  sqlite3_stmt *insert = facts_prepare(facts, "INSERT INTO certificate VALUES (?)", error);
  if (insert && sqlite3_bind_text(insert, 1, certificate, -1, SQLITE_TRANSIENT) != SQLITE_OK)
    fail(facts, error);
  facts_row(insert, error);
  sqlite3_finalize(insert);
  return !error_is_set(error);
}

static int fill(sqlite3 *facts, struct ledger *ledger, const char *certificate,
                struct error *error) {
  static const char tables[] =
      "CREATE TABLE certificate(document TEXT NOT NULL);"
      "CREATE TABLE spending(tier TEXT NOT NULL, period TEXT, day TEXT NOT NULL, share REAL)";
  /* The figures that a release with the same name has replaced: those of discarded releases. The
  ** certificate has the discarded releases that the audience has seen. */
  static const char corrected[] =
      "CREATE TABLE corrected AS SELECT json_extract(r.value, '$.name') AS release,"
      " substr(max(json_extract(p.value, '$.published_at')), 1, 10) AS day"
      " FROM certificate, json_each(document, '$.releases') r,"
      " json_each(r.value, '$.publications') p"
      " WHERE json_extract(r.value, '$.state') = 'discarded'"
      " OR json_extract(r.value, '$.discarded') GROUP BY 1";
  int going = facts_run(facts, tables, error) && copy_certificate(facts, certificate, error) &&
              facts_run(facts, corrected, error);
  for (int i = 0; i < ledger_table_count && going; i++)
    going = copy_table(facts, ledger, &ledger_tables[i], error);
  return going && copy_spending(facts, ledger, error);
}

/* ---- the releases of a series ---------------------------------------------------------------- */

/* Releases that ask one question about different periods are found by their names. A period is the
** first year, quarter, month, week or day in a name: 2025, 2025-Q1, 2025-01, 2025-W07 or
** 2025-01-31.
**
**   series_stem(name)     the name with the kind of period in the place of the period
**   series_title(name)    the name without its period
**   series_period(name)   the period, or NULL for a name without a period
**   series_at(name)       a number that grows by 1 from one period to the next (for weeks and
**                         days: by at least 1), or NULL for a name without a period
**   series_question(sql)  the text with 0 in the place of each run of digits */

/* ---- the period in a name -------------------------------------------------------------------- */

struct period {
  int start, end; /* its place in the name */
  char form;      /* 'Y', 'Q', 'M', 'W' or 'D'; 0: the name has no period */
  int at;
};

static int is_digit(char c) {
  return c >= '0' && c <= '9';
}

static int is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Returns the number that `count` digits write, or -1 if it is not in [low, high]. */
static int digits_read(const char *text, int count, int low, int high) {
  int number = 0;
  for (int i = 0; i < count; i++) {
    if (!is_digit(text[i])) return -1;
    number = number * 10 + (text[i] - '0');
  }
  return number >= low && number <= high ? number : -1;
}

/* Returns the period that begins at this place of the name. The form is 0 if no period begins
** there. */
static struct period period_read(const char *name, int start) {
  struct period found = {start, start + 4, 'Y', 0};
  const char *rest = name + start;
  int year = digits_read(rest, 4, 1900, 2199), part;
  if (year < 0) return (struct period){0};
  rest += 4;
  found.at = year;
  int gap = *rest == '-' || *rest == ' ';
  if (rest[gap] == 'Q' && (part = digits_read(rest + gap + 1, 1, 1, 4)) > 0) {
    found = (struct period){start, start + 4 + gap + 2, 'Q', year * 4 + part};
  } else if (rest[gap] == 'W' && (part = digits_read(rest + gap + 1, 2, 1, 53)) > 0) {
    found = (struct period){start, start + 4 + gap + 3, 'W', year * 53 + part};
  } else if (*rest == '-' && (part = digits_read(rest + 1, 2, 1, 12)) > 0) {
    found = (struct period){start, start + 7, 'M', year * 12 + part};
    int day = rest[3] == '-' ? digits_read(rest + 4, 2, 1, 31) : -1;
    if (day > 0) found = (struct period){start, start + 10, 'D', (year * 12 + part) * 31 + day};
  }
  if (is_word(name[found.end])) found.form = 0;
  return found;
}

/* Finds the first period in a name. The form is 0 if there is none. */
static struct period period_find(const char *name) {
  struct period found = {0};
  for (int i = 0; name && name[i] && !found.form; i++)
    if (i == 0 || !is_word(name[i - 1])) found = period_read(name, i);
  return found;
}

/* ---- the period in a name, in SQL ------------------------------------------------------------ */

static void give(sqlite3_context *context, sqlite3_str *text) {
  char *result = sqlite3_str_finish(text);
  if (result) {
    sqlite3_result_text(context, result, -1, sqlite3_free);
  } else {
    sqlite3_result_error_nomem(context);
  }
}

static void series_stem(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  const char *name = (const char *)sqlite3_value_text(argv[0]);
  struct period period = period_find(name);
  if (!name) return;
  sqlite3_str *text = sqlite3_str_new(0);
  sqlite3_str_append(text, name, period.start);
  if (period.form) sqlite3_str_appendf(text, "\001%c", period.form); /* \001: in no ordinary name */
  sqlite3_str_appendall(text, name + period.end);
  give(context, text);
}

static int is_one_of(char c, const char *list) {
  return c && strchr(list, c);
}

/* The title is the name without the period, without the punctuation around the period, and without
** a pair of brackets that held only the period. */
static void series_title(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  static const char punctuation[] = " -_:,/";
  const char *name = (const char *)sqlite3_value_text(argv[0]);
  struct period period = period_find(name);
  if (!name) return;
  int before = period.start;
  const char *after = name + period.end;
  for (int had_brackets = period.form != 0; had_brackets;) {
    while (before && is_one_of(name[before - 1], punctuation)) before--;
    while (is_one_of(*after, punctuation)) after++;
    had_brackets = before && is_one_of(name[before - 1], "([") && is_one_of(*after, ")]");
    before -= had_brackets;
    after += had_brackets;
  }
  sqlite3_str *text = sqlite3_str_new(0);
  sqlite3_str_append(text, name, before);
  if (before && *after && !is_one_of(name[before - 1], "([") && !is_one_of(*after, ")]"))
    sqlite3_str_appendall(text, " ");
  sqlite3_str_appendall(text, before || *after ? after : "all");
  give(context, text);
}

static void series_period(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  const char *name = (const char *)sqlite3_value_text(argv[0]);
  struct period period = period_find(name);
  if (period.form)
    sqlite3_result_text(context, name + period.start, period.end - period.start, SQLITE_TRANSIENT);
}

static void series_at(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  const char *name = (const char *)sqlite3_value_text(argv[0]);
  struct period period = period_find(name);
  if (period.form) sqlite3_result_int(context, period.at);
}

static void series_question(sqlite3_context *context, int argc, sqlite3_value **argv) {
  (void)argc;
  const char *sql = (const char *)sqlite3_value_text(argv[0]);
  if (!sql) return;
  sqlite3_str *text = sqlite3_str_new(0);
  for (const char *at = sql; *at; at++)
    if (!is_digit(*at)) {
      sqlite3_str_appendchar(text, 1, *at);
    } else if (!is_digit(at[1])) {
      sqlite3_str_appendchar(text, 1, '0');
    }
  give(context, text);
}

static int series_register(sqlite3 *db) {
  static const struct {
    const char *name;
    void (*function)(sqlite3_context *, int, sqlite3_value **);
  } functions[] = {{"series_stem", series_stem},
                   {"series_title", series_title},
                   {"series_period", series_period},
                   {"series_at", series_at},
                   {"series_question", series_question}};
  int rc = SQLITE_OK;
  for (size_t i = 0; i < sizeof functions / sizeof *functions && rc == SQLITE_OK; i++)
    rc = sqlite3_create_function_v2(db, functions[i].name, 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, 0,
                                    functions[i].function, 0, 0, 0);
  return rc == SQLITE_OK;
}

/* ---- all facts ------------------------------------------------------------------------------- */

sqlite3 *facts_open(struct ledger *ledger, const char *certificate, struct error *error) {
  sqlite3 *facts = 0;
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_FULLMUTEX;
  const char *vfs = sqlite3_vfs_find(FILE_VFS) ? FILE_VFS : 0; /* the VFS for attached files */
  if (own_connection_open(&facts, ":memory:", flags, vfs) != SQLITE_OK) {
    fail(facts, error);
  } else {
    ledger_watch(ledger, facts);
    if (!series_register(facts)) error_set_memory(error);
    if (fill(facts, ledger, certificate, error)) return facts;
  }
  sqlite3_close(facts);
  return 0;
}
