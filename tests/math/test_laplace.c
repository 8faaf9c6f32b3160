/* test_laplace.c: tests sums and vectors of Laplace noise. tests/papers/test_papers_accuracy.py
** compares the divergences of math.h with mpmath. */
#include "check.h"

#include <stdlib.h>

#include "math/math.h"

static void hockey_stick_and_its_logarithm(void) {
  for (double distance = 1e-10; distance < 20.0; distance *= 7.0) {
    double value = laplace_hockey_stick(0.3, 0.3 + distance);
    CHECK_CLOSE(laplace_log_hockey_stick(0.3, 0.3 + distance), log(value), 1e-6);
  }
  CHECK_CLOSE(laplace_log_hockey_stick(0.0, 120.0), -exp(-60.0), 1e-14);
  CHECK_CLOSE(laplace_hockey_stick(2.0, 2.0), 0.0, 0.0);
  CHECK(laplace_log_hockey_stick(2.0, 1.0) == -INFINITY, "not -infinity");
}

/* Compares laplace_sum_quantile() with the tail F_n(x) = P(sum of n Laplace variables > x). The
** test computes the tail from F_n(x) = int F_(n-1)(x - y) e^-|y|/2 dy on a grid, by the trapezoidal
** rule (its relative error is below 1e-3). */
static void sums_of_noise_by_convolution(void) {
  enum { SIDE = 4000, GRID = 2 * SIDE + 1 };
  static double tail[GRID], next[GRID];
  const double step = 0.005; /* x from -20 to 20 */
  for (int i = 0; i < GRID; i++) {
    double x = (i - SIDE) * step;
    tail[i] = x >= 0 ? exp(-x) / 2 : 1 - exp(x) / 2;
  }
  for (int terms = 1; terms <= 3; terms++) {
    for (double p = 0.4; p > 1e-3; p /= 3) {
      double x = laplace_sum_quantile(terms, p), place = x / step + SIDE;
      int i = (int)place;
      double got = tail[i] + (place - i) * (tail[i + 1] - tail[i]);
      CHECK(fabs(got / p - 1) <= 4e-4, "%d noises, %g: %g", terms, p, got);
    }
    for (int i = 0; i < GRID && terms < 3; i++) {
      double sum = 0;
      for (int j = 0; j < GRID; j += 10) {
        int from = i - (j - SIDE);
        double before = from < 0 ? 1 : from >= GRID ? 0 : tail[from];
        sum += before * exp(-fabs((j - SIDE) * step)) / 2 * step * 10;
      }
      next[i] = sum;
    }
    for (int i = 0; i < GRID && terms < 3; i++) tail[i] = next[i];
  }
}

static void sums_of_noise_in_closed_form(void) {
  for (double p = 0.5; p > 1e-300; p /= 1e7) {
    double one = laplace_sum_quantile(1, p), two = laplace_sum_quantile(2, p);
    double three = laplace_sum_quantile(3, p);
    CHECK(fabs(one - -log(2 * p)) <= 1e-13 * (1 + one), "one, %g: %.17g", p, one);
    CHECK_CLOSE(log((2 + two) / 4) - two, log(p), 1e-13);
    CHECK_CLOSE(log((8 + 5 * three + three * three) / 16) - three, log(p), 1e-13);
  }
}

/* ---- vectors ------------------------------------------------------------------------------- */

/* The parameters of a Renyi divergence, namely that of independent discrete Laplace noise on
** several coordinates from the same noise after an integer shift. The test adds up all outcomes in
** a box. The outcomes outside the box would add less than 1e-12. */
struct box {
  int dimension, scale, side;
  double alpha;
  double terms[3][400]; /* P(y)^alpha P(y - shift)^(1 - alpha) for each coordinate */
};

