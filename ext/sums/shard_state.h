/* shard_state.h: writes the exact sums of one shard (a part of the data) as bytes, and reads such
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
#ifndef DIFFUSE_SUMS_SHARD_STATE_H
#define DIFFUSE_SUMS_SHARD_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "noise/lattice.h"
#include "sums/identity.h"

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

#endif
