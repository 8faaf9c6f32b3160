/* question_text.c: what the text of a question says, by SQLite's lexical rules: the functions that
** it calls, whether each result depends on one row, whether it has an operator IN that a virtual
** table does not learn of, and where it means something else than the same text in a plain SELECT.
** Tests: tests/query/test_notices.py, tests/query/test_three_ways.py,
** tests/query/test_direct_questions.py, tests/query/test_question_rules.py,
** tests/query/test_question_dialect.py, tests/query/test_random_comparisons.py */
#include "query/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/sql_functions.h"
#include "base/sql_text.h"

SQLITE_EXTENSION_INIT3

/* ---- tokens ---------------------------------------------------------------------------------- */

int tokens_read(struct tokens *tokens, const char *sql, size_t length) {
  const char *end = sql + length, *after;
  struct token *all = calloc(length + 2, sizeof *all);
  int depth = 0, open = -1; /* `partner` chains the open parentheses until they are closed */
  *tokens = (struct tokens){.list = all ? all + 1 : 0};
  for (const char *at = sql_skip_space(sql); all && at < end; at = sql_skip_space(after)) {
    struct token *token = &tokens->list[tokens->count];
    after = sql_token_end(at);
    *token = (struct token){at, (int)(after - at), depth, -1, SHOWN_WHOLE};
    if (*at == '(') {
      token->partner = open;
      open = tokens->count;
      depth++;
    } else if (*at == ')' && open >= 0) {
      int before = tokens->list[open].partner;
      token->depth = --depth;
      token->partner = open;
      tokens->list[open].partner = tokens->count;
      open = before;
    }
    tokens->count++;
  }
  tokens->is_balanced = depth == 0;
  return all != 0;
}

void tokens_free(struct tokens *tokens) {
  if (tokens->list) free(tokens->list - 1);
}

int token_is(const struct token *token, const char *word) {
  return token->at && sql_is_word(token->at, token->at + token->size, word);
}

int token_is_sign(const struct token *token, char sign) {
  return token->size == 1 && *token->at == sign;
}

/* Returns the name without its quotes, which the caller frees with sqlite3_free(), or null. */
static char *token_name(const struct token *token) {
  return sql_name(token->at, token->at + token->size);
}

/* ---- functions: lists, each sorted by name --------------------------------------------------- */

/* The lists are fixed. According to SQLite's documentation, the result of each listed function
** depends only on its arguments and, for functions such as date(), on the current time, which is
** fixed in an evaluator (internal.h). The lists leave out functions that use random
** numbers, report about other statements or have side effects. They also leave out json_insert()
** and json_set(), which recurse once for each step of a path in SQLite up to 3.46 at least: a long
** path that is made from a row would overflow the stack and end the process. Functions of an
** application are not allowed, even under a listed name: an extension that is loaded for every
** connection may have replaced a function of SQLite. */

/* These functions raise no error for any arguments. */
static const char *const never_fail[] = {
    "acos",    "acosh",    "asin",    "asinh",        "atan",    "atan2", "atanh", "ceil",
    "ceiling", "coalesce", "cos",     "cosh",         "degrees", "exp",   "floor", "if",
    "ifnull",  "iif",      "length",  "likelihood",   "likely",  "ln",    "log",   "log10",
    "log2",    "mod",      "nullif",  "octet_length", "pi",      "pow",   "power", "radians",
    "round",   "sign",     "sin",     "sinh",         "sqrt",    "tan",   "tanh",  "trunc",
    "typeof",  "unicode",  "unlikely"};

/* The others may raise an error. */
static const char *const plain[] = {
    "abs",    "char",      "concat", "concat_ws", "format", "glob",    "hex",     "instr",
    "like",   "lower",     "ltrim",  "printf",    "quote",  "replace", "rtrim",   "sqlite_version",
    "substr", "substring", "trim",   "unhex",     "unistr", "upper",   "zeroblob"};
static const char *const dates[] = {"current_date", "current_time", "current_timestamp", "date",
                                    "datetime",     "julianday",    "strftime",          "time",
                                    "timediff",     "unixepoch"};
