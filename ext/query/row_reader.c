/* row_reader.c: see row_reader.h.
** Tests: tests/sums/test_vectors_input.py, tests/functions/test_aggregate_form.py,
** tests/query/test_three_ways.py, tests/mechanism/test_cross_tables.py */
#include "query/row_reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/sql_text.h"
#include "mechanism/mechanism.h"
#include "release/release.h"

SQLITE_EXTENSION_INIT3

/* ---- identities and keys --------------------------------------------------------------------- */

/* Finds the identity of a value that is not an integer. Returns 0 when out of memory. */
static int other_identity(const struct secret *secret, sqlite3_value *value,
                          struct identity *identity) {
  int type = sqlite3_value_type(value);
  if (type == SQLITE_FLOAT) {
    *identity = identity_real(sqlite3_value_double(value));
  } else if (type == SQLITE_NULL) {
    *identity = identity_null();
  } else {
    /* SQLite may convert a text from UTF-16, so get the bytes before the size. */
    const void *bytes = type == SQLITE_TEXT ? sqlite3_value_text(value) : sqlite3_value_blob(value);
    size_t size = (size_t)sqlite3_value_bytes(value);
    if (type == SQLITE_TEXT && !bytes) return 0;
    *identity = identity_bytes(secret, bytes, size, type == SQLITE_TEXT);
  }
  return 1;
}

/* Finds the identity of a value. The identity of a number or NULL is the value itself. The identity
** of a text or blob is its hash with a secret. For units in the state of a shard, the hash has no
** secret, so that a unit has the same identity in every database. Returns 1, or 0 when out of
** memory. */
static inline int identity_of(const struct rows *rows, int is_unit, sqlite3_value *value,
                              struct identity *identity) {
  if (sqlite3_value_type(value) == SQLITE_INTEGER) {
    *identity = identity_integer(sqlite3_value_int64(value));
    return 1;
  }
  return other_identity(is_unit && rows->for_state ? 0 : rows->secret, value, identity);
}

/* Returns the cell of a key. Returns CELL_NONE if the keys are public and this key is not one of
** them, and CELL_FAILED when out of memory. */
static int cell_of_value(const struct rows *rows, struct group_keys *cells, sqlite3_value *key) {
  struct identity identity;
  if (!identity_of(rows, 0, key, &identity)) return CELL_FAILED;
  int cell = group_keys_find(cells, identity);
  if (cell != CELL_NEW) return cell;
  char *text = key_text(key);
  cell = text ? group_keys_name(cells, identity, text) : CELL_FAILED;
  sqlite3_free(text);
  return cell;
}

/* Returns the same. A short text is looked up among the last ones first. */
static int cell_of(const struct rows *rows, struct group_keys *cells, sqlite3_value *key) {
  const void *bytes = sqlite3_value_type(key) == SQLITE_TEXT ? sqlite3_value_text(key) : 0;
  if (!bytes) return cell_of_value(rows, cells, key);
  size_t size = (size_t)sqlite3_value_bytes(key);
  int cell = group_keys_recall(cells, bytes, size);
  if (cell != CELL_NEW) return cell;
  cell = cell_of_value(rows, cells, key);
  if (cell != CELL_FAILED) group_keys_note(cells, bytes, size, cell);
  return cell;
}

/* Changes a text so that texts that are equal under a collation get the same bytes. Returns the new
** size. NOCASE compares only the sizes of texts and the bytes before the first zero byte. */
static size_t fold(unsigned char *text, size_t size, enum collation collation) {
  int ended = 0;
  if (collation == COLLATION_RTRIM)
    while (size && text[size - 1] == ' ') size--;
  for (size_t i = 0; collation == COLLATION_NOCASE && i < size; i++) {
    ended = ended || !text[i];
    if (ended) text[i] = 0;
    if (text[i] >= 'A' && text[i] <= 'Z') text[i] = (unsigned char)(text[i] + 32);
  }
  return size;
}

