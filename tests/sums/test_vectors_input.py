"""Vectors in rows: JSON arrays and blobs, malformed values, the parsing of numbers, and the largest effect of one row. The noise
is 1/1414 of the clip. The tests compare about 5000 coordinates and allow an error of MARGIN times the noise, so the probability
of a false alarm is 1e-11."""

import json
import locale
import math
import random
import shutil
import struct
import subprocess

import pytest

from conftest import INIT
from kinds_reference import MARGIN, Row
from kinds_tables import fill
from noise_helpers import charges, column, connect, error_of, one, open_ledger

pytestmark = pytest.mark.alarm(1e-11)

NOISE = MARGIN / math.sqrt(2e6)  # in units of the clip
FLOATS = [1.5, -2.25, 0.0]


@pytest.fixture
def db():
    return open_ledger({"exact": 1e6})


def vec_sum(db, dim=3, clip=8, unit="unit", tail=""):
    return json.loads(one(db, f"SELECT dp_vec_sum('exact', v, ?, ?) FROM t {tail}", dim, clip))


def close(got, wanted, clip=8):
    return len(got) == len(wanted) and all(abs(a - b) <= NOISE * clip for a, b in zip(got, wanted))


# ---- forms ---------------------------------------------------------------------------------------------------------

WELL_FORMED = [
    "[1.5,-2.25,0]", " [ 1.5 , -2.25 , 0 ] ", "\t[\n1.5\r,-2.25\t,0.0\n]\r\n", "[15e-1,-225E-2,0e5]", "[1.5e+0,-2.25e-0,-0]",
    "[1.50000000000000000000000000000000,-0.0225e2,0.000e-999999999999]", "[150000000000000000000000000000e-29,-2.25,0]",
    "[0.00000000000000000000000000000015e31,-2.25,1e-400]", "[1.5,-2.25,1e-99999999999999999999]", "[1.5,-2.25,4.9e-324]",
    "[1.5,-2.25,-1e-5]".replace("-1e-5", "0." + "0" * 5000 + "1"), "[" + "0." + "0" * 400 + "15e401,-2.25,0]",
    struct.pack("<3f", *FLOATS), struct.pack("<3d", *FLOATS), struct.pack("<3f", 1.5, -2.25, 1e-45), struct.pack("<3d", 1.5, -2.25, -5e-324)]


@pytest.mark.parametrize("v", WELL_FORMED, ids=lambda v: repr(v)[:30])
def test_well_formed(db, v):
    fill(db, [Row(None, None, v, 1)])
    assert close(vec_sum(db), FLOATS)


def malformed():
    """Returns more than a hundred malformed vectors: changes of well-formed vectors, by hand and at random."""
    yield from ["", " ", "[]", "[", "]", "[1,2", "1,2,3", "[1,2,3", "[1,2,3]]", "[[1,2,3]]", "[1,2,3],", "[1,2,3]x", "[1,2,3] [1,2,3]",
                "{\"a\":1}", "{1,2,3}", "(1,2,3)", "null", "1", "[1,2]", "[1,2,3,4]", "[1,,3]", "[,1,2]", "[1,2,]", "[1,2,3,]", "[1 2 3]",
                "[1;2;3]", "[1,2,null]", "[1,2,true]", "[1,2,\"3\"]", "[1,2,[3]]", "[1,2,{}]", "[1,2,x]", "[1,2,NaN]", "[1,2,nan]",
                "[1,2,Infinity]", "[1,2,-Infinity]", "[1,2,inf]", "[1,2,1e999]", "[1,2,-1e400]", "[1,2,1.8e308]", "[1,2,1e99999999999]",
                "[1,2,+3]", "[1,2,.5]", "[1,2,5.]", "[1,2,01]", "[1,2,-01]", "[1,2,00]", "[1,2,0x10]", "[1,2,1e]", "[1,2,1e+]", "[1,2,1e1.5]",
                "[1,2,--3]", "[1,2,-]", "[1,2,1_000]", "[1,2,1'000]", "[1,2,3f]", "[1,2,3L]", "[1,2,3%]", "[1,5,2,5]", "[1,2,٣]", "[1,2,３]",
                "\ufeff[1,2,3]", "[1,\u00a02,3]", "[1,2,3]\x0b", "[1,\x0c2,3]", "[1,2,3]\x00", "[1,2\x00,3]", "\x00[1,2,3]", "/*c*/[1,2,3]",
                "[1,2,3]//c", "[1,2,- 3]", "[1,2,1 .5]", "[1,2,1e 5]", "1e", "[1,2,1E]", "[-,-,-]", "[1,2,3e--1]", "[1,2,3e+-1]"]
    yield from [b"", b"\x00", b"[1,2,3]", b"[1.5,-2.25,0]", struct.pack("<2f", 1, 2), struct.pack("<4f", 1, 2, 3, 4), struct.pack("<2d", 1, 2),
                struct.pack("<4d", 1, 2, 3, 4), struct.pack("<3f", 1, 2, 3)[:-1], struct.pack("<3d", 1, 2, 3)[:-1], b"\x00" * 13,
                struct.pack("<3d", 1, 2, math.inf), struct.pack("<3d", math.nan, 2, 3), struct.pack("<3f", 1, -math.inf, 3),
                struct.pack("<3f", 1, math.nan, 3), struct.pack("<3d", 1, 2, -math.nan), b"\xff" * 12, b"\xff" * 24, b"\x7f" * 25]
    yield from [0, 1, -5, 1.5, 2**63 - 1, math.inf, -math.inf]
    rng = random.Random(3)
    for _ in range(30):
        text = list("[1.5,-2.25,10]")
        for _ in range(rng.randrange(1, 3)):
            text.insert(rng.randrange(len(text)), rng.choice(["[", "]", ",", "-", ".", "e", "x", "\"", "+", "'", "\\", "\x01"]))
        text = "".join(text)
        try:
            parsed = json.loads(text)
            if isinstance(parsed, list) and len(parsed) == 3 and all(isinstance(x, (int, float)) for x in parsed):
                continue
        except ValueError:
            pass
        yield text


