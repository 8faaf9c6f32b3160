/*
** row_loop.c: see row_loop.h.
** Tests: tests/query/test_direct_questions.py, tests/query/test_three_ways.py
*/
#include "query/row_loop.h"

#include "base/sql_text.h"
#include "query/host_checks.h"
#include "query/limits.h"

SQLITE_EXTENSION_INIT3

/* ---- the text -------------------------------------------------------------------------------- */

/* Returns the column with the unit or the link to the unit, or -1 if each row is a unit. */
static int column_of_unit(const struct route *route) {
  return route->count > 1 ? route->links[0] : route->unit;
}

/* Returns whether a name occurs in the text of the question or among the columns of its tables. */
static int is_taken(const char *name, struct evaluator *evaluator, const char *sql) {
  int taken = has_word(name, sql);
  for (int i = 0; i < evaluator_table_count(evaluator) && !taken; i++)
    taken = table_column_find(&evaluator_table(evaluator, i)->route.tables[0], name) >= 0;
  return taken;
}

/*
** Appends the common table expressions. A rowid that the question names is a column there. If
** `range` is 1, the expression for the protected table gives only the rows whose rowids are from ?1
** to ?2.
*/
static void append_tables(sqlite3_str *sql, const struct row_loop *loop,
                          const struct evaluator_text *text, int range) {
  for (int i = 0; i < evaluator_table_count(loop->evaluator); i++) {
    const struct evaluator_table *each = evaluator_table(loop->evaluator, i);
    const struct table_facts *facts = &each->route.tables[0];
    int own = each == loop->table, column = column_of_unit(&each->route);
    sqlite3_str_appendf(sql, "%s\"%w\" AS (SELECT *", i ? ", " : "WITH ", facts->name);
    for (int j = 0; j < ROWID_NAMES && facts->rowid; j++)
      if (text->rows.rowids[j] && table_column_find(facts, rowid_names[j]) < 0)
        sqlite3_str_appendf(sql, ", %s AS %s", facts->rowid, rowid_names[j]);
    if (own && column < 0) sqlite3_str_appendf(sql, ", 0 AS %s", loop->unit);
    if (own && column >= 0)
      sqlite3_str_appendf(sql, ", \"%w\" AS %s", facts->columns[column].name, loop->unit);
    sqlite3_str_appendf(sql, " FROM main.\"%w\"%s", facts->name, own ? " NOT INDEXED" : "");
    if (own && range) sqlite3_str_appendf(sql, " WHERE %s BETWEEN ?1 AND ?2", facts->rowid);
    sqlite3_str_appendall(sql, ")");
  }
}

/* Appends names for the columns of the question and of the unit, such as "c0, c1, c2". */
static void append_names(sqlite3_str *sql, int count) {
  for (int i = 0; i < count; i++) sqlite3_str_appendf(sql, "%sc%d", i ? ", " : "", i);
}

/* Returns the statement, on a range if `range` is 1, or null when out of memory. */
static char *statement_of(const struct row_loop *loop, const struct evaluator_text *text,
                          int range) {
  sqlite3_str *sql = sqlite3_str_new(0);
  int from = text->rows.from;
  append_tables(sql, loop, text, range);
  sqlite3_str_appendf(sql, ", %s_rows(", loop->unit);
  append_names(sql, loop->columns + 1);
  sqlite3_str_appendall(sql, ") AS (");
  if (loop->columns) {
    sqlite3_str_append(sql, text->sql, from);
  } else {
    sqlite3_str_appendall(sql, "SELECT ");
  }
  sqlite3_str_appendf(sql, "%s%s ", loop->columns ? ", " : "", loop->unit);
  sqlite3_str_append(sql, text->sql + from, text->length - from);
  sqlite3_str_appendall(sql, "\n) SELECT dp_collect("); /* a line break ends a comment */
  append_names(sql, loop->columns + 1);
  sqlite3_str_appendf(sql, ") FROM %s_rows", loop->unit);
  return sqlite3_str_finish(sql);
}

/* ---- checks (D2) ----------------------------------------------------------------------------- */

/* Checks that no authorizer hides a column of a common table expression that the question reads. */
static int columns_are_shown(const struct row_loop *loop, sqlite3 *db,
                             const struct evaluator_table *table) {
  const struct table_facts *facts = &table->route.tables[0];
  int unit = table == loop->table ? column_of_unit(&table->route) : -1, shown = 1;
  char *nothing = sqlite3_mprintf("WITH \"%w\" AS (SELECT *, NULL AS %s FROM main.\"%w\")"
                                  " SELECT %s FROM \"%w\"",
                                  facts->name, loop->unit, facts->name, loop->unit, facts->name);
  for (int i = 0; i < facts->count && shown; i++) {
    if (!table->used[i] && i != unit) continue;
    char *select = sqlite3_mprintf("WITH \"%w\" AS (SELECT *, NULL AS %s FROM main.\"%w\")"
                                   " SELECT \"%w\" FROM \"%w\"",
                                   facts->name, loop->unit, facts->name, facts->columns[i].name,
                                   facts->name);
    shown = nothing && select && column_is_shown(db, select, nothing);
    sqlite3_free(select);
  }
  sqlite3_free(nothing);
  return shown;
}

static int all_are_shown(const struct row_loop *loop, sqlite3 *db) {
  int shown = 1;
  for (int i = 0; i < evaluator_table_count(loop->evaluator) && shown; i++)
    shown = columns_are_shown(loop, db, evaluator_table(loop->evaluator, i));
  return shown;
}

