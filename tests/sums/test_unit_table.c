/* test_unit_table.c: compares sums.h with arrays. The tables grow from the first chunk
** through several splits. */
#include "check.h"
#include "random.h"

#include "scarce.h"

#include "../../ext/sums/unit_table.c"

enum { MANY = 700000 }; /* enough for 16 chunks of integers, or 32 chunks of other keys */

static struct secret secret;

static struct unit_table fresh(int of_integers) {
  struct unit_table table;
  CHECK(secret_draw(&secret) == 1 && unit_table_open(&table, &secret, of_integers) == 1,
        "no memory");
  return table;
}

/* The totals that the table hands over, in arrays indexed by the number of the key. */
static struct {
  int128 *carried;
  unsigned char *listed;
  uint32_t count;
  int carries, of_integers, stop;
} taken;

/* Returns key number i. The keys are of all kinds, and their low words differ in few bits, or only
** in the high bits. */
static struct identity nth_key(uint32_t i, int of_integers) {
  if (of_integers) return identity_integer(i % 2 ? (int64_t)((uint64_t)i << 40) : i);
  switch (i % 4) {
  case 0: return identity_integer(i);
  case 1: return identity_integer((int64_t)((uint64_t)i << 40));
  case 2: return (struct identity){(uint64_t)i << 2 | (uint64_t)1 << 63, 7};
  default: return (struct identity){(uint64_t)1 << 63 | (uint64_t)i << 40, i};
  }
}

static uint32_t number_of(struct identity key) {
  for (int by = 0; by < 4; by++) {
    uint32_t i = by == 0   ? (uint32_t)key.low
                 : by == 1 ? (uint32_t)(key.low >> 40)
                 : by == 2 ? (uint32_t)(key.kind >> 2)
                           : (uint32_t)key.low;
    if (i < taken.count && identity_same(nth_key(i, taken.of_integers), key)) return i;
  }
  return UINT32_MAX;
}

static int take(void *context, struct identity key, int64_t number) {
  uint32_t i = number_of(key);
  CHECK(context == &taken && i < taken.count, "a key that was not entered");
  if (i >= taken.count) return 0;
  taken.carried[i] += number;
  taken.listed[i]++;
  taken.carries++;
  return !taken.stop;
}

static void start(uint32_t count, int of_integers) {
  taken.carried = calloc(count + 1, sizeof *taken.carried);
  taken.listed = calloc(count + 1, 1);
  taken.count = count;
  taken.of_integers = of_integers;
  taken.carries = taken.stop = 0;
}

static void finish(struct unit_table *table) {
  free(taken.carried);
  free(taken.listed);
  unit_table_close(table);
}

static void put(struct unit_table *table, struct identity key, int64_t amount) {
  if (unit_table_add(table, key, amount))
    CHECK(unit_table_flush(table, take, &taken) == 1, "no memory");
}

static void every_key_has_its_sum(void) {
  for (int of_integers = 0; of_integers < 2; of_integers++) {
    struct unit_table table = fresh(of_integers);
    start(MANY, of_integers);
    for (int round = 0; round < 3; round++) {
      for (uint32_t i = 0; i < MANY; i++)
        put(&table, nth_key(i, of_integers), (int64_t)i * (round - 3));
    }
    CHECK(unit_table_flush(&table, take, &taken) == 1 && taken.carries == 0, "%d", taken.carries);
    CHECK(table.depth >= 3, "only 2^%d chunks", table.depth);
    for (uint32_t i = 0; i < MANY; i++) {
      int64_t number;
      int found = unit_table_get(&table, nth_key(i, of_integers), &number);
      CHECK(found && number == -6 * (int64_t)i, "key %u has %lld", i, (long long)number);
    }
    int64_t number;
    CHECK(!unit_table_get(&table, identity_integer(-1), &number) && number == 0,
          "a stranger is found");
    finish(&table);
  }
}

static void all_are_listed_once(void) {
  for (uint32_t count = 0; count <= MANY; count = count * 9 + 1) {
    int of_integers = count % 2;
    struct unit_table table = fresh(of_integers);
    start(count, of_integers);
    for (uint32_t i = 0; i < count; i++) put(&table, nth_key(i, of_integers), (int64_t)i - 5);
    CHECK(unit_table_flush(&table, take, &taken) == 1 && taken.carries == 0, "%u", count);
    CHECK(unit_table_each(&table, take, &taken) == 1, "%u", count);
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < count; i++)
      wrong += taken.listed[i] != 1 || taken.carried[i] != (int64_t)i - 5;
    CHECK(wrong == 0 && taken.carries == (int)count, "%u of %u", wrong, count);
    taken.stop = 1;
    CHECK(unit_table_each(&table, take, &taken) == !count && taken.carries == (int)count + !!count,
          "%u: not stopped", count);
    unit_table_clear(&table);
    CHECK(unit_table_each(&table, take, &taken) == 1, "%u: not cleared", count);
    finish(&table);
  }
}

