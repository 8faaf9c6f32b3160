"""Compares dp_value.display with an implementation of the same rules in exact decimals."""

import contextlib
import ctypes
import decimal
import fractions
import json
import math
import random
import re
import subprocess

import pytest

from conftest import connect, create, ledger_of, make_ledger, one

pytestmark = pytest.mark.alarm(0)


# ---- the rules, in exact decimals --------------------------------------------------------------------


def first_digit(x):
    """Returns the power of ten of the first digit of a positive rational number."""
    return decimal.Decimal(float(x)).adjusted()


def rounded(x, place, how):
    """Rounds a double to a multiple n * 10^place, and returns n."""
    step = fractions.Fraction(10) ** place
    quotient = fractions.Fraction(x) / step
    return {"nearest": round, "up": math.ceil, "down": math.floor}[how](quotient)


def written(n, place):
    """Returns n * 10^place as a text with commas and decimals."""
    return f"{decimal.Decimal(n).scaleb(place):,.{max(0, -place)}f}" if n else f"{0:.{max(0, -place)}f}"


def last_digit(x):
    """Returns the power of ten of the last digit of a double, written with 15 digits."""
    return decimal.Decimal(f"{x:.14e}").normalize().as_tuple().exponent if x else math.inf


def limited(n, place, scale, least, most):
    """Writes n * 10^place, or the nearer end of the range with all its digits."""
    x, step = fractions.Fraction(n) * fractions.Fraction(10) ** place, fractions.Fraction(10)
    for end, outside in ((least, x < least), (most, x > most)):
        if outside:
            last = min(place, last_digit(end))
            return written(round(fractions.Fraction(end) / step**last), last - scale)
    return written(n, place - scale)


def display(value, low, high, least=-math.inf, most=math.inf, lo=0.0, grid=None, leaf=None):
    below, above = (value - low) * (1 - 1e-6), (high - value) * (1 - 1e-6)
    half = below / 2 + above / 2
    if not half:
        return certain(min(max(value, least), most), grid)
    if high < least or low > most:  # "0 ± 8" would be another interval
        least, most = -math.inf, math.inf
    first = first_digit(max(abs(value), half)) if value or half else 0
    place = first - 14
    lead = first_digit(half)
    place = max(place, lead - 1 if rounded(half, lead - 1, "up") < 30 else lead)
    if grid:
        place = max(place, min(last_digit(lo), last_digit(grid)))
    if leaf:
        place = max(place, first_digit(leaf))
    scale = first if first >= 15 or place < -9 else 0
    shown, minus, plus = rounded(value, place, "nearest"), rounded(below, place, "up"), rounded(above, place, "up")
    unit = fractions.Fraction(10) ** place
    fits = math.inf in (-least, most) or (shown - minus) * unit >= least and (shown + plus) * unit <= most
    if minus == plus and fits:
        text = f"{limited(shown, place, scale, least, most)} ± {written(plus, place - scale)}"
    else:
        ends = rounded(value - below, place, "down") if minus else shown, rounded(value + above, place, "up") if plus else shown
        first_end, last_end = (limited(end, place, scale, least, most) for end in ends)
        text = f"{limited(shown, place, scale, least, most)} ({first_end} to {last_end})"
    return f"({text}) × 10^{scale}" if scale else text


def certain(value, grid):
    """The text for a value whose interval is a single point: between two halves of a step, all numbers count as the value."""
    first, place = decimal.Decimal(f"{abs(value):.14e}").adjusted() if value else 0, last_digit(value)
    if first >= 15 or first < -9:
        return f"{written(rounded(value, place, 'nearest'), place - first)} × 10^{first}"
    grid = grid and last_digit(grid / 2) >= -9 and grid
    place = max(-9, min(place, 0))
    text = written(rounded(value, place, "nearest"), place) if value else "0"
    return f"{text} ± {decimal.Decimal(f'{grid / 2:.14e}').normalize():f}" if grid else text


