"""Compares private models with fits without privacy and with models of diffprivlib at the same (epsilon, delta).

    python3 bench/models.py [--repetitions N]

There are two real tables and two models for each table, linear and logistic regression. Features and labels are within public
bounds. The program measures the root-mean-square error of a model's predictions, or its mean log loss, on the rows that trained
the model. It reports the median over repetitions, together with the errors of the best constant and of the fit without privacy.
The ledger protects rows, and each person has one row. Neighbouring tables differ in the values of one row. dp_sgd runs
with its defaults, with the best learning rate and radius of a grid (a user does not know which are best), and with the
last tenth of the rows as public rows. The method "moments", for the linear model only, is ridge regression on one
dp_vec_sum of the products of features and label. diffprivlib gets the same bounds and the same epsilon, with delta 0.
Results go to bench/models.md.
"""

import argparse
import csv
import json
import math
import os
import pathlib
import sqlite3
import sys
import warnings

import numpy as np
import scipy.optimize

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("BUILD", "build"))
sys.path.append(str(BUILD / "python-utility"))
DELTA = 1e-6


# ---- data: features of norm at most clip, with a constant; labels within bounds --------------------------------------

def star():
    """Kindergarten: predicts the reading score from the type of the class, free lunch and sex. The question is
    whether a small class helps."""
    rows = [row for row in csv.DictReader(open(HERE.parent / "fixtures" / "star.csv")) if row["grade"] == "K" and row["reading"]]
    x = np.array([[1, (row["class_type"] == "small") - 0.5, (row["class_type"] == "reg+A") - 0.5,
                   (row["lunch"] == "F") - 0.5, (row["sex"] == "F") - 0.5] for row in rows])
    reading = np.array([float(row["reading"]) for row in rows])
    return "star, kindergarten", x, (reading - 450) / 50, math.sqrt(2), 50, "points of reading"


def nafld2():
    """Predicts the first HDL value of every patient who has a blood pressure and an answer about smoking."""
    first = {}
    for row in csv.DictReader(open(BUILD / "nafld2.csv")):
        key = (row["id"], row["test"])
        if key not in first or int(row["days"]) < first[key][0]:
            first[key] = (int(row["days"]), float(row["value"]))
    ids = [i for i, test in first if test == "hdl" and (i, "sbp") in first]
    scaled = lambda value, middle, half: float(np.clip((value - middle) / half, -1, 1))
    x = np.array([[1, scaled(first[i, "sbp"][1], 130, 40), scaled(first[i, "sbp"][0], 0, 5000),
                   (first[i, "smoke"][1] - 0.5) if (i, "smoke") in first else 0] for i in ids])
    hdl = np.array([first[i, "hdl"][1] for i in ids])
    return "nafld2, first HDL", x, (hdl - 50) / 20, math.sqrt(3.25), 20, "mg/dl"


# ---- figures -----------------------------------------------------------------------------------------------------------

def squared_error(w, x, y, unit):
    return unit * math.sqrt(np.mean((x @ w - y)**2))


def log_loss(w, x, y, _unit):
    margin = np.where(y > 0.5, 1, -1) * (x @ w)
    return float(np.mean(np.logaddexp(0, -margin)))


def exact(model, x, y):
    if model == "linear":
        return np.linalg.lstsq(x, y, rcond=None)[0]
    return scipy.optimize.minimize(log_loss, np.zeros(x.shape[1]), (x, y, 1)).x


# ---- systems -----------------------------------------------------------------------------------------------------------

