/*
** row_text.c: see row_text.h.
** Tests: tests/query/test_three_ways.py, tests/query/test_direct_questions.py
*/
#include "query/row_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/sql_text.h"

SQLITE_EXTENSION_INIT3

const char *const rowid_names[ROWID_NAMES] = {"rowid", "_rowid_", "oid"};

/* ---- tokens ---------------------------------------------------------------------------------- */

/*
** The keywords of the list, sorted. None of them looks at a second row, orders or counts rows, or
** can fail.
*/
static const char *const listed[] = {
    "ALL",   "AND",  "AS",     "BETWEEN", "CASE", "CAST",    "COLLATE", "CROSS", "ELSE",
    "END",   "FROM", "IN",     "INNER",   "IS",   "ISNULL",  "JOIN",    "NOT",   "NOTNULL",
    "NULL",  "ON",   "OR",     "SELECT",  "THEN", "USING",   "WHEN",    "WHERE"};

/*
** Keywords that are names here, sorted: in a SELECT they mean something only beside a keyword that
** is not on the list above, such as OVER. Many tables have a column of such a name.
*/
static const char *const names[] = {"ACTION", "CONFLICT", "CURRENT", "DATABASE", "FAIL",
                                    "FIRST",  "GROUPS",   "KEY",     "LAST",     "OTHERS",
                                    "PLAN",   "QUERY",    "RANGE",   "RELEASE",  "ROW",
                                    "ROWS",   "TEMP",     "TRIGGER", "VIEW"};

enum token { TOKEN_END, TOKEN_WORD, TOKEN_NAME, TOKEN_VALUE, TOKEN_SIGN, TOKEN_UNKNOWN };

/* A text that is read token by token. */
struct reading {
  const char *end; /* of the text */
  const char *at, *after;
  enum token token;
};

static int by_name(const void *word, const void *name) {
  return strcmp(word, *(const char *const *)name);
}

#define IS_ONE_OF(list, at, size) is_one_of(list, sizeof(list) / sizeof *(list), at, size)

static int is_one_of(const char *const *list, size_t count, const char *at, size_t size) {
  char word[16];
  if (size >= sizeof word) return 0;
  for (size_t i = 0; i < size; i++) word[i] = (char)(at[i] >= 'a' ? at[i] - 32 : at[i]);
  word[size] = 0;
  return bsearch(word, list, count, sizeof *list, by_name) != 0;
}

/*
** Returns what a word is. A word with other letters than ASCII is not known: SQLite takes some
** characters above 127 for white space, and may take more for it in future.
*/
static enum token kind_of_word(const char *at, const char *after) {
  for (const char *c = at; c < after; c++)
    if (*c == '$' || (unsigned char)*c > 127) return TOKEN_UNKNOWN;
  if (*at >= '0' && *at <= '9') return TOKEN_VALUE;
  if (IS_ONE_OF(listed, at, (size_t)(after - at))) return TOKEN_WORD;
  if (IS_ONE_OF(names, at, (size_t)(after - at))) return TOKEN_NAME;
  return sqlite3_keyword_check(at, (int)(after - at)) ? TOKEN_UNKNOWN : TOKEN_NAME;
}

/*
** Returns what a sign is. The signs || and -> are not known: the first can make a value that is too
** long, and the second may fail.
*/
static enum token kind_of_sign(const char *at) {
  if ((at[0] == '|' && at[1] == '|') || (at[0] == '-' && at[1] == '>')) return TOKEN_UNKNOWN;
  return strchr("(),.+-*/%&|<>=!~", *at) ? TOKEN_SIGN : TOKEN_UNKNOWN;
}

static void next(struct reading *reading) {
  const char *at = reading->at = sql_skip_space(reading->after);
  if (at >= reading->end) {
    reading->token = TOKEN_END;
    reading->at = reading->after = reading->end;
    return;
  }
  reading->after = sql_token_end(at);
  if (sql_is_of_word(*at)) {
    int is_blob = reading->after[-1] == '\'';
    reading->token = is_blob ? TOKEN_VALUE : kind_of_word(at, reading->after);
  } else {
    reading->token = *at == '\''          ? TOKEN_VALUE
                     : strchr("\"`[", *at) ? TOKEN_NAME
                                           : kind_of_sign(at);
  }
}

