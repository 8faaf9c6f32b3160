/*
** html.h: writes texts and numbers into an HTML page. A name may contain any characters, so every
** text is escaped.
*/
#ifndef DIFFUSE_REPORT_HTML_H
#define DIFFUSE_REPORT_HTML_H

#include <sqlite3ext.h>

/* Appends a text with all special characters of HTML escaped. Appends nothing for null. */
void html_text(sqlite3_str *html, const char *text);

/*
** Appends a number in decimal, with `digits` significant digits at most: "0.05", "12". The text
** does not depend on the version of SQLite.
*/
void html_number(sqlite3_str *html, double x, int digits);

/* Appends a text as a JSON string that cannot end the HTML element around it. */
void json_in_html(sqlite3_str *json, const char *text);

#endif
