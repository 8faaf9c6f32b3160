/* channels.c: see channels.h. */
#include "functions/channels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "functions/functions.h"
#include "functions/rows.h"
#include "math/mixing.h"

SQLITE_EXTENSION_INIT3

/* ---- list ------------------------------------------------------------------------------------ */

struct cell {
  char *x, *y;
  double p; /* NaN until it is given */
};

struct cell_list {
  struct ledger *ledger;
  struct cell *cells;
  int count;
  char *error;
};

#define MOST_CELLS (CHANNEL_MAX_STATES * CHANNEL_MAX_SYMBOLS)

/* One member of a cell: by its name, or by its place in an array. */
static int take_member(void *context, const char *key, const char *type, sqlite3_value *value) {
  struct cell_list *list = context;
  struct cell *cell = &list->cells[list->count];
  char **text = strcmp(key, "x") == 0 || strcmp(key, "0") == 0   ? &cell->x
                : strcmp(key, "y") == 0 || strcmp(key, "1") == 0 ? &cell->y
                                                                 : 0;
  int is_p = strcmp(key, "p") == 0 || strcmp(key, "2") == 0;
  if (!text && !is_p) {
    list->error = sentence("a cell of the kernel has x, y and p, not '%s'", key);
  } else if (text ? *text != 0 : !isnan(cell->p)) { /* by its name and by its place */
    list->error = sentence("a cell of the kernel has '%s' twice", key);
  } else if (text) {
    *text = key_text(value);
    if (!*text) list->error = sentence("out of memory");
  } else if (strcmp(type, "real") != 0 && strcmp(type, "integer") != 0) {
    list->error = sentence("p must be a number in [0, 1], not %z", shown(value));
  } else {
    cell->p = sqlite3_value_double(value);
    if (!(cell->p >= 0 && cell->p <= 1))
      list->error = sentence("p must be a number in [0, 1], not %z", shown(value));
  }
  return !list->error;
}

static int take_cell(void *context, const char *key, const char *type, sqlite3_value *value) {
  struct cell_list *list = context;
  int used = list->count, is_array = strcmp(type, "array") == 0;
  (void)key;
  if (used == MOST_CELLS || (!is_array && strcmp(type, "object") != 0)) {
    list->error =
        used == MOST_CELLS
            ? sentence("the kernel has more than %d cells", MOST_CELLS)
            : sentence("a cell of the kernel is an array [x, y, p], not %z", shown(value));
    return 0;
  }
  if ((used & (used - 1)) == 0) { /* a power of two: the list is full */
    struct cell *grown = realloc(list->cells, sizeof *grown * (size_t)(used ? 2 * used : 1));
    if (grown) list->cells = grown;
    if (!grown) list->error = sentence("out of memory");
    if (!grown) return 0;
  }
  struct cell *cell = &list->cells[used];
  *cell = (struct cell){0, 0, NAN};
  const char *text = (const char *)sqlite3_value_text(value);
  int taken = (is_array ? ledger_elements : ledger_options)(list->ledger, text, take_member, list);
  list->count++;
  if (!taken && !list->error) list->error = sentence("%s", ledger_error(list->ledger));
  if (!list->error && (!cell->x || !cell->y || isnan(cell->p)))
    list->error = sentence("a cell of the kernel needs x, y and p");
  return !list->error;
}

static int by_place(const void *a, const void *b) {
  const struct cell *p = a, *q = b;
  int order = strcmp(p->x, q->x);
  return order ? order : strcmp(p->y, q->y);
}

