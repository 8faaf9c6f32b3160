/*
** figure_words.h: says in words what the numbers of a release are, for the column `figure` of
** dp_value and dp_answer().
*/
#ifndef DIFFUSE_RELEASE_FIGURE_WORDS_H
#define DIFFUSE_RELEASE_FIGURE_WORDS_H

#include <sqlite3ext.h>

#include "ledger/ledger.h"

/*
** Returns what is counted, added up or averaged, and how much of it one unit can contribute: "rows,
** at most 5 of each member". `unit` is the word for a unit, or null if the ledger protects rows.
** The caller calls sqlite3_free(). Returns null if memory runs out.
*/
char *figure_words(const struct ledger_release *release, const char *unit);

/* Appends the plural of a unit's word: patients, families, classes. */
void append_plural(sqlite3_str *text, const char *unit);

#endif
