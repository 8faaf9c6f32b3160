/* sources.c: see sources.h. */
#include "query/sources.h"

#include <stdlib.h>
#include <string.h>

#include "base/sql_text.h"

SQLITE_EXTENSION_INIT3

/* ---- programs -------------------------------------------------------------------------------- */

/* The role of an instruction of SQLite's virtual machine. */
enum role {
  OTHER,
  TABLE,    /* opens cursor p1 on a table or an index */
  SORTED,   /* opens cursor p1 on the row of a sorter */
  STANDS,   /* positions cursor p1 */
  DEFERS,   /* positions cursor p3 by means of cursor p1 */
  STEPS,    /* positions cursor p1 and jumps to p2 */
  COLUMN,   /* p3 = column p2 of cursor p1 */
  ROWID,    /* p2 = rowid of cursor p1 */
  COPIES,   /* p2 ... p2 + p3 = p1 ... p1 + p3 */
  COPY,     /* p2 = p1 */
  TEXT,     /* p2 = a text of the statement */
  CONSTANT, /* p2 = a constant or a bound parameter */
  NULLS,    /* p2 ... p3 = NULL */
  BINARY,   /* p3 = result of an operator on p1 and p2 */
  CALL,     /* p3 = function p4 of p2, p2 + 1, ... */
  ONCE,     /* the instructions up to p2 run only once */
  COMPARES, /* compares p3 terms of GROUP BY: p1, p1 + 1, ... with p2, p2 + 1, ... */
  YIELDS,   /* enters a subquery that makes rows one by one, or returns from it */
  COLLECTS, /* adds p2, p2 + 1, ... to the aggregate p4 in p3 */
  FINISHES  /* finishes the aggregate in p1 */
};

static const struct {
  const char *name;
  enum role role;
} instructions[] = {
    {"OpenRead", TABLE},   {"OpenWrite", TABLE},   {"OpenAutoindex", TABLE},
    {"VOpen", TABLE},      {"ReopenIdx", TABLE},   {"OpenPseudo", SORTED},
    {"Rewind", STANDS},    {"Last", STANDS},       {"SeekGE", STANDS},
    {"SeekGT", STANDS},    {"SeekLE", STANDS},     {"SeekLT", STANDS},
    {"SeekRowid", STANDS}, {"NotExists", STANDS},  {"NotFound", STANDS},
    {"Found", STANDS},     {"VFilter", STANDS},    {"DeferredSeek", DEFERS},
    {"Seek", DEFERS},      {"Next", STEPS},        {"Prev", STEPS},
    {"VNext", STEPS},      {"Column", COLUMN},     {"VColumn", COLUMN},
    {"Rowid", ROWID},      {"IdxRowid", ROWID},    {"Copy", COPIES},
    {"SCopy", COPY},       {"Move", COPIES},       {"String8", TEXT},
    {"Integer", CONSTANT}, {"Int64", CONSTANT},    {"Real", CONSTANT},
    {"Blob", CONSTANT},    {"Variable", CONSTANT}, {"Null", NULLS},
    {"Add", BINARY},       {"Subtract", BINARY},   {"Multiply", BINARY},
    {"Divide", BINARY},    {"Remainder", BINARY},  {"Concat", BINARY},
    {"Function", CALL},    {"PureFunc", CALL},     {"Once", ONCE},
    {"Compare", COMPARES}, {"AggStep", COLLECTS},  {"AggFinal", FINISHES},
    {"Yield", YIELDS},
};

struct instruction {
  enum role role;
  int p1, p2, p3;
  int calls;     /* CALL, COLLECTS: the number of arguments */
  int is_wanted; /* COLLECTS: calls the function that sources_of() looks for */
};

struct program {
  struct instruction *list;
  int count, room;
};

static enum role role_of(const char *name) {
  for (size_t i = 0; name && i < sizeof instructions / sizeof *instructions; i++)
    if (strcmp(name, instructions[i].name) == 0) return instructions[i].role;
  return OTHER;
}

/* Adds a row of EXPLAIN: address, name, p1, p2, p3, p4. Returns 0 when out of memory. */
static int add_instruction(struct program *program, sqlite3_stmt *row, const char *wanted) {
  if (program->count == program->room) {
    int room = program->room * 2 + 64;
    struct instruction *list = realloc(program->list, sizeof *list * (size_t)room);
    if (!list) return 0;
    program->list = list;
    program->room = room;
  }
  const char *called = (const char *)sqlite3_column_text(row, 5);
  const char *arity = called ? strrchr(called, '(') : 0;
  program->list[program->count++] =
      (struct instruction){.role = role_of((const char *)sqlite3_column_text(row, 1)),
                           .p1 = sqlite3_column_int(row, 2),
                           .p2 = sqlite3_column_int(row, 3),
                           .p3 = sqlite3_column_int(row, 4),
                           .calls = arity ? (int)strtol(arity + 1, 0, 10) : 0,
                           .is_wanted = called && sqlite3_stricmp(called, wanted) == 0};
  return 1;
}