int rows_give_unit(struct rows *rows, sqlite3_value *unit, enum collation collation) {
  if (collation == COLLATION_BINARY || sqlite3_value_type(unit) != SQLITE_TEXT)
    return identity_of(rows, 1, unit, &rows->given);
  const unsigned char *text = sqlite3_value_text(unit);
  size_t size = (size_t)sqlite3_value_bytes(unit);
  unsigned char *folded = text ? malloc(size + 1) : 0;
  if (!folded) return 0;
  memcpy(folded, text, size);
  size = fold(folded, size, collation);
  rows->given = identity_bytes(rows->for_state ? 0 : rows->secret, folded, size, 1);
  free(folded);
  return 1;
}

void rows_give_number(struct rows *rows, int64_t number) {
  rows->given = identity_integer(number);
}

void rows_use_households(struct rows *rows, const struct households *households) {
  rows->households = rows->numbers.households = households;
  if (rows->vectors) vector_sum_use_households(rows->vectors, households);
}

int rows_forget_units(struct rows *rows) {
  if (rows->for_state || rows->state || rows->households) return 0;
  if (rows->vectors) {
    vector_sum_forget_units(rows->vectors);
  } else {
    scalar_sum_forget_units(&rows->numbers);
    rows->secret = 0; /* it belonged to the units */
  }
  rows->by_unit = 0;
  return 1;
}

/* ---- one row --------------------------------------------------------------------------------- */

/* VALUE_NONE: the row does not count. VALUE_FAILED: out of memory. */
enum value { VALUE_FAILED = -1, VALUE_NONE, VALUE_TAKEN };

/* Finds the unit of a row. A row whose column for it is NULL belongs to nobody. */
static inline enum value unit_of(const struct rows *rows, sqlite3_value **row,
                                 struct identity *unit) {
  int place = rows->columns.unit;
  *unit = rows->given;
  if (place < 0) return VALUE_TAKEN;
  int type = sqlite3_value_type(row[place]);
  if (type == SQLITE_NULL) return VALUE_NONE;
  if (type != SQLITE_INTEGER)
    return identity_of(rows, 1, row[place], unit) ? VALUE_TAKEN : VALUE_FAILED;
  *unit = identity_integer(sqlite3_value_int64(row[place]));
  return VALUE_TAKEN;
}

/* Sets *x to the number of a row's value, or to 1 if the aggregate counts rows. The row does not
** count if its value is NULL or no number (value_number()). */
static inline enum value value_of(const struct rows *rows, sqlite3_value **row, double *x) {
  int place = rows->columns.value;
  *x = 1;
  if (place < 0) return VALUE_TAKEN;
  int type = sqlite3_value_type(row[place]);
  if (rows->takes_any) return type == SQLITE_NULL ? VALUE_NONE : VALUE_TAKEN;
  if (type != SQLITE_INTEGER && type != SQLITE_FLOAT)
    return (enum value)value_number(row[place], x);
  *x = sqlite3_value_double(row[place]);
  return VALUE_TAKEN;
}

/* Adds a row to a release of one sum. This must be as fast as SQLite's own sum(). A row that does
** not count adds nothing. */
static int add_number(struct rows *rows, sqlite3_value **row) {
  struct identity unit;
  double x;
  enum value value = value_of(rows, row, &x);
  if (value == VALUE_FAILED) return 0;
  if (value == VALUE_NONE) x = 0;
  if (!rows->by_unit) {
    scalar_sum_add_row(&rows->numbers, x);
    return 1;
  }
  value = unit_of(rows, row, &unit);
  if (value != VALUE_TAKEN) return value == VALUE_NONE;
  return scalar_sum_add_unit(&rows->numbers, unit, x);
}

