/* mechanisms.c: see mechanism.h. Tests: tests/functions/test_mechanism_choice.py */
#include "mechanism/mechanism.h"

double mechanism_most_rate(const struct mechanism *mechanism) {
  return mechanism->noise ? mechanism->noise->most : mechanism->most;
}

const struct family *mechanism_family(const struct mechanism *mechanism,
                                      const struct family *family) {
  if (family->drawn && mechanism->statistics & family->drawn->statistic) return family->drawn;
  return mechanism->noise && mechanism->noise->in_sum_norm && family->l1 ? family->l1 : family;
}

int mechanism_admits(const struct mechanism *mechanism, const struct family *family, int shrinks) {
  unsigned statistics = family->statistic | (family->drawn ? family->drawn->statistic : 0);
  return mechanism->shrinks == shrinks && (mechanism->statistics & statistics) != 0;
}
