"""Compares the divergences of the mechanisms that are not Gaussian, through mechanisms.c, with high precision: the relative error
is at most 1e-12. Also checks the inequalities on which the rates depend. Only the choice of arguments is random."""

import os
import pathlib
import random
import subprocess

import mpmath as mp
import pytest

from mechanism_truth import continuous_laplace, divergence, kernel_curve, laplace_curve, laplace_sum, response_curve

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
INFINITY = float("inf")
SCALES = [1, 2, 5, 37, 1000, 2**20, 1500001, 2**30]
SOME_ORDERS = [1 + 2.0**-8, 1.05, 1.5, 2.0, 5.0, 30.0, 1000.0, 2.0**20, INFINITY]

pytestmark = pytest.mark.plain  # this file links the static library without the sanitizers' runtime


@pytest.fixture(scope="module")
def evaluate(tmp_path_factory):
    path = tmp_path_factory.mktemp("mechanisms") / "mechanisms"
    subprocess.run(["cc", f"-I{ROOT}/ext", str(HERE / "mechanisms.c"), str(BUILD / "rooms.a"), "-o", str(path),
                    "-l:libgsl.a", "-l:libgslcblas.a", "-lm"], check=True)

    def run(requests):
        text = "\n".join(" ".join(repr(x) if isinstance(x, float) else str(x) for x in request) for request in requests)
        done = subprocess.run([path], input=text, capture_output=True, text=True, check=True)
        numbers = [float(line) for line in done.stdout.split()]
        assert len(numbers) == len(requests)
        return numbers

    return run


def check(requests, got, truths, tolerance="1e-12"):
    for request, value, truth in zip(requests, got, truths):
        assert abs(mp.mpf(value) - truth) <= mp.mpf(tolerance) * abs(truth), (request, value, mp.nstr(truth, 20))


