/*
** policy.h: the declarations of dp_protect() and dp_public() as the ledger keeps them: which tables
** hold protected rows, and which unit owns each row. query/policy_tables.h compares them with the
** tables of the database.
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
};

struct ledger_policy {
  struct ledger_declaration *list; /* in the order in which they were made */
  int count;
};

/* Returns whether the open ledger has no policy, so that the owner alone vouches for queries. */
int ledger_is_unchecked(const struct ledger *ledger);

/*
** Whether sums are made unit by unit: because the ledger protects units, or because a question can
** give several rows for one protected row. Call it inside a transaction.
*/
int ledger_by_unit(struct ledger *ledger);

/*
** Reads the declarations. Fails if they differ from their last seal. Call it inside a transaction,
** and ledger_policy_free() also after a failure.
*/
int ledger_policy_read(struct ledger *ledger, struct ledger_policy *policy);
void ledger_policy_free(struct ledger_policy *policy);

/* Whether a policy protects a table. If it does not, sets the error that says how to do so. */
int ledger_policy_need(struct ledger *ledger, const struct ledger_policy *policy);

/* The declaration of a table, or null. Names are compared as SQLite compares them. */
const struct ledger_declaration *ledger_policy_find(const struct ledger_policy *policy,
                                                    const char *table);

/*
** Adds a declaration, or turns a public table into a protected one. Does nothing if the same
** declaration exists; refuses any other change. Call it inside a transaction.
*/
int ledger_policy_declare(struct ledger *ledger, const struct ledger_declaration *declaration);

/*
** Decides whether rows may be read for a release that was charged in this transaction. `tables`
** lists the tables that the rows come from, as JSON ({"visit":"protected"}); the function notes it
** on the release. Null means that the tables are unknown, which only an unchecked ledger admits.
*/
int ledger_policy_admit(struct ledger *ledger, int64_t release_id, const char *tables);

#endif