/* A total that is too large for the table is handed over early in parts. All parts and the rest add
** up to the true total, for all sizes and signs. */
static void nothing_is_lost_when_numbers_are_carried(void) {
  enum { KEYS = 100 };
  for (int run = 0; run < 20; run++) {
    int of_integers = run % 2;
    struct unit_table table = fresh(of_integers);
    start(KEYS, of_integers);
    int128 want[KEYS] = {0};
    for (int i = 0; i < 20000; i++) {
      uint32_t key =
          /* Consecutive rows may have the same key. */
          (uint32_t)(random_bits() % (run < 10 ? KEYS : 2));
      int64_t amount = (int64_t)(random_bits() >> (2 + random_bits() % 60));
      if (run % 4 < 2 && random_bits() % 2) amount = -amount;
      if (i % 1000 == 0) amount = i % 2000 ? TABLE_MOST : -TABLE_MOST;
      put(&table, nth_key(key, of_integers), amount);
      want[key] += amount;
    }
    CHECK(unit_table_flush(&table, take, &taken) == 1 && taken.carries > 0, "run %d: none", run);
    CHECK(unit_table_each(&table, take, &taken) == 1, "run %d", run);
    for (int i = 0; i < KEYS; i++) CHECK(taken.carried[i] == want[i], "run %d, key %d", run, i);
    finish(&table);
  }
}

/* At every size, and however full the table is, a lookup finds that a key is missing. A batch
** before the lookup makes the table grow. */
static void strangers_are_not_found(void) {
  for (int of_integers = 0; of_integers < 2; of_integers++) {
    struct unit_table table = fresh(of_integers);
    start(20000, of_integers);
    for (uint32_t i = 0; i < 20000; i++) {
      int64_t number;
      put(&table, nth_key(i, of_integers), 1);
      CHECK(!unit_table_get(&table, identity_integer(-1 - (int64_t)i), &number), "after %u", i);
    }
    finish(&table);
  }
}

/* If the table cannot hand over a part, all later calls report the failure. */
static void a_failure_sticks(void) {
  struct unit_table table = fresh(1);
  start(2, 1);
  for (int i = 0; i < 3; i++)
    CHECK(unit_table_add(&table, nth_key(0, 1), TABLE_MOST / 2) == 0, "full");
  taken.stop = 1;
  CHECK(unit_table_flush(&table, take, &taken) == 0, "the failure is lost");
  taken.stop = 0;
  CHECK(unit_table_flush(&table, take, &taken) == 0, "the failure is forgotten");
  struct unit_table closed = fresh(0);
  for (int i = 0; i < 3; i++) unit_table_add(&closed, nth_key(1, 0), TABLE_MOST / 2);
  CHECK(unit_table_flush(&closed, 0, 0) == 0, "nobody takes it, and nobody minds");
  unit_table_close(&closed);
  finish(&table);
}

/* Whichever allocation fails, all later calls report the failure, and the table can be closed. */
static void memory_runs_out(void) {
  int succeeded = 0;
  for (int allowed = 0; !succeeded; allowed++) {
    struct unit_table table;
    CHECK(secret_draw(&secret) == 1, "no random bytes");
    start(150000, 1); /* the table grows to four chunks */
    scarce_left = allowed;
    int is_open = unit_table_open(&table, &secret, 1);
    CHECK(is_open == (allowed >= 3), "%d allocations: opened with %d", allowed, is_open);
    succeeded = is_open;
    for (uint32_t i = 0; i < 150000 && succeeded; i++)
      succeeded =
          unit_table_add(&table, nth_key(i, 1), 1) ? unit_table_flush(&table, take, &taken) : 1;
    CHECK(succeeded == 0 || succeeded == 1, "%d", succeeded);
    CHECK(succeeded || scarce_left <= 0, "failed with memory left");
    scarce_left = INT_MAX;
    if (is_open) {
      CHECK(unit_table_flush(&table, take, &taken) == succeeded, "%d allocations: forgotten",
            allowed);
      CHECK(allowed < 100, "never enough");
      unit_table_close(&table);
    }
    free(taken.carried);
    free(taken.listed);
  }
}

/* The number of slots is at most about twice the number that a table needs to be three quarters
** full. The documented figures for memory depend on this. */
static void memory_is_bounded(void) {
  for (int of_integers = 0; of_integers < 2; of_integers++) {
    struct unit_table table = fresh(of_integers);
    start(MANY, of_integers);
    for (uint32_t i = 1; i <= MANY; i++) {
      put(&table, nth_key(i, of_integers), 1);
      double slots = (double)((table.mask + 1) << table.depth) * (of_integers ? 4 : 2);
      CHECK(slots <= 1024 || slots <= i / 0.35, "%g slots for %u keys", slots, i);
      CHECK(slots >= ((double)i - 2 * TABLE_BATCH) / 0.76, "%g slots for %u keys", slots, i);
    }
    finish(&table);
  }
}

int main(void) {
  RUN(every_key_has_its_sum);
  RUN(all_are_listed_once);
  RUN(nothing_is_lost_when_numbers_are_carried);
  RUN(strangers_are_not_found);
  RUN(a_failure_sticks);
  RUN(memory_runs_out);
  RUN(memory_is_bounded);
  FINISH();
}
