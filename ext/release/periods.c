/* periods.c: the labels of the periods of a series, read from the option `periods`.
**
** The option is "first/last", where both labels are years (2026), quarters (2026-Q1), months
** (2026-01), ISO weeks (2026-W07) or days (2026-01-31), or a JSON array of labels in their order. A
** label that is a year, a quarter, and so on, is a date in UTC, whichever way it was given.
** Tests: tests/release/test_series_life.py */
#include "release/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/sql_text.h"
#include "mechanism/mechanism.h"

SQLITE_EXTENSION_INIT3

struct periods *periods_retain(struct periods *periods) {
  periods->references++;
  return periods;
}

void periods_release(struct periods *periods) {
  if (--periods->references) return;
  for (int i = 0; i < periods->count; i++) sqlite3_free(periods->labels[i]);
  sqlite3_free(periods->labels);
  sqlite3_free(periods->sorted);
  sqlite3_free(periods->text);
  sqlite3_free(periods);
}

/* ---- dates ----------------------------------------------------------------------------------- */

enum form { FORM_NONE, FORM_YEAR, FORM_QUARTER, FORM_MONTH, FORM_WEEK, FORM_DAY };

#define LABEL 12 /* bytes of a label that is a date */

/* Returns the number of a day of the Gregorian calendar: 0 for the Monday 0000-01-03, which begins
** the ISO week 0000-W01. `month` may be 13. */
static long day_number(int year, int month, int day) {
  static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
  int is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  long leaps = year ? (year - 1) / 4 - (year - 1) / 100 + (year - 1) / 400 + 1 : 0;
  return 365L * year + leaps + before[month - 1] + (month > 2 && is_leap) + day - 3;
}

static void date_of(long number, int *year, int *month, int *day) {
  *year = (int)(number / 366);
  while (day_number(*year + 1, 1, 1) <= number) ++*year;
  *month = 1;
  while (*month < 12 && day_number(*year, *month + 1, 1) <= number) ++*month;
  *day = (int)(number - day_number(*year, *month, 1)) + 1;
}

/* Returns the number of the week whose Thursday is in this year. Week 1 has the 4th of January. */
static long first_week(int year) {
  return (day_number(year, 1, 4) + 7) / 7 - 1;
}

/* Reads `count` digits. Returns -1 if there are not so many. */
static int digits(const char *text, int count) {
  int number = 0;
  for (int i = 0; i < count; i++) {
    if (text[i] < '0' || text[i] > '9') return -1;
    number = 10 * number + text[i] - '0';
  }
  return number;
}

/* Writes the label of a period of this form. The numbers of periods follow each other in time. */
static void write_label(enum form form, long number, char label[LABEL]) {
  int year, month, day;
  switch (form) {
  case FORM_YEAR: sqlite3_snprintf(LABEL, label, "%04d", (int)number); break;
  case FORM_QUARTER:
    sqlite3_snprintf(LABEL, label, "%04d-Q%d", (int)(number / 4), (int)(number % 4) + 1);
    break;
  case FORM_MONTH:
    sqlite3_snprintf(LABEL, label, "%04d-%02d", (int)(number / 12), (int)(number % 12) + 1);
    break;
  case FORM_WEEK:
    date_of(7 * number + 3, &year, &month, &day); /* the Thursday */
    sqlite3_snprintf(LABEL, label, "%04d-W%02d", year, (int)(number - first_week(year)) + 1);
    break;
  default:
    date_of(number, &year, &month, &day);
    sqlite3_snprintf(LABEL, label, "%04d-%02d-%02d", year, month, day);
  }
}