def ledger(rate, x, y):
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.enable_load_extension(True)
    db.load_extension(str((BUILD / "diffuse").resolve()))
    db.execute("SELECT dp_init('{\"protects\":\"row\",\"adjacency\":\"replace\"}')").fetchall()
    db.execute("SELECT dp_tier('t', ?, 1e12, 1e-6)", (rate,)).fetchall()
    db.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, y, x)")
    db.execute("CREATE TABLE p(id INTEGER PRIMARY KEY, y, x)")  # the last tenth of the rows, as public rows
    db.execute("SELECT dp_protect('t'), dp_public('p')").fetchall()
    order = np.random.default_rng(1).permutation(len(y))  # the tables are sorted by school and patient
    db.executemany("INSERT INTO t(y, x) VALUES (?, ?)", [(float(y[i]), x[i].astype("<f8").tobytes()) for i in order])
    db.execute("INSERT INTO p SELECT * FROM t WHERE id > ?", (len(y) - len(y) // 10,))
    return db


def rate_of(epsilon):
    db = sqlite3.connect(":memory:")
    db.enable_load_extension(True)
    db.load_extension(str((BUILD / "diffuse").resolve()))
    return db.execute("SELECT dp_rate(?, ?)", (epsilon, DELTA)).fetchone()[0]


def by_sgd(db, model, x, y, clip, **options):
    loss = {"linear": {"threshold": 1.5}, "logistic": {}}[model]
    name = {"linear": "huber", "logistic": "logistic"}[model]
    asked = {"loss": name, "n": len(y), "dim": x.shape[1], "clip": clip, "radius": 2, **loss, **options}
    sql = "SELECT y, x FROM t" + "; SELECT y, x FROM p ORDER BY id" * ("public_rows" in options)
    (answer,) = db.execute("SELECT dp_release('t', 'sgd', ?, ?)", (sql, json.dumps(asked))).fetchone()
    return np.array(json.loads(answer))


def by_moments(db, x, y, clip):
    """Fits a ridge regression to the noisy sum of (x x', x y) over all rows. The vector (x x', x y) of one row has a norm of at
    most clip sqrt(clip^2 + bound^2)."""
    bound, dim = 3, x.shape[1]
    upper = np.triu_indices(dim)
    weight = np.where(upper[0] == upper[1], 1, math.sqrt(2))
    y = np.clip(y, -bound, bound)
    db.create_function("products", 2, lambda label, blob: (lambda v: np.concatenate(
        [np.outer(v, v)[upper] * weight, v * min(max(label, -bound), bound)]).tobytes())(np.frombuffer(blob)))
    if not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'm'").fetchone():
        db.execute("CREATE TABLE m AS SELECT products(y, x) AS v FROM t")
        db.execute("SELECT dp_protect('m')").fetchall()
    (answer,) = db.execute("SELECT dp_vec_sum('t', v, ?, ?) FROM m",
                           (len(upper[0]) + dim, clip * math.hypot(clip, bound))).fetchone()
    sums = np.array(json.loads(answer))
    gram = np.zeros((dim, dim))
    gram[upper] = sums[:len(upper[0])] / weight
    gram = gram + gram.T - np.diag(np.diag(gram))
    least = np.linalg.eigvalsh(gram)[0]
    return np.linalg.solve(gram + np.eye(dim) * max(0.01 * len(y) - least, 0), sums[len(upper[0]):])


def by_diffprivlib(model, x, y, clip, epsilon):
    import diffprivlib.models as models
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if model == "linear":
            bounds = (-np.ones(x.shape[1] - 1), np.ones(x.shape[1] - 1))
            fit = models.LinearRegression(epsilon=epsilon, bounds_X=bounds, bounds_y=(-3, 3)).fit(x[:, 1:], np.clip(y, -3, 3))
            return np.concatenate([[float(fit.intercept_)], fit.coef_.ravel()])
        fit = models.LogisticRegression(epsilon=epsilon, data_norm=clip, fit_intercept=False, C=1.0, max_iter=1000).fit(x, y > 0.5)
        return fit.coef_.ravel()


# ---- the table ---------------------------------------------------------------------------------------------------------

def median(figure, fit, repetitions, x, y, unit):
    return float(np.median([figure(fit(), x, y, unit) for _ in range(repetitions)]))


def rows_of(repetitions):
    for load in (star, nafld2):
        name, x, score, clip, unit, what = load()
        assert np.linalg.norm(x, axis=1).max() <= clip * (1 + 1e-12)
        for model in ("linear", "logistic"):
            y = score if model == "linear" else (score > 0).astype(float)
            figure = squared_error if model == "linear" else log_loss
            constant = exact(model, x[:, :1], y)
            for epsilon in (1, 4):
                db = ledger(rate_of(epsilon), x, y)
                run = lambda fit, count=repetitions: median(figure, fit, count, x, y, unit)
                default = run(lambda: by_sgd(db, model, x, y, clip))
                grid = {}
                eta = json.loads(db.execute("SELECT options FROM dp_release").fetchone()[0])["model"]["eta"]
                for radius in (1, 2):
                    for factor in (0.1, 0.2, 0.5, 1, 2):
                        grid[factor * eta, radius] = run(lambda: by_sgd(db, model, x, y, clip, eta=factor * eta, radius=radius),
                                                         max(repetitions // 4, 5))
                (best, radius), _ = min(grid.items(), key=lambda item: item[1])
                tuned = run(lambda: by_sgd(db, model, x, y, clip, eta=best, radius=radius))
                tenth = len(y) // 10
                public = run(lambda: by_sgd(db, model, x, y, clip, n=len(y) - tenth, public_rows=tenth))
                moments = run(lambda: by_moments(db, x, y, clip)) if model == "linear" else math.nan
                other = run(lambda: by_diffprivlib(model, x, y, clip, epsilon))
                yield [f"{name} ({len(y):,} rows, {x.shape[1]} features), {model}",
                       what if model == "linear" else "nats", epsilon, figure(constant, x[:, :1], y, unit),
                       figure(exact(model, x, y), x, y, unit), default, tuned, f"{best / eta:g} eta, radius {radius}",
                       public, moments, other]


def text(value):
    return "" if isinstance(value, float) and math.isnan(value) else f"{value:.4g}" if isinstance(value, float) else str(value)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repetitions", type=int, default=100)
    arguments = parser.parse_args()
    head = ["data and model", "unit", "epsilon", "a constant", "without privacy", "dp_sgd", "dp_sgd, best eta and radius",
            "which", "dp_sgd, a tenth public", "moments", "diffprivlib"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows_of(arguments.repetitions):
        lines.append("| " + " | ".join(text(value) for value in row) + " |")
        print(lines[-1], flush=True)
    intro = (HERE / "models.md").read_text().split("\n| data")[0] if (HERE / "models.md").exists() else "# Models\n"
    (HERE / "models.md").write_text(intro + "\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
