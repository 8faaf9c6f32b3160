/* store.c: reads and writes the rows of releases, paths, publications and values.
** Tests: tests/ledger/test_crash.py, tests/release/test_series_crash.py,
** tests/release/test_series_secrets.py, tests/ledger/test_edits.py,
** tests/functions/test_plan_bounds.py, tests/categories/test_symbols.py */
#include <math.h>
#include <string.h>

#include "base/sql_text.h"
#include "ledger/internal.h"

SQLITE_EXTENSION_INIT3

/* The columns of a release beside its id, in the order in which release_read() reads them and
** ledger_release_insert() writes them. */
#define RELEASE_COLUMNS                                                                            \
  "name, kind, mechanism, clip, weight, centre, radius, theta, rho, lo, hi, grid, diagnose, "      \
  "until,"                                                                                         \
  " least, stop, key_share, size, max_groups, quantiles, keys, ways, multipliers, periods,"        \
  " appended, secret, unit_type, model, dimension, granularity, shift, sensitivity, slack,"        \
  " options, sql, statement, fingerprint, state"

/* The rest of the code relies on this check of values that diffuse can have stored. */
static int is_sound(const struct ledger_release *r) {
  int is_private = r->max_groups > 0 && r->dimension == 0 && r->key_share > 0 && r->key_share <= 1;
  return r->name && r->kind && r->mechanism && r->options && r->fingerprint && r->state &&
         (r->dimension > 0 || is_private) && r->size >= 0 && r->granularity >= -4000 &&
         r->granularity <= 4000 && r->shift >= 0 && r->shift <= 100 && r->sensitivity > 0 &&
         r->sensitivity < (uint64_t)1 << 32 && r->weight > 0 && r->weight <= 1 &&
         isfinite(r->centre);
}

/* Reads a row of id and RELEASE_COLUMNS, checks nothing, and returns the column after them. */
static int release_read(struct ledger *ledger, sqlite3_stmt *row, struct ledger_release *r) {
  int at = 0;
  r->id = sqlite3_column_int64(row, at++);
  char **names[] = {&r->name, &r->kind, &r->mechanism};
  double *numbers[] = {&r->clip, &r->weight, &r->centre, &r->radius, &r->theta,
                       &r->rho,  &r->lo,     &r->hi,     &r->grid};
  char **lists[] = {&r->quantiles, &r->keys, &r->ways, &r->multipliers, &r->periods};
  char **series[] = {&r->secret, &r->unit_type, &r->model};
  char **texts[] = {&r->options, &r->sql, &r->statement, &r->fingerprint, &r->state};
  for (int i = 0; i < 3; i++) *names[i] = column_copy(ledger, row, at++);
  for (int i = 0; i < 9; i++) *numbers[i] = column_number(row, at++);
  r->diagnose = sqlite3_column_int(row, at++);
  r->until = column_number(row, at++);
  r->least = column_number(row, at++);
  r->stop = (uint64_t)sqlite3_column_int64(row, at++);
  r->key_share = column_number(row, at++);
  r->size = sqlite3_column_int(row, at++);
  r->max_groups = sqlite3_column_int(row, at++);
  for (int i = 0; i < 5; i++) *lists[i] = column_copy(ledger, row, at++);
  r->appended = sqlite3_column_int(row, at++);
  for (int i = 0; i < 3; i++) *series[i] = column_copy(ledger, row, at++);
  r->dimension = sqlite3_column_int(row, at++);
  r->granularity = sqlite3_column_int(row, at++);
  r->shift = sqlite3_column_int(row, at++);
  r->sensitivity = (uint64_t)sqlite3_column_int64(row, at++);
  r->slack = column_number(row, at++);
  for (int i = 0; i < 5; i++) *texts[i] = column_copy(ledger, row, at++);
  return at;
}

static int find_release(struct ledger *ledger, sqlite3_stmt *row, struct ledger_release *release) {
  memset(release, 0, sizeof *release);
  if (!statement_row(ledger, row)) return 0;
  release_read(ledger, row, release);
  if (!error_is_set(ledger->error) && !is_sound(release)) ledger_fail_damaged(ledger, "dp_release");
  if (!error_is_set(ledger->error)) return 1;
  ledger_release_clear(release);
  return 0;
}

