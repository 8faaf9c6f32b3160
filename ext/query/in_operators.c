/* in_operators.c: see in_operators.h. Tests: tests/query/test_random_comparisons.py */
#include "query/in_operators.h"

#include <string.h>

#include "base/sql_text.h"

SQLITE_EXTENSION_INIT3

#define MOST_LEVELS 500 /* of parentheses. A deeper text counts as one with such an operator */

enum token { TOKEN_END, TOKEN_NAME, TOKEN_WORD, TOKEN_OPEN, TOKEN_CLOSE, TOKEN_COMMA, TOKEN_OTHER };

/*
** Reads the next token. Sets *start and *end to its place. A TOKEN_WORD is a word that SQLite knows
** as a keyword. A TOKEN_NAME is another word, or a text or name in quotes.
*/
static enum token next_token(const char **start, const char **end) {
  static const char quotes[] = "''\"\"``[]";
  const char *at = *start = sql_skip_space(*end);
  if (sql_is_of_word(*at)) {
    while (sql_is_of_word(*at)) at++;
    *end = at;
    return sqlite3_keyword_check(*start, (int)(at - *start)) ? TOKEN_WORD : TOKEN_NAME;
  }
  for (int i = 0; *at && i < 8; i += 2) {
    if (*at != quotes[i]) continue;
    const char *close = strchr(at + 1, quotes[i + 1]);
    *end = close ? close + 1 : at + strlen(at);
    return TOKEN_NAME;
  }
  *end = at + (*at != 0);
  return !*at         ? TOKEN_END
         : *at == '(' ? TOKEN_OPEN
         : *at == ')' ? TOKEN_CLOSE
         : *at == ',' ? TOKEN_COMMA
                      : TOKEN_OTHER;
}

/*
** Returns 0 only if the text has no operator IN with a row value on its left, such as
** (a, b) IN (SELECT ...). Parentheses may hold a row value if they do not follow the name of a
** function, and have a comma or a SELECT directly inside, or parentheses of this kind. The function
** looks for them before IN and NOT IN.
*/
static int has_row_value_in(const char *sql) {
  struct {
    unsigned char is_call, is_row;
  } levels[MOST_LEVELS] = {{0, 0}};
  const char *start, *end = sql;
  int depth = 0, is_row = 0; /* is_row: the last token closed a row value */
  enum token last = TOKEN_END, token;
  while ((token = next_token(&start, &end)) != TOKEN_END) {
    int was_row = is_row;
    is_row = 0;
    if (token == TOKEN_OPEN) {
      if (++depth == MOST_LEVELS) return 1;
      levels[depth].is_call = last == TOKEN_NAME;
      levels[depth].is_row = 0;
    } else if (token == TOKEN_CLOSE && depth) {
      is_row = !levels[depth].is_call && (levels[depth].is_row || was_row);
      depth--;
    } else if (token == TOKEN_COMMA) {
      levels[depth].is_row = 1;
    } else if (token == TOKEN_WORD) {
      if (sql_is_word(start, end, "SELECT")) levels[depth].is_row = 1;
      if (was_row && sql_is_word(start, end, "IN")) return 1;
      is_row = was_row && sql_is_word(start, end, "NOT");
    }
    last = token;
  }
  return 0;
}

/*
** Returns 0 only if SQLite of any version makes no operator IN of the text: neither IN itself, nor
** OR and EXISTS, which some versions rewrite as IN.
*/
static int has_in(const char *sql) {
  const char *start, *end = sql;
  enum token token;
  while ((token = next_token(&start, &end)) != TOKEN_END)
    if (token == TOKEN_WORD && (sql_is_word(start, end, "IN") || sql_is_word(start, end, "OR") ||
                                sql_is_word(start, end, "EXISTS")))
      return 1;
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
