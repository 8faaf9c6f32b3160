/* internal.h: what the files of this room offer each other, and no other room. */
#ifndef DIFFUSE_RELEASE_INTERNAL_H
#define DIFFUSE_RELEASE_INTERNAL_H

#include "release/release.h"
#include "sums/sums.h"

/* ---- the periods of a series (periods.c) ----------------------------------------------------- */

struct periods *periods_retain(struct periods *periods);

/* Returns whether a label is a date of the form of the last period, and after it. */
int periods_is_later(const struct periods *periods, const char *label);

/* Writes the last day of a period, such as 2026-02-28. Returns 0 if the label is not a date. */
#define PERIOD_DAY 11
int periods_last_day(const struct periods *periods, int period, char day[PERIOD_DAY]);

/* Returns the key of a figure: the label of the period, or "first/last" for several periods; with
** groups, a JSON array of this text and the key of the group. `total`: the figure is a running
** total, which is "first/last" even if it has one period. `group` is null without groups. The
** caller calls sqlite3_free(). Null: out of memory. */
char *periods_key(const struct periods *periods, struct span span, int total, const char *group);

/* Reads such a key. If the release has groups, sets *group to the key of the group, which the
** caller frees; otherwise to null. Returns 0 without an error if the text is no such key. */
int periods_read_key(const struct periods *periods, struct json *json, const char *key,
                     int has_groups, struct span *span, char **group);

/* ---- the keys of cross tables (cross_keys.c) ------------------------------------------------- */

struct cross_keys *cross_keys_retain(struct cross_keys *cross_keys);

/* Set the multipliers for noise in the Euclidean norm or in the sum norm, unless they are set.
** cross_keys_measure() computes them (mechanism/mechanism.h) and returns 1, or 0 if memory ran out.
** cross_keys_restore() takes them from the JSON array that the ledger stores, and returns 1, or 0
** with the error set. cross_keys_multipliers() then returns the array for the ledger, which the
** caller frees. */
int cross_keys_measure(struct cross_keys *cross_keys, int in_sum_norm);
int cross_keys_restore(struct cross_keys *cross_keys, int in_sum_norm, const char *stored,
                       struct error *error);
char *cross_keys_multipliers(const struct cross_keys *cross_keys, int in_sum_norm);

/* ---- definitions (definition.c) -------------------------------------------------------------- */

/* Sets the kind, contribution and layout of a publication whose release already has its parameters.
** `keys` is the number of public keys. definition_describe_stored() does this for a release that
** the ledger has. Both return 1, or 0 after setting the session's error. */
int definition_describe(struct publication *publication, int keys);
int definition_describe_stored(struct publication *publication);

/* Checks that the release protects the wider unit of the ledger, if it has one (dp_within). Returns
** 1, or 0 with the error set. */
int definition_check_wider(const struct publication *publication);

/* Returns the grid of the release's stored points, without the texts of the keys. */
struct ledger_grid definition_grid(const struct publication *publication);

/* Return the number of coordinates of a point, and of one period of a series. */
size_t grid_size(const struct ledger_grid *grid);
size_t period_size(const struct definition *definition);

void grid_clear(struct ledger_grid *grid);

/* Reads the points of a described release. Their grid becomes that of the publication. Call
** ledger_path_free() also after a failure. Returns 1, or 0 after setting the ledger's error. */
int definition_path(struct publication *publication, struct ledger_path *path);

/* Checks that the keys in publication->grid, which were read from the path, are the public keys of
** the release. */
int definition_same_keys(const struct publication *publication);

/* Returns the point that a path has for a tier, or null. */
const struct ledger_point *path_point(const struct ledger_path *path, const char *tier);

/* Writes the key that the coordinates of a period of a series have in the ledger. */
#define PERIOD_KEY 12
const char *definition_period_key(int period, char key[PERIOD_KEY]);

/* Checks that the lattice in the ledger fits the layout of the release: the spacing of the lattice
** is that of the layout, and the stored sensitivity is at least that of the mechanism. */
int definition_same_lattice(const struct publication *publication);

/* Returns what the estimators read of the release, with `delta` for the selection of private
** keys. It points into the publication. */
struct reading definition_reading(const struct publication *publication, double delta,
                                  double confidence);

/* Return 0 after setting the session's error: a draw got no random bytes, or the ledger has a
** release without the values that it must have. */
int no_random_bytes(const struct publication *publication);
int lost_values(const struct publication *publication);

