/* figure_words.c: says in words what the numbers of a release are, for the columns `display` and
** `figure` of dp_value and for dp_answer(), and what clipping did to its units, by the noisy counts
** of the option diagnose.
** Tests: tests/release/test_figure_words.py, tests/release/test_clipping.py,
** tests/release/test_cut.py */
#include "release/internal.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/sql_text.h"
#include "mechanism/mechanism.h"
#include "sums/layout.h"

SQLITE_EXTENSION_INIT3

/* The text of a number, as an argument. It is valid until the end of the block. */
#define SAID(x) say(x, (char[NUMBER_SIZE]){0})

static const char *say(double x, char text[NUMBER_SIZE]) {
  int is_whole = fabs(x) < 1e15 && x == floor(x);
  return is_whole ? sqlite3_snprintf(NUMBER_SIZE, text, "%,lld", (sqlite3_int64)x)
                  : sqlite3_snprintf(NUMBER_SIZE, text, "%.15g", x);
}

/* ---- which share of the units was clipped, and of the total cut off -------------------------- */

#define CONFIDENCE       0.95
#define CONFIDENCE_OF_J  0.975                              /* clipped_amount() */
#define CONFIDENCE_OF_NO (1 - 2 * 1e-3 / (TALLY_RUNGS - 1)) /* of noise on both sides */

static double in_unit(double x) {
  return fmin(fmax(x, 0), 1);
}

/* The share of two weighted sums of noisy counts, and the products of their weights. */
struct ratio {
  double part, whole; /* the sums */
  double pp, pw, ww;  /* of the weights of `part` and of `whole` */
};

/* With the half-width c of the noise of one count, the interval is where (part - s whole)^2 <= c^2
** (pp - 2 s pw + s^2 ww). This is a quadratic inequality in s. If its leading coefficient whole^2 -
** c^2 ww is not above 0, the counts say nothing about the share. */
static struct clipped_share share_of(const struct ratio *ratio, double c) {
  double lead = ratio->whole * ratio->whole - c * c * ratio->ww;
  double middle = ratio->part * ratio->whole - c * c * ratio->pw;
  struct clipped_share share = {(double)NAN, 0, 1};
  if (!(ratio->whole > 0) || !(lead > 0)) return share;
  share.share = in_unit(ratio->part / ratio->whole);
  double last = ratio->part * ratio->part - c * c * ratio->pp;
  double root = sqrt(fmax(middle * middle - lead * last, 0));
  share.low = fmin(in_unit((middle - root) / lead), share.share);
  share.high = fmax(in_unit((middle + root) / lead), share.share);
  return share;
}

struct clipped_share clipped_units(const struct noise_law *noise,
                                   const struct ledger_clipping *clipping) {
  struct ratio ratio = {clipping->clipped, clipping->clipped + clipping->unclipped, 1, 1, 2};
  return share_of(&ratio, mixed_half_width(noise, clipping->stddev, CONFIDENCE));
}

struct clipped_share clipped_wider(const struct noise_law *noise,
                                   const struct ledger_clipping *clipping) {
  struct ledger_clipping wider = {.clipped = clipping->wider_clipped,
                                  .unclipped = clipping->wider_unclipped,
                                  .stddev = clipping->stddev};
  return clipped_units(noise, &wider);
}

/* Returns the share by the rungs 0 ... last. */
static struct clipped_share share_up_to(const double *rungs, int last, double c) {
  struct ratio ratio = {0, 0, 0, 0, 0};
  for (int i = 0; i <= last; i++) {
    double size = ldexp(1, i), cut = size - 1;
    ratio.part += rungs[i] * cut;
    ratio.whole += rungs[i] * size;
    ratio.pp += cut * cut;
    ratio.pw += cut * size;
    ratio.ww += size * size;
  }
  return share_of(&ratio, c);
}

void clipped_amount(const struct noise_law *noise, const double *rungs,
                    struct ledger_clipping *clipping) {
  double least = mixed_half_width(noise, clipping->stddev, CONFIDENCE_OF_NO);
  double c = mixed_half_width(noise, clipping->stddev, CONFIDENCE_OF_J);
  int last = TALLY_RUNGS - 1;
  while (last > 0 && rungs[last] <= least) last--;
  struct clipped_share seen = share_up_to(rungs, last, c), all = seen;
  if (last < TALLY_RUNGS - 1) {
    clipping->within = ldexp(2, last);
    all = share_up_to(rungs, last + 1, c);
  }
  clipping->cut = isnan(seen.share) ? seen.share : fmax(all.share, seen.low);
  clipping->cut_low = seen.low;
  clipping->cut_high = isnan(clipping->within) || isnan(seen.share) ? 1 : fmax(all.high, seen.low);
}

