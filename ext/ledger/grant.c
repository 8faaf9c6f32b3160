/*
** grant.c: reads and writes dp_grant and dp_reserve. A grant is a part of a budget that the owner
** has set aside for questions of other people.
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
**     more than c plus this error. Sums of rates are exact (math/total.h).
**   - a period of the tier ends: S becomes 0, and G(g) does not change. A grant gets no new amounts
**     in a new period.
** The same holds for the sums of deltas and of slack.
**
** Why amounts and refusals show nothing about inner tiers. Whether a charge of a grant is admitted
** depends only on R(g) and G(g). At the grant's own tier T, R(g) is a share of what is left there.
** known_left() computes this remainder from the limit, from S, and from the amounts of the grants
** whose own tier is T or outside T. Members of T see all these numbers in dp_budget and dp_reserve.
** The same holds at the outer tiers where the answers are published. A grant whose own tier is
** inside T may also hold an amount at T ("diffuse"). Members of T do not see such a grant, so
** known_left() leaves its amount out. At the tiers inside T, R(g) follows from the amount at T and
** from the terms of the tiers, and not from what these tiers have spent. If a grant does not fit
** beside all charges and grants, dp_grant() refuses it. Only the owner sees this refusal, and
** refusals of the owner's own charges.
**
** Names. The releases that a grant pays for are called '<grant>/<name>'. No other release may have
** such a name, so a question that a grant pays for never finds a release of somebody else.
*/
#include "ledger/grant.h"

#include <math.h>
#include <string.h>

#include "ledger/accountant.h"
#include "ledger/internal.h"

SQLITE_EXTENSION_INIT3

/* ---- reserves -------------------------------------------------------------------------------- */

static struct budget spent_of(const struct reserve_row *row) {
  return (struct budget){.rate = {row->spent_high, row->spent_low},
                         .slack = row->spent_slack,
                         .delta = row->spent_delta,
                         .curve = row->spent_curve,
                         .releases = row->charges};
}

/*
** Returns a payment as the code adds it to the spent amounts of a grant. Components whose sums are
** doubles are slightly increased. The increase is larger than the rounding error of a sum that is
** at most the tier's limit.
*/
static struct payment paid_by_grant(const struct ledger_tier *tier, const struct payment *payment) {
  const double rounding = 0x1p-50;
  struct payment paid = *payment;
  double order = isfinite(tier->filter_order) ? tier->filter_order : 1;
  if (paid.curve.any) paid.curve.values[AT_FILTER] += tier->rate_limit * order * rounding;
  if (paid.delta > 0) paid.delta += tier->delta_keys * rounding;
  if (paid.slack > 0) paid.slack += tier->slack_limit * rounding;
  return paid;
}

/* Returns a copy of the tier whose limits are the amounts of a grant. */
static struct ledger_tier limited(const struct ledger_tier *tier, const struct reserve_row *row) {
  struct ledger_tier limited = *tier;
  limited.rate_limit = row->reserved;
  limited.delta_keys = row->reserved_delta;
  limited.slack_limit = row->reserved_slack;
  return limited;
}

/* Returns reserved - spent, rounded up, or 0 if the difference is negative. */
static double left_up(double reserved, struct total spent) {
  double left = (reserved - spent.high) - spent.low;
  return left > 0 ? nextafter(left, INFINITY) : 0;
}

/* Adds the unspent amounts of a grant to *held. */
static void hold(struct held *held, const struct ledger_tier *tier, const struct reserve_row *row) {
  struct budget spent = spent_of(row);
  struct total total = tier->accountant->total(tier, &spent);
  held->total = nextafter(held->total + left_up(row->reserved, total), INFINITY);
  held->delta += left_up(row->reserved_delta, (struct total){spent.delta, 0});
  held->slack += left_up(row->reserved_slack, (struct total){spent.slack, 0});
  held->delta = nextafter(held->delta, INFINITY);
  held->slack = nextafter(held->slack, INFINITY);
}

static double below(double limit, double held) {
  double left = limit - held;
  return left > 0 ? nextafter(left, 0) : 0;
}

/*
** Sets *room to a copy of the tier, and lowers the limits of the copy by the amounts that some
** grants hold at the tier. The rows of the statement `row` list these grants.
*/
static int lower(struct ledger *ledger, const struct ledger_tier *tier, sqlite3_stmt *row,
                 struct ledger_tier *room) {
  struct held held = {0, 0, 0};
  int any = 0;
  *room = *tier;
  while (statement_row(ledger, row)) {
    struct reserve_row stored;
    columns_read(ledger, row, &columns_reserve, &stored);
    hold(&held, tier, &stored);
    any = 1;
  }
  if (any) {
    room->rate_limit = below(tier->rate_limit, held.total);
    room->delta_keys = below(tier->delta_keys, held.delta);
    room->slack_limit = below(tier->slack_limit, held.slack);
  }
  return !error_is_set(ledger->error);
}

