/*
** program.h: the program of a statement, as EXPLAIN shows it, and proofs about programs. program.c
** is the only file that knows SQLite's bytecode. It has one table of the instructions that the
** proofs understand. An unknown instruction makes a proof fail.
**
** A new version of SQLite may change what an instruction does. The proofs are therefore used only
** up to NEWEST_SQLITE, the newest version (3.54 is 3054) with which the whole suite of tests has
** passed. With a newer version, every question is evaluated for one unit after the other, which
** needs no proof about the question, and aggregates in a SELECT are refused.
*/
#ifndef DIFFUSE_QUERY_PROGRAM_H
#define DIFFUSE_QUERY_PROGRAM_H

#include <sqlite3ext.h>

#include "query/allowed_functions.h"
#include "query/policy_tables.h"

/* A test build replaces this number by a lower one. */
#ifndef NEWEST_SQLITE
#define NEWEST_SQLITE 3054
#endif

/* Returns whether the proofs are known to hold for the running version of SQLite. */
int program_is_known(void);

struct operation; /* program.c */

struct program_instruction {
  char name[20];
  const struct operation *operation; /* null if the instruction may do anything */
  int p1, p2, p3, p5;
  char *p4; /* may be null */
};

struct program {
  struct program_instruction *list;
  int count;
};

/*
** Reads the program of a statement. If the program cannot be read, it is empty. The caller must
** call program_clear() in both cases.
*/
void program_read(struct program *program, sqlite3 *db, const char *sql);
void program_clear(struct program *program);

/* ---- single instructions --------------------------------------------------------------------- */

/* Returns whether the program calls an aggregate whose name begins with `prefix`. */
int program_calls(const struct program *program, const char *prefix);

/*
** Returns whether the program calls a function at one place, which no run reaches more than once,
** and no aggregate after it. An aggregate such as count(*) may stand around the call and return
** something else than its result. The name is without arguments. No proof depends on the answer, so
** it is also given for new versions of SQLite.
*/
int program_calls_once(const struct program *program, const char *function);

/*
** A call of an aggregate: the address of its AggStep, its name with the number of arguments, for
** example "dp_sum(4)", and the register of its first argument.
*/
struct program_call {
  int at;
  const char *name;
  int first, arguments;
};

/* Finds the first call at an address of at least `from`. Returns 0 if there is none. */
int program_call(struct program_call *call, const struct program *program, int from);

/* Returns a constant text to which the program sets a register, or null if there is none. */
const char *program_text(const struct program *program, int place);

/* ---- one loop over one table ----------------------------------------------------------------- */

/*
** Such a program computes every result from the current row alone, or from this row and from rows
** of public tables. The struct has the addresses of the instructions that open the table, start the
** loop, and end one pass.
*/
struct table_loop {
  int open, start, next;
};

/* The rows that the loop reads. */
enum loop_rows { LOOP_WHOLE, LOOP_RANGE }; /* all rows; a range of rowids */

/* Returns whether the loop may call this aggregate. */
typedef int is_aggregate(const struct program_call *call);

/*
** Returns whether a program is one loop over one table of main. Every instruction must be known to
** raise no error, and must compute from the current row alone. The loop takes all rows, and keeps
** nothing for later rows, except in its aggregates. `functions` describes the functions of the
** connection `db`. If `policy` is not null, the loop may read public tables inside, at positions
** that the current row determines. Sets *loop if the proof succeeds.
*/
int table_loop_find(struct table_loop *loop, const struct program *program, enum loop_rows rows,
                    const struct allowed_functions *functions, is_aggregate *is_known, sqlite3 *db,
                    const struct ledger_policy *policy);

/*
** Returns the part of a statement because of which table_loop_find() fails, in words such as
** "LIMIT", or null if there is no word for it. If the statement can do without this part, sets
** *instead to what to write, such as "write FROM visit NOT INDEXED, or ". The caller calls
** sqlite3_free() for both.
*/
char *table_loop_obstacle(const struct program *program, const struct allowed_functions *functions,
                          is_aggregate *is_known, sqlite3 *db, const struct ledger_policy *policy,
                          char **instead);

/*
** Calls `take` for each public table that the program opens, once for each table. The name belongs
** to the policy.
*/
void table_loop_publics(const struct program *program, sqlite3 *db,
                        const struct ledger_policy *policy,
                        void (*take)(void *context, const char *table), void *context);

/* Returns the root page of the loop's table. */
int table_loop_root(const struct table_loop *loop, const struct program *program);

/*
** Compiles a control query that reads one column of a table, and sets *read to the instruction that
** reads the column. Returns 0 if several instructions compute the column, or after an error.
*/
int table_loop_control(struct program_instruction *read, sqlite3 *db,
                       const struct table_facts *facts, const char *column);

/*
** Returns whether the register `place` certainly holds the column that `control` reads, of the
** current row, when the program reaches address `at`.
*/
int table_loop_holds(const struct table_loop *loop, const struct program *program, int place,
                     int at, const struct program_instruction *control);

/*
** Returns whether the register `place` certainly holds the same value in every pass of the loop
** when the program reaches address `at`.
*/
int table_loop_fixes(const struct table_loop *loop, const struct program *program, int place,
                     int at);

#endif