/* Adds a row to a release of one sum with the option diagnose. */
static int add_diagnosed(struct rows *rows, sqlite3_value **row) {
  double x;
  enum value value = value_of(rows, row, &x);
  if (value != VALUE_TAKEN) return value == VALUE_NONE;
  if (!rows->by_unit) scalar_sum_tally_row(&rows->numbers, x);
  return add_number(rows, row);
}

static int add_value(struct rows *rows, sqlite3_value **row) {
  struct identity unit;
  double x;
  enum value value = value_of(rows, row, &x);
  if (value != VALUE_TAKEN) return value == VALUE_NONE;
  value = unit_of(rows, row, &unit);
  if (value != VALUE_TAKEN) return value == VALUE_NONE;
  return rows->add_to_cell(rows->vectors, unit, 0, x);
}

/* Returns the same as cell_of(), and is faster for small integers. `small` belongs to `cells`. */
static inline int key_of(const struct rows *rows, struct group_keys *cells, const int *small,
                         sqlite3_value *key) {
  if (sqlite3_value_type(key) == SQLITE_INTEGER) {
    sqlite3_int64 value = sqlite3_value_int64(key);
    int cell = value >= 0 && value < GROUP_KEYS_SMALL ? small[value] : CELL_NEW;
    if (cell != CELL_NEW) return cell;
  }
  return cell_of(rows, cells, key);
}

static int add_keyed(struct rows *rows, sqlite3_value **row) {
  struct identity unit;
  double x;
  enum value value = value_of(rows, row, &x);
  if (value == VALUE_TAKEN) value = unit_of(rows, row, &unit);
  if (value != VALUE_TAKEN) return value == VALUE_NONE;
  int cell = key_of(rows, vector_sum_cells(rows->vectors), rows->small[0], row[rows->columns.key]);
  if (cell == CELL_NONE) return 1;
  if (cell == CELL_FAILED) return 0;
  return rows->add_to_cell(rows->vectors, unit, cell, x);
}

/* Adds a row of cross tables. Its first columns are the keys of the attributes. */
static int add_to_tables(struct rows *rows, sqlite3_value **row) {
  const struct ways *ways = rows->question->ways;
  struct identity unit;
  double x;
  int64_t place = 0; /* in the full table */
  enum value value = value_of(rows, row, &x);
  if (value == VALUE_TAKEN) value = unit_of(rows, row, &unit);
  if (value != VALUE_TAKEN) return value == VALUE_NONE;
  for (int i = 0; i < ways->attributes; i++) {
    int key = key_of(rows, rows->attributes[i], rows->small[i], row[rows->columns.key + i]);
    if (key == CELL_NONE) return 1;
    if (key == CELL_FAILED) return 0;
    place = place * ways->sizes[i] + key;
  }
  int cell = full_cells_number(vector_sum_full(rows->vectors), place);
  return cell >= 0 && rows->add_to_cell(rows->vectors, unit, cell, x);
}

/* Adds a row of a series. Its first column is the label of the period. The cells of a period follow
** each other. */
static int add_to_period(struct rows *rows, sqlite3_value **row) {
  struct identity unit;
  double x;
  int key = 0;
  enum value value = value_of(rows, row, &x);
  if (value != VALUE_TAKEN) return value == VALUE_NONE;
  int period = cell_of(rows, rows->attributes[0], row[0]);
  if (period == CELL_FAILED) return 0;
  if (period < rows->missing.first || period > rows->missing.last) return 1;
  value = unit_of(rows, row, &unit);
  if (value != VALUE_TAKEN) return value == VALUE_NONE;
  if (rows->columns.key >= 0) key = cell_of(rows, rows->attributes[1], row[rows->columns.key]);
  if (key == CELL_NONE) return 1;
  if (key == CELL_FAILED) return 0;
  return rows->add_to_cell(rows->vectors, unit, period * rows->groups + key, x);
}

