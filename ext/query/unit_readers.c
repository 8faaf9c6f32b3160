/* unit_readers.c: see unit_readers.h. */
#include "query/unit_readers.h"

#include <stdlib.h>

#include "query/program.h"
#include "query/rowid_ranges.h"
#include "query/safe_columns.h"

SQLITE_EXTENSION_INIT3

#define SAMPLE      512 /* the most units from which the ends of the parts are chosen */
#define LEAST_APART 32  /* the least number of rowids between two of their rows */

/* The loop of one connection. */
struct part_loop {
  struct unit_loop loop;
  struct evaluator *copy; /* the evaluator of a further connection */
};

struct dividing {
  const struct unit_loop *whole; /* the loop over all units */
  const struct rows_opener *opener;
  struct part_loop *list; /* one for each connection */
  int count;              /* the number of connections and of parts */
  sqlite3_value **ends;   /* ends[i]: the first value of part i + 1; there are count - 1 */
};

/* ---- parts (P1) ------------------------------------------------------------------------------ */

/* Returns whether the collations of a route are BINARY: of units, of links and of the order. */
static int is_binary(const struct route *route) {
  const struct table_facts *first = &route->tables[0];
  for (int i = 1; i < route->count; i++)
    if (route->tables[i].unique_collation != COLLATION_BINARY) return 0;
  for (int i = 0; !first->rowid && i < first->key_count; i++)
    if (first->columns[first->key[i]].collation != COLLATION_BINARY) return 0;
  return 1;
}

static int can_divide(const struct unit_loop *loop) {
  if (loop->by_row || loop->takes_one || loop->collation != COLLATION_BINARY) return 0;
  for (int i = 0; i < loop->count; i++)
    if (!is_binary(&loop->streams[i].table->route)) return 0;
  return 1;
}

/* Returns the statement that gives the units of some rows of a table, in order. */
static char *sample_text(const struct route *route, const struct rowid_ranges *ranges) {
  sqlite3_str *sql = sqlite3_str_new(0);
  sqlite3_str_appendall(sql, "SELECT ");
  route_append_unit(sql, route);
  route_append_from(sql, route);
  sqlite3_str_appendall(sql, " WHERE ");
  route_append_unit(sql, route);
  sqlite3_str_appendf(sql, " IS NOT NULL AND t0.%s IN (", route->tables[0].rowid);
  for (unsigned i = 0; i < ranges->count; i++)
    sqlite3_str_appendf(sql, "%s%lld", i ? ", " : "", (sqlite3_int64)ranges->starts[i]);
  sqlite3_str_appendall(sql, ") ORDER BY 1");
  return sqlite3_str_finish(sql);
}

/* Chooses the ends of the parts among the units of a sample. */
static int choose_ends(struct dividing *dividing, sqlite3_stmt *unit) {
  int units = 0, at = 0, rc;
  while ((rc = sqlite3_step(unit)) == SQLITE_ROW) units++;
  if (rc != SQLITE_DONE) return 0;
  sqlite3_reset(unit); /* the statement has not failed */
  for (int i = 1; i < dividing->count; i++) {
    int wanted = 1 + (int)((int64_t)units * i / dividing->count);
    while (at < wanted && sqlite3_step(unit) == SQLITE_ROW) at++;
    if (at < wanted) return 0;
    dividing->ends[i - 1] = sqlite3_value_dup(sqlite3_column_value(unit, 0));
    if (!dividing->ends[i - 1]) return 0;
  }
  return 1;
}

/*
** Divides the units into parts with about equally many rows of the first table that is large
** enough. Uses a sample of its rows. Returns 0 if there is no such table.
*/
static int divide(struct dividing *dividing) {
  const struct unit_loop *whole = dividing->whole;
  struct rowid_ranges ranges = {0};
  const struct route *route = 0;
  sqlite3_stmt *unit = 0;
  for (int i = 0; i < whole->count && !route; i++) {
    const struct table_facts *facts = &whole->streams[i].table->route.tables[0];
    if (facts->rowid &&
        rowid_ranges_find(&ranges, whole->db, facts->name, facts->rowid, SAMPLE, LEAST_APART))
      route = &whole->streams[i].table->route;
    rowid_ranges_close(&ranges);
  }
  char *sql = route ? sample_text(route, &ranges) : 0;
  int divided = sql && sqlite3_prepare_v2(whole->db, sql, -1, &unit, 0) == SQLITE_OK &&
                sqlite3_column_count(unit) == 1 && choose_ends(dividing, unit);
  sqlite3_finalize(unit); /* after an error, the host's thread evaluates all units */
  sqlite3_free(sql);
  return divided;
}

/* ---- connections (P2, P3) -------------------------------------------------------------------- */

/*
** Copies the host's decision whether the rows that are sorted may go to a temporary file. Returns 0
** if the host does not tell it.
*/
static int copy_temp_store(sqlite3 *db, sqlite3 *host) {
  sqlite3_stmt *row = 0;
  char *sql = 0;
  if (sqlite3_prepare_v2(host, "PRAGMA temp_store", -1, &row, 0) == SQLITE_OK &&
      sqlite3_step(row) == SQLITE_ROW)
    sql = sqlite3_mprintf("PRAGMA temp_store = %d", sqlite3_column_int(row, 0));
  sqlite3_finalize(row); /* after an error, there is no text */
  int copied = sql && sqlite3_exec(db, sql, 0, 0, 0) == SQLITE_OK;
  sqlite3_free(sql);
  return copied;
}