/* Returns the form of a label, and sets its number, or returns FORM_NONE. */
static enum form read_label(const char *label, long *number) {
  size_t length = strlen(label);
  enum form form = FORM_NONE;
  char written[LABEL];
  int year = length < 4 ? -1 : digits(label, 4);
  if (year < 0 || length >= LABEL || (length > 4 && label[4] != '-')) return FORM_NONE;
  if (length == 4) {
    form = FORM_YEAR;
    *number = year;
  } else if (length == 7 && label[5] == 'Q') {
    form = FORM_QUARTER;
    *number = 4L * year + digits(label + 6, 1) - 1;
  } else if (length == 7) {
    form = FORM_MONTH;
    *number = 12L * year + digits(label + 5, 2) - 1;
  } else if (length == 8 && label[5] == 'W') {
    form = FORM_WEEK;
    *number = first_week(year) + digits(label + 6, 2) - 1;
  } else if (length == 10 && digits(label + 5, 2) >= 1 && digits(label + 5, 2) <= 12) {
    form = FORM_DAY;
    *number = day_number(year, digits(label + 5, 2), digits(label + 8, 2));
  }
  if (form == FORM_NONE || *number < 0) return FORM_NONE;
  write_label(form, *number, written); /* there is no month 13 and no 30th of February */
  return strcmp(written, label) == 0 ? form : FORM_NONE;
}

int periods_last_day(const struct periods *periods, int period, char day[PERIOD_DAY]) {
  long number, end;
  int year, month, date;
  switch (read_label(periods->labels[period], &number)) {
  case FORM_YEAR: end = day_number((int)number + 1, 1, 1) - 1; break;
  case FORM_QUARTER: end = day_number((int)(number / 4), 3 * (int)(number % 4) + 4, 1) - 1; break;
  case FORM_MONTH: end = day_number((int)(number / 12), (int)(number % 12) + 2, 1) - 1; break;
  case FORM_WEEK: end = 7 * number + 6; break;
  case FORM_DAY: end = number; break;
  default: return 0;
  }
  if (end >= day_number(10000, 1, 1)) end = day_number(10000, 1, 1) - 1; /* 9999-W52 */
  date_of(end, &year, &month, &date);
  sqlite3_snprintf(PERIOD_DAY, day, "%04d-%02d-%02d", year, month, date);
  return 1;
}

