/* windows.h: what the Windows variants of this folder share. */
#ifndef DIFFUSE_OS_WINDOWS_H
#define DIFFUSE_OS_WINDOWS_H

#if defined(_WIN32)

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

/* A path in UTF-16, to be freed by free(); null when out of memory or not UTF-8. */
wchar_t *windows_path(const char *utf8);

/*
** The access list of a file, for one that is about to be created; to be freed by free(). Null where
** there is none to be had: a new file then has that of its folder.
*/
SECURITY_DESCRIPTOR *windows_access(const wchar_t *path);

#endif

#endif
