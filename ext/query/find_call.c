/* find_call.c: finds the call of an aggregate in the text of the statement that executes it,
** evaluates its parameters, and makes the question for which the call stands: the innermost SELECT
** around it, with what it gives from each row as the result list, and with the common table
** expressions that this SELECT may use.
**
** No program of SQLite is read: only the text, by SQLite's lexical rules. If a rule does not
** suffice to be sure, there is an error, which says what to write.
** Tests: tests/query/test_random_aggregates.py, tests/query/test_asked.py,
** tests/functions/test_statement_mistakes.py */
#include <stdlib.h>
#include <string.h>

#include "base/sql_text.h"
#include "query/internal.h"

SQLITE_EXTENSION_INIT3

/* A connection that evaluates expressions without a column. */
struct constants {
  struct private_memory memory;
  sqlite3 *db;
  struct allowed_functions functions;
};

/* The tokens of a statement, with the values of its parameters in place of these. */
struct asked_statement {
  char *expanded; /* null: there are no parameters */
  struct tokens tokens;
  struct constants *constants;
};

/* ---- tokens ---------------------------------------------------------------------------------- */

static int is_word(const struct asked_statement *statement, int i, const char *word) {
  return token_is(&statement->tokens.list[i], word);
}

static int is_sign(const struct asked_statement *statement, int i, char sign) {
  return token_is_sign(&statement->tokens.list[i], sign);
}

/* Returns whether a token is one of the words of a list, which ends with null. */
static int is_one_of(const struct asked_statement *statement, int i, const char *const *words) {
  while (*words && !is_word(statement, i, *words)) words++;
  return *words != 0;
}

/* Returns whether a token is a name, with quotes or without, that is `name`. */
static int is_name(const struct token *token, const char *name) {
  const char *at = token->at, *end = at + token->size;
  char quote = *at == '[' ? ']' : *at;
  if (!strchr("\"`[", *at)) return sql_is_word(at, end, name);
  for (at++, end--; at < end && *name; at++, name++) {
    if (sqlite3_strnicmp(at, name, 1) != 0) return 0;
    at += *at == quote; /* two quotes stand for one */
  }
  return at >= end && !*name;
}

/* Returns the end of the value at the start of a text of sqlite3_expanded_sql(), or null. Sets
** *shown to whether it is a real number. */
static const char *value_end(const char *at, enum visible *shown) {
  const char *start = at, *end;
  *shown = SHOWN_WHOLE;
  if (*at == '\'' || strncmp(at, "x'", 2) == 0 || strncmp(at, "NULL", 4) == 0) {
    end = sql_token_end(at);
  } else if (strncmp(at, "zeroblob(", 9) == 0) {
    end = strchr(at, ')');
    if (end) end++;
  } else {
    end = sql_token_end(at + (*at == '-'));
    if (strspn(at + (*at == '-'), "0123456789") != (size_t)(end - at) - (*at == '-'))
      *shown = SHOWN_15_DIGITS;
    if (*shown != SHOWN_WHOLE && !strchr("0123456789I", at[*at == '-'])) return 0;
  }
  return end > start ? end : 0;
}

/* Replaces a parameter by its value. *expanded is the place of the value in the text that SQLite
** has made of the statement, and moves behind it. Returns 0 if the value cannot be read. A build of
** SQLite that shortens texts (SQLITE_TRACE_SIZE_LIMIT) says so in a comment behind the value. */
static int take_value(struct token *token, const char **expanded) {
  const char *end = value_end(*expanded, &token->shown);
  if (!end) return 0;
  token->at = *expanded;
  token->size = (int)(end - *expanded);
  if (token->shown == SHOWN_15_DIGITS && token->at[*token->at == '-'] == 'I') { /* Inf */
    token->at = *token->at == '-' ? "-9e999" : "9e999";
    token->size = (int)strlen(token->at);
  }
  *expanded = end;
  if (strncmp(end, "/*+", 3) != 0) return 1;
  token->shown = SHOWN_FIRST_BYTES;
  *expanded = strstr(end, "*/");
  if (*expanded) *expanded += 2;
  return *expanded != 0;
}