/* ---- parameters (parameters.c) --------------------------------------------------------------- */

/* Returns the parameters as JSON with decimal numbers. The caller frees the text. */
char *request_options(const struct request *request);

/* Sets the mechanism of a request that does not name one. The publication has the tiers and the
** place of the request's tier among them, and, if `found`, the release that has the request's name.
** At a tier whose accountant does not cover Gaussian noise, this is the first mechanism of the kind
** whose noise the tier covers. A category gets the mechanism for epsilons (mechanism/mechanism.h)
** if all tiers that pay add up epsilons alone. For one quantile without keys at the outermost tier,
** it is the draw of a leaf (drawn_quantile.c) if this is more precise. At other tiers, for models,
** for dp_merge(), and for kinds without such a mechanism, the default of the kind stays. The choice
** depends on public parameters only. Returns 1, or 0 after setting the ledger's error. */
int request_default_mechanism(struct request *request, const struct publication *publication,
                              int found);

/* ---- the numbers of a point (published_numbers.c) -------------------------------------------- */

/* Computes the published numbers of a point, with intervals of this confidence, or those of a
** statistic that is inside the release (mechanism/mechanism.h). The selection of private keys uses
** `delta`. The caller clears the numbers in both cases. Of a series, these are the figures of the
** periods from publication->missing.first on. Returns 1, or 0 after setting the ledger's error. */
int numbers_read(const struct publication *publication, double delta, double confidence,
                 enum inside inside, const int64_t *values, struct numbers *numbers);

/* Stores the publication and the values of a point, and sets the answer. If dp_mix() gave a kernel
** for this tier, applies the kernel to the values first. Returns 1, or 0 after setting the ledger's
** error. */
int values_store(struct publication *publication, const struct cost *cost, const int64_t *values);

/* Sets the share of the total that was cut off, with its 95% interval, in the same way as
** clipped_units(), from the noisy counts of the ladder's rungs (sums/layout.h). They have the noise
** clipping->stddev.
**
** No noisy number can exclude that few units are very large, and the noise of a rung weighs as much
** as its size. So the highest rung J whose count noise alone reaches with probability 1e-3 at most
** decides. Rungs up to J give the lower end: leaving out higher rungs can only lower the share.
** Rungs up to J + 1 give the share and the upper end, which holds if no unit is larger than that
** rung. Because the counts choose J, each end is computed for 97.5% in place of 95%: three such
** ends can fail together (that for the rung below or at the largest unit, and for one more). */
void clipped_amount(const struct noise_law *noise, const double *rungs,
                    struct ledger_clipping *clipping);

/* ---- procedures ------------------------------------------------------------------------------ */

/* Returns the procedure of a release: that of its kind, or one of these two (publish.c). */
const struct procedure *procedure_of(const struct definition *definition);
extern const struct procedure path_procedure, leaf_procedure;

/* ---- releases with a point at each tier (noise_path.c) --------------------------------------- */

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

/* Returns whether a drawn quantile costs the tiers that pay for it a rate (leaf_tilt()). */
int leaf_costs_rate(const struct publication *publication);

/* ---- series (series.c) ----------------------------------------------------------------------- */

/* Draws a secret for the book of allowances, in hexadecimal. Null: no random bytes, or no
** memory. */
char *series_secret(void);

/* What an append draws and computes for a tier that has a point. */
struct appended_tier {
  int is_published;       /* otherwise the tier only lies between two others */
  int64_t *values;        /* the points of the tier, of all periods to the appended one; owned */
  struct numbers numbers; /* the figures of the missing periods */
};

/* What an append computes. */
struct append {
  int period;                  /* the period that is asked for */
  int64_t seal;                /* the last one of the series when the append began */
  struct allowances *book;     /* owned */
  int128 *sums;                /* the exact sums of all periods to `period`, in fine steps; owned */
  struct ledger_path path;     /* the points before the append; owned */
  struct appended_tier *tiers; /* of the points; owned */
};

/* Publishes a series at an outer tier, in a transaction of its own, after `publication` has charged
** and drawn with draws_only in a transaction that was rolled back, when `seal` was the last seal of
** the ledger. Computes the figures while the ledger is not locked. If the ledger has changed,
** stores nothing and sets no answer. Returns 1, or 0 after setting the session's error. */
int series_publish(struct publication *publication, int64_t seal);

#endif
