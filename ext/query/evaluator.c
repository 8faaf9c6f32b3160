/* evaluator.c: the evaluator (internal.h) and its connection: files in memory, what a question may
** use, compiling and running. Tests: tests/query/test_questions.py,
** tests/query/test_question_limits.py, tests/query/test_question_rules.py */
#include "query/internal.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/own_connection.h"
#include "base/sql_text.h"

SQLITE_EXTENSION_INIT3

/* SQLITE_PREPARE_DONT_LOG of SQLite 3.48 and newer: a missing table, which is then added, does not
** appear in the error log of the application. Older versions ignore the flag, so add_named() leaves
** them little to miss. */
#define DONT_LOG 0x10

#define MOST_TABLES       64
#define LONGEST_VALUE     1000000
#define MOST_INSTRUCTIONS 100000
#define TICK              1000 /* the number of steps between two checks of the limit */
#define TICKS_PER_LOOK    64   /* how many ticks pass between two checks for an interrupt */

/* ---- files of SQLite's sorters and temporary tables ------------------------------------------ */

#define BLOCK 65536

/* A file in memory. A budget counts its bytes together with other memory. */
struct temporary_file {
  sqlite3_file base;
  struct memory_budget *budget; /* outlives the file */
  unsigned char **blocks;
  size_t count, room; /* numbers of blocks */
  sqlite3_int64 size;
};

/* Adds bytes to those that are used. Returns 0 if this exceeds the budget. */
static int memory_budget_take(struct memory_budget *budget, double bytes) {
  budget->used += bytes;
  if (budget->used > budget->most) budget->is_exceeded = 1;
  return !budget->is_exceeded;
}

/* Frees the blocks from number `count` on. */
static void cut(struct temporary_file *file, size_t count) {
  while (file->count > count) {
    sqlite3_free(file->blocks[--file->count]);
    file->budget->used -= BLOCK;
  }
}

static int close_file(sqlite3_file *base) {
  struct temporary_file *file = (struct temporary_file *)base;
  cut(file, 0);
  free(file->blocks);
  return SQLITE_OK;
}

/* Copies bytes from or to the blocks, which must exist. */
static void copy(const struct temporary_file *file, char *bytes, int count, sqlite3_int64 offset,
                 int is_write) {
  while (count > 0) {
    size_t place = (size_t)(offset % BLOCK), size = BLOCK - place;
    unsigned char *block = file->blocks[offset / BLOCK] + place;
    if (size > (size_t)count) size = (size_t)count;
    if (is_write) {
      memcpy(block, bytes, size);
    } else {
      memcpy(bytes, block, size);
    }
    bytes += size;
    offset += (sqlite3_int64)size;
    count -= (int)size;
  }
}

static int read_file(sqlite3_file *base, void *bytes, int count, sqlite3_int64 offset) {
  const struct temporary_file *file = (struct temporary_file *)base;
  sqlite3_int64 left = offset < file->size ? file->size - offset : 0;
  int have = left < count ? (int)left : count;
  copy(file, bytes, have, offset, 0);
  memset((char *)bytes + have, 0, (size_t)(count - have));
  return have == count ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static int add_block(struct temporary_file *file) {
  if (!memory_budget_take(file->budget, BLOCK)) {
    file->budget->used -= BLOCK;
    return SQLITE_FULL;
  }
  if (file->count == file->room) {
    size_t room = file->room * 2 + 16;
    unsigned char **blocks = realloc(file->blocks, sizeof *blocks * room);
    if (!blocks) return SQLITE_IOERR_NOMEM;
    file->blocks = blocks;
    file->room = room;
  }
  unsigned char *block = sqlite3_malloc(BLOCK); /* it counts for SQLite's hard heap limit */
  if (!block) return SQLITE_IOERR_NOMEM;
  memset(block, 0, BLOCK);
  file->blocks[file->count++] = block;
  return SQLITE_OK;
}

static int write_file(sqlite3_file *base, const void *bytes, int count, sqlite3_int64 offset) {
  struct temporary_file *file = (struct temporary_file *)base;
  int rc = SQLITE_OK;
  while (rc == SQLITE_OK && (sqlite3_int64)file->count * BLOCK < offset + count)
    rc = add_block(file);
  if (rc != SQLITE_OK) return rc;
  copy(file, (char *)bytes, count, offset, 1);
  if (offset + count > file->size) file->size = offset + count;
  return SQLITE_OK;
}

static int truncate_file(sqlite3_file *base, sqlite3_int64 size) {
  struct temporary_file *file = (struct temporary_file *)base;
  if (size < file->size) file->size = size;
  cut(file, (size_t)((file->size + BLOCK - 1) / BLOCK));
  size_t end = (size_t)(file->size % BLOCK); /* bytes after the end are zeros */
  if (end) memset(file->blocks[file->count - 1] + end, 0, BLOCK - end);
  return SQLITE_OK;
}

static int size_of_file(sqlite3_file *base, sqlite3_int64 *size) {
  *size = ((struct temporary_file *)base)->size;
  return SQLITE_OK;
}

/* For xSync, xLock and xUnlock. */
static int nothing(sqlite3_file *base, int flags) {
  (void)base, (void)flags;
  return SQLITE_OK;
}

static int is_reserved(sqlite3_file *base, int *out) {
  (void)base;
  *out = 0;
  return SQLITE_OK;
}

static int control(sqlite3_file *base, int operation, void *argument) {
  (void)base, (void)operation, (void)argument;
  return SQLITE_NOTFOUND;
}

static int characteristics(sqlite3_file *base) {
  (void)base;
  return 0;
}

/* ---- the file system ------------------------------------------------------------------------- */

/* Opens an empty file without a name, which SQLite deletes when it closes it. A write that exceeds
** the budget fails with SQLITE_FULL. */
static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out) {
  static const sqlite3_io_methods methods = {.iVersion = 1,
                                             .xClose = close_file,
                                             .xRead = read_file,
                                             .xWrite = write_file,
                                             .xTruncate = truncate_file,
                                             .xSync = nothing,
                                             .xFileSize = size_of_file,
                                             .xLock = nothing,
                                             .xUnlock = nothing,
                                             .xCheckReservedLock = is_reserved,
                                             .xFileControl = control,
                                             .xDeviceCharacteristics = characteristics};
  struct private_memory *memory = vfs->pAppData;
  file->pMethods = 0;
  if (name) return SQLITE_CANTOPEN;
  *(struct temporary_file *)file =
      (struct temporary_file){.base = {&methods}, .budget = &memory->budget};
  if (out) *out = flags;
  return SQLITE_OK;
}