static struct reading begin(const char *sql, const char *end) {
  struct reading reading = {end, sql, sql, TOKEN_UNKNOWN};
  next(&reading);
  return reading;
}

static int is(const struct reading *reading, const char *word) {
  return sql_is_word(reading->at, reading->after, word);
}

static int is_sign(const struct reading *reading, char sign) {
  return reading->token == TOKEN_SIGN && *reading->at == sign;
}

static struct reading following(const struct reading *reading) {
  struct reading after = *reading;
  next(&after);
  return after;
}

/* Returns a name without its quotes, or null if memory runs out. The caller frees it. */
static char *name_of(const struct reading *reading) {
  const char *at = reading->at;
  size_t size = (size_t)(reading->after - at), length = 0;
  int quoted = strchr("\"`[", *at) != 0;
  char quote = *at == '[' ? ']' : *at, *name = sqlite3_malloc64(size + 1);
  if (!name) return 0;
  for (size_t i = (size_t)quoted; i + (size_t)quoted < size; i++) {
    name[length++] = at[i];
    if (quoted && at[i] == quote) i++; /* two quotes stand for one */
  }
  name[length] = 0;
  return name;
}

/* ---- expressions ----------------------------------------------------------------------------- */

/* Returns whether the name before a parenthesis is that of a function that cannot fail. */
static int is_safe_call(const struct reading *reading, const struct allowed_functions *functions) {
  char *name = name_of(reading);
  int safe = name && function_is_safe(functions, name);
  sqlite3_free(name);
  return safe;
}

/*
** Returns whether the token is on the list, and stands where it means what the list says: IN has a
** list in parentheses and no table, and a collation is SQLite's own. (RTRIM is left out, because
** SQLite 3.40 loses rows of a join under it.)
*/
static int is_admitted(const struct reading *reading, const struct allowed_functions *functions) {
  struct reading after = following(reading);
  int calls = is_sign(&after, '(');
  switch (reading->token) {
  case TOKEN_VALUE:
  case TOKEN_SIGN: return 1;
  case TOKEN_NAME: return !calls || is_safe_call(reading, functions);
  case TOKEN_WORD:
    if (is(reading, "IN")) return calls;
    if (is(reading, "COLLATE")) return is(&after, "BINARY") || is(&after, "NOCASE");
    return 1;
  case TOKEN_UNKNOWN: /* a keyword can be the name of a function */
    return sql_is_of_word(*reading->at) && calls && is_safe_call(reading, functions);
  default: return 0;
  }
}

/* ---- questions ------------------------------------------------------------------------------- */

/* Notes a name that stands for a table. Counts the protected tables. */
static int note_source(struct row_text *text, const struct reading *reading, int *protected,
                       role_of_table *role_of, const void *context) {
  struct reading after = following(reading);
  char *name = reading->token == TOKEN_NAME ? name_of(reading) : 0;
  int role = name && !is_sign(&after, '.') ? role_of(context, name) : -1;
  sqlite3_free(name);
  text->sources++;
  *protected += role == 1;
  return role >= 0;
}

static void note_rowid(struct row_text *text, const struct reading *reading) {
  char *name = name_of(reading);
  for (int i = 0; name && i < ROWID_NAMES; i++)
    text->rowids[i] |= sqlite3_stricmp(name, rowid_names[i]) == 0;
  sqlite3_free(name);
}

