/* template.c: template_fill(), which writes the rows of a database into a text.
**
**   {{name}}                 the column `name` of the innermost row that has it, escaped for HTML
**   {{&name}}                the same as it is
**   {{#name}} ... {{/name}}  if a row has this column: the text between, unless the column is NULL,
**                            0 or ''. Otherwise: the text once for each row of the table `name`
**   {{#name a b}} ...        once for each row of the table whose columns a and b have the values
**                            that the rows around it have
**   {{^name}} ... {{/name}}  the text between where {{#name}} would write nothing
**
** The rows of a table come in the order in which they were inserted. Anything else that a template
** names is an error.
** Tests: tests/report/test_template.py */
#include <string.h>

#include "report/report.h"

SQLITE_EXTENSION_INIT3

/* A row of a section, and the row of the section around it (null: none). */
struct row {
  sqlite3_stmt *statement;
  const struct row *outer;
};

struct filling {
  sqlite3 *facts;
  sqlite3_str *text;
  struct error *error;
};

/* ---- the text -------------------------------------------------------------------------------- */

struct word {
  const char *start;
  int size;
};

/* {{#name a b}}: a sign, or 0, and words; `before` and `after` are the text around it. */
struct tag {
  const char *before, *after;
  char sign;
  struct word name, rest;
};

static struct word word_next(const char *at, const char *end) {
  while (at < end && *at == ' ') at++;
  const char *start = at;
  while (at < end && *at != ' ') at++;
  return (struct word){start, (int)(at - start)};
}

static int is_same(struct word a, struct word b) {
  return a.size == b.size && memcmp(a.start, b.start, (size_t)a.size) == 0;
}

/* Finds the first tag in [at, end). Returns 0 if there is none. */
static int tag_find(const char *at, const char *end, struct tag *tag) {
  tag->before = strstr(at, "{{");
  const char *close = tag->before ? strstr(tag->before, "}}") : 0;
  if (!close || close >= end) return 0;
  const char *inside = tag->before + 2;
  tag->sign = strchr("#^/&", *inside) ? *inside : 0;
  tag->name = word_next(inside + (tag->sign != 0), close);
  tag->rest.start = tag->name.start + tag->name.size;
  tag->rest.size = (int)(close - tag->rest.start);
  tag->after = close + 2;
  return 1;
}

