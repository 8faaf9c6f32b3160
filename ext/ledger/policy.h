/*
** policy.h: whose rows are whose: what dp_protect() and dp_public() have declared, as the ledger
** keeps it. What the tables look like is the business of query/policy_tables.h.
*/
#ifndef DIFFUSE_LEDGER_POLICY_H
#define DIFFUSE_LEDGER_POLICY_H

#include "ledger/ledger.h"

enum policy_role { POLICY_PROTECTED, POLICY_PUBLIC };

/* A declaration. Texts are owned by whoever got the struct. */
struct ledger_declaration {
  char *table;
  enum policy_role role;
  char *unit_column; /* names the unit, or refers to the parent; null: each row is a unit */
  char *parent;      /* null: unit_column names the unit itself */
};

struct ledger_policy {
  struct ledger_declaration *list; /* in the order in which they were made */
  int count;
};

/* Whether the open ledger was made without a policy: the owner alone vouches for queries. */
int ledger_is_unchecked(const struct ledger *ledger);

/*
** Whether rows are added up by unit: units are protected, or a question can give several rows for a
** row that is protected. Inside a transaction.
*/
int ledger_by_unit(struct ledger *ledger);

/*
** The declarations, inside a transaction. Fails where they are not what the last seal says.
** ledger_policy_free() also after failure.
*/
int ledger_policy_read(struct ledger *ledger, struct ledger_policy *policy);
void ledger_policy_free(struct ledger_policy *policy);

/* The declaration of a table, or null. Names are compared as SQLite compares them. */
const struct ledger_declaration *ledger_policy_find(const struct ledger_policy *policy,
                                                    const char *table);

/*
** Adds a declaration, or makes that of a public table stricter. The same again is a no-op; anything
** else is refused. Inside a transaction.
*/
int ledger_policy_declare(struct ledger *ledger, const struct ledger_declaration *declaration);

/*
** Whether rows may be read for a release that was charged in this transaction: where there is a
** policy, only those of which it is known what they come from. `tables` says so as JSON
** ({"visit":"protected"}), and is noted on the release; null: nobody has shown it.
*/
int ledger_policy_admit(struct ledger *ledger, int64_t release_id, const char *tables);

#endif