int ledger_release_find(struct ledger *ledger, const char *name, struct ledger_release *release) {
  return find_release(ledger,
                      statement_bind(ledger,
                                     "SELECT id, " RELEASE_COLUMNS
                                     " FROM dp_release WHERE name = ? AND state <> 'discarded'",
                                     "s", name),
                      release);
}

int ledger_release_get(struct ledger *ledger, int64_t id, struct ledger_release *release) {
  return find_release(ledger,
                      statement_bind(ledger,
                                     "SELECT id, " RELEASE_COLUMNS " FROM dp_release WHERE id = ?",
                                     "i", id),
                      release);
}

/* The members of a tier may not know the names of all releases, so they get no suggestion. */
int ledger_release_unknown(struct ledger *ledger, const char *name) {
  struct known_names known = {.asked = name};
  if (error_is_set(ledger->error)) return 0;
  sqlite3_stmt *row =
      ledger->audience
          ? 0
          : statement_bind(
                ledger, "SELECT name FROM dp_release WHERE state <> 'discarded' ORDER BY id", "");
  while (statement_row(ledger, row)) {
    const char *other = (const char *)sqlite3_column_text(row, 0);
    if (other) known_names_add(&known, other);
  }
  /* Advice: Names are exact. The answers of a grant have its name in front: `visitors/all`. */
  return known_names_fail(&known, ledger->error, "unknown release%s (%sdp_release lists them)");
}

void ledger_release_clear(struct ledger_release *r) {
  char *texts[] = {r->name,        r->kind,      r->mechanism,   r->quantiles, r->keys,  r->ways,
                   r->multipliers, r->periods,   r->secret,      r->unit_type, r->model, r->options,
                   r->sql,         r->statement, r->fingerprint, r->state};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) sqlite3_free(texts[i]);
  memset(r, 0, sizeof *r);
}

/* A field of a fingerprint: a text or, with `digest`, its hash; null is '-'. */
static void text_field(sqlite3_str *fields, const char *text, int digest) {
  char hash[HASH_SIZE];
  if (text && digest) text_hash(text, strlen(text), hash);
  sqlite3_str_appendf(fields, "%s%s", sqlite3_str_length(fields) ? "/" : "",
                      !text    ? "-"
                      : digest ? hash
                               : text);
}

/* A field of a fingerprint: the bits of a number; NaN is '-'. */
static void number_field(sqlite3_str *fields, double number) {
  uint64_t bits;
  memcpy(&bits, &number, sizeof bits);
  sqlite3_str_appendf(fields, isnan(number) ? "/-" : "/%016llx", (unsigned long long)bits);
}

char *ledger_fingerprint(const struct ledger_release *r) {
  sqlite3_str *fields = sqlite3_str_new(0);
  const double numbers[] = {r->clip, r->weight, r->centre, r->radius, r->theta,
                            r->rho,  r->lo,     r->hi,     r->grid};
  const char *texts[] = {r->keys, r->ways, r->periods, r->model};
  text_field(fields, r->kind, 0);
  text_field(fields, r->mechanism, 0);
  for (int i = 0; i < 9; i++) number_field(fields, numbers[i]);
  sqlite3_str_appendf(fields, "/%d", r->diagnose);
  number_field(fields, r->until);
  number_field(fields, r->least);
  number_field(fields, r->key_share);
  sqlite3_str_appendf(fields, "/%d/%d", r->size, r->max_groups);
  text_field(fields, r->quantiles, 0);
  for (int i = 0; i < 4; i++) text_field(fields, texts[i], 1);
  return sqlite3_str_finish(fields);
}

