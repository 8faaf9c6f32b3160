/* policy.c: owns the rows of dp_policy: the declarations of tables, and the wider unit (dp_within),
** such as the household, with its epsilon. The ledger seals these rows together with its terms and
** tiers, so it notices an edit of the file before a question relies on them.
** Tests: tests/ledger/test_policy.py, tests/ledger/test_within.py,
** tests/ledger/test_certificate.py */
#include <math.h>
#include <string.h>

#include "base/sql_text.h"
#include "ledger/internal.h"

SQLITE_EXTENSION_INIT3

/* ---- the wider unit and its epsilon ---------------------------------------------------------- */

/* A release moves by at most s lattice steps when one unit is absent, and by at most f s when one
** wider unit is (sums/layout.h). So its zCDP rate for wider units is at most f^2 times the charged
** rate, and its epsilon of pure differential privacy at most f times the charged epsilon. The
** factors hold for sums of costs, for filters and for releases that are chosen adaptively, because
** they are the same for every release. Wider units therefore need no budget of their own.
**
** Renyi curves of Laplace noise would break this. The curve for a wider unit is known (that of f
** times the distance), and on a grid it is at most f^2 times the charged one, but a tier with the
** accountant 'rdp' limits the sum of the curves at a single order. Its whole budget would then mean
** f^2 times the limit at this order: for f = 4 and epsilon 1 at delta 1e-6, an epsilon of 9.0 for
** wider units instead of 4.5, even if all noise turns out to be Gaussian. A limit at all orders
** would be a second filter. So no tier with rates admits a curve (charge.c): every tier has rates
** alone, or epsilons alone. */
double ledger_wider_factor(struct ledger *ledger) {
  sqlite3_stmt *row =
      statement_bind(ledger, "SELECT factor FROM dp_policy WHERE wider IS NOT NULL", "");
  return statement_row(ledger, row) ? sqlite3_column_double(row, 0) : 0;
}

/* The accountant 'gdp' sets aside (1 + e^epsilon) slack out of delta, for the epsilon of the tier.
** A larger epsilon of the wider unit needs more, so the loop raises it until that suffices. The
** same releases also have a zCDP rate, whose epsilon needs no slack. */
static double of_rate(const struct ledger_tier *tier, double rate) {
  struct ledger_tier seen = *tier;
  double epsilon = zcdp_epsilon(rate, tier->delta - tier->delta_keys);
  for (int i = 0; i < 100; i++) {
    double next = tier->accountant->epsilon(&seen, rate, 0);
    if (next <= seen.epsilon) return fmin(next, published_up(epsilon));
    seen.epsilon = next * (1 + 0x1p-44);
  }
  return published_up(epsilon);
}

double wider_epsilon(const struct ledger_tier *tier, double rate, double pure, double factor) {
  if (!(factor > 0)) return NAN;
  if (!(rate > 0)) return published_up(factor * pure);
  return tier->accountant->has_delta ? of_rate(tier, factor * factor * rate) : INFINITY;
}

int wider_spent(struct ledger *ledger, const struct ledger_tier *tier, double *epsilon) {
  struct budget spent;
  *epsilon = NAN;
  if (!budget_read(ledger, tier->name, &spent)) return 0;
  double rate = total_up(spent.rate);
  *epsilon = wider_epsilon(tier, rate, rate > 0 ? 0 : spent.pure, ledger_wider_factor(ledger));
  return 1;
}

double wider_budget(const struct ledger_tier *tier, double factor) {
  int has_rates = tier->accountant->covers_rates;
  return wider_epsilon(tier, has_rates ? tier->rate_limit : 0, has_rates ? 0 : tier->epsilon,
                       factor);
}

/* Stores wider_budget() of every tier, after a declaration. */
static int wider_budgets_write(struct ledger *ledger) {
  struct ledger_tier *tiers = 0;
  int count = 0;
  double factor = ledger_wider_factor(ledger);
  int going = ledger_tiers(ledger, &tiers, &count);
  for (int i = 0; i < count && going; i++)
    going = statement_run(ledger, CHANGES_TERMS,
                          "UPDATE dp_budget SET wider_epsilon = ?2 WHERE tier = ?1", "sd",
                          tiers[i].name, wider_budget(&tiers[i], factor));
  ledger_tiers_free(tiers, count);
  return going;
}

/* ---- reading --------------------------------------------------------------------------------- */

