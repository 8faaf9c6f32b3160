/* default_mechanism.c: see default_mechanism.h. Tests: tests/functions/test_mechanism_choice.py */
#include "release/default_mechanism.h"

#include "ledger/accountant.h"

SQLITE_EXTENSION_INIT3

/* Returns the aggregate's first mechanism whose noise costs a curve (math/cost.h), or null. */
static const struct mechanism *curve_mechanism(const struct aggregate *aggregate) {
  const struct mechanism *mechanism;
  for (int i = 0; (mechanism = mechanism_at(i)) != 0; i++) {
    const struct noise_law *noise = mechanism->noise;
    if (noise && !noise->has_rate &&
        mechanism_admits(mechanism, aggregate->family, aggregate->is_ou))
      return mechanism;
  }
  return 0;
}

int request_default_mechanism(struct request *request, const struct ledger_tier *tier,
                              struct error *error) {
  const struct aggregate *aggregate = request->aggregate;
  if (request->mechanism || request->has_states || tier->accountant->covers_rates ||
      aggregate->family->statistic == STATISTIC_MODEL)
    return 1;
  const struct mechanism *mechanism = curve_mechanism(aggregate);
  if (!mechanism) return 1;
  request->mechanism = sqlite3_mprintf("%s", mechanism->name);
  return request->mechanism || error_set_memory(error);
}

int tier_covers_all_noise(const struct ledger_tier *tier) {
  return tier->accountant->covers_rates && tier->accountant->covers_curves;
}
