/* clipping.c: see clipping.h. Tests: tests/release/test_clipping.py */
#include "release/clipping.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "mechanism/families.h"
#include "release/kinds.h"

SQLITE_EXTENSION_INIT3

#define CONFIDENCE 0.95

/* The sentence advises a larger clip above MUCH, and a smaller clip below LITTLE. */
#define MUCH   0.05
#define LITTLE 0.01

static double in_unit(double x) {
  return fmin(fmax(x, 0), 1);
}

/*
** With a = clipped, b = unclipped, n = a + b and the half-width c of the noise of one count, the
** interval is where (a - n s)^2 <= c^2 (1 - 2 s + 2 s^2). This is a quadratic inequality in s. If
** its leading coefficient n^2 - 2 c^2 is not above 0, the counts say nothing about the share.
*/
struct clipped_share clipping_share(const struct noise_law *noise,
                                    const struct ledger_clipping *clipping) {
  double a = clipping->clipped, n = a + clipping->unclipped;
  double c = mixed_half_width(noise, clipping->stddev, CONFIDENCE);
  double lead = n * n - 2 * c * c, middle = a * n - c * c;
  struct clipped_share share = {(double)NAN, 0, 1};
  if (!(n > 0) || !(lead > 0)) return share;
  share.share = in_unit(a / n);
  double root = sqrt(fmax(middle * middle - lead * (a * a - c * c), 0));
  share.low = fmin(in_unit((middle - root) / lead), share.share);
  share.high = fmax(in_unit((middle + root) / lead), share.share);
  return share;
}

/* ---- the sentence ---------------------------------------------------------------------------- */

static void append_units(sqlite3_str *text, const struct clipping_words *words) {
  append_plural(text, !words->by_unit ? "row" : words->unit && *words->unit ? words->unit : "unit");
}

/* Why a release cuts a unit down, and what prevents it. */
struct cause {
  const char *reason, *remedy;
  const char *saving; /* what would lower the noise if hardly any unit is cut down; may be null */
};

static struct cause cause_of(const struct clipping_words *words) {
  const struct aggregate *aggregate = words->aggregate;
  int has_range = (aggregate->takes & 1u << P_LO) != 0;
  if (words->is_series)
    return (struct cause){
        aggregate->takes & 1u << P_SERIES ? "they were in more periods than clip"
        : has_range                       ? "they had more rows than clip in all periods together "
                                            "(values outside lo and hi are not counted)"
        : aggregate->counts               ? "they had more rows than clip in all periods together"
                                          : "their total of all periods was beyond clip",
        "a larger clip",
        words->clip > 1 || !(has_range || aggregate->counts) ? "a smaller clip" : 0};
  if (has_range && words->by_unit && !kind_counts_rows(aggregate)) /* the kind divides by rows */
    return (struct cause){"a value was outside lo and hi, or they had more rows than clip, which "
                          "then only weigh less",
                          "if it is the values, wider bounds", "narrower bounds"};
  if (has_range && words->by_unit)
    return (struct cause){"a value was outside lo and hi, or they had more rows than clip",
                          "wider bounds or a larger clip", "narrower bounds"};
  if (has_range)
    return (struct cause){"the value was outside lo and hi", "wider bounds", "narrower bounds"};
  if (aggregate->family == &family_vector_mean && words->by_unit)
    return (struct cause){"they had a vector longer than clip, or more than one row",
                          "a larger clip or one row for each", "a smaller clip"};
  if (aggregate->family == &family_key_units)
    return (struct cause){"they were in more groups than clip allows", "a larger clip",
                          "a smaller clip"};
  if (aggregate->counts)
    return (struct cause){"they had more rows than clip", "a larger clip",
                          words->clip > 1 ? "a smaller clip" : 0};
  return (struct cause){words->by_unit ? "their total was beyond clip"
                                       : "the value was beyond clip",
                        "a larger clip", "a smaller clip"};
}

int clipping_percent(double share) {
  return (int)lrint(100 * share);
}

char *clipping_words(const struct clipped_share *share, const struct clipping_words *words) {
  sqlite3_str *text = sqlite3_str_new(0);
  int has_range = (words->aggregate->takes & 1u << P_LO) != 0;
  struct cause cause = cause_of(words);
  const char *bound = has_range && !words->is_series ? "bounds" : "bound";
  if (isnan(share->share)) {
    sqlite3_str_appendall(text, "too few ");
    append_units(text, words);
    sqlite3_str_appendf(text, " to say how many were cut down to the %s", bound);
    return sqlite3_str_finish(text);
  }
  sqlite3_str_appendall(text, "of ");
  append_units(text, words);
  sqlite3_str_appendf(text, " were cut down to the %s, because %s", bound, cause.reason);
  if (words->keys_are_private) sqlite3_str_appendall(text, ", or had more than max_groups keys");
  if (share->low > MUCH) {
    sqlite3_str_appendf(text, ": %s would lower the bias", cause.remedy);
  } else if (share->high < LITTLE && cause.saving) {
    sqlite3_str_appendf(text, ": %s would lower the noise, but cut off more", cause.saving);
  }
  return sqlite3_str_finish(text);
}

char *clipping_sentence(const struct clipped_share *share, const struct clipping_words *words) {
  char *rest = clipping_words(share, words);
  if (!rest || isnan(share->share)) return rest;
  sqlite3_str *text = sqlite3_str_new(0);
  sqlite3_str_appendf(text, "about %d%% %s", clipping_percent(share->share), rest);
  if (!strchr(rest, ':')) /* no advice */
    sqlite3_str_appendf(text, " (%d%% to %d%%)", clipping_percent(share->low),
                        clipping_percent(share->high));
  if (share->low <= MUCH)
    sqlite3_str_appendall(text, "; a few with very large contributions can matter, too");
  sqlite3_free(rest);
  return sqlite3_str_finish(text);
}
