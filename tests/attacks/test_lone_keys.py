"""Attack: a group key that only one unit has. If a GROUP BY returns a row for a village, somebody lives there, and noise in the
number does not hide this."""

import json
import random

import pytest
from conftest import ledger_of, refused

from attack import KEYS, PEOPLE, alarm, fill, one, person, system

LONE = [person("she", 1, "far village")]


def naive(rows, rng):
    """Returns a noisy count for each key that occurs."""
    counts = {}
    for _, key, _, _ in rows:
        counts[key] = counts.get(key, 0) + 1
    return {key: count + rng.gauss(0, 1000) for key, count in counts.items()}


def test_a_naive_histogram_shows_the_key():
    rng = random.Random()
    assert "far village" in naive(PEOPLE + LONE, rng) and "far village" not in naive(PEOPLE, rng)


def test_a_group_by_over_a_private_column_is_refused():
    """SQLite decides which rows a GROUP BY returns, so a ledger with a policy refuses it, with and without her."""
    db = system(tiers={"inner": 0.001})
    for rows in (PEOPLE, PEOPLE + LONE):
        fill(db, rows)
        assert "GROUP BY cannot stand around it" in refused(db, "SELECT key, dp_count('inner', x, 1) FROM people GROUP BY key")
    assert one(db, "SELECT count(*) FROM dp_charge") == 0


def test_a_condition_that_leaves_no_row_tells_nothing():
    """An aggregate makes its release even if its WHERE leaves no row: with and without her there is a number, and a charge."""
    db = system(tiers={"inner": 1.0})
    statements = ["SELECT dp_count('inner', x, 1) FROM people WHERE key = 'far village'",
                  "SELECT dp_count('inner', iif(key = 'far village', x, NULL), 1) FROM people",
                  """SELECT dp_release('inner', 'count', 'SELECT x FROM people WHERE key = ''far village''', '{"clip":1}')"""]
    for rows in (PEOPLE + LONE, PEOPLE):
        fill(db, rows)
        assert all(isinstance(one(db, sql), float) for sql in statements)
    assert one(db, "SELECT count(*) FROM dp_charge") == 3 + 3


PUBLIC = KEYS + ["far village", "nowhere"]


@pytest.mark.parametrize("kind", ["count", "sum"])
def test_groups_of_a_public_list_by_dp_release(kind):
    """A release for each key of a public list gives the same number of answers and charges with and without the only person who has
    one of the keys. The count of this key is mostly noise."""
    db = system(tiers={"inner": 1.0})
    for rows in (PEOPLE, PEOPLE + LONE):
        fill(db, rows)
        for key in PUBLIC:
            assert isinstance(one(db, "SELECT dp_release('inner', ?, ?, '{\"clip\":1}')", kind,
                                  f"SELECT x FROM people WHERE key = '{key}'"), float)
    assert one(db, "SELECT count(*) FROM dp_charge") == 2 * len(PUBLIC)
    assert one(db, "SELECT count(DISTINCT stddev) FROM dp_value") == 1


# ---- dp_group_... --------------------------------------------------------------------------------------------------

GROUPS = [pytest.param(kind, arguments, id=kind) for kind, arguments in
          [("group_count", "key, 1"), ("group_sum", "key, x, 1"), ("group_avg", "key, x, -2, 2"),
           ("ou_group_count", "key, 100, 1"), ("ou_group_sum", "key, x, 1, 100")]]


@pytest.mark.parametrize("kind,arguments", GROUPS)
def test_public_keys_are_all_published_and_no_others(kind, arguments):
    db = system(tiers={"inner": 1.0}, rows=PEOPLE + LONE + [person("x", 1, "secret")])
    options = json.dumps({"keys": PUBLIC})
    answer = json.loads(one(db, f"SELECT dp_{kind}('inner', {arguments}, ?) FROM people", options))
    assert list(answer) == sorted(PUBLIC)
    assert one(db, "SELECT count(*) FROM dp_charge") == 1


@pytest.mark.parametrize("kind,arguments", GROUPS[:3])
@alarm(3 * 20 * 1e-12)
def test_private_keys_that_one_unit_holds_are_not_published(kind, arguments):
    """The test makes twenty releases of each of three kinds. A release may show a key of a single unit with probability 1e-12
    (key_share times delta_keys). A key of 500 units is shown, because its count is 70 standard deviations above the threshold."""
    db = system(tiers={}, rows=LONE + [person(i, 1, "town") for i in range(500)])
    one(db, "SELECT dp_tier('inner', 1.0, 1e15, 1e-6, 'rdp', 1e-10)")
    for _ in range(20):
        answer = json.loads(one(db, f"SELECT dp_{kind}('inner', {arguments}, '{{\"key_share\":0.01}}') FROM people"))
        assert list(answer) == ["town"]
    assert one(db, "SELECT count(*) FROM dp_release WHERE dimension IS NOT NULL") == 0
    assert one(db, "SELECT count(*) FROM dp_value WHERE key <> 'town'") == 0


@pytest.mark.parametrize("max_groups", [1, 3])
@alarm(2 * 210 * 1e-12)
def test_a_unit_with_many_keys_of_its_own_has_but_max_groups_chances(max_groups, tmp_path):
    """One person alone has twenty thousand keys. The test makes ten releases with delta 1e-3 each. The probability that four or
    more of the releases show one of these keys is 210e-12. If each key were shown with this delta, every release would show some
    key. The ledger has no coordinate for a key that no unit kept, at any tier."""
    path = tmp_path / "people.db"
    db = system(path, tiers={}, rows=[("her", f"her {i}", 1, None) for i in range(20000)])
    one(db, "SELECT dp_tier('inner', 0.001, 1e15, 0.5, 'rdp', 0.1)")
    one(db, "SELECT dp_tier('outer', 0.0001, 1e15, 0.5, 'rdp', 0.1)")
    shown = 0
    for i in range(10):
        options = json.dumps({"key_share": 0.01, "max_groups": max_groups, "name": f"r{i}"})
        answer = one(db, "SELECT dp_group_count('inner', key, 1, ?) FROM people", options)
        shown += json.loads(answer) != {}
    assert shown <= 3
    one(db, "SELECT dp_diffuse('r0', 'outer')")
    ledger = ledger_of(path)
    kept = {count for (count,) in ledger.execute("SELECT count(*) FILTER (WHERE component >= 0) FROM dp_path"
                                                 " GROUP BY release_id, tier")}
    ledger.close()
    assert kept == {max_groups}
