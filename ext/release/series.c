/* series.c: the life of a series, a release whose numbers arrive period by period. It is charged
** once, when it is declared (publish.c), and each append then publishes all missing periods up to
** one at every tier that has the series.
**
** An append has three steps: series_begin() reads from the ledger what is known; the caller counts
** the rows of the missing periods with series_count(); series_finish() draws the points and
** computes the figures of all tiers, while the ledger is not locked, and then stores them in one
** transaction, with the exact sums and the book of allowances (sums/sums.h). If the series has
** changed in the meantime, nothing is stored and the caller begins anew. Nothing of an append is
** stored before its transaction, and what it reads stays in memory.
** Tests: tests/release/test_series_figures.py, tests/release/test_series_neighbours.py,
** tests/release/test_long_series.py */

#include <stdlib.h>
#include <string.h>

#include "mechanism/mechanism.h"
#include "noise/noise.h"
#include "release/internal.h"

SQLITE_EXTENSION_INIT3

/* The book of allowances is stored in parts of this many units. */
#define PART_UNITS 32768

static int damaged(const struct publication *publication) {
  return error_set(&publication->session->error,
                   "release '%s' has impossible sums or allowances (restore the ledger from a "
                   "backup)",
                   publication->definition.release.name);
}

/* ---- the secret ------------------------------------------------------------------------------ */

char *series_secret(void) {
  unsigned char bytes[ALLOWANCE_SECRET];
  char *text = sqlite3_malloc(2 * ALLOWANCE_SECRET + 1);
  if (!text) return 0;
  if (!entropy_fill(bytes, sizeof bytes)) {
    sqlite3_free(text);
    return 0;
  }
  for (size_t i = 0; i < ALLOWANCE_SECRET; i++) sqlite3_snprintf(3, &text[2 * i], "%02x", bytes[i]);
  entropy_wipe(bytes, sizeof bytes);
  return text;
}

/* Reads the secret. Returns 0 if the text is not one. */
static int read_secret(const char *text, unsigned char bytes[ALLOWANCE_SECRET]) {
  if (!text || strlen(text) != (size_t)2 * ALLOWANCE_SECRET) return 0;
  memset(bytes, 0, ALLOWANCE_SECRET);
  for (int i = 0; i < 2 * ALLOWANCE_SECRET; i++) {
    const char *digits = "0123456789abcdef", *digit = strchr(digits, text[i]);
    if (!digit) return 0;
    bytes[i / 2] = (unsigned char)(bytes[i / 2] << 4 | (digit - digits));
  }
  return 1;
}

/* ---- exact sums ------------------------------------------------------------------------------ */

#define DECIMAL 48 /* bytes of the text of an int128 */

/* Writes a number in decimal. Returns the text, which is at the end of the buffer. */
static const char *write_decimal(int128 number, char buffer[DECIMAL]) {
  uint128 size = lattice_magnitude(number);
  char *at = &buffer[DECIMAL - 1];
  *at = 0;
  do *--at = (char)('0' + (int)(size % 10));
  while (size /= 10);
  if (number < 0) *--at = '-';
  return at;
}

/* Reads such a number. Its size is below 2^126. Returns 0 if the text is none. */
static int read_decimal(const char *text, int128 *number) {
  int negative = *text == '-';
  uint128 size = 0;
  text += negative;
  if (!*text) return 0;
  for (; *text; text++) {
    if (*text < '0' || *text > '9' || size >= (uint128)1 << 122) return 0;
    unsigned digit = (unsigned)*text - '0';
    size = size * 10u + digit;
  }
  *number = negative ? -(int128)size : (int128)size;
  return 1;
}

/* The context of take_sum(). */
struct reading_sums {
  const struct publication *publication;
  int128 *sums;
  size_t count;
};

/* Returns the number of a group, or -1. Public keys are in the order of their texts. */
static int group_of(const struct definition *definition, const char *key) {
  if (!definition->groups) return *key ? -1 : 0;
  char **found =
      bsearch(&key, definition->groups, (size_t)definition->layout.cells, sizeof key, text_order);
  return found ? (int)(found - definition->groups) : -1;
}

