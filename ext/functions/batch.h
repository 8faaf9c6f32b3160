/*
** batch.h: reads the array of releases that dp_batch() makes and dp_plan() plans. Both accept
** the same array, and refuse the same ones.
*/
#ifndef DIFFUSE_FUNCTIONS_BATCH_H
#define DIFFUSE_FUNCTIONS_BATCH_H

#include "functions/functions.h"
#include "release/parameters.h"

/* {"tier", "kind", "sql", "options", "diffuse": ["tier", ...]} */
struct batch_element {
  sqlite3_value *tier, *kind, *sql, *options; /* copies; null: not given */
  char **outer;  /* the tiers of "diffuse", then a null pointer; null: not given */
  int is_nested; /* the element has sql, options or diffuse, so all options are in "options" */
};

/* One release of the array. Its question has been compiled, unless only a plan has none. */
struct batch_item {
  struct batch_element element;
  struct request request;
};

struct batch_items {
  struct host *host;
  int plans; /* dp_plan(): an element may have no question */
  struct batch_item *list;
  int count;
};

/*
** Reads and checks all elements of the array, and compiles their questions without running them.
** Returns 1, or 0 with the error of the session set. The caller clears the items in both cases.
*/
int batch_items_read(struct batch_items *items, const char *array);
void batch_items_clear(struct batch_items *items);

/* Puts the number of the release, from 0, before the error message. Always returns 0. */
int batch_items_fail(const struct batch_items *items, int number);

#endif
