/* tables.c: measures one round of the arithmetic of cross tables: shares and reconciliation of all
** tables of up to three of ten attributes with ten keys each (176 tables, 124,601 cells). Prints
** names and seconds of processor time; bench/tables.py takes medians. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "mechanism/cross_tables.c" /* gives the bench access to its parts */

#define ATTRIBUTES 10
#define KEYS       10
#define WAYS       3
#define TABLES     176
#define CELLS      124601

/* Returns the processor time, because other programs may be running. */
static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(void) {
  static double cells[CELLS], precisions[TABLES], variances[TABLES], weights[TABLES];
  static int multipliers[TABLES];
  unsigned masks[TABLES];
  int sizes[ATTRIBUTES], count = 0;
  double many;
  struct ways ways;
  for (int i = 0; i < ATTRIBUTES; i++) sizes[i] = KEYS;
  for (unsigned mask = 0; mask < 1u << ATTRIBUTES; mask++)
    if (__builtin_popcount(mask) == WAYS) masks[count++] = mask;
  for (int i = 0; i < count; i++) weights[i] = 1;
  if (ways_open(&ways, ATTRIBUTES, sizes, masks, weights, count, &many) != WAYS_FIT ||
      ways.count != TABLES || ways.cells != CELLS)
    return 1;
  double start = seconds();
  if (!shares_multipliers(&ways, 0, multipliers) || !ways_measure(&ways, multipliers)) return 1;
  printf("shares\t%.6f\n", seconds() - start);
  if (!shares_variances(&ways, 0, precisions, variances)) return 1;
  for (int i = 0; i < CELLS; i++) cells[i] = (double)(i % 1009) - 504;
  start = seconds();
  reconcile_tables(&ways, precisions, cells);
  printf("reconcile\t%.6f\n", seconds() - start);
  ways_close(&ways);
  return cells[0] == cells[CELLS - 1]; /* so that no compiler leaves the work out */
}