/* Finds the tag that closes a section. Returns 0 if there is none. */
static int tag_close(const struct tag *open, const char *end, struct tag *close) {
  const char *at = open->after;
  for (int depth = 1; depth && tag_find(at, end, close); at = close->after) {
    if (is_same(open->name, close->name))
      depth += close->sign == '/' ? -1 : close->sign == '#' || close->sign == '^';
    if (!depth) return 1;
  }
  return 0;
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* Finds the column of the innermost row that has it, or -1. */
static int field_find(const struct row **row, struct word name) {
  for (; *row; *row = (*row)->outer)
    for (int i = 0; i < sqlite3_column_count((*row)->statement); i++) {
      const char *column = sqlite3_column_name((*row)->statement, i);
      if (column && strlen(column) == (size_t)name.size &&
          memcmp(column, name.start, (size_t)name.size) == 0)
        return i;
    }
  return -1;
}

static int fail_name(struct filling *filling, struct word name) {
  return error_set(filling->error, "the page has no '%.*s'", name.size, name.start);
}

static int field_is_true(const struct row *row, int column) {
  int type = sqlite3_column_type(row->statement, column);
  return type == SQLITE_TEXT ? sqlite3_column_bytes(row->statement, column) > 0
                             : sqlite3_column_double(row->statement, column) != 0;
}

static void append_escaped(sqlite3_str *html, const char *text) {
  for (; *text; text++) {
    switch (*text) {
    case '&': sqlite3_str_appendall(html, "&amp;"); break;
    case '<': sqlite3_str_appendall(html, "&lt;"); break;
    case '>': sqlite3_str_appendall(html, "&gt;"); break;
    case '"': sqlite3_str_appendall(html, "&quot;"); break;
    case '\'': sqlite3_str_appendall(html, "&#39;"); break;
    default: sqlite3_str_appendchar(html, 1, *text);
    }
  }
}

static int write_field(struct filling *filling, const struct tag *tag, const struct row *row) {
  int column = field_find(&row, tag->name);
  if (column < 0) return fail_name(filling, tag->name);
  const char *text = (const char *)sqlite3_column_text(row->statement, column);
  if (!text && sqlite3_column_type(row->statement, column) != SQLITE_NULL)
    return error_set_memory(filling->error);
  if (text && tag->sign == '&') sqlite3_str_appendall(filling->text, text);
  if (text && tag->sign != '&') append_escaped(filling->text, text);
  return 1;
}

/* ---- sections -------------------------------------------------------------------------------- */

/* Prepares the SELECT of a section, with the values of the rows around it. */
static sqlite3_stmt *section_rows(struct filling *filling, const struct tag *tag,
                                  const struct row *row) {
  sqlite3_str *sql = sqlite3_str_new(0);
  const char *end = tag->rest.start + tag->rest.size;
  struct word key = word_next(tag->rest.start, end);
  sqlite3_str_appendf(sql, "SELECT * FROM \"%.*w\" AS named WHERE 1", tag->name.size,
                      tag->name.start);
  for (; key.size; key = word_next(key.start + key.size, end))
    sqlite3_str_appendf(sql, " AND named.\"%.*w\" IS ?", key.size, key.start);
  sqlite3_str_appendall(sql, " ORDER BY rowid");
  char *text = sqlite3_str_finish(sql);
  sqlite3_stmt *rows = text ? facts_prepare(filling->facts, text, filling->error) : 0;
  if (!text) error_set_memory(filling->error);
  sqlite3_free(text);
  key = word_next(tag->rest.start, end);
  for (int i = 1; rows && key.size; key = word_next(key.start + key.size, end)) {
    const struct row *around = row;
    int column = field_find(&around, key);
    if (column < 0) {
      fail_name(filling, key);
      continue;
    }
    sqlite3_value *value = sqlite3_value_dup(sqlite3_column_value(around->statement, column));
    if (!value || sqlite3_bind_value(rows, i++, value) != SQLITE_OK)
      error_set_memory(filling->error);
    sqlite3_value_free(value);
  }
  return rows;
}

static int fill(struct filling *filling, const char *at, const char *end, const struct row *row);

static int write_section(struct filling *filling, const struct tag *open, const char *end,
                         const struct row *row) {
  const struct row *around = row;
  int column = word_next(open->rest.start, open->rest.start + open->rest.size).size
                   ? -1
                   : field_find(&around, open->name);
  if (column >= 0)
    return field_is_true(around, column) == (open->sign == '#')
               ? fill(filling, open->after, end, row)
               : 1;
  struct row inner = {section_rows(filling, open, row), row};
  int count = 0;
  for (; facts_row(inner.statement, filling->error); count++)
    if (open->sign == '#') fill(filling, open->after, end, &inner);
  sqlite3_finalize(inner.statement);
  if (open->sign == '^' && !count) fill(filling, open->after, end, row);
  return !error_is_set(filling->error);
}

/* Writes the text [at, end) with its tags filled. Returns 0 after an error. */
static int fill(struct filling *filling, const char *at, const char *end, const struct row *row) {
  struct tag tag, close;
  while (tag_find(at, end, &tag)) {
    sqlite3_str_append(filling->text, at, (int)(tag.before - at));
    int is_section = tag.sign == '#' || tag.sign == '^';
    if (tag.sign == '/' || (is_section && !tag_close(&tag, end, &close)))
      return fail_name(filling, tag.name);
    if (!(is_section ? write_section(filling, &tag, close.before, row)
                     : write_field(filling, &tag, row)))
      return 0;
    at = is_section ? close.after : tag.after;
  }
  sqlite3_str_append(filling->text, at, (int)(end - at));
  return !error_is_set(filling->error);
}

char *template_fill(const char *text, sqlite3 *facts, struct error *error) {
  struct filling filling = {facts, sqlite3_str_new(0), error};
  fill(&filling, text, text + strlen(text), 0);
  char *filled = sqlite3_str_finish(filling.text);
  if (!filled) error_set_memory(error);
  if (!error_is_set(error)) return filled;
  sqlite3_free(filled);
  return 0;
}
