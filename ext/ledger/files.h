/* files.h: files that cannot be a ledger. */
#ifndef DIFFUSE_LEDGER_FILES_H
#define DIFFUSE_LEDGER_FILES_H

/*
** Returns whether `path` is one of a database's files: the database itself, a journal, its WAL, its
** WAL index or the lock of a ledger. Also returns 1 if the database is such a file of a database at
** `path`.
*/
int file_is_hosts(const char *path, const char *database);

#endif
