/*
** program.h: the program of a statement, as EXPLAIN shows it, as far as something can be proved
** about it.
*/
#ifndef DIFFUSE_QUERY_PROGRAM_H
#define DIFFUSE_QUERY_PROGRAM_H

#include <sqlite3ext.h>

#include "query/allowed_functions.h"

/* What is known of an instruction that raises no error and computes from values and its row. */
struct operation {
  const char *name;
  int jumps;       /* maybe to p2 */
  int writes;      /* which register: 1, 2, 3 for p1, p2, p3; 0: none */
  int reads;       /* which registers: bits 1, 2, 4 for p1, p2, p3 */
  int is_function; /* of which more has to be known */
  int is_virtual;  /* of a virtual table, which may be anything */
};

struct program_instruction {
  char name[20];
  const struct operation *operation; /* null: anything may happen */
  int p1, p2, p3, p5;
  char *p4; /* null: none */
};

struct program {
  struct program_instruction *list;
  int count;
};

/*
** Reads the program of a statement; an empty one where it cannot be had. program_clear() is due in
** either case.
*/
void program_read(struct program *program, sqlite3 *db, const char *sql);
void program_clear(struct program *program);

/* Whether an instruction writes a register. */
int instruction_writes(const struct program_instruction *instruction, int place);

/*
** Whether no instruction of a loop reads what an earlier row has left in a register: none is read
** before the loop has written it. Aggregates keep what they are made to keep.
*/
int program_keeps_nothing(const struct program *program, int first, int last);

/*
** Whether an instruction is known to raise no error; functions: those of the connection. Virtual
** tables are not.
*/
int instruction_is_safe(const struct program_instruction *instruction,
                        const struct allowed_functions *functions);

#endif
