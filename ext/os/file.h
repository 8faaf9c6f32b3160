/*
** file.h: files and their names, as UTF-8.
**
** These functions never open an existing file to read or write it. On POSIX systems, closing it
** would drop the locks that this process holds on it.
*/
#ifndef DIFFUSE_OS_FILE_H
#define DIFFUSE_OS_FILE_H

/* SQLite's own VFS of the operating system. */
#if defined(_WIN32)
#define FILE_VFS "win32"
#else
#define FILE_VFS "unix"
#endif

/* Whether a file that SQLite has open can be moved or deleted. */
#if defined(_WIN32)
#define FILE_CAN_MOVE 0
#else
#define FILE_CAN_MOVE 1
#endif

/* The last part of a path, after the folder and its separator. */
const char *path_name(const char *path);

int path_is_absolute(const char *path);

/* Whether these two names in one folder may mean the same file. */
int path_names_match(const char *a, const char *b);

/* Whether a file or folder of this name exists, after following links. */
int file_exists(const char *path);

/* Whether a regular file of this name exists and is not empty. */
int file_has_content(const char *path);

/* Whether both names mean the same existing file or folder. */
int file_same(const char *a, const char *b);

enum creation { FILE_REFUSED, FILE_DANGLES, FILE_EXISTS, FILE_CREATED };

/*
** Creates an empty file with the permissions and the owner of `model`, never with more permissions.
** Without a model only the owner can use it. If an empty file exists already, the function removes
** surplus permissions from it. It does not follow a dangling symbolic link (FILE_DANGLES). On
** Windows the file gets the access list of `model` and belongs to the user who creates it.
*/
enum creation file_create(const char *path, const char *model);

void file_delete(const char *path);

#endif
