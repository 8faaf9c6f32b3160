/*
** sql_text.h: turns SQL values into texts: arguments that must be texts, and keys.
*/
#ifndef DIFFUSE_BASE_SQL_TEXT_H
#define DIFFUSE_BASE_SQL_TEXT_H

#include <sqlite3ext.h>

/*
** The value if it is a text of valid UTF-8 without a zero byte (which would cut it short);
** otherwise null. Checks the type first, because a conversion would change it.
*/
const char *plain_text(sqlite3_value *value);

/*
** The end of an error about a value of the wrong type: ", not NULL", ", not a text", and so on.
** Returns "" if the type is right (SQLITE_TEXT, SQLITE_BLOB, or SQLITE_FLOAT for any number).
** Errors never show a value, because every argument of every function may come from a row
** (SECURITY.md).
*/
const char *not_a(sqlite3_value *value, int wanted);

/*
** Whether a text is the text of a key, so that key_text() would not change it. -1 when out of
** memory.
*/
int key_is_plain(const char *text);

/* The text that stands for a key, cut at 1000 characters (sqlite3_free); null: out of memory. */
char *key_text(sqlite3_value *key);

/* The first word of an SQL text in capitals, after white space and comments. */
void first_word(const char *sql, char word[8]);

/* Whether a name occurs in an SQL text, in upper or lower case. */
int has_word(const char *name, const char *sql);

#endif