def test_there_are_a_hundred_malformed_vectors():
    assert len(set(map(repr, malformed()))) >= 110


@pytest.mark.parametrize("form", ["aggregate", "query"])
def test_malformed_vectors_are_zero(db, form):
    """Each malformed vector counts as zeros and never causes an error. In an average, it counts as a row."""
    for v in malformed():
        fill(db, [Row(None, None, v, 1)])
        if form == "aggregate":
            assert close(vec_sum(db), [0, 0, 0]), v
        else:
            got = json.loads(one(db, "SELECT dp_release('exact', 'vec_sum', 'SELECT v FROM t', '{\"dim\":3,\"clip\":8}')"))
            assert close(got, [0, 0, 0]), v
    rows = [Row(None, None, v, i) for i, v in enumerate(malformed())]
    fill(db, rows + [Row(None, None, "[1.5,-2.25,0]", f"u{i}") for i in range(len(rows))])
    assert close(vec_sum(db), [len(rows) * x for x in FLOATS])
    average = json.loads(one(db, "SELECT dp_vec_avg('exact', v, 3, 8) FROM t"))
    assert close(average, [x / 2 for x in FLOATS], 0.5)


def test_more_digits_than_an_exponent_can_count(db):
    """A number with a hundred thousand zeros before the point is too large for a double. A number with so many zeros after the
    point is 0.
    """
    zeros = "0" * 100_100
    fill(db, [Row(None, None, f"[1.5,-2.25,0.{zeros}1]", 1)])
    assert close(vec_sum(db), FLOATS)
    fill(db, [Row(None, None, f"[1.5,-2.25,1{zeros}]", 1)])
    assert close(vec_sum(db), [0, 0, 0])


def test_null_is_no_row(db):
    fill(db, [Row(None, None, None, i) for i in range(100)] + [Row(None, None, "[4,0,0]", i) for i in range(50)])
    assert close(json.loads(one(db, "SELECT dp_vec_avg('exact', v, 3, 8) FROM t")), [4, 0, 0], 1)
    assert close(vec_sum(db), [200, 0, 0])


@pytest.mark.parametrize("kind,size", [("f", 4), ("d", 8)])
def test_blobs_of_sqlite_vec(db, kind, size):
    """Blobs are little-endian numbers without a header: float32 as sqlite-vec stores them, or float64."""
    rng = random.Random(kind)
    rows = [[struct.unpack(kind, struct.pack(kind, rng.uniform(-1, 1)))[0] for _ in range(16)] for _ in range(200)]
    fill(db, [Row(None, None, struct.pack(f"<16{kind}", *row), i) for i, row in enumerate(rows)])
    assert len(one(db, "SELECT v FROM t LIMIT 1")) == 16 * size
    assert close(vec_sum(db, 16, 4), [math.fsum(row[j] for row in rows) for j in range(16)], 4)
    swapped = [Row(None, None, struct.pack(f">16{kind}", *[2.0] * 16), 1)]
    fill(db, swapped)
    assert close(vec_sum(db, 16, 4), [0] * 16, 4)  # 2.0 with its bytes reversed is almost 0