/*
** Returns whether a column has the collation RTRIM, under which SQLite 3.40 loses rows of a join.
*/
static int has_rtrim(struct evaluator *evaluator) {
  int found = 0;
  for (int i = 0; i < evaluator_table_count(evaluator); i++) {
    const struct evaluator_table *table = evaluator_table(evaluator, i);
    const struct table_facts *facts = &table->route.tables[0];
    for (int j = 0; j < facts->count; j++)
      found |= table->used[j] && facts->columns[j].collation == COLLATION_RTRIM;
  }
  return found;
}

/* The arguments of row_loop_run(), for the functions of struct range_query. */
struct running {
  const struct row_loop *loop;
  const struct rows_opener *opener;
  const struct households *households;
};

/*
** Returns whether a further connection gives the same results as the host's connection. An
** extension that is loaded for every connection may have replaced something there.
*/
static int is_same_beside(void *context, sqlite3 *db) {
  const struct row_loop *loop = ((const struct running *)context)->loop;
  struct error error = {0};
  int same = own_functions_check(db, loop->functions, &error) &&
             own_collations_check(db, &error) && all_are_shown(loop, db);
  error_clear(&error); /* the host reads alone */
  return same;
}

/* ---- the loop -------------------------------------------------------------------------------- */

int row_loop_open(struct row_loop *loop, struct collector *collector,
                     struct evaluator *evaluator, const struct evaluator_table *table,
                     const struct evaluator_text *text, int columns, int has_readers) {
  struct error error = {0};
  *loop = (struct row_loop){.collector = collector,
                               .evaluator = evaluator,
                               .table = table,
                               .functions = evaluator_functions(evaluator),
                               .columns = columns};
  int joins = text->rows.sources > 1;
  if (!text->is_utf8 || (columns && text->rows.has_star) || (joins && has_rtrim(evaluator)))
    return 0;
  /* If each row is a unit, unit_map.c numbers the results, but a join can give a row several. */
  if (joins && column_of_unit(&table->route) < 0) return 0;
  loop->unit = sqlite3_mprintf("dp_unit");
  while (loop->unit && is_taken(loop->unit, evaluator, text->sql))
    loop->unit = sqlite3_mprintf("%z_", loop->unit);
  char *sql = loop->unit && all_are_shown(loop, collector->db) ? statement_of(loop, text, 0) : 0;
  int open = sql &&
             sqlite3_prepare_v2(collector->db, sql, -1, &loop->statement, 0) == SQLITE_OK &&
             unit_map_open(&loop->map, collector->db, &table->route, &error);
  if (!open) interrupt_pass_on(collector->db);
  error_clear(&error); /* the evaluator reports this error, too, or needs no map */
  sqlite3_free(sql);
  if (open && has_readers && table->route.tables[0].rowid)
    loop->range = statement_of(loop, text, 1);
  return open;
}

void row_loop_close(struct row_loop *loop) {
  sqlite3_finalize(loop->statement); /* row_loop_run() has returned its error */
  sqlite3_free(loop->range);
  sqlite3_free(loop->unit);
  unit_map_close(&loop->map);
}

/* Makes rows_add() find the units of the rows with a map. */
static void use_map(const struct row_loop *loop, struct unit_map *map, struct rows *rows) {
  rows->columns.unit = loop->columns;
  unit_map_use(map, rows);
}

static int open_beside(void *context, struct rows *rows, const struct secret *secret,
                       struct unit_map *map, struct error *error) {
  const struct running *running = context;
  if (!running->opener->open(running->opener->context, rows, secret, error) ||
      !unit_map_open(map, 0, &running->loop->table->route, error))
    return 0;
  rows_use_households(rows, running->households);
  use_map(running->loop, map, rows);
  return 1;
}

static void explain(void *context, const struct collector *collector, int rc, struct error *error) {
  const struct running *running = context;
  const struct unit_map *map = &running->loop->map;
  (void)rc;
  error_set(error, "the query failed: %s%s",
            map->rc != SQLITE_OK ? sqlite3_errstr(map->rc) : sqlite3_errmsg(collector->db),
            running->opener->after);
}

static enum evaluation end_of(int rc, struct error *error) {
  switch (rc & 0xff) {
  case SQLITE_DONE: return EVALUATION_DONE;
  case SQLITE_OK: /* an authorizer left out dp_collect() */
  case SQLITE_ERROR:
  case SQLITE_TOOBIG:
  case SQLITE_MISMATCH:
  case SQLITE_CONSTRAINT: error_clear(error); return EVALUATION_DROPPED;
  default: return EVALUATION_FAILED;
  }
}

/*
** Several threads may read the rows, but not those of a table with links: each thread would read
** all parents, which takes as long as the threads save. If the map numbers the rows as units, only
** one thread may read them.
*/
enum evaluation row_loop_run(struct row_loop *loop, struct readers *readers,
                                const struct rows_opener *opener, struct rows *rows,
                                struct error *error) {
  struct running running = {loop, opener, rows->households};
  struct collection collection = {.rows = rows, .columns = loop->columns + 1};
  struct range_query query = {loop->table->route.tables[0].name,
                              loop->table->route.tables[0].rowid,
                              loop->range,
                              collection.columns,
                              &running,
                              is_same_beside,
                              open_beside,
                              explain};
  int rc;
  use_map(loop, &loop->map, rows);
  int divides = readers && loop->range && !loop->map.lookup && !(loop->map.by_row && rows->by_unit);
  if (!divides || !readers_run(readers, &query, rows, &rc, error)) {
    rc = collector_run(loop->collector, loop->statement, &collection);
    if (rc != SQLITE_DONE) explain(&running, loop->collector, rc, error);
  }
  rows->map = 0;
  return end_of(rc, error);
}
