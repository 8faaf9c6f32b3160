/*
** columns.h: the columns of the ledger's tables, each listed once.
**
** sql/ledger.sql holds the schema and explains each column. A line here is
**
**     X(name, kind, shown, role)
**
** Four things follow from these lists: the structs that hold a row, the statements that insert and
** read rows, the tables that the host sees, and the lines that are hashed. Hashes and fingerprints
** use the order of columns in the list. Seals do not depend on these lists, because they cover
** every column in the order of sql/ledger.sql.
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
**   NOW         no member: the time of the insertion, never read
**   LATER       no member: NULL in a new row, never read
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
#define RELEASE_COLUMNS(X)                                                                         \
  X(id, ID, 1, PLAIN, "1")                                                                         \
  X(name, TEXT, 2, PLAIN, "1")                                                                     \
  X(kind, TEXT, 3, HASHED, "1")                                                                    \
  X(mechanism, TEXT, 4, HASHED, "1")                                                               \
  X(clip, REAL, 5, HASHED, SAYS(clip, "0"))                                                        \
  X(weight, REAL, 9, HASHED, SAYS(weight, "1"))                                                    \
  X(centre, REAL, 0, HASHED, SAYS(centre, "0"))                                                    \
  X(radius, REAL, 0, HASHED, SAYS(radius, "0"))                                                    \
  X(theta, REAL, 0, HASHED, SAYS(theta, "0"))                                                      \
  X(rho, REAL, 0, HASHED, SAYS(rho, "0"))                                                          \
  X(lo, REAL, 0, HASHED, SAYS(lo, "0"))                                                            \
  X(hi, REAL, 0, HASHED, SAYS(hi, "0"))                                                            \
  X(grid, REAL, 0, HASHED, SAYS(grid, "0"))                                                        \
  X(diagnose, COUNT, 0, HASHED, SAYS(diagnose, "0"))                                               \
  X(key_share, REAL, 0, HASHED, SAYS(key_share, "0"))                                              \
  X(size, COUNT, 0, HASHED,                                                                        \
    "ifnull(size, 0) ="                                                                            \
    " coalesce(json_extract(options, '$.dim'), json_extract(options, '$.bins'), 0)")               \
  X(max_groups, COUNT, 0, HASHED, SAYS(max_groups, "0"))                                           \
  X(quantiles, TEXT, 0, HASHED, "json_extract(options, '$.q') IS json_extract(quantiles, '$')")    \
  X(keys, TEXT, 12, DIGEST, "1")                                                                   \
  X(ways, TEXT, 18, DIGEST, "1")                                                                   \
  X(multipliers, TEXT, 19, PLAIN, "1")                                                             \
  X(periods, TEXT, 20, DIGEST, "1")                                                                \
  X(appended, COUNT, 0, PLAIN, "1")                                                                \
  X(secret, TEXT, 0, PLAIN, "1")                                                                   \
  X(unit_type, TEXT, 0, PLAIN, "1")                                                                \
  X(model, TEXT, 13, DIGEST, "json_extract(options, '$.model') IS json_extract(model, '$')")       \
  X(dimension, COUNT, 6, PLAIN, "1")                                                               \
  X(granularity, NUMBER, 7, PLAIN, "1")                                                            \
  X(shift, NUMBER, 0, PLAIN, "1")                                                                  \
  X(sensitivity, UNSIGNED, 8, PLAIN, "1")                                                          \
  X(slack, REAL, 10, PLAIN, "1")                                                                   \
  X(options, TEXT, 11, PLAIN, "1")                                                                 \
  X(sql, TEXT, 14, PLAIN, "1")                                                                     \
  X(statement, TEXT, 21, PLAIN, "1")                                                               \
  X(tables, LATER, 15, PLAIN, "1")                                                                 \
  X(fingerprint, TEXT, 0, PLAIN, "1")                                                              \
  X(state, TEXT, 16, PLAIN, "1")                                                                   \
  X(created_at, NOW, 17, PLAIN, "1")

#define POLICY_COLUMNS(X)                                                                          \
  X(table_name, BORROWED, 1, PLAIN)                                                                \
  X(role, BORROWED, 2, PLAIN)                                                                      \
  X(unit_column, BORROWED, 3, PLAIN)                                                               \
  X(parent, BORROWED, 4, PLAIN)                                                                    \
  X(created_at, NOW, 5, PLAIN)

#define TIER_COLUMNS(X)                                                                            \
  X(name, TEXT, 1, PLAIN)                                                                          \
  X(rate, REAL, 2, PLAIN)                                                                          \
  X(epsilon, REAL, 3, PLAIN)                                                                       \
  X(delta, REAL, 4, PLAIN)                                                                         \
  X(delta_keys, REAL, 5, PLAIN)                                                                    \
  X(accountant, ACCOUNTANT, 6, PLAIN)                                                              \
  X(filter_order, REAL, 7, PLAIN)                                                                  \
  X(rate_limit, REAL, 8, PLAIN)                                                                    \
  X(pure_limit, REAL, 11, PLAIN)                                                                   \
  X(slack_limit, REAL, 0, PLAIN)                                                                   \
  X(period, TEXT, 10, PLAIN)                                                                       \
  X(created_at, NOW, 9, PLAIN)                                                                     \
  X(dropped_at, LATER, 0, PLAIN)

#define PUBLICATION_COLUMNS(X)                                                                     \
  X(release_id, WIDE, 1, PLAIN)                                                                    \
  X(release, BORROWED, 2, PLAIN)                                                                   \
  X(tier, BORROWED, 3, PLAIN)                                                                      \
  X(clock, UNSIGNED, 4, PLAIN)                                                                     \
  X(rate, REAL, 5, PLAIN)                                                                          \
  X(shrink, REAL, 6, PLAIN)                                                                        \
  X(centre, REAL, 7, PLAIN)                                                                        \
  X(curve, BLOB, 0, PLAIN)                                                                         \
  X(delta, REAL, 0, PLAIN)                                                                         \
  X(kernel, BORROWED, 8, PLAIN)                                                                    \
  X(clipped, REAL, 10, PLAIN)                                                                      \
  X(unclipped, REAL, 11, PLAIN)                                                                    \
  X(unit_stddev, REAL, 12, PLAIN)                                                                  \
  X(published_at, NOW, 9, PLAIN)

#define VALUE_COLUMNS(X)                                                                           \
  X(release_id, WIDE, 1, PLAIN)                                                                    \
  X(release, BORROWED, 2, PLAIN)                                                                   \
  X(tier, BORROWED, 3, PLAIN)                                                                      \
  X(key, BORROWED, 4, PLAIN)                                                                       \
  X(component, NUMBER, 5, PLAIN)                                                                   \
  X(value, REAL, 6, PLAIN)                                                                         \
  X(stddev, REAL, 7, PLAIN)                                                                        \
  X(low, REAL, 8, PLAIN)                                                                           \
  X(high, REAL, 9, PLAIN)

#define POINT_COLUMNS(X)                                                                           \
  X(release_id, WIDE, 0, PLAIN)                                                                    \
  X(id, ID, 0, PLAIN)                                                                              \
  X(release, BORROWED, 0, PLAIN)                                                                   \
  X(tier, BORROWED, 0, PLAIN)                                                                      \
  X(clock, UNSIGNED, 0, PLAIN)

#define COORDINATE_COLUMNS(X)                                                                      \
  X(point, WIDE, 0, PLAIN)                                                                         \
  X(key, BORROWED, 0, PLAIN)                                                                       \
  X(component, NUMBER, 0, PLAIN)                                                                   \
  X(value, WIDE, 0, PLAIN)

#define EXACT_COLUMNS(X)                                                                           \
  X(release_id, WIDE, 0, PLAIN)                                                                    \
  X(period, BORROWED, 0, PLAIN)                                                                    \
  X(key, BORROWED, 0, PLAIN)                                                                       \
  X(component, NUMBER, 0, PLAIN)                                                                   \
  X(value, BORROWED, 0, PLAIN)

#define ALLOWANCE_COLUMNS(X)                                                                       \
  X(release_id, WIDE, 0, PLAIN)                                                                    \
  X(part, NUMBER, 0, PLAIN)                                                                        \
  X(units, BLOB, 0, PLAIN)

/*
** `subject` and `tier_rate` are not stored in dp_charge, but the hash covers them. The hash does
** not cover the column `hash`.
*/
#define CHARGE_COLUMNS(X)                                                                          \
  X(id, ID, 1, HASHED)                                                                             \
  X(release_id, WIDE, 2, HASHED)                                                                   \
  X(release, BORROWED, 3, HASHED)                                                                  \
  X(tier, BORROWED, 4, HASHED)                                                                     \
  X(subject, BORROWED, 0, ADDED)                                                                   \
  X(tier_rate, REAL, 0, ADDED)                                                                     \
  X(rate, REAL, 5, HASHED)                                                                         \
  X(slack, REAL, 8, HASHED)                                                                        \
  X(delta, REAL, 7, HASHED)                                                                        \
  X(curve, BLOB, 6, HASHED)                                                                        \
  X(at, BORROWED, 9, HASHED)                                                                       \
  X(period, BORROWED, 11, HASHED)                                                                  \
  X(grant_name, BORROWED, 12, HASHED)                                                              \
  X(hash, BORROWED, 10, PLAIN)