static int no_delete(sqlite3_vfs *vfs, const char *name, int sync) {
  (void)vfs, (void)name, (void)sync;
  return SQLITE_IOERR_DELETE;
}

static int no_access(sqlite3_vfs *vfs, const char *name, int flags, int *result) {
  (void)vfs, (void)name, (void)flags;
  *result = 0;
  return SQLITE_OK;
}

static int no_path(sqlite3_vfs *vfs, const char *name, int size, char *path) {
  (void)vfs;
  sqlite3_snprintf(size, path, "%s", name);
  return SQLITE_OK;
}

static int no_randomness(sqlite3_vfs *vfs, int size, char *bytes) {
  (void)vfs;
  memset(bytes, 0, (size_t)size);
  return size;
}

static int no_sleep(sqlite3_vfs *vfs, int microseconds) {
  (void)vfs;
  return microseconds;
}

static int give_moment(sqlite3_vfs *vfs, sqlite3_int64 *now) {
  *now = ((struct private_memory *)vfs->pAppData)->moment;
  return SQLITE_OK;
}

/* Reads the time from the host's file system. */
static int read_moment(sqlite3_int64 *moment) {
  sqlite3_vfs *vfs = sqlite3_vfs_find(0);
  double days = 0;
  if (!vfs) return 0;
  if (vfs->iVersion >= 2 && vfs->xCurrentTimeInt64)
    return vfs->xCurrentTimeInt64(vfs, moment) == SQLITE_OK;
  if (!vfs->xCurrentTime || vfs->xCurrentTime(vfs, &days) != SQLITE_OK) return 0;
  *moment = (sqlite3_int64)(days * 86400000.0);
  return 1;
}

int private_memory_open(struct private_memory *memory, sqlite3 **db, struct error *error) {
  int flags =
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_MEMORY;
  *db = 0;
  if (!read_moment(&memory->moment)) return error_set(error, "the system gave no time");
  memory->vfs = (sqlite3_vfs){.iVersion = 2,
                              .szOsFile = sizeof(struct temporary_file),
                              .mxPathname = 512,
                              .zName = memory->name,
                              .pAppData = memory,
                              .xOpen = open_file,
                              .xDelete = no_delete,
                              .xAccess = no_access,
                              .xFullPathname = no_path,
                              .xRandomness = no_randomness,
                              .xSleep = no_sleep,
                              .xCurrentTimeInt64 = give_moment};
  sqlite3_snprintf(sizeof memory->name, memory->name, "diffuse-%p", (void *)memory);
  int rc = sqlite3_vfs_register(&memory->vfs, 0);
  if (rc == SQLITE_OK) {
    rc = own_connection_open(db, ":memory:", flags, memory->name);
    sqlite3_vfs_unregister(&memory->vfs); /* the open connection keeps the VFS */
  }
  return rc == SQLITE_OK || error_set(error, "cannot open a connection in memory");
}

/* ---- tables and functions that a question may use (Q3) --------------------------------------- */

static int table_named(const struct evaluator *evaluator, const char *name) {
  for (int i = 0; i < evaluator->tables.count; i++)
    if (sqlite3_stricmp(evaluator->tables.list[i].route.tables[0].name, name) == 0) return i;
  return -1;
}

static int view_named(const struct evaluator *evaluator, const char *name) {
  for (int i = 0; i < evaluator->view_count; i++)
    if (sqlite3_stricmp(evaluator->views[i], name) == 0) return i;
  return -1;
}

