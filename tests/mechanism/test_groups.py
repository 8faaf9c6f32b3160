"""Tests groups: the form of public keys, and private keys. A private key is published if its count reaches a threshold. Private
keys cost a delta.

At most 20 shares are compared with exact binomial tails; each comparison has false-alarm probability 2e-10. Other tests state
their own probability. The false-alarm probabilities of this file add up to 1e-8.
"""

import collections
import json
import math
import sqlite3

import pytest
from scipy import stats

from conftest import INIT
from kinds_reference import KINDS, LINEAR, Row, aggregate, by_query, quantile_interval, totals
from kinds_tables import fill
from noise_helpers import charges, check_share, column, connect, create_table, error_of, one, quick_path, record

pytestmark = pytest.mark.alarm(1e-8)

EXACT = 1e6
KINDS_OF_GROUPS = {"group_count": {"clip": 1}, "group_sum": {"clip": 2}, "group_avg": {"lo": -1, "hi": 3}, "group_var": {"lo": -1, "hi": 3},
                   "group_stddev": {"lo": -1, "hi": 3}, "group_count_distinct": {}, "group_histogram": {"clip": 1, "lo": -1, "hi": 3, "bins": 4},
                   "group_quantile": {"q": 0.5, "lo": -1, "hi": 3, "bins": 16}, "group_median": {"lo": -1, "hi": 3, "bins": 8}}
WEIGHED = ("group_sum", "group_histogram", "group_quantile", "group_median")  # with private keys, these have a count of units beside them
HUGE = 1e15


def make(*tiers, options="{}", path=":memory:"):
    """Makes a ledger with tiers (name, rate, delta_keys)."""
    db = connect(path)
    one(db, "SELECT dp_init(?)", options)
    for name, rate, delta_keys in tiers:
        one(db, "SELECT dp_tier(?, ?, ?, ?, 'rdp', ?)", name, rate, HUGE, max(2e-6, (1 + delta_keys) / 2 if delta_keys > 0 else 0),
            delta_keys)
    return db


def groups(db, keys=None, tier="exact", call="dp_group_count(?, k, 1, ?)", **options):
    options = {**options, **({"keys": keys} if keys is not None else {})}
    return json.loads(one(db, f"SELECT {call} FROM t", tier, json.dumps(options)), object_pairs_hook=list)


def fill_keys(db, keys):
    """Fills the table with one row for every key. Each row belongs to another unit."""
    fill(db, [Row(k, 1, None, i) for i, k in enumerate(keys)])


def thousandfold(keys):
    return [key for key in keys for _ in range(1000)]


# ---- public keys ---------------------------------------------------------------------------------------------------

RENDERED = [  # pairs of a key and its text
    (1, "1"), (1.0, "1"), (-7, "-7"), (0, "0"), (-0.0, "0"), (2**63 - 1, "9223372036854775807"), (-2**63, "-9223372036854775808"),
    (1e15, "1000000000000000"), (-1e18, "-1000000000000000000"), (1.5, "1.5"), (0.1, "0.1"), (1 / 3, "0.333333333333333"),
    (-2.5e-7, "-2.5e-07"), (0.1 + 0.2, "0.3"), ("text", "text"), ("", ""), (" a ", " a "), ("1.0", "1.0"), ("NULL", "NULL"), (None, "null"),
    (b"", "x''"), (b"\x00\xffA", "x'00ff41'"), ("x'00ff41'", "x'00ff41'"), ('["a",1]', '["a",1]'), ("Ünï", "Ünï"), ("e\u0301", "e\u0301")]


@pytest.mark.parametrize("key,text", RENDERED, ids=lambda value: repr(value)[:20])
def test_a_key_is_the_text_it_is_shown_as(key, text):
    db = make(("exact", EXACT, 0))
    fill_keys(db, thousandfold([key, "another"]))
    (shown, value), = groups(db, [text])
    assert shown == text and abs(value - 1000) <= 0.01
    assert one(db, "SELECT key FROM dp_value") == text


@pytest.mark.parametrize("key", [1, 1.0, "1"])
def test_keys_that_look_alike_are_one_group(key):
    db = make(("exact", EXACT, 0))
    fill_keys(db, thousandfold([1, 1.0, "1", b"1", "1.0"]))
    (shown, value), = groups(db, [key])
    assert shown == "1" and abs(value - 3000) <= 0.01


def test_keys_of_json():
    """The public keys in a list may have any JSON type. Each key counts once, and an array or object stands for its minified
    text.
    """
    db = make(("exact", EXACT, 0))
    fill_keys(db, thousandfold([None, 3, 2.5, "s", '["a",1]', '{"b":[null,true]}']))
    got = groups(db, [None, 3, 3.0, "3", 2.5, "s", ["a", 1], '["a",1]', {"b": [None, True]}, "none"])
    assert [key for key, _ in got] == ["2.5", "3", '["a",1]', "none", "null", "s", '{"b":[null,true]}']
    assert [round(value, 1) for _, value in got] == [1000, 1000, 1000, 0, 1000, 1000, 1000]
    assert json.loads(one(db, "SELECT keys FROM dp_release")) == [key for key, _ in got]


