/* row_reader.c: the way of a row from SQLite to the sums of a release: dp_collect() takes it, a map
** finds its unit, and the function that suits the kind adds it; then the totals.
** Tests: tests/sums/test_vectors_input.py, tests/query/test_three_ways.py,
** tests/query/test_direct_questions.py, tests/query/test_question_threads.py,
** tests/mechanism/test_cross_tables.py */
#include "query/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/sql_text.h"
#include "mechanism/mechanism.h"

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

void rows_use_households(struct rows *rows, const struct households *households) {
  rows->households = rows->numbers.households = households;
  if (rows->vectors) vector_sum_use_households(rows->vectors, households);
}

/* Treats each row that is added from now on as a unit of its own, which needs no memory for units.
** No row may be there yet. Returns 0, and does nothing, if these rows need the numbers of their
** units. */
static int forget_units(struct rows *rows) {
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

static int cell_of_key(const struct rows *rows, sqlite3_value **row) {
  return key_of(rows, vector_sum_cells(rows->vectors), rows->small[0], row[rows->columns.key]);
}

/* The first columns of a row of cross tables are the keys of the attributes. */
static int cell_of_tables(const struct rows *rows, sqlite3_value **row) {
  const struct ways *ways = rows->question->ways;
  int64_t place = 0; /* in the full table */
  for (int i = 0; i < ways->attributes; i++) {
    int key = key_of(rows, rows->attributes[i], rows->small[i], row[rows->columns.key + i]);
    if (key < 0) return key;
    place = place * ways->sizes[i] + key;
  }
  int cell = full_cells_number(vector_sum_full(rows->vectors), place);
  return cell < 0 ? CELL_FAILED : cell;
}

/* The first column of a row of a series is the label of the period. The cells of a period follow
** each other. */
static int cell_of_period(const struct rows *rows, sqlite3_value **row) {
  int period = cell_of(rows, rows->attributes[0], row[0]), key = 0;
  if (period == CELL_FAILED) return CELL_FAILED;
  if (period < rows->missing.first || period > rows->missing.last) return CELL_NONE;
  if (rows->columns.key >= 0) key = cell_of(rows, rows->attributes[1], row[rows->columns.key]);
  return key < 0 ? key : period * rows->groups + key;
}

/* Adds the value of a row to a cell. A row of nobody names no key. */
static int add_to_cells(struct rows *rows, sqlite3_value **row) {
  struct identity unit;
  double x;
  enum value value = value_of(rows, row, &x);
  if (value == VALUE_TAKEN) value = unit_of(rows, row, &unit);
  if (value != VALUE_TAKEN) return value == VALUE_NONE;
  int cell = rows->cell_of ? rows->cell_of(rows, row) : 0;
  if (cell < 0) return cell == CELL_NONE;
  return rows->add_to_cell(rows->vectors, unit, cell, x);
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
  const struct definition *definition = &publication->definition;
  struct columns columns = {-1, -1, -1};
  int count = definition->periods ? 1 : 0;
  if (definition->aggregate->places.key) columns.key = count++;
  if (definition->contribution.ways) count = definition->contribution.ways->attributes;
  if (definition->aggregate->places.value) columns.value = count;
  return columns;
}

/* Chooses the functions that add a row, once for all rows. */
static void choose_adder(struct rows *rows, const struct definition *definition) {
  const struct family *family = definition->layout.family;
  rows->add = add_to_cells;
  rows->add_to_cell = family->add;
  if (definition->periods) {
    rows->cell_of = cell_of_period;
    if (!rows->add_to_cell) rows->add_to_cell = vector_sum_add_number;
  } else if (definition->aggregate->rows) {
    rows->add = definition->aggregate->rows->add;
  } else if (family->has_vector) {
    rows->add = add_vector;
  } else if (definition->contribution.ways) {
    rows->cell_of = cell_of_tables;
  } else if (family->has_keys) {
    rows->cell_of = cell_of_key;
  } else if (family->statistic == STATISTIC_NUMBER) {
    rows->add = definition->layout.diagnoses ? add_diagnosed : add_number;
  }
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
  const struct periods *periods = definition->periods;
  rows->question = &definition->row_question;
  rows->missing = publication->missing;
  rows->groups = definition->layout.cells;
  rows->for_state = 1;
  rows->vectors = vector_sum_open(rows->question, &definition->row_layout, 1, 0, secret);
  if (!rows->vectors) return 0;
  rows->secret = vector_sum_secret(rows->vectors);
  rows->attributes[0] = group_keys_open(rows->secret, periods->labels, periods->count, 0);
  if (definition->groups)
    rows->attributes[1] = group_keys_open(rows->secret, definition->groups, rows->groups, 0);
  return rows->attributes[0] && (rows->attributes[1] || !definition->groups);
}

static int open_vectors(struct rows *rows, const struct publication *publication,
                        const struct secret *secret) {
  const struct definition *definition = &publication->definition;
  rows->vectors = vector_sum_open(rows->question, &definition->layout, definition->by_unit,
                                  publication->grid.keys, secret);
  rows->buffer = malloc(sizeof *rows->buffer * (size_t)(rows->question->size + 1));
  if (!rows->vectors || !rows->buffer) return 0;
  rows->secret = vector_sum_secret(rows->vectors);
  if (vector_sum_cells(rows->vectors))
    rows->small[0] = group_keys_small(vector_sum_cells(rows->vectors));
  return open_attributes(rows, definition->cross_keys);
}

int rows_open(struct rows *rows, const struct publication *publication, struct columns columns,
              const struct secret *secret, struct error *error) {
  const struct definition *definition = &publication->definition;
  const struct aggregate *aggregate = definition->aggregate;
  *rows = (struct rows){.columns = columns,
                        .aggregate = aggregate,
                        .question = &definition->contribution,
                        .takes_any = aggregate->counts && !aggregate->family->has_bins,
                        .by_unit = definition->by_unit};
  int is_open;
  choose_adder(rows, definition);
  if (definition->periods) {
    is_open = open_series(rows, publication, secret);
  } else if (aggregate->rows) {
    rows->buffer = malloc(sizeof *rows->buffer * (size_t)(rows->question->size + 1));
    is_open = rows->buffer && aggregate->rows->open(rows, publication);
  } else if (definition->layout.family->statistic == STATISTIC_NUMBER) {
    struct bounds bounds = design_bounds(&definition->layout);
    is_open = scalar_sum_open(&rows->numbers, &bounds, rows->by_unit, secret);
    if (is_open && rows->by_unit) rows->secret = scalar_sum_secret(&rows->numbers);
  } else {
    is_open = open_vectors(rows, publication, secret);
  }
  return is_open || error_set(error, "out of memory or random bytes");
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

/* ---- dp_collect() ---------------------------------------------------------------------------- */

/* dp_collect([key,] [x,] [unit]) passes the rows of a statement to the extension. The function does
** nothing unless the extension itself runs the statement, and SQLite lets no view call it. */
#define COLLECT "dp_collect"

static void collect_step(sqlite3_context *context, int argc, sqlite3_value **argv) {
  struct collection *collection = ((struct collector *)sqlite3_user_data(context))->collecting;
  if (!collection || argc != collection->columns) {
    sqlite3_result_error(context, COLLECT ": for dp_release() only", -1);
    return;
  }
  if (collection->take ? collection->take(collection, argv)
                       : collection->rows->add(collection->rows, argv))
    return;
  const struct unit_map *map = collection->rows->map;
  if (map && map->rc != SQLITE_OK) {
    sqlite3_result_error_code(context, map->rc);
  } else {
    sqlite3_result_error_nomem(context);
  }
}

static void collect_final(sqlite3_context *context) {
  struct collection *collection = ((struct collector *)sqlite3_user_data(context))->collecting;
  if (collection) collection->ended = 1;
  sqlite3_result_null(context);
}

int collector_run(struct collector *collector, sqlite3_stmt *statement,
                  struct collection *collection) {
  int rc;
  collection->ended = 0;
  collector->collecting = collection;
  while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
  }
  collector->collecting = 0;
  return rc == SQLITE_DONE && !collection->ended ? SQLITE_OK : rc;
}

int collector_register(struct collector *collector, void (*release)(void *collector)) {
  return sqlite3_create_function_v2(collector->db, COLLECT, -1, SQLITE_UTF8 | SQLITE_DIRECTONLY,
                                    collector, 0, collect_step, collect_final, release);
}

struct collector *private_collector_new(sqlite3 *db) {
  struct collector *collector = sqlite3_malloc(sizeof *collector);
  if (collector) *collector = (struct collector){db, 0};
  if (collector && collector_register(collector, sqlite3_free) == SQLITE_OK) return collector;
  sqlite3_close_v2(db); /* if the registration failed, SQLite has freed the collector */
  return 0;
}

/* Uses sqlite3_close_v2(), because an extension that is loaded for every connection may have left
** statements open. SQLite frees the collector with its function, when the last of them is gone. */
void private_collector_close(struct collector *collector) {
  if (!collector) return;
  sqlite3 *db = collector->db;
  sqlite3_exec(db, "ROLLBACK", 0, 0, 0); /* fails if no transaction is open */
  sqlite3_close_v2(db);
}

/* ---- known links ----------------------------------------------------------------------------- */

/* A row of the first parent that belongs to a unit. The kind of `unit` is 0 in a free entry. */
struct known_link {
  int64_t key; /* the rowid of the parent row */
  struct identity unit;
};

/* How many rows of the parent the map reads ahead after each lookup. */
#define ROWS_AHEAD 16

/* How far a key may be from its place in the order of keys. Rowids mostly follow each other, and
** their children too, so a table in this order makes good use of the processor's caches. If a key
** would be farther away, the table is rebuilt in the order of secret places, which nobody can fill
** unevenly. */
#define FARTHEST 64

/* Returns the entry of a key, or the free entry in which to put it. At least one entry is free.
** Returns null if the order of keys has no entry near enough. */
static struct known_link *known_find(const struct unit_map *map, const struct secret *secret,
                                     int64_t key) {
  size_t at = map->is_mixed ? (size_t)identity_mix(secret, identity_integer(key), 0) : (size_t)key;
  for (size_t i = 0; i < FARTHEST || map->is_mixed; i++) {
    struct known_link *link = &map->known[(at + i) & (map->room - 1)];
    if (link->unit.kind == IDENTITY_NOBODY || link->key == key) return link;
  }
  return 0;
}

/* Moves the known links to a table with `room` entries, which is in the order of secret places if
** the order of keys has no room for one of them. Returns 0 when out of memory. */
static int known_rebuild(struct unit_map *map, const struct secret *secret, size_t room) {
  struct unit_map old = *map;
  map->room = room;
  map->known = calloc(room, sizeof *map->known);
  if (!map->known) {
    *map = old;
    return 0;
  }
  for (size_t i = 0; i < old.room; i++) {
    if (old.known[i].unit.kind == IDENTITY_NOBODY) continue;
    struct known_link *link = known_find(map, secret, old.known[i].key);
    if (!link) {
      free(map->known);
      *map = old;
      map->is_mixed = 1;
      return known_rebuild(map, secret, room);
    }
    *link = old.known[i];
  }
  free(old.known);
  return 1;
}

/* Puts a link into the table. Returns 0 when out of memory. */
static int known_put(struct unit_map *map, const struct secret *secret, struct known_link new) {
  if (2 * map->count >= map->room &&
      !known_rebuild(map, secret, map->room ? 2 * map->room : FARTHEST))
    return 0;
  struct known_link *link = known_find(map, secret, new.key);
  if (!link) {
    map->is_mixed = 1;
    if (!known_rebuild(map, secret, map->room)) return 0;
    link = known_find(map, secret, new.key);
  }
  *link = new;
  map->count++;
  return 1;
}

/* Adds the current row of the statement `parents`. Returns 0 when out of memory. */
static int known_add(struct rows *rows) {
  struct unit_map *map = rows->map;
  if (sqlite3_column_type(map->parents, 1) == SQLITE_NULL) return 1;
  sqlite3_value *unit = sqlite3_value_dup(sqlite3_column_value(map->parents, 1));
  int added = unit && rows_give_unit(rows, unit, map->collation);
  sqlite3_value_free(unit);
  return added &&
         known_put(map, rows->secret,
                   (struct known_link){sqlite3_column_int64(map->parents, 0), rows->given});
}

/* Reads the next rows of the parent. Sets map->is_whole after the last row. Returns 0 after an
** error. The statement is then not reset. */
static int read_ahead(struct rows *rows) {
  struct unit_map *map = rows->map;
  int rc = SQLITE_ROW;
  for (int i = 0; i < ROWS_AHEAD && rc == SQLITE_ROW; i++) {
    rc = sqlite3_step(map->parents);
    if (rc == SQLITE_ROW && !known_add(rows)) rc = SQLITE_NOMEM;
  }
  if (rc == SQLITE_DONE) map->is_whole = 1;
  if (rc != SQLITE_ROW && rc != SQLITE_DONE) map->rc = rc;
  return map->rc == SQLITE_OK;
}

/* ---- links ----------------------------------------------------------------------------------- */

/* Compiles a query with `columns` columns, and frees its text. */
static int compile(struct unit_map *map, sqlite3_str *sql, int columns, sqlite3_stmt **statement,
                   struct error *error) {
  char *text = sqlite3_str_finish(sql);
  int rc = text ? sqlite3_prepare_v2(map->db, text, -1, statement, 0) : SQLITE_NOMEM;
  sqlite3_free(text);
  if (rc == SQLITE_NOMEM) return error_set_memory(error);
  if (rc != SQLITE_OK)
    return error_set(error, "cannot follow the links to the units: %s", sqlite3_errmsg(map->db));
  return sqlite3_column_count(*statement) == columns ||
         error_set(error, "an authorizer of the host leaves out SELECT (let the extension read)");
}

/* Compiles the query that reads the keys of the first parent and the units of its rows. This needs
** a key that is a rowid: such a key is an integer, so an integer link refers to the row with the
** same integer, and to no other row. Other keys are looked up one by one. */
static int prepare_parents(struct unit_map *map, const struct route *route, struct error *error) {
  const struct table_facts *parent = &route->tables[1];
  if (parent->rowid_alias < 0 || parent->unique != parent->rowid_alias) return 1;
  sqlite3_str *sql = sqlite3_str_new(0);
  sqlite3_str_appendf(sql, "SELECT t1.\"%w\", ", parent->columns[parent->rowid_alias].name);
  route_append_unit(sql, route);
  route_append_parents(sql, route);
  return compile(map, sql, 2, &map->parents, error);
}

int unit_map_open(struct unit_map *map, sqlite3 *db, const struct route *route,
                  struct error *error) {
  const struct table_facts *last = &route->tables[route->count - 1];
  *map = (struct unit_map){.db = db, .by_row = route->unit < 0};
  if (route->unit >= 0) map->collation = last->columns[route->unit].collation;
  if (route->count == 1) return 1;
  sqlite3_str *sql = sqlite3_str_new(0);
  sqlite3_str_appendall(sql, "SELECT ");
  route_append_unit(sql, route);
  route_append_lookup(sql, route);
  return compile(map, sql, 1, &map->lookup, error) && prepare_parents(map, route, error);
}

void unit_map_close(struct unit_map *map) {
  sqlite3_finalize(map->lookup);
  sqlite3_finalize(map->parents);
  free(map->known);
  map->lookup = map->parents = 0;
  map->known = 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int add_folded(struct rows *rows, sqlite3_value **row) {
  const struct unit_map *map = rows->map;
  sqlite3_value *unit = row[map->place];
  if (sqlite3_value_type(unit) == SQLITE_NULL) return 1;
  return rows_give_unit(rows, unit, map->collation) && rows->add_known(rows, row);
}

static int add_numbered(struct rows *rows, sqlite3_value **row) {
  rows->given = identity_integer(++rows->map->number);
  return rows->add_known(rows, row);
}

/* Adds a row whose link is the rowid of a parent, if the map already knows the parent. Sets *done
** to 0 if the row still needs a lookup. If the map has read all parents and does not know this one,
** the row belongs to no unit and needs no lookup. */
static int add_known_link(struct rows *rows, sqlite3_value **row, int *done) {
  const struct unit_map *map = rows->map;
  *done = map->is_whole;
  if (!map->room) return 1;
  const struct known_link *link =
      known_find(map, rows->secret, sqlite3_value_int64(row[map->place]));
  if (!link || link->unit.kind == IDENTITY_NOBODY) return 1;
  rows->given = link->unit;
  *done = 1;
  return rows->add_known(rows, row);
}

/* Adds a row with a link to its unit. Each lookup also reads some rows of the parent ahead. So the
** map costs little if there are few links, and lookups are rare if there are many. If the lookup
** fails, it is not reset. */
static int add_linked(struct rows *rows, sqlite3_value **row) {
  struct unit_map *map = rows->map;
  sqlite3_stmt *lookup = map->lookup;
  int can_know = map->parents && sqlite3_value_type(row[map->place]) == SQLITE_INTEGER;
  if (can_know) {
    int done, known = add_known_link(rows, row, &done);
    if (done || !known) return known;
    if (!read_ahead(rows)) return 0;
  }
  int rc = sqlite3_bind_value(lookup, 1, row[map->place]), added = 1;
  if (rc == SQLITE_OK) rc = sqlite3_step(lookup);
  if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
    map->rc = rc;
    return 0;
  }
  if (rc == SQLITE_ROW && sqlite3_column_type(lookup, 0) != SQLITE_NULL) {
    sqlite3_value *unit = sqlite3_value_dup(sqlite3_column_value(lookup, 0));
    added = unit && rows_give_unit(rows, unit, map->collation) && rows->add_known(rows, row);
    sqlite3_value_free(unit);
  }
  sqlite3_reset(lookup); /* the lookup has not failed */
  return added;
}

void unit_map_use(struct unit_map *map, struct rows *rows) {
  int is_alone = map->by_row && forget_units(rows);
  int is_plain = !map->by_row && !map->lookup && map->collation == COLLATION_BINARY;
  map->place = rows->columns.unit;
  rows->map = map;
  rows->add_known = rows->add;
  if (is_plain) return; /* the row's own column names the unit */
  rows->columns.unit = -1;
  if (is_alone) return;
  rows->add = map->by_row ? add_numbered : map->lookup ? add_linked : add_folded;
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
    error_set(error, "no row says which wider unit a unit belongs to");
    publish_fail(publication);
    return 0;
  }
  if (rows->state) {
    totals.grid = publication->grid;
    totals.values = rows->aggregate->rows->totals(rows, publication->session->ledger, error);
  } else if (!rows->vectors) {
    if (scalar_sum_total(&rows->numbers, numbers)) totals.values = numbers;
    if (shape->diagnoses)
      tally_write(&rows->numbers.tally, &shape->ladder, shape->diagnoses, numbers + 1);
  } else {
    totals.grid = publication->grid;
    totals.values = vector_totals(rows, shape, &totals.grid, &keys);
  }
  int going = totals.values ? publish(publication, &totals) : error_set_memory(error);
  if (!totals.values) publish_fail(publication);
  if (rows->vectors) free(totals.values);
  free(keys);
  return going;
}
