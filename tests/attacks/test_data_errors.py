"""Attack: errors raised by data. If a value can make the aggregate fail, the error is an exact answer about one person and costs
nothing. In diffuse only parameters cause errors, before any row is read."""

import pytest

from attack import EACH_CALL, PEOPLE, Call, charges, each_call_and_form, fill, one, person, system, verified
from conftest import connect, refused
from odd import COLUMNS, ODD, odd_row


class NaiveSum:
    """An aggregate that trusts its rows."""

    def __init__(self):
        self.total = 0.0

    def step(self, x):
        self.total += max(-1.0, min(1.0, float(x)))

    def finalize(self):
        return self.total + 0.1  # stands for any noise


def test_a_naive_aggregate_fails_where_she_is_in_the_table():
    db = connect()
    db.create_aggregate("naive_sum", 1, NaiveSum)
    fill(db, PEOPLE)
    assert one(db, "SELECT naive_sum(x) FROM people")
    fill(db, PEOPLE + [odd_row("x", "unknown")])
    assert "step" in refused(db, "SELECT naive_sum(x) FROM people")


LONG = ["x" * 10**6, b"\xff" * 10**6, "[" * 10**5, "[" + "1," * 10**5 + "1]", "9" * 10**6, "[1" + "0" * 10**5 + ",0,0]"]


@each_call_and_form
@pytest.mark.sample(12)
def test_no_row_raises_an_error(call, form):
    """A table with odd values in every column and rows of a megabyte gives one answer and one charge for each call."""
    db = system(tiers={"inner": 1.0})
    rows = [odd_row(column, value) for column in COLUMNS for value in ODD]
    for i, table in enumerate([rows, [(value,) * 4 for value in ODD], [(value,) * 4 for value in LONG], [(None,) * 4]]):
        fill(db, table)
        assert one(db, form(call, "inner", f"r{i}")) is not None
    assert charges(db) == 4 and one(db, "SELECT count(*) FROM dp_release WHERE state = 'released'") == 4
    assert verified(db)


@each_call_and_form
def test_errors_in_parameters_do_not_know_the_data(call, form):
    """Errors in parameters have the same text with one person's rows, without these rows and with any other data. These errors
    cost nothing."""
    db = system(tiers={"inner": 1.0})
    wrong = [dict(weight="0"), dict(weight="2"), dict(weight="1e-300"), dict(nonsense="1"), dict(refine="7")]
    null = "NULL" if form is Call.aggregate else "null"
    wrong += [{parameter: bad} for parameter in call.parameters for bad in (null, "9e999")]
    messages = []
    for rows in (PEOPLE, PEOPLE[2:], [person("odd", value) for value in ODD]):
        fill(db, rows)
        messages.append([refused(db, form(call, "inner", None, **changes)) for changes in wrong])
        messages[-1].append(refused(db, form(call, "nowhere")))
    assert messages[0] == messages[1] == messages[2]
    assert charges(db) == 0


FAILING = "(SELECT unit, key, iif(unit = 7, abs(-9223372036854775807 - 1), x) AS x, v FROM people)"


@EACH_CALL
def test_an_error_of_the_owners_expression_is_no_answer(call):
    """If an expression of the owner fails only for one person's rows, the release is an ordinary number, with and without this person.
    SQLite's own pass over the rows around an aggregate is the owner's, and tells nobody else anything."""
    db = system(tiers={"inner": 1.0})
    for name, rows in (("a", PEOPLE), ("b", [row for row in PEOPLE if row[0] != 7])):
        fill(db, rows)
        assert one(db, call.release("inner", name, FAILING)) is not None
    assert db.execute("SELECT name, state FROM dp_release").fetchall() == [("a", "released"), ("b", "released")] and charges(db) == 2