int periods_is_later(const struct periods *periods, const char *label) {
  long number, last;
  enum form form = read_label(label, &number);
  return form != FORM_NONE && form == read_label(periods->labels[periods->count - 1], &last) &&
         number > last;
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* A period, for sorting. */
struct numbered {
  const char *label;
  int number;
};

static int too_many(struct error *error) {
  return error_set(error, "periods has more than %d labels", SERIES_MAX_PERIODS);
}

static int add_label(struct periods *periods, const char *text, struct error *error) {
  if (periods->count == SERIES_MAX_PERIODS) return too_many(error);
  char *label = sqlite3_mprintf("%s", text);
  if (!label) return error_set_memory(error);
  periods->labels[periods->count++] = label;
  return 1;
}

/* The context of take_label(). */
struct reading_labels {
  struct periods *periods;
  struct error *error;
};

static int take_label(void *context, const char *index, const char *type, sqlite3_value *value) {
  struct reading_labels *reading = context;
  (void)index;
  const char *label = strcmp(type, "text") == 0 ? plain_text(value) : 0;
  if (!label || !*label || strchr(label, '/'))
    return error_set(reading->error, "periods: a label must be a text that is not empty, without "
                                     "'/'");
  int is_plain = key_is_plain(label);
  if (is_plain < 0) return error_set_memory(reading->error);
  if (!is_plain) return error_set(reading->error, "periods: a label is too long");
  return add_label(reading->periods, label, reading->error);
}

/* Reads "first/last". */
static int read_range(struct periods *periods, const char *text, struct error *error) {
  char first[LABEL] = "", label[LABEL];
  long from, to;
  const char *slash = strchr(text, '/');
  if (slash && slash - text < LABEL) memcpy(first, text, (size_t)(slash - text));
  enum form form = slash ? read_label(first, &from) : FORM_NONE;
  if (form == FORM_NONE || read_label(slash + 1, &to) != form)
    return error_set(
        error, "periods must be \"first/last\", both years (2026), quarters (2026-Q1), months "
               "(2026-01), ISO weeks (2026-W07) or days (2026-01-31), or a JSON array of "
               "labels");
  if (to < from) return error_set(error, "periods: the last period is before the first");
  if (to - from >= SERIES_MAX_PERIODS) return too_many(error);
  int going = 1;
  for (long number = from; number <= to && going; number++) {
    write_label(form, number, label);
    going = add_label(periods, label, error);
  }
  return going;
}

static int by_label(const void *a, const void *b) {
  return strcmp(((const struct numbered *)a)->label, ((const struct numbered *)b)->label);
}

/* Sorts the labels for periods_find(), and refuses equal labels. */
static int sort_labels(struct periods *periods, struct error *error) {
  size_t count = (size_t)periods->count;
  struct numbered *list = periods->sorted = sqlite3_malloc64(sizeof *list * (count + 1));
  int going = list ? 1 : error_set_memory(error);
  for (int i = 0; i < periods->count && going; i++)
    list[i] = (struct numbered){periods->labels[i], i};
  if (going) qsort(list, count, sizeof *list, by_label);
  for (int i = 1; i < periods->count && going; i++)
    if (strcmp(list[i - 1].label, list[i].label) == 0)
      going = error_set(error, "periods: a label is there twice");
  return going;
}

struct periods *periods_open(struct json *json, const char *text) {
  struct periods *periods = sqlite3_malloc64(sizeof *periods);
  struct reading_labels reading = {periods, json->error};
  if (periods) *periods = (struct periods){.references = 1};
  if (periods) periods->labels = sqlite3_malloc64(sizeof(char *) * SERIES_MAX_PERIODS);
  int going = (periods && periods->labels) || error_set_memory(json->error);
  int is_array = text[strspn(text, " \t\r\n")] == '[';
  if (going)
    going = is_array ? json_elements(json, text, take_label, &reading)
                     : read_range(periods, text, json->error);
  if (going && !periods->count) going = error_set(json->error, "periods has no label");
  if (going && sort_labels(periods, json->error)) {
    /* The stored form: "first/last", or the labels as a JSON array. */
    char *const *labels = periods->labels;
    periods->text = is_array ? json_texts(labels, periods->count)
                             : sqlite3_mprintf("%s/%s", labels[0], labels[periods->count - 1]);
    if (periods->text) return periods;
    error_set_memory(json->error);
  }
  if (periods) periods_release(periods);
  return 0;
}

int periods_find(const struct periods *periods, const char *label) {
  const struct numbered wanted = {label, 0};
  const struct numbered *found =
      bsearch(&wanted, periods->sorted, (size_t)periods->count, sizeof wanted, by_label);
  return found ? found->number : -1;
}

/* ---- keys ------------------------------------------------------------------------------------ */

char *periods_key(const struct periods *periods, struct span span, int total, const char *group) {
  int is_long = total || span.last > span.first;
  char *text = sqlite3_mprintf("%s%s%s", periods->labels[span.first], is_long ? "/" : "",
                               is_long ? periods->labels[span.last] : "");
  if (!group || !text) return text;
  char *key = json_texts((char *const[]){text, (char *)group}, 2);
  sqlite3_free(text);
  return key;
}

static int read_span(const struct periods *periods, const char *text, struct span *span) {
  const char *slash = strchr(text, '/');
  char *first = slash ? sqlite3_mprintf("%.*s", (int)(slash - text), text) : 0;
  span->first = slash ? first ? periods_find(periods, first) : -1 : periods_find(periods, text);
  span->last = slash ? periods_find(periods, slash + 1) : span->first;
  sqlite3_free(first);
  return span->first >= 0 && span->last >= span->first;
}

int periods_read_key(const struct periods *periods, struct json *json, const char *key,
                     int has_groups, struct span *span, char **group) {
  *group = 0;
  if (!has_groups) return read_span(periods, key, span);
  int count;
  char **parts = json_list(json, key, 0, &count);
  error_clear(json->error);
  int read = parts && count == 2 && read_span(periods, parts[0], span);
  if (read) {
    *group = parts[1];
    parts[1] = 0;
  }
  json_list_free(parts);
  return read;
}
