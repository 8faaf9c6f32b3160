/* public_tables.c: the public tables on a guarded connection. dp_guard() replaces the database
** `main` of the connection by a read-only database in memory. This database contains one virtual
** table for each public table, and nothing else. The virtual table reads the file on a private
** connection, whose authorizer admits only the table that is being read.
**
**   P1  A virtual table hands a comparison on to the file only if no row that fulfils the
**       comparison can get lost. SQLite checks every comparison again, with its own rules of
**       affinity.
**   P2  All public tables that a statement reads come from the same state of the file.
**   P3  A table that is no longer public, or no longer has the same columns, cannot be read.
**   P4  The file and the new `main` have texts in UTF-8. Comparisons and casts depend on the
**       encoding, and SQLite cannot replace `main` by a database in UTF-16.
**
** So a guest reads what the file would give (tests/functions/test_public_reads.py). There is one
** difference: SQLite gives a key that is the rowid no collation, and a virtual table has no such
** column. In a compound SELECT such a column compares by BINARY, not by the other side's collation.
** Tests: tests/functions/test_public_tables.py, tests/functions/test_public_reads.py,
** tests/functions/test_plan.py */

#include <stdlib.h>
#include <string.h>

#include "base/own_connection.h"
#include "base/sql_functions.h"
#include "functions/internal.h"
#include "ledger/ledger.h"
#include "os/os.h"
#include "query/query.h"

SQLITE_EXTENSION_INIT3

#ifdef SQLITE_CORE
/* A program may link an older SQLite than that of the headers. guard.c has then refused. */
#pragma weak sqlite3_serialize
#pragma weak sqlite3_deserialize
#pragma weak sqlite3_vtab_in
#pragma weak sqlite3_vtab_rhs_value
#endif

/* ---- plans, which hand comparisons on to the file -------------------------------------------- */

/* A plan is the text idxStr. It lists the comparisons, such as "0=" for an equality of column 0
** (column -1 is the rowid), then the columns of the order after a colon, such as "2+" or "2-", and
** then the mask of the columns that the statement reads after another colon. */

#define MOST_COMPARED 30 /* the comparisons that a table hands on at most */

/* Reads an entry of the comparisons or of the order, and sets *at behind it. Returns 0 at the
** end. */
static int plan_next(const char **at, int *column, char *sign) {
  char *end;
  if (**at == ':') return 0;
  *column = (int)strtol(*at, &end, 10);
  *sign = *end;
  *at = end + 1;
  return 1;
}

static const char *name_of(const struct table_facts *facts, int column) {
  return column < 0 ? facts->rowid : facts->columns[column].name;
}

/* Returns the columns that the statement reads, as in colUsed. */
static sqlite3_uint64 plan_columns(const char *plan) {
  return strtoull(strrchr(plan, ':') + 1, 0, 16);
}

static int plan_reads(sqlite3_uint64 columns, int column) {
  return (int)(columns >> (column < 63 ? column : 63) & 1);
}

/* Returns whether one of the columns that a statement reads is an alias of the rowid. */
static int plan_reads_rowid(const struct table_facts *facts, sqlite3_uint64 columns) {
  return facts->rowid_alias >= 0 && plan_reads(columns, facts->rowid_alias);
}

/* Returns the SELECT of a plan that makes the comparisons in `used`. It gives the columns, and then
** the rowid, unless a column is the rowid. */
static char *plan_select(const struct table_facts *facts, const char *plan, uint32_t used) {
  static const char *const signs[] = {"<=", ">="};
  const char *order = strchr(plan, ':') + 1, *at = plan;
  int column, number = 0, any = 0;
  char sign;
  sqlite3_str *sql = sqlite3_str_new(0);
  sqlite3_uint64 columns = plan_columns(plan);
  sqlite3_str_appendall(sql, "SELECT ");
  for (int i = 0; i < facts->count; i++)
    if (plan_reads(columns, i)) sqlite3_str_appendf(sql, "\"%w\", ", facts->columns[i].name);
  int has_rowid = facts->rowid && !plan_reads_rowid(facts, columns);
  sqlite3_str_appendf(sql, "%s FROM main.\"%w\"", has_rowid ? facts->rowid : "NULL", facts->name);
  for (; plan_next(&at, &column, &sign); number++) {
    char single[] = {sign, 0};
    if (!(used >> number & 1)) continue;
    sqlite3_str_appendf(sql, "%s\"%w\" %s ?%d", any++ ? " AND " : " WHERE ", name_of(facts, column),
                        sign == 'l'   ? signs[0]
                        : sign == 'g' ? signs[1]
                                      : single,
                        number + 1);
  }
  for (any = 0; plan_next(&order, &column, &sign); any = 1)
    sqlite3_str_appendf(sql, "%s\"%w\"%s", any ? ", " : " ORDER BY ", name_of(facts, column),
                        sign == '-' ? " DESC" : "");
  return sqlite3_str_finish(sql);
}

