/* shard_rows.c: writes rows as the state of a shard, and adds states to the rows of a merge.
**
** A state holds the sum of every unit of the shard in every cell. These sums are not bounded yet.
** The merge adds up the sums of each unit over all shards and then bounds them. The result
** therefore does not depend on the shard that holds a row. If all rows of a unit are in one shard,
** which the caller asserts, and which is so if each row is a unit, a state holds bounded totals
** instead.
** Tests: tests/functions/test_partial.py */
#include <stdlib.h>
#include <string.h>

#include "base/sql_text.h"
#include "query/query.h"
#include "release/release.h"

SQLITE_EXTENSION_INIT3

/* Starts the rows with a layout for adjacency by added or removed units. The lattice is the same
** under both adjacencies (layout.h), and the ledger of the merge decides which adjacency holds. */
int shard_rows_start(struct rows *rows, struct publication *description,
                     const struct request *request, int by_unit, struct error *error) {
  *description = (struct publication){
      .definition = {.aggregate = request->aggregate,
                     .mechanism = mechanism_find(request->aggregate, request->mechanism),
                     .cross_keys = request->cross_keys, /* not owned */
                     .release = request_release(request)}};
  if (!definition_layout(description, request->key_count, 0)) return error_set_memory(error);
  description->grid.keys = request->key_list;
  description->definition.by_unit = by_unit;
  struct error of_release = {0}; /* rows_open() mentions a charge, so its message is discarded */
  int opened = rows_open(rows, description, columns_in_order(description), 0, &of_release);
  rows->for_state = !request->whole_units;
  error_clear(&of_release);
  return opened || error_set(error, "out of memory or random bytes");
}

/* ---- shapes of states ------------------------------------------------------------------------ */

static int is_private(const struct rows *rows) {
  return rows->question->keys == KEYS_PRIVATE;
}

/* Returns the number of integers in an entry of a state. */
static size_t numbers_of(const struct rows *rows) {
  const struct layout *shape = rows->vectors ? vector_sum_shape(rows->vectors) : 0;
  if (!shape) return 1;
  if (rows->for_state) return (size_t)shape->components;
  return (size_t)(is_private(rows) ? shape->width : shape->coordinates);
}

/* ---- writing --------------------------------------------------------------------------------- */

static int count_record(void *context, struct identity unit, uint32_t cell, const int128 *values) {
  uint64_t *count = context;
  (void)unit, (void)cell, (void)values;
  ++*count;
  return 1;
}

struct writing {
  struct shard_state_writer *writer;
  const struct full_cells *full; /* null without cross tables */
  size_t numbers;
};

static int write_record(void *context, struct identity unit, uint32_t cell, const int128 *values) {
  const struct writing *writing = context;
  uint64_t slot = writing->full ? (uint64_t)full_cells_cell(writing->full, (int)cell) : cell;
  shard_state_put_unit(writing->writer, unit, slot);
  for (size_t i = 0; i < writing->numbers; i++) shard_state_put_number(writing->writer, values[i]);
  return !writing->writer->failed;
}

/* write_records(), write_total() and write_totals() return 1, or 0 when out of memory. */
static int write_records(struct rows *rows, const struct shard_label *label,
                         struct shard_state_writer *writer) {
  const struct full_cells *full = rows->vectors ? vector_sum_full(rows->vectors) : 0;
  struct writing writing = {writer, full, numbers_of(rows)};
  const struct group_keys *cells = is_private(rows) ? vector_sum_cells(rows->vectors) : 0;
  int keys = cells ? group_keys_count(cells) : 0;
  uint64_t count = 0;
  if (!rows_records(rows, count_record, &count)) return 0;
  shard_state_start(writer, label, STATE_RECORDS, (uint32_t)keys, count);
  for (int i = 0; i < keys; i++) shard_state_put_key(writer, group_keys_text(cells, i));
  return rows_records(rows, write_record, &writing);
}

static int write_total(struct rows *rows, const struct shard_label *label,
                       struct shard_state_writer *writer) {
  int128 total;
  if (!scalar_sum_total(&rows->numbers, &total)) return 0;
  shard_state_start(writer, label, STATE_TOTALS, 0, 1);
  shard_state_put_number(writer, total);
  return 1;
}

static int write_totals(struct rows *rows, const struct shard_label *label,
                        struct shard_state_writer *writer) {
  int cells;
  const char **keys;
  int128 *totals = vector_sum_totals(rows->vectors, &cells, &keys);
  if (!totals) return 0;
  size_t entries = keys ? (size_t)cells : 1, numbers = entries * numbers_of(rows);
  shard_state_start(writer, label, STATE_TOTALS, keys ? (uint32_t)cells : 0, entries);
  for (int i = 0; keys && i < cells; i++) shard_state_put_key(writer, keys[i]);
  for (size_t i = 0; i < numbers; i++) shard_state_put_number(writer, totals[i]);
  free(totals);
  free(keys);
  return 1;
}

