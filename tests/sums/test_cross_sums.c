/* test_cross_sums.c: checks cross_sums.c with random programmes and random units. The truth is the
** definition in plain loops: for each table, two cells of the full table lie in the same cell of
** the table exactly if they have the same key in each of its attributes. */
#include "check.h"
#include "families.h"
#include "random.h"

#include <stdlib.h>
#include <string.h>

#include "sums/internal.h"
#include "sums/layout.h"

#define TRIALS 3000
#define MOST   100 /* cells of a unit: more than the 64 of cross_sums.c */

static int below(int bound) {
  return (int)(random_bits() % (unsigned)bound);
}

struct unit {
  int count;
  int64_t cells[MOST];
  int keys[MOST][WAYS_MAX_ATTRIBUTES];
  int128 values[MOST];
};

static int random_ways(struct ways *ways) {
  int attributes = 1 + below(4), sizes[4], multipliers[16], count = 0, measured = 0;
  unsigned masks[16];
  double weights[16], cells;
  for (int i = 0; i < attributes; i++) sizes[i] = 1 + below(5);
  for (unsigned mask = 0; mask < 1u << attributes; mask++)
    if (!below(3)) masks[count++] = mask;
  if (!count) masks[count++] = 0;
  for (int i = 0; i < count; i++) weights[i] = 1;
  if (ways_open(ways, attributes, sizes, masks, weights, count, &cells) != WAYS_FIT) return 0;
  for (int i = 0; i < ways->count; i++) {
    multipliers[i] = ways_is_largest(ways, &ways->tables[i]) ? 1 + below(5) : below(5);
    measured += multipliers[i] > 0;
  }
  return measured && ways_measure(ways, multipliers);
}

/* Different cells of the full table, in random order, with values in +-2^bits. */
static void random_unit(const struct ways *ways, struct unit *unit, int bits) {
  int full = 1, list[625];
  for (int i = 0; i < ways->attributes; i++) full *= ways->sizes[i];
  for (int i = 0; i < full; i++) list[i] = i;
  int most = full < MOST ? full : MOST;
  unit->count = 1 + below(below(3) && most > 6 ? 6 : most);
  for (int i = 0; i < unit->count; i++) {
    int other = i + below(full - i), cell = list[other];
    list[other] = list[i];
    list[i] = cell;
    unit->cells[i] = cell;
    unit->values[i] = (int64_t)(random_bits() >> (63 - bits)) - ((int64_t)1 << bits);
    for (int a = ways->attributes - 1; a >= 0; a--) {
      unit->keys[i][a] = cell % ways->sizes[a];
      cell /= ways->sizes[a];
    }
  }
}

static int same_cell(const struct unit *unit, unsigned mask, int i, int j) {
  for (int a = 0; a < WAYS_MAX_ATTRIBUTES; a++)
    if (mask >> a & 1 && unit->keys[i][a] != unit->keys[j][a]) return 0;
  return 1;
}

/* Returns the square of the norm of all measured tables, or in the sum norm the norm. */
static uint128 size_of(const struct ways *ways, const struct unit *unit, int is_l1) {
  uint128 size = 0;
  for (int t = 0; t < ways->count; t++) {
    for (int i = 0; i < unit->count; i++) {
      int is_first = 1;
      int64_t sum = 0;
      for (int j = 0; j < unit->count; j++) {
        if (!same_cell(unit, ways->tables[t].mask, i, j)) continue;
        is_first &= j >= i;
        sum += (int64_t)unit->values[j];
      }
      sum = is_first ? sum * ways->tables[t].multiplier : 0;
      uint128 distance = (uint128)llabs(sum);
      size += is_l1 ? distance : distance * distance;
    }
  }
  return size;
}

static struct layout layout_of(const struct ways *ways, int is_l1, int64_t reach) {
  struct layout shape = {.family = &family_sum, .is_l1 = is_l1, .components = 1, .ways = ways};
  shape.blocks[0] = (struct block){.lead_end = 1, .end = 1, .lead_reach = reach, .reach = reach};
  return shape;
}

static int is_within(uint128 size, int is_l1, int64_t reach) {
  return size <= (is_l1 ? (uint128)reach : (uint128)reach * (uint128)reach);
}