static int is_numeric(const struct table_facts *facts, int column) {
  return column < 0 || facts->columns[column].affinity >= AFFINITY_NUMERIC;
}

/* Returns the sign of a comparison that the table can hand on, or 0 (P1).
**
** On a column with a numeric affinity, the file compares as SQLite does for the virtual table,
** because this affinity always wins. On other columns, SQLite compares in another way if the other
** side is a column with a numeric affinity: the value '012' then equals 12, and is less than any
** text. The file does not know the other side. It therefore gets only comparisons whose rows
** include those of both ways: `=`, `>` and `>=` with a text or blob, which xFilter checks, and `<`
** and `<=` with a literal, which has no numeric affinity if it is a text or blob.
**
** SQLite makes `>=` and `<` with texts of LIKE and GLOB. Where these find blobs, it lets the file
** pass blobs by itself, but not a virtual table, so `<` with a text is not handed on there. */
static char comparison(const struct table_facts *facts, sqlite3_index_info *info, int i,
                       int like_finds_blobs) {
  const struct sqlite3_index_constraint *constraint = &info->aConstraint[i];
  int column = constraint->iColumn;
  sqlite3_value *literal = 0;
  char sign = 0;
  if (!constraint->usable || (column < 0 && !facts->rowid) ||
      (column >= 0 && sqlite3_stricmp(sqlite3_vtab_collation(info, i),
                                      collation_name(facts->columns[column].collation)) != 0))
    return 0;
  switch (constraint->op) {
  case SQLITE_INDEX_CONSTRAINT_EQ:
    /* SQLite would compare each value of an IN list in another way than the list. It tells which of
    ** the first 32 constraints are such values, but not those of row values (xFilter). */
    return i > 31 || sqlite3_vtab_in(info, i, -1) ? 0 : '=';
  case SQLITE_INDEX_CONSTRAINT_GT: return '>';
  case SQLITE_INDEX_CONSTRAINT_GE: return 'g';
  case SQLITE_INDEX_CONSTRAINT_LT: sign = '<'; break;
  case SQLITE_INDEX_CONSTRAINT_LE: sign = 'l'; break;
  default: return 0;
  }
  if (sqlite3_vtab_rhs_value(info, i, &literal) != SQLITE_OK) literal = 0;
  int type = literal ? sqlite3_value_type(literal) : SQLITE_NULL;
  if (sign == '<' && type == SQLITE_TEXT && like_finds_blobs) return 0; /* it may be of LIKE */
  return is_numeric(facts, column) || type == SQLITE_TEXT || type == SQLITE_BLOB ? sign : 0;
}

/* Returns whether a comparison that the plan contains can use this value (P1). */
static int plan_takes(const struct table_facts *facts, int column, sqlite3_value *value) {
  int type = sqlite3_value_type(value);
  return is_numeric(facts, column) || (type != SQLITE_INTEGER && type != SQLITE_FLOAT);
}

/* Returns the mask of the primary key of a WITHOUT ROWID table. SQLite reads the key to find the
** rows of an OR, also if colUsed does not contain it. */
static sqlite3_uint64 key_columns(const struct table_facts *facts) {
  sqlite3_uint64 columns = 0;
  for (int i = 0; facts->without_rowid && i < facts->key_count; i++)
    columns |= (sqlite3_uint64)1 << (facts->key[i] < 63 ? facts->key[i] : 63);
  return columns;
}