@pytest.mark.parametrize("key", [b"a\xc0\x80", b"\xed\xa0\x80b", b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xe2\x82", b"\x80",
                                 b"\xe0\x80\xafc", b"\xf0\x8f\xbf\xbf", "\U0010ffff".encode(), "\ud7ff\ue000".encode()])
def test_a_key_that_is_not_utf_8_has_the_form_of_a_blob(key):
    """Overlong forms, surrogates, code points beyond the last one and truncated characters are not UTF-8."""
    db = make(("exact", EXACT, 0.1))
    create_table(db, "k, unit")
    db.executemany("INSERT INTO t VALUES (CAST(? AS TEXT), ?)", [(key, unit) for unit in range(1000)])
    try:
        shown = key.decode()
    except UnicodeDecodeError:
        shown = f"x'{key.hex()}'"
    for keys in (None, [shown]):
        (text, value), = groups(db, keys)
        assert text == shown and abs(value - 1000) <= 0.01


def test_texts_with_other_bytes_are_other_keys():
    """A C string would end at the zero byte, and replaced bytes would all be the same."""
    db = make(("exact", EXACT, 0.1))
    create_table(db, "k, unit")
    texts = [b"a", b"a\x00", b"a\x00b", b"a\x00c", b"\x80", b"\x81", b"\xef\xbf\xbd"]
    for i, text in enumerate(texts):
        db.executemany("INSERT INTO t VALUES (CAST(? AS TEXT), ?)", [(text, f"{i}/{unit}") for unit in range(1000 * (i + 1))])
    assert sorted(round(value) for _, value in groups(db, None)) == [1000 * (i + 1) for i in range(len(texts))]


def test_composite_keys():
    """A key of two columns is json_array(a, b) in the rows and an array in the option keys. SQLite minifies both to the same
    text."""
    db = make(("exact", EXACT, 0))
    fill(db, [Row(k, x, None, (k, x, i).__repr__()) for k, x in [("ward 1", 7), ("w\"2", None), ("é", 1.5)] for i in range(500)])
    keys = ' [ [ "ward 1" , 7 ] , ["w\\"2",null],["\u00e9",1.5] , ["x",0]]'
    result = one(db, "SELECT dp_release('exact', 'group_count', 'SELECT json_array(k, x) FROM t', ?)", f'{{"clip":1,"keys":{keys}}}')
    got = {tuple(json.loads(key)): round(value, 1) for key, value in json.loads(result).items()}
    assert got == {("ward 1", 7): 500, ("w\"2", None): 500, ("é", 1.5): 500, ("x", 0): 0}
    rows = db.execute("SELECT json_extract(key, '$[0]'), json_extract(key, '$[1]'), round(value) FROM json_each(?)", (result,)).fetchall()
    assert set(rows) == {("ward 1", 7, 500.0), ("w\"2", None, 500.0), ("é", 1.5, 500.0), ("x", 0, 0.0)}


def test_composite_keys_meet_as_plain_keys_do():
    """Numbers in composite keys are the same key if they are the same number. Large integers stay apart, and what is no
    array stays as it is."""
    db = make(("exact", EXACT, 0))
    same = ["json_array('a', 1)", "json_array('a', 1.0)", "'[\"a\",10e-1]'", "'[ \"a\" , 1 ]'", "json_array('a', 1 + 1e-17)"]
    other = ["json_array('a', 9007199254740993)", "json_array('a', 9007199254740992)", "json_array('a', 9223372036854775807)",
             "json_array('a', 0.1 + 0.2)", "'[\"a\" 1]'", "'[1]x'", "json_array('a', json_array(2.0, -0.0))", "'[01]'"]
    fill(db, [])
    for number, key in enumerate(same + other):
        db.execute(f"INSERT INTO t WITH n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT 100)"
                   f" SELECT {key}, 1, NULL, {number} || ':' || i FROM n")
    keys = '[["a",1],["a",9007199254740993],["a",9007199254740992],["a",9223372036854775807],["a",0.3],["a",[2,0]],"[\\"a\\" 1]","[1]x","[01]"]'
    result = json.loads(one(db, "SELECT dp_group_count('exact', k, 1, ?) FROM t", f'{{"keys":{keys}}}'))
    assert {key: round(value) for key, value in result.items()} == {
        '["a",1]': 500, '["a",9007199254740993]': 100, '["a",9007199254740992]': 100, '["a",9223372036854775807]': 100,
        '["a",0.3]': 100, '["a",[2,0]]': 100, '["a" 1]': 100, "[1]x": 100, "[01]": 100}


NASTY = ['"', "\\", "\\\"", "'", "a\nb", "\r\t\b\f", "\x01\x1f\x7f", "é", "\u2028", "😀", "", " ", "{}", "[1", "null", "%s%n", "a,b:c", "\\u0041",
         "z" * 10000, "</script>", "\ufeff", "\uffff", "$.a", "0"]


