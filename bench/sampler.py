"""make bench-sampler: measures draws of exact discrete Gaussian noise per second, and other samplers in the same run.

The program prints medians of nine interleaved rounds. It also measures OpenDP if OpenDP is installed (make
build/python-utility).
"""

import os
import pathlib
import statistics
import subprocess
import sys
import time

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
ROUNDS = 9
OPENDP_DRAWS = 20_000


def opendp():
    """Returns a function that measures OpenDP's noise vectors in nanoseconds for each draw, or None if OpenDP is not
    installed."""
    sys.path.append(str(BUILD / "python-utility"))
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)
    mechanism = dp.m.make_gaussian(*space, 2.0**20.5)
    answer = [0] * OPENDP_DRAWS

    def side():
        start = time.process_time()
        mechanism(answer)
        return (time.process_time() - start) / OPENDP_DRAWS * 1e9

    return side


def main():
    others = {"OpenDP": opendp()}
    times = {}
    for _ in range(ROUNDS):
        done = subprocess.run([BUILD / "bench" / "sampler"], capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            name, nanoseconds = line.split("\t")
            times.setdefault(name, []).append(float(nanoseconds))
        for name, side in others.items():
            if side:
                times.setdefault(name, []).append(side())
    ours = times["vector"]
    print(f"{'':26} {'million/s':>10} {'times vector':>14}")
    for name, seconds in times.items():
        ratio = statistics.median(other / own for other, own in zip(seconds, ours))
        print(f"{name:26} {1e3 / statistics.median(seconds):10.3f} {ratio:14.1f}")


if __name__ == "__main__":
    main()
