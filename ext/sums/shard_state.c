/* shard_state.c: see sums.h. Tests: tests/functions/test_partial.py */
#include "sums/sums.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "noise/noise.h"

#define VERSION 3
#define HEADER  48
#define UNIT    24 /* bytes of a unit and a slot */
#define NUMBER  16

static const char magic[8] = {'d', 'p', '-', 's', 't', 'a', 't', 'e'};

/* ---- writing --------------------------------------------------------------------------------- */

static void put(struct shard_state_writer *writer, const void *bytes, size_t size) {
  if (!writer->failed && size > writer->room - writer->size) {
    size_t room = writer->room * 2 + size;
    unsigned char *grown = realloc(writer->bytes, room);
    if (grown) writer->bytes = grown;
    if (grown) writer->room = room;
    writer->failed = !grown;
  }
  if (writer->failed || !size) return;
  memcpy(writer->bytes + writer->size, bytes, size);
  writer->size += size;
}

/* Writes an integer of `size` bytes. */
static void put_integer(struct shard_state_writer *writer, uint128 x, int size) {
  unsigned char bytes[NUMBER];
  for (int i = 0; i < size; i++) bytes[i] = (unsigned char)(x >> 8 * i);
  put(writer, bytes, (size_t)size);
}

void shard_state_start(struct shard_state_writer *writer, const struct shard_label *label,
                       uint32_t entry, uint32_t keys, uint64_t entries) {
  unsigned char serial[STATE_SERIAL];
  *writer = (struct shard_state_writer){0};
  writer->failed = !entropy_fill(serial, sizeof serial);
  if (writer->failed) return;
  put(writer, magic, sizeof magic);
  put_integer(writer, VERSION, 4);
  put_integer(writer, strlen(label->parameters), 4);
  put_integer(writer, keys, 4);
  put_integer(writer, entry, 4);
  put_integer(writer, entries, 8);
  put(writer, serial, sizeof serial);
  put(writer, label->parameters, strlen(label->parameters));
  shard_state_put_key(writer, label->shard ? label->shard : "");
}

void shard_state_put_key(struct shard_state_writer *writer, const char *text) {
  put_integer(writer, strlen(text), 4);
  put(writer, text, strlen(text));
}

void shard_state_put_unit(struct shard_state_writer *writer, struct identity unit, uint64_t cell) {
  put_integer(writer, unit.kind, 8);
  put_integer(writer, unit.low, 8);
  put_integer(writer, cell, 8);
}

void shard_state_put_number(struct shard_state_writer *writer, int128 number) {
  put_integer(writer, (uint128)number, NUMBER);
}

int shard_state_end(struct shard_state_writer *writer) {
  uint8_t digest[STATE_DIGEST];
  if (!writer->failed) crypto_hash_sha256(digest, writer->bytes, writer->size);
  if (!writer->failed) put(writer, digest, sizeof digest);
  return !writer->failed;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Reads the next integer of `size` bytes. The caller has checked that at least `size` bytes are
** left. */
static uint128 get_integer(struct shard_state *state, int size) {
  uint128 x = 0;
  for (int i = size; i-- > 0;) x = x << 8 | state->at[i];
  state->at += size;
  return x;
}

static size_t left(const struct shard_state *state) {
  return (size_t)(state->end - state->at);
}

const char *shard_state_open(struct shard_state *state, const void *bytes, size_t size) {
  uint8_t digest[STATE_DIGEST];
  *state = (struct shard_state){.at = bytes};
  if (size < sizeof magic || memcmp(bytes, magic, sizeof magic) != 0)
    return "is not one of dp_partial()";
  if (size < HEADER + sizeof digest) return "is cut short";
  state->at += sizeof magic;
  if (get_integer(state, 4) != VERSION) return "is of a version that this one does not read";
  state->end = (const unsigned char *)bytes + size - sizeof digest;
  crypto_hash_sha256(digest, bytes, size - sizeof digest);
  if (memcmp(state->end, digest, sizeof digest) != 0) return "is damaged or cut short";
  state->parameters_size = (size_t)get_integer(state, 4);
  state->keys = (uint32_t)get_integer(state, 4);
  state->entry = (uint32_t)get_integer(state, 4);
  state->entries = (uint64_t)get_integer(state, 8);
  state->at += STATE_SERIAL;
  if (state->parameters_size > left(state)) return "is malformed";
  state->parameters = (const char *)state->at;
  state->at += state->parameters_size;
  state->digest = state->end;
  return shard_state_key(state, &state->shard, &state->shard_size) ? 0 : "is malformed";
}

int shard_state_holds_keys(const struct shard_state *state) {
  return state->keys <= left(state) / 4;
}

int shard_state_key(struct shard_state *state, const char **text, size_t *size) {
  if (left(state) < 4) return 0;
  *size = (size_t)get_integer(state, 4);
  if (*size > left(state)) return 0;
  *text = (const char *)state->at;
  state->at += *size;
  return 1;
}

int shard_state_fits(const struct shard_state *state, size_t numbers) {
  size_t size = numbers * NUMBER + (state->entry == STATE_RECORDS ? UNIT : 0);
  return left(state) / size == state->entries && left(state) % size == 0;
}

struct identity shard_state_unit(struct shard_state *state, uint64_t *cell) {
  struct identity unit;
  unit.kind = (uint64_t)get_integer(state, 8);
  unit.low = (uint64_t)get_integer(state, 8);
  *cell = (uint64_t)get_integer(state, 8);
  return unit;
}

int shard_state_numbers(struct shard_state *state, int128 *numbers, size_t count) {
  int sound = 1;
  for (size_t i = 0; i < count; i++) {
    numbers[i] = (int128)get_integer(state, NUMBER);
    sound &= lattice_magnitude(numbers[i]) <= LATTICE_SUM;
  }
  return sound;
}
