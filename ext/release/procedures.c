/* procedures.c: see procedures.h. */
#include "release/procedures.h"

#include "release/categories.h"
#include "release/path.h"
#include "release/reports.h"

const struct procedure *procedure_of(const struct mechanism *mechanism) {
  if (mechanism->noise) return &path_procedure;
  return mechanism->category ? &category_procedure : &report_procedure;
}