static const char *const aggregates[] = {
    "avg",        "count",           "group_concat",    "max",        "median", "min",
    "percentile", "percentile_cont", "percentile_disc", "string_agg", "sum",    "total"};
static const char *const windows[] = {"cume_dist",    "dense_rank", "first_value", "lag",
                                      "last_value",   "lead",       "nth_value",   "ntile",
                                      "percent_rank", "rank",       "row_number"};
static const char *const json[] = {"json_array",   "json_array_length", "json_error_position",
                                   "json_extract", "json_group_array",  "json_group_object",
                                   "json_object",  "json_patch",        "json_pretty",
                                   "json_quote",   "json_remove",       "json_replace",
                                   "json_type",    "json_valid"};
static const char *const json_operators[] = {"->", "->>", "json"};

#define LIST(list) list, sizeof(list) / sizeof *(list)

static const struct list {
  const char *const *names;
  size_t count;
  int is_safe, is_json;
} lists[] = {{LIST(never_fail), 1, 0},    {LIST(plain), 0, 0},   {LIST(dates), 0, 0},
             {LIST(aggregates), 0, 0},    {LIST(windows), 0, 0}, {LIST(json), 0, 1},
             {LIST(json_operators), 0, 1}};
#define LISTS (sizeof lists / sizeof *lists)

static int by_name(const void *name, const void *listed) {
  return sqlite3_stricmp(name, *(const char *const *)listed);
}

/* Returns the number of a function and sets *list to its list, or returns -1. */
static int number_of(const char *name, const struct list **list) {
  size_t before = 0;
  for (*list = lists; *list < lists + LISTS; before += (*list)++->count) {
    const char *const *found =
        bsearch(name, (*list)->names, (*list)->count, sizeof *(*list)->names, by_name);
    if (found) return (int)before + (int)(found - (*list)->names);
  }
  return -1;
}

int allowed_functions_read(struct allowed_functions *functions, sqlite3 *db) {
  const struct list *list;
  unsigned char replaced[MOST_FUNCTIONS] = {0};
  sqlite3_stmt *row = 0;
  int old = sqlite3_libversion_number() < 3038000;
  memset(functions, 0, sizeof *functions);
  sqlite3_prepare_v2(db, "PRAGMA function_list", -1, &row, 0);
  while (sqlite3_step(row) == SQLITE_ROW) {
    const char *name = (const char *)sqlite3_column_text(row, 0);
    int number = name ? number_of(name, &list) : -1;
    if (number < 0) continue;
    /* SQLite before 3.38 reports its JSON functions as functions of an extension. */
    if (sqlite3_column_int(row, 1) || (old && list->is_json)) {
      functions->own[number] = 1;
    } else {
      replaced[number] = 1;
    }
  }
  for (int i = 0; i < MOST_FUNCTIONS; i++)
    if (replaced[i]) functions->own[i] = 0;
  int rc = row ? sqlite3_finalize(row) : sqlite3_errcode(db);
  if (rc != SQLITE_OK) interrupt_pass_on(db);
  return rc;
}

int function_is_allowed(const struct allowed_functions *functions, const char *name) {
  const struct list *list;
  int number = number_of(name, &list);
  return number >= 0 && functions->own[number];
}

/* Returns whether function_is_allowed() holds and no arguments make the function raise an error. */
static int function_is_safe(const struct allowed_functions *functions, const char *name) {
  const struct list *list;
  int number = number_of(name, &list);
  return number >= 0 && functions->own[number] && list->is_safe;
}

void function_note(struct allowed_functions *used, const char *name) {
  const struct list *list;
  int number = number_of(name, &list);
  if (number >= 0) used->own[number] = 1;
}

const char *functions_replaced(const struct allowed_functions *used,
                               const struct allowed_functions *other) {
  int number = 0;
  for (const struct list *list = lists; list < lists + LISTS; list++)
    for (size_t i = 0; i < list->count; i++, number++)
      if (used->own[number] && !other->own[number]) return list->names[i];
  return 0;
}

/* ---- words and signs of a question row by row ------------------------------------------------ */

