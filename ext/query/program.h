/* program.h: the program of a statement, as EXPLAIN shows it, and proofs of its properties. */
#ifndef DIFFUSE_QUERY_PROGRAM_H
#define DIFFUSE_QUERY_PROGRAM_H

#include <sqlite3ext.h>

#include "query/allowed_functions.h"

/*
** The properties of an instruction that raises no error and computes from its registers and the
** current row alone.
*/
struct operation {
  const char *name;
  int jumps;       /* the instruction may jump to p2 */
  int writes;      /* the register that is written: 1, 2, 3 for p1, p2, p3; 0 for none */
  int reads;       /* the registers that are read: bits 1, 2, 4 for p1, p2, p3 */
  int is_function; /* the instruction calls a function; instruction_is_safe() checks the function */
  int is_virtual;  /* the instruction reads a virtual table, whose module may do anything */
};

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

/*
** Returns whether two programs that are not empty do the same. The number of times that a
** connection has read the schema does not matter. Two programs that differ only in the virtual
** tables that they open count as the same.
*/
int program_is_same(const struct program *one, const struct program *other);

/* Returns whether an instruction writes a register. */
int instruction_writes(const struct program_instruction *instruction, int place);

/*
** Returns whether a loop, the instructions `first` to `last`, keeps no value from one row to the
** next. This holds if the loop never reads a register before it writes this register. Registers
** that the loop never writes and the accumulators of aggregates are exempt.
*/
int program_keeps_nothing(const struct program *program, int first, int last);

/*
** Returns whether an instruction is known to raise no error. `functions` describes the functions of
** the connection. An instruction on a virtual table is not safe.
*/
int instruction_is_safe(const struct program_instruction *instruction,
                        const struct allowed_functions *functions);

#endif
