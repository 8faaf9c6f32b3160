/* stream_proof.c: see stream_proof.h. */
#include "query/stream_proof.h"

#include <string.h>

#include "query/program.h"

SQLITE_EXTENSION_INIT3

#define MOST_LOOPS 8

struct loops {
  int filters[MOST_LOOPS], nexts[MOST_LOOPS]; /* addresses; the outermost loop comes first */
  int opens, filter_count, next_count, results, result;
};

static int is(const struct program_instruction *here, const char *name) {
  return strcmp(here->name, name) == 0;
}

/* Collects the addresses of the loops. Returns 0 if an instruction is not known to be harmless. */
static int collect(const struct program *program, const struct allowed_functions *functions,
                   struct loops *loops) {
  *loops = (struct loops){.results = 0};
  for (int i = 0; i < program->count; i++) {
    const struct program_instruction *here = &program->list[i];
    if (is(here, "VOpen")) {
      loops->opens++;
    } else if (is(here, "VFilter")) {
      if (loops->filter_count == MOST_LOOPS || loops->next_count) return 0;
      loops->filters[loops->filter_count++] = i;
    } else if (is(here, "VNext")) {
      if (loops->next_count == MOST_LOOPS) return 0;
      loops->nexts[MOST_LOOPS - 1 - loops->next_count++] = i;
    } else if (is(here, "ResultRow")) {
      loops->results++;
      loops->result = i;
    } else if (!is(here, "VColumn") &&
               (!instruction_is_safe(here, functions) || is(here, "AggStep"))) {
      return 0;
    }
  }
  return 1;
}

/*
** Returns whether loop i is inside loop i - 1 for each i, and the only ResultRow is inside all
** loops.
*/
static int are_nested(const struct program *program, const struct loops *loops) {
  int count = loops->filter_count, first = MOST_LOOPS - loops->next_count;
  if (!count || loops->next_count != count || loops->opens != count || loops->results != 1)
    return 0;
  for (int i = 0; i < count; i++) {
    const struct program_instruction *filter = &program->list[loops->filters[i]];
    const struct program_instruction *next = &program->list[loops->nexts[first + i]];
    int inside = i + 1 < count ? loops->filters[i + 1] : loops->result;
    if (filter->p1 != next->p1 || next->p2 <= loops->filters[i] || next->p2 > inside) return 0;
  }
  return loops->result > loops->filters[count - 1] && loops->result < loops->nexts[MOST_LOOPS - 1];
}

/*
** Returns whether the program jumps backward only in the VNext of its loops and in its last
** instruction. SQLite sets the constants of a statement at the end of the program. The last
** instruction, a Goto, then jumps to instruction 1.
*/
static int goes_forward(const struct program *program) {
  for (int i = 0; i < program->count; i++) {
    const struct program_instruction *here = &program->list[i];
    /* before SQLite 3.36, a comparison with this flag stores its result in register p2 */
    int stores = here->operation->writes == 2 && here->p5 & 0x20;
    int is_start = is(here, "Goto") && here->p2 == 1 && i == program->count - 1;
    if (here->operation->jumps && here->p2 <= i && !is(here, "VNext") && !stores && !is_start)
      return 0;
  }
  return 1;
}

int stream_prove(sqlite3 *db, const char *sql, const struct allowed_functions *functions,
                 int tables, struct stream_facts *facts) {
  struct program program;
  struct loops loops;
  program_read(&program, db, sql);
  *facts = (struct stream_facts){.length = program.count};
  for (int i = 0; i < program.count; i++) facts->reads_rowids |= is(&program.list[i], "Rowid");
  int proved = program.count && collect(&program, functions, &loops) &&
               are_nested(&program, &loops) && loops.opens == tables && goes_forward(&program) &&
               program_keeps_nothing(&program, loops.filters[0] + 1,
                                     loops.nexts[MOST_LOOPS - loops.next_count]);
  program_clear(&program);
  return proved;
}
