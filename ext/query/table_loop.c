/* table_loop.c: see table_loop.h. */
#include "query/table_loop.h"

#include <string.h>

SQLITE_EXTENSION_INIT3

static int is(const struct program_instruction *here, const char *name) {
  return strcmp(here->name, name) == 0;
}

/* ---- cursors --------------------------------------------------------------------------------- */

/* What an instruction does with its cursor p1: nothing, move it to a row, or use its position. */
enum touch { TOUCHES_NOTHING, POSITIONS, USES };

static enum touch touch_of(const struct program_instruction *here) {
  static const struct {
    const char *name;
    enum touch touch;
  } list[] = {{"Rewind", POSITIONS},    {"SeekGE", POSITIONS}, {"SeekGT", POSITIONS},
              {"SeekLE", POSITIONS},    {"SeekLT", POSITIONS}, {"SeekRowid", POSITIONS},
              {"NotExists", POSITIONS}, {"Next", USES},        {"Column", USES},
              {"Rowid", USES},          {"IdxGE", USES},       {"IdxGT", USES},
              {"IdxLE", USES},          {"IdxLT", USES},       {"DeferredSeek", USES},
              {"IfNullRow", USES}};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    if (is(here, list[i].name)) return list[i].touch;
  return TOUCHES_NOTHING;
}

/* Returns what an instruction does with a cursor. DeferredSeek also positions cursor p3. */
static enum touch touches(const struct program_instruction *here, int cursor) {
  if (is(here, "DeferredSeek") && here->p3 == cursor) return POSITIONS;
  return here->p1 == cursor ? touch_of(here) : TOUCHES_NOTHING;
}

const char *table_loop_public(sqlite3 *db, const struct ledger_policy *policy, int root) {
  sqlite3_stmt *row = 0;
  char *sql = sqlite3_mprintf("SELECT tbl_name FROM main.sqlite_master WHERE rootpage = %d", root);
  const char *found = 0;
  if (sql && sqlite3_prepare_v2(db, sql, -1, &row, 0) == SQLITE_OK &&
      sqlite3_step(row) == SQLITE_ROW && sqlite3_column_type(row, 0) == SQLITE_TEXT) {
    const char *name = (const char *)sqlite3_column_text(row, 0);
    const struct ledger_declaration *declaration = ledger_policy_find(policy, name);
    if (declaration && declaration->role == POLICY_PUBLIC) found = declaration->table;
  }
  sqlite3_finalize(row); /* after an error, the table is not known to be public */
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
  int first = loop->rewind + 1;
  while (first < loop->next && !touches(&program->list[first], cursor)) first++;
  if (first < loop->next && touches(&program->list[first], cursor) != POSITIONS) return 0;
  int last = loop->next;
  while (last > first && !touches(&program->list[last], cursor)) last--;
  for (int i = loop->rewind + 1; i < first; i++) {
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
    int is_inside = i > loop->rewind && i < loop->next;
    if (is(here, "OpenRead") && (here->p3 != 0 || i > loop->rewind)) return 0;
    if (is(here, "OpenRead") && i != loop->open &&
        (here->p1 == own || !has_binary_keys(here) || !keeps_no_position(program, loop, here->p1)))
      return 0;
    if (i == loop->rewind || i == loop->next || touch_of(here) == TOUCHES_NOTHING) continue;
    if (!is_inside || (is(here, "DeferredSeek") && here->p3 == own)) return 0;
    if (here->p1 == own && !is(here, "Column") && !is(here, "Rowid") && !is(here, "IfNullRow"))
      return 0;
  }
  return 1;
}

/* ---- one loop -------------------------------------------------------------------------------- */

/*
** Returns the address of the only instruction with this name, or -1 if no or several instructions
** have the name.
*/
static int only(const struct program *program, const char *name) {
  int found = -1;
  for (int i = 0; i < program->count; i++) {
    if (!is(&program->list[i], name)) continue;
    if (found >= 0) return -1;
    found = i;
  }
  return found;
}

/*
** Finds the loop. With a policy, the loop's table is the only opened table that is not public, and
** loops over public tables may be inside.
*/
static int find_loop(struct table_loop *loop, const struct program *program, const char *start,
                     sqlite3 *db, const struct ledger_policy *policy) {
  *loop = (struct table_loop){-1, -1, -1};
  if (!policy) {
    *loop =
        (struct table_loop){only(program, "OpenRead"), only(program, start), only(program, "Next")};
    return loop->open >= 0;
  }
  for (int i = 0; i < program->count; i++) {
    const struct program_instruction *here = &program->list[i];
    if (!is(here, "OpenRead") || table_loop_public(db, policy, here->p2)) continue;
    if (loop->open >= 0) return 0;
    loop->open = i;
  }
  for (int i = 0; loop->open >= 0 && i < program->count; i++) {
    const struct program_instruction *here = &program->list[i];
    if (here->p1 != program->list[loop->open].p1) continue;
    if (is(here, start) && loop->rewind < 0) loop->rewind = i;
    if (is(here, "Next")) loop->next = i;
  }
  return loop->open >= 0;
}

