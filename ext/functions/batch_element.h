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
  char **outer; /* the tiers of "diffuse", then a null pointer; null: not given or empty */
  int outer_count;
  int is_nested; /* the element has sql, options or diffuse, so all options are in "options" */
};

/*
** Reads the members of an element. In a nested element, other members are an error. In an element
** that is not nested, other members are options of the release, and this function skips these
** options. Returns 1, or 0 with the error in the JSON reader. The caller clears the element in
** either case.
*/
int batch_element_read(struct batch_element *element, struct json *json, const char *object);
void batch_element_clear(struct batch_element *element);

#endif