/* Returns whether token i, if it is a number, stands for a column: it is a term of ORDER BY or
** GROUP BY by itself. A bound number is no such place for SQLite, but it would be one in the
** text. */
static int is_place(const struct asked_statement *statement, int i) {
  static const char *const others[] = {"SELECT", "FROM",   "WHERE", "HAVING",
                                       "LIMIT",  "VALUES", "SET",   0};
  int at = i - 1;
  while (at >= 0 && (is_sign(statement, at, '(') || is_sign(statement, at, '+') ||
                     is_sign(statement, at, '-')))
    at--;
  if (at >= 0 && is_sign(statement, at, ',')) {
    int depth = statement->tokens.list[at].depth;
    while (at >= 0 && (statement->tokens.list[at].depth > depth ||
                       (statement->tokens.list[at].depth == depth &&
                        !is_word(statement, at, "BY") && !is_one_of(statement, at, others))))
      at--;
  }
  return at >= 0 && is_word(statement, at, "BY");
}

/* Puts the values of parameters in their place. `expanded` is the same text with values. Returns 0
** if the values cannot be read. */
static int take_values(struct asked_statement *statement, const char *sql, const char *expanded) {
  const char *at = sql; /* the end of the token before */
  for (int i = 0; i < statement->tokens.count; i++) {
    struct token *token = &statement->tokens.list[i];
    const char *start = token->at;
    size_t space = (size_t)(start - at), size = (size_t)token->size;
    if (strncmp(expanded, at, space) != 0) return 0;
    expanded += space;
    at = start + size;
    if (!sql_is_parameter(start)) {
      if (strncmp(expanded, start, size) != 0) return 0;
      expanded += size;
      continue;
    }
    if (!take_value(token, &expanded)) return 0;
    int digit = token->at[token->size > 1 && *token->at == '-'];
    if (token->shown == SHOWN_WHOLE && digit >= '0' && digit <= '9' && is_place(statement, i))
      token->shown = SHOWN_AS_PLACE;
  }
  return 1;
}

/* Reads the tokens of a text but the semicolons at its end. Returns null when out of memory. */
static struct asked_statement *read_text(const char *sql) {
  struct asked_statement *read = calloc(1, sizeof *read);
  if (!read || !tokens_read(&read->tokens, sql, strlen(sql))) {
    free(read);
    return 0;
  }
  while (read->tokens.count && is_sign(read, read->tokens.count - 1, ';')) read->tokens.count--;
  return read;
}

/* ---- constants ------------------------------------------------------------------------------- */

/* Allows SELECT and the functions of questions. Everything else is no constant. */
static int authorize(void *context, int action, const char *first, const char *second,
                     const char *schema, const char *inner) {
  const struct constants *constants = context;
  (void)first;
  (void)schema;
  (void)inner;
  if (action == SQLITE_SELECT) return SQLITE_OK;
  return action == SQLITE_FUNCTION && second && function_is_allowed(&constants->functions, second)
             ? SQLITE_OK
             : SQLITE_DENY;
}

/* Opens the connection. constants_close() closes *out, even after an error. */
static int constants_open(struct constants **out, struct error *error) {
  struct constants *constants = *out = calloc(1, sizeof *constants);
  if (!constants) return error_set_memory(error);
  if (!private_memory_open(&constants->memory, &constants->db, error)) return 0;
  sqlite3_db_config(constants->db, SQLITE_DBCONFIG_DQS_DML, 0, (int *)0);
  if (allowed_functions_read(&constants->functions, constants->db) != SQLITE_OK)
    return error_set_memory(error);
#ifndef SQLITE_CORE /* SQLite puts null for a function that it was built without */
  if (!sqlite3_api->set_authorizer)
    return error_set(error,
                     "this SQLite has no authorizer, without which no question is evaluated");
#endif
  if (sqlite3_set_authorizer(constants->db, authorize, constants) == SQLITE_OK) return 1;
  return error_set(error, "cannot limit what a question may do");
}

