/*
** check.h: the smallest harness that can fail. Each test is a void function registered in main()
** with RUN(); it prints one TAP line ("ok - name" or "not ok - name"), and every failed check a
** line with its place and values. The exit status is the number of failed tests (at most 99).
*/
#ifndef CHECK_H
#define CHECK_H

#include <math.h>
#include <stdio.h>

static int check_failures; /* failed checks inside the running test */
static int check_failed;   /* failed tests */

#define CHECK(condition, ...)                                                                      \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      check_failures++;                                                                            \
      printf("# %s:%d: %s: ", __FILE__, __LINE__, #condition);                                     \
      printf(__VA_ARGS__);                                                                         \
      printf("\n");                                                                                \
    }                                                                                              \
  } while (0)

/* Relative closeness, exact where the wanted value is 0 or infinite. */
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
