/* numbers.h: computes the published numbers from a point. */
#ifndef DIFFUSE_RELEASE_NUMBERS_H
#define DIFFUSE_RELEASE_NUMBERS_H

#include "mechanism/estimate.h"
#include "release/publication.h"

#define NUMBERS_CONFIDENCE 0.95 /* of the intervals that are published and planned */

/* The published numbers of a point. */
struct numbers {
  struct estimate *estimates;
  int count;
  double shrink, confidence;
  struct ledger_clipping clipping; /* NaN without the option diagnose */
  char *const *keys;               /* the keys of the cells; null if there are no keys */
  char **made; /* the keys of cross tables or a series, `made_count` texts; owned */
  int made_count;
  char **sent; /* the keys, if a kernel made the numbers: one allocation; owned */
};

void numbers_clear(struct numbers *numbers);

/*
** Computes the published numbers of a point, with intervals of this confidence. The selection of
** private keys uses `delta`. The caller clears the numbers in both cases. Of a series, these are
** the figures of the periods from publication->missing.first on. Returns 1, or 0 after setting the
** ledger's error.
*/
int numbers_read(const struct publication *publication, double delta, double confidence,
                 const int64_t *values, struct numbers *numbers);

/*
** Does the same for a statistic that is inside the release (mechanism/estimate.h), which has
** neither cross tables nor periods.
*/
int numbers_inside(const struct publication *publication, double delta, double confidence,
                   enum inside inside, const int64_t *values, struct numbers *numbers);

/*
** Computes the figures of `count` spans of a series: the given one, and each next one a period
** later. `values` are the points of its first `appended` periods, as publication->grid has them;
** `total` is that of periods_key(). The groups have their order; the components of a group are
** those of a release of one period.
*/
int numbers_spans(const struct publication *publication, struct span span, int count, int total,
                  double confidence, const int64_t *values, struct numbers *numbers);

/* Converts one of the numbers to the form that the ledger stores. */
struct ledger_value numbers_value(const struct numbers *numbers, const struct estimate *estimate);

/*
** Returns the part of the tier's delta_keys that the selection of private keys may use. Each
** publication of the release uses this part anew.
*/
double numbers_selection_delta(const struct publication *publication);

/*
** Returns the threshold of the publication's tier. A private key is published there if its noisy
** count is at least the threshold. A bin of bounds shows rows if its noisy count is above the
** threshold. `delta` is that of the selection of private keys.
*/
double numbers_threshold(const struct publication *publication, double delta);

/* What a release gives to one of its cross tables, or to the figure of one span of a series. */
struct part_width {
  double half_width; /* of each number; NaN for averages without a guess at the rows */
  double stddev;     /* estimate_total_stddev() */
  double cost; /* of this part alone, with the same noise, divided by the cost of the release */
};

/*
** For a release of cross tables, at the clock of the publication's tier: what each table gets.
** `rows` is a public guess at the number of rows, or NaN. Returns 1, or 0 after setting the
** ledger's error.
*/
int numbers_tables(const struct publication *publication, double rows, struct part_width *widths);

/*
** For a series, in the same way: what its noisiest period gets and, unless `total` is null, the
** total of all periods. The guess is divided evenly among the periods.
*/
int numbers_series(const struct publication *publication, double rows, struct part_width *period,
                   struct part_width *total);

/*
** Returns estimate_total_stddev() (mechanism/estimate.h) at the clock of the publication's tier;
** for cross tables the largest, for a series that of the noisiest period. Returns NaN after setting
** the ledger's error if memory runs out, as numbers_half_width() does.
*/
double numbers_stddev(const struct publication *publication);

/*
** Returns estimate_half_width() (mechanism/estimate.h) at the clock of the publication's tier. For
** cross tables and a series, `rows` is the number of all rows, and the result is the largest
** half-width of a table or a period.
*/
double numbers_half_width(const struct publication *publication, double rows);

/* ---- storing the values of a publication, and answering from them ---------------------------- */

/*
** Stores the publication and the values of a point, and sets the answer. If dp_mix() gave a kernel
** for this tier, applies the kernel to the values first. Returns 1, or 0 after setting the ledger's
** error.
*/
int values_store(struct publication *publication, const struct cost *cost, const int64_t *values);

/*
** Sets the answer from the values that are stored at a tier. Returns 1, or 0 after setting the
** ledger's error.
*/
int values_read(struct publication *publication, const char *tier);

/* ---- computing a number of a stored point again (interval.c) --------------------------------- */

/*
** Sets [*low, *high] to the interval that a number published at the publication's tier would have
** with this confidence, computed from the stored point. The caller has set the session, the release
** and the position. Returns 1, or 0 after setting the ledger's error.
*/
int interval_read(struct publication *publication, const char *key, int component,
                  double confidence, double *low, double *high);

/*
** Hands over the numbers of a statistic that is inside the release (mechanism/estimate.h), with
** their 95% intervals, computed from the stored point. The caller has set the same members. Returns
** 1, or 0 after setting the ledger's error, or if take() returns 0.
*/
int inside_read(struct publication *publication, enum inside inside,
                int (*take)(void *context, const struct ledger_value *value), void *context);

/*
** Does the same as interval_read() for a series, whose key may name any span of its published
** periods (periods.h). Ends the transaction of the caller before it computes, so that the ledger is
** not locked.
*/
int interval_read_span(struct publication *publication, const char *key, double confidence,
                       double *low, double *high);

#endif
