/* markov_kernel.c: see categories.h.
** Tests: tests/papers/test_papers_kernels.py, tests/categories/test_responses.py */
#include "categories/categories.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sql_text.h"

SQLITE_EXTENSION_INIT3

/* ---- list ------------------------------------------------------------------------------------ */

struct cell {
  char *x, *y;
  double p; /* NaN until it is given */
};

struct cell_list {
  struct cell *cells;
  int count;
  struct error *error;
};

#define MOST_CELLS (CHANNEL_MAX_STATES * CHANNEL_MAX_SYMBOLS)

static int add_cell(struct cell_list *list) {
  int used = list->count;
  if (used == MOST_CELLS)
    return error_set(list->error, "the kernel has more than %d cells", MOST_CELLS);
  if ((used & (used - 1)) == 0) { /* the list is full when used is a power of two */
    struct cell *grown = realloc(list->cells, sizeof *grown * (size_t)(used ? 2 * used : 1));
    if (grown) list->cells = grown;
    if (!grown) return error_set_memory(list->error);
  }
  list->cells[list->count++] = (struct cell){0, 0, NAN};
  return 1;
}

/* Reads one member of a cell (json_table()). */
static int take_member(void *context, const char *place, const char *type, sqlite3_value *value) {
  struct cell_list *list = context;
  const char *key = strchr(place, ',') + 1;
  int at = (int)strtol(place, 0, 10);
  while (list->count <= at)
    if (!add_cell(list)) return 0;
  if (!*key)
    return strcmp(type, "array") == 0 || strcmp(type, "object") == 0 ||
           error_set(list->error, "a cell of the kernel must be an array [x, y, p]");
  struct cell *cell = &list->cells[at];
  char **text = strcmp(key, "x") == 0 || strcmp(key, "0") == 0   ? &cell->x
                : strcmp(key, "y") == 0 || strcmp(key, "1") == 0 ? &cell->y
                                                                 : 0;
  int is_p = strcmp(key, "p") == 0 || strcmp(key, "2") == 0;
  if (!text && !is_p) {
    error_set(list->error, "a cell of the kernel has x, y and p, and nothing else");
  } else if (text ? *text != 0 : !isnan(cell->p)) { /* the cell gives this member twice */
    error_set(list->error, "a cell of the kernel has x, y or p twice");
  } else if (text) {
    *text = key_text(value);
    if (!*text) error_set_memory(list->error);
  } else if (strcmp(type, "real") != 0 && strcmp(type, "integer") != 0) {
    error_set(list->error, "p must be a number in [0, 1]%s", not_a(value, SQLITE_FLOAT));
  } else {
    cell->p = sqlite3_value_double(value);
    if (!(cell->p >= 0 && cell->p <= 1))
      error_set(list->error, "p must be a number in [0, 1]%s", not_a(value, SQLITE_FLOAT));
  }
  return !error_is_set(list->error);
}

static int by_place(const void *a, const void *b) {
  const struct cell *p = a, *q = b;
  int order = strcmp(p->x, q->x);
  return order ? order : strcmp(p->y, q->y);
}

/* ---- from cells to a kernel ------------------------------------------------------------------ */

static int find_text(char *const *texts, int count, const char *text) {
  for (int low = 0, high = count; low < high;) {
    int middle = (low + high) / 2, order = strcmp(text, texts[middle]);
    if (order == 0) return middle;
    if (order < 0) high = middle;
    if (order > 0) low = middle + 1;
  }
  return -1;
}

/* Appends a copy of each distinct text of a sorted list to `texts`. Returns 0 when out of
** memory. */
static int list_texts(char *const *sorted, int count, char **texts, int *used) {
  for (int i = 0; i < count; i++) {
    if (*used && strcmp(texts[*used - 1], sorted[i]) == 0) continue;
    texts[*used] = sqlite3_mprintf("%s", sorted[i]);
    if (!texts[*used]) return 0;
    ++*used;
  }
  return 1;
}

