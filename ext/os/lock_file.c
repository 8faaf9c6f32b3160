/* lock_file.c: see lock_file.h. Tests: tests/ledger/test_locks.py */
#include "os/lock_file.h"

#include <stdio.h>
#include <string.h>

#if defined(_WIN32)

#include <stdlib.h>

#include "os/windows.h"

/*
** The process that holds the lock has opened the lock file without sharing, so Windows lets nobody
** else open the file. The file is marked for deletion while it is open. Windows deletes the file
** when its only handle is closed, even if the process was killed.
*/

static int fail(struct lock_error *error, DWORD code) {
  error->failure = code == ERROR_ACCESS_DENIED || code == ERROR_WRITE_PROTECT ||
                           code == ERROR_PATH_NOT_FOUND || code == ERROR_FILE_NOT_FOUND
                       ? LOCK_FORBIDDEN
                   : code == ERROR_DISK_FULL || code == ERROR_HANDLE_DISK_FULL ? LOCK_NO_SPACE
                   : code == ERROR_FILE_EXISTS                                 ? LOCK_IS_FILE
                                                                               : LOCK_IMPOSSIBLE;
  error->is_there = 0;
  snprintf(error->text, sizeof error->text, "Windows error %lu", (unsigned long)code);
  return -1;
}

/* Returns whether Windows may have denied access because a file of that name is being deleted. */
static int is_going(const wchar_t *name) {
  return GetFileAttributesW(name) != INVALID_FILE_ATTRIBUTES ||
         GetLastError() == ERROR_ACCESS_DENIED;
}

static HANDLE open_alone(const wchar_t *name, const char *model) {
  wchar_t *of_model = windows_path(model);
  SECURITY_DESCRIPTOR *access = of_model ? windows_access(of_model) : 0;
  SECURITY_ATTRIBUTES security = {sizeof security, access, FALSE};
  HANDLE file = CreateFileW(name, GENERIC_READ | GENERIC_WRITE | DELETE, 0, access ? &security : 0,
                            OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL | FILE_FLAG_OPEN_REPARSE_POINT, 0);
  DWORD code = GetLastError();
  free(access);
  free(of_model);
  SetLastError(code);
  return file;
}

/*
** Returns whether a file can be a lock file. A file with content, a folder or a link belongs to
** somebody else, and diffuse must not delete it.
*/
static int is_lock(HANDLE file) {
  BY_HANDLE_FILE_INFORMATION about;
  return GetFileInformationByHandle(file, &about) &&
         !(about.dwFileAttributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT)) &&
         !about.nFileSizeLow && !about.nFileSizeHigh;
}

static int mark_for_deletion(HANDLE file) {
  FILE_DISPOSITION_INFO disposition = {TRUE};
  return SetFileInformationByHandle(file, FileDispositionInfo, &disposition, sizeof disposition);
}

int lock_file_take(const char *name, const char *model, intptr_t *lock, struct lock_error *error) {
  wchar_t *wide = windows_path(name);
  if (!wide) return fail(error, ERROR_INVALID_NAME);
  HANDLE file = open_alone(wide, model);
  DWORD code = GetLastError();
  int taken = 1;
  if (file == INVALID_HANDLE_VALUE) {
    int is_held =
        code == ERROR_SHARING_VIOLATION || (code == ERROR_ACCESS_DENIED && is_going(wide));
    taken = is_held ? 0 : fail(error, code);
  } else if (!is_lock(file)) {
    taken = fail(error, ERROR_FILE_EXISTS);
  } else if (!mark_for_deletion(file)) {
    taken = fail(error, GetLastError());
  }
  free(wide);
  if (taken == 1) {
    *lock = (intptr_t)file;
  } else if (file != INVALID_HANDLE_VALUE) {
    CloseHandle(file);
  }
  return taken;
}

void lock_file_drop(intptr_t lock, const char *name) {
  (void)name;
  CloseHandle((HANDLE)lock);
}

void lock_file_forget(intptr_t lock) {
  CloseHandle((HANDLE)lock);
}

#elif defined(__EMSCRIPTEN__)

