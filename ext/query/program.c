/*
** program.c: see program.h.
** Tests: tests/query/test_loop_proof.py, tests/query/test_ceiling.py,
** tests/query/test_questions_versions.py
*/
#include "query/program.h"

#include <stdlib.h>
#include <string.h>

#include "query/interrupts.h"

SQLITE_EXTENSION_INIT3

/* ---- the instructions ------------------------------------------------------------------------ */

/* What an instruction is to the proofs. */
enum meaning {
  PLAIN,       /* computes p1, p2 or p3 from registers, or jumps */
  CONSTANT,    /* p2 = a constant of the statement, or a bound parameter */
  TEXT,        /* p2 = the constant text p4 */
  NULLS,       /* p2 to p3 = NULL */
  COPIES,      /* p2 to p2 + p3 = p1 to p1 + p3 */
  COPIES_ONE,  /* p2 = p1 */
  CONVERTS,    /* changes p1 to p1 + p2 - 1 */
  TIDIES,      /* converts p1; SQLite adds it to an instruction that reads a column */
  COMPARES,    /* compares p1 and p3 under the collation p4, and jumps to p2 */
  CALLS,       /* p3 = function p4 of p2, p2 + 1, ... */
  COLLECTS,    /* adds p2, p2 + 1, ... to the aggregate p4 */
  FINISHES,    /* finishes the aggregate p4 */
  RETURNS,     /* returns a row to the caller */
  GOES,        /* jumps to p2 */
  BEGINS,      /* begins the transaction; p4 counts how often the schema was read */
  OPENS,       /* opens cursor p1 on the table or index with the root page p2 */
  REWINDS,     /* moves cursor p1 to the first row */
  SEEKS_FROM,  /* moves cursor p1 to the first row with a key of at least p3 */
  SEEKS,       /* moves cursor p1 */
  STEPS,       /* moves cursor p1 to the next row, and jumps to p2 */
  DEFERS,      /* moves cursor p3 to the row of the index cursor p1 */
  USES,        /* uses the position of cursor p1 */
  READS,       /* p3 = column p2 of cursor p1 */
  READS_ROWID, /* p2 = rowid of cursor p1 */
  /* virtual tables, whose modules may do anything; these are never safe */
  V_OPENS,
  V_FILTERS, /* starts a loop over cursor p1 */
  V_STEPS,
  V_READS
};

/*
** The properties of an instruction that raises no error and computes from its registers and the
** current rows alone.
*/
struct operation {
  const char *name;
  enum meaning meaning;
  int jumps;  /* the instruction may jump to p2 */
  int writes; /* the register that is written: 1, 2, 3 for p1, p2, p3; 0 for none */
  int reads;  /* the registers that are read: bits 1, 2, 4 for p1, p2, p3 */
};