static int take_sum(void *context, const struct ledger_exact *sum) {
  struct reading_sums *reading = context;
  const struct definition *definition = &reading->publication->definition;
  const struct layout *shape = &definition->layout;
  int period = periods_find(definition->periods, sum->period), place = -1;
  if (sum->component < 0 && !*sum->key && shape->diagnoses) {
    place = sum->component + 1 + DIAGNOSES;
    if (place >= 0) place += shape->coordinates;
  } else if (sum->component >= 0 && sum->component < shape->width) {
    int group = group_of(definition, sum->key);
    if (group >= 0) place = group * shape->width + sum->component;
  }
  reading->count++;
  return period >= 0 && period < definition->release.appended && place >= 0 &&
         read_decimal(sum->value,
                      &reading->sums[(size_t)period * period_size(definition) + (size_t)place]);
}

/* Stores the exact sums of a period. */
static int store_sums(const struct publication *publication, const int128 *sums, int period) {
  const struct definition *definition = &publication->definition;
  const struct layout *shape = &definition->layout;
  struct ledger *ledger = publication->session->ledger;
  int going = 1;
  for (int i = 0; i < shape->coordinates + shape->diagnoses && going; i++) {
    char buffer[DECIMAL];
    int own = i < shape->coordinates;
    struct ledger_exact sum = {definition->periods->labels[period],
                               own && definition->groups ? definition->groups[i / shape->width]
                                                         : "",
                               own ? i % shape->width : i - shape->coordinates - 1 - DIAGNOSES,
                               write_decimal(sums[i], buffer)};
    going = ledger_exact_insert(ledger, definition->release.id, &sum);
  }
  return going;
}

/* ---- beginning ------------------------------------------------------------------------------- */

static int take_part(void *context, const void *units, int size) {
  struct allowances *book = context;
  return allowances_load(book, units, (size_t)size) > 0;
}

/* Reads the exact sums of the periods that were appended earlier, and the book. */
static int load(struct publication *publication) {
  struct ledger *ledger = publication->session->ledger;
  struct append *append = publication->append;
  const struct definition *definition = &publication->definition;
  const struct ledger_release *release = &definition->release;
  size_t count = period_size(&publication->definition), appended = (size_t)release->appended;
  unsigned char secret[ALLOWANCE_SECRET];
  if (!read_secret(release->secret, secret)) return damaged(publication);
  append->book = allowances_open(secret, series_reach(&definition->layout));
  append->sums = calloc(((size_t)append->period + 1) * count, sizeof *append->sums);
  entropy_wipe(secret, sizeof secret);
  if (!append->book || !append->sums) return error_set_memory(ledger_error(ledger));
  struct reading_sums reading = {publication, append->sums, 0};
  if (!ledger_exacts(ledger, release->id, take_sum, &reading)) return 0;
  if (reading.count != (definition->series.factor ? appended * count : 0))
    return damaged(publication);
  return ledger_allowances(ledger, release->id, take_part, append->book) ||
         error_is_set(ledger_error(ledger)) || damaged(publication);
}

/* Reports that a series has no such period. */
static int unknown_period(const struct publication *publication, const char *period) {
  const struct periods *periods = publication->definition.periods;
  const char *name = publication->definition.release.name;
  const char *first = periods->labels[0];
  const char *last = periods->labels[periods->count - 1];
  if (periods_is_later(periods, period))
    return error_set(&publication->session->error,
                     "'%s' ends with %s (declare a series for the next periods)", name, last);
  return error_set(&publication->session->error,
                   "'%s' has no such period (its periods are %s to %s)", name, first, last);
}

/* Checks that all missing periods are over. */
static int are_over(const struct publication *publication) {
  const struct periods *periods = publication->definition.periods;
  struct ledger *ledger = publication->session->ledger;
  char *today = ledger_today(ledger), day[PERIOD_DAY];
  int over = today != 0;
  for (int t = publication->missing.first; t <= publication->missing.last && over; t++)
    if (periods_last_day(periods, t, day) && strcmp(day, today) >= 0)
      over = error_set(ledger_error(ledger), "%s ends on %s (append it afterwards)",
                       periods->labels[t], day);
  sqlite3_free(today);
  return over;
}

