/* test_tree.c: compares quantiles.c with the normal equations, solved by Gaussian
** elimination in long double, with the max-min formula of isotonic regression, and with simulated
** noise. */
#include "check.h"
#include "random.h"

#include <stdlib.h>
#include <string.h>

#include "../../ext/mechanism/quantiles.c"

/* ---- least squares --------------------------------------------------------------------------- */

enum { LEVELS = 6, LEAVES = 1 << LEVELS, NODES = 2 * LEAVES - 2 };

/* The nodes of each level, from the top: the binary tree, and the tree for the sum norm with the
** same number of leaves. */
struct form {
  struct tree tree;
  int levels, bits[LEVELS];
};
static const struct form forms[] = {
    {{1, 1}, 1, {1}},          {{2, 2}, 2, {1, 2}},
    {{2, 1}, 1, {2}},          {{3, 3}, 3, {1, 2, 3}},
    {{4, 4}, 4, {1, 2, 3, 4}}, {{4, 1}, 1, {4}},
    {{5, 2}, 2, {2, 5}},       {{5, 5}, 5, {1, 2, 3, 4, 5}},
    {{6, 2}, 2, {3, 6}},       {{6, 6}, 6, {1, 2, 3, 4, 5, 6}},
    {{6, 4}, 4, {1, 3, 4, 6}},
};
enum { FORMS = sizeof forms / sizeof *forms };

static int nodes_of(const struct form *form) {
  int nodes = 0;
  for (int i = 0; i < form->levels; i++) nodes += 1 << form->bits[i];
  return nodes;
}

/* Returns whether a leaf is below node `node`, with the numbering of layout.h. */
static int is_below(int leaf, int node, const struct form *form) {
  int level = 0;
  for (; node >= 1 << form->bits[level]; level++) node -= 1 << form->bits[level];
  return leaf >> (form->tree.bits - form->bits[level]) == node;
}

/* Solves (A'A) x = right, where A is the matrix from leaves to nodes. The result replaces right. */
static void solve_normal(const struct form *form, long double *right) {
  static long double matrix[LEAVES][LEAVES];
  int leaves = 1 << form->tree.bits, nodes = nodes_of(form);
  for (int i = 0; i < leaves; i++) {
    for (int j = 0; j < leaves; j++) {
      matrix[i][j] = 0;
      for (int k = 0; k < nodes; k++) matrix[i][j] += is_below(i, k, form) && is_below(j, k, form);
    }
  }
  for (int i = 0; i < leaves; i++) { /* the matrix is positive definite, so no pivots are needed */
    for (int j = i + 1; j < leaves; j++) {
      long double factor = matrix[j][i] / matrix[i][i];
      for (int k = i; k < leaves; k++) matrix[j][k] -= factor * matrix[i][k];
      right[j] -= factor * right[i];
    }
  }
  for (int i = leaves - 1; i >= 0; i--) {
    for (int j = i + 1; j < leaves; j++) right[i] -= matrix[i][j] * right[j];
    right[i] /= matrix[i][i];
  }
}

static void shapes_of_trees(void) {
  for (int i = 0; i < FORMS; i++) {
    int first = 0;
    for (int level = 1; level <= forms[i].levels; level++) {
      CHECK(tree_bits(forms[i].tree, level) == forms[i].bits[level - 1], "form %d", i);
      CHECK(tree_level(forms[i].tree, level) == first, "form %d level %d", i, level);
      first += 1 << forms[i].bits[level - 1];
    }
    CHECK(tree_level(forms[i].tree, forms[i].levels + 1) == first, "form %d", i);
  }
  for (int bits = 1; bits <= 16; bits++) {
    struct tree binary = tree_make(bits, 0), wide = tree_make(bits, 1);
    CHECK(binary.bits == bits && binary.levels == bits, "%d levels", binary.levels);
    CHECK(wide.bits == bits && wide.levels == (int)ceil(bits / 4.0), "%d levels", wide.levels);
  }
}

