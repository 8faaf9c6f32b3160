/* figure_words.c: see figure_words.h.
** Tests: tests/release/test_figure_words.py, tests/release/test_clipping.py */
#include "release/figure_words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "mechanism/mechanism.h"
#include "release/kinds.h"
#include "sums/layout.h"

SQLITE_EXTENSION_INIT3

/* ---- what clipping did to the units of a release --------------------------------------------- */

/* The sentence advises a larger clip above MUCH, and a smaller clip below LITTLE. */
#define MUCH   0.05
#define LITTLE 0.01
#define NARROW 0.1 /* the widest interval of a share that one number stands for */

/* ---- the sentence about it ------------------------------------------------------------------- */

static void append_number(sqlite3_str *text, double x) {
  if (fabs(x) < 1e15 && x == floor(x)) {
    sqlite3_str_appendf(text, "%,lld", (sqlite3_int64)x);
  } else {
    sqlite3_str_appendf(text, "%.15g", x);
  }
}

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
  const char *unit = !words->by_unit ? "row" : words->unit && *words->unit ? words->unit : "unit";
  if (!isnan(clipping->wider_clipped)) {
    sqlite3_str_appendall(text, "how much was cut off is not told where wider units are scaled "
                                "down, too");
  } else if (isnan(clipping->cut_low)) {
    sqlite3_str_appendall(text, "how much was cut off is told only of counts and sums without "
                                "private keys and periods");
  } else if (isnan(clipping->cut)) {
    sqlite3_str_appendall(text, "too few ");
    append_units(text, words);
    sqlite3_str_appendall(text, " to say how much was cut off");
  } else if (isnan(clipping->within)) {
    sqlite3_str_appendf(text, "at least %d%% of the total was cut off, because a %s has more than ",
                        least_cut(clipping), unit);
    append_number(text, ldexp(1, TALLY_RUNGS - 2));
    sqlite3_str_appendall(text, " times clip");
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
    sqlite3_str_appendf(text, ", if no %s has more than ", unit);
    append_number(text, clipping->within);
    sqlite3_str_appendall(text, " times clip");
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

/* How the words say what one unit can contribute. */
enum share {
  NO_SHARE,
  ROWS,   /* at most `clip` of its rows */
  TOTAL,  /* a total from -clip to clip */
  LENGTH, /* a vector up to length `clip` */
  MEAN,   /* the average of its vectors, each up to length `clip` */
  WEIGHT, /* the weight of at most `clip` rows */
  ONCE    /* one row, divided among its values */
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
    {"bounds", "bounds of nearly all values, in size from 2.9e-39 to 3.4e+38", ONCE, 0, 0},
    {"vec_sum", "sum of vectors", LENGTH, 0, 0},
    {"vec_avg", "average of vectors", MEAN, 0, 0},
    {"choice", "category that most % have; drawn at random, it may be a rarer one", NO_SHARE, 0, 0},
    {"response_count", "answers in each category, without the effect of randomisation", NO_SHARE, 0,
     0},
    {"sgd", "coefficients of a model, as at most one pass over the rows leaves them", NO_SHARE, 0,
     0},
};

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

/* The words for one release. */
struct figure {
  const struct ledger_release *release;
  const struct words *words;
  const char *unit;  /* null: the ledger protects rows */
  const char *place; /* what the release has many of: "group", "cell", "bin"; or null */
  enum share share;
  int in_sum_norm; /* Laplace noise bounds a sum over all places, other noise a root of squares */
};

/* Says how much one unit contributes. */
static void append_share(sqlite3_str *text, const struct figure *figure) {
  const char *unit = figure->unit;
  double clip = figure->release->clip;
  if (figure->share == LENGTH || figure->share == MEAN) {
    sqlite3_str_appendf(text, ", %s length ", figure->share == MEAN ? "each cut to" : "up to");
    append_number(text, clip);
    if (figure->share == LENGTH) sqlite3_str_appendf(text, " of each %s", unit ? unit : "row");
  }
  if (figure->share == TOTAL && !figure->release->periods) {
    sqlite3_str_appendall(text, ", from ");
    append_number(text, -clip);
    sqlite3_str_appendall(text, " to ");
    append_number(text, clip);
    sqlite3_str_appendf(text, " of each %s", unit ? unit : "row");
  } else if (unit && (figure->share == ROWS || figure->share == TOTAL)) {
    sqlite3_str_appendall(text, ", at most ");
    append_number(text, clip);
    sqlite3_str_appendf(text, "%s of each %s", figure->share == TOTAL ? " up and down" : "", unit);
  } else if (unit && figure->share == WEIGHT && clip != 1) {
    sqlite3_str_appendf(text, ", each %s counts as at most ", unit);
    append_number(text, clip);
    sqlite3_str_appendall(text, " rows");
  } else if (unit && (figure->share == WEIGHT || figure->share == ONCE || figure->share == MEAN)) {
    int about = figure->release->ways && !figure->in_sum_norm;
    sqlite3_str_appendf(text, ", each %s counts %sonce", unit, about ? "about " : "");
  }
  if (unit && figure->share == ONCE)
    sqlite3_str_appendall(text, ", rare values by their share of rows");
}

/* Says that the bound of a series is for all of its periods, and is spent in their order. */
static void append_periods(sqlite3_str *text, const struct figure *figure) {
  double clip = figure->release->clip;
  if (figure->share == NO_SHARE && clip == 1) {
    sqlite3_str_appendall(text, ", each in their first period only");
  } else if (figure->share == NO_SHARE) {
    sqlite3_str_appendf(text, " of each period, added up over periods (a %s counts in their first ",
                        figure->unit);
    append_number(text, clip);
    sqlite3_str_appendall(text, " only)");
  } else {
    sqlite3_str_appendf(text, " in all %speriods together, earliest first",
                        figure->place ? "groups and " : "");
    if (figure->place && !figure->in_sum_norm)
      sqlite3_str_appendall(text, " (more with several groups in one period)");
  }
}

/* Says what the bound means for a unit with rows in several groups, cells or bins. */
static void append_places(sqlite3_str *text, const struct figure *figure) {
  const char *unit = figure->unit, *place = figure->place;
  double clip = figure->release->clip;
  int has_ways = figure->release->ways != 0, is_total = figure->share == TOTAL;
  if (figure->share == ROWS || is_total)
    sqlite3_str_appendf(text,
                        !figure->in_sum_norm ? " in one %s"
                        : has_ways           ? " in all %ss of a table"
                                             : " in all %ss together",
                        place);
  if (has_ways && (!figure->in_sum_norm || is_total))
    sqlite3_str_appendall(text, ", averaged over the tables");
  double whole = figure->words->share != NO_SHARE ? 1 : figure->in_sum_norm ? clip : clip * clip;
  int has_rows = figure->words->share != NO_SHARE && !figure->words->draws;
  sqlite3_str_appendf(text, " (a %s %sin ", unit, has_rows ? "with rows " : "");
  if (whole >= 2) {
    sqlite3_str_appendall(text, "more than ");
    append_number(text, floor(whole));
  } else {
    sqlite3_str_appendall(text, "several");
  }
  int always = figure->words->share == NO_SHARE ||
               (clip <= 1 && !is_total && (!has_ways || figure->in_sum_norm));
  sqlite3_str_appendf(text, " %ss %s less in each", place, always ? "counts" : "may count");
  if (has_rows)
    sqlite3_str_appendf(text, ", by the share of %s there", is_total ? "amounts" : "rows");
  if (has_ways && !figure->in_sum_norm) {
    sqlite3_str_appendall(text, ", and more than ");
    append_number(text, clip);
    sqlite3_str_appendall(text, " in a margin");
  }
  sqlite3_str_appendall(text, ")");
}

/* Says how much a wider unit counts: as much as some units, and more units in different groups. */
static void append_wider(sqlite3_str *text, const struct figure *figure,
                         const struct ledger_figure *terms) {
  double factor = terms->factor;
  int by_place = figure->place && !figure->release->ways && figure->words->share != WEIGHT;
  sqlite3_str_appendf(text, ", each %s at most as much as ", terms->wider);
  append_number(text, factor);
  sqlite3_str_appendall(text, " ");
  if (factor == 1) sqlite3_str_appendall(text, figure->unit);
  if (factor != 1) append_plural(text, figure->unit);
  if (!by_place || factor == 1) return;
  sqlite3_str_appendf(text, " in one %s (as ", figure->place);
  append_number(text, floor(factor * factor));
  sqlite3_str_appendf(text, " in different %ss)", figure->place);
}

/* Sums shrink by one factor, also where a radius gives it. Averages, spreads, quantiles and vectors
** keep their value if it is within the radius (mechanism/estimate.c). */
void figure_append_move(sqlite3_str *text, const struct ledger_release *release, int is_mixed) {
  const struct aggregate *aggregate = aggregate_find(release->kind);
  if (!aggregate || !aggregate->is_ou || release->theta == 0) return;
  if (isnan(release->theta) && !aggregate->family->is_linear) {
    sqlite3_str_appendall(text, ", kept within ");
    append_number(text, release->radius);
    sqlite3_str_appendall(text, " of ");
    append_number(text, release->centre);
  } else if (is_mixed) { /* a sum of numbers, each of which has the centre */
    sqlite3_str_appendall(text, ", shrunk");
  } else {
    sqlite3_str_appendall(text, ", shrunk towards ");
    append_number(text, release->centre);
  }
}

/* Returns the words for a kind, or null. */
static const struct words *words_of(const char *kind, int *is_grouped) {
  if (strncmp(kind, "ou_", 3) == 0) kind += 3;
  *is_grouped = strncmp(kind, "group_", 6) == 0;
  if (*is_grouped) kind += 6;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(words[i].name, kind) == 0) return &words[i];
  return 0; /* a kind that this version does not know */
}

