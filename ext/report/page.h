/* page.h: what the files of this room offer each other. */
#ifndef DIFFUSE_REPORT_PAGE_H
#define DIFFUSE_REPORT_PAGE_H

#include <sqlite3ext.h>

#include "base/error.h"

/*
** Fills a template with the tables of a database (template.c says how a template looks). Returns
** the text, which the caller frees, or null with an error.
*/
char *template_fill(const char *text, sqlite3 *facts, struct error *error);

/*
** Adds SQL functions that find the period in the name of a release (series.c). A period is the
** first year, quarter, month, week or day in a name: 2025, 2025-Q1, 2025-01, 2025-W07 or
** 2025-01-31.
**
**   series_stem(name)     the name with the kind of period in the place of the period
**   series_title(name)    the name without its period
**   series_period(name)   the period, or NULL for a name without a period
**   series_at(name)       a number that grows by 1 from one period to the next (for weeks and
**                         days: by at least 1), or NULL for a name without a period
**   series_question(sql)  the text with 0 in the place of each run of digits
**
** Returns 1, or 0 if memory runs out.
*/
int series_register(sqlite3 *db);

#endif
