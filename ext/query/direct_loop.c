/* direct_loop.c: see direct_loop.h. Tests: tests/query/test_direct_questions.py */
#include "query/direct_loop.h"

#include <string.h>

#include "base/sql_text.h"
#include "query/interrupts.h"

SQLITE_EXTENSION_INIT3

/* ---- the text -------------------------------------------------------------------------------- */

/*
** If a text, a quoted name or a comment starts at `at`, returns the place after it. Otherwise
** returns `at`.
*/
static int skip_quoted(const char *sql, int length, int at) {
  static const char quotes[][3] = {"''", "\"\"", "``", "[]"};
  const char *end = 0;
  if (strncmp(sql + at, "--", 2) == 0) {
    end = strchr(sql + at, '\n');
  } else if (strncmp(sql + at, "/*", 2) == 0) {
    end = strstr(sql + at + 2, "*/");
    if (end) end++;
  } else {
    int i = 0;
    while (i < 4 && sql[at] != quotes[i][0]) i++;
    if (i == 4) return at;
    end = strchr(sql + at + 1, quotes[i][1]);
  }
  return end && end - sql < length ? (int)(end - sql) + 1 : length;
}

/*
** Returns the place of the word FROM that ends the columns of the outermost SELECT, or -1. This is
** the first FROM that is in no parentheses and follows a SELECT that is in no parentheses. This
** FROM can also belong to an IS DISTINCT FROM among the columns. append_question() then puts a
** comma before this FROM, so the statement does not compile and is not used.
*/
static int place_of_from(const char *sql, int length) {
  int depth = 0, selected = 0;
  for (int at = 0; at < length;) {
    int next = skip_quoted(sql, length, at);
    if (next > at) {
      at = next;
      continue;
    }
    while (next < length && sql_is_of_word(sql[next])) next++;
    int size = next - at;
    if (!size) depth += (sql[at] == '(') - (sql[at] == ')');
    if (depth == 0 && size == 6 && sqlite3_strnicmp(sql + at, "SELECT", 6) == 0) selected = 1;
    if (depth == 0 && size == 4 && sqlite3_strnicmp(sql + at, "FROM", 4) == 0 && selected)
      return at;
    at = size ? next : at + 1;
  }
  return -1;
}

/* Returns the column with the unit or the link to the unit, or -1 if each row is a unit. */
static int column_of_unit(const struct route *route) {
  return route->count > 1 ? route->links[0] : route->unit;
}

/*
** Appends the common table expressions. If `rowid` is not null, the expression for the protected
** table gives only the rows whose rowids are from ?1 to ?2.
*/
static void append_tables(sqlite3_str *sql, struct evaluator *evaluator,
                          const struct evaluator_table *table, const char *unit,
                          const char *rowid) {
  for (int i = 0; i < evaluator_table_count(evaluator); i++) {
    const struct evaluator_table *each = evaluator_table(evaluator, i);
    const struct table_facts *facts = &each->route.tables[0];
    int column = each == table ? column_of_unit(&each->route) : -1;
    sqlite3_str_appendf(sql, "%s\"%w\" AS (SELECT *", i ? ", " : "WITH ", facts->name);
    if (column >= 0) sqlite3_str_appendf(sql, ", \"%w\" AS %s", facts->columns[column].name, unit);
    sqlite3_str_appendf(sql, " FROM main.\"%w\"%s", facts->name,
                        each == table ? " NOT INDEXED" : "");
    if (each == table && rowid) sqlite3_str_appendf(sql, " WHERE %s BETWEEN ?1 AND ?2", rowid);
    sqlite3_str_appendall(sql, ")");
  }
}

/* Appends the question. Adds the column `unit`, unless `unit` is null. */
static int append_question(sqlite3_str *sql, const struct evaluator_text *text, const char *unit) {
  int from = unit ? place_of_from(text->sql, text->length) : 0;
  if (from < 0) return 0;
  sqlite3_str_append(sql, text->sql, from);
  if (unit) sqlite3_str_appendf(sql, ", %s ", unit);
  sqlite3_str_append(sql, text->sql + from, text->length - from);
  return 1;
}

/* Appends names for the columns of the question and of the unit, such as "c0, c1, c2". */
static void append_names(sqlite3_str *sql, int count) {
  for (int i = 0; i < count; i++) sqlite3_str_appendf(sql, "%sc%d", i ? ", " : "", i);
}

