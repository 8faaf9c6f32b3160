/*
** sql_text.h: SQL values as texts: arguments that must be texts, and the texts of keys.
*/
#ifndef DIFFUSE_BASE_SQL_TEXT_H
#define DIFFUSE_BASE_SQL_TEXT_H

#include <sqlite3ext.h>

/*
** A text of valid UTF-8 without a zero byte (which would cut it short), or null for anything else.
** The type is asked first: after a conversion it is undefined.
*/
const char *plain_text(sqlite3_value *value);

/*
** What an error says of a value that is not what it must be: ", not NULL", ", not a text", and so
** on; "" where the type is the wanted one (SQLITE_TEXT, SQLITE_BLOB, or SQLITE_FLOAT for any
** number). No error shows a value: every argument of every function may come from a row
** (SECURITY.md).
*/
const char *not_a(sqlite3_value *value, int wanted);

/* Whether a text can be that of a key: then it is its own. -1 without memory. */
int key_is_plain(const char *text);

/* The text that a key is shown as, cut at 1000 characters (sqlite3_free); null: out of memory. */
char *key_text(sqlite3_value *key);

/* The first word of an SQL text, in capitals, behind white space and comments. */
void first_word(const char *sql, char word[8]);

/* Whether a name occurs in an SQL text, in any case. */
int has_word(const char *name, const char *sql);

#endif
