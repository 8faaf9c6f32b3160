"""Draws figures of the papers' results (make figures). All numbers come from the extension's SQL functions.

Every number is the answer of one SELECT below. Python passes these answers to matplotlib. Every curve has its own colour and
line style, so that readers can distinguish the curves in print without colours. The program writes SVG files into the
directory on the command line.
"""

import os
import pathlib
import sqlite3
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update({
    "svg.hashsalt": "diffuse", "svg.fonttype": "path", "font.size": 11, "axes.grid": True,
    "grid.alpha": 0.3, "legend.frameon": False, "legend.fontsize": 10, "axes.titlesize": 11.5,
    "lines.linewidth": 1.8, "lines.markersize": 6, "legend.handlelength": 3.2,
})
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.lines import Line2D  # noqa: E402
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator  # noqa: E402

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
RANGE = """WITH RECURSIVE step(k) AS (SELECT 0 UNION ALL SELECT k + 1 FROM step WHERE k < :steps),
           x(x) AS (SELECT :low + (:high - :low) * k / :steps FROM step) """
BLUE, ORANGE, GREEN, RED, BLACK, GREY = "#0060a8", "#d55e00", "#008060", "#b0206a", "#202020", "#707070"


def connect():
    db = sqlite3.connect(":memory:")
    db.enable_load_extension(True)
    db.load_extension(str(BUILD / "diffuse"))
    return db


def curve(db, expression, low, high, steps=160, **values):
    """Returns points (x, expression) for x from low to high. The expression is SQL with x and :parameters. If a
    theorem does not apply at a point, the expression is NULL and the curve has a gap."""
    rows = db.execute(RANGE + f"SELECT x, {expression} FROM x",
                      dict(low=float(low), high=float(high), steps=steps, **values)).fetchall()
    return [x for x, _ in rows], [float("nan") if y is None else y for _, y in rows]


def save(figure, directory, name):
    figure.savefig(directory / f"{name}.svg", metadata={"Date": None}, bbox_inches="tight", pad_inches=0.08)
    plt.close(figure)


def powers_of_ten(axis, exponents):
    axis.set_major_locator(FixedLocator([10.0**e for e in exponents]))
    axis.set_minor_locator(NullLocator())


# ---- schematic figures --------------------------------------------------------------------------------


def canvas(width, height):
    figure, axes = plt.subplots(figsize=(width, height))
    axes.set(xlim=(0, width), ylim=(0, height), aspect="equal")
    axes.axis("off")
    return figure, axes


def box(axes, x, y, width, height, text, colour=BLACK, fill="white", size=11, style="-"):
    axes.add_patch(plt.matplotlib.patches.FancyBboxPatch(
        (x - width / 2, y - height / 2), width, height, boxstyle="round,pad=0.02,rounding_size=0.12",
        edgecolor=colour, facecolor=fill, lw=1.4, ls=style))
    axes.text(x, y, text, ha="center", va="center", fontsize=size, linespacing=1.5)


def arrow(axes, start, end, colour=BLACK, style="-", bend=0.0, width=1.6):
    shape = dict(color=colour, lw=width, shrinkA=0, shrinkB=0, connectionstyle=f"arc3,rad={bend}")
    if style == "-":
        axes.annotate("", end, start, arrowprops=dict(arrowstyle="-|>", mutation_scale=15, **shape))
        return
    axes.annotate("", end, start, arrowprops=dict(arrowstyle="-", ls=style, **shape))
    shape.update(connectionstyle="arc3", lw=0)  # draw a solid head, even if the shaft is dashed
    before = (end[0] - 0.12 * (1 if end[0] > start[0] else -1), end[1] + (0.09 if bend else 0))
    axes.annotate("", end, before, arrowprops=dict(arrowstyle="-|>", mutation_scale=15, **shape))


