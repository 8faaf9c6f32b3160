/* windows.h: helpers that the Windows variants of this folder share. */
#ifndef DIFFUSE_OS_WINDOWS_H
#define DIFFUSE_OS_WINDOWS_H

#if defined(_WIN32)

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

/* A path in UTF-16 (free it with free()). Null when out of memory or if the path is not UTF-8. */
wchar_t *windows_path(const char *utf8);

/*
** The access list of a file, to be used for a new file (free it with free()). Null if it cannot be
** read; a new file then gets the access list of its folder.
*/
SECURITY_DESCRIPTOR *windows_access(const wchar_t *path);

#endif

#endif