/*
** In WebAssembly, flock() and fcntl() report success and lock nothing. lock_file_take() therefore
** always fails, and a ledger must be in memory.
*/
int lock_file_take(const char *name, const char *model, intptr_t *lock, struct lock_error *error) {
  (void)name;
  (void)model;
  (void)lock;
  *error = (struct lock_error){LOCK_IMPOSSIBLE, 0, "WebAssembly cannot lock files"};
  return -1;
}

void lock_file_drop(intptr_t lock, const char *name) {
  (void)lock;
  (void)name;
}

void lock_file_forget(intptr_t lock) {
  (void)lock;
}

#else

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PERMISSIONS 0777
#define OWNER       0600

/*
** A process takes the lock by calling flock() on the lock file. A process that releases the lock
** deletes the file first. Another process may have opened the file before that. After flock() has
** succeeded, each process therefore checks that the file still has its name.
*/

static int fail(struct lock_error *error, int code, int forbidden) {
  error->failure = forbidden        ? LOCK_FORBIDDEN
                   : code == ENOSPC ? LOCK_NO_SPACE
                   : code == EEXIST ? LOCK_IS_FILE
                                    : LOCK_IMPOSSIBLE;
  error->is_there = 0;
  snprintf(error->text, sizeof error->text, "%s", strerror(code));
  return -1;
}

/*
** Opens or creates the lock file. If this process may not write the file, the function opens the
** file for reading, which is enough for flock().
*/
static int open_lock(const char *name, const char *model) {
  struct stat status;
  mode_t mode = stat(model, &status) == 0 ? status.st_mode & PERMISSIONS : OWNER;
  int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  int file = open(name, O_RDWR | O_CREAT | flags, mode);
  int error = errno;
  if (file < 0 && (error == EACCES || error == EPERM || error == EROFS))
    file = open(name, O_RDONLY | flags);
  errno = error;
  return file;
}

static int has_name(int file, const char *name) {
  struct stat opened, named;
  return fstat(file, &opened) == 0 && stat(name, &named) == 0 && opened.st_dev == named.st_dev &&
         opened.st_ino == named.st_ino;
}

/*
** Returns 1 if this process now holds the lock, 0 if another process holds the lock or has just
** deleted the file, and -1 on error.
*/
static int try_lock(int file, const char *name) {
  struct stat status;
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size != 0) {
    errno = EEXIST; /* a file with content belongs to somebody else, and must not be deleted */
    return -1;
  }
  if (flock(file, LOCK_EX | LOCK_NB) == 0) return has_name(file, name);
  return errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
}

/*
** Gives the lock file the permissions of the model, because every process that can open the model
** must be able to open the lock file. The lock file has no content to protect.
*/
static void take_permissions(const char *model, int file) {
  struct stat theirs, ours;
  if (stat(model, &theirs) != 0 || fstat(file, &ours) != 0) return;
  if (geteuid() == 0 && (ours.st_uid != theirs.st_uid || ours.st_gid != theirs.st_gid) &&
      fchown(file, theirs.st_uid, theirs.st_gid) != 0)
    return;
  if ((ours.st_mode & PERMISSIONS) != (theirs.st_mode & PERMISSIONS))
    (void)fchmod(file, theirs.st_mode & PERMISSIONS);
}

int lock_file_take(const char *name, const char *model, intptr_t *lock, struct lock_error *error) {
  int file = open_lock(name, model), code = errno;
  if (file < 0) {
    fail(error, code, code == EACCES || code == EPERM || code == EROFS || code == ENOENT);
    error->is_there = code == EACCES && access(name, F_OK) == 0;
    return -1;
  }
  int taken = try_lock(file, name);
  if (taken < 0) fail(error, errno, 0);
  if (taken == 1) {
    take_permissions(model, file);
    *lock = file;
  } else {
    close(file);
  }
  return taken;
}

void lock_file_drop(intptr_t lock, const char *name) {
  if (has_name((int)lock, name)) unlink(name);
  flock((int)lock, LOCK_UN);
  close((int)lock);
}

void lock_file_forget(intptr_t lock) {
  close((int)lock);
}

#endif