def mixing_conditions(db, directory):
    """Figure 1 of Balle et al., with the arrow of erratum E1 in the right direction, and Table 1."""
    db.execute("CREATE TEMP TABLE ring(x, y, p)")
    db.execute("INSERT INTO ring SELECT a.value, b.value, CASE WHEN a.value + b.value = 2 THEN 0.1 ELSE 0.45 END"
               " FROM json_each('[0,1,2]') a, json_each('[0,1,2]') b")
    ultra, doeblin, dobrushin, epsilon = db.execute(
        "SELECT dp_kernel_ultra(x, y, p), dp_kernel_doeblin(x, y, p), dp_kernel_dobrushin(x, y, p),"
        " dp_kernel_dobrushin_epsilon(x, y, p, 1) FROM ring").fetchone()
    figure, axes = canvas(13, 4.6)
    columns = (
        (1.6, r"$\gamma$-ultra-mixing", r"$K(x,y) \geq (1-\gamma)\,K(x',y)$", r"$(\ln\frac{1}{1-\gamma},\,0)$-LDP", ultra),
        (4.85, r"$\gamma$-Doeblin", r"$K(x) \geq (1-\gamma)\,\omega$", "a blanket, no LDP level", doeblin),
        (8.1, r"$\gamma$-Dobrushin", r"$\mathrm{TV}(K(x), K(x')) \leq \gamma$", r"$(0,\,\gamma)$-LDP", dobrushin),
        (11.35, r"$(\gamma,\varepsilon)$-Dobrushin", r"$D_{e^\varepsilon}(K(x)\,\Vert\,K(x')) \leq \gamma$",
         r"$(\varepsilon,\,\gamma)$-LDP", epsilon),
    )
    for x, name, meaning, local, value in columns:
        box(axes, x, 2.75, 2.6, 1.15, f"{name}\n{meaning}", BLUE, "#eef5fb")
        axes.text(x, 1.85, local, ha="center", va="center", fontsize=11)
        at = r"  ($\varepsilon = 1$)" if x > 11 else ""
        axes.text(x, 1.35, rf"$\gamma$ = {value:.3f}{at}", ha="center", va="center", fontsize=11, color=GREY)
    for left, right in zip(columns, columns[1:]):
        arrow(axes, (left[0] + 1.35, 2.75), (right[0] - 1.35, 2.75), width=2.2)
    arrow(axes, (11.35, 3.4), (8.1, 3.4), RED, "--", bend=0.28)
    axes.plot(9.72, 3.86, "x", ms=13, mew=2.6, color=RED)
    axes.text(9.72, 4.2, "printed, and false (E1)", ha="center", va="center", fontsize=11, color=RED)
    axes.text(1.6, 3.6, "strongest", fontsize=11, color=GREY, va="center", ha="center")
    axes.text(11.9, 3.6, "weakest", fontsize=11, color=GREY, va="center", ha="center")
    axes.text(0.3, 0.45, "Solid arrows: every kernel with the property on the left has the one on the right, with the same "
              r"$\gamma$ and for every $\varepsilon \geq 0$." "\n" "LDP: the same condition as local differential privacy "
              "(Table 1)." "\n" r"Grey: the least $\gamma$ of the kernel with rows (.45 .45 .1), (.45 .1 .45), (.1 .45 .45).",
              fontsize=10.5, va="center", linespacing=1.6)
    save(figure, directory, "balle_figure_1")


