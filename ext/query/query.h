/* query.h: what this room offers: what the schema says about declared tables, the way of rows to
** sums/, and questions. */
#ifndef DIFFUSE_QUERY_QUERY_H
#define DIFFUSE_QUERY_QUERY_H

#include <sqlite3ext.h>

#include "ledger/ledger.h"
#include "release/release.h"
#include "sums/sums.h"

/* ---- the schema of main (schema.c) ----------------------------------------------------------- */

/* What the schema says about the tables of a policy: their columns, the marks of public tables, the
** route from the rows of each table to their units, and the foreign keys. Every question reads the
** schema again, because schemas change. */

struct row_list;

/* The affinities of columns. Each is named after a column type that has this affinity. */
enum affinity { AFFINITY_BLOB, AFFINITY_TEXT, AFFINITY_NUMERIC, AFFINITY_INTEGER, AFFINITY_REAL };

/* The collations that a declared table may use. */
enum collation { COLLATION_BINARY, COLLATION_NOCASE, COLLATION_RTRIM };

struct table_column {
  char *name, *type; /* the type as the schema declares it; '' if it declares none */
  enum affinity affinity;
  enum collation collation;
  int is_unique;  /* no two rows have the same value, under the collation of the column */
  int is_virtual; /* a generated column whose values SQLite computes whenever the column is read */
};

/* An ordinary table of main. */
struct table_facts {
  char *name; /* the name as the schema spells it */
  int root;   /* the root page */
  int without_rowid, is_strict;
  const char *rowid; /* a name of the rowid that no column has, or null */
  struct table_column *columns;
  int count;
  int *key; /* the columns of the primary key, in the order of the key */
  int key_count;
  int rowid_alias;                 /* the column that is an alias of the rowid, or -1 */
  int unique;                      /* the column to which a link may refer, or -1 */
  enum collation unique_collation; /* the collation of the unique index on that column */
  int is_unfit; /* 1: the schema was read, and main has no such table that can be declared */
};

/* Reads the facts of a table. Returns 1, or 0 with the error set. The caller must call
** table_facts_clear() in both cases. */
int table_facts_read(struct table_facts *facts, sqlite3 *db, const char *table,
                     struct error *error);

/* Does the same for a table that may be gone. Returns 1, 0 if main has no such table that can be
** declared, or -1 with the error set if the schema cannot be read. */
int table_facts_find(struct table_facts *facts, sqlite3 *db, const char *table,
                     struct error *error);
void table_facts_clear(struct table_facts *facts);

/* Returns the place of a column, or -1 if the table has no such column. */
int table_column_find(const struct table_facts *facts, const char *column);

/* Returns the text CREATE TABLE x(...) with the columns of a table and its key, or null if memory
** runs out. The virtual tables of guests and of the evaluator are declared by this text, and
** dp_public() keeps it. */
char *table_definition(const struct table_facts *facts);

enum affinity affinity_of(const char *type, int is_strict);
const char *affinity_type(enum affinity affinity);
const char *collation_name(enum collation collation);

/* ---- marks of public tables ------------------------------------------------------------------ */

/* A declaration of dp_public() holds for a table, not for its name: after ALTER TABLE or DROP TABLE
** the name can come to a table with other rows. So dp_public() marks the table with a trigger that
** does nothing, and the ledger keeps the trigger's name, which is random. SQLite keeps a trigger
** with its table through ALTER TABLE, VACUUM, a dump and a restore, and drops it with the table.
**
**   M1  A public table is read only if it has the mark and the columns that its declaration has.
**
** Reads the facts of a table that is declared as public (M1). Returns 1, or 0 with the error set.
** The caller must call table_facts_clear() in both cases. */
int public_table_read(struct table_facts *facts, sqlite3 *db,
                      const struct ledger_declaration *declaration, struct error *error);

/* Sets the definition and the mark of a declaration to those of a table. If `stored` is null or the
** table has another mark or other columns than `stored`, writes a new mark into the database. The
** caller frees both texts, also after a failure. */
int public_mark_write(struct ledger_declaration *declaration, sqlite3 *db,
                      const struct table_facts *facts, const struct ledger_declaration *stored,
                      struct error *error);

/* Removes a mark that no declaration has. A mark that stays, because the database cannot be
** written, has no meaning. */
void public_mark_drop(sqlite3 *db, const char *mark);

/* ---- routes ---------------------------------------------------------------------------------- */