def distances(scale):
    return sorted({1, 2, 3, 7, 100, max(1, scale // 1000), max(1, scale // 7), scale, 3 * scale, 10 * scale, 300 * scale})


def test_the_closed_form_is_the_sum_over_outcomes():
    """Compares the closed form, which the next test uses as the reference, with the definition."""
    with mp.workdps(40):
        for scale in (1, 2, 5, 37):
            for s in (1, 2, 3, 7, 100):
                for alpha in SOME_ORDERS[:-2]:
                    assert abs(laplace_curve(alpha, s, scale) / laplace_sum(alpha, s, scale) - 1) < mp.mpf(10) ** -25


def test_discrete_laplace(evaluate):
    requests = [("d", alpha, s, scale) for scale in SCALES for s in distances(scale) for alpha in SOME_ORDERS]
    with mp.workdps(60):
        check(requests, evaluate(requests), [laplace_curve(*request[1:]) for request in requests])


def test_discrete_laplace_near_order_one(evaluate):
    """Tests orders close to 1, which are the filter orders of very large budgets."""
    requests = [("d", 1 + 2.0**-k, s, scale) for scale in SCALES for s in distances(scale) for k in (12, 16, 24, 40)]
    with mp.workdps(60):
        check(requests, evaluate(requests), [laplace_curve(*request[1:]) for request in requests])


def test_discrete_laplace_costs_little_more_than_continuous():
    """The divergence of the discrete law is at most 1 + 1/(2 scale) times that of the continuous law, at every order including 1.
    The bound on rates uses this. The divergence of continuous Laplace noise at order alpha is at most alpha times that at
    order 1."""
    rng = random.Random(3)
    with mp.workdps(60):
        for _ in range(300):
            scale = rng.choice([1, 1, 2, 3, 10, 1000, 2**20])
            s = max(1, int(scale * 10 ** rng.uniform(-3, 2)))
            alpha = 1 + 2.0 ** rng.uniform(-20, 20)
            z = mp.mpf(s) / scale
            discrete, continuous = laplace_curve(alpha, s, scale), continuous_laplace(alpha, z)
            assert continuous * (1 - mp.mpf(10) ** -30) <= discrete <= continuous * (1 + mp.mpf(1) / (2 * scale))
            assert continuous <= alpha * continuous_laplace(1, z)


def test_a_discrete_release_is_within_its_rate_at_every_order():
    """The divergence at order alpha is at most alpha times the bound on the rate."""
    rng = random.Random(4)
    with mp.workdps(60):
        for _ in range(300):
            scale = rng.choice([1, 2, 10, 2**20])
            s = max(1, int(scale * 10 ** rng.uniform(-4, 2.5)))
            rate = continuous_laplace(1, mp.mpf(s) / scale) * (1 + mp.mpf(1) / (2 * scale))
            for alpha in (1 + 2.0**-30, 1.004, 1.1, 2.0, 3.0, 10.0, 1e4):
                assert laplace_curve(alpha, s, scale) <= alpha * rate


def test_distance_and_epsilon_of_a_rate(evaluate):
    rates = [1e-12, 1e-9, 1e-6, 0.03, 0.2, 0.24999, 0.25, 0.5, 1.0, 3.0, 50.0, 1000.0, 1e6]
    with mp.workdps(60):
        for what, cost in (("z", lambda z: z + mp.exp(-z) - 1), ("e", lambda e: e * mp.tanh(e / 2))):
            requests = [(what, rate) for rate in rates]
            truths = [mp.findroot(lambda x: cost(x) - mp.mpf(rate), mp.sqrt(2 * mp.mpf(rate)) if rate < 1 else rate + 1)
                      for rate in rates]
            check(requests, evaluate(requests), truths)


def test_a_response_costs_at_most_alpha_times_its_divergence():
    with mp.workdps(60):
        for epsilon in (1e-6, 0.01, 0.5, 1.0, 3.0, 20.0, 500.0):
            for alpha in SOME_ORDERS[:-1]:
                assert response_curve(alpha, epsilon) <= alpha * epsilon * mp.tanh(mp.mpf(epsilon) / 2)


def test_a_bounded_range_costs_what_the_worst_of_two_outcomes_does(evaluate):
    """The privacy loss lies in an interval of length epsilon that contains 0. At every order, the divergence is largest if the
    privacy loss takes only the two ends of the interval as values. The position of the interval determines the
    probabilities of these two values. The test searches for the worst position. The charge is never below this
    divergence, and exceeds it by at most a quarter up to epsilon 1."""
    requests = [("b", alpha, epsilon) for epsilon in (1e-3, 0.1, 1.0, 4.0, 20.0, 60.0) for alpha in SOME_ORDERS]
    with mp.workdps(40):
        for (_, alpha, epsilon), value in zip(requests, evaluate(requests)):
            worst = mp.mpf(0)
            for k in range(1, 100):
                high = mp.mpf(epsilon) * k / 100  # losses: `high` with probability p, and high - epsilon
                low = high - mp.mpf(epsilon)
                p = -mp.expm1(low) / (mp.exp(high) - mp.exp(low))
                if alpha == INFINITY:
                    worst = max(worst, high)
                else:
                    worst = max(worst, mp.log(p * mp.exp(alpha * high) + (1 - p) * mp.exp(alpha * low)) / (mp.mpf(alpha) - 1))
            assert worst <= value * (1 + mp.mpf(10) ** -12), (alpha, epsilon)
            if epsilon <= 1 and alpha <= 2:
                assert worst >= value * 0.75, (alpha, epsilon)


def hockey_sticks(epsilon, k):
    """Returns the probabilities (P, Q) of the larger of two losses that are `epsilon` apart. k in (0, 1) says where they lie."""
    high = mp.mpf(epsilon) * k
    low = high - mp.mpf(epsilon)
    q = -mp.expm1(low) / (mp.exp(high) - mp.exp(low))
    return q * mp.exp(high), q


def test_gaussian_noise_is_easier_to_test_than_a_bounded_range(evaluate):
    """For every position of the interval of losses and every slope, the hockey-stick divergence of the two losses is at most that of
    two Gaussians whose distance mu has the charged rate mu^2/2. With a rate 1% smaller, it is not."""
    epsilons = (0.01, 0.4, 3.0, 12.0)
    with mp.workdps(20):
        for epsilon, rate in zip(epsilons, evaluate([("g", epsilon) for epsilon in epsilons])):
            exceeds = False
            for k in [mp.mpf(i) / 10 for i in range(1, 10)]:
                p, q = hockey_sticks(epsilon, k)
                for slope in [epsilon * mp.mpf(i) / 20 for i in range(-20, 21)]:
                    two = max(p - mp.exp(slope) * q, (1 - p) - mp.exp(slope) * (1 - q), 1 - mp.exp(slope), 0)
                    delta = {}
                    for part in (1, mp.mpf("0.99")):
                        mu = mp.sqrt(2 * mp.mpf(rate) * part)
                        delta[part] = mp.ncdf(mu / 2 - slope / mu) - mp.exp(slope) * mp.ncdf(-mu / 2 - slope / mu)
                    assert two <= delta[1] * (1 + mp.mpf(10) ** -12), (epsilon, k, slope)
                    exceeds |= two > delta[mp.mpf("0.99")]
            assert exceeds, epsilon


def gaussian_rate(epsilon):
    """Returns mu^2/2 for mu = 2 PhiInv(1/(1 + e^(-epsilon/2))), by bisection."""
    low, high, target = mp.mpf(0), mp.sqrt(mp.mpf(epsilon)) + mp.mpf(epsilon), mp.log(1 / (1 + mp.exp(mp.mpf(epsilon) / 2)))
    for _ in range(150):
        middle = (low + high) / 2
        low, high = (middle, high) if mp.log(mp.erfc(middle / mp.sqrt(2)) / 2) > target else (low, middle)
    return 2 * low**2


def test_gaussian_rate_and_epsilon_of_a_bounded_range(evaluate):
    epsilons = [1e-7, 1e-4, 0.05, 0.7, 1.9, 5.0, 40.0, 250.0]
    with mp.workdps(40):
        rates = [gaussian_rate(e) for e in epsilons]
        check(epsilons, evaluate([("g", e) for e in epsilons]), rates)
        check(epsilons, evaluate([("h", float(r)) for r in rates]), [mp.mpf(e) for e in epsilons])


def random_kernel(rng, rows, columns):
    kernel = []
    for _ in range(rows):
        weights = [rng.random() ** rng.choice((1, 8)) if rng.random() < 0.8 else 0.0 for _ in range(columns)]
        weights[0] = weights[0] or (0.0 if sum(weights) else 1.0)
        kernel.append([w / sum(weights) for w in weights])
    return kernel


@pytest.mark.parametrize("seed", range(3))
def test_kernels(evaluate, seed):
    rng = random.Random(seed)
    requests, truths = [], []
    with mp.workdps(60):
        for _ in range(60):
            rows, columns = rng.choice((2, 3, 4)), rng.choice((1, 2, 3, 5))
            kernel = random_kernel(rng, rows, columns)
            alpha, epsilon = rng.choice(SOME_ORDERS), rng.choice((0.0, 1e-6, 1e-3, 0.1, 1.0, 5.0, 50.0, 600.0))
            requests.append(("k", alpha, epsilon, rows, columns, *[x for row in kernel for x in row]))
            truths.append(kernel_curve(alpha, epsilon, kernel))
        for request, value, truth in zip(requests, evaluate(requests), truths):  # rows sum to 1 up to 1e-16
            assert abs(value - truth) <= mp.mpf("1e-12") * truth + mp.mpf("1e-15"), (request, value, mp.nstr(truth, 20))


def test_kernels_whose_rows_sum_to_one_exactly(evaluate):
    """With dyadic probabilities, the rows sum exactly to 1, and the relative error is small even for tiny results."""
    rng = random.Random(9)
    requests, truths = [], []
    with mp.workdps(120):
        for _ in range(80):
            rows, columns = rng.choice((2, 3)), rng.choice((2, 3, 4))
            cuts = [sorted(rng.randrange(0, 2**20) for _ in range(columns - 1)) for _ in range(rows)]
            kernel = [[(b - a) / 2**20 for a, b in zip([0, *cut], [*cut, 2**20])] for cut in cuts]
            alpha, epsilon = rng.choice(SOME_ORDERS), rng.choice((1e-30, 1e-9, 1e-3, 0.5, 3.0, 30.0, 500.0))
            requests.append(("k", alpha, epsilon, rows, columns, *[x for row in kernel for x in row]))
            truths.append(kernel_curve(alpha, epsilon, kernel))
        check(requests, evaluate(requests), truths)


def test_no_pair_of_inputs_beats_the_worst_of_a_kernel(evaluate):
    """For random epsilon-DP pairs of distributions on the states, the divergence of the kernel's outputs is never above the worst
    case. A pair on two states attains the worst case."""
    rng = random.Random(11)
    requests, pairs = [], []
    with mp.workdps(40):
        for _ in range(150):
            rows, columns = rng.choice((2, 3, 4)), rng.choice((2, 3))
            kernel = random_kernel(rng, rows, columns)
            alpha, epsilon = rng.choice(SOME_ORDERS), rng.choice((0.1, 1.0, 4.0))
            base = [rng.random() ** 3 + 1e-9 for _ in range(rows)]
            tilted = [b * rng.choice((1, mp.exp(mp.mpf(epsilon) / 2), mp.exp(mp.mpf(epsilon)) ** mp.mpf(rng.random()))) for b in base]
            p, q = [mp.mpf(x) / mp.fsum(tilted) for x in tilted], [mp.mpf(x) / mp.fsum(base) for x in base]
            true_epsilon = max(abs(mp.log(a / b)) for a, b in zip(p, q))
            push = lambda law: [mp.fsum(law[x] * kernel[x][y] for x in range(rows)) for y in range(columns)]
            requests.append(("k", alpha, float(true_epsilon) * (1 + 1e-15), rows, columns, *[x for row in kernel for x in row]))
            pairs.append((push(p), push(q), alpha))
        for request, value, (p, q, alpha) in zip(requests, evaluate(requests), pairs):
            p, q = [x / mp.fsum(p) for x in p], [x / mp.fsum(q) for x in q]
            assert divergence(p, q, alpha) <= value * (1 + mp.mpf(10) ** -10) + mp.mpf(10) ** -14, request
