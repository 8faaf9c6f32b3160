/* rows.c: see rows.h. */
#include "functions/rows.h"

#include <math.h>
#include <stdlib.h>

#include "functions/functions.h"
#include "functions/numbers.h"

SQLITE_EXTENSION_INIT3

/* ---- identities and keys ------------------------------------------------------------------------- */

/* Who a value stands for. Returns 0, or -1 when out of memory. */
static int identity_of(const struct secret *secret, sqlite3_value *value,
                       struct identity *identity) {
  int type = sqlite3_value_type(value);
  if (type == SQLITE_INTEGER) {
    *identity = identity_integer(sqlite3_value_int64(value));
  } else if (type == SQLITE_FLOAT) {
    *identity = identity_real(sqlite3_value_double(value));
  } else if (type == SQLITE_NULL) {
    *identity = identity_null();
  } else {
    /* Before the size: a text may be converted from UTF-16. */
    const void *bytes = type == SQLITE_TEXT ? sqlite3_value_text(value) : sqlite3_value_blob(value);
    size_t size = (size_t)sqlite3_value_bytes(value);
    if (type == SQLITE_TEXT && !bytes) return -1;
    *identity = identity_bytes(secret, bytes, size, type == SQLITE_TEXT);
  }
  return 0;
}

/* Characters of a key, and the bytes of a blob that give as many: a key of any length is data, and must fit
** everywhere. What is cut once is not cut again: the key of a key's text is that text. */
#define KEY_LENGTH 1000
#define BLOB_BYTES 498

