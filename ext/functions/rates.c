/* rates.c: conversions between rates, epsilons, deltas and noise, for use before anything is
** released. The functions are pure functions of public parameters. They use no ledger and no data,
** and charge nothing.
**
** Units. A rate is a zCDP rate: (sensitivity/sigma)^2/2 for Gaussian noise. The rates of several
** releases of the same data add up. epsilon is in nats and delta is a probability. sensitivity and
** sigma have the unit of the data.
**
** Errors. If an argument is NULL, a text or outside its domain, the call fails. The message names
** the parameter and the domain.
**
** Rounding. Every result is rounded in the direction of privacy, by less than 1e-12 of the value.
** There is one exception: if epsilon is tiny compared with sqrt(2 rate), epsilon is accurate only
** up to a relative change of 2e-15 in delta (math.h).
** Tests: tests/functions/test_planning.py */
#include "functions/internal.h"

#include <float.h>
#include <math.h>
#include <stddef.h>

#include "math/math.h"

SQLITE_EXTENSION_INIT3

/* dp_rate(epsilon, delta): returns the largest rate at which Gaussian noise is (epsilon, delta)-DP,
** rounded down. epsilon >= 0 and finite, 0 < delta < 1. The function inverts the exact profile of
** dp_delta(). */
static double rate(double epsilon, double delta) {
  return published_down(gaussian_rate(epsilon, delta));
}

/* dp_sigma(rate, sensitivity): returns the standard deviation of Gaussian noise that costs this
** rate, sensitivity/sqrt(2 rate), rounded up. rate > 0 and finite. sensitivity > 0 and finite, in
** the L2 norm. (Bun and Steinke 2016, Proposition 1.6.) */
static double sigma(double rate, double sensitivity) {
  double noise = sensitivity / (M_SQRT2 * sqrt(rate));
  /* Noise that underflows to 0 would give no privacy. */
  return published_up(fmax(noise, DBL_MIN));
}

/* dp_epsilon(rate, delta): returns the least epsilon >= 0 at which Gaussian noise of this rate is
** (epsilon, delta)-DP, rounded up. The result is 0 if delta is at least the total variation
** distance of neighbours. rate >= 0 and finite, 0 < delta < 1. The function inverts the exact
** profile of dp_delta(). */
static double epsilon(double rate, double delta) {
  return published_up(gaussian_epsilon(rate, delta));
}

/* dp_delta(rate, epsilon): returns the least delta at which Gaussian noise of this rate is
** (epsilon, delta)-DP, rounded up, but never above 1. If delta is below the smallest normal double,
** the result is this double. rate >= 0 and finite, epsilon >= 0 and finite. (Balle and Wang 2018,
** Theorem 8; Asoodeh, Diaz and Calmon 2020, Lemma 2.) */
static double delta(double rate, double epsilon) {
  double exact = gaussian_delta(rate, epsilon);
  if (rate > 0.0 && exact < DBL_MIN) return DBL_MIN; /* a result of 0 would claim pure privacy */
  return fmin(published_up(exact), 1.0);
}

/* dp_zcdp_epsilon(rate, delta): returns the least epsilon >= 0 that zCDP of this rate implies at
** delta for any mechanism, rounded up. For exactly Gaussian noise, dp_epsilon() is smaller. rate >=
** 0 and finite, 0 < delta < 1. (Canonne, Kamath and Steinke 2020, Proposition 12, over all real
** orders.) */
static double any_epsilon(double rate, double delta) {
  return published_up(zcdp_epsilon(rate, delta));
}

static const struct domain rate_domain = {"rate", 0.0, INFINITY, 0, 1};
static const struct domain positive_rate_domain = {"rate", 0.0, INFINITY, 1, 1};
static const struct domain epsilon_domain = {"epsilon", 0.0, INFINITY, 0, 1};
static const struct domain delta_domain = {"delta", 0.0, 1.0, 1, 1};
static const struct domain sensitivity_domain = {"sensitivity", 0.0, INFINITY, 1, 1};
static const struct domain releases_domain = {"releases", 1, 1e6, 0, 0};

/* dp_rate(epsilon, delta, releases): returns the rate of each of `releases` releases that together
** are (epsilon, delta)-DP, rounded down. The budget also covers the lattice slack (math/math.h)
** of one coordinate for each release. A tier with this budget and the accountant 'gdp' admits
** exactly this number of releases. `releases` is a whole number from 1 to 1e6. */
static void rate_of_each(sqlite3_context *context, int count, sqlite3_value **arguments) {
  double epsilon, delta, releases;
  (void)count;
  if (!argument_number(context, arguments[0], &epsilon_domain, &epsilon) ||
      !argument_number(context, arguments[1], &delta_domain, &delta) ||
      !argument_number(context, arguments[2], &releases_domain, &releases))
    return;
  if (releases != floor(releases)) {
    function_error(context, "releases must be a whole number");
    return;
  }
  double together = gaussian_rate_beside(epsilon, delta, releases * GAUSSIAN_DRAW_SLACK);
  if (isnan(together)) {
    function_error(
        context, "delta cannot bear the lattice slack of so many releases at this epsilon (take a "
                 "smaller epsilon, or fewer releases)");
    return;
  }
  double all = published_down(together), each = all / releases;
  sqlite3_result_double(context, fma(each, releases, -all) > 0 ? nextafter(each, 0) : each);
}

static const struct scalar rate_of_many = {"dp_rate", 3, 3, rate_of_each};

struct rate_function {
  /* The first member, so that a pointer to the scalar is a pointer to the row. */
  struct scalar scalar;
  const struct domain *domains[2];
  double (*value)(double, double);
};

static void plan(sqlite3_context *context, int count, sqlite3_value **arguments) {
  const struct rate_function *row = (const struct rate_function *)function_of(context);
  double x[2];
  for (int i = 0; i < count; i++)
    if (!argument_number(context, arguments[i], row->domains[i], &x[i])) return;
  double value = row->value(x[0], x[1]);
  /* The value is NaN when out of memory, or if rounding broke the bracket of a root search. A
  ** budget must never be NULL, so fail. */
  if (isnan(value)) {
    function_error(context, "no value could be computed");
    return;
  }
  sqlite3_result_double(context, value);
}

static const struct rate_function table[] = {
    {{"dp_rate", 2, 2, plan}, {&epsilon_domain, &delta_domain}, rate},
    {{"dp_sigma", 2, 2, plan}, {&positive_rate_domain, &sensitivity_domain}, sigma},
    {{"dp_epsilon", 2, 2, plan}, {&rate_domain, &delta_domain}, epsilon},
    {{"dp_delta", 2, 2, plan}, {&rate_domain, &epsilon_domain}, delta},
    {{"dp_zcdp_epsilon", 2, 2, plan}, {&rate_domain, &delta_domain}, any_epsilon},
};

int rates_register(struct pure *pure) {
  int rc = pure_register(pure, &rate_of_many);
  for (size_t i = 0; i < sizeof table / sizeof *table && rc == SQLITE_OK; i++)
    rc = pure_register(pure, &table[i].scalar);
  return rc;
}
