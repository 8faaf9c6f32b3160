/* procedures.c: see procedures.h. Tests: tests/mechanism/test_bounds.py */
#include "release/procedures.h"

#include "release/path.h"

const struct procedure *procedure_of(const struct aggregate *aggregate) {
  return aggregate->procedure ? aggregate->procedure : &path_procedure;
}
