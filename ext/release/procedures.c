/* procedures.c: see procedures.h. Tests: tests/mechanism/test_bounds.py */
#include "release/procedures.h"

#include "mechanism/leaf_draw.h"
#include "release/leaf_release.h"
#include "release/path.h"

const struct procedure *procedure_of_kind(const struct aggregate *aggregate) {
  return aggregate->procedure ? aggregate->procedure : &path_procedure;
}

const struct procedure *procedure_of(const struct definition *definition) {
  return definition->mechanism == &leaf_draw_mechanism ? &leaf_procedure
                                                       : procedure_of_kind(definition->aggregate);
}
