/* loop_proof.c: see loop_proof.h. */
#include "query/loop_proof.h"

#include <stdlib.h>
#include <string.h>

#include "query/program.h"
#include "query/safe_columns.h"
#include "release/kinds.h"

SQLITE_EXTENSION_INIT3

static int is(const struct program_instruction *here, const char *name) {
  return strcmp(here->name, name) == 0;
}

/*
** Returns the aggregate of this extension that an AggStep calls, for example for "dp_sum(4)".
** Returns null if the AggStep calls another aggregate.
*/
static const struct aggregate *aggregate_called(const struct program_instruction *here) {
  size_t length = here->p4 ? strcspn(here->p4, "(") : 0;
  for (int i = 0; i < aggregate_count && length; i++)
    if (strlen(aggregates[i].name) == length &&
        sqlite3_strnicmp(aggregates[i].name, here->p4, (int)length) == 0)
      return &aggregates[i];
  return 0;
}

/* Returns whether a program calls an aggregate of this extension. */
static int releases(const struct program *program) {
  for (int i = 0; i < program->count; i++) {
    const struct program_instruction *here = &program->list[i];
    if (sqlite3_strnicmp(here->name, "Agg", 3) == 0 && here->p4 &&
        sqlite3_strnicmp(here->p4, "dp_", 3) == 0)
      return 1;
  }
  return 0;
}

/* ---- one loop -------------------------------------------------------------------------------- */