static int add_vector(struct rows *rows, sqlite3_value **row) {
  struct vector_sum *vectors = rows->vectors;
  struct identity unit;
  int size = rows->question->size;
  sqlite3_value *value = row[rows->columns.value];
  if (sqlite3_value_type(value) == SQLITE_NULL) return 1;
  enum value found = unit_of(rows, row, &unit);
  if (found != VALUE_TAKEN) return found == VALUE_NONE;
  const unsigned char *floats = vector_text_floats(value, size);
  if (floats && vector_sum_add_floats(vectors, unit, floats)) return 1;
  vector_text_read(value, rows->buffer, size); /* a malformed text gives a vector of zeros */
  return vector_sum_add_vector(vectors, unit, rows->buffer);
}

/* ---- all rows -------------------------------------------------------------------------------- */

struct columns columns_in_order(const struct publication *publication) {
  struct columns columns = {-1, -1, -1};
  const struct ways *ways = publication->definition.contribution.ways;
  int count = publication->definition.periods ? 1 : 0;
  if (publication->definition.aggregate->places.key) columns.key = count++;
  if (ways) count = ways->attributes;
  if (publication->definition.aggregate->places.value) columns.value = count;
  return columns;
}

/* Chooses the function that adds a row, once for all rows. */
static add_sql_row *adder_of(const struct publication *publication) {
  const struct family *family = publication->definition.layout.family;
  if (publication->definition.aggregate->rows) return publication->definition.aggregate->rows->add;
  if (family->has_vector) return add_vector;
  if (publication->definition.contribution.ways) return add_to_tables;
  if (family->has_keys) return add_keyed;
  if (family->statistic != STATISTIC_NUMBER) return add_value;
  return publication->definition.layout.diagnoses ? add_diagnosed : add_number;
}

/* Opens a table of the public keys of each attribute. Returns 0 when out of memory. */
static int open_attributes(struct rows *rows, const struct cross_keys *cross_keys) {
  for (int i = 0; cross_keys && i < cross_keys->count; i++) {
    const struct attribute *attribute = &cross_keys->attributes[i];
    rows->attributes[i] = group_keys_open(rows->secret, attribute->keys, attribute->count, 0);
    if (!rows->attributes[i]) return 0;
    rows->small[i] = group_keys_small(rows->attributes[i]);
  }
  return 1;
}

/* Opens the rows of a series. A unit has the same identity in all appends. */
static int open_series(struct rows *rows, const struct publication *publication,
                       const struct secret *secret) {
  const struct definition *definition = &publication->definition;
  rows->question = &definition->row_question;
  rows->add = add_to_period;
  if (!rows->add_to_cell) rows->add_to_cell = vector_sum_add_number;
  rows->missing = publication->missing;
  rows->groups = definition->layout.cells;
  rows->for_state = 1;
  rows->vectors = vector_sum_open(rows->question, &definition->row_layout, 1, 0, secret);
  if (!rows->vectors) return 0;
  rows->secret = vector_sum_secret(rows->vectors);
  rows->attributes[0] =
      group_keys_open(rows->secret, definition->periods->labels, definition->periods->count, 0);
  if (definition->groups)
    rows->attributes[1] = group_keys_open(rows->secret, definition->groups, rows->groups, 0);
  return rows->attributes[0] && (rows->attributes[1] || !definition->groups);
}

