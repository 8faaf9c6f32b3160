/* known_names.c: see known_names.h. Tests: tests/base/test_known_names.py */
#include "base/known_names.h"

#include <string.h>

#include "base/sql_text.h"

SQLITE_EXTENSION_INIT3

/* Returns whether two letters are the same, or differ only in case. */
static int is_alike(char a, char b) {
  return sqlite3_strnicmp(&a, &b, 1) == 0;
}

static int least(int a, int b) {
  return a < b ? a : b;
}

/*
** Returns how many letters must be changed, added, left out or swapped with the next one to make
** one name of the other. Both have at most KNOWN_NAME_MOST bytes.
*/
static int distance_of(const char *a, const char *b) {
  int rows[3][KNOWN_NAME_MOST + 1], width = (int)strlen(b), height = (int)strlen(a);
  int *before = rows[0], *last = rows[1], *row = rows[2];
  for (int j = 0; j <= width; j++) row[j] = j;
  for (int i = 1; i <= height; i++) {
    int *oldest = before;
    before = last, last = row, row = oldest;
    row[0] = i;
    for (int j = 1; j <= width; j++) {
      row[j] = least(last[j - 1] + !is_alike(a[i - 1], b[j - 1]), 1 + least(last[j], row[j - 1]));
      if (i > 1 && j > 1 && is_alike(a[i - 1], b[j - 2]) && is_alike(a[i - 2], b[j - 1]))
        row[j] = least(row[j], before[j - 2] + 1);
    }
  }
  return row[width];
}

/* Returns whether a name of at least 3 letters abbreviates another one, as avg does average. */
static int abbreviates(const char *brief, const char *name) {
  if (strlen(brief) < 3 || !is_alike(*brief, *name)) return 0;
  for (; *brief && *name; name++) brief += is_alike(*brief, *name);
  return !*brief;
}

/* Returns whether a text has the form of the names that programs write: small letters and _. */
static int is_word(const char *text) {
  size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz_");
  return length > 0 && length <= 30 && !text[length];
}

void known_names_add(struct known_names *known, const char *name) {
  if (!known->list) known->list = sqlite3_str_new(0);
  sqlite3_str_appendf(known->list, "%s%s", sqlite3_str_length(known->list) ? ", " : "", name);
  size_t length = strlen(name), asked = known->asked ? strlen(known->asked) : 0;
  if (!asked || asked > KNOWN_NAME_MOST || !length || length > KNOWN_NAME_MOST) return;
  int distance = distance_of(known->asked, name);
  int most = least(3, least((int)length, (int)asked) / 3);
  if (distance > (most ? most : length > 1)) {
    if (!abbreviates(name, known->asked)) return;
    distance += KNOWN_NAME_MOST; /* a misspelt name is nearer */
  }
  if (*known->nearest && distance >= known->distance) return;
  known->distance = distance;
  memcpy(known->nearest, name, length + 1);
}

const char *known_names_nearest(struct known_names *known) {
  sqlite3_free(sqlite3_str_finish(known->list));
  known->list = 0;
  return *known->nearest ? known->nearest : 0;
}

const char *known_names_asked(const struct known_names *known, const struct error *error) {
  const char *asked = known->asked;
  if (!asked || !*asked || strlen(asked) > KNOWN_NAME_MOST) return 0;
  return (known->shows && is_word(asked)) || sql_is_typed(error->caller, asked) ? asked : 0;
}

int known_names_fail(struct known_names *known, struct error *error, const char *format) {
  char name[KNOWN_NAME_MOST + 4] = "", question[KNOWN_NAME_MOST + 30] = "";
  const char *list = known->list ? sqlite3_str_value(known->list) : 0;
  const char *asked = known_names_asked(known, error);
  if (asked) sqlite3_snprintf(sizeof name, name, " '%s'", asked);
  if (*known->nearest)
    sqlite3_snprintf(sizeof question, question, "did you mean '%s'? ", known->nearest);
  error_set(error, format, name, question, list ? list : "");
  known_names_nearest(known);
  return 0;
}

int unknown_option(const char *key, const char *const *options, struct error *error) {
  struct known_names known = {.asked = key, .shows = 1};
  for (; *options; options++) known_names_add(&known, *options);
  return known_names_fail(&known, error, "unknown option%s (%sknown options: %s)");
}