/* ---- the sentence about it ------------------------------------------------------------------- */

/* The sentence advises a larger clip above MUCH, and a smaller clip below LITTLE. */
#define MUCH   0.05
#define LITTLE 0.01
#define NARROW 0.1 /* the widest interval of a share that one number stands for */

static const char *unit_of(const struct clipping_words *words) {
  return !words->by_unit ? "row" : words->unit && *words->unit ? words->unit : "unit";
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
    append_plural(text, unit_of(words));
    sqlite3_str_appendf(text, " to say how many were cut down to the %s", bound);
    return sqlite3_str_finish(text);
  }
  sqlite3_str_appendall(text, "of ");
  append_plural(text, unit_of(words));
  sqlite3_str_appendf(text, " were cut down to the %s, because %s", bound, cause.reason);
  if (words->keys_are_private) sqlite3_str_appendall(text, ", or had more than max_groups keys");
  if (share->low > MUCH) {
    sqlite3_str_appendf(text, ": %s%s would lower the bias", cause.remedy,
                        words->keys_are_private ? " or a larger max_groups" : "");
  } else if (share->high < LITTLE && cause.saving) {
    sqlite3_str_appendf(text, ": %s would lower the noise, but cut off more", cause.saving);
  }
  return sqlite3_str_finish(text);
}

/* Returns whether one number stands for the interval of what was cut off. */
static int is_narrow(const struct ledger_clipping *clipping) {
  return clipping->cut_high - clipping->cut_low <= NARROW;
}

/* Returns the low end of what was cut off, in percent. It holds whatever the largest units are. */
static int least_cut(const struct ledger_clipping *clipping) {
  return (int)floor(100 * clipping->cut_low);
}

char *clipping_amount(const struct ledger_clipping *clipping, const struct clipping_words *words) {
  sqlite3_str *text = sqlite3_str_new(0);
  if (!isnan(clipping->wider_clipped)) {
    sqlite3_str_appendall(text, "how much was cut off is not told where wider units are scaled "
                                "down, too");
  } else if (isnan(clipping->cut_low)) {
    sqlite3_str_appendall(text, "how much was cut off is told only of counts and sums without "
                                "private keys and periods");
  } else if (isnan(clipping->cut)) {
    sqlite3_str_appendall(text, "too few ");
    append_plural(text, unit_of(words));
    sqlite3_str_appendall(text, " to say how much was cut off");
  } else if (isnan(clipping->within)) {
    sqlite3_str_appendf(text,
                        "at least %d%% of the total was cut off, because a %s has more than %s "
                        "times clip",
                        least_cut(clipping), unit_of(words), SAID(ldexp(1, TALLY_RUNGS - 2)));
  } else {
    int least = least_cut(clipping), most = (int)ceil(100 * clipping->cut_high);
    if (is_narrow(clipping))
      sqlite3_str_appendf(text, "about %d%% of the total was cut off (%d%% to %d%%)",
                          clipping_percent(clipping->cut), least, most);
    else if (least > 0)
      sqlite3_str_appendf(text, "at least %d%% of the total was cut off, and at most %d%%", least,
                          most);
    else
      sqlite3_str_appendf(text, "at most %d%% of the total was cut off", most);
    sqlite3_str_appendf(text, ", if no %s has more than %s times clip", unit_of(words),
                        SAID(clipping->within));
  }
  return sqlite3_str_finish(text);
}

char *clipping_sentence(const struct clipped_share *share, const struct ledger_clipping *clipping,
                        const struct clipping_words *words) {
  char *rest = clipping_words(share, words), *amount = clipping_amount(clipping, words);
  sqlite3_str *text = sqlite3_str_new(0);
  int is_known = !isnan(share->share);
  if (is_known) sqlite3_str_appendf(text, "about %d%% ", clipping_percent(share->share));
  if (rest) sqlite3_str_appendall(text, rest);
  if (is_known && rest && !strchr(rest, ':')) /* no advice */
    sqlite3_str_appendf(text, " (%d%% to %d%%)", clipping_percent(share->low),
                        clipping_percent(share->high));
  if (amount) sqlite3_str_appendf(text, "; %s", amount);
  if (is_known && share->low <= MUCH && isnan(clipping->cut))
    sqlite3_str_appendall(text, "; a few with very large contributions can matter, too");
  int is_made = rest && amount;
  sqlite3_free(rest);
  sqlite3_free(amount);
  char *sentence = sqlite3_str_finish(text);
  if (is_made) return sentence;
  sqlite3_free(sentence);
  return 0;
}

