/*
** lock_file.h: locks between processes. Each lock is a file of its own. The lock belongs to the
** open file, not to the process.
**
** The lock file is empty and exists only while the lock is held. Only one process can hold the lock
** of a given name. If a killed process leaves its lock file behind, the next process that takes the
** lock uses this file and later deletes it.
*/
#ifndef DIFFUSE_OS_LOCK_FILE_H
#define DIFFUSE_OS_LOCK_FILE_H

#include <stdint.h>

#define LOCK_FILE_NONE ((intptr_t)-1)

enum lock_failure {
  LOCK_FORBIDDEN, /* the file cannot be created or opened */
  LOCK_NO_SPACE,
  LOCK_IS_FILE, /* a file that is not a lock file has that name */
  LOCK_IMPOSSIBLE
};

struct lock_error {
  enum lock_failure failure;
  /*
  ** 1: the lock file exists, but this process may not open it. Another process may have created the
  ** file a moment ago and may be about to set its permissions.
  */
  int is_there;
  char text[96]; /* the message of the operating system */
};

/*
** Tries once to take the lock. Returns 1 and sets *lock if this process now holds the lock, 0 if
** another process holds the lock, and -1 on error. The lock file gets the permissions of the file
** `model`.
*/
int lock_file_take(const char *name, const char *model, intptr_t *lock, struct lock_error *error);

/*
** lock_file_drop() releases the lock. After a fork(), a child calls lock_file_forget() instead, so
** that the parent keeps the lock.
*/
void lock_file_drop(intptr_t lock, const char *name);
void lock_file_forget(intptr_t lock);

#endif