/* The keywords of the list, sorted. None of them looks at a second row, orders or counts rows, or
** can fail. */
static const char *const listed[] = {
    "ALL",  "AND",  "AS", "BETWEEN", "CASE", "CAST",   "COLLATE", "CROSS", "ELSE",
    "END",  "FROM", "IN", "INNER",   "IS",   "ISNULL", "JOIN",    "NOT",   "NOTNULL",
    "NULL", "ON",   "OR", "SELECT",  "THEN", "USING",  "WHEN",    "WHERE"};

/* Keywords that are names here, sorted: in a SELECT they mean something only beside a keyword that
** is not on the list above, such as OVER. Many tables have a column of such a name. */
static const char *const names[] = {"ACTION", "CONFLICT", "CURRENT", "DATABASE", "FAIL",
                                    "FIRST",  "GROUPS",   "KEY",     "LAST",     "OTHERS",
                                    "PLAN",   "QUERY",    "RANGE",   "RELEASE",  "ROW",
                                    "ROWS",   "TEMP",     "TRIGGER", "VIEW"};

enum kind { WORD, NAME, VALUE, SIGN, UNKNOWN };

#define IS_ONE_OF(list, at, size) is_one_of(list, sizeof(list) / sizeof *(list), at, size)

static int is_one_of(const char *const *list, size_t count, const char *at, size_t size) {
  char word[16];
  if (size >= sizeof word) return 0;
  for (size_t i = 0; i < size; i++) word[i] = at[i];
  word[size] = 0;
  return bsearch(word, list, count, sizeof *list, by_name) != 0;
}

/* Returns what a word is. A word with other letters than ASCII is not known: SQLite takes some
** characters above 127 for white space, and may take more for it in future. */
static enum kind kind_of_word(const char *at, const char *after) {
  for (const char *c = at; c < after; c++)
    if (*c == '$' || (unsigned char)*c > 127) return UNKNOWN;
  if (*at >= '0' && *at <= '9') return VALUE;
  if (IS_ONE_OF(listed, at, (size_t)(after - at))) return WORD;
  if (IS_ONE_OF(names, at, (size_t)(after - at))) return NAME;
  return sqlite3_keyword_check(at, (int)(after - at)) ? UNKNOWN : NAME;
}

/* Returns what a sign is. The signs || and -> are not known: the first can make a value that is too
** long, and the second may fail. */
static enum kind kind_of_sign(const char *at) {
  if ((at[0] == '|' && at[1] == '|') || (at[0] == '-' && at[1] == '>')) return UNKNOWN;
  return strchr("(),.+-*/%&|<>=!~", *at) ? SIGN : UNKNOWN;
}

static enum kind kind_of(const struct token *token) {
  const char *at = token->at, *after = at + token->size;
  if (sql_is_of_word(*at)) return after[-1] == '\'' ? VALUE : kind_of_word(at, after); /* a blob */
  return *at == '\'' ? VALUE : strchr("\"`[", *at) ? NAME : kind_of_sign(at);
}

/* ---- expressions ----------------------------------------------------------------------------- */

/* Returns whether the name before a parenthesis is that of a function that cannot fail. */
static int is_safe_call(const struct token *token, const struct allowed_functions *functions) {
  char *name = token_name(token);
  int safe = name && function_is_safe(functions, name);
  sqlite3_free(name);
  return safe;
}

/* Returns whether the token is on the list, and stands where it means what the list says: IN has a
** list in parentheses and no table, and a collation is SQLite's own. (RTRIM is left out, because
** SQLite 3.40 loses rows of a join under it.) */
static int is_admitted(const struct token *token, const struct allowed_functions *functions) {
  int calls = token_is_sign(token + 1, '(');
  switch (kind_of(token)) {
  case VALUE:
  case SIGN: return 1;
  case NAME: return !calls || is_safe_call(token, functions);
  case WORD:
    if (token_is(token, "IN")) return calls;
    if (token_is(token, "COLLATE"))
      return token_is(token + 1, "BINARY") || token_is(token + 1, "NOCASE");
    return 1;
  case UNKNOWN: /* a keyword can be the name of a function */
    return sql_is_of_word(*token->at) && calls && is_safe_call(token, functions);
  default: return 0;
  }
}