@pytest.mark.parametrize("value,low,high,grid,text", [
    (12.7, 12.7, 12.7, 0.1, "12.7 ± 0.05"), (12.7, 12.6, 12.8, 0.1, "12.7 ± 0.1"), (12.7, 12.6, 12.7, 0.1, "12.7 (12.6 to 12.7)"),
    (12.7, 12.3, 13.1, 0.1, "12.7 ± 0.4"), (584, 584, 584, 1, "584 ± 0.5"), (584, 583, 585, 1, "584 ± 1"), (120, 110, 130, 10, "120 ± 10"),
    (0.25, 0.25, 0.25, 0.25, "0.25 ± 0.125"), (0.5, 0.25, 0.75, 0.25, "0.50 ± 0.25"), (7, 7, 7, None, "7"), (0, 0, 0, None, "0"), (-3, -3, -3, 1, "0 ± 0.5"),
    (1200, 1200, 1200, 100, "1,200 ± 50"), (200, 200, 200, 40, "200 ± 20")])
def test_examples_of_the_rules_for_a_grid(book, value, low, high, grid, text):
    """Compares the extension and the reference with examples that were computed by hand."""
    assert display(value, low, high, 0, math.inf, 0.0, grid) == text
    assert shown_by_ledger(book, "median", [(float(value), float(low), float(high))], 0.0, math.inf, grid) == [text]


@pytest.mark.parametrize("value,low,high,positive,text", [
    (1803.7, 1796.0, 1811.4, True, "1,804 ± 8"), (4.3612, 4.3412, 4.3812, False, "4.361 ± 0.020"),
    (4.3612, 4.3262, 4.3962, False, "4.36 ± 0.04"), (-3, -11, 5, True, "0 ± 8"), (-3, -11, 5, False, "-3 ± 8"),
    (-30, -38, -22, True, "-30 ± 8"), (-30, -60, 0, True, "0 ± 30"), (12345678, 12340678, 12350678, True, "12,346,000 ± 5,000"),
    (0.5, -4, 6, False, "0 (-4 to 6)"), (29.4, 27.3, 33.9, False, "29 (27 to 34)"), (2, -4, 12, True, "2 (0 to 12)"),
    (3e20, 2.9e20, 3.1e20, False, "(3.00 ± 0.10) × 10^20"), (1.5e-12, 1.1e-12, 1.9e-12, False, "(1.5 ± 0.4) × 10^-12"),
    (3, -192, 198, False, "0 ± 200"), (99.96, 99.0, 100.92, False, "100.0 ± 1.0"), (0.25, -0.25, 0.75, False, "0.2 ± 0.5"),
    (0.35, 0.05, 0.65, False, "0.3 ± 0.3")])
def test_examples_of_the_rules(value, low, high, positive, text):
    """Compares the reference above with examples that were computed by hand."""
    assert display(value, low, high, 0 if positive else -math.inf) == text


@pytest.mark.parametrize("kind,lo,hi,value,low,high,text", [
    ("avg", 0, 20, 20, 0, 20, "20 (0 to 20)"), ("avg", 1, 10, 1.02, 1, 4.97, "1.0 (1.0 to 5.0)"), ("avg", 0.25, 10, 0.27, 0.25, 4.1, "0.3 (0.25 to 4.1)"),
    ("avg", 0.25, 10, 0.25, 0.25, 4.1, "0.25 (0.25 to 4.1)"), ("avg", -10, -1, -1.02, -5, -1, "-1.0 (-5.0 to -1.0)"),
    ("avg", 0, 800, 795, 780, 800, "795 (780 to 800)"), ("avg", 0, 20, 19.906, 19.8061, 20, "19.91 (19.80 to 20.00)"), ("var", 0, 2, 0.9, 0.2, 1, "0.9 (0.2 to 1.0)"),
    ("stddev", 0, 2, 0.96, 0.2, 1, "1.0 (0.2 to 1.0)"), ("group_avg", 0, 3.5, 3.4, 1.1, 3.5, "3.4 (1.1 to 3.5)"), ("count", None, None, 2, -4, 12, "2 (0 to 12)")])
def test_no_number_is_shown_outside_a_public_range(book, kind, lo, hi, value, low, high, text):
    row = (float(value), float(low), float(high))
    assert shown_by_ledger(book, kind, [row], lo, hi) == [text]