struct loop {
  int open, rewind, next; /* the addresses of OpenRead, Rewind and Next */
};

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
static int goes_forward(const struct program *program, const struct loop *loop) {
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

static int is_loop(const struct program *program, const struct allowed_functions *functions,
                   struct loop *loop) {
  for (int i = 0; i < program->count; i++)
    if (!instruction_is_safe(&program->list[i], functions)) return 0;
  *loop = (struct loop){only(program, "OpenRead"), only(program, "Rewind"), only(program, "Next")};
  if (loop->open < 0 || loop->rewind < loop->open || loop->next < loop->rewind) return 0;
  const struct program_instruction *open = &program->list[loop->open];
  for (int i = 0; i < program->count; i++) {
    const struct program_instruction *here = &program->list[i];
    if (is(here, "AggStep") && (i < loop->rewind || i > loop->next || !aggregate_called(here)))
      return 0;
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

/* ---- the unit -------------------------------------------------------------------------------- */

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
    if (is(before, "RealAffinity")) continue; /* it follows the column in the control query, too */
    if (is(before, "SCopy")) return writer_of(program, before->p1, i - 1);
    if (is(before, "Copy")) return writer_of(program, before->p1 + place - before->p2, i - 1);
    return i - 1;
  }
  return -1;
}

/*
** Compiles a control query that reads one column of a table. Returns the instruction that reads the
** column, or -1.
*/
static int control_of(sqlite3 *db, const struct table_facts *facts, const char *column,
                      struct program *program) {
  char *sql = sqlite3_mprintf("SELECT \"%w\" FROM main.\"%w\" NOT INDEXED", column, facts->name);
  program_read(program, db, sql);
  sqlite3_free(sql);
  int open = only(program, "OpenRead"), read = only(program, "Column");
  if (read < 0) read = only(program, "Rowid");
  if (open < 0 || read < 0 || program->list[open].p3 != 0 || program->list[open].p2 != facts->root)
    return -1;
  return read;
}

/*
** Returns whether the column that the control query reads is the unit of every aggregate of the
** program.
*/
static int units_are(const struct program *program, const struct loop *loop,
                     const struct program_instruction *control) {
  for (int i = loop->rewind; i < loop->next; i++) {
    const struct program_instruction *here = &program->list[i];
    if (!is(here, "AggStep")) continue;
    const struct aggregate *aggregate = aggregate_called(here);
    const char *arity = strchr(here->p4, '(');
    int arguments = here->p5, place = aggregate->places.unit;
    if (!arity || !place || place >= arguments) return 0;
    int from = writer_of(program, here->p2 + place, i);
    if (from <= loop->rewind || strcmp(program->list[from].name, control->name) != 0) return 0;
    if (is(control, "Column") && program->list[from].p2 != control->p2) return 0;
  }
  return 1;
}

/* ---- the proof ------------------------------------------------------------------------------- */

/*
** Returns the program of the running statement that makes releases. The program is empty if several
** statements make releases, or if the statement writes.
*/
static struct program running_program(sqlite3 *db) {
  struct program found = {0, 0};
  int count = 0;
  for (sqlite3_stmt *s = sqlite3_next_stmt(db, 0); s; s = sqlite3_next_stmt(db, s)) {
    struct program program;
    if (!sqlite3_stmt_busy(s)) continue;
    program_read(&program, db, sqlite3_sql(s));
    int matters = !program.count || releases(&program);
    if (matters && sqlite3_stmt_readonly(s) && !count) {
      found = program;
    } else {
      program_clear(&program);
    }
    count += matters + (matters && !sqlite3_stmt_readonly(s));
  }
  if (count != 1) program_clear(&found);
  return found;
}

/*
** Finds the route of the protected table with this root page. Returns 0 if no protected table has
** this root page.
*/
static int find_route(struct route *route, sqlite3 *db, const struct ledger_policy *policy,
                      int root) {
  int found = 0;
  for (int i = 0; i < policy->count && !found; i++) {
    const struct ledger_declaration *declaration = &policy->list[i];
    struct error error = {0};
    if (declaration->role != POLICY_PROTECTED) continue;
    found = route_find(route, db, policy, declaration, &error) && route->tables[0].root == root;
    error_clear(&error); /* a table that cannot be read is not the table of the loop */
    if (!found) route_clear(route);
  }
  return found;
}

/* Returns the constant text that an aggregate gets as its unit, or null if it gets no such text. */
static char *text_instead(const struct program *program) {
  for (int i = 0; i < program->count; i++) {
    const struct program_instruction *here = &program->list[i];
    const struct aggregate *aggregate = is(here, "AggStep") ? aggregate_called(here) : 0;
    int unit = aggregate ? here->p2 + aggregate->places.unit : 0;
    for (int j = 0; j < program->count && aggregate; j++) {
      const struct program_instruction *text = &program->list[j];
      if (is(text, "String8") && text->p2 == unit) return sqlite3_mprintf("%s", text->p4);
    }
  }
  return 0;
}

/* Checks that the unit of every aggregate is the unit column, or link, of the loop's table. */
static void check_units(struct loop_proof *proof, sqlite3 *db, const struct program *program,
                        const struct loop *loop) {
  struct program control;
  int read = control_of(db, &proof->route.tables[0], loop_proof_column(proof), &control);
  if (read >= 0)
    proof->result = units_are(program, loop, &control.list[read]) ? PROOF_HOLDS : PROOF_OTHER_UNIT;
  if (proof->result == PROOF_OTHER_UNIT) proof->instead = text_instead(program);
  program_clear(&control);
}

/* Returns whether the host's connection can read the unit column and the links of a route. */
static int can_follow(sqlite3 *db, const struct route *route) {
  struct error error = {0};
  unsigned char *used = calloc((size_t)route->tables[0].count + 1, 1);
  int can = used && safe_columns_check(db, route, used, &error);
  error_clear(&error); /* the caller needs only the result, not the reason */
  free(used);
  return can;
}

void loop_prove(struct loop_proof *proof, sqlite3 *db, const struct ledger_policy *policy) {
  struct allowed_functions functions;
  struct program program = running_program(db);
  struct loop loop;
  *proof = (struct loop_proof){.result = PROOF_FAILED};
  if (program.count && allowed_functions_read(&functions, db) == SQLITE_OK &&
      is_loop(&program, &functions, &loop) &&
      find_route(&proof->route, db, policy, program.list[loop.open].p2) &&
      can_follow(db, &proof->route)) {
    if (loop_proof_column(proof)) {
      check_units(proof, db, &program, &loop);
    } else {
      proof->result = PROOF_HOLDS;
    }
  }
  program_clear(&program);
}

void loop_proof_clear(struct loop_proof *proof) {
  route_clear(&proof->route);
  sqlite3_free(proof->instead);
  proof->instead = 0;
}

const char *loop_proof_column(const struct loop_proof *proof) {
  const struct route *route = &proof->route;
  int column = route->count > 1 ? route->links[0] : route->unit;
  return column >= 0 ? route->tables[0].columns[column].name : 0;
}
