/* sums.h: from rows to exact sums, one section for each C file. Other rooms open a scalar_sum or a
** vector_sum, add rows of units to it, and read the totals. */
#ifndef DIFFUSE_SUMS_SUMS_H
#define DIFFUSE_SUMS_SUMS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "noise/noise.h"
#include "os/os.h"
#include "sums/layout.h"

/* ---- identities (identity.c) ----------------------------------------------------------------- */

/* Privacy units and group keys as identities of 128 bits.
**
** Equal numbers share one identity (1 and 1.0, 0.0 and -0.0). All NULLs share one identity too.
** Texts and blobs are compared byte for byte, whatever the collation of a column is. The identity
** of a text or blob contains 126 bits of a hash with a secret. Each release draws a new secret,
** which is unknown to anybody who chooses texts. The method of hashing depends on the length of the
** text:
**
**   up to 240 bytes: two given texts get the same identity with probability 2^-126 (the proof is in
**     identity.c). Among n texts, whoever chose them, the probability that any two texts get the
**     same identity is at most n^2/2^127. For a billion texts this is below 1e-20;
**   longer: SHA-256 of the secret and the text. The probabilities are the same if SHA-256 behaves
**     like a random function;
**   in states: SHA-256 without a secret, because machines that share no secret must
**     compute the same identities. The probabilities are the same if nobody chooses the texts on
**     purpose. A person who can choose the names of units can find two names with one identity in
**     about 2^63 trials. These two units would then count as one unit.
**
** The secret also prevents anybody from choosing texts that collide in a hash table. */

struct identity {
  uint64_t kind, low; /* kind 0 marks an empty slot of a table */
};

/* The words of 64 bits of a secret: 3 for identity_mix(), 4 that are hashed before a long text, and
** for the hash of a short text 3 for each of its words, for its size and for the constant k_0
** (identity.c). */
#define IDENTITY_SHORT 240 /* longest text, in bytes, that is hashed by sums of products */
#define SECRET_KEY     3
#define SECRET_HASH    7
#define SECRET_WORDS   (SECRET_HASH + 3 * (IDENTITY_SHORT / 8 + 2))
struct secret {
  unsigned char bytes[8 * SECRET_WORDS];
};

/* Draws a secret. Returns 1, or 0 if the system provides no random bytes. */
static inline int secret_draw(struct secret *secret) {
  return entropy_fill(secret->bytes, sizeof secret->bytes);
}

/* The kinds of identities that are not hashes. */
enum { IDENTITY_NOBODY, IDENTITY_INTEGER, IDENTITY_REAL, IDENTITY_NULL };

static inline struct identity identity_null(void) {
  return (struct identity){IDENTITY_NULL, 0};
}

static inline struct identity identity_integer(int64_t value) {
  return (struct identity){IDENTITY_INTEGER, (uint64_t)value};
}

struct identity identity_real(double value);
/* Returns the identity of a text or a blob. If `secret` is null, the identity is the same in every
** database. Shard states need such identities. */
struct identity identity_bytes(const struct secret *secret, const void *bytes, size_t size,
                               int is_text);

/* Returns whether 128 bits that were read from a state can be the identity of a row's value. */
int identity_is_somebody(struct identity identity);

/* Returns the identity of a name. The result never equals the identity of a row's value, whatever
** the bytes of the name are. */
struct identity identity_name(const struct secret *secret, const char *name);

static inline int identity_same(struct identity a, struct identity b) {
  return a.kind == b.kind && a.low == b.low;
}

static inline uint64_t secret_word(const struct secret *secret, int at) {
  uint64_t word;
  memcpy(&word, secret->bytes + (size_t)8 * (size_t)at, sizeof word);
  return word;
}

/* Returns a place in a hash table: 64 bits that depend on an identity, a number and the secret. The
** two halves of a product of two words are combined, and multiplied by a constant from the golden
** ratio, so that low bits also affect high bits. */
static inline uint64_t identity_mix(const struct secret *secret, struct identity identity,
                                    uint64_t number) {
  uint64_t a = identity.low ^ secret_word(secret, 0);
  uint64_t b = identity.kind ^ secret_word(secret, 1) ^ number * secret_word(secret, 2);
  uint128 product = (uint128)a * (b | 1);
  uint64_t mixed = (uint64_t)product ^ (uint64_t)(product >> 64);
  mixed *= 0x9e3779b97f4a7c15u;
  return mixed ^ (mixed >> 32);
}

/* ---- tables of units (unit_table.c) ---------------------------------------------------------- */

