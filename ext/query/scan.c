/*
** scan.c: see scan.h.
**
** If PRAGMA threads allows, several connections read ranges of the table (range_readers.h, S1 to
** S5). To run the query on a range, the scan puts a common table expression before the owner's
** text. The expression has the name of the table and gives the rows of the range.
**
** The scan proves S1 and S3 from the program of the query and parses no SQL. The program must be
** one loop over one table, and each instruction must compute from the row alone. It calls no
** function, and uses no collation except BINARY. A control query proves that the name means the
** table everywhere in the owner's text: the control has a common table expression that gives all
** rows, and must compile to the same program as the query itself. All connections must have the
** same program.
*/
#include "query/scan.h"

#include <string.h>

#include "query/range_readers.h"

SQLITE_EXTENSION_INIT3

struct scan {
  const struct publication *publication;
  const struct query *query;
  char *table;   /* the name of the table */
  char *text;    /* the query on a range */
  char *program; /* the program of that query */
};

/* ---- programs (S1, S3) ----------------------------------------------------------------------- */

/*
** The role of an instruction in a loop over one table. Instructions of the first six roles must
** occur a fixed number of times: in_whole gives these numbers for the query itself, and in_range
** for the query on a range.
*/
enum role {
  OPENS,
  REWINDS,
  SEEKS,
  NEXTS,
  BOUNDS,
  COLLECTS,
  COUNTED,
  READS = COUNTED,
  PLAIN,
  COMPARES,
  OTHER
};
static const int in_whole[COUNTED] = {1, 1, 0, 1, 0, 1}, in_range[COUNTED] = {1, 0, 1, 1, 2, 1};

/*
** The known instructions. They compute from the row, or belong to the frame of the loop. Any other
** instruction may do anything.
*/
static const struct instruction {
  const char *name;
  enum role role;
} instructions[] = {
    {"OpenRead", OPENS},     {"Rewind", REWINDS},  {"SeekGE", SEEKS},    {"Variable", BOUNDS},
    {"AggStep", COLLECTS},   {"Next", NEXTS},      {"Eq", COMPARES},     {"Ne", COMPARES},
    {"Lt", COMPARES},        {"Le", COMPARES},     {"Gt", COMPARES},     {"Ge", COMPARES},
    {"Column", READS},       {"Rowid", READS},     {"Integer", PLAIN},   {"Int64", PLAIN},
    {"Real", PLAIN},         {"String8", PLAIN},   {"Null", PLAIN},      {"Copy", PLAIN},
    {"SCopy", PLAIN},        {"Affinity", PLAIN},  {"Cast", PLAIN},      {"ClrSubtype", PLAIN},
    {"RealAffinity", PLAIN}, {"Add", PLAIN},       {"Subtract", PLAIN},  {"Multiply", PLAIN},
    {"Divide", PLAIN},       {"Remainder", PLAIN}, {"Concat", PLAIN},    {"BitAnd", PLAIN},
    {"BitOr", PLAIN},        {"BitNot", PLAIN},    {"ShiftLeft", PLAIN}, {"ShiftRight", PLAIN},
    {"And", PLAIN},          {"Or", PLAIN},        {"Not", PLAIN},       {"IsTrue", PLAIN},
    {"If", PLAIN},           {"IfNot", PLAIN},     {"IsNull", PLAIN},    {"NotNull", PLAIN},
    {"ZeroOrNull", PLAIN},   {"Goto", PLAIN},      {"Init", PLAIN},      {"Transaction", PLAIN},
    {"AggFinal", PLAIN},     {"ResultRow", PLAIN}, {"Halt", PLAIN},      {"Noop", PLAIN},
    {"Explain", PLAIN},
};

static enum role role_of(const char *name) {
  for (size_t i = 0; name && i < sizeof instructions / sizeof *instructions; i++)
    if (strcmp(name, instructions[i].name) == 0) return instructions[i].role;
  return OTHER;
}

struct program {
  char *listing; /* null if the text does not compile */
  int times[COUNTED];
  int others;
  int root; /* root page of the opened table; 0 if the table is not in the main database */
};

/*
** Adds a row of EXPLAIN: address, name, p1, p2, p3, p4, p5. The listing leaves out numbers that may
** differ between equal programs: the number of the only cursor, and how often a connection has read
** the schema. (In a shared cache, a connection may read changes that are not committed. The program
** then contains TableLock, which has no role, so the host reads alone.)
*/
static void add_instruction(struct program *program, sqlite3_str *listing, sqlite3_stmt *row) {
  const char *name = (const char *)sqlite3_column_text(row, 1);
  const char *detail = (const char *)sqlite3_column_text(row, 5);
  enum role role = role_of(name);
  if (role == OPENS) program->root = sqlite3_column_int(row, 4) ? 0 : sqlite3_column_int(row, 3);
  if (role < COUNTED) program->times[role]++;
  /* The scan accepts only the collation BINARY. The host may have replaced any other collation. */
  program->others += role == OTHER ||
                     (role == COMPARES && detail && *detail && strncmp(detail, "BINARY-", 7) != 0);
  int cursor = role <= NEXTS || role == READS ? 2 : -1;
  int schema = name && strcmp(name, "Transaction") == 0 ? 5 : -1;
  for (int i = 0; i < 7; i++)
    if (i != cursor && i != schema)
      sqlite3_str_appendf(listing, "%s ", sqlite3_column_text(row, i));
}

