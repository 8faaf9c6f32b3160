/*
** file.h: files and their names, as UTF-8.
**
** Nothing here opens a file that exists to read or write it: on POSIX systems, closing it would
** drop the locks that this process holds on it.
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

/* The last part of a path: behind the folder and its separator. */
const char *path_name(const char *path);

int path_is_absolute(const char *path);

/* Whether files of these names in one folder may be one file. */
int path_names_match(const char *a, const char *b);

/* Whether the name leads to a file or folder. */
int file_exists(const char *path);

/* Whether there is a regular file with something in it. */
int file_has_content(const char *path);

/* Whether both names stand for one existing file or folder. */
int file_same(const char *a, const char *b);

enum creation { FILE_REFUSED, FILE_DANGLES, FILE_EXISTS, FILE_CREATED };

/*
** Creates an empty file with the permissions and the owner of another (null: for its owner alone),
** and never more. Takes permissions away from an empty file that is there already. Does not follow
** a symbolic link that leads nowhere (FILE_DANGLES). On Windows, a file has the access list of the
** other, and belongs to whoever creates it.
*/
enum creation file_create(const char *path, const char *model);

void file_delete(const char *path);

#endif