@pytest.mark.parametrize("value,low,high,lo,hi,leaves,text", [
    (50.0491, 50, 50.09765625, 0, 100, 1024, "50.05 ± 0.05"), (65230.64, 58593.75, 68359.375, 0, 1e7, 1024, "65,000 (58,000 to 69,000)"),
    (50.0131, 50, 50.0244140625, 0, 100, 4096, "50.01 ± 0.02"), (3.5, 3, 4, 0, 16, 16, "4 ± 1")])
def test_no_digit_is_below_the_width_of_a_leaf(book, value, low, high, lo, hi, leaves, text):
    assert display(value, low, high, lo, hi, leaf=(hi - lo) / leaves) == text
    assert shown_by_ledger(book, "median", [(value, low, high)], lo, hi, size=leaves) == [text]


def test_numbers_of_ou_kinds_say_where_they_move(book):
    with contextlib.closing(ledger_of(book)) as ledger:
        ledger.execute("UPDATE dp_release SET centre = 12.5")
    assert shown_by_ledger(book, "ou_sum", [(3.0, -2.0, 9.0)]) == ["3 (-2 to 9), shrunk towards 12.5"]
    assert shown_by_ledger(book, "sum", [(3.0, -2.0, 9.0)]) == ["3 (-2 to 9)"]


# ---- the extension -----------------------------------------------------------------------------------


def shown_by_ledger(path, kind, rows, lo=None, hi=None, grid=None, size=None):
    """Edits the ledger: replaces the values of a release of this kind by rows (value, low, high). Returns dp_value.display of
    these rows."""
    with contextlib.closing(ledger_of(path)) as ledger:
        ledger.execute("UPDATE dp_release SET kind = ?, lo = ?, hi = ?, grid = ?, size = ?", (kind, lo, hi, grid, size))
        ledger.execute("BEGIN")
        ledger.execute("DELETE FROM dp_value")
        ledger.executemany("INSERT INTO dp_value SELECT id, name, 'clinic', '', ?, ?, 1.0, ?, ? FROM dp_release",
                           [(i, *row) for i, row in enumerate(rows)])
        ledger.execute("COMMIT")
    with contextlib.closing(connect(path)) as db:
        return [text for (text,) in db.execute("SELECT display FROM dp_value ORDER BY component")]


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    path = tmp_path_factory.mktemp("display") / "a.db"
    db = create(path)
    one(db, "SELECT dp_release('clinic', 'count', 'SELECT 1 FROM visits', '{\"name\":\"a\",\"clip\":1}')")
    db.close()
    return path


def random_rows(seed, count):
    """Returns values with intervals of all sizes. Some values are exactly in the middle between two rounded values, or
    next to the middle. Some intervals are symmetric."""
    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        half = draw.choice([1, 2, 3, 5, 9.5, 9.999999, 10, 0.25, 0.3, draw.uniform(0.1, 10)]) * 10.0 ** draw.choice(
            [0, 0, 1, 2, 3, -1, -3, draw.randint(-60, 60)])
        value = draw.choice([half, 1, 10, 1e3, 1e6]) * draw.choice([0, 0.5, 1.5, 2.5, draw.uniform(-10, 10), 12345.5])
        skew = draw.choice([1, 1, 1, 1 + 1e-9, draw.uniform(0.01, 3)])
        rows.append((value, min(value, value - half), max(value, value + half * skew)))
    return [row for row in rows if row[2] > row[1]]


@pytest.mark.parametrize("kind,lo,positive", [
    ("count", None, True), ("group_count", None, True), ("histogram", -5.0, True), ("response_count", None, True),
    ("sum", None, False), ("avg", -math.inf, False), ("avg", 0.0, True), ("median", -math.inf, False)])
def test_display_follows_the_rules(book, kind, lo, positive):
    rows = random_rows(kind, 1500)
    for row, got in zip(rows, shown_by_ledger(book, kind, rows, lo, math.inf), strict=True):
        assert got == display(*row, 0 if positive else -math.inf), (row, got)
        if positive and row[2] >= 0:
            assert "-" not in got.split("10^")[0]


