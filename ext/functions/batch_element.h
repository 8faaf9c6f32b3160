/*
** batch_element.h: reads one element of the array that dp_batch() and dp_plan() take:
** {"tier", "kind", "sql", "options", "diffuse": ["tier", ...]}.
*/
#ifndef DIFFUSE_FUNCTIONS_BATCH_ELEMENT_H
#define DIFFUSE_FUNCTIONS_BATCH_ELEMENT_H

#include <sqlite3ext.h>

#include "base/json.h"

struct batch_element {
  sqlite3_value *tier, *kind, *sql, *options; /* copies; null: not given */
  char **outer; /* the tiers of "diffuse", and a null pointer; null: none */
  int outer_count;
  int is_nested; /* it has sql, options or diffuse: its options are not members of its own */
};

/*
** Reads the members that have a meaning here. An element that is not nested may have others, which
** are options. Returns 1, or 0 with the error in the JSON reader. Clear the element in both cases.
*/
int batch_element_read(struct batch_element *element, struct json *json, const char *object);
void batch_element_clear(struct batch_element *element);

#endif
