"""Asks a question, with a given budget, of each system that bench/utility.py compares.

For a question and the number of questions that share (EPSILON, DELTA), a system returns a list of candidates (label, draw).
draw() returns one fresh answer, which is a number or one number per key. Each draw also chooses anew which rows of each person
are kept. Candidates differ in contribution bounds and, if the system offers a choice, in noise and accounting. If a system cannot
answer a question, it raises Cannot with the reason.

  1. For every candidate, the answers to all questions together are (EPSILON, DELTA)-differentially private, where
     neighbours differ by all rows of one person. NOTES names the exceptions.
  2. Bounds are fixed before a system reads the data. All systems choose them from the same grid.
  3. Noise, sensitivities, calibration and post-processing are the system's own. Means of all systems are clipped to
     their public range. A system that can bound contributions on this data in tens of milliseconds (diffuse, SmartNoise
     SQL) bounds them itself. Otherwise numpy does what the system's documentation prescribes: it keeps k random rows of
     each person, or at most l0 keys with linf rows each.
"""

import functools
import itertools
import json
import os
import pathlib
import sqlite3

import numpy as np

EPSILON, DELTA = 1.0, 1e-6
RANDOM = np.random.default_rng()

NOTES = {
    "diffuse": "Noise on an exact lattice: Gaussian at a tier with the accountant `'gdp'`, or Laplace at a tier with the "
               "accountant `'pure'`; options `clip` (c) and, for medians, `grid` and `bins` (128 or the default) as shown. "
               "Medians also by the exponential mechanism, at a tier with the accountant `'pure'` or `'rdp'`. "
               "Clipping is deterministic, so each draw is a `dp_merge` of one state.",
    "OpenDP": "Polars queries with `truncate_per_group` and `truncate_num_groups` (sums: of the "
              "persons' clipped totals); scales are what `summarize()` says of that very query, noise is "
              "drawn by the library's own measurements. Laplace under pure epsilon (split evenly), or "
              "Gaussian under zCDP with the largest rho that `make_zCDP_to_approxDP` allows.",
    "SmartNoise SQL": "`max_ids`, `sample_max_ids` and clamped columns, on the same SQLite rows; Laplace noise; the "
                      "batch takes the largest epsilon with which its odometer stays within the total.",
    "diffprivlib": "`tools`, Laplace or exponential mechanism. It protects single rows: of each person k random rows "
                   "are kept, and epsilon is divided by k (sums: a person's clipped total is one row); counts are "
                   "histograms. Its means and "
                   "medians take the number of rows for public and compare databases in which a row is replaced: a "
                   "weaker promise than that of the others. The batch is split by its `BudgetAccountant`.",
    "PipelineDP": "on Google's python-dp: its combiners, accumulators filled by the harness. Laplace or Gaussian; "
                  "budgets by its naive or its PLD accountant (`dp-accounting`), the latter marked experimental.",
}


class Cannot(Exception):
    pass


# ---- bounding contributions --------------------------------------------------------------------------


def ranks(groups):
    """Returns the position of every element inside its group. The input is sorted by group."""
    starts = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]])
    return np.arange(len(groups)) - np.repeat(starts, np.diff(np.r_[starts, len(groups)]))


def keep_rows(groups, most):
    """Returns the indices of at most `most` random rows of each group."""
    order = RANDOM.permutation(len(groups))
    order = order[np.argsort(groups[order], kind="stable")]
    return order[ranks(groups[order]) < most]