static int deny(struct evaluator *evaluator, const char *what, const char *name) {
  /* Advice: Random numbers, counters, functions of the application and tables of other databases
     may differ between units, or are not known there. */
  if (!evaluator->denied)
    evaluator->denied = sqlite3_mprintf("a question cannot use %s%s%s%s", what, name ? " '" : "",
                                        name ? name : "", name ? "'" : "");
  return SQLITE_DENY;
}

/* Allows a question to read declared tables, views over declared tables, json_each and json_tree.
** When a question counts the rows of a common table expression, SQLite asks for permission to read
** a table with the name of the expression, without a column and without a schema. This is also
** allowed. */
static int authorize_read(struct evaluator *evaluator, const char *table, const char *column,
                          const char *schema) {
  int number = table ? table_named(evaluator, table) : -1;
  if (!table) return deny(evaluator, "an unknown table", 0);
  if (number >= 0) {
    struct evaluator_table *named = &evaluator->tables.list[number];
    int place = column && *column ? table_column_find(&named->route.tables[0], column) : -1;
    if (place >= 0) named->used[place] |= COLUMN_NAMED;
    return SQLITE_OK;
  }
  if (view_named(evaluator, table) >= 0 || sqlite3_stricmp(table, "json_each") == 0 ||
      sqlite3_stricmp(table, "json_tree") == 0)
    return SQLITE_OK;
  if (!schema && (!column || !*column) && sqlite3_strnicmp(table, "sqlite_", 7) != 0 &&
      sqlite3_strnicmp(table, "pragma_", 7) != 0)
    return SQLITE_OK;
  return deny(evaluator, "table", table);
}

static int authorize(void *context, int action, const char *first, const char *second,
                     const char *schema, const char *inner) {
  (void)inner;
  struct evaluator *evaluator = context;
  if (evaluator->is_building) return SQLITE_OK;
  switch (action) {
  case SQLITE_SELECT: evaluator->selects++; return SQLITE_OK;
  case SQLITE_RECURSIVE: evaluator->is_recursive = 1; return SQLITE_OK;
  case SQLITE_READ: return authorize_read(evaluator, first, second, schema);
  case SQLITE_FUNCTION:
    if (!second || !function_is_allowed(&evaluator->functions, second))
      return deny(evaluator, "the function", second);
    function_note(&evaluator->used, second);
    return SQLITE_OK;
  default: return deny(evaluator, "anything but SELECT", 0);
  }
}

/* ---- setting up ------------------------------------------------------------------------------ */

/* Returns the first column of the first row of a statement, or null if the statement gives no text.
** The caller frees the text. */
static char *text_from(sqlite3 *db, const char *sql) {
  sqlite3_stmt *row = 0;
  char *text = 0;
  if (sqlite3_prepare_v2(db, sql, -1, &row, 0) == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW &&
      sqlite3_column_type(row, 0) != SQLITE_NULL)
    text = sqlite3_mprintf("%s", sqlite3_column_text(row, 0));
  sqlite3_finalize(row); /* a statement that fails gives no text */
  return text;
}

/* Copies the host's encoding of texts, because the encoding affects max() and casts of blobs. */
static int set_encoding(struct evaluator *evaluator, struct error *error) {
  char *wanted = text_from(evaluator->host, "PRAGMA main.encoding");
  char *sql = wanted ? sqlite3_mprintf("PRAGMA encoding = \"%w\"", wanted) : 0;
  if (sql) sqlite3_exec(evaluator->db, sql, 0, 0, 0);
  char *now = text_from(evaluator->db, "PRAGMA encoding");
  int same = wanted && now && strcmp(wanted, now) == 0;
  evaluator->is_utf8 = same && strcmp(now, "UTF-8") == 0;
  sqlite3_free(wanted);
  sqlite3_free(sql);
  sqlite3_free(now);
  return same ? 1 : error_set(error, "cannot evaluate in the encoding of the database");
}

static void set_limits(sqlite3 *db) {
  static const int limits[][2] = {{SQLITE_LIMIT_LENGTH, LONGEST_VALUE},
                                  {SQLITE_LIMIT_SQL_LENGTH, 1000000},
                                  {SQLITE_LIMIT_COLUMN, 2000},
                                  {SQLITE_LIMIT_EXPR_DEPTH, 1000},
                                  {SQLITE_LIMIT_COMPOUND_SELECT, 100},
                                  {SQLITE_LIMIT_VDBE_OP, MOST_INSTRUCTIONS},
                                  {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100},
                                  {SQLITE_LIMIT_ATTACHED, 0},
                                  {SQLITE_LIMIT_WORKER_THREADS, 0}};
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
    sqlite3_limit(db, limits[i][0], limits[i][1]);
}

/* SQLITE_DBCONFIG_FP_DIGITS of new SQLite versions: how many digits the text of a real has */
#define FP_DIGITS 1023

