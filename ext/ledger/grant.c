/*
** grant.c: reads and writes grants (dp_grant).
**
** A grant at tier T reserves amounts at T, at every tier inside T, and at outer tiers if its
** answers are published there. An amount has three limits: on the accountant's `total`
** (accountant.h), on the delta for private keys, and on the lattice slack. Each charge is paid by
** the owner or by one grant (dp_charge.grant_name).
**
** Why every filter stays valid. For one tier, let S be the total of all charges, let G(g) be the
** total of the charges that grant g paid, and let R(g) be the amount that grant g has reserved. The
** code keeps two conditions true:
**
**     (1)  G(g) <= R(g)  for each grant g,
**     (2)  S + sum over g of (R(g) - G(g)) <= limit.
**
** By (1) the sum in (2) is not negative, so S <= limit. This is the same condition as for a tier
** without grants. Under this condition, the accountant's theorem holds for adaptively chosen
** charges, whoever chooses them. (1) and (2) hold after every step:
**   - a new grant: G(g) = 0, and check_fits() refuses a grant whose R(g) would break (2).
**   - a charge c of the owner is admitted only if S + c still satisfies (2): reserves_room() lowers
**     the limit by the sum in (2), rounded up.
**   - a charge c of grant g is admitted if and only if G(g) + c <= R(g), at every tier that pays. S
**     grows by c and G(g) grows by at least c, so (2) stays valid. If S is a sum of doubles, a
**     rounding error can make it grow by more than c. paid_by_grant() therefore lets G(g) grow by
**     more than c plus this error. Sums of rates are exact (math/cost.h).
**   - a period of the tier ends: S becomes 0, and G(g) does not change. A grant gets no new amounts
**     in a new period.
** The same holds for the sums of deltas and of slack. A tier whose accountant needs only one of two
** limits ('rdp') keeps the limit on `total` while a grant holds an amount there, because R(g) is an
** amount of this limit only. reserves_room() and reserve_read() therefore clear pure_limit.
**
** Why amounts and refusals show nothing about inner tiers. Whether a charge of a grant is admitted
** depends only on R(g) and G(g). At the grant's own tier T, R(g) is a share of what is left there.
** reserves_left() computes this remainder from the limit, from S, and from the amounts of the
** grants whose own tier is T or outside T. Members of T see all these numbers in dp_budget and
** dp_reserve. The same holds at the outer tiers where the answers are published. A grant whose own
** tier is inside T may also hold an amount at T ("diffuse"). Members of T do not see such a grant,
** so reserves_left() leaves its amount out. At the tiers inside T, R(g) follows from the amount at
** T and from the terms of the tiers, and not from what these tiers have spent. If a grant does not
** fit beside all charges and grants, dp_grant() refuses it. Only the owner sees this refusal, and
** refusals of the owner's own charges.
**
** Names. The releases that a grant pays for are called '<grant>/<name>'. No other release may have
** such a name, so a question that a grant pays for never finds a release of somebody else.
** Tests: tests/ledger/test_grants.py
*/
#include <math.h>
#include <string.h>

#include "ledger/accountant.h"
#include "ledger/budget.h"
#include "ledger/seal.h"
#include "ledger/statements.h"

SQLITE_EXTENSION_INIT3

static const struct statement select_grant = {
    .sql = "SELECT name, tier, share, questions, diffuse, pad_ms, seconds, steps, bytes"
           " FROM dp_grant WHERE name = ?"};
static const struct statement insert_grant = {
    .sql = "INSERT INTO dp_grant VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, " STATEMENT_NOW ")",
    .changes = CHANGES_TERMS};
static const struct statement find_name_of_grant = {
    .sql = "SELECT 1 FROM dp_release WHERE substr(name, 1, length(?1) + 1) = ?1 || '/'"
           " LIMIT 1"};
/* Finds grants, reserved amounts and charges that contradict each other. */
static const struct statement find_unfit_grant = {
    .sql =
        "SELECT *, 'does not fit the grants' FROM"
        " (SELECT 'dp_charge', release FROM dp_charge c WHERE grant_name IS NOT NULL AND"
        " (substr(release, 1, length(grant_name) + 1) <> grant_name || '/' OR NOT EXISTS"
        " (SELECT 1 FROM dp_reserve r WHERE r.grant_name = c.grant_name AND r.tier = c.tier))"
        " UNION ALL SELECT 'dp_reserve', grant_name FROM dp_reserve WHERE grant_name NOT IN"
        " (SELECT name FROM dp_grant) OR tier NOT IN"
        " (SELECT name FROM dp_tier)"
        " UNION ALL SELECT 'dp_grant', name FROM dp_grant g WHERE NOT EXISTS"
        " (SELECT 1 FROM dp_reserve r WHERE r.grant_name = g.name AND r.tier = g.tier)) LIMIT 1"};

