/* table_loop.c: see table_loop.h. */
#include "query/table_loop.h"

#include <string.h>

SQLITE_EXTENSION_INIT3

static int is(const struct program_instruction *here, const char *name) {
  return strcmp(here->name, name) == 0;
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
** Returns whether the program has only two backward jumps: the Next of the loop, and the Goto at
** the end of the program, which jumps to the start after the constants are set. In such a program,
** only the loop runs more than once.
*/
static int goes_forward(const struct program *program, const struct table_loop *loop) {
  for (int i = 0; i < program->count; i++) {
    const struct program_instruction *here = &program->list[i];
    if (!here->operation->jumps || here->p2 > i) continue;
    int is_start = is(here, "Goto") && here->p2 == 1 && i == program->count - 1;
    int is_loop = i == loop->next && here->p2 > loop->rewind;
    /*
    ** In SQLite before 3.36, a comparison with this flag stores its result in register p2 and does
    ** not jump.
    */
    int is_value = here->operation->writes == 2 && here->p5 & 0x20;
    if (!is_start && !is_loop && !is_value) return 0;
  }
  return 1;
}

int table_loop_find(struct table_loop *loop, const struct program *program,
                    const struct allowed_functions *functions, is_aggregate *is_known) {
  for (int i = 0; i < program->count; i++)
    if (!instruction_is_safe(&program->list[i], functions)) return 0;
  *loop = (struct table_loop){only(program, "OpenRead"), only(program, "Rewind"),
                              only(program, "Next")};
  if (loop->open < 0 || loop->rewind < loop->open || loop->next < loop->rewind) return 0;
  const struct program_instruction *open = &program->list[loop->open];
  for (int i = 0; i < program->count; i++) {
    const struct program_instruction *here = &program->list[i];
    if (is(here, "AggStep") && (i < loop->rewind || i > loop->next || !is_known(here))) return 0;
    if ((is(here, "Column") || is(here, "Rowid")) && here->p1 != open->p1) return 0;
    if (is(here, "ResultRow") && i > loop->rewind && i < loop->next) return 0;
    /*
    ** The proof accepts only the collation BINARY. The host may have replaced any other collation.
    */
    if (here->operation->jumps && here->operation->writes == 2 && here->p4 && *here->p4 &&
        strncmp(here->p4, "BINARY-", 7) != 0)
      return 0;
  }
  return open->p3 == 0 && program->list[loop->rewind].p1 == open->p1 &&
         program->list[loop->next].p1 == open->p1 && goes_forward(program, loop) &&
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
    if (is_same(&program->list[i], control)) return 1;
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
  return from > loop->rewind && is_same(&program->list[from], control);
}
