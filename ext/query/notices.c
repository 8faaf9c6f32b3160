/* notices.c: says in words what a question means where this differs from what the same text means
** in a plain SELECT. A notice depends on the text, the schema and the kind, never on a row.
** Tests: tests/query/test_notices.py */
#include <string.h>

#include "base/number.h"
#include "base/sql_text.h"
#include "query/question_text.h"
#include "query/schema.h"
#include "release/kinds.h"

SQLITE_EXTENSION_INIT3

/* What sees the rows of one unit only, in the order in which a notice names it. */
enum seer { DISTINCT, LIMIT, HAVING, SET, WINDOW, SUBQUERY, SELF_JOIN, SEERS };
static const char *const seers[SEERS] = {"DISTINCT",
                                         "LIMIT",
                                         "HAVING",
                                         "UNION, EXCEPT and INTERSECT",
                                         "a window",
                                         "a subquery",
                                         "a join of a table with itself"};

/* ---- the words of the text ------------------------------------------------------------------- */

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
  const char *before, *before_end; /* the token before */
  int failed;                      /* memory ran out */
};

static int follows(const struct scan *scan, const char *word) {
  return sql_is_word(scan->before, scan->before_end, word);
}

static int follows_sign(const struct scan *scan, char sign) {
  return scan->before_end == scan->before + 1 && *scan->before == sign;
}

static struct clause *clause_of(struct scan *scan) {
  return &scan->clauses[scan->depth < MOST_DEPTH ? scan->depth : MOST_DEPTH - 1];
}

static void keep_sources(struct scan *scan, int count) {
  while (scan->source_count > count) sqlite3_free(scan->sources[--scan->source_count]);
}

/* Returns whether a table or a subquery that is one can stand here (not so in IS DISTINCT FROM). */
static int is_source(struct scan *scan) {
  int separates = follows(scan, "FROM") || follows_sign(scan, ',') || follows_sign(scan, '(');
  return (separates && clause_of(scan)->in_from) || follows(scan, "JOIN");
}

static void take_source(struct scan *scan, const char *at, const char *end) {
  char *name = sql_name(at, end);
  if (!name) scan->failed = 1;
  if (!name || scan->terms->is_public(scan->terms->context, name) ||
      scan->source_count == MOST_SOURCES) {
    sqlite3_free(name);
    return;
  }
  if (clause_of(scan)->is_value) {
    scan->found[SUBQUERY] = 1;
    sqlite3_free(name);
    return;
  }
  for (int i = 0; i < scan->source_count; i++)
    if (sqlite3_stricmp(scan->sources[i], name) == 0) scan->found[SELF_JOIN] = 1;
  scan->sources[scan->source_count++] = name;
}

/* A parenthesis opens. `next` is the token inside. */
static void open_parenthesis(struct scan *scan, const char *next) {
  char word[8];
  first_word(next, word);
  int is_select = strcmp(word, "SELECT") == 0 || strcmp(word, "WITH") == 0;
  int is_table = is_source(scan), is_named = follows(scan, "AS") || follows(scan, "MATERIALIZED");
  int is_value = clause_of(scan)->is_value || (is_select && !is_table && !is_named);
  scan->depth++;
  *clause_of(scan) =
      (struct clause){is_table && !is_select, is_value, is_named ? scan->source_count : -1};
}

static void take_word(struct scan *scan, const char *at, const char *end) {
  const char *next = sql_skip_space(end);
  struct clause *clause = clause_of(scan);
  static const char *const ends[] = {"WHERE",  "GROUP", "ORDER",  "HAVING",    "LIMIT",
                                     "WINDOW", "UNION", "EXCEPT", "INTERSECT", "SELECT"};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
    if (sql_is_word(at, end, ends[i])) clause->in_from = 0;
  int is_set = sql_is_word(at, end, "UNION") || sql_is_word(at, end, "EXCEPT") ||
               sql_is_word(at, end, "INTERSECT");
  if (is_set) keep_sources(scan, 0);
  if (is_set && sqlite3_strnicmp(next, "ALL", 3) != 0) scan->found[SET] = 1;
  if (sql_is_word(at, end, "FROM")) clause->in_from = !follows(scan, "DISTINCT");
  if (sql_is_word(at, end, "DISTINCT") && !follows(scan, "IS") && !follows(scan, "NOT"))
    scan->found[DISTINCT] = 1;
  if (sql_is_word(at, end, "LIMIT")) scan->found[LIMIT] = 1;
  if (sql_is_word(at, end, "HAVING")) scan->found[HAVING] = 1;
  if (sql_is_word(at, end, "OVER") && follows_sign(scan, ')')) scan->found[WINDOW] = 1;
}

static int is_select_word(const char *at, const char *end) {
  return sql_is_word(at, end, "SELECT") || sql_is_word(at, end, "WITH") ||
         sql_is_word(at, end, "VALUES");
}

static void take_token(struct scan *scan, const char *at, const char *end) {
  int is_name = sql_is_of_word(*at) || strchr("\"`[", *at) != 0;
  if (*at == '(') {
    open_parenthesis(scan, end);
  } else if (*at == ')') {
    if (clause_of(scan)->sources >= 0) keep_sources(scan, clause_of(scan)->sources);
    if (scan->depth) scan->depth--;
  } else if (is_name && is_source(scan) && !is_select_word(at, end)) {
    const char *dot = sql_skip_space(end);
    if (*dot != '.') {
      take_source(scan, at, end);
    } else { /* main.visit */
      const char *name = sql_skip_space(dot + 1);
      take_source(scan, name, sql_token_end(name));
    }
  } else if (is_name && follows(scan, "IN")) { /* short for a subquery */
    char *name = sql_name(at, end);
    scan->failed |= !name;
    if (name && !scan->terms->is_public(scan->terms->context, name)) scan->found[SUBQUERY] = 1;
    sqlite3_free(name);
  } else if (sql_is_of_word(*at)) {
    take_word(scan, at, end);
  } else if (*at == ';') {
    keep_sources(scan, 0);
    scan->depth = 0;
    *clause_of(scan) = (struct clause){0, 0, -1};
  }
}

static void scan_text(struct scan *scan) {
  const char *end;
  for (const char *at = sql_skip_space(scan->terms->texts); *at; at = sql_skip_space(end)) {
    end = sql_token_end(at);
    take_token(scan, at, end);
    scan->before = at;
    scan->before_end = end;
  }
  keep_sources(scan, 0);
}

/* ---- the sentence ---------------------------------------------------------------------------- */

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
  struct scan scan = {.terms = terms, .clauses = {{0, 0, -1}}, .before = "", .before_end = ""};
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