int ledger_release_insert(struct ledger *ledger, struct ledger_release *r) {
  if (r->name && grant_owns_name(ledger, r->name) != (ledger->grant != 0))
    return ledger_fail(ledger, "names that begin with the name of a grant and '/' belong to that "
                               "grant (dp_grant lists them; choose another name)");
  if (!ledger_check_name(ledger, "name", r->name)) return 0;
  /* An unnamed release is 'release-0' until its id is known. No id is 0, so the name is free. */
  if (!statement_run(ledger, CHANGES_NEW_RELEASE,
                     "INSERT INTO dp_release(" RELEASE_COLUMNS ", created_at) VALUES (?, ?, ?, ?,"
                     " ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
                     " ?, ?, ?, ?, ?, ?, ?, ?, 'charged', " STATEMENT_NOW ")",
                     "sssdddddddddnddndnnsssssnsssniiidssss", r->name ? r->name : "release-0",
                     r->kind, r->mechanism, r->clip, r->weight, r->centre, r->radius, r->theta,
                     r->rho, r->lo, r->hi, r->grid, (int64_t)r->diagnose, r->until, r->least,
                     (int64_t)r->stop, r->key_share, (int64_t)r->size, (int64_t)r->max_groups,
                     r->quantiles, r->keys, r->ways, r->multipliers, r->periods,
                     (int64_t)r->appended, r->secret, r->unit_type, r->model, (int64_t)r->dimension,
                     (int64_t)r->granularity, (int64_t)r->shift, (int64_t)r->sensitivity, r->slack,
                     r->options, r->sql, r->statement, r->fingerprint))
    return 0;
  r->id = sqlite3_last_insert_rowid(ledger->db);
  touched_add(ledger, r->id);
  if (r->name) return 1;
  r->name = sqlite3_mprintf("release-%lld", (long long)r->id);
  if (!r->name) return ledger_fail(ledger, "out of memory");
  return statement_run(ledger, CHANGES_RELEASE, "UPDATE dp_release SET name = ?2 WHERE id = ?1",
                       "is", r->id, r->name);
}

int ledger_release_state(struct ledger *ledger, int64_t id, const char *from, const char *to) {
  if (!ledger_trust_release(ledger, id)) return 0; /* a new seal would hide an edit of the file */
  if (!statement_run(ledger, CHANGES_RELEASE,
                     "UPDATE dp_release SET state = ?3 WHERE id = ?1 AND state = ?2", "iss", id,
                     from, to))
    return 0;
  return sqlite3_changes(ledger->db) == 1 ||
         ledger_fail(ledger, "the release is no longer '%s' (it was discarded meanwhile)", from);
}

int ledger_release_stop(struct ledger *ledger, int64_t id, uint64_t stop) {
  return statement_run(ledger, CHANGES_RELEASE, "UPDATE dp_release SET stop = ?2 WHERE id = ?1",
                       "ii", id, (int64_t)stop);
}

int ledger_release_slack(struct ledger *ledger, int64_t id, double slack) {
  return statement_run(ledger, CHANGES_RELEASE, "UPDATE dp_release SET slack = ?2 WHERE id = ?1",
                       "id", id, slack);
}

/* ---- paths ----------------------------------------------------------------------------------- */

void ledger_path_free(struct ledger_path *path) {
  for (int i = 0; i < path->count; i++) {
    sqlite3_free(path->points[i].tier);
    sqlite3_free(path->points[i].values);
  }
  for (int i = 0; path->grid.keys && i < path->grid.cells; i++) sqlite3_free(path->grid.keys[i]);
  sqlite3_free(path->points);
  sqlite3_free(path->grid.keys);
  memset(path, 0, sizeof *path);
}

/* A total is at most 2^62, and the standard deviation of its noise is below 2^31. */
#define FARTHEST (((int64_t)1 << 62) + ((int64_t)1 << 40))

/* Returns whether a point of the release may have no coordinate: no private key was kept, or no
** period of a series has been appended. Each point then begins with a row of component -1. */
static int may_be_empty(const struct ledger_release *release) {
  return release->dimension == 0 || release->periods;
}

/* The state of ledger_path_read(). */
struct path_reading {
  struct ledger_path *path;
  int is_keyed; /* 1: the first point says which keys there are */
  int has_head; /* 1: each point has a row of component -1 (may_be_empty()) */
  int rows;     /* the number of rows of the last point that have been read */
};

/* Returns whether the cell with this index has this key. */
static int read_key(struct ledger *ledger, struct path_reading *reading, sqlite3_stmt *row,
                    int cell) {
  struct ledger_grid *grid = &reading->path->grid;
  const char *key = column_text(ledger, row, 2);
  if (!reading->is_keyed) return cell == 0 && !*key;
  if (reading->path->count == 1 && cell == grid->cells) {
    if (!ledger_make_room(ledger, &grid->keys, cell, sizeof *grid->keys)) return 0;
    grid->keys[grid->cells++] = column_copy(ledger, row, 2);
  }
  return cell < grid->cells && grid->keys[cell] && strcmp(grid->keys[cell], key) == 0;
}