/* ---- what the numbers are -------------------------------------------------------------------- */

/* Appends the quantiles from the text of a number or of a JSON array of numbers. */
static void append_quantiles(sqlite3_str *text, const char *quantiles) {
  double list[LAYOUT_MAX_QUANTILES];
  int count = quantiles ? vector_text_list(quantiles, list, LAYOUT_MAX_QUANTILES) : 0;
  sqlite3_str_appendall(text, quantiles && *quantiles == '[' ? "quantiles " : "quantile ");
  for (int i = 0; i < count; i++)
    sqlite3_str_appendf(text, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " and ", SAID(list[i]));
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
  sqlite3_str_appendf(text, ", values outside %s to %s count ", SAID(release->lo),
                      SAID(release->hi));
  if (has_bins) {
    sqlite3_str_appendall(text, "in the first or last bin");
    return;
  }
  sqlite3_str_appendf(text, "as %s or %s", SAID(release->lo), SAID(release->hi));
  if (release->grid > 0) sqlite3_str_appendf(text, ", in steps of %s", SAID(release->grid));
}

/* The words for one release. */
struct figure {
  const struct ledger_release *release;
  const struct wording *wording;
  const char *unit;  /* null: the ledger protects rows */
  const char *place; /* what the release has many of: "group", "cell", "bin"; or null */
  enum share share;
  int in_sum_norm; /* Laplace noise bounds a sum over all places, other noise a root of squares */
};

/* Says how much one unit contributes. */
static void append_share(sqlite3_str *text, const struct figure *figure) {
  const char *unit = figure->unit ? figure->unit : "row";
  enum share share = figure->share;
  double clip = figure->release->clip;
  int by_unit = figure->unit != 0;
  int about = figure->release->ways && !figure->in_sum_norm;
  if (share == SHARE_LENGTH)
    sqlite3_str_appendf(text, ", up to length %s of each %s", SAID(clip), unit);
  if (share == SHARE_MEAN) sqlite3_str_appendf(text, ", each cut to length %s", SAID(clip));
  if (share == SHARE_TOTAL && !figure->release->periods) {
    sqlite3_str_appendf(text, ", from %s to %s of each %s", SAID(-clip), SAID(clip), unit);
  } else if (by_unit && (share == SHARE_ROWS || share == SHARE_TOTAL)) {
    sqlite3_str_appendf(text, ", at most %s%s of each %s", SAID(clip),
                        share == SHARE_TOTAL ? " up and down" : "", unit);
  } else if (by_unit && share == SHARE_WEIGHT && clip != 1) {
    sqlite3_str_appendf(text, ", each %s counts as at most %s rows", unit, SAID(clip));
  } else if (by_unit && (share == SHARE_WEIGHT || share == SHARE_ONCE || share == SHARE_MEAN)) {
    sqlite3_str_appendf(text, ", each %s counts %sonce", unit, about ? "about " : "");
  }
  if (by_unit && share == SHARE_ONCE)
    sqlite3_str_appendall(text, ", rare values by their share of rows");
}

/* Says that the bound of a series is for all of its periods, and is spent in their order. */
static void append_periods(sqlite3_str *text, const struct figure *figure) {
  double clip = figure->release->clip;
  if (figure->share == SHARE_NONE && clip == 1) {
    sqlite3_str_appendall(text, ", each in their first period only");
  } else if (figure->share == SHARE_NONE) {
    sqlite3_str_appendf(text,
                        " of each period, added up over periods (a %s counts in their first %s "
                        "only)",
                        figure->unit, SAID(clip));
  } else {
    sqlite3_str_appendf(text, " in all %speriods together, earliest first",
                        figure->place ? "groups and " : "");
    if (figure->place && !figure->in_sum_norm)
      sqlite3_str_appendall(text, " (more with several groups in one period)");
  }
}