/* A hash table from identities to 64-bit totals of rows, for millions of identities.
**
** A line is a cache line of 8 words. A line has four slots (left) if all keys are integers,
** otherwise two slots (right):
**
**     | low | mark |        | low | mark | kind | - |
**
** The number of a key is its total. The mark of a used slot is the number of its key + 2^63. The
** mark of an empty slot is 0.
**
** Lines are stored in chunks of 2 MiB, and each chunk is one huge page. The upper bits of a key's
** place, unit_table_place(), choose the chunk, and the lower bits choose the line. If the line is
** full, the key goes to the next line of the chunk. When a chunk is more than three quarters full,
** every chunk is split in two. The memory of a split chunk is used again for the next split, so a
** table never needs more than its final size and one chunk.
**
** A large table does not fit into a cache. Rows therefore wait in a batch while the processor
** prefetches their lines. If a row finds its line full, the row waits again while the next line is
** prefetched. */

#define TABLE_BATCH 64
#define TABLE_WORDS 8                  /* words of a line */
#define TABLE_MOST  ((int64_t)1 << 61) /* limit of an amount, and of a stored number */

/* A row, or the sum of consecutive rows of one key, that waits in the batch. */
struct addend {
  struct identity key;
  int64_t amount;
  uint64_t *line; /* the next line in which the key is looked up */
};

struct unit_table {
  const struct secret *secret;
  uint64_t **chunks; /* 2^depth pointers */
  uint32_t *used;    /* number of used slots of each chunk */
  uint64_t mask;     /* number of lines of a chunk, minus 1 */
  int depth;
  int of_integers; /* 1 if all keys are integers */
  int full;        /* a chunk has to be split before the next batch */
  int failed;      /* 1 if rows were lost; stays set */
  int waiting;
  struct addend batch[TABLE_BATCH];
};

/* Opens an empty table. Returns 1, or 0 if memory runs out; it need not be closed then. */
int unit_table_open(struct unit_table *table, const struct secret *secret, int of_integers);
void unit_table_close(struct unit_table *table);

/* Removes all keys and keeps the memory. The batch must be empty. */
void unit_table_clear(struct unit_table *table);

/* A caller's function that receives the number of a key. Returns 1, or 0 after a failure. */
typedef int take_number(void *context, struct identity key, int64_t number);

/* Adds all rows of the batch to the table. A number that leaves the range +-TABLE_MOST is passed to
** `take`, and the stored number is set to 0; without `take` this is a failure. Returns 1, or 0 if
** memory ran out or `take` failed in this or an earlier call. */
int unit_table_flush(struct unit_table *table, take_number *take, void *context);

/* These functions read the stored numbers, without the rows that still wait in the batch.
** unit_table_get() sets *number to the number of a key and returns whether the key exists.
** unit_table_each() calls `take` for every key, and returns 0 as soon as `take` does. */
int unit_table_get(const struct unit_table *table, struct identity key, int64_t *number);
int unit_table_each(const struct unit_table *table, take_number *take, void *context);

static inline uint64_t unit_table_place(const struct unit_table *table, struct identity key) {
  return identity_mix(table->secret, key, 0);
}

static inline uint64_t unit_table_chunk(const struct unit_table *table, uint64_t place) {
  return place >> 32 >> (32 - table->depth);
}

/* Returns the first line in which a key may be. */
static inline uint64_t *unit_table_line(const struct unit_table *table, struct identity key) {
  uint64_t place = unit_table_place(table, key);
  return &table->chunks[unit_table_chunk(table, place)][(place & table->mask) * TABLE_WORDS];
}

/* Numbers of identities, 0 or larger. numbering_get() returns -1 for an identity without one.
** numbering_put() gives an identity without one this number, and returns its number, or -1 if
** memory runs out. Several threads may call numbering_get() and numbering_expect(), which
** prefetches the memory that it reads. */
struct numbering {
  struct unit_table integers, others;
};
int numbering_open(struct numbering *numbering, const struct secret *secret);
void numbering_close(struct numbering *numbering);
int64_t numbering_get(const struct numbering *numbering, struct identity key);
int64_t numbering_put(struct numbering *numbering, struct identity key, int64_t number);

/* Adds an amount within +-TABLE_MOST. Returns whether the batch is full and must be flushed. */
static inline int unit_table_add(struct unit_table *table, struct identity key, int64_t amount) {
  struct addend *row = &table->batch[table->waiting];
  if (table->waiting && identity_same(row[-1].key, key) && llabs(row[-1].amount) < TABLE_MOST / 2) {
    row[-1].amount += amount;
    return 0;
  }
  row->key = key;
  row->amount = amount;
  row->line = unit_table_line(table, key);
  memory_prefetch(row->line);
  return ++table->waiting == TABLE_BATCH;
}