/* Returns the text of a plan. Sets *used to one bit for each comparison. */
static char *plan_make(const struct table_facts *facts, sqlite3_index_info *info,
                       int like_finds_blobs, int with_order, uint32_t *used) {
  sqlite3_str *plan = sqlite3_str_new(0);
  int count = 0;
  for (int i = 0; i < info->nConstraint && count < MOST_COMPARED; i++) {
    char sign = comparison(facts, info, i, like_finds_blobs);
    if (!sign) continue;
    sqlite3_str_appendf(plan, "%d%c", info->aConstraint[i].iColumn, sign);
    info->aConstraintUsage[i].argvIndex = ++count; /* SQLite compares again */
  }
  *used = ((uint32_t)1 << count) - 1;
  sqlite3_str_appendall(plan, ":");
  for (int i = 0; i < info->nOrderBy && with_order; i++)
    sqlite3_str_appendf(plan, "%d%c", info->aOrderBy[i].iColumn,
                        info->aOrderBy[i].desc ? '-' : '+');
  sqlite3_str_appendf(plan, ":%llx", info->colUsed | key_columns(facts));
  return sqlite3_str_finish(plan);
}

/* ---- the tables ------------------------------------------------------------------------------ */

#define ROWS  1e6   /* the number of rows that the planner assumes */
#define TICKS 10000 /* SQLite's instructions between two checks for an interrupt */

struct public_table {
  struct table_facts facts;
  char *definition, *mark; /* those of the declaration that dp_guard() saw (query/query.h) */
  int is_closed;           /* the table has changed or is not public any more (P3) */
};

struct public_tables {
  struct ledger *ledger;
  sqlite3 *db;
  struct process process;
  struct public_table *list;
  int count;
  const char *admitted; /* the table that the private connection may read; null: only the schema */
  int cursors;          /* the number of open cursors, which share one transaction (P2) */
  sqlite3_stmt *begin, *schema_version, *commit;
  int like_finds_blobs; /* SQLite was built without SQLITE_LIKE_DOESNT_MATCH_BLOBS */
  int schema;           /* the version of the file's schema that `list` agrees with */
  uint32_t version;     /* the version of the ledger that `list` agrees with */
  int has_version;
};

/* A statement, its plan (idxStr), and the comparisons of the plan that it makes, one bit each. */
struct prepared {
  sqlite3_stmt *row; /* null: none */
  char *plan;
  uint32_t used;
};

struct vtab {
  sqlite3_vtab base;
  sqlite3 *guarded; /* the connection that reads the table */
  struct public_tables *all;
  struct public_table *here;
  struct prepared spare; /* what a cursor has left: a subquery opens a cursor for each outer row */
};

struct cursor {
  sqlite3_vtab_cursor base;
  struct prepared has;
  sqlite3_uint64 columns; /* the columns that the statement reads, as in colUsed */
  int places[64];         /* places[i]: where the statement has column i, or those from 63 on */
  int rowid_place;        /* where it has the rowid */
  int has_row;
  int hides_in; /* 1: the statement has an IN of row values, which SQLite reports as equalities */
};

/* ---- the private connection ------------------------------------------------------------------ */

static int authorize(void *context, int action, const char *first, const char *second,
                     const char *schema, const char *inner) {
  const struct public_tables *all = context;
  (void)second;
  (void)inner;
  switch (action) {
  case SQLITE_SELECT:
  case SQLITE_TRANSACTION:
  case SQLITE_FUNCTION: /* a generated column can call a function */ return SQLITE_OK;
  case SQLITE_PRAGMA: return all->admitted ? SQLITE_DENY : SQLITE_OK;
  case SQLITE_READ:
    if (!schema || strcmp(schema, "main") != 0) return SQLITE_DENY;
    return sqlite3_stricmp(first, all->admitted ? all->admitted : "sqlite_master") == 0
               ? SQLITE_OK
               : SQLITE_DENY;
  default: return SQLITE_DENY;
  }
}

static int must_stop(void *context) {
  const struct public_tables *all = context;
  return ledger_caller_interrupted(all->ledger);
}

static int prepare(sqlite3 *db, const char *sql, sqlite3_stmt **statement, struct error *error) {
  return sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, 0) == SQLITE_OK ||
         error_set(error, "cannot read the database: %s", sqlite3_errmsg(db));
}

