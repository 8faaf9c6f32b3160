/*
** kernels.c: aggregates over a finite Markov kernel that is given as rows (x, y, p).
**
** 1. x and y are any SQL values but NULL, equal as SQLite's = says without affinity or collation
**    (1 = 1.0, 'a' <> 'A', text never equals a number or a blob). At most 1000 of each.
** 2. A cell that is missing is 0; cells that come twice are added. p is a number, not negative;
**    each row adds up to 1 within 1e-9. No row at all: NULL.
** 3. Parameters after p are the same in every row.
** 4. Whatever happens, xFinal runs once and frees everything; the order of rows does not matter, up
**    to rounding.
**
** States get numbers from a dictionary each (open addressing); the cells are a dense matrix that
** doubles as it grows, 8 MB at most.
*/
#include "functions/kernels.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "functions/functions.h"
#include "math/mixing.h"

SQLITE_EXTENSION_INIT3

#define MAX_STATES     1000
#define MAX_PARAMETERS 3
#define ROW_TOLERANCE  1e-9

/* ---- descriptors ----------------------------------------------------------------------------- */

static const struct domain epsilon = {"epsilon", 0.0, (double)INFINITY, 0, 0};
static const struct domain delta = {"delta", 0.0, 1.0, 0, 0};
static const struct domain epsilon_out = {"epsilon_out", 0.0, (double)INFINITY, 0, 0};

struct aggregate {
  const char *name;
  int arguments; /* x, y, p and the parameters that are given */
  const struct domain *parameter[MAX_PARAMETERS];
  double (*compute)(const struct kernel *kernel, const double *parameter); /* NaN is NULL */
};

static double dobrushin(const struct kernel *kernel, const double *parameter) {
  (void)parameter;
  return kernel_dobrushin(kernel);
}

static double dobrushin_epsilon(const struct kernel *kernel, const double *parameter) {
  return kernel_hockey_stick(kernel, 1.0, parameter[0]);
}

static double doeblin(const struct kernel *kernel, const double *parameter) {
  (void)parameter;
  return kernel_doeblin(kernel);
}

static double ultra(const struct kernel *kernel, const double *parameter) {
  (void)parameter;
  return kernel_ultra(kernel);
}

static double same_epsilon(const struct kernel *kernel, const double *parameter) {
  return kernel_hockey_stick(kernel, parameter[1], parameter[0]);
}

static double other_epsilon(const struct kernel *kernel, const double *parameter) {
  return kernel_worst_delta(kernel, parameter[0], parameter[1], parameter[2]);
}

static const struct aggregate aggregates[] = {
    {"dp_kernel_dobrushin", 3, {0}, dobrushin},
    {"dp_kernel_dobrushin_epsilon", 4, {&epsilon}, dobrushin_epsilon},
    {"dp_kernel_doeblin", 3, {0}, doeblin},
    {"dp_kernel_ultra", 3, {0}, ultra},
    {"dp_kernel_delta", 5, {&epsilon, &delta}, same_epsilon},
    {"dp_kernel_delta", 6, {&epsilon, &delta, &epsilon_out}, other_epsilon},
};

/* Fails the call: "name: message". */
static void fail(sqlite3_context *context, const char *format, ...) {
  const struct aggregate *aggregate = sqlite3_user_data(context);
  va_list arguments;
  va_start(arguments, format);
  fail_call(context, aggregate->name, sqlite3_vmprintf(format, arguments));
  va_end(arguments);
}

/* ---- states ---------------------------------------------------------------------------------- */

/* A state: the SQL value in a form in which equal values have equal bytes. */
struct state {
  int type; /* SQLITE_INTEGER (also for whole REALs), _FLOAT, _TEXT or _BLOB */
  int size;
  unsigned char bytes[]; /* a terminating 0 follows */
};

#define SLOTS 2048 /* at least twice MAX_STATES, a power of two */

struct dictionary {
  int count;
  uint16_t slot[SLOTS]; /* 1 + number of the state, 0 where free */
  struct state *state[MAX_STATES];
};

static uint64_t hash(int type, const unsigned char *bytes, int size) {
  uint64_t h = UINT64_C(14695981039346656037) ^ (uint64_t)type; /* FNV-1a */
  for (int i = 0; i < size; i++) {
    h = (h ^ bytes[i]) * UINT64_C(1099511628211);
  }
  return h ^ h >> 32;
}

