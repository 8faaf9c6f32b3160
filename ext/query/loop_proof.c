/* loop_proof.c: see loop_proof.h. Tests: tests/query/test_loop_proof.py */
#include "query/loop_proof.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/sql_text.h"
#include "query/asked_statement.h"
#include "query/safe_columns.h"
#include "query/program.h"
#include "release/kinds.h"

SQLITE_EXTENSION_INIT3

/* Returns the aggregate of this extension that a call such as "dp_sum(4)" names, or null. */
static const struct aggregate *aggregate_of(const struct program_call *call) {
  return aggregate_called(call->name, strcspn(call->name, "("));
}

static int is_known(const struct program_call *call) {
  return aggregate_of(call) != 0;
}

/* ---- the arguments --------------------------------------------------------------------------- */

/*
** Returns whether every aggregate of the program gets as its unit the column that `control` reads
** (table_loop_control()). table_loop_find() has accepted the program, so it calls only aggregates
** of this extension.
*/
static int gets_units(const struct program *program, const struct table_loop *loop,
                      const struct program_instruction *control) {
  struct program_call call;
  for (int i = 0; program_call(&call, program, i); i = call.at + 1) {
    int place = aggregate_of(&call)->places.unit;
    if (!place || place >= call.arguments ||
        !table_loop_holds(loop, program, call.first + place, call.at, control))
      return 0;
  }
  return 1;
}

/*
** Returns the arguments of the calls of an aggregate that may differ from row to row, as a mask of
** the bits 1 << place.
*/
static unsigned arguments_of_row(const struct program *program, const struct table_loop *loop,
                                 const struct aggregate *aggregate) {
  struct program_call call;
  unsigned of_row = 0;
  for (int i = 0; program_call(&call, program, i); i = call.at + 1)
    for (int place = 0; aggregate_of(&call) == aggregate && place < call.arguments; place++)
      if (!table_loop_fixes(loop, program, call.first + place, call.at)) of_row |= 1u << place;
  return of_row;
}

/* ---- the proof ------------------------------------------------------------------------------- */

/*
** Returns the program of the running statement that makes releases. The program is empty if several
** statements make releases, or if the statement writes. A statement that executes after its first
** row may be missed (base/sql_text.h). Then no other one is found in its place: that one would have
** to call it, and the proof accepts no program that calls the host. Sets *running to the statement.
*/
static struct program running_program(sqlite3 *db, sqlite3_stmt **running) {
  struct program found = {0, 0};
  int count = 0;
  for (sqlite3_stmt *s = sqlite3_next_stmt(db, 0); s; s = sqlite3_next_stmt(db, s)) {
    struct program program;
    if (!statement_is_executing(s)) continue;
    program_read(&program, db, sqlite3_sql(s));
    int matters = !program.count || program_calls(&program, "dp_");
    if (matters && sqlite3_stmt_readonly(s) && !count) {
      found = program;
      *running = s;
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

/* Checks that the unit of every aggregate is the unit column, or link, of the loop's table. */
static void check_units(struct loop_proof *proof, sqlite3 *db, const struct program *program,
                        const struct table_loop *loop) {
  struct program_instruction control;
  if (table_loop_control(&control, db, &proof->route.tables[0], loop_proof_column(proof)))
    proof->result = gets_units(program, loop, &control) ? PROOF_HOLDS : PROOF_OTHER_UNIT;
  if (proof->result != PROOF_OTHER_UNIT) return;
  struct program_call call;
  const char *text = 0; /* a constant that an aggregate gets as its unit */
  for (int i = 0; !text && program_call(&call, program, i); i = call.at + 1)
    text = program_text(program, call.first + aggregate_of(&call)->places.unit);
  if (text) proof->instead = sqlite3_mprintf("%s", text);
}

/* The tables that a program reads, and how many of them are public. */
struct listing {
  sqlite3_str *json;
  int publics;
};

static void list_public(void *context, const char *table) {
  struct listing *listing = context;
  sqlite3_str_appendall(listing->json, ",");
  json_append_string(listing->json, table);
  sqlite3_str_appendall(listing->json, ":\"public\"");
  listing->publics++;
}

/*
** Returns the tables that the program reads, such as {"visit":"protected","ward":"public"}. Sets
** *publics to the number of public tables. Returns null when out of memory.
*/
static char *tables_of(const struct loop_proof *proof, const struct program *program, sqlite3 *db,
                       const struct ledger_policy *policy, int *publics) {
  struct listing listing = {sqlite3_str_new(0), 0};
  sqlite3_str_appendall(listing.json, "{");
  json_append_string(listing.json, proof->route.tables[0].name);
  sqlite3_str_appendall(listing.json, ":\"protected\"");
  table_loop_publics(program, db, policy, list_public, &listing);
  sqlite3_str_appendall(listing.json, "}");
  *publics = listing.publics;
  return sqlite3_str_finish(listing.json);
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

void loop_prove(struct loop_proof *proof, sqlite3 *db, const struct ledger_policy *policy,
                const struct aggregate *aggregate) {
  struct allowed_functions functions = {{0}};
  sqlite3_stmt *running = 0;
  struct program program = running_program(db, &running);
  struct table_loop loop;
  *proof = (struct loop_proof){.result = program_is_known() ? PROOF_FAILED : PROOF_UNKNOWN};
  if (program.count && allowed_functions_read(&functions, db) == SQLITE_OK &&
      table_loop_find(&loop, &program, LOOP_WHOLE, &functions, is_known, db, policy) &&
      find_route(&proof->route, db, policy, table_loop_root(&loop, &program)) &&
      can_follow(db, &proof->route)) {
    int publics;
    proof->tables = tables_of(proof, &program, db, policy, &publics);
    proof->of_row = arguments_of_row(&program, &loop, aggregate);
    proof->sql = statement_with_values(running);
    if (loop_proof_column(proof)) {
      check_units(proof, db, &program, &loop);
    } else if (!publics) { /* a join could turn one row, which is a unit, into several */
      proof->result = PROOF_HOLDS;
    } else {
      proof->obstacle = sqlite3_mprintf("a join");
    }
  }
  if (program.count && proof->result == PROOF_FAILED && !proof->obstacle)
    proof->obstacle =
        table_loop_obstacle(&program, &functions, is_known, db, policy, &proof->instead);
  program_clear(&program);
}

void loop_proof_clear(struct loop_proof *proof) {
  route_clear(&proof->route);
  sqlite3_free(proof->tables);
  sqlite3_free(proof->obstacle);
  sqlite3_free(proof->instead);
  sqlite3_free(proof->sql);
  proof->tables = proof->obstacle = proof->instead = proof->sql = 0;
}

const char *loop_proof_column(const struct loop_proof *proof) {
  const struct route *route = &proof->route;
  int column = route->count > 1 ? route->links[0] : route->unit;
  return column >= 0 ? route->tables[0].columns[column].name : 0;
}
