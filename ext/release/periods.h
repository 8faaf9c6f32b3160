/*
** periods.h: the labels of the periods of a series, read from the option `periods`.
**
** The option is "first/last", where both labels are years (2026), quarters (2026-Q1), months
** (2026-01), ISO weeks (2026-W07) or days (2026-01-31), or a JSON array of labels in their order. A
** label that is a year, a quarter, and so on, is a date in UTC, whichever way it was given.
*/
#ifndef DIFFUSE_RELEASE_PERIODS_H
#define DIFFUSE_RELEASE_PERIODS_H

#include "base/json.h"

/* Numbers of periods, from 0. The span of the periods first..last, both included. */
struct span {
  int first, last;
};

/* A period, for sorting. */
struct numbered {
  const char *label;
  int number;
};

struct periods {
  int references;
  int count;
  char **labels;
  struct numbered *sorted; /* the periods in the order of their labels */
  char *text;              /* the form in which the ledger stores the option */
};

/* Reads the text of the option. Returns null with the error set. */
struct periods *periods_open(struct json *json, const char *text);
struct periods *periods_retain(struct periods *periods);
void periods_release(struct periods *periods);

/* Returns the number of the period with this label, or -1. */
int periods_find(const struct periods *periods, const char *label);

/* Returns whether a label is a date of the form of the last period, and after it. */
int periods_is_later(const struct periods *periods, const char *label);

/* Writes the last day of a period, such as 2026-02-28. Returns 0 if the label is not a date. */
#define PERIOD_DAY 11
int periods_last_day(const struct periods *periods, int period, char day[PERIOD_DAY]);

/*
** Returns the key of a figure: the label of the period, or "first/last" for several periods; with
** groups, a JSON array of this text and the key of the group. `total`: the figure is a running
** total, which is "first/last" even if it has one period. `group` is null without groups. The
** caller calls sqlite3_free(). Null: out of memory.
*/
char *periods_key(const struct periods *periods, struct span span, int total, const char *group);

/*
** Reads such a key. If the release has groups, sets *group to the key of the group, which the
** caller frees; otherwise to null. Returns 0 without an error if the text is no such key.
*/
int periods_read_key(const struct periods *periods, struct json *json, const char *key,
                     int has_groups, struct span *span, char **group);

#endif