def test_forms_may_be_mixed(db):
    fill(db, [Row(None, None, v, 7) for v in ("[1,0,0]", struct.pack("<3f", 0, 2, 0), struct.pack("<3d", 0, 0, 3))] +
         [Row(None, None, "[bad]", 7)])
    assert close(vec_sum(db), [1, 2, 3])


def test_encodings():
    for encoding in ("UTF-16le", "UTF-16be"):
        db = connect()
        db.execute(f"PRAGMA encoding = '{encoding}'")
        one(db, INIT)
        one(db, "SELECT dp_tier('exact', 1e6, 1e15, 1e-6)")
        fill(db, [Row(None, None, "[1.5,-2.25,0]", i) for i in range(10)])
        assert close(vec_sum(db), [10 * x for x in FLOATS])


# ---- dimension -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [0, -1, 4097, 1.5, 1e300, "'3x'", "NULL", "9e999"])
def test_dim_out_of_bounds(db, dim):
    fill(db, [Row(None, None, "[1]", 1)])
    for call in ("dp_vec_sum('exact', v, {}, 1)", "dp_vec_avg('exact', v, {}, 1)", "dp_ou_vec_sum('exact', v, {}, 1, 1)"):
        assert ": dim must be a " in error_of(db, f"SELECT {call.format(dim)} FROM t")
    for option in ("", '"dim":0,', '"dim":4097,', '"dim":2.5,', '"dim":null,', '"dim":"3 or so",', '"dim":true,'):
        assert ": dim " in error_of(db, "SELECT dp_release('exact', 'vec_sum', 'SELECT v FROM t', ?)", f'{{{option}"clip":1}}')
    assert not charges(db)


def test_dim_4096(db):
    v = [math.sin(i) for i in range(4096)]
    fill(db, [Row(None, None, json.dumps(v), 1), Row(None, None, struct.pack("<4096d", *v), 2), Row(None, None, json.dumps(v[1:]), 3)])
    assert close(vec_sum(db, 4096, 64), [2 * x for x in v], 64)
    assert one(db, "SELECT count(*) FROM dp_value") == 4096
    assert column(db, "SELECT component FROM dp_value ORDER BY component") == list(range(4096))
    assert close(json.loads(one(db, "SELECT dp_vec_avg('exact', v, 4096, 64) FROM t WHERE unit < 3")), v, 64)


# ---- how far one row reaches ---------------------------------------------------------------------------------------


def test_rows_that_cancel(db):
    """Rows are added before the unit is clipped, so a value that is far too large and its opposite cancel."""
    for big in ("1e6", "1e100", "1e308"):
        fill(db, [Row(None, None, v.replace("b", big), 1) for v in ("[b,-b,0]", "[1,2,3]", "[-b,b,0]")] * 20)
        assert close(vec_sum(db, clip=100), [20, 40, 60], 100)


@pytest.mark.parametrize("clip", [1e-150, 1e-20, 1.0, 1e20, 1e150])
def test_any_scale(db, clip):
    fill(db, [Row(None, None, json.dumps([0.6 * clip, -0.8 * clip * 10]), 1), Row(None, None, struct.pack("<2d", 0, clip / 2), 2)])
    size = math.hypot(0.6, 8)
    assert close(vec_sum(db, 2, clip), [0.6 * clip / size, (-8 / size + 0.5) * clip], clip)


# ---- numbers -------------------------------------------------------------------------------------------------------


def random_number(rng):
    """Returns the text of a JSON number, in one of many notations."""
    digits = "".join(rng.choice("0123456789") for _ in range(rng.choice([1, 3, 8, 15, 16, 17, 18, 19, 20, 25, 60, 400])))
    form = rng.randrange(5)
    if form == 0:
        return f"0.{digits}"
    if form == 1:
        return f"0.{'0' * rng.randrange(350)}{digits}"
    if form == 2:
        return f"{digits.lstrip('0') or '7'}e-{len(digits) + rng.randrange(300)}"
    if form == 3:
        return f"{rng.randrange(1, 10)}.{digits}E-{rng.randrange(1, 310):03}"
    return repr(rng.random() * 10.0 ** -rng.randrange(300))