int reserves_room(struct ledger *ledger, const struct ledger_tier *tier, struct ledger_tier *room) {
  return lower(ledger, tier, statement_bind(ledger, RESERVE_LIST, "s", tier->name), room);
}

static int fail_used_up(struct ledger *ledger) {
  return ledger_fail(ledger,
                     "grant '%s' has too little left for this (nothing was charged or read; "
                     "dp_plan tells what a question costs, and dp_reserve what is left)",
                     ledger->grant);
}

int reserve_read(struct ledger *ledger, const struct ledger_tier *tier, struct ledger_tier *room,
                 struct budget *spent) {
  sqlite3_stmt *row = statement_bind(ledger, RESERVE_READ, "ss", ledger->grant, tier->name);
  struct reserve_row stored;
  if (!statement_row(ledger, row)) return 0;
  columns_read(ledger, row, &columns_reserve, &stored);
  sqlite3_reset(row);
  *room = limited(tier, &stored);
  *spent = spent_of(&stored);
  return 1;
}

int reserve_pay(struct ledger *ledger, const struct ledger_tier *tier,
                const struct payment *payment) {
  struct ledger_tier own;
  struct budget spent;
  if (!reserve_read(ledger, tier, &own, &spent)) return fail_used_up(ledger);
  struct payment paid = paid_by_grant(tier, payment);
  spent = budget_after(&spent, &paid, 1);
  if ((payment->curve.any && !tier->accountant->covers_curves) ||
      (payment->rate.high > 0 && !tier->accountant->covers_rates))
    return ledger_fail(ledger,
                       "grant '%s' does not cover noise of this kind (take another \"mechanism\"; "
                       "nothing was charged or read)",
                       ledger->grant);
  if (!budget_within(&own, &spent)) return fail_used_up(ledger);
  struct total total = tier->accountant->total(tier, &spent);
  return statement_run(ledger, RESERVE_WRITE, "ssddddddi", ledger->grant, tier->name,
                       total_up(total), spent.rate.high, spent.rate.low, spent.slack, spent.delta,
                       spent.curve, spent.releases);
}

/* ---- amounts --------------------------------------------------------------------------------- */

/* Computes what a tier has left beside its charges, if its limits are those of *room. */
static int left_of(struct ledger *ledger, const struct ledger_tier *room, struct held *left) {
  struct budget budget;
  if (!budget_read(ledger, room->name, &budget)) return 0;
  *left =
      (struct held){total_left(room->accountant->total(room, &budget), room->rate_limit),
                    below(room->delta_keys, budget.delta), below(room->slack_limit, budget.slack)};
  return 1;
}

/* Computes the largest amounts that a new grant may reserve at a tier. */
static int available(struct ledger *ledger, const struct ledger_tier *tier, struct held *left) {
  struct ledger_tier room;
  return reserves_room(ledger, tier, &room) && left_of(ledger, &room, left);
}

/*
** Computes what is left of a tier as far as the members of the tier `own` know. They do not know
** the grants whose own tiers are inside `own`.
*/
static int known_left(struct ledger *ledger, const struct ledger_tier *tier,
                      const struct ledger_tier *own, struct held *left) {
  struct ledger_tier room;
  sqlite3_stmt *row = statement_bind(ledger, RESERVE_KNOWN, "sd", tier->name, own->rate);
  return lower(ledger, tier, row, &room) && left_of(ledger, &room, left);
}

/*
** Returns the amounts that the tier `inner` must reserve, so that it can pay for every charge that
** fits `amount` at the tier `outer`. If `amount` is, say, a tenth of the outer tier's rate_limit,
** the inner tier reserves a tenth of its own slack_limit, because the slack limits of two tiers are
** independent.
*/
static struct held carried(const struct held *amount, const struct ledger_tier *outer,
                           const struct ledger_tier *inner) {
  double part = amount->total / outer->rate_limit * (1 + 0x1p-50);
  return (struct held){part * outer->accountant->most_at(outer, inner->filter_order),
                       inner->accountant->has_delta ? amount->delta : 0,
                       inner->accountant->reserve_slack ? part * inner->slack_limit : 0};
}

static struct held share_of(const struct held *left, double share) {
  return (struct held){nextafter(left->total * share, 0), nextafter(left->delta * share, 0),
                       nextafter(left->slack * share, 0)};
}