/* Returns whether the last point has all its rows. */
static int is_whole(const struct path_reading *reading) {
  const struct ledger_grid *grid = &reading->path->grid;
  return reading->rows == grid->cells * grid->components + grid->extra + reading->has_head;
}

/* Reads a row of the last point, or begins a point. The rows of a point are the components of each
** key, then `extra` counts of the key '', whose components end with -2, and then the head. */
static int read_row(struct ledger *ledger, struct path_reading *reading, sqlite3_stmt *row) {
  struct ledger_path *path = reading->path;
  const struct ledger_grid *grid = &path->grid;
  const char *tier = column_text(ledger, row, 0);
  if (!path->count || strcmp(path->points[path->count - 1].tier, tier) != 0) {
    if ((path->count && !is_whole(reading)) ||
        !ledger_make_room(ledger, &path->points, path->count, sizeof *path->points))
      return 0;
    char *copy = column_copy(ledger, row, 0);
    if (!copy) return 0;
    path->points[path->count++] =
        (struct ledger_point){copy, (uint64_t)sqlite3_column_int64(row, 1), 0};
    reading->rows = 0;
  }
  struct ledger_point *point = &path->points[path->count - 1];
  int component = sqlite3_column_int(row, 3), at = reading->rows++;
  int64_t value = sqlite3_column_int64(row, 4);
  if (value > FARTHEST || value < -FARTHEST) return 0;
  if (component >= 0) {
    if (component != at % grid->components ||
        !read_key(ledger, reading, row, at / grid->components))
      return 0;
  } else {
    int behind = at - grid->cells * grid->components; /* the rows between the keys and this one */
    if (behind < 0 || component != behind - 1 - grid->extra) return 0;
  }
  if (component == -1) return reading->has_head;
  if (!ledger_make_room(ledger, &point->values, at, sizeof *point->values)) return 0;
  point->values[at] = value;
  return 1;
}

int ledger_path_read(struct ledger *ledger, const struct ledger_release *release,
                     struct ledger_grid grid, struct ledger_path *path) {
  int has_head = may_be_empty(release), is_keyed = release->keys || has_head;
  int sound = grid.components > 0;
  *path = (struct ledger_path){{0, is_keyed ? 0 : 1, grid.components, grid.extra}, 0, 0};
  struct path_reading reading = {path, is_keyed, has_head, 0};
  /* The order is by rate, not by clock, because two tiers with almost equal rates can have points
  ** with the same clock. */
  sqlite3_stmt *row = statement_bind(ledger,
                                     "SELECT tier, clock, key, component, value FROM dp_path"
                                     " JOIN dp_tier ON name = tier WHERE release_id = ?"
                                     " ORDER BY dp_tier.rate DESC, component < 0, key, component",
                                     "i", release->id);
  while (sound && statement_row(ledger, row)) sound = read_row(ledger, &reading, row);
  sound = sound && path->count && is_whole(&reading) &&
          (has_head || path->grid.cells * grid.components == release->dimension);
  for (int i = 0; i < path->count; i++)
    sound = sound && path->points[i].clock >= (uint64_t)1 << 20 &&
            path->points[i].clock < (uint64_t)1 << 62 &&
            (i == 0 || path->points[i].clock >= path->points[i - 1].clock);
  if (!error_is_set(ledger->error) && !sound) ledger_fail_damaged(ledger, "dp_path");
  return !error_is_set(ledger->error);
}

int ledger_path_exists(struct ledger *ledger, int64_t release_id) {
  return statement_integer(ledger, "SELECT 1 FROM dp_point WHERE release_id = ? LIMIT 1", "i",
                           release_id) != 0;
}

