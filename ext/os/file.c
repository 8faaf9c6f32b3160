/* file.c: see file.h. Tests: tests/ledger/test_files.py */
#include "os/file.h"

#include <string.h>

#if defined(_WIN32)

#include <stdlib.h>

#include "os/windows.h"

/* ---- helpers of the Windows variants --------------------------------------------------------- */

wchar_t *windows_path(const char *utf8) {
  int size = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, utf8, -1, 0, 0);
  wchar_t *wide = size > 0 ? malloc((size_t)size * sizeof *wide) : 0;
  if (wide) MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, utf8, -1, wide, size);
  return wide;
}

SECURITY_DESCRIPTOR *windows_access(const wchar_t *path) {
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

void file_delete(const char *path) {
  wchar_t *wide = windows_path(path);
  if (wide) DeleteFileW(wide);
  free(wide);
}

#else

#include <errno.h>
#include <fcntl.h>
#include <strings.h>
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

/*
** Gives a new file the owner, group and permissions of another file, as far as the operating system
** permits.
*/
static int adopt(int file, const struct stat *model) {
  struct stat own;
  mode_t mode = model->st_mode & PERMISSIONS;
  if (fstat(file, &own) != 0) return 0;
  if (own.st_uid != model->st_uid && geteuid() == 0 && fchown(file, model->st_uid, (gid_t)-1) != 0)
    return 0;
  /*
  ** If setting the group fails, the new file keeps a group that is not the model's group. This
  ** group must not get the rights of the model's group.
  */
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

void file_delete(const char *path) {
  unlink(path);
}

#endif