def chain_of_steps(db, directory):
    """Figure 1 of Asoodeh et al.: the Markov chain of projected noisy SGD, and the contraction in each step."""
    figure = plt.figure(figsize=(12, 7.6))
    axes = figure.add_axes([0, 0.43, 1, 0.55])
    axes.set(xlim=(0, 12), ylim=(0, 4.18), aspect="equal")
    axes.axis("off")
    states = ((0.6, "$X_0$"), (3.0, "$X_{i-1}$"), (5.3, "$X_i$"), (7.6, "$X_{i+1}$"), (10.4, "$X_n$"))
    for x, name in states:
        axes.add_patch(plt.Circle((x, 2.2), 0.36, facecolor="#eef5fb" if x < 11 else "white", edgecolor=BLUE, lw=1.4))
        axes.text(x, 2.2, name, ha="center", va="center", fontsize=12)
    for (left, _), (right, _), label, style in zip(
            states, states[1:], ("records $1 \\ldots i-1$", "record $i$", "record $i+1$", "records $i+2 \\ldots n$"),
            (":", "-", "-", ":")):
        arrow(axes, (left + 0.38, 2.2), (right - 0.38, 2.2), ORANGE if label == "record $i$" else BLACK, style,
              width=2.2)
        axes.text((left + right) / 2, 2.42, label, ha="center", va="bottom", fontsize=10.5,
                  color=ORANGE if label == "record $i$" else BLACK)
    arrow(axes, (10.78, 2.2), (11.35, 2.2), BLACK, width=2.2)
    axes.text(11.4, 2.2, "released", va="center", fontsize=10.5)
    for left, right, text, colour in (
            (0.25, 3.3, "the same law on\nboth data sets", GREY),
            (3.45, 4.85, "only here the data sets\n" r"differ: $\theta(2L/\sigma)$ at most", ORANGE),
            (5.05, 10.75, r"the same kernels on both: every step multiplies by at most $\theta(M D_K/(\eta\sigma))$", BLUE)):
        axes.plot((left, left, right, right), (1.55, 1.45, 1.45, 1.55), color=colour, lw=1.4)
        axes.text((left + right) / 2, 1.32, text, ha="center", va="top", fontsize=10.5, color=colour, linespacing=1.4)
    axes.text(0.4, 3.72, "One step:", va="center", fontsize=11)
    for x, width, text in ((2.1, 1.0, "$X$"), (4.35, 2.6, "gradient step $\\psi$\nLipschitz constant $M$"),
                           (7.1, 2.0, "noise $+\\,\\eta Z$\n$Z \\sim N(0, \\sigma^2 I)$"),
                           (9.85, 2.6, "projection on $K$\ndiameter $D_K$")):
        box(axes, x, 3.72, width, 0.72, text, GREY, "#fafafa", 10.5)
    for left, right in ((2.62, 3.03), (5.67, 6.08), (8.12, 8.53)):
        arrow(axes, (left, 3.72), (right, 3.72), GREY)
    lower = figure.add_axes([0.09, 0.075, 0.86, 0.36])
    setting = "20, 20 + CAST(x AS INT), 1, 2, 0.5, 0.5, 0"
    for label, style, colour, expression in (
            (r"$\theta(2L/\sigma)\,\theta(M D_K/(\eta\sigma))^k$ (Theorem 4)", "-o", BLUE,
             f"dp_sgd_delta(0.1, {setting}, 1, 'paper')"),
            ("the factor found anew in every step (iterated)", "--s", ORANGE,
             f"dp_sgd_delta(0.1, {setting}, 1, 'iterated')"),
            ("amplification by iteration (Proposition 1)", ":^", GREEN, f"dp_sgd_delta_rdp(0.1, {setting})")):
        lower.plot(*curve(db, expression, 0, 10, steps=10), style, color=colour, label=label)
    lower.set(yscale="log", ylim=(1e-12, 10), xlim=(-0.2, 10.2), xlabel="k = n − i (later steps)",
              ylabel=r"$\delta$ of record $i$ at $\varepsilon = 0.1$",
              title=r"What remains after $k$ later steps: $L = D_K = 1$, $\sigma = 2$, $\beta = \eta = 0.5$, $\rho = 0$")
    lower.set_xticks(range(11))
    powers_of_ten(lower.yaxis, range(-12, 1, 2))
    lower.legend(loc="lower left")
    save(figure, directory, "asoodeh_figure_1")


# ---- curves -------------------------------------------------------------------------------------------

RECORDS = ((BLUE, "o"), (ORANGE, "s"), (GREEN, "^"))
BEST = "best (dp_sgd_delta)"
THICK = {"Theorem 4": dict(lw=3.6, alpha=0.5)}
BOUNDS = (((0, ()), "Theorem 4", "dp_sgd_delta({0}, :i, {1}, :diameter, 'paper')"),
          ((0, (5, 2)), "Proposition 1", "dp_sgd_delta_rdp({0}, :i, {1})"),
          ((0, (1, 1.2)), BEST, "dp_sgd_delta({0}, :i, {1}, :diameter)"))


