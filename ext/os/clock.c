/* clock.c: see clock.h. Tests: tests/attacks/test_clock.py */
#include "os/clock.h"

#if defined(_WIN32)

#include <windows.h>

int64_t clock_milliseconds(void) {
  return (int64_t)GetTickCount64();
}

/* Sleep() of Windows takes whole milliseconds, so this function rounds up. */
void clock_sleep(unsigned microseconds) {
  Sleep((microseconds + 999) / 1000);
}

#else

#include <time.h>

int64_t clock_milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void clock_sleep(unsigned microseconds) {
  struct timespec time = {(time_t)(microseconds / 1000000), (long)(microseconds % 1000000) * 1000};
  nanosleep(&time, 0);
}

#endif