/* Returns the result of a statement that gives one integer, or -1 with the error set. */
static int read_integer(struct public_tables *all, sqlite3_stmt *row, struct error *error) {
  int number = -1;
  if (sqlite3_step(row) == SQLITE_ROW) number = sqlite3_column_int(row, 0);
  if (sqlite3_reset(row) != SQLITE_OK || number < 0)
    error_set(error, "cannot read the database: %s", sqlite3_errmsg(all->db));
  return error_is_set(error) ? -1 : number;
}

/* Reads the ledger's policy. The caller calls ledger_policy_free() also after a failure. */
static int read_policy(struct public_tables *all, struct ledger_policy *policy,
                       struct error *error) {
  struct ledger *ledger = all->ledger;
  int read =
      ledger_ready(ledger) && ledger_begin_reading(ledger) && ledger_policy_read(ledger, policy);
  ledger_rollback(ledger);
  return read || error_set(error, "%s", error_text(ledger_error(ledger)));
}

/* Finds out which tables are still public and have not changed (P3). */
static int look_again(struct public_tables *all, struct error *error) {
  struct ledger_policy policy = {0};
  int going = read_policy(all, &policy, error);
  all->admitted = 0;
  for (int i = 0; i < all->count && going; i++) {
    struct public_table *table = &all->list[i];
    struct error missing = {0};
    struct table_facts now = {.count = 0};
    const struct ledger_declaration *declared = ledger_policy_find(&policy, table->facts.name);
    table->is_closed = !declared || declared->role != POLICY_PUBLIC ||
                       strcmp(declared->mark, table->mark) != 0 ||
                       strcmp(declared->definition, table->definition) != 0 ||
                       !public_table_read(&now, all->db, declared, &missing);
    going = !error_is_memory(&missing) || error_set_memory(error);
    error_clear(&missing);
    table_facts_clear(&now);
  }
  ledger_policy_free(&policy);
  return going;
}

/* Looks at the tables again if the schema of the file or the ledger has changed. */
static int check_tables(struct public_tables *all, struct error *error) {
  uint32_t version = 0;
  int has_version = ledger_version(all->ledger, &version);
  int schema = read_integer(all, all->schema_version, error);
  if (schema < 0) return 0;
  if (schema == all->schema && has_version && all->has_version && version == all->version) return 1;
  all->has_version = 0;
  if (!look_again(all, error)) return 0;
  all->schema = schema;
  all->version = version;
  all->has_version = has_version;
  return 1;
}

static void end_reading(struct public_tables *all) {
  if (--all->cursors > 0) return;
  sqlite3_step(all->commit);
  sqlite3_reset(all->commit); /* a transaction that only reads ends in any case */
  ledger_caller_end(all->ledger);
}

static int begin_reading(struct public_tables *all, struct error *error) {
  if (!process_is_same(&all->process))
    return error_set(error, "the database was opened before fork() (reconnect)");
  if (all->cursors++ == 0) {
    all->admitted = 0;
    sqlite3_step(all->begin);
    if (sqlite3_reset(all->begin) != SQLITE_OK)
      error_set(error, "cannot read the database: %s", sqlite3_errmsg(all->db));
    if (!error_is_set(error)) check_tables(all, error);
  }
  if (error_is_set(error)) end_reading(all);
  return !error_is_set(error);
}

/* ---- the virtual tables ---------------------------------------------------------------------- */

static int fail(sqlite3_vtab *vtab, int rc, const char *message) {
  sqlite3_free(vtab->zErrMsg);
  vtab->zErrMsg = sqlite3_mprintf("%s: %s", ((struct vtab *)vtab)->here->facts.name, message);
  return rc;
}