def asoodeh(db, directory, name, title, records, floor, small, **values):
    """Figures 2 and 3 of Asoodeh et al.: the curves show delta as a function of epsilon, for the record that step i reads. The
    left figure has the range of the printed figure. The right figure has smaller epsilons, where the best bound for early
    records falls."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(12.5, 5.2), sharey=True, gridspec_kw=dict(wspace=0.09))
    sgd = ":n, :loss, :sigma, :eta, :beta, :rho"
    for (colour, marker), i in zip(RECORDS, records):
        for style, label, expression in BOUNDS:
            drawn = dict(color=colour, ls=style, marker=marker, **THICK.get(label, {}))
            if i == records[-1] or label != BEST:
                x, y = curve(db, expression.format("x", sgd), 0, 4, steps=800, i=i, **values)
                left.plot(x, y, markevery=(60, 100), **drawn)
            if i != records[-1] and label != "Proposition 1":
                x, y = curve(db, expression.format("pow(10.0, x)", sgd), small, -1, steps=4000, i=i, **values)
                right.plot([10**a for a in x], y, markevery=(200 if label == BEST else 700, 1000), **drawn)
    for axes in (left, right):
        axes.set(yscale="log", ylim=(10.0**floor, 30))
        powers_of_ten(axes.yaxis, range(floor, 1, 10))
    left.set(xlim=(0, 4), xlabel=r"$\varepsilon$ (nats)", ylabel=r"$\delta$ (probability)",
             title=f"as printed, and the best bound of record {records[-1]}")
    left.set_xticks(range(5))
    right.set(xscale="log", xlim=(10.0**small, 0.1), xlabel=r"$\varepsilon$ (nats, log scale)",
              title=f"the best bounds of records {records[0]} and {records[1]} beside Theorem 4")
    powers_of_ten(right.xaxis, range(small, 0, 2 if small > -12 else 4))
    handles = [Line2D([], [], color=colour, marker=marker, ls="none", label=f"record i = {i}", ms=8)
               for (colour, marker), i in zip(RECORDS, records)]
    handles += [Line2D([], [], color=BLACK, ls=style, label=label, **THICK.get(label, {})) for style, label, _ in BOUNDS]
    figure.legend(handles=handles, loc="lower center", ncol=6, bbox_to_anchor=(0.5, -0.075))
    figure.suptitle(title, y=0.97, fontsize=12)
    save(figure, directory, name)


def mean_squared_error(db, directory):
    """Theorem 8: the mean squared errors of the OU mechanism, of Gaussian noise and of the best scaled Gaussian noise
    at the same privacy, as functions of t."""
    figure, panels = plt.subplots(2, 2, figsize=(11.5, 7.6), sharex=True, gridspec_kw=dict(hspace=0.1, wspace=0.2))
    curves = (("OU, worst case $|f| = R$", dict(color=BLUE, ls="-", lw=3.4, alpha=0.75),
               "dp_ou_mse(:theta, :rho, x, 1, 1)"),
              ("Gaussian", dict(color=ORANGE, ls="--", lw=1.8), "dp_gaussian_mse(:theta, :rho, x, 1)"),
              ("Gaussian, scaled as well as possible", dict(color=BLACK, ls=":", lw=1.8),
               "dp_pgm_mse(:theta, :rho, x, 1, 1)"))
    best = curves[-1][2]
    for column, rate in zip(panels.T, (0.5, 0.005)):
        theta, rho, x = db.execute(
            "SELECT dp_ou_theta(?1, 1, 1, 1), dp_ou_rho(?1, 1, 1, 1), 1 / (2 * ?1)", (rate,)).fetchone()
        values = dict(theta=theta, rho=rho)
        error, ratio = column
        for label, drawn, expression in curves:
            error.plot(*curve(db, expression, 0.002, 2, steps=999, **values), label=label, **drawn)
            ratio.plot(*curve(db, f"{expression} / {best}", 0.002, 2, steps=999, **values), **drawn)
        t, worse = curve(db, "dp_ou_mse(:theta, :rho, x, 1, 1) > dp_gaussian_mse(:theta, :rho, x, 1)",
                         0.002, 2, steps=999, **values)
        for axes in column:
            axes.axvline(1, color=GREY, lw=1, ls="-.")
            axes.set(xlim=(0, 2), yscale="log")
            if any(worse):
                axes.axvspan(0, max(a for a, flag in zip(t, worse) if flag), color=RED, alpha=0.1, lw=0)
        error.set(ylim=(1e-3, 30), title=rf"rate {rate:g} at t = 1:  x = {x:g},  "
                  rf"$\theta$ = {theta:.3f},  $\rho$ = {rho:.3f}")
        powers_of_ten(error.yaxis, range(-3, 2))
        ratio.set(xlabel="t (time of the process)", ylim=(0.93, 12))
        ratio.yaxis.set_major_locator(FixedLocator((1, 1.5, 2, 3, 5, 10)))
        ratio.yaxis.set_minor_locator(NullLocator())
        ratio.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
        ratio.set_xticks([0, 0.5, 1, 1.5, 2])
        ratio.text(1.02, 8, "t = 1: optimal", color=GREY, fontsize=10)
    panels[0, 0].set_ylabel(r"mean squared error / $R^2$")
    panels[1, 0].set_ylabel("error / error of the best scaling")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="lower center", ncol=3, bbox_to_anchor=(0.5, -0.02))
    panels[0, 1].text(0.03, 12, "OU worse than\nthe Gaussian", color=RED, fontsize=10, va="center")
    figure.suptitle(r"Theorem 8 with $\Delta = R = d = 1$: OU is better than the Gaussian at every t if and only if "
                    r"$x \leq 2$", fontsize=12, y=0.95)
    save(figure, directory, "ou_mse")


def iterated_laplace(db, directory):
    """Example 2: two Laplace noises whose scales add up to 2."""
    figure, axes = plt.subplots(figsize=(8, 5))
    for alpha, colour, style in ((64, RED, (0, (1, 1.2))), (8, GREEN, "-."), (2, ORANGE, "--"), (1, BLUE, "-")):
        x, y = curve(db, "dp_iterated_laplace(:alpha, 1, 2 * x, 2 * (1 - x))"
                         " / dp_rdp_laplace(:alpha, 1, 2 * max(x, 1 - x))", 0.005, 0.995, alpha=alpha)
        axes.plot(x, y, color=colour, ls=style,
                  label=r"order $\alpha$ = 1 (KL)" if alpha == 1 else rf"order $\alpha$ = {alpha}")
    axes.set(xlim=(0, 1), ylim=(0.55, 1.02), title="Example 2: two Laplace noises of scales 2x and 2(1 − x), "
             r"sensitivity $\Delta$ = 1", xlabel="x (share of the first noise in the total scale)",
             ylabel="bound for both noises /\ndivergence of the larger noise alone")
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
    axes.legend(loc="lower left", bbox_to_anchor=(0.01, 0.0))
    save(figure, directory, "iterated_laplace")


def rate_against_clock(db, directory):
    """With the clock as coordinate, all tiers lie on one line. The times of Brownian motion and of OU are two ways to
    label this line."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5), sharey=True, gridspec_kw=dict(wspace=0.08))
    processes = ((BLUE, "-", 5.5, "o", "Brownian motion", "dp_ou_clock(0, 1, {0})", "dp_brownian_rate(1, {0})"),
                 (ORANGE, "--", 3, "s", r"OU, $\theta$ = 0.5", "dp_ou_clock(0.5, 1, {0})", "dp_ou_rate(1, 0.5, 1, {0})"),
                 (BLACK, ":", 1.6, "D", r"OU, $\theta$ = 2", "dp_ou_clock(2, 1, {0})", "dp_ou_rate(1, 2, 1, {0})"))
    tiers = (0.2, 0.5, 1.0, 1.5)
    for colour, style, width, marker, label, clock, rate in processes:
        time = "pow(10.0, x)"
        exponents, clocks = curve(db, clock.format(time), -2, 0.5)
        _, rates = curve(db, rate.format(time), -2, 0.5)
        times = [10**x for x in exponents]
        points = [(t, *db.execute(f"SELECT {clock.format('?1')}, {rate.format('?1')}", (t,)).fetchone()) for t in tiers]
        left.plot(times, rates, color=colour, ls=style, label=label)
        left.plot([t for t, _, _ in points], [r for _, _, r in points], marker, color=colour)
        right.plot(clocks, rates, color=colour, ls=style, lw=width, alpha=0.45 if width > 2 else 1)
        right.plot([c for _, c, _ in points], [r for _, _, r in points], marker, color=colour, label=label,
                   mfc="white", mew=1.6, zorder=5)
    for axes in (left, right):
        axes.set(xscale="log", yscale="log", ylim=(1e-3, 40))
        powers_of_ten(axes.yaxis, range(-3, 2))
    left.set(xlim=(0.01, 4), title="against its time", xlabel="t (time of the process)",
             ylabel=r"rate $\Lambda$ of a tier (zCDP), $\Delta = \rho = 1$")
    powers_of_ten(left.xaxis, range(-2, 1))
    right.set(xlim=(0.02, 1e3), title=r"against its clock: one line, $\Lambda = \Delta^2/2\tau$",
              xlabel=r"clock $\tau$ (variance, in units of $\Delta^2$)")
    powers_of_ten(right.xaxis, range(-1, 4))
    left.legend(loc="lower left")
    right.legend(title="at t = 0.2, 0.5, 1, 1.5", loc="upper right", title_fontsize=10)
    save(figure, directory, "rate_clock")


