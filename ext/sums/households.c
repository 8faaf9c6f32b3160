/*
** households.c: see households.h.
** Tests: tests/sums/test_households.c, tests/sums/test_within_neighbours.py
*/
#include "sums/households.h"

#include <stdlib.h>

/* ---- persons --------------------------------------------------------------------------------- */

/* Hash tables with linear probing: from persons to households, from households to numbers. */
struct person {
  struct identity identity; /* of kind 0 in a free entry */
  int64_t household;
};

struct table {
  struct person *list;
  size_t room, count; /* `room` is 0 or a power of two */
};

struct households {
  const struct secret *secret;
  struct table persons, numbers;
  struct identity *identities; /* of the households, by number */
  size_t room;
  int64_t last; /* the number that was asked for last */
};

#define FIRST_ROOM 256

/* Returns the entry of an identity, or the free entry in which to put it. One entry is free. */
static struct person *find(const struct table *table, const struct secret *secret,
                           struct identity identity) {
  size_t at = (size_t)identity_mix(secret, identity, 0);
  for (;; at++) {
    struct person *person = &table->list[at & (table->room - 1)];
    if (!person->identity.kind || identity_same(person->identity, identity)) return person;
  }
}

/* Makes room for one more entry: at most three quarters are used. Returns 0 when out of memory. */
static int reserve(struct table *table, const struct secret *secret) {
  if (4 * (table->count + 1) <= 3 * table->room) return 1;
  struct table grown = {.room = table->room ? 2 * table->room : FIRST_ROOM, .count = table->count};
  grown.list = calloc(grown.room, sizeof *grown.list);
  if (!grown.list) return 0;
  for (size_t i = 0; i < table->room; i++)
    if (table->list[i].identity.kind)
      *find(&grown, secret, table->list[i].identity) = table->list[i];
  free(table->list);
  *table = grown;
  return 1;
}

struct households *households_open(const struct secret *secret) {
  struct households *households = calloc(1, sizeof *households);
  if (households) households->secret = secret;
  return households;
}

void households_close(struct households *households) {
  if (!households) return;
  free(households->persons.list);
  free(households->numbers.list);
  free(households->identities);
  free(households);
}

/* Returns the number of a household, which may be new, or -1 when out of memory. */
static int64_t number_of(struct households *households, struct identity identity) {
  struct table *numbers = &households->numbers;
  if (numbers->count && identity_same(identity, households->identities[households->last]))
    return households->last; /* people are often sorted by household */
  if (!reserve(numbers, households->secret)) return -1;
  struct person *entry = find(numbers, households->secret, identity);
  if (entry->identity.kind) return households->last = entry->household;
  if (numbers->count == households->room) {
    size_t room = households->room ? 2 * households->room : FIRST_ROOM;
    struct identity *grown = realloc(households->identities, sizeof *grown * room);
    if (!grown) return -1;
    households->identities = grown;
    households->room = room;
  }
  households->identities[numbers->count] = identity;
  *entry = (struct person){identity, (int64_t)numbers->count++};
  return households->last = entry->household;
}

static int is_less(struct identity a, struct identity b) {
  return a.kind != b.kind ? a.kind < b.kind : a.low < b.low;
}

int households_put(struct households *households, struct identity person,
                   struct identity household) {
  int64_t number = number_of(households, household);
  if (number < 0 || !reserve(&households->persons, households->secret)) return 0;
  struct person *entry = find(&households->persons, households->secret, person);
  int is_new = !entry->identity.kind;
  households->persons.count += (size_t)is_new;
  if (is_new || is_less(household, households->identities[entry->household]))
    *entry = (struct person){person, number};
  return 1;
}

int64_t households_find(const struct households *households, struct identity person) {
  if (!households->persons.count) return HOUSEHOLD_NONE;
  const struct person *entry = find(&households->persons, households->secret, person);
  return entry->identity.kind ? entry->household : HOUSEHOLD_NONE;
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

/*
** Returns floor(root of x) + 1. If x has more than 126 bits, returns a larger number, by less than
** one part in 2^60.
*/
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
