"""Errors about an unknown name suggest the nearest known one (ext/base/sql_text.h), and show no name that only a row may have."""

import json
import re

import pytest

from conftest import connect, make_ledger, one, refused


def distance(a, b):
    """The number of letters to change, add, leave out or swap with their neighbour, from its recursive definition."""
    a, b = a.lower(), b.lower()
    table = {}
    for i in range(len(a) + 1):
        for j in range(len(b) + 1):
            ways = [table[i - 1, j] + 1] if i else []
            ways += [table[i, j - 1] + 1] if j else []
            ways += [table[i - 1, j - 1] + (a[i - 1] != b[j - 1])] if i and j else []
            ways += [table[i - 2, j - 2] + 1] if i > 1 and j > 1 and a[i - 2:i] == b[j - 2:j][::-1] else []
            table[i, j] = min(ways, default=0)
    return table[len(a), len(b)]


def misspelt(name):
    """One spelling with a letter left out, one with two letters swapped, one with a letter too many, one with a wrong letter, and
    one in capitals."""
    middle = len(name) // 2
    yield name[:middle] + name[middle + 1:]
    yield name[:middle - 1] + name[middle] + name[middle - 1] + name[middle + 1:]
    yield name[:middle] + "x" + name[middle:]
    yield name[:-1] + "z"
    yield name.upper()


def shop():
    db = connect()
    db.execute("CREATE TABLE rental(id INTEGER PRIMARY KEY, member, minutes, station_name)")
    db.executemany("INSERT INTO rental(member, minutes) VALUES (?, ?)", [(i, i) for i in range(20)])
    make_ledger(db, "{}", "rental, member")
    for name, rate in (("district", 2), ("public", 1), ("staff", 0.5), ("P-029978", 0.4)):
        one(db, "SELECT dp_tier(?, ?, 1e6, 1e-6)", name, rate)
    return db


@pytest.fixture(scope="module")
def rental():
    return shop()