/*
** Returns the statement, or null if the text of the question has no place for the unit. The
** function makes names for the unit and for the last common table expression. These names occur
** nowhere in the question. `rowid` is null, or a name of the protected table's rowid for the
** statement on a range (D4).
*/
static char *statement_of(struct evaluator *evaluator, const struct evaluator_table *table,
                          const struct evaluator_text *text, const char *rowid) {
  sqlite3_str *sql = sqlite3_str_new(0);
  int has_unit = column_of_unit(&table->route) >= 0;
  char *unit = sqlite3_mprintf("dp_unit"), *rows = 0;
  while (unit && has_word(unit, text->sql)) unit = sqlite3_mprintf("%z_", unit);
  if (unit) rows = sqlite3_mprintf("%s_rows", unit);
  append_tables(sql, evaluator, table, unit, rowid);
  sqlite3_str_appendf(sql, ", %s(", rows);
  append_names(sql, text->columns + has_unit);
  sqlite3_str_appendall(sql, ") AS (");
  int going = unit && rows && append_question(sql, text, has_unit ? unit : 0);
  sqlite3_str_appendall(sql, "\n) SELECT dp_collect("); /* a line break ends a comment */
  append_names(sql, text->columns + has_unit);
  sqlite3_str_appendf(sql, ") FROM %s", rows);
  char *statement = sqlite3_str_finish(sql);
  sqlite3_free(unit);
  sqlite3_free(rows);
  if (going) return statement;
  sqlite3_free(statement);
  return 0;
}

/* ---- the proof ------------------------------------------------------------------------------- */

static int is_collect(const struct program_call *call) {
  return collector_is_called(call->name, call->arguments);
}

/*
** Returns whether the loop reads every column of `table` that the question names (D2). SQLite 3.54
** says of a virtual table without rowid that a question reads the whole primary key. There, the
** evaluator evaluates questions that do not.
*/
static int reads_columns(const struct table_loop *loop, const struct program *program, sqlite3 *db,
                         const struct evaluator_table *table) {
  const struct table_facts *facts = &table->route.tables[0];
  struct program_instruction control;
  for (int i = 0; i < facts->count; i++)
    if (table->used[i] && (!table_loop_control(&control, db, facts, facts->columns[i].name) ||
                           !table_loop_reads(loop, program, &control)))
      return 0;
  return 1;
}

/* Returns whether dp_collect() gets the unit of the current row as its last argument (D1). */
static int has_unit(const struct table_loop *loop, const struct program *program, sqlite3 *db,
                    const struct evaluator_table *table, int columns) {
  const struct table_facts *facts = &table->route.tables[0];
  struct program_instruction control;
  struct program_call call, second;
  int column = column_of_unit(&table->route);
  if (!program_call(&call, program, 0) || program_call(&second, program, call.at + 1)) return 0;
  return column < 0 || (table_loop_control(&control, db, facts, facts->columns[column].name) &&
                        table_loop_holds(loop, program, call.first + columns, call.at, &control));
}

/*
** Returns whether D1 and D2 hold for a program on a connection. With public tables, the program may
** make no NULL after it has opened the loop's table. (The columns of public tables are not compared
** one by one, because a column may be read from one of several indices.)
*/
static int is_proved(const struct direct_loop *loop, sqlite3 *db, const struct program *program,
                     enum loop_rows rows) {
  const struct evaluator_table *table = loop->table;
  struct allowed_functions functions;
  struct table_loop found;
  return program->count && allowed_functions_read(&functions, db) == SQLITE_OK &&
         table_loop_find(&found, program, rows, &functions, is_collect, db, loop->policy) &&
         table_loop_root(&found, program) == table->route.tables[0].root &&
         has_unit(&found, program, db, table, loop->columns) &&
         reads_columns(&found, program, db, table) &&
         (!loop->policy || !program_makes_null(program, found.open));
}

static int is_proved_whole(const struct direct_loop *loop, const char *sql) {
  struct program program;
  program_read(&program, loop->collector->db, sql);
  int proved = is_proved(loop, loop->collector->db, &program, LOOP_WHOLE);
  program_clear(&program);
  return proved;
}

/* ---- ranges (D4) ----------------------------------------------------------------------------- */

