/* windows.h: helpers that the Windows variants of this folder share. */
#ifndef DIFFUSE_OS_WINDOWS_H
#define DIFFUSE_OS_WINDOWS_H

#if defined(_WIN32)

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

/*
** Returns a path in UTF-16. The caller calls free(). Returns null if memory runs out or if the path
** is not valid UTF-8.
*/
wchar_t *windows_path(const char *utf8);

/*
** Returns the access list of a file, for use with a new file. The caller calls free(). Returns null
** if the access list cannot be read. The new file then gets the access list of its folder.
*/
SECURITY_DESCRIPTOR *windows_access(const wchar_t *path);

#endif

#endif
