/* sql_text.c: see sql_text.h.
** Tests: tests/query/test_asked.py, tests/query/test_random_comparisons.py,
** tests/base/test_known_names.py, tests/sums/test_vectors_input.py */
#include "base/sql_text.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/number.h"

SQLITE_EXTENSION_INIT3

/* ---- values ---------------------------------------------------------------------------------- */

/* Returns the bytes of the UTF-8 character at the start of a text, or 0 if it is invalid. */
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

/* Returns whether a text is valid UTF-8 up to its terminating zero byte. */
static int is_utf8(const char *text) {
  int size;
  for (; *text; text += size) {
    size = utf8_length((const unsigned char *)text);
    if (!size) return 0;
  }
  return 1;
}

const char *plain_text(sqlite3_value *value) {
  if (sqlite3_value_type(value) != SQLITE_TEXT) return 0;
  const char *text = (const char *)sqlite3_value_text(value);
  return text && strlen(text) == (size_t)sqlite3_value_bytes(value) && is_utf8(text) ? text : 0;
}

int whole_number(sqlite3_value *value, int64_t *number) {
  double x;
  if (value_number(value, &x) <= 0) return 0;
  if (sqlite3_value_type(value) == SQLITE_INTEGER) {
    *number = sqlite3_value_int64(value);
    return 1;
  }
  if (x != floor(x) || fabs(x) >= 0x1p53) return 0;
  *number = (int64_t)x;
  return 1;
}

/* Returns whether a text is wholly a number as SQLite reads it: digits with at most one point and
** an exponent, a sign before both, and white space around them. */
static int is_number(const char *text, size_t size) {
  const char *end = text + size, *at = text;
  int digits = 0, power = 1;
  while (at < end && strchr(" \t\n\v\f\r", *at) && *at) at++;
  while (at < end && strchr(" \t\n\v\f\r", end[-1]) && end[-1]) end--;
  if (at < end && (*at == '-' || *at == '+')) at++;
  for (; at < end && isdigit((unsigned char)*at); at++) digits++;
  if (at < end && *at == '.') at++;
  for (; at < end && isdigit((unsigned char)*at); at++) digits++;
  if (digits && at < end && (*at == 'e' || *at == 'E')) {
    at++;
    if (at < end && (*at == '-' || *at == '+')) at++;
    for (power = 0; at < end && isdigit((unsigned char)*at); at++) power++;
  }
  return digits && power && at == end;
}

int value_number(sqlite3_value *value, double *x) {
  int type = sqlite3_value_type(value);
  if (type == SQLITE_NULL || type == SQLITE_BLOB) return 0;
  if (type == SQLITE_TEXT) {
    const char *text = (const char *)sqlite3_value_text(value);
    if (!text) return -1;
    if (!is_number(text, (size_t)sqlite3_value_bytes(value))) return 0;
  }
  *x = sqlite3_value_double(value);
  return 1;
}

const char *not_a(sqlite3_value *value, int wanted) {
  int type = sqlite3_value_type(value);
  int number = type == SQLITE_INTEGER || type == SQLITE_FLOAT;
  if (type == SQLITE_TEXT && wanted == SQLITE_TEXT)
    return plain_text(value) ? "" : ", not one with a zero byte or bytes that are not UTF-8";
  if (type == wanted || (number && wanted == SQLITE_FLOAT)) return "";
  return type == SQLITE_NULL   ? ", not NULL"
         : type == SQLITE_TEXT ? ", not a text"
         : number              ? ", not a number"
                               : ", not a blob";
}

/* ---- keys of groups -------------------------------------------------------------------------- */

/* The text of a key has at most KEY_LENGTH characters. Keys are data and can have any length, so
** key_text() cuts longer keys. BLOB_BYTES is the size of the longest blob whose text, x'...', is
** not cut. If key_text() is called with a text that it has returned, it returns the same text. */
#define KEY_LENGTH 1000
#define BLOB_BYTES 498

/* Returns the text of a number as a key: the whole number, or 15 digits. */
static char *number_key(double x) {
  if (x >= -0x1p63 && x < 0x1p63 && x == trunc(x)) return sqlite3_mprintf("%lld", (int64_t)x);
  return sqlite3_mprintf("%s", number_write(x, 15, (char[NUMBER_SIZE]){0}));
}

