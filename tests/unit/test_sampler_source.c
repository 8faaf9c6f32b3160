/*
** test_sampler_source.c: the sampler over a source of random bytes that the test controls. The two
** functions of entropy.h defined here take the place of entropy.c at link time.
**
** The source is SplitMix64 from a chosen seed and can be told to fail at its n-th request. It
** remembers where the bytes went, and entropy_wipe() here notes whether they were wiped again.
*/
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "noise/entropy.h"
#include "noise/sampler.h"

#define VARIANCE ((uint64_t)1 << 41)
#define NEVER    (-1L)

static struct {
  uint64_t state;      /* of SplitMix64 */
  long fail_at;        /* number of the first request that fails, from 0; or NEVER */
  long requests;       /* requests so far */
  long after_failure;  /* requests that came after one had failed */
  unsigned char *held; /* the buffer that was filled last and has not been wiped since */
  size_t held_count;   /* its length */
  int moved;           /* a second buffer was filled while the first one was held */
} source;

static void source_start(uint64_t seed, long fail_at) {
  memset(&source, 0, sizeof source);
  source.state = seed;
  source.fail_at = fail_at;
}

static uint64_t source_word(void) {
  uint64_t z = source.state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* A failing request leaves rubbish behind, as a short read would. */
int entropy_fill(void *bytes, size_t count) {
  unsigned char *next = bytes;
  long request = source.requests++;
  for (size_t i = 0; i < count; i++) next[i] = (unsigned char)source_word();
  source.moved |= source.held && source.held != next;
  source.held = next;
  source.held_count = count;
  if (source.fail_at == NEVER || request < source.fail_at) return 0;
  source.after_failure += request > source.fail_at;
  return -1;
}

void entropy_wipe(void *bytes, size_t count) {
  unsigned char *first = bytes;
  memset(first, 0, count);
  if (first <= source.held && source.held + source.held_count <= first + count) source.held = NULL;
}

static const size_t counts[] = {1, 2, 31, 32, 33, 1000};
enum { COUNTS = sizeof counts / sizeof counts[0], MOST = 1000 };

/* Requests that a call makes when none fails. */
static long requests_of(size_t count) {
  int64_t noise[MOST];
  source_start(1, NEVER);
  CHECK(sampler_gaussian(VARIANCE, noise, count) == 0, "count %zu", count);
  return source.requests;
}

static void failure_gives_zeros_and_is_not_asked_again(void) {
  for (int i = 0; i < COUNTS; i++) {
    long requests = requests_of(counts[i]);
    CHECK(requests >= 1, "no request for %zu", counts[i]);
    for (long fail_at = 0; fail_at < requests; fail_at++) {
      int64_t noise[MOST + 1];
      memset(noise, 0x5a, sizeof noise);
      int64_t canary = noise[MOST];
      source_start(1, fail_at);
      int result = sampler_gaussian(VARIANCE, noise, counts[i]);
      CHECK(result == -1, "count %zu, request %ld: %d", counts[i], fail_at, result);
      for (size_t j = 0; j < counts[i]; j++) CHECK(noise[j] == 0, "noise[%zu] kept", j);
      CHECK(noise[counts[i]] == canary, "wrote past %zu", counts[i]);
      CHECK(source.after_failure == 0, "asked again after request %ld", fail_at);
      CHECK(source.held == NULL, "random bytes left behind by request %ld", fail_at);
    }
  }
}

/* Every number of words that can be left when the source fails, so every loop is cut somewhere. */
static void failure_ends_every_loop(void) {
  const uint64_t variances[] = {1, 2, 3, 100, VARIANCE, SAMPLER_MAX_VARIANCE - 1};
  static int64_t noise[MOST];
  for (uint64_t seed = 0; seed < 3000; seed++) {
    source_start(seed, (long)(seed % 4));
    int result = sampler_gaussian(variances[seed % 6], noise, MOST);
    CHECK(result == -1, "seed %d", (int)seed);
  }
}

static void success_wipes_its_bytes(void) {
  int64_t noise[MOST];
  for (int i = 0; i < COUNTS; i++) {
    source_start(2, NEVER);
    CHECK(sampler_gaussian(VARIANCE, noise, counts[i]) == 0, "count %zu", counts[i]);
    CHECK(source.requests > 0 && source.held == NULL, "bytes of %zu not wiped", counts[i]);
    CHECK(!source.moved, "bytes of %zu in two places", counts[i]);
  }
}

/* The result depends on the bytes of this call alone: nothing is carried over from another. */
static void no_state_survives_a_call(void) {
  int64_t first[MOST], second[MOST], other[7];
  source_start(3, NEVER);
  CHECK(sampler_gaussian(VARIANCE, first, MOST) == 0, "first");
  CHECK(sampler_gaussian(5, other, 7) == 0, "between");
  source_start(3, NEVER);
  CHECK(sampler_gaussian(VARIANCE, second, MOST) == 0, "second");
  CHECK(memcmp(first, second, sizeof first) == 0, "the same bytes gave other noise");
  source_start(4, NEVER);
  CHECK(sampler_gaussian(VARIANCE, second, MOST) == 0, "third");
  CHECK(memcmp(first, second, sizeof first) != 0, "other bytes gave the same noise");
}

/* A short vector costs a batch of 32 draws a coordinate, a long one a single draw. */
static void short_vectors_are_picked_from_batches(void) {
  long of_single = requests_of(1), of_short = requests_of(31), of_long = requests_of(1000);
  double batch = (double)of_short / 31, plain = (double)of_long / 1000;
  CHECK(batch > 25 * plain && batch < 40 * plain, "%g requests and %g", batch, plain);
  CHECK(of_single >= 2, "%ld requests for a single number", of_single);
}

static void no_coordinates_need_no_bytes(void) {
  source_start(5, 0);
  CHECK(sampler_gaussian(VARIANCE, NULL, 0) == 0, "count 0");
  CHECK(source.requests == 0, "asked for bytes");
}

static void variances_out_of_range_are_refused(void) {
  const uint64_t refused[] = {0, SAMPLER_MAX_VARIANCE, SAMPLER_MAX_VARIANCE + 1, UINT64_MAX};
  const uint64_t allowed[] = {1, 2, SAMPLER_MAX_VARIANCE - 1};
  for (int i = 0; i < 4; i++) {
    int64_t noise[2] = {1, 1};
    source_start(6, NEVER);
    CHECK(sampler_gaussian(refused[i], noise, 2) == -1, "case %d", i);
    CHECK(noise[0] == 0 && noise[1] == 0, "case %d", i);
  }
  for (int i = 0; i < 3; i++) {
    int64_t noise[2];
    source_start(6, NEVER);
    CHECK(sampler_gaussian(allowed[i], noise, 2) == 0, "case %d", i);
  }
}

int main(void) {
  alarm(600); /* a loop that a failure does not end is a failure, not a hang */
  RUN(failure_gives_zeros_and_is_not_asked_again);
  RUN(failure_ends_every_loop);
  RUN(success_wipes_its_bytes);
  RUN(no_state_survives_a_call);
  RUN(short_vectors_are_picked_from_batches);
  RUN(no_coordinates_need_no_bytes);
  RUN(variances_out_of_range_are_refused);
  FINISH();
}