static int xConnect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **vtab,
                    char **error) {
  struct public_tables *all = aux;
  struct public_table *here = 0;
  for (int i = 0; i < all->count; i++)
    if (argc > 2 && sqlite3_stricmp(all->list[i].facts.name, argv[2]) == 0) here = &all->list[i];
  if (!here) {
    *error = sqlite3_mprintf("no public table has this name");
    return SQLITE_ERROR;
  }
  char *definition = table_definition(&here->facts);
  int rc = definition ? sqlite3_declare_vtab(db, definition) : SQLITE_NOMEM;
  sqlite3_free(definition);
  struct vtab *table = rc == SQLITE_OK ? sqlite3_malloc(sizeof *table) : 0;
  if (!table) return rc == SQLITE_OK ? SQLITE_NOMEM : rc;
  *table = (struct vtab){.guarded = db, .all = all, .here = here};
  *vtab = &table->base;
  return sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
}

/* This function must differ from xConnect. If both were the same, SQLite would treat the name of
** the module as a table. */
static int xCreate(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **vtab,
                   char **error) {
  return xConnect(db, aux, argc, argv, vtab, error);
}

static void prepared_close(struct prepared *prepared) {
  sqlite3_finalize(prepared->row); /* the statement is not running */
  sqlite3_free(prepared->plan);
  *prepared = (struct prepared){0};
}

static int xDisconnect(sqlite3_vtab *vtab) {
  prepared_close(&((struct vtab *)vtab)->spare);
  sqlite3_free(vtab);
  return SQLITE_OK;
}

/* ---- xBestIndex ------------------------------------------------------------------------------ */

/* What SQLite would do on the private connection. */
struct strategy {
  int searches;   /* 1: it searches an index or the rowid */
  int equalities; /* the number of equalities that it uses for this */
  int is_rowid;   /* 1: it searches one rowid */
  int sorts;      /* 1: it sorts the rows itself */
};

static int count_of(const char *text, const char *part) {
  int count = 0;
  while ((text = strstr(text, part)) != 0) count++, text++;
  return count;
}

/* Asks SQLite for its strategy. Returns an SQLite result code. */
static int explain(struct vtab *table, const char *plan, uint32_t used, struct strategy *strategy) {
  sqlite3_stmt *row = 0;
  char *sql = plan_select(&table->here->facts, plan, used);
  char *explain = sql ? sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sql) : 0;
  *strategy = (struct strategy){0, 0, 0, 0};
  table->all->admitted = table->here->facts.name;
  int rc = explain ? sqlite3_prepare_v2(table->all->db, explain, -1, &row, 0) : SQLITE_NOMEM;
  while (rc == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW) {
    const char *text = (const char *)sqlite3_column_text(row, 3);
    if (!text) continue;
    if (strncmp(text, "SEARCH ", 7) == 0) {
      strategy->searches = 1;
      strategy->equalities = count_of(text, "=?");
      strategy->is_rowid = strstr(text, "(rowid=?)") != 0;
    }
    strategy->sorts |= strncmp(text, "USE TEMP B-TREE", 15) == 0;
  }
  sqlite3_finalize(row); /* without a strategy, the plan counts as a scan */
  sqlite3_free(explain);
  sqlite3_free(sql);
  return rc == SQLITE_NOMEM ? rc : SQLITE_OK;
}

/* Hands the comparisons on. Hands the order on if the file gives the rows in this order without
** sorting them. */
static int xBestIndex(sqlite3_vtab *vtab, sqlite3_index_info *info) {
  struct vtab *table = (struct vtab *)vtab;
  struct strategy strategy = {.sorts = 1};
  uint32_t used;
  char *plan = 0;
  int rc = SQLITE_OK, can_order = info->nOrderBy > 0; /* the file can sort by all columns */
  for (int i = 0; i < info->nOrderBy; i++)
    can_order &= info->aOrderBy[i].iColumn >= 0 || table->here->facts.rowid != 0;
  for (int ordered = can_order; ordered >= 0 && strategy.sorts && rc == SQLITE_OK; ordered--) {
    sqlite3_free(plan);
    plan = plan_make(&table->here->facts, info, table->all->like_finds_blobs, ordered, &used);
    rc = plan ? explain(table, plan, used, &strategy) : SQLITE_NOMEM;
    info->orderByConsumed = ordered && !strategy.sorts;
  }
  if (rc != SQLITE_OK) {
    sqlite3_free(plan);
    return rc;
  }
  info->idxStr = plan;
  info->needToFreeIdxStr = 1;
  double rows = strategy.is_rowid     ? 1
                : strategy.equalities ? 10
                : strategy.searches   ? ROWS / 4
                                      : ROWS;
  info->estimatedRows = (sqlite3_int64)rows;
  info->estimatedCost = strategy.searches ? 10 + 2 * rows : 2 * rows;
  return SQLITE_OK;
}