int rows_open(struct rows *rows, const struct publication *publication, struct columns columns,
              const struct secret *secret, struct error *error) {
  const struct layout *shape = &publication->definition.layout;
  *rows = (struct rows){.add = adder_of(publication),
                        .columns = columns,
                        .aggregate = publication->definition.aggregate,
                        .question = &publication->definition.contribution,
                        .add_to_cell = shape->family->add,
                        .takes_any = publication->definition.aggregate->counts &&
                                     !publication->definition.aggregate->family->has_bins,
                        .by_unit = publication->definition.by_unit};
  int is_open;
  if (publication->definition.periods) {
    is_open = open_series(rows, publication, secret);
  } else if (rows->aggregate->rows) {
    rows->buffer = malloc(sizeof *rows->buffer * (size_t)(rows->question->size + 1));
    is_open = rows->buffer && rows->aggregate->rows->open(rows, publication);
  } else if (shape->family->statistic == STATISTIC_NUMBER) {
    struct bounds bounds = design_bounds(shape);
    is_open = scalar_sum_open(&rows->numbers, &bounds, publication->definition.by_unit, secret);
    if (is_open && publication->definition.by_unit)
      rows->secret = scalar_sum_secret(&rows->numbers);
  } else {
    rows->vectors = vector_sum_open(rows->question, shape, publication->definition.by_unit,
                                    publication->grid.keys, secret);
    rows->buffer = malloc(sizeof *rows->buffer * (size_t)(rows->question->size + 1));
    is_open = rows->vectors && rows->buffer;
    if (is_open) rows->secret = vector_sum_secret(rows->vectors);
    if (is_open && vector_sum_cells(rows->vectors))
      rows->small[0] = group_keys_small(vector_sum_cells(rows->vectors));
    if (is_open) is_open = open_attributes(rows, publication->definition.cross_keys);
  }
  return is_open || error_set(error, "out of memory or random bytes (the charge stays)");
}

void rows_close(struct rows *rows) {
  scalar_sum_close(&rows->numbers);
  for (int i = 0; i < WAYS_MAX_ATTRIBUTES && rows->vectors; i++) {
    group_keys_close(rows->attributes[i]);
    rows->attributes[i] = 0;
  }
  if (rows->vectors) vector_sum_close(rows->vectors);
  if (rows->state) rows->aggregate->rows->close(rows);
  free(rows->buffer);
  rows->vectors = 0;
  rows->state = 0;
  rows->buffer = 0;
}

/* ---- sums from elsewhere --------------------------------------------------------------------- */

int rows_add_record(struct rows *rows, struct identity unit, uint32_t slot, const int128 *values) {
  return rows->vectors ? vector_sum_add_record(rows->vectors, unit, slot, values)
                       : scalar_sum_add_steps(&rows->numbers, unit, *values);
}

int rows_add_totals(struct rows *rows, int cell, const int128 *values) {
  if (rows->vectors) return vector_sum_add_totals(rows->vectors, cell, values);
  scalar_sum_add_total(&rows->numbers, *values);
  return 1;
}

uint32_t rows_slot(const struct rows *rows, const int *cells, uint32_t slot) {
  uint32_t bins = (uint32_t)vector_sum_shape(rows->vectors)->bins;
  return (uint32_t)cells[slot / bins] * bins + slot % bins;
}

int rows_name_cell(struct rows *rows, const char *name) {
  struct identity named = identity_name(vector_sum_secret(rows->vectors), name);
  return group_keys_name(vector_sum_cells(rows->vectors), named, name);
}

int rows_records(struct rows *rows, take_record *take, void *context) {
  return rows->vectors ? vector_sum_records(rows->vectors, take, context)
                       : scalar_sum_records(&rows->numbers, take, context);
}

/* The context for adding the sums of another struct rows to `rows`. `cells` maps each cell of the
** other struct to a cell of `rows` (vector_sum_map()), or is null. */
struct joining {
  struct rows *rows;
  int *cells;
};

static int join_record(void *context, struct identity unit, uint32_t slot, const int128 *values) {
  const struct joining *joining = context;
  uint32_t place = slot;
  if (joining->cells) place = rows_slot(joining->rows, joining->cells, slot);
  return rows_add_record(joining->rows, unit, place, values);
}

