/* figure_words.c: see figure_words.h. Tests: tests/release/test_figure_words.py */
#include "release/figure_words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

SQLITE_EXTENSION_INIT3

/* How the words say what one unit can contribute. */
enum share {
  NO_SHARE,
  ROWS,   /* at most `clip` of its rows */
  TOTAL,  /* a total from -clip to clip */
  LENGTH, /* a vector up to length `clip` */
  WEIGHT, /* the weight of at most `clip` rows */
  ONCE
};

/* The statistics: kinds without the prefixes "ou_" and "group_". */
static const struct words {
  const char *name;
  const char *what; /* "%": the units; "#": the quantiles */
  enum share share;
  const char *place; /* what one release, or one group of it, has many of */
  int draws; /* the mechanism 'exponential' draws a value that has a rank near the right one */
} words[] = {
    {"count", "rows", ROWS, 0, 0},
    {"count_distinct", "%", NO_SHARE, 0, 0},
    {"sum", "sum", TOTAL, 0, 0},
    {"avg", "average", WEIGHT, 0, 0},
    {"var", "variance", WEIGHT, 0, 0},
    {"stddev", "standard deviation", WEIGHT, 0, 0},
    {"quantile", "#", WEIGHT, 0, 1},
    {"median", "median", WEIGHT, 0, 1},
    {"histogram", "rows in each bin", ROWS, "bin", 0},
    {"bounds", "bounds of nearly all values", ONCE, 0, 0},
    {"vec_sum", "sum of vectors", LENGTH, 0, 0},
    {"vec_avg", "average of vectors", LENGTH, 0, 0},
    {"choice", "most common category", ONCE, 0, 0},
    {"response_count", "answers in each category, without the effect of randomisation", NO_SHARE, 0,
     0},
    {"sgd", "coefficients of a model", NO_SHARE, 0, 0},
};

void append_plural(sqlite3_str *text, const char *unit) {
  size_t size = strlen(unit);
  char last = unit[size - 1], before = size > 1 ? unit[size - 2] : ' ';
  if (last == 'y' && !strchr("aeiou", before)) {
    sqlite3_str_append(text, unit, (int)size - 1);
    sqlite3_str_appendall(text, "ies");
  } else {
    sqlite3_str_appendf(text, "%s%s", unit, last == 's' || last == 'x' || last == 'h' ? "es" : "s");
  }
}

static void append_number(sqlite3_str *text, double x) {
  if (fabs(x) < 1e15 && x == floor(x)) {
    sqlite3_str_appendf(text, "%,lld", (sqlite3_int64)x);
  } else {
    sqlite3_str_appendf(text, "%.6g", x);
  }
}

/* Appends the quantiles from the text of a number or of a JSON array of numbers. */
static void append_quantiles(sqlite3_str *text, const char *quantiles) {
  int is_list = quantiles && *quantiles == '[';
  char *end = 0;
  sqlite3_str_appendall(text, is_list ? "quantiles " : "quantile ");
  for (const char *at = quantiles + is_list; at && *at; at = end + (*end == ',' || *end == ']')) {
    double q = strtod(at, &end);
    if (end == at) return;
    append_number(text, q);
    if (*end == ',') sqlite3_str_appendall(text, strchr(end + 1, ',') ? ", " : " and ");
  }
}

static void append_what(sqlite3_str *text, const char *what, const struct ledger_release *release,
                        const char *unit) {
  for (; *what; what++) {
    if (*what == '%') {
      append_plural(text, unit ? unit : "row");
    } else if (*what == '#') {
      append_quantiles(text, release->quantiles);
    } else {
      sqlite3_str_appendchar(text, 1, *what);
    }
  }
}

/* Says what becomes of values outside the range. */
static void append_range(sqlite3_str *text, const struct ledger_release *release, int has_bins) {
  if (isnan(release->lo)) return;
  sqlite3_str_appendall(text, ", values outside ");
  append_number(text, release->lo);
  sqlite3_str_appendall(text, " to ");
  append_number(text, release->hi);
  if (has_bins) {
    sqlite3_str_appendall(text, " count in the first or last bin");
    return;
  }
  sqlite3_str_appendall(text, " count as ");
  append_number(text, release->lo);
  sqlite3_str_appendall(text, " or ");
  append_number(text, release->hi);
  if (!(release->grid > 0)) return;
  sqlite3_str_appendall(text, ", in steps of ");
  append_number(text, release->grid);
}

