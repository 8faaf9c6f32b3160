/*
** file.h: works with files. All names of files are in UTF-8.
**
** These functions never open an existing file to read or write it. On POSIX systems, a process that
** closes a file loses all its locks on that file, even those that SQLite has taken.
*/
#ifndef DIFFUSE_OS_FILE_H
#define DIFFUSE_OS_FILE_H

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

/*
** Creates an empty file with the permissions and the owner of the file `model`. The new file never
** gets more permissions than the model. If `model` is null, only the owner can use the new file. If
** `path` is an empty file already, the function takes away those of its permissions that the model
** does not have. If `path` is a dangling symbolic link, the function creates nothing and returns
** FILE_DANGLES. On Windows the function never changes an existing file, and a new file gets the
** access list of `model` and belongs to the user who creates the file.
*/
enum creation file_create(const char *path, const char *model);

void file_delete(const char *path);

#endif