/* The route from the rows of a table to their units: the table itself, then its parent, and so on.
** The unit is the column `unit` of the last table. If `unit` is -1, each row of the last table is a
** unit. */
#define ROUTE_MOST 16
struct route {
  struct table_facts tables[ROUTE_MOST];
  int links
      [ROUTE_MOST]; /* links[i]: the column of tables[i] that refers to the key of tables[i + 1] */
  int count;
  int unit;
};

/* Finds the route of a protected table, and checks that the schema still agrees with the
** declarations of its tables. Returns 1, or 0 with the error set. The caller must call
** route_clear() in both cases. */
int route_find(struct route *route, sqlite3 *db, const struct ledger_policy *policy,
               const struct ledger_declaration *declaration, struct error *error);
void route_clear(struct route *route);

/* Returns whether the schema says that no unit has two rows in the first table of a route. */
int route_is_single(const struct route *route);

/* ---- foreign keys (foreign_keys.c) ----------------------------------------------------------- */

/* Checks that a declaration, and those of the policy whose tables refer to its table, agree with
** the foreign keys:
**
**   - A column that refers to a table of units is a link to this table. Only a column that refers
**     to the unit column of its table may be the unit itself.
**   - A link has the parent, and the key of the parent, that its foreign key names.
**   - The key of a table is not the unit if another column refers to a table of units.
**   - A public table has no foreign key to a table of units, does not have the name of a unit, and
**     no column that names units refers to it.
**
** `unit` is the word for a unit, or null. Returns 1, or 0 with an error that says which declaration
** fits. */
int foreign_keys_check(sqlite3 *db, const struct ledger_policy *policy,
                       const struct ledger_declaration *asked, const char *unit,
                       struct error *error);

/* Adds a row (table, declaration, note) for each declaration that follows from the foreign keys if
** each row of `table` is a unit, and for each table that no foreign key leads to it. Returns 1, or
** 0 with the error set. */
int foreign_keys_plan(struct row_list *rows, sqlite3 *db, const char *table, struct error *error);

/* ---- the way of a row to the sums (row_reader.c) --------------------------------------------- */

/* For every aggregate. The internal aggregate dp_collect() takes the rows of a statement, which is
** faster than one sqlite3_step() for each. */

/* The place of the key, the value and the unit among the arguments or columns of a row. A place is
** -1 if the row does not have this item. */
struct columns {
  int key, value, unit;
};

struct rows;
typedef int add_sql_row(struct rows *rows, sqlite3_value **row); /* returns 0 when out of memory */

/* The rows of a kind that does not add them up (a room beside the core). open() sets rows->state
** and returns 0 if memory runs out or the system gives no random bytes. turn() says that all
** further rows are public; null: this kind has no public rows. totals() returns the totals, which
** belong to the state, or null with the error set. */
struct own_rows {
  int (*open)(struct rows *rows, const struct publication *publication);
  add_sql_row *add;
  int (*turn)(struct rows *rows, struct ledger *ledger, struct error *error);
  int128 *(*totals)(struct rows *rows, struct ledger *ledger, struct error *error);
  void (*close)(struct rows *rows);
};

struct rows {
  add_sql_row *add;       /* adds one row; null before rows_open() */
  add_sql_row *add_known; /* adds a row whose unit is known (struct unit_map) */
  /* Returns the cell of a row, CELL_NONE if the row does not count, or CELL_FAILED when out of
  ** memory. Null: there is one cell */
  int (*cell_of)(const struct rows *rows, sqlite3_value **row);
  struct unit_map *map;  /* the map from rows to units, or null */
  struct identity given; /* the unit of the next rows, if columns.unit is -1 */
  struct columns columns;
  const struct aggregate *aggregate;
  const struct contribution *question;
  struct scalar_sum numbers;  /* for releases of one sum */
  struct vector_sum *vectors; /* for all other releases; null for a release of one sum */
  /* the family's function, which adds the value of a row to its cell */
  add_to_cell *add_to_cell;
  void *state; /* of own_rows */
  /* Cross tables: the keys of each attribute. A series: the labels of periods, and the groups. */
  struct group_keys *attributes[WAYS_MAX_ATTRIBUTES];
  /* group_keys_small() of each; with keys, but without cross tables: of the keys */
  const int *small[WAYS_MAX_ATTRIBUTES];
  struct span missing; /* a series: the periods whose rows count */
  int groups;          /* a series: the number of cells of a period */
  const struct secret
      *secret;    /* the key with which texts and blobs are hashed; null if nothing is hashed */
  double *buffer; /* the vector of one row */
  const struct households *households; /* the wider units (sums/sums.h); null: none */
  int takes_any; /* a value that is not NULL counts as 1; otherwise it must be a number */
  int by_unit;   /* 0: each row is a unit of its own, or totals of shards are added up */
  int for_state; /* for the state of a shard: a unit has the same identity in all databases */
};

