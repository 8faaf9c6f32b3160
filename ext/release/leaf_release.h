/*
** leaf_release.h: releases of one quantile by the exponential mechanism (mechanism/exponential.h).
**
** The rows are added up in the leaves of the range, and one leaf is drawn. The ledger stores it as
** a point of clock 0 with one coordinate, the index of the leaf. No noise can make a point for an
** outer tier from it, and no draw one for an inner tier, so the release stays at its tier.
*/
#ifndef DIFFUSE_RELEASE_LEAF_RELEASE_H
#define DIFFUSE_RELEASE_LEAF_RELEASE_H

#include "mechanism/exponential.h"
#include "release/procedure.h"

extern const struct procedure leaf_procedure;

/* Returns whether the mechanism can make a release of this kind with these parameters. */
int leaf_release_suits(const struct aggregate *aggregate, const struct ledger_release *release);

/* Returns whether the publication is such a release. */
int is_leaf_release(const struct publication *publication);

/*
** Returns the tilt of a draw at the publication's tier. The draw costs the tiers that pay for it a
** curve. If exact Gaussian accounting is among them, it costs all of them a rate
** (bounded_range_gaussian_rate()), and leaf_costs_rate() is 1.
*/
struct tilt leaf_tilt(const struct publication *publication);
int leaf_costs_rate(const struct publication *publication);

/*
** Returns the half-width of the 95% interval of the error of a draw of this rate if the rows are
** spread evenly over the range: in rows if `rows` is NaN. Otherwise `rows` is a guess of their
** number, and the result is in the unit of the values and includes half a leaf.
*/
double leaf_half_width(const struct publication *publication, double rows, double rate);

#endif