/*
** Number of the state with these bytes, new or known; -1 when there are too many, -2 when out of
** memory.
*/
static int number_of(struct dictionary *dictionary, int type, const void *bytes, int size) {
  uint64_t place = hash(type, bytes, size) % SLOTS;
  for (; dictionary->slot[place]; place = (place + 1) % SLOTS) {
    const struct state *known = dictionary->state[dictionary->slot[place] - 1];
    if (known->type == type && known->size == size &&
        (size == 0 || memcmp(known->bytes, bytes, (size_t)size) == 0)) {
      return dictionary->slot[place] - 1;
    }
  }
  if (dictionary->count == MAX_STATES) return -1;
  struct state *state = sqlite3_malloc64(sizeof *state + (sqlite3_uint64)size + 1);
  if (!state) return -2;
  state->type = type;
  state->size = size;
  if (size > 0) memcpy(state->bytes, bytes, (size_t)size);
  state->bytes[size] = 0;
  dictionary->state[dictionary->count++] = state;
  dictionary->slot[place] = (uint16_t)dictionary->count;
  return dictionary->count - 1;
}

/* The same for an SQL value that is not NULL. */
static int state_number(struct dictionary *dictionary, sqlite3_value *value) {
  int type = sqlite3_value_type(value);
  if (type == SQLITE_INTEGER || type == SQLITE_FLOAT) {
    sqlite3_int64 whole = sqlite3_value_int64(value);
    double real = sqlite3_value_double(value);
    int is_whole =
        type == SQLITE_INTEGER || (real >= -0x1p63 && real < 0x1p63 && real == (double)whole);
    if (is_whole) return number_of(dictionary, SQLITE_INTEGER, &whole, sizeof whole);
    return number_of(dictionary, SQLITE_FLOAT, &real, sizeof real);
  }
  const void *bytes =
      type == SQLITE_TEXT ? (const void *)sqlite3_value_text(value) : sqlite3_value_blob(value);
  int size = sqlite3_value_bytes(value);
  if (!bytes && size > 0) return -2;
  return number_of(dictionary, type, bytes, size);
}

/* The state as an SQL literal; to be freed. */
static char *state_text(const struct state *state) {
  sqlite3_int64 whole;
  double real;
  switch (state->type) {
  case SQLITE_INTEGER:
    memcpy(&whole, state->bytes, sizeof whole);
    return sqlite3_mprintf("%lld", whole);
  case SQLITE_FLOAT:
    memcpy(&real, state->bytes, sizeof real);
    return sqlite3_mprintf("%.15g", real);
  case SQLITE_TEXT: return sqlite3_mprintf("%.60Q", (const char *)state->bytes);
  default: return sqlite3_mprintf("a blob");
  }
}

static void dictionary_free(struct dictionary *dictionary) {
  for (int i = 0; i < dictionary->count; i++) {
    sqlite3_free(dictionary->state[i]);
  }
}

/* ---- the matrix ------------------------------------------------------------------------------ */

/* What one call of an aggregate collects; all zero at first. */
struct collected {
  int started; /* whether the parameters are read */
  int failed;  /* whether an error was reported */
  double parameter[MAX_PARAMETERS];
  struct dictionary x, y;
  double *cell;       /* row_room x column_room */
  size_t row_room;    /* allocated rows */
  size_t column_room; /* allocated columns */
};

static size_t doubled(size_t room, size_t needed) {
  size_t wanted = room < 8 ? 8 : room;
  while (wanted < needed) {
    wanted *= 2;
  }
  return wanted < MAX_STATES ? wanted : MAX_STATES;
}

/* Makes room for every state. 0 when out of memory. */
static int make_room(struct collected *collected) {
  size_t rows = (size_t)collected->x.count, columns = (size_t)collected->y.count;
  if (rows <= collected->row_room && columns <= collected->column_room) return 1;
  size_t row_room = doubled(collected->row_room, rows);
  size_t column_room = doubled(collected->column_room, columns);
  double *cell = sqlite3_malloc64(row_room * column_room * sizeof *cell);
  if (!cell) return 0;
  memset(cell, 0, row_room * column_room * sizeof *cell);
  for (size_t i = 0; i < collected->row_room; i++) {
    memcpy(cell + i * column_room, collected->cell + i * collected->column_room,
           collected->column_room * sizeof *cell);
  }
  sqlite3_free(collected->cell);
  collected->cell = cell;
  collected->row_room = row_room;
  collected->column_room = column_room;
  return 1;
}

/* Moves the rows together, so that they are a kernel. */
static struct kernel compact(struct collected *collected) {
  size_t rows = (size_t)collected->x.count, columns = (size_t)collected->y.count;
  for (size_t i = 1; i < rows; i++) {
    memmove(collected->cell + i * columns, collected->cell + i * collected->column_room,
            columns * sizeof *collected->cell);
  }
  return (struct kernel){collected->cell, rows, columns};
}

