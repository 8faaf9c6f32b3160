/* procedure.h: the steps of a release that differ between kinds (publish.c calls these steps). The
** kinds of the core have the path of points (path.c), except that the mechanism 'exponential' has
** leaf_release.c. A kind of a room beside the core (kinds.h) may have a procedure of its own. Each
** step returns 1, or 0 after setting the session's error. */
#ifndef DIFFUSE_RELEASE_PROCEDURE_H
#define DIFFUSE_RELEASE_PROCEDURE_H

#include "release/release.h"

struct request; /* release.h */

struct procedure {
  /* Steps that complete a request; null: nothing to do. request.details has `details` bytes, which
  ** hold the parameters that only this kind has (`options` in kinds.h). finish() sets their
  ** defaults and checks the request. publics() returns how many public rows follow those of the
  ** question. settle() sets the parameters that depend on the tier and the ledger; if a release
  ** with the request's name exists (`found`), the publication holds it. clear() frees what the
  ** details own. */
  size_t details;
  int (*finish)(struct request *request, int by_unit, struct error *error);
  double (*publics)(const struct request *request);
  int (*settle)(struct publication *publication, struct request *request, int found);
  void (*clear)(void *details);
  /* Notes what has to be computed before the charge, while the ledger is not locked (release.h).
  ** Reports no error, because charge() will report it. Null: nothing to compute. */
  void (*prepare)(const struct publication *publication, const struct request *request);

  /* Makes definition.details from the release. Returns null if the release is impossible, with an
  ** error only when out of memory. Null: the kind has no details. */
  void *(*describe)(const struct publication *publication);
  /* Changes the contribution of a unit before its layout is made; null: changes nothing. */
  void (*contribute)(const struct definition *definition, struct contribution *contribution);

  /* Inserts a new release into the ledger and charges it. */
  int (*charge)(struct publication *publication);
  /* Draws from the exact totals on the lattice. Stores nothing. */
  int (*draw)(struct publication *publication, const int64_t *totals);
  /* 1: a draw may take minutes and reads nothing from the ledger, so draw() is called before the
  ** transaction that stores its result. A second call inside the transaction draws nothing. */
  int draws_early;
  /* Stores and publishes the result of draw(). */
  int (*keep)(struct publication *publication);
  /* The part of an error that follows the name of a release. It says why the release cannot be
  ** published at an outer tier, or only through a kernel. Null if the release has a path. */
  const char *stays;
  /* 1: no tier inside the first point can get a point from the data. */
  int never_refines;
  /* Checks that a stored release may be diffused from tier `from` to the publication's tier.
  ** `clock` is the clock of the new point at one tier on this way. Null: it may. */
  int (*diffusible)(const struct publication *publication, int from, uint64_t clock);
  /* A check of dp_verify() (ledger.h): the publication follows from the mechanism and the kernels.
  ** The member is null if the release has a path; stored_point.c checks the path. */
  int (*verify)(struct publication *publication, const struct ledger_publication *published);
  /* For a release with a path: checks that the stored curve of a publication is at least the cost
  ** that its mechanism computes at this clock. `curve` may be null. Null: the cost is that of the
  ** noise, which the ledger checks. */
  int (*paid)(struct publication *publication, uint64_t clock, const double *curve);
};

/* Returns the procedure of a release (publish.c). */
const struct procedure *procedure_of(const struct definition *definition);

/* ---- releases with a point at each tier (path.c) --------------------------------------------- */

extern const struct procedure path_procedure;

/* The steps of path_procedure, for procedures that change others. */
int path_charge(struct publication *publication);
int path_draw(struct publication *publication, const int64_t *totals);
int path_keep(struct publication *publication);

/* Publishes an existing release at the publication's tier. Uses the stored point of the tier if
** there is one. Otherwise diffuses the outermost point, draws a point between two others, or begins
** to refine the innermost point if `may_refine` is 1. The publication must already have the grid of
** the path. Returns 1, or 0 after setting the ledger's error.
**
** With publication->draws_only, path_publish() charges and draws, and the caller rolls the
** transaction back. If the ledger has not changed in the meantime, path_publish_drawn() later does
** the whole work, with the points that were drawn. Nobody has seen them before its commit. */
int path_publish(struct publication *publication, const struct ledger_path *path, int may_refine);
int path_publish_drawn(struct publication *publication);

/* Stores a new series at its tier: its point, which has no coordinate yet, and its publication. The
** series is already charged. */
int path_declare(struct publication *publication);

/* Charges a new release in advance for a later publication at this outer tier. The release must
** already be charged at its own tier. Returns 1, or 0 after setting the ledger's error. */
int path_prepay(struct publication *publication, int tier);

/* ---- releases of one quantile by the exponential mechanism (leaf_release.c) ------------------ */

extern const struct procedure leaf_procedure;

/* Returns whether the mechanism can make a release of this kind with these parameters. */
int leaf_release_suits(const struct aggregate *aggregate, const struct ledger_release *release);

/* Returns whether the publication is such a release. */
int is_leaf_release(const struct publication *publication);

/* Returns the tilt of a draw at the publication's tier. The draw costs the tiers that pay for it a
** curve. If exact Gaussian accounting is among them, it costs all of them a rate
** (bounded_range_gaussian_rate()), and leaf_costs_rate() is 1. */
struct tilt leaf_tilt(const struct publication *publication);
int leaf_costs_rate(const struct publication *publication);

/* Returns the half-width of the 95% interval of the error of a draw of this rate if the rows are
** spread evenly over the range: in rows if `rows` is NaN. Otherwise `rows` is a guess of their
** number, and the result is in the unit of the values and includes half a leaf. */
double leaf_half_width(const struct publication *publication, double rows, double rate);

/* ---- releases that stop when they are accurate enough (path.c) ------------------------------- */

/* Returns whether a release has the option until. */
int until_is_given(const struct ledger_release *release);

/* dp_plan(): returns the expected cost of a new release, divided by that of the ceiling, if each
** figure is `figure` and comes from `rows` rows; NaN if no rung has a half-width for them. */
double until_expected_part(struct publication *publication, double figure, double rows);

#endif