int ledger_policy_read(struct ledger *ledger, struct ledger_policy *policy) {
  *policy = (struct ledger_policy){.admits_views = !ledger->audience};
  if (!seal_trust_books(ledger)) return 0;
  sqlite3_stmt *row = statement_bind(ledger,
                                     "SELECT table_name, role, unit_column, parent, definition,"
                                     " mark, wider, wider_column, factor, wider_at FROM dp_policy"
                                     " ORDER BY rowid",
                                     "");
  while (statement_row(ledger, row)) {
    if (!ledger_make_room(ledger, &policy->list, policy->count, sizeof *policy->list)) return 0;
    int is_public = strcmp(column_text(ledger, row, 1), "public") == 0;
    struct ledger_declaration *read = &policy->list[policy->count++];
    *read = (struct ledger_declaration){
        column_copy(ledger, row, 0), is_public ? POLICY_PUBLIC : POLICY_PROTECTED,
        column_copy(ledger, row, 2), column_copy(ledger, row, 3),
        column_copy(ledger, row, 4), column_copy(ledger, row, 5)};
    if (is_public && (!read->definition || !read->mark))
      return ledger_fail_damaged(ledger, "dp_policy");
    if (sqlite3_column_type(row, 6) == SQLITE_NULL || policy->wider.name) continue;
    policy->wider = (struct ledger_wider){
        column_copy(ledger, row, 6), column_copy(ledger, row, 0), column_copy(ledger, row, 7),
        sqlite3_column_double(row, 8), column_copy(ledger, row, 9)};
  }
  return !error_is_set(ledger->error);
}

int ledger_policy_need(struct ledger *ledger, const struct ledger_policy *policy) {
  for (int i = 0; i < policy->count; i++)
    if (policy->list[i].role == POLICY_PROTECTED) return 1;
  return ledger_fail(ledger, "no table is protected yet: SELECT dp_protect('visit'%s)",
                     ledger->protects == LEDGER_UNITS ? ", 'patient_id'" : "");
}

void ledger_policy_free(struct ledger_policy *policy) {
  for (int i = 0; i < policy->count; i++) {
    sqlite3_free(policy->list[i].table);
    sqlite3_free(policy->list[i].unit_column);
    sqlite3_free(policy->list[i].parent);
    sqlite3_free(policy->list[i].definition);
    sqlite3_free(policy->list[i].mark);
  }
  sqlite3_free(policy->list);
  sqlite3_free(policy->wider.name);
  sqlite3_free(policy->wider.table);
  sqlite3_free(policy->wider.column);
  sqlite3_free(policy->wider.since);
  *policy = (struct ledger_policy){0};
}

const struct ledger_declaration *ledger_policy_find(const struct ledger_policy *policy,
                                                    const char *table) {
  for (int i = 0; i < policy->count; i++) {
    if (sqlite3_stricmp(policy->list[i].table, table) == 0) return &policy->list[i];
  }
  return 0;
}

static int same_name(const char *a, const char *b) {
  return a && b ? sqlite3_stricmp(a, b) == 0 : a == b;
}

/* Returns whether main has this table, or if `column` is not null, a table with this column. */
static int is_in_main(struct ledger *ledger, const char *table, const char *column) {
  return sqlite3_table_column_metadata(ledger->host, "main", table, column, 0, 0, 0, 0, 0) ==
         SQLITE_OK;
}

/* Returns whether a declaration follows a schema that has changed: the stored column or parent is
** gone, because the owner has renamed it or made the table anew. Nothing in the schema shows
** whether the new column holds the same units, so the owner vouches for it, as for a first
** declaration. A table that was linked to a parent stays linked: if its column became the unit
** itself, each row of the parent would be a unit. */
static int follows(struct ledger *ledger, const struct ledger_declaration *stored,
                   const struct ledger_declaration *declaration) {
  if (stored->role != POLICY_PROTECTED || declaration->role != POLICY_PROTECTED ||
      !stored->unit_column || (stored->parent && !declaration->parent))
    return 0;
  int has_column = is_in_main(ledger, stored->table, stored->unit_column);
  int has_parent = !stored->parent || is_in_main(ledger, stored->parent, 0);
  return (!has_column || same_name(stored->unit_column, declaration->unit_column)) &&
         (!has_parent || !has_column || same_name(stored->parent, declaration->parent)) &&
         (!has_column || !has_parent);
}

/* Returns whether a table of main is protected and has the unit column of a table that is gone. */
static int is_followed(struct ledger *ledger, const struct ledger_policy *policy,
                       const struct ledger_declaration *gone) {
  for (int i = 0; i < policy->count; i++) {
    const struct ledger_declaration *other = &policy->list[i];
    if (other != gone && other->role == POLICY_PROTECTED &&
        same_name(other->unit_column, gone->unit_column) &&
        is_in_main(ledger, other->table, other->unit_column))
      return 1;
  }
  return 0;
}