/*
** The list leaves out Concat, because its result can be too big. It also leaves out every
** instruction that sorts, counts, remembers values, or opens a cursor on something other than a
** table or an index.
*/
static const struct operation operations[] = {
    {"Init", GOES, 1, 0, 0},         {"Goto", GOES, 1, 0, 0},
    {"Eq", COMPARES, 1, 2, 5},       {"Ne", COMPARES, 1, 2, 5},
    {"Lt", COMPARES, 1, 2, 5},       {"Le", COMPARES, 1, 2, 5},
    {"Gt", COMPARES, 1, 2, 5},       {"Ge", COMPARES, 1, 2, 5},
    {"If", PLAIN, 1, 0, 1},          {"IfNot", PLAIN, 1, 0, 1},
    {"IsNull", PLAIN, 1, 0, 1},      {"NotNull", PLAIN, 1, 0, 1},
    {"IfNullRow", USES, 1, 3, 0},    {"Rewind", REWINDS, 1, 0, 0},
    {"Next", STEPS, 1, 0, 0},        {"Integer", CONSTANT, 0, 2, 0},
    {"Int64", CONSTANT, 0, 2, 0},    {"Real", CONSTANT, 0, 2, 0},
    {"Blob", CONSTANT, 0, 2, 0},     {"String8", TEXT, 0, 2, 0},
    {"Null", NULLS, 0, 2, 0},        {"Variable", CONSTANT, 0, 2, 0},
    {"Copy", COPIES, 0, 2, 1},       {"SCopy", COPIES_ONE, 0, 2, 1},
    {"Affinity", CONVERTS, 0, 1, 1}, {"Cast", PLAIN, 0, 1, 1},
    {"ClrSubtype", PLAIN, 0, 1, 1},  {"RealAffinity", TIDIES, 0, 1, 1},
    {"Add", PLAIN, 0, 3, 3},         {"Subtract", PLAIN, 0, 3, 3},
    {"Multiply", PLAIN, 0, 3, 3},    {"Divide", PLAIN, 0, 3, 3},
    {"Remainder", PLAIN, 0, 3, 3},   {"BitAnd", PLAIN, 0, 3, 3},
    {"BitOr", PLAIN, 0, 3, 3},       {"ShiftLeft", PLAIN, 0, 3, 3},
    {"ShiftRight", PLAIN, 0, 3, 3},  {"And", PLAIN, 0, 3, 3},
    {"Or", PLAIN, 0, 3, 3},          {"BitNot", PLAIN, 0, 2, 1},
    {"Not", PLAIN, 0, 2, 1},         {"IsTrue", PLAIN, 0, 2, 1},
    {"ZeroOrNull", PLAIN, 0, 2, 5},  {"Column", READS, 0, 3, 0},
    {"Rowid", READS_ROWID, 0, 2, 0}, {"Function", CALLS, 0, 3, 2},
    {"PureFunc", CALLS, 0, 3, 2},    {"AggStep", COLLECTS, 0, 3, 2},
    {"AggFinal", FINISHES, 0, 1, 0}, {"ResultRow", RETURNS, 0, 0, 1},
    {"OpenRead", OPENS, 0, 0, 0},    {"Transaction", BEGINS, 0, 0, 0},
    {"TableLock", PLAIN, 0, 0, 0},   {"Halt", PLAIN, 0, 0, 0},
    {"Noop", PLAIN, 0, 0, 0},        {"SeekGE", SEEKS_FROM, 1, 0, 4},
    {"SeekGT", SEEKS, 1, 0, 4},      {"SeekLE", SEEKS, 1, 0, 4},
    {"SeekLT", SEEKS, 1, 0, 4},      {"SeekRowid", SEEKS, 1, 0, 4},
    {"NotExists", SEEKS, 1, 0, 4},   {"IdxGE", USES, 1, 0, 4},
    {"IdxGT", USES, 1, 0, 4},        {"IdxLE", USES, 1, 0, 4},
    {"IdxLT", USES, 1, 0, 4},        {"DeferredSeek", DEFERS, 0, 0, 0},
    {"Explain", PLAIN, 0, 0, 0},     {"VOpen", V_OPENS, 0, 0, 0},
    {"VFilter", V_FILTERS, 1, 0, 4}, {"VNext", V_STEPS, 1, 0, 0},
    {"VColumn", V_READS, 0, 3, 0},   {"IfEmpty", PLAIN, 1, 0, 0}};

/* Returns whether an instruction is known and has this meaning. */
static int is(const struct program_instruction *here, enum meaning meaning) {
  return here->operation && here->operation->meaning == meaning;
}

static const struct operation *operation_of(const char *name) {
  for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
    if (strcmp(operations[i].name, name) == 0) return &operations[i];
  return 0;
}

