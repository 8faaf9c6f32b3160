/* estimate.c: see estimate.h.
** Tests: tests/mechanism/test_estimate.c, tests/release/test_series_figures.py */
#include "mechanism/estimate.h"

#include <math.h>

#include "math/cost.h"
#include "math/diffusion.h"
#include "mechanism/mechanism.h"

/* ---- how a point is read --------------------------------------------------------------------- */

double estimate_variance(const struct view *view) {
  return ldexp((double)view->clock, 2 * view->granularity);
}

double estimate_shrink(const struct view *view, double tau) {
  if (!view->is_ou) return 1;
  if (view->theta == view->theta) return ou_shrink_process(view->theta, view->rho, tau);
  return ou_shrink_radius(view->radius, view->dimension, tau);
}

double view_noise(const struct view *view) {
  double part = view->part > 0 ? view->part : 1;
  return part * ldexp(sqrt((double)view->clock), view->granularity);
}

double estimate_stddev(const struct view *view) {
  return published_up(estimate_shrink(view, estimate_variance(view)) * view_noise(view));
}

double reading_coordinate(const struct reading *reading, const int64_t *values, int cell,
                          int component) {
  if (reading->numbers)
    return reading->numbers[(size_t)cell * (size_t)reading->shape->width + (size_t)component];
  int64_t steps = values[(int64_t)cell * reading->shape->width + component];
  return ldexp((double)steps, reading->view.granularity);
}

struct estimate estimate_of(const struct reading *reading, int cell, int component, double value,
                            double stddev, int is_mixed) {
  double noise = published_up(stddev), confidence = reading->confidence;
  double half_width = is_mixed ? mixed_half_width(reading->view.noise, noise, confidence)
                               : reading->view.noise->half_width(noise, confidence);
  double low = nextafter(value - half_width, -INFINITY);
  double high = nextafter(value + half_width, INFINITY);
  return (struct estimate){cell, component, value, noise, low, high};
}

double reading_mixed_width(const struct reading *reading) {
  return mixed_half_width(reading->view.noise, 1, reading->confidence);
}

double reading_rows(const struct reading *reading, const int64_t *values, int cell) {
  double count = 0;
  for (int j = 0; j < reading->shape->counted; j++)
    count += reading_coordinate(reading, values, cell, j);
  return count / reading->shape->count_factor;
}

double reading_half_range(const struct reading *reading) {
  return reading->question->high / 2 - reading->question->low / 2;
}

/* Gives an estimate the value `value`, and widens its interval so that it contains the value. */
static void move(struct estimate *estimate, double value) {
  estimate->low = fmin(estimate->low, value);
  estimate->high = fmax(estimate->high, value);
  estimate->value = value;
}

struct estimate estimate_mixed(const struct reading *reading, const struct estimate *from,
                               int count, const double *weights, int cell) {
  double value = 0, variance = 0, largest = 0, all = 0;
  int terms = 0;
  for (int i = 0; i < count; i++) {
    largest = fmax(largest, weights[i] * from[i].stddev);
    all += weights[i];
    terms += weights[i] > 0;
  }
  for (int i = 0; i < count; i++) {
    double part = largest > 0 ? weights[i] * from[i].stddev / largest : 0;
    value += weights[i] * from[i].value;
    variance += part * part;
  }
  double noise = largest * sqrt(variance), shrink = reading->view.is_ou ? reading->shrink : 1;
  double x = all * reading->view.centre * (1 - 1 / shrink) + value / shrink; /* not shrunk */
  struct estimate mixed = estimate_of(reading, cell, 0, x, noise / shrink, terms > 1);
  if (shrink != 1) move(&mixed, value);
  mixed.stddev = published_up(noise);
  return mixed;
}

/* ---- sums: counts, vectors, bins, keys ------------------------------------------------------- */

/* OU noise shrinks the value towards the centre. The interval is that of the coordinate before it
** shrinks, because it holds the true sum. */
static struct estimate shown_sum(struct reading *reading, const int64_t *values, int cell,
                                 int component, int number) {
  const struct view *view = &reading->view;
  double x = reading_coordinate(reading, values, cell, component);
  int is_mixed = reading->numbers != 0;
  struct estimate found = estimate_of(reading, cell, number, x, view_noise(view), is_mixed);
  if (view->is_ou) {
    move(&found, view->centre + reading->shrink * (x - view->centre));
    found.stddev = published_up(reading->shrink * view_noise(view));
  }
  return found;
}

