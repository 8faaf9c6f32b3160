/*
** lock_file.h: a lock that is a file of its own and belongs to one open file, not to the process.
**
** The file exists only while the lock is held, and has no content. Only one process can hold the
** lock of a name. If a killed process leaves its file behind, the next process uses and deletes it.
*/
#ifndef DIFFUSE_OS_LOCK_FILE_H
#define DIFFUSE_OS_LOCK_FILE_H

#include <stdint.h>

#define LOCK_FILE_NONE ((intptr_t)-1)

enum lock_failure {
  LOCK_FORBIDDEN, /* the file cannot be created or opened */
  LOCK_NO_SPACE,
  LOCK_IS_FILE, /* another kind of file has that name */
  LOCK_IMPOSSIBLE
};

struct lock_error {
  enum lock_failure failure;
  int is_there;  /* LOCK_FORBIDDEN: the file exists, and may be new */
  char text[96]; /* the message of the operating system */
};

/*
** Tries once to take the lock. Returns 1 with *lock set, 0 if another process has it, -1 on error.
** The file gets the permissions of the file `model`.
*/
int lock_file_take(const char *name, const char *model, intptr_t *lock, struct lock_error *error);

/* lock_file_drop() releases the lock. After a fork(), a child calls lock_file_forget() instead. */
void lock_file_drop(intptr_t lock, const char *name);
void lock_file_forget(intptr_t lock);

#endif
