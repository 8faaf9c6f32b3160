/*
** files.c: owns the ledger's file as a file: how it is created, and which files it must not be.
**
** Nothing here opens a file that exists: closing it would drop the locks that this process holds on
** it.
*/
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ledger/internal.h"

SQLITE_EXTENSION_INIT3

#define PERMISSIONS 0777
#define OF_OTHERS   0077 /* permissions of the group and of everybody else */
#define OF_GROUP    0070

int file_has_content(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
}

int file_same(const char *a, const char *b) {
  struct stat one, other;
  return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

/* Whether both names stand, or would stand, for one file, however its folder is spelled. */
static int same_place(const char *a, const char *b) {
  const char *name_a = strrchr(a, '/'), *name_b = strrchr(b, '/');
  if (strcmp(a, b) == 0 || file_same(a, b)) return 1;
  if (!name_a || !name_b || strcmp(name_a, name_b) != 0) return 0;
  char *folder_a = sqlite3_mprintf("%.*s/", (int)(name_a - a), a);
  char *folder_b = sqlite3_mprintf("%.*s/", (int)(name_b - b), b);
  int same = !folder_a || !folder_b || file_same(folder_a, folder_b); /* no memory: take no risk */
  sqlite3_free(folder_a);
  sqlite3_free(folder_b);
  return same;
}

int file_is_hosts(const char *path, const char *database) {
  static const char *const suffixes[] = {"", "-journal", "-wal", "-shm"};
  int same = 0;
  for (int i = 0; i < 4 && !same; i++) {
    char *of_host = sqlite3_mprintf("%s%s", database, suffixes[i]);
    char *of_ledger = sqlite3_mprintf("%s%s", path, suffixes[i]);
    same = !of_host || !of_ledger || same_place(path, of_host) || same_place(of_ledger, database);
    sqlite3_free(of_host);
    sqlite3_free(of_ledger);
  }
  return same;
}

/* Gives a new file the owner, group and permissions of another, as far as this process may. */
static int adopt(int file, const struct stat *model) {
  struct stat own;
  mode_t mode = model->st_mode & PERMISSIONS;
  if (fstat(file, &own) != 0) return 0;
  if (own.st_uid != model->st_uid && geteuid() == 0 && fchown(file, model->st_uid, (gid_t)-1) != 0)
    return 0;
  /* Another group would get what the database's group has. */
  if (own.st_gid != model->st_gid && fchown(file, (uid_t)-1, model->st_gid) != 0)
    mode &= (mode_t)~OF_GROUP;
  return fchmod(file, mode) == 0;
}

enum creation file_create(const char *path, const char *database) {
  struct stat model, link;
  int modelled = database && stat(database, &model) == 0;
  int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file >= 0) {
    int done = !modelled || adopt(file, &model);
    close(file); /* nobody has a lock on a file that has just been made */
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
