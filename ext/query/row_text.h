/*
** row_text.h: whether a text of SQL says that each result depends on one row alone. No program of
** SQLite is read: the rule is about the words of the text.
**
** A question is read in this way if it is one SELECT over one protected table, once, perhaps with
** inner joins with public tables, and all its words and signs are on a short list. Whatever is on
** the list looks at no other row of a protected table and cannot fail. Everything else, also what
** SQLite may learn in future, is not on the list, and the question is evaluated by unit.
*/
#ifndef DIFFUSE_QUERY_ROW_TEXT_H
#define DIFFUSE_QUERY_ROW_TEXT_H

#include "query/allowed_functions.h"

/* The names of a rowid. */
#define ROWID_NAMES 3
extern const char *const rowid_names[ROWID_NAMES];

struct row_text {
  int from;                /* the place of the word FROM */
  int sources;             /* the number of tables after FROM */
  int has_star;            /* a column of the result is *, so its columns have no places */
  int rowids[ROWID_NAMES]; /* whether the text has this name of a rowid */
};

/* Returns 1 if the table is protected, 0 if it is public, and -1 if it is neither. */
typedef int role_of_table(const void *context, const char *name);

/*
** Returns whether every result of a question, the first `length` bytes of a text that SQLite has
** compiled, depends on one row of a protected table and on public rows, and no row can make it
** fail. `functions` are those of the connection that reads the rows. Sets *text.
*/
int row_text_read(struct row_text *text, const char *sql, int length,
                  const struct allowed_functions *functions, role_of_table *role_of,
                  const void *context);

/*
** Returns whether the generated column number `column` of a table cannot fail for any row. `sql` is
** the text that created the table. Columns that the expression names count too.
*/
int generated_column_is_safe(const char *sql, int column,
                             const struct allowed_functions *functions);

#endif
