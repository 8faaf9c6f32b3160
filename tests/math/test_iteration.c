/* test_iteration.c: compares math.h with its definitions and limits.
** tests/papers/test_papers_accuracy.py compares it with mpmath. */
#include "check.h"
#include "random.h"

#include "math/math.h"

static void contraction_at_its_edge(void) {
  CHECK_CLOSE(printed_contraction(2.0 / 3.0, 2.0, 1.0), 1.0 / 3.0, 1e-14);
  CHECK_CLOSE(printed_contraction(1.0, 1.0, 1.0), 0.0, 0.0);
  CHECK_CLOSE(printed_contraction(3.0, 0.0, 0.0), 1.0, 0.0);
  CHECK_CLOSE(printed_contraction(1.0, 1.0 + 0x1p-30, 1.0 - 0x1p-30), 0x1p-30, 1e-14);
  CHECK(isnan(printed_contraction(1.0 + 1e-12, 1.0, 1.0)), "eta > 2/(beta + rho)");
  CHECK_CLOSE(sgd_contraction(3.0, 1.0, 0.5), 2.0, 0.0);
}

static void inverse_geometric_sums(void) {
  for (double lipschitz = 0.125; lipschitz < 4.0; lipschitz *= 1.1) {
    double sum = 0.0;
    for (int terms = 0; terms < 40; terms++) {
      sum += pow(lipschitz, -2.0 * terms);
      CHECK_CLOSE(scaled_value(inverse_geometric(lipschitz, terms)), 1.0 / sum, 1e-13);
    }
  }
  CHECK_CLOSE(scaled_value(inverse_geometric(1.0, 9.0)), 0.1, 1e-15);
  CHECK_CLOSE(scaled_value(inverse_geometric(1.0 - 0x1p-53, 1e6)), 1.0 / 1000001.0, 1e-9);
  CHECK_CLOSE(scaled_value(inverse_geometric(0.0, 3.0)), 0.0, 0.0);
  CHECK_CLOSE(scaled_value(inverse_geometric(1e-200, 2.0)), 0.0, 0.0);
}

static void random_paths_by_definition(void) {
  for (int run = 0; run < 500; run++) {
    int count = 1 + run % 8, fixed = run % 5 == 0; /* whether one map is constant */
    double alpha = 1 + 9 * uniform(), distance = 5 * uniform(), noise = 0.1 + uniform();
    double l = 0.1 + 2 * uniform(), product = 1, given = 0, sum = 0, powers = 0;
    struct path_step steps[8];
    for (int j = 0; j < count; j++)
      steps[j] = (struct path_step){.lipschitz = fixed && j == count / 2 ? 0 : 0.1 + uniform(),
                                    .sigma = 0.1 + uniform(),
                                    .shift = uniform()};
    for (int j = 0; j < count; j++) {
      product *= steps[j].lipschitz;
      given += pow(product * steps[count - 1 - j].shift / steps[j].sigma, 2);
      sum += pow(steps[j].sigma / product, 2);
      powers += pow(l, -2 * (j + 1));
    }
    CHECK_CLOSE(given_path_rdp(alpha, steps, count), alpha / 2 * given, 1e-12);
    CHECK_CLOSE(best_path_rdp(alpha, steps, count, distance), alpha / 2 * distance * distance / sum,
                1e-12);
    double ratio = pow(distance / noise, 2);
    CHECK_CLOSE(gaussian_rdp(alpha, distance, noise), alpha / 2 * ratio, 1e-12);
    CHECK_CLOSE(path_iteration_rdp(alpha, distance, noise, l, count), alpha / 2 * ratio / powers,
                1e-12);
    CHECK_CLOSE(printed_iteration_rdp(alpha, distance, noise, l, count),
                alpha / 2 * ratio * pow(l, count + 1) / count, 1e-12);
    CHECK_CLOSE(lipschitz_gaussian_rdp(alpha, distance, noise, 2.0, l),
                alpha / 2 * distance * distance / (noise * noise + pow(2.0 / l, 2)), 1e-12);

    double rho = fixed ? 0 : uniform(), beta = rho + uniform(), eta = 2 / (beta + rho) * uniform();
    struct sgd sgd = {
        1 + run % 3, 1 + run % 3 + run % 7, 0.5 + uniform(), noise, eta, beta, rho, 1};
    double after = run % 7, step = sqrt(1 - 2 * eta * beta * rho / (beta + rho));
    double rate = 2 * pow(sgd.lipschitz_loss / noise, 2);
    double printed = after > 0 ? rate * pow(step, after + 1) / after : rate;
    double tight = fmax(fabs(1 - eta * rho), fabs(1 - eta * beta)), backward = 0, best = 0;
    for (int j = 0; j <= after; j++) backward += pow(step, -2 * j), best += pow(tight, -2 * j);
    CHECK_CLOSE(sgd_rate_printed(&sgd), printed, 1e-9);
    CHECK_CLOSE(sgd_rate_path(&sgd), rate / backward, 1e-9);
    CHECK_CLOSE(sgd_rate_best(&sgd), rate / best, 1e-9);
    double epsilon = printed * 3 * uniform(), gap = epsilon - printed;
    CHECK_CLOSE(sgd_delta_rdp(&sgd, epsilon), gap > 0 ? exp(-gap * gap / 4 / printed) : 1, 1e-9);
  }
  CHECK_CLOSE(given_path_rdp(INFINITY, &(struct path_step){1, 1, 0}, 1), 0, 0);
  CHECK_CLOSE(lipschitz_gaussian_rdp(INFINITY, 0, 1, 1, 1), 0, 0);
  CHECK_CLOSE(lipschitz_gaussian_rdp(INFINITY, 1, 1, 1, 0), 0, 0);
  CHECK_CLOSE(path_iteration_rdp(INFINITY, 1e-300, 1e300, 0.5, 9), INFINITY, 0);
  CHECK_CLOSE(printed_iteration_rdp(INFINITY, 1e-300, 1e300, 0.5, 9), INFINITY, 0);
}

/* For millions of later steps, the code stops refining, and the bounds stay valid and in order. */
static void very_many_steps(void) {
  struct sgd sgd = {1, 3e6, 1, 1, 0.5, 0.5, 0.0, 5};
  double iterated = sgd_delta_iterated(&sgd, 1e-6), printed = sgd_delta_printed(&sgd, 1e-6);
  CHECK(iterated <= printed && iterated >= 0.0, "%g, %g", iterated, printed);
}

int main(void) {
  RUN(contraction_at_its_edge);
  RUN(inverse_geometric_sums);
  RUN(random_paths_by_definition);
  RUN(very_many_steps);
  FINISH();
}
