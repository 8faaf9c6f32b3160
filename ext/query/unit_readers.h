/*
** unit_readers.h: evaluates a question for one unit after the other on several connections to the
** same file, each with a thread of its own (readers.h, S2, S5 and S6).
**
** The units are divided into parts. A part has all units from one value to before another value, in
** the order of the streams (unit_loop.h). Each thread takes a part: its connection reads and sorts
** the rows of these units only, and an evaluator of its own evaluates them. Every connection reads
** through the whole tables, which takes a tenth of the time of the rest.
**
** Requirements:
**   P1  Every unit is in exactly one part, with all its rows. All connections compare units in the
**       same way, because the units have the collation BINARY.
**   P2  Every connection reads the same rows of a unit in the same order. The programs of the
**       statements are equal, and they use no function and no collation that the host may have
**       replaced. That the host has not replaced the collation BINARY is not proved.
**   P3  Every evaluator gives a unit the same results (evaluator_copy()).
**   P4  If S2, P1, P2 or P3 cannot be shown, the host's thread evaluates all units. The released
**       values are the same in both cases, because sums are exact integers in any order.
*/
#ifndef DIFFUSE_QUERY_UNIT_READERS_H
#define DIFFUSE_QUERY_UNIT_READERS_H

#include "query/readers.h"
#include "query/unit_loop.h"

/*
** Does the same as unit_loop_run() for `loop`, which has read no row yet, on all connections. Sets
** *rc to SQLITE_DONE, or to another result code with the error set. Returns 1, or 0 if the host's
** thread must evaluate all units (P4).
*/
int unit_readers_run(struct readers *readers, const struct unit_loop *loop,
                     const struct rows_opener *opener, int *rc, struct error *error);

#endif
