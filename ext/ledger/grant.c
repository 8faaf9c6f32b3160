/* grant.c: reads and writes grants (dp_grant).
**
** A grant at tier T reserves amounts at T, at every tier inside T, and at outer tiers if its
** answers are published there. An amount has three limits: on the accountant's `total`
** (struct accountant), on the delta for private keys, and on the lattice slack. Each charge is paid
** by the owner or by one grant (dp_charge.grant_name).
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
**     more than c plus this error. Sums of rates are exact (math/math.h).
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
** Tests: tests/ledger/test_grants.py */
#include <math.h>
#include <string.h>

#include "ledger/internal.h"

SQLITE_EXTENSION_INIT3

/* ---- what grants have reserved --------------------------------------------------------------- */

#define RESERVE_COLUMNS                                                                            \
  "grant_name, reserved, reserved_delta, reserved_slack, spent, spent_high, spent_low,"            \
  " spent_slack, spent_delta, spent_curve, charges"

/* Amounts of a tier's budget, such as the unspent amounts of all grants. */
struct held {
  double total, delta, slack;
};

/* A row of dp_reserve. The name is valid until the next step of the statement. */
struct reserve {
  const char *grant_name;
  struct held held; /* what was reserved at first */
  double total;     /* the column `spent`: the accountant's total of `spent` below */
  struct budget spent;
};

static struct reserve reserve_of(struct ledger *ledger, sqlite3_stmt *row) {
  return (struct reserve){
      .grant_name = column_text(ledger, row, 0),
      .held = {sqlite3_column_double(row, 1), sqlite3_column_double(row, 2),
               sqlite3_column_double(row, 3)},
      .total = sqlite3_column_double(row, 4),
      .spent = {.rate = {sqlite3_column_double(row, 5), sqlite3_column_double(row, 6)},
                .slack = sqlite3_column_double(row, 7),
                .delta = sqlite3_column_double(row, 8),
                .curve = sqlite3_column_double(row, 9),
                .releases = sqlite3_column_int64(row, 10)}};
}

/* Returns a payment as it is added to the spent amounts of a grant: components whose sums are
** doubles are increased by more than the rounding error of a sum that is at most the tier's
** limit. */
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
static struct ledger_tier limited(const struct ledger_tier *tier, const struct held *held) {
  struct ledger_tier limited = *tier;
  limited.rate_limit = held->total;
  limited.pure_limit = NAN;
  limited.delta_keys = held->delta;
  limited.slack_limit = held->slack;
  return limited;
}

/* Returns reserved - spent, rounded up, or 0 if the difference is negative. */
static double left_up(double reserved, struct total spent) {
  double left = (reserved - spent.high) - spent.low;
  return left > 0 ? nextafter(left, INFINITY) : 0;
}

/* Returns the unspent amounts of a grant, rounded up. */
static struct held held_by(const struct ledger_tier *tier, const struct reserve *reserve) {
  const struct budget *spent = &reserve->spent;
  return (struct held){left_up(reserve->held.total, tier->accountant->total(tier, spent)),
                       left_up(reserve->held.delta, (struct total){spent->delta, 0}),
                       left_up(reserve->held.slack, (struct total){spent->slack, 0})};
}

static double below(double limit, double held) {
  double left = limit - held;
  return left > 0 ? nextafter(left, 0) : 0;
}

/* If ?2 is not NULL, leaves out the grants whose own tier has a rate above ?2. */
static const char select_reserves[] =
    "SELECT " RESERVE_COLUMNS " FROM dp_reserve WHERE tier = ?1 AND (?2 IS NULL OR"
    " (SELECT t.rate FROM dp_grant g JOIN dp_tier t ON t.name = g.tier"
    " WHERE g.name = grant_name) <= ?2) ORDER BY grant_name";

int reserves_room(struct ledger *ledger, const struct ledger_tier *tier,
                  const struct ledger_tier *own, struct ledger_tier *room) {
  sqlite3_stmt *row =
      statement_bind(ledger, select_reserves, "sd", tier->name, own ? own->rate : (double)NAN);
  struct held held = {0, 0, 0};
  int any = 0;
  *room = *tier;
  while (statement_row(ledger, row)) {
    struct reserve stored = reserve_of(ledger, row);
    struct held more = held_by(tier, &stored);
    held.total = nextafter(held.total + more.total, INFINITY);
    held.delta = nextafter(held.delta + more.delta, INFINITY);
    held.slack = nextafter(held.slack + more.slack, INFINITY);
    any = 1;
  }
  if (any) {
    room->rate_limit = below(tier->rate_limit, held.total);
    room->pure_limit = NAN;
    room->delta_keys = below(tier->delta_keys, held.delta);
    room->slack_limit = below(tier->slack_limit, held.slack);
  }
  return !error_is_set(ledger->error);
}