/* SQLite calls this function after every TICK steps. The count of steps starts at the same number
** in every run. */
static int look_at_limits(void *context) {
  struct evaluator *evaluator = context;
  evaluator->ticks += 1;
  evaluator->exceeded = evaluator->ticks >= evaluator->most_ticks;
  if ((uint64_t)evaluator->ticks % TICKS_PER_LOOK == 0 && evaluator->is_interrupted)
    evaluator->interrupted = evaluator->is_interrupted(evaluator->context);
  return evaluator->exceeded || evaluator->interrupted;
}

static int set_up(struct evaluator *evaluator, struct error *error) {
  static const char *const kept[] = {"json_each", "json_tree", 0};
  sqlite3 *db;
  if (!private_memory_open(&evaluator->memory, &evaluator->db, error)) return 0;
  db = evaluator->db;
  char *tables = text_from(db, "SELECT (SELECT count(*) FROM main.sqlite_master) +"
                               " (SELECT count(*) FROM temp.sqlite_master)");
  int is_empty = tables && strcmp(tables, "0") == 0;
  sqlite3_free(tables);
  if (!is_empty)
    return error_set(error,
                     "an extension that is loaded for every connection makes tables (remove it)");
  if (!set_encoding(evaluator, error)) return 0;
  set_limits(db);
  /* A name in double quotes is the name of a column, never a text (own_connection_open()): SQLite
  ** would take a misspelt column for a text. The number of digits in the text of a real is the
  ** host's. */
  int digits = 0;
  if (sqlite3_db_config(evaluator->host, FP_DIGITS, 0, &digits) == SQLITE_OK) {
    sqlite3_db_config(db, FP_DIGITS, digits, (int *)0);
    evaluator->tables.searches_nothing = digits < 15; /* hashes take 15 for granted */
  }
  sqlite3_exec(db, "PRAGMA temp_store = FILE; PRAGMA main.cache_size = -2000", 0, 0, 0);
  if (allowed_functions_read(&evaluator->functions, db) != SQLITE_OK)
    return error_set_memory(error);
  sqlite3_drop_modules(db, (const char **)kept);
  if (evaluator_tables_register(db, &evaluator->tables) != SQLITE_OK)
    return error_set_memory(error);
  /* SQLite before 3.41 asks the authorizer for more than a read when a connection first uses
  ** json_each or json_tree. So use both here, before the authorizer is set. */
  sqlite3_exec(db, "SELECT 1 FROM json_each('[]'); SELECT 1 FROM json_tree('[]')", 0, 0, 0);
  evaluator->counts_steps = 1;
#ifndef SQLITE_CORE /* SQLite puts null for a function that it was built without */
  if (!sqlite3_api->set_authorizer)
    return error_set(error,
                     "this SQLite has no authorizer, without which no question is evaluated");
  evaluator->counts_steps = sqlite3_api->progress_handler != 0;
#endif
  if (evaluator->counts_steps) sqlite3_progress_handler(db, TICK, look_at_limits, evaluator);
  if (sqlite3_set_authorizer(db, authorize, evaluator) == SQLITE_OK) return 1;
  return error_set(error, "cannot limit what a question may do");
}

/* ---- the tables that a question names -------------------------------------------------------- */

static int run_own(struct evaluator *evaluator, const char *sql) {
  evaluator->is_building = 1;
  int rc = sql ? sqlite3_exec(evaluator->db, sql, 0, 0, 0) : SQLITE_NOMEM;
  evaluator->is_building = 0;
  return rc;
}

static int add_table(struct evaluator *evaluator, const struct ledger_declaration *declaration,
                     struct error *error) {
  int number = evaluator->tables.count;
  if (number == MOST_TABLES)
    return error_set(error, "the question names more than %d tables", number);
  struct evaluator_table *table = &evaluator->tables.list[number];
  evaluator->tables.count++;
  table->declaration = declaration;
  int going = 1;
  if (declaration->role == POLICY_PUBLIC) {
    table->route.count = 1;
    going = public_table_read(&table->route.tables[0], evaluator->host, declaration, error);
  } else {
    going = route_find(&table->route, evaluator->host, evaluator->policy, declaration, error);
  }
  if (!going) return 0;
  const struct table_facts *facts = &table->route.tables[0];
  table->used = calloc((size_t)facts->count + 1, 1);
  table->places = calloc((size_t)facts->count + 1, sizeof *table->places);
  table->rows.columns = facts->count;
  if (!table->used || !table->places) return error_set_memory(error);
  for (int i = 0; facts->without_rowid && i < facts->key_count; i++)
    table->used[facts->key[i]] = COLUMN_READ;
  char *sql = sqlite3_mprintf("CREATE VIRTUAL TABLE main.\"%w\" USING " EVALUATOR_MODULE "(%d)",
                              facts->name, number);
  int rc = run_own(evaluator, sql);
  sqlite3_free(sql);
  if (rc == SQLITE_OK) return 1;
  return error_set(error, "cannot evaluate questions about table '%s': %s", facts->name,
                   sqlite3_errmsg(evaluator->db));
}