/* A unit whose norm is the reach is not changed. With a reach that is one step smaller, or much
** smaller, it is clipped: the new norm fits, and every value is scaled by the largest factor, up to
** truncation and a ten-thousandth. The order of the cells does not matter. */
static void clip_units(int is_l1) {
  for (int trial = 0; trial < TRIALS; trial++) {
    struct ways ways;
    struct unit unit;
    if (random_ways(&ways)) {
      random_unit(&ways, &unit, 24 + below(12));
      uint128 size = size_of(&ways, &unit, is_l1);
      double norm = is_l1 ? (double)size : sqrt((double)size);
      int64_t reach = (int64_t)norm;
      while (is_within(size, is_l1, reach)) reach--;
      while (!is_within(size, is_l1, reach)) reach++;
      for (int step = 0; step <= 2; step++) {
        int64_t bound = step == 0 ? reach : step == 1 ? reach - 1 : (int64_t)(uniform() * norm);
        struct layout shape = layout_of(&ways, is_l1, bound);
        struct cross_sums *sums = cross_sums_open(&shape);
        struct unit less = unit, same = unit;
        int clipped = 0, clipped_too = 0;
        for (int i = 0; i < unit.count; i++) {
          same.cells[i] = unit.cells[unit.count - 1 - i];
          same.values[i] = unit.values[unit.count - 1 - i];
        }
        CHECK(cross_sums_clip(sums, less.cells, less.values, (size_t)unit.count, &clipped) &&
                  cross_sums_clip(sums, same.cells, same.values, (size_t)unit.count, &clipped_too),
              "memory");
        CHECK(clipped == !is_within(size, is_l1, bound) && clipped_too == clipped,
              "norm %g, reach %g", norm, (double)bound);
        CHECK(is_within(size_of(&ways, &less, is_l1), is_l1, bound), "reach %g", (double)bound);
        double factor = clipped ? (double)bound / norm : 1, slack = clipped ? 1e-4 : 0;
        for (int i = 0; i < unit.count; i++) {
          double is = (double)less.values[i], was = (double)unit.values[i];
          CHECK(is * was >= 0 && fabs(is) <= fabs(was) * factor * (1 + slack) &&
                    fabs(is) >= fabs(was) * (factor - slack) - norm * slack,
                "%.17g of %.17g, factor %.17g", is, was, factor);
          CHECK(same.values[unit.count - 1 - i] == less.values[i], "the order matters");
        }
        cross_sums_close(sums);
      }
    }
    ways_close(&ways);
  }
}

static void units_are_clipped_exactly(void) {
  clip_units(0);
}

static void units_are_clipped_exactly_in_the_sum_norm(void) {
  clip_units(1);
}

/* Each coordinate is the multiplier times the sum of the rows in its cell. */
static void coordinates_add_up(void) {
  for (int trial = 0; trial < TRIALS; trial++) {
    struct ways ways;
    struct unit unit;
    if (random_ways(&ways)) {
      random_unit(&ways, &unit, 30);
      struct layout shape = layout_of(&ways, 0, 1);
      struct cross_sums *sums = cross_sums_open(&shape);
      int128 *got = calloc((size_t)ways.coordinates, sizeof *got);
      int128 *want = calloc((size_t)ways.coordinates, sizeof *want);
      for (int i = 0; i < unit.count; i++) {
        cross_sums_add(sums, unit.keys[i], &unit.values[i], got);
        for (int t = 0; t < ways.count; t++) {
          const struct cross_table *table = &ways.tables[t];
          int cell = 0;
          for (int a = 0; a < ways.attributes; a++)
            if (table->mask >> a & 1) cell = cell * ways.sizes[a] + unit.keys[i][a];
          if (table->multiplier)
            want[table->first_coordinate + cell] += unit.values[i] * table->multiplier;
        }
      }
      cross_sums_end(sums, got);
      CHECK(!memcmp(got, want, sizeof *got * (size_t)ways.coordinates), "trial %d", trial);
      free(got);
      free(want);
      cross_sums_close(sums);
    }
    ways_close(&ways);
  }
}

int main(void) {
  RUN(units_are_clipped_exactly);
  RUN(units_are_clipped_exactly_in_the_sum_norm);
  RUN(coordinates_add_up);
  FINISH();
}
