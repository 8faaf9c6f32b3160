/* internal.h: what the files of this room offer each other. */
#ifndef DIFFUSE_QUERY_INTERNAL_H
#define DIFFUSE_QUERY_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "query/query.h"

/* ---- reading the schema (schema.c) ----------------------------------------------------------- */

/* The names of a rowid. */
#define ROWID_NAMES 3
extern const char *const rowid_names[ROWID_NAMES];

/* Call this function after a statement of the extension has failed for whatever reason, if the
** extension goes on without its result. If the host's progress handler has interrupted it, the
** function interrupts the connection. Otherwise the host's wish would be lost, because a progress
** handler ends only the statement that calls it. */
void interrupt_pass_on(sqlite3 *db);

/* schema_prepare() compiles a statement about the schema, which must give `columns` columns. A name
** replaces %w in its text. schema_finish() finalizes it, and reports its error unless `going` is
** already 0. Both return 1, or 0 with the error set, and the latter also if `going` is 0. */
int schema_prepare(sqlite3 *db, sqlite3_stmt **row, int columns, const char *format,
                   const char *name, struct error *error);
int schema_finish(sqlite3 *db, sqlite3_stmt *row, int going, struct error *error);

/* Sets *sql to the text that created a table or view, or to null if main has none of this name.
** Returns 1, or 0 with the error set. The caller calls sqlite3_free(*sql) in both cases. */
int schema_text(sqlite3 *db, const char *type, const char *name, char **sql, struct error *error);

/* Appends the FROM clause that joins the tables of a route under the names t0, t1, and so on. The
** join gives a row of t0 once if its links lead to a row of the last table, and not at all
** otherwise. The unit column of that row may still be NULL. */
void route_append_from(sqlite3_str *sql, const struct route *route);

/* Appends the FROM clause that joins the tables of a route, but not the first table. The route must
** have a parent. */
void route_append_parents(sqlite3_str *sql, const struct route *route);

/* Appends the FROM and WHERE clauses of a query that starts from a row's link, the parameter ?1,
** and finds the row of the parent to which this link refers. The clauses compare columns as
** route_append_from() does. The route must have a parent. */
void route_append_lookup(sqlite3_str *sql, const struct route *route);

/* Appends the expression for the unit of a row that route_append_from() joins. */
void route_append_unit(sqlite3_str *sql, const struct route *route);

/* ---- tokens of a text, by SQLite's lexical rules (question_text.c) --------------------------- */

struct token {
  const char *at; /* null: no token */
  int size;
  int depth; /* the parentheses that are open before it; a closing one is as deep as its opening */
  int partner;        /* the other parenthesis, or -1 */
  enum visible shown; /* how much of a bound value it is (find_call.c) */
};

/* list[-1] and list[count] are no tokens, so that each token has one before and one after it. */
struct tokens {
  struct token *list;
  int count;
  int is_balanced; /* each parenthesis that opens is closed */
};

/* Reads the tokens of the first `length` bytes of a text. Returns 1, or 0 when out of memory. The
** caller frees them in both cases. */
int tokens_read(struct tokens *tokens, const char *sql, size_t length);
void tokens_free(struct tokens *tokens);

int token_is(const struct token *token, const char *word);
int token_is_sign(const struct token *token, char sign);

/* ---- the functions of a question ------------------------------------------------------------- */

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

/* Does what runs_hidden_in() does, for one text. */
int has_hidden_in(const char *sql);

/* ---- notices --------------------------------------------------------------------------------- */

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

/* ---- a private connection (evaluator.c) ------------------------------------------------------ */

struct memory_budget {
  double used, most; /* bytes */
  int is_exceeded;
};

/* A connection in memory with a file system of its own, which no other connection can use. It has
** only temporary files, which it keeps in memory within a budget, gives zeros instead of random
** bytes, and shows one fixed time: the host's time when the connection was opened. */
struct private_memory {
  sqlite3_vfs vfs;
  char name[40];
  struct memory_budget budget;
  sqlite3_int64 moment; /* Julian day in milliseconds */
};

/* Opens the connection. *memory must keep its address until the connection is closed. Returns 1, or
** 0 with the error set. The caller closes *db in both cases. */
int private_memory_open(struct private_memory *memory, sqlite3 **db, struct error *error);

/* ---- tables (evaluator_tables.c) ------------------------------------------------------------- */

/* Rows of one table in memory: of one unit, or all rows of a public table. All other members are 0
** before the first row. */
struct unit_rows {
  int columns;
  size_t count, room; /* numbers of rows */
  struct cell *cells;
  int64_t *rowids;
  unsigned char *bytes; /* of texts and blobs */
  size_t used, bytes_room;
  struct row_index *indices;
  int index_count;
};

void unit_rows_close(struct unit_rows *rows);

