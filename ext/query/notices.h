/*
** notices.h: says in words what a question means where this differs from what the same text means
** in a plain SELECT. A notice depends on the text, the schema and the kind, never on a row.
*/
#ifndef DIFFUSE_QUERY_NOTICES_H
#define DIFFUSE_QUERY_NOTICES_H

#include "release/kinds.h"

/* What a notice depends on. */
struct notice_terms {
  const char *texts; /* of the question and its views, with semicolons between them */
  const char *unit;  /* the ledger's word for a unit; null: each row is a unit */
  const struct aggregate *aggregate;
  const char *type; /* the declared type of the column with the numbers; null: none, or no number */
  /* Returns whether a table is public. Common table expressions, views and others are not. */
  int (*is_public)(const void *context, const char *name);
  const void *context;
};

/*
** Returns the notice: "DISTINCT and a subquery see one plane's rows at a time: this counts each
** plane's results", for example. The text is empty if the question means what it seems to. The
** caller calls sqlite3_free(). Returns null if memory runs out.
*/
char *notice_words(const struct notice_terms *terms);

#endif