static int64_t insert_point(struct ledger *ledger, const struct ledger_release *release,
                            const char *tier, uint64_t clock) {
  return statement_run(ledger, CHANGES_RELEASE,
                       "INSERT INTO dp_point(release_id, release, tier, clock) VALUES (?, ?, ?, ?)",
                       "issi", release->id, release->name, tier, (int64_t)clock)
             ? sqlite3_last_insert_rowid(ledger->db)
             : 0;
}

static int insert_coordinate_row(struct ledger *ledger, int64_t point, const char *key,
                                 int component, int64_t value) {
  return statement_run(ledger, CHANGES_POINT,
                       "INSERT INTO dp_coordinate(point, key, component, value)"
                       " VALUES (?, ?, ?, ?)",
                       "isii", point, key, (int64_t)component, value);
}

static int insert_cells(struct ledger *ledger, int64_t point, const struct ledger_grid *grid,
                        const int64_t *values) {
  for (int cell = 0; cell < grid->cells; cell++) {
    const char *key = grid->keys ? grid->keys[cell] : "";
    for (int j = 0; j < grid->components; j++)
      if (!insert_coordinate_row(ledger, point, key, j, *values++)) return 0;
  }
  return !error_is_set(ledger->error);
}

int ledger_path_insert(struct ledger *ledger, const struct ledger_release *release,
                       const struct ledger_grid *grid, const struct ledger_point *point) {
  int64_t id = insert_point(ledger, release, point->tier, point->clock);
  const int64_t *extra = &point->values[grid->cells * grid->components];
  for (int i = 0; i < grid->extra; i++)
    insert_coordinate_row(ledger, id, "", i - 1 - grid->extra, extra[i]);
  if (may_be_empty(release)) insert_coordinate_row(ledger, id, "", -1, 0);
  return insert_cells(ledger, id, grid, point->values);
}

int ledger_point_extend(struct ledger *ledger, const struct ledger_release *release,
                        const char *tier, const struct ledger_grid *grid, const int64_t *values) {
  int64_t point = statement_integer(
      ledger, "SELECT id FROM dp_point WHERE release_id = ? AND tier = ?", "is", release->id, tier);
  return point ? insert_cells(ledger, point, grid, values)
               : ledger_fail_damaged(ledger, "dp_point");
}

/* ---- publications ---------------------------------------------------------------------------- */

int ledger_publication_insert(struct ledger *ledger, const struct ledger_release *release,
                              const char *tier, uint64_t clock, const struct cost *cost,
                              double shrink, struct ledger_clipping clipping, double threshold,
                              const char *kernel) {
  unsigned char bytes[CURVE_BYTES];
  struct curve curve = curve_of(cost, NAN);
  return statement_run(
      ledger, CHANGES_RELEASE,
      "INSERT INTO dp_publication(release_id, release, tier, clock, rate, shrink, centre,"
      " curve, delta, kernel, clipped, unclipped, unit_stddev, cut, cut_low, cut_high,"
      " cut_within, wider_clipped, wider_unclipped, threshold, published_at)"
      " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, " STATEMENT_NOW ")",
      "issidddbdsdddddddddd", release->id, release->name, tier, (int64_t)clock, cost->rate, shrink,
      release->centre, curve_bytes(&curve, bytes), cost->delta, kernel, clipping.clipped,
      clipping.unclipped, clipping.stddev, clipping.cut, clipping.cut_low, clipping.cut_high,
      clipping.within, clipping.wider_clipped, clipping.wider_unclipped, threshold);
}

static const char select_publication[] =
    "SELECT clock, kernel FROM dp_publication WHERE release_id = ? AND tier = ?";

int ledger_publication_find(struct ledger *ledger, int64_t release_id, const char *tier,
                            uint64_t *clock) {
  sqlite3_stmt *row = statement_bind(ledger, select_publication, "is", release_id, tier);
  if (!statement_row(ledger, row)) return 0;
  *clock = (uint64_t)sqlite3_column_int64(row, 0);
  return 1;
}

