/* check.h: the test harness. Each test is a void function that main() calls with RUN(). RUN()
** prints one TAP line, "ok - name" or "not ok - name". Every failed check prints a line with its
** place and values. The exit status is the number of failed tests, at most 99. */
#ifndef CHECK_H
#define CHECK_H

#include <math.h>
#include <stdio.h>

static int check_failures; /* number of failed checks in the running test */
static int check_failed;   /* number of failed tests */

#define CHECK(condition, ...)                                                                      \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      check_failures++;                                                                            \
      printf("# %s:%d: %s: ", __FILE__, __LINE__, #condition);                                     \
      printf(__VA_ARGS__);                                                                         \
      printf("\n");                                                                                \
    }                                                                                              \
  } while (0)

/* Checks the relative error of `got`. If `want` is 0 or infinite, `got` must be equal to `want`. */
#define CHECK_CLOSE(got, want, tolerance)                                                          \
  do {                                                                                             \
    double check_g = (got), check_w = (want);                                                      \
    CHECK(check_g == check_w || fabs(check_g - check_w) <= (tolerance)*fabs(check_w),              \
          "got %.17g, want %.17g (relative %.2g)", check_g, check_w,                               \
          fabs(check_g / check_w - 1.0));                                                          \
  } while (0)

#define RUN(test)                                                                                  \
  do {                                                                                             \
    check_failures = 0;                                                                            \
    test();                                                                                        \
    check_failed += check_failures > 0;                                                            \
    printf("%s - %s\n", check_failures ? "not ok" : "ok", #test);                                  \
    fflush(stdout);                                                                                \
  } while (0)

#define FINISH() return check_failed > 99 ? 99 : check_failed

#endif