/* ---- grants ---------------------------------------------------------------------------------- */

void ledger_grant_clear(struct ledger_grant *grant) {
  sqlite3_free(grant->name);
  sqlite3_free(grant->tier);
  sqlite3_free(grant->diffuse);
  memset(grant, 0, sizeof *grant);
}

static int grant_read(struct ledger *ledger, const char *name, struct ledger_grant *grant) {
  memset(grant, 0, sizeof *grant);
  sqlite3_stmt *row = statement_bind(ledger, &select_grant, "s", name);
  if (!statement_row(ledger, row)) return 0;
  *grant = (struct ledger_grant){.name = column_copy(ledger, row, 0),
                                 .tier = column_copy(ledger, row, 1),
                                 .share = column_number(row, 2),
                                 .questions = sqlite3_column_int(row, 3),
                                 .diffuse = column_copy(ledger, row, 4),
                                 .pad_ms = sqlite3_column_int(row, 5),
                                 .seconds = column_number(row, 6),
                                 .steps = column_number(row, 7),
                                 .bytes = column_number(row, 8)};
  return !error_is_set(ledger->error);
}

int ledger_grant_find(struct ledger *ledger, const char *name, struct ledger_grant *grant) {
  if (!seal_trust_books(ledger)) return 0;
  return grant_read(ledger, name, grant) ||
         ledger_fail(ledger, "unknown grant (dp_grant lists them)");
}

/*
** Returns 1 if there is no grant with this name. Returns 0 if the same grant exists. Sets an error
** and returns 0 if another grant has this name.
*/
static int is_new(struct ledger *ledger, const struct ledger_grant *grant) {
  struct ledger_grant stored;
  int found = grant_read(ledger, grant->name, &stored);
  if (found && (!same_texts(stored.tier, grant->tier) || stored.questions != grant->questions ||
                (!grant->questions && stored.share != grant->share) ||
                !same_texts(stored.diffuse, grant->diffuse) || stored.pad_ms != grant->pad_ms ||
                stored.seconds != grant->seconds || stored.steps != grant->steps ||
                stored.bytes != grant->bytes))
    ledger_fail(ledger,
                "grant '%s' exists with other parameters (grants are immutable: choose another "
                "name)",
                grant->name);
  ledger_grant_clear(&stored);
  return !found && !error_is_set(ledger->error);
}

static int check_name(struct ledger *ledger, const char *name) {
  size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
  if (name[length] || length < 1 || length > 64)
    return ledger_fail(ledger, "name must have 1 to 64 letters, digits, '.', '_' or '-'");
  return !statement_integer(ledger, statement_bind(ledger, &find_name_of_grant, "s", name)) ||
         ledger_fail(ledger,
                     "a release has a name that begins with '%s/', as those of this "
                     "grant would (choose another name)",
                     name);
}

/*
** Returns the index of the outermost tier at which answers are published, which is at least `at`.
** Returns -1 with an error if a tier is not known.
*/
static int outermost_of(struct ledger *ledger, const struct ledger_tier *tiers, int count, int at,
                        const char *const *outward, int outward_count) {
  int outermost = at;
  for (int i = 0; i < outward_count; i++) {
    int to = ledger_tier_find(ledger, tiers, count, outward[i]);
    if (to < 0) return -1;
    if (to <= at)
      return ledger_fail(ledger, "diffuse must list tiers outside '%s'", tiers[at].name) - 1;
    if (to > outermost) outermost = to;
  }
  return outermost;
}

static struct held share_of(const struct held *left, double share) {
  return (struct held){nextafter(left->total * share, 0), nextafter(left->delta * share, 0),
                       nextafter(left->slack * share, 0)};
}

/*
** At a tier that goes on as long as its epsilons fit, the limit on `total` may be used up already.
** A grant would hold nothing there, and clear pure_limit (2).
*/
static int fail_empty(struct ledger *ledger, const struct ledger_tier *tier) {
  return ledger_fail(ledger, "nothing is left of the budget of tier '%s'", tier->name);
}