int ledger_publications(struct ledger *ledger,
                        int (*take)(void *context, const struct ledger_publication *publication),
                        void *context) {
  sqlite3_stmt *row = statement_bind(ledger,
                                     "SELECT release_id, tier, clock, rate, shrink, centre, delta,"
                                     " clipped, unclipped, unit_stddev, cut, cut_low, cut_high,"
                                     " cut_within, wider_clipped, wider_unclipped, curve, threshold"
                                     " FROM dp_publication ORDER BY release_id",
                                     "");
  while (statement_row(ledger, row)) {
    struct curve curve = curve_column(ledger, row, 16);
    struct ledger_publication publication = {
        sqlite3_column_int64(row, 0),
        (const char *)sqlite3_column_text(row, 1),
        (uint64_t)sqlite3_column_int64(row, 2),
        sqlite3_column_double(row, 3),
        sqlite3_column_double(row, 4),
        sqlite3_column_double(row, 5),
        sqlite3_column_double(row, 6),
        {column_number(row, 7), column_number(row, 8), column_number(row, 9),
         column_number(row, 10), column_number(row, 11), column_number(row, 12),
         column_number(row, 13), column_number(row, 14), column_number(row, 15)},
        column_number(row, 17),
        curve.any ? curve.values : 0};
    if (!(publication.tier ? take(context, &publication) : ledger_fail(ledger, "out of memory")))
      break;
  }
  return !error_is_set(ledger->error);
}

int ledger_kernel_find(struct ledger *ledger, int64_t release_id, const char *tier, char **kernel) {
  *kernel = 0;
  sqlite3_stmt *row = statement_bind(ledger, select_publication, "is", release_id, tier);
  if (!statement_row(ledger, row)) return 0;
  *kernel = column_copy(ledger, row, 1);
  return !error_is_set(ledger->error);
}

/* ---- symbols --------------------------------------------------------------------------------- */

int ledger_symbol_insert(struct ledger *ledger, const struct ledger_release *release,
                         const char *tier, const char *symbol) {
  return insert_coordinate_row(ledger, insert_point(ledger, release, tier, 0), symbol, 0, 1);
}

int ledger_stages(struct ledger *ledger, int64_t release_id,
                  int (*take)(void *context, const struct ledger_stage *stage), void *context) {
  sqlite3_stmt *row = statement_bind(ledger,
                                     "SELECT tier, kernel, curve FROM dp_publication JOIN dp_tier t"
                                     " ON t.name = tier WHERE release_id = ? ORDER BY t.rate DESC",
                                     "i", release_id);
  while (statement_row(ledger, row)) {
    struct curve curve = curve_column(ledger, row, 2);
    struct ledger_stage stage = {column_borrow(ledger, row, 0), column_borrow(ledger, row, 1),
                                 curve.values};
    if (!curve.any) memset(curve.values, 0, sizeof curve.values);
    if (error_is_set(ledger->error) || !take(context, &stage)) break;
  }
  return !error_is_set(ledger->error);
}

int ledger_reports(struct ledger *ledger, int64_t release_id, const char *tier,
                   int (*take)(void *context, const char *symbol, int64_t count), void *context) {
  sqlite3_stmt *row = statement_bind(ledger,
                                     "SELECT key, value FROM dp_path WHERE release_id = ?"
                                     " AND tier = ? ORDER BY key, component",
                                     "is", release_id, tier);
  while (statement_row(ledger, row)) {
    const char *symbol = (const char *)sqlite3_column_text(row, 0);
    if (!(symbol ? take(context, symbol, sqlite3_column_int64(row, 1))
                 : ledger_fail(ledger, "out of memory")))
      break;
  }
  return !error_is_set(ledger->error);
}

/* ---- values ---------------------------------------------------------------------------------- */

int ledger_value_insert(struct ledger *ledger, const struct ledger_release *release,
                        const char *tier, const struct ledger_value *value) {
  return statement_run(ledger, CHANGES_RELEASE,
                       "INSERT INTO dp_value(release_id, release, tier, key,"
                       " component, value, stddev, low, high)"
                       " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                       "isssidddd", release->id, release->name, tier, value->key,
                       (int64_t)value->component, value->value, value->stddev, value->low,
                       value->high);
}

int ledger_values(struct ledger *ledger, int64_t release_id, const char *tier,
                  int (*take)(void *context, const struct ledger_value *value), void *context) {
  sqlite3_stmt *row = statement_bind(ledger,
                                     "SELECT key, component, value, stddev, low, high FROM dp_value"
                                     " WHERE release_id = ? AND tier = ? ORDER BY key, component",
                                     "is", release_id, tier);
  while (statement_row(ledger, row)) {
    struct ledger_value value = column_value(row);
    if (!(value.key ? take(context, &value) : ledger_fail(ledger, "out of memory"))) break;
  }
  return !error_is_set(ledger->error);
}

