/*
** until.c: see until.h.
**
** The ladder. V_K is the clock of the ceiling. Its rungs are V_K, then V <- V + floor(V/4) outward
** while that is at most 4096 V_K and below 2^55, and the clocks of the tiers outside the asked one,
** where these see the path. A rung within 1/64 of a tier's is left out.
**
** One step. At the rung V_(j-1) the point is y_(j-1). The next point y_j is drawn from its
** distribution given the exact totals X and y_(j-1) on a path that was drawn outward from X, which
** is gaussian_bridge_draw() with the totals as the inner point: with a = V_j, b = V_(j-1) - V_j and
** v = ab/(a + b), a discrete Gaussian of variance v around (b X + a y_(j-1))/(a + b). So the points
** of a walk have the joint distribution of a path that was drawn outward, and a later tier between
** two of them gets a point in the same way as on every other path (path.c).
**
** Cost. Neighbours move the centre by b/(a + b) times their distance, at most s. Up to a factor of
** exp(+-O(exp(-2 pi^2 v))) from the normalizing sums, the divergence of order alpha is at most
**     alpha (s b/(a + b))^2 / (2v) = alpha s^2/2 (1/V_j - 1/V_(j-1)).
** The steps 0 to j add up to alpha s^2/(2 V_j), the cost of one release at V_j: the search is free.
** v is at least 2^33, so the factor is far inside the margin of 1/12 in the charge (charge.c). The
** lattice slack of a step is that of a draw of variance v: the bound of gaussian_lattice_slack()
** holds for a discrete Gaussian around any real number.
**
** A refinement walks inward from a point that is stored already. Its steps average a fresh draw of
** variance W = V_j V_(j-1)/(V_(j-1) - V_j) with that point, as every refinement does (path.c),
** because the lattice may be coarse there, and these draws have less slack. They cost the same.
**
** Stopping. Whether a step is made is a function of the earlier points, which every tier that pays
** sees. Each step has a fixed cost, and all steps together cost no more than the ceiling, which was
** charged before. This is adaptive composition inside a filter: Renyi (Feldman and Zrnic 2021, at a
** fixed order), zCDP (Whitehouse and others 2023) and Gaussian (Smith and Thakurta 2022). A return
** is made after the last step, and its size is a function of the points, so what the filter admits
** later is chosen from what has been seen. An outer tier sees the path at its own rung or at the
** stop, whichever is noisier. Whether the walk passed its rung is decided by earlier points.
** Tests: tests/release/test_until.py, tests/math/test_stopping.py
*/
#include "release/until.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mechanism/mechanism.h"
#include "noise/entropy.h"
#include "noise/lattice.h"
#include "noise/noise.h"
#include "release/numbers.h"
#include "release/publication.h"

SQLITE_EXTENSION_INIT3

#define FARTHEST    4096                /* the first rung is at most so many times the ceiling */
#define END         ((uint64_t)1 << 55) /* rungs are below this clock */
#define APART       64                  /* rungs are apart by at least 1/64 of the outer one */
#define LADDER_MOST 64                  /* more rungs than log(4096)/log(5/4) */

int until_is_given(const struct ledger_release *release) {
  return release->until > 0;
}

/* ---- the ladder ------------------------------------------------------------------------------ */

/* Returns whether a clock is too near to a rung outside or inside it. */
static int is_near(uint64_t clock, uint64_t rung) {
  uint64_t distance = clock < rung ? rung - clock : clock - rung;
  return distance < rung / APART + (rung % APART != 0);
}

/* The outermost rung comes first. */
static int outward_first(const void *a, const void *b) {
  const struct rung *one = a, *other = b;
  return (one->clock < other->clock) - (one->clock > other->clock);
}

static uint64_t clock_of(const struct publication *publication, int tier) {
  const struct ledger_release *release = &publication->definition.release;
  double rate = release->weight * publication->position.tiers[tier].rate;
  return publication->definition.mechanism->noise->clock(release->sensitivity, rate);
}

int until_ladder(struct publication *publication, uint64_t from, struct rung **rungs, int *count) {
  int at = publication->position.at, tiers = publication->position.count - at - 1, kept = 0;
  uint64_t ceiling = clock_of(publication, at), last = from ? from : END;
  struct rung *list = sqlite3_malloc64(sizeof *list * (size_t)(tiers + LADDER_MOST));
  *rungs = list;
  *count = 0;
  if (!list) return error_set_memory(&publication->session->error);
  for (int i = publication->position.count - 1; i > at; i--) {
    uint64_t clock = clock_of(publication, i);
    if (!clock || clock >= last || is_near(clock, last)) continue;
    list[kept++] = (struct rung){last = clock, i};
  }
  int end = kept; /* the rungs of tiers come first */
  if (kept && (ceiling >= last || is_near(ceiling, last))) {
    list[kept - 1].tier = at;
  } else {
    list[end++] = (struct rung){ceiling, at};
  }
  for (uint64_t clock = ceiling + ceiling / 4;
       clock <= FARTHEST * ceiling && clock < END && (!from || clock < from); clock += clock / 4) {
    int near = from && is_near(clock, from);
    for (int i = 0; i < kept; i++) near |= is_near(clock, list[i].clock);
    if (!near) list[end++] = (struct rung){clock, -1};
  }
  qsort(list, (size_t)end, sizeof *list, outward_first);
  *count = end;
  return 1;
}

