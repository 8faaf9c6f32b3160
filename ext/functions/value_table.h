/*
** value_table.h: eponymous tables whose rows are published values: dp_answer and dp_table. The
** arguments of such a table are hidden columns, so that it is used like a function:
** dp_table('census', 'public').
**
**   V1  All rows are made in xFilter. A later LIMIT, ROLLBACK or error of the outer statement
**       changes nothing.
**   V2  SQLite must give the first `least` arguments. It may give the others.
*/
#ifndef DIFFUSE_FUNCTIONS_VALUE_TABLE_H
#define DIFFUSE_FUNCTIONS_VALUE_TABLE_H

#include <sqlite3ext.h>

struct host;

#define VALUE_TEXTS          3 /* the most texts that are the same in all rows */
#define VALUE_MOST_ARGUMENTS 18

struct shown_value {
  char *key;         /* null: the column is `component`, or NULL if this is below 0 */
  int component;     /* below 0: none */
  double numbers[4]; /* value, stddev, low and high */
  char *display;     /* or null */
};

/* The rows of one reading of a table. */
struct value_rows {
  struct shown_value *list;
  int count, room;
  char *texts[VALUE_TEXTS]; /* allocated with sqlite3_malloc(); the further columns */
};

/* Appends a row; copies its texts. Returns 1, or 0 if memory runs out. */
int value_rows_add(struct value_rows *rows, const struct shown_value *row);

struct value_table {
  const char *name;
  const char *texts; /* declares the columns after `display`, each with ", " before it */
  int text_count;
  const char *arguments; /* declares the hidden columns, in the same way */
  int least, most;       /* the numbers of arguments (V2) */
  int is_private;        /* the table spends budgets: no view or trigger may read it */
  /*
  ** Makes the rows. arguments[i] is null if SQLite does not give argument i. Returns 1, or 0 with
  ** the error of the host's session set.
  */
  int (*fill)(struct value_rows *rows, struct host *host, sqlite3_value *const *arguments);
};

/* Registers the table. Returns an SQLite result code. */
int value_table_register(sqlite3 *db, struct host *host, const struct value_table *table);

#endif