/* Says what the bound means for a unit with rows in several groups, cells or bins. */
static void append_places(sqlite3_str *text, const struct figure *figure) {
  const char *place = figure->place;
  double clip = figure->release->clip;
  int has_ways = figure->release->ways != 0, is_total = figure->share == SHARE_TOTAL;
  int has_share = figure->wording->share != SHARE_NONE;
  if (figure->share == SHARE_ROWS || is_total)
    sqlite3_str_appendf(text,
                        !figure->in_sum_norm ? " in one %s"
                        : has_ways           ? " in all %ss of a table"
                                             : " in all %ss together",
                        place);
  if (has_ways && (!figure->in_sum_norm || is_total))
    sqlite3_str_appendall(text, ", averaged over the tables");
  double whole = has_share ? 1 : figure->in_sum_norm ? clip : clip * clip;
  int has_rows = has_share && !figure->wording->draws;
  int always = !has_share || (clip <= 1 && !is_total && (!has_ways || figure->in_sum_norm));
  sqlite3_str_appendf(text, " (a %s %sin ", figure->unit, has_rows ? "with rows " : "");
  if (whole >= 2) sqlite3_str_appendf(text, "more than %s", SAID(floor(whole)));
  if (whole < 2) sqlite3_str_appendall(text, "several");
  sqlite3_str_appendf(text, " %ss %s less in each", place, always ? "counts" : "may count");
  if (has_rows)
    sqlite3_str_appendf(text, ", by the share of %s there", is_total ? "amounts" : "rows");
  if (has_ways && !figure->in_sum_norm)
    sqlite3_str_appendf(text, ", and more than %s in a margin", SAID(clip));
  sqlite3_str_appendall(text, ")");
}

/* Says how much a wider unit counts: as much as some units, and more units in different groups. */
static void append_wider(sqlite3_str *text, const struct figure *figure,
                         const struct figure_facts *terms) {
  double factor = terms->factor;
  int by_place = figure->place && !figure->release->ways && figure->wording->share != SHARE_WEIGHT;
  sqlite3_str_appendf(text, ", each %s at most as much as %s ", terms->wider, SAID(factor));
  if (factor == 1) sqlite3_str_appendall(text, figure->unit);
  if (factor != 1) append_plural(text, figure->unit);
  if (!by_place || factor == 1) return;
  sqlite3_str_appendf(text, " in one %s (as %s in different %ss)", figure->place,
                      SAID(floor(factor * factor)), figure->place);
}

/* Sums shrink by one factor, also where a radius gives it. Averages, spreads, quantiles and vectors
** keep their value if it is within the radius (mechanism/estimate.c). */
static void append_move(sqlite3_str *text, const struct ledger_release *release, int is_mixed) {
  const struct aggregate *aggregate = aggregate_find(release->kind);
  if (!aggregate || !aggregate->is_ou || release->theta == 0) return;
  if (isnan(release->theta) && !aggregate->family->is_linear) {
    sqlite3_str_appendf(text, ", kept within %s of %s", SAID(release->radius),
                        SAID(release->centre));
  } else if (is_mixed) { /* a sum of numbers, each of which has the centre */
    sqlite3_str_appendall(text, ", shrunk");
  } else {
    sqlite3_str_appendf(text, ", shrunk towards %s", SAID(release->centre));
  }
}

/* ---- a number as people write it ------------------------------------------------------------- */

/* No number is shown outside what its kind can have, and no digit below the width of a leaf. Counts
** are not below 0. Sets *has_leaves to 1 if numbers lie in the leaves of a range. */
static struct figure_terms terms_of(const struct ledger_release *release, int *has_leaves) {
  struct figure_terms terms = {.least = -INFINITY, .most = INFINITY};
  const struct aggregate *aggregate = aggregate_find(release->kind);
  *has_leaves = aggregate && aggregate->family->is_tree;
  if (!aggregate) return terms;
  struct contribution question = {.clip = release->clip, .low = release->lo, .high = release->hi};
  if (aggregate->family->range) {
    struct range range = aggregate->family->range(&question, aggregate->root);
    terms.least = range.least;
    terms.most = range.most;
  } else if (aggregate->counts && aggregate->family->is_linear) {
    terms.least = 0;
  }
  return terms;
}

char *figure_display(const struct ledger_release *release, const struct ledger_value *value,
                     int is_mixed) {
  int has_interval = isfinite(value->low) && isfinite(value->high), has_leaves;
  struct figure_terms terms = terms_of(release, &has_leaves);
  if (isfinite(release->grid)) {
    terms.origin = release->lo;
    terms.step = release->grid;
  } else if (has_leaves && release->size > 0) {
    terms.leaf = (release->hi / 2 - release->lo / 2) / release->size * 2;
  }
  char *number = has_interval ? figure_with_interval(value->value, value->low, value->high, &terms)
                              : figure_alone(value->value);
  if (!number) return 0;
  sqlite3_str *words = sqlite3_str_new(0);
  sqlite3_str_appendall(words, number);
  append_move(words, release, is_mixed);
  sqlite3_free(number);
  return sqlite3_str_finish(words);
}