/* ---- cursors --------------------------------------------------------------------------------- */

static int xOpen(sqlite3_vtab *vtab, sqlite3_vtab_cursor **base) {
  struct vtab *table = (struct vtab *)vtab;
  struct error error = {0};
  struct cursor *cursor = sqlite3_malloc(sizeof *cursor);
  if (!cursor) return SQLITE_NOMEM;
  *cursor = (struct cursor){.hides_in = runs_hidden_in(table->guarded)};
  int going = begin_reading(table->all, &error);
  if (going && table->here->is_closed) {
    error_set(&error, "the table has changed since dp_guard, or is not public any more "
                      "(reconnect)");
    end_reading(table->all);
    going = 0;
  }
  if (going) {
    *base = &cursor->base;
    return SQLITE_OK;
  }
  sqlite3_free(cursor);
  int rc = fail(vtab, error_is_memory(&error) ? SQLITE_NOMEM : SQLITE_ERROR, error_text(&error));
  error_clear(&error);
  return rc;
}

/* Keeps the statement of a cursor for the next cursor. */
static void leave_statement(struct vtab *table, struct cursor *cursor) {
  if (!cursor->has.row) return;
  sqlite3_reset(cursor->has.row);
  prepared_close(&table->spare);
  table->spare = cursor->has;
  cursor->has = (struct prepared){0};
}

static int is_of(const struct prepared *prepared, const char *plan, uint32_t used) {
  return prepared->row && prepared->used == used && strcmp(prepared->plan, plan) == 0;
}

static int xClose(sqlite3_vtab_cursor *base) {
  struct cursor *cursor = (struct cursor *)base;
  struct vtab *table = (struct vtab *)base->pVtab;
  leave_statement(table, cursor);
  end_reading(table->all);
  sqlite3_free(cursor);
  return SQLITE_OK;
}

/* Returns where the statement of a cursor has a column that it reads. */
static int place_of(const struct cursor *cursor, int column) {
  return column < 63 ? cursor->places[column] : cursor->places[63] + column - 63;
}

/* Prepares the statement of a plan, unless the cursor or the table has it. */
static int take_statement(struct vtab *table, struct cursor *cursor, const char *plan,
                          uint32_t used) {
  struct prepared taken = table->spare;
  if (is_of(&cursor->has, plan, used)) {
    sqlite3_reset(cursor->has.row);
    return SQLITE_OK;
  }
  if (is_of(&taken, plan, used)) {
    table->spare = (struct prepared){0};
  } else {
    char *sql = plan_select(&table->here->facts, plan, used);
    taken = (struct prepared){.plan = sqlite3_mprintf("%s", plan), .used = used};
    int rc = sql && taken.plan ? sqlite3_prepare_v3(table->all->db, sql, -1,
                                                    SQLITE_PREPARE_PERSISTENT, &taken.row, 0)
                               : SQLITE_NOMEM;
    sqlite3_free(sql);
    if (rc != SQLITE_OK) {
      sqlite3_free(taken.plan);
      return rc;
    }
  }
  leave_statement(table, cursor);
  cursor->has = taken;
  cursor->columns = plan_columns(plan);
  for (int i = 0, place = 0; i < 64; i++) {
    cursor->places[i] = place;
    place += plan_reads(cursor->columns, i);
  }
  const struct table_facts *facts = &table->here->facts;
  cursor->rowid_place = plan_reads_rowid(facts, cursor->columns)
                            ? place_of(cursor, facts->rowid_alias)
                            : sqlite3_column_count(cursor->has.row) - 1;
  return SQLITE_OK;
}

static int advance(struct cursor *cursor) {
  struct vtab *table = (struct vtab *)cursor->base.pVtab;
  int rc = sqlite3_step(cursor->has.row);
  cursor->has_row = rc == SQLITE_ROW;
  if (rc == SQLITE_ROW || rc == SQLITE_DONE) return SQLITE_OK;
  return fail(&table->base, rc, sqlite3_errmsg(table->all->db));
}