double until_slack(const struct publication *publication, uint64_t from, const struct rung *rungs,
                   int made) {
  const struct noise_law *noise = publication->definition.mechanism->noise;
  double slack = 0;
  uint64_t outer = from;
  for (int j = 0; j < made; j++) {
    uint64_t clock = rungs[j].clock, drawn = clock;
    if (from) drawn = lattice_refinement(clock, outer);
    if (!from && outer)
      drawn = (uint64_t)((double)clock * ((double)(outer - clock) / (double)outer));
    outer = clock;
    slack = nextafter(slack + noise->draw_slack(drawn, publication->definition.layout.touched),
                      INFINITY);
  }
  return slack;
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* Sets *met to whether all figures of a point are accurate enough. */
static int check_figures(struct publication *publication, uint64_t clock, const int64_t *values,
                         int *met) {
  const struct ledger_release *release = &publication->definition.release;
  double least = release->least > 0 ? release->least : 0;
  struct numbers numbers;
  publication->position.clock = clock;
  int read = numbers_read(publication, 0, NUMBERS_CONFIDENCE, values, &numbers);
  *met = read;
  for (int i = 0; i < numbers.count && *met; i++) {
    struct ledger_value value = numbers_value(&numbers, &numbers.estimates[i]);
    double half = value.high / 2 - value.low / 2;
    *met = isfinite(half) && half <= release->until * fmax(fabs(value.value), least);
  }
  numbers_clear(&numbers);
  return read;
}

/*
** Draws the point at the clock `to` from the point `values` at the clock `from`, which is 0 before
** the first draw.
*/
static int step_inward(const struct publication *publication, const int64_t *totals, int refines,
                       uint64_t from, uint64_t to, int64_t *values, int64_t *next) {
  size_t dimension = grid_size(&publication->grid);
  struct gaussian_bridge bridge = {to, from - to};
  int drawn = !from     ? release_draw(&gaussian_noise, totals, dimension, to, next)
              : refines ? release_refine(values, totals, dimension, to, from,
                                         lattice_refinement(to, from), next)
                        : gaussian_bridge_draw(&bridge, totals, values, next, dimension);
  if (dimension) memcpy(values, next, sizeof *next * dimension);
  return drawn || error_set(&publication->session->error, "the system gave no random bytes");
}

int until_walk(struct publication *publication, const int64_t *totals, uint64_t from,
               const struct rung *rungs, int count, int64_t *values, until_keep *keep, int *made,
               int *met) {
  size_t size = sizeof *values * (grid_size(&publication->grid) + 1);
  struct ledger *ledger = publication->session->ledger;
  int64_t *next = sqlite3_malloc64(size);
  int going = next != 0 || error_set_memory(&publication->session->error), j = 0;
  int refines = from > 0;
  *met = 0;
  if (going && from)
    going = check_figures(publication, from, values, met); /* it may be accurate already */
  for (; j < count && going && !*met; j++) {
    int is_last = j == count - 1;
    going = ledger_goes_on(ledger) &&
            step_inward(publication, totals, refines, from, rungs[j].clock, values, next);
    from = rungs[j].clock;
    going = going && check_figures(publication, from, values, met);
    if (going && !is_last && !*met && rungs[j].tier >= 0)
      going = keep(publication, rungs[j].tier, from, values);
  }
  going = going && keep(publication, publication->position.at, from, values);
  publication->position.clock = from;
  *made = j;
  if (next) entropy_wipe(next, size);
  sqlite3_free(next);
  return going;
}

/* ---- plans ----------------------------------------------------------------------------------- */

double until_expected_part(struct publication *publication, double figure, double rows) {
  const struct ledger_release *release = &publication->definition.release;
  struct rung *rungs;
  int count;
  double part = 0, goes_on = 1, z = gsl_cdf_ugaussian_Pinv((1 + NUMBERS_CONFIDENCE) / 2);
  uint64_t clock = publication->position.clock;
  if (!until_ladder(publication, 0, &rungs, &count)) return (double)NAN;
  for (int j = 0; j < count; j++) {
    publication->position.clock = rungs[j].clock;
    double half = numbers_half_width(publication, rows), stop = j == count - 1;
    if (isnan(half)) goes_on = NAN;
    /* The figure is about normal around the guess, with a standard deviation of half / z. */
    double wanted = half / release->until;
    if (release->least >= wanted) stop = 1;
    if (stop < 1)
      stop = gsl_cdf_ugaussian_P((figure - wanted) * z / half) +
             gsl_cdf_ugaussian_Q((figure + wanted) * z / half);
    part += goes_on * stop * (double)clock / (double)rungs[j].clock;
    goes_on *= 1 - stop;
  }
  publication->position.clock = clock;
  sqlite3_free(rungs);
  return part;
}
