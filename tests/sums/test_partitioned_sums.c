/* test_partitioned_sums.c: compares internal.h with arrays that hold the sum of each unit
** in each cell. The tests use few and many buckets, units with one record and units with most of
** the records, and values that fit 64 bits and values that do not. */
#include "check.h"
#include "random.h"

#include "scarce.h"

#include "../../ext/sums/partitioned_sums.c"
#include "../../ext/sums/row_store.c"

static struct secret secret;

/* A table of records. Its units have the numbers 0, 1, ..., which unit_of() turns into identities
** of several kinds. */
struct table {
  uint32_t units, cells; /* cells = 0: the records have no cells */
  int components;
  int128 *want;          /* the sums, ordered by unit, cell and component */
  unsigned char *have;   /* 1: this unit has rows in this cell */
  unsigned char *listed; /* how often this pair was handed over */
  int wrong, units_listed, stop_after;
};

static struct identity unit_of(uint32_t i) {
  if (i % 3 == 1) return (struct identity){(uint64_t)1 << 63, i};
  return identity_integer((int64_t)(i % 3 == 2 ? (uint64_t)i << 33 : i));
}

static uint32_t number_of(struct identity unit) {
  return (uint32_t)(unit.low >> 32 ? unit.low >> 33 : unit.low);
}

static size_t cells_of(const struct table *table) {
  return table->cells ? table->cells : 1;
}

static struct table start(uint32_t units, uint32_t cells, int components) {
  struct table table = {.units = units, .cells = cells, .components = components};
  size_t pairs = units * cells_of(&table);
  table.want = calloc(pairs * (size_t)components + 1, sizeof *table.want);
  table.have = calloc(pairs + 1, 1);
  table.listed = calloc(pairs + 1, 1);
  CHECK(secret_draw(&secret) == 1 && table.want && table.have && table.listed, "no memory");
  return table;
}

static void finish(struct table *table) {
  free(table->want);
  free(table->have);
  free(table->listed);
}

static void add_to_table(struct table *table, uint32_t unit, uint32_t cell, const int128 *values) {
  size_t pair = unit * cells_of(table) + cell;
  table->have[pair] = 1;
  for (int i = 0; i < table->components; i++)
    table->want[pair * (size_t)table->components + (size_t)i] += values[i];
}

static void add(struct table *table, struct partitioned_sums *records, uint32_t unit, uint32_t cell,
                const int128 *values) {
  add_to_table(table, unit, cell, values);
  CHECK(partitioned_sums_add(records, unit_of(unit), cell, values) == 1, "no memory");
}

static int take(void *context, struct identity identity, uint32_t cell, const int128 *values) {
  struct table *table = context;
  uint32_t unit = number_of(identity);
  if (unit >= table->units || !identity_same(unit_of(unit), identity) || cell >= cells_of(table)) {
    table->wrong++;
    return 1;
  }
  size_t pair = unit * cells_of(table) + cell, size = (size_t)table->components;
  table->listed[pair]++;
  table->wrong += memcmp(&table->want[pair * size], values, size * sizeof *values) != 0;
  return !table->stop_after || --table->stop_after > 0;
}

static struct partitioned_sums *open_records; /* the sums from which take_whole() takes units */

/* Takes a unit with all of its records. */
static int take_whole(void *context, const record_word *const *list, size_t count) {
  struct table *table = context;
  int128 values[64];
  uint32_t unit = number_of(record_unit(open_records, list[0]));
  size_t has = 0, first = unit * cells_of(table);
  for (size_t i = 0; i < cells_of(table) && unit < table->units; i++) has += table->have[first + i];
  table->wrong += has != count;
  table->units_listed++;
  for (size_t i = 0; i < count; i++) {
    table->wrong += number_of(record_unit(open_records, list[i])) != unit;
    record_values(open_records, &list[i], 1, values);
    if (!take(table, record_unit(open_records, list[i]), record_cell(list[i]), values)) return 0;
  }
  return 1;
}