/* Refuses to make a table public that may be a protected table under a new name: it has the unit
** column of one that is gone. */
static int check_public(struct ledger *ledger, const struct ledger_policy *policy,
                        const char *table) {
  for (int i = 0; i < policy->count; i++) {
    const struct ledger_declaration *gone = &policy->list[i];
    if (gone->role != POLICY_PROTECTED || !gone->unit_column ||
        is_in_main(ledger, gone->table, 0) || !is_in_main(ledger, table, gone->unit_column) ||
        is_followed(ledger, policy, gone))
      continue;
    return ledger_fail(ledger,
                       "table '%s' has the column '%s' of the protected table '%s', which is gone "
                       "(if it is the same table, protect it; otherwise rename the column)",
                       table, gone->unit_column, gone->table);
  }
  return 1;
}

static int refuse(struct ledger *ledger, const struct ledger_declaration *stored) {
  const char *column = stored->unit_column, *parent = stored->parent;
  char *words =
      stored->role == POLICY_PUBLIC ? sqlite3_mprintf("public")
      : !column                     ? sqlite3_mprintf("protected row by row")
      : !parent                     ? sqlite3_mprintf("protected by column '%s'", column)
                : sqlite3_mprintf("protected by column '%s', which refers to '%s'", column, parent);
  ledger_fail(ledger,
              "table '%s' is %s, and a declaration cannot be loosened or changed (it can only "
              "become stricter: a public table can be protected; before the first charge, "
              "dp_undeclare() takes it back)",
              stored->table, words ? words : "declared");
  sqlite3_free(words);
  return 0;
}

/* Returns whether a public table is declared anew, because its name has come to another table. */
static int is_anew(const struct ledger_declaration *stored,
                   const struct ledger_declaration *declaration) {
  return stored->role == POLICY_PUBLIC && declaration->role == POLICY_PUBLIC &&
         (strcmp(stored->mark, declaration->mark) != 0 ||
          strcmp(stored->definition, declaration->definition) != 0);
}

/* Stores a declaration as that of `table`, in place of the one that the table has. */
static int store(struct ledger *ledger, const char *table,
                 const struct ledger_declaration *declaration) {
  return statement_run(ledger, CHANGES_TERMS,
                       "INSERT INTO dp_policy VALUES (?, ?, ?, ?, ?, ?, " STATEMENT_NOW ", NULL,"
                       " NULL, NULL, NULL) ON CONFLICT(table_name) DO UPDATE SET"
                       " role = excluded.role, unit_column = excluded.unit_column,"
                       " parent = excluded.parent, definition = excluded.definition,"
                       " mark = excluded.mark",
                       "ssssss", table, declaration->role == POLICY_PUBLIC ? "public" : "protected",
                       declaration->unit_column, declaration->parent, declaration->definition,
                       declaration->mark);
}

int ledger_policy_declare(struct ledger *ledger, const struct ledger_declaration *declaration) {
  struct ledger_policy policy;
  int done = ledger_policy_read(ledger, &policy);
  const struct ledger_declaration *stored =
      done ? ledger_policy_find(&policy, declaration->table) : 0;
  if (done && declaration->role == POLICY_PUBLIC && (!stored || is_anew(stored, declaration)))
    done = check_public(ledger, &policy, declaration->table);
  if (!done) {
    ledger_policy_free(&policy);
    return 0;
  }
  if (!stored) {
    done = store(ledger, declaration->table, declaration);
  } else if (is_anew(stored, declaration) ||
             (stored->role == POLICY_PUBLIC && declaration->role == POLICY_PROTECTED) ||
             follows(ledger, stored, declaration)) {
    done = store(ledger, stored->table, declaration);
  } else if (stored->role != declaration->role ||
             !same_name(stored->unit_column, declaration->unit_column) ||
             !same_name(stored->parent, declaration->parent)) {
    done = refuse(ledger, stored);
  }
  ledger_policy_free(&policy);
  return done;
}

/* ---- the wider unit -------------------------------------------------------------------------- */

static int refuse_wider(struct ledger *ledger, const struct ledger_wider *stored) {
  return ledger_fail(ledger,
                     "since %s the ledger protects '%s' (column '%s' of '%s', which "
                     "counts as %.15g units), and it has one wider unit (before the first charge, "
                     "dp_undeclare(%Q) takes it back)",
                     stored->since, stored->name, stored->column, stored->table, stored->factor,
                     stored->name);
}

/* There is one wider unit: the statement takes it from every other table. */
static const char set_wider[] =
    "UPDATE dp_policy SET wider = iif(table_name = ?1, ?2, NULL),"
    " wider_column = iif(table_name = ?1, ?3, NULL),"
    " factor = iif(table_name = ?1, ?4, NULL),"
    " wider_at = iif(table_name = ?1, ifnull(?5, " STATEMENT_NOW "), NULL)";

