/* row_reader.h: passes SQL values to sums/, one row after the other, for every aggregate. */
#ifndef DIFFUSE_QUERY_ROW_READER_H
#define DIFFUSE_QUERY_ROW_READER_H

#include "query/schema.h"
#include "release/release.h"
#include "sums/shard_state.h"
#include "sums/vector_sum.h"

/* The place of the key, the value and the unit among the arguments or columns of a row. A place is
** -1 if the row does not have this item. */
struct columns {
  int key, value, unit;
};

struct rows;
typedef int add_sql_row(struct rows *rows, sqlite3_value **row);

/* The rows of a kind that does not add them up (a room beside the core). open() sets rows->state
** and returns 0 if memory runs out or the system gives no random bytes. turn() says that all
** further rows are public; null: this kind has no public rows. totals() returns the totals, which
** belong to the state, or null with the error set. */
struct own_rows {
  int (*open)(struct rows *rows, const struct publication *publication);
  add_sql_row *add;
  int (*turn)(struct rows *rows, struct ledger *ledger, struct error *error);
  int128 *(*totals)(struct rows *rows, struct ledger *ledger, struct error *error);
  void (*close)(struct rows *rows);
};

struct rows {
  add_sql_row *add;
  add_sql_row *add_known; /* adds a row whose unit is known (collector.h) */
  struct unit_map *map;   /* the map from rows to units, or null */
  struct identity given;  /* the unit of the next rows, if columns.unit is -1 */
  struct columns columns;
  const struct aggregate *aggregate;
  const struct contribution *question;
  struct scalar_sum numbers;  /* for releases of one sum */
  struct vector_sum *vectors; /* for all other releases; null for a release of one sum */
  /* the family's function, which adds the value of a row to its cell */
  add_to_cell *add_to_cell;
  void *state; /* of own_rows */
  /* Cross tables: the keys of each attribute. A series: the labels of periods, and the groups. */
  struct group_keys *attributes[WAYS_MAX_ATTRIBUTES];
  /* group_keys_small() of each; with keys, but without cross tables: of the keys */
  const int *small[WAYS_MAX_ATTRIBUTES];
  struct span missing; /* a series: the periods whose rows count */
  int groups;          /* a series: the number of cells of a period */
  const struct secret
      *secret;    /* the key with which texts and blobs are hashed; null if nothing is hashed */
  double *buffer; /* the vector of one row */
  const struct households *households; /* the wider units (sums/households.h); null: none */
  int takes_any; /* a value that is not NULL counts as 1; otherwise it must be a number */
  int by_unit;   /* 0: each row is a unit of its own, or totals of shards are added up */
  int for_state; /* for the state of a shard: a unit has the same identity in all databases */
};

/* Returns the places for a caller that gives the key and the value in this order, as far as the
** release has them, and the unit by rows_give_unit() or a map. */
struct columns columns_in_order(const struct publication *publication);

/* Starts the rows of a release whose definition is complete. A place in `columns` is -1 if the
** aggregate has no such item, or if no column names the unit. `secret` is that of other rows of the
** release, or null for a new one. Returns 1, or 0 with the error set. */
int rows_open(struct rows *rows, const struct publication *publication, struct columns columns,
              const struct secret *secret, struct error *error);
void rows_close(struct rows *rows);

/* Returns whether rows_open() was called. Before, all bytes of `rows` are 0. */
static inline int rows_are_open(const struct rows *rows) {
  return rows->add != 0;
}

/* The function that opens the rows of a question. A caller may call it again to start anew. If
** `may_repeat` is 1, a caller may also open further rows of the same release, on any thread, with
** the secret of the first rows. Otherwise `secret` is null. */
struct rows_opener {
  int (*open)(void *context, struct rows *rows, const struct secret *secret, struct error *error);
  void *context;
  int may_repeat;
  const char *after; /* the text at the end of messages about errors that occur after open() */
};

/* Set the unit of the rows that rows_add() adds next. These rows have no column for the unit
** (columns.unit is -1). rows_give_unit() takes the value of a unit column; texts that are equal
** under the collation are the same unit. rows_give_number() takes a number. rows_give_unit()
** returns 1, or 0 when out of memory. */
int rows_give_unit(struct rows *rows, sqlite3_value *unit, enum collation collation);
void rows_give_number(struct rows *rows, int64_t number);

/* Treats each row that is added from now on as a unit of its own, which needs no memory for units.
** No row may be there yet. Returns 0, and does nothing, if these rows need the numbers of their
** units. */
int rows_forget_units(struct rows *rows);

/* Bounds what the units of a household count together. The table must have been made with the
** secret of `rows`, and must live as long. */
void rows_use_households(struct rows *rows, const struct households *households);

/* Adds one row. Returns 1, or 0 when out of memory. */
static inline int rows_add(struct rows *rows, sqlite3_value **row) {
  return rows->add(rows, row);
}

/* Add sums of a shard (sums/scalar_sum.h, sums/vector_sum.h). rows_add_record() adds the sum of a
** unit in one slot (sums/layout.h), and rows_add_totals() adds totals. Both return 1, or 0 when out
** of memory. rows_name_cell() returns the cell of a key's text, or CELL_FAILED when out of
** memory. */
int rows_add_record(struct rows *rows, struct identity unit, uint32_t slot, const int128 *values);
int rows_add_totals(struct rows *rows, int cell, const int128 *values);
int rows_name_cell(struct rows *rows, const char *name);

/* Translates `slot` of another struct rows into a slot of `rows`. cells[i] is the cell of `rows`
** that has the key of cell i of the other struct. */
uint32_t rows_slot(const struct rows *rows, const int *cells, uint32_t slot);

/* Passes the sum of every unit in every cell to `take` (sums/partitioned_sums.h). Returns 1, or 0
** if `take` returned 0 or when out of memory. */
int rows_records(struct rows *rows, take_record *take, void *context);

/* Adds the sums of `others` to `rows`. Both must belong to the same release and hash texts with the
** same secret. Returns 1, or 0 when out of memory. */
int rows_join(struct rows *rows, struct rows *others);

/* Prepares to add up rows of the same release, which have the same secret, on several threads. The
** first rows will have the sums. Returns null if rows_join() must add them up, or when out of
** memory. */
struct vector_parts *rows_parts(struct rows *const *list, int count);

/* Computes the totals and passes them to `publish`. Returns 1, or 0 with the error set. */
typedef int publish_totals(struct publication *publication, const struct totals *totals);
int rows_publish(struct rows *rows, struct publication *publication, publish_totals *publish,
                 struct error *error);

/* ---- states of shards (shard_rows.c) --------------------------------------------------------- */

/* Starts the rows of a request after request_finish(), for a shard or for a merge. A shard's rows
** have units (`by_unit`), and so do those of a merge, unless dp_partial() has bounded the sums of
** each unit already (whole_units). Fills `description`, which must outlive the rows, as must the
** request. Returns 1, or 0 with the error set. */
int shard_rows_start(struct rows *rows, struct publication *description,
                     const struct request *request, int by_unit, struct error *error);

/* Writes the sums of the rows as a state. The caller owns writer->bytes. Returns 1, or 0 with the
** error set. */
int shard_rows_write(struct rows *rows, const struct shard_label *label,
                     struct shard_state_writer *writer, struct error *error);

/* Adds a state to the rows. The state must have the same parameters as the rows. Returns 1, or 0
** with the error set. */
int shard_rows_add(struct rows *rows, struct shard_state *state, struct error *error);

#endif
