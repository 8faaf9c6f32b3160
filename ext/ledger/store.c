/*
** store.c: owns the rows of releases, paths, publications and values.
*/
#include <math.h>
#include <string.h>

#include "ledger/internal.h"

SQLITE_EXTENSION_INIT3

static double column_real(sqlite3_stmt *row, int column) {
  return sqlite3_column_type(row, column) == SQLITE_NULL ? NAN : sqlite3_column_double(row, column);
}

/* What is read back must be something that can have been stored; the rest of the code relies on it. */
static int is_sound(const struct ledger_release *r) {
  return r->name && r->kind && r->mechanism && r->options && r->fingerprint && r->state &&
         r->dimension == 1 && r->granularity >= -4000 && r->granularity <= 4000 && r->shift >= 0 &&
         r->shift <= 100 && r->sensitivity > 0 && r->sensitivity < (uint64_t)1 << 32 &&
         r->weight > 0 && r->weight <= 1 && isfinite(r->centre);
}

int ledger_release_find(struct ledger *ledger, const char *name, struct ledger_release *release) {
  memset(release, 0, sizeof *release);
  sqlite3_stmt *row = statement_bind(ledger, RELEASE_FIND, "s", name);
  if (!statement_row(ledger, row)) return 0;
  release->id = sqlite3_column_int64(row, 0);
  char **texts[] = {&release->name,    &release->kind,        &release->mechanism,
                    &release->options, &release->fingerprint, &release->state};
  for (int i = 0; i < 6; i++) *texts[i] = column_copy(ledger, row, 1 + i);
  release->clip = column_real(row, 7);
  release->weight = sqlite3_column_double(row, 8);
  release->slack = sqlite3_column_double(row, 9);
  release->dimension = sqlite3_column_int(row, 10);
  release->granularity = sqlite3_column_int(row, 11);
  release->shift = sqlite3_column_int(row, 12);
  release->sensitivity = (uint64_t)sqlite3_column_int64(row, 13);
  double *reals[] = {&release->centre, &release->radius, &release->theta, &release->rho};
  for (int i = 0; i < 4; i++) *reals[i] = column_real(row, 14 + i);
  sqlite3_reset(row);
  if (!ledger->error && !is_sound(release)) ledger_fail_damaged(ledger, "dp_release");
  if (!ledger->error) return 1;
  ledger_release_clear(release);
  return 0;
}

void ledger_release_clear(struct ledger_release *release) {
  char *texts[] = {release->name,    release->kind,        release->mechanism,
                   release->options, release->fingerprint, release->state};
  for (int i = 0; i < 6; i++) sqlite3_free(texts[i]);
  memset(release, 0, sizeof *release);
}

char *ledger_fingerprint(const struct ledger_release *r) {
  const double numbers[] = {r->clip, r->weight, r->centre, r->radius, r->theta, r->rho};
  sqlite3_str *text = sqlite3_str_new(0);
  sqlite3_str_appendall(text, r->kind);
  for (int i = 0; i < 6; i++) {
    uint64_t bits = 0;
    if (!isnan(numbers[i])) memcpy(&bits, &numbers[i], sizeof bits);
    sqlite3_str_appendf(text, isnan(numbers[i]) ? "/-" : "/%016llx", (unsigned long long)bits);
  }
  return sqlite3_str_finish(text);
}

int ledger_release_insert(struct ledger *ledger, struct ledger_release *r) {
  if (!statement_run(ledger, RELEASE_INSERT, "sssssdddiiiidddd", r->name, r->kind, r->mechanism,
                     r->options, r->fingerprint, r->clip, r->weight, r->slack,
                     (int64_t)r->dimension, (int64_t)r->granularity, (int64_t)r->shift,
                     (int64_t)r->sensitivity, r->centre, r->radius, r->theta, r->rho))
    return 0;
  r->id = sqlite3_last_insert_rowid(ledger->db);
  if (r->name) return 1;
  r->name = sqlite3_mprintf("release-%lld", (long long)r->id);
  if (!r->name) return ledger_fail(ledger, "out of memory");
  return statement_run(ledger, RELEASE_NAME, "is", r->id, r->name);
}

int ledger_release_state(struct ledger *ledger, int64_t id, const char *from, const char *to) {
  if (!statement_run(ledger, RELEASE_STATE, "iss", id, from, to)) return 0;
  return sqlite3_changes(ledger->db) == 1 ||
         ledger_fail(ledger, "the release is no longer '%s' (it was discarded meanwhile)", from);
}