def gaussian_and_laplace(db, directory):
    """Shows the standard deviation of the noise if n equal counts or averages together cost epsilon 1. A vertical line
    marks the least n for which Gaussian noise (delta 1e-6) is smaller than Laplace noise. The noise of an average is for a
    value in the middle of its range."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5), gridspec_kw=dict(wspace=0.25))
    numbers = range(1, 31)
    rate = "dp_rate(1, 1e-6)"

    def column(expression):
        return [db.execute(f"SELECT {expression}", dict(n=n)).fetchone()[0] for n in numbers]

    for axes, title, gaussian, laplace in (
            (left, "one of n counts", f"sqrt(:n / (2 * {rate}))", "sqrt(2) * :n"),
            (right, "one of n averages, times the number of rows / half the range",
             f"sqrt(1.25) * sqrt(:n / (2 * {rate}))", "2 * :n")):
        first, second = column(laplace), column(gaussian)
        crossing = next(n for n, a, b in zip(numbers, first, second) if b < a)
        axes.plot(numbers, first, color=BLUE, ls="-", label=r"Laplace, $\varepsilon/n$ each")
        axes.plot(numbers, second, color=ORANGE, ls="--", label=r"Gaussian, $\delta = 10^{-6}$ in all")
        axes.axvline(crossing, color=GREY, lw=1, ls=":")
        axes.annotate(f"Gaussian noise is better\nfrom n = {crossing} on", (crossing, second[crossing - 1]), (crossing + 2, 3),
                      color=BLACK)
        axes.set(xlim=(0, 30), ylim=(0, 45), title=title, xlabel="n (releases that together cost epsilon = 1)")
        axes.legend(loc="upper left")
    left.set(ylabel="standard deviation of the noise")
    save(figure, directory, "gaussian_laplace")


def main():
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    db = connect()
    mixing_conditions(db, directory)
    chain_of_steps(db, directory)
    asoodeh(db, directory, "asoodeh_figure_2",
            r"Asoodeh et al., Figure 2: n = 40, $\sigma$ = 2, $\rho$ = 0, $\beta$ = $\eta$ = 0.5, $L$ = $D_K$ = 1",
            (1, 20, 39), -60, -18, n=40, loss=1, sigma=2, eta=0.5, beta=0.5, rho=0, diameter=1)
    asoodeh(db, directory, "asoodeh_figure_3",
            r"Asoodeh et al., Figure 3: n = 40, $\sigma$ = 1, $\rho$ = 0.4, $\beta$ = 0.3, $\eta$ = 0.7, $L$ = $D_K$ = 1",
            (20, 30, 39), -40, -8, n=40, loss=1, sigma=1, eta=0.7, beta=0.3, rho=0.4, diameter=1)
    mean_squared_error(db, directory)
    iterated_laplace(db, directory)
    rate_against_clock(db, directory)
    gaussian_and_laplace(db, directory)
    print(*sorted(str(path) for path in directory.glob("*.svg")), sep="\n")


if __name__ == "__main__":
    main()