static int add_named(struct evaluator *evaluator, const char *sql, struct error *error);

/* Copies a view from the host's schema main to the evaluator's connection. Sets *is_there to
** whether main has the view. */
static int add_view(struct evaluator *evaluator, const char *name, int *is_there,
                    struct error *error) {
  char *sql;
  int added = schema_text(evaluator->host, "view", name, &sql, error);
  *is_there = sql != 0;
  if (added && sql) {
    evaluator->tables.searches_nothing |= has_hidden_in(sql);
    if (evaluator->view_count == EVALUATOR_MOST_VIEWS) {
      added = error_set(error, "the question leads to more than %d views", EVALUATOR_MOST_VIEWS);
    } else if (!(evaluator->views[evaluator->view_count++] = sqlite3_mprintf("%s", name)) ||
               !(evaluator->texts = sqlite3_mprintf("%z;%s", evaluator->texts, sql))) {
      added = error_set_memory(error);
    } else if (run_own(evaluator, sql) != SQLITE_OK) {
      added =
          error_set(error, "cannot evaluate view '%s': %s", name, sqlite3_errmsg(evaluator->db));
    } else {
      added = add_named(evaluator, sql, error);
    }
  }
  sqlite3_free(sql);
  return added;
}

/* Adds a declared table or a view. Sets *is_there to whether the name is that of one. */
static int add_known(struct evaluator *evaluator, const char *name, int *is_there,
                     struct error *error) {
  const struct ledger_declaration *declaration = ledger_policy_find(evaluator->policy, name);
  *is_there = table_named(evaluator, name) >= 0 || view_named(evaluator, name) >= 0 || declaration;
  if (declaration && table_named(evaluator, name) < 0)
    return add_table(evaluator, declaration, error);
  return *is_there || !evaluator->policy->admits_views ||
         add_view(evaluator, name, is_there, error);
}

/* Adds the tables and views whose names follow FROM or JOIN. In a text with WITH such a name may be
** that of a common table expression. compile() adds what this leaves out. */
static int add_named(struct evaluator *evaluator, const char *sql, struct error *error) {
  char *name = 0;
  int added = 1, is_there;
  while (added && !has_word("WITH", sql) && sql_next_source(&sql, &name)) {
    added = name ? add_known(evaluator, name, &is_there, error) : error_set_memory(error);
    sqlite3_free(name);
  }
  return added;
}

/* Returns the name at the end of a message of SQLite that begins so, or null. */
static const char *missing(const char *message, const char *start) {
  size_t length = strlen(start);
  return strncmp(message, start, length) == 0 ? message + length : 0;
}

/* Adds a table or view that was missing when SQLite compiled the question. Nothing else adds
** tables, so the evaluator's connection has only tables that the question names. SQLite reports a
** missing table before it optimises, so even a table that the optimiser would drop is added. */
static int add_missing(struct evaluator *evaluator, const char *name, struct error *error) {
  int is_there;
  if (table_named(evaluator, name) >= 0 || view_named(evaluator, name) >= 0)
    return error_set(error, "cannot compile sql: no such table: %s", name);
  if (!add_known(evaluator, name, &is_there, error)) return 0;
  if (is_there) return 1;
  struct known_names known = {.asked = name};
  for (int i = 0; i < evaluator->policy->count; i++)
    known_names_add(&known, evaluator->policy->list[i].table);
  const char *nearest = known_names_nearest(&known);
  return error_set(error,
                   "table '%s' is neither protected nor public, so a question cannot read it "
                   "(%s%s%sdeclare it with dp_protect() or dp_public())",
                   name, nearest ? "did you mean '" : "", nearest ? nearest : "",
                   nearest ? "'? if not, " : "");
}

/* ---- compiling ------------------------------------------------------------------------------- */

/* SQLite reports a program that is longer than the limit as a lack of memory. The function compiles
** the question again without the limit. */
static int is_too_long(const struct evaluator *evaluator) {
  sqlite3_stmt *statement = 0;
  if (sqlite3_errcode(evaluator->db) != SQLITE_NOMEM) return 0;
  sqlite3_limit(evaluator->db, SQLITE_LIMIT_VDBE_OP, INT_MAX);
  int rc = sqlite3_prepare_v2(evaluator->db, evaluator->sql, -1, &statement, 0);
  sqlite3_finalize(statement); /* it never ran */
  sqlite3_limit(evaluator->db, SQLITE_LIMIT_VDBE_OP, MOST_INSTRUCTIONS);
  return rc == SQLITE_OK;
}

