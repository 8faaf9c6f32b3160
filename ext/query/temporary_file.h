/*
** temporary_file.h: files in memory for SQLite's sorters and temporary tables. A budget counts
** their bytes together with other memory.
*/
#ifndef DIFFUSE_QUERY_TEMPORARY_FILE_H
#define DIFFUSE_QUERY_TEMPORARY_FILE_H

#include <sqlite3ext.h>
#include <stddef.h>

struct memory_budget {
  double used, most; /* bytes */
  int is_exceeded;
};

/* Adds bytes to those that are used. Returns 0 if this exceeds the budget. */
int memory_budget_take(struct memory_budget *budget, double bytes);

/* The file for xOpen of a VFS: the VFS has this size as its szOsFile. */
struct temporary_file {
  sqlite3_file base;
  struct memory_budget *budget; /* outlives the file */
  unsigned char **blocks;
  size_t count, room; /* numbers of blocks */
  sqlite3_int64 size;
};

/* Opens an empty file. A write that exceeds the budget fails with SQLITE_FULL. */
void temporary_file_open(struct temporary_file *file, struct memory_budget *budget);

#endif