/* Returns the program of a statement, or an empty program if it cannot be read. */
static struct program program_of(sqlite3 *db, const char *sql, const char *wanted) {
  struct program program = {0, 0, 0};
  sqlite3_stmt *row = 0;
  char *text = sql ? sqlite3_mprintf("EXPLAIN %s", sql) : 0;
  int rc = text ? sqlite3_prepare_v2(db, text, -1, &row, 0) : SQLITE_NOMEM;
  while (rc == SQLITE_OK && (rc = sqlite3_step(row)) == SQLITE_ROW)
    rc = add_instruction(&program, row, wanted) ? SQLITE_OK : SQLITE_NOMEM;
  sqlite3_finalize(row); /* after an error, the program becomes empty */
  sqlite3_free(text);
  if (rc != SQLITE_DONE) program.count = 0;
  return program;
}

/* ---- one call of the aggregate --------------------------------------------------------------- */

/*
** A call of the aggregate at address `at`. The instructions from `start` to `end` read the rows for
** the call.
*/
struct call {
  const struct program *program;
  int at, start, end;
  int is_grouped;
};

/*
** Returns the address before `at` at which the program sets the aggregate's accumulator to NULL, or
** -1 if there is none. With GROUP BY, there is none.
*/
static int start_of(const struct program *program, int at) {
  int accumulator = program->list[at].p3;
  for (int i = at - 1; i >= 0; i--) {
    const struct instruction *here = &program->list[i];
    if (here->role == NULLS && here->p2 <= accumulator &&
        (here->p2 == accumulator || here->p3 >= accumulator))
      return i;
  }
  return -1;
}

static int end_of(const struct program *program, int at) {
  int i = at;
  while (i < program->count &&
         (program->list[i].role != FINISHES || program->list[i].p1 != program->list[at].p3))
    i++;
  return i;
}

static int opens(const struct program *program, int cursor, enum role role) {
  for (int i = 0; i < program->count; i++)
    if (program->list[i].role == role && program->list[i].p1 == cursor) return 1;
  return 0;
}

/*
** Returns whether a cursor moves while the call reads its rows. If the call is in a subquery, the
** cursors of the query around it do not move.
*/
static int moves(const struct call *call, int cursor) {
  for (int i = call->start; i < call->end; i++) {
    const struct instruction *here = &call->program->list[i];
    if (((here->role == STANDS || here->role == STEPS) && here->p1 == cursor) ||
        (here->role == DEFERS && here->p3 == cursor))
      return 1;
  }
  return 0;
}

static int is_deferred(const struct program *program, int table, int index) {
  for (int i = 0; i < program->count; i++) {
    const struct instruction *here = &program->list[i];
    if (here->role == DEFERS && here->p1 == index && here->p3 == table) return 1;
  }
  return 0;
}

/*
** Returns whether the innermost loop around the call runs over this cursor, or over an index of the
** cursor's table.
*/
static int is_innermost(const struct call *call, int cursor) {
  const struct program *program = call->program;
  int i = call->at;
  while (i < program->count && (program->list[i].role != STEPS || program->list[i].p2 > call->at))
    i++;
  if (i == program->count) return 0;
  int stepped = program->list[i].p1;
  return stepped == cursor || is_deferred(program, cursor, stepped);
}

static int runs_once(const struct program *program, int at) {
  for (int i = 0; i < at; i++)
    if (program->list[i].role == ONCE && program->list[i].p2 > at) return 1;
  return 0;
}

static int writes(const struct instruction *here, int cell) {
  switch (here->role) {
  case COLUMN:
  case BINARY:
  case CALL: return here->p3 == cell;
  case COPIES: return here->p2 <= cell && cell <= here->p2 + here->p3;
  case ROWID:
  case COPY:
  case TEXT:
  case CONSTANT: return here->p2 == cell;
  case NULLS: return here->p2 == cell || (here->p2 < cell && cell <= here->p3);
  default: return 0;
  }
}

/*
** Among the instructions before `at`, returns the last one that writes the register `cell`. If
** there is none, returns the instruction that sets the register to a text at the end of the
** program, where SQLite sets constants once. If there is no such instruction either, returns -1.
*/
static int writer_of(const struct program *program, int cell, int at) {
  int from = at;
  while (--from >= 0 && !writes(&program->list[from], cell)) {
  }
  if (from >= 0) return from;
  for (from = program->count - 1; from > at && !writes(&program->list[from], cell);) from--;
  return from > at && program->list[from].role == TEXT ? from : -1;
}