static inline void numbering_expect(const struct numbering *numbering, struct identity key) {
  int is_integer = key.kind == IDENTITY_INTEGER;
  __builtin_prefetch(
      unit_table_line(is_integer ? &numbering->integers : &numbering->others, key));
}

/* Functions of a caller: for a record, the sum of a unit's rows in one cell, where 0 stops the
** loop; and for a unit whose record comes soon, so that the function can prefetch memory. */
struct partitioned_sums;
typedef int take_record(void *context, struct identity unit, uint32_t cell, const int128 *values);
typedef void expect_unit(const void *context, struct identity unit);

/* ---- households (households.c) --------------------------------------------------------------- */

/* The wider units of a ledger, such as households, and how much one of them may
** count.
**
** Every unit, such as a person, belongs to one household, or is a household of its own. What the
** persons of a household count, each clipped, is added up. If this sum is larger than a household
** may count, it is moved to a point near it that is not:
**
**   H1  each number of the sum u is clamped to +-box. The box is `reach` where each number is
**       published by itself: if most people of a household are in one group, the other groups keep
**       theirs. Where numbers belong together (the count and the sum of an average, the nodes of a
**       tree, tables and their margins), the box is 2^HOUSEHOLD_FAR times as large, and one factor
**       scales all numbers of a household with fewer than 100,000 people;
**   H2  if |u| is then larger than `reach`, each number becomes trunc(u_i reach / n) with
**       n = floor(|u|) + 1. Afterwards |u| <= reach, exactly.
**
** Clamping, and scaling to a ball, move no two points apart. The computed point is at most
** 1 + sqrt(d) from the exact one, where d is the number of coordinates: the scale is off by less
** than 1, because n is at most |u| + 1, and truncation moves each number by less than 1. So one
** person, whose vector is at most B long, changes the household's point by at most
** B + 2 (1 + sqrt(d)) fine steps, and a household's point is at most `reach` long.
**
** The table of persons is filled before the sums of a release are added up. Then several threads
** may read it. */

#define HOUSEHOLD_NONE (-1) /* the person is a household of their own */

struct households;

/* Makes an empty table for identities of units and households that were made with this secret.
** Returns null if memory runs out. */
struct households *households_open(const struct secret *secret);
void households_close(struct households *households); /* `households` may be null */

/* Notes the household of a person. If a person is noted twice, the first household counts. Returns
** 1, or 0 if memory runs out. */
int households_put(struct households *households, struct identity person,
                   struct identity household);

/* Returns the number of the household of a person, or HOUSEHOLD_NONE. */
int64_t households_find(const struct households *households, struct identity person);

/* Prefetches the memory that households_find() reads for a person. */
expect_unit households_expect; /* the context is a struct households */

/* The numbers of households are 0 ... households_count() - 1. */
size_t households_count(const struct households *households);

/* Moves a household's sum as H1 and H2 say. `is_far` says that the box is the large one. The
** caller's values are within +-2^125, and reach < 2^54. Returns whether a value changed. */
#define HOUSEHOLD_FAR 18
int household_project(int128 *values, size_t count, int64_t reach, int is_far);

/* ---- keys of groups (group_keys.c) ----------------------------------------------------------- */

/* The keys of a grouped release, and the cell of each key.
**
** The code compares keys by the text that is published, so keys with the same text are one group.
** Public keys are parameters of the release, and rows with other keys have no cell. Private keys
** are collected from the rows. */

struct group_keys;

#define CELL_NONE   (-1)
#define CELL_NEW    (-2) /* group_keys_name() has not seen this key yet */
#define CELL_FAILED (-3) /* out of memory */

/* Makes a table of keys: keys[i], of `count` different public keys, gets cell i. If `collecting` is
** true, the table also gives cells to new (private) keys. Returns null if memory runs out. */
struct group_keys *group_keys_open(const struct secret *secret, char *const *keys, int count,
                                   int collecting);
void group_keys_close(struct group_keys *cells);

/* The cells of the integers 0 ... GROUP_KEYS_SMALL - 1, as long as the table lives. */
#define GROUP_KEYS_SMALL 4096
const int *group_keys_small(const struct group_keys *cells);

