"""Figures of the papers' results, drawn from the extension's SQL functions alone: make figures.

Every number is the answer of one SELECT below; Python only carries it to matplotlib. Writes SVG files
into the directory that is named on the command line.
"""

import os
import pathlib
import sqlite3
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update({
    "svg.hashsalt": "diffuse", "svg.fonttype": "path", "font.size": 10, "axes.grid": True,
    "grid.alpha": 0.3, "legend.frameon": False, "legend.fontsize": 8.5,
})
import matplotlib.pyplot as plt  # noqa: E402

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
RECORDS = ("C0", "C1", "C2")
RANGE = """WITH RECURSIVE step(k) AS (SELECT 0 UNION ALL SELECT k + 1 FROM step WHERE k < :steps),
           x(x) AS (SELECT :low + (:high - :low) * k / :steps FROM step) """


def connect():
    db = sqlite3.connect(":memory:")
    db.enable_load_extension(True)
    db.load_extension(str(BUILD / "diffuse"))
    return db


def curve(db, expression, low, high, steps=160, **values):
    """Points (x, expression) for x from low to high; the expression is SQL in x and :parameters.
    NULL, where a theorem says nothing, becomes a gap."""
    rows = db.execute(RANGE + f"SELECT x, {expression} FROM x",
                      dict(low=float(low), high=float(high), steps=steps, **values)).fetchall()
    return [x for x, _ in rows], [float("nan") if y is None else y for _, y in rows]