static void put_shift(struct box *box, int coordinate, int shift) {
  double h = 1.0 / box->scale, p = exp(-h);
  for (int i = 0; i <= 2 * box->side; i++) {
    int y = i - box->side;
    double exponent = -h * (box->alpha * abs(y) + (1 - box->alpha) * abs(y - shift));
    box->terms[coordinate][i] = (1 - p) / (1 + p) * exp(exponent);
  }
}

static double joint_divergence(const struct box *box) {
  double sum = 0;
  int end = 2 * box->side + 1;
  for (int i = 0; i < end; i++) {
    for (int j = 0; j < end; j++) {
      double two = box->terms[0][i] * box->terms[1][j];
      if (box->dimension == 2) sum += two;
      for (int k = 0; k < end && box->dimension == 3; k++) sum += two * box->terms[2][k];
    }
  }
  return log(sum) / (box->alpha - 1);
}

static double check_shift(struct box *box, const int *shift) {
  int size = 0;
  for (int i = 0; i < box->dimension; i++) {
    put_shift(box, i, shift[i]);
    size += abs(shift[i]);
  }
  double found = joint_divergence(box), bound = discrete_laplace_rdp(box->alpha, size, box->scale);
  CHECK(found <= bound * (1 + 1e-9) + 1e-11,
        "order %g, scale %d, shift (%d, %d, %d): %.17g of %.17g", box->alpha, box->scale, shift[0],
        shift[1], shift[2], found, bound);
  return found / bound;
}

/* Tests all integer shifts whose sum of magnitudes is at most `most`. If a shift moves one
** coordinate only, its divergence must equal the charged curve. If a shift moves several
** coordinates, its divergence must be smaller. */
static void check_shifts(int dimension, int scale, int most) {
  static const double orders[] = {1.03125, 1.5, 2, 8, 64};
  struct box box = {
      .dimension = dimension, .scale = scale, .side = dimension == 2 ? 60 * scale : 34 * scale};
  for (int o = 0; o < 5; o++) {
    box.alpha = orders[o];
    for (int a = -most; a <= most; a++) {
      for (int b = -most; b <= most; b++) {
        for (int c = dimension == 3 ? -most : 0; c <= (dimension == 3 ? most : 0); c++) {
          int shift[3] = {a, b, c}, size = abs(a) + abs(b) + abs(c);
          if (size == 0 || size > most) continue;
          if (dimension == 3 && !(0 <= a && a <= b))
            continue; /* dimension 2 tests all signs and orders */
          double part = check_shift(&box, shift);
          int alone = abs(a) == size || abs(b) == size || abs(c) == size;
          CHECK(alone ? fabs(part - 1) <= 1e-9 + 1e-11 / box.alpha : part < 1 - 1e-6,
                "order %g: %.12g of the bound", box.alpha, part);
        }
      }
    }
  }
}

static void vectors_by_enumeration(void) {
  for (int scale = 1; scale <= 3; scale++) check_shifts(2, scale, 6);
  check_shifts(3, 1, 4);
  check_shifts(3, 2, 2);
}

/* The divergence of one coordinate is convex in the shift, and 0 without a shift. The bound for
** vectors follows from this. */
static void curves_are_convex_in_the_shift(void) {
  for (double alpha = 1 + 0x1p-8; alpha < 2e6; alpha = 1 + 4 * (alpha - 1)) {
    for (double scale = 1; scale < 1e4; scale *= 3) {
      double before = 0, here = discrete_laplace_rdp(alpha, 1, scale);
      for (int s = 1; s < 200; s++) {
        double after = discrete_laplace_rdp(alpha, s + 1, scale);
        CHECK(after - here >= (here - before) * (1 - 1e-9) - 1e-12 * here,
              "order %g scale %g at %d", alpha, scale, s);
        before = here;
        here = after;
      }
    }
  }
}

int main(void) {
  RUN(hockey_stick_and_its_logarithm);
  RUN(sums_of_noise_by_convolution);
  RUN(sums_of_noise_in_closed_form);
  RUN(vectors_by_enumeration);
  RUN(curves_are_convex_in_the_shift);
  FINISH();
}