/* Does the same for rows that are units of their own: adds the totals. */
static int join_totals(struct rows *rows, struct rows *others) {
  if (!rows->vectors) {
    scalar_sum_add_total(&rows->numbers, others->numbers.total);
    tally_join(&rows->numbers.tally, &others->numbers.tally);
    return 1;
  }
  int cells, going = vector_sum_join_tally(rows->vectors, others->vectors);
  const char **keys = 0;
  int128 *totals = going ? vector_sum_totals(others->vectors, &cells, &keys) : 0;
  going = totals && (keys || rows_add_totals(rows, 0, totals));
  size_t width = (size_t)vector_sum_shape(rows->vectors)->width;
  for (int i = 0; keys && i < cells && going; i++) {
    int cell = rows_name_cell(rows, keys[i]);
    going = cell >= 0 && rows_add_totals(rows, cell, &totals[(size_t)i * width]);
  }
  free(totals);
  free(keys);
  return going;
}

int rows_join(struct rows *rows, struct rows *others) {
  if (!rows->by_unit) return join_totals(rows, others);
  struct joining joining = {rows, 0};
  int going = !others->vectors || vector_sum_map(rows->vectors, others->vectors, &joining.cells);
  going = going && rows_records(others, join_record, &joining);
  if (others->vectors) going = going && vector_sum_join_tally(rows->vectors, others->vectors);
  free(joining.cells);
  return going;
}

struct vector_parts *rows_parts(struct rows *const *list, int count) {
  struct vector_parts *parts = 0;
  if (!list[0]->vectors || !list[0]->by_unit || list[0]->for_state) return 0;
  struct vector_sum **vectors = malloc(sizeof(struct vector_sum *) * (size_t)count);
  for (int i = 0; i < count && vectors; i++) vectors[i] = list[i]->vectors;
  if (vectors) parts = vector_parts_open(vectors, count);
  free(vectors);
  return parts;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* The totals of one sum, and of its diagnoses. */
#define MOST_NUMBERS (1 + TALLY_OWN + TALLY_COUNTS)

/* Computes the totals of all coordinates of a vector. Sets *keys as vector_sum_totals() does. If
** the keys are private, also sets the keys and cells of *grid. Returns null when out of memory. */
static int128 *vector_totals(struct rows *rows, const struct layout *shape,
                             struct ledger_grid *grid, const char ***keys) {
  int cells;
  int128 *totals = vector_sum_totals(rows->vectors, &cells, keys);
  if (totals && *keys) {
    grid->keys = (char **)*keys;
    grid->cells = cells;
  }
  if (!totals || !shape->diagnoses) return totals;
  size_t count = (size_t)grid->cells * (size_t)grid->components;
  int128 *grown = realloc(totals, sizeof *totals * (count + (size_t)shape->diagnoses));
  struct tally tally = vector_sum_tally(rows->vectors);
  if (grown) tally_write(&tally, &shape->ladder, shape->diagnoses, grown + count);
  if (!grown) free(totals);
  return grown;
}

int rows_publish(struct rows *rows, struct publication *publication, publish_totals *publish,
                 struct error *error) {
  const struct layout *shape = &publication->definition.layout;
  struct totals totals = {{0, 1, 1, shape->diagnoses}, 0};
  const char **keys = 0;
  int128 numbers[MOST_NUMBERS] = {0};
  if (publication->definition.household && !rows->households) {
    publish_fail(publication);
    return error_set(error, "no row says which wider unit a unit belongs to (the charge stays)");
  }
  if (rows->state) {
    totals.grid = publication->grid;
    totals.values = rows->aggregate->rows->totals(rows, publication->session->ledger, error);
    if (!totals.values) {
      publish_fail(publication);
      return 0;
    }
  } else if (!rows->vectors) {
    if (scalar_sum_total(&rows->numbers, numbers)) totals.values = numbers;
    if (shape->diagnoses)
      tally_write(&rows->numbers.tally, &shape->ladder, shape->diagnoses, numbers + 1);
  } else {
    totals.grid = publication->grid;
    totals.values = vector_totals(rows, shape, &totals.grid, &keys);
  }
  int going = totals.values ? publish(publication, &totals)
                            : error_set(error, "out of memory (the charge stays)");
  if (rows->vectors) free(totals.values);
  free(keys);
  return going;
}