/* Whether each row adds up to 1; reports the first that does not. */
static int check_rows(sqlite3_context *context, const struct collected *collected,
                      const struct kernel *kernel) {
  for (size_t i = 0; i < kernel->rows; i++) {
    double sum = 0.0;
    for (size_t j = 0; j < kernel->columns; j++) {
      sum += kernel->probability[i * kernel->columns + j];
    }
    if (fabs(sum - 1.0) <= ROW_TOLERANCE) continue;
    char *name = state_text(collected->x.state[i]);
    fail(context, "the probabilities of x = %s add up to %.12g, not 1 (give the whole row)",
         name ? name : "?", sum);
    sqlite3_free(name);
    return 0;
  }
  return 1;
}

/* ---- the aggregate --------------------------------------------------------------------------- */

/* Reads parameter k in the first row, compares it in the others. */
static int read_parameter(sqlite3_context *context, struct collected *collected, int k,
                          sqlite3_value *value) {
  const struct aggregate *aggregate = sqlite3_user_data(context);
  const struct domain *parameter = aggregate->parameter[k];
  double number;
  char *message = domain_check(value, parameter, &number);
  if (message) {
    fail_call(context, aggregate->name, message);
    return 0;
  }
  if (collected->started && number != collected->parameter[k]) {
    fail(context, "%s must be the same in every row, not %.15g and %.15g", parameter->parameter,
         collected->parameter[k], number);
    return 0;
  }
  collected->parameter[k] = number;
  return 1;
}

/* The number of a state, or -1 after an error. */
static int read_state(sqlite3_context *context, struct dictionary *dictionary, const char *name,
                      sqlite3_value *value) {
  if (sqlite3_value_type(value) == SQLITE_NULL) {
    fail(context, "%s is NULL (a state needs a value)", name);
    return -1;
  }
  int number = state_number(dictionary, value);
  if (number == -2) sqlite3_result_error_nomem(context);
  if (number == -1) fail(context, "more than %d different values of %s", MAX_STATES, name);
  return number < 0 ? -1 : number;
}

/* Adds one row (x, y, p). 0 after an error. */
static int add_cell(sqlite3_context *context, struct collected *collected,
                    sqlite3_value **arguments) {
  int type = sqlite3_value_type(arguments[2]);
  double p = sqlite3_value_double(arguments[2]);
  int numeric = type == SQLITE_INTEGER || type == SQLITE_FLOAT;
  if (!numeric || !(p >= 0.0 && p <= 1.0 + ROW_TOLERANCE)) {
    fail(context, "p must be a probability, not %z", shown(arguments[2]));
    return 0;
  }
  int i = read_state(context, &collected->x, "x", arguments[0]);
  int j = i < 0 ? -1 : read_state(context, &collected->y, "y", arguments[1]);
  if (j < 0) return 0;
  if (!make_room(collected)) {
    sqlite3_result_error_nomem(context);
    return 0;
  }
  collected->cell[(size_t)i * collected->column_room + (size_t)j] += p;
  return 1;
}

static void kernel_step(sqlite3_context *context, int count, sqlite3_value **arguments) {
  struct collected *collected = sqlite3_aggregate_context(context, sizeof *collected);
  if (!collected) {
    sqlite3_result_error_nomem(context);
    return;
  }
  for (int k = 3; k < count && !collected->failed; k++) {
    collected->failed = !read_parameter(context, collected, k - 3, arguments[k]);
  }
  collected->started = 1;
  if (!collected->failed) collected->failed = !add_cell(context, collected, arguments);
}

static void kernel_final(sqlite3_context *context) {
  const struct aggregate *aggregate = sqlite3_user_data(context);
  struct collected *collected = sqlite3_aggregate_context(context, 0);
  if (!collected) return; /* no row: NULL */
  if (!collected->failed && collected->x.count > 0) {
    struct kernel kernel = compact(collected);
    if (check_rows(context, collected, &kernel)) {
      double result = aggregate->compute(&kernel, collected->parameter);
      if (!isnan(result)) sqlite3_result_double(context, result);
    }
  }
  dictionary_free(&collected->x);
  dictionary_free(&collected->y);
  sqlite3_free(collected->cell);
}

int kernels_register(sqlite3 *db) {
  for (size_t k = 0; k < sizeof aggregates / sizeof *aggregates; k++) {
    void *data = (void *)(uintptr_t)&aggregates[k]; /* constant: nobody writes through it */
    int rc = sqlite3_create_function_v2(db, aggregates[k].name, aggregates[k].arguments,
                                        SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, data,
                                        0, kernel_step, kernel_final, 0);
    if (rc != SQLITE_OK) return rc;
  }
  return SQLITE_OK;
}
