/* clipping.c: see clipping.h. */
#include "release/clipping.h"

#include <math.h>
#include <string.h>

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
  struct clipped_share share = {n > 0 ? in_unit(a / n) : (double)NAN, 0, 1};
  if (!(n > 0) || !(lead > 0)) return share;
  double root = sqrt(fmax(middle * middle - lead * (a * a - c * c), 0));
  share.low = fmin(in_unit((middle - root) / lead), share.share);
  share.high = fmax(in_unit((middle + root) / lead), share.share);
  return share;
}

/* ---- the sentence ---------------------------------------------------------------------------- */

/* Appends the plural of a unit's name: patients, families, classes. */
static void append_plural(sqlite3_str *text, const struct clipping_words *words) {
  const char *unit = !words->by_unit ? "row" : words->unit && *words->unit ? words->unit : "unit";
  size_t size = strlen(unit);
  char last = unit[size - 1], before = size > 1 ? unit[size - 2] : ' ';
  if (last == 'y' && !strchr("aeiou", before)) {
    sqlite3_str_append(text, unit, (int)size - 1);
    sqlite3_str_appendall(text, "ies");
  } else {
    sqlite3_str_appendf(text, "%s%s", unit, last == 's' || last == 'x' || last == 'h' ? "es" : "s");
  }
}

static void append_percent(sqlite3_str *text, double share) {
  sqlite3_str_appendf(text, "%d%%", (int)lrint(100 * share));
}

char *clipping_sentence(const struct clipped_share *share, const struct clipping_words *words) {
  sqlite3_str *text = sqlite3_str_new(0);
  const char *bound = words->has_range ? "bounds" : "bound";
  if (isnan(share->share)) {
    sqlite3_str_appendall(text, "too few ");
    append_plural(text, words);
    sqlite3_str_appendf(text, " to say how many were cut down to the %s", bound);
    return sqlite3_str_finish(text);
  }
  sqlite3_str_appendall(text, "about ");
  append_percent(text, share->share);
  sqlite3_str_appendall(text, " of ");
  append_plural(text, words);
  sqlite3_str_appendf(text, " were cut down to the %s", bound);
  if (share->low > MUCH) {
    sqlite3_str_appendf(text, ": %s would lower the bias",
                        words->has_range ? "wider bounds or a larger clip" : "a larger clip");
  } else if (share->high < LITTLE) {
    sqlite3_str_appendf(text, ": %s would lower the noise",
                        words->has_range ? "narrower bounds" : "a smaller clip");
  } else {
    sqlite3_str_appendall(text, " (");
    append_percent(text, share->low);
    sqlite3_str_appendall(text, " to ");
    append_percent(text, share->high);
    sqlite3_str_appendall(text, ")");
  }
  return sqlite3_str_finish(text);
}