int ledger_value_find(struct ledger *ledger, int64_t release_id, const char *tier, const char *key,
                      int component, double *value, double *stddev) {
  sqlite3_stmt *row = statement_bind(ledger,
                                     "SELECT value, stddev FROM dp_value WHERE release_id = ?"
                                     " AND tier = ? AND key = ? AND component = ?",
                                     "issi", release_id, tier, key, (int64_t)component);
  if (!statement_row(ledger, row)) return 0;
  *value = sqlite3_column_double(row, 0);
  *stddev = sqlite3_column_double(row, 1);
  return 1;
}

/* ---- what the ledger keeps of a series ------------------------------------------------------- */

int ledger_series_append(struct ledger *ledger, int64_t release_id, int appended) {
  return statement_run(ledger, CHANGES_RELEASE, "UPDATE dp_release SET appended = ?2 WHERE id = ?1",
                       "ii", release_id, (int64_t)appended);
}

static const char delete_allowances[] = "DELETE FROM dp_allowance WHERE release_id = ?";

int ledger_series_forget(struct ledger *ledger, int64_t release_id) {
  return statement_run(ledger, CHANGES_RELEASE, "UPDATE dp_release SET secret = NULL WHERE id = ?",
                       "i", release_id) &&
         statement_run(ledger, CHANGES_RELEASE, "DELETE FROM dp_exact WHERE release_id = ?", "i",
                       release_id) &&
         statement_run(ledger, CHANGES_RELEASE, delete_allowances, "i", release_id);
}

int ledger_publication_clipping(struct ledger *ledger, int64_t release_id, const char *tier,
                                struct ledger_clipping clipping) {
  return statement_run(ledger, CHANGES_RELEASE,
                       "UPDATE dp_publication SET clipped = ?3, unclipped = ?4,"
                       " unit_stddev = ?5 WHERE release_id = ?1 AND tier = ?2",
                       "isddd", release_id, tier, clipping.clipped, clipping.unclipped,
                       clipping.stddev);
}

/* ---- exact sums and allowances --------------------------------------------------------------- */

int ledger_exact_insert(struct ledger *ledger, int64_t release_id, const struct ledger_exact *sum) {
  return statement_run(ledger, CHANGES_RELEASE,
                       "INSERT INTO dp_exact(release_id, period, key, component,"
                       " value) VALUES (?, ?, ?, ?, ?)",
                       "issis", release_id, sum->period, sum->key, (int64_t)sum->component,
                       sum->value);
}

int ledger_exacts(struct ledger *ledger, int64_t release_id,
                  int (*take)(void *context, const struct ledger_exact *sum), void *context) {
  sqlite3_stmt *row = statement_bind(
      ledger, "SELECT period, key, component, value FROM dp_exact WHERE release_id = ?", "i",
      release_id);
  while (statement_row(ledger, row)) {
    struct ledger_exact sum = {column_text(ledger, row, 0), column_text(ledger, row, 1),
                               sqlite3_column_int(row, 2), column_text(ledger, row, 3)};
    if (!take(context, &sum)) return ledger_fail_damaged(ledger, "dp_exact");
  }
  return !error_is_set(ledger->error);
}

int ledger_allowances(struct ledger *ledger, int64_t release_id,
                      int (*take)(void *context, const void *units, int size), void *context) {
  sqlite3_stmt *row = statement_bind(
      ledger, "SELECT units FROM dp_allowance WHERE release_id = ? ORDER BY part", "i", release_id);
  while (statement_row(ledger, row)) {
    struct bytes units = column_bytes(row, 0);
    if (!take(context, units.at, units.size)) return 0;
  }
  return !error_is_set(ledger->error);
}

int ledger_allowance_clear(struct ledger *ledger, int64_t release_id) {
  return statement_run(ledger, CHANGES_RELEASE, delete_allowances, "i", release_id);
}