@pytest.mark.parametrize("private", [False, True])
def test_nasty_keys_make_sound_json(private):
    """For keys with any content, the result is JSON that SQLite and Python can read. The JSON has one member for each
    key, in the order of the bytes of the keys."""
    db = make(("exact", EXACT, 0.1))
    fill_keys(db, thousandfold(NASTY))
    result = one(db, "SELECT dp_group_count('exact', k, 1, ?) FROM t", json.dumps({"name": "r"} if private else {"keys": NASTY, "name": "r"}))
    assert one(db, "SELECT json_valid(?)", result) == 1
    expected = sorted((key[:1000] for key in NASTY), key=str.encode)  # the largest number of characters in a key
    assert [key for key, _ in json.loads(result, object_pairs_hook=list)] == expected
    assert column(db, "SELECT key FROM json_each(?)", result) == expected
    assert column(db, "SELECT key FROM dp_value ORDER BY key") == expected
    assert db.execute("SELECT key, value FROM json_each(?)", (result,)).fetchall() == db.execute(
        "SELECT key, value FROM dp_value ORDER BY key").fetchall()
    assert all(abs(value - 1000) <= 0.02 for value in json.loads(result).values())
    for key in expected[::5]:
        low, high = json.loads(one(db, "SELECT dp_interval('r', 'exact', ?, 0.99)", key))
        assert low < json.loads(result)[key] < high
    assert one(db, "SELECT dp_verify()") == "ok"


@pytest.mark.parametrize("kind", KINDS_OF_GROUPS)
@pytest.mark.parametrize("rows", [[], [Row("b", 1, None, 1)], [Row("elsewhere", 1, None, 1)], [Row("b", None, None, 1)]])
def test_every_public_key_is_there(kind, rows):
    """For any data, the result has all public keys in order, and dp_value has one row for each key."""
    db = make(("exact", 1.0, 0))
    fill(db, rows)
    parameters = {**KINDS_OF_GROUPS[kind], "keys": ["b", "a", "B", "é", "10", "9", 2]}
    sql, arguments = by_query(kind, parameters)
    got = json.loads(one(db, sql, *arguments), object_pairs_hook=list)
    assert [key for key, _ in got] == ["10", "2", "9", "B", "a", "b", "é"]
    flat = [(k, i, x) for k, v in got for i, x in enumerate(v if isinstance(v, list) else [v])]
    assert db.execute("SELECT key, component, value FROM dp_value ORDER BY key, component").fetchall() == flat
    assert one(db, "SELECT dimension FROM dp_release") == 7 * width_of(kind)


@pytest.mark.parametrize("keys,message", [
    ("[]", "keys is empty (leave it out to select keys privately)"), ('"a"', "keys must be a JSON array"),
    ("1", "keys must be a JSON array, not a number"), ("null", "keys must be a JSON array, not NULL"),
    ('["a"', "malformed JSON object"), ('["a"],"max_groups":3', "max_groups is for keys that are selected privately: leave it out, or keys"),
    ('["a"],"key_share":0.5', "key_share is for keys that are selected privately: leave it out, or keys"),
    ('["a\\u0000b"]', "a zero byte in "), ('["a"],"keys":["b"]', "an option is given twice")])
def test_malformed_keys(keys, message):
    db = make(("exact", 1.0, 0.1))
    fill_keys(db, ["a"])
    for sql, clip in (("SELECT dp_group_count('exact', k, 1, ?) FROM t", ""),
                      ("SELECT dp_release('exact', 'group_count', 'SELECT k FROM t', ?)", '"clip":1,')):
        assert message in error_of(db, sql, f'{{{clip}"keys":{keys}}}')
    assert not charges(db)


def test_an_object_of_keys_asks_for_cross_tables():
    """An object names the attributes of cross tables, which dp_release() answers if it is told which tables."""
    db = make(("exact", 1.0, 0.1))
    fill_keys(db, ["a"])
    assert "give keys as an array" in error_of(db, "SELECT dp_group_count('exact', k, 1, '{\"keys\":{}}') FROM t")
    assert "ways is missing" in error_of(db, "SELECT dp_release('exact', 'group_count', 'SELECT k FROM t', '{\"clip\":1,\"keys\":{}}')")
    assert not charges(db)


def test_many_keys():
    db = make(("exact", 1.0, 0))
    fill_keys(db, range(20))
    got = groups(db, list(range(20000)))
    assert len(got) == 20000 and one(db, "SELECT count(*) FROM dp_value") == 20000


# ---- private keys: which are shown ---------------------------------------------------------------------------------


def width_of(kind):
    """Returns the number of coordinates of a public key, with the parameters of KINDS_OF_GROUPS."""
    return {"group_avg": 2, "group_var": 3, "group_stddev": 3, "group_histogram": 4, "group_quantile": 30, "group_median": 14}.get(kind, 1)


def levels_of(kind, parameters):
    return math.log2(parameters["bins"]) if kind in ("group_quantile", "group_median") else 1


def weight_of(kind, parameters):
    """Returns the factor of the count that selects keys."""
    if kind in WEIGHED:
        return parameters.get("clip", 1) * math.sqrt(levels_of(kind, parameters)) / 2
    return 0.5 if kind == "group_avg" else 1