/* ---- questions ------------------------------------------------------------------------------- */

/* Notes a name that stands for a table. Counts the protected tables. */
static int note_source(struct row_text *text, const struct token *token, int *protected,
                       role_of_table *role_of, const void *context) {
  char *name = kind_of(token) == NAME ? token_name(token) : 0;
  int role = name && !token_is_sign(token + 1, '.') ? role_of(context, name) : -1;
  sqlite3_free(name);
  text->sources++;
  *protected += role == 1;
  return role >= 0;
}

static void note_rowid(struct row_text *text, const struct token *token) {
  char *name = token_name(token);
  for (int i = 0; name && i < ROWID_NAMES; i++)
    text->rowids[i] |= sqlite3_stricmp(name, rowid_names[i]) == 0;
  sqlite3_free(name);
}

int row_text_read(struct row_text *text, const char *sql, int length,
                  const struct allowed_functions *functions, role_of_table *role_of,
                  const void *context) {
  struct tokens tokens;
  int selects = 0, froms = 0, protected = 0;
  int awaits = 0, in_sources = 0; /* a table must follow; in the list of tables */
  int going = tokens_read(&tokens, sql, (size_t)length);
  *text = (struct row_text){0};
  for (const struct token *now = tokens.list; going && now < tokens.list + tokens.count; now++) {
    going = is_admitted(now, functions);
    if (going && awaits) going = note_source(text, now, &protected, role_of, context);
    awaits = token_is(now, "JOIN") || (token_is_sign(now, ',') && in_sources && now->depth == 0);
    if (token_is_sign(now, '*')) {
      text->has_star |= token_is(now - 1, "SELECT") || token_is(now - 1, "ALL") ||
                        token_is_sign(now - 1, ',') || token_is_sign(now - 1, '.');
    } else if (kind_of(now) == NAME) {
      note_rowid(text, now);
    } else if (token_is(now, "SELECT")) {
      selects++;
    } else if (token_is(now, "FROM")) {
      text->from = (int)(now->at - sql);
      froms += now->depth == 0 ? 1 : 2;
      awaits = in_sources = 1;
    } else if (token_is(now, "WHERE")) {
      in_sources = 0;
    }
  }
  tokens_free(&tokens);
  return going && !awaits && selects == 1 && froms == 1 && protected == 1;
}

/* ---- generated columns ----------------------------------------------------------------------- */

#define MOST_COLUMNS 2000

/* The definitions of columns: their first tokens, which are the names. */
struct definitions {
  const struct allowed_functions *functions;
  const struct token *list[MOST_COLUMNS];
  int count;
  char is_seen[MOST_COLUMNS]; /* has been checked */
};

static void definitions_find(struct definitions *all, const struct tokens *tokens) {
  static const char *const constraints[] = {"CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"};
  for (int i = 0; i < tokens->count && all->count < MOST_COLUMNS; i++) {
    const struct token *token = &tokens->list[i];
    int begins =
        token->depth == 1 && (token_is_sign(token - 1, '(') || token_is_sign(token - 1, ','));
    for (size_t j = 0; j < sizeof constraints / sizeof *constraints; j++)
      begins &= !token_is(token, constraints[j]);
    if (begins) all->list[all->count++] = token;
  }
}

/* Checks the expression of a definition, in the parentheses after AS. A column without one is as
** safe as stored values are. */
static int definition_is_safe(struct definitions *all, int column, const struct token *tokens) {
  const struct token *now = all->list[column] + 1;
  if (all->is_seen[column]++) return 1;
  while (now->depth > 1 || (now->depth == 1 && !token_is(now, "AS") && !token_is_sign(now, ',')))
    now++;
  if (!token_is(now, "AS") || !token_is_sign(now + 1, '(')) return 1;
  const struct token *end = tokens + now[1].partner;
  int safe = 1;
  for (now += 2; now < end && safe; now++) {
    safe = is_admitted(now, all->functions);
    char *name = kind_of(now) == NAME ? token_name(now) : 0;
    for (int i = 0; i < all->count && name && safe; i++) {
      char *other = token_name(all->list[i]);
      safe = other && (sqlite3_stricmp(name, other) != 0 || definition_is_safe(all, i, tokens));
      sqlite3_free(other);
    }
    sqlite3_free(name);
  }
  return safe;
}

