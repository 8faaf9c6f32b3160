/* unit_loop.c: evaluates a question for one unit after the other on one thread. The statements that
** read the protected tables are written here and call no functions. They sort each table by unit.
** The sorted streams are then merged unit by unit, and the evaluator runs the caller's query.
** Tests: tests/query/test_questions.py */
#include <stdlib.h>

#include "query/loops.h"

SQLITE_EXTENSION_INIT3

static int out_of_memory(const struct unit_loop *loop, struct error *error) {
  return error_set(error, "out of memory%s", loop->after);
}

static int reading_failed(const struct unit_loop *loop, struct error *error) {
  return error_set(error, "the query failed: %s%s", sqlite3_errmsg(loop->db), loop->after);
}

/* ---- statements ------------------------------------------------------------------------------ */

static int is_protected(const struct evaluator_table *table) {
  return table->declaration->role == POLICY_PROTECTED;
}

int unit_loop_open(struct unit_loop *loop) {
  int tables = loop->evaluator->tables.count;
  loop->count = 0;
  loop->streams = calloc((size_t)tables + 1, sizeof *loop->streams);
  for (int i = 0; loop->streams && i < tables; i++) {
    struct evaluator_table *table = &loop->evaluator->tables.list[i];
    if (is_protected(table)) loop->streams[loop->count++].table = table;
  }
  return loop->streams != 0;
}

void unit_loop_close(struct unit_loop *loop) {
  for (int i = 0; i < loop->count; i++) sqlite3_finalize(loop->streams[i].row);
  free(loop->streams);
  sqlite3_finalize(loop->compare); /* the errors of these statements have been reported */
  sqlite3_value_free(loop->nothing);
  sqlite3_value_free(loop->unit);
  *loop = (struct unit_loop){0};
}

/* Returns whether the statement on a table reads no value that is too long. */
static int is_cut(const struct unit_loop *loop, const struct evaluator_table *table) {
  return loop->longest && is_protected(table);
}

/* A unit with a value that is longer than `longest` contributes nothing (evaluator_limit_memory()).
** The statement gives NULL instead of such values, because SQLite would hold sixteen of them in
** memory while it sorts. length() does not read a blob. */
static void append_cut_columns(sqlite3_str *sql, const struct table_facts *facts,
                               const unsigned char *used, int longest) {
  sqlite3_str_appendall(sql, ", CASE");
  for (int i = 0; i < facts->count; i++)
    if (used[i])
      sqlite3_str_appendf(sql, " WHEN length(t0.\"%w\") > %d THEN 1", facts->columns[i].name,
                          longest);
  sqlite3_str_appendall(sql, " WHEN 0 THEN 0 END IS TRUE");
  for (int i = 0; i < facts->count; i++)
    if (used[i])
      sqlite3_str_appendf(sql, ", CASE WHEN length(t0.\"%w\") > %d THEN NULL ELSE t0.\"%w\" END",
                          facts->columns[i].name, longest, facts->columns[i].name);
}

/* Returns the statement that reads a table, or null when out of memory. The caller frees the text
** with sqlite3_free(). */
static char *text_of(const struct unit_loop *loop, const struct evaluator_table *table) {
  const struct route *route = &table->route;
  const struct table_facts *facts = &route->tables[0];
  int has_unit = is_protected(table) && !loop->by_row;
  sqlite3_str *sql = sqlite3_str_new(0);
  sqlite3_str_appendall(sql, "SELECT ");
  if (has_unit) {
    route_append_unit(sql, route);
  } else {
    sqlite3_str_appendall(sql, "NULL");
  }
  int is_without_long = is_cut(loop, table);
  sqlite3_str_appendf(sql, ", %s%s", facts->rowid ? "t0." : "",
                      facts->rowid ? facts->rowid : "NULL");
  if (is_without_long) append_cut_columns(sql, facts, table->used, loop->longest);
  for (int i = 0; i < facts->count && !is_without_long; i++)
    if (table->used[i]) sqlite3_str_appendf(sql, ", t0.\"%w\"", facts->columns[i].name);
  route_append_from(sql, route);
  sqlite3_str_appendall(sql, " ORDER BY ");
  if (has_unit) {
    route_append_unit(sql, route);
    sqlite3_str_appendf(sql, " COLLATE %s", collation_name(loop->collation));
  } else {
    sqlite3_str_appendall(sql, "1");
  }
  /* The last terms are the rowid or the primary key. A key may be unique under a finer collation
  ** than that of its column. Other units could then decide how rows with equal terms are
  ** ordered. */
  if (facts->rowid) sqlite3_str_appendf(sql, ", t0.%s", facts->rowid);
  for (int i = 0; !facts->rowid && i < facts->key_count; i++)
    sqlite3_str_appendf(sql, ", t0.\"%w\" COLLATE BINARY", facts->columns[facts->key[i]].name);
  return sqlite3_str_finish(sql);
}

