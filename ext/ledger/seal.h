/*
** seal.h: seals, the hash chain for everything that the chain of charges does not cover. The hash
** is SHA-256 without a key: a program that changes the file can compute new seals, too.
** dp_certificate() gives the last hashes, for people who keep them elsewhere and compare.
*/
#ifndef DIFFUSE_LEDGER_SEAL_H
#define DIFFUSE_LEDGER_SEAL_H

#include "base/hash.h"
#include "ledger/handle.h"

/*
** A row of dp_seal. `charge` is the hash of the charge with the id charge_id, which the hash of the
** seal covers. The struct does not own the texts.
*/
struct seal {
  int64_t id, release_id;
  const char *digest, *books;
  int64_t charge_id;
  const char *charge, *at;
};

/* Computes the hash of a seal after the seal whose hash is `previous`; both may be the same. */
void seal_hash(const char *previous, const struct seal *seal, char hash[HASH_SIZE]);

/* Computes the digest of all rows of a subject (statements.h). */
int seal_digest(struct ledger *ledger, int64_t subject, char hash[HASH_SIZE]);

/*
** These functions compare the rows of a subject, or the budgets, with their last seal. They return
** 0 if the rows differ, or on failure.
*/
int seal_matches(struct ledger *ledger, int64_t subject);
int seal_matches_books(struct ledger *ledger);

int seal_touched(struct ledger *ledger); /* appends the seals; called before the commit */

/*
** Fails if dp_ledger, dp_tier, dp_policy, dp_grant, dp_page, dp_budget or dp_reserve differs from
** its last seal.
*/
int seal_trust_books(struct ledger *ledger);

#endif
