/* clock.h: a clock that does not jump when somebody changes the system time. */
#ifndef DIFFUSE_OS_CLOCK_H
#define DIFFUSE_OS_CLOCK_H

#include <stdint.h>

/* Returns the number of milliseconds since an arbitrary moment. The number never decreases. */
int64_t clock_milliseconds(void);

/* Waits for about this number of microseconds. A signal may end the wait earlier. */
void clock_sleep(unsigned microseconds);

#endif
