/* decode.c: an aggregate that only decodes vectors, for comparison. decode_vector(v, dim) adds up
** the coordinates of BLOBs of little-endian float32 and returns the sum of the totals. */
#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT1
#include <string.h>

struct totals {
  int dim;
  double *sums;
};

static void step(sqlite3_context *context, int count, sqlite3_value **values) {
  (void)count;
  struct totals *totals = sqlite3_aggregate_context(context, sizeof *totals);
  if (!totals) return sqlite3_result_error_nomem(context);
  const unsigned char *bytes = sqlite3_value_blob(values[0]);
  if (!totals->sums) {
    totals->dim = sqlite3_value_int(values[1]);
    totals->sums = sqlite3_malloc64(sizeof(double) * (sqlite3_uint64)totals->dim);
    if (!totals->sums) return sqlite3_result_error_nomem(context);
    memset(totals->sums, 0, sizeof(double) * (size_t)totals->dim);
  }
  if (sqlite3_value_bytes(values[0]) != 4 * totals->dim) return;
  for (int i = 0; i < totals->dim; i++) {
    float value;
    memcpy(&value, bytes + 4 * i, sizeof value);
    totals->sums[i] += value;
  }
}

static void final(sqlite3_context *context) {
  struct totals *totals = sqlite3_aggregate_context(context, 0);
  double sum = 0;
  for (int i = 0; totals && totals->sums && i < totals->dim; i++) sum += totals->sums[i];
  if (totals) sqlite3_free(totals->sums);
  sqlite3_result_double(context, sum);
}

int sqlite3_decode_init(sqlite3 *db, char **error, const sqlite3_api_routines *api);
int sqlite3_decode_init(sqlite3 *db, char **error, const sqlite3_api_routines *api) {
  (void)error;
  SQLITE_EXTENSION_INIT2(api);
  return sqlite3_create_function_v2(db, "decode_vector", 2, SQLITE_UTF8, 0, 0, step, final, 0);
}
