/*
** policy.h: the declarations of dp_protect() and dp_public() that the ledger stores. They say which
** tables hold protected rows, and which unit each row belongs to. query/schema.h compares
** the declarations with the tables of the database.
*/
#ifndef DIFFUSE_LEDGER_POLICY_H
#define DIFFUSE_LEDGER_POLICY_H

#include "ledger/ledger.h"

enum policy_role { POLICY_PROTECTED, POLICY_PUBLIC };

/* A declaration. Its texts belong to the caller that received the struct. */
struct ledger_declaration {
  char *table;
  enum policy_role role;
  char *unit_column; /* holds the unit id, or refers to the parent; null: each row is a unit */
  char *parent;      /* null: unit_column holds the unit id */
  /* a public table: its columns and the name of its mark (query/schema.h) */
  char *definition, *mark;
};

/*
** The wider unit, which the table of the units declares (dp_within). `name` is null if there is
** none.
*/
struct ledger_wider {
  char *name, *table, *column;
  double factor; /* it counts no more than this many units */
  char *since;   /* when it was declared */
};

struct ledger_policy {
  struct ledger_declaration *list; /* in the order in which they were declared */
  int count;
  struct ledger_wider wider;
  /*
  ** 1: questions may name views. The members of a tier may not: nobody has declared what the text
  ** of a view tells.
  */
  int admits_views;
};

/*
** Reads the declarations. Fails if they differ from their last seal. Call this function inside a
** transaction. Call ledger_policy_free() afterwards, even after a failure.
*/
int ledger_policy_read(struct ledger *ledger, struct ledger_policy *policy);
void ledger_policy_free(struct ledger_policy *policy);

/*
** Returns whether a policy protects at least one table. Otherwise sets an error that says how to
** protect a table.
*/
int ledger_policy_need(struct ledger *ledger, const struct ledger_policy *policy);

/*
** Returns the declaration of a table, or null if the table is not declared. Names are compared
** without regard to case, as in SQLite.
*/
const struct ledger_declaration *ledger_policy_find(const struct ledger_policy *policy,
                                                    const char *table);

/*
** Adds a declaration, or turns a public table into a protected table. If the column or the parent
** of a protected table is gone from the schema, replaces it by the new one. Declares a public table
** anew if it has another definition or mark. Does nothing if the same declaration exists, and
** refuses any other change. Also refuses to make a table public that may be a protected table under
** a new name. Call this function inside a transaction.
*/
int ledger_policy_declare(struct ledger *ledger, const struct ledger_declaration *declaration);

/*
** Declares the wider unit of the ledger. Does nothing if the same declaration exists. Replaces the
** table or the column if it is gone from the schema. Refuses any other change, and a declaration
** after the first charge. Call this function inside a transaction.
*/
int ledger_policy_widen(struct ledger *ledger, const struct ledger_wider *wider);

/*
** Removes the wider unit of this name, or the declaration of a table. Fails if the ledger has a
** charge, or if the table declares the wider unit or is the parent of another one. Call this
** function inside a transaction.
*/
int ledger_policy_undeclare(struct ledger *ledger, const char *name);

/*
** Decides whether rows may be read for a release that was charged in this transaction. If the
** ledger has no policy, allows everything and stores nothing. Otherwise `tables` must be a JSON
** object that lists the tables of the rows, such as {"visit":"protected"}, and the function stores
** `tables` in the row of the release. If `tables` is null, the tables are unknown, and the function
** refuses.
*/
int ledger_policy_admit(struct ledger *ledger, int64_t release_id, const char *tables);

#endif
