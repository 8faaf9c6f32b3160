/* kinds.c: the table of aggregates. */
#include <assert.h>
#include <string.h>

#include "release/kinds.h"

#include <sqlite3ext.h>
#include "mechanism/families.h"

SQLITE_EXTENSION_INIT3

/* Every kind with a clip can say how many units it clipped. */
#define CLIP   (1u << P_CLIP | 1u << P_DIAGNOSE)
#define RANGE  (1u << P_LO | 1u << P_HI)
#define Q      (1u << P_Q)
#define DIM    (1u << P_DIM)
#define BINS   (1u << P_BINS)
#define LEAVES (BINS | 1u << P_GRID)
#define KEYS   (1u << P_KEYS)
#define GROUPS (KEYS | 1u << P_SELECT | 1u << P_SHARE)
#define OU     (1u << P_RADIUS)

/*
** The arguments of the SQL functions below:
**
**   tier    a text
**   x       any value; the function skips NULL, converts text and blobs to numbers (SQLite's
**           numeric conversion), and clips infinities
**   clip    a number in [1e-150, 1e150]
**   radius  a number above 0; NULL if the options give theta
**   unit    any value if the ledger protects units; NULL or absent if the ledger protects rows
**   name    a text, or a JSON object of options
**
** sql/aggregates.md documents sources, sensitivities and the behaviour for NULL and errors.
** sums/layout.h documents the integer sensitivity.
*/
/* clang-format off */
#define PLACE(parameter, place) .parameters[P_##parameter] = place
#define COUNTS .counts = 1
#define GAUSSIAN .is_ou = 0
#define SHRUNK .is_ou = 1