def check(message, asked, known):
    """Checks the suggestion against the known names. A name that is near must lead to one that is as near as any other."""
    nearest = min(distance(asked, name) for name in known)
    suggested = re.search(r"did you mean '(.*?)'\?", message)
    limit = max(1, min(3, min(len(asked), min(len(name) for name in known)) // 3))
    if nearest <= limit:
        assert suggested and distance(asked, suggested[1]) == nearest, (message, asked)
    if suggested:
        assert suggested[1] in known


OPTIONS = "name weight refine mechanism clip lo hi bins diagnose steps bytes seconds until least".split()


def test_options(rental):
    for name in OPTIONS:
        for asked in misspelt(name):
            if asked in OPTIONS:
                continue
            message = refused(rental, "SELECT dp_release('public', 'histogram', 'SELECT minutes FROM rental', ?)", json.dumps({asked: 1}))
            known = re.search(r"known options: (.*)\)", message)[1].split(", ")
            assert known == OPTIONS
            check(message, asked, known)
            # the error shows the option, because a program wrote it, if it looks like a name
            assert (f"unknown option '{asked}' (" in message) == bool(re.fullmatch("[a-z_]+", asked)), message


@pytest.mark.parametrize("call, options", [
    ("dp_init(?)", ["path", "unit", "protects", "adjacency"]), ("dp_tier('x', 1, 1, 1e-6, ?)", ["accountant", "delta_keys", "period"]),
    ("dp_grant('g', 'public', 1, ?)", ["bytes", "diffuse", "pad_ms", "seconds", "steps"]), ("dp_guard('public', ?)", ["ask"])])
def test_options_of_other_functions(rental, call, options):
    for name in options:
        for asked in set(misspelt(name)) - {name}:  # two equal letters may have been swapped
            message = refused(rental, f"SELECT {call}", json.dumps({asked: 1}))
            assert f"known options: {', '.join(options)})" in message
            check(message, asked, options)


def test_kinds_and_mechanisms(rental):
    sql = "SELECT dp_release('public', ?, 'SELECT minutes FROM rental', ?)"
    kinds = re.search(r"known kinds: (.*)\)", refused(rental, sql, "zzzzzz", "{}"))[1].split(", ")
    assert len(kinds) > 40
    for kind in kinds[::3]:
        for asked in misspelt(kind):
            if asked not in kinds and asked not in ("ou_vec_sum", "group_vec_sum"):
                check(refused(rental, sql, asked, "{}"), asked, kinds)
    for asked, meant in (("average", "avg"), ("variance", "var"), ("stdev", "stddev"), ("counts", "count"), ("group_averages", "group_avg")):
        assert f"unknown kind (did you mean '{meant}'? known kinds: " in refused(rental, sql, asked, "{}")
    assert "unknown kind (known kinds" in refused(rental, sql, "zzzzzz", "{}")
    assert ("unknown mechanism (did you mean 'laplace'? this kind has: gaussian, laplace)"
            in refused(rental, sql, "sum", '{"name":"m","clip":1,"mechanism":"Laplaze"}'))


def test_tiers(rental):
    for tier in ("district", "public", "staff"):
        for asked in set(misspelt(tier)) - {tier}:
            message = refused(rental, "SELECT dp_sum(?, minutes, 9) FROM rental", asked)
            check(message, asked, ["district", "public", "staff", "P-029978"])
            assert asked not in message.replace(tier, "")
    assert refused(rental, "SELECT dp_diffuse('r', 'village')") == ("dp_diffuse: unknown tier 'village' (known tiers: district, public, staff, P-029978)")


@pytest.mark.parametrize("call", ["dp_diffuse(?, 'public')", "dp_discard(?)", "dp_interval(?, 'public', NULL, 0.9)", "dp_exposure('public', ?)"])
def test_releases(call):
    db = shop()
    for name in ("rentals by month", "minutes by month", "x"):
        one(db, "SELECT dp_sum('public', minutes, 9, ?) FROM rental", name)
    for asked, meant in (("rental by month", "rentals by month"), ("Minutes by Month", "minutes by month"), ("minuets by mnth", "minutes by month"),
                         ("X", "x")):
        message = refused(db, f"SELECT {call}", asked)
        assert f"unknown release (did you mean '{meant}'? dp_release lists them)" in message
    for asked in ("y", "quarterly", "P-029978", "m" * 5000):
        message = refused(db, f"SELECT {call}", asked)
        assert "unknown release (dp_release lists them)" in message
    one(db, "SELECT dp_discard('x')")
    assert "did you mean" not in refused(db, f"SELECT {call}", "X")


def test_tables_and_columns_of_questions(rental):
    sql = "SELECT dp_release('public', 'sum', ?, '{\"clip\":9}')"
    assert "table 'rentals' is neither protected nor public, so a question cannot read it (did you mean 'rental'? if not, declare it" in refused(
        rental, sql, "SELECT minutes FROM rentals")
    assert "(declare it with dp_protect() or dp_public())" in refused(rental, sql, "SELECT minutes FROM nowhere")
    for name in ("minuts", "r.minuts", "main.rental.minuts"):
        text = f"SELECT {name} FROM rental AS r" if "main" not in name else f"SELECT {name} FROM rental"
        assert refused(rental, sql, text) == f"dp_release: cannot compile sql: no such column: {name} (did you mean 'minutes'?)"
    assert refused(rental, sql, "SELECT stationname FROM rental").endswith("no such column: stationname (did you mean 'station_name'?)")
    assert refused(rental, sql, "SELECT zzz FROM rental").endswith("cannot compile sql: no such column: zzz (a text stands in single quotes, and these are doubled inside another text)")


def test_batches(rental):
    assert "unknown member 'option' (did you mean 'options'? known members: tier, kind, sql, options, diffuse)" in refused(
        rental, "SELECT dp_batch(?)", '[{"tier":"public","kind":"sum","sql":"SELECT minutes FROM rental","option":{}}]')


def test_long_names_take_no_time(rental):
    for asked in ("minutes" * 100000, "\u00e9" * 60, "a" * 60, "a" * 61):
        assert "did you mean" not in refused(rental, "SELECT dp_release(?, 'sum', 'SELECT 1 FROM rental')", asked)


TYPED = [("dp_release('publik', 'count', 'SELECT 1 FROM rental', '{\"clip\":1}')", "unknown tier 'publik' (did you mean 'public'?"),
         ("dp_release('public', 'countt', 'SELECT 1 FROM rental', '{\"clip\":1}')", "unknown kind 'countt' (did you mean 'count'?"),
         ("dp_plan('public', 'countt', 1)", "unknown kind 'countt' (did you mean 'count'?"), ("dp_discard('rr')", "unknown release 'rr' ("),
         ("dp_protect('rentl', 'member')", "main has no such table 'rentl' (did you mean 'rental'?"),
         ("dp_protect('rental', 'membr')", "table 'rental' has no column 'membr' (did you mean 'member'?)"),
         ("dp_batch('[{\"tier\":\"publik\",\"kind\":\"count\",\"sql\":\"SELECT 1 FROM rental\",\"options\":{\"name\":\"n\",\"clip\":1}}]')", "unknown tier 'publik' (")]


@pytest.mark.parametrize("call, said", TYPED)
def test_an_error_repeats_what_was_typed(call, said):
    """A word in quotes in the text of the statement. The same word as a bound value, or from a row, is not repeated."""
    db = shop()
    assert said in refused(db, f"SELECT {call}")
    word = re.search("(?:tier|kind|release|table|column) '([a-z]+)' \\(", said)[1]
    db.execute("CREATE TABLE typed AS SELECT ? AS word", (word,))
    for place in ("?", "(SELECT word FROM typed)"):
        if f"'{word}'" in call:
            assert f"'{word}'" not in refused(db, f"SELECT {call}".replace(f"'{word}'", place), *((word,) if place == "?" else ()))


@pytest.mark.parametrize("asked, meant", [
    ("mean", "avg"), ("min", "quantile"), ("max", "quantile"), ("percentile", "quantile"), ("total", "sum"), ("std", "stddev"), ("sd", "stddev"), ("mode", "choice"),
    ("group_mean", "group_avg"), ("ou_mean", "ou_avg"), ("ou_group_mean", "ou_group_avg"), ("group_max", "group_quantile"), ("Mean", "avg"), ("unique", "count_distinct")])
def test_another_word_for_a_statistic(rental, asked, meant):
    assert f"unknown kind '{asked}' (did you mean '{meant}'?" in refused(rental, f"SELECT dp_release('public', '{asked}', 'SELECT 1 FROM rental', '{{}}')")


def test_kind_and_sql_swapped(rental):
    for sql in ("SELECT 1 FROM rental", " with a AS (SELECT 1) SELECT * FROM a", "VALUES (1)"):
        for call in ("dp_release('public', ?, 'count', '{\"clip\":1}')", "dp_plan('public', ?, 1)"):
            assert "kind is the text of a query (the kind comes before sql: " in refused(rental, f"SELECT {call}", sql)


def test_an_answer_is_a_table(rental):
    for arguments in ("'public'", "'public', 'count', 'SELECT 1 FROM rental', '{}'"):
        assert "write 'SELECT key, display FROM dp_answer(tier, kind, sql, options)'" in refused(rental, f"SELECT dp_answer({arguments})")


def test_group_count_counts_itself(rental):
    said = refused(rental, "SELECT dp_release('public', 'group_count', 'SELECT station_name, count(*) FROM rental GROUP BY 1', '{\"clip\":1}')")
    assert "sql must give 1 column (key), not 2" in said and "without count(*) and GROUP BY" in said
    said = refused(rental, "SELECT dp_release('public', 'group_count', 'SELECT station_name, minutes FROM rental', '{\"clip\":1}')")
    assert "json_array(a, b)" in said


def test_choice_at_a_gaussian_tier():
    db = shop()
    one(db, "SELECT dp_tier('exact', 0.3, 8, 1e-6, 'gdp')")
    assert "ask 'group_count' with the candidates as \"keys\"" in refused(
        db, "SELECT dp_release('exact', 'choice', 'SELECT station_name FROM rental', '{\"name\":\"c\",\"candidates\":[\"a\",\"b\"]}')")