int estimate_sums(struct reading *reading, const int64_t *values, struct estimate *estimates) {
  int first = reading->shape->selects; /* the count that selects private keys is not an estimate */
  int used = 0, per_cell = reading->shape->width - first;
  reading->shrink = estimate_shrink(&reading->view, estimate_variance(&reading->view));
  for (int cell = 0; cell < reading->cells; cell++) {
    for (int j = 0; j < per_cell; j++)
      estimates[used++] = shown_sum(reading, values, cell, first + j, j);
  }
  return used;
}

double estimate_sum_stddev(const struct reading *reading) {
  return estimate_stddev(&reading->view);
}

/* ---- noise before there is data -------------------------------------------------------------- */

double estimate_total_stddev(const struct reading *reading) {
  return reading->shape->family->stddev(reading);
}

double estimate_half_width(const struct reading *reading, double rows) {
  const struct family *family = reading->shape->family;
  if (reading->view.part > 0 && family->is_linear) /* computed from several draws */
    return mixed_half_width(reading->view.noise, view_noise(&reading->view), reading->confidence);
  if (family->is_linear) /* the interval of an OU release does not shrink */
    return reading->view.noise->half_width(view_noise(&reading->view), reading->confidence);
  double stddev = estimate_total_stddev(reading), half = reading_half_range(reading);
  if (family->is_ratio || family->shares || family->is_tree) stddev /= rows;
  double width = mixed_half_width(reading->view.noise, stddev, reading->confidence);
  if (family->is_tree) return 2 * half * (width + 0.5 / reading->shape->bins);
  if (!reading->root) return width;
  /* The ends of the interval of a standard deviation are the roots of the ends of the variance's
  ** interval. If the rows are spread evenly, the variance is half^2/3. */
  double variance = half * half / 3;
  return published_up((sqrt(variance + width) - sqrt(fmax(variance - width, 0))) / 2);
}

int estimate_room(const struct reading *reading) {
  int is_tree = reading->shape->family->is_tree;
  if (reading->shape->ways) return reading->shape->ways->cells;
  return reading->cells * (is_tree ? reading->quantile_count : reading->shape->width);
}

double estimate_threshold(const struct reading *reading) {
  const struct layout *shape = reading->shape;
  int64_t most = shape->blocks[0].lead_reach;
  if (shape->each && shape->each < most) most = shape->each;
  double reach = ldexp((double)most, -reading->view.shift);
  double tail = -expm1(log1p(-reading->selection_delta) / shape->max_groups);
  double noise = reading->view.noise->tail(reading->view.clock, shape->counted, tail);
  return ceil((reach + noise) * (1 + 0x1p-40)) + 2 * shape->counted;
}

/* ---- private keys ---------------------------------------------------------------------------- */