/*
** release_id is the id of a release, SEAL_TERMS or SEAL_ORDERS. charge is the hash of the charge
** with the id charge_id.
*/
#define SEAL_COLUMNS(X)                                                                            \
  X(id, ID, 0, HASHED)                                                                             \
  X(release_id, WIDE, 0, HASHED)                                                                   \
  X(digest, BORROWED, 0, HASHED)                                                                   \
  X(books, BORROWED, 0, HASHED)                                                                    \
  X(charge_id, WIDE, 0, HASHED)                                                                    \
  X(charge, BORROWED, 0, ADDED)                                                                    \
  X(at, BORROWED, 0, HASHED)                                                                       \
  X(hash, BORROWED, 0, PLAIN)

#define BUDGET_COLUMNS(X)                                                                          \
  X(tier, BORROWED, 1, PLAIN)                                                                      \
  X(epsilon, REAL, 2, PLAIN)                                                                       \
  X(delta, REAL, 3, PLAIN)                                                                         \
  X(spent_epsilon, REAL, 4, PLAIN)                                                                 \
  X(remaining_epsilon, REAL, 5, PLAIN)                                                             \
  X(spent_rate, REAL, 6, PLAIN)                                                                    \
  X(spent_delta, REAL, 7, PLAIN)                                                                   \
  X(releases, WIDE, 8, PLAIN)                                                                      \
  X(releases_left, WIDE, 9, PLAIN)                                                                 \
  X(spent_high, REAL, 0, PLAIN)                                                                    \
  X(spent_low, REAL, 0, PLAIN)                                                                     \
  X(spent_slack, REAL, 0, PLAIN)                                                                   \
  X(spent_curve, REAL, 0, PLAIN)                                                                   \
  X(spent_pure, REAL, 0, PLAIN)                                                                    \
  X(period_start, LATER, 10, PLAIN)                                                                \
  X(period_end, LATER, 11, PLAIN)