/* A noisy count that selects a private key counts rows, or units if each adds at most 1 to a
** key. */
void figure_append_threshold(sqlite3_str *text, const char *kind, double clip, const char *unit,
                             double threshold) {
  int is_grouped;
  const struct words *of = words_of(kind, &is_grouped);
  int by_rows = !unit || (of && of->share == ROWS && !of->place) ||
                (of && of->share == WEIGHT && !of->draws && clip > 1);
  if (!(threshold > 0 && threshold < 1e15)) return;
  double step = pow(10, fmax(floor(log10(threshold)) - 1, 0)); /* two digits */
  sqlite3_str_appendf(text, "groups below about %,lld ",
                      (sqlite3_int64)(ceil(threshold / step) * step));
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

/* Appends the quantile with an index in the text of a JSON array of numbers. */
static void append_quantile(sqlite3_str *text, const char *quantiles, int index) {
  for (; index-- > 0 && quantiles; quantiles = strchr(quantiles + 1, ',')) continue;
  if (quantiles) sqlite3_str_appendf(text, "%.15g", strtod(quantiles + 1, 0));
}

char *figure_component(const struct ledger_release *release, int component) {
  int is_grouped;
  const struct words *of = words_of(release->kind, &is_grouped);
  sqlite3_str *text = sqlite3_str_new(0);
  if (of && of->place) {
    append_bin(text, release, component);
  } else if (release->quantiles && *release->quantiles == '[') {
    append_quantile(text, release->quantiles, component);
  } else if (of && of->share == ONCE) {
    sqlite3_str_appendall(text, component ? "upper end" : "lower end");
  } else if (of && (of->share == LENGTH || of->share == MEAN || strcmp(of->name, "sgd") == 0)) {
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
                       const struct ledger_figure *terms) {
  const struct ledger_clipping *clipping = &terms->clipping;
  const struct mechanism *mechanism = mechanism_of(figure->release);
  if (!mechanism || !mechanism->noise || isnan(clipping->stddev)) return;
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
  sqlite3_str_appendall(text, " (more if any is over ");
  append_number(text, clipping->within);
  sqlite3_str_appendall(text, " times the bound)");
}

char *figure_words(const struct ledger_release *release, const struct ledger_figure *terms) {
  const char *unit = terms->unit;
  int is_mixed = terms->is_mixed;
  sqlite3_str *text = sqlite3_str_new(0);
  int is_grouped;
  const struct words *of = words_of(release->kind, &is_grouped);
  if (!of) {
    sqlite3_str_appendall(text, release->kind);
    return sqlite3_str_finish(text);
  }
  const char *place = of->place;
  append_what(text, of->what, release, unit);
  if (is_grouped)
    sqlite3_str_appendall(text, place           ? " of each group"
                                : release->ways ? " in each cell"
                                                : " in each group");
  append_range(text, release, place != 0);
  if (!place && is_grouped) place = release->ways ? "cell" : "group";
  int in_sum_norm = release->mechanism && strcmp(release->mechanism, "laplace") == 0;
  struct figure figure = {release, of, unit, place, of->share, in_sum_norm};
  if (is_grouped && figure.share == NO_SHARE && release->clip < 1) figure.share = ROWS;
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
  if (of->draws && release->mechanism && strcmp(release->mechanism, "exponential") == 0)
    sqlite3_str_appendall(text, "; drawn at random near it");
  figure_append_move(text, release, 0);
  if (is_mixed && is_grouped)
    sqlite3_str_appendall(text, "; then added up into other groups by a public kernel");
  if (is_mixed && strcmp(of->name, "choice") == 0)
    sqlite3_str_appendall(text, "; then changed at random by a public kernel");
  append_cut(text, &figure, terms);
  return sqlite3_str_finish(text);
}