/* Appends the number at the start of a JSON text as a key has it. A whole number that SQLite reads
** as an integer stays as it is. Returns the number of bytes read, or 0 if there is no number. */
static size_t append_number_key(sqlite3_str *key, const char *text) {
  char number[64];
  double x;
  size_t size = strspn(text, "+-.0123456789Ee"), sign = *text == '-';
  if (!size || size >= sizeof number) return 0;
  memcpy(number, text, size);
  number[size] = 0;
  const char *most = sign ? "9223372036854775808" : "9223372036854775807";
  int is_whole = strspn(number + sign, "0123456789") == size - sign &&
                 (size - sign < 19 || (size - sign == 19 && strcmp(number + sign, most) <= 0));
  if (!vector_text_list(number, &x, 1)) return 0;
  char *written = is_whole && x != 0 ? sqlite3_mprintf("%s", number) : number_key(x);
  sqlite3_str_appendf(key, "%z", written);
  return size;
}

/* Writes a JSON array, the text of a composite key, in one form: without white space, and with the
** numbers as keys have them, so that ["a",1] and ["a",1.0] are one key. Returns null if the text is
** no JSON array, or if memory runs out. */
static char *composite_key(const char *text) {
  sqlite3_str *key = sqlite3_str_new(0);
  int depth = 0, has_value = 0, sound = *text == '[';
  while (sound && *text) {
    size_t size = 1;
    int opens = *text == '[' || *text == '{', closes = *text == ']' || *text == '}';
    if (strchr(" \t\r\n", *text)) {
      text++;
      continue;
    }
    if (opens || *text == '"' || strchr("-0123456789tfn", *text)) sound = !has_value;
    if (*text == ',' || *text == ':') sound = has_value;
    if (opens || closes) {
      depth += opens - closes;
      sound = sound && (opens || depth > 0 || !text[1 + strspn(text + 1, " \t\r\n")]);
    } else if (*text == '"') {
      while (text[size] && text[size] != '"') size += text[size] == '\\' && text[size + 1] ? 2 : 1;
      sound = sound && text[size++] == '"';
    } else if (strncmp(text, "true", 4) == 0 || strncmp(text, "null", 4) == 0) {
      size = 4;
    } else if (strncmp(text, "false", 5) == 0) {
      size = 5;
    } else if (*text != ',' && *text != ':') {
      size = append_number_key(key, text);
      sound = sound && size;
    }
    if (sound && !(strchr("-0123456789", *text))) sqlite3_str_append(key, text, (int)size);
    has_value = !opens && *text != ',' && *text != ':';
    text += size;
  }
  int is_key = sound && !depth && sqlite3_str_errcode(key) == SQLITE_OK;
  char *written = sqlite3_str_finish(key);
  if (is_key) return written;
  sqlite3_free(written);
  return 0;
}

/* Returns the text of a key whose SQL type is TEXT. The function replaces each byte that is not
** valid UTF-8 by U+FFFD, so the result is valid in JSON. */
static char *plain_key(const unsigned char *text) {
  char *composite = *text == '[' ? composite_key((const char *)text) : 0;
  if (composite) text = (const unsigned char *)composite;
  sqlite3_str *key = sqlite3_str_new(0);
  for (int i = 0; *text && i < KEY_LENGTH; i++) {
    int size = utf8_length(text);
    sqlite3_str_append(key, size ? (const char *)text : "\xef\xbf\xbd", size ? size : 3);
    text += size ? size : 1;
  }
  int failed = sqlite3_str_errcode(key) != SQLITE_OK;
  char *copy = sqlite3_str_finish(key);
  sqlite3_free(composite);
  return copy || failed ? copy : sqlite3_mprintf(""); /* SQLite returns null for an empty text */
}

int key_is_plain(const char *text) {
  char *plain = plain_key((const unsigned char *)text);
  int same = plain ? strcmp(plain, text) == 0 : -1;
  sqlite3_free(plain);
  return same;
}

