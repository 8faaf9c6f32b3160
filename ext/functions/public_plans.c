/* public_plans.c: see public_plans.h. Tests: tests/functions/test_plan.py */
#include "functions/public_plans.h"

#include <stdlib.h>
#include <string.h>

SQLITE_EXTENSION_INIT3

#ifdef SQLITE_CORE
/* A program may link an older SQLite than that of the headers. tier_guard.c has then refused. */
#pragma weak sqlite3_vtab_in
#pragma weak sqlite3_vtab_rhs_value
#endif

#define MOST_COMPARED 30 /* the comparisons that a table hands on at most */

int public_plan_next(const char **at, int *column, char *sign) {
  char *end;
  if (**at == ':') return 0;
  *column = (int)strtol(*at, &end, 10);
  *sign = *end;
  *at = end + 1;
  return 1;
}

static const char *name_of(const struct table_facts *facts, int column) {
  return column < 0 ? facts->rowid : facts->columns[column].name;
}

sqlite3_uint64 public_plan_columns(const char *plan) {
  return strtoull(strrchr(plan, ':') + 1, 0, 16);
}

char *public_plan_select(const struct table_facts *facts, const char *plan, uint32_t used) {
  static const char *const signs[] = {"<=", ">="};
  const char *order = strchr(plan, ':') + 1, *at = plan;
  int column, number = 0, any = 0;
  char sign;
  sqlite3_str *sql = sqlite3_str_new(0);
  sqlite3_uint64 columns = public_plan_columns(plan);
  sqlite3_str_appendall(sql, "SELECT ");
  for (int i = 0; i < facts->count; i++)
    if (plan_reads(columns, i)) sqlite3_str_appendf(sql, "\"%w\", ", facts->columns[i].name);
  int has_rowid = facts->rowid && !plan_reads_rowid(facts, columns);
  sqlite3_str_appendf(sql, "%s FROM main.\"%w\"", has_rowid ? facts->rowid : "NULL", facts->name);
  for (; public_plan_next(&at, &column, &sign); number++) {
    char single[] = {sign, 0};
    if (!(used >> number & 1)) continue;
    sqlite3_str_appendf(sql, "%s\"%w\" %s ?%d", any++ ? " AND " : " WHERE ", name_of(facts, column),
                        sign == 'l'   ? signs[0]
                        : sign == 'g' ? signs[1]
                                      : single,
                        number + 1);
  }
  for (any = 0; public_plan_next(&order, &column, &sign); any = 1)
    sqlite3_str_appendf(sql, "%s\"%w\"%s", any ? ", " : " ORDER BY ", name_of(facts, column),
                        sign == '-' ? " DESC" : "");
  return sqlite3_str_finish(sql);
}

static int is_numeric(const struct table_facts *facts, int column) {
  return column < 0 || facts->columns[column].affinity >= AFFINITY_NUMERIC;
}

/*
** Returns the sign of a comparison that the table can hand on, or 0 (P1).
**
** On a column with a numeric affinity, the file compares as SQLite does for the virtual table,
** because this affinity always wins. On other columns, SQLite compares in another way if the other
** side is a column with a numeric affinity: the value '012' then equals 12, and is less than any
** text. The file does not know the other side. It therefore gets only comparisons whose rows
** include those of both ways: `=`, `>` and `>=` with a text or blob, which xFilter checks, and `<`
** and `<=` with a literal, which has no numeric affinity if it is a text or blob.
*/
static char comparison(const struct table_facts *facts, sqlite3_index_info *info, int i) {
  const struct sqlite3_index_constraint *constraint = &info->aConstraint[i];
  int column = constraint->iColumn;
  sqlite3_value *literal = 0;
  char sign = 0;
  if (!constraint->usable || (column < 0 && !facts->rowid) ||
      (column >= 0 && sqlite3_stricmp(sqlite3_vtab_collation(info, i),
                                      collation_name(facts->columns[column].collation)) != 0))
    return 0;
  switch (constraint->op) {
  case SQLITE_INDEX_CONSTRAINT_EQ:
    /*
    ** SQLite would compare each value of an IN list in another way than the list. It tells which of
    ** the first 32 constraints are such values, but not those of row values (xFilter).
    */
    return i > 31 || sqlite3_vtab_in(info, i, -1) ? 0 : '=';
  case SQLITE_INDEX_CONSTRAINT_GT: return '>';
  case SQLITE_INDEX_CONSTRAINT_GE: return 'g';
  case SQLITE_INDEX_CONSTRAINT_LT: sign = '<'; break;
  case SQLITE_INDEX_CONSTRAINT_LE: sign = 'l'; break;
  default: return 0;
  }
  if (is_numeric(facts, column)) return sign;
  if (sqlite3_vtab_rhs_value(info, i, &literal) != SQLITE_OK || !literal) return 0;
  int type = sqlite3_value_type(literal);
  return type == SQLITE_TEXT || type == SQLITE_BLOB ? sign : 0;
}

int public_plan_takes(const struct table_facts *facts, int column, sqlite3_value *value) {
  int type = sqlite3_value_type(value);
  return is_numeric(facts, column) || (type != SQLITE_INTEGER && type != SQLITE_FLOAT);
}

/*
** Returns the mask of the primary key of a WITHOUT ROWID table. SQLite reads the key to find the
** rows of an OR, also if colUsed does not contain it.
*/
static sqlite3_uint64 key_columns(const struct table_facts *facts) {
  sqlite3_uint64 columns = 0;
  for (int i = 0; facts->without_rowid && i < facts->key_count; i++)
    columns |= (sqlite3_uint64)1 << (facts->key[i] < 63 ? facts->key[i] : 63);
  return columns;
}

char *public_plan_make(const struct table_facts *facts, sqlite3_index_info *info, int with_order,
                       uint32_t *used) {
  sqlite3_str *plan = sqlite3_str_new(0);
  int count = 0;
  for (int i = 0; i < info->nConstraint && count < MOST_COMPARED; i++) {
    char sign = comparison(facts, info, i);
    if (!sign) continue;
    sqlite3_str_appendf(plan, "%d%c", info->aConstraint[i].iColumn, sign);
    info->aConstraintUsage[i].argvIndex = ++count; /* SQLite compares again */
  }
  *used = ((uint32_t)1 << count) - 1;
  sqlite3_str_appendall(plan, ":");
  for (int i = 0; i < info->nOrderBy && with_order; i++)
    sqlite3_str_appendf(plan, "%d%c", info->aOrderBy[i].iColumn,
                        info->aOrderBy[i].desc ? '-' : '+');
  sqlite3_str_appendf(plan, ":%llx", info->colUsed | key_columns(facts));
  return sqlite3_str_finish(plan);
}