/* Reports SQLite's message. If a column is missing, asks whether the nearest column was meant. */
static int cannot_compile(const struct evaluator *evaluator, const char *message,
                          struct error *error) {
  const char *name = missing(message, "no such column: ");
  const char *last = name ? strrchr(name, '.') : 0;
  struct known_names known = {.asked = last ? last + 1 : name};
  const struct evaluator_tables *tables = &evaluator->tables;
  for (int i = 0; name && i < tables->count; i++)
    for (int j = 0; j < tables->list[i].route.tables[0].count; j++)
      known_names_add(&known, tables->list[i].route.tables[0].columns[j].name);
  const char *nearest = known_names_nearest(&known);
  if (name && !nearest)
    return error_set(error,
                     "cannot compile sql: %s (a text stands in single quotes, and these are "
                     "doubled inside another text)",
                     message);
  if (missing(message, "no such index: "))
    return error_set(error,
                     "cannot compile sql: %s (leave INDEXED BY out: a question is evaluated on "
                     "rows in memory, which have no index)",
                     message);
  return error_set(error, "cannot compile sql: %s%s%s%s", message,
                   nearest ? " (did you mean '" : "", nearest ? nearest : "", nearest ? "'?)" : "");
}

static int compile(struct evaluator *evaluator, const char *sql, const char **tail,
                   struct error *error) {
  for (;;) {
    sqlite3_free(evaluator->denied);
    evaluator->denied = 0;
    evaluator->used = (struct allowed_functions){{0}};
    evaluator->selects = evaluator->is_recursive = 0;
    if (sqlite3_prepare_v3(evaluator->db, sql, -1, DONT_LOG, &evaluator->statement, tail) ==
        SQLITE_OK)
      return 1;
    char *message = sqlite3_mprintf("%s", sqlite3_errmsg(evaluator->db));
    const char *name = message && !evaluator->denied ? missing(message, "no such table: ") : 0;
    int going = 0;
    if (name) {
      going =
          add_missing(evaluator, sqlite3_strnicmp(name, "main.", 5) == 0 ? name + 5 : name, error);
    } else if (evaluator->denied) {
      error_set(error, "%s", evaluator->denied);
    } else if (is_too_long(evaluator)) {
      error_set(error, "sql compiles to more than %d instructions (ask a shorter question)",
                MOST_INSTRUCTIONS);
    } else {
      cannot_compile(evaluator, sqlite3_errmsg(evaluator->db), error);
    }
    sqlite3_free(message);
    if (!going) return 0;
  }
}

static int check_statement(struct evaluator *evaluator, const char *tail, int columns,
                           int admits_more, const char *names, struct error *error) {
  sqlite3_stmt *statement = evaluator->statement, *second = 0;
  if (!statement || sqlite3_stmt_isexplain(statement) || !sqlite3_stmt_readonly(statement))
    return error_set(error, "sql must be one SELECT that only reads");
  if (sqlite3_bind_parameter_count(statement) > 0)
    return error_set(error, "sql cannot have parameters (write values into its text, as with "
                            "printf('... = %%Q', value))");
  int failed = sqlite3_prepare_v2(evaluator->db, tail, -1, &second, 0) != SQLITE_OK || second;
  sqlite3_finalize(second); /* this statement never ran, so it has no error to report */
  if (failed) return error_set(error, "sql must be one statement, but more follows");
  evaluator->columns = sqlite3_column_count(statement);
  if (admits_more ? evaluator->columns < columns : evaluator->columns != columns)
    return error_set(error, "sql must give %d column%s (%s), not %d; the policy names the unit%s",
                     columns, columns > 1 ? "s" : "", names, evaluator->columns,
                     strncmp(names, "key", 3) != 0 || evaluator->columns < columns ? ""
                     : columns == 1 && has_word("count", evaluator->sql)
                         ? ", and the kind counts the rows itself (write 'SELECT key FROM ...', "
                           "without count(*) and GROUP BY)"
                         : ", and a key of several columns is json_array(a, b)");
  return 1;
}

/* The role of a table, for row_text_read(). */
static int role_of(const void *context, const char *name) {
  const struct evaluator *evaluator = context;
  int number = table_named(evaluator, name);
  return number < 0 ? -1 : evaluator->tables.list[number].declaration->role == POLICY_PROTECTED;
}

int evaluator_open(struct evaluator **out, sqlite3 *host, const struct ledger_policy *policy,
                   const char *sql, int columns, int admits_more, const char *names,
                   const char **rest, struct error *error) {
  struct evaluator *evaluator = *out = calloc(1, sizeof *evaluator);
  char word[8];
  const char *tail = 0;
  first_word(sql, word);
  if (!evaluator) return error_set_memory(error);
  evaluator->host = host;
  evaluator->policy = policy;
  evaluator->sql = sql;
  evaluator->tables.list = calloc(MOST_TABLES, sizeof *evaluator->tables.list);
  evaluator->texts = sqlite3_mprintf("%s", sql);
  if (!evaluator->tables.list || !evaluator->texts) return error_set_memory(error);
  if (strcmp(word, "SELECT") != 0 && strcmp(word, "WITH") != 0 && strcmp(word, "VALUES") != 0)
    return error_set(error, "sql must be one SELECT that only reads");
  int going = set_up(evaluator, error);
  evaluator->tables.searches_nothing |= has_hidden_in(sql);
  if (going) going = add_named(evaluator, sql, error);
  if (going) going = compile(evaluator, sql, &tail, error);
  int is_one_select = evaluator->selects == 1 && !evaluator->is_recursive;
  if (going)
    going = check_statement(evaluator, rest ? "" : tail, columns, admits_more, names, error);
  if (!going) return 0;
  if (rest) *rest = tail;
  evaluator->length = (int)(tail - sql);
  if (evaluator->length && sql[evaluator->length - 1] == ';') evaluator->length--;
  evaluator->is_by_row = is_one_select && row_text_read(&evaluator->rows, sql, evaluator->length,
                                                        &evaluator->functions, role_of, evaluator);
  return 1;
}

