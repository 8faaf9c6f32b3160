/* kinds.c: the kinds, which are a product: a statistic, with or without a public bound (`ou_`),
** with or without keys (`group_`). Names, arguments and checks follow from one row for each
** statistic.
** Tests: tests/functions/test_options.py */
#include "release/kinds.h"

#include <assert.h>
#include <sqlite3ext.h>
#include <stdio.h>
#include <string.h>

#include "base/sql_text.h"
#include "mechanism/mechanism.h"
#include "sums/layout.h"

SQLITE_EXTENSION_INIT3

/* The arguments of the SQL functions, in this order:
**
**   tier    a text
**   key     any value, for kinds with keys
**   x       any value; the function skips what is no number (`count`: NULL only), and clips
**           infinities. A vector for the statistics of vectors
**   ...     the parameters of the statistic (`arguments` below)
**   radius  for kinds with a public bound: a number above 0; NULL if the options give theta
**   clip    for counts of rows, where it may be left out
**   name    a text, or a JSON object of options
**
** sql/aggregates.md documents sources, sensitivities and the behaviour for NULL and errors.
** sums/layout.h documents the integer sensitivity. */
#define CLIP     (1u << P_CLIP)
#define LEAVES   (1u << P_BINS | 1u << P_GRID)
#define LO_HI    P_LO, P_HI
#define KEYED(f) .family = &family_##f, .keyed = &family_key_##f
#define IN_RANGE .x = X_ALWAYS, .arguments = {LO_HI}, .default_clip = 1

static const struct statistic_row statistics[] = {
    /* the number of rows in which x is not NULL; where units are protected, it needs a clip */
    {.name = "count",
     .wording = {"rows", "count", SHARE_ROWS, 0, 0},
     .family = &family_sum,
     .keyed = &family_key_count,
     .x = X_UNLESS_KEYED,
     .last = P_CLIP,
     .default_clip = 1,
     .counts = 1,
     .has_series = 1},
    /* the number of units; with keys, of each key */
    {.name = "count_distinct",
     .wording = {"%", "count", SHARE_NONE, 0, 0},
     .family = &family_sum,
     .keyed = &family_key_units,
     .counts_units = 1,
     .keyed_options = CLIP,
     .default_clip = 1,
     .counts = 1,
     .has_series = 1},
    /* the sum of x; the total of each unit is clipped to [-clip, clip] */
    {.name = "sum",
     .wording = {"sum", "sum", SHARE_TOTAL, 0, 0},
     KEYED(sum),
     .x = X_ALWAYS,
     .arguments = {P_CLIP},
     .has_series = 1},
    /* the average, the variance and the standard deviation of x, which is clipped to [lo, hi] */
    {.name = "avg",
     .wording = {"average", "average", SHARE_WEIGHT, 0, 0},
     KEYED(mean),
     IN_RANGE,
     .options = CLIP,
     .has_series = 1},
    {.name = "var",
     .wording = {"variance", "variance", SHARE_WEIGHT, 0, 0},
     KEYED(spread),
     IN_RANGE,
     .options = CLIP},
    {.name = "stddev",
     .wording = {"standard deviation", "standard deviation", SHARE_WEIGHT, 0, 0},
     KEYED(spread),
     IN_RANGE,
     .options = CLIP,
     .root = 1},
    /* quantiles of x, from a tree of counts; several quantiles are an array */
    {.name = "quantile",
     .wording = {"#", "quantile", SHARE_WEIGHT, 0, 1},
     KEYED(tree),
     .form = FORM_ARRAY,
     .x = X_ALWAYS,
     .arguments = {P_Q, LO_HI},
     .options = CLIP | LEAVES,
     .default_clip = 1,
     .counts = 1},
    {.name = "median",
     .wording = {"median", "median", SHARE_WEIGHT, 0, 1},
     KEYED(tree),
     IN_RANGE,
     .options = CLIP | LEAVES,
     .counts = 1},
    /* the number of rows in each part of [lo, hi] */
    {.name = "histogram",
     .wording = {"rows in each bin", "count", SHARE_ROWS, "bin", 0},
     KEYED(bins),
     .form = FORM_ARRAY,
     .x = X_ALWAYS,
     .arguments = {LO_HI, P_BINS},
     .options = CLIP,
     .default_clip = 1,
     .counts = 1},
    /* the powers of two between which nearly all x lie; each unit's vector of counts has a norm of
    ** at most 1 */
    {.name = "bounds",
     .wording = {"bounds of nearly all values, in size from 2.9e-39 to 3.4e+38", "value",
                 SHARE_ONCE, 0, 0},
     .family = &family_bounds,
     .form = FORM_ARRAY,
     .x = X_ALWAYS,
     .default_clip = 1,
     .counts = 1,
     .no_bound = "its two numbers are powers of two, which nothing can shrink",
     .no_keys = "bounds are for all groups together"},
    /* sums and averages of vectors */
    {.name = "vec_sum",
     .wording = {"sum of vectors", "sum", SHARE_LENGTH, 0, 0},
     .family = &family_vector,
     .form = FORM_ARRAY,
     .x = X_ALWAYS,
     .arguments = {P_DIM, P_CLIP},
     .no_keys =
         "groups of vectors are not made (release one vector with a component for each key)"},
    {.name = "vec_avg",
     .wording = {"average of vectors", "average", SHARE_MEAN, 0, 0},
     .family = &family_vector_mean,
     .form = FORM_ARRAY,
     .x = X_ALWAYS,
     .arguments = {P_DIM, P_CLIP},
     .no_keys =
         "groups of vectors are not made (release one vector with a component for each key)"},
};