static struct program compile(sqlite3 *db, const char *sql) {
  struct program program = {0};
  sqlite3_stmt *statement = 0;
  sqlite3_str *listing = sqlite3_str_new(db);
  char *text = sqlite3_mprintf("EXPLAIN %s", sql);
  int rc = text ? sqlite3_prepare_v2(db, text, -1, &statement, 0) : SQLITE_NOMEM;
  while (rc == SQLITE_OK && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
    add_instruction(&program, listing, statement);
    rc = sqlite3_str_errcode(listing);
  }
  sqlite3_finalize(statement);
  sqlite3_free(text);
  program.listing = sqlite3_str_finish(listing);
  if (rc == SQLITE_DONE) return program;
  sqlite3_free(program.listing);
  return (struct program){0};
}

static int is_loop(const struct program *program, const int times[COUNTED]) {
  return program->listing && !program->others &&
         memcmp(program->times, times, sizeof program->times) == 0;
}

/* Returns the name of the table that a program opens, or null. */
static char *table_of(sqlite3 *db, const struct program *program) {
  sqlite3_stmt *row = 0;
  char *sql = 0, *name = 0;
  if (program->root)
    sql = sqlite3_mprintf(
        "SELECT name FROM main.sqlite_master WHERE rootpage = %d AND type = 'table'",
        program->root);
  if (sql && sqlite3_prepare_v2(db, sql, -1, &row, 0) == SQLITE_OK &&
      sqlite3_step(row) == SQLITE_ROW && sqlite3_column_type(row, 0) == SQLITE_TEXT)
    name = sqlite3_mprintf("%s", sqlite3_column_text(row, 0));
  sqlite3_finalize(row); /* after an error, the host reads alone */
  sqlite3_free(sql);
  return name;
}

/*
** Returns the text of the query with a common table expression before it that limits the table to
** `rows` (a WHERE clause, or "" for all rows). Returns null when out of memory.
*/
static char *text_of(const struct scan *scan, const char *rows) {
  char *expression =
      sqlite3_mprintf("\"%w\" AS (SELECT * FROM main.\"%w\"%s),", scan->table, scan->table, rows);
  char *text = expression ? query_text(scan->query, expression) : 0;
  sqlite3_free(expression);
  return text;
}

static int compiles_to(sqlite3 *db, const char *text, const char *listing) {
  struct program program = text ? compile(db, text) : (struct program){0};
  int same = program.listing && strcmp(program.listing, listing) == 0;
  sqlite3_free(program.listing);
  return same;
}

/* Finds the table and writes the query on a range (S1). Returns 1, or 0 if the proof fails. */
static int divide(struct scan *scan, sqlite3 *db) {
  char *text = query_text(scan->query, ""), *control = 0;
  struct program whole = text ? compile(db, text) : (struct program){0};
  if (is_loop(&whole, in_whole)) scan->table = table_of(db, &whole);
  if (scan->table) control = text_of(scan, "");
  if (scan->table && compiles_to(db, control, whole.listing))
    scan->text = text_of(scan, " WHERE rowid BETWEEN ?1 AND ?2");
  sqlite3_free(text);
  sqlite3_free(control);
  sqlite3_free(whole.listing);
  if (!scan->text) return 0;
  struct program range = compile(db, scan->text);
  scan->program = range.listing;
  return is_loop(&range, in_range);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int is_proved(void *context, sqlite3 *db) {
  const struct scan *scan = context;
  return compiles_to(db, scan->text, scan->program);
}

static int open_rows(void *context, struct rows *rows, struct unit_map *map, struct error *error) {
  const struct publication *publication = ((const struct scan *)context)->publication;
  (void)map;
  return rows_open(rows, publication, columns_in_order(publication), error);
}

static void explain(void *context, const struct collector *collector, int rc, struct error *error) {
  (void)context;
  query_error(collector, rc, error);
}

/* Reads the rows on several threads. Returns 0 if the host must read alone (S4). */
static int run_divided(struct scan *scan, struct collector *host, struct rows *rows,
                       struct error *error) {
  struct readers *readers = divide(scan, host->db) ? readers_open(host) : 0;
  struct range_query query = {scan->table, "rowid",   scan->text, scan->query->columns,
                              scan,        is_proved, open_rows,  explain};
  int rc, is_divided = readers && range_readers_run(readers, &query, rows, &rc, error);
  readers_close(readers);
  return is_divided;
}

int scan_rows(struct collector *host, const struct publication *publication,
              const struct query *query, sqlite3_stmt *statement, struct collection *collection,
              struct error *error) {
  struct scan scan = {.publication = publication, .query = query};
  int may_divide = publication->definition.aggregate->family->has_states &&
                   sqlite3_limit(host->db, SQLITE_LIMIT_WORKER_THREADS, -1) > 0;
  int is_divided = may_divide && run_divided(&scan, host, collection->rows, error);
  sqlite3_free(scan.table);
  sqlite3_free(scan.text);
  sqlite3_free(scan.program);
  if (is_divided) return !error_is_set(error);
  int rc = query_run(host, statement, collection);
  return rc == SQLITE_DONE ? 1 : query_error(host, rc, error);
}
