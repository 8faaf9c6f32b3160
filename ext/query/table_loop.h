/*
** table_loop.h: proofs about a program that is one loop over one table. Such a program computes
** every result from the current row alone, or from this row and from rows of public tables.
*/
#ifndef DIFFUSE_QUERY_TABLE_LOOP_H
#define DIFFUSE_QUERY_TABLE_LOOP_H

#include "query/policy_tables.h"
#include "query/program.h"

/* The addresses of OpenRead, of Rewind (or SeekGE), and of Next. */
struct table_loop {
  int open, rewind, next;
};

/* Returns whether an AggStep calls one of the aggregates that the loop may call. */
typedef int is_aggregate(const struct program_instruction *instruction);

/*
** Returns whether a program is one loop over one table of main. Every instruction must be known to
** raise no error, and must compute from the current row alone. The loop keeps nothing for later
** rows, except in its aggregates. `functions` describes the functions of the connection `db`. If
** `policy` is not null, the loop may read public tables inside, at positions that the current row
** determines. `start` is the instruction with which the loop starts: Rewind if the statement reads
** all rows, or SeekGE if it reads a range of rowids. Sets *loop if the proof succeeds.
*/
int table_loop_find(struct table_loop *loop, const struct program *program, const char *start,
                    const struct allowed_functions *functions, is_aggregate *is_known, sqlite3 *db,
                    const struct ledger_policy *policy);

/*
** Returns the name of the public table with this root page, or with an index that has this root
** page. The name belongs to the policy. Returns null if there is no such table.
*/
const char *table_loop_public(sqlite3 *db, const struct ledger_policy *policy, int root);

/* Returns the root page of the loop's table. */
int table_loop_root(const struct table_loop *loop, const struct program *program);

/*
** Compiles a control query that reads one column of a table, and sets *read to the instruction that
** reads the column. Returns 0 if several instructions compute the column, or after an error.
*/
int table_loop_control(struct program_instruction *read, sqlite3 *db,
                       const struct table_facts *facts, const char *column);

/* Returns whether the loop reads the column that `control` reads. */
int table_loop_reads(const struct table_loop *loop, const struct program *program,
                     const struct program_instruction *control);

/*
** Returns whether the register `place` certainly holds the column that `control` reads, of the
** current row, when the program reaches address `at`.
*/
int table_loop_holds(const struct table_loop *loop, const struct program *program, int place,
                     int at, const struct program_instruction *control);

#endif