static const struct aggregate core_kinds[] = {
  /*
  ** dp_count(tier, x [, clip, unit [, name]]): the number of rows in which x is not NULL; the
  ** default clip is 1
  */
  {"dp_count", "count", &family_sum, FORM_NUMBER, 2, 5,
   {.value = 1, PLACE(CLIP, 2), .unit = 3, .name = 4}, CLIP, 1, COUNTS,
   .grouped = "dp_group_count"},
  /* dp_count_distinct(tier, unit [, name]): the number of units */
  {"dp_count_distinct", "count_distinct", &family_sum, FORM_NUMBER, 2, 3,
   {.unit = 1, .name = 2}, 0, 1, COUNTS, .grouped = "dp_group_count_distinct"},
  /*
  ** dp_sum(tier, x, clip [, unit [, name]]): the sum of x; the total of each unit is clipped to
  ** [-clip, clip]
  */
  {"dp_sum", "sum", &family_sum, FORM_NUMBER, 3, 5,
   {.value = 1, PLACE(CLIP, 2), .unit = 3, .name = 4}, CLIP, 0, GAUSSIAN,
   .grouped = "dp_group_sum"},
  /* dp_avg, dp_var, dp_stddev(tier, x, lo, hi [, unit [, name]]): x is clipped to [lo, hi] */
  {"dp_avg", "avg", &family_mean, FORM_NUMBER, 4, 6,
   {.value = 1, PLACE(LO, 2), PLACE(HI, 3), .unit = 4, .name = 5}, CLIP | RANGE, 1, GAUSSIAN,
   .grouped = "dp_group_avg"},
  {"dp_var", "var", &family_spread, FORM_NUMBER, 4, 6,
   {.value = 1, PLACE(LO, 2), PLACE(HI, 3), .unit = 4, .name = 5}, CLIP | RANGE, 1, GAUSSIAN,
   .grouped = "dp_group_var"},
  {"dp_stddev", "stddev", &family_spread, FORM_NUMBER, 4, 6,
   {.value = 1, PLACE(LO, 2), PLACE(HI, 3), .unit = 4, .name = 5}, CLIP | RANGE, 1, .root = 1,
   .grouped = "dp_group_stddev"},
  /*
  ** dp_quantile(tier, x, q, lo, hi [, unit [, name]]), dp_median(tier, x, lo, hi [, unit [, name]])
  */
  {"dp_quantile", "quantile", &family_tree, FORM_ARRAY, 5, 7,
   {.value = 1, PLACE(Q, 2), PLACE(LO, 3), PLACE(HI, 4), .unit = 5, .name = 6},
   CLIP | RANGE | Q | LEAVES, 1, COUNTS, .grouped = "dp_group_quantile"},
  {"dp_median", "median", &family_tree, FORM_NUMBER, 4, 6,
   {.value = 1, PLACE(LO, 2), PLACE(HI, 3), .unit = 4, .name = 5}, CLIP | RANGE | LEAVES, 1,
   COUNTS, .grouped = "dp_group_median"},
  /* dp_histogram(tier, x, lo, hi, bins [, unit [, name]]) */
  {"dp_histogram", "histogram", &family_bins, FORM_ARRAY, 5, 7,
   {.value = 1, PLACE(LO, 2), PLACE(HI, 3), PLACE(BINS, 4), .unit = 5, .name = 6},
   CLIP | RANGE | BINS, 1, COUNTS, .grouped = "dp_group_histogram"},
  /*
  ** dp_bounds(tier, x [, unit [, name]]): the powers of two between which nearly all x lie; each
  ** unit's vector of counts has a norm of at most 1
  */
  {"dp_bounds", "bounds", &family_bounds, FORM_ARRAY, 2, 4, {.value = 1, .unit = 2, .name = 3}, 0,
   1, COUNTS},
  /* dp_vec_sum, dp_vec_avg(tier, v, dim, clip [, unit [, name]]) */
  {"dp_vec_sum", "vec_sum", &family_vector, FORM_ARRAY, 4, 6,
   {.value = 1, PLACE(DIM, 2), PLACE(CLIP, 3), .unit = 4, .name = 5}, CLIP | DIM, 0, GAUSSIAN},
  {"dp_vec_avg", "vec_avg", &family_vector_mean, FORM_ARRAY, 4, 6,
   {.value = 1, PLACE(DIM, 2), PLACE(CLIP, 3), .unit = 4, .name = 5}, CLIP | DIM, 0, GAUSSIAN},
  /*
  ** dp_group_count(tier, key [, clip, unit [, name]]), dp_group_sum(tier, key, x, clip [, unit [,
  ** name]]), dp_group_avg, dp_group_var, dp_group_stddev(tier, key, x, lo, hi [, unit [, name]])
  */
  {"dp_group_count", "group_count", &family_key_count, FORM_OBJECT, 2, 5,
   {.key = 1, PLACE(CLIP, 2), .unit = 3, .name = 4}, CLIP | GROUPS, 1, COUNTS},
  {"dp_group_sum", "group_sum", &family_key_sum, FORM_OBJECT, 4, 6,
   {.key = 1, .value = 2, PLACE(CLIP, 3), .unit = 4, .name = 5}, CLIP | GROUPS, 0, GAUSSIAN},
  {"dp_group_avg", "group_avg", &family_key_mean, FORM_OBJECT, 5, 7,
   {.key = 1, .value = 2, PLACE(LO, 3), PLACE(HI, 4), .unit = 5, .name = 6},
   CLIP | RANGE | GROUPS, 1, GAUSSIAN},
  {"dp_group_var", "group_var", &family_key_spread, FORM_OBJECT, 5, 7,
   {.key = 1, .value = 2, PLACE(LO, 3), PLACE(HI, 4), .unit = 5, .name = 6},
   CLIP | RANGE | GROUPS, 1, GAUSSIAN},
  {"dp_group_stddev", "group_stddev", &family_key_spread, FORM_OBJECT, 5, 7,
   {.key = 1, .value = 2, PLACE(LO, 3), PLACE(HI, 4), .unit = 5, .name = 6},
   CLIP | RANGE | GROUPS, 1, .root = 1},
  /* dp_group_count_distinct(tier, key, unit [, name]): the number of units in each group */
  {"dp_group_count_distinct", "group_count_distinct", &family_key_units, FORM_OBJECT, 3, 4,
   {.key = 1, .unit = 2, .name = 3}, CLIP | GROUPS, 1, COUNTS},
  /*
  ** dp_group_histogram(tier, key, x, lo, hi, bins [, unit [, name]]), dp_group_quantile(tier, key,
  ** x, q, lo, hi [, unit [, name]]), dp_group_median(tier, key, x, lo, hi [, unit [, name]])
  */
  {"dp_group_histogram", "group_histogram", &family_key_bins, FORM_ARRAYS, 6, 8,
   {.key = 1, .value = 2, PLACE(LO, 3), PLACE(HI, 4), PLACE(BINS, 5), .unit = 6, .name = 7},
   CLIP | RANGE | BINS | GROUPS, 1, COUNTS},
  {"dp_group_quantile", "group_quantile", &family_key_tree, FORM_ARRAYS, 6, 8,
   {.key = 1, .value = 2, PLACE(Q, 3), PLACE(LO, 4), PLACE(HI, 5), .unit = 6, .name = 7},
   CLIP | RANGE | Q | LEAVES | GROUPS, 1, COUNTS},
  {"dp_group_median", "group_median", &family_key_tree, FORM_OBJECT, 5, 7,
   {.key = 1, .value = 2, PLACE(LO, 3), PLACE(HI, 4), .unit = 5, .name = 6},
   CLIP | RANGE | LEAVES | GROUPS, 1, COUNTS},
  /* The functions of the Ornstein-Uhlenbeck mechanism also take a radius. */
  /* dp_ou_count(tier, x, radius [, clip, unit [, name]]) */
  {"dp_ou_count", "ou_count", &family_sum, FORM_NUMBER, 3, 6,
   {.value = 1, PLACE(RADIUS, 2), PLACE(CLIP, 3), .unit = 4, .name = 5},
   CLIP | OU, 1, COUNTS, SHRUNK, .grouped = "dp_ou_group_count"},
  /* dp_ou_count_distinct(tier, radius, unit [, name]) */
  {"dp_ou_count_distinct", "ou_count_distinct", &family_sum, FORM_NUMBER, 3, 4,
   {PLACE(RADIUS, 1), .unit = 2, .name = 3}, OU, 1, COUNTS, SHRUNK,
   .grouped = "dp_ou_group_count_distinct"},
  /* dp_ou_sum(tier, x, clip, radius [, unit [, name]]) */
  {"dp_ou_sum", "ou_sum", &family_sum, FORM_NUMBER, 4, 6,
   {.value = 1, PLACE(CLIP, 2), PLACE(RADIUS, 3), .unit = 4, .name = 5}, CLIP | OU, 0, SHRUNK,
   .grouped = "dp_ou_group_sum"},
  /* dp_ou_avg(tier, x, lo, hi, radius [, unit [, name]]) */
  {"dp_ou_avg", "ou_avg", &family_mean, FORM_NUMBER, 5, 7,
   {.value = 1, PLACE(LO, 2), PLACE(HI, 3), PLACE(RADIUS, 4), .unit = 5, .name = 6},
   CLIP | RANGE | OU, 1, SHRUNK, .grouped = "dp_ou_group_avg"},
  /* dp_ou_var, dp_ou_stddev(tier, x, lo, hi, radius [, unit [, name]]) */
  {"dp_ou_var", "ou_var", &family_spread, FORM_NUMBER, 5, 7,
   {.value = 1, PLACE(LO, 2), PLACE(HI, 3), PLACE(RADIUS, 4), .unit = 5, .name = 6},
   CLIP | RANGE | OU, 1, SHRUNK, .grouped = "dp_ou_group_var"},
  {"dp_ou_stddev", "ou_stddev", &family_spread, FORM_NUMBER, 5, 7,
   {.value = 1, PLACE(LO, 2), PLACE(HI, 3), PLACE(RADIUS, 4), .unit = 5, .name = 6},
   CLIP | RANGE | OU, 1, SHRUNK, .root = 1, .grouped = "dp_ou_group_stddev"},
  /*
  ** dp_ou_quantile(tier, x, q, lo, hi, radius [, unit [, name]]), dp_ou_median(tier, x, lo, hi,
  ** radius [, unit [, name]])
  */
  {"dp_ou_quantile", "ou_quantile", &family_tree, FORM_ARRAY, 6, 8,
   {.value = 1, PLACE(Q, 2), PLACE(LO, 3), PLACE(HI, 4), PLACE(RADIUS, 5), .unit = 6, .name = 7},
   CLIP | RANGE | Q | BINS | OU, 1, COUNTS, SHRUNK, .grouped = "dp_ou_group_quantile"},
  {"dp_ou_median", "ou_median", &family_tree, FORM_NUMBER, 5, 7,
   {.value = 1, PLACE(LO, 2), PLACE(HI, 3), PLACE(RADIUS, 4), .unit = 5, .name = 6},
   CLIP | RANGE | BINS | OU, 1, COUNTS, SHRUNK, .grouped = "dp_ou_group_median"},
  /* dp_ou_histogram(tier, x, lo, hi, bins, radius [, unit [, name]]) */
  {"dp_ou_histogram", "ou_histogram", &family_bins, FORM_ARRAY, 6, 8,
   {.value = 1, PLACE(LO, 2), PLACE(HI, 3), PLACE(BINS, 4), PLACE(RADIUS, 5), .unit = 6,
    .name = 7},
   CLIP | RANGE | BINS | OU, 1, COUNTS, SHRUNK, .grouped = "dp_ou_group_histogram"},
  /* dp_ou_vec_sum(tier, v, dim, clip, radius [, unit [, name]]) */
  {"dp_ou_vec_sum", "ou_vec_sum", &family_vector, FORM_ARRAY, 5, 7,
   {.value = 1, PLACE(DIM, 2), PLACE(CLIP, 3), PLACE(RADIUS, 4), .unit = 5, .name = 6},
   CLIP | DIM | OU, 0, SHRUNK},
  /* dp_ou_vec_avg(tier, v, dim, clip, radius [, unit [, name]]) */
  {"dp_ou_vec_avg", "ou_vec_avg", &family_vector_mean, FORM_ARRAY, 5, 7,
   {.value = 1, PLACE(DIM, 2), PLACE(CLIP, 3), PLACE(RADIUS, 4), .unit = 5, .name = 6},
   CLIP | DIM | OU, 0, SHRUNK},
  /* dp_ou_group_count(tier, key, radius [, clip, unit [, name]]) */
  {"dp_ou_group_count", "ou_group_count", &family_key_count, FORM_OBJECT, 3, 6,
   {.key = 1, PLACE(RADIUS, 2), PLACE(CLIP, 3), .unit = 4, .name = 5},
   CLIP | KEYS | OU, 1, COUNTS, SHRUNK},
  /* dp_ou_group_sum(tier, key, x, clip, radius [, unit [, name]]) */
  {"dp_ou_group_sum", "ou_group_sum", &family_key_sum, FORM_OBJECT, 5, 7,
   {.key = 1, .value = 2, PLACE(CLIP, 3), PLACE(RADIUS, 4), .unit = 5, .name = 6},
   CLIP | KEYS | OU, 0, SHRUNK},
  /*
  ** dp_ou_group_avg, dp_ou_group_var, dp_ou_group_stddev(tier, key, x, lo, hi, radius [, unit [,
  ** name]])
  */
  {"dp_ou_group_avg", "ou_group_avg", &family_key_mean, FORM_OBJECT, 6, 8,
   {.key = 1, .value = 2, PLACE(LO, 3), PLACE(HI, 4), PLACE(RADIUS, 5), .unit = 6, .name = 7},
   CLIP | RANGE | KEYS | OU, 1, SHRUNK},
  {"dp_ou_group_var", "ou_group_var", &family_key_spread, FORM_OBJECT, 6, 8,
   {.key = 1, .value = 2, PLACE(LO, 3), PLACE(HI, 4), PLACE(RADIUS, 5), .unit = 6, .name = 7},
   CLIP | RANGE | KEYS | OU, 1, SHRUNK},
  {"dp_ou_group_stddev", "ou_group_stddev", &family_key_spread, FORM_OBJECT, 6, 8,
   {.key = 1, .value = 2, PLACE(LO, 3), PLACE(HI, 4), PLACE(RADIUS, 5), .unit = 6, .name = 7},
   CLIP | RANGE | KEYS | OU, 1, SHRUNK, .root = 1},
  /* dp_ou_group_count_distinct(tier, key, radius, unit [, name]) */
  {"dp_ou_group_count_distinct", "ou_group_count_distinct", &family_key_units, FORM_OBJECT, 4, 5,
   {.key = 1, PLACE(RADIUS, 2), .unit = 3, .name = 4}, CLIP | KEYS | OU, 1, COUNTS, SHRUNK},
  /*
  ** dp_ou_group_histogram(tier, key, x, lo, hi, bins, radius [, unit [, name]]),
  ** dp_ou_group_quantile(tier, key, x, q, lo, hi, radius [, unit [, name]]),
  ** dp_ou_group_median(tier, key, x, lo, hi, radius [, unit [, name]])
  */
  {"dp_ou_group_histogram", "ou_group_histogram", &family_key_bins, FORM_ARRAYS, 7, 9,
   {.key = 1, .value = 2, PLACE(LO, 3), PLACE(HI, 4), PLACE(BINS, 5), PLACE(RADIUS, 6), .unit = 7,
    .name = 8},
   CLIP | RANGE | BINS | KEYS | OU, 1, COUNTS, SHRUNK},
  {"dp_ou_group_quantile", "ou_group_quantile", &family_key_tree, FORM_ARRAYS, 7, 9,
   {.key = 1, .value = 2, PLACE(Q, 3), PLACE(LO, 4), PLACE(HI, 5), PLACE(RADIUS, 6), .unit = 7,
    .name = 8},
   CLIP | RANGE | Q | BINS | KEYS | OU, 1, COUNTS, SHRUNK},
  {"dp_ou_group_median", "ou_group_median", &family_key_tree, FORM_OBJECT, 6, 8,
   {.key = 1, .value = 2, PLACE(LO, 3), PLACE(HI, 4), PLACE(RADIUS, 5), .unit = 6, .name = 7},
   CLIP | RANGE | BINS | KEYS | OU, 1, COUNTS, SHRUNK},
};
/* clang-format on */
/* ---- the tables of all rooms ----------------------------------------------------------------- */