/* Returns the least true count for which a noisy count of at least `count` is not too rare among
** the noisy counts that reach the threshold. Let Q be the probability that the noise of a count
** exceeds a number. The probability is R = Q(count - true) / Q(threshold - true), which grows with
** the true count, and the result is where R is (1 - confidence)/2. It is not below 0. */
static double least_count(const struct reading *reading, double count, double threshold) {
  double sigma = sqrt((double)reading->view.clock), rare = log((1 - reading->confidence) / 2);
  double low = 0, high = count;
  for (int i = 0; i < 100 && high - low > 1e-9 * sigma; i++) {
    double middle = low / 2 + high / 2;
    double ratio = reading->view.noise->log_tail((count - middle) / sigma) -
                   reading->view.noise->log_tail((threshold - middle) / sigma);
    if (ratio < rare) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

/* A private key is published because its noisy count reached the threshold. Given this, the noise
** of the count is no longer centred at 0: it has raised small counts. This function makes the
** interval of a number that depends on this count hold its confidence among published keys.
**
** If the number is the count, the low end comes from the truncated distribution (least_count()).
** The high end stays, because selection makes it err less often.
**
** For an average or a spread, let z be the half-width of the noise of the count. If the noisy count
** is less than z above the threshold, noise may have lifted a much smaller count, and the interval
** becomes the whole range. If the true count is at or below the threshold, a published count is z
** above the threshold with at most the probability 1 - confidence. If it is above the threshold,
** the key is mostly published anyway.
**
** Numbers whose count is another coordinate, with noise of its own (layout.h, `selects`), stay. */
static void condition_on_selection(const struct reading *reading, struct estimate *estimate,
                                   double count, double threshold) {
  const struct layout *shape = reading->shape;
  if (shape->family->is_linear) {
    double low = ldexp(least_count(reading, count, threshold), reading->view.granularity);
    estimate->low = fmin(estimate->low, nextafter(low, -INFINITY));
  } else {
    double noise = sqrt(shape->counted * (double)reading->view.clock);
    if (count - threshold >= reading_mixed_width(reading) * noise) return;
    estimate->low = -INFINITY;
    /* Noise has raised a count that was selected, so it errs upward. */
    if (reading->inside == INSIDE_COUNT) estimate->low = fmin(0, estimate->value);
    if (reading->inside != INSIDE_COUNT) estimate->high = INFINITY;
  }
}

/* Drops private keys below the threshold, and returns the number of the other estimates. */
static int select_keys(const struct reading *reading, const int64_t *values,
                       struct estimate *estimates, int used) {
  const struct layout *shape = reading->shape;
  double threshold = estimate_threshold(reading);
  int kept = 0;
  for (int i = 0; i < used; i++) {
    const int64_t *counts = &values[(int64_t)estimates[i].cell * shape->width];
    double count = 0; /* the noisy count that selects the key, in lattice steps */
    for (int j = 0; j < shape->counted; j++) count += (double)counts[j];
    if (count < threshold) continue;
    estimates[kept] = estimates[i];
    if (!shape->selects) condition_on_selection(reading, &estimates[kept], count, threshold);
    kept++;
  }
  return kept;
}

/* ---- points ---------------------------------------------------------------------------------- */

/* Moves the estimates of an OU release towards its centre, for kinds that are not linear in the
** point: averages, spreads and quantiles.
**
** If a radius is given, each value (a vector as a whole) moves to the nearest value within the
** radius of the centre. If the true value is within the radius, the moved value is at least as
** close to it, whatever the noise is. The values are not scaled as in Theorem 8: that is optimal
** for noise of known variance without clamping, but makes the worst case of a clamped average
** worse.
**
** If theta is given, each value shrinks towards the centre, by the factor that the process has when
** its noise has the variance of the noise of the value (to first order).
**
** The intervals keep their ends, because they hold the true values. They grow where a value leaves
** them. */
static void move_towards_centre(const struct reading *reading, struct estimate *estimates,
                                int count) {
  const struct view *view = &reading->view;
  double centre = view->centre, norm = 0;
  int is_vector = reading->shape->family->has_vector;
  for (int i = 0; i < count && is_vector; i++) norm = hypot(norm, estimates[i].value - centre);
  for (int i = 0; i < count; i++) {
    double x = estimates[i].value, noise = estimates[i].stddev;
    if (view->theta == view->theta) {
      double shrink = estimate_shrink(view, noise * noise);
      move(&estimates[i], centre + shrink * (x - centre));
      estimates[i].stddev = published_up(shrink * noise);
    } else if (is_vector) {
      if (norm > view->radius) move(&estimates[i], centre + view->radius / norm * (x - centre));
    } else {
      move(&estimates[i], clamp(x, centre - view->radius, centre + view->radius));
    }
  }
}

int estimate_point(struct reading *reading, const int64_t *values, struct estimate *estimates) {
  const struct layout *shape = reading->shape;
  reading->shrink = 1;
  int used = reading->inside ? shape->family->inside(reading, values, estimates)
             : shape->ways   ? estimate_tables(reading, values, estimates)
                             : shape->family->estimate(reading, values, estimates);
  if (reading->view.is_ou && !shape->family->is_linear)
    move_towards_centre(reading, estimates, used);
  if (shape->max_groups) used = select_keys(reading, values, estimates, used);
  if (!shape->family->range) return used;
  struct range range = shape->family->range(reading->question, reading->root);
  if (reading->inside == INSIDE_COUNT) range = (struct range){-INFINITY, INFINITY};
  if (reading->inside == INSIDE_AVERAGE)
    range = (struct range){reading->question->low, reading->question->high};
  for (int i = 0; i < used; i++) {
    estimates[i].value = clamp(estimates[i].value, range.least, range.most);
    estimates[i].low = clamp(estimates[i].low, range.least, range.most);
    estimates[i].high = clamp(estimates[i].high, range.least, range.most);
  }
  return used;
}
