/* merged_shards.c: see merged_shards.h. Tests: tests/functions/test_shards.py */
#include "functions/merged_shards.h"

#include <stdlib.h>
#include <string.h>

#include "base/sql_text.h"

SQLITE_EXTENSION_INIT3

struct merged_state {
  unsigned char digest[STATE_DIGEST];
  char *shard; /* empty: the state names none; null: an empty place of the table */
};

void merged_shards_close(struct merged_shards *shards) {
  for (size_t i = 0; i < shards->room; i++) free(shards->places[i].shard);
  free(shards->places);
  *shards = (struct merged_shards){0};
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Returns the place of a state, or the empty place where it belongs. */
static struct merged_state *place_of(const struct merged_shards *shards,
                                     const unsigned char *digest) {
  uint64_t hash;
  memcpy(&hash, digest, sizeof hash);
  for (size_t i = (size_t)hash;; i++) {
    struct merged_state *place = &shards->places[i & (shards->room - 1)];
    if (!place->shard || memcmp(place->digest, digest, STATE_DIGEST) == 0) return place;
  }
}

/* At most half of the places are in use. */
static int grow(struct merged_shards *shards) {
  if (shards->count * 2 < shards->room) return 1;
  struct merged_shards grown = {.room = shards->room ? shards->room * 2 : 64,
                                .count = shards->count};
  grown.places = calloc(grown.room, sizeof *grown.places);
  if (!grown.places) return 0;
  for (size_t i = 0; i < shards->room; i++)
    if (shards->places[i].shard) *place_of(&grown, shards->places[i].digest) = shards->places[i];
  free(shards->places);
  *shards = grown;
  return 1;
}

int merged_shards_add(struct merged_shards *shards, const struct shard_state *state, int *is_new,
                      struct error *error) {
  if (!grow(shards)) return error_set_memory(error);
  struct merged_state *place = place_of(shards, state->digest);
  *is_new = !place->shard;
  if (!*is_new) return 1;
  char *shard = malloc(state->shard_size + 1);
  if (!shard) return error_set_memory(error);
  memcpy(shard, state->shard, state->shard_size);
  shard[state->shard_size] = 0;
  memcpy(place->digest, state->digest, STATE_DIGEST);
  place->shard = shard;
  shards->count++;
  int plain = strlen(shard) == state->shard_size ? key_is_plain(shard) : 0;
  if (plain < 0) return error_set_memory(error);
  return plain || error_set(error, "the state is malformed");
}

/* ---- the shards ------------------------------------------------------------------------------ */

static int by_text(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names of all states, sorted. They still belong to the table. The caller frees the array. */
static char **sorted_names(const struct merged_shards *shards) {
  char **names = malloc(sizeof *names * (shards->count + 1));
  size_t count = 0;
  for (size_t i = 0; names && i < shards->room; i++)
    if (shards->places[i].shard) names[count++] = shards->places[i].shard;
  if (names) qsort(names, count, sizeof *names, by_text);
  return names;
}

#define NAMES_SHOWN 20

/* Checks the number of shards. The names are sorted and different. */
static int check_number(char **names, size_t count, long long wanted, struct error *error) {
  if ((long long)count == wanted) return 1;
  sqlite3_str *list = sqlite3_str_new(0);
  for (size_t i = 0; i < count && i < NAMES_SHOWN; i++)
    sqlite3_str_appendf(list, "%s'%s'", i ? ", " : "", names[i]);
  if (count > NAMES_SHOWN) sqlite3_str_appendall(list, ", ...");
  char *text = sqlite3_str_finish(list);
  if (text)
    error_set(error, "the states are of %lld shards, not of %lld: %s (%s)", (long long)count,
              wanted, text,
              (long long)count < wanted
                  ? "merge the states of all shards, also of those without rows"
                  : "leave out the states of other data, or correct shards");
  sqlite3_free(text);
  return text ? 0 : error_set_memory(error);
}

/* Checks the names against a list. Both are sorted, and the names are different. */
static int check_list(char **names, size_t count, char **wanted, int wanted_count,
                      struct error *error) {
  size_t at = 0;
  for (int i = 0; i < wanted_count; i++) {
    if (i && strcmp(wanted[i - 1], wanted[i]) == 0)
      return error_set(error, "shards names '%s' twice (each shard once)", wanted[i]);
    int order = at < count ? strcmp(names[at], wanted[i]) : 1;
    if (order < 0) break;
    if (order > 0)
      return error_set(error,
                       "shard '%s' is missing (merge its state too, which exists without "
                       "rows also, or leave it out of shards)",
                       wanted[i]);
    at++;
  }
  return at == count || error_set(error,
                                  "shard '%s' is not one of shards (leave its state out, or "
                                  "add it to shards)",
                                  names[at]);
}

static int check_wanted(char **names, size_t count, const char *wanted, struct json *json) {
  if (*wanted != '[') return check_number(names, count, strtoll(wanted, 0, 10), json->error);
  int wanted_count;
  char **list = json_list(json, wanted, "shards must be texts", &wanted_count);
  if (!list) return 0;
  qsort(list, (size_t)wanted_count, sizeof *list, by_text);
  int right = check_list(names, count, list, wanted_count, json->error);
  json_list_free(list);
  return right;
}

int merged_shards_check(const struct merged_shards *shards, const char *wanted, struct json *json) {
  struct error *error = json->error;
  char **names = sorted_names(shards);
  int right = names || error_set_memory(error);
  for (size_t i = 1; right && i < shards->count; i++)
    if (*names[i] && strcmp(names[i - 1], names[i]) == 0)
      /* Advice: A task that is tried again makes a new state of its shard. Give the file of a state
         the name of its shard, so that the second one replaces the first. */
      right = error_set(error, "there are two different states of shard '%s' (merge one of them)",
                        names[i]);
  if (right && wanted && shards->count && !*names[0])
    right = error_set(error, "a state names no shard, so shards cannot be checked (make it with "
                             "\"shard\":\"north\", the name of its shard)");
  if (right && wanted) right = check_wanted(names, shards->count, wanted, json);
  free(names);
  return right;
}
