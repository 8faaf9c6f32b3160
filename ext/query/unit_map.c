/* unit_map.c: see unit_map.h. */
#include "query/unit_map.h"

SQLITE_EXTENSION_INIT3

/* ---- links ----------------------------------------------------------------------------------- */

/*
** Compiles the query that finds the unit to which a link leads. The query compares columns in the
** same way as the FROM clause of route_append_from().
*/
static int prepare_lookup(struct unit_map *map, const struct route *route, struct error *error) {
  sqlite3_str *sql = sqlite3_str_new(0);
  sqlite3_str_appendall(sql, "SELECT ");
  route_append_unit(sql, route);
  route_append_lookup(sql, route);
  char *text = sqlite3_str_finish(sql);
  int rc = text ? sqlite3_prepare_v2(map->db, text, -1, &map->lookup, 0) : SQLITE_NOMEM;
  sqlite3_free(text);
  if (rc == SQLITE_NOMEM) return error_set_memory(error);
  if (rc != SQLITE_OK)
    return error_set(error, "cannot follow the links to the units: %s", sqlite3_errmsg(map->db));
  return sqlite3_column_count(map->lookup) == 1 ||
         error_set(error, "an authorizer of the host leaves out SELECT (let the extension read)");
}

int unit_map_open(struct unit_map *map, sqlite3 *db, const struct route *route,
                  struct error *error) {
  const struct table_facts *last = &route->tables[route->count - 1];
  *map = (struct unit_map){.db = db, .by_row = route->unit < 0};
  if (route->unit >= 0) map->collation = last->columns[route->unit].collation;
  return route->count == 1 || prepare_lookup(map, route, error);
}

void unit_map_close(struct unit_map *map) {
  sqlite3_finalize(map->lookup); /* unit_map_error() has reported an error of the lookup */
  map->lookup = 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Adds a row that names its unit in a column. */
static int add_owned(struct rows *rows, sqlite3_value **row) {
  if (sqlite3_value_type(row[rows->columns.unit]) == SQLITE_NULL) return 1;
  return rows->add_known(rows, row);
}

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

/*
** Adds a row with a link to its unit. If the lookup fails, it is not reset, because
** unit_map_error() needs its error text.
*/
static int add_linked(struct rows *rows, sqlite3_value **row) {
  struct unit_map *map = rows->map;
  sqlite3_stmt *lookup = map->lookup;
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
  int is_plain = !map->by_row && !map->lookup && map->collation == COLLATION_BINARY;
  map->place = rows->columns.unit;
  rows->map = map;
  rows->add_known = rows->add;
  rows->add = is_plain      ? add_owned
              : map->by_row ? add_numbered
              : map->lookup ? add_linked
                            : add_folded;
  if (!is_plain) rows->columns.unit = -1;
}

int unit_map_error(const struct unit_map *map, struct error *error) {
  if (map->rc == SQLITE_OK || map->rc == SQLITE_NOMEM)
    return error_set(error, "out of memory (the charge stays)");
  return error_set(error, "cannot follow the links to the units: %s (the charge stays)",
                   sqlite3_errmsg(map->db));
}
