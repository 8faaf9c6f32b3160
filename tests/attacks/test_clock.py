"""Attack: the clock. A naive system looks up the budget of the current month. An attacker who can set the clock of the
machine sets it to any month with an unused budget, in the past or in the future. The attacker can then spend the
budgets of all months at once.

In diffuse, the periods in which a tier is charged never go back: a new charge counts in the period of the last charge
or in a later period. If the clock is set forward, the budgets of the months in between are lost.
"""

import random

import pytest

from attack import charges, one, verified
from conftest import add_visits, connect, make_ledger, refused

BUDGET = 3  # releases for each month
DATES = [f"20{year}-{month:02}-15" for year in (25, 26, 27) for month in range(1, 13)]


def naive(spent, date):
    """Counts one more answer in the month of `date`. Returns whether a budget by date allows this answer."""
    spent[date[:7]] = spent.get(date[:7], 0) + 1
    return spent[date[:7]] <= BUDGET


def test_a_naive_budget_has_every_month_at_once():
    spent, now = {}, "2027-12-15"
    assert sum(naive(spent, date) for date in [now, *DATES] * 5) == BUDGET * len(DATES)


@pytest.mark.parametrize("seed", range(3))
def test_a_clock_that_is_set_at_will_gives_no_month_twice(path, clock, seed):
    """The test makes 200 tries, each with the clock at a random time within three years. Every answer counts in the
    latest month that has an answer so far, or in a later month. No month has more answers than its budget."""
    dice = random.Random(seed)
    clock.set("2025-01-01 00:00:00")
    db = connect(path)
    add_visits(db)
    make_ledger(db, "{}", "visits, patient")
    one(db, "SELECT dp_tier('public', dp_rate(1.0, 1e-6, ?), 1.0, 1e-6, '{\"period\":\"month\",\"accountant\":\"gdp\"}')", BUDGET)
    answers, reached = {}, ""
    for number in range(200):
        near = [date for date in DATES if date >= (reached or DATES[0])][:3]
        date = dice.choice(DATES[:dice.randrange(1, len(DATES))] if dice.random() < 0.7 else near)
        clock.set(f"{date} 12:00:00")
        month = max(reached, date)[:7]
        if answers.get(month, 0) == BUDGET:
            assert "would exceed its budget" in refused(db, "SELECT dp_count('public', minutes, 1) FROM visits")
        else:
            one(db, "SELECT dp_count('public', minutes, 1) FROM visits")
            answers[month], reached = answers.get(month, 0) + 1, max(reached, date)
            assert one(db, "SELECT period FROM dp_charge ORDER BY id DESC") == f"{month}-01"
        if dice.random() < 0.1:
            db.close()
            db = connect(path)
    assert dict(db.execute("SELECT substr(period, 1, 7), count(*) FROM dp_charge GROUP BY period")) == answers
    assert max(answers.values()) == BUDGET and charges(db) == sum(answers.values()) > 10 and verified(db)
