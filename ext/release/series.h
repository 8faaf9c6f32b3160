/*
** series.h: the life of a series, a release whose numbers arrive period by period. It is charged
** once, when it is declared (publish.c), and each append then publishes all missing periods up to
** one at every tier that has the series.
**
** An append has three steps: series_begin() reads from the ledger what is known; the caller counts
** the rows of the missing periods with series_count(); series_finish() draws the points and
** computes the figures of all tiers, while the ledger is not locked, and then stores them in one
** transaction, with the exact sums and the book of allowances (sums/allowance.h). If the series has
** changed in the meantime, nothing is stored and the caller begins anew. Nothing of an append is
** stored before its transaction, and what it reads stays in memory.
*/
#ifndef DIFFUSE_RELEASE_SERIES_H
#define DIFFUSE_RELEASE_SERIES_H

#include "release/numbers.h"
#include "sums/allowance.h"

/*
** Draws a secret for the book of allowances, in hexadecimal. Null: no random bytes, or no memory.
*/
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
  int is_stale;                /* the series has changed meanwhile */
  int64_t seal;                /* the last one of the series when the append began */
  struct allowances *book;     /* owned */
  int128 *sums;                /* the exact sums of all periods to `period`, in fine steps; owned */
  struct ledger_path path;     /* the points before the append; owned */
  struct appended_tier *tiers; /* of the points; owned */
};

/*
** Begins to append a series up to a period. If the period has been published already, sets the
** answer (publication->answered). Otherwise sets publication->missing, and the caller counts the
** rows of these periods. Returns 1, or 0 after setting the session's error. The caller clears the
** append and the publication in both cases.
*/
int series_begin(struct publication *publication, struct session *session, const char *name,
                 const char *period, struct append *append);
void append_clear(struct append *append);

/* Counts a unit. The function has the signature of take_matrix (sums/vector_sum.h). */
struct counting {
  const struct publication *publication;
  struct append *append;
};
int series_count(void *counting, struct identity unit, size_t count, const uint32_t *slots,
                 int128 *values);

/*
** Publishes the missing periods and sets the answer. Returns 1, or 0 with append->is_stale set, or
** 0 after setting the session's error.
*/
int series_finish(struct publication *publication, struct append *append);

/*
** Publishes a series at an outer tier, in a transaction of its own, after `publication` has charged
** and drawn with draws_only in a transaction that was rolled back, when `seal` was the last seal of
** the ledger. Computes the figures while the ledger is not locked. If the ledger has changed,
** stores nothing and sets no answer. Returns 1, or 0 after setting the session's error.
*/
int series_publish(struct publication *publication, int64_t seal);

/*
** Reads the points of a series that is published at the publication's tier, and sets
** publication->grid and its clock. *values has the points of the appended periods; the caller frees
** them with sqlite3_free(). The publication has its session and tiers, and its release. Returns 1,
** or 0 after setting the session's error.
*/
int series_points(struct publication *publication, int64_t **values);

#endif