/* Returns the places for a caller that gives the key and the value in this order, as far as the
** release has them, and the unit as rows->given or by a map. */
struct columns columns_in_order(const struct publication *publication);

/* Starts the rows of a release whose definition is complete. A place in `columns` is -1 if the
** aggregate has no such item, or if no column names the unit. `secret` is that of other rows of the
** release, or null for a new one. Returns 1, or 0 with the error set. */
int rows_open(struct rows *rows, const struct publication *publication, struct columns columns,
              const struct secret *secret, struct error *error);
void rows_close(struct rows *rows);

/* The function that opens the rows of a question. A caller may call it again to start anew. If
** `may_repeat` is 1, a caller may also open further rows of the same release, on any thread, with
** the secret of the first rows. Otherwise `secret` is null. */
struct rows_opener {
  int (*open)(void *context, struct rows *rows, const struct secret *secret, struct error *error);
  void *context;
  int may_repeat;
  const char *after; /* the text at the end of messages about errors that occur after open() */
};

/* Sets `given` to the unit that the value of a unit column names. Texts that are equal under the
** collation are the same unit. Returns 1, or 0 when out of memory. */
int rows_give_unit(struct rows *rows, sqlite3_value *unit, enum collation collation);

/* Bounds what the units of a household count together. The table must have been made with the
** secret of `rows`, and must live as long. */
void rows_use_households(struct rows *rows, const struct households *households);

/* Add sums of a shard (sums/sums.h). rows_add_record() adds the sum of a
** unit in one slot (sums/layout.h), and rows_add_totals() adds totals. Both return 1, or 0 when out
** of memory. rows_name_cell() returns the cell of a key's text, or CELL_FAILED when out of
** memory. */
int rows_add_record(struct rows *rows, struct identity unit, uint32_t slot, const int128 *values);
int rows_add_totals(struct rows *rows, int cell, const int128 *values);
int rows_name_cell(struct rows *rows, const char *name);

/* Translates `slot` of another struct rows into a slot of `rows`. cells[i] is the cell of `rows`
** that has the key of cell i of the other struct. */
uint32_t rows_slot(const struct rows *rows, const int *cells, uint32_t slot);

/* Passes the sum of every unit in every cell to `take` (sums/sums.h). Returns 1, or 0
** if `take` returned 0 or when out of memory. */
int rows_records(struct rows *rows, take_record *take, void *context);

/* Adds the sums of `others` to `rows`. Both must belong to the same release and hash texts with the
** same secret. Returns 1, or 0 when out of memory. */
int rows_join(struct rows *rows, struct rows *others);

/* Prepares to add up rows of the same release, which have the same secret, on several threads. The
** first rows will have the sums. Returns null if rows_join() must add them up, or when out of
** memory. */
struct vector_parts *rows_parts(struct rows *const *list, int count);

/* Computes the totals and passes them to `publish`. Returns 1, or 0 with the error set. */
typedef int publish_totals(struct publication *publication, const struct totals *totals);
int rows_publish(struct rows *rows, struct publication *publication, publish_totals *publish,
                 struct error *error);

/* ---- statements that give rows --------------------------------------------------------------- */

/* The destination of the rows of a statement. */
struct collection {
  struct rows *rows;
  /* Takes a row instead of rows->add(). Returns 0 when out of memory. Null: rows->add() */
  int (*take)(struct collection *collection, sqlite3_value **row);
  int columns;
  int ended; /* dp_collect() has finished */
};

/* A connection that has dp_collect(), and the destination of its rows while a statement runs. */
struct collector {
  sqlite3 *db;
  struct collection *collecting; /* null if no statement runs */
};

/* Runs a statement that calls dp_collect() on the collector's connection. Returns SQLITE_DONE, or
** the result code of the error. Returns SQLITE_OK if the statement ended without a call of
** dp_collect(), because an authorizer of the host returned SQLITE_IGNORE for the function or for
** SELECT. */
int collector_run(struct collector *collector, sqlite3_stmt *statement,
                  struct collection *collection);

/* Registers dp_collect() for a connection. Returns an SQLite result code. SQLite calls `release`
** once: when the connection closes, or if the registration fails. */
int collector_register(struct collector *collector, void (*release)(void *collector));