#define MOST_KINDS      64
#define MOST_MECHANISMS 16

static const struct aggregate *kinds[MOST_KINDS];
static const struct mechanism *mechanisms[MOST_MECHANISMS];
static int kind_count, mechanism_count;

void kinds_add(const struct aggregate *more, int count) {
  assert(kind_count + count < MOST_KINDS);
  for (int i = 0; i < count; i++) kinds[kind_count++] = &more[i];
}

void mechanisms_add(const struct mechanism *const *more) {
  for (; *more; more++) {
    assert(mechanism_count + 1 < MOST_MECHANISMS);
    mechanisms[mechanism_count++] = *more;
  }
}

void core_open(void) {
  static const struct mechanism *const noisy[] = {&gaussian_mechanism, &laplace_mechanism,
                                                  &ou_mechanism, 0};
  kinds_add(core_kinds, sizeof core_kinds / sizeof *core_kinds);
  mechanisms_add(noisy);
}

const struct aggregate *kind_at(int index) {
  return kinds[index];
}

const struct mechanism *mechanism_at(int index) {
  return mechanisms[index];
}

const struct aggregate *aggregate_find(const char *kind) {
  for (int i = 0; kind && i < kind_count; i++) {
    if (strcmp(kinds[i]->kind, kind) == 0) return kinds[i];
  }
  return 0;
}