/* Returns the cell of the key with this identity, or CELL_NEW if group_keys_name() has not stored
** this identity. For a small integer that is not a public key, the result can be CELL_NONE. */
int group_keys_find(const struct group_keys *cells, struct identity key);

/* Short texts are found without a hash if they were seen shortly before. group_keys_recall()
** returns the cell of a text that group_keys_note() has stored, or CELL_NEW. The cell depends on
** the bytes alone. */
int group_keys_recall(const struct group_keys *cells, const void *bytes, size_t size);
void group_keys_note(struct group_keys *cells, const void *bytes, size_t size, int cell);

/* Returns the cell of the key with this text, and stores it under the identity `key` for
** group_keys_find(). Returns CELL_NONE for a key that is neither public nor collected, and
** CELL_FAILED if memory runs out. */
int group_keys_name(struct group_keys *cells, struct identity key, const char *text);

int group_keys_count(const struct group_keys *cells);
const char *group_keys_text(const struct group_keys *cells, int cell);

/* Marks the cells of keys that a unit has kept: of its private keys, a unit keeps at most
** max_groups. A private key that no unit has kept gets no coordinate. With more coordinates, the
** probability that noise publishes a key of a single unit would be higher. Several threads may call
** group_keys_keep() at the same time. */
void group_keys_keep(struct group_keys *cells, const uint32_t *list, size_t count);
void group_keys_forget(struct group_keys *cells); /* clears all marks */
int group_keys_is_kept(const struct group_keys *cells, int cell);

/* Returns 64 bits that depend only on the key's text and the secret, not on the order of rows. */
uint64_t group_keys_hash(const struct group_keys *cells, int cell);

/* ---- cells of a full table (cross_sums.c) ---------------------------------------------------- */

/* The full table of cross tables may have up to 2^62 cells. Records of units (internal.h)
** have a cell of 32 bits. In a full table of at most FULL_CELLS_DIRECT cells, a cell is its own
** number. Otherwise the cells that occur get the numbers 0, 1, ... in the order in which they
** occur. Nothing that is published depends on this order. */
struct full_cells;
#define FULL_CELLS_DIRECT (1 << 20)

/* Returns a table for a full table of `size` cells, or null if memory runs out. */
struct full_cells *full_cells_open(int64_t size);
void full_cells_close(struct full_cells *cells);

/* Returns the number of a cell, or -1 if memory runs out or 2^31 - 1 cells have numbers. */
int full_cells_number(struct full_cells *cells, int64_t cell);

int full_cells_count(const struct full_cells *cells);
int64_t full_cells_cell(const struct full_cells *cells, int number);

/* ---- one number (scalar_sum.c) --------------------------------------------------------------- */

/* Turns rows into one exact total. The code bounds the contribution of each privacy
** unit and adds up the bounded contributions.
**
** The code multiplies a row's value by a power of two and rounds the product to the nearest
** integer, a number of fine lattice steps. All later operations are exact integer additions without
** floating point, so the total does not depend on the order of rows. Requirements:
**   U1  The total of one unit is clamped to [low, high] however many rows it has.
**   U2  Without units each row is clamped on its own.
**   U3  No value of a row is an error: infinities and huge values saturate.
**   U4  With households, what the units of one of them count together is clamped, too.
** The identities above decide which rows belong to one unit. */

/* The bounds of a contribution, in fine steps. */
struct bounds {
  double scale; /* number of fine steps in a value of 1; a power of two */
  /* The range of one unit's total. Both numbers are integers of at most 2^53 in absolute value. */
  double low, high;
  int64_t low_steps, high_steps; /* low and high as integers */
  int64_t wide;                  /* the most that a household may count; 0: there are none */
  struct ladder ladder;          /* of the option diagnose (layout.h) */
};

/* Totals by unit. The tables `integers` and `others` hold totals that fit 64 bits. `carried` holds
** larger totals; null: there are none. */
struct units {
  struct secret secret;
  struct unit_table integers, others;
  struct partitioned_sums *carried;
};

/* An accumulator. It holds one total for each unit if units are protected, and one total of all
** rows if rows are protected. */
struct scalar_sum {
  struct bounds bounds;
  int128 total; /* total of the rows without a unit, and of scalar_sum_add_total() */
  struct units *units;
  struct tally tally; /* with diagnose; of units: complete after scalar_sum_total() */
  const struct households *households; /* the wider units; null: none */
};

