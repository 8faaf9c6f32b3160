/* charge.h: the payments of tiers (dp_charge). */
#ifndef DIFFUSE_LEDGER_CHARGE_H
#define DIFFUSE_LEDGER_CHARGE_H

#include "ledger/budget.h"
#include "ledger/handle.h"

/*
** A row of dp_charge, with two facts of other tables that its hash covers: the subject (SUBJECT
** below) and the rate of the tier. The struct does not own the texts; null stands for NULL.
*/
struct charge {
  int64_t id, release_id;
  const char *release, *tier, *subject;
  double tier_rate, rate, slack, delta;
  struct bytes curve;
  const char *at, *period, *grant_name, *kind;
};

/* Computes the hash of a charge after the charge whose hash is `previous`; both may be the same. */
void charge_hash(const char *previous, const struct charge *charge, char hash[HASH_SIZE]);

/* Returns the amount that a tier has paid for a release so far, less what was returned. */
struct payment paid_for(struct ledger *ledger, int64_t release_id, const char *tier);

/*
** A return is rounded to a double towards 0. What it leaves exceeds what the tier owes by at most
** this part, because a charge is at most 2^15 times what is left of it.
*/
#define RETURN_ROUNDING 0x1p-37

/*
** Returns the rate that a tier owes for a release: that of its innermost publication at the tier or
** outside it, or 0.
*/
double owed_for(struct ledger *ledger, int64_t release_id, double tier_rate);

/*
** Charges a new tier for everything that the nearest tier outside it has paid.
*/
int charge_inherited(struct ledger *ledger, const struct ledger_tier *tier, const char *outer);

/*
** SQL for the subject of a charge, which the hash of the charge covers. The subject consists of the
** ledger's terms and the columns of the release that determine the sensitivity.
*/
#define SUBJECT(release_id)                                                                        \
  "(SELECT l.id || '/' || protects || '/' || adjacency || '/' || fingerprint || '/' ||"            \
  " granularity || '/' || shift || '/' || sensitivity FROM dp_ledger l, dp_release r"              \
  " WHERE r.id = " release_id ")"

/* ---- a row of dp_release, for dp_verify() (store.c) ------------------------------------------ */

/*
** The columns that release_read() reads from a row, the first of them in column 0. release_read()
** checks nothing, sets the error if memory runs out, and returns the column after them.
*/
#define RELEASE_COLUMNS                                                                            \
  "id, name, kind, mechanism, clip, weight, centre, radius, theta, rho, lo, hi, grid, diagnose,"   \
  " until, least, stop, key_share, size, max_groups, quantiles, keys, ways, multipliers, "         \
  "periods, appended, secret,"                                                                     \
  " unit_type, model, dimension, granularity, shift, sensitivity, slack, options, sql, statement," \
  " fingerprint, state"
int release_read(struct ledger *ledger, sqlite3_stmt *row, struct ledger_release *release);

#endif