int ledger_release_slack(struct ledger *ledger, int64_t id, double slack) {
  return statement_run(ledger, RELEASE_SLACK, "id", id, slack);
}

/* ---- paths --------------------------------------------------------------------------------------- */

void ledger_path_free(struct ledger_point *points, int count) {
  for (int i = 0; i < count; i++) {
    sqlite3_free(points[i].tier);
    sqlite3_free(points[i].values);
  }
  sqlite3_free(points);
}

static struct ledger_point *point_append(struct ledger *ledger, struct ledger_point **points,
                                         int *count, int dimension) {
  struct ledger_point *grown =
      sqlite3_realloc64(*points, sizeof **points * (sqlite3_uint64)(*count + 1));
  int64_t *values = sqlite3_malloc64(sizeof *values * (sqlite3_uint64)dimension);
  if (grown) *points = grown;
  if (!grown || !values) {
    sqlite3_free(values);
    ledger_fail(ledger, "out of memory");
    return 0;
  }
  struct ledger_point *point = &grown[(*count)++];
  *point = (struct ledger_point){0, 0, values};
  return point;
}

int ledger_path_read(struct ledger *ledger, const struct ledger_release *release,
                     struct ledger_point **points, int *count) {
  *points = 0;
  *count = 0;
  int component = release->dimension;
  sqlite3_stmt *row = statement_bind(ledger, PATH_READ, "i", release->id);
  while (statement_row(ledger, row)) {
    struct ledger_point *point = *count ? &(*points)[*count - 1] : 0;
    if (component == release->dimension) { /* the last point is complete */
      point = point_append(ledger, points, count, release->dimension);
      if (!point) return 0;
      point->tier = column_copy(ledger, row, 0);
      point->clock = (uint64_t)sqlite3_column_int64(row, 1);
      component = 0;
    }
    point->values[component++] = sqlite3_column_int64(row, 3);
  }
  int sound = *count > 0 && component == release->dimension;
  for (int i = 0; i < *count; i++)
    sound = sound && (*points)[i].tier && (*points)[i].clock >= (uint64_t)1 << 20 &&
            (*points)[i].clock < (uint64_t)1 << 62;
  if (!ledger->error && !sound) ledger_fail_damaged(ledger, "dp_path");
  return !ledger->error;
}

int ledger_path_insert(struct ledger *ledger, const struct ledger_release *release,
                       const struct ledger_point *point) {
  for (int i = 0; i < release->dimension; i++)
    statement_run(ledger, PATH_INSERT, "issiii", release->id, release->name, point->tier,
                  (int64_t)point->clock, (int64_t)i, point->values[i]);
  return !ledger->error;
}

/* ---- publications -------------------------------------------------------------------------------- */

int ledger_publication_insert(struct ledger *ledger, const struct ledger_release *release,
                              const char *tier, uint64_t clock, const struct ledger_cost *cost,
                              double shrink) {
  unsigned char bytes[CURVE_BYTES];
  int size;
  struct curve curve = curve_of(cost, NAN);
  const void *blob = curve_bytes(&curve, bytes, &size);
  return statement_run(ledger, PUBLICATION_INSERT, "issidddbd", release->id, release->name, tier,
                       (int64_t)clock, cost->rate, shrink, release->centre, blob, size,
                       cost->delta);
}

int ledger_value_insert(struct ledger *ledger, const struct ledger_release *release,
                        const char *tier, const char *key, int component, double value,
                        double stddev, double low, double high) {
  return statement_run(ledger, VALUE_INSERT, "isssidddd", release->id, release->name, tier, key,
                       (int64_t)component, value, stddev, low, high);
}

int ledger_value_read(struct ledger *ledger, int64_t release_id, const char *tier, double *value,
                      uint64_t *clock) {
  sqlite3_stmt *row = statement_bind(ledger, VALUE_READ, "is", release_id, tier);
  if (!statement_row(ledger, row)) return 0;
  *value = sqlite3_column_double(row, 0);
  *clock = (uint64_t)sqlite3_column_int64(row, 1);
  sqlite3_reset(row);
  return 1;
}

int ledger_value_find(struct ledger *ledger, int64_t release_id, const char *tier, const char *key,
                      double *value, double *stddev) {
  sqlite3_stmt *row = statement_bind(ledger, VALUE_FIND, "iss", release_id, tier, key);
  if (!statement_row(ledger, row)) return 0;
  *value = sqlite3_column_double(row, 0);
  *stddev = sqlite3_column_double(row, 1);
  sqlite3_reset(row);
  return 1;
}
