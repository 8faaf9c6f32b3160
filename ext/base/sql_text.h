/*
** sql_text.h: reads SQL values that must be texts, converts keys of groups to texts, and reads
** texts of queries.
*/
#ifndef DIFFUSE_BASE_SQL_TEXT_H
#define DIFFUSE_BASE_SQL_TEXT_H

#include <sqlite3ext.h>
#include <stdint.h>

/*
** Returns the text of a value if the value is an SQL text in valid UTF-8 without a zero byte, at
** which a C string would end. Returns null for any other value. The function never converts a value
** to text.
*/
const char *plain_text(sqlite3_value *value);

/*
** Returns whether a value is a whole number, and sets *number to it. 3.0 and '3' are ones, because
** some hosts bind all numbers as REAL or all values as texts.
*/
int whole_number(sqlite3_value *value, int64_t *number);

/*
** Sets *x to the number of a value and returns 1. A text is a number if it wholly is one, so 'NA',
** a date and '12 kg' are none. Returns 0 for such a text, a blob and NULL, and -1 if memory runs
** out.
** SQLite 3.54 follows a null pointer when sqlite3_value_double() is asked for a copied value whose
** text is in UTF-16 or does not end with a zero, so texts of rows take this way.
*/
int value_number(sqlite3_value *value, double *x);

/*
** Returns the last words of an error about a value of the wrong type: ", not NULL", ", not a text",
** and so on. Returns "" if the value has the wanted type. `wanted` is SQLITE_TEXT, SQLITE_BLOB, or
** SQLITE_FLOAT for any number. Errors never show a value, because every argument of every function
** may come from a row (SECURITY.md).
*/
const char *not_a(sqlite3_value *value, int wanted);

/*
** Returns whether key_text() would leave a text unchanged, so that the text can be the text of a
** key. Returns -1 if memory runs out.
*/
int key_is_plain(const char *text);

/*
** Returns the text of a key of a group, cut after 1000 characters. A text with a zero byte or bytes
** that are not UTF-8 has the form of a blob, so that different texts are different keys. The caller
** calls sqlite3_free(). Returns null if memory runs out.
*/
char *key_text(sqlite3_value *key);

/* Returns whether a byte can be part of a word. Bytes above 127 are parts of names. */
int sql_is_of_word(char c);

/* Returns the place after white space and comments. */
const char *sql_skip_space(const char *sql);

/*
** Sets `word` to the first seven letters of the first word of an SQL text, in capitals. White space
** and comments before the word are skipped.
*/
void first_word(const char *sql, char word[8]);

/*
** Returns a copy of a query's text without white space and semicolons at the end. The ledger and
** the states of shards store queries in this form. The caller calls sqlite3_free(). Returns null if
** memory runs out.
*/
char *query_trimmed(const char *sql);

/*
** Returns the end of the token at the start of a statement's text: a comment, a text, blob or name
** in quotes, a word, a number, a parameter, an operator, or one character of any other kind. The
** text must not be empty.
*/
const char *sql_token_end(const char *sql);

/* Returns whether the token is a parameter of a statement. */
int sql_is_parameter(const char *sql);

/* Returns whether the text from `at` to `end` is a word. The comparison ignores case. */
int sql_is_word(const char *at, const char *end, const char *word);

/*
** Finds the next name that follows FROM or JOIN in a statement's text. Sets *name to it, without
** quotes and "main." before it, and moves *sql behind it. The caller calls sqlite3_free(*name),
** which is null if memory runs out. Returns 0 if there is no such name.
*/
int sql_next_source(const char **sql, char **name);

/* Returns whether a name occurs in an SQL text. The comparison ignores case. */
int has_word(const char *name, const char *sql);

/*
** Returns whether the text of a running statement of a connection has this word in single or double
** quotes. Bound values and values of rows are no part of the text. `db` may be null.
*/
int sql_is_typed(sqlite3 *db, const char *word);

#endif