int row_text_read(struct row_text *text, const char *sql, int length,
                  const struct allowed_functions *functions, role_of_table *role_of,
                  const void *context) {
  int depth = 0, selects = 0, froms = 0, protected = 0, going = 1;
  int awaits = 0, in_sources = 0; /* a table must follow; in the list of tables */
  struct reading last = {.token = TOKEN_END};
  *text = (struct row_text){0};
  struct reading now = begin(sql, sql + length);
  for (; now.token != TOKEN_END && going; last = now, next(&now)) {
    going = is_admitted(&now, functions);
    if (going && awaits) going = note_source(text, &now, &protected, role_of, context);
    awaits = 0;
    if (now.token == TOKEN_SIGN) {
      depth += (*now.at == '(') - (*now.at == ')');
      awaits = *now.at == ',' && in_sources && depth == 0;
      int begins = is(&last, "SELECT") || is(&last, "ALL") || is_sign(&last, ',');
      if (*now.at == '*') text->has_star |= begins || is_sign(&last, '.');
    } else if (now.token == TOKEN_NAME) {
      note_rowid(text, &now);
    } else if (is(&now, "SELECT")) {
      selects++;
    } else if (is(&now, "FROM")) {
      text->from = (int)(now.at - sql);
      froms += depth == 0 ? 1 : 2;
      awaits = in_sources = 1;
    } else if (is(&now, "JOIN")) {
      awaits = 1;
    } else if (is(&now, "WHERE")) {
      in_sources = 0;
    }
  }
  return going && !awaits && selects == 1 && froms == 1 && protected == 1;
}

/* ---- generated columns ----------------------------------------------------------------------- */

#define MOST_COLUMNS 2000

/* The definition of a column: from its name on. */
static int is_definition(const struct reading *reading) {
  static const char *const constraints[] = {"CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"};
  for (size_t i = 0; i < sizeof constraints / sizeof *constraints; i++)
    if (is(reading, constraints[i])) return 0;
  return 1;
}

/* Finds the definitions of the columns. Returns their number. */
static int definitions_find(struct reading *list, const char *sql) {
  int depth = 0, count = 0, begins = 0;
  for (struct reading now = begin(sql, sql + strlen(sql)); now.token != TOKEN_END; next(&now)) {
    if (begins && depth == 1 && is_definition(&now) && count < MOST_COLUMNS) list[count++] = now;
    begins = depth == 1 && *now.at == ',';
    if (*now.at == '(') begins = ++depth == 1;
    if (*now.at == ')') depth--;
  }
  return count;
}

/*
** Checks the expression of a definition, in the parentheses after AS. A column without one is as
** safe as stored values are. `seen` marks the columns that have been checked.
*/
static int definition_is_safe(const struct reading *list, int count, int column, char *seen,
                              const struct allowed_functions *functions) {
  struct reading now = list[column];
  int depth = 0, safe = 1;
  if (seen[column]++) return 1;
  for (next(&now); now.token != TOKEN_END && depth >= 0; next(&now)) {
    if (depth == 0 && (is(&now, "AS") || *now.at == ',')) break;
    depth += (*now.at == '(') - (*now.at == ')');
  }
  if (!is(&now, "AS")) return 1;
  next(&now);
  for (depth = 0; safe && now.token != TOKEN_END; next(&now)) {
    depth += is_sign(&now, '(') - is_sign(&now, ')');
    if (depth == 0) break;
    safe = is_admitted(&now, functions);
    char *name = now.token == TOKEN_NAME ? name_of(&now) : 0;
    for (int i = 0; i < count && name && safe; i++) {
      char *other = name_of(&list[i]);
      safe = other != 0;
      if (safe && sqlite3_stricmp(name, other) == 0)
        safe = definition_is_safe(list, count, i, seen, functions);
      sqlite3_free(other);
    }
    sqlite3_free(name);
  }
  return safe;
}

int generated_column_is_safe(const char *sql, int column,
                             const struct allowed_functions *functions) {
  struct reading *list = calloc(MOST_COLUMNS, sizeof *list);
  char *seen = calloc(MOST_COLUMNS, 1);
  int count = list ? definitions_find(list, sql) : 0;
  int safe = seen && column < count && definition_is_safe(list, count, column, seen, functions);
  free(list);
  free(seen);
  return safe;
}