/* ---- the product ----------------------------------------------------------------------------- */

/* Sets the places of the arguments and how many there are. */
static void place_arguments(struct aggregate *kind, const struct statistic_row *row, int is_keyed) {
  struct places *places = &kind->places;
  int next = 1; /* argument 0 is the tier */
  if (is_keyed || row->has_key) places->key = next++;
  if (row->x == X_ALWAYS || (row->x == X_UNLESS_KEYED && !is_keyed)) places->value = next++;
  for (int i = 0; i < MOST_OF_STATISTIC && row->arguments[i] != P_NONE; i++)
    places->parameters[row->arguments[i]] = next++;
  if (kind->is_ou) places->parameters[P_RADIUS] = next++;
  kind->min_arguments = next + row->needs_name;
  if (row->last != P_NONE) places->parameters[row->last] = next++;
  places->name = next++;
  kind->max_arguments = next;
  assert(next <= MAX_ARGUMENTS);
}

/* Sets the parameters that the kind takes, as arguments or as options. */
static void take_parameters(struct aggregate *kind, const struct statistic_row *row, int is_keyed) {
  kind->takes = row->options;
  for (int i = 0; i < PARAMETERS; i++)
    if (kind->places.parameters[i]) kind->takes |= 1u << i;
  if (is_keyed) kind->takes |= row->keyed_options | 1u << P_KEYS;
  /* How far a value shrinks depends on the number of groups, which must therefore be public. */
  if (is_keyed && !kind->is_ou) kind->takes |= 1u << P_SELECT | 1u << P_SHARE;
  if (kind->family->has_tables && !kind->is_ou) kind->takes |= 1u << P_WAYS;
  /* Neither shrinks a series nor bounds it in each group. */
  if (row->has_series && !kind->is_ou && !kind->family->each) {
    kind->takes |= 1u << P_PERIODS;
    if (!(kind->takes & 1u << P_CLIP)) kind->takes |= 1u << P_SERIES;
  }
  /* Every kind with a clip can say how many units it clipped. */
  if (kind->takes & CLIP && !row->needs_name) kind->takes |= 1u << P_DIAGNOSE;
}

#define LONGEST 32 /* bytes of a name of a function */

/* One combination of a statistic, a public bound and keys. */
struct product {
  struct aggregate kind;
  char name[LONGEST], grouped[LONGEST];
};