def threshold(kind, parameters, rate, delta, by_unit=True, twice=1):
    """Returns the threshold for a noisy count, in rows. The threshold is the most that one unit may add, plus the amount that the
    largest of max_groups noises exceeds with probability delta."""
    clip = parameters.get("clip", 1)
    levels, factor = levels_of(kind, parameters), weight_of(kind, parameters)
    groups = parameters.get("max_groups", 4) if by_unit else 1
    reach = clip * {"group_count": 1, "group_var": math.sqrt(3), "group_stddev": math.sqrt(3)}.get(kind, math.sqrt(5 * levels) / 2)
    if kind == "group_count_distinct":
        reach = min(clip, math.sqrt(groups))
    sigma = twice * reach / math.sqrt(2 * rate) / factor
    tail = -math.expm1(math.log1p(-delta) / groups)  # 1 - (1 - delta)^(1/groups)
    return (1 if kind in WEIGHED else min(1, clip) if kind == "group_count_distinct" else clip) + sigma * stats.norm.isf(tail), sigma


@pytest.mark.parametrize("kind", KINDS_OF_GROUPS)
@pytest.mark.parametrize("rate,delta_keys", [(1.0, 0.5), (0.01, 1e-7), (1e4, 1e-12), (2.0, 0.9)])
@pytest.mark.parametrize("more", [{}, {"clip": 3}, {"max_groups": 1, "key_share": 0.5}, {"max_groups": 1024, "key_share": 1e-3}])
def test_threshold_of_a_plan(kind, rate, delta_keys, more):
    db = make(("t", rate, delta_keys))
    parameters = {**KINDS_OF_GROUPS[kind], **more}
    plan = json.loads(one(db, "SELECT dp_plan('t', ?, NULL, ?)", kind, json.dumps(parameters)))
    wanted, sigma = threshold(kind, parameters, rate, parameters.get("key_share", 0.1) * delta_keys)
    # The standard deviation of the noise is at least 2^20 lattice steps. Rounding adds sqrt(coordinates) to the integer
    # sensitivity.
    steps = 2.0**20 * math.sqrt(2 * rate)
    assert 0 <= plan["threshold"] - wanted <= wanted * (math.sqrt((width_of(kind) + 1) * parameters.get("max_groups", 4)) + 3) / steps + sigma * 2.0**-17
    assert not charges(db)


def test_thresholds_of_rows_and_of_replacement():
    """A protected row has one key. Under replacement, the distance of neighbours is twice as large for sums and sqrt(2) times as
    large for counts."""
    for options, by_unit, twice in (('{"protects":"row"}', False, 1), ('{"adjacency":"replace"}', True, math.sqrt(2))):
        db = make(("t", 0.5, 0.1), options=options)
        plan = json.loads(one(db, "SELECT dp_plan('t', 'group_count', 1, '{}')"))
        wanted, _ = threshold("group_count", {"clip": 1}, 0.5, 0.01, by_unit, twice)
        assert plan["threshold"] == pytest.approx(wanted, rel=1e-5)
    assert "threshold" not in json.loads(one(db, "SELECT dp_plan('t', 'group_count', 1, '{\"keys\":[1]}')"))


@pytest.mark.parametrize("kind", KINDS_OF_GROUPS)
@pytest.mark.parametrize("protects", ["unit", "row"])
@pytest.mark.sample(9)
def test_a_key_of_one_unit_alone_is_shown_with_probability_delta(kind, protects):
    """With 6000 units that have one key each and max_groups 1, a key is shown with probability exactly delta = 0.05. The share of
    shown keys must be between 0.033 and 0.068 (false alarm 2e-10), so the test detects half or twice the probability."""
    if kind == "group_count_distinct" and protects == "row":
        pytest.skip("every row is a unit")
    db = make(("t", 1.0, 0.5), options=json.dumps({"protects": protects}))
    count = 6000
    fill(db, [Row(f"k{i}", 1, None, i) for i in range(count)])
    sql, arguments = by_query(kind, {**KINDS_OF_GROUPS[kind], "max_groups": 1}, "t")
    shown = len(json.loads(one(db, sql, *arguments)))
    check_share(shown, count, 0.05)
    assert record(db, "SELECT delta FROM dp_charge")["delta"] == pytest.approx(0.05, rel=1e-12)


def test_none_of_the_keys_of_a_unit_is_shown_but_with_probability_delta():
    """1500 units have four keys each, which no other unit has. A unit is revealed if any of its keys is shown. Each count of a
    unit with four keys is clipped to half a row. The probability that such a unit is revealed is below delta = 0.05. A unit with
    one key is revealed with probability delta/4. (False alarms: 3e-10 in all.)"""
    db = make(("t", 1.0, 0.5))
    fill(db, [Row(f"{i} {j}", 1, None, i) for i in range(1500) for j in range(4)])
    shown = {key.split()[0] for key, _ in groups(db, tier="t")}
    assert stats.binom.sf(len(shown) - 1, 1500, 0.05) >= 1e-10
    fill(db, [Row(f"{i} 0", 1, None, i) for i in range(8000)])
    check_share(len(groups(db, tier="t", name="alone")), 8000, 1 - 0.95**0.25)