/* ---- columns that are named and not read ----------------------------------------------------- */

/* The tables that the cursors of a program read: 1 + the number of the table, or 0. */
struct cursors {
  int *tables, count;
};

static int is_instruction(sqlite3_stmt *row, const char *name) {
  const char *text = (const char *)sqlite3_column_text(row, 1);
  return text && strcmp(text, name) == 0;
}

/* Notes the table that a VFilter instruction searches. Returns 0 if this cannot be done. */
static int note_cursor(struct cursors *cursors, sqlite3_stmt *row) {
  const char *text = (const char *)sqlite3_column_text(row, 5);
  int cursor = sqlite3_column_int(row, 2);
  if (!text || *text != EVALUATOR_SEARCH) return 1; /* json_each */
  if (cursor < 0 || cursor > MOST_INSTRUCTIONS) return 0;
  if (cursor >= cursors->count) {
    int *grown = realloc(cursors->tables, sizeof *grown * ((size_t)cursor + 1));
    if (!grown) return 0;
    for (int i = cursors->count; i <= cursor; i++) grown[i] = 0;
    *cursors = (struct cursors){grown, cursor + 1};
  }
  int table = 1 + (int)strtol(text + 1, 0, 10), old = cursors->tables[cursor];
  cursors->tables[cursor] = table;
  return !old || old == table;
}

/* Marks the column that a VColumn instruction reads. */
static int mark_read(struct evaluator_tables *tables, const struct cursors *cursors,
                     sqlite3_stmt *row) {
  int cursor = sqlite3_column_int(row, 2), column = sqlite3_column_int(row, 3);
  int number = cursor >= 0 && cursor < cursors->count ? cursors->tables[cursor] - 1 : -1;
  if (number < 0) return 1;
  if (number >= tables->count || column < 0 || column >= tables->list[number].route.tables[0].count)
    return 0;
  tables->list[number].used[column] |= COLUMN_READ;
  return 1;
}

/* Reads the program of the question with EXPLAIN: first its cursors, then its columns. If this
** fails, every named column still counts. If a column was left out that the program reads after
** all, xColumn would fail the question. */
void evaluator_leave_out_unread(struct evaluator *evaluator) {
  struct evaluator_tables *tables = &evaluator->tables;
  struct cursors cursors = {0, 0};
  sqlite3_stmt *row = 0;
  char *sql = sqlite3_mprintf("EXPLAIN %.*s", evaluator->length, evaluator->sql);
  int going = sql && sqlite3_prepare_v2(evaluator->db, sql, -1, &row, 0) == SQLITE_OK &&
              sqlite3_column_count(row) >= 6;
  while (going && sqlite3_step(row) == SQLITE_ROW)
    if (is_instruction(row, "VFilter")) going = note_cursor(&cursors, row);
  if (going) going = sqlite3_reset(row) == SQLITE_OK;
  while (going && sqlite3_step(row) == SQLITE_ROW)
    if (is_instruction(row, "VColumn")) going = mark_read(tables, &cursors, row);
  going &= sqlite3_finalize(row) == SQLITE_OK;
  free(cursors.tables);
  sqlite3_free(sql);
  for (int i = 0; i < tables->count && going; i++)
    for (int j = 0; j < tables->list[i].route.tables[0].count; j++)
      if (tables->list[i].used[j] == COLUMN_NAMED) tables->list[i].used[j] = 0;
}

/* ---- closing --------------------------------------------------------------------------------- */

void evaluator_skip(struct evaluator *evaluator) {
  for (size_t i = 0; evaluator->results && i < evaluator->kept * (size_t)evaluator->columns; i++)
    sqlite3_value_free(evaluator->results[i]);
  evaluator->kept = evaluator->count = 0;
}

void evaluator_close(struct evaluator *evaluator) {
  if (!evaluator) return;
  evaluator_skip(evaluator);
  free(evaluator->results);
  sqlite3_finalize(evaluator->statement); /* conclude() has handled the error of the statement */
  sqlite3_close(evaluator->db);
  for (int i = 0; i < evaluator->tables.count; i++) {
    struct evaluator_table *table = &evaluator->tables.list[i];
    route_clear(&table->route);
    unit_rows_close(&table->rows);
    free(table->used);
    free(table->places);
  }
  free(evaluator->tables.list);
  sqlite3_free(evaluator->texts);
  for (int i = 0; i < evaluator->view_count; i++) sqlite3_free(evaluator->views[i]);
  sqlite3_free(evaluator->denied);
  error_clear(&evaluator->error);
  free(evaluator);
}

