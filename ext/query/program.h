/*
** program.h: the program of a statement, as EXPLAIN shows it, and facts about it that can be
** proved.
*/
#ifndef DIFFUSE_QUERY_PROGRAM_H
#define DIFFUSE_QUERY_PROGRAM_H

#include <sqlite3ext.h>

#include "query/allowed_functions.h"

/* The properties of an instruction that raises no error and computes from values and its row. */
struct operation {
  const char *name;
  int jumps;       /* it may jump to p2 */
  int writes;      /* the register that it writes: 1, 2, 3 for p1, p2, p3; 0 for none */
  int reads;       /* the registers that it reads: bits 1, 2, 4 for p1, p2, p3 */
  int is_function; /* it calls a function, which must be checked too */
  int is_virtual;  /* it reads a virtual table, which may do anything */
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
** Reads the program of a statement. The program is empty if it cannot be read. The caller must call
** program_clear() in either case.
*/
void program_read(struct program *program, sqlite3 *db, const char *sql);
void program_clear(struct program *program);

/* Whether an instruction writes a register. */
int instruction_writes(const struct program_instruction *instruction, int place);

/*
** Whether no instruction of a loop reads a value that an earlier row left in a register: the loop
** writes every register before it reads it. The accumulators of aggregates are exempt.
*/
int program_keeps_nothing(const struct program *program, int first, int last);

/*
** Whether an instruction is known to raise no error. `functions` are those of the connection.
** Instructions on virtual tables are not safe.
*/
int instruction_is_safe(const struct program_instruction *instruction,
                        const struct allowed_functions *functions);

#endif