/* Checks every record and every unit twice, because handing over must not change the sums. */
static void check(struct table *table, struct partitioned_sums *records, const char *what) {
  size_t pairs = table->units * cells_of(table);
  int units = 0;
  for (uint32_t i = 0; i < table->units; i++) {
    int some = 0;
    for (size_t j = 0; j < cells_of(table); j++) some |= table->have[i * cells_of(table) + j];
    units += some;
  }
  open_records = records;
  for (int way = 0; way < 4; way++) {
    memset(table->listed, 0, pairs);
    table->wrong = table->units_listed = 0;
    int done = way % 2 ? partitioned_sums_each(records, take, table)
                       : partitioned_sums_each_unit(records, take_whole, table);
    size_t missed = 0;
    for (size_t i = 0; i < pairs; i++) missed += table->listed[i] != table->have[i];
    CHECK(done && missed == 0 && table->wrong == 0, "%s, way %d: %zu missed, %d wrong", what, way,
          missed, table->wrong);
    CHECK(way % 2 || table->units_listed == units, "%s: %d of %d units", what, table->units_listed,
          units);
  }
}

/* Returns a value that fits 64 bits. With `wide`, about one of several hundred values does not
** fit. */
static int128 value(int wide) {
  int128 x = (int128)(int64_t)random_bits() >> (4 + random_bits() % 50);
  if (!wide || random_bits() % 300) return x;
  return x * ((int128)1 << (4 + random_bits() % 26));
}

static void random_tables(void) {
  static const struct {
    uint32_t units, cells;
    int components, rows, wide;
  } shapes[] = {{1, 0, 1, 10, 0},           {1, 0, 1, 20000, 0},       {300, 0, 2, 3000, 0},
                {40000, 0, 1, 300000, 0},   {40000, 0, 3, 200000, 1},  {3000, 0, 40, 20000, 0},
                {200, 0, 64, 1000, 1},      {1, 5, 1, 100, 1},         {1, 100000, 1, 300000, 0},
                {2, 60000, 2, 200000, 1},   {30000, 10, 1, 400000, 0}, {30000, 10, 2, 300000, 1},
                {500, 1000, 1, 300000, 0},  {100, 20, 1, 100000, 1},   {200, 10, 5, 20000, 0},
                {3, 1 << 20, 1, 600000, 0}};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
    struct table table = start(shapes[s].units, shapes[s].cells, shapes[s].components);
    struct partitioned_sums *records = partitioned_sums_open(&secret, table.components, 0);
    CHECK(records != 0, "no memory");
    uint32_t unit = 0, cell = 0;
    for (int i = 0; i < shapes[s].rows; i++) {
      int128 values[64];
      if (random_bits() % 4) { /* otherwise the row has the unit of the previous row */
        /* In every other shape, half of the rows belong to the first unit, so few buckets can be
        ** divided. */
        unit = s % 2 && random_bits() % 2 ? 0 : (uint32_t)(random_bits() % table.units);
        cell = table.cells ? (uint32_t)(random_bits() % table.cells) : 0;
      }
      for (int j = 0; j < table.components; j++) values[j] = value(shapes[s].wide);
      add(&table, records, unit, cell, values);
    }
    char what[40];
    snprintf(what, sizeof what, "shape %zu", s);
    check(&table, records, what);
    int128 values[64] = {1, 2, 3}; /* the sums stay usable afterwards */
    add(&table, records, 0, 0, values);
    check(&table, records, what);
    partitioned_sums_close(records);
    finish(&table);
  }
}

/* The sums exceed 64 bits in many small steps, and then return to small numbers. */
static void sums_that_grow(void) {
  struct table table = start(3, 2, 2);
  struct partitioned_sums *records = partitioned_sums_open(&secret, 2, 0);
  for (int i = 0; i < 100000; i++) {
    int128 up[2] = {(int128)1 << 50, -((int128)1 << 55)}, down[2] = {-up[0], -up[1]};
    add(&table, records, 0, (uint32_t)i % 2, up);
    add(&table, records, 1, 0, i < 50000 ? up : down);
  }
  check(&table, records, "sums");
  partitioned_sums_close(records);
  finish(&table);
}

