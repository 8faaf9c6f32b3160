/* export.c: export_write(). sql/reporting.md explains the exported file to its readers.
** Tests: tests/report/test_export.py */
#include <stdint.h>

#include "noise/noise.h"
#include "os/os.h"
#include "report/report.h"

SQLITE_EXTENSION_INIT3

/* The table handover.value joins dp_value and dp_publication by the name of the release and the
** tier. The name identifies one release, because the facts have no values and no publications of
** discarded releases, and all other releases have different names. */
static const char tables_sql[] =
    "BEGIN;"
    "CREATE TABLE handover.value(\n"
    "  release      TEXT NOT NULL,\n"
    "  tier         TEXT NOT NULL,\n"
    "  key          TEXT NOT NULL,      -- '' for a release of one number\n"
    "  component    INTEGER NOT NULL,\n"
    "  label        TEXT NOT NULL,      -- key and component, as people write them\n"
    "  value        REAL NOT NULL,\n"
    "  stddev       REAL,               -- of the noise in value; NULL for a symbol, which is the"
    " key\n"
    "  low          REAL,               -- 95% interval of the noise around value\n"
    "  high         REAL,\n"
    "  display      TEXT,               -- value and interval, as people write them\n"
    "  figure       TEXT NOT NULL,      -- what the value is, in words\n"
    "  corrects     TEXT,               -- the day of an earlier figure of this name; NULL: none\n"
    "  published_at TEXT NOT NULL       -- a day in UTC\n"
    ");"
    "INSERT INTO handover.value"
    " SELECT v.release, v.tier, v.key, v.component, v.label, v.value, v.stddev, v.low, v.high,"
    " v.display, v.figure, (SELECT day FROM corrected c WHERE c.release = v.release),"
    " p.published_at FROM dp_value v JOIN dp_publication p USING (release, "
    "tier)"
    " ORDER BY p.published_at, v.release, v.tier, v.key, v.component;"
    "CREATE TABLE handover.tier(\n"
    "  name          TEXT NOT NULL PRIMARY KEY,\n"
    "  rate          REAL NOT NULL,     -- zCDP rate of one release at most\n"
    "  epsilon       REAL NOT NULL,     -- the whole budget\n"
    "  delta         REAL NOT NULL,\n"
    "  accountant    TEXT NOT NULL,\n"
    "  spent_rate    REAL NOT NULL,     -- the rate that its members have seen\n"
    "  spent_epsilon REAL NOT NULL,\n"
    "  releases      INTEGER NOT NULL,\n"
    "  period        TEXT,              -- the budget and what is spent are for each such period\n"
    "  period_start  TEXT,              -- its first day, and the first day of the next one\n"
    "  period_end    TEXT,\n"
    "  wider_epsilon REAL               -- of the wider unit in the certificate; NULL: none\n"
    ");"
    "INSERT INTO handover.tier"
    " SELECT t.name, t.rate, t.epsilon, t.delta, t.accountant, b.spent_rate, b.spent_epsilon,"
    " b.releases, t.period, b.period_start, b.period_end, b.wider_epsilon FROM dp_tier t JOIN "
    "dp_budget b"
    " ON b.tier = t.name ORDER BY t.rate DESC;"
    "CREATE TABLE handover.certificate(document TEXT NOT NULL);"
    "INSERT INTO handover.certificate SELECT document FROM main.certificate;"
    "COMMIT;"
    "DETACH handover";

/* Writes the tables to an empty file and syncs it. */
static int write_tables(sqlite3 *facts, const char *part, struct error *error) {
  static const char settings[] =
      "PRAGMA handover.journal_mode = MEMORY; PRAGMA handover.synchronous = FULL";
  char *attach = sqlite3_mprintf("ATTACH %Q AS handover", part);
  int rc = attach ? sqlite3_exec(facts, attach, 0, 0, 0) : SQLITE_NOMEM;
  sqlite3_free(attach);
  if (rc == SQLITE_OK) rc = sqlite3_exec(facts, settings, 0, 0, 0);
  if (rc == SQLITE_OK) rc = sqlite3_exec(facts, tables_sql, 0, 0, 0);
  if (rc == SQLITE_NOMEM) error_set_memory(error);
  if (rc != SQLITE_OK) {
    error_set(error, "cannot write file: %s", sqlite3_errmsg(facts));
    sqlite3_exec(facts, "ROLLBACK", 0, 0, 0);
    sqlite3_exec(facts, "DETACH handover", 0, 0, 0);
  }
  return rc == SQLITE_OK;
}

static int fail_creation(enum creation creation, struct error *error) {
  if (creation == FILE_EXISTS)
    return error_set(error, "file exists already (choose the name of a new file)");
  return error_set(error, "cannot create file (is its folder there, and may it be written?)");
}

/* Writes the file beside its name, and gives it the name when it is complete. */
static int write_file(sqlite3 *facts, const char *path, const char *model, struct error *error) {
  uint64_t number; /* for a name that nobody else has: it need not be secret */
  if (!entropy_fill(&number, sizeof number))
    return error_set(error, "the system gave no random bytes");
  char *part = sqlite3_mprintf("%.*sdp_export-%016llx.part", (int)(path_name(path) - path), path,
                               (sqlite3_uint64)number);
  if (!part) return error_set_memory(error);
  enum creation creation = file_create(part, model);
  int written = 0;
  if (creation != FILE_CREATED) {
    fail_creation(FILE_REFUSED, error); /* nobody else has a file of this name */
  } else if (write_tables(facts, part, error)) {
    creation = file_publish(part, path);
    written = creation == FILE_CREATED || fail_creation(creation, error);
  }
  if (!written) file_delete(part);
  sqlite3_free(part);
  return written;
}

int export_write(sqlite3 *facts, const char *file, const struct ledger *ledger,
                 struct error *error) {
  /* The "./" keeps SQLite from reading a name as a URI, or ":memory:" as a database in memory. */
  char *path = sqlite3_mprintf("%s%s", path_is_absolute(file) ? "" : "./", file);
  int written = 0;
  if (!path) return error_set_memory(error);
  if (file_exists(path)) {
    fail_creation(FILE_EXISTS, error);
  } else if (ledger_has_file(ledger, path)) {
    error_set(error, "file is one of the database or of its ledger (choose another name)");
  } else {
    written = write_file(facts, path, ledger_database(ledger), error);
  }
  sqlite3_free(path);
  return written;
}