/* Sets the answer to the figures of a period at the publication's tier. */
static int answer(struct publication *publication, int period) {
  struct ledger *ledger = publication->session->ledger;
  const struct definition *definition = &publication->definition;
  const char *tier = publication_tier(publication)->name;
  sqlite3_str *json = sqlite3_str_new(0);
  double value = 0, stddev;
  int going = 1;
  for (int i = 0; i < definition->layout.cells && going; i++) {
    const char *group = definition->groups ? definition->groups[i] : 0;
    char *key = periods_key(definition->periods, (struct span){period, period}, 0, group);
    going = (key || error_set_memory(ledger_error(ledger))) &&
            (ledger_value_find(ledger, definition->release.id, tier, key, 0, &value, &stddev) ||
             lost_values(publication));
    sqlite3_free(key);
    sqlite3_str_appendall(json, i ? "," : "{");
    if (group) json_append_string(json, group);
    sqlite3_str_appendall(json, ":");
    json_append_number(json, value);
  }
  sqlite3_str_appendall(json, "}");
  char *text = sqlite3_str_finish(json);
  if (going && !text) going = error_set_memory(ledger_error(ledger));
  if (!going || !definition->groups) {
    sqlite3_free(text);
    text = 0;
  }
  if (going) publication->answer = (struct answer){value, text, 0};
  publication->answered = going;
  return going;
}

/* Finds the series' own tier, which is that of its innermost point. */
static int find_tier(struct publication *publication, const struct ledger_path *path) {
  struct position *position = &publication->position;
  position->at = ledger_tier_find(publication->session->ledger, position->tiers, position->count,
                                  path->points[0].tier);
  return position->at >= 0;
}

/* Reads the path of the series. */
static int read_path(struct publication *publication, struct ledger_path *path) {
  int read = definition_path(publication, path);
  int same = read && definition_same_keys(publication) && definition_same_lattice(publication);
  grid_clear(&publication->grid);
  return same || error_set(&publication->session->error,
                           "release '%s' is on a lattice that does not cover its parameters "
                           "(restore the ledger from a backup)",
                           publication->definition.release.name);
}

/* Reads the path of the series, and which of its points are published. */
static int read_tiers(struct publication *publication) {
  struct ledger *ledger = publication->session->ledger;
  struct append *append = publication->append;
  struct ledger_path *path = &append->path;
  int64_t id = publication->definition.release.id;
  if (!read_path(publication, path) || !find_tier(publication, path)) return 0;
  size_t size = sizeof *append->tiers * (size_t)path->count;
  append->tiers = sqlite3_malloc64(size);
  if (!append->tiers) return error_set_memory(ledger_error(ledger));
  memset(append->tiers, 0, size);
  for (int i = 0; i < path->count; i++) {
    uint64_t clock;
    append->tiers[i].is_published =
        ledger_publication_find(ledger, id, path->points[i].tier, &clock);
  }
  append->seal = ledger_release_seal(ledger, id);
  return !error_is_set(ledger_error(ledger));
}

static int begin(struct publication *publication, const char *name, const char *period) {
  struct ledger *ledger = publication->session->ledger;
  struct ledger_release *release = &publication->definition.release;
  struct position *position = &publication->position;
  if (!ledger_tiers(ledger, &position->tiers, &position->count) ||
      !ledger_release_find(ledger, name, release))
    return ledger_release_unknown(ledger, name);
  if (!ledger_trust_release(ledger, release->id)) return 0;
  if (!release->periods)
    return error_set(ledger_error(ledger),
                     "release '%s' is not a series (declare one with the option periods)", name);
  if (!definition_describe_stored(publication)) return 0;
  struct append *append = publication->append = sqlite3_malloc64(sizeof *append);
  if (!append) return error_set_memory(ledger_error(ledger));
  *append = (struct append){.period = periods_find(publication->definition.periods, period)};
  if (append->period < 0) return unknown_period(publication, period);
  if (!read_tiers(publication)) return 0;
  if (append->period < release->appended) return answer(publication, append->period);
  publication->missing = (struct span){release->appended, append->period};
  if (ledger_read_only(ledger))
    return error_set(ledger_error(ledger),
                     "this connection cannot write its database (%s), so it appends nothing (use a "
                     "connection that can write)",
                     ledger_read_only(ledger));
  return are_over(publication) && load(publication);
}