/* The last bin of bounds (sums/layout.h) also has the values beyond its end. */
#define LAST_BOUND 0x1p128

char *figure_drawn(const struct ledger_release *release, const struct ledger_value *value) {
  int has_leaves;
  double number = value->value;
  struct figure_terms terms = terms_of(release, &has_leaves);
  if (has_leaves && isfinite(number)) { /* the middle of a leaf, or a value of the grid */
    if (!isfinite(release->grid) && release->size > 0) {
      double leaf = (terms.most / 2 - terms.least / 2) / release->size * 2;
      double unit = pow(10, floor(log10(leaf)));
      if (unit > 0) number = rint(number / unit) * unit;
    }
    return figure_with_interval(number, number, number, &terms);
  }
  if (strcmp(release->kind, "bounds") != 0) return sqlite3_mprintf("%s", value->key);
  return sqlite3_mprintf("%.15g%s", number,
                         number >= LAST_BOUND    ? " or more"
                         : number <= -LAST_BOUND ? " or less"
                                                 : "");
}

/* A noisy count that selects a private key counts rows, or units if each adds at most 1 to a
** key. */
void figure_append_threshold(sqlite3_str *text, const char *kind, double clip, const char *unit,
                             double threshold) {
  const struct aggregate *aggregate = aggregate_find(kind);
  const struct wording *wording = aggregate ? &aggregate->wording : 0;
  int by_rows = !unit || (wording && wording->share == SHARE_ROWS && !wording->place) ||
                (wording && wording->share == SHARE_WEIGHT && !wording->draws && clip > 1);
  if (!(threshold > 0 && threshold < 1e15)) return;
  double step = pow(10, fmax(floor(log10(threshold)) - 1, 0)); /* two digits */
  sqlite3_str_appendf(text, "groups below about %s ", SAID(ceil(threshold / step) * step));
  append_plural(text, by_rows ? "row" : unit);
  sqlite3_str_appendall(text, " do not appear");
}

/* Appends an edge between the bins of a histogram: with six digits where they tell the bins apart
** and need no exponent. */
static void append_edge(sqlite3_str *text, const struct ledger_release *release, int index) {
  double width = (release->hi - release->lo) / release->size;
  double most = fmax(fabs(release->lo), fabs(release->hi));
  int digits = most < fmin(1e6, 1e3 * width) ? 6 : 12;
  sqlite3_str_appendf(text, "%.*g", digits,
                      release->lo + (release->hi - release->lo) * index / release->size);
}

/* Appends the bin of a histogram. The outer bins also have the values outside the range. */
static void append_bin(sqlite3_str *text, const struct ledger_release *release, int bin) {
  if (release->size < 2) {
    sqlite3_str_appendall(text, "all values");
  } else if (bin == 0) {
    sqlite3_str_appendall(text, "below ");
    append_edge(text, release, 1);
  } else {
    append_edge(text, release, bin);
    sqlite3_str_appendall(text, bin + 1 < release->size ? " to " : " and more");
    if (bin + 1 < release->size) append_edge(text, release, bin + 1);
  }
}

char *figure_component(const struct ledger_release *release, int component) {
  const struct aggregate *aggregate = aggregate_find(release->kind);
  enum share share = aggregate ? aggregate->wording.share : SHARE_NONE;
  double list[LAYOUT_MAX_QUANTILES];
  sqlite3_str *text = sqlite3_str_new(0);
  if (aggregate && aggregate->wording.place) {
    append_bin(text, release, component);
  } else if (release->quantiles && *release->quantiles == '[') {
    if (component < vector_text_list(release->quantiles, list, LAYOUT_MAX_QUANTILES))
      sqlite3_str_appendf(text, "%.15g", list[component]);
  } else if (share == SHARE_ONCE) {
    sqlite3_str_appendall(text, component ? "upper end" : "lower end");
  } else if (aggregate && aggregate->family->has_vector) {
    sqlite3_str_appendf(text, "%d", component + 1);
  }
  int is_empty = sqlite3_str_length(text) == 0 && sqlite3_str_errcode(text) == SQLITE_OK;
  char *written = sqlite3_str_finish(text); /* null if it is empty */
  return is_empty ? sqlite3_mprintf("") : written;
}

