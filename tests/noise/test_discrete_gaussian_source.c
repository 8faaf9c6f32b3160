/* test_discrete_gaussian_source.c: tests the sampler with a source of random bytes that the test
** controls. The two functions of entropy.c defined here replace entropy.c at link time.
**
** The source is SplitMix64 from a chosen seed, and the test can make it fail. The source remembers
** where it wrote the bytes, and entropy_wipe() of this file records whether these bytes were
** wiped. */
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "noise/noise.h"
#include "splitmix.h"

#define VARIANCE ((uint64_t)1 << 41)

static struct {
  uint64_t state;      /* state of SplitMix64 */
  int fails;           /* 1: the source provides no bytes */
  long requests;       /* number of requests so far */
  unsigned char *held; /* the last buffer that was filled, if it has not been wiped since */
  size_t held_count;   /* length of this buffer */
} source;

static void source_start(uint64_t seed, int fails) {
  memset(&source, 0, sizeof source);
  source.state = seed;
  source.fails = fails;
}

/* A request that fails still writes some bytes, as a short read would. */
int entropy_fill(void *bytes, size_t count) {
  unsigned char *next = bytes;
  source.requests++;
  for (size_t i = 0; i < count; i++) next[i] = (unsigned char)splitmix(&source.state);
  source.held = next;
  source.held_count = count;
  return !source.fails;
}

void entropy_wipe(void *bytes, size_t count) {
  unsigned char *first = bytes;
  memset(first, 0, count);
  if (first <= source.held && source.held + source.held_count <= first + count) source.held = NULL;
}

static const size_t counts[] = {1, 2, 31, 32, 33, 1000};
enum { COUNTS = sizeof counts / sizeof counts[0], MOST = 1000 };

static void failure_gives_zeros(void) {
  for (int i = 0; i < COUNTS; i++) {
    int64_t noise[MOST + 1];
    memset(noise, 0x5a, sizeof noise);
    int64_t canary = noise[MOST];
    source_start(1, 1);
    int result = discrete_gaussian_draw(VARIANCE, noise, counts[i]);
    CHECK(result == 0, "count %zu: %d", counts[i], result);
    for (size_t j = 0; j < counts[i]; j++) CHECK(noise[j] == 0, "noise[%zu] kept", j);
    CHECK(noise[counts[i]] == canary, "wrote past %zu", counts[i]);
    CHECK(source.requests == 1, "asked again");
    CHECK(source.held == NULL, "what came with the failure is kept");
  }
}

/* One call of the sampler asks the system for one key. The call wipes this key and everything that
** was made from this key. */
static void success_wipes_its_bytes(void) {
  int64_t noise[MOST];
  for (int i = 0; i < COUNTS; i++) {
    source_start(2, 0);
    CHECK(discrete_gaussian_draw(VARIANCE, noise, counts[i]) == 1, "count %zu", counts[i]);
    CHECK(source.requests == 1, "%ld requests for %zu", source.requests, counts[i]);
    CHECK(source.held == NULL, "bytes of %zu not wiped", counts[i]);
  }
}

/* The result of a call depends only on the bytes that the source provides to this call. No state
** remains from an earlier call. */
static void no_state_survives_a_call(void) {
  int64_t first[MOST], second[MOST], other[7];
  source_start(3, 0);
  CHECK(discrete_gaussian_draw(VARIANCE, first, MOST) == 1, "first");
  CHECK(discrete_gaussian_draw(5, other, 7) == 1, "between");
  source_start(3, 0);
  CHECK(discrete_gaussian_draw(VARIANCE, second, MOST) == 1, "second");
  CHECK(memcmp(first, second, sizeof first) == 0, "the same bytes gave other noise");
  source_start(4, 0);
  CHECK(discrete_gaussian_draw(VARIANCE, second, MOST) == 1, "third");
  CHECK(memcmp(first, second, sizeof first) != 0, "other bytes gave the same noise");
}

static void no_coordinates_need_no_bytes(void) {
  source_start(5, 1);
  CHECK(discrete_gaussian_draw(VARIANCE, NULL, 0) == 1, "count 0");
  CHECK(source.requests == 0, "asked for bytes");
}

static void variances_out_of_range_are_refused(void) {
  const uint64_t refused[] = {0, DISCRETE_GAUSSIAN_MAX_VARIANCE, DISCRETE_GAUSSIAN_MAX_VARIANCE + 1,
                              UINT64_MAX};
  const uint64_t allowed[] = {1, 2, DISCRETE_GAUSSIAN_MAX_VARIANCE - 1};
  for (int i = 0; i < 4; i++) {
    int64_t noise[2] = {1, 1};
    source_start(6, 0);
    CHECK(discrete_gaussian_draw(refused[i], noise, 2) == 0, "case %d", i);
    CHECK(noise[0] == 0 && noise[1] == 0, "case %d", i);
  }
  for (int i = 0; i < 3; i++) {
    int64_t noise[2];
    source_start(6, 0);
    CHECK(discrete_gaussian_draw(allowed[i], noise, 2) == 1, "case %d", i);
  }
}

int main(void) {
  alarm(600); /* if a loop goes on forever after a failure, the alarm ends this program */
  RUN(failure_gives_zeros);
  RUN(success_wipes_its_bytes);
  RUN(no_state_survives_a_call);
  RUN(no_coordinates_need_no_bytes);
  RUN(variances_out_of_range_are_refused);
  FINISH();
}
