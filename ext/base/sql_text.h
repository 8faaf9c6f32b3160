/* sql_text.h: reads SQL values and texts: values that must be texts, numbers or vectors, keys of
** groups, texts of queries, and names that may be misspelt. */
#ifndef DIFFUSE_BASE_SQL_TEXT_H
#define DIFFUSE_BASE_SQL_TEXT_H

#include <sqlite3ext.h>
#include <stdint.h>

#include "base/error.h"

/* ---- values ---------------------------------------------------------------------------------- */

/* Returns the text of a value if the value is an SQL text in valid UTF-8 without a zero byte, at
** which a C string would end. Returns null for any other value, and never converts one to text. */
const char *plain_text(sqlite3_value *value);

/* Returns whether a value is a whole number, and sets *number to it. 3.0 and '3' are ones, too:
** some hosts bind all numbers as REAL or all values as texts. */
int whole_number(sqlite3_value *value, int64_t *number);

/* Sets *x to the number of a value and returns 1. A text is a number if it wholly is one, so 'NA',
** a date and '12 kg' are none. Returns 0 for such a text, a blob and NULL, and -1 if memory runs
** out.
** SQLite 3.54 follows a null pointer when sqlite3_value_double() is asked for a copied value whose
** text is in UTF-16 or does not end with a zero, so texts of rows take this way. */
int value_number(sqlite3_value *value, double *x);

/* Returns the last words of an error about a value of the wrong type: ", not NULL", ", not a text",
** and so on, or "" for the type `wanted`: SQLITE_TEXT, SQLITE_BLOB, or SQLITE_FLOAT for any number.
** Errors never show a value, because every argument of every function may come from a row
** (SECURITY.md). */
const char *not_a(sqlite3_value *value, int wanted);

/* ---- keys of groups -------------------------------------------------------------------------- */

/* Returns whether key_text() would leave a text unchanged. Returns -1 if memory runs out. */
int key_is_plain(const char *text);

/* Returns the text of a key of a group, cut after 1000 characters. A text with a zero byte or bytes
** that are not UTF-8 has the form of a blob, so that different texts are different keys. The caller
** calls sqlite3_free(). Returns null if memory runs out. */
char *key_text(sqlite3_value *key);

/* ---- texts of queries ------------------------------------------------------------------------ */

/* Returns whether a byte can be part of a word. Bytes above 127 are parts of names. */
int sql_is_of_word(char c);

const char *sql_skip_space(const char *sql);

/* Sets `word` to the first seven letters, in capitals, of an SQL text, after white space and
** comments. */
void first_word(const char *sql, char word[8]);

/* Returns a copy of a query's text without white space and semicolons at the end, as ledgers and
** states of shards store it, for sqlite3_free(). Null: no memory. */
char *query_trimmed(const char *sql);

/* Returns the end of the token at the start of a statement's text: a comment, a text, blob or name
** in quotes, a word, a number, a parameter, an operator, or one character of any other kind. The
** text must not be empty. */
const char *sql_token_end(const char *sql);

/* Returns whether the token is a parameter of a statement. */
int sql_is_parameter(const char *sql);

/* Returns whether the text from `at` to `end` is a word. The comparison ignores case. */
int sql_is_word(const char *at, const char *end, const char *word);

/* Returns a copy of the name, in quotes or without, that is the text from `at` to `end`, without
** its quotes. The caller calls sqlite3_free(). Returns null if memory runs out. */
char *sql_name(const char *at, const char *end);

/* Finds the next name that follows FROM or JOIN in a statement's text. Sets *name to it, without
** quotes and "main." before it, and moves *sql behind it. The caller calls sqlite3_free(*name),
** which is null if memory runs out. Returns 0 if there is no such name. */
int sql_next_source(const char **sql, char **name);

/* Returns whether a name occurs in an SQL text. The comparison ignores case. */
int has_word(const char *name, const char *sql);

/* ---- names that are not known ---------------------------------------------------------------- */

/* Errors about such a name list the known names, and ask whether the nearest one was meant. */
#define KNOWN_NAME_MOST 60 /* bytes; the error suggests no longer name */

struct known_names {
  const char *asked; /* the unknown name, or null if the argument was no text */
  /* The unknown name stands where only a program writes, such as the name of an option. The error
  ** shows it if it has the form of a name. Every other unknown name may be the value of a row, and
  ** an error shows it only if it was typed: if the statement's text has it in quotes
  ** (SECURITY.md). */
  int shows;
  int distance; /* from `asked` to `nearest` */
  char nearest[KNOWN_NAME_MOST + 1];
  sqlite3_str *list;
};

/* Returns the unknown name if an error may show it, or null. */
const char *known_names_asked(const struct known_names *known, const struct error *error);

/* Offers a name that is known. known_names_fail() or known_names_nearest() must follow. */
void known_names_add(struct known_names *known, const char *name);

/* Frees the list. Returns the nearest name, which belongs to `known`, or null if none is near. */
const char *known_names_nearest(struct known_names *known);

/* Sets the error and frees the list. `format` has up to three %s: the unknown name as " 'clpi'" or
** nothing, the question "did you mean 'clip'? " or nothing, and the list of all known names.
** Returns 0. */
int known_names_fail(struct known_names *known, struct error *error, const char *format);

/* Reports an unknown member of an object of options. `options` ends with null. Returns 0. */
int unknown_option(const char *key, const char *const *options, struct error *error);

/* ---- vectors --------------------------------------------------------------------------------- */

/* Reads exactly `count` finite numbers in a format of sqlite-vec: a JSON array, or a blob of
** little-endian floats of 4 * count (binary32) or 8 * count bytes (binary64). Returns 1 if the
** vector was well formed, and otherwise sets all numbers to zero and returns 0. There is no error,
** because it would show something about the data. */
int vector_text_read(sqlite3_value *value, double *numbers, int count);

/* Returns the bytes of a blob of `count` binary32 numbers, unchecked. Null: any other value. */
const unsigned char *vector_text_floats(sqlite3_value *value, int count);

/* Reads a text that is one number or a JSON array of at most `room` numbers. Returns the count of
** numbers, or 0 for any other text. */
int vector_text_list(const char *text, double *numbers, int room);

#endif
