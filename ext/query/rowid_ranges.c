/* rowid_ranges.c: see rowid_ranges.h. Tests: tests/query/test_question_threads.py */
#include "query/rowid_ranges.h"

#include <stdlib.h>

#include "query/interrupts.h"

SQLITE_EXTENSION_INIT3

/* A table and a name of its rowid. */
struct place {
  sqlite3 *db;
  const char *table, *rowid;
};

/*
** Finds the first or last rowid of the table. The statement *row keeps the transaction open.
** Returns 0 if the table is empty.
*/
static int end_of(const struct place *place, const char *order, sqlite3_stmt **row,
                  int64_t *rowid) {
  char *sql = sqlite3_mprintf("SELECT %s FROM main.\"%w\" ORDER BY %s%s LIMIT 1", place->rowid,
                              place->table, place->rowid, order);
  int found = sql && sqlite3_prepare_v2(place->db, sql, -1, row, 0) == SQLITE_OK &&
              sqlite3_step(*row) == SQLITE_ROW && sqlite3_column_type(*row, 0) == SQLITE_INTEGER;
  if (found) *rowid = sqlite3_column_int64(*row, 0);
  if (!found) interrupt_pass_on(place->db);
  sqlite3_free(sql);
  return found;
}

/* A part of the table, from its first to its last row. */
struct part {
  int64_t first, last;
};

/* Returns the difference between the last and the first rowid of a part. */
static uint64_t span_of(const struct part *part) {
  return (uint64_t)part->last - (uint64_t)part->first;
}

/* Finds the row next to a rowid. Returns 0 if there is none. */
static int seek(sqlite3_stmt *statement, int64_t from, int64_t *rowid) {
  sqlite3_bind_int64(statement, 1, from);
  int found =
      sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_type(statement, 0) == SQLITE_INTEGER;
  if (found) *rowid = sqlite3_column_int64(statement, 0);
  /* After an error, the part stays whole. */
  if (sqlite3_reset(statement) != SQLITE_OK) interrupt_pass_on(sqlite3_db_handle(statement));
  return found;
}

/*
** Prepares a statement that finds the row next to ?1. `compare` is an operator, and `order` ends
** ORDER BY. Returns null if the statement does not compile.
*/
static sqlite3_stmt *prepare_seek(const struct place *place, const char *compare,
                                  const char *order) {
  sqlite3_stmt *statement = 0;
  char *sql =
      sqlite3_mprintf("SELECT %s FROM main.\"%w\" WHERE %s %s ?1 ORDER BY %s%s LIMIT 1",
                      place->rowid, place->table, place->rowid, compare, place->rowid, order);
  if (sql && sqlite3_prepare_v2(place->db, sql, -1, &statement, 0) != SQLITE_OK)
    interrupt_pass_on(place->db);
  sqlite3_free(sql);
  return statement;
}

/*
** Divides a part of the table into at most `most` parts. Halves the widest part again and again.
** Each half begins and ends at a row, so a wide gap between rows costs one of the parts, and rows
** that are close together are divided even if others are far away. Returns the number of parts.
*/
static unsigned halve(const struct place *place, struct part *parts, unsigned most,
                      unsigned least) {
  sqlite3_stmt *before = prepare_seek(place, "<", " DESC");
  sqlite3_stmt *after = prepare_seek(place, ">=", "");
  unsigned count = 1;
  while (before && after && count < most) {
    struct part *widest = parts;
    for (struct part *part = parts; part < parts + count; part++)
      if (span_of(part) > span_of(widest)) widest = part;
    struct part lower = *widest, upper = *widest;
    if (span_of(widest) < 2 * (uint64_t)least) break;
    int64_t middle = (int64_t)((uint64_t)widest->first + span_of(widest) / 2 + 1);
    if (!seek(before, middle, &lower.last) || !seek(after, middle, &upper.first) ||
        lower.last >= middle || upper.first < middle)
      break;
    *widest = lower;
    parts[count++] = upper;
  }
  sqlite3_finalize(before);
  sqlite3_finalize(after);
  return count;
}

static int by_first(const void *a, const void *b) {
  const struct part *p = a, *q = b;
  return (p->first > q->first) - (p->first < q->first);
}

int rowid_ranges_find(struct rowid_ranges *ranges, sqlite3 *db, const char *table,
                      const char *rowid, unsigned most, unsigned least) {
  const struct place place = {db, table, rowid};
  sqlite3_stmt *end = 0;
  struct part parts[RANGES];
  ranges->count = 0;
  ranges->begun = 0;
  int found = end_of(&place, "", &ranges->begun, &parts[0].first) &&
              end_of(&place, " DESC", &end, &parts[0].last);
  sqlite3_finalize(end);
  if (!found || parts[0].last < parts[0].first || span_of(parts) < 2 * (uint64_t)LEAST_RANGE)
    return 0;
  ranges->count = halve(&place, parts, most < RANGES ? most : RANGES, least);
  qsort(parts, ranges->count, sizeof *parts, by_first);
  for (unsigned i = 0; i < ranges->count; i++) ranges->starts[i] = parts[i].first;
  return ranges->count >= 2;
}

void rowid_ranges_close(struct rowid_ranges *ranges) {
  sqlite3_finalize(ranges->begun);
  ranges->begun = 0;
}

void rowid_ranges_ends(const struct rowid_ranges *ranges, unsigned range, int64_t *first,
                       int64_t *last) {
  *first = range > 0 ? ranges->starts[range] : INT64_MIN;
  *last = range + 1 < ranges->count ? ranges->starts[range + 1] - 1 : INT64_MAX;
}