/* Registers dp_collect() on a connection of the extension, and returns its collector, which then
** owns the connection. Closes the connection and returns null when out of memory.
** private_collector_close() accepts null. */
struct collector *private_collector_new(sqlite3 *db);
void private_collector_close(struct collector *collector);

/* ---- the unit of each row -------------------------------------------------------------------- */

/* Finds the unit of each row of a protected table. A row names its unit in a column, or has a link
** to a row of another table that leads to the unit. */
struct unit_map {
  sqlite3 *db;
  sqlite3_stmt *lookup;     /* finds the unit to which the link ?1 leads; null: rows have no link */
  sqlite3_stmt *parents;    /* the query for the key and unit of every parent row; may be null */
  int is_whole;             /* `parents` has ended */
  struct known_link *known; /* a hash table with `room` entries, of which `count` are used */
  size_t room, count;
  int is_mixed; /* the entries are in an order that depends on a secret; 0: in the order of keys */
  enum collation collation;
  int by_row;     /* each row is a unit, so no column names the unit */
  int64_t number; /* the number of rows so far, if each row is a unit */
  int place;      /* the index of the column with the unit or the link */
  int rc;         /* SQLITE_OK, or the code with which a lookup failed */
};

/* Starts a map for the rows of the first table of a route. The lookups run on `db` while a
** statement reads the rows, and see the same state of the database. The caller must call
** unit_map_close(), even after an error. */
int unit_map_open(struct unit_map *map, sqlite3 *db, const struct route *route,
                  struct error *error);
void unit_map_close(struct unit_map *map);

/* Makes rows->add() find the unit of each row with the map, and leave out rows that belong to no
** unit. The unit column of `rows` holds the unit or the link. */
void unit_map_use(struct unit_map *map, struct rows *rows);

/* ---- states of shards (shard_rows.c) --------------------------------------------------------- */

/* Starts the rows of a request after request_finish(), for a shard or for a merge. A shard's rows
** have units (`by_unit`), and so do those of a merge, unless dp_partial() has bounded the sums of
** each unit already (whole_units). Fills `description`, which must outlive the rows, as must the
** request. Returns 1, or 0 with the error set. */
int shard_rows_start(struct rows *rows, struct publication *description,
                     const struct request *request, int by_unit, struct error *error);

/* Writes the sums of the rows as a state. The caller owns writer->bytes. Returns 1, or 0 with the
** error set. */
int shard_rows_write(struct rows *rows, const struct shard_label *label,
                     struct shard_state_writer *writer, struct error *error);

/* Adds a state to the rows. The state must have the same parameters as the rows. Returns 1, or 0
** with the error set. */
int shard_rows_add(struct rows *rows, struct shard_state *state, struct error *error);

/* ---- questions (question.c) ------------------------------------------------------------------ */

/* A question is the query of a dp_release(), which is evaluated for each unit separately. The
** result for a unit is the contribution of that unit.
**
** Requirements, which the tests cite:
**   U1  For any query, the rows of one unit cannot change the contribution of another unit.
**   U2  A question reads only declared tables. A row that belongs to no unit contributes nothing.
**   U3  All statements read the same state of the database, the state that the host's connection
**       sees.
**   U4  A question that cannot be evaluated is refused before anything is charged. */
struct question;

/* Compiles the question of a request, request->sql, and begins to read the database. If public rows
** follow the rows of the question (procedure->publics), the text has a second SELECT, which gives
** them. A release is charged afterwards, so this does what may fail before rows are read. Returns
** 1, or 0 with the error set. The caller must call question_close(), even after an error. */
int question_open(struct question **question, struct collector *collector, struct ledger *ledger,
                  const struct request *request, struct error *error);
void question_close(struct question *question);

/* Returns the tables of the question as JSON, for example {"visit":"protected","ward":"public"}.
** The caller frees the text with sqlite3_free(). */
char *question_tables(const struct question *question);

/* Returns the affinity and collation of the columns that name units, for example "TEXT NOCASE".
** Under another type, the same unit may have another value, and another identity. The caller frees
** the text with sqlite3_free(). */
char *question_unit_type(const struct question *question);

/* Returns the notice about the question (question_text.c), which may be empty. The caller frees the
** text with sqlite3_free(). */
char *question_notice(const struct question *question, const struct aggregate *aggregate);

/* Opens `rows`, evaluates the query for each unit within the limits of the request, and adds the
** results to `rows`. Returns 1, or 0 with the error set. The caller closes `rows` in both cases. */
int question_run(struct question *question, const struct rows_opener *opener, struct rows *rows,
                 struct error *error);

/* ---- limits ---------------------------------------------------------------------------------- */