/* Makes the lists of states and output categories. Returns 1, or 0 if memory runs out. */
static int make_lists(struct markov_kernel *channel, const struct cell_list *list) {
  size_t count = (size_t)list->count + 1;
  char **sorted = malloc(sizeof *sorted * count);
  channel->states = malloc(sizeof *sorted * count);
  channel->symbols = malloc(sizeof *sorted * count);
  int made = sorted && channel->states && channel->symbols;
  for (int i = 0; i < list->count && made; i++) sorted[i] = list->cells[i].x;
  made = made && list_texts(sorted, list->count, channel->states, &channel->state_count);
  int shown = 0; /* the number of cells with a positive probability */
  for (int i = 0; i < list->count && made; i++) {
    if (list->cells[i].p > 0) sorted[shown++] = list->cells[i].y;
  }
  if (made) qsort(sorted, (size_t)shown, sizeof *sorted, text_order);
  made = made && list_texts(sorted, shown, channel->symbols, &channel->symbol_count);
  free(sorted);
  return made;
}

static int check_sums(const struct markov_kernel *channel, const struct cell_list *list,
                      struct error *error) {
  double sum = 0;
  for (int i = 0; i < list->count; i++) {
    const struct cell *cell = &list->cells[i], *next = cell + 1;
    int is_last = i + 1 == list->count || strcmp(cell->x, next->x) != 0;
    if (!is_last && strcmp(cell->y, next->y) == 0)
      return error_set(error, "the kernel has two cells for the same x and y");
    sum += cell->p;
    if (is_last && !(fabs(sum - 1) <= 1e-9))
      return error_set(error, "the probabilities of one x of the kernel do not add up to 1");
    if (is_last) sum = 0;
  }
  if ((int64_t)channel->state_count * channel->symbol_count > CHANNEL_MAX_CELLS)
    return error_set(error, "the kernel has %d states and %d symbols, more than %d cells",
                     channel->state_count, channel->symbol_count, CHANNEL_MAX_CELLS);
  return 1;
}

int channel_check_small(const struct markov_kernel *channel, struct error *error) {
  if (channel->state_count <= CHANNEL_MAX_STATES && channel->symbol_count <= CHANNEL_MAX_SYMBOLS)
    return 1;
  return error_set(error, "the kernel has %d states and %d symbols; at most %d and %d are searched",
                   channel->state_count, channel->symbol_count, CHANNEL_MAX_STATES,
                   CHANNEL_MAX_SYMBOLS);
}

int channel_check_next(const struct markov_kernel *channel, char *const *states, int count,
                       struct error *error) {
  if (!channel_check_small(channel, error)) return 0;
  for (int i = 0; i < count; i++)
    if (!markov_kernel_row(channel, states[i]))
      return error_set(error, "the kernel has no row for x '%s'", states[i]);
  return 1;
}

/* Computes the weights and the JSON text of the cells. Returns 1, or 0 if memory runs out. */
static int fill_channel(struct markov_kernel *channel, const struct cell_list *list) {
  channel->weights = calloc((size_t)channel->state_count * (size_t)channel->symbol_count,
                            sizeof *channel->weights);
  if (!channel->weights) return 0;
  sqlite3_str *json = sqlite3_str_new(0);
  for (int i = 0; i < list->count; i++) {
    const struct cell *cell = &list->cells[i];
    if (!(cell->p > 0)) continue;
    int x = find_text(channel->states, channel->state_count, cell->x);
    int y = find_text(channel->symbols, channel->symbol_count, cell->y);
    channel->weights[x * channel->symbol_count + y] =
        (uint64_t)ldexp(cell->p, 52) + (fmod(ldexp(cell->p, 53), 2) >= 1);
    sqlite3_str_appendall(json, sqlite3_str_length(json) ? ",[" : "[[");
    json_append_string(json, cell->x);
    sqlite3_str_appendall(json, ",");
    json_append_string(json, cell->y);
    sqlite3_str_appendall(json, ",");
    json_append_number(json, cell->p);
    sqlite3_str_appendall(json, "]");
  }
  sqlite3_str_appendall(json, "]");
  channel->json = sqlite3_str_finish(json);
  return channel->json != 0;
}