/* Returns a value as a number of fine steps, rounded to nearest and saturated at
** +-2^LATTICE_ROW_BITS (U3). NaN becomes 0. */
static inline int128 fine_steps(double value, double scale) {
  double x = value * scale;
  if (fabs(x) < 0x1p62) return llrint(x);
  int128 limit = (int128)1 << LATTICE_ROW_BITS;
  if (x >= 0x1p90) return limit;
  if (x <= -0x1p90) return -limit;
  return x == x ? (int128)x : 0; /* a double of this size is an integer */
}

/* Opens an empty accumulator. `secret` is that of another accumulator of the release, or null for a
** new one. Returns 1, or 0 if memory runs out or the system provides no random bytes. */
int scalar_sum_open(struct scalar_sum *accumulator, const struct bounds *bounds, int by_unit,
                    const struct secret *secret);
void scalar_sum_close(struct scalar_sum *accumulator);

/* Treats each row that is added from now on as a unit of its own (U2). No row may be there yet. */
void scalar_sum_forget_units(struct scalar_sum *accumulator);

/* Adds a row without a unit (U2). The function is inline, so that adding a row takes no more time
** than in SQLite's own sum(). */
static inline void scalar_sum_add_row(struct scalar_sum *accumulator, double value) {
  const struct bounds *bounds = &accumulator->bounds;
  double steps = value * bounds->scale;
  /* Each line compiles to one instruction without a branch. */
  steps = steps > bounds->low ? steps : bounds->low;
  steps = steps < bounds->high ? steps : bounds->high;
  accumulator->total += llrint(steps);
}

/* Adds a row to the tally of clipped rows, in addition to scalar_sum_add_row(). The tally of units
** needs no such call. */
static inline void scalar_sum_tally_row(struct scalar_sum *accumulator, double value) {
  const struct bounds *bounds = &accumulator->bounds;
  double steps = value * bounds->scale;
  double bounded = fmin(fmax(steps, bounds->low), bounds->high);
  tally_add(&accumulator->tally, &bounds->ladder, bounded != steps, fabs(steps), fabs(bounded));
}

/* Adds the rows that wait in the batch of a table. Returns 1, or 0 if memory ran out. */
int units_flush(struct units *units, struct unit_table *table);

/* Both functions add a row of a unit (U1). Both return 1, or 0 if memory ran out for this row or
** for an earlier row that was waiting in a batch. scalar_sum_add_unit() is the fast function and
** calls scalar_sum_add_large() for large values. */
int scalar_sum_add_large(struct scalar_sum *accumulator, struct identity unit, double value);
static inline int scalar_sum_add_unit(struct scalar_sum *accumulator, struct identity unit,
                                      double value) {
  struct units *units = accumulator->units;
  double steps = value * accumulator->bounds.scale;
  if (!(fabs(steps) < (double)TABLE_MOST)) return scalar_sum_add_large(accumulator, unit, value);
  struct unit_table *table = unit.kind == IDENTITY_INTEGER ? &units->integers : &units->others;
  return unit_table_add(table, unit, llrint(steps)) ? units_flush(units, table) : 1;
}

/* These functions add sums that another accumulator has computed. scalar_sum_add_steps() adds a sum
** of rows of one unit (U1) and returns 1, or 0 if memory runs out. scalar_sum_add_total() adds the
** sum of contributions that are already bounded; their units must have no rows in this accumulator.
** Both functions saturate at +-2^125. */
int scalar_sum_add_steps(struct scalar_sum *accumulator, struct identity unit, int128 steps);
void scalar_sum_add_total(struct scalar_sum *accumulator, int128 total);

/* Calls `take` with the total of every unit. These totals are not bounded yet. The cell is 0. The
** return value is that of partitioned_sums_each(). */
int scalar_sum_records(struct scalar_sum *accumulator, take_record *take, void *context);

/* Returns the secret for the identities of units. The accumulator must have been opened with
** by_unit. */
const struct secret *scalar_sum_secret(const struct scalar_sum *accumulator);

/* Sets *total to the exact total of all bounded contributions, and counts the units in the tally.
** Returns 1, or 0 if memory ran out. */
int scalar_sum_total(struct scalar_sum *accumulator, int128 *total);

/* ---- vectors (vector_sum.c) ------------------------------------------------------------------ */