/* Returns the number of bytes that the rows need. It depends on the rows alone. */
double unit_rows_bytes(const struct unit_rows *rows);

/* Removes the rows and keeps the memory. */
void unit_rows_clear(struct unit_rows *rows);

/* Adds the row of a statement. Value i is column first + places[i] of the statement, or NULL if
** places[i] is negative. Returns 0 when out of memory. */
int unit_rows_add(struct unit_rows *rows, int64_t rowid, sqlite3_stmt *row, int first,
                  const int *places);

/* What is known of a column of a declared table. */
enum { COLUMN_NAMED = 1, COLUMN_SEARCHED = 2, COLUMN_READ = 4 };

/* A declared table that the question names. */
struct evaluator_table {
  const struct ledger_declaration *declaration;
  struct route route; /* route.tables[0] holds the facts of this table */
  /* For each column: 0 if the question does not read it, or else the bits above. All columns of a
  ** key WITHOUT ROWID count as read. */
  unsigned char *used;
  int *places;           /* for each column: its place among the used columns, or -1 */
  struct unit_rows rows; /* the rows of the table */
};

struct evaluator_tables {
  struct evaluator_table *list;
  int count;
  int is_broken; /* the statement read a column or a row that does not exist: a bug */
  /* No table looks up rows, because the question or a view may have an operator IN that xBestIndex
  ** cannot tell from an equality, or because the texts of numbers have few digits. */
  int searches_nothing;
};

/* xBestIndex gives each search of a table a text, which is this letter and the index in all->list.
** The text is in the fourth operand of the instruction VFilter. */
#define EVALUATOR_SEARCH 't'

#define EVALUATOR_MODULE "dp_unit_rows"

/* Registers the module. CREATE VIRTUAL TABLE with this module takes an index in all->list as its
** argument. *all must keep its address until the connection is closed. Returns an SQLite result
** code. */
int evaluator_tables_register(sqlite3 *db, struct evaluator_tables *all);

/* ---- evaluators ------------------------------------------------------------------------------ */

/* An evaluator is a private SQLite connection in memory that evaluates the query of a question for
** one unit after the other. This connection has no access to the database. Its only tables are
** virtual tables with the names of declared tables, and the caller supplies their rows.
**
** Requirements, which the tests cite:
**   Q1  The result of an evaluation depends only on the unit's rows, the public tables, and the
**       time, which is the same for all units. Earlier statements, statistics of tables, random
**       numbers and other units do not change the result.
**   Q2  If a unit's evaluation fails or exceeds the public limits, only that unit is affected. Lack
**       of memory, an error of the file system and an interrupt end the whole question.
**   Q3  A question may use only the functions of a fixed list, declared tables and views over them.
**       A question that uses anything else does not compile. */

#define EVALUATOR_MOST_VIEWS 256 /* that a question may use, directly or through views */

/* Callers read the members of the first part, and may set is_interrupted and context. */
struct evaluator {
  sqlite3 *db;                    /* callers may run statements on it that read no table */
  struct evaluator_tables tables; /* that the question names */
  const char *sql;                /* belongs to the caller */
  int length;                     /* of the text without a semicolon at its end */
  int is_utf8;                    /* the encoding of the database is UTF-8 */
  char *texts;             /* of the question and of its views, with semicolons between them */
  sqlite3_stmt *statement; /* the question */
  int columns;             /* of the statement, which is the number of values of a result */
  struct allowed_functions used; /* that the question calls: here, all of them are SQLite's own */
  int is_by_row;                 /* each result comes from one row (`rows`) */
  struct row_text rows;
  /* This SQLite can count steps. One that was built without progress callbacks cannot, and then
  ** evaluates only questions row by row. */
  int counts_steps;
  size_t count;                  /* the number of results, including those that were not kept */
  struct error error;            /* of EVALUATION_FAILED */
  int (*is_interrupted)(void *); /* is called from time to time: the question ends if it is not 0 */
  void *context;

  sqlite3 *host;
  struct private_memory memory;
  const struct ledger_policy *policy;
  struct allowed_functions functions; /* that a question may call */
  char *views[EVALUATOR_MOST_VIEWS];  /* the views that the evaluator has created */
  int view_count;
  int is_building;           /* the evaluator's own statements are running */
  char *denied;              /* the first function or table that the authorizer refused */
  int selects, is_recursive; /* what the authorizer saw when the statement was compiled */
  double ticks, most_ticks;
  double most_bytes; /* the budget of one unit */
  int exceeded, interrupted;
  sqlite3_value **results;
  size_t kept, room; /* `results` holds `kept` rows, and has room for `room` rows */
};

/* Compiles a question. `host` is the connection whose tables the question names. The question must
** give `columns` columns, or more if `admits_more` is 1. `names` lists these columns for the error
** message. If `rest` is not null, a second statement may follow, and *rest is its text. Returns 1,
** or 0 with the error set. The caller must call evaluator_close(), even after an error. */
int evaluator_open(struct evaluator **evaluator, sqlite3 *host, const struct ledger_policy *policy,
                   const char *sql, int columns, int admits_more, const char *names,
                   const char **rest, struct error *error);