static void leaves_are_least_squares(void) {
  for (int f = 0; f < FORMS; f++) {
    const struct form *form = &forms[f];
    int leaves = 1 << form->tree.bits, nodes = nodes_of(form);
    for (int run = 0; run < 10; run++) {
      double y[NODES], got[LEAVES];
      long double want[LEAVES];
      for (int i = 0; i < nodes; i++) y[i] = run == 0 ? (i == nodes / 2) : 1000 * normal();
      for (int i = 0; i < leaves; i++) {
        want[i] = 0;
        for (int k = 0; k < nodes; k++)
          if (is_below(i, k, form)) want[i] += y[k];
      }
      solve_normal(form, want);
      CHECK(tree_leaves(y, form->tree, got) == 1, "memory");
      for (int i = 0; i < leaves; i++)
        CHECK(fabsl(got[i] - want[i]) <= 1e-11L, "form %d leaf %d: %.17g, %.19Lg", f, i, got[i],
              want[i]);
    }
  }
}

/* tree_leaves() does not change counts that are consistent already, for trees of every size. It
** does not modify the nodes. */
static void consistent_nodes_are_kept(void) {
  for (int i = 0; i < 32; i++) {
    struct tree tree = tree_make(1 + i / 2, i % 2);
    int leaves = 1 << tree.bits, nodes = tree_level(tree, tree.levels + 1);
    double *y = calloc((size_t)nodes, sizeof *y), *got = malloc(sizeof *got * (size_t)leaves);
    double *last = y + nodes - leaves, *kept = malloc(sizeof *y * (size_t)nodes);
    for (int j = 0; j < leaves; j++) {
      last[j] = (double)(random_bits() % 1000);
      double *level = y;
      for (int k = 1; k < tree.levels; k++) {
        int bits = k * tree.bits / tree.levels;
        level[j >> (tree.bits - bits)] += last[j];
        level += 1 << bits;
      }
    }
    memcpy(kept, y, sizeof *y * (size_t)nodes);
    CHECK(tree_leaves(y, tree, got) == 1, "memory");
    CHECK(memcmp(kept, y, sizeof *y * (size_t)nodes) == 0, "bits %d: nodes changed", tree.bits);
    double most = 0;
    for (int j = 0; j < leaves; j++) most = fmax(most, fabs(got[j] - last[j]));
    CHECK(most <= 1e-7, "bits %d: off by %g", tree.bits, most);
    free(y);
    free(got);
    free(kept);
  }
}

/* ---- the error in rank ----------------------------------------------------------------------- */

static void rank_stddev_by_elimination(void) {
  const double quantiles[] = {0, 0.1, 0.25, 0.5, 0.7, 0.99, 1};
  for (int f = 0; f < FORMS; f++) {
    int leaves = 1 << forms[f].tree.bits;
    for (int i = 0; i < 7 * (leaves + 1); i += leaves > 16 ? 5 : 1) {
      int place = i / 7;
      double q = quantiles[i % 7];
      long double c[LEAVES], x[LEAVES], variance = 0;
      for (int j = 0; j < leaves; j++)
        x[j] = c[j] = j < place ? 1 - (long double)q : -(long double)q;
      solve_normal(&forms[f], x);
      for (int j = 0; j < leaves; j++) variance += c[j] * x[j];
      double got = tree_rank_stddev(forms[f].tree, q, place), want = (double)sqrtl(variance);
      CHECK(fabs(got - want) <= 1e-12 + 1e-12 * want, "form %d q %g place %d: %.17g, %.17g", f, q,
            place, got, want);
    }
  }
}

/* With 20000 trees, the standard error is 0.5%. The test allows six standard errors, which one of
** the cases exceeds by chance with probability 1e-8. */
static void rank_stddev_by_simulation(void) {
  const struct {
    struct tree tree;
    int place;
    double q;
  } cases[] = {{{1, 1}, 1, 0.5}, {{4, 4}, 8, 0.5}, {{6, 6}, 13, 0.3}, {{6, 2}, 64, 0.9}};
  for (int c = 0; c < 4; c++) {
    struct tree tree = cases[c].tree;
    int leaves = 1 << tree.bits, nodes = tree_level(tree, tree.levels + 1);
    double squares = 0, y[NODES], x[LEAVES];
    enum { RUNS = 20000 };
    for (int run = 0; run < RUNS; run++) {
      double error = 0;
      for (int i = 0; i < nodes; i++) y[i] = normal();
      tree_leaves(y, tree, x);
      for (int i = 0; i < leaves; i++)
        error += (i < cases[c].place ? 1 - cases[c].q : -cases[c].q) * x[i];
      squares += error * error;
    }
    double got = sqrt(squares / RUNS), want = tree_rank_stddev(tree, cases[c].q, cases[c].place);
    CHECK(fabs(got / want - 1) <= 0.03, "case %d: %g of %g", c, got, want);
  }
}

