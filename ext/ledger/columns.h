/*
** columns.h: the columns of the ledger's tables, each listed once.
**
** sql/ledger.sql holds the schema and explains each column. A line here is
**
**     X(T, name, kind, shown, role)
**
** where T is the tag of the struct that holds a row. Four things follow from these lists: the
** structs that hold a row, the statements that insert and read rows, the tables that the host sees,
** and the lines that are hashed. Hashes and fingerprints use the order of columns in the list.
** Seals do not depend on these lists, because they cover every column in the order of
** sql/ledger.sql.
**
** To add a column, write the column in sql/ledger.sql and in the list here. A test compares the two
** files.
*/
#ifndef DIFFUSE_LEDGER_COLUMNS_H
#define DIFFUSE_LEDGER_COLUMNS_H

#include <stddef.h>
#include <stdint.h>

struct accountant;

/* The value of a blob. The struct does not own the bytes. A null pointer stands for NULL. */
struct bytes {
  const void *at;
  int size;
};

/*
** The type of a column's member in the struct of its row, and special values:
**   ID          int64_t; 0: NULL, so that SQLite assigns an id
**   WIDE        int64_t
**   UNSIGNED    uint64_t
**   NUMBER      int
**   COUNT       int; 0: NULL
**   REAL        double; NaN: NULL
**   TEXT        char *, a copy of its own; null: NULL
**   BORROWED    const char *; null: NULL, which is read as ''
**   BLOB        struct bytes
**   ACCOUNTANT  const struct accountant *
**   NOW         the time of the insertion; the member is not used
**   LATER       NULL in a new row; the member is not used
*/
enum column_kind {
  COLUMN_ID,
  COLUMN_WIDE,
  COLUMN_UNSIGNED,
  COLUMN_NUMBER,
  COLUMN_COUNT,
  COLUMN_REAL,
  COLUMN_TEXT,
  COLUMN_BORROWED,
  COLUMN_BLOB,
  COLUMN_ACCOUNTANT,
  COLUMN_NOW,
  COLUMN_LATER
};

/*
** The role of a column in the hash or fingerprint of its row:
**   PLAIN    none
**   HASHED   a line of the hash, empty for NULL; a field of the fingerprint, '-' for NULL (a COUNT:
**            '0')
**   ADDED    a line of the hash, but a column of another table
**   DIGEST   a field of the fingerprint that holds the hash of the text; '-' for NULL
*/
enum column_role { ROLE_PLAIN, ROLE_HASHED, ROLE_ADDED, ROLE_DIGEST };

struct column {
  const char *name;
  enum column_kind kind;
  enum column_role role;
  int shown;     /* position, from 1 on, among the columns that the host sees; 0: hidden */
  size_t member; /* offset in the struct of the row */
};

struct table_columns {
  const char *table;
  const struct column *list;
  int count;
};

