/*
** table_rows.h: the rows of the ledger's tables. table_rows.c makes descriptions of the tables from
** the lists of columns.h. It makes the texts of statements, binds, reads and hashes rows.
*/
#ifndef DIFFUSE_LEDGER_TABLE_ROWS_H
#define DIFFUSE_LEDGER_TABLE_ROWS_H

#include "ledger/columns.h"
#include "ledger/handle.h"
#include "ledger/hash.h"

ROW_STRUCT(publication_row, PUBLICATION_COLUMNS);
ROW_STRUCT(value_row, VALUE_COLUMNS);
ROW_STRUCT(point_row, POINT_COLUMNS);
ROW_STRUCT(coordinate_row, COORDINATE_COLUMNS);
ROW_STRUCT(exact_row, EXACT_COLUMNS);
ROW_STRUCT(allowance_row, ALLOWANCE_COLUMNS);
ROW_STRUCT(charge, CHARGE_COLUMNS);
ROW_STRUCT(seal, SEAL_COLUMNS);
ROW_STRUCT(budget_row, BUDGET_COLUMNS);
ROW_STRUCT(reserve_row, RESERVE_COLUMNS);
ROW_STRUCT(order_row, ORDER_COLUMNS);

extern const struct table_columns columns_release, columns_tier, columns_policy,
    columns_publication, columns_value, columns_point, columns_coordinate, columns_charge,
    columns_seal, columns_exact, columns_allowance, columns_budget, columns_order, columns_grant,
    columns_reserve, columns_rdp;

/* An SQL expression for the current time. Its value does not change during a statement. */
#define STATEMENT_NOW "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"

/*
** columns_select() returns the text of a SELECT that reads the columns of a row and ends with
** `rest`. columns_insert() returns the text of an INSERT of a row. The caller calls sqlite3_free().
** Both return null if memory runs out.
*/
char *columns_select(const struct table_columns *columns, const char *rest);
char *columns_insert(const struct table_columns *columns);

/*
** columns_declaration() returns the columns that the host sees, as in "name TYPE, name TYPE". The
** caller calls sqlite3_free(). The function returns null if memory runs out. columns_shown()
** returns the column that the host sees at a position (from 1 on), or null.
*/
char *columns_declaration(const struct table_columns *columns);
const struct column *columns_shown(const struct table_columns *columns, int place);

/* Binds the row that columns_insert() inserts. Returns an SQLite result code. */
int columns_bind(sqlite3_stmt *statement, const struct table_columns *columns, const void *row);

/*
** Reads the row that columns_select() selects. Returns the index of the first column of `statement`
** after those of the row.
*/
int columns_read(struct ledger *ledger, sqlite3_stmt *statement,
                 const struct table_columns *columns, void *row);

/* Frees the texts of a row. */
void columns_clear(const struct table_columns *columns, void *row);

/*
** Computes the hash of a row from the row and the hash of the previous row. `previous` and `hash`
** may be the same buffer.
*/
void columns_hash(const char *previous, const struct table_columns *columns, const void *row,
                  char hash[HASH_SIZE]);

/*
** Returns the fields of a row's fingerprint, joined by slashes. The caller calls sqlite3_free().
** Returns null if memory runs out.
*/
char *columns_fingerprint(const struct table_columns *columns, const void *row);

/* ---- one column of a result ------------------------------------------------------------------ */

/*
** Return a column's text, or null for NULL, and set the error if memory runs out. column_borrow()
** returns SQLite's own text, which is valid until the next step, and column_copy() returns a copy,
** which the caller frees with sqlite3_free().
*/
const char *column_borrow(struct ledger *ledger, sqlite3_stmt *statement, int column);
char *column_copy(struct ledger *ledger, sqlite3_stmt *statement, int column);

/*
** column_text() returns a column's text, or "" for NULL. column_bytes() returns the bytes of a
** blob, or a null pointer for NULL. Both results are valid until the next step.
*/
const char *column_text(sqlite3_stmt *statement, int column);
struct bytes column_bytes(sqlite3_stmt *statement, int column);

/* Returns the number in a column, or NaN for NULL. */
double column_number(sqlite3_stmt *statement, int column);

#endif