/* Compares the closed form with Simpson's rule, which is exact for the square inside each leaf. */
static void typical_stddev_by_integration(void) {
  for (int bits = 1; bits <= 10; bits++) {
    for (int is_l1 = 0; is_l1 < 2; is_l1++) {
      struct tree tree = tree_make(bits, is_l1);
      for (double q = 0; q <= 1; q += 0.125) {
        double sum = 0;
        for (int i = 0; i < 3 << bits; i++) {
          double stddev = tree_rank_stddev(tree, q, i / 3 + i % 3 / 2.0);
          sum += stddev * stddev * (i % 3 == 1 ? 4 : 1) / 6;
        }
        CHECK_CLOSE(tree_typical_stddev(tree, q), sqrt(ldexp(sum, -bits)), 1e-12);
      }
    }
  }
}

/* Returns the error in rank of the median, root mean square over 64 places, for a sensitivity of
** 1. */
static double error_of(struct tree tree, int is_l1) {
  double sum = 0, places = 1 << tree.bits;
  for (int i = 0; i < 64; i++) {
    double place = 1 + floor(fmod((i + 0.5) * 0.6180339887498949, 1) * (places - 1));
    double stddev = tree_rank_stddev(tree, 0.5, place) * (is_l1 ? tree.levels : sqrt(tree.levels));
    sum += stddev * stddev / 64;
  }
  return sqrt(sum);
}

/* No other number of levels has a much smaller error in rank than the one of tree_make(). */
static void the_number_of_levels_is_good(void) {
  for (int bits = 1; bits <= 14; bits++) {
    for (int is_l1 = 0; is_l1 < 2; is_l1++) {
      struct tree tree = tree_make(bits, is_l1);
      double ours = error_of(tree, is_l1), least = ours;
      for (tree.levels = 1; tree.levels <= bits; tree.levels++)
        least = fmin(least, error_of(tree, is_l1));
      CHECK(ours <= 1.06 * least, "bits %d is_l1 %d: %g of %g", bits, is_l1, ours, least);
    }
  }
}

/* ---- running totals -------------------------------------------------------------------------- */

/* Returns the value of the isotonic regression at place i: the maximum over j <= i of the minimum
** over k >= i of the mean of elements j to k. */
static double max_min(const double *sums, int count, int at) {
  double most = -INFINITY;
  for (int j = 0; j <= at; j++) {
    double least = INFINITY, mean = 0;
    for (int k = j; k < count; k++) {
      mean += (sums[k] - mean) / (k - j + 1);
      if (k >= at) least = fmin(least, mean);
    }
    most = fmax(most, least);
  }
  return most;
}

static void running_totals_are_isotonic(void) {
  enum { MOST = 40 };
  for (int run = 0; run < 600; run++) {
    int count = 1 + (int)(random_bits() % MOST);
    double leaves[MOST], sums[MOST], totals[MOST + 1], sum = 0;
    double mean = run % 3 == 0 ? 5 : run % 3 == 1 ? 0 : -1;
    for (int i = 0; i < count; i++) {
      leaves[i] = run % 7 == 0 ? (double)(random_bits() % 5) - 1 : mean + 3 * normal();
      sums[i] = sum += leaves[i];
    }
    CHECK(tree_running(leaves, count, totals) == 1, "memory");
    CHECK(totals[0] == 0, "run %d: begins with %g", run, totals[0]);
    for (int i = 0; i < count; i++) {
      double want = fmax(max_min(sums, count, i), 0);
      CHECK(fabs(totals[i + 1] - want) <= 1e-11, "run %d at %d: %.17g, %.17g", run, i,
            totals[i + 1], want);
      CHECK(totals[i + 1] >= totals[i], "run %d at %d decreases", run, i);
    }
  }
}

