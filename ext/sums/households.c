/* households.c: the wider units of a ledger, and what clipping did to units and households.
** Tests: tests/sums/test_households.c, tests/sums/test_within_neighbours.py,
** tests/release/test_clipping.py, tests/release/test_cut.py */
#include "sums/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"

/* ---- numbers of persons and households ------------------------------------------------------- */

/* Units are mostly numbered one after the other, so an array has a place for each integer from
** `origin` on. It is at most 2 SPARSE times as long as there are identities, or FIRST entries long.
** All other identities are in hash tables. */
#define SPARSE 4
#define FIRST  ((size_t)1 << 10)

struct map {
  uint32_t *direct; /* the numbers of the integers origin ... origin + limit - 1, plus 1, or 0 */
  uint64_t origin;
  size_t limit, count; /* the number of identities */
  struct numbering others;
};

static void map_close(struct map *map) {
  memory_table_free(map->direct, map->limit * sizeof *map->direct);
  numbering_close(&map->others);
}

static inline int is_direct(const struct map *map, struct identity identity) {
  return identity.kind == IDENTITY_INTEGER && identity.low - map->origin < map->limit;
}

/* Returns the number of an identity, or -1. */
static int64_t map_get(const struct map *map, struct identity identity) {
  uint32_t number = is_direct(map, identity) ? map->direct[identity.low - map->origin] : 0;
  return number ? (int64_t)number - 1 : numbering_get(&map->others, identity);
}

/* Gives an identity without a number this one. Returns its number, or -1 when out of memory. */
static int64_t map_put(struct map *map, struct identity identity, size_t number) {
  int64_t known = map_get(map, identity);
  if (known >= 0 || number >= UINT32_MAX) return known;
  size_t limit = map->limit ? map->limit : FIRST, most = SPARSE * map->count++;
  if (!map->limit) map->origin = identity.low & ~(FIRST - 1);
  uint64_t at = identity.low - map->origin;
  if (identity.kind != IDENTITY_INTEGER || (at >= limit && at >= most))
    return numbering_put(&map->others, identity, (int64_t)number);
  while (limit <= at) limit *= 2;
  if (limit > map->limit) {
    uint32_t *grown = memory_table(limit * sizeof *grown);
    if (!grown) return -1;
    if (map->limit) memcpy(grown, map->direct, map->limit * sizeof *grown);
    memory_table_free(map->direct, map->limit * sizeof *grown);
    map->direct = grown;
    map->limit = limit;
  }
  map->direct[at] = (uint32_t)number + 1;
  return (int64_t)number;
}

struct households {
  struct map persons;   /* the number of each person's household */
  struct map numbers;   /* the number of each household */
  struct identity last; /* the household that was noted last, and its number */
  int64_t last_number;
};

struct households *households_open(const struct secret *secret) {
  struct households *households = calloc(1, sizeof *households);
  if (households && numbering_open(&households->persons.others, secret) &&
      numbering_open(&households->numbers.others, secret))
    return households;
  households_close(households);
  return 0;
}

void households_close(struct households *households) {
  if (!households) return;
  map_close(&households->persons);
  map_close(&households->numbers);
  free(households);
}

int households_put(struct households *households, struct identity person,
                   struct identity household) {
  /* People are often sorted by household. */
  if (!households->numbers.count || !identity_same(household, households->last)) {
    int64_t number = map_put(&households->numbers, household, households->numbers.count);
    if (number < 0) return 0;
    households->last = household;
    households->last_number = number;
  }
  return map_put(&households->persons, person, (size_t)households->last_number) >= 0;
}

int64_t households_find(const struct households *households, struct identity person) {
  return map_get(&households->persons, person);
}

void households_expect(const void *context, struct identity person) {
  const struct map *persons = &((const struct households *)context)->persons;
  if (is_direct(persons, person)) {
    __builtin_prefetch(&persons->direct[person.low - persons->origin]);
  } else {
    numbering_expect(&persons->others, person);
  }
}

size_t households_count(const struct households *households) {
  return households->numbers.count;
}

/* ---- sums (H1, H2) --------------------------------------------------------------------------- */

/* A number of 192 bits. */
struct wide {
  uint128 low;
  uint64_t high;
};

/* Adds the square of x <= 2^72. The sum of 2^40 of them is below 2^192. */
static void add_square(struct wide *sum, uint128 x) {
  uint64_t low = (uint64_t)x;
  uint128 top = x >> 64;         /* at most 2^8 */
  uint128 cross = 2 * top * low; /* below 2^73 */
  uint128 parts[] = {(uint128)low * low, cross << 64};
  sum->high += (uint64_t)(top * top + (cross >> 64));
  for (int i = 0; i < 2; i++) {
    sum->low += parts[i];
    sum->high += sum->low < parts[i];
  }
}

static int is_over(const struct wide *sum, uint128 limit) {
  return sum->high > 0 || sum->low > limit;
}