/* Bytes of the UTF-8 character that a text starts with; 0 where its bytes are none. */
static int utf8_length(const unsigned char *text) {
  static const struct {
    unsigned char mask, lead;
    uint32_t least;
  } forms[] = {{0x80, 0, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
  for (int size = 1; size <= 4; size++) {
    if ((text[0] & forms[size - 1].mask) != forms[size - 1].lead) continue;
    uint32_t code = text[0] & (unsigned char)~forms[size - 1].mask;
    for (int i = 1; i < size; i++) {
      if ((text[i] & 0xc0) != 0x80) return 0;
      code = code << 6 | (text[i] & 0x3f);
    }
    return code >= forms[size - 1].least && code < 0x110000 && code >> 11 != 0x1b ? size : 0;
  }
  return 0;
}

/* A text for JSON: what is not UTF-8 becomes U+FFFD, byte by byte. */
static char *plain_key(const unsigned char *text) {
  sqlite3_str *key = sqlite3_str_new(0);
  for (int i = 0; *text && i < KEY_LENGTH; i++) {
    int size = utf8_length(text);
    sqlite3_str_append(key, size ? (const char *)text : "\xef\xbf\xbd", size ? size : 3);
    text += size ? size : 1;
  }
  int failed = sqlite3_str_errcode(key) != SQLITE_OK;
  char *copy = sqlite3_str_finish(key);
  return copy || failed ? copy : sqlite3_mprintf(""); /* an empty text comes back as null */
}

char *key_text(sqlite3_value *key) {
  switch (sqlite3_value_type(key)) {
  case SQLITE_INTEGER: return sqlite3_mprintf("%lld", sqlite3_value_int64(key));
  case SQLITE_FLOAT: {
    double x = sqlite3_value_double(key);
    if (x >= -0x1p63 && x < 0x1p63 && x == trunc(x)) return sqlite3_mprintf("%lld", (int64_t)x);
    return sqlite3_mprintf("%!.15g", x);
  }
  case SQLITE_NULL: return sqlite3_mprintf("null");
  case SQLITE_TEXT: {
    const unsigned char *text = sqlite3_value_text(key);
    return text ? plain_key(text) : 0;
  }
  default: {
    const unsigned char *bytes = sqlite3_value_blob(key);
    int size = sqlite3_value_bytes(key);
    if (size > BLOB_BYTES) size = BLOB_BYTES;
    sqlite3_str *text = sqlite3_str_new(0);
    sqlite3_str_appendall(text, "x'");
    for (int i = 0; i < size; i++) sqlite3_str_appendf(text, "%02x", bytes[i]);
    sqlite3_str_appendall(text, "'");
    return sqlite3_str_finish(text);
  }
  }
}

/* The cell of a key: CELL_NONE for one that is not public, CELL_FAILED without memory. */
static int cell_of(struct vectors *vectors, sqlite3_value *key) {
  struct cells *cells = vectors_cells(vectors);
  struct identity identity;
  if (identity_of(vectors_secret(vectors), key, &identity)) return CELL_FAILED;
  int cell = cells_find(cells, identity);
  if (cell != CELL_NEW) return cell;
  char *text = key_text(key);
  cell = text ? cells_name(cells, identity, text) : CELL_FAILED;
  sqlite3_free(text);
  return cell;
}

/* ---- rows ---------------------------------------------------------------------------------------- */

char *rows_open(struct rows *rows, const struct publication *publication) {
  const struct shape *shape = &publication->shape;
  *rows =
      (struct rows){.aggregate = publication->aggregate, .question = &publication->question};
  int failed;
  if (shape->family == FAMILY_SGD) {
    const struct ledger_release *release = &publication->release;
    rows->design =
        (struct design){release->granularity, release->shift, release->sensitivity};
    rows->training = training_open(&publication->descent, shape, &rows->design);
    rows->buffer = malloc(sizeof *rows->buffer * (size_t)(rows->question->size + 1));
    failed = !rows->training || !rows->buffer;
  } else if (shape->family == FAMILY_SUM) {
    struct bounds bounds = design_bounds(shape);
    failed = accumulator_open(&rows->numbers, &bounds, publication->by_unit);
  } else {
    rows->vectors =
        vectors_open(rows->question, shape, publication->by_unit, publication->grid.keys);
    rows->buffer = malloc(sizeof *rows->buffer * (size_t)(rows->question->size + 1));
    failed = !rows->vectors || !rows->buffer;
  }
  return failed ? sentence("out of memory or random bytes (the charge stays)") : 0;
}

void rows_close(struct rows *rows) {
  accumulator_close(&rows->numbers);
  vectors_close(rows->vectors);
  training_close(rows->training);
  free(rows->buffer);
  rows->vectors = 0;
  rows->training = 0;
  rows->buffer = 0;
}

/* A row of a release of one sum: the path that has to be as short as SQLite's own sum(). */
static int add_to_sum(struct rows *rows, sqlite3_value *value, sqlite3_value *unit) {
  /* NULL contributes nothing: it is not counted, and SQLite converts it to 0. */
  double x = !rows->aggregate->counts ? sqlite3_value_double(value)
                                      : !value || sqlite3_value_type(value) != SQLITE_NULL;
  if (!rows->numbers.units) {
    accumulate_row(&rows->numbers, x);
    return 0;
  }
  struct identity identity;
  if (identity_of(accumulator_secret(&rows->numbers), unit, &identity)) return -1;
  return accumulate_unit(&rows->numbers, identity, x);
}

/* A row of a model. Where y or features are NULL, or features malformed, there is no gradient. */
static int add_to_training(struct rows *rows, sqlite3_value *y, sqlite3_value *features) {
  int whole = numbers_read(features, rows->buffer, rows->question->size) &&
              sqlite3_value_type(y) != SQLITE_NULL;
  training_add(rows->training, sqlite3_value_double(y), whole ? rows->buffer : 0);
  return 0;
}

int rows_add(struct rows *rows, sqlite3_value *key, sqlite3_value *value, sqlite3_value *unit) {
  struct vectors *vectors = rows->vectors;
  if (rows->training) return add_to_training(rows, key, value);
  if (!vectors) return add_to_sum(rows, value, unit);
  struct identity identity = {0, 0};
  if (value && sqlite3_value_type(value) == SQLITE_NULL) return 0; /* contributes nothing */
  if (unit && identity_of(vectors_secret(vectors), unit, &identity)) return -1;
  if (key) {
    int cell = cell_of(vectors, key);
    if (cell == CELL_NONE) return 0;
    if (cell == CELL_FAILED) return -1;
    return vectors_add_key(vectors, identity, cell, value ? sqlite3_value_double(value) : 1);
  }
  if (rows->aggregate->takes & 1u << P_DIM) {
    numbers_read(value, rows->buffer, rows->question->size); /* malformed: all zero */
    return vectors_add_vector(vectors, identity, rows->buffer);
  }
  return vectors_add_number(vectors, identity, sqlite3_value_double(value));
}

char *rows_publish(struct rows *rows, struct publication *publication) {
  struct totals totals = {{0, 1, 1}, 0};
  const char **keys = 0;
  int128 sum = 0;
  if (rows->training) {
    totals.grid = publication->grid;
    totals.values = training_totals(rows->training);
    if (!totals.values) {
      publish_fail(publication);
      return sentence("the system gave no random bytes (the charge stays)");
    }
  } else if (!rows->vectors) {
    if (!accumulator_total(&rows->numbers, &sum)) totals.values = &sum;
  } else {
    totals.grid = publication->grid;
    int cells;
    totals.values = vectors_totals(rows->vectors, &cells, &keys);
    if (keys) {
      totals.grid.keys = (char **)keys;
      totals.grid.cells = cells;
    }
  }
  char *error = totals.values ? publish_finish(publication, &totals)
                              : sentence("out of memory (the charge stays)");
  if (rows->vectors) free(totals.values);
  free(keys);
  return error;
}