/* Some units of many buckets get a sum beyond 2^61 only when their last rows are merged, while the
** records are taken. All records of such a unit must still come together, and once. */
static void sums_that_grow_at_the_end(void) {
  for (int way = 0; way < 2; way++) {
    struct table table = start(30000, 3, 1);
    struct partitioned_sums *records = partitioned_sums_open(&secret, 1, 0);
    for (uint32_t i = 0; i < 90000; i++) add(&table, records, i % 30000, i / 30000, (int128[]){1});
    for (uint32_t i = 0; i < 40; i++)
      add(&table, records, i % 20 * 1001, 1, (int128[]){(int128)3 << 59});
    CHECK(row_store_is_empty(&records->stores[WIDE]) && records->stores[INTEGERS].count > 1,
          "too early");
    if (way) CHECK(partitioned_sums_each(records, take, &table) && !table.wrong, "wrong sums");
    check(&table, records, "late sums");
    CHECK(!row_store_is_empty(&records->stores[WIDE]), "no sum grew");
    partitioned_sums_close(records);
    finish(&table);
  }
}

/* The first value of a row is a count: mostly one row, sometimes several rows, sometimes a number
** that is no count at all or exceeds 32 bits. Some rows are added as narrow rows. */
static void counts(void) {
  static const struct {
    uint32_t units, cells;
    int components, rows;
  } shapes[] = {{20, 4, 1, 20000}, {20000, 10, 2, 300000}, {300, 1, 6, 5000}, {1, 5, 3, 100}};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
    const int64_t each = (int64_t)1 << (20 + 10 * s);
    struct table table = start(shapes[s].units, shapes[s].cells, shapes[s].components);
    struct partitioned_sums *records = partitioned_sums_open(&secret, table.components, each);
    for (int i = 0; i < shapes[s].rows; i++) {
      uint32_t unit = (uint32_t)random_bits() % table.units;
      uint32_t cell = (uint32_t)random_bits() % table.cells;
      int128 values[8] = {each, value(0), value(0), value(0), value(0), value(0)};
      int64_t narrow[8] = {1};
      for (int j = 1; j < table.components; j++) narrow[j] = (int64_t)(values[j] /= 8);
      switch (random_bits() % 2000) {
      case 0: values[0] = each * (int128)(random_bits() % 1000); break;
      case 1: values[0] = each * (((int128)1 << 31) - 1); break;
      case 2: values[0] = each * ((int128)1 << 31); break;
      case 3: values[0] = value(1); break;
      case 4: values[0] = -each; break;
      case 5: values[0] = 0; break;
      default: break;
      }
      if (values[0] != each || i % 2) {
        add(&table, records, unit, cell, values);
        continue;
      }
      add_to_table(&table, unit, cell, values);
      CHECK(partitioned_sums_add_narrow(records, unit_of(unit), cell, narrow), "no memory");
    }
    check(&table, records, "counts");
    partitioned_sums_close(records);
    finish(&table);
  }
}

/* A count exceeds 32 bits only when the records are taken. */
static void counts_that_grow_at_the_end(void) {
  struct table table = start(2000, 3, 2);
  struct partitioned_sums *records = partitioned_sums_open(&secret, 2, 7);
  for (uint32_t i = 0; i < 6000; i++) {
    int128 values[2] = {(int128)7 << 30, i};
    add(&table, records, i % 2000, i / 2000, values);
    if (i % 1000 == 0) add(&table, records, i % 2000, i / 2000, values);
  }
  check(&table, records, "late counts");
  CHECK(!row_store_is_empty(&records->stores[WIDE]), "no count grew");
  partitioned_sums_close(records);
  finish(&table);
}