@pytest.mark.parametrize("lo,grid", [(0.0, 0.1), (0.05, 0.1), (-7.0, 0.25), (0.0, 50.0), (1e-3, 1.0), (0.0, 1 / 3)])
def test_no_digit_is_beyond_the_grid(book, lo, grid):
    draw = random.Random(f"{lo} {grid}")
    steps = [(k := draw.randrange(1000), max(0, k - draw.choice([0, 0, 1, 3, 40])), k + draw.choice([0, 0, 1, 3, 40])) for _ in range(400)]
    rows = [tuple(lo + grid * k for k in ks) for ks in steps]
    for row, got in zip(rows, shown_by_ledger(book, "median", rows, lo, math.inf, grid), strict=True):
        assert got == display(*row, lo, math.inf, lo, grid), row
        assert "± 0.0 " not in got + " " and not re.search(r"± 0(\.0*)?$", got)


def test_extremes_are_shown_too(book):
    rows = [(1.7e308, 1.6e308, 1.79e308), (-1e-300, -2e-300, 0.0), (5e-324, -1e-323, 2e-323), (0.0, -1.0, 1.0), (-0.0, -1.0, 1.0),
            (1e15, 1e15 - 1, 1e15 + 1), (123456789012345.0, 123456789012344.0, 123456789012346.0), (1e5, 1e5 - 1e-9, 1e5 + 1e-9)]
    got = shown_by_ledger(book, "sum", rows)
    assert got == [display(*row) for row in rows]
    assert got[3] == got[4] == "0.0 ± 1.0"
    alone = [(12.699999999999999, "12.7"), (7.0, "7"), (0.0, "0"), (-1234.25, "-1,234.25"), (1e20, "1 × 10^20"), (1e-12, "1 × 10^-12"), (2 / 3, "0.666666667")]
    for (value, text), shown in zip(alone, shown_by_ledger(book, "sum", [(value, value, value) for value, _ in alone])):
        assert shown == display(value, value, value) == text
    at_one_end = [(12.699999999999999, 12.699999999999999, 12.8), (12.8, 12.7, 12.8), (-12.7, -12.8, -12.7)]
    assert shown_by_ledger(book, "sum", at_one_end) == ["12.70 (12.70 to 12.80)", "12.80 (12.70 to 12.80)", "-12.70 (-12.80 to -12.70)"]
    assert shown_by_ledger(book, "sum", [(1.0, -9e999, 9e999)]) == ["1.000"]  # an interval without information


NUMBER = r"-?[\d,]+(?:\.\d+)?"


def test_display_of_releases(path):
    """Tests dp_value.display for real releases of all forms."""
    db = create(path)
    rows = "SELECT minutes FROM visits"
    one(db, "SELECT dp_release('clinic', 'count', ?, '{\"name\":\"n\",\"clip\":1}')", rows)
    one(db, "SELECT dp_release('clinic', 'avg', ?, ?)", rows, '{"name":"m","lo":0,"hi":10}')
    one(db, "SELECT dp_release('clinic', 'median', ?, ?)", rows, '{"name":"q","lo":0,"hi":10}')
    one(db, "SELECT dp_release('clinic', 'group_count', 'SELECT minutes FROM visits', ?)",
        '{"name":"g","keys":[0,1,2,3,4,5,6],"clip":2}')
    one(db, "SELECT dp_diffuse('g', 'public')")
    found = db.execute("SELECT release, value, low, high, display FROM dp_value").fetchall()
    assert len(found) == 3 + 14
    for release, value, low, high, text in found:
        assert re.fullmatch(rf"{NUMBER} (± {NUMBER}|\({NUMBER} to {NUMBER}\))", text), text
        assert text == display(value, low, high, 0, 10 if release in "mq" else math.inf, leaf=10 / 1024 if release == "q" else None)
    assert db.execute("SELECT count(*) FROM dp_value WHERE display = (SELECT display FROM dp_value WHERE release = 'n')"
                      " AND release = 'n'").fetchone() == (1,)
    one(db, "SELECT dp_discard('n')")
    assert not db.execute("SELECT display FROM dp_value WHERE release = 'n'").fetchall()