/* Returns floor(root of x) + 1. If x has more than 126 bits, returns a larger number, by less than
** one part in 2^60. */
static uint128 root_above(struct wide x) {
  int halvings = 0, rest = 0;
  while (is_over(&x, ((uint128)1 << 126) - 1)) {
    rest |= (x.low & 3) != 0;
    x.low = x.low >> 2 | (uint128)(x.high & 3) << 126;
    x.high >>= 2;
    halvings++;
  }
  return ((uint128)lattice_root(x.low + (unsigned)rest) + 1) << halvings;
}

/* The products are below 2^126, because box <= 2^72 and reach < 2^54. */
int household_project(int128 *values, size_t count, int64_t reach, int is_far) {
  int128 box = (int128)reach << (is_far ? HOUSEHOLD_FAR : 0);
  struct wide square = {0, 0};
  int changed = 0;
  for (size_t i = 0; i < count; i++) {
    int128 value = lattice_clamp(values[i], -box, box);
    changed |= value != values[i];
    values[i] = value;
    add_square(&square, lattice_magnitude(value));
  }
  if (!is_over(&square, (uint128)reach * (uint128)reach)) return changed;
  int128 norm = (int128)root_above(square);
  for (size_t i = 0; i < count; i++) values[i] = values[i] * reach / norm;
  return 1;
}

/* ---- the tally (layout.h) -------------------------------------------------------------------- */

/* Adds `part` steps at the place r >= 1 of the ladder. */
static void climb(struct tally *tally, double part, double r) {
  int rung = 0;
  while (rung < TALLY_RUNGS - 1 && r >= ldexp(2, rung)) rung++;
  if (rung == TALLY_RUNGS - 1) {
    tally->rungs[rung] += (int128)part;
    return;
  }
  double upper = floor(part * (ldexp(r, -rung) - 1)); /* at most `part`, because r < 2^(rung + 1) */
  tally->rungs[rung] += (int128)part - (int128)upper;
  tally->rungs[rung + 1] += (int128)upper;
}

void tally_add(struct tally *tally, const struct ladder *ladder, int clipped, double before,
               double after) {
  *(clipped ? &tally->clipped : &tally->whole) += 1;
  if (!(ladder->most > 0) || !(after > 0)) return;
  double part = floor((double)ladder->steps * fmin(after / ladder->most, 1));
  climb(tally, part, fmax(before / after, 1));
}

void tally_join(struct tally *tally, const struct tally *others) {
  tally->clipped += others->clipped;
  tally->whole += others->whole;
  tally->households_clipped += others->households_clipped;
  tally->households_whole += others->households_whole;
  for (int i = 0; i < TALLY_RUNGS; i++) tally->rungs[i] += others->rungs[i];
  for (int i = 0; i < TALLY_OWN; i++) tally->shared[i] += others->shared[i];
}

/* Writes what the units tell, without those of households. */
static void write_own(const struct tally *tally, const struct ladder *ladder, int128 *own) {
  for (int i = 0; i < TALLY_RUNGS; i++) own[i] = tally->rungs[i];
  own[TALLY_RUNGS] = (int128)tally->clipped * ladder->steps;
  own[TALLY_RUNGS + 1] = (int128)tally->whole * ladder->steps;
}

int tally_note(struct tally *tally, struct partitioned_sums *shared, int64_t household,
               const struct ladder *ladder, int clipped, double before, double after) {
  struct tally one = {.whole = 0};
  int128 own[TALLY_OWN];
  int added = 1;
  if (household == HOUSEHOLD_NONE) {
    tally_add(tally, ladder, clipped, before, after);
    tally->households_whole++;
    return 1;
  }
  tally_add(&one, ladder, clipped, before, after);
  write_own(&one, ladder, own);
  for (int i = 0; i < TALLY_OWN && added; i++)
    if (own[i])
      added = partitioned_sums_add(shared, identity_integer(household), (uint32_t)i, &own[i]);
  return added;
}

/* The context of take_household(). */
struct bounding {
  struct tally *tally;
  const struct partitioned_sums *shared;
  int64_t most;
};

static int take_household(void *context, const record_word *const *list, size_t count) {
  const struct bounding *bounding = context;
  int128 values[TALLY_OWN];
  record_values(bounding->shared, list, count, values);
  household_project(values, count, bounding->most, 0);
  for (size_t i = 0; i < count; i++) bounding->tally->shared[record_cell(list[i])] += values[i];
  bounding->tally->households_whole++;
  return 1;
}

int tally_bound(struct tally *tally, struct partitioned_sums *shared, const struct ladder *ladder) {
  struct bounding bounding = {tally, shared, ladder->shared};
  return partitioned_sums_each_unit(shared, take_household, &bounding);
}

void tally_write(const struct tally *tally, const struct ladder *ladder, int coordinates,
                 int128 *totals) {
  int128 own[TALLY_OWN];
  write_own(tally, ladder, own);
  for (int i = 0; i < TALLY_OWN; i++) own[i] += tally->shared[i];
  if (ladder->shared) {
    *totals++ = (int128)tally->households_clipped * ladder->steps;
    *totals++ = (int128)tally->households_whole * ladder->steps;
    coordinates -= TALLY_COUNTS;
  }
  for (int i = 0; i < coordinates; i++) totals[i] = own[TALLY_OWN - coordinates + i];
}