int ledger_policy_widen(struct ledger *ledger, const struct ledger_wider *wider) {
  struct ledger_policy policy;
  int going = ledger_policy_read(ledger, &policy) && ledger_check_name(ledger, "name", wider->name);
  const struct ledger_wider *stored = &policy.wider;
  if (going && stored->name) {
    int same = strcmp(stored->name, wider->name) == 0 && stored->factor == wider->factor;
    int has_table = is_in_main(ledger, stored->table, 0);
    int is_gone = !is_in_main(ledger, stored->table, stored->column);
    if (!same || (has_table && !same_name(stored->table, wider->table)) ||
        (!is_gone && !same_name(stored->column, wider->column)))
      going = refuse_wider(ledger, stored);
  } else if (going) {
    sqlite3_stmt *row = statement_bind(ledger, "SELECT at FROM dp_charge ORDER BY id LIMIT 1", "");
    if (statement_row(ledger, row))
      going = ledger_fail(ledger,
                          "the first release was charged at %s, and a wider unit must "
                          "be declared before (a new ledger starts without charges; the losses "
                          "under both add up)",
                          column_text(ledger, row, 0));
  }
  if (going && !error_is_set(ledger->error))
    going = statement_run(ledger, CHANGES_TERMS, set_wider, "sssds", wider->table, wider->name,
                          wider->column, wider->factor, stored->since) &&
            wider_budgets_write(ledger);
  ledger_policy_free(&policy);
  return going && !error_is_set(ledger->error);
}

/* ---- taking back ----------------------------------------------------------------------------- */

/* Fails if the ledger has a charge. `what` stays declared then. */
static int check_uncharged(struct ledger *ledger, const char *what, const char *name) {
  if (!statement_integer(ledger, "SELECT 1 FROM dp_charge LIMIT 1", ""))
    return !error_is_set(ledger->error);
  return ledger_fail(ledger,
                     "%s'%s' stays declared, because releases have been charged under this policy "
                     "(a new ledger starts without one; the losses under both add up)",
                     what, name);
}

static int undeclare_wider(struct ledger *ledger, const struct ledger_wider *stored) {
  return check_uncharged(ledger, "", stored->name) &&
         statement_run(ledger, CHANGES_TERMS, set_wider, "sssds", "", (char *)0, (char *)0,
                       (double)NAN, (char *)0) &&
         wider_budgets_write(ledger);
}

static int undeclare_table(struct ledger *ledger, const struct ledger_policy *policy,
                           const char *table) {
  const struct ledger_declaration *stored = ledger_policy_find(policy, table);
  if (!stored) {
    struct known_names known = {.asked = table};
    for (int i = 0; i < policy->count; i++) known_names_add(&known, policy->list[i].table);
    return known_names_fail(&known, ledger->error,
                            "no table%s is declared (%sdp_policy lists them)");
  }
  if (!check_uncharged(ledger, "table ", stored->table)) return 0;
  for (int i = 0; i < policy->count; i++)
    if (same_name(policy->list[i].parent, stored->table))
      return ledger_fail(ledger, "table '%s' is the parent of '%s' (first dp_undeclare(%Q))",
                         stored->table, policy->list[i].table, policy->list[i].table);
  if (same_name(policy->wider.table, stored->table))
    return ledger_fail(ledger, "table '%s' declares the wider unit '%s' (first dp_undeclare(%Q))",
                       stored->table, policy->wider.name, policy->wider.name);
  return statement_run(ledger, CHANGES_TERMS, "DELETE FROM dp_policy WHERE table_name = ?1", "s",
                       stored->table);
}

int ledger_policy_undeclare(struct ledger *ledger, const char *name) {
  struct ledger_policy policy;
  if (ledger_policy_read(ledger, &policy)) {
    if (policy.wider.name && strcmp(policy.wider.name, name) == 0) {
      undeclare_wider(ledger, &policy.wider);
    } else {
      undeclare_table(ledger, &policy, name);
    }
  }
  ledger_policy_free(&policy);
  return !error_is_set(ledger->error);
}

int ledger_policy_admit(struct ledger *ledger, int64_t release_id, const char *tables) {
  struct ledger_policy policy;
  if (error_is_set(ledger->error)) return 0;
  if (tables)
    return statement_run(ledger, CHANGES_RELEASE,
                         "UPDATE dp_release SET tables = ifnull(tables, ?2) WHERE id = ?1", "is",
                         release_id, tables);
  if (ledger_policy_read(ledger, &policy) && ledger_policy_need(ledger, &policy))
    ledger_fail(ledger, "cannot show that the rows of different units stay apart in this statement "
                        "(ask dp_release(tier, kind, 'SELECT ...', options))");
  ledger_policy_free(&policy);
  return 0;
}