/* Turns rows into one exact vector of totals. The code clips the matrix of each unit
** (layout.h) and adds up the clipped matrices.
**
** A scalar_sum does the same for releases of one number. After the first rounding all arithmetic is
** exact integer arithmetic on the matrix of each unit, so the totals do not depend on the order of
** rows. Requirements:
**   V1  The matrix of one unit fits the layout (clip_vector()), however many rows the unit has.
**   V2  Without units every row is clipped by itself.
**   V3  With private keys, a unit keeps at most max_groups of its keys. These are the first keys in
**       the order of a keyed hash of unit and key, whatever the order of rows.
**   V4  Cross tables (layout.h): a row's cell is one of the full table. The clipped units are added
**       up in the full table, and the totals are those of the measured tables.
**   V5  With households, the clipped vectors of the units of one of them are added up first, and
**       this sum is bounded as H1 and H2 say. In cross tables, the sum is that of the measured
**       tables, and one factor scales all its coordinates. */

struct vector_sum;

/* Opens an empty vector. keys[i], of the sorted public keys, gets cell i; `keys` is null if there
** are none. `secret` is that of another vector of the release, or null for a new one. Returns null
** if memory runs out or the system provides no random bytes. */
struct vector_sum *vector_sum_open(const struct contribution *question, const struct layout *shape,
                                   int by_unit, char *const *keys, const struct secret *secret);
void vector_sum_close(struct vector_sum *vectors);

/* Treats each row that is added from now on as a unit of its own (V2). No row may be there yet. */
void vector_sum_forget_units(struct vector_sum *vectors);

/* Bounds what the units of a household count together (V5). The table has the secret of
** `vectors`. */
void vector_sum_use_households(struct vector_sum *vectors, const struct households *households);

const struct secret *vector_sum_secret(const struct vector_sum *vectors);
struct group_keys *vector_sum_cells(struct vector_sum *vectors);
struct full_cells *vector_sum_full(struct vector_sum *vectors); /* null without cross tables */
const struct layout *vector_sum_shape(const struct vector_sum *vectors);

/* These functions add a row of a unit to a cell; if rows are protected, they ignore the unit. They
** return 0 if memory runs out. Each adds 1 to the count, if the layout has one, and to the sums: */
add_to_cell vector_sum_add_one;     /* nothing else */
add_to_cell vector_sum_add_number;  /* x */
add_to_cell vector_sum_add_centred; /* u = layout_centred(x) */
add_to_cell vector_sum_add_curve;   /* u and 2 u^2 - 1 */
add_to_cell vector_sum_add_bin;     /* nothing else; the row goes to the bin of x */
add_to_cell vector_sum_add_exponent; /* nothing else; the row goes to layout_exponent_bin(x) */
/* The next two divide 1 into parts that add up to exactly 1, one for each component. With w = (1 +
** u)/2 in [0, 1], these are */
add_to_cell vector_sum_add_pair;   /* w and 1 - w */
add_to_cell vector_sum_add_triple; /* (1 - w)^2, 2 w (1 - w) and w^2 */
/* Adds a row whose value is a vector of finite numbers. */
int vector_sum_add_vector(struct vector_sum *vectors, struct identity unit, const double *v);
/* Adds a row of little-endian binary32 numbers, which may be infinite or NaN, faster than
** vector_sum_add_vector(). Returns 1 if it has added exactly what vector_sum_add_vector() would
** add. Returns 0 and adds nothing if the row would need clipping, if a number is very large or not
** finite, if norms are sums of magnitudes, if units are protected and the layout has a count, or if
** memory runs out. */
int vector_sum_add_floats(struct vector_sum *vectors, struct identity unit,
                          const unsigned char *floats);

/* These functions add sums that another vector has computed, saturate at +-2^125, and return 0 if
** memory runs out. vector_sum_add_record() adds the sums of one unit in one slot.
** vector_sum_add_totals() adds totals that are not by unit: those of all coordinates or, with
** private keys, those of one cell whose key some unit has kept. */
int vector_sum_add_record(struct vector_sum *vectors, struct identity unit, uint32_t slot,
                          const int128 *values);
int vector_sum_add_totals(struct vector_sum *vectors, int cell, const int128 *values);

/* Finds the cells of another vector of the same release in `vectors`, which gets those that it does
** not have yet, and room for their totals. (*cells)[i] becomes the cell, or in cross tables the
** number of the cell of the full table, with the key of the other vector's cell i. The caller frees
** this array, which is null if the cells are the same. Returns 0 if memory runs out. */
int vector_sum_map(struct vector_sum *vectors, const struct vector_sum *other, int **cells);

/* Calls `take` for every record: the sums of one unit in one slot (layout.h). Returns 0 if memory
** ran out or `take` returned 0, as does the next function. */
int vector_sum_records(struct vector_sum *vectors, take_record *take, void *context);

