/* file.c: see os.h. Tests: tests/ledger/test_files.py, tests/ledger/test_locks.py */
#include "os/os.h"

#include <stdio.h>
#include <string.h>

#if defined(_WIN32)

#include <stdlib.h>
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

/* Returns a path in UTF-16, for free(), or null: no memory, or no valid UTF-8. */
static wchar_t *windows_path(const char *utf8) {
  int size = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, utf8, -1, 0, 0);
  wchar_t *wide = size > 0 ? malloc((size_t)size * sizeof *wide) : 0;
  if (wide) MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, utf8, -1, wide, size);
  return wide;
}

/* Returns the access list of a file, for free() and a new file. Null: it cannot be read, and the
** new file gets that of its folder. */
static SECURITY_DESCRIPTOR *windows_access(const wchar_t *path) {
  DWORD size = 0;
  GetFileSecurityW(path, DACL_SECURITY_INFORMATION, 0, 0, &size);
  SECURITY_DESCRIPTOR *access = size ? malloc(size) : 0;
  if (access && GetFileSecurityW(path, DACL_SECURITY_INFORMATION, access, size, &size))
    return access;
  free(access);
  return 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

static int is_separator(char c) {
  return c == '/' || c == '\\';
}

const char *path_name(const char *path) {
  const char *name = path;
  for (const char *c = path; *c; c++)
    if (is_separator(*c) || (c == path + 1 && *c == ':')) name = c + 1;
  return name;
}

int path_is_absolute(const char *path) {
  return is_separator(path[0]) || (path[0] && path[1] == ':');
}

int path_names_match(const char *a, const char *b) {
  return _stricmp(a, b) == 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

static int attributes_of(const char *path, WIN32_FILE_ATTRIBUTE_DATA *attributes) {
  wchar_t *wide = windows_path(path);
  int found = wide && GetFileAttributesExW(wide, GetFileExInfoStandard, attributes);
  free(wide);
  return found;
}

/* Opens a file or folder to read its attributes only. Follows links. */
static HANDLE open_to_ask(const char *path) {
  wchar_t *wide = windows_path(path);
  HANDLE file = INVALID_HANDLE_VALUE;
  if (wide)
    file = CreateFileW(wide, 0, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, 0,
                       OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, 0);
  free(wide);
  return file;
}

int file_exists(const char *path) {
  HANDLE file = open_to_ask(path);
  if (file == INVALID_HANDLE_VALUE) return 0;
  CloseHandle(file);
  return 1;
}

int file_has_content(const char *path) {
  WIN32_FILE_ATTRIBUTE_DATA attributes;
  return attributes_of(path, &attributes) &&
         !(attributes.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) &&
         (attributes.nFileSizeLow || attributes.nFileSizeHigh);
}

int file_same(const char *a, const char *b) {
  HANDLE one = open_to_ask(a), other = open_to_ask(b);
  BY_HANDLE_FILE_INFORMATION x, y;
  int same = one != INVALID_HANDLE_VALUE && other != INVALID_HANDLE_VALUE &&
             GetFileInformationByHandle(one, &x) && GetFileInformationByHandle(other, &y) &&
             x.dwVolumeSerialNumber == y.dwVolumeSerialNumber &&
             x.nFileIndexHigh == y.nFileIndexHigh && x.nFileIndexLow == y.nFileIndexLow;
  if (one != INVALID_HANDLE_VALUE) CloseHandle(one);
  if (other != INVALID_HANDLE_VALUE) CloseHandle(other);
  return same;
}

enum creation file_create(const char *path, const char *model) {
  wchar_t *wide = windows_path(path), *of_model = model ? windows_path(model) : 0;
  SECURITY_DESCRIPTOR *access = of_model ? windows_access(of_model) : 0;
  SECURITY_ATTRIBUTES security = {sizeof security, access, FALSE};
  HANDLE file = INVALID_HANDLE_VALUE;
  if (wide)
    file = CreateFileW(wide, GENERIC_READ | GENERIC_WRITE, 0, access ? &security : 0, CREATE_NEW,
                       FILE_FLAG_OPEN_REPARSE_POINT, 0);
  DWORD error = GetLastError();
  free(access);
  free(of_model);
  free(wide);
  if (file == INVALID_HANDLE_VALUE && error != ERROR_FILE_EXISTS) return FILE_REFUSED;
  if (file == INVALID_HANDLE_VALUE) return file_exists(path) ? FILE_EXISTS : FILE_DANGLES;
  CloseHandle(file);
  return FILE_CREATED;
}

enum creation file_publish(const char *part, const char *path) {
  wchar_t *from = windows_path(part), *to = windows_path(path);
  int moved = from && to && MoveFileExW(from, to, MOVEFILE_WRITE_THROUGH);
  DWORD error = GetLastError();
  free(from);
  free(to);
  return moved ? FILE_CREATED
         : error == ERROR_FILE_EXISTS || error == ERROR_ALREADY_EXISTS ? FILE_EXISTS
                                                                       : FILE_REFUSED;
}

void file_delete(const char *path) {
  wchar_t *wide = windows_path(path);
  if (wide) DeleteFileW(wide);
  free(wide);
}

/* ---- locks ----------------------------------------------------------------------------------- */

/* The process that holds the lock has opened the lock file without sharing, so Windows lets nobody
** else open the file. The file is marked for deletion while it is open. Windows deletes the file
** when its only handle is closed, even if the process was killed. */

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

/* Returns whether a file can be a lock file. A file with content, a folder or a link belongs to
** somebody else, and diffuse must not delete it. */
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

#else

#include <errno.h>
#include <fcntl.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PERMISSIONS 0777
#define OF_OTHERS   0077 /* permissions of the group and of others */
#define OF_GROUP    0070

/* ---- names ----------------------------------------------------------------------------------- */

const char *path_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

int path_is_absolute(const char *path) {
  return path[0] == '/';
}

/* By default, file systems of macOS do not distinguish upper and lower case. */
int path_names_match(const char *a, const char *b) {
#if defined(__APPLE__)
  return strcasecmp(a, b) == 0;
#else
  return strcmp(a, b) == 0;
#endif
}

/* ---- files ----------------------------------------------------------------------------------- */

int file_exists(const char *path) {
  return access(path, F_OK) == 0;
}

int file_has_content(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
}

int file_same(const char *a, const char *b) {
  struct stat one, other;
  return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

/* Gives a new file the owner, group and permissions of another, as far as the system permits. */
static int adopt(int file, const struct stat *model) {
  struct stat own;
  mode_t mode = model->st_mode & PERMISSIONS;
  if (fstat(file, &own) != 0) return 0;
  if (own.st_uid != model->st_uid && geteuid() == 0 && fchown(file, model->st_uid, (gid_t)-1) != 0)
    return 0;
  /* Then the file keeps a group that must not get the rights of the model's group. */
  if (own.st_gid != model->st_gid && fchown(file, (uid_t)-1, model->st_gid) != 0)
    mode &= (mode_t)~OF_GROUP;
  return fchmod(file, mode) == 0;
}

enum creation file_create(const char *path, const char *model_path) {
  struct stat model, link;
  int modelled = model_path && stat(model_path, &model) == 0;
  int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file >= 0) {
    int done = !modelled || adopt(file, &model);
    close(file); /* the file is new, so this process has no lock on it to lose */
    if (done) return FILE_CREATED;
    unlink(path);
    return FILE_REFUSED;
  }
  if (errno != EEXIST) return FILE_REFUSED;
  struct stat there;
  if (stat(path, &there) != 0)
    return lstat(path, &link) == 0 && S_ISLNK(link.st_mode) ? FILE_DANGLES : FILE_REFUSED;
  mode_t allowed = modelled ? model.st_mode & PERMISSIONS : PERMISSIONS & (mode_t)~OF_OTHERS;
  if (S_ISREG(there.st_mode) && there.st_size == 0 &&
      (there.st_mode & PERMISSIONS & ~allowed) != 0 && chmod(path, there.st_mode & allowed) != 0)
    return FILE_REFUSED;
  return FILE_EXISTS;
}

/* Syncs the folder of a file. Not every file system can: EINVAL is no failure. */
static int sync_folder(const char *path) {
  char folder[4096];
  size_t length = (size_t)(path_name(path) - path);
  if (length >= sizeof folder) return 0;
  memcpy(folder, length ? path : ".", length ? length : 1);
  folder[length ? length : 1] = 0;
  int file = open(folder, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  int done = fsync(file) == 0 || errno == EINVAL;
  close(file); /* a folder has no locks */
  return done;
}

/* A link takes no name that exists. Where a file system has no links, rename() takes the name. */
enum creation file_publish(const char *part, const char *path) {
  struct stat there;
  if (link(part, path) == 0) {
    unlink(part);
  } else if (errno == EEXIST || lstat(path, &there) == 0) {
    return FILE_EXISTS;
  } else if (rename(part, path) != 0) {
    return FILE_REFUSED;
  }
  return sync_folder(path) ? FILE_CREATED : FILE_REFUSED;
}

void file_delete(const char *path) {
  unlink(path);
}

/* ---- locks ----------------------------------------------------------------------------------- */

#if defined(__EMSCRIPTEN__)

/* In WebAssembly, flock() and fcntl() report success and lock nothing. lock_file_take() therefore
** always fails, and a ledger must be in memory. */
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

#define OWNER 0600

/* A process takes the lock by calling flock() on the lock file. A process that releases the lock
** deletes the file first. Another process may have opened the file before that. After flock() has
** succeeded, each process therefore checks that the file still has its name. */

static int fail(struct lock_error *error, int code, int forbidden) {
  error->failure = forbidden        ? LOCK_FORBIDDEN
                   : code == ENOSPC ? LOCK_NO_SPACE
                   : code == EEXIST ? LOCK_IS_FILE
                                    : LOCK_IMPOSSIBLE;
  error->is_there = 0;
  snprintf(error->text, sizeof error->text, "%s", strerror(code));
  return -1;
}

/* Opens or creates the lock file, only for reading if this process may not write it: flock() needs
** no more. */
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

/* Returns 1 if this process now holds the lock, 0 if another one does or has just deleted the file,
** and -1 on error. */
static int try_lock(int file, const char *name) {
  struct stat status;
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size != 0) {
    errno = EEXIST; /* a file with content belongs to somebody else, and must not be deleted */
    return -1;
  }
  if (flock(file, LOCK_EX | LOCK_NB) == 0) return has_name(file, name);
  return errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
}

/* Every process that can open the model must be able to open the lock file, which has no
** content. */
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

#endif