/* Returns whether a further connection reads the same rows of a table in the same order. */
static int is_same_stream(const struct unit_loop *loop, const struct unit_loop *host,
                          const struct evaluator_table *table) {
  struct program one, other;
  struct error error = {0};
  char *sql = unit_loop_text(host, table, UNIT_ORDER_PART);
  program_read(&one, loop->db, sql);
  program_read(&other, host->db, sql);
  int same = program_is_same(&one, &other) &&
             safe_columns_check(loop->db, &table->route, table->used, &error);
  program_clear(&one);
  program_clear(&other);
  sqlite3_free(sql);
  error_clear(&error);
  return same;
}

static int is_stopped(void *context) {
  return readers_have_failed(context);
}

/* Gives a further connection an evaluator of its own. */
static int copy_evaluator(struct part_loop *part, const struct unit_loop *whole,
                          const struct reader *reader) {
  if (!evaluator_copy(&part->copy, whole->evaluator)) return 0;
  evaluator_watch(part->copy, is_stopped, reader->readers);
  part->loop.evaluator = part->copy;
  return 1;
}

static int prepare_statements(struct unit_loop *loop, struct error *error) {
  int going = unit_loop_open(loop);
  for (int i = 0; i < loop->count && going; i++)
    going = unit_loop_prepare_stream(loop, &loop->streams[i], UNIT_ORDER_PART, error);
  return going && unit_loop_prepare_helpers(loop, error);
}

static int prepare(void *context, const struct reader *reader) {
  const struct dividing *dividing = context;
  const struct unit_loop *whole = dividing->whole;
  struct part_loop *part = &dividing->list[reader->number];
  struct unit_loop *loop = &part->loop;
  struct error error = {0};
  *loop = (struct unit_loop){.db = reader->host->db,
                             .evaluator = whole->evaluator,
                             .columns = whole->columns,
                             .collation = whole->collation,
                             .after = whole->after,
                             .steps = whole->steps,
                             .rows = reader->rows,
                             .is_stopped = is_stopped,
                             .context = reader->readers};
  int is_host = reader->number == 0;
  int going =
      is_host || (copy_temp_store(loop->db, whole->db) && copy_evaluator(part, whole, reader));
  for (int i = 0; !is_host && i < whole->count && going; i++)
    going = is_same_stream(loop, whole, whole->streams[i].table);
  going = going && prepare_statements(loop, &error);
  error_clear(&error); /* the host's thread evaluates all units */
  return going;
}

static int open_rows(void *context, const struct reader *reader, struct error *error) {
  const struct rows_opener *opener = ((const struct dividing *)context)->opener;
  int opened = opener->open(opener->context, reader->rows, error);
  reader->rows->columns.unit = -1;
  return opened;
}

/* ---- the parts ------------------------------------------------------------------------------- */

/* Binds an end of a part, or NULL if the part has no such end. */
static int bind(sqlite3_stmt *row, int parameter, const sqlite3_value *end) {
  int rc = end ? sqlite3_bind_value(row, parameter, end) : sqlite3_bind_null(row, parameter);
  return rc == SQLITE_OK;
}

static int run_part(void *context, const struct reader *reader, unsigned part,
                    struct error *error) {
  const struct dividing *dividing = context;
  struct unit_loop *loop = &dividing->list[reader->number].loop;
  const sqlite3_value *first = part > 0 ? dividing->ends[part - 1] : 0;
  const sqlite3_value *next = (int)part + 1 < dividing->count ? dividing->ends[part] : 0;
  int going = 1;
  for (int i = 0; i < loop->count && going; i++)
    going = bind(loop->streams[i].row, 1, first) && bind(loop->streams[i].row, 2, next);
  going = going ? unit_loop_run(loop, error) : error_set(error, "out of memory%s", loop->after);
  for (int i = 0; i < loop->count; i++)
    sqlite3_reset(loop->streams[i].row); /* the error has been reported */
  return going ? SQLITE_DONE : SQLITE_ERROR;
}

static int ask_host(void *context, const struct reader *host, struct error *error) {
  const struct unit_loop *whole = ((const struct dividing *)context)->whole;
  (void)host;
  if (!evaluator_is_interrupted(whole->evaluator)) return SQLITE_DONE;
  error_set(error, "the query failed: %s%s", "interrupted", whole->after);
  return SQLITE_INTERRUPT;
}

static void clear(struct dividing *dividing) {
  for (int i = 0; dividing->list && i < dividing->count; i++) {
    unit_loop_close(&dividing->list[i].loop);
    evaluator_close(dividing->list[i].copy);
  }
  for (int i = 0; dividing->ends && i + 1 < dividing->count; i++)
    sqlite3_value_free(dividing->ends[i]);
  free(dividing->list);
  free(dividing->ends);
}

/* Does the parts. Meanwhile, the host's connection sorts without threads of SQLite. */
static int run(struct readers *readers, sqlite3 *host, struct error *error) {
  int threads = sqlite3_limit(host, SQLITE_LIMIT_WORKER_THREADS, 0);
  int rc = readers_run(readers, error);
  sqlite3_limit(host, SQLITE_LIMIT_WORKER_THREADS, threads);
  return rc;
}

int unit_readers_run(struct readers *readers, const struct unit_loop *loop,
                     const struct rows_opener *opener, int *rc, struct error *error) {
  struct dividing dividing = {.whole = loop, .opener = opener, .count = readers_count(readers)};
  struct tasks tasks = {&dividing, (unsigned)dividing.count, prepare, open_rows, run_part,
                        ask_host};
  dividing.list = calloc((size_t)dividing.count, sizeof *dividing.list);
  dividing.ends = calloc((size_t)dividing.count, sizeof *dividing.ends);
  int divided = dividing.list && dividing.ends && can_divide(loop) && divide(&dividing) &&
                readers_settle(readers, &tasks, loop->rows);
  if (divided) *rc = run(readers, loop->db, error);
  clear(&dividing);
  return divided;
}
