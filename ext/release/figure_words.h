/* figure_words.h: says in words what the numbers of a release are, for the column `figure` of
** dp_value and dp_answer(), and what clipping did to its units. */
#ifndef DIFFUSE_RELEASE_FIGURE_WORDS_H
#define DIFFUSE_RELEASE_FIGURE_WORDS_H

#include <sqlite3ext.h>

#include "ledger/ledger.h"
#include "release/clipped.h"
#include "release/kinds.h"

/* figure_words() returns what is counted, added up or averaged, how much of it one unit can
** contribute, and what did not arrive in the numbers: "rows, at most 5 of each member; groups below
** about 24 rows do not appear; about 12% was cut off, from 31% of members". figure_component()
** returns what one of several numbers is: "20 to 40". figure_append_move() appends how a public
** bound moves the numbers: ", shrunk towards 0". Their parameters: ledger/ledger.h. */
describe_figure figure_words;
describe_component figure_component;
describe_move figure_append_move;

/* Appends which groups a release with private keys leaves out: "groups below about 24 rows do not
** appear". `unit` is null if the ledger protects rows. */
void figure_append_threshold(sqlite3_str *text, const char *kind, double clip, const char *unit,
                             double threshold);

/* ---- what clipping did to the units of a release (the option diagnose) ----------------------- */

/* What the sentence about the units of a release depends on. */
struct clipping_words {
  const char *unit; /* the ledger's name for a unit; null: "unit" */
  int by_unit;      /* 0: the ledger protects rows */
  const struct aggregate *aggregate;
  double clip;
  int keys_are_private;
  int is_series; /* clip is for all periods together, and nothing counts values outside lo and hi */
};

/* Returns what follows the share in the sentence, for example "of patients were cut down to the
** bound, because their total was beyond clip: a larger clip would lower the bias". If the share is
** NaN, returns the whole sentence. The caller calls sqlite3_free(). Returns null if memory runs
** out. */
char *clipping_words(const struct clipped_share *share, const struct clipping_words *words);

/* Returns how much of the total was cut off: "about 12% of the total was cut off (9% to 15%), if no
** patient has more than 4 times clip". The caller calls sqlite3_free(). Returns null if memory runs
** out. Of a wide interval it gives the ends. */
char *clipping_amount(const struct ledger_clipping *clipping, const struct clipping_words *words);

/* Returns the sentence, with the interval of the share if the sentence has no advice, and how much
** was cut off. The caller calls sqlite3_free(). Returns null if memory runs out. */
char *clipping_sentence(const struct clipped_share *share, const struct ledger_clipping *clipping,
                        const struct clipping_words *words);

/* Returns a share in percent, as the sentence gives it. */
int clipping_percent(double share);

#endif
