/* test_households.c: compares the point of a household with its definition (sums.h), in
** integers of 320 bits, and checks that one person moves it by no more than is charged. Also checks
** the table of persons, for small and large integers and texts, in two orders. */
#include "check.h"
#include "random.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "sums/sums.h"

/* ---- integers of 320 bits -------------------------------------------------------------------- */

struct wide {
  uint64_t words[5]; /* the least significant word first */
};

static void add_at(struct wide *sum, int place, uint128 value) {
  for (; value; place++) {
    value += sum->words[place];
    sum->words[place] = (uint64_t)value;
    value >>= 64;
  }
}

static struct wide product(uint128 x, uint128 y) {
  struct wide sum = {{0}};
  uint64_t a[] = {(uint64_t)x, (uint64_t)(x >> 64)}, b[] = {(uint64_t)y, (uint64_t)(y >> 64)};
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++) add_at(&sum, i + j, (uint128)a[i] * b[j]);
  return sum;
}

static void add(struct wide *sum, struct wide more) {
  for (int i = 0; i < 5; i++) add_at(sum, i, more.words[i]);
}

static int compare(const struct wide *a, const struct wide *b) {
  for (int i = 4; i >= 0; i--)
    if (a->words[i] != b->words[i]) return a->words[i] < b->words[i] ? -1 : 1;
  return 0;
}

/* Returns the largest n with n^2 <= square, by bisection. */
static uint128 root_of(const struct wide *square) {
  uint128 root = 0;
  for (int bit = 100; bit >= 0; bit--) {
    uint128 next = root | (uint128)1 << bit;
    struct wide power = product(next, next);
    if (compare(&power, square) <= 0) root = next;
  }
  return root;
}

static uint128 size_of(int128 x) {
  return x < 0 ? -(uint128)x : (uint128)x;
}

/* ---- the definition -------------------------------------------------------------------------- */

#define MOST 50

/* Sets `point` to what H1 and H2 define. Returns whether it differs from `sum`. */
static int define(const int128 *sum, size_t count, int64_t reach, int is_far, int128 *point) {
  uint128 box = (uint128)reach << (is_far ? 18 : 0);
  struct wide square = {{0}}, limit = product((uint128)reach, (uint128)reach);
  int changed = 0;
  for (size_t i = 0; i < count; i++) {
    uint128 size = size_of(sum[i]) > box ? box : size_of(sum[i]);
    point[i] = sum[i] < 0 ? -(int128)size : (int128)size;
    changed |= point[i] != sum[i];
    add(&square, product(size, size));
  }
  if (compare(&square, &limit) <= 0) return changed;
  uint128 n = root_of(&square);
  n++;
  for (size_t i = 0; i < count; i++) {
    uint128 part = size_of(point[i]) * (uint64_t)reach;
    part /= n;
    point[i] = point[i] < 0 ? -(int128)part : (int128)part;
  }
  return 1;
}

static uint64_t below(uint64_t end) {
  return random_bits() % end;
}

static int128 random_sum(int bits) {
  uint128 all = (uint128)random_bits() << 64 | random_bits();
  int128 size = (int128)(all >> 1 >> (126u - below((uint64_t)bits)));
  return below(2) ? size : -size;
}

static void like_the_definition(void) {
  for (int run = 0; run < 40000; run++) {
    size_t count = 1 + below(MOST);
    int is_far = (int)below(2);
    int64_t reach = (int64_t)(random_bits() >> (10 + below(54))) + 2;
    int bits = 2 + (int)below(124);
    int128 values[MOST], want[MOST];
    for (size_t i = 0; i < count; i++) values[i] = random_sum(bits);
    int changed = define(values, count, reach, is_far, want);
    int got = household_project(values, count, reach, is_far);
    struct wide square = {{0}}, limit = product((uint128)reach, (uint128)reach);
    int same = 1;
    for (size_t i = 0; i < count; i++) {
      /* Of a sum beyond 2^63, 126 bits of the square count: n may be larger by 2^-60. */
      int128 off = values[i] - want[i];
      same &= size_of(off) <= (bits > 60);
      add(&square, product(size_of(values[i]), size_of(values[i])));
    }
    CHECK(same, "run %d: another point", run);
    CHECK(got == changed, "run %d: changed %d", run, got);
    CHECK(compare(&square, &limit) <= 0, "run %d: too long", run);
  }
}