@pytest.mark.parametrize("kind", KINDS_OF_GROUPS)
@pytest.mark.parametrize("protects", ["unit", "row"])
def test_values_of_private_keys(kind, protects):
    """With almost no noise, keys of many units are shown with their correct values, and a key of a single unit is never shown."""
    if kind == "group_count_distinct" and protects == "row":
        pytest.skip("every row is a unit")
    db = make(("exact", EXACT, 1e-9), options=json.dumps({"protects": protects}))
    by_unit = protects == "unit"
    rows = [Row(["a", "b", None, 7][i % 4], i % 5 - 1, None, i % 40) for i in range(200)]
    rows += [Row("mine alone", 2, None, 1)] + [Row("of two", 2, None, i) for i in (5, 6)] * 2
    fill(db, rows)
    parameters = {**KINDS_OF_GROUPS[kind], "max_groups": 8}
    vector = totals(kind, parameters, rows, by_unit)
    call, arguments = aggregate(kind, parameters)
    got = json.loads(one(db, f"SELECT {call} FROM t", *arguments))
    assert set(got) >= {"a", "b", "null", "7"} and "mine alone" not in got
    for key, value in got.items():
        if kind == "group_histogram":
            assert value == pytest.approx([vector.get((key, i), 0) for i in range(4)], abs=0.03)
            continue
        if kind in ("group_quantile", "group_median"):
            tree = {node: n for (k, node), n in vector.items() if k == key}
            low, high = quantile_interval({**parameters, "q": 0.5}, tree, 0.5, 0.03)
            assert low <= value <= high
            continue
        part = [vector.get((key, j), 0) for j in range(3)]
        n = max(part[0], 1)
        variance = 4 * ((part[2] / n + 1) / 2 - (part[1] / n) ** 2)
        wanted = {"group_count": part[0], "group_sum": part[1], "group_avg": 1 + 2 * part[1] / max(2 * part[0], 1),
                  "group_count_distinct": part[0]}.get(kind, variance)
        assert abs((value**2 if kind == "group_stddev" else value) - wanted) <= 0.03


@pytest.fixture
def path():
    with quick_path() as path:
        yield path


def books(path):
    return sqlite3.connect(f"file:{path}-ledger?mode=ro", uri=True)


@pytest.mark.parametrize("kind", KINDS_OF_GROUPS)
@pytest.mark.sample(5)
def test_every_tier_selects_by_its_own_noise(path, kind):
    """Each tier publishes the keys whose noisy counts at this tier reach the threshold of this tier. (The path stores these
    counts for all keys.) Some keys of the inner tier disappear at the outer tier, and some keys appear there. At least 30 and
    38 such keys are expected, so the test fails by chance with probability 1e-13. Only the noise is random."""
    tiers = [("in", 0.2, 0.12), ("between", 0.15, 0.12), ("out", 0.1, 0.8)]
    db = make(*tiers, path=path)
    # With these numbers of units, both tiers publish some of the keys and not others.
    fill(db, [Row(f"k{i:03}", 1, None, f"{i} {j}") for i in range(700) for j in range(1 + i % 12)])
    parameters = {**KINDS_OF_GROUPS[kind], "name": "r", "max_groups": 2}
    sql, arguments = by_query(kind, parameters, "in")
    inner = json.loads(one(db, sql, *arguments))
    outer = json.loads(one(db, "SELECT dp_diffuse('r', 'out')"))
    middle = json.loads(one(db, "SELECT dp_diffuse('r', 'between')"))
    assert set(inner) - set(outer) and set(outer) - set(inner)
    ledger = books(path)
    granularity = one(ledger, "SELECT granularity FROM dp_release")
    factor = weight_of(kind, parameters)
    for (tier, rate, delta_keys), shown in zip(tiers, (inner, middle, outer)):
        counts = dict(ledger.execute("SELECT key, value FROM dp_path WHERE tier = ? AND component = 0", (tier,)))
        assert len(counts) == 700
        wanted, sigma = threshold(kind, parameters, rate, 0.1 * delta_keys)
        for key, count in counts.items():
            rows = count * 2.0**granularity / factor
            assert abs(rows - wanted) <= 1e-4 * sigma or (rows >= wanted) == (key in shown), (tier, key)
        assert set(shown) == set(column(db, "SELECT key FROM dp_value WHERE tier = ?", tier))
        assert one(ledger, "SELECT delta FROM dp_publication WHERE tier = ?", tier) == pytest.approx(0.1 * delta_keys, rel=1e-12)
    assert one(db, "SELECT dp_verify()") == "ok"
    ledger.close()


# ---- private keys: what they cost ----------------------------------------------------------------------------------


def spent(db, tier):
    return one(db, "SELECT spent_delta FROM dp_budget WHERE tier = ?", tier)


