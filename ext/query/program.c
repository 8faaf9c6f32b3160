/* program.c: see program.h. */
#include "query/program.h"

#include <stdlib.h>
#include <string.h>

SQLITE_EXTENSION_INIT3

/*
** The list contains instructions that are known to be harmless. The last four of them read virtual
** tables, and instruction_is_safe() refuses these four. The list leaves out Concat, because its
** result can be too big. It also leaves out every instruction that sorts, counts, remembers values,
** or opens a cursor on something other than a table or an index.
*/
static const struct operation operations[] = {
    {"Init", 1, 0, 0, 0, 0},      {"Goto", 1, 0, 0, 0, 0},         {"Eq", 1, 2, 5, 0, 0},
    {"Ne", 1, 2, 5, 0, 0},        {"Lt", 1, 2, 5, 0, 0},           {"Le", 1, 2, 5, 0, 0},
    {"Gt", 1, 2, 5, 0, 0},        {"Ge", 1, 2, 5, 0, 0},           {"If", 1, 0, 1, 0, 0},
    {"IfNot", 1, 0, 1, 0, 0},     {"IsNull", 1, 0, 1, 0, 0},       {"NotNull", 1, 0, 1, 0, 0},
    {"IfNullRow", 1, 3, 0, 0, 0}, {"Rewind", 1, 0, 0, 0, 0},       {"Next", 1, 0, 0, 0, 0},
    {"Integer", 0, 2, 0, 0, 0},   {"Int64", 0, 2, 0, 0, 0},        {"Real", 0, 2, 0, 0, 0},
    {"String8", 0, 2, 0, 0, 0},   {"Null", 0, 2, 0, 0, 0},         {"Variable", 0, 2, 0, 0, 0},
    {"Copy", 0, 2, 1, 0, 0},      {"SCopy", 0, 2, 1, 0, 0},        {"Affinity", 0, 1, 1, 0, 0},
    {"Cast", 0, 1, 1, 0, 0},      {"ClrSubtype", 0, 1, 1, 0, 0},   {"RealAffinity", 0, 1, 1, 0, 0},
    {"Add", 0, 3, 3, 0, 0},       {"Subtract", 0, 3, 3, 0, 0},     {"Multiply", 0, 3, 3, 0, 0},
    {"Divide", 0, 3, 3, 0, 0},    {"Remainder", 0, 3, 3, 0, 0},    {"BitAnd", 0, 3, 3, 0, 0},
    {"BitOr", 0, 3, 3, 0, 0},     {"ShiftLeft", 0, 3, 3, 0, 0},    {"ShiftRight", 0, 3, 3, 0, 0},
    {"And", 0, 3, 3, 0, 0},       {"Or", 0, 3, 3, 0, 0},           {"BitNot", 0, 2, 1, 0, 0},
    {"Not", 0, 2, 1, 0, 0},       {"IsTrue", 0, 2, 1, 0, 0},       {"ZeroOrNull", 0, 2, 5, 0, 0},
    {"Column", 0, 3, 0, 0, 0},    {"Rowid", 0, 2, 0, 0, 0},        {"Function", 0, 3, 2, 1, 0},
    {"PureFunc", 0, 3, 2, 1, 0},  {"AggStep", 0, 3, 2, 0, 0},      {"AggFinal", 0, 1, 0, 0, 0},
    {"ResultRow", 0, 0, 1, 0, 0}, {"OpenRead", 0, 0, 0, 0, 0},     {"Transaction", 0, 0, 0, 0, 0},
    {"TableLock", 0, 0, 0, 0, 0}, {"Halt", 0, 0, 0, 0, 0},         {"Noop", 0, 0, 0, 0, 0},
    {"SeekGE", 1, 0, 4, 0, 0},    {"SeekGT", 1, 0, 4, 0, 0},       {"SeekLE", 1, 0, 4, 0, 0},
    {"SeekLT", 1, 0, 4, 0, 0},    {"SeekRowid", 1, 0, 4, 0, 0},    {"NotExists", 1, 0, 4, 0, 0},
    {"IdxGE", 1, 0, 4, 0, 0},     {"IdxGT", 1, 0, 4, 0, 0},        {"IdxLE", 1, 0, 4, 0, 0},
    {"IdxLT", 1, 0, 4, 0, 0},     {"DeferredSeek", 0, 0, 0, 0, 0}, {"Explain", 0, 0, 0, 0, 0},
    {"VOpen", 0, 0, 0, 0, 1},     {"VFilter", 1, 0, 4, 0, 1},      {"VNext", 1, 0, 0, 0, 1},
    {"VColumn", 0, 3, 0, 0, 1},   {"IfEmpty", 1, 0, 0, 0, 0}};