/* If no count is negative, tree_running() returns exactly the running totals. */
static void true_counts_are_kept(void) {
  enum { COUNT = 1000 };
  double leaves[COUNT], totals[COUNT + 1], sum = 0;
  for (int i = 0; i < COUNT; i++) leaves[i] = (double)(random_bits() % 3);
  CHECK(tree_running(leaves, COUNT, totals) == 1, "memory");
  for (int i = 0; i < COUNT; i++) {
    sum += leaves[i];
    CHECK(totals[i + 1] == sum, "%d: %g of %g", i, totals[i + 1], sum);
  }
  for (int i = 0; i < COUNT; i++) leaves[i] = -1 - uniform();
  CHECK(tree_running(leaves, COUNT, totals) == 1, "memory");
  for (int i = 0; i <= COUNT; i++) CHECK(totals[i] == 0, "%d: %g", i, totals[i]);
}

/* ---- places ---------------------------------------------------------------------------------- */

static void places(void) {
  static const struct {
    double totals[6], rank, place;
  } cases[] = {
      {{0, 1, 2, 3, 4, 5}, 2.5, 2.5}, {{0, 1, 2, 3, 4, 5}, 0, 0},   {{0, 1, 2, 3, 4, 5}, 5, 5},
      {{0, 1, 2, 3, 4, 5}, 6, 5},     {{0, 1, 2, 3, 4, 5}, -1, 0},  {{0, 1, 2, 3, 4, 5}, 3, 3},
      {{0, 0, 0, 4, 4, 8}, 1, 2.25},  {{0, 0, 0, 4, 4, 8}, 4, 3},   {{0, 0, 0, 4, 4, 8}, 6, 4.5},
      {{0, 0, 0, 0, 0, 2}, 1, 4.5},   {{0, 2, 2, 2, 2, 2}, 1, 0.5}, {{0, 2, 2, 2, 2, 2}, 2, 1},
  };
  for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
    double place = tree_place(cases[i].totals, 5, cases[i].rank);
    CHECK(place == cases[i].place, "case %d: %.17g", i, place);
  }
}

/* At the place of a rank, the running total equals the rank, and just before this place the total
** is lower. The places of larger ranks are not smaller. */
static void places_invert_totals(void) {
  enum { COUNT = 64 };
  for (int run = 0; run < 500; run++) {
    double leaves[COUNT], totals[COUNT + 1], previous = 0;
    for (int i = 0; i < COUNT; i++)
      leaves[i] = run % 2 ? (double)(random_bits() % 3) : normal() + 0.5;
    CHECK(tree_running(leaves, COUNT, totals) == 1, "memory");
    for (int i = 0; i <= 100 && totals[COUNT] > 0; i++) {
      double rank = totals[COUNT] * i / 100, place = tree_place(totals, COUNT, rank);
      CHECK(place >= previous && place >= 0 && place <= COUNT, "run %d: %g after %g", run, place,
            previous);
      previous = place;
      int leaf = place < COUNT ? (int)place : COUNT - 1;
      double there = totals[leaf] + (place - leaf) * (totals[leaf + 1] - totals[leaf]);
      CHECK(fabs(there - rank) <= 1e-12 * totals[COUNT], "run %d: %g of %g", run, there, rank);
      int before = (int)ceil(place) - 1; /* the running total reaches the rank only here */
      CHECK(rank == 0 || before < 0 || totals[before] < rank, "run %d: reached before %g", run,
            place);
    }
  }
}

int main(void) {
  RUN(shapes_of_trees);
  RUN(leaves_are_least_squares);
  RUN(consistent_nodes_are_kept);
  RUN(rank_stddev_by_elimination);
  RUN(rank_stddev_by_simulation);
  RUN(typical_stddev_by_integration);
  RUN(the_number_of_levels_is_good);
  RUN(running_totals_are_isotonic);
  RUN(true_counts_are_kept);
  RUN(places);
  RUN(places_invert_totals);
  FINISH();
}
