"""Compares the numbers from which ext/noise/discrete_gaussian.c makes its strips with high-precision arithmetic (mpmath)."""

import os
import pathlib
import subprocess

import mpmath
import pytest

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
SCALE = (2**26 - 2**8) // 407 * 10


@pytest.fixture(scope="module")
def numbers():
    """Returns the numbers that the unit test prints, as {kind: [fields of a line]}."""
    done = subprocess.run([BUILD / "unit" / "gaussian_table", "numbers"], capture_output=True, text=True, check=True, timeout=300)
    kinds = {"power": [], "weight": [], "digit": []}
    for line in done.stdout.splitlines():
        kind, *fields = line.split()
        kinds[kind].append(fields)
    with mpmath.workprec(2000):
        yield kinds


def exact(strip):
    return mpmath.exp(-mpmath.mpf(strip) ** 2 / 2048)


def test_powers_keep_their_error_bound(numbers):
    """Each power is below the true value, by at most the error bound that the code uses. A third of this bound would be too
    small."""
    worst = 0
    assert len(numbers["power"]) > 1000
    for n, strip, bound, digits in numbers["power"]:
        error = exact(int(strip)) * 2 ** (32 * int(n)) - int(digits, 16)
        assert 0 <= error <= int(bound)
        worst = max(worst, error / int(bound))
    assert worst > 1 / 3


def test_weights_are_next_above(numbers):
    """The weight of a strip is the least integer above SCALE exp(-strip^2/2048). The sum of all weights is below 2^26."""
    weights = [int(weight) for _, weight in numbers["weight"]]
    assert weights == [int(mpmath.floor(SCALE * exact(strip))) + 1 for strip in range(255)]
    left = 2**26 - sum(weights)
    assert 0 < left < 2**18
    beyond = SCALE * mpmath.nsum(lambda k: exact(k), [255, 600])
    assert beyond < 1


def test_digits_are_right(numbers):
    """The digits of SCALE exp(-strip^2/2048) are right, also where the number begins with many zeros and is multiplied by a power
    of two."""
    assert len(numbers["digit"]) > 1000
    for fields in numbers["digit"]:
        strip, doublings, place, whole, value = map(int, fields)
        number = int(mpmath.floor(SCALE * exact(strip) * 2 ** (doublings + 32 * (place + 1))))
        assert (number >> 32 * (place + 1)) % 2**32 == whole
        assert number % 2**32 == value


def test_the_last_edge_offers_enough(numbers):
    """Requirement 1 of the strips (discrete_gaussian.c): 2^m SCALE e_i is below 1 for all i >= 255. m is 9 for the first 256 values of i, and
    increases by one after every 256 values."""
    for strip in range(255, 5000):
        assert SCALE * exact(strip) * 2 ** (9 + (strip - 255) // 256) < 1