static const struct operation *operation_of(const char *name) {
  for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
    if (strcmp(operations[i].name, name) == 0) return &operations[i];
  return 0;
}

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
  sqlite3_finalize(row); /* after an error, the program becomes empty */
  sqlite3_free(text);
  if (!whole || rc != SQLITE_DONE) program_clear(program);
}

void program_clear(struct program *program) {
  for (int i = 0; i < program->count; i++) sqlite3_free(program->list[i].p4);
  sqlite3_free(program->list);
  *program = (struct program){0, 0};
}

/*
** Returns whether two instructions do the same. The p4 of a Transaction says how often the
** connection has read the schema, and the p4 of a VOpen is the address of a virtual table.
*/
static int is_same(const struct program_instruction *one, const struct program_instruction *other) {
  int same = strcmp(one->name, other->name) == 0 && one->p1 == other->p1 && one->p2 == other->p2 &&
             one->p3 == other->p3 && one->p5 == other->p5;
  if (!same || strcmp(one->name, "Transaction") == 0 || strcmp(one->name, "VOpen") == 0)
    return same;
  return one->p4 && other->p4 ? strcmp(one->p4, other->p4) == 0 : one->p4 == other->p4;
}

int program_is_same(const struct program *one, const struct program *other) {
  int same = one->count && one->count == other->count;
  for (int i = 0; i < one->count && same; i++) same = is_same(&one->list[i], &other->list[i]);
  return same;
}

#define STORES_P2 0x20

static int is_in(int place, int first, int count) {
  return place >= first && place < first + count;
}

int instruction_writes(const struct program_instruction *here, int place) {
  const char *name = here->name;
  if (!here->operation) return 1; /* an unknown instruction may write any register */
  if (strcmp(name, "Null") == 0)
    return is_in(place, here->p2, here->p3 > here->p2 ? here->p3 - here->p2 + 1 : 1);
  if (strcmp(name, "Copy") == 0) return is_in(place, here->p2, here->p3 + 1);
  if (strcmp(name, "Affinity") == 0) return is_in(place, here->p1, here->p2);
  /*
  ** A comparison jumps to p2. In SQLite before 3.36, a comparison with this flag stores its result
  ** in register p2 and does not jump.
  */
  if (here->operation->jumps && here->operation->writes == 2 && !(here->p5 & STORES_P2)) return 0;
  int registers[4] = {-1, here->p1, here->p2, here->p3};
  return registers[here->operation->writes] == place;
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
  if (strcmp(here->name, "ResultRow") == 0 || strcmp(here->name, "Affinity") == 0) return here->p2;
  if (strcmp(here->name, "Copy") == 0) return here->p3 + 1;
  if (strcmp(here->name, "AggStep") == 0) return here->p5;
  /* The p4 of an instruction that seeks in an index is the number of registers of the key. */
  if (strncmp(here->name, "Seek", 4) == 0 || strncmp(here->name, "Idx", 3) == 0)
    return here->p4 && strtol(here->p4, 0, 10) > 1 ? (int)strtol(here->p4, 0, 10) : 1;
  if (strcmp(here->name, "VFilter") == 0) return 2 + arguments_of(here);
  return here->operation->is_function ? (arity ? (int)strtol(arity + 1, 0, 10) : 127) : 1;
}

/* Returns whether an instruction reads a register. */
static int instruction_reads(const struct program_instruction *here, int place) {
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
  while (first <= last && !instruction_writes(&program->list[first], place)) first++;
  return first;
}

int program_keeps_nothing(const struct program *program, int first, int last) {
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
    for (int i = first; i <= writer && writer <= last; i++) {
      if (instruction_reads(&program->list[i], place)) return 0;
    }
  }
  return 1;
}

int instruction_is_safe(const struct program_instruction *here,
                        const struct allowed_functions *functions) {
  char name[32];
  if (!here->operation || here->operation->is_virtual) return 0;
  if (!here->operation->is_function) return 1;
  size_t length = here->p4 ? strcspn(here->p4, "(") : 0;
  if (!length || length >= sizeof name) return 0;
  memcpy(name, here->p4, length);
  name[length] = 0;
  return function_is_safe(functions, name);
}
