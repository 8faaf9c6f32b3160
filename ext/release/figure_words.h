/*
** figure_words.h: says in words what the numbers of a release are, for the column `figure` of
** dp_value and dp_answer().
*/
#ifndef DIFFUSE_RELEASE_FIGURE_WORDS_H
#define DIFFUSE_RELEASE_FIGURE_WORDS_H

#include <sqlite3ext.h>

#include "ledger/ledger.h"

/*
** figure_words() returns what is counted, added up or averaged, how much of it one unit can
** contribute, and what did not arrive in the numbers: "rows, at most 5 of each member; groups below
** about 24 rows do not appear; about 12% of members were cut down". figure_component() returns
** what one of several numbers is: "20 to 40". figure_append_move() appends how a public bound moves
** the numbers: ", shrunk towards 0". Their parameters: ledger/ledger.h.
*/
describe_figure figure_words;
describe_component figure_component;
describe_move figure_append_move;

/*
** Appends which groups a release with private keys leaves out: "groups below about 24 rows do not
** appear". `unit` is null if the ledger protects rows.
*/
void figure_append_threshold(sqlite3_str *text, const char *kind, double clip, const char *unit,
                             double threshold);

#endif
