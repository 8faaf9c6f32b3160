/* kernels.c: aggregates over finite Markov kernels that are given as rows: one kernel as (x, y, p),
** two kernels as (x, y, p, q), or a kernel with a coupling and a distribution as (part, x, y, p).
**
** 1. x and y are any SQL values except NULL. Two values are the same state if SQLite's operator =
**    finds them equal without affinity and collation (1 = 1.0, 'a' <> 'A', a text never equals a
**    number or a blob). A kernel has at most 1000 different x and 1000 different y.
** 2. p is the probability of the cell (x, y), and a missing cell is 0. If a cell occurs twice, its
**    values are added up. For each x, the values of the kernel add up to 1 within 1e-9. So do all
**    values of a coupling, and all values of a distribution. Without a row, the result is NULL.
** 3. The parameters that follow these arguments are the same in every row.
** 4. The order of rows changes the result by rounding only.
**
** Two dictionaries (hash tables with open addressing) number the states, one for x and one for y.
** The cells are stored in matrices, with a matrix row for each x. A matrix doubles when it is full
** and takes at most 8 MB.
** Tests: tests/papers/test_papers_kernels.py */
#include "papers/papers.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/json.h"
#include "base/sql_functions.h"
#include "base/sql_text.h"
#include "math/math.h"

SQLITE_EXTENSION_INIT3

#define MAX_STATES     1000
#define MAX_PARAMETERS 3
#define ROW_TOLERANCE  1e-9

/* ---- the frame of the aggregates of this room ------------------------------------------------ */

int function_memory(sqlite3_context *context) {
  sqlite3_result_error_nomem(context);
  return 0;
}

static void take_row(sqlite3_context *context, int count, sqlite3_value **arguments) {
  const struct row_aggregate *aggregate = sqlite3_user_data(context);
  int *failed = sqlite3_aggregate_context(context, (int)aggregate->size);
  if (!failed) {
    function_memory(context);
  } else if (!*failed) {
    *failed = !aggregate->add(context, failed, count, arguments);
  }
}

