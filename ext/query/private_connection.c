/* private_connection.c: see private_connection.h. Tests: tests/query/test_question_rules.py */
#include "query/private_connection.h"

#include <string.h>

#include "base/own_connection.h"

SQLITE_EXTENSION_INIT3

/* Appends a text in which only letters, digits and a few signs stand for themselves. */
static void append_encoded(sqlite3_str *uri, const char *text) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._~-";
  for (; *text; text++) {
    if (strchr(plain, *text)) {
      sqlite3_str_appendchar(uri, 1, *text);
    } else {
      sqlite3_str_appendf(uri, "%%%02x", (unsigned char)*text);
    }
  }
}

/*
** Returns a URI with the parameters of `path`, a name that sqlite3_db_filename() returned. The VFS
** and the flags of sqlite3_open_v2() take the place of three of the parameters.
*/
static char *uri_of(const char *path) {
  sqlite3_str *uri = sqlite3_str_new(0);
  const char *key;
  char sign = '?';
  sqlite3_str_appendall(uri, *path == '/' ? "file:" : "file:/");
  append_encoded(uri, path);
  for (int i = 0; (key = sqlite3_uri_key(path, i)) != 0; i++) {
    if (strcmp(key, "mode") == 0 || strcmp(key, "cache") == 0 || strcmp(key, "vfs") == 0) continue;
    sqlite3_str_appendchar(uri, 1, sign);
    append_encoded(uri, key);
    sqlite3_str_appendchar(uri, 1, '=');
    append_encoded(uri, sqlite3_uri_parameter(path, key));
    sign = '&';
  }
  return sqlite3_str_finish(uri);
}

int private_connection_open(sqlite3 **opened, sqlite3 *db, int flags, struct error *error) {
  sqlite3_vfs *vfs = 0;
  const char *path = sqlite3_db_filename(db, "main");
  *opened = 0;
  if (sqlite3_file_control(db, "main", SQLITE_FCNTL_VFS_POINTER, &vfs) != SQLITE_OK || !vfs)
    return error_set(error, "cannot open the database again: its VFS is unknown");
  char *uri = uri_of(path);
  if (!uri) return error_set_memory(error);
  flags |= SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_URI;
  if (own_connection_open(opened, uri, flags, vfs->zName) != SQLITE_OK) {
    error_set(error, "cannot open the database again: %s",
              *opened ? sqlite3_errmsg(*opened) : "out of memory");
    sqlite3_close_v2(*opened);
    *opened = 0;
  } else {
    int trusts = 0;
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, -1, &trusts);
    sqlite3_db_config(*opened, SQLITE_DBCONFIG_TRUSTED_SCHEMA, trusts, (int *)0);
  }
  sqlite3_free(uri);
  return *opened != 0;
}

/* ---- collectors ------------------------------------------------------------------------------ */

/* The collector of a private connection. Its functions can outlive private_collector_close(). */
struct own_collector {
  struct collector collector;
  int references;
};

static void retain(struct collector *collector) {
  ((struct own_collector *)collector)->references++;
}

static void release(void *collector) {
  struct own_collector *own = collector;
  if (--own->references == 0) sqlite3_free(own);
}

struct collector *private_collector_new(sqlite3 *db) {
  struct own_collector *own = sqlite3_malloc(sizeof *own);
  if (!own) {
    sqlite3_close_v2(db);
    return 0;
  }
  *own = (struct own_collector){{db, 0}, 1};
  if (collector_register(&own->collector, retain, release) == SQLITE_OK) return &own->collector;
  private_collector_close(&own->collector);
  return 0;
}

/*
** Uses sqlite3_close_v2(), because an extension that is loaded for every connection may have left
** statements open.
*/
void private_collector_close(struct collector *collector) {
  if (!collector) return;
  sqlite3_exec(collector->db, "ROLLBACK", 0, 0, 0); /* fails if no transaction is open */
  sqlite3_close_v2(collector->db);
  release(collector);
}
