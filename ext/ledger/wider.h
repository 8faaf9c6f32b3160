/*
** wider.h: the wider unit of a ledger (dp_within), such as the household, and its epsilon.
**
** A release moves by at most s lattice steps when one unit is absent, and by at most f s when one
** wider unit is (sums/layout.h). So its zCDP rate for wider units is at most f^2 times the charged
** rate, and its epsilon of pure differential privacy at most f times the charged epsilon. The
** factors hold for sums of costs, for filters and for releases that are chosen adaptively, because
** they are the same for every release. Wider units therefore need no budget of their own.
**
** There is no such factor for a Renyi curve at one order, so a tier with the accountant 'rdp'
** admits no curve in a ledger with a wider unit (charge.c). Every tier then has rates alone, or
** epsilons alone.
*/
#ifndef DIFFUSE_LEDGER_WIDER_H
#define DIFFUSE_LEDGER_WIDER_H

#include "ledger/ledger.h"

/*
** Returns f, how many units a wider unit may count. Returns 0 if none is declared, or after setting
** the ledger's error.
*/
double ledger_wider_factor(struct ledger *ledger);

/*
** Returns the epsilon of a wider unit for a total rate, or for a total of pure epsilons if `rate`
** is 0. It belongs to the same delta as the tier's, and is rounded up. Returns NaN if `factor` is
** 0.
*/
double wider_epsilon(const struct ledger_tier *tier, double rate, double pure, double factor);

/* Sets *epsilon to the same for what a tier has spent so far. Returns 0 with the ledger's error. */
int wider_spent(struct ledger *ledger, const struct ledger_tier *tier, double *epsilon);

/* Returns the same for the whole budget of a tier. */
double wider_budget(const struct ledger_tier *tier, double factor);

/* Stores wider_budget() of every tier, after a declaration. Returns 0 with the ledger's error. */
int wider_budgets_write(struct ledger *ledger);

#endif
