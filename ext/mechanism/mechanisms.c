/*
** mechanisms.c: see mechanism.h.
** Tests: tests/functions/test_mechanism_choice.py, tests/mechanism/test_groups.py
*/
#include <math.h>
#include <stdlib.h>

#include "mechanism/lattice_design.h"
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

/* ---- mechanisms that add noise to sums ------------------------------------------------------- */

uint64_t sums_design(const struct mechanism *mechanism, const struct terms *terms,
                     struct design *design) {
  design_make(design, terms->shape, terms->rate, mechanism->noise);
  return mechanism->noise->clock(design->sensitivity, terms->rate);
}

uint64_t sums_sensitivity(const struct mechanism *mechanism, const struct terms *terms) {
  return design_sensitivity(terms->shape, terms->shift, mechanism->noise);
}

double sums_rate(const struct mechanism *mechanism, const struct terms *terms, uint64_t clock) {
  return mechanism->noise->rate(terms->sensitivity, clock);
}

uint64_t sums_draw_clock(const struct terms *terms, uint64_t clock) {
  (void)terms;
  return clock;
}

double noise_curve(const void *room, double alpha) {
  const struct cost_room *of = room;
  return fmin(of->noise->rdp(of->sensitivity, of->clock, alpha), alpha * of->most);
}

/*
** The clock was chosen so that the rate of the noise is at most the tier's rate. A rounding error
** can make the computed rate slightly larger, so fmin() limits it to the tier's rate.
*/
int sums_cost(const struct mechanism *mechanism, const struct terms *terms, uint64_t clock,
              struct cost_room *room, struct cost *cost) {
  const struct noise_law *noise = mechanism->noise;
  double delta = terms->shape->max_groups ? terms->delta : 0;
  room->noise = noise;
  room->sensitivity = terms->sensitivity;
  room->clock = clock;
  room->most = noise->has_rate ? terms->rate : INFINITY;
  *cost = noise->has_rate ? (struct cost){fmin(noise->rate(terms->sensitivity, clock), terms->rate),
                                          delta, 0, 0}
                          : (struct cost){0, delta, noise_curve, room};
  return 1;
}

void cost_room_clear(struct cost_room *room) {
  free(room->profile);
  room->profile = 0;
}