/* Says how much was cut off, and how many units were cut down, where this is known. The upper end
** of what was cut off holds only if no unit is larger than the noise can show, so it is not
** said. */
static void append_cut(sqlite3_str *text, const struct figure *figure,
                       const struct figure_facts *terms) {
  const struct ledger_clipping *clipping = &terms->clipping;
  if (isnan(clipping->stddev)) return;
  const struct mechanism *mechanism = mechanism_of(figure->release);
  if (!mechanism || !mechanism->noise) return;
  struct clipped_share share = clipped_units(mechanism->noise, clipping);
  int is_about = !isnan(clipping->within) && is_narrow(clipping), least = least_cut(clipping);
  int has_wider = terms->wider && !isnan(clipping->wider_clipped);
  int has_amount = !isnan(clipping->cut) && !has_wider && (is_about || least > 0);
  int has_share = !isnan(share.share);
  if (!has_amount && !has_share) return;
  sqlite3_str_appendall(text, "; ");
  if (has_amount)
    sqlite3_str_appendf(text, "%s %d%% was cut off", is_about ? "about" : "at least",
                        is_about ? clipping_percent(clipping->cut) : least);
  if (has_share) {
    sqlite3_str_appendf(text, "%s%d%% of ", has_amount ? ", from " : "about ",
                        clipping_percent(share.share));
    append_plural(text, figure->unit ? figure->unit : "row");
    struct clipped_share wider = {(double)NAN, 0, 1};
    if (has_wider) wider = clipped_wider(mechanism->noise, clipping);
    if (!isnan(wider.share)) {
      sqlite3_str_appendf(text, " and %d%% of ", clipping_percent(wider.share));
      append_plural(text, terms->wider);
    }
    if (!has_amount) sqlite3_str_appendall(text, " were cut down");
  }
  if (!has_amount || !is_about) return;
  sqlite3_str_appendf(text, " (more if any is over %s times the bound)", SAID(clipping->within));
}

char *figure_words(const struct ledger_release *release, const struct figure_facts *terms) {
  const char *unit = terms->unit;
  const struct aggregate *aggregate = aggregate_find(release->kind);
  sqlite3_str *text = sqlite3_str_new(0);
  if (!aggregate) { /* a kind that this version does not know */
    sqlite3_str_appendall(text, release->kind);
    return sqlite3_str_finish(text);
  }
  const struct wording *wording = &aggregate->wording;
  const char *place = wording->place;
  int is_grouped = (aggregate->takes & 1u << P_KEYS) != 0;
  append_what(text, wording->what, release, unit);
  if (is_grouped)
    sqlite3_str_appendall(text, place           ? " of each group"
                                : release->ways ? " in each cell"
                                                : " in each group");
  append_range(text, release, place != 0);
  if (!place && is_grouped) place = release->ways ? "cell" : "group";
  int in_sum_norm = release->mechanism && strcmp(release->mechanism, "laplace") == 0;
  struct figure figure = {release, wording, unit, place, wording->share, in_sum_norm};
  if (is_grouped && figure.share == SHARE_NONE && release->clip < 1) figure.share = SHARE_ROWS;
  append_share(text, &figure);
  if (release->periods) {
    append_periods(text, &figure);
  } else if (place && unit) {
    append_places(text, &figure);
  }
  if (unit && terms->wider) append_wider(text, &figure, terms);
  int is_private = is_grouped && release->max_groups > 0;
  if (is_private && unit)
    sqlite3_str_appendf(text, ", at most %d groups of each %s", release->max_groups, unit);
  if (is_private) {
    sqlite3_str_appendall(text, "; ");
    figure_append_threshold(text, release->kind, release->clip, unit, terms->threshold);
  }
  if (wording->draws && release->mechanism && strcmp(release->mechanism, "exponential") == 0)
    sqlite3_str_appendall(text, "; drawn at random near it");
  append_move(text, release, 0);
  if (terms->is_mixed && is_grouped)
    sqlite3_str_appendall(text, "; then added up into other groups by a public kernel");
  if (terms->is_mixed && aggregate->form == FORM_SYMBOL)
    sqlite3_str_appendall(text, "; then changed at random by a public kernel");
  append_cut(text, &figure, terms);
  return sqlite3_str_finish(text);
}