static int read_cells(struct markov_kernel *channel, struct json *json, const char *text,
                      struct error *error) {
  struct cell_list list = {.error = error};
  int read =
      json_table(json, text, take_member, &list) || error_set(error, "%s", error_text(json->error));
  for (int i = 0; read && i < list.count; i++) {
    const struct cell *cell = &list.cells[i];
    read = (cell->x && cell->y && !isnan(cell->p)) ||
           error_set(error, "a cell of the kernel needs x, y and p");
  }
  if (read && !list.count) read = error_set(error, "the kernel is empty");
  if (read) {
    qsort(list.cells, (size_t)list.count, sizeof *list.cells, by_place);
    read = (make_lists(channel, &list) || error_set_memory(error)) &&
           check_sums(channel, &list, error) &&
           (fill_channel(channel, &list) || error_set_memory(error));
  }
  for (int i = 0; i < list.count; i++) {
    sqlite3_free(list.cells[i].x);
    sqlite3_free(list.cells[i].y);
  }
  free(list.cells);
  return read;
}

/* The members of a kernel that is written as a JSON object. */
struct members {
  char *cells;
  double steps;
  struct error *error;
};

static int take_part(void *context, const char *key, const char *type, sqlite3_value *value) {
  struct members *members = context;
  int is_number = strcmp(type, "integer") == 0 || strcmp(type, "real") == 0;
  if (strcmp(key, "cells") == 0 && strcmp(type, "array") == 0) {
    members->cells = sqlite3_mprintf("%s", (const char *)sqlite3_value_text(value));
    if (!members->cells) error_set_memory(members->error);
  } else if (strcmp(key, "steps") == 0 && is_number) {
    members->steps = sqlite3_value_double(value);
  } else {
    error_set(
        members->error,
        "a kernel that is an object has an array of cells, and a number of steps, and nothing "
        "else");
  }
  return !error_is_set(members->error);
}

int markov_kernel_read(struct markov_kernel *channel, struct json *json, const char *text,
                       struct error *error) {
  *channel = (struct markov_kernel){.steps = 1};
  if (text[strspn(text, " \t\r\n")] != '{') return read_cells(channel, json, text, error);
  struct members members = {0, 1, error};
  int read = (json_members(json, text, take_part, &members) ||
              error_set(error, "%s", error_text(json->error))) &&
             (members.cells || error_set(error, "the kernel has no cells")) &&
             read_cells(channel, json, members.cells, error) &&
             channel_repeat(channel, members.steps, error);
  sqlite3_free(members.cells);
  return read;
}

int channel_repeat(struct markov_kernel *channel, double steps, struct error *error) {
  if (!(steps >= 1 && steps <= CHANNEL_MAX_STEPS && steps == floor(steps)))
    return error_set(error, "steps must be a whole number in [1, %d]", CHANNEL_MAX_STEPS);
  if (steps == 1) return 1;
  if (channel->steps > 1) return error_set(error, "steps is given twice");
  if (!channel_check_small(channel, error)) return 0;
  for (int y = 0; y < channel->symbol_count; y++) {
    if (!markov_kernel_row(channel, channel->symbols[y]))
      return error_set(error, "the kernel has no row for one of its y, which its next step needs");
  }
  char *json = sqlite3_mprintf("{\"steps\":%d,\"cells\":%s}", (int)steps, channel->json);
  if (!json) return error_set_memory(error);
  sqlite3_free(channel->json);
  channel->json = json;
  channel->steps = (int64_t)steps;
  return 1;
}

void markov_kernel_clear(struct markov_kernel *channel) {
  for (int i = 0; i < channel->state_count; i++) sqlite3_free(channel->states[i]);
  for (int i = 0; i < channel->symbol_count; i++) sqlite3_free(channel->symbols[i]);
  free(channel->states);
  free(channel->symbols);
  free(channel->weights);
  sqlite3_free(channel->json);
  *channel = (struct markov_kernel){0};
}

/* ---- the use of a kernel --------------------------------------------------------------------- */

const uint64_t *markov_kernel_row(const struct markov_kernel *channel, const char *state) {
  int row = find_text(channel->states, channel->state_count, state);
  return row < 0 ? 0 : &channel->weights[(size_t)row * (size_t)channel->symbol_count];
}

/* ---- chains ---------------------------------------------------------------------------------- */