static int xFilter(sqlite3_vtab_cursor *base, int number, const char *plan, int argc,
                   sqlite3_value **argv) {
  struct cursor *cursor = (struct cursor *)base;
  struct vtab *table = (struct vtab *)base->pVtab;
  const char *at = plan;
  uint32_t used = 0;
  int column;
  char sign;
  (void)number;
  if (cursor->hides_in && memchr(plan, '=', strcspn(plan, ":")))
    return fail(base->pVtab, SQLITE_ERROR,
                "row values with IN cannot be compared here (use EXISTS)");
  for (int i = 0; i < argc && plan_next(&at, &column, &sign); i++)
    if (plan_takes(&table->here->facts, column, argv[i])) used |= (uint32_t)1 << i;
  cursor->has_row = 0;
  table->all->admitted = table->here->facts.name;
  int rc = take_statement(table, cursor, plan, used);
  for (int i = 0; i < argc && rc == SQLITE_OK; i++)
    if (used >> i & 1) rc = sqlite3_bind_value(cursor->has.row, i + 1, argv[i]);
  return rc == SQLITE_OK ? advance(cursor) : fail(base->pVtab, rc, sqlite3_errmsg(table->all->db));
}

static int xNext(sqlite3_vtab_cursor *base) {
  return advance((struct cursor *)base);
}

static int xEof(sqlite3_vtab_cursor *base) {
  return !((struct cursor *)base)->has_row;
}

static int xColumn(sqlite3_vtab_cursor *base, sqlite3_context *context, int column) {
  const struct cursor *cursor = (struct cursor *)base;
  if (!plan_reads(cursor->columns, column)) return SQLITE_INTERNAL; /* colUsed was wrong */
  sqlite3_result_value(context, sqlite3_column_value(cursor->has.row, place_of(cursor, column)));
  return SQLITE_OK;
}

static int xRowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid) {
  const struct cursor *cursor = (struct cursor *)base;
  *rowid = sqlite3_column_int64(cursor->has.row, cursor->rowid_place);
  return SQLITE_OK;
}

static const sqlite3_module module = {.xCreate = xCreate,
                                      .xConnect = xConnect,
                                      .xBestIndex = xBestIndex,
                                      .xDisconnect = xDisconnect,
                                      .xDestroy = xDisconnect,
                                      .xOpen = xOpen,
                                      .xClose = xClose,
                                      .xFilter = xFilter,
                                      .xNext = xNext,
                                      .xEof = xEof,
                                      .xColumn = xColumn,
                                      .xRowid = xRowid};

/* ---- opening --------------------------------------------------------------------------------- */

static void clear_table(struct public_table *table) {
  table_facts_clear(&table->facts);
  sqlite3_free(table->definition);
  sqlite3_free(table->mark);
}

static void release(void *pointer) {
  struct public_tables *tables = pointer;
  for (int i = 0; i < tables->count; i++) clear_table(&tables->list[i]);
  sqlite3_free(tables->list);
  sqlite3_finalize(tables->begin);
  sqlite3_finalize(tables->schema_version);
  sqlite3_finalize(tables->commit);
  sqlite3_close_v2(tables->db);
  process_forget(&tables->process);
  sqlite3_free(tables);
}

/* Adds a table, unless it is not there or not the one that was declared. */
static int add_table(struct public_tables *all, const struct ledger_declaration *declared,
                     struct error *error) {
  struct error missing = {0};
  struct public_table *grown =
      sqlite3_realloc64(all->list, sizeof *grown * (sqlite3_uint64)(all->count + 1));
  if (!grown) return error_set_memory(error);
  all->list = grown;
  struct public_table *table = &grown[all->count];
  *table = (struct public_table){.definition = sqlite3_mprintf("%s", declared->definition),
                                 .mark = sqlite3_mprintf("%s", declared->mark)};
  int found = public_table_read(&table->facts, all->db, declared, &missing);
  int going = table->definition && table->mark && !error_is_memory(&missing);
  if (found && going) {
    all->count++;
  } else {
    clear_table(table);
  }
  error_clear(&missing);
  return going || error_set_memory(error);
}