def test_delta_is_charged_for_every_publication():
    """Every publication costs delta, also for the inner tiers, which see outer publications. A tier pays the sum of these deltas,
    not the largest."""
    db = make(("in", 1.0, 0.1), ("mid", 0.5, 0.2), ("out", 0.1, 0.4))
    fill_keys(db, thousandfold("ab"))
    groups(db, tier="in", name="r", key_share=0.25)
    assert [spent(db, tier) for tier in ("in", "mid", "out")] == pytest.approx([0.025, 0, 0], rel=1e-12)
    one(db, "SELECT dp_diffuse('r', 'mid')")
    assert [spent(db, tier) for tier in ("in", "mid", "out")] == pytest.approx([0.075, 0.05, 0], rel=1e-12)
    before = charges(db)
    message = error_of(db, "SELECT dp_diffuse('r', 'out')")  # a share of 0.1 for 'in', which has 0.025 left
    assert message.startswith("dp_diffuse: tier 'in' would exceed its delta_keys of 0.1: this needs delta 0.1, and 0.025 is left")
    assert charges(db) == before and column(db, "SELECT tier FROM dp_publication") == ["in", "mid"]
    # Replays are free.
    groups(db, tier="in", name="r", key_share=0.25)
    one(db, "SELECT dp_diffuse('r', 'mid')")
    assert charges(db) == before
    deltas = db.execute("SELECT tier, sum(delta) FROM dp_charge GROUP BY tier").fetchall()
    assert dict(deltas) == pytest.approx({"in": 0.075, "mid": 0.05}, rel=1e-12)
    assert one(db, "SELECT dp_verify()") == "ok"


def test_releases_exhaust_delta_keys():
    """Three shares of 0.3 fit into delta_keys, and the fourth is refused. The refusal charges nothing, and releases with public
    keys remain possible."""
    db = make(("t", 1.0, 0.1))
    fill_keys(db, thousandfold("a"))
    for _ in range(3):
        groups(db, tier="t", key_share=0.3)
    before = charges(db)
    for sql in ("SELECT dp_group_count('t', k, 1, '{\"key_share\":0.3}') FROM t",
                "SELECT dp_release('t', 'group_sum', 'SELECT k, x FROM t', '{\"clip\":1,\"key_share\":0.3}')",
                "SELECT dp_plan('t', 'group_count', 1, '{\"key_share\":0.3}')"):
        assert "tier 't' would exceed its delta_keys of 0.1: this needs delta 0.03, and 0.01 is left" in error_of(db, sql)
    assert charges(db) == before and one(db, "SELECT count(*) FROM dp_release") == 3
    groups(db, ["a"], tier="t")
    groups(db, tier="t", key_share=0.09)
    assert spent(db, "t") == pytest.approx(0.099, rel=1e-12)


def test_without_delta_keys_selection_is_refused():
    """The release is refused if its tier has no delta_keys, or if an inner tier, which would see the publication, has none."""
    db = make(("in", 1.0, 0), ("out", 0.1, 0.1))
    fill_keys(db, "a")
    for tier, problem in (("in", "tier 'in' has no delta_keys for selecting keys privately (list public \"keys\", or create a tier with"
                                 " delta_keys)"), ("out", "tier 'in' would exceed its delta_keys of 0: this needs delta 0.01")):
        for sql in (f"SELECT dp_group_count('{tier}', k, 1) FROM t", f"SELECT dp_release('{tier}', 'group_count', 'SELECT k FROM t', '{{\"clip\":1}}')"):
            assert problem in error_of(db, sql)
    assert not charges(db) and not one(db, "SELECT count(*) FROM dp_release")


def test_a_later_tier_pays_for_what_it_sees():
    db = make(("out", 0.1, 0.4))
    fill_keys(db, thousandfold("ab"))
    groups(db, tier="out", name="r")
    message = "would block tier 'out' outside it, whose private keys it pays for (delta_keys of at least 0.4)"
    assert message in error_of(db, "SELECT dp_tier('poor', 1.0, ?, 0.5, 'rdp', 0.39)", HUGE)
    assert message in error_of(db, "SELECT dp_tier('none', 1.0, ?, 0.5)", HUGE)
    one(db, "SELECT dp_tier('in', 1.0, ?, 0.8, 'rdp', 0.4)", HUGE)  # as much delta as 'out' has
    assert spent(db, "in") == pytest.approx(0.04, rel=1e-12)
    one(db, "SELECT dp_tier('outer', 0.01, ?, 0.5)", HUGE)  # this tier has no delta_keys, but sees nothing of the release
    assert "tier 'outer' has no delta_keys" in error_of(db, "SELECT dp_diffuse('r', 'outer')")
    assert one(db, "SELECT dp_verify()") == "ok"