int generated_column_is_safe(const char *sql, int column,
                             const struct allowed_functions *functions) {
  struct definitions all = {.functions = functions};
  struct tokens tokens;
  int read = tokens_read(&tokens, sql, strlen(sql));
  if (read) definitions_find(&all, &tokens);
  int safe = read && column < all.count && definition_is_safe(&all, column, tokens.list);
  tokens_free(&tokens);
  return safe;
}

/* ---- operators IN ---------------------------------------------------------------------------- */

#define MOST_LEVELS 500 /* of parentheses. A deeper text counts as one with such an operator */

/* Returns 0 only if the text has no operator IN with a row value on its left, such as
** (a, b) IN (SELECT ...). Parentheses may hold a row value if they do not follow the name of a
** function, and have a comma or a SELECT directly inside, or parentheses of this kind. The function
** looks for them before IN and NOT IN. */
static int has_row_value_in(const char *sql) {
  struct {
    unsigned char is_call, is_row;
  } levels[MOST_LEVELS] = {{0, 0}};
  const char *end;
  int depth = 0, after_name = 0, is_row = 0; /* is_row: the last token closed a row value */
  for (const char *at = sql_skip_space(sql); *at; at = sql_skip_space(end)) {
    end = sql_token_end(at);
    int is_word = sql_is_of_word(*at), was_row = is_row;
    int is_keyword = is_word && sqlite3_keyword_check(at, (int)(end - at));
    is_row = 0;
    if (*at == '(') {
      if (++depth == MOST_LEVELS) return 1;
      levels[depth].is_call = (unsigned char)after_name;
      levels[depth].is_row = 0;
    } else if (*at == ')' && depth) {
      is_row = !levels[depth].is_call && (levels[depth].is_row || was_row);
      depth--;
    } else if (*at == ',') {
      levels[depth].is_row = 1;
    } else if (is_keyword) {
      if (sql_is_word(at, end, "SELECT")) levels[depth].is_row = 1;
      if (was_row && sql_is_word(at, end, "IN")) return 1;
      is_row = was_row && sql_is_word(at, end, "NOT");
    }
    after_name = is_word ? !is_keyword : strchr("'\"`[", *at) != 0;
  }
  return 0;
}

/* Returns 0 only if SQLite of any version makes no operator IN of the text: neither IN itself, nor
** OR and EXISTS, which some versions rewrite as IN. */
static int has_in(const char *sql) {
  const char *end;
  for (const char *at = sql_skip_space(sql); *at; at = sql_skip_space(end)) {
    end = sql_token_end(at);
    if (sql_is_word(at, end, "IN") || sql_is_word(at, end, "OR") || sql_is_word(at, end, "EXISTS"))
      return 1;
  }
  return 0;
}

int has_hidden_in(const char *sql) {
  return sqlite3_libversion_number() < IN_TOLD_SINCE ? has_in(sql) : has_row_value_in(sql);
}

int runs_hidden_in(sqlite3 *db) {
  int runs = 0;
  for (sqlite3_stmt *s = sqlite3_next_stmt(db, 0); s && !runs; s = sqlite3_next_stmt(db, s))
    runs = sqlite3_stmt_busy(s) && sqlite3_sql(s) && has_hidden_in(sqlite3_sql(s));
  return runs;
}

/* ---- notices: the words of the text ---------------------------------------------------------- */

/* A notice depends on the text, the schema and the kind, never on a row. */

/* What sees the rows of one unit only, in the order in which a notice names it. */
enum seer { DISTINCT, LIMIT, HAVING, SET, WINDOW, SUBQUERY, SELF_JOIN, SEERS };
static const char *const seers[SEERS] = {"DISTINCT",
                                         "LIMIT",
                                         "HAVING",
                                         "UNION, EXCEPT and INTERSECT",
                                         "a window",
                                         "a subquery",
                                         "a join of a table with itself"};