int series_begin(struct publication *publication, struct session *session, const char *name,
                 const char *period) {
  *publication = (struct publication){.session = session};
  int begun = ledger_begin_reading(session->ledger) && begin(publication, name, period);
  ledger_rollback(session->ledger);
  return begun && !error_is_set(&session->error);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Adds the vector of a unit in one period, whose slots are given, to the sums of the period. */
static int count_period(const struct publication *publication, struct identity unit, size_t count,
                        const uint32_t *slots, int128 *values) {
  const struct definition *definition = &publication->definition;
  const struct layout *shape = &definition->layout;
  struct append *append = publication->append;
  int period = (int)(slots[0] / (uint32_t)shape->cells), first;
  int128 *sums = &append->sums[(size_t)period * period_size(&publication->definition)];
  size_t components = (size_t)shape->components;
  /* A person counts once in a period, however many rows they have there. */
  int64_t each = definition->aggregate->takes & 1u << P_SERIES ? (int64_t)shape->scale : 0;
  for (size_t i = 0; each && i < count; i++) values[i] = lattice_clamp(values[i], -each, each);
  if (!allowances_spend(append->book, shape, unit, values, count, &first)) return 0;
  for (size_t i = 0; i < count; i++) {
    int128 *sum = &sums[(slots[i] - (uint32_t)(period * shape->cells)) * components];
    for (size_t j = 0; j < components; j++) sum[j] += values[i * components + j];
  }
  int128 *facts = &sums[shape->coordinates];
  if (shape->diagnoses && first & ALLOWANCE_CLIPPED) facts[0] += shape->ladder.steps;
  if (shape->diagnoses && first & ALLOWANCE_COUNTED) facts[1] += shape->ladder.steps;
  return 1;
}

int series_count(void *context, struct identity unit, size_t count, const uint32_t *slots,
                 int128 *values) {
  const struct publication *publication = context;
  const struct layout *shape = &publication->definition.layout;
  uint32_t cells = (uint32_t)shape->cells;
  int counted = 1;
  for (size_t start = 0, end; start < count && counted; start = end) {
    for (end = start + 1; end < count && slots[end] / cells == slots[start] / cells;) end++;
    counted = count_period(publication, unit, end - start, &slots[start],
                           &values[start * (size_t)shape->components]);
  }
  return counted;
}

/* ---- the draw -------------------------------------------------------------------------------- */

/* The points of a tier: those of the earlier periods, and behind them those of the missing ones. */
static int64_t *grow(const struct publication *publication, const struct ledger_point *point,
                     size_t before, size_t added) {
  int64_t *values = sqlite3_malloc64(sizeof *values * (before + added + 1));
  if (!values) {
    error_set_memory(&publication->session->error);
  } else if (before) {
    memcpy(values, point->values, sizeof *values * before);
  }
  return values;
}

/* Draws the points of the missing periods at the series' own tier, from the exact sums. */
static int draw_first(const struct publication *publication, uint64_t clock, int64_t *values) {
  const struct append *append = publication->append;
  const struct definition *definition = &publication->definition;
  struct ledger *ledger = publication->session->ledger;
  size_t coordinates = period_size(&publication->definition);
  size_t added = (size_t)(append->period - publication->missing.first + 1) * coordinates;
  int64_t *totals = sqlite3_malloc64(sizeof *totals * (added + 1)), *total = totals;
  if (!totals) return error_set_memory(ledger_error(ledger));
  int drawn = 1;
  for (int t = publication->missing.first; t <= append->period && drawn; t++) {
    for (size_t i = 0; i < coordinates; i++)
      *total++ = series_coordinate(&definition->series, t, &append->sums[i], coordinates,
                                   definition->release.shift);
    drawn = ledger_goes_on(ledger);
  }
  drawn = drawn && (release_draw(definition->mechanism->noise, totals, added, clock, values) ||
                    no_random_bytes(publication));
  sqlite3_free(totals);
  return drawn;
}

/* Draws the points of the missing periods, from the innermost tier outward, and computes their
** figures. */
static int draw(struct publication *publication) {
  struct append *append = publication->append;
  const struct noise_law *noise = publication->definition.mechanism->noise;
  size_t coordinates = period_size(&publication->definition);
  size_t before = (size_t)publication->missing.first * coordinates;
  size_t added = (size_t)(append->period + 1) * coordinates - before;
  int going = 1;
  publication->grid = (struct ledger_grid){0, append->period + 1, (int)coordinates, 0};
  for (int i = 0; i < append->path.count && going; i++) {
    const struct ledger_point *point = &append->path.points[i];
    struct appended_tier *tier = &append->tiers[i];
    int64_t *values = tier->values = grow(publication, point, before, added);
    if (!values) return 0;
    publication->position.clock = point->clock;
    going = i ? release_diffuse(noise, tier[-1].values + before, added, point[-1].clock,
                                point->clock, values + before) ||
                    no_random_bytes(publication)
              : draw_first(publication, point->clock, values + before);
    going = going && (!tier->is_published || numbers_read(publication, 0, NUMBERS_CONFIDENCE,
                                                          INSIDE_NOTHING, values, &tier->numbers));
  }
  return going;
}

/* ---- finishing ------------------------------------------------------------------------------- */

/* Stores what later periods need, or deletes it with the last period. */
static int store_memory(const struct publication *publication) {
  const struct append *append = publication->append;
  struct ledger *ledger = publication->session->ledger;
  const struct definition *definition = &publication->definition;
  size_t coordinates = period_size(&publication->definition);
  if (!ledger_series_append(ledger, definition->release.id, append->period + 1)) return 0;
  if (append->period + 1 == definition->periods->count)
    return ledger_series_forget(ledger, definition->release.id);
  int64_t id = definition->release.id;
  size_t count = allowances_count(append->book);
  int going = ledger_allowance_clear(ledger, id);
  for (size_t first = 0; first < count && going; first += PART_UNITS) {
    size_t units = count - first < PART_UNITS ? count - first : PART_UNITS;
    going = ledger_allowance_insert(ledger, id, (int)(first / PART_UNITS),
                                    allowances_bytes(append->book, first),
                                    (int)(units * ALLOWANCE_BYTES));
  }
  /* Without a matrix, later points do not depend on earlier sums. */
  for (int t = publication->missing.first; t <= append->period && going; t++)
    going = !definition->series.factor ||
            store_sums(publication, &append->sums[(size_t)t * coordinates], t);
  return going;
}

/* Stores the points and figures of a tier. */
static int store_tier(const struct publication *publication, const struct ledger_point *point,
                      const struct appended_tier *tier, const struct ledger_grid *cells) {
  struct ledger *ledger = publication->session->ledger;
  const struct ledger_release *release = &publication->definition.release;
  size_t before = (size_t)publication->missing.first * period_size(&publication->definition);
  int going = ledger_point_extend(ledger, release, point->tier, cells, tier->values + before);
  for (int i = 0; i < tier->numbers.count && going; i++) {
    struct ledger_value value = numbers_value(&tier->numbers, &tier->numbers.estimates[i]);
    going = ledger_value_insert(ledger, release, point->tier, &value);
  }
  if (going && tier->is_published && publication->definition.layout.diagnoses)
    going = ledger_publication_clipping(ledger, release->id, point->tier, tier->numbers.clipping);
  return going;
}

static int store(struct publication *publication) {
  struct append *append = publication->append;
  int count = publication->missing.last - publication->missing.first + 1;
  char **keys = sqlite3_malloc64(sizeof *keys * (sqlite3_uint64)count);
  char(*texts)[PERIOD_KEY] = sqlite3_malloc64(sizeof *texts * (sqlite3_uint64)count);
  int done = (keys && texts) || error_set_memory(&publication->session->error);
  if (done) {
    for (int i = 0; i < count; i++) {
      definition_period_key(publication->missing.first + i, texts[i]);
      keys[i] = texts[i];
    }
    struct ledger_grid cells = {keys, count, definition_grid(publication).components, 0};
    for (int i = 0; i < append->path.count && done; i++)
      done = store_tier(publication, &append->path.points[i], &append->tiers[i], &cells);
    done = done && store_memory(publication) && answer(publication, append->period);
  }
  sqlite3_free(keys);
  sqlite3_free(texts);
  return done;
}

int series_finish(struct publication *publication) {
  struct ledger *ledger = publication->session->ledger;
  int64_t id = publication->definition.release.id;
  int drawn = ledger_begin_computing(ledger) && draw(publication);
  ledger_rollback(ledger);
  if (!drawn || !ledger_resume_patiently(ledger) || !ledger_begin_ending(ledger)) return 0;
  /* The series may have been discarded or published at a tier, or another process has appended. */
  if (ledger_trust_release(ledger, id))
    publication->is_stale = ledger_release_seal(ledger, id) != publication->append->seal;
  if (publication->is_stale) {
    ledger_rollback(ledger);
    return 0;
  }
  store(publication);
  return ledger_commit(ledger);
}

/* ---- a further tier -------------------------------------------------------------------------- */

int series_publish(struct publication *publication, int64_t seal) {
  struct ledger *ledger = publication->session->ledger;
  const struct drawn *point = &publication->drawn[publication->drawn_count - 1];
  struct numbers figures = {0};
  int done =
      ledger_begin_computing(ledger) &&
      numbers_read(publication, 0, NUMBERS_CONFIDENCE, INSIDE_NOTHING, point->values, &figures);
  ledger_rollback(ledger);
  if (done && ledger_begin(ledger)) {
    publication->figures = &figures;
    if (ledger_last_seal(ledger) == seal) {
      path_publish_drawn(publication);
      ledger_commit(ledger);
    } else {
      ledger_rollback(ledger);
    }
    publication->figures = 0;
  }
  numbers_clear(&figures);
  return !error_is_set(ledger_error(ledger));
}

/* ---- spans ----------------------------------------------------------------------------------- */

int series_points(struct publication *publication, int64_t **values) {
  const char *tier = publication_tier(publication)->name;
  struct ledger_path path = {0};
  *values = 0;
  int found = definition_describe_stored(publication) && read_path(publication, &path);
  const struct ledger_point *point = found ? path_point(&path, tier) : 0;
  if (point) {
    *values = grow(publication, point,
                   (size_t)path.grid.cells * period_size(&publication->definition), 0);
    publication->position.clock = point->clock;
  }
  publication->grid = path.grid; /* without keys */
  ledger_path_free(&path);
  return *values || lost_values(publication);
}

int interval_read_span(struct publication *publication, const char *key, double confidence,
                       double *low, double *high) {
  struct ledger *ledger = publication->session->ledger;
  struct definition *definition = &publication->definition;
  const char *tier = publication_tier(publication)->name;
  struct numbers numbers = {0};
  struct span span;
  int64_t *values = 0;
  char *group = 0;
  int found = 0;
  if (ledger_publication_find(ledger, definition->release.id, tier, &publication->position.clock) &&
      series_points(publication, &values) &&
      periods_read_key(definition->periods, ledger_json(ledger), key, definition->groups != 0,
                       &span, &group) &&
      span.last < publication->grid.cells) {
    ledger_rollback(ledger);
    if (ledger_begin_computing(ledger))
      numbers_spans(publication, span, 1, confidence, values, &numbers);
  }
  for (int i = 0; i < numbers.count && !found; i++) {
    found = !definition->groups || strcmp(definition->groups[i], group) == 0;
    *low = numbers.estimates[i].low;
    *high = numbers.estimates[i].high;
  }
  numbers_clear(&numbers);
  sqlite3_free(values);
  sqlite3_free(group);
  return found ||
         error_set(ledger_error(ledger),
                   "release '%s' has no value for this key at tier '%s' (dp_value lists its keys)",
                   definition->release.name, tier);
}