/* Allocates a chain and sets it to zero. Returns 0 when out of memory. */
static int chain_open(struct chain *chain, size_t rows, size_t columns) {
  double *cells = calloc(2 * rows * columns + 1, sizeof *cells);
  *chain = (struct chain){rows, columns, cells, cells ? cells + rows * columns : 0};
  return cells != 0;
}

void chain_clear(struct chain *chain) {
  free(chain->high);
  *chain = (struct chain){0};
}

int chain_copy(struct chain *copy, const struct chain *chain) {
  if (!chain_open(copy, chain->rows, chain->columns)) return 0;
  memcpy(copy->high, chain->high, 2 * sizeof *chain->high * chain->rows * chain->columns);
  return 1;
}

/* Adds the product of the matrices a and b to `product`. Each `low` is below the rounding error of
** its `high`. */
static void multiply(const struct chain *a, const struct chain *b, struct chain *product) {
  for (size_t x = 0; x < a->rows; x++) {
    double *high = product->high + x * b->columns, *low = product->low + x * b->columns;
    for (size_t z = 0; z < a->columns; z++) {
      double p = a->high[x * a->columns + z], rest = a->low[x * a->columns + z];
      for (size_t y = 0; y < b->columns && p > 0; y++) {
        double q = b->high[z * b->columns + y], first = p * q;
        double second = fma(p, q, -first) + (p * b->low[z * b->columns + y] + rest * q);
        double sum = high[y] + first, part = sum - high[y];
        low[y] +=
            ((high[y] - (sum - part)) + (first - part)) + second; /* with the rounding error */
        high[y] = sum;
      }
    }
    for (size_t y = 0; y < b->columns; y++) {
      double sum = high[y] + low[y];
      low[y] -= sum - high[y];
      high[y] = sum;
    }
  }
}

/* Multiplies the chain by another, or returns 0 and leaves it if memory runs out. */
static int append_chain(struct chain *chain, const struct chain *other) {
  struct chain product;
  if (!chain_open(&product, chain->rows, other->columns)) return 0;
  multiply(chain, other, &product);
  chain_clear(chain);
  *chain = product;
  return 1;
}

/* Sets the chain to one step of the kernel, with a row for each of the given states. */
static int first_step(struct chain *chain, const struct markov_kernel *channel, char *const *states,
                      size_t count) {
  size_t columns = (size_t)channel->symbol_count;
  if (!chain_open(chain, count, columns)) return 0;
  for (size_t i = 0; i < count; i++) {
    const uint64_t *row = markov_kernel_row(channel, states[i]);
    double *high = &chain->high[i * columns], *low = &chain->low[i * columns], sum = 0;
    for (size_t y = 0; y < columns; y++) sum += (double)row[y];
    for (size_t y = 0; y < columns; y++) { /* w/W; W is exact, and fma() rounds only once */
      high[y] = (double)row[y] / sum;
      low[y] = fma(-high[y], sum, (double)row[y]) / sum;
    }
  }
  return 1;
}

/* Sets the chain to the kernel applied channel->steps times, with a row for each state. Returns 0
** if memory runs out. The caller must call chain_clear() in both cases. */
static int all_steps(struct chain *chain, const struct markov_kernel *channel, char *const *states,
                     size_t count) {
  struct chain power = {0}; /* the kernel applied 1, 2, 4, ... times */
  int going = first_step(chain, channel, states, count);
  int64_t left = channel->steps - 1;
  if (going && left)
    going = first_step(&power, channel, channel->symbols, (size_t)channel->symbol_count);
  for (; going && left; left /= 2) {
    if (left % 2) going = append_chain(chain, &power);
    if (going && left > 1) going = append_chain(&power, &power);
  }
  chain_clear(&power);
  return going;
}

int chain_pass(struct chain *chain, const struct markov_kernel *channel, char *const *states,
               int count) {
  struct chain next = {0};
  int going = all_steps(&next, channel, states, (size_t)count);
  if (going && chain->high) going = append_chain(chain, &next);
  if (going && !chain->high) {
    *chain = next;
    next = (struct chain){0};
  }
  chain_clear(&next);
  return going;
}