def test_refining_and_ou_are_refused():
    db = make(("in", 1.0, 0.4), ("out", 0.1, 0.4))
    fill_keys(db, thousandfold("ab"))
    groups(db, tier="out", name="r")
    one(db, "SELECT dp_release('out', 'group_count', 'SELECT k FROM t', '{\"name\":\"q\",\"clip\":1}')")
    before = charges(db)
    for sql in ("SELECT dp_group_count('in', k, 1, '{\"name\":\"r\",\"refine\":true}') FROM t", "SELECT dp_diffuse('r', 'in')"):
        assert "release 'r' has private keys and cannot be refined (make a release of its own at tier 'in')" in error_of(db, sql)
    question = "SELECT dp_release('in', 'group_count', 'SELECT k FROM t', '{\"name\":\"q\",\"refine\":true,\"clip\":1}')"
    assert "release 'q' has private keys and cannot be refined" in error_of(db, question)
    for sql in ("SELECT dp_ou_group_count('in', k, 5, 1) FROM t", "SELECT dp_ou_group_sum('in', k, x, 1, 5) FROM t",
                "SELECT dp_release('in', 'ou_group_count', 'SELECT k FROM t', '{\"radius\":5,\"clip\":1}')"):
        assert "keys is missing: OU needs to know in public how many groups there are" in error_of(db, sql)
    for option in ('"max_groups":4', '"key_share":0.5'):
        assert "unknown option" in error_of(db, f"SELECT dp_ou_group_count('in', k, 5, 1, '{{{option}}}') FROM t")
    assert charges(db) == before


# ---- private keys: what is not shown -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS_OF_GROUPS)
def test_no_key_at_all(path, kind):
    """If no key reaches the threshold, the answer is {}. A replay and a diffusion also return {}, and the costs are the
    same as with keys. (Five keys of single units at two tiers: 3e-13.)"""
    db = make(("in", 1e4, 1e-12), ("out", 100.0, 1e-12), path=path)
    for name, rows in (("nobody", []), ("singles", [Row(f"k{i}", 1, None, i) for i in range(5)]), ("nulls", [Row("k", None, None, 1)])):
        if kind == "group_count" and name == "nulls":
            continue
        fill(db, rows)
        sql, arguments = by_query(kind, {**KINDS_OF_GROUPS[kind], "name": name}, "in")
        assert one(db, sql, *arguments) == "{}"
        before = charges(db)
        assert one(db, sql, *arguments) == one(db, "SELECT dp_diffuse(?, 'in')", name) == "{}"
        assert charges(db) == before
        assert one(db, "SELECT dp_diffuse(?, 'out')", name) == one(db, "SELECT dp_diffuse(?, 'out')", name) == "{}"
        assert column(db, "SELECT delta FROM dp_charge WHERE release = ? AND tier = 'in'", name) == pytest.approx([1e-13, 1e-13], rel=1e-9, abs=0)
        assert not db.execute("SELECT * FROM dp_value").fetchall()
        assert "has no value for this key at tier 'in'" in error_of(db, "SELECT dp_interval(?, 'in', 'k1', 0.95)", name)
    assert one(db, "SELECT dp_verify()") == "ok"


def visible(db):
    """Returns everything that the host connection shows, without noise, times and hashes."""
    hidden = {"value", "low", "high", "stddev", "display", "at", "hash", "created_at", "published_at", "id"}
    tables = {}
    for table in ("dp_tier", "dp_release", "dp_publication", "dp_value", "dp_charge", "dp_rdp", "dp_budget"):
        cursor = db.execute(f"SELECT * FROM {table}")
        names = [d[0] for d in cursor.description]
        tables[table] = sorted(tuple((n, v) for n, v in zip(names, row) if n not in hidden) for row in cursor.fetchall())
    certificate = json.loads(one(db, "SELECT dp_certificate()"))

    def strip(value):
        if isinstance(value, dict):
            return {k: strip(v) for k, v in value.items() if k not in ("id", "hash", "last_hash", "last_seal", "created_at", "published_at", "at", "made_at")}
        return [strip(v) for v in value] if isinstance(value, list) else value

    plan = json.loads(one(db, "SELECT dp_plan('out', 'group_avg', 1, '{\"lo\":-1,\"hi\":3}')"))
    return tables, strip(certificate), plan


@pytest.mark.parametrize("kind", KINDS_OF_GROUPS)
def test_the_number_of_keys_is_shown_nowhere(kind):
    """The data of two ledgers differ in 300 keys that are never selected. Everything that can be seen is the same
    except for the noise. (A key of one unit is shown with probability delta/4 = 2.5e-14 at each of two tiers: 1.5e-11
    in all.)"""
    seen = []
    for secret in (0, 300):
        db = make(("in", 1e4, 1e-12), ("out", 100.0, 1e-12))
        fill(db, [Row("ab"[i % 2], 1, None, i) for i in range(500)] + [Row(f"k{i}", 1, None, i) for i in range(secret)])
        sql, arguments = by_query(kind, {**KINDS_OF_GROUPS[kind], "name": "r"}, "in")
        inner = json.loads(one(db, sql, *arguments))
        outer = json.loads(one(db, "SELECT dp_diffuse('r', 'out')"))
        assert set(inner) == set(outer) == {"a", "b"}
        seen.append(visible(db))
        assert record(db, "SELECT dimension FROM dp_release")["dimension"] is None
        if kind in LINEAR:  # the stddev of other kinds depends on the noisy count
            seen[-1] += (column(db, "SELECT stddev FROM dp_value"),)
        assert "no such table" in error_of(db, "SELECT * FROM dp_path")
    assert seen[0] == seen[1]


