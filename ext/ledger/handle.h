/*
** handle.h: the struct ledger, which every file of ledger/ uses, its errors, and waiting.
** handle.c calls no other file of ledger/.
*/
#ifndef DIFFUSE_LEDGER_HANDLE_H
#define DIFFUSE_LEDGER_HANDLE_H

#include <stddef.h>

#include "ledger/handle.h"
#include "ledger/ledger.h"
#include "os/process.h"

#define MEMORY_PATH ":memory:"

#define LEDGER_FORMAT 1 /* the format of sql/ledger.sql */

#define LEDGER_MOST_NAME 255 /* the most bytes of a name or label */

#define LEDGER_MOST_ROWS ((int64_t)1 << 52) /* the most charges, seals or releases */

/* What the open transaction has changed. The commit seals these changes (seal.c). */
struct touched {
  int64_t *subjects; /* ids of releases, SEAL_TERMS, SEAL_ORDERS */
  int count, room;
  int books;   /* 1: the transaction has changed dp_budget */
  int trusted; /* 1: the transaction has compared terms and budgets with their seals */
};

/* A statement of one file of ledger/ (statements.h), prepared on a connection. */
struct statement;
struct prepared {
  const struct statement *statement; /* null: the slot is empty */
  sqlite3_stmt *prepared;
};
#define STATEMENT_SLOTS 256 /* more than there are statements */

struct ledger {
  sqlite3 *caller;     /* the connection that loaded the extension */
  sqlite3 *host;       /* the connection to the database: `caller`, or a private connection */
  sqlite3 *db;         /* the private connection, or null */
  struct error *error; /* receives all errors; owned by the caller */
  struct json json;
  const struct ledger_kinds *kinds;
  char *path;              /* path of the ledger file, or MEMORY_PATH */
  char *id;                /* dp_ledger.id of the open ledger */
  struct process process;  /* the process that opened db (L6) */
  int protects, adjacency; /* terms of the open ledger */
  const char *read_only;   /* the reason why the host may only read, or null */
  int writes_refused;      /* 1: the open transaction must not write, because of read_only */
  int is_discrepant;       /* 1: the error is a discrepancy that dp_verify() has found */
  int correction_failed;   /* 1: the marker's path could not be corrected */
  char *audience;          /* the tier whose members use the host connection; null: the owner */
  /* The grant that pays for the charges of this connection; null: the owner pays. */
  char *grant;
  struct touched touched;
  int rounding; /* the host's rounding mode while a transaction runs, or -1 */
  int unsynced; /* 1: db is set up for a trial; -1: not known */
  struct prepared statements[STATEMENT_SLOTS]; /* statements on db (statements.c) */

  /* Members that belong to a transaction: */
  intptr_t lock;       /* the lock that is held, or LOCK_FILE_NONE */
  char *lock_name;     /* the file of the lock */
  int heeds_host;      /* 1: if the host is interrupted, the transaction ends */
  int is_patient;      /* 1: wait longer for locks, because a failure would waste a charge */
  sqlite3_stmt *probe; /* the prepared probe, or null */
  int64_t looked;      /* time of the last run of the probe; milliseconds */
  int64_t deadline;    /* time at which waiting ends; milliseconds */
  sqlite3 *file;       /* the connection to the file while db is a copy, or null */
  int overdrawn;       /* 1: a grant has paid more than it has, which only a copy allows */
  struct prepared file_statements[STATEMENT_SLOTS]; /* the statements on `file` */
};

/* ---- errors ---------------------------------------------------------------------------------- */

/* Sets the error unless one is set already. The format is that of sqlite3_mprintf. Returns 0. */
int ledger_fail(struct ledger *ledger, const char *format, ...);

/* Reports that the ledger is damaged, with the name of the table. Returns 0. */
int ledger_fail_damaged(struct ledger *ledger, const char *table);

/* Sets the error to the last SQLite error of the private connection. Returns 0. */
int ledger_fail_sqlite(struct ledger *ledger);

/*
** Sets the error for a payment that does not fit. The error gives the epsilon or the rate that the
** payment needs, and what is left of it. Returns 0.
*/
int ledger_fail_epsilon(struct ledger *ledger, const struct ledger_tier *tier, double needed,
                        double left);
int ledger_fail_budget(struct ledger *ledger, const struct ledger_tier *tier, double needed,
                       double left);

/*
** Checks the length of a name or label. `what` is what the error calls it, such as "name". Null is
** no name, and passes.
*/
int ledger_check_name(struct ledger *ledger, const char *what, const char *name);

/*
** Makes room for one more element. `array` points to the pointer to the array. The capacity is the
** next power of two, so only a full array grows. Returns 0 when out of memory.
*/
int ledger_make_room(struct ledger *ledger, void *array, int used, size_t size);

/* Returns whether two texts are equal, or both null. */
int same_texts(const char *a, const char *b);

/* ---- facts ----------------------------------------------------------------------------------- */

int ledger_is_memory(const struct ledger *ledger);

/*
** Returns whether this process inherited the connection by fork(). An inherited connection belongs
** to the parent process (L6). If the child closed this connection or rolled back, the child could
** undo an open transaction of the parent on the same file.
*/
int ledger_is_inherited(const struct ledger *ledger);

/* ---- waiting, and interrupts of the host ----------------------------------------------------- */

/* Sets the members heeds_host and is_patient, which decide how the following transactions wait. */
void interrupt_heed(struct ledger *ledger, int heeds_host, int is_patient);

/* Starts the time limit for waiting. */
void wait_start(struct ledger *ledger);

/*
** Waits for a few milliseconds. Returns 0 if the time limit is over or the host is interrupted.
** `calls` is the number of earlier calls for the same wait.
*/
int wait_moment(struct ledger *ledger, int calls);

#endif