static int fail_used_up(struct ledger *ledger) {
  return ledger_fail(ledger,
                     "grant '%s' has too little left for this (nothing was charged or read; the "
                     "table dp_reserve says what is left, a smaller weight costs less, and the "
                     "owner can give another grant)",
                     ledger->grant);
}

int reserve_read(struct ledger *ledger, const struct ledger_tier *tier, struct ledger_tier *room,
                 struct budget *spent) {
  sqlite3_stmt *row = statement_bind(
      ledger, "SELECT " RESERVE_COLUMNS " FROM dp_reserve WHERE grant_name = ? AND tier = ?", "ss",
      ledger->grant, tier->name);
  if (!statement_row(ledger, row)) return 0;
  struct reserve stored = reserve_of(ledger, row);
  *room = limited(tier, &stored.held);
  *spent = stored.spent;
  return 1;
}

int reserve_pay(struct ledger *ledger, const struct ledger_tier *tier,
                const struct payment *payment) {
  struct ledger_tier own;
  struct budget spent;
  if (!reserve_read(ledger, tier, &own, &spent)) return fail_used_up(ledger);
  struct payment paid = paid_by_grant(tier, payment);
  spent = budget_after(&spent, &paid, payment->rate.high >= 0);
  if ((payment->curve.any && !tier->accountant->covers_curves) ||
      (payment->rate.high > 0 && !tier->accountant->covers_rates))
    return ledger_fail(ledger,
                       "grant '%s' does not cover noise of this kind (take another \"mechanism\"; "
                       "nothing was charged or read)",
                       ledger->grant);
  if (!budget_within(&own, &spent)) {
    if (!ledger->file) return fail_used_up(ledger);
    ledger->overdrawn = 1; /* a plan says what the release would be, and that it does not fit */
  }
  struct total total = tier->accountant->total(tier, &spent);
  return statement_run(ledger, CHANGES_BUDGET,
                       "UPDATE dp_reserve SET spent = ?3, spent_high = ?4, spent_low"
                       " = ?5, spent_slack = ?6, spent_delta = ?7, spent_curve = ?8,"
                       " charges = ?9 WHERE grant_name = ?1 AND tier = ?2",
                       "ssddddddi", ledger->grant, tier->name, total_up(total), spent.rate.high,
                       spent.rate.low, spent.slack, spent.delta, spent.curve, spent.releases);
}

/* Computes the largest amounts that a new grant may reserve at a tier: what remains beside the
** charges and the grants that the members of `own` know (reserves_room()). */
static int reserves_left(struct ledger *ledger, const struct ledger_tier *tier,
                         const struct ledger_tier *own, struct held *left) {
  struct ledger_tier room;
  struct budget budget;
  if (!reserves_room(ledger, tier, own, &room) || !budget_read(ledger, tier->name, &budget))
    return 0;
  *left =
      (struct held){total_left(tier->accountant->total(&room, &budget), room.rate_limit),
                    below(room.delta_keys, budget.delta), below(room.slack_limit, budget.slack)};
  return 1;
}

/* Returns the amounts with which the tier `inner` can pay for every charge that fits `amount` at
** the tier `outer`. If `amount` is a tenth of the outer tier's rate_limit, `inner` reserves a tenth
** of its own slack_limit, because the slack limits of two tiers are independent. */
static struct held reserve_carried(const struct held *amount, const struct ledger_tier *outer,
                                   const struct ledger_tier *inner) {
  double part = amount->total / outer->rate_limit * (1 + 0x1p-50);
  return (struct held){part * outer->accountant->most_at(outer, inner->filter_order),
                       inner->accountant->has_delta ? amount->delta : 0,
                       inner->accountant->reserve_slack ? part * inner->slack_limit : 0};
}

