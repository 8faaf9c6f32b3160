/* households.c: the wider units of a ledger, and what clipping did to units and households.
** Tests: tests/sums/test_households.c, tests/sums/test_within_neighbours.py,
** tests/release/test_clipping.py, tests/release/test_cut.py */
#include "sums/internal.h"

#include <math.h>
#include <stdlib.h>

#include "os/os.h"

/* ---- numbers of identities ------------------------------------------------------------------- */

/* A map from identities to numbers. Units are mostly numbered one after the other, so an array has
** a place for each integer from the first one, `origin`. It is at most 2 SPARSE times as long as
** there are identities, or FIRST entries long. All other identities are in a hash table with linear
** probing, at most three quarters full. */
#define SPARSE 4
#define FIRST  ((size_t)1 << 10)

struct map {
  uint32_t *direct; /* the numbers of the integers origin ... origin + limit - 1, plus 1, or 0 */
  uint64_t origin;
  size_t limit;
  struct identity *keys; /* of kind 0 in a free slot */
  uint32_t *numbers;     /* the number of each key plus 1 */
  size_t room, hashed;   /* the slots, and the used ones; `room` is 0 or a power of two */
  size_t count;          /* the number of identities */
};

static void map_close(struct map *map) {
  memory_table_free(map->direct, map->limit * sizeof *map->direct);
  memory_table_free(map->keys, map->room * sizeof *map->keys);
  memory_table_free(map->numbers, map->room * sizeof *map->numbers);
}

static int is_direct(const struct map *map, struct identity identity) {
  return identity.kind == IDENTITY_INTEGER && identity.low - map->origin < map->limit;
}

/* Returns the slot of an identity that is not direct, or the free slot in which to put it. */
static size_t slot_of(const struct map *map, const struct secret *secret,
                      struct identity identity) {
  size_t at = (size_t)identity_mix(secret, identity, 0);
  for (;; at++) {
    const struct identity *key = &map->keys[at & (map->room - 1)];
    if (!key->kind || identity_same(*key, identity)) return at & (map->room - 1);
  }
}

/* Returns the number of an identity plus 1, or 0. */
static uint32_t map_get(const struct map *map, const struct secret *secret,
                        struct identity identity) {
  if (is_direct(map, identity)) return map->direct[identity.low - map->origin];
  return map->room ? map->numbers[slot_of(map, secret, identity)] : 0;
}

/* Puts the number of a new identity, for which there is room, into the map. */
static void enter(struct map *map, const struct secret *secret, struct identity identity,
                  uint32_t number) {
  if (is_direct(map, identity)) {
    map->direct[identity.low - map->origin] = number + 1;
  } else {
    size_t slot = slot_of(map, secret, identity);
    map->keys[slot] = identity;
    map->numbers[slot] = number + 1;
    map->hashed++;
  }
  map->count++;
}

/* Moves all identities to a map with this room. Returns 0 when out of memory. */
static int resize(struct map *map, const struct secret *secret, size_t limit, size_t room) {
  struct map grown = {.origin = map->origin, .limit = limit, .room = room};
  grown.direct = limit ? memory_table(limit * sizeof *grown.direct) : 0;
  grown.keys = room ? memory_table(room * sizeof *grown.keys) : 0;
  grown.numbers = room ? memory_table(room * sizeof *grown.numbers) : 0;
  if ((limit && !grown.direct) || (room && (!grown.keys || !grown.numbers))) {
    map_close(&grown);
    return 0;
  }
  for (size_t i = 0; i < map->limit; i++)
    if (map->direct[i])
      enter(&grown, secret, identity_integer((int64_t)(map->origin + i)), map->direct[i] - 1);
  for (size_t i = 0; i < map->room; i++)
    if (map->keys[i].kind) enter(&grown, secret, map->keys[i], map->numbers[i] - 1);
  map_close(map);
  *map = grown;
  return 1;
}

/* Puts the number of a new identity into the map. Returns 0 when out of memory. */
static int map_put(struct map *map, const struct secret *secret, struct identity identity,
                   uint32_t number) {
  size_t limit = map->limit ? map->limit : FIRST, most = SPARSE * map->count;
  if (!map->limit && identity.kind == IDENTITY_INTEGER) map->origin = identity.low & ~(FIRST - 1);
  uint64_t at = identity.low - map->origin;
  if (identity.kind == IDENTITY_INTEGER && at < (most > FIRST ? most : FIRST))
    while (limit <= at) limit *= 2;
  size_t room = map->room;
  if (4 * (map->hashed + 1) > 3 * room) room = room ? 2 * room : FIRST;
  if ((limit != map->limit || room != map->room) && !resize(map, secret, limit, room)) return 0;
  enter(map, secret, identity, number);
  return 1;
}

/* ---- persons --------------------------------------------------------------------------------- */

struct households {
  const struct secret *secret;
  struct map persons;   /* the number of each person's household */
  struct map numbers;   /* the number of each household */
  struct identity last; /* the household that was noted last, and its number plus 1, or 0 */
  uint32_t last_number;
};

struct households *households_open(const struct secret *secret) {
  struct households *households = calloc(1, sizeof *households);
  if (households) households->secret = secret;
  return households;
}

void households_close(struct households *households) {
  if (!households) return;
  map_close(&households->persons);
  map_close(&households->numbers);
  free(households);
}

/* Returns the number of a household, which may be new, plus 1, or 0 when out of memory. */
static uint32_t number_of(struct households *households, struct identity identity) {
  /* People are often sorted by household. */
  if (households->last_number && identity_same(identity, households->last))
    return households->last_number;
  struct map *numbers = &households->numbers;
  uint32_t number = map_get(numbers, households->secret, identity);
  if (!number) {
    number = (uint32_t)numbers->count + 1;
    if (!number || !map_put(numbers, households->secret, identity, number - 1)) return 0;
  }
  households->last = identity;
  return households->last_number = number;
}

int households_put(struct households *households, struct identity person,
                   struct identity household) {
  if (map_get(&households->persons, households->secret, person)) return 1;
  uint32_t number = number_of(households, household);
  return number && map_put(&households->persons, households->secret, person, number - 1);
}

int64_t households_find(const struct households *households, struct identity person) {
  return (int64_t)map_get(&households->persons, households->secret, person) - 1;
}

void households_expect(const void *context, struct identity person) {
  const struct households *households = context;
  const struct map *map = &households->persons;
  if (is_direct(map, person)) {
    __builtin_prefetch(&map->direct[person.low - map->origin]);
  } else if (map->room) {
    size_t at = (size_t)identity_mix(households->secret, person, 0) & (map->room - 1);
    __builtin_prefetch(&map->keys[at]);
    __builtin_prefetch(&map->numbers[at]);
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

int tally_share(struct partitioned_sums *shared, int64_t household, const struct ladder *ladder,
                int clipped, double before, double after) {
  struct tally one = {.whole = 0};
  int128 own[TALLY_OWN];
  int added = 1;
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