/*
** The columns of a release. The last argument of X is an SQL condition that holds if the column
** agrees with the column `options`, the JSON text that people read. `dimension` is 0 if keys are
** private. `size` and `max_groups` are 0 if the caller did not give them.
*/
#define RELEASE_COLUMNS(X, T)                                                                      \
  X(T, id, ID, 1, PLAIN, "1")                                                                      \
  X(T, name, TEXT, 2, PLAIN, "1")                                                                  \
  X(T, kind, TEXT, 3, HASHED, "1")                                                                 \
  X(T, mechanism, TEXT, 4, HASHED, "1")                                                            \
  X(T, clip, REAL, 5, HASHED, SAYS(clip, "0"))                                                     \
  X(T, weight, REAL, 9, HASHED, SAYS(weight, "1"))                                                 \
  X(T, centre, REAL, 0, HASHED, SAYS(centre, "0"))                                                 \
  X(T, radius, REAL, 0, HASHED, SAYS(radius, "0"))                                                 \
  X(T, theta, REAL, 0, HASHED, SAYS(theta, "0"))                                                   \
  X(T, rho, REAL, 0, HASHED, SAYS(rho, "0"))                                                       \
  X(T, lo, REAL, 0, HASHED, SAYS(lo, "0"))                                                         \
  X(T, hi, REAL, 0, HASHED, SAYS(hi, "0"))                                                         \
  X(T, grid, REAL, 0, HASHED, SAYS(grid, "0"))                                                     \
  X(T, diagnose, COUNT, 0, HASHED, SAYS(diagnose, "0"))                                            \
  X(T, key_share, REAL, 0, HASHED, SAYS(key_share, "0"))                                           \
  X(T, size, COUNT, 0, HASHED,                                                                     \
    "ifnull(size, 0) ="                                                                            \
    " coalesce(json_extract(options, '$.dim'), json_extract(options, '$.bins'), 0)")               \
  X(T, max_groups, COUNT, 0, HASHED, SAYS(max_groups, "0"))                                        \
  X(T, quantiles, TEXT, 0, HASHED, "json_extract(options, '$.q') IS json_extract(quantiles, '$')") \
  X(T, keys, TEXT, 12, DIGEST, "1")                                                                \
  X(T, ways, TEXT, 18, DIGEST, "1")                                                                \
  X(T, multipliers, TEXT, 19, PLAIN, "1")                                                          \
  X(T, periods, TEXT, 20, DIGEST, "1")                                                             \
  X(T, appended, COUNT, 0, PLAIN, "1")                                                             \
  X(T, secret, TEXT, 0, PLAIN, "1")                                                                \
  X(T, unit_type, TEXT, 0, PLAIN, "1")                                                             \
  X(T, model, TEXT, 13, DIGEST, "json_extract(options, '$.model') IS json_extract(model, '$')")    \
  X(T, dimension, COUNT, 6, PLAIN, "1")                                                            \
  X(T, granularity, NUMBER, 7, PLAIN, "1")                                                         \
  X(T, shift, NUMBER, 0, PLAIN, "1")                                                               \
  X(T, sensitivity, UNSIGNED, 8, PLAIN, "1")                                                       \
  X(T, slack, REAL, 10, PLAIN, "1")                                                                \
  X(T, options, TEXT, 11, PLAIN, "1")                                                              \
  X(T, sql, TEXT, 14, PLAIN, "1")                                                                  \
  X(T, statement, TEXT, 21, PLAIN, "1")                                                            \
  X(T, tables, LATER, 15, PLAIN, "1")                                                              \
  X(T, fingerprint, TEXT, 0, PLAIN, "1")                                                           \
  X(T, state, TEXT, 16, PLAIN, "1")                                                                \
  X(T, created_at, NOW, 17, PLAIN, "1")

#define POLICY_COLUMNS(X, T)                                                                       \
  X(T, table_name, BORROWED, 1, PLAIN)                                                             \
  X(T, role, BORROWED, 2, PLAIN)                                                                   \
  X(T, unit_column, BORROWED, 3, PLAIN)                                                            \
  X(T, parent, BORROWED, 4, PLAIN)                                                                 \
  X(T, created_at, NOW, 5, PLAIN)

#define TIER_COLUMNS(X, T)                                                                         \
  X(T, name, TEXT, 1, PLAIN)                                                                       \
  X(T, rate, REAL, 2, PLAIN)                                                                       \
  X(T, epsilon, REAL, 3, PLAIN)                                                                    \
  X(T, delta, REAL, 4, PLAIN)                                                                      \
  X(T, delta_keys, REAL, 5, PLAIN)                                                                 \
  X(T, accountant, ACCOUNTANT, 6, PLAIN)                                                           \
  X(T, filter_order, REAL, 7, PLAIN)                                                               \
  X(T, rate_limit, REAL, 8, PLAIN)                                                                 \
  X(T, pure_limit, REAL, 11, PLAIN)                                                                \
  X(T, slack_limit, REAL, 0, PLAIN)                                                                \
  X(T, period, TEXT, 10, PLAIN)                                                                    \
  X(T, created_at, NOW, 9, PLAIN)                                                                  \
  X(T, dropped_at, LATER, 0, PLAIN)

#define PUBLICATION_COLUMNS(X, T)                                                                  \
  X(T, release_id, WIDE, 1, PLAIN)                                                                 \
  X(T, release, BORROWED, 2, PLAIN)                                                                \
  X(T, tier, BORROWED, 3, PLAIN)                                                                   \
  X(T, clock, UNSIGNED, 4, PLAIN)                                                                  \
  X(T, rate, REAL, 5, PLAIN)                                                                       \
  X(T, shrink, REAL, 6, PLAIN)                                                                     \
  X(T, centre, REAL, 7, PLAIN)                                                                     \
  X(T, curve, BLOB, 0, PLAIN)                                                                      \
  X(T, delta, REAL, 0, PLAIN)                                                                      \
  X(T, kernel, BORROWED, 8, PLAIN)                                                                 \
  X(T, clipped, REAL, 10, PLAIN)                                                                   \
  X(T, unclipped, REAL, 11, PLAIN)                                                                 \
  X(T, unit_stddev, REAL, 12, PLAIN)                                                               \
  X(T, published_at, NOW, 9, PLAIN)

