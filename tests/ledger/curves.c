/* curves DATABASE (TIER MECHANISM PARAMETER SCALE DELTA)...: charges releases to the ledger of a
** database. Each group of five arguments is a release. The program calls ledger.h directly, because
** some of the mechanisms have no SQL function of their own. It prints "charged" or the error for
** each release. */
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ledger/ledger.h"
#include "math/math.h"

struct laplace {
  double sensitivity, scale;
};

static double laplace(const void *parameters, double alpha) {
  const struct laplace *p = parameters;
  return laplace_rdp(alpha, p->sensitivity, p->scale);
}

static int charge(struct ledger *ledger, const char *tier, const struct cost *cost) {
  struct ledger_tier *tiers = 0;
  struct ledger_release release = {.kind = "test",
                                   .mechanism = "test",
                                   .options = "{\"clip\":1}",
                                   .clip = 1,
                                   .weight = 1,
                                   .dimension = 1,
                                   .sensitivity = 1,
                                   .radius = 0.0 / 0.0,
                                   .theta = 0.0 / 0.0,
                                   .rho = 0.0 / 0.0,
                                   .lo = 0.0 / 0.0,
                                   .hi = 0.0 / 0.0,
                                   .key_share = 0.0 / 0.0};
  release.fingerprint = ledger_fingerprint(&release);
  int count = 0, at;
  if (ledger_ready(ledger) && ledger_begin(ledger) && ledger_tiers(ledger, &tiers, &count) &&
      (at = ledger_tier_find(ledger, tiers, count, tier)) >= 0 &&
      ledger_release_insert(ledger, &release) &&
      ledger_charge(ledger, &release, tiers, count, at, cost)) {
    struct ledger_grid grid = {0, 1, 1};
    int64_t value = 0;
    struct ledger_point point = {(char *)tier, 1, &value};
    ledger_path_insert(ledger, &release, &grid, &point);
    ledger_publication_insert(ledger, &release, tier, 1, cost, 1, NO_CLIPPING, NAN, 0);
    ledger_release_state(ledger, release.id, "charged", "released");
  }
  int charged = ledger_commit(ledger);
  ledger_tiers_free(tiers, count);
  sqlite3_free(release.name);
  sqlite3_free(release.fingerprint);
  puts(charged ? "charged" : error_text(ledger_error(ledger)));
  return charged;
}

static int no_words(sqlite3 *db) {
  (void)db;
  return SQLITE_OK;
}

int main(int argc, char **argv) {
  sqlite3 *db;
  if (argc < 2 || sqlite3_open(argv[1], &db)) return 1;
  struct error error = {0};
  struct ledger *ledger = ledger_new(db, no_words, &error);
  for (int i = 2; i + 4 < argc; i += 5) {
    struct laplace parameters = {atof(argv[i + 2]), atof(argv[i + 3])};
    struct cost cost = {0, atof(argv[i + 4]), laplace, &parameters};
    if (strcmp(argv[i + 1], "gaussian") == 0)
      cost = (struct cost){parameters.sensitivity, atof(argv[i + 4]), 0, 0};
    charge(ledger, argv[i], &cost);
  }
  ledger_free(ledger);
  error_clear(&error);
  return sqlite3_close(db) != SQLITE_OK;
}
