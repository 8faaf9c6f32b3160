/* question_text.h: what the text of a question says, by SQLite's lexical rules. No program of
** SQLite is read. */
#ifndef DIFFUSE_QUERY_QUESTION_TEXT_H
#define DIFFUSE_QUERY_QUESTION_TEXT_H

#include <sqlite3ext.h>

struct aggregate;

/* ---- functions that a question may use ------------------------------------------------------- */

#define MOST_FUNCTIONS 256

/* For each function of the list in question_text.c, whether a connection may use it. */
struct allowed_functions {
  unsigned char own[MOST_FUNCTIONS]; /* 1: the connection has SQLite's own function */
};

/* Finds out which functions of the list a connection may use. Returns an SQLite result code. */
int allowed_functions_read(struct allowed_functions *functions, sqlite3 *db);

/* Returns whether the list contains the name and the connection may use the function. */
int function_is_allowed(const struct allowed_functions *functions, const char *name);

/* Notes in `used` that a question calls a function, which must be allowed. functions_replaced()
** returns the name of a noted function that another connection does not have as SQLite's own, or
** null. */
void function_note(struct allowed_functions *used, const char *name);
const char *functions_replaced(const struct allowed_functions *used,
                               const struct allowed_functions *other);

/* ---- row by row ------------------------------------------------------------------------------ */

/* A question is read row by row if it is one SELECT over one protected table, once, perhaps with
** inner joins with public tables, and all its words and signs are on a short list. Whatever is on
** the list looks at no other row of a protected table and cannot fail. Everything else, also what
** SQLite may learn in future, is not on the list, and the question is evaluated by unit. */

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

/* Returns whether every result of a question, the first `length` bytes of a text that SQLite has
** compiled, depends on one row of a protected table and on public rows, and no row can make it
** fail. `functions` are those of the connection that reads the rows. Sets *text. */
int row_text_read(struct row_text *text, const char *sql, int length,
                  const struct allowed_functions *functions, role_of_table *role_of,
                  const void *context);

/* Returns whether the generated column number `column` of a table cannot fail for any row. `sql` is
** the text that created the table. Columns that the expression names count too. */
int generated_column_is_safe(const char *sql, int column,
                             const struct allowed_functions *functions);

/* ---- operators IN ---------------------------------------------------------------------------- */

/* Return 0 only if the text, or all running statements of a connection, have no operator IN that
** SQLite reports to virtual tables as an equality and of which sqlite3_vtab_in() does not tell. */
int has_hidden_in(const char *sql);
int runs_hidden_in(sqlite3 *db);

/* ---- notices (notices.c) --------------------------------------------------------------------- */

/* What a notice depends on. */
struct notice_terms {
  const char *texts; /* of the question and its views, with semicolons between them */
  const char *unit;  /* the ledger's word for a unit; null: each row is a unit */
  const struct aggregate *aggregate;
  const char *type; /* the declared type of the column with the numbers; null: none, or no number */
  /* Returns whether a table is public. Common table expressions, views and others are not. */
  int (*is_public)(const void *context, const char *name);
  const void *context;
};

/* Returns the notice: "DISTINCT and a subquery see one plane's rows at a time: this counts each
** plane's results", for example. The text is empty if the question means what it seems to. The
** caller calls sqlite3_free(). Returns null if memory runs out. */
char *notice_words(const struct notice_terms *terms);

#endif