/* ---- running (Q2) ---------------------------------------------------------------------------- */

/* Returns the size of the compiled question. It depends on its text and on SQLite's version. */
static double statement_bytes(const struct evaluator *evaluator) {
  return sqlite3_stmt_status(evaluator->statement, SQLITE_STMTSTATUS_MEMUSED, 0);
}

void evaluator_limit_memory(struct evaluator *evaluator, double bytes) {
  double longest = bytes / 2 / (statement_bytes(evaluator) / 40);
  sqlite3_limit(evaluator->db, SQLITE_LIMIT_LENGTH, (int)fmin(longest, LONGEST_VALUE));
  evaluator->most_bytes = bytes / 2;
}

static double bytes_of_rows(const struct evaluator *evaluator) {
  double bytes = 0;
  for (int i = 0; i < evaluator->tables.count; i++)
    if (evaluator->tables.list[i].declaration->role != POLICY_PUBLIC)
      bytes += unit_rows_bytes(&evaluator->tables.list[i].rows);
  return bytes;
}

int evaluator_is_full(const struct evaluator *evaluator) {
  return bytes_of_rows(evaluator) > evaluator->most_bytes;
}

/* Keeps a copy of the current row. Returns 0 when out of memory. */
static int keep_row(struct evaluator *evaluator) {
  size_t columns = (size_t)evaluator->columns;
  if (evaluator->kept == evaluator->room) {
    size_t room = evaluator->room * 2 + 16;
    sqlite3_value **grown = realloc(evaluator->results, sizeof *grown * room * columns);
    if (!grown) return 0;
    evaluator->results = grown;
    evaluator->room = room;
  }
  sqlite3_value **row = &evaluator->results[evaluator->kept * columns];
  for (int i = 0; i < evaluator->columns; i++) {
    row[i] = sqlite3_value_dup(sqlite3_column_value(evaluator->statement, i));
    if (!row[i]) {
      while (i-- > 0) sqlite3_value_free(row[i]);
      return 0;
    }
    int type = sqlite3_value_type(row[i]), size = 64;
    if (type == SQLITE_TEXT || type == SQLITE_BLOB) size += sqlite3_value_bytes(row[i]);
    memory_budget_take(&evaluator->memory.budget, size);
  }
  evaluator->kept++;
  return 1;
}

static enum evaluation fail(struct evaluator *evaluator, const char *what) {
  error_clear(&evaluator->error);
  error_set(&evaluator->error, "%s", what);
  return EVALUATION_FAILED;
}

/* Returns the outcome of a run that ended with this result code. An error that a unit's rows can
** cause drops only this unit. Any other error fails the whole question. */
static enum evaluation conclude(struct evaluator *evaluator, int rc) {
  if (evaluator->tables.is_broken) return fail(evaluator, "a column or a row is missing (a bug)");
  if (evaluator->interrupted) return fail(evaluator, "interrupted");
  if (evaluator->exceeded || evaluator->memory.budget.is_exceeded) return EVALUATION_DROPPED;
  switch (rc & 0xff) {
  case SQLITE_DONE: return EVALUATION_DONE;
  case SQLITE_ERROR:
  case SQLITE_TOOBIG:
  case SQLITE_MISMATCH:
  case SQLITE_CONSTRAINT: return EVALUATION_DROPPED;
  case SQLITE_NOMEM:
  case SQLITE_IOERR: return fail(evaluator, "out of memory"); /* the only files are in memory */
  default: return fail(evaluator, sqlite3_errmsg(evaluator->db));
  }
}

enum evaluation evaluator_run(struct evaluator *evaluator, double steps, int keeps) {
  sqlite3_stmt *statement = evaluator->statement;
  const struct memory_budget *budget = &evaluator->memory.budget;
  int rc, no_memory = 0;
  evaluator_skip(evaluator);
  evaluator->memory.budget =
      (struct memory_budget){bytes_of_rows(evaluator), evaluator->most_bytes, 0};
  sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_VM_STEP, 1); /* counts from zero (Q1) */
  evaluator->ticks = 0;
  evaluator->most_ticks = steps / TICK;
  evaluator->exceeded = evaluator->interrupted = 0;
  while ((rc = sqlite3_step(statement)) == SQLITE_ROW && !budget->is_exceeded && !no_memory) {
    no_memory = keeps && !keep_row(evaluator);
    evaluator->count++;
  }
  enum evaluation end = rc == SQLITE_ROW ? EVALUATION_DROPPED : conclude(evaluator, rc);
  sqlite3_reset(statement); /* `end` holds the error of the run */
  if (no_memory) end = fail(evaluator, "out of memory");
  if (end != EVALUATION_DONE) evaluator_skip(evaluator);
  return end;
}

/* An instruction takes 24 bytes of a compiled statement, or 20 where a pointer has four. */
double evaluator_instructions(const struct evaluator *evaluator) {
  return statement_bytes(evaluator) / (16 + sizeof(void *));
}
