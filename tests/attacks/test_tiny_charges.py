"""Attack: a million tiny charges. A double that holds a large total does not change when a small number is added, so a naive
budget does not notice any number of tiny charges.

A tier of rate 10^6, the largest, is almost spent by one release. A release of weight 10^-18 then pays 10^-12, the smallest
rate. A double that holds 10^6 does not change even if 58 of these rates are added at once.
"""

from fractions import Fraction

import pytest

from attack import charges, each_call_and_form, one, person, system, verified
from conftest import refused
from math import nextafter

LARGE, TINY = 1e6, 1e-12


def test_a_naive_total_never_notices():
    spent = LARGE
    limit = nextafter(LARGE, 2 * LARGE)
    for _ in range(10**6):
        assert spent + TINY <= limit
        spent += TINY
    assert spent == LARGE


def paid(db):
    return [Fraction(rate) for (rate,) in db.execute("SELECT rate FROM dp_charge WHERE tier = 'inner'")]


def rounded_up(total):
    """Returns the least double that is at least `total`."""
    double = float(total)
    return double if Fraction(double) >= total else nextafter(double, float("inf"))


def many(db, count, weight):
    """Makes `count` releases in one statement."""
    sql = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT dp_release('inner', 'count',"
           f" 'SELECT x FROM people', json_object('name', ? || i, 'weight', {weight}, 'clip', 1)) FROM n")
    assert len(db.execute(sql, (count, f"after {charges(db)}, ")).fetchall()) == count


@pytest.mark.usefixtures("period")
@pytest.mark.sample(1)
def test_thousands_of_tiny_charges_add_up_exactly():
    """After a large charge and tiny charges of four sizes, the total is the exact sum, rounded up once."""
    db = system(tiers={"inner": LARGE}, rows=[person(1, 1)])
    one(db, "SELECT dp_count('inner', x, 1) FROM people")
    for weight in ("1e-18", "3.3e-18", "1.7e-17", "1e-18"):
        many(db, 500, weight)
        assert one(db, "SELECT spent_rate FROM dp_budget") == rounded_up(sum(paid(db)))
    assert one(db, "SELECT spent_rate FROM dp_budget") > max(map(float, paid(db))) + 1e-8
    assert charges(db) == 2001 and verified(db)


@pytest.mark.usefixtures("period")
def test_tiny_charges_exhaust_a_budget():
    """After two large releases, the rest of the budget admits exactly as many tiny releases as fit in exact arithmetic."""
    db = system(tiers={}, rows=[person(1, 1)])
    one(db, "SELECT dp_tier('inner', ?, dp_zcdp_epsilon(?, 1e-6), 1e-6)", LARGE, LARGE)
    limit = Fraction(one(db, "SELECT rate_limit FROM dp_tier"))
    one(db, "SELECT dp_count('inner', x, 1) FROM people")
    left = limit - sum(paid(db)) - Fraction(600 * TINY)  # leaves room for a little more than 600 tiny releases
    one(db, f"SELECT dp_count('inner', x, 1, '{{\"weight\":{float(left / 10**6)!r}}}') FROM people")
    tiny = "SELECT dp_count('inner', x, 1, '{\"weight\":1e-18}') FROM people"
    one(db, tiny)
    rate = paid(db)[-1]
    room = (limit - sum(paid(db))) // rate
    assert 500 < room < 1000, room
    many(db, room, "1e-18")
    assert 0 <= limit - sum(paid(db)) < rate
    assert "would exceed its budget" in refused(db, tiny)
    assert verified(db)


@each_call_and_form
@pytest.mark.usefixtures("period")
@pytest.mark.sample(12)
def test_the_smallest_release_is_charged(call, form):
    """The smallest release is charged, and a smaller one is refused."""
    db = system(tiers={"inner": LARGE})
    one(db, form(call, "inner"))
    for _ in range(10):
        one(db, form(call, "inner", weight="1e-18"))
    assert all(rate > 0 for rate in paid(db)) and len(paid(db)) == 11
    assert one(db, "SELECT spent_rate FROM dp_budget") == rounded_up(sum(paid(db))) > float(paid(db)[0])
    for weight in ("9e-19", "1e-300", "5e-324", "0", "-1e-18"):
        refused(db, form(call, "inner", weight=weight))
    assert charges(db) == 11 and verified(db)