static int reserve(struct ledger *ledger, const char *grant, const struct ledger_tier *tier,
                   const struct held *amount) {
  struct reserve_row row = {.grant_name = grant,
                            .tier = tier->name,
                            .reserved = amount->total,
                            .reserved_delta = amount->delta,
                            .reserved_slack = amount->slack};
  return statement_insert(ledger, RESERVE_INSERT, &row);
}

/* Refuses a grant that needs more than a tier has left beside all charges and all grants. */
static int check_fits(struct ledger *ledger, const struct ledger_tier *tier, int is_inside,
                      const struct held *needed) {
  struct held left;
  if (!available(ledger, tier, &left)) return 0;
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

static int reserve_all(struct ledger *ledger, const struct ledger_grant *grant,
                       const struct ledger_tier *tiers, int at, int outermost) {
  struct held left, amount;
  if (!known_left(ledger, &tiers[at], &tiers[at], &left)) return 0;
  amount = share_of(&left, grant->share);
  if (!(amount.total > 0))
    return ledger_fail(ledger, "nothing is left of the budget of tier '%s'", tiers[at].name);
  for (int k = 0; k <= outermost && !error_is_set(ledger->error); k++) {
    struct held own = amount;
    if (k < at) {
      own = carried(&amount, &tiers[at], &tiers[k]);
    } else if (k > at && known_left(ledger, &tiers[k], &tiers[at], &left)) {
      own = share_of(&left, grant->share);
    }
    if (!error_is_set(ledger->error) && check_fits(ledger, &tiers[k], k < at, &own))
      reserve(ledger, grant->name, &tiers[k], &own);
  }
  return !error_is_set(ledger->error);
}

/*
** Reserves amounts for the grants at a new tier. The owner has just paid, at the new tier, for
** everything that the nearest outer tier has paid. The new tier reserves, for each grant, what the
** grant still holds at the outer tier.
*/
int reserves_inherit(struct ledger *ledger, const struct ledger_tier *tier,
                     const struct ledger_tier *outer) {
  struct ledger_tier room;
  struct budget budget;
  int any = 0;
  for (;;) { /* one grant in each round, because the statement that inserts would change the list */
    sqlite3_stmt *row = statement_bind(ledger, RESERVE_MISSING, "ss", tier->name, outer->name);
    struct reserve_row stored;
    if (!statement_row(ledger, row)) break;
    columns_read(ledger, row, &columns_reserve, &stored);
    char *grant = sqlite3_mprintf("%s", stored.grant_name);
    struct budget spent = spent_of(&stored);
    struct held left = {left_up(stored.reserved, outer->accountant->total(outer, &spent)),
                        left_up(stored.reserved_delta, (struct total){spent.delta, 0}),
                        left_up(stored.reserved_slack, (struct total){spent.slack, 0})};
    sqlite3_reset(row);
    struct held own = carried(&left, outer, tier);
    if (!grant) ledger_fail(ledger, "out of memory");
    if (!error_is_set(ledger->error)) reserve(ledger, grant, tier, &own);
    sqlite3_free(grant);
    any = 1;
  }
  if (!any || error_is_set(ledger->error)) return !error_is_set(ledger->error);
  return reserves_room(ledger, tier, &room) && budget_read(ledger, tier->name, &budget) &&
         (budget_within(&room, &budget) ||
          ledger_fail(ledger,
                      "tier '%s' would lack what the grants of tier '%s' reserve (a larger epsilon "
                      "does)",
                      tier->name, outer->name));
}

/* ---- grants ---------------------------------------------------------------------------------- */

void ledger_grant_clear(struct ledger_grant *grant) {
  columns_clear(&columns_grant, grant);
  memset(grant, 0, sizeof *grant);
}

/* Finds a grant. Returns 1 if the grant exists, and 0 otherwise or on failure. */
static int grant_read(struct ledger *ledger, const char *name, struct ledger_grant *grant) {
  memset(grant, 0, sizeof *grant);
  sqlite3_stmt *row = statement_bind(ledger, GRANT_READ, "s", name);
  if (!statement_row(ledger, row)) return 0;
  columns_read(ledger, row, &columns_grant, grant);
  sqlite3_reset(row);
  return !error_is_set(ledger->error);
}

int ledger_grant_find(struct ledger *ledger, const char *name, struct ledger_grant *grant) {
  if (!seal_trust_books(ledger)) return 0;
  return grant_read(ledger, name, grant) ||
         ledger_fail(ledger, "unknown grant (dp_grant lists them)");
}

static int same_text(const char *a, const char *b) {
  return a && b ? strcmp(a, b) == 0 : a == b;
}

/*
** Returns 1 if there is no grant with this name. Returns 0 if the same grant exists. Sets an error
** and returns 0 if another grant has this name.
*/
static int is_new(struct ledger *ledger, const struct ledger_grant *grant) {
  struct ledger_grant stored;
  int found = grant_read(ledger, grant->name, &stored);
  if (found && (!same_text(stored.tier, grant->tier) || stored.share != grant->share ||
                !same_text(stored.diffuse, grant->diffuse) || stored.pad_ms != grant->pad_ms))
    ledger_fail(ledger,
                "grant '%s' exists with other parameters (grants are immutable: choose another "
                "name)",
                grant->name);
  ledger_grant_clear(&stored);
  return !found && !error_is_set(ledger->error);
}

static int check_name(struct ledger *ledger, const char *name) {
  if (strchr(name, '/'))
    return ledger_fail(ledger, "name must not contain a slash (releases of a grant are called "
                               "'<grant>/<name>')");
  sqlite3_stmt *row = statement_bind(ledger, GRANT_TAKEN, "s", name);
  int taken = statement_row(ledger, row);
  sqlite3_reset(row);
  return !taken || ledger_fail(ledger,
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

int ledger_grant_create(struct ledger *ledger, const struct ledger_grant *grant,
                        const char *const *outward, int outward_count) {
  struct ledger_tier *tiers = 0;
  int count = 0, entered = 0;
  if (!ledger_begin(ledger)) return 0;
  if (seal_trust_books(ledger) && ledger_tiers(ledger, &tiers, &count)) {
    int at = ledger_tier_find(ledger, tiers, count, grant->tier);
    int outermost = at < 0 ? -1 : outermost_of(ledger, tiers, count, at, outward, outward_count);
    if (outermost >= 0 && is_new(ledger, grant) && check_name(ledger, grant->name) &&
        periods_enter(ledger, tiers[outermost].rate, &entered) &&
        statement_insert(ledger, GRANT_INSERT, grant) &&
        reserve_all(ledger, grant, tiers, at, outermost))
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

/*
** Recomputes the amounts that one grant has spent at one tier, and compares them with dp_reserve.
** Returns a discrepancy or null.
*/
static char *check_reserve(struct ledger *ledger, const struct ledger_tier *tier,
                           const struct reserve_row *row) {
  struct budget spent = {0};
  sqlite3_stmt *charge = statement_bind(ledger, RESERVE_CHARGES, "ss", row->grant_name, tier->name);
  while (statement_row(ledger, charge)) {
    struct payment payment = {.rate = {sqlite3_column_double(charge, 0), 0},
                              .slack = sqlite3_column_double(charge, 1),
                              .delta = sqlite3_column_double(charge, 2),
                              .curve = curve_column(ledger, charge, 3)};
    payment = paid_by_grant(tier, &payment);
    spent = budget_after(&spent, &payment, 1);
  }
  struct ledger_tier own = limited(tier, row);
  int same = row->spent_high == spent.rate.high && row->spent_low == spent.rate.low &&
             row->spent_slack == spent.slack && row->spent_delta == spent.delta &&
             row->spent_curve == spent.curve && row->charges == spent.releases &&
             row->spent == total_up(tier->accountant->total(tier, &spent));
  if (!same)
    return ledger_discrepancy(ledger, "dp_reserve: grant '%s' does not match its charges at '%s'",
                              row->grant_name, tier->name);
  if (!budget_within(&own, &spent))
    return ledger_discrepancy(ledger, "dp_reserve: grant '%s' has spent more than it has at '%s'",
                              row->grant_name, tier->name);
  return 0;
}

char *grants_verify(struct ledger *ledger, const struct ledger_tier *tiers, int count) {
  char *found = 0;
  for (int i = 0; i < count && !found; i++) {
    struct ledger_tier room;
    struct budget budget;
    sqlite3_stmt *row = statement_bind(ledger, RESERVE_LIST, "s", tiers[i].name);
    while (!found && statement_row(ledger, row)) {
      struct reserve_row stored;
      columns_read(ledger, row, &columns_reserve, &stored);
      found = check_reserve(ledger, &tiers[i], &stored);
    }
    if (row) sqlite3_reset(row);
    if (!found && reserves_room(ledger, &tiers[i], &room) &&
        budget_read(ledger, tiers[i].name, &budget) && !budget_within(&room, &budget) &&
        room.rate_limit != tiers[i].rate_limit)
      found = ledger_discrepancy(ledger, "dp_reserve: the grants at tier '%s' exceed its budget",
                                 tiers[i].name);
  }
  sqlite3_stmt *row = found ? 0 : statement_bind(ledger, GRANT_CHECK, "");
  if (statement_row(ledger, row))
    found = ledger_discrepancy(ledger, "%s: '%s' does not fit the grants", column_text(row, 0),
                               column_text(row, 1));
  if (row) sqlite3_reset(row);
  return found;
}