/*
** Returns whether the program jumps backward only in the Next of the loop, in the Next of loops
** inside, and in its last instruction. SQLite sets the constants of a statement at the end of the
** program. The last instruction, a Goto, then jumps to instruction 1. In such a program, only the
** loops run more than once.
*/
static int goes_forward(const struct program *program, const struct table_loop *loop) {
  for (int i = 0; i < program->count; i++) {
    const struct program_instruction *here = &program->list[i];
    if (!here->operation->jumps || here->p2 > i) continue;
    int is_start = is(here, "Goto") && here->p2 == 1 && i == program->count - 1;
    int is_loop = is(here, "Next") && i <= loop->next && here->p2 > loop->rewind;
    /*
    ** In SQLite before 3.36, a comparison with this flag stores its result in register p2 and does
    ** not jump.
    */
    int is_value = here->operation->writes == 2 && here->p5 & 0x20;
    if (!is_start && !is_loop && !is_value) return 0;
  }
  return 1;
}

int table_loop_find(struct table_loop *loop, const struct program *program, const char *start,
                    const struct allowed_functions *functions, is_aggregate *is_known, sqlite3 *db,
                    const struct ledger_policy *policy) {
  for (int i = 0; i < program->count; i++)
    if (!instruction_is_safe(&program->list[i], functions)) return 0;
  if (!find_loop(loop, program, start, db, policy) || loop->rewind < loop->open ||
      loop->next < loop->rewind)
    return 0;
  const struct program_instruction *open = &program->list[loop->open];
  for (int i = 0; i < program->count; i++) {
    const struct program_instruction *here = &program->list[i];
    if (is(here, "AggStep") && (i < loop->rewind || i > loop->next || !is_known(here))) return 0;
    if (is(here, "ResultRow") && i > loop->rewind && i < loop->next) return 0;
    /*
    ** The proof accepts only the collation BINARY. The host may have replaced any other collation.
    */
    if (here->operation->jumps && here->operation->writes == 2 && here->p4 && *here->p4 &&
        strncmp(here->p4, "BINARY-", 7) != 0)
      return 0;
  }
  return program->list[loop->rewind].p1 == open->p1 && program->list[loop->next].p1 == open->p1 &&
         goes_forward(program, loop) && cursors_are_sound(program, loop) &&
         program_keeps_nothing(program, loop->rewind + 1, loop->next);
}

int table_loop_root(const struct table_loop *loop, const struct program *program) {
  return program->list[loop->open].p2;
}

/* ---- columns --------------------------------------------------------------------------------- */

int table_loop_control(struct program_instruction *found, sqlite3 *db,
                       const struct table_facts *facts, const char *column) {
  struct program program;
  char *sql = sqlite3_mprintf("SELECT \"%w\" FROM main.\"%w\" NOT INDEXED", column, facts->name);
  program_read(&program, db, sql);
  sqlite3_free(sql);
  int open = only(&program, "OpenRead"), read = only(&program, "Column");
  if (read < 0) read = only(&program, "Rowid");
  int is_plain =
      open >= 0 && read >= 0 && program.list[open].p3 == 0 && program.list[open].p2 == facts->root;
  if (is_plain) *found = program.list[read];
  found->p4 = 0; /* the default value, which belongs to the program */
  program_clear(&program);
  return is_plain;
}

static int is_same(const struct program_instruction *here,
                   const struct program_instruction *control) {
  return strcmp(here->name, control->name) == 0 &&
         (!is(control, "Column") || here->p2 == control->p2);
}

int table_loop_reads(const struct table_loop *loop, const struct program *program,
                     const struct program_instruction *control) {
  for (int i = loop->rewind; i < loop->next; i++)
    if (is_same(&program->list[i], control) && program->list[i].p1 == program->list[loop->open].p1)
      return 1;
  return 0;
}

/* Returns whether a jump leads to an address. */
static int is_target(const struct program *program, int address) {
  for (int i = 0; i < program->count; i++)
    if (program->list[i].operation->jumps && program->list[i].p2 == address) return 1;
  return 0;
}

/*
** Returns the address of the instruction that gave a register its value at address `at`. This is
** the last instruction before `at` that writes the register, if no jump leads to an address between
** the two. If this instruction copies another register, continues with the other register. Returns
** -1 if the instruction is not certain.
*/
static int writer_of(const struct program *program, int place, int at) {
  for (int i = at; i > 0 && !is_target(program, i); i--) {
    const struct program_instruction *before = &program->list[i - 1];
    if (!instruction_writes(before, place)) continue;
    if (is(before, "RealAffinity")) continue; /* it also occurs in the control query */
    if (is(before, "SCopy")) return writer_of(program, before->p1, i - 1);
    if (is(before, "Copy")) return writer_of(program, before->p1 + place - before->p2, i - 1);
    return i - 1;
  }
  return -1;
}

int table_loop_holds(const struct table_loop *loop, const struct program *program, int place,
                     int at, const struct program_instruction *control) {
  int from = writer_of(program, place, at);
  return from > loop->rewind && is_same(&program->list[from], control) &&
         program->list[from].p1 == program->list[loop->open].p1;
}