static void constants_close(struct constants *constants) {
  if (!constants) return;
  sqlite3_close(constants->db);
  free(constants);
}

/* ---- the statement --------------------------------------------------------------------------- */

int asked_call_next(const struct asked_statement *statement, const char *function,
                    struct asked_call *call) {
  for (int i = call->name + 1; i + 1 < statement->tokens.count; i++) {
    if (!is_sign(statement, i + 1, '(') || !is_name(&statement->tokens.list[i], function)) continue;
    int end = statement->tokens.list[i + 1].partner,
        depth = statement->tokens.list[i + 1].depth + 1;
    *call = (struct asked_call){i, end > i + 2};
    for (int j = i + 2; j < end; j++)
      call->arguments += statement->tokens.list[j].depth == depth && is_sign(statement, j, ',');
    return 1;
  }
  return 0;
}

/* Reads the text of a statement with its values. The caller closes *read. */
static int read_statement(struct asked_statement **read, sqlite3_stmt *statement,
                          struct error *error) {
  const char *sql = sqlite3_sql(statement);
  struct asked_statement *made = *read = read_text(sql);
  if (!made) return error_set_memory(error);
  int has_values = sqlite3_bind_parameter_count(statement) > 0;
  if (has_values) made->expanded = sqlite3_expanded_sql(statement);
  if (made->tokens.is_balanced &&
      (!has_values || (made->expanded && take_values(made, sql, made->expanded))))
    return 1;
  /* Advice: A build without sqlite3_expanded_sql(), or a statement that runs inside another one. */
  return error_set(error, "the values that are bound to the statement cannot be read (write them "
                          "into its text)");
}

/* Returns 1 if a statement calls a function, 0 if not, and -1 when out of memory. */
static int calls(sqlite3_stmt *statement, const char *function) {
  struct asked_statement *read = read_text(sqlite3_sql(statement));
  struct asked_call call = {-1, 0};
  int found = read ? asked_call_next(read, function, &call) : -1;
  asked_statement_close(read);
  return found;
}

/* Finds the executing statement that calls a function. Since SQLite 3.41 a statement keeps its row
** while its next step executes. A statement without a row is therefore preferred to those that may
** wait for the host between two rows. Returns null with the error set. */
static sqlite3_stmt *executing(sqlite3 *db, const char *function, struct error *error) {
  sqlite3_stmt *found = 0, *waits = 0;
  int count = 0, waiting = 0;
  for (sqlite3_stmt *s = sqlite3_next_stmt(db, 0); s; s = sqlite3_next_stmt(db, s)) {
    int called = sqlite3_stmt_busy(s) && sqlite3_sql(s) ? calls(s, function) : 0;
    if (called < 0) {
      error_set_memory(error);
      return 0;
    }
    if (!called) continue;
    int has_row = sqlite3_data_count(s) > 0;
    if (has_row) waits = s;
    if (!has_row) found = s;
    count += !has_row;
    waiting += has_row;
  }
  if (count == 1) return found;
  if (count == 0 && waiting == 1) return waits;
  error_set(error, "%s (ask dp_release)",
            count + waiting ? "several statements of this connection that call it are running"
                            : "cannot find the text of the running statement");
  return 0;
}

int asked_statement_find(struct asked_statement **found, sqlite3 *db, const char *function,
                         struct error *error) {
  sqlite3_stmt *statement = executing(db, function, error);
  *found = 0;
  return statement && read_statement(found, statement, error) &&
         constants_open(&(*found)->constants, error);
}

void asked_statement_close(struct asked_statement *statement) {
  if (!statement) return;
  constants_close(statement->constants);
  sqlite3_free(statement->expanded);
  tokens_free(&statement->tokens);
  free(statement);
}

