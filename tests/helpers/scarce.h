/* scarce.h: makes memory allocations fail. A test includes this file before it includes the .c file
** under test. In that file, `scarce_left` further calls of malloc(), calloc(), realloc() and
** memory_table() succeed. All later calls fail, or only the next one if `scarce_once` is set. */
#ifndef TEST_SCARCE_H
#define TEST_SCARCE_H

#include <limits.h>
#include <stdlib.h>

#include "os/os.h"

static int scarce_left = INT_MAX, scarce_once;

static inline int scarce(void) {
  if (scarce_left == INT_MAX || scarce_left-- > 0) return 0;
  scarce_left = scarce_once ? INT_MAX : 0;
  return 1;
}

static inline void *scarce_calloc(size_t count, size_t size) {
  return scarce() ? 0 : calloc(count, size);
}

static inline void *scarce_realloc(void *memory, size_t size) {
  return scarce() ? 0 : realloc(memory, size);
}

static inline void *scarce_table(size_t size) {
  return scarce() ? 0 : memory_table(size);
}

#define malloc(size)          scarce_realloc(0, size)
#define calloc(count, size)   scarce_calloc(count, size)
#define realloc(memory, size) scarce_realloc(memory, size)
#define memory_table(size)    scarce_table(size)

#endif