#define VALUE_COLUMNS(X, T)                                                                        \
  X(T, release_id, WIDE, 1, PLAIN)                                                                 \
  X(T, release, BORROWED, 2, PLAIN)                                                                \
  X(T, tier, BORROWED, 3, PLAIN)                                                                   \
  X(T, key, BORROWED, 4, PLAIN)                                                                    \
  X(T, component, NUMBER, 5, PLAIN)                                                                \
  X(T, value, REAL, 6, PLAIN)                                                                      \
  X(T, stddev, REAL, 7, PLAIN)                                                                     \
  X(T, low, REAL, 8, PLAIN)                                                                        \
  X(T, high, REAL, 9, PLAIN)

#define POINT_COLUMNS(X, T)                                                                        \
  X(T, release_id, WIDE, 0, PLAIN)                                                                 \
  X(T, id, ID, 0, PLAIN)                                                                           \
  X(T, release, BORROWED, 0, PLAIN)                                                                \
  X(T, tier, BORROWED, 0, PLAIN)                                                                   \
  X(T, clock, UNSIGNED, 0, PLAIN)

#define COORDINATE_COLUMNS(X, T)                                                                   \
  X(T, point, WIDE, 0, PLAIN)                                                                      \
  X(T, key, BORROWED, 0, PLAIN)                                                                    \
  X(T, component, NUMBER, 0, PLAIN)                                                                \
  X(T, value, WIDE, 0, PLAIN)

#define EXACT_COLUMNS(X, T)                                                                        \
  X(T, release_id, WIDE, 0, PLAIN)                                                                 \
  X(T, period, BORROWED, 0, PLAIN)                                                                 \
  X(T, key, BORROWED, 0, PLAIN)                                                                    \
  X(T, component, NUMBER, 0, PLAIN)                                                                \
  X(T, value, BORROWED, 0, PLAIN)

#define ALLOWANCE_COLUMNS(X, T)                                                                    \
  X(T, release_id, WIDE, 0, PLAIN)                                                                 \
  X(T, part, NUMBER, 0, PLAIN)                                                                     \
  X(T, units, BLOB, 0, PLAIN)

/*
** `subject` and `tier_rate` are not stored in dp_charge, but the hash covers them. The hash does
** not cover the column `hash`.
*/
#define CHARGE_COLUMNS(X, T)                                                                       \
  X(T, id, ID, 1, HASHED)                                                                          \
  X(T, release_id, WIDE, 2, HASHED)                                                                \
  X(T, release, BORROWED, 3, HASHED)                                                               \
  X(T, tier, BORROWED, 4, HASHED)                                                                  \
  X(T, subject, BORROWED, 0, ADDED)                                                                \
  X(T, tier_rate, REAL, 0, ADDED)                                                                  \
  X(T, rate, REAL, 5, HASHED)                                                                      \
  X(T, slack, REAL, 8, HASHED)                                                                     \
  X(T, delta, REAL, 7, HASHED)                                                                     \
  X(T, curve, BLOB, 6, HASHED)                                                                     \
  X(T, at, BORROWED, 9, HASHED)                                                                    \
  X(T, period, BORROWED, 11, HASHED)                                                               \
  X(T, grant_name, BORROWED, 12, HASHED)                                                           \
  X(T, hash, BORROWED, 10, PLAIN)

/*
** release_id is the id of a release, SEAL_TERMS or SEAL_ORDERS. charge is the hash of the charge
** with the id charge_id.
*/
#define SEAL_COLUMNS(X, T)                                                                         \
  X(T, id, ID, 0, HASHED)                                                                          \
  X(T, release_id, WIDE, 0, HASHED)                                                                \
  X(T, digest, BORROWED, 0, HASHED)                                                                \
  X(T, books, BORROWED, 0, HASHED)                                                                 \
  X(T, charge_id, WIDE, 0, HASHED)                                                                 \
  X(T, charge, BORROWED, 0, ADDED)                                                                 \
  X(T, at, BORROWED, 0, HASHED)                                                                    \
  X(T, hash, BORROWED, 0, PLAIN)