def save(figure, directory, name):
    figure.tight_layout()
    figure.savefig(directory / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


def asoodeh(db, directory, name, title, note, records, floor, **values):
    """Figures 2 and 3 of Asoodeh et al.: delta of the record read in step i, over epsilon."""
    figure, axes = plt.subplots(figsize=(7, 4.8))
    sgd = ":n, :loss, :sigma, :eta, :beta, :rho"
    for colour, i in zip(RECORDS, records):
        for style, label, expression in (
            ("-", "Theorem 4", f"dp_sgd_delta(x, :i, {sgd}, :diameter, 'paper')"),
            ("--", "Proposition 1", f"dp_sgd_delta_rdp(x, :i, {sgd})"),
            (":", "best", f"dp_sgd_delta(x, :i, {sgd}, :diameter)"),
        ):
            x, y = curve(db, expression, 0, 4, steps=800, i=i, **values)
            axes.plot(x, y, style, color=colour, label=f"i = {i}: {label}")
    axes.set(yscale="log", ylim=(floor, 10), xlim=(0, 4), title=title,
             xlabel=r"$\varepsilon$ (nats)", ylabel=r"$\delta$ (probability, log scale)")
    axes.title.set_fontsize(10)
    axes.text(1.03, 0.05, note, transform=axes.transAxes, fontsize=8, color="grey")
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    save(figure, directory, name)


def mean_squared_error(db, directory):
    """Theorem 8: OU against the Gaussian and the best scaled Gaussian at the same privacy, over t."""
    figure, panels = plt.subplots(1, 2, figsize=(10, 4.4))
    for axes, rate in zip(panels, (0.5, 0.005)):
        theta, rho, x = db.execute(
            "SELECT dp_ou_theta(?1, 1, 1, 1), dp_ou_rho(?1, 1, 1, 1), 1 / (2 * ?1)", (rate,)).fetchone()
        values = dict(theta=theta, rho=rho)
        for style, label, expression in (
            ("C0-", "OU, worst case $|f| = R$", "dp_ou_mse(:theta, :rho, x, 1, 1)"),
            ("C1--", "Gaussian", "dp_gaussian_mse(:theta, :rho, x, 1)"),
            ("C2:", "Gaussian, best scaling", "dp_pgm_mse(:theta, :rho, x, 1, 1)"),
        ):
            t, y = curve(db, expression, 0.001, 2, steps=600, **values)
            axes.plot(t, y, style, label=label)
        axes.axvline(1, color="grey", lw=0.8)
        axes.text(1.01, 0.94, "t = 1: optimal", transform=axes.get_xaxis_transform(), color="grey",
                  fontsize=8.5)
        t, worse = curve(db, "dp_ou_mse(:theta, :rho, x, 1, 1) > dp_gaussian_mse(:theta, :rho, x, 1)",
                         0.001, 2, steps=600, **values)
        if any(worse):
            last = max(a for a, flag in zip(t, worse) if flag)
            axes.axvspan(0, last, color="C3", alpha=0.12, lw=0,
                         label=f"OU worse than Gaussian (t < {last:.2f})")
        axes.set(yscale="log", xlim=(0, 2), ylim=(1e-4, 30),
                 title=f"rate {rate:g} at t = 1:  x = {x:g},  "
                       rf"$\theta$ = {theta:.3f},  $\rho$ = {rho:.3f}",
                 xlabel="t (time of the process)", ylabel=r"mean squared error / $R^2$")
        axes.legend(loc="lower right" if rate > 0.1 else "center right")
    figure.suptitle(r"Theorem 8 with $\Delta = R = d = 1$: uniformly better than the Gaussian iff "
                    r"$x \leq 2$", fontsize=11)
    save(figure, directory, "ou_mse")


def iterated_laplace(db, directory):
    """Example 2: total scale 2 split into two Laplace noises."""
    figure, axes = plt.subplots(figsize=(7, 4.6))
    for colour, alpha in zip(("C0", "C1", "C2", "C3"), (1, 2, 8, 64)):
        x, y = curve(db, "dp_iterated_laplace(:alpha, 1, 2 * x, 2 * (1 - x))"
                         " / dp_rdp_laplace(:alpha, 1, 2 * max(x, 1 - x))", 0.005, 0.995, alpha=alpha)
        label = r"$\alpha$ = 1 (KL)" if alpha == 1 else rf"$\alpha$ = {alpha}"
        axes.plot(x, y, color=colour, label=label)
    axes.set(xlim=(0, 1), ylim=(0, 1.05), title="Two Laplace noises of scales 2x and 2(1 - x), "
             r"$\Delta$ = 1 (Example 2)", xlabel="split x (share of the first noise in the total scale)",
             ylabel="Rényi bound of both / Rényi divergence\nof the larger noise alone")
    axes.legend(loc="lower center", ncol=4)
    save(figure, directory, "iterated_laplace")


def rate_against_clock(db, directory):
    """Tiers lie on one line in the clock; Brownian and OU time only label it."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4))
    processes = (("C0-", "Brownian, 2t", "dp_ou_clock(0, 1, {0})", "dp_brownian_rate(1, {0})"),
                 ("C1--", r"OU, $\theta$ = 0.5", "dp_ou_clock(0.5, 1, {0})", "dp_ou_rate(1, 0.5, 1, {0})"),
                 ("C2:", r"OU, $\theta$ = 2", "dp_ou_clock(2, 1, {0})", "dp_ou_rate(1, 2, 1, {0})"))
    tiers = (0.2, 0.5, 1.0, 1.5)
    for (style, label, clock, rate), marker in zip(processes, "osD"):
        time = "pow(10.0, x)"
        _, clocks = curve(db, clock.format(time), -2, 0.5)
        _, rates = curve(db, rate.format(time), -2, 0.5)
        times = [10**x for x in curve(db, "x", -2, 0.5)[0]]
        left.plot(times, rates, style, label=label)
        right.plot(clocks, rates, style, label=label)
        for t in tiers:
            point = db.execute(f"SELECT {clock.format('?1')}, {rate.format('?1')}", (t,)).fetchone()
            left.plot(t, point[1], style[:2] + marker, ms=5)
            right.plot(*point, style[:2] + marker, ms=5)
    left.set(xscale="log", yscale="log", ylim=(1e-3, 40), title="Rate of a tier against its time",
             xlabel="t (time of the process)", ylabel=r"rate $\Lambda$ (zCDP), $\Delta$ = $\rho$ = 1")
    right.set(xscale="log", yscale="log", xlim=(0.01, 1e3), ylim=(1e-3, 40),
              title=r"The same against its clock: all on $\Lambda = \Delta^2/2\tau$",
              xlabel=r"clock $\tau$ (variance, unit of $\Delta^2$)", ylabel=r"rate $\Lambda$ (zCDP)")
    left.legend()
    right.legend(title="markers: t = 0.2, 0.5, 1, 1.5", title_fontsize=8.5)
    save(figure, directory, "rate_clock")


def main():
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    db = connect()
    asoodeh(db, directory, "asoodeh_figure_2",
            r"Asoodeh et al., Figure 2: n = 40, $\sigma$ = 2, $\rho$ = 0, $\beta$ = $\eta$ = 0.5",
            r"best for i = 1, 20:" "\n" r"below the axis from" "\n" r"$\varepsilon$ = 0.05 on", (1, 20, 39), 1e-60, n=40, loss=1, sigma=2, eta=0.5, beta=0.5, rho=0, diameter=1)
    asoodeh(db, directory, "asoodeh_figure_3",
            r"Asoodeh et al., Figure 3: n = 40, $\sigma$ = 1, $\rho$ = 0.4, $\beta$ = 0.3, $\eta$ = 0.7",
            r"best for i = 20, 30:" "\n" r"below the axis from" "\n" r"$\varepsilon$ = 0.05 on", (20, 30, 39), 1e-40, n=40, loss=1, sigma=1, eta=0.7, beta=0.3, rho=0.4, diameter=1)
    mean_squared_error(db, directory)
    iterated_laplace(db, directory)
    rate_against_clock(db, directory)
    print(*sorted(str(path) for path in directory.glob("*.svg")), sep="\n")


if __name__ == "__main__":
    main()
