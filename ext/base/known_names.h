/*
** known_names.h: errors about a name that is not known. They list the known names, and ask whether
** the nearest one was meant.
*/
#ifndef DIFFUSE_BASE_KNOWN_NAMES_H
#define DIFFUSE_BASE_KNOWN_NAMES_H

#include <sqlite3ext.h>

#include "base/error.h"

#define KNOWN_NAME_MOST 60 /* bytes; the error suggests no longer name */

struct known_names {
  const char *asked; /* the unknown name, or null if the argument was no text */
  /*
  ** The unknown name stands where only a program writes, such as the name of an option. The error
  ** shows it if it has the form of a name. Every other unknown name may be the value of a row, and
  ** an error shows it only if it was typed: if the statement's text has it in quotes (SECURITY.md).
  */
  int shows;
  int distance; /* from `asked` to `nearest` */
  char nearest[KNOWN_NAME_MOST + 1];
  sqlite3_str *list;
};

/* Returns the unknown name if an error may show it, or null. */
const char *known_names_asked(const struct known_names *known, const struct error *error);

/* Offers a name that is known. known_names_fail() or known_names_nearest() must follow. */
void known_names_add(struct known_names *known, const char *name);

/* Frees the list. Returns the nearest name, which belongs to `known`, or null if none is near. */
const char *known_names_nearest(struct known_names *known);

/*
** Sets the error and frees the list. `format` has up to three %s: the unknown name as " 'clpi'" or
** nothing, the question "did you mean 'clip'? " or nothing, and the list of all known names.
** Returns 0.
*/
int known_names_fail(struct known_names *known, struct error *error, const char *format);

/* Reports an unknown member of an object of options. `options` ends with null. Returns 0. */
int unknown_option(const char *key, const char *const *options, struct error *error);

#endif
