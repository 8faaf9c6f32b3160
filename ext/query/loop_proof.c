/* loop_proof.c: see loop_proof.h. */
#include "query/loop_proof.h"

#include <string.h>

#include "query/policy_tables.h"
#include "query/program.h"
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
** Returns whether the program has only two jumps back: the Next of the loop, and the last Goto,
** which returns to the start after the constants are set. In such a program, only the loop runs
** more than once.
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
    /* The host can replace every collation except BINARY. */
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
** Returns the instruction that certainly gave a register the value that it has at address `at`.
** This is the last instruction before `at` that writes the register, if no jump leads to an address
** in between. Follows copies. Returns -1 if no instruction is certain.
*/
static int writer_of(const struct program *program, int place, int at) {
  for (int i = at; i > 0 && !is_target(program, i); i--) {
    const struct program_instruction *before = &program->list[i - 1];
    if (!instruction_writes(before, place)) continue;
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
** Returns whether every aggregate of the program gets as its unit the column that the control query
** reads.
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

/* Returns the declaration of the protected table with this root page, or null. */
static const struct ledger_declaration *table_at(sqlite3 *db, const struct ledger_policy *policy,
                                                 int root, struct table_facts *facts) {
  for (int i = 0; i < policy->count; i++) {
    const struct ledger_declaration *declaration = &policy->list[i];
    if (declaration->role != POLICY_PROTECTED) continue;
    struct error error = {0};
    int read = table_facts_read(facts, db, declaration->table, &error);
    error_clear(&error); /* a table that cannot be read is not the table of the loop */
    if (read && facts->root == root) return declaration;
    table_facts_clear(facts);
  }
  return 0;
}

static void prove(struct loop_proof *proof, sqlite3 *db, const struct program *program,
                  const struct loop *loop, const struct ledger_declaration *declaration,
                  const struct table_facts *facts) {
  struct program control;
  int column = table_column_find(facts, declaration->unit_column);
  if (column < 0 || facts->columns[column].collation != COLLATION_BINARY) return;
  proof->table = sqlite3_mprintf("%s", facts->name);
  proof->column = sqlite3_mprintf("%s", facts->columns[column].name);
  int read = control_of(db, facts, declaration->unit_column, &control);
  if (read >= 0 && proof->table && proof->column)
    proof->result = units_are(program, loop, &control.list[read]) ? PROOF_HOLDS : PROOF_OTHER_UNIT;
  program_clear(&control);
}

struct loop_proof loop_prove(sqlite3 *db, const struct ledger_policy *policy) {
  struct loop_proof proof = {PROOF_FAILED, 0, 0};
  struct allowed_functions functions;
  struct program program = running_program(db);
  struct table_facts facts = {.unique = -1};
  struct loop loop;
  if (program.count && allowed_functions_read(&functions, db) == SQLITE_OK &&
      is_loop(&program, &functions, &loop)) {
    const struct ledger_declaration *declaration =
        table_at(db, policy, program.list[loop.open].p2, &facts);
    /*
    ** The proof covers only tables that have the unit in a column, not tables that refer to a
    ** parent.
    */
    if (declaration && declaration->unit_column && !declaration->parent)
      prove(&proof, db, &program, &loop, declaration, &facts);
  }
  table_facts_clear(&facts);
  program_clear(&program);
  return proof;
}

void loop_proof_clear(struct loop_proof *proof) {
  sqlite3_free(proof->table);
  sqlite3_free(proof->column);
  *proof = (struct loop_proof){PROOF_FAILED, 0, 0};
}