static int keep(void *context, struct identity unit, uint32_t cell, const int128 *values) {
  CHECK(identity_same(unit, unit_of(0)) && cell == 0, "another");
  memcpy(context, values, 2 * sizeof *values);
  return 1;
}

/* A shard state may contain any sum up to 2^125, where sums saturate. The test adds small sums to
** such large sums. */
static void huge_sums_saturate(void) {
  int128 end = (int128)1 << 125, huge[2] = {end, -end}, small[2] = {5, 7}, got[2] = {0, 0};
  CHECK(secret_draw(&secret) == 1, "no random bytes");
  struct partitioned_sums *records = partitioned_sums_open(&secret, 2, 0);
  for (int i = 0; i < 1000; i++) {
    CHECK(partitioned_sums_add(records, unit_of(0), 0, huge) == 1, "no memory");
    CHECK(partitioned_sums_add(records, unit_of(0), 0, small) == 1, "no memory");
  }
  for (int i = 0; i < 2; i++) {
    CHECK(partitioned_sums_each(records, keep, got) == 1, "no memory");
    CHECK(got[0] == end && got[1] >= -end && got[1] <= -end + 7000, "not saturated");
  }
  partitioned_sums_close(records);
}

static void taking_stops(void) {
  for (uint32_t cells = 0; cells < 2; cells++) {
    struct table table = start(1000, cells, 1);
    struct partitioned_sums *records = partitioned_sums_open(&secret, 1, 0);
    for (uint32_t i = 0; i < 1000; i++)
      add(&table, records, i, 0, (int128[]){i == 500 ? (int128)1 << 80 : 1});
    open_records = records;
    table.stop_after = 999;
    CHECK(partitioned_sums_each(records, take, &table) == 0, "each");
    table.stop_after = 999;
    CHECK(partitioned_sums_each_unit(records, take_whole, &table) == 0, "each unit");
    table.stop_after = 0;
    check(&table, records, "after stops");
    partitioned_sums_close(records);
    finish(&table);
  }
}

/* The first half of the rows have a new pair each. In the second half, every row repeats a pair. A
** bucket of many units is split, so that each bucket fits a cache. A bucket of few units grows as
** large as its units require. The memory is 16 bytes for each pair if units are small integers, and
** 20 bytes for other integers, besides the unused parts of chunks and the rows that are not merged
** yet. */
static void buckets_are_split(void) {
  for (int way = 0; way < 4; way++) {
    enum { PAIRS = 400000 };
    int heavy = way % 2, small = way / 2;
    CHECK(secret_draw(&secret) == 1, "no random bytes");
    struct partitioned_sums *records = partitioned_sums_open(&secret, 1, 0);
    for (uint32_t i = 0; i < 2 * PAIRS; i++) {
      int128 one = 1;
      uint32_t pair = i % PAIRS;
      int64_t id = heavy && pair % 2 ? 0 : pair;
      struct identity unit = identity_integer(small ? id : -1 - id);
      CHECK(partitioned_sums_add(records, unit, pair, &one), "no memory");
      if (i % PAIRS != PAIRS - 1) continue;
      const struct row_store *store = &records->stores[small ? SMALL : INTEGERS];
      size_t bytes = 0, most = 0;
      for (size_t j = 0; j < store->chunks.slab_count; j++) bytes += store->chunks.slabs[j].size;
      for (size_t j = 0; j < store->count; j++)
        most =
            rows_of(store, &store->buckets[j]) > most ? rows_of(store, &store->buckets[j]) : most;
      double each = (double)bytes / PAIRS, row = small ? 16 : 20;
      CHECK(store->count > 8 && (heavy ? most >= PAIRS / 2 : most <= store->full),
            "%zu buckets, %zu", store->count, most);
      CHECK(each >= row && each < row * (i < PAIRS ? 1.35 : 2.4), "%.1f bytes for each pair", each);
    }
    partitioned_sums_close(records);
  }
}