static void make_kind(struct product *product, const struct statistic_row *row, int is_ou,
                      int is_keyed) {
  struct aggregate *kind = &product->kind;
  const char *bound = is_ou ? "ou_" : "";
  snprintf(product->name, LONGEST, "dp_%s%s%s", bound, is_keyed ? "group_" : "", row->name);
  snprintf(product->grouped, LONGEST, "dp_%sgroup_%s", bound, row->name);
  *kind = (struct aggregate){.name = product->name,
                             .kind = product->name + strlen("dp_"),
                             .wording = row->wording,
                             .family = is_keyed ? row->keyed : row->family,
                             .form = !is_keyed                  ? row->form
                                     : row->form == FORM_NUMBER ? FORM_OBJECT
                                                                : FORM_ARRAYS,
                             .default_clip = row->default_clip,
                             .is_ou = is_ou,
                             .counts = row->counts,
                             .counts_units = row->counts_units,
                             .root = row->root,
                             .grouped = !is_keyed && row->keyed ? product->grouped : 0,
                             .procedure = row->procedure,
                             .own_options = row->own_options,
                             .own_option_count = row->own_option_count,
                             .rows = row->rows};
  place_arguments(kind, row, is_keyed);
  take_parameters(kind, row, is_keyed);
}

/* ---- the tables of all rooms ----------------------------------------------------------------- */

#define MOST_STATISTICS 16
#define MOST_MECHANISMS 16

static const struct statistic_row *rows[MOST_STATISTICS];
static struct product kinds[4 * MOST_STATISTICS];
static const struct mechanism *mechanisms[MOST_MECHANISMS];
static int row_count, kind_count, mechanism_count;

static void statistics_add(const struct statistic_row *more, int count) {
  assert(row_count + count <= MOST_STATISTICS);
  for (int i = 0; i < count; i++) rows[row_count++] = &more[i];
  for (int combination = 0; combination < 4; combination++) {
    int is_ou = combination >> 1, is_keyed = combination & 1;
    for (int i = 0; i < count; i++) {
      if ((is_ou && more[i].no_bound) || (is_keyed && more[i].no_keys)) continue;
      make_kind(&kinds[kind_count++], &more[i], is_ou, is_keyed);
    }
  }
}

static void mechanisms_add(const struct mechanism *const *more) {
  for (; *more; more++) {
    assert(mechanism_count + 1 < MOST_MECHANISMS);
    mechanisms[mechanism_count++] = *more;
  }
}

static void core_open(void) {
  static const struct mechanism *const noisy[] = {&gaussian_mechanism, &laplace_mechanism,
                                                  &ou_mechanism, &leaf_draw_mechanism, 0};
  statistics_add(statistics, sizeof statistics / sizeof *statistics);
  mechanisms_add(noisy);
}

const struct aggregate *kind_at(int index) {
  return index < kind_count ? &kinds[index].kind : 0;
}

const struct mechanism *mechanism_at(int index) {
  return mechanisms[index];
}

const struct aggregate *aggregate_find(const char *kind) {
  for (int i = 0; kind && i < kind_count; i++)
    if (strcmp(kinds[i].kind.kind, kind) == 0) return &kinds[i].kind;
  return 0;
}

int kind_counts_rows(const struct aggregate *aggregate) {
  return aggregate->counts && (aggregate->takes & 1u << P_CLIP) && aggregate->family->is_linear &&
         aggregate->family != &family_key_units;
}

/* ---- mechanisms ------------------------------------------------------------------------------ */

int kind_admits(const struct aggregate *aggregate, const struct mechanism *mechanism) {
  const struct family *family = aggregate->family;
  unsigned suits = family->statistic | (family->drawn ? family->drawn->statistic : 0);
  return mechanism->shrinks == aggregate->is_ou && (mechanism->statistics & suits) != 0;
}

const struct mechanism *mechanism_find(const struct aggregate *aggregate, const char *name) {
  for (int i = 0; mechanisms[i]; i++) {
    if (kind_admits(aggregate, mechanisms[i]) &&
        (!name || strcmp(mechanisms[i]->name, name) == 0))
      return mechanisms[i];
  }
  return 0;
}

const struct mechanism *mechanism_of(const struct ledger_release *release) {
  const struct aggregate *aggregate = aggregate_find(release->kind);
  return aggregate ? mechanism_find(aggregate, release->mechanism) : 0;
}

int unknown_mechanism(const struct aggregate *aggregate, const char *name, struct error *error) {
  struct known_names known = {.asked = name};
  for (int i = 0; mechanisms[i]; i++)
    if (kind_admits(aggregate, mechanisms[i]))
      known_names_add(&known, mechanisms[i]->name);
  return known_names_fail(&known, error, "unknown mechanism%s (%sthis kind has: %s)");
}

/* ---- kinds ----------------------------------------------------------------------------------- */

