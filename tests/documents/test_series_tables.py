"""The tables of sql/series.md about fixtures/hospital.sql, computed anew from its visits with series_reference.py: errors of ordinary
releases and of a series, and what a small clip cuts off."""

import datetime
import math
import pathlib
import re
import sqlite3

import numpy
import pytest
from scipy import optimize, stats

import series_reference as reference

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "sql" / "series.md").read_text()

pytestmark = [pytest.mark.xdist_group("series tables"), pytest.mark.alarm(0)]


@pytest.fixture(scope="module")
def visits():
    """Returns (patient, day, ward) of 2025."""
    with sqlite3.connect(":memory:") as db:
        db.executescript((ROOT / "fixtures" / "hospital.sql").read_text())
        return [(patient, datetime.date.fromisoformat(day), ward) for patient, day, ward in db.execute(
            "SELECT patient_id, admitted, ward FROM visit")]


def histories(visits, ward, form):
    """Returns an array [patient, period] of numbers of visits."""
    labels = reference.labels("2025-01/2025-12" if form == "months" else "2025-W01/2025-W52")
    rows = {}
    for patient, day, where in visits:
        label = reference.label_of(form[:-1], day)
        if label in labels and ward in (where, "all wards"):
            rows.setdefault(patient, [0] * len(labels))[labels.index(label)] += 1
    return numpy.array(list(rows.values()), dtype=float)


def counted(rows, clip):
    """Returns the sum of each period, if everybody counts `clip` in all."""
    before = numpy.cumsum(rows, axis=1) - rows
    return numpy.minimum(rows, numpy.maximum(clip - before, 0)).sum(0)


def rate(epsilon, delta):
    def excess(mu):
        return stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu) - delta
    return optimize.brentq(excess, 1e-3, 50) ** 2 / 2


def errors(rows, sums, total_stddev, stddevs):
    off = sums - rows.sum(0)
    return math.hypot(off.sum(), total_stddev), math.sqrt((off ** 2 + stddevs ** 2).mean())


def releases(rows, clip):
    count = rows.shape[1]
    stddev = clip / math.sqrt(2 * rate(1, 1e-6) / count)
    return errors(rows, numpy.minimum(rows, clip).sum(0), stddev * math.sqrt(count), numpy.full(count, stddev))


def series(rows, clip):
    count = rows.shape[1]
    stddev = clip / math.sqrt(2 * rate(1, 1e-6))
    inverse = numpy.linalg.inv(reference.matrix(count))
    return errors(rows, counted(rows, clip), stddev * numpy.linalg.norm(inverse.sum(0)), stddev * numpy.linalg.norm(inverse, axis=1))


def test_the_table_of_errors(visits):
    """Every number of the table is the error that the reference computes, and its clip is the best one for the total."""
    found = re.findall(r"^\| ([\d,]+), (.*?) \| (\w+) \((\d+) → (\d+)\) \| \**(\d+)\** → \**(\d+)\** \| \**(\d+)\** → \**(\d+)\** \|$", PAGE, re.M)
    assert len(found) == 6
    for number, ward, form, single_clip, series_clip, *shown in found:
        rows = histories(visits, ward, form)
        assert rows.sum() == int(number.replace(",", ""))
        single, whole = releases(rows, int(single_clip)), series(rows, int(series_clip))
        for want, text in zip((single[0], whole[0], single[1], whole[1]), shown):
            assert abs(want - int(text)) < 0.51, (ward, form, text)
        assert min(releases(rows, clip)[0] for clip in range(1, 9)) == single[0]
        assert min(series(rows, clip)[0] for clip in (1, 2, 3, 4, 5, 6, 8, 12, 16, 20)) == whole[0]


def test_the_table_of_thresholds():
    """A series has less noise than single releases where its clip is below these multiples of theirs, for the worst total and period."""
    for count, word in ((12, "months"), (52, "weeks"), (365, "days")):
        (total, period), = re.findall(rf"^\| {count} {word} \| ([\d.]+) \| ([\d.]+) \|$", PAGE, re.M)
        inverse = numpy.linalg.inv(reference.matrix(count))
        worst = max(numpy.linalg.norm(inverse[:t].sum(0)) for t in range(1, count + 1))
        assert count / worst - 1 < float(total) <= count / worst
        assert math.sqrt(count) / numpy.linalg.norm(inverse, axis=1).max() == pytest.approx(float(period), abs=0.1)
        assert 1.4 < numpy.linalg.norm(inverse, axis=1).max() < 2.2


def test_the_table_of_drift(visits):
    rows = histories(visits, "emergency", "months")
    found = re.findall(r"^\| (\d+) \| ([\d.]+)% \| ([\d.]+)% \| ([\d.]+)% \|$", PAGE, re.M)
    assert len(found) == 4
    for clip, *shown in found:
        share = counted(rows, int(clip)) / rows.sum(0)
        for want, text in zip((share[0], share[-1], counted(rows, int(clip)).sum() / rows.sum()), shown):
            assert abs(100 * want - float(text)) < (0.051 if "." in text else 0.51)


def test_the_dialysis_patient(visits):
    """One patient has 183 visits. Releases of one month with the clip 4 count 48 of them."""
    rows = histories(visits, "all wards", "months")
    assert rows.sum(1).max() == 183 and numpy.minimum(rows, 4).sum(1).max() == 48
    assert "of the 183 visits of a dialysis patient, twelve releases count 48, the series 16" in " ".join(PAGE.split())
    inverse = numpy.linalg.inv(reference.matrix(12))
    assert "4.85" in PAGE and math.sqrt((inverse ** 2).sum()) == pytest.approx(4.85, abs=0.005)
    assert "1.61" in PAGE and numpy.linalg.norm(inverse.sum(0)) == pytest.approx(1.61, abs=0.005)