/* What ends a question early. The options of dp_release() and of a grant set the limits:
**   steps    A unit with r rows whose evaluation takes more than steps * (1 + r) steps of SQLite's
**            virtual machine contributes nothing.
**   bytes    A unit whose evaluation needs more memory contributes nothing.
**   seconds  A question that takes longer fails, and its charge stays.
**
** Steps and bytes are counted for each unit alone, from its rows, the public tables and the text of
** the question, so other units never decide whether a unit contributes (Q1, Q2 in internal.h).
** Seconds are not: whether a question fails for want of time is a fact about all units together. */
struct question_limits {
  double steps, bytes;
  double seconds; /* INFINITY: no limit */
};

/* ---- functions that a question may use (question_text.c) ------------------------------------- */

#define MOST_FUNCTIONS 256

/* For each function of the list in question_text.c, whether a connection may use it. */
struct allowed_functions {
  unsigned char own[MOST_FUNCTIONS]; /* 1: the connection has SQLite's own function */
};

/* Finds out which functions of the list a connection may use. Returns an SQLite result code. */
int allowed_functions_read(struct allowed_functions *functions, sqlite3 *db);

/* Returns whether the list contains the name and the connection may use the function. */
int function_is_allowed(const struct allowed_functions *functions, const char *name);

/* ---- operators IN (question_text.c) ---------------------------------------------------------- */

/* Returns 0 only if no running statement of a connection has an operator IN that SQLite reports to
** virtual tables as an equality and of which sqlite3_vtab_in() does not tell. */
int runs_hidden_in(sqlite3 *db);

/* ---- the text of the executing statement (find_call.c) ---------------------------------- */

/* An aggregate stands for a question: the innermost SELECT around its call in the text of the
** statement that executes it, with what the call gives from each row as the result list. */
struct asked_statement;

/* How much of a bound value SQLite shows: all, the first 15 digits of a real number, or the first
** bytes of a text or blob (where it was built to shorten them, as the driver of Go does); or all,
** but where its text would be the place of a column. */
enum visible { SHOWN_WHOLE, SHOWN_15_DIGITS, SHOWN_FIRST_BYTES, SHOWN_AS_PLACE };

/* A call: the index of the token that is the name of the function, and the number of arguments. */
struct asked_call {
  int name, arguments;
};

/* Finds the executing statement of a connection whose text calls a function, and reads its text
** with the values that are bound to it. (Of a bound text, SQLite shows what stands before the first
** zero byte.) Sets *found, which the caller closes, even after an error. Returns 1, or 0 with the
** error set. */
int asked_statement_find(struct asked_statement **found, sqlite3 *db, const char *function,
                         struct error *error);
void asked_statement_close(struct asked_statement *statement);

/* Returns whether values were bound to the statement. */
int asked_statement_has_values(const struct asked_statement *statement);

/* Finds the next call of a function. *call is {-1, 0} at first. Returns 0 if there is no further
** call. */
int asked_call_next(const struct asked_statement *statement, const char *function,
                    struct asked_call *call);

/* Evaluates an argument of a call by its text, on a private connection without tables. Returns its
** value, which the caller frees with sqlite3_value_free(), or null if it is no constant: it names a
** column or a table, uses a function that a question may not use, or fails. Sets *message then to
** SQLite's, which is valid until the next call, or to null when out of memory.
**
** Sets *shown to how much the text shows of the values that are bound in the argument, and
** *is_alone to whether the argument has no other token. */
sqlite3_value *asked_value(const struct asked_statement *statement, const struct asked_call *call,
                           int argument, enum visible *shown, int *is_alone, const char **message);

/* Returns the question of a call, whose result list has the arguments key and value, each of which
** may be 0 if the call has none. `keyed` is the name of the function with keys, for messages.
** The caller frees the text. Returns null with the error set. */
char *asked_question(const struct asked_statement *statement, const struct asked_call *call,
                     int key, int value, const char *keyed, struct error *error);

/* Says that a value is not shown as a whole. Always returns 0. */
int asked_not_shown(enum visible shown, struct error *error);

/* Returns whether the call stands in the outermost SELECT, so that SQLite executes it once. */
int asked_call_is_outermost(const struct asked_statement *statement, const struct asked_call *call);

/* Returns whether the running statement certainly executes its call of a scalar function once:
** there is one call, and beside it there are only words of a list, which no WHERE or WITH is on,
** and no FROM but in SELECT * FROM (...) and SELECT names FROM json_each(...). */
int asked_once(sqlite3 *db, const char *function);

#endif