static int by_text(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* ---- from cells to a channel ----------------------------------------------------------------- */

static int find_text(char *const *texts, int count, const char *text) {
  for (int low = 0, high = count; low < high;) {
    int middle = (low + high) / 2, order = strcmp(text, texts[middle]);
    if (order == 0) return middle;
    if (order < 0) high = middle;
    if (order > 0) low = middle + 1;
  }
  return -1;
}

/* Appends a copy of each text that is new, of texts in their order. 0: out of memory. */
static int list_texts(char *const *sorted, int count, char **texts, int *used) {
  for (int i = 0; i < count; i++) {
    if (*used && strcmp(texts[*used - 1], sorted[i]) == 0) continue;
    texts[*used] = sqlite3_mprintf("%s", sorted[i]);
    if (!texts[*used]) return 0;
    ++*used;
  }
  return 1;
}

/* The lists of states and symbols. 0: out of memory. */
static int make_lists(struct channel *channel, const struct cell_list *list) {
  size_t count = (size_t)list->count + 1;
  char **sorted = malloc(sizeof *sorted * count);
  channel->states = malloc(sizeof *sorted * count);
  channel->symbols = malloc(sizeof *sorted * count);
  int made = sorted && channel->states && channel->symbols;
  for (int i = 0; i < list->count && made; i++) sorted[i] = list->cells[i].x;
  made = made && list_texts(sorted, list->count, channel->states, &channel->state_count);
  int shown = 0; /* symbols that have a probability somewhere */
  for (int i = 0; i < list->count && made; i++) {
    if (list->cells[i].p > 0) sorted[shown++] = list->cells[i].y;
  }
  if (made) qsort(sorted, (size_t)shown, sizeof *sorted, by_text);
  made = made && list_texts(sorted, shown, channel->symbols, &channel->symbol_count);
  free(sorted);
  return made;
}

static char *check_sums(const struct channel *channel, const struct cell_list *list) {
  double sum = 0;
  for (int i = 0; i < list->count; i++) {
    const struct cell *cell = &list->cells[i], *next = cell + 1;
    int is_last = i + 1 == list->count || strcmp(cell->x, next->x) != 0;
    if (!is_last && strcmp(cell->y, next->y) == 0)
      return sentence("the kernel has two cells for x '%s', y '%s'", cell->x, cell->y);
    sum += cell->p;
    if (is_last && !(fabs(sum - 1) <= 1e-9))
      return sentence("the kernel's row of x '%s' sums up to %.12g, not to 1", cell->x, sum);
    if (is_last) sum = 0;
  }
  if (channel->state_count > CHANNEL_MAX_STATES || channel->symbol_count > CHANNEL_MAX_SYMBOLS)
    return sentence("the kernel has %d states and %d symbols; at most %d and %d are searched",
                    channel->state_count, channel->symbol_count, CHANNEL_MAX_STATES,
                    CHANNEL_MAX_SYMBOLS);
  return 0;
}

/* The weights, and the cells as JSON. 0: out of memory. */
static int fill_channel(struct channel *channel, const struct cell_list *list) {
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
    ledger_append_string(json, cell->x);
    sqlite3_str_appendall(json, ",");
    ledger_append_string(json, cell->y);
    sqlite3_str_appendall(json, ",");
    ledger_append_number(json, cell->p);
    sqlite3_str_appendall(json, "]");
  }
  sqlite3_str_appendall(json, "]");
  channel->json = sqlite3_str_finish(json);
  return channel->json != 0;
}

char *channel_read(struct channel *channel, struct ledger *ledger, const char *json) {
  *channel = (struct channel){0};
  struct cell_list list = {ledger, 0, 0, 0};
  int taken = ledger_elements(ledger, json, take_cell, &list);
  char *error = list.error;
  if (!taken && !error) error = sentence("%s", ledger_error(ledger));
  if (!error && !list.count) error = sentence("the kernel is empty");
  if (!error) {
    qsort(list.cells, (size_t)list.count, sizeof *list.cells, by_place);
    if (!make_lists(channel, &list)) error = sentence("out of memory");
    if (!error) error = check_sums(channel, &list);
    if (!error && !fill_channel(channel, &list)) error = sentence("out of memory");
  }
  for (int i = 0; i < list.count; i++) {
    sqlite3_free(list.cells[i].x);
    sqlite3_free(list.cells[i].y);
  }
  free(list.cells);
  return error;
}

void channel_clear(struct channel *channel) {
  for (int i = 0; i < channel->state_count; i++) sqlite3_free(channel->states[i]);
  for (int i = 0; i < channel->symbol_count; i++) sqlite3_free(channel->symbols[i]);
  free(channel->states);
  free(channel->symbols);
  free(channel->weights);
  sqlite3_free(channel->json);
  *channel = (struct channel){0};
}

/* ---- what it does ---------------------------------------------------------------------------- */

const uint64_t *channel_row(const struct channel *channel, const char *state) {
  int row = find_text(channel->states, channel->state_count, state);
  return row < 0 ? 0 : &channel->weights[(size_t)row * (size_t)channel->symbol_count];
}

/*
** w/W of a state's row, rounded, and what the rounding took away, which is a double but for its own
** rounding: W is below 2^53, and fma() rounds once.
*/
static void fill_row(const uint64_t *row, size_t columns, double *probability, double *rest) {
  double sum = 0;
  for (size_t y = 0; y < columns; y++) sum += (double)row[y];
  for (size_t y = 0; y < columns; y++) {
    probability[y] = (double)row[y] / sum;
    rest[y] = fma(-probability[y], sum, (double)row[y]) / sum;
  }
}

int channel_rdp(const struct channel *channel, char *const *states, int count, double epsilon,
                const double *orders, int order_count, double *rdp) {
  size_t columns = (size_t)channel->symbol_count, cells = (size_t)count * columns;
  double *probability = malloc(sizeof *probability * 2 * cells);
  if (!probability) return -1;
  for (size_t i = 0; i < (size_t)count; i++)
    fill_row(channel_row(channel, states[i]), columns, &probability[i * columns],
             &probability[cells + i * columns]);
  struct kernel kernel = {probability, (size_t)count, columns};
  int failed = kernel_rdp(&kernel, &probability[cells], epsilon, orders, order_count, rdp);
  free(probability);
  return failed;
}
