/* html.h: texts and numbers in an HTML page. Names come from anybody, so every text is escaped. */
#ifndef DIFFUSE_REPORT_HTML_H
#define DIFFUSE_REPORT_HTML_H

#include <sqlite3ext.h>

/* Appends a text in which no character has a meaning in HTML. A null text is empty. */
void html_text(sqlite3_str *html, const char *text);

/*
** Appends a number in decimal, with `digits` significant digits at most: "0.05", "12". The text
** does not depend on the version of SQLite.
*/
void html_number(sqlite3_str *html, double x, int digits);

/* Appends a number of a data block: the shortest decimal that is read as the same double. */
void json_exact(sqlite3_str *json, double x);

/* Appends a text as a JSON string inside an HTML element: it cannot end the element. */
void json_in_html(sqlite3_str *json, const char *text);

#endif