def test_numbers_are_read_as_python_reads_them(db):
    """The option q shows how the parser of vectors reads 20000 numbers. The error is at most two units in the last place, plus
    one for every 22 powers of ten. Numbers of up to 12 digits with a point are exact."""
    rng = random.Random(1)
    fill(db, [Row(None, 0.5, None, 1)])
    for i in range(20):
        texts = [random_number(rng) for _ in range(1000)]
        texts = [text for text in texts if float(text) <= 1]
        one(db, "SELECT dp_quantile('exact', x, ?, 0, 1, '{\"bins\":2}') FROM t", "[" + ",".join(texts) + "]")
        got = json.loads(one(db, "SELECT options FROM dp_release ORDER BY id DESC LIMIT 1"))["q"]
        assert len(got) == len(texts)
        for text, x in zip(texts, got):
            wanted = float(text)
            powers = len(text) - math.log10(wanted) if wanted else 0
            assert abs(x - wanted) <= (2 + powers / 22) * math.ulp(wanted), text
            mantissa = text.lower().partition("e")[0].replace(".", "").lstrip("0")
            if len(mantissa) <= 15 and wanted > 1e-7 and "e" not in text.lower():
                assert abs(x - wanted) <= math.ulp(wanted) and (x == wanted or len(mantissa) > 12), text


@pytest.mark.parametrize("exponent", [-138, -60, -9, 0, 9, 100, 160])
def test_numbers_of_vectors_are_read_as_blobs_are(db, exponent):
    """One unit has the same number 4000 times as JSON, and its opposite 4000 times as float64, so the sum is 4000 times the error
    of the parser. The numbers are 2^36 times the clip, so an error of 16 units in the last place would be as large as the
    clip."""
    rng = random.Random(exponent)
    texts = []
    for _ in range(6):
        digits = "".join(rng.choice("123456789") for _ in range(rng.choice([5, 15, 17, 19, 30])))
        texts.append(f"{rng.choice(['', '-'])}{digits[0]}.{digits[1:]}e{exponent}")
    numbers = [float(text) for text in texts]
    clip = 2.0 ** (math.frexp(min(map(abs, numbers)))[1] - 36)
    if not 1e-150 <= clip <= 1e150:
        pytest.skip("no lattice there")
    fill(db, [Row(None, None, v, 1) for v in (f"[{','.join(texts)}]", struct.pack("<6d", *[-x for x in numbers]))] * 4000)
    sql = "SELECT dp_vec_sum('exact', v, 6, ?) FROM t"
    ulp = 4000 * max(math.ulp(x) for x in numbers) / clip
    left = max(abs(x) for x in json.loads(one(db, sql, clip))) / clip
    assert left <= 2 * ulp + NOISE < 1


def test_numbers_do_not_depend_on_the_locale(db, tmp_path, monkeypatch):
    """Numbers are read in the same way if the locale has a decimal comma, as in German."""
    before = locale.setlocale(locale.LC_ALL)
    made = tmp_path / "de_DE.UTF-8"
    made_here = subprocess.run(["localedef", "-f", "UTF-8", "-i", "de_DE", str(made)], capture_output=True).returncode == 0 \
        if shutil.which("localedef") else False
    monkeypatch.setenv("LOCPATH", str(tmp_path))
    if not made_here:
        monkeypatch.delenv("LOCPATH")
    try:
        try:
            locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
        except locale.Error:
            pytest.skip("no locale with a decimal comma here")
        assert locale.localeconv()["decimal_point"] == ","
        fill(db, [Row("2.5", 1.5, "[1.5,-2.25,0]", i) for i in range(10)])
        assert close(vec_sum(db), [10 * x for x in FLOATS])
        result = one(db, "SELECT dp_quantile('exact', x, '[0.25,0.5]', 0, 3.5, 'r') FROM t")
        assert all(1.4 <= q <= 1.6 for q in json.loads(result))
        assert list(json.loads(one(db, "SELECT dp_group_count('exact', CAST(k AS REAL), 1, '{\"keys\":[\"2.5\"]}') FROM t"))) == ["2.5"]
        assert json.loads(one(db, "SELECT options FROM dp_release WHERE name = 'r'"))["q"] == [0.25, 0.5]
    finally:
        locale.setlocale(locale.LC_ALL, before)