int shard_rows_write(struct rows *rows, const struct shard_label *label,
                     struct shard_state_writer *writer, struct error *error) {
  *writer = (struct shard_state_writer){0};
  int written = rows->for_state ? write_records(rows, label, writer)
                : rows->vectors ? write_totals(rows, label, writer)
                                : write_total(rows, label, writer);
  return (written && shard_state_end(writer)) || error_set(error, "out of memory or random bytes");
}

/* ---- adding ---------------------------------------------------------------------------------- */

#define KEY_BYTES 4000 /* the longest text of a key: 1000 characters of UTF-8 (sql_text.h) */

/* Adds the next private key of a state and returns its cell. Returns CELL_NONE if the bytes are not
** the text of a key, and CELL_FAILED when out of memory. */
static int add_key(struct rows *rows, struct shard_state *state) {
  char text[KEY_BYTES + 1];
  const char *bytes;
  size_t size;
  if (!shard_state_key(state, &bytes, &size) || size > KEY_BYTES) return CELL_NONE;
  memcpy(text, bytes, size);
  text[size] = 0;
  int plain = strlen(text) == size ? key_is_plain(text) : 0;
  if (plain < 1) return plain < 0 ? CELL_FAILED : CELL_NONE;
  return rows_name_cell(rows, text);
}

/* Adds one entry of a state. `cells` holds the cells of private keys, or is null. Returns null, or
** an error message. */
static const char *add_entry(struct rows *rows, struct shard_state *state, uint64_t entry,
                             const int *cells, int128 *numbers) {
  struct identity unit = {0, 0};
  const struct layout *shape = rows->vectors ? vector_sum_shape(rows->vectors) : 0;
  struct full_cells *full = shape && shape->ways ? vector_sum_full(rows->vectors) : 0;
  uint64_t slot = 0;
  if (rows->for_state) unit = shard_state_unit(state, &slot);
  uint64_t count = cells ? state->keys : shape ? (uint64_t)shape->cells : 1;
  uint64_t end =
      full ? (uint64_t)ways_full(shape->ways) : count * (shape ? (uint64_t)shape->bins : 1);
  if ((rows->for_state && !identity_is_somebody(unit)) || slot >= end)
    return "the state is malformed";
  if (!shard_state_numbers(state, numbers, numbers_of(rows))) return "the state is malformed";
  if (cells && rows->for_state) slot = rows_slot(rows, cells, (uint32_t)slot);
  if (full && rows->for_state) {
    int number = full_cells_number(full, (int64_t)slot);
    if (number < 0) return "out of memory";
    slot = (uint64_t)number;
  }
  int added = rows->for_state ? rows_add_record(rows, unit, (uint32_t)slot, numbers)
                              : rows_add_totals(rows, cells ? cells[entry] : 0, numbers);
  return added ? 0 : "out of memory";
}

static const char *add_entries(struct rows *rows, struct shard_state *state, const int *cells) {
  size_t count = numbers_of(rows);
  uint64_t entries = cells ? state->keys : 1;
  if (!shard_state_fits(state, count) || (!rows->for_state && state->entries != entries))
    return "the state is malformed";
  int128 *numbers = malloc(sizeof *numbers * count);
  const char *wrong = numbers ? 0 : "out of memory";
  for (uint64_t i = 0; i < state->entries && !wrong; i++)
    wrong = add_entry(rows, state, i, cells, numbers);
  free(numbers);
  return wrong;
}

int shard_rows_add(struct rows *rows, struct shard_state *state, struct error *error) {
  int sound = state->entry == (rows->for_state ? STATE_RECORDS : STATE_TOTALS) &&
              shard_state_holds_keys(state) && (is_private(rows) || state->keys == 0);
  if (!sound) return error_set(error, "the state is malformed");
  int *cells = is_private(rows) ? calloc((size_t)state->keys + 1, sizeof *cells) : 0;
  const char *wrong = is_private(rows) && !cells ? "out of memory" : 0;
  for (uint32_t i = 0; cells && i < state->keys && !wrong; i++) {
    cells[i] = add_key(rows, state);
    if (cells[i] == CELL_NONE) wrong = "the state is malformed";
    if (cells[i] == CELL_FAILED) wrong = "out of memory";
  }
  if (!wrong) wrong = add_entries(rows, state, cells);
  free(cells);
  return !wrong || error_set(error, "%s", wrong);
}