/* Stores the amounts that a new grant reserves at a tier. */
static int reserve_insert(struct ledger *ledger, const char *grant, const struct ledger_tier *tier,
                          const struct held *amount) {
  return statement_run(ledger, CHANGES_BUDGET,
                       "INSERT INTO dp_reserve VALUES (?, ?, ?, 0, ?, 0, 0, ?, 0, 0, 0, 0)",
                       "ssddd", grant, tier->name, amount->total, amount->delta, amount->slack);
}

int reserves_inherit(struct ledger *ledger, const struct ledger_tier *tier,
                     const struct ledger_tier *outer) {
  struct ledger_tier room;
  struct budget budget;
  int any = 0;
  /* The new rows are of the new tier, so they do not change these rows. */
  sqlite3_stmt *row = statement_bind(ledger, select_reserves, "s", outer->name);
  for (; statement_row(ledger, row); any = 1) {
    struct reserve stored = reserve_of(ledger, row);
    struct held left = held_by(outer, &stored), own = reserve_carried(&left, outer, tier);
    reserve_insert(ledger, stored.grant_name, tier, &own);
  }
  if (!any || error_is_set(ledger->error)) return !error_is_set(ledger->error);
  return reserves_room(ledger, tier, 0, &room) && budget_read(ledger, tier->name, &budget) &&
         (budget_within(&room, &budget) ||
          ledger_fail(ledger,
                      "tier '%s' would lack what the grants of tier '%s' reserve (a larger epsilon "
                      "does)",
                      tier->name, outer->name));
}

/* ---- what is left ---------------------------------------------------------------------------- */

int64_t releases_left(struct ledger *ledger, const struct ledger_tier *tiers, int at) {
  double least = 0x1p52;
  for (int k = 0; k <= at; k++) {
    const struct accountant *accountant = tiers[k].accountant;
    struct budget budget;
    struct ledger_tier room;
    if (!budget_read(ledger, tiers[k].name, &budget) || !reserves_room(ledger, &tiers[k], 0, &room))
      return -1;
    double left = total_left(accountant->total(&room, &budget), room.rate_limit);
    least = fmin(least, floor(left / accountant->cost_of_rate(tiers[at].rate)));
    if (accountant->draws_left) least = fmin(least, accountant->draws_left(&room, &budget));
  }
  return (int64_t)fmax(least, 0);
}

int budgets_left(struct ledger *ledger, const struct ledger_tier *tiers, int count) {
  for (int at = 0; at < count && !error_is_set(ledger->error); at++)
    statement_run(ledger, CHANGES_BUDGET, "UPDATE dp_budget SET releases_left = ?2 WHERE tier = ?1",
                  "si", tiers[at].name, releases_left(ledger, tiers, at));
  return !error_is_set(ledger->error);
}

int all_budgets_left(struct ledger *ledger) {
  struct ledger_tier *tiers;
  int count;
  if (ledger_tiers(ledger, &tiers, &count)) budgets_left(ledger, tiers, count);
  ledger_tiers_free(tiers, count);
  return !error_is_set(ledger->error);
}

int ledger_enter_periods(struct ledger *ledger) {
  int entered = 0;
  if (period_is_over(ledger) && seal_trust_books(ledger) && periods_enter(ledger, 0, &entered))
    all_budgets_left(ledger);
  return !error_is_set(ledger->error);
}

int ledger_read_periods(struct ledger *ledger) {
  if (!period_is_over(ledger)) return !error_is_set(ledger->error);
  ledger_rollback(ledger);
  return ledger_begin_copy(ledger) && ledger_enter_periods(ledger);
}

/* ---- grants ---------------------------------------------------------------------------------- */

void ledger_grant_clear(struct ledger_grant *grant) {
  sqlite3_free(grant->name);
  sqlite3_free(grant->tier);
  sqlite3_free(grant->diffuse);
  memset(grant, 0, sizeof *grant);
}

static int grant_read(struct ledger *ledger, const char *name, struct ledger_grant *grant) {
  memset(grant, 0, sizeof *grant);
  sqlite3_stmt *row = statement_bind(ledger,
                                     "SELECT name, tier, share, questions, diffuse, pad_ms,"
                                     " seconds, steps, bytes FROM dp_grant WHERE name = ?",
                                     "s", name);
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

/* Returns 1 if there is no grant with this name, and 0 if the same one or, with an error, another
** one exists. */
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
  return !statement_integer(ledger,
                            "SELECT 1 FROM dp_release WHERE substr(name, 1, length(?1) +"
                            " 1) = ?1 || '/' LIMIT 1",
                            "s", name) ||
         ledger_fail(ledger,
                     "a release has a name that begins with '%s/', as those of this "
                     "grant would (choose another name)",
                     name);
}

