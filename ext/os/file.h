/* file.h: files and locks between processes. All names of files are in UTF-8. The functions named
** file_ never open an existing file to read or write it: on POSIX systems, a process that closes a
** file loses all its locks on that file, even those that SQLite has taken. */
#ifndef DIFFUSE_OS_FILE_H
#define DIFFUSE_OS_FILE_H

#include <stdint.h>

/* The name of the VFS that SQLite itself provides for the operating system. */
#if defined(_WIN32)
#define FILE_VFS "win32"
#else
#define FILE_VFS "unix"
#endif

/* 1 if the operating system lets a file be moved or deleted while SQLite has the file open. */
#if defined(_WIN32)
#define FILE_CAN_MOVE 0
#else
#define FILE_CAN_MOVE 1
#endif

/* Returns the last part of a path, after the folder and its separator. */
const char *path_name(const char *path);

int path_is_absolute(const char *path);

/* Returns whether two names in one folder may be names of the same file. */
int path_names_match(const char *a, const char *b);

/* Returns whether a file or folder of this name exists, after following links. */
int file_exists(const char *path);

/* Returns whether a regular file of this name exists and is not empty. */
int file_has_content(const char *path);

/* Returns whether both names mean the same existing file or folder. */
int file_same(const char *a, const char *b);

enum creation { FILE_REFUSED, FILE_DANGLES, FILE_EXISTS, FILE_CREATED };

/* Creates an empty file with the permissions and the owner of the file `model`, and never more
** permissions; without a model, only the owner can use it. If `path` is an empty file already,
** takes away those of its permissions that the model does not have. If it is a dangling symbolic
** link, creates nothing and returns FILE_DANGLES. On Windows an existing file never changes, and a
** new file gets the access list of `model` and belongs to the user who creates it. */
enum creation file_create(const char *path, const char *model);

/* Gives the finished file `part` the name `path` in the same folder instead, and syncs the folder.
** Returns FILE_EXISTS and changes nothing if anything has this name already, also a dangling
** link. */
enum creation file_publish(const char *part, const char *path);

void file_delete(const char *path);

/* ---- locks between processes ----------------------------------------------------------------- */

/* Each lock is an empty file of its own that exists only while the lock is held. It belongs to the
** open file, not to the process, and only one process can hold the lock of a given name. If a
** killed process leaves its lock file behind, the next one that takes the lock uses and later
** deletes it. */
#define LOCK_FILE_NONE ((intptr_t)-1)

enum lock_failure {
  LOCK_FORBIDDEN, /* the file cannot be created or opened */
  LOCK_NO_SPACE,
  LOCK_IS_FILE, /* a file that is not a lock file has that name */
  LOCK_IMPOSSIBLE
};

struct lock_error {
  enum lock_failure failure;
  /* 1: the lock file exists, but this process may not open it: its creator may be about to set its
  ** permissions. */
  int is_there;
  char text[96]; /* the message of the operating system */
};

/* Tries once to take the lock, whose file gets the permissions of the file `model`. Returns 1 and
** sets *lock, or 0 if another process holds the lock, or -1 on error. */
int lock_file_take(const char *name, const char *model, intptr_t *lock, struct lock_error *error);

/* Release the lock; after a fork(), a child forgets it instead, so that the parent keeps it. */
void lock_file_drop(intptr_t lock, const char *name);
void lock_file_forget(intptr_t lock);

#endif