/* Compiles the statement on a range. Leaves loop->text null if it cannot be used. */
static void open_range(struct direct_loop *loop, struct evaluator *evaluator,
                       const struct evaluator_text *text) {
  const char *rowid = loop->table->route.tables[0].rowid;
  char *sql = rowid ? statement_of(evaluator, loop->table, text, rowid) : 0;
  program_read(&loop->program, loop->collector->db, sql);
  if (is_proved(loop, loop->collector->db, &loop->program, LOOP_RANGE)) {
    loop->text = sql;
  } else {
    sqlite3_free(sql);
  }
}

/* The arguments of direct_loop_run(), for the functions of struct range_query. */
struct running {
  const struct direct_loop *loop;
  const struct rows_opener *opener;
};

/* Returns whether a further connection gives the same results as the host's connection. */
static int is_proved_beside(void *context, sqlite3 *db) {
  const struct direct_loop *loop = ((const struct running *)context)->loop;
  struct program program;
  program_read(&program, db, loop->text);
  int proved =
      program_is_same(&program, &loop->program) && is_proved(loop, db, &program, LOOP_RANGE);
  program_clear(&program);
  return proved;
}

/* ---- the loop -------------------------------------------------------------------------------- */

int direct_loop_open(struct direct_loop *loop, struct collector *collector,
                     struct evaluator *evaluator, const struct evaluator_table *table,
                     const struct ledger_policy *policy, int has_readers) {
  struct evaluator_text text;
  struct error error = {0};
  *loop = (struct direct_loop){.collector = collector, .table = table};
  if (!evaluator_is_portable(evaluator, &text)) return 0;
  if (evaluator_table_count(evaluator) > 1) loop->policy = policy;
  /* If each row is a unit, unit_map.c numbers the results, but a join can give a row several. */
  if (loop->policy && column_of_unit(&table->route) < 0) return 0;
  loop->columns = text.columns;
  char *sql = statement_of(evaluator, table, &text, 0);
  int open = sql && is_proved_whole(loop, sql) &&
             sqlite3_prepare_v2(collector->db, sql, -1, &loop->statement, 0) == SQLITE_OK &&
             unit_map_open(&loop->map, collector->db, &table->route, &error);
  if (!open) interrupt_pass_on(collector->db);
  error_clear(&error); /* the evaluator reports this error, too, or needs no map */
  sqlite3_free(sql);
  if (open && has_readers) open_range(loop, evaluator, &text);
  return open;
}

void direct_loop_close(struct direct_loop *loop) {
  sqlite3_finalize(loop->statement); /* direct_loop_run() has returned its error */
  sqlite3_free(loop->text);
  program_clear(&loop->program);
  unit_map_close(&loop->map);
}

/* Makes rows_add() find the units of the rows with a map. */
static void use_map(const struct direct_loop *loop, struct unit_map *map, struct rows *rows) {
  rows->columns.unit = loop->columns;
  unit_map_use(map, rows);
}

static int open_beside(void *context, struct rows *rows, const struct secret *secret,
                       struct unit_map *map, struct error *error) {
  const struct running *running = context;
  if (!running->opener->open(running->opener->context, rows, secret, error) ||
      !unit_map_open(map, 0, &running->loop->table->route, error))
    return 0;
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
enum evaluation direct_loop_run(struct direct_loop *loop, struct readers *readers,
                                const struct rows_opener *opener, struct rows *rows,
                                struct error *error) {
  struct running running = {loop, opener};
  struct collection collection = {.rows = rows, .columns = loop->columns + !loop->map.by_row};
  struct range_query query = {loop->table->route.tables[0].name,
                              loop->table->route.tables[0].rowid,
                              loop->text,
                              collection.columns,
                              &running,
                              is_proved_beside,
                              open_beside,
                              explain};
  int rc;
  use_map(loop, &loop->map, rows);
  int divides = readers && loop->text && !loop->map.lookup && !(loop->map.by_row && rows->by_unit);
  if (!divides || !range_readers_run(readers, &query, rows, &rc, error)) {
    rc = collector_run(loop->collector, loop->statement, &collection);
    if (rc != SQLITE_DONE) explain(&running, loop->collector, rc, error);
  }
  rows->map = 0;
  return end_of(rc, error);
}