int asked_statement_has_values(const struct asked_statement *statement) {
  return statement->expanded != 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The text that is written. The last token decides whether a blank follows it. */
struct writer {
  sqlite3_str *text;
  const char *last; /* null: none */
  int size;
  int is_unary;       /* the last token is a sign before an operand */
  enum visible shown; /* how much of a bound value a token is; of several, the last */
};

/* Returns whether a token is an operator. A bound number may begin with a sign. */
static int is_operator(const char *at, int size) {
  return size > 0 && strchr("+-*/%&|<>=!~", *at) && (size == 1 || !strchr("0123456789.", at[1]));
}

/* Returns whether an operand or a parenthesis follows a word, but no list of arguments. */
static int precedes_operand(const char *at, int size) {
  static const char *const words[] = {
      "ALL",   "AND",    "AS",     "BETWEEN", "BY",           "CASE",    "COLLATE", "CROSS",
      "ELSE",  "ESCAPE", "EXCEPT", "EXISTS",  "FILTER",       "FROM",    "GLOB",    "HAVING",
      "IN",    "IS",     "JOIN",   "LIKE",    "LIMIT",        "MATCH",   "NOT",     "OFFSET",
      "ON",    "OR",     "OVER",   "REGEXP",  "MATERIALIZED", "SELECT",  "THEN",    "UNION",
      "USING", "VALUES", "WHEN",   "WHERE",   "INTERSECT",    "DISTINCT"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (sql_is_word(at, at + size, words[i])) return 1;
  return 0;
}

/* Appends a token with blanks where a person would put them, so that layout and comments of the
** statement do not matter. */
static void write(struct writer *writer, const char *at, int size) {
  const char *last = writer->last;
  int is_single = writer->size == 1, opens = size == 1 && *at == '(';
  int after_sign = !last || is_operator(last, writer->size) || (is_single && strchr("(,", *last)) ||
                   precedes_operand(last, writer->size);
  int is_call = opens && !after_sign;
  int is_joined = !last || is_call || (is_single && strchr("(.", *last)) ||
                  (size == 1 && strchr(",).;", *at)) ||
                  (writer->is_unary && !is_operator(at, size));
  if (!is_joined) sqlite3_str_appendchar(writer->text, 1, ' ');
  sqlite3_str_append(writer->text, at, size);
  writer->is_unary = after_sign && size == 1 && strchr("+-~", *at) != 0;
  writer->last = at;
  writer->size = size;
}

static void write_word(struct writer *writer, const char *word) {
  write(writer, word, (int)strlen(word));
}

static void write_range(struct writer *writer, const struct asked_statement *statement, int from,
                        int to) {
  for (int i = from; i < to; i++) {
    write(writer, statement->tokens.list[i].at, statement->tokens.list[i].size);
    if (statement->tokens.list[i].shown != SHOWN_WHOLE)
      writer->shown = statement->tokens.list[i].shown;
  }
}

/* Finds the tokens of an argument of a call, which must have it. */
static void find_argument(const struct asked_statement *statement, const struct asked_call *call,
                          int argument, int *from, int *to) {
  int open = call->name + 1, end = statement->tokens.list[open].partner;
  int depth = statement->tokens.list[open].depth + 1, i = open + 1;
  for (*from = i; i < end; i++) {
    if (statement->tokens.list[i].depth != depth || !is_sign(statement, i, ',')) continue;
    if (argument-- == 0) break;
    *from = i + 1;
  }
  *to = i;
}

/* The parentheses make the text one expression, or an error. */
sqlite3_value *asked_value(const struct asked_statement *statement, const struct asked_call *call,
                           int argument, enum visible *shown, int *is_alone, const char **message) {
  struct writer writer = {sqlite3_str_new(0), 0, 0, 0, 0};
  sqlite3 *db = statement->constants->db;
  sqlite3_stmt *row = 0;
  sqlite3_value *value = 0;
  int from, to;
  find_argument(statement, call, argument, &from, &to);
  *is_alone = to - from == 1;
  sqlite3_str_appendall(writer.text, "SELECT (");
  write_range(&writer, statement, from, to);
  *shown = writer.shown;
  sqlite3_str_appendall(writer.text, ")");
  char *sql = sqlite3_str_finish(writer.text);
  if (sql && sqlite3_prepare_v2(db, sql, -1, &row, 0) == SQLITE_OK &&
      sqlite3_step(row) == SQLITE_ROW)
    value = sqlite3_value_dup(sqlite3_column_value(row, 0));
  sqlite3_finalize(row); /* the message has its error */
  *message = sql ? sqlite3_errmsg(db) : 0;
  sqlite3_free(sql);
  return value;
}

/* ---- the SELECT around a call ---------------------------------------------------------------- */

/* The tokens between two parentheses, or the whole statement. */
struct level {
  int depth, start, end;
};

/* Returns the level that contains token i. */
static struct level level_of(const struct asked_statement *statement, int i) {
  struct level level = {statement->tokens.list[i].depth, i, i};
  while (level.start > 0 && statement->tokens.list[level.start - 1].depth >= level.depth)
    level.start--;
  while (level.end < statement->tokens.count &&
         statement->tokens.list[level.end].depth >= level.depth)
    level.end++;
  return level;
}

/* Returns the level around a level, or one with the depth -1. Level.start - 1 is the parenthesis
** that opens the level. */
static struct level outer_level(const struct asked_statement *statement,
                                const struct level *level) {
  return level->depth ? level_of(statement, level->start - 1) : (struct level){-1, 0, 0};
}

/* Returns the last token before `before` that is SELECT in this level, or -1. */
static int select_before(const struct asked_statement *statement, const struct level *level,
                         int before) {
  int i = before - 1;
  while (i >= level->start &&
         (statement->tokens.list[i].depth != level->depth || !is_word(statement, i, "SELECT")))
    i--;
  return i >= level->start ? i : -1;
}

/* Finds the innermost SELECT around a call, and its level. Returns its token, or -1. */
static int innermost_select(const struct asked_statement *statement, const struct asked_call *call,
                            struct level *level) {
  int select = -1, before = call->name;
  *level = level_of(statement, call->name);
  while (level->depth >= 0 && (select = select_before(statement, level, before)) < 0) {
    before = level->start;
    *level = outer_level(statement, level);
  }
  return select;
}

int asked_call_is_outermost(const struct asked_statement *statement,
                            const struct asked_call *call) {
  struct level level;
  innermost_select(statement, call, &level);
  return level.depth == 0;
}

/* The clauses of a SELECT: its first tokens; -1: there is none. */
struct clauses {
  int from, where, end;
};

/* Returns the word of a clause that a SELECT around an aggregate cannot have, or null. */
static const char *refused_word(const struct asked_statement *statement, int i) {
  static const char *const words[] = {"GROUP", "HAVING",    "ORDER",  "LIMIT", "WINDOW",
                                      "UNION", "INTERSECT", "EXCEPT", 0};
  for (int j = 0; words[j]; j++)
    if (is_word(statement, i, words[j])) return words[j];
  return 0;
}

static int refuse(const char *word, const char *keyed, struct error *error) {
  /* Advice: An aggregate is one release about all rows of its SELECT. What selects or orders rows
     can stand in a subquery: `FROM (SELECT …)`. */
  if (strcmp(word, "GROUP") == 0)
    return error_set(error,
                     "GROUP BY cannot stand around it (for one release by key, write %s(tier, key, "
                     "...) without GROUP BY)",
                     keyed);
  return error_set(error,
                   "%s%s cannot stand in its SELECT (put the rows into a subquery, as in "
                   "FROM (SELECT ...), or ask dp_release)",
                   word, strcmp(word, "ORDER") == 0 ? " BY" : "");
}

/* Finds the clauses of the SELECT at token `select`. */
static int find_clauses(struct clauses *clauses, const struct asked_statement *statement,
                        const struct level *level, int select, const struct asked_call *call,
                        const char *keyed, struct error *error) {
  *clauses = (struct clauses){-1, -1, level->end};
  for (int i = level->start; i < level->end; i++) {
    if (statement->tokens.list[i].depth != level->depth) continue;
    const char *word = refused_word(statement, i);
    int is_value = i > 0 && is_word(statement, i - 1, "DISTINCT"); /* IS DISTINCT FROM */
    if (word) return refuse(word, keyed, error);
    if (i < select || i >= clauses->end) continue;
    if (i == select + 1 && is_word(statement, i, "DISTINCT"))
      return refuse("DISTINCT", keyed, error);
    if (clauses->from < 0 && is_word(statement, i, "FROM") && !is_value) clauses->from = i;
    if (clauses->where < 0 && is_word(statement, i, "WHERE")) clauses->where = i;
    if (is_word(statement, i, "RETURNING") || (clauses->where >= 0 && is_word(statement, i, "ON")))
      clauses->end = i;
  }
  int first = clauses->from >= 0    ? clauses->from
              : clauses->where >= 0 ? clauses->where
                                    : level->end;
  return call->name < first ||
         error_set(error, "it must stand in the result list of its SELECT (ask dp_release)");
}

/* Checks that the statement reads: SELECT, INSERT ... SELECT or CREATE TABLE ... AS. */
static int check_statement(const struct asked_statement *statement, struct error *error) {
  static const char *const kinds[] = {"SELECT", "VALUES", "INSERT", "REPLACE",
                                      "CREATE", "UPDATE", "DELETE", 0};
  int i = 0;
  while (i < statement->tokens.count &&
         (statement->tokens.list[i].depth != 0 || !is_one_of(statement, i, kinds)))
    i++;
  if (i < statement->tokens.count &&
      (is_word(statement, i, "UPDATE") || is_word(statement, i, "DELETE")))
    return error_set(error, "a statement that updates or deletes cannot make a release (nothing "
                            "was charged; SELECT it first, then store it)");
  return 1;
}

/* ---- common table expressions ---------------------------------------------------------------- */

/* Returns the end of the list of common table expressions that begins after WITH. */
static int with_end(const struct asked_statement *statement, const struct level *level, int with) {
  static const char *const ends[] = {"SELECT", "VALUES", "INSERT", "REPLACE",
                                     "UPDATE", "DELETE", 0};
  int i = with + 1;
  while (i < level->end &&
         (statement->tokens.list[i].depth != level->depth || !is_one_of(statement, i, ends)))
    i++;
  return i;
}

/* Writes the expressions of a list, except for the one that contains the call. Returns their
** number. If `writer` is null, only counts them. */
static int write_list(struct writer *writer, const struct asked_statement *statement,
                      const struct level *level, int with, const struct asked_call *call) {
  int end = with_end(statement, level, with), count = 0;
  int first = with + 1 + is_word(statement, with + 1, "RECURSIVE"), from = first;
  for (int i = from; i <= end; i++) {
    const struct token *token = &statement->tokens.list[i];
    if (i < end && (token->depth != level->depth || !is_sign(statement, i, ','))) continue;
    if (call->name < from || call->name >= i) {
      if (writer && count) write_word(writer, ",");
      if (writer && !count) write_range(writer, statement, with, first);
      if (writer) write_range(writer, statement, from, i);
      count++;
    }
    from = i + 1;
  }
  return count;
}

/* Writes the lists of all levels around the SELECT, the outermost first. An inner list stands in a
** subquery, so that its names are not seen by the expressions of an outer one. Counts the
** parentheses that remain open. */
static void write_lists(struct writer *writer, const struct asked_statement *statement,
                        const struct level *level, int before, const struct asked_call *call,
                        int *open) {
  if (level->depth < 0) return;
  struct level outer = outer_level(statement, level);
  write_lists(writer, statement, &outer, level->start, call, open);
  for (int i = level->start; i < before; i++) {
    if (statement->tokens.list[i].depth != level->depth || !is_word(statement, i, "WITH") ||
        !write_list(0, statement, level, i, call))
      continue;
    if (writer->last) {
      static const char *const words[] = {"SELECT", "*", "FROM", "("};
      for (int j = 0; j < 4; j++) write_word(writer, words[j]);
      ++*open;
    }
    write_list(writer, statement, level, i, call);
  }
}

/* ---- the question ---------------------------------------------------------------------------- */

/* Finds the condition of FILTER (WHERE ...) after a call, and its end. Returns 0 if there is
** none. */
static int find_filter(const struct asked_statement *statement, const struct asked_call *call,
                       int *from, int *to) {
  int i = statement->tokens.list[call->name + 1].partner + 1;
  if (i + 1 >= statement->tokens.count || !is_word(statement, i, "FILTER") ||
      !is_sign(statement, i + 1, '('))
    return 0;
  *from = i + 3; /* after WHERE */
  *to = statement->tokens.list[i + 1].partner;
  return 1;
}

static void write_argument(struct writer *writer, const struct asked_statement *statement,
                           const struct asked_call *call, int argument) {
  int from, to;
  find_argument(statement, call, argument, &from, &to);
  write_range(writer, statement, from, to);
}

static void write_where(struct writer *writer, const struct asked_statement *statement,
                        const struct asked_call *call, const struct clauses *clauses) {
  int from, to, has_filter = find_filter(statement, call, &from, &to);
  int both = has_filter && clauses->where >= 0;
  if (!has_filter && clauses->where < 0) return;
  write_word(writer, "WHERE");
  if (both) write_word(writer, "(");
  if (clauses->where >= 0) write_range(writer, statement, clauses->where + 1, clauses->end);
  if (both) {
    write_word(writer, ")");
    write_word(writer, "AND");
    write_word(writer, "(");
  }
  if (has_filter) write_range(writer, statement, from, to);
  if (both) write_word(writer, ")");
}

int asked_not_shown(enum visible shown, struct error *error) {
  /* Advice: A build of SQLite that shortens bound texts (SQLITE_TRACE_SIZE_LIMIT), such as the
     driver of Go. Options that are bound as the whole argument are read all the same. */
  if (shown == SHOWN_FIRST_BYTES)
    return error_set(error, "this SQLite shows only the first bytes of a value that is bound to "
                            "the statement (write it into the text)");
  if (shown == SHOWN_AS_PLACE)
    return error_set(error, "a number that is bound in ORDER BY or GROUP BY would become the place "
                            "of a column (write the expression that is meant)");
  /* Advice: SQLite shows 15 digits of a bound real number, and the question would be about another
     number. Bind an integer or a text, or write the number into the statement. */
  return error_set(error, "a real number that is bound to the statement cannot be read to its last "
                          "bit (write it into the text)");
}

char *asked_question(const struct asked_statement *statement, const struct asked_call *call,
                     int key, int value, const char *keyed, struct error *error) {
  struct level level;
  struct clauses clauses;
  int select = innermost_select(statement, call, &level), open = 0;
  if (select < 0) {
    error_set(error, "cannot find the SELECT around it (ask dp_release)");
    return 0;
  }
  if (!check_statement(statement, error) ||
      !find_clauses(&clauses, statement, &level, select, call, keyed, error))
    return 0;
  struct writer writer = {sqlite3_str_new(0), 0, 0, 0, 0};
  write_lists(&writer, statement, &level, select, call, &open);
  write_word(&writer, "SELECT");
  if (key) write_argument(&writer, statement, call, key);
  if (key && value) write_word(&writer, ",");
  if (value) write_argument(&writer, statement, call, value);
  if (!key && !value) write_word(&writer, "1");
  int sources = clauses.where >= 0 ? clauses.where : clauses.end;
  if (clauses.from >= 0) write_range(&writer, statement, clauses.from, sources);
  write_where(&writer, statement, call, &clauses);
  while (open-- > 0) write_word(&writer, ")");
  char *question = sqlite3_str_finish(writer.text);
  if (question && writer.shown == SHOWN_WHOLE) return question;
  sqlite3_free(question);
  if (question)
    asked_not_shown(writer.shown, error);
  else
    error_set_memory(error);
  return 0;
}

/* ---- a call of a scalar function ------------------------------------------------------------- */

/* The words that may stand beside a call that is executed once. */
static const char *const once_words[] = {
    "SELECT",    "AS",  "INSERT", "INTO",   "REPLACE", "VALUES",  "CREATE", "TABLE",  "TEMP",
    "TEMPORARY", "IF",  "NOT",    "EXISTS", "OR",      "AND",     "CASE",   "WHEN",   "THEN",
    "ELSE",      "END", "IS",     "NULL",   "CAST",    "BETWEEN", "LIMIT",  "OFFSET", 0};

/* Further words after json_each(call). */
static const char *const after_each[] = {"WHERE", "ORDER", "BY", "ASC", "DESC", 0};

/* Returns whether the part from `from` to `to` is FROM ( or FROM json_each( in a SELECT that
** evaluates it once: SELECT * FROM (...), or SELECT names FROM json_each(...). */
static int is_once_source(const struct asked_statement *statement, const struct level *level,
                          int from, int open, int *is_each) {
  *is_each = open == from + 2 && (is_word(statement, from + 1, "json_each") ||
                                  is_word(statement, from + 1, "json_tree"));
  if (!*is_each)
    return open == from + 1 && from == level->start + 2 && is_sign(statement, from - 1, '*');
  for (int i = level->start; i < from; i++)
    if (is_sign(statement, i, '(')) return 0;
  return 1;
}

/* Returns whether a level executes once what stands in the tokens from `first` to `last`. */
static int level_is_once(const struct asked_statement *statement, const struct level *level,
                         int first, int last) {
  int is_each = 0;
  for (int i = level->start; i < level->end; i++) {
    const struct token *token = &statement->tokens.list[i];
    if (token->depth != level->depth || (i >= first && i <= last)) continue;
    if (is_word(statement, i, "FROM") && i < first) {
      if (!is_once_source(statement, level, i, first, &is_each)) return 0;
    } else if (is_each && is_sign(statement, i, ',')) {
      return 0; /* another table */
    } else if (sql_is_of_word(*token->at) && sqlite3_keyword_check(token->at, token->size) &&
               !is_one_of(statement, i, once_words) &&
               !(is_each && i > last && is_one_of(statement, i, after_each)) &&
               !is_word(statement, i, "KEY")) {
      return 0;
    }
  }
  return 1;
}

int asked_once(sqlite3 *db, const char *function) {
  struct error ignored = {0};
  struct asked_call call = {-1, 0}, second;
  sqlite3_stmt *running = executing(db, function, &ignored);
  struct asked_statement *statement = running ? read_text(sqlite3_sql(running)) : 0;
  int once =
      statement && statement->tokens.is_balanced && asked_call_next(statement, function, &call);
  second = call;
  if (once) once = !asked_call_next(statement, function, &second);
  if (once) {
    struct level level = level_of(statement, call.name);
    int first = call.name, last = statement->tokens.list[call.name + 1].partner;
    while (once && level.depth >= 0) {
      once = level_is_once(statement, &level, first, last);
      first = level.start - 1;
      last = level.end;
      level = outer_level(statement, &level);
    }
  }
  asked_statement_close(statement);
  error_clear(&ignored);
  return once;
}