#define GRANT_COLUMNS(X)                                                                           \
  X(name, TEXT, 1, PLAIN)                                                                          \
  X(tier, TEXT, 2, PLAIN)                                                                          \
  X(share, REAL, 3, PLAIN)                                                                         \
  X(questions, COUNT, 4, PLAIN)                                                                    \
  X(diffuse, TEXT, 5, PLAIN)                                                                       \
  X(pad_ms, NUMBER, 6, PLAIN)                                                                      \
  X(seconds, REAL, 7, PLAIN)                                                                       \
  X(steps, REAL, 8, PLAIN)                                                                         \
  X(bytes, REAL, 9, PLAIN)                                                                         \
  X(created_at, NOW, 10, PLAIN)

#define RESERVE_COLUMNS(X)                                                                         \
  X(grant_name, BORROWED, 1, PLAIN)                                                                \
  X(tier, BORROWED, 2, PLAIN)                                                                      \
  X(reserved, REAL, 3, PLAIN)                                                                      \
  X(spent, REAL, 4, PLAIN)                                                                         \
  X(reserved_delta, REAL, 5, PLAIN)                                                                \
  X(spent_delta, REAL, 6, PLAIN)                                                                   \
  X(charges, WIDE, 7, PLAIN)                                                                       \
  X(reserved_slack, REAL, 0, PLAIN)                                                                \
  X(spent_slack, REAL, 0, PLAIN)                                                                   \
  X(spent_high, REAL, 0, PLAIN)                                                                    \
  X(spent_low, REAL, 0, PLAIN)                                                                     \
  X(spent_curve, REAL, 0, PLAIN)

#define ORDER_COLUMNS(X)                                                                           \
  X(tier, BORROWED, 0, PLAIN)                                                                      \
  X(alpha, REAL, 0, PLAIN)                                                                         \
  X(allowed, REAL, 0, PLAIN)                                                                       \
  X(curve, REAL, 0, PLAIN)

/* The view dp_rdp. */
#define RDP_COLUMNS(X)                                                                             \
  X(tier, BORROWED, 1, PLAIN)                                                                      \
  X(alpha, REAL, 2, PLAIN)                                                                         \
  X(spent, REAL, 3, PLAIN)                                                                         \
  X(allowed, REAL, 4, PLAIN)

/* Declares the struct member for each column of a list: `struct x { X_COLUMNS(COLUMN_MEMBER) };` */
#define COLUMN_MEMBER(name, kind, ...) MEMBER_##kind(name)
#define MEMBER_ID(name)                int64_t name;
#define MEMBER_WIDE(name)              int64_t name;
#define MEMBER_UNSIGNED(name)          uint64_t name;
#define MEMBER_NUMBER(name)            int name;
#define MEMBER_COUNT(name)             int name;
#define MEMBER_REAL(name)              double name;
#define MEMBER_TEXT(name)              char *name;
#define MEMBER_BORROWED(name)          const char *name;
#define MEMBER_BLOB(name)              struct bytes name;
#define MEMBER_ACCOUNTANT(name)        const struct accountant *name;
#define MEMBER_NOW(name)
#define MEMBER_LATER(name)

#endif