/* Refuses a grant that needs more than a tier has left beside all charges and all grants. */
static int check_fits(struct ledger *ledger, const struct ledger_tier *tier, int is_inside,
                      const struct held *needed) {
  struct held left;
  if (!reserves_left(ledger, tier, 0, &left)) return 0;
  if (!(left.total > 0)) return fail_empty(ledger, tier);
  if (needed->total <= left.total && needed->delta <= left.delta && needed->slack <= left.slack)
    return 1;
  if (!is_inside)
    return ledger_fail(ledger,
                       "grants of inner tiers hold a part of what is left at tier '%s', which has "
                       "only %.4g of the %.4g left that this share needs (take a smaller share)",
                       tier->name, fmax(0, left.total), needed->total);
  return ledger_fail(ledger,
                     "tier '%s' inside it pays for every answer, and has only %.4g of the %.4g "
                     "left that this share needs there (take a smaller share)",
                     tier->name, left.total, needed->total);
}

static int reserve_all(struct ledger *ledger, struct ledger_grant *grant,
                       const struct ledger_tier *tiers, int at, int outermost) {
  struct held left, amount;
  if (!reserves_left(ledger, &tiers[at], &tiers[at], &left)) return 0;
  if (!(left.total > 0)) return fail_empty(ledger, &tiers[at]);
  if (grant->questions) {
    /*
    ** Questions of weight 1, and no more than the roundings below and of paid_by_grant(), so that
    ** the grant does not take a further release of a budget that is planned to the last one.
    */
    double one = tiers[at].accountant->cost_of_rate(tiers[at].rate);
    double most = one + tiers[at].rate_limit * 0x1p-49;
    grant->share = grant->questions * most / left.total * (1 + 0x1p-49);
    if (!(grant->share <= 1))
      return ledger_fail(ledger, "tier '%s' has budget left for %lld such questions, not %d",
                         tiers[at].name, (long long)(left.total / one), grant->questions);
  }
  amount = share_of(&left, grant->share);
  for (int k = 0; k <= outermost && !error_is_set(ledger->error); k++) {
    struct held own = amount;
    if (k < at) {
      own = reserve_carried(&amount, &tiers[at], &tiers[k]);
    } else if (k > at && reserves_left(ledger, &tiers[k], &tiers[at], &left)) {
      own = share_of(&left, grant->share);
    }
    if (!error_is_set(ledger->error) && check_fits(ledger, &tiers[k], k < at, &own))
      reserve_insert(ledger, grant->name, &tiers[k], &own);
  }
  return !error_is_set(ledger->error);
}

int ledger_grant_create(struct ledger *ledger, struct ledger_grant *grant,
                        const char *const *outward, int outward_count) {
  struct ledger_tier *tiers = 0;
  int count = 0, entered = 0;
  if (!ledger_begin(ledger)) return 0;
  if (seal_trust_books(ledger) && ledger_tiers(ledger, &tiers, &count)) {
    int at = ledger_tier_find(ledger, tiers, count, grant->tier);
    int outermost = at < 0 ? -1 : outermost_of(ledger, tiers, count, at, outward, outward_count);
    if (outermost >= 0 && is_new(ledger, grant) && check_name(ledger, grant->name) &&
        periods_enter(ledger, tiers[outermost].rate, &entered) &&
        reserve_all(ledger, grant, tiers, at, outermost) &&
        statement_run(ledger, &insert_grant, "ssdnsiddd", grant->name, grant->tier, grant->share,
                      (int64_t)grant->questions, grant->diffuse, (int64_t)grant->pad_ms,
                      grant->seconds, grant->steps, grant->bytes))
      budgets_left(ledger, tiers, count);
  }
  ledger_tiers_free(tiers, count);
  return ledger_commit(ledger);
}

/* ---- names ----------------------------------------------------------------------------------- */

int grant_owns_name(struct ledger *ledger, const char *name) {
  const char *slash = name ? strchr(name, '/') : 0;
  struct ledger_grant grant;
  if (!slash) return 0;
  char *prefix = sqlite3_mprintf("%.*s", (int)(slash - name), name);
  if (!prefix) return !ledger_fail(ledger, "out of memory");
  int found = grant_read(ledger, prefix, &grant);
  ledger_grant_clear(&grant);
  sqlite3_free(prefix);
  return found;
}

/* ---- verification ---------------------------------------------------------------------------- */

int grants_verify(struct ledger *ledger, const struct ledger_tier *tiers, int count) {
  for (int i = 0; i < count; i++) {
    struct ledger_tier room;
    struct budget budget;
    if (reserves_verify(ledger, &tiers[i]) && reserves_room(ledger, &tiers[i], 0, &room) &&
        budget_read(ledger, tiers[i].name, &budget) && !budget_within(&room, &budget) &&
        room.rate_limit != tiers[i].rate_limit)
      ledger_discrepancy(ledger, "dp_reserve: the grants at tier '%s' exceed its budget",
                         tiers[i].name);
  }
  return statement_discrepancy(ledger, &find_unfit_grant);
}