/* Calls `take` for every unit with the sums of its `count` slots, in the order of the slots, which
** are not clipped. `values` has the components of each slot, and `take` may change them. */
typedef int take_matrix(void *context, struct identity unit, size_t count, const uint32_t *slots,
                        int128 *values);
int vector_sum_units(struct vector_sum *vectors, take_matrix *take, void *context);

/* Returns the exact totals of all coordinates, cell by cell (layout.h), or null if memory ran out.
** Sets *cells to the number of cells. With private keys, the cells are in the order of their texts,
** and *keys lists these texts; otherwise *keys is null. The caller calls free() for the totals and
** for the list. The texts belong to `vectors`. */
int128 *vector_sum_totals(struct vector_sum *vectors, int *cells, const char ***keys);

/* With the option diagnose: vector_sum_tally() returns the numbers of units that were clipped and
** that were not. A unit is clipped if its vector was scaled down, if one of its rows was outside
** the range of x or beyond the bound on a row, or if it had too many private keys. The scaling of
** the counts that only select private keys does not matter. The tally is complete after
** vector_sum_totals(). vector_sum_join_tally() adds what another vector of the same release has
** noted about its rows; it returns 0 if memory ran out. */
struct tally vector_sum_tally(const struct vector_sum *vectors);
int vector_sum_join_tally(struct vector_sum *vectors, struct vector_sum *others);

/* ---- on several threads ---------------------------------------------------------------------- */

/* Each thread has added its rows to a vector of its own. All these vectors have the same secret, so
** the units can be divided into parts by their places (internal.h). A thread that takes a
** part merges the records of each of its units from all vectors, clips the unit, and adds it to the
** totals of the thread's own vector. In the end the totals are added up. All of them are integers,
** so the result is the same as on one thread, whoever takes which part.
**
** The caller calls these functions in this order. "On any thread" means that several threads may
** call the function at the same time, with different numbers. Each function returns 0 if memory
** runs out. */

struct vector_parts;

/* Prepares to add up `count` vectors, the first of which will have the totals. Null: no memory. */
struct vector_parts *vector_parts_open(struct vector_sum *const *list, int count);
void vector_parts_close(struct vector_parts *parts); /* `parts` may be null */

/* On any thread: gives the cells of a vector the numbers that they have in the first vector. */
int vector_parts_prepare(struct vector_parts *parts, int number);

/* Sets *count to the number of parts: 0 if the vectors must be added up on one thread. */
int vector_parts_find(struct vector_parts *parts, unsigned *count);

/* On any thread: adds a part to the vector with this number, which no other thread uses. */
int vector_parts_add(struct vector_parts *parts, int number, unsigned part);

/* Adds up the totals of all vectors, so that vector_sum_totals() of the first one returns them.
** Returns 0 if the vectors must be added up on one thread after all. Their records are complete. */
int vector_parts_end(struct vector_parts *parts);

/* ---- states of shards (shard_state.c) -------------------------------------------------------- */

/* Writes the exact sums of one shard (a part of the data) as bytes, and reads such
** bytes. Another machine can add up the sums of several shards.
**
** A state contains exact sums without noise, so it must be protected like the rows. The format does
** not depend on the byte order of the machine: integers are little-endian, and signed integers are
** in two's complement.
**
**     bytes  content
**     8      "dp-state"
**     4      version, 3
**     4      size of the parameters
**     4      number of keys
**     4      the kind of the entries: STATE_TOTALS or STATE_RECORDS
**     8      number of entries
**     16     serial number: random bits, so that no two states have the same bytes
**     ...    the parameters, a text that only the caller interprets
**     ...    the name of the shard: size (4) and text; empty if it has none
**     ...    keys: size (4) and text of each
**     ...    entries: totals are integers of 16 bytes; a record is a unit (16), a slot (8;
**            layout.h; of cross tables the cell of the full table) and integers
**     32     SHA-256 of all that precedes
**
** The SHA-256 detects damage. It is not a signature. The functions that read a state only check
** that they do not read past the end of the state. Their callers check the contents. */

enum { STATE_TOTALS = 1, STATE_RECORDS = 2 };

#define STATE_SERIAL 16 /* bytes of a serial number */
#define STATE_DIGEST 32 /* bytes of the SHA-256 */

/* ---- writing --------------------------------------------------------------------------------- */

/* What a state says of itself, as texts. */
struct shard_label {
  const char *parameters;
  const char *shard; /* the name of the shard; null: none */
};

struct shard_state_writer {
  unsigned char *bytes; /* to be freed with free() */
  size_t size, room;
  int failed; /* memory ran out or the system gave no random bytes; stays set */
};

