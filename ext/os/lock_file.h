/*
** lock_file.h: a lock that is a file of its own and belongs to one open file, not to the process.
**
** The file is there while the lock is held only, and has no content. Two never have the lock of one
** name, and what a killed process leaves is used and deleted by the next.
*/
#ifndef DIFFUSE_OS_LOCK_FILE_H
#define DIFFUSE_OS_LOCK_FILE_H

#include <stdint.h>

#define LOCK_FILE_NONE ((intptr_t)-1)

enum lock_failure {
  LOCK_FORBIDDEN, /* the file cannot be created there, or not be opened */
  LOCK_NO_SPACE,
  LOCK_IS_FILE, /* somebody's file has that name */
  LOCK_IMPOSSIBLE
};

struct lock_error {
  enum lock_failure failure;
  int is_there;  /* LOCK_FORBIDDEN: the file exists, perhaps since a moment ago */
  char text[96]; /* what the operating system says */
};

/*
** One attempt. 1: *lock is held. 0: another has it. -1: an error. Others can open the file who can
** open the file `model`.
*/
int lock_file_take(const char *name, const char *model, intptr_t *lock, struct lock_error *error);

/* Gives back what lock_file_take() gave. After a fork(), the child only forgets it. */
void lock_file_drop(intptr_t lock, const char *name);
void lock_file_forget(intptr_t lock);

#endif