void evaluator_close(struct evaluator *evaluator);

/* Leaves out the columns that the question names and does not read, such as those of SELECT * in a
** subquery. Not for a question row by row: the host's program may read other columns. */
void evaluator_leave_out_unread(struct evaluator *evaluator);

enum evaluation {
  EVALUATION_FAILED,  /* the whole question failed, with evaluator->error set */
  EVALUATION_DROPPED, /* this unit failed and contributes nothing */
  EVALUATION_DONE
};

/* Limits the memory of one unit's evaluation to about `bytes` (Q2). Half of them are the budget of
** the unit's rows, of its results, and of what SQLite's sorters and temporary tables put into their
** files. The other half is for values: each takes at least 40 bytes of the compiled question, so no
** value may be longer than this half divided by a fortieth of its size, or than a million bytes.
** What is not counted depends on the question alone: two megabytes for each sorter and temporary
** table, before it uses its file. (If the application has set sqlite3_soft_heap_limit64(), SQLite
** may use the files earlier. A SQLite that was built with SQLITE_TEMP_STORE=3 never uses them.) One
** row at a time is read before it is counted. */
void evaluator_limit_memory(struct evaluator *evaluator, double bytes);

/* Returns whether the rows of the tables exceed the memory of one unit's evaluation. */
int evaluator_is_full(const struct evaluator *evaluator);

/* Evaluates the question on the rows that its tables hold now, within `steps` steps of SQLite's
** virtual machine. Counts the results. If `keeps` is 1, also keeps the results until the next
** evaluation. */
enum evaluation evaluator_run(struct evaluator *evaluator, double steps, int keeps);

/* Forgets the results, as if the evaluation of a unit had failed. */
void evaluator_skip(struct evaluator *evaluator);

/* Returns the values of result i that was kept. */
static inline sqlite3_value **evaluator_row(const struct evaluator *evaluator, size_t i) {
  return &evaluator->results[i * (size_t)evaluator->columns];
}

/* Returns an upper bound on the number of instructions of the question's program. It depends on the
** question and on the version of SQLite. */
double evaluator_instructions(const struct evaluator *evaluator);

/* ---- row by row (row_loop.c) ----------------------------------------------------------------- */

/* Further connections to the host's file, and their threads. */
struct readers;

/* Opens as many further connections to the host's file as PRAGMA threads allows. The caller must
** call this function before the host begins to read. Returns null if the host must read alone. */
struct readers *readers_open(struct collector *collector);
void readers_close(struct readers *readers); /* `readers` may be null */

/* Evaluates a question that is_by_row for all units at once, and adds its results to `rows`, which
** are open. `table` is the question's protected table, and `columns` the number of columns that the
** rows need: 0 if they ignore what the question gives. Uses the further connections of `readers`,
** unless it is null, and may do so once. Returns EVALUATION_DROPPED if this evaluation failed, but
** the evaluator may succeed. Sets the error if it returns EVALUATION_FAILED. */
enum evaluation row_loop_run(struct collector *collector, struct evaluator *evaluator,
                             const struct evaluator_table *table, int columns,
                             struct readers *readers, const struct rows_opener *opener,
                             struct rows *rows, struct error *error);

/* ---- the host's connection (host_checks.c) --------------------------------------------------- */

/* Checks that the connection has SQLite's own functions where the question calls them. The question
** would otherwise give something else than the same SELECT. Returns 1, or 0 with the error set. */
int own_functions_check(sqlite3 *db, const struct allowed_functions *called, struct error *error);

/* Checks that the application has not replaced BINARY, NOCASE or RTRIM. If it has, the connection
** and a question's evaluator would not agree which names of units are equal, and one person could
** count twice; and a comparison in a question would mean something else than in a SELECT. Returns
** 1, or 0 with the error set. */
int own_collations_check(sqlite3 *db, struct error *error);

/* Checks all columns of the route's tables that the question reads. `used` marks these columns for
** the first table. The unit and the links are always checked. Refuses a column whose values an
** authorizer of the host replaces with NULL. Also refuses a generated column whose computation may
** raise an error or calls a function of an application. Returns 1, or 0 with the error set. */
int safe_columns_check(sqlite3 *db, const struct route *route, const unsigned char *used,
                       struct error *error);

/* Returns whether a SELECT of one column gives the column. An authorizer may have replaced the
** column with NULL: SQLite then compiles the SELECT as it compiles `nothing`, the same SELECT of a
** NULL. Returns 0 also if one of the statements does not compile. */
int column_is_shown(sqlite3 *db, const char *select, const char *nothing);

#endif