/* Starts a state with the given numbers of keys and entries. The caller then writes the keys, and
** after the keys the entries. */
void shard_state_start(struct shard_state_writer *writer, const struct shard_label *label,
                       uint32_t entry, uint32_t keys, uint64_t entries);
void shard_state_put_key(struct shard_state_writer *writer, const char *text);
void shard_state_put_unit(struct shard_state_writer *writer, struct identity unit, uint64_t cell);
void shard_state_put_number(struct shard_state_writer *writer, int128 number);

/* Ends the state. Returns 1, or 0 if any function of this writer failed. */
int shard_state_end(struct shard_state_writer *writer);

/* ---- reading --------------------------------------------------------------------------------- */

/* A state that is being read. The pointers lead into the caller's bytes. */
struct shard_state {
  const char *parameters, *shard; /* do not end with a zero byte */
  size_t parameters_size, shard_size;
  uint32_t entry, keys;
  uint64_t entries;
  const unsigned char *at, *end; /* the bytes that have not been read yet */
  const unsigned char *digest;   /* STATE_DIGEST bytes: the SHA-256, which is right */
};

/* Opens a state. Returns null if the state is readable. Otherwise returns the end of a sentence
** that starts with "the state" and describes the problem. The function does not check the numbers
** of keys and entries, so the caller must do so. */
const char *shard_state_open(struct shard_state *state, const void *bytes, size_t size);

/* Returns whether the bytes have room for the stated number of keys. */
int shard_state_holds_keys(const struct shard_state *state);

/* Reads the next key, which does not end with a zero byte. Returns 1, or 0 if the bytes end before
** the key does. */
int shard_state_key(struct shard_state *state, const char **text, size_t *size);

/* Returns whether the rest of the bytes has exactly the size of the stated number of entries, if
** each entry has `numbers` integers. */
int shard_state_fits(const struct shard_state *state, size_t numbers);

/* shard_state_unit() reads the next unit and slot. shard_state_numbers() reads the next `count`
** integers. Before these calls shard_state_fits() must have returned true. shard_state_numbers()
** returns whether dp_partial() can have written each integer: its absolute value is at most
** LATTICE_SUM. */
struct identity shard_state_unit(struct shard_state *state, uint64_t *cell);
int shard_state_numbers(struct shard_state *state, int128 *numbers, size_t count);

/* ---- allowances of a series (series_allowances.c) -------------------------------------------- */

/* The book of a series: what each unit has counted so far, from period to period.
**
** A unit may count a norm of at most B (the reach) in all periods together. Its entry has the norm
** that it has counted, rounded up, so that nothing that happens to its rows between two periods can
** raise the sum above B. An entry never shrinks. The book knows a unit by the first 16 bytes of the
** SHA-256 of a secret and of the unit's identity, so that it has no names of units. The entry of a
** unit depends on this unit alone.
**
**   A1  All that a unit counts, from the first to the last period, has norms that add up to at most
**       B, whatever rows the unit has at each time. For averages the same holds for its rows and
**       `clip` rows, so that no value makes a unit count more often.
**   A2  In a period, the whole vector of a unit counts as long as it fits. Otherwise clip_block()
**       scales it down to what is left. */

#define ALLOWANCE_SECRET 32 /* bytes of the secret */
#define ALLOWANCE_BYTES  24 /* bytes of an entry */

/* Facts about a unit, in the upper bits of its entry. */
enum { ALLOWANCE_COUNTED = 1, ALLOWANCE_CLIPPED = 2 };

struct allowances;

/* Makes an empty book. Returns null if memory runs out. */
struct allowances *allowances_open(const unsigned char secret[ALLOWANCE_SECRET], int64_t reach);
void allowances_close(struct allowances *book);

/* Adds entries that allowances_bytes() has returned. Returns 1, 0 if they cannot come from it, or
** -1 if memory runs out. */
int allowances_load(struct allowances *book, const unsigned char *bytes, size_t size);

size_t allowances_count(const struct allowances *book);

/* Returns the bytes of the entries from number `first` on. They follow each other in memory. */
const unsigned char *allowances_bytes(const struct allowances *book, size_t first);

/* Clips the vector of a unit in one period to what is left of its allowance, and spends it. The
** vector has `cells` times shape->components values. Sets *first to the facts that are new in this
** period. Returns 1, or 0 if memory runs out. */
int allowances_spend(struct allowances *book, const struct layout *shape, struct identity unit,
                     int128 *values, size_t cells, int *first);

#endif
