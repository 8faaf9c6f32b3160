/* loop_proof.c: see loop_proof.h. */
#include "query/loop_proof.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/sql_text.h"
#include "query/safe_columns.h"
#include "query/table_loop.h"
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
  const struct aggregate *aggregate;
  for (int i = 0; length && (aggregate = kind_at(i)) != 0; i++)
    if (strlen(aggregate->name) == length &&
        sqlite3_strnicmp(aggregate->name, here->p4, (int)length) == 0)
      return aggregate;
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

/* ---- the unit -------------------------------------------------------------------------------- */

static int is_known(const struct program_instruction *here) {
  return aggregate_called(here) != 0;
}

/*
** Returns whether every aggregate of the program gets as its unit the column that `control` reads
** (table_loop_control()).
*/
static int units_are(const struct program *program, const struct table_loop *loop,
                     const struct program_instruction *control) {
  for (int i = loop->rewind; i < loop->next; i++) {
    const struct program_instruction *here = &program->list[i];
    if (!is(here, "AggStep")) continue;
    const struct aggregate *aggregate = aggregate_called(here);
    const char *arity = strchr(here->p4, '(');
    int arguments = here->p5, place = aggregate->places.unit;
    if (!arity || !place || place >= arguments) return 0;
    if (!table_loop_holds(loop, program, here->p2 + place, i, control)) return 0;
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
    if (!statement_is_executing(s)) continue;
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

/* Returns a constant text that an aggregate gets as its unit, or null if no aggregate gets one. */
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
                        const struct table_loop *loop) {
  struct program_instruction control;
  if (table_loop_control(&control, db, &proof->route.tables[0], loop_proof_column(proof)))
    proof->result = units_are(program, loop, &control) ? PROOF_HOLDS : PROOF_OTHER_UNIT;
  if (proof->result == PROOF_OTHER_UNIT) proof->instead = text_instead(program);
}

/*
** Returns whether an instruction before address `at` has already opened the public table `table`.
*/
static int is_listed(const struct program *program, sqlite3 *db, const struct ledger_policy *policy,
                     const char *table, int at) {
  for (int i = 0; i < at; i++)
    if (is(&program->list[i], "OpenRead") &&
        table_loop_public(db, policy, program->list[i].p2) == table)
      return 1;
  return 0;
}

/*
** Returns the tables that the program reads, such as {"visit":"protected","ward":"public"}. Sets
** *publics to the number of public tables. Returns null when out of memory.
*/
static char *tables_of(const struct loop_proof *proof, const struct program *program, sqlite3 *db,
                       const struct ledger_policy *policy, int *publics) {
  sqlite3_str *json = sqlite3_str_new(0);
  *publics = 0;
  sqlite3_str_appendall(json, "{");
  json_append_string(json, proof->route.tables[0].name);
  sqlite3_str_appendall(json, ":\"protected\"");
  for (int i = 0; i < program->count; i++) {
    if (!is(&program->list[i], "OpenRead")) continue;
    const char *table = table_loop_public(db, policy, program->list[i].p2);
    if (!table || is_listed(program, db, policy, table, i)) continue;
    sqlite3_str_appendall(json, ",");
    json_append_string(json, table);
    sqlite3_str_appendall(json, ":\"public\"");
    ++*publics;
  }
  sqlite3_str_appendall(json, "}");
  return sqlite3_str_finish(json);
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
  struct table_loop loop;
  *proof = (struct loop_proof){.result = PROOF_FAILED};
  if (program.count && allowed_functions_read(&functions, db) == SQLITE_OK &&
      table_loop_find(&loop, &program, "Rewind", &functions, is_known, db, policy) &&
      find_route(&proof->route, db, policy, table_loop_root(&loop, &program)) &&
      can_follow(db, &proof->route)) {
    int publics;
    proof->tables = tables_of(proof, &program, db, policy, &publics);
    if (loop_proof_column(proof)) {
      check_units(proof, db, &program, &loop);
    } else if (!publics) { /* a join could turn one row, which is a unit, into several */
      proof->result = PROOF_HOLDS;
    }
  }
  program_clear(&program);
}

void loop_proof_clear(struct loop_proof *proof) {
  route_clear(&proof->route);
  sqlite3_free(proof->tables);
  sqlite3_free(proof->instead);
  proof->tables = proof->instead = 0;
}

const char *loop_proof_column(const struct loop_proof *proof) {
  const struct route *route = &proof->route;
  int column = route->count > 1 ? route->links[0] : route->unit;
  return column >= 0 ? route->tables[0].columns[column].name : 0;
}