@pytest.mark.parametrize("encoding", ["UTF-16le", "UTF-16be"])
def test_encodings(encoding):
    db = connect()
    db.execute(f"PRAGMA encoding = '{encoding}'")
    one(db, INIT)
    one(db, "SELECT dp_tier('exact', ?, ?, 0.5, 'rdp', 0.1)", EXACT, HUGE)
    fill_keys(db, thousandfold(["\u00e9", "e\u0301", "😀", "a\"b", ""]))
    expected = sorted(["\u00e9", "e\u0301", "😀", "a\"b", ""], key=str.encode)
    for got in (groups(db), groups(db, ["😀", "a\"b", "\u00e9", "", "e\u0301"])):
        assert [key for key, _ in got] == expected
        assert all(abs(value - 1000) <= 0.02 for _, value in got)


# ---- max_groups ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS_OF_GROUPS)
@pytest.mark.parametrize("most", [1, 3])
def test_a_unit_keeps_at_most_max_groups_keys(path, kind, most):
    """20 units with many rows have 12 keys each, which no other unit has. The stored counts contain `most` keys of each unit."""
    db = make(("exact", EXACT, 1e-9), path=path)
    fill(db, [Row(f"{unit} {j}", 1, None, unit) for unit in range(20) for j in range(12)])
    sql, arguments = by_query(kind, {**KINDS_OF_GROUPS[kind], "max_groups": most})
    one(db, sql, *arguments)
    ledger = books(path)
    granularity = one(ledger, "SELECT granularity FROM dp_release")
    kept = {}
    for key, value in ledger.execute("SELECT key, value FROM dp_path WHERE component = 0"):
        if value * 2.0**granularity > 0.1:
            kept.setdefault(key.split()[0], []).append(value * 2.0**granularity)
    ledger.close()
    assert len(kept) == 20
    factor = weight_of(kind, KINDS_OF_GROUPS[kind])
    for counts in kept.values():
        assert len(counts) == most and counts == pytest.approx([factor / math.sqrt(most)] * most, abs=0.02)


def test_public_keys_have_no_limit_of_groups():
    db = make(("exact", EXACT, 0))
    fill(db, [Row(j, 1, None, 1) for j in range(100)])
    got = groups(db, list(range(100)))
    assert [value for _, value in got] == pytest.approx([0.1] * 100, abs=0.01)


def test_key_share_buys_a_lower_threshold():
    db = make(("t", 1.0, 0.1))
    thresholds = [json.loads(one(db, "SELECT dp_plan('t', 'group_count', 1, ?)", json.dumps({"key_share": share})))["threshold"]
                  for share in (1e-6, 0.01, 0.1, 0.5, 0.99)]
    assert thresholds == sorted(thresholds, reverse=True) and thresholds[0] > thresholds[-1] + 1


@pytest.mark.parametrize("option,message", [
    ('"max_groups":0', "max_groups must be a number in [1, 1024]"), ('"max_groups":1025', "max_groups must be a number in [1, 1024]"),
    ('"max_groups":2.5', "max_groups must be a whole number"), ('"max_groups":"4 or so"', "max_groups must be a number"),
    ('"max_groups":true', "max_groups must be a number, not a Boolean"), ('"key_share":0', "key_share must be a number in (0, 1]"),
    ('"key_share":1.01', "key_share must be a number in (0, 1]"), ('"key_share":-0.5', "key_share must be a number in (0, 1]"),
    ('"key_share":null', "key_share must be a number")])
def test_malformed_options(option, message):
    db = make(("t", 1.0, 0.1))
    fill_keys(db, "a")
    for sql, clip in (("SELECT dp_group_count('t', k, 1, ?) FROM t", ""),
                      ("SELECT dp_release('t', 'group_count', 'SELECT k FROM t', ?)", '"clip":1,')):
        assert message in error_of(db, sql, f"{{{clip}{option}}}")
    assert not charges(db)


def test_all_kinds_of_groups_are_here():
    assert set(KINDS_OF_GROUPS) == {kind for kind in KINDS if kind.startswith("group")}


LONG_KEYS = [b"\x00" * 600, "x'" + "00" * 600 + "'", "x'" + "00" * 498 + "'", b"\x00" * 498, "é" * 2000, "é" * 1000, "a\x00b", "a", 5, "5", 5.0,
             0.1, "0.1", None, "null", "\ufffd" * 1000]


def test_a_key_is_the_same_whatever_other_keys_there_are():
    """The text of a key is a function of the key alone, so a key of one unit cannot move the rows of another unit to another key.
    """
    db = make(("exact", EXACT, 0.1))
    call = "SELECT dp_group_count('exact', k, 1, '{\"key_share\":1e-6}') FROM t"
    shown = []
    for key in LONG_KEYS:
        fill_keys(db, [key] * 1000)
        (text,) = json.loads(one(db, call))
        assert len(text) <= 1000
        fill_keys(db, [text] * 1000)
        assert list(json.loads(one(db, call))) == [text]  # if the text of a key is itself used as a key, it stays the same
        shown.append(text)
    counts = collections.Counter(shown)
    for keys in (LONG_KEYS, LONG_KEYS[::-1]):  # all keys together, in two orders
        fill_keys(db, thousandfold(keys))
        assert json.loads(one(db, call)) == {text: pytest.approx(1000 * count, abs=1) for text, count in counts.items()}