int program_is_known(void) {
  return sqlite3_libversion_number() / 1000 <= NEWEST_SQLITE;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Adds a row of EXPLAIN: address, name, p1, p2, p3, p4, p5. Returns 0 when out of memory. */
static int add_instruction(struct program *program, sqlite3_stmt *row) {
  const char *name = (const char *)sqlite3_column_text(row, 1);
  const char *p4 = (const char *)sqlite3_column_text(row, 5);
  struct program_instruction *grown =
      sqlite3_realloc64(program->list, sizeof *grown * (sqlite3_uint64)(program->count + 1));
  if (!grown || !name) return 0;
  program->list = grown;
  struct program_instruction *here = &grown[program->count++];
  *here = (struct program_instruction){.operation = operation_of(name),
                                       .p1 = sqlite3_column_int(row, 2),
                                       .p2 = sqlite3_column_int(row, 3),
                                       .p3 = sqlite3_column_int(row, 4),
                                       .p5 = sqlite3_column_int(row, 6)};
  sqlite3_snprintf(sizeof here->name, here->name, "%s", name);
  if (p4) here->p4 = sqlite3_mprintf("%s", p4);
  return !p4 || here->p4;
}

void program_read(struct program *program, sqlite3 *db, const char *sql) {
  sqlite3_stmt *row = 0;
  *program = (struct program){0, 0};
  char *text = sql ? sqlite3_mprintf("EXPLAIN %s", sql) : 0;
  int rc = text ? sqlite3_prepare_v2(db, text, -1, &row, 0) : SQLITE_NOMEM;
  int whole = rc == SQLITE_OK && sqlite3_column_count(row) >= 7;
  while (whole && (rc = sqlite3_step(row)) == SQLITE_ROW) whole = add_instruction(program, row);
  sqlite3_finalize(row); /* its error is that of the last call */
  sqlite3_free(text);
  if (whole && rc == SQLITE_DONE) return;
  interrupt_pass_on(db);
  program_clear(program);
}

void program_clear(struct program *program) {
  for (int i = 0; i < program->count; i++) sqlite3_free(program->list[i].p4);
  sqlite3_free(program->list);
  *program = (struct program){0, 0};
}

/* ---- registers ------------------------------------------------------------------------------- */

static int is_in(int place, int first, int count) {
  return place >= first && place < first + count;
}

/*
** Returns whether a comparison stores its result in register p2 and does not jump. Comparisons of
** SQLite before 3.36 do so if they have this flag.
*/
static int stores_result(const struct program_instruction *here) {
  return is(here, COMPARES) && here->p5 & 0x20;
}

/* Returns whether an instruction writes a register. An unknown one may write any register. */
static int writes(const struct program_instruction *here, int place) {
  if (!here->operation) return 1;
  int registers[4] = {-1, here->p1, here->p2, here->p3};
  switch (here->operation->meaning) {
  case NULLS: return is_in(place, here->p2, here->p3 > here->p2 ? here->p3 - here->p2 + 1 : 1);
  case COPIES: return is_in(place, here->p2, here->p3 + 1);
  case CONVERTS: return is_in(place, here->p1, here->p2);
  case COMPARES: return stores_result(here) && here->p2 == place;
  default: return registers[here->operation->writes] == place;
  }
}

/*
** Returns the number of arguments of a VFilter. The arguments are in the registers after p3 + 1.
** The instruction before the VFilter normally puts their number into register p3 + 1. If it does
** not, returns a large number.
*/
static int arguments_of(const struct program_instruction *filter) {
  const struct program_instruction *before = filter - 1; /* Init is the first instruction */
  int is_count = strcmp(before->name, "Integer") == 0 && before->p2 == filter->p3 + 1;
  return is_count ? before->p1 : 1000;
}

/*
** Returns how many consecutive registers an instruction reads, starting at register p1, p2 or p3.
** `which` is 1, 2 or 4 for p1, p2 or p3.
*/
static int reads_of(const struct program_instruction *here, int which) {
  const char *arity = here->p4 ? strchr(here->p4, '(') : 0;
  if (!(here->operation->reads & which)) return 0;
  switch (here->operation->meaning) {
  case RETURNS:
  case CONVERTS: return here->p2;
  case COPIES: return here->p3 + 1;
  case COLLECTS: return here->p5;
  case CALLS: return arity ? (int)strtol(arity + 1, 0, 10) : 127;
  case V_FILTERS: return 2 + arguments_of(here);
  case SEEKS:
  case SEEKS_FROM:
  case USES: /* The p4 of an instruction that seeks in an index is the number of its registers. */
    return here->p4 && strtol(here->p4, 0, 10) > 1 ? (int)strtol(here->p4, 0, 10) : 1;
  default: return 1;
  }
}

/* Returns whether an instruction reads a register. */
static int reads(const struct program_instruction *here, int place) {
  int registers[3] = {here->p1, here->p2, here->p3};
  for (int i = 0; i < 3; i++)
    if (is_in(place, registers[i], reads_of(here, 1 << i))) return 1;
  return 0;
}

/*
** Returns the first instruction from `first` to `last` that writes a register, or `last` + 1 if
** there is none.
*/
static int first_writer(const struct program *program, int place, int first, int last) {
  while (first <= last && !writes(&program->list[first], place)) first++;
  return first;
}

/*
** Returns whether a loop, the instructions `first` to `last`, keeps no value from one row to the
** next. This holds if the loop never reads a register before it writes this register. Registers
** that the loop never writes and the accumulators of aggregates are exempt.
*/
static int keeps_nothing(const struct program *program, int first, int last) {
  int most = 0;
  for (int i = first; i <= last; i++) {
    const struct program_instruction *here = &program->list[i];
    if (!here->operation) return 0;
    int registers[3] = {here->p1, here->p2, here->p3};
    for (int j = 0; j < 3; j++) { /* p1, p2 or p3 may also be a constant, address or cursor */
      int is_register = here->operation->reads & 1 << j || here->operation->writes == j + 1;
      if (is_register && 2 * registers[j] + 128 > most) most = 2 * registers[j] + 128;
    }
  }
  if (most > 10000) return 0;
  for (int place = 1; place <= most; place++) {
    int writer = first_writer(program, place, first, last);
    for (int i = first; i <= writer && writer <= last; i++)
      if (reads(&program->list[i], place)) return 0;
  }
  return 1;
}

/*
** Returns the address of the instruction that gave a register its value at address `at`: the last
** instruction before `at` that writes the register. Every way to `at` must lead through this
** instruction and the instructions after it, so no other instruction may jump between the two.
** Returns -1 if one does.
*/
static int writer_of(const struct program *program, int place, int at) {
  int from = at - 1;
  while (from >= 0 && !writes(&program->list[from], place)) from--;
  for (int i = 0; i < program->count && from >= 0; i++) {
    const struct program_instruction *here = &program->list[i];
    int jumps = here->operation->jumps && !stores_result(here);
    int is_between = jumps && here->p2 > from && here->p2 <= at;
    if (is_between && (i < from || i > at)) return -1;
  }
  return from;
}

/* ---- single instructions --------------------------------------------------------------------- */

/* Returns whether an instruction is known to raise no error. */
static int is_safe(const struct program_instruction *here,
                   const struct allowed_functions *functions) {
  char name[32];
  if (!here->operation || here->operation->meaning >= V_OPENS) return 0;
  if (!is(here, CALLS)) return 1;
  size_t length = here->p4 ? strcspn(here->p4, "(") : 0;
  if (!length || length >= sizeof name) return 0;
  memcpy(name, here->p4, length);
  name[length] = 0;
  return function_is_safe(functions, name);
}

/* Returns the first instruction that may raise an error, or null. */
static const struct program_instruction *
program_unsafe(const struct program *program, const struct allowed_functions *functions) {
  for (int i = 0; i < program->count; i++)
    if (!is_safe(&program->list[i], functions)) return &program->list[i];
  return 0;
}

/* Returns whether an instruction calls a function. */
static int calls(const struct program_instruction *here, const char *function) {
  size_t length = strlen(function);
  return is(here, CALLS) && here->p4 && sqlite3_strnicmp(here->p4, function, (int)length) == 0 &&
         here->p4[length] == '(';
}

/*
** Returns whether the instruction at address `i` may execute the instruction at address `at` again:
** it ends a pass of a loop, or calls a subroutine that begins before `at`. The Goto to address 1
** leads from the constants at the end of the program to its start.
*/
static int repeats(const struct program *program, int i, int at) {
  static const char *const loops[] = {"Goto", "Next", "Prev", "VNext", "SorterNext"};
  const struct program_instruction *here = &program->list[i];
  if (here->p2 > at || (is(here, GOES) && here->p2 == 1)) return 0;
  int ends_pass = 0;
  for (size_t j = 0; j < sizeof loops / sizeof *loops && at < i; j++)
    ends_pass |= strcmp(here->name, loops[j]) == 0;
  return ends_pass || strcmp(here->name, "Gosub") == 0;
}

int program_calls_once(const struct program *program, const char *function) {
  int at = -1, count = 0, once = 1;
  for (int i = 0; i < program->count; i++) {
    if (!calls(&program->list[i], function)) continue;
    at = i;
    count++;
  }
  for (int i = 0; i < program->count && once; i++)
    once = !repeats(program, i, at) && (i < at || strncmp(program->list[i].name, "Agg", 3) != 0);
  return count == 1 && once;
}

/* Unknown instructions such as AggInverse also call aggregates. */
int program_calls(const struct program *program, const char *prefix) {
  int length = (int)strlen(prefix);
  for (int i = 0; i < program->count; i++) {
    const struct program_instruction *here = &program->list[i];
    if (strncmp(here->name, "Agg", 3) == 0 && here->p4 &&
        sqlite3_strnicmp(here->p4, prefix, length) == 0)
      return 1;
  }
  return 0;
}

int program_call(struct program_call *call, const struct program *program, int from) {
  int i = from;
  while (i < program->count && !is(&program->list[i], COLLECTS)) i++;
  if (i >= program->count) return 0;
  const struct program_instruction *here = &program->list[i];
  *call = (struct program_call){i, here->p4 ? here->p4 : "", here->p2, here->p5};
  return 1;
}

const char *program_text(const struct program *program, int place) {
  for (int i = 0; i < program->count; i++)
    if (is(&program->list[i], TEXT) && program->list[i].p2 == place) return program->list[i].p4;
  return 0;
}

/* ---- cursors --------------------------------------------------------------------------------- */

/* What an instruction does with its cursor p1: nothing, move it to a row, or use its position. */
enum touch { TOUCHES_NOTHING, POSITIONS, TOUCHES };

static enum touch touch_of(const struct program_instruction *here) {
  switch (here->operation->meaning) {
  case REWINDS:
  case SEEKS:
  case SEEKS_FROM: return POSITIONS;
  case STEPS:
  case READS:
  case READS_ROWID:
  case USES:
  case DEFERS: return TOUCHES;
  default: return TOUCHES_NOTHING;
  }
}

/* Returns what an instruction does with a cursor. DeferredSeek also positions cursor p3. */
static enum touch touches(const struct program_instruction *here, int cursor) {
  if (is(here, DEFERS) && here->p3 == cursor) return POSITIONS;
  return here->p1 == cursor ? touch_of(here) : TOUCHES_NOTHING;
}

/*
** Returns the name of the public table with this root page, or with an index that has this root
** page. The name belongs to the policy. Returns null if there is no such table.
*/
static const char *public_table(sqlite3 *db, const struct ledger_policy *policy, int root) {
  sqlite3_stmt *row = 0;
  char *sql = sqlite3_mprintf("SELECT tbl_name FROM main.sqlite_master WHERE rootpage = %d", root);
  const char *found = 0;
  if (sql && sqlite3_prepare_v2(db, sql, -1, &row, 0) == SQLITE_OK &&
      sqlite3_step(row) == SQLITE_ROW && sqlite3_column_type(row, 0) == SQLITE_TEXT) {
    const char *name = (const char *)sqlite3_column_text(row, 0);
    const struct ledger_declaration *declaration = ledger_policy_find(policy, name);
    if (declaration && declaration->role == POLICY_PUBLIC) found = declaration->table;
  }
  /* After an error, the table is not known to be public. */
  if (sqlite3_finalize(row) != SQLITE_OK || !row) interrupt_pass_on(db);
  sqlite3_free(sql);
  return found;
}

/*
** Returns whether an index compares with the collation BINARY only. EXPLAIN shows the collations of
** an index as in k(2,B,NOCASE). A table has no such description.
*/
static int has_binary_keys(const struct program_instruction *open) {
  return !open->p4 || strncmp(open->p4, "k(", 2) != 0 ||
         strspn(open->p4 + 2, "0123456789,-B)") == strlen(open->p4 + 2);
}

/*
** Returns whether a public cursor keeps no position from one row of the loop to the next: the first
** instruction of the loop that touches the cursor positions it, and no jump passes over this
** instruction to a later use.
*/
static int keeps_no_position(const struct program *program, const struct table_loop *loop,
                             int cursor) {
  int first = loop->start + 1;
  while (first < loop->next && !touches(&program->list[first], cursor)) first++;
  if (first < loop->next && touches(&program->list[first], cursor) != POSITIONS) return 0;
  int last = loop->next;
  while (last > first && !touches(&program->list[last], cursor)) last--;
  for (int i = loop->start + 1; i < first; i++) {
    const struct program_instruction *here = &program->list[i];
    if (here->operation->jumps && here->p2 > first && here->p2 <= last) return 0;
  }
  return 1;
}

/*
** Returns whether the loop keeps no position of a public cursor, and nothing moves the cursor of
** its own table except the start of the loop and Next. find_loop() has checked that all other
** tables are public, if they are tables of main. Among safe instructions, only OpenRead opens a
** cursor.
*/
static int cursors_are_sound(const struct program *program, const struct table_loop *loop) {
  int own = program->list[loop->open].p1;
  for (int i = 0; i < program->count; i++) {
    const struct program_instruction *here = &program->list[i];
    int is_inside = i > loop->start && i < loop->next;
    if (is(here, OPENS) && (here->p3 != 0 || i > loop->start)) return 0;
    if (is(here, OPENS) && i != loop->open &&
        (here->p1 == own || !has_binary_keys(here) || !keeps_no_position(program, loop, here->p1)))
      return 0;
    if (i == loop->start || i == loop->next || touch_of(here) == TOUCHES_NOTHING) continue;
    if (!is_inside || (is(here, DEFERS) && here->p3 == own)) return 0;
    if (here->p1 == own && !is(here, READS) && !is(here, READS_ROWID) &&
        strcmp(here->name, "IfNullRow") != 0)
      return 0;
  }
  return 1;
}

/* ---- one loop over one table ----------------------------------------------------------------- */

/*
** Returns the address of the only instruction with this meaning, or -1 if no or several
** instructions have it.
*/
static int only(const struct program *program, enum meaning meaning) {
  int found = -1;
  for (int i = 0; i < program->count; i++) {
    if (!is(&program->list[i], meaning)) continue;
    if (found >= 0) return -1;
    found = i;
  }
  return found;
}

/*
** Finds the loop. With a policy, the loop's table is the only opened table that is not public, and
** loops over public tables may be inside.
*/
static int find_loop(struct table_loop *loop, const struct program *program, enum meaning start,
                     sqlite3 *db, const struct ledger_policy *policy) {
  *loop = (struct table_loop){-1, -1, -1};
  if (!policy) {
    *loop = (struct table_loop){only(program, OPENS), only(program, start), only(program, STEPS)};
    return loop->open >= 0;
  }
  for (int i = 0; i < program->count; i++) {
    const struct program_instruction *here = &program->list[i];
    if (!is(here, OPENS) || public_table(db, policy, here->p2)) continue;
    if (loop->open >= 0) return 0;
    loop->open = i;
  }
  for (int i = 0; loop->open >= 0 && i < program->count; i++) {
    const struct program_instruction *here = &program->list[i];
    if (here->p1 != program->list[loop->open].p1) continue;
    if (is(here, start) && loop->start < 0) loop->start = i;
    if (is(here, STEPS)) loop->next = i;
  }
  return loop->open >= 0;
}

/*
** Returns whether an instruction jumps forward, or not at all. SQLite sets the constants of a
** statement at the end of the program. The last instruction, a Goto, then jumps to instruction 1.
*/
static int goes_forward(const struct program *program, int at) {
  const struct program_instruction *here = &program->list[at];
  int is_start = is(here, GOES) && here->p2 == 1 && at == program->count - 1;
  return !here->operation->jumps || here->p2 > at || is_start || stores_result(here);
}

/*
** Returns whether the program jumps backward only in the Next of the loop and of loops inside. In
** such a program, only the loops run more than once.
*/
static int only_loops_repeat(const struct program *program, const struct table_loop *loop) {
  for (int i = 0; i < program->count; i++) {
    const struct program_instruction *here = &program->list[i];
    int is_loop = is(here, STEPS) && i <= loop->next && here->p2 > loop->start;
    if (!goes_forward(program, i) && !is_loop) return 0;
  }
  return 1;
}

/*
** Returns whether an instruction leaves the loop over cursor `own` because the rowid exceeds a
** limit that does not change from row to row. No later row has a smaller rowid.
*/
static int ends_range(const struct program *program, int at, int own, int next) {
  const struct program_instruction *here = &program->list[at], *before = here - 1;
  int is_above = strcmp(here->name, "Gt") == 0 || strcmp(here->name, "Ge") == 0;
  return is_above && is(before, READS_ROWID) && before->p1 == own && before->p2 == here->p3 &&
         first_writer(program, here->p1, program->list[next].p2, next) > next;
}

/*
** Returns whether a loop ends after its last row only: nothing inside it jumps behind its end, or
** ends the program. SQLite compiles EXISTS to a loop that ends after one row. (A Rewind jumps if a
** public table has no rows, which is so for each row of the loop.) `own` is the loop's cursor,
** whose rows come in the order of rowids, or -1.
*/
static int takes_all_rows(const struct program *program, int start, int next, int own) {
  for (int i = start + 1; i < next; i++) {
    const struct program_instruction *here = &program->list[i];
    int leaves = here->operation && here->operation->jumps && here->p2 > next;
    if (strcmp(here->name, "Halt") == 0) return 0;
    if (!leaves || stores_result(here) || is(here, REWINDS)) continue;
    if (own < 0 || !ends_range(program, i, own, next)) return 0;
  }
  return 1;
}

int table_loop_find(struct table_loop *loop, const struct program *program, enum loop_rows rows,
                    const struct allowed_functions *functions, is_aggregate *is_known, sqlite3 *db,
                    const struct ledger_policy *policy) {
  if (!program_is_known() || program_unsafe(program, functions)) return 0;
  if (!find_loop(loop, program, rows == LOOP_WHOLE ? REWINDS : SEEKS_FROM, db, policy) ||
      loop->start < loop->open || loop->next < loop->start)
    return 0;
  struct program_call call;
  for (int i = 0; program_call(&call, program, i); i = call.at + 1)
    if (call.at < loop->start || call.at > loop->next || !is_known(&call)) return 0;
  for (int i = 0; i < program->count; i++) {
    const struct program_instruction *here = &program->list[i];
    if (is(here, RETURNS) && i > loop->start && i < loop->next) return 0;
    /*
    ** The proof accepts only the collation BINARY. The host may have replaced any other collation.
    */
    if (is(here, COMPARES) && here->p4 && *here->p4 && strncmp(here->p4, "BINARY-", 7) != 0)
      return 0;
  }
  int cursor = program->list[loop->open].p1;
  return program->list[loop->start].p1 == cursor && program->list[loop->next].p1 == cursor &&
         only_loops_repeat(program, loop) && cursors_are_sound(program, loop) &&
         takes_all_rows(program, loop->start, loop->next, cursor) &&
         keeps_nothing(program, loop->start + 1, loop->next);
}

int table_loop_root(const struct table_loop *loop, const struct program *program) {
  return program->list[loop->open].p2;
}

/* Returns the public table that an instruction opens, or null. */
static const char *opened_public(const struct program *program, int at, sqlite3 *db,
                                 const struct ledger_policy *policy) {
  return is(&program->list[at], OPENS) ? public_table(db, policy, program->list[at].p2) : 0;
}

void table_loop_publics(const struct program *program, sqlite3 *db,
                        const struct ledger_policy *policy,
                        void (*take)(void *context, const char *table), void *context) {
  for (int i = 0; i < program->count; i++) {
    const char *table = opened_public(program, i, db, policy);
    int is_new = table != 0;
    for (int j = 0; j < i && is_new; j++) is_new = opened_public(program, j, db, policy) != table;
    if (is_new) take(context, table);
  }
}

/* ---- why there is no such loop --------------------------------------------------------------- */

/*
** What people call the part of a SELECT that SQLite compiles to an instruction which the proofs do
** not know. An error names the first part of the list that the program has.
*/
static const struct {
  const char *instruction, *words;
} parts[] = {{"AggInverse", "a window"},
             {"AggValue", "a window"},
             {"SorterOpen", "GROUP BY, ORDER BY or DISTINCT"},
             {"Compare", "GROUP BY, ORDER BY or DISTINCT"},
             {"InitCoroutine", "a subquery"},
             {"OpenAutoindex", "a join that has no index"},
             {"RowSetTest", "OR over several indices"},
             {"OpenEphemeral", "IN, DISTINCT or a subquery"},
             {"BeginSubrtn", "a subquery"},
             {"Concat", "||"},
             {"OffsetLimit", "OFFSET"},
             {"DecrJumpZero", "LIMIT"},
             {"IfNotZero", "LIMIT"},
             {"Count", "count(*)"},
             {"IfPos", "a LEFT JOIN"},
             {"VOpen", "a virtual table"},
             {"Once", "a subquery"}};

/* Returns what people call the first part of a program that may do anything, or null. */
static char *unsafe_part(const struct program *program, const struct allowed_functions *functions) {
  for (int i = 0; i < program->count; i++) {
    const struct program_instruction *here = &program->list[i];
    if (is(here, CALLS) && here->p4 && !is_safe(here, functions))
      return sqlite3_mprintf("the function %.*s()", (int)strcspn(here->p4, "("), here->p4);
  }
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    for (int j = 0; j < program->count; j++)
      if (strcmp(program->list[j].name, parts[i].instruction) == 0)
        return sqlite3_mprintf("%s", parts[i].words);
  const struct program_instruction *here = program_unsafe(program, functions);
  return here ? sqlite3_mprintf("SQLite's instruction %s", here->name) : 0;
}

/* What a program opens: the entry of the schema. */
struct opened {
  char *name, *table;
  int is_index, is_protected;
};

static void find_opened(struct opened *opened, sqlite3 *db, const struct ledger_policy *policy,
                        int root) {
  sqlite3_stmt *row = 0;
  *opened = (struct opened){0};
  char *sql = sqlite3_mprintf("SELECT name, tbl_name, type = 'index' FROM main.sqlite_master"
                              " WHERE rootpage = %d",
                              root);
  if (sql && sqlite3_prepare_v2(db, sql, -1, &row, 0) == SQLITE_OK &&
      sqlite3_step(row) == SQLITE_ROW && sqlite3_column_text(row, 1)) {
    opened->name = sqlite3_mprintf("%s", sqlite3_column_text(row, 0));
    opened->table = sqlite3_mprintf("%s", sqlite3_column_text(row, 1));
    opened->is_index = sqlite3_column_int(row, 2);
    const struct ledger_declaration *declaration =
        opened->table ? ledger_policy_find(policy, opened->table) : 0;
    opened->is_protected = declaration && declaration->role == POLICY_PROTECTED;
  }
  sqlite3_finalize(row); /* after an error, the error of the proof has fewer words */
  sqlite3_free(sql);
}

static void opened_clear(struct opened *opened) {
  sqlite3_free(opened->name);
  sqlite3_free(opened->table);
}

/*
** Returns what people call the tables, if the program opens something else than one protected table
** and public tables. If there is something to write instead, sets *instead.
*/
static char *opened_part(const struct program *program, sqlite3 *db,
                         const struct ledger_policy *policy, char **instead) {
  struct opened first = {0}, here;
  char *part = 0;
  for (int i = 0; i < program->count && !part; i++) {
    const struct program_instruction *open = &program->list[i];
    if (!is(open, OPENS)) continue;
    here = (struct opened){0};
    if (open->p3) {
      part = sqlite3_mprintf("a table of another database");
    } else if (!has_binary_keys(open)) {
      part = sqlite3_mprintf("an index under another collation");
    } else if (!public_table(db, policy, open->p2)) {
      find_opened(&here, db, policy, open->p2);
    }
    if (here.name && here.is_index && here.is_protected) {
      part = sqlite3_mprintf("the index '%s'", here.name);
      *instead = sqlite3_mprintf("write FROM \"%w\" NOT INDEXED, or ", here.table);
    } else if (here.name && !here.is_protected) {
      part = sqlite3_mprintf("the table '%s', which is not declared", here.table);
    } else if (here.name && first.name) {
      part = sqlite3_mprintf("a join of the tables '%s' and '%s'", first.table, here.table);
    }
    if (first.name || part) {
      opened_clear(&here);
    } else {
      first = here;
    }
  }
  opened_clear(&first);
  return part;
}

/* Returns what people call an instruction that is safe, but not in such a loop, or null. */
static char *other_part(const struct program *program, char **instead) {
  for (int i = 0; i < program->count; i++) {
    const struct program_instruction *here = &program->list[i];
    if (is(here, COMPARES) && here->p4 && *here->p4 && strncmp(here->p4, "BINARY-", 7) != 0)
      return sqlite3_mprintf("a comparison under %.*s", (int)strcspn(here->p4, "-"), here->p4);
  }
  for (int i = 0; i < program->count; i++) {
    if (!is(&program->list[i], SEEKS) && !is(&program->list[i], SEEKS_FROM)) continue;
    *instead = sqlite3_mprintf("write +column in the condition, or ");
    return sqlite3_mprintf("a search for single rows");
  }
  return 0;
}

char *table_loop_obstacle(const struct program *program, const struct allowed_functions *functions,
                          is_aggregate *is_known, sqlite3 *db, const struct ledger_policy *policy,
                          char **instead) {
  struct program_call call;
  char *part = unsafe_part(program, functions);
  for (int i = 0; !part && program_call(&call, program, i); i = call.at + 1)
    if (!is_known(&call))
      part = sqlite3_mprintf("the aggregate %.*s()", (int)strcspn(call.name, "("), call.name);
  if (!part) part = opened_part(program, db, policy, instead);
  return part ? part : other_part(program, instead);
}

/* ---- values in the loop ---------------------------------------------------------------------- */

int table_loop_control(struct program_instruction *found, sqlite3 *db,
                       const struct table_facts *facts, const char *column) {
  struct program program;
  char *sql = sqlite3_mprintf("SELECT \"%w\" FROM main.\"%w\" NOT INDEXED", column, facts->name);
  program_read(&program, db, sql);
  sqlite3_free(sql);
  int open = only(&program, OPENS), read = only(&program, READS);
  if (read < 0) read = only(&program, READS_ROWID);
  int is_plain =
      open >= 0 && read >= 0 && program.list[open].p3 == 0 && program.list[open].p2 == facts->root;
  if (is_plain) *found = program.list[read];
  found->p4 = 0; /* the default value, which belongs to the program */
  program_clear(&program);
  return is_plain;
}

/* Returns whether an instruction reads the column that `control` reads, from the loop's table. */
static int reads_as(const struct table_loop *loop, const struct program *program, int at,
                    const struct program_instruction *control) {
  const struct program_instruction *here = &program->list[at];
  return here->operation == control->operation &&
         (!is(control, READS) || here->p2 == control->p2) &&
         here->p1 == program->list[loop->open].p1;
}

/* Follows copies, and conversions that also occur in the control query, back to their source. */
int table_loop_holds(const struct table_loop *loop, const struct program *program, int place,
                     int at, const struct program_instruction *control) {
  int from = writer_of(program, place, at);
  if (from < 0) return 0;
  const struct program_instruction *writer = &program->list[from];
  if (is(writer, TIDIES)) return table_loop_holds(loop, program, place, from, control);
  if (is(writer, COPIES_ONE)) return table_loop_holds(loop, program, writer->p1, from, control);
  if (is(writer, COPIES))
    return table_loop_holds(loop, program, writer->p1 + place - writer->p2, from, control);
  return from > loop->start && reads_as(loop, program, from, control);
}

/*
** A register that the loop does not write keeps its value. A register that the loop writes has the
** same value in every pass if one instruction certainly writes it and computes only from registers
** that have the same value in every pass. The functions of a program without unsafe instructions
** depend on their arguments alone.
*/
int table_loop_fixes(const struct table_loop *loop, const struct program *program, int place,
                     int at) {
  if (first_writer(program, place, loop->start + 1, loop->next) > loop->next) return 1;
  int from = writer_of(program, place, at);
  if (from <= loop->start) return 0;
  const struct program_instruction *here = &program->list[from];
  switch (here->operation->meaning) {
  case CONSTANT:
  case TEXT:
  case NULLS: return 1;
  case COPIES: return table_loop_fixes(loop, program, here->p1 + place - here->p2, from);
  case PLAIN:
  case COPIES_ONE:
  case CONVERTS:
  case TIDIES:
  case CALLS: break;
  default: return 0;
  }
  int registers[3] = {here->p1, here->p2, here->p3};
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < reads_of(here, 1 << i); j++)
      if (!table_loop_fixes(loop, program, registers[i] + j, from)) return 0;
  return 1;
}