/* Returns whether a column is a term of the GROUP BY. The program compares such a column. */
static int is_term(const struct call *call, const struct instruction *column) {
  const struct program *program = call->program;
  int i = call->at;
  while (i >= 0 && program->list[i].role != COMPARES) i--;
  if (i < 0) return 1; /* without a comparison, the column may be a term */
  const struct instruction *compares = &program->list[i];
  if (opens(program, column->p1, SORTED)) return column->p2 < compares->p3;
  for (int j = 0; j < program->count; j++) {
    const struct instruction *here = &program->list[j];
    int is_compared = (here->p3 >= compares->p1 && here->p3 < compares->p1 + compares->p3) ||
                      (here->p3 >= compares->p2 && here->p3 < compares->p2 + compares->p3);
    if (here->role == COLUMN && is_compared && here->p1 == column->p1 && here->p2 == column->p2)
      return 1;
  }
  return 0;
}

static int is_of_row(const struct call *call, const struct instruction *column) {
  if (!call->is_grouped) return opens(call->program, column->p1, TABLE) && moves(call, column->p1);
  if (column->role != COLUMN || is_term(call, column)) return 0;
  return opens(call->program, column->p1, SORTED) ||
         (opens(call->program, column->p1, TABLE) && is_innermost(call, column->p1));
}

/*
** Returns whether several instructions write a register and the program has a subquery that makes
** rows one by one, as in UNION ALL. In this case, the value of the register need not come from the
** last of these instructions.
*/
static int is_ambiguous(const struct program *program, int cell) {
  int writers = 0, yields = 0;
  for (int i = 0; i < program->count; i++) {
    writers += writes(&program->list[i], cell);
    yields += program->list[i].role == YIELDS;
  }
  return writers > 1 && yields > 0;
}

enum { FROM_ROW = 1, FROM_TEXT = 2 };

#define MOST_DEPTH 16

/*
** Returns the source of a register's value at the instruction `at`, or 0 if no source is certain.
*/
static int source_of(const struct call *call, int cell, int at, int depth) {
  int from = writer_of(call->program, cell, at), source = 0;
  if (from < 0 || depth > MOST_DEPTH) return 0;
  const struct instruction *here = &call->program->list[from];
  if (here->role == TEXT) return is_ambiguous(call->program, cell) ? 0 : FROM_TEXT;
  if (runs_once(call->program, from)) return 0;
  switch (here->role) {
  case COLUMN:
  case ROWID: return is_of_row(call, here) ? FROM_ROW : 0;
  case COPY: return source_of(call, here->p1, from, depth + 1);
  case COPIES: return source_of(call, here->p1 + cell - here->p2, from, depth + 1);
  case BINARY:
    source =
        source_of(call, here->p1, from, depth + 1) | source_of(call, here->p2, from, depth + 1);
    break;
  case CALL:
    for (int i = 0; i < here->calls; i++) source |= source_of(call, here->p2 + i, from, depth + 1);
    break;
  default: return 0;
  }
  return call->is_grouped ? 0 : source & FROM_ROW;
}

static void add_call(const struct program *program, int at, int arguments, unsigned free_in_groups,
                     struct sources *sources) {
  struct call call = {program, at, start_of(program, at), end_of(program, at), 0};
  call.is_grouped = call.start < 0;
  for (int i = 0; i < arguments; i++) {
    int source = source_of(&call, program->list[at].p2 + i, at, 0);
    if (source == FROM_TEXT) sources->texts |= 1u << i;
    if (source == FROM_ROW && !(call.is_grouped && free_in_groups & 1u << i))
      sources->rows |= 1u << i;
  }
}

struct sources sources_of(sqlite3 *db, const char *function, int arguments,
                          unsigned free_in_groups) {
  struct sources sources = {0, 0};
  char *wanted = sqlite3_mprintf("%s(%d)", function, arguments);
  for (sqlite3_stmt *s = sqlite3_next_stmt(db, 0); s && wanted; s = sqlite3_next_stmt(db, s)) {
    if (!statement_is_executing(s)) continue;
    struct program program = program_of(db, sqlite3_sql(s), wanted);
    for (int i = 0; i < program.count; i++)
      if (program.list[i].role == COLLECTS && program.list[i].is_wanted)
        add_call(&program, i, arguments, free_in_groups, &sources);
    free(program.list);
  }
  sqlite3_free(wanted);
  return sources;
}