int aggregate_register(struct pure *pure, const struct row_aggregate *aggregate) {
  int rc = SQLITE_OK;
  assert(pure->count < MOST_PURE);
  pure->names[pure->count++] = aggregate->name;
  /* The data is constant, and SQLite never writes through this pointer. */
  void *data = (void *)(uintptr_t)aggregate;
  for (int arity = aggregate->least; arity <= aggregate->most && rc == SQLITE_OK; arity++)
    rc = sqlite3_create_function_v2(pure->db, aggregate->name, arity, PURE, data, 0, take_row,
                                    aggregate->final, 0);
  return rc;
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static const struct domain epsilon = {"epsilon", 0.0, (double)INFINITY, 0, 0};
static const struct domain delta = {"delta", 0.0, 1.0, 0, 0};
static const struct domain epsilon_in = {"epsilon_in", 0.0, (double)INFINITY, 0, 0};
static const struct domain delta_in = {"delta_in", 0.0, 1.0, 0, 0};
static const struct domain epsilon_out = {"epsilon_out", 0.0, (double)INFINITY, 0, 0};
static const struct domain delta_out = {"delta_out", 0.0, 1.0, 0, 0};
static const struct domain alpha = {"alpha", 1.0, (double)INFINITY, 0, 0};
static const struct domain steps = {"steps", 1.0, 9007199254740992.0, 0, 0};

/* The columns of the SQL rows. */
enum form {
  CELLS, /* x, y, p */
  PAIRS, /* x, y, p, q */
  PARTS  /* part, x, y, p */
};

struct collected;

/* What all SQL rows of a call give together, as dense matrices that have been checked. */
struct given {
  struct kernel kernel;
  struct kernel other;            /* PAIRS: the kernel of q */
  const double *coupling, *nu;    /* PARTS: a matrix over pairs of x, and a number for each x */
  const struct collected *states; /* for the names of states */
};

enum result {
  DOBRUSHIN,
  DOBRUSHIN_EPSILON,
  DOEBLIN,
  ULTRA, /* NaN stands for NULL; from the other functions it means that memory ran out */
  SAME_EPSILON,
  OTHER_EPSILON,
  LEAST_EPSILON,
  POWER, /* a text */
  SAME_INPUT,
  OTHER_INPUT,
  BOUND,
  RENYI
};

struct kernel_aggregate {
  struct row_aggregate aggregate;
  enum form form;
  enum result result;
  const struct domain *parameter[MAX_PARAMETERS];
  int most_states; /* the largest number of different x; 0 stands for MAX_STATES */
};

static double compute(const struct given *given, enum result result, const double *a) {
  const struct kernel *kernel = &given->kernel;
  switch (result) {
  case DOBRUSHIN: return kernel_dobrushin(kernel);
  case DOBRUSHIN_EPSILON: return kernel_hockey_stick(kernel, 1.0, a[0]);
  case DOEBLIN: return kernel_doeblin(kernel);
  case ULTRA: return kernel_ultra(kernel);
  case SAME_EPSILON: return kernel_hockey_stick(kernel, a[1], a[0]);
  case OTHER_EPSILON: return kernel_worst_delta(kernel, a[0], a[1], a[2]);
  case LEAST_EPSILON: return kernel_worst_epsilon(kernel, a[0], a[1], a[2]);
  case SAME_INPUT: return kernels_hockey_stick(kernel, &given->other, a[0]);
  case OTHER_INPUT: return kernels_worst_delta(kernel, &given->other, a[1], a[2], a[0]);
  case BOUND: return coupling_bound(kernel, given->coupling, given->nu, a[0]);
  default: return coupled_rdp(kernel, given->coupling, given->nu, a[0]);
  }
}

/* Returns the number of arguments before the parameters. */
static int first_parameter(const struct kernel_aggregate *aggregate) {
  return aggregate->form == CELLS ? 3 : 4;
}

/* ---- states ---------------------------------------------------------------------------------- */

/* A state: an SQL value, encoded so that equal values have equal bytes. */
struct kernel_state {
  int type; /* SQLITE_INTEGER (also for a whole REAL), SQLITE_FLOAT, SQLITE_TEXT or SQLITE_BLOB */
  int size;
  unsigned char bytes[]; /* the bytes end with a zero byte that `size` does not count */
};

#define SLOTS 2048 /* at least twice MAX_STATES, a power of two */

struct dictionary {
  int count;
  uint16_t slot[SLOTS]; /* 1 + the number of the state; 0: the slot is free */
  struct kernel_state *state[MAX_STATES];
};

static uint64_t hash(int type, const unsigned char *bytes, int size) {
  uint64_t h = UINT64_C(14695981039346656037) ^ (uint64_t)type; /* FNV-1a */
  for (int i = 0; i < size; i++) h = (h ^ bytes[i]) * UINT64_C(1099511628211);
  return h ^ h >> 32;
}

/* Returns the slot of the state with these bytes, or the free slot for it. */
static uint64_t place_of(const struct dictionary *dictionary, int type, const void *bytes,
                         int size) {
  uint64_t place = hash(type, bytes, size) % SLOTS;
  for (; dictionary->slot[place]; place = (place + 1) % SLOTS) {
    const struct kernel_state *known = dictionary->state[dictionary->slot[place] - 1];
    if (known->type == type && known->size == size &&
        (size == 0 || memcmp(known->bytes, bytes, (size_t)size) == 0))
      break;
  }
  return place;
}

/* Returns the number of the state with these bytes. Adds the state if it is new. Returns -1 if
** there are too many states, and -2 when out of memory. */
static int number_of(struct dictionary *dictionary, int type, const void *bytes, int size) {
  uint64_t place = place_of(dictionary, type, bytes, size);
  if (dictionary->slot[place]) return dictionary->slot[place] - 1;
  if (dictionary->count == MAX_STATES) return -1;
  struct kernel_state *state = sqlite3_malloc64(sizeof *state + (sqlite3_uint64)size + 1);
  if (!state) return -2;
  state->type = type;
  state->size = size;
  if (size > 0) memcpy(state->bytes, bytes, (size_t)size);
  state->bytes[size] = 0;
  dictionary->state[dictionary->count++] = state;
  dictionary->slot[place] = (uint16_t)dictionary->count;
  return dictionary->count - 1;
}

/* Returns number_of() for an SQL value other than NULL. */
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

/* Returns the number of the state that equals this one, or -1. */
static int number_of_equal(const struct dictionary *dictionary, const struct kernel_state *state) {
  return dictionary->slot[place_of(dictionary, state->type, state->bytes, state->size)] - 1;
}

static void dictionary_free(struct dictionary *dictionary) {
  for (int i = 0; i < dictionary->count; i++) sqlite3_free(dictionary->state[i]);
}

/* ---- matrices -------------------------------------------------------------------------------- */

/* A matrix whose rows and columns are states: `room` rows of MAX_STATES cells. */
struct matrix {
  double *cell;
  size_t room;
};

/* The matrices. In the form PAIRS, an SQL row belongs to KERNEL and OTHER, otherwise to one
** matrix. */
enum part { KERNEL, OTHER, COUPLING, NU, PART_COUNT };

/* The progress of one call of an aggregate. All members are zero at the start. */
struct collected {
  int failed;
  int started; /* the parameters have been read */
  double parameter[MAX_PARAMETERS];
  struct dictionary x, y;
  struct matrix matrix[PART_COUNT];
};

/* Makes room for this many rows. Returns 0 when out of memory. */
static int make_room(struct matrix *matrix, size_t rows) {
  if (rows <= matrix->room) return 1;
  size_t room = 2 * rows < MAX_STATES ? 2 * rows : MAX_STATES, row = MAX_STATES * sizeof(double);
  double *cell = sqlite3_realloc64(matrix->cell, room * row);
  if (!cell) return 0;
  memset(cell + matrix->room * MAX_STATES, 0, (room - matrix->room) * row);
  *matrix = (struct matrix){cell, room};
  return 1;
}

/* Removes the unused columns, so that the cells become a dense matrix of rows x columns. Returns
** null when out of memory. */
static const double *compact(struct matrix *matrix, size_t rows, size_t columns) {
  if (!make_room(matrix, rows)) return 0;
  for (size_t i = 1; i < rows; i++)
    memmove(matrix->cell + i * columns, matrix->cell + i * MAX_STATES,
            columns * sizeof *matrix->cell);
  return matrix->cell;
}

/* Checks that the probabilities of each x add up to 1. */
static int check_rows(sqlite3_context *context, const struct kernel *kernel, const char *called) {
  for (size_t i = 0; i < kernel->rows; i++) {
    double sum = 0.0;
    for (size_t j = 0; j < kernel->columns; j++)
      sum += kernel->probability[i * kernel->columns + j];
    if (fabs(sum - 1.0) <= ROW_TOLERANCE) continue;
    function_error(context, "the probabilities%s of one x do not add up to 1 (give the whole row)",
                   called);
    return 0;
  }
  return 1;
}

/* Checks that `count` probabilities add up to 1. */
static int check_total(sqlite3_context *context, const double *probability, size_t count,
                       const char *called) {
  double sum = 0.0;
  for (size_t i = 0; i < count; i++) sum += probability[i];
  if (fabs(sum - 1.0) <= ROW_TOLERANCE) return 1;
  return function_error(context, "the probabilities of part '%s' do not add up to 1", called);
}

/* Makes the matrices dense and checks the kernels. Returns 0 after an error. */
static int take_given(sqlite3_context *context, struct collected *collected, struct given *given) {
  const struct kernel_aggregate *aggregate = sqlite3_user_data(context);
  struct matrix *matrix = collected->matrix;
  size_t rows = (size_t)collected->x.count, columns = (size_t)collected->y.count;
  int most = aggregate->most_states;
  if (most && (int)rows > most)
    return function_error(context, "more than %d different values of x", most);
  if (columns == 0) return function_error(context, "there are no rows of part 'kernel'");
  int is_parts = aggregate->form == PARTS, is_pairs = aggregate->form == PAIRS;
  *given = (struct given){.states = collected};
  given->kernel = (struct kernel){compact(&matrix[KERNEL], rows, columns), rows, columns};
  if (is_pairs)
    given->other = (struct kernel){compact(&matrix[OTHER], rows, columns), rows, columns};
  given->coupling = is_parts ? compact(&matrix[COUPLING], rows, rows) : 0;
  given->nu = is_parts ? compact(&matrix[NU], rows, 1) : 0;
  if (!given->kernel.probability || (is_pairs && !given->other.probability) ||
      (is_parts && (!given->coupling || !given->nu)))
    return function_memory(context);
  int sound = check_rows(context, &given->kernel, is_pairs ? " p" : "") &&
              (!is_pairs || check_rows(context, &given->other, " q")) &&
              (!is_parts || (check_total(context, given->coupling, rows * rows, "coupling") &&
                             check_total(context, given->nu, rows, "nu")));
  for (int i = 0; i < collected->y.count && aggregate->result == POWER && sound; i++)
    if (number_of_equal(&collected->x, collected->y.state[i]) < 0)
      sound = function_error(context, "a y has no row of its own, as a transition matrix needs");
  return sound;
}

/* ---- powers ---------------------------------------------------------------------------------- */

/* Appends a state as JSON. A blob has the form x'...', as in key_text() (base/sql_text.h). */
static void append_state(sqlite3_str *json, const struct kernel_state *state) {
  sqlite3_int64 whole;
  double real;
  switch (state->type) {
  case SQLITE_INTEGER:
    memcpy(&whole, state->bytes, sizeof whole);
    sqlite3_str_appendf(json, "%lld", whole);
    break;
  case SQLITE_FLOAT:
    memcpy(&real, state->bytes, sizeof real);
    json_append_number(json, real);
    break;
  case SQLITE_TEXT: json_append_string(json, (const char *)state->bytes); break;
  default:
    sqlite3_str_appendall(json, "\"x'");
    for (int i = 0; i < state->size; i++) sqlite3_str_appendf(json, "%02x", state->bytes[i]);
    sqlite3_str_appendall(json, "'\"");
  }
}

/* Returns the cells of a power of the kernel, in the JSON form that dp_mix() reads. Returns null
** when out of memory. */
static char *power(const struct given *given, const double *parameter) {
  const struct collected *states = given->states;
  size_t rows = given->kernel.rows;
  struct kernel square = {sqlite3_malloc64(3 * sizeof(double) * rows * rows), rows, rows};
  double *cells = (double *)(uintptr_t)square.probability, *result = cells + rows * rows;
  int *column = (int *)(result + rows * rows); /* for each x, the number of the equal y, or -1 */
  for (size_t j = 0; j < rows && cells; j++)
    column[j] = number_of_equal(&states->y, states->x.state[j]);
  for (size_t i = 0; i < rows * rows && cells; i++) {
    int y = column[i % rows];
    cells[i] = y < 0 ? 0 : given->kernel.probability[i / rows * given->kernel.columns + (size_t)y];
  }
  char *text = 0;
  if (cells && kernel_power(&square, parameter[0], result)) {
    sqlite3_str *json = sqlite3_str_new(0);
    for (size_t i = 0; i < rows * rows; i++) {
      if (!(result[i] > 0)) continue;
      sqlite3_str_appendall(json, sqlite3_str_length(json) ? ",[" : "[[");
      append_state(json, states->x.state[i / rows]);
      sqlite3_str_appendall(json, ",");
      append_state(json, states->x.state[i % rows]);
      sqlite3_str_appendall(json, ",");
      json_append_number(json, result[i]);
      sqlite3_str_appendall(json, "]");
    }
    sqlite3_str_appendall(json, "]");
    text = sqlite3_str_finish(json);
  }
  sqlite3_free(cells);
  return text;
}

/* ---- the aggregate --------------------------------------------------------------------------- */

/* Reads parameter k. In later rows, checks that the parameter is the same as in the first row. */
static int read_parameter(sqlite3_context *context, struct collected *collected, int k,
                          sqlite3_value *value) {
  const struct kernel_aggregate *aggregate = sqlite3_user_data(context);
  const struct domain *parameter = aggregate->parameter[k];
  double number;
  if (!argument_number(context, value, parameter, &number)) return 0;
  if (parameter == &steps && number != floor(number))
    return function_error(context, "steps must be a whole number");
  if (collected->started && number != collected->parameter[k])
    return function_error(context, "%s must be the same in every row", parameter->parameter);
  collected->parameter[k] = number;
  return 1;
}

/* Returns the number of a state, and adds the state if it is new. Returns -1 after an error. */
static int read_state(sqlite3_context *context, struct dictionary *dictionary, const char *name,
                      sqlite3_value *value) {
  if (sqlite3_value_type(value) == SQLITE_NULL) {
    function_error(context, "%s is NULL (a state needs a value)", name);
    return -1;
  }
  int number = state_number(dictionary, value);
  if (number == -2) function_memory(context);
  if (number == -1)
    function_error(context, "more than %d different values of %s", MAX_STATES, name);
  return number < 0 ? -1 : number;
}

/* Reads a probability. Returns 0 after an error. */
static int read_probability(sqlite3_context *context, const char *name, sqlite3_value *value,
                            double *p) {
  int is_number = value_number(value, p);
  if (is_number < 0) return function_memory(context);
  if (is_number && *p >= 0.0 && *p <= 1.0 + ROW_TOLERANCE) return 1;
  return function_error(context, "%s must be a probability%s", name,
                        is_number ? "" : not_a(value, SQLITE_FLOAT));
}

static int add_to(sqlite3_context *context, struct matrix *matrix, int i, int j, double p) {
  if (!make_room(matrix, (size_t)i + 1)) return function_memory(context);
  matrix->cell[(size_t)i * MAX_STATES + (size_t)j] += p;
  return 1;
}

/* Adds p to the cell (x, y). For two kernels, also adds q to the cell of the second kernel. Returns
** 0 after an error. */
static int add_cell(sqlite3_context *context, struct collected *collected,
                    sqlite3_value **arguments, int is_pair) {
  double p, q = 0;
  if (!read_probability(context, "p", arguments[2], &p)) return 0;
  if (is_pair && !read_probability(context, "q", arguments[3], &q)) return 0;
  int i = read_state(context, &collected->x, "x", arguments[0]);
  int j = i < 0 ? -1 : read_state(context, &collected->y, "y", arguments[1]);
  if (j < 0) return 0;
  return add_to(context, &collected->matrix[KERNEL], i, j, p) &&
         (!is_pair || add_to(context, &collected->matrix[OTHER], i, j, q));
}

/* Adds a row (part, x, y, p). In a coupling, y is a state from the same set as x (the inputs of the
** kernel), so dictionary x has its number. In the distribution nu, y is ignored. */
static int add_part(sqlite3_context *context, struct collected *collected,
                    sqlite3_value **arguments) {
  const char *part = plain_text(arguments[0]);
  double p;
  if (part && strcmp(part, "kernel") == 0) return add_cell(context, collected, arguments + 1, 0);
  int is_coupling = part && strcmp(part, "coupling") == 0;
  if (!is_coupling && !(part && strcmp(part, "nu") == 0))
    return function_error(context, "part must be 'kernel', 'coupling' or 'nu'%s",
                          not_a(arguments[0], SQLITE_TEXT));
  if (!read_probability(context, "p", arguments[3], &p)) return 0;
  int i = read_state(context, &collected->x, "x", arguments[1]);
  int j = i < 0 || !is_coupling ? i : read_state(context, &collected->x, "y", arguments[2]);
  if (j < 0) return 0;
  return is_coupling ? add_to(context, &collected->matrix[COUPLING], i, j, p)
                     : add_to(context, &collected->matrix[NU], i, 0, p);
}

static int add_row(sqlite3_context *context, void *state, int count, sqlite3_value **arguments) {
  const struct kernel_aggregate *aggregate = sqlite3_user_data(context);
  struct collected *collected = state;
  int first = first_parameter(aggregate);
  for (int k = first; k < count; k++)
    if (!read_parameter(context, collected, k - first, arguments[k])) return 0;
  collected->started = 1;
  return aggregate->form == PARTS
             ? add_part(context, collected, arguments)
             : add_cell(context, collected, arguments, aggregate->form == PAIRS);
}

static void give_result(sqlite3_context *context, const struct given *given) {
  const struct kernel_aggregate *aggregate = sqlite3_user_data(context);
  const double *parameter = given->states->parameter;
  char *text = aggregate->result == POWER ? power(given, parameter) : 0;
  double result = aggregate->result == POWER ? NAN : compute(given, aggregate->result, parameter);
  if (text) {
    sqlite3_result_text(context, text, -1, sqlite3_free);
  } else if (isnan(result) && aggregate->result != ULTRA) {
    function_memory(context);
  } else {
    sqlite3_result_double(context, result); /* NaN becomes NULL */
  }
}

static void kernel_final(sqlite3_context *context) {
  struct collected *collected = sqlite3_aggregate_context(context, 0);
  struct given given;
  if (!collected) return;
  if (!collected->failed && collected->x.count > 0 && take_given(context, collected, &given))
    give_result(context, &given);
  dictionary_free(&collected->x);
  dictionary_free(&collected->y);
  for (int i = 0; i < PART_COUNT; i++) sqlite3_free(collected->matrix[i].cell);
}

/* ---- the table ------------------------------------------------------------------------------- */

#define MOST_PAIRED  40  /* the most x of two kernels; a loop visits all groups of four x */
#define MOST_POWERED 256 /* the most x of a kernel whose power is computed */

#define ROW(name, arguments)                                                                       \
  { name, arguments, arguments, sizeof(struct collected), add_row, kernel_final }

static const struct kernel_aggregate aggregates[] = {
    {ROW("dp_kernel_dobrushin", 3), CELLS, DOBRUSHIN, {0}, 0},
    {ROW("dp_kernel_dobrushin_epsilon", 4), CELLS, DOBRUSHIN_EPSILON, {&epsilon}, 0},
    {ROW("dp_kernel_doeblin", 3), CELLS, DOEBLIN, {0}, 0},
    {ROW("dp_kernel_ultra", 3), CELLS, ULTRA, {0}, 0},
    {ROW("dp_kernel_delta", 5), CELLS, SAME_EPSILON, {&epsilon, &delta}, 0},
    {ROW("dp_kernel_delta", 6), CELLS, OTHER_EPSILON, {&epsilon, &delta, &epsilon_out}, 0},
    {ROW("dp_kernel_epsilon", 6), CELLS, LEAST_EPSILON, {&epsilon, &delta, &delta_out}, 0},
    {ROW("dp_kernel_power", 4), CELLS, POWER, {&steps}, MOST_POWERED},
    {ROW("dp_kernel_pair", 5), PAIRS, SAME_INPUT, {&epsilon}, 0},
    {ROW("dp_kernel_pair", 7), PAIRS, OTHER_INPUT, {&epsilon, &epsilon_in, &delta_in}, MOST_PAIRED},
    {ROW("dp_kernel_coupling", 5), PARTS, BOUND, {&alpha}, 0},
    {ROW("dp_kernel_renyi", 5), PARTS, RENYI, {&alpha}, 0},
};

int kernels_register(struct pure *pure) {
  int rc = SQLITE_OK;
  for (size_t k = 0; k < sizeof aggregates / sizeof *aggregates && rc == SQLITE_OK; k++)
    rc = aggregate_register(pure, &aggregates[k].aggregate);
  return rc;
}
