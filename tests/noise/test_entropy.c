/* test_entropy.c: tests entropy.c. The tests check how the code handles the system's generator
** (short reads, signals, ends of the buffer, forks). They do not check the quality of the
** generator. The one statistical test raises a false alarm with probability 1e-10 and detects any
** byte value that is 30% too frequent. */
#include <gsl/gsl_cdf.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "noise/noise.h"

/* Linux returns fewer than 2^25 bytes for one request, so this number of bytes needs a second
** request. */
#define BEYOND_ONE_REQUEST (((size_t)1 << 25) + 1)

static int all_equal(const unsigned char *bytes, size_t count, unsigned char value) {
  for (size_t i = 0; i < count; i++) {
    if (bytes[i] != value) return 0;
  }
  return 1;
}

/* If fills are correct, the probability that the first byte of the buffer stays unchanged in all 16
** fills is 2^-128. The same holds for the last byte. */
static void fill_writes_exactly_what_was_asked(void) {
  const size_t counts[] = {0, 1, 2, 7, 255, 256, 257, 512, 1000, 4096};
  unsigned char bytes[4096 + 2];
  for (int i = 0; i < 10; i++) {
    size_t count = counts[i];
    int first = 0, last = 0;
    for (int fill = 0; fill < 16; fill++) {
      memset(bytes, 0xa5, sizeof bytes);
      CHECK(entropy_fill(bytes + 1, count) == 1, "count %zu", count);
      CHECK(bytes[0] == 0xa5, "byte before, count %zu", count);
      CHECK(all_equal(bytes + 1 + count, sizeof bytes - 1 - count, 0xa5), "after %zu", count);
      first |= bytes[1] ^ 0xa5;
      last |= bytes[count] ^ 0xa5;
    }
    CHECK(count == 0 || (first && last), "an end was not filled, count %zu", count);
  }
}

/* A chi-square test of 2^20 bytes in 256 cells. A false alarm has probability 1e-10. */
static void fill_is_uniform_over_bytes(void) {
  static unsigned char bytes[1 << 20];
  long cells[256] = {0};
  CHECK(entropy_fill(bytes, sizeof bytes) == 1, "no bytes");
  for (size_t i = 0; i < sizeof bytes; i++) cells[bytes[i]]++;
  double expected = (double)sizeof bytes / 256, chi2 = 0;
  for (int i = 0; i < 256; i++) {
    chi2 += ((double)cells[i] - expected) * ((double)cells[i] - expected) / expected;
  }
  CHECK(gsl_cdf_chisq_Q(chi2, 255) > 1e-10, "chi-square %g on 255", chi2);
}

static volatile sig_atomic_t alarms;

static void on_alarm(int number) {
  (void)number;
  alarms = alarms + 1;
}

/* The kernel must split this request. A signal arrives every half millisecond, so the kernel may
** cut the request short anywhere. The test detects 32 consecutive zero bytes, which a correct fill
** leaves with probability 2^-231. */
static void fill_continues_after_short_reads_and_signals(void) {
  unsigned char *bytes = calloc(1, BEYOND_ONE_REQUEST);
  struct sigaction action = {.sa_handler = on_alarm}, before;
  struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
  sigaction(SIGALRM, &action, &before);
  setitimer(ITIMER_REAL, &often, NULL);
  int result = entropy_fill(bytes, BEYOND_ONE_REQUEST);
  setitimer(ITIMER_REAL, &never, NULL);
  sigaction(SIGALRM, &before, NULL);
  CHECK(result == 1, "gave up");
  CHECK(alarms > 0, "the test sent no signal");
  size_t run = 0, longest = 0;
  for (size_t i = 0; i < BEYOND_ONE_REQUEST; i++) {
    run = bytes[i] ? 0 : run + 1;
    if (run > longest) longest = run;
  }
  CHECK(longest < 32, "%zu bytes in a row were not filled", longest);
  free(bytes);
}

/* Parent and child request bytes after the fork. The bytes are equal by chance with probability
** 2^-256. */
static void fork_shares_nothing(void) {
  unsigned char parent[32], child[32];
  int ends[2];
  /* If the code had a cache of random bytes, this request would fill the cache. */
  CHECK(entropy_fill(parent, sizeof parent) == 1, "no bytes");
  if (pipe(ends) != 0) {
    CHECK(0, "no pipe");
    return;
  }
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    int filled = entropy_fill(child, sizeof child);
    _exit(!filled || write(ends[1], child, sizeof child) != (ssize_t)sizeof child);
  }
  int status = -1;
  CHECK(entropy_fill(parent, sizeof parent) == 1, "no bytes in the parent");
  CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "the child failed");
  if (status == 0) {
    CHECK(read(ends[0], child, sizeof child) == (ssize_t)sizeof child, "short pipe");
    CHECK(memcmp(parent, child, sizeof parent) != 0, "the same bytes in parent and child");
  }
  close(ends[0]);
  close(ends[1]);
}

static void wipe_clears_exactly_what_was_asked(void) {
  unsigned char bytes[300];
  for (size_t count = 0; count <= 298; count++) {
    memset(bytes, 0xa5, sizeof bytes);
    entropy_wipe(bytes + 1, count);
    CHECK(bytes[0] == 0xa5, "byte before, count %zu", count);
    CHECK(all_equal(bytes + 1, count, 0), "not wiped, count %zu", count);
    CHECK(all_equal(bytes + 1 + count, sizeof bytes - 1 - count, 0xa5), "after %zu", count);
  }
}

int main(void) {
  RUN(fill_writes_exactly_what_was_asked);
  RUN(fill_is_uniform_over_bytes);
  RUN(fill_continues_after_short_reads_and_signals);
  RUN(fork_shares_nothing);
  RUN(wipe_clears_exactly_what_was_asked);
  FINISH();
}