#define MOST_DEPTH   100
#define MOST_SOURCES 100

/* The clause that the scan is in, inside one pair of parentheses. */
struct clause {
  int in_from;  /* 1: after FROM, where commas separate tables */
  int is_value; /* 1: inside a subquery that is a value or a condition */
  int sources;  /* the sources to keep at its end; -1: all, for a table of the SELECT around it */
};

struct scan {
  const struct notice_terms *terms;
  int found[SEERS];
  struct clause clauses[MOST_DEPTH];
  int depth;
  char *sources[MOST_SOURCES]; /* the tables of one SELECT that are not public */
  int source_count;
  int failed; /* memory ran out */
};

static struct clause *clause_of(struct scan *scan) {
  return &scan->clauses[scan->depth < MOST_DEPTH ? scan->depth : MOST_DEPTH - 1];
}

static void keep_sources(struct scan *scan, int count) {
  while (scan->source_count > count) sqlite3_free(scan->sources[--scan->source_count]);
}

/* Returns whether a table or a subquery that is one can stand here (not so in IS DISTINCT FROM). */
static int is_source(struct scan *scan, const struct token *now) {
  const struct token *last = now - 1;
  int separates = token_is(last, "FROM") || token_is_sign(last, ',') || token_is_sign(last, '(');
  return (separates && clause_of(scan)->in_from) || token_is(last, "JOIN");
}

static int is_private(struct scan *scan, const char *name) {
  scan->failed |= !name;
  return name && !scan->terms->is_public(scan->terms->context, name);
}

static void take_source(struct scan *scan, const struct token *token) {
  char *name = token_name(token);
  if (is_private(scan, name) && clause_of(scan)->is_value) {
    scan->found[SUBQUERY] = 1;
  } else if (is_private(scan, name) && scan->source_count < MOST_SOURCES) {
    for (int i = 0; i < scan->source_count; i++)
      scan->found[SELF_JOIN] |= sqlite3_stricmp(scan->sources[i], name) == 0;
    scan->sources[scan->source_count++] = name;
    return;
  }
  sqlite3_free(name);
}

static void open_parenthesis(struct scan *scan, const struct token *now) {
  int is_select = token_is(now + 1, "SELECT") || token_is(now + 1, "WITH");
  int is_table = is_source(scan, now);
  int is_named = token_is(now - 1, "AS") || token_is(now - 1, "MATERIALIZED");
  int is_value = clause_of(scan)->is_value || (is_select && !is_table && !is_named);
  scan->depth++;
  *clause_of(scan) =
      (struct clause){is_table && !is_select, is_value, is_named ? scan->source_count : -1};
}

static void take_word(struct scan *scan, const struct token *now) {
  struct clause *clause = clause_of(scan);
  static const char *const ends[] = {"WHERE",  "GROUP", "ORDER",  "HAVING",    "LIMIT",
                                     "WINDOW", "UNION", "EXCEPT", "INTERSECT", "SELECT"};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
    if (token_is(now, ends[i])) clause->in_from = 0;
  int is_set = token_is(now, "UNION") || token_is(now, "EXCEPT") || token_is(now, "INTERSECT");
  if (is_set) keep_sources(scan, 0);
  if (token_is(now, "FROM")) clause->in_from = !token_is(now - 1, "DISTINCT");
  scan->found[SET] |= is_set && !token_is(now + 1, "ALL");
  scan->found[DISTINCT] |=
      token_is(now, "DISTINCT") && !token_is(now - 1, "IS") && !token_is(now - 1, "NOT");
  scan->found[LIMIT] |= token_is(now, "LIMIT");
  scan->found[HAVING] |= token_is(now, "HAVING");
  scan->found[WINDOW] |= token_is(now, "OVER") && token_is_sign(now - 1, ')');
}