def keep_pairs(question, l0, linf):
    """Returns the indices of the rows that remain if each unit keeps at most l0 keys with at most linf rows each."""
    pair = question.units.astype(np.int64) * question.keys_count + question.keys
    rows = keep_rows(pair, linf)
    pairs = np.unique(pair[rows])
    pairs = pairs[keep_rows(pairs // question.keys_count, l0)]
    return rows[np.isin(pair[rows], pairs)]


def group_sums(question, rows, values=None):
    weights = None if values is None else values[rows]
    return np.bincount(question.keys[rows], weights=weights, minlength=question.keys_count)


def unit_sums(question, values, most):
    """Returns the clipped total of every unit."""
    return np.clip(np.bincount(question.units, weights=values), 0, most)


# ---- diffuse -----------------------------------------------------------------------------------------


class Diffuse:
    def __init__(self):
        self.loaded = None

    def connect(self, share, noise):
        """Creates one tier with a budget for all draws, because a new tier for every draw would take time. The size of the budget
        does not change the rate of a release. The function checks on a tier with the budget (EPSILON, DELTA), or with the pure
        EPSILON for Laplace noise, that `share` such releases fit into this budget."""
        db = sqlite3.connect(":memory:", isolation_level=None)
        db.enable_load_extension(True)
        db.load_extension(str(pathlib.Path(os.environ.get("BUILD", "build")).resolve() / "diffuse"))
        db.execute("SELECT dp_init()").fetchall()
        accountant, delta, rate = {"Gaussian": ("gdp", DELTA, "dp_rate(:epsilon, :delta) / :share * (1 - 1e-12)"),
                                   "Laplace": ("pure", 0, "dp_rdp_laplace(1, :epsilon / :share, 1) * (1 - 1e-12)"),
                                   "RDP": ("rdp", DELTA, "rate_limit / :share * (1 - 1e-12) FROM dp_tier")}[noise]
        if noise == "RDP":
            db.execute("SELECT dp_tier('limit', 1e-9, ?, ?, 'rdp')", (EPSILON, delta)).fetchall()
        (rate,) = db.execute("SELECT " + rate, {"epsilon": EPSILON, "delta": DELTA, "share": share}).fetchone()
        db.execute("SELECT dp_tier('check', ?, ?, ?, ?)", (rate, EPSILON, delta, accountant)).fetchall()
        (left,) = db.execute("SELECT releases_left FROM dp_budget WHERE tier = 'check'").fetchone()
        assert left == share, left
        for name in ["check"] + ["limit"] * (noise == "RDP"):
            db.execute("SELECT dp_drop_tier(?)", (name,)).fetchall()
        vast = {"gdp": "rdp"}.get(accountant, accountant)  # a gdp tier cannot hold a budget for all draws
        db.execute("SELECT dp_tier('t', ?, 1e6, ?, ?)", (rate, delta, vast)).fetchall()
        return db

    def load(self, question, share):
        if self.loaded == (question, share):
            return
        keys = question.keys if question.keys is not None else question.units
        self.connections = {noise: self.connect(share, noise) for noise in ("Gaussian", "Laplace", "RDP")}
        for db in self.connections.values():
            db.execute("CREATE TABLE t(unit INTEGER, key INTEGER, x REAL)")
            db.execute("SELECT dp_protect('t', 'unit')").fetchall()
            db.execute("BEGIN")
            db.executemany("INSERT INTO t VALUES (?, ?, ?)", zip(question.units.tolist(), keys.tolist(), question.values.tolist()))
            db.execute("COMMIT")
        self.loaded = (question, share)

    def candidates(self, question, share):
        self.load(question, share)
        kind, columns, scale = {
            "persons": ("count_distinct", "1", None), "rows": ("count", "x", 1), "sum": ("sum", "x", question.hi),
            "mean": ("avg", "x", 1), "median": ("median", "x", 1), "group counts": ("group_count", "key", 1),
            "group sums": ("group_sum", "key, x", question.hi), "group means": ("group_avg", "key, x", 1),
        }[question.kind]
        fixed = {"whole_units": True}
        if kind in ("avg", "median", "group_avg"):
            fixed.update(lo=question.lo, hi=question.hi)
        if question.keys is not None:
            fixed["keys"] = [str(key) for key in range(question.keys_count)]
        shapes = [{}]
        if kind == "median":
            shapes = [{**grid, **bins} for grid in ({}, {"grid": question.step}) for bins in ({}, {"bins": 128})]
        ways = [("Gaussian", "Gaussian"), ("Laplace", "Laplace")]
        if kind == "median":
            ways = [("exponential", "Laplace"), ("exponential", "RDP")] + ways

        def draw(mechanism, noise, parameters, state):
            """Returns an answer. Clipping here is deterministic, so the clipped sums are the same for every draw. They are
            computed once, and each draw is a merge of this one state."""
            if not state:
                state += self.connections[noise].execute("SELECT dp_partial(?, ?, ?)", (
                    kind, f"SELECT {columns} FROM t", json.dumps(parameters))).fetchone()
            options = json.dumps({"mechanism": mechanism.lower()})
            (answer,) = self.connections[noise].execute("SELECT dp_merge('t', dp_states(?), ?)", (state[0], options)).fetchone()
            if isinstance(answer, str):
                answer = json.loads(answer)
                return np.array([answer[str(key)] for key in range(question.keys_count)])
            return answer

        found = []
        for (mechanism, noise), clip, shape in itertools.product(ways, [None] if scale is None else question.clips, shapes):
            parameters = {**fixed, **shape, "mechanism": mechanism.lower()} | ({} if scale is None else {"clip": clip * scale})
            label = ", ".join([mechanism] + (["rdp"] if noise == "RDP" else []) + ([] if scale is None else [f"c={clip:g}"])
                              + [f"{a}={b:g}" for a, b in shape.items()])
            if mechanism == "exponential" and shape.get("bins"):
                continue
            found.append((label, functools.partial(draw, mechanism, noise, parameters, [])))
        return found


# ---- OpenDP ------------------------------------------------------------------------------------------


class OpenDP:
    def __init__(self):
        import opendp.prelude as dp
        import polars

        dp.enable_features("contrib", "honest-but-curious")
        self.dp, self.pl = dp, polars
        self.number = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)

        def epsilon(scale):
            gaussian = dp.m.make_gaussian(*self.number, scale)
            return dp.c.make_zCDP_to_approxDP(gaussian).map(1.0).epsilon(DELTA)

        scale = dp.binary_search(lambda s: epsilon(s) <= EPSILON, bounds=(0.1, 1e4))
        self.calibrated = {}
        self.rho = dp.m.make_gaussian(*self.number, scale).map(1.0)

    def losses(self):
        return {"Laplace": self.dp.loss_of(epsilon=EPSILON), "Gaussian": self.dp.loss_of(rho=self.rho)}

    def scales(self, question, query, noise, share, *bounds):
        """Returns the noise scales that the library calibrates for this query: [(aggregate, scale)]. A calibration takes seconds,
        so the function calibrates for one question only, with epsilon or rho divided by `share`."""
        key = (question, noise, bounds)
        if key not in self.calibrated:
            self.calibrated[key] = self.calibrate(query, self.losses()[noise])
        factor = share if noise == "Laplace" else share ** 0.5
        return [(aggregate, scale * factor) for aggregate, scale in self.calibrated[key]]

    def calibrate(self, query, loss):
        frame = self.pl.LazyFrame({"id": [1, 2], "key": [0, 1], "value": [1.0, 2.0]})
        context = self.dp.Context.compositor(
            data=frame, privacy_loss=loss, split_evenly_over=1,
            privacy_unit=self.dp.unit_of(contributions=1, identifier=self.pl.col("id")),
            margins=[self.dp.polars.Margin(max_length=10**6, max_groups=1000)])
        return [(row[-3], row[-1]) for row in query(context.query()).summarize().rows()]

    def noise(self, noise, aggregate, scale):
        space = self.number
        make = self.dp.m.make_laplace if noise == "Laplace" else self.dp.m.make_gaussian
        if "Length" in aggregate:
            space = (self.dp.atom_domain(T="i64"),
                     self.dp.absolute_distance(T="i64" if noise == "Laplace" else float))
        return make(*space, scale)

    def candidates(self, question, share):
        found = []
        bounds = question.bounds + ([] if question.keys is None else [(None, k) for k in question.totals])
        for noise, (l0, linf) in itertools.product(self.losses(), bounds):
            draw = (self.one if question.keys is None else self.groups)(question, noise, share, l0, linf)
            label = f"k={linf}" if question.keys is None else f"l0={l0}, linf={linf}" if l0 else f"k={linf} in all"
            found.append((f"{noise}, {label}" if question.kind != "persons" else noise, draw))
        return found

    def one(self, question, noise, share, _, k):
        dp, pl = self.dp, self.pl
        expression = {"persons": lambda: dp.len(signed=True), "rows": lambda: dp.len(signed=True),
                      "sum": lambda: pl.col("value").dp.sum((0.0, float(most))),
                      "mean": lambda: pl.col("value").dp.mean((question.lo, question.hi)),
                      "median": lambda: pl.col("value").dp.median(candidates=question.candidates)}[question.kind]
        most = k * question.hi

        def query(q):
            if question.kind != "sum":
                return q.truncate_per_group(k).select(expression())
            return q.group_by("id").agg(pl.col("value").sum().clip(0.0, most)).select(expression())

        scales = self.scales(question, query, noise, share, k)
        clipped = np.clip(question.values, question.lo, question.hi)
        if question.kind == "median":
            measure = dp.max_divergence() if noise == "Laplace" else dp.zero_concentrated_divergence()
            pick = dp.m.make_private_quantile(
                dp.vector_domain(self.number[0]), dp.symmetric_distance(), measure, question.candidates, 0.5,
                scales[0][1])
            return lambda: pick(clipped[keep_rows(question.units, k)])
        mechanisms = [self.noise(noise, *scale) for scale in scales]
        if question.kind in ("persons", "rows"):
            return lambda: mechanisms[0](len(keep_rows(question.units, k)))
        if question.kind == "sum":
            return lambda: mechanisms[0](float(unit_sums(question, question.values, most).sum()))

        def mean():
            kept = clipped[keep_rows(question.units, k)]
            return mechanisms[0](float(kept.sum())) / max(1, mechanisms[1](len(kept)))
        return mean

    def groups(self, question, noise, share, l0, linf):
        dp, pl = self.dp, self.pl
        expression = {"group counts": lambda: dp.len(signed=True),
                      "group sums": lambda: pl.col("value").dp.sum((question.lo, question.hi)),
                      "group means": lambda: pl.col("value").dp.mean((question.lo, question.hi))}[question.kind]
        keys = pl.LazyFrame({"key": list(range(question.keys_count))})

        def query(q):
            q = q.truncate_per_group(linf, by=["key"]).truncate_num_groups(l0, by=["key"]) if l0 \
                else q.truncate_per_group(linf)
            return q.group_by("key").agg(expression()).with_keys(keys)

        scales = self.scales(question, query, noise, share, l0, linf)
        mechanisms = [self.noise(noise, *scale) for scale in scales]
        clipped = np.clip(question.values, question.lo, question.hi)

        def draw():
            rows = keep_pairs(question, l0, linf) if l0 else keep_rows(question.units, linf)
            if question.kind == "group counts":
                return np.array([mechanisms[0](int(n)) for n in group_sums(question, rows)])
            sums = np.array([mechanisms[0](float(s)) for s in group_sums(question, rows, clipped)])
            if question.kind == "group sums":
                return sums
            return sums / np.array([max(1, mechanisms[1](int(n))) for n in group_sums(question, rows)])
        return draw


# ---- SmartNoise SQL ----------------------------------------------------------------------------------


class SmartNoise:
    def __init__(self):
        import snsql

        self.snsql = snsql
        self.loaded = None

    def privacy(self, steps):
        """Returns the largest epsilon with which `steps` mechanisms stay within the total, according to the system's
        own odometer."""
        from snsql.sql.odometer import OdometerHeterogeneous

        delta = DELTA / (steps + 1)
        low, high = EPSILON / steps, EPSILON
        for epsilon in np.linspace(high, low, 1000):
            privacy = self.snsql.Privacy(epsilon=float(epsilon), delta=delta)
            odometer = OdometerHeterogeneous(privacy)
            for _ in range(steps):
                odometer.spend()
            if odometer.spent[0] <= EPSILON * (1 + 1e-12) and odometer.spent[1] <= DELTA:
                return privacy
        raise AssertionError

    def candidates(self, question, share):
        what = {"persons": "COUNT(DISTINCT unit)", "rows": "COUNT(*)", "sum": "SUM(x)", "mean": "AVG(x)",
                "group counts": "COUNT(*)", "group sums": "SUM(x)", "group means": "AVG(x)"}.get(question.kind)
        if what is None:
            raise Cannot("no quantiles")
        if self.loaded != question:
            self.db = sqlite3.connect(":memory:")
            self.db.execute("CREATE TABLE t(unit INTEGER, key INTEGER, x REAL)")
            keys = question.keys if question.keys is not None else question.units
            self.db.executemany("INSERT INTO t VALUES (?, ?, ?)",
                                zip(question.units.tolist(), keys.tolist(), question.values.tolist()))
            self.loaded = question
        privacy = self.privacy(share * (2 if what == "AVG(x)" else 1))
        by_key = question.keys is not None
        sql = f"SELECT key, {what} AS n FROM main.t GROUP BY key" if by_key else f"SELECT {what} AS n FROM main.t"

        def draw(reader):
            rows = reader.execute(sql)[1:]
            if not by_key:
                return float(rows[0][0])
            answer = dict(rows)
            return np.array([float(answer.get(key) or 0) for key in range(question.keys_count)])

        found = []
        for k in question.totals:
            table = {"max_ids": k, "row_privacy": False, "sample_max_ids": True, "censor_dims": False,
                     "clamp_counts": False, "clamp_columns": True,
                     "unit": {"type": "int", "private_id": True}, "key": {"type": "int"},
                     "x": {"type": "float", "lower": question.lo, "upper": question.hi}}
            reader = self.snsql.from_connection(self.db, privacy=privacy, engine="sqlite",
                                                metadata={"": {"main": {"t": table}}})
            found.append((f"k={k}", functools.partial(draw, reader)))
        return found


# ---- diffprivlib -------------------------------------------------------------------------------------


class Diffprivlib:
    def __init__(self):
        import diffprivlib

        self.lib = diffprivlib
        self.tools = diffprivlib.tools

    def epsilon(self, share):
        if share == 1:
            return EPSILON
        accountants = [self.lib.BudgetAccountant(EPSILON, DELTA, slack=slack) for slack in (0, DELTA * (1 - 1e-9))]
        return max(float(accountant.remaining(share)[0]) for accountant in accountants)

    def candidates(self, question, share):
        epsilon = self.epsilon(share)
        return [(f"k={k}" if question.kind != "persons" else "", self.draw(question, epsilon, k))
                for k in question.totals]

    def draw(self, question, epsilon, k):
        tools, off = self.tools, self.lib.BudgetAccountant()
        bounds = (question.lo, question.hi)
        units, values, keys, count = question.units, question.values, question.keys, question.keys_count

        def by_key(function, rows):
            return np.array([function(values[rows[keys[rows] == key]]) for key in range(count)])

        return {
            "persons": lambda: tools.histogram(np.zeros(len(np.unique(units))), epsilon=epsilon, bins=1,
                                               range=(-1, 1), accountant=off)[0][0],
            "rows": lambda: tools.histogram(np.zeros(len(keep_rows(units, k))), epsilon=epsilon / k, bins=1,
                                            range=(-1, 1), accountant=off)[0][0],
            "sum": lambda: tools.sum(unit_sums(question, values, k * question.hi), bounds=(0, k * question.hi),
                                     epsilon=epsilon, accountant=off),
            "mean": lambda: tools.mean(values[keep_rows(units, k)], bounds=bounds, epsilon=epsilon / k,
                                       accountant=off),
            "median": lambda: tools.median(values[keep_rows(units, k)], bounds=bounds, epsilon=epsilon / k,
                                           accountant=off),
            "group counts": lambda: tools.histogram(
                keys[keep_rows(units, k)], epsilon=epsilon / k, bins=count, range=(-0.5, count - 0.5),
                accountant=off)[0],
            "group sums": lambda: by_key(
                lambda x: tools.sum(x, bounds=(0, question.hi), epsilon=epsilon / k, accountant=off) if len(x) else 0,
                keep_rows(units, k)),
            "group means": lambda: by_key(
                lambda x: tools.mean(x, bounds=bounds, epsilon=epsilon / k, accountant=off) if len(x)
                else (question.lo + question.hi) / 2, keep_rows(units, k)),
        }[question.kind]


# ---- PipelineDP on Google's library ------------------------------------------------------------------


class PipelineDP:
    def __init__(self):
        import pipeline_dp

        self.p = pipeline_dp
        self.deviations = {}

    def combiner(self, metric, noise, accountant, share, **bounds):
        """Returns the combiner of one of `share` aggregations. The system's accountant computes the budget of this
        aggregation."""
        p = self.p
        parameters = p.AggregateParams(noise_kind=noise, metrics=[metric], **bounds)

        def compound(total):
            return p.combiners.create_compound_combiner(parameters, total)

        if accountant == "naive":
            total = p.NaiveBudgetAccountant(EPSILON, DELTA)
            made = [compound(total) for _ in range(share)][0]
            total.compute_budgets()
            return made._combiners[0]
        key = (noise, share * (2 if metric == p.Metrics.MEAN else 1))
        if key not in self.deviations:  # the result depends only on the noise and the number of mechanisms
            total = p.PLDBudgetAccountant(EPSILON, DELTA)
            specs = [total.request_budget(noise.convert_to_mechanism_type()) for _ in range(key[1])]
            total.compute_budgets()
            self.deviations[key] = specs[0].noise_standard_deviation
        total = p.PLDBudgetAccountant(EPSILON, DELTA)
        made = compound(total)
        for spec in total.mechanism_specs:
            spec.set_noise_standard_deviation(self.deviations[key])
        return made._combiners[0]

    def candidates(self, question, share):
        p = self.p
        metric = {"persons": p.Metrics.PRIVACY_ID_COUNT, "rows": p.Metrics.COUNT, "group counts": p.Metrics.COUNT,
                  "sum": p.Metrics.SUM, "group sums": p.Metrics.SUM, "mean": p.Metrics.MEAN,
                  "group means": p.Metrics.MEAN, "median": p.Metrics.PERCENTILE(50)}[question.kind]
        kinds = {"Laplace": p.NoiseKind.LAPLACE, "Gaussian": p.NoiseKind.GAUSSIAN}
        found = []
        for (name, noise), accountant in itertools.product(kinds.items(), ("naive", "PLD")):
            choices = [(f"l0={l0}, linf={linf}" if question.keys is not None else f"k={linf}",
                        {"max_partitions_contributed": l0, "max_contributions_per_partition": linf}, (l0, linf))
                       for l0, linf in self.bounds(question)]
            if question.keys is not None and name == "Laplace":
                choices += [(f"k={k} in all", {"max_contributions": k}, k) for k in question.totals]
            for label, bounds, keep in choices:
                if question.kind == "group sums" and keep not in question.totals:
                    bounds = {"max_partitions_contributed": keep[0], "max_contributions_per_partition": 1,
                              "min_sum_per_partition": 0.0, "max_sum_per_partition": keep[1] * question.hi}
                elif question.kind == "sum":
                    bounds = {"max_partitions_contributed": 1, "max_contributions_per_partition": 1,
                              "min_sum_per_partition": 0.0, "max_sum_per_partition": keep[1] * question.hi}
                elif question.kind not in ("persons", "rows", "group counts"):
                    bounds = dict(bounds, min_value=question.lo, max_value=question.hi)
                combiner = self.combiner(metric, noise, accountant, share, **bounds)
                prefix = f"{name}, {accountant}" if share > 1 or question.kind.endswith("s") else name
                if question.kind == "persons":
                    label = ""
                found.append((", ".join(filter(None, (prefix, label))), self.draw(question, combiner, keep)))
        return found

    def bounds(self, question):
        """Returns the contribution bounds to try. For sums by group, some of these bounds limit a person's sum to less
        than the bound of one row."""
        if question.kind != "group sums":
            return question.bounds
        return question.bounds + [(l0, part) for l0 in sorted({l0 for l0, _ in question.bounds}) for part in (0.5, 0.7)]

    def draw(self, question, combiner, keep):
        clipped = np.clip(question.values, question.lo, question.hi)
        middle = (question.lo + question.hi) / 2

        def rows():
            if question.keys is None:
                return keep_rows(question.units, keep[1])
            return keep_rows(question.units, keep) if isinstance(keep, int) else keep_pairs(question, *keep)

        def metric(accumulator):
            return next(iter(combiner.compute_metrics(accumulator).values()))

        def median():
            return metric(combiner.create_accumulator(clipped[rows()]))

        def mean():
            kept = rows()
            return metric((len(kept), float((clipped[kept] - middle).sum())))

        def group_means():
            kept = rows()
            counts, sums = group_sums(question, kept), group_sums(question, kept, clipped - middle)
            return np.array([metric((int(n), float(s))) for n, s in zip(counts, sums)])

        def group_totals():
            if isinstance(keep, int):
                return group_sums(question, rows(), clipped)
            pair = question.units.astype(np.int64) * question.keys_count + question.keys
            pairs, at = np.unique(pair, return_inverse=True)
            sums = np.clip(np.bincount(at, weights=question.values), 0, keep[1] * question.hi)
            kept = keep_rows(pairs // question.keys_count, keep[0])
            return np.bincount(pairs[kept] % question.keys_count, weights=sums[kept], minlength=question.keys_count)

        return {
            "persons": lambda: metric(len(np.unique(question.units))),
            "rows": lambda: metric(len(rows())),
            "sum": lambda: metric(float(unit_sums(question, question.values, keep[1] * question.hi).sum())),
            "mean": mean,
            "median": median,
            "group counts": lambda: np.array([metric(int(n)) for n in group_sums(question, rows())]),
            "group sums": lambda: np.array([metric(float(s)) for s in group_totals()]),
            "group means": group_means,
        }[question.kind]


SYSTEMS = {"diffuse": Diffuse, "OpenDP": OpenDP, "SmartNoise SQL": SmartNoise, "diffprivlib": Diffprivlib,
           "PipelineDP": PipelineDP}