int ledger_allowance_insert(struct ledger *ledger, int64_t release_id, int part, const void *units,
                            int size) {
  return statement_run(ledger, CHANGES_RELEASE,
                       "INSERT INTO dp_allowance(release_id, part, units) VALUES (?, ?, ?)", "iib",
                       release_id, (int64_t)part, (struct bytes){units, size});
}

/* ---- days ------------------------------------------------------------------------------------ */

char *ledger_today(struct ledger *ledger) {
  return statement_text(ledger, "SELECT date('now')", "");
}

int ledger_budget_ends(struct ledger *ledger, double rate, const char *last, char **tier,
                       char **end) {
  /* dp_budget.period_end is the first day after the period. */
  sqlite3_stmt *row = statement_bind(ledger,
                                     "SELECT name, date(period_end, '-1 day') FROM dp_tier"
                                     " JOIN dp_budget ON tier = name WHERE rate >= ?1"
                                     " AND period_end <= ifnull(?2, '9999')"
                                     " ORDER BY period_end, name LIMIT 1",
                                     "ds", rate, last);
  if (!statement_row(ledger, row)) return 0;
  *tier = column_copy(ledger, row, 0);
  *end = column_copy(ledger, row, 1);
  return 1;
}

/* ---- verification ---------------------------------------------------------------------------- */

/* An SQL condition for one parameter of a release. It holds if the value in the column `options`
** and the value in the parameter's own column agree to 12 digits. */
#define SAYS(name, otherwise)                                                                      \
  "abs(ifnull(json_extract(options, '$." #name "'), " otherwise ") - ifnull(" #name ", " otherwise \
  ")) <= 1e-12 * abs(ifnull(" #name ", 0))"

/* clang-format off */
/* Holds if the column `options`, the JSON text that people read, agrees with the columns of the
** parameters. `size` and `max_groups` are NULL if the caller did not give them. */
#define OPTIONS_AGREE \
  "ifnull(size, 0) = coalesce(json_extract(options, '$.dim')," \
  " json_extract(options, '$.bins'), 0)" \
  " AND " SAYS(clip, "0") \
  " AND " SAYS(weight, "1") \
  " AND " SAYS(centre, "0") \
  " AND " SAYS(radius, "0") \
  " AND " SAYS(theta, "0") \
  " AND " SAYS(rho, "0") \
  " AND " SAYS(lo, "0") \
  " AND " SAYS(hi, "0") \
  " AND " SAYS(grid, "0") \
  " AND " SAYS(diagnose, "0") \
  " AND " SAYS(until, "0") \
  " AND " SAYS(least, "0") \
  " AND " SAYS(key_share, "0") \
  " AND " SAYS(max_groups, "0") \
  " AND json_extract(options, '$.q') IS json_extract(quantiles, '$')" \
  " AND json_extract(options, '$.model') IS json_extract(model, '$')"
/* clang-format on */

static void check_release(struct ledger *ledger, sqlite3_stmt *row) {
  struct ledger_release release;
  int columns = release_read(ledger, row, &release);
  char *fingerprint = release.kind ? ledger_fingerprint(&release) : 0;
  if (release.kind && !fingerprint) ledger_fail(ledger, "out of memory");
  if (!fingerprint || !release.fingerprint || strcmp(fingerprint, release.fingerprint) != 0 ||
      !sqlite3_column_int(row, columns) || !sqlite3_column_int(row, columns + 1))
    ledger_discrepancy(ledger,
                       "dp_release: '%s' has other parameters or another name than when it was "
                       "charged",
                       release.name ? release.name : "");
  sqlite3_free(fingerprint);
  ledger_release_clear(&release);
}

int releases_verify(struct ledger *ledger) {
  /* After the columns come the results of two checks. The first is 1 if the column `options`
  ** agrees with the other columns. The second is 1 if all charges for the release have its name. */
  sqlite3_stmt *row = statement_bind(
      ledger,
      "SELECT id, " RELEASE_COLUMNS ", " OPTIONS_AGREE ", NOT EXISTS (SELECT 1 FROM dp_charge c"
      " WHERE c.release_id = r.id AND c.release <> r.name) FROM dp_release r",
      "");
  while (statement_row(ledger, row)) check_release(ledger, row);
  return !error_is_set(ledger->error);
}