static void take_token(struct scan *scan, const struct token *now) {
  int is_name = sql_is_of_word(*now->at) || strchr("\"`[", *now->at) != 0;
  int is_select = token_is(now, "SELECT") || token_is(now, "WITH") || token_is(now, "VALUES");
  if (*now->at == '(') {
    open_parenthesis(scan, now);
  } else if (*now->at == ')') {
    if (clause_of(scan)->sources >= 0) keep_sources(scan, clause_of(scan)->sources);
    if (scan->depth) scan->depth--;
  } else if (is_name && is_source(scan, now) && !is_select) {
    int has_schema = token_is_sign(now + 1, '.') && now[2].at; /* main.visit */
    take_source(scan, has_schema ? now + 2 : now);
  } else if (is_name && token_is(now - 1, "IN")) { /* short for a subquery */
    char *name = token_name(now);
    scan->found[SUBQUERY] |= is_private(scan, name);
    sqlite3_free(name);
  } else if (sql_is_of_word(*now->at)) {
    take_word(scan, now);
  } else if (*now->at == ';') {
    keep_sources(scan, 0);
    scan->depth = 0;
    *clause_of(scan) = (struct clause){0, 0, -1};
  }
}

static void scan_text(struct scan *scan) {
  struct tokens tokens;
  scan->failed = !tokens_read(&tokens, scan->terms->texts, strlen(scan->terms->texts));
  for (int i = 0; i < tokens.count; i++) take_token(scan, &tokens.list[i]);
  keep_sources(scan, 0);
  tokens_free(&tokens);
}

/* ---- notices: the sentence ------------------------------------------------------------------- */

static void append_seers(sqlite3_str *text, const struct scan *scan) {
  const struct aggregate *aggregate = scan->terms->aggregate;
  const char *unit = scan->terms->unit;
  int count = 0, named = 0;
  for (int i = 0; i < SEERS; i++) count += scan->found[i];
  if (!count) return;
  for (int i = 0; i < SEERS; i++) {
    if (!scan->found[i]) continue;
    sqlite3_str_appendf(text, "%s%s", !named ? "" : named == count - 1 ? " and " : ", ", seers[i]);
    named++;
  }
  int is_plural = count > 1 || scan->found[SET];
  if (unit)
    sqlite3_str_appendf(text, " %s one %s's rows at a time", is_plural ? "see" : "sees", unit);
  else
    sqlite3_str_appendf(text, " %s one row at a time", is_plural ? "see" : "sees");
  if (!unit) return;
  int counts_units = aggregate->counts && !(aggregate->places.value || aggregate->places.key) &&
                     !(aggregate->takes & 1u << P_CLIP);
  if (counts_units) {
    sqlite3_str_appendall(text, ": this counts ");
    append_plural(text, unit);
    sqlite3_str_appendall(text, " with a result");
  } else {
    sqlite3_str_appendf(text, ": %s the results of each %s",
                        aggregate->counts && aggregate->family->is_linear ? "this counts"
                                                                          : "the answer is made of",
                        unit);
  }
}

/* Says that texts are no numbers if the numbers come from a column of texts or dates. */
static void append_type(sqlite3_str *text, const char *type) {
  enum affinity affinity = type ? affinity_of(type, 0) : AFFINITY_BLOB;
  int is_date = affinity == AFFINITY_NUMERIC && (sqlite3_strlike("%date%", type, 0) == 0 ||
                                                 sqlite3_strlike("%time%", type, 0) == 0);
  if (affinity != AFFINITY_TEXT && !is_date) return;
  sqlite3_str_appendall(text, sqlite3_str_length(text) ? "; " : "");
  sqlite3_str_appendall(text, !is_date
                                  ? "the values come from a column of texts: those that are not "
                                    "wholly a number count as NULL"
                                  : "the values come from a column of dates: those that are "
                                    "written as texts count as NULL (julianday() makes numbers)");
}

char *notice_words(const struct notice_terms *terms) {
  struct scan scan = {.terms = terms, .clauses = {{0, 0, -1}}};
  scan_text(&scan);
  sqlite3_str *text = sqlite3_str_new(0);
  append_seers(text, &scan);
  append_type(text, terms->type);
  if (scan.failed) {
    sqlite3_free(sqlite3_str_finish(text));
    return 0;
  }
  int is_empty = !sqlite3_str_length(text);
  char *words = sqlite3_str_finish(text);
  return is_empty && !words ? sqlite3_mprintf("%s", "") : words;
}
