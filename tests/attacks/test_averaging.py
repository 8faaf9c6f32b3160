"""Attack: replay and averaging. If an attacker gets fresh noise many times without paying, the attacker averages the noise away.
"""

import numpy
import pytest

from attack import alarm, charges, each_call_and_form, one, room_for, system, verified
from conftest import refused

ROOM = 5


@alarm(1e-30)
def test_the_mean_of_naive_answers_is_the_answer():
    """The mean of ten thousand answers with noise of stddev 4 differs from the count by less than 0.5 (12 standard errors)."""
    rng = numpy.random.default_rng()
    assert round(numpy.mean([60 + rng.normal(0, 4) for _ in range(10000)])) == 60


@each_call_and_form
@pytest.mark.sample(8)
def test_a_name_is_one_answer_however_often_it_is_asked(call, form):
    """A named release has one answer and one charge, however often it is requested. The test uses the aggregate or dp_release(), and
    dp_diffuse(), at both tiers, and writes the options in several ways."""
    db = system(tiers={"inner": 1.0, "outer": 0.1})
    inner = {one(db, form(call, "inner", "a", **more)) for _ in range(20) for more in ({}, {"weight": "1.0"}, {"weight": "1e0"})}
    outer = {one(db, form(call, "outer", "a")) for _ in range(20)}
    diffused = {one(db, "SELECT dp_diffuse('a', 'outer')") for _ in range(20)}
    assert len(inner) == 1 and len(outer | diffused) == 1
    # the inner tier has paid once, and nothing for the outer publication
    assert db.execute("SELECT tier, count(*) FROM dp_charge GROUP BY tier ORDER BY tier").fetchall() == [
        ("inner", 1), ("outer", 1)] and verified(db)


@each_call_and_form
@pytest.mark.sample(12)
def test_every_answer_with_noise_of_its_own_is_paid_for(call, form):
    """Releases without a name, releases under another name and releases after dp_discard() all have fresh noise, and each is
    charged. The budget admits five of them and no more. Together they cost five times the rate, which is also the cost
    of one answer as precise as their mean."""
    db = system(tiers={})
    room_for(db, ROOM)
    for name in (None, None, "a", "A"):
        one(db, form(call, "audience", name))
    one(db, "SELECT dp_discard('a')")
    one(db, form(call, "audience", "a"))
    assert one(db, "SELECT count(DISTINCT release_id) FROM dp_value") == ROOM - 1  # one release is discarded
    assert charges(db) == ROOM
    one(db, "SELECT dp_discard('a')")
    for name in (None, "a", "b"):
        assert "would exceed its budget" in refused(db, form(call, "audience", name))
    assert charges(db) == ROOM and verified(db)


def test_failed_answers_are_paid_for_too():
    """If a statement fails after the draw, the release is charged."""
    db = system(tiers={})
    room_for(db, ROOM)
    thrown_away = "SELECT json('{' || dp_release('audience', 'count', 'SELECT x FROM people', '{\"clip\":1}'))"
    for _ in range(ROOM):
        assert "malformed JSON" in refused(db, thrown_away)
    assert "would exceed its budget" in refused(db, thrown_away)
    assert charges(db) == ROOM


def test_the_best_mean_within_a_budget_is_as_noisy_as_the_budget_allows():
    """n answers of variance V cost n s^2/(2V). The budget therefore bounds the precision of every weighted mean of all
    answers."""
    db = system(tiers={})
    room_for(db, ROOM)
    weights = numpy.random.default_rng(3).uniform(0.01, 0.9, 200)
    for weight in weights:
        try:
            one(db, f"SELECT dp_sum('audience', x, 1, '{{\"weight\":{weight}}}') FROM people")
        except Exception as error:
            assert "would exceed its budget" in str(error)
    stddev = numpy.array([s for (s,) in db.execute("SELECT stddev FROM dp_value")])
    assert len(stddev) > ROOM
    best = 1 / (1 / stddev**2).sum()  # the variance of the best mean of all answers
    assert best >= 1 / (2 * one(db, "SELECT rate_limit FROM dp_tier"))
