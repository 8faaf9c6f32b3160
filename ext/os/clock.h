/* clock.h: time that passes, whatever is done to the system's clock. */
#ifndef DIFFUSE_OS_CLOCK_H
#define DIFFUSE_OS_CLOCK_H

#include <stdint.h>

/* Milliseconds since some moment. They never go backwards. */
int64_t clock_milliseconds(void);

/* Waits about so long. A signal may end it earlier. */
void clock_sleep(unsigned microseconds);

#endif