static void append_share(sqlite3_str *text, enum share share, double clip, const char *unit) {
  if (share == ONCE || (share == WEIGHT && clip == 1)) {
    if (unit) sqlite3_str_appendf(text, ", each %s counts once", unit);
  } else if (share == WEIGHT && unit) {
    sqlite3_str_appendf(text, ", each %s counts as at most ", unit);
    append_number(text, clip);
    sqlite3_str_appendall(text, " rows");
  } else if (share == LENGTH || share == TOTAL || (share == ROWS && unit)) {
    sqlite3_str_appendall(text, share == LENGTH  ? ", up to length "
                                : share == TOTAL ? ", from "
                                                 : ", at most ");
    append_number(text, share == TOTAL ? -clip : clip);
    if (share == TOTAL) {
      sqlite3_str_appendall(text, " to ");
      append_number(text, clip);
    }
    sqlite3_str_appendf(text, " of each %s", unit ? unit : "row");
  }
}

/* Says that the bound of a series is for all of its periods. */
static void append_periods(sqlite3_str *text, enum share share, double clip) {
  if (share != NO_SHARE) {
    sqlite3_str_appendall(text, " in all periods together");
  } else if (clip == 1) {
    sqlite3_str_appendall(text, ", each in their first period only");
  } else {
    sqlite3_str_appendall(text, ", each in their first ");
    append_number(text, clip);
    sqlite3_str_appendall(text, " periods only");
  }
}

char *figure_words(const struct ledger_release *release, const char *unit) {
  sqlite3_str *text = sqlite3_str_new(0);
  int is_shrunk = strncmp(release->kind, "ou_", 3) == 0;
  const char *name = release->kind + (is_shrunk ? 3 : 0);
  int is_grouped = strncmp(name, "group_", 6) == 0;
  if (is_grouped) name += 6;
  size_t i = 0, count = sizeof words / sizeof *words;
  while (i < count && strcmp(words[i].name, name) != 0) i++;
  if (i == count) { /* a kind that this version does not know */
    sqlite3_str_appendall(text, release->kind);
    return sqlite3_str_finish(text);
  }
  append_what(text, words[i].what, release, unit);
  enum share share = words[i].share;
  const char *place = words[i].place;
  if (is_grouped)
    sqlite3_str_appendall(text, place           ? " of each group"
                                : release->ways ? " in each cell"
                                                : " in each group");
  append_range(text, release, place != 0);
  if (!place && is_grouped) place = release->ways ? "cell" : "group";
  append_share(text, share, release->clip, unit);
  /* Where Laplace noise bounds a sum over all places, other noise bounds the sum of squares. */
  int is_sum = release->mechanism && strcmp(release->mechanism, "laplace") == 0;
  if (place && unit && (share == ROWS || share == TOTAL))
    sqlite3_str_appendf(text,
                        release->ways ? is_sum ? " in all %ss of a table, averaged over the tables"
                                               : " in one %s, averaged over the tables"
                        : is_sum      ? " in all %ss together"
                                      : " in one %s",
                        place);
  if (release->periods) append_periods(text, share, release->clip);
  if (place && unit)
    sqlite3_str_appendf(text, " (a %s in several %ss counts less in each)", unit, place);
  int is_private = is_grouped && release->max_groups > 0;
  if (is_private && unit)
    sqlite3_str_appendf(text, ", at most %d groups of each %s", release->max_groups, unit);
  if (is_private) sqlite3_str_appendall(text, ", only groups that are large enough");
  if (words[i].draws && release->mechanism && strcmp(release->mechanism, "exponential") == 0)
    sqlite3_str_appendall(text, "; drawn at random near it");
  if (is_shrunk && release->theta != 0) {
    sqlite3_str_appendall(text, ", shrunk towards ");
    append_number(text, release->centre);
  }
  return sqlite3_str_finish(text);
}
