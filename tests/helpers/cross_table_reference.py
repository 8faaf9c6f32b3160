"""An independent computation of cross tables, with dense linear algebra and plain loops. It uses no code of the extension.

A programme has attributes {name: keys}. A table is a tuple of names, in the order of the attributes."""

import fractions
import itertools
import json
import math

import numpy


def closure(attributes, ways):
    """Returns all tables of the option ways with their weights, sorted by size and then by bit mask."""
    names = list(attributes)
    if isinstance(ways, int):
        asked = {tables: 1 for tables in itertools.combinations(names, ways)}
    else:
        asked = {}
        for table in ways:
            weight = table[-1] if table and not isinstance(table[-1], str) else 1
            asked[tuple(n for n in names if n in table)] = weight
    weights = {}
    for table in asked:
        for size in range(len(table) + 1):
            for inside in itertools.combinations(table, size):
                weights[inside] = asked.get(inside, 1)
    mask = {n: 1 << i for i, n in enumerate(names)}
    return dict(sorted(weights.items(), key=lambda item: (len(item[0]), sum(mask[n] for n in item[0]))))


def cells(attributes, table):
    return list(itertools.product(*(attributes[name] for name in table)))


def key(attributes, table, cell):
    """Returns the key that dp_value shows."""
    return json.dumps(dict(zip(table, map(str, cell))), separators=(",", ":"), ensure_ascii=False)


def design(attributes, tables):
    """Returns the matrix that maps the full table to the cells of the tables, one after the other."""
    full = cells(attributes, list(attributes))
    names = list(attributes)
    rows = []
    for table in tables:
        places = [names.index(name) for name in table]
        for cell in cells(attributes, table):
            rows.append([float(tuple(f[p] for p in places) == cell) for f in full])
    return numpy.array(rows)


def variances(attributes, tables, shares):
    """Returns the variance of a cell of each reconciled table if table A is measured with the variance 1/shares[A] in each cell: the
    diagonal of the covariance of the generalised least-squares estimate, and its largest deviation within a table."""
    matrix = design(attributes, tables)
    weight = numpy.concatenate([numpy.full(len(cells(attributes, t)), shares[t]) for t in tables])
    covariance = matrix @ numpy.linalg.pinv(matrix.T @ (weight[:, None] * matrix), hermitian=True) @ matrix.T
    return covariance


def least_squares(attributes, tables, shares, measured):
    """Returns the generalised least-squares estimate of all cells from the measured ones (NaN: not measured)."""
    matrix = design(attributes, tables)
    weight = numpy.concatenate([numpy.full(len(cells(attributes, t)), shares[t]) for t in tables])
    y = numpy.where(weight > 0, measured, 0)
    inverse = numpy.linalg.pinv(matrix.T @ (weight[:, None] * matrix), hermitian=True)
    return matrix @ (inverse @ (matrix.T @ (weight * y)))


def exact(attributes, tables, rows, clip, multipliers, kind, sum_norm=False):
    """Returns the clipped totals of all measured coordinates in rows (or units of x), as floats, and the clipped tables. `rows` are
    (unit, {name: key}, x). A unit's vector of all measured tables is at most clip S long (counts and sums)."""
    names = list(attributes)
    size = math.fsum(multipliers.values()) if sum_norm else math.sqrt(sum(m * m for m in multipliers.values()))
    units = {}
    for unit, keys, x in rows:
        if all(str(keys[n]) in map(str, attributes[n]) for n in names):
            cell = tuple(str(keys[n]) for n in names)
            units.setdefault(unit, {}).setdefault(cell, []).append(1.0 if kind == "group_count" else float(x))
    totals = {t: dict.fromkeys([tuple(map(str, c)) for c in cells(attributes, t)], 0.0) for t in tables}
    for cells_of_unit in units.values():
        own = {cell: math.fsum(values) for cell, values in cells_of_unit.items()}
        norm = 0.0
        for table in tables:
            parts = {}
            for cell, value in own.items():
                place = tuple(cell[names.index(n)] for n in table)
                parts[place] = parts.get(place, 0.0) + value
            sizes = [abs(v) * multipliers[table] for v in parts.values()]
            norm += math.fsum(sizes) if sum_norm else math.fsum(s * s for s in sizes)
        norm = norm if sum_norm else math.sqrt(norm)
        factor = min(1.0, clip * size / norm) if norm else 1.0
        for table in tables:
            for cell, value in own.items():
                totals[table][tuple(cell[names.index(n)] for n in table)] += factor * value
    return totals


def objective(attributes, weights, multipliers, sum_norm=False):
    """Returns the weighted mean of the variances over tables, in units of one count alone, with exact fractions."""
    whole = sum(multipliers.values()) ** 2 if sum_norm else sum(m * m for m in multipliers.values())
    n = {t: math.prod(len(attributes[name]) for name in t) for t in weights}
    inside = {t: [s for s in weights if set(s) <= set(t)] for t in weights}
    p = {b: sum(fractions.Fraction(multipliers[a] ** 2, whole) * fractions.Fraction(n[b], n[a]) for a in weights if b in inside[a])
         for b in weights}
    k = {b: math.prod(fractions.Fraction(len(attributes[name]) - 1, len(attributes[name])) for name in b) for b in weights}
    variance = {a: sum(k[b] / p[b] * fractions.Fraction(n[b], n[a]) ** 2 for b in inside[a] if k[b]) for a in weights}
    total = sum(map(fractions.Fraction, weights.values()))
    return float(sum(fractions.Fraction(weights[a]) * variance[a] for a in weights) / total), {a: float(v) for a, v in variance.items()}