int unit_loop_prepare(sqlite3 *db, const char *sql, int columns, const char *after,
                      sqlite3_stmt **statement, struct error *error) {
  if (!sql) return error_set_memory(error);
  if (sqlite3_prepare_v2(db, sql, -1, statement, 0) != SQLITE_OK)
    return error_set(error, "cannot read for the question: %s%s", sqlite3_errmsg(db), after);
  if (sqlite3_column_count(*statement) == columns) return 1;
  return error_set(error, "an authorizer of the host leaves out SELECT (let the extension read)");
}

int unit_loop_prepare_stream(const struct unit_loop *loop, struct unit_stream *stream,
                             struct error *error) {
  struct evaluator_table *table = stream->table;
  int columns = 0; /* that the question reads: each has a place in the statement */
  for (int i = 0; i < table->route.tables[0].count; i++)
    table->places[i] = table->used[i] ? columns++ : -1;
  char *sql = text_of(loop, stream->table);
  sqlite3_finalize(stream->row); /* a statement of before, which has not run */
  stream->row = 0;
  stream->is_cut = is_cut(loop, stream->table);
  int going = unit_loop_prepare(loop->db, sql, columns + 2 + stream->is_cut, loop->after,
                                &stream->row, error);
  sqlite3_free(sql);
  return going;
}

