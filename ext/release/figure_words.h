/*
** figure_words.h: says in words what the numbers of a release are, for the column `figure` of
** dp_value and dp_answer().
*/
#ifndef DIFFUSE_RELEASE_FIGURE_WORDS_H
#define DIFFUSE_RELEASE_FIGURE_WORDS_H

#include <sqlite3ext.h>

#include "ledger/ledger.h"

/*
** figure_words() returns what is counted, added up or averaged, and how much of it one unit can
** contribute: "rows, at most 5 of each member". figure_append_move() appends how a public bound
** moves the numbers: ", shrunk towards 0". Their parameters: ledger/ledger.h.
*/
describe_figure figure_words;
describe_move figure_append_move;

/* Appends the plural of a unit's word: patients, families, classes. */
void append_plural(sqlite3_str *text, const char *unit);

#endif