/* Returns the index of the outermost tier at which answers are published, at least `at`, or -1. */
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

/* At a tier that goes on as long as its epsilons fit, the limit on `total` may be used up already.
** A grant would hold nothing there, and clear pure_limit (2). */
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
    /* Questions of weight 1, and no more than the roundings below and of paid_by_grant(), so that
    ** the grant does not take a further release of a budget that is planned to the last one. */
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
        statement_run(ledger, CHANGES_TERMS,
                      "INSERT INTO dp_grant VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, " STATEMENT_NOW ")",
                      "ssdnsiddd", grant->name, grant->tier, grant->share,
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

static int check_reserve(struct ledger *ledger, const struct ledger_tier *tier,
                         const struct reserve *reserve) {
  struct budget spent = {0};
  sqlite3_stmt *charge = statement_bind(ledger,
                                        "SELECT rate, slack, delta, curve FROM dp_charge"
                                        " WHERE grant_name = ? AND tier = ? ORDER BY id",
                                        "ss", reserve->grant_name, tier->name);
  while (statement_row(ledger, charge)) {
    struct payment payment = payment_read(ledger, charge);
    payment = paid_by_grant(tier, &payment);
    spent = budget_after(&spent, &payment, payment.rate.high >= 0);
  }
  struct ledger_tier own = limited(tier, &reserve->held);
  const struct budget *stored = &reserve->spent;
  int same = stored->rate.high == spent.rate.high && stored->rate.low == spent.rate.low &&
             stored->slack == spent.slack && stored->delta == spent.delta &&
             stored->curve == spent.curve && stored->releases == spent.releases &&
             reserve->total == total_up(tier->accountant->total(tier, &spent));
  if (!same)
    return ledger_discrepancy(ledger, "dp_reserve: grant '%s' does not match its charges at '%s'",
                              reserve->grant_name, tier->name);
  return budget_within(&own, &spent) ||
         ledger_discrepancy(ledger, "dp_reserve: grant '%s' has spent more than it has at '%s'",
                            reserve->grant_name, tier->name);
}

/* Recomputes the amounts that the grants have spent at a tier. */
static int check_reserves(struct ledger *ledger, const struct ledger_tier *tier) {
  sqlite3_stmt *row = statement_bind(ledger, select_reserves, "s", tier->name);
  while (statement_row(ledger, row)) {
    struct reserve stored = reserve_of(ledger, row);
    check_reserve(ledger, tier, &stored);
  }
  return !error_is_set(ledger->error);
}

/* Finds grants, reserved amounts and charges that contradict each other. */
static const char find_unfit_grant[] =
    "SELECT *, 'does not fit the grants'"
    " FROM (SELECT 'dp_charge', release FROM dp_charge c"
    " WHERE grant_name IS NOT NULL"
    " AND (substr(release, 1, length(grant_name) + 1) <>"
    " grant_name || '/' OR NOT EXISTS (SELECT 1 FROM dp_reserve r"
    " WHERE r.grant_name = c.grant_name AND r.tier = c.tier))"
    " UNION ALL SELECT 'dp_reserve', grant_name FROM dp_reserve"
    " WHERE grant_name NOT IN (SELECT name FROM dp_grant)"
    " OR tier NOT IN (SELECT name FROM dp_tier)"
    " UNION ALL SELECT 'dp_grant', name FROM dp_grant g WHERE"
    " NOT EXISTS (SELECT 1 FROM dp_reserve r"
    " WHERE r.grant_name = g.name AND r.tier = g.tier)) LIMIT 1";

int grants_verify(struct ledger *ledger, const struct ledger_tier *tiers, int count) {
  for (int i = 0; i < count; i++) {
    struct ledger_tier room;
    struct budget budget;
    if (check_reserves(ledger, &tiers[i]) && reserves_room(ledger, &tiers[i], 0, &room) &&
        budget_read(ledger, tiers[i].name, &budget) && !budget_within(&room, &budget) &&
        room.rate_limit != tiers[i].rate_limit)
      ledger_discrepancy(ledger, "dp_reserve: the grants at tier '%s' exceed its budget",
                         tiers[i].name);
  }
  return statement_discrepancy(ledger, find_unfit_grant);
}