/* Returns the statistic whose combination with a bound or with keys `kind` names, and the reason
** why there is no such kind; or null. */
static const struct statistic_row *refused_kind(const char *kind, const char **reason) {
  int is_ou = strncmp(kind, "ou_", 3) == 0;
  const char *rest = is_ou ? kind + 3 : kind;
  int is_keyed = strncmp(rest, "group_", 6) == 0;
  if (is_keyed) rest += 6;
  for (int i = 0; i < row_count; i++) {
    *reason = is_ou && rows[i]->no_bound ? rows[i]->no_bound : is_keyed ? rows[i]->no_keys : 0;
    if (*reason && strcmp(rows[i]->name, rest) == 0) return rows[i];
  }
  return 0;
}

/* Other words for a statistic. The statistics themselves are found by their spelling. */
static const char *const synonyms[][2] = {
    {"mean", "avg"},
    {"min", "quantile"},
    {"max", "quantile"},
    {"minimum", "quantile"},
    {"maximum", "quantile"},
    {"percentile", "quantile"},
    {"total", "sum"},
    {"std", "stddev"},
    {"sd", "stddev"},
    {"stdev", "stddev"},
    {"number", "count"},
    {"distinct", "count_distinct"},
    {"unique", "count_distinct"},
    {"nunique", "count_distinct"},
    {"mode", "choice"},
    {"percentiles", "quantile"},
    {"range", "bounds"},
};

/* Writes the kind that a kind with another word for its statistic means: group_avg for group_mean.
** Returns null if there is none. */
static const char *synonym_of(const char *kind, char meant[LONGEST]) {
  for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++) {
    size_t prefix = strlen(kind) - strlen(synonyms[i][0]);
    if (strlen(kind) < strlen(synonyms[i][0]) || prefix + strlen(synonyms[i][1]) >= LONGEST ||
        sqlite3_stricmp(kind + prefix, synonyms[i][0]) != 0)
      continue;
    snprintf(meant, LONGEST, "%.*s%s", (int)prefix, kind, synonyms[i][1]);
    if (aggregate_find(meant)) return meant;
  }
  return 0;
}

static int is_query(const char *text) {
  char word[8];
  first_word(text, word);
  return strcmp(word, "SELECT") == 0 || strcmp(word, "WITH") == 0 || strcmp(word, "VALUES") == 0;
}

int unknown_kind(const char *kind, struct error *error) {
  const char *reason;
  char meant[LONGEST];
  if (kind && is_query(kind))
    return error_set(error, "kind is the text of a query (the kind comes before sql: 'public', "
                            "'count', 'SELECT 1 FROM ...')");
  const struct statistic_row *row = kind ? refused_kind(kind, &reason) : 0;
  if (row)
    return error_set(error, "there is no kind '%s', because %s (take '%s')", kind, reason,
                     row->name);
  struct known_names known = {.asked = kind};
  for (int i = 0; i < kind_count; i++) known_names_add(&known, kinds[i].kind.kind);
  if (kind && synonym_of(kind, meant)) memcpy(known.nearest, meant, strlen(meant) + 1);
  return known_names_fail(&known, error, "unknown kind%s (%sknown kinds: %s)");
}

int aggregate_columns(const struct aggregate *aggregate, int by_unit, const char **names) {
  static const char *const lists[8] = {"",    "unit",      "x",      "x, unit",
                                       "key", "key, unit", "key, x", "key, x, unit"};
  int key = aggregate->places.key > 0, value = aggregate->places.value > 0;
  if (aggregate->family->columns) {
    *names = aggregate->family->columns;
    return key + value;
  }
  *names = lists[4 * key + 2 * value + by_unit];
  return key + value + by_unit;
}

/* ---- the rooms beside the core --------------------------------------------------------------- */

static const struct room *const *all;

void rooms_open(const struct room *const *rooms) {
  if (all) return;
  core_open();
  for (all = rooms; *rooms; rooms++) {
    statistics_add((*rooms)->statistics, (*rooms)->statistic_count);
    if ((*rooms)->mechanisms) mechanisms_add((*rooms)->mechanisms);
  }
}

int rooms_resend(const struct publication *publication, const char *tier, struct numbers *numbers) {
  const struct room *const *room = all;
  while (*room && !(*room)->resend) room++;
  return !*room || (*room)->resend(publication, tier, numbers);
}