char *key_text(sqlite3_value *key) {
  switch (sqlite3_value_type(key)) {
  case SQLITE_INTEGER: return sqlite3_mprintf("%lld", sqlite3_value_int64(key));
  case SQLITE_FLOAT: return number_key(sqlite3_value_double(key));
  case SQLITE_NULL: return sqlite3_mprintf("null");
  case SQLITE_TEXT: {
    const char *text = plain_text(key);
    if (text) return plain_key((const unsigned char *)text);
    if (!sqlite3_value_text(key)) return 0;
  } /* fall through */
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

/* ---- texts of queries ------------------------------------------------------------------------ */

int sql_is_of_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || (unsigned char)c > 127;
}

const char *sql_skip_space(const char *sql) {
  for (;;) {
    sql += strspn(sql, " \t\r\n\f");
    if (strncmp(sql, "--", 2) == 0) {
      sql += strcspn(sql, "\n");
    } else if (strncmp(sql, "/*", 2) == 0) {
      const char *end = strstr(sql + 2, "*/");
      sql = end ? end + 2 : sql + strlen(sql);
    } else {
      return sql;
    }
  }
}

void first_word(const char *sql, char word[8]) {
  sql = sql_skip_space(sql);
  int i = 0;
  while (i < 7 && isalpha((unsigned char)sql[i])) {
    word[i] = (char)toupper((unsigned char)sql[i]);
    i++;
  }
  word[i] = 0;
}

char *query_trimmed(const char *sql) {
  size_t length = strlen(sql);
  while (length && strchr(" \t\r\n\f;", sql[length - 1])) length--;
  return sqlite3_mprintf("%.*s", (int)length, sql);
}

/* Returns the end of the digits at the start of a text, among which underscores may stand. */
static const char *digits_end(const char *sql) {
  return sql + strspn(sql, "0123456789_");
}

/* Returns the end of a number. What sticks to it belongs to it, and SQLite refuses both. */
static const char *number_end(const char *sql) {
  sql = digits_end(sql);
  if (*sql == '.') sql = digits_end(sql + 1);
  if ((*sql == 'e' || *sql == 'E') &&
      isdigit((unsigned char)sql[1 + (sql[1] == '+' || sql[1] == '-')]))
    sql = digits_end(sql + 2);
  while (sql_is_of_word(*sql)) sql++;
  return sql;
}

int sql_is_parameter(const char *sql) {
  return *sql == '?' || (strchr(":@$#", *sql) && *sql && sql_is_of_word(sql[1]));
}

/* Returns the end of a parameter, such as ?, ?1, :a, @a, $a or $a::b(c). */
static const char *parameter_end(const char *sql) {
  if (*sql == '?') return sql + 1 + strspn(sql + 1, "0123456789");
  const char *start = sql++;
  while (sql_is_of_word(*sql) || (sql[0] == ':' && sql[1] == ':')) sql += 1 + (*sql == ':');
  size_t inside = *sql == '(' ? strcspn(sql, ") \t\r\n\f\v") : 0;
  return *start == '$' && inside && sql[inside] == ')' ? sql + inside + 1 : sql;
}

const char *sql_token_end(const char *sql) {
  static const char *const operators[] = {"->>", "->", "||", "<=", "<>",
                                          "<<",  ">=", ">>", "==", "!="};
  if (strncmp(sql, "--", 2) == 0 || strncmp(sql, "/*", 2) == 0) return sql_skip_space(sql);
  if (strchr("'\"`[", *sql)) {
    char quote = *sql == '[' ? ']' : *sql;
    for (sql++; *sql && (*sql != quote || (quote != ']' && sql[1] == quote)); sql++)
      sql += *sql == quote;
    return sql + (*sql != 0);
  }
  if (isdigit((unsigned char)sql[*sql == '.'])) return number_end(sql);
  if (sql_is_parameter(sql)) return parameter_end(sql);
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
    if (strncmp(sql, operators[i], strlen(operators[i])) == 0) return sql + strlen(operators[i]);
  if (!sql_is_of_word(*sql)) return sql + 1;
  if ((*sql == 'x' || *sql == 'X') && sql[1] == '\'') return sql_token_end(sql + 1);
  while (sql_is_of_word(*sql)) sql++;
  return sql;
}

int sql_is_word(const char *at, const char *end, const char *word) {
  return (size_t)(end - at) == strlen(word) && sqlite3_strnicmp(at, word, (int)(end - at)) == 0;
}

char *sql_name(const char *at, const char *end) {
  int is_quoted = strchr("'\"`[", *at) != 0, length = 0;
  char quote = *at == '[' ? ']' : *at, *name = sqlite3_malloc64((sqlite3_uint64)(end - at) + 1);
  if (!name) return 0;
  for (at += is_quoted; at + is_quoted < end; at++) {
    name[length++] = *at;
    at += is_quoted && *at == quote; /* two quotes stand for one */
  }
  name[length] = 0;
  return name;
}

int sql_next_source(const char **sql, char **name) {
  const char *before = *sql, *before_end = *sql, *end;
  for (const char *at = sql_skip_space(*sql); *at; at = sql_skip_space(end)) {
    int follows =
        sql_is_word(before, before_end, "FROM") || sql_is_word(before, before_end, "JOIN");
    end = sql_token_end(at);
    if (follows && sql_is_word(at, end, "main") && *sql_skip_space(end) == '.') {
      at = sql_skip_space(sql_skip_space(end) + 1);
      if (!*at) return 0;
      end = sql_token_end(at);
    }
    int quotes = strchr("\"`[", *at) != 0;
    if (follows && (quotes ? end - at > 2 : sql_is_of_word(*at))) {
      *name = sql_name(at, end);
      *sql = end;
      return 1;
    }
    /* In x IS DISTINCT FROM y, a value follows. */
    before_end = sql_is_word(before, before_end, "DISTINCT") ? at : end;
    before = at;
  }
  return 0;
}

int has_word(const char *name, const char *sql) {
  size_t length = strlen(name);
  while (*sql && sqlite3_strnicmp(sql, name, (int)length) != 0) sql++;
  return *sql != 0;
}

/* Returns whether a statement is inside sqlite3_step(). A statement that waits between two rows has
** a row of data. A blob handle is a statement without a text, and always waits. Since SQLite 3.41 a
** statement keeps its row while its next step executes, so the answer is 0 from its second step
** on. */
static int statement_is_executing(sqlite3_stmt *statement) {
  return sqlite3_stmt_busy(statement) && sqlite3_data_count(statement) == 0 &&
         sqlite3_sql(statement);
}

/* Returns whether the text of a running statement of a connection has this word in single or double
** quotes. Bound values and values of rows are no part of the text. `db` may be null. */
static int is_typed(sqlite3 *db, const char *word) {
  size_t length = strlen(word);
  for (sqlite3_stmt *s = db ? sqlite3_next_stmt(db, 0) : 0; s; s = sqlite3_next_stmt(db, s)) {
    if (!statement_is_executing(s)) continue;
    const char *sql = sqlite3_sql(s);
    for (const char *at = sql; (at = strstr(at, word)) != 0; at++)
      if (at > sql && (at[-1] == '\'' || at[-1] == '"') && at[length] == at[-1]) return 1;
  }
  return 0;
}

/* ---- names that are not known ---------------------------------------------------------------- */

/* Returns whether two letters are the same, or differ only in case. */
static int is_alike(char a, char b) {
  return sqlite3_strnicmp(&a, &b, 1) == 0;
}

static int least(int a, int b) {
  return a < b ? a : b;
}

/* Returns how many letters must be changed, added, left out or swapped with the next one to make
** one name of the other. Both have at most KNOWN_NAME_MOST bytes. */
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
  return (known->shows && is_word(asked)) || is_typed(error->caller, asked) ? asked : 0;
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

/* ---- vectors --------------------------------------------------------------------------------- */

static int read_blob(const unsigned char *bytes, int size, double *numbers, int count) {
  int finite = 1;
  if (size == 4 * count) {
    for (int i = 0; i < count; i++) numbers[i] = binary32(bytes + 4 * i);
  } else if (size == 8 * count) {
    for (int i = 0; i < count; i++) numbers[i] = binary64(bytes + 8 * i);
  } else {
    return 0;
  }
  for (int i = 0; i < count; i++) finite &= fabs(numbers[i]) <= DBL_MAX; /* also rejects NaN */
  return finite;
}

/* The parser of JSON numbers ignores the locale and allocates no memory. It uses at least the first
** 19 significant digits, and its error is at most a few units in the last place. */

static const char *skip_blanks(const char *text) {
  return text + strspn(text, " \t\r\n");
}

static int is_digit(char c) {
  return c >= '0' && c <= '9';
}

/* A decimal number with the value digits * 10^exponent. */
struct decimal {
  uint64_t digits;
  int exponent;
};

#define MANY_DIGITS 100000 /* limit of exponents, far beyond the range of doubles */

/* Reads the digits of the integer part (scale 0) or of the fraction (scale -1). Returns the
** position after the digits, or null if there are no digits. */
static const char *read_digits(const char *text, struct decimal *decimal, int scale) {
  if (!is_digit(*text)) return 0;
  for (; is_digit(*text); text++) {
    int fits = decimal->digits < UINT64_MAX / 10 - 9;
    if (fits) decimal->digits = decimal->digits * 10 + (uint64_t)(*text - '0');
    if (decimal->exponent > -MANY_DIGITS && decimal->exponent < MANY_DIGITS)
      decimal->exponent += fits ? scale : scale + 1;
  }
  return text;
}

static const char *read_exponent(const char *text, struct decimal *decimal) {
  int negative = *text == '-', exponent = 0;
  if (*text == '-' || *text == '+') text++;
  if (!is_digit(*text)) return 0;
  for (; is_digit(*text); text++)
    if (exponent < MANY_DIGITS) exponent = exponent * 10 + (*text - '0');
  decimal->exponent += negative ? -exponent : exponent;
  return text;
}

/* Returns digits * 10^exponent. Powers of ten up to 10^22 are exact as doubles. */
static double decimal_value(const struct decimal *decimal) {
  double x = (double)decimal->digits;
  int exponent = decimal->exponent;
  if (x == 0 || exponent < -400) return 0;
  if (exponent > 400) return INFINITY;
  for (; exponent >= 22; exponent -= 22) x *= 1e22;
  for (; exponent <= -22; exponent += 22) x /= 1e22;
  for (; exponent > 0; exponent--) x *= 10;
  double power = 1;
  for (; exponent < 0; exponent++) power *= 10;
  return x / power;
}

/* Reads one JSON number. Returns the position after the number, or null if the text does not start
** with a number that fits a double. */
static const char *read_number(const char *text, double *number) {
  struct decimal decimal = {0, 0};
  int negative = *text == '-';
  if (negative) text++;
  if (text[0] == '0' && is_digit(text[1])) return 0; /* JSON has no leading zeros */
  text = read_digits(text, &decimal, 0);
  if (text && *text == '.') text = read_digits(text + 1, &decimal, -1);
  if (text && (*text == 'e' || *text == 'E')) text = read_exponent(text + 1, &decimal);
  double size = decimal_value(&decimal);
  *number = negative ? -size : size;
  return text && isfinite(size) ? text : 0;
}

static int read_array(const char *text, double *numbers, int room) {
  text = skip_blanks(text);
  if (*text != '[') return 0;
  for (int i = 0; i < room; i++) {
    text = read_number(skip_blanks(text + 1), &numbers[i]);
    if (!text) return 0;
    text = skip_blanks(text);
    if (*text == ']') return *skip_blanks(text + 1) ? 0 : i + 1;
    if (*text != ',') return 0;
  }
  return 0;
}

int vector_text_list(const char *text, double *numbers, int room) {
  if (*skip_blanks(text) == '[') return read_array(text, numbers, room);
  const char *end = read_number(skip_blanks(text), numbers);
  return end && !*skip_blanks(end);
}

const unsigned char *vector_text_floats(sqlite3_value *value, int count) {
  if (sqlite3_value_type(value) != SQLITE_BLOB) return 0;
  const unsigned char *bytes = sqlite3_value_blob(value);
  return sqlite3_value_bytes(value) == 4 * count ? bytes : 0;
}

int vector_text_read(sqlite3_value *value, double *numbers, int count) {
  int well_formed = 0, type = sqlite3_value_type(value);
  if (type == SQLITE_BLOB) {
    const unsigned char *bytes = sqlite3_value_blob(value);
    well_formed = bytes && read_blob(bytes, sqlite3_value_bytes(value), numbers, count);
  } else if (type == SQLITE_TEXT) {
    const char *text = (const char *)sqlite3_value_text(value);
    well_formed = text && strlen(text) == (size_t)sqlite3_value_bytes(value) &&
                  read_array(text, numbers, count) == count;
  }
  for (int i = 0; i < count && !well_formed; i++) numbers[i] = 0;
  return well_formed;
}