/* The vectors are short integers, so that doubles hold their distances exactly enough. */
static void a_person_moves_the_point_by_the_charge(void) {
  double worst = 0;
  for (int run = 0; run < 200000; run++) {
    size_t count = 1 + below(12);
    int64_t radius = 2 + (int64_t)below(below(2) ? 8 : 3000);
    int64_t reach = radius * (64 + (int64_t)below(300)) / 64;
    int is_far = (int)below(2);
    int128 with[MOST], without[MOST];
    double length = 0, moved = 0;
    int64_t person[MOST];
    for (size_t i = 0; i < count; i++) {
      person[i] = (int64_t)below((uint64_t)(2 * radius + 1)) - radius;
      length += (double)(person[i] * person[i]);
    }
    double factor = fmin(1, (double)radius / sqrt(length + 1e-9));
    for (size_t i = 0; i < count; i++) {
      without[i] = (int64_t)below((uint64_t)(6 * radius)) - 3 * radius;
      with[i] = without[i] + (int64_t)((double)person[i] * factor);
    }
    household_project(with, count, reach, is_far);
    household_project(without, count, reach, is_far);
    for (size_t i = 0; i < count; i++) {
      double apart = (double)(with[i] - without[i]);
      moved += apart * apart;
    }
    double margin = 2 * (1 + ceil(sqrt((double)count)));
    worst = fmax(worst, (sqrt(moved) - (double)radius) / margin);
    CHECK(sqrt(moved) <= (double)radius + margin, "run %d: moved by %g", run, sqrt(moved));
  }
  CHECK(worst > 0, "the margin is for nothing: %g", worst);
}

/* ---- persons --------------------------------------------------------------------------------- */

enum { PERSONS = 30000 };

/* Small integers, which have places of their own, integers far from each other, and texts. */
static struct identity person_of(uint64_t number) {
  switch (number % 7) {
  case 0: return (struct identity){1000 + number, number};
  case 1: return identity_integer((int64_t)(number << 40));
  case 2: return identity_integer(-(int64_t)number);
  default: return identity_integer((int64_t)number + 5000000000);
  }
}

static uint64_t home_of(uint64_t number) {
  return number / 4 * 7919 % 9001;
}

/* Notes a person, and then another household of the person, which does not count. */
static void put(struct households *households, uint64_t number) {
  if (number % 5 == 0) return;
  for (uint64_t i = 0; i < 1 + (number % 11 == 0); i++)
    CHECK(households_put(households, person_of(number), person_of(home_of(number) + i)), "memory");
}

static int64_t find(const struct households *households, uint64_t number) {
  households_expect(households, person_of(number)); /* reads nothing outside the table */
  return households_find(households, person_of(number));
}

static void persons(void) {
  struct secret secret;
  memset(&secret, 7, sizeof secret);
  struct households *list[] = {households_open(&secret), households_open(&secret)};
  CHECK(find(list[0], 1) == HOUSEHOLD_NONE, "an empty table");
  for (uint64_t i = 0; i < PERSONS; i++) {
    put(list[0], i);
    put(list[1], PERSONS - 1 - i);
  }
  for (int at = 0; at < 2; at++) {
    static int64_t numbers[9001 + 1];
    size_t homes = 0;
    memset(numbers, 0, sizeof numbers);
    for (uint64_t i = 0; i < PERSONS + 1000; i++) {
      int64_t number = find(list[at], i);
      if (i % 5 == 0 || i >= PERSONS) {
        CHECK(number == HOUSEHOLD_NONE, "person %d has a household", (int)i);
        continue;
      }
      int64_t *home = &numbers[home_of(i)];
      if (!*home) homes++;
      if (!*home) *home = number + 1;
      CHECK(number >= 0 && number == *home - 1, "person %d: household %d", (int)i, (int)number);
      CHECK(number < (int64_t)households_count(list[at]), "number of households");
    }
    /* Different households have different numbers. */
    for (size_t i = 0, seen = 0; i <= 9001; i++)
      for (size_t j = 0; numbers[i] && j < i && seen < 3; j++) {
        seen += numbers[i] == numbers[j];
        CHECK(numbers[i] != numbers[j], "households %d and %d", (int)i, (int)j);
      }
    CHECK(homes > 5000, "%d homes", (int)homes);
    households_close(list[at]);
  }
  households_close(0);
}

int main(void) {
  RUN(like_the_definition);
  RUN(a_person_moves_the_point_by_the_charge);
  RUN(persons);
  return check_failed;
}