int kind_is_not_negative(const char *kind, double lo) {
  const struct aggregate *aggregate = aggregate_find(kind);
  int is_count = aggregate && aggregate->counts && aggregate->family->is_linear;
  return is_count || (aggregate && lo >= 0);
}

/* ---- mechanisms ------------------------------------------------------------------------------ */

const struct mechanism *mechanism_find(const struct aggregate *aggregate, const char *name) {
  for (int i = 0; mechanisms[i]; i++) {
    if (mechanism_admits(mechanisms[i], aggregate->family, aggregate->is_ou) &&
        (!name || strcmp(mechanisms[i]->name, name) == 0))
      return mechanisms[i];
  }
  return 0;
}

int unknown_mechanism(const struct aggregate *aggregate, struct error *error) {
  sqlite3_str *known = sqlite3_str_new(0);
  for (int i = 0; mechanisms[i]; i++) {
    if (mechanism_admits(mechanisms[i], aggregate->family, aggregate->is_ou))
      sqlite3_str_appendf(known, "%s%s", sqlite3_str_length(known) ? ", " : "",
                          mechanisms[i]->name);
  }
  char *list = sqlite3_str_finish(known);
  error_set(error, "kind '%s' has no such mechanism (it has: %s)", aggregate->kind,
            list ? list : "");
  sqlite3_free(list);
  return 0;
}

/* ---- kinds ----------------------------------------------------------------------------------- */

int unknown_kind(struct error *error) {
  sqlite3_str *known = sqlite3_str_new(0);
  for (int i = 0; i < kind_count; i++)
    sqlite3_str_appendf(known, "%s%s", i ? ", " : "", kinds[i]->kind);
  char *list = sqlite3_str_finish(known);
  error_set(error, "unknown kind (known kinds: %s)", list ? list : "");
  sqlite3_free(list);
  return 0;
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