static struct public_tables *make(sqlite3 *file, struct ledger *ledger,
                                  const struct ledger_policy *policy, struct error *error) {
  struct public_tables *all = sqlite3_malloc(sizeof *all);
  if (!all) {
    sqlite3_close_v2(file);
    error_set_memory(error);
    return 0;
  }
  *all = (struct public_tables){.ledger = ledger, .db = file};
  process_remember(&all->process);
  sqlite3_set_authorizer(file, GUARD_AUTHORIZERS ? authorize : 0, all);
#ifndef SQLITE_CORE /* SQLite puts null for a function that it was built without */
  if (!sqlite3_api->progress_handler) {
    error_set(error, "this SQLite has no progress handler, without which no guest has limits");
    release(all);
    return 0;
  }
#endif
  sqlite3_progress_handler(file, TICKS, must_stop, all);
  sqlite3_stmt *like = 0;
  int going = prepare(file, "SELECT x'61' LIKE 'a'", &like, error) &&
              (all->like_finds_blobs = read_integer(all, like, error)) >= 0;
  sqlite3_finalize(like);
  going = going && prepare(file, "BEGIN", &all->begin, error) &&
          prepare(file, "COMMIT", &all->commit, error) &&
          prepare(file, "PRAGMA main.schema_version", &all->schema_version, error);
  if (going) going = (all->schema = read_integer(all, all->schema_version, error)) >= 0;
  for (int i = 0; i < policy->count && going; i++)
    if (policy->list[i].role == POLICY_PUBLIC) going = add_table(all, &policy->list[i], error);
  if (going) return all;
  release(all);
  return 0;
}

/* ---- the new main ---------------------------------------------------------------------------- */

static int run(sqlite3 *db, struct error *error, char *sql) {
  if (!sql) return error_set_memory(error);
  char *message = 0;
  if (sqlite3_exec(db, sql, 0, 0, &message) != SQLITE_OK)
    error_set(error, "cannot make the new main: %s", message ? message : sqlite3_errmsg(db));
  sqlite3_free(message);
  sqlite3_free(sql);
  return !error_is_set(error);
}

/* Makes the database in memory on a connection of its own, and returns its bytes. */
static unsigned char *make_image(struct public_tables *all, sqlite3_int64 *size,
                                 struct error *error) {
  sqlite3 *db = 0;
  unsigned char *image = 0;
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  int going = (own_connection_open(&db, ":memory:", flags, 0) == SQLITE_OK &&
               sqlite3_create_module_v2(db, PUBLIC_TABLE_MODULE, &module, all, 0) == SQLITE_OK) ||
              error_set_memory(error);
  for (int i = 0; i < all->count && going; i++)
    going = run(db, error,
                sqlite3_mprintf("CREATE VIRTUAL TABLE \"%w\" USING " PUBLIC_TABLE_MODULE,
                                all->list[i].facts.name));
  /* A database without a table would have no bytes. */
  if (going) going = run(db, error, sqlite3_mprintf("PRAGMA user_version = 1"));
  if (going && !(image = sqlite3_serialize(db, "main", size, 0))) error_set_memory(error);
  sqlite3_close_v2(db);
  return image;
}

int public_tables_install(sqlite3 *db, sqlite3 *file, struct ledger *ledger,
                          const struct ledger_policy *policy, struct error *error) {
  struct public_tables *tables = make(file, ledger, policy, error);
  sqlite3_int64 size = 0;
  unsigned char *image = tables ? make_image(tables, &size, error) : 0;
  if (!image) {
    if (tables) release(tables);
    return 0;
  }
  if (module_register(db, PUBLIC_TABLE_MODULE, &module, tables, release) != SQLITE_OK) {
    sqlite3_free(image);
    return error_set_memory(error);
  }
  /* SQLite frees the image, also after a failure. */
  if (sqlite3_deserialize(db, "main", image, size, size,
                          SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY) ==
      SQLITE_OK)
    return 1;
  error_set(error, "SQLite cannot replace main: %s", sqlite3_errmsg(db));
  sqlite3_create_module_v2(db, PUBLIC_TABLE_MODULE, 0, 0, 0);
  return 0;
}
