/* range_readers.c: see range_readers.h. Tests: tests/query/test_question_threads.py */
#include "query/range_readers.h"

#include <stdlib.h>

#include "query/rowid_ranges.h"
#include "query/interrupts.h"

SQLITE_EXTENSION_INIT3

#define MOST  256 /* the most ranges; with so many, no thread waits long for the last range */
#define ASKED 32  /* runs of the host's statement (about 10 instructions) in each check */

/* How one connection reads ranges. */
struct range_reader {
  sqlite3_stmt *statement;
  struct collection collection;
  struct unit_map map; /* the map of the rows of a further connection */
};

struct reading {
  const struct range_query *query;
  struct rowid_ranges ranges;
  struct range_reader *list; /* one for each connection */
};

static int prepare(void *context, const struct reader *reader) {
  struct reading *reading = context;
  const struct range_query *query = reading->query;
  struct range_reader *own = &reading->list[reader->number];
  sqlite3 *db = reader->collector->db;
  own->collection = (struct collection){.rows = reader->rows, .columns = query->columns};
  int prepared = (reader->number == 0 || query->is_same(query->context, db)) &&
                 sqlite3_prepare_v2(db, query->text, -1, &own->statement, 0) == SQLITE_OK;
  if (!prepared) interrupt_pass_on(db);
  return prepared;
}

static int open_rows(void *context, const struct reader *reader, struct error *error) {
  const struct reading *reading = context;
  const struct range_query *query = reading->query;
  return query->open(query->context, reader->rows, reader->secret,
                     &reading->list[reader->number].map, error);
}

/* Reads the rows of a range of rowids. */
static int read_rows(const struct reading *reading, const struct reader *reader, int64_t from,
                     int64_t to, struct error *error) {
  const struct range_query *query = reading->query;
  struct range_reader *own = &reading->list[reader->number];
  sqlite3_bind_int64(own->statement, 1, from);
  sqlite3_bind_int64(own->statement, 2, to);
  int rc = collector_run(reader->collector, own->statement, &own->collection);
  if (rc != SQLITE_DONE) query->explain(query->context, reader->collector, rc, error);
  sqlite3_reset(own->statement); /* the error has been reported */
  return rc;
}

static int read_range(void *context, const struct reader *reader, unsigned range,
                      struct error *error) {
  const struct reading *reading = context;
  int64_t first, last;
  rowid_ranges_ends(&reading->ranges, range, &first, &last);
  return read_rows(reading, reader, first, last, error);
}

/* Runs the host's statement on an empty range. */
static int read_nothing(void *context, const struct reader *reader, struct error *error) {
  int rc = SQLITE_DONE;
  for (int i = 0; i < ASKED && rc == SQLITE_DONE; i++)
    rc = read_rows(context, reader, INT64_MAX, INT64_MIN, error);
  return rc;
}

int range_readers_run(struct readers *readers, const struct range_query *query, struct rows *rows,
                      int *rc, struct error *error) {
  struct reading reading = {.query = query};
  int count = readers_count(readers), settled = 0;
  reading.list = calloc((size_t)count, sizeof *reading.list);
  if (reading.list && rowid_ranges_find(&reading.ranges, readers_host(readers)->db, query->table,
                                        query->rowid, MOST, LEAST_RANGE)) {
    struct tasks tasks = {&reading,  reading.ranges.count, prepare,
                          open_rows, read_range,           read_nothing};
    settled = readers_settle(readers, &tasks, rows);
  }
  if (settled) *rc = readers_run(readers, error);
  for (int i = 0; reading.list && i < count; i++) {
    sqlite3_finalize(reading.list[i].statement); /* its errors have been reported */
    unit_map_close(&reading.list[i].map);
  }
  free(reading.list);
  rowid_ranges_close(&reading.ranges);
  return settled;
}