#define BUDGET_COLUMNS(X, T)                                                                       \
  X(T, tier, BORROWED, 1, PLAIN)                                                                   \
  X(T, epsilon, REAL, 2, PLAIN)                                                                    \
  X(T, delta, REAL, 3, PLAIN)                                                                      \
  X(T, spent_epsilon, REAL, 4, PLAIN)                                                              \
  X(T, remaining_epsilon, REAL, 5, PLAIN)                                                          \
  X(T, spent_rate, REAL, 6, PLAIN)                                                                 \
  X(T, spent_delta, REAL, 7, PLAIN)                                                                \
  X(T, releases, WIDE, 8, PLAIN)                                                                   \
  X(T, releases_left, WIDE, 9, PLAIN)                                                              \
  X(T, spent_high, REAL, 0, PLAIN)                                                                 \
  X(T, spent_low, REAL, 0, PLAIN)                                                                  \
  X(T, spent_slack, REAL, 0, PLAIN)                                                                \
  X(T, spent_curve, REAL, 0, PLAIN)                                                                \
  X(T, spent_pure, REAL, 0, PLAIN)                                                                 \
  X(T, period_start, LATER, 10, PLAIN)                                                             \
  X(T, period_end, LATER, 11, PLAIN)

#define GRANT_COLUMNS(X, T)                                                                        \
  X(T, name, TEXT, 1, PLAIN)                                                                       \
  X(T, tier, TEXT, 2, PLAIN)                                                                       \
  X(T, share, REAL, 3, PLAIN)                                                                      \
  X(T, questions, COUNT, 4, PLAIN)                                                                 \
  X(T, diffuse, TEXT, 5, PLAIN)                                                                    \
  X(T, pad_ms, NUMBER, 6, PLAIN)                                                                   \
  X(T, seconds, REAL, 7, PLAIN)                                                                    \
  X(T, steps, REAL, 8, PLAIN)                                                                      \
  X(T, bytes, REAL, 9, PLAIN)                                                                      \
  X(T, created_at, NOW, 10, PLAIN)

#define RESERVE_COLUMNS(X, T)                                                                      \
  X(T, grant_name, BORROWED, 1, PLAIN)                                                             \
  X(T, tier, BORROWED, 2, PLAIN)                                                                   \
  X(T, reserved, REAL, 3, PLAIN)                                                                   \
  X(T, spent, REAL, 4, PLAIN)                                                                      \
  X(T, reserved_delta, REAL, 5, PLAIN)                                                             \
  X(T, spent_delta, REAL, 6, PLAIN)                                                                \
  X(T, charges, WIDE, 7, PLAIN)                                                                    \
  X(T, reserved_slack, REAL, 0, PLAIN)                                                             \
  X(T, spent_slack, REAL, 0, PLAIN)                                                                \
  X(T, spent_high, REAL, 0, PLAIN)                                                                 \
  X(T, spent_low, REAL, 0, PLAIN)                                                                  \
  X(T, spent_curve, REAL, 0, PLAIN)

#define ORDER_COLUMNS(X, T)                                                                        \
  X(T, tier, BORROWED, 0, PLAIN)                                                                   \
  X(T, alpha, REAL, 0, PLAIN)                                                                      \
  X(T, allowed, REAL, 0, PLAIN)                                                                    \
  X(T, curve, REAL, 0, PLAIN)

/* The view dp_rdp. */
#define RDP_COLUMNS(X, T)                                                                          \
  X(T, tier, BORROWED, 1, PLAIN)                                                                   \
  X(T, alpha, REAL, 2, PLAIN)                                                                      \
  X(T, spent, REAL, 3, PLAIN)                                                                      \
  X(T, allowed, REAL, 4, PLAIN)

/* Declares the struct of the rows of a table. */
#define ROW_STRUCT(name, LIST)                                                                     \
  struct name {                                                                                    \
    LIST(COLUMN_MEMBER, name)                                                                      \
  }
#define COLUMN_MEMBER(T, name, kind, ...) MEMBER_##kind(name)
#define MEMBER_ID(name)                   int64_t name;
#define MEMBER_WIDE(name)                 int64_t name;
#define MEMBER_UNSIGNED(name)             uint64_t name;
#define MEMBER_NUMBER(name)               int name;
#define MEMBER_COUNT(name)                int name;
#define MEMBER_REAL(name)                 double name;
#define MEMBER_TEXT(name)                 char *name;
#define MEMBER_BORROWED(name)             const char *name;
#define MEMBER_BLOB(name)                 struct bytes name;
#define MEMBER_ACCOUNTANT(name)           const struct accountant *name;
#define MEMBER_NOW(name)                  const char *name;
#define MEMBER_LATER(name)                const char *name;

#endif
