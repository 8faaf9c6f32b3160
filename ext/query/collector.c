/* collector.c: see collector.h.
** Tests: tests/query/test_direct_questions.py, tests/query/test_question_threads.py */
#include "query/collector.h"

#include <stdlib.h>

SQLITE_EXTENSION_INIT3

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
  if (collection->take ? collection->take(collection, argv) : rows_add(collection->rows, argv))
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
  rows_give_number(rows, ++rows->map->number);
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
  int is_alone = map->by_row && rows_forget_units(rows);
  int is_plain = !map->by_row && !map->lookup && map->collation == COLLATION_BINARY;
  map->place = rows->columns.unit;
  rows->map = map;
  rows->add_known = rows->add;
  if (is_plain) return; /* the row's own column names the unit */
  rows->columns.unit = -1;
  if (is_alone) return;
  rows->add = map->by_row ? add_numbered : map->lookup ? add_linked : add_folded;
}
