/* row_reader.h: the way of a row from SQLite to sums/, for every aggregate. The internal aggregate
** dp_collect() takes the rows of a statement, which is faster than one sqlite3_step() for each. */
#ifndef DIFFUSE_QUERY_ROW_READER_H
#define DIFFUSE_QUERY_ROW_READER_H

#include "query/schema.h"
#include "release/release.h"
#include "sums/sums.h"

/* The place of the key, the value and the unit among the arguments or columns of a row. A place is
** -1 if the row does not have this item. */
struct columns {
  int key, value, unit;
};

struct rows;
typedef int add_sql_row(struct rows *rows, sqlite3_value **row); /* returns 0 when out of memory */

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
  add_sql_row *add;       /* adds one row; null before rows_open() */
  add_sql_row *add_known; /* adds a row whose unit is known (struct unit_map) */
  /* Returns the cell of a row, CELL_NONE if the row does not count, or CELL_FAILED when out of
  ** memory. Null: there is one cell */
  int (*cell_of)(const struct rows *rows, sqlite3_value **row);
  struct unit_map *map;  /* the map from rows to units, or null */
  struct identity given; /* the unit of the next rows, if columns.unit is -1 */
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
  const struct households *households; /* the wider units (sums/sums.h); null: none */
  int takes_any; /* a value that is not NULL counts as 1; otherwise it must be a number */
  int by_unit;   /* 0: each row is a unit of its own, or totals of shards are added up */
  int for_state; /* for the state of a shard: a unit has the same identity in all databases */
};

/* Returns the places for a caller that gives the key and the value in this order, as far as the
** release has them, and the unit as rows->given or by a map. */
struct columns columns_in_order(const struct publication *publication);

/* Starts the rows of a release whose definition is complete. A place in `columns` is -1 if the
** aggregate has no such item, or if no column names the unit. `secret` is that of other rows of the
** release, or null for a new one. Returns 1, or 0 with the error set. */
int rows_open(struct rows *rows, const struct publication *publication, struct columns columns,
              const struct secret *secret, struct error *error);
void rows_close(struct rows *rows);

/* The function that opens the rows of a question. A caller may call it again to start anew. If
** `may_repeat` is 1, a caller may also open further rows of the same release, on any thread, with
** the secret of the first rows. Otherwise `secret` is null. */
struct rows_opener {
  int (*open)(void *context, struct rows *rows, const struct secret *secret, struct error *error);
  void *context;
  int may_repeat;
  const char *after; /* the text at the end of messages about errors that occur after open() */
};

/* Sets `given` to the unit that the value of a unit column names. Texts that are equal under the
** collation are the same unit. Returns 1, or 0 when out of memory. */
int rows_give_unit(struct rows *rows, sqlite3_value *unit, enum collation collation);

/* Bounds what the units of a household count together. The table must have been made with the
** secret of `rows`, and must live as long. */
void rows_use_households(struct rows *rows, const struct households *households);

/* Add sums of a shard (sums/sums.h). rows_add_record() adds the sum of a
** unit in one slot (sums/layout.h), and rows_add_totals() adds totals. Both return 1, or 0 when out
** of memory. rows_name_cell() returns the cell of a key's text, or CELL_FAILED when out of
** memory. */
int rows_add_record(struct rows *rows, struct identity unit, uint32_t slot, const int128 *values);
int rows_add_totals(struct rows *rows, int cell, const int128 *values);
int rows_name_cell(struct rows *rows, const char *name);

/* Translates `slot` of another struct rows into a slot of `rows`. cells[i] is the cell of `rows`
** that has the key of cell i of the other struct. */
uint32_t rows_slot(const struct rows *rows, const int *cells, uint32_t slot);

/* Passes the sum of every unit in every cell to `take` (sums/internal.h). Returns 1, or 0
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

/* ---- statements that give rows --------------------------------------------------------------- */

/* The destination of the rows of a statement. */
struct collection {
  struct rows *rows;
  /* Takes a row instead of rows->add(). Returns 0 when out of memory. Null: rows->add() */
  int (*take)(struct collection *collection, sqlite3_value **row);
  int columns;
  int ended; /* dp_collect() has finished */
};

/* A connection that has dp_collect(), and the destination of its rows while a statement runs. */
struct collector {
  sqlite3 *db;
  struct collection *collecting; /* null if no statement runs */
};

/* Runs a statement that calls dp_collect() on the collector's connection. Returns SQLITE_DONE, or
** the result code of the error. Returns SQLITE_OK if the statement ended without a call of
** dp_collect(), because an authorizer of the host returned SQLITE_IGNORE for the function or for
** SELECT. */
int collector_run(struct collector *collector, sqlite3_stmt *statement,
                  struct collection *collection);

/* Registers dp_collect() for a connection. Returns an SQLite result code. SQLite calls `release`
** once: when the connection closes, or if the registration fails. */
int collector_register(struct collector *collector, void (*release)(void *collector));

/* Registers dp_collect() on a connection of the extension, and returns its collector, which then
** owns the connection. Closes the connection and returns null when out of memory.
** private_collector_close() accepts null. */
struct collector *private_collector_new(sqlite3 *db);
void private_collector_close(struct collector *collector);

/* ---- the unit of each row -------------------------------------------------------------------- */

/* Finds the unit of each row of a protected table. A row names its unit in a column, or has a link
** to a row of another table that leads to the unit. */
struct unit_map {
  sqlite3 *db;
  sqlite3_stmt *lookup;     /* finds the unit to which the link ?1 leads; null: rows have no link */
  sqlite3_stmt *parents;    /* the query for the key and unit of every parent row; may be null */
  int is_whole;             /* `parents` has ended */
  struct known_link *known; /* a hash table with `room` entries, of which `count` are used */
  size_t room, count;
  int is_mixed; /* the entries are in an order that depends on a secret; 0: in the order of keys */
  enum collation collation;
  int by_row;     /* each row is a unit, so no column names the unit */
  int64_t number; /* the number of rows so far, if each row is a unit */
  int place;      /* the index of the column with the unit or the link */
  int rc;         /* SQLITE_OK, or the code with which a lookup failed */
};

/* Starts a map for the rows of the first table of a route. The lookups run on `db` while a
** statement reads the rows, and see the same state of the database. The caller must call
** unit_map_close(), even after an error. */
int unit_map_open(struct unit_map *map, sqlite3 *db, const struct route *route,
                  struct error *error);
void unit_map_close(struct unit_map *map);

/* Makes rows->add() find the unit of each row with the map, and leave out rows that belong to no
** unit. The unit column of `rows` holds the unit or the link. */
void unit_map_use(struct unit_map *map, struct rows *rows);

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
