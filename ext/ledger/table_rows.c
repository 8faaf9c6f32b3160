/*
** table_rows.c: see table_rows.h.
** Tests: tests/ledger/test_edits.py
*/
#include "ledger/table_rows.h"

#include <math.h>
#include <string.h>

#include "ledger/accountant.h"

SQLITE_EXTENSION_INIT3

ROW_STRUCT(policy_row, POLICY_COLUMNS);
ROW_STRUCT(rdp_row, RDP_COLUMNS);

/* The descriptor of a column. */
#define DESCRIBE(...) DESCRIBE_FIRST(__VA_ARGS__, )
#define DESCRIBE_FIRST(T, name, kind, shown, role, ...)                                            \
  {#name, COLUMN_##kind, ROLE_##role, shown, offsetof(struct T, name)},

#define TABLE(name, row, LIST)                                                                     \
  static const struct column name##_list[] = {LIST(DESCRIBE, row)};                                \
  const struct table_columns columns_##name = {"dp_" #name, name##_list,                           \
                                               (int)(sizeof name##_list / sizeof *name##_list)}

TABLE(release, ledger_release, RELEASE_COLUMNS);
TABLE(tier, ledger_tier, TIER_COLUMNS);
TABLE(policy, policy_row, POLICY_COLUMNS);
TABLE(publication, publication_row, PUBLICATION_COLUMNS);
TABLE(value, value_row, VALUE_COLUMNS);
TABLE(point, point_row, POINT_COLUMNS);
TABLE(coordinate, coordinate_row, COORDINATE_COLUMNS);
TABLE(exact, exact_row, EXACT_COLUMNS);
TABLE(allowance, allowance_row, ALLOWANCE_COLUMNS);
TABLE(charge, charge, CHARGE_COLUMNS);
TABLE(seal, seal, SEAL_COLUMNS);
TABLE(budget, budget_row, BUDGET_COLUMNS);
TABLE(order, order_row, ORDER_COLUMNS);
TABLE(grant, ledger_grant, GRANT_COLUMNS);
TABLE(reserve, reserve_row, RESERVE_COLUMNS);
TABLE(rdp, rdp_row, RDP_COLUMNS);

/* ---- texts ----------------------------------------------------------------------------------- */

/* Returns whether a column has a member that is stored in this table. */
static int is_kept(const struct column *column) {
  return column->role != ROLE_ADDED && column->kind != COLUMN_NOW && column->kind != COLUMN_LATER;
}

char *columns_select(const struct table_columns *columns, const char *rest) {
  sqlite3_str *sql = sqlite3_str_new(0);
  sqlite3_str_appendall(sql, "SELECT ");
  for (int i = 0, named = 0; i < columns->count; i++) {
    if (is_kept(&columns->list[i]))
      sqlite3_str_appendf(sql, "%s%s", named++ ? ", " : "", columns->list[i].name);
  }
  sqlite3_str_appendall(sql, rest);
  return sqlite3_str_finish(sql);
}

char *columns_insert(const struct table_columns *columns) {
  sqlite3_str *names = sqlite3_str_new(0), *values = sqlite3_str_new(0);
  for (int i = 0, named = 0; i < columns->count; i++) {
    const struct column *column = &columns->list[i];
    if (!is_kept(column) && column->kind != COLUMN_NOW) continue;
    sqlite3_str_appendf(names, "%s%s", named ? ", " : "", column->name);
    sqlite3_str_appendf(values, "%s%s", named++ ? ", " : "",
                        column->kind == COLUMN_NOW ? STATEMENT_NOW : "?");
  }
  char *names_text = sqlite3_str_finish(names), *values_text = sqlite3_str_finish(values);
  char *sql = names_text && values_text ? sqlite3_mprintf("INSERT INTO %s(%s) VALUES (%s)",
                                                          columns->table, names_text, values_text)
                                        : 0;
  sqlite3_free(names_text);
  sqlite3_free(values_text);
  return sql;
}

/* The SQL type of a column in the declaration of a table, for each kind of column. */
static const char *const type_name[] = {
    [COLUMN_ID] = "INTEGER",      [COLUMN_WIDE] = "INTEGER",  [COLUMN_UNSIGNED] = "INTEGER",
    [COLUMN_NUMBER] = "INTEGER",  [COLUMN_COUNT] = "INTEGER", [COLUMN_REAL] = "REAL",
    [COLUMN_TEXT] = "TEXT",       [COLUMN_BORROWED] = "TEXT", [COLUMN_BLOB] = "BLOB",
    [COLUMN_ACCOUNTANT] = "TEXT", [COLUMN_NOW] = "TEXT",      [COLUMN_LATER] = "TEXT",
};

const struct column *columns_shown(const struct table_columns *columns, int place) {
  for (int i = 0; i < columns->count; i++) {
    if (columns->list[i].shown == place) return &columns->list[i];
  }
  return 0;
}

char *columns_declaration(const struct table_columns *columns) {
  sqlite3_str *text = sqlite3_str_new(0);
  const struct column *column;
  for (int place = 1; (column = columns_shown(columns, place)); place++)
    sqlite3_str_appendf(text, "%s%s %s", place > 1 ? ", " : "", column->name,
                        type_name[column->kind]);
  return sqlite3_str_finish(text);
}

/* ---- one column ------------------------------------------------------------------------------ */

const char *column_borrow(struct ledger *ledger, sqlite3_stmt *statement, int column) {
  if (sqlite3_column_type(statement, column) == SQLITE_NULL) return 0;
  const char *text = (const char *)sqlite3_column_text(statement, column);
  if (!text) ledger_fail(ledger, "out of memory");
  return text;
}

char *column_copy(struct ledger *ledger, sqlite3_stmt *statement, int column) {
  const char *text = column_borrow(ledger, statement, column);
  char *copy = text ? sqlite3_mprintf("%s", text) : 0;
  if (text && !copy) ledger_fail(ledger, "out of memory");
  return copy;
}

const char *column_text(sqlite3_stmt *statement, int column) {
  const char *text = (const char *)sqlite3_column_text(statement, column);
  return text ? text : "";
}

struct bytes column_bytes(sqlite3_stmt *statement, int column) {
  const void *bytes = sqlite3_column_blob(statement, column);
  if (!bytes && sqlite3_column_type(statement, column) != SQLITE_NULL) bytes = ""; /* 0 bytes */
  return (struct bytes){bytes, sqlite3_column_bytes(statement, column)};
}

double column_number(sqlite3_stmt *row, int column) {
  int is_null = sqlite3_column_type(row, column) == SQLITE_NULL;
  return is_null ? (double)NAN : sqlite3_column_double(row, column);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static const void *member_of(const void *row, const struct column *column) {
  return (const char *)row + column->member;
}

int columns_bind(sqlite3_stmt *statement, const struct table_columns *columns, const void *row) {
  int rc = SQLITE_OK;
  for (int i = 0, at = 1; i < columns->count && rc == SQLITE_OK; i++) {
    const struct column *column = &columns->list[i];
    const void *member = member_of(row, column);
    if (!is_kept(column)) continue;
    switch (column->kind) {
    case COLUMN_ID: {
      int64_t id = *(const int64_t *)member;
      rc = id ? sqlite3_bind_int64(statement, at, id) : sqlite3_bind_null(statement, at);
      break;
    }
    case COLUMN_COUNT: {
      int count = *(const int *)member;
      rc = count ? sqlite3_bind_int(statement, at, count) : sqlite3_bind_null(statement, at);
      break;
    }
    case COLUMN_NUMBER: rc = sqlite3_bind_int(statement, at, *(const int *)member); break;
    case COLUMN_REAL: rc = sqlite3_bind_double(statement, at, *(const double *)member); break;
    case COLUMN_BLOB: {
      const struct bytes *bytes = member;
      rc = sqlite3_bind_blob(statement, at, bytes->at, bytes->size, SQLITE_TRANSIENT);
      break;
    }
    case COLUMN_TEXT:
    case COLUMN_BORROWED:
      rc = sqlite3_bind_text(statement, at, *(const char *const *)member, -1, SQLITE_TRANSIENT);
      break;
    case COLUMN_ACCOUNTANT: {
      const struct accountant *accountant = *(const struct accountant *const *)member;
      rc = sqlite3_bind_text(statement, at, accountant->name, -1, SQLITE_STATIC);
      break;
    }
    default: rc = sqlite3_bind_int64(statement, at, *(const int64_t *)member); break;
    }
    at++;
  }
  return rc;
}

int columns_read(struct ledger *ledger, sqlite3_stmt *statement,
                 const struct table_columns *columns, void *row) {
  int at = 0;
  for (int i = 0; i < columns->count; i++) {
    const struct column *column = &columns->list[i];
    void *member = (char *)row + column->member;
    if (!is_kept(column)) continue;
    switch (column->kind) {
    case COLUMN_NUMBER:
    case COLUMN_COUNT: *(int *)member = sqlite3_column_int(statement, at); break;
    case COLUMN_REAL: *(double *)member = column_number(statement, at); break;
    case COLUMN_BLOB: *(struct bytes *)member = column_bytes(statement, at); break;
    case COLUMN_TEXT: *(char **)member = column_copy(ledger, statement, at); break;
    case COLUMN_BORROWED: *(const char **)member = column_text(statement, at); break;
    case COLUMN_ACCOUNTANT: {
      const struct accountant *found = accountant_find(column_text(statement, at));
      /* If the name is unknown, somebody has edited the file. dp_verify() reports this. */
      *(const struct accountant **)member = found ? found : accountants[0];
      break;
    }
    default: *(int64_t *)member = sqlite3_column_int64(statement, at); break;
    }
    at++;
  }
  return at;
}

void columns_clear(const struct table_columns *columns, void *row) {
  for (int i = 0; i < columns->count; i++) {
    if (columns->list[i].kind == COLUMN_TEXT)
      sqlite3_free(*(char **)((char *)row + columns->list[i].member));
  }
}

/* ---- hashes ---------------------------------------------------------------------------------- */

void columns_hash(const char *previous, const struct table_columns *columns, const void *row,
                  char hash[HASH_SIZE]) {
  struct digest digest;
  digest_begin(&digest);
  digest_text(&digest, previous);
  for (int i = 0; i < columns->count; i++) {
    const struct column *column = &columns->list[i];
    const void *member = member_of(row, column);
    if (column->role == ROLE_PLAIN) continue;
    if (column->kind == COLUMN_REAL) {
      digest_bits(&digest, *(const double *)member);
    } else if (column->kind == COLUMN_BORROWED) {
      digest_text(&digest, *(const char *const *)member);
    } else if (column->kind == COLUMN_BLOB) {
      digest_hexadecimal(&digest, *(const struct bytes *)member);
    } else {
      digest_typed(&digest, 0, *(const int64_t *)member, '\n');
    }
  }
  digest_finish(&digest, hash);
}

/* Appends a field to a fingerprint, and a slash before it. */
static void append_field(sqlite3_str *text, const struct column *column, const void *member) {
  char hash[HASH_SIZE];
  if (column->kind == COLUMN_COUNT) {
    sqlite3_str_appendf(text, "/%d", *(const int *)member);
  } else if (column->kind == COLUMN_REAL) {
    uint64_t bits;
    memcpy(&bits, member, sizeof bits);
    sqlite3_str_appendf(text, isnan(*(const double *)member) ? "/-" : "/%016llx",
                        (unsigned long long)bits);
  } else {
    const char *value = *(const char *const *)member;
    if (value && column->role == ROLE_DIGEST) {
      text_hash(value, strlen(value), hash);
      value = hash;
    }
    sqlite3_str_appendf(text, "/%s", value ? value : "-");
  }
}

char *columns_fingerprint(const struct table_columns *columns, const void *row) {
  sqlite3_str *text = sqlite3_str_new(0);
  for (int i = 0; i < columns->count; i++) {
    if (columns->list[i].role != ROLE_PLAIN)
      append_field(text, &columns->list[i], member_of(row, &columns->list[i]));
  }
  char *fields = sqlite3_str_finish(text);
  if (fields) memmove(fields, fields + 1, strlen(fields)); /* this removes the first slash */
  return fields;
}