@pytest.mark.parametrize("kind,sql,options,labels", [
    ("histogram", "minutes", {"clip": 1, "lo": 0, "hi": 10, "bins": 4}, ["below 2.5", "2.5 to 5", "5 to 7.5", "7.5 and more"]),
    ("histogram", "minutes", {"clip": 1, "lo": 0, "hi": 10, "bins": 1}, ["all values"]),
    ("group_histogram", "minutes % 2, minutes", {"clip": 1, "lo": -6, "hi": 0, "bins": 2, "keys": [1, 0]},
     ["0: below -3", "0: -3 and more", "1: below -3", "1: -3 and more"]),
    ("quantile", "minutes", {"lo": 0, "hi": 10, "q": [0.25, 0.5, 0.975]}, ["0.25", "0.5", "0.975"]),
    ("quantile", "minutes", {"lo": 0, "hi": 10, "q": 0.25}, [""]), ("bounds", "minutes", {}, ["lower end", "upper end"]),
    ("vec_sum", "json_array(minutes, 1)", {"clip": 1, "dim": 2}, ["1", "2"]), ("count", "1", {"clip": 1}, [""]),
    ("group_count", "minutes", {"clip": 1, "keys": ["b", "a [1]", "[1]x", "[]"]}, ["[1]x", "[]", "a [1]", "b"]),
    ("group_count", "json_array(minutes, 1)", {"clip": 1, "keys": [["b", 1], ["a", 1.5], ["c", None]]}, ["a, 1.5", "b, 1", "c, none"]),
    ("group_count", "minutes AS m, 1 AS one", {"clip": 1, "ways": 2, "keys": {"m": ["b", "a"], "one": ["1"]}},
     ["m a, one 1", "m a", "m b, one 1", "m b", "one 1", "all"]),
    ("count", "minutes % 2 + 2024, 1", {"clip": 1, "periods": ["2024", "2025"]}, None)], ids=str)
def test_labels(path, kind, sql, options, labels):
    """The column label says what each number is of: the key and the component."""
    db = create(path, tiers=[("clinic", 100.0, 1e6, 1e-6)])
    one(db, "SELECT dp_release('clinic', ?, ?, ?)", kind, f"SELECT {sql} FROM visits", json.dumps({"name": "r", **options}))
    if labels is None:
        for period in ("2024", "2025"):
            one(db, "SELECT dp_append('r', ?)", period)
        assert {label for (label,) in db.execute("SELECT label FROM dp_value")} == {"2024", "2025", "2024 to 2024", "2024 to 2025"}
        return
    assert [label for (label,) in db.execute("SELECT label FROM dp_value ORDER BY key, component")] == labels
    answered = db.execute("SELECT label FROM dp_answer('clinic', ?, ?, ?)", (kind, f"SELECT {sql} FROM visits", json.dumps({"name": "r", **options})))
    assert [label for (label,) in answered] == labels


def test_a_category_is_shown_as_itself(tmp_path):
    db = connect(tmp_path / "a.db")
    db.execute("CREATE TABLE t(w, p)")
    make_ledger(db, "{}", "t, p")
    one(db, "SELECT dp_tier('in', 1.0, 1e3, 0, 'pure')")
    db.executemany("INSERT INTO t VALUES (?, ?)", [("north ± 1", i) for i in range(500)])
    symbol = one(db, """SELECT dp_release('in', 'choice', 'SELECT w FROM t',
                        '{"name":"c","candidates":["north ± 1","south"],"mechanism":"exponential"}')""")
    assert db.execute("SELECT display FROM dp_value").fetchall() == [(symbol,)]


def test_the_hosts_locale_changes_nothing(book):
    """The text has a decimal point even if the C library uses a decimal comma."""
    available = subprocess.run(["locale", "-a"], capture_output=True, text=True).stdout.split()
    comma = next((name for name in available if name.startswith(("de_", "fr_", "cs_"))), None)
    rows = random_rows("locale", 50)
    before = shown_by_ledger(book, "sum", rows)
    library = ctypes.CDLL(None)
    if not comma or not library.setlocale(1, comma.encode()):
        pytest.skip("no locale with a decimal comma")
    try:
        assert shown_by_ledger(book, "sum", rows) == before
    finally:
        library.setlocale(1, b"C")