int unit_loop_prepare_helpers(struct unit_loop *loop, struct error *error) {
  const char *collation = collation_name(loop->collation);
  char *sql =
      sqlite3_mprintf("SELECT (?1 < ?2 COLLATE %s) - (?1 > ?2 COLLATE %s)", collation, collation);
  int going = unit_loop_prepare(loop->db, sql, 1, loop->after, &loop->compare, error);
  sqlite3_free(sql);
  sqlite3_stmt *row = 0;
  if (!going || !unit_loop_prepare(loop->evaluator->db, "SELECT NULL", 1, loop->after, &row, error))
    return 0;
  if (sqlite3_step(row) == SQLITE_ROW)
    loop->nothing = sqlite3_value_dup(sqlite3_column_value(row, 0));
  sqlite3_finalize(row); /* if the step failed, `nothing` stays null */
  return loop->nothing || error_set_memory(error);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The functions of this part read the values of a row by sqlite3_column_value(), which takes the
** connection's mutex once for each value. The values are protected: the function that asks the
** question runs in a statement of the host, which holds this mutex, or on a private connection,
** which has none. */

/* Passes over rows that belong to nobody. SQLite takes the condition IS NOT NULL for true if the
** column is declared NOT NULL, and an edited schema can declare this of a column with NULLs. */
int unit_loop_advance(const struct unit_loop *loop, struct unit_stream *stream,
                      struct error *error) {
  int rc, has_unit = is_protected(stream->table) && !loop->by_row;
  do rc = sqlite3_step(stream->row);
  while (rc == SQLITE_ROW && has_unit && sqlite3_column_type(stream->row, 0) == SQLITE_NULL);
  stream->has_row = rc == SQLITE_ROW;
  return rc == SQLITE_ROW || rc == SQLITE_DONE || reading_failed(loop, error);
}

int unit_loop_take(const struct unit_loop *loop, const struct unit_stream *stream,
                   struct error *error) {
  int64_t rowid = sqlite3_column_int64(stream->row, 1);
  struct evaluator_table *table = stream->table;
  return unit_rows_add(&table->rows, rowid, stream->row, 2 + stream->is_cut, table->places) ||
         out_of_memory(loop, error);
}

/* An integer is not copied, which saves an allocation for each unit. */
static int choose(struct unit_loop *loop, const struct unit_stream *stream, struct error *error) {
  sqlite3_value_free(loop->unit);
  loop->unit = 0;
  if (sqlite3_column_type(stream->row, 0) == SQLITE_INTEGER) {
    loop->integer = sqlite3_column_int64(stream->row, 0);
    return 1;
  }
  loop->unit = sqlite3_value_dup(sqlite3_column_value(stream->row, 0));
  return loop->unit || out_of_memory(loop, error);
}

/* Compares the current unit with the unit of a stream's row, in the order of the streams. Sets
** *order to 1 if the current unit comes first, 0 if both are equal, and -1 if it comes later. Two
** integers are compared without SQL. */
static int compare(struct unit_loop *loop, const struct unit_stream *stream, int *order,
                   struct error *error) {
  sqlite3_value *unit = sqlite3_column_value(stream->row, 0);
  if (!loop->unit && sqlite3_value_type(unit) == SQLITE_INTEGER) {
    int64_t a = loop->integer, b = sqlite3_value_int64(unit);
    *order = (a < b) - (a > b);
    return 1;
  }
  sqlite3_value *other = sqlite3_value_dup(unit);
  int going = 1;
  int rc = loop->unit ? sqlite3_bind_value(loop->compare, 1, loop->unit)
                      : sqlite3_bind_int64(loop->compare, 1, loop->integer);
  if (!other || rc != SQLITE_OK || sqlite3_bind_value(loop->compare, 2, other) != SQLITE_OK ||
      sqlite3_step(loop->compare) != SQLITE_ROW) {
    going = reading_failed(loop, error);
  } else {
    *order = sqlite3_column_int(loop->compare, 0);
  }
  sqlite3_reset(loop->compare); /* the result is ignored: any error has been reported already */
  sqlite3_value_free(other);
  return going;
}

/* Makes the first unit of all streams the current unit. Sets *found to 0 if no stream has a row
** left. */
static int find_unit(struct unit_loop *loop, int *found, struct error *error) {
  int going = 1;
  *found = 0;
  for (int i = 0; i < loop->count && going; i++) {
    const struct unit_stream *stream = &loop->streams[i];
    int order = -1;
    if (!stream->has_row) continue;
    if (*found) going = compare(loop, stream, &order, error);
    if (going && order < 0) going = choose(loop, stream, error);
    *found = 1;
  }
  return going;
}

static void clear_rows(const struct unit_loop *loop) {
  for (int i = 0; i < loop->count; i++) unit_rows_clear(&loop->streams[i].table->rows);
}

/* Moves the rows of the current unit from the streams to the evaluator's tables. Sets *count to
** their number. If the rows exceed the memory of one unit's evaluation, sets *is_full to 1 and
** keeps none of them. */
static int gather(struct unit_loop *loop, double *count, int *is_full, struct error *error) {
  int going = 1;
  *count = 0;
  *is_full = 0;
  clear_rows(loop);
  for (int i = 0; i < loop->count && going; i++) {
    struct unit_stream *stream = &loop->streams[i];
    int order = 0;
    while (going && stream->has_row && order == 0) {
      if (!loop->by_row) going = compare(loop, stream, &order, error);
      if (!going || order != 0) break;
      if (!*is_full) going = unit_loop_take(loop, stream, error);
      int is_long = stream->is_cut && sqlite3_column_int(stream->row, 2);
      if (!*is_full && (is_long || evaluator_is_full(loop->evaluator))) {
        *is_full = 1;
        clear_rows(loop);
      }
      *count += 1;
      if (going) going = unit_loop_advance(loop, stream, error);
      if (loop->by_row) break;
    }
  }
  return going;
}

/* ---- contributions --------------------------------------------------------------------------- */

static int give(const struct unit_loop *loop, struct error *error) {
  if (loop->unit)
    return rows_give_unit(loop->rows, loop->unit, loop->collation) || out_of_memory(loop, error);
  loop->rows->given = identity_integer(loop->by_row ? loop->number : loop->integer);
  return 1;
}

static int add(const struct unit_loop *loop, sqlite3_value **row, struct error *error) {
  return loop->rows->add(loop->rows, row) || out_of_memory(loop, error);
}

/* Adds the results of the current unit. Models and local randomisations take exactly one row: the
** first result, or NULLs if there is none. */
static int deliver(const struct unit_loop *loop, struct error *error) {
  sqlite3_value *nothing[3] = {loop->nothing, loop->nothing, loop->nothing};
  size_t count = loop->evaluator->count;
  if (loop->takes_one)
    return give(loop, error) &&
           add(loop, count ? evaluator_row(loop->evaluator, 0) : nothing, error);
  if (!count) return 1;
  if (!loop->columns) count = 1; /* a question without columns counts a unit once */
  int added = give(loop, error);
  for (size_t i = 0; i < count && added; i++)
    added = add(loop, loop->columns ? evaluator_row(loop->evaluator, i) : 0, error);
  return added;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static int evaluation_failed(const struct unit_loop *loop, struct error *error) {
  return error_set(error, "the query failed: %s%s", error_text(&loop->evaluator->error),
                   loop->after);
}

/* Evaluates the question for the current unit, which has `count` rows, and adds its results. If the
** evaluation fails for this unit only (EVALUATION_DROPPED), or the rows are too many, the unit has
** no results. */
static int evaluate(const struct unit_loop *loop, double count, int is_full, struct error *error) {
  if (is_full) {
    evaluator_skip(loop->evaluator);
  } else if (evaluator_run(loop->evaluator, loop->limits.steps * (1 + count), loop->columns > 0) ==
             EVALUATION_FAILED) {
    return evaluation_failed(loop, error);
  }
  return deliver(loop, error);
}

int unit_loop_run(struct unit_loop *loop, struct error *error) {
  int found = 1, going = 1, is_full;
  double count;
  for (int i = 0; i < loop->count && going; i++)
    going = unit_loop_advance(loop, &loop->streams[i], error);
  while (going) {
    if (loop->by_row) {
      found = loop->streams[0].has_row;
    } else {
      going = find_unit(loop, &found, error);
    }
    if (!going || !found) break;
    loop->number++;
    going = gather(loop, &count, &is_full, error);
    if (going) going = evaluate(loop, count, is_full, error);
  }
  return going;
}