/* Whichever allocation fails, all later calls report the failure, and the sums can be closed. */
static void memory_runs_out(void) {
  int succeeded = 0, failures = 0;
  for (int allowed = 0; !succeeded && allowed < 1000; allowed++) {
    CHECK(secret_draw(&secret) == 1, "no random bytes");
    scarce_left = allowed;
    struct partitioned_sums *records = partitioned_sums_open(&secret, 1, 0);
    int failed = !records, was = failed;
    /* Two units have two thirds of the rows. Some rows need 128 bits. */
    for (uint32_t i = 0; i < 100000 && !failed; i++) {
      int128 value = i % 1000 ? (int128)i : (int128)1 << 70;
      failed = !partitioned_sums_add(records, unit_of(i % 3 ? i % 2 : i), i, &value);
    }
    struct table table = {.units = 0};
    open_records = records;
    if (records && failed) {
      int128 value = 1;
      scarce_left = INT_MAX;
      CHECK(partitioned_sums_add(records, unit_of(0), 0, &value) == 0, "%d: forgotten", allowed);
      CHECK(partitioned_sums_each(records, take, &table) == 0, "%d: forgotten by each", allowed);
      CHECK(partitioned_sums_each_unit(records, take_whole, &table) == 0, "%d: by each unit",
            allowed);
    } else if (records) {
      failed = !partitioned_sums_each_unit(records, take_whole, &table) ||
               !partitioned_sums_each(records, take, &table);
    }
    succeeded = !failed;
    failures += failed && !was;
    scarce_left = INT_MAX;
    partitioned_sums_close(records);
  }
  CHECK(succeeded && failures > 20, "%d failures", failures);
}

/* Only one allocation fails. Then a failure is reported, or all sums are right: no sum is lost
** while it moves to the wide store, which first needs memory when the records are taken. */
static void one_allocation_fails(void) {
  int succeeded = 0, failures = 0;
  for (int way = 0; way < 2; way++) {
    for (int allowed = 0; allowed < 60; allowed++) {
      struct table table = start(500, 0, 1);
      scarce_once = 1;
      scarce_left = allowed;
      struct partitioned_sums *records = partitioned_sums_open(&secret, 1, 0);
      int done = records != 0;
      for (uint32_t i = 0; i < 1500 && done; i++) {
        int128 value = i % 50 ? 1 : (int128)3 << 59;
        add_to_table(&table, i % 500, 0, &value);
        done = partitioned_sums_add(records, unit_of(i % 500), 0, &value);
      }
      open_records = records;
      if (done)
        done = way ? partitioned_sums_each_unit(records, take_whole, &table)
                   : partitioned_sums_each(records, take, &table);
      scarce_left = INT_MAX;
      scarce_once = 0;
      CHECK(!done || !table.wrong, "allocation %d failed: wrong sums", allowed);
      if (done) check(&table, records, "sums");
      failures += !done;
      succeeded += done;
      partitioned_sums_close(records);
      finish(&table);
    }
  }
  CHECK(succeeded > 0 && failures > 20, "%d succeeded, %d failed", succeeded, failures);
}

static void nothing(void) {
  struct table table = start(0, 0, 1);
  struct partitioned_sums *records = partitioned_sums_open(&secret, 1, 0);
  CHECK(records != 0, "no memory");
  check(&table, records, "nothing");
  partitioned_sums_close(records);
  partitioned_sums_close(0);
  finish(&table);
}

int main(void) {
  RUN(random_tables);
  RUN(sums_that_grow);
  RUN(sums_that_grow_at_the_end);
  RUN(counts);
  RUN(counts_that_grow_at_the_end);
  RUN(huge_sums_saturate);
  RUN(taking_stops);
  RUN(buckets_are_split);
  RUN(memory_runs_out);
  RUN(one_allocation_fails);
  RUN(nothing);
  FINISH();
}
