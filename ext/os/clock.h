/* clock.h: a clock that changes of the system time do not affect. */
#ifndef DIFFUSE_OS_CLOCK_H
#define DIFFUSE_OS_CLOCK_H

#include <stdint.h>

/* Milliseconds since an arbitrary moment. The number never decreases. */
int64_t clock_milliseconds(void);

/* Waits for about this time. A signal may end the wait earlier. */
void clock_sleep(unsigned microseconds);

#endif
